//! Borrowed terms with safe accessors: the face of a [`Word`] for hosts.

use std::borrow::Cow;
use std::fmt;

use crate::bits::BitsView;
use crate::format::{FormatLimit, format_term};
use crate::header::Subtag;
use crate::maps;
use crate::order;
use crate::tables::Tables;
use crate::word::Word;

/// What a term is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// Integer of any size.
    Integer,
    /// Float.
    Float,
    /// Atom.
    Atom,
    /// Reference.
    Reference,
    /// Fun, local or `fun M:F/A`.
    Fun,
    /// Port.
    Port,
    /// Pid.
    Pid,
    /// Tuple.
    Tuple,
    /// Native record.
    Record,
    /// Map.
    Map,
    /// The empty list.
    Nil,
    /// A list cell.
    List,
    /// Bitstring, binaries included.
    Bitstring,
}

/// A term that lives at least as long as `'p`.
#[derive(Clone, Copy)]
pub struct Term<'p> {
    word: Word,
    tables: &'p Tables,
}

impl<'p> Term<'p> {
    /// A term from its word.
    ///
    /// # Safety
    /// The term stays alive and in place for `'p`, and is of `tables`.
    #[inline]
    pub unsafe fn new(word: Word, tables: &'p Tables) -> Term<'p> {
        Term { word, tables }
    }
    #[inline]
    fn with(self, word: Word) -> Term<'p> {
        Term { word, ..self }
    }
    /// The word.
    #[inline]
    pub fn word(self) -> Word {
        self.word
    }
    /// The tables.
    #[inline]
    pub fn tables(self) -> &'p Tables {
        self.tables
    }
    /// What it is.
    pub fn kind(self) -> Kind {
        let w = self.word;
        if w.is_small() {
            return Kind::Integer;
        }
        if w.is_atom() {
            return Kind::Atom;
        }
        if w.is_cons() {
            return Kind::List;
        }
        if w.is_nil() {
            return Kind::Nil;
        }
        if w.is_pid() {
            return Kind::Pid;
        }
        if w.is_port() {
            return Kind::Port;
        }
        match w.subtag() {
            Some(Subtag::PosBig | Subtag::NegBig) => Kind::Integer,
            Some(Subtag::Float) => Kind::Float,
            Some(Subtag::Tuple) => Kind::Tuple,
            Some(Subtag::Record) => Kind::Record,
            Some(Subtag::FlatMap | Subtag::HashMap) => Kind::Map,
            Some(Subtag::Fun | Subtag::Export) => Kind::Fun,
            Some(Subtag::Ref | Subtag::External) => Kind::Reference,
            _ => Kind::Bitstring,
        }
    }
    /// An integer that fits.
    pub fn as_i64(self) -> Option<i64> {
        if let Some(v) = self.word.as_small() {
            return Some(v);
        }
        match (self.word.subtag()?, self.word.header().arity()) {
            (Subtag::PosBig, 1) => i64::try_from(self.word.field(1)).ok(),
            (Subtag::NegBig, 1) => 0i64.checked_sub_unsigned(self.word.field(1)),
            _ => None,
        }
    }
    /// A non-negative integer that fits.
    pub fn as_u64(self) -> Option<u64> {
        if let Some(v) = self.word.as_small() {
            return u64::try_from(v).ok();
        }
        match (self.word.subtag()?, self.word.header().arity()) {
            (Subtag::PosBig, 1) => Some(self.word.field(1)),
            _ => None,
        }
    }
    /// A float (integers are none).
    pub fn as_f64(self) -> Option<f64> {
        self.word.as_float()
    }
    /// `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        self.word.as_boolean()
    }
    /// The text of an atom.
    pub fn as_atom_text(self) -> Option<&'p str> {
        Some(self.tables.atoms.text(self.word.as_atom()?))
    }
    /// How many elements a tuple has.
    pub fn tuple_len(self) -> Option<usize> {
        self.word.as_tuple().map(<[Word]>::len)
    }
    /// An element of a tuple, counted from 0.
    pub fn element(self, index: usize) -> Option<Term<'p>> {
        Some(self.with(*self.word.as_tuple()?.get(index)?))
    }
    /// The elements of a tuple.
    pub fn elements(self) -> Option<impl ExactSizeIterator<Item = Term<'p>>> {
        let e: &'p [Word] = self.word.as_tuple()?;
        Some(e.iter().map(move |w| self.with(*w)))
    }
    /// Head and tail of a list cell.
    pub fn as_cons(self) -> Option<(Term<'p>, Term<'p>)> {
        let (h, t) = self.word.as_cons()?;
        Some((self.with(h), self.with(t)))
    }
    /// The elements of a list; `None` when this is no list. What follows an improper end is
    /// [`ListIter::tail`].
    pub fn list(self) -> Option<ListIter<'p>> {
        self.word.is_list().then_some(ListIter { rest: self })
    }
    /// How many pairs a map has.
    pub fn map_size(self) -> Option<usize> {
        self.word.is_map().then(|| maps::size(self.word))
    }
    /// The value under a key of a map.
    pub fn get(self, key: Term<'_>) -> Option<Term<'p>> {
        if !self.word.is_map() {
            return None;
        }
        maps::get(self.word, key.word, self.tables).map(|w| self.with(w))
    }
    /// The value under an atom key of a map.
    pub fn get_atom(self, key: &str) -> Option<Term<'p>> {
        if !self.word.is_map() {
            return None;
        }
        let k = self.tables.atoms.lookup(key)?.word();
        maps::get(self.word, k, self.tables).map(|w| self.with(w))
    }
    /// The pairs of a map, in the order of iteration.
    pub fn pairs(self) -> Option<impl ExactSizeIterator<Item = (Term<'p>, Term<'p>)>> {
        self.word
            .is_map()
            .then(|| maps::iter(self.word).map(move |(k, v)| (self.with(k), self.with(v))))
    }
    /// The bits of a bitstring.
    pub fn as_bits(self) -> Option<BitsView> {
        if !self.word.is_bitstring() {
            return None;
        }
        BitsView::of(self.word)
    }
    /// The bytes of a binary, borrowed when they start at a byte; `None` for bitstrings that are
    /// no binaries.
    pub fn bytes(self) -> Option<Cow<'p, [u8]>> {
        let v = self.as_bits()?;
        v.is_binary().then(|| v.to_bytes())
    }
    /// A binary as text.
    pub fn as_str(self) -> Option<Cow<'p, str>> {
        match self.bytes()? {
            Cow::Borrowed(b) => std::str::from_utf8(b).ok().map(Cow::Borrowed),
            Cow::Owned(b) => String::from_utf8(b).ok().map(Cow::Owned),
        }
    }
}

/// The elements of a list.
#[derive(Clone, Copy, Debug)]
pub struct ListIter<'p> {
    rest: Term<'p>,
}

impl<'p> ListIter<'p> {
    /// What is left: the empty list at the end of a proper list.
    pub fn tail(self) -> Term<'p> {
        self.rest
    }
}

impl<'p> Iterator for ListIter<'p> {
    type Item = Term<'p>;
    fn next(&mut self) -> Option<Term<'p>> {
        let (h, t) = self.rest.as_cons()?;
        self.rest = t;
        Some(h)
    }
}

impl PartialEq for Term<'_> {
    /// Exact equality.
    fn eq(&self, other: &Self) -> bool {
        order::eq_exact(self.word, other.word, self.tables)
    }
}

impl PartialOrd for Term<'_> {
    /// Term order.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(order::compare(self.word, other.word, self.tables))
    }
}

/// The most bytes of text that printing a term gives.
const MAX_TEXT: usize = 1 << 16;

impl fmt::Display for Term<'_> {
    /// The text that `erlang:display/1` prints, cut after 64 kB.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = FormatLimit {
            bytes: MAX_TEXT,
            ..FormatLimit::NONE
        };
        f.write_str(&String::from_utf8_lossy(&format_term(
            self.tables,
            self.word,
            limit,
        )))
    }
}

impl fmt::Debug for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
