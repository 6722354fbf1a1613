//! The services of a VM: what it has threads for besides its workers.

use super::Scheduler;
use super::config::{DEFAULT_DIRTY_IO_THREADS, SchedulerConfig};

/// Whether a VM has a service of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Choice {
    /// As the configuration says.
    #[default]
    FromConfig,
    /// No threads; its use is refused.
    Disabled,
    /// So many threads, joined when the VM ends.
    Owned(usize),
}

/// Which services a VM has.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # #[cfg(feature = "threads")] {
/// use beamr::{Scheduler, SchedulerConfig, SchedulerServices, ModuleRegistry};
/// let services = SchedulerServices::minimal().owned_dirty_io(2);
/// let config = SchedulerConfig { thread_count: Some(1), ..SchedulerConfig::default() };
/// let vm = Scheduler::with_services(config, services, ModuleRegistry::new().into())?;
/// let threads: usize = vm.service_inventory().iter().map(|s| s.actual).sum();
/// assert_eq!(threads, 2);
/// # }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SchedulerServices {
    dirty_cpu: Choice,
    dirty_io: Choice,
    standard_io: Choice,
    ports: Choice,
    absent: Option<&'static str>,
}

/// What cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WithServicesError {
    /// Not built yet.
    #[error("the service {service} is not there yet")]
    Absent {
        /// Which.
        service: &'static str,
    },
    /// A pool without threads.
    #[error("an owned {service} pool needs a thread; disable it instead")]
    NoThreads {
        /// Which.
        service: &'static str,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved {
    /// `None`: disabled.
    pub dirty_cpu: Option<usize>,
    pub dirty_io: Option<usize>,
    pub standard_io: bool,
    pub ports: bool,
}

impl SchedulerServices {
    /// Everything as the configuration says.
    pub fn from_config() -> SchedulerServices {
        SchedulerServices::default()
    }
    /// No threads but the workers, and no processes but the program's own.
    pub fn minimal() -> SchedulerServices {
        SchedulerServices {
            dirty_cpu: Choice::Disabled,
            dirty_io: Choice::Disabled,
            standard_io: Choice::Disabled,
            ports: Choice::Disabled,
            absent: None,
        }
    }
    /// Dirty CPU functions are refused.
    pub fn disable_dirty_cpu(mut self) -> Self {
        self.dirty_cpu = Choice::Disabled;
        self
    }
    /// A pool of its own for dirty CPU functions.
    pub fn owned_dirty_cpu(mut self, threads: usize) -> Self {
        self.dirty_cpu = Choice::Owned(threads);
        self
    }
    /// Dirty I/O functions are refused.
    pub fn disable_dirty_io(mut self) -> Self {
        self.dirty_io = Choice::Disabled;
        self
    }
    /// A pool of its own for dirty I/O functions.
    pub fn owned_dirty_io(mut self, threads: usize) -> Self {
        self.dirty_io = Choice::Owned(threads);
        self
    }
    /// No processes for the standard streams: `io:format` ends with `terminated`.
    pub fn disable_standard_io(mut self) -> Self {
        self.standard_io = Choice::Disabled;
        self
    }
    /// Processes for the standard streams; they have no thread.
    pub fn owned_standard_io(mut self) -> Self {
        self.standard_io = Choice::Owned(0);
        self
    }
    /// No ports: `open_port/2` fails with `notsup`.
    pub fn disable_ports(mut self) -> Self {
        self.ports = Choice::Disabled;
        self
    }
    /// Ports, served by a thread of this VM that starts with the first of them.
    pub fn owned_ports(mut self) -> Self {
        self.ports = Choice::Owned(1);
        self
    }
    /// Distribution, which is not there yet: building fails and says so.
    pub fn owned_distribution(mut self) -> Self {
        self.absent = Some("distribution");
        self
    }
    /// A ring for I/O operations, which is not there yet: building fails and says so.
    pub fn owned_generic_io(mut self) -> Self {
        self.absent = Some("generic-io-ring");
        self
    }
    /// Readiness of descriptors, which is not there yet: building fails and says so.
    pub fn owned_readiness(mut self) -> Self {
        self.absent = Some("readiness");
        self
    }
    /// Whether a VM can have these.
    pub fn validate(&self) -> Result<(), WithServicesError> {
        self.resolve(&SchedulerConfig::default(), false).map(|_| ())
    }
    /// A cooperative VM has pools without threads: their functions run in place.
    pub(super) fn resolve(
        &self,
        config: &SchedulerConfig,
        cooperative: bool,
    ) -> Result<Resolved, WithServicesError> {
        if let Some(service) = self.absent {
            return Err(WithServicesError::Absent { service });
        }
        let threads = cfg!(all(unix, feature = "threads")) && !cooperative;
        if self.ports != Choice::Disabled && self.ports != Choice::FromConfig && !threads {
            return Err(WithServicesError::NoThreads { service: "ports" });
        }
        let pool = |choice, configured: Option<usize>, default, service| match choice {
            Choice::Disabled => Ok(None),
            Choice::Owned(0) => Err(WithServicesError::NoThreads { service }),
            Choice::Owned(_) if cooperative => Ok(Some(0)),
            Choice::Owned(n) => Ok(Some(n)),
            Choice::FromConfig => Ok(match configured {
                Some(0) => None,
                _ if cooperative => Some(0),
                None => Some(default),
                Some(n) => Some(n),
            }),
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Resolved {
            dirty_cpu: pool(
                self.dirty_cpu,
                config.dirty_cpu_threads,
                processors,
                "dirty-cpu",
            )?,
            dirty_io: pool(
                self.dirty_io,
                config.dirty_io_threads,
                DEFAULT_DIRTY_IO_THREADS,
                "dirty-io",
            )?,
            standard_io: self.standard_io != Choice::Disabled,
            ports: threads && self.ports != Choice::Disabled,
        })
    }
}

/// Whose a service is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceModeLabel {
    /// There is none; its use is refused.
    Disabled,
    /// This VM's, joined when it ends.
    Owned,
}

/// What a service of a VM is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceInventoryEntry {
    /// Its name.
    pub service: &'static str,
    /// Whose it is.
    pub mode: ServiceModeLabel,
    /// Threads asked for.
    pub configured: usize,
    /// Threads that it has, from its first use on.
    pub actual: usize,
    /// Their names.
    pub thread_names: Vec<String>,
}

impl Scheduler {
    /// The services of this VM with their threads, those that are disabled too. Workers are not among them ([`Scheduler::worker_names`]).
    pub fn service_inventory(&self) -> Vec<ServiceInventoryEntry> {
        let r = &self.services;
        let pool = |service, threads: Option<usize>, kind: &str| ServiceInventoryEntry {
            service,
            mode: match threads {
                Some(_) => ServiceModeLabel::Owned,
                None => ServiceModeLabel::Disabled,
            },
            configured: threads.unwrap_or(0),
            actual: threads.unwrap_or(0),
            thread_names: (0..threads.unwrap_or(0))
                .map(|i| format!("beamr-dirty-{kind}-{i}"))
                .collect(),
        };
        let no_threads = |service, there| ServiceInventoryEntry {
            service,
            mode: if there {
                ServiceModeLabel::Owned
            } else {
                ServiceModeLabel::Disabled
            },
            configured: 0,
            actual: 0,
            thread_names: Vec::new(),
        };
        vec![
            pool("dirty-cpu", r.dirty_cpu, "cpu"),
            pool("dirty-io", r.dirty_io, "io"),
            no_threads("standard-io", r.standard_io),
            ServiceInventoryEntry {
                configured: usize::from(r.ports),
                actual: usize::from(r.ports),
                thread_names: if r.ports {
                    vec!["beamr-ports".into()]
                } else {
                    Vec::new()
                },
                ..no_threads("ports", r.ports)
            },
            no_threads("generic-io-ring", false),
            no_threads("distribution", false),
            no_threads("readiness", false),
        ]
    }
}
