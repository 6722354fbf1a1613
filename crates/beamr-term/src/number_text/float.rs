//! Floats as text: the formats of `float_to_list/2`, the syntax of `list_to_float/1`.

use crate::atom::atoms;
use crate::word::Word;

/// How to write a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatFormat {
    /// The fewest digits that read back as the same float.
    Short,
    /// So many digits after the point, without exponent.
    Decimals {
        /// Digits after the point.
        digits: i64,
        /// Whether zeros at the end are dropped (one digit stays).
        compact: bool,
    },
    /// One digit before the point, so many after it, and an exponent of at least two digits.
    Scientific {
        /// Digits after the point.
        digits: i64,
    },
}

impl FloatFormat {
    /// `float_to_list/1`.
    pub const DEFAULT: FloatFormat = FloatFormat::Scientific { digits: 20 };

    /// The format that the options of `float_to_list/2` ask for (the last one decides), or
    /// `None` when they are wrong.
    pub fn from_options(mut options: Word) -> Option<FloatFormat> {
        enum Kind {
            Short,
            Decimals,
            Scientific,
        }
        let (mut kind, mut digits, mut compact) = (Kind::Scientific, 20, false);
        while let Some((option, rest)) = options.as_cons() {
            options = rest;
            if option == atoms::COMPACT.word() {
                compact = true;
            } else if option == atoms::SHORT.word() {
                kind = Kind::Short;
            } else {
                let [name, n] = option.as_tuple()? else {
                    return None;
                };
                digits = n.as_small()?;
                kind = match name.as_atom()? {
                    atoms::DECIMALS => Kind::Decimals,
                    atoms::SCIENTIFIC => Kind::Scientific,
                    _ => return None,
                };
            }
        }
        options.is_nil().then_some(match kind {
            Kind::Short => FloatFormat::Short,
            Kind::Decimals => FloatFormat::Decimals { digits, compact },
            Kind::Scientific => FloatFormat::Scientific { digits },
        })
    }
}

/// The emulator's buffer: a longer text is refused.
const LIMIT: usize = 256;

/// 2^53: beyond it not every integer is a float.
const LOSSLESS: f64 = 9_007_199_254_740_992.0;

/// The text of a finite float; `None` when the format asks for too long a text.
pub fn float_text(f: f64, format: FloatFormat) -> Option<String> {
    let text = match format {
        FloatFormat::Short => {
            let mut out = String::new();
            push_short(&mut out, f);
            out
        }
        FloatFormat::Decimals { digits, compact } => {
            let digits = usize::try_from(digits).ok().filter(|n| *n < LIMIT)?;
            let mut text = decimals(f, digits);
            // The limit holds before zeros are dropped.
            if compact && text.len() < LIMIT && (digits > 0 || f.abs() > LOSSLESS) {
                drop_zeros(&mut text);
            }
            text
        }
        FloatFormat::Scientific { digits } => {
            // A precision below zero means the default one of C.
            let digits = usize::try_from(digits).unwrap_or(6);
            if digits >= LIMIT {
                return None;
            }
            scientific(f, digits)
        }
    };
    (text.len() < LIMIT).then_some(text)
}

/// As C's `%.*e`.
fn scientific(f: f64, digits: usize) -> String {
    let text = format!("{f:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(e) => ('-', e),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

fn drop_zeros(text: &mut String) {
    while text.ends_with('0') {
        text.pop();
    }
    if text.ends_with('.') {
        text.push('0');
    }
}

/// The fixed form. Up to 2^53 and 18 digits the fraction is scaled and rounded in floating
/// point, as the emulator does it; beyond, the exact decimal expansion is rounded.
fn decimals(f: f64, digits: usize) -> String {
    let magnitude = f.abs();
    if magnitude > LOSSLESS || digits >= 19 {
        format!("{f:.digits$}")
    } else if digits == 0 {
        let sign = if f.is_sign_negative() { "-" } else { "" };
        format!("{sign}{}", magnitude.round() as u64)
    } else {
        let scale = 10u64.pow(digits as u32);
        let mut whole = magnitude.floor();
        let mut fraction = ((magnitude - whole) * scale as f64).round();
        if fraction >= scale as f64 {
            whole += 1.0;
            fraction = 0.0;
        }
        let sign = if f.is_sign_negative() { "-" } else { "" };
        format!("{sign}{}.{:0digits$}", whole as u64, fraction as u64)
    }
}

/// Appends the shortest text that reads back as the same float: fixed when that is not longer,
/// scientific (without plus sign or leading zeros in the exponent) otherwise, and for what is
/// at least 2^53, where not every integer is a float.
pub fn push_short(out: &mut String, f: f64) {
    if f == 0.0 {
        out.push_str(if f.is_sign_negative() { "-0.0" } else { "0.0" });
        return;
    }
    use std::fmt::Write;
    let mut shortest = ShortDigits::default();
    // Writing into a buffer that takes all of it cannot fail.
    let _ = write!(shortest, "{:e}", f.abs());
    shortest.round_half_to_even(f.abs());
    let (digits, scientific_exponent) = shortest.parts();
    let n = digits.len() as i32;
    // f = digits * 10^exponent, digits as an integer.
    let exponent = scientific_exponent - n + 1;
    let (lower, upper) = if n == 1 {
        (-4, 2)
    } else if scientific_exponent >= 10 {
        (-(n + 2), 2)
    } else {
        (-(n + 2), 1)
    };
    let fixed = lower <= exponent && exponent <= upper && f.abs() < LOSSLESS;
    if f < 0.0 {
        out.push('-');
    }
    if fixed {
        let whole = n + exponent;
        if exponent >= 0 {
            out.push_str(digits);
            (0..exponent).for_each(|_| out.push('0'));
            out.push_str(".0");
        } else if whole > 0 {
            let (a, b) = digits.split_at(whole as usize);
            out.push_str(a);
            out.push('.');
            out.push_str(b);
        } else {
            out.push_str("0.");
            (whole..0).for_each(|_| out.push('0'));
            out.push_str(digits);
        }
        return;
    }
    let (a, b) = digits.split_at(1);
    out.push_str(a);
    out.push('.');
    out.push_str(if b.is_empty() { "0" } else { b });
    out.push('e');
    let _ = write!(out, "{scientific_exponent}");
}

/// The digits and exponent that `{:e}` writes, without allocation.
#[derive(Default)]
struct ShortDigits {
    text: [u8; 20],
    digits: usize,
    exponent: i32,
    in_exponent: bool,
    negative: bool,
}

impl ShortDigits {
    fn parts(&self) -> (&str, i32) {
        let digits = std::str::from_utf8(&self.text[..self.digits]).unwrap_or("0");
        let e = self.exponent;
        (digits, if self.negative { -e } else { e })
    }

    /// When the float lies just between two shortest forms, takes the one with the even digit
    /// (Rust takes the upper one).
    fn round_half_to_even(&mut self, f: f64) {
        let (digits, scientific_exponent) = self.parts();
        let n = self.digits;
        if n == 0 || self.text[n - 1] & 1 == 0 {
            return;
        }
        let exponent = scientific_exponent - n as i32 + 1;
        let bits = f.to_bits();
        let biased = (bits >> 52) as i32;
        let mantissa = bits & ((1 << 52) - 1) | u64::from(biased != 0) << 52;
        let zeros = mantissa.trailing_zeros();
        // f = odd * 2^binary, to compare with (2 * digits +- 1) / 2 * 10^exponent.
        let odd = u128::from(mantissa >> zeros);
        let binary = biased.max(1) - 1075 + zeros as i32;
        if binary != exponent - 1 || !(-26..=26).contains(&exponent) {
            return;
        }
        let five = 5u128.pow(exponent.unsigned_abs());
        let (left, scale) = if exponent < 0 {
            (odd * five, 1)
        } else {
            (odd, five)
        };
        let whole: u128 = digits.parse().unwrap_or(0);
        let last = if left == (2 * whole - 1) * scale {
            self.text[n - 1] - 1
        } else if left == (2 * whole + 1) * scale && self.text[n - 1] < b'9' {
            self.text[n - 1] + 1
        } else {
            return;
        };
        let before = std::mem::replace(&mut self.text[n - 1], last);
        let reads_back = {
            let (digits, _) = self.parts();
            format!("{digits}e{exponent}").parse() == Ok(f)
        };
        if !reads_back {
            self.text[n - 1] = before;
        }
    }
}

impl std::fmt::Write for ShortDigits {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        for c in s.bytes() {
            match c {
                b'e' => self.in_exponent = true,
                b'-' => self.negative = true,
                b'0'..=b'9' if self.in_exponent => {
                    self.exponent = self.exponent * 10 + i32::from(c - b'0');
                }
                b'0'..=b'9' => {
                    let place = self.text.get_mut(self.digits).ok_or(std::fmt::Error)?;
                    *place = c;
                    self.digits += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where the parts of a float's text end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sign,
    First,
    Whole,
    Point,
    Fraction,
    ExponentSign,
    ExponentFirst,
    Exponent,
}

impl Part {
    /// The part that `c` belongs to when it follows `self`, or `None`.
    fn next(self, c: u8) -> Option<Part> {
        let digit = c.is_ascii_digit();
        Some(match (self, c) {
            (Part::Sign, b'+' | b'-') => Part::First,
            (Part::Sign | Part::First | Part::Whole, _) if digit => Part::Whole,
            (Part::Whole, b'.' | b',') => Part::Point,
            (Part::Point | Part::Fraction, _) if digit => Part::Fraction,
            (Part::Fraction, b'e' | b'E') => Part::ExponentSign,
            (Part::ExponentSign, b'+' | b'-') => Part::ExponentFirst,
            (Part::ExponentSign | Part::ExponentFirst | Part::Exponent, _) if digit => {
                Part::Exponent
            }
            _ => return None,
        })
    }
    fn complete(self) -> bool {
        matches!(self, Part::Fraction | Part::Exponent)
    }
}

/// The float of a text that [`Part`] accepts; `None` when it is too large.
fn value(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let f: f64 = if text.contains(',') {
        text.replace(',', ".").parse().ok()?
    } else {
        text.parse().ok()?
    };
    f.is_finite().then_some(f)
}

/// `binary_to_float/1`: sign, digits, point, digits, exponent; all of the text (which ends at
/// the first zero byte, as the emulator reads it).
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let end = text.iter().position(|c| *c == 0).unwrap_or(text.len());
    let text = &text[..end];
    let mut part = Part::Sign;
    for c in text {
        part = part.next(*c)?;
    }
    if part.complete() { value(text) } else { None }
}

/// Why a list does not begin with a float.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FloatPrefixError {
    /// Not a list at all.
    #[error("not a list")]
    NotAList,
    /// It begins with something else.
    #[error("the list does not begin with a float")]
    NoFloat,
}

/// The float that a list begins with, and what follows it (`string:to_float/1`).
pub fn string_to_float(list: Word) -> Result<(f64, Word), FloatPrefixError> {
    if !list.is_list() {
        return Err(FloatPrefixError::NotAList);
    }
    let mut part = Part::Sign;
    let mut text = Vec::new();
    let mut best = None;
    let mut rest = list;
    while let Some((head, tail)) = rest.as_cons() {
        let Some(Ok(c)) = head.as_small().map(u8::try_from) else {
            break;
        };
        let Some(next) = part.next(c) else { break };
        part = next;
        text.push(c);
        rest = tail;
        if part.complete() {
            best = Some((text.len(), rest));
        }
    }
    let (n, rest) = best.ok_or(FloatPrefixError::NoFloat)?;
    value(&text[..n])
        .map(|f| (f, rest))
        .ok_or(FloatPrefixError::NoFloat)
}
