//! Literal areas: terms that no collector moves, in one reservation per OS process.
//!
//! "Is it a literal" is one compare of an address with the reservation. Module literals,
//! persistent terms and static terms live here. The reservation is address space only: pages are
//! committed when first written. On targets without virtual memory the same question is answered
//! by a map of megabyte blocks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::alloc::Alloc;
use crate::off_heap::OffHeap;
use crate::word::Word;

/// No room for a literal area.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the literal reservation has no room for {words} more words")]
pub struct LiteralError {
    /// Words asked for.
    pub words: usize,
}

#[cfg(target_pointer_width = "64")]
mod reservation {
    //! One anonymous mapping, made at first use.
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Bytes of address space.
    pub const SIZE: usize = 1 << 32;
    static BASE: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// First address; maps at the first call.
    pub fn base() -> Option<usize> {
        static ONCE: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
        *ONCE.get_or_init(|| {
            // SAFETY: a fresh private anonymous mapping, checked for failure, never unmapped.
            let p = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    SIZE,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            if p == libc::MAP_FAILED {
                return None;
            }
            BASE.store(p as usize, Ordering::Release);
            Some(p as usize)
        })
    }
    /// Whether the address lies in the reservation.
    #[inline(always)]
    pub fn contains(p: usize) -> bool {
        p.wrapping_sub(BASE.load(Ordering::Relaxed)) < SIZE
    }
    /// Gives the pages of a freed range back to the system.
    pub fn discard(start: usize, bytes: usize) {
        const PAGE: usize = 4096;
        let lo = start.next_multiple_of(PAGE);
        let hi = (start + bytes) & !(PAGE - 1);
        if hi > lo {
            // SAFETY: whole pages inside our own mapping that no live area uses.
            unsafe { libc::madvise(lo as *mut libc::c_void, hi - lo, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(not(target_pointer_width = "64"))]
mod reservation {
    //! Allocated megabytes, marked in a bit map over the 4 GB address space.
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Bytes given out at most.
    pub const SIZE: usize = 1 << 28;
    static MAP: [AtomicU32; 128] = [const { AtomicU32::new(0) }; 128];

    /// First address; allocates at the first call (wasm memory is not committed until grown).
    pub fn base() -> Option<usize> {
        static ONCE: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
        *ONCE.get_or_init(|| {
            let layout = std::alloc::Layout::from_size_align(SIZE / 8, 1 << 20).ok()?;
            // SAFETY: the layout is not of size zero; failure is checked.
            let p = unsafe { std::alloc::alloc(layout) } as usize;
            if p == 0 {
                return None;
            }
            for mb in (p >> 20)..((p + SIZE / 8) >> 20) {
                MAP[mb / 32].fetch_or(1 << (mb % 32), Ordering::Release);
            }
            Some(p)
        })
    }
    /// Whether the address lies in the reservation.
    #[inline(always)]
    pub fn contains(p: usize) -> bool {
        MAP[(p >> 25) & 127].load(Ordering::Relaxed) & (1 << ((p >> 20) & 31)) != 0
    }
    /// Nothing to give back.
    pub fn discard(_start: usize, _bytes: usize) {}
}

/// Whether a pointer goes into the literal reservation.
#[inline(always)]
pub fn is_literal(p: *const u64) -> bool {
    reservation::contains(p as usize)
}

mod leaving {
    //! Areas that are being given up. A copy sees those that were when it began ([`Since`]), so that sizing and copying agree.
    use std::collections::BTreeMap;
    use std::sync::RwLock;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    /// End and number of each by its start.
    static AREAS: RwLock<BTreeMap<usize, (usize, u64)>> = RwLock::new(BTreeMap::new());
    static LAST: AtomicU64 = AtomicU64::new(0);
    /// Words in use in them; 0 when there are none.
    static WORDS: AtomicUsize = AtomicUsize::new(0);

    pub fn add(start: usize, end: usize, used: usize) {
        let mut areas = AREAS.write().unwrap_or_else(|e| e.into_inner());
        let number = LAST.fetch_add(1, Ordering::SeqCst) + 1;
        areas.insert(start, (end, number));
        WORDS.fetch_add(used.max(1), Ordering::SeqCst);
    }
    pub fn remove(start: usize, used: usize) {
        let mut areas = AREAS.write().unwrap_or_else(|e| e.into_inner());
        areas.remove(&start);
        WORDS.fetch_sub(used.max(1), Ordering::SeqCst);
    }
    #[inline(always)]
    pub fn words() -> usize {
        WORDS.load(Ordering::Relaxed)
    }
    pub fn last() -> u64 {
        LAST.load(Ordering::SeqCst)
    }
    #[inline(never)]
    pub fn contains(p: usize, since: u64) -> bool {
        let areas = AREAS.read().unwrap_or_else(|e| e.into_inner());
        let at = areas.range(..=p).next_back();
        at.is_some_and(|(_, (end, number))| p < *end && *number <= since)
    }
}

/// Which areas were being given up at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving(u64);

impl Leaving {
    /// Those of now; `None` when there are none.
    #[inline(always)]
    pub fn now() -> Option<Leaving> {
        (leaving::words() != 0).then(|| Leaving(leaving::last()))
    }
    /// Whether a literal lies in one of them.
    pub fn contains(self, p: *const u64) -> bool {
        leaving::contains(p as usize, self.0)
    }
    /// Words in them.
    pub fn words() -> usize {
        leaving::words()
    }
}

/// Free ranges by start (bytes); first fit. Areas are few and long-lived.
fn free_list() -> &'static Mutex<BTreeMap<usize, usize>> {
    static FREE: OnceLock<Mutex<BTreeMap<usize, usize>>> = OnceLock::new();
    FREE.get_or_init(|| {
        let mut m = BTreeMap::new();
        if let Some(base) = reservation::base() {
            #[cfg(target_pointer_width = "64")]
            m.insert(base, reservation::SIZE);
            #[cfg(not(target_pointer_width = "64"))]
            m.insert(base, reservation::SIZE / 8);
        }
        Mutex::new(m)
    })
}

/// A block of literal terms; freed when dropped.
#[derive(Debug)]
pub struct LiteralArea {
    start: *mut u64,
    top: *mut u64,
    words: usize,
    off_heap: OffHeap,
    leaving: AtomicBool,
}

// SAFETY: literals are immutable once built; off-heap objects in them are counted atomically.
unsafe impl Send for LiteralArea {}
// SAFETY: as above.
unsafe impl Sync for LiteralArea {}

impl LiteralArea {
    /// A builder for at most `words` words.
    pub fn builder(words: usize) -> Result<LiteralBuilder, LiteralError> {
        let bytes = (words.max(1) * 8).next_multiple_of(64);
        let mut free = free_list().lock().unwrap_or_else(|e| e.into_inner());
        let Some((start, len)) = free
            .iter()
            .find(|(_, len)| **len >= bytes)
            .map(|(s, l)| (*s, *l))
        else {
            return Err(LiteralError { words });
        };
        free.remove(&start);
        if len > bytes {
            free.insert(start + bytes, len - bytes);
        }
        let start = start as *mut u64;
        Ok(LiteralBuilder(LiteralArea {
            start,
            top: start,
            words: bytes / 8,
            off_heap: OffHeap::default(),
            leaving: AtomicBool::new(false),
        }))
    }
    /// The area is being given up: from now on copies of terms do not share its literals, so that nothing but what refers to
    /// it already ever will.
    pub fn leave(&self) {
        if !self.leaving.swap(true, Ordering::SeqCst) {
            let (start, end) = self.bounds();
            leaving::add(start as usize, end as usize, self.used());
        }
    }
    /// Whether it is being given up.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }
    /// Words in use.
    pub fn used(&self) -> usize {
        (self.top as usize - self.start as usize) / 8
    }
    /// First word, and words in use.
    pub fn range(&self) -> (*const u64, usize) {
        (self.start, self.used())
    }
    /// First address and end of the area.
    pub fn bounds(&self) -> (*const u64, *const u64) {
        // SAFETY: the end of the area's own range.
        (self.start, unsafe { self.start.add(self.words) })
    }
    /// Whether a pointer goes into this area.
    pub fn contains(&self, p: *const u64) -> bool {
        (p as usize).wrapping_sub(self.start as usize) < self.words * 8
    }
}

impl Drop for LiteralArea {
    fn drop(&mut self) {
        // SAFETY: whoever drops an area made sure that no term refers to it.
        unsafe { self.off_heap.release_all() };
        if self.is_leaving() {
            leaving::remove(self.start as usize, self.used());
        }
        let start = self.start as usize;
        let mut bytes = self.words * 8;
        reservation::discard(start, bytes);
        let mut free = free_list().lock().unwrap_or_else(|e| e.into_inner());
        if let Some(n) = free.remove(&(start + bytes)) {
            bytes += n;
        }
        if let Some((s, l)) = free.range_mut(..start).next_back()
            && *s + *l == start
        {
            *l += bytes;
            return;
        }
        free.insert(start, bytes);
    }
}

/// Builds the terms of a [`LiteralArea`]. The size asked for must suffice.
#[derive(Debug)]
pub struct LiteralBuilder(LiteralArea);

impl LiteralBuilder {
    /// Ends building.
    pub fn finish(self) -> LiteralArea {
        self.0
    }
}

// SAFETY: an area never moves; running over its size is a bug of the caller's size computation
// and stops the thread before memory is touched.
unsafe impl Alloc for LiteralBuilder {
    fn alloc(&mut self, words: usize) -> *mut u64 {
        let a = &mut self.0;
        assert!(
            a.used() + words <= a.words,
            "literal area of {} words is too small",
            a.words
        );
        let p = a.top;
        // SAFETY: checked above.
        a.top = unsafe { p.add(words) };
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.0.off_heap
    }
}

/// `{}` as one shared literal, for flat maps without pairs and for the empty tuple.
pub fn empty_tuple() -> Word {
    static EMPTY: OnceLock<(LiteralArea, u64)> = OnceLock::new();
    let (_, bits) = EMPTY.get_or_init(|| {
        use crate::alloc::Build;
        let mut b = LiteralArea::builder(1)
            .unwrap_or_else(|e| panic!("the first literal of the process: {e}"));
        let w = b.tuple(&[]);
        (b.finish(), w.bits())
    });
    // SAFETY: the area lives for the whole process.
    unsafe { Word::from_bits(*bits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Build;

    #[test]
    fn areas_are_recognised_and_reused() {
        let mut b = LiteralArea::builder(10).unwrap();
        let t = b.tuple(&[Word::fixnum(1), Word::NIL]);
        assert!(is_literal(t.ptr()));
        let a = b.finish();
        assert!(a.contains(t.ptr()));
        assert_eq!(a.used(), 3);
        let on_stack = 0u64;
        assert!(!is_literal(&raw const on_stack));
        assert!(empty_tuple().as_tuple().unwrap().is_empty());
    }

    #[test]
    fn leaving_areas_are_known_until_they_are_freed() {
        let make = || {
            let mut b = LiteralArea::builder(3).unwrap();
            let t = b.tuple(&[Word::fixnum(1), Word::NIL]);
            (b.finish(), t.ptr().cast_const())
        };
        let ((a, p), (b, q), (c, r)) = (make(), make(), make());
        c.leave();
        let before = Leaving::now().unwrap();
        assert!(before.contains(r) && !before.contains(p) && !before.contains(q));
        a.leave();
        a.leave();
        let now = Leaving::now().unwrap();
        assert!(a.is_leaving() && now.contains(p) && !now.contains(q));
        assert!(!before.contains(p), "a copy that has begun does not see it");
        assert!(Leaving::words() >= 6);
        drop(a);
        assert!(!now.contains(p) && now.contains(r));
        drop((b, c));
    }

    #[test]
    fn too_large() {
        assert!(LiteralArea::builder(1 << 40).is_err());
    }
}
