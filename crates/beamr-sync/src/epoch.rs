//! Epoch-based reclamation: when may memory that others read without a lock be freed?
//!
//! A [`Domain`] belongs to one VM; there is no process-wide state. Threads that read shared structures
//! register as a [`Participant`] and *pin*: while a [`Guard`] lives, nothing that was reachable when it
//! was made is freed. A writer unlinks an object and *defers* its drop.
//!
//! # Protocol
//!
//! * The domain has a counter, the epoch. A record per participant says *pinned at epoch e* or
//!   *not pinned*.
//! * To pin: read the epoch, store it into the own record, fence. Pins nest; only the
//!   outermost one does this. Workers pin once per time slice, so that inside a slice a pin is one
//!   increment of an owned counter.
//! * To defer: (pinned, after unlinking) fence, read the epoch, keep the drop with it in a
//!   bag of the participant.
//! * To advance: read the epoch, fence, look at all records; when no one is pinned at another
//!   epoch, move the epoch on by one (compare-and-swap).
//! * To collect: drops deferred at epoch e run when the epoch is at least e + 2.
//!
//! # Why it is safe
//!
//! Take a reader that holds an object and the scan that would move the epoch to two past the deferral.
//! Of the two fences (the pin's, the scan's) one is first in the single order of SeqCst fences. If the
//! pin's, the scan sees the pin, and a record pinned at e lets the epoch reach the step after e
//! but not the one after that. If the scan's, the reader sees all that the scanning thread saw
//! before, above all that the object is unlinked, and cannot have got it. The deferring
//! thread is pinned itself, so that the epoch it reads is outdated by at most one step,
//! which the distance of two covers (Fraser's scheme; the orderings are those of crossbeam-epoch).
//!
//! Records are never freed while the domain lives, so that a scan may walk them at any time. A
//! dropped participant gives its record back and its bag to the domain.
//!
//! # Races that remain
//!
//! * A participant that stays pinned stops reclamation, not progress. Workers unpin between slices and
//!   before they sleep.
//! * Drops run on whichever thread collects: what is deferred must be `Send`.

use crate::prim::{
    Arc, AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, CachePadded, Mutex, Ordering, fence,
};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ptr;

/// How many outermost unpins pass between attempts to collect, when there is something to collect.
/// A scan reads one line per participant; 16 makes that invisible beside the slices.
const COLLECT_EVERY: u32 = 16;

/// Drops per automatic collection, so that no unpin takes long. An explicit collection has no limit.
const COLLECT_AT_MOST: usize = 256;

/// One deferred drop.
struct Deferred {
    data: *mut (),
    run: unsafe fn(*mut ()),
}

// SAFETY: the constructors demand `Send` of what `data` owns.
unsafe impl Send for Deferred {}

impl Deferred {
    fn call<F: FnOnce() + Send + 'static>(f: F) -> Self {
        unsafe fn run<F: FnOnce()>(data: *mut ()) {
            // SAFETY: `data` came from `Box::into_raw` of this very type, and `run` is called once.
            let f = unsafe { Box::from_raw(data.cast::<F>()) };
            f();
        }
        Self {
            data: Box::into_raw(Box::new(f)).cast(),
            run: run::<F>,
        }
    }

    fn drop_box<T: Send + 'static>(value: Box<T>) -> Self {
        unsafe fn run<T>(data: *mut ()) {
            // SAFETY: as in `call`.
            drop(unsafe { Box::from_raw(data.cast::<T>()) });
        }
        Self {
            data: Box::into_raw(value).cast(),
            run: run::<T>,
        }
    }

    fn drop_arc<T: Send + Sync + 'static>(value: Arc<T>) -> Self {
        unsafe fn run<T>(data: *mut ()) {
            // SAFETY: `data` came from `Arc::into_raw` of this very type, and `run` is called once.
            drop(unsafe { Arc::from_raw(data.cast_const().cast::<T>()) });
        }
        Self {
            data: Arc::into_raw(value).cast_mut().cast(),
            run: run::<T>,
        }
    }

    fn run(self) {
        // SAFETY: `run` and `data` belong together by construction; `self` is consumed.
        unsafe { (self.run)(self.data) }
    }
}

type Bag = VecDeque<(u64, Deferred)>;

/// What a scan sees of one participant.
struct Record {
    /// 0: not pinned; else `epoch << 1 | 1`.
    pinned: CachePadded<AtomicU64>,
    /// Whether a participant owns the record.
    claimed: AtomicBool,
    /// The record registered before; set before publication, never changed.
    next: *mut Record,
}

struct Inner {
    epoch: CachePadded<AtomicU64>,
    records: AtomicPtr<Record>,
    /// Deferred drops whose participant is gone or asleep.
    orphans: Mutex<Bag>,
    orphan_count: AtomicUsize,
}

// SAFETY: the raw pointers are the list of records, which is only added to while `Inner` lives;
// all fields of a record that change are atomics.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// The reclamation domain of one VM. Clones are the same domain.
#[derive(Clone)]
pub struct Domain(Arc<Inner>);

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("epoch", &self.0.epoch.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

impl Domain {
    /// Makes a domain without participants.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            epoch: CachePadded(AtomicU64::new(2)),
            records: AtomicPtr::new(ptr::null_mut()),
            orphans: Mutex::new(Bag::new()),
            orphan_count: AtomicUsize::new(0),
        }))
    }

    /// Registers the calling thread. Cheap enough for a thread that comes once for one look.
    #[must_use]
    pub fn register(&self) -> Participant {
        Participant {
            record: self.0.claim_record(),
            domain: self.clone(),
            depth: Cell::new(0),
            unpins: Cell::new(0),
            bag: RefCell::new(Bag::new()),
        }
    }

    /// Calls `f` pinned, for threads that are no participant.
    pub fn with_guest<R>(&self, f: impl FnOnce(&Guard<'_>) -> R) -> R {
        let guest = self.register();
        let guard = guest.pin();
        f(&guard)
    }

    /// Runs what is due among the drops that departed participants left behind, advancing the epoch
    /// as far as participants allow.
    pub fn collect_orphans(&self) {
        if self.0.orphan_count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for _ in 0..3 {
            self.0.advance();
        }
        self.0.collect_orphans(usize::MAX);
    }

    /// Deferred drops that wait without a participant, for tests and statistics.
    #[must_use]
    pub fn orphan_count(&self) -> usize {
        self.0.orphan_count.load(Ordering::Relaxed)
    }

    /// Pins a record of nobody, for one look by a thread that is no participant: cheaper than to
    /// register, but nothing can be deferred.
    pub(crate) fn pin_guest(&self) -> GuestPin<'_> {
        // SAFETY: records live as long as the domain, which the result borrows.
        let record = unsafe { &*self.0.claim_record() };
        self.0.pin(record);
        GuestPin(record)
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn claim_record(&self) -> *const Record {
        let mut record = self.records.load(Ordering::Acquire);
        while !record.is_null() {
            // SAFETY: records live as long as `self`.
            let this = unsafe { &*record };
            if !this.claimed.load(Ordering::Relaxed)
                && this
                    .claimed
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return record;
            }
            record = this.next;
        }
        let new = Box::into_raw(Box::new(Record {
            pinned: CachePadded(AtomicU64::new(0)),
            claimed: AtomicBool::new(true),
            next: ptr::null_mut(),
        }));
        let mut first = self.records.load(Ordering::Relaxed);
        loop {
            // SAFETY: `new` is not published yet.
            unsafe { (*new).next = first };
            match self.records.compare_exchange_weak(
                first,
                new,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return new,
                Err(now) => first = now,
            }
        }
    }

    /// Says in a record that its owner, the caller, is pinned.
    #[inline]
    fn pin(&self, record: &Record) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Release: a scan that sees only this pin must know the reads under the pin before,
        // whose end it did not see. (A relaxed store does not continue a release sequence.)
        record.pinned.store(epoch << 1 | 1, Ordering::Release);
        // Pairs with the fence of an advance. No load of shared data may come before it.
        fence(Ordering::SeqCst);
    }

    /// Tries to move the epoch on; returns the epoch.
    fn advance(&self) -> u64 {
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Pairs with the fence of a pin: either this scan sees that pin, or the pinned thread
        // sees everything that this thread saw.
        fence(Ordering::SeqCst);
        // A record that this load misses was registered after, so that its pins are after the fence.
        let mut record = self.records.load(Ordering::Acquire);
        while !record.is_null() {
            // SAFETY: records live as long as `self`.
            let this = unsafe { &*record };
            let pinned = this.pinned.load(Ordering::Relaxed);
            if pinned != 0 && pinned >> 1 != epoch {
                return epoch;
            }
            record = this.next;
        }
        // What unpinned threads read happens before what a collection at the new epoch frees.
        fence(Ordering::Acquire);
        match self
            .epoch
            .compare_exchange(epoch, epoch + 1, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => epoch + 1,
            Err(now) => now,
        }
    }

    fn collect_orphans(&self, mut at_most: usize) {
        while at_most > 0 && self.orphan_count.load(Ordering::Relaxed) > 0 {
            let due = {
                let Some(mut orphans) = self.orphans.try_lock() else {
                    return;
                };
                let epoch = self.epoch.load(Ordering::Acquire);
                // Bags of several participants: not sorted by epoch. The front is good enough.
                match orphans.front() {
                    Some((at, _)) if epoch >= at + 2 => {
                        let due = orphans.pop_front();
                        self.orphan_count.store(orphans.len(), Ordering::Relaxed);
                        due
                    }
                    _ => None,
                }
            };
            let Some((_, deferred)) = due else { return };
            deferred.run();
            at_most -= 1;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // No participant is left: each holds a count of this.
        while let Some((_, deferred)) = self.orphans.get_mut().pop_front() {
            deferred.run();
        }
        let mut record = self.records.load(Ordering::Relaxed);
        while !record.is_null() {
            // SAFETY: nobody else can reach the records any more; each came from a box.
            let this = unsafe { Box::from_raw(record) };
            record = this.next;
        }
    }
}

/// A pin without a participant.
pub(crate) struct GuestPin<'d>(&'d Record);

impl Drop for GuestPin<'_> {
    fn drop(&mut self) {
        self.0.pinned.store(0, Ordering::Release);
        self.0.claimed.store(false, Ordering::Release);
    }
}

/// A thread's membership in a domain. It may move between threads, but only one uses it.
pub struct Participant {
    domain: Domain,
    record: *const Record,
    /// How many guards live.
    depth: Cell<u32>,
    unpins: Cell<u32>,
    bag: RefCell<Bag>,
}

// SAFETY: `record` lives as long as the domain, which `domain` keeps alive; all else is owned. The cells
// make it not `Sync`. A guard borrows it and is not `Send`, so that no guard lives when it moves.
unsafe impl Send for Participant {}

impl std::fmt::Debug for Participant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Participant")
            .field("depth", &self.depth)
            .field("deferred", &self.bag.borrow().len())
            .finish_non_exhaustive()
    }
}

impl Participant {
    /// The domain it belongs to.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Pins. While the guard lives, what can be reached through shared structures stays allocated.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        self.enter();
        Guard {
            participant: self,
            not_send: PhantomData,
        }
    }

    /// As [`Participant::pin`] without a guard, for a worker that pins for its whole slice and keeps the
    /// participant in a structure that it also needs exclusively. Inside, `pin` costs an increment.
    #[inline]
    pub fn enter(&self) {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            // SAFETY: the record lives as long as the domain.
            self.domain.0.pin(unsafe { &*self.record });
        }
    }

    /// Undoes one [`Participant::enter`].
    ///
    /// # Safety
    ///
    /// There was an `enter` that no other call of this undoes, so that every guard keeps its own pin.
    #[inline]
    pub unsafe fn leave(&self) {
        let depth = self.depth.get();
        debug_assert_ne!(depth, 0, "leave without enter");
        self.depth.set(depth - 1);
        if depth == 1 {
            // SAFETY: the record lives as long as the domain.
            let record = unsafe { &*self.record };
            // What was read while pinned happens before the epoch moves on.
            record.pinned.store(0, Ordering::Release);
            let unpins = self.unpins.get().wrapping_add(1);
            self.unpins.set(unpins);
            if unpins.is_multiple_of(COLLECT_EVERY) {
                self.collect_some();
            }
        }
    }

    #[cold]
    fn collect_some(&self) {
        let inner = &*self.domain.0;
        let orphans = inner.orphan_count.load(Ordering::Relaxed) != 0;
        if self.bag.borrow().is_empty() && !orphans {
            return;
        }
        let epoch = inner.advance();
        self.run_due(epoch, COLLECT_AT_MOST);
        if orphans {
            inner.collect_orphans(COLLECT_AT_MOST);
        }
    }

    fn run_due(&self, epoch: u64, at_most: usize) {
        for _ in 0..at_most {
            // The drop may pin and defer in turn: the bag must not be borrowed meanwhile.
            let due = {
                let mut bag = self.bag.borrow_mut();
                match bag.front() {
                    Some((at, _)) if epoch >= at + 2 => bag.pop_front(),
                    _ => None,
                }
            };
            match due {
                Some((_, deferred)) => deferred.run(),
                None => return,
            }
        }
    }

    /// Advances as far as the others allow and runs the drops that are due, own and orphaned. Call it
    /// unpinned; while pinned it can run only older drops.
    pub fn collect(&self) {
        let inner = &*self.domain.0;
        let mut epoch = 0;
        for _ in 0..3 {
            epoch = inner.advance();
        }
        self.run_due(epoch, usize::MAX);
        inner.collect_orphans(usize::MAX);
    }

    /// Before a long sleep: collects, and leaves what is not due to the others.
    pub fn flush(&self) {
        self.collect();
        self.orphan_bag();
    }

    fn orphan_bag(&self) {
        let mut bag = self.bag.take();
        if !bag.is_empty() {
            let inner = &*self.domain.0;
            let mut orphans = inner.orphans.lock();
            orphans.append(&mut bag);
            inner.orphan_count.store(orphans.len(), Ordering::Relaxed);
        }
    }

    fn defer(&self, deferred: Deferred) {
        // The unlinking must come before the epoch is read; see the head of the module.
        fence(Ordering::SeqCst);
        let epoch = self.domain.0.epoch.load(Ordering::Relaxed);
        self.bag.borrow_mut().push_back((epoch, deferred));
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.orphan_bag();
        // SAFETY: the record lives as long as the domain.
        let record = unsafe { &*self.record };
        // A leaked guard or an `enter` without `leave` must not stop reclamation for ever: nothing
        // borrows from this participant any more.
        record.pinned.store(0, Ordering::Release);
        record.claimed.store(false, Ordering::Release);
    }
}

/// Proof that a participant is pinned.
pub struct Guard<'p> {
    participant: &'p Participant,
    not_send: PhantomData<*mut ()>,
}

impl std::fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard<'_> {
    /// Whether it pins this domain.
    #[inline]
    #[must_use]
    pub fn pins(&self, domain: &Domain) -> bool {
        self.participant.domain.is(domain)
    }

    /// Drops a box when no guard of now lives any more. Nobody may be able to reach it from now on.
    pub fn defer_drop<T: Send + 'static>(&self, value: Box<T>) {
        self.participant.defer(Deferred::drop_box(value));
    }

    /// Gives back a count when no guard of now lives any more.
    pub fn defer_drop_arc<T: Send + Sync + 'static>(&self, value: Arc<T>) {
        self.participant.defer(Deferred::drop_arc(value));
    }

    /// Calls `f` when no guard of now lives any more.
    pub fn defer(&self, f: impl FnOnce() + Send + 'static) {
        self.participant.defer(Deferred::call(f));
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard's own `enter`.
        unsafe { self.participant.leave() }
    }
}
