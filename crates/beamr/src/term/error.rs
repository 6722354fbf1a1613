//! What is wrong with a value or term, and where in it.

use std::fmt;

use beamr_term::AtomError;

/// A step into a term.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An argument of a function, counted from 1.
    Argument(usize),
    /// An element of a tuple, counted from 1.
    Element(usize),
    /// An item of a list, counted from 1.
    Item(usize),
    /// A key of a map (its text).
    Key(String),
    /// The value under a key of a map (the key's text).
    Value(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Argument(n) => write!(f, "argument {n}"),
            Place::Element(n) => write!(f, "element {n}"),
            Place::Item(n) => write!(f, "item {n}"),
            Place::Key(k) => write!(f, "key {k}"),
            Place::Value(k) => write!(f, "the value of key {k}"),
        }
    }
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TermErrorKind {
    /// A term of another kind.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What would do.
        expected: &'static str,
        /// What is there (its text, cut).
        found: String,
    },
    /// An integer that does not fit the type.
    #[error("{value} is out of the range of {kind}")]
    Range {
        /// The Rust type.
        kind: &'static str,
        /// The integer (its text, cut).
        value: String,
    },
    /// A tuple of another size.
    #[error("expected a tuple of {expected}, found one of {found}")]
    Size {
        /// Elements wanted.
        expected: usize,
        /// Elements there.
        found: usize,
    },
    /// A list whose last tail is not the empty list.
    #[error("the list is improper")]
    Improper,
    /// There are no infinite floats.
    #[error("a float must be finite")]
    NotFinite,
    /// More bits than the VM's release allows.
    #[error("the integer is larger than the VM allows")]
    IntegerTooLarge,
    /// Not an atom.
    #[error(transparent)]
    Atom(AtomError),
    /// An atom of another table.
    #[error("the atom is of another VM")]
    ForeignAtom,
    /// More arguments than a function can have.
    #[error("{0} arguments are more than 255")]
    TooManyArguments(usize),
    /// The external format.
    #[error("external format: {0}")]
    External(String),
}

/// A value that stands for no term, or a term that stands for no value of the type; with the way to the part that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermError {
    kind: TermErrorKind,
    /// Innermost first.
    path: Vec<Place>,
}

impl TermError {
    /// What is wrong.
    pub fn kind(&self) -> &TermErrorKind {
        &self.kind
    }
    /// The way to it, from the whole to the part.
    pub fn path(&self) -> impl Iterator<Item = &Place> {
        self.path.iter().rev()
    }
    /// The same error of a part, seen from the whole.
    pub fn at(mut self, place: Place) -> TermError {
        self.path.push(place);
        self
    }
    /// A term of another kind than `expected` names.
    pub fn expected(expected: &'static str, found: super::Term<'_>) -> TermError {
        TermErrorKind::Expected {
            expected,
            found: short(found),
        }
        .into()
    }
}

/// A term's text for an error: its beginning.
pub(super) fn short(term: super::Term<'_>) -> String {
    super::print::text_of(term.tables(), term.word(), super::TextStyle::Print, 100)
}

impl From<TermErrorKind> for TermError {
    fn from(kind: TermErrorKind) -> TermError {
        TermError {
            kind,
            path: Vec::new(),
        }
    }
}

impl From<AtomError> for TermError {
    fn from(e: AtomError) -> TermError {
        TermErrorKind::Atom(e).into()
    }
}

impl fmt::Display for TermError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in self.path() {
            write!(f, "{place}: ")?;
        }
        fmt::Display::fmt(&self.kind, f)
    }
}

impl std::error::Error for TermError {}
