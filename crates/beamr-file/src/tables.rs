//! The tables beside the code: atoms, imports, exports, local functions,
//! lambdas, literals.
//!
//! Each has a reader and a writer that give the same bytes again (literals:
//! the same inflated bytes). Entries are checked against the tables that they
//! point into, so that a name or a number of a decoded module always resolves.

use crate::container::{Limits, inflate};
use crate::error::{ChunkId, ErrorKind, Result};
use crate::reader::{Number, Reader, TAG_U, Widths, Writer};

/// How the atom chunk is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomFormat {
    /// `Atom`: Latin-1, one length byte (before OTP 20).
    Latin1,
    /// `AtU8`: UTF-8, one length byte (up to OTP 27).
    Short,
    /// `AtU8` with a negative count: UTF-8, compact length (from OTP 28).
    Long,
}

/// The atoms of a module. Numbers start at 1; the first is the module's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atoms {
    /// How the chunk was written.
    pub format: AtomFormat,
    names: Vec<Box<str>>,
}

/// Longest atom in characters.
const MAX_ATOM_CHARS: usize = 255;

impl Atoms {
    /// The name of an atom by its 1-based number.
    pub fn get(&self, number: u32) -> Option<&str> {
        self.names
            .get((number as usize).checked_sub(1)?)
            .map(|s| &**s)
    }

    /// The number of atoms; the highest number.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names in order, the first being number 1.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|s| &**s)
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.names
            .iter()
            .position(|n| **n == *name)
            .map(|i| i as u32 + 1)
    }

    pub(crate) fn decode(data: &[u8], utf8: bool) -> Result<Atoms> {
        let id = if utf8 { *b"AtU8" } else { *b"Atom" };
        let mut r = Reader::new(ChunkId(id), data);
        let count = r.u32()? as i32;
        let format = match (utf8, count < 0) {
            (true, true) => AtomFormat::Long,
            (true, false) => AtomFormat::Short,
            (false, _) => AtomFormat::Latin1,
        };
        let n = count.unsigned_abs() as usize;
        if n > r.remaining() || (!utf8 && count < 0) {
            return Err(r.err_at(0, ErrorKind::Truncated));
        }
        let mut names = Vec::with_capacity(n);
        for _ in 0..n {
            let at = r.pos();
            let bad = |r: &Reader<'_>| r.err_at(at, ErrorKind::BadValue("atom"));
            let len = match format {
                AtomFormat::Long => match r.compact(&mut Widths::default())? {
                    (TAG_U, Number::Word(len)) if len >= 0 => len as usize,
                    _ => return Err(bad(&r)),
                },
                _ => r.u8()? as usize,
            };
            let bytes = r.bytes(len)?;
            let name: Box<str> = match format {
                AtomFormat::Latin1 => bytes.iter().map(|&b| b as char).collect::<String>().into(),
                _ => std::str::from_utf8(bytes).map_err(|_| bad(&r))?.into(),
            };
            if name.chars().count() > MAX_ATOM_CHARS {
                return Err(bad(&r));
            }
            names.push(name);
        }
        r.finish()?;
        Ok(Atoms { format, names })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::canonical();
        let count = self.names.len() as i32;
        w.u32(if self.format == AtomFormat::Long {
            -count
        } else {
            count
        } as u32);
        for name in &self.names {
            match self.format {
                AtomFormat::Latin1 => {
                    w.out.push(name.chars().count() as u8);
                    w.out.extend(name.chars().map(|c| c as u8));
                }
                AtomFormat::Short => {
                    w.out.push(name.len() as u8);
                    w.out.extend_from_slice(name.as_bytes());
                }
                AtomFormat::Long => {
                    w.compact(TAG_U, name.len() as i64);
                    w.out.extend_from_slice(name.as_bytes());
                }
            }
        }
        w.out
    }

    fn check(&self, r: &Reader<'_>, at: usize, number: u32) -> Result<u32> {
        if number == 0 || number as usize > self.names.len() {
            let kind = ErrorKind::BadIndex {
                what: "atom",
                index: number as u64,
                len: self.names.len(),
            };
            return Err(r.err_at(at, kind));
        }
        Ok(number)
    }
}

/// An imported function; module and name are atom numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Import {
    /// The module.
    pub module: u32,
    /// The function.
    pub function: u32,
    /// The arity.
    pub arity: u8,
}

/// An exported or local function; the name is an atom number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Export {
    /// The function.
    pub function: u32,
    /// The arity.
    pub arity: u8,
    /// The label of its entry.
    pub label: u32,
}

/// A fun defined in the module; the name is an atom number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lambda {
    /// The local function that is its body.
    pub function: u32,
    /// The arity of that function: arguments and free variables.
    pub arity: u8,
    /// The label of its entry.
    pub label: u32,
    /// Its index.
    pub index: u32,
    /// The number of free variables.
    pub num_free: u8,
    /// A number that told versions of a module apart before the MD5 did.
    pub old_uniq: u32,
}

fn arity(r: &Reader<'_>, at: usize, v: u32) -> Result<u8> {
    u8::try_from(v).map_err(|_| r.err_at(at, ErrorKind::BadValue("arity")))
}

pub(crate) fn decode_imports(data: &[u8], atoms: &Atoms) -> Result<Vec<Import>> {
    let mut r = Reader::new(ChunkId(*b"ImpT"), data);
    let n = r.count(12)?;
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let at = r.pos();
        let [module, function, a] = [r.u32()?, r.u32()?, r.u32()?];
        out.push(Import {
            module: atoms.check(&r, at, module)?,
            function: atoms.check(&r, at + 4, function)?,
            arity: arity(&r, at + 8, a)?,
        });
    }
    r.finish()?;
    Ok(out)
}

pub(crate) fn encode_imports(imports: &[Import]) -> Vec<u8> {
    let mut w = Writer::canonical();
    w.u32(imports.len() as u32);
    for i in imports {
        w.u32(i.module);
        w.u32(i.function);
        w.u32(i.arity as u32);
    }
    w.out
}

pub(crate) fn decode_exports(id: &[u8; 4], data: &[u8], atoms: &Atoms) -> Result<Vec<Export>> {
    let mut r = Reader::new(ChunkId(*id), data);
    let n = r.count(12)?;
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let at = r.pos();
        let [function, a, label] = [r.u32()?, r.u32()?, r.u32()?];
        out.push(Export {
            function: atoms.check(&r, at, function)?,
            arity: arity(&r, at + 4, a)?,
            label,
        });
    }
    r.finish()?;
    Ok(out)
}

pub(crate) fn encode_exports(exports: &[Export]) -> Vec<u8> {
    let mut w = Writer::canonical();
    w.u32(exports.len() as u32);
    for e in exports {
        w.u32(e.function);
        w.u32(e.arity as u32);
        w.u32(e.label);
    }
    w.out
}

pub(crate) fn decode_lambdas(data: &[u8], atoms: &Atoms) -> Result<Vec<Lambda>> {
    let mut r = Reader::new(ChunkId(*b"FunT"), data);
    let n = r.count(24)?;
    let mut out = Vec::with_capacity(n);
    for _ in 0..n {
        let at = r.pos();
        let [function, a, label] = [r.u32()?, r.u32()?, r.u32()?];
        let [index, free, old_uniq] = [r.u32()?, r.u32()?, r.u32()?];
        let lambda = Lambda {
            function: atoms.check(&r, at, function)?,
            arity: arity(&r, at + 4, a)?,
            label,
            index,
            num_free: arity(&r, at + 16, free)?,
            old_uniq,
        };
        if lambda.num_free > lambda.arity {
            return Err(r.err_at(at + 16, ErrorKind::BadValue("number of free variables")));
        }
        out.push(lambda);
    }
    r.finish()?;
    Ok(out)
}

pub(crate) fn encode_lambdas(lambdas: &[Lambda]) -> Vec<u8> {
    let mut w = Writer::canonical();
    w.u32(lambdas.len() as u32);
    for l in lambdas {
        for v in [
            l.function,
            l.arity as u32,
            l.label,
            l.index,
            l.num_free as u32,
            l.old_uniq,
        ] {
            w.u32(v);
        }
    }
    w.out
}

/// The literals of a module, each in the external term format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Literals {
    /// Whether the chunk was compressed (up to OTP 27).
    pub compressed: bool,
    data: Vec<u8>,
    spans: Vec<(u32, u32)>,
}

impl Literals {
    /// The bytes of a literal.
    pub fn get(&self, index: u32) -> Option<&[u8]> {
        self.spans
            .get(index as usize)
            .map(|&(start, end)| &self.data[start as usize..end as usize])
    }

    /// The number of literals.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The literals in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.spans
            .iter()
            .map(|&(start, end)| &self.data[start as usize..end as usize])
    }

    pub(crate) fn decode(data: &[u8], limits: &Limits) -> Result<Literals> {
        let id = ChunkId(*b"LitT");
        let mut r = Reader::new(id, data);
        let size = r.u32()? as usize;
        let rest = r.rest();
        let compressed = size != 0;
        let data = if compressed {
            if size > limits.literals {
                let kind = ErrorKind::Limit {
                    what: "literal size",
                    limit: limits.literals,
                };
                return Err(r.err_at(0, kind));
            }
            let out = inflate(
                flate2::read::ZlibDecoder::new(rest),
                size,
                id,
                "literal size",
            )?;
            if out.len() != size {
                return Err(r.err_at(0, ErrorKind::WrongSize(size)));
            }
            out
        } else {
            rest.to_vec()
        };
        let mut r = Reader::new(id, &data);
        let n = r.count(4)?;
        let mut spans = Vec::with_capacity(n);
        for _ in 0..n {
            let len = r.u32()? as usize;
            let start = r.pos();
            r.bytes(len)?;
            spans.push((start as u32, (start + len) as u32));
        }
        r.finish()?;
        Ok(Literals {
            compressed,
            data,
            spans,
        })
    }

    /// The chunk's data before compression, without the size word.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut w = Writer::canonical();
        w.u32(self.spans.len() as u32);
        for literal in self.iter() {
            w.u32(literal.len() as u32);
            w.out.extend_from_slice(literal);
        }
        w.out
    }
}
