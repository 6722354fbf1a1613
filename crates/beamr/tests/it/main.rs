//! Whole VMs: files in, results out.

mod code;
mod engine;
mod ets;
mod hostile;
mod traces;
mod world;
