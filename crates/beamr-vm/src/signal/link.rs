//! Links and exit signals as programs send them.
//!
//! A link is an entry on both sides. The side that makes or takes it down changes its own entry at once
//! and tells the other. `unlink` leaves its entry, marked with a number, until the other side has acknowledged:
//! until then exit signals through the link are ignored and a new link signal from the other
//! side changes nothing. `link` over such an entry makes it a link again; the late acknowledgement has
//! another number and is ignored.

use beamr_abi::{Ctx, Escape, Pending};
use beamr_term::{Word, atoms};

use super::alias::alias_owner;
use super::handle::{handle_all, send_exit};
use super::{ExitKind, ExitSignal, Signal, push_proc};
use crate::process::{Carried, ProcId, RefKey, own, process, slot_of, worker};
use crate::trace::process::{inherit_by_link, procs};
use crate::trace::seq;

/// Handles all signals that have arrived at the running process. `Err` when one of them ended it.
///
/// For natives that signal themselves, so that the effect is there when they return.
pub fn handle_now(ctx: &mut Ctx) -> Result<(), Escape> {
    if handle_all(worker(ctx), slot_of(ctx), own(ctx)) {
        return Err(ctx.escape(Pending::Exit));
    }
    Ok(())
}

/// `link/1`. Errors: `badarg` for what is no pid or port, `noproc` when the process does not exist and the caller
/// does not trap exits (else it gets an `'EXIT'` message).
pub fn link(ctx: &mut Ctx, to: Word) -> Result<(), Escape> {
    let Some(other) = ProcId::of(to) else {
        return Err(ctx.badarg());
    };
    procs(worker(ctx), slot_of(ctx), |n| n.link, &[to]);
    let me = slot_of(ctx).proc_id();
    if other == me {
        return Ok(());
    }
    let o = own(ctx);
    match o.links.get(other) {
        Some(0) => return Ok(()),
        Some(_) | None => {
            o.links.insert(other, 0);
        }
    }
    let w = worker(ctx);
    inherit_by_link(w, slot_of(ctx), to);
    if push_proc(w, other, Signal::Link(me)).is_ok() {
        return Ok(());
    }
    let reason = if other.is_remote() {
        atoms::NOCONNECTION
    } else {
        atoms::NOPROC
    };
    if !o.trap_exit && !other.is_remote() {
        o.links.remove(other);
        return Err(ctx.error(atoms::NOPROC));
    }
    send_exit(w, other, me, ExitKind::NoLink, Carried::immediate(reason));
    Ok(())
}

/// `link/2` (28): as [`link`]; whether the `'EXIT'` message of the link has priority.
pub fn link_with(ctx: &mut Ctx, to: Word, priority: bool) -> Result<(), Escape> {
    link(ctx, to)?;
    if let Some(other) = ProcId::of(to) {
        let o = own(ctx);
        if priority {
            let p = o.priorities.get_or_insert_default();
            p.links.insert(other, ());
        } else if let Some(p) = &mut o.priorities {
            p.links.remove(other);
        }
    }
    Ok(())
}

/// `unlink/1`. `badarg` for what is no pid or port.
pub fn unlink(ctx: &mut Ctx, to: Word) -> Result<(), Escape> {
    let Some(other) = ProcId::of(to) else {
        return Err(ctx.badarg());
    };
    procs(worker(ctx), slot_of(ctx), |n| n.unlink, &[to]);
    let me = slot_of(ctx).proc_id();
    let o = own(ctx);
    let next = o.unlink_id + 1;
    match o.links.get_mut(other) {
        Some(state) if *state == 0 => {
            o.unlink_id = next;
            *state = next;
        }
        _ => return Ok(()),
    }
    if let Some(p) = &mut o.priorities {
        p.links.remove(other);
    }
    if push_proc(worker(ctx), other, Signal::Unlink(Box::new((me, next)))).is_err() {
        // Dead: its exit signal, if one is on its way, no longer counts.
        o.links.remove(other);
    }
    Ok(())
}

/// `exit/2`. `badarg` for what is no pid or port. To the own process it takes effect before this returns
/// (`Err` with [`Pending::Exit`] when it ends it).
pub fn exit_signal(ctx: &mut Ctx, to: Word, reason: Word) -> Result<(), Escape> {
    let Some(other) = ProcId::of(to) else {
        return Err(ctx.badarg());
    };
    let me = slot_of(ctx).proc_id();
    let token = slot_of(ctx)
        .tracing()
        .has_token()
        .then(|| seq::exits(worker(ctx), process(ctx), to, reason))
        .flatten();
    let signal = ExitSignal {
        from: me,
        kind: ExitKind::Exit2,
        reason: Carried::copy(reason),
        alias: None,
        priority: false,
        token,
    };
    let _ = push_proc(worker(ctx), other, Signal::Exit(Box::new(signal)));
    if other == me {
        return handle_now(ctx);
    }
    Ok(())
}

/// `exit/2,3` to an alias (28): as [`exit_signal`] to its process, if it is active. With `priority`, and if the alias gives it, the
/// `'EXIT'` message has priority.
pub fn exit_alias(ctx: &mut Ctx, to: Word, reason: Word, priority: bool) -> Result<(), Escape> {
    let (Some(owner), Some(key)) = (alias_owner(to), RefKey::of(to)) else {
        return Ok(());
    };
    let me = slot_of(ctx).proc_id();
    let signal = ExitSignal {
        from: me,
        kind: ExitKind::Exit2,
        reason: Carried::copy(reason),
        alias: Some(key),
        priority,
        token: None,
    };
    let _ = push_proc(worker(ctx), owner, Signal::Exit(Box::new(signal)));
    if owner == me {
        return handle_now(ctx);
    }
    Ok(())
}
