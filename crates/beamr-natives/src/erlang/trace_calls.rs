//! `trace_pattern` and `trace_info` of functions.

use std::sync::Arc;

use beamr_abi::{Ctx, Escape};
use beamr_term::{Alloc, Build, Word, atoms};
use beamr_vm::match_spec::Dialect;
use beamr_vm::process::worker;
use beamr_vm::trace::Session;
use beamr_vm::trace::breaks::{Change, Mfa, Target, Turn, What};

use super::funs::modules;
use super::tracing::compile;
use crate::support::{bad_option, because, name, options};

/// `trace_pattern({M, F, A} | on_load, Spec, Flags)`: how many functions that were.
pub(super) fn set_pattern(
    ctx: &mut Ctx,
    session: &Arc<Session>,
    what: Word,
    spec: Word,
    list: Word,
) -> Result<Word, Escape> {
    let mut change = Change {
        turn: Turn::On,
        global: false,
        local: false,
        meta: None,
        count: false,
        time: false,
        spec: None,
    };
    match name(ctx, spec) {
        Some("false") => change.turn = Turn::Off,
        Some("restart") => change.turn = Turn::Restart,
        Some("pause") => change.turn = Turn::Pause,
        Some("true") => {}
        _ if spec.is_nil() => {}
        _ => {
            let dialect = Dialect::Trace {
                call: true,
                actions: true,
            };
            change.spec = Some(compile(ctx, spec, dialect)?);
        }
    }
    flags(ctx, session, list, &mut change)?;
    if change.spec.is_some()
        && !change.local
        && change.meta.is_none()
        && (change.count || change.time)
    {
        return Err(because(ctx, "call_count"));
    }
    if name(ctx, what) == Some("on_load") {
        modules(ctx).server().breaks.set_on_load(session, &change);
        return Ok(Word::fixnum(0));
    }
    let Some(target) = target(ctx, what) else {
        return Err(because(ctx, "none"));
    };
    let table = modules(ctx);
    match table.server().breaks.set(table, session, target, &change) {
        Some(n) => Ok(Word::fixnum(n as i64)),
        // The engine has no breakpoints.
        None => Err(ctx.notsup()),
    }
}

fn flags(ctx: &mut Ctx, session: &Session, list: Word, change: &mut Change) -> Result<(), Escape> {
    let mut global = false;
    let inside = |c: &Change| c.local || c.meta.is_some() || c.count || c.time;
    for item in options(ctx, list)? {
        if let Some([tag, tracer]) = item.as_tuple() {
            let w = worker(ctx);
            if session.id != 0
                || name(ctx, *tag) != Some("meta")
                || !w.vm.trace.can_be_told(w, *tracer)
            {
                return Err(bad_option(ctx));
            }
            change.meta = Some(*tracer);
            continue;
        }
        if let Some([tag, module, _]) = item.as_tuple()
            && name(ctx, *tag) == Some("meta")
            && module.is_atom()
        {
            // Tracers that are native functions of C are not built.
            return Err(ctx.notsup());
        }
        match name(ctx, item) {
            Some("global") if !inside(change) => global = true,
            Some("local") if !global => change.local = true,
            Some("meta") if !global => {
                let tracer = if session.id == 0 {
                    ctx.self_pid()
                } else {
                    session.tracer
                };
                change.meta.get_or_insert(tracer);
            }
            Some("call_count") if !global => change.count = true,
            Some("call_time") if !global => change.time = true,
            // Words by calls are not measured.
            Some("call_memory") if ctx.tables().release.0 >= 26 => return Err(ctx.notsup()),
            _ => return Err(bad_option(ctx)),
        }
    }
    change.global = !inside(change);
    Ok(())
}

/// `{M, F, A}` with `'_'` from some element on.
fn target(ctx: &Ctx, what: Word) -> Option<Target> {
    let [m, f, a] = what.as_tuple()? else {
        return None;
    };
    let any = |w: &Word| *w == atoms::UNDERSCORE.word();
    let (m, f) = (
        m.as_atom().map(|x| (x, any(m)))?,
        f.as_atom().map(|x| (x, any(f)))?,
    );
    let arity = match a.as_small() {
        Some(n) => Some(u32::try_from(n).unwrap_or(u32::MAX)),
        None if any(a) => None,
        None => return None,
    };
    if (m.1 && !f.1) || (f.1 && arity.is_some()) {
        return None;
    }
    let _ = ctx;
    Some(Target {
        module: (!m.1).then_some(m.0),
        function: (!f.1).then_some(f.0),
        arity,
    })
}

fn mfa(what: Word) -> Option<Mfa> {
    let [m, f, a] = what.as_tuple()? else {
        return None;
    };
    let arity = u32::try_from(a.as_small()?).ok()?;
    Some((m.as_atom()?, f.as_atom()?, arity))
}

/// Whether a session traces calls of a function.
pub(super) fn is_traced(ctx: &mut Ctx, session: &Session, what: Word) -> Result<bool, Escape> {
    let Some(mfa) = mfa(what) else {
        return Err(ctx.badarg());
    };
    let table = modules(ctx);
    let found = table.server().breaks.info(table, session, mfa);
    Ok(found.is_some_and(|w| !w.is_empty()))
}

/// Takes everything back that a session traces of functions.
pub(super) fn forget(ctx: &mut Ctx, session: &Session) {
    let table = modules(ctx);
    table.server().breaks.forget(table, session);
}

/// `trace_info({M, F, A} | on_load, Item)`.
pub(super) fn info(
    ctx: &mut Ctx,
    session: &Arc<Session>,
    what: Word,
    item: Word,
) -> Result<Word, Escape> {
    let table = modules(ctx);
    let on_load = name(ctx, what) == Some("on_load");
    let found = if on_load {
        Some(session.of_on_load())
    } else {
        let Some(mfa) = mfa(what) else {
            return Err(ctx.badarg());
        };
        table.server().breaks.info(table, session, mfa)
    };
    let text = name(ctx, item).unwrap_or("").to_owned();
    let memory = ctx.tables().release.0 >= 26;
    let value = match found {
        None => atoms::UNDEFINED.word(),
        Some(w) if w.is_empty() && is_item(&text, memory) => Word::FALSE,
        Some(w) => {
            if text == "all" {
                let mut list = Word::NIL;
                for key in ALL.iter().rev() {
                    if *key == "call_memory" && !memory {
                        continue;
                    }
                    let tag = ctx.atom(key)?;
                    let v = value_of(ctx, &w, key, true)?;
                    let pair = ctx.tuple(&[tag, v]);
                    list = ctx.cons(pair, list);
                }
                list
            } else if is_item(&text, memory) {
                value_of(ctx, &w, &text, false)?
            } else {
                return Err(ctx.badarg());
            }
        }
    };
    Ok(ctx.tuple(&[item, value]))
}

/// The order of `all`. (`call_memory` is never on.)
const ALL: [&str; 7] = [
    "traced",
    "match_spec",
    "meta",
    "meta_match_spec",
    "call_memory",
    "call_time",
    "call_count",
];

fn is_item(text: &str, memory: bool) -> bool {
    text == "all" || (ALL.contains(&text) && (memory || text != "call_memory"))
}

fn value_of(ctx: &mut Ctx, w: &What, item: &str, among_all: bool) -> Result<Word, Escape> {
    Ok(match item {
        "traced" => match &w.call {
            Some((true, _)) => ctx.atom("local")?,
            Some((false, _)) => ctx.atom("global")?,
            None => Word::FALSE,
        },
        "match_spec" => match &w.call {
            Some((_, Some(spec))) => spec.source.copy_into(ctx),
            Some((_, None)) => Word::NIL,
            None => Word::FALSE,
        },
        "meta" => match &w.meta {
            Some(m) => m.tracer,
            None if among_all => Word::FALSE,
            None => Word::NIL,
        },
        "meta_match_spec" => match &w.meta {
            Some(m) => match &m.spec {
                Some(spec) => spec.source.copy_into(ctx),
                None => Word::NIL,
            },
            None => Word::FALSE,
        },
        "call_count" => match &w.count {
            Some(c) => ctx.integer(c.get()),
            None => Word::FALSE,
        },
        "call_time" => match &w.time {
            Some(t) => {
                let mut list = Word::NIL;
                for (pid, calls, ns) in t.get() {
                    let us = ns / 1000;
                    let row = [
                        pid,
                        Word::fixnum(calls as i64),
                        Word::fixnum((us / 1_000_000) as i64),
                        Word::fixnum((us % 1_000_000) as i64),
                    ];
                    let row = ctx.tuple(&row);
                    list = cons(ctx, row, list);
                }
                list
            }
            None => Word::FALSE,
        },
        _ => Word::FALSE,
    })
}

fn cons(to: &mut impl Alloc, head: Word, tail: Word) -> Word {
    to.cons(head, tail)
}
