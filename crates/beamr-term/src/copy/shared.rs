//! Copies that keep sharing.
//!
//! A term may take few words and be endless when it is written out (`T1 = [T0|T0], T2 = [T1|T1], ...`). [`Copying`]
//! first counts a flat copy; when that grows large it surveys the term instead: every object once, noting those met
//! again. The copy then has each of those once as well. Survey and copy take time and memory in proportion to the
//! words that the term really takes.

use std::collections::HashMap;
use std::task::Poll;

use super::{CopyMode, Plan, SizeWalk, copy, plan, whole};
use crate::alloc::Alloc;
use crate::word::Word;

/// Steps of a flat count before the term is surveyed.
const FLAT: i64 = 1 << 18;

/// A copy about to be made: how large it is, then the copy.
#[derive(Debug)]
pub struct Copying {
    term: Word,
    mode: CopyMode,
    words: usize,
    /// Objects that are met more than once, by address; the copies of those that were made.
    shared: Option<HashMap<usize, u64>>,
}

impl Copying {
    /// Looks through a term.
    #[inline]
    pub fn new(term: Word, mode: CopyMode) -> Copying {
        let mode = mode.settled();
        let mut c = Copying {
            term,
            mode,
            words: 0,
            shared: None,
        };
        if term.is_immediate() {
            return c;
        }
        let mut budget = FLAT;
        match SizeWalk::new(term, mode).step(&mut budget) {
            Poll::Ready(n) => c.words = n,
            Poll::Pending => c.survey(),
        }
        c
    }
    /// Looks through a term whose sharing is to be kept whatever its size.
    pub fn sharing(term: Word, mode: CopyMode) -> Copying {
        let mode = mode.settled();
        let mut c = Copying {
            term,
            mode,
            words: 0,
            shared: None,
        };
        if !term.is_immediate() {
            c.survey();
        }
        c
    }
    /// Words that the copy takes.
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }
    /// Whether the copy will have objects once that the term has more than once.
    #[inline]
    pub fn keeps_sharing(&self) -> bool {
        self.shared.as_ref().is_some_and(|s| !s.is_empty())
    }
    /// The copy. It takes exactly [`Copying::words`] words of `alloc`.
    #[inline]
    pub fn make<A: Alloc + ?Sized>(self, alloc: &mut A) -> Word {
        match self.shared {
            None => copy(self.term, alloc, self.mode),
            Some(shared) => make(self.term, alloc, self.mode, shared),
        }
    }
    /// Counts each object once.
    #[cold]
    fn survey(&mut self) {
        let mut seen = Marks::default();
        let mut shared = HashMap::new();
        let mut words = 0;
        let mut todo = vec![self.term];
        while let Some(mut t) = todo.pop() {
            while t.is_cons() && !self.mode.keeps(t.ptr()) {
                if seen.mark(t.ptr() as usize) {
                    shared.insert(t.ptr() as usize, 0);
                    t = Word::NIL;
                    break;
                }
                words += 2;
                let head = t.head();
                t = t.tail();
                if !head.is_immediate() {
                    // The head first, as the copy does.
                    todo.push(t);
                    t = head;
                }
            }
            if !t.is_boxed() {
                continue;
            }
            let how = plan(t, self.mode);
            if matches!(how, Plan::Keep | Plan::Empty) {
                continue;
            }
            if seen.mark(t.ptr() as usize) {
                shared.insert(t.ptr() as usize, 0);
                continue;
            }
            words += how.words();
            if let Plan::Fields { raw, arity } = how {
                let fields = (raw + 1..=arity).map(|i| t.term_field(i));
                todo.extend(fields.filter(|w| !w.is_immediate()));
            }
        }
        self.words = words;
        self.shared = Some(shared);
    }
}

/// Copies with every shared object once.
fn make<A: Alloc + ?Sized>(
    term: Word,
    alloc: &mut A,
    mode: CopyMode,
    mut shared: HashMap<usize, u64>,
) -> Word {
    let mut root = 0u64;
    let mut todo: Vec<(Word, *mut u64)> = vec![(term, &raw mut root)];
    while let Some((mut t, mut slot)) = todo.pop() {
        // SAFETY: `slot` is the root or a word of an object under construction, written once; objects get as many
        // words as they have. Every word of the copy is written before it is given away.
        unsafe {
            loop {
                if t.is_immediate() || mode.keeps(t.ptr()) {
                    *slot = t.bits();
                    break;
                }
                let known = shared.get_mut(&(t.ptr() as usize));
                if let Some(made) = &known
                    && **made != 0
                {
                    *slot = **made;
                    break;
                }
                if t.is_cons() {
                    let p = alloc.alloc(2);
                    let made = Word::list(p).bits();
                    *slot = made;
                    if let Some(known) = known {
                        *known = made;
                    }
                    let head = t.head();
                    t = t.tail();
                    if head.is_immediate() {
                        *p = head.bits();
                        slot = p.add(1);
                    } else {
                        todo.push((t, p.add(1)));
                        t = head;
                        slot = p;
                    }
                    continue;
                }
                let made = match plan(t, mode) {
                    Plan::Fields { raw, arity } => {
                        let p = alloc.alloc(arity + 1);
                        std::ptr::copy_nonoverlapping(t.ptr(), p, raw + 1);
                        for i in raw + 1..=arity {
                            let w = t.term_field(i);
                            if w.is_immediate() {
                                *p.add(i) = w.bits();
                            } else {
                                todo.push((w, p.add(i)));
                            }
                        }
                        Word::boxed(p)
                    }
                    how => whole(alloc, t, how),
                };
                *slot = made.bits();
                if let Some(known) = known {
                    *known = made.bits();
                }
                break;
            }
        }
    }
    // SAFETY: the root's word was written first.
    unsafe { Word::from_bits(root) }
}

/// A set of word addresses, as bits by page.
#[derive(Default)]
struct Marks {
    pages: HashMap<usize, Box<[u64; 8]>>,
}

impl Marks {
    /// Adds an address; whether it was there.
    fn mark(&mut self, address: usize) -> bool {
        let bit = address >> 3 & 511;
        let page = self.pages.entry(address >> 12).or_default();
        let word = &mut page[bit / 64];
        let was = *word >> (bit % 64) & 1 != 0;
        *word |= 1 << (bit % 64);
        was
    }
}
