//! `records` (OTP 29): native records as data.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{Alloc, Build, Header, Subtag, Word, atoms, maps, text};

use crate::erlang::funs::modules;
use crate::erlang::system::map_of;

/// The definition of a record: `{Module, Name, IsExported, Field...}`.
fn definition<'a>(w: Word) -> Option<&'a [Word]> {
    if w.subtag() != Some(Subtag::Record) {
        return None;
    }
    w.term_field(1).as_tuple().filter(|d| d.len() >= 3)
}

fn badrecord(ctx: &mut Ctx, w: Word) -> Escape {
    ctx.error_with(atoms::BADRECORD, w)
}

/// `{badfield, {{Module, Name}, Field}}`.
fn badfield(ctx: &mut Ctx, module: Word, name: Word, field: Word) -> Escape {
    let identity = ctx.tuple(&[module, name]);
    let value = ctx.tuple(&[identity, field]);
    ctx.error_with(atoms::BADFIELD, value)
}

/// A record of a definition and as many values as it has fields.
fn build(ctx: &mut Ctx, definition: Word, values: &[Word]) -> Word {
    let p = ctx.alloc(values.len() + 2);
    // SAFETY: the fresh words of a record: header, definition, values.
    unsafe {
        *p = Header::new(Subtag::Record, values.len() + 1).0;
        *p.add(1) = definition.bits();
        for (i, v) in values.iter().enumerate() {
            *p.add(2 + i) = v.bits();
        }
        Word::boxed(p)
    }
}

/// `create(Module, Name, Fields, Options)`.
fn create_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (module, name) = (args[0], args[1]);
    if !module.is_atom() || !name.is_atom() {
        return Err(badrecord(ctx, name));
    }
    if !args[3].is_map() {
        return Err(ctx.error_with(atoms::BADMAP, args[3]));
    }
    let key = ctx.atom("is_exported")?;
    let exported = maps::get(args[3], key, ctx.tables()).filter(|v| v.is_boolean());
    let (Some(exported), 1) = (exported, maps::size(args[3])) else {
        return Err(ctx.badarg());
    };
    let Some(items) = text::list_to_vec(args[2]) else {
        return Err(ctx.badarg());
    };
    let mut elements = vec![module, name, exported];
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let Some([field, value]) = item.as_tuple() else {
            return Err(ctx.badarg());
        };
        if !field.is_atom() {
            return Err(badfield(ctx, module, name, *field));
        }
        if elements[3..].contains(field) {
            return Err(ctx.badarg());
        }
        elements.push(*field);
        values.push(*value);
    }
    let definition = ctx.tuple(&elements);
    Ok(build(ctx, definition, &values))
}

/// `update(Record, Module, Name, Map)`.
fn update_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(d) = definition(args[0]) else {
        return Err(badrecord(ctx, args[0]));
    };
    if d[0] != args[1] || d[1] != args[2] {
        return Err(badrecord(ctx, args[2]));
    }
    if !args[3].is_map() {
        return Err(ctx.error_with(atoms::BADMAP, args[3]));
    }
    let mut values: Vec<Word> = (0..d.len() - 3)
        .map(|i| args[0].term_field(2 + i))
        .collect();
    for (field, value) in maps::iter(args[3]) {
        match d[3..].iter().position(|f| *f == field) {
            Some(i) => values[i] = value,
            None => return Err(badfield(ctx, d[0], d[1], field)),
        }
    }
    Ok(build(ctx, args[0].term_field(1), &values))
}

/// `get(Field, Record)`.
fn get_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let at = definition(args[1]).and_then(|d| d[3..].iter().position(|f| *f == args[0]));
    match at {
        Some(i) => Ok(args[1].term_field(2 + i)),
        None => Err(ctx.badarg()),
    }
}

/// `get_module(Record)`.
fn get_module_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    definition(args[0])
        .map(|d| d[0])
        .ok_or_else(|| ctx.badarg())
}

/// `get_name(Record)`.
fn get_name_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    definition(args[0])
        .map(|d| d[1])
        .ok_or_else(|| ctx.badarg())
}

/// `get_field_names(Record)`.
fn get_field_names_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match definition(args[0]) {
        Some(d) => Ok(ctx.list(d[3..].iter().copied())),
        None => Err(badrecord(ctx, args[0])),
    }
}

/// `is_exported(Record)`.
fn is_exported_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match definition(args[0]) {
        Some(d) => Ok(d[2]),
        None => Err(badrecord(ctx, args[0])),
    }
}

/// `get_definition(Module, Name)`: `{#{is_exported => Boolean}, [Field | {Field, Default}]}`.
fn get_definition_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let instance = args[0].as_atom().and_then(|m| modules(ctx).current(m));
    let found = instance.as_ref().and_then(|i| {
        let named = |w: &&Word| w.as_tuple().is_some_and(|t| t.first() == Some(&args[1]));
        i.image.lowered.records.iter().find(named)?.as_tuple()
    });
    let Some([_, exported, fields]) = found else {
        return Err(ctx.badarg());
    };
    let mut list = Vec::new();
    for f in text::list_iter(*fields) {
        list.push(match f.as_tuple() {
            Some([name]) => *name,
            _ => f,
        });
    }
    let list = ctx.list(list);
    let options = map_of(ctx, &[("is_exported", *exported)])?;
    Ok(ctx.tuple(&[options, list]))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("records", function, arity, func).releases(ReleaseSpan::since(29))
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("create", 4, create_4),
    row("update", 4, update_4),
    row("get", 2, get_2),
    row("get_module", 1, get_module_1),
    row("get_name", 1, get_name_1),
    row("get_field_names", 1, get_field_names_1),
    row("is_exported", 1, is_exported_1),
    row("get_definition", 2, get_definition_2),
];
