//! `erlang:phash`, the older hash: multiplications by primes.

use std::task::Poll;

use super::phash2::{Phash2Walk, phash2};
use crate::bits::BitsView;
use crate::header::Subtag;
use crate::ids::{pid_parts, port_number, ref_numbers};
use crate::tables::{FunEntry, Tables};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

/// The primes of the hash, numbered as the kinds of terms use them.
const P1: u32 = 268_440_163;
const P2: u32 = 268_439_161;
const P3: u32 = 268_435_459;
const P4: u32 = 268_436_141;
const P5: u32 = 268_438_633;
const P6: u32 = 268_437_017;
const P8: u32 = 268_437_511;
const P9: u32 = 268_439_627;
const P10: u32 = 268_440_479;
const P11: u32 = 268_440_577;
const P12: u32 = 268_440_581;
const P13: u32 = 268_440_593;
const P14: u32 = 268_440_611;
const P15: u32 = 268_440_629;

#[inline]
fn add(h: u32, prime: u32, v: u32) -> u32 {
    h.wrapping_mul(prime).wrapping_add(v)
}

/// The bytes of a value, lowest first.
fn bytes_of(mut h: u32, v: u32, prime: u32) -> u32 {
    for b in v.to_le_bytes() {
        h = add(h, prime, u32::from(b));
    }
    h
}

fn small(h: u32, v: i64) -> u32 {
    let m = v.unsigned_abs();
    let mut h = bytes_of(h, m as u32, P2);
    if m >> 32 != 0 {
        h = bytes_of(h, (m >> 32) as u32, P2);
    }
    h.wrapping_mul(if v < 0 { P4 } else { P3 })
}

/// A record's definition hashes like the tuple that OTP keeps of it: the places of the fields (a
/// tuple), the newer hash of the definition, then the definition's own elements.
fn definition(h: u32, definition: Word, tables: &Tables) -> u32 {
    let parts = definition.as_tuple().unwrap_or(&[]);
    let fields = parts.len().saturating_sub(3) as u32;
    let mut h = (0..fields).fold(h, |h, i| small(h, i64::from(i)));
    h = add(h, P9, fields);
    h = small(h, i64::from(phash2(definition, tables)));
    for a in parts.iter().filter_map(|w| w.as_atom()) {
        h = add(h, P1, tables.atoms.entry(a).hash);
    }
    add(h, P9, fields + 5)
}

#[derive(Clone, Copy)]
enum Frame {
    /// The rest of a list after its head.
    Rest(Word),
    /// A list that ends in something else than a cell is complete.
    ListEnd,
    /// Fields from this one on.
    Fields(Word, usize),
    /// A tuple of this arity is complete.
    TupleEnd(u32),
    /// A record of this many values, plus one for its definition, is complete.
    RecordEnd(u32),
}

/// Computes [`phash`] in steps.
#[derive(Debug)]
pub struct PhashWalk {
    now: Word,
    hash: u32,
    stack: Stack<Frame, 8>,
    /// A map under way, hashed by the newer hash.
    map: Option<Box<Phash2Walk>>,
}

impl PhashWalk {
    /// Starts.
    pub fn new(term: Word) -> PhashWalk {
        PhashWalk {
            now: term,
            hash: 0,
            stack: Stack::new(),
            map: None,
        }
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        f(&mut self.now);
        for e in self.stack.iter_mut() {
            match e {
                Frame::Rest(w) | Frame::Fields(w, _) => f(w),
                Frame::ListEnd | Frame::TupleEnd(_) | Frame::RecordEnd(_) => {}
            }
        }
        if let Some(m) = &mut self.map {
            m.visit_roots(f);
        }
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<u32> {
        loop {
            if let Some(m) = &mut self.map {
                let Poll::Ready(v) = m.step(tables, budget) else {
                    return Poll::Pending;
                };
                self.map = None;
                self.hash = add(self.hash, P13, P14.wrapping_add(v));
            } else {
                if *budget <= 0 {
                    return Poll::Pending;
                }
                *budget -= 1;
                if let Some(t) = self.term(self.now, tables, budget) {
                    self.now = t;
                    continue;
                }
                if self.map.is_some() {
                    continue;
                }
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
                Frame::Rest(t) => {
                    if !t.is_cons() {
                        self.stack.push(Frame::ListEnd);
                    }
                    return Some(t);
                }
                Frame::ListEnd => self.hash = self.hash.wrapping_mul(P8),
                Frame::Fields(t, i) => {
                    if i > t.header().arity() {
                        continue;
                    }
                    self.stack.push(Frame::Fields(t, i + 1));
                    return Some(t.term_field(i));
                }
                Frame::TupleEnd(n) => self.hash = add(self.hash, P9, n),
                Frame::RecordEnd(n) => self.hash = add(self.hash, P15, n),
            }
        }
    }
    fn term(&mut self, t: Word, tables: &Tables, budget: &mut i64) -> Option<Word> {
        let h = self.hash;
        let value = |w: Word| w.as_atom().map_or(0, |a| tables.atoms.entry(a).hash);
        if let Some(v) = t.as_small() {
            self.hash = small(h, v);
            return None;
        }
        if t.is_atom() {
            self.hash = add(h, P1, value(t));
            return None;
        }
        if t.is_nil() {
            self.hash = add(h, P3, 1);
            return None;
        }
        if t.is_cons() {
            let mut t = t;
            let mut seen = 0i64;
            while let Some((head, tail)) = t.as_cons() {
                match head.as_small() {
                    Some(b) if (0..256).contains(&b) => {
                        self.hash = add(self.hash, P2, b as u32);
                    }
                    _ => {
                        self.stack.push(Frame::Rest(tail));
                        return Some(head);
                    }
                }
                t = tail;
                seen += 1;
            }
            *budget -= seen / 8;
            self.stack.push(Frame::ListEnd);
            return Some(t);
        }
        if let Some((n, _)) = pid_parts(t) {
            self.hash = bytes_of(h, n, P5).wrapping_mul(P6);
            return None;
        }
        if let Some(n) = port_number(t) {
            let mut h = h;
            if n >> 32 != 0 {
                h = bytes_of(h, (n >> 32) as u32, P11);
            }
            self.hash = bytes_of(h, n as u32, P9).wrapping_mul(P10);
            return None;
        }
        if let Some((n, _)) = ref_numbers(t) {
            self.hash = bytes_of(h, n[0], P9).wrapping_mul(P10);
            return None;
        }
        if !t.is_boxed() {
            return None;
        }
        let n = t.header().arity();
        match t.header().subtag() {
            Subtag::Tuple => {
                self.stack.push(Frame::TupleEnd(n as u32));
                self.stack.push(Frame::Fields(t, 1));
            }
            Subtag::Float => {
                let mut b = t.field(1);
                if b << 1 == 0 {
                    b = 0;
                }
                self.hash = add(h, P6, b as u32 ^ (b >> 32) as u32);
            }
            s @ (Subtag::PosBig | Subtag::NegBig) => {
                *budget -= n as i64 / 8;
                let mut h = h;
                for i in 1..=n {
                    let d = t.field(i);
                    h = bytes_of(h, d as u32, P2);
                    if i < n || d >> 32 != 0 {
                        h = bytes_of(h, (d >> 32) as u32, P2);
                    }
                }
                self.hash = h.wrapping_mul(if s == Subtag::NegBig { P4 } else { P3 });
            }
            Subtag::FlatMap | Subtag::HashMap => self.map = Some(Box::new(Phash2Walk::new(t))),
            Subtag::Fun => {
                // SAFETY: a fun's word 1 points to an entry of its VM's table.
                let e = unsafe { &*(t.field(1) as usize as *const FunEntry) };
                let h = add(h, P10, n as u32 - 1);
                let h = add(h, P1, value(e.module.word()));
                self.hash = add(add(h, P2, e.index), P2, e.old_uniq);
                self.stack.push(Frame::Fields(t, 2));
            }
            Subtag::Export => {
                let h = add(h, P11, t.term_field(4).small_value() as u32);
                self.hash = add(
                    add(h, P1, value(t.term_field(2))),
                    P1,
                    value(t.term_field(3)),
                );
            }
            Subtag::Record => {
                self.hash = definition(h, t.term_field(1), tables);
                self.stack.push(Frame::RecordEnd(n as u32));
                self.stack.push(Frame::Fields(t, 2));
            }
            _ => {
                if let Some(v) = BitsView::of(t) {
                    *budget -= (v.bit_size >> 7) as i64;
                    self.hash = bits(h, &v);
                }
            }
        }
        None
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Frame")
    }
}

fn bits(mut h: u32, v: &BitsView) -> u32 {
    let bytes = v.to_bytes();
    let whole = v.byte_len();
    for b in &bytes[..whole] {
        h = add(h, P1, u32::from(*b));
    }
    let rest = v.bit_size & 7;
    if rest > 0 {
        h = add(h, P1, u32::from(bytes[whole] >> (8 - rest)))
            .wrapping_mul(P12)
            .wrapping_add(rest as u32);
    }
    add(h, P4, whole as u32)
}

/// The 32-bit older hash: `phash(Term, Range)` is it modulo the range, plus one.
pub fn phash(term: Word, tables: &Tables) -> u32 {
    let mut w = PhashWalk::new(term);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(h) = w.step(tables, &mut budget) {
            return h;
        }
    }
}
