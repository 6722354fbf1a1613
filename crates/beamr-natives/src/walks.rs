//! Walks of natives over terms of any size; see `beamr_vm::process::NativeWalk`.

use std::task::Poll;

use beamr_abi::{Ctx, Escape};
use beamr_term::bits::{self, BitsView};
use beamr_term::etf::{EncodeError, Encoder, SizeCounter};
use beamr_term::hash::{Phash2Walk, PhashWalk};
use beamr_term::{Build, Word};
use beamr_vm::process::{NativeWalk, has_room};

use crate::support::cost;

/// Bytes that one native may produce.
const MAX_BYTES: usize = if usize::BITS == 64 { 8 << 30 } else { 1 << 30 };

/// Whether a native may go on that has produced so many bytes.
fn fits(ctx: &Ctx, bytes: usize) -> bool {
    bytes <= MAX_BYTES && has_room(ctx, bytes)
}

/// A hash, and what makes the result of it.
pub struct Hashing<W> {
    /// The walk.
    pub walk: W,
    /// The result of a hash.
    pub result: fn(u64, u64) -> i64,
    /// Second argument of `result`.
    pub range: u64,
}

impl NativeWalk for Hashing<Phash2Walk> {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let h = self.walk.step(ctx.tables(), budget);
        h.map(|h| Ok(Word::fixnum((self.result)(u64::from(h), self.range))))
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        self.walk.visit_roots(visit);
    }
}

impl NativeWalk for Hashing<PhashWalk> {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let h = self.walk.step(ctx.tables(), budget);
        h.map(|h| Ok(Word::fixnum((self.result)(u64::from(h), self.range))))
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        self.walk.visit_roots(visit);
    }
}

/// `term_to_binary`.
pub struct Encoding {
    /// The walk.
    pub walk: Encoder,
    /// Whether the result is a list of the binary.
    pub iovec: bool,
}

fn too_large(ctx: &mut Ctx, _: EncodeError) -> Escape {
    ctx.system_limit()
}

impl NativeWalk for Encoding {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let done = self.walk.step(ctx.tables(), budget);
        if !fits(ctx, self.walk.written()) {
            return Poll::Ready(Err(ctx.system_limit()));
        }
        done.map(|r| {
            let bytes = r.map_err(|e| too_large(ctx, e))?;
            ctx.bump(cost(bytes.len()));
            let b = ctx.binary(&bytes);
            Ok(if self.iovec {
                ctx.cons(b, Word::NIL)
            } else {
                b
            })
        })
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        self.walk.visit_roots(visit);
    }
}

/// `external_size`.
pub struct ExternalSize(pub SizeCounter);

impl NativeWalk for ExternalSize {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let done = self.0.step(ctx.tables(), budget);
        done.map(|r| {
            let n = r.map_err(|e| too_large(ctx, e))?;
            Ok(ctx.unsigned(n as u64))
        })
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        self.0.visit_roots(visit);
    }
}

/// What an iolist is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Its size in bytes.
    Size,
    /// Its bytes as a binary.
    Bytes,
    /// Its bits as a bitstring.
    Bits,
}

/// An iolist of any length.
pub struct Iolist {
    at: Word,
    stack: Vec<Word>,
    bits: u64,
    out: Vec<u8>,
    wanted: Wanted,
}

impl Iolist {
    /// Starts.
    pub fn new(list: Word, wanted: Wanted) -> Iolist {
        Iolist {
            at: list,
            stack: Vec::new(),
            bits: 0,
            out: Vec::new(),
            wanted,
        }
    }
    fn add(&mut self, v: &BitsView) -> Result<(), ()> {
        if !v.bit_size.is_multiple_of(8) && self.wanted != Wanted::Bits {
            return Err(());
        }
        if self.wanted != Wanted::Size {
            let end = (self.bits + v.bit_size).div_ceil(8);
            self.out.resize(end as usize, 0);
            // SAFETY: there is room behind the bits so far, and the view lies elsewhere.
            unsafe { v.copy_to(self.out.as_mut_ptr(), self.bits) };
        }
        self.bits += v.bit_size;
        Ok(())
    }
    /// Walks; `Err` when it is no iolist.
    fn walk(&mut self, ctx: &Ctx, budget: &mut i64) -> Poll<Result<(), Refused>> {
        let mut checked = 0;
        loop {
            if *budget <= 0 {
                return Poll::Pending;
            }
            *budget -= 1;
            if self.out.len() > checked + (1 << 20) {
                checked = self.out.len();
                if !fits(ctx, checked) {
                    return Poll::Ready(Err(Refused::Limit));
                }
            }
            if let Some((h, t)) = self.at.as_cons() {
                if let Some(b) = h.as_small() {
                    let Ok(b) = u8::try_from(b) else {
                        return Poll::Ready(Err(Refused::Badarg));
                    };
                    if self.wanted == Wanted::Size {
                        self.bits += 8;
                    } else if self.bits.is_multiple_of(8) {
                        self.out.push(b);
                        self.bits += 8;
                    } else if self.add(&BitsView::of_bytes(&[b])).is_err() {
                        return Poll::Ready(Err(Refused::Badarg));
                    }
                    self.at = t;
                } else if h.is_list() {
                    if !t.is_nil() {
                        self.stack.push(t);
                    }
                    self.at = h;
                } else if h.is_bitstring()
                    && let Some(v) = BitsView::of(h)
                {
                    *budget -= (v.bit_size >> 10) as i64;
                    if self.add(&v).is_err() {
                        return Poll::Ready(Err(Refused::Badarg));
                    }
                    self.at = t;
                } else {
                    return Poll::Ready(Err(Refused::Badarg));
                }
                continue;
            }
            if self.at.is_bitstring()
                && let Some(v) = BitsView::of(self.at)
            {
                if self.add(&v).is_err() {
                    return Poll::Ready(Err(Refused::Badarg));
                }
            } else if !self.at.is_nil() {
                return Poll::Ready(Err(Refused::Badarg));
            }
            match self.stack.pop() {
                Some(t) => self.at = t,
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}

enum Refused {
    Badarg,
    Limit,
}

impl NativeWalk for Iolist {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let done = self.walk(ctx, budget);
        done.map(|r| match r {
            Err(Refused::Badarg) => Err(ctx.badarg()),
            Err(Refused::Limit) => Err(ctx.system_limit()),
            Ok(()) if self.wanted == Wanted::Size => Ok(ctx.unsigned(self.bits / 8)),
            Ok(()) => {
                let b = ctx.binary(&self.out);
                Ok(if self.bits.is_multiple_of(8) {
                    b
                } else {
                    bits::sub_bits(ctx, b, 0, self.bits)
                })
            }
        })
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        visit(&mut self.at);
        self.stack.iter_mut().for_each(visit);
    }
}
