//! Integration tests of the term crate, one module per subject.

mod bits;
mod maps;
mod order;
