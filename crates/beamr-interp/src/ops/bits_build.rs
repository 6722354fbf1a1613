//! Building bitstrings.
//!
//! `bs_create_bin` is a list of segments, kept beside the code (the instruction has its address). It runs in
//! two passes, as in OTP: sizes first, then values; the first failure is the one that is reported.
//!
//! Half 4 destination, 5 live, 6 words; pair 4 fail, pair 5 heap; word 3 the segments.

use beamr_abi::{ErrorInfo, Regs};
use beamr_term::bits::{self, BitsView, BitsWriter, BsBuilder, Utf};
use beamr_term::header::MAX_HEAP_BINARY;
use beamr_term::{Atom, Build, Subtag, Word, atoms};
use beamr_vm::lower::op::{SegKind, SegSize, Segment, Src};
use beamr_vm::process::{LARGE, has_room};

use crate::glue;
use crate::machine::{Ip, M, handlers, plain_error};
use crate::ops::arith::{ensure, store_and_ensure};
use crate::ops::exceptions::{badarg, raise_at, system_limit};
use crate::ops::natives::Step;

handlers! {
    fn create(m) {
        m.step(create_step)
    }
    /// One integer of whole bytes behind a bitstring.
    fn append_integer(m) {
        m.step(append_step)
    }
    /// x0 becomes an empty bitstring that appends may extend.
    fn init_writable(m) {
        m.save();
        let w = empty(m.regs());
        m.load();
        m.set_x(0, w.bits());
        m.next(1)
    }
    /// Half 4 code point, 5 destination, 6 words, 7 kind (0 UTF-8: bytes; 1 UTF-16: bytes).
    fn utf_size(m) {
        let c = m.any(m.half(4)) >> 4;
        let n: u64 = if m.half(7) == 0 {
            match c {
                0..0x80 => 1,
                0x80..0x800 => 2,
                0x800..0x1_0000 => 3,
                _ => 4,
            }
        } else if c >= 0x1_0000 {
            4
        } else {
            2
        };
        m.set_any(m.half(5), n << 4 | 0xF);
        m.next(m.half(6))
    }
    /// Half 4 + half 5 * pair 4, into half 6; half 7 words, pair 5 fail.
    fn add_sizes(m) {
        let (a, b) = (m.any_word(m.half(4)), m.any_word(m.half(5)));
        let sum = match (a.as_small(), b.as_small()) {
            (Some(a), Some(b)) if a >= 0 && b >= 0 => (b as u64)
                .checked_mul(m.uint(4) as u64)
                .and_then(|b| b.checked_add(a as u64))
                .filter(|s| *s <= Word::MAX_SMALL as u64),
            _ => None,
        };
        match sum {
            Some(s) => {
                m.set_any(m.half(6), s << 4 | 0xF);
                m.next(m.half(7))
            }
            None if m.int(5) != 0 => m.branch(5),
            // A size that is none is worse than one that is too large.
            None if is_size(a) && is_size(b) => m.slow(system_limit),
            None => m.slow(badarg),
        }
    }
}

/// Whether a term is an integer that is not negative.
fn is_size(w: Word) -> bool {
    w.subtag() == Some(Subtag::PosBig) || w.as_small().is_some_and(|n| n >= 0)
}

#[inline(never)]
unsafe fn empty(regs: &mut Regs) -> Word {
    regs.ctx.heap_bits(0).0
}

/// A segment as instructions refer to it.
#[derive(Debug)]
pub(crate) struct Seg {
    kind: SegKind,
    unit: u64,
    little: bool,
    src: Src,
    size: SegSize,
    bytes: Box<[u8]>,
    index: u32,
}

impl Seg {
    /// Of a lowered segment.
    pub fn new(s: &Segment) -> Seg {
        Seg {
            kind: s.kind,
            unit: u64::from(s.unit),
            little: s.flags.little,
            src: s.src,
            size: s.size,
            bytes: s.bytes.clone(),
            index: s.index,
        }
    }
    fn name(&self) -> Atom {
        match self.kind {
            SegKind::Append | SegKind::PrivateAppend => atoms::BINARY,
            SegKind::Integer => atoms::INTEGER,
            SegKind::Float => atoms::FLOAT,
            SegKind::Binary => atoms::BINARY,
            SegKind::String => atoms::STRING,
            SegKind::Utf8 => atoms::UTF8,
            SegKind::Utf16 => atoms::UTF16,
            SegKind::Utf32 => atoms::UTF32,
        }
    }
}

#[inline(always)]
unsafe fn value(m: &M, s: Src) -> Word {
    match s {
        Src::X(n) => Word::from_bits(m.x(n as usize)),
        Src::Y(n) => Word::from_bits(*m.e.add(n as usize)),
        Src::Const(w) => w,
    }
}

/// Why a construction failed: reason, segment, what was wrong, the value.
struct Failure {
    reason: Atom,
    segment: u32,
    kind: Atom,
    what: Atom,
    value: Word,
}

fn failure(s: &Seg, what: Atom, value: Word) -> Failure {
    Failure {
        reason: atoms::BADARG,
        segment: s.index,
        kind: s.name(),
        what,
        value,
    }
}

fn too_large(s: &Seg, value: Word) -> Failure {
    Failure {
        reason: atoms::SYSTEM_LIMIT,
        ..failure(s, atoms::SIZE, value)
    }
}

/// Bits that a bitstring may have: what a small integer holds, far below what memory does.
const MAX_BITS: u64 = 1 << 50;

/// Size of an integer, float or binary segment of explicit size, in bits.
unsafe fn explicit_size(s: &Seg, size: Word) -> Result<u64, Failure> {
    if let Some(n) = size.as_small() {
        if n < 0 {
            return Err(failure(s, atoms::SIZE, size));
        }
        return match (n as u64).checked_mul(s.unit) {
            Some(bits) if bits <= MAX_BITS => Ok(bits),
            _ => Err(too_large(s, size)),
        };
    }
    if size.is_big() && size.header().subtag() == Subtag::PosBig {
        return Err(too_large(s, size));
    }
    Err(failure(s, atoms::SIZE, size))
}

fn code_point(s: &Seg, v: Word) -> Result<u32, Failure> {
    v.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .filter(|c| char::from_u32(*c).is_some())
        .ok_or_else(|| failure(s, atoms::TYPE, v))
}

fn encoding(s: &Seg) -> Utf {
    match s.kind {
        SegKind::Utf16 => Utf::Utf16 { little: s.little },
        SegKind::Utf32 => Utf::Utf32 { little: s.little },
        _ => Utf::Utf8,
    }
}

/// Size of a segment in bits.
unsafe fn size_of(m: &M, s: &Seg) -> Result<u64, Failure> {
    match s.kind {
        SegKind::String => Ok(s.bytes.len() as u64 * 8),
        SegKind::Utf8 | SegKind::Utf16 | SegKind::Utf32 => {
            let v = value(m, s.src);
            let c = code_point(s, v)?;
            encoding(s)
                .bits(c)
                .ok_or_else(|| failure(s, atoms::TYPE, v))
        }
        _ => match s.size {
            SegSize::Term(size) => explicit_size(s, value(m, size)),
            SegSize::All | SegSize::Undefined => {
                let v = value(m, s.src);
                let Some(view) = view(v) else {
                    return Err(failure(s, atoms::TYPE, v));
                };
                if s.unit > 1 && !view.bit_size.is_multiple_of(s.unit) {
                    return Err(failure(s, atoms::UNIT, v));
                }
                Ok(view.bit_size)
            }
        },
    }
}

fn view(v: Word) -> Option<BitsView> {
    if v.is_bitstring() {
        BitsView::of(v)
    } else {
        None
    }
}

/// Writes a segment of `bits` bits.
unsafe fn put(regs: &Regs, m: &M, w: &mut BitsWriter, s: &Seg, bits: u64) -> Result<(), Failure> {
    match s.kind {
        SegKind::String => w.put_bytes(&s.bytes),
        SegKind::Integer => {
            let v = value(m, s.src);
            if let Some(n) = v.as_small()
                && bits <= 64
                && (!s.little || bits <= 8)
            {
                w.put_u64(n as u64, bits);
            } else if !w.put_integer(v, bits, s.little) {
                return Err(failure(s, atoms::TYPE, v));
            }
        }
        SegKind::Float => {
            let v = value(m, s.src);
            if !matches!(bits, 16 | 32 | 64) {
                let size = match s.size {
                    SegSize::Term(size) => value(m, size),
                    _ => v,
                };
                return Err(failure(s, atoms::INVALID, size));
            }
            if !v.is_number() {
                return Err(failure(s, atoms::TYPE, v));
            }
            let Some(f) = glue::to_float(&regs.ctx, v) else {
                return Err(failure(s, atoms::NO_FLOAT, v));
            };
            w.put_float(f, bits, s.little);
        }
        SegKind::Binary | SegKind::Append | SegKind::PrivateAppend => {
            let v = value(m, s.src);
            let Some(view) = view(v) else {
                return Err(failure(s, atoms::TYPE, v));
            };
            match view.part(0, bits) {
                Some(part) => w.put_bits(&part),
                None => return Err(failure(s, atoms::SHORT, v)),
            }
        }
        SegKind::Utf8 | SegKind::Utf16 | SegKind::Utf32 => {
            let v = value(m, s.src);
            let c = code_point(s, v)?;
            if !w.put_utf(c, encoding(s)) {
                return Err(failure(s, atoms::TYPE, v));
            }
        }
    }
    Ok(())
}

/// Segments whose sizes are kept on the native stack.
const INLINE: usize = 16;

unsafe fn build(regs: &mut Regs, m: &mut M, segs: &[Seg]) -> Result<Word, Result<Step, Failure>> {
    let mut inline = [0u64; INLINE];
    let mut more = Vec::new();
    let sizes: &mut [u64] = if segs.len() <= INLINE {
        &mut inline[..segs.len()]
    } else {
        more.resize(segs.len(), 0);
        &mut more
    };
    let mut total = 0u64;
    for (s, size) in segs.iter().zip(sizes.iter_mut()) {
        *size = size_of(m, s).map_err(Err)?;
        total += *size;
        if total > MAX_BITS {
            return Err(Err(too_large(s, value(m, s.src))));
        }
    }
    let appends = segs
        .first()
        .is_some_and(|s| matches!(s.kind, SegKind::Append | SegKind::PrivateAppend));
    let bytes = ((total - if appends { sizes[0] } else { 0 }) / 8) as usize;
    if bytes >= LARGE && !has_room(&regs.ctx, bytes) {
        let s = segs.iter().zip(sizes.iter()).max_by_key(|s| s.1);
        let (s, _) = s.unwrap_or((&segs[0], &0));
        return Err(Err(too_large(s, value(m, s.src))));
    }
    // Room for what is built (a counted binary and a part of it at most), so that it rarely takes a fragment.
    let live = m.half(5);
    let own = if total <= MAX_HEAP_BINARY as u64 * 8 {
        total.div_ceil(64) as usize + 2
    } else {
        9
    };
    ensure(regs, m, own + m.uint(5), live).map_err(Ok)?;
    // Copying takes its time.
    regs.ctx.bump((total >> 13) as i64);
    if appends {
        let head = value(m, segs[0].src);
        let extra = total - sizes[0];
        if extra == 0 {
            return Ok(head);
        }
        // Values are checked before the source is extended: a failure must leave it as it was.
        for (s, size) in segs.iter().zip(sizes.iter()).skip(1) {
            check(regs, m, s, *size).map_err(Err)?;
        }
        let Some(a) = bits::append(&mut regs.ctx, head, extra) else {
            return Err(Err(failure(&segs[0], atoms::TYPE, head)));
        };
        let mut w = BitsWriter::new(a.base, a.offset);
        for (s, size) in segs.iter().zip(sizes.iter()).skip(1) {
            put(regs, m, &mut w, s, *size).map_err(Err)?;
        }
        return Ok(a.term);
    }
    let mut b = BsBuilder::new(&mut regs.ctx, total);
    let w = b.writer();
    for (s, size) in segs.iter().zip(sizes.iter()) {
        put(regs, m, w, s, *size).map_err(Err)?;
    }
    Ok(b.finish())
}

/// Whether [`put`] will succeed.
unsafe fn check(regs: &Regs, m: &M, s: &Seg, bits: u64) -> Result<(), Failure> {
    let v = value(m, s.src);
    match s.kind {
        SegKind::Integer if !v.is_integer() => Err(failure(s, atoms::TYPE, v)),
        SegKind::Float => {
            let mut scratch = [0u8; 8];
            let mut w = BitsWriter::new(scratch.as_mut_ptr(), 0);
            put(regs, m, &mut w, s, bits)
        }
        SegKind::Binary | SegKind::Append | SegKind::PrivateAppend => match view(v) {
            None => Err(failure(s, atoms::TYPE, v)),
            Some(view) if view.bit_size < bits => Err(failure(s, atoms::SHORT, v)),
            Some(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether [`append_integer`] is for these segments: `<<Head/bits, N:Size>>` with 8 to 64 bits, most significant first.
pub(crate) fn is_append_of_integer(segments: &[Segment]) -> bool {
    let [head, integer] = segments else {
        return false;
    };
    matches!(head.kind, SegKind::Append | SegKind::PrivateAppend)
        && integer.kind == SegKind::Integer
        && constant_bits(integer.size, u64::from(integer.unit))
            .is_some_and(|b| matches!(b, 8 | 16 | 24 | 32 | 40 | 48 | 56 | 64))
        && (!integer.flags.little
            || constant_bits(integer.size, u64::from(integer.unit)) == Some(8))
}

fn constant_bits(size: SegSize, unit: u64) -> Option<u64> {
    match size {
        SegSize::Term(Src::Const(w)) => w
            .as_small()
            .and_then(|n| u64::try_from(n).ok())
            .and_then(|n| n.checked_mul(unit)),
        _ => None,
    }
}

/// The general case takes over whenever something is unusual.
#[inline(never)]
unsafe fn append_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let segs: &[Seg] = &*(m.word(3) as usize as *const Box<[Seg]>);
    let (live, words, heap) = (m.half(5), m.half(6), m.uint(5));
    let (head, integer) = (&segs[0], &segs[1]);
    let bits = constant_bits(integer.size, integer.unit).unwrap_or(0);
    if let Err(step) = ensure(regs, &mut m, 9 + heap, live) {
        return step;
    }
    let source = value(&m, head.src);
    let Some(n) = value(&m, integer.src).as_small() else {
        return create_step(p, ip);
    };
    let Some(v) = view(source) else {
        return create_step(p, ip);
    };
    if head.unit == 0 || v.bit_size % head.unit != 0 {
        return create_step(p, ip);
    }
    let Some(a) = bits::append(&mut regs.ctx, source, bits) else {
        return create_step(p, ip);
    };
    if a.offset & 7 == 0 {
        let n = n as u64;
        let to = a.base.add((a.offset >> 3) as usize);
        if bits == 8 {
            *to = n as u8;
        } else {
            let bytes = (n << (64 - bits)).to_be_bytes();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, (bits >> 3) as usize);
        }
    } else {
        BitsWriter::new(a.base, a.offset).put_u64(n as u64, bits);
    }
    store_and_ensure(regs, m, m.half(4), a.term, live, words, heap)
}

#[inline(never)]
unsafe fn create_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let segs: &[Seg] = &*(m.word(3) as usize as *const Box<[Seg]>);
    match build(regs, &mut m, segs) {
        Ok(v) => {
            let (live, words, heap) = (m.half(5), m.half(6), m.uint(5));
            store_and_ensure(regs, m, m.half(4), v, live, words, heap)
        }
        Err(Ok(step)) => step,
        Err(Err(f)) => {
            if m.int(4) != 0 {
                return Step::go(m.target(4));
            }
            let cause = regs.ctx.tuple(&[
                Word::fixnum(i64::from(f.segment)),
                f.kind.word(),
                f.what.word(),
                f.value,
            ]);
            let tables = regs.ctx.tables();
            let atom = |t: &str| tables.atoms.intern(t).map_or(Word::NIL, Atom::word);
            let info = [
                (atoms::CAUSE.word(), cause),
                (atoms::FUNCTION.word(), atom("format_bs_fail")),
                (atoms::MODULE.word(), atom("erl_erts_errors")),
            ];
            let info = beamr_term::maps::from_pairs(&mut regs.ctx, &info, tables);
            let mut raise = plain_error(f.reason.word());
            raise.info = ErrorInfo::Cause(info);
            Step::go(raise_at(regs, m.ip, raise))
        }
    }
}
