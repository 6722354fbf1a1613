//! Loading, replacing and purging modules.
//!
//! A module has current code and may have one old version, in which processes that were in it go on. Loading makes current code old; it is refused while
//! there is old code, which must be purged first.

use std::sync::Arc;

use beamr_term::Atom;
use beamr_vm::code::{LoadError, ModuleTable};
use beamr_vm::process::Carried;

use super::{NamespaceId, Scheduler, SpawnedBy};
use crate::exits::{CallError, ExitReason};
use crate::inside::is_inside;
use crate::term::{IntoAtom, OwnedTerm, Pid, TermError};

/// A module that was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotLoadResult {
    /// Its name.
    pub module_name: Atom,
    /// A number of this code in the VM: files that differ have different ones.
    pub generation: u64,
    /// There was current code, which is old now.
    pub had_old_version: bool,
    /// The module has an `on_load` function.
    pub on_load_required: bool,
    /// The module has an `on_load` function, which returned `ok`.
    pub on_load_succeeded: bool,
}

/// Why a module was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HotLoadError {
    /// The file.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is old code, which must be purged before.
    #[error("old code of the module is not purged")]
    NotPurged,
    /// The `on_load` function did not return `ok`; what was current before still is.
    #[error("the on_load function failed: {0}")]
    OnLoad(String),
    /// There is no such namespace.
    #[error("there is no namespace {0}")]
    NoNamespace(u32),
    /// In a native function or handler: it would wait for itself.
    #[error("a native function or handler cannot wait for a process")]
    InsideVm,
}

/// Old code that was purged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PurgeResult {
    /// The module.
    pub module_name: Atom,
    /// Processes that were in old code, and killed.
    pub processes_killed: usize,
}

/// Why old code was not purged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// These run old code.
    #[error("{} processes use old code", .0.len())]
    InUse(Vec<Pid>),
    /// There is no such namespace.
    #[error("there is no namespace {0}")]
    NoNamespace(u32),
    /// The module's name.
    #[error(transparent)]
    Name(#[from] TermError),
    /// In a native function or handler: it would wait for itself.
    #[error("a native function or handler cannot wait for a process")]
    InsideVm,
}

impl Scheduler {
    fn modules(&self, namespace: NamespaceId) -> Option<Arc<ModuleTable>> {
        Some(self.vm().namespace(namespace.0)?.modules.clone())
    }
    /// Loads a module from the bytes of its file. It is untrusted unless the VM was built [otherwise](super::SchedulerBuilder::trust_code). Waits for the
    /// `on_load` function of the module, if it has one.
    pub fn hot_load_module(&self, file: &[u8]) -> Result<HotLoadResult, HotLoadError> {
        self.hot_load_module_in(NamespaceId::DEFAULT, file)
    }
    /// As [`Scheduler::hot_load_module`], in a namespace.
    pub fn hot_load_module_in(
        &self,
        namespace: NamespaceId,
        file: &[u8],
    ) -> Result<HotLoadResult, HotLoadError> {
        if is_inside() {
            return Err(HotLoadError::InsideVm);
        }
        let modules = self
            .modules(namespace)
            .ok_or(HotLoadError::NoNamespace(namespace.0))?;
        let image = modules.prepare(file, self.trust, None)?;
        let module_name = image.module();
        let had_old_version = modules.is_loaded(module_name);
        let finished = modules
            .finish(std::slice::from_ref(&image))
            .map_err(finish_error)?;
        let on_load_required = !finished.on_load.is_empty();
        if on_load_required {
            let by = SpawnedBy {
                namespace,
                ..SpawnedBy::default()
            };
            let ran: Result<OwnedTerm, CallError> =
                self.call_with(by, None, "erlang", "call_on_load_function", (module_name,));
            let why = match ran {
                Ok(t) if t.root().is_atom("ok") => None,
                Ok(t) => Some(format!("it returned {t}")),
                Err(e) => Some(e.to_string()),
            };
            modules
                .finish_on_load(module_name, why.is_none())
                .map_err(finish_error)?;
            if let Some(why) = why {
                return Err(HotLoadError::OnLoad(why));
            }
        }
        Ok(HotLoadResult {
            module_name,
            generation: u64::from(image.id),
            had_old_version,
            on_load_required,
            on_load_succeeded: on_load_required,
        })
    }
    /// As [`Scheduler::hot_load_module_in`]: loading and replacing are the same.
    pub fn load_module_in(
        &self,
        namespace: NamespaceId,
        file: &[u8],
    ) -> Result<HotLoadResult, HotLoadError> {
        self.hot_load_module_in(namespace, file)
    }
    /// Drops old code of a module. Refused while a process is in it. Funs of it are bad afterwards; its literals are copied to who holds them.
    pub fn purge_module(&self, module: impl IntoAtom) -> Result<PurgeResult, PurgeError> {
        self.purge_module_in(NamespaceId::DEFAULT, module)
    }
    /// As [`Scheduler::purge_module`], in a namespace.
    pub fn purge_module_in(
        &self,
        namespace: NamespaceId,
        module: impl IntoAtom,
    ) -> Result<PurgeResult, PurgeError> {
        self.purge(namespace, module, false)
    }
    /// Drops old code of a module and kills the processes that use it.
    pub fn force_purge_module(&self, module: impl IntoAtom) -> Result<PurgeResult, PurgeError> {
        self.force_purge_module_in(NamespaceId::DEFAULT, module)
    }
    /// As [`Scheduler::force_purge_module`], in a namespace.
    pub fn force_purge_module_in(
        &self,
        namespace: NamespaceId,
        module: impl IntoAtom,
    ) -> Result<PurgeResult, PurgeError> {
        self.purge(namespace, module, true)
    }
    fn purge(
        &self,
        namespace: NamespaceId,
        module: impl IntoAtom,
        force: bool,
    ) -> Result<PurgeResult, PurgeError> {
        if is_inside() {
            return Err(PurgeError::InsideVm);
        }
        let modules = self
            .modules(namespace)
            .ok_or(PurgeError::NoNamespace(namespace.0))?;
        let module_name = module.atom_in(&self.vm().tables)?;
        let mut killed = Vec::new();
        if modules.begin_purge(module_name) {
            loop {
                let users = self.vm().users_of_old_code(&modules, module_name);
                if users.is_empty() {
                    break;
                }
                let users: Vec<Pid> = users.into_iter().filter_map(Pid::of_word).collect();
                if !force {
                    modules.abort_purge(module_name);
                    return Err(PurgeError::InUse(users));
                }
                for pid in users {
                    let kill = Carried::immediate(beamr_term::atoms::KILL);
                    self.vm().terminate(pid.word(), kill);
                    // It is dead when this returns, or nothing can be waited for any more.
                    let _ = self.wait_quietly(pid);
                    killed.push(pid);
                }
            }
            modules.purge(module_name);
            self.vm().give_up_purged();
        }
        killed.sort();
        killed.dedup();
        Ok(PurgeResult {
            module_name,
            processes_killed: killed.len(),
        })
    }
    /// Waits for the end of a process without taking its outcome.
    fn wait_quietly(&self, pid: Pid) -> Option<ExitReason> {
        match self.watch_exit(pid) {
            crate::exits::ExitWatchState::Live(w) => w.wait().ok(),
            crate::exits::ExitWatchState::AlreadyExited(r) => Some(r),
            crate::exits::ExitWatchState::NoRecord => None,
        }
    }
    /// Makes current code of a module old, so that nobody calls it any more. False when there is none, or old code is in the way.
    pub fn delete_module(&self, module: impl IntoAtom) -> bool {
        let modules = &self.vm().default_namespace().modules;
        module
            .atom_in(&self.vm().tables)
            .is_ok_and(|m| modules.delete(m) == Ok(true))
    }
    /// Whether a module has old code.
    pub fn check_old_code(&self, module: impl IntoAtom) -> bool {
        let modules = &self.vm().default_namespace().modules;
        module
            .atom_in(&self.vm().tables)
            .is_ok_and(|m| modules.old(m).is_some())
    }
    /// Whether a process runs old code of a module, or will return into it.
    pub fn check_process_code(&self, pid: impl Into<Pid>, module: impl IntoAtom) -> bool {
        let pid = pid.into().word();
        let Ok(module) = module.atom_in(&self.vm().tables) else {
            return false;
        };
        let Some(namespace) = self.vm().namespace_of(pid).filter(|_| !is_inside()) else {
            return false;
        };
        let old = namespace.modules.old(module);
        old.is_some_and(|o| self.vm().runs_in(pid, &o.image) == Some(true))
    }
    /// Whether a module has current code.
    pub fn is_loaded(&self, module: impl IntoAtom) -> bool {
        self.is_loaded_in(NamespaceId::DEFAULT, module)
    }
    /// As [`Scheduler::is_loaded`], in a namespace.
    pub fn is_loaded_in(&self, namespace: NamespaceId, module: impl IntoAtom) -> bool {
        let Ok(module) = module.atom_in(&self.vm().tables) else {
            return false;
        };
        self.modules(namespace)
            .is_some_and(|modules| modules.is_loaded(module))
    }
}

fn finish_error(e: beamr_vm::code::FinishError) -> HotLoadError {
    match e {
        beamr_vm::code::FinishError::NotPurged(_) => HotLoadError::NotPurged,
        e => HotLoadError::Load(LoadError::Finish(e)),
    }
}
