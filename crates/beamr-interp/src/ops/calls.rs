//! Calls, returns, funs, apply.
//!
//! A call enters its callee: one reduction, and the slice ends when none is left, with the callee's
//! arguments live. Body calls push the address behind them first.

use std::sync::atomic::Ordering;

use beamr_term::{FunEntry, Subtag, Word};
use beamr_vm::engine::CodePos;
use beamr_vm::rt;

use crate::machine::{Kind, M, Place, STOP_EXITED, Slots, handlers};

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
        let t = rt::export_or_undefined(m.regs(), ip, m.uint(2) as u32, m.half(6));
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter_any(t.pos, t.live)
    }

    // ---- entry.
    /// Stands where a function jumps back to its beginning: the breakpoint slot, in front of that.
    fn enter_function(m) {
        m.next(1)
    }

    // ---- return.
    fn ret(m) {
        m.ret()
    }
    /// Half 4 slots.
    fn deallocate_return[N: Slots](m) {
        m.e = m.e.add(N::get(&m, 4));
        m.ret()
    }
    /// x0 is half 4 (constant in word 2).
    fn move_return[S: Kind](m) {
        let v = S::get(&m, 4, 2);
        m.set_x(0, v);
        m.ret()
    }
    /// x0 is half 4 (constant in word 2), half 5 slots.
    fn move_deallocate_return[S: Kind, N: Slots](m) {
        let v = S::get(&m, 4, 2);
        m.set_x(0, v);
        m.e = m.e.add(N::get(&m, 5));
        m.ret()
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
        if let Some(id) = rt::export_fun(fun, arity) {
            L::leave(&mut m, 6, words);
            m.save();
            let t = rt::export_or_undefined(m.regs(), ip, id, arity);
            if t.pos.is_null() {
                return m.stop(STOP_EXITED);
            }
            m.load();
            return m.enter_any(t.pos, t.live);
        }
        m.save();
        let t = rt::late_fun(m.regs(), ip, fun, arity);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        if m.x(0) == 0 {
            // Raised: this is a handler, and the stack is its frame.
            return m.go(t.pos);
        }
        L::leave(&mut m, 6, words);
        m.enter_any(t.pos, t.live)
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
        let t = rt::resolve_or_undefined(m.regs(), ip, module, function, arity);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter_any(t.pos, t.live)
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
        let t = rt::spread(m.regs(), ip);
        if t.pos.is_null() {
            return m.stop(STOP_EXITED);
        }
        m.load();
        m.enter_any(t.pos, t.live)
    }
    /// The fixed position `NormalExit`.
    fn normal_exit(m) {
        m.save();
        rt::normal_exit(m.regs());
        m.stop(STOP_EXITED)
    }
}

/// The position of an export in the process's namespace, or null.
#[inline(always)]
pub(crate) unsafe fn export(m: &M, id: usize) -> CodePos {
    (*(*m.p).ctx.exports.add(id))
        .load(Ordering::Acquire)
        .cast_const()
}

#[inline(never)]
unsafe fn raise_bad_apply(regs: &mut beamr_abi::Regs, ip: CodePos, arity: usize) -> CodePos {
    let list = regs.x[..arity].to_vec();
    let list = beamr_term::Build::list(&mut regs.ctx, list);
    let args = [regs.x[arity], regs.x[arity + 1], list];
    rt::apply_failed(regs, ip, beamr_term::atoms::BADARG, &args)
}
