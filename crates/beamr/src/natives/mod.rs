//! Native functions: Rust called from Erlang.
//!
//! A [`NativeRegistry`] holds functions by module, name and arity; a VM takes it when it is built. They come in three forms:
//!
//! * [`NativeRegistry::function`]: a closure with typed arguments, which are read by [`FromTerm`](crate::FromTerm); a term of another kind is
//!   `badarg`. What it returns is a value ([`IntoTerm`](crate::IntoTerm)), or a `Result` with [`NativeError`], which is raised.
//! * [`NativeRegistry::raw`]: a closure that gets the [`NativeCall`] itself.
//! * [`NativeRegistry::awaiting`]: a closure that gets a [`Completion`] and returns at once; the calling process sleeps, and costs no thread, until the
//!   completion is used.
//!
//! A function runs on the worker that runs the process, and must not block there; what computes for more than a millisecond or blocks is registered as
//! [dirty](NativeOptions::dirty) and runs on a pool of its own. A panic becomes an error of the calling process, `{panic, Text}`, which it can catch.

mod call;
mod completion;
mod error;
mod function;
mod registry;
mod rows;
mod run;

pub use call::NativeCall;
pub use completion::Completion;
pub(crate) use completion::answer;
pub use error::NativeError;
pub use function::{AwaitingFunction, NativeFunction, NativeReturn};
pub use registry::{DirtySchedulerKind, NativeOptions, NativeRegistry, RegisterError};
pub(crate) use run::hook;
