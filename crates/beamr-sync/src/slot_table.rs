//! The process table: identifiers to counted values, with a look-up that takes no lock.
//!
//! # Shape
//!
//! The capacity is a power of two, 2^k. An identifier is a number below 2^60 whose low k bits are
//! the index of the slot and whose high bits are the slot's generation. Fresh slots are handed
//! out in order; when many have been used once ([`FIRST_ROUND`]) the freed ones come again, the one that was
//! freed first first, each with its next generation. So identifiers come 0, 1, 2, ..., those of the second
//! round lie above the capacity, and an identifier is never used twice.
//!
//! Slots live in chunks that are allocated when first needed and never move or go away before the
//! table does.
//!
//! # Protocol
//!
//! A slot has two words. The first is the identifier of its current entry, or VACANT with the
//! identifier that comes next. The second is the pointer of the entry or, in the free list, the index
//! of the next free slot; the list needs no memory of its own.
//!
//! * **A reservation** takes a slot out of the free list, under its lock. Until it publishes, the
//!   slot is its own. Publishing stores the pointer (Release), then the identifier (Release).
//! * **A remover** exchanges the identifier for VACANT; who succeeds takes the pointer, leaves the
//!   table's count to the epoch domain and, under the lock, links the slot into the free list
//!   (Release stores of second words).
//! * **Readers** are pinned. They load the identifier (Acquire) and compare, load the pointer, and
//!   after an Acquire fence load the identifier again. Identifiers are unique, so that the same value
//!   twice means that the pointer between belongs to it: every later store to the second word is
//!   Release and comes after the VACANT, which the reader would therefore have to see.
//!
//! # Why it is safe
//!
//! A reader that found a pointer was pinned when the entry was in the table, so that the table's
//! own count is not given back before it unpins: it may use a reference, or make a
//! count for itself, as long as its guard lives. Threads without a participant pin as guests
//! ([`SlotTable::lookup`]) and take a count.
//!
//! # Races that remain
//!
//! * A look-up beside a remove finds the entry or not. The entry itself must know that it died (a signal
//!   queue is closed before its slot goes).
//! * A walk sees each entry that lives during the whole walk exactly once, since entries do not
//!   move; of those that come or go meanwhile it sees some.

use crate::epoch::{Domain, Guard};
use crate::prim::{Arc, AtomicPtr, AtomicU64, AtomicUsize, Mutex, Ordering, fence};
use std::ptr;

/// Slots per chunk (16 bytes each): 16 KiB, so that a small VM pays for one.
const CHUNK_SLOTS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = if cfg!(loom) { 0 } else { 10 };

/// As many slots are handed out before any comes again, whatever is free; beyond that a fresh one is taken only while
/// more than half of all are in use. So a table of few entries at a time stays small, and a slot still rests long.
const FIRST_ROUND: usize = 1 << 16;

/// The highest index width, as wide as OTP's largest process limit.
const MAX_INDEX_BITS: u32 = 27;

/// In the first word of a slot: no entry; the other bits are the identifier of the next one.
const VACANT: u64 = 1 << 63;

/// Identifiers are below this.
const ID_END: u64 = 1 << 60;

/// No index: the end of the free list.
const NIL: usize = usize::MAX;

/// The number of an entry: index and generation in one, see [`SlotTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(u64);

impl SlotId {
    /// The number, below 2^60.
    #[inline]
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The identifier with this number. Any number is fine: a look-up of what is not there misses.
    #[inline]
    #[must_use]
    pub fn from_u64(number: u64) -> Self {
        Self(number)
    }
}

/// The table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull {
    /// How many entries it may hold.
    pub limit: usize,
}

impl std::fmt::Display for TableFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the table holds {} entries, its limit", self.limit)
    }
}

impl std::error::Error for TableFull {}

struct Slot<T> {
    /// The identifier of the entry, or VACANT and the identifier of the next one.
    id: AtomicU64,
    /// The entry, or the index of the next free slot as an address without a meaning.
    value: AtomicPtr<T>,
}

/// What writers share under the lock.
struct Free {
    /// The next index that was never used.
    fresh: usize,
    /// The slot that was freed first, and the one freed last: a list through their second words.
    first: usize,
    last: usize,
    /// Live and reserved entries.
    used: usize,
}

/// A table from identifiers to counted values. See the head of the module.
pub struct SlotTable<T: Send + Sync + 'static> {
    domain: Domain,
    limit: usize,
    index_bits: u32,
    chunks: Box<[AtomicPtr<Slot<T>>]>,
    free: Mutex<Free>,
    /// Copies of `used` and `fresh` to read without the lock.
    used: AtomicUsize,
    fresh: AtomicUsize,
}

// SAFETY: the pointers are counts of `T`, which is Send and Sync; all changes go through atomics.
unsafe impl<T: Send + Sync> Send for SlotTable<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SlotTable<T> {}

impl<T: Send + Sync> std::fmt::Debug for SlotTable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SlotTable")
            .field("len", &self.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// An identifier that is taken but leads nowhere yet. Dropping it wastes the identifier and frees
/// the place.
#[derive(Debug)]
pub struct Reservation<'t, T: Send + Sync + 'static> {
    table: &'t SlotTable<T>,
    id: SlotId,
}

impl<T: Send + Sync> Reservation<'_, T> {
    /// The identifier that the entry will have.
    #[must_use]
    pub fn id(&self) -> SlotId {
        self.id
    }

    /// Makes the entry visible.
    pub fn publish(self, value: Arc<T>) -> SlotId {
        let id = self.id;
        let slot = self.table.slot(id);
        debug_assert!(slot.is_some());
        if let Some(slot) = slot {
            // Holding the lock is not needed: a reserved slot belongs to its reservation.
            slot.value
                .store(Arc::into_raw(value).cast_mut(), Ordering::Release);
            slot.id.store(id.0, Ordering::Release);
        }
        std::mem::forget(self);
        id
    }
}

impl<T: Send + Sync> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        if let Some(slot) = self.table.slot(self.id) {
            slot.id
                .store(self.table.vacant_after(self.id), Ordering::Relaxed);
            self.table.give_back(self.id);
        }
    }
}

impl<T: Send + Sync + 'static> SlotTable<T> {
    /// A table for at most `limit` entries (at least 1, at most 2^27), whose readers pin `domain`.
    #[must_use]
    pub fn new(domain: &Domain, limit: usize) -> Self {
        let limit = limit.clamp(1, 1 << MAX_INDEX_BITS);
        let capacity = limit.next_power_of_two().max(CHUNK_SLOTS);
        Self {
            domain: domain.clone(),
            limit,
            index_bits: capacity.trailing_zeros(),
            chunks: (0..capacity / CHUNK_SLOTS)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
            free: Mutex::new(Free {
                fresh: 0,
                first: NIL,
                last: NIL,
                used: 0,
            }),
            used: AtomicUsize::new(0),
            fresh: AtomicUsize::new(0),
        }
    }

    /// How many entries it may hold.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes of memory that its slots take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slots = self.fresh.load(Ordering::Relaxed);
        slots.next_multiple_of(CHUNK_SLOTS) * size_of::<Slot<T>>()
    }

    /// How many entries live or are reserved.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether nothing lives in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The domain that readers pin.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// How many bits of an identifier are the index; the rest is the generation.
    #[must_use]
    pub fn index_bits(&self) -> u32 {
        self.index_bits
    }

    /// The index in an identifier: as wide as the capacity, so that it cannot be out of bounds.
    #[inline]
    fn index(&self, id: SlotId) -> usize {
        (id.0 & ((1 << self.index_bits) - 1)) as usize
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<T>> {
        self.slot_at(self.index(id))
    }

    /// The slot at an index; `None` where no chunk is (above all at NIL).
    #[inline]
    fn slot_at(&self, index: usize) -> Option<&Slot<T>> {
        let chunk = self
            .chunks
            .get(index >> CHUNK_BITS)?
            .load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: a published chunk has CHUNK_SLOTS slots and lives as long as the table.
        Some(unsafe { &*chunk.add(index & (CHUNK_SLOTS - 1)) })
    }

    /// Takes the next identifier, for an entry that must know it before it is complete.
    pub fn reserve(&self) -> Result<Reservation<'_, T>, TableFull> {
        let mut free = self.free.lock();
        if free.used >= self.limit {
            return Err(TableFull { limit: self.limit });
        }
        let room = free.fresh < 1 << self.index_bits;
        let fresh = free.fresh < FIRST_ROUND || free.fresh / 2 < free.used || free.first == NIL;
        let id = if room && fresh {
            let index = free.fresh;
            if index.is_multiple_of(CHUNK_SLOTS) {
                self.add_chunk(index >> CHUNK_BITS);
            }
            free.fresh += 1;
            self.fresh.store(free.fresh, Ordering::Release);
            index as u64
        } else {
            // Free only when every slot was retired.
            let Some(slot) = self.slot_at(free.first) else {
                return Err(TableFull { limit: self.limit });
            };
            free.first = slot.value.load(Ordering::Relaxed).addr();
            if free.first == NIL {
                free.last = NIL;
            }
            slot.id.load(Ordering::Relaxed) & !VACANT
        };
        free.used += 1;
        self.used.store(free.used, Ordering::Relaxed);
        Ok(Reservation {
            table: self,
            id: SlotId(id),
        })
    }

    #[cold]
    fn add_chunk(&self, chunk: usize) {
        let slots: Box<[Slot<T>]> = (0..CHUNK_SLOTS)
            .map(|index| Slot {
                id: AtomicU64::new(VACANT | (chunk * CHUNK_SLOTS + index) as u64),
                value: AtomicPtr::new(ptr::null_mut()),
            })
            .collect();
        self.chunks[chunk].store(Box::into_raw(slots).cast(), Ordering::Release);
    }

    /// The first word of a slot whose last entry was `id`.
    fn vacant_after(&self, id: SlotId) -> u64 {
        VACANT | (id.0 + (1 << self.index_bits))
    }

    /// Puts a slot that is vacant into the free list.
    fn give_back(&self, id: SlotId) {
        let index = self.index(id);
        let mut free = self.free.lock();
        // After 2^60 / capacity rounds a slot is retired; no machine lives that long.
        if id.0 + (1 << self.index_bits) < ID_END
            && let Some(slot) = self.slot_at(index)
        {
            slot.value
                .store(ptr::without_provenance_mut(NIL), Ordering::Release);
            match self.slot_at(free.last) {
                Some(last) => last
                    .value
                    .store(ptr::without_provenance_mut(index), Ordering::Release),
                None => free.first = index,
            }
            free.last = index;
        }
        free.used -= 1;
        self.used.store(free.used, Ordering::Relaxed);
    }

    /// Adds an entry.
    pub fn insert(&self, value: Arc<T>) -> Result<SlotId, TableFull> {
        Ok(self.reserve()?.publish(value))
    }

    /// Adds an entry that is made from its own identifier.
    pub fn insert_with(
        &self,
        make: impl FnOnce(SlotId) -> Arc<T>,
    ) -> Result<(SlotId, Arc<T>), TableFull> {
        let reservation = self.reserve()?;
        let value = make(reservation.id());
        Ok((reservation.publish(value.clone()), value))
    }

    /// The pointer of an entry, valid while the caller is pinned.
    #[inline]
    fn pointer(&self, id: SlotId) -> Option<*const T> {
        // A caller can make an identifier of any number, also of a vacant slot's first word.
        if id.0 >= ID_END {
            return None;
        }
        let slot = self.slot(id)?;
        if slot.id.load(Ordering::Acquire) != id.0 {
            return None;
        }
        let value = slot.value.load(Ordering::Relaxed);
        // Pairs with the Release stores to the second word.
        fence(Ordering::Acquire);
        if slot.id.load(Ordering::Relaxed) != id.0 {
            return None;
        }
        Some(value)
    }

    /// Looks an entry up.
    ///
    /// # Panics
    ///
    /// When the guard pins another domain than the table's.
    #[inline]
    pub fn get<'g>(&'g self, id: SlotId, guard: &'g Guard<'_>) -> Option<&'g T> {
        assert!(guard.pins(&self.domain), "a guard of another domain");
        // SAFETY: the entry was in the table while the guard lived, so that the table's count stands
        // until the guard is gone; see the head of the module.
        self.pointer(id).map(|value| unsafe { &*value })
    }

    /// Looks an entry up and takes a count, which outlives the guard.
    pub fn get_counted(&self, id: SlotId, guard: &Guard<'_>) -> Option<Arc<T>> {
        assert!(guard.pins(&self.domain), "a guard of another domain");
        // SAFETY: the caller is pinned.
        unsafe { self.count(id) }
    }

    /// Looks an entry up and takes a count.
    ///
    /// # Safety
    ///
    /// The caller is pinned in the table's domain.
    unsafe fn count(&self, id: SlotId) -> Option<Arc<T>> {
        let value = self.pointer(id)?;
        // SAFETY: it came from `Arc::into_raw`, and the table's count stands as in `get`.
        unsafe {
            Arc::increment_strong_count(value);
            Some(Arc::from_raw(value))
        }
    }

    /// As [`SlotTable::get_counted`] for a thread that is no participant.
    pub fn lookup(&self, id: SlotId) -> Option<Arc<T>> {
        let _pin = self.domain.pin_guest();
        // SAFETY: pinned by the line above.
        unsafe { self.count(id) }
    }

    /// Removes an entry and returns a count of it. Of several removers of one entry one gets it.
    pub fn remove(&self, id: SlotId, guard: &Guard<'_>) -> Option<Arc<T>> {
        assert!(guard.pins(&self.domain), "a guard of another domain");
        if id.0 >= ID_END {
            return None;
        }
        let slot = self.slot(id)?;
        // One remover wins. Acquire: the pointer and what it points to are visible here.
        slot.id
            .compare_exchange(
                id.0,
                self.vacant_after(id),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .ok()?;
        let value = slot.value.load(Ordering::Relaxed);
        // SAFETY: the table's own count, which the winner of the exchange takes over.
        let value = unsafe { Arc::from_raw(value.cast_const()) };
        guard.defer_drop_arc(value.clone());
        self.give_back(id);
        Some(value)
    }

    /// The first live entry at or after a place in the table, and the place after it. Start with 0. Walks
    /// may stop and go on under another guard.
    pub fn next_from<'g>(
        &'g self,
        mut place: usize,
        guard: &'g Guard<'_>,
    ) -> Option<(SlotId, &'g T, usize)> {
        assert!(guard.pins(&self.domain), "a guard of another domain");
        // What is published later than this load did not live during the whole walk.
        let end = self.fresh.load(Ordering::Acquire);
        while place < end {
            let slot = self.slot(SlotId(place as u64))?;
            let id = SlotId(slot.id.load(Ordering::Acquire));
            place += 1;
            if let Some(value) = self.pointer(id) {
                // SAFETY: as in `get`.
                return Some((id, unsafe { &*value }, place));
            }
        }
        None
    }

    /// Walks over the live entries in order of their places.
    pub fn iter<'g>(
        &'g self,
        guard: &'g Guard<'_>,
    ) -> impl Iterator<Item = (SlotId, &'g T)> + use<'g, T> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (id, value, next) = self.next_from(place, guard)?;
            place = next;
            Some((id, value))
        })
    }
}

impl<T: Send + Sync + 'static> Drop for SlotTable<T> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let slots = chunk.load(Ordering::Acquire);
            if slots.is_null() {
                continue;
            }
            // SAFETY: nobody else can reach the table; the chunk came from a box of this length.
            let slots = unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(slots, CHUNK_SLOTS)) };
            for slot in &slots {
                // Vacant slots hold links of the free list. No reservation lives: it borrows the table.
                if slot.id.load(Ordering::Acquire) & VACANT == 0 {
                    let value = slot.value.load(Ordering::Acquire);
                    // SAFETY: the table's own count.
                    drop(unsafe { Arc::from_raw(value.cast_const()) });
                }
            }
        }
    }
}
