//! Models of the protocols, explored by loom: all interleavings and all values that weak memory allows, up to a
//! bound of preemptions.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beamr-sync --release --test loom`.
//!
//! Each file says which mutations of the code were tried and whether its models found them. Three threads and
//! two or three preemptions keep the whole run near a minute; LOOM_MAX_PREEMPTIONS sets another bound for all.
#![cfg(loom)]

mod breakpoints;
mod epoch;
mod gate;
mod park;
mod run_queue;
mod signal_queue;
mod slot_table;
mod state;
mod timer_wheel;

use beamr_sync::prim::{
    Arc, AtomicBool, AtomicPtr, AtomicUsize, Mutex, Ordering, UnsafeCell, fence,
};
use beamr_sync::state::{EndDirty, EndRun, Phase, ProcState};
use beamr_sync::{
    Domain, IdleSet, Parker, Priority, RunQueue, SharedWheel, SignalQueue, SlotId, SlotTable, Task,
};
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(move || {
        fence(Ordering::SeqCst);
        model();
    });
}

/// Plain memory whose races and use after death the checker sees.
struct Plain(UnsafeCell<u64>);

// SAFETY: that accesses do not overlap is what the models check.
unsafe impl Send for Plain {}
// SAFETY: as above.
unsafe impl Sync for Plain {}

const DEAD: u64 = 0xdead;

impl Plain {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn read(&self) -> u64 {
        // SAFETY: the checker reports an overlapping write.
        let value = self.0.with(|value| unsafe { *value });
        assert_ne!(value, DEAD);
        value
    }

    fn write(&self, new: u64) {
        // SAFETY: the checker reports any overlapping access.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// As `Plain`, and its death is a write.
struct Mortal(Plain);

impl Mortal {
    fn new(value: u64) -> Self {
        Self(Plain::new(value))
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.0.write(DEAD);
    }
}

/// A process as the virtual machine has it: slot, body, what it has received.
struct Process {
    state: ProcState,
    signals: SignalQueue<u64>,
    body: Plain,
    runs: RunQueue<Token>,
}

/// The one run queue entry of the process.
struct Token;

impl Task for Token {}

impl Process {
    fn new(state: ProcState) -> Self {
        Self {
            state,
            signals: SignalQueue::new(),
            body: Plain::new(0),
            runs: RunQueue::new(),
        }
    }

    /// Sends; true when the receiver was put into the run queue.
    fn send(&self, signal: u64) -> bool {
        let enqueued = self.signals.push(signal).unwrap() && self.state.notify();
        if enqueued {
            self.runs.push(Priority::Normal, Token);
        }
        enqueued
    }

    /// One turn of a worker: false when nothing is queued.
    fn turn(&self) -> bool {
        let Some((_, token)) = self.runs.pop() else {
            return false;
        };
        // Nobody but the holder of the entry takes the process out of this phase.
        assert_eq!(self.state.snapshot().phase(), Phase::Queued);
        let _ = self.state.begin_run();
        loop {
            for signal in self.signals.fetch() {
                self.body.write(self.body.read() + signal);
            }
            match self.state.end_run_wait() {
                EndRun::Parked => return true,
                EndRun::Continue(_) => (),
                EndRun::Enqueue => {
                    self.runs.push(Priority::Normal, token);
                    return true;
                }
            }
        }
    }

    /// When all is quiet: nothing waits for a process that nobody will run.
    fn finish(&self) -> u64 {
        while self.turn() {}
        assert_eq!(self.state.snapshot().phase(), Phase::Waiting);
        assert!(self.signals.is_empty(), "a signal to a process that sleeps");
        self.body.read()
    }
}
