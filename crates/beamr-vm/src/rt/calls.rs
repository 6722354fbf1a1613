//! Calls whose target is not known when code is translated.

use beamr_abi::{Ctx, Regs};
use beamr_term::{ExportId, FunEntry, Word};

use crate::engine::CodePos;

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
