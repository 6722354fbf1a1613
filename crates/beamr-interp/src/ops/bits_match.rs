//! Matching bitstrings.
//!
//! A match context is a boxed object: the underlying bits, position, end (both small integers, in bits from the
//! start of the underlying bits). A command of `bs_match` is an instruction of its own; frequent pairs are one.
//! Half 4 is the context throughout.

use beamr_abi::Regs;
use beamr_term::bits::{self, BitsView, Utf, raw};
use beamr_term::{Header, Subtag, Word};

use crate::machine::{Ip, Kind, M, Place, handlers};
use crate::ops::arith::{ensure, store};
use crate::ops::data::{bytes_for, field_of};
use crate::ops::exceptions::badarg;
use crate::ops::natives::Step;

/// Segment flag bits in instructions.
pub(crate) const SIGNED: u16 = 1;
/// See [`SIGNED`].
pub(crate) const LITTLE: u16 = 2;
/// The type in half 11 of [`get`].
pub(crate) const INTEGER: u16 = 0;
/// See [`INTEGER`].
pub(crate) const FLOAT: u16 = 1;
/// See [`INTEGER`].
pub(crate) const BINARY: u16 = 2;
/// See [`INTEGER`].
pub(crate) const SKIP: u16 = 3;
/// Flag in half 10 of [`get`]: the size is `all`.
pub(crate) const ALL: u16 = 4;

const MATCH: u64 = Header::new(Subtag::Match, 3).0;
const TAG: u64 = 0xF;

/// Position and end of the context in half 4.
#[inline(always)]
unsafe fn context(m: &M) -> *mut u64 {
    field_of(m.any(m.half(4)), 0).cast_mut()
}
#[inline(always)]
unsafe fn position(c: *mut u64) -> u64 {
    *c.add(2) >> 4
}
/// Bits that are left.
#[inline(always)]
unsafe fn left(c: *mut u64) -> u64 {
    (*c.add(3) - *c.add(2)) >> 4
}
#[inline(always)]
unsafe fn advance(c: *mut u64, bits: u64) {
    *c.add(2) += bits << 4;
}
/// First byte of the underlying bits.
#[inline(always)]
unsafe fn data(c: *mut u64) -> *const u8 {
    let under = field_of(*c.add(1), 0);
    if *under & 0x3C == (Subtag::HeapBits as u64) << 2 {
        under.add(2).cast()
    } else {
        *under.add(3) as usize as *const u8
    }
}

/// `size` bits (at most 64) at the position, most significant first.
#[inline(always)]
unsafe fn read(c: *mut u64, size: u64) -> u64 {
    let pos = position(c);
    let p = data(c);
    if pos & 7 == 0 {
        let p = p.add((pos >> 3) as usize);
        match size {
            8 => return u64::from(*p),
            16 => return u64::from(u16::from_be_bytes(p.cast::<[u8; 2]>().read())),
            32 => return u64::from(u32::from_be_bytes(p.cast::<[u8; 4]>().read())),
            _ => {}
        }
    }
    raw::read_bits(p, pos, size)
}

handlers! {
    /// Half 4 term, 5 destination, pair 3 fail, half 8 live.
    fn start_match[S: Kind, D: Place](m) {
        let w = S::get(&m, 4, 3);
        if w & 3 == 2 {
            let p = field_of(w, 0);
            let header = *p;
            if header == MATCH {
                D::set(&m, 5, w);
                return m.next(3 + S::WORDS);
            }
            let (under, start, size) = match Header(header).subtag() {
                Subtag::HeapBits => (w, 0, *p.add(1)),
                Subtag::RefcBits => (w, 0, *p.add(4)),
                Subtag::SubBits => (*p.add(1), *p.add(2) >> 4, *p.add(3) >> 4),
                _ => return m.slow(no_bitstring),
            };
            let bytes = bytes_for(4);
            if m.free() < bytes {
                return m.collect(bytes, m.half(8));
            }
            let c = m.take(4);
            *c = MATCH;
            *c.add(1) = under;
            *c.add(2) = start << 4 | TAG;
            *c.add(3) = (start + size) << 4 | TAG;
            D::set(&m, 5, c as u64 + 2);
            return m.next(3 + S::WORDS);
        }
        m.slow(no_bitstring)
    }
    /// What [`start_match`] got is no bitstring. Without a label the compiler said that it cannot be.
    #[inline(never)]
    fn no_bitstring(m) {
        if m.int(3) != 0 {
            return m.branch(3);
        }
        m.slow(badarg)
    }
    /// Half 4 must be a match context.
    fn check_context(m) {
        let w = m.any(m.half(4));
        if w & 3 == 2 && *field_of(w, 0) == MATCH {
            return m.next(2);
        }
        m.slow(badarg)
    }
    /// At least word 2 bits, pair 3 fail.
    fn at_least(m) {
        if left(context(&m)) >= m.word(2) {
            return m.next(3);
        }
        m.branch(3)
    }
    /// The same, and what is behind them a multiple of half 5 bits.
    fn at_least_unit(m) {
        let left = left(context(&m));
        let bits = m.word(2);
        if left >= bits && (left - bits).is_multiple_of(m.half(5) as u64) {
            return m.next(3);
        }
        m.branch(3)
    }
    /// The same of a power of two; half 5 is one less.
    fn at_least_mask(m) {
        let left = left(context(&m));
        let bits = m.word(2);
        if left >= bits && (left - bits) & m.half(5) as u64 == 0 {
            return m.next(3);
        }
        m.branch(3)
    }
    /// Exactly word 2 bits, pair 3 fail.
    fn exactly(m) {
        if left(context(&m)) == m.word(2) {
            return m.next(3);
        }
        m.branch(3)
    }
    /// An unsigned big-endian integer of half 6 bits (at most 59), already ensured; half 5 destination.
    fn integer[D: Place](m) {
        let c = context(&m);
        let size = m.half(6) as u64;
        let v = read(c, size);
        advance(c, size);
        D::set(&m, 5, v << 4 | TAG);
        m.next(2)
    }
    /// The same of a fixed size.
    fn integer_n[D: Place, const N: u64](m) {
        let c = context(&m);
        let v = read(c, N);
        advance(c, N);
        D::set(&m, 5, v << 4 | TAG);
        m.next(2)
    }
    /// First at least half 8 bits, and the rest a multiple of half 9; pair 3 fail. Half 5 destination.
    fn at_least_integer_n[D: Place, const N: u64](m) {
        let c = context(&m);
        let left = left(c);
        let bits = m.half(8) as u64;
        if left < bits {
            return m.branch(3);
        }
        let unit = m.half(9) as u64;
        // Units are powers of two where they are not one (the emitter takes care).
        if (left - bits) & (unit - 1) != 0 {
            return m.branch(3);
        }
        let v = read(c, N);
        advance(c, N);
        D::set(&m, 5, v << 4 | TAG);
        m.next(3)
    }
    /// Any integer of word 2 bits, already ensured: half 5 destination, 6 live, 7 flags.
    fn integer_any(m) {
        let c = context(&m);
        let size = m.word(2);
        let flags = m.half(7) as u16;
        if size <= 59 {
            let mut v = read(c, size);
            if flags & LITTLE != 0 && size > 8 {
                let at = position(c);
                let view = BitsView { data: data(c), bit_offset: at, bit_size: size };
                v = view.get_small(0, size, false, true);
            }
            if flags & SIGNED != 0 && size > 0 {
                let shift = 64 - size;
                v = ((v << shift) as i64 >> shift) as u64;
            }
            advance(c, size);
            m.set_any(m.half(5), v << 4 | TAG);
            return m.next(3);
        }
        m.step(big_integer)
    }
    /// A part of word 2 bits, already ensured: half 5 destination, 6 live.
    fn binary(m) {
        m.step(binary_step)
    }
    /// What is left (the position stays): half 5 destination, 6 live.
    fn tail(m) {
        let c = context(&m);
        let size = left(c);
        if size > 256 {
            // A part without a copy.
            let bytes = bytes_for(4);
            if m.free() < bytes {
                return m.collect(bytes, m.half(6));
            }
            let t = m.take(4);
            *t = Header::new(Subtag::SubBits, 3).0;
            *t.add(1) = *c.add(1);
            *t.add(2) = *c.add(2);
            *t.add(3) = size << 4 | TAG;
            m.set_any(m.half(5), t as u64 + 2);
            return m.next(2);
        }
        m.step(tail_step)
    }
    /// Word 2 bits.
    fn skip(m) {
        advance(context(&m), m.word(2));
        m.next(3)
    }
    /// The next half 5 bits (at most 64, already ensured) must be word 2; pair 3 fail.
    fn equal(m) {
        let c = context(&m);
        let size = m.half(5) as u64;
        if read(c, size) != m.word(2) {
            return m.branch(3);
        }
        advance(c, size);
        m.next(3)
    }
    /// Half 5 destination.
    fn get_position(m) {
        let c = context(&m);
        m.set_any(m.half(5), *c.add(2));
        m.next(2)
    }
    /// Half 5 position, 6 words, 7 whether to check it.
    fn set_position(m) {
        let c = context(&m);
        let pos = m.any(m.half(5));
        if m.half(7) != 0 && (pos & TAG != TAG || pos >> 4 > *c.add(3) >> 4) {
            return m.slow(badarg);
        }
        *c.add(2) = pos;
        m.next(m.half(6))
    }
    /// Multiples of half 5 bits must be left; pair 3 fail.
    fn test_unit(m) {
        if left(context(&m)).is_multiple_of(m.half(5) as u64) {
            return m.next(2);
        }
        m.branch(3)
    }
    /// The same of a power of two; half 5 is one less.
    fn test_mask(m) {
        if left(context(&m)) & m.half(5) as u64 == 0 {
            return m.next(2);
        }
        m.branch(3)
    }
    /// Half 5 words, pair 3 fail, word 2 bits; bytes from word 3.
    fn match_string(m) {
        let c = context(&m);
        let size = m.word(2);
        let bytes = m.ip.add(3).cast::<u8>();
        if left(c) < size || !raw::equal_bits(data(c), position(c), bytes, 0, size) {
            return m.branch(3);
        }
        advance(c, size);
        m.next(m.half(5))
    }
    /// UTF-8: half 5 destination (0xFFFF none), pair 3 fail.
    fn utf8(m) {
        let c = context(&m);
        let pos = position(c);
        if pos & 7 == 0 && left(c) >= 8 {
            let b = *data(c).add((pos >> 3) as usize);
            if b < 0x80 {
                advance(c, 8);
                if m.half(5) != NOWHERE {
                    m.set_any(m.half(5), u64::from(b) << 4 | TAG);
                }
                return m.next(3);
            }
        }
        m.slow(utf)
    }
    /// Any encoding: half 8 kind (0 UTF-8, 1 UTF-16, 2 UTF-32), 9 flags.
    #[inline(never)]
    fn utf(m) {
        let v = read_utf(m.p, m.e, m.ip);
        if v == u64::MAX {
            return m.branch(3);
        }
        if m.half(5) != NOWHERE {
            m.set_any(m.half(5), v << 4 | TAG);
        }
        m.next(3)
    }
    /// A segment of any type and size: half 5 destination, 6 live, 7 words; pair 4 fail, half 10 flags, 11 type;
    /// half 12 size, 13 unit.
    fn get(m) {
        m.step(get_step)
    }
}

/// No destination.
pub(crate) const NOWHERE: usize = 0xFFFF;

#[inline(never)]
unsafe fn read_utf(p: *mut Regs, e: *mut u64, ip: Ip) -> u64 {
    let m = M {
        ip,
        e,
        htop: e,
        p,
        fc: 0,
    };
    let c = context(&m);
    let little = m.half(9) as u16 & LITTLE != 0;
    let kind = match m.half(8) {
        0 => Utf::Utf8,
        1 => Utf::Utf16 { little },
        _ => Utf::Utf32 { little },
    };
    let view = BitsView {
        data: data(c),
        bit_offset: position(c),
        bit_size: left(c),
    };
    match view.get_utf(0, kind) {
        Some((v, size)) => {
            advance(c, size);
            u64::from(v)
        }
        None => u64::MAX,
    }
}

/// What is left of a context as a view.
unsafe fn view(c: *mut u64) -> BitsView {
    BitsView {
        data: data(c),
        bit_offset: position(c),
        bit_size: left(c),
    }
}

/// An integer that may be a bignum.
#[inline(never)]
unsafe fn big_integer(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let size = m.word(2);
    let live = m.half(6);
    if let Err(step) = ensure(regs, &mut m, size.div_ceil(64) as usize + 2, live) {
        return step;
    }
    integer_here(regs, m, size, m.half(7) as u16, live, 3)
}

unsafe fn integer_here(
    regs: &mut Regs,
    m: M,
    size: u64,
    flags: u16,
    live: usize,
    words: usize,
) -> Step {
    let c = context(&m);
    let v = view(c).get_integer(
        &mut regs.ctx,
        0,
        size,
        flags & SIGNED != 0,
        flags & LITTLE != 0,
    );
    match v {
        Some(v) => {
            advance(c, size);
            store(regs, m, m.half(5), v, live, words)
        }
        // The caller checked the size.
        None => Step::go(m.ip.add(words)),
    }
}

#[inline(never)]
unsafe fn binary_step(p: *mut Regs, ip: Ip) -> Step {
    let m = M::saved(p, ip);
    part(m, m.word(2), 3)
}

/// The next `size` bits as a bitstring.
unsafe fn part(mut m: M, size: u64, words: usize) -> Step {
    let regs = m.regs();
    let live = m.half(6);
    if let Err(step) = ensure(regs, &mut m, PART_WORDS, live) {
        return step;
    }
    let c = context(&m);
    let w = Word::from_bits(c as u64 + 2);
    let v = bits::sub_bits(&mut regs.ctx, w, 0, size);
    advance(c, size);
    store(regs, m, m.half(5), v, live, words)
}

#[inline(never)]
unsafe fn tail_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let live = m.half(6);
    if let Err(step) = ensure(regs, &mut m, PART_WORDS, live) {
        return step;
    }
    let c = context(&m);
    let w = Word::from_bits(c as u64 + 2);
    let v = bits::match_tail(&mut regs.ctx, w);
    store(regs, m, m.half(5), v, live, 2)
}

/// Words that a part takes at most: a copy of 32 bytes.
const PART_WORDS: usize = 8;

#[inline(never)]
unsafe fn get_step(p: *mut Regs, ip: Ip) -> Step {
    let regs = &mut *p;
    let mut m = M::saved(p, ip);
    let fail = Step::go(m.target(4));
    let flags = m.half(10) as u16;
    let kind = m.half(11) as u16;
    let unit = m.half(13) as u64;
    let words = m.half(7);
    let live = m.half(6);
    let here = left(context(&m));
    let size = if flags & ALL != 0 {
        if unit > 1 && !here.is_multiple_of(unit) {
            return fail;
        }
        here
    } else {
        let size = m.any_word(m.half(12));
        // A size that is no number that a bitstring could have does not match.
        match size.as_small() {
            Some(n) if n >= 0 => match (n as u64).checked_mul(unit) {
                Some(n) if n <= here => n,
                _ => return fail,
            },
            _ => return fail,
        }
    };
    match kind {
        SKIP => {
            advance(context(&m), size);
            Step::go(m.ip.add(words))
        }
        INTEGER => {
            let need = size.div_ceil(64) as usize + 2;
            if let Err(step) = ensure(regs, &mut m, need, live) {
                return step;
            }
            integer_here(regs, m, size, flags, live, words)
        }
        FLOAT => {
            if let Err(step) = ensure(regs, &mut m, 2, live) {
                return step;
            }
            let c = context(&m);
            match view(c).get_float(0, size, flags & LITTLE != 0) {
                Some(f) => {
                    advance(c, size);
                    let v = beamr_term::Build::float(&mut regs.ctx, f);
                    store(regs, m, m.half(5), v, live, words)
                }
                None => fail,
            }
        }
        _ => part(m, size, words),
    }
}
