//! The threads of a VM: workers and dirty threads. Without the feature `threads` its twin `no_threads` takes its place.

use std::sync::Mutex;
use std::thread::{Builder, JoinHandle};

use crate::vm::StartError;

/// Workers of a VM that says nothing.
pub(crate) const DEFAULT_WORKERS: usize = 1;

/// Threads that were started and not joined.
#[derive(Debug, Default)]
pub(crate) struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Threads {
    /// Starts one, with a stack of so many bytes.
    pub fn start(
        &self,
        name: String,
        stack: usize,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), StartError> {
        let builder = Builder::new().name(name.clone()).stack_size(stack);
        match builder.spawn(run) {
            Ok(t) => {
                let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
                // Some threads have one task and end.
                all.retain(|t| !t.is_finished());
                all.push(t);
                Ok(())
            }
            Err(source) => Err(StartError::Thread { name, source }),
        }
    }
    /// Waits for all of them. They have been told to end.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.0.lock().unwrap_or_else(|e| e.into_inner()));
        for t in threads {
            // A thread that panicked has said so.
            let _ = t.join();
        }
    }
}
