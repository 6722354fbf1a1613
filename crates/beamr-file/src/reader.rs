//! A cursor over the data of one chunk, and its counterpart for writing.
//!
//! Here are big-endian words and the compact number format that operands use.
//! A compact number is a 3-bit tag and a value: below 16 in one byte, below
//! 2048 in two, else as a big-endian two's complement number of 2 or more
//! bytes. The same value has several encodings; the canonical one is the
//! shortest. What is not canonical is noted in [`Widths`], so that writing
//! gives the same bytes again.

use crate::error::{ChunkId, ErrorKind, FileError, Result};

/// Cursor over the data of a chunk.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    chunk: ChunkId,
    data: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    pub fn new(chunk: ChunkId, data: &'a [u8]) -> Self {
        Reader {
            chunk,
            data,
            pos: 0,
        }
    }

    pub fn pos(&self) -> usize {
        self.pos
    }

    pub fn remaining(&self) -> usize {
        self.data.len() - self.pos
    }

    pub fn is_empty(&self) -> bool {
        self.pos == self.data.len()
    }

    pub fn err(&self, kind: ErrorKind) -> FileError {
        self.err_at(self.pos, kind)
    }

    pub fn err_at(&self, offset: usize, kind: ErrorKind) -> FileError {
        FileError {
            chunk: self.chunk,
            offset,
            kind,
        }
    }

    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        if n > self.remaining() {
            return Err(self.err(ErrorKind::Truncated));
        }
        let out = &self.data[self.pos..self.pos + n];
        self.pos += n;
        Ok(out)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        let out = &self.data[self.pos..];
        self.pos = self.data.len();
        out
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        let mut out = [0; N];
        out.copy_from_slice(bytes);
        Ok(out)
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// A count of items of at least `min` bytes each: cannot be more than what
    /// is left of the data, so it bounds an allocation.
    pub fn count(&mut self, min: usize) -> Result<usize> {
        let at = self.pos;
        let n = self.u32()? as usize;
        if n > self.remaining() / min.max(1) {
            return Err(self.err_at(at, ErrorKind::Truncated));
        }
        Ok(n)
    }

    pub fn finish(self) -> Result<()> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.err(ErrorKind::TrailingBytes))
        }
    }

    /// Reads a compact number. `widths` counts it and notes its width when it
    /// is not canonical.
    pub fn compact(&mut self, widths: &mut Widths) -> Result<(u8, Number)> {
        let first = self.u8()?;
        let tag = first & 7;
        let (value, canonical, width);
        if first & 0b1000 == 0 {
            return self.counted(widths, tag, Number::Word((first >> 4) as i64));
        } else if first & 0b1_0000 == 0 {
            let v = ((first as i64) >> 5) << 8 | self.u8()? as i64;
            canonical = v >= 16;
            width = 1;
            value = Number::Word(v);
        } else {
            let at = self.pos;
            let n = match first >> 5 {
                7 => {
                    // A length longer than it need be could not be written again.
                    let mut inner = Widths::default();
                    if self.data.get(self.pos).is_some_and(|b| b >> 3 == 0b1_1111) {
                        // Nor is a length that has a length of its own ever needed.
                        return Err(self.err(ErrorKind::BadOperand("length")));
                    }
                    let (tag, extra) = self.compact(&mut inner)?;
                    match extra {
                        Number::Word(extra)
                            if tag == TAG_U && extra >= 0 && inner.list.is_empty() =>
                        {
                            (extra as usize).saturating_add(9)
                        }
                        _ => return Err(self.err_at(at, ErrorKind::BadOperand("length"))),
                    }
                }
                n => n as usize + 2,
            };
            if n > MAX_NUMBER_BYTES {
                return Err(self.err_at(
                    at,
                    ErrorKind::Limit {
                        what: "integer bytes",
                        limit: MAX_NUMBER_BYTES,
                    },
                ));
            }
            let bytes = self.bytes(n)?;
            let minimal = minimal_twos_complement(bytes).max(2);
            value = if n <= 8 || minimal <= 8 {
                let mut v: i64 = if bytes[0] & 0x80 != 0 { -1 } else { 0 };
                for &b in &bytes[n - n.min(8)..] {
                    v = v << 8 | b as i64;
                }
                Number::Word(v)
            } else {
                Number::Big(bytes[n - minimal..].to_vec())
            };
            canonical = minimal == n && !matches!(value, Number::Word(v) if (0..2048).contains(&v));
            width = n as u32;
        }
        if !canonical {
            widths.note(width);
        }
        self.counted(widths, tag, value)
    }

    fn counted(&self, widths: &mut Widths, tag: u8, n: Number) -> Result<(u8, Number)> {
        widths.next = widths.next.wrapping_add(1);
        Ok((tag, n))
    }
}

/// Longest integer operand: 2^16 bits are far over what a compiler emits as an
/// operand (larger ones become literals), and a bound is needed.
const MAX_NUMBER_BYTES: usize = 8 << 10;

/// Tag of unsigned numbers.
pub(crate) const TAG_U: u8 = 0;
/// Tag of integers.
pub(crate) const TAG_I: u8 = 1;
/// Tag of atoms.
pub(crate) const TAG_A: u8 = 2;
/// Tag of X registers.
pub(crate) const TAG_X: u8 = 3;
/// Tag of Y registers.
pub(crate) const TAG_Y: u8 = 4;
/// Tag of labels.
pub(crate) const TAG_F: u8 = 5;
/// Tag of characters.
pub(crate) const TAG_H: u8 = 6;
/// Tag of extended operands.
pub(crate) const TAG_Z: u8 = 7;

/// A decoded compact number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Fits in a machine word.
    Word(i64),
    /// Two's complement, big-endian, shortest form, more than 8 bytes.
    Big(Vec<u8>),
}

fn minimal_twos_complement(bytes: &[u8]) -> usize {
    let mut skip = 0;
    while skip + 1 < bytes.len()
        && (bytes[skip] == 0 && bytes[skip + 1] & 0x80 == 0
            || bytes[skip] == 0xff && bytes[skip + 1] & 0x80 != 0)
    {
        skip += 1;
    }
    bytes.len() - skip
}

/// The compact numbers of a chunk that are longer than they need be: the
/// ordinal of the number in the chunk, and its byte width (1 for the two-byte
/// form, else the number of value bytes).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths {
    list: Vec<(u32, u32)>,
    next: u32,
}

impl Widths {
    fn note(&mut self, width: u32) {
        self.list.push((self.next, width));
    }

    #[cfg(test)]
    /// Whether every number has its shortest form.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Writes compact numbers in the order in which they were read.
pub(crate) struct Writer<'a> {
    pub out: Vec<u8>,
    widths: &'a [(u32, u32)],
    next: u32,
}

impl<'a> Writer<'a> {
    pub fn new(widths: &'a Widths) -> Self {
        Writer {
            out: Vec::new(),
            widths: &widths.list,
            next: 0,
        }
    }

    pub fn canonical() -> Writer<'static> {
        Writer {
            out: Vec::new(),
            widths: &[],
            next: 0,
        }
    }

    pub fn u32(&mut self, v: u32) {
        self.out.extend_from_slice(&v.to_be_bytes());
    }

    fn forced(&mut self) -> Option<usize> {
        let at = self.next;
        self.next = self.next.wrapping_add(1);
        match self.widths {
            [(n, w), rest @ ..] if *n == at => {
                self.widths = rest;
                Some(*w as usize)
            }
            _ => None,
        }
    }

    pub fn compact(&mut self, tag: u8, v: i64) {
        let forced = self.forced();
        if (0..16).contains(&v) && forced.is_none() {
            self.out.push((v as u8) << 4 | tag);
        } else if (0..2048).contains(&v) && matches!(forced, None | Some(1)) {
            self.out.push(((v >> 8) as u8) << 5 | 0b1000 | tag);
            self.out.push(v as u8);
        } else {
            let bytes = v.to_be_bytes();
            let minimal = minimal_twos_complement(&bytes).max(2);
            self.long(tag, &bytes[8 - minimal..], forced.unwrap_or(minimal));
        }
    }

    pub fn compact_big(&mut self, tag: u8, twos_complement: &[u8]) {
        let width = self.forced().unwrap_or(twos_complement.len());
        self.long(tag, twos_complement, width);
    }

    fn long(&mut self, tag: u8, bytes: &[u8], width: usize) {
        let width = width.max(bytes.len());
        if width <= 8 {
            self.out.push(((width - 2) as u8) << 5 | 0b1_1000 | tag);
        } else {
            self.out.push(0b1111_1000 | tag);
            let extra = width - 9;
            if extra < 16 {
                self.out.push((extra as u8) << 4);
            } else if extra < 2048 {
                self.out
                    .extend([((extra >> 8) as u8) << 5 | 0b1000, extra as u8]);
            } else {
                self.out.extend([0b1_1000, (extra >> 8) as u8, extra as u8]);
            }
        }
        let fill = if bytes[0] & 0x80 != 0 { 0xff } else { 0 };
        self.out
            .extend(std::iter::repeat_n(fill, width - bytes.len()));
        self.out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], tag: u8, value: Number, canonical: bool) {
        let mut widths = Widths::default();
        let mut r = Reader::new(ChunkId(*b"Code"), bytes);
        assert_eq!(
            r.compact(&mut widths),
            Ok((tag, value.clone())),
            "{bytes:?}"
        );
        assert!(r.is_empty());
        assert_eq!(widths.is_empty(), canonical, "{bytes:?}");
        let mut w = Writer::new(&widths);
        match value {
            Number::Word(v) => w.compact(tag, v),
            Number::Big(b) => w.compact_big(tag, &b),
        }
        assert_eq!(w.out, bytes);
    }

    #[test]
    fn compact_forms() {
        check(&[0x00], TAG_U, Number::Word(0), true);
        check(&[0xf1], TAG_I, Number::Word(15), true);
        check(&[0x09, 16], TAG_I, Number::Word(16), true);
        check(&[0xe9, 0xff], TAG_I, Number::Word(2047), true);
        check(&[0x09, 3], TAG_I, Number::Word(3), false);
        check(&[0x19, 0x08, 0x00], TAG_I, Number::Word(2048), true);
        check(&[0x19, 0xff, 0xff], TAG_I, Number::Word(-1), true);
        check(&[0x19, 0x00, 0x05], TAG_I, Number::Word(5), false);
        check(&[0x39, 0x00, 0xff, 0xff], TAG_I, Number::Word(65535), true);
        check(&[0x39, 0x00, 0x08, 0x00], TAG_I, Number::Word(2048), false);
        check(
            &[0xd9, 0x80, 0, 0, 0, 0, 0, 0, 0],
            TAG_I,
            Number::Word(i64::MIN),
            true,
        );
        let big = [0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        let mut bytes = vec![0xf9, 0x00];
        bytes.extend(big);
        check(&bytes, TAG_I, Number::Big(big.to_vec()), true);
        let mut wide = vec![0xf9, 0x10, 0];
        wide.extend(big);
        check(&wide, TAG_I, Number::Big(big.to_vec()), false);
    }

    #[test]
    fn truncated_and_huge() {
        for bytes in [
            &[0x08][..],
            &[0x18, 1],
            &[0xf8],
            &[0xf8, 0x18, 0x7f, 0xff, 0xff],
        ] {
            let mut r = Reader::new(ChunkId(*b"Code"), bytes);
            assert!(r.compact(&mut Widths::default()).is_err(), "{bytes:?}");
        }
        // Lengths of lengths of lengths must not nest calls.
        let deep = vec![0xf8; 1 << 20];
        let mut r = Reader::new(ChunkId(*b"Code"), &deep);
        assert!(r.compact(&mut Widths::default()).is_err());
    }
}
