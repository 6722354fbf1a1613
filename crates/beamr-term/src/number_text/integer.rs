//! Integers as digits in bases 2 to 36.

use crate::alloc::{Alloc, Build};
use crate::arith::{Int, integer_from_limbs, max_limbs};
use crate::big;
use crate::tables::Release;
use crate::word::Word;

/// Why a text is not an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseIntegerError {
    /// No digits, or something that is none.
    #[error("not the text of an integer")]
    NotAnInteger,
    /// An integer larger than the release allows.
    #[error("a system limit has been reached: the integer is too large")]
    SystemLimit,
}

/// Why a list does not begin with an integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IntegerListError {
    /// Not a list at all.
    #[error("not a list")]
    NotAList,
    /// No digits, or only a sign.
    #[error("the list does not begin with an integer")]
    NoInteger,
    /// An integer larger than the release allows.
    #[error("a system limit has been reached: the integer is too large")]
    SystemLimit,
}

/// Writes the digits of `value` at the end of `buffer`; returns where they begin.
#[inline]
fn write_u64(buffer: &mut [u8; 65], mut value: u64, base: u32) -> usize {
    let mut at = buffer.len();
    loop {
        at -= 1;
        let d = if base == 10 {
            let d = value % 10;
            value /= 10;
            d
        } else {
            let d = value % u64::from(base);
            value /= u64::from(base);
            d
        } as u8;
        buffer[at] = if d < 10 { b'0' + d } else { b'A' - 10 + d };
        if value == 0 {
            return at;
        }
    }
}

/// Appends the digits of `value`.
pub fn push_u64(out: &mut Vec<u8>, value: u64, base: u32) {
    let mut buffer = [0; 65];
    let at = write_u64(&mut buffer, value, base);
    out.extend_from_slice(&buffer[at..]);
}

/// Calls `f` with an integer's text; `None` when the word is none.
fn with_text<T>(w: Word, base: u32, f: impl FnOnce(&[u8]) -> T) -> Option<T> {
    if let Some(v) = w.as_small() {
        let mut buffer = [0; 65];
        let mut at = write_u64(&mut buffer, v.unsigned_abs(), base);
        if v < 0 {
            // A small integer has 60 bits, so there is room for its sign.
            at -= 1;
            buffer[at] = b'-';
        }
        return Some(f(&buffer[at..]));
    }
    let mut out = Vec::new();
    push_integer(&mut out, w, base).then(|| f(&out))
}

/// Appends an integer's text; false (and nothing written) when the word is none.
pub fn push_integer(out: &mut Vec<u8>, w: Word, base: u32) -> bool {
    let mut buffer = 0;
    let Some(i) = Int::of(w, &mut buffer) else {
        return false;
    };
    if i.negative {
        out.push(b'-');
    }
    match *i.magnitude {
        [] => out.push(b'0'),
        [m] => push_u64(out, m, base),
        _ => big::to_digits(out, i.magnitude, base, 1),
    }
    true
}

/// `integer_to_list/2`; `None` when the word is no integer.
pub fn integer_to_list<A: Alloc + ?Sized>(heap: &mut A, w: Word, base: u32) -> Option<Word> {
    with_text(w, base, |text| {
        crate::text::list_of_bytes(heap, text, Word::NIL)
    })
}

/// `integer_to_binary/2`; `None` when the word is no integer.
pub fn integer_to_binary<A: Alloc + ?Sized>(heap: &mut A, w: Word, base: u32) -> Option<Word> {
    with_text(w, base, |text| heap.binary(text))
}

/// The value of a digit, or 255.
#[inline]
fn digit_value(c: u8, base: u32) -> u8 {
    let d = match c {
        b'0'..=b'9' => c - b'0',
        b'a'..=b'z' => c - b'a' + 10,
        b'A'..=b'Z' => c - b'A' + 10,
        _ => 255,
    };
    if u32::from(d) < base { d } else { 255 }
}

/// The integer of digit values, most significant first (at least one).
fn from_values<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    negative: bool,
    values: &[u8],
    base: u32,
) -> Option<Word> {
    let zeros = values.iter().take_while(|d| **d == 0).count();
    let values = &values[zeros..];
    // Twelve digits of any base fit a small integer.
    if values.len() <= 11 {
        let v = values
            .iter()
            .fold(0i64, |a, d| a * i64::from(base) + i64::from(*d));
        return Some(heap.integer(if negative { -v } else { v }));
    }
    // What is certainly too long is not converted first.
    let bits = (values.len() - 1) as f64 * f64::from(base).log2();
    if bits * 0.999_999 > max_limbs(release) as f64 * 64.0 {
        return None;
    }
    let limbs = big::from_digits(values, base);
    integer_from_limbs(heap, release, negative, &limbs).ok()
}

/// `binary_to_integer/2`: an optional sign and digits, all of the text.
pub fn parse_integer<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    text: &[u8],
    base: u32,
) -> Result<Word, ParseIntegerError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return Err(ParseIntegerError::NotAnInteger);
    }
    if digits.len() <= 11 {
        let mut v = 0i64;
        for c in digits {
            let d = digit_value(*c, base);
            if d == 255 {
                return Err(ParseIntegerError::NotAnInteger);
            }
            v = v * i64::from(base) + i64::from(d);
        }
        return Ok(heap.integer(if negative { -v } else { v }));
    }
    let mut values = digits.to_vec();
    for c in &mut values {
        *c = digit_value(*c, base);
        if *c == 255 {
            return Err(ParseIntegerError::NotAnInteger);
        }
    }
    from_values(heap, release, negative, &values, base).ok_or(ParseIntegerError::SystemLimit)
}

/// The integer that a list begins with, and what follows it: `list_to_integer/2` when that is
/// the empty list, `string:to_integer/1` otherwise.
pub fn integer_from_list<A: Alloc + ?Sized>(
    heap: &mut A,
    release: Release,
    list: Word,
    base: u32,
) -> Result<(Word, Word), IntegerListError> {
    if list.is_nil() {
        return Err(IntegerListError::NoInteger);
    }
    let (first, tail) = list.as_cons().ok_or(IntegerListError::NotAList)?;
    let sign = first.as_small();
    let negative = sign == Some(i64::from(b'-'));
    let mut rest = if negative || sign == Some(i64::from(b'+')) {
        tail
    } else {
        list
    };
    let mut values = Vec::new();
    while let Some((head, tail)) = rest.as_cons() {
        let d = match head.as_small().map(u8::try_from) {
            Some(Ok(c)) => digit_value(c, base),
            _ => 255,
        };
        if d == 255 {
            break;
        }
        values.push(d);
        rest = tail;
    }
    if values.is_empty() {
        return Err(IntegerListError::NoInteger);
    }
    from_values(heap, release, negative, &values, base)
        .map(|w| (w, rest))
        .ok_or(IntegerListError::SystemLimit)
}
