//! Handlers hand over by jumps: whatever path an instruction takes, it leaves nothing on the native stack.
//!
//! Each loop runs long enough in one slice that a frame per turn would overflow the thread's stack.

use beamr_abi::{Ctx, Escape, NativeEntry};
use beamr_term::{Word, atoms};
use beamr_vm::engine::Stop;
use beamr_vm::lower::op::*;

use crate::harness::{Process, module};

const TURNS: i64 = 20_000;
/// Less than a frame per turn would take.
const STACK: usize = 192 << 10;

fn x(n: u16) -> Reg {
    Reg::X(n)
}
fn int(n: i64) -> Src {
    Src::Const(Word::fixnum(n))
}
fn mv(src: Src, dst: Reg) -> Op {
    Op::Move { src, dst }
}
fn arith(op: ArithOp, a: Src, b: Src, dst: u16) -> Op {
    Op::Arith {
        op,
        a,
        b,
        dst: x(dst),
        live: 8,
        fail: 0,
        hints: ArithHints::default(),
    }
}

/// A function that runs `body` as often as x0 says; x1 to x7 start as small integers.
fn looped(body: Vec<Op>) -> Vec<Op> {
    let mut code = vec![Op::Label(1)];
    for i in 1..8 {
        code.push(mv(int(i64::from(i)), x(i)));
    }
    code.push(Op::Label(2));
    code.push(Op::Compare {
        op: Compare::EqExact,
        a: Src::X(0),
        b: int(0),
        fail: 3,
    });
    code.push(Op::Return);
    code.push(Op::Label(3));
    code.extend(body);
    code.push(arith(ArithOp::Sub, Src::X(0), int(1), 0));
    code.push(Op::Call {
        target: 2,
        arity: 8,
        kind: CallKind::Only,
    });
    code
}

fn check(body: Vec<Op>) {
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let mut p = Process::new(module(&[(1, looped(body))]));
            p.slice = i64::MAX;
            assert_eq!(p.call(0, &[Word::fixnum(TURNS)]).0, Word::fixnum(0));
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[test]
fn arithmetic() {
    check(vec![
        mv(int(Word::MAX_SMALL), x(1)),
        arith(ArithOp::Add, Src::X(1), int(1), 2),
        arith(ArithOp::Mul, Src::X(2), Src::X(2), 3),
        arith(ArithOp::Rem, Src::X(3), Src::X(2), 4),
        arith(ArithOp::Divide, Src::X(1), int(3), 5),
        arith(ArithOp::Add, Src::X(5), int(3), 6),
        arith(ArithOp::Bsl, int(1), int(70), 7),
        Op::Negate {
            src: Src::X(7),
            dst: x(7),
            live: 8,
            fail: 0,
        },
        Op::Bnot {
            src: Src::X(7),
            dst: x(7),
            live: 8,
            fail: 0,
        },
        Op::FloatConvert {
            src: Src::X(7),
            dst: 0,
        },
        Op::TestHeap { words: 2, live: 8 },
        Op::FloatStore { src: 0, dst: x(6) },
    ]);
}

#[test]
fn comparisons() {
    let compare = |op| Op::Compare {
        op,
        a: Src::X(2),
        b: Src::X(3),
        fail: 4,
    };
    let mut body = vec![
        Op::TestHeap { words: 16, live: 8 },
        Op::PutTuple {
            elements: Box::new([Src::X(1), int(7)]),
            dst: x(2),
        },
        Op::PutTuple {
            elements: Box::new([Src::X(2), Src::X(2)]),
            dst: x(2),
        },
        Op::PutTuple {
            elements: Box::new([Src::X(1), int(7)]),
            dst: x(3),
        },
        Op::PutTuple {
            elements: Box::new([Src::X(3), Src::X(3)]),
            dst: x(3),
        },
    ];
    for op in [Compare::Ge, Compare::Eq, Compare::EqExact] {
        body.push(compare(op));
    }
    body.push(Op::Label(4));
    for op in [Compare::Lt, Compare::Ne, Compare::NeExact] {
        body.push(Op::Compare {
            op,
            a: Src::X(2),
            b: Src::X(3),
            fail: 5,
        });
    }
    body.push(Op::Label(5));
    body.push(Op::IsFunction2 {
        src: Src::X(2),
        arity: int(1),
        fail: 6,
    });
    body.push(Op::Label(6));
    check(body);
}

/// `#{}` as a literal that lives as long as the tests.
fn empty_map() -> Word {
    let mut b = beamr_term::LiteralArea::builder(8).expect("room");
    let map = beamr_term::maps::empty(&mut b);
    std::mem::forget(b.finish());
    map
}

#[test]
fn maps_and_bits() {
    let pair = |k: Src, v: Src| Op::PutMap {
        assoc: true,
        src: Src::X(2),
        dst: x(2),
        live: 8,
        pairs: Box::new([(k, v)]),
        fail: 0,
    };
    let segment = |kind, src, size, unit| Segment {
        kind,
        unit,
        flags: BitFlags::default(),
        src,
        size,
        bytes: Box::new([]),
        index: 1,
    };
    let create = |dst, segments| Op::BsCreateBin {
        heap: 4,
        live: 8,
        unit: 1,
        dst: x(dst),
        segments,
        fail: 0,
    };
    check(vec![
        create(
            3,
            Box::new([segment(
                SegKind::Integer,
                Src::X(0),
                SegSize::Term(int(100)),
                8,
            )]),
        ),
        create(
            4,
            Box::new([
                segment(SegKind::Append, Src::X(3), SegSize::All, 8),
                segment(SegKind::Integer, Src::X(0), SegSize::Term(int(8)), 1),
            ]),
        ),
        Op::BsStartMatch {
            src: Src::X(4),
            dst: x(5),
            live: 8,
            fail: 4,
        },
        Op::BsMatch {
            ctx: x(5),
            fail: 4,
            commands: Box::new([
                MatchCommand::EnsureAtLeast { bits: 800, unit: 8 },
                MatchCommand::Integer {
                    live: 8,
                    flags: BitFlags::default(),
                    bits: 128,
                    dst: x(6),
                },
                MatchCommand::Binary {
                    live: 8,
                    bits: 64,
                    dst: x(6),
                },
                MatchCommand::GetTail { live: 8, dst: x(7) },
            ]),
            checked: true,
        },
        Op::BsGetUtf {
            kind: SegKind::Utf16,
            flags: BitFlags::default(),
            ctx: x(5),
            dst: Some(x(6)),
            fail: 4,
            checked: false,
        },
        Op::Label(4),
        mv(Src::Const(empty_map()), x(2)),
        pair(Src::Const(atoms::OK.word()), Src::X(0)),
        pair(Src::Const(atoms::OK.word()), int(3)),
        pair(Src::X(3), int(3)),
        Op::GetMapElements {
            src: Src::X(2),
            fail: 5,
            pairs: Box::new([(Src::X(3), x(6))]),
            checked: true,
        },
        Op::Label(5),
    ]);
}

static DOUBLE: NativeEntry = NativeEntry::new("test", "double", 1, double);
fn double(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(args[0].small_value() * 2))
}

#[test]
fn natives() {
    check(vec![
        Op::GuardBif {
            native: &DOUBLE,
            args: Box::new([Src::X(0)]),
            dst: x(1),
            live: Some(8),
            fail: 0,
        },
        Op::Allocate {
            slots: 1,
            heap: 0,
            live: 8,
        },
        mv(Src::X(0), Reg::Y(0)),
        Op::CallNative {
            native: &DOUBLE,
            export: 0,
            kind: CallKind::Body,
        },
        mv(Src::Y(0), x(0)),
        Op::Deallocate { slots: 1 },
    ]);
}

static PANICS: NativeEntry = NativeEntry::new("test", "panics", 0, panics);
fn panics(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    panic!("a bug of a native")
}

#[test]
fn a_panic_ends_the_process() {
    let code = vec![
        Op::Label(1),
        Op::CallNative {
            native: &PANICS,
            export: 0,
            kind: CallKind::Only,
        },
    ];
    let mut p = Process::new(module(&[(0, code)]));
    assert_eq!(p.run(0), Stop::Exited);
}
