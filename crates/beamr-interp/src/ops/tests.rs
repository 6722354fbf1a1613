//! Type tests, comparisons, selections.
//!
//! A test falls through when it holds and goes to its fail label otherwise.

use beamr_term::{Subtag, Word};

use crate::glue;
use crate::machine::{Kind, Slots, handlers};
use crate::ops::data::field_of;

/// A type test as a type parameter.
pub(crate) trait Check {
    /// Whether the term has the type.
    unsafe fn check(w: u64) -> bool;
}

#[inline(always)]
fn is_boxed(w: u64) -> bool {
    w & 3 == 2
}
#[inline(always)]
unsafe fn header_bits(w: u64) -> u64 {
    *field_of(w, 0)
}
/// Whether a boxed term has one of the subtags in the mask.
#[inline(always)]
unsafe fn boxed_in(w: u64, mask: u16) -> bool {
    is_boxed(w) && mask >> ((header_bits(w) >> 2) & 0xF) & 1 == 1
}
const fn bit(s: Subtag) -> u16 {
    1 << s as u16
}
const BITS: u16 = bit(Subtag::HeapBits) | bit(Subtag::RefcBits) | bit(Subtag::SubBits);
const BIGS: u16 = bit(Subtag::PosBig) | bit(Subtag::NegBig);

macro_rules! checks {
    ($($name:ident($w:ident) = $e:expr;)*) => {$(
        pub(crate) struct $name;
        impl Check for $name {
            #[inline(always)]
            unsafe fn check($w: u64) -> bool { $e }
        }
    )*};
}

checks! {
    IsInteger(w) = w & 0xF == 0xF || boxed_in(w, BIGS);
    IsFloat(w) = boxed_in(w, bit(Subtag::Float));
    IsNumber(w) = w & 0xF == 0xF || boxed_in(w, BIGS | bit(Subtag::Float));
    IsAtom(w) = w & 0x3F == beamr_term::word::TAG_ATOM;
    IsPid(w) = Word::from_bits(w).is_pid();
    IsReference(w) = Word::from_bits(w).is_reference();
    IsPort(w) = Word::from_bits(w).is_port();
    IsNil(w) = w == Word::NIL.bits();
    IsBinary(w) = boxed_in(w, BITS) && bit_size(w) & 7 == 0;
    IsBitstring(w) = boxed_in(w, BITS);
    IsList(w) = w & 3 == 1 || w == Word::NIL.bits();
    IsNonemptyList(w) = w & 3 == 1;
    IsTuple(w) = is_boxed(w) && header_bits(w) & 0x3C == 0;
    IsBoolean(w) = Word::from_bits(w).is_boolean();
    IsFunction(w) = boxed_in(w, bit(Subtag::Fun) | bit(Subtag::Export));
    IsMap(w) = boxed_in(w, bit(Subtag::FlatMap) | bit(Subtag::HashMap));
    IsAnyNativeRecord(w) = boxed_in(w, bit(Subtag::Record));
}

/// Size in bits of a bitstring, or of what is left of a match context.
#[inline(always)]
pub(crate) unsafe fn bit_size(w: u64) -> u64 {
    let p = field_of(w, 0);
    if *p >> 2 & 0xF == Subtag::HeapBits as u64 {
        *p.add(1)
    } else if *p >> 2 & 0xF == Subtag::RefcBits as u64 {
        *p.add(4)
    } else if *p >> 2 & 0xF == Subtag::SubBits as u64 {
        *p.add(3) >> 4
    } else {
        (*p.add(3) - *p.add(2)) >> 4
    }
}

/// A comparison as a type parameter.
pub(crate) trait Relation {
    /// Of two small integers, by their words.
    fn small(a: u64, b: u64) -> bool;
    /// Of any terms.
    unsafe fn terms(p: *mut beamr_abi::Regs, a: u64, b: u64) -> bool;
}
macro_rules! relations {
    ($($name:ident: $a:ident, $b:ident, $small:expr, $float:expr, $which:expr, $x:ident $y:ident;)*) => {$(
        pub(crate) struct $name;
        impl Relation for $name {
            #[inline(always)]
            fn small($a: u64, $b: u64) -> bool { $small }
            #[inline(never)]
            unsafe fn terms(p: *mut beamr_abi::Regs, $a: u64, $b: u64) -> bool {
                if let (Some(x), Some(y)) = (float($a), float($b)) {
                    let holds: fn(f64, f64) -> bool = $float;
                    return holds(x, y);
                }
                glue::compare(&mut (*p).ctx, $which, Word::from_bits($x), Word::from_bits($y))
            }
        }
    )*};
}
use beamr_vm::lower::op::Compare;
relations! {
    Lt: a, b, (a as i64) < b as i64, |x, y| x < y, Compare::Lt, a b;
    Ge: a, b, a as i64 >= b as i64, |x, y| x >= y, Compare::Ge, a b;
    Gt: a, b, a as i64 > b as i64, |x, y| x > y, Compare::Lt, b a;
    Le: a, b, a as i64 <= b as i64, |x, y| x <= y, Compare::Ge, b a;
    Eq: a, b, a == b, |x, y| x == y, Compare::Eq, a b;
    Ne: a, b, a != b, |x, y| x != y, Compare::Ne, a b;
}

/// Exact equality of two terms that are no immediates. (Of floats it depends on the release: no short cut.)
pub(crate) struct EqExact;
impl EqExact {
    #[inline(never)]
    pub unsafe fn terms(p: *mut beamr_abi::Regs, a: u64, b: u64) -> bool {
        if let Some(equal) = quickly_equal(a, b) {
            return equal;
        }
        glue::compare(
            &mut (*p).ctx,
            Compare::EqExact,
            Word::from_bits(a),
            Word::from_bits(b),
        )
    }
}

/// Objects whose headers are the same when they are equal: not bitstrings, identifiers, maps.
const PLAIN: u16 =
    bit(Subtag::Tuple) | BIGS | bit(Subtag::Float) | bit(Subtag::Fun) | bit(Subtag::Export);
/// Elements that are looked at before the library takes over.
const QUICK: usize = 8;

/// Exact equality of two terms that are no immediates, when a look at their first elements decides.
#[inline(always)]
unsafe fn quickly_equal(a: u64, b: u64) -> Option<bool> {
    if (a ^ b) & 3 != 0 {
        return Some(false);
    }
    if is_boxed(a) {
        let (x, y) = (field_of(a, 0), field_of(b, 0));
        let (h, g) = (*x, *y);
        if h != g {
            let plain = |h: u64| PLAIN >> (h >> 2 & 0xF) & 1 == 1;
            return (plain(h) || plain(g)).then_some(false);
        }
        let n = (h >> 6) as usize;
        if h & 0x3C != 0 || n > QUICK {
            return None;
        }
        let mut deep = false;
        for i in 1..=n {
            let (v, w) = (*x.add(i), *y.add(i));
            if v != w {
                if v & 3 == 3 || w & 3 == 3 {
                    return Some(false);
                }
                deep = true;
            }
        }
        return if deep { None } else { Some(true) };
    }
    let (mut a, mut b) = (a, b);
    for _ in 0..QUICK {
        let (x, y) = (crate::ops::data::head_of(a), crate::ops::data::head_of(b));
        let (v, w) = (*x, *y);
        if v != w {
            return (v & 3 == 3 || w & 3 == 3).then_some(false);
        }
        (a, b) = (*x.add(1), *y.add(1));
        if a == b {
            return Some(true);
        }
        if a & 3 != 1 || b & 3 != 1 {
            return (a & 3 == 3 || b & 3 == 3).then_some(false);
        }
    }
    None
}

/// The value of a boxed float.
#[inline(always)]
unsafe fn float(w: u64) -> Option<f64> {
    (w & 3 == 2 && *field_of(w, 0) == crate::ops::floats::FLOAT)
        .then(|| f64::from_bits(*field_of(w, 1)))
}

handlers! {
    // ---- types: half 4 term, pair 3 fail; constant in word 2.
    fn test[S: Kind, T: Check](m) {
        let w = S::get(&m, 4, 2);
        if T::check(w) {
            return m.next(2 + S::WORDS);
        }
        m.branch(3)
    }
    /// A list cell that is taken apart: half 4 list, 5 head, 6 tail, pair 4 fail.
    fn nonempty_get_list[S: Kind, H: crate::machine::Place, T: crate::machine::Place](m) {
        let l = S::get(&m, 4, 0);
        if l & 3 != 1 {
            return m.branch(4);
        }
        let l = crate::ops::data::head_of(l);
        let (h, t) = (*l, *l.add(1));
        H::set(&m, 5, h);
        T::set(&m, 6, t);
        m.next(3)
    }
    /// Half 4 term, pair 3 fail; half 8 slots, 9 live, pair 5 bytes: a list cell, then a frame.
    fn nonempty_allocate[S: Kind, N: Slots](m) {
        let l = S::get(&m, 4, 0);
        if l & 3 != 1 {
            return m.branch(3);
        }
        let bytes = m.uint(5);
        if m.free() < bytes {
            return m.collect(bytes, m.half(9));
        }
        m.e = m.e.sub(N::get(&m, 8));
        m.next(3)
    }
    /// Half 4 tuple, 5 arity, pair 3 fail.
    fn test_arity[S: Kind](m) {
        let w = S::get(&m, 4, 0);
        if header_bits(w) == (m.half(5) as u64) << 6 {
            return m.next(2);
        }
        m.branch(3)
    }
    /// The same on any term.
    fn is_tuple_of_arity[S: Kind](m) {
        let w = S::get(&m, 4, 2);
        if is_boxed(w) && header_bits(w) == (m.half(5) as u64) << 6 {
            return m.next(2 + S::WORDS);
        }
        m.branch(3)
    }
    /// The same with a first element (word 2).
    fn is_tagged_tuple[S: Kind](m) {
        let w = S::get(&m, 4, 3);
        if is_boxed(w) && header_bits(w) == (m.half(5) as u64) << 6 && *field_of(w, 1) == m.word(2) {
            return m.next(3 + S::WORDS);
        }
        m.branch(3)
    }
    /// Half 4 term, 5 arity, pair 3 fail, half 8 words.
    fn is_function2(m) {
        let fun = m.any_word(m.half(4));
        let arity = m.any_word(m.half(5));
        if glue::is_function_of(fun, arity) {
            return m.next(m.half(8));
        }
        m.branch(3)
    }

    // ---- comparisons: half 4 and 5 terms, pair 3 fail; constants from word 2.
    fn compare[A: Kind, B: Kind, R: Relation](m) {
        let a = A::get(&m, 4, 2);
        let b = B::get(&m, 5, 2 + A::WORDS);
        let holds = if a & b & 0xF == 0xF {
            R::small(a, b)
        } else {
            R::terms(m.p, a, b)
        };
        if holds {
            return m.next(2 + A::WORDS + B::WORDS);
        }
        m.branch(3)
    }
    /// Exact equality: words that are equal, or not immediate both.
    fn eq_exact[A: Kind, B: Kind](m) {
        let a = A::get(&m, 4, 2);
        let b = B::get(&m, 5, 2 + A::WORDS);
        if a == b {
            return m.next(2 + A::WORDS + B::WORDS);
        }
        if a & 3 == 3 || b & 3 == 3 || !EqExact::terms(m.p, a, b) {
            return m.branch(3);
        }
        m.next(2 + A::WORDS + B::WORDS)
    }
    fn ne_exact[A: Kind, B: Kind](m) {
        let a = A::get(&m, 4, 2);
        let b = B::get(&m, 5, 2 + A::WORDS);
        if a == b {
            return m.branch(3);
        }
        if a & 3 == 3 || b & 3 == 3 || !EqExact::terms(m.p, a, b) {
            return m.next(2 + A::WORDS + B::WORDS);
        }
        m.branch(3)
    }
    /// With an immediate (word 2): the words decide. Half 4 term, pair 3 fail.
    fn eq_immediate[S: Kind](m) {
        if S::get(&m, 4, 0) == m.word(2) {
            return m.next(3);
        }
        m.branch(3)
    }
    fn ne_immediate[S: Kind](m) {
        if S::get(&m, 4, 0) != m.word(2) {
            return m.next(3);
        }
        m.branch(3)
    }

    // ---- selections: half 4 term, 5 number, pair 3 default, then by kind. `S` may read the header of a tuple.
    /// Words 2..2+n: values; then distances, two to a word.
    fn select_linear[S: Kind](m) {
        let v = S::get(&m, 4, 0);
        let n = m.half(5);
        for i in 0..n {
            if m.word(2 + i) == v {
                return m.branch(4 + 2 * n + i);
            }
        }
        m.branch(3)
    }
    /// Two values (words 2 and 3).
    fn select2[S: Kind](m) {
        let v = S::get(&m, 4, 0);
        if m.word(2) == v {
            return m.branch(8);
        }
        if m.word(3) == v {
            return m.branch(9);
        }
        m.branch(3)
    }
    /// The same, sorted (as unsigned words): halves until one is left.
    fn select_binary[S: Kind](m) {
        let v = S::get(&m, 4, 0);
        let n = m.half(5);
        let values = m.ip.add(2);
        let (mut base, mut len) = (0, n);
        while len > 1 {
            let half = len / 2;
            if *values.add(base + half) <= v {
                base += half;
            }
            len -= half;
        }
        if *values.add(base) == v {
            return m.branch(4 + 2 * n + base);
        }
        m.branch(3)
    }
    /// A dense range: word 2 the first value, half 5 how far the number is shifted, pair 6 how many; distances from pair 8.
    fn select_table[S: Kind](m) {
        let v = S::get(&m, 4, 0).wrapping_sub(m.word(2)).rotate_right(m.half(5) as u32);
        if v < m.uint(6) as u64 {
            return m.branch(8 + v as usize);
        }
        m.branch(3)
    }
    /// A perfect hash: word 2 the factor, half 5 the shift; from word 3 the values (an impossible one in empty places),
    /// then distances; pair index of the first distance in pair 3 of the default... see `emit::select`.
    fn select_hash[S: Kind](m) {
        let v = S::get(&m, 4, 0);
        let i = (v.wrapping_mul(m.word(2)) >> (m.half(5) & 63)) as usize;
        let slot = m.ip.add(3 + 2 * i);
        if *slot == v {
            let to = m.ip.byte_offset(*slot.add(1) as i64 as isize);
            return m.jump(to);
        }
        m.branch(3)
    }
    /// Any terms: half 4 term, 5 number, pair 3 default; then (value, distance) words.
    fn select_term(m) {
        let v = m.any(m.half(4));
        for i in 0..m.half(5) {
            let w = m.word(2 + 2 * i);
            if w == v || (w & 3 == 2 && v & 3 == 2 && EqExact::terms(m.p, v, w)) {
                let to = m.ip.byte_offset(m.word(3 + 2 * i) as i64 as isize);
                return m.jump(to);
            }
        }
        m.branch(3)
    }
}

/// The header of the tuple in an X register.
pub(crate) struct HeaderX;
/// The header of the tuple in a Y register.
pub(crate) struct HeaderY;
impl Kind for HeaderX {
    const WORDS: usize = 0;
    #[inline(always)]
    unsafe fn get(m: &crate::machine::M, half: usize, at: usize) -> u64 {
        header_bits(crate::machine::X::get(m, half, at))
    }
}
impl Kind for HeaderY {
    const WORDS: usize = 0;
    #[inline(always)]
    unsafe fn get(m: &crate::machine::M, half: usize, at: usize) -> u64 {
        header_bits(crate::machine::Y::get(m, half, at))
    }
}
