//! Sending, receiving, waiting, signals.

use beamr_abi::{Ctx, Pending, Regs};
use beamr_term::{Word, atoms};

use crate::engine::CodePos;
use crate::process::saved_calls::event;
use crate::process::{
    Carried, Message, ProcId, RefKey, TimeoutState, own, process, slot_of, worker,
};
use crate::registry::look;
use crate::signal::alias::send_to_alias;
use crate::signal::handle::{handle_all, take_messages};
use crate::signal::{Letter, Signal, push};
use crate::timer;
use crate::trace::flags::RECEIVE;
use crate::trace::seq;

#[cold]
fn badarg(ctx: &mut Ctx) -> Pending {
    let _ = ctx.badarg();
    ctx.take_pending()
}

/// `Dest ! Message` (x0, x1 in the caller): sends, or gives what to do instead (`badarg`, yield when the
/// receiver's VM asks for it).
pub fn send(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    ctx.bump(3);
    if slot_of(ctx).tracing().is_observed() {
        observed_send(ctx, to, message);
    }
    route(ctx, to, message)
}

#[cold]
#[inline(never)]
fn observed_send(ctx: &mut Ctx, to: Word, message: Word) {
    event(ctx, atoms::SEND);
    crate::trace::process::sent(ctx, to, message);
}

#[inline]
fn route(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    if to.is_local_pid() {
        return send_local(ctx, to, message);
    }
    let w = worker(ctx);
    if let Some(name) = to.as_atom() {
        return match look(ctx, name)? {
            Some(id) => to_named(ctx, id, message),
            None => Err(badarg(ctx)),
        };
    }
    if to.is_local_port() {
        return crate::port::send(ctx, to, message);
    }
    if to.is_reference() {
        let token = token_of_send(ctx, to, message);
        send_to_alias(w, to, message, false, token);
        return Ok(());
    }
    if let Some([name, node]) = to.as_tuple() {
        let (Some(name), Some(node)) = (name.as_atom(), node.as_atom()) else {
            return Err(badarg(ctx));
        };
        if node == w.vm.tables.local_node().0 {
            return match look(ctx, name)? {
                Some(id) => to_named(ctx, id, message),
                None => Ok(()),
            };
        }
        return send_remote(ctx, to, message);
    }
    if to.is_pid() {
        return send_remote(ctx, to, message);
    }
    Err(badarg(ctx))
}

/// To what a name stands for.
fn to_named(ctx: &mut Ctx, id: Word, message: Word) -> Result<(), Pending> {
    if id.is_local_pid() {
        return send_local(ctx, id, message);
    }
    crate::port::send(ctx, id, message)
}

/// As [`send`] for a message that is built already; for processes written in Rust.
pub fn send_carried(ctx: &mut Ctx, to: Word, message: Carried) -> Result<(), Pending> {
    if !to.is_local_pid() {
        let message = message.adopt(ctx.heap());
        return send(ctx, to, message);
    }
    ctx.bump(3 + message.words() as i64 / 64);
    let id = beamr_sync::SlotId::from_u64(to.local_number());
    let term = message.term;
    let message = message.into_message();
    let signal = if slot_of(ctx).tracing().has_token() {
        letter(ctx, to, term, message)
    } else {
        Signal::Message(message)
    };
    let _ = push(worker(ctx), id, signal);
    Ok(())
}

/// As [`send`], asking for priority (28): which only an alias can give.
pub fn send_with_priority(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    if !to.is_reference() {
        return send(ctx, to, message);
    }
    ctx.bump(3);
    if slot_of(ctx).tracing().is_observed() {
        observed_send(ctx, to, message);
    }
    let token = token_of_send(ctx, to, message);
    send_to_alias(worker(ctx), to, message, true, token);
    Ok(())
}

/// To another node: through the distribution, or (as to a node that is not reachable) to nowhere.
fn send_remote(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    match worker(ctx).vm.hooks.remote_send.get() {
        Some(f) => f(ctx, to, message),
        None => Ok(()),
    }
}

#[inline]
fn send_local(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    let m = if message.is_immediate() {
        Message::new(message, None)
    } else {
        let c = Carried::copy(message);
        ctx.bump(c.words() as i64 / 64);
        c.into_message()
    };
    let id = beamr_sync::SlotId::from_u64(to.local_number());
    let w = worker(ctx);
    let signal = if w.vm.trace.wants_senders() || slot_of(ctx).tracing().has_token() {
        letter(ctx, to, message, m)
    } else {
        Signal::Message(m)
    };
    let _ = push(w, id, signal);
    Ok(())
}

/// The token that a message takes with it.
#[inline]
fn token_of_send(ctx: &Ctx, to: Word, message: Word) -> Option<seq::Token> {
    slot_of(ctx)
        .tracing()
        .has_token()
        .then(|| seq::sends(ctx, to, message))
        .flatten()
}

/// A message that says more than its term.
#[cold]
#[inline(never)]
fn letter(ctx: &mut Ctx, to: Word, term: Word, message: Message) -> Signal {
    let token = seq::sends(ctx, to, term);
    Signal::Letter(Box::new(Letter {
        from: ctx.self_pid(),
        token,
        message,
    }))
}

/// `loop_rec`: the message at the receive position, adopted into the heap, or `None` when there is none.
/// May run signal handlers; an exit signal that ends the process gives `Err`.
///
/// # Safety
/// The contract of the module.
pub unsafe fn loop_rec(regs: &mut Regs) -> Result<Option<Word>, CodePos> {
    if (*regs.ctx.body).heap.gc_wanted {
        // Adopted messages must not pile up. Nothing lives in X registers where a receive starts over.
        crate::gc::collect(regs, 0, 0)?;
    }
    next_message(&mut regs.ctx).map_err(|Ending| std::ptr::null())
}

/// A signal has ended the process: it must stop running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending;

/// [`loop_rec`] for natives and processes written in Rust.
#[inline]
pub fn next_message(ctx: &mut Ctx) -> Result<Option<Word>, Ending> {
    let o = own(ctx);
    if !o.mailbox.has_current() {
        let slot = slot_of(ctx);
        if o.middle.is_none() && slot.queue.is_empty() && o.dying.is_none() {
            return Ok(None);
        }
        if handle_all(worker(ctx), slot, o) {
            return Err(Ending);
        }
    }
    let o = own(ctx);
    let heap = &mut process(ctx).body.heap;
    Ok(if o.off_heap_messages {
        o.mailbox.look_at_current(heap)
    } else {
        o.mailbox.adopt_current(heap)
    })
}

/// `loop_rec_end`: leaves the message in the queue and moves the receive position on.
pub fn loop_rec_end(ctx: &mut Ctx) {
    ctx.bump(1);
    own(ctx).mailbox.advance();
}

/// `remove_message`: takes the message out, cancels the receive's timer, resets the position.
pub fn remove_message(ctx: &mut Ctx) {
    if slot_of(ctx).tracing().is_observed() {
        observed_receive(ctx);
    }
    let o = own(ctx);
    o.mailbox.take_current(&mut process(ctx).body.heap);
    timer::stop_receive(worker(ctx), o);
}

#[cold]
#[inline(never)]
fn observed_receive(ctx: &mut Ctx) {
    event(ctx, atoms::RECEIVE);
    if !slot_of(ctx).tracing().has_token() {
        return;
    }
    let o = own(ctx);
    let Some(message) = o.mailbox.current() else {
        return;
    };
    let at = o.mailbox.current_node();
    let token = o.tokens.as_mut().and_then(|t| t.remove(&at));
    if o.tokens.as_ref().is_some_and(|t| t.is_empty()) {
        o.tokens = None;
    }
    if let Some(None) = token {
        // From the VM.
        return;
    }
    seq::receives(ctx, token.flatten(), message);
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
    let o = own(ctx);
    let slot = slot_of(ctx);
    if o.middle.is_some() || !slot.queue.is_empty() {
        // An end by signal shows at the retry label.
        if handle_all(worker(ctx), slot, o) || o.mailbox.has_current() {
            return WaitOutcome::Retry;
        }
    }
    o.woke = false;
    WaitOutcome::Sleep
}

/// `wait_timeout`: sets the timer on first entry, knows on later ones whether it fired.
pub fn wait_timeout(ctx: &mut Ctx, timeout: Word) -> WaitOutcome {
    if own(ctx).timeout == TimeoutState::Unset && timeout == Word::fixnum(0) {
        let o = own(ctx);
        let slot = slot_of(ctx);
        if (o.middle.is_some() || !slot.queue.is_empty())
            && (handle_all(worker(ctx), slot, o) || o.mailbox.has_current())
        {
            return WaitOutcome::Retry;
        }
        return WaitOutcome::TimedOut;
    }
    if wait(ctx) == WaitOutcome::Retry {
        return WaitOutcome::Retry;
    }
    let o = own(ctx);
    match o.timeout {
        TimeoutState::Fired => WaitOutcome::TimedOut,
        TimeoutState::Running | TimeoutState::Infinite => WaitOutcome::Sleep,
        TimeoutState::Unset => {
            if timeout == atoms::INFINITY.word() {
                o.timeout = TimeoutState::Infinite;
                return WaitOutcome::Sleep;
            }
            match timeout.as_small() {
                Some(ms @ 0..=0xFFFF_FFFF) => {
                    timer::start_receive(worker(ctx), slot_of(ctx).id, o, ms as u64);
                    WaitOutcome::Sleep
                }
                _ => {
                    // The next receive begins at the first message again.
                    o.mailbox.reset();
                    WaitOutcome::BadTimeout
                }
            }
        }
    }
}

/// `timeout`: behind an expired wait; resets the receive position and timer.
pub fn timeout(ctx: &mut Ctx) {
    event(ctx, atoms::TIMEOUT);
    if slot_of(ctx).tracing().on(RECEIVE) {
        crate::trace::process::timed_out(worker(ctx), slot_of(ctx));
    }
    let o = own(ctx);
    o.mailbox.reset();
    timer::stop_receive(worker(ctx), o);
}

/// `recv_marker_reserve`: a marker term (or `[]`-like atom `undefined`) for the current end of the queue.
pub fn marker_reserve(ctx: &mut Ctx) -> Word {
    let o = own(ctx);
    let slot = slot_of(ctx);
    if !slot.queue.is_empty() {
        // As far as messages stand in front; a marker before others only costs time.
        take_messages(worker(ctx), slot, o);
    }
    Word::fixnum(o.mailbox.reserve() as i64)
}

/// `recv_marker_bind`.
pub fn marker_bind(ctx: &mut Ctx, marker: Word, reference: Word) {
    if let (Some(id), Some(key)) = (marker.as_small(), RefKey::of(reference)) {
        own(ctx).mailbox.bind(id as u64, key);
    }
}

/// `recv_marker_clear`.
pub fn marker_clear(ctx: &mut Ctx, reference: Word) {
    if let Some(key) = RefKey::of(reference) {
        own(ctx).mailbox.clear(key);
    } else if let Some(id) = reference.as_small() {
        own(ctx).mailbox.clear_id(id as u64);
    }
}

/// `recv_marker_use`: the receive that follows starts at the marker.
pub fn marker_use(ctx: &mut Ctx, reference: Word) {
    if let Some(key) = RefKey::of(reference) {
        own(ctx).mailbox.use_marker(key);
    }
}

/// Whether the process goes on (checked by the engine when a slice starts and where a native returned). `Err` as for [`loop_rec`].
///
/// Signals are not handled here: the scheduler did so when the slice began, and in between only receives and natives that
/// say so do, as in OTP (`monitor(process, Dead)` followed by `demonitor` finds the monitor).
///
/// # Safety
/// The contract of the module.
#[inline]
pub unsafe fn poll_signals(regs: &mut Regs) -> Result<(), CodePos> {
    if own(&regs.ctx).dying.is_some() {
        return Err(std::ptr::null());
    }
    Ok(())
}

/// The process ended normally (it returned from its first function): x0 is the result.
///
/// # Safety
/// The contract of the module.
pub unsafe fn normal_exit(regs: &mut Regs) {
    process(&regs.ctx).end_normally(regs.x[0]);
}

/// Prepares hibernation: the engine has dropped the stack, set where the process goes on, and stops with
/// `Waiting`. The heap is shrunk when the process sleeps; with a message in the queue it goes on at once.
pub fn hibernate(ctx: &mut Ctx) {
    let o = own(ctx);
    o.mailbox.reset();
    let slot = slot_of(ctx);
    let ends = (o.middle.is_some() || !slot.queue.is_empty()) && handle_all(worker(ctx), slot, o);
    o.woke = ends || !o.mailbox.is_empty();
    o.hibernating = !o.woke;
}

/// Whether a pid or port term names something of this node.
pub fn is_local(to: Word) -> bool {
    ProcId::of(to).is_some_and(|p| !p.is_remote())
}
