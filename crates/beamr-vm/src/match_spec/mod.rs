//! Match specifications: `[{Pattern, Guards, Body}, ...]`, compiled to code for a small stack machine.
//!
//! | file | what |
//! |---|---|
//! | `pattern` | patterns to tests on registers, and running them |
//! | `expr` | guards and bodies to stack code, with the messages of `match_spec_test` |
//! | `functions` | which functions guards and bodies may call, per release |
//! | `run` | the machine |
//! | `key` | what a pattern says about a table's key |
//!
//! A pattern runs on a term in place (a row under its table's lock). Guards read that term where it is. The body runs with
//! results copied to the process heap: nothing that a run returns points into the term or the compiled
//! specification. A function call in a body reads its arguments in place, too; its result is copied.
//!
//! Two dialects: *table* (`ets`), whose body's last expression is the result, and *trace*, which matches a list of arguments and
//! whose body is a list of actions ([`TraceHost`] does them).

mod expr;
mod functions;
pub mod key;
mod pattern;
mod run;

use std::borrow::Cow;

use beamr_abi::Ctx;
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::{Fragment, Tables, Word};

pub use run::{Action, Machine, Outcome, Source, TraceHost, of_reference};

use expr::Op;
use pattern::Test;

/// What a specification is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Rows of tables.
    Table,
    /// Trace events.
    Trace {
        /// Call events, where `caller` is known.
        call: bool,
        /// Events that happen in the traced process, whose body may change what is traced.
        actions: bool,
    },
}

impl Dialect {
    fn is_trace(self) -> bool {
        matches!(self, Dialect::Trace { .. })
    }
}

/// Why a specification was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// It is not a match specification of this dialect.
    #[error("not a match specification")]
    Bad,
    /// Expressions are nested too deep.
    #[error("expressions are nested more than {MAX_DEPTH} deep")]
    TooDeep,
}

/// How deep expressions may nest. OTP's limit is the stack of its schedulers: 3188 calls in 25, 4253 in 29.
pub const MAX_DEPTH: usize = 3188;

/// One clause.
#[derive(Debug)]
struct Clause {
    /// Tests in order.
    tests: Vec<Test>,
    /// Variables that the pattern binds, ascending.
    bound: Vec<u32>,
    /// Guards, then the body.
    code: Cow<'static, [Op]>,
}

/// A compiled specification.
#[derive(Debug)]
pub struct MatchSpec {
    clauses: Vec<Clause>,
    variables: usize,
    registers: usize,
    dialect: Dialect,
    /// Where constants lie.
    _constants: Option<Fragment>,
}

// SAFETY: constants are immutable once compiled, lie in the fragment that is owned, and refer to it and to
// counted objects only.
unsafe impl Send for MatchSpec {}
// SAFETY: as above.
unsafe impl Sync for MatchSpec {}

impl MatchSpec {
    /// Compiles a specification.
    pub fn compile(ctx: &mut Ctx, spec: Word, dialect: Dialect) -> Result<MatchSpec, SpecError> {
        let mut c = Compiler::new(ctx, dialect, false);
        c.spec(spec)?;
        Ok(c.finish())
    }
    /// A specification that matches nothing.
    pub fn nothing() -> MatchSpec {
        MatchSpec {
            clauses: Vec::new(),
            variables: 0,
            registers: 1,
            dialect: Dialect::Table,
            _constants: None,
        }
    }
    /// Compiles one pattern with the body `['$_']` or `['$$']`: `match` and `match_object`.
    pub fn compile_pattern(ctx: &mut Ctx, pattern: Word, whole: bool) -> MatchSpec {
        let mut c = Compiler::new(ctx, Dialect::Table, false);
        // A pattern alone can only fail by a map's key, which is refused below.
        let ok = c.collect_variables(&[pattern]);
        let clause = c.pattern_clause(pattern, whole);
        match (ok, clause) {
            (Ok(()), Ok(clause)) => c.clauses.push(clause),
            _ => c.refused = true,
        }
        c.finish()
    }
    /// Whether a pattern had a variable as key of a map.
    pub fn is_refused(&self) -> bool {
        self.clauses.is_empty()
    }
    /// What is wrong with a specification, and the specification when it can be run. The messages are those that
    /// `match_spec_test` gives, oldest first.
    pub fn lint(ctx: &mut Ctx, spec: Word, dialect: Dialect) -> (Option<MatchSpec>, Vec<String>) {
        let mut c = Compiler::new(ctx, dialect, true);
        let done = c.spec(spec);
        let errors = std::mem::take(&mut c.errors);
        if done.is_err() || !errors.is_empty() {
            return (None, errors);
        }
        (Some(c.finish()), errors)
    }
    /// The dialect it was compiled for.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }
}

/// The number of a match variable (`'$1'`), if the term is one.
pub fn variable(term: Word, tables: &Tables) -> Option<u64> {
    let text = tables.atoms.text(term.as_atom()?);
    let digits = text.strip_prefix('$')?.as_bytes();
    match digits {
        [] => None,
        [b'0'] => Some(0),
        [b'0', ..] => None,
        _ if digits.len() > 18 => None,
        _ => digits.iter().try_fold(0u64, |n, d| {
            d.is_ascii_digit().then(|| n * 10 + u64::from(d - b'0'))
        }),
    }
}

/// The state of a compilation.
struct Compiler<'c> {
    ctx: &'c mut Ctx,
    tables: &'c Tables,
    dialect: Dialect,
    lint: bool,
    errors: Vec<String>,
    refused: bool,
    constants: Option<Fragment>,
    /// Numbers of variables in ascending order: the index is the dense number.
    variables: Vec<u64>,
    clauses: Vec<Clause>,
    registers: usize,
    // Of the clause at hand.
    code: Vec<Op>,
    bound: Vec<bool>,
    in_guard: bool,
    /// Terms looked at.
    visited: usize,
}

/// Terms that a specification may have when it is written out: what shares much inside may have far more than words.
const MAX_TERMS: usize = 1 << 20;

impl<'c> Compiler<'c> {
    fn new(ctx: &'c mut Ctx, dialect: Dialect, lint: bool) -> Compiler<'c> {
        let tables = ctx.tables();
        Compiler {
            ctx,
            tables,
            dialect,
            lint,
            errors: Vec::new(),
            refused: false,
            constants: None,
            variables: Vec::new(),
            clauses: Vec::new(),
            registers: 0,
            code: Vec::new(),
            bound: Vec::new(),
            in_guard: false,
            visited: 0,
        }
    }
    /// Counts a term.
    fn visit(&mut self) -> Result<(), SpecError> {
        self.visited += 1;
        if self.visited > MAX_TERMS {
            return Err(SpecError::TooDeep);
        }
        Ok(())
    }
    fn finish(self) -> MatchSpec {
        MatchSpec {
            clauses: self.clauses,
            variables: self.variables.len(),
            registers: self.registers,
            dialect: self.dialect,
            _constants: self.constants,
        }
    }
    fn constants(&mut self) -> &mut Fragment {
        self.constants
            .get_or_insert_with(|| Fragment::with_capacity(16))
    }
    fn constant(&mut self, term: Word) -> Word {
        if term.is_immediate() {
            return term;
        }
        Copying::new(term, CopyMode::All).make(self.constants())
    }
    /// The dense number of a variable that some pattern has.
    fn index_of(&self, variable: u64) -> Option<u32> {
        self.variables
            .binary_search(&variable)
            .ok()
            .map(|i| i as u32)
    }
    /// Notes an error; goes on when all errors are wanted.
    fn error(&mut self, text: impl FnOnce(&mut Self) -> String) -> Result<(), SpecError> {
        if !self.lint {
            return Err(SpecError::Bad);
        }
        let mut text = text(self);
        if text.len() > 99 {
            let end = (0..=99)
                .rev()
                .find(|i| text.is_char_boundary(*i))
                .unwrap_or(0);
            text.truncate(end);
        }
        self.errors.push(text);
        Ok(())
    }
    fn spec(&mut self, spec: Word) -> Result<(), SpecError> {
        if !spec.is_cons() {
            return self
                .error(|_| "Match programs are not in a list.".into())
                .and(Err(SpecError::Bad));
        }
        let Some(items) = proper(spec) else {
            return self
                .error(|_| "Match programs are not in a proper list.".into())
                .and(Err(SpecError::Bad));
        };
        let mut clauses = Vec::with_capacity(items.len());
        let mut patterns = Vec::with_capacity(items.len());
        for item in items {
            let Some([head, guards, body]) = item.as_tuple() else {
                return self
                    .error(|_| "Match program part is not a tuple of arity 3.".into())
                    .and(Err(SpecError::Bad));
            };
            let mut pattern = *head;
            if self.dialect.is_trace() && head.is_list() {
                // A list of arguments is matched as a tuple.
                let Some(elements) = proper(*head) else {
                    return self
                        .error(|c| {
                            let t = c.show(*head);
                            format!("Match expression part {t} is not a proper list.")
                        })
                        .and(Err(SpecError::Bad));
                };
                use beamr_term::Build;
                pattern = if elements.is_empty() {
                    beamr_term::empty_tuple()
                } else {
                    self.ctx.tuple(&elements)
                };
            }
            patterns.push(pattern);
            clauses.push((pattern, *guards, *body));
        }
        self.collect_variables(&patterns)?;
        for (pattern, guards, body) in clauses {
            let clause = self.clause(pattern, guards, body)?;
            self.clauses.push(clause);
        }
        if self.lint && !self.errors.is_empty() {
            return Err(SpecError::Bad);
        }
        Ok(())
    }
    fn clause(&mut self, pattern: Word, guards: Word, body: Word) -> Result<Clause, SpecError> {
        let tests = self.pattern(pattern)?;
        if self.dialect.is_trace()
            && !pattern.is_tuple()
            && variable(pattern, self.tables).is_none()
            && pattern != beamr_term::atoms::UNDERSCORE.word()
        {
            self.error(|_| "Match head is invalid in this context.".into())?;
        }
        let bound = self.bound_variables();
        self.code = Vec::new();
        self.in_guard = true;
        self.guards_or_body(guards)?;
        self.in_guard = false;
        if !self.dialect.is_trace() && !body.is_cons() {
            self.error(|_| "Body clause does not return anything.".into())?;
        } else {
            self.guards_or_body(body)?;
        }
        Ok(Clause {
            tests,
            bound,
            code: std::mem::take(&mut self.code).into(),
        })
    }
    fn pattern_clause(&mut self, pattern: Word, whole: bool) -> Result<Clause, SpecError> {
        let tests = self.pattern(pattern)?;
        let bound = self.bound_variables();
        const WHOLE: &[Op] = &[Op::Body, Op::WholeCopy, Op::Return];
        const BINDINGS: &[Op] = &[Op::Body, Op::Bindings, Op::Return];
        Ok(Clause {
            tests,
            bound,
            code: if whole { WHOLE } else { BINDINGS }.into(),
        })
    }
    fn bound_variables(&self) -> Vec<u32> {
        let all = self.bound.iter().enumerate();
        all.filter(|(_, b)| **b).map(|(i, _)| i as u32).collect()
    }
    fn show(&self, term: Word) -> String {
        let text = beamr_term::format::format_term(
            self.tables,
            term,
            beamr_term::format::FormatLimit::items(100),
        );
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The items of a proper list.
fn proper(list: Word) -> Option<Vec<Word>> {
    let mut items = Vec::new();
    let mut l = list;
    while let Some((h, t)) = l.as_cons() {
        items.push(h);
        l = t;
    }
    l.is_nil().then_some(items)
}
