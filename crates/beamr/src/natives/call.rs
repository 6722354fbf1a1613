//! One call of a native function.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use beamr_abi::Ctx;
use beamr_term::Word;
use beamr_vm::host;
use beamr_vm::process::ProcId;
use beamr_vm::signal::{Signal, push_proc};
use beamr_vm::vm::Vm;

use super::{Completion, NativeError};
use crate::term::{
    FromTerm, IntoTerm, OwnedTerm, Pid, Place, Term, TermBuilder, TermError, TermErrorKind,
};

/// The call that a native function answers: its arguments, the process that called, and (through [`TermBuilder`]) a place for its value.
pub struct NativeCall<'h> {
    builder: TermBuilder<'h>,
    /// The context of the running native; used for one operation at a time.
    pub(super) ctx: *mut Ctx,
    args: &'h [Word],
    vm: &'h Arc<Vm>,
    private: Option<&'h Arc<dyn Any + Send + Sync>>,
    dirty: bool,
    /// The answer of a host call that was completed: a term of this process's heap, or what to raise.
    pub(super) answer: Option<Result<Term<'h>, NativeError>>,
    /// A host call was begun by this run.
    pub(super) begun: bool,
}

impl<'h> NativeCall<'h> {
    /// # Safety
    /// `ctx` is the context of the running native for `'h`, whose brand no other place has; `args` are terms of its process.
    pub(super) unsafe fn new(
        ctx: *mut Ctx,
        args: &'h [Word],
        vm: &'h Arc<Vm>,
        private: Option<&'h Arc<dyn Any + Send + Sync>>,
        dirty: bool,
    ) -> NativeCall<'h> {
        NativeCall {
            builder: TermBuilder::new(ctx, &vm.tables, false),
            ctx,
            args,
            vm,
            private,
            dirty,
            answer: None,
            begun: false,
        }
    }
    /// How many arguments there are.
    pub fn arity(&self) -> usize {
        self.args.len()
    }
    /// An argument, counted from 0.
    pub fn arg(&self, index: usize) -> Option<Term<'h>> {
        // SAFETY: arguments live in the process's heap, where nothing moves while a native runs.
        self.args
            .get(index)
            .map(|w| unsafe { Term::new(*w, &self.vm.tables) })
    }
    /// An argument as a value, counted from 0. An error names the argument.
    pub fn arg_as<T: FromTerm>(&self, index: usize) -> Result<T, TermError> {
        match self.arg(index) {
            Some(t) => T::from_term(t).map_err(|e| e.at(Place::Argument(index + 1))),
            None => Err(TermError::from(TermErrorKind::Size {
                expected: index + 1,
                found: self.arity(),
            })),
        }
    }
    /// The process that called.
    pub fn self_pid(&self) -> Pid {
        // SAFETY: see the field.
        let pid = unsafe { (*self.ctx).self_pid() };
        Pid::from(pid.local_number())
    }
    /// The data that the VM was built with, if it is a `T` (`nif_private_data`).
    pub fn private_data<T: Any>(&self) -> Option<&'h T> {
        self.private.and_then(|p| p.downcast_ref::<T>())
    }
    /// Charges the process for work, in reductions (about a function call each). A function that charges nothing counts as one.
    pub fn bump_reductions(&mut self, reductions: u32) {
        // SAFETY: see the field.
        unsafe { (*self.ctx).bump(i64::from(reductions)) };
    }
    /// Sends a message to a process of this VM. False when there is no such process.
    pub fn send(&mut self, to: impl Into<Pid>, message: impl IntoTerm) -> Result<bool, TermError> {
        let message = OwnedTerm::from_value(&self.vm.tables, message)?.into_carried();
        if self.dirty {
            return Ok(self.vm.send(to.into().word(), message));
        }
        // SAFETY: see the field; a native that is not dirty runs on a worker.
        let worker = beamr_vm::process::worker(unsafe { &*self.ctx });
        let to = ProcId::local(to.into().number());
        Ok(push_proc(worker, to, Signal::Message(message.into_message())).is_ok())
    }
    /// Puts the process to sleep, when the function returns [`NativeError::suspend`], until the completion is used, the process is killed, or the time is
    /// over. The function is then called again with the same arguments, and [`NativeCall::awaited`] has the answer. Only for functions that are not dirty.
    pub fn request_await_suspend(
        &mut self,
        timeout: Option<Duration>,
    ) -> Result<Completion, NativeError> {
        if self.dirty {
            return Err(NativeError::error(crate::term::atom("notsup")));
        }
        let timeout = timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX >> 1));
        // SAFETY: see the field.
        let number = unsafe { host::begin_host_call(&mut *self.ctx, timeout) };
        self.begun = true;
        Ok(Completion::new(self.vm, self.self_pid(), number))
    }
    /// The answer that the function was called again for: the value of the completion, or what it raises. `None` in the first run.
    pub fn awaited(&mut self) -> Option<Result<Term<'h>, NativeError>> {
        self.answer.take()
    }
}

impl<'h> Deref for NativeCall<'h> {
    type Target = TermBuilder<'h>;
    fn deref(&self) -> &TermBuilder<'h> {
        &self.builder
    }
}

impl std::fmt::Debug for NativeCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeCall")
            .field("pid", &self.self_pid())
            .field("arity", &self.arity())
            .finish()
    }
}
