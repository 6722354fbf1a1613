//! What the embedding program does to the processes of a VM, from threads of its own, and its natives.
//!
//! Everything here is a signal like those of processes, so that it is in order with them; nothing waits for a process except
//! [`Vm::with_own`], [`Vm::at_rest`] and what is made of them, which sleep until the process (or its worker) has answered. These must not be
//! called from a worker: it would wait for itself.
//!
//! **Host calls.** A native of the program may put its process to sleep until the program completes the call: the first run
//! takes a number ([`begin_host_call`]) and waits; [`Vm::complete_host_call`] wakes the process, which runs the native again and
//! finds the answer ([`host_call`]). An answer to an older number is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use beamr_abi::{Ctx, Escape};
use beamr_sync::SlotId;
use beamr_term::{Word, atoms};

use crate::code::{Image, ModuleTable, old_code};
use crate::namespace::Namespace;
use crate::process::exit::{ExitRecord, ExitWatcher};
use crate::process::spawn::{SpawnError, SpawnOptions, Start, make};
use crate::process::{
    Carried, Monitor, MonitorTarget, Outstanding, Own, ProcId, RefKey, TimeoutState, own, slot_of,
    vm_of, worker,
};
use crate::signal::handle::{send_down, send_exit};
use crate::signal::request::Target;
use crate::signal::{ExitKind, MonitorSignal, Request, RequestKind, Signal, push};
use crate::timer;
use crate::vm::Vm;

/// How often a thread that waits for a process looks whether the VM still runs: a process answers within microseconds unless
/// it is in a long native, and a VM that stops tells nobody.
const STOPPED_CHECK: Duration = Duration::from_millis(100);

/// A process to be made for the host.
#[derive(Default)]
pub struct HostSpawn {
    /// Options; the exit is noted in any case.
    pub options: SpawnOptions,
    /// Linked to this local process, whose namespace it gets.
    pub parent: Option<Word>,
    /// It traps exits from the start.
    pub trap_exit: bool,
}

/// Why no process was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostSpawnError {
    /// See there.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The process to be linked to is dead.
    #[error("the parent is not alive")]
    Parent,
}

/// Runs a native of the embedding program: the function of every [`NativeEntry::host`](beamr_abi::NativeEntry::host) row.
pub fn host_native(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    // SAFETY: engines and dirty threads set it to the static row that they call before they call it.
    let entry: Option<&'static beamr_abi::NativeEntry> = unsafe { ctx.native.as_ref() };
    let vm = vm_of(ctx);
    match (vm.hooks.host_native.get(), entry) {
        (Some(run), Some(entry)) => run(ctx, entry, args),
        _ => Err(ctx.notsup()),
    }
}

/// How a host call of the running native stands.
#[derive(Clone, Copy, Debug)]
pub enum HostCall {
    /// None was begun: this is the first run.
    None,
    /// Not completed: the native waits again.
    Waiting,
    /// Completed with this term, in the process's heap; `None`: given up by the host.
    Done(Option<Word>),
    /// Its time is over.
    TimedOut,
}

/// How the running native's host call stands. Not for dirty natives.
pub fn host_call(ctx: &mut Ctx) -> HostCall {
    let o = own(ctx);
    let Some(state) = o.outstanding.take() else {
        return HostCall::None;
    };
    match *state {
        Outstanding::Done(answer) => {
            timer::stop_receive(worker(ctx), o);
            HostCall::Done(answer.map(|a| a.adopt(ctx.heap())))
        }
        Outstanding::Waiting(_) if o.timeout == TimeoutState::Fired => {
            timer::stop_receive(worker(ctx), o);
            HostCall::TimedOut
        }
        Outstanding::Waiting(_) => {
            o.outstanding = Some(state);
            HostCall::Waiting
        }
    }
}

/// Begins a host call, which ends by itself after `timeout` milliseconds; its number. The native then returns
/// [`Pending::Wait`](beamr_abi::Pending::Wait). Not for dirty natives.
pub fn begin_host_call(ctx: &mut Ctx, timeout: Option<u64>) -> u64 {
    let w = worker(ctx);
    let slot = slot_of(ctx);
    let o = own(ctx);
    o.request_id = o.request_id.wrapping_add(1);
    o.outstanding = Some(Box::new(Outstanding::Waiting(u64::from(o.request_id))));
    if let Some(ms) = timeout {
        timer::stop_receive(w, o);
        timer::start_receive(w, slot.id, o, ms);
    }
    u64::from(o.request_id)
}

/// Takes back a host call that was begun and is not to be waited for.
pub fn abandon_host_call(ctx: &mut Ctx) {
    let o = own(ctx);
    o.outstanding = None;
    timer::stop_receive(worker(ctx), o);
}

/// Whether the running process traps exits; what it did before.
pub fn set_trap_exit(ctx: &mut Ctx, on: bool) -> bool {
    std::mem::replace(&mut own(ctx).trap_exit, on)
}

fn local(pid: Word) -> Option<SlotId> {
    pid.is_local_pid()
        .then(|| SlotId::from_u64(pid.local_number()))
}

impl Vm {
    /// Makes a process for the host.
    pub fn host_spawn(
        self: &Arc<Vm>,
        namespace: &Arc<Namespace>,
        start: Start,
        spawn: &HostSpawn,
        group_leader: Word,
    ) -> Result<Word, HostSpawnError> {
        let w = self.guest();
        let parent = match spawn.parent {
            None => None,
            Some(p) if self.is_alive(p) => ProcId::of(p),
            Some(_) => return Err(HostSpawnError::Parent),
        };
        let of_parent = spawn.parent.and_then(|p| self.namespace_of(p));
        let namespace = of_parent.as_ref().unwrap_or(namespace);
        let id = make(
            &w,
            namespace,
            start,
            &spawn.options,
            group_leader,
            parent,
            true,
            |_, child| {
                child.trap_exit = spawn.trap_exit;
                if let Some(p) = parent {
                    child.links.insert(p, 0);
                }
            },
            |child| {
                if self.trace.traces_new() {
                    crate::trace::process::inherit(&w, None, child, false);
                }
            },
        )?;
        if let Some(p) = parent
            && let Some(to) = p.slot()
            && push(&w, to, Signal::Link(id)).is_err()
        {
            // It died meanwhile: the child learns it as from any link.
            let reason = Carried::immediate(atoms::NOPROC);
            send_exit(&w, p, id, ExitKind::NoLink, reason);
        }
        Ok(Word::pid(id.number()))
    }
    /// The namespace of a live process.
    pub fn namespace_of(&self, pid: Word) -> Option<Arc<Namespace>> {
        let slot = self.processes.lookup(local(pid)?)?;
        Some(slot.namespace.clone())
    }
    /// Lets a process look at its queue: one written in Rust gets a turn. False when there is no such process.
    pub fn wake(self: &Arc<Vm>, pid: Word) -> bool {
        let w = self.guest();
        local(pid).is_some_and(|id| push(&w, id, Signal::Wake).is_ok())
    }
    /// Sends an exit signal as `exit(To, Reason)` of another process does; false when there is no such process.
    pub fn exit_from(self: &Arc<Vm>, from: Word, to: Word, reason: Carried) -> bool {
        let w = self.guest();
        match (ProcId::of(from), ProcId::of(to)) {
            (Some(from), Some(to)) => send_exit(&w, from, to, ExitKind::Exit2, reason),
            _ => false,
        }
    }
    /// Ends a process with this reason (`killed` for `kill`), whether it traps exits or not; false when there is no such process.
    pub fn terminate(self: &Arc<Vm>, pid: Word, reason: Carried) -> bool {
        let w = self.guest();
        let nobody = ProcId::local(u64::MAX >> 4);
        ProcId::of(pid).is_some_and(|to| send_exit(&w, nobody, to, ExitKind::Terminate, reason))
    }
    /// Sets a monitor of `watcher` on `target`; its reference. When the target is dead the watcher gets `'DOWN'` with `noproc`, and
    /// the second value says so. `None` when the watcher is dead.
    pub fn host_monitor(self: &Arc<Vm>, watcher: Word, target: Word) -> Option<(RefKey, bool)> {
        let w = self.guest();
        let (origin, to) = (ProcId::of(watcher)?, ProcId::of(target)?);
        let key = w.next_ref();
        // In the watcher's queue before anything that the target may send.
        let set = RequestKind::Name(Box::new(move |o: &mut Own| {
            let monitor = Monitor {
                target: MonitorTarget::Process(to),
                tag: None,
                alias: false,
            };
            o.monitors.insert(key, monitor);
            Word::TRUE
        }));
        let question = Request {
            from: None,
            id: 0,
            kind: set,
        };
        push(&w, origin.slot()?, Signal::Request(Box::new(question))).ok()?;
        if origin == to {
            return Some((key, false));
        }
        let monitor = Signal::Monitor(Box::new(MonitorSignal {
            key,
            origin,
            name: None,
        }));
        let dead = to.slot().is_none_or(|to| push(&w, to, monitor).is_err());
        if dead {
            send_down(&w, origin, key, Carried::immediate(atoms::NOPROC));
        }
        Some((key, dead))
    }
    /// Completes a host call, see the module; `None` gives it up. False when there is no such process; a number that is not
    /// the process's newest is dropped there.
    pub fn complete_host_call(
        self: &Arc<Vm>,
        pid: Word,
        number: u64,
        answer: Option<Carried>,
    ) -> bool {
        let w = self.guest();
        let reply = Signal::Reply(Box::new((number, answer)));
        local(pid).is_some_and(|id| push(&w, id, reply).is_ok())
    }
    /// Calls `watcher` once: when the process has ended and its exit is noted (at once when it is), or with `None` when there is and will be no
    /// record. It runs on a worker under the lock of the ledger and must be short.
    pub fn when_exited(
        &self,
        pid: Word,
        watcher: impl FnOnce(Option<&ExitRecord>) + Send + 'static,
    ) {
        let n = pid.local_number();
        let watcher: ExitWatcher = Box::new(watcher);
        let known = pid.is_local_pid();
        if known {
            self.watch(pid);
        }
        self.exits.when(n, watcher, || {
            !known || self.processes.lookup(SlotId::from_u64(n)).is_none()
        });
    }

    /// Asks a process and waits for what it answers; `None` when there is no such process (any more) or the VM stops.
    fn question<R: Send + 'static>(
        self: &Arc<Vm>,
        pid: Word,
        kind: impl FnOnce(SyncSender<R>) -> RequestKind,
    ) -> Option<R> {
        let (answer, wait) = sync_channel(1);
        let question = Request {
            from: None,
            id: 0,
            kind: kind(answer),
        };
        let w = self.guest();
        push(&w, local(pid)?, Signal::Request(Box::new(question))).ok()?;
        if self.options.workers == 0 {
            // The calling thread is the one that runs processes.
            while self.run_until_idle(1024).turns > 0 {
                match wait.try_recv() {
                    Ok(r) => return Some(r),
                    Err(TryRecvError::Disconnected) => return None,
                    Err(TryRecvError::Empty) => {}
                }
            }
            return wait.try_recv().ok();
        }
        loop {
            match wait.recv_timeout(STOPPED_CHECK) {
                Ok(r) => return Some(r),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if self.stopping.load(Ordering::Acquire) {
                        return None;
                    }
                }
            }
        }
    }
    /// Looks at (or changes) the runner's part of a process, in order with its other signals.
    pub fn with_own<R: Send + 'static>(
        self: &Arc<Vm>,
        pid: Word,
        f: impl FnOnce(&mut Own) -> R + Send + 'static,
    ) -> Option<R> {
        self.question(pid, |answer| {
            RequestKind::Name(Box::new(move |own| {
                // Who asked may have given up.
                let _ = answer.send(f(own));
                Word::TRUE
            }))
        })
    }
    /// Looks at a process while it is at rest: between slices, and not while a dirty native has its body.
    pub fn at_rest<R: Send + 'static>(
        self: &Arc<Vm>,
        pid: Word,
        f: impl FnOnce(&mut Target<'_>) -> R + Send + 'static,
    ) -> Option<R> {
        self.question(pid, |answer| {
            RequestKind::Call(Box::new(move |target, _| {
                // As above.
                let _ = answer.send(f(target));
                Word::TRUE
            }))
        })
    }
    /// Whether a process runs in an image or will return into it.
    pub fn runs_in(self: &Arc<Vm>, pid: Word, image: &Arc<Image>) -> Option<bool> {
        let image = image.clone();
        self.at_rest(pid, move |t| {
            // SAFETY: the process is at rest in the hands of its runner.
            unsafe { old_code::runs_in(&t.process.body, &image) }
        })
    }
    /// The processes of a namespace that run old code of a module.
    pub fn users_of_old_code(
        self: &Arc<Vm>,
        modules: &ModuleTable,
        module: beamr_term::Atom,
    ) -> Vec<Word> {
        let Some(old) = modules.old(module) else {
            return Vec::new();
        };
        let mut users = self.pids();
        users.retain(|pid| {
            self.namespace_of(*pid)
                .is_some_and(|n| n.id == modules.namespace)
                && self.runs_in(*pid, &old.image) == Some(true)
        });
        users
    }
}
