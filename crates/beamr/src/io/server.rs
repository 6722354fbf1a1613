//! The protocol: requests, their answers, functions that requests name.
//!
//! A process written in Rust. Output requests are answered one after another; a request for input waits apart from them, so that
//! others can write meanwhile, and further ones for input wait behind it. Functions that requests name (`{put_chars, Enc, M, F, Args}`,
//! `get_until`, prompts that are formats) are called by a process of their own, whose result this one takes. When its stream is
//! closed the process ends with the error's code as reason, as OTP's does: askers then get `{error, terminated}`.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use beamr_abi::Ctx;
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::text;
use beamr_term::{Build, Release, Word, atoms};
#[cfg(unix)]
use beamr_vm::door::DoorError;
#[cfg(unix)]
use beamr_vm::door::files::Posix;
use beamr_vm::door::{Door, Standard, Stream};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::process::spawn::{SpawnOptions, Start, spawn_start};
use beamr_vm::process::{Carried, RefKey};
use beamr_vm::rt;
use beamr_vm::vm::Vm;

use super::codec::{Request, Untranslatable, decode, encode};
use super::input::{Found, Input};
use super::options::Options;
use super::reader::ARRIVED;

/// Who gets an answer. The words are good for a turn, or lie in `kept`.
struct Asker {
    from: Word,
    reply_as: Word,
    kept: Option<Carried>,
}

impl Asker {
    /// For longer than a turn.
    fn keep(mut self) -> Asker {
        if self.kept.is_none() {
            let kept = Carried::build(16, |f| {
                let from = Copying::new(self.from, CopyMode::Share).make(f);
                let reply_as = Copying::new(self.reply_as, CopyMode::Share).make(f);
                f.tuple(&[from, reply_as])
            });
            if let Some([from, reply_as]) = kept.term.as_tuple() {
                (self.from, self.reply_as) = (*from, *reply_as);
            }
            self.kept = Some(kept);
        }
        self
    }
}

/// A message that is being answered: who asks, and the requests after the one in hand.
struct Job {
    asker: Asker,
    rest: VecDeque<Carried>,
}

impl Job {
    fn keep(self) -> Job {
        Job {
            asker: self.asker.keep(),
            rest: self.rest,
        }
    }
}

/// A function that is being called.
struct Call {
    pid: Word,
    monitor: RefKey,
    function: Word,
}

/// A request for input that waits, or whose function or prompt is being called.
struct Reading {
    job: Job,
    request: Carried,
    /// Of `get_until`.
    continuation: Option<Carried>,
    call: Option<Call>,
    /// What is called makes the prompt.
    prompting: bool,
}

/// What a request comes to.
enum Step {
    /// An answer.
    Done(Word),
    /// An answer that ends `requests`.
    Failed(Word),
    /// The output of a function.
    Call(Word, Word, Word, Request),
    /// Several requests.
    Many(Vec<Word>),
    /// It is one for input.
    Read,
}

/// The parts of a request for input.
enum Wanted {
    Line,
    Chars(usize),
    /// Module, function, further arguments.
    Until(Word, Word, Word),
}

/// See the module.
pub struct IoServer {
    stream: Stream,
    door: Arc<dyn Door>,
    vm: Weak<Vm>,
    /// Whether this one reads standard input.
    reads: bool,
    /// Reasons of errors are those of OTP 25; `standard_error` has them in all releases.
    old_errors: bool,
    queue: VecDeque<Job>,
    output: Option<(Job, Call, Request)>,
    readers: VecDeque<(Job, Carried)>,
    reading: Option<Reading>,
    input: Input,
    options: Options,
    /// The stream is closed: the reason to end with.
    broken: Option<Word>,
}

impl IoServer {
    /// A server for a stream; `reads` for the one that serves standard input too.
    pub fn new(vm: &Arc<Vm>, stream: Stream, reads: bool) -> IoServer {
        IoServer {
            stream,
            door: vm.door.clone(),
            vm: Arc::downgrade(vm),
            reads,
            old_errors: !reads || vm.tables.release < Release(26),
            queue: VecDeque::new(),
            output: None,
            readers: VecDeque::new(),
            reading: None,
            input: Input::default(),
            options: Options::default(),
            broken: None,
        }
    }
    /// The device is Latin-1 from the start.
    pub fn set_latin1(&mut self) {
        self.options.encoding = super::codec::Encoding::Latin1;
    }
    fn atom(ctx: &Ctx, text: &str) -> Word {
        // The texts are those of this file: there is room for them.
        let a = ctx.tables().atoms.intern(text);
        a.map_or(atoms::ERROR.word(), |a| a.word())
    }
    fn is(ctx: &Ctx, w: Word, text: &str) -> bool {
        w.as_atom()
            .is_some_and(|a| ctx.tables().atoms.text(a) == text)
    }

    // ---- answers

    fn reply(&mut self, ctx: &mut Ctx, job: &Job, result: Word) {
        let message = ctx.tuple(&[atoms::IO_REPLY.word(), job.asker.reply_as, result]);
        // The asker may be gone: then the answer goes nowhere.
        let _ = rt::send(ctx, job.asker.from, message);
    }
    /// A request is done: the next one is its turn later, or this was the answer.
    fn finish(&mut self, ctx: &mut Ctx, job: Job, result: Word) {
        if job.rest.is_empty() {
            self.reply(ctx, &job, result);
        } else {
            self.queue.push_front(job.keep());
        }
    }
    fn fail(&mut self, ctx: &mut Ctx, job: Job, reason: Word) {
        let e = ctx.tuple(&[atoms::ERROR.word(), reason]);
        self.reply(ctx, &job, e);
    }
    fn failed(ctx: &mut Ctx, reason: Word) -> Step {
        Step::Failed(ctx.tuple(&[atoms::ERROR.word(), reason]))
    }
    fn unknown(&self, ctx: &mut Ctx, request: Word) -> Step {
        let mut reason = atoms::REQUEST.word();
        if self.old_errors {
            reason = ctx.tuple(&[reason, request]);
        }
        Self::failed(ctx, reason)
    }

    // ---- output

    fn write(&mut self, ctx: &mut Ctx, bytes: &[u8]) {
        ctx.bump(bytes.len() as i64 / 32);
        if let Err(e) = self.door.write(self.stream, bytes) {
            let code = match e {
                #[cfg(unix)]
                DoorError::Stream { cause, .. } => Posix::from(cause).0,
                _ => "eio",
            };
            self.broken = Some(Self::atom(ctx, code));
        }
    }
    fn put(&mut self, ctx: &mut Ctx, enc: Request, data: Word, request: Word) -> Step {
        match encode(self.options.encoding, enc, data) {
            Some(bytes) => {
                self.write(ctx, &bytes);
                Step::Done(atoms::OK.word())
            }
            None if self.old_errors => Self::failed(ctx, atoms::PUT_CHARS.word()),
            None => Self::failed(ctx, request),
        }
    }
    fn encoding(w: Word) -> Option<Request> {
        match w.as_atom()? {
            atoms::LATIN1 => Some(Request::Latin1),
            atoms::UNICODE | atoms::UTF8 => Some(Request::Unicode),
            _ => None,
        }
    }
    /// A process that calls `m:f(args)`.
    fn call(ctx: &mut Ctx, m: Word, f: Word, args: Word) -> Option<Call> {
        let options = SpawnOptions {
            monitor: Some(Default::default()),
            watched: true,
            quiet: true,
            ..SpawnOptions::default()
        };
        let proper = text::list_length(args).is_some_and(|n| n <= 255);
        if !m.is_atom() || !f.is_atom() || !proper {
            return None;
        }
        let s = spawn_start(ctx, Start::Apply(m, f, args), &options).ok()?;
        Some(Call {
            pid: s.pid,
            monitor: s.monitor.and_then(RefKey::of)?,
            function: f,
        })
    }
    /// What the function of a call that is over gave.
    fn result(&self, ctx: &mut Ctx, call: &Call) -> Option<Word> {
        let vm = self.vm.upgrade()?;
        let record = vm.exits.take(call.pid.local_number())?;
        record.result.map(|r| r.adopt(ctx.heap()))
    }
    fn output_ready(&mut self, ctx: &mut Ctx, job: Job, call: Call, enc: Request) {
        let data = self.result(ctx, &call);
        let bytes = data.and_then(|d| encode(self.options.encoding, enc, d));
        match bytes {
            Some(bytes) => {
                self.write(ctx, &bytes);
                self.finish(ctx, job, atoms::OK.word());
            }
            None if self.old_errors => self.fail(ctx, job, atoms::PUT_CHARS.word()),
            None => self.fail(ctx, job, call.function),
        }
    }

    // ---- requests

    /// What a request comes to; output is written here.
    fn perform(&mut self, ctx: &mut Ctx, request: Word) -> Step {
        let Some(t) = request.as_tuple() else {
            if request.as_atom() == Some(atoms::GETOPTS) {
                let door = self.door.clone();
                return Step::Done(self.options.get(ctx, &*door, self.reads));
            }
            return self.unknown(ctx, request);
        };
        let name = t.first().and_then(|n| n.as_atom());
        match (name, t) {
            (Some(atoms::PUT_CHARS), [_, enc, data]) => match Self::encoding(*enc) {
                Some(enc) => self.put(ctx, enc, *data, request),
                None => self.unknown(ctx, request),
            },
            (Some(atoms::PUT_CHARS), [_, data]) => self.put(ctx, Request::Latin1, *data, request),
            (Some(atoms::PUT_CHARS), [_, enc, m, f, a]) => match Self::encoding(*enc) {
                Some(enc) => Step::Call(*m, *f, *a, enc),
                None => self.unknown(ctx, request),
            },
            (Some(atoms::PUT_CHARS), [_, m, f, a]) => Step::Call(*m, *f, *a, Request::Latin1),
            (Some(atoms::GET_GEOMETRY), [_, what]) => self.geometry(ctx, *what, request),
            (Some(atoms::SETOPTS), [_, options]) => {
                if !options.is_list() {
                    return self.unknown(ctx, request);
                }
                match self.options.set(ctx, *options, self.reads) {
                    Some(new) => {
                        self.options = new;
                        Step::Done(atoms::OK.word())
                    }
                    None => Self::failed(ctx, atoms::ENOTSUP.word()),
                }
            }
            (Some(atoms::REQUESTS), [_, list]) => match text::list_to_vec(*list) {
                Some(items) => Step::Many(items),
                None => self.unknown(ctx, request),
            },
            _ if self.reads && wanted(request).is_some() => Step::Read,
            _ if !self.old_errors && name.is_some_and(|n| is_password(ctx, n)) => {
                Self::failed(ctx, atoms::ENOTSUP.word())
            }
            _ => self.unknown(ctx, request),
        }
    }
    fn geometry(&self, ctx: &mut Ctx, what: Word, request: Word) -> Step {
        let stream = match self.stream {
            Stream::Out => Standard::Out,
            Stream::Err => Standard::Err,
        };
        let size = match what.as_atom() {
            Some(atoms::COLUMNS) => self.door.window(stream).map(|w| w.0),
            Some(atoms::ROWS) => self.door.window(stream).map(|w| w.1),
            _ => return self.unknown(ctx, request),
        };
        match size {
            Some(n) => Step::Done(Word::fixnum(i64::from(n))),
            None => Self::failed(ctx, atoms::ENOTSUP.word()),
        }
    }
    /// Serves a request and those after it as far as they need not wait.
    fn serve(&mut self, ctx: &mut Ctx, mut job: Job, mut request: Word) {
        while self.broken.is_none() {
            let result = match self.perform(ctx, request) {
                Step::Done(w) => w,
                Step::Failed(e) => return self.reply(ctx, &job, e),
                Step::Read => return self.read(ctx, job, request),
                Step::Call(m, f, args, enc) => {
                    match Self::call(ctx, m, f, args) {
                        Some(call) => self.output = Some((job.keep(), call, enc)),
                        None if self.old_errors => self.fail(ctx, job, atoms::PUT_CHARS.word()),
                        None => self.fail(ctx, job, f),
                    }
                    return;
                }
                Step::Many(items) => {
                    for item in items.into_iter().rev() {
                        job.rest.push_front(Carried::own(item));
                    }
                    atoms::OK.word()
                }
            };
            match job.rest.pop_front() {
                Some(next) => request = next.adopt(ctx.heap()),
                // What was not written is not answered.
                None if self.broken.is_some() => {}
                None => return self.reply(ctx, &job, result),
            }
        }
    }

    // ---- input

    /// Begins a request for input, or puts it behind those that wait.
    fn read(&mut self, ctx: &mut Ctx, job: Job, request: Word) {
        if self.reading.is_some() {
            self.readers.push_back((job.keep(), Carried::own(request)));
            return;
        }
        let prompt = prompt_of(request);
        match plain_prompt(ctx, prompt) {
            Some(text) => {
                if !text.is_empty() {
                    let f = ctx.binary(text.as_bytes());
                    let bytes = encode(self.options.encoding, Request::Unicode, f);
                    self.write(ctx, &bytes.unwrap_or_default());
                }
                self.fetch(ctx, job, request, None, None);
            }
            None => {
                let (m, f) = (Self::atom(ctx, "io_lib"), Self::atom(ctx, "format_prompt"));
                let args = ctx.list([prompt, atoms::UNICODE.word()]);
                match Self::call(ctx, m, f, args) {
                    Some(call) => {
                        self.reading = Some(Reading {
                            job: job.keep(),
                            request: Carried::own(request),
                            continuation: None,
                            call: Some(call),
                            prompting: true,
                        });
                    }
                    None => self.fail(ctx, job, f),
                }
            }
        }
    }
    /// Goes on with a request for input as far as the input allows. `kept` is the request when it was kept.
    fn fetch(
        &mut self,
        ctx: &mut Ctx,
        job: Job,
        request: Word,
        kept: Option<Carried>,
        continuation: Option<Carried>,
    ) {
        let Some((enc, what)) = wanted(request) else {
            return;
        };
        let found = match &what {
            Wanted::Line | Wanted::Until(..) => self.input.line(),
            Wanted::Chars(n) => {
                let latin1 = self.options.encoding.is_latin1(enc);
                self.input.chars(*n, latin1)
            }
        };
        match (found, what) {
            (Found::More, _) => {
                self.input.want(&self.vm, &self.door, ctx.self_pid());
                self.reading = Some(Reading {
                    job: job.keep(),
                    request: kept.unwrap_or_else(|| Carried::own(request)),
                    continuation,
                    call: None,
                    prompting: false,
                });
                if self.input.is_over() {
                    self.go_on(ctx);
                }
            }
            (found, Wanted::Until(m, f, extra)) => {
                let chars = match found {
                    Found::Bytes(n) => match self.take(ctx, enc, n, false) {
                        Ok(chars) => chars,
                        Err(_) => return self.fail(ctx, job, atoms::GET_UNTIL.word()),
                    },
                    _ => atoms::EOF.word(),
                };
                let continuation = continuation.map_or(Word::NIL, |c| c.adopt(ctx.heap()));
                let args = ctx.cons(chars, extra);
                let args = ctx.cons(continuation, args);
                match Self::call(ctx, m, f, args) {
                    Some(call) => {
                        self.reading = Some(Reading {
                            job: job.keep(),
                            request: kept.unwrap_or_else(|| Carried::own(request)),
                            continuation: None,
                            call: Some(call),
                            prompting: false,
                        });
                    }
                    None => self.fail(ctx, job, f),
                }
            }
            (Found::Eof, _) => self.finish(ctx, job, atoms::EOF.word()),
            (Found::Bytes(n), what) => self.give(ctx, job, enc, n, what),
        }
    }
    /// Answers with bytes of the input.
    fn give(&mut self, ctx: &mut Ctx, job: Job, enc: Request, n: usize, what: Wanted) {
        let binary = self.options.binary;
        let bytes = &self.input.rest()[..n];
        match decode(self.options.encoding, enc, bytes) {
            Ok(chars) => {
                if job.rest.is_empty() {
                    let message = Carried::build(chars.words(binary) + 16, |f| {
                        let chars = chars.term(f, enc, binary);
                        let reply_as = Copying::new(job.asker.reply_as, CopyMode::Share).make(f);
                        f.tuple(&[atoms::IO_REPLY.word(), reply_as, chars])
                    });
                    // The asker may be gone.
                    let _ = rt::send_carried(ctx, job.asker.from, message);
                    self.input.consume(n);
                } else {
                    self.input.consume(n);
                    self.finish(ctx, job, atoms::OK.word());
                }
            }
            Err(e) => {
                self.input.consume(n);
                let reason = match (e, what) {
                    (Untranslatable::NotLatin1, _) => {
                        let tag = Self::atom(ctx, "no_translation");
                        ctx.tuple(&[tag, atoms::UNICODE.word(), atoms::LATIN1.word()])
                    }
                    (Untranslatable::Invalid, Wanted::Line) => Self::atom(ctx, "collect_line"),
                    (Untranslatable::Invalid, _) => Self::atom(ctx, "collect_chars"),
                };
                self.fail(ctx, job, reason);
            }
        }
    }
    fn take(
        &mut self,
        ctx: &mut Ctx,
        enc: Request,
        n: usize,
        binary: bool,
    ) -> Result<Word, Untranslatable> {
        let bytes = &self.input.rest()[..n];
        let decoded = decode(self.options.encoding, enc, bytes)
            .map(|chars| Carried::build(chars.words(binary) + 8, |f| chars.term(f, enc, binary)));
        self.input.consume(n);
        decoded.map(|c| c.adopt(ctx.heap()))
    }
    /// Tries again what waits for input.
    fn go_on(&mut self, ctx: &mut Ctx) {
        if let Some(r) = self.reading.take_if(|r| r.call.is_none()) {
            let request = r.request.term;
            self.fetch(ctx, r.job, request, Some(r.request), r.continuation);
        }
    }
    /// The function or prompt of the request for input is there.
    fn input_ready(&mut self, ctx: &mut Ctx, mut r: Reading) {
        let Some(call) = r.call.take() else { return };
        let result = self.result(ctx, &call);
        if r.prompting {
            let text = result.and_then(|t| encode(self.options.encoding, Request::Unicode, t));
            self.write(ctx, &text.unwrap_or_default());
            let request = r.request.term;
            return self.fetch(ctx, r.job, request, Some(r.request), None);
        }
        match result.and_then(|w| w.as_tuple()) {
            Some([done, value, rest]) if Self::is(ctx, *done, "done") => {
                if rest.as_atom() != Some(atoms::EOF) {
                    let enc = wanted(r.request.term).map_or(Request::Unicode, |w| w.0);
                    // What is no text cannot go back.
                    let back = encode(self.options.encoding, enc, *rest).unwrap_or_default();
                    self.input.put_back(&back);
                }
                self.finish(ctx, r.job, *value);
            }
            Some([more, continuation]) if Self::is(ctx, *more, "more") => {
                let continuation = Some(Carried::own(*continuation));
                let request = r.request.term;
                self.fetch(ctx, r.job, request, Some(r.request), continuation);
            }
            _ => self.fail(ctx, r.job, call.function),
        }
    }

    // ---- messages

    fn message(&mut self, ctx: &mut Ctx, m: Word) {
        match m.as_tuple() {
            None if m == ARRIVED && self.reads => {
                self.input.receive();
                self.go_on(ctx);
            }
            Some([tag, from, reply_as, request])
                if tag.as_atom() == Some(atoms::IO_REQUEST) && from.is_pid() =>
            {
                let mut job = Job {
                    asker: Asker {
                        from: *from,
                        reply_as: *reply_as,
                        kept: None,
                    },
                    rest: VecDeque::new(),
                };
                if self.output.is_some() || !self.queue.is_empty() {
                    job.rest.push_back(Carried::own(*request));
                    self.queue.push_back(job.keep());
                } else {
                    self.serve(ctx, job, *request);
                }
            }
            Some([_, r, _, _, _]) => {
                let Some(key) = RefKey::of(*r) else { return };
                if let Some((job, call, enc)) = self.output.take_if(|o| o.1.monitor == key) {
                    self.output_ready(ctx, job, call, enc);
                } else if let Some(r) = self
                    .reading
                    .take_if(|r| r.call.as_ref().is_some_and(|c| c.monitor == key))
                {
                    self.input_ready(ctx, r);
                }
            }
            _ => {}
        }
    }
    /// Begins what waits for others to be done; false when there is no such thing.
    fn next(&mut self, ctx: &mut Ctx) -> bool {
        if self.reading.is_none()
            && let Some((job, request)) = self.readers.pop_front()
        {
            let request = request.adopt(ctx.heap());
            self.read(ctx, job, request);
            return true;
        }
        if self.output.is_none()
            && let Some(mut job) = self.queue.pop_front()
        {
            if let Some(request) = job.rest.pop_front() {
                let request = request.adopt(ctx.heap());
                self.serve(ctx, job, request);
            }
            return true;
        }
        false
    }
}

impl NativeProcess for IoServer {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        loop {
            if let Some(reason) = self.broken {
                return NativeStep::Exit(reason);
            }
            if !self.next(ctx) {
                match rt::next_message(ctx) {
                    Err(_) => return NativeStep::Continue,
                    Ok(None) => return NativeStep::Wait,
                    Ok(Some(m)) => {
                        rt::remove_message(ctx);
                        self.message(ctx, m);
                    }
                }
            }
            if self.broken.is_none() && (ctx.fcalls <= 0 || ctx.heap().gc_wanted) {
                return NativeStep::Continue;
            }
        }
    }
}

fn is_password(ctx: &Ctx, name: beamr_term::Atom) -> bool {
    ctx.tables().atoms.text(name) == "get_password"
}

/// The encoding and kind of a request for input; `None` for other requests.
fn wanted(request: Word) -> Option<(Request, Wanted)> {
    let t = request.as_tuple()?;
    let chars = |n: &Word| Some(Wanted::Chars(usize::try_from(n.as_small()?).ok()?));
    match (t.first()?.as_atom()?, &t[1..]) {
        (atoms::GET_LINE, [enc, _]) => Some((IoServer::encoding(*enc)?, Wanted::Line)),
        (atoms::GET_LINE, [_]) => Some((Request::Latin1, Wanted::Line)),
        (atoms::GET_CHARS, [enc, _, n]) => Some((IoServer::encoding(*enc)?, chars(n)?)),
        (atoms::GET_CHARS, [_, n]) => Some((Request::Latin1, chars(n)?)),
        (atoms::GET_UNTIL, [enc, _, m, f, a]) => {
            Some((IoServer::encoding(*enc)?, Wanted::Until(*m, *f, *a)))
        }
        (atoms::GET_UNTIL, [_, m, f, a]) => Some((Request::Latin1, Wanted::Until(*m, *f, *a))),
        _ => None,
    }
}

fn prompt_of(request: Word) -> Word {
    let t = request.as_tuple().unwrap_or_default();
    let with_encoding = match t.first().and_then(|n| n.as_atom()) {
        Some(atoms::GET_LINE) => t.len() == 3,
        Some(atoms::GET_CHARS) => t.len() == 4,
        _ => t.len() == 6,
    };
    let at = if with_encoding { 2 } else { 1 };
    t.get(at).copied().unwrap_or(Word::NIL)
}

/// The text of a prompt that needs no formatting.
fn plain_prompt(ctx: &Ctx, prompt: Word) -> Option<String> {
    match prompt.as_atom() {
        Some(a) if !prompt.is_nil() => Some(ctx.tables().atoms.text(a).to_string()),
        _ => text::chardata_to_string(prompt, text::WalkLimit::NONE).ok(),
    }
}
