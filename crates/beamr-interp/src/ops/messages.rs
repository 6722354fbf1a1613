//! Receiving.
//!
//! At the instructions of a receive loop no X register is live (the message becomes x0), so
//! a collection that adopted messages made due happens there.

use beamr_abi::Regs;
use beamr_term::atoms;
use beamr_vm::rt::{self, WaitOutcome};

use crate::machine::{Ip, M, STOP_WAITING, handlers, save_process};
use crate::ops::exceptions::raise_reason;
use crate::ops::natives::Step;

handlers! {
    /// Pair 2 where to go when the queue is empty.
    fn loop_rec(m) {
        m.step(loop_rec_step)
    }
    /// Pair 2 the start of the loop.
    fn loop_rec_end(m) {
        m.save();
        rt::loop_rec_end(&mut (*m.p).ctx);
        m.load();
        let to = m.target(2);
        m.enter(to, 0)
    }
    fn remove_message(m) {
        m.save();
        rt::remove_message(&mut (*m.p).ctx);
        m.load();
        m.next(1)
    }
    fn timeout(m) {
        m.save();
        rt::timeout(&mut (*m.p).ctx);
        m.load();
        m.next(1)
    }
    /// Pair 2 the start of the loop.
    fn wait(m) {
        let retry = m.target(2);
        save_process(m.p, m.e, m.htop, retry, 0);
        m.save();
        let outcome = rt::wait(&mut (*m.p).ctx);
        if outcome == WaitOutcome::Sleep {
            return m.stop(STOP_WAITING);
        }
        m.load();
        // A reduction: code that waits without looking at its messages would never end its slice.
        m.enter(retry, 0)
    }
    /// Pair 2 the start of the loop, half 6 timeout, 7 words.
    fn wait_timeout(m) {
        let retry = m.target(2);
        save_process(m.p, m.e, m.htop, retry, 0);
        m.save();
        let outcome = rt::wait_timeout(&mut (*m.p).ctx, m.any_word(m.half(6)));
        if outcome == WaitOutcome::Sleep {
            return m.stop(STOP_WAITING);
        }
        m.load();
        match outcome {
            WaitOutcome::TimedOut => m.next(m.half(7)),
            WaitOutcome::BadTimeout => m.slow(bad_timeout),
            _ => m.enter(retry, 0),
        }
    }
    #[cold]
    #[inline(never)]
    fn bad_timeout(m) {
        m.save();
        let pos = raise_reason(m.regs(), m.ip, atoms::TIMEOUT_VALUE);
        m.resume(pos)
    }
    /// Half 4 destination.
    fn marker_reserve(m) {
        m.save();
        let w = rt::marker_reserve(&mut (*m.p).ctx);
        m.load();
        m.set_any(m.half(4), w.bits());
        m.next(2)
    }
    /// Half 4 marker, 5 reference, 6 words.
    fn marker_bind(m) {
        m.save();
        rt::marker_bind(&mut (*m.p).ctx, m.any_word(m.half(4)), m.any_word(m.half(5)));
        m.load();
        m.next(m.half(6))
    }
    /// Half 4 reference, 6 words.
    fn marker_clear(m) {
        m.save();
        rt::marker_clear(&mut (*m.p).ctx, m.any_word(m.half(4)));
        m.load();
        m.next(m.half(6))
    }
    /// Half 4 reference, 6 words.
    fn marker_use(m) {
        m.save();
        rt::marker_use(&mut (*m.p).ctx, m.any_word(m.half(4)));
        m.load();
        m.next(m.half(6))
    }
}

#[inline(never)]
unsafe fn loop_rec_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let m = M::saved(p, ip);
    if regs.ctx.heap().gc_wanted
        && let Err(pos) = rt::collect(regs, 0, 0)
    {
        return Step::go(pos);
    }
    match rt::loop_rec(regs) {
        Ok(Some(message)) => {
            regs.x[0] = message;
            Step::go(m.ip.add(2))
        }
        Ok(None) => Step::go(m.target(2)),
        Err(pos) => Step::go(pos),
    }
}
