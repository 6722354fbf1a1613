//! `persistent_term`: terms that every process reads without a copy.
//!
//! Key and value lie in a literal area of their own. A term that is replaced or erased may still be in heaps and messages: they
//! are made to copy it, then its area is freed ([`Vm::give_up`](beamr_vm::vm::Vm::give_up)).

use std::collections::HashMap;
use std::sync::RwLock;

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::{Build, LiteralArea, Word, atoms, hash, order};
use beamr_vm::process::{slot_of, vm_of};
use beamr_vm::registry;
use beamr_vm::vm::Sought;

use super::erlang::system::map_of;

/// A term: `{Key, Value}` in its area.
struct Entry {
    key: Word,
    value: Word,
    area: LiteralArea,
}

// SAFETY: the words point into the entry's own area, which is immutable.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// The terms of a VM, by namespace and hash of the key.
#[derive(Default)]
struct Terms(RwLock<Inner>);

#[derive(Default)]
struct Inner {
    map: HashMap<(u32, u64), Vec<Entry>>,
}

fn terms(ctx: &Ctx) -> std::sync::Arc<Terms> {
    vm_of(ctx).extensions.get_or_init(Terms::default)
}

fn slot_key(ctx: &Ctx, key: Word) -> (u32, u64) {
    let h = hash::internal_hash(key, 0, ctx.tables());
    (slot_of(ctx).namespace.id, h)
}

fn find(ctx: &Ctx, key: Word) -> Option<Word> {
    let at = slot_key(ctx, key);
    let t = terms(ctx);
    let inner = t.0.read().unwrap_or_else(|e| e.into_inner());
    let tables = ctx.tables();
    inner
        .map
        .get(&at)?
        .iter()
        .find(|e| order::eq_exact(e.key, key, tables))
        .map(|e| e.value)
}

/// What `store` does with a key that is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existing {
    Replace,
    Refuse,
}

fn store(ctx: &mut Ctx, key: Word, value: Word, existing: Existing) -> Result<Word, Escape> {
    let at = slot_key(ctx, key);
    let t = terms(ctx);
    let tables = ctx.tables();
    let copies = [key, value].map(|t| Copying::sharing(t, CopyMode::All));
    let words: usize = copies.iter().map(Copying::words).sum();
    let mut gone = None;
    let mut guard = t.0.write().unwrap_or_else(|e| e.into_inner());
    let inner = &mut *guard;
    let list = inner.map.entry(at).or_default();
    let before = list
        .iter()
        .position(|e| order::eq_exact(e.key, key, tables));
    if let Some(i) = before {
        if order::eq_exact(list[i].value, value, tables) {
            return Ok(atoms::OK.word());
        }
        if existing == Existing::Refuse {
            return Err(ctx.badarg());
        }
    }
    let Ok(mut builder) = LiteralArea::builder(words) else {
        return Err(ctx.system_limit());
    };
    ctx.bump(words as i64 / 16);
    let [key, value] = copies.map(|c| c.make(&mut builder));
    let entry = Entry {
        key,
        value,
        area: builder.finish(),
    };
    match before {
        Some(i) => gone = Some(std::mem::replace(&mut list[i], entry).area),
        None => list.push(entry),
    }
    drop(guard);
    if let Some(area) = gone {
        vm_of(ctx).give_up(area);
    }
    Ok(atoms::OK.word())
}

/// `put(Key, Value)`.
fn put_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    store(ctx, args[0], args[1], Existing::Replace)
}
/// `put_new(Key, Value)`: `badarg` when another value is there.
fn put_new_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    store(ctx, args[0], args[1], Existing::Refuse)
}
/// `get(Key)`.
fn get_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if let Some(w) = find(ctx, args[0]) {
        return Ok(w);
    }
    // It may be the term of a server which is being started.
    if let Some(name) = args[0].as_atom()
        && registry::is_starting(ctx, name, Sought::Belonging)
    {
        return Err(registry::wait_for_start(ctx, name, Sought::Belonging));
    }
    find(ctx, args[0]).ok_or_else(|| ctx.badarg())
}
/// `get(Key, Default)`.
fn get_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(find(ctx, args[0]).unwrap_or(args[1]))
}
/// `get()`.
fn get_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let namespace = slot_of(ctx).namespace.id;
    let t = terms(ctx);
    let inner = t.0.read().unwrap_or_else(|e| e.into_inner());
    let mut all: Vec<(Word, Word)> = inner
        .map
        .iter()
        .filter(|e| e.0.0 == namespace)
        .flat_map(|e| e.1)
        .map(|e| (e.key, e.value))
        .collect();
    drop(inner);
    let tables = ctx.tables();
    all.sort_by(|a, b| order::compare(a.0, b.0, tables));
    let mut list = Word::NIL;
    for (k, v) in all.into_iter().rev() {
        let p = ctx.tuple(&[k, v]);
        list = ctx.cons(p, list);
    }
    Ok(list)
}
/// `erase(Key)`: whether it was there.
fn erase_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let at = slot_key(ctx, args[0]);
    let t = terms(ctx);
    let tables = ctx.tables();
    let mut guard = t.0.write().unwrap_or_else(|e| e.into_inner());
    let inner = &mut *guard;
    let Some(list) = inner.map.get_mut(&at) else {
        return Ok(Word::FALSE);
    };
    let Some(i) = list
        .iter()
        .position(|e| order::eq_exact(e.key, args[0], tables))
    else {
        return Ok(Word::FALSE);
    };
    let gone = list.swap_remove(i).area;
    if list.is_empty() {
        inner.map.remove(&at);
    }
    drop(guard);
    vm_of(ctx).give_up(gone);
    Ok(Word::TRUE)
}
/// How many terms there are in the namespace of the running process.
pub fn count(ctx: &Ctx) -> usize {
    let namespace = slot_of(ctx).namespace.id;
    let t = terms(ctx);
    let inner = t.0.read().unwrap_or_else(|e| e.into_inner());
    let all = inner.map.iter().filter(|e| e.0.0 == namespace);
    all.map(|e| e.1.len()).sum()
}

/// `info()`.
fn info_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let namespace = slot_of(ctx).namespace.id;
    let t = terms(ctx);
    let (count, bytes) = {
        let inner = t.0.read().unwrap_or_else(|e| e.into_inner());
        let all = inner
            .map
            .iter()
            .filter(|e| e.0.0 == namespace)
            .flat_map(|e| e.1);
        all.fold((0, 0), |(n, b), e| (n + 1, b + e.area.used() * 8 + 48))
    };
    map_of(
        ctx,
        &[
            ("count", Word::fixnum(count)),
            ("memory", Word::fixnum(bytes as i64)),
        ],
    )
}
/// `erts_internal:erase_persistent_terms()`.
fn erase_all_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let namespace = slot_of(ctx).namespace.id;
    let t = terms(ctx);
    let mut gone = Vec::new();
    let mut inner = t.0.write().unwrap_or_else(|e| e.into_inner());
    let keys: Vec<(u32, u64)> = inner
        .map
        .keys()
        .filter(|k| k.0 == namespace)
        .copied()
        .collect();
    for k in keys {
        for e in inner.map.remove(&k).into_iter().flatten() {
            gone.push(e.area);
        }
    }
    drop(inner);
    for area in gone {
        vm_of(ctx).give_up(area);
    }
    Ok(atoms::OK.word())
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("persistent_term", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("put", 2, put_2),
    row("put_new", 2, put_new_2).releases(ReleaseSpan::since(28)),
    row("get", 0, get_0),
    row("get", 1, get_1),
    row("get", 2, get_2),
    row("erase", 1, erase_1),
    row("info", 0, info_0),
    NativeEntry::new("erts_internal", "erase_persistent_terms", 0, erase_all_0)
        .needs(Capability::ProcessLocal),
];
