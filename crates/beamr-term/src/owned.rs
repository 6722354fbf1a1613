//! Terms that own their storage, and so can leave the heap that they were made in.

use std::fmt;
use std::sync::Arc;

use crate::alloc::{Alloc, Fragment};
use crate::copy::{CopyMode, Copying, copy, size_in_words};
use crate::etf::{self, DecodeError, EncodeError};
use crate::order;
use crate::tables::Tables;
use crate::term::Term;
use crate::word::Word;

/// A term with its own storage and the tables that its atoms, funs and exports are of. It can be
/// sent to and shared between threads.
pub struct OwnedTerm {
    root: Word,
    /// `None` for immediates.
    storage: Option<Fragment>,
    tables: Arc<Tables>,
}

// SAFETY: the storage is owned and never changes after it is built; what it refers to outside is
// counted atomically or lives as long as the tables.
unsafe impl Send for OwnedTerm {}
// SAFETY: as above.
unsafe impl Sync for OwnedTerm {}

/// A term is larger than allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the term takes more than {limit} words")]
pub struct TooLarge {
    /// Words allowed.
    pub limit: usize,
}

/// Why a term could not go to another VM.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// It could not be encoded.
    #[error("the term could not be encoded")]
    Encode(#[from] EncodeError),
    /// It could not be decoded there.
    #[error("the term could not be decoded")]
    Decode(#[from] DecodeError),
}

impl OwnedTerm {
    /// A copy of a term, literals included.
    pub fn from_word(word: Word, tables: &Arc<Tables>) -> OwnedTerm {
        let (root, storage) = if word.is_immediate() {
            (word, None)
        } else {
            // What is shared inside is copied once.
            let copying = Copying::new(word, CopyMode::All);
            let mut f = Fragment::with_capacity(copying.words());
            (copying.make(&mut f), Some(f))
        };
        OwnedTerm {
            root,
            storage,
            tables: tables.clone(),
        }
    }
    /// A copy of a term that takes at most `limit` words.
    pub fn try_from_word(
        word: Word,
        tables: &Arc<Tables>,
        limit: usize,
    ) -> Result<OwnedTerm, TooLarge> {
        size_in_words(word, CopyMode::All, limit).ok_or(TooLarge { limit })?;
        Ok(Self::from_word(word, tables))
    }
    /// A term that was built in `storage`.
    ///
    /// # Safety
    /// All that `root` reaches is in `storage`, counted outside heaps, or the shared empty tuple;
    /// its atoms, funs and exports are of `tables`.
    pub unsafe fn from_parts(root: Word, storage: Fragment, tables: Arc<Tables>) -> OwnedTerm {
        OwnedTerm {
            root,
            storage: Some(storage),
            tables,
        }
    }
    /// A term from the external format.
    pub fn from_etf(bytes: &[u8], tables: &Arc<Tables>) -> Result<OwnedTerm, DecodeError> {
        let mut f = Fragment::with_capacity(bytes.len() / 4 + 16);
        let (root, _) = etf::decode(bytes, tables, etf::DecodeOptions::default(), &mut f)?;
        Ok(OwnedTerm {
            root,
            storage: Some(f),
            tables: tables.clone(),
        })
    }
    /// The term as a word: valid as long as this value.
    #[inline]
    pub fn word(&self) -> Word {
        self.root
    }
    /// The term.
    #[inline]
    pub fn root(&self) -> Term<'_> {
        // SAFETY: the storage lives as long as the borrow.
        unsafe { Term::new(self.root, &self.tables) }
    }
    /// The tables.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }
    /// Words of storage in use.
    pub fn words(&self) -> usize {
        self.storage.as_ref().map_or(0, Fragment::total_used)
    }
    /// Root and storage, for a receiver that adopts the fragment instead of copying it.
    pub fn into_parts(self) -> (Word, Option<Fragment>) {
        (self.root, self.storage)
    }
    /// A copy in a heap of the same VM.
    pub fn copy_to<A: Alloc + ?Sized>(&self, alloc: &mut A) -> Word {
        copy(self.root, alloc, CopyMode::Share)
    }
    /// The same term for another VM: atoms by text, funs and exports by name, pids of this node as
    /// those of another one.
    pub fn transfer(&self, tables: &Arc<Tables>) -> Result<OwnedTerm, TransferError> {
        if Arc::ptr_eq(tables, &self.tables) {
            return Ok(self.clone());
        }
        let bytes = etf::encode(self.root, &self.tables, &etf::EncodeOptions::default())?;
        Ok(Self::from_etf(&bytes, tables)?)
    }
}

impl Clone for OwnedTerm {
    fn clone(&self) -> Self {
        Self::from_word(self.root, &self.tables)
    }
}

impl PartialEq for OwnedTerm {
    /// Exact equality; terms of different VMs are not equal.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tables, &other.tables)
            && order::eq_exact(self.root, other.root, &self.tables)
    }
}

impl fmt::Debug for OwnedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.root(), f)
    }
}

impl fmt::Display for OwnedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.root(), f)
    }
}
