//! The BEAM as a Rust library.

#![deny(missing_docs)]

pub mod io_server;
pub mod loader;
pub mod otp;
pub mod run;
pub mod system;
