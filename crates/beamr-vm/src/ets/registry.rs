//! All tables of a VM: by the numbers of their reference, by name, by owner; and what the end of a process does to them.
//!
//! A name is looked up without a lock: names are atoms, hence indexes into an array of pointers that is made in
//! chunks. A pointer owns a count of its table, which is given back through the VM's epochs when the
//! name goes: who looks while pinned can read the table. Everything that changes names or owners holds `inner`.
//!
//! Giving a table to a process and the end of that process meet as follows. The giver (with `inner` locked) marks the receiver's slot
//! as one that owns tables, *then* looks whether it is on its way out. The end makes the process one that is on its
//! way out, *then* looks at the mark and, when it is set, takes the tables under the lock. One of the two sees the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering, fence};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use beamr_sync::{Guard, SlotId};
use beamr_term::copy::{CopyMode, copy};
use beamr_term::{Atom, Build, OwnedTerm, Resource, ResourceRef, Word, atoms};

use super::table::{Table, TableOptions};
use crate::process::{Carried, Slot};
use crate::sched::Worker;
use crate::signal::{Signal, push_to};
use crate::vm::Namespace;

const CHUNK: usize = 1024;

type Chunk = [AtomicPtr<Table>; CHUNK];

/// The names of one namespace.
struct Names {
    chunks: Box<[AtomicPtr<Chunk>]>,
}

impl Names {
    fn new(atoms: usize) -> Names {
        Names {
            chunks: (0..atoms.div_ceil(CHUNK))
                .map(|_| AtomicPtr::default())
                .collect(),
        }
    }
    #[inline]
    fn get(&self, name: Atom) -> *mut Table {
        let i = name.index() as usize;
        let chunk = self.chunks[i / CHUNK].load(Ordering::Acquire);
        if chunk.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: a chunk lives as long as the names.
        unsafe { (&(*chunk))[i % CHUNK].load(Ordering::Acquire) }
    }
    /// Puts a table (or nothing) under a name; gives what was there.
    fn put(&self, name: Atom, table: Option<Arc<Table>>) -> Option<Arc<Table>> {
        let i = name.index() as usize;
        let slot = &self.chunks[i / CHUNK];
        let mut chunk = slot.load(Ordering::Acquire);
        if chunk.is_null() {
            // Names change under the registry's lock, so nobody else makes the chunk.
            chunk = Box::into_raw(Box::new(std::array::from_fn(|_| AtomicPtr::default())));
            slot.store(chunk, Ordering::Release);
        }
        let new = table.map_or(std::ptr::null_mut(), |t| Arc::into_raw(t).cast_mut());
        // SAFETY: as in `get`; a pointer owns a count, which goes to the caller.
        unsafe {
            let old = (&(*chunk))[i % CHUNK].swap(new, Ordering::AcqRel);
            (!old.is_null()).then(|| Arc::from_raw(old.cast_const()))
        }
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        for slot in &mut self.chunks {
            let chunk = *slot.get_mut();
            if chunk.is_null() {
                continue;
            }
            // SAFETY: chunks came from boxes, their pointers from counts; nobody looks any more.
            unsafe {
                for p in (*Box::from_raw(chunk)).iter_mut() {
                    let p = *p.get_mut();
                    if !p.is_null() {
                        drop(Arc::from_raw(p.cast_const()));
                    }
                }
            }
        }
    }
}

#[derive(Default)]
struct Inner {
    by_id: HashMap<[u32; 3], Arc<Table>>,
    by_owner: HashMap<u64, Vec<Arc<Table>>>,
    /// Tables that a process holds fixed.
    fixed_by: HashMap<u64, Vec<Arc<Table>>>,
    /// Numbers of creation, for the order of `all`.
    order: HashMap<[u32; 3], u64>,
    created: u64,
}

/// See the module.
pub struct EtsRegistry {
    inner: RwLock<Inner>,
    /// Of the first namespace.
    first: Names,
    /// Of the others.
    others: RwLock<HashMap<u32, Arc<Names>>>,
    atoms: usize,
}

impl std::fmt::Debug for EtsRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtsRegistry")
            .field("tables", &self.read().by_id.len())
            .finish_non_exhaustive()
    }
}

/// Why a table could not be given away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GiveError {
    /// The receiver is not alive.
    Dead,
}

impl EtsRegistry {
    /// For a VM with room for so many atoms.
    pub fn new(atoms: u32) -> EtsRegistry {
        EtsRegistry {
            inner: RwLock::default(),
            first: Names::new(atoms as usize),
            others: RwLock::default(),
            atoms: atoms as usize,
        }
    }
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(|e| e.into_inner())
    }
    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(|e| e.into_inner())
    }
    fn with_names<R>(&self, namespace: u32, f: impl FnOnce(&Names) -> R) -> R {
        if namespace == 0 {
            return f(&self.first);
        }
        let known = self
            .others
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(&namespace)
            .cloned();
        let names = known.unwrap_or_else(|| {
            self.others
                .write()
                .unwrap_or_else(|e| e.into_inner())
                .entry(namespace)
                .or_insert_with(|| Arc::new(Names::new(self.atoms)))
                .clone()
        });
        f(&names)
    }
    /// The table of this name. The guard keeps it readable.
    #[inline]
    pub fn named<'g>(&self, namespace: u32, name: Atom, _: &'g Guard<'_>) -> Option<&'g Table> {
        let p = self.with_names(namespace, |n| n.get(name));
        // SAFETY: the pointer owns a count that is given back through the epochs, and the caller is pinned.
        (!p.is_null()).then(|| unsafe { &*p })
    }
    /// The table of these numbers.
    pub fn by_id(&self, id: [u32; 3]) -> Option<Arc<Table>> {
        self.read().by_id.get(&id).cloned()
    }
    /// Makes a table; `None` when its name is taken.
    pub fn create(
        &self,
        w: &Worker,
        slot: &Slot,
        options: TableOptions,
        id: [u32; 3],
    ) -> Option<Arc<Table>> {
        let namespace: Arc<Namespace> = slot.namespace.clone();
        let ns = namespace.id;
        let (named, name) = (options.named, options.name);
        let owner = slot.pid();
        let table = Arc::new(Table::new(
            id,
            options,
            owner,
            namespace,
            w.vm.tables.clone(),
        ));
        let mut i = self.write();
        if named {
            let taken = self.with_names(ns, |n| {
                if !n.get(name).is_null() {
                    return true;
                }
                n.put(name, Some(table.clone()));
                false
            });
            if taken {
                return None;
            }
        }
        i.created += 1;
        let created = i.created;
        i.order.insert(id, created);
        i.by_owner
            .entry(owner.bits())
            .or_default()
            .push(table.clone());
        i.by_id.insert(id, table.clone());
        slot.owns_tables.store(true, Ordering::Relaxed);
        Some(table)
    }
    /// Renames a table; false when it is a named one and the name is taken.
    pub fn rename(&self, w: &Worker, table: &Table, name: Atom) -> bool {
        let i = self.write();
        if table.options.named {
            let Some(t) = i.by_id.get(&table.id).cloned() else {
                return false;
            };
            let old = self.with_names(table.namespace.id, |n| {
                if !n.get(name).is_null() {
                    return Err(());
                }
                n.put(name, Some(t));
                Ok(n.put(table.name(), None))
            });
            match old {
                Err(()) => return false,
                Ok(old) => retire(w, old),
            }
        }
        table.set_name(name);
        true
    }
    /// Gives a table of the process `from` to the local process `to`, and tells it so.
    pub fn give(
        &self,
        w: &Worker,
        table: &Table,
        from: Word,
        to: Word,
        gift: Word,
    ) -> Result<(), GiveError> {
        let guard = w.participant.pin();
        let id = SlotId::from_u64(to.local_number());
        let Some(slot) = w.vm.processes.get(id, &guard) else {
            return Err(GiveError::Dead);
        };
        {
            let mut i = self.write();
            slot.owns_tables.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if slot.state.snapshot().is_exiting() {
                return Err(GiveError::Dead);
            }
            let Some(t) = i.by_id.get(&table.id).cloned() else {
                return Err(GiveError::Dead);
            };
            take_owned(&mut i, from, table);
            t.set_owner(to);
            i.by_owner.entry(to.bits()).or_default().push(t);
        }
        let message = Carried::build(16, |f| {
            let tab = if table.options.named {
                table.name().word()
            } else {
                f.magic_reference(table.id, self.resource(table))
            };
            let gift = copy(gift, f, CopyMode::Share);
            f.tuple(&[atoms::ETS_TRANSFER.word(), tab, from, gift])
        });
        // It died meanwhile: the table goes with it.
        let _ = push_to(w, slot, Signal::Message(message.into_message()));
        Ok(())
    }
    /// What a reference to the table owns.
    pub fn resource(&self, table: &Table) -> ResourceRef {
        let counted = self.by_id(table.id);
        Arc::new(Resource {
            value: match counted {
                Some(t) => Box::new(TableHandle(t)),
                // Deleted a moment ago: a reference to nothing.
                None => Box::new(()),
            },
        })
    }
    /// Deletes a table: nobody finds it any more. Its rows are given to be freed. `None` when somebody else deleted it.
    pub fn delete(&self, w: &Worker, table: &Table) -> Option<super::Remains> {
        {
            let mut i = self.write();
            if !table.mark_deleted() {
                return None;
            }
            i.by_id.remove(&table.id);
            i.order.remove(&table.id);
            if table.options.named {
                let old = self.with_names(table.namespace.id, |n| n.put(table.name(), None));
                retire(w, old);
            }
            take_owned(&mut i, table.owner(), table);
            for (pid, _) in table.fixing(|f| f.procs.clone()) {
                forget_fixed(&mut i, pid, table);
                table.unfix(pid, true);
            }
        }
        table.set_heir(None);
        Some(table.clear().1)
    }
    /// Notes that a process holds a table fixed.
    pub fn note_fixed(&self, slot: &Slot, table: &Table) {
        let mut i = self.write();
        if let Some(t) = i.by_id.get(&table.id).cloned() {
            slot.owns_tables.store(true, Ordering::Relaxed);
            i.fixed_by.entry(slot.pid().bits()).or_default().push(t);
        }
    }
    /// Notes that it does so no longer.
    pub fn note_unfixed(&self, slot: &Slot, table: &Table) {
        forget_fixed(&mut self.write(), slot.pid(), table);
    }
    /// All tables of a namespace, the newest first.
    pub fn all(&self, namespace: u32) -> Vec<Arc<Table>> {
        let i = self.read();
        let mut all: Vec<Arc<Table>> = i
            .by_id
            .values()
            .filter(|t| t.namespace.id == namespace)
            .cloned()
            .collect();
        all.sort_by_key(|t| std::cmp::Reverse(i.order.get(&t.id).copied()));
        all
    }
    /// How many tables there are.
    pub fn count(&self) -> usize {
        self.read().by_id.len()
    }
    /// Words of memory of all tables.
    pub fn memory_words(&self) -> usize {
        self.read().by_id.values().map(|t| t.memory_words()).sum()
    }
    /// The tables that a process owns.
    pub fn owned_by(&self, pid: Word) -> Vec<Arc<Table>> {
        self.read()
            .by_owner
            .get(&pid.bits())
            .cloned()
            .unwrap_or_default()
    }

    /// A process is on its way out: its tables go to their heirs or away, what it holds fixed is let go.
    pub(crate) fn process_ended(&self, w: &Worker, slot: &Slot) {
        fence(Ordering::SeqCst);
        if !slot.owns_tables.load(Ordering::SeqCst) {
            return;
        }
        let me = slot.pid();
        loop {
            let next = self
                .read()
                .by_owner
                .get(&me.bits())
                .and_then(|v| v.first().cloned());
            let Some(table) = next else { break };
            if let Some(heir) = table.heir()
                && heir.pid != me
                && self.give(w, &table, me, heir.pid, heir.data.word()).is_ok()
            {
                continue;
            }
            if let Some(remains) = self.delete(w, &table) {
                super::free_later(w, remains);
            }
        }
        let fixed = self.write().fixed_by.remove(&me.bits());
        for table in fixed.into_iter().flatten() {
            table.unfix(me, true);
        }
    }
}

/// Gives back the count of a name that is gone, when nobody can be looking at it.
fn retire(w: &Worker, old: Option<Arc<Table>>) {
    if let Some(t) = old {
        let guard = w.participant.pin();
        guard.defer(move || drop(t));
    }
}

fn take_owned(i: &mut Inner, owner: Word, table: &Table) {
    if let Some(v) = i.by_owner.get_mut(&owner.bits()) {
        v.retain(|t| t.id != table.id);
        if v.is_empty() {
            i.by_owner.remove(&owner.bits());
        }
    }
}

fn forget_fixed(i: &mut Inner, pid: Word, table: &Table) {
    if let Some(v) = i.fixed_by.get_mut(&pid.bits()) {
        v.retain(|t| t.id != table.id);
        if v.is_empty() {
            i.fixed_by.remove(&pid.bits());
        }
    }
}

impl Drop for EtsRegistry {
    fn drop(&mut self) {
        // Rows may hold references to their own table: they go first, or neither would.
        let tables: Vec<Arc<Table>> = self.read().by_id.values().cloned().collect();
        for t in tables {
            t.set_heir(None);
            drop(t.clear());
        }
    }
}

/// What a table's reference owns.
#[derive(Debug)]
pub struct TableHandle(pub Arc<Table>);

/// An heir's data.
pub fn heir_data(data: Word, w: &Worker) -> Arc<OwnedTerm> {
    Arc::new(OwnedTerm::from_word(data, &w.vm.tables))
}
