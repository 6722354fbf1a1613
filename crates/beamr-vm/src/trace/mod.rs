//! Tracing: who is told what of which process, and of which calls.
//!
//! | file | what |
//! |---|---|
//! | `flags` | trace flags of processes and their names |
//! | `tracee` | what is traced of one process, for whom; the sessions |
//! | `event` | trace messages: building and sending them |
//! | `spec` | match specifications in trace contexts, with their actions |
//! | `actions` | what bodies of these specifications do |
//! | `breaks` | breakpoints of functions, and what engines must do |
//! | `calls` | what happens at them: messages of calls and returns, counts, times |
//! | `seq` | sequential tracing: tokens |
//! | `process` | events of processes: send, receive, spawn, links, names, scheduling, collections |
//!
//! # What it costs when it is off
//!
//! A process has one word of bits in its slot ([`Tracing`]): the union of what sessions trace of it, and whether something else
//! wants to see its events (`save_calls`). Sends and receives read that word, everything else is behind it.
//!
//! # Sharing
//!
//! The word is changed under the lock of the list beside it and read without: a process that runs meanwhile sees a change at
//! its next event. Who finds a bit takes the lock and reads the list, which is what counts; so an event that comes after a
//! native that turns a flag on or off has returned is traced, or not, as that native said.
//!
//! A trace message is a message like any other, pushed by the thread that runs the traced process at the moment of the event. So
//! what `trace_delivered` promises holds when it is called: nothing waits anywhere else. A tracer that is dead is noticed by the
//! next event for it, or by who asks: the flags it had are taken away then.

mod actions;
pub mod breaks;
pub mod calls;
mod event;
pub mod flags;
pub mod process;
pub mod seq;
pub mod spec;
mod tracee;

pub use event::{Names, timestamp};
pub(crate) use tracee::Tracees;
pub use tracee::{
    EventPattern, Session, Trace, Tracee, Tracing, set_all, to_self, traced, with_tracing,
};
