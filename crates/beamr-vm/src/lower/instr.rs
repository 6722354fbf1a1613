//! Single instructions, but for bit syntax (`bits`) and guard BIFs (`bifs`).

use beamr_file::{Arg, Instr, Op as G};
use beamr_term::Word;
use beamr_term::atoms;

use super::build::{Lowering, Res};
use super::error::LowerFault;
use super::op::{CallKind, Compare, FloatOp, Op, Reg, Src, TypeTest, UpdateHint};

impl Lowering<'_> {
    /// Lowers the instruction at the current index; may take those that follow with it.
    pub fn instruction(&mut self, instr: Instr) -> Res {
        let module = self.module;
        let a = module.code.args(&instr);
        match instr.op {
            // Handled by the walk.
            G::Label | G::FuncInfo | G::IntCodeEnd | G::Line => {}

            // ---- calls
            G::Call => self.call(a, CallKind::Body)?,
            G::CallOnly => self.call(a, CallKind::Only)?,
            G::CallLast => {
                let kind = CallKind::Last(self.frame(a, 2)?);
                self.call(a, kind)?;
            }
            G::CallExt => self.call_ext(a, CallKind::Body)?,
            G::CallExtOnly => self.call_ext(a, CallKind::Only)?,
            G::CallExtLast => {
                let kind = CallKind::Last(self.frame(a, 2)?);
                self.call_ext(a, kind)?;
            }
            G::CallFun => {
                let arity = self.arity(a, 0)?;
                let kind = self.fun_call_kind()?;
                self.code.push(Op::CallFun { arity, kind });
            }
            G::CallFun2 => {
                // The tag is `safe`, `unsafe`, or the index of the one fun that it can be.
                let safe = match a[0] {
                    Arg::A(_) => self.atom_name(a, 0)? == atoms::SAFE,
                    Arg::U(_) | Arg::I(_) => true,
                    _ => return Err(self.fault(0, "call_fun2 tag")),
                };
                let arity = self.arity(a, 1)?;
                let fun = self.src(a, 2)?;
                let kind = self.fun_call_kind()?;
                self.code.push(Op::CallFun2 {
                    arity,
                    fun,
                    safe: safe && self.env.trusted,
                    kind,
                });
            }
            G::Apply => {
                let arity = self.arity(a, 0)?;
                let kind = CallKind::Body;
                self.code.push(Op::Apply { arity, kind });
            }
            G::ApplyLast => {
                let arity = self.arity(a, 0)?;
                let kind = CallKind::Last(self.frame(a, 1)?);
                self.code.push(Op::Apply { arity, kind });
            }
            G::Return => self.code.push(Op::Return),

            // ---- frames and heap
            G::Allocate => {
                let (slots, live) = (self.frame(a, 0)?, self.live(a, 1)?);
                self.allocate(slots, 0, live, false);
            }
            G::AllocateHeap => {
                let (slots, live) = (self.frame(a, 0)?, self.live(a, 2)?);
                let heap = self.heap(a, 1)?;
                self.allocate(slots, heap, live, false);
            }
            G::AllocateZero => {
                let (slots, live) = (self.frame(a, 0)?, self.live(a, 1)?);
                self.allocate(slots, 0, live, true);
            }
            G::AllocateHeapZero => {
                let (slots, live) = (self.frame(a, 0)?, self.live(a, 2)?);
                let heap = self.heap(a, 1)?;
                self.allocate(slots, heap, live, true);
            }
            G::TestHeap => {
                let (words, live) = (self.heap(a, 0)?, self.live(a, 1)?);
                if words > 0 {
                    self.code.push(Op::TestHeap { words, live });
                }
            }
            G::Init => {
                let y = self.y(a, 0)?;
                self.init_y(vec![y]);
            }
            G::InitYregs => {
                let list = self.list(a, 0)?;
                let slots = (0..list.len())
                    .map(|i| self.y(list, i))
                    .collect::<Res<Vec<u16>>>()?;
                self.init_y(slots);
            }
            G::Deallocate => {
                let slots = self.frame(a, 0)?;
                self.code.push(Op::Deallocate { slots });
            }
            G::Trim => {
                let (words, remaining) = (self.frame(a, 0)?, self.frame(a, 1)?);
                self.code.push(Op::Trim { words, remaining });
            }

            // ---- data
            G::Move => {
                let (src, dst) = (self.src(a, 0)?, self.reg(a, 1)?);
                if !same(src, dst) {
                    self.code.push(Op::Move { src, dst });
                }
            }
            G::Swap => {
                let (x, y) = (self.reg(a, 0)?, self.reg(a, 1)?);
                if x != y {
                    self.code.push(Op::Swap { a: x, b: y });
                }
            }
            G::GetHd => {
                let (src, dst) = (self.reg(a, 0)?, self.reg(a, 1)?);
                let checked = self.checked();
                self.code.push(Op::GetHd { src, dst, checked });
            }
            G::GetTl => {
                let (src, dst) = (self.reg(a, 0)?, self.reg(a, 1)?);
                let checked = self.checked();
                self.code.push(Op::GetTl { src, dst, checked });
            }
            G::GetList => {
                let op = Op::GetList {
                    src: self.reg(a, 0)?,
                    head: self.reg(a, 1)?,
                    tail: self.reg(a, 2)?,
                    checked: self.checked(),
                };
                self.code.push(op);
            }
            G::PutList => {
                let op = Op::PutList {
                    head: self.src(a, 0)?,
                    tail: self.src(a, 1)?,
                    dst: self.reg(a, 2)?,
                };
                self.code.push(op);
            }
            G::GetTupleElement => {
                let op = Op::GetTupleElement {
                    src: self.reg(a, 0)?,
                    index: self.tuple_size(a, 1)?,
                    dst: self.reg(a, 2)?,
                    checked: self.checked(),
                };
                self.code.push(op);
            }
            G::SetTupleElement => {
                let op = Op::SetTupleElement {
                    value: self.src(a, 0)?,
                    tuple: self.reg(a, 1)?,
                    index: self.tuple_size(a, 2)?,
                    checked: self.checked(),
                };
                self.code.push(op);
            }
            G::PutTuple2 => {
                let list = self.list(a, 1)?;
                let elements = self.srcs(list, 0..list.len())?;
                let dst = self.reg(a, 0)?;
                self.code.push(Op::PutTuple { elements, dst });
            }
            G::PutTuple => self.old_tuple(a)?,
            G::UpdateRecord => self.update_record(a)?,
            G::MakeFun2 => self.old_fun(a)?,
            G::MakeFun3 => {
                let lambda = self.lambda(a, 0)?;
                let dst = self.reg(a, 1)?;
                let list = self.list(a, 2)?;
                let env = self.srcs(list, 0..list.len())?;
                if env.len() != usize::from(module.lambdas[lambda as usize].num_free) {
                    return Err(LowerFault::Inconsistent(
                        "the fun captures another number of values",
                    ));
                }
                self.code.push(Op::MakeFun { lambda, dst, env });
            }

            // ---- tests
            G::IsInteger => self.test(TypeTest::Integer, a)?,
            G::IsFloat => self.test(TypeTest::Float, a)?,
            G::IsNumber => self.test(TypeTest::Number, a)?,
            G::IsAtom => self.test(TypeTest::Atom, a)?,
            G::IsPid => self.test(TypeTest::Pid, a)?,
            G::IsReference => self.test(TypeTest::Reference, a)?,
            G::IsPort => self.test(TypeTest::Port, a)?,
            G::IsNil => self.test(TypeTest::Nil, a)?,
            G::IsBinary => self.test(TypeTest::Binary, a)?,
            G::IsBitstr => self.test(TypeTest::Bitstring, a)?,
            G::IsList => self.test(TypeTest::List, a)?,
            G::IsNonemptyList => self.test(TypeTest::NonemptyList, a)?,
            G::IsTuple => self.test(TypeTest::Tuple, a)?,
            G::IsBoolean => self.test(TypeTest::Boolean, a)?,
            G::IsFunction => self.test(TypeTest::Function, a)?,
            G::IsMap => self.test(TypeTest::Map, a)?,
            G::IsAnyNativeRecord => self.test(TypeTest::AnyNativeRecord, a)?,
            G::TestArity => {
                let (fail, src) = (self.label(a, 0)?, self.src(a, 1)?);
                let arity = self.tuple_size(a, 2)?;
                let checked = self.take_tuple_test(src, fail) || self.checked();
                self.code.push(Op::TestArity {
                    src,
                    arity,
                    fail,
                    checked,
                });
            }
            G::IsTaggedTuple => {
                let op = Op::IsTaggedTuple {
                    fail: self.label(a, 0)?,
                    src: self.src(a, 1)?,
                    arity: self.tuple_size(a, 2)?,
                    tag: self.atom(a, 3)?,
                };
                self.code.push(op);
            }
            G::IsFunction2 => {
                let op = Op::IsFunction2 {
                    fail: self.label(a, 0)?,
                    src: self.src(a, 1)?,
                    arity: self.src(a, 2)?,
                };
                self.code.push(op);
            }
            G::IsLt => self.compare(Compare::Lt, a)?,
            G::IsGe => self.compare(Compare::Ge, a)?,
            G::IsEq => self.compare(Compare::Eq, a)?,
            G::IsNe => self.compare(Compare::Ne, a)?,
            G::IsEqExact => self.compare(Compare::EqExact, a)?,
            G::IsNeExact => self.compare(Compare::NeExact, a)?,
            G::SelectVal => self.select_val(a)?,
            G::SelectTupleArity => {
                let (src, fail) = (self.src(a, 0)?, self.label(a, 1)?);
                let (list, pairs) = self.pairs(a, 2)?;
                let mut out = Vec::with_capacity(pairs.len());
                for i in pairs {
                    out.push((self.tuple_size(list, 2 * i)?, self.label(list, 2 * i + 1)?));
                }
                out.sort_by_key(|p| p.0);
                out.dedup_by_key(|p| p.0);
                let checked = self.take_tuple_test(src, fail) || self.checked();
                self.code.push(Op::SelectArity {
                    src,
                    fail,
                    pairs: out.into(),
                    checked,
                });
            }
            G::Jump => {
                let l = self.label(a, 0)?;
                self.code.push(Op::Jump(l));
            }

            // ---- floats
            G::Fclearerror | G::Fcheckerror => {}
            G::Fmove => {
                let op = match (a[0], a[1]) {
                    (Arg::Fr(_), _) => Op::FloatStore {
                        src: self.float(a, 0)?,
                        dst: self.reg(a, 1)?,
                    },
                    _ => Op::FloatLoad {
                        src: self.src(a, 0)?,
                        dst: self.float(a, 1)?,
                        checked: self.checked(),
                    },
                };
                self.code.push(op);
            }
            G::Fconv => {
                let (src, dst) = (self.src(a, 0)?, self.float(a, 1)?);
                self.code.push(Op::FloatConvert { src, dst });
            }
            G::Fadd => self.float_arith(FloatOp::Add, a)?,
            G::Fsub => self.float_arith(FloatOp::Sub, a)?,
            G::Fmul => self.float_arith(FloatOp::Mul, a)?,
            G::Fdiv => self.float_arith(FloatOp::Div, a)?,
            G::Fnegate => {
                let op = Op::FloatNegate {
                    fail: self.fail(a, 0)?,
                    a: self.float(a, 1)?,
                    dst: self.float(a, 2)?,
                };
                self.code.push(op);
            }

            // ---- exceptions
            G::Catch => {
                let (y, handler) = (self.y(a, 0)?, self.handler(a, 1)?);
                self.code.push(Op::Catch { y, handler });
            }
            G::Try => {
                let (y, handler) = (self.y(a, 0)?, self.handler(a, 1)?);
                self.code.push(Op::Try { y, handler });
            }
            G::CatchEnd => {
                let y = self.y(a, 0)?;
                self.code.push(Op::CatchEnd { y });
            }
            G::TryEnd => {
                let y = self.y(a, 0)?;
                self.code.push(Op::TryEnd { y });
            }
            G::TryCase => {
                let y = self.y(a, 0)?;
                self.code.push(Op::TryCase { y });
            }
            G::TryCaseEnd => {
                let src = self.src(a, 0)?;
                self.code.push(Op::TryCaseEnd { src });
            }
            G::Raise => {
                let (trace, value) = (self.src(a, 0)?, self.src(a, 1)?);
                self.code.push(Op::RaiseOld { trace, value });
            }
            G::RawRaise => self.code.push(Op::RawRaise),
            G::BuildStacktrace => self.code.push(Op::BuildStacktrace),
            G::Badmatch => {
                let src = self.src(a, 0)?;
                self.code.push(Op::Badmatch { src });
            }
            G::IfEnd => self.code.push(Op::IfEnd),
            G::CaseEnd => {
                let src = self.src(a, 0)?;
                self.code.push(Op::CaseEnd { src });
            }
            G::Badrecord => {
                let src = self.src(a, 0)?;
                self.code.push(Op::BadRecord { src });
            }

            // ---- messages
            G::Send => self.code.push(Op::Send),
            G::RemoveMessage => self.code.push(Op::RemoveMessage),
            G::Timeout => self.code.push(Op::Timeout),
            G::LoopRec => {
                let empty = self.label(a, 0)?;
                let dst = self.reg(a, 1)?;
                self.code.push(Op::LoopRec { empty });
                if dst != Reg::X(0) {
                    let src = Src::X(0);
                    self.code.push(Op::Move { src, dst });
                }
            }
            G::LoopRecEnd => {
                let next = self.label(a, 0)?;
                self.code.push(Op::LoopRecEnd { next });
            }
            G::Wait => {
                let retry = self.label(a, 0)?;
                self.code.push(Op::Wait { retry });
            }
            G::WaitTimeout => {
                let (retry, timeout) = (self.label(a, 0)?, self.src(a, 1)?);
                self.code.push(Op::WaitTimeout { retry, timeout });
            }
            // Optional in old code: a receive without a mark scans from the start.
            G::RecvMark | G::RecvSet => {}
            G::RecvMarkerReserve => {
                let dst = self.reg(a, 0)?;
                self.code.push(Op::MarkerReserve { dst });
            }
            G::RecvMarkerBind => {
                let (marker, reference) = (self.src(a, 0)?, self.src(a, 1)?);
                self.code.push(Op::MarkerBind { marker, reference });
            }
            G::RecvMarkerClear => {
                let reference = self.src(a, 0)?;
                self.code.push(Op::MarkerClear { reference });
            }
            G::RecvMarkerUse => {
                let reference = self.src(a, 0)?;
                self.code.push(Op::MarkerUse { reference });
            }

            // ---- maps
            G::PutMapAssoc => self.put_map(true, a)?,
            G::PutMapExact => self.put_map(false, a)?,
            G::HasMapFields => {
                let (fail, src) = (self.label(a, 0)?, self.src(a, 1)?);
                let list = self.list(a, 2)?;
                let keys = self.srcs(list, 0..list.len())?;
                let checked = self.checked();
                self.code.push(Op::HasMapFields {
                    src,
                    fail,
                    keys,
                    checked,
                });
            }
            G::GetMapElements => {
                let (fail, src) = (self.label(a, 0)?, self.src(a, 1)?);
                let (list, pairs) = self.pairs(a, 2)?;
                let pairs = pairs
                    .map(|i| Ok((self.src(list, 2 * i)?, self.reg(list, 2 * i + 1)?)))
                    .collect::<Res<Box<[_]>>>()?;
                let checked = self.checked();
                self.code.push(Op::GetMapElements {
                    src,
                    fail,
                    pairs,
                    checked,
                });
            }

            // ---- native records
            G::IsNativeRecord => {
                let op = Op::IsNativeRecord {
                    fail: self.label(a, 0)?,
                    src: self.src(a, 1)?,
                    module: self.atom(a, 2)?,
                    name: self.atom(a, 3)?,
                };
                self.code.push(op);
            }
            G::IsRecordAccessible => {
                let op = Op::IsRecordAccessible {
                    fail: self.label(a, 0)?,
                    src: self.src(a, 1)?,
                    scope: self.atom(a, 2)?,
                };
                self.code.push(op);
            }
            G::GetRecordElements => {
                let (fail, src) = (self.fail(a, 0)?, self.src(a, 1)?);
                let (list, pairs) = self.pairs(a, 2)?;
                let pairs = pairs
                    .map(|i| Ok((self.atom(list, 2 * i)?, self.reg(list, 2 * i + 1)?)))
                    .collect::<Res<Box<[_]>>>()?;
                self.code.push(Op::GetRecordElements { src, pairs, fail });
            }
            G::GetRecordField => {
                let op = Op::GetRecordField {
                    fail: self.fail(a, 0)?,
                    src: self.src(a, 1)?,
                    id: self.src(a, 2)?,
                    field: self.atom(a, 3)?,
                    dst: self.reg(a, 4)?,
                };
                self.code.push(op);
            }
            G::PutRecord => {
                let fail = self.fail(a, 0)?;
                let (list, pairs) = self.pairs(a, 5)?;
                let pairs = pairs
                    .map(|i| Ok((self.atom(list, 2 * i)?, self.src(list, 2 * i + 1)?)))
                    .collect::<Res<Box<[_]>>>()?;
                let op = Op::PutRecord {
                    fail,
                    id: self.src(a, 1)?,
                    src: self.src(a, 2)?,
                    dst: self.reg(a, 3)?,
                    live: self.live(a, 4)?,
                    pairs,
                };
                self.code.push(op);
            }

            // ---- marks
            G::OnLoad => {
                self.on_load = Some(self.this_function()?.entry);
            }
            G::NifStart => {
                let f = self.this_function()?;
                self.nifs.push((f.name, f.arity));
                self.code.push(Op::NifStart);
            }
            G::ExecutableLine | G::DebugLine => {}

            // ---- guard BIFs
            G::Bif0 | G::Bif1 | G::Bif2 | G::Bif3 | G::GcBif1 | G::GcBif2 | G::GcBif3 => {
                self.guard_bif(instr, a)?;
            }

            // ---- what no release since OTP 24 loads and nothing rewrites
            G::MPlus
            | G::MMinus
            | G::MTimes
            | G::MDiv
            | G::IntDiv
            | G::IntRem
            | G::IntBand
            | G::IntBor
            | G::IntBxor
            | G::IntBsl
            | G::IntBsr
            | G::IntBnot
            | G::IsConstant
            | G::PutString
            | G::PutLiteral
            | G::MakeFun
            | G::BsStartMatch
            | G::BsGetInteger
            | G::BsGetFloat
            | G::BsGetBinary
            | G::BsSkipBits
            | G::BsTestTail
            | G::BsSave
            | G::BsRestore
            | G::BsSave2
            | G::BsRestore2
            | G::BsInit
            | G::BsFinal
            | G::BsFinal2
            | G::BsNeedBuf
            | G::BsBitsToBytes
            | G::BsBitsToBytes2
            | G::BsContextToBinary => return Err(LowerFault::Obsolete),
            G::Put => return Err(LowerFault::Orphan),

            // ---- bit syntax
            _ => self.bit_syntax(instr, a)?,
        }
        Ok(())
    }

    fn call(&mut self, a: &[Arg], kind: CallKind) -> Res {
        let arity = self.arity(a, 0)?;
        let target = self.callee(a, 1)?;
        self.code.push(match self.native_entries.get(&target) {
            // A tail call leaves no trace of its caller: it goes through the native's own function.
            Some(&(native, export)) if kind == CallKind::Body => Op::CallNative {
                native,
                export,
                kind,
            },
            _ => Op::Call {
                target,
                arity,
                kind,
            },
        });
        Ok(())
    }

    fn call_ext(&mut self, a: &[Arg], kind: CallKind) -> Res {
        let arity = self.arity(a, 0)?;
        let import = self.import_operand(a, 1)?;
        if u16::from(import.arity) != arity {
            return Err(LowerFault::Inconsistent("the import has another arity"));
        }
        let export = import.export;
        let never_returns = import.never_returns;
        let kind = if never_returns { CallKind::Body } else { kind };
        let op = match import.native {
            Some(native) => Op::CallNative {
                native,
                export,
                kind,
            },
            None => Op::CallExt {
                export,
                arity,
                kind,
            },
        };
        self.code.push(op);
        if never_returns {
            self.trap();
        }
        Ok(())
    }

    /// Fun calls have no tail form of their own: the frame is dropped behind them.
    fn fun_call_kind(&mut self) -> Res<CallKind> {
        if let (Some(next), Some(last)) = (self.following(1), self.following(2))
            && next.op == G::Deallocate
            && last.op == G::Return
        {
            let slots = self.frame(self.module.code.args(next), 0)?;
            self.index += 2;
            return Ok(CallKind::Last(slots));
        }
        Ok(CallKind::Body)
    }

    fn allocate(&mut self, slots: u16, heap: u32, live: u16, zero: bool) {
        self.code.push(Op::Allocate { slots, heap, live });
        if slots > 0 && (zero || self.clears_frames()) {
            self.init_y((0..slots).collect());
        }
    }

    fn init_y(&mut self, mut slots: Vec<u16>) {
        if let Some(Op::InitY(before)) = self.code.last_mut() {
            let mut all = std::mem::take(before).into_vec();
            all.append(&mut slots);
            *before = all.into();
        } else if !slots.is_empty() {
            self.code.push(Op::InitY(slots.into()));
        }
    }

    fn lambda(&self, a: &[Arg], i: usize) -> Res<u32> {
        let n = self.number(a, i, "lambda", u64::from(u32::MAX))?;
        if n as usize >= self.module.lambdas.len() {
            return Err(self.fault(i, "lambda that exists"));
        }
        Ok(n as u32)
    }

    /// `make_fun2`: reserves its own heap, takes the environment from x0.. and loses the other X registers.
    fn old_fun(&mut self, a: &[Arg]) -> Res {
        let lambda = self.lambda(a, 0)?;
        let free = u16::from(self.module.lambdas[lambda as usize].num_free);
        self.code.push(Op::TestHeap {
            words: 2 + u32::from(free),
            live: free,
        });
        self.code.push(Op::MakeFun {
            lambda,
            dst: Reg::X(0),
            env: (0..free).map(Src::X).collect(),
        });
        Ok(())
    }

    /// `put_tuple` and the `put`s behind it.
    fn old_tuple(&mut self, a: &[Arg]) -> Res {
        let module = self.module;
        let size = self.tuple_size(a, 0)?;
        let dst = self.reg(a, 1)?;
        let mut elements = Vec::new();
        for _ in 0..size {
            match self.following(1) {
                Some(put) if put.op == G::Put => {
                    elements.push(self.src(module.code.args(put), 0)?);
                    self.index += 1;
                }
                _ => return Err(LowerFault::Inconsistent("fewer put than elements")),
            }
        }
        self.code.push(Op::PutTuple {
            elements: elements.into(),
            dst,
        });
        Ok(())
    }

    fn update_record(&mut self, a: &[Arg]) -> Res {
        let hint = match self.env.tables.atoms.text(self.atom_name(a, 0)?) {
            "reuse" => UpdateHint::Reuse,
            // What the compiler proved of the only reference is a hint like any other.
            "inplace" if self.env.trusted => UpdateHint::InPlace,
            _ => UpdateHint::Copy,
        };
        let size = self.tuple_size(a, 1)?;
        let (src, dst) = (self.src(a, 2)?, self.reg(a, 3)?);
        let (list, pairs) = self.pairs(a, 4)?;
        let mut updates = Vec::with_capacity(pairs.len());
        for i in pairs {
            let element = self.tuple_size(list, 2 * i)?;
            if element == 0 || element > size {
                return Err(LowerFault::Inconsistent("an element outside the tuple"));
            }
            updates.push((element - 1, self.src(list, 2 * i + 1)?));
        }
        self.code.push(Op::UpdateRecord {
            hint,
            size,
            src,
            dst,
            updates: updates.into(),
            checked: self.checked(),
        });
        Ok(())
    }

    fn test(&mut self, test: TypeTest, a: &[Arg]) -> Res {
        let (fail, src) = (self.label(a, 0)?, self.src(a, 1)?);
        self.code.push(Op::Test { test, src, fail });
        Ok(())
    }

    /// Takes back an `is_tuple` of the same operand and label, which the op that follows does as well.
    fn take_tuple_test(&mut self, of: Src, to: u32) -> bool {
        let found = matches!(
            self.code.last(),
            Some(Op::Test { test: TypeTest::Tuple, src, fail }) if *src == of && *fail == to
        );
        if found {
            self.code.pop();
        }
        found
    }

    fn compare(&mut self, op: Compare, a: &[Arg]) -> Res {
        let op = Op::Compare {
            op,
            fail: self.label(a, 0)?,
            a: self.src(a, 1)?,
            b: self.src(a, 2)?,
        };
        self.code.push(op);
        Ok(())
    }

    fn select_val(&mut self, a: &[Arg]) -> Res {
        let (src, fail) = (self.src(a, 0)?, self.label(a, 1)?);
        let (list, pairs) = self.pairs(a, 2)?;
        let mut out: Vec<(Word, u32)> = Vec::with_capacity(pairs.len());
        for i in pairs {
            out.push((self.constant(list, 2 * i)?, self.label(list, 2 * i + 1)?));
        }
        let op = if out.iter().all(|(w, _)| w.is_immediate()) {
            // The first of equal values counts; the sort is stable.
            out.sort_by_key(|(w, _)| w.bits());
            out.dedup_by_key(|(w, _)| w.bits());
            Op::SelectVal {
                src,
                fail,
                pairs: out.into(),
            }
        } else {
            Op::SelectTerm {
                src,
                fail,
                pairs: out.into(),
            }
        };
        self.code.push(op);
        Ok(())
    }

    fn float_arith(&mut self, op: FloatOp, a: &[Arg]) -> Res {
        let op = Op::FloatArith {
            op,
            fail: self.fail(a, 0)?,
            a: self.float(a, 1)?,
            b: self.float(a, 2)?,
            dst: self.float(a, 3)?,
        };
        self.code.push(op);
        Ok(())
    }

    fn put_map(&mut self, assoc: bool, a: &[Arg]) -> Res {
        let fail = self.fail(a, 0)?;
        let (list, pairs) = self.pairs(a, 4)?;
        let pairs = pairs
            .map(|i| Ok((self.src(list, 2 * i)?, self.src(list, 2 * i + 1)?)))
            .collect::<Res<Box<[_]>>>()?;
        let op = Op::PutMap {
            assoc,
            fail,
            src: self.src(a, 1)?,
            dst: self.reg(a, 2)?,
            live: self.live(a, 3)?,
            pairs,
        };
        self.code.push(op);
        Ok(())
    }
}

/// Whether the register is the operand.
pub(super) fn same(src: Src, dst: Reg) -> bool {
    match (src, dst) {
        (Src::X(a), Reg::X(b)) | (Src::Y(a), Reg::Y(b)) => a == b,
        _ => false,
    }
}
