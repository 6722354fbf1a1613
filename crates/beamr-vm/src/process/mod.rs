//! Processes: what others see of one (its slot), what its runner owns, what goes with its heap.
//!
//! Three structures, three lives:
//!
//! * [`Slot`] is what everybody may touch: identity, scheduling word, signal queue, a few atomics. It is counted
//!   and stands in the process table until the process is dead.
//! * [`Own`] lies in the slot and belongs to the *runner*: who is between `begin_run` and the matching end of
//!   [`ProcState`]. Links, monitors, aliases, the mailbox, the exit reason. It is there even while the body is away,
//!   so that a process whose dirty native still runs can die.
//! * [`Process`] is the body with what belongs to the running program (dictionary, flags of the collector). It
//!   belongs to who has the body: the runner, or a dirty thread.
//!
//! Natives reach them through [`own`], [`process`], [`vm_of`]. What is here knows no scheduling decisions
//! (`sched`) and no signal semantics (`signal`).

mod carried;
mod dictionary;
pub mod exit;
pub mod flags;
mod ids;
pub mod info;
mod mailbox;
mod room;
pub(crate) mod saved_calls;
mod side;
mod small_map;
pub mod spawn;
mod walk;

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use beamr_abi::{Body, Ctx};
use beamr_sync::{Priority, ProcState, SignalQueue, SlotId, Task, TimerHandle};
use beamr_term::{Alloc, Atom, Word, atoms};

pub use carried::Carried;
pub use dictionary::Dictionary;
pub use exit::{ExitReason, ExitRecord};
pub use ids::{ProcId, RefKey};
pub use mailbox::{Mailbox, Message};
pub use room::{LARGE, has_room, namespace_has_room};
pub use side::VmProcessSide;
pub use small_map::SmallMap;
pub use walk::{NativeWalk, resumes, run_walk};

use crate::native_process::NativeProcess;
use crate::sched::Worker;
use crate::signal::{Batch, Signal};
use crate::vm::{Namespace, Vm};

/// What everybody may touch of a process.
pub struct Slot {
    /// Its pid's number.
    pub id: SlotId,
    /// Its namespace.
    pub namespace: Arc<Namespace>,
    pub(crate) state: ProcState,
    pub(crate) queue: SignalQueue<Signal>,
    /// What is traced of it, see [`Slot::tracing`].
    pub(crate) trace_bits: AtomicU32,
    pub(crate) tracees: beamr_sync::prim::Mutex<crate::trace::Tracees>,
    pub(crate) priority: AtomicU8,
    /// Who watches the exit from outside, see `exit`.
    pub(crate) watch: AtomicU8,
    /// It owns ets tables or holds some fixed, or did so once; see `ets::registry`.
    pub(crate) owns_tables: AtomicBool,
    /// The body; null while it is away with a dirty thread and after death.
    pub(crate) body: AtomicPtr<Process>,
    own: UnsafeCell<Own>,
}

// SAFETY: `own` is touched by the runner only, the body by who has it; the rest is atomic or immutable.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot")
            .field("id", &self.id.as_u64())
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Slot {
    pub(crate) fn new(id: SlotId, namespace: Arc<Namespace>, own: Own, body: Box<Process>) -> Slot {
        let state = ProcState::new_queued();
        Slot {
            id,
            namespace,
            state,
            queue: SignalQueue::new(),
            trace_bits: AtomicU32::new(0),
            tracees: Default::default(),
            priority: AtomicU8::new(own.priority as u8),
            watch: AtomicU8::new(0),
            owns_tables: AtomicBool::new(false),
            body: AtomicPtr::new(Box::into_raw(body)),
            own: UnsafeCell::new(own),
        }
    }
    /// Its pid.
    #[inline]
    pub fn pid(&self) -> Word {
        Word::pid(self.id.as_u64())
    }
    /// Its identity.
    #[inline]
    pub fn proc_id(&self) -> ProcId {
        ProcId::local(self.id.as_u64())
    }
    /// The runner's part.
    ///
    /// # Safety
    /// The caller is the runner and holds no other reference to it.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn own(&self) -> &mut Own {
        &mut *self.own.get()
    }
    /// The runner's part as a pointer.
    #[inline]
    pub(crate) fn own_ptr(&self) -> *mut Own {
        self.own.get()
    }
    /// The priority it is queued with.
    #[inline]
    pub(crate) fn run_priority(&self) -> Priority {
        match self.priority.load(Ordering::Relaxed) {
            0 => Priority::Max,
            1 => Priority::High,
            2 => Priority::Normal,
            _ => Priority::Low,
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let body = self.body.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !body.is_null() {
            // SAFETY: the last count of the slot is gone, so is every runner; the pointer came from a box.
            drop(unsafe { Box::from_raw(body) });
        }
    }
}

/// Bytes of a process without its heap.
pub const PROCESS_BYTES: usize = size_of::<Slot>() + size_of::<Process>();

/// A slot in a run queue.
#[derive(Debug)]
pub struct Runnable(pub(crate) Arc<Slot>);

impl Task for Runnable {
    fn tenant(&self) -> u32 {
        self.0.namespace.id
    }
    fn weight(&self) -> u32 {
        self.0.namespace.weight()
    }
}

/// What a monitor of this process watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorTarget {
    /// A process by pid.
    Process(ProcId),
    /// The process that a name stood for; the name is what `'DOWN'` carries.
    Name(ProcId, Atom),
    /// A name of another node (or one that nobody has).
    RemoteName(Atom, Atom),
    /// A port.
    Port(ProcId),
    /// A port by name, which `'DOWN'` carries; `None` when nobody has the name.
    PortName(Option<ProcId>, Atom),
    /// `time_offset`.
    TimeOffset,
}

/// A monitor that this process has set.
#[derive(Debug)]
pub struct Monitor {
    /// What it watches.
    pub target: MonitorTarget,
    /// `{tag, Tag}`.
    pub tag: Option<Box<Carried>>,
    /// The reference was made as an alias (and looks so in `'DOWN'`).
    pub alias: bool,
}

impl Monitor {
    /// The reference as the program knows it.
    pub fn reference(&self, key: RefKey, pid: Word, heap: &mut impl Alloc) -> Word {
        if self.alias {
            key.build_alias(pid, heap)
        } else {
            key.build(heap)
        }
    }
}

/// A monitor that another process has on this one.
#[derive(Clone, Copy, Debug)]
pub struct MonitoredBy {
    /// Who.
    pub origin: ProcId,
    /// Under which name, if by name.
    pub name: Option<Atom>,
}

/// When an alias stops to work besides `unalias`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasMode {
    /// Never.
    Explicit,
    /// With the first message sent to it (`alias([reply])`).
    Reply,
    /// With its monitor (`{alias, demonitor}`).
    Demonitor,
    /// With its monitor or the first message, which also removes the monitor (`{alias, reply_demonitor}`).
    ReplyDemonitor,
}

/// Aliases, monitors and links whose messages have priority.
#[derive(Debug, Default)]
pub(crate) struct Priorities {
    pub aliases: SmallMap<RefKey, ()>,
    pub monitors: SmallMap<RefKey, ()>,
    pub links: SmallMap<ProcId, ()>,
}

impl Priorities {
    /// Whether nothing has priority.
    pub fn is_empty(&self) -> bool {
        self.aliases.is_empty() && self.monitors.is_empty() && self.links.is_empty()
    }
}

/// A receive timer that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveTimer {
    pub worker: u32,
    pub handle: TimerHandle,
}

/// What an outstanding request of a native to another process came to.
#[derive(Debug)]
pub(crate) enum Outstanding {
    Waiting(u64),
    Done(Option<Carried>),
}

/// How `receive ... after` stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TimeoutState {
    #[default]
    Unset,
    Running,
    Infinite,
    Fired,
}

/// See [`Own::tokens`].
pub(crate) type Tokens = std::collections::HashMap<usize, Option<crate::trace::seq::Token>>;

/// What the runner owns; see the module.
pub struct Own {
    /// Messages.
    pub mailbox: Mailbox,
    /// Signals that were fetched and not yet handled.
    pub(crate) middle: Option<Batch>,
    /// Linked processes and ports; the value is the number of an unlink that waits for its acknowledgement, or 0.
    pub links: SmallMap<ProcId, u64>,
    /// Monitors set by this process.
    pub monitors: SmallMap<RefKey, Monitor>,
    /// Monitors set on this process.
    pub monitored_by: SmallMap<RefKey, MonitoredBy>,
    /// Active aliases.
    pub aliases: SmallMap<RefKey, AliasMode>,
    /// What may send messages of priority (28), if anything may.
    pub(crate) priorities: Option<Box<Priorities>>,
    /// Processes that this one suspended, and how often.
    pub suspending: SmallMap<ProcId, u32>,
    /// Processes that suspended this one: resumed when they die; see `signal::suspend`.
    pub(crate) deferred: Vec<crate::signal::Request>,
    /// `process_flag(trap_exit, _)`.
    pub trap_exit: bool,
    /// The process is on its way out.
    pub(crate) dying: Option<Box<exit::Dying>>,
    /// A program-visible event came since the process last went to wait.
    pub(crate) woke: bool,
    /// The process hibernates: its heap is to be shrunk when it goes to wait.
    pub(crate) hibernating: bool,
    pub(crate) timeout: TimeoutState,
    pub(crate) timer: Option<ReceiveTimer>,
    /// Number of the current receive timer: signals of older ones are stale.
    pub(crate) timer_id: u32,
    /// Tokens of sequential tracing of messages in the mailbox, by the addresses of their nodes; `None` for a message of the VM, which leaves
    /// the process its token.
    pub(crate) tokens: Option<Box<Tokens>>,
    /// Message timers to itself.
    pub(crate) timers: Option<Box<crate::timer::OwnTimers>>,
    pub(crate) unlink_id: u64,
    pub(crate) outstanding: Option<Box<Outstanding>>,
    pub(crate) request_id: u32,
    /// Bytes of the mailbox that the tenant was charged for.
    pub(crate) charged: usize,
    /// Registered name.
    pub name: Option<Atom>,
    /// Its priority.
    pub priority: Priority,
    /// `message_queue_data` is `off_heap`.
    pub off_heap_messages: bool,
    /// How often it asked for news of nodes.
    pub(crate) monitor_nodes: u32,
    /// The logger does not hear of its crash.
    pub(crate) quiet: bool,
    /// See [`SpawnOptions::family`](spawn::SpawnOptions::family).
    pub family: u32,
    /// Who spawned it.
    pub parent: Option<ProcId>,
    /// What it was spawned with.
    pub initial_call: (Atom, Atom, u32),
    /// Its native handler, when it is a process written in Rust.
    pub(crate) native: Option<Box<dyn NativeProcess>>,
    /// The process owns something that subsystems must release when it dies (ets tables, ...): a bit each,
    /// see [`Vm::on_exit`](crate::vm::Vm::on_exit).
    pub owned_resources: u32,
}

impl Own {
    /// Whether the process is written in Rust. (While a handler runs its turn, it is not here; signals are not handled then.)
    pub fn is_native(&self) -> bool {
        self.native.is_some()
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Own")
            .field("messages", &self.mailbox.len())
            .field("links", &self.links.len())
            .field("trap_exit", &self.trap_exit)
            .finish_non_exhaustive()
    }
}

impl Default for Own {
    fn default() -> Self {
        Own {
            mailbox: Mailbox::default(),
            middle: None,
            links: SmallMap::default(),
            monitors: SmallMap::default(),
            monitored_by: SmallMap::default(),
            aliases: SmallMap::default(),
            priorities: None,
            suspending: SmallMap::default(),
            deferred: Vec::new(),
            trap_exit: false,
            dying: None,
            woke: false,
            hibernating: false,
            timeout: TimeoutState::Unset,
            timer: None,
            timer_id: 0,
            tokens: None,
            timers: None,
            unlink_id: 0,
            outstanding: None,
            request_id: 0,
            charged: 0,
            name: None,
            priority: Priority::Normal,
            off_heap_messages: false,
            monitor_nodes: 0,
            quiet: false,
            family: 0,
            parent: None,
            initial_call: (atoms::ERLANG, atoms::APPLY, 2),
            native: None,
            owned_resources: 0,
        }
    }
}

/// The body of a process and what goes with its heap. Begins with the [`Body`] that engines and natives know.
#[repr(C)]
pub struct Process {
    /// What engines and natives touch.
    pub body: Body,
    /// The slot it belongs to. Valid as long as the process: the runner holds a count.
    pub(crate) slot: *const Slot,
    /// The process dictionary.
    pub dictionary: Dictionary,
    /// `process_flag(error_handler, _)`.
    pub error_handler: Atom,
    /// `process_flag(max_heap_size, _)`: what happens at the limit (the limit is in the heap).
    pub max_heap: MaxHeap,
    /// `process_flag(sensitive, true)`.
    pub sensitive: bool,
    /// What few processes have: what is noted of its calls.
    pub(crate) watched: Option<Box<Watched>>,
    /// `process_flag(async_dist, true)`.
    pub async_dist: bool,
    /// `erts_internal:ets_super_user(true)`: protections of ets tables do not hold for it.
    pub ets_super_user: bool,
    /// Bytes charged to the tenant.
    pub(crate) charged: isize,
    /// Of these, those of counted binaries that the heap refers to.
    pub(crate) charged_off_heap: isize,
    /// `proc_lib:set_label/1` (a root), or `NONE`.
    pub label: Word,
    /// A word that a native keeps over its own `Pending::Wait` (a root), or `NONE`.
    pub native_state: Word,
    /// The long walk of a native that gave up its slice ([`run_walk`]).
    pub(crate) walk: Option<Box<dyn NativeWalk>>,
    /// Messages that lie in the heap, while the body is away to be collected (the runner's mailbox gets what comes meanwhile).
    pub(crate) mailbox_away: Option<Box<Mailbox>>,
    /// Why it ended, in its own heap, until the exit procedure took it.
    pub(crate) ended: Option<Box<exit::Ended>>,
}

/// What is noted of the calls of a process.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// `process_flag(save_calls, N)`.
    pub saved_calls: Option<saved_calls::SavedCalls>,
    /// Sequential tracing.
    pub seq: Option<crate::trace::seq::Seq>,
    /// Time of traced calls.
    pub timed: Option<crate::trace::calls::Timed>,
}

// SAFETY: a process's terms live in its own blocks; it moves between threads as a whole.
unsafe impl Send for Process {}

/// What happens at `max_heap_size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxHeap {
    /// Kill the process.
    pub kill: bool,
    /// Tell the logger.
    pub error_logger: bool,
    /// Count shared binaries.
    pub include_shared_binaries: bool,
}

impl Default for MaxHeap {
    fn default() -> Self {
        MaxHeap {
            kill: true,
            error_logger: true,
            include_shared_binaries: false,
        }
    }
}

impl Process {
    /// The process that a body begins.
    ///
    /// # Safety
    /// `body` is the head of a `Process` of this VM that the caller has.
    #[inline]
    pub unsafe fn of_body<'a>(body: *mut Body) -> &'a mut Process {
        &mut *body.cast::<Process>()
    }
    /// Before the body goes away to be collected: messages that lie in the heap go with it.
    pub(crate) fn take_mailbox(&mut self, own: &mut Own) {
        if own.mailbox.has_adopted() {
            self.mailbox_away = Some(Box::new(std::mem::take(&mut own.mailbox)));
        }
    }
    /// Gives messages that went away with the body back, before those that came meanwhile.
    #[inline]
    pub(crate) fn give_mailbox(&mut self, own: &mut Own) {
        if let Some(mut m) = self.mailbox_away.take() {
            m.append(&mut own.mailbox);
            own.mailbox = *m;
        }
    }
    /// What is noted of its calls, from now on.
    pub(crate) fn watched(&mut self) -> &mut Watched {
        self.watched.get_or_insert_default()
    }
    /// The calls that it saves, if it does.
    #[inline]
    pub(crate) fn saved_calls(&mut self) -> Option<&mut saved_calls::SavedCalls> {
        self.watched.as_mut()?.saved_calls.as_mut()
    }
    /// Its slot.
    #[inline]
    pub fn slot(&self) -> &Slot {
        // SAFETY: see the field.
        unsafe { &*self.slot }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: nobody reads the heap any more.
        unsafe { crate::gc::free_heap(&mut self.body.heap) };
    }
}

/// The running process's body. Natives call it.
#[inline]
pub fn process<'a>(ctx: &Ctx) -> &'a mut Process {
    // SAFETY: `ctx.body` is the head of the `Process` that the worker has while a native runs. The reference must not
    // be kept beyond the native's return, and no two are used at once.
    unsafe { Process::of_body(ctx.body) }
}

/// The runner's part of the running process. Not for dirty natives.
#[inline]
pub fn own<'a>(ctx: &Ctx) -> &'a mut Own {
    let slot = process(ctx).slot;
    // SAFETY: the calling worker is the runner (dirty natives do not call this; checked below in debug builds).
    unsafe {
        debug_assert!(
            !(*slot).state.snapshot().is_dirty(),
            "a dirty native touched its process's runner"
        );
        (*slot).own()
    }
}

/// The running process's slot.
#[inline]
pub fn slot_of<'a>(ctx: &Ctx) -> &'a Slot {
    // SAFETY: the worker holds a count of the slot while the process runs.
    unsafe { &*process(ctx).slot }
}

/// The worker that runs this native.
#[inline]
pub fn worker<'a>(ctx: &Ctx) -> &'a Worker {
    // SAFETY: `ctx.worker` points to the `Worker` of this thread as long as the native runs.
    unsafe { &*ctx.worker.cast::<Worker>() }
}

/// The VM that runs this native.
#[inline]
pub fn vm_of<'a>(ctx: &Ctx) -> &'a Arc<Vm> {
    &worker(ctx).vm
}

/// A copy of a term in another heap of this VM.
pub(crate) fn copy_term(term: Word, heap: &mut impl Alloc) -> Word {
    beamr_term::copy::Copying::new(term, beamr_term::copy::CopyMode::Share).make(heap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_process_is_small() {
        let slot = size_of::<Slot>() + 16;
        let body = size_of::<Process>();
        let block = crate::gc::sizes::FIRST_SIZE * 8;
        assert!(slot + body + block <= 1400, "{slot} + {body} + {block}");
        assert!(size_of::<Signal>() <= 32);
    }
}
