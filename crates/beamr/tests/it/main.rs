//! Whole VMs: files in, results out.

mod code;
mod hostile;
mod traces;
mod world;
