//! What can be seen without following control: the functions, the labels, the
//! operands of each instruction by themselves.

use super::{Checked, Fault, Function, MAX_FLOAT, MAX_HEAP, MAX_X, MAX_Y, Validated};
use crate::code::{Arg, Instr};
use crate::module::Module;
use crate::op::{Kind, Op};

/// More labels do not fit in the analysis; no file of the default size limit has them.
const MAX_LABELS: usize = 1 << 26;

/// Finds labels and functions, and checks tables that point to them.
pub(super) fn functions(module: &Module) -> Checked<Validated> {
    let code = &module.code;
    let instrs = &code.instrs;
    let count = code.label_count as usize;
    // Compilers number labels without gaps; more could only be meant to be costly.
    if count > instrs.len() + 1 || count > MAX_LABELS {
        return Err((0, Fault::Label(code.label_count)));
    }
    let mut v = Validated {
        labels: vec![u32::MAX; count],
        reachable: vec![0; instrs.len().div_ceil(64)],
        ..Validated::default()
    };
    let mut first = None;
    for (i, instr) in instrs.iter().enumerate() {
        match instr.op {
            Op::Label => {
                let Arg::U(label) = code.args(instr)[0] else {
                    return Err((i, Fault::Operand(0)));
                };
                match v.labels.get_mut(label as usize) {
                    Some(place) if label != 0 && *place == u32::MAX => *place = i as u32,
                    _ => return Err((i, Fault::Label(label as u32))),
                }
                first = first.or(Some(i));
            }
            Op::Line | Op::ExecutableLine | Op::DebugLine => {}
            Op::FuncInfo => {
                let begin = first.ok_or((i, Fault::Function("func_info without a label")))?;
                let [_, Arg::A(name), Arg::U(arity)] = *code.args(instr) else {
                    return Err((i, Fault::Operand(1)));
                };
                let arity = u8::try_from(arity).map_err(|_| (i, Fault::Operand(2)))?;
                let entry = i + 1;
                let label = match instrs.get(entry) {
                    Some(next) if next.op == Op::Label => match code.args(next)[0] {
                        Arg::U(label) => label as u32,
                        _ => return Err((entry, Fault::Operand(0))),
                    },
                    _ => return Err((i, Fault::Function("func_info without an entry"))),
                };
                if let Some(last) = v.functions.last_mut() {
                    last.end = begin as u32;
                } else if begin != 0 {
                    return Err((0, Fault::Function("code before the first function")));
                }
                v.functions.push(Function {
                    name,
                    arity,
                    label,
                    first: begin as u32,
                    func_info: i as u32,
                    entry: entry as u32,
                    end: instrs.len() as u32,
                    context_params: [0; 4],
                    clear_frames: false,
                });
                first = None;
            }
            _ => first = None,
        }
    }
    let last = instrs.len() - 1;
    match v.functions.last_mut() {
        Some(f) => f.end = last as u32,
        None if last != 0 => return Err((0, Fault::Function("code outside functions"))),
        None => {}
    }
    if v.functions.len() != code.function_count as usize {
        return Err((last, Fault::Function("another count than in the header")));
    }
    for export in &module.exports {
        match v.function_of_label(export.label) {
            Some(f) if f.arity == export.arity => {}
            _ => return Err((last, Fault::NotAnEntry("an export"))),
        }
    }
    for lambda in &module.lambdas {
        match v.function_of_label(lambda.label) {
            Some(f) if f.arity == lambda.arity => {}
            _ => return Err((last, Fault::NotAnEntry("a lambda"))),
        }
    }
    Ok(v)
}

/// Checks the operands of every instruction against their kinds.
pub(super) fn operands(module: &Module, v: &mut Validated) -> Checked<()> {
    let mut f = 0;
    for (i, instr) in module.code.instrs.iter().enumerate() {
        while f + 1 < v.functions.len() && v.functions[f + 1].first as usize <= i {
            f += 1;
        }
        let range = v.functions.get(f).map_or((0, 0), |f| (f.first, f.end));
        let mut c = Check {
            module,
            labels: &v.labels,
            range,
            x: v.x_count,
            float: v.float_count,
        };
        c.instr(instr).map_err(|fault| (i, fault))?;
        (v.x_count, v.float_count) = (c.x, c.float);
        if let (Op::Call | Op::CallLast | Op::CallOnly, [Arg::U(arity), Arg::F(label), ..]) =
            (instr.op, module.code.args(instr))
        {
            match v.function_of_label(*label) {
                Some(f) if f.arity as u64 == *arity => {}
                _ => return Err((i, Fault::NotAnEntry("the callee"))),
            }
        }
    }
    Ok(())
}

struct Check<'a> {
    module: &'a Module,
    labels: &'a [u32],
    range: (u32, u32),
    x: u16,
    float: u16,
}

type Is = Result<(), Fault>;

impl Check<'_> {
    fn instr(&mut self, instr: &Instr) -> Is {
        if instr.op.is_obsolete() {
            return Err(Fault::Obsolete);
        }
        let args = self.module.code.args(instr);
        for (n, (&arg, &kind)) in args.iter().zip(instr.op.info().operands).enumerate() {
            if !self.operand(instr.op, arg, kind)? {
                return Err(Fault::Operand(n));
            }
        }
        match (instr.op, args) {
            (Op::CallExt | Op::CallExtLast | Op::CallExtOnly, [arity, Arg::U(import), ..]) => {
                let import = &self.module.imports[*import as usize];
                if *arity != Arg::U(import.arity as u64) {
                    return Err(Fault::NotAnEntry("the import"));
                }
            }
            (Op::Bif0, [import, _]) => self.bif(*import, 0)?,
            (Op::Bif1, [_, import, ..]) => self.bif(*import, 1)?,
            (Op::Bif2, [_, import, ..]) => self.bif(*import, 2)?,
            (Op::Bif3, [_, import, ..]) => self.bif(*import, 3)?,
            (Op::GcBif1, [_, _, import, ..]) => self.bif(*import, 1)?,
            (Op::GcBif2, [_, _, import, ..]) => self.bif(*import, 2)?,
            (Op::GcBif3, [_, _, import, ..]) => self.bif(*import, 3)?,
            (Op::BsPutString, [Arg::U(len), Arg::U(at)]) => self.string(*at, Some(*len))?,
            (Op::BsMatchString, [_, _, Arg::U(bits), Arg::U(at)]) => {
                self.string(*at, Some(bits.div_ceil(8)))?;
            }
            (Op::FuncInfo, [Arg::A(m), Arg::A(f), _]) if *m == 0 || *f == 0 => {
                return Err(Fault::Index("atom"));
            }
            _ => {}
        }
        Ok(())
    }

    fn bif(&self, import: Arg, arity: u8) -> Is {
        let Arg::U(import) = import else {
            return Err(Fault::Index("import"));
        };
        let import = &self.module.imports[import as usize];
        if import.arity != arity || self.module.atom(import.module) != "erlang" {
            return Err(Fault::NotAnEntry("the BIF"));
        }
        Ok(())
    }

    fn string(&self, at: u64, len: Option<u64>) -> Is {
        match len.and_then(|len| at.checked_add(len)) {
            Some(end) if end <= self.module.strings.len() as u64 => Ok(()),
            _ => Err(Fault::Index("string")),
        }
    }

    /// Whether an operand is of a kind; an error when it is, but out of range.
    fn operand(&mut self, op: Op, arg: Arg, kind: Kind) -> Result<bool, Fault> {
        let m = self.module;
        Ok(match kind {
            Kind::U if op == Op::BsTestTail2 => matches!(arg, Arg::U(_) | Arg::Huge(_)),
            Kind::U => matches!(arg, Arg::U(_)),
            Kind::Unit => matches!(arg, Arg::U(0..=256)),
            Kind::Str => matches!(arg, Arg::U(_)),
            Kind::Arity => matches!(arg, Arg::U(0..=255)),
            Kind::Live => matches!(arg, Arg::U(n) if n <= MAX_X as u64),
            Kind::Frame => matches!(arg, Arg::U(n) if n <= MAX_Y as u64),
            Kind::Heap => match arg {
                Arg::U(words) => words <= MAX_HEAP,
                Arg::Alloc(span) => {
                    let list = m.code.alloc(span);
                    list.len() <= 8 && list.iter().all(|&(_, n)| n <= MAX_HEAP)
                }
                _ => false,
            },
            Kind::Import => index(arg, m.imports.len(), "import")?,
            Kind::Lambda => index(arg, m.lambdas.len(), "lambda")?,
            Kind::Line => match arg {
                Arg::U(_) if m.lines.entries.is_empty() => true,
                _ => index(arg, m.lines.entries.len(), "line")?,
            },
            Kind::Label => self.label(op, arg)? && arg != Arg::F(0),
            Kind::Fail => self.label(op, arg)?,
            Kind::Atom => match arg {
                Arg::A(_) => self.value(arg)?,
                _ => false,
            },
            Kind::Src => self.value(arg)?,
            Kind::Dst | Kind::Ctx => self.register(arg)?,
            Kind::Y => arg.y().is_some() && self.register(arg)?,
            Kind::Float => self.float(arg)?,
            Kind::FloatSrc => self.float(arg)? || self.value(arg)?,
            Kind::FloatDst => self.float(arg)? || self.register(arg)?,
            Kind::List => match arg {
                Arg::List(span) => {
                    self.list(op, m.code.list(span))?;
                    true
                }
                _ => false,
            },
            Kind::Any => match (op, arg) {
                (Op::BsStartMatch4, Arg::F(l)) => l != 0 && self.label(op, arg)?,
                (Op::BsStartMatch4, Arg::A(a)) => matches!(m.atom(a), "no_fail" | "resume"),
                (Op::CallFun2, Arg::U(_)) => index(arg, m.lambdas.len(), "lambda")?,
                (Op::CallFun2, Arg::A(a)) => matches!(m.atom(a), "safe" | "unsafe"),
                _ => false,
            },
            Kind::Size => matches!(arg, Arg::U(_)) || self.value(arg)?,
        })
    }

    fn label(&self, op: Op, arg: Arg) -> Result<bool, Fault> {
        match arg {
            Arg::F(0) => Ok(true),
            Arg::F(label) => {
                // A local call goes anywhere; its target is checked to be an entry.
                if matches!(op, Op::Call | Op::CallLast | Op::CallOnly) {
                    return Ok(true);
                }
                match self.labels.get(label as usize) {
                    None | Some(&u32::MAX) => Err(Fault::Label(label)),
                    Some(&i) if i >= self.range.0 && i < self.range.1 => Ok(true),
                    Some(_) => Err(Fault::ForeignLabel(label)),
                }
            }
            _ => Ok(false),
        }
    }

    fn register(&mut self, arg: Arg) -> Result<bool, Fault> {
        match (arg.x(), arg.y()) {
            (Some(x), _) if x >= MAX_X => return Err(Fault::Register),
            (Some(x), _) => self.x = self.x.max(x + 1),
            (_, Some(y)) if y >= MAX_Y => return Err(Fault::Register),
            (_, Some(_)) => {}
            _ => return Ok(false),
        }
        if let Some(ty) = arg.type_index()
            && !self.module.types.entries.is_empty()
            && ty as usize >= self.module.types.entries.len()
        {
            return Err(Fault::Index("type"));
        }
        Ok(true)
    }

    fn value(&mut self, arg: Arg) -> Result<bool, Fault> {
        match arg {
            Arg::A(a) if a as usize > self.module.atoms.len() => Err(Fault::Index("atom")),
            Arg::A(_) | Arg::I(_) | Arg::Big(_) | Arg::Float(_) => Ok(true),
            Arg::Literal(l) if l as usize >= self.module.literals.len() => {
                Err(Fault::Index("literal"))
            }
            Arg::Literal(_) => Ok(true),
            _ => self.register(arg),
        }
    }

    fn float(&mut self, arg: Arg) -> Result<bool, Fault> {
        match arg {
            Arg::Fr(fr) if fr >= MAX_FLOAT => Err(Fault::Register),
            Arg::Fr(fr) => {
                self.float = self.float.max(fr + 1);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn need(&mut self, op: Op, arg: Arg, kind: Kind, what: &'static str) -> Is {
        if self.operand(op, arg, kind)? {
            Ok(())
        } else {
            Err(Fault::List(what))
        }
    }

    fn list(&mut self, op: Op, list: &[Arg]) -> Is {
        let pairs = list.as_chunks::<2>();
        let even = |what| {
            if pairs.1.is_empty() {
                Ok(())
            } else {
                Err(Fault::List(what))
            }
        };
        match op {
            Op::SelectVal => {
                even("values and labels")?;
                for &[value, label] in pairs.0 {
                    if arg_is_register(value) {
                        return Err(Fault::List("value"));
                    }
                    self.need(op, value, Kind::Src, "value")?;
                    self.need(op, label, Kind::Label, "label")?;
                }
            }
            Op::SelectTupleArity => {
                even("sizes and labels")?;
                for &[size, label] in pairs.0 {
                    self.need(op, size, Kind::U, "size")?;
                    self.need(op, label, Kind::Label, "label")?;
                }
            }
            Op::PutTuple2 | Op::MakeFun3 => {
                for &arg in list {
                    self.need(op, arg, Kind::Src, "element")?;
                }
                if op == Op::PutTuple2 && list.is_empty() {
                    return Err(Fault::List("a tuple without elements"));
                }
            }
            Op::InitYregs => {
                for &arg in list {
                    self.need(op, arg, Kind::Y, "slot")?;
                }
            }
            Op::PutMapAssoc | Op::PutMapExact => {
                even("keys and values")?;
                for &arg in list {
                    self.need(op, arg, Kind::Src, "key or value")?;
                }
            }
            Op::HasMapFields => {
                for &arg in list {
                    self.need(op, arg, Kind::Src, "key")?;
                }
            }
            Op::GetMapElements => {
                even("keys and registers")?;
                for &[key, dst] in pairs.0 {
                    self.need(op, key, Kind::Src, "key")?;
                    self.need(op, dst, Kind::Dst, "register")?;
                }
            }
            Op::UpdateRecord => {
                even("indexes and values")?;
                for &[n, value] in pairs.0 {
                    self.need(op, n, Kind::U, "index")?;
                    self.need(op, value, Kind::Src, "value")?;
                }
            }
            Op::PutRecord => {
                even("fields and values")?;
                for &[field, value] in pairs.0 {
                    self.need(op, field, Kind::Atom, "field")?;
                    self.need(op, value, Kind::Src, "value")?;
                }
            }
            Op::GetRecordElements => {
                even("fields and registers")?;
                for &[field, dst] in pairs.0 {
                    self.need(op, field, Kind::Atom, "field")?;
                    self.need(op, dst, Kind::Dst, "register")?;
                }
            }
            Op::BsCreateBin => self.segments(op, list)?,
            Op::BsMatch => self.commands(op, list)?,
            _ => return Err(Fault::List("no list expected")),
        }
        Ok(())
    }

    /// The segments of `bs_create_bin`: type, number, unit, flags, value, size.
    fn segments(&mut self, op: Op, list: &[Arg]) -> Is {
        let (segments, rest) = list.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Fault::List("segments of six"));
        }
        for &[ty, number, unit, flags, value, size] in segments {
            let Arg::A(name) = ty else {
                return Err(Fault::List("segment type"));
            };
            self.need(op, ty, Kind::Atom, "segment type")?;
            self.need(op, number, Kind::U, "segment number")?;
            let Arg::U(unit) = unit else {
                return Err(Fault::List("unit"));
            };
            if !matches!(flags, Arg::A(0) | Arg::Literal(_)) {
                return Err(Fault::List("flags"));
            }
            self.need(op, flags, Kind::Src, "flags")?;
            let zero = match self.module.atom(name) {
                "string" => {
                    let (Arg::U(at), Arg::I(len)) = (value, size) else {
                        return Err(Fault::List("string segment"));
                    };
                    self.string(at, u64::try_from(len).ok())?;
                    continue;
                }
                "append" | "private_append" | "binary" | "integer" | "float" => false,
                "utf8" | "utf16" | "utf32" => true,
                _ => return Err(Fault::List("segment type")),
            };
            if unit > 256 || (unit == 0) != zero {
                return Err(Fault::List("unit"));
            }
            self.need(op, value, Kind::Src, "value")?;
            self.need(op, size, Kind::Src, "size")?;
        }
        Ok(())
    }

    /// The commands of `bs_match`: bits that are read must have been ensured.
    fn commands(&mut self, op: Op, mut list: &[Arg]) -> Is {
        let mut ensured = 0u64;
        while let [Arg::A(name), ref rest @ ..] = *list {
            self.need(op, list[0], Kind::Atom, "command")?;
            let (taken, bits): (usize, u64) = match (self.module.atom(name), rest) {
                ("ensure_at_least", [Arg::U(size), Arg::U(_), ..]) => {
                    ensured = *size;
                    (2, 0)
                }
                ("ensure_at_least", [Arg::Huge(_), Arg::U(_), ..]) => {
                    ensured = u64::MAX;
                    (2, 0)
                }
                ("ensure_exactly", [Arg::Huge(_), ..]) => {
                    ensured = u64::MAX;
                    (1, 0)
                }
                ("skip", [Arg::Huge(_), ..]) => (1, ensured),
                ("ensure_exactly", [Arg::U(size), ..]) => {
                    ensured = *size;
                    (1, 0)
                }
                ("binary" | "integer", [live, flags, Arg::U(size), Arg::U(unit), dst, ..]) => {
                    self.need(op, *live, Kind::Live, "live count")?;
                    if !matches!(flags, Arg::A(0) | Arg::Literal(_)) {
                        return Err(Fault::List("flags"));
                    }
                    self.need(op, *flags, Kind::Src, "flags")?;
                    self.need(op, *dst, Kind::Dst, "register")?;
                    let bits = size.checked_mul(*unit).ok_or(Fault::List("size"))?;
                    (5, bits)
                }
                ("skip", [Arg::U(size), ..]) => (1, *size),
                ("get_tail", [live, Arg::U(_), dst, ..]) => {
                    self.need(op, *live, Kind::Live, "live count")?;
                    self.need(op, *dst, Kind::Dst, "register")?;
                    // All the rest is taken, whatever was ensured.
                    ensured = 0;
                    (3, 0)
                }
                ("=:=", [Arg::A(0), Arg::U(bits), Arg::U(_), ..]) => {
                    if *bits > 64 {
                        return Err(Fault::List("more than 64 bits to compare"));
                    }
                    (3, *bits)
                }
                _ => return Err(Fault::List("command")),
            };
            ensured = ensured
                .checked_sub(bits)
                .ok_or(Fault::Binary("bs_match reads bits that are not ensured"))?;
            list = &rest[taken..];
        }
        if list.is_empty() {
            Ok(())
        } else {
            Err(Fault::List("command"))
        }
    }
}

fn index(arg: Arg, len: usize, what: &'static str) -> Result<bool, Fault> {
    match arg {
        Arg::U(n) if n < len as u64 => Ok(true),
        Arg::U(_) => Err(Fault::Index(what)),
        _ => Ok(false),
    }
}

fn arg_is_register(arg: Arg) -> bool {
    arg.x().is_some() || arg.y().is_some()
}
