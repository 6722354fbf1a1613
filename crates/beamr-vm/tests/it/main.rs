//! Integration tests of the VM crate.

mod code;
mod exception;
mod gc;
mod support;
mod lower;
