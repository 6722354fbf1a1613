//! `process_flag(save_calls, N)`: the last calls of exported functions, sends, receives and timeouts.
//!
//! A process that saves calls runs with an export array in which nothing is defined ([`ModuleTable::no_exports`]): every
//! external call takes the way of a call of something that is not loaded yet, and is noted there. Other processes pay nothing.
//! Calls of natives are not noted.
//!
//! [`ModuleTable::no_exports`]: crate::code::ModuleTable::no_exports

use std::collections::VecDeque;

use beamr_abi::Ctx;
use beamr_term::{Alloc, Atom, Build, Word};

use super::{Process, process, slot_of};
use crate::trace::flags::SAVES_CALLS;

/// What was noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Saved {
    Call(Atom, Atom, u32),
    /// `send`, `receive`, `timeout`.
    Event(Atom),
}

/// The last calls of one process.
#[derive(Debug)]
pub struct SavedCalls {
    limit: usize,
    calls: VecDeque<Saved>,
}

impl SavedCalls {
    fn note(&mut self, what: Saved) {
        if self.calls.len() >= self.limit {
            self.calls.pop_front();
        }
        self.calls.push_back(what);
    }
    /// The list that `process_info(_, last_calls)` shows, the oldest first.
    pub(crate) fn list(&self, heap: &mut impl Alloc) -> Word {
        let mut list = Word::NIL;
        for c in self.calls.iter().rev() {
            let c = match c {
                Saved::Call(m, f, a) => {
                    heap.tuple(&[m.word(), f.word(), Word::fixnum(i64::from(*a))])
                }
                Saved::Event(a) => a.word(),
            };
            list = heap.cons(c, list);
        }
        list
    }
}

impl Process {
    /// Begins anew to save `n` calls, or stops (0): the number before. It is in force from when the process is switched in.
    pub(crate) fn save_calls(&mut self, n: usize) -> usize {
        let before = self.saved_calls().map_or(0, |s| s.limit);
        self.slot().tracing().set_bit(SAVES_CALLS, n > 0);
        if n > 0 || before > 0 {
            self.watched().saved_calls = (n > 0).then(|| SavedCalls {
                limit: n,
                calls: VecDeque::with_capacity(n),
            });
        }
        before
    }
}

/// Points the context of the running process to the exports that its calls are to find.
pub(crate) fn set_exports(ctx: &mut Ctx) {
    let modules = &slot_of(ctx).namespace.modules;
    ctx.exports = if process(ctx).saved_calls().is_some() {
        modules.no_exports()
    } else {
        modules.exports_ptr()
    };
}

/// Notes a call of the running process, if it saves calls.
#[inline]
pub(crate) fn called(ctx: &Ctx, module: Atom, function: Atom, arity: u32) {
    if let Some(s) = process(ctx).saved_calls() {
        s.note(Saved::Call(module, function, arity));
    }
}

/// Notes `send`, `receive` or `timeout`.
#[inline]
pub(crate) fn event(ctx: &Ctx, what: Atom) {
    if slot_of(ctx).tracing().is_observed()
        && let Some(s) = process(ctx).saved_calls()
    {
        s.note(Saved::Event(what));
    }
}
