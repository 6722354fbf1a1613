//! Guards and bodies: expressions to stack code.
//!
//! Each expression leaves one word. A subexpression is compiled either to be *kept* (it becomes part of a result: what it
//! takes from the term is copied) or to be *read* (an argument of a function, a condition). Constant
//! subexpressions are folded.

use beamr_abi::NativeFn;
use beamr_term::{Build, Word, atoms, maps};

use super::functions::{Where, allowed, find};
use super::{Compiler, Dialect, MAX_DEPTH, SpecError, variable};

/// One instruction.
#[derive(Clone, Copy)]
pub(super) enum Op {
    /// A constant as it is.
    Push(Word),
    /// A copy of a constant.
    PushCopy(Word),
    /// A variable as it lies in the term.
    Var(u32),
    /// A copy of a variable.
    VarCopy(u32),
    /// The term.
    Whole,
    /// A copy of the term.
    WholeCopy,
    /// The list of all variables, copied.
    Bindings,
    /// A tuple of so many words.
    Tuple(u32),
    /// A list of so many words that ends in the last one.
    List(u32),
    /// A map of so many pairs.
    Map(u32),
    /// A native; the result is copied when it is kept.
    Call(NativeFn, u32, bool),
    /// `and` of so many words.
    And(u32),
    /// `or` of so many words.
    Or(u32),
    /// Goes to the target, keeping `false`, or takes `true` off.
    AndAlso(u32),
    /// Goes to the target, keeping `true`, or takes `false` off.
    OrElse(u32),
    /// The pid.
    Self_,
    /// Takes a word off: the clause fails unless it is `true`.
    Guard,
    /// From here on failures make the value `'EXIT'`.
    Body,
    /// Takes a word off.
    Waste,
    /// Takes a word off: the result.
    Return,
    /// An action of a trace specification; takes so many arguments and leaves a value.
    Action(Action, u32),
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, n) = match self {
            Op::Push(w) => return write!(f, "Push({w:?})"),
            Op::PushCopy(w) => return write!(f, "PushCopy({w:?})"),
            Op::Action(a, n) => return write!(f, "{a:?}/{n}"),
            Op::Var(n) => ("Var", *n),
            Op::VarCopy(n) => ("VarCopy", *n),
            Op::Whole => ("Whole", 0),
            Op::WholeCopy => ("WholeCopy", 0),
            Op::Bindings => ("Bindings", 0),
            Op::Tuple(n) => ("Tuple", *n),
            Op::List(n) => ("List", *n),
            Op::Map(n) => ("Map", *n),
            Op::Call(_, n, _) => ("Call", *n),
            Op::And(n) => ("And", *n),
            Op::Or(n) => ("Or", *n),
            Op::AndAlso(n) => ("AndAlso", *n),
            Op::OrElse(n) => ("OrElse", *n),
            Op::Self_ => ("Self", 0),
            Op::Guard => ("Guard", 0),
            Op::Body => ("Body", 0),
            Op::Waste => ("Waste", 0),
            Op::Return => ("Return", 0),
        };
        write!(f, "{name}({n})")
    }
}

/// What a trace specification can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `{message, M}`.
    Message,
    /// `{return_trace}`.
    ReturnTrace,
    /// `{exception_trace}`.
    ExceptionTrace,
    /// `{is_seq_trace}`.
    IsSeqTrace,
    /// `{set_seq_token, Component, Value}`.
    SetSeqToken,
    /// `{get_seq_token}`.
    GetSeqToken,
    /// `{display, Term}`.
    Display,
    /// `{process_dump}`.
    ProcessDump,
    /// `{enable_trace, Flag}` or `{enable_trace, Pid, Flag}`.
    EnableTrace,
    /// `{disable_trace, Flag}` or `{disable_trace, Pid, Flag}`.
    DisableTrace,
    /// `{trace, Disable, Enable}` or `{trace, Pid, Disable, Enable}`.
    Trace,
    /// `{caller}`.
    Caller,
    /// `{caller_line}`.
    CallerLine,
    /// `{current_stacktrace}` or `{current_stacktrace, Depth}`.
    CurrentStacktrace,
    /// `{silent, Boolean}`.
    Silent,
    /// `{get_tcw}`.
    GetTcw,
    /// `{set_tcw, Value}`.
    SetTcw,
}

/// What the special forms of trace specifications want: form, arities, in guards, events with actions only, call events only.
const ACTIONS: &[(&str, Action, &[usize], bool, bool, bool)] = &[
    ("message", Action::Message, &[1], false, false, false),
    (
        "return_trace",
        Action::ReturnTrace,
        &[0],
        false,
        false,
        false,
    ),
    (
        "exception_trace",
        Action::ExceptionTrace,
        &[0],
        false,
        false,
        false,
    ),
    ("is_seq_trace", Action::IsSeqTrace, &[0], true, true, false),
    (
        "set_seq_token",
        Action::SetSeqToken,
        &[2],
        false,
        true,
        false,
    ),
    (
        "get_seq_token",
        Action::GetSeqToken,
        &[0],
        false,
        true,
        false,
    ),
    ("display", Action::Display, &[1], false, false, false),
    (
        "process_dump",
        Action::ProcessDump,
        &[0],
        false,
        true,
        false,
    ),
    (
        "enable_trace",
        Action::EnableTrace,
        &[1, 2],
        false,
        true,
        false,
    ),
    (
        "disable_trace",
        Action::DisableTrace,
        &[1, 2],
        false,
        true,
        false,
    ),
    ("trace", Action::Trace, &[2, 3], false, true, false),
    ("caller", Action::Caller, &[0], false, true, true),
    ("caller_line", Action::CallerLine, &[0], false, true, true),
    (
        "current_stacktrace",
        Action::CurrentStacktrace,
        &[0, 1],
        false,
        true,
        true,
    ),
    ("silent", Action::Silent, &[1], false, true, false),
];

/// A constant, or code that was emitted.
type Value = Option<Word>;

impl Compiler<'_> {
    /// A list of guards, or a body.
    pub(super) fn guards_or_body(&mut self, list: Word) -> Result<(), SpecError> {
        if list.is_nil() {
            return Ok(());
        }
        if !list.is_cons() {
            return self.error(|_| "Match expression is not a list.".into());
        }
        if !self.in_guard {
            self.code.push(Op::Body);
        }
        let table_body = !self.in_guard && !self.dialect.is_trace();
        let mut l = list;
        while let Some((item, tail)) = l.as_cons() {
            l = tail;
            let last = table_body && !tail.is_cons();
            let value = self.expression(item, last, 0)?;
            self.emit(value, last);
            self.code.push(match (self.in_guard, last) {
                (true, _) => Op::Guard,
                (_, true) => Op::Return,
                _ => Op::Waste,
            });
        }
        if !l.is_nil() {
            return self.error(|_| "Match expression is not a proper list.".into());
        }
        Ok(())
    }
    fn emit(&mut self, value: Value, keep: bool) {
        if let Some(w) = value {
            self.code.push(if keep && !w.is_immediate() {
                Op::PushCopy(w)
            } else {
                Op::Push(w)
            });
        }
    }
    /// After a message: the code stays balanced.
    fn nothing(&mut self) -> Result<Value, SpecError> {
        Ok(Some(Word::NIL))
    }
    fn expression(&mut self, t: Word, keep: bool, depth: usize) -> Result<Value, SpecError> {
        self.visit()?;
        if depth > MAX_DEPTH {
            let shown = |c: &mut Self| {
                let t = c.show(t);
                format!("Excessive nesting; system limit reached near: {t}")
            };
            if self.lint {
                self.error(shown)?;
                return self.nothing();
            }
            return Err(SpecError::TooDeep);
        }
        if t.is_cons() {
            let mut parts = Vec::new();
            let mut l = t;
            while let Some((h, tail)) = l.as_cons() {
                parts.push(h);
                l = tail;
            }
            parts.push(l);
            let n = parts.len() as u32 - 1;
            return self.built(&parts, keep, depth, Op::List(n), |c, w| {
                let (tail, items) = w.split_last().unwrap_or((&Word::NIL, &[]));
                c.constants().list_with_tail(items.iter().copied(), *tail)
            });
        }
        if let Some(elements) = t.as_tuple() {
            if let [inner] = elements
                && let Some(parts) = inner.as_tuple()
            {
                return self.built(parts, keep, depth, Op::Tuple(parts.len() as u32), |c, w| {
                    if w.is_empty() {
                        beamr_term::empty_tuple()
                    } else {
                        c.constants().tuple(w)
                    }
                });
            }
            if let [name, args @ ..] = elements
                && name.is_atom()
                && variable(*name, self.tables).is_none()
            {
                return self.call(t, *name, args, keep, depth);
            }
            self.error(|c| {
                let t = c.show(t);
                format!(
                    "{t} is neither a function call, nor a tuple (tuples are written {{{{ ... }}}})."
                )
            })?;
            return self.nothing();
        }
        if t.is_map() {
            // Keys of flat maps stay as they are unless they are expressions themselves.
            let pairs: Vec<Word> = maps::iter(t).flat_map(|(k, v)| [k, v]).collect();
            let n = pairs.len() as u32 / 2;
            return self.built(&pairs, keep, depth, Op::Map(n), |c, w| {
                let pairs: Vec<(Word, Word)> = w.chunks(2).map(|p| (p[0], p[1])).collect();
                let tables = c.tables;
                maps::from_pairs(c.constants(), &pairs, tables)
            });
        }
        if let Some(n) = variable(t, self.tables) {
            let index = self.index_of(n);
            match index.filter(|i| self.bound[*i as usize]) {
                Some(i) => {
                    self.code
                        .push(if keep { Op::VarCopy(i) } else { Op::Var(i) });
                    return Ok(None);
                }
                None => {
                    self.error(|_| format!("Variable ${n} is unbound."))?;
                    return self.nothing();
                }
            }
        }
        if t == atoms::DOLLAR_UNDERSCORE.word() {
            self.code.push(if keep { Op::WholeCopy } else { Op::Whole });
            return Ok(None);
        }
        if t == atoms::DOLLAR_DOLLAR.word() {
            self.code.push(Op::Bindings);
            return Ok(None);
        }
        if t.is_immediate() {
            return Ok(Some(t));
        }
        Ok(Some(self.constant(t)))
    }
    /// A structure of parts: folded when all are constant.
    fn built(
        &mut self,
        parts: &[Word],
        keep: bool,
        depth: usize,
        op: Op,
        fold: impl FnOnce(&mut Self, &[Word]) -> Word,
    ) -> Result<Value, SpecError> {
        let start = self.code.len();
        let mut constants = Vec::with_capacity(parts.len());
        for part in parts {
            let value = self.expression(*part, keep, depth + 1)?;
            self.emit(value, keep);
            constants.extend(value);
        }
        if constants.len() == parts.len() {
            self.code.truncate(start);
            return Ok(Some(fold(self, &constants)));
        }
        self.code.push(op);
        Ok(None)
    }
    fn arguments(&mut self, args: &[Word], depth: usize) -> Result<(), SpecError> {
        for a in args {
            let value = self.expression(*a, false, depth + 1)?;
            self.emit(value, false);
        }
        Ok(())
    }
    fn call(
        &mut self,
        t: Word,
        name: Word,
        args: &[Word],
        keep: bool,
        depth: usize,
    ) -> Result<Value, SpecError> {
        let text = match name.as_atom() {
            Some(a) => self.tables.atoms.text(a),
            None => "",
        };
        let n = args.len();
        match text {
            "const" => {
                if let [constant] = args {
                    return Ok(Some(if constant.is_immediate() {
                        *constant
                    } else {
                        self.constant(*constant)
                    }));
                }
                self.error(|c| {
                    let t = c.show(t);
                    format!("Special form 'const' called with more than one argument in {t}.")
                })?;
                return self.nothing();
            }
            "and" | "or" | "andalso" | "andthen" | "orelse" => {
                if args.is_empty() {
                    let name = if text == "andthen" { "andalso" } else { text };
                    self.error(|c| {
                        let t = c.show(t);
                        format!("Special form '{name}' called without arguments in {t}.")
                    })?;
                    return self.nothing();
                }
                if text == "and" || text == "or" {
                    self.arguments(args, depth)?;
                    self.code.push(if text == "and" {
                        Op::And(n as u32)
                    } else {
                        Op::Or(n as u32)
                    });
                    return Ok(None);
                }
                return self.short_circuit(args, text == "orelse", depth);
            }
            "self" => {
                if n > 0 {
                    self.error(|c| {
                        let t = c.show(t);
                        format!("Special form 'self' called with arguments in {t}.")
                    })?;
                    return self.nothing();
                }
                self.code.push(Op::Self_);
                return Ok(None);
            }
            _ => {}
        }
        if let Some(form) = ACTIONS.iter().find(|a| a.0 == text)
            && (text != "current_stacktrace" || self.tables.release.0 >= 26)
        {
            return self.action(t, form, args, depth);
        }
        let Some(place) = allowed(text, n, self.tables.release) else {
            self.error(|c| {
                let name = c.show(name);
                format!("Function {name}/{n} does_not_exist.")
            })?;
            return self.nothing();
        };
        let fits = match place {
            Where::Everywhere => true,
            Where::Trace => self.dialect.is_trace(),
            Where::TraceBody => self.dialect.is_trace() && !self.in_guard,
        };
        if !fits {
            self.error(|c| {
                let name = c.show(name);
                format!("Function {name}/{n} cannot be called in this context.")
            })?;
            return self.nothing();
        }
        self.arguments(args, depth)?;
        let op = match place {
            Where::Trace => Op::Action(Action::GetTcw, 0),
            Where::TraceBody => Op::Action(Action::SetTcw, 1),
            Where::Everywhere => match find(self.ctx, text, n) {
                Some(f) => Op::Call(f, n as u32, keep),
                // The table of natives has all of `functions`; a VM without them has no such function.
                None => {
                    self.error(|_| format!("Function {text}/{n} does_not_exist."))?;
                    Op::Push(Word::NIL)
                }
            },
        };
        self.code.push(op);
        Ok(None)
    }
    fn short_circuit(&mut self, args: &[Word], or: bool, depth: usize) -> Result<Value, SpecError> {
        let mut jumps = Vec::new();
        for (i, a) in args.iter().enumerate() {
            self.arguments(std::slice::from_ref(a), depth)?;
            if i + 1 < args.len() {
                jumps.push(self.code.len());
                self.code
                    .push(if or { Op::OrElse(0) } else { Op::AndAlso(0) });
            }
        }
        let end = self.code.len() as u32;
        for at in jumps {
            self.code[at] = if or {
                Op::OrElse(end)
            } else {
                Op::AndAlso(end)
            };
        }
        Ok(None)
    }
    fn action(
        &mut self,
        t: Word,
        form: &(&str, Action, &[usize], bool, bool, bool),
        args: &[Word],
        depth: usize,
    ) -> Result<Value, SpecError> {
        let (name, action, arities, in_guards, acting, call_only) = *form;
        let problem = match self.dialect {
            Dialect::Table => Some(format!("Special form '{name}' used in wrong dialect.")),
            Dialect::Trace { call, actions } if (acting && !actions) || (call_only && !call) => {
                Some(format!(
                    "Special form '{name}' not allow for this trace event."
                ))
            }
            _ if self.in_guard && !in_guards => {
                Some(format!("Special form '{name}' called in guard context."))
            }
            _ if !arities.contains(&args.len()) => {
                let t = self.show(t);
                Some(if arities == [0] {
                    format!("Special form '{name}' called with arguments in {t}.")
                } else {
                    format!("Special form '{name}' called with wrong number of arguments in {t}.")
                })
            }
            _ => None,
        };
        if let Some(text) = problem {
            self.error(|_| text)?;
            return self.nothing();
        }
        // What a message is made of leaves the run; all else is read at once.
        for a in args {
            let keep = action == Action::Message;
            let value = self.expression(*a, keep, depth + 1)?;
            self.emit(value, keep);
        }
        self.code.push(Op::Action(action, args.len() as u32));
        Ok(None)
    }
}
