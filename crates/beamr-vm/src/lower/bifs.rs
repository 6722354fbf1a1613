//! Guard BIFs: which have an op of their own, and what is known of their operands.

use beamr_file::{Arg, Instr, type_bits};
use beamr_term::{Atom, ExportId, Tables, Word, atoms};

use super::build::{Lowering, Res};
use super::error::LowerFault;
use super::op::{ArithHints, ArithOp, Op};

/// How a guard BIF is lowered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bif {
    Arith(ArithOp),
    Negate,
    Bnot,
    /// A call of its native.
    Native,
}

impl Bif {
    pub fn of(module: Atom, function: Atom, arity: u8) -> Bif {
        if module != atoms::ERLANG {
            return Bif::Native;
        }
        match (function, arity) {
            (atoms::MINUS, 1) => Bif::Negate,
            (atoms::BNOT, 1) => Bif::Bnot,
            (atoms::PLUS, 2) => Bif::Arith(ArithOp::Add),
            (atoms::MINUS, 2) => Bif::Arith(ArithOp::Sub),
            (atoms::TIMES, 2) => Bif::Arith(ArithOp::Mul),
            (atoms::SLASH, 2) => Bif::Arith(ArithOp::Divide),
            (atoms::DIV, 2) => Bif::Arith(ArithOp::IntDiv),
            (atoms::REM, 2) => Bif::Arith(ArithOp::Rem),
            (atoms::BAND, 2) => Bif::Arith(ArithOp::Band),
            (atoms::BOR, 2) => Bif::Arith(ArithOp::Bor),
            (atoms::BXOR, 2) => Bif::Arith(ArithOp::Bxor),
            (atoms::BSL, 2) => Bif::Arith(ArithOp::Bsl),
            (atoms::BSR, 2) => Bif::Arith(ArithOp::Bsr),
            _ => Bif::Native,
        }
    }
}

/// Least and greatest value of a small integer.
type Range = (i64, i64);

impl Lowering<'_> {
    /// `bif0..3` and `gc_bif1..3`. `first` is the operand that holds the first argument.
    pub fn guard_bif(&mut self, instr: Instr, a: &[Arg]) -> Res {
        use beamr_file::Op as G;
        let (import, gc, first, count) = match instr.op {
            G::Bif0 => (0, false, 1, 0),
            G::Bif1 => (1, false, 2, 1),
            G::Bif2 => (1, false, 2, 2),
            G::Bif3 => (1, false, 2, 3),
            G::GcBif1 => (2, true, 3, 1),
            G::GcBif2 => (2, true, 3, 2),
            _ => (2, true, 3, 3),
        };
        let fail = if instr.op == G::Bif0 {
            0
        } else {
            self.fail(a, 0)?
        };
        let live = if gc { Some(self.live(a, 1)?) } else { None };
        let (native, bif, export, arity) = {
            let i = self.import_operand(a, import)?;
            (i.native, i.bif, i.export, i.arity)
        };
        if usize::from(arity) != count {
            return Err(LowerFault::Inconsistent("the import has another arity"));
        }
        let dst = self.reg(a, first + count)?;
        let op = match (bif, live) {
            (Bif::Arith(op), Some(live)) => Op::Arith {
                op,
                a: self.src(a, first)?,
                b: self.src(a, first + 1)?,
                dst,
                live,
                fail,
                hints: self.hints(op, a[first], a[first + 1]),
            },
            (Bif::Negate, Some(live)) => Op::Negate {
                src: self.src(a, first)?,
                dst,
                live,
                fail,
            },
            (Bif::Bnot, Some(live)) => Op::Bnot {
                src: self.src(a, first)?,
                dst,
                live,
                fail,
            },
            _ => {
                if !self.env.trusted && !is_guard_bif(self.env.tables, export) {
                    return Err(LowerFault::Inconsistent("not a guard BIF"));
                }
                let args = self.srcs(a, first..first + count)?;
                match native {
                    Some(native) => Op::GuardBif {
                        native,
                        args,
                        dst,
                        live,
                        fail,
                    },
                    None => Op::UndefinedBif { export, args, fail },
                }
            }
        };
        self.code.push(op);
        Ok(())
    }

    /// The range of an operand that is a small integer: a constant, or (trusted) a register whose type says so.
    fn range(&self, arg: Arg) -> Option<Range> {
        match arg {
            Arg::I(v) => Word::small(v).map(|_| (v, v)),
            Arg::TypedX { ty, .. } | Arg::TypedY { ty, .. } if self.env.trusted => {
                let t = self.module.types.get(ty)?;
                match (t.lower, t.upper) {
                    (Some(lo), Some(hi))
                        if t.bits == type_bits::INTEGER
                            && lo <= hi
                            && lo >= Word::MIN_SMALL
                            && hi <= Word::MAX_SMALL =>
                    {
                        Some((lo, hi))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn hints(&self, op: ArithOp, a: Arg, b: Arg) -> ArithHints {
        let (ra, rb) = (self.range(a), self.range(b));
        ArithHints {
            a_small: ra.is_some(),
            b_small: rb.is_some(),
            no_overflow: match (ra, rb) {
                (Some(a), Some(b)) => fits(op, a, b),
                _ => false,
            },
        }
    }
}

/// The functions of `erlang` that a BIF instruction may name, in any release. They neither trap nor wait.
const GUARD_BIFS: [&[&str]; 4] = [
    &["node", "self"],
    &[
        "+",
        "-",
        "abs",
        "bit_size",
        "bnot",
        "byte_size",
        "ceil",
        "float",
        "floor",
        "get",
        "hd",
        "is_atom",
        "is_binary",
        "is_bitstring",
        "is_boolean",
        "is_float",
        "is_function",
        "is_integer",
        "is_list",
        "is_map",
        "is_number",
        "is_pid",
        "is_port",
        "is_record",
        "is_reference",
        "is_tuple",
        "length",
        "list_to_atom",
        "list_to_existing_atom",
        "map_size",
        "node",
        "not",
        "round",
        "size",
        "tl",
        "trunc",
        "tuple_size",
    ],
    &[
        "*",
        "+",
        "-",
        "/",
        "/=",
        "<",
        "=/=",
        "=:=",
        "=<",
        "==",
        ">",
        ">=",
        "and",
        "band",
        "binary_part",
        "binary_to_atom",
        "binary_to_existing_atom",
        "bor",
        "bsl",
        "bsr",
        "bxor",
        "div",
        "element",
        "is_function",
        "is_map_key",
        "is_record",
        "map_get",
        "max",
        "min",
        "or",
        "rem",
        "xor",
    ],
    &["binary_part", "is_integer", "is_record"],
];

fn is_guard_bif(tables: &Tables, export: ExportId) -> bool {
    tables.exports.mfa(export).is_some_and(|(m, f, arity)| {
        m == atoms::ERLANG
            && GUARD_BIFS
                .get(arity as usize)
                .is_some_and(|names| names.contains(&tables.atoms.text(f)))
    })
}

/// Whether every result for operands in the ranges is a small integer. A zero divisor is not the question here.
fn fits(op: ArithOp, a: Range, b: Range) -> bool {
    let (a0, a1) = (i128::from(a.0), i128::from(a.1));
    let (b0, b1) = (i128::from(b.0), i128::from(b.1));
    let small =
        |lo: i128, hi: i128| lo >= i128::from(Word::MIN_SMALL) && hi <= i128::from(Word::MAX_SMALL);
    let corners = |f: fn(i128, i128) -> i128| {
        let all = [f(a0, b0), f(a0, b1), f(a1, b0), f(a1, b1)];
        small(
            all.into_iter().fold(i128::MAX, i128::min),
            all.into_iter().fold(i128::MIN, i128::max),
        )
    };
    match op {
        ArithOp::Add => small(a0 + b0, a1 + b1),
        ArithOp::Sub => small(a0 - b1, a1 - b0),
        ArithOp::Mul => corners(|x, y| x * y),
        // The only quotient beyond is that of the least small integer by -1.
        ArithOp::IntDiv => !(a0 == i128::from(Word::MIN_SMALL) && b0 <= -1 && b1 >= -1),
        ArithOp::Rem | ArithOp::Band | ArithOp::Bor | ArithOp::Bxor => true,
        // Shifts by 0..=59 only, so that an engine needs no test of the count.
        ArithOp::Bsl => b0 >= 0 && b1 < 60 && corners(|x, y| x << y),
        ArithOp::Bsr => b0 >= 0 && b1 < 60,
        ArithOp::Divide => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = Word::MIN_SMALL;
    const MAX: i64 = Word::MAX_SMALL;

    #[test]
    fn ranges_that_fit() {
        assert!(fits(ArithOp::Add, (0, MAX - 1), (1, 1)));
        assert!(fits(ArithOp::Sub, (MIN + 1, 0), (0, 1)));
        assert!(fits(ArithOp::Mul, (-(1 << 29), 1 << 29), (0, 1 << 29)));
        assert!(fits(ArithOp::IntDiv, (MIN, MAX), (1, MAX)));
        assert!(fits(ArithOp::Rem, (MIN, MAX), (MIN, MAX)));
        assert!(fits(ArithOp::Bsl, (0, 255), (0, 51)));
        assert!(fits(ArithOp::Bsr, (MIN, MAX), (0, 59)));
    }

    #[test]
    fn ranges_that_do_not() {
        assert!(!fits(ArithOp::Add, (0, MAX), (1, 1)));
        assert!(!fits(ArithOp::Sub, (MIN, 0), (0, 1)));
        assert!(!fits(ArithOp::Mul, (MIN, MAX), (-1, 1)));
        assert!(!fits(ArithOp::IntDiv, (MIN, MIN), (-1, 1)));
        assert!(!fits(ArithOp::Bsl, (0, 255), (0, 52)));
        assert!(!fits(ArithOp::Bsl, (0, 0), (-1, 0)));
        assert!(!fits(ArithOp::Bsr, (0, 1), (0, 60)));
        assert!(!fits(ArithOp::Divide, (1, 1), (1, 1)));
    }
}
