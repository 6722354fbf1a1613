//! A map that costs nothing while empty, little with a few entries, and stays fast with 100,000: what
//! links, monitors and aliases of a process are kept in.

use std::collections::BTreeMap;

/// Entries beyond which the vector becomes a tree.
const SMALL: usize = 12;

/// See the module. Iterates in insertion order while small, in key order when large.
#[derive(Debug)]
pub enum SmallMap<K, V> {
    /// Few entries.
    Few(Vec<(K, V)>),
    /// Many.
    Many(Box<BTreeMap<K, V>>),
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        SmallMap::Few(Vec::new())
    }
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    /// How many entries.
    pub fn len(&self) -> usize {
        match self {
            SmallMap::Few(v) => v.len(),
            SmallMap::Many(m) => m.len(),
        }
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The value of a key.
    pub fn get(&self, key: K) -> Option<&V> {
        match self {
            SmallMap::Few(v) => v.iter().find(|(k, _)| *k == key).map(|(_, v)| v),
            SmallMap::Many(m) => m.get(&key),
        }
    }
    /// The value of a key, to change.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        match self {
            SmallMap::Few(v) => v.iter_mut().find(|(k, _)| *k == key).map(|(_, v)| v),
            SmallMap::Many(m) => m.get_mut(&key),
        }
    }
    /// Whether the key is there.
    pub fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }
    /// Sets a value; gives the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(v) = self.get_mut(key) {
            return Some(std::mem::replace(v, value));
        }
        match self {
            SmallMap::Few(v) if v.len() < SMALL => {
                if v.len() == v.capacity() {
                    v.reserve_exact(v.len().max(1));
                }
                v.push((key, value));
            }
            SmallMap::Few(v) => {
                let mut m: BTreeMap<K, V> = std::mem::take(v).into_iter().collect();
                m.insert(key, value);
                *self = SmallMap::Many(Box::new(m));
            }
            SmallMap::Many(m) => {
                m.insert(key, value);
            }
        }
        None
    }
    /// Takes a key out.
    pub fn remove(&mut self, key: K) -> Option<V> {
        match self {
            SmallMap::Few(v) => {
                let at = v.iter().position(|(k, _)| *k == key)?;
                let (_, value) = v.remove(at);
                if v.is_empty() {
                    *v = Vec::new();
                }
                Some(value)
            }
            SmallMap::Many(m) => {
                let value = m.remove(&key)?;
                if m.is_empty() {
                    *self = SmallMap::default();
                }
                Some(value)
            }
        }
    }
    /// Takes the first entry out.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        match self {
            SmallMap::Few(v) => {
                if v.is_empty() {
                    None
                } else {
                    Some(v.remove(0))
                }
            }
            SmallMap::Many(m) => m.pop_first(),
        }
    }
    /// All entries.
    pub fn iter(&self) -> Iter<'_, K, V> {
        match self {
            SmallMap::Few(v) => Iter::Few(v.iter()),
            SmallMap::Many(m) => Iter::Many(m.iter()),
        }
    }
}

/// Entries of a [`SmallMap`].
pub enum Iter<'a, K, V> {
    /// Of a vector.
    Few(std::slice::Iter<'a, (K, V)>),
    /// Of a tree.
    Many(std::collections::btree_map::Iter<'a, K, V>),
}

impl<'a, K: Copy, V> Iterator for Iter<'a, K, V> {
    type Item = (K, &'a V);
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Iter::Few(i) => i.next().map(|(k, v)| (*k, v)),
            Iter::Many(i) => i.next().map(|(k, v)| (*k, v)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks() {
        let mut m = SmallMap::default();
        for i in 0..1000u64 {
            assert_eq!(m.insert(i, i * 2), None);
            assert_eq!(m.get(i), Some(&(i * 2)));
        }
        assert_eq!(m.insert(7, 1), Some(14));
        assert_eq!(m.len(), 1000);
        assert_eq!(m.iter().count(), 1000);
        for i in 0..1000 {
            assert!(m.remove(i).is_some());
            assert!(m.remove(i).is_none());
        }
        assert!(m.is_empty());
        assert!(matches!(m, SmallMap::Few(_)));
        m.insert(3, 3);
        m.insert(1, 1);
        assert_eq!(m.pop_first(), Some((3, 3)));
        assert_eq!(m.pop_first(), Some((1, 1)));
        assert_eq!(m.pop_first(), None);
    }
}
