//! The VM as an embedding program holds it.
//!
//! | file | what |
//! |---|---|
//! | `config`, `services` | building one |
//! | `spawn` | making processes, calling functions, waiting for them |
//! | `exits` | what is known of processes that ended |
//! | `signals` | messages, links, monitors, exit signals |
//! | `code` | loading, replacing, purging modules |
//! | `namespaces` | tenants and their budgets |
//! | `ets` | tables that belong to the host |
//!
//! The machinery is `beamr_vm`; what is here turns owned terms and plain values into its words and back, and waits.

mod code;
mod config;
mod ets;
mod exits;
mod namespaces;
mod services;
mod signals;
mod spawn;

use std::sync::{Arc, Mutex};

use beamr_term::AtomTable;
use beamr_vm::code::Trust;
use beamr_vm::vm::{Halt, Vm};

use crate::exits::EventQueue;
use crate::loader::ModuleRegistry;
use crate::natives::NativeRegistry;
use crate::sink::{IoSink, SinkDoor};
use crate::system::System;
use crate::term::{FromTerm, IntoTerm, OwnedTerm, Pid, Term, TermBuilder, TermError};

pub use code::{HotLoadError, HotLoadResult, PurgeError, PurgeResult};
pub use config::{
    AllCapabilitiesPolicy, BuildError, CapabilityPolicy, DEFAULT_DIRTY_IO_THREADS,
    LeastAuthorityPolicy, SchedulerBuilder, SchedulerConfig,
};
pub use ets::{EtsError, EtsTable, EtsTableMetadata, EtsTableType};
pub use namespaces::{NamespaceId, NamespaceOptions, NamespaceUsage};
pub use services::{SchedulerServices, ServiceInventoryEntry, ServiceModeLabel, WithServicesError};
pub use signals::{LinkError, MailboxSendError, MonitorResult, SupervisionError};
pub use spawn::SpawnedBy;

use services::Resolved;

/// A VM without threads, by the name that it has in a browser: see [`SchedulerBuilder::cooperative`].
pub type WasmScheduler = Scheduler;

/// How a run of a VM without threads ended.
pub type WasmRunSummary = beamr_vm::vm::Idle;

/// Reductions of a slice of a process.
pub const DEFAULT_REDUCTION_BUDGET: u32 = beamr_vm::sched::SLICE as u32;

/// A VM that runs on threads of its own: processes, modules, names, tables. Any number of them live side by side in one OS process and share nothing but what was
/// given to several.
///
/// It is shared by reference (or in an `Arc`) between threads. When it is dropped its threads are joined and its processes are gone.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beamr::{ModuleRegistry, Scheduler};
/// let modules = ModuleRegistry::new();
/// # let bytes = include_bytes!("../../tests/it/data/face_cases.beam");
/// modules.insert(&bytes[..])?;
/// let vm = Scheduler::builder().modules(modules).build()?;
/// assert_eq!(vm.call::<i64>("face_cases", "add", (40, 2))?, 42);
/// # Ok(()) }
/// ```
pub struct Scheduler {
    system: System,
    door: Arc<SinkDoor>,
    /// How the host's own loading takes files.
    trust: Trust,
    services: Resolved,
    events: Mutex<Option<Arc<EventQueue>>>,
    /// The process that owns the host's tables, made with the first.
    keeper: Mutex<Option<Pid>>,
    worker_names: Vec<String>,
}

impl Scheduler {
    /// Begins to build a VM.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::default()
    }
    /// A VM over these modules, without OTP.
    pub fn new(config: SchedulerConfig, modules: Arc<ModuleRegistry>) -> Result<Self, BuildError> {
        Self::builder().config(config).modules(modules).build()
    }
    /// As [`Scheduler::new`] with chosen services: an explicit choice beats the configuration.
    pub fn with_services(
        config: SchedulerConfig,
        services: SchedulerServices,
        modules: Arc<ModuleRegistry>,
    ) -> Result<Self, BuildError> {
        Self::builder()
            .config(config)
            .services(services)
            .modules(modules)
            .build()
    }
    /// As [`Scheduler::with_services`] with an atom table that may be shared, and native functions.
    pub fn with_services_and_code_server(
        config: SchedulerConfig,
        services: SchedulerServices,
        modules: Arc<ModuleRegistry>,
        atoms: Arc<AtomTable>,
        natives: Arc<NativeRegistry>,
    ) -> Result<Self, BuildError> {
        Self::builder()
            .config(config)
            .services(services)
            .modules(modules)
            .atoms(atoms)
            .natives(natives)
            .build()
    }
    /// As [`Scheduler::new`] with an atom table that may be shared, and native functions.
    pub fn with_code_server(
        config: SchedulerConfig,
        modules: Arc<ModuleRegistry>,
        atoms: Arc<AtomTable>,
        natives: Arc<NativeRegistry>,
    ) -> Result<Self, BuildError> {
        let policy = Arc::new(AllCapabilitiesPolicy);
        Self::with_code_server_and_policy(config, modules, atoms, natives, policy)
    }
    /// As [`Scheduler::with_code_server`] with a policy of what programs may do.
    pub fn with_code_server_and_policy(
        config: SchedulerConfig,
        modules: Arc<ModuleRegistry>,
        atoms: Arc<AtomTable>,
        natives: Arc<NativeRegistry>,
        policy: Arc<dyn CapabilityPolicy>,
    ) -> Result<Self, BuildError> {
        Self::builder()
            .config(config)
            .modules(modules)
            .atoms(atoms)
            .natives(natives)
            .policy(&*policy)
            .build()
    }
    fn of_system(system: System, door: Arc<SinkDoor>, trust: Trust, services: Resolved) -> Self {
        let worker_names = (0..system.vm.worker_count())
            .map(|i| format!("beamr-worker-{i}"))
            .collect();
        Scheduler {
            system,
            door,
            trust,
            services,
            events: Mutex::default(),
            keeper: Mutex::default(),
            worker_names,
        }
    }
    fn vm(&self) -> &Arc<Vm> {
        &self.system.vm
    }

    /// A term of this VM.
    pub fn term(&self, value: impl IntoTerm) -> Result<OwnedTerm, TermError> {
        OwnedTerm::from_value(&self.vm().tables, value)
    }
    /// A term of this VM that a function builds.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let vm = beamr::Scheduler::builder().threads(1).build()?;
    /// let improper = vm.build_term(|b| Ok(b.cons(b.integer(1), b.atom("tail")?)))?;
    /// assert_eq!(improper.to_string(), "[1|tail]");
    /// # Ok(()) }
    /// ```
    pub fn build_term(
        &self,
        build: impl for<'h> FnOnce(&TermBuilder<'h>) -> Result<Term<'h>, TermError>,
    ) -> Result<OwnedTerm, TermError> {
        OwnedTerm::build_in(&self.vm().tables, build)
    }
    /// A term from its external format (`term_to_binary/1`).
    pub fn term_from_etf(&self, bytes: &[u8]) -> Result<OwnedTerm, TermError> {
        OwnedTerm::from_etf(&self.vm().tables, bytes)
    }

    /// Sets where output goes from now on.
    pub fn set_output_sink(&self, sink: Arc<dyn IoSink>) {
        self.door.set(sink);
    }
    /// Live processes, those of the system itself too.
    pub fn process_count(&self) -> usize {
        self.vm().process_count()
    }
    /// How many processes there may be.
    pub fn process_limit(&self) -> usize {
        self.vm().process_limit()
    }
    /// The pids of all live processes.
    pub fn processes(&self) -> Vec<Pid> {
        let pids = self.vm().pids();
        pids.into_iter().filter_map(Pid::of_word).collect()
    }
    /// Worker threads.
    pub fn thread_count(&self) -> usize {
        self.vm().worker_count()
    }
    /// Worker threads: the schedulers of `erlang:system_info(schedulers)`.
    pub fn scheduler_count(&self) -> usize {
        self.vm().worker_count()
    }
    /// Names of the worker threads.
    pub fn worker_names(&self) -> &[String] {
        &self.worker_names
    }
    /// Atoms that exist.
    pub fn atom_count(&self) -> usize {
        self.atom_table().len() as usize
    }
    /// Atoms that may exist.
    pub fn atom_limit(&self) -> usize {
        self.atom_table().limit() as usize
    }
    /// The atoms.
    pub fn atom_table(&self) -> &Arc<AtomTable> {
        &self.vm().tables.atoms
    }
    /// The OTP release that the VM takes on.
    pub fn release(&self) -> u16 {
        self.vm().tables.release.0
    }
    /// What a process says of itself: the value of an item of `erlang:process_info/2` (`memory`, `message_queue_len`, `current_function`, ...). `None` when there is no such
    /// process; must not be called from a native function or handler.
    pub fn process_info<T: FromTerm>(
        &self,
        pid: impl Into<Pid>,
        item: &str,
    ) -> Result<Option<T>, crate::exits::CallError> {
        let pid = pid.into();
        let answer: OwnedTerm = self.call(
            "erlang",
            "process_info",
            (pid, crate::term::atom(item.to_owned())),
        )?;
        match answer.root().element(1) {
            Some(value) => T::from_term(value)
                .map(Some)
                .map_err(crate::exits::CallError::Value),
            None => Ok(None),
        }
    }
    /// How the program asked the VM to end (`erlang:halt`), if it did: its status.
    pub fn halted(&self) -> Option<i32> {
        self.vm().halted().map(Halt::status)
    }
    /// Runs a VM without threads on the calling thread until nothing is runnable, or for `max_turns` turns of processes. (One with threads runs by
    /// itself: nothing is done.)
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let vm = beamr::Scheduler::builder().cooperative().build()?;
    /// let pid = vm.spawn("erlang", "abs", (-1,))?;
    /// let summary = vm.run_until_idle(1024);
    /// assert!(summary.idle && summary.turns >= 1 && summary.next_timer.is_none());
    /// assert_eq!(vm.take_exit_outcome(pid).unwrap().1.to_string(), "1");
    /// # Ok(()) }
    /// ```
    pub fn run_until_idle(&self, max_turns: usize) -> WasmRunSummary {
        self.vm().run_until_idle(max_turns)
    }
    /// Stops the VM and joins its threads: no process runs any more. Who waits for one is told. Idempotent; the drop does it as well.
    pub fn shutdown(&self) {
        if let Some(q) = self.events.lock().unwrap_or_else(|e| e.into_inner()).take() {
            q.close();
        }
        crate::system::stop(self.vm());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler")
            .field("threads", &self.thread_count())
            .field("processes", &self.process_count())
            .finish_non_exhaustive()
    }
}
