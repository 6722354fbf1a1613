//! One table: identity, owner, options, store, memory.
//!
//! A table outlives its deletion as an empty shell as long as references to it exist: who holds a reference reads
//! `deleted` and finds nothing. Every operation that writes looks at `deleted` again under the lock, so that
//! nothing enters a table that is being emptied.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use beamr_term::{Atom, OwnedTerm, Tables, Word};

use super::hash::{HashStore, Part};
use super::ordered::{Key, OrderedStore, Rows};
use super::row::{self, Row, RowData};
use crate::vm::Namespace;

/// Words of a table without rows and without what finds them.
pub const SHELL_WORDS: usize = 300;

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
#[repr(u8)]
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

/// The option `write_concurrency` (rows are always locked in parts; the setting is only told).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteConcurrency {
    /// `false`.
    Off,
    /// `true`.
    On,
    /// `auto`.
    Auto,
    /// `{debug_hash_fixed_number_of_locks, N}`.
    Locks(u32),
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
    /// Only told: reads are concurrent anyway.
    pub read_concurrency: bool,
    /// Only told.
    pub write_concurrency: WriteConcurrency,
    /// Only told.
    pub decentralized_counters: bool,
    /// Only told: rows are not compressed.
    pub compressed: bool,
    /// The heir at creation.
    pub heir: Option<Heir>,
}

/// Rows.
// A store is always inside a counted table: its size is paid once a table.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Store {
    /// `set`, `bag`, `duplicate_bag`.
    Hash(HashStore),
    /// `ordered_set`.
    Ordered(OrderedStore),
}

/// Rows that were taken out of a table, to be freed.
#[derive(Debug)]
pub enum Remains {
    /// Parts of a hash store.
    Parts(Vec<Part>),
    /// Rows of an ordered store.
    Rows(Rows),
}

/// The table was deleted before the operation could take effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the table was deleted")]
pub struct Deleted;

/// Who holds the table fixed.
#[derive(Debug, Default)]
pub struct Fixing {
    /// Processes, with their counts.
    pub procs: Vec<(Word, u32)>,
    /// When the first came: monotonic time and system time in nanoseconds.
    pub since: (i64, i64),
    /// Hashes of keys of rows that went meanwhile: `next` still knows them.
    ghosts: HashSet<u64>,
    /// How many rows went.
    kept: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Table {
    /// The numbers of its reference.
    pub id: [u32; 3],
    /// Options at creation; name, protection and heir may have changed since.
    pub options: TableOptions,
    /// Rows.
    pub store: Store,
    /// The namespace that its name and its memory belong to.
    pub namespace: Arc<Namespace>,
    /// The VM's tables.
    pub tables: Arc<Tables>,
    deleted: AtomicBool,
    protection: AtomicU8,
    name: AtomicU32,
    owner: AtomicU64,
    fixed: AtomicU32,
    heir: Mutex<Option<Heir>>,
    fixing: Mutex<Fixing>,
}

/// A row whose table is locked for writing by the operation that shows it.
#[derive(Clone, Copy, Debug)]
pub struct RowMut<'r>(*mut RowData, std::marker::PhantomData<&'r RowData>);

impl RowMut<'_> {
    /// # Safety
    /// The block of a row that only the caller touches as long as the value lives.
    unsafe fn new(row: *mut RowData) -> Self {
        RowMut(row, std::marker::PhantomData)
    }
    /// Puts an immediate at element `n` (from 0). It must not be the key's.
    #[inline]
    pub fn set_immediate(self, n: usize, value: Word) {
        assert!(n < self.arity() && value.is_immediate());
        // SAFETY: checked; nobody else touches the row.
        unsafe { row::set_immediate(self.0, n, value) };
    }
}

impl std::ops::Deref for RowMut<'_> {
    type Target = RowData;
    #[inline]
    fn deref(&self) -> &RowData {
        // SAFETY: see `new`. The reference ends before anything is set.
        unsafe { &*self.0 }
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Table {
    /// A table owned by the local pid `owner`.
    pub fn new(
        id: [u32; 3],
        options: TableOptions,
        owner: Word,
        namespace: Arc<Namespace>,
        tables: Arc<Tables>,
    ) -> Table {
        let keypos = options.keypos - 1;
        Table {
            id,
            deleted: AtomicBool::new(false),
            protection: AtomicU8::new(options.protection as u8),
            name: AtomicU32::new(options.name.index()),
            owner: AtomicU64::new(owner.bits()),
            fixed: AtomicU32::new(0),
            heir: Mutex::new(options.heir.clone()),
            fixing: Mutex::default(),
            store: match options.kind {
                TableKind::OrderedSet => Store::Ordered(OrderedStore::new(keypos)),
                _ => Store::Hash(HashStore::new(keypos)),
            },
            options,
            namespace,
            tables,
        }
    }
    /// Whether it was deleted.
    #[inline]
    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }
    /// Marks it as deleted; false when it was already.
    pub(super) fn mark_deleted(&self) -> bool {
        !self.deleted.swap(true, Ordering::AcqRel)
    }
    /// The owner's pid.
    #[inline]
    pub fn owner(&self) -> Word {
        // SAFETY: only local pids (immediates) are stored.
        unsafe { Word::from_bits(self.owner.load(Ordering::Acquire)) }
    }
    pub(super) fn set_owner(&self, owner: Word) {
        self.owner.store(owner.bits(), Ordering::Release);
    }
    /// The current name.
    #[inline]
    pub fn name(&self) -> Atom {
        Atom::from_index(self.name.load(Ordering::Acquire))
    }
    pub(super) fn set_name(&self, name: Atom) {
        self.name.store(name.index(), Ordering::Release);
    }
    /// The current heir.
    pub fn heir(&self) -> Option<Heir> {
        lock(&self.heir).clone()
    }
    /// Changes the heir.
    pub fn set_heir(&self, heir: Option<Heir>) {
        *lock(&self.heir) = heir;
    }
    /// Who may do what now.
    #[inline]
    pub fn protection(&self) -> Protection {
        match self.protection.load(Ordering::Acquire) {
            0 => Protection::Public,
            1 => Protection::Protected,
            _ => Protection::Private,
        }
    }
    /// Changes the protection.
    pub fn set_protection(&self, p: Protection) {
        self.protection.store(p as u8, Ordering::Release);
    }
    /// Index of the key in a row, from 0.
    #[inline]
    pub fn keypos(&self) -> usize {
        self.options.keypos - 1
    }
    /// Whether keys may have several rows.
    #[inline]
    pub fn is_bag(&self) -> bool {
        matches!(self.options.kind, TableKind::Bag | TableKind::DuplicateBag)
    }
    /// Whether the process may read.
    #[inline]
    pub fn readable_by(&self, pid: Word) -> bool {
        self.protection.load(Ordering::Acquire) != Protection::Private as u8 || self.owner() == pid
    }
    /// Whether the process may write.
    #[inline]
    pub fn writable_by(&self, pid: Word) -> bool {
        self.protection.load(Ordering::Acquire) == Protection::Public as u8 || self.owner() == pid
    }
    /// Rows.
    pub fn size(&self) -> usize {
        match &self.store {
            Store::Hash(h) => h.len(),
            Store::Ordered(o) => o.len(),
        }
    }
    /// Words of memory, as `ets:info(T, memory)` gives them: rows as they are, what is around them as OTP has it.
    pub fn memory_words(&self) -> usize {
        let concurrent = self.options.write_concurrency != WriteConcurrency::Off;
        match &self.store {
            Store::Hash(h) => {
                let index = match h.len().checked_sub(256) {
                    None | Some(0) => 256,
                    Some(more) => 512 + more.div_ceil(2048) * 2048,
                };
                let locks = if concurrent { 1024 } else { 0 };
                SHELL_WORDS + index + locks + h.bytes() / 8
            }
            Store::Ordered(o) => {
                // A walk needs a stack where there is one tree.
                let stack = if concurrent { 0 } else { 90 };
                let counters = if self.options.decentralized_counters {
                    64
                } else {
                    0
                };
                SHELL_WORDS + stack + counters + o.bytes() / 8 + o.len()
            }
        }
    }
    #[inline]
    fn charge(&self, growth: isize) {
        if growth != 0 {
            self.namespace.charge_memory(growth);
        }
    }

    // ---- fixing

    /// Whether a process holds it fixed.
    #[inline]
    pub fn is_fixed(&self) -> bool {
        self.fixed.load(Ordering::Acquire) > 0
    }
    /// Fixes it for a process; true when that process had not fixed it before.
    pub fn fix(&self, pid: Word, now: (i64, i64)) -> bool {
        let mut f = lock(&self.fixing);
        if f.procs.is_empty() {
            f.since = now;
        }
        let first = match f.procs.iter_mut().find(|p| p.0 == pid) {
            Some(p) => {
                p.1 += 1;
                false
            }
            None => {
                f.procs.push((pid, 1));
                true
            }
        };
        self.fixed.fetch_add(1, Ordering::AcqRel);
        first
    }
    /// Undoes one fixing (or, with `all`, every one) of a process; true when it holds none any more.
    pub fn unfix(&self, pid: Word, all: bool) -> bool {
        let mut f = lock(&self.fixing);
        let Some(i) = f.procs.iter().position(|p| p.0 == pid) else {
            return false;
        };
        let n = if all { f.procs[i].1 } else { 1 };
        f.procs[i].1 -= n;
        let none = f.procs[i].1 == 0;
        if none {
            f.procs.swap_remove(i);
        }
        if self.fixed.fetch_sub(n, Ordering::AcqRel) == n {
            f.ghosts = HashSet::new();
            f.kept = 0;
        }
        none
    }
    /// Looks at the fixing processes.
    pub fn fixing<T>(&self, look: impl FnOnce(&Fixing) -> T) -> T {
        look(&lock(&self.fixing))
    }
    /// Rows that went while the table was fixed.
    pub fn kept(&self) -> usize {
        lock(&self.fixing).kept
    }
    /// Whether a row of this key went while the table was fixed.
    pub fn is_ghost(&self, key: Word) -> bool {
        self.is_fixed()
            && lock(&self.fixing)
                .ghosts
                .contains(&HashStore::hash(key, &self.tables))
    }
    #[inline]
    fn gone(&self, rows: &[Row]) {
        if !rows.is_empty() && self.is_fixed() && matches!(self.store, Store::Hash(_)) {
            let mut f = lock(&self.fixing);
            if self.is_fixed() {
                f.kept += rows.len();
                f.ghosts.extend(rows.iter().map(|r| r.hash));
            }
        }
    }

    // ---- single rows

    /// `insert` of one row (a tuple long enough for the key).
    pub fn insert(&self, tuple: Word) -> Result<(), Deleted> {
        let t = &*self.tables;
        // A row of immediates is made under the lock, when there is none to write over.
        let flat = row::is_flat(tuple);
        let mut old = None;
        match &self.store {
            Store::Hash(h) => {
                let key = tuple.term_field(h.keypos + 1);
                let hash = HashStore::hash(key, t);
                let ready = (!flat).then(|| Row::new(tuple));
                let mut part = h.write(hash);
                if self.is_deleted() {
                    return Err(Deleted);
                }
                if flat && self.options.kind == TableKind::Set {
                    let (at, found) = part.link(hash, key, h.keypos, t);
                    // SAFETY: the link is fresh, the lock is held for writing.
                    unsafe {
                        if found && row::overwrite(*at, tuple) {
                            return Ok(());
                        }
                    }
                }
                let row = ready.unwrap_or_else(|| Row::new(tuple));
                self.link(h, &mut part, hash, key, row, &mut old);
                let growth = part.growth();
                drop(part);
                self.charge(growth);
            }
            Store::Ordered(o) => {
                let ready = (!flat).then(|| Row::new(tuple));
                let mut rows = o.write();
                if self.is_deleted() {
                    return Err(Deleted);
                }
                if flat {
                    let key = Key::new(tuple.term_field(o.keypos + 1), t);
                    // SAFETY: the lock is held for writing. A row that is written over had the same key to the word: both are
                    // immediates, and immediates are equal only when they are the same.
                    if let Some(at) = rows.get_ptr(&key)
                        && unsafe { row::overwrite(at, tuple) }
                    {
                        return Ok(());
                    }
                }
                old = rows.put(ready.unwrap_or_else(|| Row::new(tuple)), o.keypos, t);
                let growth = rows.growth();
                drop(rows);
                self.charge(growth);
            }
        }
        drop(old);
        Ok(())
    }
    /// Puts a row into its part, by the rules of the table's type. A row that it replaces goes to `old`.
    #[inline]
    fn link(
        &self,
        h: &HashStore,
        part: &mut Part,
        hash: u64,
        key: Word,
        row: Row,
        old: &mut Option<Row>,
    ) {
        let t = &*self.tables;
        let (at, found) = part.link(hash, key, h.keypos, t);
        // SAFETY: the link is fresh; rows are read under the lock of their part.
        unsafe {
            match self.options.kind {
                TableKind::Bag if found => {
                    let mut p = *at;
                    while Part::has_key(p, hash, key, h.keypos, t) {
                        if row::same((*p).tuple(), row.tuple(), t) {
                            return;
                        }
                        p = (*p).next;
                    }
                    part.insert(at, hash, row);
                }
                TableKind::Bag | TableKind::DuplicateBag => part.insert(at, hash, row),
                _ if found => *old = Some(part.replace(at, row)),
                _ => part.insert(at, hash, row),
            }
        }
    }
    /// Inserts a row unless its key is there; whether it did.
    pub fn insert_new(&self, tuple: Word) -> Result<bool, Deleted> {
        let t = &*self.tables;
        let key = tuple.term_field(self.options.keypos);
        let growth = match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (at, found) = part.link(hash, key, h.keypos, t);
                if self.is_deleted() {
                    return Err(Deleted);
                }
                if found {
                    return Ok(false);
                }
                // SAFETY: the link is fresh.
                unsafe { part.insert(at, hash, Row::new(tuple)) };
                part.growth()
            }
            Store::Ordered(o) => {
                let mut rows = o.write();
                let found = rows.get(&Key::new(key, t)).is_some();
                if self.is_deleted() {
                    return Err(Deleted);
                }
                if found {
                    return Ok(false);
                }
                rows.put(Row::new(tuple), o.keypos, t);
                rows.growth()
            }
        };
        self.charge(growth);
        Ok(true)
    }
    /// Inserts several rows as one step, later ones over earlier ones; with `new` only when none of their keys is there.
    pub fn insert_all(&self, tuples: &[Word], new: bool) -> Result<bool, Deleted> {
        let t = &*self.tables;
        let keypos = self.keypos();
        let mut old = Vec::new();
        let mut growth = 0;
        match &self.store {
            Store::Hash(h) => {
                let rows: Vec<(u64, Row)> = tuples
                    .iter()
                    .map(|tuple| {
                        let hash = HashStore::hash(tuple.term_field(keypos + 1), t);
                        (hash, Row::new(*tuple))
                    })
                    .collect();
                let mut parts = h.write_all(rows.iter().map(|r| r.0));
                if self.is_deleted() {
                    return Err(Deleted);
                }
                let taken = |(hash, row): &(u64, Row)| {
                    parts[HashStore::part_index(*hash)]
                        .as_ref()
                        .is_some_and(|p| !p.find(*hash, row.element(keypos), keypos, t).is_null())
                };
                if new && rows.iter().any(taken) {
                    return Ok(false);
                }
                for (hash, row) in rows {
                    let Some(part) = &mut parts[HashStore::part_index(hash)] else {
                        continue;
                    };
                    let key = row.element(keypos);
                    let mut replaced = None;
                    self.link(h, part, hash, key, row, &mut replaced);
                    old.extend(replaced);
                }
                growth += parts.iter().flatten().map(|p| p.growth()).sum::<isize>();
            }
            Store::Ordered(o) => {
                let fresh: Vec<Row> = tuples.iter().map(|t| Row::new(*t)).collect();
                let mut rows = o.write();
                if self.is_deleted() {
                    return Err(Deleted);
                }
                let taken = |r: &Row| rows.get(&Key::new(r.element(keypos), t)).is_some();
                if new && fresh.iter().any(taken) {
                    return Ok(false);
                }
                for row in fresh {
                    old.extend(rows.put(row, keypos, t));
                }
                growth += rows.growth();
            }
        }
        self.charge(growth);
        drop(old);
        Ok(true)
    }
    /// Whether there is a row of this key.
    pub fn member(&self, key: Word) -> bool {
        let t = &*self.tables;
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                !h.read(hash).find(hash, key, h.keypos, t).is_null()
            }
            Store::Ordered(o) => o.read().get(&Key::new(key, t)).is_some(),
        }
    }
    /// Shows the rows of this key, the newest first, under the table's lock.
    #[inline]
    pub fn lookup(&self, key: Word, mut f: impl FnMut(&RowData)) {
        let t = &*self.tables;
        match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let part = h.read(hash);
                let mut p = part.find(hash, key, h.keypos, t);
                // SAFETY: rows are read under the lock of their part.
                unsafe {
                    if !p.is_null() {
                        f(&*p);
                        if self.is_bag() {
                            p = (*p).next;
                            while Part::has_key(p, hash, key, h.keypos, t) {
                                f(&*p);
                                p = (*p).next;
                            }
                        }
                    }
                }
            }
            Store::Ordered(o) => {
                if let Some(row) = o.read().get(&Key::new(key, t)) {
                    f(row);
                }
            }
        }
    }
    /// Removes the rows of this key, all or those that `goes` picks; they are given (the newest first) to be looked at and dropped.
    pub fn take(&self, key: Word, mut goes: impl FnMut(&RowData) -> bool) -> Vec<Row> {
        let t = &*self.tables;
        let mut gone = Vec::new();
        let growth = match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                if part.is_empty() {
                    return gone;
                }
                let (mut at, found) = part.link(hash, key, h.keypos, t);
                if !found {
                    return gone;
                }
                // SAFETY: `at` stays a link of the part over each change.
                unsafe {
                    while Part::has_key(*at, hash, key, h.keypos, t) {
                        if goes(&**at) {
                            gone.push(part.remove(at));
                        } else {
                            at = &raw mut (**at).next;
                        }
                    }
                }
                if !self.is_fixed() {
                    part.shrink();
                }
                part.growth()
            }
            Store::Ordered(o) => {
                let mut rows = o.write();
                let k = Key::new(key, t);
                if rows.get(&k).is_some_and(&mut goes) {
                    gone.extend(rows.remove(&k));
                }
                rows.growth()
            }
        };
        self.gone(&gone);
        self.charge(growth);
        gone
    }
    /// Changes the row of this key as one step: `f` changes it in place, or gives another row of the same key. `None` when there is no
    /// row; `f`'s error must leave the row as it was. For `set` and `ordered_set`.
    pub fn update<E>(
        &self,
        key: Word,
        default: Option<&dyn Fn() -> Row>,
        f: impl FnOnce(RowMut<'_>) -> Result<Option<Row>, E>,
    ) -> Option<Result<(), E>> {
        let t = &*self.tables;
        let mut old = None;
        let (done, growth) = match &self.store {
            Store::Hash(h) => {
                let hash = HashStore::hash(key, t);
                let mut part = h.write(hash);
                let (at, found) = part.link(hash, key, h.keypos, t);
                // SAFETY: the link is fresh, the lock is held for writing.
                unsafe {
                    if found {
                        let done = f(RowMut::new(*at)).map(|new| {
                            old = new.map(|row| part.replace(at, row));
                        });
                        (done, part.growth())
                    } else {
                        if self.is_deleted() {
                            return None;
                        }
                        let row = default?();
                        let done = f(RowMut::new(row.as_ptr())).map(|new| {
                            part.insert(at, hash, new.unwrap_or(row));
                        });
                        (done, part.growth())
                    }
                }
            }
            Store::Ordered(o) => {
                let mut rows = o.write();
                let done = match rows.get_ptr(&Key::new(key, t)) {
                    // SAFETY: the lock is held for writing.
                    Some(row) => f(unsafe { RowMut::new(row) }).map(|new| {
                        if let Some(new) = new {
                            old = rows.put(new, o.keypos, t);
                        }
                    }),
                    None => {
                        if self.is_deleted() {
                            return None;
                        }
                        let row = default?();
                        // SAFETY: it is in no table yet.
                        f(unsafe { RowMut::new(row.as_ptr()) }).map(|new| {
                            rows.put(new.unwrap_or(row), o.keypos, t);
                        })
                    }
                };
                (done, rows.growth())
            }
        };
        self.charge(growth);
        drop(old);
        Some(done)
    }

    /// Replaces rows of one key, each by what `f` says (it may not let them go).
    pub fn replace_rows(
        &self,
        h: &HashStore,
        key: Word,
        mut f: impl FnMut(&RowData) -> super::Keep,
    ) {
        let t = &*self.tables;
        let hash = HashStore::hash(key, t);
        let mut part = h.write(hash);
        let (mut at, _) = part.link(hash, key, h.keypos, t);
        // SAFETY: `at` stays a link of the part over each change.
        unsafe {
            while Part::has_key(*at, hash, key, h.keypos, t) {
                if let super::Keep::Replace(new) = f(&**at) {
                    drop(part.replace(at, new));
                }
                at = &raw mut (**at).next;
            }
        }
        let growth = part.growth();
        drop(part);
        self.charge(growth);
    }

    // ---- passes

    /// How many funs of `entry` its rows hold.
    pub fn funs(&self, entry: &beamr_term::FunEntry) -> usize {
        let mut n = 0;
        let mut count = |row: &RowData| {
            n += row.funs(entry);
            true
        };
        match &self.store {
            Store::Hash(h) => {
                let mut from = Some(0);
                while let Some(at) = from {
                    from = h.walk(at, &mut count);
                }
            }
            Store::Ordered(o) => {
                o.read().walk(None, false, count);
            }
        }
        n
    }

    /// As [`HashStore::walk_mut`] with what the table keeps about it; gives the position to go on from.
    pub fn pass_hash(
        &self,
        h: &HashStore,
        from: u64,
        f: impl FnMut(&RowData) -> (super::Keep, bool),
    ) -> Option<u64> {
        let (next, gone, growth) = h.walk_mut(from, !self.is_fixed(), f);
        self.gone(&gone);
        self.charge(growth);
        next
    }
    /// As [`Rows::walk_mut`] with what the table keeps about it; true at the end.
    pub fn pass_ordered(
        &self,
        o: &OrderedStore,
        from: Option<Key>,
        f: impl FnMut(&RowData) -> (super::Keep, bool),
    ) -> bool {
        let mut rows = o.write();
        let (done, gone) = rows.walk_mut(from, o.keypos, &self.tables, f);
        let growth = rows.growth();
        drop(rows);
        self.charge(growth);
        drop(gone);
        done
    }
    /// Empties the table as one step; gives the number of rows that went, and the rows.
    pub fn clear(&self) -> (usize, Remains) {
        let (n, bytes, remains) = match &self.store {
            Store::Hash(h) => {
                let parts = h.clear();
                let n = parts.iter().map(Part::len).sum();
                let bytes = parts.iter().map(Part::bytes).sum::<usize>();
                (n, bytes, Remains::Parts(parts))
            }
            Store::Ordered(o) => {
                let rows = std::mem::take(&mut *o.write());
                (rows.len(), rows.bytes(), Remains::Rows(rows))
            }
        };
        self.charge(-(bytes as isize));
        (n, remains)
    }
}
