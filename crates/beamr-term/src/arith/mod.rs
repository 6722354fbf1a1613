//! Arithmetic on terms: `+ - * / div rem band bor bxor bnot bsl bsr`, `abs`, conversions between
//! integers and floats, and the order of numbers.
//!
//! Results are built in any [`Alloc`]. Bignum results are written into their final place at
//! once; when the result is shorter than its bound the rest of the block becomes a bignum
//! header that covers it, so that a linear walk over the heap stays well formed.
//!
//! Integers have a size limit that depends on the release ([`max_limbs`]); an operation whose
//! result would be longer fails with [`ArithError::SystemLimit`] before it takes the memory.

mod convert;

use std::cmp::Ordering;

use crate::alloc::{Alloc, Build};
use crate::big::{self, Bitwise};
use crate::header::{Header, Subtag};
use crate::tables::Release;
use crate::word::Word;

pub use convert::{
    Rounding, compare_int_float, compare_numbers, integer_from_float, limbs_to_float, numeric_eq,
    to_float, to_integer,
};

/// Why an arithmetic operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ArithError {
    /// An operand is not a number of the kind wanted, the divisor is zero, or a float result
    /// is not finite.
    #[error("bad argument in an arithmetic expression")]
    Badarith,
    /// An integer would be larger than the release allows.
    #[error("a system limit has been reached: the integer is too large")]
    SystemLimit,
}

use ArithError::{Badarith, SystemLimit};

/// The most 64-bit limbs an integer may have: 4,194,240 bits from OTP 27 on, 33,554,368 before.
pub const fn max_limbs(release: Release) -> usize {
    if release.0 >= 27 {
        (1 << 16) - 1
    } else {
        (1 << 19) - 1
    }
}

/// An integer: sign and trimmed magnitude.
#[derive(Clone, Copy, Debug)]
pub struct Int<'a> {
    /// Below zero.
    pub negative: bool,
    /// The absolute value, least significant limb first, without high zeros.
    pub magnitude: &'a [u64],
}

impl<'a> Int<'a> {
    /// The integer behind a word, or `None`; `buffer` holds the magnitude of a small one.
    #[inline]
    pub fn of(w: Word, buffer: &'a mut u64) -> Option<Int<'a>> {
        if w.is_small() {
            let v = w.small_value();
            *buffer = v.unsigned_abs();
            let n = usize::from(v != 0);
            return Some(Int {
                negative: v < 0,
                magnitude: &std::slice::from_ref(buffer)[..n],
            });
        }
        if !w.is_boxed() {
            return None;
        }
        let header = w.header();
        let negative = match header.subtag() {
            Subtag::PosBig => false,
            Subtag::NegBig => true,
            _ => return None,
        };
        // SAFETY: a bignum is its header followed by `arity` limbs (crate contract).
        let magnitude =
            unsafe { std::slice::from_raw_parts(w.ptr().add(1).cast_const(), header.arity()) };
        Some(Int {
            negative,
            magnitude,
        })
    }
    fn bitwise(self) -> Bitwise<'a> {
        Bitwise {
            negative: self.negative,
            magnitude: self.magnitude,
        }
    }
    /// Order of two integers.
    pub fn compare(self, other: Int<'_>) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => big::compare(self.magnitude, other.magnitude),
            (true, true) => big::compare(other.magnitude, self.magnitude),
        }
    }
    /// The value when it fits.
    pub fn to_i64(self) -> Option<i64> {
        match *self.magnitude {
            [] => Some(0),
            [m] if self.negative => (m <= 1 << 63).then_some((m as i64).wrapping_neg()),
            [m] => i64::try_from(m).ok(),
            _ => None,
        }
    }
}

/// The value of an integer of at most one limb.
#[inline]
fn one_limb(w: Word) -> Option<i128> {
    if w.is_small() {
        return Some(i128::from(w.small_value()));
    }
    if !w.is_boxed() {
        return None;
    }
    const POSITIVE: Header = Header::new(Subtag::PosBig, 1);
    const NEGATIVE: Header = Header::new(Subtag::NegBig, 1);
    match w.header() {
        POSITIVE => Some(i128::from(w.field(1))),
        NEGATIVE => Some(-i128::from(w.field(1))),
        _ => None,
    }
}

/// An integer of at most two limbs.
#[inline]
fn wide<A: Alloc + ?Sized>(heap: &mut A, value: i128) -> Word {
    match i64::try_from(value) {
        Ok(v) => heap.integer(v),
        Err(_) => two_limbs(heap, value < 0, value.unsigned_abs()),
    }
}

/// An integer of at most two limbs from sign and magnitude.
#[inline]
fn two_limbs<A: Alloc + ?Sized>(heap: &mut A, negative: bool, m: u128) -> Word {
    let (low, high) = (m as u64, (m >> 64) as u64);
    if high == 0 {
        return heap.big(negative, &[low]);
    }
    let subtag = if negative {
        Subtag::NegBig
    } else {
        Subtag::PosBig
    };
    let p = heap.alloc(3);
    // SAFETY: three fresh words.
    unsafe {
        *p = Header::new(subtag, 2).0;
        *p.add(1) = low;
        *p.add(2) = high;
        Word::boxed(p)
    }
}

/// Builds an integer of at most `words` limbs: `write` fills them all and says whether the
/// value is negative.
fn produce<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    words: usize,
    write: impl FnOnce(&mut [u64]) -> bool,
) -> Result<Word, ArithError> {
    let words = words.max(1);
    let p = heap.alloc(words + 1);
    // SAFETY: `words + 1` fresh words; `write` sets all limbs before they are read.
    unsafe {
        let limbs = std::slice::from_raw_parts_mut(p.add(1), words);
        let negative = write(limbs);
        let n = big::trim(limbs).len();
        let small = match n {
            0 => Some(0),
            1 if !negative && limbs[0] <= Word::MAX_SMALL as u64 => Some(limbs[0] as i64),
            1 if negative && limbs[0] <= Word::MIN_SMALL.unsigned_abs() => {
                Some((limbs[0] as i64).wrapping_neg())
            }
            _ => None,
        };
        if small.is_some() || n > max_limbs(release) {
            *p = Header::new(Subtag::PosBig, words).0;
            return small.map(Word::fixnum).ok_or(SystemLimit);
        }
        let subtag = if negative {
            Subtag::NegBig
        } else {
            Subtag::PosBig
        };
        *p = Header::new(subtag, n).0;
        if n < words {
            *p.add(n + 1) = Header::new(Subtag::PosBig, words - n - 1).0;
        }
        Ok(Word::boxed(p))
    }
}

/// An integer from sign and magnitude, within the release's limit.
pub fn integer_from_limbs<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    negative: bool,
    limbs: &[u64],
) -> Result<Word, ArithError> {
    let limbs = big::trim(limbs);
    if limbs.len() > max_limbs(release) {
        return Err(SystemLimit);
    }
    Ok(heap.big(negative, limbs))
}

/// A float result.
#[inline]
fn finite<A: Alloc + ?Sized>(heap: &mut A, value: f64) -> Result<Word, ArithError> {
    if value.is_finite() {
        Ok(heap.float(value))
    } else {
        Err(Badarith)
    }
}

/// The operands as floats when at least one is a float and both are numbers.
#[inline]
fn floats(release: Release, a: Word, b: Word) -> Result<(f64, f64), ArithError> {
    Ok((
        to_float(release, a).ok_or(Badarith)?,
        to_float(release, b).ok_or(Badarith)?,
    ))
}

/// `A + B`.
#[inline]
pub fn add<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        return Ok(heap.integer(a.small_value() + b.small_value()));
    }
    sum(heap, release, a, b, false)
}

/// `A - B`.
#[inline]
pub fn sub<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        return Ok(heap.integer(a.small_value() - b.small_value()));
    }
    sum(heap, release, a, b, true)
}

fn sum<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
    subtract: bool,
) -> Result<Word, ArithError> {
    if let (Some(x), Some(y)) = (one_limb(a), one_limb(b)) {
        return Ok(wide(heap, if subtract { x - y } else { x + y }));
    }
    if a.is_float() || b.is_float() {
        let (x, y) = floats(release, a, b)?;
        return finite(heap, if subtract { x - y } else { x + y });
    }
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    if y.magnitude.is_empty() {
        return Ok(a);
    }
    if x.magnitude.is_empty() && !subtract {
        return Ok(b);
    }
    let n = x.magnitude.len().max(y.magnitude.len());
    if x.negative == (y.negative != subtract) {
        produce(heap, release, n + 1, |out| {
            big::add(out, x.magnitude, y.magnitude);
            x.negative
        })
    } else {
        produce(heap, release, n, |out| {
            x.negative != (big::sub(out, x.magnitude, y.magnitude) == Ordering::Less)
        })
    }
}

/// `A * B`.
#[inline]
pub fn mul<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        let product = i128::from(a.small_value()) * i128::from(b.small_value());
        return Ok(wide(heap, product));
    }
    product(heap, release, a, b)
}

fn product<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if let (Some(x), Some(y)) = (one_limb(a), one_limb(b)) {
        let m = x.unsigned_abs() * y.unsigned_abs();
        return Ok(two_limbs(heap, (x < 0) != (y < 0), m));
    }
    if a.is_float() || b.is_float() {
        let (x, y) = floats(release, a, b)?;
        return finite(heap, x * y);
    }
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    let (n, m) = (x.magnitude.len(), y.magnitude.len());
    if n == 0 || m == 0 {
        return Ok(Word::fixnum(0));
    }
    if n + m - 1 > max_limbs(release) {
        return Err(SystemLimit);
    }
    produce(heap, release, n + m, |out| {
        big::mul(out, x.magnitude, y.magnitude);
        x.negative != y.negative
    })
}

/// `A / B`, always a float.
pub fn divide<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    let (x, y) = floats(release, a, b)?;
    if y == 0.0 {
        return Err(Badarith);
    }
    finite(heap, x / y)
}

/// `A div B`: truncated towards zero.
#[inline]
pub fn int_div<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        let d = b.small_value();
        if d == 0 {
            return Err(Badarith);
        }
        return Ok(heap.integer(a.small_value() / d));
    }
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    let (n, m) = (x.magnitude.len(), y.magnitude.len());
    if m == 0 {
        return Err(Badarith);
    }
    if n < m {
        return Ok(Word::fixnum(0));
    }
    let negative = x.negative != y.negative;
    if let Some(q) = big::quotient_is_small(x.magnitude, y.magnitude) {
        return Ok(heap.big(negative, &[q]));
    }
    produce(heap, release, n - m + 1, |out| {
        if m == 1 {
            big::kernel::div_limb(out, x.magnitude, y.magnitude[0]);
        } else {
            let mut rest = vec![0; m];
            big::div_rem(out, &mut rest, x.magnitude, y.magnitude);
        }
        negative
    })
}

/// `A rem B`: with the sign of `A`.
#[inline]
pub fn rem<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        let d = b.small_value();
        if d == 0 {
            return Err(Badarith);
        }
        return Ok(Word::fixnum(a.small_value() % d));
    }
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    let (n, m) = (x.magnitude.len(), y.magnitude.len());
    if m == 0 {
        return Err(Badarith);
    }
    if big::compare(x.magnitude, y.magnitude) == Ordering::Less {
        return Ok(a);
    }
    if m == 1 {
        let r = big::kernel::rem_limb(x.magnitude, y.magnitude[0]);
        return Ok(heap.big(x.negative, &[r]));
    }
    produce(heap, release, m, |out| {
        if big::rem_small_quotient(out, x.magnitude, y.magnitude).is_none() {
            let mut q = vec![0; n - m + 1];
            big::div_rem(&mut q, out, x.magnitude, y.magnitude);
        }
        x.negative
    })
}

fn bitwise<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
    short: impl FnOnce(i128, i128) -> i128,
    long: fn(&mut [u64], Bitwise<'_>, Bitwise<'_>) -> bool,
) -> Result<Word, ArithError> {
    if let (Some(x), Some(y)) = (one_limb(a), one_limb(b)) {
        return Ok(wide(heap, short(x, y)));
    }
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    let n = big::bitwise_len(x.magnitude, y.magnitude);
    produce(heap, release, n, |out| long(out, x.bitwise(), y.bitwise()))
}

/// `A band B`.
#[inline]
pub fn band<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        return Ok(Word::fixnum(a.small_value() & b.small_value()));
    }
    // A mask that is small and not negative needs the lowest limb only.
    let (mask, other) = if a.is_small() { (a, b) } else { (b, a) };
    if mask.is_small()
        && mask.small_value() >= 0
        && let Some(Subtag::PosBig) = other.subtag()
    {
        return Ok(Word::fixnum(mask.small_value() & other.field(1) as i64));
    }
    bitwise(heap, release, a, b, |x, y| x & y, big::and)
}

/// `A bor B`.
#[inline]
pub fn bor<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        return Ok(Word::fixnum(a.small_value() | b.small_value()));
    }
    bitwise(heap, release, a, b, |x, y| x | y, big::or)
}

/// `A bxor B`.
#[inline]
pub fn bxor<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    if a.is_small() && b.is_small() {
        return Ok(Word::fixnum(a.small_value() ^ b.small_value()));
    }
    bitwise(heap, release, a, b, |x, y| x ^ y, big::xor)
}

/// `bnot A`.
pub fn bnot<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
) -> Result<Word, ArithError> {
    if a.is_small() {
        return Ok(Word::fixnum(!a.small_value()));
    }
    // bnot A is -1 - A.
    if !a.is_big() {
        return Err(Badarith);
    }
    sub(heap, release, Word::fixnum(-1), a)
}

/// `A bsl B`.
pub fn bsl<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    shift(heap, release, a, b, false)
}

/// `A bsr B`.
pub fn bsr<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
) -> Result<Word, ArithError> {
    shift(heap, release, a, b, true)
}

fn shift<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
    b: Word,
    right: bool,
) -> Result<Word, ArithError> {
    let (mut abuf, mut bbuf) = (0, 0);
    let x = Int::of(a, &mut abuf).ok_or(Badarith)?;
    let y = Int::of(b, &mut bbuf).ok_or(Badarith)?;
    if x.magnitude.is_empty() || y.magnitude.is_empty() {
        return Ok(a);
    }
    // A count beyond 64 bits acts like the largest one.
    let count = match *y.magnitude {
        [m] => m,
        _ => u64::MAX,
    };
    if right != y.negative {
        if let Some(v) = a.as_small() {
            return Ok(Word::fixnum(v >> count.min(63)));
        }
        let n = big::shift_right_len(x.magnitude, count);
        return produce(heap, release, n, |out| {
            big::shift_right(out, x.magnitude, count, x.negative);
            x.negative
        });
    }
    if let Some(v) = a.as_small()
        && count < 60
        && count < u64::from(v.unsigned_abs().leading_zeros())
    {
        // The result stays within 63 bits and a sign.
        return Ok(heap.integer(v << count));
    }
    let bits = big::bit_length(x.magnitude).saturating_add(count);
    if bits > max_limbs(release) as u64 * 64 {
        return Err(SystemLimit);
    }
    let n = x.magnitude.len() + (count / 64) as usize + 1;
    produce(heap, release, n, |out| {
        big::shift_left(out, x.magnitude, count);
        x.negative
    })
}

/// `-A`.
pub fn negate<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    a: Word,
) -> Result<Word, ArithError> {
    if let Some(v) = a.as_small() {
        return Ok(heap.integer(-v));
    }
    if let Some(f) = a.as_float() {
        return Ok(heap.float(-f));
    }
    let mut buffer = 0;
    let x = Int::of(a, &mut buffer).ok_or(Badarith)?;
    integer_from_limbs(heap, release, !x.negative, x.magnitude)
}

/// `abs(A)`; the error stands for `badarg`.
pub fn abs<A: Alloc + ?Sized>(heap: &mut A, release: Release, a: Word) -> Result<Word, ArithError> {
    let negative = match a.as_small() {
        Some(v) => v < 0,
        None => match a.subtag() {
            Some(Subtag::PosBig) => false,
            Some(Subtag::NegBig) => true,
            Some(Subtag::Float) => {
                let f = f64::from_bits(a.field(1));
                // Before OTP 27 a negative zero is left alone.
                f < 0.0 || (release.zeros_differ() && f.is_sign_negative())
            }
            _ => return Err(Badarith),
        },
    };
    if negative {
        negate(heap, release, a)
    } else {
        Ok(a)
    }
}
