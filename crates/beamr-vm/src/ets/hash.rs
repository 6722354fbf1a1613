//! The store of `set`, `bag` and `duplicate_bag`: buckets in the order of the hash.
//!
//! A row's bucket is given by the *top* bits of its key's hash, and chains are sorted by hash, so walking buckets in
//! order walks the table in hash order whatever its size is. Growing splits each bucket in two neighbours: the order
//! stays. A traversal therefore is "the least hash above this one", which needs no fixing of the
//! table to stay correct: every row that is there for the whole walk is seen once. Rows of one key are
//! neighbours, in the order of their insertion.
//!
//! The top bits also choose one of a few parts, each with its own lock and size, so that threads rarely meet.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use beamr_term::{Tables, Word, hash, order};

use super::row::Row;

/// Parts of a table, a power of two.
const PARTS: usize = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Rows per bucket at which a part grows.
const LOAD: usize = 2;

/// A row and its key's hash.
#[derive(Debug)]
pub struct Entry {
    /// Hash of the key.
    pub hash: u64,
    /// The row.
    pub row: Row,
}

/// One part: buckets indexed by the hash bits behind the part's own.
#[derive(Debug, Default)]
pub struct Part {
    buckets: Vec<Vec<Entry>>,
    len: usize,
}

/// A position in hash order: behind all rows whose key hashes to `hash` and is at or before `skip` entries of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Hash of the entries that come next at the earliest.
    pub hash: u64,
    /// How many entries of that hash are behind us.
    pub skip: usize,
}

impl Position {
    /// Before the first row.
    pub const START: Position = Position { hash: 0, skip: 0 };
}

impl Part {
    #[inline]
    fn bucket_of(&self, hash: u64) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        if bits == 0 {
            0
        } else {
            ((hash << PART_BITS) >> (64 - bits)) as usize
        }
    }
    /// The entries of this key (neighbours in one bucket): bucket and range.
    #[inline]
    pub fn find(
        &self,
        hash: u64,
        key: Word,
        keypos: usize,
        tables: &Tables,
    ) -> (usize, std::ops::Range<usize>) {
        if self.buckets.is_empty() {
            return (0, 0..0);
        }
        let b = self.bucket_of(hash);
        let bucket = &self.buckets[b];
        let mut i = if bucket.len() > 8 {
            bucket.partition_point(|e| e.hash < hash)
        } else {
            bucket.iter().take_while(|e| e.hash < hash).count()
        };
        while i < bucket.len() && bucket[i].hash == hash {
            if order::eq_exact(bucket[i].row.element(keypos), key, tables) {
                let start = i;
                while i < bucket.len()
                    && bucket[i].hash == hash
                    && order::eq_exact(bucket[i].row.element(keypos), key, tables)
                {
                    i += 1;
                }
                return (b, start..i);
            }
            i += 1;
        }
        (b, i..i)
    }
    /// Where a further row of this key goes in a `duplicate_bag`: behind the last one, without looking at all of them.
    pub fn behind_last(
        &self,
        hash: u64,
        key: Word,
        keypos: usize,
        tables: &Tables,
    ) -> (usize, usize) {
        if self.buckets.is_empty() {
            return (0, 0);
        }
        let b = self.bucket_of(hash);
        let bucket = &self.buckets[b];
        let end = bucket.partition_point(|e| e.hash <= hash);
        match end.checked_sub(1).map(|i| &bucket[i]) {
            Some(e) if e.hash == hash && !order::eq_exact(e.row.element(keypos), key, tables) => {
                (b, self.find(hash, key, keypos, tables).1.end)
            }
            _ => (b, end),
        }
    }
    /// The entries at this place.
    #[inline]
    pub fn entries(&self, bucket: usize, range: std::ops::Range<usize>) -> &[Entry] {
        match self.buckets.get(bucket) {
            Some(b) => &b[range],
            None => &[],
        }
    }
    /// Replaces the row at this place.
    pub fn replace(&mut self, bucket: usize, at: usize, row: Row) -> Row {
        std::mem::replace(&mut self.buckets[bucket][at].row, row)
    }
    /// Inserts at a place that [`Part::find`] gave (the end of its range), and grows when it is time.
    pub fn insert_at(&mut self, bucket: usize, at: usize, entry: Entry) {
        if self.buckets.is_empty() {
            self.buckets.push(Vec::new());
        }
        self.buckets[bucket].insert(at, entry);
        self.len += 1;
        if self.len > self.buckets.len() * LOAD && self.buckets.len() < 1 << 40 {
            self.grow();
        }
    }
    /// Removes a range.
    pub fn remove(&mut self, bucket: usize, range: std::ops::Range<usize>) -> Vec<Entry> {
        let Some(b) = self.buckets.get_mut(bucket) else {
            return Vec::new();
        };
        let gone: Vec<Entry> = b.drain(range).collect();
        self.len -= gone.len();
        gone
    }
    fn grow(&mut self) {
        let old = std::mem::take(&mut self.buckets);
        let mut new: Vec<Vec<Entry>> = Vec::with_capacity(old.len() * 2);
        let bit = 63 - PART_BITS - old.len().trailing_zeros();
        for mut low in old {
            // The bucket is sorted by hash, so the half with the next bit set is its end.
            let cut = low.partition_point(|e| e.hash >> bit & 1 == 0);
            let high = low.split_off(cut);
            low.shrink_to_fit();
            new.push(low);
            new.push(high);
        }
        self.buckets = new;
    }
    /// Rows in this part.
    pub fn len(&self) -> usize {
        self.len
    }
    /// The first entry at or behind `from` in this part.
    fn at_or_behind(&self, from: Position) -> Option<&Entry> {
        if self.len == 0 {
            return None;
        }
        let mut b = self.bucket_of(from.hash);
        let bucket = &self.buckets[b];
        let mut i = bucket.partition_point(|e| e.hash < from.hash);
        let same = bucket[i..]
            .iter()
            .take_while(|e| e.hash == from.hash)
            .count();
        i += from.skip.min(same);
        let mut bucket = bucket;
        loop {
            if let Some(e) = bucket.get(i) {
                return Some(e);
            }
            b += 1;
            i = 0;
            bucket = self.buckets.get(b)?;
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct HashStore {
    parts: [RwLock<Part>; PARTS],
    /// Index of the key in a row, from 0.
    pub keypos: usize,
}

fn part_of(hash: u64) -> usize {
    (hash >> (64 - PART_BITS)) as usize
}

impl HashStore {
    /// An empty store.
    pub fn new(keypos: usize) -> HashStore {
        HashStore {
            parts: std::array::from_fn(|_| RwLock::default()),
            keypos,
        }
    }
    /// The hash of a key.
    #[inline]
    pub fn hash(key: Word, tables: &Tables) -> u64 {
        // The map's hash may be weak in its top bits for small keys; a multiplication spreads it.
        hash::internal_hash(key, 0, tables).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    /// The part of a hash, for reading.
    #[inline]
    pub fn read(&self, hash: u64) -> RwLockReadGuard<'_, Part> {
        self.parts[part_of(hash)]
            .read()
            .unwrap_or_else(|e| e.into_inner())
    }
    /// The part of a hash, for writing.
    #[inline]
    pub fn write(&self, hash: u64) -> RwLockWriteGuard<'_, Part> {
        self.parts[part_of(hash)]
            .write()
            .unwrap_or_else(|e| e.into_inner())
    }
    /// Rows.
    pub fn len(&self) -> usize {
        self.parts
            .iter()
            .map(|p| p.read().unwrap_or_else(|e| e.into_inner()).len())
            .sum()
    }
    /// Empties the store; gives the rows.
    pub fn clear(&self) -> Vec<Part> {
        self.parts
            .iter()
            .map(|p| std::mem::take(&mut *p.write().unwrap_or_else(|e| e.into_inner())))
            .collect()
    }
    /// Shows the first row at or behind `from`, with the position behind it.
    pub fn next_row<T>(&self, from: Position, f: impl FnOnce(&Row, Position) -> T) -> Option<T> {
        let mut from = from;
        for p in part_of(from.hash)..PARTS {
            let part = self.parts[p].read().unwrap_or_else(|e| e.into_inner());
            if let Some(e) = part.at_or_behind(from) {
                let skip = if e.hash == from.hash {
                    from.skip + 1
                } else {
                    1
                };
                return Some(f(&e.row, Position { hash: e.hash, skip }));
            }
            if p + 1 < PARTS {
                from = Position {
                    hash: (p as u64 + 1) << (64 - PART_BITS),
                    skip: 0,
                };
            }
        }
        None
    }
    /// The position behind all rows of this key (where they are or would be).
    pub fn behind(&self, key: Word, tables: &Tables) -> (Position, bool) {
        let hash = Self::hash(key, tables);
        let part = self.read(hash);
        let (b, range) = part.find(hash, key, self.keypos, tables);
        let found = !range.is_empty();
        let before = if part.buckets.is_empty() {
            0
        } else {
            part.buckets[b][..range.end]
                .iter()
                .filter(|e| e.hash == hash)
                .count()
        };
        (Position { hash, skip: before }, found)
    }
    /// Shows rows from `from` on while `f` says so; gives the position behind the last one shown, or `None` at the end of the table.
    /// The lock of a part is held over its rows: `f` must not touch the table.
    pub fn walk(&self, from: Position, mut f: impl FnMut(&Row) -> bool) -> Option<Position> {
        let mut from = from;
        for p in part_of(from.hash)..PARTS {
            let part = self.parts[p].read().unwrap_or_else(|e| e.into_inner());
            if part.len > 0 {
                let mut b = part.bucket_of(from.hash);
                let bucket = &part.buckets[b];
                let mut i = bucket.partition_point(|e| e.hash < from.hash);
                let same = bucket[i..]
                    .iter()
                    .take_while(|e| e.hash == from.hash)
                    .count();
                i += from.skip.min(same);
                while b < part.buckets.len() {
                    while let Some(e) = part.buckets[b].get(i) {
                        i += 1;
                        if !f(&e.row) {
                            let skip = part.buckets[b][..i]
                                .iter()
                                .filter(|x| x.hash == e.hash)
                                .count();
                            return Some(Position { hash: e.hash, skip });
                        }
                    }
                    b += 1;
                    i = 0;
                }
            }
            if p + 1 < PARTS {
                from = Position {
                    hash: (p as u64 + 1) << (64 - PART_BITS),
                    skip: 0,
                };
            }
        }
        None
    }
    /// Decides for each row whether it goes (`None`), stays (`Some(None)`) or is replaced; gives the rows that went.
    pub fn retain(&self, mut f: impl FnMut(&Row) -> Keep) -> Vec<Row> {
        let mut gone = Vec::new();
        for p in &self.parts {
            let mut part = p.write().unwrap_or_else(|e| e.into_inner());
            let mut removed = 0;
            for bucket in &mut part.buckets {
                let mut i = 0;
                while i < bucket.len() {
                    match f(&bucket[i].row) {
                        Keep::Stay => i += 1,
                        Keep::Replace(row) => {
                            gone.push(std::mem::replace(&mut bucket[i].row, row));
                            i += 1;
                        }
                        Keep::Go => {
                            gone.push(bucket.remove(i).row);
                            removed += 1;
                        }
                    }
                }
            }
            part.len -= removed;
        }
        gone
    }
}

/// What becomes of a row in a pass over the table.
#[derive(Debug)]
pub enum Keep {
    /// It stays.
    Stay,
    /// It goes.
    Go,
    /// Another one takes its place (of the same key).
    Replace(Row),
}
