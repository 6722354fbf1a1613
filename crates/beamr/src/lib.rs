//! The BEAM as a Rust library.

#![deny(missing_docs)]

pub mod bare;
#[cfg(feature = "threads")]
mod input;
#[cfg(not(feature = "threads"))]
#[path = "inline_input.rs"]
mod input;
pub mod inspect;
pub mod io_server;
pub mod loader;
pub mod otp;
pub mod run;
pub mod servers;
pub mod system;

pub use beamr_file as file;
