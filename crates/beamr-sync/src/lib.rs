//! Queues, tables, parking and timers: every lock-free protocol of the VM, model-checked.
//!
//! This crate knows no terms and no processes. Everything is generic over what it carries, so that
//! a model checker rebuilds only this crate: under `--cfg loom` the module [`prim`] hands out
//! loom's atomics, cells, locks and threads instead of those of `std`.
//!
//! | module | what it is | who may touch it |
//! |---|---|---|
//! | [`signal_queue`] | signals to one receiver, closed when it dies | many push, one fetches |
//! | [`state`] | the scheduling word of a process | everybody |
//! | [`run_queue`] | a worker's tasks by priority and tenant | its worker, thieves, wakers |
//! | [`park`] | sleeping workers | a worker sleeps, everybody wakes |
//! | [`epoch`] | when may memory that others read be freed | participants |
//! | [`slot_table`] | the process table: identifiers to counted values | everybody |
//! | [`timer_wheel`] | timers of one worker | one owner, or all under a lock |
//! | [`breakpoints`] | words of running code that are exchanged for a trap | who traces writes, who runs the code reads |
//! | [`gate`] | waiting for an outcome from outside the VM | everybody |
//!
//! The header of each module is its protocol: who may do what when, which races remain and why they
//! are safe, and why the memory orderings suffice. The models that check it are `tests/loom.rs`.

#![deny(missing_docs)]

pub mod breakpoints;
pub mod epoch;
pub mod gate;
pub mod park;
pub mod prim;
pub mod run_queue;
pub mod signal_queue;
pub mod slot_table;
pub mod state;
pub mod timer_wheel;

pub use epoch::{Domain, Guard, Participant};
pub use gate::{Gate, OneShot};
pub use park::{IdleSet, Parker, Unparker};
pub use run_queue::{Priority, RunQueue, Task};
pub use signal_queue::{Batch, Node, SignalQueue};
pub use slot_table::{SlotId, SlotTable};
pub use state::{EndRun, ProcState, Snapshot};
pub use timer_wheel::{SharedWheel, TimerHandle, TimerWheel};
