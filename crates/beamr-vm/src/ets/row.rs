//! A row: one tuple in one allocation, with its own off-heap list. Immutable once in a table.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use beamr_term::copy::{self, CopyMode};
use beamr_term::{Alloc, OffHeap, Word};

#[repr(C)]
struct Head {
    off_heap: OffHeap,
    words: usize,
}

const HEAD: usize = std::mem::size_of::<Head>();

/// An owned row.
#[derive(Debug)]
pub struct Row(NonNull<Head>);

// SAFETY: a row owns its block; its words refer only to the block itself and to counted objects.
unsafe impl Send for Row {}
// SAFETY: immutable while shared.
unsafe impl Sync for Row {}

/// Writes into a row's block.
struct Bump {
    top: *mut u64,
    end: *mut u64,
    off_heap: OffHeap,
}

// SAFETY: the block has the size that `size_in_words` told for the same term, and copying needs no more.
unsafe impl Alloc for Bump {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut u64 {
        let p = self.top;
        assert!(
            (self.end as usize - p as usize) / 8 >= words,
            "a copy is larger than its size"
        );
        // SAFETY: checked above.
        self.top = unsafe { p.add(words) };
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

fn layout(words: usize) -> Layout {
    Layout::from_size_align(HEAD + words * 8, 8).unwrap_or_else(|_| std::process::abort())
}

impl Row {
    /// A copy of `tuple`, all of it (literals too).
    pub fn new(tuple: Word) -> Row {
        let words = copy::size_in_words(tuple, CopyMode::All, usize::MAX).unwrap_or(0);
        let l = layout(words);
        // SAFETY: the layout is not of size zero; failure is handled; the copy fills the words before they are read.
        unsafe {
            let Some(p) = NonNull::new(alloc(l).cast::<Head>()) else {
                handle_alloc_error(l)
            };
            let start = p.as_ptr().cast::<u8>().add(HEAD).cast::<u64>();
            let mut b = Bump {
                top: start,
                end: start.add(words),
                off_heap: OffHeap::default(),
            };
            let root = copy::copy(tuple, &mut b, CopyMode::All);
            // The root of a copy is its first object, so the address need not be kept.
            debug_assert!(
                root.ptr() == start,
                "the copy of a tuple begins with the tuple"
            );
            p.as_ptr().write(Head {
                off_heap: b.off_heap,
                words,
            });
            Row(p)
        }
    }
    /// The tuple.
    #[inline]
    pub fn tuple(&self) -> Word {
        // SAFETY: the tuple is the first object behind the head.
        unsafe { Word::boxed(self.0.as_ptr().cast::<u8>().add(HEAD).cast::<u64>()) }
    }
    /// Element `n` (from 0); rows are checked for their key position before they are made.
    #[inline]
    pub fn element(&self, n: usize) -> Word {
        self.tuple().term_field(n + 1)
    }
    /// Words of its terms.
    pub fn words(&self) -> usize {
        // SAFETY: the head is initialised.
        unsafe { self.0.as_ref().words }
    }
    /// Bytes of memory it holds, shared binaries not counted.
    pub fn bytes(&self) -> usize {
        HEAD + self.words() * 8
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: sole owner; made with this layout.
        unsafe {
            self.0.as_mut().off_heap.release_all();
            dealloc(self.0.as_ptr().cast(), layout(self.words()));
        }
    }
}
