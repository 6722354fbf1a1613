//! Calls, returns, funs, apply.
//!
//! A call enters its callee: one reduction, and the slice ends when none is left, with the callee's
//! arguments live. Body calls push the address behind them first.

use std::sync::atomic::Ordering;

use beamr_term::{FunEntry, Subtag, Word};
use beamr_vm::engine::CodePos;
use beamr_vm::rt;

use crate::machine::{Kind, M, Place, STOP_EXITED, Slots, handlers, plain_error};
use crate::ops::exceptions::raise_at;

/// How a call leaves its caller, as a type parameter. `SLOTS` is the half with the frame's size.
pub(crate) trait Leave {
    /// Prepares the stack; the instruction has `words` words.
    unsafe fn leave(m: &mut M, slots: usize, words: usize);
    /// Body call?
    const BODY: bool;
}
/// Returns behind the call.
pub(crate) struct Body;
/// Gives back the frame.
pub(crate) struct Last<S>(std::marker::PhantomData<S>);
/// Has no frame.
pub(crate) struct Only;
impl Leave for Body {
    const BODY: bool = true;
    #[inline(always)]
    unsafe fn leave(m: &mut M, _: usize, words: usize) {
        m.push(m.ip.add(words));
    }
}
impl<S: Slots> Leave for Last<S> {
    const BODY: bool = false;
    #[inline(always)]
    unsafe fn leave(m: &mut M, slots: usize, _: usize) {
        m.e = m.e.add(S::get(m, slots));
    }
}
impl Leave for Only {
    const BODY: bool = false;
    #[inline(always)]
    unsafe fn leave(_: &mut M, _: usize, _: usize) {}
}

handlers! {
    // ---- local calls: word 1 address, half 8 arity, 9 slots.
    fn call[L: Leave](m) {
        let to = m.address(1);
        let live = m.half(8);
        L::leave(&mut m, 9, 3);
        m.enter(to, live)
    }
    /// A move before it: half 10 source, 11 destination; constant in word 3.
    fn move_call[S: Kind, D: Place, L: Leave](m) {
        let v = S::get(&m, 10, 3);
        D::set(&m, 11, v);
        let to = m.address(1);
        let live = m.half(8);
        L::leave(&mut m, 9, 3 + S::WORDS);
        m.enter(to, live)
    }
    /// Two moves before it: halves 10 to 11, 12 to 13.
    fn move2_call[S: Kind, D: Place, T: Kind, E: Place, L: Leave](m) {
        let v = S::get(&m, 10, 0);
        D::set(&m, 11, v);
        let v = T::get(&m, 12, 0);
        E::set(&m, 13, v);
        let to = m.address(1);
        let live = m.half(8);
        L::leave(&mut m, 9, 4);
        m.enter(to, live)
    }

    // ---- exported functions: pair 2 export id, half 6 arity, 7 slots.
    fn call_ext[L: Leave](m) {
        let to = export(&m, m.uint(2));
        if to.is_null() {
            return m.slow(call_ext_unresolved::<L>);
        }
        let live = m.half(6);
        L::leave(&mut m, 7, 2);
        m.enter(to, live)
    }
    #[cold]
    #[inline(never)]
    fn call_ext_unresolved[L: Leave](m) {
        let ip = m.ip;
        L::leave(&mut m, 7, 2);
        m.save();
        let t = export_or_undefined(m.regs(), ip, m.uint(2) as u32, m.half(6));
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter(t.pos, t.live)
    }

    // ---- return.
    fn ret(m) {
        let to = m.pop();
        m.jump(to)
    }
    /// Half 4 slots.
    fn deallocate_return[N: Slots](m) {
        m.e = m.e.add(N::get(&m, 4));
        let to = m.pop();
        m.jump(to)
    }
    /// x0 is half 4 (constant in word 2).
    fn move_return[S: Kind](m) {
        let v = S::get(&m, 4, 2);
        m.set_x(0, v);
        let to = m.pop();
        m.jump(to)
    }
    /// x0 is half 4 (constant in word 2), half 5 slots.
    fn move_deallocate_return[S: Kind, N: Slots](m) {
        let v = S::get(&m, 4, 2);
        m.set_x(0, v);
        m.e = m.e.add(N::get(&m, 5));
        let to = m.pop();
        m.jump(to)
    }

    // ---- funs: half 4 fun, 5 arity, 6 slots, 7 words.
    fn call_fun[S: Kind, L: Leave](m) {
        let fun = S::get(&m, 4, 2);
        let arity = m.half(5);
        if fun & 3 != 2 {
            return m.slow(call_fun_slow::<L>);
        }
        let object = (fun as usize as *const u64).byte_sub(2);
        let header = *object;
        if header & 0x3C != (Subtag::Fun as u64) << 2 {
            return m.slow(call_fun_slow::<L>);
        }
        let entry = *object.add(1) as usize as *const FunEntry;
        let code = (*entry).code.load(Ordering::Acquire).cast_const();
        if (*entry).arity as usize != arity || code.is_null() {
            return m.slow(call_fun_slow::<L>);
        }
        let free = (header >> 6) as usize - 1;
        for i in 0..free {
            m.set_x(arity + i, *object.add(2 + i));
        }
        L::leave(&mut m, 6, 2 + S::WORDS);
        m.enter(code, arity + free)
    }
    /// Export funs, funs of modules that are not loaded, what is no fun.
    #[cold]
    #[inline(never)]
    fn call_fun_slow[L: Leave](m) {
        let ip = m.ip;
        let fun = m.any_word(m.half(4));
        let arity = m.half(5);
        let words = m.half(7);
        if let Some(id) = export_fun(fun, arity) {
            L::leave(&mut m, 6, words);
            m.save();
            let t = export_or_undefined(m.regs(), ip, id, arity);
            if t.pos.is_null() {
                return m.stop(STOP_EXITED);
            }
            m.load();
            return m.enter(t.pos, t.live);
        }
        m.save();
        let t = late_fun(m.regs(), ip, fun, arity);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        if m.x(0) == 0 {
            // Raised: this is a handler, and the stack is its frame.
            return m.jump(t.pos);
        }
        L::leave(&mut m, 6, words);
        m.enter(t.pos, t.live)
    }

    // ---- apply: half 4 arity, 5 slots.
    fn apply[L: Leave](m) {
        let ip = m.ip;
        let arity = m.half(4);
        let module = Word::from_bits(m.x(arity));
        let function = Word::from_bits(m.x(arity + 1));
        if !module.is_atom() || !function.is_atom() {
            return m.slow(bad_apply);
        }
        L::leave(&mut m, 5, 2);
        m.save();
        let t = resolve_or_undefined(m.regs(), ip, module, function, arity);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter(t.pos, t.live)
    }
    /// `erlang:apply(Module, Function, Args)` with something else than atoms.
    #[cold]
    #[inline(never)]
    fn bad_apply(m) {
        m.save();
        let pos = raise_bad_apply(m.regs(), m.ip, m.half(4));
        m.resume(pos)
    }
    /// The fixed position `Apply`: x0:x1 with the list x2.
    fn apply_list(m) {
        m.save();
        let ip = m.ip;
        let t = spread(m.regs(), ip);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter(t.pos, t.live)
    }
    /// The fixed position `NormalExit`.
    fn normal_exit(m) {
        m.save();
        rt::normal_exit(m.regs());
        m.stop(STOP_EXITED)
    }
}

pub(crate) use rt::Target;

/// The position of an export in the process's namespace, or null.
#[inline(always)]
pub(crate) unsafe fn export(m: &M, id: usize) -> CodePos {
    (*(*m.p).ctx.exports.add(id))
        .load(Ordering::Acquire)
        .cast_const()
}

/// The position of an export, loading or calling the error handler when need be. Registers are
/// saved, and the return address is on the stack.
#[inline(never)]
pub(crate) unsafe fn export_or_undefined(
    regs: &mut beamr_abi::Regs,
    ip: CodePos,
    id: u32,
    arity: usize,
) -> Target {
    let pos = (*regs.ctx.exports.add(id as usize))
        .load(Ordering::Acquire)
        .cast_const();
    if !pos.is_null() {
        return Target { pos, live: arity };
    }
    let pos = rt::resolve_export(regs, id);
    if !pos.is_null() {
        return Target { pos, live: arity };
    }
    match regs.ctx.tables().exports.mfa(id) {
        Some((m, f, a)) => rt::undefined(regs, ip, m.word(), f.word(), a as usize),
        None => Target::raised(raise_at(
            regs,
            ip,
            plain_error(beamr_term::atoms::UNDEF.word()),
        )),
    }
}

/// The position of a function by name; as [`export_or_undefined`].
#[inline(never)]
unsafe fn resolve_or_undefined(
    regs: &mut beamr_abi::Regs,
    ip: CodePos,
    module: Word,
    function: Word,
    arity: usize,
) -> Target {
    let pos = rt::resolve(regs, module, function, arity);
    if pos.is_null() {
        return rt::undefined(regs, ip, module, function, arity);
    }
    Target { pos, live: arity }
}

/// The export id of `fun M:F/A` with this arity.
unsafe fn export_fun(fun: Word, arity: usize) -> Option<u32> {
    (fun.subtag() == Some(Subtag::Export) && fun.term_field(4).small_value() as usize == arity)
        .then(|| fun.term_field(1).small_value() as u32)
}

/// A call of a fun that has no code yet, has another arity, or is no fun. After an exception x0 is
/// [`Word::NONE`]; registers are saved, no return address is pushed.
#[inline(never)]
pub(crate) unsafe fn late_fun(
    regs: &mut beamr_abi::Regs,
    ip: CodePos,
    fun: Word,
    arity: usize,
) -> Target {
    if arity == 0 {
        regs.x[0] = Word::NIL;
    }
    rt::bad_fun(regs, ip, fun, arity)
}

/// Whether [`fun_target`] finds code (or a function that is undefined) without an exception.
pub(crate) unsafe fn is_callable(fun: Word, arity: usize) -> bool {
    if fun.subtag() == Some(Subtag::Fun) {
        let entry = &*(fun.field(1) as usize as *const FunEntry);
        return entry.arity as usize == arity && !entry.code.load(Ordering::Acquire).is_null();
    }
    export_fun(fun, arity).is_some()
}

/// Where a trap to `fun` goes. Registers are saved, the return address is on the stack.
#[inline(never)]
pub(crate) unsafe fn fun_target(
    regs: &mut beamr_abi::Regs,
    ip: CodePos,
    fun: Word,
    arity: usize,
) -> Target {
    if let Some(id) = export_fun(fun, arity) {
        return export_or_undefined(regs, ip, id, arity);
    }
    if fun.subtag() == Some(Subtag::Fun) {
        let entry = &*(fun.field(1) as usize as *const FunEntry);
        let code = entry.code.load(Ordering::Acquire).cast_const();
        if entry.arity as usize == arity && !code.is_null() {
            let free = fun.header().arity() - 1;
            for i in 0..free {
                regs.x[arity + i] = fun.term_field(2 + i);
            }
            return Target {
                pos: code,
                live: arity + free,
            };
        }
    }
    late_fun(regs, ip, fun, arity)
}

unsafe fn apply_failed(
    regs: &mut beamr_abi::Regs,
    ip: CodePos,
    reason: beamr_term::Atom,
    args: &[Word],
) -> CodePos {
    let mut r = plain_error(reason.word());
    r.own_frame = true;
    r.info = beamr_abi::ErrorInfo::Default;
    rt::raise(regs, ip, r, Some(&crate::statics::APPLY), Some(args))
}

#[inline(never)]
unsafe fn raise_bad_apply(regs: &mut beamr_abi::Regs, ip: CodePos, arity: usize) -> CodePos {
    let list = regs.x[..arity].to_vec();
    let list = beamr_term::Build::list(&mut regs.ctx, list);
    let args = [regs.x[arity], regs.x[arity + 1], list];
    apply_failed(regs, ip, beamr_term::atoms::BADARG, &args)
}

/// Puts the list x2 into x0.. and gives the position of x0:x1.
#[inline(never)]
unsafe fn spread(regs: &mut beamr_abi::Regs, ip: CodePos) -> Target {
    let (module, function, mut list) = (regs.x[0], regs.x[1], regs.x[2]);
    let args = [module, function, list];
    let mut n = 0;
    // x255 is the last argument that a function can have.
    while let Some((h, t)) = list.as_cons() {
        if n > 255 {
            break;
        }
        regs.x[n] = h;
        n += 1;
        list = t;
    }
    let too_many = list.is_cons();
    if !module.is_atom() || !function.is_atom() || !list.is_nil() {
        let reason = if too_many {
            beamr_term::atoms::SYSTEM_LIMIT
        } else {
            beamr_term::atoms::BADARG
        };
        return Target::raised(apply_failed(regs, ip, reason, &args));
    }
    let pos = rt::resolve(regs, module, function, n);
    if pos.is_null() {
        return rt::undefined(regs, ip, module, function, n);
    }
    Target { pos, live: n }
}
