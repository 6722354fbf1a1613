//! `erlang`, by subject: what a file is named after is what its natives work on.

pub mod apply;
pub mod binaries;
pub mod calendar;
pub mod code;
pub mod errors;
pub mod external;
pub mod funs;
pub mod ids;
pub mod lists;
pub mod nodes;
pub mod numbers;
pub mod packets;
pub mod ports;
pub mod process;
pub mod system;
pub mod tasks;
pub mod text;
pub mod time;
mod trace_calls;
pub mod tracing;
pub mod tuples;
pub mod types;
