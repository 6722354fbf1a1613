//! The twin of `threads` in a cooperative build: no thread is ever started.

use crate::vm::StartError;

/// A VM that says nothing runs on the threads of its callers.
pub(crate) const DEFAULT_WORKERS: usize = 0;

/// No threads.
#[derive(Debug, Default)]
pub(crate) struct Threads;

impl Threads {
    /// Refuses.
    pub fn start(
        &self,
        name: String,
        _: usize,
        _: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        Err(StartError::NoThreads { name })
    }
    /// There is nothing to wait for.
    pub fn join(&self) {}
}
