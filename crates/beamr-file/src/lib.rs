//! The .beam container: decoding, encoding, validation, disassembly.
//!
//! [`BeamFile`] splits a file into chunks; [`Module`] decodes the chunks that
//! loading needs; [`Module::encode_chunk`] writes them again, byte for byte.
//! The reader knows every format that compilers of OTP 24 to 29 write, and
//! older ones as far as a loader of these releases takes them.
//!
//! Every function here is total: hostile bytes give a [`FileError`], never a
//! panic, and what is allocated is bounded by the size of the file and by
//! [`Limits`].
//!
//! Nothing here runs code, and nothing here knows terms: literals, attributes
//! and compile information stay bytes of the external term format.

mod code;
mod container;
mod error;
pub mod inspect;
mod lines;
mod module;
mod op;
mod reader;
mod records;
mod tables;
mod types;
pub mod validate;

pub use code::{AllocKind, Arg, Big, Code, Instr, Operands, Span};
pub use container::{BeamFile, Chunk, Limits};
pub use error::{ChunkId, ErrorKind, FileError};
pub use inspect::{disassemble, inspect};
pub use lines::{LineEntry, Lines};
pub use module::Module;
pub use op::{Kind, OPS, Op, OpInfo};
pub use records::{DebugInfo, DebugItem, Field, Record, Records};
pub use tables::{AtomFormat, Atoms, Export, Import, Lambda, Literals};
pub use types::{TypeEntry, Types, type_bits};
pub use validate::{Fault, Function, ValidateError, Validated, never_returns, validate};
