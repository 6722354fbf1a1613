//! What each operation does to the state: one arm for each, or for several of
//! a kind. The helpers it calls are in [`flow`](super).

use super::super::state::{Frame, Receive, Slot};
use super::super::{Fault, ends_flow, label_of, never_returns};
use super::{Flow, Next, Step, is_part};
use crate::code::{Arg, Instr};
use crate::op::{Kind, Op};

impl Flow<'_> {
    pub(super) fn instr(&mut self, instr: &Instr, args: &[Arg]) -> Step<Next> {
        let op = instr.op;
        if is_part(op) && self.s.building.is_none() {
            return Err(Fault::Binary("no binary is being built"));
        }
        match (op, args) {
            (Op::Label | Op::Line | Op::ExecutableLine | Op::NifStart | Op::OnLoad, _) => {}
            (Op::RecvMark | Op::RecvSet | Op::Fclearerror, _) => {}
            (Op::DebugLine, &[.., live]) => {
                let heap = self.s.heap;
                self.gc(live)?;
                self.s.heap = heap;
            }
            (Op::FuncInfo, &[.., Arg::U(arity)]) => {
                self.no_frame()?;
                for x in 0..arity as u16 {
                    let slot = self.s.x(x);
                    if !slot.is_movable() || slot.is_fragile() {
                        return Err(Self::unreadable(Arg::X(x), slot));
                    }
                }
            }
            (Op::IntCodeEnd, _) => return Err(Fault::FallsOff),

            // Calls.
            (Op::Call, &[Arg::U(n), label]) => {
                let callee = self.callee(label)?;
                self.call(n, Some(callee))?;
            }
            (Op::CallLast, &[Arg::U(n), label, frame]) => {
                let callee = self.callee(label)?;
                self.tail_call(n, Some(callee), Some(frame))?;
            }
            (Op::CallOnly, &[Arg::U(n), label]) => {
                let callee = self.callee(label)?;
                self.tail_call(n, Some(callee), None)?;
            }
            (Op::CallExt, &[Arg::U(n), import]) => {
                self.call(n, None)?;
                let (m, f, a) = self.import(import);
                if never_returns(m, f, a) {
                    return Ok(Next::Stop);
                }
                if (m, f, a) == ("erlang", "setelement", 3) {
                    self.s.set_x(0, Slot::NEW);
                }
            }
            (Op::CallExtLast | Op::CallExtOnly, &[Arg::U(n), import, ref frame @ ..]) => {
                let (m, f, a) = self.import(import);
                if never_returns(m, f, a) {
                    self.args(n, None)?;
                    self.leave()?;
                } else {
                    self.tail_call(n, None, frame.first().copied())?;
                }
            }
            (Op::Apply, &[Arg::U(n)]) => self.call(n + 2, None)?,
            (Op::ApplyLast, &[Arg::U(n), frame]) => self.tail_call(n + 2, None, Some(frame))?,
            (Op::CallFun, &[Arg::U(n)]) => self.call(n + 1, None)?,
            (Op::CallFun2, &[_, Arg::U(n), fun]) => {
                self.read_durable(fun)?;
                self.call(n, None)?;
            }
            (Op::Send, _) => self.call(2, None)?,
            (Op::RawRaise, _) => self.call(3, None)?,
            (Op::BsInitWritable, _) => self.call(1, None)?,
            (Op::BuildStacktrace, _) => {
                self.read_durable(Arg::X(0))?;
                self.gc(Arg::U(1))?;
                self.s.set_x(0, Slot::TERM);
            }
            (Op::Return, _) => {
                self.no_frame()?;
                self.outside_receive()?;
                self.read_durable(Arg::X(0))?;
            }

            // The frame and the heap.
            (Op::Allocate, &[size, live]) => self.allocate(size, Arg::U(0), live, false)?,
            (Op::AllocateZero, &[size, live]) => self.allocate(size, Arg::U(0), live, true)?,
            (Op::AllocateHeap, &[size, need, live]) => self.allocate(size, need, live, false)?,
            (Op::AllocateHeapZero, &[size, need, live]) => {
                self.allocate(size, need, live, true)?;
            }
            (Op::Deallocate, &[size]) => self.drop_frame(size)?,
            (Op::Trim, &[Arg::U(n), Arg::U(remaining)]) => {
                match self.s.frame {
                    Frame::Size(size) if n.checked_add(remaining) == Some(size as u64) => {}
                    _ => return Err(Fault::Frame("another size")),
                }
                if self.s.y[..n as usize].iter().any(|s| s.may_be_tag()) {
                    return Err(Fault::Catch("a tag is trimmed"));
                }
                self.s.y.drain(..n as usize);
                self.s.frame = Frame::Size(remaining as u16);
            }
            (Op::TestHeap, &[need, live]) => {
                self.gc(live)?;
                self.reserve(need);
            }
            (Op::Init, &[y]) => self.term(y, false)?,
            (Op::InitYregs, &[list]) => {
                for &y in self.module.code.list_of(list) {
                    self.term(y, false)?;
                }
            }

            // Moving and fetching.
            (Op::Move, &[src, dst]) => {
                let slot = self.slot(src)?;
                if !slot.is_movable() {
                    return Err(Self::unreadable(src, slot));
                }
                self.write(dst, slot)?;
            }
            (Op::Swap, &[a, b]) => {
                let (sa, sb) = (self.slot(a)?, self.slot(b)?);
                for (arg, slot) in [(a, sa), (b, sb)] {
                    if !slot.is_movable() {
                        return Err(Self::unreadable(arg, slot));
                    }
                }
                self.write(a, sb)?;
                self.write(b, sa)?;
            }
            (Op::GetList, &[src, head, tail]) => {
                let fragile = self.read(src)?;
                self.raise()?;
                self.term(head, fragile)?;
                self.term(tail, fragile)?;
            }
            (Op::GetHd | Op::GetTl, &[src, dst]) | (Op::GetTupleElement, &[src, _, dst]) => {
                let fragile = self.read(src)?;
                self.raise()?;
                self.term(dst, fragile)?;
            }
            (Op::SetTupleElement, &[value, tuple, _]) => {
                self.read_durable(value)?;
                if !self.slot(tuple)?.is_new() {
                    return Err(Fault::NotNew);
                }
                self.raise()?;
            }

            // Building.
            (Op::PutList, &[head, tail, dst]) => {
                let fragile = self.read_all(&[head, tail])?;
                self.eat(0, 2)?;
                self.term(dst, fragile)?;
            }
            (Op::PutTuple2, &[dst, list]) => {
                let list = self.module.code.list_of(list);
                let fragile = self.read_all(list)?;
                self.eat(0, list.len() as u64 + 1)?;
                self.term(dst, fragile)?;
            }
            (Op::UpdateRecord, &[_, Arg::U(size), src, dst, list]) => {
                let mut fragile = self.read(src)?;
                for &[index, value] in self.module.code.list_of(list).as_chunks::<2>().0 {
                    fragile |= self.read(value)?;
                    if !matches!(index, Arg::U(n) if n >= 1 && n <= size) {
                        return Err(Fault::List("index outside the tuple"));
                    }
                }
                self.raise()?;
                let words = size.checked_add(1).ok_or(Fault::Heap("words"))?;
                self.eat(0, words)?;
                self.term(dst, fragile)?;
            }
            (Op::MakeFun3, &[Arg::U(lambda), dst, list]) => {
                let env = self.module.code.list_of(list);
                let fragile = self.read_all(env)?;
                if self.module.lambdas[lambda as usize].num_free as usize != env.len() {
                    return Err(Fault::List("another number of free variables"));
                }
                if self.s.heap[2] == 0 {
                    self.v.unreserved_funs.push(self.at as u32);
                } else {
                    self.eat(2, 1)?;
                    self.eat(0, env.len() as u64)?;
                }
                self.term(dst, fragile)?;
            }
            (Op::MakeFun2, &[Arg::U(lambda)]) => {
                let free = self.module.lambdas[lambda as usize].num_free;
                for x in 0..free as u16 {
                    self.read_durable(Arg::X(x))?;
                }
                self.v.unreserved_funs.push(self.at as u32);
                self.gc(Arg::U(free as u64))?;
                self.s.x.clear();
                self.s.set_x(0, Slot::TERM);
            }
            (Op::PutMapAssoc | Op::PutMapExact, &[fail, src, dst, live, list]) => {
                let fragile = self.read(src)? | self.read_all(self.module.code.list_of(list))?;
                self.kept(&[src], live)?;
                self.kept(self.module.code.list_of(list), live)?;
                self.gc(live)?;
                self.fail(fail)?;
                self.term(dst, fragile)?;
            }
            (Op::PutRecord, &[fail, id, src, dst, live, list]) => {
                let fragile =
                    self.read_all(&[id, src])? | self.read_all(self.module.code.list_of(list))?;
                self.kept(&[id, src], live)?;
                self.kept(self.module.code.list_of(list), live)?;
                self.gc(live)?;
                self.fail(fail)?;
                self.term(dst, fragile)?;
            }

            // Tests and jumps.
            (Op::Jump, &[label]) => {
                let at = self.v.labels[label_of(label) as usize] as usize;
                if self.is_handler(at) {
                    // Only after a call that never returns.
                    self.v.traps.push(self.at as u32);
                } else {
                    self.test(label)?;
                }
            }
            (Op::SelectVal | Op::SelectTupleArity, &[src, fail, list]) => {
                self.read(src)?;
                self.test(fail)?;
                for &[_, label] in self.module.code.list_of(list).as_chunks::<2>().0 {
                    self.test(label)?;
                }
            }
            (Op::HasMapFields, &[fail, src, list]) => {
                self.read(src)?;
                self.read_all(self.module.code.list_of(list))?;
                self.raise()?;
                self.test(fail)?;
            }
            (Op::GetMapElements | Op::GetRecordElements, &[fail, src, list]) => {
                let fragile = self.read(src)?;
                let pairs = self.module.code.list_of(list).as_chunks::<2>().0;
                for &[key, _] in pairs {
                    self.read(key)?;
                }
                self.raise()?;
                let mut failed = self.s.clone();
                for &[_, dst] in pairs {
                    self.maybe_written(&mut failed, dst, fragile)?;
                }
                self.v.work += pairs.len() as u64;
                match label_of(fail) {
                    0 => return Err(Fault::Operand(0)),
                    label => self.jump(label, &failed)?,
                }
                for &[_, dst] in pairs {
                    self.term(dst, fragile)?;
                }
            }
            (Op::GetRecordField, &[fail, src, id, _, dst]) => {
                let fragile = self.read_all(&[src, id])?;
                self.fail(fail)?;
                self.term(dst, fragile)?;
            }

            // BIFs.
            (Op::Bif0, &[_, dst]) => self.term(dst, false)?,
            (Op::Bif1 | Op::Bif2 | Op::Bif3, &[fail, import, ref srcs @ .., dst]) => {
                let fragile = self.bif_sources(import, srcs)?;
                let (_, name, arity) = self.import(import);
                if label_of(fail) != 0 || !never_fails(name, arity) {
                    self.fail(fail)?;
                }
                self.term(dst, fragile)?;
            }
            (Op::GcBif1 | Op::GcBif2 | Op::GcBif3, &[fail, live, import, ref srcs @ .., dst]) => {
                let fragile = self.bif_sources(import, srcs)?;
                self.kept(srcs, live)?;
                self.gc(live)?;
                self.fail(fail)?;
                self.term(dst, fragile)?;
            }

            // Floats.
            (Op::Fmove, &[src, dst]) => match (src, dst) {
                (Arg::Fr(_), Arg::Fr(fr)) => {
                    self.read_float(src)?;
                    self.s.set_float(fr);
                }
                (Arg::Fr(_), _) => {
                    self.read_float(src)?;
                    self.eat(1, 1)?;
                    self.term(dst, false)?;
                }
                (_, Arg::Fr(fr)) => {
                    self.read(src)?;
                    self.raise()?;
                    self.s.set_float(fr);
                }
                _ => return Err(Fault::Operand(1)),
            },
            (Op::Fconv, &[src, Arg::Fr(fr)]) => {
                self.read(src)?;
                self.raise()?;
                self.s.set_float(fr);
            }
            (Op::Fadd | Op::Fsub | Op::Fmul | Op::Fdiv, &[fail, a, b, Arg::Fr(fr)]) => {
                self.read_float(a)?;
                self.read_float(b)?;
                self.fail(fail)?;
                self.s.set_float(fr);
            }
            (Op::Fnegate, &[fail, a, Arg::Fr(fr)]) => {
                self.read_float(a)?;
                self.fail(fail)?;
                self.s.set_float(fr);
            }
            (Op::Fcheckerror, &[fail]) => self.fail(fail)?,

            // Exceptions.
            (Op::Badmatch | Op::CaseEnd | Op::TryCaseEnd | Op::Badrecord, &[src]) => {
                self.read_durable(src)?;
                self.raise()?;
            }
            (Op::IfEnd, _) => self.raise()?,
            (Op::Raise, &[trace, reason]) => {
                self.read_durable(trace)?;
                self.read_durable(reason)?;
                self.raise()?;
            }
            (Op::Try | Op::Catch, &[slot, label]) => {
                let is_try = op == Op::Try;
                let y = slot.y().unwrap_or(0);
                if !matches!(self.s.frame, Frame::Size(_)) {
                    return Err(Fault::Frame("a tag needs one of known size"));
                }
                let outer = self.s.y.iter().position(|s| s.may_be_tag());
                if outer.is_some_and(|n| n <= y as usize) {
                    return Err(Fault::Catch("a tag above an outer one"));
                }
                self.write(slot, Slot::tag(is_try, label_of(label)))?;
            }
            (Op::TryEnd, &[slot]) => self.end_tag(slot, true)?,
            (Op::TryCase, _) => return Err(Fault::Catch("try_case without an exception")),
            (Op::CatchEnd, &[slot]) => {
                self.read_durable(Arg::X(0))?;
                self.end_tag(slot, false)?;
                self.s.x.truncate(1);
            }

            // Receive.
            (Op::LoopRec, &[fail, dst]) => {
                self.outside_receive()?;
                self.suspend()?;
                self.test(fail)?;
                self.s.receive = Receive::Peeked;
                self.write(dst, Slot::FRAGILE)?;
            }
            (Op::LoopRecEnd, &[label]) => {
                if self.s.receive != Receive::Peeked {
                    return Err(Fault::Receive("no message is current"));
                }
                self.suspend()?;
                self.s.receive = Receive::Outside;
                self.test(label)?;
            }
            (Op::RemoveMessage, _) => {
                if self.s.receive != Receive::Peeked {
                    return Err(Fault::Receive("no message is current"));
                }
                self.s.receive = Receive::Outside;
                for slot in self.s.x.iter_mut().chain(&mut self.s.y) {
                    *slot = slot.durable();
                    if *slot == Slot::TIMED {
                        *slot = Slot::UNINIT;
                    }
                }
            }
            (Op::Timeout, _) => {
                self.outside_receive()?;
                self.s.x.clear();
            }
            (Op::Wait, &[label]) => {
                self.outside_receive()?;
                self.suspend()?;
                self.test(label)?;
            }
            (Op::WaitTimeout, &[label, time]) => {
                self.outside_receive()?;
                // While the timer runs, its time is not read again.
                let timed = self.slot(time)? == Slot::TIMED;
                if !timed {
                    self.read_durable(time)?;
                }
                self.suspend()?;
                self.raise()?;
                if let Some(x) = time.x() {
                    self.s.set_x(x, Slot::TIMED);
                }
                self.test(label)?;
                self.s.x.clear();
            }
            (Op::RecvMarkerReserve, &[y]) => self.term(y, false)?,
            (Op::RecvMarkerBind, &[marker, reference]) => {
                self.read_durable(marker)?;
                self.read_durable(reference)?;
                self.raise()?;
            }
            (Op::RecvMarkerClear | Op::RecvMarkerUse, &[reference]) => {
                self.read_durable(reference)?;
                self.raise()?;
            }

            // Matching.
            (Op::BsStartMatch3, &[fail, src, live, dst]) => {
                self.start_match(fail, src, live, dst)?
            }
            (Op::BsStartMatch4, &[fail, live, src, dst]) => {
                self.start_match(fail, src, live, dst)?
            }
            (
                Op::BsGetInteger2 | Op::BsGetFloat2 | Op::BsGetBinary2,
                &[fail, ctx, live, size, _, _, dst],
            ) => {
                let fragile = self.read_ctx(ctx)?;
                self.read(size)?;
                self.test(fail)?;
                self.keep(ctx, live)?;
                self.kept(&[size], live)?;
                self.gc(live)?;
                self.term(dst, fragile)?;
            }
            (Op::BsSkipBits2, &[fail, ctx, size, _, _]) => {
                self.read_ctx(ctx)?;
                self.read(size)?;
                self.test(fail)?;
            }
            (Op::BsTestTail2 | Op::BsTestUnit, &[fail, ctx, _])
            | (Op::BsMatchString, &[fail, ctx, _, _]) => {
                self.read_ctx(ctx)?;
                self.test(fail)?;
            }
            (Op::BsGetUtf8 | Op::BsGetUtf16 | Op::BsGetUtf32, &[fail, ctx, live, _, dst]) => {
                self.read_ctx(ctx)?;
                self.test(fail)?;
                self.keep(ctx, live)?;
                self.gc(live)?;
                self.term(dst, false)?;
            }
            (Op::BsSkipUtf8 | Op::BsSkipUtf16 | Op::BsSkipUtf32, &[fail, ctx, live, _]) => {
                self.read_ctx(ctx)?;
                self.test(fail)?;
                self.keep(ctx, live)?;
                self.gc(live)?;
            }
            (Op::BsGetTail, &[ctx, dst, live]) => {
                let fragile = self.read_ctx(ctx)?;
                self.keep(ctx, live)?;
                self.gc(live)?;
                self.term(dst, fragile)?;
            }
            (Op::BsGetPosition, &[ctx, dst, live]) => {
                self.read_ctx(ctx)?;
                self.keep(ctx, live)?;
                self.gc(live)?;
                self.term(dst, false)?;
            }
            (Op::BsSetPosition, &[ctx, position]) => {
                self.read_ctx(ctx)?;
                self.read(position)?;
                self.raise()?;
            }
            (Op::BsMatch, &[fail, ctx, list]) => self.bs_match(fail, ctx, list)?,

            // Binary construction.
            (Op::BsCreateBin, &[fail, need, live, _, dst, list]) => {
                for segment in self.module.code.list_of(list).as_chunks::<6>().0 {
                    if !matches!(segment[4], Arg::U(_)) {
                        self.read_durable(segment[4])?;
                    }
                    self.read_durable(segment[5])?;
                    self.kept(&segment[4..], live)?;
                }
                self.gc(live)?;
                self.fail(fail)?;
                self.reserve(need);
                self.term(dst, false)?;
            }
            (Op::BsInit2 | Op::BsInitBits, &[fail, size, need, live, _, dst]) => {
                self.read_size(size)?;
                self.kept(&[size], live)?;
                self.gc(live)?;
                self.fail(fail)?;
                self.reserve(need);
                self.s.building = Some(dst);
            }
            (Op::BsAppend, &[fail, size, need, live, _, bin, _, dst]) => {
                self.read_size(size)?;
                self.read_durable(bin)?;
                self.kept(&[size, bin], live)?;
                self.gc(live)?;
                self.fail(fail)?;
                self.reserve(need);
                self.s.building = Some(dst);
            }
            (Op::BsPrivateAppend, &[fail, size, _, bin, _, dst]) => {
                self.read_size(size)?;
                self.read_durable(bin)?;
                self.fail(fail)?;
                self.s.heap = [0; 3];
                self.s.building = Some(dst);
            }
            (Op::BsPutInteger | Op::BsPutBinary | Op::BsPutFloat, &[fail, size, _, _, src]) => {
                self.read_size(size)?;
                self.read_durable(src)?;
                self.fail(fail)?;
            }
            (Op::BsPutUtf8 | Op::BsPutUtf16 | Op::BsPutUtf32, &[fail, _, src]) => {
                self.read_durable(src)?;
                self.fail(fail)?;
            }
            (Op::BsPutString, _) => {}
            (Op::BsAdd, &[fail, a, b, _, dst]) => {
                self.read_size(a)?;
                self.read_size(b)?;
                self.fail(fail)?;
                self.term(dst, false)?;
            }
            (Op::BsUtf8Size | Op::BsUtf16Size, &[fail, src, dst]) => {
                self.read_durable(src)?;
                self.fail(fail)?;
                self.term(dst, false)?;
            }

            // All other tests: a label, then values.
            (_, &[fail, ref srcs @ ..]) if op.info().operands[0] == Kind::Fail => {
                for (&src, kind) in srcs.iter().zip(&op.info().operands[1..]) {
                    if *kind == Kind::Src {
                        self.read(src)?;
                    }
                }
                self.test(fail)?;
            }
            _ => return Err(Fault::Obsolete),
        }
        Ok(if ends_flow(op) { Next::Stop } else { Next::On })
    }

    /// A match context is among the live registers.
    fn keep(&self, ctx: Arg, live: Arg) -> Step {
        match (ctx.x(), live) {
            (Some(x), Arg::U(live)) if x as u64 >= live => {
                Err(Fault::Binary("the match context is not live"))
            }
            _ => Ok(()),
        }
    }

    /// Sources are among the live registers: they may be read behind a collection.
    fn kept(&self, sources: &[Arg], live: Arg) -> Step {
        let Arg::U(live) = live else { return Ok(()) };
        match sources
            .iter()
            .filter_map(|s| s.x())
            .find(|x| *x as u64 >= live)
        {
            Some(x) => Err(Fault::X(x, "is a source, but not live")),
            None => Ok(()),
        }
    }

    fn read_size(&self, size: Arg) -> Step {
        match size {
            Arg::U(_) => Ok(()),
            _ => self.read_durable(size),
        }
    }

    /// The sources of a BIF. The two that measure bitstrings take contexts.
    fn bif_sources(&self, import: Arg, srcs: &[Arg]) -> Step<bool> {
        if let (("erlang", "bit_size" | "byte_size", 1), [src]) = (self.import(import), srcs) {
            let slot = self.slot(*src)?;
            if slot.is_movable() {
                return Ok(false);
            }
        }
        self.read_all(srcs)
    }

    fn start_match(&mut self, fail: Arg, src: Arg, live: Arg, dst: Arg) -> Step {
        self.kept(&[src], live)?;
        let slot = self.slot(src)?;
        if !slot.is_movable() {
            return Err(Self::unreadable(src, slot));
        }
        match fail {
            Arg::F(label) => {
                let mut s = self.s.clone();
                // What fails is no context.
                if slot == Slot::MAYBE_CTX {
                    match (src.x(), src.y()) {
                        (Some(x), _) => s.set_x(x, Slot::TERM),
                        (_, Some(y)) => s.y[y as usize] = Slot::TERM,
                        _ => {}
                    }
                }
                if label == 0 {
                    return Err(Fault::Operand(0));
                }
                // A context does not fail.
                if !slot.is_ctx() {
                    self.jump(label, &s)?;
                }
                self.gc(live)?;
            }
            Arg::A(name) if self.module.atom(name) == "resume" => {
                if !slot.is_ctx() {
                    return Err(Fault::Binary("resumes something else than a match context"));
                }
                self.gc(live)?;
            }
            _ => {
                self.gc(live)?;
                self.raise()?;
            }
        }
        self.write(dst, Slot::CTX.with_fragile(slot.is_fragile()))
    }

    fn bs_match(&mut self, fail: Arg, ctx: Arg, list: Arg) -> Step {
        let fragile = self.read_ctx(ctx)?;
        self.frame_init()?;
        self.test(fail)?;
        let mut list = self.module.code.list_of(list);
        while let [Arg::A(name), ref rest @ ..] = *list {
            let (live, dst, taken) = match (self.module.atom(name), rest) {
                ("ensure_at_least", _) => (None, None, 2),
                ("binary" | "integer", &[live, _, _, _, dst, ..]) => (Some(live), Some(dst), 5),
                ("get_tail", &[live, _, dst, ..]) => (Some(live), Some(dst), 3),
                ("=:=", _) => (None, None, 3),
                _ => (None, None, 1),
            };
            self.read_ctx(ctx)?;
            if live.is_none() {
                self.test(fail)?;
            }
            list = rest.get(taken..).unwrap_or(&[]);
            if let (Some(live), Some(dst)) = (live, dst) {
                self.keep(ctx, live)?;
                self.gc(live)?;
                self.term(dst, fragile)?;
            }
        }
        Ok(())
    }
}

/// Whether a BIF gives a value for all arguments.
fn never_fails(name: &str, arity: u8) -> bool {
    match arity {
        1 => {
            matches!(
                name,
                "get"
                    | "is_atom"
                    | "is_binary"
                    | "is_bitstring"
                    | "is_boolean"
                    | "is_float"
                    | "is_function"
                    | "is_integer"
                    | "is_list"
                    | "is_map"
                    | "is_number"
                    | "is_pid"
                    | "is_port"
                    | "is_record"
                    | "is_reference"
                    | "is_tuple"
            )
        }
        2 => matches!(
            name,
            "=:=" | "=/=" | "==" | "/=" | "<" | ">" | "=<" | ">=" | "min" | "max"
        ),
        _ => false,
    }
}
