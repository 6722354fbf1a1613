//! Completing calls of native functions later.

use std::sync::{Arc, Weak};

use beamr_abi::ExceptionClass;
use beamr_vm::process::Carried;
use beamr_vm::vm::Vm;

use super::NativeError;
use super::error::ErrorKind;
use crate::term::{IntoTerm, OwnedTerm, Pid, Term, TermBuilder, TermError, atom};

/// A call of a native function that somebody will answer. It may go to any thread. When it is dropped unused the call raises `abandoned`.
#[derive(Debug)]
pub struct Completion {
    vm: Weak<Vm>,
    pid: Pid,
    number: u64,
    used: bool,
}

/// What an answer carries: `{ok, Value}` or `{Class, Reason}`.
pub(crate) fn answer<'h>(
    to: &TermBuilder<'h>,
    value: Result<Term<'h>, (ExceptionClass, Term<'h>)>,
) -> Result<Term<'h>, TermError> {
    Ok(match value {
        Ok(v) => to.tuple(&[to.atom("ok")?, v]),
        Err((class, reason)) => {
            let class = match class {
                ExceptionClass::Error => "error",
                ExceptionClass::Exit => "exit",
                ExceptionClass::Throw => "throw",
            };
            to.tuple(&[to.atom(class)?, reason])
        }
    })
}

impl Completion {
    pub(super) fn new(vm: &Arc<Vm>, pid: Pid, number: u64) -> Completion {
        Completion {
            vm: Arc::downgrade(vm),
            pid,
            number,
            used: false,
        }
    }
    /// The process that waits.
    pub fn pid(&self) -> Pid {
        self.pid
    }
    /// The number of the call among those of its process, for [`Scheduler::wake_with_result_for`](crate::Scheduler::wake_with_result_for).
    pub fn call_id(&self) -> u64 {
        self.number
    }
    /// Leaves the answering to [`Scheduler::wake_with_result_for`](crate::Scheduler::wake_with_result_for): pid and call id.
    pub fn detach(mut self) -> (Pid, u64) {
        self.used = true;
        (self.pid, self.number)
    }
    /// Answers with a value; false when the process is dead. A value that stands for no term is `badarg`.
    pub fn complete(self, value: impl IntoTerm) -> bool {
        let Some(vm) = self.vm.upgrade() else {
            return false;
        };
        let made = OwnedTerm::build_in(&vm.tables, |b| answer(b, Ok(value.into_term(b)?)));
        match made {
            Ok(t) => self.send(&vm, Some(t.into_carried())),
            Err(_) => self.fail(NativeError::badarg()),
        }
    }
    /// Answers by raising an exception; false when the process is dead.
    pub fn fail(self, error: NativeError) -> bool {
        let Some(vm) = self.vm.upgrade() else {
            return false;
        };
        let (class, reason) = match error.0 {
            ErrorKind::Raise(class, reason) => (class, reason),
            // There is nothing to wait for any more.
            ErrorKind::Suspend => (ExceptionClass::Error, Box::new(atom("badarg")) as _),
        };
        let made = OwnedTerm::build_in(&vm.tables, |b| answer(b, Err((class, reason.make(b)?))));
        let made = made.or_else(|_| {
            OwnedTerm::build_in(&vm.tables, |b| {
                answer(b, Err((ExceptionClass::Error, b.atom("badarg")?)))
            })
        });
        self.send(&vm, made.ok().map(OwnedTerm::into_carried))
    }
    fn send(mut self, vm: &Arc<Vm>, answer: Option<Carried>) -> bool {
        self.used = true;
        vm.complete_host_call(self.pid.word(), self.number, answer)
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if !self.used
            && let Some(vm) = self.vm.upgrade()
        {
            vm.complete_host_call(self.pid.word(), self.number, None);
        }
    }
}
