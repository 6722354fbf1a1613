//! Magnitudes as digits of a base from 2 to 36, subquadratic for long ones.

use super::div::div_rem;
use super::kernel::{add_assign, div_limb_assign, mul_limb_assign, trim};
use super::mul::mul;

/// Up to this many limbs digits are taken off one limb's worth at a time.
const DIRECT: usize = 24;
/// Up to this many limb's worths of digits are read one after the other.
const DIRECT_READ: usize = 64;

const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The largest power of `base` that fits a limb, and its exponent.
fn chunk(base: u32) -> (u64, usize) {
    let base = u64::from(base);
    let (mut power, mut n) = (base, 1);
    while let Some(next) = power.checked_mul(base) {
        power = next;
        n += 1;
    }
    (power, n)
}

/// An upper bound of the number of digits of a magnitude of `limbs` limbs.
pub fn digits_len_bound(limbs: usize, base: u32) -> usize {
    (limbs as f64 * 64.0 / f64::from(base).log2()) as usize + 2
}

/// `chunk`, `chunk^2`, `chunk^4`, ... as long as the last one has at most `limbs` limbs.
fn powers(base_chunk: u64, limbs: usize) -> Vec<Vec<u64>> {
    let mut all = vec![vec![base_chunk]];
    loop {
        let Some(last) = all.last() else { return all };
        if last.len() * 2 - 1 > limbs {
            return all;
        }
        let mut next = vec![0; last.len() * 2];
        mul(&mut next, last, last);
        let n = trim(&next).len();
        next.truncate(n);
        all.push(next);
    }
}

/// Appends the digits of `a` (upper case), at least `min_digits` of them, the rest zeros in front.
pub fn to_digits(out: &mut Vec<u8>, a: &[u64], base: u32, min_digits: usize) {
    debug_assert!((2..=36).contains(&base));
    let a = trim(a);
    if base.is_power_of_two() {
        power_of_two(out, a, base.trailing_zeros(), min_digits);
        return;
    }
    let (power, n) = chunk(base);
    if a.len() <= DIRECT {
        direct(out, a, base, power, n, min_digits);
        return;
    }
    out.reserve(digits_len_bound(a.len(), base));
    let powers = powers(power, a.len().div_ceil(2));
    divide(out, a, base, n, &powers, min_digits);
}

fn divide(
    out: &mut Vec<u8>,
    a: &[u64],
    base: u32,
    n: usize,
    powers: &[Vec<u64>],
    min_digits: usize,
) {
    let a = trim(a);
    let mut level = powers.len();
    if a.len() <= DIRECT {
        direct(out, a, base, powers[0][0], n, min_digits);
        return;
    }
    // The highest power of at most half the length, so that both halves shrink.
    while level > 1 && powers[level - 1].len() * 2 > a.len() + 1 {
        level -= 1;
    }
    let p = &powers[level - 1];
    let mut work = vec![0; a.len() + 1];
    let (q, r) = work.split_at_mut(a.len() - p.len() + 1);
    div_rem(q, r, a, p);
    let low_digits = n << (level - 1);
    divide(
        out,
        q,
        base,
        n,
        powers,
        min_digits.saturating_sub(low_digits),
    );
    divide(out, r, base, n, powers, low_digits);
}

fn direct(out: &mut Vec<u8>, a: &[u64], base: u32, power: u64, n: usize, min_digits: usize) {
    let mut limbs = [0u64; DIRECT];
    let mut len = a.len();
    limbs[..len].copy_from_slice(a);
    // The least significant digit first, turned round at the end.
    let start = out.len();
    while len > 1 {
        let mut low = div_limb_assign(&mut limbs[..len], power);
        while len > 0 && limbs[len - 1] == 0 {
            len -= 1;
        }
        for _ in 0..n {
            out.push(digit(&mut low, base));
        }
    }
    let mut rest = if len == 1 { limbs[0] } else { 0 };
    while rest != 0 {
        out.push(digit(&mut rest, base));
    }
    while out.len() - start < min_digits {
        out.push(b'0');
    }
    out[start..].reverse();
}

#[inline(always)]
fn digit(v: &mut u64, base: u32) -> u8 {
    // The usual base as a constant, so that the division is a multiplication.
    let d = if base == 10 {
        let d = *v % 10;
        *v /= 10;
        d
    } else {
        let base = u64::from(base);
        let d = *v % base;
        *v /= base;
        d
    };
    DIGITS[d as usize]
}

fn power_of_two(out: &mut Vec<u8>, a: &[u64], bits: u32, min_digits: usize) {
    let total = super::kernel::bit_length(a);
    let digits = total.div_ceil(u64::from(bits)) as usize;
    for _ in digits..min_digits {
        out.push(b'0');
    }
    let mask = (1u64 << bits) - 1;
    for i in (0..digits as u64).rev() {
        let at = i * u64::from(bits);
        let (limb, shift) = ((at / 64) as usize, (at % 64) as u32);
        let mut v = a[limb] >> shift;
        if shift + bits > 64 && limb + 1 < a.len() {
            v |= a[limb + 1] << (64 - shift);
        }
        out.push(DIGITS[(v & mask) as usize]);
    }
}

/// The magnitude of a row of digit values (each below `base`, most significant first), trimmed.
pub fn from_digits(digits: &[u8], base: u32) -> Vec<u64> {
    debug_assert!((2..=36).contains(&base));
    let zeros = digits.iter().take_while(|d| **d == 0).count();
    let digits = &digits[zeros..];
    if base.is_power_of_two() {
        return read_power_of_two(digits, base.trailing_zeros());
    }
    let (power, n) = chunk(base);
    if digits.len() <= n * DIRECT_READ {
        return read_direct(digits, base, power, n);
    }
    let powers = powers(power, digits.len().div_ceil(n).div_ceil(2));
    read(digits, base, n, &powers)
}

fn read(digits: &[u8], base: u32, n: usize, powers: &[Vec<u64>]) -> Vec<u64> {
    if digits.len() <= n * DIRECT_READ {
        return read_direct(digits, base, powers[0][0], n);
    }
    let mut level = powers.len();
    while level > 1 && n << (level - 1) >= digits.len() {
        level -= 1;
    }
    let (high, low) = digits.split_at(digits.len() - (n << (level - 1)));
    let high = read(high, base, n, powers);
    let low = read(low, base, n, powers);
    let p = &powers[level - 1];
    let mut out = vec![0; high.len() + p.len()];
    mul(&mut out, &high, p);
    if !low.is_empty() {
        if out.len() < low.len() {
            out.resize(low.len(), 0);
        }
        // The low part is below the power, so nothing is carried out of a product that is not
        // zero; a zero high part leaves room by itself.
        add_assign(&mut out, &low);
    }
    let len = trim(&out).len();
    out.truncate(len);
    out
}

fn read_direct(digits: &[u8], base: u32, power: u64, n: usize) -> Vec<u64> {
    let mut limbs: Vec<u64> = Vec::with_capacity(digits.len() / n + 1);
    let first = digits.len() % n;
    let (head, tail) = digits.split_at(first);
    let value = |part: &[u8]| {
        part.iter()
            .fold(0u64, |a, d| a * u64::from(base) + u64::from(*d))
    };
    let v = value(head);
    if v != 0 {
        limbs.push(v);
    }
    for part in tail.chunks_exact(n) {
        let carry = mul_limb_assign(&mut limbs, power, value(part));
        if carry != 0 {
            limbs.push(carry);
        }
    }
    limbs
}

fn read_power_of_two(digits: &[u8], bits: u32) -> Vec<u64> {
    let mut limbs = vec![0u64; (digits.len() as u64 * u64::from(bits)).div_ceil(64) as usize];
    for (i, d) in digits.iter().rev().enumerate() {
        let at = i as u64 * u64::from(bits);
        let (limb, shift) = ((at / 64) as usize, (at % 64) as u32);
        limbs[limb] |= u64::from(*d) << shift;
        if shift + bits > 64 && limb + 1 < limbs.len() {
            limbs[limb + 1] |= u64::from(*d) >> (64 - shift);
        }
    }
    let len = trim(&limbs).len();
    limbs.truncate(len);
    limbs
}
