//! What a worker counts: turns, collections, sleep. It alone writes (other threads share one set of counters);
//! everybody reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use beamr_term::BinaryCount;

/// Counters of one worker.
#[derive(Debug, Default)]
pub struct WorkerStats {
    switches: AtomicU64,
    collections: AtomicU64,
    reclaimed_words: AtomicU64,
    slept_ns: AtomicU64,
    /// When the sleep that lasts began, plus one; 0 while awake.
    sleeps_since: AtomicU64,
    /// Binaries made and freed.
    pub(crate) binaries: BinaryCount,
}

/// One writer: no read-modify-write is needed.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

impl WorkerStats {
    /// A process is switched in.
    #[inline]
    pub(crate) fn switched(&self) {
        bump(&self.switches, 1);
    }
    /// A heap was collected.
    pub(crate) fn collected(&self, reclaimed: usize) {
        bump(&self.collections, 1);
        bump(&self.reclaimed_words, reclaimed as u64);
    }
    /// As [`WorkerStats::collected`] for counters that several threads write.
    pub(crate) fn collected_elsewhere(&self, reclaimed: usize) {
        self.collections.fetch_add(1, Relaxed);
        self.reclaimed_words.fetch_add(reclaimed as u64, Relaxed);
    }
    /// The worker goes to sleep.
    pub(crate) fn sleeps(&self, now: u64) {
        self.sleeps_since.store(now + 1, Relaxed);
    }
    /// The worker is awake again.
    pub(crate) fn wakes(&self, now: u64) {
        let since = self.sleeps_since.load(Relaxed);
        self.sleeps_since.store(0, Relaxed);
        bump(&self.slept_ns, (now + 1).saturating_sub(since));
    }
    /// Nanoseconds slept until `now`.
    pub fn slept(&self, now: u64) -> u64 {
        let since = self.sleeps_since.load(Relaxed);
        let lasts = if since == 0 {
            0
        } else {
            (now + 1).saturating_sub(since)
        };
        self.slept_ns.load(Relaxed) + lasts
    }
}

/// Sums over workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Processes switched in.
    pub switches: u64,
    /// Collections.
    pub collections: u64,
    /// Words that these reclaimed.
    pub reclaimed_words: u64,
    /// Bytes of counted binaries that exist.
    pub binary_bytes: i64,
}

impl Totals {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a WorkerStats>) -> Totals {
        let mut t = Totals::default();
        for s in all {
            t.switches += s.switches.load(Relaxed);
            t.collections += s.collections.load(Relaxed);
            t.binary_bytes += s.binaries.bytes();
            t.reclaimed_words += s.reclaimed_words.load(Relaxed);
        }
        t
    }
}
