//! Signals: what one process does to another.
//!
//! Everything that crosses from process to process is a [`Signal`] in the receiver's one queue: messages, links,
//! monitors, exits, requests. So the order that a sender gave them is the order in which they take effect,
//! whatever their kind. The receiver's runner handles them ([`handle`]): at the start of a slice, when a receive
//! runs out of messages, and where natives say so.
//!
//! | file | what |
//! |---|---|
//! | `handle` | what each signal does to its receiver |
//! | `link`, `monitor`, `alias` | what programs call to set up signals |
//! | `request` | questions to other processes and their answers |
//! | `suspend` | suspending and resuming others |

pub mod alias;
pub(crate) mod handle;
pub mod link;
pub mod monitor;
pub mod request;
pub mod suspend;

use std::sync::Arc;

use beamr_sync::SlotId;
use beamr_term::Atom;

pub use request::{Request, RequestKind};

use crate::process::{Carried, Message, ProcId, RefKey, Slot};
use crate::sched::Worker;

/// Signals that were fetched together.
pub type Batch = beamr_sync::Batch<Signal>;

/// Why an exit signal is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitKind {
    /// A linked process died: takes effect only while the link stands.
    Link,
    /// `exit/2`.
    Exit2,
    /// A link could not be made (`noproc`, `noconnection`): takes the link down if it stands, and takes effect anyway.
    NoLink,
    /// From the host or the VM: as `exit/2`, from nobody.
    Host,
    /// From the host: ends the process with the reason even if it traps exits.
    Terminate,
}

/// An exit signal.
#[derive(Debug)]
pub struct ExitSignal {
    /// From whom.
    pub from: ProcId,
    /// Why.
    pub kind: ExitKind,
    /// The reason.
    pub reason: Carried,
    /// The alias that it was sent to, if it was.
    pub alias: Option<RefKey>,
    /// Its sender asks for priority.
    pub priority: bool,
    /// What the sender had of sequential tracing.
    pub token: Option<crate::trace::seq::Token>,
}

/// A monitor that wants to be set.
#[derive(Debug)]
pub struct MonitorSignal {
    /// Its reference.
    pub key: RefKey,
    /// Who wants to know.
    pub origin: ProcId,
    /// Under which name.
    pub name: Option<Atom>,
}

/// The end of what a monitor watched.
#[derive(Debug)]
pub struct DownSignal {
    /// The monitor.
    pub key: RefKey,
    /// Why.
    pub reason: Carried,
}

/// A message sent to an alias.
#[derive(Debug)]
pub struct AliasMessage {
    /// The alias.
    pub key: RefKey,
    /// Its sender asks for priority.
    pub priority: bool,
    /// What the sender had of sequential tracing.
    pub token: Option<crate::trace::seq::Token>,
    /// The message.
    pub message: Carried,
}

/// A message with more than its term.
#[derive(Debug)]
pub struct Letter {
    /// Who sent it: a local pid.
    pub from: beamr_term::Word,
    /// What the sender had of sequential tracing.
    pub token: Option<crate::trace::seq::Token>,
    /// The message.
    pub message: Message,
}

/// What one process does to another.
#[derive(Debug)]
pub enum Signal {
    /// A message.
    Message(Message),
    /// A message that says who sent it.
    Letter(Box<Letter>),
    /// A message by alias.
    AliasMessage(Box<AliasMessage>),
    /// The receive timer with this number is over.
    Timeout(u32),
    /// An exit signal.
    Exit(Box<ExitSignal>),
    /// `from` linked itself to the receiver.
    Link(ProcId),
    /// `from` takes its link down; wants the acknowledgement with that number.
    Unlink(Box<(ProcId, u64)>),
    /// `from` has taken the link down.
    UnlinkAck(Box<(ProcId, u64)>),
    /// A monitor on the receiver.
    Monitor(Box<MonitorSignal>),
    /// No longer.
    Demonitor(RefKey),
    /// A monitor of the receiver fired.
    Down(Box<DownSignal>),
    /// A question.
    Request(Box<Request>),
    /// The answer to the receiver's question (`None`: the other is dead).
    Reply(Box<(u64, Option<Carried>)>),
    /// Only looks in: a process written in Rust is to run, or one that waits for a server.
    Wake,
}

/// A count of the slot behind a reference that came from the process table.
///
/// # Safety
/// `slot` was reached through the process table (so that it lies in an `Arc`) and is alive.
pub(crate) unsafe fn count(slot: &Slot) -> Arc<Slot> {
    let p: *const Slot = slot;
    Arc::increment_strong_count(p);
    Arc::from_raw(p)
}

/// Pushes a signal to a slot and wakes its process. Gives it back when the process is dead.
#[inline]
pub(crate) fn push_to(w: &Worker, slot: &Slot, signal: Signal) -> Result<(), Signal> {
    let was_empty = slot.queue.push(signal)?;
    if was_empty && slot.state.notify() {
        // SAFETY: slots live in the `Arc`s that the process table hands out.
        w.enqueue(unsafe { count(slot) });
    }
    Ok(())
}

/// Pushes a signal to a local process. Gives it back when there is none.
#[inline]
pub(crate) fn push(w: &Worker, to: SlotId, signal: Signal) -> Result<(), Signal> {
    let guard = w.participant.pin();
    match w.vm.processes.get(to, &guard) {
        Some(slot) => push_to(w, slot, signal),
        None => Err(signal),
    }
}

/// Sends a signal to any process or port. What goes to other nodes goes through the VM's hook; without it it
/// comes back, as from the dead. For parts of the system that are no processes (ports, channels of the distribution): they
/// call it with a worker of their own ([`Vm::guest`](crate::vm::Vm::guest)).
pub fn push_proc(w: &Worker, to: ProcId, signal: Signal) -> Result<(), Signal> {
    if let Some(id) = to.slot() {
        return push(w, id, signal);
    }
    if to.is_local_port() {
        return crate::port::signal(w, to, signal);
    }
    match w.vm.hooks.remote_signal.get() {
        Some(f) => f(w, to, signal),
        None => Err(signal),
    }
}
