//! Counted objects outside heaps: binaries, resources, nodes.
//!
//! A heap keeps the boxed objects that own a count in an intrusive list ([`OffHeap`], linked
//! through word 1 of the object). A collector walks the list after copying: objects that moved
//! stay, the rest give their count back. Counts are the only thing two heaps share.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use crate::atom::Atom;
use crate::header::{Header, Subtag};

/// Another node that some term names.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// Its name.
    pub name: Atom,
    /// Its creation.
    pub creation: u32,
}

/// A counted block of bytes. `used_bits` only grows, by the one who wins the compare-and-swap in
/// [`BinaryRef::claim`]; bytes below it never change while more than one count exists.
#[repr(C)]
pub struct Binary {
    count: AtomicUsize,
    /// Bytes, and the mark [`COUNTED`].
    capacity: usize,
    used_bits: AtomicU64,
}

/// An owned count of a [`Binary`].
pub struct BinaryRef(std::ptr::NonNull<Binary>);

// SAFETY: the block is counted atomically and its bytes are immutable once shared.
unsafe impl Send for BinaryRef {}
// SAFETY: as above.
unsafe impl Sync for BinaryRef {}

/// Bytes of counted binaries that the threads of one VM have made and not freed. A thread counts where it was told
/// ([`BinaryCount::here`]); what one thread makes another may free, so that only the sum over a VM's threads says something.
#[derive(Debug, Default)]
pub struct BinaryCount(AtomicI64);

thread_local! {
    static HERE: std::cell::Cell<*const BinaryCount> = const { std::cell::Cell::new(std::ptr::null()) };
}

impl BinaryCount {
    /// Makes the calling thread count here from now on, or nowhere (null). Gives where it counted before.
    ///
    /// # Safety
    /// The counter stays alive until the thread counts elsewhere or ends.
    pub unsafe fn here(counter: *const BinaryCount) -> *const BinaryCount {
        HERE.replace(counter)
    }
    /// The bytes.
    pub fn bytes(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Adds; the block says whether it was counted.
    fn add(bytes: i64) -> bool {
        let p = HERE.get();
        if p.is_null() {
            return false;
        }
        // SAFETY: see `here`.
        unsafe { (*p).0.fetch_add(bytes, Ordering::Relaxed) };
        true
    }
}

/// In [`Binary::capacity`]: the block was counted when it was made.
const COUNTED: usize = 1 << (usize::BITS - 1);

const HEAD: usize = std::mem::size_of::<Binary>();

fn layout(capacity: usize) -> Layout {
    // Capacities come from sizes that were checked against the release's limits (below 2^60).
    Layout::from_size_align(HEAD + capacity, 16).unwrap_or_else(|_| std::process::abort())
}

/// The capacity with the mark of a counted block.
#[inline]
fn counted(capacity: usize) -> usize {
    if BinaryCount::add((capacity + HEAD) as i64) {
        capacity | COUNTED
    } else {
        capacity
    }
}

impl BinaryRef {
    /// A zeroed-length block with room for `capacity` bytes, `used_bits` in use (contents to be
    /// written by the caller before the block is shared).
    pub fn with_capacity(capacity: usize, used_bits: u64) -> BinaryRef {
        let l = layout(capacity);
        // SAFETY: the layout is never of size zero; a failed allocation is handled; the head is
        // initialised before it is read. Bytes are zeroed so that no reader sees stale memory.
        unsafe {
            let p = std::alloc::alloc_zeroed(l).cast::<Binary>();
            let Some(p) = std::ptr::NonNull::new(p) else {
                std::alloc::handle_alloc_error(l)
            };
            p.as_ptr().write(Binary {
                count: AtomicUsize::new(1),
                capacity: counted(capacity),
                used_bits: AtomicU64::new(used_bits),
            });
            BinaryRef(p)
        }
    }
    /// A block holding a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> BinaryRef {
        let l = layout(bytes.len());
        // SAFETY: as in `with_capacity`; all bytes are written.
        unsafe {
            let p = alloc(l).cast::<Binary>();
            let Some(p) = std::ptr::NonNull::new(p) else {
                std::alloc::handle_alloc_error(l)
            };
            p.as_ptr().write(Binary {
                count: AtomicUsize::new(1),
                capacity: counted(bytes.len()),
                used_bits: AtomicU64::new(bytes.len() as u64 * 8),
            });
            let b = BinaryRef(p);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), b.data(), bytes.len());
            b
        }
    }
    /// The first byte.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        // SAFETY: the bytes follow the head in one allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEAD) }
    }
    /// Room in bytes.
    #[inline]
    pub fn capacity(&self) -> usize {
        // SAFETY: the block is alive while a count is held.
        unsafe { self.0.as_ref().capacity & !COUNTED }
    }
    /// How many counts exist.
    #[inline]
    pub fn count(&self) -> usize {
        // SAFETY: as in `capacity`.
        unsafe { self.0.as_ref().count.load(Ordering::Acquire) }
    }
    /// Bits in use.
    #[inline]
    pub fn used_bits(&self) -> u64 {
        // SAFETY: as in `capacity`.
        unsafe { self.0.as_ref().used_bits.load(Ordering::Acquire) }
    }
    /// Claims the bits `from..to` for the caller: true when `from` was the end of the bits in use
    /// and there is room. Only the winner may write them.
    #[inline]
    pub fn claim(&self, from: u64, to: u64) -> bool {
        if to > self.capacity() as u64 * 8 {
            return false;
        }
        // SAFETY: as in `capacity`.
        unsafe {
            self.0
                .as_ref()
                .used_bits
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        }
    }
    /// Grows the room to `capacity` bytes; the block may move. The count must be one.
    ///
    /// # Panics
    /// When the block is shared.
    pub fn grow(self, capacity: usize) -> BinaryRef {
        assert_eq!(self.count(), 1, "a shared binary cannot move");
        if capacity <= self.capacity() {
            return self;
        }
        let p = self.0.as_ptr();
        std::mem::forget(self);
        // SAFETY: sole owner; old layout from the block's own capacity; new bytes are zeroed.
        unsafe {
            let (old, mark) = ((*p).capacity & !COUNTED, (*p).capacity & COUNTED);
            if mark != 0 {
                BinaryCount::add((capacity - old) as i64);
            }
            let q = realloc(p.cast(), layout(old), HEAD + capacity).cast::<Binary>();
            let Some(q) = std::ptr::NonNull::new(q) else {
                std::alloc::handle_alloc_error(layout(capacity))
            };
            (*q.as_ptr()).capacity = capacity | mark;
            let b = BinaryRef(q);
            std::ptr::write_bytes(b.data().add(old), 0, capacity - old);
            b
        }
    }
    /// Gives the count away as a pointer (word 2 of a `RefcBits`).
    #[inline]
    pub fn into_raw(self) -> *mut Binary {
        let p = self.0.as_ptr();
        std::mem::forget(self);
        p
    }
    /// Takes a count back.
    ///
    /// # Safety
    /// `p` came from [`BinaryRef::into_raw`] and that count was not taken back before.
    #[inline]
    pub unsafe fn from_raw(p: *mut Binary) -> BinaryRef {
        BinaryRef(std::ptr::NonNull::new_unchecked(p))
    }
    /// A further count of the block behind `p`, which stays with its owner.
    ///
    /// # Safety
    /// `p` is a live block (its owner holds a count during the call).
    #[inline]
    pub unsafe fn share(p: *mut Binary) -> BinaryRef {
        (*p).count.fetch_add(1, Ordering::Relaxed);
        BinaryRef(std::ptr::NonNull::new_unchecked(p))
    }
}

impl Clone for BinaryRef {
    fn clone(&self) -> Self {
        // SAFETY: `self` holds a count.
        unsafe { BinaryRef::share(self.0.as_ptr()) }
    }
}

impl Drop for BinaryRef {
    #[inline]
    fn drop(&mut self) {
        let p = self.0.as_ptr();
        // SAFETY: this value owns one count; the last one frees with the block's own layout.
        unsafe {
            if (*p).count.fetch_sub(1, Ordering::Release) == 1 {
                std::sync::atomic::fence(Ordering::Acquire);
                let capacity = (*p).capacity & !COUNTED;
                if (*p).capacity & COUNTED != 0 {
                    BinaryCount::add(-((capacity + HEAD) as i64));
                }
                dealloc(p.cast(), layout(capacity));
            }
        }
    }
}

/// A host object behind a magic reference (atomics, compiled regex, ets table id, ...).
pub struct Resource {
    /// The object.
    pub value: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resource")
    }
}

/// A counted resource.
pub type ResourceRef = Arc<Resource>;

/// The off-heap objects of one heap: an intrusive list through word 1, and what they weigh.
#[derive(Debug)]
pub struct OffHeap {
    /// First object, or null.
    pub first: *mut u64,
    /// Words that the off-heap bytes of this list would take: the virtual heap.
    pub overhead: usize,
}

impl Default for OffHeap {
    fn default() -> Self {
        OffHeap {
            first: std::ptr::null_mut(),
            overhead: 0,
        }
    }
}

impl OffHeap {
    /// Links an object (its header and word 2 are set, word 1 is free).
    ///
    /// # Safety
    /// `object` is an off-heap object ([`Header::is_off_heap`]) in a block that outlives its stay in the list.
    #[inline]
    pub unsafe fn link(&mut self, object: *mut u64) {
        *object.add(1) = self.first as usize as u64;
        self.first = object;
        self.overhead += weight(object);
    }
    /// Appends all of `other`, which becomes empty.
    ///
    /// # Safety
    /// Both lists are well formed.
    pub unsafe fn append(&mut self, other: &mut OffHeap) {
        if other.first.is_null() {
            return;
        }
        let mut last = other.first;
        loop {
            let next = *last.add(1) as usize as *mut u64;
            if next.is_null() {
                break;
            }
            last = next;
        }
        *last.add(1) = self.first as usize as u64;
        self.first = std::mem::replace(&mut other.first, std::ptr::null_mut());
        self.overhead += std::mem::take(&mut other.overhead);
    }
    /// Gives back the counts of every object and empties the list.
    ///
    /// # Safety
    /// The list is well formed and nothing reads its objects afterwards.
    pub unsafe fn release_all(&mut self) {
        let mut p = std::mem::replace(&mut self.first, std::ptr::null_mut());
        self.overhead = 0;
        while !p.is_null() {
            let next = *p.add(1) as usize as *mut u64;
            release(p);
            p = next;
        }
    }
}

/// Virtual heap words of one off-heap object.
///
/// # Safety
/// `object` is a live off-heap object.
#[inline]
pub unsafe fn weight(object: *const u64) -> usize {
    if Header(*object).subtag() == Subtag::RefcBits {
        (*object.add(4) as usize) / 64 + 1
    } else {
        0
    }
}

/// Gives back the count that one off-heap object owns.
///
/// # Safety
/// `object` is a live off-heap object that is unlinked or about to be, and is not read again.
pub unsafe fn release(object: *mut u64) {
    let raw = *object.add(2) as usize;
    match Header(*object).subtag() {
        Subtag::RefcBits => drop(BinaryRef::from_raw(raw as *mut Binary)),
        Subtag::External => drop(Arc::from_raw(raw as *const NodeEntry)),
        Subtag::Ref => drop(Arc::from_raw(raw as *const Resource)),
        other => unreachable!("{other:?} is not an off-heap object"),
    }
}

/// Adds a count for a copy of an off-heap object.
///
/// # Safety
/// `object` is a live off-heap object.
pub unsafe fn retain(object: *const u64) {
    let raw = *object.add(2) as usize;
    match Header(*object).subtag() {
        Subtag::RefcBits => {
            (*(raw as *mut Binary))
                .count
                .fetch_add(1, Ordering::Relaxed);
        }
        Subtag::External => Arc::increment_strong_count(raw as *const NodeEntry),
        Subtag::Ref => Arc::increment_strong_count(raw as *const Resource),
        other => unreachable!("{other:?} is not an off-heap object"),
    }
}
