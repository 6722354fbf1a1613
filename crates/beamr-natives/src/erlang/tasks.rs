//! `erts_internal`: tasks that other processes do for the one that asks: collecting, checking for old code; and what
//! goes with purging: literal areas, code coverage (which there is none of).

use std::sync::{Arc, Weak};

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Build, Word, atoms};
use beamr_vm::code::{Instance, old_code};
use beamr_vm::gc::{self, Kind};
use beamr_vm::process::{Carried, ProcId, slot_of, vm_of};
use beamr_vm::rt::{self, ProcessSide};
use beamr_vm::signal::request::{self, RequestKind, Target};
use beamr_vm::vm::Vm;

use super::funs::modules;
use crate::support::{atom, name};

/// Whether a process uses old code of `module`; `None`: there is no such process.
fn check_process(ctx: &mut Ctx, pid: Word, module: Word) -> Result<Option<bool>, Escape> {
    let m = atom(ctx, module)?;
    let Some(to) = ProcId::of(pid).filter(|p| p.slot().is_some()) else {
        return Err(ctx.badarg());
    };
    let old = modules(ctx).old(m);
    if to == slot_of(ctx).proc_id() {
        // SAFETY: the process runs this native.
        return Ok(Some(old.is_some_and(|o| unsafe {
            old_code::runs_in(ctx.body(), &o.image)
        })));
    }
    let answer = request::ask(ctx, to, |_| {
        RequestKind::Call(Box::new(move |t, _| Word::boolean(runs_old(t, &old))))
    })?;
    Ok(answer.map(|a| a == Word::TRUE))
}

/// Whether a process at rest runs old code.
fn runs_old(t: &Target<'_>, old: &Option<Arc<Instance>>) -> bool {
    // SAFETY: the process is at rest in the hands of its runner.
    old.as_ref()
        .is_some_and(|o| unsafe { old_code::runs_in(&t.process.body, &o.image) })
}

/// `erts_internal:check_dirty_process_code(Pid, Module)`.
fn check_dirty_process_code_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_local_pid() || !args[1].is_atom() {
        return Err(ctx.badarg());
    }
    let used = check_process(ctx, args[0], args[1])?;
    Ok(used.map_or(Word::FALSE, Word::boolean))
}

/// The answer to a task on its way to who asked: `{Type, ReqId, Answer}`. Dropped without answer (the process is dead)
/// it says `false`.
struct Answer {
    vm: Weak<Vm>,
    requester: Word,
    tag: Word,
    id: Carried,
    value: Word,
}

impl Drop for Answer {
    fn drop(&mut self) {
        let (tag, value) = (self.tag, self.value);
        if let Some(vm) = self.vm.upgrade() {
            let message = self.id.duplicate().wrap(|f, id| f.tuple(&[tag, id, value]));
            vm.send(self.requester, message);
        }
    }
}

fn system_task(ctx: &mut Ctx, requester: Word, target: Word, task: Word) -> Result<Word, Escape> {
    let Some([tag, id, rest @ ..]) = task.as_tuple() else {
        return Err(ctx.badarg());
    };
    let Some(to) = ProcId::of(target).filter(|p| p.slot().is_some()) else {
        return Err(ctx.badarg());
    };
    enum Task {
        Collect { major: bool },
        Check(Option<Arc<Instance>>),
        Nothing,
    }
    let task = match (name(ctx, *tag), rest) {
        (Some("garbage_collect"), how) => {
            let major = how.first().and_then(|w| name(ctx, *w)) != Some("minor");
            Task::Collect { major }
        }
        (Some("check_process_code"), [module]) => {
            let m = atom(ctx, *module)?;
            Task::Check(modules(ctx).old(m))
        }
        // Literals are copied by other means: `beamr_vm::literals`.
        (Some("copy_literals"), [_]) => Task::Nothing,
        _ => return Err(ctx.badarg()),
    };
    let mut answer = Answer {
        vm: Arc::downgrade(vm_of(ctx)),
        requester,
        tag: *tag,
        id: Carried::own(*id),
        value: Word::FALSE,
    };
    let side = vm_of(ctx).process_side();
    request::tell(
        ctx,
        to,
        RequestKind::Call(Box::new(move |t, _| {
            // All of it belongs to the closure, so that it is sent when that is dropped.
            let answer = &mut answer;
            answer.value = match &task {
                Task::Check(old) => Word::boolean(runs_old(t, old)),
                Task::Nothing => Word::TRUE,
                Task::Collect { major } => {
                    let kind = if *major { Kind::Full } else { Kind::Auto };
                    let mut owner: &dyn ProcessSide = &*side;
                    // SAFETY: the process is at rest in the hands of its runner: its live registers are in `args`.
                    unsafe {
                        gc::collect_body(&mut t.process.body, &mut owner, &mut [], 0, kind);
                    }
                    Word::TRUE
                }
            };
            Word::TRUE
        })),
    );
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
