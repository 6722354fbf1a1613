//! `erlang` (and `erts_internal`): tracing. Nothing can be traced: turning tracing off succeeds, turning it on is
//! refused with `notsup`, questions are answered as for what is not traced.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::vm_of;
use beamr_vm::rt;

use crate::support::{list_items, name};

/// `erts_internal:trace(What, On, Flags)`.
fn trace_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (what, on, flags) = (args[0], args[1].as_boolean(), args[2]);
    list_items(ctx, flags)?;
    let all = vm_of(ctx).process_count() as i64;
    let n = match name(ctx, what) {
        Some("all" | "existing" | "processes" | "existing_processes") => all,
        Some("new" | "new_processes" | "ports" | "new_ports" | "existing_ports") => 0,
        _ if what.is_local_pid() || what.is_local_port() => 1,
        _ => return Err(ctx.badarg()),
    };
    match on {
        Some(false) => Ok(Word::fixnum(n)),
        Some(true) => Err(ctx.notsup()),
        None => Err(ctx.badarg()),
    }
}

/// `erts_internal:trace_pattern(MFA, Spec, Flags)`.
fn trace_pattern_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    list_items(ctx, args[2])?;
    match name(ctx, args[1]) {
        Some("false") => Ok(Word::fixnum(0)),
        _ => Err(ctx.notsup()),
    }
}

/// `trace_info(What, Item)`.
fn trace_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (what, item) = (args[0], args[1]);
    let undefined = atoms::UNDEFINED.word();
    let value = if what.is_local_pid() || what.is_local_port() || what.is_atom() {
        match name(ctx, item) {
            Some("flags" | "tracer") => Word::NIL,
            Some("match_spec") => Word::TRUE,
            _ => return Err(ctx.badarg()),
        }
    } else if matches!(what.as_tuple(), Some([_, _, _])) {
        match name(ctx, item) {
            Some(
                "traced" | "match_spec" | "meta" | "meta_match_spec" | "call_count" | "call_time"
                | "call_memory",
            ) => Word::FALSE,
            Some("all") => {
                let exists = matches!(what.as_tuple(), Some([m, f, a])
                if m.as_atom().zip(f.as_atom()).zip(a.as_small()).is_some_and(|((m, f), a)| {
                    !super::funs::modules(ctx).find(m, f, a as u32).is_null()
                }));
                if exists { Word::FALSE } else { undefined }
            }
            _ => return Err(ctx.badarg()),
        }
    } else {
        let cause = ctx.atom("badopt")?;
        return Err(ctx.badarg_because(cause));
    };
    Ok(ctx.tuple(&[item, value]))
}

/// `trace_delivered(Pid | all)`: what was traced has been delivered.
fn trace_delivered_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_local_pid() && name(ctx, args[0]) != Some("all") {
        return Err(ctx.badarg());
    }
    let tag = ctx.atom("trace_delivered")?;
    let r = beamr_vm::process::spawn::make_ref(ctx);
    let message = ctx.tuple(&[tag, args[0], r]);
    let me = ctx.self_pid();
    rt::send(ctx, me, message).map_err(|p| ctx.escape(p))?;
    Ok(r)
}

const SEQ_FLAGS: &[&str] = &[
    "send",
    "receive",
    "print",
    "timestamp",
    "monotonic_timestamp",
    "strict_monotonic_timestamp",
];

/// `seq_trace(Item, Value)`: there are no tokens. Taking one away has no effect, setting one is refused with `notsup`.
fn seq_trace_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match name(ctx, args[0]) {
        Some(f) if SEQ_FLAGS.contains(&f) && args[1] == Word::FALSE => Ok(Word::FALSE),
        Some(f) if SEQ_FLAGS.contains(&f) && args[1] == Word::TRUE => Err(ctx.notsup()),
        Some("label") => Err(ctx.notsup()),
        Some("serial") => match args[1].as_tuple() {
            Some([a, b]) if a.is_small() && b.is_small() => Err(ctx.notsup()),
            _ => Err(ctx.badarg()),
        },
        Some("sequential_trace_token") if args[1].is_nil() => Ok(Word::NIL),
        _ => Err(ctx.badarg()),
    }
}

/// `seq_trace_info(Item)`.
fn seq_trace_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match name(ctx, args[0]) {
        Some(f) if SEQ_FLAGS.contains(&f) || f == "spawn" => Ok(ctx.tuple(&[args[0], Word::FALSE])),
        Some("label" | "serial") => Ok(Word::NIL),
        _ => Err(ctx.badarg()),
    }
}

/// `seq_trace_print(...)`: there is no token.
fn seq_trace_print(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}

/// `erl_tracer:enabled(TraceTag, State, Tracee)`: a process that is to trace is told to go.
fn tracer_enabled_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_atom() {
        ctx.atom("remove")
    } else {
        Err(ctx.badarg())
    }
}

/// `erl_tracer:trace(TraceTag, State, Tracee, Term, Options)`.
fn tracer_trace_5(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::OK.word())
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    internal("trace", 3, trace_3),
    NativeEntry::new("erl_tracer", "enabled", 3, tracer_enabled_3),
    NativeEntry::new("erl_tracer", "trace", 5, tracer_trace_5),
    internal("trace_pattern", 3, trace_pattern_3),
    row("trace_info", 2, trace_info_2),
    row("trace_delivered", 1, trace_delivered_1),
    row("seq_trace", 2, seq_trace_2),
    row("seq_trace_info", 1, seq_trace_info_1),
    row("seq_trace_print", 1, seq_trace_print),
    row("seq_trace_print", 2, seq_trace_print),
    internal("trace", 4, trace_session).releases(ReleaseSpan::since(27)),
    internal("trace_pattern", 4, trace_session).releases(ReleaseSpan::since(27)),
    internal("trace_info", 3, trace_session).releases(ReleaseSpan::since(27)),
    internal("trace_session_create", 3, trace_session).releases(ReleaseSpan::since(27)),
    internal("trace_session_destroy", 1, session_destroy_1).releases(ReleaseSpan::since(27)),
    NativeEntry::new("erts_trace_cleaner", "check", 0, cleaner_check_0)
        .releases(ReleaseSpan::since(27)),
    NativeEntry::new(
        "erts_trace_cleaner",
        "send_trace_clean_signal",
        1,
        cleaner_signal_1,
    )
    .releases(ReleaseSpan::since(27)),
];

/// Trace sessions (27): there are none.
fn trace_session(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.notsup())
}

/// `erts_internal:trace_session_destroy(Session)`: nobody can hold one.
fn session_destroy_1(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.badarg())
}

/// `erts_trace_cleaner:check()`: nothing is to be cleaned.
fn cleaner_check_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}

/// `erts_trace_cleaner:send_trace_clean_signal(Pid)`.
fn cleaner_signal_1(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}
