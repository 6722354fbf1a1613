//! `ets:update_counter` and `ets:update_element`.

use beamr_abi::{Ctx, Escape};
use beamr_term::arith::{self, ArithError};
use beamr_term::{Alloc, Build, Fragment, Word, atoms, order};
use beamr_vm::ets::{Row, RowMut, Table, TableKind};

use super::{still_there, writable, wrong_type};
use crate::support::ListBuilder;

/// Why an update was refused.
enum Refused {
    /// `badarg` without a cause.
    Bad,
    /// `badarg` because of the key's position.
    KeyPos,
    /// `badarg` because of a position beyond the row.
    Position,
    /// The integer would be too large.
    Limit,
}

fn raise(ctx: &mut Ctx, r: Refused) -> Escape {
    match r {
        Refused::Bad => ctx.badarg(),
        Refused::KeyPos => ctx.badarg_because(atoms::KEYPOS),
        Refused::Position => ctx.badarg_because(atoms::POSITION),
        Refused::Limit => ctx.system_limit(),
    }
}

fn one_row_a_key(t: &Table) -> bool {
    matches!(t.options.kind, TableKind::Set | TableKind::OrderedSet)
}

/// A row made of a default with a key in place; `None` when the default is too short.
fn default_row(default: Word, key: Word, t: &Table) -> Option<impl Fn() -> Row> {
    let keypos = t.keypos();
    let elements = default.as_tuple().filter(|e| e.len() > keypos)?.to_vec();
    Some(move || {
        let mut f = Fragment::with_capacity(elements.len() + 1);
        let mut e = elements.clone();
        e[keypos] = key;
        Row::new(f.tuple(&e))
    })
}

/// Changes of a row: in place when all are immediates, else as a new row.
fn changed(row: RowMut<'_>, changes: &[(usize, Word)]) -> Option<Row> {
    if changes.iter().all(|c| c.1.is_immediate()) {
        for (i, w) in changes {
            row.set_immediate(*i, *w);
        }
        return None;
    }
    let mut elements = row.tuple().as_tuple().unwrap_or(&[]).to_vec();
    for (i, w) in changes {
        elements[*i] = *w;
    }
    let mut f = Fragment::with_capacity(elements.len() + 1);
    Some(Row::new(f.tuple(&elements)))
}

/// One `{Pos, Incr}` or `{Pos, Incr, Threshold, SetValue}`.
struct Counter {
    pos: i64,
    incr: Word,
    wrap: Option<(Word, Word)>,
}

fn counter(w: Word) -> Option<Counter> {
    let (pos, incr, wrap) = match w.as_tuple()? {
        [pos, incr] => (pos, incr, None),
        [pos, incr, threshold, set] => (pos, incr, Some((*threshold, *set))),
        _ => return None,
    };
    let integers = incr.is_integer() && wrap.is_none_or(|(t, s)| t.is_integer() && s.is_integer());
    integers.then_some(Counter {
        pos: pos.as_small()?,
        incr: *incr,
        wrap,
    })
}

/// The place of a counter in a row, from 0.
fn place(pos: i64, t: &Table, row: RowMut<'_>) -> Result<usize, Refused> {
    if pos == t.keypos() as i64 + 1 {
        return Err(Refused::KeyPos);
    }
    match usize::try_from(pos - 1) {
        Ok(i) if i < row.arity() => Ok(i),
        _ => Err(Refused::Position),
    }
}

/// The new value of a counter. Built in `heap` when it is large.
fn next_value(heap: &mut impl Alloc, t: &Table, old: Word, c: &Counter) -> Result<Word, Refused> {
    let new = match arith::add(heap, t.tables.release, old, c.incr) {
        Ok(w) => w,
        Err(ArithError::SystemLimit) => return Err(Refused::Limit),
        Err(ArithError::Badarith) => return Err(Refused::Bad),
    };
    if let Some((threshold, set)) = c.wrap {
        let below = order::compare(c.incr, Word::fixnum(0), &t.tables).is_lt();
        let o = order::compare(new, threshold, &t.tables);
        if if below { o.is_lt() } else { o.is_gt() } {
            return Ok(set);
        }
    }
    Ok(new)
}

fn update_counter(ctx: &mut Ctx, args: &[Word], default: Option<Word>) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let (key, op) = (args[1], args[2]);
    if default.is_some_and(|d| !d.is_tuple()) {
        return Err(if ctx.tables().release.0 >= 28 {
            let cause = ctx.atom("default")?;
            ctx.badarg_because(cause)
        } else {
            ctx.badarg()
        });
    }
    if !one_row_a_key(&t) {
        return Err(wrong_type(ctx));
    }
    let make = match default {
        Some(d) => default_row(d, key, &t),
        None => None,
    };
    let make: Option<&dyn Fn() -> Row> = make.as_ref().map(|m| m as &dyn Fn() -> Row);
    let one = if op.is_integer() {
        Some(Some(Counter {
            pos: t.keypos() as i64 + 2,
            incr: op,
            wrap: None,
        }))
    } else {
        op.is_tuple().then(|| counter(op))
    };
    let mut value = Word::NIL;
    let done = match one {
        Some(c) => t.update(key, make, |row| {
            let c = c.ok_or(Refused::Bad)?;
            let i = place(c.pos, &t, row)?;
            let old = row.element(i);
            if !old.is_integer() {
                return Err(Refused::Bad);
            }
            value = next_value(ctx, &t, old, &c)?;
            if value.is_immediate() {
                row.set_immediate(i, value);
                return Ok(None);
            }
            Ok(changed(row, &[(i, value)]))
        }),
        None => t.update(key, make, |row| {
            // All is checked before anything changes.
            let mut ops = Vec::new();
            let mut l = op;
            while let Some((h, tail)) = l.as_cons() {
                let c = counter(h).ok_or(Refused::Bad)?;
                let i = place(c.pos, &t, row)?;
                if !row.element(i).is_integer() {
                    return Err(Refused::Bad);
                }
                ops.push((i, c));
                l = tail;
            }
            if !l.is_nil() {
                return Err(Refused::Bad);
            }
            let mut list = ListBuilder::new();
            let mut now: Vec<(usize, Word)> = Vec::with_capacity(ops.len());
            for (i, c) in &ops {
                let before = now.iter().rev().find(|c| c.0 == *i);
                let old = before.map_or(row.element(*i), |c| c.1);
                let new = next_value(ctx, &t, old, c)?;
                now.push((*i, new));
                list.push(ctx, new);
            }
            value = list.finish(Word::NIL);
            Ok(if now.is_empty() {
                None
            } else {
                changed(row, &now)
            })
        }),
    };
    match done {
        Some(Ok(())) => Ok(value),
        Some(Err(r)) => Err(raise(ctx, r)),
        None => {
            still_there(ctx, &t)?;
            Err(ctx.badarg_because(atoms::BADKEY))
        }
    }
}

/// `ets:update_counter(Table, Key, UpdateOp)`.
pub(super) fn update_counter_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    update_counter(ctx, args, None)
}

/// `ets:update_counter(Table, Key, UpdateOp, Default)`.
pub(super) fn update_counter_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    update_counter(ctx, args, Some(args[3]))
}

fn update_element(ctx: &mut Ctx, args: &[Word], default: Option<Word>) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    if !one_row_a_key(&t) {
        return Err(ctx.badarg());
    }
    let position_told = ctx.tables().release.0 >= 27;
    let key = args[1];
    let make = match default {
        Some(d) if !d.is_tuple() => return Err(ctx.badarg()),
        Some(d) => match default_row(d, key, &t) {
            Some(m) => Some(m),
            None => return Err(ctx.badarg()),
        },
        None => None,
    };
    let make: Option<&dyn Fn() -> Row> = make.as_ref().map(|m| m as &dyn Fn() -> Row);
    let spec = args[2];
    let done = t.update(key, make, |row| {
        let mut changes = Vec::new();
        let mut change = |w: Word| {
            let Some([pos, value]) = w.as_tuple() else {
                return Err(Refused::Bad);
            };
            let pos = pos.as_small().ok_or(Refused::Bad)?;
            let i = place(pos, &t, row).map_err(|r| match r {
                Refused::Position if !position_told => Refused::Bad,
                r => r,
            })?;
            changes.push((i, *value));
            Ok(())
        };
        if spec.is_tuple() {
            change(spec)?;
        } else {
            let mut l = spec;
            while let Some((h, tail)) = l.as_cons() {
                change(h)?;
                l = tail;
            }
            if !l.is_nil() {
                return Err(Refused::Bad);
            }
        }
        Ok(if changes.is_empty() {
            None
        } else {
            changed(row, &changes)
        })
    });
    match done {
        Some(Ok(())) => Ok(Word::TRUE),
        Some(Err(r)) => Err(raise(ctx, r)),
        None => {
            still_there(ctx, &t)?;
            Ok(Word::FALSE)
        }
    }
}

/// `ets:update_element(Table, Key, ElementSpec)`.
pub(super) fn update_element_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    update_element(ctx, args, None)
}

/// `ets:update_element(Table, Key, ElementSpec, Default)`.
pub(super) fn update_element_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    update_element(ctx, args, Some(args[3]))
}
