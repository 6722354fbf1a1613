//! `maps`, and the map natives of `erlang` and `erts_internal`.

use beamr_abi::{Ctx, Escape, NativeClass, NativeEntry, NativeFn, TrapTarget};
use beamr_term::{Build, Subtag, Word, atoms, maps, text};

use crate::support::{STEP, cost, list_items};

fn map_arg(ctx: &mut Ctx, w: Word) -> Result<Word, Escape> {
    if w.is_map() {
        Ok(w)
    } else {
        Err(ctx.error_with(atoms::BADMAP, w))
    }
}

fn badkey(ctx: &mut Ctx, key: Word) -> Escape {
    ctx.error_with(atoms::BADKEY, key)
}

/// `maps:get(Key, Map)` and `map_get(Key, Map)`.
pub fn get_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[1])?;
    maps::get(map, args[0], ctx.tables()).ok_or_else(|| badkey(ctx, args[0]))
}

/// `maps:find(Key, Map)`.
fn find_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[1])?;
    match maps::get(map, args[0], ctx.tables()) {
        Some(v) => Ok(ctx.tuple(&[atoms::OK.word(), v])),
        None => Ok(atoms::ERROR.word()),
    }
}

/// `maps:is_key(Key, Map)` and `is_map_key(Key, Map)`.
fn is_key_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[1])?;
    Ok(Word::boolean(maps::has_key(map, args[0], ctx.tables())))
}

/// `maps:put(Key, Value, Map)`.
fn put_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[2])?;
    let tables = ctx.tables();
    Ok(maps::put(ctx, map, args[0], args[1], tables))
}

/// `maps:update(Key, Value, Map)`.
fn update_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[2])?;
    let tables = ctx.tables();
    match maps::update_exact(ctx, map, args[0], args[1], tables) {
        Some(m) => Ok(m),
        None => Err(badkey(ctx, args[0])),
    }
}

/// `maps:remove(Key, Map)`.
fn remove_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[1])?;
    let tables = ctx.tables();
    Ok(maps::remove(ctx, map, args[0], tables))
}

/// `maps:take(Key, Map)`.
fn take_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[1])?;
    let tables = ctx.tables();
    match maps::take(ctx, map, args[0], tables) {
        Some((rest, value)) => Ok(ctx.tuple(&[value, rest])),
        None => Ok(atoms::ERROR.word()),
    }
}

/// `maps:merge(Map1, Map2)`.
fn merge_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = map_arg(ctx, args[0])?;
    let b = map_arg(ctx, args[1])?;
    let tables = ctx.tables();
    ctx.bump(cost(maps::size(b)));
    Ok(maps::merge(ctx, a, b, tables))
}

/// What a listing of a map has.
const KEYS: i64 = 0;
const VALUES: i64 = 1;
const PAIRS: i64 = 2;

/// A list of what a map has, in front of a tail; long ones from the end, in steps. State: map, pairs left, list so far, what.
fn listing(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (map, mut list) = (args[0], args[2]);
    let (left, what) = (args[1].small_value() as usize, args[3].small_value());
    let start = left.saturating_sub(STEP);
    let pairs: Vec<(Word, Word)> = maps::iter_from(map, start).take(left - start).collect();
    ctx.bump(cost(pairs.len() * 2));
    for (k, v) in pairs.into_iter().rev() {
        let item = match what {
            KEYS => k,
            VALUES => v,
            _ => ctx.tuple(&[k, v]),
        };
        list = ctx.cons(item, list);
    }
    if start == 0 {
        return Ok(list);
    }
    let state = [map, Word::fixnum(start as i64), list, args[3]];
    Err(ctx.trap(TrapTarget::Native(&LISTING), &state))
}

fn list_of(ctx: &mut Ctx, map: Word, left: usize, tail: Word, what: i64) -> Result<Word, Escape> {
    let (left, what) = (Word::fixnum(left as i64), Word::fixnum(what));
    listing(ctx, &[map, left, tail, what])
}

/// `maps:keys(Map)`.
fn keys_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[0])?;
    let size = maps::size(map);
    if size > STEP {
        return list_of(ctx, map, size, Word::NIL, KEYS);
    }
    ctx.bump(cost(size));
    Ok(maps::keys(ctx, map))
}

/// `maps:values(Map)`.
fn values_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[0])?;
    let size = maps::size(map);
    if size > STEP {
        return list_of(ctx, map, size, Word::NIL, VALUES);
    }
    ctx.bump(cost(size));
    Ok(maps::values(ctx, map))
}

/// `maps:from_list([{Key, Value}])`; later pairs win.
fn from_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let items = list_items(ctx, args[0])?;
    let mut pairs = Vec::with_capacity(items.len());
    for item in items {
        match item.as_tuple() {
            Some([k, v]) => pairs.push((*k, *v)),
            _ => return Err(ctx.badarg()),
        }
    }
    let tables = ctx.tables();
    ctx.bump(cost(pairs.len() * 4));
    Ok(maps::from_pairs(ctx, &pairs, tables))
}

/// `maps:from_keys(Keys, Value)`.
fn from_keys_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let pairs: Vec<(Word, Word)> = list_items(ctx, args[0])?
        .into_iter()
        .map(|k| (k, args[1]))
        .collect();
    let tables = ctx.tables();
    ctx.bump(cost(pairs.len() * 4));
    Ok(maps::from_pairs(ctx, &pairs, tables))
}

/// `map_size(Map)`.
fn map_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let map = map_arg(ctx, args[0])?;
    Ok(Word::fixnum(maps::size(map) as i64))
}

/// Pairs that one call of `map_next` gives.
const NEXT_STEP: usize = 30;

/// `erts_internal:map_next(Path, Map, iterator | List)`: the pairs from position `Path` on, as nested
/// `{K, V, Next}` or in front of a list; what is left is `[Path | Map]`. Since 26 the path of an iterator may be the list of keys that
/// are wanted, which are given at once.
fn map_next_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_list() && ctx.tables().release.0 >= 26 {
        return next_of_keys(ctx, args[0], args[1], args[2]);
    }
    let (Some(path), true) = (args[0].as_small(), args[1].is_map()) else {
        return Err(ctx.badarg());
    };
    let (map, size) = (args[1], maps::size(args[1]));
    if path < 0 || path as usize > size {
        return Err(ctx.badarg());
    }
    let start = path as usize;
    let as_list = args[2].is_list();
    if !as_list
        && args[2]
            .as_atom()
            .is_none_or(|a| ctx.tables().atoms.text(a) != "iterator")
    {
        return Err(ctx.badarg());
    }
    if as_list && start == 0 {
        return list_of(ctx, map, size, args[2], PAIRS);
    }
    let pairs: Vec<(Word, Word)> = maps::iter_from(map, start)
        .take(if as_list { size } else { NEXT_STEP })
        .collect();
    ctx.bump(cost(pairs.len() * 2));
    let end = start + pairs.len();
    if as_list {
        let mut l = args[2];
        for (k, v) in pairs.into_iter().rev() {
            let pair = ctx.tuple(&[k, v]);
            l = ctx.cons(pair, l);
        }
        return Ok(l);
    }
    let mut next = if end == size {
        atoms::NONE.word()
    } else {
        ctx.cons(Word::fixnum(end as i64), map)
    };
    for (k, v) in pairs.into_iter().rev() {
        next = ctx.tuple(&[k, v, next]);
    }
    Ok(next)
}

/// `map_next` for a list of keys, all of which the map must have.
fn next_of_keys(ctx: &mut Ctx, keys: Word, map: Word, kind: Word) -> Result<Word, Escape> {
    let tables = ctx.tables();
    let wanted = kind
        .as_atom()
        .is_some_and(|a| tables.atoms.text(a) == "iterator");
    let keys = text::list_to_vec(keys).filter(|_| wanted && map.is_map());
    let pairs: Option<Vec<(Word, Word)>> = keys.and_then(|keys| {
        keys.into_iter()
            .map(|k| Some((k, maps::get(map, k, tables)?)))
            .collect()
    });
    let Some(pairs) = pairs else {
        return Err(ctx.badarg());
    };
    ctx.bump(cost(pairs.len() * 2));
    let mut next = atoms::NONE.word();
    for (k, v) in pairs.into_iter().rev() {
        next = ctx.tuple(&[k, v, next]);
    }
    Ok(next)
}

/// `erts_internal:map_to_tuple_keys(Map)`: the keys of a flat map in their order.
fn map_to_tuple_keys_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].subtag() {
        Some(Subtag::FlatMap) => Ok(args[0].term_field(1)),
        Some(Subtag::HashMap) => Err(ctx.badarg()),
        _ => Err(ctx.error_with(atoms::BADMAP, args[0])),
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("maps", function, arity, func)
}

static LISTING: NativeEntry =
    NativeEntry::new("maps", "keys", 4, listing).class(NativeClass::Traps);

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("find", 2, find_2),
    row("from_keys", 2, from_keys_2),
    row("from_list", 1, from_list_1),
    row("get", 2, get_2),
    row("is_key", 2, is_key_2),
    row("keys", 1, keys_1).class(NativeClass::Traps),
    row("merge", 2, merge_2),
    row("put", 3, put_3),
    row("remove", 2, remove_2),
    row("take", 2, take_2),
    row("update", 3, update_3),
    row("values", 1, values_1).class(NativeClass::Traps),
    NativeEntry::new("erlang", "map_get", 2, get_2),
    NativeEntry::new("erlang", "is_map_key", 2, is_key_2),
    NativeEntry::new("erlang", "map_size", 1, map_size_1),
    NativeEntry::new("erts_internal", "map_next", 3, map_next_3).class(NativeClass::Traps),
    NativeEntry::new("erts_internal", "map_to_tuple_keys", 1, map_to_tuple_keys_1),
];
