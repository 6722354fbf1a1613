//! Raising: traces, unwinding, what a handler gets.

use beamr_abi::{Ctx, NativeEntry, Raise, Regs};
use beamr_term::Word;

use crate::engine::CodePos;

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

/// `raise Trace Value` of old code: raises `value` again with the class that the raw trace `trace` was made for.
///
/// # Safety
/// The contract of the module.
pub unsafe fn reraise(regs: &mut Regs, ip: CodePos, value: Word, trace: Word) -> CodePos {
    let _ = (regs, ip, value, trace);
    unimplemented!()
}
