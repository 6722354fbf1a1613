//! Integration tests of the VM crate.

mod code;
mod ets;
mod exception;
mod gc;
mod lower;
mod processes;
mod support;
