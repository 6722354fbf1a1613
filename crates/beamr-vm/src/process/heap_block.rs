//! The first block of a process heap, and the end of its blocks.
//!
//! Blocks are `Layout::array::<u64>(words)` of the global allocator; the collector makes and frees its own the same way.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use beamr_abi::Heap;
use beamr_term::OffHeap;

use crate::engine::CodePos;

/// Words of a fresh heap.
pub const FIRST_HEAP: usize = 233;
/// Off-heap words before the first collection for their sake.
pub const FIRST_VIRTUAL: usize = 46422;

fn layout(words: usize) -> Layout {
    Layout::array::<u64>(words).unwrap_or_else(|_| std::process::abort())
}

/// A heap with room for at least `words`, and `bottom` on its stack.
pub(crate) fn new_heap(words: usize, bottom: CodePos) -> Heap {
    let words = words.max(32);
    let l = layout(words);
    // SAFETY: the layout is not of size zero; failure is handled.
    let start = unsafe { alloc(l).cast::<u64>() };
    if start.is_null() {
        handle_alloc_error(l);
    }
    // SAFETY: within the block.
    let (end, stop) = unsafe { (start.add(words), start.add(words - 1)) };
    // SAFETY: the last word of the block.
    unsafe { *stop = bottom as usize as u64 };
    Heap {
        top: start,
        stop,
        start,
        end,
        high_water: start,
        old_start: std::ptr::null_mut(),
        old_top: std::ptr::null_mut(),
        old_end: std::ptr::null_mut(),
        fragments: None,
        fragment_words: 0,
        off_heap: OffHeap::default(),
        virtual_limit: FIRST_VIRTUAL,
        gc_wanted: false,
        minor_count: 0,
        fullsweep_after: 65535,
        min_size: FIRST_HEAP,
        min_virtual: FIRST_VIRTUAL,
        max_size: 0,
    }
}

/// Frees everything that a heap holds.
///
/// # Safety
/// Nothing reads its terms any more; the blocks came from this module or the collector.
pub(crate) unsafe fn free_heap(heap: &mut Heap) {
    heap.off_heap.release_all();
    heap.fragments = None;
    if !heap.start.is_null() {
        dealloc(heap.start.cast(), layout(heap.size()));
        heap.start = std::ptr::null_mut();
    }
    if !heap.old_start.is_null() {
        dealloc(heap.old_start.cast(), layout(heap.old_size()));
        heap.old_start = std::ptr::null_mut();
    }
}
