//! What a long comparison knows already.
//!
//! Two terms that share much inside compare pair by pair in exponential time when each pair is walked again wherever it
//! is met. A long walk therefore keeps classes of objects that it found equal (union and find over addresses): then the
//! number of pairs that are walked is no more than the number of objects. It is a cache: it may be emptied at any time.

use std::collections::HashMap;

use super::Mode;
use crate::word::Word;

/// Pairs that a walk compares before it starts to remember.
pub(super) const REMEMBER_AFTER: i64 = 1 << 20;
/// Cells of a list between those that are remembered.
pub(super) const CELLS: u32 = 64;
/// Objects that are remembered at most.
const MAX_OBJECTS: usize = 1 << 20;

/// Part of a walk that does not remember, within the budget and what is left of the patience; with the patience left afterwards.
pub(super) fn patiently<T>(
    budget: &mut i64,
    patience: i64,
    walk: impl FnOnce(&mut i64) -> T,
) -> (T, i64) {
    let before = (*budget).min(patience);
    let mut left = before;
    let done = walk(&mut left);
    let used = before - left;
    *budget -= used;
    (done, patience - used)
}

#[derive(Debug, Default)]
struct Classes {
    index: HashMap<u64, u32>,
    parent: Vec<u32>,
}

impl Classes {
    fn find(&mut self, mut i: u32) -> u32 {
        while self.parent[i as usize] != i {
            let up = self.parent[self.parent[i as usize] as usize];
            self.parent[i as usize] = up;
            i = up;
        }
        i
    }
    fn number(&mut self, w: Word) -> u32 {
        let next = self.parent.len() as u32;
        let i = *self.index.entry(w.bits()).or_insert(next);
        if i == next {
            self.parent.push(next);
        }
        i
    }
    fn same(&mut self, a: Word, b: Word) -> bool {
        let (Some(&i), Some(&j)) = (self.index.get(&a.bits()), self.index.get(&b.bits())) else {
            return false;
        };
        self.find(i) == self.find(j)
    }
    fn join(&mut self, a: Word, b: Word) {
        if self.parent.len() >= MAX_OBJECTS {
            *self = Classes::default();
        }
        let (i, j) = (self.number(a), self.number(b));
        let (i, j) = (self.find(i), self.find(j));
        self.parent[i as usize] = j;
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Memo {
    exact: Classes,
    value: Classes,
}

impl Memo {
    fn classes(&mut self, mode: Mode) -> &mut Classes {
        match mode {
            Mode::Exact => &mut self.exact,
            Mode::Value => &mut self.value,
        }
    }
    /// Whether two objects are known to be equal.
    pub fn same(&mut self, a: Word, b: Word, mode: Mode) -> bool {
        self.classes(mode).same(a, b)
    }
    /// Two objects are equal.
    pub fn join(&mut self, a: Word, b: Word, mode: Mode) {
        self.classes(mode).join(a, b);
    }
    /// Forgets everything: terms move.
    pub fn clear(&mut self) {
        *self = Memo::default();
    }
}
