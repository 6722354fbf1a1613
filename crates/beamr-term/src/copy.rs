//! Copying terms: how many words a copy takes, and making it.
//!
//! In here: flat copies (sharing inside a term is not kept). [`Copying`] makes flat copies of ordinary terms and
//! keeps the sharing of very large ones (`shared`), so that what it does is bounded by what the term takes where it is. What is counted outside the heap stays shared: a copy of a big binary,
//! of a reference to a resource or of an identifier of another node holds one more count. Parts
//! of big binaries become bitstrings over the same block, small parts are copied. The size and
//! the copy follow one table ([`plan`]), so they agree to the word.
//!
//! Atoms, fun entries and export numbers are copied as they are: source and destination belong to
//! one VM. Terms go to another VM by way of the external format.

mod shared;

use std::task::Poll;

pub use shared::Copying;

use crate::alloc::{Alloc, Build};
use crate::bits::BitsView;
use crate::header::{MAX_HEAP_BINARY, Subtag};
use crate::literal::{Leaving, empty_tuple, is_literal};
use crate::off_heap::{Binary, BinaryRef, retain};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

/// What happens to literals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyMode {
    /// They stay where they are, as long as their area does: copies inside a VM.
    Share,
    /// They are copied, too: ets, persistent terms, the host.
    All,
    /// They stay, but for those of areas that were being given up when the copy began.
    Except(Leaving),
}

impl CopyMode {
    /// What the whole of a copy goes by.
    #[inline]
    fn settled(self) -> CopyMode {
        match (self, Leaving::now()) {
            (CopyMode::Share, Some(leaving)) => CopyMode::Except(leaving),
            _ => self,
        }
    }
    #[inline]
    fn keeps(self, p: *const u64) -> bool {
        match self {
            CopyMode::Share => is_literal(p),
            CopyMode::All => false,
            CopyMode::Except(leaving) => is_literal(p) && !leaving.contains(p),
        }
    }
}

/// How one boxed object is copied.
enum Plan {
    /// It stays: a literal.
    Keep,
    /// The shared empty tuple stands for every other one.
    Empty,
    /// Word by word; a count is added and the copy linked when it is an off-heap object.
    Raw(usize),
    /// Header and this many raw words, then terms.
    Fields { raw: usize, arity: usize },
    /// Heap bits of this many bits.
    HeapBits(u64),
    /// A slice of a counted block; true when it starts within a byte.
    Slice(bool),
}

impl Plan {
    fn words(&self) -> usize {
        match self {
            Plan::Keep | Plan::Empty => 0,
            Plan::Raw(n) => n + 1,
            Plan::Fields { arity, .. } => arity + 1,
            Plan::HeapBits(bits) => 2 + bits.div_ceil(64) as usize,
            Plan::Slice(false) => 5,
            Plan::Slice(true) => 9,
        }
    }
}

#[inline]
fn plan(t: Word, mode: CopyMode) -> Plan {
    if mode.keeps(t.ptr()) {
        return Plan::Keep;
    }
    let h = t.header();
    match h.subtag() {
        Subtag::Tuple if h.arity() == 0 => Plan::Empty,
        Subtag::SubBits | Subtag::Match => {
            let v = BitsView::of(t);
            let (bits, offset) = v.map_or((0, 0), |v| (v.bit_size, v.bit_offset));
            if bits <= MAX_HEAP_BINARY as u64 * 8 {
                Plan::HeapBits(bits)
            } else {
                Plan::Slice(offset & 7 != 0)
            }
        }
        s @ (Subtag::Tuple
        | Subtag::Fun
        | Subtag::Record
        | Subtag::FlatMap
        | Subtag::HashMap
        | Subtag::Export) => Plan::Fields {
            raw: usize::from(s == Subtag::Fun),
            arity: h.arity(),
        },
        _ => Plan::Raw(h.arity()),
    }
}

#[derive(Clone, Copy)]
struct SizeFrame {
    term: Word,
    next: usize,
}

/// Counts the words of a copy, in steps.
#[derive(Debug)]
pub struct SizeWalk {
    now: Word,
    words: usize,
    mode: CopyMode,
    stack: Stack<SizeFrame, 8>,
}

impl SizeWalk {
    /// Starts.
    pub fn new(term: Word, mode: CopyMode) -> SizeWalk {
        let mode = mode.settled();
        SizeWalk {
            now: term,
            words: 0,
            mode,
            stack: Stack::new(),
        }
    }
    /// The words counted so far.
    pub fn words(&self) -> usize {
        self.words
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        f(&mut self.now);
        for e in self.stack.iter_mut() {
            f(&mut e.term);
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, budget: &mut i64) -> Poll<usize> {
        let mut t = self.now;
        loop {
            if *budget <= 0 {
                self.now = t;
                return Poll::Pending;
            }
            *budget -= 1;
            if t.is_cons() && !self.mode.keeps(t.ptr()) {
                self.words += 2;
                let head = t.head();
                if head.is_immediate() {
                    t = t.tail();
                    continue;
                }
                self.stack.push(SizeFrame { term: t, next: 0 });
                t = head;
                continue;
            }
            if t.is_boxed() {
                let p = plan(t, self.mode);
                self.words += p.words();
                if let Plan::Fields { raw, .. } = p {
                    self.stack.push(SizeFrame {
                        term: t,
                        next: raw + 1,
                    });
                }
            }
            loop {
                let Some(top) = self.stack.last_mut() else {
                    return Poll::Ready(self.words);
                };
                if top.term.is_cons() {
                    t = top.term.tail();
                    self.stack.pop();
                    break;
                }
                let n = top.term.header().arity();
                let mut i = top.next;
                while i <= n && top.term.term_field(i).is_immediate() {
                    i += 1;
                }
                *budget -= (i - top.next) as i64;
                top.next = i + 1;
                if i <= n {
                    t = top.term.term_field(i);
                    break;
                }
                self.stack.pop();
            }
        }
    }
}

/// How many words a copy takes, or `None` when they are more than `limit`.
pub fn size_in_words(term: Word, mode: CopyMode, limit: usize) -> Option<usize> {
    if term.is_immediate() {
        return Some(0);
    }
    let mut w = SizeWalk::new(term, mode);
    loop {
        let mut budget = 1 << 16;
        match w.step(&mut budget) {
            Poll::Ready(n) => return (n <= limit).then_some(n),
            Poll::Pending if w.words > limit => return None,
            Poll::Pending => {}
        }
    }
}

#[derive(Clone, Copy)]
struct CopyFrame {
    term: Word,
    next: usize,
    to: *mut u64,
}

/// Makes a copy, in steps. The place that is copied to must stay the same from step to step.
#[derive(Debug)]
pub struct CopyWalk {
    now: Word,
    /// Where the copy of `now` goes; null for the root.
    slot: *mut u64,
    root: Word,
    mode: CopyMode,
    stack: Stack<CopyFrame, 8>,
}

// SAFETY: the pointers go into the place that is copied to, which only the caller of `step` reaches.
unsafe impl Send for CopyWalk {}

impl CopyWalk {
    /// Starts.
    pub fn new(term: Word, mode: CopyMode) -> CopyWalk {
        let mode = mode.settled();
        CopyWalk {
            now: term,
            slot: std::ptr::null_mut(),
            root: Word::NONE,
            mode,
            stack: Stack::new(),
        }
    }
    /// Shows every word of the source that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        f(&mut self.now);
        for e in self.stack.iter_mut() {
            f(&mut e.term);
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step<A: Alloc + ?Sized>(&mut self, alloc: &mut A, budget: &mut i64) -> Poll<Word> {
        let mut t = self.now;
        let mut slot = self.slot;
        loop {
            if *budget <= 0 {
                self.now = t;
                self.slot = slot;
                return Poll::Pending;
            }
            *budget -= 1;
            let mut made = t;
            if t.is_cons() {
                if !self.mode.keeps(t.ptr()) {
                    let p = alloc.alloc(2);
                    // SAFETY: two fresh words, both written before the copy is done: the head now
                    // or next, the tail next or from the frame.
                    unsafe {
                        self.put(slot, Word::list(p));
                        let head = t.head();
                        if head.is_immediate() {
                            *p = head.bits();
                            t = t.tail();
                            slot = p.add(1);
                        } else {
                            self.stack.push(CopyFrame {
                                term: t,
                                next: 0,
                                to: p.add(1),
                            });
                            t = head;
                            slot = p;
                        }
                    }
                    continue;
                }
            } else if t.is_boxed() {
                let how = plan(t, self.mode);
                made = self.object(alloc, t, how);
            }
            // SAFETY: the slot is a word of an object under construction, or null.
            unsafe { self.put(slot, made) };
            loop {
                let Some(top) = self.stack.last_mut() else {
                    return Poll::Ready(self.root);
                };
                if top.term.is_cons() {
                    t = top.term.tail();
                    slot = top.to;
                    self.stack.pop();
                    break;
                }
                let n = top.term.header().arity();
                let mut i = top.next;
                // SAFETY: the copy has as many words as its source.
                unsafe {
                    while i <= n && top.term.term_field(i).is_immediate() {
                        *top.to.add(i) = top.term.field(i);
                        i += 1;
                    }
                    *budget -= (i - top.next) as i64;
                    top.next = i + 1;
                    if i <= n {
                        t = top.term.term_field(i);
                        slot = top.to.add(i);
                        break;
                    }
                }
                self.stack.pop();
            }
        }
    }
    #[inline]
    unsafe fn put(&mut self, slot: *mut u64, w: Word) {
        if slot.is_null() {
            self.root = w;
        } else {
            *slot = w.bits();
        }
    }
    /// Copies one boxed object; its terms follow from a frame.
    #[inline]
    fn object<A: Alloc + ?Sized>(&mut self, alloc: &mut A, t: Word, how: Plan) -> Word {
        let from = t.ptr();
        match how {
            Plan::Fields { raw, arity } => {
                let p = alloc.alloc(arity + 1);
                // SAFETY: as many fresh words as the object has; the frame writes the rest.
                unsafe {
                    std::ptr::copy_nonoverlapping(from, p, raw + 1);
                    self.stack.push(CopyFrame {
                        term: t,
                        next: raw + 1,
                        to: p,
                    });
                    Word::boxed(p)
                }
            }
            _ => whole(alloc, t, how),
        }
    }
}

/// Copies a boxed object that has no terms to follow.
fn whole<A: Alloc + ?Sized>(alloc: &mut A, t: Word, how: Plan) -> Word {
    match how {
        // Terms are not followed from here.
        Plan::Keep | Plan::Fields { .. } => t,
        Plan::Empty => empty_tuple(),
        Plan::Raw(n) => {
            let p = alloc.alloc(n + 1);
            // SAFETY: as many fresh words as the object has; an off-heap object gets its count
            // before it is linked.
            unsafe {
                std::ptr::copy_nonoverlapping(t.ptr(), p, n + 1);
                if t.header().is_off_heap() {
                    retain(p);
                    alloc.off_heap().link(p);
                }
                Word::boxed(p)
            }
        }
        Plan::HeapBits(bits) => {
            let (w, p) = alloc.heap_bits(bits);
            if let Some(v) = BitsView::of(t) {
                // SAFETY: there is room for the bits.
                unsafe { v.copy_to(p, 0) };
            }
            w
        }
        Plan::Slice(within_byte) => {
            let under = t.term_field(1);
            let Some(v) = BitsView::of(t) else { return t };
            // SAFETY: more bits than a heap bitstring holds lie in a counted block, whose
            // owner is alive.
            let block = unsafe { BinaryRef::share(under.field(2) as usize as *mut Binary) };
            let skip = v.bit_offset & 7;
            // SAFETY: the first byte of the part lies in the block.
            let data = unsafe { v.data.add((v.bit_offset >> 3) as usize) };
            let slice = alloc.refc_slice(block, data, skip + v.bit_size);
            if within_byte {
                alloc.sub_bits(slice, skip, v.bit_size)
            } else {
                slice
            }
        }
    }
}

/// A copy of a term in `alloc`.
pub fn copy<A: Alloc + ?Sized>(term: Word, alloc: &mut A, mode: CopyMode) -> Word {
    if term.is_immediate() {
        return term;
    }
    let mut w = CopyWalk::new(term, mode);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(r) = w.step(alloc, &mut budget) {
            return r;
        }
    }
}
