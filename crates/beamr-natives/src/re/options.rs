//! The options of `re`: reading a list of them.

use beamr_term::{Atom, Tables, Word, atoms};
use pcre2_sys as p;

/// What a list of options says.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// For the compiler.
    pub compile: u32,
    /// For a match.
    pub exec: u32,
    /// The newline convention, 0 when none is given.
    pub newline: u32,
    /// What `\R` matches, 0 when not given.
    pub bsr: u32,
    /// Some option is for the compiler only.
    pub only_compile: bool,
    /// Some option is for matches only.
    pub only_exec: bool,
    /// `unicode`.
    pub unicode: bool,
    /// `global`.
    pub global: bool,
    /// `report_errors`.
    pub report_errors: bool,
    /// `export` (since 28).
    pub export: bool,
    /// `{offset, N}`.
    pub offset: usize,
    /// `{capture, Values, Type}`.
    pub capture: Option<(Word, Word)>,
    /// `{match_limit, N}`.
    pub match_limit: Option<u32>,
    /// `{match_limit_recursion, N}`.
    pub depth_limit: Option<u32>,
}

/// An integer that the C side holds in an `int`; negative ones are none.
pub fn int(w: Word) -> Option<u32> {
    let n = w.as_small()?;
    (0..=i64::from(i32::MAX)).contains(&n).then_some(n as u32)
}

/// Reads a list of options; `None` when there is something else in it.
pub fn parse(list: Word, tables: &Tables) -> Option<Options> {
    let mut o = Options {
        compile: 0,
        exec: 0,
        newline: 0,
        bsr: 0,
        only_compile: false,
        only_exec: false,
        unicode: false,
        global: false,
        report_errors: false,
        export: false,
        offset: 0,
        capture: None,
        match_limit: None,
        depth_limit: None,
    };
    let new = tables.release.0 >= 28;
    let mut at = list;
    while let Some((item, tail)) = at.as_cons() {
        at = tail;
        match item.as_atom() {
            Some(a) => flag(&mut o, tables.atoms.text(a), new)?,
            None => valued(&mut o, item.as_tuple()?, tables, new)?,
        }
    }
    at.is_nil().then_some(o)
}

fn flag(o: &mut Options, name: &str, new: bool) -> Option<()> {
    let compile = match name {
        "anchored" => {
            o.compile |= p::PCRE2_ANCHORED;
            o.exec |= p::PCRE2_ANCHORED;
            return Some(());
        }
        "bsr_anycrlf" => {
            o.bsr = p::PCRE2_BSR_ANYCRLF;
            return Some(());
        }
        "bsr_unicode" => {
            o.bsr = p::PCRE2_BSR_UNICODE;
            return Some(());
        }
        "notempty" | "notempty_atstart" | "notbol" | "noteol" | "report_errors" | "global" => {
            o.only_exec = true;
            match name {
                "notempty" => o.exec |= p::PCRE2_NOTEMPTY,
                "notempty_atstart" => o.exec |= p::PCRE2_NOTEMPTY_ATSTART,
                "notbol" => o.exec |= p::PCRE2_NOTBOL,
                "noteol" => o.exec |= p::PCRE2_NOTEOL,
                "report_errors" => o.report_errors = true,
                _ => o.global = true,
            }
            return Some(());
        }
        "export" if new => {
            o.export = true;
            0
        }
        "unicode" => {
            o.unicode = true;
            p::PCRE2_UTF
        }
        "no_start_optimize" => p::PCRE2_NO_START_OPTIMIZE,
        "caseless" => p::PCRE2_CASELESS,
        "dollar_endonly" => p::PCRE2_DOLLAR_ENDONLY,
        "dotall" => p::PCRE2_DOTALL,
        "extended" => p::PCRE2_EXTENDED,
        "firstline" => p::PCRE2_FIRSTLINE,
        "multiline" => p::PCRE2_MULTILINE,
        "no_auto_capture" => p::PCRE2_NO_AUTO_CAPTURE,
        "dupnames" => p::PCRE2_DUPNAMES,
        "ungreedy" => p::PCRE2_UNGREEDY,
        "ucp" => p::PCRE2_UCP,
        "never_utf" => p::PCRE2_NEVER_UTF,
        _ => return None,
    };
    o.compile |= compile;
    o.only_compile = true;
    Some(())
}

fn valued(o: &mut Options, tuple: &[Word], tables: &Tables, new: bool) -> Option<()> {
    let text = |a: Atom| tables.atoms.text(a);
    let name = text(tuple.first()?.as_atom()?);
    match (name, tuple) {
        ("capture", [_, values, kind]) => {
            o.capture = Some((*values, *kind));
            o.only_exec = true;
        }
        ("capture", [_, values]) => {
            o.capture = Some((*values, atoms::INDEX.word()));
            o.only_exec = true;
        }
        ("offset", [_, n]) => {
            o.offset = int(*n)? as usize;
            o.only_exec = true;
        }
        ("match_limit", [_, n]) => {
            o.match_limit = Some(int(*n)?);
            o.only_exec = true;
        }
        ("match_limit_recursion", [_, n]) => {
            o.depth_limit = Some(int(*n)?);
            o.only_exec = true;
        }
        ("newline", [_, kind]) => {
            o.newline = match text(kind.as_atom()?) {
                "cr" => p::PCRE2_NEWLINE_CR,
                "lf" => p::PCRE2_NEWLINE_LF,
                "crlf" => p::PCRE2_NEWLINE_CRLF,
                "anycrlf" => p::PCRE2_NEWLINE_ANYCRLF,
                "any" => p::PCRE2_NEWLINE_ANY,
                "nul" if new => p::PCRE2_NEWLINE_NUL,
                _ => return None,
            };
        }
        _ => return None,
    }
    Some(())
}
