//! The engine alone, on code written by hand.

mod basics;
mod harness;
