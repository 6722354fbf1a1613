//! Comparing floats with floats and integers. The order of integers, and of integers and floats,
//! is arithmetic's ([`crate::arith`]).

use std::cmp::Ordering;

use crate::arith::{Int, compare_int_float};
use crate::word::Word;

/// Two floats; `0.0` and `-0.0` are equal unless `zeros_differ`.
#[inline]
pub(super) fn compare_float(a: f64, b: f64, zeros_differ: bool) -> Ordering {
    match a.partial_cmp(&b) {
        Some(Ordering::Equal) if zeros_differ => b.is_sign_negative().cmp(&a.is_sign_negative()),
        Some(o) => o,
        // No term holds a NaN.
        None => Ordering::Equal,
    }
}

/// An integer of any size and a float, by exact value.
pub(super) fn compare_integer_float(i: Word, f: f64) -> Ordering {
    let mut buffer = 0;
    Int::of(i, &mut buffer).map_or(Ordering::Equal, |i| compare_int_float(i, f))
}
