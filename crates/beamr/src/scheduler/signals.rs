//! What the host sends to processes, and what it asks of them.
//!
//! What gives a value of a process (`trap_exit`, `is_linked`, ...) waits until the process has handled the signals that were sent to it before; in a
//! native function or handler it gives `None` (or the error for no such process), since it would wait for itself.

use beamr_vm::process::{Carried, Own, ProcId};

use super::{NamespaceId, Scheduler};
use crate::exits::ExitReason;
use crate::inside::is_inside;
use crate::term::{IntoAtom, IntoTerm, OwnedTerm, Pid, Reference};

/// Why a message was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MailboxSendError {
    /// There is no such process, and nothing is known of its end.
    #[error("no such process")]
    NoSuchProcess,
    /// It has ended.
    #[error("process already terminated")]
    ProcessTerminated,
    /// Never: a process can be sent to as long as it lives.
    #[error("process slot unavailable for mailbox admission")]
    ProcessSlotUnavailable,
    /// Never: a message is taken whatever the heap of its receiver holds.
    #[error("target heap cannot admit mailbox message")]
    HeapAllocationFailed,
    /// The term is of another VM and cannot be taken over.
    #[error("invalid owned mailbox message")]
    InvalidMessage,
}

/// There is no such process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// See there.
    #[error("there is no process {0}")]
    NoSuchProcess(Pid),
}

/// There is no such process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SupervisionError {
    /// See there.
    #[error("there is no process {0}")]
    NoSuchProcess(Pid),
}

/// A monitor that was set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MonitorResult {
    /// Its reference.
    pub reference: Reference,
    /// The target was dead: `'DOWN'` with `noproc` has been sent.
    pub immediate_down: bool,
}

impl Scheduler {
    /// Sends a message. It is taken over without a copy when the term is of this VM, and by value otherwise.
    pub fn send_to_mailbox(
        &self,
        pid: impl Into<Pid>,
        message: OwnedTerm,
    ) -> Result<(), MailboxSendError> {
        let pid = pid.into();
        let message = message
            .into_tables(&self.vm().tables)
            .map_err(|_| MailboxSendError::InvalidMessage)?;
        if self.vm().send(pid.word(), message.into_carried()) {
            return Ok(());
        }
        Err(match self.peek_exit_reason(pid) {
            Some(_) => MailboxSendError::ProcessTerminated,
            None => MailboxSendError::NoSuchProcess,
        })
    }
    /// Sends an atom. False when there is no such process, or the text is no atom.
    pub fn enqueue_atom_message(&self, pid: impl Into<Pid>, atom: impl IntoAtom) -> bool {
        match atom.atom_in(&self.vm().tables) {
            Ok(atom) => {
                let message = Carried::immediate(atom);
                self.vm().send(pid.into().word(), message)
            }
            Err(_) => false,
        }
    }
    /// Sends any value. False when there is no such process.
    pub fn send(
        &self,
        pid: impl Into<Pid>,
        message: impl IntoTerm,
    ) -> Result<bool, crate::term::TermError> {
        let message = self.term(message)?;
        Ok(self.vm().send(pid.into().word(), message.into_carried()))
    }
    fn reason(&self, reason: ExitReason) -> Carried {
        match self.term(reason) {
            Ok(t) => t.into_carried(),
            // Reasons of other VMs whose terms cannot be taken over.
            Err(_) => Carried::immediate(beamr_term::atoms::BADARG),
        }
    }
    /// Ends a process with this reason, even if it traps exits. False when there is no such process. It takes effect when the process next handles signals.
    pub fn terminate_process(&self, pid: impl Into<Pid>, reason: ExitReason) -> bool {
        let reason = self.reason(reason);
        self.vm().terminate(pid.into().word(), reason)
    }
    /// Sends an exit signal as `exit(Target, Reason)` in the process `from` does: it ends a process that does not trap exits (unless the reason is `normal`), and
    /// is the message `{'EXIT', From, Reason}` for one that does.
    pub fn exit_signal(
        &self,
        from: impl Into<Pid>,
        target: impl Into<Pid>,
        reason: ExitReason,
    ) -> Result<(), SupervisionError> {
        let target = target.into();
        let reason = self.reason(reason);
        if self
            .vm()
            .exit_from(from.into().word(), target.word(), reason)
        {
            Ok(())
        } else {
            Err(SupervisionError::NoSuchProcess(target))
        }
    }
    /// Sets a monitor of the process `watcher` on another: it gets `{'DOWN', Reference, process, Target, Reason}` when that has ended.
    pub fn monitor(
        &self,
        watcher: impl Into<Pid>,
        target: impl Into<Pid>,
    ) -> Result<Reference, SupervisionError> {
        Ok(self.monitor_with_result(watcher, target)?.reference)
    }
    /// As [`Scheduler::monitor`]; tells whether the target was dead.
    pub fn monitor_with_result(
        &self,
        watcher: impl Into<Pid>,
        target: impl Into<Pid>,
    ) -> Result<MonitorResult, SupervisionError> {
        let watcher = watcher.into();
        let set = self.vm().host_monitor(watcher.word(), target.into().word());
        match set {
            Some((key, immediate_down)) => Ok(MonitorResult {
                reference: Reference::of_key(key),
                immediate_down,
            }),
            None => Err(SupervisionError::NoSuchProcess(watcher)),
        }
    }
    /// Asks a process.
    fn ask<R: Send + 'static>(
        &self,
        pid: Pid,
        f: impl FnOnce(&mut Own) -> R + Send + 'static,
    ) -> Option<R> {
        if is_inside() {
            return None;
        }
        self.vm().with_own(pid.word(), f)
    }
    /// Whether a process traps exits; `None` when there is no such process.
    pub fn trap_exit(&self, pid: impl Into<Pid>) -> Option<bool> {
        self.ask(pid.into(), |own| own.trap_exit)
    }
    /// Sets whether a process traps exits; what it was before.
    pub fn set_trap_exit(&self, pid: impl Into<Pid>, on: bool) -> Result<bool, LinkError> {
        let pid = pid.into();
        self.ask(pid, move |own| std::mem::replace(&mut own.trap_exit, on))
            .ok_or(LinkError::NoSuchProcess(pid))
    }
    /// Whether two processes are linked: both ends hold the link.
    pub fn is_linked(&self, a: impl Into<Pid>, b: impl Into<Pid>) -> bool {
        let (a, b) = (a.into(), b.into());
        let holds = |one: Pid, other: Pid| {
            let other = ProcId::local(other.number());
            self.ask(one, move |own| own.links.get(other) == Some(&0))
        };
        holds(a, b) == Some(true) && holds(b, a) == Some(true)
    }
    /// Whether a process is written in Rust; `None` when there is no such process.
    pub fn is_native(&self, pid: impl Into<Pid>) -> Option<bool> {
        let pid = pid.into();
        if is_inside() {
            return None;
        }
        self.vm()
            .at_rest(pid.word(), |target| target.own.is_native())
    }
    /// Whether a process lives.
    pub fn is_alive(&self, pid: impl Into<Pid>) -> bool {
        self.vm().is_alive(pid.into().word())
    }
    /// The namespace of a process; `None` when there is no such process.
    pub fn process_namespace(&self, pid: impl Into<Pid>) -> Option<NamespaceId> {
        let namespace = self.vm().namespace_of(pid.into().word())?;
        Some(NamespaceId(namespace.id))
    }
    /// The process of a name in the first namespace.
    pub fn whereis(&self, name: impl IntoAtom) -> Option<Pid> {
        let name = name.atom_in(&self.vm().tables).ok()?;
        self.vm().whereis(name).and_then(Pid::of_word)
    }
    /// Gives a handler a turn. False when there is no such process.
    pub fn wake_process(&self, pid: impl Into<Pid>) -> bool {
        self.vm().wake(pid.into().word())
    }
    /// Completes a call of an [awaiting](crate::NativeRegistry::awaiting) or [suspended](crate::NativeCall::request_await_suspend) native function with a value, by the
    /// numbers of its [`Completion`](crate::Completion). False when there is no such process; a number that is not the process's newest call is dropped.
    pub fn wake_with_result_for(
        &self,
        pid: impl Into<Pid>,
        call_id: u64,
        value: OwnedTerm,
    ) -> bool {
        let made = self.build_term(|b| crate::natives::answer(b, Ok(b.copy(value.root())?)));
        let Ok(answer) = made else { return false };
        self.vm()
            .complete_host_call(pid.into().word(), call_id, Some(answer.into_carried()))
    }
}
