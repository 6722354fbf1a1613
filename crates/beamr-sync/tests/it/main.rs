//! Tests of each structure on one thread, and a few with threads. The models are in `loom.rs`.
#![cfg(not(loom))]

mod epoch;
mod gate;
mod park;
mod run_queue;
mod signal_queue;
mod slot_table;
mod state;
mod timer_wheel;
