//! The process that answers the I/O protocol in a bare start: standard input and output, or standard error.
//!
//! A process written in Rust. Requests that name a function (`{put_chars, Enc, M, F, Args}`, `get_until`) are
//! evaluated by a process of their own, whose result this one takes; requests are answered one after another. Standard input is
//! read by a thread that is started at the first request for input, so that no scheduler blocks.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use beamr_abi::Ctx;
use beamr_term::text::{self, WalkLimit};
use beamr_term::{Build, Word, atoms};
use beamr_vm::door::{Door, Stream};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::process::spawn::{SpawnOptions, Start, spawn_start};
use beamr_vm::process::{Carried, RefKey};
use beamr_vm::rt;
use beamr_vm::vm::Vm;

use crate::input::{self, Reading};

/// A request being served.
struct Job {
    /// `{From, ReplyAs}`.
    envelope: Carried,
    /// Requests left, the next one first.
    requests: VecDeque<Carried>,
}

/// What the evaluated function is for.
enum Purpose {
    Output,
    /// `get_until`: the request, kept to go on with.
    Until(Carried),
}

enum State {
    Idle,
    Evaluating {
        pid: Word,
        monitor: RefKey,
        purpose: Purpose,
    },
    /// The request waits for input; for `get_until` the continuation, too.
    Input {
        request: Carried,
        continuation: Option<Carried>,
    },
}

/// See the module.
pub struct IoServer {
    stream: Stream,
    door: Arc<dyn Door>,
    vm: Weak<Vm>,
    /// Whether this one reads standard input.
    reads: bool,
    reader: bool,
    jobs: VecDeque<Job>,
    state: State,
    input: Vec<u8>,
    eof: bool,
    /// Options of `io:setopts`.
    binary: bool,
    latin1: bool,
}

impl IoServer {
    /// A server for a stream; `reads` for the one that serves standard input too.
    pub fn new(vm: &Arc<Vm>, stream: Stream, reads: bool) -> IoServer {
        IoServer {
            stream,
            door: vm.door.clone(),
            vm: Arc::downgrade(vm),
            reads,
            reader: false,
            jobs: VecDeque::new(),
            state: State::Idle,
            input: Vec::new(),
            eof: false,
            binary: false,
            latin1: false,
        }
    }
    fn is(ctx: &Ctx, w: Word, text: &str) -> bool {
        w.as_atom()
            .is_some_and(|a| ctx.tables().atoms.text(a) == text)
    }
    fn atom(ctx: &mut Ctx, text: &str) -> Word {
        ctx.tables()
            .atoms
            .intern(text)
            .map_or(atoms::ERROR.word(), |a| a.word())
    }

    /// Answers the current job and ends it.
    fn reply(&mut self, ctx: &mut Ctx, result: Word) {
        if let Some(job) = self.jobs.pop_front() {
            let (from, reply_as) = match job.envelope.term.as_tuple() {
                Some([f, r]) => (*f, *r),
                _ => return,
            };
            let message = ctx.tuple(&[atoms::IO_REPLY.word(), reply_as, result]);
            // The asker may be gone: then the answer goes nowhere.
            let _ = rt::send(ctx, from, message);
        }
        self.state = State::Idle;
    }
    /// One request of the job is done: the next one, or the answer.
    fn done(&mut self, ctx: &mut Ctx, result: Word, failed: bool) {
        self.state = State::Idle;
        let last = self.jobs.front().is_none_or(|j| j.requests.is_empty());
        if failed || last {
            self.reply(ctx, result);
        }
    }
    fn error(&mut self, ctx: &mut Ctx, reason: Word) {
        let e = ctx.tuple(&[atoms::ERROR.word(), reason]);
        self.done(ctx, e, true);
    }

    /// Writes chardata; false when it is none.
    fn write(&mut self, ctx: &mut Ctx, latin1: bool, data: Word) -> bool {
        let limit = WalkLimit::NONE;
        let text = if latin1 {
            match text::iolist_to_bytes(data, limit) {
                Ok(b) => b.into_iter().map(char::from).collect(),
                Err(_) => return false,
            }
        } else {
            match text::chardata_to_string(data, limit) {
                Ok(s) => s,
                Err(_) => return false,
            }
        };
        ctx.bump(text.len() as i64 / 32);
        let written = if self.latin1 {
            let mut out = Vec::with_capacity(text.len());
            for c in text.chars() {
                match u8::try_from(c as u32) {
                    Ok(b) => out.push(b),
                    Err(_) => out.extend_from_slice(format!("\\x{{{:X}}}", c as u32).as_bytes()),
                }
            }
            self.door.write(self.stream, &out)
        } else {
            self.door.write(self.stream, text.as_bytes())
        };
        written.is_ok()
    }
    fn encoding(w: Word) -> Option<bool> {
        match w.as_atom()? {
            atoms::LATIN1 => Some(true),
            atoms::UNICODE | atoms::UTF8 => Some(false),
            _ => None,
        }
    }
    fn put(&mut self, ctx: &mut Ctx, latin1: bool, data: Word, request: Word) {
        if self.write(ctx, latin1, data) {
            self.done(ctx, atoms::OK.word(), false);
        } else {
            let name = request.as_tuple().map_or(atoms::PUT_CHARS.word(), |t| t[0]);
            self.error(ctx, name);
        }
    }
    /// Evaluates `m:f(args)`.
    fn evaluate(&mut self, ctx: &mut Ctx, m: Word, f: Word, args: Word, purpose: Purpose) {
        let options = SpawnOptions {
            monitor: Some(Default::default()),
            watched: true,
            ..SpawnOptions::default()
        };
        let proper = text::list_length(args).is_some_and(|n| n <= 255);
        if !m.is_atom() || !f.is_atom() || !proper {
            return self.error(ctx, f);
        }
        match spawn_start(ctx, Start::Apply(m, f, args), &options) {
            Ok(s) => match s.monitor.and_then(RefKey::of) {
                Some(monitor) => {
                    self.state = State::Evaluating {
                        pid: s.pid,
                        monitor,
                        purpose,
                    }
                }
                None => self.error(ctx, f),
            },
            Err(_) => {
                let limit = atoms::SYSTEM_LIMIT.word();
                self.error(ctx, limit);
            }
        }
    }
    fn evaluated(&mut self, ctx: &mut Ctx) {
        let State::Evaluating { pid, purpose, .. } =
            std::mem::replace(&mut self.state, State::Idle)
        else {
            return;
        };
        let Some(vm) = self.vm.upgrade() else { return };
        let result = vm.exits.take(pid.local_number()).and_then(|r| r.result);
        match (purpose, result) {
            (Purpose::Output, Some(r)) => {
                let data = r.adopt(ctx.heap());
                if self.write(ctx, false, data) {
                    self.done(ctx, atoms::OK.word(), false);
                } else {
                    let name = atoms::PUT_CHARS.word();
                    self.error(ctx, name);
                }
            }
            (Purpose::Output, None) => {
                let name = Self::atom(ctx, "format");
                self.error(ctx, name);
            }
            (Purpose::Until(request), Some(r)) => {
                let r = r.adopt(ctx.heap());
                self.until_result(ctx, request, r);
            }
            (Purpose::Until(_), None) => {
                let name = atoms::GET_UNTIL.word();
                self.error(ctx, name);
            }
        }
    }
    /// The answer of a `get_until` function: `{done, Result, Rest}` or `{more, Continuation}`.
    fn until_result(&mut self, ctx: &mut Ctx, request: Carried, r: Word) {
        match r.as_tuple() {
            Some([done, result, rest]) if Self::is(ctx, *done, "done") => {
                if rest.as_atom() != Some(atoms::EOF) {
                    let back = text::chardata_to_string(*rest, WalkLimit::NONE).unwrap_or_default();
                    let mut all = back.into_bytes();
                    all.append(&mut self.input);
                    self.input = all;
                }
                self.done(ctx, *result, false);
            }
            Some([more, continuation]) if Self::is(ctx, *more, "more") => {
                let continuation = Some(Carried::copy(*continuation));
                self.state = State::Input {
                    request,
                    continuation,
                };
                self.go_on(ctx);
            }
            _ => {
                let name = atoms::GET_UNTIL.word();
                self.error(ctx, name);
            }
        }
    }

    /// Starts what the request asks for.
    fn begin(&mut self, ctx: &mut Ctx, request: Word) {
        let Some(t) = request.as_tuple() else {
            if request.as_atom() == Some(atoms::GETOPTS) {
                return self.getopts(ctx);
            }
            let r = atoms::REQUEST.word();
            return self.error(ctx, r);
        };
        let name = t.first().and_then(|n| n.as_atom());
        match (name, t) {
            (Some(atoms::PUT_CHARS), [_, enc, data]) => match Self::encoding(*enc) {
                Some(latin1) => self.put(ctx, latin1, *data, request),
                None => {
                    let r = atoms::REQUEST.word();
                    self.error(ctx, r);
                }
            },
            (Some(atoms::PUT_CHARS), [_, data]) => self.put(ctx, true, *data, request),
            (Some(atoms::PUT_CHARS), [_, enc, m, f, a]) if enc.is_atom() => {
                self.evaluate(ctx, *m, *f, *a, Purpose::Output);
            }
            (Some(atoms::PUT_CHARS), [_, m, f, a]) => {
                self.evaluate(ctx, *m, *f, *a, Purpose::Output)
            }
            (Some(atoms::GET_LINE | atoms::GET_CHARS | atoms::GET_UNTIL), _) if !self.reads => {
                let r = atoms::ENOTSUP.word();
                self.error(ctx, r);
            }
            (Some(atoms::GET_LINE), [_, _, prompt])
            | (Some(atoms::GET_CHARS), [_, _, prompt, _])
            | (Some(atoms::GET_UNTIL), [_, _, prompt, _, _, _]) => {
                self.prompt(ctx, *prompt);
                let continuation =
                    (name == Some(atoms::GET_UNTIL)).then(|| Carried::immediate(Word::NIL));
                self.state = State::Input {
                    request: Carried::copy(request),
                    continuation,
                };
                self.go_on(ctx);
            }
            (Some(atoms::GET_GEOMETRY), [_, _]) => {
                let r = atoms::ENOTSUP.word();
                self.error(ctx, r);
            }
            (Some(atoms::SETOPTS), [_, options]) => self.setopts(ctx, *options),
            (Some(atoms::REQUESTS), [_, list]) => {
                let Some(items) = text::list_to_vec(*list) else {
                    let r = atoms::REQUEST.word();
                    return self.error(ctx, r);
                };
                if let Some(job) = self.jobs.front_mut() {
                    for item in items.into_iter().rev() {
                        job.requests.push_front(Carried::copy(item));
                    }
                }
                self.done(ctx, atoms::OK.word(), false);
            }
            _ => {
                let r = atoms::REQUEST.word();
                self.error(ctx, r);
            }
        }
    }
    fn getopts(&mut self, ctx: &mut Ctx) {
        let binary = Word::boolean(self.binary);
        let encoding = if self.latin1 {
            atoms::LATIN1
        } else {
            atoms::UNICODE
        }
        .word();
        let a = ctx.tuple(&[atoms::BINARY.word(), binary]);
        let b = ctx.tuple(&[atoms::ENCODING.word(), encoding]);
        let l = ctx.list([a, b]);
        self.done(ctx, l, false);
    }
    fn setopts(&mut self, ctx: &mut Ctx, options: Word) {
        let Some(items) = text::list_to_vec(options) else {
            let r = atoms::REQUEST.word();
            return self.error(ctx, r);
        };
        for o in items {
            match (o.as_atom(), o.as_tuple()) {
                (Some(atoms::BINARY), _) => self.binary = true,
                (Some(atoms::LIST), _) => self.binary = false,
                (_, Some([k, v])) if k.as_atom() == Some(atoms::BINARY) && v.is_boolean() => {
                    self.binary = *v == Word::TRUE;
                }
                (_, Some([k, v])) if k.as_atom() == Some(atoms::ENCODING) => {
                    match Self::encoding(*v) {
                        Some(latin1) => self.latin1 = latin1,
                        None => {
                            let r = atoms::ENOTSUP.word();
                            return self.error(ctx, r);
                        }
                    }
                }
                (_, Some([k, _]))
                    if matches!(k.as_atom(), Some(atoms::ECHO | atoms::EXPAND_FUN)) => {}
                _ => {
                    let r = atoms::ENOTSUP.word();
                    return self.error(ctx, r);
                }
            }
        }
        self.done(ctx, atoms::OK.word(), false);
    }
    fn prompt(&mut self, ctx: &mut Ctx, prompt: Word) {
        if prompt.is_nil() {
            return;
        }
        if let Some(a) = prompt.as_atom() {
            let text = ctx.tables().atoms.text(a).to_string();
            let _ = self.door.write(self.stream, text.as_bytes());
        } else {
            self.write(ctx, false, prompt);
        }
    }

    /// The characters that are there, decoded; an unfinished sequence at the end stays.
    fn take_text(&mut self, end: usize) -> String {
        let bytes: Vec<u8> = self.input.drain(..end).collect();
        if self.latin1 {
            return bytes.into_iter().map(char::from).collect();
        }
        match String::from_utf8(bytes) {
            Ok(s) => s,
            Err(e) => e.into_bytes().into_iter().map(char::from).collect(),
        }
    }
    fn give(&mut self, ctx: &mut Ctx, text: &str) {
        let w = if self.binary {
            ctx.binary(text.as_bytes())
        } else {
            ctx.string(text)
        };
        self.done(ctx, w, false);
    }
    /// Goes on with a request for input as far as the input allows.
    fn go_on(&mut self, ctx: &mut Ctx) {
        let State::Input {
            request,
            continuation,
        } = &self.state
        else {
            return;
        };
        let Some(t) = request.term.as_tuple() else {
            return;
        };
        let line_end = self.input.iter().position(|b| *b == b'\n').map(|i| i + 1);
        match (t[0].as_atom(), continuation) {
            (Some(atoms::GET_CHARS), _) => {
                let n = t[3].as_small().unwrap_or(0).max(0) as usize;
                let end = self.chars_end(n);
                match end {
                    Some(end) if n == 0 || end > 0 => {
                        let text = self.take_text(end);
                        self.give(ctx, &text);
                    }
                    Some(_) => self.done(ctx, atoms::EOF.word(), false),
                    None => self.want_input(ctx),
                }
            }
            (Some(atoms::GET_LINE), _) => match line_end {
                Some(end) => {
                    let text = self.take_text(end);
                    self.give(ctx, &text);
                }
                None if self.eof && self.input.is_empty() => {
                    self.done(ctx, atoms::EOF.word(), false)
                }
                None if self.eof => {
                    let text = self.take_text(self.input.len());
                    self.give(ctx, &text);
                }
                None => self.want_input(ctx),
            },
            (_, Some(_)) => {
                let end = match line_end {
                    Some(e) => Some(e),
                    None if self.eof => Some(self.input.len()),
                    None => None,
                };
                let Some(end) = end else {
                    return self.want_input(ctx);
                };
                let State::Input {
                    request,
                    continuation,
                } = std::mem::replace(&mut self.state, State::Idle)
                else {
                    return;
                };
                let at_eof = end == 0;
                let text = self.take_text(end);
                let chars = if at_eof {
                    atoms::EOF.word()
                } else {
                    ctx.string(&text)
                };
                let continuation = continuation.map_or(Word::NIL, |c| c.adopt(ctx.heap()));
                let (m, f, extra) = match request.term.as_tuple() {
                    Some([_, _, _, m, f, a]) => (*m, *f, *a),
                    _ => return,
                };
                let args = ctx.cons(chars, extra);
                let args = ctx.cons(continuation, args);
                self.evaluate(ctx, m, f, args, Purpose::Until(request));
            }
            _ => {}
        }
    }
    /// Where `n` characters of the input end: also when fewer are there at the end of the input; `None` when more is to come.
    fn chars_end(&self, n: usize) -> Option<usize> {
        let mut left = n;
        let mut at = 0;
        while left > 0 {
            let Some(b) = self.input.get(at) else {
                return self.eof.then_some(at);
            };
            let len = match b {
                _ if self.latin1 => 1,
                0xC0..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0..0xF8 => 4,
                _ => 1,
            };
            if at + len > self.input.len() {
                return self.eof.then_some(self.input.len());
            }
            at += len;
            left -= 1;
        }
        Some(at)
    }
    /// Makes sure that input comes.
    fn want_input(&mut self, ctx: &mut Ctx) {
        if self.reader || self.eof {
            return;
        }
        match input::read(&self.vm, &self.door, ctx.self_pid()) {
            Reading::All => self.reader = true,
            Reading::Once => {}
            Reading::Nothing => {
                self.eof = true;
                self.go_on(ctx);
            }
        }
    }

    fn message(&mut self, ctx: &mut Ctx, m: Word) {
        match m.as_tuple() {
            Some([tag, from, reply_as, request])
                if tag.as_atom() == Some(atoms::IO_REQUEST) && from.is_pid() =>
            {
                let envelope = ctx.tuple(&[*from, *reply_as]);
                self.jobs.push_back(Job {
                    envelope: Carried::copy(envelope),
                    requests: VecDeque::from([Carried::copy(*request)]),
                });
            }
            Some([tag, user, bytes])
                if tag.as_atom() == Some(atoms::FILE)
                    && user.as_atom() == Some(atoms::USER)
                    && self.reads =>
            {
                let bytes =
                    beamr_term::bits::BitsView::of(*bytes).map(|v| v.to_bytes().into_owned());
                match bytes {
                    Some(b) if !b.is_empty() => self.input.extend(b),
                    _ => self.eof = true,
                }
                self.go_on(ctx);
            }
            Some([_, r, _, _, _]) => {
                if let State::Evaluating { monitor, .. } = &self.state
                    && RefKey::of(*r) == Some(*monitor)
                {
                    self.evaluated(ctx);
                }
            }
            _ => {}
        }
    }
}

/// What the I/O process is sent for bytes of standard input; none at its end.
pub(crate) fn input_message(bytes: &[u8]) -> Carried {
    Carried::build(bytes.len() / 8 + 16, |f| {
        let bytes = f.binary(bytes);
        f.tuple(&[atoms::FILE.word(), atoms::USER.word(), bytes])
    })
}

impl NativeProcess for IoServer {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        loop {
            match rt::next_message(ctx) {
                Err(_) => return NativeStep::Continue,
                Ok(Some(m)) => {
                    rt::remove_message(ctx);
                    self.message(ctx, m);
                }
                Ok(None) => {
                    if !matches!(self.state, State::Idle) {
                        return NativeStep::Wait;
                    }
                    let Some(job) = self.jobs.front_mut() else {
                        return NativeStep::Wait;
                    };
                    match job.requests.pop_front() {
                        Some(r) => {
                            let request = r.adopt(ctx.heap());
                            self.begin(ctx, request);
                        }
                        None => {
                            self.jobs.pop_front();
                        }
                    }
                }
            }
            if ctx.fcalls <= 0 || ctx.heap().gc_wanted {
                return NativeStep::Continue;
            }
        }
    }
}
