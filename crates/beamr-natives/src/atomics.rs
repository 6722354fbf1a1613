//! `atomics`, and `counters` through `erts_internal`: arrays of 64-bit integers behind magic references.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::arith::Int;
use beamr_term::{Build, Subtag, Word, atoms, maps};
use beamr_vm::process::{has_room, vm_of, worker};

use crate::resources;

/// An atomics array.
struct Atomics {
    cells: Box<[AtomicI64]>,
    signed: bool,
}

/// A counters array with a row for every worker, so that they do not write to the same places; a counter's value is the sum
/// of its column.
struct Counters {
    cells: Box<[AtomicI64]>,
    size: usize,
    /// Cells from row to row.
    stride: usize,
}

impl Counters {
    fn column(&self, i: usize) -> impl Iterator<Item = &AtomicI64> {
        self.cells[i..].iter().step_by(self.stride)
    }
}

fn cells(ctx: &Ctx, n: i64) -> Option<Box<[AtomicI64]>> {
    let n = usize::try_from(n).ok().filter(|n| *n > 0 && *n < 1 << 40)?;
    if !has_room(ctx, n * 8) {
        return None;
    }
    let mut v = Vec::new();
    v.try_reserve_exact(n).ok()?;
    v.resize_with(n, || AtomicI64::new(0));
    Some(v.into_boxed_slice())
}

/// `erts_internal:atomics_new(Arity, Options)`; bit 0 of the options is `signed`.
fn atomics_new_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = size_argument(ctx, args[0])?;
    let Some(options) = args[1].as_small() else {
        return Err(ctx.badarg());
    };
    match cells(ctx, n) {
        Some(cells) => Ok(resources::new(
            ctx,
            Atomics {
                cells,
                signed: options & 1 != 0,
            },
        )),
        None => Err(ctx.system_limit()),
    }
}

fn cell<'a>(ctx: &mut Ctx, r: Word, index: Word) -> Result<(&'a AtomicI64, bool), Escape> {
    let found = resources::get::<Atomics>(r)
        .zip(index.as_small())
        .and_then(|(a, i)| {
            Some((
                a.cells.get(usize::try_from(i).ok()?.checked_sub(1)?)?,
                a.signed,
            ))
        });
    found.ok_or_else(|| ctx.badarg())
}

/// An integer that fits 64 bits of the array's kind.
fn value(ctx: &mut Ctx, w: Word, signed: bool) -> Result<i64, Escape> {
    let mut buffer = 0;
    let v = Int::of(w, &mut buffer).and_then(|i| {
        if signed {
            i.to_i64()
        } else {
            match *i.magnitude {
                [] => Some(0),
                [m] if !i.negative => Some(m as i64),
                _ => None,
            }
        }
    });
    v.ok_or_else(|| ctx.badarg())
}

/// An increment: any integer that fits 64 bits, signed or not.
fn increment(ctx: &mut Ctx, w: Word) -> Result<i64, Escape> {
    let mut buffer = 0;
    let v = Int::of(w, &mut buffer).and_then(|i| match *i.magnitude {
        [m] if !i.negative => Some(m as i64),
        _ => i.to_i64(),
    });
    v.ok_or_else(|| ctx.badarg())
}

fn word(ctx: &mut Ctx, v: i64, signed: bool) -> Word {
    if signed {
        ctx.integer(v)
    } else {
        ctx.unsigned(v as u64)
    }
}

/// `atomics:put(Ref, Index, Value)`.
fn put_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, signed) = cell(ctx, args[0], args[1])?;
    c.store(value(ctx, args[2], signed)?, SeqCst);
    Ok(atoms::OK.word())
}

/// `atomics:get(Ref, Index)`.
fn get_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, signed) = cell(ctx, args[0], args[1])?;
    Ok(word(ctx, c.load(SeqCst), signed))
}

/// `atomics:add(Ref, Index, Increment)`.
fn add_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, _) = cell(ctx, args[0], args[1])?;
    c.fetch_add(increment(ctx, args[2])?, SeqCst);
    Ok(atoms::OK.word())
}

/// `atomics:add_get(Ref, Index, Increment)`.
fn add_get_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, signed) = cell(ctx, args[0], args[1])?;
    let n = increment(ctx, args[2])?;
    let old = c.fetch_add(n, SeqCst);
    Ok(word(ctx, old.wrapping_add(n), signed))
}

/// `atomics:exchange(Ref, Index, Desired)`.
fn exchange_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, signed) = cell(ctx, args[0], args[1])?;
    let old = c.swap(value(ctx, args[2], signed)?, SeqCst);
    Ok(word(ctx, old, signed))
}

/// `atomics:compare_exchange(Ref, Index, Expected, Desired)`: `ok` or the actual value.
fn compare_exchange_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, signed) = cell(ctx, args[0], args[1])?;
    let (expected, desired) = (value(ctx, args[2], signed)?, value(ctx, args[3], signed)?);
    match c.compare_exchange(expected, desired, SeqCst, SeqCst) {
        Ok(_) => Ok(atoms::OK.word()),
        Err(actual) => Ok(word(ctx, actual, signed)),
    }
}

fn info_map(ctx: &mut Ctx, pairs: &[(&str, Word)]) -> Result<Word, Escape> {
    let mut all = Vec::new();
    for (k, v) in pairs {
        all.push((ctx.atom(k)?, *v));
    }
    let tables = ctx.tables();
    Ok(maps::from_pairs(ctx, &all, tables))
}

/// `atomics:info(Ref)`.
fn info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(a) = resources::get::<Atomics>(args[0]) else {
        return Err(ctx.badarg());
    };
    let (max, min) = if a.signed {
        (ctx.integer(i64::MAX), ctx.integer(i64::MIN))
    } else {
        (ctx.unsigned(u64::MAX), Word::fixnum(0))
    };
    let n = a.cells.len() as i64;
    info_map(
        ctx,
        &[
            ("size", Word::fixnum(n)),
            ("max", max),
            ("min", min),
            ("memory", Word::fixnum(n * 8 + 40)),
        ],
    )
}

/// `erts_internal:counters_new(Size)`.
fn counters_new_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = size_argument(ctx, args[0])?;
    let rows = vm_of(ctx).worker_count().max(1) + 1;
    // Rows begin on cache lines of their own.
    let stride = (n as usize).next_multiple_of(8);
    let all = i64::try_from(stride)
        .ok()
        .and_then(|s| s.checked_mul(rows as i64));
    match all.and_then(|n| cells(ctx, n)) {
        Some(cells) => Ok(resources::new(
            ctx,
            Counters {
                cells,
                size: n as usize,
                stride,
            },
        )),
        None => Err(ctx.system_limit()),
    }
}

/// How many cells are asked for: `badarg` when that is no positive number, `system_limit` when it is huge.
fn size_argument(ctx: &mut Ctx, w: Word) -> Result<i64, Escape> {
    match w.as_small() {
        Some(n) if n > 0 => Ok(n),
        None if w.is_big() && w.subtag() == Some(Subtag::PosBig) => Err(ctx.system_limit()),
        _ => Err(ctx.badarg()),
    }
}

fn counter<'a>(ctx: &mut Ctx, r: Word, index: Word) -> Result<(&'a Counters, usize), Escape> {
    let found = resources::get::<Counters>(r)
        .zip(index.as_small())
        .and_then(|(c, i)| {
            let i = usize::try_from(i).ok()?.checked_sub(1)?;
            (i < c.size).then_some((c, i))
        });
    found.ok_or_else(|| ctx.badarg())
}

/// `erts_internal:counters_get(Ref, Index)`.
fn counters_get_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, i) = counter(ctx, args[0], args[1])?;
    let v = c
        .column(i)
        .fold(0i64, |sum, c| sum.wrapping_add(c.load(SeqCst)));
    Ok(ctx.integer(v))
}

/// `erts_internal:counters_add(Ref, Index, Increment)`.
fn counters_add_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, i) = counter(ctx, args[0], args[1])?;
    let n = increment(ctx, args[2])?;
    let row = worker(ctx).index.map_or(0, |w| w + 1);
    c.cells[row * c.stride + i].fetch_add(n, SeqCst);
    Ok(atoms::OK.word())
}

/// `erts_internal:counters_put(Ref, Index, Value)`: as in OTP, what is added at the same time may be lost or stay.
fn counters_put_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (c, i) = counter(ctx, args[0], args[1])?;
    let v = value(ctx, args[2], true)?;
    let mut rows = c.column(i);
    if let Some(first) = rows.next() {
        first.store(v, SeqCst);
    }
    for c in rows {
        c.store(0, SeqCst);
    }
    Ok(atoms::OK.word())
}

/// `erts_internal:counters_info(Ref)`.
fn counters_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(c) = resources::get::<Counters>(args[0]) else {
        return Err(ctx.badarg());
    };
    info_map(
        ctx,
        &[
            ("size", Word::fixnum(c.size as i64)),
            ("memory", Word::fixnum(c.cells.len() as i64 * 8 + 40)),
        ],
    )
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("atomics", function, arity, func)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("put", 3, put_3),
    row("get", 2, get_2),
    row("add", 3, add_3),
    row("add_get", 3, add_get_3),
    row("exchange", 3, exchange_3),
    row("compare_exchange", 4, compare_exchange_4),
    row("info", 1, info_1),
    internal("atomics_new", 2, atomics_new_2),
    internal("counters_new", 1, counters_new_1),
    internal("counters_get", 2, counters_get_2),
    internal("counters_add", 3, counters_add_3),
    internal("counters_put", 3, counters_put_3),
    internal("counters_info", 1, counters_info_1),
];
