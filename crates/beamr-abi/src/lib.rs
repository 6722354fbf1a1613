//! What a native function sees: process context, allocation, errors, traps, native tables.
//!
//! A native is a Rust function `fn(&mut Ctx, &[Word]) -> Result<Word, Escape>` with a row in a
//! native table ([`NativeEntry`]) that declares its class, capability and determinism. It builds terms
//! through [`Ctx`] (an [`Alloc`](beamr_term::Alloc)); no term moves while it runs: what does not
//! fit the heap opens a fragment, and collection comes after the return. It fails by
//! `Err(ctx.badarg())` and its kin; it asks to be continued by [`Ctx::trap`].
//!
//! This crate knows the heap's shape, not its collector; the process's registers, not its
//! scheduler.

mod body;
mod ctx;
mod heap;
mod native;

pub use body::{Body, SavedArgs};
pub use ctx::{
    Ctx, ErrorInfo, Escape, ExceptionClass, Pending, Raise, Regs, TrapTarget, X_REGISTERS,
};
pub use heap::{Heap, STACK_SLACK};
pub use native::{
    Capability, Determinism, NativeClass, NativeEntry, NativeFn, NativeTable, NativeTableError,
    ReleaseSpan,
};
