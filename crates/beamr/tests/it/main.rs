//! Whole VMs: files in, results out.

mod code;
mod deep;
mod engine;
mod ets;
mod hostile;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native_spike;
mod natives;
mod purge;
mod traces;
mod world;
