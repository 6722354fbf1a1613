//! Order: the walk that says which term is less.

use std::cmp::Ordering;
use std::task::Poll;

use super::Mode;
use super::equal::same_fun;
use super::hash_maps::{HashCompare, Next};
use super::memo::{CELLS, Memo, REMEMBER_AFTER, patiently};
use super::number::{compare_float, compare_integer_float};
use crate::arith::compare_numbers;
use crate::bits::BitsView;
use crate::header::{EXTERNAL_PID, EXTERNAL_PORT, Subtag};
use crate::ids::{node_of, pid_parts, port_number, ref_numbers};
use crate::tables::{FunEntry, Tables};
use crate::walk::Stack;
use crate::word::Word;

/// Two objects whose rest is still to compare (as in the equality walk). `a` is no value when the
/// frame stands for the innermost comparison of two hash maps.
#[derive(Clone, Copy)]
struct Frame {
    a: Word,
    b: Word,
    next: usize,
    mode: Mode,
}

/// Compares two terms, in steps.
#[derive(Debug)]
pub struct CompareWalk {
    stack: Stack<Frame, 8>,
    maps: Vec<HashCompare>,
    now: Option<(Word, Word, Mode)>,
    /// Pairs until the walk starts to remember.
    patience: i64,
    memo: Option<Box<Memo>>,
}

/// `next` of a frame that stands for two objects whose comparison ends there.
const COMPLETE: usize = usize::MAX;

/// What comparing two terms asks for next.
enum Step {
    Done(Ordering),
    /// Fields from this index on.
    Fields(usize),
    /// The keys of flat maps, then their values.
    FlatMap,
    HashMap,
}

impl CompareWalk {
    /// Starts.
    pub fn new(a: Word, b: Word, mode: Mode) -> CompareWalk {
        CompareWalk {
            stack: Stack::new(),
            maps: Vec::new(),
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
            if e.a.is_value() {
                f(&mut e.a);
                f(&mut e.b);
            }
        }
        for m in &mut self.maps {
            m.visit_roots(&mut f);
        }
        if let Some((a, b, _)) = &mut self.now {
            f(a);
            f(b);
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<Ordering> {
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
    fn walk<const REMEMBER: bool>(&mut self, tables: &Tables, budget: &mut i64) -> Poll<Ordering> {
        let Some((mut a, mut b, mut mode)) = self.now.take() else {
            return Poll::Ready(Ordering::Equal);
        };
        // Cells since the last that is remembered.
        let mut cells = CELLS;
        loop {
            let mut result = Ordering::Equal;
            if a != b && !(REMEMBER && self.known(a, b, mode)) {
                if *budget <= 0 {
                    self.now = Some((a, b, mode));
                    return Poll::Pending;
                }
                *budget -= 1;
                if REMEMBER && (a.is_cons() && b.is_cons() || a.is_boxed() && b.is_boxed()) {
                    cells += 1;
                    if cells >= CELLS || !a.is_cons() {
                        cells = 0;
                        self.push(a, b, COMPLETE, mode);
                    }
                }
                if a.is_cons() && b.is_cons() {
                    let (x, y) = (a.head(), b.head());
                    if x == y {
                        (a, b) = (a.tail(), b.tail());
                        continue;
                    }
                    cells = CELLS;
                    self.push(a, b, 0, mode);
                    (a, b) = (x, y);
                    continue;
                }
                match one(a, b, mode, tables, budget) {
                    Step::Done(o) => result = o,
                    Step::Fields(first) => self.push(a, b, first, mode),
                    Step::FlatMap => {
                        self.push(a, b, 2, mode);
                        (a, b) = (a.term_field(1), b.term_field(1));
                        mode = Mode::Exact;
                        continue;
                    }
                    Step::HashMap => {
                        self.push(Word::NONE, Word::NONE, 0, mode);
                        self.maps.push(HashCompare::new(a, b, mode));
                    }
                }
            }
            // Find the next pair. A difference ends everything up to a comparison of hash maps.
            loop {
                let Some(top) = self.stack.last_mut() else {
                    return Poll::Ready(result);
                };
                if top.a.is_none() {
                    let Some(m) = self.maps.last_mut() else {
                        return Poll::Ready(result);
                    };
                    match m.resume(result, budget) {
                        Next::Compare(x, y, md) => {
                            (a, b, mode) = (x, y, md);
                            break;
                        }
                        Next::Done(o) => {
                            result = o;
                            self.maps.pop();
                            self.stack.pop();
                            continue;
                        }
                    }
                }
                if result != Ordering::Equal {
                    self.stack.pop();
                    continue;
                }
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
                let n = top.a.header().arity();
                let mut i = top.next;
                while i <= n && top.a.field(i) == top.b.field(i) {
                    i += 1;
                }
                *budget -= (i - top.next) as i64 / 8;
                if i > n {
                    self.stack.pop();
                    continue;
                }
                (a, b) = (top.a.term_field(i), top.b.term_field(i));
                top.next = i + 1;
                break;
            }
        }
    }
    /// Whether two objects are known to be equal.
    fn known(&mut self, a: Word, b: Word, mode: Mode) -> bool {
        let objects = a.is_cons() && b.is_cons() || a.is_boxed() && b.is_boxed();
        objects && self.memo.as_mut().is_some_and(|m| m.same(a, b, mode))
    }
    #[inline]
    fn push(&mut self, a: Word, b: Word, next: usize, mode: Mode) {
        self.stack.push(Frame { a, b, next, mode });
    }
}

/// The place of a type in the order.
fn rank(w: Word) -> u8 {
    if w.is_small() {
        return 0;
    }
    if w.is_cons() {
        return 10;
    }
    if w.is_nil() {
        return 9;
    }
    if w.is_local_port() {
        return 4;
    }
    if w.is_local_pid() {
        return 5;
    }
    if !w.is_boxed() {
        return 1;
    }
    match w.header().subtag() {
        Subtag::PosBig | Subtag::NegBig | Subtag::Float => 0,
        Subtag::Ref => 2,
        Subtag::Fun | Subtag::Export => 3,
        Subtag::External => match w.field(3) {
            EXTERNAL_PID => 5,
            EXTERNAL_PORT => 4,
            _ => 2,
        },
        Subtag::Tuple => 6,
        Subtag::Record => 7,
        Subtag::FlatMap | Subtag::HashMap => 8,
        _ => 11,
    }
}

fn pairs(map: Word) -> u64 {
    match map.header().subtag() {
        Subtag::FlatMap => map.header().arity() as u64 - 1,
        _ => map.term_field(1).small_value() as u64,
    }
}

fn atoms(a: Word, b: Word, tables: &Tables) -> Ordering {
    match (a.as_atom(), b.as_atom()) {
        (Some(x), Some(y)) => tables.atoms.compare(x, y),
        _ => Ordering::Equal,
    }
}

fn nodes(a: Word, b: Word, tables: &Tables) -> Ordering {
    match (node_of(a, tables), node_of(b, tables)) {
        (Some((x, c)), Some((y, d))) => tables.atoms.compare(x, y).then(c.cmp(&d)),
        _ => Ordering::Equal,
    }
}

fn one(a: Word, b: Word, mode: Mode, tables: &Tables, budget: &mut i64) -> Step {
    use Step::{Done, Fields};
    let (ra, rb) = (rank(a), rank(b));
    if ra != rb {
        return Done(ra.cmp(&rb));
    }
    match ra {
        0 => Done(match (a.as_float(), b.as_float()) {
            (None, None) => {
                if a.is_boxed() && b.is_boxed() {
                    *budget -= a.header().arity().min(b.header().arity()) as i64 / 8;
                }
                compare_numbers(a, b)
            }
            (Some(x), Some(y)) => {
                compare_float(x, y, mode == Mode::Exact && tables.release.zeros_differ())
            }
            (None, Some(f)) => {
                if mode == Mode::Exact {
                    Ordering::Less
                } else {
                    compare_integer_float(a, f)
                }
            }
            (Some(f), None) => {
                if mode == Mode::Exact {
                    Ordering::Greater
                } else {
                    compare_integer_float(b, f).reverse()
                }
            }
        }),
        1 => Done(atoms(a, b, tables)),
        2 => Done(nodes(a, b, tables).then_with(|| {
            // The last number counts most.
            match (ref_numbers(a), ref_numbers(b)) {
                (Some((x, _)), Some((y, _))) => x.iter().rev().cmp(y.iter().rev()),
                _ => Ordering::Equal,
            }
        })),
        3 => funs(a, b, tables),
        4 => Done(nodes(a, b, tables).then_with(|| port_number(a).cmp(&port_number(b)))),
        5 => {
            let key = |w| pid_parts(w).map(|(n, s)| (s, n));
            Done(key(a).cmp(&key(b)).then_with(|| nodes(a, b, tables)))
        }
        6 => {
            let o = a.header().arity().cmp(&b.header().arity());
            if o.is_ne() { Done(o) } else { Fields(1) }
        }
        7 => {
            // Module, name, exported or not; then the number of fields, their names, the values.
            let (da, db) = (a.term_field(1), b.term_field(1));
            let o = match (da.as_tuple(), db.as_tuple()) {
                (Some(x), Some(y)) => x
                    .iter()
                    .zip(y)
                    .take(3)
                    .map(|(p, q)| atoms(*p, *q, tables))
                    .find(|o| o.is_ne())
                    .unwrap_or_else(|| x.len().cmp(&y.len())),
                _ => Ordering::Equal,
            };
            if o.is_ne() { Done(o) } else { Fields(1) }
        }
        8 => {
            let o = pairs(a).cmp(&pairs(b));
            if o.is_ne() {
                return Done(o);
            }
            match (a.header().subtag(), b.header().subtag()) {
                (Subtag::FlatMap, Subtag::FlatMap) => Step::FlatMap,
                (Subtag::HashMap, Subtag::HashMap) => Step::HashMap,
                // Sizes tell the two kinds apart.
                (x, y) => Done((x as u8).cmp(&(y as u8))),
            }
        }
        // Both are nil.
        9 | 10 => Done(Ordering::Equal),
        _ => match (BitsView::of(a), BitsView::of(b)) {
            (Some(x), Some(y)) => {
                *budget -= (x.bit_size.min(y.bit_size) >> 10) as i64;
                Done(x.compare(&y))
            }
            _ => Done(Ordering::Equal),
        },
    }
}

fn funs(a: Word, b: Word, tables: &Tables) -> Step {
    match (a.header().subtag(), b.header().subtag()) {
        (Subtag::Fun, Subtag::Fun) => {
            // SAFETY: a fun's word 1 points to an entry of its VM's table, which lives as long.
            let (x, y) = unsafe {
                (
                    &*(a.field(1) as usize as *const FunEntry),
                    &*(b.field(1) as usize as *const FunEntry),
                )
            };
            let o = tables
                .atoms
                .compare(x.module, y.module)
                .then(x.index.cmp(&y.index))
                .then(x.old_uniq.cmp(&y.old_uniq))
                .then(a.header().arity().cmp(&b.header().arity()));
            if o.is_ne() {
                return Step::Done(o);
            }
            if !same_fun(a, b) && x.uniq != y.uniq {
                return Step::Done(x.uniq.cmp(&y.uniq));
            }
            Step::Fields(2)
        }
        (Subtag::Export, Subtag::Export) => {
            let at = |i| atoms(a.term_field(i), b.term_field(i), tables);
            Step::Done(at(2).then_with(|| at(3)).then_with(|| {
                a.term_field(4)
                    .small_value()
                    .cmp(&b.term_field(4).small_value())
            }))
        }
        // `fun M:F/A` is greater.
        (Subtag::Fun, _) => Step::Done(Ordering::Less),
        _ => Step::Done(Ordering::Greater),
    }
}
