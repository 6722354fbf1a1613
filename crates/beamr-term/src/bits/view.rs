//! Reading a bitstring term.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::raw;
use super::write::f16_to_f64;
use crate::alloc::{Alloc, Build};
use crate::header::Subtag;
use crate::word::Word;

/// Where the bits of a bitstring lie. Valid as long as the term is (and until an append moves the
/// block of a binary that only this term's heap holds).
#[derive(Clone, Copy, Debug)]
pub struct BitsView {
    /// A byte at or before the first bit.
    pub data: *const u8,
    /// The first bit, counted from `data`.
    pub bit_offset: u64,
    /// How many bits.
    pub bit_size: u64,
}

/// An encoding of code points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Utf {
    /// UTF-8.
    Utf8,
    /// UTF-16; true when little-endian.
    Utf16 {
        /// Little-endian.
        little: bool,
    },
    /// UTF-32; true when little-endian.
    Utf32 {
        /// Little-endian.
        little: bool,
    },
}

/// Whether a number is a Unicode scalar value.
#[inline]
pub(crate) fn is_scalar(c: u32) -> bool {
    c <= 0x10_FFFF && !(0xD800..0xE000).contains(&c)
}

impl BitsView {
    /// The view of a bitstring, or of what is left of a match context. `None` for other terms.
    #[inline]
    pub fn of(word: Word) -> Option<BitsView> {
        if !word.is_boxed() {
            return None;
        }
        match word.header().subtag() {
            Subtag::HeapBits | Subtag::RefcBits => Some(Self::whole(word)),
            Subtag::SubBits => {
                let u = Self::whole(word.term_field(1));
                Some(BitsView {
                    data: u.data,
                    bit_offset: word.term_field(2).small_value() as u64,
                    bit_size: word.term_field(3).small_value() as u64,
                })
            }
            Subtag::Match => {
                let u = Self::whole(word.term_field(1));
                let pos = word.term_field(2).small_value() as u64;
                Some(BitsView {
                    data: u.data,
                    bit_offset: pos,
                    bit_size: word.term_field(3).small_value() as u64 - pos,
                })
            }
            _ => None,
        }
    }
    /// The view of a `HeapBits` or `RefcBits`.
    #[inline]
    pub fn whole(word: Word) -> BitsView {
        if word.header().subtag() == Subtag::HeapBits {
            BitsView {
                // SAFETY: the data follow header and size.
                data: unsafe { word.ptr().add(2) }.cast(),
                bit_offset: 0,
                bit_size: word.field(1),
            }
        } else {
            debug_assert_eq!(word.header().subtag(), Subtag::RefcBits);
            BitsView {
                data: word.field(3) as usize as *const u8,
                bit_offset: 0,
                bit_size: word.field(4),
            }
        }
    }
    /// A view of bytes.
    pub fn of_bytes(bytes: &[u8]) -> BitsView {
        BitsView {
            data: bytes.as_ptr(),
            bit_offset: 0,
            bit_size: bytes.len() as u64 * 8,
        }
    }
    /// Whether the size is a whole number of bytes.
    #[inline]
    pub fn is_binary(&self) -> bool {
        self.bit_size & 7 == 0
    }
    /// Whole bytes in the view (a partial one at the end does not count).
    #[inline]
    pub fn byte_len(&self) -> usize {
        (self.bit_size >> 3) as usize
    }
    /// The part `at..at + size`, or `None` when it is not within the view.
    #[inline]
    pub fn part(&self, at: u64, size: u64) -> Option<BitsView> {
        if at.checked_add(size)? > self.bit_size {
            return None;
        }
        Some(BitsView {
            data: self.data,
            bit_offset: self.bit_offset + at,
            bit_size: size,
        })
    }
    /// The whole bytes without copying, when the first bit starts a byte and no partial byte ends
    /// the view.
    #[inline]
    pub fn as_bytes<'a>(&self) -> Option<&'a [u8]> {
        if (self.bit_offset | self.bit_size) & 7 != 0 {
            return None;
        }
        // SAFETY: the view's bits are readable as long as its term lives (crate contract).
        Some(unsafe {
            std::slice::from_raw_parts(
                self.data.add((self.bit_offset >> 3) as usize),
                self.byte_len(),
            )
        })
    }
    /// The bytes, borrowed when possible. The last byte of a bitstring that is no binary is
    /// padded with zero bits.
    pub fn to_bytes<'a>(&self) -> Cow<'a, [u8]> {
        if let Some(b) = self.as_bytes() {
            return Cow::Borrowed(b);
        }
        let mut v = vec![0u8; self.bit_size.div_ceil(8) as usize];
        // SAFETY: the vector has room for the bits.
        unsafe {
            raw::copy_bits(self.data, self.bit_offset, v.as_mut_ptr(), 0, self.bit_size);
        }
        Cow::Owned(v)
    }
    /// Byte `index`.
    #[inline]
    pub fn byte(&self, index: usize) -> u8 {
        debug_assert!(index < self.byte_len());
        self.get_bits(index as u64 * 8, 8) as u8
    }
    /// `size` bits (at most 64) at `pos` as an unsigned number. They must be within the view.
    #[inline]
    pub fn get_bits(&self, pos: u64, size: u64) -> u64 {
        debug_assert!(pos + size <= self.bit_size);
        // SAFETY: within the view.
        unsafe { raw::read_bits(self.data, self.bit_offset + pos, size) }
    }
    /// An integer segment of at most 64 bits, sign extended when `signed`; the caller checked
    /// that it is within the view.
    #[inline]
    pub fn get_small(&self, pos: u64, size: u64, signed: bool, little: bool) -> u64 {
        let mut v = self.get_bits(pos, size);
        if little && size > 8 {
            // Whole bytes come lowest first; the rest is the top of the number, in the last byte.
            let rest = size & 7;
            let whole = size - rest;
            let top = if rest == 0 { 0 } else { v & ((1 << rest) - 1) };
            let low = if whole == 0 {
                0
            } else {
                (v >> rest).swap_bytes() >> (64 - whole)
            };
            v = if whole == 64 { low } else { top << whole | low };
        }
        if signed && size > 0 && size < 64 && v >> (size - 1) & 1 == 1 {
            v |= u64::MAX << size;
        }
        v
    }
    /// An integer segment of any size; `None` when it is not within the view.
    pub fn get_integer(
        &self,
        alloc: &mut impl Alloc,
        pos: u64,
        size: u64,
        signed: bool,
        little: bool,
    ) -> Option<Word> {
        if pos.checked_add(size)? > self.bit_size {
            return None;
        }
        if size <= 64 {
            let v = self.get_small(pos, size, signed, little);
            return Some(if signed {
                alloc.integer(v as i64)
            } else {
                alloc.unsigned(v)
            });
        }
        let mut limbs = self.limbs(pos, size, little);
        let negative = signed && {
            let top = size - 1;
            limbs[(top / 64) as usize] >> (top % 64) & 1 == 1
        };
        if negative {
            // Sign extend the top limb, then negate.
            if !size.is_multiple_of(64)
                && let Some(l) = limbs.last_mut()
            {
                *l |= u64::MAX << (size % 64);
            }
            let mut carry = true;
            for l in &mut limbs {
                let (v, c) = (!*l).overflowing_add(u64::from(carry));
                *l = v;
                carry = c;
            }
        }
        Some(alloc.big(negative, &limbs))
    }
    /// The segment as unsigned limbs, least significant first; the caller checked the range.
    pub fn limbs(&self, pos: u64, size: u64, little: bool) -> Vec<u64> {
        let n = size.div_ceil(64) as usize;
        let mut limbs = Vec::with_capacity(n);
        let mut done = 0;
        while done < size {
            let k = (size - done).min(64);
            limbs.push(if little {
                self.get_small(pos + done, k, false, true)
            } else {
                self.get_bits(pos + size - done - k, k)
            });
            done += k;
        }
        limbs
    }
    /// A float segment of 16, 32 or 64 bits. `None` when out of range, of another size, or not a
    /// finite number.
    pub fn get_float(&self, pos: u64, size: u64, little: bool) -> Option<f64> {
        if !matches!(size, 16 | 32 | 64) || pos.checked_add(size)? > self.bit_size {
            return None;
        }
        let v = self.get_small(pos, size, false, little);
        let f = match size {
            16 => f16_to_f64(v as u16),
            32 => f64::from(f32::from_bits(v as u32)),
            _ => f64::from_bits(v),
        };
        f.is_finite().then_some(f)
    }
    /// A code point at `pos` and how many bits it took; `None` when there is no valid one.
    #[inline]
    pub fn get_utf(&self, pos: u64, utf: Utf) -> Option<(u32, u64)> {
        match utf {
            Utf::Utf8 => self.get_utf8(pos),
            Utf::Utf16 { little } => self.get_utf16(pos, little),
            Utf::Utf32 { little } => self.get_utf32(pos, little),
        }
    }
    /// A UTF-8 code point at `pos` and how many bits it took.
    #[inline]
    pub fn get_utf8(&self, pos: u64) -> Option<(u32, u64)> {
        let left = self.bit_size.checked_sub(pos)?;
        if left < 8 {
            return None;
        }
        let first = self.get_bits(pos, 8) as u32;
        if first < 0x80 {
            return Some((first, 8));
        }
        let (n, min, mut c) = match first {
            0xC2..=0xDF => (2u64, 0x80, first & 0x1F),
            0xE0..=0xEF => (3, 0x800, first & 0x0F),
            0xF0..=0xF4 => (4, 0x1_0000, first & 0x07),
            _ => return None,
        };
        if left < n * 8 {
            return None;
        }
        for i in 1..n {
            let b = self.get_bits(pos + i * 8, 8) as u32;
            if b & 0xC0 != 0x80 {
                return None;
            }
            c = c << 6 | b & 0x3F;
        }
        (c >= min && is_scalar(c)).then_some((c, n * 8))
    }
    /// A UTF-16 code point at `pos` and how many bits it took.
    pub fn get_utf16(&self, pos: u64, little: bool) -> Option<(u32, u64)> {
        let left = self.bit_size.checked_sub(pos)?;
        if left < 16 {
            return None;
        }
        let a = self.get_small(pos, 16, false, little) as u32;
        match a {
            0xD800..=0xDBFF if left >= 32 => {
                let b = self.get_small(pos + 16, 16, false, little) as u32;
                (0xDC00..=0xDFFF)
                    .contains(&b)
                    .then(|| (0x1_0000 + ((a & 0x3FF) << 10 | b & 0x3FF), 32))
            }
            0xD800..=0xDFFF => None,
            _ => Some((a, 16)),
        }
    }
    /// A UTF-32 code point at `pos` and how many bits it took.
    pub fn get_utf32(&self, pos: u64, little: bool) -> Option<(u32, u64)> {
        if self.bit_size.checked_sub(pos)? < 32 {
            return None;
        }
        let c = self.get_small(pos, 32, false, little) as u32;
        is_scalar(c).then_some((c, 32))
    }
    /// Whether two bitstrings are equal.
    #[inline]
    pub fn equals(&self, other: &BitsView) -> bool {
        self.bit_size == other.bit_size
            // SAFETY: both ranges are within their views.
            && unsafe {
                raw::equal_bits(self.data, self.bit_offset, other.data, other.bit_offset, self.bit_size)
            }
    }
    /// Term order: the first difference decides, else the shorter one is less.
    pub fn compare(&self, other: &BitsView) -> Ordering {
        let n = self.bit_size.min(other.bit_size);
        // SAFETY: both ranges are within their views.
        unsafe { raw::compare_bits(self.data, self.bit_offset, other.data, other.bit_offset, n) }
            .then(self.bit_size.cmp(&other.bit_size))
    }
    /// Copies all bits to `dst_off` bits after `dst`.
    ///
    /// # Safety
    /// The destination bits are writable, their bytes initialised, and they do not overlap the view.
    #[inline]
    pub unsafe fn copy_to(&self, dst: *mut u8, dst_off: u64) {
        raw::copy_bits(self.data, self.bit_offset, dst, dst_off, self.bit_size);
    }
}
