//! `erlang:phash2`: Bob Jenkins' mixing of 32-bit values, in OTP's order.
//!
//! The value of a whole term depends on the hash so far only through the mixing, except that an
//! atom or nil at the very beginning is its plain value. Pairs of maps are hashed each from zero
//! and joined by exclusive or, so that their order does not matter.
//!
//! OTP 29 keeps (and so hashes) the values of a native record in the order of the numbers that the
//! names of its fields have in its atom table; here they come in the order of the definition.

use std::task::Poll;

use crate::atom::Atom;
use crate::bits::BitsView;
use crate::header::Subtag;
use crate::ids::{pid_parts, port_number, ref_numbers};
use crate::maps;
use crate::tables::{FunEntry, Tables};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

const GOLDEN: u32 = 0x9E37_79B9;

/// The constant for the kind of term numbered `n`.
const fn kind(n: u32) -> u32 {
    GOLDEN.wrapping_mul(n)
}

const SMALL: u32 = kind(1);
const NIL: u32 = kind(2);
const ATOM: u32 = kind(3);
const BYTES: u32 = kind(4);
const PID: u32 = kind(5);
const PORT: u32 = kind(6);
const REF: u32 = kind(7);
const TUPLE: u32 = kind(9);
const NEGATIVE: u32 = kind(10);
const POSITIVE: u32 = kind(11);
const FLOAT: u32 = kind(12);
const BINARY: u32 = kind(13);
const EXPORT: u32 = kind(14);
const BITS: u32 = kind(15);
const MAP: u32 = kind(16);
const MAP_END: u32 = kind(19);
const RECORD: u32 = kind(23);

/// What nil is when it comes first, and the number it is mixed with otherwise.
const NIL_FIRST: u32 = 3_468_870_702;
const NIL_NUMBER: u32 = 2;

#[inline(always)]
fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 13);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 8);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 13);
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 12);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 16);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 5);
    a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> 3);
    b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << 10);
    c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> 15);
    (a, b, c)
}

/// Mixes two values of a kind into the hash.
#[inline(always)]
fn two(h: u32, x: u32, y: u32, kind: u32) -> u32 {
    mix(kind.wrapping_add(x), kind.wrapping_add(y), h).2
}

#[inline(always)]
fn one(h: u32, x: u32, kind: u32) -> u32 {
    two(h, x, 0, kind)
}

fn small(h: u32, v: i64) -> u32 {
    if (-(1 << 27)..1 << 27).contains(&v) {
        let y = v as i32;
        let h = if y < 0 {
            one(h, y.wrapping_neg() as u32, SMALL)
        } else {
            h
        };
        return one(h, y as u32, SMALL);
    }
    let m = v.unsigned_abs();
    let k = if v < 0 { NEGATIVE } else { POSITIVE };
    two(h, m as u32, (m >> 32) as u32, k)
}

fn atom_value(a: Atom, tables: &Tables) -> u32 {
    tables.atoms.entry(a).hash
}

fn word_at(b: &[u8], i: usize) -> u32 {
    u32::from_le_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]])
}

/// Hashes bytes, twelve at a time.
fn block(b: &[u8], initial: u32) -> u32 {
    let (mut x, mut y, mut z) = (GOLDEN, GOLDEN, initial);
    let mut chunks = b.chunks_exact(12);
    for c in &mut chunks {
        (x, y, z) = mix(
            x.wrapping_add(word_at(c, 0)),
            y.wrapping_add(word_at(c, 4)),
            z.wrapping_add(word_at(c, 8)),
        );
    }
    z = z.wrapping_add(b.len() as u32);
    for (i, v) in chunks.remainder().iter().enumerate() {
        let v = u32::from(*v);
        match i {
            0..=3 => x = x.wrapping_add(v << (8 * i)),
            4..=7 => y = y.wrapping_add(v << (8 * (i - 4))),
            // The lowest byte is the length's.
            _ => z = z.wrapping_add(v << (8 * (i - 7))),
        }
    }
    mix(x, y, z).2
}

fn bits(h: u32, v: &BitsView) -> u32 {
    let initial = BINARY.wrapping_add(h);
    if v.bit_size == 0 {
        return initial;
    }
    let rest = v.bit_size & 7;
    let bytes = v.to_bytes();
    let whole = v.byte_len();
    // Sizes count modulo 2^32, as in OTP.
    let h = block(&bytes[..whole & 0xFFFF_FFFF], initial);
    if rest == 0 {
        return h;
    }
    two(h, rest as u32, u32::from(bytes[whole] >> (8 - rest)), BITS)
}

#[derive(Clone, Copy)]
enum Frame {
    /// The rest of a list.
    Tail(Word),
    /// Fields of a boxed object from this one on.
    Fields(Word, usize),
    /// Flat map: twice the number of the next pair, plus one for its value.
    Flat(Word, usize),
    /// Children of a trie node from this one on.
    Node(Word, usize),
    /// The value of a leaf.
    Value(Word),
    /// The hash of a pair is complete.
    Pair,
    /// All pairs are: the hash before the map, and the pairs of the map around it.
    End(u32, u32),
}

/// Computes [`phash2`] in steps.
#[derive(Debug)]
pub struct Phash2Walk {
    now: Word,
    hash: u32,
    pairs: u32,
    stack: Stack<Frame, 8>,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Frame")
    }
}

impl Phash2Walk {
    /// Starts.
    pub fn new(term: Word) -> Phash2Walk {
        Phash2Walk {
            now: term,
            hash: 0,
            pairs: 0,
            stack: Stack::new(),
        }
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        f(&mut self.now);
        for e in self.stack.iter_mut() {
            match e {
                Frame::Tail(w)
                | Frame::Fields(w, _)
                | Frame::Flat(w, _)
                | Frame::Node(w, _)
                | Frame::Value(w) => f(w),
                Frame::Pair | Frame::End(..) => {}
            }
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<u32> {
        loop {
            if *budget <= 0 {
                return Poll::Pending;
            }
            *budget -= 1;
            if let Some(t) = self.term(self.now, tables, budget) {
                self.now = t;
                continue;
            }
            match self.next() {
                Some(t) => self.now = t,
                None => return Poll::Ready(self.hash),
            }
        }
    }
    fn next(&mut self) -> Option<Word> {
        loop {
            match self.stack.pop()? {
                Frame::Tail(w) | Frame::Value(w) => return Some(w),
                Frame::Fields(t, i) => {
                    if i > t.header().arity() {
                        continue;
                    }
                    self.stack.push(Frame::Fields(t, i + 1));
                    return Some(t.term_field(i));
                }
                Frame::Flat(t, i) => {
                    if i % 2 == 1 {
                        self.stack.push(Frame::Flat(t, i + 1));
                        self.stack.push(Frame::Pair);
                        return Some(t.term_field(2 + i / 2));
                    }
                    if i / 2 == maps::size(t) {
                        continue;
                    }
                    self.stack.push(Frame::Flat(t, i + 1));
                    return Some(t.term_field(1).term_field(1 + i / 2));
                }
                Frame::Node(t, i) => {
                    if i > t.header().arity() {
                        continue;
                    }
                    self.stack.push(Frame::Node(t, i + 1));
                    let c = t.term_field(i);
                    if c.is_cons() {
                        self.stack.push(Frame::Pair);
                        self.stack.push(Frame::Value(c.tail()));
                        return Some(c.head());
                    }
                    self.stack.push(Frame::Node(c, 3));
                }
                Frame::Pair => {
                    self.pairs ^= self.hash;
                    self.hash = 0;
                }
                Frame::End(before, outer) => {
                    self.hash = one(before, self.pairs, MAP_END);
                    self.pairs = outer;
                }
            }
        }
    }
    /// Hashes one term up to its parts; gives the next term when it follows at once.
    fn term(&mut self, t: Word, tables: &Tables, budget: &mut i64) -> Option<Word> {
        let h = self.hash;
        if let Some(v) = t.as_small() {
            self.hash = small(h, v);
            return None;
        }
        if let Some(a) = t.as_atom() {
            let v = atom_value(a, tables);
            self.hash = if h == 0 { v } else { one(h, v, ATOM) };
            return None;
        }
        if t.is_nil() {
            self.hash = if h == 0 {
                NIL_FIRST
            } else {
                one(h, NIL_NUMBER, NIL)
            };
            return None;
        }
        if t.is_cons() {
            return Some(self.list(t, budget));
        }
        if let Some((n, _)) = pid_parts(t) {
            self.hash = one(h, n, PID);
            return None;
        }
        if let Some(n) = port_number(t) {
            self.hash = two(h, n as u32, (n >> 32) as u32, PORT);
            return None;
        }
        if let Some((n, _)) = ref_numbers(t) {
            self.hash = one(h, n[0], REF);
            return None;
        }
        if !t.is_boxed() {
            return None;
        }
        let n = t.header().arity();
        match t.header().subtag() {
            Subtag::Tuple => {
                self.hash = one(h, n as u32, TUPLE);
                self.stack.push(Frame::Fields(t, 1));
            }
            Subtag::Float => {
                let mut b = t.field(1);
                if b << 1 == 0 {
                    b = 0;
                }
                self.hash = two(h, (b >> 32) as u32, b as u32, FLOAT);
            }
            s @ (Subtag::PosBig | Subtag::NegBig) => {
                *budget -= n as i64 / 8;
                let k = if s == Subtag::NegBig {
                    NEGATIVE
                } else {
                    POSITIVE
                };
                for i in 1..=n {
                    let d = t.field(i);
                    self.hash = two(self.hash, d as u32, (d >> 32) as u32, k);
                }
            }
            Subtag::FlatMap => {
                let n = maps::size(t);
                self.hash = one(h, n as u32, MAP);
                if n > 0 {
                    self.open(Frame::Flat(t, 0));
                }
            }
            Subtag::HashMap => {
                self.hash = one(h, maps::size(t) as u32, MAP);
                self.open(Frame::Node(t, 3));
            }
            Subtag::Fun => {
                // SAFETY: a fun's word 1 points to an entry of its VM's table.
                let e = unsafe { &*(t.field(1) as usize as *const FunEntry) };
                let h = two(h, n as u32 - 1, atom_value(e.module, tables), SMALL);
                self.hash = two(h, e.index, e.old_uniq, SMALL);
                self.stack.push(Frame::Fields(t, 2));
            }
            Subtag::Export => {
                let v = |i| {
                    t.term_field(i)
                        .as_atom()
                        .map_or(0, |a| atom_value(a, tables))
                };
                let arity = t.term_field(4).small_value() as u32;
                self.hash = one(two(h, arity, v(2), SMALL), v(3), EXPORT);
            }
            Subtag::Record => self.record(t, tables),
            _ => {
                if let Some(v) = BitsView::of(t) {
                    *budget -= (v.bit_size >> 9) as i64;
                    self.hash = bits(h, &v);
                }
            }
        }
        None
    }
    fn open(&mut self, frame: Frame) {
        self.stack.push(Frame::End(self.hash, self.pairs));
        self.stack.push(frame);
        self.hash = 0;
        self.pairs = 0;
    }
    /// Bytes at the start of a list go four at a time; then head and tail follow.
    fn list(&mut self, list: Word, budget: &mut i64) -> Word {
        let (mut packed, mut n) = (0u32, 0);
        let mut t = list;
        let mut seen = 0i64;
        while let Some((head, tail)) = t.as_cons() {
            let Some(b) = head.as_small().filter(|v| (0..256).contains(v)) else {
                break;
            };
            packed = packed << 8 | b as u32;
            n += 1;
            if n == 4 {
                self.hash = one(self.hash, packed, BYTES);
                (packed, n) = (0, 0);
            }
            t = tail;
            seen += 1;
        }
        *budget -= seen / 8;
        if n > 0 {
            self.hash = one(self.hash, packed, BYTES);
        }
        match t.as_cons() {
            Some((head, tail)) => {
                self.stack.push(Frame::Tail(tail));
                head
            }
            None => t,
        }
    }
    /// The number of fields and the hash of the definition, then the values.
    fn record(&mut self, t: Word, tables: &Tables) {
        // Definitions are short tuples of atoms.
        let definition = phash2(t.term_field(1), tables);
        let fields = t.header().arity() as u32 - 1;
        self.hash = two(self.hash, fields, definition, RECORD);
        self.stack.push(Frame::Fields(t, 2));
    }
}

/// The 32-bit portable hash: `phash2(Term, 2^32)`. `phash2/1` is its low 27 bits, `phash2/2` it
/// modulo the range.
pub fn phash2(term: Word, tables: &Tables) -> u32 {
    let mut w = Phash2Walk::new(term);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(h) = w.step(tables, &mut budget) {
            return h;
        }
    }
}
