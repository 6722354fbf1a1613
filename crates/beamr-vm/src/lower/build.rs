//! The lowering of a module: tables, the walk over functions, operands.
//!
//! `instr` translates single instructions, `bits` those of the bit syntax, `bifs` calls of guard BIFs with
//! what is known of their operands, `facts` runs over each finished function.
//!
//! What is checked here, of trusted code too, because engines rely on it: labels exist and are jumped to from their own
//! function only, calls go to function entries, registers and counts are within limits, indexes resolve. That
//! registers are initialised, frames balanced and heap space reserved is the business of the validator, which
//! untrusted code passes first; what it leaves to the lowering (`beamr_file::validate`) is done here: code that nothing
//! reaches is left out, a call that never returns is followed by an op that raises, frames are cleared where it says so.

use std::collections::{HashMap, HashSet};

use beamr_abi::{NativeEntry, NativeTable, X_REGISTERS};
use beamr_file::{AllocKind, Arg, Instr, Module, Op as Generic, Validated, validate};
use beamr_term::{Atom, ExportId, Tables, Word, atoms};

use super::bifs::Bif;
use super::consts::Constants;
use super::error::{LowerError, LowerFault, Place};
use super::op::{Label, NO_LABEL, Op, Reg, Src};
use super::{Function, Lambda, Location, Lowered, facts, loops};

pub(super) type Res<T = ()> = Result<T, LowerFault>;

/// Y registers there are.
pub const MAX_FRAME: u16 = 1024;
/// Heap words that one instruction may reserve.
const MAX_HEAP: u64 = 1 << 24;
/// Largest tuple.
const MAX_TUPLE: u64 = (1 << 24) - 1;
/// More bits than any bitstring has.
pub(super) const MAX_BITS: u64 = 1 << 56;
/// Largest arity of a function or fun.
const MAX_ARITY: u64 = 255;

/// What lowering needs of a VM.
#[derive(Clone, Copy, Debug)]
pub struct LowerEnv<'a> {
    /// Atoms and export ids.
    pub tables: &'a Tables,
    /// The natives of the VM's release.
    pub natives: &'a NativeTable,
    /// Whether the compiler's hints are believed and reads left unchecked.
    pub trusted: bool,
    /// The image's number, for [`Lowered::image_id`].
    pub image_id: u32,
}

/// An import, resolved.
pub(super) struct Import {
    pub export: ExportId,
    /// The compiler puts nothing sensible behind its calls, not even the right frame size.
    pub never_returns: bool,
    pub arity: u8,
    pub native: Option<&'static NativeEntry>,
    pub bif: Bif,
}

/// A function's label, who defines it.
const UNDEFINED: u32 = u32::MAX;
/// A label whose function is not known yet.
const PENDING: u32 = u32::MAX - 1;
/// How far back a peephole looks over labels.
const LOOK_BACK: usize = 8;

pub(super) struct Lowering<'a> {
    pub module: &'a Module,
    pub env: &'a LowerEnv<'a>,
    pub consts: Constants,
    /// What the validator found; of untrusted code.
    pub validated: Option<Validated>,
    pub imports: Vec<Import>,
    pub code: Vec<Op>,
    /// Number of the instruction being lowered.
    pub index: usize,
    /// The function being lowered ([`UNDEFINED`] before the first).
    pub function: u32,
    /// The index of its first op.
    start: usize,
    /// Whether it has an op whose live registers must be found.
    pub needs_live: bool,
    functions: Vec<Function>,
    /// Function of each label.
    owner: Vec<u32>,
    /// Entry labels that are natives.
    pub native_entries: HashMap<Label, (&'static NativeEntry, ExportId)>,
    /// Labels that instructions name: label, function, instruction.
    jumps: Vec<(Label, u32, u32)>,
    /// Labels that are called.
    calls: Vec<(Label, u32)>,
    line: u32,
    handlers: Vec<Label>,
    handler_set: HashSet<Label>,
    pub on_load: Option<Label>,
    pub nifs: Vec<(Atom, u32)>,
}

/// Lowers a module.
pub fn lower(module: &Module, env: &LowerEnv<'_>) -> Result<Lowered, LowerError> {
    let table_error = |(name, index): (&'static str, usize), what| LowerError {
        module: module.name.clone(),
        function: "-".into(),
        instruction: Place::Table { name, index },
        what,
    };
    let validated = if env.trusted {
        None
    } else {
        Some(check(module)?)
    };
    let consts =
        Constants::build(module, env.tables).map_err(|(at, what)| table_error(at, what))?;
    let mut l = Lowering {
        module,
        env,
        consts,
        validated,
        imports: Vec::with_capacity(module.imports.len()),
        code: Vec::with_capacity(module.code.instrs.len()),
        index: 0,
        function: UNDEFINED,
        start: 0,
        needs_live: false,
        functions: Vec::new(),
        owner: Vec::new(),
        native_entries: HashMap::new(),
        jumps: Vec::new(),
        calls: Vec::new(),
        line: UNDEFINED,
        handlers: Vec::new(),
        handler_set: HashSet::new(),
        on_load: None,
        nifs: Vec::new(),
    };
    for i in 0..module.imports.len() {
        l.import(i)
            .map_err(|what| table_error(("import", i), what))?;
    }
    l.find_functions()
        .and_then(|()| l.translate())
        .and_then(|()| l.check_labels())
        .map_err(|what| l.error_here(what))?;
    let (mut exports, mut lambdas) = l.tables().map_err(|(at, what)| table_error(at, what))?;
    l.split_entries(&mut exports, &mut lambdas);
    let name = l
        .consts
        .name(1)
        .ok_or_else(|| table_error(("atom", 1), LowerFault::Inconsistent("no module name")))?;
    let lines = &module.lines;
    Ok(Lowered {
        module: name,
        image_id: env.image_id,
        trusted: env.trusted,
        functions: l.functions,
        exports,
        lambdas,
        code: l.code,
        label_count: l.owner.len() as u32,
        handlers: l.handlers,
        locations: if lines.entries.is_empty() {
            vec![Location { file: 0, line: 0 }]
        } else {
            lines
                .entries
                .iter()
                .map(|e| Location {
                    file: e.file,
                    line: e.line,
                })
                .collect()
        },
        files: std::iter::once(format!("{}.erl", module.name))
            .chain(lines.files.iter().map(|f| file_name(f)))
            .collect(),
        literals: l.consts.literals,
        literal_area: l.consts.area,
        on_load: l.on_load,
        md5: module.md5,
        attributes: module.attributes.clone(),
        compile_info: module.compile_info.clone(),
        nifs: l.nifs,
        records: l.consts.records,
    })
}

/// What untrusted code must pass.
fn check(module: &Module) -> Result<Validated, LowerError> {
    let v = validate(module).map_err(|e| LowerError {
        module: e.module,
        function: if e.function.is_empty() {
            "-".into()
        } else {
            e.function
        },
        instruction: Place::Instruction {
            index: e.index,
            op: module
                .code
                .instrs
                .get(e.index)
                .map_or(Generic::IntCodeEnd, |i| i.op),
        },
        what: LowerFault::Invalid(e.what),
    })?;
    let refused = [
        (&v.peeked_calls, "a call while a message is only peeked at"),
        (&v.unreserved_funs, "a fun without reserved heap"),
    ];
    for (list, what) in refused {
        for &i in list {
            let op = module.code.instrs[i as usize].op;
            if op == Generic::MakeFun2 {
                // Reserves for itself.
                continue;
            }
            return Err(LowerError {
                module: module.name.clone(),
                function: v.function_at(i).map_or("-".into(), |f| {
                    format!("{}/{}", module.atom(f.name), f.arity)
                }),
                instruction: Place::Instruction {
                    index: i as usize,
                    op,
                },
                what: LowerFault::Inconsistent(what),
            });
        }
    }
    Ok(v)
}

/// File names are UTF-8; older compilers wrote Latin-1.
fn file_name(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(s) => s.to_owned(),
        Err(_) => bytes.iter().map(|&b| b as char).collect(),
    }
}

impl<'a> Lowering<'a> {
    fn error_here(&self, what: LowerFault) -> LowerError {
        let op = self
            .module
            .code
            .instrs
            .get(self.index)
            .map_or(Generic::IntCodeEnd, |i| i.op);
        let function = match self.functions.get(self.function as usize) {
            Some(f) => format!("{}/{}", self.env.tables.atoms.text(f.name), f.arity),
            None => "-".into(),
        };
        LowerError {
            module: self.module.name.clone(),
            function,
            instruction: Place::Instruction {
                index: self.index,
                op,
            },
            what,
        }
    }

    fn import(&mut self, i: usize) -> Res {
        let import = self.module.imports[i];
        let bad = LowerFault::Inconsistent("an import names no atom");
        let (Some(m), Some(f)) = (
            self.consts.name(import.module),
            self.consts.name(import.function),
        ) else {
            return Err(bad);
        };
        let export = self.env.tables.exports.id(m, f, u32::from(import.arity))?;
        let native = self.env.natives.get(
            self.module.atom(import.module),
            self.module.atom(import.function),
            import.arity,
        );
        self.imports.push(Import {
            export,
            never_returns: self.never_returns(m, f, import.arity),
            arity: import.arity,
            native,
            bif: Bif::of(m, f, import.arity),
        });
        Ok(())
    }

    /// The calls behind which compilers put nothing. Untrusted code is held to the validator's list, some functions
    /// of which may return in odd cases; trusted code comes from a compiler, whose list is shorter.
    fn never_returns(&self, m: Atom, f: Atom, arity: u8) -> bool {
        let text = |a| self.env.tables.atoms.text(a);
        beamr_file::never_returns(text(m), text(f), arity)
            && (!self.env.trusted || matches!(f, atoms::ERROR | atoms::EXIT | atoms::THROW))
    }

    /// First walk: which functions there are, whose every label is, which functions are natives.
    fn find_functions(&mut self) -> Res {
        let module = self.module;
        let instrs = &module.code.instrs;
        let limit = instrs.len() as u64 * 16 + 1024;
        let mut pending: Vec<u32> = Vec::new();
        let mut current = UNDEFINED;
        let own_name = module.atom(1);
        for (i, instr) in instrs.iter().enumerate() {
            self.index = i;
            match instr.op {
                Generic::Label => {
                    let n = self.number(module.code.args(instr), 0, "label", limit)? as u32;
                    if n == NO_LABEL {
                        return Err(LowerFault::NoLabel(0));
                    }
                    if self.owner.len() <= n as usize {
                        self.owner.resize(n as usize + 1, UNDEFINED);
                    }
                    if self.owner[n as usize] != UNDEFINED {
                        return Err(LowerFault::LabelTwice(n));
                    }
                    self.owner[n as usize] = PENDING;
                    pending.push(n);
                    continue;
                }
                Generic::Line => continue,
                Generic::FuncInfo => {
                    let args = module.code.args(instr);
                    let arity = self.number(args, 2, "arity", MAX_ARITY)? as u32;
                    let name_arg = match args[1] {
                        Arg::A(n) => n,
                        _ => 0,
                    };
                    let name = self
                        .consts
                        .name(name_arg)
                        .ok_or(self.fault(1, "function name"))?;
                    let entry = match instrs.get(i + 1) {
                        Some(next) if next.op == Generic::Label => {
                            self.number(module.code.args(next), 0, "label", limit)? as u32
                        }
                        _ => return Err(LowerFault::Inconsistent("no entry label follows")),
                    };
                    current = self.functions.len() as u32;
                    self.functions.push(Function { name, arity, entry });
                    if let Some(native) =
                        self.env
                            .natives
                            .get(own_name, module.atom(name_arg), arity as u8)
                    {
                        let m = self.consts.name(1).ok_or(self.fault(0, "module name"))?;
                        let export = self.env.tables.exports.id(m, name, arity)?;
                        self.native_entries.insert(entry, (native, export));
                    }
                }
                _ => {}
            }
            self.function = current;
            for l in pending.drain(..) {
                self.owner[l as usize] = current;
            }
        }
        self.function = UNDEFINED;
        if let Some(l) = pending.first() {
            return Err(LowerFault::NoLabel(*l));
        }
        Ok(())
    }

    /// Second walk: every instruction.
    fn translate(&mut self) -> Res {
        let module = self.module;
        let instrs = &module.code.instrs;
        self.index = 0;
        while let Some(instr) = instrs.get(self.index) {
            match instr.op {
                Generic::FuncInfo => self.enter_function()?,
                Generic::IntCodeEnd => {
                    self.finish_function()?;
                    self.code.push(Op::End);
                }
                Generic::Line => {
                    let n = self.line_operand(module.code.args(instr), 0)?;
                    let heads =
                        matches!(instrs.get(self.index + 1), Some(i) if i.op == Generic::FuncInfo);
                    self.set_line(n, heads);
                }
                Generic::Label => {
                    let n = self.number(module.code.args(instr), 0, "label", u64::MAX)? as u32;
                    self.define_label(n);
                }
                _ => {
                    if self.function == UNDEFINED {
                        return Err(LowerFault::Inconsistent("code before the first function"));
                    }
                    if self.is_reachable() {
                        let at = self.index as u32;
                        self.instruction(*instr)?;
                        if let Some(v) = &self.validated
                            && v.traps.binary_search(&at).is_ok()
                        {
                            self.trap();
                        }
                    }
                }
            }
            self.index += 1;
        }
        Ok(())
    }

    fn is_reachable(&self) -> bool {
        self.validated
            .as_ref()
            .is_none_or(|v| v.is_reachable(self.index as u32))
    }

    /// Behind a call that does not return: raises, with whatever x0 holds.
    pub fn trap(&mut self) {
        if self.validated.is_some() {
            self.code.push(Op::Badmatch { src: Src::X(0) });
        }
    }

    /// Whether the validator counts on this function's frames being cleared.
    pub fn clears_frames(&self) -> bool {
        self.validated.as_ref().is_some_and(|v| {
            v.function_at(self.index as u32)
                .is_some_and(|f| f.clear_frames)
        })
    }

    fn enter_function(&mut self) -> Res {
        // The label and line before belong to the new function.
        let mut start = self.code.len();
        while start > 0 && matches!(self.code[start - 1], Op::Label(_) | Op::Line(_)) {
            start -= 1;
        }
        let head = self.code.split_off(start);
        self.finish_function()?;
        self.start = self.code.len();
        self.code.extend(head);
        self.function = self.function.wrapping_add(1);
        if !matches!(self.code.last(), Some(Op::Line(_))) {
            self.set_line(0, true);
        }
        self.code.push(Op::FuncInfo {
            function: self.function,
        });
        let entry = self.functions[self.function as usize].entry;
        if let Some(&(native, export)) = self.native_entries.get(&entry) {
            self.code.push(Op::Label(entry));
            self.code.push(Op::CallNative {
                native,
                export,
                kind: super::op::CallKind::Only,
            });
            self.skip_body();
        }
        Ok(())
    }

    /// Moves on to the last instruction of the function whose `func_info` is current.
    fn skip_body(&mut self) {
        let instrs = &self.module.code.instrs;
        let mut end = self.index + 1;
        while end < instrs.len()
            && !matches!(instrs[end].op, Generic::FuncInfo | Generic::IntCodeEnd)
        {
            end += 1;
        }
        if end < instrs.len() && instrs[end].op == Generic::FuncInfo {
            while end > 0 && matches!(instrs[end - 1].op, Generic::Label | Generic::Line) {
                end -= 1;
            }
        }
        // At least the entry label is behind `func_info`.
        self.index = end.max(self.index + 2) - 1;
    }

    fn finish_function(&mut self) -> Res {
        let Some(f) = self.functions.get(self.function as usize) else {
            return Ok(());
        };
        if std::mem::take(&mut self.needs_live) {
            facts::find_live(&mut self.code, self.start, f.arity as u16)?;
        }
        if !self.env.trusted {
            loops::check(&self.code[self.start..])?;
            facts::uncheck(&mut self.code[self.start..]);
        }
        Ok(())
    }

    fn set_line(&mut self, n: u32, heads_function: bool) {
        if self.line == n && !heads_function {
            return;
        }
        // A line that no code stands under says nothing.
        let i = self.before_labels();
        if i > 0 && matches!(self.code[i - 1], Op::Line(_)) {
            self.code.remove(i - 1);
        }
        self.code.push(Op::Line(n));
        self.line = n;
    }

    /// Where the labels at the end of the code begin.
    fn before_labels(&self) -> usize {
        let end = self.code.len();
        let mut i = end;
        while i > 0 && end - i < LOOK_BACK && matches!(self.code[i - 1], Op::Label(_)) {
            i -= 1;
        }
        i
    }

    fn define_label(&mut self, n: Label) {
        let i = self.before_labels();
        if i > 0 && self.code[i - 1] == Op::Jump(n) {
            self.code.remove(i - 1);
        }
        self.code.push(Op::Label(n));
    }

    /// Every label that is named exists, in the function that names it; what is called is an entry.
    fn check_labels(&mut self) -> Res {
        for &(label, function, index) in &self.jumps {
            if self.owner.get(label as usize) != Some(&function) {
                (self.index, self.function) = (index as usize, function);
                return Err(match self.owner.get(label as usize) {
                    None | Some(&UNDEFINED) => LowerFault::NoLabel(label),
                    _ => LowerFault::Inconsistent("a jump into another function"),
                });
            }
        }
        for &(label, index) in &self.calls {
            if !self.is_entry(label) {
                self.index = index as usize;
                return Err(LowerFault::Inconsistent("a call that goes to no function"));
            }
        }
        Ok(())
    }

    /// Sees to it that nothing but a call comes to the first word of a function: breakpoints stand there. An entry that the function
    /// itself jumps to (a receive at its beginning) gets another label, and an op of its own, in front.
    fn split_entries(&mut self, exports: &mut [(Atom, u32, Label)], lambdas: &mut [Lambda]) {
        let entries: HashSet<Label> = self.functions.iter().map(|f| f.entry).collect();
        let jumped: HashSet<Label> = self.jumps.iter().map(|j| j.0).collect();
        let mut renamed: HashMap<Label, Label> = HashMap::new();
        let mut code = Vec::with_capacity(self.code.len());
        let mut ops = std::mem::take(&mut self.code).into_iter().peekable();
        while let Some(op) = ops.next() {
            let Op::Label(l) = op else {
                code.push(op);
                continue;
            };
            if !entries.contains(&l) {
                code.push(op);
            } else if jumped.contains(&l) {
                let new = self.owner.len() as Label;
                self.owner.push(self.owner[l as usize]);
                renamed.insert(l, new);
                code.extend([Op::Label(new), Op::Enter, op]);
            } else {
                code.push(op);
                if matches!(ops.peek(), Some(Op::Label(_))) {
                    code.push(Op::Enter);
                }
            }
        }
        self.code = code;
        if renamed.is_empty() {
            return;
        }
        let rename = |l: &mut Label| {
            if let Some(new) = renamed.get(l) {
                *l = *new;
            }
        };
        for op in &mut self.code {
            if let Op::Call { target, .. } = op {
                rename(target);
            }
        }
        self.functions.iter_mut().for_each(|f| rename(&mut f.entry));
        exports.iter_mut().for_each(|e| rename(&mut e.2));
        lambdas.iter_mut().for_each(|f| rename(&mut f.entry));
        self.on_load.iter_mut().for_each(rename);
    }

    fn is_entry(&self, label: Label) -> bool {
        self.owner
            .get(label as usize)
            .and_then(|f| self.functions.get(*f as usize))
            .is_some_and(|f| f.entry == label)
    }

    /// Exports and lambdas.
    #[allow(clippy::type_complexity)]
    fn tables(
        &self,
    ) -> Result<(Vec<(Atom, u32, Label)>, Vec<Lambda>), ((&'static str, usize), LowerFault)> {
        let no_name = LowerFault::Inconsistent("no such atom");
        let mut exports = Vec::with_capacity(self.module.exports.len());
        for (i, e) in self.module.exports.iter().enumerate() {
            let at = ("export", i);
            if !self.is_entry(e.label) {
                return Err((at, LowerFault::NoLabel(e.label)));
            }
            let name = self.consts.name(e.function).ok_or((at, no_name.clone()))?;
            exports.push((name, u32::from(e.arity), e.label));
        }
        let mut lambdas = Vec::with_capacity(self.module.lambdas.len());
        for (i, l) in self.module.lambdas.iter().enumerate() {
            let at = ("lambda", i);
            if !self.is_entry(l.label) {
                return Err((at, LowerFault::NoLabel(l.label)));
            }
            let function = self.consts.name(l.function).ok_or((at, no_name.clone()))?;
            lambdas.push(Lambda {
                function,
                arity: u32::from(l.arity),
                entry: l.label,
                index: l.index,
                num_free: u32::from(l.num_free),
                old_uniq: l.old_uniq,
            });
        }
        Ok((exports, lambdas))
    }

    // ---- operands

    pub fn fault(&self, operand: usize, expected: &'static str) -> LowerFault {
        LowerFault::Operand { operand, expected }
    }

    /// An unsigned number.
    pub fn number(&self, a: &[Arg], i: usize, what: &'static str, limit: u64) -> Res<u64> {
        let value = match a[i] {
            Arg::U(v) => v,
            Arg::I(v) if v >= 0 => v as u64,
            Arg::Huge(_) => u64::MAX,
            _ => return Err(self.fault(i, what)),
        };
        if value > limit {
            return Err(LowerFault::Limit { what, value, limit });
        }
        Ok(value)
    }
    /// A number of bits; one beyond the largest bitstring stands for all that are.
    pub fn bits(&self, a: &[Arg], i: usize) -> Res<u64> {
        Ok(self.number(a, i, "bits", u64::MAX)?.min(MAX_BITS))
    }
    /// How many X registers.
    pub fn live(&self, a: &[Arg], i: usize) -> Res<u16> {
        Ok(self.number(a, i, "live registers", X_REGISTERS as u64)? as u16)
    }
    /// The function being lowered.
    pub fn this_function(&self) -> Res<Function> {
        self.functions
            .get(self.function as usize)
            .copied()
            .ok_or(LowerFault::Inconsistent("outside of functions"))
    }
    pub fn arity(&self, a: &[Arg], i: usize) -> Res<u16> {
        Ok(self.number(a, i, "arity", MAX_ARITY)? as u16)
    }
    pub fn frame(&self, a: &[Arg], i: usize) -> Res<u16> {
        Ok(self.number(a, i, "frame size", u64::from(MAX_FRAME))? as u16)
    }
    pub fn tuple_size(&self, a: &[Arg], i: usize) -> Res<u32> {
        Ok(self.number(a, i, "tuple size", MAX_TUPLE)? as u32)
    }
    /// Heap words: a number or an allocation list. A float is two words, a fun two and its environment, which
    /// the list counts as words.
    pub fn heap(&self, a: &[Arg], i: usize) -> Res<u32> {
        let words = match a[i] {
            Arg::Alloc(span) => self
                .module
                .code
                .alloc(span)
                .iter()
                .fold(0u64, |sum, (kind, n)| {
                    let each = match kind {
                        AllocKind::Words => 1,
                        AllocKind::Floats | AllocKind::Funs => 2,
                    };
                    sum.saturating_add(n.saturating_mul(each))
                }),
            _ => self.number(a, i, "heap words", u64::MAX)?,
        };
        if words > MAX_HEAP {
            return Err(LowerFault::Limit {
                what: "heap words",
                value: words,
                limit: MAX_HEAP,
            });
        }
        Ok(words as u32)
    }
    fn line_operand(&self, a: &[Arg], i: usize) -> Res<u32> {
        let limit = self.module.lines.entries.len() as u64;
        if limit == 0 {
            // Stripped.
            return Ok(0);
        }
        Ok(self.number(a, i, "line", limit - 1)? as u32)
    }
    /// A label that must exist.
    pub fn label(&mut self, a: &[Arg], i: usize) -> Res<Label> {
        match a[i] {
            Arg::F(l) if l != NO_LABEL => {
                self.jumps.push((l, self.function, self.index as u32));
                Ok(l)
            }
            _ => Err(self.fault(i, "label")),
        }
    }
    /// A label, or none: raise.
    pub fn fail(&mut self, a: &[Arg], i: usize) -> Res<Label> {
        match a[i] {
            Arg::F(NO_LABEL) => Ok(NO_LABEL),
            _ => self.label(a, i),
        }
    }
    /// A label that is called.
    pub fn callee(&mut self, a: &[Arg], i: usize) -> Res<Label> {
        match a[i] {
            Arg::F(l) => {
                self.calls.push((l, self.index as u32));
                Ok(l)
            }
            _ => Err(self.fault(i, "label")),
        }
    }
    /// A label of an exception handler.
    pub fn handler(&mut self, a: &[Arg], i: usize) -> Res<Label> {
        let l = self.label(a, i)?;
        if self.handler_set.insert(l) {
            self.handlers.push(l);
        }
        Ok(l)
    }
    fn x(&self, n: u16) -> Res<u16> {
        if usize::from(n) >= X_REGISTERS {
            return Err(LowerFault::Limit {
                what: "x register",
                value: u64::from(n),
                limit: X_REGISTERS as u64 - 1,
            });
        }
        Ok(n)
    }
    fn y_number(&self, n: u16) -> Res<u16> {
        if n >= MAX_FRAME {
            return Err(LowerFault::Limit {
                what: "y register",
                value: u64::from(n),
                limit: u64::from(MAX_FRAME) - 1,
            });
        }
        Ok(n)
    }
    /// A register.
    pub fn reg(&self, a: &[Arg], i: usize) -> Res<Reg> {
        match a[i].untyped() {
            Arg::X(n) => Ok(Reg::X(self.x(n)?)),
            Arg::Y(n) => Ok(Reg::Y(self.y_number(n)?)),
            _ => Err(self.fault(i, "register")),
        }
    }
    /// A Y register.
    pub fn y(&self, a: &[Arg], i: usize) -> Res<u16> {
        match a[i].y() {
            Some(n) => self.y_number(n),
            None => Err(self.fault(i, "y register")),
        }
    }
    /// A float register.
    pub fn float(&self, a: &[Arg], i: usize) -> Res<u16> {
        match a[i] {
            Arg::Fr(n) => self.x(n),
            _ => Err(self.fault(i, "float register")),
        }
    }
    /// A value.
    pub fn src(&self, a: &[Arg], i: usize) -> Res<Src> {
        match a[i].untyped() {
            Arg::X(n) => Ok(Src::X(self.x(n)?)),
            Arg::Y(n) => Ok(Src::Y(self.y_number(n)?)),
            arg => match self.consts.word(arg) {
                Some(w) => Ok(Src::Const(w)),
                None => Err(self.fault(i, "value")),
            },
        }
    }
    /// Values from `first` to the end.
    pub fn srcs(&self, a: &[Arg], range: std::ops::Range<usize>) -> Res<Box<[Src]>> {
        range.map(|i| self.src(a, i)).collect()
    }
    /// A constant.
    pub fn constant(&self, a: &[Arg], i: usize) -> Res<Word> {
        self.consts.word(a[i]).ok_or(self.fault(i, "constant"))
    }
    /// An atom.
    pub fn atom(&self, a: &[Arg], i: usize) -> Res<Word> {
        match a[i] {
            Arg::A(n) if n != 0 => self.consts.atom(n).ok_or(self.fault(i, "atom")),
            _ => Err(self.fault(i, "atom")),
        }
    }
    pub fn atom_name(&self, a: &[Arg], i: usize) -> Res<Atom> {
        self.atom(a, i)?.as_atom().ok_or(self.fault(i, "atom"))
    }
    /// The elements of a list operand.
    pub fn list(&self, a: &[Arg], i: usize) -> Res<&'a [Arg]> {
        match a[i] {
            Arg::List(span) => Ok(self.module.code.list(span)),
            _ => Err(self.fault(i, "list")),
        }
    }
    /// A list operand of pairs, as the flat list.
    pub fn pairs(&self, a: &[Arg], i: usize) -> Res<(&'a [Arg], std::ops::Range<usize>)> {
        let list = self.list(a, i)?;
        if list.len() % 2 != 0 {
            return Err(self.fault(i, "list of pairs"));
        }
        Ok((list, 0..list.len() / 2))
    }
    /// An import.
    pub fn import_operand(&self, a: &[Arg], i: usize) -> Res<&Import> {
        let n = self.number(a, i, "import", u64::from(u32::MAX))?;
        self.imports
            .get(n as usize)
            .ok_or(self.fault(i, "import that exists"))
    }
    pub fn following(&self, n: usize) -> Option<&'a Instr> {
        self.module.code.instrs.get(self.index + n)
    }
    /// Whether reads must be checked.
    pub fn checked(&self) -> bool {
        !self.env.trusted
    }
}
