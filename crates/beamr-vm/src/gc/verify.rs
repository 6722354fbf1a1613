//! Checks of a heap: the linear one that runs after each collection of a debug build, and
//! [`verify`], which follows every reference from the roots and may run at any safe point.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use beamr_abi::{Body, Heap};
use beamr_term::word::{PRIMARY_BOXED, PRIMARY_HEADER, PRIMARY_IMMEDIATE, PRIMARY_LIST};
use beamr_term::{Header, Subtag, Word, is_literal};

use super::Owner;

/// What is wrong with a heap, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A word that can be no term.
    #[error("{place}: {word:#x} is no term")]
    NotATerm {
        /// Where it was read.
        place: String,
        /// The word.
        word: u64,
    },
    /// A pointer outside everything that the process may refer to.
    #[error("{place}: {word:#x} points outside the heap")]
    Dangling {
        /// Where it was read.
        place: String,
        /// The pointer.
        word: u64,
    },
    /// An object that is cut off, or whose fields do not fit its kind.
    #[error("{place}: malformed {kind:?} at {address:#x}: {what}")]
    Malformed {
        /// Where the reference was read.
        place: String,
        /// What the header says.
        kind: Subtag,
        /// Where the object is.
        address: usize,
        /// What does not fit.
        what: &'static str,
    },
    /// A term of the old generation refers to a young one.
    #[error("old object at {address:#x} refers to the young {word:#x}")]
    OldToYoung {
        /// The old word's address.
        address: usize,
        /// The pointer.
        word: u64,
    },
    /// The list of off-heap objects is not the set of off-heap objects in the heap.
    #[error("off-heap list: {what}")]
    OffHeap {
        /// What is wrong.
        what: String,
    },
    /// Pointers of the heap structure are out of order.
    #[error("heap bounds: {what}")]
    Bounds {
        /// Which.
        what: &'static str,
    },
}

type Result<T> = std::result::Result<T, VerifyError>;

/// A set of addresses: nobody chooses them, so one multiplication spreads them well enough.
type Addresses = HashSet<usize, BuildHasherDefault<Spread>>;

#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_usize(usize::from(*b));
        }
    }
    fn write_usize(&mut self, n: usize) {
        let x = (self.0 ^ n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = x ^ x >> 32;
    }
}

/// A part of the heap, and the number of its first bit among those that the walk marks.
#[derive(Clone, Copy)]
struct Region {
    start: usize,
    end: usize,
    first: usize,
}

impl Region {
    fn holds(&self, a: usize) -> bool {
        (self.start..self.end).contains(&a)
    }
    fn found(&self, a: usize) -> Found {
        Found {
            end: self.end,
            bit: self.first + (a - self.start) / 4,
        }
    }
}

/// Where an address lies.
struct Found {
    /// End of the region that holds it; `usize::MAX` for a literal.
    end: usize,
    /// Its first bit.
    bit: usize,
}

struct Regions {
    young: Region,
    old: Region,
    fragments: Vec<Region>,
    /// Bits of all: two a word, for the list cell and the boxed object that begin there.
    bits: usize,
}

impl Regions {
    fn of(heap: &Heap) -> Regions {
        let mut bits = 0;
        let mut region = |start: *mut u64, end: *mut u64| {
            let (start, end, first) = (start as usize, end as usize, bits);
            bits += (end - start) / 4;
            Region { start, end, first }
        };
        let young = region(heap.start, heap.top);
        let old = region(heap.old_start, heap.old_top);
        let mut fragments = Vec::new();
        let mut f = heap.fragments.as_deref();
        while let Some(g) = f {
            let (a, b) = g.range();
            fragments.push(region(a, b));
            f = g.next.as_deref();
        }
        fragments.sort_unstable_by_key(|r| r.start);
        Regions {
            young,
            old,
            fragments,
            bits,
        }
    }
    fn find(&self, a: usize) -> Option<Found> {
        if self.young.holds(a) {
            return Some(self.young.found(a));
        }
        if self.old.holds(a) {
            return Some(self.old.found(a));
        }
        if is_literal(a as *const u64) {
            return Some(Found {
                end: usize::MAX,
                bit: 0,
            });
        }
        let i = self.fragments.partition_point(|r| r.start <= a);
        let last = self.fragments[..i].last()?;
        last.holds(a).then(|| last.found(a))
    }
    fn is_old(&self, a: usize) -> bool {
        self.old.holds(a)
    }
}

fn bounds(heap: &Heap) -> Result<()> {
    let ok = |c: bool, what| {
        if c {
            Ok(())
        } else {
            Err(VerifyError::Bounds { what })
        }
    };
    ok(heap.start <= heap.high_water, "high water below the block")?;
    ok(heap.high_water <= heap.top, "high water above the top")?;
    ok(heap.top <= heap.stop, "heap runs into the stack")?;
    ok(heap.stop <= heap.end, "stack outside the block")?;
    ok(heap.old_start <= heap.old_top, "old generation")?;
    ok(heap.old_top <= heap.old_end, "old generation is overfull")
}

/// Checks everything that `body` can reach: well-formed objects in the block, the old generation,
/// fragments or literals, no young term behind an old one, a well-formed stack and off-heap list.
///
/// # Safety
/// The caller owns the body; roots are initialised; `x` are its live registers.
pub unsafe fn verify(body: &mut Body, owner: &mut dyn Owner, x: &mut [Word]) -> Result<()> {
    bounds(&body.heap)?;
    let regions = Regions::of(&body.heap);
    let mut todo: Vec<(u64, usize)> = Vec::new();
    let mut push = |words: &mut [Word]| {
        for w in words {
            todo.push((w.bits(), std::ptr::from_ref(w) as usize));
        }
    };
    super::visit_all(body, owner, x, &mut push);
    let heap = &body.heap;
    let mut p = heap.stop;
    while p < heap.end {
        if *p & 3 != PRIMARY_HEADER {
            todo.push((*p, p as usize));
        } else if *p & 4 != 0 && *p < 8 {
            let place = format!("stack {p:p}");
            return Err(VerifyError::NotATerm { place, word: *p });
        }
        p = p.add(1);
    }
    let mut seen = vec![0u64; regions.bits / 64 + 1];
    let mut literals: Addresses = HashSet::default();
    let mut off_heap: Addresses = HashSet::default();
    while let Some((w, at)) = todo.pop() {
        let place = || format!("word at {at:#x}");
        let primary = w & 3;
        if primary == PRIMARY_IMMEDIATE || w == 0 {
            continue;
        }
        if primary == PRIMARY_HEADER {
            return Err(VerifyError::NotATerm {
                place: place(),
                word: w,
            });
        }
        let a = (w & !3) as usize;
        let Some(Found { end, bit }) = regions.find(a) else {
            return Err(VerifyError::Dangling {
                place: place(),
                word: w,
            });
        };
        if regions.is_old(at) && !regions.is_old(a) && end != usize::MAX {
            return Err(VerifyError::OldToYoung {
                address: at,
                word: w,
            });
        }
        let kind = primary as usize & 1;
        let known = if end == usize::MAX {
            !literals.insert(a | kind)
        } else {
            let (word, mask) = ((bit + kind) / 64, 1 << ((bit + kind) % 64));
            let known = seen[word] & mask != 0;
            seen[word] |= mask;
            known
        };
        if known {
            continue;
        }
        let p = a as *mut u64;
        if primary == PRIMARY_LIST {
            if a + 16 > end {
                return Err(VerifyError::Dangling {
                    place: place(),
                    word: w,
                });
            }
            todo.push((*p, a));
            todo.push((*p.add(1), a + 8));
            continue;
        }
        if *p & 3 != PRIMARY_HEADER {
            return Err(VerifyError::NotATerm {
                place: place(),
                word: *p,
            });
        }
        let header = Header(*p);
        let malformed = |what| VerifyError::Malformed {
            place: place(),
            kind: header.subtag(),
            address: a,
            what,
        };
        if end != usize::MAX && header.arity() > (end - a) / 8 - 1 {
            return Err(malformed("runs out of its region"));
        }
        shape(p).map_err(malformed)?;
        if header.is_off_heap() && end != usize::MAX {
            off_heap.insert(a);
        }
        for i in 1 + header.raw_words()..=header.arity() {
            todo.push((*p.add(i), a + i * 8));
        }
    }
    let mut listed: Addresses = HashSet::default();
    let mut p = body.heap.off_heap.first;
    while !p.is_null() {
        if !listed.insert(p as usize) {
            return Err(VerifyError::OffHeap {
                what: "circular".into(),
            });
        }
        if regions.find(p as usize).is_none() {
            return Err(VerifyError::OffHeap {
                what: format!("{p:p} is outside the heap"),
            });
        }
        p = *p.add(1) as usize as *mut u64;
    }
    match off_heap.iter().find(|a| !listed.contains(a)) {
        Some(a) => Err(VerifyError::OffHeap {
            what: format!("{a:#x} is missing"),
        }),
        None => Ok(()),
    }
}

/// What must hold of an object's own fields.
unsafe fn shape(p: *const u64) -> std::result::Result<(), &'static str> {
    let header = Header(*p);
    let word = |i: usize| Word::from_bits(*p.add(i));
    let n = header.arity();
    let ok = |c: bool, what| if c { Ok(()) } else { Err(what) };
    match header.subtag() {
        Subtag::Match | Subtag::SubBits => {
            ok(n == 3, "size")?;
            ok(word(1).is_boxed(), "underlying bits")?;
            ok(word(2).is_small() && word(3).is_small(), "position")
        }
        Subtag::Fun => ok(n >= 1 && *p.add(1) != 0 && *p.add(1) & 7 == 0, "fun entry"),
        Subtag::Float => ok(n == 1, "size"),
        Subtag::FlatMap => {
            ok(n >= 1 && word(1).is_boxed(), "keys")?;
            ok(n <= 1 + beamr_term::header::MAX_FLAT_MAP, "size")
        }
        Subtag::HashMap => {
            ok(n >= 2 && word(1).is_small() && word(2).is_small(), "counts")?;
            let bits = word(2).small_value() as u64;
            ok(bits.count_ones() as usize == n - 2, "bitmap")
        }
        Subtag::RefcBits => ok(n == 4 && *p.add(2) != 0, "block"),
        Subtag::Ref => ok(matches!(n, 2 | 3 | 5), "size"),
        Subtag::HeapBits => ok(
            n >= 1 && ((*p.add(1)).div_ceil(64) as usize) < n,
            "size in bits",
        ),
        Subtag::External => ok(n >= 4 && *p.add(2) != 0, "node"),
        Subtag::Export => ok(n == 4 && word(1).is_small(), "export id"),
        Subtag::Record => ok(n >= 1, "definition"),
        Subtag::PosBig | Subtag::NegBig => ok(n >= 1 && *p.add(n) != 0, "normalisation"),
        Subtag::Tuple => Ok(()),
        Subtag::Reserved => Err("kind"),
    }
}

/// After a collection: walks the block and what was promoted since `old_mark` object by object.
///
/// # Panics
/// When the collector is wrong; only in debug builds.
pub(super) unsafe fn debug_check(heap: &Heap, old_mark: *mut u64) {
    if cfg!(debug_assertions)
        && let Err(e) = linear(heap, old_mark)
    {
        panic!("heap after collection: {e}");
    }
}

unsafe fn linear(heap: &Heap, old_mark: *mut u64) -> Result<()> {
    bounds(heap)?;
    let regions = Regions::of(heap);
    let mut starts = vec![0u64; heap.used() / 64 + 1];
    let mut off_heap = 0usize;
    for (from, to) in [(heap.start, heap.top), (old_mark, heap.old_top)] {
        let mut p = from;
        while p < to {
            if from == heap.start {
                let i = (p as usize - from as usize) / 8;
                starts[i / 64] |= 1 << (i % 64);
            }
            let w = *p;
            if w & 3 == PRIMARY_HEADER {
                let header = Header(w);
                let malformed = |what| VerifyError::Malformed {
                    place: "linear walk".into(),
                    kind: header.subtag(),
                    address: p as usize,
                    what,
                };
                if header.arity() >= (to as usize - p as usize) / 8 {
                    return Err(malformed("runs out of its region"));
                }
                shape(p).map_err(malformed)?;
                if header.is_off_heap() && from == heap.start {
                    off_heap += 1;
                }
                p = p.add(header.arity() + 1);
            } else {
                p = p.add(2);
            }
        }
        if p > to {
            return Err(VerifyError::Bounds {
                what: "a cons cell runs out of its region",
            });
        }
    }
    let check = |w: u64, at: *mut u64, from_old: bool| -> Result<()> {
        if w & 3 == PRIMARY_IMMEDIATE {
            return Ok(());
        }
        let place = || format!("word at {at:p}");
        let a = (w & !3) as usize;
        if regions.young.holds(a) {
            if from_old {
                return Err(VerifyError::OldToYoung {
                    address: at as usize,
                    word: w,
                });
            }
            let i = (a - regions.young.start) / 8;
            let is_header = *(a as *const u64) & 3 == PRIMARY_HEADER;
            if starts[i / 64] & 1 << (i % 64) == 0 || is_header != (w & 3 == PRIMARY_BOXED) {
                return Err(VerifyError::Dangling {
                    place: place(),
                    word: w,
                });
            }
        } else if !regions.is_old(a) && !is_literal(a as *const u64) {
            return Err(VerifyError::Dangling {
                place: place(),
                word: w,
            });
        }
        Ok(())
    };
    for (from, to) in [(heap.start, heap.top), (old_mark, heap.old_top)] {
        let mut p = from;
        while p < to {
            let w = *p;
            if w & 3 == PRIMARY_HEADER {
                p = p.add(1 + Header(w).raw_words());
            } else {
                check(w, p, from != heap.start)?;
                p = p.add(1);
            }
        }
    }
    let mut p = heap.stop;
    while p < heap.end {
        if *p & 3 != PRIMARY_HEADER {
            check(*p, p, false)?;
        }
        p = p.add(1);
    }
    let mut p = heap.off_heap.first;
    let (mut listed, mut in_old) = (0usize, false);
    while !p.is_null() {
        let young = regions.young.holds(p as usize);
        if !young && !regions.is_old(p as usize) {
            return Err(VerifyError::OffHeap {
                what: format!("{p:p} is outside the heap"),
            });
        }
        if young && in_old {
            return Err(VerifyError::OffHeap {
                what: format!("young {p:p} behind an old object"),
            });
        }
        in_old |= !young;
        listed += usize::from(young);
        p = *p.add(1) as usize as *mut u64;
    }
    if listed != off_heap {
        return Err(VerifyError::OffHeap {
            what: format!("{listed} young objects listed, {off_heap} in the heap"),
        });
    }
    Ok(())
}
