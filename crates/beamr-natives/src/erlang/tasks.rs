//! `erts_internal`: tasks that other processes do for the one that asks: collecting, checking for old code; and what
//! goes with purging: literal areas, code coverage (which there is none of).

use std::sync::Arc;

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Build, Word, atoms};
use beamr_vm::code::{Image, old_code};
use beamr_vm::process::{ProcId, Process, slot_of, vm_of};
use beamr_vm::rt::{self, ProcessSide};
use beamr_vm::signal::request::{self, RequestKind};

use super::funs::modules;
use crate::support::{atom, name};

/// Whether a process at rest uses the image.
fn uses_old(side: &Arc<dyn ProcessSide>, process: &mut Process, image: &Image) -> bool {
    let mut owner: &dyn ProcessSide = &**side;
    // SAFETY: the process is at rest in the hands of its runner, or is the running one inside a native, whose live
    // registers are the native's arguments.
    unsafe { old_code::uses(&mut process.body, &mut owner, &mut [], image) }.blocks_purge()
}

/// Whether a process uses old code of `module`; `None`: there is no such process.
fn check_process(ctx: &mut Ctx, pid: Word, module: Word) -> Result<Option<bool>, Escape> {
    let m = atom(ctx, module)?;
    let Some(to) = ProcId::of(pid).filter(|p| p.slot().is_some()) else {
        return Err(ctx.badarg());
    };
    let side = vm_of(ctx).process_side();
    let old = modules(ctx).old(m);
    if to == slot_of(ctx).proc_id() {
        return Ok(Some(old.is_some_and(|o| {
            uses_old(&side, beamr_vm::process::process(ctx), &o.image)
        })));
    }
    let answer = request::ask(ctx, to, |_| {
        RequestKind::Call(Box::new(move |t, _| {
            Word::boolean(
                old.as_ref()
                    .is_some_and(|o| uses_old(&side, t.process, &o.image)),
            )
        }))
    })?;
    Ok(answer.map(|a| a == Word::TRUE))
}

/// `erts_internal:check_dirty_process_code(Pid, Module)`.
fn check_dirty_process_code_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_local_pid() || !args[1].is_atom() {
        return Err(ctx.badarg());
    }
    let used = check_process(ctx, args[0], args[1])?;
    Ok(used.map_or(Word::FALSE, Word::boolean))
}

fn system_task(ctx: &mut Ctx, requester: Word, target: Word, task: Word) -> Result<Word, Escape> {
    let Some([tag, id, rest @ ..]) = task.as_tuple() else {
        return Err(ctx.badarg());
    };
    let answer = match (name(ctx, *tag), rest) {
        (Some("garbage_collect"), how) => {
            let major = how.first().and_then(|w| name(ctx, *w)) != Some("minor");
            Word::boolean(request::garbage_collect(ctx, target, major)?)
        }
        (Some("check_process_code"), [module]) => {
            Word::boolean(check_process(ctx, target, *module)? == Some(true))
        }
        // Purged literals stay until the VM ends: nothing has to be copied.
        (Some("copy_literals"), [_]) => Word::TRUE,
        _ => return Err(ctx.badarg()),
    };
    let reply = ctx.tuple(&[*tag, *id, answer]);
    rt::send(ctx, requester, reply).map_err(|p| ctx.escape(p))?;
    Ok(atoms::OK.word())
}

/// `erts_internal:request_system_task(Pid, Priority, {Type, ReqId, ...})`: the task's answer comes as `{Type, ReqId, Answer}`.
fn request_system_task_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let me = ctx.self_pid();
    system_task(ctx, me, args[0], args[2])
}

/// `erts_internal:request_system_task(Requester, Pid, Priority, Task)`.
fn request_system_task_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_local_pid() {
        return Err(ctx.badarg());
    }
    system_task(ctx, args[0], args[1], args[3])
}

/// `erts_literal_area_collector:release_area_switch()`: no area waits.
fn release_area_switch_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}

/// `erts_literal_area_collector:send_copy_request(Pid, ReqId, ...)`: answered at once.
fn send_copy_request_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let tag = ctx.atom("copy_literals")?;
    let reply = ctx.tuple(&[tag, args[1], Word::TRUE]);
    let me = ctx.self_pid();
    rt::send(ctx, me, reply).map_err(|p| ctx.escape(p))?;
    Ok(atoms::OK.word())
}

/// `code:coverage_support()`.
fn coverage_support_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}
/// `code:get_coverage_mode()`, `code:set_coverage_mode(none)`.
fn coverage_none(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::NONE.word())
}
/// `code:get_coverage/2`, `code:reset_coverage/1`, `code:get_coverage_mode/1`: without support a `badarg`.
fn coverage_badarg(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.badarg())
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::Spawn)
}

const fn literals(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_literal_area_collector", function, arity, func).needs(Capability::Spawn)
}

const fn coverage(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("code", function, arity, func).releases(beamr_abi::ReleaseSpan::since(27))
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    internal("check_dirty_process_code", 2, check_dirty_process_code_2),
    internal("request_system_task", 3, request_system_task_3),
    internal("request_system_task", 4, request_system_task_4),
    literals("release_area_switch", 0, release_area_switch_0),
    literals("send_copy_request", 3, send_copy_request_3),
    coverage("coverage_support", 0, coverage_support_0),
    coverage("get_coverage_mode", 0, coverage_none),
    coverage("set_coverage_mode", 1, coverage_none),
    coverage("get_coverage_mode", 1, coverage_badarg),
    coverage("get_coverage", 2, coverage_badarg),
    coverage("reset_coverage", 1, coverage_badarg),
];
