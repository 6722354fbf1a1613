//! Rows, stores and what patterns say about keys.

use std::sync::Arc;

use beamr_term::{AtomTable, Build, Fragment, Release, Tables, Word, atoms, order};
use beamr_vm::ets::{HashStore, Keep, Key, OrderedStore, Part, Row};
use beamr_vm::match_spec::key::{KeyPlan, compare_partly, keeps_key, plan};

fn tables() -> Arc<Tables> {
    Tables::new(Arc::new(AtomTable::new(0)), Release::OTP25)
}

fn pair(f: &mut Fragment, k: i64, v: i64) -> Word {
    f.tuple(&[Word::fixnum(k), Word::fixnum(v)])
}

fn put(h: &HashStore, tuple: Word, t: &Tables) {
    let key = tuple.term_field(1);
    let hash = HashStore::hash(key, t);
    let mut part = h.write(hash);
    let (at, found) = part.link(hash, key, 0, t);
    // SAFETY: the link is fresh.
    unsafe {
        if found {
            drop(part.replace(at, Row::new(tuple)));
        } else {
            part.insert(at, hash, Row::new(tuple));
        }
    }
}

fn key_of(r: &beamr_vm::ets::RowData) -> i64 {
    r.element(0).small_value()
}

#[test]
fn a_row_is_a_copy_of_everything() {
    let t = tables();
    let mut f = Fragment::with_capacity(64);
    let big = f.big(true, &[1, 2, 3]);
    let long = f.binary(&[7; 100]);
    let part = f.sub_bits(long, 8, 80 * 8);
    let short = f.binary(b"short");
    let list = f.list([Word::fixnum(1), big, short]);
    let map = beamr_term::maps::from_pairs(&mut f, &[(list, part), (atoms::OK.word(), big)], &t);
    let float = f.float(1.5);
    let none = beamr_term::empty_tuple();
    let term = f.tuple(&[list, map, long, part, float, none]);
    let row = Row::new(term);
    assert!(order::eq_exact(row.tuple(), term, &t));
    let mut g = Fragment::with_capacity(8);
    let copy = row.copy_to(&mut g);
    let mut binaries = Vec::new();
    row.binaries(|_, bytes, count| binaries.push((bytes, count)));
    drop(f);
    drop(row);
    // Only `g` is left, and the copy is whole.
    let again = Row::new(copy);
    assert!(order::eq_exact(again.tuple(), copy, &t));
    // The block of 100 bytes is held by three rows and copies, twice in each.
    assert_eq!(binaries[0].0, 100);
    assert!(binaries.iter().all(|b| b.1 >= 4));
}

#[test]
fn a_walk_sees_what_stays_once_while_the_table_grows_and_shrinks() {
    let t = tables();
    let h = HashStore::new(0);
    let mut f = Fragment::with_capacity(64);
    for k in 0..500 {
        put(&h, pair(&mut f, k, k), &t);
    }
    let mut seen = Vec::new();
    let mut from = Some(0);
    let mut round = 0;
    while let Some(at) = from {
        let mut n = 0;
        from = h.walk(at, |r| {
            seen.push(key_of(r));
            n += 1;
            n < 10
        });
        round += 1;
        // Odd keys below 500 stay; others come and go.
        for i in 0..40 {
            put(&h, pair(&mut f, 1000 + round * 40 + i, 0), &t);
        }
        let (_, gone, _) = h.walk_mut(0, true, |r| {
            let k = key_of(r);
            let go = k >= 1000 && k % 3 == 0 || k < 500 && k % 2 == 0;
            (if go { Keep::Go } else { Keep::Stay }, true)
        });
        assert!(gone.iter().all(|r| key_of(r) % 2 == 0 || key_of(r) >= 1000));
    }
    let mut odd: Vec<i64> = seen
        .iter()
        .copied()
        .filter(|k| *k < 500 && k % 2 == 1)
        .collect();
    odd.sort_unstable();
    let expected: Vec<i64> = (0..500).filter(|k| k % 2 == 1).collect();
    assert_eq!(odd, expected);
}

#[test]
fn rows_of_a_key_stay_together_in_order() {
    let t = tables();
    let h = HashStore::new(0);
    let mut f = Fragment::with_capacity(64);
    for v in 0..3 {
        for k in 0..200 {
            let tuple = pair(&mut f, k, v);
            let key = tuple.term_field(1);
            let hash = HashStore::hash(key, &t);
            let mut part = h.write(hash);
            let (at, _) = part.link(hash, key, 0, &t);
            // SAFETY: the link is fresh.
            unsafe { part.insert(at, hash, Row::new(tuple)) };
        }
    }
    assert_eq!(h.len(), 600);
    let mut all = Vec::new();
    h.walk(0, |r| {
        all.push((key_of(r), r.element(1).small_value()));
        true
    });
    for three in all.chunks(3) {
        let k = three[0].0;
        assert_eq!(three, [(k, 2), (k, 1), (k, 0)]);
    }
    let parts = h.clear();
    assert_eq!(parts.iter().map(Part::len).sum::<usize>(), 600);
    assert_eq!((h.len(), h.bytes()), (0, 0));
}

#[test]
fn every_bucket_once() {
    let t = tables();
    let h = HashStore::new(0);
    let mut f = Fragment::with_capacity(64);
    for k in 0..1000 {
        put(&h, pair(&mut f, k, 0), &t);
    }
    let mut n = 0;
    for b in 0..h.buckets() {
        assert!(h.bucket(b, |_| n += 1));
    }
    assert!(!h.bucket(h.buckets(), |_| n += 1));
    assert_eq!(n, 1000);
    assert_eq!(h.chain_lengths().iter().sum::<usize>(), 1000);
}

#[test]
fn ordered_rows_by_value_and_by_prefix() {
    let t = tables();
    let o = OrderedStore::new(0);
    let mut f = Fragment::with_capacity(64);
    let mut rows = o.write();
    let one = f.float(1.0);
    for k in [Word::fixnum(1), one] {
        let row = Row::new(f.tuple(&[k]));
        rows.put(row, 0, &t);
    }
    // 1 and 1.0 are one key, and the key is that of the row that came last.
    assert_eq!(rows.len(), 1);
    let key = Key::new(Word::fixnum(1), &t);
    assert!(rows.get(&key).is_some_and(|r| r.element(0).is_float()));
    for a in 0..5 {
        for b in 0..5 {
            let k = pair(&mut f, a, b);
            let row = Row::new(f.tuple(&[k]));
            rows.put(row, 0, &t);
        }
    }
    let any = atoms::UNDERSCORE.word();
    let pattern = f.tuple(&[Word::fixnum(3), any]);
    let mut seen = Vec::new();
    rows.walk(Some(Key::edge(pattern, true, &t)), false, |r| {
        let k = r.element(0);
        if compare_partly(pattern, k, &t).is_lt() {
            return false;
        }
        seen.push(k.term_field(2).small_value());
        true
    });
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    let mut back = Vec::new();
    rows.walk(Some(Key::edge(pattern, false, &t)), true, |r| {
        back.push(r.element(0).term_field(2).small_value());
        back.len() < 5
    });
    assert_eq!(back, [4, 3, 2, 1, 0]);
}

#[test]
fn plans() {
    let t = tables();
    let mut f = Fragment::with_capacity(64);
    let any = atoms::UNDERSCORE.word();
    let var = t.atoms.intern("$1").unwrap().word();
    let one = Word::fixnum(1);
    let bound = f.tuple(&[one, any]);
    let open = f.tuple(&[var, one]);
    let inner = f.tuple(&[one, var]);
    let partly = f.tuple(&[inner, any]);
    let short = beamr_term::empty_tuple();
    assert!(matches!(plan(&[bound], 0, false, &t), KeyPlan::Keys(k) if k == [one]));
    assert!(matches!(plan(&[bound, bound, short], 0, false, &t), KeyPlan::Keys(k) if k == [one]));
    assert!(matches!(plan(&[short], 0, true, &t), KeyPlan::Keys(k) if k.is_empty()));
    assert!(matches!(plan(&[open], 0, true, &t), KeyPlan::All));
    assert!(matches!(plan(&[any], 0, true, &t), KeyPlan::All));
    assert!(matches!(plan(&[partly], 0, false, &t), KeyPlan::All));
    assert!(
        matches!(plan(&[partly], 0, true, &t), KeyPlan::Range(a, b) if a == inner && b == inner)
    );
    assert!(
        matches!(plan(&[partly, bound], 0, true, &t), KeyPlan::Range(a, b) if a == one && b == inner)
    );
    // What select_replace accepts.
    let body = |f: &mut Fragment, t: Word| {
        let t = f.tuple(&[t]);
        f.list([t])
    };
    let same = f.tuple(&[var, any]);
    let same = body(&mut f, same);
    let other = f.tuple(&[one, var]);
    let other = body(&mut f, other);
    let whole = f.list([atoms::DOLLAR_UNDERSCORE.word()]);
    assert!(keeps_key(0, open, same, &t));
    assert!(!keeps_key(0, open, other, &t));
    assert!(keeps_key(0, open, whole, &t));
}
