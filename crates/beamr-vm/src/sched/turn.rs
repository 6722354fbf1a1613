//! Running processes.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use beamr_abi::{ExceptionClass, NativeClass, Pending, Regs};
use beamr_sync::prim::Arc as SyncArc;
use beamr_sync::run_queue::Refund;
use beamr_sync::{EndRun, Parker, Priority, Snapshot};
use beamr_term::{Build, atoms};

use super::dirty::{self, Collect, Work};
use super::{SLICE, Worker};
use crate::engine::Stop;
use crate::gc;
use crate::native_process::NativeStep;
use crate::process::{Carried, Own, Process, Runnable, Slot, exit};
use crate::rt::ProcessSide;
use crate::signal::RequestKind;
use crate::signal::handle::handle_all;
use crate::timer::{TICK, TimerEvent, fire_due};
use crate::trace::calls;
use crate::trace::flags::{RUNNING, RUNNING_PROCS};
use crate::trace::process as trace;
use crate::vm::Vm;

/// Flags that trace when a process is switched in and out.
const SCHEDULED: u32 = RUNNING | RUNNING_PROCS;

/// Messages that are taken over for one reduction.
const MESSAGES_PER_REDUCTION: usize = 16;

/// The tenant is charged for a mailbox in steps of so many bytes: the counter is shared by all workers.
const MAILBOX_STEP: usize = 4096;

/// A worker with registers.
pub(crate) struct Turn {
    regs: Box<Regs>,
    worker: Rc<Worker>,
    due: Vec<(u64, TimerEvent)>,
    refund: Option<Refund>,
    victim: usize,
}

// SAFETY: the registers point to the worker, which moves with them; a turn is used by one thread at a time.
unsafe impl Send for Turn {}

/// What is left of a process after a turn.
enum After {
    /// It sleeps, is with a dirty thread, or dead.
    Gone,
    /// It goes back into the queue.
    Again,
}

impl Turn {
    pub fn new(vm: &Arc<Vm>, index: Option<usize>) -> Turn {
        let worker: Rc<Worker> = Rc::from(Worker::new(vm, index));
        Turn {
            regs: worker.regs(),
            worker,
            due: Vec::new(),
            refund: None,
            victim: 0,
        }
    }

    /// The life of a worker thread.
    pub fn run_worker(mut self, mut parker: Parker) {
        let vm = self.worker.vm.clone();
        let index = self.worker.index.unwrap_or(0);
        let counted = self.worker.count_here();
        while !vm.stopping.load(Ordering::Acquire) {
            fire_due(&self.worker, index, &mut self.due);
            let rests = index >= vm.online.active();
            if !rests {
                vm.online.note(index, false);
                if let Some((priority, Runnable(slot))) = self.next_task(index) {
                    self.run(priority, slot);
                    continue;
                }
            }
            // Before the last look: a deferred drop may send, that is, put a process into this worker's own queue.
            self.worker.participant.flush();
            vm.idle.announce(index);
            let deadline = vm.workers[index].wheel.next_deadline();
            let now = vm.monotonic_ns();
            let due = deadline.is_some_and(|d| d * TICK <= now);
            let mut busy = vm.workers.iter().any(|w| !w.queue.is_empty());
            if rests {
                vm.online.note(index, true);
                // Also when this worker was woken for it before it knew that it rests.
                if busy {
                    vm.idle.wake_one_below(vm.online.active());
                }
                busy = index < vm.online.active();
            }
            if due || busy || vm.stopping.load(Ordering::Acquire) {
                vm.idle.retract(index);
                continue;
            }
            self.worker.stats().sleeps(now);
            match deadline {
                None => {
                    parker.park();
                }
                Some(d) => {
                    let left = (d * TICK).saturating_sub(now);
                    parker.park_timeout(Duration::from_nanos(left));
                }
            }
            self.worker.stats().wakes(vm.monotonic_ns());
            vm.idle.retract(index);
        }
        Worker::count_elsewhere(counted);
    }

    /// Turns of a cooperative VM: how many, and whether nothing is left.
    pub fn run_some(&mut self, max_turns: usize) -> (usize, bool) {
        let counted = self.worker.count_here();
        let run = self.turns(max_turns);
        Worker::count_elsewhere(counted);
        run
    }

    fn turns(&mut self, max_turns: usize) -> (usize, bool) {
        let index = self.worker.index.unwrap_or(0);
        for turns in 0..max_turns {
            if self.worker.vm.stopping.load(Ordering::Acquire) {
                return (turns, true);
            }
            fire_due(&self.worker, index, &mut self.due);
            match self.next_task(index) {
                Some((priority, Runnable(slot))) => self.run(priority, slot),
                None => return (turns, true),
            }
        }
        (max_turns, false)
    }

    fn next_task(&mut self, index: usize) -> Option<(Priority, Runnable)> {
        let vm = &self.worker.vm;
        let own = &vm.workers[index].queue;
        if let Some(task) = own.pop_after(self.refund.take()) {
            if !own.is_empty() {
                vm.idle.wake_one_below(vm.online.active());
            }
            return Some(task);
        }
        let n = vm.workers.len();
        for i in 0..n {
            let v = (self.victim + i) % n;
            if v == index {
                continue;
            }
            if let Some(task) = own.steal_from(&vm.workers[v].queue) {
                self.victim = v;
                if !own.is_empty() {
                    vm.idle.wake_one_below(vm.online.active());
                }
                return Some(task);
            }
        }
        None
    }

    /// One turn of one process.
    fn run(&mut self, priority: Priority, slot: SyncArc<Slot>) {
        self.worker.participant.enter();
        self.worker.stats().switched();
        self.regs.ctx.fcalls = SLICE;
        let tenant = slot.namespace.id;
        if let After::Again = self.slice(&slot) {
            self.worker.enqueue(slot);
        } else {
            drop(slot);
        }
        // SAFETY: the `enter` above.
        unsafe { self.worker.participant.leave() };
        let left = self.regs.ctx.fcalls.clamp(0, SLICE) as u32;
        if left > 0 {
            self.refund = Some(Refund {
                priority,
                tenant,
                reductions: left,
            });
        }
    }

    fn slice(&mut self, slot: &Slot) -> After {
        let worker = &*self.worker.clone();
        let mut snap = slot.state.begin_run();
        let mut ready = snap.is_ready();
        // Whether somebody was told that it is scheduled in.
        let mut inside = false;
        loop {
            // SAFETY: from `begin_run` to the end of the run this thread is the runner; no reference from an
            // earlier round is used any more.
            let own = unsafe { slot.own() };
            if own.dying.is_some() {
                if exit::step(worker, slot, own) {
                    return After::Gone;
                }
                return after(slot.state.end_run_yield());
            }
            let body = slot.body.load(Ordering::Acquire);
            if !body.is_null() {
                // SAFETY: the runner has the body unless it is away.
                let process = unsafe { &mut *body };
                if process.ended.is_some() {
                    exit::begin(own, Some(process));
                    continue;
                }
            }
            if slot.tracing().on(SCHEDULED) && !inside && !body.is_null() {
                inside = true;
                // SAFETY: the runner has the body.
                trace::scheduled(worker, slot, unsafe { &*body }, |n| n.r#in);
            }
            // Everything, also plain messages: a sender that finds the queue not empty does not notify, so
            // nothing that was announced before this run may be left in it when the run ends.
            if !slot.queue.is_empty() || own.middle.is_some() {
                let before = own.mailbox.len();
                let ends = handle_all(worker, slot, own);
                let came = own.mailbox.len() - before;
                self.regs.ctx.fcalls -= (came / MESSAGES_PER_REDUCTION) as i64;
                if ends {
                    continue;
                }
            }
            if !body.is_null() {
                // SAFETY: the runner has the body.
                unsafe { (*body).give_mailbox(own) };
            }
            if !charge_mailbox(slot, own) {
                let reason = Carried::immediate(atoms::KILLED);
                own.dying = Some(Box::new(exit::Dying::by_signal(
                    ExceptionClass::Exit,
                    reason,
                )));
                continue;
            }
            if !own.deferred.is_empty() && !body.is_null() {
                // SAFETY: as above.
                if self.must_collect_first(unsafe { &mut *body }, own) {
                    let how = Collect::of(ready);
                    if self.collect_outside(slot, body, how) {
                        return After::Gone;
                    }
                    continue;
                }
                self.answer(slot, snap, ready);
                continue;
            }
            if snap.is_blocked() {
                scheduled_out(worker, slot, body, &mut inside);
                let end = if ready || own.woke {
                    slot.state.end_run_yield()
                } else {
                    slot.state.end_run_wait()
                };
                match end {
                    EndRun::Parked => return After::Gone,
                    EndRun::Enqueue => return After::Again,
                    EndRun::Continue(s) => {
                        snap = s;
                        ready |= s.is_ready();
                        continue;
                    }
                }
            }
            if !ready && !own.woke {
                if own.hibernating && !body.is_null() {
                    own.hibernating = false;
                    // SAFETY: as above.
                    let process = unsafe { &mut *body };
                    if worker.collects_outside()
                        && gc::takes_long_at_rest(&mut process.body.heap, true)
                        && self.collect_outside(slot, body, Collect::Shrink)
                    {
                        return After::Gone;
                    }
                    worker.hibernate(process);
                }
                scheduled_out(worker, slot, body, &mut inside);
                match slot.state.end_run_wait() {
                    EndRun::Parked => return After::Gone,
                    EndRun::Enqueue => return After::Again,
                    EndRun::Continue(s) => {
                        snap = s;
                        ready = s.is_ready();
                        continue;
                    }
                }
            }
            if self.regs.ctx.fcalls <= 0 {
                scheduled_out(worker, slot, body, &mut inside);
                return after(slot.state.end_run_yield());
            }
            // SAFETY: not blocked: the body is there.
            if unsafe { (*body).body.heap.outside } {
                if self.collect_outside(slot, body, Collect::Ready) {
                    return After::Gone;
                }
                continue;
            }
            ready = false;
            own.woke = false;
            own.hibernating = false;
            match self.execute(slot, body) {
                Stop::Preempted => {
                    // SAFETY: the runner has the body.
                    if unsafe { (*body).body.heap.outside }
                        && self.collect_outside(slot, body, Collect::Ready)
                    {
                        return After::Gone;
                    }
                    // SAFETY: as above; the engine has returned.
                    if !unsafe { slot.own() }.deferred.is_empty() {
                        self.answer(slot, snap, true);
                    }
                    scheduled_out(worker, slot, body, &mut inside);
                    return after(slot.state.end_run_yield());
                }
                Stop::Waiting => {
                    // SAFETY: the runner has the body; the engine has returned.
                    let (heap, own) = unsafe { (&mut (*body).body.heap, slot.own()) };
                    if own.hibernating {
                        // It is swept anyway, when it goes to sleep.
                        heap.gc_wanted = heap.outside;
                        heap.outside = false;
                    } else if heap.outside && self.collect_outside(slot, body, Collect::Waits) {
                        return After::Gone;
                    }
                }
                Stop::Exited => {
                    // SAFETY: as above.
                    let own = unsafe { slot.own() };
                    // SAFETY: as above.
                    exit::begin(own, unsafe { body.as_mut() });
                }
                Stop::Dirty(entry) => {
                    scheduled_out(worker, slot, body, &mut inside);
                    if self.dirty(slot, body, entry) {
                        return After::Gone;
                    }
                    ready = true;
                }
            }
        }
    }

    /// Whether somebody asked for a collection that takes long: then the heap is marked, and the question is
    /// answered when the body is back.
    fn must_collect_first(&self, process: &mut Process, own: &mut Own) -> bool {
        if !self.worker.collects_outside() {
            return false;
        }
        let mut marked = false;
        for r in &mut own.deferred {
            if let RequestKind::Collect { major } = r.kind
                && gc::takes_long_at_rest(&mut process.body.heap, major)
            {
                r.kind = RequestKind::IsAlive;
                marked = true;
            }
        }
        marked
    }

    /// Hands the body to a dirty thread to be collected: then true, the run is over. Without threads it is collected here.
    fn collect_outside(&mut self, slot: &Slot, body: *mut Process, how: Collect) -> bool {
        let vm = self.worker.vm.clone();
        // SAFETY: the runner has the body; no other reference to either is used.
        let (process, own) = unsafe { (&mut *body, slot.own()) };
        if !vm.dirty.has(&vm, NativeClass::DirtyCpu) {
            process.body.heap.outside = false;
            self.worker.collect_at_rest(process, false);
            return false;
        }
        process.take_mailbox(own);
        self.hand_over(slot, body, Work::Collect(how));
        true
    }

    /// Gives the body to a dirty thread; the run is over.
    fn hand_over(&mut self, slot: &Slot, body: *mut Process, work: Work) {
        // Before the hand-over, see the state word.
        slot.body.store(std::ptr::null_mut(), Ordering::Release);
        let end = slot.state.begin_dirty();
        // SAFETY: the slot is in an `Arc`, see `count`.
        let counted = unsafe { crate::signal::count(slot) };
        if end == EndRun::Enqueue {
            self.worker.enqueue(counted.clone());
        }
        self.worker.vm.dirty.submit(work, counted, body);
    }

    /// Runs a dirty native: on its pool (then true: the run is over), or here.
    fn dirty(
        &mut self,
        slot: &Slot,
        body: *mut Process,
        entry: &'static beamr_abi::NativeEntry,
    ) -> bool {
        let vm = self.worker.vm.clone();
        let refused = vm.options.refuses(entry.class);
        if !refused && vm.dirty.has(&vm, entry.class) {
            self.hand_over(slot, body, Work::Native(entry));
            return true;
        }
        let before = self.regs.ctx.fcalls;
        dirty::run(&self.worker, &mut self.regs, slot, body, entry, refused);
        self.account(slot, body, before);
        false
    }

    /// Runs the process until it stops.
    fn execute(&mut self, slot: &Slot, body: *mut Process) -> Stop {
        let before = self.regs.ctx.fcalls;
        self.worker.switch_in(&mut self.regs.ctx, slot, body);
        // SAFETY: the runner has the body.
        if unsafe { (*body).watched.is_some() } {
            // SAFETY: as above.
            calls::switched(&self.worker, unsafe { &mut *body }, false);
        }
        // SAFETY: as in `slice`; the handler is taken out so that it may reach the rest of `Own`.
        let handler = unsafe { slot.own() }.native.take();
        let stop: Result<Stop, String> = match handler {
            None => {
                // SAFETY: the runner has the body; live registers are in `args`; its code is alive by the rules of the
                // code server.
                unsafe {
                    let args = (*body).body.args.as_slice();
                    self.regs.x[..args.len()].copy_from_slice(args);
                    let engine = Arc::as_ptr(&self.worker.vm.engine);
                    let regs = &mut *self.regs;
                    guarded(|| (*engine).run(regs))
                }
            }
            Some(mut handler) => {
                let ctx = &mut self.regs.ctx;
                ctx.bump(1);
                let step = guarded(|| handler.run(ctx));
                // SAFETY: as above; the handler has returned.
                let own = unsafe { slot.own() };
                let collect = {
                    own.native = Some(handler);
                    // SAFETY: the runner has the body.
                    unsafe { (*body).body.heap.gc_wanted }
                };
                step.map(|step| match step {
                    NativeStep::Exit(reason) => {
                        // SAFETY: the runner has the body.
                        unsafe { (*body).end(ExceptionClass::Exit, reason, false) };
                        Stop::Exited
                    }
                    step => {
                        if collect {
                            // SAFETY: the runner has the body.
                            self.worker.collect_or_put_off(unsafe { &mut *body }, false);
                        }
                        match step {
                            NativeStep::Wait => Stop::Waiting,
                            _ => Stop::Preempted,
                        }
                    }
                })
            }
        };
        if self.worker.vm.options.verify_heaps && matches!(stop, Ok(s) if s != Stop::Exited) {
            // SAFETY: the runner has the body.
            self.verify(unsafe { &mut *body });
        }
        // SAFETY: the runner has the body.
        if unsafe { (*body).watched.is_some() } {
            // SAFETY: as above.
            calls::switched(&self.worker, unsafe { &mut *body }, true);
        }
        self.account(slot, body, before);
        stop.unwrap_or_else(|text| self.panicked(body, &text))
    }

    /// A bug of the VM under this process: the process dies of it, as `{vm_panic, Text}`.
    #[cold]
    fn panicked(&mut self, body: *mut Process, text: &str) -> Stop {
        let ctx = &mut self.regs.ctx;
        ctx.pending = Pending::None;
        let tag = self.worker.vm.tables.atoms.intern("vm_panic");
        let tag = tag.unwrap_or(atoms::ERROR).word();
        let text = ctx.binary(text.as_bytes());
        let reason = ctx.tuple(&[tag, text]);
        // SAFETY: the runner has the body.
        unsafe { (*body).end(ExceptionClass::Error, reason, true) };
        Stop::Exited
    }

    /// See `VmOptions::verify_heaps`.
    fn verify(&self, process: &mut Process) {
        let mut owner: &dyn crate::rt::ProcessSide = &*self.worker.vm.side;
        // SAFETY: the process is at rest; its live registers are in `args`.
        if let Err(e) = unsafe { crate::gc::verify(&mut process.body, &mut owner, &mut []) } {
            let b = &process.body;
            panic!(
                "heap of a process at rest: {e}\n(block {:p}..{:p}, stack {:p}..{:p}, old {:p}..{:p}, args {:?}, body {:p}, position {:p})",
                b.heap.start,
                b.heap.top,
                b.heap.stop,
                b.heap.end,
                b.heap.old_start,
                b.heap.old_top,
                b.args.as_slice().as_ptr_range(),
                b,
                b.ip
            );
        }
    }

    fn account(&mut self, slot: &Slot, body: *mut Process, before: i64) {
        let used = (before - self.regs.ctx.fcalls).max(0) as u64;
        // SAFETY: the runner has the body.
        unsafe { (*body).body.reductions += used };
        slot.namespace.charge_reductions(used);
    }

    /// Answers questions that wait for the process to be at rest.
    fn answer(&mut self, slot: &Slot, snap: Snapshot, runnable: bool) {
        let status = if snap.is_suspended() {
            atoms::SUSPENDED
        } else if runnable {
            atoms::RUNNABLE
        } else {
            atoms::WAITING
        };
        self.worker.status.set(status);
        // SAFETY: as in `slice`.
        let requests = std::mem::take(&mut unsafe { slot.own() }.deferred);
        for r in requests {
            r.answer_at_rest(&self.worker, slot);
        }
        self.worker.status.set(atoms::RUNNING);
    }
}

/// Charges the tenant for what the mailbox has grown by. False when that is over its budget.
#[inline]
fn charge_mailbox(slot: &Slot, own: &mut Own) -> bool {
    let (before, now) = (own.charged, own.mailbox.bytes());
    if before.abs_diff(now) < MAILBOX_STEP && now != 0 {
        return true;
    }
    own.charged = now;
    slot.namespace.charge_memory(now as isize - before as isize)
}

/// Runs code of a process; the text of its panic, if it panics. The process is not run again then, so
/// that nobody sees what it left half done in its own structures.
fn guarded<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).map_err(|p| {
        let text = p.downcast_ref::<&str>().map(|s| (*s).to_owned());
        text.or_else(|| p.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

/// The process goes out, if somebody was told that it came in. The caller is the runner and has the body, if it is there.
#[inline]
fn scheduled_out(w: &Worker, slot: &Slot, body: *mut Process, inside: &mut bool) {
    if std::mem::take(inside) && !body.is_null() {
        // SAFETY: see above.
        trace::scheduled(w, slot, unsafe { &*body }, |n| n.out);
    }
}

fn after(end: EndRun) -> After {
    match end {
        EndRun::Enqueue => After::Again,
        // A runner that yields is never asked to go on.
        EndRun::Parked | EndRun::Continue(_) => After::Gone,
    }
}

impl Worker {
    /// Shrinks the heap of a process that hibernates.
    pub(super) fn hibernate(&self, process: &mut Process) {
        let side = self.vm.side.clone();
        let mut owner: &dyn ProcessSide = &*side;
        // SAFETY: the caller is the runner and has the body; saved registers are in `args`.
        let report = unsafe { gc::shrink_body(&mut process.body, &mut owner, &mut []) };
        self.collected(report.reclaimed);
    }
}
