//! `erlang`: natives on tuples.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Build, Word, empty_tuple};
use beamr_vm::process::has_room;

use crate::support::{cost, list_items};

/// The largest arity of a tuple (OTP: 2^24 - 1).
pub const MAX_ARITY: i64 = (1 << 24) - 1;

fn make(ctx: &mut Ctx, elements: &[Word]) -> Word {
    if elements.is_empty() {
        empty_tuple()
    } else {
        ctx.tuple(elements)
    }
}

/// `element(N, Tuple)`.
fn element_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = args[0].as_small().unwrap_or(0);
    match args[1].as_tuple() {
        Some(t) if n >= 1 && n as u64 <= t.len() as u64 => Ok(t[n as usize - 1]),
        _ => Err(ctx.badarg()),
    }
}

/// `setelement(N, Tuple, Value)`.
fn setelement_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = args[0].as_small().unwrap_or(0);
    match args[1].as_tuple() {
        Some(t) if n >= 1 && n as u64 <= t.len() as u64 => {
            let new = ctx.tuple(t);
            // SAFETY: the fresh tuple has element n.
            unsafe { *new.ptr().add(n as usize) = args[2].bits() };
            ctx.bump(cost(t.len()));
            Ok(new)
        }
        _ => Err(ctx.badarg()),
    }
}

/// `tuple_size(Tuple)`.
fn tuple_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_tuple() {
        Some(t) => Ok(Word::fixnum(t.len() as i64)),
        None => Err(ctx.badarg()),
    }
}

/// `tuple_to_list(Tuple)`.
fn tuple_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_tuple() {
        Some(t) => {
            ctx.bump(cost(t.len()));
            Ok(ctx.list(t.iter().copied()))
        }
        None => Err(ctx.badarg()),
    }
}

/// `list_to_tuple(List)`.
fn list_to_tuple_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let items = list_items(ctx, args[0])?;
    if items.len() as i64 > MAX_ARITY {
        return Err(ctx.badarg());
    }
    Ok(make(ctx, &items))
}

fn arity_argument(ctx: &mut Ctx, w: Word) -> Result<usize, Escape> {
    match w.as_small() {
        Some(n) if (0..=MAX_ARITY).contains(&n) => {
            if has_room(ctx, n as usize * 8) {
                Ok(n as usize)
            } else {
                Err(ctx.system_limit())
            }
        }
        _ => Err(ctx.badarg()),
    }
}

/// `make_tuple(Arity, Initial)`.
fn make_tuple_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = arity_argument(ctx, args[0])?;
    ctx.bump(cost(n));
    Ok(make(ctx, &vec![args[1]; n]))
}

/// `make_tuple(Arity, Default, [{Position, Term}])`.
fn make_tuple_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = arity_argument(ctx, args[0])?;
    let mut elements = vec![args[1]; n];
    for pair in list_items(ctx, args[2])? {
        match pair.as_tuple() {
            Some([p, value]) => match p.as_small() {
                Some(p) if p >= 1 && p as usize <= n => elements[p as usize - 1] = *value,
                _ => return Err(ctx.badarg()),
            },
            _ => return Err(ctx.badarg()),
        }
    }
    Ok(make(ctx, &elements))
}

/// `append_element(Tuple, Term)`.
fn append_element_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(t) = args[0].as_tuple().filter(|t| (t.len() as i64) < MAX_ARITY) else {
        return Err(ctx.badarg());
    };
    let mut elements = Vec::with_capacity(t.len() + 1);
    elements.extend_from_slice(t);
    elements.push(args[1]);
    Ok(ctx.tuple(&elements))
}

/// `insert_element(Index, Tuple, Term)`.
fn insert_element_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = args[0].as_small().unwrap_or(0);
    match args[1].as_tuple() {
        Some(t) if n >= 1 && n as u64 <= t.len() as u64 + 1 && (t.len() as i64) < MAX_ARITY => {
            let mut elements = t.to_vec();
            elements.insert(n as usize - 1, args[2]);
            Ok(ctx.tuple(&elements))
        }
        _ => Err(ctx.badarg()),
    }
}

/// `delete_element(Index, Tuple)`.
fn delete_element_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = args[0].as_small().unwrap_or(0);
    match args[1].as_tuple() {
        Some(t) if n >= 1 && n as u64 <= t.len() as u64 => {
            let mut elements = t.to_vec();
            elements.remove(n as usize - 1);
            Ok(make(ctx, &elements))
        }
        _ => Err(ctx.badarg()),
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("element", 2, element_2),
    row("setelement", 3, setelement_3),
    row("tuple_size", 1, tuple_size_1),
    row("tuple_to_list", 1, tuple_to_list_1),
    row("list_to_tuple", 1, list_to_tuple_1),
    row("make_tuple", 2, make_tuple_2),
    row("make_tuple", 3, make_tuple_3),
    row("append_element", 2, append_element_2),
    row("insert_element", 3, insert_element_3),
    row("delete_element", 2, delete_element_2),
];
