//! Calls of natives and what follows when one has no value: exceptions, traps, waits, yields.
//!
//! A native call is an instruction (body: returns behind itself; tail: returns to the caller) or a stub
//! that an export slot points to. Words: half 4 arity, 5 slots, 6 flags; word 2 the entry, word 3 its function.

use beamr_abi::{Escape, NativeEntry, Pending, Regs, TrapTarget};
use beamr_term::Word;
use beamr_vm::engine::{CodePos, Fixed};
use beamr_vm::rt;

use crate::machine::{
    Ip, M, STOP_EXITED, STOP_PREEMPTED, STOP_WAITING, handlers, plain_error, save_process,
};
use crate::ops::calls::{Leave, Target, export_or_undefined, fun_target, is_callable, late_fun};
use crate::stubs;

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
                    let to = m.pop();
                    m.jump(to)
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
        let s = settle(m.regs(), poll);
        if !s.go_on {
            return m.resume(s.pos);
        }
        m.load();
        if L::BODY {
            m.next(4)
        } else {
            let to = m.pop();
            m.jump(to)
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
        let step = escape(m.regs(), m.ip, entry(&m), after);
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

/// What to do after a step outside the engine: go to `pos`, or stop with `code` when it is null.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pos: CodePos,
    code: usize,
}

impl Step {
    pub fn go(pos: CodePos) -> Step {
        Step {
            pos,
            code: STOP_EXITED,
        }
    }
    pub fn stop(code: usize) -> Step {
        Step {
            pos: std::ptr::null(),
            code,
        }
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
    m.jump(step.pos)
}

#[repr(C)]
struct Settled {
    go_on: bool,
    pos: CodePos,
}

/// Handles signals and collects, with x0 live.
#[inline(never)]
unsafe fn settle(regs: &mut Regs, poll: bool) -> Settled {
    let body = regs.ctx.body;
    if poll {
        // x0 must survive what the handlers allocate; they do not collect.
        if let Err(pos) = rt::poll_signals(regs) {
            return Settled { go_on: false, pos };
        }
    }
    if (*body).heap.gc_wanted
        && let Err(pos) = rt::collect(regs, 0, 1)
    {
        return Settled { go_on: false, pos };
    }
    Settled {
        go_on: true,
        pos: std::ptr::null(),
    }
}

unsafe fn push(regs: &mut Regs, ip: Ip) {
    let heap = &mut regs.ctx.heap().stop;
    *heap = heap.sub(1);
    **heap = ip as usize as u64;
}

/// Saves the process: it goes on at `pos` with `live` X registers.
unsafe fn suspend(regs: &mut Regs, pos: CodePos, live: usize) {
    let Regs { x, ctx, .. } = regs;
    let body = ctx.body();
    body.ip = pos;
    body.args.save(&x[..live]);
}

/// Handles a native that returned no value. `ip` is the calling instruction, `after` where its value goes (null when
/// the return address is on the stack already). Registers were saved before the native ran.
#[inline(never)]
pub(crate) unsafe fn escape(
    regs: &mut Regs,
    ip: CodePos,
    entry: &'static NativeEntry,
    after: Ip,
) -> Step {
    let arity = entry.arity as usize;
    let pending = regs.ctx.take_pending();
    if !after.is_null() && !matches!(pending, Pending::Raise(_) | Pending::None | Pending::Exit) {
        push(regs, after);
    }
    match pending {
        Pending::Raise(raise) => {
            let args = regs.x[..arity].to_vec();
            Step::go(rt::raise(regs, ip, raise, Some(entry), Some(&args)))
        }
        Pending::None => {
            let args = regs.x[..arity].to_vec();
            let mut raise = plain_error(beamr_term::atoms::BADARG.word());
            raise.own_frame = true;
            raise.info = beamr_abi::ErrorInfo::Default;
            Step::go(rt::raise(regs, ip, raise, Some(entry), Some(&args)))
        }
        Pending::Trap { target, args } => trap(regs, ip, after, target, &args, false),
        Pending::YieldTo { target, args } => trap(regs, ip, after, target, &args, true),
        Pending::Wait => {
            suspend(regs, stubs::position(entry), arity);
            Step::stop(STOP_WAITING)
        }
        Pending::Yield => {
            suspend(regs, stubs::position(entry), arity);
            regs.ctx.fcalls = 0;
            Step::stop(STOP_PREEMPTED)
        }
        Pending::Exit => Step::stop(STOP_EXITED),
        Pending::Hibernate { target, args } => {
            let body = regs.ctx.body();
            body.heap.stop = body.heap.end.sub(1);
            *body.heap.stop = stubs::fixed(Fixed::NormalExit) as usize as u64;
            body.catches = 0;
            let n = args.len();
            regs.x[..n].copy_from_slice(&args);
            if let Err(pos) = rt::collect(regs, 0, n) {
                return Step::go(pos);
            }
            let t = export_or_undefined(regs, ip, target, n);
            if t.pos.is_null() {
                return Step::stop(STOP_EXITED);
            }
            suspend(regs, t.pos, t.live);
            rt::hibernate(&mut regs.ctx);
            Step::stop(STOP_WAITING)
        }
    }
}

unsafe fn trap(
    regs: &mut Regs,
    ip: CodePos,
    after: Ip,
    target: TrapTarget,
    args: &[Word],
    give_up: bool,
) -> Step {
    let n = args.len();
    let mut fun = Word::NIL;
    regs.x[..n].copy_from_slice(args);
    if let TrapTarget::Fun(f) = target {
        fun = f;
        regs.x[n] = f;
    }
    if regs.ctx.heap().gc_wanted {
        let live = n + usize::from(!fun.is_nil());
        if let Err(pos) = rt::collect(regs, 0, live) {
            return Step::go(pos);
        }
        if !fun.is_nil() {
            fun = regs.x[n];
        }
    }
    let Target { pos, live } = match target {
        TrapTarget::Export(id) => export_or_undefined(regs, ip, id, n),
        TrapTarget::Native(entry) => Target {
            pos: stubs::position(entry),
            live: n,
        },
        TrapTarget::Fun(_) => {
            if is_callable(fun, n) {
                fun_target(regs, ip, fun, n)
            } else {
                // An exception is raised in the frame of the call: its return address is not on the stack.
                if !after.is_null() {
                    let heap = regs.ctx.heap();
                    heap.stop = heap.stop.add(1);
                }
                let t = late_fun(regs, ip, fun, n);
                if regs.x[0].is_none() || t.pos.is_null() {
                    return Step::go(t.pos);
                }
                if !after.is_null() {
                    push(regs, after);
                }
                t
            }
        }
    };
    if pos.is_null() {
        return Step::stop(STOP_EXITED);
    }
    regs.ctx.fcalls -= 1;
    if give_up {
        regs.ctx.fcalls = regs.ctx.fcalls.min(0);
    }
    if regs.ctx.fcalls <= 0 {
        suspend(regs, pos, live);
        return Step::stop(STOP_PREEMPTED);
    }
    Step::go(pos)
}
