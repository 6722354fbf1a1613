//! Compiled patterns: the place that calls the C library.
//!
//! PCRE2 serves every release. For those before 28, which had PCRE 8, it is told to behave as that one did where it can:
//! Latin-1 tables, lookbehinds of fixed length, `\K` in assertions; [`super::pcre8`] translates the errors.
//!
//! A match runs under a budget of steps. What exceeds a small one is run again on a dirty thread under the real limits.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use pcre2_sys as p;

use super::latin1;

/// What a pattern is compiled from.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    /// PCRE2's options.
    pub options: u32,
    /// The newline convention, 0 for the default.
    pub newline: u32,
    /// What `\R` matches, 0 for the default.
    pub bsr: u32,
    /// For OTP before 28.
    pub old: bool,
    /// Its text.
    pub text: Vec<u8>,
}

/// Why a pattern does not compile.
#[derive(Clone, Copy, Debug)]
pub struct CompileError {
    /// PCRE2's number.
    pub code: c_int,
    /// A byte offset into the pattern.
    pub offset: usize,
}

/// A compiled pattern.
pub struct Pattern {
    code: NonNull<p::pcre2_code_8>,
    /// What it was compiled from.
    pub spec: Spec,
    /// Subject and pattern are UTF-8.
    pub utf: bool,
    /// Capturing groups.
    pub captures: u32,
    /// A newline may be CRLF.
    pub crlf: bool,
    /// The newline convention in effect.
    pub newline: u32,
    /// What `\R` matches.
    pub bsr: u32,
    /// Names may be shared.
    pub dupnames: bool,
    /// Names by group, in the order of the names.
    pub names: Vec<(u32, Vec<u8>)>,
}

// SAFETY: compiled code is never written to after compilation, which PCRE2 documents as safe to share.
unsafe impl Send for Pattern {}
// SAFETY: as above.
unsafe impl Sync for Pattern {}

/// What a match may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps.
    pub steps: u32,
    /// Depth of backtracking, if limited.
    pub depth: Option<u32>,
}

/// Kilobytes of backtracking points that one match may keep.
const HEAP_LIMIT: u32 = 256 << 10;
/// A thread keeps memory of this many bytes from match to match.
const KEEP: usize = 256 << 10;
/// Bytes of stack that the compiler may take for nested groups.
const COMPILE_STACK: usize = 2 << 20;
/// Nested groups, and those that PCRE 8 had room for.
const NESTING: u32 = 10_000;
const OLD_NESTING: u32 = 798;

/// What came of a match.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Start and end of the groups up to the last one that took part; [`UNSET`] for those that did not.
    Match(Vec<(usize, usize)>),
    /// No match.
    NoMatch,
    /// Too many steps.
    StepLimit,
    /// Backtracking too deep.
    DepthLimit,
    /// The offset is beyond the subject, or what the library calls bad.
    Bad,
}

/// The place of a group that took no part.
pub const UNSET: usize = p::PCRE2_UNSET;

extern "C" fn stack_guard(_: u32, base: *mut c_void) -> c_int {
    let here = &raw const base as usize;
    c_int::from((base as usize).abs_diff(here) > COMPILE_STACK)
}

struct CompileContext(NonNull<p::pcre2_compile_context_8>);

impl CompileContext {
    fn new(spec: &Spec) -> Option<CompileContext> {
        // SAFETY: a context of the library's default allocator; it is used by this call alone.
        unsafe {
            let raw = p::pcre2_compile_context_create_8(std::ptr::null_mut());
            let c = CompileContext(NonNull::new(raw)?);
            if spec.newline != 0 {
                p::pcre2_set_newline_8(raw, spec.newline);
            } else {
                p::pcre2_set_newline_8(raw, p::PCRE2_NEWLINE_LF);
            }
            if spec.bsr != 0 {
                p::pcre2_set_bsr_8(raw, spec.bsr);
            }
            let nesting = if spec.old { OLD_NESTING } else { NESTING };
            p::pcre2_set_parens_nest_limit_8(raw, nesting);
            if spec.old {
                p::pcre2_set_character_tables_8(raw, latin1::TABLES.as_ptr());
                p::pcre2_set_max_varlookbehind_8(raw, 0);
                p::pcre2_set_compile_extra_options_8(raw, p::PCRE2_EXTRA_ALLOW_LOOKAROUND_BSK);
            }
            Some(c)
        }
    }
}

impl Drop for CompileContext {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { p::pcre2_compile_context_free_8(self.0.as_ptr()) }
    }
}

/// `PCRE2_ERROR_HEAP_FAILED`, when the library cannot get memory.
const NO_MEMORY: CompileError = CompileError {
    code: 121,
    offset: 0,
};

impl Pattern {
    /// Compiles.
    pub fn compile(spec: Spec) -> Result<Pattern, CompileError> {
        if !spec.old {
            return Self::compile_text(spec, None);
        }
        let utf = spec.options & p::PCRE2_UTF != 0 && spec.options & p::PCRE2_UCP == 0;
        let extended = spec.options & p::PCRE2_EXTENDED != 0;
        if let Some(text) = super::pcre8::translate(&spec.text, utf, extended)
            && let Ok(made) = Self::compile_text(spec.clone(), Some(&text))
        {
            return Ok(made);
        }
        let made = Self::compile_text(spec, None)?;
        match super::pcre8::long_name(&made.names, &made.spec.text) {
            Some(e) => Err(e),
            None => Ok(made),
        }
    }
    /// Compiles `text`, or else that of the specification.
    fn compile_text(spec: Spec, text: Option<&[u8]>) -> Result<Pattern, CompileError> {
        let context = CompileContext::new(&spec).ok_or(NO_MEMORY)?;
        let mut error = CompileError { code: 0, offset: 0 };
        let base = 0u8;
        let text = text.unwrap_or(&spec.text);
        // SAFETY: the text is a live slice; the guard gets an address of this frame for the time of the call.
        let raw = unsafe {
            p::pcre2_set_compile_recursion_guard_8(
                context.0.as_ptr(),
                Some(stack_guard),
                (&raw const base).cast_mut().cast(),
            );
            p::pcre2_compile_8(
                text.as_ptr(),
                text.len(),
                spec.options,
                &mut error.code,
                &mut error.offset,
                context.0.as_ptr(),
            )
        };
        let code = NonNull::new(raw).ok_or(error)?;
        let mut pattern = Pattern {
            code,
            spec,
            utf: false,
            captures: 0,
            crlf: false,
            newline: 0,
            bsr: 0,
            dupnames: false,
            names: Vec::new(),
        };
        let options = pattern.number(p::PCRE2_INFO_ALLOPTIONS);
        pattern.utf = options & p::PCRE2_UTF != 0;
        pattern.dupnames = options & p::PCRE2_DUPNAMES != 0;
        pattern.captures = pattern.number(p::PCRE2_INFO_CAPTURECOUNT);
        pattern.newline = pattern.number(p::PCRE2_INFO_NEWLINE);
        pattern.bsr = pattern.number(p::PCRE2_INFO_BSR);
        pattern.crlf = matches!(
            pattern.newline,
            p::PCRE2_NEWLINE_ANY | p::PCRE2_NEWLINE_CRLF | p::PCRE2_NEWLINE_ANYCRLF
        );
        pattern.names = pattern.read_names();
        Ok(pattern)
    }
    /// A number that the library knows of the pattern.
    fn number(&self, what: u32) -> u32 {
        let mut n = 0u32;
        // SAFETY: what is asked for here are numbers of 32 bits.
        unsafe { p::pcre2_pattern_info_8(self.code.as_ptr(), what, (&raw mut n).cast()) };
        n
    }
    fn read_names(&self) -> Vec<(u32, Vec<u8>)> {
        let count = self.number(p::PCRE2_INFO_NAMECOUNT) as usize;
        let size = self.number(p::PCRE2_INFO_NAMEENTRYSIZE) as usize;
        if count == 0 {
            return Vec::new();
        }
        let mut table: *const u8 = std::ptr::null();
        // SAFETY: the answer is a pointer to `count` rows of `size` bytes in the code.
        let table = unsafe {
            p::pcre2_pattern_info_8(
                self.code.as_ptr(),
                p::PCRE2_INFO_NAMETABLE,
                (&raw mut table).cast(),
            );
            std::slice::from_raw_parts(table, count * size)
        };
        let row = |r: &[u8]| {
            let name = r[2..].split(|b| *b == 0).next().unwrap_or(&[]);
            (u32::from(r[0]) << 8 | u32::from(r[1]), name.to_vec())
        };
        table.chunks_exact(size).map(row).collect()
    }
    /// Matches. When the pattern is UTF-8, the subject must be valid and `start` between characters.
    ///
    /// # Safety
    /// That, which the library does not check again.
    pub unsafe fn run(
        &self,
        subject: &[u8],
        start: usize,
        options: u32,
        limits: Limits,
    ) -> Outcome {
        SCRATCH.with_borrow_mut(|scratch| {
            let Some(s) = Scratch::with_room(scratch, self.captures + 1) else {
                return Outcome::StepLimit;
            };
            s.run(
                self,
                subject,
                start,
                options | p::PCRE2_NO_UTF_CHECK,
                limits,
            )
        })
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        // SAFETY: made by `compile`, and the last user is gone.
        unsafe { p::pcre2_code_free_8(self.code.as_ptr()) }
    }
}

/// What a thread needs for matches.
struct Scratch {
    data: NonNull<p::pcre2_match_data_8>,
    context: NonNull<p::pcre2_match_context_8>,
    pairs: u32,
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

impl Scratch {
    fn with_room(slot: &mut Option<Scratch>, pairs: u32) -> Option<&mut Scratch> {
        if slot.as_ref().is_none_or(|s| s.pairs < pairs) {
            let pairs = pairs.max(16);
            // SAFETY: plain creation; null is handled.
            let made = unsafe {
                let data = NonNull::new(p::pcre2_match_data_create_8(pairs, std::ptr::null_mut()))?;
                match NonNull::new(p::pcre2_match_context_create_8(std::ptr::null_mut())) {
                    Some(context) => Scratch {
                        data,
                        context,
                        pairs,
                    },
                    None => {
                        p::pcre2_match_data_free_8(data.as_ptr());
                        return None;
                    }
                }
            };
            *slot = Some(made);
        }
        slot.as_mut()
    }
    fn run(
        &mut self,
        pattern: &Pattern,
        subject: &[u8],
        start: usize,
        options: u32,
        limits: Limits,
    ) -> Outcome {
        let data = self.data.as_ptr();
        // SAFETY: code, subject, data and context live through the call; the validity that `NO_UTF_CHECK` promises
        // is the caller's ([`Pattern::run`]).
        let rc = unsafe {
            let context = self.context.as_ptr();
            p::pcre2_set_match_limit_8(context, limits.steps);
            p::pcre2_set_depth_limit_8(context, limits.depth.unwrap_or(u32::MAX));
            p::pcre2_set_heap_limit_8(context, HEAP_LIMIT);
            p::pcre2_match_8(
                pattern.code.as_ptr(),
                subject.as_ptr(),
                subject.len(),
                start,
                options,
                data,
                context,
            )
        };
        let outcome = match rc {
            1.. => {
                // SAFETY: the vector has at least as many pairs as the pattern has groups.
                let pairs = unsafe {
                    let first = p::pcre2_get_ovector_pointer_8(data);
                    std::slice::from_raw_parts(first, rc as usize * 2)
                };
                Outcome::Match(pairs.chunks_exact(2).map(|c| (c[0], c[1])).collect())
            }
            p::PCRE2_ERROR_NOMATCH | p::PCRE2_ERROR_RECURSELOOP | p::PCRE2_ERROR_HEAPLIMIT => {
                Outcome::NoMatch
            }
            p::PCRE2_ERROR_MATCHLIMIT => Outcome::StepLimit,
            p::PCRE2_ERROR_DEPTHLIMIT => Outcome::DepthLimit,
            _ => Outcome::Bad,
        };
        // SAFETY: the data live; what is kept is only dropped.
        if unsafe { p::pcre2_get_match_data_heapframes_size_8(data) } > KEEP {
            self.pairs = 0;
        }
        outcome
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: made by `with_room`.
        unsafe {
            p::pcre2_match_data_free_8(self.data.as_ptr());
            p::pcre2_match_context_free_8(self.context.as_ptr());
        }
    }
}

/// PCRE2's text for an error.
pub fn message(code: c_int) -> String {
    let mut text = [0u8; 256];
    // SAFETY: the room is stated.
    let n = unsafe { p::pcre2_get_error_message_8(code, text.as_mut_ptr(), text.len()) };
    match usize::try_from(n) {
        Ok(n) => String::from_utf8_lossy(&text[..n]).into_owned(),
        Err(_) => format!("Unknown error ({code})"),
    }
}
