//! Rows of natives that instructions stand for: their names head the stack trace when they fail.

use beamr_abi::{Ctx, Escape, NativeEntry};
use beamr_term::Word;
use beamr_vm::rt;

use crate::glue;

/// `erlang:'!'/2`.
pub(crate) static BANG: NativeEntry =
    NativeEntry::new("erlang", "!", 2, bang).needs(beamr_abi::Capability::Spawn);

fn bang(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match rt::send(ctx, args[0], args[1]) {
        Ok(()) => Ok(args[1]),
        Err(pending) => Err(ctx.escape(pending)),
    }
}

macro_rules! operators {
    ($($name:ident = $text:literal, $arity:literal, $op:expr;)*) => {
        /// The native row of an arithmetic operation, by the number in the instruction.
        pub(crate) static OPERATORS: &[&NativeEntry] = &[$(&$name),*];
        $(
            static $name: NativeEntry = NativeEntry::new("erlang", $text, $arity, {
                fn f(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
                    glue::arith_native(ctx, $op, args)
                }
                f
            });
        )*
    };
}

// In the order of `glue::Operation`.
operators! {
    ADD = "+", 2, glue::Operation::Add;
    SUB = "-", 2, glue::Operation::Sub;
    MUL = "*", 2, glue::Operation::Mul;
    DIVIDE = "/", 2, glue::Operation::Divide;
    INT_DIV = "div", 2, glue::Operation::IntDiv;
    REM = "rem", 2, glue::Operation::Rem;
    BAND = "band", 2, glue::Operation::Band;
    BOR = "bor", 2, glue::Operation::Bor;
    BXOR = "bxor", 2, glue::Operation::Bxor;
    BSL = "bsl", 2, glue::Operation::Bsl;
    BSR = "bsr", 2, glue::Operation::Bsr;
    NEGATE = "-", 1, glue::Operation::Negate;
    BNOT = "bnot", 1, glue::Operation::Bnot;
}
