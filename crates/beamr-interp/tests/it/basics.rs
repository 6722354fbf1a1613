//! Arithmetic, lists, tuples, calls, collection.

use beamr_term::Word;
use beamr_vm::lower::op::*;

use crate::harness::{Process, module};

const X0: Src = Src::X(0);
const X1: Src = Src::X(1);
const X2: Src = Src::X(2);
fn x(n: u16) -> Reg {
    Reg::X(n)
}
fn y(n: u16) -> Reg {
    Reg::Y(n)
}
fn int(n: i64) -> Src {
    Src::Const(Word::fixnum(n))
}
fn mv(src: Src, dst: Reg) -> Op {
    Op::Move { src, dst }
}
fn arith(op: ArithOp, a: Src, b: Src, dst: Reg, live: u16) -> Op {
    Op::Arith {
        op,
        a,
        b,
        dst,
        live,
        fail: 0,
        hints: ArithHints::default(),
    }
}
fn call(target: Label, arity: u16, kind: CallKind) -> Op {
    Op::Call {
        target,
        arity,
        kind,
    }
}

fn fib() -> Vec<Op> {
    vec![
        Op::Label(1),
        Op::SelectVal {
            src: X0,
            fail: 3,
            pairs: Box::new([(Word::fixnum(0), 2), (Word::fixnum(1), 2)]),
        },
        Op::Label(2),
        Op::Return,
        Op::Label(3),
        Op::Allocate {
            slots: 1,
            heap: 0,
            live: 1,
        },
        mv(X0, y(0)),
        arith(ArithOp::Sub, X0, int(1), x(0), 1),
        call(1, 1, CallKind::Body),
        arith(ArithOp::Sub, Src::Y(0), int(2), x(1), 1),
        mv(X0, y(0)),
        mv(X1, x(0)),
        call(1, 1, CallKind::Body),
        arith(ArithOp::Add, Src::Y(0), X0, x(0), 1),
        Op::Deallocate { slots: 1 },
        Op::Return,
    ]
}

#[test]
fn fib_counts_reductions() {
    let mut p = Process::new(module(&[(1, fib())]));
    assert_eq!(p.call(0, &[Word::fixnum(20)]).0, Word::fixnum(6765));
    let (v, slices) = p.call(0, &[Word::fixnum(24)]);
    assert_eq!(v, Word::fixnum(46368));
    // 150,048 calls in slices of 4000.
    assert!((37..=38).contains(&slices), "{slices}");
}

/// `seq(N, Acc)`, `app/2`, `nrev/1`.
fn lists() -> Vec<(u32, Vec<Op>)> {
    let seq = vec![
        Op::Label(1),
        Op::Compare {
            op: Compare::EqExact,
            a: X0,
            b: int(0),
            fail: 2,
        },
        mv(X1, x(0)),
        Op::Return,
        Op::Label(2),
        Op::TestHeap { words: 2, live: 2 },
        Op::PutList {
            head: X0,
            tail: X1,
            dst: x(1),
        },
        arith(ArithOp::Sub, X0, int(1), x(0), 2),
        call(1, 2, CallKind::Only),
    ];
    let app = vec![
        Op::Label(3),
        Op::Test {
            test: TypeTest::NonemptyList,
            src: X0,
            fail: 4,
        },
        Op::Allocate {
            slots: 1,
            heap: 0,
            live: 2,
        },
        Op::GetList {
            src: x(0),
            head: y(0),
            tail: x(0),
            checked: false,
        },
        call(3, 2, CallKind::Body),
        Op::TestHeap { words: 2, live: 1 },
        Op::PutList {
            head: Src::Y(0),
            tail: X0,
            dst: x(0),
        },
        Op::Deallocate { slots: 1 },
        Op::Return,
        Op::Label(4),
        mv(X1, x(0)),
        Op::Return,
    ];
    let nrev = vec![
        Op::Label(5),
        Op::Test {
            test: TypeTest::NonemptyList,
            src: X0,
            fail: 6,
        },
        Op::Allocate {
            slots: 1,
            heap: 0,
            live: 1,
        },
        Op::GetList {
            src: x(0),
            head: y(0),
            tail: x(0),
            checked: false,
        },
        call(5, 1, CallKind::Body),
        Op::TestHeap { words: 2, live: 1 },
        Op::PutList {
            head: Src::Y(0),
            tail: Src::Const(Word::NIL),
            dst: x(1),
        },
        call(3, 2, CallKind::Last(1)),
        Op::Label(6),
        Op::Return,
    ];
    vec![(2, seq), (2, app), (1, nrev)]
}

fn to_vec(mut l: Word) -> Vec<i64> {
    let mut v = Vec::new();
    while let Some((h, t)) = l.as_cons() {
        v.push(h.small_value());
        l = t;
    }
    assert!(l.is_nil());
    v
}

#[test]
fn lists_survive_collections() {
    let mut p = Process::new(module(&lists()));
    let (l, _) = p.call(0, &[Word::fixnum(300), Word::NIL]);
    assert_eq!(to_vec(l), (1..=300).collect::<Vec<_>>());
    let (r, _) = p.call(2, &[l]);
    assert_eq!(to_vec(r), (1..=300).rev().collect::<Vec<_>>());
    // A list of 100,000 elements: deep recursion grows the heap, not the native stack.
    let (l, _) = p.call(0, &[Word::fixnum(100_000), Word::NIL]);
    let (l, _) = p.call(1, &[l, Word::NIL]);
    assert_eq!(to_vec(l), (1..=100_000).collect::<Vec<_>>());
}

#[test]
fn a_long_loop_needs_no_native_stack() {
    let sum = vec![
        Op::Label(1),
        Op::Compare {
            op: Compare::EqExact,
            a: X0,
            b: int(0),
            fail: 2,
        },
        mv(X1, x(0)),
        Op::Return,
        Op::Label(2),
        arith(ArithOp::Add, X1, X0, x(1), 2),
        arith(ArithOp::Sub, X0, int(1), x(0), 2),
        call(1, 2, CallKind::Only),
    ];
    // Ten million instructions: a frame each would need hundreds of megabytes.
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            let mut p = Process::new(module(&[(2, sum)]));
            let n = 2_500_000;
            let (v, _) = p.call(0, &[Word::fixnum(n), Word::fixnum(0)]);
            assert_eq!(v, Word::fixnum(n * (n + 1) / 2));
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[test]
fn arithmetic_leaves_the_small_range() {
    let ops = [
        ArithOp::Add,
        ArithOp::Sub,
        ArithOp::Mul,
        ArithOp::IntDiv,
        ArithOp::Rem,
        ArithOp::Band,
        ArithOp::Bor,
        ArithOp::Bxor,
        ArithOp::Bsl,
        ArithOp::Bsr,
    ];
    let functions: Vec<(u32, Vec<Op>)> = ops
        .iter()
        .enumerate()
        .map(|(i, op)| {
            (
                2,
                vec![
                    Op::Label(i as u32 + 1),
                    arith(*op, X0, X1, x(0), 2),
                    Op::Return,
                ],
            )
        })
        .collect();
    let mut p = Process::new(module(&functions));
    let max = Word::MAX_SMALL;
    let min = Word::MIN_SMALL;
    let mut check = |f: usize, a: i64, b: i64, expect: i128| {
        let (v, _) = p.call(f, &[Word::fixnum(a), Word::fixnum(b)]);
        let got = match v.as_small() {
            Some(v) => i128::from(v),
            None => {
                assert!(v.is_big(), "{a} {:?} {b}", ops[f]);
                let n = v.header().arity();
                let mut m = 0u128;
                for i in (1..=n).rev() {
                    m = m << 64 | u128::from(v.field(i));
                }
                if v.header().subtag() == beamr_term::Subtag::NegBig {
                    (m as i128).wrapping_neg()
                } else {
                    m as i128
                }
            }
        };
        assert_eq!(got, expect, "{a} {:?} {b}", ops[f]);
    };
    for (a, b) in [
        (max, 1),
        (min, -1),
        (max, max),
        (min, min),
        (min, max),
        (7, -2),
        (-7, 2),
        (0, 5),
        (min, 1),
        (12345, 678),
    ] {
        let (x, y) = (i128::from(a), i128::from(b));
        check(0, a, b, x + y);
        check(1, a, b, x - y);
        check(2, a, b, x * y);
        check(3, a, b, x / y);
        check(4, a, b, x % y);
        check(5, a, b, x & y);
        check(6, a, b, x | y);
        check(7, a, b, x ^ y);
    }
    for (a, n) in [
        (1, 58),
        (1, 59),
        (1, 60),
        (-1, 59),
        (-1, 60),
        (3, 64),
        (max, 1),
        (5, 0),
    ] {
        check(8, a, n, i128::from(a) << n);
        check(9, a, n, i128::from(a) >> n.min(120));
        check(8, a, -n, i128::from(a) >> n.min(120));
    }
    check(9, 1, -60, 1 << 60);
}

#[test]
fn tuples_and_selection() {
    // f(N) -> {ok, N, {N, [N|x]}}; g(T) -> the inner element; h(N) -> by table, hash, binary.
    let f = vec![
        Op::Label(1),
        Op::TestHeap { words: 9, live: 1 },
        Op::PutList {
            head: X0,
            tail: Src::Const(beamr_term::atoms::OK.word()),
            dst: x(1),
        },
        Op::PutTuple {
            elements: Box::new([X0, X1]),
            dst: x(1),
        },
        Op::PutTuple {
            elements: Box::new([Src::Const(beamr_term::atoms::OK.word()), X0, X1]),
            dst: x(0),
        },
        Op::Return,
    ];
    let g = vec![
        Op::Label(2),
        Op::IsTaggedTuple {
            src: X0,
            arity: 3,
            tag: beamr_term::atoms::OK.word(),
            fail: 3,
        },
        Op::GetTupleElement {
            src: x(0),
            index: 1,
            dst: x(1),
            checked: false,
        },
        Op::GetTupleElement {
            src: x(0),
            index: 2,
            dst: x(2),
            checked: false,
        },
        Op::Test {
            test: TypeTest::Tuple,
            src: X2,
            fail: 3,
        },
        Op::TestArity {
            src: X2,
            arity: 2,
            fail: 3,
            checked: false,
        },
        Op::GetTupleElement {
            src: x(2),
            index: 1,
            dst: x(0),
            checked: true,
        },
        Op::GetHd {
            src: x(0),
            dst: x(0),
            checked: true,
        },
        arith(ArithOp::Sub, X0, X1, x(0), 1),
        Op::Return,
        Op::Label(3),
        mv(int(-1), x(0)),
        Op::Return,
    ];
    let mut p = Process::new(module(&[(1, f), (1, g)]));
    for n in [0, 5, -9] {
        let (t, _) = p.call(0, &[Word::fixnum(n)]);
        assert_eq!(t.as_tuple().map(<[Word]>::len), Some(3));
        assert_eq!(p.call(1, &[t]).0, Word::fixnum(0));
    }
    assert_eq!(p.call(1, &[Word::NIL]).0, Word::fixnum(-1));

    for values in [
        vec![4],
        vec![-3, 9],
        vec![1, 2, 4],
        (-3..12).collect::<Vec<i64>>(),
        (0..20).map(|i| i * i * 7919).collect(),
        (0..700).map(|i| i * 1_000_003).collect(),
    ] {
        let pairs: Vec<(Word, Label)> = values
            .iter()
            .enumerate()
            .map(|(i, v)| (Word::fixnum(*v), i as u32 + 3))
            .collect();
        let mut code = vec![
            Op::Label(1),
            Op::SelectVal {
                src: X0,
                fail: 2,
                pairs: pairs.into(),
            },
            Op::Label(2),
            mv(int(-1), x(0)),
            Op::Return,
        ];
        for i in 0..values.len() {
            code.push(Op::Label(i as u32 + 3));
            code.push(mv(int(i as i64), x(0)));
            code.push(Op::Return);
        }
        let mut p = Process::new(module(&[(1, code)]));
        for (i, v) in values.iter().enumerate() {
            assert_eq!(p.call(0, &[Word::fixnum(*v)]).0, Word::fixnum(i as i64));
            let other = v + 1;
            let expect = values
                .iter()
                .position(|w| *w == other)
                .map_or(-1, |p| p as i64);
            assert_eq!(p.call(0, &[Word::fixnum(other)]).0, Word::fixnum(expect));
        }
        assert_eq!(p.call(0, &[Word::NIL]).0, Word::fixnum(-1));
        assert_eq!(
            p.call(0, &[Word::fixnum(Word::MIN_SMALL)]).0,
            Word::fixnum(-1)
        );
    }
}

#[test]
fn an_unknown_label_is_refused() {
    let code = vec![Op::Label(1), Op::Jump(7)];
    assert!(Process::try_new(module(&[(0, code)])).is_err());
}
