//! Shifts, and bitwise operations with the meaning of two's complement of unbounded length.

use super::kernel;

/// How many limbs the result of a bitwise operation can have.
#[inline]
pub fn bitwise_len(a: &[u64], b: &[u64]) -> usize {
    a.len().max(b.len()) + 1
}

/// An operand of a bitwise operation: sign and trimmed magnitude.
#[derive(Clone, Copy, Debug)]
pub struct Bitwise<'a> {
    /// Below zero.
    pub negative: bool,
    /// The absolute value.
    pub magnitude: &'a [u64],
}

#[inline(always)]
fn combine(out: &mut [u64], a: Bitwise<'_>, b: Bitwise<'_>, f: impl Fn(u64, u64) -> u64) -> bool {
    debug_assert!(out.len() >= bitwise_len(a.magnitude, b.magnitude));
    let mask = |negative: bool| if negative { u64::MAX } else { 0 };
    let (mask_a, mask_b) = (mask(a.negative), mask(b.negative));
    let mask_out = f(mask_a, mask_b);
    // -m is !(m - 1), limb by limb with a running borrow; the result goes back the same way.
    let (mut borrow_a, mut borrow_b, mut carry) = (a.negative, b.negative, mask_out != 0);
    let n = a.magnitude.len().min(b.magnitude.len());
    let (low, high) = out.split_at_mut(n);
    let mut step = |o: &mut u64, x: u64, y: u64| {
        let (x1, ba) = x.overflowing_sub(u64::from(borrow_a));
        let (y1, bb) = y.overflowing_sub(u64::from(borrow_b));
        (borrow_a, borrow_b) = (ba, bb);
        let (r, c) = (f(x1 ^ mask_a, y1 ^ mask_b) ^ mask_out).overflowing_add(u64::from(carry));
        carry = c;
        *o = r;
    };
    for ((o, x), y) in low.iter_mut().zip(a.magnitude).zip(b.magnitude) {
        step(o, *x, *y);
    }
    for (i, o) in high.iter_mut().enumerate() {
        let x = a.magnitude.get(n + i).copied().unwrap_or(0);
        let y = b.magnitude.get(n + i).copied().unwrap_or(0);
        step(o, x, y);
    }
    mask_out != 0
}

/// `a band b` into `out` (at least [`bitwise_len`] limbs). Returns whether it is negative.
pub fn and(out: &mut [u64], a: Bitwise<'_>, b: Bitwise<'_>) -> bool {
    combine(out, a, b, |x, y| x & y)
}

/// `a bor b` into `out` (at least [`bitwise_len`] limbs). Returns whether it is negative.
pub fn or(out: &mut [u64], a: Bitwise<'_>, b: Bitwise<'_>) -> bool {
    combine(out, a, b, |x, y| x | y)
}

/// `a bxor b` into `out` (at least [`bitwise_len`] limbs). Returns whether it is negative.
pub fn xor(out: &mut [u64], a: Bitwise<'_>, b: Bitwise<'_>) -> bool {
    combine(out, a, b, |x, y| x ^ y)
}

/// `out = a << bits`; `out` has `a.len() + bits / 64 + 1` limbs.
pub fn shift_left(out: &mut [u64], a: &[u64], bits: u64) {
    let limbs = (bits / 64) as usize;
    let (low, high) = out.split_at_mut(limbs);
    low.fill(0);
    let n = a.len();
    high[n] = kernel::shl_bits(&mut high[..n], a, (bits % 64) as u32);
}

/// How many limbs [`shift_right`] writes.
pub fn shift_right_len(a: &[u64], bits: u64) -> usize {
    a.len() - (bits / 64).min(a.len() as u64) as usize + 1
}

/// `out = a >> bits`, rounding a negative number down as two's complement does;
/// `out` has [`shift_right_len`] limbs.
pub fn shift_right(out: &mut [u64], a: &[u64], bits: u64, negative: bool) {
    let limbs = (bits / 64).min(a.len() as u64) as usize;
    let (lost, kept) = a.split_at(limbs);
    let n = kept.len();
    out[n..].fill(0);
    let shift = (bits % 64) as u32;
    kernel::shr_bits(&mut out[..n], kept, shift);
    if negative {
        let partial = if limbs < a.len() {
            kept[0] & ((1 << shift) - 1) != 0
        } else {
            false
        };
        if partial || lost.iter().any(|x| *x != 0) {
            kernel::increment(out);
        }
    }
}
