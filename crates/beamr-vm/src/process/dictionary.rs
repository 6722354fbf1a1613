//! The process dictionary: a map of terms in insertion order, searched from its start while small and by hash
//! when large. Costs 8 bytes while empty.

use beamr_term::hash::internal_hash;
use beamr_term::order::eq_exact;
use beamr_term::{Tables, Word};

/// Entries beyond which look-ups hash.
const LINEAR: usize = 8;
const EMPTY: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Inner {
    entries: Vec<(Word, Word)>,
    /// Open addressing over `entries`; empty while there are few. Its length is a power of two and more than
    /// 4/3 of the entries.
    index: Vec<u32>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Dictionary(Option<Box<Inner>>);

fn hash(key: Word, tables: &Tables) -> usize {
    internal_hash(key, 0, tables) as usize
}

impl Inner {
    fn find(&self, key: Word, tables: &Tables) -> Option<usize> {
        if self.index.is_empty() {
            return self.entries.iter().position(|(k, _)| {
                *k == key || (!key.is_immediate() && eq_exact(*k, key, tables))
            });
        }
        let mask = self.index.len() - 1;
        let mut at = hash(key, tables) & mask;
        loop {
            match self.index[at] {
                EMPTY => return None,
                i => {
                    let k = self.entries[i as usize].0;
                    if k == key || (!key.is_immediate() && eq_exact(k, key, tables)) {
                        return Some(i as usize);
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }
    fn rebuild(&mut self, tables: &Tables) {
        if self.entries.len() <= LINEAR {
            self.index = Vec::new();
            return;
        }
        let size = (self.entries.len() * 2).next_power_of_two();
        self.index = vec![EMPTY; size];
        for (i, (k, _)) in self.entries.iter().enumerate() {
            let mut at = hash(*k, tables) & (size - 1);
            while self.index[at] != EMPTY {
                at = (at + 1) & (size - 1);
            }
            self.index[at] = i as u32;
        }
    }
    fn place_of(&self, entry: usize, tables: &Tables) -> usize {
        let mask = self.index.len() - 1;
        let mut at = hash(self.entries[entry].0, tables) & mask;
        while self.index[at] != entry as u32 {
            at = (at + 1) & mask;
        }
        at
    }
    /// Empties a place and moves up what probed over it.
    fn vacate(&mut self, mut at: usize, tables: &Tables) {
        let mask = self.index.len() - 1;
        self.index[at] = EMPTY;
        let mut next = (at + 1) & mask;
        while self.index[next] != EMPTY {
            let home = hash(self.entries[self.index[next] as usize].0, tables) & mask;
            // Whether `at` lies cyclically between the home and the place.
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(at) & mask) {
                self.index[at] = self.index[next];
                self.index[next] = EMPTY;
                at = next;
            }
            next = (next + 1) & mask;
        }
    }
}

impl Dictionary {
    /// The value of a key.
    #[inline]
    pub fn get(&self, key: Word, tables: &Tables) -> Option<Word> {
        let inner = self.0.as_deref()?;
        inner.find(key, tables).map(|i| inner.entries[i].1)
    }
    /// Sets a value; gives the one before.
    pub fn put(&mut self, key: Word, value: Word, tables: &Tables) -> Option<Word> {
        let inner = self.0.get_or_insert_default();
        if let Some(i) = inner.find(key, tables) {
            return Some(std::mem::replace(&mut inner.entries[i].1, value));
        }
        inner.entries.push((key, value));
        let n = inner.entries.len();
        if inner.index.is_empty() {
            if n > LINEAR {
                inner.rebuild(tables);
            }
        } else if n * 4 > inner.index.len() * 3 {
            inner.rebuild(tables);
        } else {
            let mask = inner.index.len() - 1;
            let mut at = hash(key, tables) & mask;
            while inner.index[at] != EMPTY {
                at = (at + 1) & mask;
            }
            inner.index[at] = (n - 1) as u32;
        }
        None
    }
    /// Takes a key out.
    pub fn erase(&mut self, key: Word, tables: &Tables) -> Option<Word> {
        let inner = self.0.as_deref_mut()?;
        let i = inner.find(key, tables)?;
        let last = inner.entries.len() - 1;
        if !inner.index.is_empty() {
            // All entries still stand: probing may look at any of them.
            inner.vacate(inner.place_of(i, tables), tables);
            if i != last {
                let moved = inner.place_of(last, tables);
                inner.index[moved] = i as u32;
            }
        }
        let (_, value) = inner.entries.swap_remove(i);
        self.shrunk(value, tables)
    }
    fn shrunk(&mut self, value: Word, tables: &Tables) -> Option<Word> {
        if let Some(inner) = self.0.as_deref_mut() {
            if inner.entries.is_empty() {
                self.0 = None;
            } else if inner.entries.len() == LINEAR && !inner.index.is_empty() {
                inner.rebuild(tables);
            }
        }
        Some(value)
    }
    /// Takes everything out.
    pub fn clear(&mut self) -> Vec<(Word, Word)> {
        self.0.take().map_or_else(Vec::new, |i| i.entries)
    }
    /// How many entries.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |i| i.entries.len())
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
    /// Keys and values.
    pub fn entries(&self) -> &[(Word, Word)] {
        self.0.as_ref().map_or(&[], |i| &i.entries)
    }
    /// Shows all words: they are roots.
    pub(crate) fn visit(&mut self, visit: &mut dyn FnMut(&mut [Word])) {
        if let Some(inner) = &mut self.0 {
            for (k, v) in &mut inner.entries {
                let mut pair = [*k, *v];
                visit(&mut pair);
                [*k, *v] = pair;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beamr_term::{AtomTable, Build, Fragment, Release};
    use std::collections::HashMap;
    use std::sync::Arc;

    #[test]
    fn behaves_as_a_map() {
        let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP27);
        let mut f = Fragment::with_capacity(100);
        let mut d = Dictionary::default();
        let mut model: HashMap<i64, i64> = HashMap::new();
        let mut seed = 1u64;
        for step in 0..20_000i64 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let k = (seed >> 33) as i64 % 60;
            // Half of the keys are boxed: equal by value, not by address.
            let key = if k % 2 == 0 {
                Word::fixnum(k)
            } else {
                f.tuple(&[Word::fixnum(k)])
            };
            let as_int = |w: Option<Word>| w.map(Word::small_value);
            if (seed >> 20) % 5 < 3 {
                assert_eq!(
                    as_int(d.put(key, Word::fixnum(step), &tables)),
                    model.insert(k, step)
                );
            } else {
                assert_eq!(as_int(d.erase(key, &tables)), model.remove(&k));
            }
            assert_eq!(as_int(d.get(key, &tables)), model.get(&k).copied());
            assert_eq!(d.len(), model.len());
        }
        for k in 0..60 {
            let key = if k % 2 == 0 {
                Word::fixnum(k)
            } else {
                f.tuple(&[Word::fixnum(k)])
            };
            assert_eq!(
                d.get(key, &tables).map(Word::small_value),
                model.get(&k).copied()
            );
        }
        assert_eq!(d.clear().len(), model.len());
        assert!(d.is_empty());
    }
}
