//! The BEAM as a Rust library.
