//! The store of `ordered_set`: rows in term order (`==`: 1 and 1.0 are one key).

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use beamr_term::{Tables, Word, order};

use super::hash::Keep;
use super::row::{Row, RowData};
use crate::match_spec::key::compare_partly;

/// What kind a key is, in the low bits of its pointer to the tables.
const EXACT: usize = 0;
/// A pattern, before every key that it matches.
const BELOW: usize = 1;
/// A pattern, behind every key that it matches.
const ABOVE: usize = 2;

/// A key that compares by term order. It lies in its row (or, for a look-up, in the caller's term).
#[derive(Clone, Copy)]
pub struct Key {
    word: Word,
    /// The tables, and the kind in the low bits.
    tables: usize,
}

impl Key {
    /// A key to look for.
    #[inline]
    pub fn new(word: Word, tables: &Tables) -> Key {
        Key {
            word,
            tables: std::ptr::from_ref(tables) as usize | EXACT,
        }
    }
    /// The place before (or behind) all keys that a pattern matches as far as it is bound.
    pub fn edge(pattern: Word, below: bool, tables: &Tables) -> Key {
        let kind = if below { BELOW } else { ABOVE };
        Key {
            word: pattern,
            tables: std::ptr::from_ref(tables) as usize | kind,
        }
    }
    /// Its term.
    pub fn word(&self) -> Word {
        self.word
    }
    fn tables(&self) -> &Tables {
        // SAFETY: the tables live as long as the VM that owns the table of the key; they are aligned to more than
        // the bits that the kind takes.
        unsafe { &*((self.tables & !3) as *const Tables) }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.word.fmt(f)
    }
}

impl PartialEq for Key {
    fn eq(&self, o: &Self) -> bool {
        self.cmp(o).is_eq()
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, o: &Self) -> Option<Order> {
        Some(self.cmp(o))
    }
}
impl Ord for Key {
    #[inline]
    fn cmp(&self, o: &Self) -> Order {
        if (self.tables | o.tables) & 3 == EXACT {
            return order::compare(self.word, o.word, self.tables());
        }
        if self.tables & 3 == EXACT {
            return o.cmp(self).reverse();
        }
        let edge = if self.tables & 3 == BELOW {
            Order::Less
        } else {
            Order::Greater
        };
        compare_partly(self.word, o.word, self.tables()).then(edge)
    }
}

/// A row with its key.
#[derive(Debug)]
pub struct Entry {
    key: Key,
    row: Row,
}

impl Borrow<Key> for Entry {
    #[inline]
    fn borrow(&self) -> &Key {
        &self.key
    }
}
impl PartialEq for Entry {
    fn eq(&self, o: &Self) -> bool {
        self.key == o.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, o: &Self) -> Option<Order> {
        Some(self.cmp(o))
    }
}
impl Ord for Entry {
    #[inline]
    fn cmp(&self, o: &Self) -> Order {
        self.key.cmp(&o.key)
    }
}

/// The rows behind the lock.
#[derive(Debug, Default)]
pub struct Rows {
    set: BTreeSet<Entry>,
    bytes: usize,
}

impl Rows {
    /// The row of this key.
    #[inline]
    pub fn get(&self, key: &Key) -> Option<&RowData> {
        self.set.get(key).map(|e| &*e.row)
    }
    /// The block of the row of this key.
    pub(super) fn get_ptr(&self, key: &Key) -> Option<*mut RowData> {
        self.set.get(key).map(|e| e.row.as_ptr())
    }
    /// Puts a row in, in place of one of an equal key, which is given back.
    #[inline]
    pub fn put(&mut self, row: Row, keypos: usize, tables: &Tables) -> Option<Row> {
        let key = Key::new(row.element(keypos), tables);
        self.bytes += row.bytes();
        let old = self.set.replace(Entry { key, row })?;
        self.bytes -= old.row.bytes();
        Some(old.row)
    }
    /// Takes a row out.
    pub fn remove(&mut self, key: &Key) -> Option<Row> {
        let e = self.set.take(key)?;
        self.bytes -= e.row.bytes();
        Some(e.row)
    }
    /// Rows.
    pub fn len(&self) -> usize {
        self.set.len()
    }
    /// Bytes of rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
    /// The `n`th row from 0.
    pub fn nth(&self, n: usize) -> Option<&RowData> {
        self.set.iter().nth(n).map(|e| &*e.row)
    }
    /// The row next to a place, above or below; without a place the first or last one.
    pub fn next(&self, from: Option<Key>, down: bool) -> Option<&RowData> {
        let e = match (from, down) {
            (None, false) => self.set.first(),
            (None, true) => self.set.last(),
            (Some(k), false) => self
                .set
                .range((Bound::Excluded(k), Bound::Unbounded))
                .next(),
            (Some(k), true) => self
                .set
                .range((Bound::Unbounded, Bound::Excluded(k)))
                .next_back(),
        };
        e.map(|e| &*e.row)
    }
    /// Shows the rows behind a place in one direction while `f` wants more; true when there are no more.
    pub fn walk(&self, from: Option<Key>, down: bool, mut f: impl FnMut(&RowData) -> bool) -> bool {
        let low = match from {
            Some(k) if !down => Bound::Excluded(k),
            _ => Bound::Unbounded,
        };
        let high = match from {
            Some(k) if down => Bound::Excluded(k),
            _ => Bound::Unbounded,
        };
        let mut rows = self.set.range((low, high));
        loop {
            let e = if down { rows.next_back() } else { rows.next() };
            match e {
                None => return true,
                Some(e) => {
                    if !f(&e.row) {
                        return false;
                    }
                }
            }
        }
    }
    /// As [`Rows::walk`] upwards, where `f` also decides what becomes of the row; gives the rows that went.
    pub fn walk_mut(
        &mut self,
        from: Option<Key>,
        keypos: usize,
        tables: &Tables,
        mut f: impl FnMut(&RowData) -> (Keep, bool),
    ) -> (bool, Vec<Row>) {
        let mut decided = Vec::new();
        let done = self.walk(from, false, |row| {
            let (keep, more) = f(row);
            match keep {
                Keep::Stay => {}
                Keep::Go => decided.push((Key::new(row.element(keypos), tables), None)),
                Keep::Replace(new) => {
                    decided.push((Key::new(row.element(keypos), tables), Some(new)));
                }
            }
            more
        });
        let mut gone = Vec::new();
        for (key, new) in decided {
            match new {
                // The key lies in the row that goes: it is not used afterwards.
                None => gone.extend(self.remove(&key)),
                Some(new) => gone.extend(self.put(new, keypos, tables)),
            }
        }
        (done, gone)
    }
}

/// See the module. The key of an entry lies in the entry's own row.
#[derive(Debug)]
pub struct OrderedStore {
    rows: RwLock<Rows>,
    len: AtomicUsize,
    bytes: AtomicUsize,
    /// Index of the key in a row, from 0.
    pub keypos: usize,
}

/// The rows, locked for writing.
#[derive(Debug)]
pub struct RowsWrite<'s> {
    rows: RwLockWriteGuard<'s, Rows>,
    store: &'s OrderedStore,
    bytes: usize,
}

impl RowsWrite<'_> {
    /// By how many bytes the table has grown while it was locked.
    pub fn growth(&self) -> isize {
        self.rows.bytes as isize - self.bytes as isize
    }
}

impl std::ops::Deref for RowsWrite<'_> {
    type Target = Rows;
    #[inline]
    fn deref(&self) -> &Rows {
        &self.rows
    }
}
impl std::ops::DerefMut for RowsWrite<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }
}
impl Drop for RowsWrite<'_> {
    fn drop(&mut self) {
        self.store.len.store(self.rows.len(), Ordering::Relaxed);
        self.store.bytes.store(self.rows.bytes, Ordering::Relaxed);
    }
}

impl OrderedStore {
    /// An empty store.
    pub fn new(keypos: usize) -> OrderedStore {
        OrderedStore {
            rows: RwLock::default(),
            len: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            keypos,
        }
    }
    /// For reading.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(|e| e.into_inner())
    }
    /// For writing.
    #[inline]
    pub fn write(&self) -> RowsWrite<'_> {
        let rows = self.rows.write().unwrap_or_else(|e| e.into_inner());
        RowsWrite {
            bytes: rows.bytes,
            rows,
            store: self,
        }
    }
    /// Rows.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of rows.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
