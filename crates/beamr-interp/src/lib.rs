//! The portable engine: an interpreter whose handlers end in sibling calls.
//!
//! [`Interp`] translates lowered code to words (an instruction is the address of its handler and operands behind
//! it) and runs them. `emit` writes instructions, `ops` holds the handlers by topic, `machine` is what
//! they run on, `stubs` is code that exists once. It is also the oracle that other engines are tested against.
//!
//! The whole crate is `unsafe` by nature; the invariant is stated once, in `machine`.
#![allow(clippy::undocumented_unsafe_blocks)]

mod emit;
mod glue;
mod machine;
mod ops;
mod statics;
mod stubs;

use beamr_abi::{NativeEntry, Regs};
use beamr_vm::engine::{Breakpoints, CodePos, Emitted, Engine, EngineError, Fixed, Stop};
use beamr_vm::lower::Lowered;
use beamr_vm::rt;

use machine::{M, STOP_EXITED, STOP_PREEMPTED, STOP_WAITING};

/// The interpreter. It has no state: code belongs to images, registers to workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interp;

impl Interp {
    /// Whether handlers hand over by a loop instead of sibling calls (wasm32, opt-level 0, feature `loop`).
    pub const LOOPS: bool = cfg!(beamr_loop);
}

impl Engine for Interp {
    fn name(&self) -> &'static str {
        "interp"
    }
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError> {
        emit::emit(module)
    }
    fn native_stub(&self, native: &'static NativeEntry) -> CodePos {
        stubs::position(native)
    }
    fn breakpoints(&self) -> Option<&dyn Breakpoints> {
        Some(self)
    }
    fn fixed(&self, which: Fixed) -> CodePos {
        stubs::fixed(which)
    }
    unsafe fn run(&self, regs: &mut Regs) -> Stop {
        let body = regs.ctx.body;
        let mut ip = (*body).ip;
        match rt::poll_signals(regs) {
            Ok(()) => {
                let args = (*body).args.as_slice();
                regs.x[..args.len()].copy_from_slice(args);
            }
            Err(pos) if pos.is_null() => return Stop::Exited,
            Err(pos) => ip = pos,
        }
        self.run_from(regs, ip)
    }
}

impl Breakpoints for Interp {
    fn trap(&self) -> usize {
        ops::trace::entry_break as machine::Handler as usize
    }
    fn detour(&self, export: beamr_term::ExportId, arity: u32) -> CodePos {
        stubs::detour(export, arity)
    }
    fn reroute(&self, code: &Emitted, native: &'static NativeEntry, on: bool) {
        stubs::reroute(code, native, on);
    }
}

impl Interp {
    /// Runs from `ip` with the registers as they are: what [`Engine::run`] does after it restored the
    /// process. For tests and measurements of the engine alone.
    ///
    /// # Safety
    /// As for [`Engine::run`]; the live registers at `ip` are in `regs`.
    #[doc(hidden)]
    pub unsafe fn run_from(&self, regs: &mut Regs, ip: CodePos) -> Stop {
        let p = std::ptr::from_mut(regs);
        let body = (*p).ctx.body;
        let m = M {
            ip,
            e: (*body).heap.stop,
            htop: (*body).heap.top,
            p,
            fc: (*p).ctx.fcalls,
        };
        // A panic of a native or of a runtime helper ends the process that ran, not the VM. Handlers have no values with
        // destructors, so nothing of theirs is lost on the way here.
        let run = std::panic::AssertUnwindSafe(|| machine::execute(m));
        match std::panic::catch_unwind(run) {
            Ok(STOP_PREEMPTED) => Stop::Preempted,
            Ok(STOP_WAITING) => Stop::Waiting,
            Ok(STOP_EXITED) => Stop::Exited,
            Ok(native) => Stop::Dirty(&*(native as *const NativeEntry)),
            Err(_) => {
                rt::panicked(&mut (*p).ctx);
                Stop::Exited
            }
        }
    }
}
