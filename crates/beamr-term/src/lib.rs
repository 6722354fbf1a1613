//! Erlang terms: words, layouts, atoms, order, hash, printing, arithmetic, external format.
//!
//! A term inside the VM is a [`Word`]: 64 bits on every target, whose low two bits say what it
//! is (`word`). Boxed terms start with a header word (`header`). Everything that builds a
//! term does so through the [`Alloc`] trait, so that the same builder writes into a process
//! heap, a message fragment, a literal area or an [`OwnedTerm`].
//!
//! # The contract of `Word`
//!
//! `Word` is the VM's internal currency, `Copy` and without a lifetime. Reading through a word
//! is a safe call by convention of the VM's crates: whoever holds one guarantees that the block
//! it points into is alive and not being collected (no term moves while a native runs; literals
//! live as long as their area; owned terms as long as their owner). Making a boxed word out of an
//! address is `unsafe` and states exactly that. The public face of the VM hands out lifetimes.
//!
//! This crate knows no scheduler and no process.

mod alloc;
pub mod arith;
mod atom;
pub mod big;
pub mod bits;
pub mod copy;
pub mod etf;
pub mod format;
pub mod hash;
pub mod header;
pub mod ids;
mod literal;
pub mod maps;
pub mod number_text;
pub mod off_heap;
pub mod order;
mod owned;
mod tables;
pub mod term;
pub mod text;
mod walk;
pub mod word;

pub use alloc::{Alloc, Build, Fragment};
pub use atom::{Atom, AtomEntry, AtomError, AtomTable, MAX_ATOM_CHARS, atoms};
pub use header::{Header, Subtag};
pub use literal::{Leaving, LiteralArea, LiteralBuilder, LiteralError, empty_tuple, is_literal};
pub use off_heap::{Binary, BinaryCount, BinaryRef, NodeEntry, OffHeap, Resource, ResourceRef};
pub use owned::{OwnedTerm, TooLarge, TransferError};
pub use tables::{
    ExportId, ExportTable, FunEntry, FunTable, Release, TableFull, Tables, Unregistered,
};
pub use term::Term;
pub use word::Word;
