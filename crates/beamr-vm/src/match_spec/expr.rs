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

/// What is still to be done, last first: nesting costs memory, not stack.
enum Step {
    /// An expression: leaves a value.
    Expression {
        term: Word,
        keep: bool,
        depth: usize,
    },
    /// The value that was left becomes code if it is a constant.
    Emit { keep: bool },
    /// A structure of so many values, the code of which starts here: folded when all are constant.
    Build { op: Op, values: usize, start: usize },
    /// An instruction that takes so many values.
    Take { op: Op, values: usize },
    /// A jump to the end of the `andalso` or `orelse` at hand.
    Jump { or: bool },
    /// The end of an `andalso` or `orelse` of so many values, at which all but the last jump.
    Land { values: usize },
}

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
            let value = self.expression(item, last)?;
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
    fn expression(&mut self, term: Word, keep: bool) -> Result<Value, SpecError> {
        let mut steps = vec![Step::Expression {
            term,
            keep,
            depth: 0,
        }];
        let mut values: Vec<Value> = Vec::new();
        let mut jumps = Vec::new();
        while let Some(step) = steps.pop() {
            match step {
                Step::Expression { term, keep, depth } => {
                    // After a message the value is anything: the code stays balanced.
                    if let Some(value) = self.part(term, keep, depth, &mut steps)? {
                        values.push(value);
                    }
                }
                Step::Emit { keep } => {
                    let value = values.last().copied().flatten();
                    self.emit(value, keep);
                }
                Step::Build {
                    op,
                    values: n,
                    start,
                } => {
                    let parts = values.split_off(values.len() - n);
                    let constants: Option<Vec<Word>> = parts.into_iter().collect();
                    values.push(match constants {
                        Some(constants) => {
                            self.code.truncate(start);
                            Some(self.fold(op, &constants))
                        }
                        None => {
                            self.code.push(op);
                            None
                        }
                    });
                }
                Step::Take { op, values: n } => {
                    values.truncate(values.len() - n);
                    self.code.push(op);
                    values.push(None);
                }
                Step::Jump { or } => {
                    jumps.push(self.code.len());
                    self.code
                        .push(if or { Op::OrElse(0) } else { Op::AndAlso(0) });
                }
                Step::Land { values: n } => {
                    values.truncate(values.len() - n);
                    let end = self.code.len() as u32;
                    for at in jumps.drain(jumps.len() + 1 - n..) {
                        if let Op::OrElse(to) | Op::AndAlso(to) = &mut self.code[at] {
                            *to = end;
                        }
                    }
                    values.push(None);
                }
            }
        }
        Ok(values.pop().flatten())
    }
    /// One expression: its value, or the steps that will leave it.
    fn part(
        &mut self,
        t: Word,
        keep: bool,
        depth: usize,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Value>, SpecError> {
        const MESSAGE: Option<Value> = Some(Some(Word::NIL));
        self.visit()?;
        if depth > MAX_DEPTH {
            if self.lint {
                self.error(|c| {
                    let t = c.show(t);
                    format!("Excessive nesting; system limit reached near: {t}")
                })?;
                return Ok(MESSAGE);
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
            let op = Op::List(parts.len() as u32 - 1);
            self.build(steps, op, &parts, keep, depth);
            return Ok(None);
        }
        if let Some(elements) = t.as_tuple() {
            if let [inner] = elements
                && let Some(parts) = inner.as_tuple()
            {
                self.build(steps, Op::Tuple(parts.len() as u32), parts, keep, depth);
                return Ok(None);
            }
            if let [name, args @ ..] = elements
                && name.is_atom()
                && variable(*name, self.tables).is_none()
            {
                return self.call(t, *name, args, keep, depth, steps);
            }
            self.error(|c| {
                let t = c.show(t);
                format!(
                    "{t} is neither a function call, nor a tuple (tuples are written {{{{ ... }}}})."
                )
            })?;
            return Ok(MESSAGE);
        }
        if t.is_map() {
            // Keys of flat maps stay as they are unless they are expressions themselves.
            let pairs: Vec<Word> = maps::iter(t).flat_map(|(k, v)| [k, v]).collect();
            let op = Op::Map(pairs.len() as u32 / 2);
            self.build(steps, op, &pairs, keep, depth);
            return Ok(None);
        }
        if let Some(n) = variable(t, self.tables) {
            let index = self.index_of(n);
            let Some(i) = index.filter(|i| self.bound[*i as usize]) else {
                self.error(|_| format!("Variable ${n} is unbound."))?;
                return Ok(MESSAGE);
            };
            self.code
                .push(if keep { Op::VarCopy(i) } else { Op::Var(i) });
            return Ok(Some(None));
        }
        if t == atoms::DOLLAR_UNDERSCORE.word() {
            self.code.push(if keep { Op::WholeCopy } else { Op::Whole });
            return Ok(Some(None));
        }
        if t == atoms::DOLLAR_DOLLAR.word() {
            self.code.push(Op::Bindings);
            return Ok(Some(None));
        }
        if t.is_immediate() {
            return Ok(Some(Some(t)));
        }
        Ok(Some(Some(self.constant(t))))
    }
    /// Steps that leave and emit the values of these terms, the first at the top.
    fn push_parts(steps: &mut Vec<Step>, parts: &[Word], keep: bool, depth: usize) {
        for term in parts.iter().rev() {
            steps.push(Step::Emit { keep });
            steps.push(Step::Expression {
                term: *term,
                keep,
                depth: depth + 1,
            });
        }
    }
    /// A structure of parts.
    fn build(&self, steps: &mut Vec<Step>, op: Op, parts: &[Word], keep: bool, depth: usize) {
        steps.push(Step::Build {
            op,
            values: parts.len(),
            start: self.code.len(),
        });
        Self::push_parts(steps, parts, keep, depth);
    }
    /// The structure that `op` makes of constants.
    fn fold(&mut self, op: Op, parts: &[Word]) -> Word {
        match op {
            Op::List(_) => {
                let (tail, items) = parts.split_last().unwrap_or((&Word::NIL, &[]));
                self.constants()
                    .list_with_tail(items.iter().copied(), *tail)
            }
            Op::Map(_) => {
                let pairs: Vec<(Word, Word)> = parts.chunks(2).map(|p| (p[0], p[1])).collect();
                let tables = self.tables;
                maps::from_pairs(self.constants(), &pairs, tables)
            }
            _ if parts.is_empty() => beamr_term::empty_tuple(),
            _ => self.constants().tuple(parts),
        }
    }
    /// A function or form applied to arguments: the steps for it, or a value.
    fn call(
        &mut self,
        t: Word,
        name: Word,
        args: &[Word],
        keep: bool,
        depth: usize,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Value>, SpecError> {
        const MESSAGE: Option<Value> = Some(Some(Word::NIL));
        let text = match name.as_atom() {
            Some(a) => self.tables.atoms.text(a),
            None => "",
        };
        let n = args.len();
        let take = |steps: &mut Vec<Step>, op| {
            steps.push(Step::Take { op, values: n });
            Self::push_parts(steps, args, false, depth);
            Ok(None)
        };
        match text {
            "const" => {
                if let [constant] = args {
                    return Ok(Some(Some(if constant.is_immediate() {
                        *constant
                    } else {
                        self.constant(*constant)
                    })));
                }
                self.error(|c| {
                    let t = c.show(t);
                    format!("Special form 'const' called with more than one argument in {t}.")
                })?;
                return Ok(MESSAGE);
            }
            "and" | "or" | "andalso" | "andthen" | "orelse" => {
                if args.is_empty() {
                    let name = if text == "andthen" { "andalso" } else { text };
                    self.error(|c| {
                        let t = c.show(t);
                        format!("Special form '{name}' called without arguments in {t}.")
                    })?;
                    return Ok(MESSAGE);
                }
                if text == "and" || text == "or" {
                    let n = n as u32;
                    return take(steps, if text == "and" { Op::And(n) } else { Op::Or(n) });
                }
                steps.push(Step::Land { values: n });
                for (i, a) in args.iter().enumerate().rev() {
                    if i + 1 < n {
                        steps.push(Step::Jump {
                            or: text == "orelse",
                        });
                    }
                    Self::push_parts(steps, std::slice::from_ref(a), false, depth);
                }
                return Ok(None);
            }
            "self" => {
                if n > 0 {
                    self.error(|c| {
                        let t = c.show(t);
                        format!("Special form 'self' called with arguments in {t}.")
                    })?;
                    return Ok(MESSAGE);
                }
                self.code.push(Op::Self_);
                return Ok(Some(None));
            }
            _ => {}
        }
        if let Some(form) = ACTIONS.iter().find(|a| a.0 == text)
            && (text != "current_stacktrace" || self.tables.release.0 >= 26)
        {
            return self.action(t, form, args, depth, steps);
        }
        let Some(place) = allowed(text, n, self.tables.release) else {
            self.error(|c| {
                let name = c.show(name);
                format!("Function {name}/{n} does_not_exist.")
            })?;
            return Ok(MESSAGE);
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
            return Ok(MESSAGE);
        }
        let op = match place {
            Where::Trace => Op::Action(Action::GetTcw, 0),
            Where::TraceBody => Op::Action(Action::SetTcw, 1),
            Where::Everywhere => match find(self.ctx, text, n) {
                Some(f) => Op::Call(f, n as u32, keep),
                // The table of natives has all of `functions`; a VM without them has no such function.
                None => {
                    self.error(|_| format!("Function {text}/{n} does_not_exist."))?;
                    return Ok(MESSAGE);
                }
            },
        };
        take(steps, op)
    }
    fn action(
        &mut self,
        t: Word,
        form: &(&str, Action, &[usize], bool, bool, bool),
        args: &[Word],
        depth: usize,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Value>, SpecError> {
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
            return Ok(Some(Some(Word::NIL)));
        }
        steps.push(Step::Take {
            op: Op::Action(action, args.len() as u32),
            values: args.len(),
        });
        // What a message is made of leaves the run; all else is read at once.
        Self::push_parts(steps, args, action == Action::Message, depth);
        Ok(None)
    }
}
