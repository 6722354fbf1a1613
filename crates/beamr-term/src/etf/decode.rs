//! Bytes to terms.

use std::task::Poll;

use super::inflate::{Inflated, Inflater};
use super::{DecodeError, DecodeErrorKind, VERSION, local_check, tag};
use crate::alloc::{Alloc, Build};
use crate::arith::max_limbs;
use crate::atom::{Atom, AtomError};
use crate::header::{Header, MAX_FLAT_MAP, MAX_HEAP_BINARY, Subtag};
use crate::ids::{self, MAX_REF_NUMBERS, PID_NUMBER_BITS};
use crate::literal::empty_tuple;
use crate::maps;
use crate::off_heap::{BinaryRef, ResourceRef};
use crate::tables::{Release, Tables};
use crate::walk::UNLIMITED;
use crate::word::Word;

use DecodeErrorKind as Kind;

/// Local references have less than this in their first number.
const MAX_REFERENCE: u32 = 1 << 18;
/// How many bits the numbers of local ports have.
const fn local_port_bits(release: Release) -> u32 {
    if release.0 >= 26 { 60 } else { 28 }
}
/// The most captured values of a fun, and the highest arity.
const MAX_ARG: u32 = 255;

/// What a reference of this node turns out to be.
#[derive(Debug, Default)]
pub enum LocalRef {
    /// A plain one.
    #[default]
    Plain,
    /// An alias of this local pid.
    Alias(Word),
    /// One that owns a resource.
    Magic(ResourceRef),
}

/// How to decode.
#[derive(Clone, Copy)]
pub struct DecodeOptions<'a> {
    /// Only atoms and functions that exist already.
    pub safe: bool,
    /// The most words of heap that may be built.
    pub max_words: usize,
    /// The most bytes that a compressed term may inflate to.
    pub max_inflated: usize,
    /// The namespace that funs belong to.
    pub namespace: u32,
    /// The atoms that cache references mean; none: such references are errors.
    pub atom_cache: &'a [Atom],
    /// Looks up references of this node.
    pub local_ref: Option<&'a dyn Fn([u32; 3]) -> LocalRef>,
    /// The secret of the instance, for terms encoded with `local`.
    pub local: Option<u64>,
    /// Without the version byte.
    pub bare: bool,
}

impl Default for DecodeOptions<'_> {
    fn default() -> Self {
        DecodeOptions {
            safe: false,
            max_words: usize::MAX,
            max_inflated: usize::MAX,
            namespace: 0,
            atom_cache: &[],
            local_ref: None,
            local: None,
            bare: false,
        }
    }
}

impl std::fmt::Debug for DecodeOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecodeOptions")
            .field("safe", &self.safe)
            .field("max_words", &self.max_words)
            .finish_non_exhaustive()
    }
}

/// Where the next terms go.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// Into consecutive words.
    Fill { at: *mut u64, left: u32 },
    /// Into the heads of consecutive cells, then the last tail.
    List { at: *mut u64, left: u32 },
    /// Keys and values onto the value stack from `base` on; then they become a map.
    Map { base: usize, left: u64 },
}

enum Input {
    Plain,
    Inflating(Inflater),
    Inflated(Vec<u8>),
}

/// Decodes in steps. The place that is built in must stay the same from step to step, and what it
/// holds must not move (a fragment).
pub struct Decoder<B> {
    bytes: B,
    input: Input,
    pos: usize,
    /// Bytes of `bytes` that the term takes, when it was inflated.
    used: usize,
    local: bool,
    words: usize,
    frames: Vec<Frame>,
    values: Vec<Word>,
    root: Word,
}

// SAFETY: the pointers go into the place that is built in, which only the caller of `step` reaches.
unsafe impl<B: Send> Send for Decoder<B> {}

impl<B> std::fmt::Debug for Decoder<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decoder(at byte {})", self.pos)
    }
}

/// Decodes a term; gives it and how many bytes it took.
pub fn decode(
    bytes: &[u8],
    tables: &Tables,
    options: DecodeOptions<'_>,
    alloc: &mut impl Alloc,
) -> Result<(Word, usize), DecodeError> {
    let mut d = Decoder::new(bytes);
    loop {
        let mut budget = UNLIMITED;
        if let Poll::Ready(r) = d.step(tables, options, alloc, &mut budget) {
            return r;
        }
    }
}

impl<B: AsRef<[u8]>> Decoder<B> {
    /// Starts.
    pub fn new(bytes: B) -> Decoder<B> {
        Decoder {
            bytes,
            input: Input::Plain,
            pos: 0,
            used: 0,
            local: false,
            words: 0,
            frames: Vec::new(),
            values: Vec::new(),
            root: Word::NONE,
        }
    }
    /// Goes on until done or `budget` is used up. The options must be the same in every step.
    pub fn step(
        &mut self,
        tables: &Tables,
        options: DecodeOptions<'_>,
        alloc: &mut impl Alloc,
        budget: &mut i64,
    ) -> Poll<Result<(Word, usize), DecodeError>> {
        match self.run(tables, &options, alloc, budget) {
            Ok(false) => Poll::Pending,
            Ok(true) => {
                let used = match self.input {
                    Input::Plain => self.pos,
                    _ => self.used,
                };
                Poll::Ready(Ok((self.root, used)))
            }
            Err((offset, kind)) => Poll::Ready(Err(DecodeError { offset, kind })),
        }
    }

    fn run(
        &mut self,
        tables: &Tables,
        options: &DecodeOptions<'_>,
        alloc: &mut impl Alloc,
        budget: &mut i64,
    ) -> Result<bool, (usize, Kind)> {
        let whole = self.bytes.as_ref();
        if self.pos == 0 && matches!(self.input, Input::Plain) {
            let mut at = 0;
            if !options.bare {
                if whole.first() != Some(&VERSION) {
                    return Err((0, Kind::NotVersioned));
                }
                at = 1;
                match whole.get(1) {
                    Some(&tag::COMPRESSED) => {
                        let Some(size) = whole.get(2..6) else {
                            return Err((2, Kind::Truncated));
                        };
                        let size = u32::from_be_bytes([size[0], size[1], size[2], size[3]]);
                        if size as usize > options.max_inflated {
                            return Err((2, Kind::TooLarge));
                        }
                        self.input = Input::Inflating(Inflater::new(size as usize));
                        at = 0;
                    }
                    Some(&tag::LOCAL) => {
                        if options.local.is_none() || whole.len() < 6 {
                            return Err((1, Kind::NotLocal));
                        }
                        self.local = true;
                        at = 6;
                    }
                    _ => {}
                }
            }
            self.pos = at;
        }
        if let Input::Inflating(i) = &mut self.input {
            match i.step(&whole[6..], budget) {
                Inflated::More => return Ok(false),
                Inflated::Invalid => return Err((6, Kind::InvalidCompression)),
                Inflated::Done(used) => {
                    self.used = 6 + used;
                    self.input = Input::Inflated(std::mem::take(&mut i.out));
                    self.pos = 0;
                }
            }
        }
        let bytes = match &self.input {
            Input::Inflated(v) => v.as_slice(),
            _ => whole,
        };
        let mut w = Work {
            r: Reader {
                bytes,
                pos: self.pos,
                local: self.local,
                tables,
                options,
            },
            alloc,
            words: &mut self.words,
            frames: &mut self.frames,
            values: &mut self.values,
            root: &mut self.root,
        };
        let done = w.run(budget);
        let at = w.r.pos;
        self.pos = at;
        let done = done.map_err(|k| (at, k))?;
        if done && self.local {
            // The check value is of the bytes that the term takes.
            let check = options.local.map(|s| local_check(&whole[6..at], s));
            if check.map(u32::to_be_bytes).as_ref().map(|c| &c[..]) != whole.get(2..6) {
                return Err((2, Kind::NotLocal));
            }
        }
        Ok(done)
    }
}

/// The bytes and what they mean.
struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    local: bool,
    tables: &'a Tables,
    options: &'a DecodeOptions<'a>,
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, n: usize) -> Result<&'a [u8], Kind> {
        let end = self.pos.checked_add(n).ok_or(Kind::Truncated)?;
        let b = self.bytes.get(self.pos..end).ok_or(Kind::Truncated)?;
        self.pos = end;
        Ok(b)
    }
    #[inline]
    fn left(&self) -> usize {
        self.bytes.len() - self.pos
    }
    #[inline]
    fn u8(&mut self) -> Result<u8, Kind> {
        let b = *self.bytes.get(self.pos).ok_or(Kind::Truncated)?;
        self.pos += 1;
        Ok(b)
    }
    fn u16(&mut self) -> Result<usize, Kind> {
        let b = self.take(2)?;
        Ok(usize::from(u16::from_be_bytes([b[0], b[1]])))
    }
    fn u32(&mut self) -> Result<u32, Kind> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    /// A count of things that take at least `each` bytes each.
    fn count(&mut self, each: usize) -> Result<u32, Kind> {
        let n = self.u32()?;
        if (n as usize).saturating_mul(each) > self.left() {
            return Err(Kind::Truncated);
        }
        Ok(n)
    }
    fn atom_error(e: AtomError) -> Kind {
        match e {
            AtomError::Full(_) => Kind::AtomTableFull,
            _ => Kind::InvalidAtom,
        }
    }
    fn utf8(&mut self, n: usize) -> Result<Atom, Kind> {
        let b = self.take(n)?;
        let atoms = &self.tables.atoms;
        if self.options.safe {
            let text = std::str::from_utf8(b).map_err(|_| Kind::InvalidAtom)?;
            return atoms.lookup(text).ok_or(Kind::UnknownAtom);
        }
        atoms.intern_utf8(b).map_err(Self::atom_error)
    }
    fn latin1(&mut self, n: usize) -> Result<Atom, Kind> {
        let b = self.take(n)?;
        let atoms = &self.tables.atoms;
        if self.options.safe {
            let text: String = b.iter().map(|c| char::from(*c)).collect();
            return atoms.lookup(&text).ok_or(Kind::UnknownAtom);
        }
        atoms.intern_latin1(b).map_err(Self::atom_error)
    }
    /// The atom after one of its tags; `None` for other tags.
    #[inline]
    fn atom_of(&mut self, t: u8) -> Result<Option<Atom>, Kind> {
        Ok(Some(match t {
            tag::SMALL_ATOM_UTF8 => {
                let n = self.u8()?;
                self.utf8(usize::from(n))?
            }
            tag::ATOM_UTF8 => {
                let n = self.u16()?;
                self.utf8(n)?
            }
            tag::SMALL_ATOM => {
                let n = self.u8()?;
                self.latin1(usize::from(n))?
            }
            tag::ATOM => {
                let n = self.u16()?;
                self.latin1(n)?
            }
            tag::ATOM_CACHE_REF => {
                let i = self.u8()?;
                *self
                    .options
                    .atom_cache
                    .get(usize::from(i))
                    .ok_or(Kind::AtomCache(i))?
            }
            _ => return Ok(None),
        }))
    }
    fn atom(&mut self) -> Result<Atom, Kind> {
        let t = self.u8()?;
        self.atom_of(t)?.ok_or(Kind::UnknownTag(t))
    }
    /// The name of a node; `None` for this one in a local term.
    fn node(&mut self) -> Result<Option<Atom>, Kind> {
        if self.local && self.bytes.get(self.pos) == Some(&tag::NIL) {
            self.pos += 1;
            return Ok(None);
        }
        self.atom().map(Some)
    }
    /// A creation of one byte, which has two bits.
    fn tiny_creation(&mut self) -> Result<u32, Kind> {
        let c = self.u8()?;
        if c > 3 {
            return Err(Kind::InvalidId);
        }
        Ok(u32::from(c))
    }
    fn is_local(&self, name: Option<Atom>, creation: u32) -> bool {
        name.is_none_or(|n| self.tables.local_node() == (n, creation))
    }
    fn remote(&self, name: Option<Atom>, creation: u32) -> Result<(Atom, u32), Kind> {
        Ok((name.ok_or(Kind::InvalidId)?, creation))
    }
    fn small(&mut self) -> Result<i64, Kind> {
        let t = self.u8()?;
        match t {
            tag::SMALL_INTEGER => Ok(i64::from(self.u8()?)),
            tag::INTEGER => Ok(i64::from(self.u32()? as i32)),
            tag::SMALL_BIG => {
                let n = usize::from(self.u8()?);
                let sign = self.u8()?;
                let b = self.take(n)?;
                if n > 8 {
                    return Err(Kind::InvalidFun);
                }
                let mut v = [0; 8];
                v[..n].copy_from_slice(b);
                let v = i64::from_le_bytes(v);
                Ok(if sign == 0 { v } else { v.wrapping_neg() })
            }
            _ => Err(Kind::UnknownTag(t)),
        }
    }
}

struct Work<'a, A> {
    r: Reader<'a>,
    alloc: &'a mut A,
    words: &'a mut usize,
    frames: &'a mut Vec<Frame>,
    values: &'a mut Vec<Word>,
    root: &'a mut Word,
}

impl<A: Alloc> Work<'_, A> {
    /// Charges words of heap.
    #[inline]
    fn charge(&mut self, n: usize) -> Result<(), Kind> {
        *self.words = self.words.saturating_add(n);
        if *self.words > self.r.options.max_words {
            return Err(Kind::TooLarge);
        }
        Ok(())
    }
    fn run(&mut self, budget: &mut i64) -> Result<bool, Kind> {
        loop {
            if *budget <= 0 {
                return Ok(false);
            }
            *budget -= 1;
            if let Some(w) = self.one(budget)?
                && self.deliver(w, budget)?
            {
                return Ok(true);
            }
        }
    }
    /// Puts a term in its place; true when it was the last.
    #[inline]
    fn deliver(&mut self, w: Word, budget: &mut i64) -> Result<bool, Kind> {
        let mut w = w;
        loop {
            let Some(top) = self.frames.last_mut() else {
                *self.root = w;
                return Ok(true);
            };
            // SAFETY: the frames' words are of objects that this decoder allocated and that are
            // still to be filled.
            match top {
                Frame::Fill { at, left } => {
                    unsafe {
                        **at = w.bits();
                        *at = at.add(1);
                    }
                    *left -= 1;
                    if *left == 0 {
                        self.frames.pop();
                    }
                }
                Frame::List { at, left } => {
                    unsafe { **at = w.bits() };
                    *left -= 1;
                    if *left > 0 {
                        *at = unsafe { at.add(2) };
                    } else {
                        *top = Frame::Fill {
                            at: unsafe { at.add(1) },
                            left: 1,
                        };
                    }
                }
                Frame::Map { base, left } => {
                    let base = *base;
                    *left -= 1;
                    let done = *left == 0;
                    self.values.push(w);
                    if done {
                        self.frames.pop();
                        w = self.map(base, budget)?;
                        continue;
                    }
                }
            }
            return Ok(self.finished());
        }
    }
    /// Whether the root is there and nothing is left to fill.
    #[inline]
    fn finished(&self) -> bool {
        self.frames.is_empty() && self.root.is_value()
    }
    /// Delivers a container whose parts follow, and its frame.
    fn open(&mut self, w: Word, frame: Frame, budget: &mut i64) -> Result<(), Kind> {
        self.deliver(w, budget)?;
        self.frames.push(frame);
        Ok(())
    }
    fn map(&mut self, base: usize, budget: &mut i64) -> Result<Word, Kind> {
        let pairs: Vec<(Word, Word)> = self.values[base..]
            .chunks_exact(2)
            .map(|p| (p[0], p[1]))
            .collect();
        self.values.truncate(base);
        let n = pairs.len();
        *budget -= n as i64;
        self.charge(if n <= MAX_FLAT_MAP { 2 * n + 3 } else { 5 * n })?;
        let w = maps::from_pairs(self.alloc, &pairs, self.r.tables);
        if maps::size(w) != n {
            return Err(Kind::DuplicateKey);
        }
        Ok(w)
    }
    /// Fresh words that hold valid terms until they are filled.
    fn fresh(&mut self, header: Header, words: usize) -> Result<*mut u64, Kind> {
        self.charge(words + 1)?;
        let p = self.alloc.alloc(words + 1);
        // SAFETY: as many fresh words.
        unsafe {
            *p = header.0;
            for i in 1..=words {
                *p.add(i) = Word::NIL.bits();
            }
        }
        Ok(p)
    }
    /// Reads one term: gives it, or `None` when it is delivered already and its parts follow.
    fn one(&mut self, budget: &mut i64) -> Result<Option<Word>, Kind> {
        let t = self.r.u8()?;
        Ok(Some(match t {
            tag::SMALL_INTEGER => Word::fixnum(i64::from(self.r.u8()?)),
            tag::INTEGER => Word::fixnum(i64::from(self.r.u32()? as i32)),
            tag::SMALL_BIG => {
                let n = usize::from(self.r.u8()?);
                self.big(n, budget)?
            }
            tag::LARGE_BIG => {
                let n = self.r.u32()? as usize;
                self.big(n, budget)?
            }
            tag::SMALL_ATOM_UTF8
            | tag::ATOM_UTF8
            | tag::SMALL_ATOM
            | tag::ATOM
            | tag::ATOM_CACHE_REF => self
                .r
                .atom_of(t)?
                .map(Atom::word)
                .ok_or(Kind::UnknownTag(t))?,
            tag::NIL => Word::NIL,
            tag::SMALL_TUPLE => {
                let n = u32::from(self.r.u8()?);
                return self.tuple(n, budget);
            }
            tag::LARGE_TUPLE => {
                let n = self.r.count(1)?;
                return self.tuple(n, budget);
            }
            tag::LIST => {
                let n = self.r.count(1)?;
                if n == 0 {
                    // What follows is the tail, that is, the whole.
                    return Ok(None);
                }
                let cells = n as usize;
                self.charge(2 * cells)?;
                let p = self.alloc.alloc(2 * cells);
                *budget -= i64::from(n) / 8;
                // SAFETY: `n` fresh cells.
                unsafe {
                    for i in 0..cells {
                        let c = p.add(2 * i);
                        *c = Word::NIL.bits();
                        *c.add(1) = if i + 1 == cells {
                            Word::NIL.bits()
                        } else {
                            Word::list(c.add(2)).bits()
                        };
                    }
                    self.open(Word::list(p), Frame::List { at: p, left: n }, budget)?;
                }
                return Ok(None);
            }
            tag::STRING => {
                let n = self.r.u16()?;
                let b = self.r.take(n)?;
                self.charge(2 * n)?;
                *budget -= n as i64 / 8;
                if n == 0 {
                    Word::NIL
                } else {
                    let p = self.alloc.alloc(2 * n);
                    // SAFETY: `n` fresh cells.
                    unsafe {
                        for (i, v) in b.iter().enumerate() {
                            let c = p.add(2 * i);
                            *c = Word::fixnum(i64::from(*v)).bits();
                            *c.add(1) = Word::list(c.add(2)).bits();
                        }
                        *p.add(2 * n - 1) = Word::NIL.bits();
                        Word::list(p)
                    }
                }
            }
            tag::NEW_FLOAT => {
                let b = self.r.take(8)?;
                let v = f64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
                self.float(v)?
            }
            tag::FLOAT => {
                let b = self.r.take(31)?;
                let v = text_float(b).ok_or(Kind::InvalidFloat)?;
                self.float(v)?
            }
            tag::BINARY => {
                let n = self.r.count(1)? as usize;
                self.bits(n, 8, budget)?
            }
            tag::BIT_BINARY => {
                let n = self.r.u32()? as usize;
                let last = self.r.u8()?;
                if n > self.r.left() {
                    return Err(Kind::Truncated);
                }
                if (last == 0) != (n == 0) || last > 8 {
                    return Err(Kind::InvalidBits);
                }
                self.bits(n, last, budget)?
            }
            tag::MAP => {
                let n = self.r.count(2)?;
                if n == 0 {
                    self.charge(2)?;
                    maps::empty(self.alloc)
                } else {
                    self.frames.push(Frame::Map {
                        base: self.values.len(),
                        left: 2 * u64::from(n),
                    });
                    return Ok(None);
                }
            }
            tag::PID | tag::NEW_PID => self.pid(t)?,
            tag::PORT | tag::NEW_PORT | tag::V4_PORT => self.port(t)?,
            tag::REFERENCE | tag::NEW_REFERENCE | tag::NEWER_REFERENCE => self.reference(t)?,
            tag::EXPORT => self.export()?,
            tag::NEW_FUN => return self.fun(budget),
            tag::NATIVE_RECORD if self.r.tables.release >= Release(29) => {
                return self.record(budget);
            }
            _ => return Err(Kind::UnknownTag(t)),
        }))
    }
    fn float(&mut self, v: f64) -> Result<Word, Kind> {
        if !v.is_finite() {
            return Err(Kind::InvalidFloat);
        }
        self.charge(2)?;
        Ok(self.alloc.float(v))
    }
    fn big(&mut self, n: usize, budget: &mut i64) -> Result<Word, Kind> {
        let negative = self.r.u8()? != 0;
        let b = self.r.take(n)?;
        let n = b.iter().rposition(|v| *v != 0).map_or(0, |i| i + 1);
        let b = &b[..n];
        let limbs = n.div_ceil(8);
        if limbs > max_limbs(self.r.tables.release) {
            return Err(Kind::IntegerTooLarge);
        }
        self.charge(limbs + 1)?;
        *budget -= limbs as i64 / 8;
        let limb = |c: &[u8]| {
            let mut v = [0; 8];
            v[..c.len()].copy_from_slice(c);
            u64::from_le_bytes(v)
        };
        if limbs <= 4 {
            let mut v = [0; 4];
            for (x, c) in v.iter_mut().zip(b.chunks(8)) {
                *x = limb(c);
            }
            return Ok(self.alloc.big(negative, &v[..limbs]));
        }
        let v: Vec<u64> = b.chunks(8).map(limb).collect();
        Ok(self.alloc.big(negative, &v))
    }
    fn tuple(&mut self, n: u32, budget: &mut i64) -> Result<Option<Word>, Kind> {
        if n == 0 {
            return Ok(Some(empty_tuple()));
        }
        if n as usize > self.r.left() {
            return Err(Kind::Truncated);
        }
        let p = self.fresh(Header::new(Subtag::Tuple, n as usize), n as usize)?;
        *budget -= i64::from(n) / 8;
        // SAFETY: a complete tuple whose elements are filled next.
        unsafe {
            let f = Frame::Fill {
                at: p.add(1),
                left: n,
            };
            self.open(Word::boxed(p), f, budget)?;
        }
        Ok(None)
    }
    /// `n` bytes of which the last has `last` bits.
    fn bits(&mut self, n: usize, last: u8, budget: &mut i64) -> Result<Word, Kind> {
        let b = self.r.take(n)?;
        *budget -= n as i64 / 512;
        let bits = if n == 0 {
            0
        } else {
            (n as u64 - 1) * 8 + u64::from(last)
        };
        let clear = |p: *mut u8| {
            if last < 8 && n > 0 {
                // SAFETY: the last of the `n` bytes just written.
                unsafe { *p.add(n - 1) &= !(0xFF >> last) };
            }
        };
        if n <= MAX_HEAP_BINARY {
            self.charge(2 + n.div_ceil(8))?;
            let (w, p) = self.alloc.heap_bits(bits);
            // SAFETY: room for `n` bytes.
            unsafe { std::ptr::copy_nonoverlapping(b.as_ptr(), p, n) };
            clear(p);
            return Ok(w);
        }
        self.charge(5 + n.div_ceil(8))?;
        let block = BinaryRef::from_bytes(b);
        clear(block.data());
        Ok(self.alloc.refc_binary(block, bits))
    }
    fn pid(&mut self, t: u8) -> Result<Word, Kind> {
        let name = self.r.node()?;
        let number = self.r.u32()?;
        let serial = self.r.u32()?;
        let creation = if t == tag::PID {
            self.r.tiny_creation()?
        } else {
            self.r.u32()?
        };
        if self.r.is_local(name, creation) {
            if number >> PID_NUMBER_BITS != 0 {
                return Err(Kind::InvalidId);
            }
            return Ok(Word::pid(
                u64::from(number) | u64::from(serial) << PID_NUMBER_BITS,
            ));
        }
        let (name, creation) = self.r.remote(name, creation)?;
        self.charge(5)?;
        let node = self.r.tables.node(name, creation);
        Ok(ids::external_pid(self.alloc, node, number, serial))
    }
    fn port(&mut self, t: u8) -> Result<Word, Kind> {
        let name = self.r.node()?;
        let number = if t == tag::V4_PORT {
            u64::from(self.r.u32()?) << 32 | u64::from(self.r.u32()?)
        } else {
            u64::from(self.r.u32()?)
        };
        let creation = if t == tag::PORT {
            self.r.tiny_creation()?
        } else {
            self.r.u32()?
        };
        if self.r.is_local(name, creation) {
            if number >> local_port_bits(self.r.tables.release) != 0 {
                return Err(Kind::InvalidId);
            }
            return Ok(Word::port(number));
        }
        let (name, creation) = self.r.remote(name, creation)?;
        self.charge(5)?;
        let node = self.r.tables.node(name, creation);
        Ok(ids::external_port(self.alloc, node, number))
    }
    fn reference(&mut self, t: u8) -> Result<Word, Kind> {
        let count = if t == tag::REFERENCE {
            1
        } else {
            self.r.u16()?
        };
        if count == 0 || count > MAX_REF_NUMBERS {
            return Err(Kind::InvalidId);
        }
        let name = self.r.node()?;
        let mut numbers = [0; MAX_REF_NUMBERS];
        let creation = if t == tag::REFERENCE {
            numbers[0] = self.r.u32()?;
            self.r.tiny_creation()?
        } else {
            let c = if t == tag::NEW_REFERENCE {
                self.r.tiny_creation()?
            } else {
                self.r.u32()?
            };
            for v in &mut numbers[..count] {
                *v = self.r.u32()?;
            }
            c
        };
        if t != tag::NEWER_REFERENCE && numbers[0] >= MAX_REFERENCE {
            return Err(Kind::InvalidId);
        }
        if !self.r.is_local(name, creation) {
            let (name, creation) = self.r.remote(name, creation)?;
            self.charge(8)?;
            let node = self.r.tables.node(name, creation);
            return Ok(ids::external_ref(self.alloc, node, &numbers[..count]));
        }
        // Five numbers are an alias: the last two are its pid.
        if numbers[0] >= MAX_REFERENCE || count == 4 {
            return Err(Kind::InvalidId);
        }
        self.charge(6)?;
        let [a, b, c, number, serial] = numbers;
        let three = [a, b, c];
        let kind = match self.r.options.local_ref {
            Some(f) => f(three),
            None if count == 5 => {
                if number >> PID_NUMBER_BITS != 0 {
                    return Err(Kind::InvalidId);
                }
                LocalRef::Alias(Word::pid(
                    u64::from(number) | u64::from(serial) << PID_NUMBER_BITS,
                ))
            }
            None => LocalRef::Plain,
        };
        Ok(match kind {
            LocalRef::Alias(pid) => self.alloc.alias_reference(three, pid),
            LocalRef::Magic(r) => self.alloc.magic_reference(three, r),
            LocalRef::Plain => self.alloc.reference(three),
        })
    }
    fn export(&mut self) -> Result<Word, Kind> {
        let module = self.r.atom()?;
        let function = self.r.atom()?;
        let arity = self.r.small()?;
        let arity = u32::try_from(arity)
            .ok()
            .filter(|a| *a <= MAX_ARG)
            .ok_or(Kind::InvalidFun)?;
        let exports = &self.r.tables.exports;
        let id = if self.r.options.safe {
            exports
                .lookup(module, function, arity)
                .ok_or(Kind::UnknownExport)?
        } else {
            exports
                .id(module, function, arity)
                .map_err(|_| Kind::ExportTableFull)?
        };
        self.charge(5)?;
        Ok(self
            .alloc
            .export_fun(id, module.word(), function.word(), arity))
    }
    fn fun(&mut self, budget: &mut i64) -> Result<Option<Word>, Kind> {
        // The size is wrong in what some releases wrote.
        self.r.take(4)?;
        let arity = u32::from(self.r.u8()?);
        let mut uniq = [0; 16];
        uniq.copy_from_slice(self.r.take(16)?);
        let index = self.r.u32()?;
        let free = self.r.u32()?;
        if free > MAX_ARG {
            return Err(Kind::InvalidFun);
        }
        let module = self.r.atom()?;
        self.r.small()?;
        let old_uniq = self.r.small()? as u32;
        let t = self.r.u8()?;
        if t != tag::PID && t != tag::NEW_PID {
            return Err(Kind::InvalidFun);
        }
        self.pid(t)?;
        let ns = self.r.options.namespace;
        let e = self
            .r
            .tables
            .funs
            .entry(ns, module, index, old_uniq, uniq, arity, free);
        let n = free as usize;
        let p = self.fresh(Header::new(Subtag::Fun, n + 1), n + 1)?;
        // SAFETY: a complete fun whose captured values are filled next.
        unsafe {
            *p.add(1) = e as usize as u64;
            let w = Word::boxed(p);
            if n == 0 {
                return Ok(Some(w));
            }
            let f = Frame::Fill {
                at: p.add(2),
                left: free,
            };
            self.open(w, f, budget)?;
        }
        Ok(None)
    }
    fn record(&mut self, budget: &mut i64) -> Result<Option<Word>, Kind> {
        let n = self.r.count(2)? as usize;
        let flags = self.r.u8()?;
        if flags > 1 {
            return Err(Kind::InvalidRecord);
        }
        let module = self.r.atom()?;
        let name = self.r.atom()?;
        let def = self.fresh(Header::new(Subtag::Tuple, 3 + n), 3 + n)?;
        *budget -= n as i64;
        // SAFETY: the words of the fresh tuple.
        unsafe {
            *def.add(1) = module.word().bits();
            *def.add(2) = name.word().bits();
            *def.add(3) = Word::boolean(flags == 1).bits();
            for i in 0..n {
                *def.add(4 + i) = self.r.atom()?.word().bits();
            }
        }
        let p = self.fresh(Header::new(Subtag::Record, n + 1), n + 1)?;
        // SAFETY: a complete record whose values are filled next.
        unsafe {
            *p.add(1) = Word::boxed(def).bits();
            let w = Word::boxed(p);
            if n == 0 {
                return Ok(Some(w));
            }
            let f = Frame::Fill {
                at: p.add(2),
                left: n as u32,
            };
            self.open(w, f, budget)?;
        }
        Ok(None)
    }
}

/// The float of zero-padded text.
fn text_float(b: &[u8]) -> Option<f64> {
    let end = b.iter().position(|c| *c == 0).unwrap_or(b.len());
    let t = std::str::from_utf8(&b[..end]).ok()?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
    let unsigned = t.strip_prefix(['+', '-']).unwrap_or(t);
    let (whole, rest) = unsigned.split_once('.')?;
    let (frac, exp) = match rest.split_once(['e', 'E']) {
        Some((f, e)) => (f, Some(e.strip_prefix(['+', '-']).unwrap_or(e))),
        None => (rest, None),
    };
    if !digits(whole) || !digits(frac) || !exp.is_none_or(digits) {
        return None;
    }
    t.parse().ok()
}
