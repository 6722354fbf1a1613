//! Two chunks that borrow the operand encoding of code: `Recs` (definitions of
//! native records, from OTP 29) and `DbgB` (variables at debugger stops, from
//! OTP 28).

use crate::code::{Arg, Operands};
use crate::error::{ChunkId, ErrorKind, Result};
use crate::op::Op;
use crate::reader::Reader;

/// The definition of a native record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name, an atom number.
    pub name: u32,
    /// Whether other modules may read its fields; an atom number.
    pub exported: u32,
    fields: Arg,
    first: u32,
}

/// A field of a native record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name, an atom number.
    pub name: u32,
    /// The default: an atom, an integer, nil or a literal.
    pub default: Option<Arg>,
}

/// The native records of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// The version of the format; 0.
    pub version: u32,
    /// The number of fields of all records.
    pub field_count: u32,
    /// The definitions.
    pub records: Vec<Record>,
    operands: Operands,
}

impl Records {
    /// The fields of a record in their order.
    pub fn fields(&self, record: &Record) -> impl ExactSizeIterator<Item = Field> {
        let list = match record.fields {
            Arg::List(span) => self.operands.list(span),
            _ => &[],
        };
        list.as_chunks::<2>().0.iter().map(|&[name, value]| Field {
            name: match name {
                Arg::A(name) => name,
                _ => 0,
            },
            default: match value {
                Arg::U(_) => None,
                value => Some(value),
            },
        })
    }

    /// The operands that definitions refer to (for large integers).
    pub fn operands(&self) -> &Operands {
        &self.operands
    }

    pub(crate) fn decode(data: &[u8], atoms: usize, literals: usize) -> Result<Records> {
        let mut r = Reader::new(ChunkId(*b"Recs"), data);
        let version = r.u32()?;
        if version != 0 {
            let kind = ErrorKind::UnknownVersion {
                what: "record version",
                value: version,
            };
            return Err(r.err_at(0, kind));
        }
        let n = r.count(4)?;
        let field_count = r.u32()?;
        let mut operands = Operands::default();
        let mut records = Vec::with_capacity(n);
        let mut fields_seen = 0;
        for _ in 0..n {
            let at = r.pos();
            if r.u8()? != Op::CallLast.number() {
                return Err(r.err_at(at, ErrorKind::BadValue("record item")));
            }
            let first = operands.decode(&mut r, 3)?;
            let [name, exported, fields] = [0, 1, 2].map(|i| operands.get(first + i));
            let atom = |a: Arg| matches!(a, Arg::A(n) if n != 0 && n as usize <= atoms);
            let list = match fields {
                Arg::List(span) => operands.list(span),
                _ => return Err(r.err_at(at, ErrorKind::BadValue("record fields"))),
            };
            let (pairs, odd) = list.as_chunks::<2>();
            let value = |v: Arg| match v {
                Arg::A(n) => n as usize <= atoms,
                Arg::Literal(n) => (n as usize) < literals,
                Arg::U(n) => n == 0,
                Arg::I(_) | Arg::Big(_) => true,
                _ => false,
            };
            if !odd.is_empty() || pairs.iter().any(|&[n, v]| !atom(n) || !value(v)) {
                return Err(r.err_at(at, ErrorKind::BadValue("record fields")));
            }
            fields_seen += pairs.len();
            match (name, exported) {
                (Arg::A(name), Arg::A(exported))
                    if atom(Arg::A(name)) && atom(Arg::A(exported)) =>
                {
                    records.push(Record {
                        name,
                        exported,
                        fields,
                        first,
                    });
                }
                _ => return Err(r.err_at(at, ErrorKind::BadValue("record name"))),
            }
        }
        if fields_seen != field_count as usize {
            return Err(r.err_at(8, ErrorKind::BadValue("field count")));
        }
        r.finish()?;
        Ok(Records {
            version,
            field_count,
            records,
            operands,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = self.operands.writer();
        w.u32(self.version);
        w.u32(self.records.len() as u32);
        w.u32(self.field_count);
        for record in &self.records {
            w.out.push(Op::CallLast.number());
            for i in 0..3 {
                self.operands
                    .encode(&mut w, self.operands.get(record.first + i));
            }
        }
        w.out
    }
}

/// One item of the debug chunk: what kind of entry, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugItem {
    /// 0: frame size (starts the description of a stop), 1: variables, 2: calls.
    pub kind: u32,
    /// Frame size: nil, the atom `entry`, or a number; else a list.
    pub value: Arg,
    first: u32,
}

/// What a debugger may know at each `debug_line`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugInfo {
    /// The version of the format.
    pub version: u32,
    /// The number of stops described.
    pub stop_count: u32,
    /// The number of list elements in all items.
    pub term_count: u32,
    /// The items; each stop starts with one of kind 0.
    pub items: Vec<DebugItem>,
    operands: Operands,
}

impl DebugInfo {
    /// The operands that items refer to.
    pub fn operands(&self) -> &Operands {
        &self.operands
    }

    pub(crate) fn decode(data: &[u8]) -> Result<DebugInfo> {
        let mut r = Reader::new(ChunkId(*b"DbgB"), data);
        let version = r.u32()?;
        let stop_count = r.u32()?;
        let term_count = r.u32()?;
        let mut operands = Operands::default();
        let mut items = Vec::new();
        while !r.is_empty() {
            let at = r.pos();
            if r.u8()? != Op::Call.number() {
                return Err(r.err_at(at, ErrorKind::BadValue("debug item")));
            }
            let first = operands.decode(&mut r, 2)?;
            match operands.get(first) {
                Arg::U(kind) if kind <= 16 => {
                    let value = operands.get(first + 1);
                    items.push(DebugItem {
                        kind: kind as u32,
                        value,
                        first,
                    });
                }
                _ => return Err(r.err_at(at, ErrorKind::BadValue("debug item"))),
            }
        }
        Ok(DebugInfo {
            version,
            stop_count,
            term_count,
            items,
            operands,
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = self.operands.writer();
        w.u32(self.version);
        w.u32(self.stop_count);
        w.u32(self.term_count);
        for item in &self.items {
            w.out.push(Op::Call.number());
            for i in 0..2 {
                self.operands
                    .encode(&mut w, self.operands.get(item.first + i));
            }
        }
        w.out
    }
}
