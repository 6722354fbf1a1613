//! Running a compiled specification.

use beamr_abi::Ctx;
use beamr_term::copy::{CopyMode, Copying, copy};
use beamr_term::{Build, Subtag, Word, atoms, maps};

use super::expr::Op;
use super::{Clause, MatchSpec, pattern};
use crate::ets::RowData;

pub use super::expr::Action;

/// What a specification is run on.
#[derive(Clone, Copy)]
pub enum Source<'r> {
    /// A term that does not move during the run.
    Term(Word),
    /// A row of a table whose lock is held.
    Row(&'r RowData),
    /// The arguments of a trace event, as a tuple and as a list.
    Arguments(Word, Word),
}

/// Does what trace specifications ask for.
pub trait TraceHost {
    /// Does an action; the value is what the expression gives. Arguments may point into the compiled specification.
    fn action(&mut self, ctx: &mut Ctx, action: Action, args: &[Word]) -> Word;
}

/// How a run ended that matched.
#[derive(Clone, Copy, Debug)]
pub struct Outcome(pub Word);

/// Scratch space for any number of runs of one specification.
#[derive(Debug)]
pub struct Machine {
    /// Registers, then variables.
    words: Vec<Word>,
    registers: usize,
    /// Variables that were replaced by their copies (as far as there are bits: others are copied each time).
    copied: u64,
    stack: Vec<Word>,
    /// Whether what is matched may be endless when written out.
    shares: bool,
}

impl Machine {
    /// Scratch space for `spec`.
    pub fn new(spec: &MatchSpec) -> Machine {
        let registers = spec.registers.max(1);
        Machine {
            words: vec![Word::NIL; registers + spec.variables],
            registers,
            copied: 0,
            stack: Vec::new(),
            shares: true,
        }
    }
    /// Runs the specification that this space is for. `None` when nothing matches. The value lies in the process heap.
    pub fn run(
        &mut self,
        ctx: &mut Ctx,
        spec: &MatchSpec,
        source: Source<'_>,
        mut host: Option<&mut dyn TraceHost>,
    ) -> Option<Outcome> {
        let tables = ctx.tables();
        self.shares = !matches!(source, Source::Row(r) if !r.shares());
        for clause in &spec.clauses {
            self.words[0] = match source {
                Source::Term(t) => t,
                Source::Row(r) => r.tuple(),
                Source::Arguments(tuple, list) => match clause.tests.first() {
                    Some(pattern::Test::Tuple(..)) => tuple,
                    _ => list,
                },
            };
            let (registers, variables) = self.words.split_at_mut(self.registers);
            if !pattern::matches(&clause.tests, registers, variables, tables) {
                continue;
            }
            self.copied = 0;
            self.stack.clear();
            let host: Option<&mut dyn TraceHost> = match &mut host {
                Some(h) => Some(&mut **h),
                None => None,
            };
            if let Some(value) = self.code(ctx, clause, source, host) {
                return Some(Outcome(value));
            }
        }
        None
    }
    fn pop(&mut self) -> Word {
        // The compiler keeps the stack balanced.
        self.stack.pop().unwrap_or(Word::NIL)
    }
    #[inline]
    fn copy(&self, ctx: &mut Ctx, w: Word) -> Word {
        if self.shares {
            Copying::new(w, CopyMode::Share).make(ctx)
        } else {
            copy(w, ctx, CopyMode::Share)
        }
    }
    fn variable_copy(&mut self, ctx: &mut Ctx, v: usize) -> Word {
        let at = self.registers + v;
        let bit = 1u64.checked_shl(v as u32).unwrap_or(0);
        if self.copied & bit == 0 {
            self.words[at] = self.copy(ctx, self.words[at]);
            self.copied |= bit;
        }
        self.words[at]
    }
    fn code(
        &mut self,
        ctx: &mut Ctx,
        clause: &Clause,
        source: Source<'_>,
        mut host: Option<&mut dyn TraceHost>,
    ) -> Option<Word> {
        let tables = ctx.tables();
        let failed = atoms::EXIT_UPPER.word();
        let mut in_body = false;
        let mut result = Word::TRUE;
        let mut pc = 0;
        while let Some(op) = clause.code.get(pc) {
            pc += 1;
            let value = match *op {
                Op::Push(w) => w,
                Op::PushCopy(w) => Copying::new(w, CopyMode::Share).make(ctx),
                Op::Var(v) => self.words[self.registers + v as usize],
                Op::VarCopy(v) => self.variable_copy(ctx, v as usize),
                Op::Whole => match source {
                    Source::Term(t) => t,
                    Source::Row(r) => r.tuple(),
                    Source::Arguments(_, list) => list,
                },
                Op::WholeCopy => match source {
                    Source::Term(t) => Copying::new(t, CopyMode::Share).make(ctx),
                    Source::Row(r) => r.copy_to(ctx),
                    Source::Arguments(_, list) => Copying::new(list, CopyMode::Share).make(ctx),
                },
                Op::Bindings => {
                    let mut list = Word::NIL;
                    for v in clause.bound.iter().rev() {
                        let w = self.variable_copy(ctx, *v as usize);
                        list = ctx.cons(w, list);
                    }
                    list
                }
                Op::Tuple(n) => {
                    let at = self.stack.len() - n as usize;
                    let t = if n == 0 {
                        beamr_term::empty_tuple()
                    } else {
                        ctx.tuple(&self.stack[at..])
                    };
                    self.stack.truncate(at);
                    t
                }
                Op::List(n) => {
                    let tail = self.pop();
                    let at = self.stack.len() - n as usize;
                    let l = ctx.list_with_tail(self.stack[at..].iter().copied(), tail);
                    self.stack.truncate(at);
                    l
                }
                Op::Map(n) => {
                    let at = self.stack.len() - 2 * n as usize;
                    let pairs: Vec<(Word, Word)> =
                        self.stack[at..].chunks(2).map(|p| (p[0], p[1])).collect();
                    self.stack.truncate(at);
                    maps::from_pairs(ctx, &pairs, tables)
                }
                Op::Call(f, n, keep) => {
                    let at = self.stack.len() - n as usize;
                    let value = f(ctx, &self.stack[at..]);
                    self.stack.truncate(at);
                    match value {
                        Ok(w) if keep && !w.is_immediate() => self.copy(ctx, w),
                        Ok(w) => w,
                        Err(_) => {
                            drop(ctx.take_pending());
                            if !in_body {
                                return None;
                            }
                            failed
                        }
                    }
                }
                Op::And(n) | Op::Or(n) => {
                    let decides = Word::boolean(matches!(*op, Op::Or(_)));
                    let at = self.stack.len() - n as usize;
                    let args = &self.stack[at..];
                    let value = if args.iter().all(|w| w.is_boolean()) {
                        if args.contains(&decides) {
                            decides
                        } else {
                            Word::boolean(decides == Word::FALSE)
                        }
                    } else if in_body {
                        failed
                    } else {
                        return None;
                    };
                    self.stack.truncate(at);
                    value
                }
                Op::AndAlso(to) | Op::OrElse(to) => {
                    let decides = Word::boolean(matches!(*op, Op::OrElse(_)));
                    let w = self.pop();
                    let value = if w == decides {
                        decides
                    } else if w.is_boolean() {
                        continue;
                    } else if in_body {
                        failed
                    } else {
                        return None;
                    };
                    pc = to as usize;
                    value
                }
                Op::Self_ => ctx.self_pid(),
                Op::Guard => {
                    if self.pop() != Word::TRUE {
                        return None;
                    }
                    continue;
                }
                Op::Body => {
                    in_body = true;
                    continue;
                }
                Op::Waste => {
                    self.pop();
                    continue;
                }
                Op::Return => {
                    result = self.pop();
                    continue;
                }
                Op::Action(Action::Message, _) => {
                    result = self.pop();
                    Word::TRUE
                }
                Op::Action(action, n) => {
                    let at = self.stack.len() - n as usize;
                    let value = match &mut host {
                        Some(h) => h.action(ctx, action, &self.stack[at..]),
                        None => failed,
                    };
                    self.stack.truncate(at);
                    value
                }
            };
            self.stack.push(value);
        }
        Some(result)
    }
}

/// The specification behind a magic reference. The borrow ends with the native that holds the term.
pub fn of_reference<'a>(w: Word) -> Option<&'a MatchSpec> {
    if w.subtag() != Some(Subtag::Ref) || w.header().arity() != beamr_term::header::REF_MAGIC {
        return None;
    }
    // SAFETY: a magic reference holds a count of its resource for as long as the term lives.
    let resource: &'a beamr_term::Resource =
        unsafe { &*(w.field(2) as usize as *const beamr_term::Resource) };
    resource.value.downcast_ref::<MatchSpec>()
}
