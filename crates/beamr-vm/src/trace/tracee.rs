//! What is traced of a process, and the sessions for which it is.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, RwLock, Weak};

use beamr_sync::prim::Mutex;
use beamr_term::{Atom, Tables, Word};

use super::breaks::{Change, Turn, What};
use super::event::Names;
use super::flags;
use super::seq::SystemTracer;
use super::spec::Spec;
use crate::process::Slot;
use crate::sched::Worker;

/// What is traced of one process for one session.
#[derive(Clone, Debug)]
pub struct Tracee {
    /// The session.
    pub session: Arc<Session>,
    /// Its flags.
    pub flags: u32,
    /// Who is told: a local pid or port.
    pub tracer: Word,
}

/// The part of a slot that tracing has; see the head of the parent module.
#[derive(Clone, Copy, Debug)]
pub struct Tracing<'s> {
    bits: &'s AtomicU32,
    list: &'s Mutex<Tracees>,
}

/// The list of what is traced; processes that nobody traces pay a word for it.
pub(crate) type Tracees = Option<Box<Vec<Tracee>>>;

impl Slot {
    /// What is traced of the process.
    #[inline(always)]
    pub fn tracing(&self) -> Tracing<'_> {
        Tracing {
            bits: &self.trace_bits,
            list: &self.tracees,
        }
    }
}

impl Tracing<'_> {
    /// Whether anything looks at the process's events.
    #[inline(always)]
    pub fn is_observed(&self) -> bool {
        self.bits.load(Ordering::Relaxed) != 0
    }
    /// Whether the process has to do with tokens of sequential tracing.
    #[inline(always)]
    pub(crate) fn has_token(&self) -> bool {
        self.bits.load(Ordering::Relaxed) & flags::TOKEN != 0
    }
    /// `process_flag(sensitive, true)`.
    pub(super) fn is_sensitive(&self) -> bool {
        self.bits.load(Ordering::Relaxed) & flags::SENSITIVE != 0
    }
    /// Whether one of these flags is set for some session, and the process is not sensitive.
    #[inline(always)]
    pub fn on(&self, mask: u32) -> bool {
        let bits = self.bits.load(Ordering::Relaxed);
        bits & mask != 0 && bits & flags::SENSITIVE == 0
    }
    /// Sets or clears a bit that is no trace flag.
    pub(crate) fn set_bit(&self, bit: u32, on: bool) {
        if on {
            self.bits.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.bits.fetch_and(!bit, Ordering::Relaxed);
        }
    }
    /// The sessions that trace one of these flags.
    #[cold]
    pub fn with(&self, mask: u32) -> Vec<Tracee> {
        if !self.on(mask) {
            return Vec::new();
        }
        let list = self.list.lock();
        list.iter()
            .flat_map(|l| l.iter())
            .filter(|t| t.flags & mask != 0 && !t.session.is_over())
            .cloned()
            .collect()
    }
    /// What one session traces.
    pub fn of(&self, session: &Session) -> Option<Tracee> {
        let list = self.list.lock();
        let mut all = list.iter().flat_map(|l| l.iter());
        all.find(|t| t.session.id == session.id).cloned()
    }
    /// Changes the list; the bits follow.
    fn change<R>(&self, f: impl FnOnce(&mut Vec<Tracee>) -> R) -> R {
        let mut place = self.list.lock();
        let list = place.get_or_insert_default();
        let r = f(list);
        list.retain(|t| t.flags != 0);
        let all = list.iter().fold(0, |a, t| a | t.flags);
        if list.is_empty() {
            *place = None;
        }
        let _ = self
            .bits
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |b| {
                Some(b & !flags::ALL | all)
            });
        r
    }
    /// Turns flags on or off for a session. False when another tracer that lives has the process already.
    pub fn set(
        &self,
        w: &Worker,
        session: &Arc<Session>,
        on: bool,
        mask: u32,
        tracer: Word,
    ) -> bool {
        self.change(|list| {
            let at = list.iter().position(|t| t.session.id == session.id);
            let Some(at) = at else {
                if on {
                    list.push(Tracee {
                        session: session.clone(),
                        flags: mask,
                        tracer,
                    });
                }
                return true;
            };
            let t = &mut list[at];
            if !tracer.is_nil() && t.tracer != tracer {
                if is_alive(w, t.tracer) {
                    return false;
                }
                // The flags of a tracer that is dead went with it.
                t.flags = 0;
            }
            if on {
                t.flags |= mask;
                t.tracer = tracer;
            } else {
                t.flags &= !mask;
            }
            true
        })
    }
    /// Changes flags of a session as its own code says (`{trace, Off, On}` of a match specification, inherited flags).
    pub(crate) fn adjust(&self, session: &Session, off: u32, on: u32) {
        self.change(|list| {
            if let Some(t) = list.iter_mut().find(|t| t.session.id == session.id) {
                t.flags = t.flags & !off | on;
            }
        });
    }
    /// Puts what another process passes on in place of what stands there.
    pub(crate) fn inherit(&self, from: &Tracee, flags: u32) {
        self.change(
            |list| match list.iter_mut().find(|t| t.session.id == from.session.id) {
                Some(t) => {
                    t.flags = flags;
                    t.tracer = from.tracer;
                }
                None => list.push(Tracee {
                    flags,
                    ..from.clone()
                }),
            },
        );
    }
    /// Forgets a session: it is over, or its tracer is dead.
    pub fn forget(&self, session: &Session) {
        self.change(|list| list.retain(|t| t.session.id != session.id));
    }
}

/// Whether a tracer can be told something.
pub(super) fn is_alive(w: &Worker, tracer: Word) -> bool {
    if tracer.is_local_pid() {
        return with_slot(w, tracer, |s| !s.state.snapshot().is_exiting()) == Some(true);
    }
    // There are no ports that take messages.
    false
}

/// Looks at what is traced of a process that lives.
pub fn with_tracing<R>(w: &Worker, pid: Word, f: impl FnOnce(Tracing<'_>) -> R) -> Option<R> {
    with_slot(w, pid, |s| {
        (!s.state.snapshot().is_exiting()).then(|| f(s.tracing()))
    })
    .flatten()
}

/// Turns flags on or off for all processes, but for the tracer: how many that were.
pub fn set_all(w: &Worker, session: &Arc<Session>, on: bool, mask: u32, tracer: Word) -> usize {
    let guard = w.participant.pin();
    let live = w.vm.processes.iter(&guard);
    live.filter(|(_, s)| {
        !s.state.snapshot().is_exiting() && s.tracing().set(w, session, on, mask, tracer)
    })
    .count()
}

/// Flags and tracer of a process for a session; `None` when it is dead.
pub fn traced(w: &Worker, session: &Session, pid: Word) -> Option<(u32, Word)> {
    with_tracing(w, pid, |t| match t.of(session) {
        Some(t) if is_alive(w, t.tracer) => (t.flags, t.tracer),
        Some(_) => {
            t.forget(session);
            (0, Word::NIL)
        }
        None => (0, Word::NIL),
    })
}

/// Sends the running process a message of the VM.
pub fn to_self(ctx: &mut beamr_abi::Ctx, message: Word) {
    use crate::process::{Carried, worker};
    let me = ctx.self_pid();
    super::event::send(worker(ctx), me, Carried::copy(message));
}

/// Looks at a process by its pid.
pub(super) fn with_slot<R>(w: &Worker, pid: Word, f: impl FnOnce(&Slot) -> R) -> Option<R> {
    if !pid.is_local_pid() {
        return None;
    }
    let guard = w.participant.pin();
    let id = beamr_sync::SlotId::from_u64(pid.local_number());
    w.vm.processes.get(id, &guard).map(f)
}

/// What is done with events of one kind (`trace_pattern(send | 'receive', ...)`).
#[derive(Clone, Debug)]
pub struct EventPattern {
    /// Whether they are traced.
    pub on: bool,
    /// Which of them.
    pub spec: Option<Arc<Spec>>,
}

impl EventPattern {
    /// Whether all events are traced.
    pub fn is_default(&self) -> bool {
        self.on && self.spec.is_none()
    }
}

impl Default for EventPattern {
    fn default() -> Self {
        EventPattern {
            on: true,
            spec: None,
        }
    }
}

/// What a session says of processes to come and of events.
#[derive(Debug)]
struct State {
    new: (u32, Word),
    new_ports: (u32, Word),
    send: EventPattern,
    receive: EventPattern,
    on_load: Vec<Change>,
}

/// A trace session. The first one, which `erlang:trace/3` uses, is always there; others come with OTP 27.
#[derive(Debug)]
pub struct Session {
    /// Its number; 0 for the first.
    pub id: u64,
    /// Its name.
    pub name: Atom,
    /// Its tracer; `[]` for the first, where each call says who it is.
    pub tracer: Word,
    over: AtomicBool,
    state: Mutex<State>,
}

impl Session {
    fn new(id: u64, name: Atom, tracer: Word) -> Session {
        Session {
            id,
            name,
            tracer,
            over: AtomicBool::new(false),
            state: Mutex::new(State {
                new: (0, Word::NIL),
                new_ports: (0, Word::NIL),
                send: EventPattern::default(),
                receive: EventPattern::default(),
                on_load: Vec::new(),
            }),
        }
    }
    /// Ends it: what is traced for it is forgotten where it is found.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
    /// Whether it was destroyed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
    /// Flags and tracer of processes (or ports) to come.
    pub fn of_new(&self, ports: bool) -> (u32, Word) {
        let s = self.state.lock();
        if ports { s.new_ports } else { s.new }
    }
    /// What is to be done for modules that are loaded.
    pub fn on_load(&self) -> Vec<Change> {
        self.state.lock().on_load.clone()
    }
    /// The same as one.
    pub fn of_on_load(&self) -> What {
        let mut what = What::default();
        for c in self.on_load() {
            what.apply(&c);
        }
        what
    }
    /// `trace_pattern(on_load, ...)`.
    pub(super) fn add_on_load(&self, change: &Change) {
        let mut s = self.state.lock();
        let same = |c: &Change| {
            (c.global, c.local, c.meta.is_some(), c.count, c.time)
                == (
                    change.global,
                    change.local,
                    change.meta.is_some(),
                    change.count,
                    change.time,
                )
        };
        let before = std::mem::take(&mut s.on_load);
        let mut all = before;
        all.retain(|c| !same(c));
        match change.turn {
            // Calls by export exclude breakpoints inside, and the other way round.
            Turn::On => {
                all.retain(|c| c.global == change.global);
                all.push(change.clone());
            }
            Turn::Off => all.retain_mut(|c| {
                c.local &= !change.local;
                c.count &= !change.count;
                c.time &= !change.time;
                if change.meta.is_some() {
                    c.meta = None;
                }
                c.global || c.local || c.count || c.time || c.meta.is_some()
            }),
            Turn::Restart | Turn::Pause => {}
        }
        s.on_load = all;
    }
    /// The pattern of `send` or `'receive'` events.
    pub fn pattern(&self, send: bool) -> EventPattern {
        let s = self.state.lock();
        if send {
            s.send.clone()
        } else {
            s.receive.clone()
        }
    }
}

/// The tracing of a VM.
#[derive(Debug)]
pub struct Trace {
    /// The session of `erlang:trace/3`.
    pub first: Arc<Session>,
    sessions: RwLock<Vec<Weak<Session>>>,
    next: AtomicU64,
    /// Whether some session traces processes to come.
    new: AtomicBool,
    /// Whether some pattern of `'receive'` events asks for senders, which messages then carry.
    senders: AtomicBool,
    /// Who is told of what tokens of sequential tracing go through.
    pub seq_tracer: SystemTracer,
    /// Names in messages.
    pub names: Names,
}

impl Trace {
    pub(crate) fn new(tables: &Tables) -> Trace {
        let names = Names::new(tables);
        let first = names.default.as_atom().unwrap_or(beamr_term::atoms::TRUE);
        let first = Arc::new(Session::new(0, first, Word::NIL));
        Trace {
            sessions: RwLock::new(vec![Arc::downgrade(&first)]),
            first,
            next: AtomicU64::new(1),
            new: AtomicBool::new(false),
            senders: AtomicBool::new(false),
            seq_tracer: SystemTracer::default(),
            names,
        }
    }
    /// Whether a tracer lives.
    pub fn can_be_told(&self, w: &Worker, tracer: Word) -> bool {
        is_alive(w, tracer)
    }
    /// A further session.
    pub fn create(&self, name: Atom, tracer: Word) -> Arc<Session> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let session = Arc::new(Session::new(id, name, tracer));
        let mut all = self.sessions.write().unwrap_or_else(|e| e.into_inner());
        all.retain(|s| s.strong_count() > 0);
        all.push(Arc::downgrade(&session));
        session
    }
    /// The session of this number, unless it is over.
    pub(super) fn session(&self, id: u64) -> Option<Arc<Session>> {
        if id == 0 {
            return Some(self.first.clone());
        }
        self.sessions().into_iter().find(|s| s.id == id)
    }
    /// All sessions that are not over.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        let all = self.sessions.read().unwrap_or_else(|e| e.into_inner());
        let live = all.iter().filter_map(Weak::upgrade);
        live.filter(|s| !s.is_over()).collect()
    }
    /// Ends a session; false when it was over.
    pub fn destroy(&self, w: &Worker, session: &Session) -> bool {
        if session.over.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.set_new(session, false, false, flags::ALL, Word::NIL);
        self.set_pattern(session, false, EventPattern::default());
        let guard = w.participant.pin();
        for (_, slot) in w.vm.processes.iter(&guard) {
            slot.tracing().forget(session);
        }
        true
    }
    /// Flags and tracer of processes or ports to come; those of a tracer that is dead are gone.
    pub fn of_new(&self, w: &Worker, session: &Session, ports: bool) -> (u32, Word) {
        let (mask, tracer) = session.of_new(ports);
        if mask != 0 && !is_alive(w, tracer) {
            self.set_new(session, ports, false, flags::ALL, Word::NIL);
            return (0, Word::NIL);
        }
        (mask, tracer)
    }
    /// Flags of processes or ports to come.
    pub fn set_new(&self, session: &Session, ports: bool, on: bool, mask: u32, tracer: Word) {
        {
            let mut s = session.state.lock();
            let new = if ports { &mut s.new_ports } else { &mut s.new };
            new.0 = if on { new.0 | mask } else { new.0 & !mask };
            if new.0 == 0 {
                new.1 = Word::NIL;
            } else if !tracer.is_nil() {
                new.1 = tracer;
            }
        }
        let any = self.sessions().iter().any(|s| s.of_new(false).0 != 0);
        self.new.store(any, Ordering::Release);
    }
    /// Whether some session traces processes to come.
    #[inline]
    pub(crate) fn traces_new(&self) -> bool {
        self.new.load(Ordering::Acquire)
    }
    /// Whether messages carry their senders.
    #[inline(always)]
    pub(crate) fn wants_senders(&self) -> bool {
        self.senders.load(Ordering::Relaxed)
    }
    /// Sets the pattern of `send` or `'receive'` events.
    pub fn set_pattern(&self, session: &Session, send: bool, pattern: EventPattern) {
        {
            let mut s = session.state.lock();
            if send {
                s.send = pattern;
            } else {
                s.receive = pattern;
            }
        }
        let any = self
            .sessions()
            .iter()
            .any(|s| s.pattern(false).spec.is_some());
        self.senders.store(any, Ordering::Release);
    }
}
