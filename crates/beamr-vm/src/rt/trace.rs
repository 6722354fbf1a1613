//! Breakpoints and frames of tracing, as engines meet them; [`crate::trace::breaks`] has the contract.

use beamr_abi::{NativeEntry, Regs};
use beamr_sync::breakpoints::Found;
use beamr_term::ExportId;

use super::calls::{Target, export_or_undefined};
use super::worker::WorkerCode;
use crate::engine::CodePos;
use crate::trace::calls;

/// The entry word of a function was the trap: does what is to be done at its breakpoint. Gives the word's original, or 0 when the process
/// has ended.
///
/// # Safety
/// The contract of the module; the callee's arguments are in X registers, the return address is on the stack.
#[cold]
pub unsafe fn breakpoint(regs: &mut Regs, ip: CodePos) -> usize {
    calls::breakpoint(regs, ip)
}

/// The original of an entry word that is run again and was the trap.
///
/// # Safety
/// The contract of the module.
#[cold]
pub unsafe fn original(regs: &mut Regs, ip: CodePos) -> usize {
    match WorkerCode::of(&regs.ctx).server.breaks.find(ip) {
        Found::Gone(original) => original,
        Found::Point(p) => p.original,
    }
}

/// A detour was called: does what is to be done at its breakpoint, and gives where to go on.
///
/// # Safety
/// As [`breakpoint`].
#[cold]
pub unsafe fn detour(regs: &mut Regs, ip: CodePos, export: ExportId, arity: usize) -> Target {
    let head = WorkerCode::of(&regs.ctx);
    let server = head.server.clone();
    let namespace = head.modules().namespace;
    let Some(point) = server.breaks.detour(namespace, export) else {
        return export_or_undefined(regs, ip, export, arity);
    };
    match calls::hit(regs, &point) {
        Ok(()) => Target {
            pos: point.original as CodePos,
            live: arity,
        },
        Err(pos) => Target { pos, live: 0 },
    }
}

/// A native that has a breakpoint somewhere is called by an instruction: gives where to go on. For a body call the return address is on the
/// stack; for a tail call the frame of the caller, of `tail` slots, still is there.
///
/// # Safety
/// As [`breakpoint`].
#[cold]
pub unsafe fn rerouted(
    regs: &mut Regs,
    ip: CodePos,
    native: &'static NativeEntry,
    tail: Option<usize>,
) -> Target {
    let arity = usize::from(native.arity);
    if let Some(slots) = tail
        && let Err(pos) = calls::tail_call(regs, ip, slots, arity)
    {
        return Target { pos, live: 0 };
    }
    let head = WorkerCode::of(&regs.ctx);
    let tables = regs.ctx.tables();
    let name = head.names.get(native, &tables.atoms);
    let export = tables
        .exports
        .lookup(name.module, name.function, u32::from(native.arity));
    if let Some(id) = export
        && head
            .server
            .breaks
            .detour(head.modules().namespace, id)
            .is_some()
    {
        return detour(regs, ip, id, arity);
    }
    Target {
        pos: head.server.engine.native_stub(native),
        live: arity,
    }
}

/// A traced call has returned with the value in x0: the frame of tracing is taken off, the process returns to what is on the stack then.
///
/// # Safety
/// The contract of the module; the frame's position was taken off.
#[cold]
pub unsafe fn trace_returned(regs: &mut Regs) {
    calls::returned(regs);
}
