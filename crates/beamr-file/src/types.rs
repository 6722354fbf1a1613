//! The type chunk: what the compiler knew of the value in a typed register.
//!
//! Types are hints; code that is not trusted must not be run by them. Four
//! versions of the format exist. Entries are given in the layout of the newest
//! (the bits of [`type_bits`]); the original bits are kept for writing.

use crate::error::{ChunkId, ErrorKind, Result};
use crate::reader::{Reader, Writer};

/// The bits of [`TypeEntry::bits`], in the layout of version 4.
pub mod type_bits {
    /// May be an atom.
    pub const ATOM: u16 = 1 << 0;
    /// May be a bitstring (or a match context).
    pub const BITSTRING: u16 = 1 << 1;
    /// May be a cons cell.
    pub const CONS: u16 = 1 << 2;
    /// May be a float.
    pub const FLOAT: u16 = 1 << 3;
    /// May be a fun.
    pub const FUN: u16 = 1 << 4;
    /// May be an integer.
    pub const INTEGER: u16 = 1 << 5;
    /// May be a map.
    pub const MAP: u16 = 1 << 6;
    /// May be the empty list.
    pub const NIL: u16 = 1 << 7;
    /// May be a pid.
    pub const PID: u16 = 1 << 8;
    /// May be a port.
    pub const PORT: u16 = 1 << 9;
    /// May be a reference.
    pub const REFERENCE: u16 = 1 << 10;
    /// May be a tuple.
    pub const TUPLE: u16 = 1 << 11;
    /// May be a native record.
    pub const RECORD: u16 = 1 << 12;
    /// Every type bit: nothing is known.
    pub const ANY: u16 = (1 << 13) - 1;
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeEntry {
    /// The types it may have, of [`type_bits`].
    pub bits: u16,
    /// If it is an integer, its least value.
    pub lower: Option<i64>,
    /// If it is an integer, its greatest value.
    pub upper: Option<i64>,
    /// If it is a bitstring, its size is a multiple of this; 1 when unknown.
    pub unit: u16,
    raw_bits: u16,
    raw_range: (i64, i64),
}

/// The type table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types {
    /// The version of the format; 0 when the module has no type chunk.
    pub version: u32,
    /// The entries, by the index of typed registers.
    pub entries: Vec<TypeEntry>,
    raw: Vec<u8>,
}

impl Types {
    /// The entry of an index.
    pub fn get(&self, index: u32) -> Option<&TypeEntry> {
        self.entries.get(index as usize)
    }

    pub(crate) fn decode(data: &[u8]) -> Result<Types> {
        let mut r = Reader::new(ChunkId(*b"Type"), data);
        let version = r.u32()?;
        if !(1..=4).contains(&version) {
            // The loader too ignores types of a version that it does not know.
            return Ok(Types {
                version,
                entries: Vec::new(),
                raw: r.rest().to_vec(),
            });
        }
        let n = r.count(if version == 1 { 18 } else { 2 })?;
        let mut entries = Vec::with_capacity(n);
        for _ in 0..n {
            let at = r.pos();
            let raw = r.u16()?;
            let entry = if version == 1 {
                let range = (r.u64()? as i64, r.u64()? as i64);
                let known = range.0 <= range.1;
                TypeEntry {
                    // Bit 2 was a match context of its own; a reader sees it as a bitstring.
                    bits: without_context_bit(raw),
                    lower: known.then_some(range.0),
                    upper: known.then_some(range.1),
                    unit: 1,
                    raw_bits: raw,
                    raw_range: range,
                }
            } else {
                let (has_lower, has_upper, has_unit, bits) = match version {
                    2 => (1 << 13, 1 << 14, 1 << 15, without_context_bit(raw & 0x1fff)),
                    3 => (1 << 12, 1 << 13, 1 << 14, raw & 0x0fff),
                    _ => (1 << 13, 1 << 14, 1 << 15, raw & 0x1fff),
                };
                let lower = if raw & has_lower != 0 {
                    Some(r.u64()? as i64)
                } else {
                    None
                };
                let upper = if raw & has_upper != 0 {
                    Some(r.u64()? as i64)
                } else {
                    None
                };
                let unit = if raw & has_unit != 0 {
                    r.u8()? as u16 + 1
                } else {
                    1
                };
                TypeEntry {
                    bits,
                    lower,
                    upper,
                    unit,
                    raw_bits: raw,
                    raw_range: (0, 0),
                }
            };
            if entry.bits == 0 {
                return Err(r.err_at(at, ErrorKind::BadValue("type without a possible value")));
            }
            entries.push(entry);
        }
        r.finish()?;
        Ok(Types {
            version,
            entries,
            raw: Vec::new(),
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::canonical();
        w.u32(self.version);
        if !(1..=4).contains(&self.version) {
            w.out.extend_from_slice(&self.raw);
            return w.out;
        }
        w.u32(self.entries.len() as u32);
        let has_unit = if self.version == 3 { 1 << 14 } else { 1 << 15 };
        for e in &self.entries {
            w.out.extend_from_slice(&e.raw_bits.to_be_bytes());
            if self.version == 1 {
                w.out.extend_from_slice(&e.raw_range.0.to_be_bytes());
                w.out.extend_from_slice(&e.raw_range.1.to_be_bytes());
                continue;
            }
            for bound in [e.lower, e.upper].into_iter().flatten() {
                w.out.extend_from_slice(&bound.to_be_bytes());
            }
            if e.raw_bits & has_unit != 0 {
                w.out.push((e.unit - 1) as u8);
            }
        }
        w.out
    }
}

/// Versions 1 and 2 gave a match context bit 2; since then it counts as a
/// bitstring and the bits above moved down.
fn without_context_bit(raw: u16) -> u16 {
    let bitstring = (raw >> 1 | raw >> 2) & 1;
    raw & 1 | bitstring << 1 | (raw >> 1) & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data: &[u8], bits: u16, bounds: (Option<i64>, Option<i64>), unit: u16) {
        let types = Types::decode(data).unwrap();
        let t = types.entries[0];
        assert_eq!(
            (t.bits, (t.lower, t.upper), t.unit),
            (bits, bounds, unit),
            "{data:?}"
        );
        assert_eq!(types.encode(), data);
    }

    /// The same two types, in each version: an integer from 1 on or a bitstring of
    /// whole bytes, as far as the version can say it.
    #[test]
    fn versions() {
        use type_bits::*;
        let head = |version| [0, 0, 0, version, 0, 0, 0, 1];
        let one = 1i64.to_be_bytes();
        let two = 2i64.to_be_bytes();
        // Version 1: the context bit 2 moves all above it; bounds always there.
        let data = [&head(1)[..], &[0, 1 << 6], &one, &two].concat();
        check(&data, INTEGER, (Some(1), Some(2)), 1);
        let data = [&head(1)[..], &[0, 1 << 2], &[0; 8], &[0xff; 8]].concat();
        check(&data, BITSTRING, (None, None), 1);
        // Version 2: the same bits, flags on top.
        let data = [&head(2)[..], &[0xa0, 1 << 6 | 1 << 1], &one, &[7]].concat();
        check(&data, INTEGER | BITSTRING, (Some(1), None), 8);
        // Version 3: no context bit, flags from bit 12.
        let data = [&head(3)[..], &[0x50, 1 << 5 | 1 << 1], &one, &[7]].concat();
        check(&data, INTEGER | BITSTRING, (Some(1), None), 8);
        let data = [&head(3)[..], &[0x20, 1 << 5], &two].concat();
        check(&data, INTEGER, (None, Some(2)), 1);
        // Version 4: records have bit 12, flags from bit 13.
        let data = [&head(4)[..], &[0xb0, 1 << 5 | 1 << 1], &one, &[7]].concat();
        check(&data, INTEGER | BITSTRING | RECORD, (Some(1), None), 8);
    }

    #[test]
    fn a_version_to_come_is_kept_but_not_read() {
        let data = [0, 0, 0, 9, 1, 2, 3];
        let types = Types::decode(&data).unwrap();
        assert!(types.entries.is_empty());
        assert_eq!(types.encode(), data);
    }

    #[test]
    fn a_type_without_values_is_an_error() {
        assert!(Types::decode(&[0, 0, 0, 4, 0, 0, 0, 1, 0, 0]).is_err());
    }
}
