//! Equality: the walk that needs no order.

use std::task::Poll;

use super::Mode;
use super::memo::{CELLS, Memo, REMEMBER_AFTER, patiently};
use super::number::compare_integer_float;
use crate::arith::compare_numbers;
use crate::bits::BitsView;
use crate::header::{REF_PLAIN, Subtag};
use crate::ids::{node_entry, pid_parts, port_number, ref_numbers};
use crate::tables::{FunEntry, Tables};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

/// Two objects whose rest is still to compare: cons cells (their tails) or boxed objects (their
/// fields from an index on).
#[derive(Clone, Copy)]
struct Frame {
    a: Word,
    b: Word,
    next: usize,
    mode: Mode,
}

/// Compares two terms for equality, in steps.
#[derive(Debug)]
pub struct EqualWalk {
    stack: Stack<Frame, 8>,
    now: Option<(Word, Word, Mode)>,
    /// Pairs until the walk starts to remember.
    patience: i64,
    memo: Option<Box<Memo>>,
}

/// `next` of a frame that stands for two objects whose comparison ends there.
const COMPLETE: usize = usize::MAX;

/// What comparing two boxed objects asks for next.
enum Boxed {
    Equal,
    Different,
    Fields(usize),
}

impl EqualWalk {
    /// Starts.
    pub fn new(a: Word, b: Word, mode: Mode) -> EqualWalk {
        EqualWalk {
            stack: Stack::new(),
            now: Some((a, b, mode)),
            patience: REMEMBER_AFTER,
            memo: None,
        }
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        if let Some(memo) = &mut self.memo {
            memo.clear();
        }
        for e in self.stack.iter_mut() {
            f(&mut e.a);
            f(&mut e.b);
        }
        if let Some((a, b, _)) = &mut self.now {
            f(a);
            f(b);
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<bool> {
        if self.memo.is_none() {
            let (done, left) = patiently(budget, self.patience, |b| self.walk::<false>(tables, b));
            self.patience = left;
            if done.is_ready() || left > 0 {
                return done;
            }
            self.memo = Some(Box::default());
        }
        self.walk::<true>(tables, budget)
    }
    fn walk<const REMEMBER: bool>(&mut self, tables: &Tables, budget: &mut i64) -> Poll<bool> {
        let Some((mut a, mut b, mut mode)) = self.now.take() else {
            return Poll::Ready(true);
        };
        // Cells since the last that is remembered.
        let mut cells = CELLS;
        'walk: loop {
            // Compare `a` and `b`; leaving the block means that they are equal so far.
            'equal: {
                if a == b {
                    break 'equal;
                }
                if *budget <= 0 {
                    self.now = Some((a, b, mode));
                    return Poll::Pending;
                }
                *budget -= 1;
                if REMEMBER
                    && let Some(memo) = &mut self.memo
                    && (a.is_cons() && b.is_cons() || a.is_boxed() && b.is_boxed())
                {
                    if memo.same(a, b, mode) {
                        break 'equal;
                    }
                    cells += 1;
                    if cells >= CELLS || !a.is_cons() {
                        cells = 0;
                        self.stack.push(Frame {
                            a,
                            b,
                            next: COMPLETE,
                            mode,
                        });
                    }
                }
                if a.is_cons() && b.is_cons() {
                    let (x, y) = (a.head(), b.head());
                    if x == y {
                        (a, b) = (a.tail(), b.tail());
                        continue 'walk;
                    }
                    cells = CELLS;
                    self.stack.push(Frame {
                        a,
                        b,
                        next: 0,
                        mode,
                    });
                    (a, b) = (x, y);
                    continue 'walk;
                }
                if !(a.is_boxed() && b.is_boxed()) {
                    let same = mode == Mode::Value
                        && match (a.as_float(), b.as_float()) {
                            (Some(f), None) if b.is_small() => compare_integer_float(b, f).is_eq(),
                            (None, Some(f)) if a.is_small() => compare_integer_float(a, f).is_eq(),
                            _ => false,
                        };
                    if same {
                        break 'equal;
                    }
                    return Poll::Ready(false);
                }
                match boxed(a, b, mode, tables, budget) {
                    Boxed::Equal => {}
                    Boxed::Different => return Poll::Ready(false),
                    Boxed::Fields(first) => self.stack.push(Frame {
                        a,
                        b,
                        next: first,
                        mode,
                    }),
                }
            }
            // Find the next pair.
            loop {
                let Some(top) = self.stack.last_mut() else {
                    return Poll::Ready(true);
                };
                mode = top.mode;
                if REMEMBER && top.next == COMPLETE {
                    let (x, y) = (top.a, top.b);
                    self.stack.pop();
                    if let Some(memo) = &mut self.memo {
                        memo.join(x, y, mode);
                    }
                    continue;
                }
                if top.a.is_cons() {
                    (a, b) = (top.a.tail(), top.b.tail());
                    self.stack.pop();
                    break;
                }
                cells = CELLS;
                let h = top.a.header();
                let mut i = top.next;
                while i <= h.arity() && top.a.field(i) == top.b.field(i) {
                    i += 1;
                }
                *budget -= (i - top.next) as i64 / 8;
                if i > h.arity() {
                    self.stack.pop();
                    continue;
                }
                (a, b) = (top.a.term_field(i), top.b.term_field(i));
                top.next = i + 1;
                match h.subtag() {
                    Subtag::FlatMap if i == 1 => mode = Mode::Exact,
                    Subtag::HashMap if a != b => {
                        if a.is_cons() != b.is_cons() {
                            return Poll::Ready(false);
                        }
                        if a.is_cons() {
                            // A leaf: the key now and exactly, the value next.
                            self.stack.push(Frame {
                                a,
                                b,
                                next: 0,
                                mode,
                            });
                            (a, b) = (a.head(), b.head());
                            mode = Mode::Exact;
                        }
                    }
                    _ => {}
                }
                break;
            }
        }
    }
}

/// Whether two fun entries are the same fun.
pub(super) fn same_fun(a: Word, b: Word) -> bool {
    if a.field(1) == b.field(1) {
        return true;
    }
    // SAFETY: a fun's word 1 points to an entry of its VM's table, which lives as long.
    let (x, y) = unsafe {
        (
            &*(a.field(1) as usize as *const FunEntry),
            &*(b.field(1) as usize as *const FunEntry),
        )
    };
    x.module == y.module && x.index == y.index && x.old_uniq == y.old_uniq && x.uniq == y.uniq
}

fn boxed(a: Word, b: Word, mode: Mode, tables: &Tables, budget: &mut i64) -> Boxed {
    let (ha, hb) = (a.header(), b.header());
    let done = |same: bool| if same { Boxed::Equal } else { Boxed::Different };
    match (ha.subtag(), hb.subtag()) {
        (Subtag::Tuple | Subtag::Record, _) => {
            if ha == hb {
                Boxed::Fields(1)
            } else {
                Boxed::Different
            }
        }
        (Subtag::FlatMap, Subtag::FlatMap) if ha == hb => Boxed::Fields(1),
        (Subtag::HashMap, Subtag::HashMap)
            if a.field(1) == b.field(1) && a.field(2) == b.field(2) =>
        {
            Boxed::Fields(3)
        }
        (Subtag::Float, Subtag::Float) => {
            let (x, y) = (a.field(1), b.field(1));
            done(if mode == Mode::Exact && tables.release.zeros_differ() {
                x == y
            } else {
                f64::from_bits(x) == f64::from_bits(y)
            })
        }
        (Subtag::PosBig | Subtag::NegBig, _) if ha == hb => {
            *budget -= ha.arity() as i64 / 8;
            done(compare_numbers(a, b).is_eq())
        }
        (Subtag::Float, Subtag::PosBig | Subtag::NegBig) if mode == Mode::Value => {
            done(compare_integer_float(b, f64::from_bits(a.field(1))).is_eq())
        }
        (Subtag::PosBig | Subtag::NegBig, Subtag::Float) if mode == Mode::Value => {
            done(compare_integer_float(a, f64::from_bits(b.field(1))).is_eq())
        }
        (
            Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits,
            Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits,
        ) => {
            let (Some(x), Some(y)) = (BitsView::of(a), BitsView::of(b)) else {
                return Boxed::Different;
            };
            if x.bit_size != y.bit_size {
                return Boxed::Different;
            }
            *budget -= (x.bit_size >> 10) as i64;
            done(x.equals(&y))
        }
        (Subtag::Ref, Subtag::Ref) => {
            if ha.arity() <= REF_PLAIN + 1 && hb.arity() <= REF_PLAIN + 1 {
                return done(a.field(1) == b.field(1) && a.field(2) == b.field(2));
            }
            done(ref_numbers(a) == ref_numbers(b))
        }
        (Subtag::External, Subtag::External) if a.field(3) == b.field(3) => {
            let (x, y) = (node_entry(a), node_entry(b));
            if x != y {
                return Boxed::Different;
            }
            done(
                pid_parts(a) == pid_parts(b)
                    && port_number(a) == port_number(b)
                    && match (ref_numbers(a), ref_numbers(b)) {
                        // Trailing zeros do not count, and are what the unused numbers are.
                        (Some((x, _)), Some((y, _))) => x == y,
                        _ => true,
                    },
            )
        }
        (Subtag::Fun, Subtag::Fun) if ha == hb && same_fun(a, b) => Boxed::Fields(2),
        (Subtag::Export, Subtag::Export) => done(a.field(1) == b.field(1)),
        _ => Boxed::Different,
    }
}

/// Runs to the end.
#[inline(never)]
pub(super) fn run(a: Word, b: Word, mode: Mode, tables: &Tables) -> bool {
    if a.is_boxed() && b.is_boxed() {
        // Most boxed terms have no fields to walk.
        match boxed(a, b, mode, tables, &mut 0) {
            Boxed::Equal => return true,
            Boxed::Different => return false,
            Boxed::Fields(_) => {}
        }
    }
    let mut w = EqualWalk::new(a, b, mode);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(r) = w.step(tables, &mut budget) {
            return r;
        }
    }
}
