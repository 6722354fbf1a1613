//! Comparing numbers without converting them.

use std::cmp::Ordering;

use crate::header::Subtag;
use crate::word::Word;

/// Two floats; `0.0` and `-0.0` are equal unless `zeros_differ`.
#[inline]
pub(crate) fn compare_float(a: f64, b: f64, zeros_differ: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(Ordering::Equal) if zeros_differ => b.is_sign_negative().cmp(&a.is_sign_negative()),
        Some(o) => o,
        // No term holds a NaN.
        None => Ordering::Equal,
    }
}

/// Sign and limbs of an integer; `None` for other terms.
#[inline]
fn magnitude(w: Word, small: &mut u64) -> Option<(bool, &[u64])> {
    if let Some(v) = w.as_small() {
        *small = v.unsigned_abs();
        return Some((
            v < 0,
            if v == 0 {
                &[]
            } else {
                std::slice::from_ref(small)
            },
        ));
    }
    match w.subtag()? {
        s @ (Subtag::PosBig | Subtag::NegBig) => Some((
            s == Subtag::NegBig,
            // SAFETY: the limbs follow the header; the term is alive (crate contract).
            unsafe { std::slice::from_raw_parts(w.ptr().add(1), w.header().arity()) },
        )),
        _ => None,
    }
}

fn compare_limbs(a: &[u64], b: &[u64]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

/// Two integers of any size (other terms compare equal).
pub(crate) fn compare_integers(a: Word, b: Word) -> Ordering {
    if let (Some(x), Some(y)) = (a.as_small(), b.as_small()) {
        return x.cmp(&y);
    }
    let (mut x, mut y) = (0, 0);
    let (Some((na, la)), Some((nb, lb))) = (magnitude(a, &mut x), magnitude(b, &mut y)) else {
        return Ordering::Equal;
    };
    match (na, nb) {
        (false, false) => compare_limbs(la, lb),
        (true, true) => compare_limbs(lb, la),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// An integer of any size and a float, by exact value.
pub fn compare_integer_float(i: Word, f: f64) -> Ordering {
    if let Some(v) = i.as_small() {
        // Every double beyond 2^63 is beyond every small integer; below, truncation is exact.
        if f >= 9.3e18 {
            return Ordering::Less;
        }
        if f <= -9.3e18 {
            return Ordering::Greater;
        }
        let t = f.trunc();
        return v
            .cmp(&(t as i64))
            .then_with(|| t.partial_cmp(&f).unwrap_or(Ordering::Equal));
    }
    let mut x = 0;
    let Some((negative, limbs)) = magnitude(i, &mut x) else {
        return Ordering::Equal;
    };
    if negative != f.is_sign_negative() || f.abs() < (1u64 << 59) as f64 {
        return if negative {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    // Both have the same sign and the float is a whole number: mantissa * 2^exp.
    let bits = f.abs().to_bits();
    let exp = (bits >> 52) as i64 - 1075;
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let mut buf = [0u64; 17];
    let n = if exp <= 0 {
        buf[0] = mantissa >> -exp;
        1
    } else {
        let at = (exp / 64) as usize;
        let s = exp % 64;
        buf[at.min(15)] = mantissa << s;
        buf[at.min(15) + 1] = if s == 0 { 0 } else { mantissa >> (64 - s) };
        at.min(15) + 1 + usize::from(buf[at.min(15) + 1] != 0)
    };
    let o = compare_limbs(limbs, &buf[..n]);
    if negative { o.reverse() } else { o }
}
