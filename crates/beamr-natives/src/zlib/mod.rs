//! `zlib`: the natives behind OTP's module of that name, over streams of the C library ([`stream`]).
//!
//! `zlib.erl` enqueues input and then calls `deflate_nif` or `inflate_nif` again and again, each time for a bounded piece of
//! input and output; so no native here runs long. A stream belongs to one process, which alone may use it.

mod stream;

use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::bits::BitsView;
use beamr_term::copy::{CopyMode, copy, size_in_words};
use beamr_term::{Build, Fragment, Word, atoms, is_literal};
use beamr_vm::process::Carried;
use libz_sys as z;

use crate::iolist;
use crate::resources;
use crate::support::cost;
use stream::{Codec, Step, Stream};

/// Binaries that one `enqueue_nif` takes; the rest is for the next call.
const QUEUE_STEP: usize = 256;

/// What comes after the end of a compressed stream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterEnd {
    /// A `data_error`.
    Error,
    /// A further stream.
    Reset,
    /// Is thrown away.
    Cut,
}

/// Input that waits.
enum Piece {
    Bytes(Vec<u8>),
    /// A binary that others hold too.
    Shared(Carried),
}

impl Piece {
    fn of(w: Word, view: &BitsView) -> Piece {
        match view.as_bytes() {
            Some(b) if b.len() > 64 && !is_literal(w.ptr()) => Piece::Shared(Carried::copy(w)),
            _ => Piece::Bytes(view.to_bytes().into_owned()),
        }
    }
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Bytes(v) => v,
            Piece::Shared(c) => BitsView::of(c.term)
                .and_then(|v| v.as_bytes())
                .unwrap_or(&[]),
        }
    }
}

/// Input that waits, in order.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    /// Bytes of the first piece that are done.
    done: usize,
    len: usize,
}

impl Queue {
    fn push(&mut self, piece: Piece) {
        let n = piece.bytes().len();
        if n > 0 {
            self.len += n;
            self.pieces.push_back(piece);
        }
    }
    fn take(&mut self, mut n: usize) {
        self.len -= n;
        while let Some(first) = self.pieces.front() {
            let left = first.bytes().len() - self.done;
            if n < left {
                self.done += n;
                return;
            }
            n -= left;
            self.done = 0;
            self.pieces.pop_front();
        }
    }
}

/// A stream as programs see it.
struct Inner {
    stream: Stream,
    /// The pid that may use it.
    controller: u64,
    after_end: AfterEnd,
    end_seen: bool,
    raw: bool,
    /// Checksums of what goes in and comes out, for `crc32_nif`.
    input_crc: u32,
    output_crc: u32,
    /// Only kept for `getBufSize_nif`.
    chunk: i64,
    queue: Queue,
    stash: Option<Carried>,
}

struct Zlib(Mutex<Inner>);

impl Inner {
    fn forget_input(&mut self) {
        self.queue = Queue::default();
        self.stash = None;
    }
    fn set_up(&mut self, window_bits: c_int) {
        self.end_seen = false;
        self.raw = window_bits < 0;
        self.input_crc = 0;
        self.output_crc = 0;
    }
}

#[cold]
fn fail(ctx: &mut Ctx, reason: &str) -> Escape {
    match ctx.atom(reason) {
        Ok(w) => ctx.error(w),
        Err(e) => e,
    }
}

/// What the library's return code is for programs.
fn returned(ctx: &mut Ctx, code: c_int) -> Result<Word, Escape> {
    match code {
        z::Z_OK => Ok(atoms::OK.word()),
        z::Z_STREAM_END => ctx.atom("stream_end"),
        z::Z_STREAM_ERROR => Err(fail(ctx, "stream_error")),
        z::Z_DATA_ERROR => Err(fail(ctx, "data_error")),
        z::Z_MEM_ERROR => ctx.atom("mem_error"),
        z::Z_BUF_ERROR => ctx.atom("buf_error"),
        z::Z_VERSION_ERROR => ctx.atom("version_error"),
        _ => ctx.atom("unknown_error"),
    }
}

/// The stream behind a reference; `badarg` when it is none.
fn handle<'a>(ctx: &mut Ctx, w: Word) -> Result<MutexGuard<'a, Inner>, Escape> {
    match resources::get::<Zlib>(w) {
        Some(z) => Ok(z.0.lock().unwrap_or_else(|e| e.into_inner())),
        None => Err(ctx.badarg()),
    }
}

/// Refuses processes that the stream does not belong to.
fn controlled<'a>(
    ctx: &mut Ctx,
    inner: MutexGuard<'a, Inner>,
) -> Result<MutexGuard<'a, Inner>, Escape> {
    if inner.controller == ctx.self_pid().bits() {
        Ok(inner)
    } else {
        Err(fail(ctx, "not_on_controlling_process"))
    }
}

/// The stream, which must be set up for `codec`.
fn open_for<'a>(
    ctx: &mut Ctx,
    inner: MutexGuard<'a, Inner>,
    codec: Codec,
) -> Result<MutexGuard<'a, Inner>, Escape> {
    let inner = controlled(ctx, inner)?;
    if inner.stream.codec() == codec {
        Ok(inner)
    } else if codec == Codec::None {
        Err(fail(ctx, "already_initialized"))
    } else {
        Err(fail(ctx, "not_initialized"))
    }
}

/// An integer of 32 bits.
fn int(ctx: &mut Ctx, w: Word) -> Result<c_int, Escape> {
    w.as_small()
        .and_then(|n| c_int::try_from(n).ok())
        .ok_or_else(|| ctx.badarg())
}

/// `open_nif()`.
fn open_nif_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let inner = Inner {
        stream: Stream::new(),
        controller: ctx.self_pid().bits(),
        after_end: AfterEnd::Cut,
        end_seen: false,
        raw: false,
        input_crc: 0,
        output_crc: 0,
        chunk: 4000,
        queue: Queue::default(),
        stash: None,
    };
    Ok(resources::new(ctx, Zlib(Mutex::new(inner))))
}

/// `close_nif(Z)`.
fn close_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = controlled(ctx, inner)?;
    if inner.stream.codec() == Codec::Closed {
        return Err(fail(ctx, "not_initialized"));
    }
    inner.stream.end(Codec::Closed);
    inner.forget_input();
    Ok(atoms::OK.word())
}

/// `set_controller_nif(Z, Pid)`.
fn set_controller_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    if !args[1].is_local_pid() {
        return Err(ctx.badarg());
    }
    let mut inner = controlled(ctx, inner)?;
    inner.controller = args[1].bits();
    Ok(atoms::OK.word())
}

/// `deflateInit_nif(Z, Level, Method, WindowBits, MemLevel, Strategy)`.
#[allow(non_snake_case)]
fn deflateInit_nif_6(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let (level, method) = (int(ctx, args[1])?, int(ctx, args[2])?);
    let (window_bits, mem_level) = (int(ctx, args[3])?, int(ctx, args[4])?);
    let strategy = int(ctx, args[5])?;
    let mut inner = open_for(ctx, inner, Codec::None)?;
    let code = inner
        .stream
        .deflate_init(level, method, window_bits, mem_level, strategy);
    if code == z::Z_OK {
        inner.set_up(window_bits);
    }
    returned(ctx, code)
}

/// `inflateInit_nif(Z, WindowBits, EoSBehavior)`.
#[allow(non_snake_case)]
fn inflateInit_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let (window_bits, after_end) = (int(ctx, args[1])?, int(ctx, args[2])?);
    let mut inner = open_for(ctx, inner, Codec::None)?;
    let code = inner.stream.inflate_init(window_bits);
    if code == z::Z_OK {
        inner.set_up(window_bits);
        inner.after_end = match after_end {
            0 => AfterEnd::Error,
            1 => AfterEnd::Reset,
            _ => AfterEnd::Cut,
        };
    }
    returned(ctx, code)
}

/// `deflateSetDictionary_nif(Z, Dictionary)`: the dictionary's checksum.
#[allow(non_snake_case)]
fn deflateSetDictionary_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let bytes = iolist::bytes(ctx, args[1])?;
    let mut inner = open_for(ctx, inner, Codec::Deflate)?;
    let code = inner.stream.set_dictionary(&bytes);
    if code != z::Z_OK {
        return returned(ctx, code);
    }
    // A raw stream keeps no checksum. OTP's starts from 0 there and shows 32 bits as signed.
    let sum = if inner.raw {
        crate::erlang::binaries::adler(0, &bytes)
    } else {
        inner.stream.adler()
    };
    Ok(Word::fixnum(i64::from(sum as i32)))
}

/// `inflateSetDictionary_nif(Z, Dictionary)`.
#[allow(non_snake_case)]
fn inflateSetDictionary_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let bytes = iolist::bytes(ctx, args[1])?;
    let mut inner = open_for(ctx, inner, Codec::Inflate)?;
    let code = inner.stream.set_dictionary(&bytes);
    returned(ctx, code)
}

/// `inflateGetDictionary_nif(Z)`.
#[allow(non_snake_case)]
fn inflateGetDictionary_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = open_for(ctx, inner, Codec::Inflate)?;
    match inner.stream.inflate_dictionary() {
        Ok(bytes) => Ok(ctx.binary(&bytes)),
        Err(code) => returned(ctx, code),
    }
}

fn reset(ctx: &mut Ctx, z: Word, codec: Codec) -> Result<Word, Escape> {
    let inner = handle(ctx, z)?;
    let mut inner = open_for(ctx, inner, codec)?;
    let code = inner.stream.reset();
    inner.input_crc = 0;
    inner.output_crc = 0;
    inner.end_seen = false;
    inner.forget_input();
    returned(ctx, code)
}

/// `deflateReset_nif(Z)`.
#[allow(non_snake_case)]
fn deflateReset_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    reset(ctx, args[0], Codec::Deflate)
}

/// `inflateReset_nif(Z)`.
#[allow(non_snake_case)]
fn inflateReset_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    reset(ctx, args[0], Codec::Inflate)
}

/// `deflateEnd_nif(Z)`: `data_error` when there was input left or the end was not written.
#[allow(non_snake_case)]
fn deflateEnd_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = open_for(ctx, inner, Codec::Deflate)?;
    let mut code = inner.stream.end(Codec::None);
    if code == z::Z_OK && inner.queue.len > 0 {
        code = z::Z_DATA_ERROR;
    }
    inner.forget_input();
    returned(ctx, code)
}

/// `inflateEnd_nif(Z)`: `data_error` when there was input left or the end was not reached.
#[allow(non_snake_case)]
fn inflateEnd_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = open_for(ctx, inner, Codec::Inflate)?;
    let mut code = inner.stream.end(Codec::None);
    if code == z::Z_OK && (!inner.end_seen || inner.queue.len > 0) {
        code = z::Z_DATA_ERROR;
    }
    inner.forget_input();
    returned(ctx, code)
}

/// `deflateParams_nif(Z, Level, Strategy)`.
#[allow(non_snake_case)]
fn deflateParams_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let (level, strategy) = (int(ctx, args[1])?, int(ctx, args[2])?);
    let mut inner = open_for(ctx, inner, Codec::Deflate)?;
    let code = inner.stream.deflate_params(level, strategy);
    returned(ctx, code)
}

/// One bounded piece of work. Gives the return code, and what was written.
fn flush_queue(
    ctx: &mut Ctx,
    inner: &mut Inner,
    limit: usize,
    out: &mut [u8],
    flush: c_int,
) -> (Step, usize) {
    let mut all = Step {
        consumed: 0,
        produced: 0,
        code: z::Z_OK,
    };
    let deflates = inner.stream.codec() == Codec::Deflate;
    let mut skip = inner.queue.done;
    for piece in &inner.queue.pieces {
        if all.code != z::Z_OK || all.consumed >= limit {
            break;
        }
        let bytes = &piece.bytes()[skip..];
        skip = 0;
        let block = &bytes[..bytes.len().min(limit)];
        // Flushes only at the end of the input.
        let step = inner
            .stream
            .run(block, &mut out[all.produced..], z::Z_NO_FLUSH);
        if deflates && inner.raw {
            inner.input_crc = crc(inner.input_crc, &block[..step.consumed]);
        }
        all.consumed += step.consumed;
        all.produced += step.produced;
        all.code = step.code;
        if step.consumed < block.len() {
            break;
        }
    }
    inner.queue.take(all.consumed);
    let left = inner.queue.len;
    if all.code == z::Z_OK && left == 0 && all.produced < out.len() {
        // Also without a flush: output may have been held back for lack of room before.
        let step = inner.stream.run(&[], &mut out[all.produced..], flush);
        all.produced += step.produced;
        all.code = step.code;
    }
    ctx.bump(cost((all.consumed + all.produced) * 4) + 1);
    (all, left)
}

fn crc(seed: u32, bytes: &[u8]) -> u32 {
    let mut h = crc32fast::Hasher::new_with_initial(seed);
    h.update(bytes);
    h.finalize()
}

fn run_codec(
    ctx: &mut Ctx,
    inner: &mut Inner,
    limit: c_int,
    room: c_int,
    flush: c_int,
) -> Result<Word, Escape> {
    let (Ok(limit), Ok(room)) = (usize::try_from(limit), usize::try_from(room)) else {
        return Err(ctx.badarg());
    };
    // `zlib.erl` asks for some kilobytes; whatever else is asked for gets no more than a piece at a time.
    let mut out = vec![0; room.min(1 << 20)];
    let (step, left) = flush_queue(ctx, inner, limit.min(1 << 20), &mut out, flush);
    if step.code < 0 && step.code != z::Z_BUF_ERROR {
        return returned(ctx, step.code);
    }
    if step.code == z::Z_STREAM_END {
        inner.end_seen = true;
    }
    let full = step.produced == out.len();
    out.truncate(step.produced);
    if inner.raw && inner.stream.codec() == Codec::Inflate {
        inner.output_crc = crc(inner.output_crc, &out);
    }
    if step.consumed == 0 && step.produced == 0 && left != 0 {
        return returned(ctx, z::Z_DATA_ERROR);
    }
    let output = if out.is_empty() {
        Word::NIL
    } else {
        let b = ctx.binary(&out);
        ctx.cons(b, Word::NIL)
    };
    if left == 0 && !full {
        let tag = ctx.atom("finished")?;
        return Ok(ctx.tuple(&[tag, output]));
    }
    if step.code != z::Z_NEED_DICT {
        let tag = ctx.atom("continue")?;
        return Ok(ctx.tuple(&[tag, output]));
    }
    let tag = ctx.atom("need_dictionary")?;
    let sum = Word::fixnum(i64::from(inner.stream.adler() as i32));
    Ok(ctx.tuple(&[tag, sum, output]))
}

/// `deflate_nif(Z, InputChunkSize, OutputChunkSize, Flush)`.
fn deflate_nif_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let (limit, room) = (int(ctx, args[1])?, int(ctx, args[2])?);
    let flush = int(ctx, args[3])?;
    let mut inner = open_for(ctx, inner, Codec::Deflate)?;
    run_codec(ctx, &mut inner, limit, room, flush)
}

/// `inflate_nif(Z, InputChunkSize, OutputChunkSize, Flush)`.
fn inflate_nif_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let (limit, room) = (int(ctx, args[1])?, int(ctx, args[2])?);
    let flush = int(ctx, args[3])?;
    let mut inner = open_for(ctx, inner, Codec::Inflate)?;
    if inner.end_seen && inner.queue.len > 0 {
        match inner.after_end {
            AfterEnd::Error => return returned(ctx, z::Z_DATA_ERROR),
            AfterEnd::Reset => {
                let code = inner.stream.reset();
                if code != z::Z_OK {
                    return returned(ctx, code);
                }
                inner.end_seen = false;
            }
            AfterEnd::Cut => inner.forget_input(),
        }
    }
    run_codec(ctx, &mut inner, limit, room, flush)
}

/// `enqueue_nif(Z, IoVec)`: `ok`, or `{continue, Rest}`.
fn enqueue_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = controlled(ctx, inner)?;
    if !matches!(inner.stream.codec(), Codec::Deflate | Codec::Inflate) {
        return Err(fail(ctx, "not_initialized"));
    }
    let mut at = args[1];
    let mut pieces = Vec::new();
    while pieces.len() < QUEUE_STEP
        && let Some((h, t)) = at.as_cons()
    {
        match BitsView::of(h).filter(|v| h.is_bitstring() && v.is_binary()) {
            Some(v) => pieces.push(Piece::of(h, &v)),
            None => return Err(ctx.badarg()),
        }
        at = t;
    }
    if !at.is_list() {
        return Err(ctx.badarg());
    }
    ctx.bump(cost(pieces.len() * 16));
    for p in pieces {
        inner.queue.push(p);
    }
    if at.is_nil() {
        return Ok(atoms::OK.word());
    }
    let tag = ctx.atom("continue")?;
    Ok(ctx.tuple(&[tag, at]))
}

/// `getStash_nif(Z)`: `{ok, Term}`, or `empty`.
#[allow(non_snake_case)]
fn getStash_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let inner = controlled(ctx, inner)?;
    match &inner.stash {
        Some(term) => {
            let term = term.copy_into(ctx);
            Ok(ctx.tuple(&[atoms::OK.word(), term]))
        }
        None => ctx.atom("empty"),
    }
}

/// `clearStash_nif(Z)`.
#[allow(non_snake_case)]
fn clearStash_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = controlled(ctx, inner)?;
    match inner.stash.take() {
        Some(_) => Ok(atoms::OK.word()),
        None => Err(ctx.error(atoms::ERROR)),
    }
}

/// `setStash_nif(Z, Term)`.
#[allow(non_snake_case)]
fn setStash_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = controlled(ctx, inner)?;
    if inner.stash.is_some() {
        return Err(ctx.error(atoms::ERROR));
    }
    // Literals are copied too: the stream may outlive their module.
    let words = size_in_words(args[1], CopyMode::All, usize::MAX).unwrap_or(0);
    ctx.bump(cost(words));
    let mut fragment = Box::new(Fragment::with_capacity(words));
    inner.stash = Some(Carried {
        term: copy(args[1], &mut *fragment, CopyMode::All),
        fragment: Some(fragment),
    });
    Ok(atoms::OK.word())
}

/// `crc32_nif(Z)`: the checksum of the plain text of a raw stream so far.
fn crc32_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let inner = controlled(ctx, inner)?;
    match inner.stream.codec() {
        Codec::Deflate => Ok(Word::fixnum(i64::from(inner.input_crc))),
        Codec::Inflate => Ok(Word::fixnum(i64::from(inner.output_crc))),
        Codec::None | Codec::Closed => Err(fail(ctx, "not_initialized")),
    }
}

/// `getBufSize_nif(Z)`.
#[allow(non_snake_case)]
fn getBufSize_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let inner = controlled(ctx, inner)?;
    Ok(Word::fixnum(inner.chunk))
}

/// `setBufSize_nif(Z, Size)`.
#[allow(non_snake_case)]
fn setBufSize_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let inner = handle(ctx, args[0])?;
    let mut inner = controlled(ctx, inner)?;
    inner.chunk = i64::from(int(ctx, args[1])?);
    Ok(atoms::OK.word())
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("zlib", function, arity, func).needs(Capability::ProcessLocal)
}

/// The natives of `zlib`.
pub const TABLE: &[NativeEntry] = &[
    row("open_nif", 0, open_nif_0),
    row("close_nif", 1, close_nif_1),
    row("set_controller_nif", 2, set_controller_nif_2),
    row("deflateInit_nif", 6, deflateInit_nif_6),
    row("deflateSetDictionary_nif", 2, deflateSetDictionary_nif_2),
    row("deflateReset_nif", 1, deflateReset_nif_1),
    row("deflateEnd_nif", 1, deflateEnd_nif_1),
    row("deflateParams_nif", 3, deflateParams_nif_3),
    row("deflate_nif", 4, deflate_nif_4),
    row("inflateInit_nif", 3, inflateInit_nif_3),
    row("inflateSetDictionary_nif", 2, inflateSetDictionary_nif_2),
    row("inflateGetDictionary_nif", 1, inflateGetDictionary_nif_1),
    row("inflateReset_nif", 1, inflateReset_nif_1),
    row("inflateEnd_nif", 1, inflateEnd_nif_1),
    row("inflate_nif", 4, inflate_nif_4),
    row("enqueue_nif", 2, enqueue_nif_2),
    row("getStash_nif", 1, getStash_nif_1),
    row("clearStash_nif", 1, clearStash_nif_1),
    row("setStash_nif", 2, setStash_nif_2),
    row("crc32_nif", 1, crc32_nif_1).releases(ReleaseSpan::until(26)),
    row("getBufSize_nif", 1, getBufSize_nif_1).releases(ReleaseSpan::until(26)),
    row("setBufSize_nif", 2, setBufSize_nif_2).releases(ReleaseSpan::until(26)),
];
