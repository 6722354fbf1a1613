//! Integration tests of the VM crate.

mod gc;
