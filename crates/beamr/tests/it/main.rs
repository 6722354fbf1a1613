//! Whole VMs: files in, results out.

mod code;
mod deep;
mod engine;
mod ets;
mod face;
mod face_examples;
mod face_exits;
mod face_natives;
mod face_processes;
mod face_vm;
mod hostile;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native_spike;
mod natives;
mod purge;
mod traces;
mod world;
