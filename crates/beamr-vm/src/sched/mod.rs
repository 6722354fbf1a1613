//! Workers: who runs which process when.
//!
//! A [`Worker`] is a thread's membership in a VM: what natives find behind `Ctx::worker`. Workers of the VM, dirty threads and
//! host threads (guests) have one each. A [`Turn`] is a worker with registers: it takes processes out of run
//! queues and runs them.
//!
//! # A turn
//!
//! 1. The worker takes a process from its own queue, or steals half of another's.
//! 2. `begin_run` makes it the runner. It handles signals if that is why the process was woken, or if others than
//!    messages have come; answers questions; then runs the engine for what is left of 4000 reductions.
//! 3. It ends the run: back into the queue, to sleep (unless something came meanwhile: then from 2), to a dirty
//!    thread, or through the exit procedure.
//!
//! # Waking
//!
//! Who makes a process runnable puts it into its own queue (host threads: into the queues in turn). Another worker is woken when
//! there is more than one process in the queue, or the process comes from outside: a process that is woken by the one that runs
//! is best run next by the same worker. A worker that takes a process and leaves others wakes the next worker.
//! Before it sleeps a worker announces itself, looks at all queues once more, and sleeps until
//! somebody wakes it or its earliest timer is due. An idle VM makes no wake-ups.

pub(crate) mod dirty;
pub mod online;
pub mod stats;
#[cfg(feature = "threads")]
pub(crate) mod threads;
#[cfg(not(feature = "threads"))]
#[path = "no_threads.rs"]
pub(crate) mod threads;
mod turn;

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use beamr_abi::{Ctx, Pending, Regs, X_REGISTERS};
use beamr_sync::Participant;
use beamr_sync::prim::Arc as SyncArc;
use beamr_term::{Atom, BinaryCount, Word, atoms};

use crate::gc::{self, Kind};
use crate::process::{Process, RefKey, Runnable, Slot};
use crate::rt::{ProcessSide, WorkerCode};
use crate::trace::process::{collection, traces_collections};
use crate::vm::Vm;

pub(crate) use turn::Turn;

/// Reductions of a slice.
pub const SLICE: i64 = 4000;

/// Reference and unique numbers that a worker takes at a time; guests take one.
const BLOCK: u64 = 1024;

/// A thread's membership in a VM. Begins with the [`WorkerCode`] that runtime helpers know.
#[repr(C)]
pub struct Worker {
    pub(crate) code: UnsafeCell<WorkerCode>,
    /// The VM.
    pub vm: Arc<Vm>,
    /// The worker's number; `None` for dirty threads and guests.
    pub index: Option<usize>,
    /// Membership in the reclamation domain.
    pub participant: Participant,
    refs: Cell<(u64, u64)>,
    uniques: Cell<(u64, u64)>,
    /// How the process that is asked something was found: its `status` for `process_info`.
    pub(crate) status: Cell<Atom>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn new(vm: &Arc<Vm>, index: Option<usize>) -> Box<Worker> {
        let mut code = WorkerCode::new(vm.server.clone(), vm.side.clone());
        code.outside = index.is_some() && vm.options.dirty_cpu > 0;
        Box::new(Worker {
            code: UnsafeCell::new(code),
            vm: vm.clone(),
            index,
            participant: vm.domain.register(),
            refs: Cell::new((0, 0)),
            uniques: Cell::new((0, 0)),
            status: Cell::new(atoms::RUNNING),
        })
    }
    /// Makes the calling thread count binaries for this VM, until [`Worker::count_elsewhere`].
    fn count_here(&self) -> *const BinaryCount {
        // SAFETY: the counter lives as long as the VM, which the worker keeps, and the caller's thread counts
        // elsewhere before it drops the worker.
        unsafe { BinaryCount::here(&raw const self.stats().binaries) }
    }
    /// Ends what [`Worker::count_here`] began.
    fn count_elsewhere(before: *const BinaryCount) {
        // SAFETY: what was there before is alive as it was then: its user is further up this thread's stack.
        unsafe { BinaryCount::here(before) };
    }
    /// Its counters.
    #[inline]
    fn stats(&self) -> &stats::WorkerStats {
        match self.index {
            Some(i) => &self.vm.workers[i].stats,
            None => &self.vm.elsewhere,
        }
    }
    /// Notes a collection.
    pub(crate) fn collected(&self, reclaimed: usize) {
        if self.index.is_some() {
            self.stats().collected(reclaimed);
        } else {
            self.stats().collected_elsewhere(reclaimed);
        }
    }
    fn block(&self) -> u64 {
        if self.index.is_some() { BLOCK } else { 1 }
    }
    /// The key of a fresh reference.
    #[inline]
    pub fn next_ref(&self) -> RefKey {
        let (mut next, mut end) = self.refs.get();
        if next == end {
            let n = self.block();
            next = self.vm.take_refs(n);
            end = next + n;
        }
        self.refs.set((next + 1, end));
        RefKey::new(next)
    }
    /// A fresh unique number, from 0.
    #[inline]
    pub fn next_unique(&self) -> u64 {
        let (mut next, mut end) = self.uniques.get();
        if next == end {
            let n = self.block();
            next = self.vm.take_uniques(n);
            end = next + n;
        }
        self.uniques.set((next + 1, end));
        next
    }
    /// Puts a process that became runnable into a run queue.
    pub(crate) fn enqueue(&self, slot: SyncArc<Slot>) {
        let priority = slot.run_priority();
        let to = match self.index {
            Some(i) => i,
            None => self.vm.queue_for_guest(),
        };
        let len = self.vm.workers[to].queue.push(priority, Runnable(slot));
        let active = self.vm.online.active();
        if len > 1 || self.index.is_none_or(|i| i >= active) {
            self.vm.idle.wake_one_below(active);
        }
    }
    /// Whether long collections are left to dirty threads.
    pub(crate) fn collects_outside(&self) -> bool {
        self.index.is_some() && self.vm.options.dirty_cpu > 0
    }
    /// As [`Worker::collect_at_rest`], but a long collection is put off until the process is handed to a dirty thread.
    pub(crate) fn collect_or_put_off(&self, process: &mut Process, major: bool) {
        if self.collects_outside() && gc::takes_long_at_rest(&mut process.body.heap, major) {
            return;
        }
        self.collect_at_rest(process, major);
    }
    /// Collects the heap of a process at rest (its live registers are in `body.args`).
    pub(crate) fn collect_at_rest(&self, process: &mut Process, major: bool) {
        let side: Arc<dyn ProcessSide> = self.vm.side.clone();
        let mut owner: &dyn ProcessSide = &*side;
        let kind = if major { Kind::Full } else { Kind::Auto };
        let traced = traces_collections(process.slot());
        if traced {
            let full = major || gc::full_is_due(&process.body.heap);
            collection(self, process, full, false, 0);
        }
        // SAFETY: the caller is the runner and has the body; saved registers are in `args`.
        let report = unsafe { gc::collect_body(&mut process.body, &mut owner, &mut [], 0, kind) };
        if traced {
            collection(self, process, report.full, true, report.reclaimed);
        }
        self.collected(report.reclaimed);
    }
    /// Points a context to a process that is switched in.
    pub(crate) fn switch_in(&self, ctx: &mut Ctx, slot: &Slot, process: *mut Process) {
        ctx.body = process.cast();
        let modules = &slot.namespace.modules;
        // SAFETY: the caller has the body.
        ctx.exports = if unsafe { (*process).saved_calls().is_none() } {
            modules.exports_ptr()
        } else {
            modules.no_exports()
        };
        ctx.instances = modules.instances_ptr();
        // SAFETY: nobody else uses the head of this thread's worker now; the module table lives as long as the namespace,
        // which the slot keeps.
        unsafe { (*self.code.get()).modules = Arc::as_ptr(modules) };
    }
    /// Registers for this worker.
    pub(crate) fn regs(&self) -> Box<Regs> {
        let worker: *const Worker = self;
        Box::new(Regs {
            x: [Word::NIL; X_REGISTERS],
            f: [0.0; X_REGISTERS],
            ctx: Ctx {
                body: std::ptr::null_mut(),
                fcalls: 0,
                exports: std::ptr::null(),
                instances: std::ptr::null(),
                tables: Arc::as_ptr(&self.vm.tables),
                worker: worker.cast_mut().cast(),
                pending: Pending::None,
                native: std::ptr::null(),
            },
        })
    }
}
