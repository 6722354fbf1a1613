//! Whole VMs: files in, results out.

mod code;
mod deep;
mod engine;
mod ets;
mod face;
// Hosts that sleep until workers have done something.
#[cfg(feature = "threads")]
mod face_examples;
// Hosts that sleep until workers have done something.
#[cfg(feature = "threads")]
mod face_exits;
// Hosts that sleep until workers have done something.
#[cfg(feature = "threads")]
mod face_natives;
// Hosts that sleep until workers have done something.
#[cfg(feature = "threads")]
mod face_processes;
mod face_vm;
mod hostile;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native_spike;
mod natives;
mod purge;
mod traces;
mod world;
