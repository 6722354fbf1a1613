//! Sending, receiving, waiting, signals.

use beamr_abi::{Ctx, Pending, Regs};
use beamr_term::Word;

use crate::engine::CodePos;

/// `Dest ! Message` (x0, x1 in the caller): sends, or gives what to do instead (`badarg`, yield when the
/// receiver's VM asks for it).
pub fn send(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    let _ = (ctx, to, message);
    unimplemented!()
}

/// `loop_rec`: the message at the receive position, adopted into the heap, or `None` when there is none.
/// May run signal handlers; an exit signal that ends the process gives `Err`.
///
/// # Safety
/// The contract of the module.
pub unsafe fn loop_rec(regs: &mut Regs) -> Result<Option<Word>, CodePos> {
    let _ = regs;
    unimplemented!()
}

/// `loop_rec_end`: leaves the message in the queue and moves the receive position on.
pub fn loop_rec_end(ctx: &mut Ctx) {
    let _ = ctx;
    unimplemented!()
}

/// `remove_message`: takes the message out, cancels the receive's timer, resets the position.
pub fn remove_message(ctx: &mut Ctx) {
    let _ = ctx;
    unimplemented!()
}

/// What a wait does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitOutcome {
    /// Stop with [`Stop::Waiting`](crate::engine::Stop::Waiting), resume at the retry label without live registers.
    Sleep,
    /// A signal came meanwhile: go to the retry label at once.
    Retry,
    /// The time is over: fall through.
    TimedOut,
    /// The timeout is not a valid value: raise `timeout_value`.
    BadTimeout,
}

/// `wait`.
pub fn wait(ctx: &mut Ctx) -> WaitOutcome {
    let _ = ctx;
    unimplemented!()
}

/// `wait_timeout`: sets the timer on first entry, knows on later ones whether it fired.
pub fn wait_timeout(ctx: &mut Ctx, timeout: Word) -> WaitOutcome {
    let _ = (ctx, timeout);
    unimplemented!()
}

/// `timeout`: behind an expired wait; resets the receive position and timer.
pub fn timeout(ctx: &mut Ctx) {
    let _ = ctx;
    unimplemented!()
}

/// `recv_marker_reserve`: a marker term (or `[]`-like atom `undefined`) for the current end of the queue.
pub fn marker_reserve(ctx: &mut Ctx) -> Word {
    let _ = ctx;
    unimplemented!()
}

/// `recv_marker_bind`.
pub fn marker_bind(ctx: &mut Ctx, marker: Word, reference: Word) {
    let _ = (ctx, marker, reference);
    unimplemented!()
}

/// `recv_marker_clear`.
pub fn marker_clear(ctx: &mut Ctx, reference: Word) {
    let _ = (ctx, reference);
    unimplemented!()
}

/// `recv_marker_use`: the receive that follows starts at the marker.
pub fn marker_use(ctx: &mut Ctx, reference: Word) {
    let _ = (ctx, reference);
    unimplemented!()
}

/// Whether signals wait that must be handled before the process goes on (checked by the engine when a slice starts and where a native
/// returned); handles them. `Err` as for [`loop_rec`].
///
/// # Safety
/// The contract of the module.
pub unsafe fn poll_signals(regs: &mut Regs) -> Result<(), CodePos> {
    let _ = regs;
    unimplemented!()
}

/// The process ended normally (it returned from its first function): x0 is the result.
///
/// # Safety
/// The contract of the module.
pub unsafe fn normal_exit(regs: &mut Regs) {
    let _ = regs;
    unimplemented!()
}
