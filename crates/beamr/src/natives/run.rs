//! Running native functions of the embedding program: what the VM calls.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use beamr_abi::{Ctx, ErrorInfo, Escape, ExceptionClass, NativeClass, NativeEntry, Pending, Raise};
use beamr_term::{Build, Word, atoms};
use beamr_vm::host::{self, HostCall};
use beamr_vm::process::vm_of;
use beamr_vm::vm::HostNativeHook;

use super::error::ErrorKind;
use super::registry::Registered;
use super::{NativeCall, NativeError, NativeRegistry};
use crate::inside::Inside;
use crate::term::{Term, TermBuilder, atom};

/// The function that runs the registered ones.
pub(crate) fn hook(
    registry: &NativeRegistry,
    private: Option<Arc<dyn Any + Send + Sync>>,
) -> HostNativeHook {
    let functions: HashMap<usize, Registered> = registry
        .bound()
        .map(|(row, r)| (std::ptr::from_ref(row) as usize, r.clone()))
        .collect();
    Box::new(move |ctx, entry, args| {
        let key = std::ptr::from_ref(entry) as usize;
        match functions.get(&key) {
            Some(f) => run(ctx, entry, args, f, private.as_ref()),
            None => Err(ctx.notsup()),
        }
    })
}

fn run(
    ctx: &mut Ctx,
    entry: &'static NativeEntry,
    args: &[Word],
    function: &Registered,
    private: Option<&Arc<dyn Any + Send + Sync>>,
) -> Result<Word, Escape> {
    let dirty = matches!(entry.class, NativeClass::DirtyCpu | NativeClass::DirtyIo);
    let answer = if dirty {
        None
    } else {
        match host::host_call(ctx) {
            HostCall::None => None,
            HostCall::Waiting => return Err(ctx.escape(Pending::Wait)),
            HostCall::Done(answer) => Some(answer.ok_or("abandoned")),
            HostCall::TimedOut => Some(Err("timeout")),
        }
    };
    let _inside = (!dirty).then(Inside::enter);
    let vm = vm_of(ctx).clone();
    let ctx: *mut Ctx = ctx;
    // SAFETY: the context of the running native, which nobody else uses meanwhile. The lifetime is that of this frame: the closure is
    // general over it, so no term of this place gets out or into another.
    let mut call = unsafe { NativeCall::new(ctx, args, &vm, private, dirty) };
    call.answer = answer.map(|a| match a {
        // SAFETY: the answer was adopted by the process's heap.
        Ok(word) => read_answer(unsafe { Term::new(word, &vm.tables) }),
        Err(text) => Err(NativeError::error(atom(text))),
    });
    let outcome = catch_unwind(AssertUnwindSafe(|| (function.run)(&mut call)));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(NativeError::error((
            atom("panic"),
            text.unwrap_or_default(),
        )))
    });
    let begun = call.begun;
    if begun && !matches!(outcome, Err(NativeError(ErrorKind::Suspend))) {
        // SAFETY: as above.
        unsafe { host::abandon_host_call(&mut *ctx) };
    }
    match outcome {
        Ok(term) => Ok(term.word()),
        // SAFETY: as above.
        Err(NativeError(ErrorKind::Suspend)) if begun => unsafe {
            Err((*ctx).escape(Pending::Wait))
        },
        Err(e) => Err(raise(&call, ctx, e)),
    }
}

/// `{ok, Value}` or `{Class, Reason}`, see `completion::answer`.
fn read_answer(answer: Term<'_>) -> Result<Term<'_>, NativeError> {
    let (Some(tag), Some(value)) = (answer.element(0), answer.element(1)) else {
        return Err(NativeError::badarg());
    };
    let reason = value.to_owned();
    match tag.as_atom() {
        Some("ok") => Ok(value),
        Some("exit") => Err(NativeError::exit(reason)),
        Some("throw") => Err(NativeError::throw(reason)),
        _ => Err(NativeError::error(reason)),
    }
}

#[cold]
fn raise(to: &TermBuilder<'_>, ctx: *mut Ctx, error: NativeError) -> Escape {
    let (class, reason) = match error.0 {
        ErrorKind::Raise(class, reason) => (class, reason.make(to).map(Term::word)),
        // Nothing was begun that could end the sleep.
        ErrorKind::Suspend => (ExceptionClass::Error, Ok(atoms::BADARG.word())),
    };
    // SAFETY: the context of the running native.
    let ctx = unsafe { &mut *ctx };
    let reason = match reason {
        Ok(w) => w,
        Err(e) => {
            // A reason that is no term (too long an atom).
            let text = ctx.binary(e.to_string().as_bytes());
            ctx.tuple(&[atoms::BADARG.word(), text])
        }
    };
    ctx.raise(Raise {
        class,
        reason,
        info: ErrorInfo::Default,
        trace: Word::NONE,
        own_frame: class == ExceptionClass::Error,
        caller_args: Word::NONE,
    })
}
