//! Timers: a hierarchical wheel, and the same behind a lock for one worker and those who reach over.
//!
//! # Shape
//!
//! Time is a count of ticks. Eleven levels of 64 slots cover every 64-bit deadline; a timer is on
//! the level of the highest group of six bits in which its deadline differs from the current tick.
//! When the current tick enters a slot of a higher level, the slot's timers move down. A
//! bit set per level finds the next slot without walking.
//!
//! A timer that is not on level 0 shares its slot with no timer that is already further down: the
//! lower levels hold deadlines of the current slot only. So timers move down in the order of
//! their insertion and before any later one is put beside them, and timers expire **by deadline, then by
//! insertion**, exactly. A deadline in the past counts as the current tick.
//!
//! Timers are entries of one array, linked by index; a handle is an index and a generation, so that
//! a stale handle misses. Start and cancel are O(1); each timer moves at most ten times.
//!
//! Slots above level 0 know a lower bound of their deadlines, exact unless its timer was cancelled, so that
//! a sleeping owner is not woken only to move timers down.
//!
//! # Protocol
//!
//! [`TimerWheel`] has one owner and no atomics. [`SharedWheel`] is a lock around it:
//! whoever takes a payload out under the lock, by expiry or by cancelling, has it alone. The owner
//! worker reads the next deadline and sleeps until then. Who inserts an earlier one learns that from the
//! result and must unpark the owner **after** the insertion: the deadline is published by the
//! lock, and a token that comes before the owner sleeps makes its park return at once.

use crate::prim::{AtomicU64, Mutex, Ordering};

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
const NIL: u32 = u32::MAX;

/// A wheel that had more timers than this gives their memory back when it is empty.
const KEEP_TIMERS: usize = 1024;

/// Names a timer until it expires or is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerHandle {
    index: u32,
    generation: u32,
}

impl TimerHandle {
    /// The handle as a number, for a wheel-wide table of references.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The handle with this number.
    #[must_use]
    pub fn from_u64(number: u64) -> Self {
        Self {
            index: number as u32,
            generation: (number >> 32) as u32,
        }
    }
}

#[derive(Debug)]
struct Timer<T> {
    deadline: u64,
    /// Neighbours in the slot; `next` is also the link of the free list.
    prev: u32,
    next: u32,
    generation: u32,
    /// The slot, counted over all levels.
    slot: u32,
    payload: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    /// No deadline in the slot is earlier.
    earliest: u64,
}

const EMPTY_SLOT: Slot = Slot {
    first: NIL,
    last: NIL,
    earliest: u64::MAX,
};

/// Timers of one owner. See the head of the module.
#[derive(Debug)]
pub struct TimerWheel<T> {
    now: u64,
    timers: Vec<Timer<T>>,
    free: u32,
    len: usize,
    /// Counts insertions: the generation of the last timer, whatever its index.
    generation: u32,
    /// Which slots of a level are in use.
    used: [u64; LEVELS],
    slots: Box<[Slot]>,
}

impl<T> TimerWheel<T> {
    /// An empty wheel whose current tick is `now`.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self {
            now,
            timers: Vec::new(),
            free: NIL,
            len: 0,
            generation: 0,
            used: [0; LEVELS],
            slots: vec![EMPTY_SLOT; LEVELS * SLOTS].into_boxed_slice(),
        }
    }

    /// The current tick: that of the last advance.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How many timers run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no timer runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The level of a deadline (not in the past) seen from the current tick.
    fn level_of(&self, deadline: u64) -> usize {
        ((63 - (self.now ^ deadline | 1).leading_zeros()) / BITS) as usize
    }

    /// Starts a timer.
    pub fn insert(&mut self, deadline: u64, payload: T) -> TimerHandle {
        let deadline = deadline.max(self.now);
        let index = if self.free == NIL {
            // 2^32 timers would need hundreds of gigabytes; the allocation fails long before.
            self.timers.push(Timer {
                deadline,
                prev: NIL,
                next: NIL,
                generation: 0,
                slot: 0,
                payload: None,
            });
            (self.timers.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.timers[index as usize].next;
            index
        };
        let timer = &mut self.timers[index as usize];
        timer.deadline = deadline;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        timer.generation = generation;
        timer.payload = Some(payload);
        self.len += 1;
        self.link(index, deadline);
        TimerHandle { index, generation }
    }

    /// Appends a timer to the slot of its deadline.
    fn link(&mut self, index: u32, deadline: u64) {
        let level = self.level_of(deadline);
        let place = (deadline >> (level as u32 * BITS)) as usize % SLOTS;
        self.used[level] |= 1 << place;
        let number = level * SLOTS + place;
        let slot = &mut self.slots[number];
        slot.earliest = slot.earliest.min(deadline);
        let last = std::mem::replace(&mut slot.last, index);
        if last == NIL {
            slot.first = index;
        } else {
            self.timers[last as usize].next = index;
        }
        let timer = &mut self.timers[index as usize];
        timer.slot = number as u32;
        timer.prev = last;
        timer.next = NIL;
    }

    /// Takes a timer out of its slot.
    fn unlink(&mut self, index: u32) {
        let Timer {
            prev, next, slot, ..
        } = self.timers[index as usize];
        let number = slot as usize;
        match prev {
            NIL => self.slots[number].first = next,
            _ => self.timers[prev as usize].next = next,
        }
        match next {
            NIL => self.slots[number].last = prev,
            _ => self.timers[next as usize].prev = prev,
        }
        if self.slots[number].first == NIL {
            self.slots[number] = EMPTY_SLOT;
            self.used[number / SLOTS] &= !(1 << (number % SLOTS));
        }
    }

    /// Frees an unlinked timer and returns what it carried.
    fn release(&mut self, index: u32) -> Option<T> {
        let timer = &mut self.timers[index as usize];
        timer.next = self.free;
        self.free = index;
        self.len -= 1;
        let payload = timer.payload.take();
        if self.len == 0 && self.timers.capacity() > KEEP_TIMERS {
            // Old handles stay stale: generations go on counting.
            self.timers = Vec::new();
            self.free = NIL;
        }
        payload
    }

    fn find(&self, handle: TimerHandle) -> Option<&Timer<T>> {
        self.timers
            .get(handle.index as usize)
            .filter(|timer| timer.generation == handle.generation && timer.payload.is_some())
    }

    /// Stops a timer. Returns what it carried and its deadline; `None` when it has expired or was
    /// cancelled.
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<(T, u64)> {
        let deadline = self.find(handle)?.deadline;
        self.unlink(handle.index);
        let payload = self.release(handle.index)?;
        Some((payload, deadline))
    }

    /// Looks at a running timer: what it carries and its deadline.
    #[must_use]
    pub fn read(&self, handle: TimerHandle) -> Option<(&T, u64)> {
        let timer = self.find(handle)?;
        Some((timer.payload.as_ref()?, timer.deadline))
    }

    /// The next slot with timers and the tick from which it is current.
    fn next_slot(&self) -> Option<(usize, u64)> {
        // The lowest level that is in use holds the earliest deadlines.
        let level = self.used.iter().position(|used| *used != 0)?;
        // All used slots of a level lie at or after the current one (at level 0) or after it.
        let place = self.used[level].trailing_zeros() as usize;
        let shift = level as u32 * BITS;
        // The current tick with the groups from this level down replaced.
        let above = match self.now.checked_shr(shift + BITS) {
            Some(high) => high.checked_shl(shift + BITS).unwrap_or(0),
            None => 0,
        };
        Some((level * SLOTS + place, above | (place as u64) << shift))
    }

    /// When the owner must advance next: the earliest deadline, or earlier when the timer with the
    /// earliest deadline was cancelled.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let (number, start) = self.next_slot()?;
        Some(self.slots[number].earliest.max(start))
    }

    /// Takes the next timer that is due at `now`, with its deadline. Returns `None`, and the current
    /// tick is `now`, when none is left. Timers may be started and cancelled between calls.
    pub fn pop_expired(&mut self, now: u64) -> Option<(u64, T)> {
        while let Some((number, start)) = self.next_slot() {
            if start > now {
                break;
            }
            self.now = self.now.max(start);
            if number < SLOTS {
                let index = self.slots[number].first;
                let deadline = self.timers[index as usize].deadline;
                self.unlink(index);
                let payload = self.release(index)?;
                return Some((deadline, payload));
            }
            self.move_down(number);
        }
        self.now = self.now.max(now);
        None
    }

    /// Distributes the timers of a slot that has become current over the levels below.
    fn move_down(&mut self, number: usize) {
        let Slot { mut first, .. } = std::mem::replace(&mut self.slots[number], EMPTY_SLOT);
        self.used[number / SLOTS] &= !(1 << (number % SLOTS));
        while first != NIL {
            let Timer { next, deadline, .. } = self.timers[first as usize];
            self.link(first, deadline);
            first = next;
        }
    }

    /// Calls `expire` for all timers that are due at `now`, in order, and makes `now` the current tick.
    /// Returns how many there were.
    pub fn advance(&mut self, now: u64, mut expire: impl FnMut(u64, T)) -> usize {
        let mut count = 0;
        while let Some((deadline, payload)) = self.pop_expired(now) {
            expire(deadline, payload);
            count += 1;
        }
        count
    }
}

/// The outcome of an insertion into a [`SharedWheel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Inserted {
    /// The timer.
    pub handle: TimerHandle,
    /// Whether it is now the earliest: unless the caller is the owner, it must unpark the owner.
    pub is_earliest: bool,
}

/// The timers of one worker, reachable by others. See the head of the module.
#[derive(Debug)]
pub struct SharedWheel<T> {
    wheel: Mutex<TimerWheel<T>>,
    /// A copy of the next deadline, `u64::MAX` without one, written under the lock.
    next: AtomicU64,
}

impl<T> SharedWheel<T> {
    /// An empty wheel whose current tick is `now`.
    #[must_use]
    pub fn new(now: u64) -> Self {
        Self {
            wheel: Mutex::new(TimerWheel::new(now)),
            next: AtomicU64::new(u64::MAX),
        }
    }

    fn publish(&self, wheel: &TimerWheel<T>) {
        self.next
            .store(wheel.next_deadline().unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Starts a timer.
    pub fn insert(&self, deadline: u64, payload: T) -> Inserted {
        let mut wheel = self.wheel.lock();
        let handle = wheel.insert(deadline, payload);
        let before = self.next.load(Ordering::Relaxed);
        let is_earliest = deadline < before;
        if is_earliest {
            self.publish(&wheel);
        }
        Inserted {
            handle,
            is_earliest,
        }
    }

    /// Stops a timer: what it carried and its deadline.
    pub fn cancel(&self, handle: TimerHandle) -> Option<(T, u64)> {
        let mut wheel = self.wheel.lock();
        let cancelled = wheel.cancel(handle);
        if cancelled.is_some() {
            // Later or none: the owner finds out when it wakes, or before it sleeps.
            self.publish(&wheel);
        }
        cancelled
    }

    /// The deadline of a running timer.
    pub fn read(&self, handle: TimerHandle) -> Option<u64> {
        self.wheel.lock().read(handle).map(|(_, deadline)| deadline)
    }

    /// The next deadline, for the owner before it sleeps. One load.
    #[inline]
    pub fn next_deadline(&self) -> Option<u64> {
        match self.next.load(Ordering::Acquire) {
            u64::MAX => None,
            next => Some(next),
        }
    }

    /// How many timers run.
    pub fn len(&self) -> usize {
        self.wheel.lock().len()
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The owner takes up to `at_most` due timers out, in order, into `due`. Whatever they cause happens
    /// outside the lock. Returns whether more are due.
    pub fn take_due(&self, now: u64, at_most: usize, due: &mut Vec<(u64, T)>) -> bool {
        if self.next.load(Ordering::Acquire) > now {
            return false;
        }
        let mut wheel = self.wheel.lock();
        let mut left = at_most;
        let more = loop {
            if left == 0 {
                break true;
            }
            match wheel.pop_expired(now) {
                Some(expired) => due.push(expired),
                None => break false,
            }
            left -= 1;
        };
        self.publish(&wheel);
        more && self.next.load(Ordering::Relaxed) <= now
    }

    /// Calls `f` with the wheel under the lock, for what the methods here do not offer.
    pub fn with<R>(&self, f: impl FnOnce(&mut TimerWheel<T>) -> R) -> R {
        let mut wheel = self.wheel.lock();
        let result = f(&mut wheel);
        self.publish(&wheel);
        result
    }
}
