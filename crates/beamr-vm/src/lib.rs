//! Processes, heaps, garbage collection, signals, schedulers, code, ets, lowering.
//!
//! The VM without its engines, natives and I/O: it opens no file and knows no native but those that
//! `lower::op` names. `engine` holds the contract between the VM and an engine; `rt` what engines call.

pub mod code;
pub mod door;
pub mod engine;
pub mod ets;
pub mod gc;
pub mod host;
pub(crate) mod literals;
pub mod lower;
pub mod machine;
pub mod match_spec;
pub mod namespace;
pub mod native_process;
pub mod port;
pub mod process;
pub mod registry;
pub mod rt;
pub mod sched;
pub mod signal;
pub mod timer;
pub mod trace;
pub mod vm;
