//! [`IntoTerm`] and [`IntoArgs`] of types of the standard library and of this crate.

use std::collections::{BTreeMap, HashMap};

use beamr_term::{Atom, atoms};

use super::convert::{checked_count, items};
use super::{
    AtomName, BigInt, Bytes, Charlist, IntoArgs, IntoAtom, IntoTerm, OwnedTerm, Pid, Place,
    Reference, Term, TermBuilder, TermError,
};

macro_rules! signed {
    ($($t:ty),*) => {$(
        impl IntoTerm for $t {
            fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
                Ok(to.integer(self as i64))
            }
        }
    )*};
}
signed!(i8, i16, i32, i64, isize);

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl IntoTerm for $t {
            fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
                Ok(to.unsigned(self as u64))
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64, usize);

impl IntoTerm for i128 {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        BigInt::from(self).into_term(to)
    }
}

impl IntoTerm for u128 {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.big_integer(false, &[self as u64, (self >> 64) as u64])
    }
}

impl IntoTerm for BigInt {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.big_integer(self.is_negative(), self.limbs())
    }
}

impl IntoTerm for f64 {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.float(self)
    }
}

impl IntoTerm for f32 {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.float(f64::from(self))
    }
}

impl IntoTerm for bool {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.bool(self))
    }
}

impl IntoTerm for char {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.integer(i64::from(u32::from(self))))
    }
}

impl IntoTerm for &str {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.binary(self.as_bytes()))
    }
}

impl IntoTerm for String {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.binary(self.as_bytes()))
    }
}

impl IntoTerm for &String {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.binary(self.as_bytes()))
    }
}

impl IntoTerm for Bytes {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.binary(&self.0))
    }
}

impl IntoTerm for Charlist {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.charlist(&self.0))
    }
}

impl IntoTerm for AtomName {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.atom(self)
    }
}

impl IntoTerm for Atom {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.immediate(self.atom_in(to.tables())?.word()))
    }
}

impl IntoTerm for Pid {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.pid(self))
    }
}

impl IntoTerm for Reference {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.reference(self))
    }
}

impl IntoTerm for () {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.immediate(atoms::OK.word()))
    }
}

impl IntoTerm for Term<'_> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.copy(self)
    }
}

impl IntoTerm for OwnedTerm {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.copy(self.root())
    }
}

impl IntoTerm for &OwnedTerm {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        to.copy(self.root())
    }
}

impl<T: IntoTerm> IntoTerm for Vec<T> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.list(&items(self, to, Place::Item)?))
    }
}

impl<T: IntoTerm, const N: usize> IntoTerm for [T; N] {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.list(&items(self, to, Place::Item)?))
    }
}

impl<T: IntoTerm + Clone> IntoTerm for &[T] {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        Ok(to.list(&items(self.iter().cloned(), to, Place::Item)?))
    }
}

impl<T: IntoTerm> IntoTerm for Option<T> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        match self {
            Some(v) => v.into_term(to),
            None => Ok(to.immediate(atoms::UNDEFINED.word())),
        }
    }
}

impl<T: IntoTerm, E: IntoTerm> IntoTerm for Result<T, E> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        let (tag, value) = match self {
            Ok(v) => (atoms::OK, v.into_term(to)),
            Err(e) => (atoms::ERROR, e.into_term(to)),
        };
        let value = value.map_err(|e| e.at(Place::Element(2)))?;
        Ok(to.tuple(&[to.immediate(tag.word()), value]))
    }
}

fn pairs<'h, K: IntoTerm, V: IntoTerm>(
    map: impl IntoIterator<Item = (K, V)>,
    to: &TermBuilder<'h>,
) -> Result<Term<'h>, TermError> {
    let mut pairs = Vec::new();
    for (k, v) in map {
        let k = k
            .into_term(to)
            .map_err(|e| e.at(Place::Key(String::new())))?;
        let v = v
            .into_term(to)
            .map_err(|e| e.at(Place::Value(super::error::short(k))))?;
        pairs.push((k, v));
    }
    Ok(to.map(&pairs))
}

impl<K: IntoTerm, V: IntoTerm, S> IntoTerm for HashMap<K, V, S> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        pairs(self, to)
    }
}

impl<K: IntoTerm, V: IntoTerm> IntoTerm for BTreeMap<K, V> {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        pairs(self, to)
    }
}

macro_rules! tuples {
    ($(($($t:ident $v:ident $n:literal),+))*) => {$(
        impl<$($t: IntoTerm),+> IntoTerm for ($($t,)+) {
            fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
                let ($($v,)+) = self;
                let elements = [$($v.into_term(to).map_err(|e| e.at(Place::Element($n)))?),+];
                Ok(to.tuple(&elements))
            }
        }
        impl<$($t: IntoTerm),+> IntoArgs for ($($t,)+) {
            fn into_args<'h>(self, to: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError> {
                let ($($v,)+) = self;
                Ok(vec![$($v.into_term(to).map_err(|e| e.at(Place::Argument($n)))?),+])
            }
        }
    )*};
}
tuples! {
    (A a 1)
    (A a 1, B b 2)
    (A a 1, B b 2, C c 3)
    (A a 1, B b 2, C c 3, D d 4)
    (A a 1, B b 2, C c 3, D d 4, E e 5)
    (A a 1, B b 2, C c 3, D d 4, E e 5, F f 6)
    (A a 1, B b 2, C c 3, D d 4, E e 5, F f 6, G g 7)
    (A a 1, B b 2, C c 3, D d 4, E e 5, F f 6, G g 7, H h 8)
}

impl IntoArgs for () {
    fn into_args<'h>(self, _: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError> {
        Ok(Vec::new())
    }
}

impl<T: IntoTerm> IntoArgs for Vec<T> {
    fn into_args<'h>(self, to: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError> {
        checked_count(self.len())?;
        items(self, to, Place::Argument)
    }
}

impl<T: IntoTerm, const N: usize> IntoArgs for [T; N] {
    fn into_args<'h>(self, to: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError> {
        checked_count(N)?;
        items(self, to, Place::Argument)
    }
}

impl<T: IntoTerm + Clone> IntoArgs for &[T] {
    fn into_args<'h>(self, to: &TermBuilder<'h>) -> Result<Vec<Term<'h>>, TermError> {
        checked_count(self.len())?;
        items(self.iter().cloned(), to, Place::Argument)
    }
}
