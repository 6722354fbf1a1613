//! Iterating over maps: flat ones in key order, tries in hash order.

use super::{flat, trie};
use crate::header::Subtag;
use crate::word::Word;

/// The pairs of a map. Holds words of the map, which must stay where it is.
#[derive(Clone, Debug)]
pub struct Iter {
    map: Word,
    next: usize,
    left: usize,
    /// Nodes on the way to the next leaf, with the next child of each.
    stack: Vec<(Word, usize)>,
}

/// All pairs.
pub fn iter(map: Word) -> Iter {
    iter_from(map, 0)
}

/// The pairs from number `start` on (0 is the first). Finding the start takes time in the depth
/// of the map alone, so a number is a continuation (`maps:next/1`).
pub fn iter_from(map: Word, start: usize) -> Iter {
    let size = super::size(map);
    let mut it = Iter {
        map,
        next: start,
        left: size.saturating_sub(start),
        stack: Vec::new(),
    };
    if map.header().subtag() == Subtag::FlatMap || it.left == 0 {
        return it;
    }
    let mut skip = start;
    let mut n = map;
    'down: loop {
        for (i, c) in trie::children(n).iter().enumerate() {
            let below = if c.is_cons() { 1 } else { trie::pairs(*c) };
            if skip >= below {
                skip -= below;
                continue;
            }
            if c.is_cons() || skip == 0 {
                it.stack.push((n, i));
                break 'down;
            }
            it.stack.push((n, i + 1));
            n = *c;
            continue 'down;
        }
        // Counts below add up to the count of the node, so this is not reached.
        it.left = 0;
        break;
    }
    it
}

impl Iter {
    /// The number of the next pair, for [`iter_from`].
    pub fn position(&self) -> usize {
        self.next
    }
}

impl Iterator for Iter {
    type Item = (Word, Word);
    fn next(&mut self) -> Option<(Word, Word)> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let i = self.next;
        self.next += 1;
        if self.map.header().subtag() == Subtag::FlatMap {
            return Some((flat::keys_of(self.map)[i], self.map.term_field(i + 2)));
        }
        loop {
            let (n, at) = self.stack.last_mut()?;
            let Some(c) = trie::children(*n).get(*at).copied() else {
                self.stack.pop();
                continue;
            };
            *at += 1;
            if c.is_cons() {
                return c.as_cons();
            }
            self.stack.push((c, 0));
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter {}
