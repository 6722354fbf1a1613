//! Copying: who moves where, and the scan that follows.
//!
//! Cheney's algorithm over two targets: terms that survive for the second time go to the old
//! generation, the others to the new block. A moved cons cell keeps 0 as its head and its new
//! address as its tail; a moved boxed object keeps its new address as its header. The scan goes word
//! by word: a header tells how many raw words to skip, everything else is a term. Nothing
//! recurses; spines of lists are copied in one run, so that a list lies together afterwards.

use std::collections::HashMap;

use beamr_abi::Heap;
use beamr_term::off_heap;
use beamr_term::word::{PRIMARY_BOXED, PRIMARY_HEADER, PRIMARY_LIST};
use beamr_term::{Header, Leaving, Word, is_literal};

/// Where an object goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    New,
    Old,
    Copied,
    Nowhere,
}

/// Literals that are copied out because their areas will be freed.
struct Out {
    areas: Leaving,
    moved: HashMap<usize, u64>,
    linked: Vec<*mut u64>,
}

/// One collection's state. `FULL` empties both generations into the new block.
pub(super) struct Copier<const FULL: bool> {
    young: usize,
    young_bytes: usize,
    /// Bytes from the start of the block that survived before (0 when `FULL`).
    mature_bytes: usize,
    /// The block that was full when the collection was put off (the last of the fragments).
    left: usize,
    left_bytes: usize,
    left_mature_bytes: usize,
    old: usize,
    old_bytes: usize,
    /// Address ranges of fragments, sorted.
    fragments: Vec<(usize, usize)>,
    pub(super) new_top: *mut u64,
    pub(super) old_top: *mut u64,
    leaving: Option<Box<Out>>,
}

impl<const FULL: bool> Copier<FULL> {
    /// A collection from the block (mature below the high-water mark), the old generation up to `old_end`, and the
    /// fragments, into `new_top` and `old_top`.
    pub(super) fn new(
        heap: &Heap,
        old_end: *mut u64,
        new_top: *mut u64,
        old_top: *mut u64,
    ) -> Self {
        let (young, top, high_water) = (heap.start, heap.top, heap.high_water);
        let (left, left_mature, left_top) = heap.left;
        let fragments = heap.fragments.as_deref();
        let mut ranges = Vec::new();
        let mut f = fragments;
        while let Some(g) = f {
            let (a, b) = g.range();
            if a != b {
                ranges.push((a as usize, b as usize));
            }
            f = g.next.as_deref();
        }
        ranges.sort_unstable();
        Copier {
            young: young as usize,
            young_bytes: top as usize - young as usize,
            mature_bytes: if FULL {
                0
            } else {
                high_water as usize - young as usize
            },
            left: left as usize,
            left_bytes: left_top as usize - left as usize,
            left_mature_bytes: if FULL {
                0
            } else {
                left_mature as usize - left as usize
            },
            old: heap.old_start as usize,
            old_bytes: old_end as usize - heap.old_start as usize,
            fragments: ranges,
            new_top,
            old_top,
            leaving: None,
        }
    }
    /// Terms of these literal areas are copied too (only when `FULL`).
    pub(super) fn leave_literals(&mut self, areas: Leaving) {
        self.leaving = Some(Box::new(Out {
            areas,
            moved: HashMap::new(),
            linked: Vec::new(),
        }));
    }
    /// Off-heap objects that were copied out of literals and are in no list yet.
    pub(super) fn take_linked(&mut self) -> Vec<*mut u64> {
        self.leaving
            .as_mut()
            .map(|l| std::mem::take(&mut l.linked))
            .unwrap_or_default()
    }

    #[inline(always)]
    fn goes(&self, p: *mut u64) -> Goes {
        let off = (p as usize).wrapping_sub(self.young);
        if off < self.young_bytes {
            return if !FULL && off < self.mature_bytes {
                Goes::Old
            } else {
                Goes::New
            };
        }
        if FULL && (p as usize).wrapping_sub(self.old) < self.old_bytes {
            return Goes::New;
        }
        let off = (p as usize).wrapping_sub(self.left);
        if off < self.left_bytes {
            return if !FULL && off < self.left_mature_bytes {
                Goes::Old
            } else {
                Goes::New
            };
        }
        if self.fragments.is_empty() && (!FULL || self.leaving.is_none()) {
            return Goes::Nowhere;
        }
        self.goes_elsewhere(p)
    }
    #[inline(never)]
    fn goes_elsewhere(&self, p: *mut u64) -> Goes {
        let a = p as usize;
        if a.wrapping_sub(self.old) < self.old_bytes {
            return Goes::Nowhere;
        }
        if is_literal(p) {
            return match &self.leaving {
                Some(l) if l.areas.contains(p) => Goes::Copied,
                _ => Goes::Nowhere,
            };
        }
        let i = self.fragments.partition_point(|r| r.0 <= a);
        if i > 0 && a < self.fragments[i - 1].1 {
            Goes::New
        } else {
            Goes::Nowhere
        }
    }
    /// Whether the object at `p` lies in what is being emptied.
    pub(super) fn is_from(&self, p: *mut u64) -> bool {
        matches!(self.goes(p), Goes::New | Goes::Old)
    }

    /// Forwards a word in place.
    ///
    /// # Safety
    /// `slot` holds a term (or an immediate, or a header that is not scanned) that is well formed or already moved.
    #[inline(always)]
    pub(super) unsafe fn forward(&mut self, slot: *mut u64) {
        match *slot & 3 {
            PRIMARY_LIST => self.forward_list(slot),
            PRIMARY_BOXED => self.forward_boxed(slot),
            _ => {}
        }
    }

    #[inline(always)]
    unsafe fn forward_boxed(&mut self, slot: *mut u64) {
        let p = (*slot & !3) as usize as *mut u64;
        let goes = self.goes(p);
        if goes == Goes::Nowhere {
            return;
        }
        let header = *p;
        if header & 3 == PRIMARY_BOXED {
            *slot = header;
            return;
        }
        if goes == Goes::Copied {
            *slot = self.copy_literal(*slot);
            return;
        }
        let words = Header(header).arity() + 1;
        let to = match goes {
            Goes::Old => &mut self.old_top,
            _ => &mut self.new_top,
        };
        let dst = *to;
        *to = dst.add(words);
        copy_words(p, dst, words);
        let moved = dst as usize as u64 | PRIMARY_BOXED;
        *p = moved;
        *slot = moved;
    }

    #[inline(always)]
    unsafe fn forward_list(&mut self, slot: *mut u64) {
        let mut p = (*slot & !3) as usize as *mut u64;
        let goes = self.goes(p);
        if goes == Goes::Nowhere {
            return;
        }
        if *p == 0 {
            *slot = *p.add(1);
            return;
        }
        if goes == Goes::Copied {
            *slot = self.copy_literal(*slot);
            return;
        }
        let mut dst = match goes {
            Goes::Old => self.old_top,
            _ => self.new_top,
        };
        *slot = dst as usize as u64 | PRIMARY_LIST;
        loop {
            let tail = *p.add(1);
            *dst = *p;
            *p = 0;
            *p.add(1) = dst as usize as u64 | PRIMARY_LIST;
            let next = (tail & !3) as usize as *mut u64;
            dst = dst.add(2);
            if tail & 3 == PRIMARY_LIST && self.goes(next) == goes && *next != 0 {
                *dst.sub(1) = dst as usize as u64 | PRIMARY_LIST;
                p = next;
            } else {
                *dst.sub(1) = tail;
                break;
            }
        }
        match goes {
            Goes::Old => self.old_top = dst,
            _ => self.new_top = dst,
        }
    }

    /// Copies one object out of the leaving literal area. Others may read it, so where it went is kept aside.
    #[inline(never)]
    unsafe fn copy_literal(&mut self, word: u64) -> u64 {
        let p = (word & !3) as usize as *mut u64;
        let Some(l) = &mut self.leaving else {
            return word;
        };
        if let Some(to) = l.moved.get(&(p as usize)) {
            return *to;
        }
        let dst = self.new_top;
        let words = if word & 3 == PRIMARY_LIST {
            2
        } else {
            Header(*p).arity() + 1
        };
        copy_words(p, dst, words);
        self.new_top = dst.add(words);
        let to = dst as usize as u64 | (word & 3);
        l.moved.insert(p as usize, to);
        if word & 3 == PRIMARY_BOXED && Header(*dst).is_off_heap() {
            off_heap::retain(dst);
            l.linked.push(dst);
        }
        to
    }

    /// Forwards each word of a slice of roots.
    ///
    /// # Safety
    /// Every word is a term, an immediate or [`Word::NONE`].
    pub(super) unsafe fn roots(&mut self, words: &mut [Word]) {
        for w in words {
            self.forward(std::ptr::from_mut(w).cast());
        }
    }
    /// Forwards the terms of a stack; code positions carry the header tag and stay.
    ///
    /// # Safety
    /// `from..to` is a well-formed stack.
    pub(super) unsafe fn stack(&mut self, from: *mut u64, to: *mut u64) {
        let mut p = from;
        while p < to {
            self.forward(p);
            p = p.add(1);
        }
    }
    /// Scans what was copied until nothing is left to copy. `new` and `old` are where scanning starts.
    ///
    /// # Safety
    /// What lies between these and the tops is complete copied objects.
    pub(super) unsafe fn scan(&mut self, new: *mut u64, old: *mut u64) {
        let (mut new, mut old) = (new, old);
        loop {
            while new < self.new_top {
                new = self.scan_word(new);
            }
            if FULL || old == self.old_top {
                return;
            }
            while old < self.old_top {
                old = self.scan_word(old);
            }
        }
    }
    #[inline(always)]
    unsafe fn scan_word(&mut self, p: *mut u64) -> *mut u64 {
        let w = *p;
        if w & 3 == PRIMARY_HEADER {
            return p.add(1 + Header(w).raw_words());
        }
        self.forward(p);
        p.add(1)
    }
}

/// Copies `words` words; most objects are small.
#[inline(always)]
unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    if words <= 8 {
        let mut i = 0;
        while i < words {
            *to.add(i) = *from.add(i);
            i += 1;
        }
    } else {
        std::ptr::copy_nonoverlapping(from, to, words);
    }
}
