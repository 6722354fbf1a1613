//! The tagged word and its immediate values.
//!
//! ```text
//! ..00  header (first word of a boxed object; on a stack: a return address)
//! ..01  list: pointer to a cons cell
//! ..10  boxed: pointer to a header
//! ..11  immediate: 0011 local pid, 0111 local port, 1111 small integer (60 bits),
//!       1011 one of 001011 atom, 011011 catch tag, 111011 nil
//! ```
//!
//! Pointers are at least 8-aligned. The word 0 (a header of an empty tuple) is never a term
//! value: it is [`Word::NONE`], "no value".

use crate::atom::Atom;
use crate::header::{Header, Subtag};

/// A tagged 64-bit word: a term, or a header inside a boxed object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Word(u64);

/// Primary tag of a header word.
pub const PRIMARY_HEADER: u64 = 0;
/// Primary tag of a list pointer.
pub const PRIMARY_LIST: u64 = 1;
/// Primary tag of a boxed pointer.
pub const PRIMARY_BOXED: u64 = 2;
/// Primary tag of an immediate.
pub const PRIMARY_IMMEDIATE: u64 = 3;
/// Low four bits of a local pid.
pub const TAG_PID: u64 = 0x3;
/// Low four bits of a local port.
pub const TAG_PORT: u64 = 0x7;
/// Low four bits of a small integer.
pub const TAG_SMALL: u64 = 0xF;
/// Low six bits of an atom.
pub const TAG_ATOM: u64 = 0x0B;
/// Low six bits of a catch tag.
pub const TAG_CATCH: u64 = 0x1B;

impl Word {
    /// "No value": never a term.
    pub const NONE: Word = Word(0);
    /// The empty list.
    pub const NIL: Word = Word(0x3B);
    /// The largest small integer, 2^59 - 1.
    pub const MAX_SMALL: i64 = (1 << 59) - 1;
    /// The smallest small integer, -2^59.
    pub const MIN_SMALL: i64 = -(1 << 59);
    /// The atom `true`.
    pub const TRUE: Word = crate::atom::atoms::TRUE.word();
    /// The atom `false`.
    pub const FALSE: Word = crate::atom::atoms::FALSE.word();

    /// A word from its bits.
    ///
    /// # Safety
    /// The bits must be an immediate, or a list or boxed pointer to a well-formed object that
    /// stays valid for as long as the word is read (see the crate's contract).
    #[inline(always)]
    pub const unsafe fn from_bits(bits: u64) -> Word {
        Word(bits)
    }
    /// The bits.
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// A list pointer.
    ///
    /// # Safety
    /// `cell` points to two initialised words, head and tail; see [`Word::from_bits`].
    #[inline(always)]
    pub unsafe fn list(cell: *const u64) -> Word {
        Word(cell as usize as u64 | PRIMARY_LIST)
    }
    /// A boxed pointer.
    ///
    /// # Safety
    /// `object` points to a header and its complete object; see [`Word::from_bits`].
    #[inline(always)]
    pub unsafe fn boxed(object: *const u64) -> Word {
        Word(object as usize as u64 | PRIMARY_BOXED)
    }
    /// A small integer, or `None` when `value` needs a bignum.
    #[inline(always)]
    pub const fn small(value: i64) -> Option<Word> {
        if value >= Self::MIN_SMALL && value <= Self::MAX_SMALL {
            Some(Word(((value << 4) as u64) | TAG_SMALL))
        } else {
            None
        }
    }
    /// A small integer from a value known to fit 60 bits (an index, a byte, a size).
    #[inline(always)]
    pub const fn fixnum(value: i64) -> Word {
        debug_assert!(value >= Self::MIN_SMALL && value <= Self::MAX_SMALL);
        Word(((value << 4) as u64) | TAG_SMALL)
    }
    /// An atom's word from its index.
    #[inline(always)]
    pub const fn atom_index(index: u32) -> Word {
        Word(((index as u64) << 6) | TAG_ATOM)
    }
    /// `true` or `false`.
    #[inline(always)]
    pub const fn boolean(b: bool) -> Word {
        if b { Self::TRUE } else { Self::FALSE }
    }
    /// A catch tag: the handler's index in its module. Lives only in Y registers.
    #[inline(always)]
    pub const fn catch_tag(handler: u32) -> Word {
        Word(((handler as u64) << 6) | TAG_CATCH)
    }
    /// A local pid. `number` is below 2^60: bits 0..28 are the printed number, the rest the serial.
    #[inline(always)]
    pub const fn pid(number: u64) -> Word {
        Word((number << 4) | TAG_PID)
    }
    /// A local port.
    #[inline(always)]
    pub const fn port(number: u64) -> Word {
        Word((number << 4) | TAG_PORT)
    }

    /// The low two bits.
    #[inline(always)]
    pub const fn primary(self) -> u64 {
        self.0 & 3
    }
    /// Whether this is [`Word::NONE`].
    #[inline(always)]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
    /// Whether this is not [`Word::NONE`].
    #[inline(always)]
    pub const fn is_value(self) -> bool {
        self.0 != 0
    }
    /// Immediate (small, atom, nil, local pid or port).
    #[inline(always)]
    pub const fn is_immediate(self) -> bool {
        self.0 & 3 == PRIMARY_IMMEDIATE
    }
    /// A non-empty list.
    #[inline(always)]
    pub const fn is_cons(self) -> bool {
        self.0 & 3 == PRIMARY_LIST
    }
    /// The empty list.
    #[inline(always)]
    pub const fn is_nil(self) -> bool {
        self.0 == Self::NIL.0
    }
    /// A list cell or the empty list.
    #[inline(always)]
    pub const fn is_list(self) -> bool {
        self.is_cons() || self.is_nil()
    }
    /// A boxed pointer.
    #[inline(always)]
    pub const fn is_boxed(self) -> bool {
        self.0 & 3 == PRIMARY_BOXED
    }
    /// A small integer.
    #[inline(always)]
    pub const fn is_small(self) -> bool {
        self.0 & 0xF == TAG_SMALL
    }
    /// An atom.
    #[inline(always)]
    pub const fn is_atom(self) -> bool {
        self.0 & 0x3F == TAG_ATOM
    }
    /// A catch tag.
    #[inline(always)]
    pub const fn is_catch(self) -> bool {
        self.0 & 0x3F == TAG_CATCH
    }
    /// A pid of this node.
    #[inline(always)]
    pub const fn is_local_pid(self) -> bool {
        self.0 & 0xF == TAG_PID
    }
    /// A port of this node.
    #[inline(always)]
    pub const fn is_local_port(self) -> bool {
        self.0 & 0xF == TAG_PORT
    }
    /// `true` or `false`.
    #[inline(always)]
    pub const fn is_boolean(self) -> bool {
        self.0 == Self::TRUE.0 || self.0 == Self::FALSE.0
    }

    /// The value of a small integer (only meaningful when [`Word::is_small`]).
    #[inline(always)]
    pub const fn small_value(self) -> i64 {
        (self.0 as i64) >> 4
    }
    /// The value of a small integer, or `None`.
    #[inline(always)]
    pub const fn as_small(self) -> Option<i64> {
        if self.is_small() {
            Some(self.small_value())
        } else {
            None
        }
    }
    /// The atom, or `None`.
    #[inline(always)]
    pub const fn as_atom(self) -> Option<Atom> {
        if self.is_atom() {
            Some(Atom::from_index((self.0 >> 6) as u32))
        } else {
            None
        }
    }
    /// The handler index of a catch tag (only meaningful when [`Word::is_catch`]).
    #[inline(always)]
    pub const fn catch_index(self) -> u32 {
        (self.0 >> 6) as u32
    }
    /// The number of a local pid or port.
    #[inline(always)]
    pub const fn local_number(self) -> u64 {
        self.0 >> 4
    }
    /// The boolean, or `None`.
    #[inline(always)]
    pub const fn as_boolean(self) -> Option<bool> {
        if self.0 == Self::TRUE.0 {
            Some(true)
        } else if self.0 == Self::FALSE.0 {
            Some(false)
        } else {
            None
        }
    }

    /// The address behind a list or boxed pointer.
    #[inline(always)]
    pub const fn ptr(self) -> *mut u64 {
        (self.0 & !3) as usize as *mut u64
    }
    /// Head of a cons cell (the word must be one).
    #[inline(always)]
    pub fn head(self) -> Word {
        debug_assert!(self.is_cons());
        // SAFETY: a list word points to two initialised words (crate contract).
        unsafe { Word(*self.ptr()) }
    }
    /// Tail of a cons cell (the word must be one).
    #[inline(always)]
    pub fn tail(self) -> Word {
        debug_assert!(self.is_cons());
        // SAFETY: as in `head`.
        unsafe { Word(*self.ptr().add(1)) }
    }
    /// Head and tail, or `None` when this is not a cons cell.
    #[inline(always)]
    pub fn as_cons(self) -> Option<(Word, Word)> {
        if self.is_cons() {
            Some((self.head(), self.tail()))
        } else {
            None
        }
    }
    /// The header of a boxed object (the word must be boxed).
    #[inline(always)]
    pub fn header(self) -> Header {
        debug_assert!(self.is_boxed());
        // SAFETY: a boxed word points to a header (crate contract).
        unsafe { Header(*self.ptr()) }
    }
    /// The subtag of a boxed object, or `None` when the word is not boxed.
    #[inline(always)]
    pub fn subtag(self) -> Option<Subtag> {
        if self.is_boxed() {
            Some(self.header().subtag())
        } else {
            None
        }
    }
    /// Word `index` of a boxed object; 0 is the header.
    #[inline(always)]
    pub fn field(self, index: usize) -> u64 {
        debug_assert!(self.is_boxed());
        debug_assert!(index <= self.header().arity());
        // SAFETY: within the object (crate contract, and asserted in debug builds).
        unsafe { *self.ptr().add(index) }
    }
    /// Word `index` of a boxed object as a term; the layout must have a term there.
    #[inline(always)]
    pub fn term_field(self, index: usize) -> Word {
        Word(self.field(index))
    }

    /// The elements of a tuple, or `None`. The slice is valid as long as the term is.
    #[inline(always)]
    pub fn as_tuple<'a>(self) -> Option<&'a [Word]> {
        if self.is_boxed() && self.header().subtag() == Subtag::Tuple {
            let n = self.header().arity();
            // SAFETY: a tuple is its header followed by `arity` terms; `Word` is transparent.
            Some(unsafe { std::slice::from_raw_parts(self.ptr().add(1).cast::<Word>(), n) })
        } else {
            None
        }
    }
    /// The value of a boxed float, or `None`.
    #[inline(always)]
    pub fn as_float(self) -> Option<f64> {
        if self.is_boxed() && self.header().subtag() == Subtag::Float {
            Some(f64::from_bits(self.field(1)))
        } else {
            None
        }
    }
    /// Whether this is a tuple.
    #[inline(always)]
    pub fn is_tuple(self) -> bool {
        self.subtag() == Some(Subtag::Tuple)
    }
    /// Whether this is a float.
    #[inline(always)]
    pub fn is_float(self) -> bool {
        self.subtag() == Some(Subtag::Float)
    }
    /// Whether this is a bignum.
    #[inline(always)]
    pub fn is_big(self) -> bool {
        matches!(self.subtag(), Some(Subtag::PosBig | Subtag::NegBig))
    }
    /// Whether this is an integer of any size.
    #[inline(always)]
    pub fn is_integer(self) -> bool {
        self.is_small() || self.is_big()
    }
    /// Whether this is an integer or a float.
    #[inline(always)]
    pub fn is_number(self) -> bool {
        self.is_small()
            || matches!(
                self.subtag(),
                Some(Subtag::PosBig | Subtag::NegBig | Subtag::Float)
            )
    }
    /// Whether this is a bitstring of any kind.
    #[inline(always)]
    pub fn is_bitstring(self) -> bool {
        matches!(
            self.subtag(),
            Some(Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits)
        )
    }
    /// Whether this is a map.
    #[inline(always)]
    pub fn is_map(self) -> bool {
        matches!(self.subtag(), Some(Subtag::FlatMap | Subtag::HashMap))
    }
    /// Whether this is a fun (local or export).
    #[inline(always)]
    pub fn is_fun(self) -> bool {
        matches!(self.subtag(), Some(Subtag::Fun | Subtag::Export))
    }
    /// Whether this is a pid, local or of another node.
    #[inline(always)]
    pub fn is_pid(self) -> bool {
        self.is_local_pid() || self.is_external(crate::header::EXTERNAL_PID)
    }
    /// Whether this is a port, local or of another node.
    #[inline(always)]
    pub fn is_port(self) -> bool {
        self.is_local_port() || self.is_external(crate::header::EXTERNAL_PORT)
    }
    /// Whether this is a reference, local or of another node.
    #[inline(always)]
    pub fn is_reference(self) -> bool {
        self.subtag() == Some(Subtag::Ref) || self.is_external(crate::header::EXTERNAL_REF)
    }
    /// Whether this is an external identifier of kind `kind` (`EXTERNAL_*`).
    #[inline(always)]
    pub fn is_external(self, kind: u64) -> bool {
        self.subtag() == Some(Subtag::External) && self.field(3) == kind
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(i) = self.as_small() {
            write!(f, "small({i})")
        } else if self.is_atom() {
            write!(f, "atom#{}", self.0 >> 6)
        } else if self.is_nil() {
            write!(f, "[]")
        } else {
            write!(f, "word({:#x})", self.0)
        }
    }
}
