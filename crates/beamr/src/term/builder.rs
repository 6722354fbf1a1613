//! Making terms.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use beamr_term::copy::{CopyMode, Copying};
use beamr_term::{Alloc, Build, OffHeap, Tables, Word, arith, maps};

use super::{IntoAtom, IntoTerm, Pid, Reference, Term, TermError, TermErrorKind};

/// Makes terms in one place: the storage of an [`OwnedTerm`](super::OwnedTerm), or the heap of the process that runs a native function or handler.
///
/// A term that is made never moves, so that it may be used for others until the building ends.
pub struct TermBuilder<'h> {
    place: *mut (dyn Alloc + 'h),
    tables: &'h Arc<Tables>,
    /// Literals of modules are copied: the term leaves its VM's heaps.
    owned: bool,
    brand: PhantomData<Cell<&'h ()>>,
}

/// A place behind a pointer, for one allocation.
struct At<'h>(*mut (dyn Alloc + 'h));

// SAFETY: forwards to a place, see `TermBuilder::new`.
unsafe impl Alloc for At<'_> {
    fn alloc(&mut self, words: usize) -> *mut u64 {
        // SAFETY: the place lives, and no other reference to it is in use: no code of others runs inside an allocation.
        unsafe { (*self.0).alloc(words) }
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        // SAFETY: as above.
        unsafe { (*self.0).off_heap() }
    }
}

impl<'h> TermBuilder<'h> {
    /// # Safety
    /// The place lives and what is allocated there stays for `'h`, which is a brand that no other place has. It is used through the pointer
    /// only, by one thread, and not while one of the builder's methods runs.
    pub(crate) unsafe fn new(
        place: *mut (dyn Alloc + 'h),
        tables: &'h Arc<Tables>,
        owned: bool,
    ) -> TermBuilder<'h> {
        TermBuilder {
            place,
            tables,
            owned,
            brand: PhantomData,
        }
    }
    fn at(&self) -> At<'h> {
        At(self.place)
    }
    /// A term of this place.
    fn made(&self, word: Word) -> Term<'h> {
        // SAFETY: callers pass what they made in this place, or immediates.
        unsafe { Term::new(word, self.tables) }
    }
    /// The word of a term that goes into another one.
    fn part(&self, t: Term<'h>) -> Word {
        assert!(
            Arc::ptr_eq(self.tables, t.tables()),
            "a term of another VM must be copied"
        );
        t.word()
    }
    pub(crate) fn tables(&self) -> &'h Arc<Tables> {
        self.tables
    }
    pub(crate) fn immediate(&self, word: Word) -> Term<'h> {
        debug_assert!(word.is_immediate());
        self.made(word)
    }
    /// An atom.
    pub fn atom(&self, name: impl IntoAtom) -> Result<Term<'h>, TermError> {
        Ok(self.made(name.atom_in(self.tables)?.word()))
    }
    /// The empty list.
    pub fn nil(&self) -> Term<'h> {
        self.made(Word::NIL)
    }
    /// `true` or `false`.
    pub fn bool(&self, value: bool) -> Term<'h> {
        self.made(Word::boolean(value))
    }
    /// An integer.
    pub fn integer(&self, value: i64) -> Term<'h> {
        self.made(self.at().integer(value))
    }
    /// An integer that is not negative.
    pub fn unsigned(&self, value: u64) -> Term<'h> {
        self.made(self.at().unsigned(value))
    }
    /// An integer from sign and magnitude, least significant limb first. Fails beyond the limit of the VM's release.
    pub fn big_integer(&self, negative: bool, limbs: &[u64]) -> Result<Term<'h>, TermError> {
        arith::integer_from_limbs(&mut self.at(), self.tables.release, negative, limbs)
            .map(|w| self.made(w))
            .map_err(|_| TermErrorKind::IntegerTooLarge.into())
    }
    /// A float. There are none that are not finite.
    pub fn float(&self, value: f64) -> Result<Term<'h>, TermError> {
        if !value.is_finite() {
            return Err(TermErrorKind::NotFinite.into());
        }
        Ok(self.made(self.at().float(value)))
    }
    /// A binary.
    pub fn binary(&self, bytes: &[u8]) -> Term<'h> {
        self.made(self.at().binary(bytes))
    }
    /// A list of the characters of a text.
    pub fn charlist(&self, text: &str) -> Term<'h> {
        self.made(self.at().string(text))
    }
    /// A pid of this VM.
    pub fn pid(&self, pid: Pid) -> Term<'h> {
        self.made(pid.word())
    }
    /// A reference of this VM.
    pub fn reference(&self, reference: Reference) -> Term<'h> {
        self.made(reference.build(&mut self.at()))
    }
    /// A tuple.
    ///
    /// # Panics
    /// Here and in the functions that follow: when a part is of another VM (which only terms that live for ever can be).
    pub fn tuple(&self, elements: &[Term<'h>]) -> Term<'h> {
        let words: Vec<Word> = elements.iter().map(|t| self.part(*t)).collect();
        self.made(self.at().tuple(&words))
    }
    /// `[Head | Tail]`.
    pub fn cons(&self, head: Term<'h>, tail: Term<'h>) -> Term<'h> {
        self.made(self.at().cons(self.part(head), self.part(tail)))
    }
    /// A list of these items that ends in the empty list.
    pub fn list(&self, items: &[Term<'h>]) -> Term<'h> {
        self.made(self.at().list(items.iter().map(|t| self.part(*t))))
    }
    /// A map. Of equal keys the last counts.
    pub fn map(&self, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
        let pairs: Vec<(Word, Word)> = pairs
            .iter()
            .map(|(k, v)| (self.part(*k), self.part(*v)))
            .collect();
        self.made(maps::from_pairs(&mut self.at(), &pairs, self.tables))
    }
    /// A copy of any term.
    pub fn copy(&self, term: Term<'_>) -> Result<Term<'h>, TermError> {
        if !Arc::ptr_eq(self.tables, term.tables()) {
            let here = term.to_owned().into_tables(self.tables)?;
            return self.copy(here.root());
        }
        let mode = if self.owned {
            CopyMode::All
        } else {
            CopyMode::Share
        };
        // What is shared inside is copied once.
        Ok(self.made(Copying::new(term.word(), mode).make(&mut self.at())))
    }
    /// Any value that stands for a term.
    pub fn term(&self, value: impl IntoTerm) -> Result<Term<'h>, TermError> {
        value.into_term(self)
    }
}

impl std::fmt::Debug for TermBuilder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TermBuilder")
    }
}
