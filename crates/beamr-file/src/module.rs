//! A module: every chunk that loading needs, decoded.

use md5::{Digest, Md5};

use crate::code::Code;
use crate::container::{BeamFile, Limits};
use crate::error::{ChunkId, ErrorKind, FileError, Result};
use crate::lines::Lines;
use crate::records::{DebugInfo, Records};
use crate::tables::{
    Atoms, Export, Import, Lambda, Literals, decode_exports, decode_imports, decode_lambdas,
    encode_exports, encode_imports, encode_lambdas,
};
use crate::types::Types;

/// A decoded module.
///
/// Numbers and indexes inside tables are checked to resolve; those inside
/// instructions are not (see the validator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The module's name: the first atom.
    pub name: String,
    /// The atoms.
    pub atoms: Atoms,
    /// The imported functions, by the index of call operands.
    pub imports: Vec<Import>,
    /// The exported functions.
    pub exports: Vec<Export>,
    /// The local functions, when the chunk was not stripped.
    pub locals: Vec<Export>,
    /// The funs.
    pub lambdas: Vec<Lambda>,
    /// The literals.
    pub literals: Literals,
    /// The string table, that binary instructions point into.
    pub strings: Vec<u8>,
    /// The types of typed registers.
    pub types: Types,
    /// The source lines; empty when stripped.
    pub lines: Lines,
    /// The native records.
    pub records: Records,
    /// What a debugger may know.
    pub debug: Option<DebugInfo>,
    /// The attributes, in the external term format.
    pub attributes: Vec<u8>,
    /// The compile information, in the external term format.
    pub compile_info: Vec<u8>,
    /// The MD5 that `beam_lib:md5/1` and `module_info(md5)` give.
    pub md5: [u8; 16],
    /// The code.
    pub code: Code,
}

impl Module {
    /// Decodes a file.
    pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Module, FileError> {
        Self::decode(&BeamFile::parse(bytes)?)
    }

    /// Decodes the chunks of a file, with the default [`Limits`].
    pub fn decode(file: &BeamFile) -> std::result::Result<Module, FileError> {
        Self::decode_with(file, &Limits::default())
    }

    /// Decodes the chunks of a file.
    pub fn decode_with(file: &BeamFile, limits: &Limits) -> Result<Module> {
        let need = |id: &[u8; 4]| {
            file.chunk(id).ok_or(FileError {
                chunk: ChunkId(*id),
                offset: 0,
                kind: ErrorKind::MissingChunk,
            })
        };
        let atoms = match file.chunk(b"AtU8") {
            Some(data) => Atoms::decode(data, true)?,
            None => match file.chunk(b"Atom") {
                Some(data) => Atoms::decode(data, false)?,
                None => Atoms::decode(need(b"AtU8")?, true)?,
            },
        };
        let name = match atoms.get(1) {
            Some(name) => name.to_owned(),
            None => {
                let kind = ErrorKind::BadValue("atom table without a module name");
                return Err(FileError {
                    chunk: ChunkId(*b"AtU8"),
                    offset: 0,
                    kind,
                });
            }
        };
        let optional = |id: &[u8; 4]| file.chunk(id).unwrap_or(&[]).to_vec();
        let literals = match file.chunk(b"LitT") {
            Some(data) => Literals::decode(data, limits)?,
            None => Literals::default(),
        };
        let records = match file.chunk(b"Recs") {
            Some(data) => Records::decode(data, atoms.len(), literals.len())?,
            None => Records::default(),
        };
        Ok(Module {
            name,
            imports: decode_imports(need(b"ImpT")?, &atoms)?,
            exports: decode_exports(b"ExpT", need(b"ExpT")?, &atoms)?,
            locals: match file.chunk(b"LocT") {
                Some(data) => decode_exports(b"LocT", data, &atoms)?,
                None => Vec::new(),
            },
            lambdas: match file.chunk(b"FunT") {
                Some(data) => decode_lambdas(data, &atoms)?,
                None => Vec::new(),
            },
            strings: need(b"StrT")?.to_vec(),
            types: match file.chunk(b"Type") {
                Some(data) => Types::decode(data)?,
                None => Types::default(),
            },
            lines: match file.chunk(b"Line") {
                Some(data) => Lines::decode(data)?,
                None => Lines::default(),
            },
            debug: file.chunk(b"DbgB").map(DebugInfo::decode).transpose()?,
            attributes: optional(b"Attr"),
            compile_info: optional(b"CInf"),
            md5: md5_of(file),
            code: Code::decode(need(b"Code")?)?,
            atoms,
            literals,
            records,
        })
    }

    /// The name of an atom operand; `[]` for 0, `?` for a number out of range.
    pub fn atom(&self, number: u32) -> &str {
        match number {
            0 => "[]",
            n => self.atoms.get(n).unwrap_or("?"),
        }
    }

    /// Encodes one of the chunks that this type holds: the code, the atoms, the
    /// tables, the lines, the types, records and debug items. A literal chunk
    /// is written uncompressed. Gives `None` for another name, and for a chunk
    /// that would be empty and is left out by compilers then.
    pub fn encode_chunk(&self, id: &[u8; 4]) -> Option<Vec<u8>> {
        Some(match id {
            b"AtU8" | b"Atom" => self.atoms.encode(),
            b"Code" => self.code.encode(),
            b"StrT" => self.strings.clone(),
            b"ImpT" => encode_imports(&self.imports),
            b"ExpT" => encode_exports(&self.exports),
            b"LocT" => encode_exports(&self.locals),
            b"FunT" if !self.lambdas.is_empty() => encode_lambdas(&self.lambdas),
            b"LitT" if !self.literals.is_empty() => {
                let mut out = vec![0; 4];
                out.extend(self.literals.encode());
                out
            }
            b"Line" => self.lines.encode(),
            b"Type" if self.types.version != 0 => self.types.encode(),
            b"Recs" if !self.records.records.is_empty() => self.records.encode(),
            b"DbgB" => self.debug.as_ref()?.encode(),
            _ => return None,
        })
    }
}

/// The chunks that count for the MD5, in the order in which they count.
const MD5_CHUNKS: [&[u8; 4]; 11] = [
    b"Atom", b"AtU8", b"Code", b"StrT", b"ImpT", b"ExpT", b"FunT", b"LitT", b"Meta", b"Recs",
    b"DbgB",
];

/// The MD5 of the chunks that decide what a module does, the old uniq of funs
/// taken as 0.
fn md5_of(file: &BeamFile) -> [u8; 16] {
    let mut md5 = Md5::new();
    for id in MD5_CHUNKS {
        let Some(data) = file.chunk(id) else { continue };
        if id == b"FunT" {
            let (head, entries) = data.split_at(data.len().min(4));
            md5.update(head);
            for entry in entries.chunks(24) {
                md5.update(&entry[..entry.len().min(20)]);
                if entry.len() == 24 {
                    md5.update([0; 4]);
                }
            }
        } else {
            md5.update(data);
        }
    }
    md5.finalize().into()
}
