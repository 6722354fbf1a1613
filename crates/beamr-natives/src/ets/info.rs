//! `ets:info/1,2`.

use beamr_abi::{Ctx, Escape, TrapTarget};
use beamr_term::{Build, Word, atoms};
use beamr_vm::ets::{Protection, Store, Table, TableKind, WriteConcurrency};

use super::{Problem, find, readable, reference};

/// The items of `info/1`, the last first.
const ITEMS: &[&str] = &[
    "protection",
    "keypos",
    "type",
    "named_table",
    "node",
    "size",
    "name",
    "heir",
    "owner",
    "memory",
    "compressed",
    "write_concurrency",
    "read_concurrency",
    "decentralized_counters",
    "id",
];

/// The value of one item; `None` when there is no such item.
fn item(ctx: &mut Ctx, t: &Table, what: &str) -> Result<Option<Word>, Escape> {
    let o = &t.options;
    Ok(Some(match what {
        "size" => Word::fixnum(t.size() as i64),
        "type" => match o.kind {
            TableKind::Set => atoms::SET,
            TableKind::OrderedSet => atoms::ORDERED_SET,
            TableKind::Bag => atoms::BAG,
            TableKind::DuplicateBag => atoms::DUPLICATE_BAG,
        }
        .word(),
        "memory" => Word::fixnum(t.memory_words() as i64),
        "owner" => t.owner(),
        "heir" => t.heir().map_or(atoms::NONE.word(), |h| h.pid),
        "protection" => match t.protection() {
            Protection::Public => atoms::PUBLIC,
            Protection::Protected => atoms::PROTECTED,
            Protection::Private => atoms::PRIVATE,
        }
        .word(),
        "write_concurrency" => match o.write_concurrency {
            WriteConcurrency::Off => Word::FALSE,
            WriteConcurrency::On => Word::TRUE,
            WriteConcurrency::Auto => atoms::AUTO.word(),
            WriteConcurrency::Locks(n) => {
                let name = ctx.atom("debug_hash_fixed_number_of_locks")?;
                ctx.tuple(&[name, Word::fixnum(i64::from(n))])
            }
        },
        "read_concurrency" => Word::boolean(o.read_concurrency),
        "name" => t.name().word(),
        "keypos" => Word::fixnum(o.keypos as i64),
        "node" => ctx.tables().local_node().0.word(),
        "named_table" => Word::boolean(o.named),
        "compressed" => Word::boolean(o.compressed),
        "id" => reference(ctx, t),
        "decentralized_counters" => Word::boolean(o.decentralized_counters),
        "fixed" => Word::boolean(t.is_fixed()),
        "safe_fixed" => safe_fixed(ctx, t, false),
        "safe_fixed_monotonic_time" => safe_fixed(ctx, t, true),
        "stats" => stats(ctx, t),
        _ => return Ok(None),
    }))
}

/// `{Time, [{Pid, Count}]}` or `false`.
fn safe_fixed(ctx: &mut Ctx, t: &Table, monotonic: bool) -> Word {
    let (procs, since) = t.fixing(|f| (f.procs.clone(), f.since));
    if procs.is_empty() {
        return Word::FALSE;
    }
    let time = if monotonic {
        ctx.integer(since.0)
    } else {
        let us = since.1 / 1000;
        ctx.tuple(&[
            Word::fixnum(us / 1_000_000_000_000),
            Word::fixnum(us / 1_000_000 % 1_000_000),
            Word::fixnum(us % 1_000_000),
        ])
    };
    let mut list = Word::NIL;
    for (pid, n) in procs {
        let pair = ctx.tuple(&[pid, Word::fixnum(i64::from(n))]);
        list = ctx.cons(pair, list);
    }
    ctx.tuple(&[time, list])
}

/// `{Buckets, Average, Deviation, ExpectedDeviation, Min, Max, Kept, Locks}` of the chains of a hash table.
fn stats(ctx: &mut Ctx, t: &Table) -> Word {
    let Store::Hash(h) = &t.store else {
        return Word::FALSE;
    };
    let lengths = h.chain_lengths();
    let n = lengths.len().max(1) as f64;
    let sum: usize = lengths.iter().sum();
    let squares: usize = lengths.iter().map(|l| l * l).sum();
    let average = sum as f64 / n;
    let variance = (squares as f64 - average * sum as f64) / n;
    let expected = (average * (1.0 - 1.0 / n)).max(0.0).sqrt();
    let locks = match t.options.write_concurrency {
        WriteConcurrency::Off => -1,
        WriteConcurrency::Locks(n) => i64::from(n),
        _ => 16,
    };
    let average = ctx.float(average);
    let deviation = ctx.float(variance.max(0.0).sqrt());
    let expected = ctx.float(expected);
    let small = |n: usize| Word::fixnum(n as i64);
    ctx.tuple(&[
        small(lengths.len()),
        average,
        deviation,
        expected,
        small(lengths.iter().copied().min().unwrap_or(0)),
        small(lengths.iter().copied().max().unwrap_or(0)),
        small(t.kept()),
        Word::fixnum(locks),
    ])
}

/// `ets:info(Table)`.
pub(super) fn info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = match find(ctx, args[0]) {
        Ok(t) => t,
        Err(Problem::Type) => return Err(Problem::Type.raise(ctx)),
        Err(_) => return Ok(atoms::UNDEFINED.word()),
    };
    let mut list = Word::NIL;
    for what in ITEMS {
        let name = ctx.atom(what)?;
        if let Some(value) = item(ctx, &t, what)? {
            let pair = ctx.tuple(&[name, value]);
            list = ctx.cons(pair, list);
        }
    }
    Ok(list)
}

/// `ets:info(Table, Item)`.
pub(super) fn info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let tables = ctx.tables();
    let what = args[1].as_atom().map(|a| tables.atoms.text(a));
    if what == Some("binary") {
        // Erlang code walks the table and asks for the binaries of each key.
        let f = tables
            .atoms
            .intern("ets_info_binary")
            .ok()
            .and_then(|f| tables.exports.id(atoms::ERTS_INTERNAL, f, 1).ok());
        return match f {
            Some(id) => Err(ctx.trap(TrapTarget::Export(id), &[args[0]])),
            None => Err(ctx.system_limit()),
        };
    }
    let t = match find(ctx, args[0]) {
        Ok(t) => t,
        Err(Problem::Type) => return Err(Problem::Type.raise(ctx)),
        Err(_) => return Ok(atoms::UNDEFINED.word()),
    };
    match what {
        Some(what) => match item(ctx, &t, what)? {
            Some(w) => Ok(w),
            None => Err(ctx.badarg()),
        },
        None => Err(ctx.badarg()),
    }
}

/// `erts_internal:ets_lookup_binary_info(Table, Key)`: `{Id, Size, Count}` of each counted binary in the rows of a key.
pub(super) fn lookup_binary_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let mut list = Word::NIL;
    t.lookup(args[1], |row| {
        row.binaries(|id, bytes, count| {
            let id = ctx.unsigned(id);
            let b = ctx.tuple(&[id, Word::fixnum(bytes as i64), Word::fixnum(count as i64)]);
            list = ctx.cons(b, list);
        });
    });
    Ok(list)
}
