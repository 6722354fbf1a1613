//! `ets:select_count`, `ets:select_delete`, `ets:select_replace`: passes over a table whose value is a number.
//!
//! Between two steps the state is `[Tid, Position, End, Spec, Count]` as arguments of a native: the position is a hash, or
//! `[Key]` (the last key seen) for an ordered table.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, TrapTarget};
use beamr_term::copy::{CopyMode, copy};
use beamr_term::{Build, Word, atoms};
use beamr_vm::ets::{Keep, Key, Row, RowData, Store, Table};
use beamr_vm::match_spec::key::{KeyPlan, clauses, compare_partly, keeps_key, plan};
use beamr_vm::match_spec::{Machine, MatchSpec, Source, of_reference};

use super::select::{STEP, Spec};
use super::{long, readable, reference, spec, still_there, writable, wrong_type};

/// What a pass does with rows that match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Count,
    Delete,
    Replace,
}

impl Mode {
    fn trap(self) -> &'static NativeEntry {
        match self {
            Mode::Count => &COUNT,
            Mode::Delete => &DELETE,
            Mode::Replace => &REPLACE,
        }
    }
}

static COUNT: NativeEntry = long("count_trap", 5, count_trap as NativeFn);
static DELETE: NativeEntry = long("select_delete_trap", 5, delete_trap as NativeFn);
static REPLACE: NativeEntry = long("replace_trap", 5, replace_trap as NativeFn);

/// `ets:select_count(Table, MatchSpec)`.
pub(super) fn select_count_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    start(ctx, &t, args, Mode::Count)
}

/// `ets:internal_select_delete(Table, MatchSpec)`.
pub(super) fn internal_select_delete_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    start(ctx, &t, args, Mode::Delete)
}

/// `ets:select_replace(Table, MatchSpec)`.
pub(super) fn select_replace_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    if t.options.kind == beamr_vm::ets::TableKind::Bag {
        return Err(wrong_type(ctx));
    }
    let tables = ctx.tables();
    let keeps = |c: &(Word, Word)| keeps_key(t.keypos(), c.0, c.1, tables);
    if !clauses(args[1]).iter().all(keeps) {
        return Err(ctx.badarg());
    }
    start(ctx, &t, args, Mode::Replace)
}

/// Decides about rows.
struct Pass<'s> {
    spec: &'s MatchSpec,
    machine: Machine,
    mode: Mode,
    count: i64,
    seen: usize,
}

impl<'s> Pass<'s> {
    fn new(spec: &'s MatchSpec, mode: Mode, count: i64) -> Pass<'s> {
        Pass {
            spec,
            machine: Machine::new(spec),
            mode,
            count,
            seen: 0,
        }
    }
    fn look(&mut self, ctx: &mut Ctx, row: &RowData) -> Keep {
        self.seen += 1;
        let Some(o) = self.machine.run(ctx, self.spec, Source::Row(row), None) else {
            return Keep::Stay;
        };
        match self.mode {
            Mode::Replace if o.0.is_tuple() => {
                self.count += 1;
                Keep::Replace(Row::new(o.0))
            }
            Mode::Replace => Keep::Stay,
            _ if o.0 != Word::TRUE => Keep::Stay,
            Mode::Count => {
                self.count += 1;
                Keep::Stay
            }
            Mode::Delete => {
                self.count += 1;
                Keep::Go
            }
        }
    }
}

fn start(ctx: &mut Ctx, t: &Table, args: &[Word], mode: Mode) -> Result<Word, Escape> {
    let m = spec::compile_for_table(ctx, args[1])?;
    let patterns: Vec<Word> = clauses(args[1]).into_iter().map(|c| c.0).collect();
    let ordered = matches!(t.store, Store::Ordered(_));
    let plan = plan(&patterns, t.keypos(), ordered, ctx.tables());
    let spec = Spec::Own(m);
    match plan {
        KeyPlan::Keys(keys) => by_keys(ctx, t, spec.get(), &keys, mode),
        KeyPlan::All => {
            let from = if ordered { Word::NIL } else { Word::fixnum(0) };
            step(ctx, t, args[0], from, Word::NONE, Word::NIL, spec, 0, mode)
        }
        KeyPlan::Range(least, most) => step(ctx, t, args[0], Word::NIL, least, most, spec, 0, mode),
    }
}

fn by_keys(
    ctx: &mut Ctx,
    t: &Table,
    m: &MatchSpec,
    keys: &[Word],
    mode: Mode,
) -> Result<Word, Escape> {
    let mut p = Pass::new(m, mode, 0);
    for key in keys {
        match mode {
            Mode::Count => t.lookup(*key, |row| {
                p.look(ctx, row);
            }),
            Mode::Delete => drop(t.take(*key, |row| matches!(p.look(ctx, row), Keep::Go))),
            Mode::Replace if t.is_bag() => {
                // Several rows of the key: taken out and put back, each as what it becomes.
                let Store::Hash(h) = &t.store else { continue };
                t.replace_rows(h, *key, |row| p.look(ctx, row));
            }
            Mode::Replace => {
                let _ = t.update::<()>(*key, None, |row| match p.look(ctx, &row) {
                    Keep::Replace(new) => Ok(Some(new)),
                    _ => Ok(None),
                });
            }
        }
    }
    ctx.bump(p.seen as i64);
    Ok(Word::fixnum(p.count))
}

/// Looks at [`STEP`] rows from a position on.
fn step(
    ctx: &mut Ctx,
    t: &Table,
    id: Word,
    from: Word,
    edge: Word,
    end: Word,
    spec: Spec<'_>,
    count: i64,
    mode: Mode,
) -> Result<Word, Escape> {
    let tables = ctx.tables();
    let mut p = Pass::new(spec.get(), mode, count);
    let next = match &t.store {
        Store::Hash(h) => {
            let from = from.as_small().unwrap_or(0) as u64;
            let next = if mode == Mode::Count {
                h.walk(from, |row| {
                    p.look(ctx, row);
                    p.seen < STEP
                })
            } else {
                t.pass_hash(h, from, |row| {
                    let keep = p.look(ctx, row);
                    (keep, p.seen < STEP)
                })
            };
            next.map(|n| Word::fixnum(n as i64))
        }
        Store::Ordered(o) => {
            let place = match from.as_cons() {
                Some((key, _)) => Some(Key::new(key, tables)),
                None if edge.is_value() => Some(Key::edge(edge, true, tables)),
                None => None,
            };
            let keypos = t.keypos();
            let mut last = Word::NONE;
            let mut look = |row: &RowData| {
                let key = row.element(keypos);
                if !end.is_nil() && compare_partly(end, key, tables).is_lt() {
                    return (Keep::Stay, false);
                }
                let keep = p.look(ctx, row);
                if p.seen < STEP {
                    return (keep, true);
                }
                last = copy(key, ctx, CopyMode::Share);
                (keep, false)
            };
            if mode == Mode::Count {
                o.read().walk(place, false, |row| look(row).1);
            } else {
                t.pass_ordered(o, place, look);
            }
            if last.is_value() {
                Some(ctx.cons(last, Word::NIL))
            } else {
                None
            }
        }
    };
    let (seen, count) = (p.seen, p.count);
    ctx.bump(seen as i64);
    match next {
        None => {
            still_there(ctx, t)?;
            Ok(Word::fixnum(count))
        }
        Some(next) => {
            let id = if id.is_boxed() { id } else { reference(ctx, t) };
            let spec = spec.into_term(ctx);
            let state = [id, next, end, spec, Word::fixnum(count)];
            Err(ctx.trap(TrapTarget::Native(mode.trap()), &state))
        }
    }
}

fn go_on(ctx: &mut Ctx, args: &[Word], mode: Mode) -> Result<Word, Escape> {
    let t = if mode == Mode::Count {
        readable(ctx, args[0])?
    } else {
        writable(ctx, args[0])?
    };
    let (Some(m), Some(count)) = (of_reference(args[3]), args[4].as_small()) else {
        return Err(ctx.error(atoms::BADARG));
    };
    let spec = Spec::Shared(m, args[3]);
    step(
        ctx,
        &t,
        args[0],
        args[1],
        Word::NONE,
        args[2],
        spec,
        count,
        mode,
    )
}

fn count_trap(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    go_on(ctx, args, Mode::Count)
}
fn delete_trap(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    go_on(ctx, args, Mode::Delete)
}
fn replace_trap(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    go_on(ctx, args, Mode::Replace)
}
