//! The heap of one process: a block with the heap growing up and the stack growing down, an old
//! generation, heap fragments, off-heap objects.
//!
//! ```text
//! start            high_water        top        stop               end
//!   | survived once    | young         |  free    | stack (BEAM)     |
//! ```
//!
//! Only the thread that owns the process body touches it. While machine or interpreter code runs,
//! `top` and `stop` live in machine registers and are stored back before any call into Rust.

use beamr_term::{Alloc, Fragment, OffHeap};

/// Words kept free between heap and stack besides what code asks for: return addresses pushed
/// by calls and transitions between engines, which are not checked one by one.
pub const STACK_SLACK: usize = 16;

/// A process heap.
#[repr(C)]
#[derive(Debug)]
pub struct Heap {
    /// First free word.
    pub top: *mut u64,
    /// Last pushed stack word (the stack is `stop..end`).
    pub stop: *mut u64,
    /// First word of the block.
    pub start: *mut u64,
    /// End of the block.
    pub end: *mut u64,
    /// Everything below survived a collection.
    pub high_water: *mut u64,
    /// First word of the old generation, or null.
    pub old_start: *mut u64,
    /// First free word of the old generation.
    pub old_top: *mut u64,
    /// End of the old generation.
    pub old_end: *mut u64,
    /// Fragments: native results that did not fit, adopted messages.
    pub fragments: Option<Box<Fragment>>,
    /// Words in use in the fragments.
    pub fragment_words: usize,
    /// Off-heap objects of the block, the old generation and adopted fragments.
    pub off_heap: OffHeap,
    /// Off-heap weight (words) above which a collection is due.
    pub virtual_limit: usize,
    /// A collection should come at the next safe point.
    pub gc_wanted: bool,
    /// A collection that takes long is due, and is done by another thread as soon as the process rests; until then what
    /// does not fit gets a new block ([`Heap::fragments`] keeps the old one).
    pub outside: bool,
    /// The first block that became a fragment because a collection was put off: start, end of what had survived a
    /// collection, end of its terms; null when there is none.
    pub left: (*mut u64, *mut u64, *mut u64),
    /// Minor collections since the last full sweep.
    pub minor_count: u16,
    /// Minor collections before a full sweep (`fullsweep_after`).
    pub fullsweep_after: u16,
    /// Smallest block in words (`min_heap_size`).
    pub min_size: usize,
    /// Smallest `virtual_limit` (`min_bin_vheap_size`).
    pub min_virtual: usize,
    /// `max_heap_size` in words, 0 when unlimited.
    pub max_size: usize,
    /// Counted binaries that the heap refers to count for `max_size` (`include_shared_binaries`).
    pub max_with_binaries: bool,
    /// Off-heap weight of the old generation; that of everything younger is `off_heap.overhead`.
    pub old_overhead: usize,
    /// Weight of the old generation above which the next collection is a full sweep.
    pub old_virtual_limit: usize,
}

impl Heap {
    /// Words in the block.
    #[inline]
    pub fn size(&self) -> usize {
        (self.end as usize - self.start as usize) / 8
    }
    /// Words in use by young terms.
    #[inline]
    pub fn used(&self) -> usize {
        (self.top as usize - self.start as usize) / 8
    }
    /// Words on the stack.
    #[inline]
    pub fn stack_size(&self) -> usize {
        (self.end as usize - self.stop as usize) / 8
    }
    /// Words free between heap and stack.
    #[inline]
    pub fn free(&self) -> usize {
        (self.stop as usize - self.top as usize) / 8
    }
    /// Words in use in the old generation.
    #[inline]
    pub fn old_used(&self) -> usize {
        (self.old_top as usize - self.old_start as usize) / 8
    }
    /// Words of the old generation's block.
    #[inline]
    pub fn old_size(&self) -> usize {
        (self.old_end as usize - self.old_start as usize) / 8
    }
    /// Adopts a fragment chain (a received message, a spawn argument): its off-heap objects join
    /// this heap's list, its words count as fragment words.
    pub fn adopt(&mut self, mut fragment: Box<Fragment>) {
        let mut words = 0;
        let mut f = Some(&mut *fragment);
        while let Some(g) = f {
            words += g.used();
            // SAFETY: both lists are well formed; the objects live in blocks that this heap now owns.
            unsafe { self.off_heap.append(&mut g.off_heap) };
            f = g.next.as_deref_mut();
        }
        self.fragment_words += words;
        if let Some(older) = self.fragments.take() {
            fragment.chain(older);
        }
        self.fragments = Some(fragment);
        if self.fragment_words * 2 > self.size() || self.off_heap.overhead > self.virtual_limit {
            self.gc_wanted = true;
        }
    }
    #[cold]
    #[inline(never)]
    fn alloc_in_fragment(&mut self, words: usize) -> *mut u64 {
        self.fragment_words += words;
        self.gc_wanted = true;
        match &mut self.fragments {
            Some(f) => f.alloc(words),
            None => {
                let mut f = Box::new(Fragment::with_capacity(words.max(64)));
                let p = f.alloc(words);
                self.fragments = Some(f);
                p
            }
        }
    }
}

// SAFETY: the block moves only in a collection; fragments never move.
unsafe impl Alloc for Heap {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut u64 {
        if words + STACK_SLACK <= self.free() {
            let p = self.top;
            // SAFETY: there is room below the stack.
            self.top = unsafe { p.add(words) };
            p
        } else {
            self.alloc_in_fragment(words)
        }
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        if self.off_heap.overhead > self.virtual_limit {
            self.gc_wanted = true;
        }
        &mut self.off_heap
    }
}
