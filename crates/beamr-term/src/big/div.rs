//! Division: Knuth's algorithm D for short operands, recursive (Burnikel and Ziegler; Brent and
//! Zimmermann, "Modern Computer Arithmetic", 1.8 and 1.9) from [`RECURSIVE`] limbs, and a direct
//! way when the quotient is known to fit one limb.

use super::kernel::{
    Reciprocal, add_assign, decrement, div_limb, div_limbs, shl_bits, shr_bits, sub_assign,
    sub_mul_limb, sub_mul_limb_into,
};
use super::mul::mul;

/// Divisors and quotients of at least this many limbs are divided recursively.
const RECURSIVE: usize = 48;
/// Operands of together fewer limbs than this need no allocation.
const INLINE: usize = 40;

/// `q = a / b` and `r = a mod b`: `a` at least as long as `b`, `b` trimmed and not zero,
/// `q` of `a.len() - b.len() + 1` limbs, `r` of `b.len()`.
pub fn div_rem(q: &mut [u64], r: &mut [u64], a: &[u64], b: &[u64]) {
    let (n, m) = (a.len(), b.len());
    debug_assert!(n >= m && m > 0 && q.len() == n - m + 1 && r.len() == m);
    if m == 1 {
        r[0] = div_limb(q, a, b[0]);
        return;
    }
    // Room for the normalised operands: in place for short ones, freed on return for long ones.
    if n < INLINE - m.min(INLINE) {
        let mut work = [0; INLINE];
        normalised(q, r, a, b, &mut work[..n + 1 + m]);
    } else {
        normalised(q, r, a, b, &mut vec![0; n + 1 + m]);
    }
}

/// Division of at least two limbs; `work` has room for both operands and one limb more.
fn normalised(q: &mut [u64], r: &mut [u64], a: &[u64], b: &[u64], work: &mut [u64]) {
    let (n, m) = (a.len(), b.len());
    let shift = b[m - 1].leading_zeros();
    let (u, v) = work.split_at_mut(n + 1);
    shl_bits(v, b, shift);
    u[n] = shl_bits(&mut u[..n], a, shift);
    let inverse = Reciprocal::new(v[m - 1]);
    if m < RECURSIVE || n - m < RECURSIVE {
        rows(q, u, v, inverse);
    } else {
        blocks(q, u, v, inverse);
    }
    shr_bits(r, &u[..m], shift);
}

/// Algorithm D: `u` (`q.len()` limbs longer than `v`) becomes the remainder. The high `v.len()`
/// limbs of `u` are below `v`.
fn rows(q: &mut [u64], u: &mut [u64], v: &[u64], inverse: Reciprocal) {
    let m = v.len();
    debug_assert_eq!(u.len(), q.len() + m);
    let (v1, v0) = (v[m - 1], v[m - 2]);
    for j in (0..q.len()).rev() {
        let (u2, u1, u0) = (u[j + m], u[j + m - 1], u[j + m - 2]);
        let (mut digit, mut rest, mut fits);
        if u2 >= v1 {
            digit = u64::MAX;
            (rest, fits) = u1.overflowing_add(v1);
            fits = !fits;
        } else {
            (digit, rest) = inverse.div(u2, u1);
            fits = true;
        }
        while fits && u128::from(digit) * u128::from(v0) > (u128::from(rest) << 64 | u128::from(u0))
        {
            digit -= 1;
            let over;
            (rest, over) = rest.overflowing_add(v1);
            fits = !over;
        }
        let above = sub_mul_limb(&mut u[j..j + m], v, digit);
        let (top, below_zero) = u2.overflowing_sub(above);
        u[j + m] = top;
        if below_zero {
            digit -= 1;
            let carry = add_assign(&mut u[j..j + m], v);
            u[j + m] = u[j + m].wrapping_add(u64::from(carry));
        }
        q[j] = digit;
    }
}

/// Quotients longer than the divisor, a divisor's length at a time. As in [`rows`] the high
/// limbs of `u` are below `v`.
fn blocks(q: &mut [u64], u: &mut [u64], v: &[u64], inverse: Reciprocal) {
    let m = v.len();
    let mut left = q.len();
    while left > m {
        let from = left - m;
        recursive(&mut q[from..left], &mut u[from..left + m], v, inverse);
        left = from;
    }
    recursive(&mut q[..left], &mut u[..left + m], v, inverse);
}

/// Divides `u` (`q.len() + v.len()` limbs) by `v`, where `q` is not longer than `v`; `u` becomes
/// the remainder. Returns the limb of the quotient above `q` (0 or 1).
fn recursive(q: &mut [u64], u: &mut [u64], v: &[u64], inverse: Reciprocal) -> u64 {
    let (m, n) = (q.len(), v.len());
    debug_assert!(m <= n && u.len() == n + m);
    if m < RECURSIVE {
        // `rows` wants the high limbs below `v`.
        let mut over = 0;
        if super::kernel::compare(&u[m..], v) != std::cmp::Ordering::Less {
            sub_assign(&mut u[m..], v);
            over = 1;
        }
        rows(q, u, v, inverse);
        return over;
    }
    let k = m / 2;
    let (v0, v1) = v.split_at(k);
    let (q0, q1) = q.split_at_mut(k);
    let mut over = recursive(q1, &mut u[2 * k..], v1, inverse) as i64;
    over -= correct(q1, &mut u[k..n + k], v, v0, over as u64);
    let mut over_low = recursive(q0, &mut u[k..n + k], v1, inverse) as i64;
    over_low -= correct(q0, &mut u[..n], v, v0, over_low as u64);
    debug_assert_eq!(over_low, 0);
    over as u64
}

/// After a division by the high part of `v`: subtracts quotient times `v0` from `u` (as long as
/// `v`) and takes quotients back while that is below zero. Returns how often the quotient's limb
/// above `q` was borrowed from.
fn correct(q: &mut [u64], u: &mut [u64], v: &[u64], v0: &[u64], over: u64) -> i64 {
    let mut product = vec![0; q.len() + v0.len()];
    mul(&mut product, q, v0);
    // `u` stands for a number of n limbs plus, when the quotient overflowed, nothing above.
    let mut below = i64::from(sub_assign(u, &product));
    if over != 0 {
        below += i64::from(sub_assign(&mut u[q.len()..], v0));
    }
    let mut borrowed = 0;
    while below > 0 {
        borrowed += i64::from(decrement(q));
        below -= i64::from(add_assign(u, v));
    }
    borrowed
}

/// What the leading limbs say about a quotient.
struct Estimate {
    /// The quotient, or one more.
    q: u64,
    /// The quotient for sure.
    exact: bool,
}

/// The quotient of `a` by `b` from their leading limbs, when it fits one limb and `b` has at
/// least three.
fn estimate(a: &[u64], b: &[u64]) -> Option<Estimate> {
    let (n, m) = (a.len(), b.len());
    if m < 3 || n > m + 1 {
        return None;
    }
    if n < m {
        return Some(Estimate { q: 0, exact: true });
    }
    let shift = b[m - 1].leading_zeros();
    let join = |high: u64, low: u64| {
        if shift == 0 {
            high
        } else {
            high << shift | low >> (64 - shift)
        }
    };
    let top = if n > m { a[m] } else { 0 };
    if shift > 0 && top >> (64 - shift) != 0 {
        return None;
    }
    let (v1, v0) = (join(b[m - 1], b[m - 2]), join(b[m - 2], b[m - 3]));
    let (u2, u1, u0) = (
        join(top, a[m - 1]),
        join(a[m - 1], a[m - 2]),
        join(a[m - 2], a[m - 3]),
    );
    let v = u128::from(v1) << 64 | u128::from(v0);
    if u128::from(u2) << 64 | u128::from(u1) >= v {
        return None;
    }
    let (mut q, mut rest) = if u2 == v1 {
        (u64::MAX, u128::from(u1) + u128::from(v1))
    } else {
        let (q, r) = div_limbs(u2, u1, v1);
        (q, u128::from(r))
    };
    let mut product = u128::from(q) * u128::from(v0);
    while rest >> 64 == 0 && product > (rest << 64 | u128::from(u0)) {
        q -= 1;
        rest += u128::from(v1);
        product -= u128::from(v0);
    }
    // The remainder is below `v`, so the wrapping difference is the true one.
    let r = (rest << 64 | u128::from(u0)).wrapping_sub(product);
    Some(Estimate {
        q,
        exact: r >= u128::from(q),
    })
}

/// The quotient of two long numbers when their leading limbs alone decide it: no pass over the
/// operands. `None` says nothing.
pub fn quotient_is_small(a: &[u64], b: &[u64]) -> Option<u64> {
    match estimate(a, b) {
        Some(Estimate { q, exact: true }) => Some(q),
        _ => None,
    }
}

/// `out = a mod b` in one pass when the quotient fits one limb and `b` has at least three;
/// returns the quotient. `out` has the length of `b`, and `a` is not shorter. On `None` nothing
/// was written.
pub fn rem_small_quotient(out: &mut [u64], a: &[u64], b: &[u64]) -> Option<u64> {
    let Estimate { mut q, .. } = estimate(a, b)?;
    let m = b.len();
    debug_assert!(a.len() >= m && out.len() == m);
    let above = sub_mul_limb_into(out, &a[..m], b, q);
    let top = if a.len() > m { a[m] } else { 0 };
    if top < above {
        q -= 1;
        add_assign(out, b);
    }
    Some(q)
}
