//! What a VM opens outside itself.
//!
//! [`ports`] runs programs and talks through descriptors for the VM's ports: one thread for all of them, which sleeps in `poll` and
//! is started with the first port. Nothing here touches the program's signal handlers, working directory or environment; only
//! children of its own are waited for.

#![deny(missing_docs)]

#[cfg(unix)]
pub mod ports;
