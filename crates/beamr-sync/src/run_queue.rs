//! The run queue of one worker: tasks by priority, by tenant, in order.
//!
//! # Shape
//!
//! Three levels, served strictly: max before high before normal. Low shares the queues of normal
//! and is passed over: a low task must come to the front [`LOW_SKIPS`] times before it runs
//! (alone it runs at once), as in OTP.
//!
//! Within a level, tasks queue up in a *lane* per tenant, and the lanes take turns by deficit
//! round robin: a lane at the front may run while it has credit; then it gets its next ration and
//! goes to the back. Each pop costs a whole time slice in advance; what the task did not use the
//! worker gives back with its next pop ([`Refund`]). So a tenant's share is of reductions, not of
//! turns, however short or many its processes are. With one lane, the common case, credit is not
//! looked at.
//!
//! # Protocol
//!
//! One lock per queue, held for a few pointer moves; no task code runs under it. **Anybody** may push (the
//! worker itself, a waker on another worker, a timer). **The worker** pops. **Thieves** lock the victim's
//! queue, take out at most half, unlock it, and then push to their own: no thread ever holds two
//! of these locks, so that there is no order to break. A task in between is in the thief's hands; it is
//! nobody else's, since whoever sees its state as Queued leaves it alone.
//!
//! The lengths are written under the lock and read without it; they are hints, except in the idle
//! protocol (see [`park`](crate::park)): there a push is followed by the SeqCst fence of `wake_one`, the
//! last look comes after the SeqCst fence of `announce`, so that one of the two sees the other.
//!
//! Lanes are rings, not lists through the tasks: they keep their memory, so that a push allocates
//! nothing in the long run, they need no link in the task and no unsafe code.

use crate::prim::{AtomicU32, CachePadded, Mutex, Ordering};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// How often a low task is passed over before it runs.
pub const LOW_SKIPS: u8 = 8;

/// The cost of one turn, charged in advance: the reductions of a whole time slice.
pub const SLICE: u32 = 4000;

/// The most that one steal takes, which bounds the time under the victim's lock.
pub const STEAL_AT_MOST: usize = 64;

/// Lanes that a level keeps although they are empty, to save looking tenants up anew.
const IDLE_LANES: usize = 64;

/// Capacity beyond which an empty ring gives its memory back.
const RING_KEEP: usize = 1024;

/// No number of a lane.
const NO_LANE: u32 = u32::MAX;

/// The priority of a task, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// For the system's own processes.
    Max = 0,
    /// Before all that is not max.
    High = 1,
    /// What processes start with.
    Normal = 2,
    /// Passed over eight times.
    Low = 3,
}

/// What a run queue must know about a task.
pub trait Task {
    /// The tenant whose share it uses.
    fn tenant(&self) -> u32 {
        0
    }

    /// The ration of its tenant relative to others, at least 1.
    fn weight(&self) -> u32 {
        1
    }

    /// Whether it may not be stolen.
    fn is_bound(&self) -> bool {
        false
    }
}

/// What a task left unused of its slice.
#[derive(Clone, Copy, Debug)]
pub struct Refund {
    /// Where it was popped from.
    pub priority: Priority,
    /// Whose share it was.
    pub tenant: u32,
    /// How many of the [`SLICE`] reductions it did not use.
    pub reductions: u32,
}

#[derive(Debug)]
struct Entry<T> {
    task: T,
    /// How often it is still passed over; only low tasks start above 0.
    skips: u8,
    low: bool,
}

#[derive(Debug)]
struct Lane<T> {
    tenant: u32,
    weight: u32,
    credit: i64,
    ring: VecDeque<Entry<T>>,
}

/// Tenant numbers are small and dense; a multiplication spreads them well enough.
#[derive(Default)]
struct TenantHasher(u64);

impl Hasher for TenantHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// One level: lanes that take turns.
#[derive(Debug)]
struct Level<T> {
    lanes: Vec<Lane<T>>,
    /// Lane numbers with tasks, in turn.
    turns: VecDeque<u32>,
    by_tenant: HashMap<u32, u32, BuildHasherDefault<TenantHasher>>,
    /// Lanes without a tenant.
    unused: Vec<u32>,
    /// The lane of the last push, or [`NO_LANE`].
    last: u32,
    len: usize,
}

impl<T: Task> Level<T> {
    fn new() -> Self {
        Self {
            lanes: Vec::new(),
            turns: VecDeque::new(),
            by_tenant: HashMap::default(),
            unused: Vec::new(),
            last: NO_LANE,
            len: 0,
        }
    }

    fn lane_of(&mut self, tenant: u32) -> u32 {
        if let Some(lane) = self.lanes.get(self.last as usize)
            && lane.tenant == tenant
        {
            return self.last;
        }
        let number = match self.by_tenant.get(&tenant) {
            Some(number) => *number,
            None => self.new_lane(tenant),
        };
        self.last = number;
        number
    }

    #[cold]
    fn new_lane(&mut self, tenant: u32) -> u32 {
        let lane = Lane {
            tenant,
            weight: 1,
            credit: 0,
            ring: VecDeque::new(),
        };
        let number = match self.unused.pop() {
            Some(number) => {
                self.lanes[number as usize] = lane;
                number
            }
            None => {
                self.lanes.push(lane);
                (self.lanes.len() - 1) as u32
            }
        };
        self.by_tenant.insert(tenant, number);
        number
    }

    fn push(&mut self, entry: Entry<T>) {
        let (tenant, weight) = (entry.task.tenant(), entry.task.weight().max(1));
        let number = self.lane_of(tenant);
        let lane = &mut self.lanes[number as usize];
        if lane.ring.is_empty() {
            // A tenant that was away starts with one ration: it can save nothing up.
            lane.credit = i64::from(SLICE) * i64::from(weight);
            self.turns.push_back(number);
        }
        lane.weight = weight;
        lane.ring.push_back(entry);
        self.len += 1;
    }

    /// Takes out the first task that `wanted` wants.
    fn take(&mut self, wanted: &impl Fn(&T) -> bool) -> Option<(bool, T)> {
        for turn in 0..self.turns.len() {
            let lane = &mut self.lanes[self.turns[turn] as usize];
            let Some(at) = lane.ring.iter().position(|e| wanted(&e.task)) else {
                continue;
            };
            let entry = lane.ring.remove(at)?;
            if lane.ring.is_empty() {
                // Its lane number stays with the tenant.
                self.turns.remove(turn);
            }
            self.len -= 1;
            return Some((entry.low, entry.task));
        }
        None
    }

    fn pop(&mut self) -> Option<(bool, T)> {
        loop {
            let number = *self.turns.front()?;
            let alone = self.turns.len() == 1;
            let lane = &mut self.lanes[number as usize];
            if !alone && lane.credit <= 0 {
                lane.credit += i64::from(SLICE) * i64::from(lane.weight);
                self.turns.rotate_left(1);
                continue;
            }
            let entry = lane.ring.pop_front()?;
            if entry.skips > 0 && !lane.ring.is_empty() {
                lane.ring.push_back(Entry {
                    skips: entry.skips - 1,
                    ..entry
                });
                continue;
            }
            self.len -= 1;
            lane.credit -= i64::from(SLICE);
            if alone {
                // Nobody else wanted the turn: no debt either.
                lane.credit = lane.credit.max(0);
            }
            if lane.ring.is_empty() {
                if lane.ring.capacity() > RING_KEEP {
                    lane.ring.shrink_to(RING_KEEP / 4);
                }
                self.turns.pop_front();
                if self.lanes.len() - self.unused.len() > IDLE_LANES {
                    self.retire(number);
                }
            }
            return Some((entry.low, entry.task));
        }
    }

    /// Makes an empty lane free for another tenant.
    fn retire(&mut self, number: u32) {
        let tenant = self.lanes[number as usize].tenant;
        self.by_tenant.remove(&tenant);
        if self.last == number {
            self.last = NO_LANE;
        }
        self.unused.push(number);
    }

    fn refund(&mut self, tenant: u32, reductions: u32) {
        if self.turns.len() < 2 {
            return;
        }
        if let Some(number) = self.by_tenant.get(&tenant) {
            let lane = &mut self.lanes[*number as usize];
            // An empty lane gets a fresh ration anyway.
            if !lane.ring.is_empty() {
                lane.credit += i64::from(reductions.min(SLICE));
            }
        }
    }
}

#[derive(Debug)]
struct Levels<T> {
    max: Level<T>,
    high: Level<T>,
    normal: Level<T>,
}

impl<T: Task> Levels<T> {
    fn level(&mut self, priority: Priority) -> &mut Level<T> {
        match priority {
            Priority::Max => &mut self.max,
            Priority::High => &mut self.high,
            Priority::Normal | Priority::Low => &mut self.normal,
        }
    }

    fn push(&mut self, priority: Priority, task: T) {
        let low = priority == Priority::Low;
        self.level(priority).push(Entry {
            task,
            skips: if low { LOW_SKIPS } else { 0 },
            low,
        });
    }

    fn pop(&mut self) -> Option<(Priority, T)> {
        if let Some((_, task)) = self.max.pop() {
            return Some((Priority::Max, task));
        }
        if let Some((_, task)) = self.high.pop() {
            return Some((Priority::High, task));
        }
        let (low, task) = self.normal.pop()?;
        let priority = match low {
            true => Priority::Low,
            false => Priority::Normal,
        };
        Some((priority, task))
    }
}

/// The run queue of one worker. See the head of the module.
#[derive(Debug)]
pub struct RunQueue<T> {
    levels: Mutex<Levels<T>>,
    /// Lengths by priority, and their sum.
    lens: CachePadded<[AtomicU32; 5]>,
}

const TOTAL: usize = 4;

impl<T: Task> RunQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            levels: Mutex::new(Levels {
                max: Level::new(),
                high: Level::new(),
                normal: Level::new(),
            }),
            lens: CachePadded(std::array::from_fn(|_| AtomicU32::new(0))),
        }
    }

    /// Only under the lock: so a load and a store do.
    fn count(&self, priority: Priority, by: i32) {
        for place in [priority as usize, TOTAL] {
            let len = self.lens[place].load(Ordering::Relaxed);
            self.lens[place].store(len.wrapping_add_signed(by), Ordering::Relaxed);
        }
    }

    /// Adds a task at the end. Returns how many are in the queue now. Wake a worker afterwards.
    #[inline]
    pub fn push(&self, priority: Priority, task: T) -> usize {
        let mut levels = self.levels.lock();
        levels.push(priority, task);
        self.count(priority, 1);
        self.len()
    }

    /// Takes the next task.
    #[inline]
    pub fn pop(&self) -> Option<(Priority, T)> {
        self.pop_after(None)
    }

    /// As [`RunQueue::pop`], first giving back what the task before did not use.
    #[inline]
    pub fn pop_after(&self, refund: Option<Refund>) -> Option<(Priority, T)> {
        if self.is_empty() {
            return None;
        }
        let mut levels = self.levels.lock();
        if let Some(refund) = refund {
            levels
                .level(refund.priority)
                .refund(refund.tenant, refund.reductions);
        }
        let (priority, task) = levels.pop()?;
        self.count(priority, -1);
        Some((priority, task))
    }

    /// Moves a task that waits with a lesser priority to the end of those of priority `to`. False when it is not here, or
    /// is as urgent already. Looks at every task of lesser priority: for the rare case that somebody more urgent waits for it.
    pub fn raise(&self, to: Priority, wanted: impl Fn(&T) -> bool) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut levels = self.levels.lock();
        for from in [Priority::High, Priority::Normal] {
            if from <= to {
                continue;
            }
            if let Some((low, task)) = levels.level(from).take(&wanted) {
                let from = if low { Priority::Low } else { from };
                levels.push(to, task);
                self.count(from, -1);
                self.count(to, 1);
                return true;
            }
        }
        false
    }

    /// Takes about half of what may be stolen, at most [`STEAL_AT_MOST`], the most urgent first, and appends
    /// it to `loot`. Returns how many.
    pub fn steal_half(&self, loot: &mut Vec<(Priority, T)>) -> usize {
        if self.is_empty() {
            return 0;
        }
        // Not worth waiting for: the victim is alive and working.
        let Some(mut levels) = self.levels.try_lock() else {
            return 0;
        };
        let wanted = self.len().div_ceil(2).min(STEAL_AT_MOST);
        let mut bound = Vec::new();
        let before = loot.len();
        while loot.len() - before < wanted && bound.len() < STEAL_AT_MOST {
            match levels.pop() {
                Some((priority, task)) if task.is_bound() => bound.push((priority, task)),
                Some(stolen) => loot.push(stolen),
                None => break,
            }
        }
        for (priority, task) in bound {
            // Back at the end: a thief costs a bound task its turn at most.
            levels.push(priority, task);
        }
        for (priority, _) in &loot[before..] {
            self.count(*priority, -1);
        }
        loot.len() - before
    }

    /// Takes tasks from `victim`: the first to run at once, the others into this queue.
    pub fn steal_from(&self, victim: &Self) -> Option<(Priority, T)> {
        let mut loot = Vec::new();
        if victim.steal_half(&mut loot) == 0 {
            return None;
        }
        let mut loot = loot.into_iter();
        let first = loot.next();
        if loot.len() > 0 {
            let mut levels = self.levels.lock();
            for (priority, task) in loot {
                levels.push(priority, task);
                self.count(priority, 1);
            }
        }
        first
    }

    /// How many tasks are in the queue.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.lens[TOTAL].load(Ordering::Relaxed) as usize
    }

    /// How many tasks of one priority are in the queue.
    #[inline]
    #[must_use]
    pub fn len_of(&self, priority: Priority) -> usize {
        self.lens[priority as usize].load(Ordering::Relaxed) as usize
    }

    /// Whether there is nothing to run.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Task> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
