//! Float registers.
//!
//! A result that is not finite is `badarith`, as in OTP. Float registers do not survive a
//! collection's move of anything, they hold plain numbers.

use beamr_term::{Header, Subtag};

use crate::glue;
use crate::machine::{Kind, Place, handlers};
use crate::ops::data::field_of;
use crate::ops::exceptions::badarith;

/// Header of a boxed float.
pub(crate) const FLOAT: u64 = Header::new(Subtag::Float, 1).0;

/// An operation as a type parameter.
pub(crate) trait FloatFn {
    /// Computes.
    fn apply(a: f64, b: f64) -> f64;
    /// Whether the value of two integers is a float.
    const OF_INTEGERS: bool = false;
}
pub(crate) struct FAdd;
pub(crate) struct FSub;
pub(crate) struct FMul;
pub(crate) struct FDiv;
impl FloatFn for FAdd {
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a + b
    }
}
impl FloatFn for FSub {
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a - b
    }
}
impl FloatFn for FMul {
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a * b
    }
}
impl FloatFn for FDiv {
    #[inline(always)]
    fn apply(a: f64, b: f64) -> f64 {
        a / b
    }
    const OF_INTEGERS: bool = true;
}

handlers! {
    /// Half 4 boxed float, 5 float register.
    fn load[S: Kind](m) {
        let w = S::get(&m, 4, 2);
        m.set_f(m.half(5), f64::from_bits(*field_of(w, 1)));
        m.next(2 + S::WORDS)
    }
    /// Word 2 the value's bits, half 5 float register.
    fn load_bits(m) {
        m.set_f(m.half(5), f64::from_bits(m.word(2)));
        m.next(3)
    }
    /// Any term, half 6 words: converted, or `badarith`.
    fn convert[S: Kind](m) {
        let w = S::get(&m, 4, 2);
        if w & 3 == 2 && *field_of(w, 0) == FLOAT {
            m.set_f(m.half(5), f64::from_bits(*field_of(w, 1)));
            return m.next(2 + S::WORDS);
        }
        if w & 0xF == 0xF {
            m.set_f(m.half(5), (w as i64 >> 4) as f64);
            return m.next(2 + S::WORDS);
        }
        m.slow(convert_slow)
    }
    #[cold]
    #[inline(never)]
    fn convert_slow(m) {
        match glue::to_float(&(*m.p).ctx, m.any_word(m.half(4))) {
            Some(f) => {
                m.set_f(m.half(5), f);
                m.next(m.half(6))
            }
            None => m.slow(badarith),
        }
    }
    /// A term that should be a float and is not proven to be: else `badarith`.
    fn load_checked(m) {
        let w = m.any_word(m.half(4));
        match w.as_float() {
            Some(f) => {
                m.set_f(m.half(5), f);
                m.next(m.half(6))
            }
            None => m.slow(badarith),
        }
    }
    /// Half 4 float register, 5 destination.
    fn store[D: Place](m) {
        let t = m.take(2);
        *t = FLOAT;
        *t.add(1) = m.f(m.half(4)).to_bits();
        D::set(&m, 5, t as u64 + 2);
        m.next(2)
    }
    /// Half 4 and 5 operands, 6 result.
    fn arith[O: FloatFn](m) {
        let v = O::apply(m.f(m.half(4)), m.f(m.half(5)));
        if !v.is_finite() {
            return m.slow(badarith);
        }
        m.set_f(m.half(6), v);
        m.next(2)
    }
    /// The same in a guard: pair 4 fail.
    fn arith_guard[O: FloatFn](m) {
        let v = O::apply(m.f(m.half(4)), m.f(m.half(5)));
        if !v.is_finite() {
            return m.branch(4);
        }
        m.set_f(m.half(6), v);
        m.next(3)
    }
    /// Half 4 operand, 6 result.
    fn negate(m) {
        let v = -m.f(m.half(4));
        m.set_f(m.half(6), v);
        m.next(2)
    }
}
