//! The native functions of an embedding program by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use beamr_abi::{Capability, NativeClass, NativeEntry};

use super::function::{AwaitingFunction, NativeFunction};
use super::{NativeCall, NativeError, rows};
use crate::term::Term;

/// How a native function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeOptions {
    pub(super) class: NativeClass,
    pub(super) capability: Capability,
    pub(super) timeout: Option<Duration>,
}

impl Default for NativeOptions {
    /// On the worker; needs [`Capability::ExternalIo`], as the function may do anything.
    fn default() -> Self {
        NativeOptions {
            class: NativeClass::Plain,
            capability: Capability::ExternalIo,
            timeout: None,
        }
    }
}

impl NativeOptions {
    /// As a dirty function, on the pool of this kind.
    pub fn dirty(mut self, kind: DirtySchedulerKind) -> Self {
        self.class = match kind {
            DirtySchedulerKind::Cpu => NativeClass::DirtyCpu,
            DirtySchedulerKind::Io => NativeClass::DirtyIo,
        };
        self
    }
    /// Needs this capability: a namespace without it does not have the function.
    pub fn needs(mut self, capability: Capability) -> Self {
        self.capability = capability;
        self
    }
    /// How long [awaiting](NativeRegistry::awaiting) calls wait for their completion; then they raise `timeout`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

/// The pool that a dirty function runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirtySchedulerKind {
    /// For what computes long.
    Cpu,
    /// For what blocks.
    Io,
}

/// Why a function was not registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError {
    /// There is one of this name.
    #[error("{module}:{function}/{arity} is registered already")]
    Duplicate {
        /// Module.
        module: String,
        /// Function.
        function: String,
        /// Arity.
        arity: u8,
    },
    /// A name that is no atom: longer than 255 characters.
    #[error("a name of more than 255 characters")]
    Name,
    /// The calling process cannot be put to sleep on a dirty thread.
    #[error("{module}:{function}/{arity}: an awaiting function cannot be dirty")]
    DirtyAwait {
        /// Module.
        module: String,
        /// Function.
        function: String,
        /// Arity.
        arity: u8,
    },
}

pub(super) type Run =
    dyn for<'h> Fn(&mut NativeCall<'h>) -> Result<Term<'h>, NativeError> + Send + Sync;

#[derive(Clone)]
pub(super) struct Registered {
    pub run: Arc<Run>,
    pub options: NativeOptions,
}

/// Native functions by module, name and arity.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beamr::{NativeError, NativeRegistry};
///
/// let mut natives = NativeRegistry::new();
/// natives.function("calc", "divide", |a: i64, b: i64| -> Result<i64, NativeError> {
///     a.checked_div(b).ok_or_else(NativeError::badarg)
/// })?;
/// let vm = beamr::Scheduler::builder().threads(1).natives(natives).build()?;
/// assert_eq!(vm.call::<i64>("calc", "divide", (7, 2))?, 3);
/// assert!(vm.call::<i64>("calc", "divide", (7, 0)).is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct NativeRegistry {
    functions: HashMap<(String, String, u8), Registered>,
}

impl NativeRegistry {
    /// An empty one.
    pub fn new() -> NativeRegistry {
        NativeRegistry::default()
    }
    fn put(
        &mut self,
        module: &str,
        function: &str,
        arity: u8,
        registered: Registered,
        replace: bool,
    ) -> Result<(), RegisterError> {
        if [module, function].iter().any(|n| n.chars().count() > 255) {
            return Err(RegisterError::Name);
        }
        let key = (module.to_owned(), function.to_owned(), arity);
        match self.functions.entry(key) {
            Entry::Occupied(mut o) if replace => {
                o.insert(registered);
            }
            Entry::Occupied(o) => {
                let (module, function, arity) = o.key().clone();
                return Err(RegisterError::Duplicate {
                    module,
                    function,
                    arity,
                });
            }
            Entry::Vacant(v) => {
                v.insert(registered);
            }
        }
        Ok(())
    }
    /// Registers a closure of up to eight typed arguments (before them, if it likes, a `&mut NativeCall`).
    pub fn function<M>(
        &mut self,
        module: &str,
        function: &str,
        f: impl NativeFunction<M>,
    ) -> Result<(), RegisterError> {
        self.function_with(module, function, NativeOptions::default(), f)
    }
    /// As [`NativeRegistry::function`] with options.
    pub fn function_with<M, F: NativeFunction<M>>(
        &mut self,
        module: &str,
        function: &str,
        options: NativeOptions,
        f: F,
    ) -> Result<(), RegisterError> {
        let run = general(move |call| f.run(call));
        self.put(
            module,
            function,
            F::ARITY,
            Registered { run, options },
            false,
        )
    }
    /// Registers a function that gets the call as it is.
    pub fn raw(
        &mut self,
        module: &str,
        function: &str,
        arity: u8,
        options: NativeOptions,
        f: impl for<'h> Fn(&mut NativeCall<'h>) -> Result<Term<'h>, NativeError> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let run: Arc<Run> = Arc::new(f);
        self.put(module, function, arity, Registered { run, options }, false)
    }
    /// Registers a function that answers later: it gets a [`Completion`](super::Completion) and its typed arguments, and must not block.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "threads")] {
    /// use beamr::{Completion, NativeOptions, NativeRegistry};
    ///
    /// let mut natives = NativeRegistry::new();
    /// natives.awaiting("net", "fetch", NativeOptions::default(), |done: Completion, what: String| {
    ///     std::thread::spawn(move || done.complete(format!("contents of {what}")));
    /// })?;
    /// let vm = beamr::Scheduler::builder().threads(1).natives(natives).build()?;
    /// assert_eq!(vm.call::<String>("net", "fetch", ("a page",))?, "contents of a page");
    /// # }
    /// # Ok(()) }
    /// ```
    pub fn awaiting<M, F: AwaitingFunction<M>>(
        &mut self,
        module: &str,
        function: &str,
        options: NativeOptions,
        f: F,
    ) -> Result<(), RegisterError> {
        if options.class != NativeClass::Plain {
            return Err(RegisterError::DirtyAwait {
                module: module.into(),
                function: function.into(),
                arity: F::ARITY,
            });
        }
        let timeout = options.timeout;
        let run = general(move |call| {
            if let Some(answer) = call.awaited() {
                return answer;
            }
            f.check(call)?;
            let done = call.request_await_suspend(timeout)?;
            f.begin(done, call)?;
            Err(NativeError::suspend())
        });
        self.put(
            module,
            function,
            F::ARITY,
            Registered { run, options },
            false,
        )
    }
    /// Puts another closure in the place of a registered function (or registers it).
    pub fn replace_existing<M, F: NativeFunction<M>>(
        &mut self,
        module: &str,
        function: &str,
        f: F,
    ) -> Result<(), RegisterError> {
        let run = general(move |call| f.run(call));
        let options = NativeOptions::default();
        self.put(
            module,
            function,
            F::ARITY,
            Registered { run, options },
            true,
        )
    }
    /// Whether there is a function of this name.
    pub fn contains(&self, module: &str, function: &str, arity: u8) -> bool {
        let key = (module.to_owned(), function.to_owned(), arity);
        self.functions.contains_key(&key)
    }
    /// All names, sorted.
    pub fn registered_mfas(&self) -> Vec<(String, String, u8)> {
        let mut all: Vec<_> = self.functions.keys().cloned().collect();
        all.sort();
        all
    }
    /// Their rows.
    pub(crate) fn rows(&self) -> Vec<&'static NativeEntry> {
        self.bound().map(|(row, _)| row).collect()
    }
    pub(super) fn bound(&self) -> impl Iterator<Item = (&'static NativeEntry, &Registered)> {
        self.functions.iter().map(|((m, f, a), r)| {
            let o = &r.options;
            (rows::row(m, f, *a, o.class, o.capability), r)
        })
    }
}

/// A closure's type must be expected to be general over the brand.
fn general<F>(f: F) -> Arc<Run>
where
    F: for<'h> Fn(&mut NativeCall<'h>) -> Result<Term<'h>, NativeError> + Send + Sync + 'static,
{
    Arc::new(f)
}

impl std::fmt::Debug for NativeRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.registered_mfas()).finish()
    }
}
