//! The BEAM as a Rust library: Erlang, Elixir and Gleam code inside a Rust program.
//!
//! A [`Scheduler`] is a VM with threads of its own. It loads module files from bytes, folders and an installed OTP, runs processes, and calls
//! functions of the embedding program:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use beamr::{ModuleRegistry, NativeRegistry, Scheduler};
//!
//! let mut natives = NativeRegistry::new();
//! natives.function("host", "greet", |name: String| format!("hello, {name}"))?;
//! let modules = ModuleRegistry::new();
//! # let file = include_bytes!("../tests/it/data/face_cases.beam");
//! modules.insert(&file[..])?; // the bytes of face_cases.beam
//!
//! let vm = Scheduler::builder().modules(modules).natives(natives).build()?;
//! // greet(Name) -> {ok, host:greet(Name)}.
//! let greeting: Result<String, String> = vm.call("face_cases", "greet", ("world",))?;
//! assert_eq!(greeting, Ok("hello, world".into()));
//! # Ok(()) }
//! ```
//!
//! # Where things are
//!
//! * building: [`SchedulerBuilder`], [`SchedulerConfig`], [`SchedulerServices`]
//! * values: [`FromTerm`], [`IntoTerm`], [`OwnedTerm`], [`Term`]
//! * processes: [`Scheduler::spawn`], [`Scheduler::call`], [`Scheduler::run_until_exit`], [`ExitReason`], [`ExitWatch`]
//! * processes written in Rust: [`NativeHandler`]
//! * functions written in Rust: [`NativeRegistry`], [`Completion`]
//! * tenants with budgets: [`NamespaceOptions`]
//! * replacing code: [`Scheduler::hot_load_module`]
//! * output: [`IoSink`]
//!
//! # Threads
//!
//! Everything may be called from any thread. What waits for a process sleeps until it is woken; in a native function or handler (which runs on
//! the thread that would have to do the waking) it fails at once. Nothing that is lent ([`Term`]) outlives its place, and what is given to a
//! VM is copied or moved.
//!
//! # Limits
//!
//! There is no distribution, no replay and no telemetry yet; the project's README lists what else is missing.

#![deny(missing_docs)]

#[doc(hidden)]
pub mod bare;
pub mod compile;
mod ending;
mod exits;
mod handler;
mod inside;
pub mod inspect;
#[doc(hidden)]
pub mod io;
#[doc(hidden)]
pub mod loader;
mod natives;
pub mod otp;
pub mod run;
mod scheduler;
pub mod script;
#[doc(hidden)]
pub mod servers;
mod sink;
pub mod system;
pub mod target;
mod term;

pub use beamr_abi::Capability;
pub use beamr_file as file;
pub use beamr_term::{Atom, AtomTable};
pub use beamr_vm::code::LoadError;
pub use beamr_vm::code::server::Capabilities;
pub use beamr_vm::ets::Protection as EtsProtection;
pub use exits::{
    CallError, ExecError, ExitEvent, ExitEventRecvError, ExitEventSubscription, ExitReason,
    ExitWatch, ExitWatchState, OwnedException, StackFrame, WaitError,
};
pub use handler::{Linked, NativeContext, NativeHandler, NativeOutcome};
pub use loader::{ModuleFileError, ModuleRegistry};
pub use natives::{
    AwaitingFunction, Completion, DirtySchedulerKind, NativeCall, NativeError, NativeFunction,
    NativeOptions, NativeRegistry, NativeReturn, RegisterError,
};
pub use scheduler::{
    AllCapabilitiesPolicy, BuildError, CapabilityPolicy, DEFAULT_DIRTY_IO_THREADS,
    DEFAULT_REDUCTION_BUDGET, EtsError, EtsTable, EtsTableMetadata, EtsTableType, HotLoadError,
    HotLoadResult, LeastAuthorityPolicy, LinkError, MailboxSendError, MonitorResult, NamespaceId,
    NamespaceOptions, NamespaceUsage, PurgeError, PurgeResult, Scheduler, SchedulerBuilder,
    SchedulerConfig, SchedulerServices, ServiceInventoryEntry, ServiceModeLabel, SpawnedBy,
    SupervisionError, WasmRunSummary, WasmScheduler, WithServicesError,
};
pub use sink::{BufferSink, IoSink, IoStream, NullSink, StdSink};
pub use term::{
    AtomName, BigInt, Bytes, Charlist, FromTerm, IntoArgs, IntoAtom, IntoTerm, ListIter, OwnedTerm,
    PID_MAX, Pid, Place, Reference, Term, TermBuilder, TermError, TermErrorKind, TermKind,
    TextStyle, atom,
};
