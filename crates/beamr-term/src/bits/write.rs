//! Filling a bitstring segment by segment.

use super::raw;
use super::view::{BitsView, Utf, is_scalar};
use crate::alloc::{Alloc, Build};
use crate::header::{MAX_HEAP_BINARY, Subtag};
use crate::off_heap::BinaryRef;
use crate::word::Word;

/// A half-precision number as a double.
pub fn f16_to_f64(v: u16) -> f64 {
    let sign = if v & 0x8000 != 0 { -1.0 } else { 1.0 };
    let exp = i32::from(v >> 10 & 0x1F);
    let frac = f64::from(v & 0x3FF);
    match exp {
        0 => sign * frac * 2f64.powi(-24),
        31 if frac == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + frac / 1024.0) * 2f64.powi(exp - 15),
    }
}

/// A double as half precision, rounded to nearest, ties to even; too large becomes infinity, as
/// in OTP.
pub fn f64_to_f16(v: f64) -> u16 {
    let bits = v.to_bits();
    let sign = (bits >> 48 & 0x8000) as u16;
    let exp = (bits >> 52 & 0x7FF) as i32 - 1023;
    let frac = bits & ((1 << 52) - 1);
    if exp > 15 {
        return sign | 0x7C00;
    }
    // The significand, to be shifted so that ten fraction bits remain.
    let (sig, shift, base) = if exp >= -14 {
        (frac, 42, ((exp + 15) as u64) << 10)
    } else if exp >= -25 {
        (frac | 1 << 52, (42 - 14 - exp) as u32, 0)
    } else {
        return sign;
    };
    let half = 1u64 << (shift - 1);
    let low = sig & ((1 << shift) - 1);
    let mut r = base + (sig >> shift);
    if low > half || (low == half && r & 1 == 1) {
        r += 1;
    }
    sign | r as u16
}

/// A cursor that writes bits into a block. It knows no end: whoever made it computed the size.
#[derive(Clone, Copy, Debug)]
pub struct BitsWriter {
    base: *mut u8,
    pos: u64,
}

impl BitsWriter {
    /// A writer at bit `pos` after `base`.
    ///
    /// # Safety
    /// Every bit that will be put lies in writable memory whose bytes are initialised.
    #[inline]
    pub unsafe fn new(base: *mut u8, pos: u64) -> BitsWriter {
        BitsWriter { base, pos }
    }
    /// The position in bits from the base.
    #[inline]
    pub fn position(&self) -> u64 {
        self.pos
    }
    /// `size` low bits of `value` (at most 64), most significant first.
    #[inline]
    pub fn put_u64(&mut self, value: u64, size: u64) {
        // SAFETY: the contract of `new`.
        unsafe { raw::write_bits(self.base, self.pos, size, value) };
        self.pos += size;
    }
    /// An integer segment of `size` bits; false when `value` is no integer.
    #[inline]
    pub fn put_integer(&mut self, value: Word, size: u64, little: bool) -> bool {
        if let Some(v) = value.as_small() {
            self.put_limbs(&[v as u64], v < 0, size, little);
            return true;
        }
        if !value.is_big() {
            return false;
        }
        let n = value.header().arity();
        // SAFETY: the limbs follow the header.
        let limbs = unsafe { std::slice::from_raw_parts(value.ptr().add(1), n) };
        if value.header().subtag() == Subtag::NegBig {
            let mut t = limbs.to_vec();
            let mut carry = true;
            for l in &mut t {
                let (v, c) = (!*l).overflowing_add(u64::from(carry));
                *l = v;
                carry = c;
            }
            self.put_limbs(&t, true, size, little);
        } else {
            self.put_limbs(limbs, false, size, little);
        }
        true
    }
    /// A number in two's complement limbs, least significant first, extended by its sign and cut
    /// to `size` bits.
    pub fn put_limbs(&mut self, limbs: &[u64], negative: bool, size: u64, little: bool) {
        let ext = if negative { u64::MAX } else { 0 };
        let limb = |i: u64| limbs.get(i as usize).copied().unwrap_or(ext);
        if little {
            let mut done = 0;
            while done < size {
                let v = limb(done / 64);
                let k = (size - done).min(64);
                let whole = k & !7;
                if whole > 0 {
                    self.put_u64(v.swap_bytes() >> (64 - whole), whole);
                }
                let rest = k & 7;
                if rest > 0 {
                    self.put_u64(v >> whole, rest);
                }
                done += k;
            }
        } else {
            let rest = size % 64;
            if rest > 0 {
                self.put_u64(limb(size / 64), rest);
            }
            for i in (0..size / 64).rev() {
                self.put_u64(limb(i), 64);
            }
        }
    }
    /// A float segment of 16, 32 or 64 bits; false when the size is another one. A number too
    /// large for it becomes infinity, as in OTP.
    pub fn put_float(&mut self, value: f64, size: u64, little: bool) -> bool {
        let bits = match size {
            64 => value.to_bits(),
            32 => u64::from((value as f32).to_bits()),
            16 => u64::from(f64_to_f16(value)),
            _ => return false,
        };
        self.put_limbs(&[bits], false, size, little);
        true
    }
    /// All bits of a view.
    #[inline]
    pub fn put_bits(&mut self, view: &BitsView) {
        // SAFETY: the contract of `new`; a finished bitstring does not overlap one in the making.
        unsafe { view.copy_to(self.base, self.pos) };
        self.pos += view.bit_size;
    }
    /// Bytes.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_bits(&BitsView::of_bytes(bytes));
    }
    /// A code point; false when it is none.
    #[inline]
    pub fn put_utf(&mut self, c: u32, utf: Utf) -> bool {
        match utf {
            Utf::Utf8 => self.put_utf8(c),
            Utf::Utf16 { little } => self.put_utf16(c, little),
            Utf::Utf32 { little } => self.put_utf32(c, little),
        }
    }
    /// A code point in UTF-8; false when it is none.
    #[inline]
    pub fn put_utf8(&mut self, c: u32) -> bool {
        if c < 0x80 {
            self.put_u64(u64::from(c), 8);
            return true;
        }
        let Some(ch) = char::from_u32(c) else {
            return false;
        };
        let mut b = [0; 4];
        self.put_bytes(ch.encode_utf8(&mut b).as_bytes());
        true
    }
    /// A code point in UTF-16; false when it is none.
    pub fn put_utf16(&mut self, c: u32, little: bool) -> bool {
        if !is_scalar(c) {
            return false;
        }
        if c < 0x1_0000 {
            self.put_limbs(&[u64::from(c)], false, 16, little);
        } else {
            let v = c - 0x1_0000;
            self.put_limbs(&[u64::from(0xD800 | v >> 10)], false, 16, little);
            self.put_limbs(&[u64::from(0xDC00 | v & 0x3FF)], false, 16, little);
        }
        true
    }
    /// A code point in UTF-32; false when it is none.
    pub fn put_utf32(&mut self, c: u32, little: bool) -> bool {
        if !is_scalar(c) {
            return false;
        }
        self.put_limbs(&[u64::from(c)], false, 32, little);
        true
    }
}

impl Utf {
    /// How many bits the code point takes, or `None` when it is none.
    pub fn bits(self, c: u32) -> Option<u64> {
        let ch = char::from_u32(c)?;
        Some(match self {
            Utf::Utf8 => ch.len_utf8() as u64 * 8,
            Utf::Utf16 { .. } => ch.len_utf16() as u64 * 16,
            Utf::Utf32 { .. } => 32,
        })
    }
}

/// Builds one bitstring whose size is known: on the heap when small, in a counted block else.
/// The term is there from the start and complete once `size` bits were put.
#[derive(Debug)]
pub struct BsBuilder {
    term: Word,
    writer: BitsWriter,
    end: u64,
}

impl BsBuilder {
    /// Room for `bits` bits.
    pub fn new(alloc: &mut impl Alloc, bits: u64) -> BsBuilder {
        let (term, base) = if bits > MAX_HEAP_BINARY as u64 * 8 {
            let block = BinaryRef::with_capacity(bits.div_ceil(8) as usize, bits);
            let base = block.data();
            (alloc.refc_binary(block, bits), base)
        } else {
            alloc.heap_bits(bits)
        };
        BsBuilder {
            term,
            // SAFETY: `finish` asserts that no more than `bits` were put, and `writer` states it.
            writer: unsafe { BitsWriter::new(base, 0) },
            end: bits,
        }
    }
    /// The writer. No more bits than the builder has room for may be put.
    #[inline]
    pub fn writer(&mut self) -> &mut BitsWriter {
        &mut self.writer
    }
    /// Bits of room left.
    #[inline]
    pub fn room(&self) -> u64 {
        self.end - self.writer.position()
    }
    /// The bitstring.
    pub fn finish(self) -> Word {
        debug_assert_eq!(self.writer.position(), self.end);
        self.term
    }
}
