//! `erlang`: natives on bitstrings: sizes, parts, conversions to and from lists, checksums.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::{self, BitsView};
use beamr_term::{Build, Word};
use beamr_vm::process::run_walk;
use md5::{Digest, Md5};

use crate::iolist::{self, IolistError, Piece};
use crate::md5_state::Md5State;
use crate::support::{ListBuilder, cost, index};
use crate::walks::{Iolist, Wanted};

fn view(ctx: &mut Ctx, w: Word) -> Result<BitsView, Escape> {
    match BitsView::of(w) {
        Some(v) if w.is_bitstring() => Ok(v),
        _ => Err(ctx.badarg()),
    }
}

fn binary_view(ctx: &mut Ctx, w: Word) -> Result<BitsView, Escape> {
    let v = view(ctx, w)?;
    if v.is_binary() {
        Ok(v)
    } else {
        Err(ctx.badarg())
    }
}

/// `byte_size(Bitstring)`.
fn byte_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(view(ctx, args[0])?.bit_size.div_ceil(8) as i64))
}

/// `bit_size(Bitstring)`.
fn bit_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(view(ctx, args[0])?.bit_size as i64))
}

/// `size(Tuple | Bitstring)`.
fn size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if let Some(t) = args[0].as_tuple() {
        return Ok(Word::fixnum(t.len() as i64));
    }
    Ok(Word::fixnum((view(ctx, args[0])?.bit_size / 8) as i64))
}

/// A part of a binary by position and length, which may be negative; `badarg` when outside.
pub fn part(ctx: &mut Ctx, binary: Word, pos: Word, len: Word) -> Result<Word, Escape> {
    let v = binary_view(ctx, binary)?;
    let (Some(mut pos), Some(mut len)) = (pos.as_small(), len.as_small()) else {
        return Err(ctx.badarg());
    };
    if len < 0 {
        pos = pos.wrapping_add(len);
        len = -len;
    }
    if pos < 0
        || pos
            .checked_add(len)
            .is_none_or(|end| end as u64 > v.bit_size / 8)
    {
        return Err(ctx.badarg());
    }
    Ok(bits::sub_bits(ctx, binary, pos as u64 * 8, len as u64 * 8))
}

/// `binary_part(Binary, Pos, Len)`.
pub fn binary_part_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    part(ctx, args[0], args[1], args[2])
}

/// `binary_part(Binary, {Pos, Len})`.
pub fn binary_part_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[1].as_tuple() {
        Some([pos, len]) => part(ctx, args[0], *pos, *len),
        _ => Err(ctx.badarg()),
    }
}

/// `split_binary(Binary, Pos)`.
fn split_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = view(ctx, args[0])?;
    let at = index(ctx, args[1])? as u64;
    if at > v.bit_size / 8 {
        return Err(ctx.badarg());
    }
    let a = bits::sub_bits(ctx, args[0], 0, at * 8);
    let b = bits::sub_bits(ctx, args[0], at * 8, v.bit_size - at * 8);
    Ok(ctx.tuple(&[a, b]))
}

/// The list of the bytes of `v`, ending in `tail`.
fn byte_list(ctx: &mut Ctx, v: &BitsView, tail: Word) -> Word {
    ctx.bump(cost(v.byte_len()));
    let mut l = tail;
    match v.as_bytes() {
        Some(bytes) => {
            for b in bytes.iter().rev() {
                l = ctx.cons(Word::fixnum(i64::from(*b)), l);
            }
        }
        None => {
            for i in (0..v.byte_len()).rev() {
                l = ctx.cons(Word::fixnum(i64::from(v.byte(i))), l);
            }
        }
    }
    l
}

/// `binary_to_list(Binary)`.
pub fn binary_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = binary_view(ctx, args[0])?;
    Ok(byte_list(ctx, &v, Word::NIL))
}

/// `binary_to_list(Binary, Start, Stop)`.
fn binary_to_list_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = binary_view(ctx, args[0])?;
    let (start, stop) = (index(ctx, args[1])?, index(ctx, args[2])?);
    if start < 1 || stop < start || stop > v.byte_len() {
        return Err(ctx.badarg());
    }
    match v.part((start as u64 - 1) * 8, (stop - start + 1) as u64 * 8) {
        Some(p) => Ok(byte_list(ctx, &p, Word::NIL)),
        None => Err(ctx.badarg()),
    }
}

/// `bitstring_to_list(Bitstring)`: bytes, and the odd bits at the end as a bitstring.
fn bitstring_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let v = view(ctx, args[0])?;
    let whole = v.bit_size & !7;
    let mut tail = Word::NIL;
    if whole != v.bit_size {
        let rest = bits::sub_bits(ctx, args[0], whole, v.bit_size - whole);
        tail = ctx.cons(rest, tail);
    }
    Ok(byte_list(ctx, &v, tail))
}

/// `list_to_binary(Iolist)`.
pub fn list_to_binary_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_list() {
        return Err(ctx.badarg());
    }
    iolist::to_bits(ctx, args[0], true)
}

/// `iolist_to_binary(Iolist | Binary)`.
fn iolist_to_binary_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_bitstring() {
        binary_view(ctx, args[0])?;
        return Ok(args[0]);
    }
    list_to_binary_1(ctx, args)
}

/// `list_to_bitstring(BitstringList)`.
fn list_to_bitstring_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_list() {
        return Err(ctx.badarg());
    }
    iolist::to_bits(ctx, args[0], false)
}

/// `iolist_size(Iolist | Binary)`.
fn iolist_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_bitstring() {
        return Ok(Word::fixnum(
            (binary_view(ctx, args[0])?.bit_size / 8) as i64,
        ));
    }
    let mut odd = false;
    let mut n = 0;
    let walked = iolist::walk_some(args[0], iolist::SHORT, |p| match p {
        Piece::Byte(_) => n += 1,
        Piece::Bits(_, v) => {
            odd |= v.bit_size % 8 != 0;
            n += (v.bit_size / 8) as i64;
        }
    });
    if walked == Err(IolistError::TooLong) {
        return run_walk(ctx, |_| Ok(Iolist::new(args[0], Wanted::Size)));
    }
    if walked.is_err() || odd {
        return Err(ctx.badarg());
    }
    Ok(Word::fixnum(n))
}

/// `iolist_to_iovec(Iolist | Binary)`: big binaries stay as they are, small pieces are joined.
fn iolist_to_iovec_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_bitstring() {
        let v = binary_view(ctx, args[0])?;
        if v.bit_size == 0 {
            return Ok(Word::NIL);
        }
        return Ok(ctx.cons(args[0], Word::NIL));
    }
    enum Part {
        Joined(Vec<u8>),
        Whole(Word),
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut odd = false;
    let walked = iolist::walk(args[0], |p| match p {
        Piece::Byte(b) => match parts.last_mut() {
            Some(Part::Joined(j)) => j.push(b),
            _ => parts.push(Part::Joined(vec![b])),
        },
        Piece::Bits(w, v) => {
            odd |= v.bit_size % 8 != 0;
            if v.bit_size > 64 * 8 {
                parts.push(Part::Whole(w));
            } else if v.bit_size > 0 {
                match parts.last_mut() {
                    Some(Part::Joined(j)) => j.extend_from_slice(&v.to_bytes()),
                    _ => parts.push(Part::Joined(v.to_bytes().into_owned())),
                }
            }
        }
    });
    if walked.is_err() || odd {
        return Err(ctx.badarg());
    }
    let mut out = ListBuilder::new();
    for p in parts {
        let w = match p {
            Part::Whole(w) => w,
            Part::Joined(j) => ctx.binary(&j),
        };
        out.push(ctx, w);
    }
    Ok(out.finish(Word::NIL))
}

/// `md5(Iodata)`.
fn md5_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = iolist::bytes(ctx, args[0])?;
    ctx.bump(cost(bytes.len()));
    let d = Md5::digest(&bytes);
    Ok(ctx.binary(&d))
}

/// The running state of an MD5 as a binary: what was fed so far (blocks are not digested early, so the
/// state is as long as the input).
fn md5_init_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(ctx.binary(&Md5State::new().to_bytes()))
}

/// `md5_update(Context, Data)`.
fn md5_update_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut state = md5_state(ctx, args[0])?;
    let data = iolist::bytes(ctx, args[1])?;
    state.update(&data);
    Ok(ctx.binary(&state.to_bytes()))
}

/// `md5_final(Context)`.
fn md5_final_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let state = md5_state(ctx, args[0])?;
    Ok(ctx.binary(&state.finish()))
}

fn md5_state(ctx: &mut Ctx, w: Word) -> Result<Md5State, Escape> {
    let v = binary_view(ctx, w)?;
    Md5State::of_bytes(&v.to_bytes()).ok_or_else(|| ctx.badarg())
}

fn checksum_argument(ctx: &mut Ctx, w: Word) -> Result<u32, Escape> {
    w.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| ctx.badarg())
}

fn crc32(ctx: &mut Ctx, seed: u32, data: Word) -> Result<Word, Escape> {
    let bytes = iolist::bytes(ctx, data)?;
    let mut h = crc32fast::Hasher::new_with_initial(seed);
    h.update(&bytes);
    Ok(Word::fixnum(i64::from(h.finalize())))
}

/// `crc32(Data)`.
fn crc32_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    crc32(ctx, 0, args[0])
}

/// `crc32(OldCrc, Data)`.
fn crc32_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let seed = checksum_argument(ctx, args[0])?;
    crc32(ctx, seed, args[1])
}

/// `crc32_combine(First, Second, SecondSize)`.
fn crc32_combine_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = checksum_argument(ctx, args[0])?;
    let b = checksum_argument(ctx, args[1])?;
    let size = index(ctx, args[2])? as u64;
    let mut first = crc32fast::Hasher::new_with_initial_len(a, 0);
    first.combine(&crc32fast::Hasher::new_with_initial_len(b, size));
    Ok(Word::fixnum(i64::from(first.finalize())))
}

const ADLER_BASE: u32 = 65521;

/// The Adler-32 checksum of `bytes`, going on from `seed`.
pub fn adler(seed: u32, bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (seed & 0xFFFF, seed >> 16);
    for chunk in bytes.chunks(5552) {
        for x in chunk {
            a += u32::from(*x);
            b += a;
        }
        a %= ADLER_BASE;
        b %= ADLER_BASE;
    }
    b << 16 | a
}

/// `adler32(Data)`.
fn adler32_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = iolist::bytes(ctx, args[0])?;
    Ok(Word::fixnum(i64::from(adler(1, &bytes))))
}

/// `adler32(OldAdler, Data)`.
fn adler32_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let seed = checksum_argument(ctx, args[0])?;
    let bytes = iolist::bytes(ctx, args[1])?;
    Ok(Word::fixnum(i64::from(adler(seed, &bytes))))
}

/// `adler32_combine(First, Second, SecondSize)`.
fn adler32_combine_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = checksum_argument(ctx, args[0])?;
    let b = checksum_argument(ctx, args[1])?;
    let rem = (index(ctx, args[2])? as u64 % u64::from(ADLER_BASE)) as u32;
    let (a1, b1, a2, b2) = (a & 0xFFFF, a >> 16, b & 0xFFFF, b >> 16);
    let low = (a1 + a2 + ADLER_BASE - 1) % ADLER_BASE;
    let high = ((u64::from(rem) * u64::from(a1)) % u64::from(ADLER_BASE)) as u32;
    let high = (high + b1 + b2 + ADLER_BASE - rem) % ADLER_BASE;
    Ok(Word::fixnum(i64::from(high << 16 | low)))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("byte_size", 1, byte_size_1),
    row("bit_size", 1, bit_size_1),
    row("size", 1, size_1),
    row("binary_part", 2, binary_part_2),
    row("binary_part", 3, binary_part_3),
    row("split_binary", 2, split_binary_2),
    row("binary_to_list", 1, binary_to_list_1),
    row("binary_to_list", 3, binary_to_list_3),
    row("bitstring_to_list", 1, bitstring_to_list_1),
    row("list_to_binary", 1, list_to_binary_1),
    row("list_to_bitstring", 1, list_to_bitstring_1),
    row("iolist_to_binary", 1, iolist_to_binary_1),
    row("iolist_size", 1, iolist_size_1),
    row("iolist_to_iovec", 1, iolist_to_iovec_1),
    row("md5", 1, md5_1),
    row("md5_init", 0, md5_init_0),
    row("md5_update", 2, md5_update_2),
    row("md5_final", 1, md5_final_1),
    row("crc32", 1, crc32_1),
    row("crc32", 2, crc32_2),
    row("crc32_combine", 3, crc32_combine_3),
    row("adler32", 1, adler32_1),
    row("adler32", 2, adler32_2),
    row("adler32_combine", 3, adler32_combine_3),
];
