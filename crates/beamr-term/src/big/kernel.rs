//! Linear kernels: compare, add, subtract, multiply by a limb, shift by less than a limb.

use std::cmp::Ordering;

#[cfg(target_arch = "x86_64")]
use super::x86;

/// From this length on the x86-64 kernels pay.
#[cfg(target_arch = "x86_64")]
const GROUPED: usize = 8;

/// The magnitude without high zero limbs.
#[inline]
pub fn trim(a: &[u64]) -> &[u64] {
    let mut n = a.len();
    while n > 0 && a[n - 1] == 0 {
        n -= 1;
    }
    &a[..n]
}

/// How many bits a trimmed magnitude has.
#[inline]
pub fn bit_length(a: &[u64]) -> u64 {
    match a.last() {
        None => 0,
        Some(top) => a.len() as u64 * 64 - u64::from(top.leading_zeros()),
    }
}

/// Order of two trimmed magnitudes.
#[inline]
pub fn compare(a: &[u64], b: &[u64]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

/// How many limbs the grouped kernel does, given the shortest operand's length.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn grouped(n: usize) -> usize {
    if n >= GROUPED { n & !3 } else { 0 }
}

/// `out = a + b` of one length with a carry in.
#[inline(always)]
fn add_equal(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    let n = out.len();
    assert!(a.len() == n && b.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, false);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice.
        carry = unsafe { x86::add(out.as_mut_ptr(), a.as_ptr(), b.as_ptr(), done / 4) };
    }
    for i in done..n {
        (out[i], carry) = a[i].carrying_add(b[i], carry);
    }
    carry
}

/// `a += b` of one length.
#[inline(always)]
fn add_assign_equal(a: &mut [u64], b: &[u64]) -> bool {
    let n = a.len();
    assert!(b.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, false);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice; output and first operand
        // are the same.
        carry = unsafe { x86::add(a.as_mut_ptr(), a.as_ptr(), b.as_ptr(), done / 4) };
    }
    for i in done..n {
        (a[i], carry) = a[i].carrying_add(b[i], carry);
    }
    carry
}

/// `out = a - b` of one length.
#[inline(always)]
fn sub_equal(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    let n = out.len();
    assert!(a.len() == n && b.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut borrow) = (0, false);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice.
        borrow = unsafe { x86::sub(out.as_mut_ptr(), a.as_ptr(), b.as_ptr(), done / 4) };
    }
    for i in done..n {
        (out[i], borrow) = a[i].borrowing_sub(b[i], borrow);
    }
    borrow
}

/// `a -= b` of one length.
#[inline(always)]
fn sub_assign_equal(a: &mut [u64], b: &[u64]) -> bool {
    let n = a.len();
    assert!(b.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut borrow) = (0, false);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice; output and first operand
        // are the same.
        borrow = unsafe { x86::sub(a.as_mut_ptr(), a.as_ptr(), b.as_ptr(), done / 4) };
    }
    for i in done..n {
        (a[i], borrow) = a[i].borrowing_sub(b[i], borrow);
    }
    borrow
}

/// `out = a + b`, where `a` is the longer one and `out` has its length. Returns the carry.
#[inline]
pub fn add_carry(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    debug_assert!(a.len() >= b.len() && out.len() == a.len());
    let (out_low, out_high) = out.split_at_mut(b.len());
    let (a_low, a_high) = a.split_at(b.len());
    let mut carry = add_equal(out_low, a_low, b);
    let mut i = 0;
    while carry && i < a_high.len() {
        (out_high[i], carry) = a_high[i].overflowing_add(1);
        i += 1;
    }
    out_high[i..].copy_from_slice(&a_high[i..]);
    carry
}

/// `out = a - b`, where `a` is the longer one and `out` has its length. Returns the borrow.
#[inline]
pub fn sub_borrow(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    debug_assert!(a.len() >= b.len() && out.len() == a.len());
    let (out_low, out_high) = out.split_at_mut(b.len());
    let (a_low, a_high) = a.split_at(b.len());
    let mut borrow = sub_equal(out_low, a_low, b);
    let mut i = 0;
    while borrow && i < a_high.len() {
        (out_high[i], borrow) = a_high[i].overflowing_sub(1);
        i += 1;
    }
    out_high[i..].copy_from_slice(&a_high[i..]);
    borrow
}

/// `a += b` in place; `a` is at least as long. Returns the carry.
#[inline]
pub fn add_assign(a: &mut [u64], b: &[u64]) -> bool {
    let (low, high) = a.split_at_mut(b.len());
    add_assign_equal(low, b) && increment(high)
}

/// `a -= b` in place; `a` is at least as long. Returns the borrow.
#[inline]
pub fn sub_assign(a: &mut [u64], b: &[u64]) -> bool {
    let (low, high) = a.split_at_mut(b.len());
    sub_assign_equal(low, b) && decrement(high)
}

/// `a += 1`. Returns the carry (true for the empty slice).
#[inline]
pub fn increment(a: &mut [u64]) -> bool {
    for x in a {
        let carry;
        (*x, carry) = x.overflowing_add(1);
        if !carry {
            return false;
        }
    }
    true
}

/// `a -= 1`. Returns the borrow (true for the empty slice).
#[inline]
pub fn decrement(a: &mut [u64]) -> bool {
    for x in a {
        let borrow;
        (*x, borrow) = x.overflowing_sub(1);
        if !borrow {
            return false;
        }
    }
    true
}

/// `out = a + b` in any order of lengths; `out` has one limb more than the longer one.
pub fn add(out: &mut [u64], a: &[u64], b: &[u64]) {
    let (a, b) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let n = a.len();
    debug_assert_eq!(out.len(), n + 1);
    let carry = add_carry(&mut out[..n], a, b);
    out[n] = u64::from(carry);
}

/// `out = |a - b|`; `out` has the length of the longer one. Returns the order of `a` and `b`.
pub fn sub(out: &mut [u64], a: &[u64], b: &[u64]) -> Ordering {
    let order = compare(a, b);
    match order {
        Ordering::Less => sub_borrow(out, b, a),
        Ordering::Equal => {
            out.fill(0);
            false
        }
        Ordering::Greater => sub_borrow(out, a, b),
    };
    order
}

/// `out = a * b + add`; `out` has the length of `a`. Returns the high limb.
#[inline]
pub fn mul_limb(out: &mut [u64], a: &[u64], b: u64, add: u64) -> u64 {
    let n = out.len();
    assert!(a.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, add);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 && x86::has_adx() {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice.
        carry = unsafe { x86::mul(out.as_mut_ptr(), a.as_ptr(), b, add, done / 4) };
    }
    for i in done..n {
        (out[i], carry) = a[i].carrying_mul(b, carry);
    }
    carry
}

/// `a = a * b + add` in place. Returns the high limb.
#[inline]
pub fn mul_limb_assign(a: &mut [u64], b: u64, add: u64) -> u64 {
    let n = a.len();
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, add);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 && x86::has_adx() {
        done = grouped(n);
        let a = a.as_mut_ptr();
        // SAFETY: `done` limbs, a multiple of four, lie in the slice; output and operand are the
        // same.
        carry = unsafe { x86::mul(a, a, b, add, done / 4) };
    }
    for x in &mut a[done..n] {
        (*x, carry) = x.carrying_mul(b, carry);
    }
    carry
}

/// `out += a * b`; `out` has the length of `a`. Returns the high limb.
#[inline]
pub fn add_mul_limb(out: &mut [u64], a: &[u64], b: u64) -> u64 {
    let n = out.len();
    assert!(a.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 && x86::has_adx() {
        done = grouped(n);
        // SAFETY: `done` limbs, a multiple of four, lie in each slice.
        carry = unsafe { x86::add_mul(out.as_mut_ptr(), a.as_ptr(), b, 0, done / 4) };
    }
    for i in done..n {
        (out[i], carry) = a[i].carrying_mul_add(b, out[i], carry);
    }
    carry
}

/// `out = u - v * q`, all of one length. Returns what is still to be subtracted above.
#[inline]
pub fn sub_mul_limb_into(out: &mut [u64], u: &[u64], v: &[u64], q: u64) -> u64 {
    let n = out.len();
    assert!(u.len() == n && v.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 && x86::has_adx() {
        done = grouped(n);
        let (o, u, v) = (out.as_mut_ptr(), u.as_ptr(), v.as_ptr());
        // SAFETY: `done` limbs, a multiple of four, lie in each slice.
        carry = unsafe { x86::sub_mul(o, u, v, q, 0, done / 4) };
    }
    for i in done..n {
        (out[i], carry) = sub_mul_step(u[i], v[i], q, carry);
    }
    carry
}

#[inline(always)]
fn sub_mul_step(u: u64, v: u64, q: u64, carry: u64) -> (u64, u64) {
    let (low, high) = v.carrying_mul(q, carry);
    let (limb, borrow) = u.overflowing_sub(low);
    (limb, high + u64::from(borrow))
}

/// `u -= v * q`, of one length. Returns what is still to be subtracted above.
#[inline]
pub fn sub_mul_limb(u: &mut [u64], v: &[u64], q: u64) -> u64 {
    let n = u.len();
    assert!(v.len() == n);
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let (mut done, mut carry) = (0, 0);
    #[cfg(target_arch = "x86_64")]
    if grouped(n) > 0 && x86::has_adx() {
        done = grouped(n);
        let (u, v) = (u.as_mut_ptr(), v.as_ptr());
        // SAFETY: `done` limbs, a multiple of four, lie in each slice; output and first operand
        // are the same.
        carry = unsafe { x86::sub_mul(u, u, v, q, 0, done / 4) };
    }
    for i in done..n {
        (u[i], carry) = sub_mul_step(u[i], v[i], q, carry);
    }
    carry
}

/// `out = a << shift` for a shift below 64; `out` has the length of `a`. Returns the limb above.
#[inline]
pub fn shl_bits(out: &mut [u64], a: &[u64], shift: u32) -> u64 {
    debug_assert!(shift < 64 && out.len() == a.len());
    if shift == 0 {
        out.copy_from_slice(a);
        return 0;
    }
    let mut low = 0;
    for (o, x) in out.iter_mut().zip(a) {
        *o = *x << shift | low;
        low = *x >> (64 - shift);
    }
    low
}

/// `out = a >> shift` for a shift below 64; `out` has the length of `a`.
#[inline]
pub fn shr_bits(out: &mut [u64], a: &[u64], shift: u32) {
    debug_assert!(shift < 64 && out.len() == a.len());
    if shift == 0 {
        out.copy_from_slice(a);
        return;
    }
    for i in 0..a.len() {
        let high = if i + 1 < a.len() { a[i + 1] } else { 0 };
        out[i] = a[i] >> shift | high << (64 - shift);
    }
}

/// `a >>= shift` in place for a shift below 64.
#[inline]
pub fn shr_bits_assign(a: &mut [u64], shift: u32) {
    debug_assert!(shift < 64);
    if shift == 0 {
        return;
    }
    let mut high = 0;
    for x in a.iter_mut().rev() {
        let v = *x;
        *x = v >> shift | high;
        high = v << (64 - shift);
    }
}

/// Two limbs by one; `high < d`. Quotient and remainder.
#[inline(always)]
pub fn div_limbs(high: u64, low: u64, d: u64) -> (u64, u64) {
    debug_assert!(high < d);
    #[cfg(target_arch = "x86_64")]
    {
        let (q, r);
        // SAFETY: `high < d`, so that the quotient fits a register and the instruction cannot fault.
        unsafe {
            std::arch::asm!(
                "div {d}",
                d = in(reg) d,
                inlateout("rax") low => q,
                inlateout("rdx") high => r,
                options(pure, nomem, nostack)
            );
        }
        (q, r)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let n = u128::from(high) << 64 | u128::from(low);
        ((n / u128::from(d)) as u64, (n % u128::from(d)) as u64)
    }
}

/// A divisor of one limb with its high bit set and its reciprocal (Möller and Granlund,
/// "Improved division by invariant integers", 2011).
#[derive(Clone, Copy, Debug)]
pub struct Reciprocal {
    d: u64,
    v: u64,
}

impl Reciprocal {
    /// For a normalised `d` (high bit set).
    #[inline]
    pub fn new(d: u64) -> Reciprocal {
        debug_assert!(d >> 63 == 1);
        Reciprocal {
            d,
            v: div_limbs(!d, u64::MAX, d).0,
        }
    }
    /// Quotient and remainder of two limbs; `high < d`.
    #[inline(always)]
    pub fn div(self, high: u64, low: u64) -> (u64, u64) {
        let q = u128::from(self.v) * u128::from(high) + (u128::from(high) << 64 | u128::from(low));
        let mut q1 = ((q >> 64) as u64).wrapping_add(1);
        let mut r = low.wrapping_sub(q1.wrapping_mul(self.d));
        if r > q as u64 {
            q1 = q1.wrapping_sub(1);
            r = r.wrapping_add(self.d);
        }
        if r >= self.d {
            q1 = q1.wrapping_add(1);
            r -= self.d;
        }
        (q1, r)
    }
}

/// `out = a / d`, of one length; `d` is not zero. Returns the remainder.
pub fn div_limb(out: &mut [u64], a: &[u64], d: u64) -> u64 {
    debug_assert_eq!(out.len(), a.len());
    let n = a.len();
    if n <= 2 {
        let mut r = 0;
        for i in (0..n).rev() {
            (out[i], r) = div_limbs(r, a[i], d);
        }
        return r;
    }
    let shift = d.leading_zeros();
    let inverse = Reciprocal::new(d << shift);
    if shift == 0 {
        let mut r = 0;
        for i in (0..n).rev() {
            (out[i], r) = inverse.div(r, a[i]);
        }
        return r;
    }
    let mut r = a[n - 1] >> (64 - shift);
    for i in (0..n).rev() {
        let below = if i > 0 { a[i - 1] >> (64 - shift) } else { 0 };
        (out[i], r) = inverse.div(r, a[i] << shift | below);
    }
    r >> shift
}

/// `a /= d` in place. Returns the remainder.
pub fn div_limb_assign(a: &mut [u64], d: u64) -> u64 {
    let shift = d.leading_zeros();
    let inverse = Reciprocal::new(d << shift);
    let n = a.len();
    if n == 0 {
        return 0;
    }
    let mut r = if shift == 0 {
        0
    } else {
        a[n - 1] >> (64 - shift)
    };
    for i in (0..n).rev() {
        let below = if i > 0 && shift > 0 {
            a[i - 1] >> (64 - shift)
        } else {
            0
        };
        (a[i], r) = inverse.div(r, a[i] << shift | below);
    }
    r >> shift
}

/// `a mod d`.
pub fn rem_limb(a: &[u64], d: u64) -> u64 {
    let n = a.len();
    if n == 0 {
        return 0;
    }
    let shift = d.leading_zeros();
    let inverse = Reciprocal::new(d << shift);
    let mut r = if shift == 0 {
        0
    } else {
        a[n - 1] >> (64 - shift)
    };
    for i in (0..n).rev() {
        let below = if i > 0 && shift > 0 {
            a[i - 1] >> (64 - shift)
        } else {
            0
        };
        r = inverse.div(r, a[i] << shift | below).1;
    }
    r >> shift
}
