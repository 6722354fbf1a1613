//! `erlang`: arithmetic operators and conversions between numbers as functions.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::arith::{self, ArithError, Rounding};
use beamr_term::{Build, Word};

#[cold]
fn failed(ctx: &mut Ctx, e: ArithError) -> Escape {
    match e {
        ArithError::Badarith => ctx.badarith(),
        ArithError::SystemLimit => ctx.system_limit(),
    }
}

macro_rules! operators {
    ($($name:ident($($i:tt),*) = $f:ident;)*) => {
        $(
            /// The operator as a function.
            pub fn $name(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
                let release = ctx.tables().release;
                let r = arith::$f(ctx, release, $(args[$i]),*);
                r.map_err(|e| failed(ctx, e))
            }
        )*
    };
}

operators! {
    add_2(0, 1) = add;
    sub_2(0, 1) = sub;
    mul_2(0, 1) = mul;
    divide_2(0, 1) = divide;
    div_2(0, 1) = int_div;
    rem_2(0, 1) = rem;
    band_2(0, 1) = band;
    bor_2(0, 1) = bor;
    bxor_2(0, 1) = bxor;
    bsl_2(0, 1) = bsl;
    bsr_2(0, 1) = bsr;
    bnot_1(0) = bnot;
    minus_1(0) = negate;
}

/// Unary `+`.
fn plus_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_number() {
        Ok(args[0])
    } else {
        Err(ctx.badarith())
    }
}

/// `abs(Number)`.
fn abs_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_number() {
        return Err(ctx.badarg());
    }
    arith::abs(ctx, ctx.tables().release, args[0]).map_err(|e| failed(ctx, e))
}

/// `float(Number)`.
fn float_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_float() {
        return Ok(args[0]);
    }
    match arith::to_float(ctx.tables().release, args[0]) {
        Some(f) => Ok(ctx.float(f)),
        None => Err(ctx.badarg()),
    }
}

fn rounded(ctx: &mut Ctx, w: Word, how: Rounding) -> Result<Word, Escape> {
    if !w.is_number() {
        return Err(ctx.badarg());
    }
    arith::to_integer(ctx, w, how).map_err(|_| ctx.badarg())
}

/// `round(Number)`.
fn round_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    rounded(ctx, args[0], Rounding::Round)
}

/// `trunc(Number)`.
fn trunc_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    rounded(ctx, args[0], Rounding::Trunc)
}

/// `floor(Number)`.
fn floor_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    rounded(ctx, args[0], Rounding::Floor)
}

/// `ceil(Number)`.
fn ceil_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    rounded(ctx, args[0], Rounding::Ceil)
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("+", 2, add_2),
    row("-", 2, sub_2),
    row("*", 2, mul_2),
    row("/", 2, divide_2),
    row("div", 2, div_2),
    row("rem", 2, rem_2),
    row("band", 2, band_2),
    row("bor", 2, bor_2),
    row("bxor", 2, bxor_2),
    row("bsl", 2, bsl_2),
    row("bsr", 2, bsr_2),
    row("bnot", 1, bnot_1),
    row("-", 1, minus_1),
    row("+", 1, plus_1),
    row("abs", 1, abs_1),
    row("float", 1, float_1),
    row("round", 1, round_1),
    row("trunc", 1, trunc_1),
    row("floor", 1, floor_1),
    row("ceil", 1, ceil_1),
];
