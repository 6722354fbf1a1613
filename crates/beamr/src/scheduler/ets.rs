//! ets tables that belong to the host.
//!
//! They are tables as any other: programs reach them by name or reference as far as the protection lets them. Their owner is a process that does nothing else
//! and lives as long as the VM.

use std::sync::Arc;

use beamr_term::Tables;
use beamr_vm::ets::{Deleted, Protection, Table, TableKind, TableOptions, WriteConcurrency};

use super::Scheduler;
use crate::exits::ExecError;
use crate::handler::{NativeContext, NativeOutcome};
use crate::inside::is_inside;
use crate::term::{FromTerm, IntoAtom, IntoTerm, OwnedTerm, Pid, TermError, TermErrorKind};

pub use beamr_vm::ets::TableKind as EtsTableType;

/// What a table is to be.
#[derive(Clone, Debug)]
pub struct EtsTableMetadata {
    /// Its name.
    pub name: String,
    /// Whether programs of the first namespace find it by that name.
    pub named: bool,
    /// Set, ordered set, bag.
    pub kind: EtsTableType,
    /// Who may read and write besides the host.
    pub protection: Protection,
    /// Position of the key in a row, from 1.
    pub keypos: usize,
}

impl EtsTableMetadata {
    /// A public named set with the key in front.
    pub fn named(name: impl Into<String>) -> EtsTableMetadata {
        EtsTableMetadata {
            name: name.into(),
            named: true,
            kind: TableKind::Set,
            protection: Protection::Public,
            keypos: 1,
        }
    }
}

/// What a table did not do.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtsError {
    /// A row or key that is no term, or a row that is no tuple with a key.
    #[error(transparent)]
    Term(#[from] TermError),
    /// The table is gone.
    #[error("the table was deleted")]
    Deleted,
    /// There is another table of the name.
    #[error("there is a table of that name")]
    NameTaken,
    /// The key's position is 0.
    #[error("the position of a key is counted from 1")]
    KeyPosition,
    /// The owner could not be made.
    #[error(transparent)]
    Owner(#[from] ExecError),
    /// The VM was stopped, or a native function or handler asked.
    #[error("the owner of the host's tables does not answer here")]
    NoOwner,
}

impl From<Deleted> for EtsError {
    fn from(_: Deleted) -> EtsError {
        EtsError::Deleted
    }
}

/// A table. Its operations take the locks of ets and may run on any thread.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beamr::{EtsTableMetadata, atom};
/// let vm = beamr::Scheduler::builder().threads(1).build()?;
/// let table = vm.create_ets_table(EtsTableMetadata::named("settings"))?;
/// table.insert((atom("depth"), 3))?;
/// let value: i64 = vm.call("ets", "lookup_element", (atom("settings"), atom("depth"), 2))?;
/// assert_eq!(value, 3);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct EtsTable {
    table: Arc<Table>,
    tables: Arc<Tables>,
}

impl EtsTable {
    fn row(&self, row: impl IntoTerm) -> Result<OwnedTerm, EtsError> {
        let row = OwnedTerm::from_value(&self.tables, row)?;
        match row.root().tuple_len() {
            Some(n) if n > self.table.keypos() => Ok(row),
            Some(found) => Err(TermError::from(TermErrorKind::Size {
                expected: self.table.keypos() + 1,
                found,
            })
            .into()),
            None => Err(TermError::expected("a tuple", row.root()).into()),
        }
    }
    /// Inserts a row, a tuple.
    pub fn insert(&self, row: impl IntoTerm) -> Result<(), EtsError> {
        let row = self.row(row)?;
        Ok(self.table.insert(row.root().word())?)
    }
    /// Inserts a row if there is none of its key; whether it did.
    pub fn insert_new(&self, row: impl IntoTerm) -> Result<bool, EtsError> {
        let row = self.row(row)?;
        Ok(self.table.insert_new(row.root().word())?)
    }
    /// The rows of a key, as values.
    pub fn lookup<T: FromTerm>(&self, key: impl IntoTerm) -> Result<Vec<T>, EtsError> {
        let key = OwnedTerm::from_value(&self.tables, key)?;
        let mut rows = Vec::new();
        self.table.lookup(key.root().word(), |row| {
            rows.push(OwnedTerm::of_word(row.tuple(), &self.tables));
        });
        let read = rows.iter().map(|r| r.decode::<T>());
        Ok(read.collect::<Result<Vec<T>, TermError>>()?)
    }
    /// Whether there is a row of a key.
    pub fn contains(&self, key: impl IntoTerm) -> Result<bool, EtsError> {
        let key = OwnedTerm::from_value(&self.tables, key)?;
        Ok(self.table.member(key.root().word()))
    }
    /// Takes the rows of a key out; how many there were.
    pub fn delete(&self, key: impl IntoTerm) -> Result<usize, EtsError> {
        let key = OwnedTerm::from_value(&self.tables, key)?;
        Ok(self.table.take(key.root().word(), |_| true).len())
    }
    /// Rows.
    pub fn len(&self) -> usize {
        self.table.size()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether it was deleted.
    pub fn is_deleted(&self) -> bool {
        self.table.is_deleted()
    }
}

impl Scheduler {
    /// The process that owns the host's tables.
    fn keeper(&self) -> Result<Pid, ExecError> {
        let mut keeper = self.keeper.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(pid) = *keeper
            && self.is_alive(pid)
        {
            return Ok(pid);
        }
        let sleeps = |ctx: &mut NativeContext<'_>| {
            while ctx.recv().is_some() {}
            NativeOutcome::Wait
        };
        let pid = self.spawn_native_trap_exit(|| sleeps)?;
        *keeper = Some(pid);
        Ok(pid)
    }
    /// Makes a table of the first namespace.
    pub fn create_ets_table(&self, metadata: EtsTableMetadata) -> Result<EtsTable, EtsError> {
        if is_inside() {
            return Err(EtsError::NoOwner);
        }
        if metadata.keypos == 0 {
            return Err(EtsError::KeyPosition);
        }
        let tables = self.vm().tables.clone();
        let options = TableOptions {
            name: metadata.name.atom_in(&tables)?,
            named: metadata.named,
            kind: metadata.kind,
            protection: metadata.protection,
            keypos: metadata.keypos,
            read_concurrency: false,
            write_concurrency: WriteConcurrency::Off,
            decentralized_counters: false,
            compressed: false,
            heir: None,
        };
        let keeper = self.keeper()?;
        let vm = self.vm().clone();
        let made = self.vm().at_rest(keeper.word(), move |target| {
            let w = vm.guest();
            let id = w.next_ref().numbers();
            vm.ets.create(&w, target.process.slot(), options, id)
        });
        match made {
            Some(Some(table)) => Ok(EtsTable { table, tables }),
            Some(None) => Err(EtsError::NameTaken),
            None => Err(EtsError::NoOwner),
        }
    }
    /// A table of the first namespace by its name, whoever owns it.
    pub fn lookup_ets_table_by_name(&self, name: impl IntoAtom) -> Option<EtsTable> {
        let name = name.atom_in(&self.vm().tables).ok()?;
        let w = self.vm().guest();
        let id = {
            let guard = w.participant.pin();
            self.vm().ets.named(0, name, &guard)?.id
        };
        Some(EtsTable {
            table: self.vm().ets.by_id(id)?,
            tables: self.vm().tables.clone(),
        })
    }
    /// Deletes a table; false when it was deleted before.
    pub fn delete_ets_table(&self, table: &EtsTable) -> bool {
        let w = self.vm().guest();
        match self.vm().ets.delete(&w, &table.table) {
            Some(remains) => {
                beamr_vm::ets::free_later(&w, remains);
                true
            }
            None => false,
        }
    }
}
