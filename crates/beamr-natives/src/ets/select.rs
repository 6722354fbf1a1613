//! The `match` and `select` families: collecting what a specification gives for the rows of a table.
//!
//! A call works in steps of [`STEP`] rows and traps between them; its state is terms. What a program gets as a continuation
//! has OTP's shapes, because `ets:repair_continuation/2` takes them apart:
//!
//! * hash tables: `{Tid, Position, Chunk, Spec, Rest, RestSize}`, the position a hash that has not been looked at (-1 at the end);
//! * ordered ones: `{Tid, LastKey, End, Chunk, Spec, Results, Reverse, Count}`, where `End` is the pattern of a key that bounds the walk or `[]`.
//!
//! Results are consed: hash tables are walked upwards, so that rows of one key come out oldest first; ordered
//! ones against the direction of the result, or reversed at the end of a chunk.

use beamr_abi::{Ctx, Escape, NativeEntry, TrapTarget};
use beamr_term::copy::{CopyMode, copy};
use beamr_term::{Build, Word, atoms};
use beamr_vm::ets::{HashStore, Key, OrderedStore, RowData, Store, Table};
use beamr_vm::match_spec::key::{KeyPlan, clauses, compare_partly, plan};
use beamr_vm::match_spec::{Machine, MatchSpec, Source, of_reference};

use super::{Held, long, readable, reference, spec, still_there};
use crate::resources;

/// Rows looked at in one step.
pub(super) const STEP: usize = 1000;

/// A specification on its way: as a value, or behind a reference when it was in a continuation.
pub(super) enum Spec<'s> {
    /// Compiled by this call.
    Own(MatchSpec),
    /// Compiled before.
    Shared(&'s MatchSpec, Word),
}

impl Spec<'_> {
    pub(super) fn get(&self) -> &MatchSpec {
        match self {
            Spec::Own(m) => m,
            Spec::Shared(m, _) => m,
        }
    }
    /// The term for a continuation.
    pub(super) fn into_term(self, ctx: &mut Ctx) -> Word {
        match self {
            Spec::Own(m) => resources::new(ctx, m),
            Spec::Shared(_, w) => w,
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Wanted {
    /// Results in a chunk; 0 for all.
    chunk: i64,
    reverse: bool,
}

/// `ets:match(Table, Pattern)`.
pub(super) fn match_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_pattern(ctx, args, false, 0)
}
/// `ets:match(Table, Pattern, Limit)`.
pub(super) fn match_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_pattern(ctx, args, false, -1)
}
/// `ets:match_object(Table, Pattern)`.
pub(super) fn match_object_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_pattern(ctx, args, true, 0)
}
/// `ets:match_object(Table, Pattern, Limit)`.
pub(super) fn match_object_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_pattern(ctx, args, true, -1)
}

fn limit(ctx: &mut Ctx, w: Word) -> Result<i64, Escape> {
    w.as_small().filter(|n| *n > 0).ok_or_else(|| ctx.badarg())
}

fn by_pattern(ctx: &mut Ctx, args: &[Word], whole: bool, chunk: i64) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let chunk = if chunk == 0 { 0 } else { limit(ctx, args[2])? };
    let m = MatchSpec::compile_pattern(ctx, args[1], whole);
    if m.is_refused() {
        return Err(ctx.badarg());
    }
    let wanted = Wanted {
        chunk,
        reverse: false,
    };
    start(ctx, args[0], &t, m, &[args[1]], wanted)
}

fn by_spec(ctx: &mut Ctx, args: &[Word], reverse: bool, chunked: bool) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let chunk = if chunked { limit(ctx, args[2])? } else { 0 };
    let m = spec::compile_for_table(ctx, args[1])?;
    let patterns: Vec<Word> = clauses(args[1]).into_iter().map(|c| c.0).collect();
    start(ctx, args[0], &t, m, &patterns, Wanted { chunk, reverse })
}

/// `ets:select(Table, MatchSpec)`.
pub(super) fn select_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_spec(ctx, args, false, false)
}
/// `ets:select(Table, MatchSpec, Limit)`.
pub(super) fn select_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_spec(ctx, args, false, true)
}
/// `ets:select_reverse(Table, MatchSpec)`.
pub(super) fn select_reverse_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_spec(ctx, args, true, false)
}
/// `ets:select_reverse(Table, MatchSpec, Limit)`.
pub(super) fn select_reverse_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    by_spec(ctx, args, true, true)
}

/// Results so far, the newest first.
struct Results {
    list: Word,
    count: i64,
    machine: Machine,
    seen: usize,
}

impl Results {
    fn new(spec: &MatchSpec, list: Word, count: i64) -> Results {
        Results {
            list,
            count,
            machine: Machine::new(spec),
            seen: 0,
        }
    }
    #[inline]
    fn look(&mut self, ctx: &mut Ctx, spec: &MatchSpec, row: &RowData) {
        self.seen += 1;
        if let Some(o) = self.machine.run(ctx, spec, Source::Row(row), None) {
            self.list = ctx.cons(o.0, self.list);
            self.count += 1;
        }
    }
    fn full(&self, chunk: i64) -> bool {
        chunk > 0 && self.count >= chunk
    }
}

fn end() -> Word {
    atoms::END_OF_TABLE.word()
}

fn start(
    ctx: &mut Ctx,
    id: Word,
    t: &Table,
    m: MatchSpec,
    patterns: &[Word],
    wanted: Wanted,
) -> Result<Word, Escape> {
    let ordered = matches!(t.store, Store::Ordered(_));
    let plan = plan(patterns, t.keypos(), ordered, ctx.tables());
    let spec = Spec::Own(m);
    match (&t.store, plan) {
        (_, KeyPlan::Keys(keys)) => by_keys(ctx, t, spec, &keys, wanted.chunk),
        (Store::Hash(h), _) => hash_step(ctx, t, h, id, spec, wanted.chunk, 0, Word::NIL, 0),
        (Store::Ordered(o), KeyPlan::All) => {
            let from = Ordered {
                last: Word::NONE,
                end: Word::NIL,
                edge: Word::NONE,
            };
            ordered_step(ctx, t, o, id, spec, wanted, from, Word::NIL, 0)
        }
        (Store::Ordered(o), KeyPlan::Range(least, most)) => {
            let (edge, end) = if upwards(wanted) {
                (least, most)
            } else {
                (most, least)
            };
            let from = Ordered {
                last: Word::NONE,
                end,
                edge,
            };
            ordered_step(ctx, t, o, id, spec, wanted, from, Word::NIL, 0)
        }
    }
}

/// Rows of a few keys: all in one step.
fn by_keys(
    ctx: &mut Ctx,
    t: &Table,
    spec: Spec<'_>,
    keys: &[Word],
    chunk: i64,
) -> Result<Word, Escape> {
    let m = spec.get();
    let mut r = Results::new(m, Word::NIL, 0);
    for key in keys {
        t.lookup(*key, |row| r.look(ctx, m, row));
    }
    ctx.bump(r.seen as i64);
    if chunk == 0 {
        return Ok(r.list);
    }
    if matches!(t.store, Store::Ordered(_)) {
        return Ok(if r.count > 0 {
            ctx.tuple(&[r.list, end()])
        } else {
            end()
        });
    }
    Ok(chunk_of_hash(
        ctx,
        t,
        Word::NONE,
        spec,
        chunk,
        r.list,
        r.count,
        None,
    ))
}

/// Looks at rows of a hash table from hash `from` on.
fn hash_step(
    ctx: &mut Ctx,
    t: &Table,
    h: &HashStore,
    id: Word,
    spec: Spec<'_>,
    chunk: i64,
    from: u64,
    list: Word,
    count: i64,
) -> Result<Word, Escape> {
    let m = spec.get();
    let mut r = Results::new(m, list, count);
    let next = h.walk(from, |row| {
        r.look(ctx, m, row);
        !r.full(chunk) && r.seen < STEP
    });
    let Results {
        list, count, seen, ..
    } = r;
    ctx.bump(seen as i64);
    if next.is_none() {
        still_there(ctx, t)?;
    }
    match next {
        Some(next) if !(chunk > 0 && count >= chunk) => {
            let tid = tid(ctx, id, t);
            let spec = spec.into_term(ctx);
            let state = ctx.tuple(&[
                tid,
                Word::fixnum(next as i64),
                Word::fixnum(chunk),
                spec,
                list,
                Word::fixnum(count),
            ]);
            Err(ctx.trap(TrapTarget::Native(&CONTINUE), &[state]))
        }
        _ if chunk == 0 => Ok(list),
        next => Ok(chunk_of_hash(ctx, t, id, spec, chunk, list, count, next)),
    }
}

fn tid(ctx: &mut Ctx, id: Word, t: &Table) -> Word {
    if id.is_boxed() { id } else { reference(ctx, t) }
}

/// The value of a call that wanted a chunk: the oldest results; what is more waits in the continuation.
fn chunk_of_hash(
    ctx: &mut Ctx,
    t: &Table,
    id: Word,
    spec: Spec<'_>,
    chunk: i64,
    list: Word,
    count: i64,
    next: Option<u64>,
) -> Word {
    let mut results = list;
    let mut rest = Vec::new();
    while (rest.len() as i64) < count - chunk {
        let Some((h, tail)) = results.as_cons() else {
            break;
        };
        rest.push(h);
        results = tail;
    }
    if rest.is_empty() && next.is_none() {
        return if results.is_nil() {
            end()
        } else {
            ctx.tuple(&[results, end()])
        };
    }
    let size = rest.len() as i64;
    let rest = ctx.list(rest);
    let tid = tid(ctx, id, t);
    let spec = spec.into_term(ctx);
    let continuation = ctx.tuple(&[
        tid,
        Word::fixnum(next.map_or(-1, |n| n as i64)),
        Word::fixnum(chunk),
        spec,
        rest,
        Word::fixnum(size),
    ]);
    ctx.tuple(&[results, continuation])
}

/// Where a walk over an ordered table stands.
#[derive(Clone, Copy)]
struct Ordered {
    /// The last key seen, or `NONE` at the start.
    last: Word,
    /// The pattern of a key behind which the walk ends, or `[]`.
    end: Word,
    /// The pattern of a key before which the walk starts, or `NONE`.
    edge: Word,
}

/// Chunks are walked in the direction of their results and reversed, all else against it.
fn upwards(wanted: Wanted) -> bool {
    wanted.reverse != (wanted.chunk > 0)
}

fn ordered_step(
    ctx: &mut Ctx,
    t: &Table,
    o: &OrderedStore,
    id: Word,
    spec: Spec<'_>,
    wanted: Wanted,
    from: Ordered,
    list: Word,
    count: i64,
) -> Result<Word, Escape> {
    let tables = ctx.tables();
    let up = upwards(wanted);
    let m = spec.get();
    let mut r = Results::new(m, list, count);
    let place = if from.last.is_value() {
        Some(Key::new(from.last, tables))
    } else if from.edge.is_value() {
        Some(Key::edge(from.edge, up, tables))
    } else {
        None
    };
    let mut last = Word::NONE;
    let keypos = t.keypos();
    let mut ended = false;
    let done = o.read().walk(place, !up, |row| {
        let key = row.element(keypos);
        if !from.end.is_nil() {
            let c = compare_partly(from.end, key, tables);
            if if up { c.is_lt() } else { c.is_gt() } {
                ended = true;
                return false;
            }
        }
        r.look(ctx, m, row);
        if r.full(wanted.chunk) || r.seen >= STEP {
            last = copy(key, ctx, CopyMode::Share);
            return false;
        }
        true
    });
    let Results {
        list, count, seen, ..
    } = r;
    ctx.bump(seen as i64);
    let done = done || ended;
    if done {
        still_there(ctx, t)?;
    }
    if wanted.chunk == 0 && done {
        return Ok(list);
    }
    let full = wanted.chunk > 0 && count >= wanted.chunk;
    if done || full {
        if count == 0 {
            return Ok(end());
        }
        let continuation = if done {
            end()
        } else {
            let spec = spec.into_term(ctx);
            state(ctx, id, last, from.end, wanted, spec, Word::NIL, 0)
        };
        let mut results = Word::NIL;
        let mut l = list;
        while let Some((h, tail)) = l.as_cons() {
            results = ctx.cons(h, results);
            l = tail;
        }
        return Ok(ctx.tuple(&[results, continuation]));
    }
    let spec = spec.into_term(ctx);
    let id = tid(ctx, id, t);
    let state = state(ctx, id, last, from.end, wanted, spec, list, count);
    Err(ctx.trap(TrapTarget::Native(&CONTINUE), &[state]))
}

fn state(
    ctx: &mut Ctx,
    id: Word,
    last: Word,
    end: Word,
    wanted: Wanted,
    spec: Word,
    list: Word,
    count: i64,
) -> Word {
    ctx.tuple(&[
        id,
        last,
        end,
        Word::fixnum(wanted.chunk),
        spec,
        list,
        Word::fixnum(i64::from(wanted.reverse)),
        Word::fixnum(count),
    ])
}

/// `ets:select(Continuation)` and its kin, and where the family traps to.
pub(super) fn continue_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0] == end() {
        return Ok(args[0]);
    }
    let Some([id, ..]) = args[0].as_tuple() else {
        return Err(ctx.badarg());
    };
    let t: Held<'_> = readable(ctx, *id)?;
    let result = match (&t.store, args[0].as_tuple()) {
        (Store::Hash(h), Some([id, position, chunk, spec, list, count])) => {
            continue_hash(ctx, &t, h, *id, *position, *chunk, *spec, *list, *count)
        }
        (Store::Ordered(o), Some([id, last, end, chunk, spec, list, reverse, count])) => {
            let numbers = (chunk.as_small(), reverse.as_small(), count.as_small());
            match (numbers, of_reference(*spec)) {
                ((Some(chunk), Some(reverse), Some(count)), Some(m)) if list.is_list() => {
                    let wanted = Wanted {
                        chunk,
                        reverse: reverse != 0,
                    };
                    let from = Ordered {
                        last: *last,
                        end: *end,
                        edge: Word::NONE,
                    };
                    let spec = Spec::Shared(m, *spec);
                    Some(ordered_step(
                        ctx, &t, o, *id, spec, wanted, from, *list, count,
                    ))
                }
                _ => None,
            }
        }
        _ => None,
    };
    match result {
        Some(r) => r,
        None => Err(ctx.badarg()),
    }
}

fn continue_hash(
    ctx: &mut Ctx,
    t: &Table,
    h: &HashStore,
    id: Word,
    position: Word,
    chunk: Word,
    spec: Word,
    list: Word,
    count: Word,
) -> Option<Result<Word, Escape>> {
    let position = position.as_small()?;
    let chunk = chunk.as_small().filter(|n| *n >= 0)?;
    let count = count.as_small().filter(|n| *n >= 0)?;
    let m = of_reference(spec).filter(|_| list.is_list())?;
    let spec = Spec::Shared(m, spec);
    let from = u64::try_from(position).ok();
    if let Some(from) = from
        && (chunk == 0 || count < chunk)
    {
        if from >= 1 << beamr_vm::ets::HASH_BITS {
            return None;
        }
        return Some(hash_step(ctx, t, h, id, spec, chunk, from, list, count));
    }
    if chunk == 0 {
        return Some(Ok(list));
    }
    Some(Ok(chunk_of_hash(
        ctx, t, id, spec, chunk, list, count, from,
    )))
}

static CONTINUE: NativeEntry = long("select_trap", 1, continue_1);
