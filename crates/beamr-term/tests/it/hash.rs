//! `phash2` and `phash` of the terms in `data/terms-*.txt`, as OTP 25, 27 and 29 gave them.

use std::task::Poll;

use crate::etf::{lines, releases};
use crate::maps::tables;
use beamr_term::etf::{DecodeOptions, decode};
use beamr_term::hash::{InternalHash, Phash2Walk, PhashWalk, internal_hash, phash, phash2};
use beamr_term::{Build, Fragment, Release, Word};

/// Whether a record's fields are not in the order of their names: OTP hashes their values in the
/// order of its atom numbers, which only for sorted names of one letter is known to be the same.
fn unsorted_record(w: Word) -> bool {
    let mut todo = vec![w];
    while let Some(t) = todo.pop() {
        if let Some((h, tl)) = t.as_cons() {
            todo.extend([h, tl]);
        } else if let Some(e) = t.as_tuple() {
            todo.extend(e);
        } else if t.is_map() {
            todo.extend(beamr_term::maps::iter(t).flat_map(|(k, v)| [k, v]));
        } else if t.subtag() == Some(beamr_term::Subtag::Record) {
            let names = &t.term_field(1).as_tuple().unwrap()[3..];
            if names.len() == 2 && names[0].bits() > names[1].bits() {
                return true;
            }
            todo.extend((2..=t.header().arity()).map(|i| t.term_field(i)));
        }
    }
    false
}

#[test]
fn hashes_are_those_of_otp() {
    for (release, terms, _) in releases() {
        let t = tables(release);
        // Gives the one-letter names their order.
        for c in 'a'..='z' {
            t.atoms.intern(&c.to_string()).unwrap();
        }
        let mut skipped = 0;
        for (i, l) in lines(terms).iter().enumerate() {
            let at = format!("{release:?} line {}", i + 1);
            let mut f = Fragment::with_capacity(256);
            let (w, _) = decode(&l.plain, &t, DecodeOptions::default(), &mut f).unwrap();
            if unsorted_record(w) {
                skipped += 1;
                continue;
            }
            assert_eq!(phash2(w, &t), l.phash2_32, "phash2, {at}");
            assert_eq!(phash2(w, &t) & ((1 << 27) - 1), l.phash2, "{at}");
            assert_eq!(phash(w, &t), l.phash, "phash, {at}");
            let mut p = Phash2Walk::new(w);
            let h = loop {
                if let Poll::Ready(h) = p.step(&t, &mut 1) {
                    break h;
                }
            };
            assert_eq!(h, l.phash2_32, "in steps, {at}");
            let mut p = PhashWalk::new(w);
            let h = loop {
                if let Poll::Ready(h) = p.step(&t, &mut 1) {
                    break h;
                }
            };
            assert_eq!(h, l.phash, "in steps, {at}");
            let mut p = InternalHash::new(w, 3);
            let h = loop {
                if let Poll::Ready(h) = p.step(&t, &mut 1) {
                    break h;
                }
            };
            assert_eq!(h, internal_hash(w, 3, &t), "in steps, {at}");
        }
        assert_eq!(skipped, usize::from(release == Release::OTP29));
    }
}

/// The internal hash decides the order of big maps, so it must not change by accident.
#[test]
fn the_internal_hash_is_fixed() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(64);
    let (a, b) = (f.binary(b"binary"), f.float(1.5));
    let l = f.list([a, b, Word::TRUE, Word::fixnum(-1)]);
    let m = beamr_term::maps::from_pairs(&mut f, &[(a, l)], &t);
    let tu = f.tuple(&[m, Word::pid(3)]);
    let got: Vec<u64> = [Word::fixnum(1), Word::TRUE, Word::NIL, a, b, l, tu]
        .map(|w| internal_hash(w, 0, &t))
        .to_vec();
    assert_eq!(got, FIXED);
}

const FIXED: [u64; 7] = [
    5629807276135950800,
    10260117139587026233,
    592825528966537202,
    4723722295527117979,
    12050374470475791924,
    5898248319821487751,
    11979394975202565943,
];

#[test]
fn deep_and_shared_terms() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 16);
    let mut w = Word::TRUE;
    for _ in 0..1_000_000 {
        let c = f.cons(w, Word::NIL);
        w = f.tuple(&[c]);
    }
    // The same as a shallower computation would give is checked above; here it must only end.
    assert_eq!(phash2(w, &t), phash2(w, &t));
    assert_eq!(phash(w, &t), phash(w, &t));
    let mut shared = Word::NIL;
    for _ in 0..100 {
        shared = f.cons(shared, shared);
    }
    assert!(Phash2Walk::new(shared).step(&t, &mut 10_000).is_pending());
    assert!(PhashWalk::new(shared).step(&t, &mut 10_000).is_pending());
}
