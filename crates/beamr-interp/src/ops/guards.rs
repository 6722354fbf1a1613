//! Guard BIFs, natives in expressions: common ones have their own handler, all others call the native.
//!
//! Halves 4 to 6 operands, 7 destination; pair 4 fail, half 10 live (`NO_LIVE` when all registers are),
//! 11 words; word 3 the native; constants from word 4.

use beamr_abi::{NativeEntry, Pending, Regs};
use beamr_term::{Subtag, Word};
use beamr_vm::rt;

use crate::glue;
use crate::machine::{Ip, Kind, M, Place, handlers};
use crate::ops::arith::store;
use crate::ops::data::{field_of, head_of};
use crate::ops::natives::Step;
use crate::ops::tests::{Check, IsBitstring, IsMap, IsTuple, Relation, bit_size};

const TRUE: u64 = Word::TRUE.bits();
const FALSE: u64 = Word::FALSE.bits();

#[inline(always)]
fn boolean(b: bool) -> u64 {
    if b { TRUE } else { FALSE }
}
/// From OTP 26 on the compiler asks for the size of what is left of a match context.
#[inline(always)]
unsafe fn is_context(t: u64) -> bool {
    t & 3 == 2 && *field_of(t, 0) & 0x3C == (Subtag::Match as u64) << 2
}
#[inline(always)]
fn small(n: u64) -> u64 {
    n << 4 | 0xF
}

handlers! {
    /// Any native on any operands.
    #[inline(never)]
    fn native(m) {
        m.step(native_step)
    }
    fn hd[S: Kind, D: Place](m) {
        let l = S::get(&m, 4, 4);
        if l & 3 != 1 {
            return m.slow(native);
        }
        D::set(&m, 7, *head_of(l));
        m.next(4 + S::WORDS)
    }
    fn tl[S: Kind, D: Place](m) {
        let l = S::get(&m, 4, 4);
        if l & 3 != 1 {
            return m.slow(native);
        }
        D::set(&m, 7, *head_of(l).add(1));
        m.next(4 + S::WORDS)
    }
    fn element[I: Kind, S: Kind, D: Place](m) {
        let i = I::get(&m, 4, 4);
        let t = S::get(&m, 5, 4 + I::WORDS);
        if i & 0xF == 0xF && IsTuple::check(t) {
            let n = *field_of(t, 0) >> 6;
            // Zero and negative indexes are beyond any size as unsigned numbers less one.
            let i = (i >> 4).wrapping_sub(1);
            if i < n {
                D::set(&m, 7, *field_of(t, i as usize + 1));
                return m.next(4 + I::WORDS + S::WORDS);
            }
        }
        m.slow(native)
    }
    fn tuple_size[S: Kind, D: Place](m) {
        let t = S::get(&m, 4, 4);
        if !IsTuple::check(t) {
            return m.slow(native);
        }
        D::set(&m, 7, small(*field_of(t, 0) >> 6));
        m.next(4 + S::WORDS)
    }
    fn byte_size[S: Kind, D: Place](m) {
        let t = S::get(&m, 4, 4);
        if !IsBitstring::check(t) && !is_context(t) {
            return m.slow(native);
        }
        D::set(&m, 7, small(bit_size(t).div_ceil(8)));
        m.next(4 + S::WORDS)
    }
    fn bit_size_of[S: Kind, D: Place](m) {
        let t = S::get(&m, 4, 4);
        if !IsBitstring::check(t) && !is_context(t) {
            return m.slow(native);
        }
        D::set(&m, 7, small(bit_size(t)));
        m.next(4 + S::WORDS)
    }
    fn map_size[S: Kind, D: Place](m) {
        let t = S::get(&m, 4, 4);
        if !IsMap::check(t) {
            return m.slow(native);
        }
        let p = field_of(t, 0);
        let v = if *p & 0x3C == (Subtag::FlatMap as u64) << 2 {
            small((*p >> 6) - 1)
        } else {
            *p.add(1)
        };
        D::set(&m, 7, v);
        m.next(4 + S::WORDS)
    }
    /// Charges a reduction for a few hundred cells.
    fn length[S: Kind, D: Place](m) {
        let mut l = S::get(&m, 4, 4);
        let mut n = 0;
        while l & 3 == 1 {
            l = *head_of(l).add(1);
            n += 1;
        }
        if l != Word::NIL.bits() {
            return m.slow(native);
        }
        m.fc -= (n >> 9) as i64;
        D::set(&m, 7, small(n));
        m.next(4 + S::WORDS)
    }
    fn self_pid[D: Place](m) {
        D::set(&m, 7, (*m.body()).pid.bits());
        m.next(4)
    }
    fn map_get(m) {
        let (key, map) = (m.any(m.half(4)), m.any(m.half(5)));
        if IsMap::check(map) {
            let v = super::maps::lookup(m.p, map, key);
            if v != 0 {
                m.set_any(m.half(7), v);
                return m.next(m.half(11));
            }
        }
        m.slow(native)
    }
    fn is_map_key(m) {
        let (key, map) = (m.any(m.half(4)), m.any(m.half(5)));
        if IsMap::check(map) {
            m.set_any(m.half(7), boolean(super::maps::lookup(m.p, map, key) != 0));
            return m.next(m.half(11));
        }
        m.slow(native)
    }
    fn type_test[S: Kind, D: Place, T: Check](m) {
        D::set(&m, 7, boolean(T::check(S::get(&m, 4, 4))));
        m.next(4 + S::WORDS)
    }
    fn relation[R: Relation](m) {
        let (a, b) = (m.any(m.half(4)), m.any(m.half(5)));
        let holds = if a & b & 0xF == 0xF {
            R::small(a, b)
        } else {
            R::terms(m.p, a, b)
        };
        m.set_any(m.half(7), boolean(holds));
        m.next(m.half(11))
    }
    /// `=:=`, and `=/=` when `NEGATED`.
    fn exact[const NEGATED: bool](m) {
        let (a, b) = (m.any(m.half(4)), m.any(m.half(5)));
        let equal = a == b
            || (a & 3 != 3 && b & 3 != 3 && super::tests::EqExact::terms(m.p, a, b));
        m.set_any(m.half(7), boolean(equal != NEGATED));
        m.next(m.half(11))
    }
    fn not(m) {
        let a = m.any(m.half(4));
        if a != TRUE && a != FALSE {
            return m.slow(native);
        }
        m.set_any(m.half(7), boolean(a == FALSE));
        m.next(m.half(11))
    }
    fn and(m) {
        let (a, b) = (m.any(m.half(4)), m.any(m.half(5)));
        if (a != TRUE && a != FALSE) || (b != TRUE && b != FALSE) {
            return m.slow(native);
        }
        m.set_any(m.half(7), boolean(a == TRUE && b == TRUE));
        m.next(m.half(11))
    }
    fn or(m) {
        let (a, b) = (m.any(m.half(4)), m.any(m.half(5)));
        if (a != TRUE && a != FALSE) || (b != TRUE && b != FALSE) {
            return m.slow(native);
        }
        m.set_any(m.half(7), boolean(a == TRUE || b == TRUE));
        m.next(m.half(11))
    }
    /// `is_record(Term, Module, Name)` of a native record, `is_record(Term, Tag, Size)` of a tuple.
    fn is_record3(m) {
        let t = m.any_word(m.half(4));
        let (module, name) = (m.any_word(m.half(5)), m.any_word(m.half(6)));
        if !name.is_atom() || !module.is_atom() {
            return m.slow(native);
        }
        let is = t.subtag() == Some(Subtag::Record)
            && matches!(t.term_field(1).as_tuple(), Some([m, n, ..]) if *m == module && *n == name);
        m.set_any(m.half(7), boolean(is));
        m.next(m.half(11))
    }
    fn is_function2(m) {
        let (a, b) = (m.any_word(m.half(4)), m.any_word(m.half(5)));
        if b.as_small().is_none_or(|n| n < 0) {
            return m.slow(native);
        }
        m.set_any(m.half(7), boolean(glue::is_function_of(a, b)));
        m.next(m.half(11))
    }
    /// There is no such BIF in this release: pair 3 fail, else `undef`.
    fn undefined(m) {
        if m.int(3) != 0 {
            return m.branch(3);
        }
        m.save();
        let pos = super::exceptions::raise_reason(m.regs(), m.ip, beamr_term::atoms::UNDEF);
        m.resume(pos)
    }
}

#[inline(never)]
unsafe fn native_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let m = M::saved(p, ip);
    let entry: &'static NativeEntry = &*(m.word(3) as usize as *const NativeEntry);
    let all = [
        m.any_word(m.half(4)),
        m.any_word(m.half(5)),
        m.any_word(m.half(6)),
    ];
    let args = &all[..(entry.arity as usize).min(3)];
    match (entry.func)(&mut regs.ctx, args) {
        Ok(v) => store(regs, m, m.half(7), v, m.half(10), m.half(11)),
        Err(_) => {
            let pending = regs.ctx.take_pending();
            if m.int(4) != 0 {
                return Step::go(m.target(4));
            }
            let raise = match pending {
                Pending::Raise(r) => r,
                _ => {
                    let mut r = crate::machine::plain_error(beamr_term::atoms::BADARG.word());
                    r.own_frame = true;
                    r.info = beamr_abi::ErrorInfo::Default;
                    r
                }
            };
            Step::go(rt::raise(regs, m.ip, raise, Some(entry), Some(args)))
        }
    }
}
