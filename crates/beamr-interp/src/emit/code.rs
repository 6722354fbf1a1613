//! The builder of one module's code.

use std::any::Any;
use std::collections::HashMap;

use beamr_term::Word;
use beamr_vm::engine::{CodePos, Emitted, EngineError};
use beamr_vm::lower::Lowered;
use beamr_vm::lower::op::{CallKind, Label, NO_LABEL, Op, Reg, Src};

use crate::machine::Handler;

/// A distance to be filled in.
struct Fixup {
    /// Index of the 32-bit place, or of the 64-bit word when `wide`.
    at: usize,
    wide: bool,
    /// Word index of the instruction that the distance counts from.
    from: usize,
    label: Label,
}

/// Builds the code of one module.
pub(crate) struct Emitter<'a> {
    /// What is translated.
    pub module: &'a Lowered,
    words: Vec<u64>,
    /// Word index by label.
    labels: Vec<Option<usize>>,
    fixups: Vec<Fixup>,
    lines: Vec<(usize, u32)>,
    functions: Vec<(usize, u32)>,
    handlers: HashMap<Label, u32>,
    /// First word of the current instruction.
    start: usize,
    limit: Option<&'static str>,
    kept: Vec<Box<dyn Any + Send + Sync>>,
    /// See [`Emitter::native_call`].
    native_calls: Vec<u32>,
    /// Words that become addresses of labels.
    addresses: Vec<(usize, Label)>,
}

impl<'a> Emitter<'a> {
    pub fn new(module: &'a Lowered) -> Emitter<'a> {
        Emitter {
            module,
            words: Vec::with_capacity(module.code.len() * 2),
            labels: vec![None; module.label_count as usize],
            fixups: Vec::new(),
            lines: Vec::new(),
            functions: Vec::new(),
            handlers: module
                .handlers
                .iter()
                .enumerate()
                .map(|(i, l)| (*l, i as u32))
                .collect(),
            start: 0,
            limit: None,
            kept: Vec::new(),
            addresses: Vec::new(),
            native_calls: Vec::new(),
        }
    }

    // ---- places

    pub fn label(&mut self, label: Label) {
        match self.labels.get_mut(label as usize) {
            Some(l) => *l = Some(self.words.len()),
            None => self.limit = Some("label number"),
        }
    }
    pub fn line(&mut self, location: u32) {
        if let Some(last) = self.lines.last_mut()
            && last.0 == self.words.len()
        {
            last.1 = location;
            return;
        }
        self.lines.push((self.words.len(), location));
    }
    pub fn function(&mut self, function: u32) {
        self.functions.push((self.words.len(), function));
    }
    /// The catch tag of a handler.
    pub fn catch_tag(&mut self, label: Label) -> Word {
        match self.handlers.get(&label) {
            Some(i) => Word::catch_tag(*i),
            None => {
                self.limit = Some("catch handler without a number");
                Word::catch_tag(0)
            }
        }
    }

    // ---- instructions

    /// Starts an instruction.
    pub fn op(&mut self, handler: Handler) {
        self.start = self.words.len();
        self.words.push(handler as usize as u64);
    }
    /// Notes that the current instruction calls a native: its word index, and in the low two bits how it leaves its caller.
    pub fn native_call(&mut self, kind: CallKind) {
        let kind = match kind {
            CallKind::Body => 0,
            CallKind::Last(_) => 1,
            CallKind::Only => 2,
        };
        match u32::try_from(self.start) {
            Ok(at) if at < 1 << 30 => self.native_calls.push(at << 2 | kind),
            _ => self.limit = Some("size of the code"),
        }
    }
    /// Words of the instruction so far.
    pub fn len(&self) -> usize {
        self.words.len() - self.start
    }
    /// Changes half `n` of the current instruction.
    pub fn set_half(&mut self, n: usize, v: u16) {
        let w = &mut self.words[self.start + n / 4];
        let shift = n % 4 * 16;
        *w = *w & !(0xFFFF << shift) | u64::from(v) << shift;
    }
    /// Sets half `n` to the length of the instruction.
    pub fn set_len(&mut self, n: usize) {
        let len = self.len();
        let v = self.narrow(len);
        self.set_half(n, v);
    }
    /// A word.
    pub fn word(&mut self, v: u64) {
        self.words.push(v);
    }
    /// Four halves.
    pub fn halves(&mut self, a: u16, b: u16, c: u16, d: u16) {
        self.words
            .push(u64::from(a) | u64::from(b) << 16 | u64::from(c) << 32 | u64::from(d) << 48);
    }
    /// Any number of halves, padded to whole words.
    pub fn half_list(&mut self, halves: &[u16]) {
        for c in halves.chunks(4) {
            let g = |i| c.get(i).copied().unwrap_or(0);
            self.halves(g(0), g(1), g(2), g(3));
        }
    }
    /// Two pairs.
    pub fn pairs(&mut self, a: u32, b: u32) {
        self.words.push(u64::from(a) | u64::from(b) << 32);
    }
    /// Two halves and a label.
    pub fn halves_label(&mut self, a: u16, b: u16, label: Label) {
        self.words.push(u64::from(a) | u64::from(b) << 16);
        self.fix(self.words.len() * 2 - 1, label);
    }
    /// Two halves and a number.
    pub fn halves_pair(&mut self, a: u16, b: u16, n: u32) {
        self.words
            .push(u64::from(a) | u64::from(b) << 16 | u64::from(n) << 32);
    }
    /// A label and two halves.
    pub fn label_halves(&mut self, label: Label, a: u16, b: u16) {
        self.words.push(u64::from(a) << 32 | u64::from(b) << 48);
        self.fix(self.words.len() * 2 - 2, label);
    }
    /// A label and a number.
    pub fn label_pair(&mut self, label: Label, n: u32) {
        self.words.push(u64::from(n) << 32);
        self.fix(self.words.len() * 2 - 2, label);
    }
    /// A number and a label.
    pub fn pair_label(&mut self, n: u32, label: Label) {
        self.words.push(u64::from(n));
        self.fix(self.words.len() * 2 - 1, label);
    }
    /// Keeps an object beside the code; gives its address.
    pub fn keep<T: Any + Send + Sync>(&mut self, object: T) -> u64 {
        let object = Box::new(object);
        let address = std::ptr::from_ref(&*object) as usize as u64;
        self.kept.push(object);
        address
    }
    /// A list of labels, two to a word.
    pub fn labels(&mut self, labels: impl IntoIterator<Item = Label>) {
        for (i, l) in labels.into_iter().enumerate() {
            if i % 2 == 0 {
                self.words.push(0);
            }
            self.fix(self.words.len() * 2 - 2 + i % 2, l);
        }
    }
    /// A label as an address.
    pub fn address(&mut self, label: Label) {
        self.words.push(0);
        self.addresses.push((self.words.len() - 1, label));
    }
    /// A label as a 64-bit distance.
    pub fn wide_label(&mut self, label: Label) {
        self.words.push(0);
        self.fixups.push(Fixup {
            at: self.words.len() - 1,
            wide: true,
            from: self.start,
            label,
        });
    }
    fn fix(&mut self, at: usize, label: Label) {
        if label != NO_LABEL {
            self.fixups.push(Fixup {
                at,
                wide: false,
                from: self.start,
                label,
            });
        }
    }

    // ---- operands

    /// A number that must fit a half word.
    pub fn narrow(&mut self, n: usize) -> u16 {
        match u16::try_from(n) {
            Ok(n) => n,
            Err(_) => {
                self.limit = Some("number in an instruction");
                0
            }
        }
    }
    /// A number that must fit a pair.
    pub fn pair(&mut self, n: usize) -> u32 {
        match u32::try_from(n) {
            Ok(n) => n,
            Err(_) => {
                self.limit = Some("number in an instruction");
                0
            }
        }
    }
    fn operand(&mut self, index: usize, kind: u16) -> u16 {
        if index >= 1 << 14 {
            self.limit = Some("operand index");
            return 0;
        }
        (index as u16) << 2 | kind
    }
    /// A register operand.
    pub fn reg(&mut self, r: Reg) -> u16 {
        match r {
            Reg::X(n) => self.operand(n as usize, 0),
            Reg::Y(n) => self.operand(n as usize, 1),
        }
    }
    /// A source operand; constants are collected.
    pub fn src(&mut self, s: Src, constants: &mut Constants) -> u16 {
        match s {
            Src::X(n) => self.operand(n as usize, 0),
            Src::Y(n) => self.operand(n as usize, 1),
            Src::Const(w) => {
                let at = constants.from + constants.words.len();
                constants.words.push(w.bits());
                self.operand(at, 2)
            }
        }
    }
    /// Appends collected constants; the instruction must have reached their place.
    pub fn constants(&mut self, constants: Constants) {
        debug_assert_eq!(self.len(), constants.from);
        self.words.extend(constants.words);
    }

    // ---- the end

    pub fn unsupported(&self, op: &Op, what: &'static str) -> EngineError {
        let text = format!("{op:?}");
        let name = text
            .split([' ', '(', '{'])
            .next()
            .unwrap_or_default()
            .to_string();
        let function = match self.functions.last() {
            Some((_, f)) => {
                let f = &self.module.functions[*f as usize];
                format!("atom#{}/{}", f.name.index(), f.arity)
            }
            None => String::from("?"),
        };
        EngineError::Unsupported {
            engine: "interp",
            op: name,
            function,
            what,
        }
    }

    pub fn finish(mut self) -> Result<Emitted, EngineError> {
        if let Some(what) = self.limit {
            return Err(EngineError::Limit {
                engine: "interp",
                what,
            });
        }
        // The words do not move any more.
        self.words.shrink_to_fit();
        for f in std::mem::take(&mut self.fixups) {
            let Some(to) = self.labels.get(f.label as usize).copied().flatten() else {
                return Err(EngineError::Limit {
                    engine: "interp",
                    what: "a label that is not defined",
                });
            };
            let distance = (to as i64 - f.from as i64) * 8;
            if f.wide {
                self.words[f.at] = distance as u64;
                continue;
            }
            let Ok(distance) = i32::try_from(distance) else {
                return Err(EngineError::Limit {
                    engine: "interp",
                    what: "distance",
                });
            };
            let w = &mut self.words[f.at / 2];
            let shift = f.at % 2 * 32;
            *w = *w & !(0xFFFF_FFFF << shift) | u64::from(distance as u32) << shift;
        }
        let start = self.words.as_ptr() as usize;
        for (word, label) in &self.addresses {
            let Some(to) = self.labels.get(*label as usize).copied().flatten() else {
                return Err(EngineError::Limit {
                    engine: "interp",
                    what: "a label that is not defined",
                });
            };
            self.words[*word] = (start + to * 8) as u64;
        }
        let memory = Memory(self.words, self.kept);
        let at = |w: usize| start + w * 8;
        Ok(Emitted {
            start,
            end: at(memory.0.len()),
            labels: self
                .labels
                .iter()
                .map(|l| l.map_or(std::ptr::null(), |w| at(w) as CodePos))
                .collect(),
            lines: self.lines.iter().map(|(w, l)| (at(*w), *l)).collect(),
            functions: self.functions.iter().map(|(w, f)| (at(*w), *f)).collect(),
            native_calls: self.native_calls,
            memory: Box::new(memory),
        })
    }
}

/// Code words. They are read only, but for entry words, which are exchanged atomically.
#[derive(Debug)]
struct Memory(
    Vec<u64>,
    #[expect(dead_code, reason = "instructions hold addresses of these objects")]
    Vec<Box<dyn Any + Send + Sync>>,
);

/// Constants of one instruction, behind its fixed part.
pub(crate) struct Constants {
    from: usize,
    words: Vec<u64>,
}

impl Constants {
    /// From word `from` of the instruction on.
    pub fn from(from: usize) -> Constants {
        Constants {
            from,
            words: Vec::new(),
        }
    }
}

/// Picks an expression by the kind of a register: `$T` is the kind's type.
macro_rules! by_reg {
    ($r:expr, $T:ident => $e:expr) => {
        match $r {
            beamr_vm::lower::op::Reg::X(_) => {
                type $T = crate::machine::X;
                $e
            }
            beamr_vm::lower::op::Reg::Y(_) => {
                type $T = crate::machine::Y;
                $e
            }
        }
    };
}
/// The same for a source.
macro_rules! by_src {
    ($s:expr, $T:ident => $e:expr) => {
        match $s {
            beamr_vm::lower::op::Src::X(_) => {
                type $T = crate::machine::X;
                $e
            }
            beamr_vm::lower::op::Src::Y(_) => {
                type $T = crate::machine::Y;
                $e
            }
            beamr_vm::lower::op::Src::Const(_) => {
                type $T = crate::machine::C;
                $e
            }
        }
    };
}
/// The same for a number of stack slots.
macro_rules! by_slots {
    ($n:expr, $T:ident => $e:expr) => {
        match $n {
            0 => {
                type $T = crate::machine::Fixed<0>;
                $e
            }
            1 => {
                type $T = crate::machine::Fixed<1>;
                $e
            }
            2 => {
                type $T = crate::machine::Fixed<2>;
                $e
            }
            3 => {
                type $T = crate::machine::Fixed<3>;
                $e
            }
            4 => {
                type $T = crate::machine::Fixed<4>;
                $e
            }
            _ => {
                type $T = crate::machine::Encoded;
                $e
            }
        }
    };
}
/// The same for a call kind whose frame need not be known ([`by_kind`] knows small ones).
macro_rules! by_leave {
    ($k:expr, $T:ident => $e:expr) => {
        match $k {
            beamr_vm::lower::op::CallKind::Body => {
                type $T = crate::ops::calls::Body;
                $e
            }
            beamr_vm::lower::op::CallKind::Last(_) => {
                type $T = crate::ops::calls::Last<crate::machine::Encoded>;
                $e
            }
            beamr_vm::lower::op::CallKind::Only => {
                type $T = crate::ops::calls::Only;
                $e
            }
        }
    };
}
/// The same for a call kind.
macro_rules! by_kind {
    ($k:expr, $T:ident => $e:expr) => {
        match $k {
            beamr_vm::lower::op::CallKind::Body => {
                type $T = crate::ops::calls::Body;
                $e
            }
            beamr_vm::lower::op::CallKind::Last(n) => {
                crate::emit::code::by_slots!(n, N => {
                    type $T = crate::ops::calls::Last<N>;
                    $e
                })
            }
            beamr_vm::lower::op::CallKind::Only => {
                type $T = crate::ops::calls::Only;
                $e
            }
        }
    };
}
pub(crate) use {by_kind, by_leave, by_reg, by_slots, by_src};
