//! Terms that take few words and are endless when written out, and very deep ones.

use std::cmp::Ordering;
use std::sync::Arc;

use beamr_term::copy::{CopyMode, Copying};
use beamr_term::hash::internal_hash;
use beamr_term::{AtomTable, Build, Fragment, Release, Tables, Word, maps, order};

fn tables() -> Arc<Tables> {
    Tables::new(Arc::new(AtomTable::new(0)), Release::OTP27)
}

/// 2^levels leaves, in objects of every kind that has terms inside.
fn shared(f: &mut Fragment, t: &Tables, levels: usize, leaf: Word) -> Word {
    let mut w = leaf;
    for i in 0..levels {
        w = match i % 4 {
            0 => f.cons(w, w),
            1 => f.tuple(&[w, Word::TRUE, w]),
            2 => maps::from_pairs(f, &[(Word::fixnum(1), w), (Word::fixnum(2), w)], t),
            _ => f.list([w, Word::NIL, w]),
        };
    }
    w
}

#[test]
fn shared_terms_compare() {
    let t = tables();
    let mut f = Fragment::with_capacity(1 << 12);
    let int = Word::fixnum;
    let a = shared(&mut f, &t, 200, int(5));
    let b = shared(&mut f, &t, 200, int(5));
    let c = shared(&mut f, &t, 200, int(6));
    let x = f.float(5.0);
    let d = shared(&mut f, &t, 200, x);
    assert!(order::eq_exact(a, b, &t) && order::eq(a, b, &t) && order::eq(a, d, &t));
    assert!(!order::eq_exact(a, c, &t) && !order::eq_exact(a, d, &t) && !order::eq(a, c, &t));
    assert_eq!(order::compare(a, b, &t), Ordering::Equal);
    assert_eq!(order::compare(a, c, &t), Ordering::Less);
    assert_eq!(order::compare(c, b, &t), Ordering::Greater);
    assert_eq!(order::compare_exact(a, d, &t), Ordering::Less);
    // The difference is behind what is endless.
    let (p, q) = (f.tuple(&[a, int(1)]), f.tuple(&[b, int(2)]));
    assert_eq!(order::compare(p, q, &t), Ordering::Less);
    assert!(!order::eq_exact(p, q, &t));
    let (p, q) = (f.tuple(&[a, a, int(1)]), f.tuple(&[a, b, int(1)]));
    assert!(order::eq_exact(p, q, &t));
}

/// Every suffix of a list against every suffix of an equal one: what was compared is not compared again.
#[test]
fn suffixes_compare_once() {
    let t = tables();
    let n = 20_000;
    let mut f = Fragment::with_capacity(1 << 18);
    let suffixes = |f: &mut Fragment| {
        let mut l = Word::NIL;
        let mut all = Vec::new();
        for i in 0..n {
            let x = f.float(f64::from(i));
            l = f.cons(x, l);
            all.push(l);
        }
        all.reverse();
        f.tuple(&all)
    };
    let (a, b) = (suffixes(&mut f), suffixes(&mut f));
    assert!(order::eq_exact(a, b, &t));
    assert_eq!(order::compare(a, b, &t), Ordering::Equal);
    assert_eq!(internal_hash(a, 0, &t), internal_hash(b, 0, &t));
}

#[test]
fn shared_terms_hash() {
    let t = tables();
    let mut f = Fragment::with_capacity(1 << 12);
    let a = shared(&mut f, &t, 200, Word::fixnum(5));
    let b = shared(&mut f, &t, 200, Word::fixnum(5));
    let c = shared(&mut f, &t, 200, Word::fixnum(6));
    for salt in [0, 1] {
        assert_eq!(internal_hash(a, salt, &t), internal_hash(b, salt, &t));
        assert_ne!(internal_hash(a, salt, &t), internal_hash(c, salt, &t));
    }
    let pairs: Vec<(Word, Word)> = (0..100)
        .map(|i| (f.tuple(&[a, Word::fixnum(i)]), Word::fixnum(i)))
        .collect();
    let m = maps::from_pairs(&mut f, &pairs, &t);
    assert_eq!(maps::size(m), 100);
    let key = f.tuple(&[b, Word::fixnum(77)]);
    assert_eq!(maps::get(m, key, &t), Some(Word::fixnum(77)));
}

/// A flat term and the same term with sharing have one hash, however long the walk was.
#[test]
fn sharing_does_not_show_in_hashes() {
    let t = tables();
    let mut f = Fragment::with_capacity(1 << 12);
    let item = f.tuple(&[Word::fixnum(1), Word::fixnum(2)]);
    let a = f.list((0..400_000).map(|_| item));
    let items: Vec<Word> = (0..400_000)
        .map(|_| f.tuple(&[Word::fixnum(1), Word::fixnum(2)]))
        .collect();
    let b = f.list(items);
    assert_eq!(internal_hash(a, 0, &t), internal_hash(b, 0, &t));
    assert!(order::eq_exact(a, b, &t));
}

#[test]
fn copies_keep_sharing_when_they_must() {
    let t = tables();
    let mut f = Fragment::with_capacity(1 << 12);
    let leaf = f.binary(&[7; 100]);
    let a = shared(&mut f, &t, 200, leaf);
    let c = Copying::new(a, CopyMode::Share);
    assert!(c.words() < 2000, "{}", c.words());
    let words = c.words();
    let mut to = Fragment::with_capacity(words);
    let b = c.make(&mut to);
    assert_eq!(to.total_used(), words);
    assert!(a != b && order::eq_exact(a, b, &t));
    // Ordinary terms are copied flat.
    let item = f.tuple(&[Word::fixnum(1), leaf]);
    let l = f.list([item, item]);
    let c = Copying::new(l, CopyMode::Share);
    let flat = beamr_term::copy::size_in_words(l, CopyMode::Share, usize::MAX);
    assert_eq!(Some(c.words()), flat);
}

/// Long terms without sharing come out whole from the copy that looks for it.
#[test]
fn large_copies() {
    let t = tables();
    let mut f = Fragment::with_capacity(1 << 12);
    let mut deep = Word::NIL;
    for i in 0..300_000 {
        deep = if i % 2 == 0 {
            f.cons(deep, Word::fixnum(i))
        } else {
            f.tuple(&[deep])
        };
    }
    let floats: Vec<Word> = (0..300_000).map(|i| f.float(f64::from(i))).collect();
    let long = f.list(floats);
    for w in [deep, long] {
        let c = Copying::new(w, CopyMode::Share);
        let flat = beamr_term::copy::size_in_words(w, CopyMode::Share, usize::MAX);
        assert_eq!(Some(c.words()), flat);
        let words = c.words();
        let mut to = Fragment::with_capacity(words);
        let b = c.make(&mut to);
        assert_eq!(to.total_used(), words);
        assert!(order::eq_exact(w, b, &t));
    }
}
