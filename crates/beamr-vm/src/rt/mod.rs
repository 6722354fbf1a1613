//! Runtime helpers that both engines call.
//!
//! Contract: before a call the engine stores heap top and stack pointer into `body.heap` and the reductions into `ctx.fcalls`;
//! after it, it loads them again. `ip` is the position of the instruction that calls (its own address in
//! interpreted code). X registers below `live` are roots of a collection.
//!
//! A returned [`CodePos`] is where to go on with the registers as set; null means that the process has ended
//! (the engine returns [`Stop::Exited`](crate::engine::Stop::Exited)).

mod calls;
mod exception;
mod messages;
mod natives;
mod trace;
mod worker;

pub use crate::gc::collect;
pub use calls::{
    Target, apply_failed, bad_fun, export_fun, export_or_undefined, fun_entry, fun_target,
    is_callable, late_fun, resolve, resolve_export, resolve_or_undefined, spread, undefined,
};
pub(crate) use exception::caller_frames;
pub use exception::{
    Frame, build_stacktrace, catch_value, panicked, raise, raw_trace_class, reraise, stack_frames,
};
pub use messages::{
    Ending, WaitOutcome, hibernate, is_local, loop_rec, loop_rec_end, marker_bind, marker_clear,
    marker_reserve, marker_use, next_message, normal_exit, poll_signals, remove_message, send,
    send_carried, send_with_priority, timeout, wait, wait_timeout,
};
pub use natives::{Step, escape, is_dirty, plain_error, polls, settle};
pub use trace::{breakpoint, detour, original, rerouted, trace_returned};
pub use worker::{ApplyCache, NativeName, NativeNames, ProcessSide, Uncaught, WorkerCode};
