//! What the VM needs of an engine, and what an engine gives it.
//!
//! # Frames and code positions
//!
//! * The BEAM stack grows down. `e[0..slots]` are the Y registers of the running function, the word behind
//!   them is its return address. A code position is a 4-aligned word, so it carries the header tag
//!   and a stack is scanned by tag alone: primary tag 00 is a position, a catch tag is a catch tag, everything else is a term.
//! * Positions of interpreted code are 8-aligned addresses of code words. A function of machine code looks the same from
//!   outside: its position is the 8-aligned address of a word that holds what the interpreter jumps to, and the machine code stands behind
//!   it; so call sites, export slots, fun entries and saved processes do not tell engines apart. Every other machine position (return addresses,
//!   handlers, receive loops) is 4 modulo 8. Interpreter code returns by popping one word: bit 2 tells which engine goes on. When the
//!   interpreter enters a machine function and the word on top of the stack is an interpreter position, it
//!   pushes the machine stub that pops it and re-enters the interpreter; so a frame is one word in either world
//!   and tail calls between engines do not grow the stack. Stubs belong to no function: traces pass them over
//!   ([`crate::machine::is_stub`]).
//! * A caller counts the reduction of a call before it hands over to a function of which it knows no more than the position.
//! * A catch tag is the handler's index in its module ([`super::lower::Lowered::handlers`]); the module is that of the position
//!   under which the frame runs (the current position for the topmost frame, else the return address below).
//! * The bottom word of a stack is the position [`Fixed::NormalExit`].
//!
//! # Reductions
//!
//! `Regs::ctx.fcalls` counts down. A call that takes it to zero or below stores the callee's arguments and
//! position and stops with [`Stop::Preempted`].

use std::any::Any;

use beamr_abi::{NativeEntry, Regs};
use beamr_term::ExportId;

use crate::lower::Lowered;

/// A code position.
pub type CodePos = *const u64;

/// What the code of an engine gives back when it stops; anything above is the address of a native that wants a dirty thread.
pub mod stop {
    /// [`Stop::Preempted`](super::Stop::Preempted).
    pub const PREEMPTED: usize = 0;
    /// [`Stop::Waiting`](super::Stop::Waiting).
    pub const WAITING: usize = 1;
    /// [`Stop::Exited`](super::Stop::Exited).
    pub const EXITED: usize = 2;
}

/// Positions that exist once per engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fixed {
    /// Applies x0:x1 to the list x2 (tail call). Where a process starts.
    Apply,
    /// Ends the process normally. Bottom of every stack.
    NormalExit,
    /// Where traced calls return to ([`crate::trace::calls`]).
    TraceReturn,
}

/// Why an engine stopped running a process. The process is saved: `body.ip`, `body.args`, heap pointers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The slice is used up (or a native yielded); still runnable.
    Preempted,
    /// Waits for a message or timeout (a receive, `Pending::Wait`, hibernation).
    Waiting,
    /// Ended: exit reason and trace are with the process.
    Exited,
    /// Wants to run a dirty native: `body.args` are its arguments; its value becomes x0 at the return address
    /// on top of the stack, which the VM pops.
    Dirty(&'static NativeEntry),
}

/// Code of one module as an engine made it.
#[derive(Debug)]
pub struct Emitted {
    /// Range of positions, for look-up by position.
    pub start: usize,
    /// End of the range.
    pub end: usize,
    /// Position of every label (null where the label does not exist).
    pub labels: Vec<CodePos>,
    /// (position, location index): a position's location is that of the last entry that is not above it
    /// for a raise, or below it for a return address. Sorted.
    pub lines: Vec<(usize, u32)>,
    /// (position of the function's `func_info`, function index), sorted.
    pub functions: Vec<(usize, u32)>,
    /// Instructions that call natives, as far as the engine can reroute them; in a form of its own.
    pub native_calls: Vec<u32>,
    /// Keeps the code alive.
    pub memory: Box<dyn Any + Send + Sync>,
}

// SAFETY: positions are addresses into `memory`, which is immutable after emission (but for breakpoint slots, which are atomic).
unsafe impl Send for Emitted {}
// SAFETY: as above.
unsafe impl Sync for Emitted {}

/// Why a module could not be translated.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An op that this engine cannot translate.
    #[error("{engine}: op {op} in {function}: {what}")]
    Unsupported {
        /// Engine.
        engine: &'static str,
        /// Op (its `Debug` name).
        op: String,
        /// Where.
        function: String,
        /// Why.
        what: &'static str,
    },
    /// A limit of the code format.
    #[error("{engine}: {what} exceeds the engine's limit")]
    Limit {
        /// Engine.
        engine: &'static str,
        /// What.
        what: &'static str,
    },
}

/// An engine.
///
/// Before it calls a native of the embedding program ([`NativeEntry::host`]) it puts the entry into
/// [`Ctx::native`](beamr_abi::Ctx::native): all of these are one function.
pub trait Engine: Send + Sync {
    /// Its name (`interp`, `jit`).
    fn name(&self) -> &'static str;
    /// Translates a module.
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError>;
    /// The position of a stub that runs a native as a function (arguments in x0.., value in x0, returns). Stable per entry.
    fn native_stub(&self, native: &'static NativeEntry) -> CodePos;
    /// Breakpoints, if the engine has any.
    fn breakpoints(&self) -> Option<&dyn Breakpoints> {
        None
    }
    /// A fixed position.
    fn fixed(&self, which: Fixed) -> CodePos;
    /// Runs the process of `regs.ctx.body` from its saved state until it stops.
    ///
    /// # Safety
    /// `regs.ctx` is set up for a process that this thread owns and whose code is alive.
    unsafe fn run(&self, regs: &mut Regs) -> Stop;
}

/// How an engine stops at functions; [`crate::trace::breaks`] has the contract.
pub trait Breakpoints: Send + Sync {
    /// What stands in the entry word of a function that has a breakpoint.
    fn trap(&self) -> usize;
    /// A position that does what [`rt::detour`](crate::rt::detour) says for this export. It is good for the life of the OS process.
    fn detour(&self, export: ExportId, arity: u32) -> CodePos;
    /// Has instructions that call a native directly take the way of [`rt::rerouted`](crate::rt::rerouted), or takes that back. Other
    /// threads run the code meanwhile.
    fn reroute(&self, code: &Emitted, native: &'static NativeEntry, on: bool);
}
