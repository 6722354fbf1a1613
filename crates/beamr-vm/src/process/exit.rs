//! How a process ends.
//!
//! 1. Something ends it: an exception that nobody caught or a normal return ([`Process::end`]), or an exit signal.
//! 2. Its runner starts the exit procedure: from then on it is no longer alive for anybody. Its name is free, its
//!    timer gone, its slot out of the table, its queue closed (what is pushed later comes back as from a dead process).
//! 3. In chunks, so that 100,000 links block nobody: subsystems release what it owned, links get exit
//!    signals, monitors `'DOWN'`, what it monitored is told, those it suspended go on, signals that came too late are answered.
//! 4. The exit is noted for those outside who wait, the heap is freed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use beamr_abi::{Ctx, ExceptionClass};
use beamr_sync::prim::{Condvar, Mutex};
use beamr_term::{Atom, Build, Word, atoms};

use super::{Carried, Outstanding, Own, Process, Slot, process, slot_of, worker};
use crate::sched::Worker;
use crate::sched::online::BLOCKS;
use crate::signal::handle::{send_down, send_exit, send_link_exit};
use crate::signal::{Batch, ExitKind, Signal, monitor, push_proc, suspend};
use crate::trace::process::{exited, procs};
use crate::trace::seq;

/// Signals sent per step of the procedure.
const CHUNK: usize = 1000;

/// How a process ended by itself, until its runner takes it.
#[derive(Debug)]
pub struct Ended {
    class: ExceptionClass,
    /// In the process's heap.
    reason: Word,
    log: bool,
    /// What it returned, for who watches from outside.
    result: Option<Carried>,
}

/// A process on its way out.
#[derive(Debug)]
pub struct Dying {
    class: ExceptionClass,
    /// In the process's heap or in `carried`.
    reason: Word,
    /// Keeps the reason.
    carried: Option<Carried>,
    result: Option<Carried>,
    log: bool,
    started: bool,
    leftovers: Option<Batch>,
}

impl Dying {
    /// By an exit signal.
    pub(crate) fn by_signal(class: ExceptionClass, reason: Carried) -> Dying {
        Dying {
            class,
            reason: reason.term,
            carried: Some(reason),
            result: None,
            log: false,
            started: false,
            leftovers: None,
        }
    }
    fn by_itself(e: Ended) -> Dying {
        Dying {
            class: e.class,
            reason: e.reason,
            carried: None,
            result: e.result,
            log: e.log,
            started: false,
            leftovers: None,
        }
    }
}

impl Process {
    /// Notes why the process ended. `reason` is the exit reason and lies in its heap. The engine then
    /// stops with `Stop::Exited`. The first end counts.
    pub fn end(&mut self, class: ExceptionClass, reason: Word, log: bool) {
        if self.ended.is_none() {
            self.ended = Some(Box::new(Ended {
                class,
                reason,
                log,
                result: None,
            }));
        }
    }
    /// Notes the normal end with what the first function returned.
    pub fn end_normally(&mut self, result: Word) {
        let watched = self.slot().watch.load(Ordering::Acquire) & WATCHED != 0;
        if self.ended.is_none() {
            self.ended = Some(Box::new(Ended {
                class: ExceptionClass::Exit,
                reason: atoms::NORMAL.word(),
                log: false,
                result: watched.then(|| Carried::own(result)),
            }));
        }
    }
}

/// The process whose runner calls this has stopped for good: turns what is noted into the exit procedure.
pub(crate) fn begin(own: &mut Own, process: Option<&mut Process>) {
    let ended = process.and_then(|p| p.ended.take());
    if own.dying.is_none() {
        own.dying = Some(Box::new(match ended {
            Some(e) => Dying::by_itself(*e),
            None => Dying::by_signal(ExceptionClass::Exit, Carried::immediate(atoms::NORMAL)),
        }));
    }
}

/// One step of the exit procedure. True when the process is dead and its slot no longer the caller's.
pub(crate) fn step(w: &Worker, slot: &Slot, own: &mut Own) -> bool {
    let Some(mut dying) = own.dying.take() else {
        return true;
    };
    if !dying.started {
        dying.started = true;
        start(w, slot, own, &mut dying);
    }
    let done = chunk(w, slot, own, &mut dying);
    if done {
        // The reason may lie in the body that goes now.
        drop(dying);
        exited(w, slot);
        finish(slot, own);
    } else {
        own.dying = Some(dying);
    }
    done
}

fn start(w: &Worker, slot: &Slot, own: &mut Own, dying: &mut Dying) {
    let vm = &w.vm;
    slot.state.set_exiting();
    if dying.log && !own.quiet {
        log_crash(w, slot, own, dying.reason);
    }
    // From here on nobody asks the process to copy what it refers to out of literal areas.
    if !dying.reason.is_immediate() {
        let reason = Carried::own(dying.reason);
        dying.reason = reason.term;
        dying.carried = Some(reason);
    }
    procs(w, slot, |n| n.exit, &[dying.reason]);
    if let Some(name) = own.name.take() {
        vm.registry.remove(slot.namespace.id, name, slot.pid());
        procs(w, slot, |n| n.unregister, &[name.word()]);
    }
    if let Some(t) = own.timer.take() {
        vm.workers[t.worker as usize].wheel.cancel(t.handle);
    }
    if let Some(t) = own.timers.take() {
        crate::timer::process_ended(w, &t);
    }
    own.aliases = Default::default();
    // Before anybody is told: who knows of the end finds room for another.
    slot.namespace.process_ended();
    note(w, slot, dying);
    vm.ets.process_ended(w, slot);
    if own.owned_resources & BLOCKS != 0 {
        vm.online.ended(vm, slot.proc_id());
    }
    vm.exit_hooks.run(w, slot, own);
    dying.leftovers = Some(slot.queue.close());
}

/// Takes the process out of the table and, for those who want to know, notes its exit: one step for everybody
/// who looks under the ledger's lock.
fn note(w: &Worker, slot: &Slot, dying: &mut Dying) {
    let vm = &w.vm;
    let remove = || {
        let guard = w.participant.pin();
        // The caller holds a count; the table's own goes back when no reader is left.
        drop(vm.processes.remove(slot.id, &guard));
    };
    let normal = dying.reason == atoms::NORMAL.word();
    let unwatched = || {
        slot.watch
            .compare_exchange(0, OVER, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let forgotten = normal || !vm.options.notes_abnormal_exits;
    if forgotten && !vm.exits.is_observed() && unwatched() {
        return remove();
    }
    let record = ExitRecord {
        class: dying.class,
        reason: Carried::own(dying.reason),
        result: dying.result.take(),
        taken: 0,
    };
    let observer = vm.exits.observer();
    let told = observer.map(|o| (o, record.duplicate()));
    if forgotten && unwatched() {
        remove();
    } else {
        vm.exits.record(slot.id.as_u64(), record, || {
            let watch = slot.watch.swap(WATCHED | OVER, Ordering::AcqRel);
            remove();
            watch & WATCHED != 0
        });
    }
    if let Some((observer, record)) = told {
        observer(slot.id.as_u64(), record);
    }
}

fn chunk(w: &Worker, slot: &Slot, own: &mut Own, dying: &mut Dying) -> bool {
    let me = slot.proc_id();
    let mut left = CHUNK;
    let reason_cost = if dying.reason.is_immediate() { 0 } else { 4 };
    while left > 0 {
        left = left.saturating_sub(1 + reason_cost);
        if let Some((to, unlinking)) = own.links.pop_first() {
            if unlinking == 0 {
                let token = seq::of_dying(w, slot, to, dying.reason);
                send_link_exit(w, me, to, Carried::copy(dying.reason), token);
            }
            continue;
        }
        if let Some((key, by)) = own.monitored_by.pop_first() {
            send_down(w, by.origin, key, Carried::copy(dying.reason));
            continue;
        }
        if let Some((key, m)) = own.monitors.pop_first() {
            monitor::tell_demonitor(w, m.target, key);
            continue;
        }
        if let Some((to, times)) = own.suspending.pop_first() {
            suspend::resume_times(w, to, times);
            continue;
        }
        if let Some(r) = own.deferred.pop() {
            r.reply(w, None);
            continue;
        }
        // Those of before the close come first.
        let batch = match &mut own.middle {
            Some(b) if !b.is_empty() => own.middle.as_mut(),
            _ => dying.leftovers.as_mut(),
        };
        match batch.and_then(Batch::next_node) {
            Some(node) => too_late(w, slot, node.into_value()),
            None => return true,
        }
    }
    false
}

/// A signal that came after the end.
fn too_late(w: &Worker, slot: &Slot, signal: Signal) {
    let me = slot.proc_id();
    let noproc = || Carried::immediate(atoms::NOPROC);
    match signal {
        Signal::Link(from) => {
            send_exit(w, me, from, ExitKind::NoLink, noproc());
        }
        Signal::Monitor(m) => send_down(w, m.origin, m.key, noproc()),
        Signal::Unlink(u) => {
            let _ = push_proc(w, u.0, Signal::UnlinkAck(Box::new((me, u.1))));
        }
        Signal::Request(r) => r.reply(w, None),
        Signal::Message(_)
        | Signal::Letter(_)
        | Signal::AliasMessage(_)
        | Signal::Timeout(_)
        | Signal::Exit(_)
        | Signal::UnlinkAck(_)
        | Signal::Demonitor(_)
        | Signal::Down(_)
        | Signal::Reply(_)
        | Signal::Wake => {}
    }
}

fn finish(slot: &Slot, own: &mut Own) {
    own.mailbox = Default::default();
    slot.namespace
        .charge_memory(-(std::mem::take(&mut own.charged) as isize));
    own.outstanding = None::<Box<Outstanding>>;
    own.native = None;
    own.middle = None;
    let last = slot.state.finish();
    if !last.is_dirty() {
        free_body(slot);
    }
}

/// Frees the body of a dead process.
pub(crate) fn free_body(slot: &Slot) {
    let body = slot.body.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !body.is_null() {
        // SAFETY: the process is dead and the caller has the body, which came from a box.
        let p = unsafe { Box::from_raw(body) };
        slot.namespace.charge_memory(-p.charged);
        if p.charged_off_heap != 0 {
            slot.namespace.note_off_heap(-p.charged_off_heap);
        }
    }
}

/// In [`Slot::watch`]: somebody outside wants the exit noted.
pub(crate) const WATCHED: u8 = 1;
/// In [`Slot::watch`]: the exit has been noted, or will not be.
pub(crate) const OVER: u8 = 2;

/// Exit reasons as the host sees them.
#[derive(Debug)]
pub enum ExitReason {
    /// `normal`.
    Normal,
    /// `kill` (a link to a process that was killed by name of that reason).
    Kill,
    /// `killed`.
    Killed,
    /// `noproc`.
    NoProc,
    /// `noconnection`.
    NoConnection,
    /// Any other term.
    Term(Carried),
}

/// How a process ended.
#[derive(Debug)]
pub struct ExitRecord {
    /// `Error` and `Throw` when an exception ended it, `Exit` otherwise.
    pub class: ExceptionClass,
    /// The exit reason.
    pub reason: Carried,
    /// What its first function returned, when it ended normally and was watched.
    pub result: Option<Carried>,
    /// What the host has taken of a record that it leaves in place, in bits of its own.
    pub taken: u8,
}

/// Told of one exit; `None` when there will be no record: the VM was halted, or somebody else took it.
pub type ExitWatcher = Box<dyn FnOnce(Option<&ExitRecord>) + Send>;

/// Told of every exit, after it has been noted. Runs on workers.
pub type ExitObserver = Arc<dyn Fn(u64, ExitRecord) + Send + Sync>;

impl ExitRecord {
    /// A further record of the same end.
    fn duplicate(&self) -> ExitRecord {
        ExitRecord {
            class: self.class,
            reason: Carried::own(self.reason.term),
            result: None,
            taken: self.taken,
        }
    }
    /// The reason as an enum.
    pub fn exit_reason(&self) -> ExitReason {
        match self.reason.term.as_atom() {
            Some(atoms::NORMAL) => ExitReason::Normal,
            Some(atoms::KILL) => ExitReason::Kill,
            Some(atoms::KILLED) => ExitReason::Killed,
            Some(atoms::NOPROC) => ExitReason::NoProc,
            Some(atoms::NOCONNECTION) => ExitReason::NoConnection,
            _ => ExitReason::Term(self.reason.duplicate()),
        }
    }
}

/// Exits noted for the host: those of watched processes, and abnormal ones. The oldest give way.
#[derive(Default)]
pub struct ExitLedger {
    state: Mutex<Records>,
    changed: Condvar,
    observed: std::sync::atomic::AtomicBool,
    observer: std::sync::RwLock<Option<ExitObserver>>,
}

impl std::fmt::Debug for ExitLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExitLedger")
    }
}

#[derive(Default)]
struct Records {
    map: HashMap<u64, ExitRecord>,
    /// Those that nobody had asked for.
    order: VecDeque<u64>,
    /// Those that somebody waits for: they give way only to each other.
    watched: VecDeque<u64>,
    waiting: usize,
    watchers: HashMap<u64, Vec<ExitWatcher>>,
    /// The VM was halted: nothing more is to be waited for.
    halted: bool,
}

/// Exits kept.
pub const EXITS_KEPT: usize = 65_536;

impl ExitLedger {
    /// Notes an exit; `with` runs under the lock and says whether it was watched.
    fn record(&self, pid: u64, record: ExitRecord, with: impl FnOnce() -> bool) {
        let mut s = self.state.lock();
        let watched = with();
        let s = &mut *s;
        let order = if watched {
            &mut s.watched
        } else {
            &mut s.order
        };
        if order.len() >= EXITS_KEPT
            && let Some(old) = order.pop_front()
        {
            s.map.remove(&old);
        }
        order.push_back(pid);
        for watcher in s.watchers.remove(&pid).into_iter().flatten() {
            watcher(Some(&record));
        }
        s.map.insert(pid, record);
        // Who waits has asked for it to be noted.
        if watched && s.waiting > 0 {
            self.changed.notify_all();
        }
    }
    /// Takes a record out.
    pub fn take(&self, pid: u64) -> Option<ExitRecord> {
        self.state.lock().map.remove(&pid)
    }
    /// Looks at a record.
    pub fn peek<R>(&self, pid: u64, look: impl FnOnce(&ExitRecord) -> R) -> Option<R> {
        self.state.lock().map.get(&pid).map(look)
    }
    /// Looks at a record and changes it.
    pub fn with<R>(&self, pid: u64, f: impl FnOnce(&mut ExitRecord) -> R) -> Option<R> {
        self.state.lock().map.get_mut(&pid).map(f)
    }
    /// Calls `watcher` when the exit of a watched process is noted, at once when it is; `over` says (under the ledger's lock)
    /// whether the process is gone, so that a record that was taken meanwhile is not waited for. It must be short: the ledger is locked.
    pub(crate) fn when(&self, pid: u64, watcher: ExitWatcher, over: impl FnOnce() -> bool) {
        let mut s = self.state.lock();
        if let Some(record) = s.map.get(&pid) {
            watcher(Some(record));
        } else if s.halted || over() {
            drop(s);
            watcher(None);
        } else {
            s.watchers.entry(pid).or_default().push(watcher);
        }
    }
    /// Sets who is told of every exit; gives back who was.
    pub fn observe(&self, observer: Option<ExitObserver>) -> Option<ExitObserver> {
        let mut o = self.observer.write().unwrap_or_else(|e| e.into_inner());
        self.observed.store(observer.is_some(), Ordering::Release);
        std::mem::replace(&mut *o, observer)
    }
    fn is_observed(&self) -> bool {
        self.observed.load(Ordering::Acquire)
    }
    fn observer(&self) -> Option<ExitObserver> {
        if !self.is_observed() {
            return None;
        }
        self.observer
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }
    /// Makes those who wait look whether they should give up; watchers are told that nothing comes.
    pub(crate) fn wake(&self) {
        let mut s = self.state.lock();
        s.halted = true;
        let watchers = std::mem::take(&mut s.watchers);
        drop(s);
        for watcher in watchers.into_values().flatten() {
            watcher(None);
        }
        let s = self.state.lock();
        if s.waiting > 0 {
            self.changed.notify_all();
        }
    }
    /// Waits until the record is there, at most for `timeout`, or until `give_up` says so (asked again after [`ExitLedger::wake`]).
    pub(crate) fn wait(
        &self,
        pid: u64,
        timeout: Option<std::time::Duration>,
        give_up: impl Fn() -> bool,
    ) -> Option<ExitRecord> {
        let deadline = timeout.and_then(|t| std::time::Instant::now().checked_add(t));
        let mut s = self.state.lock();
        loop {
            if let Some(r) = s.map.remove(&pid) {
                return Some(r);
            }
            if give_up() {
                return None;
            }
            s.waiting += 1;
            match deadline {
                None => s = self.changed.wait(s),
                Some(d) => {
                    let left = d.saturating_duration_since(std::time::Instant::now());
                    if left.is_zero() {
                        s.waiting -= 1;
                        return None;
                    }
                    s = self.changed.wait_timeout(s, left);
                }
            }
            s.waiting -= 1;
        }
    }
}

/// What subsystems do when a process dies.
pub type ExitHook = Arc<dyn Fn(&Worker, &Slot, &mut Own) + Send + Sync>;

/// Called for every process that dies, after its name is free and before links and monitors fire. A hook looks at
/// [`Own::owned_resources`] first and returns at once when its bit is not set.
#[derive(Default)]
pub struct ExitHooks(std::sync::OnceLock<Vec<ExitHook>>);

impl std::fmt::Debug for ExitHooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ExitHooks")
    }
}

impl ExitHooks {
    /// Sets the hooks; false when they were set before.
    pub fn set(&self, hooks: Vec<ExitHook>) -> bool {
        self.0.set(hooks).is_ok()
    }
    fn run(&self, w: &Worker, slot: &Slot, own: &mut Own) {
        if own.owned_resources == 0 {
            return;
        }
        for hook in self.0.get().into_iter().flatten() {
            hook(w, slot, own);
        }
    }
}

/// Tells the logger of a crash, as "Error in process <0.1.0> with exit value".
fn log_crash(w: &Worker, slot: &Slot, own: &Own, reason: Word) {
    let body = slot.body.load(Ordering::Acquire);
    let leader = if body.is_null() {
        Word::NIL
    } else {
        // SAFETY: the caller is the runner and has the body (a process that ends by itself is not away).
        unsafe { (*body).body.group_leader }
    };
    let _ = own;
    let (node, _) = w.vm.tables.local_node();
    let alive = node != atoms::NONODE_NOHOST;
    let format = if alive {
        "Error in process ~p on node ~p with exit value:~n~p~n"
    } else {
        "Error in process ~p with exit value:~n~p~n"
    };
    log(w, slot, leader, atoms::ERROR, format, &|f| {
        let reason = super::copy_term(reason, f);
        if alive {
            f.list([slot.pid(), node.word(), reason])
        } else {
            f.list([slot.pid(), reason])
        }
    });
}

/// Tells the logger that a process hit its `max_heap_size`.
pub(crate) fn log_max_heap(ctx: &mut Ctx) {
    let w = worker(ctx);
    let slot = slot_of(ctx);
    let p = process(ctx);
    let (max, total) = (
        p.body.heap.max_size,
        p.body.heap.size() + p.body.heap.old_size() + p.body.heap.fragment_words,
    );
    let leader = p.body.group_leader;
    let kill = p.max_heap.kill;
    log(
        w,
        slot,
        leader,
        atoms::ERROR,
        "     Process:          ~p ~n     Context:          maximum heap size reached~n     Max Heap Size:    ~p~n     Total Heap Size:  ~p~n     Kill:             ~p~n",
        &|f| {
            f.list([
                slot.pid(),
                Word::fixnum(max as i64),
                Word::fixnum(total as i64),
                Word::boolean(kill),
            ])
        },
    );
}

/// Sends `{log, Level, Format, Args, Metadata}` to the system logger ([`Vm::system_logger`](crate::vm::Vm::system_logger)), unless
/// that is the process itself. The VM's hook gets it where there is none.
pub(crate) fn log(
    w: &Worker,
    slot: &Slot,
    leader: Word,
    level: Atom,
    format: &str,
    args: &dyn Fn(&mut beamr_term::Fragment) -> Word,
) {
    let time = w.vm.system_time_us();
    let message = Carried::build(128, |f| {
        let args = args(f);
        let format = f.string(format);
        let leader = if leader.is_pid() {
            super::copy_term(leader, f)
        } else {
            Word::NIL
        };
        let tables = &w.vm.tables;
        let atom = |t: &str| tables.atoms.intern(t).map_or(Word::NIL, Atom::word);
        let inner = beamr_term::maps::from_pairs(
            f,
            &[
                (atoms::EMULATOR.word(), Word::TRUE),
                (atoms::TAG.word(), atoms::ERROR.word()),
            ],
            tables,
        );
        let time = f.integer(time);
        let meta = beamr_term::maps::from_pairs(
            f,
            &[
                (atom("error_logger"), inner),
                (atom("gl"), leader),
                (atoms::PID.word(), slot.pid()),
                (atom("time"), time),
            ],
            tables,
        );
        f.tuple(&[atoms::LOG.word(), level.word(), format, args, meta])
    });
    let named = || w.vm.registry.whereis(slot.namespace.id, atoms::LOGGER);
    let logger = match w.vm.system_logger() {
        to if to == atoms::UNDEFINED.word() => return,
        to if to == atoms::LOGGER.word() => named(),
        pid if pid.is_local_pid() && !w.vm.is_alive(pid) => {
            // From now on the process of the name is told, as in OTP.
            w.vm.set_system_logger(atoms::LOGGER.word());
            named()
        }
        pid => Some(pid).filter(|p| p.is_local_pid()),
    };
    match logger {
        Some(pid) if pid != slot.pid() => {
            let to = super::ProcId::local(pid.local_number());
            let _ = push_proc(w, to, Signal::Message(message.into_message()));
        }
        _ => w.vm.log_without_logger(message.term),
    }
}
