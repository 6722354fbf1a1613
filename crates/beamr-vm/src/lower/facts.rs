//! Flow analyses inside one function.
//!
//! * [`uncheck`]: in untrusted code every type-dependent read starts out checked. A forward analysis
//!   of what each register must hold drops the checks that tests, constructions and earlier checks
//!   make superfluous. Whatever it does not know stays checked, so it may be ignorant but never wrong.
//! * [`find_live`]: old appends (`bs_private_append`) do not say which X registers are live, because they
//!   never collected. A forward analysis of the registers that hold a value on every path answers that.
//!
//! Both walk the ops in code order and repeat while a backward jump changes what is known at
//! a label that was passed (receive loops; rare elsewhere).

use std::collections::HashMap;

use beamr_term::{Header, Subtag, Word};

use super::error::LowerFault;
use super::op::{Label, NO_LABEL, Op, Reg, Src, TypeTest};
use super::visit::Flow;

/// What a register must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fact {
    Cons,
    /// A tuple of at least this many elements.
    TupleMin(u32),
    /// A tuple of exactly this many elements.
    Tuple(u32),
    Map,
    Context,
    Float,
}

impl Fact {
    /// What both say.
    fn join(self, other: Fact) -> Option<Fact> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Fact::Tuple(a) | Fact::TupleMin(a), Fact::Tuple(b) | Fact::TupleMin(b)) => {
                Some(Fact::TupleMin(a.min(b)))
            }
            _ => None,
        }
    }

    fn of_constant(w: Word) -> Option<Fact> {
        if w.is_cons() {
            return Some(Fact::Cons);
        }
        if !w.is_boxed() {
            return None;
        }
        let header: Header = w.header();
        match header.subtag() {
            Subtag::Tuple => Some(Fact::Tuple(header.arity() as u32)),
            Subtag::FlatMap | Subtag::HashMap => Some(Fact::Map),
            Subtag::Float => Some(Fact::Float),
            _ => None,
        }
    }
}

/// The facts at one point; a register that is not listed may hold anything.
#[derive(Clone, PartialEq, Debug, Default)]
struct Facts(Vec<(Reg, Fact)>);

impl Facts {
    fn get(&self, reg: Reg) -> Option<Fact> {
        self.0.iter().find(|(r, _)| *r == reg).map(|(_, f)| *f)
    }
    fn of(&self, src: Src) -> Option<Fact> {
        match src {
            Src::X(n) => self.get(Reg::X(n)),
            Src::Y(n) => self.get(Reg::Y(n)),
            Src::Const(w) => Fact::of_constant(w),
        }
    }
    fn kill(&mut self, reg: Reg) {
        if let Some(i) = self.0.iter().position(|(r, _)| *r == reg) {
            self.0.swap_remove(i);
        }
    }
    fn set(&mut self, reg: Reg, fact: Option<Fact>) {
        self.kill(reg);
        if let Some(fact) = fact {
            self.0.push((reg, fact));
        }
    }
    fn learn(&mut self, src: Src, fact: Fact) {
        if let Some(reg) = src_reg(src) {
            // An exact size is not given up for a least one.
            match (self.get(reg), fact) {
                (Some(Fact::Tuple(_)), Fact::TupleMin(_)) => {}
                (Some(Fact::TupleMin(known)), Fact::TupleMin(n)) => {
                    self.set(reg, Some(Fact::TupleMin(known.max(n))));
                }
                _ => self.set(reg, Some(fact)),
            }
        }
    }
    fn kill_x(&mut self) {
        self.0.retain(|(r, _)| matches!(r, Reg::Y(_)));
    }
    fn kill_y(&mut self) {
        self.0.retain(|(r, _)| matches!(r, Reg::X(_)));
    }
    fn trim(&mut self, words: u16) {
        self.0.retain_mut(|(r, _)| match r {
            Reg::Y(n) if *n < words => false,
            Reg::Y(n) => {
                *n -= words;
                true
            }
            Reg::X(_) => true,
        });
    }
    /// Keeps what `other` says too; whether anything changed.
    fn join(&mut self, other: &Facts) -> bool {
        let before = self.0.len();
        let mut weaker = false;
        self.0
            .retain_mut(|(r, f)| match other.get(*r).and_then(|o| f.join(o)) {
                Some(j) => {
                    weaker |= j != *f;
                    *f = j;
                    true
                }
                None => false,
            });
        weaker || self.0.len() != before
    }
}

fn src_reg(src: Src) -> Option<Reg> {
    match src {
        Src::X(n) => Some(Reg::X(n)),
        Src::Y(n) => Some(Reg::Y(n)),
        Src::Const(_) => None,
    }
}

fn reg_src(reg: Reg) -> Src {
    match reg {
        Reg::X(n) => Src::X(n),
        Reg::Y(n) => Src::Y(n),
    }
}

/// Drops the checks of one function's ops that cannot fail.
pub fn uncheck(ops: &mut [Op]) {
    let mut at: HashMap<Label, At> = HashMap::new();
    // The first walks only find the facts at labels; the last one acts on them.
    for number in 1..=MAX_WALKS {
        if !walk(ops, &mut at, number, false) {
            walk(ops, &mut at, number + 1, true);
            return;
        }
    }
}

/// Walks after which a function is left as it is.
const MAX_WALKS: u32 = 32;

/// The facts at a label.
struct At {
    facts: Facts,
    /// The walk that passed it last.
    passed: u32,
}

/// One walk; whether facts at a label already passed became weaker.
fn walk(ops: &mut [Op], at: &mut HashMap<Label, At>, number: u32, act: bool) -> bool {
    let mut now: Option<Facts> = None;
    let mut again = false;
    let mut entry = false;
    for op in ops.iter_mut() {
        if let Op::Label(l) = op {
            if std::mem::take(&mut entry) {
                // Callers come with anything.
                now = Some(Facts::default());
            }
            // A label is reached from above, from jumps before and (on a later walk) from jumps behind. What no
            // walk has reached is dead or an entry: nothing is known there.
            let merged = match (now.take(), at.get(l)) {
                (Some(mut a), Some(b)) => {
                    a.join(&b.facts);
                    a
                }
                (Some(a), None) => a,
                (None, Some(b)) => b.facts.clone(),
                (None, None) => Facts::default(),
            };
            let facts = merged.clone();
            let passed = number;
            at.insert(*l, At { facts, passed });
            now = Some(merged);
            continue;
        }
        let facts = now.get_or_insert_default();
        if act {
            clear(op, facts);
        }
        let mut reach = |l: Label, facts: &Facts| match at.get_mut(&l) {
            Some(known) => {
                if known.facts.join(facts) && known.passed == number {
                    again = true;
                }
            }
            None => {
                let facts = facts.clone();
                at.insert(l, At { facts, passed: 0 });
            }
        };
        if let Op::Catch { handler, .. } | Op::Try { handler, .. } = op {
            reach(*handler, &Facts::default());
        }
        match op.flow() {
            Flow::Call | Flow::Lost => {
                facts.kill_x();
                op.for_each_label(|l| reach(l, facts));
                op.for_each_write(|r| facts.kill(r));
            }
            Flow::End => {
                if let Op::SelectArity { src, pairs, .. } = op {
                    for (arity, l) in pairs.iter() {
                        let mut known = facts.clone();
                        known.learn(*src, Fact::Tuple(*arity));
                        reach(*l, &known);
                    }
                    reach_fail(op, |l| reach(l, facts));
                } else {
                    op.for_each_label(|l| reach(l, facts));
                }
                entry = matches!(op, Op::FuncInfo { .. });
                now = None;
            }
            Flow::Next => {
                // What a failing op has written by then is not defined.
                let mut failed = None;
                op.for_each_label(|l| {
                    let failed = failed.get_or_insert_with(|| {
                        let mut f = facts.clone();
                        op.for_each_write(|r| f.kill(r));
                        f
                    });
                    reach(l, failed);
                });
                transfer(op, facts);
            }
        }
    }
    again
}

fn reach_fail(op: &Op, f: impl FnOnce(Label)) {
    if let Op::SelectArity { fail, .. } = op
        && *fail != NO_LABEL
    {
        f(*fail);
    }
}

/// The facts behind an op that goes on.
fn transfer(op: &Op, facts: &mut Facts) {
    match op {
        Op::Move { src, dst } => {
            let fact = facts.of(*src);
            facts.set(*dst, fact);
            return;
        }
        Op::Swap { a, b } => {
            let (fa, fb) = (facts.get(*a), facts.get(*b));
            facts.set(*a, fb);
            facts.set(*b, fa);
            return;
        }
        // A read that went well proves what it read.
        Op::GetHd { src, .. } | Op::GetTl { src, .. } | Op::GetList { src, .. } => {
            facts.learn(reg_src(*src), Fact::Cons);
        }
        Op::GetTupleElement { src, index, .. } => {
            facts.learn(reg_src(*src), Fact::TupleMin(index.saturating_add(1)));
        }
        Op::SetTupleElement { tuple, index, .. } => {
            facts.learn(reg_src(*tuple), Fact::TupleMin(index.saturating_add(1)));
        }
        Op::Test { test, src, .. } => match test {
            TypeTest::NonemptyList => facts.learn(*src, Fact::Cons),
            TypeTest::Tuple => facts.learn(*src, Fact::TupleMin(0)),
            TypeTest::Map => facts.learn(*src, Fact::Map),
            TypeTest::Float => facts.learn(*src, Fact::Float),
            _ => {}
        },
        Op::TestArity { src, arity, .. } | Op::IsTaggedTuple { src, arity, .. } => {
            facts.learn(*src, Fact::Tuple(*arity));
        }
        Op::UpdateRecord { src, size, .. } => facts.learn(*src, Fact::Tuple(*size)),
        Op::HasMapFields { src, .. } | Op::GetMapElements { src, .. } | Op::PutMap { src, .. } => {
            facts.learn(*src, Fact::Map)
        }
        Op::FloatLoad { src, .. } => facts.learn(*src, Fact::Float),
        Op::BsMatch { ctx, .. }
        | Op::BsGetInteger { ctx, .. }
        | Op::BsGetFloat { ctx, .. }
        | Op::BsGetBinary { ctx, .. }
        | Op::BsSkipBits { ctx, .. }
        | Op::BsTestTail { ctx, .. }
        | Op::BsTestUnit { ctx, .. }
        | Op::BsMatchString { ctx, .. }
        | Op::BsGetUtf { ctx, .. }
        | Op::BsGetPosition { ctx, .. }
        | Op::BsSetPosition { ctx, .. }
        | Op::BsGetTail { ctx, .. } => facts.learn(reg_src(*ctx), Fact::Context),
        Op::Allocate { .. } | Op::Deallocate { .. } => facts.kill_y(),
        Op::Trim { words, .. } => facts.trim(*words),
        _ => {}
    }
    op.for_each_write(|r| facts.kill(r));
    match op {
        Op::PutList { dst, .. } => facts.set(*dst, Some(Fact::Cons)),
        Op::PutTuple { elements, dst } => {
            facts.set(*dst, Some(Fact::Tuple(elements.len() as u32)));
        }
        Op::UpdateRecord { dst, size, .. } => facts.set(*dst, Some(Fact::Tuple(*size))),
        Op::FloatStore { dst, .. } => facts.set(*dst, Some(Fact::Float)),
        Op::PutMap { dst, .. } => facts.set(*dst, Some(Fact::Map)),
        Op::BsStartMatch { dst, .. } => facts.set(*dst, Some(Fact::Context)),
        _ => {}
    }
}

/// Drops the op's check when the facts before it prove it.
fn clear(op: &mut Op, facts: &Facts) {
    let tuple_of = |reg: Reg, n: u32| matches!(facts.get(reg), Some(Fact::Tuple(k) | Fact::TupleMin(k)) if k >= n);
    match op {
        Op::GetHd { src, checked, .. }
        | Op::GetTl { src, checked, .. }
        | Op::GetList { src, checked, .. } => *checked &= facts.get(*src) != Some(Fact::Cons),
        Op::GetTupleElement {
            src,
            index,
            checked,
            ..
        } => *checked &= !tuple_of(*src, index.saturating_add(1)),
        Op::SetTupleElement {
            tuple,
            index,
            checked,
            ..
        } => *checked &= !tuple_of(*tuple, index.saturating_add(1)),
        Op::UpdateRecord {
            src, size, checked, ..
        } => *checked &= facts.of(*src) != Some(Fact::Tuple(*size)),
        Op::TestArity { src, checked, .. } | Op::SelectArity { src, checked, .. } => {
            *checked &= !matches!(facts.of(*src), Some(Fact::Tuple(_) | Fact::TupleMin(_)));
        }
        Op::HasMapFields { src, checked, .. } | Op::GetMapElements { src, checked, .. } => {
            *checked &= facts.of(*src) != Some(Fact::Map);
        }
        Op::FloatLoad { src, checked, .. } => *checked &= facts.of(*src) != Some(Fact::Float),
        Op::BsMatch { ctx, checked, .. }
        | Op::BsGetInteger { ctx, checked, .. }
        | Op::BsGetFloat { ctx, checked, .. }
        | Op::BsGetBinary { ctx, checked, .. }
        | Op::BsSkipBits { ctx, checked, .. }
        | Op::BsTestTail { ctx, checked, .. }
        | Op::BsTestUnit { ctx, checked, .. }
        | Op::BsMatchString { ctx, checked, .. }
        | Op::BsGetUtf { ctx, checked, .. }
        | Op::BsGetPosition { ctx, checked, .. }
        | Op::BsGetTail { ctx, checked, .. } => {
            *checked &= facts.get(*ctx) != Some(Fact::Context);
        }
        // The check of `BsSetPosition` is that of the position, too, which nothing proves.
        _ => {}
    }
}

/// `live` of a `BsCreateBin` that [`find_live`] must fill in.
pub const LIVE_UNKNOWN: u16 = u16::MAX;

const X_WORDS: usize = beamr_abi::X_REGISTERS / 64;

/// X registers that hold a value, as a bit set.
#[derive(Clone, Copy, PartialEq)]
struct Valid([u64; X_WORDS]);

impl Valid {
    const NONE: Valid = Valid([0; X_WORDS]);
    /// The registers below `n`.
    fn below(n: u16) -> Valid {
        let mut v = Valid::NONE;
        (0..n).for_each(|i| v.set(i));
        v
    }
    fn set(&mut self, i: u16) {
        if let Some(w) = self.0.get_mut(i as usize / 64) {
            *w |= 1 << (i % 64);
        }
    }
    fn get(&self, i: u16) -> bool {
        self.0
            .get(i as usize / 64)
            .is_some_and(|w| w & 1 << (i % 64) != 0)
    }
    fn and(&mut self, other: &Valid) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
    }
    fn end(&self) -> u16 {
        (0..X_WORDS as u16)
            .rev()
            .find(|i| self.0[*i as usize] != 0)
            .map_or(0, |i| {
                i * 64 + 64 - self.0[i as usize].leading_zeros() as u16
            })
    }
}

/// Fills in every [`LIVE_UNKNOWN`] of one function (whose arguments are x0..arity): all registers up to the highest
/// that holds a value; gaps among them are filled with `[]` before the op.
pub fn find_live(ops: &mut Vec<Op>, start: usize, arity: u16) -> Result<(), LowerFault> {
    let mut at: HashMap<Label, (Valid, u32)> = HashMap::new();
    let mut found: Vec<(usize, Valid)> = Vec::new();
    for number in 1.. {
        if number > MAX_WALKS {
            return Err(LowerFault::Inconsistent(
                "the loops of the function are too deep",
            ));
        }
        found.clear();
        let mut again = false;
        let mut now: Option<Valid> = None;
        let mut entry = false;
        for (i, op) in ops.iter().enumerate().skip(start) {
            if let Op::Label(l) = op {
                if std::mem::take(&mut entry) {
                    now = Some(Valid::below(arity));
                }
                let v = match (now, at.get(l)) {
                    (Some(a), None) => a,
                    (None, Some((b, _))) => *b,
                    (Some(mut a), Some((b, _))) => {
                        a.and(b);
                        a
                    }
                    // Nothing reaches it.
                    (None, None) => Valid::NONE,
                };
                at.insert(*l, (v, number));
                now = Some(v);
                continue;
            }
            let Some(valid) = &mut now else { continue };
            if let Op::BsCreateBin {
                live: LIVE_UNKNOWN, ..
            } = op
            {
                found.push((i, *valid));
            }
            let mut reach = |l: Label, v: &Valid| match at.get_mut(&l) {
                Some((known, passed)) => {
                    let before = *known;
                    known.and(v);
                    again |= *known != before && *passed == number;
                }
                None => {
                    at.insert(l, (*v, 0));
                }
            };
            if let Op::Catch { handler, .. } | Op::Try { handler, .. } = op {
                let mut v = Valid::NONE;
                (0..4).for_each(|i| v.set(i));
                reach(*handler, &v);
            }
            if let Some(live) = op.live()
                && live != LIVE_UNKNOWN
            {
                valid.and(&Valid::below(live));
            }
            if matches!(op.flow(), Flow::Call | Flow::Lost) {
                *valid = Valid::NONE;
            }
            op.for_each_label(|l| reach(l, valid));
            op.for_each_write(|r| {
                if let Reg::X(n) = r {
                    valid.set(n);
                }
            });
            if op.flow() == Flow::End {
                entry = matches!(op, Op::FuncInfo { .. });
                now = None;
            }
        }
        if !again {
            break;
        }
    }
    for (i, valid) in found.into_iter().rev() {
        let end = valid.end();
        if let Op::BsCreateBin { live, .. } = &mut ops[i] {
            *live = end;
        }
        let gaps = (0..end).filter(|x| !valid.get(*x)).map(|x| Op::Move {
            src: Src::Const(Word::NIL),
            dst: Reg::X(x),
        });
        ops.splice(i..i, gaps.collect::<Vec<_>>());
    }
    Ok(())
}
