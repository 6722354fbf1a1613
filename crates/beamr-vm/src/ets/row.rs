//! A row: one tuple in one allocation, with its own off-heap objects.
//!
//! The block begins with a head that a hash store uses to chain rows. What the tuple refers to lies in the block
//! itself, but for the shared empty tuple, fun entries and counted objects. A row in a table is read under the table's lock
//! and changed only under its write lock ([`set_immediate`]).

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use beamr_term::copy::{CopyMode, Copying};
use beamr_term::off_heap::retain;
use beamr_term::{Alloc, Header, OffHeap, Tables, Word, order};

/// The head of a row's block; terms follow it.
#[repr(C)]
#[derive(Debug)]
pub struct RowData {
    /// The next row of a chain; null at its end, and outside chains.
    pub(super) next: *mut RowData,
    /// The hash of the key, in a hash store.
    pub(super) hash: u64,
    /// The first off-heap object.
    off_heap: *mut u64,
    /// Words of terms, and [`SHARES`].
    words: usize,
}

/// Set in `words` of a row that has objects more than once inside, which is endless perhaps when it is written out.
const SHARES: usize = 1 << (usize::BITS - 1);

const HEAD: usize = std::mem::size_of::<RowData>();

/// An owned row.
#[derive(Debug)]
pub struct Row(NonNull<RowData>);

// SAFETY: a row owns its block; its words refer only to the block itself and to counted objects.
unsafe impl Send for Row {}
// SAFETY: changed only under the write lock of the table that it is in.
unsafe impl Sync for Row {}

/// Writes into a row's block.
struct Bump {
    top: *mut u64,
    end: *mut u64,
    off_heap: OffHeap,
}

// SAFETY: the block has the size that `Copying` told for the same term, and copying needs no more.
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
    fn allocate(words: usize) -> NonNull<RowData> {
        let l = layout(words);
        // SAFETY: the layout is not of size zero; failure is handled.
        match NonNull::new(unsafe { alloc(l).cast::<RowData>() }) {
            Some(p) => p,
            None => handle_alloc_error(l),
        }
    }
    /// A copy of `tuple` (at least one element), all of it (literals too).
    pub fn new(tuple: Word) -> Row {
        if is_flat(tuple) {
            return Row::flat(tuple, tuple.header().arity());
        }
        let copying = Copying::new(tuple, CopyMode::All);
        let words = copying.words();
        let shares = if copying.keeps_sharing() { SHARES } else { 0 };
        let p = Row::allocate(words);
        // SAFETY: the copy fills the words before they are read.
        unsafe {
            let start = p.as_ptr().add(1).cast::<u64>();
            let mut b = Bump {
                top: start,
                end: start.add(words),
                off_heap: OffHeap::default(),
            };
            let root = copying.make(&mut b);
            // The root of a copy is its first object, so the address need not be kept.
            debug_assert!(
                root.ptr() == start,
                "the copy of a tuple begins with the tuple"
            );
            p.as_ptr().write(RowData {
                next: std::ptr::null_mut(),
                hash: 0,
                off_heap: b.off_heap.first,
                words: words | shares,
            });
            Row(p)
        }
    }
    /// A copy of a tuple of immediates.
    fn flat(tuple: Word, elements: usize) -> Row {
        let words = elements + 1;
        let p = Row::allocate(words);
        // SAFETY: a tuple is its header and its elements; the block has as many words.
        unsafe {
            std::ptr::copy_nonoverlapping(tuple.ptr(), p.as_ptr().add(1).cast::<u64>(), words);
            p.as_ptr().write(RowData {
                next: std::ptr::null_mut(),
                hash: 0,
                off_heap: std::ptr::null_mut(),
                words,
            });
        }
        Row(p)
    }
    /// Gives the row away as a pointer.
    #[inline]
    pub(super) fn into_raw(self) -> *mut RowData {
        let p = self.0.as_ptr();
        std::mem::forget(self);
        p
    }
    /// Takes a row back.
    ///
    /// # Safety
    /// `p` came from [`Row::into_raw`] and was not taken back since.
    #[inline]
    pub(super) unsafe fn from_raw(p: *mut RowData) -> Row {
        Row(NonNull::new_unchecked(p))
    }
    /// Its block. What is written through the pointer is written to the row.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut RowData {
        self.0.as_ptr()
    }
    /// Its head, to be changed by the owner.
    #[inline]
    pub(super) fn head_mut(&mut self) -> &mut RowData {
        // SAFETY: sole owner.
        unsafe { self.0.as_mut() }
    }
}

impl std::ops::Deref for Row {
    type Target = RowData;
    #[inline]
    fn deref(&self) -> &RowData {
        // SAFETY: the block is alive as long as the row.
        unsafe { self.0.as_ref() }
    }
}

/// Puts an immediate at element `n` (from 0) of a row. What was there stays in the block until the row goes.
///
/// # Safety
/// `row` is the block of a row (from the allocation, not from a shared reference) that nobody else reads now: the caller has
/// the write lock of its table, or owns it. `n` is below the arity; `value` is an immediate.
#[inline]
pub(super) unsafe fn set_immediate(row: *mut RowData, n: usize, value: Word) {
    debug_assert!(value.is_immediate() && n < (*row).arity());
    *row.add(1).cast::<u64>().add(n + 1) = value.bits();
}

/// Whether a tuple has immediates only.
#[inline]
pub(super) fn is_flat(tuple: Word) -> bool {
    tuple
        .as_tuple()
        .is_some_and(|elements| elements.iter().all(|e| e.is_immediate()))
}

/// Writes a flat tuple over a row of the same size that has immediates only, too; false when the row is another kind.
///
/// # Safety
/// As for [`set_immediate`]; `tuple` is flat.
#[inline]
pub(super) unsafe fn overwrite(row: *mut RowData, tuple: Word) -> bool {
    let words = tuple.header().arity() + 1;
    let to = row.add(1).cast::<u64>();
    if (*row).words != words || *to != tuple.field(0) {
        return false;
    }
    std::ptr::copy_nonoverlapping(tuple.ptr().cast_const(), to, words);
    true
}

/// Whether two tuples are equal; most that are not differ in an immediate.
#[inline]
pub(super) fn same(a: Word, b: Word, tables: &Tables) -> bool {
    if a.header() != b.header() {
        return false;
    }
    let (Some(x), Some(y)) = (a.as_tuple(), b.as_tuple()) else {
        return false;
    };
    let differ = |(x, y): (&Word, &Word)| x != y && (x.is_immediate() || y.is_immediate());
    !x.iter().zip(y).any(differ) && order::eq_exact(a, b, tables)
}

impl RowData {
    #[inline]
    fn start(&self) -> *const u64 {
        // SAFETY: terms follow the head in one allocation (whose pointer `self` was made from).
        unsafe { std::ptr::from_ref(self).cast_mut().add(1).cast::<u64>() }
    }
    /// The tuple.
    #[inline]
    pub fn tuple(&self) -> Word {
        // SAFETY: the tuple is the first object behind the head.
        unsafe { Word::boxed(self.start()) }
    }
    /// Element `n` (from 0); rows are checked for their key position before they are made.
    #[inline]
    pub fn element(&self, n: usize) -> Word {
        self.tuple().term_field(n + 1)
    }
    /// Elements of the tuple.
    #[inline]
    pub fn arity(&self) -> usize {
        self.tuple().header().arity()
    }
    /// How many funs of `entry` it holds.
    pub fn funs(&self, entry: &beamr_term::FunEntry) -> usize {
        let start = self.start();
        // SAFETY: the row's words are complete objects.
        unsafe { crate::gc::funs_in_range(start, start.add(self.words()), entry) }
    }
    /// Words of its terms.
    #[inline]
    pub fn words(&self) -> usize {
        self.words & !SHARES
    }
    /// Whether copies of its terms must keep what they share.
    #[inline]
    pub fn shares(&self) -> bool {
        self.words & SHARES != 0
    }
    /// Bytes of memory it holds, shared binaries not counted.
    #[inline]
    pub fn bytes(&self) -> usize {
        HEAD + self.words() * 8
    }
    /// Shows address, size in bytes and count of each counted binary.
    pub fn binaries(&self, mut f: impl FnMut(u64, usize, usize)) {
        let mut p = self.off_heap;
        while !p.is_null() {
            // SAFETY: the list is well formed; word 2 of a counted bitstring is its block.
            unsafe {
                if Header(*p).subtag() == beamr_term::Subtag::RefcBits {
                    let raw = *p.add(2);
                    let b = std::mem::ManuallyDrop::new(beamr_term::BinaryRef::from_raw(
                        raw as usize as *mut beamr_term::Binary,
                    ));
                    f(raw, (b.used_bits() / 8) as usize, b.count());
                }
                p = *p.add(1) as usize as *mut u64;
            }
        }
    }
    /// A copy of the tuple in a heap: the block moved as it is, pointers shifted.
    pub fn copy_to<A: Alloc + ?Sized>(&self, to: &mut A) -> Word {
        let n = self.words();
        let from = self.start();
        let p = to.alloc(n);
        let (low, high) = (from as u64, from as u64 + n as u64 * 8);
        let shift = (p as u64).wrapping_sub(low);
        let mut i = 0;
        // SAFETY: both blocks have `n` words. The block is a sequence of complete objects and cells, so that a walk finds
        // each header before its raw words; off-heap objects get their count before they are linked.
        unsafe {
            while i < n {
                let w = *from.add(i);
                match w & 3 {
                    0 => {
                        *p.add(i) = w;
                        let raw = Header(w).raw_words();
                        if raw > 0 {
                            std::ptr::copy_nonoverlapping(from.add(i + 1), p.add(i + 1), raw);
                            if Header(w).is_off_heap() {
                                retain(p.add(i));
                                to.off_heap().link(p.add(i));
                            }
                            i += raw;
                        }
                    }
                    3 => *p.add(i) = w,
                    _ => {
                        let inside = (low..high).contains(&(w & !3));
                        *p.add(i) = if inside { w.wrapping_add(shift) } else { w };
                    }
                }
                i += 1;
            }
            Word::boxed(p)
        }
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: sole owner; made with this layout; its off-heap list is well formed.
        unsafe {
            let d = self.0.as_ref();
            if !d.off_heap.is_null() {
                OffHeap {
                    first: d.off_heap,
                    overhead: 0,
                }
                .release_all();
            }
            let l = layout(d.words());
            dealloc(self.0.as_ptr().cast(), l);
        }
    }
}
