//! The flow analysis: follows control through each function and keeps what is
//! known of every register, of the frame, of the reserved heap.
//!
//! A work list of blocks in code order; a block starts at a label or after the
//! end of a catch or try. States only go down the finite lattice of
//! [`State::join`], so it ends; the budget bounds how long that may take.
//!
//! Functions are analysed on their own but for one thing: which arguments may
//! be match contexts is learned from the calls inside the module, and a function
//! is analysed again when that grows.

mod step;

use std::collections::BTreeSet;

use super::callers::Callers;
use super::state::{Frame, Receive, Slot, State};
use super::{Checked, Fault, Validated, label_of};
use crate::code::{AllocKind, Arg};
use crate::module::Module;
use crate::op::Op;

/// Steps that any module may take.
const WORK_BASE: u64 = 1 << 20;
/// States kept apart at one place before they are joined after all.
const MAX_VARIANTS: usize = 16;
/// Steps for each instruction. Real modules need less than 4.
const WORK_PER_INSTR: u64 = 64;

pub(super) fn flow(module: &Module, v: &mut Validated) -> Checked<()> {
    let budget = WORK_BASE + WORK_PER_INSTR * module.code.instrs.len() as u64;
    let mut callers = Callers::new(module, v);
    let mut next = 0;
    loop {
        let f = match callers.queue.pop_front() {
            Some(f) => f,
            // What nobody seems to call is called from outside.
            None => match (next..v.functions.len()).find(|&f| callers.params[f].is_none()) {
                Some(f) => {
                    callers.root(f, v.functions[f].arity);
                    next = f + 1;
                    continue;
                }
                None => break,
            },
        };
        callers.queued[f] = false;
        let mut result = Flow::new(module, v, f, budget, &mut callers).run();
        if let Err((_, Fault::Scanned(_))) = result {
            // A compiler knew that a BIF does not fail there. Cleared frames do.
            v.functions[f].clear_frames = true;
            result = Flow::new(module, v, f, budget, &mut callers).run();
        }
        result?;
    }
    for (function, params) in v.functions.iter_mut().zip(&callers.params) {
        for (n, slot) in params.iter().flatten().enumerate() {
            if slot.may_be_ctx() {
                function.context_params[n / 64] |= 1 << (n % 64);
            }
        }
    }
    for list in [&mut v.unreserved_funs, &mut v.peeked_calls, &mut v.traps] {
        list.sort_unstable();
        list.dedup();
    }
    Ok(())
}

/// What an instruction does with control.
enum Next {
    /// Goes on.
    On,
    /// Ends here.
    Stop,
}

type Step<T = ()> = Result<T, Fault>;

struct Flow<'a> {
    module: &'a Module,
    v: &'a mut Validated,
    budget: u64,
    /// First instruction and end of the function.
    first: usize,
    end: usize,
    function: usize,
    /// The states before each block, by the index of its first instruction. There are several
    /// where paths with different frames, tags or receives meet: code that
    /// raises is shared between such.
    states: Vec<Vec<State>>,
    work: BTreeSet<(usize, usize)>,
    callers: &'a mut Callers,
    /// The instruction at hand, and the state before what it does.
    at: usize,
    s: State,
}

impl<'a> Flow<'a> {
    fn new(
        module: &'a Module,
        v: &'a mut Validated,
        f: usize,
        budget: u64,
        callers: &'a mut Callers,
    ) -> Self {
        let function = &v.functions[f];
        let (first, end) = (function.first as usize, function.end as usize);
        let entry = function.entry as usize;
        v.work += (end - first) as u64 / 8;
        let s = State::entry(callers.params[f].clone().unwrap_or_default());
        let mut states = vec![Vec::new(); end - first];
        states[entry - first].push(s.clone());
        Flow {
            module,
            v,
            budget,
            first,
            end,
            function: f,
            states,
            work: BTreeSet::from([(entry, 0)]),
            callers,
            at: entry,
            s,
        }
    }

    fn run(&mut self) -> Checked<()> {
        while let Some((start, variant)) = self.work.pop_first() {
            self.s = self.states[start - self.first][variant].clone();
            self.at = start;
            self.block().map_err(|fault| (self.at, fault))?;
        }
        Ok(())
    }

    fn block(&mut self) -> Step {
        let code = &self.module.code;
        let start = self.at;
        loop {
            if self.at >= self.end {
                self.at = self.end - 1;
                return Err(Fault::FallsOff);
            }
            if self.at != start && self.is_handler(self.at) {
                // Only a call that never returns stands before a handler.
                self.v.traps.push(self.at as u32 - 1);
                return Ok(());
            }
            if self.at != start && self.is_head(self.at) {
                let s = self.s.clone();
                return self.arrive(self.at, &s);
            }
            self.v.reach(self.at);
            let instr = &code.instrs[self.at];
            let args = code.args(instr);
            let listed = |arg: &Arg| match arg {
                Arg::List(span) => span.len as u64 / 8,
                _ => 0,
            };
            self.v.work += self.s.size() + args.iter().map(listed).sum::<u64>();
            if self.v.work > self.budget {
                return Err(Fault::Budget);
            }
            let next = self.instr(instr, args)?;
            if matches!(next, Next::Stop) {
                return Ok(());
            }
            self.at += 1;
            self.built()?;
        }
    }

    /// The register of an old-style construction is written after its last part.
    fn built(&mut self) -> Step {
        let Some(dst) = self.s.building else {
            return Ok(());
        };
        let next = self.module.code.instrs.get(self.at).map(|i| i.op);
        if next.is_some_and(|op| op == Op::Line || is_part(op)) {
            return Ok(());
        }
        self.s.building = None;
        self.term(dst, false)
    }

    /// Whether a block starts at an instruction.
    fn is_head(&self, at: usize) -> bool {
        let instrs = &self.module.code.instrs;
        instrs[at].op == Op::Label || matches!(instrs[at - 1].op, Op::TryCase | Op::CatchEnd)
    }

    /// Whether what comes, after labels, is the start of the handler of a try.
    fn is_handler(&self, at: usize) -> bool {
        let at = self.callers.skip[at] as usize;
        at < self.end && self.module.code.instrs[at].op == Op::TryCase
    }

    /// Control reaches the block at an instruction with a state.
    fn arrive(&mut self, at: usize, s: &State) -> Step {
        self.v.work += s.size();
        if at < self.first || at >= self.end {
            return Err(Fault::FallsOff);
        }
        let states = &mut self.states[at - self.first];
        let variant = match states.iter().position(|old| old.same_control(s)) {
            Some(variant) => variant,
            None if states.len() < MAX_VARIANTS => {
                states.push(s.clone());
                self.work.insert((at, states.len() - 1));
                return Ok(());
            }
            None => 0,
        };
        self.v.work += variant as u64 * s.size();
        let changed = states[variant].join(s).ok_or(Fault::Frame(
            "different frames join where one is not initialised",
        ))?;
        if changed {
            self.work.insert((at, variant));
        }
        Ok(())
    }

    fn jump(&mut self, label: u32, s: &State) -> Step {
        let at = self
            .v
            .labels
            .get(label as usize)
            .copied()
            .ok_or(Fault::Label(label))? as usize;
        if self.is_handler(at) {
            return Err(Fault::Catch("a jump to the handler of a try"));
        }
        self.arrive(at, s)
    }

    /// The branch of a test that is taken on failure, with the state at hand.
    fn test(&mut self, fail: Arg) -> Step {
        let label = label_of(fail);
        if label == 0 {
            return Err(Fault::Operand(0));
        }
        let mut s = self.s.clone();
        s.building = None;
        self.jump(label, &s)
    }

    /// The branch on failure, which raises when there is no label.
    fn fail(&mut self, fail: Arg) -> Step {
        match label_of(fail) {
            0 => self.raise(),
            _ => self.test(fail),
        }
    }

    /// An exception is raised here: the frame is scanned for a handler.
    fn raise(&mut self) -> Step {
        self.frame_init()?;
        // The innermost has the lowest index; past one that may be a term, go on.
        for slot in 0..self.s.y.len() {
            let tag = self.s.y[slot];
            if tag.may_be_tag() {
                self.caught(slot, tag)?;
                if tag.is_tag() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// An exception goes to the handler of a tag.
    fn caught(&mut self, slot: usize, tag: Slot) -> Step {
        let label = tag.handler();
        if label == 0 {
            return Err(Fault::Catch("raise where the handler is not known"));
        }
        let at = self
            .v
            .labels
            .get(label as usize)
            .copied()
            .ok_or(Fault::Label(label))? as usize;
        let after = self.handler(at, slot as u16, tag.is_try())?;
        let mut s = self.s.clone();
        s.x.clear();
        s.x.resize(if tag.is_try() { 3 } else { 1 }, Slot::TERM);
        s.y[slot] = Slot::TERM;
        for slot in &mut s.y[..slot] {
            // What may have been a tag further in was none.
            if slot.may_be_tag() {
                *slot = Slot::TERM;
            }
        }
        s.y.iter_mut().for_each(|s| *s = s.aged().durable());
        s.float.clear();
        s.heap = [0; 3];
        s.receive = Receive::Outside;
        s.building = None;
        if self.is_handler(after) {
            self.v.traps.push(after as u32 - 1);
            return Ok(());
        }
        self.arrive(after, &s)
    }

    /// Checks that a handler starts as it must; gives the instruction after that.
    fn handler(&mut self, label: usize, slot: u16, is_try: bool) -> Step<usize> {
        let code = &self.module.code;
        let at = self.callers.skip[label] as usize;
        self.v.work += (at - label) as u64;
        for i in label..at {
            self.v.reach(i);
        }
        let want = if is_try { Op::TryCase } else { Op::CatchEnd };
        match code.instrs.get(at) {
            Some(i) if at < self.end && i.op == want && code.args(i)[0].y() == Some(slot) => {
                self.v.reach(at);
                Ok(at + 1)
            }
            _ => Err(Fault::Catch("the handler does not end the tag")),
        }
    }

    /// All slots of the frame hold terms or tags.
    fn frame_init(&self) -> Step {
        for (y, slot) in self.s.y.iter().enumerate() {
            if !slot.is_init() {
                return Err(Fault::Scanned(y as u16));
            }
        }
        Ok(())
    }

    /// A collection may happen with so many live X registers.
    fn gc(&mut self, live: Arg) -> Step {
        let live = match live {
            Arg::U(n) => n as usize,
            _ => 0,
        };
        self.frame_init()?;
        for (y, slot) in self.s.y.iter().enumerate() {
            if slot.is_fragile() {
                return Err(Fault::Y(
                    y as u16,
                    "holds a part of a message not yet received",
                ));
            }
        }
        for x in 0..live as u16 {
            if !self.s.x(x).is_init() {
                return Err(Fault::X(x, "is not initialised, but live"));
            }
        }
        self.s.x.truncate(live);
        for slot in self.s.x.iter_mut().chain(&mut self.s.y) {
            *slot = slot.aged();
        }
        self.s.heap = [0; 3];
        Ok(())
    }

    fn reserve(&mut self, need: Arg) {
        self.s.heap = match need {
            Arg::U(words) => [words, 0, 0],
            Arg::Alloc(span) => {
                let mut heap = [0u64; 3];
                for &(kind, n) in self.module.code.alloc(span) {
                    let place = match kind {
                        AllocKind::Words => 0,
                        AllocKind::Floats => 1,
                        AllocKind::Funs => 2,
                    };
                    heap[place] = heap[place].saturating_add(n);
                }
                heap
            }
            _ => [0; 3],
        };
    }

    fn eat(&mut self, place: usize, n: u64) -> Step {
        let what = ["words", "floats", "funs"][place];
        self.s.heap[place] = self.s.heap[place].checked_sub(n).ok_or(Fault::Heap(what))?;
        Ok(())
    }

    fn slot(&self, arg: Arg) -> Step<Slot> {
        match (arg.x(), arg.y()) {
            (Some(x), _) => Ok(self.s.x(x)),
            (_, Some(y)) => self
                .s
                .y
                .get(y as usize)
                .copied()
                .ok_or(Fault::Y(y, "is not in the frame")),
            _ => Ok(Slot::TERM),
        }
    }

    fn unreadable(arg: Arg, slot: Slot) -> Fault {
        let why = if !slot.is_init() {
            "is not initialised"
        } else if slot.may_be_tag() {
            "holds a catch or try tag"
        } else if slot.may_be_ctx() {
            "may hold a match context"
        } else {
            "holds a part of a message not yet received"
        };
        match (arg.x(), arg.y()) {
            (Some(x), _) => Fault::X(x, why),
            (_, y) => Fault::Y(y.unwrap_or(0), why),
        }
    }

    /// Reads a term; whether it is part of a message only peeked at.
    fn read(&self, arg: Arg) -> Step<bool> {
        let slot = self.slot(arg)?;
        if slot.is_term() {
            Ok(slot.is_fragile())
        } else {
            Err(Self::unreadable(arg, slot))
        }
    }

    /// Reads a term that must not be part of a message only peeked at.
    fn read_durable(&self, arg: Arg) -> Step {
        if self.read(arg)? {
            Err(Self::unreadable(arg, Slot::FRAGILE))
        } else {
            Ok(())
        }
    }

    fn read_all(&self, args: &[Arg]) -> Step<bool> {
        let mut fragile = false;
        for &arg in args {
            fragile |= self.read(arg)?;
        }
        Ok(fragile)
    }

    fn read_ctx(&self, arg: Arg) -> Step<bool> {
        let slot = self.slot(arg)?;
        if slot.is_ctx() {
            Ok(slot.is_fragile())
        } else {
            Err(Fault::Binary("not a match context"))
        }
    }

    fn write(&mut self, dst: Arg, slot: Slot) -> Step {
        match (dst.x(), dst.y()) {
            (Some(x), _) => self.s.set_x(x, slot),
            (_, Some(y)) => match self.s.y.get_mut(y as usize) {
                _ if self.s.frame == Frame::Unknown => {
                    return Err(Fault::Frame("its size is not known here"));
                }
                None => return Err(Fault::Y(y, "is not in the frame")),
                Some(old) if old.may_be_tag() => {
                    return Err(Fault::Y(y, "holds a catch or try tag"));
                }
                Some(old) => *old = slot,
            },
            _ => return Err(Fault::Operand(0)),
        }
        Ok(())
    }

    fn term(&mut self, dst: Arg, fragile: bool) -> Step {
        self.write(dst, Slot::TERM.with_fragile(fragile))
    }

    fn read_float(&self, arg: Arg) -> Step {
        match arg {
            Arg::Fr(fr) if !self.s.float(fr) => Err(Fault::FloatRegister(fr)),
            _ => Ok(()),
        }
    }

    /// The arguments x0 and up of a call.
    fn args(&mut self, n: u64, callee: Option<usize>) -> Step {
        if self.s.receive == Receive::Mixed {
            return Err(Fault::Receive("a call where a message may be current"));
        }
        let peeked = self.s.receive == Receive::Peeked;
        if peeked {
            self.v.peeked_calls.push(self.at as u32);
        }
        for x in 0..n as u16 {
            let slot = self.s.x(x);
            if slot.is_fragile() && !peeked {
                return Err(Self::unreadable(Arg::X(x), Slot::FRAGILE));
            }
            match callee {
                Some(_) if slot.may_be_ctx() => {}
                _ if slot.is_term() => {}
                _ => return Err(Self::unreadable(Arg::X(x), slot)),
            }
        }
        if let Some(callee) = callee {
            let args: Vec<Slot> = (0..n as u16)
                .map(|x| self.s.x(x).durable().aged())
                .collect();
            self.callers.call(callee, &args);
        }
        Ok(())
    }

    /// A call that comes back with a result in x0.
    fn call(&mut self, n: u64, callee: Option<usize>) -> Step {
        if !matches!(self.s.frame, Frame::Size(_)) {
            return Err(Fault::Frame("a call needs one of known size"));
        }
        self.args(n, callee)?;
        self.leave()?;
        self.s.x.push(Slot::TERM);
        Ok(())
    }

    /// The process may be scheduled out.
    fn suspend(&mut self) -> Step {
        let x = std::mem::take(&mut self.s.x);
        self.gc(Arg::U(0))?;
        self.s.float.clear();
        self.s.x = x;
        self.s.clear_x();
        Ok(())
    }

    /// Everything but the frame may be gone afterwards, or an exception raised.
    fn leave(&mut self) -> Step {
        self.gc(Arg::U(0))?;
        self.s.float.clear();
        self.raise()
    }

    /// A call that does not come back; the frame must be gone, or go now.
    fn tail_call(&mut self, n: u64, callee: Option<usize>, frame: Option<Arg>) -> Step {
        if self.s.receive != Receive::Outside {
            return Err(Fault::Receive("leaves with a current message"));
        }
        self.args(n, callee)?;
        match frame {
            Some(size) => self.drop_frame(size),
            None => self.no_frame(),
        }
    }

    fn no_frame(&self) -> Step {
        if self.s.frame == Frame::None {
            Ok(())
        } else {
            Err(Fault::Frame("there is one"))
        }
    }

    fn drop_frame(&mut self, size: Arg) -> Step {
        match (self.s.frame, size) {
            (Frame::Size(n), Arg::U(size)) if n as u64 == size => {}
            (Frame::None, _) => return Err(Fault::Frame("there is none")),
            _ => return Err(Fault::Frame("another size")),
        }
        self.frame_init()?;
        if self.s.y.iter().any(|s| s.may_be_tag()) {
            return Err(Fault::Catch("a tag is left in the frame"));
        }
        self.s.frame = Frame::None;
        self.s.y.clear();
        Ok(())
    }

    fn allocate(&mut self, size: Arg, need: Arg, live: Arg, zero: bool) -> Step {
        self.no_frame()?;
        self.gc(live)?;
        self.reserve(need);
        let size = match size {
            Arg::U(n) => n as u16,
            _ => 0,
        };
        self.s.frame = Frame::Size(size);
        let zero = zero || self.v.functions[self.function].clear_frames;
        self.s
            .y
            .resize(size as usize, if zero { Slot::TERM } else { Slot::UNINIT });
        self.v.frame_max = self.v.frame_max.max(size);
        Ok(())
    }

    /// A label that a call may name: the function it is the entry of.
    fn callee(&self, label: Arg) -> Step<usize> {
        let at = self.v.labels[label_of(label) as usize];
        Ok(self.v.functions.partition_point(|f| f.first <= at) - 1)
    }

    fn import(&self, import: Arg) -> (&str, &str, u8) {
        match import {
            Arg::U(n) => {
                let i = &self.module.imports[n as usize];
                (
                    self.module.atom(i.module),
                    self.module.atom(i.function),
                    i.arity,
                )
            }
            _ => ("", "", 0),
        }
    }

    fn outside_receive(&self) -> Step {
        match self.s.receive {
            Receive::Outside => Ok(()),
            _ => Err(Fault::Receive("a message is current")),
        }
    }

    /// Ends the innermost tag, which must be in a slot.
    fn end_tag(&mut self, slot: Arg, is_try: bool) -> Step {
        let y = slot.y().unwrap_or(0) as usize;
        match self.s.y.iter().position(|s| s.may_be_tag()) {
            Some(n) if n == y && self.s.y[n].is_tag() && self.s.y[n].is_try() == is_try => {}
            _ => return Err(Fault::Catch("not the innermost tag")),
        }
        self.s.y[y] = Slot::TERM;
        Ok(())
    }

    /// Registers that may or may not have been written when a test failed.
    fn maybe_written(&self, s: &mut State, dst: Arg, fragile: bool) -> Step {
        let old = self.slot(dst)?;
        if !old.is_init() {
            return Ok(());
        }
        let new = old.join(Slot::TERM.with_fragile(fragile));
        match (dst.x(), dst.y()) {
            (Some(x), _) => s.set_x(x, new),
            (_, Some(y)) if !old.may_be_tag() => s.y[y as usize] = new,
            _ => return Err(Self::unreadable(dst, old)),
        }
        Ok(())
    }
}

/// Whether an operation adds to an old-style binary under construction.
fn is_part(op: Op) -> bool {
    matches!(
        op,
        Op::BsPutInteger
            | Op::BsPutBinary
            | Op::BsPutFloat
            | Op::BsPutString
            | Op::BsPutUtf8
            | Op::BsPutUtf16
            | Op::BsPutUtf32
    )
}
