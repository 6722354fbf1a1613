//! The scheduling word of a process: who runs it, who must put it into a run queue, and how a
//! signal that arrives while it goes to sleep is not lost.
//!
//! # Model
//!
//! A process is a **slot** (what others touch: signal queue, this word) and a **body** (heap, stack,
//! registers), which one thread at a time owns. The word says in which *phase* the slot is:
//!
//! ```text
//!            notify / resume / end_dirty (they enqueue)
//!   Waiting ------------------------------------------> Queued
//!      ^                                                  | begin_run (the worker that popped it)
//!      | end_run_wait / end_run_yield when blocked        v
//!      +----------------------------------------------- Running --- finish ---> Exited
//!                                                         |  ^
//!                                                         +--+ end_run_yield -> Queued
//! ```
//!
//! and carries the flags
//!
//! * NOTIFIED: somebody pushed a signal (or wants attention) since the runner last looked;
//! * READY: the process has work of its own although it is not running: it was preempted
//!   while suspended, or its dirty call ended while a worker handled its signals;
//! * DIRTY: the body is away with a dirty thread or a collector. The slot can still be run, for
//!   the signals that need no body;
//! * EXITING: set by its runner; lifts what DIRTY and suspension forbid;
//! * a count of suspensions.
//!
//! A process that is suspended or whose body is away is *blocked*: it is run for its signals only.
//!
//! # Protocol
//!
//! 1. Whoever makes the phase Queued (a transition that returns *must enqueue*) puts the task into
//!    exactly one run queue. So at most one run queue entry per process exists, and **only
//!    who holds that entry** may call `begin_run`.
//! 2. **Only the runner** (from `begin_run` to the matching end) calls `absorb`, `end_run_*`,
//!    `begin_dirty`, `set_exiting` and `finish`. It owns the body unless DIRTY is set.
//! 3. A sender pushes first and notifies after (when the push found the queue empty).
//!    The runner clears NOTIFIED first (`begin_run`, `absorb`, an `end_run_wait` that continues) and
//!    fetches after. It may go to wait only by a compare-and-swap that sees NOTIFIED clear.
//! 4. `begin_dirty` comes before the body is handed to the dirty pool, `end_dirty` after the body
//!    is back where a worker finds it.
//!
//! # Why no wake-up is lost
//!
//! Every transition is a read-modify-write of one word, so that they have one order. Take a
//! sender's notify N and the runner's transition W from Running to Waiting. If N comes before W, W
//! would have seen NOTIFIED and not happened, unless the runner cleared it between; then
//! clearing read N's write (or a later one in its release sequence), so that the push is visible to
//! the fetch that follows. If N comes after W, it sees Waiting and enqueues. **notify must write even
//! when it changes no bit**: a plain load could be satisfied before the push is visible
//! and see a phase that is over (store buffering); the write gives it a place in the order.
//!
//! All transitions are AcqRel: each sees what the thread of the previous transition did, which also
//! hands the body from runner to runner.
//!
//! # Races that remain
//!
//! * A notify after the runner fetched the signal: the next `end_run_wait` continues once for
//!   nothing, or the process is enqueued once for nothing. Costs time, harms nothing.
//! * `suspend` while Running takes effect at the next end of run.
//! * `snapshot` of a process that somebody else runs is outdated when it returns.

use crate::prim::{AtomicU32, Ordering};

const PHASE: u32 = 0b11;
const WAITING: u32 = 0;
const QUEUED: u32 = 1;
const RUNNING: u32 = 2;
const EXITED: u32 = 3;
const NOTIFIED: u32 = 1 << 2;
const READY: u32 = 1 << 3;
const DIRTY: u32 = 1 << 4;
const EXITING: u32 = 1 << 5;
const SUSPEND_ONE: u32 = 1 << 8;
const SUSPEND_MASK: u32 = !(SUSPEND_ONE - 1);

/// Which phase a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not in a run queue; a notification puts it there.
    Waiting,
    /// In a run queue, or in the hands of who is about to put it there.
    Queued,
    /// A worker runs it or handles its signals.
    Running,
    /// Dead: nothing changes any more.
    Exited,
}

/// The word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Snapshot(u32);

impl Snapshot {
    /// The phase.
    #[must_use]
    pub fn phase(self) -> Phase {
        match self.0 & PHASE {
            WAITING => Phase::Waiting,
            QUEUED => Phase::Queued,
            RUNNING => Phase::Running,
            _ => Phase::Exited,
        }
    }

    /// Whether the body is away with a dirty thread or a collector.
    #[must_use]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Whether the process is suspended at least once.
    #[must_use]
    pub fn is_suspended(self) -> bool {
        self.0 & SUSPEND_MASK != 0
    }

    /// How often the process is suspended.
    #[must_use]
    pub fn suspend_count(self) -> u32 {
        self.0 / SUSPEND_ONE
    }

    /// Whether the process is on its way out (or dead).
    #[must_use]
    pub fn is_exiting(self) -> bool {
        self.0 & EXITING != 0 || self.0 & PHASE == EXITED
    }

    /// Whether the process has work of its own while it does not run.
    #[must_use]
    pub fn is_ready(self) -> bool {
        self.0 & READY != 0
    }

    /// Whether a notification waits to be absorbed.
    #[must_use]
    pub fn is_notified(self) -> bool {
        self.0 & NOTIFIED != 0
    }

    /// Whether the process itself must not run, only its signals be handled.
    #[must_use]
    pub fn is_blocked(self) -> bool {
        blocked(self.0)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.phase())?;
        for (flag, name) in [
            (NOTIFIED, "notified"),
            (READY, "ready"),
            (DIRTY, "dirty"),
            (EXITING, "exiting"),
        ] {
            if self.0 & flag != 0 {
                write!(f, "+{name}")?;
            }
        }
        if self.is_suspended() {
            write!(f, "+suspended({})", self.suspend_count())?;
        }
        Ok(())
    }
}

fn blocked(word: u32) -> bool {
    word & EXITING == 0 && word & (DIRTY | SUSPEND_MASK) != 0
}

/// How an attempt to stop running ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EndRun {
    /// The process waits. The caller has no right to it any more.
    Parked,
    /// The phase is Queued: the caller must put the process into a run queue.
    Enqueue,
    /// The process is still Running and the caller its runner: fetch signals again (and, when the
    /// snapshot is ready and not blocked, run the process).
    Continue(Snapshot),
}

/// What to do after a dirty call or an outside collection gave the body back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum EndDirty {
    /// The phase became Queued: the caller must put the process into a run queue.
    Enqueue,
    /// Somebody else will find the process ready.
    Nothing,
    /// The process died meanwhile: the caller keeps the body and frees it.
    Orphan,
}

/// The scheduling word of one process. See the head of the module for the protocol.
pub struct ProcState(AtomicU32);

impl std::fmt::Debug for ProcState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl ProcState {
    /// A process that waits for its first notification. A notification enqueues it.
    #[must_use]
    pub fn new_waiting() -> Self {
        Self(AtomicU32::new(WAITING))
    }

    /// A process that has work: its maker must put it into a run queue.
    #[must_use]
    pub fn new_queued() -> Self {
        Self(AtomicU32::new(QUEUED | READY))
    }

    /// The word as it is or was a moment ago.
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// One transition: `next` computes the new word and a result from the old one. Always writes,
    /// see the head of the module.
    #[inline(always)]
    fn transition<R>(&self, next: impl Fn(u32) -> (u32, R)) -> R {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let (new, result) = next(word);
            match self
                .0
                .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return result,
                Err(now) => word = now,
            }
        }
    }

    /// Anybody, after pushing a signal on an empty queue or publishing another reason to look.
    /// True: the caller must enqueue the process.
    #[inline]
    #[must_use = "a true result obliges the caller to enqueue the process"]
    pub fn notify(&self) -> bool {
        self.transition(|word| match word & PHASE {
            WAITING => (word & !PHASE | QUEUED, true),
            EXITED => (word, false),
            _ => (word | NOTIFIED, false),
        })
    }

    /// The worker that popped the process begins to run it. When the result is blocked, only
    /// its signals may be handled. READY is taken unless blocked.
    #[inline]
    pub fn begin_run(&self) -> Snapshot {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, QUEUED, "{:?}", Snapshot(word));
            let mut new = word & !(PHASE | NOTIFIED) | RUNNING;
            if !blocked(word) {
                new &= !READY;
            }
            (new, Snapshot(word & !(PHASE | NOTIFIED) | RUNNING))
        })
    }

    /// The runner, before a fetch in the middle of a run: clears NOTIFIED so that the end of
    /// the run does not look again for nothing. Costs one load when there is nothing to clear.
    #[inline]
    pub fn absorb(&self) {
        if self.0.load(Ordering::Relaxed) & NOTIFIED != 0 {
            self.0.fetch_and(!NOTIFIED, Ordering::AcqRel);
        }
    }

    /// The runner has handled all signals and the process has nothing to do: go to wait. Never
    /// returns [`EndRun::Enqueue`]: when there is something new, the runner continues.
    #[inline]
    pub fn end_run_wait(&self) -> EndRun {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, RUNNING, "{:?}", Snapshot(word));
            let takes_ready = word & READY != 0 && !blocked(word);
            if word & NOTIFIED != 0 || takes_ready {
                let mut new = word & !NOTIFIED;
                if takes_ready {
                    new &= !READY;
                }
                (new, EndRun::Continue(Snapshot(word & !NOTIFIED)))
            } else {
                (word & !PHASE | WAITING, EndRun::Parked)
            }
        })
    }

    /// As [`ProcState::end_run_wait`], but something new means a new turn in the run queue instead
    /// of going on: for a runner whose reductions are used up.
    #[inline]
    pub fn end_run_wait_or_enqueue(&self) -> EndRun {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, RUNNING, "{:?}", Snapshot(word));
            if word & NOTIFIED != 0 || (word & READY != 0 && !blocked(word)) {
                (word & !PHASE | QUEUED, EndRun::Enqueue)
            } else {
                (word & !PHASE | WAITING, EndRun::Parked)
            }
        })
    }

    /// The runner stops although the process has more to do (its reductions are used up, or it could
    /// go on but is blocked). Parked means: it is blocked, and who lifts that enqueues it.
    #[inline]
    pub fn end_run_yield(&self) -> EndRun {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, RUNNING, "{:?}", Snapshot(word));
            if blocked(word) && word & NOTIFIED == 0 {
                (word & !PHASE | WAITING | READY, EndRun::Parked)
            } else {
                (word & !PHASE | QUEUED | READY, EndRun::Enqueue)
            }
        })
    }

    /// The runner is about to hand the body to a dirty thread or a collector. Call it *before* the
    /// hand-over. The run is over; Enqueue means that signals came in meanwhile.
    pub fn begin_dirty(&self) -> EndRun {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, RUNNING, "{:?}", Snapshot(word));
            debug_assert_eq!(word & DIRTY, 0, "the body is already away");
            if word & NOTIFIED != 0 {
                (word & !PHASE | QUEUED | DIRTY, EndRun::Enqueue)
            } else {
                (word & !PHASE | WAITING | DIRTY, EndRun::Parked)
            }
        })
    }

    /// The dirty thread has put the body back into the slot, and the process goes on with what the call gave. When the
    /// process died meanwhile ([`EndDirty::Orphan`]) nobody else looks there: the caller takes the body out and frees it.
    pub fn end_dirty(&self) -> EndDirty {
        self.transition(|word| {
            debug_assert_ne!(word & DIRTY, 0, "no body is away");
            let back = word & !DIRTY;
            match word & PHASE {
                EXITED => (back, EndDirty::Orphan),
                // Suspended: stays where it is, the last resume enqueues it.
                WAITING if blocked(back) => (back | READY, EndDirty::Nothing),
                WAITING => (back & !PHASE | QUEUED | READY, EndDirty::Enqueue),
                _ => (back | READY, EndDirty::Nothing),
            }
        })
    }

    /// As [`ProcState::end_dirty`] for a process that had nothing to do when its body went away (it was collected while
    /// it waited): it is run for what waits for the body, but is not made ready.
    pub fn end_dirty_idle(&self) -> EndDirty {
        self.transition(|word| {
            debug_assert_ne!(word & DIRTY, 0, "no body is away");
            let back = word & !DIRTY;
            match word & PHASE {
                EXITED => (back, EndDirty::Orphan),
                WAITING => (back & !PHASE | QUEUED, EndDirty::Enqueue),
                // A runner that saw no body must look again.
                _ => (back | NOTIFIED, EndDirty::Nothing),
            }
        })
    }

    /// Anybody suspends the process once more. Returns the word before, or `None` when the count
    /// is exhausted. A running process goes on until its run ends.
    pub fn suspend(&self) -> Option<Snapshot> {
        self.transition(|word| match word.checked_add(SUSPEND_ONE) {
            Some(new) => (new, Some(Snapshot(word))),
            None => (word, None),
        })
    }

    /// Anybody takes one suspension back. True: the caller must enqueue the process. Taking back
    /// what was not given is a mistake of the caller and does nothing.
    #[must_use = "a true result obliges the caller to enqueue the process"]
    pub fn resume(&self) -> bool {
        self.transition(|word| {
            let Some(new) = word.checked_sub(SUSPEND_ONE) else {
                debug_assert!(false, "resume without suspend");
                return (word, false);
            };
            if word & PHASE == WAITING && new & READY != 0 && !blocked(new) {
                (new & !PHASE | QUEUED, true)
            } else {
                (new, false)
            }
        })
    }

    /// The runner marks the process as exiting. From here on neither suspension nor an absent
    /// body block it.
    pub fn set_exiting(&self) -> Snapshot {
        Snapshot(self.0.fetch_or(EXITING, Ordering::AcqRel))
    }

    /// The runner ends the process, after closing its signal queue. The result tells whether the
    /// body is away: then the dirty thread frees it ([`EndDirty::Orphan`]), else the caller does.
    pub fn finish(&self) -> Snapshot {
        self.transition(|word| {
            debug_assert_eq!(word & PHASE, RUNNING, "{:?}", Snapshot(word));
            (word & DIRTY | EXITING | EXITED, Snapshot(word))
        })
    }
}
