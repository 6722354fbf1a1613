//! Whole VMs: files in, results out.

mod code;
mod traces;
mod world;
