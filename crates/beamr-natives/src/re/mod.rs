//! `re`: regular expressions, through PCRE2.
//!
//! OTP's own `re.erl` does the rest in Erlang: `global` runs (`grun/3`), character lists (`urun/3`, `ucompile/2`), replacing and
//! splitting; natives here trap to it as OTP's do.
//!
//! A compiled pattern is `{re_pattern, Groups, Unicode, UseCrLf, Code}`. `Code` is a magic reference since OTP 28. Before, it
//! is a binary that may be stored and sent; ours holds options and text, and what was compiled from it lies in a cache.
//!
//! Matches run in place for a small number of steps, and beyond it again from the start on a dirty thread, under the
//! limits of the options (OTP's default: ten million steps).

mod capture;
mod latin1;
mod offsets;
mod options;
mod pattern;
mod pcre8;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

use beamr_abi::{
    Capability, Ctx, Escape, NativeClass, NativeEntry, NativeFn, ReleaseSpan, TrapTarget,
};
use beamr_term::bits::BitsView;
use beamr_term::{BinaryRef, Build, Subtag, Word, atoms};
use beamr_vm::process::vm_of;

use crate::iolist;
use crate::resources;
use crate::support::cost;
use capture::{Capture, Subject, aligned};
use options::Options;
use pattern::{CompileError, Limits, Outcome, Pattern, Spec};

/// Steps of a match in place: less than a millisecond.
const STEPS: u32 = 20_000;
/// The limit when none is given, as in OTP.
const DEFAULT_LIMIT: u32 = 10_000_000;
/// Subjects and patterns of more bytes than these go to a dirty thread at once.
const LONG_SUBJECT: usize = 4 << 20;
const LONG_PATTERN: usize = 64 << 10;
/// Patterns in the cache.
const CACHED: usize = 512;
/// Longer patterns are not kept there.
const CACHED_TEXT: usize = 16 << 10;

/// What a VM keeps for `re`.
#[derive(Default)]
struct Kept {
    cache: RwLock<HashMap<Spec, Arc<Pattern>>>,
    /// Steps in place, if set by the test switch `re_loop_limit`.
    steps: AtomicU32,
}

/// Sets the steps that a match may run in place (0 for the default); gives the number before.
pub fn set_loop_limit(ctx: &Ctx, steps: u32) -> u32 {
    let kept = vm_of(ctx).extensions.get_or_init(Kept::default);
    kept.steps.swap(steps, Ordering::Relaxed)
}

/// An atom that every VM can make: a short fixed text.
fn known(ctx: &mut Ctx, text: &str) -> Word {
    let tables = ctx.tables();
    tables.atoms.intern(text).map_or(Word::NIL, |a| a.word())
}

/// The bytes of a binary or iolist; `None` for other terms.
fn iodata(w: Word) -> Option<Vec<u8>> {
    if let Some(b) = aligned(w) {
        return Some(b.to_vec());
    }
    let mut out = Vec::new();
    let mut odd = false;
    let mut add = |piece| match piece {
        iolist::Piece::Byte(b) => out.push(b),
        iolist::Piece::Bits(_, v) => {
            odd |= !v.is_binary();
            out.extend_from_slice(&v.to_bytes());
        }
    };
    if w.is_bitstring() {
        add(iolist::Piece::Bits(w, BitsView::of(w)?));
    } else {
        iolist::walk(w, add).ok()?;
    }
    (!odd).then_some(out)
}

/// Compiles, or takes what was compiled before.
fn compiled(ctx: &Ctx, spec: Spec) -> Result<Arc<Pattern>, CompileError> {
    let kept = vm_of(ctx).extensions.get_or_init(Kept::default);
    let cached = spec.text.len() <= CACHED_TEXT;
    if cached {
        let cache = kept.cache.read().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = cache.get(&spec) {
            return Ok(found.clone());
        }
    }
    let made = Arc::new(Pattern::compile(spec)?);
    if cached {
        let mut cache = kept.cache.write().unwrap_or_else(|e| e.into_inner());
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(made.spec.clone(), made.clone());
    }
    Ok(made)
}

/// Where a native runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Worker,
    Dirty,
}

/// Goes on in a function of `re.erl`.
fn trap_to(ctx: &mut Ctx, function: &str, args: &[Word]) -> Escape {
    let tables = ctx.tables();
    let module = known(ctx, "re").as_atom();
    let function = known(ctx, function).as_atom();
    match module.zip(function) {
        Some((m, f)) => match tables.exports.id(m, f, args.len() as u32) {
            Ok(id) => ctx.trap(TrapTarget::Export(id), args),
            Err(_) => ctx.system_limit(),
        },
        None => ctx.system_limit(),
    }
}

fn options_or_fail(ctx: &mut Ctx, list: Word) -> Result<Options, Escape> {
    match options::parse(list, ctx.tables()) {
        Some(o) => Ok(o),
        None => Err(bad_option(ctx)),
    }
}

#[cold]
fn bad_option(ctx: &mut Ctx) -> Escape {
    let cause = known(ctx, "badopt");
    ctx.badarg_because(cause)
}

fn is_old(ctx: &Ctx) -> bool {
    ctx.tables().release.0 < 28
}

fn spec_of(ctx: &Ctx, text: Vec<u8>, o: &Options) -> Spec {
    let old = is_old(ctx);
    let mut text = text;
    if old && let Some(end) = memchr::memchr(0, &text) {
        // PCRE 8 reads a C string.
        text.truncate(end);
    }
    Spec {
        options: o.compile,
        newline: o.newline,
        bsr: o.bsr,
        old,
        text,
    }
}

/// `{error, {Text, Offset}}`, or `{error, {compile, {Text, Offset}}}`.
fn compile_error(ctx: &mut Ctx, e: CompileError, text: &[u8], tagged: bool) -> Word {
    let (message, offset) = match ctx.tables().release.0 {
        ..28 => pcre8::error(e, text),
        28 => (pattern::message(e.code), e.offset),
        _ => offsets::error(e, text),
    };
    let message = ctx.string(&message);
    let mut reason = ctx.tuple(&[message, Word::fixnum(offset as i64)]);
    if tagged {
        reason = ctx.tuple(&[atoms::COMPILE.word(), reason]);
    }
    ctx.tuple(&[atoms::ERROR.word(), reason])
}

/// What makes our binaries of patterns known.
const MARK: &[u8; 4] = b"BRE1";

fn encode(spec: &Spec) -> Vec<u8> {
    let mut b = MARK.to_vec();
    b.extend_from_slice(&spec.options.to_le_bytes());
    b.push(spec.newline as u8);
    b.push(spec.bsr as u8);
    b.extend_from_slice(&spec.text);
    b
}

/// All options that a pattern of ours can have; a forged binary gets no others.
const COMPILE_OPTIONS: u32 = {
    use pcre2_sys as p;
    p::PCRE2_ANCHORED
        | p::PCRE2_UTF
        | p::PCRE2_NO_START_OPTIMIZE
        | p::PCRE2_CASELESS
        | p::PCRE2_DOLLAR_ENDONLY
        | p::PCRE2_DOTALL
        | p::PCRE2_EXTENDED
        | p::PCRE2_FIRSTLINE
        | p::PCRE2_MULTILINE
        | p::PCRE2_NO_AUTO_CAPTURE
        | p::PCRE2_DUPNAMES
        | p::PCRE2_UNGREEDY
        | p::PCRE2_UCP
        | p::PCRE2_NEVER_UTF
};

fn decode(bytes: &[u8]) -> Option<Spec> {
    let rest = bytes.strip_prefix(MARK)?;
    let (options, rest) = rest.split_first_chunk::<4>()?;
    let options = u32::from_le_bytes(*options);
    let ([newline, bsr], text) = rest.split_first_chunk::<2>()?;
    (options & !COMPILE_OPTIONS == 0).then(|| Spec {
        options,
        newline: u32::from(*newline),
        bsr: u32::from(*bsr),
        old: true,
        text: text.to_vec(),
    })
}

/// `{re_pattern, Groups, Unicode, UseCrLf, Code}`.
fn pattern_term(ctx: &mut Ctx, p: &Arc<Pattern>, unicode: bool) -> Word {
    let code = if is_old(ctx) {
        let bytes = encode(&p.spec);
        ctx.binary(&bytes)
    } else {
        resources::new(ctx, p.clone())
    };
    let tag = known(ctx, "re_pattern");
    ctx.tuple(&[
        tag,
        Word::fixnum(i64::from(p.captures)),
        Word::fixnum(i64::from(unicode)),
        Word::fixnum(i64::from(p.crlf)),
        code,
    ])
}

/// A compiled pattern as programs hold it.
struct Held {
    pattern: Arc<Pattern>,
    unicode: bool,
}

/// The pattern behind a tuple; `None` when it is none.
fn held(ctx: &mut Ctx, w: Word) -> Option<Held> {
    let [tag, captures, unicode, crlf, code] = w.as_tuple()? else {
        return None;
    };
    let (tag, code) = (*tag, *code);
    let (captures, unicode, _) = (captures.as_small()?, unicode.as_small()?, crlf.as_small()?);
    if tag != known(ctx, "re_pattern") {
        return None;
    }
    let pattern = if is_old(ctx) {
        let bytes = BitsView::of(code).filter(|v| code.is_bitstring() && v.is_binary())?;
        compiled(ctx, decode(&bytes.to_bytes())?).ok()?
    } else {
        resources::get::<Arc<Pattern>>(code)?.clone()
    };
    (captures == i64::from(pattern.captures)).then_some(Held {
        pattern,
        unicode: unicode != 0,
    })
}

/// `version()`: of the library that the release has.
fn version_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let text: &[u8] = match ctx.tables().release.0 {
        ..26 => b"8.44 2020-02-12",
        26..28 => b"8.45 2021-06-15",
        28 => b"10.45 2025-02-05",
        _ => b"10.47 2025-10-21",
    };
    Ok(ctx.binary(text))
}

fn compile(ctx: &mut Ctx, args: &[Word], on: On) -> Result<Word, Escape> {
    let list = args.get(1).copied().unwrap_or(Word::NIL);
    let o = options_or_fail(ctx, list)?;
    if o.only_exec {
        return Err(bad_option(ctx));
    }
    if o.unicode && !args[0].is_bitstring() {
        return Err(trap_to(ctx, "ucompile", &[args[0], list]));
    }
    let Some(text) = iodata(args[0]) else {
        return Err(ctx.badarg());
    };
    if text.len() > LONG_PATTERN && on == On::Worker {
        let again = if args.len() == 1 {
            &COMPILE_1
        } else {
            &COMPILE_2
        };
        return Err(ctx.trap(TrapTarget::Native(again), args));
    }
    ctx.bump(cost(text.len() * 16) + 1);
    let original = o.export.then(|| ctx.binary(&text));
    let spec = spec_of(ctx, text.clone(), &o);
    let p = match compiled(ctx, spec) {
        Ok(p) => p,
        Err(e) => return Ok(compile_error(ctx, e, &text, false)),
    };
    let term = match original {
        Some(text) => {
            let tag = known(ctx, "re_exported_pattern");
            let head = ctx.binary(MARK);
            let code = encode(&p.spec);
            let code = ctx.binary(&code);
            ctx.tuple(&[tag, head, text, list, code])
        }
        None => pattern_term(ctx, &p, o.unicode),
    };
    Ok(ctx.tuple(&[atoms::OK.word(), term]))
}

/// `compile(Regexp)`.
fn compile_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    compile(ctx, args, On::Worker)
}
/// `compile(Regexp, Options)`.
fn compile_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    compile(ctx, args, On::Worker)
}
fn compile_dirty(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    compile(ctx, args, On::Dirty)
}

static COMPILE_1: NativeEntry = again("compile", 1, compile_dirty);
static COMPILE_2: NativeEntry = again("compile", 2, compile_dirty);

/// `import(Exported)`: compiles what an exported pattern was made from, whatever VM exported it.
fn import_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let tag = known(ctx, "re_exported_pattern");
    let Some([t, head, text, list, code]) = args[0].as_tuple() else {
        return Err(ctx.badarg());
    };
    let (t, text, list) = (*t, *text, *list);
    let parts = [*head, text, *code];
    if t != tag || !parts.iter().all(|w| aligned(*w).is_some()) {
        return Err(ctx.badarg());
    }
    let o = options::parse(list, ctx.tables()).filter(|o| !o.only_exec);
    let Some((o, text)) = o.zip(aligned(text)) else {
        return Err(ctx.badarg());
    };
    ctx.bump(cost(text.len() * 16) + 1);
    let spec = spec_of(ctx, text.to_vec(), &o);
    match compiled(ctx, spec) {
        Ok(p) => Ok(pattern_term(ctx, &p, o.unicode)),
        Err(_) => Err(ctx.badarg()),
    }
}

/// The subject that this thread found to be UTF-8 last, kept alive so that its address stays its own.
struct Checked {
    _block: BinaryRef,
    at: *const u8,
    len: usize,
}

thread_local! {
    static CHECKED: RefCell<Option<Checked>> = const { RefCell::new(None) };
}

/// The counted block under a binary.
fn block_of(w: Word) -> Option<BinaryRef> {
    let whole = match w.subtag()? {
        Subtag::SubBits => w.term_field(1),
        _ => w,
    };
    // SAFETY: a `RefcBits` holds a count of the block in its second word.
    (whole.subtag()? == Subtag::RefcBits)
        .then(|| unsafe { BinaryRef::share(whole.field(2) as usize as *mut _) })
}

/// Whether a subject is UTF-8. Pieces of a global run ask again and again for the same one.
fn is_utf8(s: &Subject, repeated: bool) -> bool {
    let known = CHECKED.with_borrow(|c| {
        c.as_ref()
            .is_some_and(|c| c.at == s.bytes.as_ptr() && c.len == s.bytes.len())
    });
    if known && s.in_term {
        return true;
    }
    if std::str::from_utf8(s.bytes).is_err() {
        return false;
    }
    if repeated
        && s.in_term
        && let Some(block) = block_of(s.term)
    {
        CHECKED.set(Some(Checked {
            _block: block,
            at: s.bytes.as_ptr(),
            len: s.bytes.len(),
        }));
    }
    true
}

/// What kind of run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    /// `run/2` or `run/3`.
    Once,
    /// `internal_run/4`, the part of a global run.
    Part,
}

fn run(ctx: &mut Ctx, args: &[Word], kind: Run, on: On) -> Result<Word, Escape> {
    let list = match kind {
        Run::Once if args.len() == 2 => Word::NIL,
        _ => args[2],
    };
    if kind == Run::Part && !matches!(args[3].as_atom(), Some(atoms::TRUE | atoms::FALSE)) {
        return Err(ctx.badarg());
    }
    let o = options_or_fail(ctx, list)?;
    let (subject, re) = (args[0], args[1]);
    let list_capture = o.capture.is_some_and(|c| c.1 == atoms::LIST.word());
    let is_pattern = re.as_tuple().is_some_and(|t| t.len() == 5);
    let pattern = if is_pattern {
        if o.only_compile {
            return Err(ctx.badarg());
        }
        let Some(h) = held(ctx, re) else {
            return Err(ctx.badarg());
        };
        if h.unicode && (!subject.is_bitstring() || (list_capture && !o.global)) {
            return Err(trap_to(ctx, "urun", &[subject, re, list]));
        }
        if o.global {
            let state = ctx.tuple(&[list, Word::FALSE]);
            return Err(trap_to(ctx, "grun", &[subject, re, state]));
        }
        with_line_ends(ctx, h.pattern, &o)?
    } else {
        if !re.is_bitstring() && !re.is_list() {
            return Err(ctx.badarg());
        }
        if o.unicode
            && (!re.is_bitstring() || !subject.is_bitstring() || (list_capture && !o.global))
        {
            return Err(trap_to(ctx, "urun", &[subject, re, list]));
        }
        let Some(text) = iodata(re) else {
            return Err(ctx.badarg());
        };
        if text.len() > LONG_PATTERN && on == On::Worker {
            return Err(elsewhere(ctx, args, kind));
        }
        let spec = spec_of(ctx, text.clone(), &o);
        let p = match compiled(ctx, spec) {
            Ok(p) => p,
            Err(e) if o.report_errors => return Ok(compile_error(ctx, e, &text, true)),
            Err(_) => return Err(ctx.badarg()),
        };
        if o.global {
            let precompiled = pattern_term(ctx, &p, o.unicode);
            let clean = Word::boolean(o.only_compile);
            let state = ctx.tuple(&[list, clean, re]);
            return Err(trap_to(ctx, "grun", &[subject, precompiled, state]));
        }
        p
    };
    let capture = match o.capture {
        Some((values, form)) => match Capture::read(values, form, &pattern, ctx.tables()) {
            Some(c) => c,
            None => return Err(ctx.badarg()),
        },
        None => Capture::ALL,
    };
    let copied;
    let s = match aligned(subject) {
        Some(bytes) => Subject {
            term: subject,
            bytes,
            in_term: true,
        },
        None => match iodata(subject) {
            Some(bytes) => {
                copied = bytes;
                Subject {
                    term: subject,
                    bytes: &copied,
                    in_term: false,
                }
            }
            None => return Err(ctx.badarg()),
        },
    };
    if kind == Run::Once && s.bytes.len() > LONG_SUBJECT && on == On::Worker {
        return Err(elsewhere(ctx, args, kind));
    }
    let outcome = matched(ctx, &pattern, &s, &o, kind, on);
    match outcome {
        Some(Outcome::Match(groups)) => {
            let last = groups.first().map_or(0, |g| g.1);
            ctx.bump(cost(last.saturating_sub(o.offset) * 4) + 2);
            Ok(capture::result(ctx, &capture, &s, &groups))
        }
        Some(Outcome::Bad) => Err(ctx.badarg()),
        None => Err(elsewhere(ctx, args, kind)),
        Some(failed) => {
            ctx.bump(cost(s.bytes.len().saturating_sub(o.offset) * 4) + 2);
            if kind == Run::Part {
                CHECKED.set(None);
            }
            let why = match failed {
                Outcome::StepLimit => "match_limit",
                Outcome::DepthLimit => "match_limit_recursion",
                _ => return Ok(known(ctx, "nomatch")),
            };
            if !o.report_errors {
                return Ok(known(ctx, "nomatch"));
            }
            let why = known(ctx, why);
            Ok(ctx.tuple(&[atoms::ERROR.word(), why]))
        }
    }
}

/// The same native on a dirty thread.
fn elsewhere(ctx: &mut Ctx, args: &[Word], kind: Run) -> Escape {
    let entry = match kind {
        Run::Once if args.len() == 2 => &RUN_2,
        Run::Once => &RUN_3,
        Run::Part => &RUN_4,
    };
    ctx.trap(TrapTarget::Native(entry), args)
}

/// A compiled pattern under the line ends that the run asks for. PCRE 8 took them at run time; since 28 they must be those
/// of the compilation.
fn with_line_ends(ctx: &mut Ctx, p: Arc<Pattern>, o: &Options) -> Result<Arc<Pattern>, Escape> {
    let same = |asked: u32, has: u32| asked == 0 || asked == has;
    if same(o.newline, p.newline) && same(o.bsr, p.bsr) {
        return Ok(p);
    }
    if !is_old(ctx) {
        return Err(ctx.badarg());
    }
    let mut spec = p.spec.clone();
    if o.newline != 0 {
        spec.newline = o.newline;
    }
    if o.bsr != 0 {
        spec.bsr = o.bsr;
    }
    compiled(ctx, spec).map_err(|_| ctx.badarg())
}

/// Runs the match; `None` when it takes too many steps for here.
fn matched(ctx: &Ctx, p: &Pattern, s: &Subject, o: &Options, kind: Run, on: On) -> Option<Outcome> {
    if o.offset > s.bytes.len() {
        // PCRE 8 calls this a bad offset, which OTP took for no match... of an unexpected kind.
        return Some(Outcome::Bad);
    }
    if p.utf {
        let boundary = s.bytes.get(o.offset).is_none_or(|b| b & 0xC0 != 0x80);
        if !boundary || !is_utf8(s, kind == Run::Part) {
            return Some(Outcome::Bad);
        }
    }
    let all = o.match_limit.unwrap_or(DEFAULT_LIMIT);
    let here = match on {
        On::Dirty => all,
        On::Worker => {
            let set = vm_of(ctx)
                .extensions
                .get::<Kept>()
                .map_or(0, |k| k.steps.load(Ordering::Relaxed));
            all.min(if set == 0 { STEPS } else { set })
        }
    };
    let limits = Limits {
        steps: here,
        depth: o.depth_limit,
    };
    // SAFETY: checked above when the pattern is UTF-8.
    match unsafe { p.run(s.bytes, o.offset, o.exec, limits) } {
        Outcome::StepLimit if here < all => None,
        other => Some(other),
    }
}

/// `run(Subject, RE)`.
fn run_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, Run::Once, On::Worker)
}
/// `run(Subject, RE, Options)`.
fn run_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, Run::Once, On::Worker)
}
/// `internal_run(Subject, RE, Options, FirstCall)`.
fn internal_run_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, Run::Part, On::Worker)
}
fn run_dirty(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, Run::Once, On::Dirty)
}
fn internal_run_dirty(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, Run::Part, On::Dirty)
}

const fn again(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("re", function, arity, func).class(NativeClass::DirtyCpu)
}

static RUN_2: NativeEntry = again("run", 2, run_dirty);
static RUN_3: NativeEntry = again("run", 3, run_dirty);
static RUN_4: NativeEntry = again("internal_run", 4, internal_run_dirty);

/// `inspect(MP, namelist)`: `{namelist, [Binary]}`.
fn inspect_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let item = known(ctx, "namelist");
    let Some(h) = held(ctx, args[0]).filter(|_| args[1] == item) else {
        return Err(ctx.badarg());
    };
    let mut names: Vec<&[u8]> = h.pattern.names.iter().map(|n| n.1.as_slice()).collect();
    if h.pattern.dupnames {
        names.dedup();
    }
    let mut list = Word::NIL;
    for n in names.iter().rev() {
        let b = ctx.binary(n);
        list = ctx.cons(b, list);
    }
    Ok(ctx.tuple(&[item, list]))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("re", function, arity, func)
        .class(NativeClass::Traps)
        .needs(Capability::Pure)
}

/// The natives of `re`.
pub const TABLE: &[NativeEntry] = &[
    row("version", 0, version_0),
    row("compile", 1, compile_1),
    row("compile", 2, compile_2),
    row("run", 2, run_2),
    row("run", 3, run_3),
    row("internal_run", 4, internal_run_4),
    row("inspect", 2, inspect_2),
    row("import", 1, import_1).releases(ReleaseSpan::since(28)),
];
