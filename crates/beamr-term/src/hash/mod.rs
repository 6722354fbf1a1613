//! Hashes of terms.
//!
//! In here: the internal 64-bit hash that hash maps (and ets) are built on. It is a function of
//! the term alone, the same in every run and every VM: atoms hash by their text, never by index
//! or address. Terms that are equal exactly have equal hashes.

mod internal;

pub use internal::{InternalHash, internal_hash};
