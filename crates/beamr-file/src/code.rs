//! The code chunk: its header, its instructions, their operands.
//!
//! All operands of a module lie in one arena; an instruction holds where its
//! own begin, a list operand where its elements lie. So a module is a handful
//! of allocations and an operand is 16 bytes.
//!
//! Decoding checks the form of the bytes only: that operations exist, that
//! operands are complete and that an index operand fits its type. Whether an
//! operand makes sense where it stands is the business of
//! the validator.

use crate::error::{ErrorKind, FileError, Result};
use crate::op::Op;
use crate::reader::{
    Number, Reader, TAG_A, TAG_F, TAG_H, TAG_I, TAG_U, TAG_X, TAG_Y, TAG_Z, Widths, Writer,
};

/// A range of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index of the first item.
    pub start: u32,
    /// Number of items.
    pub len: u32,
}

impl Span {
    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// An unsigned number.
    U(u64),
    /// An unsigned number over 64 bits: an index for [`Code::big`]. Larger than
    /// any size or count that can be.
    Huge(u32),
    /// An integer term that fits in 64 bits.
    I(i64),
    /// A larger integer term: an index for [`Code::big`].
    Big(u32),
    /// An atom by its 1-based number in the file; 0 is the empty list.
    A(u32),
    /// An X register.
    X(u16),
    /// A Y register.
    Y(u16),
    /// A label; 0 is no label.
    F(u32),
    /// A character (no longer emitted).
    Char(u32),
    /// A float register.
    Fr(u16),
    /// A float by its IEEE bits (no longer emitted).
    Float(u64),
    /// A literal by its index.
    Literal(u32),
    /// An X register with an index into the type table.
    TypedX {
        /// The register.
        reg: u16,
        /// The index of its type.
        ty: u32,
    },
    /// A Y register with an index into the type table.
    TypedY {
        /// The register.
        reg: u16,
        /// The index of its type.
        ty: u32,
    },
    /// A list of operands, for [`Code::list`].
    List(Span),
    /// An allocation list, for [`Code::alloc`].
    Alloc(Span),
}

impl Arg {
    /// The X register, typed or not.
    pub fn x(self) -> Option<u16> {
        match self {
            Arg::X(reg) | Arg::TypedX { reg, .. } => Some(reg),
            _ => None,
        }
    }

    /// The Y register, typed or not.
    pub fn y(self) -> Option<u16> {
        match self {
            Arg::Y(reg) | Arg::TypedY { reg, .. } => Some(reg),
            _ => None,
        }
    }

    /// The register without its type; other operands as they are.
    pub fn untyped(self) -> Arg {
        match self {
            Arg::TypedX { reg, .. } => Arg::X(reg),
            Arg::TypedY { reg, .. } => Arg::Y(reg),
            other => other,
        }
    }

    /// The index of the type of a typed register.
    pub fn type_index(self) -> Option<u32> {
        match self {
            Arg::TypedX { ty, .. } | Arg::TypedY { ty, .. } => Some(ty),
            _ => None,
        }
    }
}

/// An integer operand over 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Big {
    /// Whether it is below zero.
    pub negative: bool,
    /// The absolute value, least significant limb first, no leading zero.
    pub limbs: Vec<u64>,
}

impl Big {
    fn from_twos_complement(bytes: &[u8]) -> Big {
        let negative = bytes[0] & 0x80 != 0;
        let mut limbs = Vec::with_capacity(bytes.len() / 8 + 1);
        for chunk in bytes.rchunks(8) {
            let mut v = if negative { u64::MAX } else { 0 };
            for &b in chunk {
                v = v << 8 | b as u64;
            }
            limbs.push(v);
        }
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                let (v, c) = (!*limb).overflowing_add(carry as u64);
                *limb = v;
                carry = c;
            }
            if carry {
                limbs.push(1);
            }
        }
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        Big { negative, limbs }
    }

    fn to_twos_complement(&self) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(self.limbs.iter().rev().flat_map(|l| l.to_be_bytes()));
        if self.negative {
            let mut carry = true;
            for b in bytes.iter_mut().rev() {
                let (v, c) = (!*b).overflowing_add(carry as u8);
                *b = v;
                carry = c;
            }
        }
        let mut skip = 0;
        while skip + 1 < bytes.len()
            && (bytes[skip] == 0 && bytes[skip + 1] < 0x80
                || bytes[skip] == 0xff && bytes[skip + 1] >= 0x80)
        {
            skip += 1;
        }
        bytes.split_off(skip)
    }
}

/// What an entry of an allocation list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AllocKind {
    /// Heap words.
    Words = 0,
    /// Boxed floats.
    Floats = 1,
    /// Funs.
    Funs = 2,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instr {
    /// The operation.
    pub op: Op,
    /// Index of its first operand; the table of operations gives the count.
    pub first: u32,
    /// Byte offset in the data of the code chunk.
    pub offset: u32,
}

/// The decoded code chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The instruction set; 0.
    pub instruction_set: u32,
    /// The highest operation number that a loader must know.
    pub opcode_max: u32,
    /// Labels are below this.
    pub label_count: u32,
    /// The number of functions.
    pub function_count: u32,
    /// Header fields that later releases may append.
    pub header_extra: Vec<u8>,
    /// The instructions, the last being `int_code_end`.
    pub instrs: Vec<Instr>,
    /// What follows the last instruction; ignored.
    pub trailing: Vec<u8>,
    args: Vec<Arg>,
    bigs: Vec<Big>,
    allocs: Vec<(AllocKind, u64)>,
    widths: Widths,
}

impl Code {
    /// The operands of an instruction.
    pub fn args(&self, instr: &Instr) -> &[Arg] {
        let first = instr.first as usize;
        &self.args[first..first + instr.op.arity()]
    }

    /// The elements of a list operand.
    pub fn list(&self, span: Span) -> &[Arg] {
        &self.args[span.range()]
    }

    /// The elements of an operand that should be a list; empty for another.
    pub fn list_of(&self, arg: Arg) -> &[Arg] {
        match arg {
            Arg::List(span) => self.list(span),
            _ => &[],
        }
    }

    /// The entries of an allocation list operand.
    pub fn alloc(&self, span: Span) -> &[(AllocKind, u64)] {
        &self.allocs[span.range()]
    }

    /// A large integer operand.
    pub fn big(&self, index: u32) -> &Big {
        &self.bigs[index as usize]
    }

    /// The operands of an instruction, to be changed.
    pub fn args_mut(&mut self, instr: &Instr) -> &mut [Arg] {
        let first = instr.first as usize;
        &mut self.args[first..first + instr.op.arity()]
    }

    /// The elements of a list operand, to be changed; lists do not nest.
    pub fn list_mut(&mut self, span: Span) -> &mut [Arg] {
        &mut self.args[span.range()]
    }

    /// The entries of an allocation list operand, to be changed.
    pub fn alloc_mut(&mut self, span: Span) -> &mut [(AllocKind, u64)] {
        &mut self.allocs[span.range()]
    }

    /// Adds operands; gives what [`Instr::first`] of their instruction is to be.
    pub fn add_args(&mut self, args: &[Arg]) -> u32 {
        let first = self.args.len() as u32;
        self.args.extend_from_slice(args);
        first
    }

    /// Forgets in what widths numbers were written: changed code is written in the shortest form.
    pub fn forget_widths(&mut self) {
        self.widths = Widths::default();
    }

    /// Decodes the data of a code chunk.
    pub fn decode(data: &[u8]) -> std::result::Result<Code, FileError> {
        let mut r = Reader::new(crate::ChunkId(*b"Code"), data);
        let size = r.u32()? as usize;
        if size < 16 {
            return Err(r.err_at(0, ErrorKind::BadValue("header size")));
        }
        let instruction_set = r.u32()?;
        if instruction_set != 0 {
            let kind = ErrorKind::UnknownVersion {
                what: "instruction set",
                value: instruction_set,
            };
            return Err(r.err_at(4, kind));
        }
        let opcode_max = r.u32()?;
        let label_count = r.u32()?;
        let function_count = r.u32()?;
        let header_extra = r.bytes(size - 16)?.to_vec();
        let mut d = Decoder::default();
        let mut instrs = Vec::with_capacity(r.remaining() / 5);
        loop {
            let offset = r.pos();
            let number = r.u8()?;
            let op = Op::from_number(number)
                .ok_or_else(|| r.err_at(offset, ErrorKind::UnknownOp(number)))?;
            let first = d.operands(&mut r, op.arity())?;
            instrs.push(Instr {
                op,
                first,
                offset: offset as u32,
            });
            if op == Op::IntCodeEnd {
                break;
            }
        }
        let trailing = r.rest().to_vec();
        Ok(Code {
            instruction_set,
            opcode_max,
            label_count,
            function_count,
            header_extra,
            instrs,
            trailing,
            args: d.args,
            bigs: d.bigs,
            allocs: d.allocs,
            widths: d.widths,
        })
    }

    /// Encodes the data of a code chunk; what [`Code::decode`] read gives the
    /// same bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(&self.widths);
        w.u32(16 + self.header_extra.len() as u32);
        w.u32(self.instruction_set);
        w.u32(self.opcode_max);
        w.u32(self.label_count);
        w.u32(self.function_count);
        w.out.extend_from_slice(&self.header_extra);
        for instr in &self.instrs {
            w.out.push(instr.op.number());
            for &arg in self.args(instr) {
                encode_arg(&mut w, arg, &self.args, &self.bigs, &self.allocs);
            }
        }
        w.out.extend_from_slice(&self.trailing);
        w.out
    }
}

/// Operands outside the code chunk: the record and debug chunks use the same
/// encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    d: Decoder,
}

impl Operands {
    /// Decodes `n` operands; gives the index of the first.
    pub(crate) fn decode(&mut self, r: &mut Reader<'_>, n: usize) -> Result<u32> {
        self.d.operands(r, n)
    }

    /// The operand of an index.
    pub fn get(&self, index: u32) -> Arg {
        self.d.args[index as usize]
    }

    /// The elements of a list operand.
    pub fn list(&self, span: Span) -> &[Arg] {
        &self.d.args[span.range()]
    }

    /// A large integer operand.
    pub fn big(&self, index: u32) -> &Big {
        &self.d.bigs[index as usize]
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer::new(&self.d.widths)
    }

    pub(crate) fn encode(&self, w: &mut Writer<'_>, arg: Arg) {
        encode_arg(w, arg, &self.d.args, &self.d.bigs, &self.d.allocs);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Decoder {
    args: Vec<Arg>,
    bigs: Vec<Big>,
    allocs: Vec<(AllocKind, u64)>,
    widths: Widths,
}

/// Extended operands, by the value that follows the tag.
const EXT_FLOAT: i64 = 0;
const EXT_LIST: i64 = 1;
const EXT_FLOAT_REG: i64 = 2;
const EXT_ALLOC: i64 = 3;
const EXT_LITERAL: i64 = 4;
const EXT_TYPED: i64 = 5;

impl Decoder {
    fn operands(&mut self, r: &mut Reader<'_>, n: usize) -> Result<u32> {
        let first = self.args.len();
        // The operands of one instruction are adjacent, its lists follow them.
        self.args.resize(first + n, Arg::U(0));
        for i in first..first + n {
            self.args[i] = self.operand(r, true)?;
        }
        Ok(first as u32)
    }

    fn operand(&mut self, r: &mut Reader<'_>, outer: bool) -> Result<Arg> {
        let at = r.pos();
        let (tag, number) = r.compact(&mut self.widths)?;
        let v = match number {
            Number::Word(v) => v,
            Number::Big(bytes) if tag == TAG_I => {
                let big = Big::from_twos_complement(&bytes);
                self.bigs.push(big);
                return Ok(Arg::Big(self.bigs.len() as u32 - 1));
            }
            Number::Big(bytes) if tag == TAG_U && bytes.len() == 9 && bytes[0] == 0 => {
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[1..]);
                return Ok(Arg::U(u64::from_be_bytes(word)));
            }
            Number::Big(bytes) if tag == TAG_U && bytes[0] & 0x80 == 0 => {
                self.bigs.push(Big::from_twos_complement(&bytes));
                return Ok(Arg::Huge(self.bigs.len() as u32 - 1));
            }
            Number::Big(_) => return Err(r.err_at(at, ErrorKind::BadOperand("number too large"))),
        };
        let bad = |what| r.err_at(at, ErrorKind::BadOperand(what));
        Ok(match tag {
            TAG_U => Arg::U(u64::try_from(v).map_err(|_| bad("negative number"))?),
            TAG_I => Arg::I(v),
            TAG_A => Arg::A(u32::try_from(v).map_err(|_| bad("atom number"))?),
            TAG_X => Arg::X(u16::try_from(v).map_err(|_| bad("x register"))?),
            TAG_Y => Arg::Y(u16::try_from(v).map_err(|_| bad("y register"))?),
            TAG_F => Arg::F(u32::try_from(v).map_err(|_| bad("label"))?),
            TAG_H => Arg::Char(u32::try_from(v).map_err(|_| bad("character"))?),
            _ => match v {
                EXT_FLOAT => Arg::Float(r.u64()?),
                EXT_LIST if outer => {
                    let n = self.length(r)?;
                    let start = self.args.len();
                    self.args.reserve(n);
                    for _ in 0..n {
                        let arg = self.operand(r, false)?;
                        self.args.push(arg);
                    }
                    Arg::List(Span {
                        start: start as u32,
                        len: n as u32,
                    })
                }
                EXT_FLOAT_REG => Arg::Fr(self.small(r, TAG_U)?),
                EXT_ALLOC if outer => {
                    let n = self.length(r)?;
                    let start = self.allocs.len();
                    for _ in 0..n {
                        let at = r.pos();
                        let kind = match self.unsigned(r)? {
                            0 => AllocKind::Words,
                            1 => AllocKind::Floats,
                            2 => AllocKind::Funs,
                            _ => {
                                let kind = ErrorKind::BadOperand("allocation kind");
                                return Err(r.err_at(at, kind));
                            }
                        };
                        let count = self.unsigned(r)?;
                        self.allocs.push((kind, count));
                    }
                    Arg::Alloc(Span {
                        start: start as u32,
                        len: n as u32,
                    })
                }
                EXT_LITERAL => {
                    let at = r.pos();
                    let index = self.unsigned(r)?;
                    Arg::Literal(
                        u32::try_from(index)
                            .map_err(|_| r.err_at(at, ErrorKind::BadOperand("literal")))?,
                    )
                }
                EXT_TYPED => {
                    let at = r.pos();
                    let (tag, number) = r.compact(&mut self.widths)?;
                    let reg = match number {
                        Number::Word(v) => u16::try_from(v).ok(),
                        Number::Big(_) => None,
                    };
                    let reg =
                        reg.ok_or_else(|| r.err_at(at, ErrorKind::BadOperand("typed register")))?;
                    let ty = u32::try_from(self.unsigned(r)?)
                        .map_err(|_| r.err_at(at, ErrorKind::BadOperand("type index")))?;
                    match tag {
                        TAG_X => Arg::TypedX { reg, ty },
                        TAG_Y => Arg::TypedY { reg, ty },
                        _ => return Err(r.err_at(at, ErrorKind::BadOperand("typed register"))),
                    }
                }
                EXT_LIST | EXT_ALLOC => return Err(bad("list inside a list")),
                _ => return Err(bad("extended tag")),
            },
        })
    }

    fn unsigned(&mut self, r: &mut Reader<'_>) -> Result<u64> {
        let at = r.pos();
        match r.compact(&mut self.widths)? {
            (TAG_U, Number::Word(v)) if v >= 0 => Ok(v as u64),
            _ => Err(r.err_at(at, ErrorKind::BadOperand("unsigned number expected"))),
        }
    }

    fn small(&mut self, r: &mut Reader<'_>, want: u8) -> Result<u16> {
        let at = r.pos();
        match r.compact(&mut self.widths)? {
            (tag, Number::Word(v)) if tag == want && (0..=0xffff).contains(&v) => Ok(v as u16),
            _ => Err(r.err_at(at, ErrorKind::BadOperand("register"))),
        }
    }

    /// The length of a list: no longer than the bytes that are left.
    fn length(&mut self, r: &mut Reader<'_>) -> Result<usize> {
        let at = r.pos();
        let n = self.unsigned(r)?;
        if n > r.remaining() as u64 {
            return Err(r.err_at(at, ErrorKind::Truncated));
        }
        Ok(n as usize)
    }
}

fn encode_arg(
    w: &mut Writer<'_>,
    arg: Arg,
    args: &[Arg],
    bigs: &[Big],
    allocs: &[(AllocKind, u64)],
) {
    match arg {
        Arg::U(v) => unsigned(w, v),
        Arg::Huge(i) => w.compact_big(TAG_U, &bigs[i as usize].to_twos_complement()),
        Arg::I(v) => w.compact(TAG_I, v),
        Arg::Big(i) => w.compact_big(TAG_I, &bigs[i as usize].to_twos_complement()),
        Arg::A(v) => w.compact(TAG_A, v as i64),
        Arg::X(v) => w.compact(TAG_X, v as i64),
        Arg::Y(v) => w.compact(TAG_Y, v as i64),
        Arg::F(v) => w.compact(TAG_F, v as i64),
        Arg::Char(v) => w.compact(TAG_H, v as i64),
        Arg::Float(bits) => {
            w.compact(TAG_Z, EXT_FLOAT);
            w.out.extend_from_slice(&bits.to_be_bytes());
        }
        Arg::Fr(v) => {
            w.compact(TAG_Z, EXT_FLOAT_REG);
            w.compact(TAG_U, v as i64);
        }
        Arg::Literal(v) => {
            w.compact(TAG_Z, EXT_LITERAL);
            w.compact(TAG_U, v as i64);
        }
        Arg::TypedX { reg, ty } | Arg::TypedY { reg, ty } => {
            let tag = if matches!(arg, Arg::TypedX { .. }) {
                TAG_X
            } else {
                TAG_Y
            };
            w.compact(TAG_Z, EXT_TYPED);
            w.compact(tag, reg as i64);
            w.compact(TAG_U, ty as i64);
        }
        Arg::List(span) => {
            w.compact(TAG_Z, EXT_LIST);
            w.compact(TAG_U, span.len as i64);
            for &arg in &args[span.range()] {
                encode_arg(w, arg, args, bigs, allocs);
            }
        }
        Arg::Alloc(span) => {
            w.compact(TAG_Z, EXT_ALLOC);
            w.compact(TAG_U, span.len as i64);
            for &(kind, count) in &allocs[span.range()] {
                w.compact(TAG_U, kind as i64);
                unsigned(w, count);
            }
        }
    }
}

fn unsigned(w: &mut Writer<'_>, v: u64) {
    match i64::try_from(v) {
        Ok(v) => w.compact(TAG_U, v),
        Err(_) => {
            let mut bytes = [0; 9];
            bytes[1..].copy_from_slice(&v.to_be_bytes());
            w.compact_big(TAG_U, &bytes);
        }
    }
}
