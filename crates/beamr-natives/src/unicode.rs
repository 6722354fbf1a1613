//! `unicode`: characters_to_binary/2, characters_to_list/2, bin_is_7bit/1.
//!
//! Input is a nested list of code points and binaries; a UTF-8 sequence may be split over binaries. An error or an
//! unfinished sequence gives what was converted and the rest of the input in the shape it was found in. Encodings other
//! than latin1, unicode and utf8 are converted by OTP's own `unicode:characters_to_*_int/2`.

use std::task::Poll;

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, TrapTarget};
use beamr_term::bits::{self, BitsView};
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::{NativeWalk, has_room, run_walk};

use crate::support::{ListBuilder, cost};

/// Where conversion stopped.
enum End {
    Done,
    /// The input ends inside a sequence of these bytes.
    Incomplete(Vec<u8>),
    /// Invalid; the rest of the input.
    Error(Word),
    Badarg,
}

/// The state of a conversion: output, and bytes of a sequence that is not complete yet.
struct Converter {
    latin1: bool,
    out: Vec<char>,
    left: Vec<u8>,
}

/// Bytes that a sequence with this first byte has; 0 when no sequence starts so.
fn sequence_len(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0xC2..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF5 => 4,
        _ => 0,
    }
}

/// Whether `bytes`, shorter than its first byte says, can still become a valid sequence.
fn valid_prefix(bytes: &[u8]) -> bool {
    let second_ok = |b: u8| match bytes[0] {
        0xE0 => (0xA0..0xC0).contains(&b),
        0xED => (0x80..0xA0).contains(&b),
        0xF0 => (0x90..0xC0).contains(&b),
        0xF4 => (0x80..0x90).contains(&b),
        _ => (0x80..0xC0).contains(&b),
    };
    bytes.iter().skip(1).enumerate().all(|(i, b)| {
        if i == 0 {
            second_ok(*b)
        } else {
            b & 0xC0 == 0x80
        }
    })
}

impl Converter {
    /// Takes the bytes of a binary; `Err(n)` when the sequence that starts at byte `n` is invalid, `Err(None)` when the
    /// bytes left over from before cannot go on with these.
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Option<usize>> {
        if self.latin1 {
            self.out.extend(bytes.iter().map(|b| char::from(*b)));
            return Ok(());
        }
        let mut at = 0;
        if !self.left.is_empty() && !bytes.is_empty() {
            let mut joined = self.left.clone();
            let need = sequence_len(joined[0]);
            let take = (need - joined.len()).min(bytes.len());
            joined.extend_from_slice(&bytes[..take]);
            if joined.len() < need {
                if !valid_prefix(&joined) {
                    return Err(None);
                }
                self.left = joined;
                return Ok(());
            }
            match std::str::from_utf8(&joined) {
                Ok(s) => self.out.extend(s.chars()),
                Err(_) => return Err(None),
            }
            self.left.clear();
            at = take;
        }
        match std::str::from_utf8(&bytes[at..]) {
            Ok(s) => self.out.extend(s.chars()),
            Err(e) => {
                let good = at + e.valid_up_to();
                // The part before `valid_up_to` is valid by definition.
                if let Ok(s) = std::str::from_utf8(&bytes[at..good]) {
                    self.out.extend(s.chars());
                }
                if e.error_len().is_some() {
                    return Err(Some(good));
                }
                self.left = bytes[good..].to_vec();
            }
        }
        Ok(())
    }
}

/// Ends with what becomes of the characters.
type Finish = fn(&mut Ctx, &[char]) -> Word;

/// A conversion on its way.
struct Conversion {
    c: Converter,
    at: Word,
    /// Tails to go on with, the innermost last.
    stack: Vec<Word>,
    finish: Finish,
}

impl NativeWalk for Conversion {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let Poll::Ready(end) = convert(ctx, self, budget) else {
            if has_room(ctx, self.c.out.len() * 4) {
                return Poll::Pending;
            }
            return Poll::Ready(Err(ctx.system_limit()));
        };
        ctx.bump(cost(self.c.out.len()));
        let (tag, rest) = match end {
            End::Badarg => return Poll::Ready(Err(ctx.badarg())),
            End::Done => return Poll::Ready(Ok((self.finish)(ctx, &self.c.out))),
            End::Incomplete(left) => (atoms::INCOMPLETE, ctx.binary(&left)),
            End::Error(rest) => (atoms::ERROR, rest),
        };
        let converted = (self.finish)(ctx, &self.c.out);
        Poll::Ready(Ok(ctx.tuple(&[tag.word(), converted, rest])))
    }
    fn visit_roots(&mut self, visit: &mut dyn FnMut(&mut Word)) {
        visit(&mut self.at);
        self.stack.iter_mut().for_each(visit);
    }
}

/// Goes on with a conversion. The rest of an error is built in the heap.
fn convert(ctx: &mut Ctx, conversion: &mut Conversion, budget: &mut i64) -> Poll<End> {
    let Conversion { c, at, stack, .. } = conversion;
    let outward = |ctx: &mut Ctx, mut rest: Word, stack: &[Word]| {
        for t in stack.iter().rev() {
            rest = ctx.cons(rest, *t);
        }
        rest
    };
    loop {
        if *budget <= 0 {
            return Poll::Pending;
        }
        *budget -= 1;
        // `at` is a list, or a binary (the input itself or an improper tail).
        let (item, tail) = match at.as_cons() {
            Some((h, t)) => (h, Some(t)),
            None if at.is_nil() => match stack.pop() {
                Some(t) => {
                    *at = t;
                    continue;
                }
                None if c.left.is_empty() => return Poll::Ready(End::Done),
                None => return Poll::Ready(End::Incomplete(std::mem::take(&mut c.left))),
            },
            None => (*at, None),
        };
        if item.is_bitstring() {
            let Some(v) = BitsView::of(item).filter(BitsView::is_binary) else {
                return Poll::Ready(End::Badarg);
            };
            let bytes = v.to_bytes();
            *budget -= (bytes.len() / 16) as i64;
            match c.bytes(&bytes) {
                Ok(()) => *at = tail.unwrap_or(Word::NIL),
                Err(place) => {
                    let from = place.unwrap_or(0);
                    let rest = match place {
                        Some(n) if n > 0 => {
                            bits::sub_bits(ctx, item, n as u64 * 8, v.bit_size - n as u64 * 8)
                        }
                        _ => item,
                    };
                    let rest = match tail {
                        Some(t) => ctx.cons(rest, t),
                        None => rest,
                    };
                    let rest = outward(ctx, rest, stack);
                    if place.is_none() && from == 0 {
                        let left = ctx.binary(&c.left);
                        return Poll::Ready(End::Error(ctx.list([left, rest])));
                    }
                    return Poll::Ready(End::Error(rest));
                }
            }
            continue;
        }
        let Some(tail) = tail else {
            return Poll::Ready(End::Badarg);
        };
        if item.is_list() {
            stack.push(tail);
            *at = item;
            continue;
        }
        if !item.is_integer() {
            return Poll::Ready(End::Badarg);
        }
        if !c.left.is_empty() {
            let left = ctx.binary(&c.left);
            let rest = outward(ctx, *at, stack);
            return Poll::Ready(End::Error(ctx.list([left, rest])));
        }
        let ch = item
            .as_small()
            .and_then(|n| u32::try_from(n).ok())
            .and_then(char::from_u32);
        match ch.filter(|ch| !c.latin1 || (*ch as u32) < 256) {
            Some(ch) => c.out.push(ch),
            None => return Poll::Ready(End::Error(outward(ctx, *at, stack))),
        }
        *at = tail;
    }
}

/// latin1 or unicode; `None` for what OTP's Erlang code converts.
fn encoding(w: Word) -> Option<bool> {
    match w.as_atom() {
        Some(atoms::LATIN1) => Some(true),
        Some(atoms::UNICODE | atoms::UTF8) => Some(false),
        _ => None,
    }
}

fn run(ctx: &mut Ctx, args: &[Word], other: &str, finish: Finish) -> Result<Word, Escape> {
    let Some(latin1) = encoding(args[1]) else {
        let tables = ctx.tables();
        let module = ctx.atom("unicode")?.as_atom();
        let function = ctx.atom(other)?.as_atom();
        return match (module, function) {
            (Some(m), Some(f)) => match tables.exports.id(m, f, 2) {
                Ok(id) => Err(ctx.trap(TrapTarget::Export(id), args)),
                Err(_) => Err(ctx.system_limit()),
            },
            _ => Err(ctx.badarg()),
        };
    };
    if !args[0].is_list() && !args[0].is_bitstring() {
        return Err(ctx.badarg());
    }
    run_walk(ctx, |_| {
        Ok(Conversion {
            c: Converter {
                latin1,
                out: Vec::new(),
                left: Vec::new(),
            },
            at: args[0],
            stack: Vec::new(),
            finish,
        })
    })
}

/// `unicode:characters_to_list(Data, InEncoding)`.
fn characters_to_list_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    run(ctx, args, "characters_to_list_int", |ctx, chars| {
        let mut out = ListBuilder::new();
        for c in chars {
            out.push(ctx, Word::fixnum(i64::from(*c as u32)));
        }
        out.finish(Word::NIL)
    })
}

/// `unicode:characters_to_binary(Data, InEncoding)`.
fn characters_to_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    // A whole valid binary is its own result.
    if encoding(args[1]) == Some(false)
        && args[0].is_bitstring()
        && let Some(bytes) = BitsView::of(args[0]).and_then(|v| v.as_bytes())
        && std::str::from_utf8(bytes).is_ok()
    {
        ctx.bump(cost(bytes.len()));
        return Ok(args[0]);
    }
    run(ctx, args, "characters_to_binary_int", |ctx, chars| {
        let text: String = chars.iter().collect();
        ctx.binary(text.as_bytes())
    })
}

/// `unicode:bin_is_7bit(Binary)`.
fn bin_is_7bit_1(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match BitsView::of(args[0]).filter(|v| args[0].is_bitstring() && v.is_binary()) {
        Some(v) => Ok(Word::boolean(v.to_bytes().is_ascii())),
        None => Ok(Word::FALSE),
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("unicode", function, arity, func)
}

/// The natives of `unicode`.
pub const TABLE: &[NativeEntry] = &[
    row("characters_to_list", 2, characters_to_list_2),
    row("characters_to_binary", 2, characters_to_binary_2),
    row("bin_is_7bit", 1, bin_is_7bit_1),
];
