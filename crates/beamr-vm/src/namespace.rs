//! Namespaces: what tenants are.
//!
//! A namespace has its own modules and names, and budgets that are counted over everything its processes hold. Counters
//! are shared by all workers; processes charge them in steps (a block of a heap, some kilobytes of a mailbox, a
//! slice of reductions).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::code::ModuleTable;

/// A tenant: modules, names, budgets.
pub struct Namespace {
    /// Its number; 0 is the first one.
    pub id: u32,
    /// Its modules.
    pub modules: Arc<ModuleTable>,
    processes: AtomicI64,
    process_limit: AtomicI64,
    memory: AtomicI64,
    off_heap: AtomicI64,
    memory_limit: AtomicI64,
    reductions: AtomicU64,
    weight: AtomicU32,
}

impl std::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Namespace")
            .field("id", &self.id)
            .field("processes", &self.processes)
            .finish_non_exhaustive()
    }
}

impl Namespace {
    pub(crate) fn new(id: u32, modules: Arc<ModuleTable>) -> Namespace {
        Namespace {
            id,
            modules,
            processes: AtomicI64::new(0),
            process_limit: AtomicI64::new(i64::MAX),
            memory: AtomicI64::new(0),
            off_heap: AtomicI64::new(0),
            memory_limit: AtomicI64::new(i64::MAX),
            reductions: AtomicU64::new(0),
            weight: AtomicU32::new(1),
        }
    }
    /// Charges for memory (gives back when negative); false when it is over the budget.
    #[inline]
    pub fn charge_memory(&self, bytes: isize) -> bool {
        let now = self.memory.fetch_add(bytes as i64, Ordering::Relaxed) + bytes as i64;
        bytes <= 0 || now <= self.memory_limit.load(Ordering::Relaxed)
    }
    /// Notes how much of the charged memory is that of counted binaries (each counted by every heap that refers to it).
    pub(crate) fn note_off_heap(&self, bytes: isize) {
        self.off_heap.fetch_add(bytes as i64, Ordering::Relaxed);
    }
    /// Bytes charged for counted binaries.
    pub fn off_heap(&self) -> i64 {
        self.off_heap.load(Ordering::Relaxed)
    }
    /// Whether so many bytes more are within the budget; what shrinks always is.
    pub fn has_room(&self, bytes: i64) -> bool {
        bytes <= 0
            || self.memory().saturating_add(bytes) <= self.memory_limit.load(Ordering::Relaxed)
    }
    /// Whether memory is within the budget.
    pub fn memory_left(&self) -> bool {
        self.memory.load(Ordering::Relaxed) <= self.memory_limit.load(Ordering::Relaxed)
    }
    /// Bytes charged.
    pub fn memory(&self) -> i64 {
        self.memory.load(Ordering::Relaxed)
    }
    /// Sets the memory budget in bytes.
    pub fn set_memory_limit(&self, bytes: i64) {
        self.memory_limit.store(bytes, Ordering::Relaxed);
    }
    /// Live processes.
    pub fn process_count(&self) -> i64 {
        self.processes.load(Ordering::Relaxed)
    }
    /// Sets how many processes it may have.
    pub fn set_process_limit(&self, n: i64) {
        self.process_limit.store(n, Ordering::Relaxed);
    }
    /// Reductions executed by its processes.
    pub fn reductions(&self) -> u64 {
        self.reductions.load(Ordering::Relaxed)
    }
    /// Its share of the workers relative to others, from 1.
    #[inline]
    pub fn weight(&self) -> u32 {
        self.weight.load(Ordering::Relaxed)
    }
    /// Sets the share.
    pub fn set_weight(&self, weight: u32) {
        self.weight.store(weight.max(1), Ordering::Relaxed);
    }
    pub(crate) fn charge_reductions(&self, n: u64) {
        self.reductions.fetch_add(n, Ordering::Relaxed);
    }
    pub(crate) fn process_starts(&self) -> bool {
        if self.processes.fetch_add(1, Ordering::Relaxed)
            < self.process_limit.load(Ordering::Relaxed)
        {
            return true;
        }
        self.processes.fetch_sub(1, Ordering::Relaxed);
        false
    }
    pub(crate) fn process_ended(&self) {
        self.processes.fetch_sub(1, Ordering::Relaxed);
    }
}
