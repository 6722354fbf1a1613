//! The bit syntax: matching, construction, and the construction of code before OTP 25.
//!
//! Old construction is a sequence: a start (`bs_init2`, `bs_init_bits`, `bs_append`, `bs_private_append`) with
//! a size that was computed before, then a `bs_put_*` for each segment into a binary that only the VM knows. It becomes one
//! [`Op::BsCreateBin`], which computes the size itself.

use beamr_file::{Arg, Instr, Op as G};
use beamr_term::{Word, atoms};

use super::build::{Lowering, MAX_BITS, Res};
use super::error::LowerFault;
use super::facts::LIVE_UNKNOWN;
use super::op::{BitFlags, MatchCommand, NO_LABEL, Op, Reg, SegKind, SegSize, Segment, Src};

/// Largest unit of a segment.
const MAX_UNIT: u64 = 256;

/// Bits of numeric flags (old operations).
const FLAG_LITTLE: u64 = 2;
const FLAG_SIGNED: u64 = 4;
const FLAG_NATIVE: u64 = 16;

impl Lowering<'_> {
    pub fn bit_syntax(&mut self, instr: Instr, a: &[Arg]) -> Res {
        let checked = self.checked();
        let op = match instr.op {
            G::BsStartMatch2 => Op::BsStartMatch {
                fail: self.label(a, 0)?,
                src: self.src(a, 1)?,
                live: self.live(a, 2)?,
                dst: self.reg(a, 4)?,
            },
            G::BsStartMatch3 => Op::BsStartMatch {
                fail: self.label(a, 0)?,
                src: self.src(a, 1)?,
                live: self.live(a, 2)?,
                dst: self.reg(a, 3)?,
            },
            G::BsStartMatch4 => self.start_match(a)?,
            G::BsMatch => Op::BsMatch {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                commands: self.match_commands(a)?,
                checked,
            },
            G::BsGetInteger2 => Op::BsGetInteger {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                live: self.live(a, 2)?,
                size: self.seg_size(a, 3)?,
                unit: self.unit(a, 4)?,
                flags: self.flags(a, 5)?,
                dst: self.reg(a, 6)?,
                checked,
            },
            G::BsGetFloat2 => Op::BsGetFloat {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                live: self.live(a, 2)?,
                size: self.seg_size(a, 3)?,
                unit: self.unit(a, 4)?,
                flags: self.flags(a, 5)?,
                dst: self.reg(a, 6)?,
                checked,
            },
            G::BsGetBinary2 => Op::BsGetBinary {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                live: self.live(a, 2)?,
                size: self.seg_size(a, 3)?,
                unit: self.unit(a, 4)?,
                dst: self.reg(a, 6)?,
                checked,
            },
            G::BsSkipBits2 => Op::BsSkipBits {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                size: self.seg_size(a, 2)?,
                unit: self.unit(a, 3)?,
                checked,
            },
            G::BsTestTail2 => Op::BsTestTail {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                bits: self.bits(a, 2)?,
                checked,
            },
            G::BsTestUnit => Op::BsTestUnit {
                fail: self.label(a, 0)?,
                ctx: self.reg(a, 1)?,
                unit: self.unit(a, 2)?,
                checked,
            },
            G::BsMatchString => {
                let bits = self.number(a, 2, "bits", MAX_BITS)?;
                Op::BsMatchString {
                    fail: self.label(a, 0)?,
                    ctx: self.reg(a, 1)?,
                    bits,
                    bytes: self.string(a, 3, bits.div_ceil(8))?,
                    checked,
                }
            }
            G::BsGetUtf8 => self.get_utf(SegKind::Utf8, a, true)?,
            G::BsGetUtf16 => self.get_utf(SegKind::Utf16, a, true)?,
            G::BsGetUtf32 => self.get_utf(SegKind::Utf32, a, true)?,
            G::BsSkipUtf8 => self.get_utf(SegKind::Utf8, a, false)?,
            G::BsSkipUtf16 => self.get_utf(SegKind::Utf16, a, false)?,
            G::BsSkipUtf32 => self.get_utf(SegKind::Utf32, a, false)?,
            G::BsGetTail => Op::BsGetTail {
                ctx: self.reg(a, 0)?,
                dst: self.reg(a, 1)?,
                live: self.live(a, 2)?,
                checked,
            },
            G::BsGetPosition => Op::BsGetPosition {
                ctx: self.reg(a, 0)?,
                dst: self.reg(a, 1)?,
                checked,
            },
            G::BsSetPosition => Op::BsSetPosition {
                ctx: self.reg(a, 0)?,
                position: self.src(a, 1)?,
                checked,
            },
            G::BsCreateBin => Op::BsCreateBin {
                fail: self.fail(a, 0)?,
                heap: self.heap(a, 1)?,
                live: self.live(a, 2)?,
                unit: self.number(a, 3, "unit", MAX_UNIT)? as u32,
                dst: self.reg(a, 4)?,
                segments: self.segments(a)?,
            },
            G::BsInitWritable => Op::BsInitWritable,
            G::BsUtf8Size => Op::BsUtfSize {
                kind: SegKind::Utf8,
                fail: self.fail(a, 0)?,
                src: self.src(a, 1)?,
                dst: self.reg(a, 2)?,
            },
            G::BsUtf16Size => Op::BsUtfSize {
                kind: SegKind::Utf16,
                fail: self.fail(a, 0)?,
                src: self.src(a, 1)?,
                dst: self.reg(a, 2)?,
            },
            G::BsAdd => Op::BsAdd {
                fail: self.fail(a, 0)?,
                a: self.src(a, 1)?,
                b: self.src(a, 2)?,
                unit: self.unit(a, 3)?,
                dst: self.reg(a, 4)?,
            },
            G::BsInit2 | G::BsInitBits | G::BsAppend | G::BsPrivateAppend => {
                return self.construct(instr, a);
            }
            G::BsPutInteger
            | G::BsPutFloat
            | G::BsPutBinary
            | G::BsPutString
            | G::BsPutUtf8
            | G::BsPutUtf16
            | G::BsPutUtf32 => return Err(LowerFault::Orphan),
            _ => return Err(LowerFault::Obsolete),
        };
        if let Op::Move { src, dst } = op
            && super::instr::same(src, dst)
        {
            return Ok(());
        }
        self.code.push(op);
        Ok(())
    }

    /// `bs_start_match4`: the first operand is a label, `no_fail` or `resume` (the operand is a context already).
    fn start_match(&mut self, a: &[Arg]) -> Res<Op> {
        let (live, src, dst) = (self.live(a, 1)?, self.src(a, 2)?, self.reg(a, 3)?);
        let fail = match a[0] {
            Arg::A(_) => {
                let resume = self.env.tables.atoms.text(self.atom_name(a, 0)?) == "resume";
                if resume && self.env.trusted {
                    return Ok(Op::Move { src, dst });
                }
                NO_LABEL
            }
            _ => self.label(a, 0)?,
        };
        Ok(Op::BsStartMatch {
            src,
            dst,
            live,
            fail,
        })
    }

    fn match_commands(&self, a: &[Arg]) -> Res<Box<[MatchCommand]>> {
        let list = self.list(a, 2)?;
        let mut out = Vec::new();
        let mut i = 0;
        while i < list.len() {
            let name = self.atom_name(list, i)?;
            let text = self.env.tables.atoms.text(name);
            let arity = match text {
                "ensure_exactly" | "skip" => 1,
                "ensure_at_least" => 2,
                "get_tail" | "=:=" => 3,
                "integer" | "binary" => 5,
                _ => return Err(self.fault(i, "match command")),
            };
            let Some(c) = list.get(i + 1..i + 1 + arity) else {
                return Err(self.fault(i, "complete match command"));
            };
            let sized = |size: usize, unit: usize| -> Res<u64> {
                let unit = self.number(c, unit, "unit", MAX_UNIT)?;
                Ok(self.bits(c, size)?.saturating_mul(unit).min(MAX_BITS))
            };
            out.push(match text {
                "ensure_at_least" => MatchCommand::EnsureAtLeast {
                    bits: self.bits(c, 0)?,
                    unit: self.unit(c, 1)?,
                },
                "ensure_exactly" => MatchCommand::EnsureExactly {
                    bits: self.bits(c, 0)?,
                },
                "skip" => MatchCommand::Skip {
                    bits: self.bits(c, 0)?,
                },
                "get_tail" => MatchCommand::GetTail {
                    live: self.live(c, 0)?,
                    dst: self.reg(c, 2)?,
                },
                "integer" => MatchCommand::Integer {
                    live: self.live(c, 0)?,
                    flags: self.flags(c, 1)?,
                    bits: sized(2, 3)?,
                    dst: self.reg(c, 4)?,
                },
                "binary" => MatchCommand::Binary {
                    live: self.live(c, 0)?,
                    bits: sized(2, 3)?,
                    dst: self.reg(c, 4)?,
                },
                _ => {
                    let bits = self.number(c, 1, "bits", 64)? as u32;
                    let value = self.number(c, 2, "value", u64::MAX)?;
                    if bits < 64 && value >> bits != 0 {
                        return Err(LowerFault::Inconsistent("a value wider than its field"));
                    }
                    MatchCommand::Equal { bits, value }
                }
            });
            i += 1 + arity;
        }
        Ok(out.into())
    }

    fn get_utf(&mut self, kind: SegKind, a: &[Arg], get: bool) -> Res<Op> {
        Ok(Op::BsGetUtf {
            kind,
            fail: self.label(a, 0)?,
            ctx: self.reg(a, 1)?,
            flags: self.flags(a, 3)?,
            dst: if get { Some(self.reg(a, 4)?) } else { None },
            checked: self.checked(),
        })
    }

    fn unit(&self, a: &[Arg], i: usize) -> Res<u32> {
        let unit = self.number(a, i, "unit", MAX_UNIT)? as u32;
        if unit == 0 {
            return Err(self.fault(i, "unit above 0"));
        }
        Ok(unit)
    }

    /// Flags as a number (old) or as nil or a literal list of atoms.
    fn flags(&self, a: &[Arg], i: usize) -> Res<BitFlags> {
        let native_little = cfg!(target_endian = "little");
        let mut flags = BitFlags::default();
        match a[i] {
            Arg::U(bits) => {
                flags.signed = bits & FLAG_SIGNED != 0;
                flags.little = bits & FLAG_LITTLE != 0 || bits & FLAG_NATIVE != 0 && native_little;
            }
            arg => {
                let mut list = self.consts.word(arg).ok_or(self.fault(i, "flags"))?;
                while let Some((head, tail)) = list.as_cons() {
                    match head.as_atom().map(|f| self.env.tables.atoms.text(f)) {
                        Some("signed") => flags.signed = true,
                        Some("little") => flags.little = true,
                        Some("native") => flags.little = native_little,
                        Some("unsigned" | "big") => {}
                        _ => return Err(self.fault(i, "flags")),
                    }
                    list = tail;
                }
                if !list.is_nil() {
                    return Err(self.fault(i, "flags"));
                }
            }
        }
        Ok(flags)
    }

    fn seg_size(&self, a: &[Arg], i: usize) -> Res<SegSize> {
        match self.src(a, i)? {
            Src::Const(w) if w == atoms::ALL.word() => Ok(SegSize::All),
            Src::Const(w) if w == atoms::UNDEFINED.word() => Ok(SegSize::Undefined),
            src => Ok(SegSize::Term(src)),
        }
    }

    /// Bytes of the string table.
    fn string(&self, a: &[Arg], i: usize, len: u64) -> Res<Box<[u8]>> {
        let start = self.number(a, i, "string offset", u64::from(u32::MAX))?;
        usize::try_from(start)
            .ok()
            .zip(usize::try_from(start.saturating_add(len)).ok())
            .and_then(|(from, to)| self.module.strings.get(from..to))
            .map(Into::into)
            .ok_or(self.fault(i, "string inside the string table"))
    }

    /// The segments of `bs_create_bin`: six operands each.
    fn segments(&self, a: &[Arg]) -> Res<Box<[Segment]>> {
        let list = self.list(a, 5)?;
        if list.len() % 6 != 0 {
            return Err(self.fault(5, "list of segments"));
        }
        list.as_chunks::<6>()
            .0
            .iter()
            .enumerate()
            .map(|(n, s)| {
                let kind = self.segment_kind(s, n)?;
                let string = kind == SegKind::String;
                let bytes = if string {
                    let len = self.number(s, 5, "string length", MAX_BITS)?;
                    self.string(s, 4, len)?
                } else {
                    Box::default()
                };
                let size = if string {
                    SegSize::Undefined
                } else {
                    self.seg_size(s, 5)?
                };
                Ok(Segment {
                    kind,
                    unit: self.number(s, 2, "unit", MAX_UNIT)? as u32,
                    flags: self.flags(s, 3)?,
                    src: if string {
                        Src::Const(Word::NIL)
                    } else {
                        self.src(s, 4)?
                    },
                    size,
                    bytes,
                    index: self.number(s, 1, "segment", u64::from(u32::MAX))? as u32,
                })
            })
            .collect()
    }

    fn segment_kind(&self, s: &[Arg], n: usize) -> Res<SegKind> {
        let kind = match self.env.tables.atoms.text(self.atom_name(s, 0)?) {
            "append" => SegKind::Append,
            // Without the compiler's proof an append is an ordinary one.
            "private_append" if self.env.trusted => SegKind::PrivateAppend,
            "private_append" => SegKind::Append,
            "integer" => SegKind::Integer,
            "float" => SegKind::Float,
            "binary" => SegKind::Binary,
            "string" => SegKind::String,
            "utf8" => SegKind::Utf8,
            "utf16" => SegKind::Utf16,
            "utf32" => SegKind::Utf32,
            _ => return Err(self.fault(0, "segment type")),
        };
        if n > 0 && matches!(kind, SegKind::Append | SegKind::PrivateAppend) {
            return Err(LowerFault::Inconsistent("an append behind other segments"));
        }
        Ok(kind)
    }

    /// An old construction: the start at the current index and all that belongs to it.
    fn construct(&mut self, instr: Instr, a: &[Arg]) -> Res {
        let module = self.module;
        let fail = self.fail(a, 0)?;
        let mut segments = Vec::new();
        let (heap, live, dst, unit) = match instr.op {
            G::BsInit2 | G::BsInitBits => {
                // The size (operand 1) is that of the segments.
                (self.heap(a, 2)?, self.live(a, 3)?, self.reg(a, 5)?, 1)
            }
            G::BsAppend => {
                let unit = self.unit(a, 4)?;
                let src = self.src(a, 5)?;
                segments.push(segment(SegKind::Append, unit, src, SegSize::All));
                (self.heap(a, 2)?, self.live(a, 3)?, self.reg(a, 7)?, unit)
            }
            _ => {
                let unit = self.unit(a, 2)?;
                let src = self.src(a, 3)?;
                let kind = if self.env.trusted {
                    SegKind::PrivateAppend
                } else {
                    SegKind::Append
                };
                segments.push(segment(kind, unit, src, SegSize::All));
                self.needs_live = true;
                (0, LIVE_UNKNOWN, self.reg(a, 5)?, unit)
            }
        };
        // Moves between the segments come behind the construction; segments behind a move read what it moved.
        let (mut moves, mut held) = (Vec::<(Reg, Src)>::new(), Vec::new());
        while let Some(next) = self.following(1) {
            let b = module.code.args(next);
            // A line or move inside the sequence is not one in front of what follows it.
            if matches!(next.op, G::Line | G::Move) && !self.puts_follow() {
                break;
            }
            let before = segments.len();
            let fails = match next.op {
                G::Line => None,
                G::Move => {
                    let (src, dst) = (self.src(b, 0)?, self.reg(b, 1)?);
                    moves.push((dst, moved(&moves, src)));
                    held.push(Op::Move { src, dst });
                    None
                }
                G::BsPutString => {
                    let len = self.number(b, 0, "string length", MAX_BITS)?;
                    let mut s = segment(
                        SegKind::String,
                        8,
                        Src::Const(Word::NIL),
                        SegSize::Undefined,
                    );
                    s.bytes = self.string(b, 1, len)?;
                    segments.push(s);
                    None
                }
                G::BsPutInteger | G::BsPutFloat | G::BsPutBinary => {
                    let kind = match next.op {
                        G::BsPutInteger => SegKind::Integer,
                        G::BsPutFloat => SegKind::Float,
                        _ => SegKind::Binary,
                    };
                    let size = self.seg_size(b, 1)?;
                    let mut s = segment(kind, self.unit(b, 2)?, self.src(b, 4)?, size);
                    s.flags = self.flags(b, 3)?;
                    segments.push(s);
                    Some(b)
                }
                G::BsPutUtf8 | G::BsPutUtf16 | G::BsPutUtf32 => {
                    let kind = match next.op {
                        G::BsPutUtf8 => SegKind::Utf8,
                        G::BsPutUtf16 => SegKind::Utf16,
                        _ => SegKind::Utf32,
                    };
                    let mut s = segment(kind, 0, self.src(b, 2)?, SegSize::Undefined);
                    s.flags = self.flags(b, 1)?;
                    segments.push(s);
                    Some(b)
                }
                _ => break,
            };
            if let Some(b) = fails
                && self.fail(b, 0)? != fail
            {
                return Err(LowerFault::Inconsistent(
                    "one binary under construction with two failure labels",
                ));
            }
            if let Some(s) = segments.get_mut(before) {
                s.src = moved(&moves, s.src);
                if let SegSize::Term(size) = &mut s.size {
                    *size = moved(&moves, *size);
                }
            }
            self.index += 1;
        }
        for (i, s) in segments.iter_mut().enumerate() {
            s.index = i as u32 + 1;
        }
        self.code.push(Op::BsCreateBin {
            heap,
            live,
            unit,
            dst,
            segments: segments.into(),
            fail,
        });
        self.code.append(&mut held);
        Ok(())
    }

    /// Whether another segment comes behind the lines and moves that follow.
    fn puts_follow(&self) -> bool {
        let mut n = 1;
        while let Some(i) = self.following(n) {
            match i.op {
                G::Line | G::Move => n += 1,
                G::BsPutInteger
                | G::BsPutFloat
                | G::BsPutBinary
                | G::BsPutString
                | G::BsPutUtf8
                | G::BsPutUtf16
                | G::BsPutUtf32 => return true,
                _ => return false,
            }
        }
        false
    }
}

/// Where a value lies that moves have been held back for.
fn moved(moves: &[(Reg, Src)], src: Src) -> Src {
    moves
        .iter()
        .rev()
        .find(|(dst, _)| super::instr::same(src, *dst))
        .map_or(src, |(_, from)| *from)
}

fn segment(kind: SegKind, unit: u32, src: Src, size: SegSize) -> Segment {
    Segment {
        kind,
        unit,
        flags: BitFlags::default(),
        src,
        size,
        bytes: Box::default(),
        index: 0,
    }
}
