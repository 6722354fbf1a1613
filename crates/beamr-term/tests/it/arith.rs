//! Arithmetic against what OTP 25, 27 and 29 answer (`data/arith.tsv`: operation, operands,
//! result of 25, result of 27 when it differs, result of 29 when that differs from 27).
//! Integers are hexadecimal, floats `f` and their IEEE bits.

use std::cmp::Ordering;

use beamr_term::arith::{self, ArithError, Int, Rounding};
use beamr_term::{Alloc, Build, Fragment, Release, Word, big};

fn value(heap: &mut Fragment, text: &str) -> Word {
    if let Some(bits) = text.strip_prefix('f') {
        return heap.float(f64::from_bits(u64::from_str_radix(bits, 16).unwrap()));
    }
    let (negative, digits) = match text.strip_prefix('-') {
        Some(d) => (true, d),
        None => (false, text),
    };
    let values: Vec<u8> = digits
        .chars()
        .map(|c| c.to_digit(16).unwrap() as u8)
        .collect();
    heap.big(negative, &big::from_digits(&values, 16))
}

fn text(w: Word) -> String {
    if let Some(f) = w.as_float() {
        return format!("f{:016X}", f.to_bits());
    }
    let mut buffer = 0;
    let i = Int::of(w, &mut buffer).unwrap();
    let mut out = Vec::new();
    if i.negative {
        out.push(b'-');
    }
    big::to_digits(&mut out, i.magnitude, 16, 1);
    // Integers that fit are small, and bignums have no zero on top.
    assert_eq!(
        w.is_small(),
        i.to_i64().is_some_and(|v| Word::small(v).is_some())
    );
    assert_ne!(i.magnitude.last(), Some(&0));
    String::from_utf8(out).unwrap()
}

fn run(heap: &mut Fragment, release: Release, op: &str, a: Word, b: Word) -> String {
    let r = release;
    let result = match op {
        "+" => arith::add(heap, r, a, b),
        "-" => arith::sub(heap, r, a, b),
        "*" => arith::mul(heap, r, a, b),
        "/" => arith::divide(heap, r, a, b),
        "div" => arith::int_div(heap, r, a, b),
        "rem" => arith::rem(heap, r, a, b),
        "band" => arith::band(heap, r, a, b),
        "bor" => arith::bor(heap, r, a, b),
        "bxor" => arith::bxor(heap, r, a, b),
        "bsl" => arith::bsl(heap, r, a, b),
        "bsr" => arith::bsr(heap, r, a, b),
        "neg" => arith::negate(heap, r, a),
        "bnot" => arith::bnot(heap, r, a),
        "abs" => arith::abs(heap, r, a),
        "trunc" => arith::to_integer(heap, a, Rounding::Trunc),
        "round" => arith::to_integer(heap, a, Rounding::Round),
        "floor" => arith::to_integer(heap, a, Rounding::Floor),
        "ceil" => arith::to_integer(heap, a, Rounding::Ceil),
        // A BIF's error, not an operator's.
        "float" => {
            return arith::to_float(r, a)
                .map(|f| text(heap.float(f)))
                .unwrap_or("badarg".into());
        }
        "cmp" => {
            let order = arith::compare_numbers(a, b);
            assert_eq!(arith::compare_numbers(b, a), order.reverse());
            assert_eq!(arith::numeric_eq(a, b), order == Ordering::Equal);
            return match order {
                Ordering::Less => "lt",
                Ordering::Equal => "eq",
                Ordering::Greater => "gt",
            }
            .into();
        }
        other => panic!("unknown operation {other}"),
    };
    match result {
        Ok(w) => text(w),
        Err(ArithError::Badarith) => "badarith".into(),
        Err(ArithError::SystemLimit) => "system_limit".into(),
    }
}

#[test]
fn agrees_with_otp() {
    let (mut lines, mut wrong) = (0, Vec::new());
    for line in include_str!("../data/arith.tsv").lines() {
        let column: Vec<&str> = line.split('\t').collect();
        let [op, a, b, r25, r27, r29] = column[..] else {
            panic!("{line}")
        };
        let r27 = if r27.is_empty() { r25 } else { r27 };
        let r29 = if r29.is_empty() { r27 } else { r29 };
        for (release, want) in [
            (Release::OTP25, r25),
            (Release::OTP27, r27),
            (Release::OTP29, r29),
        ] {
            let mut heap = Fragment::with_capacity(64);
            let x = value(&mut heap, a);
            let y = if b == "-" {
                Word::NIL
            } else {
                value(&mut heap, b)
            };
            let got = run(&mut heap, release, op, x, y);
            if got != want {
                wrong.push(format!("{op} {a} {b} of {release:?}: {got}, not {want}"));
            }
        }
        lines += 1;
    }
    assert!(lines > 400);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_numbers_have_arithmetic() {
    let mut heap = Fragment::with_capacity(64);
    let r = Release::OTP29;
    let nil = Word::NIL;
    let one = Word::fixnum(1);
    let tuple = heap.tuple(&[one]);
    let float = heap.float(1.0);
    for bad in [nil, tuple, Word::TRUE, Word::pid(3)] {
        for op in [
            "+", "-", "*", "/", "div", "rem", "band", "bor", "bxor", "bsl", "bsr",
        ] {
            assert_eq!(run(&mut heap, r, op, one, bad), "badarith");
            assert_eq!(run(&mut heap, r, op, bad, one), "badarith");
        }
        for op in ["neg", "bnot", "abs", "trunc"] {
            assert_eq!(run(&mut heap, r, op, bad, nil), "badarith");
        }
    }
    for op in ["div", "rem", "band", "bor", "bxor", "bsl", "bsr"] {
        assert_eq!(run(&mut heap, r, op, one, float), "badarith");
        assert_eq!(run(&mut heap, r, op, float, one), "badarith");
    }
    assert_eq!(run(&mut heap, r, "bnot", float, nil), "badarith");
}

#[test]
fn size_limits_of_the_releases() {
    // Bits of the largest integer: 4,194,240 from OTP 27 on, 33,554,368 before.
    for (release, bits) in [
        (Release::OTP25, 33_554_368),
        (Release::OTP27, 4_194_240),
        (Release::OTP29, 4_194_240),
    ] {
        let mut heap = Fragment::with_capacity(64);
        let one = Word::fixnum(1);
        let top = arith::bsl(&mut heap, release, one, Word::fixnum(bits - 1)).unwrap();
        let limit = Err(ArithError::SystemLimit);
        assert_eq!(
            arith::bsl(&mut heap, release, one, Word::fixnum(bits)),
            limit
        );
        assert_eq!(arith::add(&mut heap, release, top, top), limit);
        let most = arith::sub(&mut heap, release, top, one).unwrap();
        let most = arith::add(&mut heap, release, most, top).unwrap();
        assert_eq!(arith::add(&mut heap, release, most, one), limit);
        assert_eq!(arith::bnot(&mut heap, release, most), limit);
        assert!(arith::bnot(&mut heap, release, top).is_ok());
        assert_eq!(arith::mul(&mut heap, release, most, Word::fixnum(2)), limit);
        assert_eq!(arith::mul(&mut heap, release, most, most), limit);
        let huge = heap.big(false, &[0, 1]);
        let zero = Word::fixnum(0);
        let minus = Word::fixnum(-1);
        assert_eq!(arith::bsl(&mut heap, release, one, huge), limit);
        assert_eq!(arith::bsl(&mut heap, release, zero, huge), Ok(zero));
        assert_eq!(arith::bsr(&mut heap, release, minus, huge), Ok(minus));
        assert_eq!(arith::bsr(&mut heap, release, huge, huge), Ok(zero));
        assert_eq!(
            arith::bsr(&mut heap, release, one, Word::fixnum(Word::MIN_SMALL)),
            limit
        );
    }
}

#[test]
fn blocks_stay_walkable() {
    // Every word of a heap belongs to an object, whatever arithmetic left behind.
    let mut heap = Fragment::with_capacity(4096);
    let (start, _) = heap.range();
    let a = heap.big(false, &[0, 0, 0, 1]);
    let b = heap.big(false, &[u64::MAX, u64::MAX, u64::MAX]);
    let r = Release::OTP29;
    arith::sub(&mut heap, r, a, b).unwrap();
    arith::band(&mut heap, r, a, b).unwrap();
    arith::rem(&mut heap, r, a, b).unwrap();
    arith::add(&mut heap, r, a, b).unwrap();
    let (_, top) = heap.range();
    let mut p = start;
    while p < top {
        // SAFETY: `p` is at an object's header inside the used part of the block.
        let header = beamr_term::Header(unsafe { *p });
        assert!(header.raw_words() == header.arity());
        p = unsafe { p.add(header.arity() + 1) };
    }
    assert_eq!(p, top);
    let _ = heap.off_heap();
}
