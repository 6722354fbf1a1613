//! Calls of natives and what follows when one has no value: exceptions, traps, waits, yields.
//!
//! A native call is an instruction (body: returns behind itself; tail: returns to the caller) or a stub
//! that an export slot points to. Words: half 4 arity, 5 slots, 6 flags; word 2 the entry, word 3 its function.

use beamr_abi::{Escape, NativeEntry, Regs};
use beamr_term::Word;
use beamr_vm::rt;
pub(crate) use beamr_vm::rt::Step;

use crate::machine::{Ip, M, handlers, save_process};
use crate::ops::calls::Leave;

/// Flag of the instruction: look for signals after the call (the native may have sent one to its own process).
pub(crate) const POLL: u16 = 1;

type Func = fn(&mut beamr_abi::Ctx, &[Word]) -> Result<Word, Escape>;

#[inline(always)]
unsafe fn entry(m: &M) -> &'static NativeEntry {
    &*(m.word(2) as usize as *const NativeEntry)
}

#[inline(always)]
unsafe fn call(m: &M, arity: usize) -> Result<Word, Escape> {
    let func = std::mem::transmute::<usize, Func>(m.word(3) as usize);
    let args = std::slice::from_raw_parts(m.p.cast::<Word>(), arity);
    func(&mut (*m.p).ctx, args)
}

handlers! {
    fn call_native[L: Leave](m) {
        m.fc -= 1;
        if !L::BODY {
            L::leave(&mut m, 5, 0);
        }
        m.save();
        match call(&m, m.half(4)) {
            Ok(v) => {
                m.load();
                m.set_x(0, v.bits());
                if (*m.body()).heap.gc_wanted {
                    return m.slow(after_native::<L>);
                }
                if L::BODY {
                    m.next(4)
                } else {
                    m.ret()
                }
            }
            Err(_) => m.slow(escaped::<L>),
        }
    }
    /// For natives that may have signalled their own process.
    fn call_native_polled[L: Leave](m) {
        m.fc -= 1;
        if !L::BODY {
            L::leave(&mut m, 5, 0);
        }
        m.save();
        // Where the process is, for natives that tell.
        (*m.body()).ip = m.ip;
        match call(&m, m.half(4)) {
            Ok(v) => {
                m.load();
                m.set_x(0, v.bits());
                m.slow(after_native::<L>)
            }
            Err(_) => m.slow(escaped::<L>),
        }
    }
    /// For natives of the embedding program, which are told who they are.
    fn call_host[L: Leave](m) {
        m.fc -= 1;
        if !L::BODY {
            L::leave(&mut m, 5, 0);
        }
        m.save();
        (*m.body()).ip = m.ip;
        (*m.p).ctx.native = m.word(2) as usize as *const NativeEntry;
        match call(&m, m.half(4)) {
            Ok(v) => {
                m.load();
                m.set_x(0, v.bits());
                m.slow(after_native::<L>)
            }
            Err(_) => m.slow(escaped::<L>),
        }
    }
    fn call_dirty[L: Leave](m) {
        let ip = m.ip;
        m.fc -= 1;
        L::leave(&mut m, 5, 4);
        m.save();
        let arity = m.half(4);
        save_process(m.p, m.e, m.htop, ip, arity);
        m.stop(m.word(2) as usize)
    }
    /// The value is in x0: signals and collection, then on.
    #[inline(never)]
    fn after_native[L: Leave](m) {
        m.save();
        let poll = m.half(6) as u16 & POLL != 0;
        if let Err(pos) = rt::settle(m.regs(), poll) {
            return m.resume(pos);
        }
        m.load();
if (*m.body()).heap.outside {
            // A collection was put off: the caller sees it done.
            let to = if L::BODY { m.ip.add(4) } else { m.pop() };
            save_process(m.p, m.e, m.htop, to, 1);
            return m.stop(crate::machine::STOP_PREEMPTED);
        }
        if L::BODY {
            m.next(4)
        } else {
            m.ret()
        }
    }
    /// No value: the reason is pending. The machine's heap top is stale.
    #[cold]
    #[inline(never)]
    fn escaped[L: Leave](m) {
        let after = if L::BODY {
            m.ip.add(4)
        } else {
            std::ptr::null()
        };
        let step = rt::escape(m.regs(), m.ip, entry(&m), after);
        finish(m, step)
    }
    /// Collects if that is wanted (`fc` holds `next | live << 48`: where to go on), reductions are in the context.
    #[cold]
    #[inline(never)]
    fn collect_and_go(m) {
        let next = (m.fc & 0xFFFF_FFFF_FFFF) as usize as Ip;
        let live = ((m.fc >> 48) & 0xFFFF) as usize;
        let heap = &raw mut (*m.body()).heap;
        (*heap).top = m.htop;
        (*heap).stop = m.e;
        match rt::collect(m.regs(), 0, live) {
            Ok(()) => m.resume(next),
            Err(pos) => m.resume(pos),
        }
    }
}

impl M {
    /// Goes on behind this instruction; collects before if that is wanted, with `live` X registers.
    #[inline(always)]
    pub(crate) unsafe fn next_collected(self, words: usize, live: usize) -> crate::machine::Out {
        let next = self.ip.add(words);
        if !(*self.body()).heap.gc_wanted {
            return self.jump(next);
        }
        (*self.p).ctx.fcalls = self.fc;
        collect_and_go(
            self.ip,
            self.e,
            self.htop,
            self.p,
            next as usize as i64 | (live as i64) << 48,
        )
    }
}

impl M {
    /// Saves the registers, takes a step outside the engine and does what it says.
    #[inline(always)]
    pub(crate) unsafe fn step(self, step: unsafe fn(*mut Regs, Ip) -> Step) -> crate::machine::Out {
        self.save();
        let s = step(self.p, self.ip);
        finish(self, s)
    }
}

/// Does what a step says.
#[inline(always)]
pub(crate) unsafe fn finish(mut m: M, step: Step) -> crate::machine::Out {
    if step.pos.is_null() {
        return m.stop(step.code);
    }
    m.load();
    m.go(step.pos)
}
