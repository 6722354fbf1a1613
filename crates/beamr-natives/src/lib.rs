//! BIFs and static NIFs, one file per OTP module.
//!
//! A native sits in the file of its OTP module under its Erlang name and arity (`lists.rs`,
//! `keyfind_3`); the natives of `erlang`, which are many, sit in `erlang/` by subject. Each file ends in its `TABLE`,
//! the only registration there is. [`table`] joins them for a release.

mod atomics;
mod binary;
pub mod census;
mod erlang;
mod erts_debug;
mod ets;
pub mod identity;
mod iolist;
mod lists;
mod maps;
mod math;
mod md5_state;
mod os;
pub mod packet;
mod persistent_term;
mod prim_buffer;
mod prim_file;
#[cfg(feature = "re")]
mod re;
mod records;
mod resources;
mod support;
mod unicode;
mod walks;
#[cfg(feature = "zlib")]
mod zlib;

use beamr_abi::{NativeEntry, NativeTable, NativeTableError};
use beamr_term::Release;

/// Every table, in the order of the files.
pub const TABLES: &[&[NativeEntry]] = &[
    atomics::TABLE,
    binary::TABLE,
    erlang::apply::TABLE,
    erlang::binaries::TABLE,
    erlang::calendar::TABLE,
    erlang::code::TABLE,
    erlang::errors::TABLE,
    erlang::external::TABLE,
    erlang::funs::TABLE,
    erlang::ids::TABLE,
    erlang::lists::TABLE,
    erlang::nodes::TABLE,
    erlang::numbers::TABLE,
    erlang::packets::TABLE,
    erlang::ports::TABLE,
    erlang::process::TABLE,
    erlang::system::TABLE,
    erlang::tasks::TABLE,
    erlang::text::TABLE,
    erlang::time::TABLE,
    erlang::tracing::TABLE,
    erlang::tuples::TABLE,
    erlang::types::TABLE,
    erts_debug::TABLE,
    ets::TABLE,
    lists::TABLE,
    maps::TABLE,
    math::TABLE,
    os::TABLE,
    persistent_term::TABLE,
    prim_buffer::TABLE,
    prim_file::TABLE,
    #[cfg(feature = "re")]
    re::TABLE,
    records::TABLE,
    unicode::TABLE,
    #[cfg(feature = "zlib")]
    zlib::TABLE,
];

/// All natives that exist in `release`.
pub fn table(release: Release) -> Result<NativeTable, NativeTableError> {
    let mut t = NativeTable::default();
    for rows in TABLES {
        t.add(release, rows)?;
    }
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_release_has_a_table_without_doubles() {
        for r in [24, 25, 26, 27, 28, 29] {
            let t = table(Release(r)).unwrap();
            assert!(t.get("erlang", "spawn", 3).is_some());
            assert_eq!(t.get("erlang", "min", 2).is_some(), r >= 26);
        }
    }
}
