//! `erlang`: raising: `error`, `exit/1`, `throw`, `raise`, `nif_error`.

use std::sync::atomic::Ordering::Relaxed;

use beamr_abi::{Ctx, ErrorInfo, Escape, ExceptionClass, NativeEntry, NativeFn, Raise};
use beamr_term::{Build, Word, atoms, text};
use beamr_vm::process::vm_of;

use crate::support::list_items;

fn raise(ctx: &mut Ctx, class: ExceptionClass, reason: Word, caller_args: Word) -> Escape {
    ctx.raise(Raise {
        class,
        reason,
        info: ErrorInfo::None,
        trace: Word::NONE,
        own_frame: false,
        caller_args,
    })
}

/// `error(Reason)`.
fn error_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Err(raise(ctx, ExceptionClass::Error, args[0], Word::NONE))
}

/// `nif_error(Reason)`, `nif_error(Reason, Args)`: as `error`, with a frame of its own.
fn nif_error(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Err(ctx.error(args[0]))
}

/// `error(Reason, Args)`.
fn error_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let caller = if args[1].as_atom() == Some(atoms::NONE) {
        Word::NONE
    } else {
        args[1]
    };
    Err(raise(ctx, ExceptionClass::Error, args[0], caller))
}

/// `error(Reason, Args, Options)`: the only option is `{error_info, Map}`.
fn error_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut info = ErrorInfo::None;
    // What is no option is passed over, as OTP does.
    for option in text::list_iter(args[2]) {
        if let Some([tag, map]) = option.as_tuple()
            && tag.as_atom() == Some(atoms::ERROR_INFO)
            && map.is_map()
        {
            // Without a frame of the native this is the whole map.
            info = ErrorInfo::Cause(*map);
        }
    }
    let caller_args = if args[1].as_atom() == Some(atoms::NONE) {
        Word::NONE
    } else {
        args[1]
    };
    Err(ctx.raise(Raise {
        class: ExceptionClass::Error,
        reason: args[0],
        info,
        trace: Word::NONE,
        own_frame: false,
        caller_args,
    }))
}

/// `exit(Reason)`.
fn exit_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Err(raise(ctx, ExceptionClass::Exit, args[0], Word::NONE))
}

/// `throw(Value)`.
fn throw_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Err(raise(ctx, ExceptionClass::Throw, args[0], Word::NONE))
}

/// Whether a term has the form of a stack trace that `raise/3` accepts.
fn is_stacktrace(ctx: &mut Ctx, trace: Word) -> bool {
    let Ok(items) = list_items(ctx, trace) else {
        return false;
    };
    items.iter().all(|item| match item.as_tuple() {
        Some([m, f, a]) if m.is_atom() && f.is_atom() => {
            a.is_list() || a.as_small().is_some_and(|n| n >= 0)
        }
        Some([fun, a]) if fun.is_fun() => a.is_list() || a.as_small().is_some_and(|n| n >= 0),
        Some([fun, a, loc]) if fun.is_fun() => {
            (a.is_list() || a.as_small().is_some_and(|n| n >= 0)) && loc.is_list()
        }
        Some([m, f, a, loc]) if m.is_atom() && f.is_atom() => {
            (a.is_list() || a.as_small().is_some_and(|n| n >= 0)) && loc.is_list()
        }
        _ => false,
    })
}

/// `raise(Class, Reason, Stacktrace)`: gives `badarg` as a value when the arguments are no exception.
fn raise_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let class = match args[0].as_atom() {
        Some(atoms::ERROR) => ExceptionClass::Error,
        Some(atoms::EXIT) => ExceptionClass::Exit,
        Some(atoms::THROW) => ExceptionClass::Throw,
        _ => return Ok(atoms::BADARG.word()),
    };
    if !is_stacktrace(ctx, args[2]) {
        ctx.take_pending();
        return Ok(atoms::BADARG.word());
    }
    let depth = vm_of(ctx).server.backtrace_depth.load(Relaxed).max(1);
    let mut frames = text::list_to_vec(args[2]).unwrap_or_default();
    frames.truncate(depth);
    for f in &mut frames {
        // A frame without a place gets an empty one.
        if let Some(t @ ([_, _, _] | [_, _])) = f.as_tuple()
            && (t.len() == 3) != t[0].is_fun()
        {
            let mut whole = t.to_vec();
            whole.push(Word::NIL);
            *f = ctx.tuple(&whole);
        }
    }
    let trace = ctx.list(frames);
    Err(ctx.raise(Raise {
        class,
        reason: args[1],
        info: ErrorInfo::None,
        trace,
        own_frame: false,
        caller_args: Word::NONE,
    }))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("error", 1, error_1),
    row("error", 2, error_2),
    row("error", 3, error_3),
    row("exit", 1, exit_1),
    row("throw", 1, throw_1),
    row("raise", 3, raise_3),
    row("nif_error", 1, nif_error),
    row("nif_error", 2, nif_error),
];
