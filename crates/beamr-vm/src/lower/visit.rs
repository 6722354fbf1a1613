//! What an op writes, where it may go, and what it keeps alive: one place for the lowering's
//! own analyses and for engines that allocate registers.

use super::op::{CallKind, Label, MatchCommand, NO_LABEL, Op, Reg};

/// How control leaves an op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// To the next op, or to a label of [`Op::for_each_label`].
    Next,
    /// As `Next`, and every X register but x0 (which the op writes) is lost.
    Call,
    /// As `Next`, and every X register is lost.
    Lost,
    /// Never to the next op.
    End,
}

impl Op {
    /// How control leaves the op.
    pub fn flow(&self) -> Flow {
        match self {
            Op::Call { kind, .. }
            | Op::CallExt { kind, .. }
            | Op::CallNative { kind, .. }
            | Op::CallFun { kind, .. }
            | Op::CallFun2 { kind, .. }
            | Op::Apply { kind, .. } => match kind {
                CallKind::Body => Flow::Call,
                CallKind::Last(_) | CallKind::Only => Flow::End,
            },
            Op::Send | Op::LoopRec { .. } | Op::BsInitWritable | Op::CatchEnd { .. } => Flow::Call,
            Op::BuildStacktrace | Op::RawRaise => Flow::Call,
            Op::Timeout | Op::WaitTimeout { .. } => Flow::Lost,
            Op::Jump(_)
            | Op::FuncInfo { .. }
            | Op::Return
            | Op::SelectVal { .. }
            | Op::SelectTerm { .. }
            | Op::SelectArity { .. }
            | Op::LoopRecEnd { .. }
            | Op::Wait { .. }
            | Op::TryCaseEnd { .. }
            | Op::RaiseOld { .. }
            | Op::Badmatch { .. }
            | Op::IfEnd
            | Op::CaseEnd { .. }
            | Op::BadRecord { .. }
            | Op::UndefinedBif { .. }
            | Op::End => Flow::End,
            _ => Flow::Next,
        }
    }

    /// The labels that the op may jump to, exception handlers not among them.
    pub fn for_each_label(&self, mut f: impl FnMut(Label)) {
        let mut fail = |l: Label| {
            if l != NO_LABEL {
                f(l)
            }
        };
        match self {
            Op::Jump(l) => fail(*l),
            Op::SelectVal { fail: l, pairs, .. } | Op::SelectTerm { fail: l, pairs, .. } => {
                fail(*l);
                pairs.iter().for_each(|p| fail(p.1));
            }
            Op::SelectArity { fail: l, pairs, .. } => {
                fail(*l);
                pairs.iter().for_each(|p| fail(p.1));
            }
            Op::LoopRec { empty: l }
            | Op::LoopRecEnd { next: l }
            | Op::Wait { retry: l }
            | Op::WaitTimeout { retry: l, .. } => fail(*l),
            Op::Test { fail: l, .. }
            | Op::TestArity { fail: l, .. }
            | Op::IsTaggedTuple { fail: l, .. }
            | Op::IsFunction2 { fail: l, .. }
            | Op::Compare { fail: l, .. }
            | Op::HasMapFields { fail: l, .. }
            | Op::GetMapElements { fail: l, .. }
            | Op::Arith { fail: l, .. }
            | Op::Negate { fail: l, .. }
            | Op::Bnot { fail: l, .. }
            | Op::GuardBif { fail: l, .. }
            | Op::UndefinedBif { fail: l, .. }
            | Op::FloatArith { fail: l, .. }
            | Op::FloatNegate { fail: l, .. }
            | Op::PutMap { fail: l, .. }
            | Op::BsStartMatch { fail: l, .. }
            | Op::BsMatch { fail: l, .. }
            | Op::BsGetInteger { fail: l, .. }
            | Op::BsGetFloat { fail: l, .. }
            | Op::BsGetBinary { fail: l, .. }
            | Op::BsSkipBits { fail: l, .. }
            | Op::BsTestTail { fail: l, .. }
            | Op::BsTestUnit { fail: l, .. }
            | Op::BsMatchString { fail: l, .. }
            | Op::BsGetUtf { fail: l, .. }
            | Op::BsCreateBin { fail: l, .. }
            | Op::BsUtfSize { fail: l, .. }
            | Op::BsAdd { fail: l, .. }
            | Op::PutRecord { fail: l, .. }
            | Op::IsNativeRecord { fail: l, .. }
            | Op::IsRecordAccessible { fail: l, .. }
            | Op::GetRecordElements { fail: l, .. }
            | Op::GetRecordField { fail: l, .. } => fail(*l),
            _ => {}
        }
    }

    /// The registers that the op writes. A call writes x0 besides what [`Flow`] says.
    pub fn for_each_write(&self, mut f: impl FnMut(Reg)) {
        match self {
            Op::Move { dst, .. }
            | Op::GetHd { dst, .. }
            | Op::GetTl { dst, .. }
            | Op::PutList { dst, .. }
            | Op::GetTupleElement { dst, .. }
            | Op::PutTuple { dst, .. }
            | Op::UpdateRecord { dst, .. }
            | Op::MakeFun { dst, .. }
            | Op::Arith { dst, .. }
            | Op::Negate { dst, .. }
            | Op::Bnot { dst, .. }
            | Op::GuardBif { dst, .. }
            | Op::FloatStore { dst, .. }
            | Op::MarkerReserve { dst }
            | Op::PutMap { dst, .. }
            | Op::BsStartMatch { dst, .. }
            | Op::BsGetInteger { dst, .. }
            | Op::BsGetFloat { dst, .. }
            | Op::BsGetBinary { dst, .. }
            | Op::BsGetPosition { dst, .. }
            | Op::BsGetTail { dst, .. }
            | Op::BsCreateBin { dst, .. }
            | Op::BsUtfSize { dst, .. }
            | Op::BsAdd { dst, .. }
            | Op::PutRecord { dst, .. }
            | Op::GetRecordField { dst, .. } => f(*dst),
            Op::BsGetUtf { dst: Some(dst), .. } => f(*dst),
            Op::Swap { a, b } => {
                f(*a);
                f(*b);
            }
            Op::GetList { head, tail, .. } => {
                f(*head);
                f(*tail);
            }
            Op::InitY(slots) => slots.iter().for_each(|y| f(Reg::Y(*y))),
            Op::GetMapElements { pairs, .. } => pairs.iter().for_each(|p| f(p.1)),
            Op::GetRecordElements { pairs, .. } => pairs.iter().for_each(|p| f(p.1)),
            Op::BsMatch { commands, .. } => commands.iter().for_each(|c| match c {
                MatchCommand::Integer { dst, .. }
                | MatchCommand::Binary { dst, .. }
                | MatchCommand::GetTail { dst, .. } => f(*dst),
                _ => {}
            }),
            Op::Catch { y, .. }
            | Op::Try { y, .. }
            | Op::CatchEnd { y }
            | Op::TryEnd { y }
            | Op::TryCase { y } => f(Reg::Y(*y)),
            _ => {}
        }
        if let Op::TryCase { .. } = self {
            f(Reg::X(0));
            f(Reg::X(1));
            f(Reg::X(2));
        }
        if self.flow() == Flow::Call {
            f(Reg::X(0));
        }
    }

    /// The X registers that survive a collection in the op, if it may collect: those below this.
    pub fn live(&self) -> Option<u16> {
        match self {
            Op::Allocate { live, .. }
            | Op::TestHeap { live, .. }
            | Op::Arith { live, .. }
            | Op::Negate { live, .. }
            | Op::Bnot { live, .. }
            | Op::PutMap { live, .. }
            | Op::BsStartMatch { live, .. }
            | Op::BsGetInteger { live, .. }
            | Op::BsGetFloat { live, .. }
            | Op::BsGetBinary { live, .. }
            | Op::BsGetTail { live, .. }
            | Op::BsCreateBin { live, .. }
            | Op::PutRecord { live, .. } => Some(*live),
            Op::GuardBif { live, .. } => *live,
            Op::BsMatch { commands, .. } => commands
                .iter()
                .filter_map(|c| match c {
                    MatchCommand::Integer { live, .. }
                    | MatchCommand::Binary { live, .. }
                    | MatchCommand::GetTail { live, .. } => Some(*live),
                    _ => None,
                })
                .min(),
            _ => None,
        }
    }

    /// Whether a read of the op is checked; `None` for an op that has no such choice.
    pub fn checked(&self) -> Option<bool> {
        match self {
            Op::GetHd { checked, .. }
            | Op::GetTl { checked, .. }
            | Op::GetList { checked, .. }
            | Op::GetTupleElement { checked, .. }
            | Op::SetTupleElement { checked, .. }
            | Op::UpdateRecord { checked, .. }
            | Op::TestArity { checked, .. }
            | Op::SelectArity { checked, .. }
            | Op::HasMapFields { checked, .. }
            | Op::GetMapElements { checked, .. }
            | Op::FloatLoad { checked, .. }
            | Op::BsMatch { checked, .. }
            | Op::BsGetInteger { checked, .. }
            | Op::BsGetFloat { checked, .. }
            | Op::BsGetBinary { checked, .. }
            | Op::BsSkipBits { checked, .. }
            | Op::BsTestTail { checked, .. }
            | Op::BsTestUnit { checked, .. }
            | Op::BsMatchString { checked, .. }
            | Op::BsGetUtf { checked, .. }
            | Op::BsGetPosition { checked, .. }
            | Op::BsSetPosition { checked, .. }
            | Op::BsGetTail { checked, .. } => Some(*checked),
            _ => None,
        }
    }
}
