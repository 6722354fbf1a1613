//! `erlang`, by subject: what a file is named after is what its natives work on.

pub mod apply;
pub mod binaries;
pub mod code;
pub mod errors;
pub mod lists;
pub mod numbers;
pub mod process;
pub mod text;
pub mod time;
pub mod tuples;
pub mod types;
