//! ets: tables of rows outside all heaps.
//!
//! `row` is what a table holds, `hash` and `ordered` how, `table` one table with its identity and access rules,
//! `registry` all of a VM's. The natives of module `ets` and the match specifications are elsewhere
//! (`beamr-natives`, `match_spec`); this folder knows terms and tables only.

mod hash;
mod ordered;
mod registry;
mod row;
mod table;

pub use hash::{Entry, HashStore, Keep, Part, Position};
pub use ordered::{Key, Map, OrderedStore};
pub use registry::EtsRegistry;
pub use row::Row;
pub use table::{Heir, Protection, Store, Table, TableHandle, TableKind, TableOptions};
