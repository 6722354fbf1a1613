//! Character tables for ISO 8859-1, which `re` used up to OTP 27.
//!
//! The layout is PCRE2's: lower case, other case, ten bit maps of classes, class flags by character.

use std::sync::LazyLock;

const CLASSES: usize = 10;
const BITS: usize = 512;
const TYPES: usize = BITS + CLASSES * 32;

/// See the module.
pub static TABLES: LazyLock<[u8; TYPES + 256]> = LazyLock::new(build);

fn upper(c: u8) -> bool {
    c.is_ascii_uppercase() || (192..=222).contains(&c) && c != 215
}

fn lower(c: u8) -> bool {
    c.is_ascii_lowercase() || matches!(c, 170 | 181 | 186) || c >= 223 && c != 247
}

fn build() -> [u8; TYPES + 256] {
    let mut t = [0; TYPES + 256];
    for c in 0..=255u8 {
        let i = usize::from(c);
        // The two lower case letters at the ends of their rows have no upper case in Latin-1.
        let has_upper = c.is_ascii_lowercase() || (224..=254).contains(&c) && c != 247;
        t[i] = if upper(c) { c + 32 } else { c };
        t[256 + i] = if upper(c) {
            c + 32
        } else if has_upper {
            c - 32
        } else {
            c
        };
        let letter = upper(c) || lower(c);
        let digit = c.is_ascii_digit();
        let word = letter || digit || c == b'_';
        let space = matches!(c, 9..=13 | 32);
        let graph = c >= 160 || c.is_ascii_graphic();
        let classes: [bool; CLASSES] = [
            space,
            c.is_ascii_hexdigit(),
            digit,
            upper(c),
            lower(c),
            word,
            graph,
            graph || c == 32,
            graph && !letter && !digit,
            c < 32 || (127..160).contains(&c),
        ];
        for (k, on) in classes.iter().enumerate() {
            if *on {
                t[BITS + k * 32 + i / 8] |= 1 << (i % 8);
            }
        }
        let flags = [space, letter, lower(c), digit, word];
        for (bit, on) in flags.iter().enumerate() {
            t[TYPES + i] |= u8::from(*on) << bit;
        }
    }
    t
}
