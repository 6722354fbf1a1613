//! Tests, comparisons, selections.

use beamr_term::Word;
use beamr_vm::lower::op::{Compare, Label, Op, Reg, Src, TypeTest};

use super::code::{Constants, Emitter, by_reg, by_slots, by_src};
use crate::machine::Handler;
use crate::ops::{data, tests};

macro_rules! by_test {
    ($t:expr, $T:ident => $e:expr) => {
        by_test!(@ $t, $T => $e; Integer IsInteger, Float IsFloat, Number IsNumber, Atom IsAtom, Pid IsPid,
            Reference IsReference, Port IsPort, Nil IsNil, Binary IsBinary, Bitstring IsBitstring, List IsList,
            NonemptyList IsNonemptyList, Tuple IsTuple, Boolean IsBoolean, Function IsFunction, Map IsMap,
            AnyNativeRecord IsAnyNativeRecord)
    };
    (@ $t:expr, $T:ident => $e:expr; $($v:ident $k:ident),*) => {
        match $t { $(TypeTest::$v => { type $T = tests::$k; $e })* }
    };
}

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::Test { test, src, fail } => {
            if let Some(n) = fused_test(e, ops, i, *test, *src, *fail) {
                return Some(n);
            }
            let mut c = Constants::from(2);
            let s = e.src(*src, &mut c);
            e.op(by_test!(*test, T => by_src!(*src, S => tests::test::<S, T>)));
            e.halves_label(s, 0, *fail);
            e.constants(c);
        }
        Op::TestArity {
            src,
            arity,
            fail,
            checked,
        } => {
            let mut c = Constants::from(2);
            let s = e.src(*src, &mut c);
            let n = e.narrow(*arity as usize);
            if let (Some(r), false) = (reg(*src), *checked) {
                e.op(by_reg!(r, S => tests::test_arity::<S>));
            } else {
                e.op(by_src!(*src, S => tests::is_tuple_of_arity::<S>));
            }
            e.halves_label(s, n, *fail);
            e.constants(c);
        }
        Op::IsTaggedTuple {
            src,
            arity,
            tag,
            fail,
        } => {
            let mut c = Constants::from(3);
            let s = e.src(*src, &mut c);
            let n = e.narrow(*arity as usize);
            e.op(by_src!(*src, S => tests::is_tagged_tuple::<S>));
            e.halves_label(s, n, *fail);
            e.word(tag.bits());
            e.constants(c);
        }
        Op::IsFunction2 { src, arity, fail } => {
            let mut c = Constants::from(3);
            let (s, a) = (e.src(*src, &mut c), e.src(*arity, &mut c));
            e.op(tests::is_function2);
            e.halves_label(s, a, *fail);
            e.word(0);
            e.constants(c);
            e.set_len(8);
        }
        Op::Compare { op, a, b, fail } => compare(e, *op, *a, *b, *fail),
        Op::SelectVal { src, fail, pairs } => {
            let Some(r) = reg(*src) else {
                select_constant(e, *src, *fail, pairs);
                return Some(1);
            };
            let values: Vec<(u64, Label)> = pairs.iter().map(|(w, l)| (w.bits(), *l)).collect();
            select(e, r, false, *fail, &values);
        }
        Op::SelectArity {
            src,
            fail,
            pairs,
            checked,
        } => {
            let r = reg(*src)?;
            if *checked {
                // What is no tuple has none of the sizes.
                let s = e.reg(r);
                e.op(by_reg!(r, S => tests::test::<S, tests::IsTuple>));
                e.halves_label(s, 0, *fail);
            }
            let values: Vec<(u64, Label)> = pairs
                .iter()
                .map(|(n, l)| (u64::from(*n) << 6, *l))
                .collect();
            select(e, r, true, *fail, &values);
        }
        Op::SelectTerm { src, fail, pairs } => {
            let n = pairs.len();
            let mut c = Constants::from(2 + 2 * n);
            let s = e.src(*src, &mut c);
            let len = e.narrow(n);
            e.op(tests::select_term);
            e.halves_label(s, len, *fail);
            for (w, l) in pairs {
                e.word(w.bits());
                e.wide_label(*l);
            }
            e.constants(c);
        }
        _ => return None,
    }
    Some(1)
}

fn reg(s: Src) -> Option<Reg> {
    match s {
        Src::X(n) => Some(Reg::X(n)),
        Src::Y(n) => Some(Reg::Y(n)),
        Src::Const(_) => None,
    }
}

/// A selection whose value is known.
fn select_constant(e: &mut Emitter<'_>, src: Src, fail: Label, pairs: &[(Word, Label)]) {
    let to = match src {
        Src::Const(w) => pairs
            .iter()
            .find(|(v, _)| *v == w)
            .map_or(fail, |(_, l)| *l),
        _ => fail,
    };
    e.op(data::jump);
    e.label_halves(to, 0, 0);
}

fn fused_test(
    e: &mut Emitter<'_>,
    ops: &[Op],
    i: usize,
    test: TypeTest,
    src: Src,
    fail: Label,
) -> Option<usize> {
    let r = reg(src)?;
    match (test, ops.get(i + 1)?) {
        (
            TypeTest::NonemptyList,
            Op::GetList {
                src: src2,
                head,
                tail,
                ..
            },
        ) if *src2 == r => {
            let (s, h, t) = (e.reg(r), e.reg(*head), e.reg(*tail));
            e.op(by_reg!(r, S => by_reg!(*head, H => by_reg!(*tail, T => tests::nonempty_get_list::<S, H, T>))));
            e.halves(s, h, t, 0);
            e.label_halves(fail, 0, 0);
            Some(2)
        }
        (TypeTest::NonemptyList, Op::Allocate { slots, heap, live }) => {
            let s = e.reg(r);
            let bytes = e.pair(data::bytes_for(*slots as usize + *heap as usize));
            e.op(by_reg!(r, S => by_slots!(*slots, N => tests::nonempty_allocate::<S, N>)));
            e.halves_label(s, 0, fail);
            e.halves_pair(*slots, *live, bytes);
            Some(2)
        }
        (
            TypeTest::Tuple,
            Op::TestArity {
                src: src2,
                arity,
                fail: fail2,
                ..
            },
        ) if *src2 == src && *fail2 == fail => {
            let s = e.reg(r);
            let n = e.narrow(*arity as usize);
            e.op(by_reg!(r, S => tests::is_tuple_of_arity::<S>));
            e.halves_label(s, n, fail);
            Some(2)
        }
        _ => None,
    }
}

fn compare(e: &mut Emitter<'_>, op: Compare, a: Src, b: Src, fail: Label) {
    // The constant second: equality is symmetric.
    let symmetric = !matches!(op, Compare::Lt | Compare::Ge);
    let (a, b) = if symmetric && matches!(a, Src::Const(_)) {
        (b, a)
    } else {
        (a, b)
    };
    if let (Some(r), Src::Const(w)) = (reg(a), b)
        && w.is_immediate()
        && matches!(op, Compare::EqExact | Compare::NeExact)
    {
        let s = e.reg(r);
        let h: Handler = if op == Compare::EqExact {
            if w.is_nil() {
                by_reg!(r, S => tests::test::<S, tests::IsNil>)
            } else {
                by_reg!(r, S => tests::eq_immediate::<S>)
            }
        } else {
            by_reg!(r, S => tests::ne_immediate::<S>)
        };
        e.op(h);
        e.halves_label(s, 0, fail);
        if op != Compare::EqExact || !w.is_nil() {
            e.word(w.bits());
        }
        return;
    }
    let mut c = Constants::from(2);
    let (x, y) = (e.src(a, &mut c), e.src(b, &mut c));
    macro_rules! pick {
        ($R:ident) => {
            by_src!(a, A => by_src!(b, B => tests::compare::<A, B, tests::$R>))
        };
    }
    let h: Handler = match op {
        Compare::Lt => pick!(Lt),
        Compare::Ge => pick!(Ge),
        Compare::Eq => pick!(Eq),
        Compare::Ne => pick!(Ne),
        Compare::EqExact => by_src!(a, A => by_src!(b, B => tests::eq_exact::<A, B>)),
        Compare::NeExact => by_src!(a, A => by_src!(b, B => tests::ne_exact::<A, B>)),
    };
    e.op(h);
    e.halves_label(x, y, fail);
    e.constants(c);
}

/// Picks how to find one of `pairs` (values are distinct; sorted here).
fn select(e: &mut Emitter<'_>, r: Reg, header: bool, fail: Label, pairs: &[(u64, Label)]) {
    macro_rules! pick {
        ($h:ident) => {
            match (r, header) {
                (Reg::X(_), false) => tests::$h::<crate::machine::X> as Handler,
                (Reg::Y(_), false) => tests::$h::<crate::machine::Y>,
                (Reg::X(_), true) => tests::$h::<tests::HeaderX>,
                (Reg::Y(_), true) => tests::$h::<tests::HeaderY>,
            }
        };
    }
    let s = e.reg(r);
    let mut pairs = pairs.to_vec();
    pairs.sort_unstable();
    pairs.dedup_by_key(|p| p.0);
    let n = pairs.len();
    if n == 0 {
        e.op(data::jump);
        e.label_halves(fail, 0, 0);
        return;
    }
    if n == 2 {
        e.op(pick!(select2));
        e.halves_label(s, 2, fail);
        e.word(pairs[0].0);
        e.word(pairs[1].0);
        e.labels(pairs.iter().map(|p| p.1));
        return;
    }
    if n <= 3 {
        e.op(pick!(select_linear));
        e.halves_label(s, n as u16, fail);
        for p in &pairs {
            e.word(p.0);
        }
        e.labels(pairs.iter().map(|p| p.1));
        return;
    }
    // A dense range of numbers of one tag?
    let low = pairs[0].0;
    let shift = if pairs.iter().all(|p| p.0 & 0xF == 0xF) {
        Some(4)
    } else if pairs.iter().all(|p| p.0 & 0x3F == low & 0x3F) {
        Some(6)
    } else {
        None
    };
    if let Some(shift) = shift {
        // Unsigned order puts negative numbers last: take the least signed value.
        let base = pairs.iter().map(|p| p.0 as i64).min().unwrap_or_default();
        let top = pairs.iter().map(|p| p.0 as i64).max().unwrap_or_default();
        let count = (top.wrapping_sub(base) as u64 >> shift).saturating_add(1);
        if count <= 4 * n as u64 + 8 && count <= 1 << 14 {
            let mut table = vec![fail; count as usize];
            for (v, l) in &pairs {
                table[(v.wrapping_sub(base as u64) >> shift) as usize] = *l;
            }
            e.op(pick!(select_table));
            e.halves_label(s, shift, fail);
            e.word(base as u64);
            e.pairs(count as u32, 0);
            e.labels(table);
            return;
        }
    }
    if let Some((factor, shift, size)) = perfect_hash(&pairs) {
        // An empty place holds a value that hashes elsewhere: the word 0 is no term, and no header of a tuple that is tested
        // here hashes to a place that holds another's value.
        let mut table: Vec<Option<(u64, Label)>> = vec![None; size];
        for p in &pairs {
            table[(p.0.wrapping_mul(factor) >> shift) as usize] = Some(*p);
        }
        e.op(pick!(select_hash));
        e.halves_label(s, shift as u16, fail);
        e.word(factor);
        for t in table {
            match t {
                Some((v, l)) => {
                    e.word(v);
                    e.wide_label(l);
                }
                None => {
                    e.word(1);
                    e.wide_label(fail);
                }
            }
        }
        return;
    }
    let len = e.narrow(n);
    e.op(pick!(select_binary));
    e.halves_label(s, len, fail);
    for p in &pairs {
        e.word(p.0);
    }
    e.labels(pairs.iter().map(|p| p.1));
}

/// A factor and shift that send all values to different places of a table of `size`.
fn perfect_hash(pairs: &[(u64, Label)]) -> Option<(u64, u32, usize)> {
    let n = pairs.len();
    if n > 256 {
        return None;
    }
    let first = n.next_power_of_two().trailing_zeros();
    let mut used = vec![0u32; 1 << (first + 2)];
    let mut round = 0u32;
    // An odd multiplier sequence (golden ratio steps); bounded tries per size.
    for bits in first..=first + 2 {
        let shift = 64 - bits;
        let mut factor = 0x9E37_79B9_7F4A_7C15u64;
        for _ in 0..400 {
            round += 1;
            let fits = pairs.iter().all(|p| {
                let u = &mut used[(p.0.wrapping_mul(factor) >> shift) as usize];
                std::mem::replace(u, round) != round
            });
            if fits {
                return Some((factor, shift, 1 << bits));
            }
            factor = factor
                .wrapping_mul(0xD134_2543_DE82_EF95)
                .wrapping_add(0x5851_F42D_4C95_7F2D)
                | 1;
        }
    }
    None
}
