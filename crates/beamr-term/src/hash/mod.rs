//! Hashes of terms.
//!
//! In here: `phash2` and `phash`, bit for bit OTP's and the same in every release and on every
//! machine; and the internal 64-bit hash that hash maps (and ets) are built on, a function of the
//! term alone: atoms hash by their text, never by index or address. Terms that are equal exactly
//! have equal hashes.

mod internal;
mod phash;
mod phash2;

pub use internal::{InternalHash, internal_hash};
pub use phash::{PhashWalk, phash};
pub use phash2::{Phash2Walk, phash2};
