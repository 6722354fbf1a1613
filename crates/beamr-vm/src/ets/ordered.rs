//! The store of `ordered_set`: rows in term order (`==`: 1 and 1.0 are one key).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use beamr_term::{Tables, Word, order};

use super::row::Row;

/// A key that compares by term order. It lies in its row (or, for a look-up, in the caller's term).
#[derive(Clone, Copy)]
pub struct Key {
    word: Word,
    tables: *const Tables,
}

// SAFETY: the tables live as long as the VM that owns the table; keys are immutable.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Key {
    /// A key to look for.
    pub fn new(word: Word, tables: &Tables) -> Key {
        Key { word, tables }
    }
    /// Its term.
    pub fn word(&self) -> Word {
        self.word
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
    fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Key {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        // SAFETY: see the type.
        order::compare(self.word, o.word, unsafe { &*self.tables })
    }
}

/// See the module. The key of an entry lies in the entry's own row.
#[derive(Debug)]
pub struct OrderedStore {
    map: RwLock<BTreeMap<Key, Row>>,
    /// Index of the key in a row, from 0.
    pub keypos: usize,
}

/// The map behind the lock.
pub type Map = BTreeMap<Key, Row>;

impl OrderedStore {
    /// An empty store.
    pub fn new(keypos: usize) -> OrderedStore {
        OrderedStore {
            map: RwLock::default(),
            keypos,
        }
    }
    /// For reading.
    pub fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(|e| e.into_inner())
    }
    /// For writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(|e| e.into_inner())
    }
    /// Puts a row into the map in place of one of an equal key, which is given back. The map's key is always that of the
    /// row it maps to.
    pub fn put(&self, map: &mut Map, row: Row, tables: &Tables) -> Option<Row> {
        let key = Key::new(row.element(self.keypos), tables);
        let old = map.remove(&key);
        map.insert(key, row);
        old
    }
    /// The rows behind `key`, ascending (or before it, descending).
    pub fn from<'a>(
        map: &'a Map,
        key: Option<&Key>,
        down: bool,
    ) -> Box<dyn Iterator<Item = (&'a Key, &'a Row)> + 'a> {
        match (key, down) {
            (None, false) => Box::new(map.iter()),
            (None, true) => Box::new(map.iter().rev()),
            (Some(k), false) => Box::new(map.range((Bound::Excluded(*k), Bound::Unbounded))),
            (Some(k), true) => Box::new(map.range((Bound::Unbounded, Bound::Excluded(*k))).rev()),
        }
    }
}
