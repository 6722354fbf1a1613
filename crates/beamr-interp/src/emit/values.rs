//! Arithmetic, guards, floats.

use beamr_vm::lower::op::{ArithOp, FloatOp, Label, NO_LABEL, Op, Reg, Src};

use super::code::{Constants, Emitter, by_reg, by_src};
use crate::glue::Operation;
use crate::machine::Handler;
use crate::ops::{arith, floats};

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::Arith {
            op,
            a,
            b,
            dst,
            live,
            fail,
            ..
        } => binary(e, *op, *a, *b, *dst, *live, *fail),
        Op::Negate {
            src,
            dst,
            live,
            fail,
        } => {
            let h: Handler = by_src!(*src, A => by_reg!(*dst, D => arith::negate::<A, D>));
            unary(e, h, Operation::Negate, *src, *dst, *live, *fail);
        }
        Op::Bnot {
            src,
            dst,
            live,
            fail,
        } => {
            let h: Handler = by_src!(*src, A => by_reg!(*dst, D => arith::bnot::<A, D>));
            unary(e, h, Operation::Bnot, *src, *dst, *live, *fail);
        }
        Op::FloatLoad { src, dst, checked } => {
            let mut c = Constants::from(2);
            if let Src::Const(w) = src
                && let Some(f) = w.as_float()
            {
                e.op(floats::load_bits);
                e.halves(0, *dst, 0, 0);
                e.word(f.to_bits());
                return Some(1);
            }
            let s = e.src(*src, &mut c);
            if *checked || matches!(src, Src::Const(_)) {
                e.op(floats::load_checked);
            } else {
                e.op(by_src!(*src, S => floats::load::<S>));
            }
            e.halves(s, *dst, 0, 0);
            e.constants(c);
            e.set_len(6);
        }
        Op::FloatConvert { src, dst } => {
            let mut c = Constants::from(2);
            let s = e.src(*src, &mut c);
            e.op(by_src!(*src, S => floats::convert::<S>));
            e.halves(s, *dst, 0, 0);
            e.constants(c);
            e.set_len(6);
        }
        Op::FloatStore { src, dst } => {
            let d = e.reg(*dst);
            e.op(by_reg!(*dst, D => floats::store::<D>));
            e.halves(*src, d, 0, 0);
        }
        Op::FloatArith {
            op,
            a,
            b,
            dst,
            fail,
        } => {
            macro_rules! pick {
                ($h:ident) => {
                    match op {
                        FloatOp::Add => floats::$h::<floats::FAdd> as Handler,
                        FloatOp::Sub => floats::$h::<floats::FSub>,
                        FloatOp::Mul => floats::$h::<floats::FMul>,
                        FloatOp::Div => floats::$h::<floats::FDiv>,
                    }
                };
            }
            if *fail == NO_LABEL {
                e.op(pick!(arith));
                e.halves(*a, *b, *dst, 0);
            } else {
                e.op(pick!(arith_guard));
                e.halves(*a, *b, *dst, 0);
                e.label_halves(*fail, 0, 0);
            }
        }
        Op::FloatNegate { a, dst, .. } => {
            e.op(floats::negate);
            e.halves(*a, 0, *dst, 0);
        }
        _ => return None,
    }
    Some(1)
}

fn binary(e: &mut Emitter<'_>, op: ArithOp, a: Src, b: Src, dst: Reg, live: u16, fail: Label) {
    let operation = match op {
        ArithOp::Add => Operation::Add,
        ArithOp::Sub => Operation::Sub,
        ArithOp::Mul => Operation::Mul,
        ArithOp::Divide => Operation::Divide,
        ArithOp::IntDiv => Operation::IntDiv,
        ArithOp::Rem => Operation::Rem,
        ArithOp::Band => Operation::Band,
        ArithOp::Bor => Operation::Bor,
        ArithOp::Bxor => Operation::Bxor,
        ArithOp::Bsl => Operation::Bsl,
        ArithOp::Bsr => Operation::Bsr,
    };
    let small = |s: Src| match s {
        Src::Const(w) => w.as_small(),
        _ => None,
    };
    // The operands keep their order in the instruction: a failure names them in it.
    if let (ArithOp::Add | ArithOp::Sub, Some(v)) = (op, small(b))
        && let Some(h) = add_const(a, dst, op)
    {
        let delta = if op == ArithOp::Sub { -v } else { v };
        let mut c = Constants::from(4);
        let (x, y, d) = (e.src(a, &mut c), e.src(b, &mut c), e.reg(dst));
        e.op(h);
        e.halves(x, y, d, live);
        e.label_halves(fail, operation as u16, 5);
        e.word((delta << 4) as u64);
        e.constants(c);
        return;
    }
    macro_rules! pick {
        ($h:ident) => {
            by_src!(a, A => by_src!(b, B => by_reg!(dst, D => arith::$h::<A, B, D>))) as Handler
        };
    }
    let h = match op {
        ArithOp::Add => pick!(add),
        ArithOp::Sub => pick!(sub),
        ArithOp::Mul => pick!(mul),
        ArithOp::Divide => arith::float::<floats::FDiv>,
        ArithOp::IntDiv => pick!(int_div),
        ArithOp::Rem => pick!(rem),
        ArithOp::Band => pick!(band),
        ArithOp::Bor => pick!(bor),
        ArithOp::Bxor => pick!(bxor),
        ArithOp::Bsl => pick!(bsl),
        ArithOp::Bsr => pick!(bsr),
    };
    instruction(e, h, operation, a, b, dst, live, fail);
}

fn add_const(a: Src, dst: Reg, op: ArithOp) -> Option<Handler> {
    let r = match a {
        Src::X(n) => Reg::X(n),
        Src::Y(n) => Reg::Y(n),
        Src::Const(_) => return None,
    };
    Some(if op == ArithOp::Sub {
        by_reg!(r, A => by_reg!(dst, D => arith::add_const::<A, D, floats::FSub>))
    } else {
        by_reg!(r, A => by_reg!(dst, D => arith::add_const::<A, D, floats::FAdd>))
    })
}

fn instruction(
    e: &mut Emitter<'_>,
    h: Handler,
    op: Operation,
    a: Src,
    b: Src,
    dst: Reg,
    live: u16,
    fail: Label,
) {
    let mut c = Constants::from(3);
    let (x, y, d) = (e.src(a, &mut c), e.src(b, &mut c), e.reg(dst));
    e.op(h);
    e.halves(x, y, d, live);
    e.label_halves(fail, op as u16, 0);
    e.constants(c);
    e.set_len(11);
}

fn unary(e: &mut Emitter<'_>, h: Handler, op: Operation, a: Src, dst: Reg, live: u16, fail: Label) {
    let mut c = Constants::from(3);
    let (x, d) = (e.src(a, &mut c), e.reg(dst));
    e.op(h);
    e.halves(x, 0, d, live);
    e.label_halves(fail, op as u16, 0);
    e.constants(c);
    e.set_len(11);
}
