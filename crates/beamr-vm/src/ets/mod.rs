//! ets: tables of rows outside all heaps.
//!
//! `row` is what a table holds, `hash` and `ordered` how, `table` one table with its identity and access rules,
//! `registry` all of a VM's. The natives of module `ets` and the match specifications are elsewhere
//! (`beamr-natives`, `match_spec`); this folder knows terms, tables and who owns them.

mod hash;
mod ordered;
mod registry;
mod row;
mod table;

pub use beamr_sync::Guard;
pub use hash::{HASH_BITS, HashStore, Keep, Part};
pub use ordered::{Key, OrderedStore, Rows};
pub use registry::{EtsRegistry, GiveError, TableHandle, heir_data};
pub use row::{Row, RowData};
pub use table::{
    Deleted, Fixing, Heir, Protection, Remains, RowMut, SHELL_WORDS, Store, Table, TableKind,
    TableOptions, WriteConcurrency,
};

use crate::sched::Worker;

/// Rows up to which a table's remains are freed where it was deleted.
const FREE_AT_ONCE: usize = 20_000;

/// Frees what is left of a table: on a thread of its own when that would take long and the VM has threads.
pub fn free_later(w: &Worker, remains: Remains) {
    let rows = match &remains {
        Remains::Parts(parts) => parts.iter().map(Part::len).sum(),
        Remains::Rows(rows) => rows.len(),
    };
    if rows > FREE_AT_ONCE && w.vm.options.workers > 0 {
        // Without a thread the closure, and with it the rows, is dropped here.
        let stack = w.vm.options.thread_stack;
        let _ =
            w.vm.threads
                .start("beamr-ets-free".into(), stack, move || drop(remains));
    }
}
