//! Raising: traces, unwinding, what a handler gets.
//!
//! # The raw trace
//!
//! Taking a trace is cheap: a tuple `{Class, Head, Position, ...}` of positions; names and lines are
//! looked up when a program asks ([`build_stacktrace`]) or the process ends. A position is a small integer: of the
//! raising instruction as it is, of a return address the byte before it, so that both lie inside the
//! instruction they belong to. `Head` is
//!
//! * `[]`: the trace begins with the first position;
//! * `{Module, Function, ArityOrArgs, Extra}`: a frame that has no position (a native, an undefined function);
//! * `{Position, Args, Extra}`: the frame of a position with arguments (`function_clause`, `error/2`).
//!
//! `{Class, List}` is a trace that the program gave (`erlang:raise/3`). A position whose image is gone
//! names nothing and its frame is left out.
//!
//! As in OTP a trace has at most `backtrace_depth` entries, and of equal neighbours on the stack only one is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use beamr_abi::{Body, Ctx, ErrorInfo, ExceptionClass, NativeEntry, Raise, Regs};
use beamr_term::word::PRIMARY_HEADER;
use beamr_term::{Alloc, Atom, Build, Header, Subtag, Word, atoms};

use crate::code::CodeServer;
use crate::code::server::View;
use crate::engine::CodePos;
use crate::machine::is_stub;
use crate::rt::{Uncaught, WorkerCode};
use crate::trace::calls::{self, position};

/// Raises an exception at `ip`: takes the trace, unwinds to the nearest handler. At the handler x0 is
/// [`Word::NONE`], x1 the class atom, x2 the reason, x3 the raw trace, and `heap.stop` is the
/// handler's frame. `args` are the arguments for the first frame: of the native `native` if given, else of the
/// function that `ip` lies in (`function_clause`), or empty.
///
/// The handler's catch tag is replaced by `[]`; `body.catches` still counts it (`catch_end` and
/// `try_case` take it off).
///
/// # Safety
/// The contract of the module.
pub unsafe fn raise(
    regs: &mut Regs,
    ip: CodePos,
    raise: Raise,
    native: Option<&'static NativeEntry>,
    args: Option<&[Word]>,
) -> CodePos {
    let raw = raw_trace(&mut regs.ctx, ip, &raise, native, args);
    throw(regs, ip, raise.class, raise.reason, raw)
}

/// Raises `undef` for a call of `module:function` with these arguments: the trace begins with that function.
pub(super) unsafe fn raise_undef(
    regs: &mut Regs,
    ip: CodePos,
    module: Word,
    function: Word,
    args: Word,
) -> CodePos {
    let ctx = &mut regs.ctx;
    let head = ctx.tuple(&[module, function, args, Word::NIL]);
    let depth = WorkerCode::of(ctx).server.backtrace_depth.load(Relaxed);
    let mut raw = Raw::new(atoms::ERROR.word(), head);
    let traced = position(&WorkerCode::of(ctx).server);
    gather(&*ctx.body, traced, 0, depth.saturating_sub(1), |w| {
        raw.push(w);
    });
    let raw = raw.term(ctx);
    let reason = atoms::UNDEF.word();
    throw(regs, ip, ExceptionClass::Error, reason, raw)
}

/// The words of a raw trace while it is taken; those of an ordinary depth need no memory.
struct Raw {
    inline: [Word; 12],
    len: usize,
    more: Vec<Word>,
}

impl Raw {
    fn new(class: Word, head: Word) -> Raw {
        let mut inline = [Word::NIL; 12];
        inline[0] = class;
        inline[1] = head;
        Raw {
            inline,
            len: 2,
            more: Vec::new(),
        }
    }
    #[inline]
    fn push(&mut self, w: Word) {
        if self.len < self.inline.len() {
            self.inline[self.len] = w;
        } else {
            self.more.push(w);
        }
        self.len += 1;
    }
    fn term(&self, to: &mut impl Build) -> Word {
        if self.more.is_empty() {
            return to.tuple(&self.inline[..self.len]);
        }
        to.tuple(&[&self.inline[..], &self.more].concat())
    }
}

/// Finds the handler, or ends the process.
unsafe fn throw(
    regs: &mut Regs,
    ip: CodePos,
    class: ExceptionClass,
    reason: Word,
    raw: Word,
) -> CodePos {
    let ctx = &mut regs.ctx;
    let (mut class, mut reason) = (class, reason);
    if ctx.body().catches > 0 {
        let server: *const CodeServer = &raw const *WorkerCode::of(ctx).server;
        let handler = unwind(&*server, ctx, ip, class.atom().word(), reason);
        if !handler.is_null() {
            regs.x[0] = Word::NONE;
            regs.x[1] = class.atom().word();
            regs.x[2] = reason;
            regs.x[3] = raw;
            return handler;
        }
    }
    if class == ExceptionClass::Throw {
        class = ExceptionClass::Error;
        reason = ctx.tuple(&[atoms::NOCATCH.word(), reason]);
    }
    let server = WorkerCode::of(ctx).server.clone();
    if ctx.body().catches == 0 && server.breaks.was_used() {
        // Nobody catches it, but there may be somebody to be told.
        unwind(&server, ctx, ip, class.atom().word(), reason);
    }
    if class == ExceptionClass::Error {
        let trace = build_stacktrace(ctx, raw);
        reason = ctx.tuple(&[reason, trace]);
    }
    let processes = WorkerCode::of(ctx).processes.clone();
    processes.uncaught(
        ctx,
        Uncaught {
            class,
            reason,
            log: class == ExceptionClass::Error,
        },
    );
    std::ptr::null()
}

/// Walks the stack to the first catch tag, drops what lies above its frame, and gives the handler's position.
unsafe fn unwind(
    server: &CodeServer,
    ctx: &mut Ctx,
    ip: CodePos,
    class: Word,
    reason: Word,
) -> CodePos {
    let traced = position(server) as u64;
    let mut told = std::ptr::null();
    let heap: *mut beamr_abi::Heap = ctx.heap();
    let heap = &mut *heap;
    let mut at = ip as usize;
    let mut frame = heap.stop;
    let mut p = heap.stop;
    while p < heap.end {
        let w = *p;
        if w == traced {
            if calls::left_by_exception(ctx, p.add(1), class, reason) {
                told = p.add(1).cast_const();
            }
            p = p.add(calls::FRAME);
            continue;
        }
        if w & 3 == PRIMARY_HEADER {
            at = (w as usize).wrapping_sub(1);
            frame = p.add(1);
        } else {
            let tag = Word::from_bits(w);
            if tag.is_catch() {
                let handler = server
                    .ranges
                    .with(at, |image| image.handler(tag.catch_index()));
                let handler = handler.unwrap_or(std::ptr::null());
                if !told.is_null() {
                    calls::caught(ctx, told, handler as usize);
                }
                *p = Word::NIL.bits();
                heap.stop = frame;
                return handler;
            }
        }
        p = p.add(1);
    }
    std::ptr::null()
}

unsafe fn raw_trace(
    ctx: &mut Ctx,
    ip: CodePos,
    raise: &Raise,
    native: Option<&'static NativeEntry>,
    args: Option<&[Word]>,
) -> Word {
    let class = raise.class.atom().word();
    if raise.trace.is_value() {
        return with_class(ctx, raise.trace, class);
    }
    let head = WorkerCode::of(ctx);
    // One entry is always kept.
    let depth = head.server.backtrace_depth.load(Relaxed).max(1);
    let known = head.server.ranges.with(ip as usize, |_| ()).is_some();
    let here = known.then(|| Word::fixnum(ip as usize as i64));
    let shown = native.map_or(usize::MAX, |n| usize::from(n.shown_arity));
    let list = args.map(|a| ctx.list(a.iter().copied().take(shown)));
    let mut raw = Raw::new(class, Word::NIL);
    let mut left = depth;
    let mut previous = 0;
    match native {
        Some(native) if raise.own_frame => {
            let name = head.names.get(native, &ctx.tables().atoms);
            let extra = native_info(ctx, name.formatter, raise.info);
            let args = list.unwrap_or(Word::fixnum(i64::from(native.shown_arity)));
            raw.inline[1] = ctx.tuple(&[name.module.word(), name.function.word(), args, extra]);
            left -= 1;
            // The body of a native's own function is the native.
            let own = head.server.ranges.with(ip as usize, |image| {
                image.module() == name.module
                    && image.function_at(ip as usize).is_some_and(|f| {
                        f.name == name.function && f.arity == u32::from(native.arity)
                    })
            });
            if let Some(here) = here
                && left > 0
                && own != Some(true)
            {
                raw.push(here);
                left -= 1;
                previous = ip as usize;
            }
        }
        _ => {
            let list = if raise.caller_args.is_value() {
                Some(raise.caller_args)
            } else if native.is_none() {
                list
            } else {
                None
            };
            let extra = match raise.info {
                // Of `error/3`: the word is the whole map.
                ErrorInfo::Cause(map) if map.is_map() => info_list(ctx, map),
                _ => Word::NIL,
            };
            // The frame is that of `ip`, or, when a stub runs the native, that of the nearest return address.
            let first = here.or_else(|| {
                let traced = position(&WorkerCode::of(ctx).server);
                let mut first = None;
                gather(&*ctx.body, traced, 0, 1, |at| first = Some(at));
                first
            });
            previous = ip as usize;
            if let Some(first) = first {
                if here.is_none() {
                    previous = first.small_value() as usize + 1;
                }
                left -= 1;
                if list.is_some() || !extra.is_nil() {
                    let list = list.unwrap_or(Word::NONE);
                    let list = if list.is_none() {
                        atoms::TRUE.word()
                    } else {
                        list
                    };
                    raw.inline[1] = ctx.tuple(&[first, list, extra]);
                } else {
                    raw.push(first);
                }
            }
        }
    }
    let traced = position(&WorkerCode::of(ctx).server);
    gather(&*ctx.body, traced, previous, left, |w| raw.push(w));
    raw.term(ctx)
}

/// Gives return addresses, each as the byte before it; neighbours that are equal count once. `traced` is the position of frames of
/// tracing.
unsafe fn gather(
    body: &Body,
    traced: usize,
    previous: usize,
    left: usize,
    mut give: impl FnMut(Word),
) {
    let (mut previous, mut left) = (previous, left);
    let mut p = body.heap.stop;
    while p < body.heap.end && left > 0 {
        let w = *p as usize;
        if w == traced {
            if let Some(at) = calls::stands_for(p.add(1)) {
                give(Word::fixnum(at as i64));
                left -= 1;
            }
            p = p.add(calls::FRAME);
            continue;
        }
        if w as u64 & 3 == PRIMARY_HEADER && w != previous && w != 0 && !is_stub(w) {
            previous = w;
            give(Word::fixnum(w as i64 - 1));
            left -= 1;
        }
        p = p.add(1);
    }
}

/// A trace that comes from elsewhere, under a class: a list of the program, or a raw trace that is raised again.
fn with_class(ctx: &mut Ctx, trace: Word, class: Word) -> Word {
    match trace.as_tuple() {
        Some(t) if !t.is_empty() => {
            if t[0] == class {
                return trace;
            }
            let mut t = t.to_vec();
            t[0] = class;
            ctx.tuple(&t)
        }
        _ => ctx.tuple(&[class, trace]),
    }
}

/// `[{error_info, #{module => M}}]` for a native's own frame.
fn native_info(ctx: &mut Ctx, formatter: Word, info: ErrorInfo) -> Word {
    if formatter.is_none() {
        return Word::NIL;
    }
    let map = match info {
        ErrorInfo::None => return Word::NIL,
        ErrorInfo::Default => flat_map(ctx, &[(atoms::MODULE, formatter)]),
        // Keys in text order, as in every flat map.
        ErrorInfo::Cause(cause) => {
            flat_map(ctx, &[(atoms::CAUSE, cause), (atoms::MODULE, formatter)])
        }
    };
    info_list(ctx, map)
}

fn info_list(ctx: &mut Ctx, map: Word) -> Word {
    let pair = ctx.tuple(&[atoms::ERROR_INFO.word(), map]);
    ctx.cons(pair, Word::NIL)
}

/// A flat map of pairs whose keys are in order.
fn flat_map(ctx: &mut Ctx, pairs: &[(Atom, Word)]) -> Word {
    let keys: Vec<Word> = pairs.iter().map(|p| p.0.word()).collect();
    let keys = ctx.tuple(&keys);
    let p = ctx.alloc(pairs.len() + 2);
    // SAFETY: the fresh words of a flat map.
    unsafe {
        *p = Header::new(Subtag::FlatMap, pairs.len() + 1).0;
        *p.add(1) = keys.bits();
        for (i, (_, v)) in pairs.iter().enumerate() {
            *p.add(2 + i) = v.bits();
        }
        Word::boxed(p)
    }
}

/// The class that a raw trace was raised with (the `raise` instruction of old code); `Error` for what is no raw trace.
pub fn raw_trace_class(raw: Word) -> ExceptionClass {
    match raw.as_tuple() {
        Some([class, ..]) if *class == atoms::EXIT.word() => ExceptionClass::Exit,
        Some([class, ..]) if *class == atoms::THROW.word() => ExceptionClass::Throw,
        _ => ExceptionClass::Error,
    }
}

/// The value of `catch_end` after an exception (x1 class, x2 reason, x3 raw trace): the thrown value, or
/// `{'EXIT', ...}` built in the process heap.
///
/// # Safety
/// The contract of the module.
pub unsafe fn catch_value(regs: &mut Regs) -> Word {
    let (class, reason, raw) = (regs.x[1], regs.x[2], regs.x[3]);
    if class == atoms::THROW.word() {
        return reason;
    }
    let ctx = &mut regs.ctx;
    let value = if class == atoms::ERROR.word() {
        let trace = build_stacktrace(ctx, raw);
        ctx.tuple(&[reason, trace])
    } else {
        reason
    };
    ctx.tuple(&[atoms::EXIT_UPPER.word(), value])
}

/// A function on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Module.
    pub module: Atom,
    /// Function.
    pub function: Atom,
    /// Arity.
    pub arity: u32,
    /// File (a string that lives as long as the code) and line, where known.
    pub location: Option<(Word, u32)>,
}

impl Frame {
    /// The function that the byte at `at` belongs to.
    pub fn at(view: &mut View<'_>, at: usize) -> Option<Frame> {
        let image = view.find(at)?;
        let f = image.function_at(at)?;
        Some(Frame {
            module: image.module(),
            function: f.name,
            arity: f.arity,
            location: image.location_at(at),
        })
    }
    /// `{M, F, Args, Location ++ Extra}`; `args` is the arity unless given.
    pub fn term(&self, to: &mut impl Build, args: Option<Word>, extra: Word) -> Word {
        let place = self.location_term(to, extra);
        let args = args.unwrap_or(Word::fixnum(i64::from(self.arity)));
        to.tuple(&[self.module.word(), self.function.word(), args, place])
    }
    /// `[{file, File}, {line, Line} | Extra]`, or `Extra` where the place is not known.
    pub fn location_term(&self, to: &mut impl Build, extra: Word) -> Word {
        let Some((file, line)) = &self.location else {
            return extra;
        };
        let line = to.tuple(&[atoms::LINE.word(), Word::fixnum(i64::from(*line))]);
        let rest = to.cons(line, extra);
        let file = to.tuple(&[atoms::FILE.word(), *file]);
        to.cons(file, rest)
    }
}

/// The functions on the stack of a process that does not run, the current one first, at most `depth`
/// (`process_info(current_stacktrace)`; the first is `current_function` and `current_location`).
///
/// # Safety
/// The caller owns the body.
pub unsafe fn stack_frames(server: &CodeServer, body: &Body, depth: usize) -> Vec<Frame> {
    let mut out = Vec::new();
    if depth == 0 {
        return out;
    }
    let mut view = server.ranges.view();
    out.extend(Frame::at(&mut view, body.ip as usize));
    let traced = position(server);
    gather(body, traced, body.ip as usize, usize::MAX, |at| {
        if out.len() < depth {
            out.extend(Frame::at(&mut view, at.small_value() as usize));
        }
    });
    out
}

/// The functions that the running process will return to, at most `depth`.
///
/// # Safety
/// The caller owns the body.
pub(crate) unsafe fn caller_frames(server: &CodeServer, body: &Body, depth: usize) -> Vec<Frame> {
    let mut out = Vec::new();
    let mut view = server.ranges.view();
    gather(body, position(server), 0, usize::MAX, |at| {
        if out.len() < depth {
            out.extend(Frame::at(&mut view, at.small_value() as usize));
        }
    });
    out
}

/// Raw trace to the list that programs see.
pub fn build_stacktrace(ctx: &mut Ctx, raw: Word) -> Word {
    let Some([_, head, positions @ ..]) = raw.as_tuple() else {
        return Word::NIL;
    };
    if head.is_cons() {
        return *head;
    }
    // SAFETY: the runtime calls this on a worker, and no other reference to its head is held.
    let server: &CodeServer = unsafe { &*Arc::as_ptr(&WorkerCode::of(ctx).server) };
    let mut view = server.ranges.view();
    let mut list = Word::NIL;
    for at in positions.iter().rev() {
        if let Some(f) = Frame::at(&mut view, at.small_value() as usize) {
            let f = f.term(ctx, None, Word::NIL);
            list = ctx.cons(f, list);
        }
    }
    let first = match head.as_tuple() {
        Some([_, _, _, _]) => Some(*head),
        Some([at, args, extra]) => {
            let args = args.is_list().then_some(*args);
            Frame::at(&mut view, at.small_value() as usize).map(|f| f.term(ctx, args, *extra))
        }
        _ => None,
    };
    match first {
        Some(first) => ctx.cons(first, list),
        None => list,
    }
}

/// Ends the process whose code ran into a panic: a bug of the VM. Its heap may be in the middle of a change, so
/// nothing of it is read or kept.
pub fn panicked(ctx: &mut Ctx) {
    let reason = match ctx.tables().atoms.intern("internal_error") {
        Ok(a) => a,
        Err(_) => atoms::KILLED,
    };
    // SAFETY: the runtime calls this on a worker, and no other reference to its head is held.
    let processes = unsafe { WorkerCode::of(ctx) }.processes.clone();
    processes.uncaught(
        ctx,
        Uncaught {
            class: ExceptionClass::Error,
            reason: reason.word(),
            log: false,
        },
    );
}

/// `raise Trace Value` of old code: raises `value` again with the class that the raw trace `trace` was made for.
///
/// # Safety
/// The contract of the module.
pub unsafe fn reraise(regs: &mut Regs, ip: CodePos, value: Word, trace: Word) -> CodePos {
    let again = Raise {
        class: raw_trace_class(trace),
        reason: value,
        info: ErrorInfo::None,
        trace,
        own_frame: false,
        caller_args: Word::NONE,
    };
    raise(regs, ip, again, None, None)
}
