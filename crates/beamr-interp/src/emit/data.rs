//! Moves, lists, tuples, frames, and what follows moves: calls and returns.

use beamr_vm::lower::op::{CallKind, Op, Reg, Src, UpdateHint};

use super::code::{Constants, Emitter, by_kind, by_reg, by_slots, by_src};
use crate::machine::Handler;
use crate::ops::{calls, data};

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::Move { .. } => return Some(moves(e, ops, i)),
        Op::Swap { a, b } => {
            let (x, y) = (e.reg(*a), e.reg(*b));
            e.op(by_reg!(*a, A => by_reg!(*b, B => data::swap::<A, B>)));
            e.halves(x, y, 0, 0);
        }
        Op::GetHd { src, dst, checked } => {
            let (s, d) = (e.reg(*src), e.reg(*dst));
            if *checked {
                e.op(data::get_list_checked);
                e.halves(s, d, 0, 1);
            } else {
                e.op(by_reg!(*src, S => by_reg!(*dst, D => data::get_hd::<S, D>)));
                e.halves(s, d, 0, 0);
            }
        }
        Op::GetTl { src, dst, checked } => {
            let (s, d) = (e.reg(*src), e.reg(*dst));
            if *checked {
                e.op(data::get_list_checked);
                e.halves(s, 0, d, 2);
            } else {
                e.op(by_reg!(*src, S => by_reg!(*dst, D => data::get_tl::<S, D>)));
                e.halves(s, d, 0, 0);
            }
        }
        Op::GetList {
            src,
            head,
            tail,
            checked,
        } => {
            let (s, h, t) = (e.reg(*src), e.reg(*head), e.reg(*tail));
            if *checked {
                e.op(data::get_list_checked);
                e.halves(s, h, t, 3);
            } else {
                e.op(by_reg!(*src, S => by_reg!(*head, H => by_reg!(*tail, T => data::get_list::<S, H, T>))));
                e.halves(s, h, t, 0);
            }
        }
        Op::PutList { head, tail, dst } => {
            put_list(e, *head, *tail, *dst, None);
        }
        Op::GetTupleElement {
            src,
            index,
            dst,
            checked,
        } => {
            let s = e.reg(*src);
            let d = e.reg(*dst);
            if *checked {
                e.op(data::get_tuple_element_checked);
                e.halves_pair(s, d, index + 1);
                return Some(1);
            }
            if let Some(Op::GetTupleElement {
                src: src2,
                index: index2,
                dst: dst2,
                checked: false,
            }) = ops.get(i + 1)
                && src2 == src
                && *index2 == index + 1
                && dst != src
            {
                let d2 = e.reg(*dst2);
                let at = e.narrow(*index as usize + 1);
                e.op(by_reg!(*src, S => by_reg!(*dst, D => by_reg!(*dst2, E => data::get_two_elements::<S, D, E>))));
                e.halves(s, d, d2, at);
                return Some(2);
            }
            let at = e.narrow(*index as usize + 1);
            e.op(by_reg!(*src, S => by_reg!(*dst, D => data::get_tuple_element::<S, D>)));
            e.halves(s, d, at, 0);
        }
        Op::PutTuple { elements, dst } => put_tuple(e, elements, *dst, None),
        Op::SetTupleElement {
            value,
            tuple,
            index,
            checked,
        } => {
            let mut c = Constants::from(3);
            let (v, t) = (e.src(*value, &mut c), e.reg(*tuple));
            e.op(data::set_tuple_element);
            e.halves(v, t, 0, u16::from(*checked));
            e.pairs(index + 1, 0);
            e.constants(c);
            e.set_len(6);
        }
        Op::UpdateRecord {
            hint,
            size,
            src,
            dst,
            updates,
            checked,
        } => {
            let n = updates.len();
            let mut c = Constants::from(3 + (2 * n).div_ceil(4));
            let s = e.src(*src, &mut c);
            let d = e.reg(*dst);
            let mut halves = Vec::with_capacity(2 * n);
            for (index, value) in updates {
                halves.push(e.narrow(*index as usize + 1));
                halves.push(e.src(*value, &mut c));
            }
            let hint = match hint {
                UpdateHint::Copy => 0,
                UpdateHint::Reuse => 2,
                UpdateHint::InPlace if *checked => 0,
                UpdateHint::InPlace => 4,
            };
            let n = e.narrow(n);
            e.op(data::update_record);
            e.halves(s, d, 0, n);
            e.word(u64::from(*size) | u64::from(u16::from(*checked) | hint) << 32);
            e.half_list(&halves);
            e.constants(c);
            e.set_len(6);
        }
        Op::MakeFun { lambda, dst, env } => {
            let mut c = Constants::from(3 + env.len().div_ceil(4));
            let d = e.reg(*dst);
            let halves: Vec<u16> = env.iter().map(|s| e.src(*s, &mut c)).collect();
            let n = e.narrow(env.len());
            e.op(data::make_fun);
            e.halves(d, n, 0, 0);
            e.pairs(e.module.image_id, *lambda);
            e.half_list(&halves);
            e.constants(c);
            e.set_len(6);
        }
        Op::Allocate { slots, heap, live } => {
            return Some(allocate(e, ops, i, *slots, *heap, *live));
        }
        Op::Deallocate { slots } => {
            if let Some(Op::Return) = ops.get(i + 1) {
                e.op(by_slots!(*slots, N => calls::deallocate_return::<N>));
                e.halves(*slots, 0, 0, 0);
                return Some(2);
            }
            e.op(by_slots!(*slots, N => data::deallocate::<N>));
            e.halves(*slots, 0, 0, 0);
        }
        Op::Trim { words, .. } => {
            e.op(by_slots!(*words, N => data::deallocate::<N>));
            e.halves(*words, 0, 0, 0);
        }
        Op::TestHeap { words, live } => {
            let bytes = data::bytes_for(*words as usize);
            match ops.get(i + 1) {
                Some(Op::PutList { head, tail, dst }) => {
                    put_list(e, *head, *tail, *dst, Some((bytes, *live)));
                    return Some(2);
                }
                Some(Op::PutTuple { elements, dst }) => {
                    put_tuple(e, elements, *dst, Some((bytes, *live)));
                    return Some(2);
                }
                _ => {}
            }
            let bytes = e.pair(bytes);
            e.op(data::test_heap);
            e.word(u64::from(bytes) | u64::from(*live) << 32);
        }
        Op::InitY(slots) => {
            init(e, slots);
        }
        Op::Jump(l) => {
            e.op(data::jump);
            e.label_halves(*l, 0, 0);
        }
        _ => return None,
    }
    Some(1)
}

fn init(e: &mut Emitter<'_>, slots: &[u16]) {
    if slots.windows(2).all(|w| w[1] == w[0] + 1) {
        let Some(first) = slots.first() else { return };
        let n = e.narrow(slots.len());
        e.op(data::init_range);
        e.halves(*first, n, 0, 0);
        return;
    }
    let n = e.narrow(slots.len());
    let mut halves = vec![n, 0];
    halves.extend_from_slice(slots);
    e.op(data::init_list);
    e.half_list(&halves);
    e.set_len(5);
}

fn put_list(e: &mut Emitter<'_>, head: Src, tail: Src, dst: Reg, heap: Option<(usize, u16)>) {
    let mut c = Constants::from(if heap.is_some() { 3 } else { 2 });
    let (h, t, d) = (e.src(head, &mut c), e.src(tail, &mut c), e.reg(dst));
    match heap {
        None => {
            e.op(by_src!(head, H => by_src!(tail, T => by_reg!(dst, D => data::put_list::<H, T, D>))));
            e.halves(h, t, d, 0);
        }
        Some((bytes, live)) => {
            let bytes = e.pair(bytes);
            e.op(by_src!(head, H => by_src!(tail, T => by_reg!(dst, D => data::test_heap_put_list::<H, T, D>))));
            e.halves(h, t, d, live);
            e.pairs(bytes, 0);
        }
    }
    e.constants(c);
}

fn put_tuple(e: &mut Emitter<'_>, elements: &[Src], dst: Reg, heap: Option<(usize, u16)>) {
    let n = elements.len();
    let fixed = if heap.is_some() { 3 } else { 2 };
    let mut c = Constants::from(fixed + n.div_ceil(4));
    let halves: Vec<u16> = elements.iter().map(|s| e.src(*s, &mut c)).collect();
    let d = e.reg(dst);
    let size = e.narrow(n);
    match heap {
        None => {
            let h: Handler = match n {
                1 => data::put_tuple_n::<1>,
                2 => data::put_tuple_n::<2>,
                3 => data::put_tuple_n::<3>,
                4 => data::put_tuple_n::<4>,
                _ => data::put_tuple,
            };
            e.op(h);
            e.halves(d, size, 0, 0);
        }
        Some((bytes, live)) => {
            let bytes = e.pair(bytes);
            let h: Handler = match n {
                1 => data::test_heap_put_tuple_n::<1>,
                2 => data::test_heap_put_tuple_n::<2>,
                3 => data::test_heap_put_tuple_n::<3>,
                4 => data::test_heap_put_tuple_n::<4>,
                _ => data::test_heap_put_tuple,
            };
            e.op(h);
            e.halves(d, size, 0, live);
            e.pairs(bytes, 0);
        }
    }
    e.half_list(&halves);
    e.constants(c);
    e.set_len(6);
}

fn allocate(e: &mut Emitter<'_>, ops: &[Op], i: usize, slots: u16, heap: u32, live: u16) -> usize {
    let bytes = e.pair(data::bytes_for(slots as usize + heap as usize));
    match (ops.get(i + 1), ops.get(i + 2)) {
        (Some(Op::InitY(y)), _)
            if y.first() == Some(&0) && y.windows(2).all(|w| w[1] == w[0] + 1) =>
        {
            let n = e.narrow(y.len());
            e.op(by_slots!(slots, N => data::allocate_init::<N>));
            e.halves_pair(slots, live, bytes);
            e.halves(n, 0, 0, 0);
            2
        }
        (
            Some(Op::Move {
                src: Src::X(a),
                dst: Reg::Y(b),
            }),
            Some(Op::Move {
                src: Src::X(c),
                dst: Reg::Y(d),
            }),
        ) => {
            let v = [
                e.reg(Reg::X(*a)),
                e.reg(Reg::Y(*b)),
                e.reg(Reg::X(*c)),
                e.reg(Reg::Y(*d)),
            ];
            e.op(by_slots!(slots, N => data::allocate_move2::<crate::machine::X, crate::machine::Y, N>));
            e.halves_pair(slots, live, bytes);
            e.half_list(&v);
            3
        }
        (
            Some(Op::Move {
                src: Src::X(a),
                dst: Reg::Y(b),
            }),
            _,
        ) => {
            let v = [e.reg(Reg::X(*a)), e.reg(Reg::Y(*b))];
            e.op(by_slots!(slots, N => data::allocate_move::<crate::machine::X, crate::machine::Y, N>));
            e.halves_pair(slots, live, bytes);
            e.half_list(&v);
            2
        }
        _ => {
            e.op(by_slots!(slots, N => data::allocate::<N>));
            e.halves_pair(slots, live, bytes);
            1
        }
    }
}

fn as_reg(s: Src) -> Option<Reg> {
    match s {
        Src::X(n) => Some(Reg::X(n)),
        Src::Y(n) => Some(Reg::Y(n)),
        Src::Const(_) => None,
    }
}

/// A run of moves and what it prepares.
fn moves(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> usize {
    let mut run: Vec<(Src, Reg)> = Vec::new();
    let mut next = i;
    while let Some(Op::Move { src, dst }) = ops.get(next) {
        run.push((*src, *dst));
        next += 1;
    }
    // What follows, across a source line.
    let mut follow = next;
    let mut line = None;
    if let Some(Op::Line(l)) = ops.get(follow) {
        line = Some(*l);
        follow += 1;
    }
    match (ops.get(follow), ops.get(follow + 1)) {
        (
            Some(Op::Call {
                target,
                arity,
                kind,
            }),
            _,
        ) => {
            let n = run.len();
            let slots = match kind {
                CallKind::Last(n) => *n,
                _ => 0,
            };
            if n >= 2
                && let (Some(s1), Some(s2)) = (as_reg(run[n - 2].0), as_reg(run[n - 1].0))
                && matches!((run[n - 2].1, run[n - 1].1), (Reg::X(_), Reg::X(_)))
            {
                plain(e, &run[..n - 2]);
                if let Some(l) = line {
                    e.line(l);
                }
                let v = [
                    e.reg(s1),
                    e.reg(run[n - 2].1),
                    e.reg(s2),
                    e.reg(run[n - 1].1),
                ];
                e.op(by_kind!(*kind, L => by_reg!(s1, S => by_reg!(s2, T =>
                    calls::move2_call::<S, crate::machine::X, T, crate::machine::X, L>))));
                e.address(*target);
                e.halves(*arity, slots, v[0], v[1]);
                e.halves(v[2], v[3], 0, 0);
                return follow + 1 - i;
            }
            let (src, dst) = run[n - 1];
            plain(e, &run[..n - 1]);
            if let Some(l) = line {
                e.line(l);
            }
            let mut c = Constants::from(3);
            let (s, d) = (e.src(src, &mut c), e.reg(dst));
            let h: Handler = if dst == Reg::X(0) {
                by_kind!(*kind, L => by_src!(src, S => calls::move_call::<S, crate::machine::X0, L>))
            } else {
                by_kind!(*kind, L => by_src!(src, S => by_reg!(dst, D => calls::move_call::<S, D, L>)))
            };
            e.op(h);
            e.address(*target);
            e.halves(*arity, slots, s, d);
            e.constants(c);
            follow + 1 - i
        }
        (Some(Op::Return), _) if line.is_none() && run[run.len() - 1].1 == Reg::X(0) => {
            let n = run.len();
            plain(e, &run[..n - 1]);
            let mut c = Constants::from(2);
            let s = e.src(run[n - 1].0, &mut c);
            e.op(by_src!(run[n - 1].0, S => calls::move_return::<S>));
            e.halves(s, 0, 0, 0);
            e.constants(c);
            follow + 1 - i
        }
        (Some(Op::Deallocate { slots }), Some(Op::Return))
            if line.is_none() && run[run.len() - 1].1 == Reg::X(0) =>
        {
            let n = run.len();
            plain(e, &run[..n - 1]);
            let mut c = Constants::from(2);
            let s = e.src(run[n - 1].0, &mut c);
            e.op(by_src!(run[n - 1].0, S => by_slots!(*slots, N => calls::move_deallocate_return::<S, N>)));
            e.halves(s, *slots, 0, 0);
            e.constants(c);
            follow + 2 - i
        }
        _ => {
            plain(e, &run);
            next - i
        }
    }
}

/// Moves that are nothing but moves, two or three at a time.
fn plain(e: &mut Emitter<'_>, run: &[(Src, Reg)]) {
    let mut i = 0;
    while i < run.len() {
        let (s, d) = run[i];
        let Some(r) = as_reg(s) else {
            if let Some((Src::Const(w), d2)) = run.get(i + 1)
                && let Src::Const(v) = s
            {
                let (a, b) = (e.reg(d), e.reg(*d2));
                e.op(by_reg!(d, D => by_reg!(*d2, E => data::move2_const::<D, E>)));
                e.halves(a, b, 0, 0);
                e.word(v.bits());
                e.word(w.bits());
                i += 2;
                continue;
            }
            let mut c = Constants::from(2);
            let (a, b) = (e.src(s, &mut c), e.reg(d));
            e.op(by_reg!(d, D => data::mov::<crate::machine::C, D>));
            e.halves(a, b, 0, 0);
            e.constants(c);
            i += 1;
            continue;
        };
        let second = run.get(i + 1).and_then(|(s, d)| Some((as_reg(*s)?, *d)));
        let third = run.get(i + 2).and_then(|(s, d)| Some((as_reg(*s)?, *d)));
        let same =
            |a: Reg, b: Reg| matches!((a, b), (Reg::X(_), Reg::X(_)) | (Reg::Y(_), Reg::Y(_)));
        match (second, third) {
            (Some((r2, d2)), Some((r3, d3)))
                if same(r, r2) && same(r, r3) && same(d, d2) && same(d, d3) =>
            {
                let v = [
                    e.reg(r),
                    e.reg(d),
                    e.reg(r2),
                    e.reg(d2),
                    e.reg(r3),
                    e.reg(d3),
                ];
                e.op(by_reg!(r, S => by_reg!(d, D => data::move3::<S, D>)));
                e.half_list(&v);
                i += 3;
            }
            (Some((r2, d2)), _) => {
                let v = [e.reg(r), e.reg(d), e.reg(r2), e.reg(d2)];
                e.op(by_reg!(r, S => by_reg!(d, D => by_reg!(r2, T => by_reg!(d2, E => data::move2::<S, D, T, E>)))));
                e.half_list(&v);
                i += 2;
            }
            _ => {
                let (a, b) = (e.reg(r), e.reg(d));
                e.op(by_reg!(r, S => by_reg!(d, D => data::mov::<S, D>)));
                e.halves(a, b, 0, 0);
                i += 1;
            }
        }
    }
}
