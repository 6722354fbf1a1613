//! Lowered code to machine code, for the few operations that the spike knows. X registers stay in memory.

use beamr_abi::{NativeEntry, STACK_SLACK};
use beamr_term::{Header, Subtag, Word};
use beamr_vm::engine::{CodePos, Emitted, EngineError, stop};
use beamr_vm::lower::Lowered;
use beamr_vm::lower::op::{ArithOp, CallKind, Compare, NO_LABEL, Op, Reg, Src, TypeTest};
use beamr_vm::machine::x86_64 as machine;

use super::asm::*;
use super::helpers::{self, BIF_ARGS, FAIL, GO_ON, RAISED_BIT};

const SMALL: i32 = 0xF;
const NIL: i32 = Word::NIL.bits() as i32;

/// A label of the module.
#[derive(Clone, Copy)]
struct Place {
    /// Where branches go.
    code: Label,
    /// The position that others see.
    position: Label,
    /// The entry for calls that are not counted yet.
    counted: Label,
    entry: bool,
    /// Whether the VM goes to it: it must be 4 modulo 8.
    resumed: bool,
}

struct Emitter<'a> {
    module: &'a Lowered,
    a: Asm,
    places: Vec<Place>,
    lines: Vec<(Label, u32)>,
    functions: Vec<(Label, u32)>,
    /// rax is a position or null, rdx the stop code then.
    resume: Label,
    /// rax is a position or null, rdx the live registers: counts the call.
    enter: Label,
    /// Slow paths, emitted behind the code.
    later: Vec<Box<dyn FnOnce(&mut Emitter<'a>) + 'a>>,
    /// (arity, position of the function) of the function that is being translated.
    current: Option<(u32, Label)>,
}

fn unsupported(op: &Op) -> EngineError {
    EngineError::Unsupported {
        engine: "spike",
        op: format!("{op:?}"),
        function: String::new(),
        what: "not part of the spike",
    }
}

pub fn emit(module: &Lowered) -> Result<Emitted, EngineError> {
    let mut a = Asm::default();
    let places = (0..module.label_count)
        .map(|_| Place {
            code: a.label(),
            position: a.label(),
            counted: a.label(),
            entry: false,
            resumed: false,
        })
        .collect();
    let (resume, enter) = (a.label(), a.label());
    let mut e = Emitter {
        module,
        a,
        places,
        lines: Vec::new(),
        functions: Vec::new(),
        resume,
        enter,
        later: Vec::new(),
        current: None,
    };
    for f in &module.functions {
        e.places[f.entry as usize].entry = true;
    }
    for h in &module.handlers {
        e.places[*h as usize].resumed = true;
    }
    for op in &module.code {
        if let Op::Wait { retry } | Op::WaitTimeout { retry, .. } = op {
            e.places[*retry as usize].resumed = true;
        }
    }
    for op in &module.code {
        e.op(op)?;
    }
    let end = e.a.here();
    while !e.later.is_empty() {
        for f in std::mem::take(&mut e.later) {
            f(&mut e);
        }
    }
    e.common();
    let Emitter {
        a,
        places,
        lines,
        functions,
        ..
    } = e;
    let offsets = |l: Label, a: &Asm| a.offset(l);
    let positions: Vec<Option<usize>> = places.iter().map(|p| offsets(p.position, &a)).collect();
    let lines: Vec<(usize, u32)> = lines
        .iter()
        .map(|(l, n)| (a.offset(*l).unwrap(), *n))
        .collect();
    let functions: Vec<(usize, u32)> = functions
        .iter()
        .map(|(l, n)| (a.offset(*l).unwrap(), *n))
        .collect();
    let end = a.offset(end).unwrap();
    let (code, _) = a.finish().map_err(|_| EngineError::Limit {
        engine: "spike",
        what: "memory",
    })?;
    let start = code.start;
    let labels = positions
        .into_iter()
        .map(|p| p.map_or(std::ptr::null(), |o| (start + o) as CodePos))
        .collect();
    let moved = |l: Vec<(usize, u32)>| l.into_iter().map(|(o, n)| (start + o, n)).collect();
    Ok(Emitted {
        native_calls: Vec::new(),
        start,
        end: start + end,
        labels,
        lines: moved(lines),
        functions: moved(functions),
        memory: Box::new(code),
    })
}

impl<'a> Emitter<'a> {
    // ---- operands

    fn x(n: usize) -> i32 {
        8 * n as i32
    }
    fn get(&mut self, to: R, src: Src) {
        match src {
            Src::X(n) => self.a.load(to, RBX, Self::x(n as usize)),
            Src::Y(n) => self.a.load(to, RSP, 8 * i32::from(n)),
            Src::Const(w) => self.a.constant(to, w.bits()),
        }
    }
    fn reg(&mut self, to: R, r: Reg) {
        self.get(to, source(r));
    }
    fn set(&mut self, dst: Reg, from: R) {
        match dst {
            Reg::X(n) => self.a.store(RBX, Self::x(n as usize), from),
            Reg::Y(n) => self.a.store(RSP, 8 * i32::from(n), from),
        }
    }
    fn branch(&self, l: u32) -> Label {
        self.places[l as usize].code
    }

    // ---- calls of helpers

    /// Arguments are in rsi, rdx, rcx, r8; goes elsewhere unless the helper says to go on. The value is in rdx.
    fn helper(&mut self, f: usize) {
        self.raw_helper(f);
        self.a.bin_const(Bin::Cmp, RAX, GO_ON as i32);
        let resume = self.resume;
        self.a.jump_if(If::NotEqual, resume);
    }
    fn raw_helper(&mut self, f: usize) {
        self.a.constant(RAX, f as u64);
        self.a.call_to(machine::call as *const () as usize);
    }
    /// A helper that never goes on.
    fn raise(&mut self, f: usize) {
        self.raw_helper(f);
        let resume = self.resume;
        self.a.jump(resume);
    }
    fn common(&mut self) {
        let a = &mut self.a;
        let gone = a.label();
        a.bind(self.resume);
        a.test(RAX, RAX);
        a.jump_if(If::Equal, gone);
        a.jump_to(machine::go as *const () as usize);
        a.bind(gone);
        a.mov(RAX, RDX);
        a.jump_to(machine::stop as *const () as usize);

        let (preempt, ended) = (a.label(), a.label());
        a.bind(self.enter);
        a.test(RAX, RAX);
        a.jump_if(If::Equal, ended);
        a.dec(R13);
        a.jump_if(If::LessEqual, preempt);
        a.jump_to(machine::go as *const () as usize);
        a.bind(ended);
        a.constant(RAX, stop::EXITED as u64);
        a.jump_to(machine::stop as *const () as usize);
        a.bind(preempt);
        self.preempt();
    }
    /// Stops at the position rax with rdx live registers.
    fn preempt(&mut self) {
        self.a.mov(RSI, RAX);
        self.raw_helper(helpers::suspend as *const () as usize);
        self.a.constant(RAX, stop::PREEMPTED as u64);
        self.a.jump_to(machine::stop as *const () as usize);
    }

    // ---- leaving a function

    fn last(&mut self, slots: u16) {
        self.a.bin_const(Bin::Add, RSP, 8 * i32::from(slots));
    }
    /// A call of the code at `to`, which runs with the return address on the stack.
    fn leave(&mut self, kind: CallKind, to: Label) {
        match kind {
            CallKind::Body => self.a.call(to),
            CallKind::Last(n) => {
                self.last(n);
                self.a.jump(to);
            }
            CallKind::Only => self.a.jump(to),
        }
    }
    fn native(&mut self, entry: &'static NativeEntry, kind: CallKind) {
        let here = self.a.here();
        let after = self.a.label();
        self.a.dec(R13);
        if let CallKind::Last(n) = kind {
            self.last(n);
        }
        self.a.lea_label(RSI, here);
        self.a
            .constant(RDX, std::ptr::from_ref(entry) as usize as u64);
        if kind == CallKind::Body {
            self.a.lea_label(RCX, after);
        } else {
            self.a.constant(RCX, 0);
        }
        self.helper(helpers::native as *const () as usize);
        if kind == CallKind::Body {
            self.a.align(4);
            self.a.bind(after);
        } else {
            self.a.bind(after);
            self.a.ret();
        }
    }
    fn call_fun(&mut self, fun: Src, arity: u16, kind: CallKind) {
        let here = self.a.here();
        self.a.lea_label(RSI, here);
        self.get(RDX, fun);
        self.a.constant(RCX, u64::from(arity));
        self.raw_helper(helpers::fun as *const () as usize);
        // bt rdx, RAISED_BIT
        self.a.bytes(&[0x48, 0x0F, 0xBA, 0xE2, RAISED_BIT]);
        let (resume, enter) = (self.resume, self.enter);
        let raised = self.a.label();
        self.a.jump_if(If::Below, raised);
        self.later.push(Box::new(move |e| {
            e.a.bind(raised);
            e.a.constant(RDX, stop::EXITED as u64);
            e.a.jump(resume);
        }));
        self.leave(kind, enter);
    }

    // ---- heap

    /// Ensures words between heap and stack.
    fn ensure(&mut self, words: usize, live: u16) {
        let (again, slow) = (self.a.here(), self.a.label());
        self.a.mov(RAX, RSP);
        self.a.bin(Bin::Sub, RAX, R12);
        let bytes = (words + STACK_SLACK) * 8;
        self.a.bin_const(Bin::Cmp, RAX, bytes as i32);
        self.a.jump_if(If::Below, slow);
        self.later.push(Box::new(move |e| {
            e.a.bind(slow);
            e.a.constant(RSI, words as u64);
            e.a.constant(RDX, u64::from(live));
            e.helper(helpers::collect as *const () as usize);
            e.a.jump(again);
        }));
    }
    /// Puts words at the heap top and a pointer to them with this tag into `dst`.
    fn build(&mut self, words: &[Src], first: Option<u64>, tag: i32, dst: Reg) {
        let mut at = 0;
        if let Some(w) = first {
            self.a.constant(RAX, w);
            self.a.store(R12, 0, RAX);
            at = 8;
        }
        for w in words {
            self.get(RAX, *w);
            self.a.store(R12, at, RAX);
            at += 8;
        }
        self.a.lea(RAX, R12, tag);
        self.set(dst, RAX);
        self.a.bin_const(Bin::Add, R12, at);
    }

    // ---- tests

    /// Fails unless the low bits of rax are these.
    fn primary(&mut self, mask: i32, bits: i32, fail: Label) {
        self.a.mov(RCX, RAX);
        self.a.bin_const(Bin::And, RCX, mask);
        self.a.bin_const(Bin::Cmp, RCX, bits);
        self.a.jump_if(If::NotEqual, fail);
    }
    fn compare(&mut self, op: Compare, a: Src, b: Src, fail: u32) -> Result<(), ()> {
        let fail = self.branch(fail);
        self.get(RSI, a);
        self.get(RDX, b);
        let done = self.a.label();
        match op {
            Compare::EqExact | Compare::NeExact => {
                let wants_equal = op == Compare::EqExact;
                self.a.bin(Bin::Cmp, RSI, RDX);
                self.a
                    .jump_if(If::Equal, if wants_equal { done } else { fail });
                let immediate = matches!(b, Src::Const(w) if w.is_immediate());
                if immediate {
                    if wants_equal {
                        self.a.jump(fail);
                    }
                } else {
                    self.helper(helpers::equal as *const () as usize);
                    self.a.test(RDX, RDX);
                    let c = if wants_equal { If::Equal } else { If::NotEqual };
                    self.a.jump_if(c, fail);
                }
            }
            Compare::Lt | Compare::Ge => {
                let slow = self.a.label();
                self.a.mov(RAX, RSI);
                self.a.bin(Bin::And, RAX, RDX);
                self.primary(SMALL, SMALL, slow);
                self.a.bin(Bin::Cmp, RSI, RDX);
                let c = if op == Compare::Lt {
                    If::GreaterEqual
                } else {
                    If::Less
                };
                self.a.jump_if(c, fail);
                self.a.jump(done);
                self.a.bind(slow);
                self.helper(helpers::less as *const () as usize);
                self.a.test(RDX, RDX);
                let c = if op == Compare::Lt {
                    If::Equal
                } else {
                    If::NotEqual
                };
                self.a.jump_if(c, fail);
            }
            _ => return Err(()),
        }
        self.a.bind(done);
        Ok(())
    }

    fn catches(&mut self, up: bool) {
        self.a.load(RCX, RBX, machine::BODY_POINTER as i32);
        self.a.count(RCX, machine::CATCHES as i32, up);
    }
    fn clear(&mut self, y: u16) {
        self.a.constant(RAX, NIL as u64);
        self.a.store(RSP, 8 * i32::from(y), RAX);
    }
    fn tagged(&mut self, which: usize, src: Src) {
        let here = self.a.here();
        self.a.lea_label(RSI, here);
        self.a.constant(RDX, which as u64);
        self.get(RCX, src);
        self.raise(helpers::tagged as *const () as usize);
    }
    /// Goes to the start of a receive loop, which costs a reduction.
    fn again(&mut self, retry: u32) {
        let (to, slow) = (self.places[retry as usize], self.a.label());
        self.a.dec(R13);
        self.a.jump_if(If::LessEqual, slow);
        self.a.jump(to.code);
        self.later.push(Box::new(move |e| {
            e.a.bind(slow);
            e.a.lea_label(RAX, to.position);
            e.a.constant(RDX, 0);
            e.preempt();
        }));
    }

    fn label(&mut self, l: u32) {
        let p = self.places[l as usize];
        if !p.entry {
            if p.resumed {
                self.a.align(4);
            }
            self.a.bind(p.position);
            self.a.bind(p.code);
            return;
        }
        let arity = self.current.map_or(0, |c| c.0);
        self.a.align(0);
        self.a.bind(p.position);
        self.a
            .word(machine::enter_function as machine::Enter as usize as u64);
        let slow = self.a.label();
        assert_eq!(
            self.a.code.len(),
            self.a.offset(p.position).unwrap() + machine::ENTRY
        );
        self.a.bind(p.counted);
        self.a.dec(R13);
        self.a.jump_if(If::LessEqual, slow);
        assert_eq!(
            self.a.code.len(),
            self.a.offset(p.position).unwrap() + machine::BODY
        );
        self.a.bind(p.code);
        self.later.push(Box::new(move |e| {
            e.a.bind(slow);
            e.a.lea_label(RAX, p.position);
            e.a.constant(RDX, u64::from(arity));
            e.preempt();
        }));
    }

    fn op(&mut self, op: &Op) -> Result<(), EngineError> {
        match op {
            Op::Label(l) => self.label(*l),
            Op::FuncInfo { function } => {
                let f = self.module.functions[*function as usize];
                let here = self.a.here();
                self.functions.push((here, *function));
                self.current = Some((f.arity, here));
                self.a.lea_label(RSI, here);
                self.a.constant(RDX, u64::from(f.arity));
                self.raise(helpers::function_clause as *const () as usize);
            }
            Op::Line(n) => {
                let here = self.a.here();
                self.lines.push((here, *n));
            }
            Op::Jump(l) => {
                let to = self.branch(*l);
                self.a.jump(to);
            }
            Op::Call { target, kind, .. } => {
                let to = self.places[*target as usize];
                if !to.entry {
                    return Err(unsupported(op));
                }
                self.leave(*kind, to.counted);
            }
            Op::CallExt {
                export,
                arity,
                kind,
            } => {
                let (to, slow) = (self.a.label(), self.a.label());
                let here = self.a.here();
                let (export, arity, enter) = (*export, *arity, self.enter);
                self.leave(*kind, to);
                self.later.push(Box::new(move |e| {
                    e.a.bind(to);
                    e.a.load(RAX, RBX, machine::EXPORTS as i32);
                    e.a.load(RAX, RAX, 8 * export as i32);
                    e.a.constant(RDX, u64::from(arity));
                    e.a.test(RAX, RAX);
                    e.a.jump_if(If::Equal, slow);
                    e.a.jump(enter);
                    e.a.bind(slow);
                    e.a.lea_label(RSI, here);
                    e.a.constant(RDX, u64::from(export));
                    e.a.constant(RCX, u64::from(arity));
                    e.raw_helper(helpers::export as *const () as usize);
                    e.a.jump(enter);
                }));
            }
            Op::CallNative { native, kind, .. } => self.native(native, *kind),
            Op::Send => self.native(&helpers::BANG, CallKind::Body),
            Op::CallFun { arity, kind } => self.call_fun(Src::X(*arity), *arity, *kind),
            Op::CallFun2 {
                arity, fun, kind, ..
            } => self.call_fun(*fun, *arity, *kind),
            Op::Return => self.a.ret(),
            Op::Allocate { slots, heap, live } => {
                self.ensure(*slots as usize + *heap as usize, *live);
                self.a.bin_const(Bin::Sub, RSP, 8 * i32::from(*slots));
            }
            Op::Deallocate { slots } | Op::Trim { words: slots, .. } => self.last(*slots),
            Op::TestHeap { words, live } => self.ensure(*words as usize, *live),
            Op::InitY(list) => {
                for y in list {
                    self.clear(*y);
                }
            }
            Op::Move { src, dst } => {
                self.get(RAX, *src);
                self.set(*dst, RAX);
            }
            Op::Swap { a, b } => {
                self.reg(RAX, *a);
                self.reg(RCX, *b);
                self.set(*a, RCX);
                self.set(*b, RAX);
            }
            Op::GetList {
                src, head, tail, ..
            } => {
                self.reg(RAX, *src);
                self.a.load(RCX, RAX, -1);
                self.a.load(RDX, RAX, 7);
                self.set(*head, RCX);
                self.set(*tail, RDX);
            }
            Op::GetHd { src, dst, .. } => {
                self.reg(RAX, *src);
                self.a.load(RCX, RAX, -1);
                self.set(*dst, RCX);
            }
            Op::GetTl { src, dst, .. } => {
                self.reg(RAX, *src);
                self.a.load(RCX, RAX, 7);
                self.set(*dst, RCX);
            }
            Op::PutList { head, tail, dst } => self.build(&[*head, *tail], None, 1, *dst),
            Op::GetTupleElement {
                src, index, dst, ..
            } => {
                self.reg(RAX, *src);
                self.a.load(RCX, RAX, 8 * *index as i32 + 6);
                self.set(*dst, RCX);
            }
            Op::PutTuple { elements, dst } => {
                let header = Header::new(Subtag::Tuple, elements.len()).0;
                self.build(elements, Some(header), 2, *dst);
            }
            Op::MakeFun { lambda, dst, env } => {
                self.a.constant(RSI, u64::from(self.module.image_id));
                self.a.constant(RDX, u64::from(*lambda));
                self.helper(helpers::fun_entry as *const () as usize);
                self.a.store(R12, 8, RDX);
                for (i, w) in env.iter().enumerate() {
                    self.get(RAX, *w);
                    self.a.store(R12, 16 + 8 * i as i32, RAX);
                }
                let header = Header::new(Subtag::Fun, env.len() + 1).0;
                self.a.constant(RAX, header);
                self.a.store(R12, 0, RAX);
                self.a.lea(RAX, R12, 2);
                self.set(*dst, RAX);
                self.a.bin_const(Bin::Add, R12, 16 + 8 * env.len() as i32);
            }
            Op::Test { test, src, fail } => {
                let fail = self.branch(*fail);
                self.get(RAX, *src);
                match test {
                    TypeTest::Nil => {
                        self.a.bin_const(Bin::Cmp, RAX, NIL);
                        self.a.jump_if(If::NotEqual, fail);
                    }
                    TypeTest::NonemptyList => self.primary(3, 1, fail),
                    TypeTest::Tuple => {
                        self.primary(3, 2, fail);
                        self.a.load(RCX, RAX, -2);
                        self.a.bin_const(Bin::And, RCX, 0x3C);
                        self.a.bin_const(Bin::Cmp, RCX, (Subtag::Tuple as i32) << 2);
                        self.a.jump_if(If::NotEqual, fail);
                    }
                    TypeTest::Atom => self.primary(0x3F, 0x0B, fail),
                    _ => return Err(unsupported(op)),
                }
            }
            Op::TestArity {
                src, arity, fail, ..
            } => self.tuple(*src, *arity, None, *fail),
            Op::IsTaggedTuple {
                src,
                arity,
                tag,
                fail,
            } => self.tuple(*src, *arity, Some(*tag), *fail),
            Op::Compare { op: c, a, b, fail } => {
                self.compare(*c, *a, *b, *fail)
                    .map_err(|()| unsupported(op))?;
            }
            Op::SelectVal { src, fail, pairs } => {
                self.get(RAX, *src);
                for (w, l) in pairs {
                    self.a.constant(RCX, w.bits());
                    self.a.bin(Bin::Cmp, RAX, RCX);
                    let to = self.branch(*l);
                    self.a.jump_if(If::Equal, to);
                }
                let fail = self.branch(*fail);
                self.a.jump(fail);
            }
            Op::SelectArity {
                src, fail, pairs, ..
            } => {
                self.get(RAX, *src);
                let fail = self.branch(*fail);
                self.primary(3, 2, fail);
                self.a.load(RCX, RAX, -2);
                for (n, l) in pairs {
                    self.a
                        .constant(RDX, Header::new(Subtag::Tuple, *n as usize).0);
                    self.a.bin(Bin::Cmp, RCX, RDX);
                    let to = self.branch(*l);
                    self.a.jump_if(If::Equal, to);
                }
                self.a.jump(fail);
            }
            Op::Arith {
                op: o @ (ArithOp::Add | ArithOp::Sub),
                a,
                b,
                dst,
                fail: NO_LABEL,
                ..
            } => self.sum(*o == ArithOp::Add, *a, *b, *dst),
            Op::GuardBif {
                native,
                args,
                dst,
                live,
                fail,
            } => {
                let here = self.a.here();
                for (i, w) in args.iter().enumerate() {
                    self.get(RAX, *w);
                    self.a.store(RBX, Self::x(BIF_ARGS + i), RAX);
                }
                self.a.lea_label(RSI, here);
                self.a
                    .constant(RDX, std::ptr::from_ref(*native) as usize as u64);
                self.a
                    .constant(RCX, live.map_or(u64::from(u16::MAX), u64::from));
                self.a.constant(R8, u64::from(*fail != NO_LABEL));
                self.raw_helper(helpers::bif as *const () as usize);
                if *fail != NO_LABEL {
                    let fail = self.branch(*fail);
                    self.a.bin_const(Bin::Cmp, RAX, FAIL as i32);
                    self.a.jump_if(If::Equal, fail);
                }
                self.a.bin_const(Bin::Cmp, RAX, GO_ON as i32);
                let resume = self.resume;
                self.a.jump_if(If::NotEqual, resume);
                self.set(*dst, RDX);
            }
            Op::Catch { y, handler } | Op::Try { y, handler } => {
                let index = self.module.handlers.iter().position(|h| h == handler);
                let tag = Word::catch_tag(index.expect("a handler") as u32);
                self.catches(true);
                self.a.constant(RAX, tag.bits());
                self.a.store(RSP, 8 * i32::from(*y), RAX);
            }
            Op::TryEnd { y } => {
                self.catches(false);
                self.clear(*y);
            }
            Op::CatchEnd { y } => {
                self.catches(false);
                self.clear(*y);
                let done = self.a.label();
                self.get(RAX, Src::X(0));
                self.a.test(RAX, RAX);
                self.a.jump_if(If::NotEqual, done);
                self.helper(helpers::catch_value as *const () as usize);
                self.a.bind(done);
            }
            Op::TryCase { y } => {
                self.catches(false);
                self.clear(*y);
                for i in 0..3 {
                    self.get(RAX, Src::X(i + 1));
                    self.set(Reg::X(i), RAX);
                }
            }
            Op::BuildStacktrace => self.helper(helpers::stacktrace as *const () as usize),
            Op::Badmatch { src } => self.tagged(0, *src),
            Op::CaseEnd { src } => self.tagged(1, *src),
            Op::TryCaseEnd { src } => self.tagged(2, *src),
            Op::RaiseOld { trace, value } => {
                let here = self.a.here();
                self.a.lea_label(RSI, here);
                self.get(RDX, *value);
                self.get(RCX, *trace);
                self.raise(helpers::reraise as *const () as usize);
            }
            Op::IfEnd => {
                let here = self.a.here();
                self.a.lea_label(RSI, here);
                self.raise(helpers::if_clause as *const () as usize);
            }
            Op::LoopRec { empty } => {
                self.helper(helpers::loop_rec as *const () as usize);
                self.a.test(RDX, RDX);
                let empty = self.branch(*empty);
                self.a.jump_if(If::Equal, empty);
            }
            Op::LoopRecEnd { next } => {
                self.helper(helpers::loop_rec_end as *const () as usize);
                self.again(*next);
            }
            Op::RemoveMessage => self.helper(helpers::remove_message as *const () as usize),
            Op::Timeout => self.helper(helpers::timeout as *const () as usize),
            Op::Wait { retry } => {
                let to = self.places[*retry as usize].position;
                self.a.lea_label(RSI, to);
                self.helper(helpers::wait as *const () as usize);
                self.again(*retry);
            }
            Op::WaitTimeout { retry, timeout } => {
                let (to, here, over) = (
                    self.places[*retry as usize].position,
                    self.a.here(),
                    self.a.label(),
                );
                self.a.lea_label(RSI, to);
                self.get(RDX, *timeout);
                self.a.lea_label(RCX, here);
                self.helper(helpers::wait_timeout as *const () as usize);
                self.a.test(RDX, RDX);
                self.a.jump_if(If::Equal, over);
                self.again(*retry);
                self.a.bind(over);
            }
            Op::End | Op::NifStart | Op::Enter => {}
            _ => return Err(unsupported(op)),
        }
        Ok(())
    }
    fn tuple(&mut self, src: Src, arity: u32, tag: Option<Word>, fail: u32) {
        let fail = self.branch(fail);
        self.get(RAX, src);
        self.primary(3, 2, fail);
        self.a.load(RCX, RAX, -2);
        self.a
            .constant(RDX, Header::new(Subtag::Tuple, arity as usize).0);
        self.a.bin(Bin::Cmp, RCX, RDX);
        self.a.jump_if(If::NotEqual, fail);
        if let Some(tag) = tag {
            self.a.load(RCX, RAX, 6);
            self.a.constant(RDX, tag.bits());
            self.a.bin(Bin::Cmp, RCX, RDX);
            self.a.jump_if(If::NotEqual, fail);
        }
    }
    /// Small integers in place: the tag of one is taken off before.
    fn sum(&mut self, add: bool, a: Src, b: Src, dst: Reg) {
        let (here, slow, done) = (self.a.here(), self.a.label(), self.a.label());
        self.get(RDX, a);
        self.get(R8, b);
        self.a.mov(RAX, RDX);
        self.a.bin(Bin::And, RAX, R8);
        self.primary(SMALL, SMALL, slow);
        self.a.mov(RAX, RDX);
        self.a.mov(RCX, R8);
        if add {
            self.a.bin_const(Bin::Xor, RAX, SMALL);
            self.a.bin(Bin::Add, RAX, RCX);
        } else {
            self.a.bin_const(Bin::Xor, RCX, SMALL);
            self.a.bin(Bin::Sub, RAX, RCX);
        }
        self.a.jump_if(If::Overflow, slow);
        self.set(dst, RAX);
        self.a.bind(done);
        self.later.push(Box::new(move |e| {
            e.a.bind(slow);
            e.a.lea_label(RSI, here);
            e.a.mov(RCX, RDX);
            e.a.constant(RDX, u64::from(add));
            e.helper(helpers::sum as *const () as usize);
            e.set(dst, RDX);
            e.a.jump(done);
        }));
    }
}

fn source(r: Reg) -> Src {
    match r {
        Reg::X(n) => Src::X(n),
        Reg::Y(n) => Src::Y(n),
    }
}
