//! The external term format, both ways.
//!
//! In here: all tags that OTP 25 to 29 write or still read (`tag`), encoding byte for byte as
//! `term_to_binary` of the VM's release does ([`encode`], [`Encoder`]), and decoding that is total
//! on hostile input ([`decode`], [`Decoder`]): counts are checked against the bytes left before
//! anything is allocated, memory has a budget, nesting needs no Rust stack. Not in here:
//! distribution headers and fragments (the atom cache is a parameter), ets' compressed form.
//!
//! Known differences to OTP's bytes: pairs of maps of more than 32 keys come in our order unless
//! `deterministic` is asked for (OTP's order is its hash order); the deflate stream of `compressed`
//! is another one; a fun names `creator` as its creator, since our funs do not keep theirs.

mod decode;
mod encode;
mod inflate;

pub use decode::{DecodeOptions, Decoder, LocalRef, decode};
pub use encode::{EncodeError, EncodeOptions, Encoder, SizeCounter, encode, external_size};

/// First byte of an encoded term.
pub const VERSION: u8 = 131;

/// Tags of the format.
pub mod tag {
    #![allow(missing_docs)]
    pub const NATIVE_RECORD: u8 = 67;
    pub const NEW_FLOAT: u8 = 70;
    pub const BIT_BINARY: u8 = 77;
    pub const COMPRESSED: u8 = 80;
    pub const ATOM_CACHE_REF: u8 = 82;
    pub const NEW_PID: u8 = 88;
    pub const NEW_PORT: u8 = 89;
    pub const NEWER_REFERENCE: u8 = 90;
    pub const SMALL_INTEGER: u8 = 97;
    pub const INTEGER: u8 = 98;
    pub const FLOAT: u8 = 99;
    pub const ATOM: u8 = 100;
    pub const REFERENCE: u8 = 101;
    pub const PORT: u8 = 102;
    pub const PID: u8 = 103;
    pub const SMALL_TUPLE: u8 = 104;
    pub const LARGE_TUPLE: u8 = 105;
    pub const NIL: u8 = 106;
    pub const STRING: u8 = 107;
    pub const LIST: u8 = 108;
    pub const BINARY: u8 = 109;
    pub const SMALL_BIG: u8 = 110;
    pub const LARGE_BIG: u8 = 111;
    pub const NEW_FUN: u8 = 112;
    pub const EXPORT: u8 = 113;
    pub const NEW_REFERENCE: u8 = 114;
    pub const SMALL_ATOM: u8 = 115;
    pub const MAP: u8 = 116;
    pub const FUN: u8 = 117;
    pub const ATOM_UTF8: u8 = 118;
    pub const SMALL_ATOM_UTF8: u8 = 119;
    pub const V4_PORT: u8 = 120;
    pub const LOCAL: u8 = 121;
}

/// What is wrong with encoded bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeErrorKind {
    /// The first byte is not 131.
    #[error("not an external term (the first byte is not 131)")]
    NotVersioned,
    /// The bytes end within the term.
    #[error("the bytes end within the term")]
    Truncated,
    /// A tag that does not exist, or not in this release.
    #[error("unknown tag {0}")]
    UnknownTag(u8),
    /// A reference into an atom cache that is not there.
    #[error("reference to atom cache entry {0}")]
    AtomCache(u8),
    /// An atom with too many characters or invalid text.
    #[error("invalid atom")]
    InvalidAtom,
    /// An atom that does not exist while only existing ones are allowed.
    #[error("an atom that does not exist")]
    UnknownAtom,
    /// A function that does not exist while only existing ones are allowed.
    #[error("a function that does not exist")]
    UnknownExport,
    /// The atom table is full.
    #[error("the atom table is full")]
    AtomTableFull,
    /// The export table is full.
    #[error("the export table is full")]
    ExportTableFull,
    /// A float that is not finite or not well-formed text.
    #[error("invalid float")]
    InvalidFloat,
    /// A bignum larger than the release allows.
    #[error("integer too large")]
    IntegerTooLarge,
    /// A pid, port or reference out of range.
    #[error("invalid pid, port or reference")]
    InvalidId,
    /// The number of bits in the last byte is out of range.
    #[error("invalid bitstring")]
    InvalidBits,
    /// A fun whose parts are out of range.
    #[error("invalid fun")]
    InvalidFun,
    /// A map with two equal keys.
    #[error("duplicate key in a map")]
    DuplicateKey,
    /// A record whose parts are out of range.
    #[error("invalid record")]
    InvalidRecord,
    /// A compressed term that does not inflate to its stated size.
    #[error("invalid compressed data")]
    InvalidCompression,
    /// A local term of another instance.
    #[error("a local term of another instance")]
    NotLocal,
    /// The budget of memory is used up.
    #[error("the term is larger than allowed")]
    TooLarge,
}

/// Bytes that are no encoded term.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{kind} (at byte {offset})")]
pub struct DecodeError {
    /// Where, in bytes from the start (of the inflated bytes for a compressed term).
    pub offset: usize,
    /// What.
    pub kind: DecodeErrorKind,
}

/// The check value of a term encoded with `local`.
fn local_check(bytes: &[u8], salt: u64) -> u32 {
    let mut h = salt ^ 0xCBF2_9CE4_8422_2325;
    for b in bytes {
        h = (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    (h ^ h >> 32) as u32
}
