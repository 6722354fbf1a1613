//! The store of `set`, `bag` and `duplicate_bag`: chains in the order of the hash.
//!
//! A row's bucket is given by the *top* bits of its key's hash, and chains are sorted by hash, so walking buckets in
//! order walks the table in hash order whatever its size is. Growing splits each bucket in two neighbours: the order
//! stays. A traversal therefore is "the least hash at or above this one", which needs no fixing of the
//! table to stay correct: every row that is there for the whole walk is seen once. Rows of one key are
//! neighbours, the newest first (a list built by consing has the oldest first).
//!
//! The top bits also choose one of a few parts, each with its own lock and size, so that threads rarely meet.
//!
//! Rows are chained through their own heads. The part that a row is linked into owns it; heads are read under the
//! part's lock and written under its write lock. That is what every `SAFETY` in here comes down to.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use beamr_term::{Tables, Word, hash, order};

use super::row::{Row, RowData};

/// Parts of a table, a power of two.
const PARTS: usize = 16;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Bits of a hash: a position is a small integer that is not negative.
pub const HASH_BITS: u32 = 58;
/// Buckets of a part at least. They are made with the first row, and counted before.
const MIN_BUCKETS: usize = 16;

/// One part: buckets indexed by the hash bits behind the part's own.
#[derive(Debug, Default)]
pub struct Part {
    buckets: Vec<*mut RowData>,
    len: usize,
    bytes: usize,
}

// SAFETY: the part owns the rows of its chains.
unsafe impl Send for Part {}
// SAFETY: as above.
unsafe impl Sync for Part {}

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

impl Part {
    #[inline]
    fn bucket_of(&self, hash: u64) -> usize {
        let bits = self.buckets.len().trailing_zeros();
        ((hash << (64 - HASH_BITS + PART_BITS)) >> (64 - bits)) as usize
    }
    /// The newest row of this key; others of the key follow it in the chain.
    #[inline]
    pub fn find(&self, hash: u64, key: Word, keypos: usize, tables: &Tables) -> *mut RowData {
        if self.buckets.is_empty() {
            return ptr::null_mut();
        }
        let mut p = self.buckets[self.bucket_of(hash)];
        // SAFETY: see the module.
        unsafe {
            while !p.is_null() {
                let row = &*p;
                if row.hash >= hash {
                    if row.hash > hash {
                        return ptr::null_mut();
                    }
                    if order::eq_exact(row.element(keypos), key, tables) {
                        return p;
                    }
                }
                p = row.next;
            }
        }
        p
    }
    /// The link that points to the newest row of this key, or where such a row would be linked in.
    #[inline]
    pub fn link(
        &mut self,
        hash: u64,
        key: Word,
        keypos: usize,
        tables: &Tables,
    ) -> (*mut *mut RowData, bool) {
        if self.buckets.is_empty() {
            self.buckets = vec![ptr::null_mut(); MIN_BUCKETS];
        }
        let b = self.bucket_of(hash);
        let mut at: *mut *mut RowData = &raw mut self.buckets[b];
        // SAFETY: see the module.
        unsafe {
            while !(*at).is_null() {
                let row = &**at;
                if row.hash >= hash {
                    if row.hash > hash {
                        return (at, false);
                    }
                    if order::eq_exact(row.element(keypos), key, tables) {
                        return (at, true);
                    }
                }
                at = &raw mut (**at).next;
            }
        }
        (at, false)
    }
    /// Whether the row at a link has this key.
    ///
    /// # Safety
    /// `p` is null or a row of this part.
    #[inline]
    pub unsafe fn has_key(
        p: *mut RowData,
        hash: u64,
        key: Word,
        keypos: usize,
        tables: &Tables,
    ) -> bool {
        !p.is_null() && (*p).hash == hash && order::eq_exact((*p).element(keypos), key, tables)
    }
    /// Links a row in.
    ///
    /// # Safety
    /// `at` came from [`Part::link`] for the row's key, and the part was not changed since.
    #[inline]
    pub unsafe fn insert(&mut self, at: *mut *mut RowData, hash: u64, mut row: Row) {
        self.len += 1;
        self.bytes += row.bytes();
        let head = row.head_mut();
        head.hash = hash;
        head.next = *at;
        *at = row.into_raw();
        if self.len > self.buckets.len() {
            self.resize(self.buckets.len() * 2);
        }
    }
    /// Puts a row in the place of the one at a link, which is given back.
    ///
    /// # Safety
    /// `at` is a link of this part that points to a row of the same key.
    #[inline]
    pub unsafe fn replace(&mut self, at: *mut *mut RowData, mut row: Row) -> Row {
        let old = *at;
        self.bytes += row.bytes();
        self.bytes -= (*old).bytes();
        let head = row.head_mut();
        head.hash = (*old).hash;
        head.next = (*old).next;
        *at = row.into_raw();
        Row::from_raw(old)
    }
    /// Takes out the row at a link.
    ///
    /// # Safety
    /// `at` is a link of this part that points to a row.
    #[inline]
    pub unsafe fn remove(&mut self, at: *mut *mut RowData) -> Row {
        let old = *at;
        *at = (*old).next;
        self.len -= 1;
        self.bytes -= (*old).bytes();
        Row::from_raw(old)
    }
    /// Gives memory back when few rows are left. Links become invalid.
    pub fn shrink(&mut self) {
        let n = self.buckets.len();
        if n > MIN_BUCKETS * 4 && self.len < n / 8 {
            self.resize(n / 4);
        }
    }
    fn resize(&mut self, buckets: usize) {
        let old = std::mem::replace(&mut self.buckets, vec![ptr::null_mut(); buckets]);
        let (mut bucket, mut last): (usize, *mut RowData) = (usize::MAX, ptr::null_mut());
        for mut p in old {
            // SAFETY: see the module. Rows come in hash order, so that each goes behind the one before it or begins
            // a bucket.
            unsafe {
                while !p.is_null() {
                    let next = (*p).next;
                    (*p).next = ptr::null_mut();
                    let b = self.bucket_of((*p).hash);
                    if b == bucket {
                        (*last).next = p;
                    } else {
                        self.buckets[b] = p;
                        bucket = b;
                    }
                    last = p;
                    p = next;
                }
            }
        }
    }
    /// Rows in this part.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Bytes of its rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The first row at or above a hash.
    fn at_or_above(&self, hash: u64) -> *mut RowData {
        if self.len == 0 {
            return ptr::null_mut();
        }
        let b = self.bucket_of(hash);
        let mut p = self.buckets[b];
        // SAFETY: see the module.
        unsafe {
            while !p.is_null() && (*p).hash < hash {
                p = (*p).next;
            }
        }
        if !p.is_null() {
            return p;
        }
        let rest = self.buckets[b + 1..].iter();
        rest.copied()
            .find(|p| !p.is_null())
            .unwrap_or(ptr::null_mut())
    }
    /// Frees rows until none is left or `at_most` went; true when none is left.
    pub fn free_some(&mut self, at_most: usize) -> bool {
        let mut left = at_most;
        while let Some(p) = self.buckets.last_mut() {
            while !p.is_null() {
                if left == 0 {
                    return false;
                }
                left -= 1;
                // SAFETY: see the module; the row is unlinked before it is dropped.
                unsafe {
                    let row = Row::from_raw(*p);
                    *p = row.next;
                    drop(row);
                }
            }
            self.buckets.pop();
        }
        true
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.free_some(usize::MAX);
    }
}

#[derive(Debug, Default)]
struct Shard {
    part: RwLock<Part>,
    /// Rows and bytes, as of the last write, for those who only want the figures.
    len: AtomicUsize,
    bytes: AtomicUsize,
}

/// A part, locked for writing.
#[derive(Debug)]
pub struct PartWrite<'s> {
    part: RwLockWriteGuard<'s, Part>,
    shard: &'s Shard,
    bytes: usize,
}

impl PartWrite<'_> {
    /// By how many bytes the part has grown while it was locked.
    #[inline]
    pub fn growth(&self) -> isize {
        self.part.bytes as isize - self.bytes as isize
    }
}

impl std::ops::Deref for PartWrite<'_> {
    type Target = Part;
    #[inline]
    fn deref(&self) -> &Part {
        &self.part
    }
}
impl std::ops::DerefMut for PartWrite<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Part {
        &mut self.part
    }
}
impl Drop for PartWrite<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shard.len.store(self.part.len, Ordering::Relaxed);
        self.shard.bytes.store(self.part.bytes, Ordering::Relaxed);
    }
}

/// See the module.
#[derive(Debug)]
pub struct HashStore {
    shards: [Shard; PARTS],
    /// Index of the key in a row, from 0.
    pub keypos: usize,
}

#[inline]
fn part_of(hash: u64) -> usize {
    (hash >> (HASH_BITS - PART_BITS)) as usize % PARTS
}

#[inline]
fn first_of(part: usize) -> u64 {
    (part as u64) << (HASH_BITS - PART_BITS)
}

impl HashStore {
    /// An empty store.
    pub fn new(keypos: usize) -> HashStore {
        HashStore {
            shards: std::array::from_fn(|_| Shard::default()),
            keypos,
        }
    }
    /// The hash of a key.
    #[inline]
    pub fn hash(key: Word, tables: &Tables) -> u64 {
        hash::internal_hash(key, 0, tables) >> (64 - HASH_BITS)
    }
    /// The part of a hash, for reading.
    #[inline]
    pub fn read(&self, hash: u64) -> RwLockReadGuard<'_, Part> {
        self.read_part(part_of(hash))
    }
    #[inline]
    fn read_part(&self, p: usize) -> RwLockReadGuard<'_, Part> {
        self.shards[p]
            .part
            .read()
            .unwrap_or_else(|e| e.into_inner())
    }
    /// The part of a hash, for writing.
    #[inline]
    pub fn write(&self, hash: u64) -> PartWrite<'_> {
        self.write_part(part_of(hash))
    }
    #[inline]
    fn write_part(&self, p: usize) -> PartWrite<'_> {
        let shard = &self.shards[p];
        let part = shard.part.write().unwrap_or_else(|e| e.into_inner());
        PartWrite {
            bytes: part.bytes,
            part,
            shard,
        }
    }
    /// The parts of these hashes, each once, locked for writing in their order; `None` for the others.
    pub fn write_all(&self, hashes: impl Iterator<Item = u64>) -> [Option<PartWrite<'_>>; PARTS] {
        let mut wanted = [false; PARTS];
        for h in hashes {
            wanted[part_of(h)] = true;
        }
        std::array::from_fn(|p| wanted[p].then(|| self.write_part(p)))
    }
    /// Which of [`HashStore::write_all`] a hash belongs to.
    #[inline]
    pub fn part_index(hash: u64) -> usize {
        part_of(hash)
    }
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Rows.
    pub fn len(&self) -> usize {
        let parts = self.shards.iter();
        parts.map(|s| s.len.load(Ordering::Relaxed)).sum()
    }
    /// Bytes of rows.
    pub fn bytes(&self) -> usize {
        let parts = self.shards.iter();
        parts.map(|s| s.bytes.load(Ordering::Relaxed)).sum()
    }
    /// Buckets, counted through all parts.
    pub fn buckets(&self) -> usize {
        let parts = (0..PARTS).map(|p| self.read_part(p).buckets.len());
        parts.map(|n| n.max(MIN_BUCKETS)).sum()
    }
    /// Shows the rows of bucket `n`; false when there are not so many.
    pub fn bucket(&self, n: usize, mut f: impl FnMut(&RowData)) -> bool {
        let mut n = n;
        for p in 0..PARTS {
            let part = self.read_part(p);
            match part.buckets.get(n) {
                Some(first) => {
                    let mut r = *first;
                    // SAFETY: see the module.
                    unsafe {
                        while !r.is_null() {
                            f(&*r);
                            r = (*r).next;
                        }
                    }
                    return true;
                }
                None if n < MIN_BUCKETS => return true,
                None => n -= part.buckets.len().max(MIN_BUCKETS),
            }
        }
        false
    }
    /// Lengths of all chains, for statistics.
    pub fn chain_lengths(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for p in 0..PARTS {
            let part = self.read_part(p);
            if part.buckets.is_empty() {
                all.extend([0; MIN_BUCKETS]);
            }
            for first in &part.buckets {
                let mut n = 0;
                let mut r = *first;
                // SAFETY: see the module.
                unsafe {
                    while !r.is_null() {
                        n += 1;
                        r = (*r).next;
                    }
                }
                all.push(n);
            }
        }
        all
    }
    /// Empties the store as one step: all parts are locked while their rows are taken out.
    pub fn clear(&self) -> Vec<Part> {
        let mut locked: Vec<PartWrite<'_>> = (0..PARTS).map(|p| self.write_part(p)).collect();
        locked
            .iter_mut()
            .map(|p| std::mem::take(&mut **p))
            .collect()
    }
    /// Shows the first row whose hash is `from` or above.
    pub fn first_from<T>(&self, from: u64, f: impl FnOnce(&RowData) -> T) -> Option<T> {
        for p in part_of(from)..PARTS {
            let part = self.read_part(p);
            let row = part.at_or_above(from.max(first_of(p)));
            if !row.is_null() {
                // SAFETY: see the module.
                return Some(f(unsafe { &*row }));
            }
        }
        None
    }
    /// Shows the row behind all rows of this key; the first value is whether there are rows of this key.
    pub fn behind<T>(
        &self,
        key: Word,
        tables: &Tables,
        f: impl FnOnce(&RowData) -> T,
    ) -> (bool, Option<T>) {
        let hash = Self::hash(key, tables);
        let part = self.read(hash);
        let mut p = part.find(hash, key, self.keypos, tables);
        let found = !p.is_null();
        // SAFETY: see the module.
        unsafe {
            while Part::has_key(p, hash, key, self.keypos, tables) {
                p = (*p).next;
            }
            if !p.is_null() {
                return (found, Some(f(&*p)));
            }
        }
        // The rest of the chain was no longer than the rows of the key (or the key is not there): on from the next hash.
        drop(part);
        if hash + 1 == 1 << HASH_BITS {
            return (found, None);
        }
        (found, self.first_from(hash + 1, f))
    }
    /// Shows rows from hash `from` on; `f` says whether it wants more. It stops only between hashes, and only when there is
    /// a further row: gives that row's hash, or `None` at the end of the table.
    /// The lock of a part is held over its rows: `f` must not touch the table.
    pub fn walk(&self, from: u64, mut f: impl FnMut(&RowData) -> bool) -> Option<u64> {
        let (mut stopped, mut last) = (false, 0);
        for p in part_of(from)..PARTS {
            let part = self.read_part(p);
            if part.len == 0 {
                continue;
            }
            let start = from.max(first_of(p));
            let mut r = part.at_or_above(start);
            if r.is_null() {
                continue;
            }
            // SAFETY: see the module.
            unsafe {
                let mut b = part.bucket_of((*r).hash);
                loop {
                    while !r.is_null() {
                        let row = &*r;
                        if stopped && row.hash != last {
                            return Some(row.hash);
                        }
                        stopped |= !f(row);
                        last = row.hash;
                        r = row.next;
                    }
                    b += 1;
                    match part.buckets.get(b) {
                        Some(first) => r = *first,
                        None => break,
                    }
                }
            }
        }
        None
    }
    /// As [`HashStore::walk`], where `f` also decides what becomes of the row. Rows that went and by how many bytes the
    /// table has grown are given with the position.
    pub fn walk_mut(
        &self,
        from: u64,
        may_shrink: bool,
        mut f: impl FnMut(&RowData) -> (Keep, bool),
    ) -> (Option<u64>, Vec<Row>, isize) {
        let (mut stopped, mut last) = (false, 0);
        let mut gone = Vec::new();
        let mut growth = 0;
        for p in part_of(from)..PARTS {
            let mut part = self.write_part(p);
            let start = from.max(first_of(p));
            if part.at_or_above(start).is_null() {
                continue;
            }
            let first = part.bucket_of(start);
            let buckets = part.buckets.len();
            for b in first..buckets {
                let mut at: *mut *mut RowData = &raw mut part.buckets[b];
                // SAFETY: see the module; `at` stays a link of the part over each change.
                unsafe {
                    while !(*at).is_null() {
                        let row = &**at;
                        let hash = row.hash;
                        if hash < start {
                            at = &raw mut (**at).next;
                            continue;
                        }
                        if stopped && hash != last {
                            growth += part.growth();
                            return (Some(hash), gone, growth);
                        }
                        let (keep, more) = f(row);
                        last = hash;
                        stopped |= !more;
                        match keep {
                            Keep::Stay => at = &raw mut (**at).next,
                            Keep::Go => gone.push(part.remove(at)),
                            Keep::Replace(new) => {
                                drop(part.replace(at, new));
                                at = &raw mut (**at).next;
                            }
                        }
                    }
                }
            }
            growth += part.growth();
            if may_shrink {
                part.shrink();
            }
        }
        (None, gone, growth)
    }
}
