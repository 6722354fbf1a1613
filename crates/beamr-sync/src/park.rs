//! Sleeping workers: a token per worker, and the set of those that sleep.
//!
//! # Parker
//!
//! One word: EMPTY, TOKEN or ASLEEP. **The owner** parks: it takes a token if there is one, else it
//! locks, says ASLEEP (unless a token came meanwhile) and waits on the condition variable until the
//! token is there. **Anybody** unparks: swaps TOKEN in, and only when it found ASLEEP does it lock
//! (so that the sleeper is certainly inside its wait) and signal. Tokens do not add up. A wake
//! that comes before the park makes it return at once: none is lost. Nothing spins, nothing polls, an
//! idle worker costs nothing.
//!
//! Orderings: unpark is Release, taking a token is Acquire: what the waker did before is visible to the
//! woken.
//!
//! # IdleSet
//!
//! Which workers sleep or are about to. The rule that no task waits while all workers sleep:
//!
//! 1. A worker that found nothing **announces** itself (sets its bit, then a SeqCst fence), then
//!    **looks once more** at everything it could run, then parks. If it found something, it
//!    **retracts**.
//! 2. Whoever makes a task runnable first **puts it into a queue**, then (SeqCst fence) looks at the set
//!    and **wakes** one member: takes its bit out and unparks it.
//!
//! Of the two fences one is first. If the worker's, the other side sees the bit. If the
//! other's, the worker's second look sees the task. (Store buffering: acquire and release would not do.)
//!
//! Only who takes a bit out unparks, so that two wake-ups go to two workers. A worker that retracts and finds
//! its bit gone was chosen by a waker: a token comes, its next park returns at once, harmlessly, and the worker
//! must see to that other task too, simply by looking at its queues again before it parks. A
//! worker that takes a task and leaves more in the queues should call [`IdleSet::wake_one`] in
//! turn, so that the wake-ups spread without anybody waking all.

use crate::prim::{
    Arc, AtomicU32, AtomicU64, CAN_BLOCK, CachePadded, Condvar, Mutex, Ordering, fence,
};
use std::time::{Duration, Instant};

const EMPTY: u32 = 0;
const TOKEN: u32 = 1;
const ASLEEP: u32 = 2;

#[derive(Debug)]
struct Inner {
    word: AtomicU32,
    lock: Mutex<()>,
    wake: Condvar,
}

/// Puts its owner to sleep. See the head of the module.
#[derive(Debug)]
pub struct Parker {
    inner: Arc<Inner>,
}

/// Wakes the owner of a [`Parker`]. Clones wake the same one.
#[derive(Clone, Debug)]
pub struct Unparker {
    inner: Arc<Inner>,
}

/// Why a park returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Somebody unparked, now or before.
    Token,
    /// The time is over.
    Timeout,
    /// This build cannot block: the caller returns to its host instead.
    CannotBlock,
}

impl Parker {
    /// Makes a parker without a token.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                word: AtomicU32::new(EMPTY),
                lock: Mutex::new(()),
                wake: Condvar::new(),
            }),
        }
    }

    /// A handle that wakes this parker.
    #[must_use]
    pub fn unparker(&self) -> Unparker {
        Unparker {
            inner: self.inner.clone(),
        }
    }

    /// Takes the token if there is one.
    fn take_token(&self) -> bool {
        // A load first: the common answer is no, and it keeps the line shared.
        self.inner.word.load(Ordering::Relaxed) == TOKEN
            && self.inner.word.swap(EMPTY, Ordering::Acquire) == TOKEN
    }

    /// Sleeps until somebody unparks. Returns at once when somebody did since the last park.
    pub fn park(&mut self) -> Woken {
        self.sleep(None)
    }

    /// As [`Parker::park`], at most for this long.
    pub fn park_timeout(&mut self, timeout: Duration) -> Woken {
        if timeout.is_zero() || !CAN_BLOCK {
            return self.without_sleep();
        }
        // A time too far to be told is no limit.
        self.sleep(Instant::now().checked_add(timeout))
    }

    /// As [`Parker::park`], at most until this moment.
    pub fn park_until(&mut self, deadline: Instant) -> Woken {
        self.sleep(Some(deadline))
    }

    fn without_sleep(&mut self) -> Woken {
        match self.take_token() {
            true => Woken::Token,
            false if CAN_BLOCK => Woken::Timeout,
            false => Woken::CannotBlock,
        }
    }

    fn sleep(&mut self, deadline: Option<Instant>) -> Woken {
        if self.take_token() {
            return Woken::Token;
        }
        if !CAN_BLOCK {
            return Woken::CannotBlock;
        }
        let inner = &*self.inner;
        let mut guard = inner.lock.lock();
        if inner
            .word
            .compare_exchange(EMPTY, ASLEEP, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            // A token came since; only the owner changes the word otherwise.
            inner.word.swap(EMPTY, Ordering::Acquire);
            return Woken::Token;
        }
        loop {
            match deadline {
                None => guard = inner.wake.wait(guard),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        // Leaving ASLEEP and looking for a token is one step.
                        return match inner.word.swap(EMPTY, Ordering::Acquire) {
                            TOKEN => Woken::Token,
                            _ => Woken::Timeout,
                        };
                    }
                    guard = inner.wake.wait_timeout(guard, left);
                }
            }
            if inner
                .word
                .compare_exchange(TOKEN, EMPTY, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Woken::Token;
            }
            // Woken for no reason.
        }
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Unparker {
    /// Wakes the owner, or makes its next park return at once.
    pub fn unpark(&self) {
        let inner = &*self.inner;
        if inner.word.swap(TOKEN, Ordering::Release) == ASLEEP {
            // The sleeper set ASLEEP under the lock and gives it up only by waiting.
            drop(inner.lock.lock());
            inner.wake.notify_one();
        }
    }
}

/// The set of workers that sleep. See the head of the module.
#[derive(Debug)]
pub struct IdleSet {
    /// One bit per worker.
    words: Box<[CachePadded<AtomicU64>]>,
    unparkers: Box<[Unparker]>,
}

impl IdleSet {
    /// A set for workers with these handles, all awake. A worker's number is its place.
    #[must_use]
    pub fn new(unparkers: impl IntoIterator<Item = Unparker>) -> Self {
        let unparkers: Box<[_]> = unparkers.into_iter().collect();
        Self {
            words: (0..unparkers.len().div_ceil(64))
                .map(|_| CachePadded(AtomicU64::new(0)))
                .collect(),
            unparkers,
        }
    }

    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.unparkers.len()
    }

    /// The worker is about to sleep. After this call it must look at its queues once more.
    pub fn announce(&self, worker: usize) {
        self.words[worker / 64].fetch_or(1 << (worker % 64), Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// The worker does not sleep (any more). False: a waker had chosen it; a token is there or comes.
    pub fn retract(&self, worker: usize) -> bool {
        let bit = 1 << (worker % 64);
        self.words[worker / 64].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// After putting a task where any worker finds it: wakes one that sleeps, if any.
    #[inline]
    pub fn wake_one(&self) -> Option<usize> {
        self.wake_one_below(self.unparkers.len())
    }

    /// As [`IdleSet::wake_one`], but only workers whose number is less than `limit`: the others may sleep and run nothing.
    #[inline]
    pub fn wake_one_below(&self, limit: usize) -> Option<usize> {
        // Pairs with the fence of `announce`.
        fence(Ordering::SeqCst);
        for (place, word) in self.words.iter().enumerate() {
            let allowed = match limit.saturating_sub(place * 64) {
                0 => break,
                n if n >= 64 => u64::MAX,
                n => (1 << n) - 1,
            };
            let mut bits = word.load(Ordering::Relaxed) & allowed;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                // Only who takes the bit out unparks.
                if word.fetch_and(!(1 << bit), Ordering::AcqRel) & (1 << bit) != 0 {
                    let worker = place * 64 + bit as usize;
                    self.unparkers[worker].unpark();
                    return Some(worker);
                }
                bits = word.load(Ordering::Relaxed) & allowed;
            }
        }
        None
    }

    /// After putting a task where this worker finds it: wakes the worker if it sleeps.
    #[inline]
    pub fn wake(&self, worker: usize) -> bool {
        fence(Ordering::SeqCst);
        let bit = 1 << (worker % 64);
        let word = &self.words[worker / 64];
        if word.load(Ordering::Relaxed) & bit == 0
            || word.fetch_and(!bit, Ordering::AcqRel) & bit == 0
        {
            return false;
        }
        self.unparkers[worker].unpark();
        true
    }

    /// Wakes everybody, asleep or not: for shutdown and for changes that all must see.
    pub fn wake_all(&self) {
        for word in &self.words {
            word.swap(0, Ordering::AcqRel);
        }
        for unparker in &self.unparkers {
            unparker.unpark();
        }
    }

    /// How many workers sleep or are about to.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.load(Ordering::Relaxed).count_ones() as usize)
            .sum()
    }
}
