//! Handlers by topic. Each file says the layout of its instructions; `crate::emit` writes exactly these.
//!
//! Word 0 is the handler. "Half n" counts half words from the start of the instruction (4 to 7 are word 1), "pair n"
//! counts half-word pairs (2 and 3 are word 1). A fail label is a distance in bytes from the instruction, 0 for none.

pub(crate) mod arith;
pub(crate) mod bits_build;
pub(crate) mod bits_match;
pub(crate) mod calls;
pub(crate) mod data;
pub(crate) mod exceptions;
pub(crate) mod floats;
pub(crate) mod guards;
pub(crate) mod maps;
pub(crate) mod messages;
pub(crate) mod natives;
pub(crate) mod records;
pub(crate) mod tests;
pub(crate) mod trace;
