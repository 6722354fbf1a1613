//! Dirty threads: natives that may take long or block.
//!
//! The worker marks the process dirty, hands its body over and forgets it. A dirty thread runs the native, saves the outcome as
//! the process's next step (value and return address, or the handler of an exception, or another call), puts
//! the body back and makes the process runnable. If it has died meanwhile, the body is freed instead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use beamr_abi::{Ctx, ExceptionClass, NativeClass, NativeEntry, Pending, Raise, Regs, TrapTarget};
use beamr_sync::prim::{Arc as SyncArc, Condvar, Mutex};
use beamr_sync::state::EndDirty;
use beamr_term::{Build, Word, atoms};

use super::Worker;
use super::threads::Threads;
use crate::engine::{CodePos, Fixed};
use crate::process::{Process, Slot, exit};
use crate::rt;
use crate::vm::Vm;

/// What a dirty thread does with a body.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Runs a native.
    Native(&'static NativeEntry),
    /// Collects it.
    Collect(Collect),
}

/// How a body is collected, and what its process does afterwards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collect {
    /// It goes on.
    Ready,
    /// It waits as before.
    Waits,
    /// It hibernates: the block is made as small as can be.
    Shrink,
}

impl Collect {
    /// For a process that has something to do, or has not.
    pub fn of(ready: bool) -> Collect {
        if ready {
            Collect::Ready
        } else {
            Collect::Waits
        }
    }
}

/// A body on its way.
struct Job {
    work: Work,
    slot: SyncArc<Slot>,
    body: *mut Process,
}

// SAFETY: the job owns the body.
unsafe impl Send for Job {}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    stopping: bool,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
}

#[derive(Default)]
struct Pool {
    queue: Mutex<Queue>,
    wake: Condvar,
    started: Threads,
    /// Natives that were handed over and have not ended.
    running: AtomicUsize,
}

/// The CPU and the I/O pool of a VM. Threads are started when there is work for them, up to the number that the
/// options allow.
pub(crate) struct DirtyPools {
    cpu: Arc<Pool>,
    io: Arc<Pool>,
}

impl DirtyPools {
    pub fn new() -> DirtyPools {
        DirtyPools {
            cpu: Arc::default(),
            io: Arc::default(),
        }
    }
    fn pool(&self, class: NativeClass) -> &Arc<Pool> {
        if class == NativeClass::DirtyIo {
            &self.io
        } else {
            &self.cpu
        }
    }
    /// Whether there are threads for this class; starts one when all are busy and there may be more.
    pub fn has(&self, vm: &Arc<Vm>, class: NativeClass) -> bool {
        let (limit, kind) = if class == NativeClass::DirtyIo {
            (vm.options.dirty_io, "io")
        } else {
            (vm.options.dirty_cpu, "cpu")
        };
        if limit == 0 {
            return false;
        }
        let pool = self.pool(class);
        let number = {
            let mut q = pool.queue.lock();
            if q.idle > q.jobs.len() || q.threads >= limit || q.stopping {
                return q.threads > 0;
            }
            q.threads += 1;
            q.threads - 1
        };
        let (shared, vm2) = (pool.clone(), Arc::downgrade(vm));
        let name = format!("beamr-dirty-{kind}-{number}");
        let started = pool.started.start(name, vm.options.thread_stack, move || {
            if let Some(vm) = vm2.upgrade() {
                work(&shared, &vm);
            }
        });
        match started {
            Ok(()) => true,
            // Without a thread the worker does it itself.
            Err(_) => {
                let mut q = pool.queue.lock();
                q.threads -= 1;
                q.threads > 0
            }
        }
    }
    /// How many natives run.
    pub fn running(&self) -> usize {
        let count = |p: &Arc<Pool>| p.running.load(Ordering::Acquire);
        count(&self.cpu) + count(&self.io)
    }
    /// Hands a body over. [`DirtyPools::has`] said that there are threads.
    pub fn submit(&self, work: Work, slot: SyncArc<Slot>, body: *mut Process) {
        let class = match work {
            Work::Native(entry) => entry.class,
            Work::Collect(_) => NativeClass::DirtyCpu,
        };
        let pool = self.pool(class);
        pool.running.fetch_add(1, Ordering::AcqRel);
        pool.queue.lock().jobs.push_back(Job { work, slot, body });
        pool.wake.notify_one();
    }
    /// How many bodies wait for a thread: of CPU work, of I/O.
    pub fn waiting(&self) -> (usize, usize) {
        (
            self.cpu.queue.lock().jobs.len(),
            self.io.queue.lock().jobs.len(),
        )
    }
    /// Tells the threads to stop after the calls that run.
    pub fn stop(&self) {
        for pool in [&self.cpu, &self.io] {
            pool.queue.lock().stopping = true;
            pool.wake.notify_all();
        }
    }
    /// Waits for the threads, and frees what was never run.
    pub fn join(&self) {
        for pool in [&self.cpu, &self.io] {
            pool.started.join();
            for job in std::mem::take(&mut pool.queue.lock().jobs) {
                // SAFETY: the job owns the body, which came from a box.
                drop(unsafe { Box::from_raw(job.body) });
            }
        }
    }
}

/// The life of a dirty thread.
fn work(pool: &Pool, vm: &Arc<Vm>) {
    let worker = Worker::new(vm, None);
    let counted = worker.count_here();
    work_with(pool, &worker);
    Worker::count_elsewhere(counted);
}

fn work_with(pool: &Pool, worker: &Worker) {
    let mut regs = worker.regs();
    loop {
        let job = {
            let mut q = pool.queue.lock();
            loop {
                if q.stopping {
                    return;
                }
                match q.jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        q.idle += 1;
                        q = pool.wake.wait(q);
                        q.idle -= 1;
                    }
                }
            }
        };
        regs.ctx.fcalls = super::SLICE;
        let ready = match job.work {
            Work::Native(entry) => {
                run(worker, &mut regs, &job.slot, job.body, entry, false);
                true
            }
            Work::Collect(how) => {
                // SAFETY: the job owns the body.
                collect(worker, &mut regs, &job.slot, unsafe { &mut *job.body }, how)
            }
        };
        // SAFETY: the job owns the body until it is put back below.
        unsafe {
            (*job.body).body.reductions += (super::SLICE - regs.ctx.fcalls).max(0) as u64;
        }
        pool.running.fetch_sub(1, Ordering::AcqRel);
        job.slot.body.store(job.body, Ordering::Release);
        let end = if ready {
            job.slot.state.end_dirty()
        } else {
            job.slot.state.end_dirty_idle()
        };
        match end {
            EndDirty::Enqueue => worker.enqueue(job.slot),
            EndDirty::Nothing => {}
            EndDirty::Orphan => exit::free_body(&job.slot),
        }
        worker.participant.collect();
    }
}

/// Collects a body. True when its process has something to do then.
fn collect(w: &Worker, regs: &mut Regs, slot: &Slot, process: &mut Process, how: Collect) -> bool {
    w.switch_in(&mut regs.ctx, slot, process);
    if how == Collect::Shrink {
        w.hibernate(process);
    } else {
        w.collect_at_rest(process, false);
    }
    let over = std::mem::take(&mut process.body.over_limit);
    let ended = over && w.vm.side.over_limit(&mut regs.ctx);
    ended || how == Collect::Ready
}

/// Runs a native with the arguments saved in the body, and saves what comes next.
pub(crate) fn run(
    w: &Worker,
    regs: &mut Regs,
    slot: &Slot,
    body: *mut Process,
    entry: &'static NativeEntry,
    refused: bool,
) {
    w.switch_in(&mut regs.ctx, slot, body);
    // SAFETY: the caller has the body.
    let process = unsafe { &mut *body };
    let args = process.body.args.as_slice().to_vec();
    regs.ctx.native = entry;
    let outcome = if refused {
        Err(regs.ctx.notsup())
    } else {
        (entry.func)(&mut regs.ctx, &args)
    };
    match outcome {
        Ok(value) => resume(process, value),
        Err(_) => {
            let pending = regs.ctx.take_pending();
            let engine = &w.vm.engine;
            let again = engine.native_stub(entry);
            match pending {
                Pending::Raise(r) => raise(regs, body, r, entry, &args),
                Pending::Trap { target, args } | Pending::YieldTo { target, args } => {
                    go_to(&mut regs.ctx, w, process, target, &args);
                }
                Pending::Exit => {
                    process.end(ExceptionClass::Exit, atoms::NORMAL.word(), false);
                }
                // Run again: at once, or when the scheduler has something to say.
                Pending::None | Pending::Wait | Pending::Yield => process.body.ip = again,
                Pending::Hibernate { target, args } => {
                    go_to(&mut regs.ctx, w, process, TrapTarget::Export(target), &args);
                }
            }
        }
    }
}

/// The native returns `value` to the address on top of the stack.
fn resume(process: &mut Process, value: Word) {
    let heap = &mut process.body.heap;
    // SAFETY: the engine stopped in a call of the native: a return address is on top of the stack.
    unsafe {
        process.body.ip = *heap.stop as usize as CodePos;
        heap.stop = heap.stop.add(1);
    }
    process.body.args.save(&[value]);
}

fn raise(
    regs: &mut Regs,
    body: *mut Process,
    raise: Raise,
    entry: &'static NativeEntry,
    args: &[Word],
) {
    // SAFETY: the registers are set up for this body, which the caller has.
    unsafe {
        let ip = (*body).body.ip;
        let to = rt::raise(regs, ip, raise, Some(entry), Some(args));
        let b = &mut (*body).body;
        b.ip = to;
        if to.is_null() {
            // The end is noted with the process.
            b.args.save(&[]);
        } else {
            b.args.save(&regs.x[..4]);
        }
    }
}

/// The process goes on in `target`, which returns to the address on top of the stack.
fn go_to(ctx: &mut Ctx, w: &Worker, process: &mut Process, target: TrapTarget, args: &[Word]) {
    let engine = &w.vm.engine;
    let apply = |ctx: &mut Ctx, m: Word, f: Word, args: &[Word]| {
        let list = ctx.list(args.iter().copied());
        [m, f, list]
    };
    match target {
        TrapTarget::Native(entry) => {
            process.body.ip = engine.native_stub(entry);
            process.body.args.save(args);
        }
        TrapTarget::Export(id) => {
            let (m, f, _) =
                w.vm.tables
                    .exports
                    .mfa(id)
                    .unwrap_or((atoms::ERLANG, atoms::UNDEFINED, 0));
            let call = apply(ctx, m.word(), f.word(), args);
            process.body.ip = engine.fixed(Fixed::Apply);
            process.body.args.save(&call);
        }
        TrapTarget::Fun(fun) => {
            let list = ctx.list(args.iter().copied());
            let call = apply(ctx, atoms::ERLANG.word(), atoms::APPLY.word(), &[fun, list]);
            process.body.ip = engine.fixed(Fixed::Apply);
            process.body.args.save(&call);
        }
    }
}
