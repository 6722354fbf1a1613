//! Where PCRE2 10.47, which OTP 29 has, sees errors that 10.46 places on the character itself: behind it.

use super::pattern::{self, CompileError};

/// Text and offset of an error.
pub fn error(e: CompileError, p: &[u8]) -> (String, usize) {
    let at = e.offset.min(p.len());
    let text = pattern::message(e.code);
    let behind = at + character(p, at);
    let offset = match e.code {
        107 | 108 | 109 | 111 | 122 | 128 | 141 | 144 | 155 | 164 | 167 | 168 | 182 => behind,
        112 => memchr::memmem::find(&p[at..], b":]").map_or(at, |n| at + n + 2),
        // A number after a backslash, or `\g<1>`.
        115 if p[..at].ends_with(b"\\") || p.get(at) == Some(&b'>') => behind,
        129 if p[..at].ends_with(b"(?") && p.get(at) == Some(&b'+') => {
            return ("digit expected after (?+".into(), at + 2);
        }
        133 | 186 => return (pattern::message(186), 0),
        137 if p.get(at.saturating_sub(1)) == Some(&b'N') => behind,
        _ => at,
    };
    (text, offset.min(p.len()))
}

/// Bytes of the character at `at`.
fn character(p: &[u8], at: usize) -> usize {
    let Some(rest) = p.get(at..) else { return 0 };
    match rest.first() {
        None => 0,
        Some(b) if b.is_ascii() => 1,
        Some(_) => {
            let more = rest[1..].iter().take_while(|b| **b & 0xC0 == 0x80).count();
            1 + more.min(3)
        }
    }
}
