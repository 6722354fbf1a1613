//! Term order and equality.
//!
//! In here: `==`, `=:=`, `<` and the order of map keys, as calls that run to their end and as
//! walks that can be stopped (`EqualWalk`, `CompareWalk`). The order of types is
//!
//! `number < atom < reference < fun < port < pid < tuple < record < map < nil < list < bitstring`
//!
//! In the exact mode (`=:=` and map keys) integers and floats are different types, every integer
//! before every float; `0.0` and `-0.0` differ in the releases that say so. Keys of maps are
//! always compared exactly, their values in the mode of the comparison.

mod compare;
mod equal;
mod hash_maps;
mod memo;
mod number;

use std::cmp::Ordering;

pub use compare::CompareWalk;
pub use equal::EqualWalk;

use crate::tables::Tables;
use crate::walk::UNLIMITED;
use crate::word::Word;

/// How numbers of different type compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By value: `1 == 1.0`.
    Value,
    /// By type, then value: `=:=`, and the order of map keys.
    Exact,
}

/// `a =:= b`.
#[inline]
pub fn eq_exact(a: Word, b: Word, tables: &Tables) -> bool {
    if a == b {
        return true;
    }
    if a.is_immediate() || b.is_immediate() {
        return false;
    }
    equal::run(a, b, Mode::Exact, tables)
}

/// `a == b`.
#[inline]
pub fn eq(a: Word, b: Word, tables: &Tables) -> bool {
    if a == b {
        return true;
    }
    if a.is_immediate() && b.is_immediate() {
        return false;
    }
    equal::run(a, b, Mode::Value, tables)
}

/// Term order where numbers compare by value.
#[inline]
pub fn compare(a: Word, b: Word, tables: &Tables) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    slow(a, b, Mode::Value, tables)
}

/// The order of map keys: integers before floats.
#[inline]
pub fn compare_exact(a: Word, b: Word, tables: &Tables) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    if let (Some(x), Some(y)) = (a.as_atom(), b.as_atom()) {
        return tables.atoms.compare(x, y);
    }
    slow(a, b, Mode::Exact, tables)
}

#[inline(never)]
fn slow(a: Word, b: Word, mode: Mode, tables: &Tables) -> Ordering {
    let mut budget = UNLIMITED;
    let mut w = CompareWalk::new(a, b, mode);
    loop {
        if let std::task::Poll::Ready(o) = w.step(tables, &mut budget) {
            return o;
        }
        budget = UNLIMITED;
    }
}
