//! Order and equality.

use std::cmp::Ordering;
use std::task::Poll;

use crate::bits::Rng;
use crate::maps::tables;
use beamr_term::order::{CompareWalk, EqualWalk, Mode, compare, compare_exact, eq, eq_exact};
use beamr_term::{Build, Fragment, Release, Tables, Word, maps};

fn check(a: Word, b: Word, t: &Tables) -> Ordering {
    let o = compare(a, b, t);
    assert_eq!(compare(b, a, t), o.reverse());
    assert_eq!(eq(a, b, t), o.is_eq());
    assert_eq!(eq(b, a, t), o.is_eq());
    let x = compare_exact(a, b, t);
    assert_eq!(compare_exact(b, a, t), x.reverse());
    assert_eq!(eq_exact(a, b, t), x.is_eq());
    // In small steps.
    for (mode, want) in [(Mode::Value, o), (Mode::Exact, x)] {
        let mut w = CompareWalk::new(a, b, mode);
        let got = loop {
            if let Poll::Ready(o) = w.step(t, &mut 1) {
                break o;
            }
        };
        assert_eq!(got, want);
        let mut w = EqualWalk::new(a, b, mode);
        let got = loop {
            if let Poll::Ready(o) = w.step(t, &mut 1) {
                break o;
            }
        };
        assert_eq!(got, want.is_eq());
    }
    o
}

#[test]
fn integers_and_floats_compare_by_exact_value() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 10);
    // (integer, float, order), from erl.
    let two60 = 1i64 << 60;
    let cases = [
        (f.integer(0), 0.0, Ordering::Equal),
        (f.integer(0), -0.0, Ordering::Equal),
        (f.integer(1), 1.5, Ordering::Less),
        (f.integer(-1), -1.5, Ordering::Greater),
        (f.integer(two60), 1152921504606846976.0, Ordering::Equal),
        (
            f.integer(two60 + 1),
            1152921504606846976.0,
            Ordering::Greater,
        ),
        (f.integer(two60 - 1), 1152921504606846976.0, Ordering::Less),
        (
            f.integer((1 << 59) - 1),
            576460752303423488.0,
            Ordering::Less,
        ),
        (
            f.integer(-(1 << 59)),
            -576460752303423488.0,
            Ordering::Equal,
        ),
        (
            f.integer(-two60 - 1),
            -1152921504606846976.0,
            Ordering::Less,
        ),
        (f.integer(5), 1e300, Ordering::Less),
        (f.integer(-5), -1e300, Ordering::Greater),
        (
            f.big(false, &[0, 1]),
            18446744073709551616.0,
            Ordering::Equal,
        ),
        (
            f.big(false, &[1, 1]),
            18446744073709551616.0,
            Ordering::Greater,
        ),
        (
            f.big(false, &[u64::MAX, u64::MAX]),
            3.402823669209385e38,
            Ordering::Less,
        ),
        (f.big(true, &[0, 0, 1]), -3.5e38, Ordering::Greater),
        (
            f.big(true, &[0, 0, 1]),
            -f64::from_bits(0x47F0_0000_0000_0000),
            Ordering::Equal,
        ),
        (f.big(false, &[0; 17]), 1.0, Ordering::Less),
        (f.big(false, &[1; 17]), f64::MAX, Ordering::Greater),
        (f.big(false, &[1; 16]), f64::MAX, Ordering::Less),
        (f.big(false, &[u64::MAX; 16]), f64::MAX, Ordering::Greater),
        (f.integer(i64::MAX), 0.5, Ordering::Greater),
        (f.integer(i64::MIN), -0.5, Ordering::Less),
        (f.integer(i64::MIN), 1.0e-300, Ordering::Less),
    ];
    for (i, v, want) in cases {
        let w = f.float(v);
        assert_eq!(check(i, w, &t), want, "{i:?} {v}");
        assert_eq!(compare_exact(i, w, &t), Ordering::Less);
    }
}

#[test]
fn random_big_maps_compare_as_their_sorted_pairs() {
    let t = tables(Release::OTP27);
    let mut r = Rng(21);
    for round in 0..400 {
        let mut f = Fragment::with_capacity(1 << 14);
        let n = 33 + r.below(60);
        let mut a: Vec<(Word, Word)> = (0..n)
            .map(|i| (Word::fixnum(i as i64 * 3), Word::fixnum(r.below(3) as i64)))
            .collect();
        let mut b = a.clone();
        // Change some keys or values of one side.
        for _ in 0..r.below(4) {
            let i = r.below(n) as usize;
            if round % 2 == 0 {
                b[i].1 = Word::fixnum(r.below(3) as i64);
            } else {
                b[i].0 = Word::fixnum(r.below(3 * n) as i64);
            }
        }
        if round % 3 == 0 {
            // Keys that are themselves big maps.
            for p in a.iter_mut().chain(&mut b) {
                let k = p.0.small_value();
                let inner: Vec<(Word, Word)> = (0..40)
                    .map(|i| (Word::fixnum(i), Word::fixnum(i + k)))
                    .collect();
                p.0 = maps::from_pairs(&mut f, &inner, &t);
            }
        }
        let (ma, mb) = (
            maps::from_pairs(&mut f, &a, &t),
            maps::from_pairs(&mut f, &b, &t),
        );
        let sorted = |m: Word| {
            let mut v: Vec<(Word, Word)> = maps::iter(m).collect();
            v.sort_by(|x, y| compare_exact(x.0, y.0, &t));
            v
        };
        let (sa, sb) = (sorted(ma), sorted(mb));
        let mut want = sa.len().cmp(&sb.len());
        for (x, y) in sa.iter().zip(&sb) {
            want = want.then_with(|| compare_exact(x.0, y.0, &t));
        }
        for (x, y) in sa.iter().zip(&sb) {
            want = want.then_with(|| compare(x.1, y.1, &t));
        }
        assert_eq!(check(ma, mb, &t), want, "round {round}");
    }
}

#[test]
fn deep_terms_need_no_stack() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 20);
    let deep = |f: &mut Fragment, end: Word| {
        let mut w = end;
        for i in 0..3_000_000 {
            w = if i % 2 == 0 {
                f.cons(w, Word::NIL)
            } else {
                f.tuple(&[w])
            };
        }
        w
    };
    let one = f.float(1.0);
    let (a, b, c) = (
        deep(&mut f, Word::fixnum(1)),
        deep(&mut f, Word::fixnum(1)),
        deep(&mut f, one),
    );
    assert!(eq_exact(a, b, &t) && !eq_exact(a, c, &t) && eq(a, c, &t));
    assert_eq!(compare(a, b, &t), Ordering::Equal);
    assert_eq!(compare_exact(a, c, &t), Ordering::Less);
    assert_eq!(
        beamr_term::hash::internal_hash(a, 0, &t),
        beamr_term::hash::internal_hash(b, 0, &t)
    );
}

#[test]
fn exponentially_shared_terms_stop_at_the_budget() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 12);
    let shared = |f: &mut Fragment| {
        let mut w = Word::NIL;
        for _ in 0..200 {
            w = f.cons(w, w);
        }
        w
    };
    let (a, b) = (shared(&mut f), shared(&mut f));
    let mut budget = 100_000;
    assert!(
        EqualWalk::new(a, b, Mode::Exact)
            .step(&t, &mut budget)
            .is_pending()
    );
    assert!(budget <= 0);
    budget = 100_000;
    assert!(
        CompareWalk::new(a, b, Mode::Value)
            .step(&t, &mut budget)
            .is_pending()
    );
    assert!(budget <= 0);
    budget = 100_000;
    assert!(
        beamr_term::hash::InternalHash::new(a, 0)
            .step(&t, &mut budget)
            .is_pending()
    );
}

/// Every pair of about a hundred terms compares as OTP 25, 27 and 29 say (`data/order-*.txt`):
/// `e` is `=:=`, `=` is `==` only; the second row is the order of map keys.
#[test]
fn pairs_compare_as_in_otp() {
    for (release, _, text) in crate::etf::releases() {
        let t = tables(release);
        let mut f = Fragment::with_capacity(1 << 14);
        let rows: Vec<(Word, &str, &str)> = text
            .lines()
            .map(|l| {
                let mut it = l.split(' ');
                let hex = it.next().unwrap();
                let bytes: Vec<u8> = (0..hex.len())
                    .step_by(2)
                    .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
                    .collect();
                let o = beamr_term::etf::DecodeOptions::default();
                let (w, _) = beamr_term::etf::decode(&bytes, &t, o, &mut f).unwrap();
                (w, it.next().unwrap(), it.next().unwrap())
            })
            .collect();
        for (i, (a, value, exact)) in rows.iter().enumerate() {
            for (j, (b, _, _)) in rows.iter().enumerate() {
                let at = format!("{release:?} lines {} and {}", i + 1, j + 1);
                let want = value.as_bytes()[j];
                let got = match check(*a, *b, &t) {
                    Ordering::Less => b'<',
                    Ordering::Greater => b'>',
                    Ordering::Equal if eq_exact(*a, *b, &t) => b'e',
                    Ordering::Equal => b'=',
                };
                assert_eq!(got as char, want as char, "{at}");
                let got = match compare_exact(*a, *b, &t) {
                    Ordering::Less => b'<',
                    Ordering::Greater => b'>',
                    Ordering::Equal => b'=',
                };
                assert_eq!(got as char, exact.as_bytes()[j] as char, "{at} as keys");
            }
        }
    }
}
