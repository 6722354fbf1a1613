//! The engine alone, on code written by hand.

mod basics;
mod frames;
mod harness;
