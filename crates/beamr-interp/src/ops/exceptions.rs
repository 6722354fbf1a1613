//! Raising, catching, error instructions, breakpoints.

use beamr_abi::{ErrorInfo, ExceptionClass, Raise, Regs};
use beamr_term::{Atom, Build, Word, atoms};
use beamr_vm::engine::CodePos;
use beamr_vm::rt;

use crate::machine::{handlers, plain_error};

/// Raises at `ip` without a native's frame.
#[inline(never)]
pub(crate) unsafe fn raise_at(regs: &mut Regs, ip: CodePos, raise: Raise) -> CodePos {
    rt::raise(regs, ip, raise, None, None)
}

/// Raises an error of this reason at `ip`.
#[inline(never)]
pub(crate) unsafe fn raise_reason(regs: &mut Regs, ip: CodePos, reason: Atom) -> CodePos {
    rt::raise(regs, ip, plain_error(reason.word()), None, None)
}

/// `badmatch` and its kin, by the number in the instruction.
pub(crate) const TAGGED: [beamr_term::Atom; 4] = [
    atoms::BADMATCH,
    atoms::CASE_CLAUSE,
    atoms::TRY_CLAUSE,
    atoms::BADRECORD,
];

#[inline(never)]
unsafe fn raise_tagged(regs: &mut Regs, ip: CodePos, which: usize, value: Word) -> CodePos {
    let reason = regs.ctx.tuple(&[TAGGED[which & 3].word(), value]);
    raise_at(regs, ip, plain_error(reason))
}

#[inline(never)]
unsafe fn function_clause(regs: &mut Regs, ip: CodePos, arity: usize) -> CodePos {
    let args = regs.x[..arity].to_vec();
    rt::raise(
        regs,
        ip,
        plain_error(atoms::FUNCTION_CLAUSE.word()),
        None,
        Some(&args),
    )
}

#[inline(never)]
unsafe fn raw_raise_step(regs: &mut Regs, ip: CodePos) -> CodePos {
    let class = match regs.x[0].as_atom() {
        Some(atoms::ERROR) => ExceptionClass::Error,
        Some(atoms::EXIT) => ExceptionClass::Exit,
        Some(atoms::THROW) => ExceptionClass::Throw,
        _ => return std::ptr::null(),
    };
    let raise = Raise {
        class,
        reason: regs.x[1],
        info: ErrorInfo::None,
        trace: regs.x[2],
        own_frame: false,
        caller_args: Word::NONE,
    };
    raise_at(regs, ip, raise)
}

#[inline(never)]
unsafe fn raise_old_step(regs: &mut Regs, ip: CodePos, value: Word, trace: Word) -> CodePos {
    rt::reraise(regs, ip, value, trace)
}

handlers! {
    /// `badarg` at this instruction.
    #[cold]
    #[inline(never)]
    fn badarg(m) {
        m.save();
        let pos = raise_reason(m.regs(), m.ip, atoms::BADARG);
        m.resume(pos)
    }
    /// `system_limit` at this instruction.
    #[cold]
    #[inline(never)]
    fn system_limit(m) {
        m.save();
        let pos = raise_reason(m.regs(), m.ip, atoms::SYSTEM_LIMIT);
        m.resume(pos)
    }
    /// `badarith` at this instruction.
    #[cold]
    #[inline(never)]
    fn badarith(m) {
        m.save();
        let pos = raise_reason(m.regs(), m.ip, atoms::BADARITH);
        m.resume(pos)
    }
    /// Half 4 value, 5 which (see [`TAGGED`]).
    fn error_tagged(m) {
        m.save();
        let pos = raise_tagged(m.regs(), m.ip, m.half(5), m.any_word(m.half(4)));
        m.resume(pos)
    }
    fn if_end(m) {
        m.save();
        let pos = raise_reason(m.regs(), m.ip, atoms::IF_CLAUSE);
        m.resume(pos)
    }
    /// Half 4 arity.
    fn func_info(m) {
        m.save();
        let pos = function_clause(m.regs(), m.ip, m.half(4));
        m.resume(pos)
    }
    /// Half 4 value, 5 trace.
    fn raise_old(m) {
        m.save();
        let (value, trace) = (m.any_word(m.half(4)), m.any_word(m.half(5)));
        let pos = raise_old_step(m.regs(), m.ip, value, trace);
        m.resume(pos)
    }
    fn raw_raise(m) {
        m.save();
        let pos = raw_raise_step(m.regs(), m.ip);
        if pos.is_null() && !is_class(m.x(0)) {
            m.set_x(0, atoms::BADARG.word().bits());
            return m.next(1);
        }
        m.resume(pos)
    }

    /// Half 4 slot; word 2 catch tag.
    fn catch(m) {
        (*m.body()).catches += 1;
        *m.e.add(m.half(4)) = m.word(2);
        m.next(3)
    }
    /// Half 4 slot.
    fn catch_end(m) {
        (*m.body()).catches -= 1;
        *m.e.add(m.half(4)) = Word::NIL.bits();
        if m.x(0) == 0 {
            return m.slow(catch_end_caught);
        }
        m.next(2)
    }
    #[cold]
    #[inline(never)]
    fn catch_end_caught(m) {
        m.save();
        let value = rt::catch_value(m.regs());
        m.load();
        m.set_x(0, value.bits());
        m.next_collected(2, 1)
    }
    /// Half 4 slot.
    fn try_end(m) {
        (*m.body()).catches -= 1;
        *m.e.add(m.half(4)) = Word::NIL.bits();
        m.next(2)
    }
    /// Half 4 slot.
    fn try_case(m) {
        (*m.body()).catches -= 1;
        *m.e.add(m.half(4)) = Word::NIL.bits();
        let (class, value, trace) = (m.x(1), m.x(2), m.x(3));
        m.set_x(0, class);
        m.set_x(1, value);
        m.set_x(2, trace);
        m.next(2)
    }
    fn build_stacktrace(m) {
        m.save();
        let raw = Word::from_bits(m.x(0));
        let list = rt::build_stacktrace(&mut (*m.p).ctx, raw);
        m.load();
        m.set_x(0, list.bits());
        m.next_collected(1, 1)
    }
}

fn is_class(w: u64) -> bool {
    [atoms::ERROR, atoms::EXIT, atoms::THROW]
        .iter()
        .any(|a| a.word().bits() == w)
}
