//! The primitives that all other modules are built from: `std`'s, or loom's under `--cfg loom`.
//!
//! Nothing else in this crate names `std::sync`, `std::cell` or `std::thread`. Locks here ignore
//! poisoning: a critical section of this crate runs no foreign code that may panic half-way, and
//! where it does (a drop), the structure is already consistent.

pub use std::sync::atomic::Ordering;
use std::time::Duration;

#[cfg(not(loom))]
mod imp {
    pub use std::sync::Arc;
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(super) use std::sync::{
        Condvar as RawCondvar, Mutex as RawMutex, MutexGuard as RawMutexGuard,
    };

    /// A cell that is entered through closures, so that a model checker can see every access.
    #[derive(Debug, Default)]
    #[repr(transparent)]
    pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        /// Wraps a value.
        pub const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        /// Calls `f` with a pointer that may be read.
        #[inline(always)]
        pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        /// Calls `f` with a pointer that may be written.
        #[inline(always)]
        pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(loom)]
#[path = "prim_loom.rs"]
mod imp;

pub use imp::{
    Arc, AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, UnsafeCell, fence,
};
use imp::{RawCondvar, RawMutex, RawMutexGuard};

/// Whether a thread of this build may block: false without the `threads` feature and on wasm32
/// without shared memory, where there is nobody else who could wake it.
pub const CAN_BLOCK: bool = cfg!(all(
    feature = "threads",
    any(not(target_family = "wasm"), target_feature = "atomics")
));

/// A mutual exclusion lock that ignores poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(RawMutex<T>);

/// Access to what a [`Mutex`] protects, released on drop.
pub type MutexGuard<'a, T> = RawMutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(RawMutex::new(value))
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Reaches the value without locking, which exclusive access makes needless.
    pub fn get_mut(&mut self) -> &mut T {
        match self.0.get_mut() {
            Ok(value) => value,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(RawCondvar);

impl Condvar {
    /// Makes a condition variable nobody waits on.
    #[must_use]
    pub fn new() -> Self {
        Self(RawCondvar::new())
    }

    /// Releases the lock, sleeps until notified (or for no reason), takes the lock again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        match self.0.wait(guard) {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// As [`Condvar::wait`], but at most for `timeout`. The model checker knows no time: there it
    /// returns at once, as after a wait of no length.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> MutexGuard<'a, T> {
        #[cfg(not(loom))]
        {
            match self.0.wait_timeout(guard, timeout) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            }
        }
        #[cfg(loom)]
        {
            let _ = timeout;
            guard
        }
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Keeps a value away from its neighbours' cache lines: two lines, since the prefetcher of x86-64
/// fetches them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
