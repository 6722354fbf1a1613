//! Reading terms: [`Term`] and [`OwnedTerm`].

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use beamr_term::{Fragment, Tables, Word, etf, order};
use beamr_vm::process::Carried;

pub use beamr_term::term::Kind as TermKind;

use super::print::{TextStyle, text_of};
use super::{FromTerm, IntoTerm, Pid, TermBuilder, TermError, TermErrorKind};

/// The most bytes of text that [`Display`](fmt::Display) gives of one term.
const MAX_TEXT: usize = 1 << 16;

/// The most bytes of external format that a term may have which goes to another VM: what it shares inside is written out there.
const MAX_TRANSFER: usize = 1 << 28;

/// A term that somebody lends: see [the module](self).
///
/// `Display` prints it as `io_lib:format("~0p", [Term])` does, cut after 64 kB; [`Term::text`] prints it whole and in other ways.
#[derive(Clone, Copy)]
pub struct Term<'h> {
    word: Word,
    tables: &'h Arc<Tables>,
    /// Invariant: see the head of `term`.
    brand: PhantomData<Cell<&'h ()>>,
}

impl<'h> Term<'h> {
    /// # Safety
    /// The term lies in the place whose brand `'h` is, stays there for `'h`, and is of these tables.
    pub(crate) unsafe fn new(word: Word, tables: &'h Arc<Tables>) -> Term<'h> {
        Term {
            word,
            tables,
            brand: PhantomData,
        }
    }
    fn with(self, word: Word) -> Term<'h> {
        Term { word, ..self }
    }
    pub(crate) fn word(self) -> Word {
        self.word
    }
    pub(crate) fn tables(self) -> &'h Arc<Tables> {
        self.tables
    }
    fn inner(self) -> beamr_term::Term<'h> {
        // SAFETY: as for this term.
        unsafe { beamr_term::Term::new(self.word, self.tables) }
    }
    /// What it is.
    pub fn kind(self) -> TermKind {
        self.inner().kind()
    }
    /// The value of an integer that fits.
    pub fn as_i64(self) -> Option<i64> {
        self.inner().as_i64()
    }
    /// The value of an integer that is not negative and fits.
    pub fn as_u64(self) -> Option<u64> {
        self.inner().as_u64()
    }
    /// The value of a float (an integer is none).
    pub fn as_f64(self) -> Option<f64> {
        self.inner().as_f64()
    }
    /// The atoms `true` and `false`.
    pub fn as_bool(self) -> Option<bool> {
        self.inner().as_bool()
    }
    /// The text of an atom.
    pub fn as_atom(self) -> Option<&'h str> {
        Some(self.tables.atoms.text(self.word.as_atom()?))
    }
    /// Whether it is the atom of this text.
    pub fn is_atom(self, text: &str) -> bool {
        self.as_atom() == Some(text)
    }
    /// A pid of this VM.
    pub fn as_pid(self) -> Option<Pid> {
        Pid::of_word(self.word)
    }
    /// Whether it is the empty list.
    pub fn is_nil(self) -> bool {
        self.word.is_nil()
    }
    /// How many elements a tuple has.
    pub fn tuple_len(self) -> Option<usize> {
        self.inner().tuple_len()
    }
    /// An element of a tuple, counted from 0.
    pub fn element(self, index: usize) -> Option<Term<'h>> {
        Some(self.with(*self.word.as_tuple()?.get(index)?))
    }
    /// The elements of a tuple.
    pub fn elements(self) -> Option<impl ExactSizeIterator<Item = Term<'h>>> {
        let e: &'h [Word] = self.word.as_tuple()?;
        Some(e.iter().map(move |w| self.with(*w)))
    }
    /// Head and tail of a list cell.
    pub fn as_cons(self) -> Option<(Term<'h>, Term<'h>)> {
        let (h, t) = self.word.as_cons()?;
        Some((self.with(h), self.with(t)))
    }
    /// The items of a list; `None` when it is no list. What follows the last cell is [`ListIter::tail`].
    pub fn list(self) -> Option<ListIter<'h>> {
        self.word.is_list().then_some(ListIter { rest: self })
    }
    /// How many pairs a map has.
    pub fn map_size(self) -> Option<usize> {
        self.inner().map_size()
    }
    /// The value under a key of a map.
    pub fn get(self, key: Term<'_>) -> Option<Term<'h>> {
        if !Arc::ptr_eq(self.tables, key.tables) {
            return None;
        }
        self.inner().get(key.inner()).map(|v| self.with(v.word()))
    }
    /// The value under an atom key of a map.
    pub fn get_atom(self, key: &str) -> Option<Term<'h>> {
        self.inner().get_atom(key).map(|v| self.with(v.word()))
    }
    /// The pairs of a map, in the order of iteration.
    pub fn pairs(self) -> Option<impl ExactSizeIterator<Item = (Term<'h>, Term<'h>)>> {
        let pairs = self.inner().pairs()?;
        Some(pairs.map(move |(k, v)| (self.with(k.word()), self.with(v.word()))))
    }
    /// The bytes of a binary, borrowed when they start at a byte; `None` for bitstrings that are no binaries.
    pub fn bytes(self) -> Option<Cow<'h, [u8]>> {
        self.inner().bytes()
    }
    /// The text of a binary in UTF-8.
    pub fn as_str(self) -> Option<Cow<'h, str>> {
        self.inner().as_str()
    }
    /// The Rust value that this term stands for.
    pub fn decode<T: FromTerm>(self) -> Result<T, TermError> {
        T::from_term(self)
    }
    /// A copy that owns itself.
    pub fn to_owned(self) -> OwnedTerm {
        OwnedTerm {
            inner: beamr_term::OwnedTerm::from_word(self.word, self.tables),
        }
    }
    /// Its text, whole. (A term of a program that is not trusted may have more of it than there is memory: parts of it may be one and the same.)
    pub fn text(self, style: TextStyle) -> String {
        self.text_within(style, usize::MAX)
    }
    /// Its text; what is longer than so many bytes is cut and ends in `...`.
    pub fn text_within(self, style: TextStyle, bytes: usize) -> String {
        text_of(self.tables, self.word, style, bytes)
    }
}

impl PartialEq for Term<'_> {
    /// `=:=`. Terms of different VMs are never equal.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.tables, other.tables)
            && order::eq_exact(self.word, other.word, self.tables)
    }
}

impl PartialOrd for Term<'_> {
    /// Term order. Terms of different VMs have none.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Arc::ptr_eq(self.tables, other.tables)
            .then(|| order::compare(self.word, other.word, self.tables))
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text_of(self.tables, self.word, TextStyle::Print, MAX_TEXT))
    }
}

impl fmt::Debug for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The items of a list, see [`Term::list`].
#[derive(Clone, Copy, Debug)]
pub struct ListIter<'h> {
    rest: Term<'h>,
}

impl<'h> ListIter<'h> {
    /// What is left: the empty list behind the last item of a proper list.
    pub fn tail(self) -> Term<'h> {
        self.rest
    }
}

impl<'h> Iterator for ListIter<'h> {
    type Item = Term<'h>;
    fn next(&mut self) -> Option<Term<'h>> {
        let (h, t) = self.rest.as_cons()?;
        self.rest = t;
        Some(h)
    }
}

/// A term with storage of its own. It may be kept, shared and sent to other threads, and outlives its VM.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let vm = beamr::Scheduler::builder().threads(1).build()?;
/// let term = vm.term((beamr::atom("ok"), vec![1, 2, 3], "text"))?;
/// assert_eq!(term.to_string(), r#"{ok,[1,2,3],<<"text">>}"#);
/// assert_eq!(term.root().element(1).unwrap().decode::<Vec<i64>>()?, [1, 2, 3]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct OwnedTerm {
    inner: beamr_term::OwnedTerm,
}

impl OwnedTerm {
    pub(crate) fn of_word(word: Word, tables: &Arc<Tables>) -> OwnedTerm {
        OwnedTerm {
            inner: beamr_term::OwnedTerm::from_word(word, tables),
        }
    }
    /// Builds one of these tables.
    pub(crate) fn build_in(
        tables: &Arc<Tables>,
        build: impl for<'h> FnOnce(&TermBuilder<'h>) -> Result<Term<'h>, TermError>,
    ) -> Result<OwnedTerm, TermError> {
        let mut storage = Fragment::with_capacity(32);
        let root = {
            // SAFETY: the fragment stays in place as long as the builder, which is the only one of its brand.
            let builder = unsafe { TermBuilder::new(&raw mut storage, tables, true) };
            build(&builder)?.word
        };
        if root.is_immediate() {
            return Ok(OwnedTerm::of_word(root, tables));
        }
        // SAFETY: a builder of an owned term copies literals, so that all of it is in the storage.
        let inner = unsafe { beamr_term::OwnedTerm::from_parts(root, storage, tables.clone()) };
        Ok(OwnedTerm { inner })
    }
    pub(crate) fn from_value(
        tables: &Arc<Tables>,
        value: impl IntoTerm,
    ) -> Result<OwnedTerm, TermError> {
        Self::build_in(tables, |b| value.into_term(b))
    }
    /// The term.
    pub fn root(&self) -> Term<'_> {
        // SAFETY: the storage lives and stays as long as the borrow.
        unsafe { Term::new(self.inner.word(), self.inner.tables()) }
    }
    /// The Rust value that it stands for.
    pub fn decode<T: FromTerm>(&self) -> Result<T, TermError> {
        T::from_term(self.root())
    }
    /// Its external format, as `term_to_binary/1` gives it; at most 256 MB.
    pub fn to_etf(&self) -> Result<Vec<u8>, TermError> {
        etf::encode(
            self.inner.word(),
            self.inner.tables(),
            &etf::EncodeOptions {
                max_bytes: MAX_TRANSFER,
                ..etf::EncodeOptions::default()
            },
        )
        .map_err(|e| TermErrorKind::External(e.to_string()).into())
    }
    /// Words of eight bytes that its storage takes, without what is shared with others (binaries of more than 64 bytes).
    pub fn words(&self) -> usize {
        self.inner.words()
    }
    pub(crate) fn from_etf(tables: &Arc<Tables>, bytes: &[u8]) -> Result<OwnedTerm, TermError> {
        match beamr_term::OwnedTerm::from_etf(bytes, tables) {
            Ok(inner) => Ok(OwnedTerm { inner }),
            Err(e) => Err(TermErrorKind::External(e.to_string()).into()),
        }
    }
    /// The same term of other tables.
    pub(crate) fn into_tables(self, tables: &Arc<Tables>) -> Result<OwnedTerm, TermError> {
        if Arc::ptr_eq(tables, self.inner.tables()) {
            return Ok(self);
        }
        let options = etf::EncodeOptions {
            max_bytes: MAX_TRANSFER,
            ..etf::EncodeOptions::default()
        };
        let bytes = etf::encode(self.inner.word(), self.inner.tables(), &options)
            .map_err(|e| TermError::from(TermErrorKind::External(e.to_string())))?;
        Self::from_etf(tables, &bytes)
    }
    /// As a message or reason of the VM of its tables.
    pub(crate) fn into_carried(self) -> Carried {
        let (term, fragment) = self.inner.into_parts();
        Carried {
            term,
            fragment: fragment.map(Box::new),
        }
    }
    /// Its text, whole: see [`Term::text`].
    pub fn text(&self, style: TextStyle) -> String {
        self.root().text(style)
    }
}

impl PartialEq for OwnedTerm {
    /// `=:=`. Terms of different VMs are never equal.
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl fmt::Display for OwnedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.root(), f)
    }
}

impl fmt::Debug for OwnedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.root(), f)
    }
}
