//! Flat maps.

use std::cmp::Ordering;

use super::trie;
use crate::alloc::Alloc;
use crate::header::{Header, MAX_FLAT_MAP, Subtag};
use crate::literal::empty_tuple;
use crate::order::{compare_exact, eq_exact};
use crate::tables::Tables;
use crate::word::Word;

/// A flat map over a tuple of keys.
pub(super) fn make(alloc: &mut impl Alloc, keys: Word, values: &[Word]) -> Word {
    let p = alloc.alloc(values.len() + 2);
    // SAFETY: the fresh words of the map.
    unsafe {
        *p = Header::new(Subtag::FlatMap, values.len() + 1).0;
        *p.add(1) = keys.bits();
        std::ptr::copy_nonoverlapping(values.as_ptr().cast::<u64>(), p.add(2), values.len());
        Word::boxed(p)
    }
}

#[inline]
pub(super) fn keys_of<'a>(map: Word) -> &'a [Word] {
    map.term_field(1).as_tuple().unwrap_or(&[])
}

#[inline]
fn values_of<'a>(map: Word) -> &'a [Word] {
    let n = map.header().arity() - 1;
    // SAFETY: the values follow the keys; `Word` is transparent.
    unsafe { std::slice::from_raw_parts(map.ptr().add(2).cast::<Word>(), n) }
}

/// The index of a key.
#[inline]
pub(super) fn find(map: Word, key: Word, tables: &Tables) -> Option<usize> {
    let keys = keys_of(map);
    if key.is_immediate() {
        return keys.iter().position(|k| *k == key);
    }
    keys.iter().position(|k| eq_exact(*k, key, tables))
}

/// The index of a key, or where it belongs.
fn search(keys: &[Word], key: Word, tables: &Tables) -> Result<usize, usize> {
    keys.binary_search_by(|k| compare_exact(*k, key, tables))
}

/// The map with another value at an index.
pub(super) fn with_value(alloc: &mut impl Alloc, map: Word, index: usize, value: Word) -> Word {
    if map.term_field(index + 2) == value {
        return map;
    }
    let values = values_of(map);
    let w = make(alloc, map.term_field(1), values);
    // SAFETY: the index is within the fresh map.
    unsafe { *w.ptr().add(index + 2) = value.bits() };
    w
}

/// See [`super::put`].
pub(super) fn put(
    alloc: &mut impl Alloc,
    map: Word,
    key: Word,
    value: Word,
    tables: &Tables,
) -> Word {
    if let Some(i) = find(map, key, tables) {
        return with_value(alloc, map, i, value);
    }
    let keys = keys_of(map);
    let n = keys.len();
    if n == MAX_FLAT_MAP {
        let mut pairs: Vec<(Word, Word)> = keys
            .iter()
            .copied()
            .zip(values_of(map).iter().copied())
            .collect();
        pairs.push((key, value));
        return trie::from_pairs(alloc, &pairs, tables);
    }
    let at = match search(keys, key, tables) {
        Ok(i) | Err(i) => i,
    };
    // One block: the keys, then the map.
    let p = alloc.alloc(n + 2 + n + 3);
    let values = values_of(map);
    // SAFETY: `2n + 5` fresh words hold a tuple of `n + 1` keys and a map of `n + 1` pairs.
    unsafe {
        *p = Header::new(Subtag::Tuple, n + 1).0;
        insert(p.add(1), keys, at, key);
        let m = p.add(n + 2);
        *m = Header::new(Subtag::FlatMap, n + 2).0;
        *m.add(1) = Word::boxed(p).bits();
        insert(m.add(2), values, at, value);
        Word::boxed(m)
    }
}

/// Writes `from` with `extra` before index `at`.
///
/// # Safety
/// There is room for one more word than `from` has.
unsafe fn insert(to: *mut u64, from: &[Word], at: usize, extra: Word) {
    let f = from.as_ptr().cast::<u64>();
    std::ptr::copy_nonoverlapping(f, to, at);
    *to.add(at) = extra.bits();
    std::ptr::copy_nonoverlapping(f.add(at), to.add(at + 1), from.len() - at);
}

/// See [`super::take`].
pub(super) fn take(
    alloc: &mut impl Alloc,
    map: Word,
    key: Word,
    tables: &Tables,
) -> Option<(Word, Word)> {
    let i = find(map, key, tables)?;
    let (keys, values) = (keys_of(map), values_of(map));
    let rest = |s: &[Word]| -> Vec<Word> { s[..i].iter().chain(&s[i + 1..]).copied().collect() };
    Some((
        super::from_sorted(alloc, &rest(keys), &rest(values)),
        values[i],
    ))
}

/// Up to one flat map of pairs on the Rust stack, kept sorted.
struct Buffer {
    n: usize,
    keys: [Word; MAX_FLAT_MAP],
    values: [Word; MAX_FLAT_MAP],
}

/// See [`super::put_all`].
pub(super) fn put_all(
    alloc: &mut impl Alloc,
    map: Word,
    pairs: &[(Word, Word)],
    tables: &Tables,
) -> Word {
    let (keys, values) = (keys_of(map), values_of(map));
    let n = keys.len();
    let mut b = Buffer {
        n,
        keys: [Word::NONE; MAX_FLAT_MAP],
        values: [Word::NONE; MAX_FLAT_MAP],
    };
    b.keys[..n].copy_from_slice(keys);
    b.values[..n].copy_from_slice(values);
    let mut grew = false;
    for (done, (k, v)) in pairs.iter().enumerate() {
        if let Some(i) = find(map, *k, tables)
            && !grew
        {
            b.values[i] = *v;
            continue;
        }
        match search(&b.keys[..b.n], *k, tables) {
            Ok(i) => b.values[i] = *v,
            Err(_) if b.n == MAX_FLAT_MAP => {
                let mut all: Vec<(Word, Word)> = b.keys[..b.n]
                    .iter()
                    .copied()
                    .zip(b.values[..b.n].iter().copied())
                    .collect();
                all.extend_from_slice(&pairs[done..]);
                return trie::from_pairs(alloc, &all, tables);
            }
            Err(i) => {
                grew = true;
                b.keys.copy_within(i..b.n, i + 1);
                b.values.copy_within(i..b.n, i + 1);
                b.keys[i] = *k;
                b.values[i] = *v;
                b.n += 1;
            }
        }
    }
    if grew {
        super::from_sorted(alloc, &b.keys[..b.n], &b.values[..b.n])
    } else if b.values[..n] == *values {
        map
    } else {
        make(alloc, map.term_field(1), &b.values[..n])
    }
}

/// A map of at most [`MAX_FLAT_MAP`] pairs in any order; of equal keys the last wins.
pub(super) fn from_unsorted(
    alloc: &mut impl Alloc,
    pairs: &mut Vec<(Word, Word)>,
    tables: &Tables,
) -> Word {
    if pairs.is_empty() {
        return make(alloc, empty_tuple(), &[]);
    }
    pairs.sort_by(|a, b| compare_exact(a.0, b.0, tables));
    // The sort is stable: the last of equal keys stands last.
    let mut n = 0;
    for i in 0..pairs.len() {
        if n > 0 && compare_exact(pairs[n - 1].0, pairs[i].0, tables) == Ordering::Equal {
            pairs[n - 1] = pairs[i];
        } else {
            pairs[n] = pairs[i];
            n += 1;
        }
    }
    pairs.truncate(n);
    let p = alloc.alloc(n + 1 + n + 2);
    // SAFETY: the fresh words hold a tuple of `n` keys and a map of `n` pairs.
    unsafe {
        *p = Header::new(Subtag::Tuple, n).0;
        let m = p.add(n + 1);
        *m = Header::new(Subtag::FlatMap, n + 1).0;
        *m.add(1) = Word::boxed(p).bits();
        for (i, (k, v)) in pairs.iter().enumerate() {
            *p.add(1 + i) = k.bits();
            *m.add(2 + i) = v.bits();
        }
        Word::boxed(m)
    }
}

/// See [`super::merge`].
pub(super) fn merge(alloc: &mut impl Alloc, a: Word, b: Word, tables: &Tables) -> Word {
    let (ka, va) = (keys_of(a), values_of(a));
    let (kb, vb) = (keys_of(b), values_of(b));
    if a.term_field(1) == b.term_field(1) {
        return b;
    }
    let mut keys = Vec::with_capacity(ka.len() + kb.len());
    let mut values = Vec::with_capacity(ka.len() + kb.len());
    let (mut i, mut j) = (0, 0);
    while i < ka.len() && j < kb.len() {
        let o = compare_exact(ka[i], kb[j], tables);
        if o.is_lt() {
            keys.push(ka[i]);
            values.push(va[i]);
            i += 1;
        } else {
            keys.push(kb[j]);
            values.push(vb[j]);
            j += 1;
            i += usize::from(o.is_eq());
        }
    }
    keys.extend_from_slice(&ka[i..]);
    values.extend_from_slice(&va[i..]);
    keys.extend_from_slice(&kb[j..]);
    values.extend_from_slice(&vb[j..]);
    let n = keys.len();
    if n > MAX_FLAT_MAP {
        let pairs: Vec<(Word, Word)> = keys.into_iter().zip(values).collect();
        return trie::from_pairs(alloc, &pairs, tables);
    }
    // The keys of one map alone: share them.
    if n == kb.len() {
        return b;
    }
    if n == ka.len() {
        return make(alloc, a.term_field(1), &values);
    }
    super::from_sorted(alloc, &keys, &values)
}
