//! The container: an IFF form of type `BEAM` that holds chunks.
//!
//! Chunks are kept in file order with their bytes untouched; nothing here
//! knows what is inside one. A whole file may be gzip'ed (the compiler's
//! `compressed` option).

use std::io::Read;

use crate::error::{ChunkId, ErrorKind, FileError, Result};
use crate::reader::Reader;

/// Bounds on what a file may make its reader allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file after inflating.
    pub file: usize,
    /// Bytes of the literal chunk after inflating.
    pub literals: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file: 256 << 20,
            literals: 256 << 20,
        }
    }
}

/// One chunk: its name and its data without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The name.
    pub id: ChunkId,
    /// The data.
    pub data: Vec<u8>,
}

/// A .beam file as a list of chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeamFile {
    /// The chunks in file order.
    pub chunks: Vec<Chunk>,
    /// Whether the whole file was gzip'ed.
    pub compressed: bool,
}

impl BeamFile {
    /// Splits a file into its chunks, with the default [`Limits`].
    pub fn parse(bytes: &[u8]) -> std::result::Result<BeamFile, FileError> {
        Self::parse_with(bytes, &Limits::default())
    }

    /// Splits a file into its chunks.
    pub fn parse_with(bytes: &[u8], limits: &Limits) -> Result<BeamFile> {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let plain = inflate(
                flate2::read::GzDecoder::new(bytes),
                limits.file,
                ChunkId::FILE,
                "file size",
            )?;
            return Self::plain(&plain, true);
        }
        if bytes.len() > limits.file {
            let kind = ErrorKind::Limit {
                what: "file size",
                limit: limits.file,
            };
            return Err(FileError {
                chunk: ChunkId::FILE,
                offset: 0,
                kind,
            });
        }
        Self::plain(bytes, false)
    }

    fn plain(bytes: &[u8], compressed: bool) -> Result<BeamFile> {
        let mut r = Reader::new(ChunkId::FILE, bytes);
        let not_beam = |offset| FileError {
            chunk: ChunkId::FILE,
            offset,
            kind: ErrorKind::NotBeam,
        };
        if !bytes.starts_with(b"FOR1") {
            return Err(not_beam(0));
        }
        r.bytes(4)?;
        let size = r.u32()? as usize;
        if size < 4 {
            return Err(not_beam(4));
        }
        if size > r.remaining() {
            return Err(r.err(ErrorKind::Truncated));
        }
        // What follows the form does not belong to it; the loader ignores it too.
        let mut r = Reader::new(ChunkId::FILE, &bytes[..8 + size]);
        r.bytes(8)?;
        if r.bytes(4)? != b"BEAM" {
            return Err(not_beam(8));
        }
        let mut chunks = Vec::new();
        while !r.is_empty() {
            let id = ChunkId(r.array()?);
            let size = r.u32()? as usize;
            let data = r.bytes(size)?.to_vec();
            // The padding of the last chunk may be missing.
            r.bytes((size.wrapping_neg() & 3).min(r.remaining()))?;
            chunks.push(Chunk { id, data });
        }
        Ok(BeamFile { chunks, compressed })
    }

    /// The data of the first chunk of a name.
    pub fn chunk(&self, id: &[u8; 4]) -> Option<&[u8]> {
        self.chunks
            .iter()
            .find(|c| c.id.0 == *id)
            .map(|c| c.data.as_slice())
    }

    /// Writes the container (never compressed).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(12 + self.chunks.iter().map(|c| 12 + c.data.len()).sum::<usize>());
        out.extend_from_slice(b"FOR1\0\0\0\0BEAM");
        for chunk in &self.chunks {
            out.extend_from_slice(&chunk.id.0);
            out.extend_from_slice(&(chunk.data.len() as u32).to_be_bytes());
            out.extend_from_slice(&chunk.data);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        let size = (out.len() - 8) as u32;
        out[4..8].copy_from_slice(&size.to_be_bytes());
        out
    }
}

/// Inflates at most `limit` bytes.
pub(crate) fn inflate(
    from: impl Read,
    limit: usize,
    chunk: ChunkId,
    what: &'static str,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let err = |kind| FileError {
        chunk,
        offset: 0,
        kind,
    };
    from.take(limit as u64 + 1)
        .read_to_end(&mut out)
        .map_err(|_| err(ErrorKind::BadCompression))?;
    if out.len() > limit {
        return Err(err(ErrorKind::Limit { what, limit }));
    }
    Ok(out)
}
