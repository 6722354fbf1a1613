//! Processes written in Rust.

use beamr_abi::Ctx;
use beamr_term::Word;

/// What a native process wants after a turn.
#[derive(Clone, Copy, Debug)]
pub enum NativeStep {
    /// Another turn.
    Continue,
    /// A turn when a message (or timeout) has arrived.
    Wait,
    /// The end, with this exit reason (in its heap).
    Exit(Word),
}

/// The code of a process written in Rust. A turn uses the same functions as natives and engines do
/// ([`crate::rt::send`], [`crate::rt::next_message`], [`crate::signal::link::link`], ...). It must not block.
///
/// Between turns the heap may be collected: terms that are to last are kept in the process dictionary, or copied.
pub trait NativeProcess: Send {
    /// One turn.
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep;
}

impl<F: FnMut(&mut Ctx) -> NativeStep + Send> NativeProcess for F {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        self(ctx)
    }
}
