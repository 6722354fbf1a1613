//! `erlang` (and `erts_internal`): tracing of processes and events, trace sessions.

use std::sync::Arc;

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{Build, Word, atoms};
use beamr_vm::match_spec::{Dialect, SpecError};
use beamr_vm::process::{vm_of, worker};
use beamr_vm::trace::seq;
use beamr_vm::trace::spec::Spec;
use beamr_vm::trace::{EventPattern, Session, Tracing, flags};

use super::trace_calls;
use crate::resources;
use crate::support::{bad_option, because, name, options};

/// What the term of a session keeps: the session is over when nobody has the term any more.
struct Handle(Arc<Session>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The session of `erlang:trace/3` and its like.
fn first(ctx: &Ctx) -> Arc<Session> {
    vm_of(ctx).trace.first.clone()
}

/// The session that a term names: `{Reference, {Name, Number}}`, or `{Name, Number}`.
fn session(ctx: &mut Ctx, term: Word) -> Result<Arc<Session>, Escape> {
    let found = match term.as_tuple() {
        Some([handle, _]) if handle.is_reference() => {
            resources::get::<Handle>(*handle).map(|h| h.0.clone())
        }
        Some([tag, number]) if tag.is_atom() => {
            let (tag, number) = (*tag, *number);
            let all = vm_of(ctx).trace.sessions();
            all.into_iter().find(|s| {
                let mut heap = beamr_term::Fragment::with_capacity(8);
                weak(ctx, s, &mut heap).as_tuple() == Some(&[tag, number])
            })
        }
        _ => return Err(ctx.badarg()),
    };
    match found.filter(|s| !s.is_over()) {
        Some(s) => Ok(s),
        None => Err(because(ctx, "session")),
    }
}

/// `{Name, Number}`; `{legacy, default}` for the first.
fn weak(ctx: &Ctx, s: &Session, to: &mut impl Build) -> Word {
    if s.id == 0 {
        let atom = |t: &str| ctx.tables().atoms.intern(t).map_or(Word::NIL, |a| a.word());
        return to.tuple(&[atom("legacy"), atom("default")]);
    }
    to.tuple(&[s.name.word(), Word::fixnum(s.id as i64 - 1)])
}

/// What a list of trace flags says.
#[derive(Default)]
struct Asked {
    mask: u32,
    tracer: Option<Word>,
}

fn asked(ctx: &mut Ctx, list: Word, session: &Session) -> Result<Asked, Escape> {
    let mut a = Asked::default();
    for item in options(ctx, list)? {
        match item.as_tuple() {
            Some([tag, t]) if session.id == 0 && name(ctx, *tag) == Some("tracer") => {
                if !t.is_local_pid() && !t.is_local_port() {
                    return Err(bad_option(ctx));
                }
                a.tracer = Some(*t);
            }
            // Tracers that are native functions of C are not built.
            Some([tag, module, _])
                if session.id == 0 && name(ctx, *tag) == Some("tracer") && module.is_atom() =>
            {
                return Err(ctx.notsup());
            }
            _ => match name(ctx, item).and_then(flags::of_name) {
                Some(bit) => a.mask |= bit,
                None => return Err(bad_option(ctx)),
            },
        }
    }
    Ok(a)
}

/// `erts_internal:trace(What, On, Flags)`: how many processes and ports it applied to.
fn trace_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let s = first(ctx);
    trace(ctx, &s, args[0], args[1], args[2])
}

/// `erts_internal:trace(Session, What, On, Flags)`.
fn trace_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let s = session(ctx, args[0])?;
    trace(ctx, &s, args[1], args[2], args[3])
}

fn trace(
    ctx: &mut Ctx,
    s: &Arc<Session>,
    what: Word,
    on: Word,
    list: Word,
) -> Result<Word, Escape> {
    let a = asked(ctx, list, s)?;
    let Some(on) = on.as_boolean() else {
        return Err(ctx.badarg());
    };
    let w = worker(ctx);
    let tracer = if !on {
        a.tracer.unwrap_or(Word::NIL)
    } else if s.id == 0 {
        a.tracer.unwrap_or(ctx.self_pid())
    } else {
        s.tracer
    };
    if on && !w.vm.trace.can_be_told(w, tracer) {
        return Err(ctx.badarg());
    }
    if what.is_local_pid() {
        let set = |t: Tracing<'_>| t.set(w, s, on, a.mask, tracer);
        return match beamr_vm::trace::with_tracing(w, what, set) {
            Some(true) => Ok(Word::fixnum(1)),
            // It has another tracer, or is dead.
            Some(false) | None => Err(ctx.badarg()),
        };
    }
    let text = name(ctx, what).unwrap_or("");
    let (existing, new, ports) = match text {
        "all" => (true, true, true),
        "existing" => (true, false, true),
        "new" => (false, true, true),
        "processes" => (true, true, false),
        "existing_processes" => (true, false, false),
        "new_processes" => (false, true, false),
        "ports" | "new_ports" => (false, true, true),
        "existing_ports" => (false, false, true),
        _ => return Err(ctx.badarg()),
    };
    let processes = !text.ends_with("ports");
    let mut n = 0;
    if existing && processes && a.mask & flags::OF_PROCESSES != 0 {
        n = beamr_vm::trace::set_all(w, s, on, a.mask, tracer);
    }
    if new {
        let trace = &w.vm.trace;
        if processes && a.mask & flags::OF_PROCESSES != 0 {
            trace.set_new(s, false, on, a.mask & flags::OF_PROCESSES, tracer);
        }
        if ports && a.mask & flags::OF_PORTS != 0 {
            trace.set_new(s, true, on, a.mask & flags::OF_PORTS, tracer);
        }
    }
    Ok(Word::fixnum(n as i64))
}

/// `erts_internal:trace_pattern(What, Spec, Flags)`.
fn trace_pattern_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let s = first(ctx);
    trace_pattern(ctx, &s, args[0], args[1], args[2])
}

/// `erts_internal:trace_pattern(Session, What, Spec, Flags)`.
fn trace_pattern_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let s = session(ctx, args[0])?;
    trace_pattern(ctx, &s, args[1], args[2], args[3])
}

fn trace_pattern(
    ctx: &mut Ctx,
    s: &Arc<Session>,
    what: Word,
    spec: Word,
    list: Word,
) -> Result<Word, Escape> {
    let event = match name(ctx, what) {
        Some("send") => Some(true),
        Some("receive") => Some(false),
        _ => None,
    };
    let Some(send) = event else {
        return trace_calls::set_pattern(ctx, s, what, spec, list);
    };
    let pattern = match name(ctx, spec) {
        Some("true") => EventPattern::default(),
        Some("false") => EventPattern {
            on: false,
            spec: None,
        },
        _ if spec.is_nil() => EventPattern::default(),
        _ => {
            let dialect = Dialect::Trace {
                call: false,
                actions: send,
            };
            EventPattern {
                on: true,
                spec: Some(compile(ctx, spec, dialect)?),
            }
        }
    };
    if !options(ctx, list)?.is_empty() {
        return Err(bad_option(ctx));
    }
    vm_of(ctx).trace.set_pattern(s, send, pattern);
    Ok(Word::fixnum(1))
}

/// Compiles a specification; what is none is told so.
pub(super) fn compile(ctx: &mut Ctx, spec: Word, dialect: Dialect) -> Result<Arc<Spec>, Escape> {
    match Spec::compile(ctx, spec, dialect) {
        Ok(s) => Ok(s),
        Err(SpecError::TooDeep) => Err(ctx.system_limit()),
        Err(SpecError::Bad) => Err(because(ctx, "match_spec")),
    }
}

/// `trace_info(What, Item)`.
fn trace_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let s = first(ctx);
    trace_info(ctx, &s, args[0], args[1])
}

/// `erts_internal:trace_info(Session | any, What, Item)`.
fn trace_info_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if name(ctx, args[0]) == Some("any") && name(ctx, args[2]) == Some("session") {
        return sessions_of(ctx, args[1], args[2]);
    }
    let s = session(ctx, args[0])?;
    trace_info(ctx, &s, args[1], args[2])
}

/// `{session, Sessions}`: those that trace something, newest first.
fn sessions_of(ctx: &mut Ctx, what: Word, item: Word) -> Result<Word, Escape> {
    let w = worker(ctx);
    let mut all = w.vm.trace.sessions();
    all.sort_by_key(|s| std::cmp::Reverse(s.id));
    if what.is_local_pid() {
        let mut alive = false;
        all.retain(|s| {
            let traced = |t: Tracing<'_>| t.of(s).is_some();
            let t = beamr_vm::trace::with_tracing(w, what, traced);
            alive |= t.is_some();
            t == Some(true)
        });
        if !alive {
            return Ok(ctx.tuple(&[item, atoms::UNDEFINED.word()]));
        }
    } else if what.is_tuple() {
        let mut of = Vec::new();
        for s in all {
            if trace_calls::is_traced(ctx, &s, what)? {
                of.push(s);
            }
        }
        all = of;
    } else {
        match name(ctx, what) {
            Some("any") => {}
            Some("new" | "new_processes") => all.retain(|s| s.of_new(false).0 != 0),
            Some("new_ports") => all.retain(|s| s.of_new(true).0 != 0),
            Some("send") => all.retain(|s| !s.pattern(true).is_default()),
            Some("receive") => all.retain(|s| !s.pattern(false).is_default()),
            _ => return Err(ctx.badarg()),
        }
    }
    let mut list = Word::NIL;
    for s in all.iter().rev() {
        let mut f = beamr_term::Fragment::with_capacity(8);
        let t = weak(ctx, s, &mut f);
        let t = beamr_term::copy::copy(t, ctx, beamr_term::copy::CopyMode::Share);
        list = ctx.cons(t, list);
    }
    Ok(ctx.tuple(&[item, list]))
}

fn trace_info(ctx: &mut Ctx, s: &Arc<Session>, what: Word, item: Word) -> Result<Word, Escape> {
    let w = worker(ctx);
    if what.is_tuple() || name(ctx, what) == Some("on_load") {
        return trace_calls::info(ctx, s, what, item);
    }
    let of_event = match name(ctx, what) {
        Some("send") => Some(s.pattern(true)),
        Some("receive") => Some(s.pattern(false)),
        _ => None,
    };
    if let Some(pattern) = of_event {
        if name(ctx, item) != Some("match_spec") {
            return Err(ctx.badarg());
        }
        let value = match &pattern.spec {
            Some(spec) => spec.source.copy_into(ctx),
            None => Word::boolean(pattern.on),
        };
        return Ok(ctx.tuple(&[item, value]));
    }
    let wanted = match name(ctx, item) {
        Some("flags") => true,
        Some("tracer") => false,
        _ => return Err(ctx.badarg()),
    };
    let (mask, tracer) = match name(ctx, what) {
        Some("new" | "new_processes") => w.vm.trace.of_new(w, s, false),
        Some("new_ports") => w.vm.trace.of_new(w, s, true),
        _ if what.is_local_pid() => match beamr_vm::trace::traced(w, s, what) {
            Some(found) => found,
            None => return Ok(atoms::UNDEFINED.word()),
        },
        // There are no ports.
        _ if what.is_local_port() => return Ok(atoms::UNDEFINED.word()),
        _ => return Err(bad_option(ctx)),
    };
    let value = if wanted {
        let mut list = Vec::new();
        for text in flags::names(mask) {
            list.push(ctx.atom(text)?);
        }
        ctx.list(list)
    } else {
        tracer
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
    beamr_vm::trace::to_self(ctx, message);
    Ok(r)
}

/// The flag of a token that an atom names.
fn seq_flag(ctx: &Ctx, w: Word) -> Option<u32> {
    let text = name(ctx, w)?;
    seq::FLAGS.iter().find(|f| f.0 == text).map(|f| f.1)
}

/// `seq_trace(Item, Value)`: the value before.
fn seq_trace_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let value = args[1];
    if let Some(flag) = seq_flag(ctx, args[0]) {
        return match value.as_boolean() {
            Some(on) => Ok(Word::boolean(seq::set_flag(ctx, flag, on))),
            None => Err(ctx.badarg()),
        };
    }
    match (name(ctx, args[0]), value.as_tuple()) {
        (Some("label"), _) => Ok(seq::set_label(ctx, value)),
        (Some("serial"), Some([last, serial])) if last.is_small() && serial.is_small() => {
            let (last, serial) = seq::set_serial(ctx, last.small_value(), serial.small_value());
            Ok(ctx.tuple(&[Word::fixnum(last), Word::fixnum(serial)]))
        }
        (Some("sequential_trace_token"), _) if value.is_nil() => {
            let before = match seq::token(ctx) {
                Some(t) => t.build(ctx),
                None => Word::NIL,
            };
            seq::clear(ctx);
            Ok(before)
        }
        _ => Err(ctx.badarg()),
    }
}

/// `seq_trace_info(Item)`.
fn seq_trace_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let flag = seq_flag(ctx, args[0]);
    let item = name(ctx, args[0]);
    let Some(token) = seq::token(ctx) else {
        return match item {
            _ if flag.is_some() || item == Some("spawn") => Ok(ctx.tuple(&[args[0], Word::FALSE])),
            Some("label" | "serial") => Ok(Word::NIL),
            _ => Err(ctx.badarg()),
        };
    };
    let value = match (flag, item) {
        (Some(flag), _) => Word::boolean(token.flags & flag != 0),
        (_, Some("label")) => {
            beamr_term::copy::copy(token.label(), ctx, beamr_term::copy::CopyMode::Share)
        }
        (_, Some("serial")) => ctx.tuple(&[Word::fixnum(token.last), Word::fixnum(token.serial)]),
        _ => return Err(ctx.badarg()),
    };
    Ok(ctx.tuple(&[args[0], value]))
}

/// `seq_trace_print(Message)`.
fn seq_trace_print_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(seq::print(ctx, None, args[0])))
}

/// `seq_trace_print(Label, Message)`.
fn seq_trace_print_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(seq::print(ctx, Some(args[0]), args[1])))
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
    row("seq_trace_print", 1, seq_trace_print_1),
    row("seq_trace_print", 2, seq_trace_print_2),
    internal("trace", 4, trace_4).releases(ReleaseSpan::since(27)),
    internal("trace_pattern", 4, trace_pattern_4).releases(ReleaseSpan::since(27)),
    internal("trace_info", 3, trace_info_3).releases(ReleaseSpan::since(27)),
    internal("trace_session_create", 3, session_create_3).releases(ReleaseSpan::since(27)),
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

/// `erts_internal:trace_session_create(Name, Tracer, Options)`.
fn session_create_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if let Some([module, _]) = args[1].as_tuple()
        && module.is_atom()
    {
        // Tracers that are native functions of C are not built.
        return Err(ctx.notsup());
    }
    let w = worker(ctx);
    let good = args[1].is_local_pid() && w.vm.trace.can_be_told(w, args[1]);
    let (Some(label), true, true) = (args[0].as_atom(), good, args[2].is_nil()) else {
        return Err(ctx.badarg());
    };
    let s = w.vm.trace.create(label, args[1]);
    let number = Word::fixnum(s.id as i64 - 1);
    let handle = resources::new(ctx, Handle(s));
    let weak = ctx.tuple(&[args[0], number]);
    Ok(ctx.tuple(&[handle, weak]))
}

/// `erts_internal:trace_session_destroy(Session)`: whether it was there.
fn session_destroy_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let well_formed = matches!(args[0].as_tuple(), Some([a, _]) if a.is_reference() || a.is_atom());
    match session(ctx, args[0]) {
        Ok(s) if s.id != 0 => {
            let w = worker(ctx);
            trace_calls::forget(ctx, &s);
            Ok(Word::boolean(w.vm.trace.destroy(w, &s)))
        }
        Err(_) if well_formed => {
            drop(ctx.take_pending());
            Ok(Word::FALSE)
        }
        _ => Err(ctx.badarg()),
    }
}

/// `erts_trace_cleaner:check()`: sessions are cleaned up where they end.
fn cleaner_check_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}

/// `erts_trace_cleaner:send_trace_clean_signal(Pid)`.
fn cleaner_signal_1(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}
