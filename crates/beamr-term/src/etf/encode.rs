//! Terms to bytes.

use std::task::Poll;

use super::{VERSION, local_check, tag};
use crate::atom::Atom;
use crate::bits::BitsView;
use crate::header::{EXTERNAL_PID, EXTERNAL_PORT, REF_ALIAS, Subtag};
use crate::ids::{node_of, pid_parts, port_number, ref_numbers};
use crate::maps;
use crate::order::compare_exact;
use crate::tables::{FunEntry, Tables};
use crate::walk::{Stack, UNLIMITED};
use crate::word::Word;

/// The longest list of bytes that is written as a string.
const MAX_STRING: usize = 0xFFFF;

/// How to encode.
#[derive(Clone, Debug)]
pub struct EncodeOptions {
    /// 0: floats as text; 1: atoms in Latin-1 where possible; 2: all atoms in UTF-8. `None` is the
    /// default of the release (1 before 26, 2 from then on).
    pub minor_version: Option<u8>,
    /// Pairs of maps in the order of their keys.
    pub deterministic: bool,
    /// Deflate at this level (0 to 9) when that makes it shorter.
    pub compressed: Option<u32>,
    /// For this instance alone: `Some` is the secret of the instance.
    pub local: Option<u64>,
    /// The pid that funs name as their creator (before OTP 26).
    pub creator: Word,
    /// Without the version byte (distribution control messages).
    pub bare: bool,
    /// The longest result, in bytes.
    pub max_bytes: usize,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        EncodeOptions {
            minor_version: None,
            deterministic: false,
            compressed: None,
            local: None,
            creator: Word::pid(0),
            bare: false,
            max_bytes: usize::MAX,
        }
    }
}

/// Why a term could not be encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodeError {
    /// The result would be longer than allowed.
    #[error("the encoded term is longer than {0} bytes")]
    TooLarge(usize),
    /// A part has more than 2^32 - 1 elements or bytes.
    #[error("a part of the term has a size of more than 32 bits")]
    SizeLimit,
}

/// Where bytes go.
trait Sink {
    /// Whether only the size is wanted.
    const COUNTS: bool = false;
    fn put(&mut self, bytes: &[u8]);
    fn len(&self) -> usize;
    fn patch(&mut self, at: usize, value: u32);
    fn put_bits(&mut self, view: &BitsView) {
        self.put(&view.to_bytes());
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
    #[inline]
    fn len(&self) -> usize {
        Vec::len(self)
    }
    fn patch(&mut self, at: usize, value: u32) {
        self[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
}

/// Counts.
#[derive(Debug, Default)]
struct Counter(usize);

impl Sink for Counter {
    const COUNTS: bool = true;
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
    #[inline]
    fn len(&self) -> usize {
        self.0
    }
    fn patch(&mut self, _at: usize, _value: u32) {}
    fn put_bits(&mut self, view: &BitsView) {
        self.0 += view.bit_size.div_ceil(8) as usize;
    }
}

#[derive(Clone, Copy)]
enum Frame {
    /// The fields of a boxed object from this one on.
    Fields(Word, usize),
    /// A cell whose head is under way, how many cells there were, where their number goes.
    List(Word, u32, usize),
    /// A flat map: twice the index of the pair, plus one for the value.
    Flat(Word, usize),
    /// The value of a leaf.
    Leaf(Word),
    /// The number of bytes from here on goes here.
    Patch(usize),
    /// Sorted pairs in the walk's list, from this index to that one, twice plus one for a value.
    Sorted(usize, usize),
}

struct Walk<S> {
    out: S,
    stack: Stack<Frame, 8>,
    /// Pairs of maps that are written in order.
    pairs: Vec<(Word, Word)>,
    now: Word,
    utf8: bool,
    text_floats: bool,
    deterministic: bool,
    local: bool,
    creator: Word,
    max_bytes: usize,
}

/// Encodes a term in steps.
pub struct Encoder {
    walk: Walk<Vec<u8>>,
    options: EncodeOptions,
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoder({} bytes)", self.walk.out.len())
    }
}

impl<S: Sink> Walk<S> {
    fn new(out: S, term: Word, tables: &Tables, o: &EncodeOptions) -> Walk<S> {
        let minor = o
            .minor_version
            .unwrap_or(if tables.release.0 >= 26 { 2 } else { 1 });
        Walk {
            out,
            stack: Stack::new(),
            pairs: Vec::new(),
            now: term,
            utf8: minor >= 2 || o.bare,
            text_floats: minor == 0,
            deterministic: o.deterministic,
            local: o.local.is_some(),
            creator: o.creator,
            max_bytes: o.max_bytes,
        }
    }
    #[inline]
    fn u8(&mut self, v: u8) {
        self.out.put(&[v]);
    }
    #[inline]
    fn u32(&mut self, v: u32) {
        self.out.put(&v.to_be_bytes());
    }
    fn size(&mut self, n: u64) -> Result<(), EncodeError> {
        self.u32(u32::try_from(n).map_err(|_| EncodeError::SizeLimit)?);
        Ok(())
    }
    fn atom(&mut self, a: Atom, tables: &Tables) {
        let e = tables.atoms.entry(a);
        let text = e.text();
        if self.utf8 || !e.is_latin1() {
            if text.len() > 255 {
                self.u8(tag::ATOM_UTF8);
                self.out.put(&(text.len() as u16).to_be_bytes());
            } else {
                self.out.put(&[tag::SMALL_ATOM_UTF8, text.len() as u8]);
            }
            self.out.put(text.as_bytes());
        } else {
            self.u8(tag::ATOM);
            let n = text.chars().count() as u16;
            self.out.put(&n.to_be_bytes());
            if text.is_ascii() {
                self.out.put(text.as_bytes());
            } else {
                for c in text.chars() {
                    self.u8(c as u32 as u8);
                }
            }
        }
    }
    fn node(&mut self, id: Word, tables: &Tables) -> u32 {
        let Some((name, creation)) = node_of(id, tables) else {
            return 0;
        };
        if self.local && id.subtag() != Some(Subtag::External) {
            self.u8(tag::NIL);
        } else {
            self.atom(name, tables);
        }
        creation
    }
    fn pid(&mut self, pid: Word, tables: &Tables) {
        let (number, serial) = pid_parts(pid).unwrap_or((0, 0));
        self.u8(tag::NEW_PID);
        let creation = self.node(pid, tables);
        self.u32(number);
        self.u32(serial);
        self.u32(creation);
    }
    fn port(&mut self, port: Word, tables: &Tables) {
        let number = port_number(port).unwrap_or(0);
        let v4 = tables.release.0 >= 26 || number >= 1 << 28;
        self.u8(if v4 { tag::V4_PORT } else { tag::NEW_PORT });
        let creation = self.node(port, tables);
        if v4 {
            self.out.put(&number.to_be_bytes());
        } else {
            self.u32(number as u32);
        }
        self.u32(creation);
    }
    fn reference(&mut self, r: Word, tables: &Tables) {
        let (mut numbers, mut n) = ref_numbers(r).unwrap_or(([0; 5], 3));
        if r.subtag() == Some(Subtag::Ref)
            && r.header().arity() == REF_ALIAS
            && tables.release.0 >= 26
            && let Some((number, serial)) = pid_parts(r.term_field(3))
        {
            (numbers[3], numbers[4], n) = (number, serial, 5);
        }
        self.u8(tag::NEWER_REFERENCE);
        self.out.put(&(n as u16).to_be_bytes());
        let creation = self.node(r, tables);
        self.u32(creation);
        for v in &numbers[..n] {
            self.u32(*v);
        }
    }
    fn magnitude(&mut self, negative: bool, limbs: &[u64]) -> Result<(), EncodeError> {
        let top = limbs.last().map_or(0, |l| 8 - l.leading_zeros() / 8);
        let n = limbs.len().saturating_sub(1) * 8 + top as usize;
        if n < 256 {
            self.out.put(&[tag::SMALL_BIG, n as u8]);
        } else {
            self.u8(tag::LARGE_BIG);
            self.size(n as u64)?;
        }
        self.u8(u8::from(negative));
        let mut left = n;
        for l in limbs {
            let b = l.to_le_bytes();
            let k = left.min(8);
            self.out.put(&b[..k]);
            left -= k;
        }
        Ok(())
    }
    fn integer(&mut self, v: i64) -> Result<(), EncodeError> {
        if let Ok(b) = u8::try_from(v) {
            self.out.put(&[tag::SMALL_INTEGER, b]);
        } else if let Ok(i) = i32::try_from(v) {
            self.u8(tag::INTEGER);
            self.u32(i as u32);
        } else {
            self.magnitude(v < 0, &[v.unsigned_abs()])?;
        }
        Ok(())
    }
    fn float(&mut self, v: f64) {
        if !self.text_floats {
            self.u8(tag::NEW_FLOAT);
            self.out.put(&v.to_bits().to_be_bytes());
            return;
        }
        // As C's `%.20e`, padded with zero bytes.
        let t = format!("{v:.20e}");
        let (digits, exp) = t.split_once('e').unwrap_or((&t, "0"));
        let exp: i32 = exp.parse().unwrap_or(0);
        let sign = if exp < 0 { '-' } else { '+' };
        let text = format!("{digits}e{sign}{:02}", exp.abs());
        let mut b = [0; 31];
        let n = text.len().min(31);
        b[..n].copy_from_slice(&text.as_bytes()[..n]);
        self.u8(tag::FLOAT);
        self.out.put(&b);
    }
    fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<Result<(), EncodeError>> {
        loop {
            if self.out.len() > self.max_bytes {
                return Poll::Ready(Err(EncodeError::TooLarge(self.max_bytes)));
            }
            if *budget <= 0 {
                return Poll::Pending;
            }
            *budget -= 1;
            let next = match self.one(self.now, tables, budget) {
                Ok(None) => self.next(),
                other => other,
            };
            match next {
                Ok(Some(t)) => self.now = t,
                Ok(None) => return Poll::Ready(Ok(())),
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
    }
    fn next(&mut self) -> Result<Option<Word>, EncodeError> {
        loop {
            let Some(top) = self.stack.pop() else {
                return Ok(None);
            };
            match top {
                Frame::Fields(t, i) => {
                    let n = t.header().arity();
                    if i < n {
                        self.stack.push(Frame::Fields(t, i + 1));
                    } else if i > n {
                        continue;
                    }
                    let c = t.term_field(i);
                    if t.header().subtag() == Subtag::HashMap {
                        if c.is_cons() {
                            self.stack.push(Frame::Leaf(c));
                            return Ok(Some(c.head()));
                        }
                        self.stack.push(Frame::Fields(c, 3));
                        continue;
                    }
                    return Ok(Some(c));
                }
                Frame::List(cell, count, at) => {
                    let tail = cell.tail();
                    if tail.is_cons() {
                        let count = count.checked_add(1).ok_or(EncodeError::SizeLimit)?;
                        self.stack.push(Frame::List(tail, count, at));
                        return Ok(Some(tail.head()));
                    }
                    self.out.patch(at, count);
                    return Ok(Some(tail));
                }
                Frame::Flat(map, i) => {
                    let n = maps::size(map);
                    if i + 1 < 2 * n {
                        self.stack.push(Frame::Flat(map, i + 1));
                    }
                    return Ok(Some(if i % 2 == 0 {
                        map.term_field(1).term_field(1 + i / 2)
                    } else {
                        map.term_field(2 + i / 2)
                    }));
                }
                Frame::Leaf(cell) => return Ok(Some(cell.tail())),
                Frame::Patch(at) => {
                    let n = (self.out.len() - at) as u64;
                    self.out
                        .patch(at, u32::try_from(n).map_err(|_| EncodeError::SizeLimit)?);
                }
                Frame::Sorted(i, end) => {
                    let pair = self.pairs[i / 2];
                    if i + 1 < 2 * end {
                        self.stack.push(Frame::Sorted(i + 1, end));
                    }
                    if i % 2 == 1 {
                        if i / 2 + 1 == end {
                            // The last value of this map: its pairs are done with. Those of maps
                            // in the value come after.
                            let start = self.pairs.iter().rposition(|p| p.0.is_none());
                            if let Some(s) = start {
                                self.pairs.truncate(s);
                            }
                        }
                        return Ok(Some(pair.1));
                    }
                    return Ok(Some(pair.0));
                }
            }
        }
    }
    /// Writes a term up to its parts; gives the first part if the parts start at once.
    fn one(
        &mut self,
        t: Word,
        tables: &Tables,
        budget: &mut i64,
    ) -> Result<Option<Word>, EncodeError> {
        if let Some(v) = t.as_small() {
            self.integer(v)?;
            return Ok(None);
        }
        if let Some(a) = t.as_atom() {
            self.atom(a, tables);
            return Ok(None);
        }
        if t.is_cons() {
            if let Some(n) = string_len(t) {
                *budget -= n as i64 / 8;
                self.u8(tag::STRING);
                self.out.put(&(n as u16).to_be_bytes());
                let mut rest = t;
                let mut chunk = [0u8; 64];
                let mut k = 0;
                while let Some((h, tail)) = rest.as_cons() {
                    chunk[k] = h.small_value() as u8;
                    k += 1;
                    if k == chunk.len() {
                        self.out.put(&chunk);
                        k = 0;
                    }
                    rest = tail;
                }
                self.out.put(&chunk[..k]);
                return Ok(None);
            }
            self.u8(tag::LIST);
            let at = self.out.len();
            self.u32(0);
            self.stack.push(Frame::List(t, 1, at));
            return Ok(Some(t.head()));
        }
        if t.is_nil() {
            self.u8(tag::NIL);
            return Ok(None);
        }
        if t.is_local_pid() {
            self.pid(t, tables);
            return Ok(None);
        }
        if t.is_local_port() {
            self.port(t, tables);
            return Ok(None);
        }
        if !t.is_boxed() {
            self.u8(tag::NIL);
            return Ok(None);
        }
        let h = t.header();
        match h.subtag() {
            Subtag::Tuple => {
                let n = h.arity();
                if n <= 255 {
                    self.out.put(&[tag::SMALL_TUPLE, n as u8]);
                } else {
                    self.u8(tag::LARGE_TUPLE);
                    self.size(n as u64)?;
                }
                self.stack.push(Frame::Fields(t, 1));
            }
            Subtag::Float => self.float(f64::from_bits(t.field(1))),
            s @ (Subtag::PosBig | Subtag::NegBig) => {
                *budget -= h.arity() as i64 / 8;
                // SAFETY: the limbs follow the header.
                let limbs = unsafe { std::slice::from_raw_parts(t.ptr().add(1), h.arity()) };
                self.magnitude(s == Subtag::NegBig, limbs)?;
            }
            Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits | Subtag::Match => {
                if let Some(v) = BitsView::of(t) {
                    self.bits(&v, budget)?;
                }
            }
            Subtag::FlatMap => {
                self.u8(tag::MAP);
                let n = maps::size(t);
                self.u32(n as u32);
                if n > 0 {
                    self.stack.push(Frame::Flat(t, 0));
                }
            }
            Subtag::HashMap => {
                self.u8(tag::MAP);
                self.size(maps::size(t) as u64)?;
                if self.deterministic {
                    self.sorted(t, tables, budget);
                } else {
                    self.stack.push(Frame::Fields(t, 3));
                }
            }
            Subtag::Ref => self.reference(t, tables),
            Subtag::External => match t.field(3) {
                EXTERNAL_PID => self.pid(t, tables),
                EXTERNAL_PORT => self.port(t, tables),
                _ => self.reference(t, tables),
            },
            Subtag::Fun => self.fun(t, tables)?,
            Subtag::Export => {
                self.u8(tag::EXPORT);
                for i in [2, 3] {
                    if let Some(a) = t.term_field(i).as_atom() {
                        self.atom(a, tables);
                    }
                }
                self.integer(t.term_field(4).small_value())?;
            }
            Subtag::Record => {
                let def = t.term_field(1).as_tuple().unwrap_or(&[]);
                self.u8(tag::NATIVE_RECORD);
                self.size(h.arity() as u64 - 1)?;
                self.u8(u8::from(def.get(2) == Some(&Word::TRUE)));
                for (i, a) in def.iter().enumerate() {
                    if i != 2
                        && let Some(a) = a.as_atom()
                    {
                        self.atom(a, tables);
                    }
                }
                self.stack.push(Frame::Fields(t, 2));
            }
            Subtag::Reserved => self.u8(tag::NIL),
        }
        Ok(None)
    }
    fn bits(&mut self, v: &BitsView, budget: &mut i64) -> Result<(), EncodeError> {
        *budget -= (v.bit_size >> 12) as i64;
        let rest = v.bit_size & 7;
        let n = v.bit_size.div_ceil(8);
        if self.out.len() as u64 + n > self.max_bytes as u64 {
            return Err(EncodeError::TooLarge(self.max_bytes));
        }
        if rest == 0 {
            self.u8(tag::BINARY);
            self.size(n)?;
        } else {
            self.u8(tag::BIT_BINARY);
            self.size(n)?;
            self.u8(rest as u8);
        }
        self.out.put_bits(v);
        Ok(())
    }
    fn fun(&mut self, t: Word, tables: &Tables) -> Result<(), EncodeError> {
        // SAFETY: a fun's word 1 points to an entry of its VM's table, which lives as long.
        let e = unsafe { &*(t.field(1) as usize as *const FunEntry) };
        let free = t.header().arity() - 1;
        self.u8(tag::NEW_FUN);
        let at = self.out.len();
        self.u32(0);
        self.u8(e.arity as u8);
        self.out.put(&e.uniq);
        self.u32(e.index);
        self.size(free as u64)?;
        self.atom(e.module, tables);
        let numbers = self.out.len();
        self.integer(i64::from(e.index))?;
        self.integer(i64::from(e.old_uniq))?;
        if S::COUNTS && tables.release.0 < 26 {
            // `external_size` of old releases takes five bytes for each of these numbers.
            for _ in self.out.len()..numbers + 10 {
                self.u8(0);
            }
        }
        // From OTP 26 on funs do not know who made them.
        let anonymous = tables.release.0 >= 26;
        self.pid(
            if anonymous {
                Word::pid(0)
            } else {
                self.creator
            },
            tables,
        );
        self.stack.push(Frame::Patch(at));
        self.stack.push(Frame::Fields(t, 2));
        Ok(())
    }
    fn sorted(&mut self, map: Word, tables: &Tables, budget: &mut i64) {
        let n = maps::size(map);
        *budget -= n as i64 * 4;
        // A mark without a key starts the pairs of each map.
        self.pairs.push((Word::NONE, Word::NONE));
        let start = self.pairs.len();
        self.pairs.extend(maps::iter(map));
        self.pairs[start..].sort_by(|a, b| compare_exact(a.0, b.0, tables));
        self.stack.push(Frame::Sorted(2 * start, start + n));
    }
    fn visit_roots(&mut self, mut f: impl FnMut(&mut Word)) {
        f(&mut self.now);
        f(&mut self.creator);
        for e in self.stack.iter_mut() {
            match e {
                Frame::Fields(t, _) | Frame::List(t, ..) | Frame::Flat(t, _) | Frame::Leaf(t) => {
                    f(t);
                }
                Frame::Patch(_) | Frame::Sorted(..) => {}
            }
        }
        for (k, v) in &mut self.pairs {
            if k.is_value() {
                f(k);
                f(v);
            }
        }
    }
}

/// The length of a proper list of bytes that is short enough for a string.
fn string_len(list: Word) -> Option<usize> {
    let mut n = 0;
    let mut rest = list;
    while let Some((h, tail)) = rest.as_cons() {
        n += 1;
        if n > MAX_STRING || !h.as_small().is_some_and(|v| (0..256).contains(&v)) {
            return None;
        }
        rest = tail;
    }
    rest.is_nil().then_some(n)
}

impl Encoder {
    /// Starts.
    pub fn new(term: Word, tables: &Tables, options: EncodeOptions) -> Encoder {
        let mut out = Vec::with_capacity(64);
        if !options.bare {
            out.push(VERSION);
        }
        if options.local.is_some() {
            out.push(tag::LOCAL);
            out.extend_from_slice(&[0; 4]);
        }
        Encoder {
            walk: Walk::new(out, term, tables, &options),
            options,
        }
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, f: impl FnMut(&mut Word)) {
        self.walk.visit_roots(f);
    }
    /// Bytes written so far.
    pub fn written(&self) -> usize {
        self.walk.out.len()
    }
    /// Goes on until done or `budget` is used up. Compressing is one step.
    pub fn step(
        &mut self,
        tables: &Tables,
        budget: &mut i64,
    ) -> Poll<Result<Vec<u8>, EncodeError>> {
        match self.walk.step(tables, budget) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(())) => {
                let mut out = std::mem::take(&mut self.walk.out);
                if let Some(secret) = self.options.local {
                    let check = local_check(&out[6..], secret);
                    out[2..6].copy_from_slice(&check.to_be_bytes());
                }
                *budget -= out.len() as i64 / 64;
                Poll::Ready(Ok(match self.options.compressed {
                    Some(level) if level > 0 && !self.options.bare => {
                        super::inflate::compress(&out, level).unwrap_or(out)
                    }
                    _ => out,
                }))
            }
        }
    }
}

/// The external form of a term.
pub fn encode(
    term: Word,
    tables: &Tables,
    options: &EncodeOptions,
) -> Result<Vec<u8>, EncodeError> {
    let mut e = Encoder::new(term, tables, options.clone());
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(r) = e.step(tables, &mut budget) {
            return r;
        }
    }
}

/// Counts the bytes that [`encode`] gives (without compression), in steps; an upper bound for funs before OTP 26,
/// as there.
pub struct SizeCounter(Walk<Counter>);

impl std::fmt::Debug for SizeCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SizeCounter({})", self.0.out.0)
    }
}

impl SizeCounter {
    /// Starts.
    pub fn new(term: Word, tables: &Tables, options: &EncodeOptions) -> SizeCounter {
        let head = if options.bare { 0 } else { 1 } + if options.local.is_some() { 5 } else { 0 };
        let mut w = Walk::new(Counter(head), term, tables, options);
        // The order of pairs does not change the size.
        w.deterministic = false;
        SizeCounter(w)
    }
    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, f: impl FnMut(&mut Word)) {
        self.0.visit_roots(f);
    }
    /// Goes on until done or `budget` is used up.
    pub fn step(&mut self, tables: &Tables, budget: &mut i64) -> Poll<Result<usize, EncodeError>> {
        self.0
            .step(tables, budget)
            .map(|r| r.map(|()| self.0.out.0))
    }
}

/// How many bytes [`encode`] gives; see [`SizeCounter`].
pub fn external_size(
    term: Word,
    tables: &Tables,
    options: &EncodeOptions,
) -> Result<usize, EncodeError> {
    let mut w = SizeCounter::new(term, tables, options);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(r) = w.step(tables, &mut budget) {
            return r;
        }
    }
}
