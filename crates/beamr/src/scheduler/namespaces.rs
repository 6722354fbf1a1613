//! Namespaces: what tenants are.
//!
//! A namespace has modules, registered names and budgets of its own; its processes spawn into it. Namespaces share the VM's atoms, its native functions (as
//! far as each is granted them) and its workers. A process that knows a pid of another namespace can send to it.

use std::sync::Arc;

use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{LoadError, ModuleLoader, ModuleTable, Trust};
use beamr_vm::vm::Namespace;

use super::Scheduler;
use super::config::{CapabilityPolicy, granted};

/// A namespace by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NamespaceId(pub u32);

impl NamespaceId {
    /// The first one.
    pub const DEFAULT: NamespaceId = NamespaceId(0);
}

/// What a namespace may have and do.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beamr::{ExitReason, LeastAuthorityPolicy, NamespaceOptions, Scheduler};
/// let vm = Scheduler::builder().threads(1).build()?;
/// # let bytes = include_bytes!("../../tests/it/data/face_cases.beam");
/// let tenant = vm.create_namespace_with(
///     NamespaceOptions::new().memory(8 << 20).processes(100).policy(&LeastAuthorityPolicy),
/// )?;
/// vm.load_module_in(tenant, &bytes[..])?;
/// let greedy = vm.spawn_in(tenant, "face_cases", "grow", ())?; // builds an endless list
/// assert_eq!(vm.run_until_exit(greedy).0, ExitReason::Killed);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct NamespaceOptions {
    memory: Option<u64>,
    processes: Option<u64>,
    weight: u32,
    granted: Option<Capabilities>,
    modules_of_vm: bool,
}

impl Default for NamespaceOptions {
    fn default() -> Self {
        NamespaceOptions {
            memory: None,
            processes: None,
            weight: 1,
            granted: None,
            modules_of_vm: true,
        }
    }
}

impl NamespaceOptions {
    /// No budgets, all that the VM's policy grants, and the VM's modules on first call.
    pub fn new() -> NamespaceOptions {
        NamespaceOptions::default()
    }
    /// Bytes of heaps, messages, tables and shared binaries at most. A process that needs more is killed.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }
    /// Processes at most. A spawn beyond fails with `system_limit`.
    pub fn processes(mut self, n: u64) -> Self {
        self.processes = Some(n);
        self
    }
    /// Its share of the workers relative to other namespaces, from 1.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }
    /// What its programs may do.
    pub fn policy(mut self, policy: &dyn CapabilityPolicy) -> Self {
        self.granted = Some(granted(policy));
        self
    }
    /// Only modules that are loaded into it: none of the VM's files.
    pub fn empty(mut self) -> Self {
        self.modules_of_vm = false;
        self
    }
}

/// What a namespace uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamespaceUsage {
    /// Live processes.
    pub processes: u64,
    /// Bytes charged: heaps in whole blocks, messages in steps of a few kilobytes. Those of a process that has ended are given back a moment
    /// after its end is known.
    pub memory: u64,
    /// Reductions that its processes have executed.
    pub reductions: u64,
}

impl Scheduler {
    /// Makes a namespace without budgets. It shares the VM's files, not what was loaded from them.
    pub fn create_namespace(&self) -> Result<NamespaceId, LoadError> {
        self.create_namespace_with(NamespaceOptions::new())
    }
    /// Makes a namespace.
    pub fn create_namespace_with(
        &self,
        options: NamespaceOptions,
    ) -> Result<NamespaceId, LoadError> {
        let first = self.vm().default_namespace();
        // Nobody grants what he does not have.
        let mut capabilities = first.modules.granted();
        if let Some(wanted) = options.granted {
            let both = (capabilities, wanted);
            capabilities = granted(&Both(both.0, both.1));
        }
        let loader: Option<Arc<dyn ModuleLoader>> = options
            .modules_of_vm
            .then(|| self.system.loader.clone() as Arc<dyn ModuleLoader>);
        let server = self.vm().server.clone();
        let namespace = self.vm().add_namespace(|id| {
            let modules = ModuleTable::new(server, id, capabilities, loader)?;
            modules.set_binary_trust(Trust::Untrusted);
            Ok(Arc::new(modules))
        })?;
        namespace.set_weight(options.weight);
        self.limit(&namespace, options.memory, options.processes);
        Ok(NamespaceId(namespace.id))
    }
    fn limit(&self, namespace: &Namespace, memory: Option<u64>, processes: Option<u64>) {
        let number = |n: Option<u64>| n.map_or(i64::MAX, |n| i64::try_from(n).unwrap_or(i64::MAX));
        namespace.set_memory_limit(number(memory));
        namespace.set_process_limit(number(processes));
    }
    /// Sets the budgets of a namespace, which may run meanwhile; `None` takes one away. False when there is no such namespace.
    pub fn set_namespace_limits(
        &self,
        namespace: NamespaceId,
        memory: Option<u64>,
        processes: Option<u64>,
    ) -> bool {
        match self.vm().namespace(namespace.0) {
            Some(n) => {
                self.limit(&n, memory, processes);
                true
            }
            None => false,
        }
    }
    /// What a namespace uses.
    pub fn namespace_usage(&self, namespace: NamespaceId) -> Option<NamespaceUsage> {
        let n = self.vm().namespace(namespace.0)?;
        Some(NamespaceUsage {
            processes: n.process_count().max(0) as u64,
            memory: n.memory().max(0) as u64,
            reductions: n.reductions(),
        })
    }
}

/// What two policies grant together.
struct Both(Capabilities, Capabilities);

impl CapabilityPolicy for Both {
    fn is_granted(&self, c: beamr_abi::Capability) -> bool {
        self.0.contains(c) && self.1.contains(c)
    }
}
