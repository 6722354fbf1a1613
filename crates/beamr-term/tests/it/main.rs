//! Integration tests of the term crate, one module per subject.

mod bits;
mod copy;
mod maps;
mod order;
