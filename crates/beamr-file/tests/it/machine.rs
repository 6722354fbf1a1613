//! An oracle for the validator: a machine that walks through accepted code on
//! random paths and looks at every promise when it is due. It knows of a value only
//! whether it is garbage, a term, a match context or a tag. It shares no code with the
//! validator and joins no states, so it finds what a wrong join or a
//! forgotten case lets through.

use beamr_file::{AllocKind, Arg, Instr, Kind, Module, Op, Validated, never_returns};

use crate::hostile::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Garbage,
    Term,
    /// The result of `setelement/3`, not collected since.
    New,
    Context,
    Tag {
        is_try: bool,
        label: u32,
    },
}

use Value::{Context, Garbage, New, Term};

struct Machine<'a> {
    module: &'a Module,
    valid: &'a Validated,
    random: &'a mut Random,
    x: Vec<Value>,
    y: Vec<Value>,
    frame: bool,
    float: Vec<bool>,
    heap: [u64; 3],
    peeked: bool,
    timer: bool,
    /// The slot whose handler runs, until it ends its tag.
    exception: Option<usize>,
    /// The register of an old-style binary under construction.
    building: Option<Arg>,
    calls: Vec<(usize, Vec<Value>)>,
    at: usize,
    clear: bool,
}

/// Walks through every function that can be called, some paths each; gives the
/// instructions walked.
pub fn walk(module: &Module, valid: &Validated, random: &mut Random, steps: usize) -> usize {
    let mut done = 0;
    let roots = module
        .exports
        .iter()
        .map(|e| e.label)
        .chain(module.lambdas.iter().map(|l| l.label));
    let mut jobs: Vec<(usize, Vec<Value>)> = Vec::new();
    for label in roots {
        let f = valid
            .functions
            .iter()
            .position(|f| f.label == label)
            .unwrap();
        jobs.push((f, vec![Term; valid.functions[f].arity as usize]));
    }
    let mut budget = steps;
    let first = jobs.clone();
    while budget > 0 {
        let Some((f, args)) = jobs.pop() else {
            if first.is_empty() {
                break;
            }
            jobs.push(first[random.below(first.len())].clone());
            continue;
        };
        let function = &valid.functions[f];
        let mut m = Machine {
            module,
            valid,
            random,
            x: vec![Garbage; 260.max(valid.x_count as usize)],
            y: Vec::new(),
            frame: false,
            float: vec![false; valid.float_count as usize],
            heap: [0; 3],
            peeked: false,
            timer: false,
            exception: None,
            building: None,
            calls: Vec::new(),
            at: function.entry as usize,
            clear: function.clear_frames,
        };
        m.x[..args.len()].copy_from_slice(&args);
        budget = budget.saturating_sub(1);
        for _ in 0..200 {
            assert!(
                m.at < function.end as usize,
                "{}: runs off its end",
                m.place()
            );
            assert!(
                valid.is_reachable(m.at as u32),
                "{}: not said to be reachable",
                m.place()
            );
            done += 1;
            budget = budget.saturating_sub(1);
            if !m.step() {
                break;
            }
        }
        if jobs.len() < 64 {
            jobs.append(&mut m.calls);
        }
    }
    done
}

impl Machine<'_> {
    fn place(&self) -> String {
        let i = &self.module.code.instrs[self.at];
        format!(
            "instruction {} at {}, {} {:?}",
            self.at,
            i.offset,
            i.op.name(),
            self.module.code.args(i)
        )
    }

    fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}", self.place());
    }

    fn coin(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn value(&self, arg: Arg) -> Value {
        if let Some(x) = arg.x() {
            self.x[x as usize]
        } else if let Some(y) = arg.y() {
            self.check((y as usize) < self.y.len(), "slot outside the frame");
            self.y[y as usize]
        } else {
            Term
        }
    }

    fn read(&self, arg: Arg) {
        self.check(
            matches!(self.value(arg), Term | New),
            "reads what is no term",
        );
    }

    fn write(&mut self, arg: Arg, value: Value) {
        if let Some(x) = arg.x() {
            self.x[x as usize] = value;
        } else if let Some(y) = arg.y() {
            self.check((y as usize) < self.y.len(), "slot outside the frame");
            let tag = matches!(self.y[y as usize], Value::Tag { .. });
            self.check(!tag, "overwrites a tag");
            self.y[y as usize] = value;
        }
    }

    fn scan(&self) {
        self.check(
            !self.y.contains(&Garbage),
            "frame scanned with garbage in it",
        );
    }

    fn gc(&mut self, live: usize) {
        self.scan();
        self.check(
            !self.x[..live].contains(&Garbage),
            "garbage among the live registers",
        );
        self.x[live..].fill(Garbage);
        for v in self.x.iter_mut().chain(&mut self.y) {
            if *v == New {
                *v = Term;
            }
        }
        self.heap = [0; 3];
    }

    fn eat(&mut self, kind: usize, n: u64) {
        self.check(self.heap[kind] >= n, "builds more than was reserved");
        self.heap[kind] -= n;
    }

    fn reserve(&mut self, need: Arg) {
        self.heap = [0; 3];
        match need {
            Arg::U(n) => self.heap[0] = n,
            Arg::Alloc(span) => {
                for &(kind, n) in self.module.code.alloc(span) {
                    let place = match kind {
                        AllocKind::Words => 0,
                        AllocKind::Floats => 1,
                        AllocKind::Funs => 2,
                    };
                    self.heap[place] += n;
                }
            }
            _ => self.check(false, "no heap need"),
        }
    }

    fn go(&mut self, label: Arg) -> bool {
        let Arg::F(label) = label else {
            panic!("{}: no label", self.place())
        };
        self.check(label != 0, "jumps to label 0");
        self.building = None;
        self.at = self.valid.labels[label as usize] as usize;
        true
    }

    /// Raises; whether a handler of this function goes on.
    fn raise(&mut self) -> bool {
        self.scan();
        let tag = self.y.iter().position(|v| matches!(v, Value::Tag { .. }));
        let Some(slot) = tag else { return false };
        let Value::Tag { label, .. } = self.y[slot] else {
            unreachable!()
        };
        self.x.fill(Garbage);
        self.float.fill(false);
        self.heap = [0; 3];
        (self.peeked, self.timer, self.building) = (false, false, None);
        self.exception = Some(slot);
        self.at = self.valid.labels[label as usize] as usize;
        true
    }

    /// Fails: to the label, or by an exception.
    fn fail(&mut self, label: Arg) -> bool {
        if label == Arg::F(0) {
            self.raise()
        } else {
            self.go(label)
        }
    }

    fn drop_frame(&mut self, size: Arg) {
        self.check(
            self.frame && size == Arg::U(self.y.len() as u64),
            "frame of another size",
        );
        self.check(
            !self.y.iter().any(|v| matches!(v, Value::Tag { .. })),
            "leaves a tag",
        );
        self.frame = false;
        self.y.clear();
    }

    fn args(&mut self, n: u64, local: Option<Arg>) {
        let args = self.x[..n as usize].to_vec();
        for &v in &args {
            let context = v == Context && local.is_some();
            self.check(context || matches!(v, Term | New), "an argument is no term");
        }
        if let Some(Arg::F(label)) = local {
            let f = self
                .valid
                .functions
                .iter()
                .position(|f| f.label == label)
                .unwrap();
            for (n, &v) in args.iter().enumerate() {
                let known = self.valid.functions[f].may_be_context(n as u8);
                self.check(v != Context || known, "a context that was not announced");
            }
            let args = args
                .iter()
                .map(|&v| if v == New { Term } else { v })
                .collect();
            self.calls.push((f, args));
        }
    }

    fn import(&self, import: Arg) -> (&str, &str, u8) {
        let Arg::U(n) = import else {
            panic!("{}: no import", self.place())
        };
        let i = &self.module.imports[n as usize];
        (
            self.module.atom(i.module),
            self.module.atom(i.function),
            i.arity,
        )
    }

    fn call(&mut self, n: u64, local: Option<Arg>) -> bool {
        self.check(self.frame, "a call without a frame");
        self.args(n, local);
        self.gc(0);
        self.float.fill(false);
        if self.coin(4) {
            return self.raise();
        }
        self.x[0] = Term;
        if self.valid.traps.contains(&(self.at as u32)) {
            return false;
        }
        self.at += 1;
        true
    }

    fn step(&mut self) -> bool {
        let instr: &Instr = &self.module.code.instrs[self.at];
        let (op, args) = (instr.op, self.module.code.args(instr));
        if let Some(slot) = self.exception {
            match op {
                Op::Label | Op::Line => {}
                Op::TryCase | Op::CatchEnd => {
                    self.check(args[0].y() == Some(slot as u16), "ends another tag");
                    self.y[slot] = Term;
                    self.x[..if op == Op::TryCase { 3 } else { 1 }].fill(Term);
                    self.exception = None;
                }
                _ => self.check(false, "a handler that does not end its tag"),
            }
            self.at += 1;
            return true;
        }
        if let Some(dst) = self.building {
            let part = matches!(
                op,
                Op::BsPutInteger
                    | Op::BsPutBinary
                    | Op::BsPutFloat
                    | Op::BsPutString
                    | Op::BsPutUtf8
                    | Op::BsPutUtf16
                    | Op::BsPutUtf32
                    | Op::Line
            );
            if !part {
                self.building = None;
                self.write(dst, Term);
            }
        }
        let list = |arg: Arg| self.module.code.list_of(arg).to_vec();
        match (op, args) {
            (Op::Label | Op::Line | Op::OnLoad | Op::NifStart | Op::ExecutableLine, _) => {}
            (Op::RecvMark | Op::RecvSet | Op::Fclearerror, _) => {}
            (Op::DebugLine, &[.., Arg::U(live)]) => {
                let heap = self.heap;
                self.gc(live as usize);
                self.heap = heap;
            }
            (Op::FuncInfo, &[.., Arg::U(n)]) => {
                self.check(!self.frame, "function_clause with a frame");
                self.check(
                    !self.x[..n as usize].contains(&Garbage),
                    "an argument is gone",
                );
                return false;
            }
            (Op::Call, &[Arg::U(n), label]) => return self.call(n, Some(label)),
            (Op::CallExt, &[Arg::U(n), import]) => {
                let name = self.import(import);
                let (ends, new) = (
                    never_returns(name.0, name.1, name.2),
                    name == ("erlang", "setelement", 3),
                );
                let before = self.at;
                let on = self.call(n, None);
                if self.at == before + 1 && self.exception.is_none() {
                    if ends {
                        return false;
                    }
                    if new {
                        self.x[0] = New;
                    }
                }
                return on;
            }
            (Op::CallLast, &[Arg::U(n), label, size]) => {
                self.args(n, Some(label));
                self.scan();
                self.drop_frame(size);
                return false;
            }
            (Op::CallOnly, &[Arg::U(n), label]) => {
                self.args(n, Some(label));
                self.check(!self.frame, "leaves a frame");
                return false;
            }
            (Op::CallExtLast | Op::CallExtOnly, &[Arg::U(n), import, ref size @ ..]) => {
                let name = self.import(import);
                let ends = never_returns(name.0, name.1, name.2);
                self.args(n, None);
                if ends {
                    self.gc(0);
                    return self.raise();
                }
                match size {
                    &[size] => self.drop_frame(size),
                    _ => self.check(!self.frame, "leaves a frame"),
                }
                return false;
            }
            (Op::Apply, &[Arg::U(n)]) => return self.call(n + 2, None),
            (Op::ApplyLast, &[Arg::U(n), size]) => {
                self.args(n + 2, None);
                self.drop_frame(size);
                return false;
            }
            (Op::CallFun, &[Arg::U(n)]) => return self.call(n + 1, None),
            (Op::CallFun2, &[_, Arg::U(n), fun]) => {
                self.read(fun);
                return self.call(n, None);
            }
            (Op::Send, _) => return self.call(2, None),
            (Op::RawRaise, _) => return self.call(3, None),
            (Op::BsInitWritable, _) => return self.call(1, None),
            (Op::BuildStacktrace, _) => {
                self.read(Arg::X(0));
                self.gc(1);
            }
            (Op::Return, _) => {
                self.check(
                    !self.frame && !self.peeked,
                    "returns with a frame or a message",
                );
                self.read(Arg::X(0));
                return false;
            }
            (
                Op::Allocate | Op::AllocateZero | Op::AllocateHeap | Op::AllocateHeapZero,
                &[Arg::U(size), ref rest @ ..],
            ) => {
                self.check(!self.frame, "a second frame");
                let Some(Arg::U(live)) = rest.last().copied() else {
                    panic!()
                };
                self.gc(live as usize);
                if rest.len() == 2 {
                    self.reserve(rest[0]);
                }
                self.frame = true;
                let zero = self.clear || matches!(op, Op::AllocateZero | Op::AllocateHeapZero);
                self.y = vec![if zero { Term } else { Garbage }; size as usize];
            }
            (Op::Deallocate, &[size]) => self.drop_frame(size),
            (Op::Trim, &[Arg::U(n), Arg::U(left)]) => {
                self.check(
                    self.frame && n + left == self.y.len() as u64,
                    "another size",
                );
                for v in self.y.drain(..n as usize) {
                    assert!(!matches!(v, Value::Tag { .. }), "a tag is trimmed");
                }
            }
            (Op::TestHeap, &[need, Arg::U(live)]) => {
                self.gc(live as usize);
                self.reserve(need);
            }
            (Op::Init, &[y]) => self.write(y, Term),
            (Op::InitYregs, &[ys]) => {
                for y in list(ys) {
                    self.write(y, Term);
                }
            }
            (Op::Move, &[src, dst]) => {
                let v = self.value(src);
                self.check(matches!(v, Term | New | Context), "moves garbage or a tag");
                self.write(dst, v);
            }
            (Op::Swap, &[a, b]) => {
                let (va, vb) = (self.value(a), self.value(b));
                for v in [va, vb] {
                    self.check(matches!(v, Term | New | Context), "moves garbage or a tag");
                }
                self.write(a, vb);
                self.write(b, va);
            }
            (Op::SetTupleElement, &[value, tuple, _]) => {
                self.read(value);
                self.check(self.value(tuple) == New, "writes into an old tuple");
            }
            (Op::PutList, &[a, b, dst]) => {
                self.read(a);
                self.read(b);
                self.eat(0, 2);
                self.write(dst, Term);
            }
            (Op::PutTuple2, &[dst, elements]) => {
                let elements = list(elements);
                elements.iter().for_each(|&e| self.read(e));
                self.eat(0, elements.len() as u64 + 1);
                self.write(dst, Term);
            }
            (Op::UpdateRecord, &[_, Arg::U(size), src, dst, updates]) => {
                self.read(src);
                list(updates).chunks(2).for_each(|pair| self.read(pair[1]));
                if self.coin(8) {
                    return self.raise();
                }
                self.eat(0, size + 1);
                self.write(dst, Term);
            }
            (Op::MakeFun3, &[_, dst, env]) => {
                let env = list(env);
                env.iter().for_each(|&e| self.read(e));
                if !self.valid.unreserved_funs.contains(&(self.at as u32)) {
                    self.eat(2, 1);
                    self.eat(0, env.len() as u64);
                }
                self.write(dst, Term);
            }
            (Op::SelectVal | Op::SelectTupleArity, &[src, fail, choices]) => {
                self.read(src);
                let choices = list(choices);
                let pick = self.random.below(choices.len() / 2 + 1);
                return self.go(choices.get(pick * 2 + 1).copied().unwrap_or(fail));
            }
            (Op::Jump, &[label]) => {
                return !self.valid.traps.contains(&(self.at as u32)) && self.go(label);
            }
            (Op::GetMapElements | Op::GetRecordElements, &[fail, src, pairs]) => {
                self.read(src);
                let pairs = list(pairs);
                pairs.chunks(2).for_each(|pair| self.read(pair[0]));
                if self.coin(8) {
                    return self.raise();
                }
                let failed = self.coin(2);
                let all = pairs.len() / 2;
                let some = if failed {
                    self.random.below(all + 1)
                } else {
                    all
                };
                for pair in pairs.chunks(2).take(some) {
                    self.write(pair[1], Term);
                }
                if failed {
                    return self.go(fail);
                }
            }
            (Op::Try | Op::Catch, &[slot, Arg::F(label)]) => {
                self.check(self.frame, "a tag without a frame");
                let y = slot.y().unwrap() as usize;
                let above = self.y[..y].iter().any(|v| matches!(v, Value::Tag { .. }));
                self.check(!above, "a tag above an outer one");
                self.write(
                    slot,
                    Value::Tag {
                        is_try: op == Op::Try,
                        label,
                    },
                );
            }
            (Op::TryEnd | Op::CatchEnd, &[slot]) => {
                let y = slot.y().unwrap() as usize;
                let innermost = self.y.iter().position(|v| matches!(v, Value::Tag { .. }));
                let is_try = matches!(self.y[y], Value::Tag { is_try: true, .. });
                self.check(
                    innermost == Some(y) && is_try == (op == Op::TryEnd),
                    "other tag",
                );
                self.y[y] = Term;
                if op == Op::CatchEnd {
                    self.read(Arg::X(0));
                    self.x[1..].fill(Garbage);
                }
            }
            (Op::TryCase, _) => self.check(false, "try_case without an exception"),
            (Op::LoopRec, &[label, dst]) => {
                self.check(!self.peeked, "loop_rec with a current message");
                self.gc(0);
                if self.coin(2) {
                    return self.go(label);
                }
                self.peeked = true;
                self.write(dst, Term);
            }
            (Op::LoopRecEnd, &[label]) => {
                self.check(self.peeked, "no message is current");
                self.gc(0);
                self.peeked = false;
                return self.go(label);
            }
            (Op::RemoveMessage, _) => {
                self.check(self.peeked, "no message is current");
                (self.peeked, self.timer) = (false, false);
            }
            (Op::Timeout, _) => {
                self.timer = false;
                self.x.fill(Garbage);
            }
            (Op::Wait, &[label]) => {
                self.check(!self.peeked, "waits with a current message");
                self.gc(0);
                return self.go(label);
            }
            (Op::WaitTimeout, &[label, time]) => {
                self.check(!self.peeked, "waits with a current message");
                if !self.timer {
                    self.read(time);
                    if self.coin(8) {
                        return self.raise();
                    }
                }
                self.gc(0);
                if self.coin(2) {
                    self.timer = true;
                    return self.go(label);
                }
            }
            (Op::Fmove, &[src, dst]) => {
                match src {
                    Arg::Fr(n) => self.check(self.float[n as usize], "float not set"),
                    _ => {
                        self.read(src);
                        if self.coin(8) {
                            return self.raise();
                        }
                    }
                }
                match dst {
                    Arg::Fr(n) => self.float[n as usize] = true,
                    _ => {
                        self.eat(1, 1);
                        self.write(dst, Term);
                    }
                }
            }
            (Op::Fadd | Op::Fsub | Op::Fmul | Op::Fdiv | Op::Fnegate, &[fail, ref regs @ ..]) => {
                let (dst, srcs) = regs.split_last().unwrap();
                for src in srcs {
                    let Arg::Fr(n) = *src else { panic!() };
                    self.check(self.float[n as usize], "float not set");
                }
                if self.coin(8) {
                    return self.fail(fail);
                }
                let Arg::Fr(n) = *dst else { panic!() };
                self.float[n as usize] = true;
            }
            (Op::BsStartMatch3 | Op::BsStartMatch4, args) => {
                let (fail, src, live, dst) = match (op, args) {
                    (Op::BsStartMatch3, &[fail, src, live, dst]) => (fail, src, live, dst),
                    (_, &[fail, live, src, dst]) => (fail, src, live, dst),
                    _ => panic!(),
                };
                let v = self.value(src);
                self.check(matches!(v, Term | New | Context), "matches garbage");
                let Arg::U(live) = live else { panic!() };
                match fail {
                    Arg::A(a) if self.module.atom(a) == "resume" => {
                        self.check(v == Context, "resumes a term");
                    }
                    Arg::A(_) if v != Context && self.coin(4) => return self.raise(),
                    Arg::F(_) if v != Context && self.coin(2) => return self.go(fail),
                    _ => {}
                }
                self.gc(live as usize);
                self.write(dst, Context);
            }
            (Op::BsMatch, &[fail, ctx, commands]) => {
                self.scan();
                let commands = list(commands);
                let mut i = 0;
                while i < commands.len() {
                    self.check(self.value(ctx) == Context, "matches what is no context");
                    let Arg::A(name) = commands[i] else { panic!() };
                    let (live, dst, len) = match self.module.atom(name) {
                        "integer" | "binary" => (i + 1, i + 5, 6),
                        "get_tail" => (i + 1, i + 3, 4),
                        "=:=" => (0, 0, 4),
                        "ensure_at_least" => (0, 0, 3),
                        _ => (0, 0, 2),
                    };
                    if dst == 0 {
                        if self.coin(4) {
                            return self.go(fail);
                        }
                    } else {
                        let Arg::U(live) = commands[live] else {
                            panic!()
                        };
                        self.gc(live as usize);
                        self.write(commands[dst], Term);
                    }
                    i += len;
                }
            }
            (Op::BsInit2 | Op::BsInitBits | Op::BsAppend | Op::BsPrivateAppend, args) => {
                self.read_kinds(instr);
                let (need, live) = match op {
                    Op::BsPrivateAppend => (Arg::U(0), None),
                    _ => (args[2], Some(args[3])),
                };
                if let Some(Arg::U(live)) = live {
                    self.gc(live as usize);
                }
                if self.coin(8) {
                    return self.fail(args[0]);
                }
                self.reserve(need);
                self.building = args.last().copied();
            }
            (Op::BsCreateBin, &[fail, need, Arg::U(live), _, dst, segments]) => {
                for segment in list(segments).chunks(6) {
                    self.read(segment[4]);
                    self.read(segment[5]);
                }
                self.gc(live as usize);
                if self.coin(8) {
                    return self.fail(fail);
                }
                self.reserve(need);
                self.write(dst, Term);
            }
            _ => return self.other(instr),
        }
        // What ends in the op table's eyes never gets here.
        let ends = matches!(op, Op::IntCodeEnd);
        self.check(!ends, "runs into the end");
        if self.valid.traps.contains(&(self.at as u32)) {
            return false;
        }
        self.at += 1;
        true
    }

    /// Reads every operand of a kind that is read.
    fn read_kinds(&mut self, instr: &Instr) {
        let args = self.module.code.args(instr);
        let measures = match (instr.op, args) {
            (Op::GcBif1, &[_, _, import, ..]) | (Op::Bif1, &[_, import, ..]) => {
                matches!(self.import(import), ("erlang", "bit_size" | "byte_size", 1))
            }
            _ => false,
        };
        for (&arg, &kind) in args.iter().zip(instr.op.info().operands) {
            match kind {
                Kind::Src if measures && self.value(arg) == Context => {}
                Kind::Src | Kind::Size => self.read(arg),
                Kind::Ctx => self.check(self.value(arg) == Context, "no match context"),
                Kind::List => {
                    for arg in self.module.code.list_of(arg).to_vec() {
                        self.read(arg);
                    }
                }
                _ => {}
            }
        }
    }

    /// Everything whose operand kinds say all: reads, may fail, may collect, writes.
    fn other(&mut self, instr: &Instr) -> bool {
        let (op, args) = (instr.op, self.module.code.args(instr));
        let kinds = op.info().operands;
        self.read_kinds(instr);
        if matches!(op, Op::BsPutInteger | Op::BsPutBinary | Op::BsPutString) {
            self.check(self.building.is_some(), "no binary is being built");
        }
        let raises = matches!(
            op,
            Op::Badmatch | Op::CaseEnd | Op::IfEnd | Op::TryCaseEnd | Op::Badrecord | Op::Raise
        );
        if raises {
            return self.raise();
        }
        let of = |kind: Kind| kinds.iter().position(|&k| k == kind).map(|n| args[n]);
        let live = match of(Kind::Live) {
            Some(Arg::U(n)) => Some(n as usize),
            _ => None,
        };
        let fail = of(Kind::Fail);
        let matches_bits = kinds.contains(&Kind::Ctx);
        if let (true, Some(fail)) = (matches_bits, fail)
            && self.coin(3)
        {
            return self.go(fail);
        }
        let free = match op {
            Op::MakeFun2 => {
                let Arg::U(n) = args[0] else { panic!() };
                Some(self.module.lambdas[n as usize].num_free as usize)
            }
            _ => None,
        };
        if let Some(live) = live.or(free) {
            self.gc(live);
        }
        if !matches_bits {
            match fail {
                Some(Arg::F(0)) => {
                    let cannot = matches!(op, Op::Bif1 | Op::Bif2);
                    let name = if cannot {
                        self.import(args[1]).1.to_owned()
                    } else {
                        "".into()
                    };
                    let safe = name == "get"
                        || name.starts_with("is_") && op == Op::Bif1
                        || ["min", "max"].contains(&&*name)
                        || name.starts_with(['=', '<', '>', '/']);
                    if !safe && self.coin(8) {
                        return self.raise();
                    }
                }
                Some(fail) if self.coin(2) => return self.go(fail),
                None if op != Op::Bif0
                    && op != Op::MakeFun2
                    && op != Op::RecvMarkerReserve
                    && op != Op::BsPutString
                    && self.coin(8) =>
                {
                    return self.raise();
                }
                _ => {}
            }
        }
        if op == Op::Fconv {
            let Arg::Fr(n) = args[1] else { panic!() };
            self.float[n as usize] = true;
        }
        if op == Op::RecvMarkerReserve {
            self.write(args[0], Term);
        }
        if op == Op::MakeFun2 {
            self.x[0] = Term;
            self.x[1..].fill(Garbage);
        }
        for (&arg, &kind) in args.iter().zip(kinds) {
            if kind == Kind::Dst {
                self.write(arg, Term);
            }
        }
        if self.valid.traps.contains(&(self.at as u32)) {
            return false;
        }
        self.at += 1;
        true
    }
}
