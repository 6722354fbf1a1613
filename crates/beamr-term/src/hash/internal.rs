//! The internal hash: folded multiplications over an injective stream of 64-bit values.
//!
//! The stream has what the term has, in order, for [`FLAT`] steps: ordinary terms end within them. What follows then
//! goes into the stream by hashes of its own (and so does the rest of a list after some cells). A long walk can keep those, so
//! that a term that shares much inside takes time in proportion to the words that it really has. The value depends on
//! the term alone, neither on its sharing nor on where a walk stopped.

use std::collections::HashMap;
use std::task::Poll;

use crate::atom::Atom;
use crate::bits::BitsView;
use crate::header::Subtag;
use crate::ids::{node_of, pid_parts, port_number, ref_numbers};
use crate::tables::{FunEntry, Tables};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

const K0: u64 = 0x9E37_79B9_7F4A_7C15;
const K1: u64 = 0xA076_1D64_78BD_642F;
const K2: u64 = 0xE703_7ED1_A0B4_28DB;

/// What a kind of term begins with in the stream.
mod tag {
    pub const SMALL: u64 = 0x51;
    pub const ATOM: u64 = 0x52;
    pub const NIL: u64 = 0x53;
    pub const CONS: u64 = 0x54;
    pub const TUPLE: u64 = 0x55;
    pub const BIG: u64 = 0x56;
    pub const FLOAT: u64 = 0x57;
    pub const BITS: u64 = 0x58;
    pub const PID: u64 = 0x59;
    pub const PORT: u64 = 0x5A;
    pub const REF: u64 = 0x5B;
    pub const FUN: u64 = 0x5C;
    pub const EXPORT: u64 = 0x5D;
    pub const FLAT: u64 = 0x5E;
    pub const HASH: u64 = 0x5F;
    pub const RECORD: u64 = 0x60;
    /// The hash of a term by itself.
    pub const INNER: u64 = 0x61;
}

/// Steps that go into one stream.
const FLAT: i64 = 1 << 14;
/// Cells of a list in one stream behind those.
const CELLS: u32 = 64;
/// Steps behind those before hashes are kept.
const PATIENCE: i64 = 1 << 18;
/// Hashes that are kept at most.
const MAX_KEPT: usize = 1 << 20;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let m = u128::from(a) * u128::from(b);
    m as u64 ^ (m >> 64) as u64
}

#[inline(always)]
fn mix(h: u64, tag: u64, v: u64) -> u64 {
    fold(h ^ v ^ K1, tag.wrapping_mul(K0) ^ K2).wrapping_add(h.rotate_left(23) ^ v)
}

#[inline(always)]
fn seed(salt: u32) -> u64 {
    K0 ^ u64::from(salt).wrapping_mul(K1)
}

#[inline(always)]
fn finish(h: u64) -> u64 {
    let h = fold(h ^ K2, K0);
    h ^ h >> 32
}

#[inline]
fn atom(h: u64, a: Atom, salt: u32, tables: &Tables) -> u64 {
    let e = tables.atoms.entry(a);
    let mut h = mix(
        h,
        tag::ATOM,
        u64::from(e.hash) << 32 | e.text().len() as u64,
    );
    h = mix(h, tag::ATOM, e.prefix);
    if salt > 0 {
        // What the entry keeps did not tell two keys apart: take the whole text.
        h = bytes(h, e.text().as_bytes());
    }
    h
}

fn bytes(mut h: u64, b: &[u8]) -> u64 {
    let mut chunks = b.chunks_exact(8);
    for c in &mut chunks {
        let mut x = [0; 8];
        x.copy_from_slice(c);
        h = mix(h, tag::BITS, u64::from_be_bytes(x));
    }
    let r = chunks.remainder();
    if !r.is_empty() {
        let mut x = [0; 8];
        x[..r.len()].copy_from_slice(r);
        h = mix(h, tag::BITS, u64::from_be_bytes(x));
    }
    h
}

/// The internal hash of a term. Different salts give independent hashes.
#[inline]
pub fn internal_hash(term: Word, salt: u32, tables: &Tables) -> u64 {
    if let Some(v) = term.as_small() {
        return finish(mix(seed(salt), tag::SMALL, v as u64));
    }
    if let Some(a) = term.as_atom() {
        return finish(atom(seed(salt), a, salt, tables));
    }
    slow(term, salt, tables)
}

#[inline(never)]
fn slow(term: Word, salt: u32, tables: &Tables) -> u64 {
    let mut w = InternalHash::new(term, salt);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(h) = w.step(tables, &mut budget) {
            return h;
        }
    }
}

#[derive(Clone, Copy)]
struct Frame {
    term: Word,
    next: usize,
}

impl Frame {
    /// The next term of the object; `None` at its end.
    #[inline(always)]
    fn next(stack: &mut Stack<Frame, 8>) -> Option<Word> {
        loop {
            let top = stack.last_mut()?;
            if top.term.is_cons() {
                let t = top.term.tail();
                stack.pop();
                return Some(t);
            }
            if top.next > top.term.header().arity() {
                stack.pop();
                continue;
            }
            let t = top.term.term_field(top.next);
            top.next += 1;
            return Some(t);
        }
    }
}

/// An object that is hashed by itself.
#[derive(Clone, Copy, Debug)]
struct Inner {
    /// The object as it was entered.
    start: Word,
    /// The object, or the cell of the list that is at hand.
    term: Word,
    /// The next field; of a cell 0 for its head, 1 for its tail.
    next: usize,
    /// Cells of this stream.
    cells: u32,
    /// The stream that its hash goes into.
    outer: u64,
}

/// What a walk has after [`FLAT`] steps.
#[derive(Debug)]
struct Long {
    stack: Vec<Inner>,
    /// Steps until hashes are kept.
    patience: i64,
    /// Hashes of objects.
    kept: HashMap<u64, u64>,
}

/// Computes [`internal_hash`] in steps.
#[derive(Debug)]
pub struct InternalHash {
    h: u64,
    salt: u32,
    /// The term at hand; `NONE` when it went into the stream of a long walk.
    now: Word,
    stack: Stack<Frame, 8>,
    /// Steps left for one stream.
    left: i64,
    long: Option<Box<Long>>,
}

impl InternalHash {
    /// Starts.
    pub fn new(term: Word, salt: u32) -> InternalHash {
        InternalHash {
            h: seed(salt),
            salt,
            now: term,
            stack: Stack::new(),
            left: FLAT,
            long: None,
        }
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        if self.now.is_value() {
            f(&mut self.now);
        }
        for e in self.stack.iter_mut() {
            f(&mut e.term);
        }
        if let Some(long) = &mut self.long {
            // Objects move.
            long.kept.clear();
            for e in &mut long.stack {
                f(&mut e.start);
                f(&mut e.term);
            }
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<u64> {
        if self.long.is_none() {
            let all = (*budget).min(self.left);
            let mut left = all;
            let done = self.flat(tables, &mut left);
            *budget -= all - left;
            self.left -= all - left;
            if done.is_ready() || self.left > 0 {
                return done;
            }
            self.long = Some(Box::new(Long {
                stack: Vec::new(),
                patience: PATIENCE,
                kept: HashMap::new(),
            }));
        }
        let Some(mut long) = self.long.take() else {
            return Poll::Pending;
        };
        let done = self.long(&mut long, tables, budget);
        self.long = Some(long);
        done
    }
    fn flat(&mut self, tables: &Tables, budget: &mut i64) -> Poll<u64> {
        let mut h = self.h;
        let mut t = self.now;
        loop {
            if *budget <= 0 {
                self.h = h;
                self.now = t;
                return Poll::Pending;
            }
            *budget -= 1;
            if t.is_cons() {
                h = mix(h, tag::CONS, 0);
                self.stack.push(Frame { term: t, next: 1 });
                t = t.head();
                continue;
            }
            let first;
            (h, first) = self.one(h, t, tables, budget);
            if first > 0 {
                self.stack.push(Frame {
                    term: t,
                    next: first,
                });
            }
            match Frame::next(&mut self.stack) {
                Some(next) => t = next,
                None => return Poll::Ready(finish(h)),
            }
        }
    }
    fn long(&mut self, long: &mut Long, tables: &Tables, budget: &mut i64) -> Poll<u64> {
        let mut h = self.h;
        if self.now.is_value() {
            let t = std::mem::replace(&mut self.now, Word::NONE);
            h = self.child(long, h, t, tables, budget);
        }
        loop {
            if *budget <= 0 {
                self.h = h;
                return Poll::Pending;
            }
            *budget -= 1;
            long.patience -= 1;
            let Some(top) = long.stack.last_mut() else {
                match Frame::next(&mut self.stack) {
                    Some(t) => h = self.child(long, h, t, tables, budget),
                    None => return Poll::Ready(finish(h)),
                }
                continue;
            };
            let t;
            if top.term.is_cons() {
                if top.next == 0 {
                    top.next = 1;
                    t = top.term.head();
                } else {
                    t = top.term.tail();
                    if t.is_cons() && top.cells < CELLS {
                        top.term = t;
                        top.next = 0;
                        top.cells += 1;
                        h = mix(h, tag::CONS, 0);
                        continue;
                    }
                    // The tail is the last child.
                    top.term = Word::NIL;
                }
            } else if top.term.is_boxed() && top.next <= top.term.header().arity() {
                t = top.term.term_field(top.next);
                top.next += 1;
            } else {
                let (start, outer) = (top.start, top.outer);
                long.stack.pop();
                if long.patience < 0 {
                    if long.kept.len() >= MAX_KEPT {
                        long.kept.clear();
                    }
                    long.kept.insert(start.bits(), h);
                }
                h = mix(outer, tag::INNER, h);
                continue;
            }
            h = self.child(long, h, t, tables, budget);
        }
    }
    /// The stream `h` behind a term of a long walk, or the term's own stream when it has terms inside.
    fn child(&self, long: &mut Long, h: u64, t: Word, tables: &Tables, budget: &mut i64) -> u64 {
        if !(t.is_cons() || t.is_boxed()) {
            return self.one(h, t, tables, budget).0;
        }
        if let Some(known) = long.kept.get(&t.bits()) {
            return mix(h, tag::INNER, *known);
        }
        let own = seed(self.salt);
        let (next, inner) = if t.is_cons() {
            (0, mix(own, tag::CONS, 0))
        } else if holds_terms(t) {
            let (inner, first) = self.one(own, t, tables, budget);
            (first, inner)
        } else {
            return self.one(h, t, tables, budget).0;
        };
        long.stack.push(Inner {
            start: t,
            term: t,
            next,
            cells: 1,
            outer: h,
        });
        inner
    }
    /// The stream behind one term that is no list, or behind the head of an object, and from which field on terms follow (0
    /// for none).
    #[inline]
    fn one(&self, h: u64, t: Word, tables: &Tables, budget: &mut i64) -> (u64, usize) {
        if let Some(v) = t.as_small() {
            return (mix(h, tag::SMALL, v as u64), 0);
        }
        if let Some(a) = t.as_atom() {
            return (atom(h, a, self.salt, tables), 0);
        }
        if t.is_nil() {
            return (mix(h, tag::NIL, 0), 0);
        }
        let node = |h| match node_of(t, tables) {
            Some((name, creation)) => mix(
                atom(h, name, self.salt, tables),
                tag::PID,
                u64::from(creation),
            ),
            None => h,
        };
        if let Some((n, s)) = pid_parts(t) {
            return (node(mix(h, tag::PID, u64::from(n) | u64::from(s) << 32)), 0);
        }
        if let Some(n) = port_number(t) {
            return (node(mix(h, tag::PORT, n)), 0);
        }
        if let Some((n, _)) = ref_numbers(t) {
            let mut h = mix(h, tag::REF, u64::from(n[0]) | u64::from(n[1]) << 32);
            h = mix(h, tag::REF, u64::from(n[2]) | u64::from(n[3]) << 32);
            return (node(mix(h, tag::REF, u64::from(n[4]))), 0);
        }
        if !t.is_boxed() {
            return (h, 0);
        }
        let hd = t.header();
        let n = hd.arity() as u64;
        let (tg, v, first) = match hd.subtag() {
            Subtag::Tuple => (tag::TUPLE, n, 1),
            Subtag::Record => (tag::RECORD, n, 1),
            Subtag::FlatMap => (tag::FLAT, n, 1),
            Subtag::HashMap => (
                tag::HASH,
                t.field(1) << 16 ^ t.term_field(2).small_value() as u64,
                3,
            ),
            Subtag::Float => {
                let mut bits = t.field(1);
                if bits << 1 == 0 && !tables.release.zeros_differ() {
                    bits = 0;
                }
                return (mix(h, tag::FLOAT, bits), 0);
            }
            s @ (Subtag::PosBig | Subtag::NegBig) => {
                *budget -= n as i64 / 8;
                let mut h = mix(h, tag::BIG, n << 1 | u64::from(s == Subtag::NegBig));
                for i in 1..=n as usize {
                    h = mix(h, tag::BIG, t.field(i));
                }
                return (h, 0);
            }
            Subtag::Fun => {
                // SAFETY: a fun's word 1 points to an entry of its VM's table.
                let e = unsafe { &*(t.field(1) as usize as *const FunEntry) };
                let mut h = atom(h, e.module, self.salt, tables);
                h = mix(
                    h,
                    tag::FUN,
                    u64::from(e.index) | u64::from(e.old_uniq) << 32,
                );
                (tag::FUN, bytes(mix(h, tag::FUN, n), &e.uniq), 2)
            }
            Subtag::Export => {
                let mut h = mix(h, tag::EXPORT, t.term_field(4).small_value() as u64);
                for i in 2..4 {
                    if let Some(a) = t.term_field(i).as_atom() {
                        h = atom(h, a, self.salt, tables);
                    }
                }
                return (h, 0);
            }
            _ => {
                let Some(v) = BitsView::of(t) else {
                    return (h, 0);
                };
                *budget -= (v.bit_size >> 10) as i64;
                let mut h = mix(h, tag::BITS, v.bit_size);
                if let Some(b) = v.as_bytes() {
                    return (bytes(h, b), 0);
                }
                let mut at = 0;
                while at < v.bit_size {
                    let k = (v.bit_size - at).min(64);
                    h = mix(h, tag::BITS, v.get_bits(at, k) << ((64 - k) & 63));
                    at += k;
                }
                return (h, 0);
            }
        };
        (mix(h, tg, v), first)
    }
}

/// Whether a boxed term has terms inside that are hashed.
fn holds_terms(t: Word) -> bool {
    matches!(
        t.header().subtag(),
        Subtag::Tuple | Subtag::Record | Subtag::FlatMap | Subtag::HashMap | Subtag::Fun
    )
}
