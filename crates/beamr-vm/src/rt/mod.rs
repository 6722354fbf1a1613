//! Runtime helpers that both engines call.
//!
//! Contract: before a call the engine stores heap top and stack pointer into `body.heap` and the reductions into `ctx.fcalls`;
//! after it, it loads them again. `ip` is the position of the instruction that calls (its own address in
//! interpreted code). X registers below `live` are roots of a collection.
//!
//! A returned [`CodePos`] is where to go on with the registers as set; null means that the process has ended
//! (the engine returns [`Stop::Exited`](crate::engine::Stop::Exited)).

use beamr_abi::{Ctx, NativeEntry, Pending, Raise, Regs};
use beamr_term::{ExportId, FunEntry, Word};

use crate::engine::CodePos;

/// Collects so that `need` words are free between heap and stack.
///
/// # Safety
/// The contract of the module; `live` X registers are initialised.
pub unsafe fn collect(regs: &mut Regs, need: usize, live: usize) -> Result<(), CodePos> {
    let _ = (regs, need, live);
    unimplemented!()
}

/// Raises an exception at `ip`: takes the trace, unwinds to the nearest handler. At the handler x0 is
/// [`Word::NONE`], x1 the class atom, x2 the reason, x3 the raw trace, and `heap.stop` is the
/// handler's frame. `args` are the arguments for the first frame: of the native `native` if given, else of the
/// function that `ip` lies in (`function_clause`), or empty.
///
/// # Safety
/// The contract of the module.
pub unsafe fn raise(
    regs: &mut Regs,
    ip: CodePos,
    raise: Raise,
    native: Option<&'static NativeEntry>,
    args: Option<&[Word]>,
) -> CodePos {
    let _ = (regs, ip, raise, native, args);
    unimplemented!()
}

/// The value of `catch_end` after an exception (x1 class, x2 reason, x3 raw trace): the thrown value, or
/// `{'EXIT', ...}` built in the process heap.
///
/// # Safety
/// The contract of the module.
pub unsafe fn catch_value(regs: &mut Regs) -> Word {
    let _ = regs;
    unimplemented!()
}

/// Raw trace to the list that programs see.
pub fn build_stacktrace(ctx: &mut Ctx, raw: Word) -> Word {
    let _ = (ctx, raw);
    unimplemented!()
}

/// The position of `module:function/arity` where it exists in the process's namespace; loads the module first
/// where the VM loads on first call. Null when it does not exist: the engine then calls [`undefined`].
///
/// # Safety
/// The contract of the module.
pub unsafe fn resolve(regs: &mut Regs, module: Word, function: Word, arity: usize) -> CodePos {
    let _ = (regs, module, function, arity);
    unimplemented!()
}

/// As [`resolve`] by export id, for a call that found a null export slot.
///
/// # Safety
/// The contract of the module.
pub unsafe fn resolve_export(regs: &mut Regs, export: ExportId) -> CodePos {
    let _ = (regs, export);
    unimplemented!()
}

/// A call of a function that does not exist, arguments in x0..arity: goes to the error handler, or raises `undef` at `ip`.
/// The caller has already pushed its return address for a body call.
///
/// # Safety
/// The contract of the module.
pub unsafe fn undefined(
    regs: &mut Regs,
    ip: CodePos,
    module: Word,
    function: Word,
    arity: usize,
) -> CodePos {
    let _ = (regs, ip, module, function, arity);
    unimplemented!()
}

/// A call of a fun whose code is not loaded, or of a term that is not a fun, or with the wrong arity:
/// arguments in x0..arity. Loads the module and gives the position, or raises `{badfun, F}` / `{badarity, {F, Args}}` at `ip`.
///
/// # Safety
/// The contract of the module.
pub unsafe fn bad_fun(regs: &mut Regs, ip: CodePos, fun: Word, arity: usize) -> CodePos {
    let _ = (regs, ip, fun, arity);
    unimplemented!()
}

/// The fun entry of lambda `lambda` of image `image` in the process's namespace.
///
/// # Safety
/// The running code belongs to that image.
pub unsafe fn fun_entry(ctx: &mut Ctx, image: u32, lambda: u32) -> *const FunEntry {
    let _ = (ctx, image, lambda);
    unimplemented!()
}

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
