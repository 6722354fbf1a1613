//! [`FromTerm`] of types of the standard library and of this crate.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use beamr_term::arith::Int;

use super::error::short;
use super::{
    AtomName, BigInt, Bytes, Charlist, FromTerm, OwnedTerm, Pid, Place, Reference, Term, TermError,
    TermErrorKind, TermKind, atom,
};

/// The integer behind a term.
fn integer(term: Term<'_>) -> Result<BigInt, TermError> {
    let mut buffer = 0;
    match Int::of(term.word(), &mut buffer) {
        Some(i) => Ok(BigInt::new(i.negative, i.magnitude)),
        None => Err(TermError::expected("an integer", term)),
    }
}

macro_rules! integers {
    ($($t:ident),*) => {$(
        impl FromTerm for $t {
            fn from_term(term: Term<'_>) -> Result<$t, TermError> {
                let fits = match term.as_i64() {
                    Some(v) => $t::try_from(v).ok(),
                    None => integer(term)?.to_i128().and_then(|v| $t::try_from(v).ok()),
                };
                fits.ok_or_else(|| {
                    let kind = stringify!($t);
                    TermErrorKind::Range { kind, value: short(term) }.into()
                })
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, usize);

impl FromTerm for u128 {
    fn from_term(term: Term<'_>) -> Result<u128, TermError> {
        let i = integer(term)?;
        match (i.is_negative(), i.limbs()) {
            (false, []) => Ok(0),
            (false, [low]) => Ok(u128::from(*low)),
            (false, [low, high]) => Ok(u128::from(*high) << 64 | u128::from(*low)),
            _ => Err(TermErrorKind::Range {
                kind: "u128",
                value: short(term),
            }
            .into()),
        }
    }
}

impl FromTerm for BigInt {
    fn from_term(term: Term<'_>) -> Result<BigInt, TermError> {
        integer(term)
    }
}

impl FromTerm for f64 {
    fn from_term(term: Term<'_>) -> Result<f64, TermError> {
        if let Some(f) = term.as_f64() {
            return Ok(f);
        }
        if term.kind() != TermKind::Integer {
            return Err(TermError::expected("a number", term));
        }
        beamr_term::arith::to_float(term.tables().release, term.word()).ok_or_else(|| {
            TermErrorKind::Range {
                kind: "f64",
                value: short(term),
            }
            .into()
        })
    }
}

impl FromTerm for f32 {
    fn from_term(term: Term<'_>) -> Result<f32, TermError> {
        let wide = f64::from_term(term)? as f32;
        if wide.is_finite() {
            return Ok(wide);
        }
        Err(TermErrorKind::Range {
            kind: "f32",
            value: short(term),
        }
        .into())
    }
}

impl FromTerm for bool {
    fn from_term(term: Term<'_>) -> Result<bool, TermError> {
        term.as_bool()
            .ok_or_else(|| TermError::expected("true or false", term))
    }
}

impl FromTerm for char {
    fn from_term(term: Term<'_>) -> Result<char, TermError> {
        term.as_u64()
            .and_then(|c| char::from_u32(u32::try_from(c).ok()?))
            .ok_or_else(|| TermError::expected("a character", term))
    }
}

impl FromTerm for String {
    fn from_term(term: Term<'_>) -> Result<String, TermError> {
        match term.as_str() {
            Some(s) => Ok(s.into_owned()),
            None => Err(TermError::expected("a binary in UTF-8", term)),
        }
    }
}

impl FromTerm for Bytes {
    fn from_term(term: Term<'_>) -> Result<Bytes, TermError> {
        match term.bytes() {
            Some(b) => Ok(Bytes(b.into_owned())),
            None => Err(TermError::expected("a binary", term)),
        }
    }
}

impl FromTerm for Charlist {
    fn from_term(term: Term<'_>) -> Result<Charlist, TermError> {
        Ok(Charlist(each(term, char::from_term)?.into_iter().collect()))
    }
}

impl FromTerm for AtomName {
    fn from_term(term: Term<'_>) -> Result<AtomName, TermError> {
        match term.as_atom() {
            Some(text) => Ok(atom(text.to_owned())),
            None => Err(TermError::expected("an atom", term)),
        }
    }
}

impl FromTerm for Pid {
    fn from_term(term: Term<'_>) -> Result<Pid, TermError> {
        term.as_pid()
            .ok_or_else(|| TermError::expected("a pid of this node", term))
    }
}

impl FromTerm for Reference {
    fn from_term(term: Term<'_>) -> Result<Reference, TermError> {
        Reference::of_word(term.word())
            .ok_or_else(|| TermError::expected("a reference of this node", term))
    }
}

impl FromTerm for () {
    fn from_term(term: Term<'_>) -> Result<(), TermError> {
        if term.is_atom("ok") {
            Ok(())
        } else {
            Err(TermError::expected("ok", term))
        }
    }
}

impl FromTerm for OwnedTerm {
    fn from_term(term: Term<'_>) -> Result<OwnedTerm, TermError> {
        Ok(term.to_owned())
    }
}

/// The items of a proper list.
fn each<'h, T>(
    term: Term<'h>,
    mut read: impl FnMut(Term<'h>) -> Result<T, TermError>,
) -> Result<Vec<T>, TermError> {
    let Some(mut list) = term.list() else {
        return Err(TermError::expected("a list", term));
    };
    let mut out = Vec::new();
    for t in list.by_ref() {
        out.push(read(t).map_err(|e| e.at(Place::Item(out.len() + 1)))?);
    }
    if list.tail().is_nil() {
        Ok(out)
    } else {
        Err(TermErrorKind::Improper.into())
    }
}

impl<T: FromTerm> FromTerm for Vec<T> {
    fn from_term(term: Term<'_>) -> Result<Vec<T>, TermError> {
        each(term, T::from_term)
    }
}

impl<T: FromTerm> FromTerm for Option<T> {
    fn from_term(term: Term<'_>) -> Result<Option<T>, TermError> {
        if term.is_atom("undefined") || term.is_atom("nil") {
            return Ok(None);
        }
        T::from_term(term).map(Some)
    }
}

impl<T: FromTerm, E: FromTerm> FromTerm for Result<T, E> {
    fn from_term(term: Term<'_>) -> Result<Result<T, E>, TermError> {
        let second = |e: TermError| e.at(Place::Element(2));
        match (term.tuple_len(), term.element(0), term.element(1)) {
            (Some(2), Some(tag), Some(v)) if tag.is_atom("ok") => {
                T::from_term(v).map(Ok).map_err(second)
            }
            (Some(2), Some(tag), Some(e)) if tag.is_atom("error") => {
                E::from_term(e).map(Err).map_err(second)
            }
            _ => Err(TermError::expected("{ok, _} or {error, _}", term)),
        }
    }
}

fn pairs<K: FromTerm, V: FromTerm>(
    term: Term<'_>,
    mut put: impl FnMut(K, V),
) -> Result<(), TermError> {
    let Some(pairs) = term.pairs() else {
        return Err(TermError::expected("a map", term));
    };
    for (k, v) in pairs {
        let key = K::from_term(k).map_err(|e| e.at(Place::Key(short(k))))?;
        let value = V::from_term(v).map_err(|e| e.at(Place::Value(short(k))))?;
        put(key, value);
    }
    Ok(())
}

impl<K: FromTerm + Eq + Hash, V: FromTerm, S: BuildHasher + Default> FromTerm for HashMap<K, V, S> {
    fn from_term(term: Term<'_>) -> Result<HashMap<K, V, S>, TermError> {
        let mut map = HashMap::default();
        pairs(term, |k, v| {
            map.insert(k, v);
        })?;
        Ok(map)
    }
}

impl<K: FromTerm + Ord, V: FromTerm> FromTerm for BTreeMap<K, V> {
    fn from_term(term: Term<'_>) -> Result<BTreeMap<K, V>, TermError> {
        let mut map = BTreeMap::new();
        pairs(term, |k, v| {
            map.insert(k, v);
        })?;
        Ok(map)
    }
}

macro_rules! tuples {
    ($(($size:literal: $($t:ident $n:literal),+))*) => {$(
        impl<$($t: FromTerm),+> FromTerm for ($($t,)+) {
            fn from_term(term: Term<'_>) -> Result<($($t,)+), TermError> {
                match term.tuple_len() {
                    Some($size) => {}
                    Some(found) => {
                        return Err(TermErrorKind::Size { expected: $size, found }.into());
                    }
                    None => return Err(TermError::expected("a tuple", term)),
                }
                Ok(($(
                    match term.element($n) {
                        Some(t) => $t::from_term(t).map_err(|e| e.at(Place::Element($n + 1)))?,
                        None => return Err(TermError::expected("a tuple", term)),
                    },
                )+))
            }
        }
    )*};
}
tuples! {
    (1: A 0)
    (2: A 0, B 1)
    (3: A 0, B 1, C 2)
    (4: A 0, B 1, C 2, D 3)
    (5: A 0, B 1, C 2, D 3, E 4)
    (6: A 0, B 1, C 2, D 3, E 4, F 5)
    (7: A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
