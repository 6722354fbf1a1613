//! `lists`: reverse/2, member/2, keyfind/3, keymember/3, keysearch/3.

use beamr_abi::{Ctx, Escape, NativeClass, NativeEntry, TrapTarget};
use beamr_term::{Build, Word, atoms, order};

use crate::support::{STEP, cost};

/// `lists:reverse(List, Tail)`.
pub fn reverse_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut list, mut tail) = (args[0], args[1]);
    let mut n = 0;
    while let Some((h, t)) = list.as_cons() {
        tail = ctx.cons(h, tail);
        list = t;
        n += 1;
        if n == STEP {
            ctx.bump(cost(n));
            return Err(ctx.trap(TrapTarget::Native(&REVERSE), &[list, tail]));
        }
    }
    ctx.bump(cost(n));
    if list.is_nil() {
        Ok(tail)
    } else {
        Err(ctx.badarg())
    }
}

/// `lists:member(Elem, List)`.
fn member_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (x, mut list) = (args[0], args[1]);
    let tables = ctx.tables();
    let immediate = x.is_immediate();
    let mut n = 0;
    while let Some((h, t)) = list.as_cons() {
        if h == x || (!immediate && !h.is_immediate() && order::eq_exact(h, x, tables)) {
            ctx.bump(cost(n));
            return Ok(Word::TRUE);
        }
        list = t;
        n += 1;
        if n == STEP {
            ctx.bump(cost(n));
            return Err(ctx.trap(TrapTarget::Native(&MEMBER), &[x, list]));
        }
    }
    ctx.bump(cost(n));
    if list.is_nil() {
        Ok(Word::FALSE)
    } else {
        Err(ctx.badarg())
    }
}

/// The walk that the three key functions share: the first tuple whose element `args[1]` compares equal to `args[0]`.
fn key_walk(
    ctx: &mut Ctx,
    args: &[Word],
    this: &'static NativeEntry,
) -> Result<Option<Word>, Escape> {
    let (key, mut list) = (args[0], args[2]);
    let Some(pos) = args[1].as_small().filter(|p| *p >= 1) else {
        return Err(ctx.badarg());
    };
    let tables = ctx.tables();
    let mut n = 0;
    while let Some((h, t)) = list.as_cons() {
        if let Some(elements) = h.as_tuple()
            && let Some(e) = elements.get(pos as usize - 1)
            && (*e == key || order::eq(*e, key, tables))
        {
            ctx.bump(cost(n));
            return Ok(Some(h));
        }
        list = t;
        n += 1;
        if n == STEP {
            ctx.bump(cost(n));
            return Err(ctx.trap(TrapTarget::Native(this), &[key, args[1], list]));
        }
    }
    ctx.bump(cost(n));
    if list.is_nil() {
        Ok(None)
    } else {
        Err(ctx.badarg())
    }
}

/// `lists:keyfind(Key, N, TupleList)`.
fn keyfind_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(key_walk(ctx, args, &KEYFIND)?.unwrap_or(Word::FALSE))
}

/// `lists:keymember(Key, N, TupleList)`.
fn keymember_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(key_walk(ctx, args, &KEYMEMBER)?.is_some()))
}

/// `lists:keysearch(Key, N, TupleList)`.
fn keysearch_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match key_walk(ctx, args, &KEYSEARCH)? {
        Some(t) => Ok(ctx.tuple(&[atoms::VALUE.word(), t])),
        None => Ok(Word::FALSE),
    }
}

const fn row(function: &'static str, arity: u8, func: beamr_abi::NativeFn) -> NativeEntry {
    NativeEntry::new("lists", function, arity, func).class(NativeClass::Traps)
}

static REVERSE: NativeEntry = row("reverse", 2, reverse_2);
static MEMBER: NativeEntry = row("member", 2, member_2);
static KEYFIND: NativeEntry = row("keyfind", 3, keyfind_3);
static KEYMEMBER: NativeEntry = row("keymember", 3, keymember_3);
static KEYSEARCH: NativeEntry = row("keysearch", 3, keysearch_3);

/// The natives of `lists`.
pub const TABLE: &[NativeEntry] = &[
    row("reverse", 2, reverse_2),
    row("member", 2, member_2),
    row("keyfind", 3, keyfind_3),
    row("keymember", 3, keymember_3),
    row("keysearch", 3, keysearch_3),
];
