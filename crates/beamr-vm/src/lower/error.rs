//! Why a module could not be lowered, and where.

use beamr_file::Op;

/// An instruction or table entry that cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{module}:{function}, {instruction}: {what}")]
pub struct LowerError {
    /// The module.
    pub module: String,
    /// `Name/Arity` of the function, or `-` outside of functions.
    pub function: String,
    /// The instruction or table.
    pub instruction: Place,
    /// What is wrong.
    pub what: LowerFault,
}

/// Where in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The instruction of this number (from 0) in the code chunk.
    Instruction {
        /// Its number.
        index: usize,
        /// Its operation.
        op: Op,
    },
    /// A table of the file.
    Table {
        /// Which.
        name: &'static str,
        /// The entry.
        index: usize,
    },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Instruction { index, op } => write!(f, "instruction {index} ({})", op.name()),
            Place::Table { name, index } => write!(f, "{name} {index}"),
        }
    }
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LowerFault {
    /// An operand of a kind that the operation does not take.
    #[error("operand {operand}: {expected} expected")]
    Operand {
        /// Which operand, from 0; those in lists are counted in their list.
        operand: usize,
        /// What it should be.
        expected: &'static str,
    },
    /// A number beyond what the VM can hold.
    #[error("{what} {value} is beyond the limit of {limit}")]
    Limit {
        /// What.
        what: &'static str,
        /// The number.
        value: u64,
        /// The largest allowed.
        limit: u64,
    },
    /// A label that nothing defines.
    #[error("label {0} is not defined")]
    NoLabel(u32),
    /// A label that is defined twice.
    #[error("label {0} is defined twice")]
    LabelTwice(u32),
    /// An operation that no release since OTP 24 loads and that has no lowered form.
    #[error("the operation is obsolete")]
    Obsolete,
    /// An instruction that makes sense only behind another.
    #[error("the instruction lacks the one that it continues")]
    Orphan,
    /// Operands that do not fit each other.
    #[error("{0}")]
    Inconsistent(&'static str),
    /// An atom that the VM's table does not take.
    #[error("atom: {0}")]
    Atom(#[from] beamr_term::AtomError),
    /// No room for another `M:F/A`.
    #[error(transparent)]
    Exports(#[from] beamr_term::TableFull),
    /// No room for the literals.
    #[error(transparent)]
    Literals(#[from] beamr_term::LiteralError),
    /// Untrusted code that the validator refuses.
    #[error("{0}")]
    Invalid(beamr_file::Fault),
    /// A literal that is not a term of the external format.
    #[error("literal: {0}")]
    BadLiteral(beamr_term::etf::DecodeError),
}
