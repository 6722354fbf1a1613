//! Arithmetic.
//!
//! Half 4 and 5 operands, 6 destination, 7 live; pair 4 fail, half 10 operation, 11 words; constants from
//! word 3. A small integer is its value shifted by four with all low bits set, so sums of words overflow exactly when
//! sums of values leave the small range.

use beamr_abi::Regs;
use beamr_term::Word;
use beamr_vm::rt;

use crate::glue::{self, Operation};
use crate::machine::{Ip, Kind, M, Place, handlers};
use crate::ops::data::{bytes_for, field_of};
use crate::ops::floats::{FAdd, FLOAT, FMul, FSub, FloatFn};
use crate::ops::natives::Step;

const TAG: u64 = 0xF;

#[inline(always)]
fn both_small(a: u64, b: u64) -> bool {
    a & b & TAG == TAG
}

/// A float or a small integer.
#[inline(always)]
unsafe fn is_plain(w: u64) -> bool {
    w & TAG == TAG || (w & 3 == 2 && *field_of(w, 0) == FLOAT)
}
#[inline(always)]
unsafe fn plain(w: u64) -> f64 {
    if w & TAG == TAG {
        (w as i64 >> 4) as f64
    } else {
        f64::from_bits(*field_of(w, 1))
    }
}

handlers! {
    fn add[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let (sum, over) = ((a ^ TAG) as i64).overflowing_add(b as i64);
        if both_small(a, b) && !over {
            D::set(&m, 6, sum as u64);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(float::<FAdd>)
    }
    fn sub[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let (difference, over) = (a as i64).overflowing_sub((b ^ TAG) as i64);
        if both_small(a, b) && !over {
            D::set(&m, 6, difference as u64);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(float::<FSub>)
    }
    /// A small constant, less its tag, in word 3 (negated to subtract); the operand for the slow path in word 4.
    fn add_const[A: Kind, D: Place, O: FloatFn](m) {
        let a = A::get(&m, 4, 0);
        let (sum, over) = (a as i64).overflowing_add(m.word(3) as i64);
        if a & TAG == TAG && !over {
            D::set(&m, 6, sum as u64);
            return m.next(5);
        }
        m.slow(float::<O>)
    }
    fn mul[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let (product, over) = ((a ^ TAG) as i64).overflowing_mul(b as i64 >> 4);
        if both_small(a, b) && !over {
            D::set(&m, 6, product as u64 | TAG);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(float::<FMul>)
    }
    fn int_div[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let (n, d) = (a as i64 >> 4, b as i64 >> 4);
        // The quotient leaves the small range only when the divisor is -1.
        if both_small(a, b) && d != 0 && d != -1 {
            D::set(&m, 6, ((n / d) << 4) as u64 | TAG);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    fn rem[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let (n, d) = (a as i64 >> 4, b as i64 >> 4);
        if both_small(a, b) && d != 0 && d != -1 {
            D::set(&m, 6, ((n % d) << 4) as u64 | TAG);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    fn band[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        if both_small(a, b) {
            D::set(&m, 6, a & b);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    fn bor[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        if both_small(a, b) {
            D::set(&m, 6, a | b);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    fn bxor[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        if both_small(a, b) {
            D::set(&m, 6, a ^ b | TAG);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    fn bsl[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let n = b >> 4;
        if both_small(a, b) && n < 60 {
            let v = (a ^ TAG) as i64;
            let r = v << n;
            if r >> n == v {
                D::set(&m, 6, r as u64 | TAG);
                return m.next(3 + A::WORDS + B::WORDS);
            }
        }
        m.slow(arith_slow)
    }
    fn bsr[A: Kind, B: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let b = B::get(&m, 5, 3 + A::WORDS);
        let n = b >> 4;
        if both_small(a, b) && n < 60 {
            D::set(&m, 6, (a as i64 >> n) as u64 | TAG);
            return m.next(3 + A::WORDS + B::WORDS);
        }
        m.slow(arith_slow)
    }
    /// `/`, and what is left of `+`, `-` and `*` when an operand is no small integer: floats, mixed with small integers.
    #[inline(never)]
    fn float[O: FloatFn](m) {
        let (a, b) = (m.any(m.half(4)), m.any(m.half(5)));
        if (both_small(a, b) && !O::OF_INTEGERS) || !is_plain(a) || !is_plain(b) {
            return m.slow(arith_slow);
        }
        let v = O::apply(plain(a), plain(b));
        if !v.is_finite() {
            return m.slow(arith_slow);
        }
        if m.free() < bytes_for(2) {
            // The sum goes to a fragment, and a collection follows.
            return m.slow(arith_slow);
        }
        let t = m.take(2);
        *t = FLOAT;
        *t.add(1) = v.to_bits();
        m.set_any(m.half(6), t as u64 + 2);
        m.next(m.half(11))
    }
    fn negate[A: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        let (v, over) = 0i64.overflowing_sub((a ^ TAG) as i64);
        if a & TAG == TAG && !over {
            D::set(&m, 6, v as u64 | TAG);
            return m.next(3 + A::WORDS);
        }
        m.slow(arith_slow)
    }
    /// Half 5 is not used.
    fn bnot[A: Kind, D: Place](m) {
        let a = A::get(&m, 4, 3);
        if a & TAG == TAG {
            D::set(&m, 6, !a | TAG);
            return m.next(3 + A::WORDS);
        }
        m.slow(arith_slow)
    }
    /// Any operation on any operands.
    #[inline(never)]
    fn arith_slow(m) {
        m.step(slow_step)
    }
}

/// Computes, stores the result, collects when the result opened a fragment.
#[inline(never)]
unsafe fn slow_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let m = M::saved(p, ip);
    let op = Operation::ALL[m.half(10)];
    let a = m.any_word(m.half(4));
    let b = if op.is_unary() {
        a
    } else {
        m.any_word(m.half(5))
    };
    match glue::arith(&mut regs.ctx, op, a, b) {
        Ok(v) => store(regs, m, m.half(6), v, m.half(7), m.half(11)),
        Err(reason) => {
            let fail = m.int(4);
            if fail != 0 {
                return Step::go(m.target(4));
            }
            let native = crate::statics::OPERATORS[op as usize];
            let mut raise = crate::machine::plain_error(reason);
            raise.own_frame = true;
            raise.info = beamr_abi::ErrorInfo::Default;
            let args = [a, b];
            let args = &args[..native.arity as usize];
            Step::go(rt::raise(regs, m.ip, raise, Some(native), Some(args)))
        }
    }
}

/// Puts `v` into register `dst` and goes on behind this instruction of `words` words. Collects first when that is
/// wanted: registers from `live` on are dead, so the first of them keeps `v` alive.
pub(crate) unsafe fn store(
    regs: &mut Regs,
    m: M,
    dst: usize,
    v: Word,
    live: usize,
    words: usize,
) -> Step {
    store_and_ensure(regs, m, dst, v, live, words, 0)
}

/// The same; afterwards `heap` words are free.
pub(crate) unsafe fn store_and_ensure(
    regs: &mut Regs,
    mut m: M,
    dst: usize,
    mut v: Word,
    live: usize,
    words: usize,
    heap: usize,
) -> Step {
    let h = regs.ctx.heap();
    let short = heap > 0 && h.free() < heap + beamr_abi::STACK_SLACK;
    if (h.gc_wanted || short) && live != NO_LIVE {
        regs.x[live] = v;
        if let Err(pos) = rt::collect(regs, heap, live + 1) {
            return Step::go(pos);
        }
        v = regs.x[live];
    }
    // The stack may have moved.
    m.load();
    m.set_any(dst, v.bits());
    Step::go(m.ip.add(words))
}

/// Collects unless `words` are free. Registers are saved; `m` is loaded again.
pub(crate) unsafe fn ensure(
    regs: &mut Regs,
    m: &mut M,
    words: usize,
    live: usize,
) -> Result<(), Step> {
    if live != NO_LIVE && regs.ctx.heap().free() < words + beamr_abi::STACK_SLACK {
        if let Err(pos) = rt::collect(regs, words, live) {
            return Err(Step::go(pos));
        }
        m.load();
    }
    Ok(())
}

/// "All registers are live": no collection.
pub(crate) const NO_LIVE: usize = 0xFFFF;
