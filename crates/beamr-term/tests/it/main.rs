//! Integration tests of the term crate, one module per subject.

mod arith;
mod bits;
mod copy;
mod etf;
mod format;
mod hash;
mod maps;
mod number_text;
mod order;
mod sharing;
mod text;
