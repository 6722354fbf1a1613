//! Maps against a model, shapes, sharing.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bits::Rng;
use beamr_term::{AtomTable, Build, Fragment, Release, Subtag, Tables, Word, maps, order};

pub fn tables(release: Release) -> Arc<Tables> {
    Tables::new(Arc::new(AtomTable::new(0)), release)
}

/// A key of some type for a number.
fn key(f: &mut Fragment, t: &Tables, n: u64) -> Word {
    match n % 5 {
        0 => Word::fixnum(n as i64),
        1 => t.atoms.intern(&format!("key{n}")).unwrap().word(),
        2 => f.binary(format!("key{n}").as_bytes()),
        3 => f.float(n as f64),
        _ => {
            let b = f.big(n.is_multiple_of(2), &[n, 1]);
            f.tuple(&[b, Word::NIL])
        }
    }
}

fn check(map: Word, model: &BTreeMap<u64, i64>, f: &mut Fragment, t: &Tables) {
    assert_eq!(maps::size(map), model.len());
    let flat = map.subtag() == Some(Subtag::FlatMap);
    assert_eq!(flat, model.len() <= 32);
    let mut seen = 0;
    let mut last = None;
    for (k, v) in maps::iter(map) {
        assert_eq!(maps::get(map, k, t), Some(v));
        if let (Some(l), true) = (last, flat) {
            assert!(order::compare_exact(l, k, t).is_lt());
        }
        last = Some(k);
        seen += 1;
    }
    assert_eq!(seen, model.len());
    for (n, v) in model {
        let k = key(f, t, *n);
        assert_eq!(maps::get(map, k, t), Some(Word::fixnum(*v)));
    }
    // The same pairs in another order give an equal map of the same shape and order.
    let pairs: Vec<(Word, Word)> = model
        .iter()
        .rev()
        .map(|(n, v)| (key(f, t, *n), Word::fixnum(*v)))
        .collect();
    let again = maps::from_pairs(f, &pairs, t);
    assert!(order::eq_exact(map, again, t));
    assert!(order::compare(map, again, t).is_eq());
    let a: Vec<Word> = maps::iter(map).map(|p| p.1).collect();
    let b: Vec<Word> = maps::iter(again).map(|p| p.1).collect();
    assert_eq!(a, b);
    for start in [0, 1.min(seen), seen / 2, seen] {
        let rest: Vec<Word> = maps::iter_from(map, start).map(|p| p.1).collect();
        assert_eq!(rest, a[start..]);
    }
}

#[test]
fn maps_agree_with_a_model() {
    let t = tables(Release::OTP27);
    let mut r = Rng(5);
    for range in [8, 40, 64, 700] {
        let mut f = Fragment::with_capacity(1 << 16);
        let mut map = maps::empty(&mut f);
        let mut model = BTreeMap::new();
        for step in 0..4000u64 {
            let n = r.below(range);
            let k = key(&mut f, &t, n);
            match r.below(6) {
                0..=2 => {
                    let v = step as i64;
                    map = maps::put(&mut f, map, k, Word::fixnum(v), &t);
                    model.insert(n, v);
                }
                3 => {
                    let v = step as i64;
                    let u = maps::update_exact(&mut f, map, k, Word::fixnum(v), &t);
                    assert_eq!(u.is_some(), model.contains_key(&n));
                    if let Some(m) = u {
                        map = m;
                        model.insert(n, v);
                    }
                }
                _ => {
                    let gone = maps::take(&mut f, map, k, &t);
                    assert_eq!(gone.map(|g| g.1), model.remove(&n).map(Word::fixnum));
                    if let Some((m, _)) = gone {
                        map = m;
                        assert!(!maps::has_key(map, k, &t));
                    }
                }
            }
            if step % 97 == 0 {
                check(map, &model, &mut f, &t);
            }
        }
        check(map, &model, &mut f, &t);
    }
}

#[test]
fn merging_and_many_puts() {
    let t = tables(Release::OTP27);
    let mut r = Rng(9);
    for _ in 0..300 {
        let mut f = Fragment::with_capacity(1 << 14);
        let mut side = |f: &mut Fragment| {
            let n = [0, 1, 5, 20, 40, 300][r.below(6) as usize];
            let mut model = BTreeMap::new();
            for _ in 0..n {
                model.insert(r.below(400), r.below(1000) as i64);
            }
            let pairs: Vec<(Word, Word)> = model
                .iter()
                .map(|(n, v)| (key(f, &t, *n), Word::fixnum(*v)))
                .collect();
            (maps::from_pairs(f, &pairs, &t), pairs, model)
        };
        let (a, _, mut ma) = side(&mut f);
        let (b, pb, mb) = side(&mut f);
        let m = maps::merge(&mut f, a, b, &t);
        let p = maps::put_all(&mut f, a, &pb, &t);
        ma.extend(mb);
        check(m, &ma, &mut f, &t);
        check(p, &ma, &mut f, &t);
        let again = maps::put_all(&mut f, m, &pb, &t);
        assert!(order::eq_exact(again, m, &t));
        let same = maps::merge(&mut f, m, m, &t);
        assert_eq!(same, m);
    }
}

#[test]
fn updates_share_what_they_can() {
    let t = tables(Release::OTP25);
    let mut f = Fragment::with_capacity(64);
    let (a, b) = (Word::fixnum(1), Word::fixnum(2));
    let m = maps::from_pairs(&mut f, &[(b, a), (a, a), (b, b)], &t);
    let n = maps::put(&mut f, m, a, b, &t);
    assert_eq!(m.term_field(1), n.term_field(1));
    let same = maps::put(&mut f, n, a, b, &t);
    assert_eq!(same, n);
    assert_eq!(
        maps::update_all_exact(&mut f, m, &[(Word::NIL, a)], &t),
        Err(Word::NIL)
    );
    let u = maps::update_all_exact(&mut f, m, &[(a, b), (b, a)], &t).unwrap();
    assert_eq!(u.term_field(1), m.term_field(1));
    let k = maps::keys(&mut f, u);
    assert_eq!(
        (k.head(), k.tail().head(), k.tail().tail()),
        (a, b, Word::NIL)
    );
    let l = maps::to_list(&mut f, u);
    assert_eq!(l.head().as_tuple().unwrap(), &[a, b]);
    // One pair fewer: merged keys equal those of one side.
    let one = maps::from_pairs(&mut f, &[(a, Word::NIL)], &t);
    let w = maps::merge(&mut f, u, one, &t);
    assert_eq!(w.term_field(1), u.term_field(1));
    assert_eq!(maps::get(w, a, &t), Some(Word::NIL));
    let e = maps::empty(&mut f);
    assert_eq!(maps::merge(&mut f, e, w, &t), w);
    assert_eq!(maps::keys(&mut f, e), Word::NIL);
}

#[test]
fn zeros_are_one_key_or_two() {
    for (release, n) in [(Release::OTP25, 1), (Release::OTP27, 2)] {
        let t = tables(release);
        let mut f = Fragment::with_capacity(64);
        let (p, m) = (f.float(0.0), f.float(-0.0));
        let map = maps::from_pairs(&mut f, &[(p, p), (m, m)], &t);
        assert_eq!(maps::size(map), n);
        let mut many: Vec<(Word, Word)> = (0..40).map(|i| (Word::fixnum(i), p)).collect();
        many.extend([(p, p), (m, m)]);
        let map = maps::from_pairs(&mut f, &many, &t);
        assert_eq!(maps::size(map), 40 + n);
    }
}

/// Two keys that differ only in the part of an atom that its table entry does not summarise.
#[test]
fn colliding_hashes_are_told_apart_by_a_salt() {
    let t = tables(Release::OTP27);
    let mut f = Fragment::with_capacity(1 << 12);
    // 'commonpr' is the prefix; these tails have the same shift-and-xor hash and length.
    let texts = ["commonprAQ", "commonprBA"];
    let atoms: Vec<Word> = texts
        .iter()
        .map(|s| t.atoms.intern(s).unwrap().word())
        .collect();
    let e: Vec<_> = texts
        .iter()
        .map(|s| t.atoms.entry(t.atoms.lookup(s).unwrap()).hash)
        .collect();
    assert_eq!(e[0], e[1]);
    assert_eq!(
        beamr_term::hash::internal_hash(atoms[0], 0, &t),
        beamr_term::hash::internal_hash(atoms[1], 0, &t)
    );
    let mut pairs: Vec<(Word, Word)> = (0..40)
        .map(|i| (Word::fixnum(i), Word::fixnum(i)))
        .collect();
    pairs.extend(atoms.iter().map(|a| (*a, *a)));
    let built = maps::from_pairs(&mut f, &pairs, &t);
    let mut put = maps::from_pairs(&mut f, &pairs[..40], &t);
    for a in &atoms {
        put = maps::put(&mut f, put, *a, *a, &t);
    }
    assert!(order::eq_exact(built, put, &t));
    for a in &atoms {
        assert_eq!(maps::get(built, *a, &t), Some(*a));
    }
    let gone = maps::remove(&mut f, put, atoms[0], &t);
    assert_eq!(maps::get(gone, atoms[1], &t), Some(atoms[1]));
    assert_eq!(maps::get(gone, atoms[0], &t), None);
    let without = maps::from_pairs(&mut f, &[&pairs[..40], &pairs[41..]].concat(), &t);
    assert!(order::eq_exact(gone, without, &t));
}
