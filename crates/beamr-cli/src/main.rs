//! The `beamr` program.
fn main() {}
