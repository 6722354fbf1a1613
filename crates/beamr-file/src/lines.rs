//! The line chunk: source files and lines.
//!
//! `line` instructions hold an index into [`Lines::entries`]. Entry 0 is no
//! place. File 0 is the module's own name with `.erl`; the others are named.

use crate::error::{ChunkId, ErrorKind, Result};
use crate::reader::{Number, Reader, TAG_A, TAG_I, Widths, Writer};

/// A place in a source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LineEntry {
    /// The file: 0 is the module's own, else 1 + an index of [`Lines::files`].
    pub file: u32,
    /// The line.
    pub line: u32,
}

/// The line table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The version of the format; 0.
    pub version: u32,
    /// Bit 0: `executable_line` instructions are there; bit 1: they count always.
    pub flags: u32,
    /// How many instructions hold an index.
    pub instr_count: u32,
    /// The places; the first is no place.
    pub entries: Vec<LineEntry>,
    /// The named files, from file 1 on. They are UTF-8 (older compilers: Latin-1).
    pub files: Vec<Vec<u8>>,
    /// The items as they stood, when they are not as a compiler writes them.
    odd: Option<Vec<u8>>,
}

impl Lines {
    pub(crate) fn decode(data: &[u8]) -> Result<Lines> {
        let mut r = Reader::new(ChunkId(*b"Line"), data);
        let version = r.u32()?;
        if version != 0 {
            let kind = ErrorKind::UnknownVersion {
                what: "line table version",
                value: version,
            };
            return Err(r.err_at(0, kind));
        }
        let flags = r.u32()?;
        let instr_count = r.u32()?;
        let n = r.u32()? as usize;
        let files = r.u32()? as usize;
        if n > r.remaining() || files > r.remaining() / 2 {
            return Err(r.err_at(12, ErrorKind::Truncated));
        }
        let start = r.pos();
        let mut entries = Vec::with_capacity(n + 1);
        entries.push(LineEntry::default());
        let mut file = 0;
        while entries.len() <= n {
            let at = r.pos();
            match r.compact(&mut Widths::default())? {
                (TAG_A, Number::Word(v)) if v >= 0 && v as usize <= files => file = v as u32,
                (TAG_I, Number::Word(v)) if (0..=u32::MAX as i64).contains(&v) => {
                    entries.push(LineEntry {
                        file,
                        line: v as u32,
                    });
                }
                _ => return Err(r.err_at(at, ErrorKind::BadValue("line item"))),
            }
        }
        let items = &data[start..r.pos()];
        let mut names = Vec::with_capacity(files);
        for _ in 0..files {
            let len = r.u16()? as usize;
            names.push(r.bytes(len)?.to_vec());
        }
        r.finish()?;
        let mut lines = Lines {
            version,
            flags,
            instr_count,
            entries,
            files: names,
            odd: None,
        };
        let mut w = Writer::canonical();
        lines.items(&mut w);
        if w.out != items {
            lines.odd = Some(items.to_vec());
        }
        Ok(lines)
    }

    fn items(&self, w: &mut Writer<'_>) {
        let mut file = 0;
        for e in self.entries.iter().skip(1) {
            if e.file != file {
                file = e.file;
                w.compact(TAG_A, file as i64);
            }
            w.compact(TAG_I, e.line as i64);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::canonical();
        w.u32(self.version);
        w.u32(self.flags);
        w.u32(self.instr_count);
        w.u32(self.entries.len().saturating_sub(1) as u32);
        w.u32(self.files.len() as u32);
        match &self.odd {
            Some(items) => w.out.extend_from_slice(items),
            None => self.items(&mut w),
        }
        for name in &self.files {
            w.out.extend_from_slice(&(name.len() as u16).to_be_bytes());
            w.out.extend_from_slice(name);
        }
        w.out
    }
}
