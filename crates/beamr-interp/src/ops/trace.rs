//! Breakpoints, detours and returns of traced calls; `beamr_vm::trace::breaks` has the contract.

use beamr_vm::rt;

use crate::machine::{Handler, handlers};
use crate::ops::calls::Leave;

handlers! {
    /// In the entry word of a function that has a breakpoint.
    #[cold]
    #[inline(never)]
    fn entry_break(m) {
        m.save();
        let original = rt::breakpoint(m.regs(), m.ip);
        if original == 0 {
            return m.stop(crate::machine::STOP_EXITED);
        }
        m.load();
        m.slow(std::mem::transmute::<usize, Handler>(original))
    }
    /// A detour: word 1 is the export id, with the arity in the high half.
    #[cold]
    #[inline(never)]
    fn detour(m) {
        m.save();
        let word = m.word(1);
        let t = rt::detour(m.regs(), m.ip, word as u32, (word >> 32) as usize);
        if t.pos.is_null() {
            return m.stop(crate::machine::STOP_EXITED);
        }
        m.load();
        m.go(t.pos)
    }
    /// In place of an instruction that calls a native with a breakpoint: its words are those of the call.
    #[cold]
    #[inline(never)]
    fn native_rerouted[L: Leave](m) {
        let ip = m.ip;
        m.fc -= 1;
        let mut tail = None;
        if L::BODY {
            L::leave(&mut m, 5, 4);
        } else {
            tail = Some(m.half(5));
        }
        m.save();
        let native = &*(m.word(2) as usize as *const beamr_abi::NativeEntry);
        let t = rt::rerouted(m.regs(), ip, native, tail);
        if t.pos.is_null() {
            return m.stop(crate::machine::STOP_EXITED);
        }
        m.load();
        m.go(t.pos)
    }
    /// The fixed position `TraceReturn`.
    #[cold]
    #[inline(never)]
    fn trace_return(m) {
        m.save();
        rt::trace_returned(m.regs());
        m.load();
        m.ret()
    }
}
