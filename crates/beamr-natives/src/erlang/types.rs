//! `erlang`: type tests, comparisons and booleans as functions (called through `apply`, funs, or as guards with a value).

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{FunEntry, Subtag, Word, order};

macro_rules! tests {
    ($($name:ident: $arg:ident => $test:expr;)*) => {
        $(fn $name(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
            let $arg = args[0];
            Ok(Word::boolean($test))
        })*
    };
}

tests! {
    is_atom_1: w => w.is_atom();
    is_integer_1: w => w.is_integer();
    is_float_1: w => w.is_float();
    is_number_1: w => w.is_number();
    is_list_1: w => w.is_list();
    is_tuple_1: w => w.is_tuple();
    is_boolean_1: w => w.is_boolean();
    is_pid_1: w => w.is_pid();
    is_port_1: w => w.is_port();
    is_reference_1: w => w.is_reference();
    is_map_1: w => w.is_map();
    is_bitstring_1: w => w.is_bitstring();
    is_function_1: w => w.is_fun();
    is_binary_1: w => is_binary(w);
    is_record_1: w => w.subtag() == Some(Subtag::Record);
}

/// Whether `w` is a bitstring of whole bytes.
pub fn is_binary(w: Word) -> bool {
    match w.subtag() {
        Some(Subtag::HeapBits) => w.field(1).is_multiple_of(8),
        Some(Subtag::RefcBits) => w.field(4).is_multiple_of(8),
        Some(Subtag::SubBits) => w.term_field(3).small_value() % 8 == 0,
        _ => false,
    }
}

/// The arity of a fun.
pub fn fun_arity(w: Word) -> Option<u32> {
    match w.subtag() {
        // SAFETY: word 1 of a fun points to its entry, which lives as long as the VM.
        Some(Subtag::Fun) => Some(unsafe { (*(w.field(1) as usize as *const FunEntry)).arity }),
        Some(Subtag::Export) => w.term_field(4).as_small().map(|a| a as u32),
        _ => None,
    }
}

/// `is_function(Term, Arity)`.
fn is_function_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[1].as_small() {
        Some(n) if n >= 0 => Ok(Word::boolean(
            fun_arity(args[0]) == u32::try_from(n).ok() && n <= i64::from(u32::MAX),
        )),
        None if args[1].is_big() && args[1].subtag() == Some(Subtag::PosBig) => Ok(Word::FALSE),
        _ => Err(ctx.badarg()),
    }
}

/// `is_record(Term, Tag)`.
fn is_record_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[1].is_atom() {
        return Err(ctx.badarg());
    }
    Ok(Word::boolean(
        args[0].as_tuple().and_then(|t| t.first()) == Some(&args[1]),
    ))
}

/// `is_record(Term, Tag, Size)`.
fn is_record_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(size) = args[2].as_small() else {
        return Err(ctx.badarg());
    };
    if !args[1].is_atom() {
        return Err(ctx.badarg());
    }
    Ok(Word::boolean(args[0].as_tuple().is_some_and(|t| {
        t.len() as i64 == size && t.first() == Some(&args[1])
    })))
}

/// `is_integer(Term, Low, High)` (29).
fn is_integer_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[1].is_integer() || !args[2].is_integer() {
        return Err(ctx.badarg());
    }
    let t = ctx.tables();
    Ok(Word::boolean(
        args[0].is_integer()
            && order::compare(args[0], args[1], t).is_ge()
            && order::compare(args[0], args[2], t).is_le(),
    ))
}

macro_rules! comparisons {
    ($($name:ident: $a:ident, $b:ident, $t:ident => $test:expr;)*) => {
        $(fn $name(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
            let ($a, $b, $t) = (args[0], args[1], ctx.tables());
            Ok($test.into_word())
        })*
    };
}

trait IntoWord {
    fn into_word(self) -> Word;
}
impl IntoWord for bool {
    fn into_word(self) -> Word {
        Word::boolean(self)
    }
}
impl IntoWord for Word {
    fn into_word(self) -> Word {
        self
    }
}

comparisons! {
    lt_2: a, b, t => order::compare(a, b, t).is_lt();
    le_2: a, b, t => order::compare(a, b, t).is_le();
    gt_2: a, b, t => order::compare(a, b, t).is_gt();
    ge_2: a, b, t => order::compare(a, b, t).is_ge();
    eq_2: a, b, t => order::eq(a, b, t);
    ne_2: a, b, t => !order::eq(a, b, t);
    eq_exact_2: a, b, t => order::eq_exact(a, b, t);
    ne_exact_2: a, b, t => !order::eq_exact(a, b, t);
    min_2: a, b, t => if order::compare(a, b, t).is_gt() { b } else { a };
    max_2: a, b, t => if order::compare(a, b, t).is_lt() { b } else { a };
}

fn booleans(ctx: &mut Ctx, args: &[Word]) -> Result<(bool, bool), Escape> {
    match (args[0].as_boolean(), args[1].as_boolean()) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(ctx.badarg()),
    }
}

/// `and`.
fn and_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (a, b) = booleans(ctx, args)?;
    Ok(Word::boolean(a & b))
}

/// `or`.
fn or_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (a, b) = booleans(ctx, args)?;
    Ok(Word::boolean(a | b))
}

/// `xor`.
fn xor_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (a, b) = booleans(ctx, args)?;
    Ok(Word::boolean(a ^ b))
}

/// `not`.
fn not_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_boolean() {
        Some(b) => Ok(Word::boolean(!b)),
        None => Err(ctx.badarg()),
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("is_atom", 1, is_atom_1),
    row("is_integer", 1, is_integer_1),
    row("is_float", 1, is_float_1),
    row("is_number", 1, is_number_1),
    row("is_list", 1, is_list_1),
    row("is_tuple", 1, is_tuple_1),
    row("is_boolean", 1, is_boolean_1),
    row("is_pid", 1, is_pid_1),
    row("is_port", 1, is_port_1),
    row("is_reference", 1, is_reference_1),
    row("is_map", 1, is_map_1),
    row("is_bitstring", 1, is_bitstring_1),
    row("is_binary", 1, is_binary_1),
    row("is_function", 1, is_function_1),
    row("is_function", 2, is_function_2),
    row("is_record", 1, is_record_1).releases(ReleaseSpan::since(29)),
    row("is_record", 2, is_record_2),
    row("is_record", 3, is_record_3),
    row("is_integer", 3, is_integer_3).releases(ReleaseSpan::since(29)),
    row("<", 2, lt_2),
    row("=<", 2, le_2),
    row(">", 2, gt_2),
    row(">=", 2, ge_2),
    row("==", 2, eq_2),
    row("/=", 2, ne_2),
    row("=:=", 2, eq_exact_2),
    row("=/=", 2, ne_exact_2),
    row("min", 2, min_2).releases(ReleaseSpan::since(26)),
    row("max", 2, max_2).releases(ReleaseSpan::since(26)),
    row("and", 2, and_2),
    row("or", 2, or_2),
    row("xor", 2, xor_2),
    row("not", 1, not_1),
];
