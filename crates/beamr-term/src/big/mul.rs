//! Multiplication: rows for short operands, Karatsuba's method from [`KARATSUBA`] limbs,
//! transforms (`ntt`) from where they cost less ([`transform_pays`]).
//!
//! Long by short is cut into pieces of the short one's length. A square costs about two thirds
//! of a product.

use std::cmp::Ordering;

use super::kernel::{
    add_assign, add_carry, add_mul_limb, compare, mul_limb, sub_assign, sub_borrow, trim,
};
use super::ntt;

/// Operands of at least this many limbs are split.
const KARATSUBA: usize = 32;
/// Transforms are not considered below this length.
const TRANSFORM: usize = 3000;

/// `out = a * b`; `out` has `a.len() + b.len()` limbs. The operands need not be trimmed.
pub fn mul(out: &mut [u64], a: &[u64], b: &[u64]) {
    debug_assert_eq!(out.len(), a.len() + b.len());
    let (a, b) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let (n, m) = (a.len(), b.len());
    match m {
        0 => out.fill(0),
        1 => out[n] = mul_limb(&mut out[..n], a, b[0], 0),
        _ if std::ptr::eq(a, b) => {
            if n < KARATSUBA {
                square_rows(out, a);
            } else if transform_pays(n, n) {
                ntt::mul(out, a, None);
            } else {
                square_split(out, a, &mut vec![0; scratch_len(n)]);
            }
        }
        _ if m < KARATSUBA => rows(out, a, b),
        _ if transform_pays(n, m) => ntt::mul(out, a, Some(b)),
        _ if n == m => split(out, a, b, &mut vec![0; scratch_len(n)]),
        _ => pieces(out, a, b),
    }
}

/// Whether a transform of the power of two that the product needs costs less than Karatsuba's
/// method on pieces of `m` limbs. The factors are microseconds on the machine that they were measured
/// on; what matters is their ratio.
fn transform_pays(n: usize, m: usize) -> bool {
    if m < TRANSFORM {
        return false;
    }
    let size = (n + m - 1).next_power_of_two();
    let transform = 0.0169 * size as f64 * f64::from(size.trailing_zeros());
    let pieces = n.div_ceil(m) as f64;
    let split = 371.0 * pieces * (m as f64 / 1499.0).powf(1.585);
    transform < split
}

fn rows(out: &mut [u64], a: &[u64], b: &[u64]) {
    let n = a.len();
    out[n] = mul_limb(&mut out[..n], a, b[0], 0);
    for (i, y) in b.iter().enumerate().skip(1) {
        out[n + i] = add_mul_limb(&mut out[i..n + i], a, *y);
    }
}

fn square_rows(out: &mut [u64], a: &[u64]) {
    let n = a.len();
    // Products of different limbs once, doubled, then the squares on the diagonal.
    out[0] = 0;
    out[n] = mul_limb(&mut out[1..n], &a[1..], a[0], 0);
    for i in 1..n {
        out[n + i] = add_mul_limb(&mut out[2 * i + 1..n + i], &a[i + 1..], a[i]);
    }
    let mut high = 0;
    let mut carry = false;
    for (i, x) in a.iter().enumerate() {
        let (low_sq, high_sq) = x.carrying_mul(*x, 0);
        let (l, h) = (out[2 * i], out[2 * i + 1]);
        (out[2 * i], carry) = (l << 1 | high).carrying_add(low_sq, carry);
        (out[2 * i + 1], carry) = (h << 1 | l >> 63).carrying_add(high_sq, carry);
        high = h >> 63;
    }
}

/// Long by short, at least [`KARATSUBA`] limbs each.
fn pieces(out: &mut [u64], a: &[u64], b: &[u64]) {
    let m = b.len();
    if m >= TRANSFORM {
        pieces_with(out, a, b, &mut vec![0; 2 * m], mul);
        return;
    }
    let mut scratch = vec![0; scratch_len(m) + 2 * m];
    let (product, scratch) = scratch.split_at_mut(2 * m);
    pieces_with(out, a, b, product, |p, piece, b| {
        if piece.len() == m {
            split(p, piece, b, scratch);
        } else {
            mul(p, piece, b);
        }
    });
}

fn pieces_with(
    out: &mut [u64],
    a: &[u64],
    b: &[u64],
    product: &mut [u64],
    mut multiply: impl FnMut(&mut [u64], &[u64], &[u64]),
) {
    let m = b.len();
    out.fill(0);
    for (i, piece) in a.chunks(m).enumerate() {
        let p = &mut product[..piece.len() + m];
        multiply(p, piece, b);
        // The product of what has been read so far fits below the end of this piece.
        add_assign(&mut out[i * m..], p);
    }
}

fn scratch_len(n: usize) -> usize {
    4 * n + 128
}

/// `out = |a - b|` for operands of nearly one length; true when `a < b`.
fn difference(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    let below = compare(trim(a), trim(b)) == Ordering::Less;
    let (x, y) = if below { (b, a) } else { (a, b) };
    if x.len() >= y.len() {
        let n = x.len();
        sub_borrow(&mut out[..n], x, y);
        out[n..].fill(0);
    } else {
        // The larger value has the shorter slice, so the limbs above are zero.
        let n = x.len();
        sub_borrow(&mut out[..n], x, &y[..n]);
        out[n..].fill(0);
    }
    below
}

/// Two operands of one length.
fn split(out: &mut [u64], a: &[u64], b: &[u64], scratch: &mut [u64]) {
    let n = a.len();
    if n < KARATSUBA {
        rows(out, a, b);
        return;
    }
    let h = n.div_ceil(2);
    let (a0, a1) = a.split_at(h);
    let (b0, b1) = b.split_at(h);
    let (middle, rest) = scratch.split_at_mut(2 * h);
    let opposite = {
        let (da, db) = out.split_at_mut(h);
        let db = &mut db[..h];
        let opposite = difference(da, a0, a1) != difference(db, b0, b1);
        split(middle, da, db, rest);
        opposite
    };
    split(&mut out[..2 * h], a0, b0, rest);
    split(&mut out[2 * h..], a1, b1, rest);
    join(out, h, middle, rest, opposite);
}

/// One operand by itself.
fn square_split(out: &mut [u64], a: &[u64], scratch: &mut [u64]) {
    let n = a.len();
    if n < KARATSUBA {
        square_rows(out, a);
        return;
    }
    let h = n.div_ceil(2);
    let (a0, a1) = a.split_at(h);
    let (middle, rest) = scratch.split_at_mut(2 * h);
    difference(&mut out[..h], a0, a1);
    square_split(middle, &out[..h], rest);
    square_split(&mut out[..2 * h], a0, rest);
    square_split(&mut out[2 * h..], a1, rest);
    join(out, h, middle, rest, false);
}

/// Adds `low + high - middle` (or `+ middle` when the differences had opposite signs) at limb `h`.
fn join(out: &mut [u64], h: usize, middle: &[u64], rest: &mut [u64], opposite: bool) {
    let sum = &mut rest[..2 * h + 1];
    let (low, high) = out.split_at(2 * h);
    sum[2 * h] = u64::from(add_carry(&mut sum[..2 * h], low, high));
    if opposite {
        add_assign(sum, middle);
    } else {
        sub_assign(sum, middle);
    }
    let target = &mut out[h..];
    if sum.len() <= target.len() {
        add_assign(target, sum);
    } else {
        // The limbs of the sum beyond the product are zero.
        let n = target.len();
        add_assign(target, &sum[..n]);
    }
}
