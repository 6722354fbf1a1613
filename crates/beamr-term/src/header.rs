//! Header words and the layouts of boxed objects.
//!
//! A header is `arity << 6 | subtag << 2`: `arity` is the number of words that follow it. Layouts
//! (word 0 is the header; "raw" words are never terms, "small" words are small integers so that a
//! collector may scan them as terms):
//!
//! | subtag | words |
//! |---|---|
//! | `Tuple` | elements (terms); arity 0 is `{}` |
//! | `Match` | 1 underlying bits (boxed `HeapBits` or `RefcBits`), 2 position in bits (small), 3 end in bits (small) |
//! | `PosBig`, `NegBig` | magnitude, 64-bit limbs, least significant first (raw), normalised, never fits a small |
//! | `Ref` | arity 2: numbers (raw: n0 | n1 << 32, n2); arity 3: the same and the pid word that an alias belongs to; arity 5: 1 off-heap next, 2 [`Resource`](crate::Resource) pointer, 3-4 numbers, 5 zero (a magic reference) |
//! | `Fun` | 1 pointer to the [`FunEntry`](crate::FunEntry) (raw), then the environment (terms) |
//! | `Float` | 1 IEEE bits (raw) |
//! | `HeapBits` | 1 size in bits (raw), then data bytes in memory order, zero padded |
//! | `RefcBits` | 1 off-heap next, 2 [`Binary`](crate::Binary) pointer, 3 pointer to the first byte, 4 size in bits (all raw) |
//! | `SubBits` | 1 underlying bits (boxed `HeapBits` or `RefcBits`), 2 offset in bits (small), 3 size in bits (small) |
//! | `Record` | native record of OTP 29: 1 definition (a tuple `{Module, Name, IsExported, Field1, .., FieldN}`), then the N field values |
//! | `FlatMap` | 1 keys (boxed tuple, sorted), then values; at most 32 pairs |
//! | `HashMap` | 1 pairs below this node (small), 2 bitmap of 16 bits (small), then one child per set bit: a cons `[Key|Value]` or a boxed `HashMap` node |
//! | `External` | 1 off-heap next, 2 [`NodeEntry`](crate::NodeEntry) pointer, 3 kind (`EXTERNAL_*`), then data: pid: `number | serial << 32`; port: number; ref: word count, then numbers two to a word |
//! | `Export` | 1 export id (small), 2 module, 3 function, 4 arity (small): `fun M:F/A` |
//!
//! Off-heap objects (`RefcBits`, `External`, magic `Ref`) share the place of their link (word 1)
//! and of their counted pointer (word 2), so one sweep frees them all.

/// `External` kind: pid.
pub const EXTERNAL_PID: u64 = 0;
/// `External` kind: port.
pub const EXTERNAL_PORT: u64 = 1;
/// `External` kind: reference.
pub const EXTERNAL_REF: u64 = 2;
/// Arity of a plain local reference.
pub const REF_PLAIN: usize = 2;
/// Arity of a local reference that is an alias of a process (word 3 is its pid).
pub const REF_ALIAS: usize = 3;
/// Arity of a magic reference (counted resource).
pub const REF_MAGIC: usize = 5;
/// Binaries of more bytes than this live off-heap.
pub const MAX_HEAP_BINARY: usize = 64;
/// Maps of more pairs than this are hash tries.
pub const MAX_FLAT_MAP: usize = 32;

/// What kind of boxed object a header starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Subtag {
    /// Tuple.
    Tuple = 0,
    /// Match context of the bit syntax; never visible to programs.
    Match = 1,
    /// Positive bignum.
    PosBig = 2,
    /// Negative bignum.
    NegBig = 3,
    /// Reference of this node.
    Ref = 4,
    /// Local fun.
    Fun = 5,
    /// Float.
    Float = 6,
    /// Bitstring on the heap.
    HeapBits = 7,
    /// Bitstring in a counted off-heap block.
    RefcBits = 8,
    /// Part of another bitstring.
    SubBits = 9,
    /// Native record.
    Record = 10,
    /// Map of at most 32 pairs.
    FlatMap = 11,
    /// Node of a hash trie map.
    HashMap = 12,
    /// Pid, port or reference of another node.
    External = 13,
    /// `fun M:F/A`.
    Export = 14,
    /// Not used; reserved.
    Reserved = 15,
}

/// A header word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Header(pub u64);

impl Header {
    /// A header of `arity` following words.
    #[inline(always)]
    pub const fn new(subtag: Subtag, arity: usize) -> Header {
        Header((arity as u64) << 6 | (subtag as u64) << 2)
    }
    /// How many words follow.
    #[inline(always)]
    pub const fn arity(self) -> usize {
        (self.0 >> 6) as usize
    }
    /// The kind of object.
    #[inline(always)]
    pub const fn subtag(self) -> Subtag {
        // SAFETY: all sixteen values of the four bits are variants.
        unsafe { std::mem::transmute::<u8, Subtag>(((self.0 >> 2) & 0xF) as u8) }
    }
    /// How many of the words that follow must be skipped by a collector's scan of this object
    /// before the first term (all of them for raw objects).
    #[inline(always)]
    pub const fn raw_words(self) -> usize {
        match self.subtag() {
            Subtag::PosBig
            | Subtag::NegBig
            | Subtag::Ref
            | Subtag::Float
            | Subtag::HeapBits
            | Subtag::RefcBits
            | Subtag::External => self.arity(),
            Subtag::Fun => 1,
            _ => 0,
        }
    }
    /// Whether word 1 links the object into an off-heap list and word 2 is a counted pointer.
    #[inline(always)]
    pub const fn is_off_heap(self) -> bool {
        match self.subtag() {
            Subtag::RefcBits | Subtag::External => true,
            Subtag::Ref => self.arity() == REF_MAGIC,
            _ => false,
        }
    }
}
