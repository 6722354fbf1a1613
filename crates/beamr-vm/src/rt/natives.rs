//! Calls of natives, as engines make them, and what follows when one has no value: exceptions, traps, waits, yields.
//!
//! An engine calls a native with its registers saved. A value goes to x0 and [`settle`] looks whether something is due; without
//! a value, [`escape`] says what to do.

use beamr_abi::{
    Capability, ErrorInfo, ExceptionClass, NativeClass, NativeEntry, Pending, Raise, Regs,
    TrapTarget,
};
use beamr_term::{Word, atoms};

use crate::engine::{CodePos, Fixed, stop};
use crate::rt::calls::{Target, export_or_undefined, fun_target, is_callable, late_fun};
use crate::rt::{WorkerCode, collect, hibernate, poll_signals, raise};

/// Whether a call of this native looks for signals afterwards: it may have sent one to its own process.
pub fn polls(entry: &NativeEntry) -> bool {
    entry.host
        || matches!(
            entry.capability,
            Capability::Spawn | Capability::ProcessLocal
        )
}

/// Whether this native runs on a dirty thread.
pub fn is_dirty(entry: &NativeEntry) -> bool {
    matches!(entry.class, NativeClass::DirtyCpu | NativeClass::DirtyIo)
}

/// An error raised by an instruction (no frame of a native).
pub fn plain_error(reason: Word) -> Raise {
    Raise {
        class: ExceptionClass::Error,
        reason,
        info: ErrorInfo::None,
        trace: Word::NONE,
        own_frame: false,
        caller_args: Word::NONE,
    }
}

/// What to do after a step outside the engine: go to `pos`, or stop with `code` ([`stop`]) when it is null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Where to go.
    pub pos: CodePos,
    /// How to stop.
    pub code: usize,
}

impl Step {
    /// Goes there; ends when it is null.
    pub fn go(pos: CodePos) -> Step {
        Step {
            pos,
            code: stop::EXITED,
        }
    }
    /// Stops.
    pub fn stop(code: usize) -> Step {
        Step {
            pos: std::ptr::null(),
            code,
        }
    }
}

/// After a native gave the value in x0: handles signals (`poll`) and collects when that is wanted. An error is where to go instead.
///
/// # Safety
/// The contract of the module.
#[inline(never)]
pub unsafe fn settle(regs: &mut Regs, poll: bool) -> Result<(), CodePos> {
    let body = regs.ctx.body;
    if poll {
        // x0 must survive what the handlers allocate; they do not collect.
        poll_signals(regs)?;
    }
    if (*body).heap.gc_wanted {
        collect(regs, 0, 1)?;
    }
    Ok(())
}

unsafe fn push(regs: &mut Regs, ip: CodePos) {
    let heap = &mut regs.ctx.heap().stop;
    *heap = heap.sub(1);
    **heap = ip as usize as u64;
}

/// Saves the process: it goes on at `pos` with `live` X registers.
unsafe fn suspend(regs: &mut Regs, pos: CodePos, live: usize) {
    let Regs { x, ctx, .. } = regs;
    let body = ctx.body();
    body.ip = pos;
    body.args.save(&x[..live]);
}

unsafe fn stub(regs: &Regs, entry: &'static NativeEntry) -> CodePos {
    WorkerCode::of(&regs.ctx).server.engine.native_stub(entry)
}

/// Handles a native that returned no value. `ip` is the calling instruction, `after` where its value goes (null when
/// the return address is on the stack already).
///
/// # Safety
/// The contract of the module; registers were saved before the native ran.
#[inline(never)]
pub unsafe fn escape(
    regs: &mut Regs,
    ip: CodePos,
    entry: &'static NativeEntry,
    after: CodePos,
) -> Step {
    let arity = entry.arity as usize;
    let pending = regs.ctx.take_pending();
    if !after.is_null() && !matches!(pending, Pending::Raise(_) | Pending::None | Pending::Exit) {
        push(regs, after);
    }
    match pending {
        Pending::Raise(r) => {
            let args = regs.x[..arity].to_vec();
            Step::go(raise(regs, ip, r, Some(entry), Some(&args)))
        }
        Pending::None => {
            let args = regs.x[..arity].to_vec();
            let mut r = plain_error(atoms::BADARG.word());
            r.own_frame = true;
            r.info = ErrorInfo::Default;
            Step::go(raise(regs, ip, r, Some(entry), Some(&args)))
        }
        Pending::Trap { target, args } => trap(regs, ip, after, target, &args, false),
        Pending::YieldTo { target, args } => trap(regs, ip, after, target, &args, true),
        Pending::Wait => {
            let again = stub(regs, entry);
            suspend(regs, again, arity);
            Step::stop(stop::WAITING)
        }
        Pending::Yield => {
            let again = stub(regs, entry);
            suspend(regs, again, arity);
            Step::stop(stop::PREEMPTED)
        }
        Pending::Exit => Step::stop(stop::EXITED),
        Pending::Hibernate { target, args } => {
            let bottom = WorkerCode::of(&regs.ctx)
                .server
                .engine
                .fixed(Fixed::NormalExit);
            let body = regs.ctx.body();
            body.heap.stop = body.heap.end.sub(1);
            *body.heap.stop = bottom as usize as u64;
            body.catches = 0;
            crate::trace::calls::hibernates(&regs.ctx);
            let n = args.len();
            regs.x[..n].copy_from_slice(&args);
            if let Err(pos) = collect(regs, 0, n) {
                return Step::go(pos);
            }
            let t = export_or_undefined(regs, ip, target, n);
            if t.pos.is_null() {
                return Step::stop(stop::EXITED);
            }
            suspend(regs, t.pos, t.live);
            hibernate(&mut regs.ctx);
            Step::stop(stop::WAITING)
        }
    }
}

unsafe fn trap(
    regs: &mut Regs,
    ip: CodePos,
    after: CodePos,
    target: TrapTarget,
    args: &[Word],
    give_up: bool,
) -> Step {
    let n = args.len();
    let mut fun = Word::NIL;
    regs.x[..n].copy_from_slice(args);
    if let TrapTarget::Fun(f) = target {
        fun = f;
        regs.x[n] = f;
    }
    if regs.ctx.heap().gc_wanted {
        let live = n + usize::from(!fun.is_nil());
        if let Err(pos) = collect(regs, 0, live) {
            return Step::go(pos);
        }
        if !fun.is_nil() {
            fun = regs.x[n];
        }
    }
    let Target { pos, live } = match target {
        TrapTarget::Export(id) => export_or_undefined(regs, ip, id, n),
        TrapTarget::Native(entry) => Target {
            pos: stub(regs, entry),
            live: n,
        },
        TrapTarget::Fun(_) => {
            if is_callable(fun, n) {
                fun_target(regs, ip, fun, n)
            } else {
                // An exception is raised in the frame of the call: its return address is not on the stack.
                if !after.is_null() {
                    let heap = regs.ctx.heap();
                    heap.stop = heap.stop.add(1);
                }
                let t = late_fun(regs, ip, fun, n);
                if regs.x[0].is_none() || t.pos.is_null() {
                    return Step::go(t.pos);
                }
                if !after.is_null() {
                    push(regs, after);
                }
                t
            }
        }
    };
    if pos.is_null() {
        return Step::stop(stop::EXITED);
    }
    regs.ctx.fcalls -= 1;
    // What is given up is not charged.
    if give_up || regs.ctx.fcalls <= 0 {
        suspend(regs, pos, live);
        return Step::stop(stop::PREEMPTED);
    }
    Step::go(pos)
}
