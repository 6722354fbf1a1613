//! Hash tries.
//!
//! Recursion here is over levels: sixteen for each hash, and a further hash only for keys whose
//! 64 bits collide.

use super::{flat, node};
use crate::alloc::{Alloc, Build};
use crate::hash::internal_hash;
use crate::header::MAX_FLAT_MAP;
use crate::order::eq_exact;
use crate::tables::Tables;
use crate::word::Word;

const LEVELS: u32 = 16;

/// The hash that a level takes its bits from, computed again only when the salt changes.
#[derive(Clone, Copy)]
struct Path {
    key: Word,
    hash: u64,
    salt: u32,
}

impl Path {
    #[inline]
    fn new(key: Word, tables: &Tables) -> Path {
        Path {
            key,
            hash: internal_hash(key, 0, tables),
            salt: 0,
        }
    }
    #[inline]
    fn slot(&mut self, level: u32, tables: &Tables) -> u32 {
        let salt = level / LEVELS;
        if salt != self.salt {
            self.salt = salt;
            self.hash = internal_hash(self.key, salt, tables);
        }
        (self.hash >> (60 - 4 * (level % LEVELS))) as u32 & 15
    }
}

#[inline]
pub(super) fn bitmap(n: Word) -> u32 {
    n.term_field(2).small_value() as u32
}

#[inline]
pub(super) fn pairs(n: Word) -> usize {
    n.term_field(1).small_value() as usize
}

/// The children of a node.
#[inline]
pub(super) fn children<'a>(n: Word) -> &'a [Word] {
    let k = n.header().arity() - 2;
    // SAFETY: the children follow count and bitmap; `Word` is transparent.
    unsafe { std::slice::from_raw_parts(n.ptr().add(3).cast::<Word>(), k) }
}

#[inline]
fn index(bitmap: u32, slot: u32) -> usize {
    (bitmap & ((1 << slot) - 1)).count_ones() as usize
}

/// See [`super::get`].
pub(super) fn get(map: Word, key: Word, tables: &Tables) -> Option<Word> {
    let mut path = Path::new(key, tables);
    let mut n = map;
    let mut level = 0;
    loop {
        let s = path.slot(level, tables);
        let b = bitmap(n);
        if b >> s & 1 == 0 {
            return None;
        }
        let c = n.term_field(3 + index(b, s));
        if c.is_cons() {
            return eq_exact(c.head(), key, tables).then(|| c.tail());
        }
        n = c;
        level += 1;
    }
}

/// See [`super::put`].
pub(super) fn put(
    alloc: &mut impl Alloc,
    map: Word,
    key: Word,
    value: Word,
    tables: &Tables,
) -> Word {
    let mut path = Path::new(key, tables);
    put_in(alloc, map, &mut path, value, 0, tables)
}

/// Puts into a node; gives the same node when nothing changes.
fn put_in(
    alloc: &mut impl Alloc,
    n: Word,
    path: &mut Path,
    value: Word,
    level: u32,
    tables: &Tables,
) -> Word {
    let s = path.slot(level, tables);
    let b = bitmap(n);
    let i = index(b, s);
    let cs = children(n);
    if b >> s & 1 == 0 {
        let leaf = alloc.cons(path.key, value);
        let mut new = [Word::NONE; 16];
        new[..i].copy_from_slice(&cs[..i]);
        new[i] = leaf;
        new[i + 1..=cs.len()].copy_from_slice(&cs[i..]);
        return node(alloc, pairs(n) + 1, b | 1 << s, &new[..=cs.len()]);
    }
    let old = cs[i];
    let (new, more) = if old.is_cons() {
        if eq_exact(old.head(), path.key, tables) {
            if old.tail() == value {
                return n;
            }
            // The old key stays, as in a flat map.
            (alloc.cons(old.head(), value), 0)
        } else {
            let leaf = alloc.cons(path.key, value);
            let mut other = Path::new(old.head(), tables);
            (
                join(alloc, old, &mut other, leaf, path, level + 1, tables),
                1,
            )
        }
    } else {
        let c = put_in(alloc, old, path, value, level + 1, tables);
        if c == old {
            return n;
        }
        (c, pairs(c) - pairs(old))
    };
    let w = node(alloc, pairs(n) + more, b, cs);
    // SAFETY: the index is within the fresh node.
    unsafe { *w.ptr().add(3 + i) = new.bits() };
    w
}

/// A node of two leaves with different keys.
fn join(
    alloc: &mut impl Alloc,
    a: Word,
    pa: &mut Path,
    b: Word,
    pb: &mut Path,
    level: u32,
    tables: &Tables,
) -> Word {
    let (sa, sb) = (pa.slot(level, tables), pb.slot(level, tables));
    if sa == sb {
        let c = join(alloc, a, pa, b, pb, level + 1, tables);
        return node(alloc, 2, 1 << sa, &[c]);
    }
    let cs = if sa < sb { [a, b] } else { [b, a] };
    node(alloc, 2, 1 << sa | 1 << sb, &cs)
}

/// The map without a key that it has; at least two pairs must be left.
pub(super) fn remove(alloc: &mut impl Alloc, map: Word, key: Word, tables: &Tables) -> Word {
    let mut path = Path::new(key, tables);
    let r = remove_in(alloc, map, &mut path, 0, tables);
    if r.is_cons() {
        // Cannot be at this size, but a root must be a node.
        let s = Path::new(r.head(), tables).slot(0, tables);
        return node(alloc, 1, 1 << s, &[r]);
    }
    r
}

/// Removes below a node; gives a leaf when only one pair is left.
fn remove_in(
    alloc: &mut impl Alloc,
    n: Word,
    path: &mut Path,
    level: u32,
    tables: &Tables,
) -> Word {
    let s = path.slot(level, tables);
    let b = bitmap(n);
    let i = index(b, s);
    let cs = children(n);
    let old = cs[i];
    if old.is_cons() {
        if cs.len() == 2 && cs[1 - i].is_cons() {
            return cs[1 - i];
        }
        let mut new = [Word::NONE; 16];
        new[..i].copy_from_slice(&cs[..i]);
        new[i..cs.len() - 1].copy_from_slice(&cs[i + 1..]);
        return node(alloc, pairs(n) - 1, b & !(1 << s), &new[..cs.len() - 1]);
    }
    let c = remove_in(alloc, old, path, level + 1, tables);
    if c.is_cons() && cs.len() == 1 && level > 0 {
        return c;
    }
    let w = node(alloc, pairs(n) - 1, b, cs);
    // SAFETY: the index is within the fresh node.
    unsafe { *w.ptr().add(3 + i) = c.bits() };
    w
}

/// See [`super::merge`]; both are tries.
pub(super) fn merge(alloc: &mut impl Alloc, a: Word, b: Word, tables: &Tables) -> Word {
    merge_in(alloc, a, b, 0, tables)
}

fn merge_in(alloc: &mut impl Alloc, a: Word, b: Word, level: u32, tables: &Tables) -> Word {
    if a == b {
        return b;
    }
    match (a.is_cons(), b.is_cons()) {
        (true, true) => {
            if eq_exact(a.head(), b.head(), tables) {
                return b;
            }
            let (mut pa, mut pb) = (Path::new(a.head(), tables), Path::new(b.head(), tables));
            return join(alloc, a, &mut pa, b, &mut pb, level, tables);
        }
        (false, true) => {
            let mut p = Path::new(b.head(), tables);
            return put_in(alloc, a, &mut p, b.tail(), level, tables);
        }
        (true, false) => {
            let mut p = Path::new(a.head(), tables);
            if get_in(b, &mut p, level, tables) {
                return b;
            }
            return put_in(alloc, b, &mut p, a.tail(), level, tables);
        }
        (false, false) => {}
    }
    let (ba, bb) = (bitmap(a), bitmap(b));
    let (ca, cb) = (children(a), children(b));
    let mut new = [Word::NONE; 16];
    let (mut n, mut count) = (0, 0);
    let (mut same_a, mut same_b) = (ba | bb == ba, ba | bb == bb);
    for s in 0..16 {
        let x = (ba >> s & 1 == 1).then(|| ca[index(ba, s)]);
        let y = (bb >> s & 1 == 1).then(|| cb[index(bb, s)]);
        let c = match (x, y) {
            (None, None) => continue,
            (Some(c), None) | (None, Some(c)) => c,
            (Some(x), Some(y)) => merge_in(alloc, x, y, level + 1, tables),
        };
        same_a &= x == Some(c);
        same_b &= y == Some(c);
        count += if c.is_cons() { 1 } else { pairs(c) };
        new[n] = c;
        n += 1;
    }
    if same_b {
        return b;
    }
    if same_a {
        return a;
    }
    node(alloc, count, ba | bb, &new[..n])
}

/// Whether a subtree has the key.
fn get_in(n: Word, path: &mut Path, level: u32, tables: &Tables) -> bool {
    let (mut n, mut level) = (n, level);
    loop {
        let s = path.slot(level, tables);
        let b = bitmap(n);
        if b >> s & 1 == 0 {
            return false;
        }
        let c = n.term_field(3 + index(b, s));
        if c.is_cons() {
            return eq_exact(c.head(), path.key, tables);
        }
        n = c;
        level += 1;
    }
}

#[derive(Clone, Copy)]
struct Item {
    hash: u64,
    /// Position among the pairs; later ones win.
    order: usize,
    key: Word,
    value: Word,
}

/// A map of any number of pairs in any order; of equal keys the last wins.
pub(super) fn from_pairs(alloc: &mut impl Alloc, list: &[(Word, Word)], tables: &Tables) -> Word {
    let mut items: Vec<Item> = list
        .iter()
        .enumerate()
        .map(|(order, (key, value))| Item {
            hash: internal_hash(*key, 0, tables),
            order,
            key: *key,
            value: *value,
        })
        .collect();
    items.sort_unstable_by_key(|i| (i.hash, i.order));
    // Drop earlier pairs of equal keys, run by run of equal hashes.
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    let mut run = 0;
    for i in &items {
        if kept.len() > run && kept[run].hash != i.hash {
            run = kept.len();
        }
        match kept[run..]
            .iter_mut()
            .find(|k| eq_exact(k.key, i.key, tables))
        {
            Some(k) => k.value = i.value,
            None => kept.push(*i),
        }
    }
    if kept.len() <= MAX_FLAT_MAP {
        let mut pairs: Vec<(Word, Word)> = kept.iter().map(|i| (i.key, i.value)).collect();
        return flat::from_unsorted(alloc, &mut pairs, tables);
    }
    build(alloc, &mut kept, 0, tables)
}

/// A node of items sorted by the hash of the level.
fn build(alloc: &mut impl Alloc, items: &mut [Item], level: u32, tables: &Tables) -> Word {
    if level > 0 && level.is_multiple_of(LEVELS) {
        for i in items.iter_mut() {
            i.hash = internal_hash(i.key, level / LEVELS, tables);
        }
        items.sort_unstable_by_key(|i| (i.hash, i.order));
    }
    let shift = 60 - 4 * (level % LEVELS);
    let mut cs = [Word::NONE; 16];
    let (mut n, mut map) = (0, 0u32);
    let count = items.len();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let s = first.hash >> shift & 15;
        let k = rest.partition_point(|i| i.hash >> shift & 15 <= s);
        let (now, later) = rest.split_at_mut(k);
        cs[n] = match now {
            [one] => alloc.cons(one.key, one.value),
            many => build(alloc, many, level + 1, tables),
        };
        map |= 1 << s;
        n += 1;
        rest = later;
    }
    node(alloc, count, map, &cs[..n])
}
