//! The engine's calls into the term library: arithmetic, order, funs.

use beamr_abi::{Ctx, Escape};
use beamr_term::{FunEntry, Subtag, Word, atoms};
use beamr_vm::lower::op::Compare;

/// An arithmetic operation; the number stands in instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Operation {
    Add,
    Sub,
    Mul,
    Divide,
    IntDiv,
    Rem,
    Band,
    Bor,
    Bxor,
    Bsl,
    Bsr,
    Negate,
    Bnot,
}

impl Operation {
    /// All, by number.
    pub const ALL: [Operation; 13] = [
        Operation::Add,
        Operation::Sub,
        Operation::Mul,
        Operation::Divide,
        Operation::IntDiv,
        Operation::Rem,
        Operation::Band,
        Operation::Bor,
        Operation::Bxor,
        Operation::Bsl,
        Operation::Bsr,
        Operation::Negate,
        Operation::Bnot,
    ];
    /// Whether it has one operand.
    pub fn is_unary(self) -> bool {
        matches!(self, Operation::Negate | Operation::Bnot)
    }
}

/// What operations on long integers cost: they cannot be left, so the slice ends behind them.
#[inline]
fn charge_long(ctx: &mut Ctx, op: Operation, a: Word, b: Word) {
    let limbs = |w: Word| match w.subtag() {
        Some(Subtag::PosBig | Subtag::NegBig) => w.header().arity() as u64,
        _ => 1,
    };
    let (n, m) = (limbs(a), limbs(b));
    if n + m > 64 {
        let work = match op {
            Operation::Mul | Operation::IntDiv | Operation::Rem => n * m / 256,
            _ => (n + m) / 64,
        };
        ctx.bump(work.min(1 << 20) as i64);
    }
}

/// Computes; the error is the reason.
#[inline(never)]
pub(crate) fn arith(ctx: &mut Ctx, op: Operation, a: Word, b: Word) -> Result<Word, Word> {
    use beamr_term::arith;
    let release = ctx.tables().release;
    charge_long(ctx, op, a, b);
    match op {
        Operation::Add => arith::add(ctx, release, a, b),
        Operation::Sub => arith::sub(ctx, release, a, b),
        Operation::Mul => arith::mul(ctx, release, a, b),
        Operation::Divide => arith::divide(ctx, release, a, b),
        Operation::IntDiv => arith::int_div(ctx, release, a, b),
        Operation::Rem => arith::rem(ctx, release, a, b),
        Operation::Band => arith::band(ctx, release, a, b),
        Operation::Bor => arith::bor(ctx, release, a, b),
        Operation::Bxor => arith::bxor(ctx, release, a, b),
        Operation::Bsl => arith::bsl(ctx, release, a, b),
        Operation::Bsr => arith::bsr(ctx, release, a, b),
        Operation::Negate => arith::negate(ctx, release, a),
        Operation::Bnot => arith::bnot(ctx, release, a),
    }
    .map_err(|e| match e {
        arith::ArithError::Badarith => atoms::BADARITH.word(),
        arith::ArithError::SystemLimit => atoms::SYSTEM_LIMIT.word(),
    })
}

/// The operation as a native.
pub(crate) fn arith_native(ctx: &mut Ctx, op: Operation, args: &[Word]) -> Result<Word, Escape> {
    let b = if op.is_unary() { args[0] } else { args[1] };
    arith(ctx, op, args[0], b).map_err(|reason| ctx.error(reason))
}

/// A number as a float; `None` when it is none or too large.
#[inline(never)]
pub(crate) fn to_float(ctx: &Ctx, a: Word) -> Option<f64> {
    if let Some(f) = a.as_float() {
        return Some(f);
    }
    beamr_term::arith::to_float(ctx.tables().release, a)
}

/// Compares any terms.
#[inline(never)]
pub(crate) fn compare(ctx: &mut Ctx, op: Compare, a: Word, b: Word) -> bool {
    use beamr_term::order;
    let tables = ctx.tables();
    match op {
        Compare::Lt => order::compare(a, b, tables).is_lt(),
        Compare::Ge => order::compare(a, b, tables).is_ge(),
        Compare::Eq => order::eq(a, b, tables),
        Compare::Ne => !order::eq(a, b, tables),
        Compare::EqExact => order::eq_exact(a, b, tables),
        Compare::NeExact => !order::eq_exact(a, b, tables),
    }
}

/// Whether `fun` is a fun of this arity.
#[inline(never)]
pub(crate) unsafe fn is_function_of(fun: Word, arity: Word) -> bool {
    let Some(arity) = arity.as_small() else {
        return false;
    };
    match fun.subtag() {
        Some(Subtag::Fun) => {
            i64::from((*(fun.field(1) as usize as *const FunEntry)).arity) == arity
        }
        Some(Subtag::Export) => fun.term_field(4).small_value() == arity,
        _ => false,
    }
}
