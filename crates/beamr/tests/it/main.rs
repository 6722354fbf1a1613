//! Whole VMs: files in, results out.

mod code;
mod engine;
mod ets;
mod hostile;
mod natives;
mod traces;
mod world;
