//! The model checker's primitives.
//!
//! Loom prunes interleavings by remembering the *last* access to an object. A load hides the load of another
//! thread before it, so that a thread that loads and then exchanges the same word is not tried
//! between two steps of a thread that only loads. The atomics here therefore touch a second object before
//! each access, with a relaxed read-modify-write: all accesses to one atomic then depend on each other, every
//! order of them is tried, and since the touch is relaxed it orders nothing that the code does not.
//! For the same reason all SeqCst fences touch one object: their order is part of what the code means, but
//! loom itself takes steps around fences for independent.

pub use loom::cell::UnsafeCell;
pub use loom::sync::Arc;
use loom::sync::atomic as raw;
pub(super) use loom::sync::{
    Condvar as RawCondvar, Mutex as RawMutex, MutexGuard as RawMutexGuard,
};
use std::sync::atomic::Ordering;

loom::lazy_static! {
    static ref FENCES: raw::AtomicU8 = raw::AtomicU8::new(0);
}

/// A fence whose order among all SeqCst fences is explored. A model calls it once before it starts threads.
pub fn fence(order: Ordering) {
    if order == Ordering::SeqCst {
        FENCES.fetch_add(0, Ordering::Relaxed);
    }
    raw::fence(order);
}

macro_rules! atomic {
    ($($(#[$doc:meta])* $name:ident ( $value:ty ) $([$t:ident])? { $($extra:ident)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name $(<$t>)? {
            inner: raw::$name $(<$t>)?,
            touched: raw::AtomicU8,
        }

        #[allow(missing_docs)]
        impl $(<$t>)? $name $(<$t>)? {
            pub fn new(value: $value) -> Self {
                Self { inner: raw::$name::new(value), touched: raw::AtomicU8::new(0) }
            }

            fn touch(&self) {
                self.touched.fetch_add(0, Ordering::Relaxed);
            }

            pub fn load(&self, order: Ordering) -> $value {
                self.touch();
                self.inner.load(order)
            }

            pub fn store(&self, value: $value, order: Ordering) {
                self.touch();
                self.inner.store(value, order);
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.touch();
                self.inner.swap(value, order)
            }

            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.touch();
                self.inner.compare_exchange(current, new, success, failure)
            }

            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            $(pub fn $extra(&self, value: $value, order: Ordering) -> $value {
                self.touch();
                self.inner.$extra(value, order)
            })*
        }
    )*};
}

atomic! {
    /// A checked boolean.
    AtomicBool(bool) { fetch_and fetch_or }
    /// A checked byte.
    AtomicU8(u8) { fetch_and fetch_or fetch_add fetch_sub }
    /// A checked word of 32 bits.
    AtomicU32(u32) { fetch_and fetch_or fetch_add fetch_sub }
    /// A checked word of 64 bits.
    AtomicU64(u64) { fetch_and fetch_or fetch_add fetch_sub }
    /// A checked machine word.
    AtomicUsize(usize) { fetch_and fetch_or fetch_add fetch_sub }
    /// A checked pointer.
    AtomicPtr(*mut T)[T] { }
}
