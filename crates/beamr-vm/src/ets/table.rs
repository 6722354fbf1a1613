//! One table: identity, owner, options, store, memory.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use beamr_term::{Atom, OwnedTerm, Tables, Word};

use super::hash::{Entry, HashStore};
use super::ordered::{Key, OrderedStore};
use super::row::Row;

/// The type of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableKind {
    /// One row a key, `=:=`.
    Set,
    /// One row a key, `==`, in term order.
    OrderedSet,
    /// Several different rows a key.
    Bag,
    /// Several rows a key.
    DuplicateBag,
}

/// Who may do what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Everybody reads and writes.
    Public,
    /// The owner writes, everybody reads.
    Protected,
    /// The owner only.
    Private,
}

/// Who gets the table when its owner ends.
#[derive(Debug, Clone)]
pub struct Heir {
    /// The local pid.
    pub pid: Word,
    /// Sent along with the table.
    pub data: Arc<OwnedTerm>,
}

/// What `ets:new/2` was told.
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// The table's name (for a table that is not named, only information).
    pub name: Atom,
    /// Whether the name is registered.
    pub named: bool,
    /// Type.
    pub kind: TableKind,
    /// Access.
    pub protection: Protection,
    /// Position of the key, from 1.
    pub keypos: usize,
    /// Accepted; reads are concurrent anyway.
    pub read_concurrency: bool,
    /// Accepted: false, true or `auto` as a term.
    pub write_concurrency: Word,
    /// Accepted.
    pub decentralized_counters: bool,
    /// Accepted: rows are not compressed.
    pub compressed: bool,
    /// The heir at creation.
    pub heir: Option<Heir>,
}

/// Rows.
#[derive(Debug)]
pub enum Store {
    /// `set`, `bag`, `duplicate_bag`.
    Hash(HashStore),
    /// `ordered_set`.
    Ordered(OrderedStore),
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    /// The numbers of its reference.
    pub id: [u32; 3],
    /// Fixed options; `name` is the one at creation ([`Table::name`] is current).
    pub options: TableOptions,
    /// Rows.
    pub store: Store,
    /// Whether the table was deleted: nobody finds rows in it any more.
    pub deleted: AtomicBool,
    name: RwLock<Atom>,
    owner: AtomicU64,
    heir: Mutex<Option<Heir>>,
    /// Rows.
    size: AtomicI64,
    /// Bytes of rows.
    bytes: AtomicUsize,
    /// Processes that fixed it, with their counts.
    pub fixes: Mutex<Vec<(Word, u32)>>,
    /// Serialises operations of several rows that must be atomic against each other (`insert` of a list, `insert_new`,
    /// `rename`).
    pub many: Mutex<()>,
    /// The VM's tables.
    pub tables: Arc<Tables>,
}

/// What a table's reference owns: the table while it exists.
#[derive(Debug)]
pub struct TableHandle(pub Weak<Table>);

impl Table {
    /// A table owned by the local pid `owner`.
    pub fn new(id: [u32; 3], options: TableOptions, owner: Word, tables: Arc<Tables>) -> Table {
        let keypos = options.keypos - 1;
        Table {
            id,
            name: RwLock::new(options.name),
            owner: AtomicU64::new(owner.bits()),
            heir: Mutex::new(options.heir.clone()),
            store: match options.kind {
                TableKind::OrderedSet => Store::Ordered(OrderedStore::new(keypos)),
                _ => Store::Hash(HashStore::new(keypos)),
            },
            options,
            deleted: AtomicBool::new(false),
            size: AtomicI64::new(0),
            bytes: AtomicUsize::new(0),
            fixes: Mutex::new(Vec::new()),
            many: Mutex::new(()),
            tables,
        }
    }
    /// The owner's pid.
    pub fn owner(&self) -> Word {
        // SAFETY: only local pids (immediates) are stored.
        unsafe { Word::from_bits(self.owner.load(Ordering::Acquire)) }
    }
    /// Gives the table to another process.
    pub fn set_owner(&self, owner: Word) {
        self.owner.store(owner.bits(), Ordering::Release);
    }
    /// The current name.
    pub fn name(&self) -> Atom {
        *self.name.read().unwrap_or_else(|e| e.into_inner())
    }
    /// Renames.
    pub fn set_name(&self, name: Atom) {
        *self.name.write().unwrap_or_else(|e| e.into_inner()) = name;
    }
    /// The current heir.
    pub fn heir(&self) -> Option<Heir> {
        self.heir.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
    /// Changes the heir.
    pub fn set_heir(&self, heir: Option<Heir>) {
        *self.heir.lock().unwrap_or_else(|e| e.into_inner()) = heir;
    }
    /// Index of the key in a row, from 0.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.options.keypos - 1
    }
    /// Whether the process may read.
    #[inline]
    pub fn readable_by(&self, pid: Word) -> bool {
        !matches!(self.options.protection, Protection::Private) || self.owner() == pid
    }
    /// Whether the process may write.
    #[inline]
    pub fn writable_by(&self, pid: Word) -> bool {
        matches!(self.options.protection, Protection::Public) || self.owner() == pid
    }
    /// Rows.
    #[inline]
    pub fn size(&self) -> i64 {
        self.size.load(Ordering::Acquire)
    }
    /// Words of memory, as `ets:info(T, memory)` gives them.
    pub fn memory_words(&self) -> usize {
        let per_row = match self.options.kind {
            TableKind::OrderedSet => 6,
            _ => 4,
        };
        300 + self.bytes.load(Ordering::Acquire) / 8 + self.size().max(0) as usize * per_row
    }
    /// Whether a process fixed it.
    pub fn is_fixed(&self) -> bool {
        !self
            .fixes
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .is_empty()
    }

    #[inline]
    fn count(&self, row: &Row) {
        self.size.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_add(row.bytes(), Ordering::AcqRel);
    }
    /// Takes a row out of the figures.
    #[inline]
    pub fn discount(&self, row: &Row) {
        self.size.fetch_sub(1, Ordering::AcqRel);
        self.bytes.fetch_sub(row.bytes(), Ordering::AcqRel);
    }
    /// Adjusts the figures for a row that took another's place.
    #[inline]
    pub fn recount(&self, new: usize, old: usize) {
        self.bytes.fetch_add(new, Ordering::AcqRel);
        self.bytes.fetch_sub(old, Ordering::AcqRel);
    }

    /// `insert` of one row (a tuple long enough for the key).
    pub fn insert(&self, tuple: Word) {
        let t = &*self.tables;
        let row = Row::new(tuple);
        match &self.store {
            Store::Hash(h) => {
                let key = row.element(h.keypos);
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                match self.options.kind {
                    TableKind::DuplicateBag => {
                        let (b, at) = part.behind_last(hash, key, h.keypos, t);
                        self.count(&row);
                        part.insert_at(b, at, Entry { hash, row });
                    }
                    TableKind::Bag => {
                        let (b, range) = part.find(hash, key, h.keypos, t);
                        let there = part
                            .entries(b, range.clone())
                            .iter()
                            .any(|e| beamr_term::order::eq_exact(e.row.tuple(), row.tuple(), t));
                        if !there {
                            self.count(&row);
                            part.insert_at(b, range.end, Entry { hash, row });
                        }
                    }
                    _ => {
                        let (b, range) = part.find(hash, key, h.keypos, t);
                        if range.is_empty() {
                            self.count(&row);
                            part.insert_at(b, range.end, Entry { hash, row });
                        } else {
                            let new = row.bytes();
                            let old = part.replace(b, range.start, row);
                            drop(part);
                            self.recount(new, old.bytes());
                        }
                    }
                }
            }
            Store::Ordered(o) => {
                let mut map = o.write();
                self.count(&row);
                if let Some(old) = o.put(&mut map, row, t) {
                    drop(map);
                    self.size.fetch_sub(1, Ordering::AcqRel);
                    self.bytes.fetch_sub(old.bytes(), Ordering::AcqRel);
                }
            }
        }
    }
    /// Inserts a row unless its key is there; whether it did.
    pub fn insert_new(&self, tuple: Word) -> bool {
        let t = &*self.tables;
        let key = tuple.term_field(self.options.keypos);
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (b, range) = part.find(hash, key, h.keypos, t);
                if !range.is_empty() {
                    return false;
                }
                let row = Row::new(tuple);
                self.count(&row);
                part.insert_at(b, range.end, Entry { hash, row });
                true
            }
            Store::Ordered(o) => {
                let mut map = o.write();
                if map.contains_key(&Key::new(key, t)) {
                    return false;
                }
                let row = Row::new(tuple);
                self.count(&row);
                o.put(&mut map, row, t);
                true
            }
        }
    }
    /// Whether there is a row of this key.
    pub fn member(&self, key: Word) -> bool {
        let mut any = false;
        self.lookup(key, |_| any = true);
        any
    }
    /// Shows the rows of this key in their order, under the table's lock.
    #[inline]
    pub fn lookup(&self, key: Word, mut f: impl FnMut(&Row)) {
        let t = &*self.tables;
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let part = h.read(hash);
                let (b, range) = part.find(hash, key, h.keypos, t);
                for e in part.entries(b, range) {
                    f(&e.row);
                }
            }
            Store::Ordered(o) => {
                if let Some(row) = o.read().get(&Key::new(key, t)) {
                    f(row);
                }
            }
        }
    }
    /// Removes the rows of this key; they are given to be looked at and dropped.
    pub fn take(&self, key: Word) -> Vec<Row> {
        let t = &*self.tables;
        let gone: Vec<Row> = match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (b, range) = part.find(hash, key, h.keypos, t);
                if range.is_empty() {
                    return Vec::new();
                }
                part.remove(b, range).into_iter().map(|e| e.row).collect()
            }
            Store::Ordered(o) => o.write().remove(&Key::new(key, t)).into_iter().collect(),
        };
        for row in &gone {
            self.discount(row);
        }
        gone
    }
    /// Removes the rows that are exactly this tuple.
    pub fn delete_object(&self, tuple: Word) {
        let t = &*self.tables;
        let key = tuple.term_field(self.options.keypos);
        let mut gone = Vec::new();
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (b, range) = part.find(hash, key, h.keypos, t);
                for i in range.rev() {
                    if beamr_term::order::eq_exact(
                        part.entries(b, i..i + 1)[0].row.tuple(),
                        tuple,
                        t,
                    ) {
                        gone.extend(part.remove(b, i..i + 1).into_iter().map(|e| e.row));
                    }
                }
            }
            Store::Ordered(o) => {
                let mut map = o.write();
                let k = Key::new(key, t);
                if map
                    .get(&k)
                    .is_some_and(|r| beamr_term::order::eq_exact(r.tuple(), tuple, t))
                {
                    gone.extend(map.remove(&k));
                }
            }
        }
        for row in &gone {
            self.discount(row);
        }
    }
    /// Replaces the row of this key by what `f` makes of it (same key), in one step. `None` when there is no row; `f`'s
    /// error leaves the row as it was. For `set` and `ordered_set`.
    pub fn update<E>(
        &self,
        key: Word,
        f: impl FnOnce(Word) -> Result<Row, E>,
    ) -> Option<Result<(), E>> {
        let t = &*self.tables;
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (b, range) = part.find(hash, key, h.keypos, t);
                let tuple = part.entries(b, range.clone()).first()?.row.tuple();
                Some(f(tuple).map(|row| {
                    let new = row.bytes();
                    let old = part.replace(b, range.start, row);
                    self.recount(new, old.bytes());
                }))
            }
            Store::Ordered(o) => {
                let mut map = o.write();
                let tuple = map.get(&Key::new(key, t))?.tuple();
                Some(f(tuple).map(|row| {
                    let new = row.bytes();
                    if let Some(old) = o.put(&mut map, row, t) {
                        self.recount(new, old.bytes());
                    }
                }))
            }
        }
    }
    /// Empties the table; gives the number of rows that went.
    pub fn clear(&self) -> i64 {
        match &self.store {
            Store::Hash(h) => drop(h.clear()),
            Store::Ordered(o) => drop(std::mem::take(&mut *o.write())),
        }
        self.bytes.store(0, Ordering::Release);
        self.size.swap(0, Ordering::AcqRel)
    }
}
