//! Questions to another process, answered by it when it handles signals, so that all signals sent
//! before have taken effect.
//!
//! A native asks with [`ask`]: the first run sends the question and waits; it is run again when something has
//! arrived and then finds the answer. What needs the body at rest (its terms, its stack) is answered where the
//! process is between slices; the rest at once.

use beamr_abi::{Ctx, Escape, Pending};
use beamr_term::{Build, Fragment, FunEntry, Word, atoms};

use super::{Signal, push_proc};
use crate::gc;
use crate::process::info::InfoItem;
use crate::process::{
    Carried, Outstanding, Own, ProcId, Process, Slot, own, process, slot_of, worker,
};
use crate::sched::Worker;

/// What a closure that runs in another process gets.
pub struct Target<'a> {
    /// The process, at rest: its live registers are in `body.args`.
    pub process: &'a mut Process,
    /// Its runner's part.
    pub own: &'a mut Own,
}

/// A closure run in another process; gives the answer, built in the fragment.
pub type RequestFn = Box<dyn FnOnce(&mut Target<'_>, &mut Fragment) -> Word + Send>;

/// A change to the runner's part of another process; gives an immediate answer.
pub type NameFn = Box<dyn FnOnce(&mut Own) -> Word + Send>;

/// What is asked.
pub enum RequestKind {
    /// Whether it lives (answer `true`).
    IsAlive,
    /// `process_info`: the answer is a list of `{Item, Value}` in the order asked.
    Info(Box<[InfoItem]>),
    /// A new group leader (answer `true`).
    GroupLeader(Carried),
    /// Answers `true` when the suspension is in force.
    Suspended,
    /// Changes the runner's part at once.
    Name(NameFn),
    /// Runs a closure at rest.
    Call(RequestFn),
    /// Collects its heap (answer `true`).
    Collect {
        /// A full sweep.
        major: bool,
    },
}

impl std::fmt::Debug for RequestKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RequestKind::IsAlive => "IsAlive",
            RequestKind::Info(_) => "Info",
            RequestKind::GroupLeader(_) => "GroupLeader",
            RequestKind::Suspended => "Suspended",
            RequestKind::Name(_) => "Name",
            RequestKind::Call(_) => "Call",
            RequestKind::Collect { .. } => "Collect",
        })
    }
}

/// A question on its way.
#[derive(Debug)]
pub struct Request {
    /// Who asks; `None` when nobody wants the answer.
    pub from: Option<ProcId>,
    /// The asker's number for it.
    pub id: u64,
    /// The question.
    pub kind: RequestKind,
}

impl RequestKind {
    /// Whether it can be answered in the middle of a slice.
    pub(crate) fn at_once(&self) -> bool {
        matches!(self, RequestKind::IsAlive | RequestKind::Name(_))
    }
}

impl Request {
    /// Answers what can be answered at once.
    pub(crate) fn answer_here(mut self, w: &Worker, own: &mut Own) {
        let kind = std::mem::replace(&mut self.kind, RequestKind::IsAlive);
        let answer = match kind {
            RequestKind::Name(f) => f(own),
            _ => Word::TRUE,
        };
        self.reply(w, Some(Carried::immediate(answer)));
    }

    /// Answers at rest. The caller is the runner and has the body, and uses no reference to either.
    pub(crate) fn answer_at_rest(self, w: &Worker, slot: &Slot) {
        let (from, id) = (self.from, self.id);
        let yes = Carried::immediate(atoms::TRUE);
        // SAFETY: see above.
        let own = || unsafe { slot.own() };
        // SAFETY: see above; the body is there.
        let process = || unsafe { &mut *slot.body.load(std::sync::atomic::Ordering::Acquire) };
        let answer = match self.kind {
            RequestKind::IsAlive | RequestKind::Suspended => yes,
            RequestKind::Name(f) => Carried::immediate(f(own())),
            RequestKind::Info(items) => crate::process::info::answer(w, own(), process(), &items),
            RequestKind::GroupLeader(leader) => {
                let body = &mut process().body;
                body.group_leader = leader.adopt(&mut body.heap);
                yes
            }
            RequestKind::Collect { major } => {
                w.collect_at_rest(process(), major);
                yes
            }
            RequestKind::Call(f) => {
                let mut target = Target {
                    process: process(),
                    own: own(),
                };
                Carried::build(32, |fragment| f(&mut target, fragment))
            }
        };
        Request {
            from,
            id,
            kind: RequestKind::IsAlive,
        }
        .reply(w, Some(answer));
    }

    /// Sends the answer; `None` when the asked process is dead.
    pub(crate) fn reply(self, w: &Worker, answer: Option<Carried>) {
        if let Some(from) = self.from {
            let _ = push_proc(w, from, Signal::Reply(Box::new((self.id, answer))));
        }
    }
}

/// Asks another local process, see the module. `Ok(None)`: it is dead. `Err` waits for the answer.
/// A native asks one question.
pub fn ask(
    ctx: &mut Ctx,
    to: ProcId,
    question: impl FnOnce(&mut Ctx) -> RequestKind,
) -> Result<Option<Word>, Escape> {
    let o = own(ctx);
    match o.outstanding.take() {
        None => {
            o.request_id = o.request_id.wrapping_add(1);
            let id = u64::from(o.request_id);
            let kind = question(ctx);
            let from = Some(slot_of(ctx).proc_id());
            let request = Signal::Request(Box::new(Request { from, id, kind }));
            if push_proc(worker(ctx), to, request).is_err() {
                return Ok(None);
            }
            o.outstanding = Some(Box::new(Outstanding::Waiting(id)));
            hurry(ctx, to);
        }
        Some(state) => match *state {
            Outstanding::Done(answer) => {
                return Ok(answer.map(|a| a.adopt(&mut process(ctx).body.heap)));
            }
            Outstanding::Waiting(_) => o.outstanding = Some(state),
        },
    }
    Err(ctx.escape(Pending::Wait))
}

/// Has another local process do something; nobody waits for the answer. A process that is dead drops it. The own process does it at
/// the end of its slice.
pub fn tell(ctx: &mut Ctx, to: ProcId, kind: RequestKind) {
    let request = Request {
        from: None,
        id: 0,
        kind,
    };
    let _ = push_proc(worker(ctx), to, Signal::Request(Box::new(request)));
}

/// Somebody waits for an answer: when the asked process waits in a run queue with a lesser priority, it gets its turn
/// with that of who asks.
fn hurry(ctx: &Ctx, to: ProcId) {
    let w = worker(ctx);
    let mine = slot_of(ctx).run_priority();
    if mine >= beamr_sync::Priority::Normal {
        return;
    }
    let guard = w.participant.pin();
    let Some(slot) = to.slot().and_then(|id| w.vm.processes.get(id, &guard)) else {
        return;
    };
    if slot.run_priority() <= mine {
        return;
    }
    let slot: *const Slot = slot;
    // It is in one queue at most; if it is moving between two, it is in the hands of a worker that looks for something to run.
    for worker in &w.vm.workers {
        if worker.queue.raise(mine, |t| std::ptr::eq(&*t.0, slot)) {
            return;
        }
    }
}

/// Whether the running native has asked already (its first run is over).
pub fn has_asked(ctx: &Ctx) -> bool {
    own(ctx).outstanding.is_some()
}

/// `is_process_alive/1` for a local pid: signals sent to it before have taken effect when it answers.
/// `badarg` for what is no local pid.
pub fn is_process_alive(ctx: &mut Ctx, pid: Word) -> Result<bool, Escape> {
    if !pid.is_local_pid() {
        return Err(ctx.badarg());
    }
    let to = ProcId::local(pid.local_number());
    if to == slot_of(ctx).proc_id() {
        return Ok(true);
    }
    if !has_asked(ctx) {
        let w = worker(ctx);
        let guard = w.participant.pin();
        let id = beamr_sync::SlotId::from_u64(pid.local_number());
        let Some(slot) = w.vm.processes.get(id, &guard) else {
            return Ok(false);
        };
        let s = slot.state.snapshot();
        if s.is_exiting() {
            return Ok(false);
        }
        if s.phase() == beamr_sync::state::Phase::Waiting && slot.queue.is_empty() {
            return Ok(true);
        }
    }
    Ok(ask(ctx, to, |_| RequestKind::IsAlive)?.is_some())
}

/// `group_leader/2`. `badarg` when `pid` is no live process or `leader` no pid.
pub fn set_group_leader(ctx: &mut Ctx, leader: Word, pid: Word) -> Result<(), Escape> {
    let (Some(to), true) = (ProcId::of(pid), leader.is_pid()) else {
        return Err(ctx.badarg());
    };
    if to == slot_of(ctx).proc_id() {
        ctx.body().group_leader = leader;
        return Ok(());
    }
    if to.slot().is_none() {
        return Err(ctx.badarg());
    }
    match ask(ctx, to, |_| RequestKind::GroupLeader(Carried::copy(leader)))? {
        Some(_) => Ok(()),
        None => Err(ctx.badarg()),
    }
}

/// `garbage_collect(Pid)`: whether the process lived. The own process: marks the heap, the engine
/// collects when the native returns.
pub fn garbage_collect(ctx: &mut Ctx, pid: Word, major: bool) -> Result<bool, Escape> {
    let Some(to) = ProcId::of(pid).filter(|p| p.slot().is_some()) else {
        return Err(ctx.badarg());
    };
    if to == slot_of(ctx).proc_id() {
        let heap = ctx.heap();
        heap.gc_wanted = true;
        if major {
            heap.minor_count = heap.fullsweep_after;
        }
        return Ok(true);
    }
    Ok(ask(ctx, to, |_| RequestKind::Collect { major })?.is_some())
}

/// How many funs of `entry` a process holds, dead ones that are not collected included.
///
/// # Safety
/// The process is at rest, or runs the native that asks.
pub unsafe fn funs_of(target: &Target<'_>, entry: *const FunEntry) -> usize {
    gc::funs_in_body(&target.process.body, entry) + target.own.mailbox.funs(entry)
}

/// The same for the running process.
pub fn own_funs(ctx: &mut Ctx, entry: &FunEntry) -> usize {
    let target = Target {
        process: process(ctx),
        own: own(ctx),
    };
    // SAFETY: the process runs the native that asks.
    unsafe { funs_of(&target, entry) }
}

/// A list of pids, for natives that answer with several.
pub fn pid_list(ctx: &mut Ctx, ids: &[ProcId]) -> Word {
    let tables = ctx.tables();
    let mut list = Word::NIL;
    for id in ids.iter().rev() {
        let pid = id.build(tables, ctx);
        list = ctx.cons(pid, list);
    }
    list
}
