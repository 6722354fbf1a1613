//! The BEAM as a Rust library.

#![deny(missing_docs)]

pub mod bare;
pub mod compile;
mod ending;
pub mod inspect;
pub mod io;
pub mod loader;
pub mod otp;
pub mod run;
pub mod script;
pub mod servers;
pub mod system;
pub mod target;

pub use beamr_file as file;
