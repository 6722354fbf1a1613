//! Making processes, calling functions.

use std::sync::Arc;
use std::time::Duration;

use beamr_term::{Atom, Build, Fragment, Word, atoms};
use beamr_vm::code::table::Ensured;
use beamr_vm::host::{HostSpawn, HostSpawnError};
use beamr_vm::process::spawn::{SpawnOptions, Start};
use beamr_vm::vm::Namespace;

use super::{NamespaceId, Scheduler};
use crate::exits::{CallError, ExecError, ExitReason};
use crate::handler::{HandlerProcess, NativeHandler};
use crate::term::{FromTerm, IntoArgs, IntoAtom, OwnedTerm, Pid, TermBuilder, TermErrorKind};

/// How a process is made, besides what it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnedBy {
    /// The namespace; that of the parent when there is one.
    pub namespace: NamespaceId,
    /// Linked to this process before it runs.
    pub parent: Option<Pid>,
    /// Exit signals of linked processes come as messages.
    pub trap_exit: bool,
    /// An error that ends it is not reported (to OTP's logger, or on standard error without OTP).
    pub quiet: bool,
}

/// A call that is ready to be started.
struct Ready {
    namespace: Arc<Namespace>,
    module: Word,
    function: Word,
    args: Word,
    /// Where the arguments lie.
    _storage: Fragment,
}

impl Scheduler {
    /// Spawns a process that calls an exported function; the module is loaded if need be. Arguments are copied.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let vm = beamr::Scheduler::builder().threads(1).build()?;
    /// let pid = vm.spawn("erlang", "list_to_tuple", ([1, 2],))?;
    /// let (reason, result) = vm.run_until_exit(pid);
    /// assert_eq!(reason, beamr::ExitReason::Normal);
    /// assert_eq!(result.to_string(), "{1,2}");
    /// # Ok(()) }
    /// ```
    pub fn spawn(
        &self,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        self.spawn_with(SpawnedBy::default(), module, function, args)
    }
    /// As [`Scheduler::spawn`], in a namespace.
    pub fn spawn_in(
        &self,
        namespace: NamespaceId,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            namespace,
            ..SpawnedBy::default()
        };
        self.spawn_with(by, module, function, args)
    }
    /// As [`Scheduler::spawn`]; the process traps exits from the start.
    pub fn spawn_trap_exit(
        &self,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            trap_exit: true,
            ..SpawnedBy::default()
        };
        self.spawn_with(by, module, function, args)
    }
    /// As [`Scheduler::spawn_trap_exit`], in a namespace.
    pub fn spawn_in_trap_exit(
        &self,
        namespace: NamespaceId,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            namespace,
            trap_exit: true,
            ..SpawnedBy::default()
        };
        self.spawn_with(by, module, function, args)
    }
    /// As [`Scheduler::spawn`]; the process is linked to its parent before it runs, and in its namespace. [`ExecError::Badarg`] when the parent is not alive.
    pub fn spawn_link(
        &self,
        parent: impl Into<Pid>,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            parent: Some(parent.into()),
            ..SpawnedBy::default()
        };
        self.spawn_with(by, module, function, args)
    }
    /// Spawns a process with all there is to say of it.
    pub fn spawn_with(
        &self,
        by: SpawnedBy,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Pid, ExecError> {
        let ready = self.ready(by, module, function, args)?;
        let start = Start::Apply(ready.module, ready.function, ready.args);
        self.start(&ready.namespace, by, start)
    }
    fn ready(
        &self,
        by: SpawnedBy,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<Ready, ExecError> {
        let tables = &self.vm().tables;
        let (module, function) = (module.atom_in(tables)?, function.atom_in(tables)?);
        let namespace = self.namespace_for(by)?;
        let mut storage = Fragment::with_capacity(64);
        let words: Vec<Word> = {
            // SAFETY: the fragment stays in place as long as the builder, the only one of its brand.
            let builder = unsafe { TermBuilder::new(&raw mut storage, tables, true) };
            let args = args.into_args(&builder)?;
            args.into_iter().map(|t| t.word()).collect()
        };
        if words.len() > 255 {
            return Err(ExecError::Badarg);
        }
        self.check_function(&namespace, module, function, words.len() as u32)?;
        let args = storage.list(words);
        Ok(Ready {
            namespace,
            module: module.word(),
            function: function.word(),
            args,
            _storage: storage,
        })
    }
    fn namespace_for(&self, by: SpawnedBy) -> Result<Arc<Namespace>, ExecError> {
        match by.parent {
            Some(p) => self.vm().namespace_of(p.word()).ok_or(ExecError::Badarg),
            None => self
                .vm()
                .namespace(by.namespace.0)
                .ok_or(ExecError::NoNamespace(by.namespace.0)),
        }
    }
    /// Whether the function can be called: its module is loaded for it.
    fn check_function(
        &self,
        namespace: &Namespace,
        module: Atom,
        function: Atom,
        arity: u32,
    ) -> Result<(), ExecError> {
        let modules = &namespace.modules;
        if !modules.find(module, function, arity).is_null() {
            return Ok(());
        }
        let atoms = &self.vm().tables.atoms;
        match modules.ensure_loaded(module) {
            // What it will export is known when its `on_load` function has run.
            Ok(Ensured::OnLoad) => return Ok(()),
            Ok(Ensured::Loaded | Ensured::Missing) => {}
            Err(e) => {
                return Err(ExecError::Load {
                    module: atoms.text(module).to_owned(),
                    cause: e.to_string(),
                });
            }
        }
        let handles = atoms.lookup("$handle_undefined_function");
        if !modules.find(module, function, arity).is_null()
            || handles.is_some_and(|h| !modules.find(module, h, 2).is_null())
        {
            return Ok(());
        }
        Err(ExecError::Undef {
            module: atoms.text(module).to_owned(),
            function: atoms.text(function).to_owned(),
            arity: arity as usize,
        })
    }
    fn start(
        &self,
        namespace: &Arc<Namespace>,
        by: SpawnedBy,
        start: Start,
    ) -> Result<Pid, ExecError> {
        let spawn = HostSpawn {
            parent: by.parent.map(Pid::word),
            trap_exit: by.trap_exit,
            options: SpawnOptions {
                quiet: by.quiet,
                ..SpawnOptions::default()
            },
        };
        let made = self
            .vm()
            .host_spawn(namespace, start, &spawn, self.system.user);
        match made {
            Ok(pid) => Ok(Pid::from(pid.local_number())),
            Err(HostSpawnError::Parent) => Err(ExecError::Badarg),
            Err(e @ HostSpawnError::Spawn(_)) => Err(ExecError::SystemLimit(e.to_string())),
        }
    }
    /// Spawns a process that calls a fun of no arguments, linked to a parent. The fun is copied.
    pub fn spawn_link_closure(
        &self,
        parent: impl Into<Pid>,
        fun: OwnedTerm,
    ) -> Result<Pid, ExecError> {
        let fun = fun.into_tables(&self.vm().tables)?;
        if fun.root().kind() != crate::term::TermKind::Fun {
            return Err(ExecError::Badfun(fun));
        }
        let no_args = self.term(Vec::<i64>::new())?;
        let by = SpawnedBy {
            parent: Some(parent.into()),
            ..SpawnedBy::default()
        };
        self.spawn_with(by, atoms::ERLANG, atoms::APPLY, (fun, no_args))
    }
    /// Spawns a process written in Rust: `factory` makes its handler.
    pub fn spawn_native<H: NativeHandler + 'static>(
        &self,
        factory: impl FnOnce() -> H,
    ) -> Result<Pid, ExecError> {
        self.spawn_native_with(SpawnedBy::default(), factory)
    }
    /// As [`Scheduler::spawn_native`]; the process is linked to its parent before it runs.
    pub fn spawn_native_link<H: NativeHandler + 'static>(
        &self,
        parent: impl Into<Pid>,
        factory: impl FnOnce() -> H,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            parent: Some(parent.into()),
            ..SpawnedBy::default()
        };
        self.spawn_native_with(by, factory)
    }
    /// As [`Scheduler::spawn_native`]; the process traps exits from the start.
    pub fn spawn_native_trap_exit<H: NativeHandler + 'static>(
        &self,
        factory: impl FnOnce() -> H,
    ) -> Result<Pid, ExecError> {
        let by = SpawnedBy {
            trap_exit: true,
            ..SpawnedBy::default()
        };
        self.spawn_native_with(by, factory)
    }
    /// Spawns a process written in Rust with all there is to say of it.
    pub fn spawn_native_with<H: NativeHandler + 'static>(
        &self,
        by: SpawnedBy,
        factory: impl FnOnce() -> H,
    ) -> Result<Pid, ExecError> {
        let namespace = self.namespace_for(by)?;
        let handler = Box::new(HandlerProcess(factory()));
        self.start(&namespace, by, Start::Native(handler))
    }

    /// Calls a function in a process of its own and gives its value as a `T`. Sleeps until it has returned. An error is given back, and reported to nobody else.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let vm = beamr::Scheduler::builder().threads(1).build()?;
    /// let n: i64 = vm.call("erlang", "length", (vec!["a", "b"],))?;
    /// assert_eq!(n, 2);
    /// let error = vm.call::<i64>("erlang", "length", (1,)).unwrap_err();
    /// assert!(error.to_string().starts_with("badarg"));
    /// # Ok(()) }
    /// ```
    pub fn call<T: FromTerm>(
        &self,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<T, CallError> {
        self.call_with(SpawnedBy::default(), None, module, function, args)
    }
    /// As [`Scheduler::call`] in any namespace, for at most so long: a function that takes longer is killed.
    pub fn call_with<T: FromTerm>(
        &self,
        by: SpawnedBy,
        timeout: Option<Duration>,
        module: impl IntoAtom,
        function: impl IntoAtom,
        args: impl IntoArgs,
    ) -> Result<T, CallError> {
        if crate::inside::is_inside() {
            return Err(crate::exits::WaitError::InsideVm.into());
        }
        let by = SpawnedBy { quiet: true, ..by };
        let pid = self.spawn_with(by, module, function, args)?;
        let (reason, result) = match self.wait(pid, timeout) {
            Ok(outcome) => outcome,
            Err(e) => {
                self.terminate_process(pid, ExitReason::Kill);
                return Err(e.into());
            }
        };
        match reason {
            ExitReason::Normal => match result {
                Some(r) => T::from_term(r.root()).map_err(CallError::Value),
                None => Err(CallError::Exit(ExitReason::Normal)),
            },
            reason => Err(match reason.exception() {
                Some(e) => CallError::Raised(Box::new(e)),
                None => CallError::Exit(reason),
            }),
        }
    }
}

impl From<TermErrorKind> for ExecError {
    fn from(kind: TermErrorKind) -> ExecError {
        ExecError::from(crate::term::TermError::from(kind))
    }
}
