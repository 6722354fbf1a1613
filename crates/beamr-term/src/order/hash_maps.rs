//! Comparing two hash maps of equal size.
//!
//! Two maps compare by their keys in ascending order, then by their values in that order. A trie
//! is not in key order, so:
//!
//! 1. Both tries are walked together while their keys agree (equal key sets have equal shapes).
//!    The result is that of the values under the least key whose values differ.
//! 2. As soon as the keys disagree, a second walk finds the least key that only one map has. In
//!    the sorted key sequences that is where the first difference is, and the map that has the
//!    key is the lesser one.
//!
//! Comparing keys and values is the surrounding walk's business: [`HashCompare::resume`] says
//! what to compare next and is called with the outcome.

use std::cmp::Ordering;

use super::Mode;
use crate::word::Word;

/// What to do next.
pub(super) enum Next {
    Compare(Word, Word, Mode),
    Done(Ordering),
}

/// Which map has a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    A,
    B,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
    fn lesser(self) -> Ordering {
        match self {
            Side::A => Ordering::Less,
            Side::B => Ordering::Greater,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// Two nodes at the same place, slots from this one on.
    Nodes(Word, Word, u32),
    /// A node that only one map has, children from this one on.
    Leaves(Word, usize, Side),
    /// A leaf against all leaves of a node of the other map; whether its key was found.
    Scan(Word, Side, bool),
    /// The leaves of that node, children from this one on; a `Scan` is below.
    Scanned(Word, usize),
}

/// What the comparison under way is for.
#[derive(Clone, Copy, Debug)]
enum Awaiting {
    Start,
    /// The keys of these two leaves, in the first walk.
    Keys(Word, Word),
    /// The values of this leaf of the first map.
    Values(Word),
    /// Whether the leaf's key is less than the least one so far; what its values said.
    LeastValue(Word, Ordering),
    /// The keys of these two leaves, in the second walk.
    PairKeys(Word, Word),
    /// A scanned leaf against the `Scan` below.
    ScanKey(Word),
    /// Whether this key is less than the least one so far.
    LeastKey(Word, Side),
}

#[derive(Debug)]
pub(super) struct HashCompare {
    a: Word,
    b: Word,
    mode: Mode,
    tasks: Vec<Task>,
    /// Candidates of the second walk that wait for their comparison.
    queue: Vec<(Word, Side)>,
    awaiting: Awaiting,
    least: Word,
    least_result: Ordering,
}

fn slots(node: Word) -> u32 {
    node.term_field(2).small_value() as u32
}

fn child(node: Word, slot: u32) -> Option<Word> {
    let map = slots(node);
    if map >> slot & 1 == 0 {
        return None;
    }
    Some(node.term_field(3 + (map & ((1 << slot) - 1)).count_ones() as usize))
}

impl HashCompare {
    pub fn new(a: Word, b: Word, mode: Mode) -> HashCompare {
        HashCompare {
            a,
            b,
            mode,
            tasks: vec![Task::Nodes(a, b, 0)],
            queue: Vec::new(),
            awaiting: Awaiting::Start,
            least: Word::NONE,
            least_result: Ordering::Equal,
        }
    }
    pub fn visit_roots(&mut self, f: &mut impl FnMut(&mut Word)) {
        f(&mut self.a);
        f(&mut self.b);
        if self.least.is_value() {
            f(&mut self.least);
        }
        for t in &mut self.tasks {
            match t {
                Task::Nodes(a, b, _) => {
                    f(a);
                    f(b);
                }
                Task::Leaves(n, ..) | Task::Scan(n, ..) | Task::Scanned(n, _) => f(n),
            }
        }
        for (w, _) in &mut self.queue {
            f(w);
        }
        match &mut self.awaiting {
            Awaiting::Start => {}
            Awaiting::Keys(a, b) | Awaiting::PairKeys(a, b) => {
                f(a);
                f(b);
            }
            Awaiting::Values(a)
            | Awaiting::LeastValue(a, _)
            | Awaiting::ScanKey(a)
            | Awaiting::LeastKey(a, _) => f(a),
        }
    }
    /// Takes the outcome of the comparison asked for last (at first, `Equal`).
    pub fn resume(&mut self, result: Ordering, budget: &mut i64) -> Next {
        match std::mem::replace(&mut self.awaiting, Awaiting::Start) {
            Awaiting::Start => {}
            Awaiting::Keys(la, lb) => {
                if result.is_ne() {
                    return self.second_walk(budget);
                }
                self.awaiting = Awaiting::Values(la);
                return Next::Compare(la.tail(), lb.tail(), self.mode);
            }
            Awaiting::Values(la) => {
                if result.is_ne() {
                    if self.least.is_value() {
                        self.awaiting = Awaiting::LeastValue(la, result);
                        return Next::Compare(la.head(), self.least, Mode::Exact);
                    }
                    self.least = la.head();
                    self.least_result = result;
                }
            }
            Awaiting::LeastValue(la, values) => {
                if result.is_lt() {
                    self.least = la.head();
                    self.least_result = values;
                }
            }
            Awaiting::PairKeys(la, lb) => {
                if result.is_ne() {
                    self.queue.push((la.head(), Side::A));
                    self.queue.push((lb.head(), Side::B));
                }
                return self.find_least(budget);
            }
            Awaiting::ScanKey(leaf) => {
                for t in self.tasks.iter_mut().rev() {
                    if let Task::Scan(_, side, found) = t {
                        if result.is_eq() {
                            *found = true;
                        } else {
                            let other = side.other();
                            self.queue.push((leaf.head(), other));
                        }
                        break;
                    }
                }
                return self.find_least(budget);
            }
            Awaiting::LeastKey(key, side) => {
                if result.is_lt() {
                    self.least = key;
                    self.least_result = side.lesser();
                }
                return self.find_least(budget);
            }
        }
        self.first_walk(budget)
    }

    fn first_walk(&mut self, budget: &mut i64) -> Next {
        loop {
            let Some(Task::Nodes(a, b, slot)) = self.tasks.pop() else {
                return Next::Done(self.least_result);
            };
            if slot == 16 || a == b {
                continue;
            }
            *budget -= i64::from(slot == 0);
            if slots(a) != slots(b) {
                return self.second_walk(budget);
            }
            self.tasks.push(Task::Nodes(a, b, slot + 1));
            let (Some(x), Some(y)) = (child(a, slot), child(b, slot)) else {
                continue;
            };
            match (x.is_cons(), y.is_cons()) {
                (true, true) => {
                    if x == y {
                        continue;
                    }
                    self.awaiting = Awaiting::Keys(x, y);
                    return Next::Compare(x.head(), y.head(), Mode::Exact);
                }
                (false, false) => self.tasks.push(Task::Nodes(x, y, 0)),
                _ => return self.second_walk(budget),
            }
        }
    }

    fn second_walk(&mut self, budget: &mut i64) -> Next {
        self.tasks.clear();
        self.tasks.push(Task::Nodes(self.a, self.b, 0));
        self.least = Word::NONE;
        self.find_least(budget)
    }

    fn find_least(&mut self, budget: &mut i64) -> Next {
        loop {
            while let Some((key, side)) = self.queue.pop() {
                if self.least.is_value() {
                    self.awaiting = Awaiting::LeastKey(key, side);
                    return Next::Compare(key, self.least, Mode::Exact);
                }
                self.least = key;
                self.least_result = side.lesser();
            }
            let Some(task) = self.tasks.pop() else {
                return Next::Done(self.least_result);
            };
            match task {
                Task::Nodes(a, b, slot) => {
                    if slot == 16 || a == b {
                        continue;
                    }
                    *budget -= i64::from(slot == 0);
                    self.tasks.push(Task::Nodes(a, b, slot + 1));
                    match (child(a, slot), child(b, slot)) {
                        (None, None) => {}
                        (Some(x), None) => self.only(x, Side::A),
                        (None, Some(y)) => self.only(y, Side::B),
                        (Some(x), Some(y)) => match (x.is_cons(), y.is_cons()) {
                            (true, true) => {
                                self.awaiting = Awaiting::PairKeys(x, y);
                                return Next::Compare(x.head(), y.head(), Mode::Exact);
                            }
                            (false, false) => self.tasks.push(Task::Nodes(x, y, 0)),
                            (true, false) => {
                                self.tasks.push(Task::Scan(x, Side::A, false));
                                self.tasks.push(Task::Scanned(y, 3));
                            }
                            (false, true) => {
                                self.tasks.push(Task::Scan(y, Side::B, false));
                                self.tasks.push(Task::Scanned(x, 3));
                            }
                        },
                    }
                }
                Task::Leaves(node, i, side) => {
                    if i <= node.header().arity() {
                        self.tasks.push(Task::Leaves(node, i + 1, side));
                        self.only(node.term_field(i), side);
                    }
                }
                Task::Scan(leaf, side, found) => {
                    if !found {
                        self.queue.push((leaf.head(), side));
                    }
                }
                Task::Scanned(node, i) => {
                    if i > node.header().arity() {
                        continue;
                    }
                    self.tasks.push(Task::Scanned(node, i + 1));
                    let c = node.term_field(i);
                    if !c.is_cons() {
                        self.tasks.push(Task::Scanned(c, 3));
                        continue;
                    }
                    let scanned = self.tasks.iter().rev().find_map(|t| match t {
                        Task::Scan(leaf, ..) => Some(*leaf),
                        _ => None,
                    });
                    if let Some(leaf) = scanned {
                        self.awaiting = Awaiting::ScanKey(c);
                        return Next::Compare(c.head(), leaf.head(), Mode::Exact);
                    }
                }
            }
        }
    }

    fn only(&mut self, child: Word, side: Side) {
        if child.is_cons() {
            self.queue.push((child.head(), side));
        } else {
            self.tasks.push(Task::Leaves(child, 3, side));
        }
    }
}
