//! Terms as an embedding program sees them.
//!
//! | type | lives | used for |
//! |---|---|---|
//! | [`OwnedTerm`] | as long as it is kept; may go to any thread | arguments, results, messages, exit reasons |
//! | [`Term`] | as long as the call, handler or owned term that lends it | reading |
//! | [`TermBuilder`] | one building | making terms |
//!
//! A [`Term<'h>`](Term) is branded by the place that it lies in: the lifetime is invariant and every place has one of its own, so that a
//! term can neither outlive its place nor get into another one without being copied. Between Rust types and terms go
//! [`FromTerm`] and [`IntoTerm`].
//!
//! Atoms are of one VM. A term of another VM is taken over by value wherever one is accepted (atoms by text).

mod builder;
mod convert;
mod error;
mod from;
mod ids;
mod into;
pub(crate) mod print;
mod view;

pub use builder::TermBuilder;
pub use convert::{
    AtomName, BigInt, Bytes, Charlist, FromTerm, IntoArgs, IntoAtom, IntoTerm, atom,
};
pub use error::{Place, TermError, TermErrorKind};
pub use ids::{PID_MAX, Pid, Reference};
pub use print::TextStyle;
pub use view::{ListIter, OwnedTerm, Term, TermKind};
