//! Arithmetic on magnitudes: slices of 64-bit limbs, least significant first.
//!
//! Here are the kernels behind bignums ([`kernel`]), multiplication (`mul`) and division
//! (`div`) that stay subquadratic for long operands, bitwise operations with two's complement
//! meaning (`bits`), and conversion to and from digits (`radix`). Signs, words, heaps and
//! limits are the business of [`arith`](crate::arith).
//!
//! A magnitude is *trimmed* when its highest limb is not zero; zero is the empty slice. Unless a
//! function says otherwise it accepts trimmed magnitudes and writes every limb of its output.

mod bits;
mod div;
pub mod kernel;
mod mul;
mod ntt;
mod radix;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use bits::{Bitwise, and, bitwise_len, or, shift_left, shift_right, shift_right_len, xor};
pub use div::{div_rem, quotient_is_small, rem_small_quotient};
pub use kernel::{add, bit_length, compare, sub, trim};
pub use mul::mul;
pub use radix::{digits_len_bound, from_digits, to_digits};

#[cfg(test)]
mod tests;
