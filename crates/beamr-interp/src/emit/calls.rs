//! Calls, returns, natives, exceptions.

use beamr_abi::NativeEntry;
use beamr_vm::lower::op::{CallKind, Op, Src};
use beamr_vm::rt;

use super::code::{Constants, Emitter, by_kind, by_leave, by_src};
use crate::machine::Handler;
use crate::ops::{calls, exceptions, natives};
use crate::{statics, stubs};

/// `func_info`.
pub(super) fn func_info(e: &mut Emitter<'_>, function: u32) {
    let arity = e
        .module
        .functions
        .get(function as usize)
        .map_or(0, |f| f.arity as usize);
    let arity = e.narrow(arity);
    e.function(function);
    e.op(exceptions::func_info);
    e.halves(arity, 0, 0, 0);
}

fn slots(kind: CallKind) -> u16 {
    match kind {
        CallKind::Last(n) => n,
        _ => 0,
    }
}

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::Call {
            target,
            arity,
            kind,
        } => {
            e.op(by_kind!(*kind, L => calls::call::<L>));
            e.address(*target);
            e.halves(*arity, slots(*kind), 0, 0);
        }
        Op::CallExt {
            export,
            arity,
            kind,
        } => {
            e.op(by_kind!(*kind, L => calls::call_ext::<L>));
            e.word(u64::from(*export) | u64::from(*arity) << 32 | u64::from(slots(*kind)) << 48);
        }
        Op::CallNative { native, kind, .. } => call_native(e, native, *kind),
        Op::CallFun { arity, kind } => call_fun(e, *arity, Src::X(*arity), *kind),
        Op::CallFun2 {
            arity, fun, kind, ..
        } => call_fun(e, *arity, *fun, *kind),
        Op::Apply { arity, kind } => {
            e.op(by_leave!(*kind, L => calls::apply::<L>));
            e.halves(*arity, slots(*kind), 0, 0);
        }
        Op::Return => e.op(calls::ret),
        Op::Enter => e.op(calls::enter_function),
        Op::Catch { y, handler } | Op::Try { y, handler } => {
            let tag = e.catch_tag(*handler);
            e.op(exceptions::catch);
            e.halves(*y, 0, 0, 0);
            e.word(tag.bits());
        }
        Op::CatchEnd { y } => {
            e.op(exceptions::catch_end);
            e.halves(*y, 0, 0, 0);
        }
        Op::TryEnd { y } => {
            e.op(exceptions::try_end);
            e.halves(*y, 0, 0, 0);
        }
        Op::TryCase { y } => {
            e.op(exceptions::try_case);
            e.halves(*y, 0, 0, 0);
        }
        Op::Badmatch { src } => tagged(e, *src, 0),
        Op::CaseEnd { src } => tagged(e, *src, 1),
        Op::TryCaseEnd { src } => tagged(e, *src, 2),
        Op::BadRecord { src } => tagged(e, *src, 3),
        Op::IfEnd => e.op(exceptions::if_end),
        Op::RaiseOld { trace, value } => {
            let mut c = Constants::from(2);
            let (v, t) = (e.src(*value, &mut c), e.src(*trace, &mut c));
            e.op(exceptions::raise_old);
            e.halves(v, t, 0, 0);
            e.constants(c);
        }
        Op::RawRaise => e.op(exceptions::raw_raise),
        Op::BuildStacktrace => e.op(exceptions::build_stacktrace),
        Op::Send => call_native(e, &statics::BANG, CallKind::Body),
        _ => return None,
    }
    Some(1)
}

fn tagged(e: &mut Emitter<'_>, src: Src, which: u16) {
    let mut c = Constants::from(2);
    let s = e.src(src, &mut c);
    e.op(exceptions::error_tagged);
    e.halves(s, which, 0, 0);
    e.constants(c);
}

fn call_native(e: &mut Emitter<'_>, native: &'static NativeEntry, kind: CallKind) {
    let h: Handler = if rt::is_dirty(native) {
        by_leave!(kind, L => natives::call_dirty::<L>)
    } else if native.host {
        by_leave!(kind, L => natives::call_host::<L>)
    } else if rt::polls(native) {
        by_leave!(kind, L => natives::call_native_polled::<L>)
    } else {
        by_leave!(kind, L => natives::call_native::<L>)
    };
    e.op(h);
    e.native_call(kind);
    for w in stubs::native_words(native, slots(kind)) {
        e.word(w);
    }
}

fn call_fun(e: &mut Emitter<'_>, arity: u16, fun: Src, kind: CallKind) {
    let mut c = Constants::from(2);
    let f = e.src(fun, &mut c);
    e.op(by_leave!(kind, L => by_src!(fun, S => calls::call_fun::<S, L>)));
    e.halves(f, arity, slots(kind), 0);
    e.constants(c);
    e.set_len(7);
}
