//! Compiled match specifications as terms, and `erlang:match_spec_test/3`.

use beamr_abi::{Ctx, Escape, NativeEntry, TrapTarget};
use beamr_term::copy::{CopyMode, copy};
use beamr_term::{Build, Word, atoms};
use beamr_vm::match_spec::{
    Action, Dialect, Machine, MatchSpec, Source, SpecError, TraceHost, of_reference,
};
use beamr_vm::process::vm_of;

use super::long;
use crate::resources;
use crate::support::list_items;

/// Terms matched in one step of `match_spec_run_r`.
const STEP: usize = 1000;

/// Compiles a specification for a walk over a table, where one of no clauses matches nothing.
pub(super) fn compile_for_table(ctx: &mut Ctx, spec: Word) -> Result<MatchSpec, Escape> {
    if spec.is_nil() {
        return Ok(MatchSpec::nothing());
    }
    compile(ctx, spec)
}

/// Compiles a specification for tables; `badarg` or `system_limit`.
pub(super) fn compile(ctx: &mut Ctx, spec: Word) -> Result<MatchSpec, Escape> {
    match MatchSpec::compile(ctx, spec, Dialect::Table) {
        Ok(m) => Ok(m),
        Err(SpecError::Bad) => Err(ctx.badarg()),
        Err(SpecError::TooDeep) => Err(ctx.system_limit()),
    }
}

/// `ets:match_spec_compile(MatchSpec)`.
pub(super) fn match_spec_compile_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let spec = compile(ctx, args[0])?;
    Ok(resources::new(ctx, spec))
}

/// `ets:is_compiled_ms(Term)`.
pub(super) fn is_compiled_ms_1(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(of_reference(args[0]).is_some()))
}

/// `ets:match_spec_run_r(Terms, CompiledMatchSpec, Accumulator)`: results in front of the accumulator, the last first.
pub(super) fn match_spec_run_r_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut list, mut acc) = (args[0], args[2]);
    let Some(spec) = of_reference(args[1]).filter(|_| list.is_list()) else {
        return Err(ctx.badarg());
    };
    let mut machine = Machine::new(spec);
    let mut n = 0;
    while let Some((h, t)) = list.as_cons() {
        if n == STEP {
            ctx.bump(n as i64);
            return Err(ctx.trap(TrapTarget::Native(&RUN), &[list, args[1], acc]));
        }
        n += 1;
        if let Some(o) = machine.run(ctx, spec, Source::Term(h), None) {
            acc = ctx.cons(o.0, acc);
        }
        list = t;
    }
    ctx.bump(n as i64);
    if list.is_nil() {
        Ok(acc)
    } else {
        Err(ctx.badarg())
    }
}

static RUN: NativeEntry = long("match_spec_run_r", 3, match_spec_run_r_3);

/// What a trace specification does when it is only tested: notes what it would set, changes nothing.
#[derive(Default)]
struct TestHost {
    return_trace: bool,
    exception_trace: bool,
}

impl TraceHost for TestHost {
    fn action(&mut self, ctx: &mut Ctx, action: Action, args: &[Word]) -> Word {
        let failed = atoms::EXIT_UPPER.word();
        let control_word = |ctx: &mut Ctx| {
            let v = vm_of(ctx)
                .trace_control_word
                .load(std::sync::atomic::Ordering::Acquire);
            Word::fixnum(i64::from(v))
        };
        match action {
            Action::ReturnTrace => {
                self.return_trace = true;
                Word::TRUE
            }
            Action::ExceptionTrace => {
                self.exception_trace = true;
                Word::TRUE
            }
            Action::IsSeqTrace => Word::FALSE,
            Action::GetSeqToken => Word::NIL,
            Action::SetSeqToken => Word::NIL,
            Action::Caller | Action::CallerLine => atoms::UNDEFINED.word(),
            Action::CurrentStacktrace => Word::NIL,
            Action::Display | Action::Silent | Action::Message => Word::TRUE,
            Action::ProcessDump => ctx.binary(b""),
            Action::EnableTrace | Action::DisableTrace | Action::Trace => Word::TRUE,
            Action::GetTcw => control_word(ctx),
            Action::SetTcw => match args.first().and_then(|w| w.as_small()) {
                Some(n) if u32::try_from(n).is_ok() => control_word(ctx),
                _ => failed,
            },
        }
    }
}

/// `erlang:match_spec_test(MatchAgainst, MatchSpec, table | trace)`.
pub(super) fn match_spec_test_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let kind = args[2].as_atom().map(|a| ctx.tables().atoms.text(a));
    let trace = match kind {
        Some("trace") if args[0].is_list() => true,
        Some("table") => false,
        _ => return Err(ctx.badarg()),
    };
    let dialect = if trace {
        Dialect::Trace {
            call: true,
            actions: true,
        }
    } else {
        Dialect::Table
    };
    let (spec, errors) = MatchSpec::lint(ctx, args[1], dialect);
    let mut lint = Word::NIL;
    for text in errors.iter().rev() {
        // OTP gives bytes of UTF-8.
        let text = ctx.list(text.bytes().map(|b| Word::fixnum(i64::from(b))));
        let e = ctx.tuple(&[atoms::ERROR.word(), text]);
        lint = ctx.cons(e, lint);
    }
    let Some(spec) = spec else {
        return Ok(ctx.tuple(&[atoms::ERROR.word(), lint]));
    };
    let mut machine = Machine::new(&spec);
    let mut host = TestHost::default();
    let result = if trace {
        let items = list_items(ctx, args[0])?;
        let tuple = if items.is_empty() {
            beamr_term::empty_tuple()
        } else {
            ctx.tuple(&items)
        };
        machine.run(
            ctx,
            &spec,
            Source::Arguments(tuple, args[0]),
            Some(&mut host),
        )
    } else {
        machine.run(ctx, &spec, Source::Term(args[0]), None)
    };
    let value = result.map_or(Word::FALSE, |o| copy(o.0, ctx, CopyMode::Share));
    let mut flags = Word::NIL;
    if host.exception_trace && result.is_some() {
        let a = ctx.atom("exception_trace")?;
        flags = ctx.cons(a, flags);
    }
    if host.return_trace && result.is_some() {
        let a = ctx.atom("return_trace")?;
        flags = ctx.cons(a, flags);
    }
    Ok(ctx.tuple(&[atoms::OK.word(), value, flags, lint]))
}
