//! Whole VMs: files in, results out.

mod traces;
mod world;
