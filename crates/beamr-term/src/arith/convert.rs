//! Conversions between integers and floats, and the order of numbers.

use std::cmp::Ordering;

use super::{ArithError, ArithError::Badarith, Int};
use crate::alloc::{Alloc, Build};
use crate::big;
use crate::tables::Release;
use crate::word::Word;

/// A number as a float; `None` when it is no number or too large.
#[inline]
pub fn to_float(release: Release, a: Word) -> Option<f64> {
    if let Some(v) = a.as_small() {
        return Some(v as f64);
    }
    if let Some(f) = a.as_float() {
        return Some(f);
    }
    let mut buffer = 0;
    let x = Int::of(a, &mut buffer)?;
    limbs_to_float(release, x.negative, x.magnitude)
}

/// A trimmed magnitude as a float; `None` when it is too large. Rounded to nearest, ties to
/// even; before OTP 29 limb by limb, each step rounded, as those releases do.
pub fn limbs_to_float(release: Release, negative: bool, m: &[u64]) -> Option<f64> {
    let value = match m.len() {
        0 => 0.0,
        1 => m[0] as f64,
        n if n > 16 => return None,
        _ if release.0 < 29 => m.iter().rev().fold(0.0, |f, limb| {
            f * 18_446_744_073_709_551_616.0 + *limb as f64
        }),
        2 => (u128::from(m[1]) << 64 | u128::from(m[0])) as f64,
        n => {
            // The top 128 bits, with a sticky bit for the rest: enough to round once.
            let shift = m[n - 1].leading_zeros();
            let (rest, top) = m.split_at(n - 3);
            let mut high = u128::from(top[2]) << 64 | u128::from(top[1]);
            if shift > 0 {
                high = high << shift | u128::from(top[0] >> (64 - shift));
            }
            let lost = top[0] << shift != 0 || rest.iter().any(|x| *x != 0);
            let f = (high | u128::from(lost)) as f64;
            f * 2f64.powi((n as i32 - 2) * 64 - shift as i32)
        }
    };
    let value = if negative { -value } else { value };
    value.is_finite().then_some(value)
}

/// The integer a float without a fraction stands for.
pub fn integer_from_float<A: Alloc + ?Sized>(heap: &mut A, f: f64) -> Word {
    debug_assert!(f.is_finite());
    if f.abs() < 9.0e18 {
        return heap.integer(f as i64);
    }
    let bits = f.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as u32;
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    // The magnitude is beyond 2^62, so the exponent of the last mantissa bit is positive.
    let shift = exponent - 1075;
    let mut limbs = [0u64; 17];
    let wide = u128::from(mantissa) << (shift % 64);
    let at = (shift / 64) as usize;
    limbs[at] = wide as u64;
    limbs[at + 1] = (wide >> 64) as u64;
    heap.big(f < 0.0, &limbs)
}

/// How to make an integer of a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// Towards zero.
    Trunc,
    /// To the nearest, halves away from zero.
    Round,
    /// Down.
    Floor,
    /// Up.
    Ceil,
}

/// `trunc`, `round`, `floor` and `ceil`; the error stands for `badarg`.
pub fn to_integer<A: Alloc + ?Sized>(
    heap: &mut A,
    a: Word,
    how: Rounding,
) -> Result<Word, ArithError> {
    if a.is_integer() {
        return Ok(a);
    }
    let f = a.as_float().ok_or(Badarith)?;
    let f = match how {
        Rounding::Trunc => f.trunc(),
        Rounding::Round => f.round(),
        Rounding::Floor => f.floor(),
        Rounding::Ceil => f.ceil(),
    };
    Ok(integer_from_float(heap, f))
}

/// Order of two numbers by value, exact between integers and floats (as `==` and `<` see them).
/// Both words must be numbers.
#[inline]
pub fn compare_numbers(a: Word, b: Word) -> Ordering {
    if a.is_small() && b.is_small() {
        return a.small_value().cmp(&b.small_value());
    }
    compare_slow(a, b)
}

fn compare_slow(a: Word, b: Word) -> Ordering {
    let (mut abuf, mut bbuf) = (0, 0);
    match (a.as_float(), b.as_float()) {
        (Some(x), Some(y)) => x.partial_cmp(&y).unwrap_or(Ordering::Equal),
        (None, Some(y)) => match Int::of(a, &mut abuf) {
            Some(x) => compare_int_float(x, y),
            None => Ordering::Equal,
        },
        (Some(x), None) => match Int::of(b, &mut bbuf) {
            Some(y) => compare_int_float(y, x).reverse(),
            None => Ordering::Equal,
        },
        (None, None) => match (Int::of(a, &mut abuf), Int::of(b, &mut bbuf)) {
            (Some(x), Some(y)) => x.compare(y),
            _ => Ordering::Equal,
        },
    }
}

/// Whether two numbers are equal by value (`==`). Both words must be numbers.
#[inline]
pub fn numeric_eq(a: Word, b: Word) -> bool {
    compare_numbers(a, b) == Ordering::Equal
}

/// Exact order of an integer and a finite float.
pub fn compare_int_float(x: Int<'_>, f: f64) -> Ordering {
    if x.magnitude.is_empty() {
        return 0.0.partial_cmp(&f).unwrap_or(Ordering::Equal);
    }
    if f == 0.0 || x.negative != (f < 0.0) {
        return if x.negative {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let order = compare_magnitude_float(x.magnitude, f.abs());
    if x.negative { order.reverse() } else { order }
}

/// Order of a magnitude above zero and a float above zero.
fn compare_magnitude_float(m: &[u64], f: f64) -> Ordering {
    let bits = f.to_bits();
    // f = mantissa * 2^exponent, with 53 bits of mantissa unless it is far below one.
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1075;
    if exponent < -52 {
        return Ordering::Greater;
    }
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let length = big::bit_length(m) as i64;
    let order = length.cmp(&(53 + exponent));
    if order.is_ne() {
        return order;
    }
    if exponent <= 0 {
        // At most 53 bits before the point.
        let down = (-exponent) as u32;
        let whole = mantissa >> down;
        return m[0].cmp(&whole).then_with(|| {
            if whole << down == mantissa {
                Ordering::Equal
            } else {
                Ordering::Less
            }
        });
    }
    let (at, shift) = ((exponent / 64) as usize, (exponent % 64) as u32);
    let wide = u128::from(mantissa) << shift;
    let low = m.get(at).copied().unwrap_or(0);
    let high = m.get(at + 1).copied().unwrap_or(0);
    (u128::from(high) << 64 | u128::from(low))
        .cmp(&wide)
        .then_with(|| {
            if m[..at].iter().any(|x| *x != 0) {
                Ordering::Greater
            } else {
                Ordering::Equal
            }
        })
}
