//! How processes end, as the embedding program sees it.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use beamr_abi::ExceptionClass;
use beamr_term::{Tables, atoms};
use beamr_vm::process::exit::ExitRecord;
use beamr_vm::vm::Vm;

use crate::term::{
    IntoTerm, OwnedTerm, Pid, Term, TermBuilder, TermError, TermErrorKind, TextStyle,
};

/// Why a process ended.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ExitReason {
    /// `normal`.
    Normal,
    /// `kill`: as a reason to give; a process that is ended by it has the reason `killed`.
    Kill,
    /// `killed`.
    Killed,
    /// `noconnection`.
    NoConnection,
    /// `noproc`: there was no such process.
    NoProc,
    /// An error that it did not catch: `{Reason, Stacktrace}` ([`ExitReason::exception`]).
    Error(OwnedTerm),
    /// Any other term.
    Term(OwnedTerm),
}

impl ExitReason {
    pub(crate) fn of_record(record: &ExitRecord, tables: &Arc<Tables>) -> ExitReason {
        let word = record.reason.term;
        match word.as_atom() {
            Some(atoms::NORMAL) => ExitReason::Normal,
            Some(atoms::KILL) => ExitReason::Kill,
            Some(atoms::KILLED) => ExitReason::Killed,
            Some(atoms::NOCONNECTION) => ExitReason::NoConnection,
            Some(atoms::NOPROC) => ExitReason::NoProc,
            _ if record.class == ExceptionClass::Error => {
                ExitReason::Error(OwnedTerm::of_word(word, tables))
            }
            _ => ExitReason::Term(OwnedTerm::of_word(word, tables)),
        }
    }
    /// Whether it is `normal`.
    pub fn is_normal(&self) -> bool {
        *self == ExitReason::Normal
    }
    /// The exception behind [`ExitReason::Error`].
    pub fn exception(&self) -> Option<OwnedException> {
        match self {
            ExitReason::Error(t) => OwnedException::of_reason(t.root()),
            _ => None,
        }
    }
}

impl IntoTerm for ExitReason {
    fn into_term<'h>(self, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        let atom = match self {
            ExitReason::Normal => atoms::NORMAL,
            ExitReason::Kill => atoms::KILL,
            ExitReason::Killed => atoms::KILLED,
            ExitReason::NoConnection => atoms::NOCONNECTION,
            ExitReason::NoProc => atoms::NOPROC,
            ExitReason::Error(t) | ExitReason::Term(t) => return to.copy(t.root()),
        };
        Ok(to.immediate(atom.word()))
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExitReason::Normal => "normal",
            ExitReason::Kill => "kill",
            ExitReason::Killed => "killed",
            ExitReason::NoConnection => "noconnection",
            ExitReason::NoProc => "noproc",
            ExitReason::Error(t) | ExitReason::Term(t) => return fmt::Display::fmt(t, f),
        })
    }
}

/// A function call on the stack of an exception.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackFrame {
    /// Module.
    pub module: String,
    /// Function.
    pub function: String,
    /// Arity.
    pub arity: usize,
    /// The text of the arguments (cut after 1000 bytes each), where the trace has them (`undef`, `function_clause`, failed natives).
    pub arguments: Option<Vec<String>>,
    /// Source file and line.
    pub location: Option<(String, u32)>,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.arguments {
            Some(a) => write!(f, "{}:{}({})", self.module, self.function, a.join(", "))?,
            None => write!(f, "{}:{}/{}", self.module, self.function, self.arity)?,
        }
        if let Some((file, line)) = &self.location {
            write!(f, " ({file}, line {line})")?;
        }
        Ok(())
    }
}

/// An exception with its stack.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedException {
    /// The reason (without the stack).
    pub reason: OwnedTerm,
    /// The stack trace as Erlang has it: a list of `{Module, Function, ArityOrArgs, Info}`, the innermost call first.
    pub stacktrace: OwnedTerm,
}

impl OwnedException {
    fn of_reason(reason: Term<'_>) -> Option<OwnedException> {
        match (reason.tuple_len(), reason.element(0), reason.element(1)) {
            (Some(2), Some(reason), Some(trace)) => Some(OwnedException {
                reason: reason.to_owned(),
                stacktrace: trace.to_owned(),
            }),
            _ => None,
        }
    }
    /// The calls of the stack trace, the innermost first.
    pub fn frames(&self) -> Vec<StackFrame> {
        let list = self.stacktrace.root().list();
        list.into_iter().flatten().filter_map(frame).collect()
    }
}

/// Bytes of an argument's text in a [`StackFrame`].
const ARGUMENT_TEXT: usize = 1000;

fn frame(t: Term<'_>) -> Option<StackFrame> {
    let arguments = t.element(2)?;
    let texts: Option<Vec<String>> = arguments.list().map(|l| {
        l.map(|a| a.text_within(TextStyle::Print, ARGUMENT_TEXT))
            .collect()
    });
    let info = t.element(3)?;
    let item = |key: &str| {
        info.list()?
            .find(|p| p.element(0).is_some_and(|k| k.is_atom(key)))
            .and_then(|p| p.element(1))
    };
    let file = item("file").and_then(|f| f.decode::<crate::term::Charlist>().ok());
    let line = item("line").and_then(|l| u32::try_from(l.as_i64()?).ok());
    Some(StackFrame {
        module: t.element(0)?.as_atom()?.to_owned(),
        function: t.element(1)?.as_atom()?.to_owned(),
        arity: match &texts {
            Some(a) => a.len(),
            None => usize::try_from(arguments.as_i64()?).ok()?,
        },
        arguments: texts,
        location: file.map(|f| f.0).zip(line),
    })
}

impl fmt::Display for OwnedException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)?;
        for frame in self.frames() {
            write!(f, "\n  in {frame}")?;
        }
        Ok(())
    }
}

impl std::error::Error for OwnedException {}

/// Why something could not be executed, or the error that ended a process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ExecError {
    /// `badarg`; also more than 255 arguments, or a parent that is not alive.
    Badarg,
    /// `badarith`.
    Badarith,
    /// `{badmatch, Value}`.
    Badmatch(OwnedTerm),
    /// `{case_clause, Value}`.
    CaseClause(OwnedTerm),
    /// `function_clause`.
    FunctionClause,
    /// `{badfun, Term}`.
    Badfun(OwnedTerm),
    /// `{badarity, {Fun, Args}}`.
    Badarity(OwnedTerm),
    /// `undef`: no such function, or none that may be called.
    Undef {
        /// Module.
        module: String,
        /// Function.
        function: String,
        /// Arity.
        arity: usize,
    },
    /// `system_limit`: the process table is full, or the namespace has all the processes that it may have.
    SystemLimit(String),
    /// The module's file was found and could not be loaded.
    Load {
        /// Module.
        module: String,
        /// Why.
        cause: String,
    },
    /// A value that stands for no term.
    Term(TermError),
    /// There is no such namespace.
    NoNamespace(u32),
    /// Any other error.
    Raised(Box<OwnedException>),
}

impl ExecError {
    /// The error that an exception stands for.
    pub fn of_exception(e: OwnedException) -> ExecError {
        let reason = e.reason.root();
        match reason.as_atom() {
            Some("badarg") => return ExecError::Badarg,
            Some("badarith") => return ExecError::Badarith,
            Some("function_clause") => return ExecError::FunctionClause,
            Some("system_limit") => return ExecError::SystemLimit("system_limit".into()),
            Some("undef") => {
                if let Some(f) = e.frames().into_iter().next() {
                    return ExecError::Undef {
                        module: f.module,
                        function: f.function,
                        arity: f.arity,
                    };
                }
            }
            _ => {}
        }
        if let (Some(2), Some(tag), Some(v)) =
            (reason.tuple_len(), reason.element(0), reason.element(1))
        {
            let v = v.to_owned();
            match tag.as_atom() {
                Some("badmatch") => return ExecError::Badmatch(v),
                Some("case_clause") => return ExecError::CaseClause(v),
                Some("badfun") => return ExecError::Badfun(v),
                Some("badarity") => return ExecError::Badarity(v),
                _ => {}
            }
        }
        ExecError::Raised(Box::new(e))
    }
}

impl From<TermError> for ExecError {
    fn from(e: TermError) -> ExecError {
        match e.kind() {
            TermErrorKind::TooManyArguments(_) => ExecError::Badarg,
            _ => ExecError::Term(e),
        }
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecError::Badarg => f.write_str("badarg"),
            ExecError::Badarith => f.write_str("badarith"),
            ExecError::Badmatch(v) => write!(f, "{{badmatch,{v}}}"),
            ExecError::CaseClause(v) => write!(f, "{{case_clause,{v}}}"),
            ExecError::FunctionClause => f.write_str("function_clause"),
            ExecError::Badfun(v) => write!(f, "{{badfun,{v}}}"),
            ExecError::Badarity(v) => write!(f, "{{badarity,{v}}}"),
            ExecError::Undef {
                module,
                function,
                arity,
            } => write!(f, "undefined function {module}:{function}/{arity}"),
            ExecError::SystemLimit(what) => write!(f, "system_limit: {what}"),
            ExecError::Load { module, cause } => {
                write!(f, "module {module} cannot be loaded: {cause}")
            }
            ExecError::Term(e) => fmt::Display::fmt(e, f),
            ExecError::NoNamespace(n) => write!(f, "there is no namespace {n}"),
            ExecError::Raised(e) => fmt::Display::fmt(e, f),
        }
    }
}

impl std::error::Error for ExecError {}

/// Why a call of a function gave no value.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] ExecError),
    /// An error that the function did not catch.
    #[error("{0}")]
    Raised(Box<OwnedException>),
    /// The process ended otherwise: `exit/1`, an exit signal.
    #[error("the process ended with reason {0}")]
    Exit(ExitReason),
    /// The value is not of the type that was asked for.
    #[error("the function returned another value: {0}")]
    Value(TermError),
    /// There is no result to wait for.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Why waiting for a process ended without its exit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It is not alive and its exit is not (or no longer) known.
    #[error("there is no such process, and no record of its exit")]
    NoRecord,
    /// The time is over.
    #[error("the process still runs")]
    Timeout,
    /// The VM was halted or shut down.
    #[error("the VM does not run any more")]
    Stopped,
    /// In a VM without threads: the process waits, and neither a timer nor another process will wake it.
    #[error("the process waits and nothing will wake it")]
    Stuck,
    /// A native function or handler must not wait for a process: it would keep it from running.
    #[error("a native function or handler cannot wait for a process")]
    InsideVm,
}

/// An exit, or that some were not reported.
#[derive(Clone, PartialEq, Debug)]
pub enum ExitEvent {
    /// A process ended.
    Exited {
        /// Which.
        pid: Pid,
        /// Why.
        reason: ExitReason,
    },
    /// Events were dropped since the last one that was received: the subscriber is too slow.
    Lagged,
}

/// Why no event was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExitEventRecvError {
    /// The VM was shut down, and all events have been received.
    #[error("the VM does not run any more")]
    Disconnected,
    /// The time is over.
    #[error("no process ended in that time")]
    Timeout,
}

/// Events that are kept for a subscriber.
pub(crate) const EVENTS_KEPT: usize = 1024;

#[derive(Default)]
struct EventState {
    events: VecDeque<(Pid, ExitReason)>,
    lagged: bool,
    closed: bool,
}

/// What a subscription and its VM share.
#[derive(Default)]
pub(crate) struct EventQueue {
    state: Mutex<EventState>,
    changed: Condvar,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, EventState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }
    pub fn push(&self, pid: Pid, reason: ExitReason) {
        let mut s = self.lock();
        if s.closed {
            return;
        }
        if s.events.len() >= EVENTS_KEPT {
            s.events.pop_front();
            s.lagged = true;
        }
        s.events.push_back((pid, reason));
        drop(s);
        self.changed.notify_one();
    }
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// The exits of a VM's processes in order, see [`Scheduler::subscribe_exit_events`](crate::Scheduler::subscribe_exit_events). Up to 1024 wait to be received;
/// beyond, the oldest are dropped and [`ExitEvent::Lagged`] says so.
pub struct ExitEventSubscription {
    pub(crate) queue: Arc<EventQueue>,
    pub(crate) vm: std::sync::Weak<Vm>,
}

impl ExitEventSubscription {
    /// Waits for the next event.
    pub fn recv(&self) -> Result<ExitEvent, ExitEventRecvError> {
        self.wait(None)
    }
    /// Waits for the next event, at most so long.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<ExitEvent, ExitEventRecvError> {
        self.wait(Instant::now().checked_add(timeout))
    }
    /// The next event if there is one.
    pub fn try_recv(&self) -> Option<ExitEvent> {
        self.recv_timeout(Duration::ZERO).ok()
    }
    fn wait(&self, deadline: Option<Instant>) -> Result<ExitEvent, ExitEventRecvError> {
        let mut s = self.queue.lock();
        loop {
            if std::mem::take(&mut s.lagged) {
                return Ok(ExitEvent::Lagged);
            }
            if let Some((pid, reason)) = s.events.pop_front() {
                return Ok(ExitEvent::Exited { pid, reason });
            }
            if s.closed {
                return Err(ExitEventRecvError::Disconnected);
            }
            let changed = &self.queue.changed;
            s = match deadline {
                None => changed.wait(s).unwrap_or_else(|e| e.into_inner()),
                Some(d) => {
                    let left = d.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(ExitEventRecvError::Timeout);
                    }
                    changed
                        .wait_timeout(s, left)
                        .unwrap_or_else(|e| e.into_inner())
                        .0
                }
            };
        }
    }
}

impl Drop for ExitEventSubscription {
    fn drop(&mut self) {
        // In this order: who subscribes next waits for the queue to be closed.
        if let Some(vm) = self.vm.upgrade() {
            vm.exits.observe(None);
        }
        self.queue.close();
    }
}

impl fmt::Debug for ExitEventSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExitEventSubscription")
    }
}

enum CellState {
    Waiting(Vec<Waker>),
    /// `None`: the VM stopped before the process ended.
    Over(Option<ExitReason>),
}

/// Where an exit is noted for those who wait for it.
pub(crate) struct ExitCell {
    state: Mutex<CellState>,
    changed: Condvar,
}

impl ExitCell {
    pub fn new() -> Arc<ExitCell> {
        Arc::new(ExitCell {
            state: Mutex::new(CellState::Waiting(Vec::new())),
            changed: Condvar::new(),
        })
    }
    fn lock(&self) -> MutexGuard<'_, CellState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    pub fn set(&self, reason: Option<ExitReason>) {
        let before = std::mem::replace(&mut *self.lock(), CellState::Over(reason));
        self.changed.notify_all();
        if let CellState::Waiting(wakers) = before {
            for w in wakers {
                w.wake();
            }
        }
    }
    fn is_over(&self) -> bool {
        matches!(*self.lock(), CellState::Over(_))
    }
    /// Waits for the end of a process of `vm`, which is run meanwhile when it has no threads. `Err` when the time is over; `Ok(None)` when
    /// there is nothing to wait for.
    pub fn wait_in(
        &self,
        vm: &Arc<Vm>,
        timeout: Option<Duration>,
    ) -> Result<Option<ExitReason>, WaitError> {
        if vm.worker_count() > 0 {
            return self.wait(timeout);
        }
        // The door's clock: a simulated one has a time of its own.
        let deadline = timeout.map(|t| vm.monotonic_ns().saturating_add(t.as_nanos() as u64));
        loop {
            let run = vm.run_until_idle(1024);
            if self.is_over() {
                return self.wait(None);
            }
            let now = vm.monotonic_ns();
            if deadline.is_some_and(|d| now >= d) {
                return Err(WaitError::Timeout);
            }
            if !run.idle {
                if run.turns == 0 {
                    // Another thread runs the VM.
                    match self.wait(Some(Duration::from_millis(1))) {
                        Err(WaitError::Timeout) => continue,
                        other => return other,
                    }
                }
                continue;
            }
            let left = deadline.map(|d| Duration::from_nanos(d - now));
            let Some(pause) = run.next_timer.into_iter().chain(left).min() else {
                return Err(WaitError::Stuck);
            };
            if !vm.door.pause(pause) {
                return Err(WaitError::Stuck);
            }
        }
    }
    /// `Err` when the time is over; `Ok(None)` when there is nothing to wait for.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<Option<ExitReason>, WaitError> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let mut s = self.lock();
        loop {
            if let CellState::Over(reason) = &*s {
                return Ok(reason.clone());
            }
            s = match deadline {
                None => self.changed.wait(s).unwrap_or_else(|e| e.into_inner()),
                Some(d) => {
                    let left = d.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(WaitError::Timeout);
                    }
                    self.changed
                        .wait_timeout(s, left)
                        .unwrap_or_else(|e| e.into_inner())
                        .0
                }
            };
        }
    }
}

/// A process whose end is watched; as a future it gives the reason. Dropping it ends nothing but the watching.
pub struct ExitWatch {
    pub(crate) pid: Pid,
    pub(crate) cell: Arc<ExitCell>,
    pub(crate) vm: std::sync::Weak<Vm>,
}

impl ExitWatch {
    /// The process.
    pub fn pid(&self) -> Pid {
        self.pid
    }
    /// Sleeps until the process has ended.
    pub fn wait(&self) -> Result<ExitReason, WaitError> {
        self.wait_at_most(None)
    }
    /// Sleeps until the process has ended, at most so long.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<ExitReason, WaitError> {
        self.wait_at_most(Some(timeout))
    }
    fn wait_at_most(&self, timeout: Option<Duration>) -> Result<ExitReason, WaitError> {
        if crate::inside::is_inside() {
            return Err(WaitError::InsideVm);
        }
        let reason = match self.vm.upgrade() {
            Some(vm) => self.cell.wait_in(&vm, timeout)?,
            None => self.cell.wait(Some(Duration::ZERO)).unwrap_or(None),
        };
        reason.ok_or(WaitError::Stopped)
    }
}

impl Future for ExitWatch {
    type Output = Result<ExitReason, WaitError>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self.cell.lock() {
            CellState::Over(reason) => Poll::Ready(reason.clone().ok_or(WaitError::Stopped)),
            CellState::Waiting(wakers) => {
                if !wakers.iter().any(|w| w.will_wake(context.waker())) {
                    wakers.push(context.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for ExitWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExitWatch").field("pid", &self.pid).finish()
    }
}

/// What watching a process found.
#[derive(Debug)]
pub enum ExitWatchState {
    /// It lives.
    Live(ExitWatch),
    /// It has ended.
    AlreadyExited(ExitReason),
    /// There is no such process, and nothing is known of its end.
    NoRecord,
}

/// See [`beamr_vm`]'s records: what the host has taken of one.
pub(crate) mod taken {
    /// Reason and result, by whom is told of them once.
    pub const OUTCOME: u8 = 1;
    /// The error.
    pub const ERROR: u8 = 2;
    /// The exception.
    pub const EXCEPTION: u8 = 4;
}
