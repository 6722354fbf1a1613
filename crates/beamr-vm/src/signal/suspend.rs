//! Suspending and resuming other processes.
//!
//! The count of suspensions is in the scheduling word; who suspended is noted with the suspender, who
//! takes all of them back when it dies.

use beamr_abi::{Ctx, Escape};
use beamr_sync::SlotId;
use beamr_term::Word;

use super::count;
use super::request::{RequestKind, ask, has_asked};
use crate::process::{ProcId, own, slot_of, worker};
use crate::sched::Worker;

/// Options of `suspend_process/2`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuspendOptions {
    /// `asynchronous`: do not wait until it is in force.
    pub asynchronous: bool,
    /// `unless_suspending`.
    pub unless_suspending: bool,
}

/// `suspend_process/2`: true when it was suspended (once more), false with `unless_suspending` when the caller had
/// done so before. `badarg` for itself, the dead and other nodes' pids; `system_limit` when the count is exhausted.
pub fn suspend_process(ctx: &mut Ctx, pid: Word, options: SuspendOptions) -> Result<bool, Escape> {
    let to = match ProcId::of(pid) {
        Some(p) if p.slot().is_some() && p != slot_of(ctx).proc_id() => p,
        _ => return Err(ctx.badarg()),
    };
    if !has_asked(ctx) {
        let w = worker(ctx);
        let guard = w.participant.pin();
        let id = SlotId::from_u64(to.number());
        let Some(slot) = w.vm.processes.get(id, &guard) else {
            return Err(ctx.badarg());
        };
        let o = own(ctx);
        if options.unless_suspending && o.suspending.contains(to) {
            return Ok(false);
        }
        if slot.state.suspend().is_none() {
            return Err(ctx.system_limit());
        }
        match o.suspending.get_mut(to) {
            Some(n) => *n += 1,
            None => {
                o.suspending.insert(to, 1);
            }
        }
        if options.asynchronous {
            return Ok(true);
        }
    }
    match ask(ctx, to, |_| RequestKind::Suspended)? {
        Some(_) => Ok(true),
        None => {
            own(ctx).suspending.remove(to);
            Err(ctx.badarg())
        }
    }
}

/// `resume_process/1`. `badarg` when the caller has not suspended it.
pub fn resume_process(ctx: &mut Ctx, pid: Word) -> Result<(), Escape> {
    let Some(to) = ProcId::of(pid) else {
        return Err(ctx.badarg());
    };
    let o = own(ctx);
    match o.suspending.get_mut(to) {
        None => return Err(ctx.badarg()),
        Some(1) => {
            o.suspending.remove(to);
        }
        Some(n) => *n -= 1,
    }
    resume_times(worker(ctx), to, 1);
    Ok(())
}

/// Takes back the suspension of a process that suspended itself.
pub fn resume_waiting(ctx: &mut Ctx, pid: Word) {
    if let Some(to) = ProcId::of(pid) {
        resume_times(worker(ctx), to, 1);
    }
}

/// Takes back suspensions.
pub(crate) fn resume_times(w: &Worker, to: ProcId, times: u32) {
    let Some(id) = to.slot() else { return };
    let guard = w.participant.pin();
    let Some(slot) = w.vm.processes.get(id, &guard) else {
        return;
    };
    for _ in 0..times {
        if slot.state.resume() {
            // SAFETY: the slot came from the process table.
            w.enqueue(unsafe { count(slot) });
        }
    }
}
