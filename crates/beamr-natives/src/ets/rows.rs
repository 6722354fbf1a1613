//! Rows of `ets` tables one by one, and walking by key.

use beamr_abi::{Ctx, Escape};
use beamr_term::copy::{CopyMode, copy};
use beamr_term::{Build, Word, atoms, order};
use beamr_vm::ets::{Deleted, Key, RowData, Store, Table};

use super::{Problem, readable, still_there, writable};
use crate::support::cost;

/// A tuple that is long enough for a table's key.
fn fits(w: Word, table: &Table) -> bool {
    w.as_tuple().is_some_and(|t| t.len() > table.keypos())
}

enum Objects {
    One(Word),
    Many(Vec<Word>),
}

/// The argument of `insert`: one tuple, or a list.
fn objects(ctx: &mut Ctx, w: Word, table: &Table) -> Result<Objects, Escape> {
    if fits(w, table) {
        return Ok(Objects::One(w));
    }
    let mut items = Vec::new();
    let mut l = w;
    while let Some((h, t)) = l.as_cons() {
        if !fits(h, table) {
            return Err(ctx.badarg());
        }
        items.push(h);
        l = t;
    }
    if !l.is_nil() {
        return Err(ctx.badarg());
    }
    ctx.bump(items.len() as i64);
    Ok(match items[..] {
        [one] => Objects::One(one),
        _ => Objects::Many(items),
    })
}

/// `ets:insert(Table, ObjectOrObjects)`.
pub(super) fn insert_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let done = match objects(ctx, args[1], &t)? {
        Objects::One(w) => t.insert(w),
        Objects::Many(all) => t.insert_all(&all, false).map(|_| ()),
    };
    match done {
        Ok(()) => Ok(Word::TRUE),
        Err(Deleted) => Err(Problem::Id.raise(ctx)),
    }
}

/// `ets:insert_new(Table, ObjectOrObjects)`.
pub(super) fn insert_new_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let done = match objects(ctx, args[1], &t)? {
        Objects::One(w) => t.insert_new(w),
        Objects::Many(all) => t.insert_all(&all, true),
    };
    match done {
        Ok(b) => Ok(Word::boolean(b)),
        Err(Deleted) => Err(Problem::Id.raise(ctx)),
    }
}

/// The rows of a key as a list, the oldest first.
fn lookup(ctx: &mut Ctx, t: &Table, key: Word) -> Word {
    let mut list = Word::NIL;
    let mut words = 0;
    t.lookup(key, |row| {
        words += row.words();
        let copy = row.copy_to(ctx);
        list = ctx.cons(copy, list);
    });
    ctx.bump(cost(words));
    list
}

/// `ets:lookup(Table, Key)`.
pub(super) fn lookup_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let list = lookup(ctx, &t, args[1]);
    if list.is_nil() {
        still_there(ctx, &t)?;
    }
    Ok(list)
}

fn lookup_element(ctx: &mut Ctx, args: &[Word]) -> Result<Option<Word>, Escape> {
    let t = readable(ctx, args[0])?;
    let Some(pos) = args[2].as_small().filter(|p| *p >= 1) else {
        return Err(ctx.badarg());
    };
    let i = pos as usize - 1;
    let (mut found, mut short) = (false, false);
    let mut value = Word::NIL;
    let bag = t.is_bag();
    t.lookup(args[1], |row| {
        found = true;
        if i >= row.arity() {
            short = true;
            return;
        }
        let e = copy(row.element(i), ctx, CopyMode::Share);
        value = if bag { ctx.cons(e, value) } else { e };
    });
    if short {
        return Err(ctx.badarg());
    }
    if !found {
        still_there(ctx, &t)?;
    }
    Ok(found.then_some(value))
}

/// `ets:lookup_element(Table, Key, Pos)`.
pub(super) fn lookup_element_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match lookup_element(ctx, args)? {
        Some(w) => Ok(w),
        None => Err(ctx.badarg_because(atoms::BADKEY)),
    }
}

/// `ets:lookup_element(Table, Key, Pos, Default)`.
pub(super) fn lookup_element_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(lookup_element(ctx, args)?.unwrap_or(args[3]))
}

/// `ets:member(Table, Key)`.
pub(super) fn member_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let member = t.member(args[1]);
    if !member {
        still_there(ctx, &t)?;
    }
    Ok(Word::boolean(member))
}

/// `ets:take(Table, Key)`.
pub(super) fn take_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let gone = t.take(args[1], |_| true);
    if gone.is_empty() {
        still_there(ctx, &t)?;
    }
    let mut list = Word::NIL;
    for row in &gone {
        let copy = row.copy_to(ctx);
        list = ctx.cons(copy, list);
    }
    ctx.bump(gone.len() as i64 / 4);
    Ok(list)
}

/// `ets:delete(Table, Key)`.
pub(super) fn delete_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let gone = t.take(args[1], |_| true);
    ctx.bump(gone.len() as i64 / 4);
    Ok(Word::TRUE)
}

/// `ets:delete_object(Table, Object)`.
pub(super) fn delete_object_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    if !fits(args[1], &t) {
        return Err(ctx.badarg());
    }
    let tables = ctx.tables();
    let key = args[1].term_field(t.keypos() + 1);
    drop(t.take(key, |row| order::eq_exact(row.tuple(), args[1], tables)));
    Ok(Word::TRUE)
}

// ---- by key

/// Shows the first row of a table (or the last, which makes a difference in ordered ones only).
fn edge<T>(t: &Table, last: bool, f: impl FnOnce(&RowData) -> T) -> Option<T> {
    match &t.store {
        Store::Hash(h) => h.first_from(0, f),
        Store::Ordered(o) => o.read().next(None, last).map(f),
    }
}

/// Shows the row after those of a key. The error is that there is no such key (and never was while the table was fixed).
fn after<T>(
    t: &Table,
    key: Word,
    down: bool,
    f: impl FnOnce(&RowData) -> T,
) -> Result<Option<T>, ()> {
    match &t.store {
        Store::Hash(h) => {
            let (found, value) = h.behind(key, &t.tables, f);
            if found || t.is_ghost(key) {
                Ok(value)
            } else {
                Err(())
            }
        }
        Store::Ordered(_) if key == atoms::END_OF_TABLE.word() => Err(()),
        Store::Ordered(o) => Ok(o.read().next(Some(Key::new(key, &t.tables)), down).map(f)),
    }
}

fn key_copy(ctx: &mut Ctx, t: &Table, row: &RowData) -> Word {
    copy(row.element(t.keypos()), ctx, CopyMode::Share)
}

fn or_end(ctx: &mut Ctx, t: &Table, w: Option<Word>) -> Result<Word, Escape> {
    match w {
        Some(w) => Ok(w),
        None => {
            still_there(ctx, t)?;
            Ok(atoms::END_OF_TABLE.word())
        }
    }
}

/// `ets:first(Table)`.
pub(super) fn first_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let key = edge(&t, false, |row| key_copy(ctx, &t, row));
    or_end(ctx, &t, key)
}

/// `ets:last(Table)`.
pub(super) fn last_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let key = edge(&t, true, |row| key_copy(ctx, &t, row));
    or_end(ctx, &t, key)
}

/// `ets:next(Table, Key)`.
pub(super) fn next_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    match after(&t, args[1], false, |row| key_copy(ctx, &t, row)) {
        Ok(key) => or_end(ctx, &t, key),
        Err(()) => Err(ctx.badarg()),
    }
}

/// `ets:prev(Table, Key)`.
pub(super) fn prev_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    match after(&t, args[1], true, |row| key_copy(ctx, &t, row)) {
        Ok(key) => or_end(ctx, &t, key),
        Err(()) => Err(ctx.badarg()),
    }
}

/// `{Key, Objects}` for the key of a row that was found.
fn with_objects(ctx: &mut Ctx, t: &Table, key: Option<Word>) -> Word {
    match key {
        None => atoms::END_OF_TABLE.word(),
        Some(key) => {
            let objects = lookup(ctx, t, key);
            ctx.tuple(&[key, objects])
        }
    }
}

/// `ets:first_lookup(Table)`.
pub(super) fn first_lookup_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let key = edge(&t, false, |row| key_copy(ctx, &t, row));
    Ok(with_objects(ctx, &t, key))
}

/// `ets:last_lookup(Table)`.
pub(super) fn last_lookup_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let key = edge(&t, true, |row| key_copy(ctx, &t, row));
    Ok(with_objects(ctx, &t, key))
}

/// `ets:next_lookup(Table, Key)`.
pub(super) fn next_lookup_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    match after(&t, args[1], false, |row| key_copy(ctx, &t, row)) {
        Ok(key) => Ok(with_objects(ctx, &t, key)),
        Err(()) => Err(ctx.badarg()),
    }
}

/// `ets:prev_lookup(Table, Key)`.
pub(super) fn prev_lookup_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    match after(&t, args[1], true, |row| key_copy(ctx, &t, row)) {
        Ok(key) => Ok(with_objects(ctx, &t, key)),
        Err(()) => Err(ctx.badarg()),
    }
}

/// `ets:slot(Table, I)`.
pub(super) fn slot_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let Some(n) = args[1].as_small().and_then(|n| usize::try_from(n).ok()) else {
        return Err(ctx.badarg());
    };
    let mut list = Word::NIL;
    let (found, slots) = match &t.store {
        Store::Hash(h) => {
            let found = h.bucket(n, |row| {
                let copy = row.copy_to(ctx);
                list = ctx.cons(copy, list);
            });
            (found, if found { 0 } else { h.buckets() })
        }
        Store::Ordered(o) => {
            let rows = o.read();
            let copied = rows.nth(n).map(|row| row.copy_to(ctx));
            if let Some(w) = copied {
                list = ctx.cons(w, list);
            }
            (copied.is_some(), rows.len())
        }
    };
    if found {
        Ok(list)
    } else if n == slots {
        Ok(atoms::END_OF_TABLE.word())
    } else {
        Err(ctx.badarg())
    }
}
