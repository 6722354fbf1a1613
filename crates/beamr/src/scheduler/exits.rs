//! What is known of processes that ended.
//!
//! The VM notes the exits of processes that the host has spawned or watched, and all that are not normal: the last
//! 65,536 of each kind. A record keeps its reason; what a process returned is given away once, to [`Scheduler::run_until_exit`], [`Scheduler::wait`] or
//! [`Scheduler::take_exit_outcome`], whichever comes first.

use std::sync::Arc;
use std::time::Duration;

use beamr_abi::ExceptionClass;
use beamr_term::Word;
use beamr_vm::process::exit::ExitRecord;

use super::Scheduler;
use crate::exits::{
    EventQueue, ExecError, ExitCell, ExitEventSubscription, ExitReason, ExitWatch, ExitWatchState,
    OwnedException, WaitError, taken,
};
use crate::inside::is_inside;
use crate::term::{OwnedTerm, Pid};

impl Scheduler {
    fn nil(&self) -> OwnedTerm {
        OwnedTerm::of_word(Word::NIL, &self.vm().tables)
    }
    /// Looks at the record of an exit and changes it.
    fn record<R>(&self, pid: Pid, f: impl FnOnce(&mut ExitRecord) -> R) -> Option<R> {
        self.vm().exits.with(pid.number(), f)
    }
    /// Sleeps until a process has ended: its exit reason, and what its first function returned (`[]` when it did not return, or when that was taken
    /// before). At once for a process that has ended; of one that nothing is known of the reason is `noproc`, and `killed` when the VM stops before the process ends.
    /// [`Scheduler::wait`] tells these apart.
    pub fn run_until_exit(&self, pid: impl Into<Pid>) -> (ExitReason, OwnedTerm) {
        match self.wait(pid, None) {
            Ok((reason, result)) => (reason, result.unwrap_or_else(|| self.nil())),
            Err(WaitError::NoRecord) => (ExitReason::NoProc, self.nil()),
            Err(_) => (ExitReason::Killed, self.nil()),
        }
    }
    /// Sleeps until a process has ended, at most so long: its exit reason, and what its first function returned unless that was taken before.
    pub fn wait(
        &self,
        pid: impl Into<Pid>,
        timeout: Option<Duration>,
    ) -> Result<(ExitReason, Option<OwnedTerm>), WaitError> {
        let pid = pid.into();
        if is_inside() {
            return Err(WaitError::InsideVm);
        }
        let cell = ExitCell::new();
        self.watch_into(pid, &cell);
        let Some(reason) = cell.wait_in(self.vm(), timeout)? else {
            return Err(if self.vm().is_alive(pid.word()) {
                WaitError::Stopped
            } else {
                WaitError::NoRecord
            });
        };
        let result = self.record(pid, |r| {
            r.taken |= taken::OUTCOME;
            r.result.take()
        });
        Ok((reason, result.flatten().map(|c| self.owned(c.term))))
    }
    fn owned(&self, word: Word) -> OwnedTerm {
        OwnedTerm::of_word(word, &self.vm().tables)
    }
    fn watch_into(&self, pid: Pid, cell: &Arc<ExitCell>) {
        let (cell, tables) = (cell.clone(), self.vm().tables.clone());
        self.vm().when_exited(pid.word(), move |record| {
            cell.set(record.map(|r| ExitReason::of_record(r, &tables)));
        });
    }
    /// The reason of a process that has ended. Nothing is taken.
    pub fn peek_exit_reason(&self, pid: impl Into<Pid>) -> Option<ExitReason> {
        let tables = &self.vm().tables;
        self.record(pid.into(), |r| ExitReason::of_record(r, tables))
    }
    /// Takes reason and result of a process that has ended: each is given once, here or by waiting.
    pub fn take_exit_outcome(&self, pid: impl Into<Pid>) -> Option<(ExitReason, OwnedTerm)> {
        let tables = &self.vm().tables;
        let (reason, result) = self.record(pid.into(), |r| {
            if r.taken & taken::OUTCOME != 0 {
                return None;
            }
            r.taken |= taken::OUTCOME;
            Some((ExitReason::of_record(r, tables), r.result.take()))
        })??;
        let result = result.map_or_else(|| self.nil(), |c| self.owned(c.term));
        Some((reason, result))
    }
    /// Takes the error that ended a process.
    pub fn take_exit_error(&self, pid: impl Into<Pid>) -> Option<ExecError> {
        self.take_exception(pid.into(), taken::ERROR)
            .map(ExecError::of_exception)
    }
    /// Takes the exception that ended a process, with its stack.
    pub fn take_exit_exception(&self, pid: impl Into<Pid>) -> Option<OwnedException> {
        self.take_exception(pid.into(), taken::EXCEPTION)
    }
    fn take_exception(&self, pid: Pid, bit: u8) -> Option<OwnedException> {
        let tables = &self.vm().tables;
        let reason = self.record(pid, |r| {
            if r.taken & bit != 0 || r.class != ExceptionClass::Error {
                return None;
            }
            r.taken |= bit;
            Some(ExitReason::of_record(r, tables))
        })??;
        reason.exception()
    }
    /// Watches a process without waiting.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let vm = beamr::Scheduler::builder().threads(1).build()?;
    /// use beamr::{ExitReason, ExitWatchState};
    /// let pid = vm.spawn("erlang", "exit", (beamr::atom("killed"),))?;
    /// let reason = match vm.watch_exit(pid) {
    ///     ExitWatchState::Live(watch) => watch.wait()?, // or `.await`
    ///     ExitWatchState::AlreadyExited(reason) => reason,
    ///     ExitWatchState::NoRecord => unreachable!(),
    /// };
    /// assert_eq!(reason, ExitReason::Killed);
    /// # Ok(()) }
    /// ```
    pub fn watch_exit(&self, pid: impl Into<Pid>) -> ExitWatchState {
        let pid = pid.into();
        let cell = ExitCell::new();
        self.watch_into(pid, &cell);
        match cell.wait(Some(Duration::ZERO)) {
            Ok(Some(reason)) => ExitWatchState::AlreadyExited(reason),
            Ok(None) => ExitWatchState::NoRecord,
            Err(_) => ExitWatchState::Live(ExitWatch {
                pid,
                cell,
                vm: Arc::downgrade(self.vm()),
            }),
        }
    }
    /// The exits of all processes from now on, as they happen. There is one subscription at a time: `None` while there is another.
    pub fn subscribe_exit_events(&self) -> Option<ExitEventSubscription> {
        let mut current = self.events.lock().unwrap_or_else(|e| e.into_inner());
        if current.as_ref().is_some_and(|q| !q.is_closed()) {
            return None;
        }
        let queue = Arc::new(EventQueue::default());
        let (told, tables) = (queue.clone(), self.vm().tables.clone());
        self.vm().exits.observe(Some(Arc::new(move |pid, record| {
            told.push(Pid::from(pid), ExitReason::of_record(&record, &tables));
        })));
        *current = Some(queue.clone());
        let vm = Arc::downgrade(self.vm());
        Some(ExitEventSubscription { queue, vm })
    }
}
