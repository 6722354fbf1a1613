//! Whether the calling thread runs a process of a VM, so that waiting for another would be waiting for itself.

use std::cell::Cell;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives the thread runs a process.
pub(crate) struct Inside(());

impl Inside {
    pub fn enter() -> Inside {
        DEPTH.set(DEPTH.get() + 1);
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether the calling thread is a worker that runs a native function or handler of the embedding program.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}
