//! Big arrays of pointers whose pages are committed when first written.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::atomic::AtomicPtr;

/// A fixed array of null pointers.
#[derive(Debug)]
pub struct PointerArray<T> {
    start: *mut AtomicPtr<T>,
    len: usize,
}

// SAFETY: the elements are atomic; the array owns its memory.
unsafe impl<T> Send for PointerArray<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for PointerArray<T> {}

impl<T> PointerArray<T> {
    /// `len` null pointers. The allocator gives zero pages of the system for sizes like these.
    pub fn new(len: usize) -> PointerArray<T> {
        let len = len.max(1);
        let layout = Self::layout(len);
        // SAFETY: the layout is not of size zero; all-zero bytes are null pointers; failure is handled.
        let start = unsafe { alloc_zeroed(layout) }.cast::<AtomicPtr<T>>();
        if start.is_null() {
            handle_alloc_error(layout)
        }
        PointerArray { start, len }
    }
    fn layout(len: usize) -> Layout {
        Layout::array::<AtomicPtr<T>>(len).unwrap_or_else(|_| std::process::abort())
    }
    /// The first element, for compiled code.
    pub fn as_ptr(&self) -> *const AtomicPtr<T> {
        self.start
    }
    /// The elements.
    pub fn as_slice(&self) -> &[AtomicPtr<T>] {
        // SAFETY: `len` initialised elements, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T> Drop for PointerArray<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new` with this layout.
        unsafe { dealloc(self.start.cast(), Self::layout(self.len)) };
    }
}
