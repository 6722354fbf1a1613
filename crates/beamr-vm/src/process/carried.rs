//! A term on its way between processes: immediate, literal, or in a fragment of its own.

use beamr_term::copy::{CopyMode, Copying};

use beamr_term::{Alloc, Fragment, Leaving, Word, empty_tuple, is_literal};

use super::mailbox::Message;
use crate::gc;

/// See the module.
#[derive(Debug)]
pub struct Carried {
    /// The term.
    pub term: Word,
    /// Where it lies.
    pub fragment: Option<Box<Fragment>>,
}

// SAFETY: the fragment owns what the term points to, but for literals, which live as long as the VM needs them.
unsafe impl Send for Carried {}

impl Carried {
    /// An immediate.
    pub fn immediate(term: impl Into<Word>) -> Carried {
        let term = term.into();
        debug_assert!(!term.is_boxed() && !term.is_cons());
        Carried {
            term,
            fragment: None,
        }
    }
    /// A copy of a term.
    #[inline]
    pub fn copy(term: Word) -> Carried {
        if term.is_immediate() {
            return Carried {
                term,
                fragment: None,
            };
        }
        let copying = Copying::new(term, CopyMode::Share);
        if copying.words() == 0 {
            // A literal that stays, or an empty tuple, for which the shared one goes.
            let term = if is_literal(term.ptr()) {
                term
            } else {
                empty_tuple()
            };
            return Carried {
                term,
                fragment: None,
            };
        }
        let mut fragment = Box::new(Fragment::with_capacity(copying.words()));
        let term = copying.make(&mut *fragment);
        Carried {
            term,
            fragment: Some(fragment),
        }
    }
    /// A copy that shares no literals: for what is kept outside processes and their messages.
    pub fn own(term: Word) -> Carried {
        if term.is_immediate() {
            return Carried::immediate(term);
        }
        Carried::build(0, |f| Copying::new(term, CopyMode::All).make(f))
    }
    /// Whether it refers to literals of these areas.
    pub(crate) fn refers(&self, areas: Leaving) -> bool {
        gc::refers(self.term.bits(), areas)
            || self.fragment.as_deref().is_some_and(|f| {
                // SAFETY: fragments of messages hold complete terms.
                unsafe { gc::fragment_refers(f, areas) }
            })
    }
    /// A term that is built in a fresh fragment of about `words` words.
    pub fn build(words: usize, build: impl FnOnce(&mut Fragment) -> Word) -> Carried {
        let mut fragment = Box::new(Fragment::with_capacity(words));
        let term = build(&mut fragment);
        Carried {
            term,
            fragment: Some(fragment),
        }
    }
    /// A further copy.
    pub fn duplicate(&self) -> Carried {
        Carried::copy(self.term)
    }
    /// Builds around the term, in its fragment.
    pub fn wrap(self, build: impl FnOnce(&mut Fragment, Word) -> Word) -> Carried {
        let mut fragment = self
            .fragment
            .unwrap_or_else(|| Box::new(Fragment::with_capacity(16)));
        let term = build(&mut fragment, self.term);
        Carried {
            term,
            fragment: Some(fragment),
        }
    }
    /// Copies the term into a heap.
    pub fn copy_into(&self, heap: &mut impl Alloc) -> Word {
        Copying::new(self.term, CopyMode::Share).make(heap)
    }
    /// The term as a message.
    pub fn into_message(self) -> Message {
        Message::new(self.term, self.fragment)
    }
    /// Gives the term to a process heap.
    pub fn adopt(self, heap: &mut beamr_abi::Heap) -> Word {
        if let Some(f) = self.fragment {
            heap.adopt(f);
        }
        self.term
    }
    /// Words it takes.
    pub fn words(&self) -> usize {
        self.fragment.as_ref().map_or(0, |f| f.total_used())
    }
}
