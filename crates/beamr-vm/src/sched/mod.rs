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
use beamr_term::{Atom, Word, atoms};

use crate::gc::{self, Kind};
use crate::process::{Process, RefKey, Runnable, Slot};
use crate::rt::{ProcessSide, WorkerCode};
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
        Box::new(Worker {
            code: UnsafeCell::new(WorkerCode::new(vm.server.clone(), vm.side.clone())),
            vm: vm.clone(),
            index,
            participant: vm.domain.register(),
            refs: Cell::new((0, 0)),
            uniques: Cell::new((0, 0)),
            status: Cell::new(atoms::RUNNING),
        })
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
        if self.index.is_none() || len > 1 {
            self.vm.idle.wake_one();
        }
    }
    /// Collects the heap of a process at rest (its live registers are in `body.args`).
    pub(crate) fn collect_at_rest(&self, process: &mut Process, major: bool) {
        let side: Arc<dyn ProcessSide> = self.vm.side.clone();
        let mut owner: &dyn ProcessSide = &*side;
        let kind = if major { Kind::Full } else { Kind::Auto };
        // SAFETY: the caller is the runner and has the body; saved registers are in `args`.
        unsafe { gc::collect_body(&mut process.body, &mut owner, &mut [], 0, kind) };
    }
    /// Points a context to a process that is switched in.
    pub(crate) fn switch_in(&self, ctx: &mut Ctx, slot: &Slot, process: *mut Process) {
        ctx.body = process.cast();
        let modules = &slot.namespace.modules;
        ctx.exports = modules.exports_ptr();
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
            },
        })
    }
}
