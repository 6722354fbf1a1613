//! All tables of a VM: by the numbers of their reference, by name, by owner.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};

use beamr_term::{Atom, Word};

use super::table::Table;

#[derive(Debug, Default)]
struct Inner {
    by_id: HashMap<[u32; 3], Arc<Table>>,
    by_name: HashMap<Atom, Arc<Table>>,
    by_owner: HashMap<u64, Vec<Arc<Table>>>,
    order: Vec<[u32; 3]>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct EtsRegistry {
    inner: RwLock<Inner>,
}

impl EtsRegistry {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(|e| e.into_inner())
    }
    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(|e| e.into_inner())
    }
    /// Adds a table; false when its name is taken.
    pub fn add(&self, table: Arc<Table>) -> bool {
        let mut i = self.write();
        if table.options.named {
            if i.by_name.contains_key(&table.name()) {
                return false;
            }
            i.by_name.insert(table.name(), table.clone());
        }
        i.by_owner
            .entry(table.owner().bits())
            .or_default()
            .push(table.clone());
        i.order.push(table.id);
        i.by_id.insert(table.id, table);
        true
    }
    /// The table of this name.
    pub fn named(&self, name: Atom) -> Option<Arc<Table>> {
        self.read().by_name.get(&name).cloned()
    }
    /// The table of these numbers.
    pub fn by_id(&self, id: [u32; 3]) -> Option<Arc<Table>> {
        self.read().by_id.get(&id).cloned()
    }
    /// Renames a named table; false when the name is taken.
    pub fn rename(&self, table: &Arc<Table>, name: Atom) -> bool {
        let mut i = self.write();
        if table.options.named {
            if name != table.name() && i.by_name.contains_key(&name) {
                return false;
            }
            i.by_name.remove(&table.name());
            i.by_name.insert(name, table.clone());
        }
        table.set_name(name);
        true
    }
    /// Gives the table to another owner.
    pub fn give(&self, table: &Arc<Table>, to: Word) {
        let mut i = self.write();
        let from = table.owner().bits();
        if let Some(v) = i.by_owner.get_mut(&from) {
            v.retain(|t| !Arc::ptr_eq(t, table));
        }
        table.set_owner(to);
        i.by_owner.entry(to.bits()).or_default().push(table.clone());
    }
    /// Takes a table out and empties it.
    pub fn delete(&self, table: &Arc<Table>) {
        {
            let mut i = self.write();
            if table.deleted.swap(true, Ordering::AcqRel) {
                return;
            }
            i.by_id.remove(&table.id);
            i.order.retain(|id| *id != table.id);
            if table.options.named {
                i.by_name.remove(&table.name());
            }
            let owner = table.owner().bits();
            if let Some(v) = i.by_owner.get_mut(&owner) {
                v.retain(|t| !Arc::ptr_eq(t, table));
                if v.is_empty() {
                    i.by_owner.remove(&owner);
                }
            }
        }
        table.clear();
    }
    /// The tables that a process owns.
    pub fn owned_by(&self, pid: Word) -> Vec<Arc<Table>> {
        self.read()
            .by_owner
            .get(&pid.bits())
            .cloned()
            .unwrap_or_default()
    }
    /// All tables, oldest first.
    pub fn all(&self) -> Vec<Arc<Table>> {
        let i = self.read();
        i.order
            .iter()
            .filter_map(|id| i.by_id.get(id).cloned())
            .collect()
    }
    /// Words of memory of all tables.
    pub fn memory_words(&self) -> usize {
        self.read().by_id.values().map(|t| t.memory_words()).sum()
    }
}
