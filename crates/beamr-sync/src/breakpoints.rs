//! Breakpoints: words of running code that are exchanged for one that leads here, and what stands behind each.
//!
//! # Protocol
//!
//! A *word* belongs to code that any number of threads run. It holds its *original*, or the *trap*. Who runs the word and meets the
//! trap asks the table what to do ([`BreakTable::find`]).
//!
//! 1. Under the table's lock a word holds the trap exactly while its key is in the table: [`BreakTable::install`] puts the entry in and
//!    then the trap, [`BreakTable::remove`] takes the trap away and then the entry.
//! 2. The word is written with `Release`. It is read without the lock and with any ordering by who runs the code: a thread may
//!    still find the original after `install` has returned on another one (its call came before the breakpoint), or the
//!    trap after `remove` (its call is not to be stopped any more).
//! 3. Whoever met the trap takes the lock. It finds the entry, which holds the original; or none, and then by 1 the
//!    word is the original by now, whatever was read before. So nobody runs the trap twice for one call, and nobody is lost.
//!
//! The word must outlive its entry: who frees code removes its breakpoints first.

use std::collections::HashMap;

use crate::prim::{Arc, AtomicUsize, Mutex, Ordering};

/// What somebody finds who met a trap.
#[derive(Debug)]
pub enum Found<T> {
    /// The breakpoint.
    Point(Arc<T>),
    /// There is none any more: the word's original.
    Gone(usize),
}

/// See the module.
#[derive(Debug)]
pub struct BreakTable<T> {
    map: Mutex<HashMap<usize, Arc<T>>>,
}

impl<T> Default for BreakTable<T> {
    fn default() -> Self {
        BreakTable {
            map: Mutex::new(HashMap::new()),
        }
    }
}

impl<T> BreakTable<T> {
    /// The breakpoint of this key; a new one is made from the word's original.
    pub fn install(
        &self,
        key: usize,
        word: &AtomicUsize,
        trap: usize,
        make: impl FnOnce(usize) -> T,
    ) -> Arc<T> {
        let mut map = self.map.lock();
        if let Some(t) = map.get(&key) {
            return t.clone();
        }
        let point = Arc::new(make(word.load(Ordering::Relaxed)));
        map.insert(key, point.clone());
        word.store(trap, Ordering::Release);
        point
    }
    /// Takes a breakpoint away; `original` is asked of it.
    pub fn remove(&self, key: usize, word: &AtomicUsize, original: impl FnOnce(&T) -> usize) {
        let mut map = self.map.lock();
        if let Some(t) = map.get(&key) {
            word.store(original(t), Ordering::Release);
            map.remove(&key);
        }
    }
    /// What is behind a trap that was met.
    pub fn find(&self, key: usize, word: &AtomicUsize) -> Found<T> {
        let map = self.map.lock();
        match map.get(&key) {
            Some(t) => Found::Point(t.clone()),
            None => Found::Gone(word.load(Ordering::Acquire)),
        }
    }
    /// The breakpoint of this key.
    pub fn get(&self, key: usize) -> Option<Arc<T>> {
        self.map.lock().get(&key).cloned()
    }
    /// All breakpoints with their keys.
    pub fn all(&self) -> Vec<(usize, Arc<T>)> {
        let map = self.map.lock();
        map.iter().map(|(k, t)| (*k, t.clone())).collect()
    }
}
