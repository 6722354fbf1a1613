//! Characters and bytes of a device.

use beamr_term::text::{self, WalkLimit};
use beamr_term::{Build, Fragment, Word};

/// The encoding of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Encoding {
    /// What it is before anybody has set one: UTF-8 for requests of characters, and bytes as they are for those of Latin-1, which is
    /// what `file:read/2` and `file:write/2` make.
    #[default]
    Default,
    /// UTF-8.
    Unicode,
    /// Latin-1.
    Latin1,
}

impl Encoding {
    /// Whether bytes are characters for a request.
    pub fn is_latin1(self, request: Request) -> bool {
        match self {
            Encoding::Default => request == Request::Latin1,
            Encoding::Unicode => false,
            Encoding::Latin1 => true,
        }
    }
}

/// The encoding that a request names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// `unicode`.
    Unicode,
    /// `latin1`, and requests that name none.
    Latin1,
}

/// The bytes of chardata (of an iolist for a request of Latin-1) on a device; `None` when it is no such thing.
pub fn encode(device: Encoding, request: Request, data: Word) -> Option<Vec<u8>> {
    let latin1 = device.is_latin1(request);
    match request {
        Request::Latin1 => {
            let bytes = text::iolist_to_bytes(data, WalkLimit::NONE).ok()?;
            if latin1 || bytes.is_ascii() {
                return Some(bytes);
            }
            let text: String = bytes.into_iter().map(char::from).collect();
            Some(text.into_bytes())
        }
        Request::Unicode => {
            let text = text::chardata_to_string(data, WalkLimit::NONE).ok()?;
            if !latin1 || text.is_ascii() {
                return Some(text.into_bytes());
            }
            let mut out = Vec::with_capacity(text.len());
            for c in text.chars() {
                match u8::try_from(c as u32) {
                    Ok(b) => out.push(b),
                    Err(_) => out.extend_from_slice(format!("\\x{{{:X}}}", c as u32).as_bytes()),
                }
            }
            Some(out)
        }
    }
}

/// Why bytes of a device are no characters for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untranslatable {
    /// Not the encoding of the device.
    Invalid,
    /// Characters that Latin-1 does not have.
    NotLatin1,
}

/// Characters that were read, for an answer.
pub enum Chars<'a> {
    /// Bytes that are characters.
    Latin1(&'a [u8]),
    /// UTF-8.
    Utf8(&'a str),
}

/// The characters of bytes of a device.
pub fn decode(
    device: Encoding,
    request: Request,
    bytes: &[u8],
) -> Result<Chars<'_>, Untranslatable> {
    if device.is_latin1(request) || bytes.is_ascii() {
        return Ok(Chars::Latin1(bytes));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Untranslatable::Invalid)?;
    if request == Request::Latin1 && text.chars().any(|c| c > '\u{ff}') {
        return Err(Untranslatable::NotLatin1);
    }
    Ok(Chars::Utf8(text))
}

impl Chars<'_> {
    /// Words that [`Chars::term`] takes, about.
    pub fn words(&self, binary: bool) -> usize {
        let n = match self {
            Chars::Latin1(b) => b.len(),
            Chars::Utf8(t) => t.len(),
        };
        if binary { n / 4 + 8 } else { 2 * n }
    }
    /// A list of code points, or a binary in the encoding of the request.
    pub fn term(&self, f: &mut Fragment, request: Request, binary: bool) -> Word {
        match (self, binary, request) {
            (Chars::Latin1(b), false, _) => text::list_of_bytes(f, b, Word::NIL),
            (Chars::Utf8(t), false, _) => text::list_of_chars(f, t, Word::NIL),
            (Chars::Latin1(b), true, Request::Unicode) if !b.is_ascii() => {
                let text: String = b.iter().copied().map(char::from).collect();
                f.binary(text.as_bytes())
            }
            (Chars::Latin1(b), true, _) => f.binary(b),
            (Chars::Utf8(t), true, Request::Unicode) => f.binary(t.as_bytes()),
            (Chars::Utf8(t), true, Request::Latin1) => {
                // `decode` has seen that all of them fit.
                let bytes: Vec<u8> = t.chars().map(|c| c as u32 as u8).collect();
                f.binary(&bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_has_no_wide_characters() {
        let all = "å≤".as_bytes();
        let is = |e, r| decode(e, r, all).map(|c| matches!(c, Chars::Latin1(_)));
        assert_eq!(is(Encoding::Default, Request::Latin1), Ok(true));
        assert_eq!(is(Encoding::Default, Request::Unicode), Ok(false));
        assert_eq!(is(Encoding::Latin1, Request::Unicode), Ok(true));
        assert_eq!(
            is(Encoding::Unicode, Request::Latin1),
            Err(Untranslatable::NotLatin1)
        );
        assert!(matches!(
            decode(Encoding::Unicode, Request::Unicode, b"\xff"),
            Err(Untranslatable::Invalid)
        ));
    }

    #[test]
    fn output() {
        let mut f = Fragment::with_capacity(16);
        let wide = f.string("å≤");
        let bytes = f.binary(b"\xe5");
        let unicode = |e| encode(e, Request::Unicode, wide);
        assert_eq!(unicode(Encoding::Default).unwrap(), "å≤".as_bytes());
        assert_eq!(unicode(Encoding::Latin1).unwrap(), b"\xe5\\x{2264}");
        let latin1 = |e| encode(e, Request::Latin1, bytes);
        assert_eq!(latin1(Encoding::Default).unwrap(), b"\xe5");
        assert_eq!(latin1(Encoding::Unicode).unwrap(), "å".as_bytes());
        assert_eq!(encode(Encoding::Latin1, Request::Latin1, wide), None);
        assert_eq!(encode(Encoding::Latin1, Request::Unicode, bytes), None);
    }
}
