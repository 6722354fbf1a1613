//! Sequential tracing: tokens that travel with messages.
//!
//! A process may have a token. What it sends then carries a copy ([`crate::signal::Letter`]), and who takes such a message out of
//! its mailbox has the message's token from then on; an ordinary message takes the token away. The counts in a token are OTP's: the
//! sender's clock when it was sent, and the clock of what the sender had received last.
//!
//! The token of a message in a mailbox stands beside it, under the address of its node ([`Own::tokens`](crate::process::Own)); so mailboxes and
//! their messages are the same whether there are tokens or not. A process that has a token, or messages with one, has the bit
//! [`TOKEN`](super::flags) among its trace bits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beamr_abi::Ctx;
use beamr_term::{Alloc, Build, Fragment, Word, atoms};

use super::event::{send, timestamp};
use super::flags;
use super::tracee::is_alive;
use crate::process::{Carried, ProcId, Process, Slot, copy_term, own, process, slot_of, worker};
use crate::sched::Worker;

/// `send`.
pub const SEND: u32 = 1 << 0;
/// `'receive'`.
pub const RECEIVE: u32 = 1 << 1;
/// `print`.
pub const PRINT: u32 = 1 << 2;
/// `timestamp`.
pub const TIMESTAMP: u32 = 1 << 3;
/// `strict_monotonic_timestamp`.
pub const STRICT_MONOTONIC: u32 = 1 << 4;
/// `monotonic_timestamp`.
pub const MONOTONIC: u32 = 1 << 5;

/// Flags by name.
pub const FLAGS: [(&str, u32); 6] = [
    ("send", SEND),
    ("receive", RECEIVE),
    ("print", PRINT),
    ("timestamp", TIMESTAMP),
    ("strict_monotonic_timestamp", STRICT_MONOTONIC),
    ("monotonic_timestamp", MONOTONIC),
];

/// A token.
#[derive(Clone, Debug)]
pub struct Token {
    /// Flags.
    pub flags: u32,
    /// The label.
    label: Arc<Label>,
    /// The sender's clock.
    pub serial: i64,
    /// Who sent it: a local pid.
    pub from: Word,
    /// The clock of what the sender had received last.
    pub last: i64,
}

#[derive(Debug)]
struct Label(Carried);

// SAFETY: the term lies in a fragment of its own that nobody changes; it is copied by those who use it.
unsafe impl Sync for Label {}

/// What a process knows of sequential tracing.
#[derive(Debug, Default)]
pub(crate) struct Seq {
    token: Option<Token>,
    clock: i64,
    last: i64,
}

/// The VM's tracer of tokens.
#[derive(Debug)]
pub struct SystemTracer(AtomicU64);

impl Default for SystemTracer {
    fn default() -> Self {
        SystemTracer(AtomicU64::new(Word::FALSE.bits()))
    }
}

impl SystemTracer {
    /// A local pid, or `false`.
    pub fn get(&self, w: &Worker) -> Word {
        // SAFETY: only immediates are stored.
        let t = unsafe { Word::from_bits(self.0.load(Ordering::Acquire)) };
        if t == Word::FALSE || is_alive(w, t) {
            t
        } else {
            Word::FALSE
        }
    }
    /// Sets it, and gives what it was.
    pub fn set(&self, w: &Worker, tracer: Word) -> Word {
        let before = self.get(w);
        self.0.store(tracer.bits(), Ordering::Release);
        before
    }
}

impl Token {
    /// The label.
    pub fn label(&self) -> Word {
        self.label.0.term
    }
    /// `{Flags, Label, Serial, From, LastCount}`.
    pub fn build(&self, to: &mut impl Alloc) -> Word {
        let label = copy_term(self.label(), to);
        to.tuple(&[
            Word::fixnum(i64::from(self.flags)),
            label,
            Word::fixnum(self.serial),
            self.from,
            Word::fixnum(self.last),
        ])
    }
    /// Tells the system tracer.
    fn output(&self, w: &Worker, slot: &Slot, kind: u32, receiver: Word, message: Word) {
        let tracer = w.vm.trace.seq_tracer.get(w);
        if tracer == Word::FALSE
            || self.flags & kind == 0
            || slot.tracing().is_sensitive()
            || tracer == slot.pid()
        {
            return;
        }
        let names = &w.vm.trace.names;
        let tag = match kind {
            SEND => names.send,
            RECEIVE => names.receive,
            _ => names.print,
        };
        let mask = if self.flags & STRICT_MONOTONIC != 0 {
            flags::STRICT_MONOTONIC
        } else if self.flags & MONOTONIC != 0 {
            flags::MONOTONIC
        } else if self.flags & TIMESTAMP != 0 {
            flags::TIMESTAMP
        } else {
            0
        };
        let out = Carried::build(32, |f| {
            let counts = f.tuple(&[Word::fixnum(self.last), Word::fixnum(self.serial)]);
            let receiver = copy_term(receiver, f);
            let message = copy_term(message, f);
            let what = f.tuple(&[tag, counts, self.from, receiver, message]);
            let label = copy_term(self.label(), f);
            match timestamp(&w.vm, mask, f) {
                Some(t) => f.tuple(&[names.seq_trace, label, what, t]),
                None => f.tuple(&[names.seq_trace, label, what]),
            }
        });
        send(w, tracer, out);
    }
}

fn seq(ctx: &Ctx) -> &'static mut Seq {
    // The reference is used within one native and no other to the same is alive, as with `process`.
    process(ctx).watched().seq.get_or_insert_default()
}

fn note(ctx: &Ctx) {
    let on = token(ctx).is_some() || own(ctx).tokens.is_some();
    slot_of(ctx).tracing().set_bit(flags::TOKEN, on);
}

/// The token of the running process.
pub fn token<'a>(ctx: &Ctx) -> Option<&'a Token> {
    process(ctx).watched.as_ref()?.seq.as_ref()?.token.as_ref()
}

/// Takes tokens from a process at rest and from its messages (`system_flag(reset_seq_trace, true)`).
pub(crate) fn reset(process: &mut Process, own: &mut crate::process::Own) {
    if let Some(w) = &mut process.watched {
        w.seq = None;
    }
    own.tokens = None;
    process.slot().tracing().set_bit(flags::TOKEN, false);
}

/// The same for all processes.
pub fn reset_all(ctx: &mut Ctx) {
    use crate::signal::request::{RequestKind, tell};
    reset(process(ctx), own(ctx));
    let me = ctx.self_pid();
    let w = worker(ctx);
    for pid in w.vm.pids() {
        if pid != me {
            let kind = RequestKind::Call(Box::new(|t, _| {
                reset(t.process, t.own);
                Word::TRUE
            }));
            tell(ctx, crate::process::ProcId::local(pid.local_number()), kind);
        }
    }
}

/// The token of a process at rest.
pub(crate) fn token_of(process: &Process) -> Option<&Token> {
    process.watched.as_ref()?.seq.as_ref()?.token.as_ref()
}

/// Takes the token away.
pub fn clear(ctx: &Ctx) {
    if let Some(s) = process(ctx).watched.as_mut().and_then(|w| w.seq.as_mut()) {
        s.token = None;
    }
    note(ctx);
}

/// The token of the running process, a new one if it has none.
fn ensure(ctx: &Ctx) -> &'static mut Token {
    let from = process(ctx).body.pid;
    let s = seq(ctx);
    let last = s.last;
    slot_of(ctx).tracing().set_bit(flags::TOKEN, true);
    s.token.get_or_insert_with(|| Token {
        flags: 0,
        label: Arc::new(Label(Carried::immediate(Word::fixnum(0)))),
        serial: 0,
        from,
        last,
    })
}

/// Sets or clears a flag: whether it was set.
pub fn set_flag(ctx: &Ctx, flag: u32, on: bool) -> bool {
    let t = ensure(ctx);
    let before = t.flags & flag != 0;
    t.flags = if on { t.flags | flag } else { t.flags & !flag };
    before
}

/// Sets the label: what it was, in the heap of the process.
pub fn set_label(ctx: &mut Ctx, label: Word) -> Word {
    let before = copy_term(ensure(ctx).label(), ctx);
    ensure(ctx).label = Arc::new(Label(Carried::own(label)));
    before
}

/// Sets the label.
pub(super) fn put_label(ctx: &Ctx, label: Word) {
    ensure(ctx).label = Arc::new(Label(Carried::own(label)));
}

/// Sets the counts: what they were.
pub fn set_serial(ctx: &Ctx, last: i64, serial: i64) -> (i64, i64) {
    let t = ensure(ctx);
    let before = (t.last, t.serial);
    (t.last, t.serial) = (last, serial);
    let s = seq(ctx);
    (s.clock, s.last) = (serial, last);
    before
}

/// A process does something that its token counts: the token as it is then.
fn step_of(process: &mut Process) -> Option<Token> {
    let me = process.body.pid;
    let s = process.watched.as_mut()?.seq.as_mut()?;
    let t = s.token.as_mut()?;
    s.clock += 1;
    t.from = me;
    t.serial = s.clock;
    t.last = s.last;
    Some(t.clone())
}

/// The same for the running one.
fn step(ctx: &Ctx) -> Option<Token> {
    step_of(process(ctx))
}

/// A process sends an exit signal: what that carries.
pub(crate) fn exits(w: &Worker, process: &mut Process, to: Word, reason: Word) -> Option<Token> {
    let t = step_of(process)?;
    let mut f = Fragment::with_capacity(4);
    let pid = process.body.pid;
    let message = f.tuple(&[atoms::EXIT_UPPER.word(), pid, reason]);
    t.output(w, process.slot(), SEND, to, message);
    Some(t)
}

/// The same for one that has died, through a link.
#[inline]
pub(crate) fn of_dying(w: &Worker, slot: &Slot, to: ProcId, reason: Word) -> Option<Token> {
    if !slot.tracing().has_token() {
        return None;
    }
    let body = slot.body.load(Ordering::Acquire);
    let mut f = Fragment::with_capacity(8);
    let to = to.build(&w.vm.tables, &mut f);
    // SAFETY: the caller is the runner of the process, and has the body if it is there.
    exits(w, unsafe { body.as_mut() }?, to, reason)
}

/// `seq_trace:print`: false without a token, or with one of another label.
pub fn print(ctx: &mut Ctx, label: Option<Word>, message: Word) -> bool {
    let Some(t) = token(ctx) else {
        return false;
    };
    let tables = ctx.tables();
    if label.is_some_and(|l| !beamr_term::order::eq_exact(l, t.label(), tables)) {
        return false;
    }
    if let Some(t) = step(ctx) {
        t.output(worker(ctx), slot_of(ctx), PRINT, Word::NIL, message);
    }
    true
}

/// The running process sends: what the message carries.
pub(crate) fn sends(ctx: &Ctx, to: Word, message: Word) -> Option<Token> {
    let t = step(ctx)?;
    t.output(worker(ctx), slot_of(ctx), SEND, to, message);
    Some(t)
}

/// The running process takes a message out of its mailbox, `carried` with it.
pub(crate) fn receives(ctx: &Ctx, carried: Option<Token>, message: Word) {
    let Some(t) = carried else {
        if token(ctx).is_some() {
            clear(ctx);
        }
        return;
    };
    let s = seq(ctx);
    s.last = t.serial;
    s.clock = s.clock.max(t.serial);
    t.output(
        worker(ctx),
        slot_of(ctx),
        RECEIVE,
        slot_of(ctx).pid(),
        message,
    );
    s.token = Some(t);
    note(ctx);
}

/// The running process spawns one that runs `start`: the new one has its token.
pub(crate) fn spawns(ctx: &mut Ctx, child: &Slot, start: (Word, Word, Word)) {
    let Some(t) = step(ctx) else {
        return;
    };
    let (w, slot) = (worker(ctx), slot_of(ctx));
    let mut f = Fragment::with_capacity(32);
    let arity = beamr_term::text::list_length(start.2).unwrap_or(0);
    let mfa = f.tuple(&[start.0, start.1, Word::fixnum(arity as i64)]);
    let reference = w.next_ref().build(&mut f);
    let leader = ctx.body().group_leader;
    let tag = w.vm.trace.names.spawn_request;
    let reply = atoms::SPAWN_REPLY.word();
    let words = [
        tag,
        reference,
        slot.pid(),
        leader,
        mfa,
        Word::NIL,
        reply,
        start.2,
    ];
    let message = f.tuple(&words);
    t.output(w, slot, SEND, child.pid(), message);
    t.output(w, slot, RECEIVE, child.pid(), message);
    let body = child.body.load(Ordering::Acquire);
    if !body.is_null() {
        // SAFETY: the child is not published yet: nobody else has it.
        let p = unsafe { &mut *body };
        let serial = t.serial + 1;
        let s = p.watched().seq.get_or_insert_default();
        (s.clock, s.last) = (serial, t.serial);
        // What the parent is told of it counts as a message of the child.
        let reply = Token {
            serial,
            from: child.pid(),
            last: t.serial,
            ..t
        };
        s.token = Some(reply.clone());
        child.tracing().set_bit(flags::TOKEN, true);
        let words = [
            w.vm.trace.names.spawn_reply,
            reference,
            atoms::OK.word(),
            child.pid(),
        ];
        let message = f.tuple(&words);
        reply.output(w, child, SEND, slot.pid(), message);
        reply.output(w, slot, RECEIVE, slot.pid(), message);
        let own = seq(ctx);
        (own.clock, own.last) = (serial, serial);
    }
}
