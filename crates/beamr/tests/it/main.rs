//! Whole VMs: files in, results out.

mod code;
mod engine;
mod traces;
mod world;
