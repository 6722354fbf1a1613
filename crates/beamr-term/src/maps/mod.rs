//! Maps: building, looking up, changing, iterating.
//!
//! Up to [`MAX_FLAT_MAP`] pairs a map is flat: a tuple of keys in ascending exact order (integers
//! before floats, atoms by text) that maps of the same shape share, and the values beside it
//! (`flat`). Beyond, it is a trie of 16-way nodes over the internal hash, four bits a level from
//! the top (`trie`); when the 64 bits of two keys are the same, the levels below take them from a
//! hash with another salt. A node below the root has at least two pairs, so equal sets of keys
//! have equal shapes, and the order of iteration depends on nothing but the keys.
//!
//! Every function takes a map and panics or gives nonsense for other terms only in debug builds
//! (the caller checked `Word::is_map`).

mod flat;
mod iter;
mod trie;

use crate::alloc::{Alloc, Build};
use crate::header::{Header, MAX_FLAT_MAP, Subtag};
use crate::literal::empty_tuple;
use crate::tables::Tables;
use crate::word::Word;

pub use iter::{Iter, iter, iter_from};

/// How many pairs a map has.
#[inline]
pub fn size(map: Word) -> usize {
    debug_assert!(map.is_map());
    match map.header().subtag() {
        Subtag::FlatMap => map.header().arity() - 1,
        _ => map.term_field(1).small_value() as usize,
    }
}

/// The empty map.
pub fn empty(alloc: &mut impl Alloc) -> Word {
    flat::make(alloc, empty_tuple(), &[])
}

/// The value under a key.
#[inline]
pub fn get(map: Word, key: Word, tables: &Tables) -> Option<Word> {
    if map.header().subtag() == Subtag::FlatMap {
        flat::find(map, key, tables).map(|i| map.term_field(i + 2))
    } else {
        trie::get(map, key, tables)
    }
}

/// Whether a map has a key.
#[inline]
pub fn has_key(map: Word, key: Word, tables: &Tables) -> bool {
    get(map, key, tables).is_some()
}

/// The map with `key` (new or not) at `value`.
pub fn put(alloc: &mut impl Alloc, map: Word, key: Word, value: Word, tables: &Tables) -> Word {
    if map.header().subtag() == Subtag::FlatMap {
        flat::put(alloc, map, key, value, tables)
    } else {
        trie::put(alloc, map, key, value, tables)
    }
}

/// The map with the existing `key` at `value`; `None` when there is no such key.
pub fn update_exact(
    alloc: &mut impl Alloc,
    map: Word,
    key: Word,
    value: Word,
    tables: &Tables,
) -> Option<Word> {
    if map.header().subtag() == Subtag::FlatMap {
        let i = flat::find(map, key, tables)?;
        return Some(flat::with_value(alloc, map, i, value));
    }
    trie::get(map, key, tables)?;
    Some(trie::put(alloc, map, key, value, tables))
}

/// The map with all pairs put, in order (`Map#{K => V, ...}`).
pub fn put_all(alloc: &mut impl Alloc, map: Word, pairs: &[(Word, Word)], tables: &Tables) -> Word {
    if map.header().subtag() == Subtag::FlatMap && pairs.len() > 1 {
        return flat::put_all(alloc, map, pairs, tables);
    }
    let mut m = map;
    for (k, v) in pairs {
        m = put(alloc, m, *k, *v, tables);
    }
    m
}

/// The map with all pairs updated (`Map#{K := V, ...}`), or the least key that it lacks.
pub fn update_all_exact(
    alloc: &mut impl Alloc,
    map: Word,
    pairs: &[(Word, Word)],
    tables: &Tables,
) -> Result<Word, Word> {
    let lacking = pairs.iter().filter(|p| !has_key(map, p.0, tables));
    if let Some((k, _)) = lacking.min_by(|a, b| crate::order::compare_exact(a.0, b.0, tables)) {
        return Err(*k);
    }
    Ok(put_all(alloc, map, pairs, tables))
}

/// The map without `key`, and the value that it had; `None` when there is no such key.
pub fn take(alloc: &mut impl Alloc, map: Word, key: Word, tables: &Tables) -> Option<(Word, Word)> {
    if map.header().subtag() == Subtag::FlatMap {
        return flat::take(alloc, map, key, tables);
    }
    let value = trie::get(map, key, tables)?;
    if size(map) == MAX_FLAT_MAP + 1 {
        let mut pairs: Vec<(Word, Word)> = Vec::with_capacity(MAX_FLAT_MAP);
        for (k, v) in iter(map) {
            if !crate::order::eq_exact(k, key, tables) {
                pairs.push((k, v));
            }
        }
        return Some((flat::from_unsorted(alloc, &mut pairs, tables), value));
    }
    Some((trie::remove(alloc, map, key, tables), value))
}

/// The map without `key` (the same map when there is no such key).
pub fn remove(alloc: &mut impl Alloc, map: Word, key: Word, tables: &Tables) -> Word {
    take(alloc, map, key, tables).map_or(map, |(m, _)| m)
}

/// The pairs of both; `b`'s value wins.
pub fn merge(alloc: &mut impl Alloc, a: Word, b: Word, tables: &Tables) -> Word {
    if a == b || size(a) == 0 {
        return b;
    }
    if size(b) == 0 {
        return a;
    }
    match (a.header().subtag(), b.header().subtag()) {
        (Subtag::FlatMap, Subtag::FlatMap) => flat::merge(alloc, a, b, tables),
        (_, Subtag::FlatMap) => {
            let mut m = a;
            for (k, v) in iter(b) {
                m = trie::put(alloc, m, k, v, tables);
            }
            m
        }
        (Subtag::FlatMap, _) => {
            let mut m = b;
            for (k, v) in iter(a) {
                if trie::get(b, k, tables).is_none() {
                    m = trie::put(alloc, m, k, v, tables);
                }
            }
            m
        }
        _ => trie::merge(alloc, a, b, tables),
    }
}

/// A map of pairs in any order; of equal keys the last wins.
pub fn from_pairs(alloc: &mut impl Alloc, pairs: &[(Word, Word)], tables: &Tables) -> Word {
    if pairs.len() <= MAX_FLAT_MAP {
        let mut v = pairs.to_vec();
        return flat::from_unsorted(alloc, &mut v, tables);
    }
    trie::from_pairs(alloc, pairs, tables)
}

/// Whether keys are in strictly ascending exact order.
pub fn is_sorted(keys: &[Word], tables: &Tables) -> bool {
    keys.windows(2)
        .all(|w| crate::order::compare_exact(w[0], w[1], tables).is_lt())
}

/// A flat map of keys in strictly ascending exact order and their values (at most
/// [`MAX_FLAT_MAP`]).
pub fn from_sorted(alloc: &mut impl Alloc, keys: &[Word], values: &[Word]) -> Word {
    debug_assert!(keys.len() == values.len() && keys.len() <= MAX_FLAT_MAP);
    let k = if keys.is_empty() {
        empty_tuple()
    } else {
        alloc.tuple(keys)
    };
    flat::make(alloc, k, values)
}

/// A flat map over an existing tuple of sorted keys.
pub fn from_keys_tuple(alloc: &mut impl Alloc, keys: Word, values: &[Word]) -> Word {
    flat::make(alloc, keys, values)
}

/// The list of keys, in the order of iteration.
pub fn keys(alloc: &mut impl Alloc, map: Word) -> Word {
    collect(alloc, map, |_, k, _| k)
}

/// The list of values, in the order of iteration.
pub fn values(alloc: &mut impl Alloc, map: Word) -> Word {
    collect(alloc, map, |_, _, v| v)
}

/// The list of `{Key, Value}`, in the order of iteration.
pub fn to_list(alloc: &mut impl Alloc, map: Word) -> Word {
    collect(alloc, map, |a, k, v| a.tuple(&[k, v]))
}

fn collect<A: Alloc>(alloc: &mut A, map: Word, f: impl Fn(&mut A, Word, Word) -> Word) -> Word {
    let n = size(map);
    if n == 0 {
        return Word::NIL;
    }
    let cells = alloc.alloc(2 * n);
    for (i, (k, v)) in iter(map).enumerate() {
        let w = f(alloc, k, v);
        // SAFETY: `n` cells were allocated and a map iterates over exactly `size` pairs; the
        // last cell ends the list.
        unsafe {
            let c = cells.add(2 * i);
            *c = w.bits();
            *c.add(1) = if i + 1 == n {
                Word::NIL.bits()
            } else {
                Word::list(c.add(2)).bits()
            };
        }
    }
    // SAFETY: all cells are complete.
    unsafe { Word::list(cells) }
}

/// A node of a trie.
fn node(alloc: &mut impl Alloc, pairs: usize, bitmap: u32, children: &[Word]) -> Word {
    debug_assert_eq!(bitmap.count_ones() as usize, children.len());
    let p = alloc.alloc(3 + children.len());
    // SAFETY: the fresh words of the node.
    unsafe {
        *p = Header::new(Subtag::HashMap, 2 + children.len()).0;
        *p.add(1) = Word::fixnum(pairs as i64).bits();
        *p.add(2) = Word::fixnum(i64::from(bitmap)).bits();
        std::ptr::copy_nonoverlapping(children.as_ptr().cast::<u64>(), p.add(3), children.len());
        Word::boxed(p)
    }
}
