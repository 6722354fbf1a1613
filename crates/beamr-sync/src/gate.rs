//! Waiting from outside the VM: a value that comes once, and a value for one receiver.
//!
//! These are for host threads (run until exit, join a service, ask a process and wait). Workers
//! never wait here; they park. Both types are a lock and a condition variable: the setter
//! changes the value under the lock and notifies, a waiter looks under the lock before every wait, so that no
//! wake-up is lost.
//!
//! Where a build cannot block, waiting fails with [`CannotBlock`] unless the value is there: the host
//! of a cooperative VM calls its `step` until the value comes.

use crate::prim::{Arc, CAN_BLOCK, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Waiting is impossible in this build: it has one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CannotBlock;

impl std::fmt::Display for CannotBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this build has one thread, which must not wait for itself")
    }
}

impl std::error::Error for CannotBlock {}

/// A value that is set once and that any number of threads wait for.
#[derive(Debug)]
pub struct Gate<T> {
    value: Mutex<Option<T>>,
    set: Condvar,
}

impl<T: Clone> Gate<T> {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self {
            value: Mutex::new(None),
            set: Condvar::new(),
        }
    }

    /// Opens the gate. The first value stays; a later one is given back.
    pub fn open(&self, value: T) -> Result<(), T> {
        let mut slot = self.value.lock();
        if slot.is_some() {
            return Err(value);
        }
        *slot = Some(value);
        drop(slot);
        self.set.notify_all();
        Ok(())
    }

    /// The value, if the gate is open.
    pub fn get(&self) -> Option<T> {
        self.value.lock().clone()
    }

    /// Waits until the gate is open.
    pub fn wait(&self) -> Result<T, CannotBlock> {
        let mut slot = self.value.lock();
        loop {
            match &*slot {
                Some(value) => return Ok(value.clone()),
                None if !CAN_BLOCK => return Err(CannotBlock),
                None => slot = self.set.wait(slot),
            }
        }
    }

    /// As [`Gate::wait`], at most for this long: `None` when the time is over.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<T>, CannotBlock> {
        let mut slot = self.value.lock();
        if slot.is_none() && !CAN_BLOCK {
            return Err(CannotBlock);
        }
        if slot.is_some() {
            return Ok(slot.clone());
        }
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            drop(slot);
            return self.wait().map(Some);
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if slot.is_some() || left.is_zero() {
                return Ok(slot.clone());
            }
            slot = self.set.wait_timeout(slot, left);
        }
    }
}

impl<T: Clone> Default for Gate<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The sender was dropped without sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// Nobody will send any more.
    Dropped,
    /// The time is over.
    Timeout,
    /// Waiting is impossible in this build and nothing is there.
    CannotBlock,
}

impl std::fmt::Display for RecvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dropped => "the sender was dropped",
            Self::Timeout => "nothing came in time",
            Self::CannotBlock => "this build has one thread, which must not wait for itself",
        })
    }
}

impl std::error::Error for RecvError {}

#[derive(Debug)]
struct OneShotState<T> {
    value: Option<T>,
    /// The other side is gone.
    closed: bool,
}

#[derive(Debug)]
struct OneShotInner<T> {
    state: Mutex<OneShotState<T>>,
    wake: Condvar,
}

/// The receiving end of a channel for one value. Made by [`OneShot::channel`].
#[derive(Debug)]
pub struct OneShot<T>(Arc<OneShotInner<T>>);

/// The sending end of a [`OneShot`].
#[derive(Debug)]
pub struct OneShotSender<T>(Arc<OneShotInner<T>>);

impl<T> OneShot<T> {
    /// Makes both ends.
    #[must_use]
    pub fn channel() -> (OneShotSender<T>, OneShot<T>) {
        let inner = Arc::new(OneShotInner {
            state: Mutex::new(OneShotState {
                value: None,
                closed: false,
            }),
            wake: Condvar::new(),
        });
        (OneShotSender(inner.clone()), OneShot(inner))
    }

    /// Takes the value if it is there.
    pub fn try_recv(&self) -> Option<T> {
        self.0.state.lock().value.take()
    }

    /// Waits for the value.
    pub fn recv(self) -> Result<T, RecvError> {
        self.recv_until(None)
    }

    /// Waits for the value, at most for this long. The channel stays usable after a timeout.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvError> {
        if !CAN_BLOCK {
            return self.recv_until(None);
        }
        self.recv_until(Instant::now().checked_add(timeout))
    }

    fn recv_until(&self, deadline: Option<Instant>) -> Result<T, RecvError> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.value.take() {
                return Ok(value);
            }
            if state.closed {
                return Err(RecvError::Dropped);
            }
            if !CAN_BLOCK {
                return Err(RecvError::CannotBlock);
            }
            state = match deadline {
                None => self.0.wake.wait(state),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(RecvError::Timeout);
                    }
                    self.0.wake.wait_timeout(state, left)
                }
            };
        }
    }
}

impl<T> Drop for OneShot<T> {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
    }
}

impl<T> OneShotSender<T> {
    /// Sends the value; gives it back when nobody receives any more.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.0.state.lock();
        if state.closed {
            return Err(value);
        }
        state.value = Some(value);
        drop(state);
        // The drop of `self` notifies.
        Ok(())
    }
}

impl<T> Drop for OneShotSender<T> {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.wake.notify_one();
    }
}
