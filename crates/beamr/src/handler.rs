//! Processes written in Rust.

use std::ops::Deref;
use std::time::Duration;

use beamr_abi::Ctx;
use beamr_term::{Word, atoms};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::process::spawn::{SpawnOptions, Start, spawn_start};
use beamr_vm::process::{ProcId, slot_of, vm_of, worker};
use beamr_vm::signal::{self, Signal, link, monitor, push_proc};
use beamr_vm::timer::{self, TimerTime};
use beamr_vm::{host, rt};

use crate::exits::{ExecError, ExitReason};
use crate::inside::Inside;
use crate::term::{IntoAtom, IntoTerm, OwnedTerm, Pid, Reference, Term, TermBuilder, TermError};

/// What a handler wants after a turn.
#[derive(Clone, PartialEq, Debug)]
pub enum NativeOutcome {
    /// Another turn, soon.
    Continue,
    /// A turn when a message (or other signal) has come.
    Wait,
    /// The end.
    Stop(ExitReason),
}

/// A process written in Rust: it is scheduled, linked, monitored, sent to and killed as any other.
///
/// A turn takes messages until there are none ([`NativeContext::recv`]) or it has done enough, and must not block. A panic ends the process.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beamr::{ExitReason, NativeContext, NativeHandler, NativeOutcome, Pid};
///
/// struct Counter(i64);
/// impl NativeHandler for Counter {
///     fn handle(&mut self, ctx: &mut NativeContext<'_>) -> NativeOutcome {
///         while let Some(message) = ctx.recv() {
///             match message.decode::<(Pid, i64)>() {
///                 Ok((from, n)) => {
///                     self.0 += n;
///                     let _ = ctx.send(from, self.0);
///                 }
///                 Err(_) => return NativeOutcome::Stop(ExitReason::Normal),
///             }
///         }
///         NativeOutcome::Wait
///     }
/// }
/// let vm = beamr::Scheduler::builder().threads(1).build()?;
/// let pid = vm.spawn_native(|| Counter(0))?;
/// vm.send_to_mailbox(pid, vm.term(beamr::atom("stop"))?)?;
/// assert_eq!(vm.run_until_exit(pid).0, ExitReason::Normal);
/// # Ok(()) }
/// ```
pub trait NativeHandler: Send {
    /// One turn.
    fn handle(&mut self, ctx: &mut NativeContext<'_>) -> NativeOutcome;
}

impl<F: FnMut(&mut NativeContext<'_>) -> NativeOutcome + Send> NativeHandler for F {
    fn handle(&mut self, ctx: &mut NativeContext<'_>) -> NativeOutcome {
        self(ctx)
    }
}

/// A handler as the VM's process.
pub(crate) struct HandlerProcess<H>(pub H);

impl<H: NativeHandler> NativeProcess for HandlerProcess<H> {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        let _inside = Inside::enter();
        let vm = vm_of(ctx).clone();
        let ctx: *mut Ctx = ctx;
        // SAFETY: the context of the running process, which nobody else uses meanwhile; the handler is general over the lifetime.
        let mut context = unsafe {
            NativeContext {
                builder: TermBuilder::new(ctx, &vm.tables, false),
                ctx,
                ended: false,
            }
        };
        let outcome = self.0.handle(&mut context);
        if context.ended {
            // A signal has ended the process; the scheduler knows.
            return NativeStep::Continue;
        }
        match outcome {
            NativeOutcome::Continue => NativeStep::Continue,
            NativeOutcome::Wait => NativeStep::Wait,
            NativeOutcome::Stop(reason) => {
                let made = reason.into_term(&context.builder);
                NativeStep::Exit(made.map_or(atoms::BADARG.word(), Term::word))
            }
        }
    }
}

/// What a handler does with: its mailbox, other processes, and (through [`TermBuilder`]) a place for terms that lasts for the turn.
pub struct NativeContext<'h> {
    builder: TermBuilder<'h>,
    /// The context of the running process; used for one operation at a time.
    ctx: *mut Ctx,
    /// A signal has ended the process.
    ended: bool,
}

impl<'h> NativeContext<'h> {
    /// The context of the running process, for one operation.
    fn with<R>(&mut self, f: impl FnOnce(&mut Ctx) -> R) -> R {
        // SAFETY: see the field; the builder uses it only inside its own methods.
        f(unsafe { &mut *self.ctx })
    }
    /// A term of the process's heap: nothing moves there during a turn.
    fn lend(&self, word: Word) -> Term<'h> {
        // SAFETY: see above.
        unsafe { Term::new(word, self.builder.tables()) }
    }
    /// This process.
    pub fn self_pid(&mut self) -> Pid {
        Pid::from(self.with(|c| c.self_pid()).local_number())
    }
    fn next(&mut self) -> Option<Word> {
        if self.ended {
            return None;
        }
        match self.with(rt::next_message) {
            Ok(message) => message,
            Err(rt::Ending) => {
                self.ended = true;
                None
            }
        }
    }
    /// Whether there is a message that has not been skipped.
    pub fn has_messages(&mut self) -> bool {
        self.next().is_some()
    }
    /// Takes the next message out of the mailbox. Messages that were skipped stand first again afterwards.
    pub fn recv(&mut self) -> Option<Term<'h>> {
        let word = self.next()?;
        self.with(rt::remove_message);
        Some(self.lend(word))
    }
    /// Looks at the next message.
    pub fn peek(&mut self) -> Option<Term<'h>> {
        let word = self.next()?;
        Some(self.lend(word))
    }
    /// Leaves the next message in the mailbox and goes on behind it. False when there is none.
    pub fn skip_message(&mut self) -> bool {
        if self.next().is_none() {
            return false;
        }
        self.with(rt::loop_rec_end);
        true
    }
    /// Whether the turn's share of time is used up: a handler that does much should then return [`NativeOutcome::Continue`].
    pub fn should_yield(&mut self) -> bool {
        self.with(|c| c.fcalls <= 0 || c.heap().gc_wanted)
    }
    /// Charges the process for work, in reductions (about a function call each; a turn has 4000).
    pub fn bump_reductions(&mut self, reductions: u32) {
        self.with(|c| c.bump(i64::from(reductions)));
    }
    /// Sends a message. False when there is no such process.
    pub fn send(&mut self, to: impl Into<Pid>, message: impl IntoTerm) -> Result<bool, TermError> {
        let message = OwnedTerm::from_value(self.builder.tables(), message)?;
        let to = ProcId::local(to.into().number());
        Ok(self.with(|c| {
            let message = Signal::Message(message.into_carried().into_message());
            push_proc(worker(c), to, message).is_ok()
        }))
    }
    /// The process of a name in this process's namespace.
    pub fn whereis(&mut self, name: impl IntoAtom) -> Option<Pid> {
        let name = name.atom_in(self.builder.tables()).ok()?;
        self.with(|c| {
            let namespace = slot_of(c).namespace.id;
            vm_of(c).registry.whereis(namespace, name)
        })
        .and_then(Pid::of_word)
    }
    /// Sends a message later. A timer is precise to a millisecond.
    pub fn send_after(
        &mut self,
        delay: Duration,
        to: impl Into<Pid>,
        message: impl IntoTerm,
    ) -> Result<Reference, TermError> {
        let message = message.into_term(&self.builder)?.word();
        let to = to.into().word();
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX >> 1);
        let made = self.with(|c| timer::start_timer(c, TimerTime::In(ms), to, message, false));
        // A local pid is no bad argument.
        let word = made.unwrap_or(Word::NIL);
        Reference::of_word(word)
            .ok_or_else(|| TermError::expected("a timer's reference", self.lend(word)))
    }
    /// Sends a message to this process later.
    pub fn schedule(
        &mut self,
        delay: Duration,
        message: impl IntoTerm,
    ) -> Result<Reference, TermError> {
        let me = self.self_pid();
        self.send_after(delay, me, message)
    }
    /// Takes a timer back: what was left of its time, `None` when it has fired.
    pub fn cancel_timer(&mut self, timer: Reference) -> Option<Duration> {
        let left = self.with(|c| {
            let word = timer.build(c);
            timer::cancel_timer(c, word)
        });
        left.ok().flatten().map(Duration::from_millis)
    }
    /// Sets whether exit signals of linked processes come as messages `{'EXIT', From, Reason}`; what it was before.
    pub fn set_trap_exit(&mut self, on: bool) -> bool {
        self.with(|c| host::set_trap_exit(c, on))
    }
    /// Links this process to another. False when there is none.
    pub fn link(&mut self, to: impl Into<Pid>) -> bool {
        let to = to.into().word();
        self.with(|c| {
            let linked = link::link(c, to).is_ok();
            c.take_pending();
            linked
        })
    }
    /// Takes a link down.
    pub fn unlink(&mut self, to: impl Into<Pid>) {
        let to = to.into().word();
        self.with(|c| {
            // A pid is no bad argument.
            let _ = link::unlink(c, to);
            c.take_pending();
        });
    }
    /// Monitors a process: `{'DOWN', Reference, process, Pid, Reason}` comes when it has ended.
    pub fn monitor(&mut self, target: impl Into<Pid>) -> Reference {
        let to = ProcId::local(target.into().number());
        self.with(|c| {
            let made = monitor::monitor(c, monitor::Monitored::Pid(to), Default::default());
            Reference::of_word(made).unwrap_or_else(|| Reference::of_key(worker(c).next_ref()))
        })
    }
    /// Takes a monitor down, with a `'DOWN'` message of it that has come.
    pub fn demonitor(&mut self, monitor: Reference) {
        self.with(|c| {
            let word = monitor.build(c);
            // A reference is no bad argument.
            let _ = signal::monitor::demonitor(c, word, true);
            c.take_pending();
        });
    }
    /// Sends an exit signal, as `exit/2`.
    pub fn exit(&mut self, to: impl Into<Pid>, reason: ExitReason) -> Result<(), TermError> {
        let reason = reason.into_term(&self.builder)?.word();
        let to = to.into().word();
        self.with(|c| {
            // To this process itself it takes effect after the turn.
            let _ = link::exit_signal(c, to, reason);
            c.take_pending();
        });
        Ok(())
    }
    /// Spawns a process written in Rust, in this process's namespace; linked to it if `link` says so.
    pub fn spawn_native<H: NativeHandler + 'static>(
        &mut self,
        handler: H,
        linked: Linked,
    ) -> Result<Pid, ExecError> {
        let options = SpawnOptions {
            link: linked == Linked::Yes,
            watched: true,
            ..SpawnOptions::default()
        };
        let start = Start::Native(Box::new(HandlerProcess(handler)));
        let made = self.with(|c| spawn_start(c, start, &options));
        match made {
            Ok(s) => Ok(Pid::from(s.pid.local_number())),
            Err(e) => Err(ExecError::SystemLimit(e.to_string())),
        }
    }
    /// A tuple in this turn's place: [`TermBuilder::tuple`] under its older name.
    pub fn alloc_tuple(&self, elements: &[Term<'h>]) -> Term<'h> {
        self.builder.tuple(elements)
    }
    /// A copy of an owned term in this turn's place.
    pub fn alloc_owned_term(&self, term: &OwnedTerm) -> Result<Term<'h>, TermError> {
        self.builder.copy(term.root())
    }
}

/// Whether a process is linked to the one that spawns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linked {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl<'h> Deref for NativeContext<'h> {
    type Target = TermBuilder<'h>;
    fn deref(&self) -> &TermBuilder<'h> {
        &self.builder
    }
}

impl std::fmt::Debug for NativeContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NativeContext")
    }
}
