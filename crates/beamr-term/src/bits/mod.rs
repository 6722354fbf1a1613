//! Bitstrings: views, reading, writing, parts, appending.
//!
//! In here: everything that knows how bits lie in bytes. `raw` moves and compares bits at any
//! offset, `view` reads a bitstring term, `write` fills a block segment by segment, `build` makes
//! bitstring terms (parts, match contexts, appends). Not in here: the bit syntax itself.
//!
//! Bit 0 of a bitstring is the most significant bit of its first byte.

mod build;
pub mod raw;
mod view;
mod write;

pub use build::{Append, append, match_context, match_tail, sub_bits};
pub use view::{BitsView, Utf};
pub use write::{BitsWriter, BsBuilder, f16_to_f64, f64_to_f16};
