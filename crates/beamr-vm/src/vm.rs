//! One virtual machine: its tables, processes, names, timers, workers.
//!
//! A [`Vm`] is shared by its workers, its host and everything that natives reach through
//! [`vm_of`](crate::process::vm_of). It has no process-wide state: any number of them live side by side. With workers it runs by itself from
//! [`Vm::new`] to [`Vm::shutdown`]; without (`workers: 0`) it runs on whichever thread calls [`Vm::run_until_idle`].

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Duration;

use beamr_abi::{Ctx, Escape, NativeClass, NativeEntry, Pending};
use beamr_sync::{Domain, IdleSet, RunQueue, SharedWheel, SlotId, SlotTable};
use beamr_term::{Atom, Tables, Word, atoms};

use crate::code::{CodeServer, LoadError, ModuleTable};
use crate::door::{Door, PortService};
use crate::engine::Engine;
use crate::ets::EtsRegistry;
use crate::literals::Literals;
pub use crate::namespace::Namespace;
use crate::process::exit::{ExitHooks, ExitLedger, ExitRecord, OVER, WATCHED};
use crate::process::spawn::{SpawnError, SpawnOptions, Start, make};
use crate::process::{Carried, MaxHeap, ProcId, Runnable, Slot};
use crate::registry::Registry;
use crate::rt::ProcessSide;
use crate::sched::dirty::DirtyPools;
use crate::sched::online::Online;
use crate::sched::stats::{Totals, WorkerStats};
use crate::sched::threads::{DEFAULT_WORKERS, Threads};
use crate::sched::{Turn, Worker};
use crate::signal::{ExitKind, Signal, handle, push};
use crate::timer::{MessageTimers, TICK, TimerEvent};

/// Sizes and limits of a VM.
#[derive(Clone, Debug)]
pub struct VmOptions {
    /// Worker threads; 0 makes the VM cooperative (as every VM of a build without the feature `threads` is).
    pub workers: usize,
    /// Threads for dirty CPU natives; 0 runs them on the workers.
    pub dirty_cpu: usize,
    /// Threads for dirty I/O natives; 0 runs them on the workers.
    pub dirty_io: usize,
    /// Whether dirty CPU natives are refused (with `notsup`).
    pub dirty_cpu_disabled: bool,
    /// Whether dirty I/O natives are refused (with `notsup`).
    pub dirty_io_disabled: bool,
    /// Processes at most.
    pub process_limit: usize,
    /// `min_heap_size` of processes that say nothing (words).
    pub min_heap_size: usize,
    /// `fullsweep_after` of processes that say nothing.
    pub fullsweep_after: u16,
    /// `max_heap_size` of processes that say nothing.
    pub max_heap_size: (usize, MaxHeap),
    /// Stack size of worker and dirty threads in bytes.
    pub thread_stack: usize,
    /// Abnormal exits are noted for the host even when nobody asked for them before ([`Vm::exits`]).
    pub notes_abnormal_exits: bool,
    /// Checks the whole heap of a process whenever it stops ([`crate::gc::verify`]) and panics when it is
    /// not well formed: for tests of the VM itself, slow.
    pub verify_heaps: bool,
}

impl Default for VmOptions {
    fn default() -> Self {
        VmOptions {
            workers: DEFAULT_WORKERS,
            dirty_cpu: 0,
            dirty_io: 0,
            dirty_cpu_disabled: false,
            dirty_io_disabled: false,
            process_limit: 1 << 20,
            min_heap_size: 233,
            fullsweep_after: 65535,
            max_heap_size: (0, MaxHeap::default()),
            thread_stack: 8 << 20,
            notes_abnormal_exits: true,
            verify_heaps: false,
        }
    }
}

impl VmOptions {
    /// Whether natives of this class are refused.
    pub(crate) fn refuses(&self, class: NativeClass) -> bool {
        match class {
            NativeClass::DirtyCpu => self.dirty_cpu_disabled,
            NativeClass::DirtyIo => self.dirty_io_disabled,
            NativeClass::Plain | NativeClass::Traps => false,
        }
    }
}

/// Settings of new processes that a running VM may change (`erlang:system_flag/2`).
#[derive(Debug)]
pub struct Defaults {
    /// `fullsweep_after`.
    pub fullsweep_after: AtomicU32,
    /// `min_heap_size` in words.
    pub min_heap_size: AtomicUsize,
    /// `min_bin_vheap_size` in words.
    pub min_bin_vheap_size: AtomicUsize,
    /// `max_heap_size`.
    pub max_heap_size: RwLock<(usize, MaxHeap)>,
}

impl Defaults {
    fn new(options: &VmOptions) -> Defaults {
        Defaults {
            fullsweep_after: AtomicU32::new(u32::from(options.fullsweep_after)),
            min_heap_size: AtomicUsize::new(options.min_heap_size),
            min_bin_vheap_size: AtomicUsize::new(crate::gc::sizes::DEFAULT_MIN_VIRTUAL),
            max_heap_size: RwLock::new(options.max_heap_size),
        }
    }
}

/// What a VM is made of besides its options.
pub struct VmParts {
    /// Atoms, funs, export ids, release.
    pub tables: Arc<Tables>,
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The code server.
    pub server: Arc<CodeServer>,
    /// Modules of the first namespace.
    pub modules: Arc<ModuleTable>,
    /// Answers to the collector and exceptions: [`VmProcessSide`](crate::process::VmProcessSide).
    pub processes: Arc<dyn ProcessSide>,
    /// The door to the outside.
    pub door: Arc<dyn Door>,
}

/// What others may touch of a worker.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    pub queue: RunQueue<Runnable>,
    pub wheel: SharedWheel<TimerEvent>,
    pub stats: WorkerStats,
}

/// Sends to another node, on behalf of the running process.
pub type SendHook = Box<dyn Fn(&mut Ctx, Word, Word) -> Result<(), Pending> + Send + Sync>;
/// Takes signals other than messages to other nodes; gives them back when the receiver is dead or not reachable.
pub type SignalHook = Box<dyn Fn(&Worker, ProcId, Signal) -> Result<(), Signal> + Send + Sync>;
/// Gets what would go to the logger when there is none: `{log, Level, Format, Args, Metadata}`.
pub type LogHook = Box<dyn Fn(Word, &Tables) + Send + Sync>;

/// Runs a native of the embedding program: which one, and with what.
pub type HostNativeHook =
    Box<dyn Fn(&mut Ctx, &'static NativeEntry, &[Word]) -> Result<Word, Escape> + Send + Sync>;

/// What was looked for under a name and is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sought {
    /// The process.
    Process,
    /// A table or term that the process of this name makes when it starts.
    Belonging,
    /// Nothing: the process, or what belongs to it, is there. The question is whether to wait for it all the same, until it is ready.
    Ready,
}

/// Asked when a name of a namespace stands for nothing, and for names that stand for something while [`Vm::starting`] is true; with the
/// family of who asks. True when a process of that name is being started, so that the asker should look again.
pub type NamesHook = Box<dyn Fn(&Arc<Vm>, u32, Atom, Sought, u32) -> bool + Send + Sync>;

/// How a VM is asked to end: `erlang:halt/2`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Halt {
    /// With this status.
    Status(i32),
    /// As an abnormal end that the operating system should notice (`halt(abort)`).
    Abort,
    /// With status 1 after this text (`halt("text")`).
    Crash(String),
}

impl Halt {
    /// The status of a program that ends so.
    pub fn status(&self) -> i32 {
        match self {
            Halt::Status(n) => *n,
            Halt::Abort => 134,
            Halt::Crash(_) => 1,
        }
    }
}

/// Called on the worker that runs `halt`, before anything else stops; a program ends itself here. The flag says whether
/// output is to be flushed.
pub type HaltHook = Box<dyn Fn(&Halt, bool) + Send + Sync>;

/// What other parts of the system plug into a VM, each once.
#[derive(Default)]
pub struct Hooks {
    /// `erlang:halt`. Without it (and when it returns) the VM stops running processes, and its host is told.
    pub halt: OnceLock<HaltHook>,
    /// Opens ports. Without it they are refused.
    pub ports: OnceLock<Arc<dyn PortService>>,
    /// `RemotePid ! Message`, `{Name, Node} ! Message`.
    pub remote_send: OnceLock<SendHook>,
    /// Remarks for the host ([`Vm::note`]).
    pub note: OnceLock<Box<dyn Fn(&str) + Send + Sync>>,
    /// Links, monitors and exits to processes of other nodes.
    pub remote_signal: OnceLock<SignalHook>,
    /// Reports without a logger.
    pub log: OnceLock<LogHook>,
    /// Natives of the embedding program.
    pub host_native: OnceLock<HostNativeHook>,
    /// Processes that are started when somebody looks for their name.
    pub names: OnceLock<NamesHook>,
    /// `os:set_signal/2`: the signal and `default`, `handle` or `ignore`; false when that cannot be.
    pub set_signal: OnceLock<Box<dyn Fn(&str, &str) -> bool + Send + Sync>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

/// A virtual machine.
pub struct Vm {
    /// Atoms, funs, export ids, release.
    pub tables: Arc<Tables>,
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The code server.
    pub server: Arc<CodeServer>,
    /// Options it was made with.
    pub options: VmOptions,
    /// What processes get that say nothing else.
    pub defaults: Defaults,
    /// Plugs.
    pub hooks: Hooks,
    /// What is done when a process dies.
    pub exit_hooks: ExitHooks,
    /// Registered names.
    pub registry: Registry,
    /// ets tables.
    pub ets: EtsRegistry,
    /// Tracing.
    pub trace: crate::trace::Trace,
    /// The trace control word.
    pub trace_control_word: AtomicU32,
    /// How many servers are being started by those who set [`Hooks::names`].
    starting: AtomicU32,
    /// Who waits for them.
    pub(crate) waiting: Mutex<Vec<SlotId>>,
    /// See [`Vm::system_logger`].
    system_logger: AtomicU64,
    /// Exits noted for the host.
    pub exits: ExitLedger,
    /// Anything else that belongs to the VM, by the part of the system that owns it (ets tables, persistent terms, ports).
    pub extensions: Extensions,
    pub(crate) side: Arc<dyn ProcessSide>,
    /// The door to the outside.
    pub door: Arc<dyn Door>,
    pub(crate) processes: SlotTable<Slot>,
    pub(crate) domain: Domain,
    pub(crate) workers: Box<[WorkerShared]>,
    pub(crate) idle: IdleSet,
    /// How many workers run processes.
    pub online: Online,
    /// What dirty threads and other threads did.
    pub(crate) elsewhere: WorkerStats,
    pub(crate) message_timers: MessageTimers,
    pub(crate) dirty: DirtyPools,
    pub(crate) literals: Literals,
    pub(crate) stopping: AtomicBool,
    halted: OnceLock<Halt>,
    namespaces: RwLock<Vec<Arc<Namespace>>>,
    pub(crate) threads: Threads,
    cooperative: Mutex<Option<Turn>>,
    started_ns: i64,
    offset_ns: i64,
    refs: AtomicU64,
    uniques: AtomicU64,
    monotonic: AtomicU64,
    next_queue: AtomicU32,
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vm")
            .field("processes", &self.processes.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// Things that belong to a VM by their type, each made once.
#[derive(Default)]
pub struct Extensions {
    map: RwLock<std::collections::HashMap<std::any::TypeId, Arc<dyn std::any::Any + Send + Sync>>>,
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Extensions")
    }
}

impl Extensions {
    /// The thing of this type, made at first use.
    pub fn get_or_init<T: std::any::Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(t) = self.get::<T>() {
            return t;
        }
        let mut map = self.map.write().unwrap_or_else(|e| e.into_inner());
        let any = map
            .entry(std::any::TypeId::of::<T>())
            .or_insert_with(|| Arc::new(make()))
            .clone();
        match any.downcast::<T>() {
            Ok(t) => t,
            Err(_) => unreachable!("the key is the type"),
        }
    }
    /// The thing of this type, if it was made.
    pub fn get<T: std::any::Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.map
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(&std::any::TypeId::of::<T>())
            .cloned()
            .and_then(|a| a.downcast::<T>().ok())
    }
}

/// A thread of the VM could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operating system refused.
    #[error("cannot start the thread {name}: {source}")]
    Thread {
        /// Which thread.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The build has none (feature `threads`): a VM of it has no workers and no dirty threads.
    #[error("this build has no threads: {name} cannot be started")]
    NoThreads {
        /// Which thread was asked for.
        name: String,
    },
}

/// Why waiting for a process ended without its exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WaitError {
    /// It is not alive and its exit is not (or no longer) noted.
    #[error("no such process, and no record of its exit")]
    NoRecord,
    /// The time is over.
    #[error("the process still runs")]
    Timeout,
    /// A cooperative VM has nothing to run before its next timer, and its door cannot let time pass: the host drives it with
    /// [`Vm::run_until_idle`].
    #[error("the process waits for a timer, and nothing here can sleep")]
    CannotBlock,
    /// A cooperative VM has nothing to run, no timer, and the process waits.
    #[error("the process waits and nothing will wake it")]
    Stuck,
    /// The VM was halted ([`Vm::halted`]).
    #[error("the VM was halted")]
    Halted,
}

/// How a cooperative run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Turns that were run.
    pub turns: usize,
    /// Nothing is runnable any more (false: the limit of turns was reached).
    pub idle: bool,
    /// When the next timer is due.
    pub next_timer: Option<Duration>,
}

impl Vm {
    /// Makes a VM and starts its threads.
    pub fn new(parts: VmParts, options: VmOptions) -> Result<Arc<Vm>, StartError> {
        // Dirty threads start on demand: a build that has none says so now, not at the first call.
        #[cfg(not(feature = "threads"))]
        for (name, asked) in [
            ("dirty-cpu", options.dirty_cpu),
            ("dirty-io", options.dirty_io),
        ] {
            if asked > 0 {
                let name = name.to_owned();
                return Err(StartError::NoThreads { name });
            }
        }
        let domain = Domain::new();
        let queues = options.workers.max(1);
        let parkers: Vec<beamr_sync::Parker> = (0..options.workers)
            .map(|_| beamr_sync::Parker::new())
            .collect();
        let started_ns = parts.door.monotonic_time();
        let offset_ns = parts.door.system_time();
        let vm = Arc::new(Vm {
            processes: SlotTable::new(&domain, options.process_limit),
            workers: (0..queues)
                .map(|_| WorkerShared {
                    queue: RunQueue::new(),
                    wheel: SharedWheel::new(0),
                    stats: WorkerStats::default(),
                })
                .collect(),
            idle: IdleSet::new(parkers.iter().map(|p| p.unparker())),
            online: Online::new(options.workers),
            elsewhere: WorkerStats::default(),
            domain,
            dirty: DirtyPools::new(),
            literals: Literals::default(),
            namespaces: RwLock::new(vec![Arc::new(Namespace::new(0, parts.modules))]),
            ets: EtsRegistry::new(parts.tables.atoms.limit()),
            trace: crate::trace::Trace::new(&parts.tables),
            trace_control_word: AtomicU32::new(0),
            starting: AtomicU32::new(0),
            waiting: Mutex::default(),
            system_logger: AtomicU64::new(atoms::LOGGER.word().bits()),
            tables: parts.tables,
            engine: parts.engine,
            server: parts.server,
            side: parts.processes,
            door: parts.door,
            hooks: Hooks::default(),
            exit_hooks: ExitHooks::default(),
            registry: Registry::default(),
            exits: ExitLedger::default(),
            extensions: Extensions::default(),
            message_timers: MessageTimers::default(),
            stopping: AtomicBool::new(false),
            halted: OnceLock::new(),
            defaults: Defaults::new(&options),
            threads: Threads::default(),
            cooperative: Mutex::new(None),
            started_ns,
            offset_ns,
            refs: AtomicU64::new(0),
            uniques: AtomicU64::new(0),
            monotonic: AtomicU64::new(0),
            next_queue: AtomicU32::new(0),
            options,
        });
        for (index, parker) in parkers.into_iter().enumerate() {
            let shared = vm.clone();
            let run = move || Turn::new(&shared, Some(index)).run_worker(parker);
            let name = format!("beamr-worker-{index}");
            if let Err(e) = vm.threads.start(name, vm.options.thread_stack, run) {
                vm.shutdown();
                return Err(e);
            }
        }
        Ok(vm)
    }
    /// A worker structure for a thread that is none: for the host's calls.
    pub fn guest(self: &Arc<Vm>) -> Box<Worker> {
        Worker::new(self, None)
    }
    /// Nanoseconds since the VM was made, from the clock that never goes back.
    #[inline]
    pub fn monotonic_ns(&self) -> u64 {
        (self.door.monotonic_time() - self.started_ns).max(0) as u64
    }
    /// Microseconds since 1970.
    pub fn system_time_us(&self) -> i64 {
        self.system_ns() / 1000
    }
    /// Nanoseconds since 1970: the monotonic clock with the offset of when the VM was made (no time warp).
    pub fn system_ns(&self) -> i64 {
        self.monotonic_ns() as i64 + self.offset_ns
    }
    /// Nanoseconds between [`Vm::monotonic_ns`] and [`Vm::system_ns`].
    pub fn time_offset_ns(&self) -> i64 {
        self.offset_ns
    }
    /// How many message timers run, and bytes of one.
    pub fn message_timers(&self) -> (usize, usize) {
        (self.message_timers.len(), MessageTimers::BYTES)
    }
    /// What workers and other threads did since the VM was made.
    pub fn totals(&self) -> Totals {
        let all = self.workers.iter().map(|w| &w.stats);
        Totals::of(all.chain([&self.elsewhere]))
    }
    /// Nanoseconds that each worker has slept, with sleeps that last, at `now` of [`Vm::monotonic_ns`].
    pub fn slept_ns(&self, now: u64) -> Vec<u64> {
        self.workers.iter().map(|w| w.stats.slept(now)).collect()
    }
    /// How many processes wait in the run queue of each worker, then for dirty CPU and dirty I/O threads.
    pub fn run_queue_lens(&self) -> (Vec<usize>, usize, usize) {
        let (cpu, io) = self.dirty.waiting();
        (
            self.workers.iter().map(|w| w.queue.len()).collect(),
            cpu,
            io,
        )
    }
    /// A block of reference numbers.
    pub(crate) fn take_refs(&self, n: u64) -> u64 {
        self.refs.fetch_add(n, Ordering::Relaxed)
    }
    pub(crate) fn take_uniques(&self, n: u64) -> u64 {
        self.uniques.fetch_add(n, Ordering::Relaxed)
    }
    /// The next strictly monotonic unique number, from 0.
    pub fn next_monotonic(&self) -> u64 {
        self.monotonic.fetch_add(1, Ordering::SeqCst)
    }
    pub(crate) fn queue_for_guest(&self) -> usize {
        if self.workers.len() == 1 {
            return 0;
        }
        self.next_queue.fetch_add(1, Ordering::Relaxed) as usize % self.online.active()
    }
    pub(crate) fn wake_for_timer(&self, worker: usize) {
        if worker < self.idle.workers() {
            self.idle.wake(worker);
        }
    }
    pub(crate) fn log_without_logger(&self, report: Word) {
        if let Some(f) = self.hooks.log.get() {
            f(report, &self.tables);
        }
    }

    /// Whether servers are being started.
    #[inline]
    pub fn starting(&self) -> bool {
        self.starting.load(Ordering::Acquire) != 0
    }
    /// A server is being started: from now on those who want it wait.
    pub fn start_begins(&self) {
        self.starting.fetch_add(1, Ordering::AcqRel);
    }
    /// It is there, or will never be. Call it when the hook says so.
    pub fn start_ends(self: &Arc<Vm>) {
        self.starting.fetch_sub(1, Ordering::AcqRel);
        let all = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(|e| e.into_inner()));
        let w = self.guest();
        for id in all {
            // It may have died.
            let _ = push(&w, id, Signal::Wake);
        }
    }
    /// Who is told of crashes (`system_flag(system_logger, _)`): a local pid, `undefined` for nobody, or `logger` for the process of
    /// this name.
    pub fn system_logger(&self) -> Word {
        // SAFETY: only immediates are stored.
        unsafe { Word::from_bits(self.system_logger.load(Ordering::Acquire)) }
    }
    /// Sets [`Vm::system_logger`] and gives what it was. Anything but a local pid or atom is taken for `logger`.
    pub fn set_system_logger(&self, to: Word) -> Word {
        let to = if to.is_local_pid() || to.is_atom() {
            to
        } else {
            atoms::LOGGER.word()
        };
        // SAFETY: only immediates are stored.
        unsafe { Word::from_bits(self.system_logger.swap(to.bits(), Ordering::AcqRel)) }
    }

    /// What runtime helpers ask of processes.
    pub fn process_side(&self) -> Arc<dyn ProcessSide> {
        self.side.clone()
    }
    /// Tells the host something that no process is told (why a file could not be loaded).
    pub fn note(&self, text: &str) {
        if let Some(f) = self.hooks.note.get() {
            f(text);
        }
    }

    /// The namespace of this number.
    pub fn namespace(&self, id: u32) -> Option<Arc<Namespace>> {
        self.namespaces
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(id as usize)
            .cloned()
    }
    /// The first namespace.
    pub fn default_namespace(&self) -> Arc<Namespace> {
        self.namespaces.read().unwrap_or_else(|e| e.into_inner())[0].clone()
    }
    /// Makes a namespace; `modules` gets its number.
    pub fn add_namespace(
        &self,
        modules: impl FnOnce(u32) -> Result<Arc<ModuleTable>, LoadError>,
    ) -> Result<Arc<Namespace>, LoadError> {
        let mut all = self.namespaces.write().unwrap_or_else(|e| e.into_inner());
        let id = all.len() as u32;
        let n = Arc::new(Namespace::new(id, modules(id)?));
        all.push(n.clone());
        Ok(n)
    }
    /// How many processes live.
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }
    /// Bytes of the process table.
    pub fn process_table_bytes(&self) -> usize {
        self.processes.bytes()
    }
    /// Bytes of what a VM has once, and each of its workers.
    pub fn fixed_bytes(&self) -> usize {
        size_of::<Vm>() + self.options.workers.max(1) * size_of::<(Worker, WorkerStats)>()
    }
    /// How many processes may live.
    pub fn process_limit(&self) -> usize {
        self.processes.limit()
    }
    /// How many workers there are (0 when cooperative).
    pub fn worker_count(&self) -> usize {
        self.options.workers
    }
    /// How many processes wait in run queues.
    pub fn run_queue_len(&self) -> usize {
        self.workers.iter().map(|w| w.queue.len()).sum()
    }

    /// Spawns a process from outside. It is watched: its exit is noted with its result until taken.
    pub fn spawn(
        self: &Arc<Vm>,
        namespace: &Arc<Namespace>,
        start: Start,
        options: &SpawnOptions,
        group_leader: Option<Word>,
    ) -> Result<Word, SpawnError> {
        let w = self.guest();
        let namespace = namespace.clone();
        let leader = group_leader.unwrap_or(Word::pid(0));
        let id = make(
            &w,
            &namespace,
            start,
            options,
            leader,
            None,
            true,
            |_, _| {},
            |child| {
                if self.trace.traces_new() {
                    crate::trace::process::inherit(&w, None, child, false);
                }
            },
        )?;
        Ok(Word::pid(id.number()))
    }
    /// Spawns `module:function(args...)` from outside; `args` is a list.
    pub fn spawn_mfa(
        self: &Arc<Vm>,
        module: Atom,
        function: Atom,
        args: Word,
    ) -> Result<Word, SpawnError> {
        self.spawn(
            &self.default_namespace(),
            Start::Apply(module.word(), function.word(), args),
            &SpawnOptions::default(),
            None,
        )
    }
    fn look<R>(&self, pid: Word, f: impl FnOnce(&Slot) -> R) -> Option<R> {
        if !pid.is_local_pid() {
            return None;
        }
        self.domain.with_guest(|guard| {
            self.processes
                .get(SlotId::from_u64(pid.local_number()), guard)
                .map(f)
        })
    }
    /// Sends a message from outside; false when there is no such process.
    pub fn send(self: &Arc<Vm>, to: Word, message: Carried) -> bool {
        let w = self.guest();
        to.is_local_pid()
            && push(
                &w,
                SlotId::from_u64(to.local_number()),
                Signal::Message(message.into_message()),
            )
            .is_ok()
    }
    /// Sends an exit signal from outside, as `exit/2`; false when there is no such process.
    pub fn exit(self: &Arc<Vm>, to: Word, reason: Carried) -> bool {
        let w = self.guest();
        let Some(to) = ProcId::of(to) else {
            return false;
        };
        handle::send_exit(&w, ProcId::local(u64::MAX >> 4), to, ExitKind::Host, reason)
    }
    /// Whether a process lives.
    pub fn is_alive(&self, pid: Word) -> bool {
        self.look(pid, |s| !s.state.snapshot().is_exiting())
            .unwrap_or(false)
    }
    /// The live processes.
    pub fn pids(&self) -> Vec<Word> {
        self.domain.with_guest(|guard| {
            let all = self.processes.iter(guard);
            let live = all.filter(|(_, s)| !s.state.snapshot().is_exiting());
            live.map(|(id, _)| Word::pid(id.as_u64())).collect()
        })
    }
    /// What a name of the first namespace stands for.
    pub fn whereis(&self, name: Atom) -> Option<Word> {
        self.registry.whereis(0, name)
    }
    /// Asks for the exit of a process to be noted. False when it is over already (its exit may be noted all the same).
    pub fn watch(&self, pid: Word) -> bool {
        self.look(pid, |s| {
            s.watch.fetch_or(WATCHED, Ordering::AcqRel) & OVER == 0
        })
        .unwrap_or(false)
    }
    /// Waits until a process has ended and takes its record. A cooperative VM is driven meanwhile.
    pub fn run_until_exit(
        self: &Arc<Vm>,
        pid: Word,
        timeout: Option<Duration>,
    ) -> Result<ExitRecord, WaitError> {
        let n = pid.local_number();
        if let Some(r) = self.exits.take(n) {
            return Ok(r);
        }
        if !self.watch(pid) {
            // Over: the record, if there is one, is complete.
            return self.exits.take(n).ok_or(WaitError::NoRecord);
        }
        if self.options.workers > 0 {
            return match self.exits.wait(n, timeout, || self.halted.get().is_some()) {
                Some(r) => Ok(r),
                None if self.halted.get().is_some() => Err(WaitError::Halted),
                None => Err(WaitError::Timeout),
            };
        }
        let deadline = timeout.map(|t| self.monotonic_ns() + t.as_nanos() as u64);
        loop {
            let run = self.run_until_idle(1024);
            if let Some(r) = self.exits.take(n) {
                return Ok(r);
            }
            if self.halted.get().is_some() {
                return Err(WaitError::Halted);
            }
            let now = self.monotonic_ns();
            if deadline.is_some_and(|d| now >= d) {
                return Err(WaitError::Timeout);
            }
            if !run.idle {
                continue;
            }
            let Some(next) = run.next_timer else {
                return Err(WaitError::Stuck);
            };
            let left = deadline.map_or(next, |d| {
                next.min(Duration::from_nanos(d.saturating_sub(now)))
            });
            if !self.door.pause(left) {
                return Err(WaitError::CannotBlock);
            }
        }
    }
    /// Runs a cooperative VM on the calling thread until nothing is runnable, or for `max_turns` turns. A
    /// second caller at the same time gets nothing to run.
    pub fn run_until_idle(self: &Arc<Vm>, max_turns: usize) -> Idle {
        let nothing = Idle {
            turns: 0,
            idle: false,
            next_timer: None,
        };
        if self.options.workers > 0 {
            return nothing;
        }
        let taken = match self.cooperative.try_lock() {
            Ok(mut t) => t.take(),
            Err(_) => return nothing,
        };
        let mut turn = match taken {
            Some(t) => t,
            None => Turn::new(self, Some(0)),
        };
        let (turns, idle) = turn.run_some(max_turns);
        let next_timer = self.workers[0]
            .wheel
            .next_deadline()
            .map(|tick| Duration::from_nanos((tick * TICK).saturating_sub(self.monotonic_ns())));
        if !self.stopping.load(Ordering::Acquire) {
            *self.cooperative.lock().unwrap_or_else(|e| e.into_inner()) = Some(turn);
        }
        Idle {
            turns,
            idle,
            next_timer,
        }
    }
    /// Ends the VM from inside: nothing runs any more, who waits for it is told. The host still calls
    /// [`Vm::shutdown`]. The first reason counts.
    pub fn halt(&self, halt: Halt, flush: bool) {
        if let Some(f) = self.hooks.halt.get() {
            f(&halt, flush);
        }
        let _ = self.halted.set(halt);
        self.stopping.store(true, Ordering::Release);
        self.idle.wake_all();
        self.exits.wake();
    }
    /// How the VM was halted, if it was.
    pub fn halted(&self) -> Option<&Halt> {
        self.halted.get()
    }
    /// Stops all threads of the VM and waits for them. Processes do not run any more; what they hold is freed with
    /// the VM. Idempotent. Must not be called from a thread of the VM.
    pub fn shutdown(&self) {
        self.stopping.store(true, Ordering::Release);
        self.dirty.stop();
        self.idle.wake_all();
        self.threads.join();
        self.exits.wake();
        self.dirty.join();
        if let Some(ports) = self.hooks.ports.get() {
            ports.shutdown();
        }
        drop(
            self.cooperative
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .take(),
        );
        for w in &self.workers {
            while w.queue.pop().is_some() {}
        }
    }
}
