//! The processes that answer the I/O protocol in a bare start: `user` (standard input and output, pid 0) and `standard_error`.
//!
//! [`server`] is the protocol; [`input`] the bytes of standard input and where lines and characters end in them; [`reader`] who reads
//! them, with a twin for builds without threads; [`codec`] what characters become on their way out and in; [`options`] what `setopts`
//! and `getopts` know in each release.

mod codec;
mod input;
mod options;
#[cfg(feature = "threads")]
mod reader;
#[cfg(not(feature = "threads"))]
#[path = "inline_reader.rs"]
mod reader;
mod server;

pub use server::IoServer;
