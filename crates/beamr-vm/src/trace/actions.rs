//! What bodies of trace specifications do.

use std::sync::atomic::Ordering;

use beamr_abi::{Body, Ctx};
use beamr_term::{Build, Word, atoms, text};

use super::flags;
use super::seq;
use super::tracee::{Tracee, is_alive, with_slot};
use crate::door::Stream;
use crate::match_spec::{Action, TraceHost};
use crate::process::{Process, Slot};
use crate::rt::{Frame, caller_frames};
use crate::sched::Worker;

/// Does the actions of one event of one process.
pub(crate) struct Host<'a> {
    w: &'a Worker,
    slot: &'a Slot,
    tracee: &'a Tracee,
    /// The process, where it is stopped in the event.
    body: Option<&'a Body>,
    /// `{return_trace}` was done.
    pub return_trace: bool,
    /// `{exception_trace}` was done.
    pub exception_trace: bool,
}

impl<'a> Host<'a> {
    pub fn new(w: &'a Worker, slot: &'a Slot, tracee: &'a Tracee) -> Host<'a> {
        Host {
            w,
            slot,
            tracee,
            body: None,
            return_trace: false,
            exception_trace: false,
        }
    }
    /// Where the process is.
    pub fn at(&mut self, body: &'a Body) {
        self.body = Some(body);
    }
    fn frames(&self, depth: usize) -> Vec<Frame> {
        let Some(body) = self.body else {
            return Vec::new();
        };
        // SAFETY: the process is stopped in the event.
        unsafe { caller_frames(&self.w.vm.server, body, depth) }
    }
    /// A flag list: the flags, or `None` when one is unknown. `{tracer, T}` gives the tracer.
    fn flags(&self, list: Word) -> Option<(u32, Word)> {
        let (mut mask, mut tracer) = (0, Word::NIL);
        for item in text::list_to_vec(list)? {
            if let Some([tag, t]) = item.as_tuple() {
                let is = tag.as_atom().map(|a| self.w.vm.tables.atoms.text(a)) == Some("tracer");
                if !is || !(t.is_local_pid() || t.is_local_port()) {
                    return None;
                }
                tracer = *t;
                continue;
            }
            mask |= flags::of_name(self.w.vm.tables.atoms.text(item.as_atom()?))?;
        }
        Some((mask, tracer))
    }
    /// The process that an action names: a pid, or a registered name.
    fn process_of(&self, who: Word) -> Option<Word> {
        match who.as_atom() {
            Some(name) => self.w.vm.registry.whereis(self.slot.namespace.id, name),
            None => who.is_local_pid().then_some(who),
        }
    }
    /// Changes what is traced of a process for this session, as `trace(Off, On)`: with the tracer of the process that the event is of,
    /// unless another is named. When that is nobody, nothing of the other is traced any more.
    fn change(&self, who: Word, off: u32, on: u32, tracer: Word) -> bool {
        let session = &self.tracee.session;
        let own = || {
            self.slot
                .tracing()
                .of(session)
                .map_or(Word::NIL, |t| t.tracer)
        };
        let tracer = if tracer.is_nil() { own() } else { tracer };
        let dead = !tracer.is_nil() && !is_alive(self.w, tracer);
        let change = |slot: &Slot| {
            if tracer.is_nil() || dead {
                slot.tracing().forget(session);
                return;
            }
            let now = slot.tracing().of(session).map_or(0, |t| t.flags);
            let t = Tracee {
                session: session.clone(),
                flags: 0,
                tracer,
            };
            slot.tracing().inherit(&t, now & !off | on);
        };
        if who == self.slot.pid() {
            change(self.slot);
            return !dead;
        }
        with_slot(self.w, who, change).is_some() && !dead
    }
    /// The token of the process.
    fn token(&self) -> Option<&seq::Token> {
        // SAFETY: `at` was given the head of the process that is stopped in the event.
        let p = unsafe { &*std::ptr::from_ref(self.body?).cast::<Process>() };
        seq::token_of(p)
    }
    /// Sets a component of the token; only where the process is stopped.
    fn set_token(&self, component: Word, value: Word) -> Word {
        let failed = Word::FALSE;
        let (Some(body), Some(name)) = (self.body, component.as_atom()) else {
            return failed;
        };
        // A context that leads to the process: nothing else of it is used.
        let ctx = &mut Ctx {
            body: std::ptr::from_ref(body).cast_mut(),
            fcalls: 0,
            exports: std::ptr::null(),
            instances: std::ptr::null(),
            tables: std::sync::Arc::as_ptr(&self.w.vm.tables),
            worker: std::ptr::from_ref(self.w).cast_mut().cast(),
            pending: beamr_abi::Pending::None,
            native: std::ptr::null(),
        };
        let text = self.w.vm.tables.atoms.text(name);
        let flag = seq::FLAGS.iter().find(|f| f.0 == text);
        match (flag, text, value.as_boolean(), value.as_tuple()) {
            (Some(f), _, Some(on), _) => {
                seq::set_flag(ctx, f.1, on);
            }
            (None, "label", _, _) => seq::put_label(ctx, value),
            (None, "serial", _, Some([last, serial])) if last.is_small() && serial.is_small() => {
                seq::set_serial(ctx, last.small_value(), serial.small_value());
            }
            (None, "sequential_trace_token", _, _) if value.is_nil() => seq::clear(ctx),
            _ => return failed,
        }
        Word::TRUE
    }
    fn trace(&self, args: &[Word]) -> Word {
        let (who, off, on) = match args {
            [off, on] => (Some(self.slot.pid()), off, on),
            [who, off, on] => (self.process_of(*who), off, on),
            _ => return atoms::EXIT_UPPER.word(),
        };
        let (Some(who), Some((off, first)), Some((on, second))) =
            (who, self.flags(*off), self.flags(*on))
        else {
            return Word::FALSE;
        };
        let tracer = if second.is_nil() { first } else { second };
        Word::boolean(self.change(who, off, on, tracer))
    }
    fn one_flag(&self, args: &[Word], on: bool) -> Word {
        let (who, flag) = match args {
            [flag] => (Some(self.slot.pid()), flag),
            [who, flag] => (self.process_of(*who), flag),
            _ => return atoms::EXIT_UPPER.word(),
        };
        let bit = flag
            .as_atom()
            .and_then(|a| flags::of_name(self.w.vm.tables.atoms.text(a)));
        let (Some(who), Some(bit)) = (who, bit) else {
            return Word::FALSE;
        };
        let (off, on) = if on { (0, bit) } else { (bit, 0) };
        Word::boolean(self.change(who, off, on, Word::NIL))
    }
}

impl TraceHost for Host<'_> {
    fn action(&mut self, ctx: &mut Ctx, action: Action, args: &[Word]) -> Word {
        let vm = &self.w.vm;
        match action {
            Action::Message => Word::TRUE,
            Action::ReturnTrace => {
                self.return_trace = true;
                Word::TRUE
            }
            Action::ExceptionTrace => {
                self.exception_trace = true;
                Word::TRUE
            }
            Action::IsSeqTrace => Word::boolean(self.token().is_some()),
            Action::GetSeqToken => match self.token() {
                Some(t) => t.build(ctx),
                None => Word::NIL,
            },
            Action::SetSeqToken => self.set_token(args[0], args[1]),
            Action::Display => {
                let limit = beamr_term::format::FormatLimit::LARGE;
                let mut out = beamr_term::format::format_term(&vm.tables, args[0], limit);
                out.extend_from_slice(b"\n");
                // A stream that is closed loses the text, as in OTP.
                let _ = vm.door.write(Stream::Out, &out);
                Word::TRUE
            }
            Action::ProcessDump => {
                let mut out = String::new();
                let tables = &vm.tables;
                for f in self.frames(usize::MAX) {
                    let (m, n) = (tables.atoms.text(f.module), tables.atoms.text(f.function));
                    out.push_str(&format!("Return addr ({m}:{n}/{})\n", f.arity));
                }
                ctx.binary(out.as_bytes())
            }
            Action::EnableTrace => self.one_flag(args, true),
            Action::DisableTrace => self.one_flag(args, false),
            Action::Trace => self.trace(args),
            Action::Caller => match self.frames(1).first() {
                Some(f) => ctx.tuple(&[
                    f.module.word(),
                    f.function.word(),
                    Word::fixnum(i64::from(f.arity)),
                ]),
                None => atoms::UNDEFINED.word(),
            },
            Action::CallerLine => match self.frames(1).first() {
                Some(f) => {
                    let place = match f.location {
                        Some((file, line)) => ctx.tuple(&[file, Word::fixnum(i64::from(line))]),
                        None => atoms::UNDEFINED.word(),
                    };
                    ctx.tuple(&[
                        f.module.word(),
                        f.function.word(),
                        Word::fixnum(i64::from(f.arity)),
                        place,
                    ])
                }
                None => atoms::UNDEFINED.word(),
            },
            Action::CurrentStacktrace => {
                let depth = match args.first() {
                    None => usize::MAX,
                    Some(d) => match d.as_small().and_then(|n| usize::try_from(n).ok()) {
                        Some(n) => n,
                        None => return atoms::EXIT_UPPER.word(),
                    },
                };
                let limit = vm.server.backtrace_depth.load(Ordering::Relaxed);
                let frames = self.frames(depth.min(limit));
                let list: Vec<Word> = frames
                    .iter()
                    .map(|f| f.term(ctx, None, Word::NIL))
                    .collect();
                ctx.list(list)
            }
            Action::Silent => {
                match args[0].as_boolean() {
                    Some(true) => {
                        self.slot
                            .tracing()
                            .adjust(&self.tracee.session, 0, flags::SILENT);
                    }
                    Some(false) => {
                        self.slot
                            .tracing()
                            .adjust(&self.tracee.session, flags::SILENT, 0);
                    }
                    None => {}
                }
                Word::TRUE
            }
            Action::GetTcw => {
                let n = vm.trace_control_word.load(Ordering::Acquire);
                Word::fixnum(i64::from(n))
            }
            Action::SetTcw => match args[0].as_small().map(u32::try_from) {
                Some(Ok(n)) => {
                    let before = vm.trace_control_word.swap(n, Ordering::AcqRel);
                    Word::fixnum(i64::from(before))
                }
                _ => atoms::EXIT_UPPER.word(),
            },
        }
    }
}
