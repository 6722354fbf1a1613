//! `erlang` (and `string`, `erts_internal`): conversions between terms and text: atoms, integers, floats.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::bits::BitsView;
use beamr_term::number_text::{
    self, FloatFormat, FloatPrefixError, IntegerListError, ParseIntegerError,
};
use beamr_term::{AtomError, Build, Word, atoms, text};

use crate::support::atom;

fn bytes_of(ctx: &mut Ctx, w: Word) -> Result<Vec<u8>, Escape> {
    match BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary()) {
        Some(v) => Ok(v.to_bytes().into_owned()),
        None => Err(ctx.badarg()),
    }
}

/// `atom_to_list(Atom)`.
fn atom_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = atom(ctx, args[0])?;
    let tables = ctx.tables();
    Ok(ctx.string(tables.atoms.text(a)))
}

enum AtomFault {
    Badarg,
    TooLong,
    Full,
}

fn intern(ctx: &mut Ctx, name: &str, existing: bool) -> Result<Word, AtomFault> {
    let table = &ctx.tables().atoms;
    if existing {
        return match table.lookup(name) {
            Some(a) => Ok(a.word()),
            None if name.chars().count() > beamr_term::MAX_ATOM_CHARS => Err(AtomFault::TooLong),
            None => Err(AtomFault::Badarg),
        };
    }
    match table.intern(name) {
        Ok(a) => Ok(a.word()),
        Err(AtomError::TooLong) => Err(AtomFault::TooLong),
        Err(AtomError::Full(_)) => Err(AtomFault::Full),
        Err(AtomError::NotUtf8) => Err(AtomFault::Badarg),
    }
}

/// An atom too long is `system_limit` when it would be made, `badarg` when it was to exist.
fn interned(ctx: &mut Ctx, name: &str, existing: bool) -> Result<Word, Escape> {
    match intern(ctx, name, existing) {
        Ok(w) => Ok(w),
        Err(AtomFault::TooLong) if existing => Err(ctx.badarg()),
        Err(AtomFault::TooLong | AtomFault::Full) => Err(ctx.system_limit()),
        Err(AtomFault::Badarg) => Err(ctx.badarg()),
    }
}

fn list_to_atom(ctx: &mut Ctx, list: Word, existing: bool) -> Result<Word, Escape> {
    let Some(name) = text::string_from_list(list) else {
        return Err(ctx.badarg());
    };
    interned(ctx, &name, existing)
}

/// `list_to_atom(String)`.
fn list_to_atom_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    list_to_atom(ctx, args[0], false)
}

/// `list_to_existing_atom(String)`.
fn list_to_existing_atom_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    list_to_atom(ctx, args[0], true)
}

/// `atom_to_binary(Atom, Encoding)`.
fn atom_to_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = atom(ctx, args[0])?;
    let tables = ctx.tables();
    let name = tables.atoms.text(a);
    match args[1].as_atom() {
        Some(atoms::UTF8 | atoms::UNICODE) => Ok(ctx.binary(name.as_bytes())),
        Some(atoms::LATIN1) => {
            let bytes: Option<Vec<u8>> =
                name.chars().map(|c| u8::try_from(c as u32).ok()).collect();
            match bytes {
                Some(b) => Ok(ctx.binary(&b)),
                None => Err(ctx.badarg()),
            }
        }
        _ => Err(ctx.badarg()),
    }
}

fn binary_to_atom(ctx: &mut Ctx, args: &[Word], existing: bool) -> Result<Word, Escape> {
    let bytes = bytes_of(ctx, args[0])?;
    let name = match args[1].as_atom() {
        Some(atoms::UTF8 | atoms::UNICODE) => match String::from_utf8(bytes) {
            Ok(s) => s,
            Err(_) => return Err(ctx.badarg()),
        },
        Some(atoms::LATIN1) => bytes.into_iter().map(char::from).collect(),
        _ => return Err(ctx.badarg()),
    };
    interned(ctx, &name, existing)
}

/// `binary_to_atom(Binary, Encoding)`.
fn binary_to_atom_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    binary_to_atom(ctx, args, false)
}

/// `binary_to_existing_atom(Binary, Encoding)`.
fn binary_to_existing_atom_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    binary_to_atom(ctx, args, true)
}

fn base(ctx: &mut Ctx, w: Word) -> Result<u32, Escape> {
    match w.as_small() {
        Some(b @ 2..=36) => Ok(b as u32),
        _ => Err(ctx.badarg()),
    }
}

/// `integer_to_list(Integer)`.
fn integer_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match number_text::integer_to_list(ctx, args[0], 10) {
        Some(w) => Ok(w),
        None => Err(ctx.badarg()),
    }
}

/// `integer_to_list(Integer, Base)`.
fn integer_to_list_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let b = base(ctx, args[1])?;
    match number_text::integer_to_list(ctx, args[0], b) {
        Some(w) => Ok(w),
        None => Err(ctx.badarg()),
    }
}

/// `integer_to_binary(Integer)`.
fn integer_to_binary_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match number_text::integer_to_binary(ctx, args[0], 10) {
        Some(w) => Ok(w),
        None => Err(ctx.badarg()),
    }
}

/// `integer_to_binary(Integer, Base)`.
fn integer_to_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let b = base(ctx, args[1])?;
    match number_text::integer_to_binary(ctx, args[0], b) {
        Some(w) => Ok(w),
        None => Err(ctx.badarg()),
    }
}

fn list_to_integer(ctx: &mut Ctx, list: Word, base: u32) -> Result<Word, Escape> {
    let release = ctx.tables().release;
    match number_text::integer_from_list(ctx, release, list, base) {
        Ok((n, rest)) if rest.is_nil() => Ok(n),
        Err(IntegerListError::SystemLimit) => Err(ctx.system_limit()),
        _ => Err(ctx.badarg()),
    }
}

/// `list_to_integer(String)`.
fn list_to_integer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    list_to_integer(ctx, args[0], 10)
}

/// `list_to_integer(String, Base)`.
fn list_to_integer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let b = base(ctx, args[1])?;
    list_to_integer(ctx, args[0], b)
}

/// `string:list_to_integer(String)`: `{Integer, Rest}` or `{error, Reason}`.
fn string_list_to_integer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let release = ctx.tables().release;
    match number_text::integer_from_list(ctx, release, args[0], 10) {
        Ok((n, rest)) => Ok(ctx.tuple(&[n, rest])),
        Err(e) => {
            let reason = ctx.atom(match e {
                IntegerListError::NoInteger => "no_integer",
                IntegerListError::NotAList => "not_a_list",
                IntegerListError::SystemLimit => "system_limit",
            })?;
            Ok(ctx.tuple(&[atoms::ERROR.word(), reason]))
        }
    }
}

/// `erts_internal:list_to_integer(String, Base)`: `{Integer, Rest}` or an atom that says why not.
fn internal_list_to_integer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(b @ 2..=36) = args[1].as_small() else {
        return Ok(atoms::BADARG.word());
    };
    let release = ctx.tables().release;
    match number_text::integer_from_list(ctx, release, args[0], b as u32) {
        Ok((n, rest)) => Ok(ctx.tuple(&[n, rest])),
        Err(IntegerListError::NoInteger) => ctx.atom("no_integer"),
        Err(IntegerListError::NotAList) => ctx.atom("not_a_list"),
        Err(IntegerListError::SystemLimit) => Ok(atoms::BIG.word()),
    }
}

fn binary_to_integer(ctx: &mut Ctx, w: Word, base: u32) -> Result<Word, Escape> {
    let bytes = bytes_of(ctx, w)?;
    let release = ctx.tables().release;
    match number_text::parse_integer(ctx, release, &bytes, base) {
        Ok(n) => Ok(n),
        Err(ParseIntegerError::SystemLimit) => Err(ctx.system_limit()),
        Err(ParseIntegerError::NotAnInteger) => Err(ctx.badarg()),
    }
}

/// `binary_to_integer(Binary)`.
fn binary_to_integer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    binary_to_integer(ctx, args[0], 10)
}

/// `binary_to_integer(Binary, Base)`.
fn binary_to_integer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let b = base(ctx, args[1])?;
    binary_to_integer(ctx, args[0], b)
}

/// `erts_internal:binary_to_integer(Binary, Base)`: the integer, `badarg`, or `big` when it is beyond the limit.
fn internal_binary_to_integer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let view = BitsView::of(args[0]).filter(|v| args[0].is_bitstring() && v.is_binary());
    let (Some(view), Some(b @ 2..=36)) = (view, args[1].as_small()) else {
        return Ok(atoms::BADARG.word());
    };
    let release = ctx.tables().release;
    match number_text::parse_integer(ctx, release, &view.to_bytes(), b as u32) {
        Ok(n) => Ok(n),
        Err(ParseIntegerError::SystemLimit) => Ok(atoms::BIG.word()),
        Err(ParseIntegerError::NotAnInteger) => Ok(atoms::BADARG.word()),
    }
}

fn float_text(ctx: &mut Ctx, w: Word, format: Option<FloatFormat>) -> Result<String, Escape> {
    match (w.as_float(), format) {
        (Some(f), Some(format)) => number_text::float_text(f, format).ok_or_else(|| ctx.badarg()),
        _ => Err(ctx.badarg()),
    }
}

/// `float_to_list(Float)`.
fn float_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = float_text(ctx, args[0], Some(FloatFormat::DEFAULT))?;
    Ok(ctx.string(&t))
}

/// `float_to_list(Float, Options)`.
fn float_to_list_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = float_text(ctx, args[0], FloatFormat::from_options(args[1]))?;
    Ok(ctx.string(&t))
}

/// `float_to_binary(Float)`.
fn float_to_binary_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = float_text(ctx, args[0], Some(FloatFormat::DEFAULT))?;
    Ok(ctx.binary(t.as_bytes()))
}

/// `float_to_binary(Float, Options)`.
fn float_to_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = float_text(ctx, args[0], FloatFormat::from_options(args[1]))?;
    Ok(ctx.binary(t.as_bytes()))
}

fn parsed_float(ctx: &mut Ctx, bytes: Option<Vec<u8>>) -> Result<Word, Escape> {
    match bytes.and_then(|b| number_text::parse_float(&b)) {
        Some(f) => Ok(ctx.float(f)),
        None => Err(ctx.badarg()),
    }
}

/// `list_to_float(String)`.
fn list_to_float_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    parsed_float(ctx, text::latin1_from_list(args[0]))
}

/// `binary_to_float(Binary)`.
fn binary_to_float_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = bytes_of(ctx, args[0])?;
    parsed_float(ctx, Some(bytes))
}

/// `string:list_to_float(String)`: `{Float, Rest}` or `{error, Reason}`.
fn string_list_to_float_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match number_text::string_to_float(args[0]) {
        Ok((f, rest)) => {
            let f = ctx.float(f);
            Ok(ctx.tuple(&[f, rest]))
        }
        Err(e) => {
            let reason = ctx.atom(match e {
                FloatPrefixError::NotAList => "not_a_list",
                FloatPrefixError::NoFloat => "no_float",
            })?;
            Ok(ctx.tuple(&[atoms::ERROR.word(), reason]))
        }
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("atom_to_list", 1, atom_to_list_1),
    row("list_to_atom", 1, list_to_atom_1),
    row("list_to_existing_atom", 1, list_to_existing_atom_1),
    row("atom_to_binary", 2, atom_to_binary_2),
    row("binary_to_atom", 2, binary_to_atom_2),
    row("binary_to_existing_atom", 2, binary_to_existing_atom_2),
    row("integer_to_list", 1, integer_to_list_1),
    row("integer_to_list", 2, integer_to_list_2),
    row("integer_to_binary", 1, integer_to_binary_1),
    row("integer_to_binary", 2, integer_to_binary_2),
    row("list_to_integer", 1, list_to_integer_1).releases(ReleaseSpan::until(26)),
    row("list_to_integer", 2, list_to_integer_2).releases(ReleaseSpan::until(26)),
    row("binary_to_integer", 1, binary_to_integer_1).releases(ReleaseSpan::until(26)),
    row("binary_to_integer", 2, binary_to_integer_2).releases(ReleaseSpan::until(26)),
    row("float_to_list", 1, float_to_list_1),
    row("float_to_list", 2, float_to_list_2),
    row("float_to_binary", 1, float_to_binary_1),
    row("float_to_binary", 2, float_to_binary_2),
    row("list_to_float", 1, list_to_float_1),
    row("binary_to_float", 1, binary_to_float_1),
    NativeEntry::new("string", "list_to_integer", 1, string_list_to_integer_1)
        .releases(ReleaseSpan::until(26)),
    NativeEntry::new("string", "list_to_float", 1, string_list_to_float_1),
    NativeEntry::new(
        "erts_internal",
        "list_to_integer",
        2,
        internal_list_to_integer_2,
    )
    .releases(ReleaseSpan::since(27)),
    NativeEntry::new(
        "erts_internal",
        "binary_to_integer",
        2,
        internal_binary_to_integer_2,
    )
    .releases(ReleaseSpan::since(27)),
];
