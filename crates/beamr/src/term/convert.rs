//! The traits between Rust values and terms, and the types that stand for kinds of terms which Rust has no type for.

use std::borrow::Cow;
use std::fmt;

use beamr_term::{Atom, Tables, big};

use super::{Place, Term, TermBuilder, TermError, TermErrorKind};

/// A value that stands for a term.
///
/// | Rust | Erlang |
/// |---|---|
/// | integers, [`BigInt`] | integer |
/// | `f32`, `f64` | float (finite) |
/// | `bool` | `true`, `false` |
/// | `char` | integer |
/// | `&str`, `String` | binary (UTF-8) |
/// | [`Charlist`] | list of characters |
/// | [`Bytes`] | binary |
/// | [`AtomName`], [`Atom`] | atom |
/// | `()` | `ok` |
/// | tuples of one to eight | tuple |
/// | `Vec<T>`, `[T; N]`, `&[T]` | list |
/// | `HashMap`, `BTreeMap` | map |
/// | `Option<T>` | the value, or `undefined` |
/// | `Result<T, E>` | `{ok, Value}`, `{error, Error}` |
/// | [`Pid`](super::Pid), [`Reference`](super::Reference) | pid, reference |
/// | [`Term`], [`OwnedTerm`](super::OwnedTerm) | itself (a copy) |
pub trait IntoTerm {
    /// Makes the term.
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError>;
}

/// A value that a term may stand for: the table of [`IntoTerm`] from right to left. Besides, `f64` takes integers, `Option` takes `nil` for `undefined`,
/// and [`OwnedTerm`](super::OwnedTerm) takes anything.
pub trait FromTerm: Sized {
    /// Reads the term.
    fn from_term(term: Term<'_>) -> Result<Self, TermError>;
}

/// The arguments of a function: a tuple of values (`()` for none), or a list of values of one type.
pub trait IntoArgs {
    /// Makes the arguments.
    fn into_args<'h>(self, to: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError>;
}

/// The name of a module or function, or any atom: a text, or an [`Atom`] of the VM.
pub trait IntoAtom {
    #[doc(hidden)]
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError>;
}

impl IntoAtom for &str {
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError> {
        Ok(tables.atoms.intern(self)?)
    }
}

impl IntoAtom for String {
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError> {
        Ok(tables.atoms.intern(self)?)
    }
}

impl IntoAtom for &String {
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError> {
        Ok(tables.atoms.intern(self)?)
    }
}

impl IntoAtom for AtomName {
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError> {
        Ok(tables.atoms.intern(&self.0)?)
    }
}

impl IntoAtom for Atom {
    fn atom_in(&self, tables: &Tables) -> Result<Atom, TermError> {
        if self.index() < tables.atoms.len() {
            Ok(*self)
        } else {
            Err(TermErrorKind::ForeignAtom.into())
        }
    }
}

/// An atom by its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AtomName(Cow<'static, str>);

/// An atom by its text: `atom("ok")`.
pub fn atom(text: impl Into<Cow<'static, str>>) -> AtomName {
    AtomName(text.into())
}

impl AtomName {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AtomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for AtomName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for AtomName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// The bytes of a binary.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl From<Vec<u8>> for Bytes {
    fn from(v: Vec<u8>) -> Bytes {
        Bytes(v)
    }
}

impl From<&[u8]> for Bytes {
    fn from(v: &[u8]) -> Bytes {
        Bytes(v.to_vec())
    }
}

/// A text that stands for a list of characters (`"text"` in Erlang).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Charlist(pub String);

/// An integer of any size.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct BigInt {
    negative: bool,
    /// Least significant limb first, without high zeros.
    limbs: Vec<u64>,
}

impl BigInt {
    /// From sign and magnitude, least significant limb first.
    pub fn new(negative: bool, limbs: &[u64]) -> BigInt {
        let limbs = big::trim(limbs).to_vec();
        BigInt {
            negative: negative && !limbs.is_empty(),
            limbs,
        }
    }
    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }
    /// The magnitude, least significant limb first, without high zeros.
    pub fn limbs(&self) -> &[u64] {
        &self.limbs
    }
    /// The value when it fits.
    pub fn to_i128(&self) -> Option<i128> {
        let magnitude = match *self.limbs {
            [] => 0,
            [low] => u128::from(low),
            [low, high] => u128::from(high) << 64 | u128::from(low),
            _ => return None,
        };
        if self.negative {
            0i128.checked_sub_unsigned(magnitude)
        } else {
            i128::try_from(magnitude).ok()
        }
    }
}

impl From<i128> for BigInt {
    fn from(v: i128) -> BigInt {
        let m = v.unsigned_abs();
        BigInt::new(v < 0, &[m as u64, (m >> 64) as u64])
    }
}

/// What is no decimal integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a decimal integer")]
pub struct ParseBigIntError;

impl std::str::FromStr for BigInt {
    type Err = ParseBigIntError;
    fn from_str(text: &str) -> Result<BigInt, ParseBigIntError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseBigIntError);
        }
        let digits: Vec<u8> = digits.bytes().map(|b| b - b'0').collect();
        Ok(BigInt::new(negative, &big::from_digits(&digits, 10)))
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = Vec::new();
        big::to_digits(&mut digits, &self.limbs, 10, 1);
        f.pad_integral(!self.negative, "", &String::from_utf8_lossy(&digits))
    }
}

impl fmt::Debug for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks the number of arguments.
pub(super) fn checked_count(n: usize) -> Result<(), TermError> {
    if n > 255 {
        return Err(TermErrorKind::TooManyArguments(n).into());
    }
    Ok(())
}

/// Makes the items of a sequence; errors know their number.
pub(super) fn items<'h, T: IntoTerm>(
    values: impl IntoIterator<Item = T>,
    to: &TermBuilder<'h>,
    place: fn(usize) -> Place,
) -> Result<Vec<Term<'h>>, TermError> {
    values
        .into_iter()
        .enumerate()
        .map(|(i, v)| v.into_term(to).map_err(|e| e.at(place(i + 1))))
        .collect()
}
