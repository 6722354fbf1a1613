//! What happens at a breakpoint: trace messages of calls, counts, times, and the frames that tell of returns.
//!
//! # Frames
//!
//! A call whose return somebody wants to know of gets a frame of its own under the callee's return address:
//!
//! ```text
//! e -> TraceReturn          where the callee returns to
//!      kind and arity       y0
//!      module, function     y1, y2
//!      tracer               y3: of a meta breakpoint, [] when the process's own is meant
//!      session              y4: its number
//!      the return address   where the call would have returned to
//! ```
//!
//! It is a frame like any other: the collector finds immediates, unwinding finds no catch in it. Walks over frames know the position
//! ([`position`]): traces pass it over, unwinding tells that the function is left ([`left_by_exception`]). A call in tail position of a traced
//! function adds a frame, as in OTP; one that tells where the process returns to ([`RETURN_TO`]) or measures time is not put on top of another.

use std::sync::Arc;

use beamr_abi::{Body, Ctx, Regs, STACK_SLACK};
use beamr_term::{Build, Fragment, Subtag, Word, atoms};

use super::actions::Host;
use super::breaks::{Meta, Mfa, Point, Times};
use super::event::{deliver, tell};
use super::flags;
use super::spec::Spec;
use super::tracee::{Session, Tracee};
use crate::engine::{CodePos, Fixed};
use crate::process::{Process, Slot, process, slot_of, worker};
use crate::rt::{WorkerCode, collect};
use crate::sched::Worker;

/// Words of a frame.
pub(crate) const FRAME: usize = 6;

/// `return_from`.
const RETURN: i64 = 0;
/// `return_from` and `exception_from`.
const EXCEPTION: i64 = 1;
/// `return_to`.
const RETURN_TO: i64 = 2;
/// The end of a call that is measured.
const TIME: i64 = 3;
/// A native was called in tail position: its caller's frame is still below, and is its caller for all who look. The slots are the size of that
/// frame (in place of an arity) and the position of the call (in place of a tracer).
const TAIL: i64 = 4;

/// The position that marks frames of tracing.
#[inline]
pub(crate) fn position(server: &crate::code::CodeServer) -> usize {
    server.engine.fixed(Fixed::TraceReturn) as usize
}

/// Time of traced calls of one process.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    current: Option<Arc<Times>>,
    since: u64,
    /// What was current before, by frames on the stack.
    outer: Vec<Option<Arc<Times>>>,
}

impl Timed {
    /// Charges the function that runs for the time up to now.
    fn charge(&mut self, pid: Word, now: u64) {
        if let Some(t) = &self.current
            && t.is_active()
        {
            t.add(pid, 0, now.saturating_sub(self.since));
        }
        self.since = now;
    }
}

/// The process is switched in or out: only time in which it runs counts.
pub(crate) fn switched(w: &Worker, process: &mut Process, out: bool) {
    let pid = process.body.pid;
    let now = w.vm.monotonic_ns();
    if let Some(t) = process.watched.as_mut().and_then(|w| w.timed.as_mut()) {
        if out {
            t.charge(pid, now);
        } else {
            t.since = now;
        }
    }
}

/// What a call event asks for.
#[derive(Default)]
struct Wants {
    returns: bool,
    exceptions: bool,
    return_to: bool,
}

/// Frames that a call is to get, the deepest first.
type Frames = Vec<[u64; FRAME]>;

fn frame(at: usize, kind: i64, mfa: Mfa, tracer: Word, session: &Session) -> [u64; FRAME] {
    [
        at as u64,
        Word::fixnum(kind | i64::from(mfa.2) << 8).bits(),
        mfa.0.word().bits(),
        mfa.1.word().bits(),
        tracer.bits(),
        Word::fixnum(session.id as i64).bits(),
    ]
}

/// The function that a frame of tracing stands for, whose slots begin at `y`: where a native was called in tail position.
///
/// # Safety
/// The frame is on a stack.
#[inline]
pub(crate) unsafe fn stands_for(y: *const u64) -> Option<usize> {
    let kind = Word::from_bits(*y).small_value() & 0xFF;
    (kind == TAIL).then(|| Word::from_bits(*y.add(3)).small_value() as usize)
}

/// A native with a breakpoint is called in tail position at `ip`, where its caller has `slots` slots: the caller's frame stays until it
/// returns, as OTP's does. `arity` X registers are live.
///
/// # Safety
/// The contract of [`crate::rt`].
pub(crate) unsafe fn tail_call(
    regs: &mut Regs,
    ip: CodePos,
    slots: usize,
    arity: usize,
) -> Result<(), CodePos> {
    if regs.ctx.heap().free() < FRAME + STACK_SLACK {
        collect(regs, FRAME, arity)?;
    }
    let at = position(&WorkerCode::of(&regs.ctx).server);
    let words = [
        at as u64,
        Word::fixnum(TAIL | (slots as i64) << 8).bits(),
        Word::NIL.bits(),
        Word::NIL.bits(),
        Word::fixnum(ip as usize as i64).bits(),
        Word::fixnum(0).bits(),
    ];
    let heap = regs.ctx.heap();
    heap.stop = heap.stop.sub(FRAME);
    std::ptr::copy_nonoverlapping(words.as_ptr(), heap.stop, FRAME);
    Ok(())
}

/// The kinds of the frames of tracing on top of the stack, the top first, with their sessions.
unsafe fn frames_on_top(body: &Body, at: usize) -> Vec<(i64, u64)> {
    let mut out = Vec::new();
    let mut p = body.heap.stop;
    while p < body.heap.end && *p == at as u64 {
        let kind = Word::from_bits(*p.add(1)).small_value() & 0xFF;
        if kind == TAIL {
            break;
        }
        let session = Word::from_bits(*p.add(5)).small_value() as u64;
        out.push((kind, session));
        p = p.add(FRAME);
    }
    out
}

/// The running process calls the function of a breakpoint: its arguments are in X registers, the return address is on the stack. An
/// error when the process has ended (it has no room for the frames).
///
/// # Safety
/// The contract of [`crate::rt`].
pub(crate) unsafe fn hit(regs: &mut Regs, point: &Point) -> Result<(), CodePos> {
    let (w, slot) = (worker(&regs.ctx), slot_of(&regs.ctx));
    let found = point.found(slot.namespace.id);
    if found.is_empty() {
        return Ok(());
    }
    let arity = point.mfa.2 as usize;
    let at = position(&w.vm.server);
    let mut frames: Frames = Vec::new();
    for (session, what) in &found {
        if let Some((local, spec)) = &what.call
            && slot.tracing().on(flags::CALL)
            && let Some(t) = slot.tracing().of(session)
            && t.flags & flags::CALL != 0
        {
            let wants = call_event(regs, w, slot, point.mfa, &t, spec.as_deref(), *local, false);
            add_frames(regs, at, &mut frames, wants, point.mfa, Word::NIL, session);
        }
        if let Some(Meta { spec, tracer }) = &what.meta
            && !slot.tracing().is_sensitive()
        {
            let t = Tracee {
                session: session.clone(),
                flags: flags::CALL | flags::TIMESTAMP,
                tracer: *tracer,
            };
            if w.vm.trace.can_be_told(w, *tracer) {
                let wants = call_event(regs, w, slot, point.mfa, &t, spec.as_deref(), true, true);
                add_frames(regs, at, &mut frames, wants, point.mfa, *tracer, session);
            } else if !tracer.is_nil() {
                point.forget_meta(session, slot.namespace.id);
            }
        }
        if let Some(count) = &what.count {
            count.call();
        }
        if let Some(times) = &what.time
            && times.is_active()
            && slot.tracing().on(flags::CALL)
            && let Some(t) = slot.tracing().of(session)
            && t.flags & flags::CALL != 0
        {
            if !w.vm.trace.can_be_told(w, t.tracer) {
                slot.tracing().forget(session);
                continue;
            }
            let (pid, now) = (slot.pid(), w.vm.monotonic_ns());
            times.add(pid, 1, 0);
            let on_top = !frames.is_empty() || !frames_on_top(&*regs.ctx.body, at).is_empty();
            let p = process(&regs.ctx);
            let timed = p.watched().timed.get_or_insert_default();
            timed.charge(pid, now);
            let before = timed.current.replace(times.clone());
            if !on_top {
                timed.outer.push(before);
                frames.push(frame(at, TIME, point.mfa, Word::NIL, session));
            }
        }
    }
    if frames.is_empty() {
        return Ok(());
    }
    let need = frames.len() * FRAME;
    if regs.ctx.heap().free() < need + STACK_SLACK {
        collect(regs, need, arity)?;
    }
    let heap = regs.ctx.heap();
    for f in frames {
        heap.stop = heap.stop.sub(FRAME);
        std::ptr::copy_nonoverlapping(f.as_ptr(), heap.stop, FRAME);
    }
    Ok(())
}

unsafe fn add_frames(
    regs: &Regs,
    at: usize,
    frames: &mut Frames,
    wants: Wants,
    mfa: Mfa,
    tracer: Word,
    session: &Arc<Session>,
) {
    if wants.return_to {
        let on_top = frames_on_top(&*regs.ctx.body, at);
        if !on_top.contains(&(RETURN_TO, session.id)) {
            frames.push(frame(at, RETURN_TO, mfa, tracer, session));
        }
    }
    if wants.exceptions {
        frames.push(frame(at, EXCEPTION, mfa, tracer, session));
    } else if wants.returns {
        frames.push(frame(at, RETURN, mfa, tracer, session));
    }
}

/// A call event of one session.
unsafe fn call_event(
    regs: &Regs,
    w: &Worker,
    slot: &Slot,
    mfa: Mfa,
    t: &Tracee,
    spec: Option<&Spec>,
    local: bool,
    meta: bool,
) -> Wants {
    let nothing = Wants::default();
    if t.tracer == slot.pid() {
        return nothing;
    }
    let mut f = Fragment::with_capacity(64);
    let args: Vec<Word> = regs.x[..mfa.2 as usize]
        .iter()
        .map(|a| shown(*a, &mut f))
        .collect();
    let mut wants = Wants::default();
    let mut given = None;
    let mut mask = t.flags;
    if let Some(spec) = spec {
        let mut host = Host::new(w, slot, t);
        host.at(&*regs.ctx.body);
        let result = spec.run(w, slot.pid(), &args, &mut host);
        wants.returns = host.return_trace;
        wants.exceptions = host.exception_trace;
        if !meta {
            mask = slot.tracing().of(&t.session).map_or(mask, |t| t.flags);
            if mask & flags::SILENT != 0 {
                return nothing;
            }
        }
        match result {
            Some(g) if g.term != Word::FALSE => given = Some(g),
            _ => return wants,
        }
    } else if !meta && mask & flags::SILENT != 0 {
        return nothing;
    }
    if !meta && local && mask & flags::RETURN_TO != 0 {
        wants.return_to = true;
    }
    let shown_args = if !meta && mask & flags::ARITY != 0 {
        Word::fixnum(i64::from(mfa.2))
    } else {
        f.list(args.iter().copied())
    };
    let call = f.tuple(&[mfa.0.word(), mfa.1.word(), shown_args]);
    let extra = given.as_ref().map(|g| g.term).filter(|g| *g != Word::TRUE);
    let tag = w.vm.trace.names.call;
    if meta {
        tell(w, slot.pid(), t.flags, t.tracer, tag, &[call], extra);
    } else {
        let t = Tracee {
            flags: mask,
            ..t.clone()
        };
        deliver(w, slot, &t, tag, &[call], extra);
    }
    wants
}

/// An argument as programs may see it: what is left of a match context is a bitstring.
unsafe fn shown(arg: Word, f: &mut Fragment) -> Word {
    if arg.subtag() == Some(Subtag::Match) {
        return beamr_term::bits::match_tail(f, arg);
    }
    arg
}

/// A frame of tracing, read.
struct Frame {
    kind: i64,
    mfa: (Word, Word, i64),
    tracer: Word,
    session: u64,
}

impl Frame {
    /// The frame whose slots begin at `y`.
    unsafe fn read(y: *const u64) -> Frame {
        let w = |i| Word::from_bits(*y.add(i));
        let kind = w(0).small_value();
        Frame {
            kind: kind & 0xFF,
            mfa: (w(1), w(2), kind >> 8),
            tracer: w(3),
            session: w(4).small_value() as u64,
        }
    }
    fn mfa(&self, to: &mut impl Build) -> Word {
        to.tuple(&[self.mfa.0, self.mfa.1, Word::fixnum(self.mfa.2)])
    }
    /// Tells of the end of the call, if the one who wanted to know still does.
    fn tell(&self, w: &Worker, slot: &Slot, tag: Word, args: &[Word]) {
        let Some(session) = w.vm.trace.session(self.session) else {
            return;
        };
        if !self.tracer.is_nil() {
            tell(
                w,
                slot.pid(),
                flags::TIMESTAMP,
                self.tracer,
                tag,
                args,
                None,
            );
        } else if let Some(t) = slot.tracing().of(&session)
            && t.flags & flags::CALL != 0
            && t.flags & flags::SILENT == 0
            && slot.tracing().on(flags::CALL)
        {
            deliver(w, slot, &t, tag, args, None);
        }
    }
    /// Tells where the process returns to.
    unsafe fn tell_return_to(&self, w: &Worker, slot: &Slot, to: usize) {
        let Some(session) = w.vm.trace.session(self.session) else {
            return;
        };
        let Some(t) = slot.tracing().of(&session) else {
            return;
        };
        let both = flags::RETURN_TO | flags::CALL;
        if t.flags & both != both || !slot.tracing().on(flags::CALL) {
            return;
        }
        let mut f = Fragment::with_capacity(4);
        let mut view = w.vm.server.ranges.view();
        let mfa = match crate::rt::Frame::at(&mut view, to) {
            Some(at) => f.tuple(&[
                at.module.word(),
                at.function.word(),
                Word::fixnum(i64::from(at.arity)),
            ]),
            None => atoms::UNDEFINED.word(),
        };
        drop(view);
        deliver(w, slot, &t, w.vm.trace.names.return_to, &[mfa], None);
    }
}

/// A measured call is over.
fn end_of_time(w: &Worker, ctx: &Ctx) {
    let p = process(ctx);
    let pid = p.body.pid;
    let now = w.vm.monotonic_ns();
    if let Some(t) = p.watched.as_mut().and_then(|w| w.timed.as_mut()) {
        t.charge(pid, now);
        t.current = t.outer.pop().flatten();
    }
}

/// A traced call has returned: the frame's slots are on top of the stack, x0 is the value. Takes the frame off.
///
/// # Safety
/// The contract of [`crate::rt`].
pub(crate) unsafe fn returned(regs: &mut Regs) {
    let (w, slot) = (worker(&regs.ctx), slot_of(&regs.ctx));
    let body = regs.ctx.body();
    let frame = Frame::read(body.heap.stop);
    body.heap.stop = body.heap.stop.add(FRAME - 1);
    match frame.kind {
        RETURN_TO => {
            let at = position(&w.vm.server);
            let mut p = body.heap.stop;
            let mut tail = None;
            while p < body.heap.end && *p == at as u64 && tail.is_none() {
                tail = stands_for(p.add(1));
                p = p.add(FRAME);
            }
            let to = tail.unwrap_or_else(|| (*p as usize).wrapping_sub(1));
            frame.tell_return_to(w, slot, to);
        }
        TIME => end_of_time(w, &regs.ctx),
        TAIL => {
            let slots = frame.mfa.2 as usize;
            body.heap.stop = body.heap.stop.add(slots);
        }
        _ => {
            let mut f = Fragment::with_capacity(4);
            let mfa = frame.mfa(&mut f);
            let value = shown(regs.x[0], &mut f);
            frame.tell(w, slot, w.vm.trace.names.return_from, &[mfa, value]);
        }
    }
}

/// Unwinding passes a frame of tracing, whose slots begin at `y`. True when the process is to be told where it goes on.
///
/// # Safety
/// The contract of [`crate::rt`]; the frame is on the stack.
pub(crate) unsafe fn left_by_exception(
    ctx: &Ctx,
    y: *const u64,
    class: Word,
    reason: Word,
) -> bool {
    let (w, slot) = (worker(ctx), slot_of(ctx));
    let frame = Frame::read(y);
    match frame.kind {
        EXCEPTION => {
            let mut f = Fragment::with_capacity(8);
            let mfa = frame.mfa(&mut f);
            let what = f.tuple(&[class, reason]);
            frame.tell(w, slot, w.vm.trace.names.exception_from, &[mfa, what]);
        }
        TIME => end_of_time(w, ctx),
        RETURN_TO => return true,
        _ => {}
    }
    false
}

/// An exception that passed frames which tell where the process goes on ([`left_by_exception`]) was caught at `handler`.
///
/// # Safety
/// As there; `y` is the slots of one of these frames.
pub(crate) unsafe fn caught(ctx: &Ctx, y: *const u64, handler: usize) {
    Frame::read(y).tell_return_to(worker(ctx), slot_of(ctx), handler);
}

/// The stack was dropped.
pub(crate) fn hibernates(ctx: &Ctx) {
    if let Some(w) = &mut process(ctx).watched {
        w.timed = None;
    }
}

/// Runs the breakpoint behind a position that met the trap: what the engine goes on with, 0 when the process has ended.
///
/// # Safety
/// The contract of [`crate::rt`]; `ip` is the entry of the function that is called.
pub(crate) unsafe fn breakpoint(regs: &mut Regs, ip: CodePos) -> usize {
    use beamr_sync::breakpoints::Found;
    let server = WorkerCode::of(&regs.ctx).server.clone();
    match server.breaks.find(ip) {
        Found::Gone(original) => original,
        Found::Point(point) => match hit(regs, &point) {
            Ok(()) => point.original,
            Err(_) => 0,
        },
    }
}
