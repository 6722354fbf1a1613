//! Ports: what a process talks to that is no process.
//!
//! A port is a row of the VM's table with an owner (the *connected* process), links, monitors, a name, and the driver that a
//! [`PortService`] made. Everything that touches a port does so under its lock, at once: signals to it take effect when they are
//! sent, in the order of the sender; what it sends goes into the queues of processes, in the order of the port. So the order
//! between a process and a port is kept both ways.
//!
//! Locks: the table's before a port's, never the other way round. A driver calls its [`PortSink`] on a thread of its own and
//! holds no lock then; the VM calls the driver with the port locked. What ends a port is done in two steps: taken out of the table
//! under the lock, then told to links and monitors.

mod framing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use beamr_abi::{Ctx, Pending};
use beamr_term::{Alloc, Atom, Build, Fragment, Word, atoms, text};

pub use framing::{Frame, Framing, Input, TooLong};

use crate::door::{PortDriver, PortRequest, PortService, PortSink, ServiceError};
use crate::namespace::Namespace;
use crate::process::{Carried, ProcId, RefKey, slot_of, worker};
use crate::sched::Worker;
use crate::signal::handle::{send_down, send_exit};
use crate::signal::monitor::Monitored;
use crate::signal::{ExitKind, Signal, push_proc};
use crate::vm::Vm;

/// What fits one write.
const MOST: text::WalkLimit = text::WalkLimit {
    bytes: 1 << 31,
    cells: 1 << 31,
};

/// How many ports may be open.
pub const PORT_LIMIT: usize = 65536;

/// What the VM itself has to know of a port's options.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How bytes become messages.
    pub framing: Framing,
    /// Data come as binaries.
    pub binary: bool,
    /// `eof`: the end of input is a message, not the end of the port.
    pub eof: bool,
    /// `exit_status`: how the program ended is a message.
    pub exit_status: bool,
    /// `{parallelism, true}`.
    pub parallelism: bool,
    /// What it may be asked to do: input and output.
    pub input: bool,
    /// See [`Settings::input`].
    pub output: bool,
}

/// A port cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The service refused.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// There are as many as there may be.
    #[error("there are {PORT_LIMIT} ports")]
    Limit,
}

/// The ports of a VM.
#[derive(Default)]
pub struct Ports {
    table: Mutex<BTreeMap<u64, Arc<Port>>>,
    made: AtomicU64,
}

/// One port.
pub struct Port {
    number: u64,
    name: Vec<u8>,
    vm: Weak<Vm>,
    namespace: Arc<Namespace>,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// `None` before it is open and after it was closed.
    driver: Option<Box<dyn PortDriver>>,
    connected: Option<ProcId>,
    links: BTreeSet<ProcId>,
    monitors: BTreeMap<RefKey, ProcId>,
    registered: Option<Atom>,
    data: Option<Carried>,
    pending: Input,
    input: u64,
    output: u64,
    /// Its queue is full: who wants to send waits in `writers`.
    busy: bool,
    writers: Vec<ProcId>,
    status: Option<i32>,
    at_end: bool,
    /// The end was told.
    finished: bool,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#Port<0.{}>", self.number)
    }
}

impl Ports {
    /// The ports of `vm`.
    pub fn of(vm: &Vm) -> Arc<Ports> {
        vm.extensions.get_or_init(Ports::default)
    }
    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Port>>> {
        self.table.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The open ports of a namespace, oldest first.
    pub fn all(&self, namespace: u32) -> Vec<Word> {
        let table = self.table();
        let mine = table.values().filter(|p| p.namespace.id == namespace);
        mine.map(|p| p.word()).collect()
    }
    /// How many are open.
    pub fn count(&self) -> usize {
        self.table().len()
    }
    fn number(&self, number: u64) -> Option<Arc<Port>> {
        self.table().get(&number).cloned()
    }
}

/// The open port of the caller's namespace that a term names.
pub fn find(ctx: &Ctx, port: Word) -> Option<Arc<Port>> {
    if !port.is_local_port() {
        return None;
    }
    let slot = slot_of(ctx);
    let ports = worker(ctx).vm.extensions.get::<Ports>()?;
    let found = ports.number(port.local_number())?;
    (found.namespace.id == slot.namespace.id).then_some(found)
}

/// Opens a port; the caller is its owner and linked to it.
pub fn open(
    ctx: &mut Ctx,
    request: &PortRequest,
    settings: Settings,
    name: Vec<u8>,
) -> Result<Word, OpenError> {
    let vm = worker(ctx).vm.clone();
    let Some(service) = vm.hooks.ports.get() else {
        return Err(ServiceError::Disabled { service: "ports" }.into());
    };
    let slot = slot_of(ctx);
    let me = slot.proc_id();
    let ports = Ports::of(&vm);
    let number = ports.made.fetch_add(1, Ordering::Relaxed) + 1;
    let port = Arc::new(Port {
        number,
        name,
        vm: Arc::downgrade(&vm),
        namespace: slot.namespace.clone(),
        settings,
        state: Mutex::default(),
    });
    {
        let mut table = ports.table();
        if table.len() >= PORT_LIMIT {
            return Err(OpenError::Limit);
        }
        table.insert(number, port.clone());
    }
    // Events wait for this lock until the port is whole.
    let mut state = port.state();
    match service.open(request, port.clone()) {
        Ok(driver) => {
            state.driver = Some(driver);
            state.connected = Some(me);
            state.links.insert(me);
            crate::process::own(ctx).links.insert(port.id(), 0);
            Ok(port.word())
        }
        Err(e) => {
            drop(state);
            ports.table().remove(&number);
            Err(e.into())
        }
    }
}

/// What became of bytes for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Taken.
    Taken,
    /// Nothing was taken: the port is busy.
    Busy,
    /// The port is closed.
    Closed,
}

impl Port {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The identity.
    pub fn id(&self) -> ProcId {
        ProcId::local_port(self.number)
    }
    /// The term.
    pub fn word(&self) -> Word {
        Word::port(self.number)
    }
    /// What it was opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// Command, file or descriptors.
    pub fn name(&self) -> &[u8] {
        &self.name
    }
    /// The owner.
    pub fn connected(&self) -> Option<ProcId> {
        self.state().connected
    }
    /// Linked processes.
    pub fn links(&self) -> Vec<ProcId> {
        self.state().links.iter().copied().collect()
    }
    /// Who monitors it.
    pub fn monitored_by(&self) -> Vec<ProcId> {
        self.state().monitors.values().copied().collect()
    }
    /// The name that it is registered under.
    pub fn registered(&self) -> Option<Atom> {
        self.state().registered
    }
    /// Bytes read from and written to it.
    pub fn traffic(&self) -> (u64, u64) {
        let s = self.state();
        (s.input, s.output)
    }
    /// Bytes that wait to be written.
    pub fn queued(&self) -> usize {
        self.state().driver.as_ref().map_or(0, |d| d.queued())
    }
    /// The OS process behind it.
    pub fn os_pid(&self) -> Option<u32> {
        self.state().driver.as_ref().and_then(|d| d.os_pid())
    }
    /// What `port_set_data/2` left.
    pub fn data(&self, heap: &mut impl Alloc) -> Word {
        let s = self.state();
        s.data
            .as_ref()
            .map_or(atoms::UNDEFINED.word(), |d| d.copy_into(heap))
    }
    /// `port_set_data/2`.
    pub fn set_data(&self, term: Word) {
        self.state().data = Some(Carried::own(term));
    }
    /// Registers it; false when it has a name or the name is taken.
    pub fn register(&self, vm: &Vm, name: Atom) -> bool {
        let mut s = self.state();
        let free = s.driver.is_some() && s.registered.is_none();
        if free && vm.registry.insert(self.namespace.id, name, self.word()) {
            s.registered = Some(name);
            return true;
        }
        false
    }
    /// Takes its name away.
    pub fn unregister(&self, vm: &Vm, name: Atom) {
        let mut s = self.state();
        if s.registered == Some(name) {
            s.registered = None;
        }
        vm.registry.remove(self.namespace.id, name, self.word());
    }
    /// Makes `to` the owner and links it. False when the port is closed or the process dead.
    pub fn connect(&self, w: &Worker, to: ProcId) -> bool {
        let mut s = self.state();
        if s.driver.is_none() {
            return false;
        }
        if !s.links.contains(&to) {
            if push_proc(w, to, Signal::Link(self.id())).is_err() {
                return false;
            }
            s.links.insert(to);
        }
        s.connected = Some(to);
        true
    }
    /// As a message asks for it: the owner changes, links do not.
    fn pass_on(&self, w: &Worker, from: ProcId, to: ProcId) {
        self.state().connected = Some(to);
        let connected = atom(w, "connected");
        self.tell(w, from, |f, port| f.tuple(&[port, connected]));
    }
    /// Somebody sent what the port does not understand: its owner hears of it.
    fn bad_signal(&self, w: &Worker) {
        if let Some(owner) = self.connected() {
            let reason = Carried::immediate(atom(w, "badsig"));
            send_exit(w, self.id(), owner, ExitKind::Exit2, reason);
        }
    }
    /// Tells the logger of data that are no bytes.
    pub fn report_bad_output(&self, ctx: &mut Ctx) {
        let name = String::from_utf8_lossy(&self.name);
        let text = format!("Bad value on output port '{name}'\n");
        let leader = ctx.body().group_leader;
        crate::process::exit::log(
            worker(ctx),
            slot_of(ctx),
            leader,
            atoms::ERROR,
            "~s~n",
            &|f| {
                let text = f.string(&text);
                f.list([text])
            },
        );
    }
    /// Sends bytes, unless the port is busy (and `force` is not asked for).
    pub fn command(&self, w: &Worker, bytes: Vec<u8>, force: bool) -> Sent {
        let mut s = self.state();
        if s.driver.is_none() {
            return Sent::Closed;
        }
        if s.busy && !force {
            return Sent::Busy;
        }
        let failed = match self.settings.framing.header(bytes.len()) {
            Ok(mut packet) => {
                packet.extend_from_slice(&bytes);
                s.output += packet.len() as u64;
                match s.driver.as_mut().map(|d| d.output(packet)) {
                    Some(Ok(busy)) => {
                        s.busy = busy;
                        return Sent::Taken;
                    }
                    Some(Err(ServiceError::Os { code, .. })) => code,
                    Some(Err(_)) | None => "einval".into(),
                }
            }
            Err(TooLong(_)) => "einval".into(),
        };
        drop(s);
        self.end_with_code(w, &failed);
        Sent::Taken
    }
    /// Lets the caller wait until the port takes bytes again.
    pub fn wait(&self, me: ProcId) -> Pending {
        let mut s = self.state();
        if s.busy && s.driver.is_some() {
            s.writers.push(me);
            Pending::Wait
        } else {
            Pending::Yield
        }
    }
    /// Asks the driver; `None` when the port is closed.
    pub fn control(&self, operation: u32, data: &[u8]) -> Option<Result<Vec<u8>, ServiceError>> {
        let mut s = self.state();
        s.driver.as_mut().map(|d| d.control(operation, data))
    }
    /// Ends it. False when it has ended already. With `reply`, its owner is told last.
    pub fn close(&self, w: &Worker, reason: Carried, reply: bool) -> bool {
        let gone = {
            let mut s = self.state();
            let Some(mut driver) = s.driver.take() else {
                return false;
            };
            driver.close();
            std::mem::take(&mut *s)
        };
        if let Some(ports) = w.vm.extensions.get::<Ports>() {
            ports.table().remove(&self.number);
        }
        if let Some(name) = gone.registered {
            w.vm.registry.remove(self.namespace.id, name, self.word());
        }
        for to in &gone.links {
            send_exit(w, self.id(), *to, ExitKind::Link, reason.duplicate());
        }
        for (key, to) in &gone.monitors {
            send_down(w, *to, *key, reason.duplicate());
        }
        // As OTP: what the end of a port does comes before the answer.
        if let (true, Some(owner)) = (reply, gone.connected) {
            let closed = atom(w, "closed");
            self.tell(w, owner, |f, port| f.tuple(&[port, closed]));
        }
        wake(w, gone.writers);
        true
    }
    fn end_with_code(&self, w: &Worker, code: &str) {
        let reason = w.vm.tables.atoms.intern(code).unwrap_or(atoms::ERROR);
        self.close(w, Carried::immediate(reason), false);
    }
    fn tell(&self, w: &Worker, to: ProcId, build: impl FnOnce(&mut Fragment, Word) -> Word) {
        let message = Carried::build(8, |f| build(f, self.word()));
        let _ = push_proc(w, to, Signal::Message(message.into_message()));
    }
    fn deliver(&self, w: &Worker, to: ProcId, frame: Frame) {
        let binary = self.settings.binary;
        self.tell(w, to, |f, port| {
            let (bytes, mark) = match frame {
                Frame::Data(b) => (b, None),
                Frame::Eol(b) => (b, Some("eol")),
                Frame::NoEol(b) => (b, Some("noeol")),
            };
            let mut data = if binary {
                f.binary(&bytes)
            } else {
                f.list(bytes.iter().map(|b| Word::fixnum(i64::from(*b))))
            };
            if let Some(mark) = mark {
                data = f.tuple(&[atom(w, mark), data]);
            }
            let what = f.tuple(&[atom(w, "data"), data]);
            f.tuple(&[port, what])
        });
    }
    /// Input has ended, and, if that is wanted, the program.
    fn finish(&self, w: &Worker) {
        let mut s = self.state();
        let wants_status = self.settings.exit_status;
        if s.driver.is_none() || s.finished || !s.at_end || (wants_status && s.status.is_none()) {
            return;
        }
        s.finished = true;
        if let (Some(owner), Some(status)) = (s.connected, s.status.filter(|_| wants_status)) {
            let status = Word::fixnum(i64::from(status));
            self.tell(w, owner, |f, port| {
                let what = f.tuple(&[atom(w, "exit_status"), status]);
                f.tuple(&[port, what])
            });
        }
        // OTP keeps the rest of a line for last.
        let last = s.pending.end(self.settings.framing);
        if let (Some(frame), Some(owner)) = (last, s.connected) {
            self.deliver(w, owner, frame);
        }
        if !self.settings.eof {
            drop(s);
            self.close(w, Carried::immediate(atoms::NORMAL), false);
        } else if let Some(owner) = s.connected {
            self.tell(w, owner, |f, port| f.tuple(&[port, atom(w, "eof")]));
        }
    }
    fn worker(&self) -> Option<Box<Worker>> {
        self.vm.upgrade().map(|vm| vm.guest())
    }
    /// A signal that is no message. It comes back when the port is closed.
    fn signal(&self, w: &Worker, signal: Signal) -> Result<(), Signal> {
        let mut s = self.state();
        if s.driver.is_none() {
            return Err(signal);
        }
        match signal {
            Signal::Link(from) => {
                s.links.insert(from);
            }
            Signal::Unlink(m) => {
                let (from, number) = *m;
                s.links.remove(&from);
                let ack = Signal::UnlinkAck(Box::new((self.id(), number)));
                let _ = push_proc(w, from, ack);
            }
            Signal::Monitor(m) => {
                s.monitors.insert(m.key, m.origin);
            }
            Signal::Demonitor(key) => {
                s.monitors.remove(&key);
            }
            Signal::Exit(e) => {
                let linked = s.links.remove(&e.from);
                let by_link = matches!(e.kind, ExitKind::Link | ExitKind::NoLink);
                if !by_link && linked {
                    s.links.insert(e.from);
                }
                let is_owner = s.connected == Some(e.from);
                drop(s);
                let normal = e.reason.term == atoms::NORMAL.word();
                if (by_link && !linked) || (normal && !is_owner) {
                    return Ok(());
                }
                let reason = if !by_link && e.reason.term == atoms::KILL.word() {
                    Carried::immediate(atoms::KILLED)
                } else {
                    e.reason
                };
                self.close(w, reason, false);
            }
            other => return Err(other),
        }
        Ok(())
    }
}

fn atom(w: &Worker, text: &str) -> Word {
    // The texts are those of this file: there is room for them.
    let a = w.vm.tables.atoms.intern(text);
    a.map_or(atoms::UNDEFINED.word(), Atom::word)
}

fn wake(w: &Worker, waiting: Vec<ProcId>) {
    for to in waiting {
        let _ = push_proc(w, to, Signal::Wake);
    }
}

impl PortSink for Port {
    fn data(&self, bytes: Vec<u8>) {
        let Some(w) = self.worker() else { return };
        let mut s = self.state();
        s.input += bytes.len() as u64;
        let frames = s.pending.take(self.settings.framing, bytes);
        let Some(owner) = s.connected.filter(|_| s.driver.is_some()) else {
            return;
        };
        for frame in frames {
            self.deliver(&w, owner, frame);
        }
    }
    fn eof(&self) {
        let Some(w) = self.worker() else { return };
        self.state().at_end = true;
        self.finish(&w);
    }
    fn exited(&self, status: i32) {
        let Some(w) = self.worker() else { return };
        {
            let mut s = self.state();
            s.status = Some(status);
            // Who only writes sees no end of input.
            s.at_end |= !self.settings.input;
        }
        self.finish(&w);
    }
    fn failed(&self, code: &str) {
        if let Some(w) = self.worker() {
            self.end_with_code(&w, code);
        }
    }
    fn drained(&self) {
        let Some(w) = self.worker() else { return };
        let waiting = {
            let mut s = self.state();
            s.busy = false;
            std::mem::take(&mut s.writers)
        };
        wake(&w, waiting);
    }
}

/// A signal other than a message to a port of this VM; back when it is closed.
pub(crate) fn signal(w: &Worker, to: ProcId, signal: Signal) -> Result<(), Signal> {
    let ports = w.vm.extensions.get::<Ports>();
    match ports.and_then(|p| p.number(to.number())) {
        Some(port) => port.signal(w, signal),
        None => Err(signal),
    }
}

/// `Port ! Message`: `{Owner, {command, Data} | {connect, Pid} | close}`. Anything else gives the owner the exit signal
/// `badsig`; a closed port takes no notice.
pub(crate) fn send(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Pending> {
    let Some(port) = find(ctx, to) else {
        return Ok(());
    };
    let me = slot_of(ctx).proc_id();
    let tables = ctx.tables();
    let w = worker(ctx);
    let Some([owner, request]) = message.as_tuple() else {
        port.bad_signal(w);
        return Ok(());
    };
    let is_owner = ProcId::of(*owner).filter(|o| port.connected() == Some(*o));
    let words = request.as_tuple();
    let (what, argument) = match words {
        Some([what, argument]) => (*what, *argument),
        _ => (*request, Word::NONE),
    };
    let text = what.as_atom().map(|a| tables.atoms.text(a));
    match (is_owner, text, words.is_some()) {
        (Some(_), Some("close"), false) => {
            port.close(w, Carried::immediate(atoms::NORMAL), true);
        }
        (owner, Some("command"), true) => match text::iolist_to_bytes(argument, MOST) {
            Ok(bytes) if owner.is_some() => {
                ctx.bump(bytes.len() as i64 / 100 + 5);
                if port.command(worker(ctx), bytes, false) == Sent::Busy {
                    return Err(port.wait(me));
                }
            }
            Ok(_) => port.bad_signal(w),
            Err(_) => {
                port.report_bad_output(ctx);
                port.bad_signal(worker(ctx));
            }
        },
        (Some(from), Some("connect"), true) if argument.is_local_pid() => {
            if let Some(new) = ProcId::of(argument) {
                port.pass_on(w, from, new);
            }
        }
        _ => port.bad_signal(w),
    }
    Ok(())
}

/// What `monitor(port, Item)` names; `None` is `badarg`.
pub fn monitored(item: Word) -> Option<Monitored> {
    if item.is_local_port() {
        return ProcId::of(item).map(Monitored::Port);
    }
    item.as_atom().map(Monitored::PortName)
}

/// The driver of the port that stands for the starting of programs: it does nothing.
struct Forker;

impl PortDriver for Forker {
    fn output(&mut self, _: Vec<u8>) -> Result<bool, ServiceError> {
        Ok(false)
    }
    fn control(&mut self, _: u32, _: &[u8]) -> Result<Vec<u8>, ServiceError> {
        Err(ServiceError::Invalid {
            service: "ports",
            what: "the forker takes no orders".into(),
        })
    }
    fn os_pid(&self) -> Option<u32> {
        None
    }
    fn queued(&self) -> usize {
        0
    }
    fn close(&mut self) {}
}

/// Gives a fresh VM its ports: who opens them, and the port that OTP has first of all, `forker`.
pub fn install(vm: &Arc<Vm>, service: Arc<dyn PortService>) {
    // A fresh VM has no hook yet.
    let _ = vm.hooks.ports.set(service);
    let forker = Port {
        number: 0,
        name: b"forker".to_vec(),
        vm: Arc::downgrade(vm),
        namespace: vm.default_namespace(),
        settings: Settings::default(),
        state: Mutex::new(State {
            driver: Some(Box::new(Forker)),
            connected: Some(ProcId::local(0)),
            ..State::default()
        }),
    };
    Ports::of(vm).table().insert(0, Arc::new(forker));
}
