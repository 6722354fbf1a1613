//! What a VM is built from.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use beamr_abi::Capability;
use beamr_term::{AtomTable, Release};
use beamr_vm::code::Trust;
use beamr_vm::code::server::Capabilities;
use beamr_vm::door::{Door, LiveDoor};
use beamr_vm::vm::VmOptions;

use super::Scheduler;
use super::services::{SchedulerServices, WithServicesError};
use crate::loader::ModuleRegistry;
use crate::natives::{self, NativeRegistry};
use crate::otp::OtpRoot;
use crate::sink::{IoSink, NullSink, SinkDoor};
use crate::system::{BareOptions, System, SystemError};

/// Threads of the dirty I/O pool unless told otherwise.
pub const DEFAULT_DIRTY_IO_THREADS: usize = 10;

/// Sizes of a VM; everything has a default.
#[derive(Clone, Default)]
pub struct SchedulerConfig {
    /// Worker threads; `None` or 0: one for each processor that may be used.
    pub thread_count: Option<usize>,
    /// Threads for dirty CPU functions; `None`: one for each processor, 0: they are refused with `notsup`.
    pub dirty_cpu_threads: Option<usize>,
    /// Threads for dirty I/O functions (files among them); `None`: 10, 0: they are refused with `notsup`.
    pub dirty_io_threads: Option<usize>,
    /// Name of the node (`name@host`); `None`: `nonode@nohost`. There is no distribution: the node is not alive.
    pub node_name: Option<String>,
    /// Creation of the node; `None`: 0.
    pub creation: Option<u32>,
    /// Has no effect: there is no compiler that waits.
    pub jit_threshold: Option<u32>,
    /// Handed to every native function ([`NativeCall::private_data`](crate::NativeCall::private_data)).
    pub nif_private_data: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for SchedulerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedulerConfig")
            .field("thread_count", &self.thread_count)
            .field("dirty_cpu_threads", &self.dirty_cpu_threads)
            .field("dirty_io_threads", &self.dirty_io_threads)
            .field("node_name", &self.node_name)
            .field("creation", &self.creation)
            .field("jit_threshold", &self.jit_threshold)
            .field(
                "nif_private_data",
                &self.nif_private_data.as_ref().map(|_| ".."),
            )
            .finish()
    }
}

/// Which natives programs may call: those of [`Capability`] that it grants exist for them, others do not (`undef`).
pub trait CapabilityPolicy: Send + Sync {
    /// Whether programs have it.
    fn is_granted(&self, capability: Capability) -> bool;
}

/// Grants everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllCapabilitiesPolicy;

impl CapabilityPolicy for AllCapabilitiesPolicy {
    fn is_granted(&self, _: Capability) -> bool {
        true
    }
}

/// Grants computing and what touches the own process only.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastAuthorityPolicy;

impl CapabilityPolicy for LeastAuthorityPolicy {
    fn is_granted(&self, c: Capability) -> bool {
        matches!(c, Capability::Pure | Capability::ProcessLocal)
    }
}

impl CapabilityPolicy for Capabilities {
    fn is_granted(&self, c: Capability) -> bool {
        self.contains(c)
    }
}

/// What a policy grants.
pub(super) fn granted(policy: &dyn CapabilityPolicy) -> Capabilities {
    [
        Capability::Pure,
        Capability::ProcessLocal,
        Capability::Clock,
        Capability::Entropy,
        Capability::ExternalIo,
        Capability::Spawn,
    ]
    .into_iter()
    .filter(|c| policy.is_granted(*c))
    .fold(Capabilities::NONE, Capabilities::with)
}

/// Why a VM was not built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// See there.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A service that was asked for.
    #[error(transparent)]
    Services(#[from] WithServicesError),
}

impl From<BuildError> for String {
    fn from(e: BuildError) -> String {
        e.to_string()
    }
}

/// Builds a VM: see [`Scheduler::builder`].
#[derive(Default)]
pub struct SchedulerBuilder {
    config: SchedulerConfig,
    services: Option<SchedulerServices>,
    otp: Option<OtpRoot>,
    release: Option<Release>,
    modules: Option<Arc<ModuleRegistry>>,
    paths: Vec<PathBuf>,
    trusted: bool,
    atoms: Option<Arc<AtomTable>>,
    natives: Option<Arc<NativeRegistry>>,
    granted: Option<Capabilities>,
    process_limit: Option<usize>,
    atom_limit: Option<u32>,
    verify: bool,
    cooperative: bool,
    sink: Option<Arc<dyn IoSink>>,
    door: Option<Arc<dyn Door>>,
    arguments: Vec<String>,
}

impl SchedulerBuilder {
    /// Sizes.
    pub fn config(mut self, config: SchedulerConfig) -> Self {
        self.config = config;
        self
    }
    /// Worker threads; 0: one for each processor that may be used.
    pub fn threads(mut self, n: usize) -> Self {
        self.config.thread_count = Some(n);
        self
    }
    /// No threads: the VM runs on the thread that calls [`Scheduler::run_until_idle`] or waits for one of its processes. It is the only kind in a build without
    /// the feature `threads`. Dirty functions run in place.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }
    /// Which services there are. What is not chosen follows the configuration.
    pub fn services(mut self, services: SchedulerServices) -> Self {
        self.services = Some(services);
        self
    }
    /// An installed OTP: its libraries load on first call, and the VM takes on its release. Without one there are the native functions of OTP
    /// and the modules that were given.
    pub fn otp(mut self, otp: OtpRoot) -> Self {
        self.otp = Some(otp);
        self
    }
    /// The release (25, 27, 29, ...) of a VM without OTP; 27 unless given.
    pub fn release(mut self, release: u16) -> Self {
        self.release = Some(Release(release));
        self
    }
    /// Modules that load on first call, in front of all folders.
    pub fn modules(mut self, modules: impl Into<Arc<ModuleRegistry>>) -> Self {
        self.modules = Some(modules.into());
        self
    }
    /// A further folder of .beam files, which load on first call.
    pub fn code_path(mut self, folder: impl Into<PathBuf>) -> Self {
        self.paths.push(folder.into());
        self
    }
    /// Takes the word of module files for what they say of themselves, as a compiler wrote them: they run faster, and one that lies corrupts memory. The
    /// default is to check everything. (Files of an OTP root are trusted in any case.)
    ///
    /// # Safety
    /// Every module that is given, in a code path, loaded by the host, or loaded by programs comes from a compiler of OTP as it was.
    pub unsafe fn trust_code(mut self) -> Self {
        self.trusted = true;
        self
    }
    /// Shares an atom table with other VMs.
    pub fn atoms(mut self, atoms: Arc<AtomTable>) -> Self {
        self.atoms = Some(atoms);
        self
    }
    /// Native functions of the embedding program.
    pub fn natives(mut self, natives: impl Into<Arc<NativeRegistry>>) -> Self {
        self.natives = Some(natives.into());
        self
    }
    /// Which natives programs may call: by default all.
    pub fn policy(mut self, policy: &dyn CapabilityPolicy) -> Self {
        self.granted = Some(granted(policy));
        self
    }
    /// How many processes there may be; 1,048,576 unless given.
    pub fn process_limit(mut self, processes: usize) -> Self {
        self.process_limit = Some(processes);
        self
    }
    /// How many atoms there may be; 1,048,576 unless given.
    pub fn atom_limit(mut self, atoms: u32) -> Self {
        self.atom_limit = Some(atoms);
        self
    }
    /// Checks the whole heap of a process whenever it stops, and panics when it is not well formed: for tests, slow.
    pub fn verify_heaps(mut self) -> Self {
        self.verify = true;
        self
    }
    /// Where output goes; by default nowhere.
    pub fn output(mut self, sink: Arc<dyn IoSink>) -> Self {
        self.sink = Some(sink);
        self
    }
    /// The way to clocks, entropy, environment and files; by default those of the OS process (the environment and the working directory as
    /// a copy that is the VM's own).
    pub fn door(mut self, door: Arc<dyn Door>) -> Self {
        self.door = Some(door);
        self
    }
    /// Arguments of the program (`init:get_plain_arguments/0`).
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.arguments = arguments.into_iter().collect();
        self
    }
    /// Handed to every native function.
    pub fn private_data(mut self, data: Arc<dyn Any + Send + Sync>) -> Self {
        self.config.nif_private_data = Some(data);
        self
    }
    /// Builds the VM and starts its threads.
    pub fn build(self) -> Result<Scheduler, BuildError> {
        let cooperative = self.cooperative || !cfg!(feature = "threads");
        let chosen = self.services.unwrap_or_else(SchedulerServices::from_config);
        let services = chosen.resolve(&self.config, cooperative)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = match self.config.thread_count {
            _ if cooperative => 0,
            None | Some(0) => processors,
            Some(n) => n,
        };
        let defaults = VmOptions::default();
        let vm = VmOptions {
            dirty_cpu: services.dirty_cpu.unwrap_or(0),
            dirty_cpu_disabled: services.dirty_cpu.is_none(),
            dirty_io: services.dirty_io.unwrap_or(0),
            dirty_io_disabled: services.dirty_io.is_none(),
            process_limit: self.process_limit.unwrap_or(defaults.process_limit),
            verify_heaps: self.verify,
            ..defaults
        };
        let sink = self.sink.unwrap_or_else(|| Arc::new(NullSink));
        let inner = self.door.unwrap_or_else(|| Arc::new(LiveDoor::new()));
        let door = Arc::new(SinkDoor::new(inner, sink));
        let trust = if self.trusted {
            Trust::Trusted
        } else {
            Trust::Untrusted
        };
        let mut options = match self.otp {
            Some(otp) => BareOptions::new(otp),
            None => BareOptions::without_otp(self.release.unwrap_or(Release::OTP27)),
        };
        options.paths = self.paths;
        options.workers = workers;
        options.door = door.clone();
        options.arguments = self.arguments;
        options.vm = Some(vm);
        options.modules = self.modules.map(|m| (m, trust));
        options.path_trust = trust;
        options.binary_trust = trust;
        options.atoms = match (self.atoms, self.atom_limit) {
            (Some(shared), _) => Some(shared),
            (None, Some(limit)) => Some(Arc::new(AtomTable::new(limit))),
            (None, None) => None,
        };
        options.granted = self.granted.unwrap_or(Capabilities::ALL);
        options.standard_io = services.standard_io;
        options.ports = services.ports;
        let creation = self.config.creation.unwrap_or(0);
        options.node = self.config.node_name.clone().map(|n| (n, creation));
        if let Some(registry) = &self.natives {
            options.natives = registry.rows();
            let private = self.config.nif_private_data.clone();
            options.host_native = Some(natives::hook(registry, private));
        }
        let system = System::bare(options)?;
        Ok(Scheduler::of_system(system, door, trust, services))
    }
}

impl std::fmt::Debug for SchedulerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedulerBuilder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
