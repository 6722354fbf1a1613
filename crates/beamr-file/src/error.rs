//! What can be wrong with a file, and where.

use std::fmt;

/// The four bytes that name a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub [u8; 4]);

impl ChunkId {
    /// The container itself, where an error belongs to no chunk.
    pub const FILE: ChunkId = ChunkId(*b"FOR1");
}

impl fmt::Display for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for ChunkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A file that could not be read: the chunk, the byte offset inside the
/// chunk's data (inside the file for the container) and what was wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chunk \"{chunk}\", offset {offset}: {kind}")]
pub struct FileError {
    /// The chunk that holds the error, [`ChunkId::FILE`] for the container.
    pub chunk: ChunkId,
    /// Bytes from the start of the chunk's data.
    pub offset: usize,
    /// What was wrong.
    pub kind: ErrorKind,
}

/// The kinds of [`FileError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The data ends inside an item.
    #[error("the data ends early")]
    Truncated,
    /// The file has not the form of a BEAM container.
    #[error("not a BEAM file")]
    NotBeam,
    /// A chunk that every module has is not there.
    #[error("the chunk is missing")]
    MissingChunk,
    /// Compressed data that does not inflate.
    #[error("bad compressed data")]
    BadCompression,
    /// Compressed data that does not inflate to the size it declares.
    #[error("inflates to another size than the {0} bytes declared")]
    WrongSize(usize),
    /// Something is larger than the limits of the reader allow.
    #[error("{what} over the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// The limit that it passes.
        limit: usize,
    },
    /// A version of the chunk's format that this reader does not know.
    #[error("unknown {what} {value}")]
    UnknownVersion {
        /// What the number versions.
        what: &'static str,
        /// The number found.
        value: u32,
    },
    /// An operation number that is not in the table.
    #[error("unknown operation {0}")]
    UnknownOp(u8),
    /// An operand tag or form that does not exist.
    #[error("bad operand: {0}")]
    BadOperand(&'static str),
    /// An index that points outside its table.
    #[error("{what} {index} out of range, the table has {len}")]
    BadIndex {
        /// The table.
        what: &'static str,
        /// The index found.
        index: u64,
        /// The length of the table.
        len: usize,
    },
    /// A value that is not allowed where it stands.
    #[error("bad {0}")]
    BadValue(&'static str),
    /// Bytes follow the last item of the chunk.
    #[error("bytes after the last item")]
    TrailingBytes,
}

pub(crate) type Result<T> = std::result::Result<T, FileError>;
