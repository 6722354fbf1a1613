//! Walking iolists: nested lists of bytes and bitstrings, iterative.

use beamr_abi::{Ctx, Escape};
use beamr_term::Word;
use beamr_term::bits::{BitsView, BsBuilder};

use beamr_vm::process::{has_room, run_walk};

use crate::support::cost;
use crate::walks::{Iolist, Wanted};

/// One piece of an iolist.
pub enum Piece {
    /// A byte.
    Byte(u8),
    /// A bitstring.
    Bits(Word, BitsView),
}

/// What was wrong with an iolist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IolistError {
    /// Not an iolist.
    Badarg,
    /// More cells than the walk may visit (a shared list may be much longer than it is large).
    TooLong,
}

/// Cells (or 128 bytes each) that natives visit which cannot give up their slice.
const MAX_CELLS: u64 = 1 << 24;
/// Cells that are visited in one go; longer iolists are walked slice by slice.
pub const SHORT: u64 = 1 << 16;

/// Calls `f` for each piece. Improper tails may be bitstrings, as OTP has it.
pub fn walk(list: Word, f: impl FnMut(Piece)) -> Result<(), IolistError> {
    walk_weighed(list, MAX_CELLS, 10, f)
}

/// [`walk`] over so many cells at most, whatever they hold.
pub fn walk_some(list: Word, cells: u64, f: impl FnMut(Piece)) -> Result<(), IolistError> {
    walk_weighed(list, cells, 63, f)
}

/// [`walk`] within a budget: a cell costs one, and one more for every `2^weight` bits in it.
fn walk_weighed(
    list: Word,
    budget: u64,
    weight: u32,
    mut f: impl FnMut(Piece),
) -> Result<(), IolistError> {
    let mut stack: Vec<Word> = Vec::new();
    let mut at = list;
    let mut left = budget;
    loop {
        while let Some((h, t)) = at.as_cons() {
            if left == 0 {
                return Err(IolistError::TooLong);
            }
            left -= 1;
            if let Some(b) = h.as_small() {
                let Ok(b) = u8::try_from(b) else {
                    return Err(IolistError::Badarg);
                };
                f(Piece::Byte(b));
                at = t;
            } else if h.is_list() {
                if !t.is_nil() {
                    stack.push(t);
                }
                at = h;
            } else if h.is_bitstring()
                && let Some(v) = BitsView::of(h)
            {
                left = left.saturating_sub(v.bit_size >> weight);
                f(Piece::Bits(h, v));
                at = t;
            } else {
                return Err(IolistError::Badarg);
            }
        }
        if at.is_bitstring()
            && let Some(v) = BitsView::of(at)
        {
            f(Piece::Bits(at, v));
        } else if !at.is_nil() {
            return Err(IolistError::Badarg);
        }
        match stack.pop() {
            Some(t) => at = t,
            None => return Ok(()),
        }
    }
}

/// The iolist as one bitstring term; `whole_bytes` demands that the pieces are binaries.
pub fn to_bits(ctx: &mut Ctx, list: Word, whole_bytes: bool) -> Result<Word, Escape> {
    let mut n = 0u64;
    let mut odd = false;
    let walked = walk_some(list, SHORT, |p| match p {
        Piece::Byte(_) => n += 8,
        Piece::Bits(_, v) => {
            odd |= v.bit_size % 8 != 0;
            n += v.bit_size;
        }
    });
    if walked == Err(IolistError::TooLong) {
        let wanted = if whole_bytes {
            Wanted::Bytes
        } else {
            Wanted::Bits
        };
        return run_walk(ctx, |_| Ok(Iolist::new(list, wanted)));
    }
    if walked.is_err() || (odd && whole_bytes) {
        return Err(ctx.badarg());
    }
    if !has_room(ctx, (n / 8) as usize) {
        return Err(ctx.system_limit());
    }
    ctx.bump(cost(n as usize / 8));
    let mut b = BsBuilder::new(ctx, n);
    let w = b.writer();
    let again = walk(list, |p| match p {
        Piece::Byte(x) => w.put_u64(u64::from(x), 8),
        Piece::Bits(_, v) => w.put_bits(&v),
    });
    debug_assert!(again.is_ok());
    Ok(b.finish())
}

/// The bytes of an iolist or binary; `badarg` otherwise. May give up the slice: the native has had no effect before, and asks
/// for one iolist only.
pub fn bytes(ctx: &mut Ctx, list: Word) -> Result<Vec<u8>, Escape> {
    let mut out = Vec::new();
    let mut odd = false;
    let mut add = |p| match p {
        Piece::Byte(x) => out.push(x),
        Piece::Bits(_, v) => {
            odd |= v.bit_size % 8 != 0;
            out.extend_from_slice(&v.to_bytes());
        }
    };
    let walked = if list.is_bitstring() {
        if let Some(v) = BitsView::of(list) {
            add(Piece::Bits(list, v));
        }
        Ok(())
    } else {
        walk_weighed(list, SHORT, 10, add)
    };
    if walked == Err(IolistError::TooLong) {
        let joined = run_walk(ctx, |_| Ok(Iolist::new(list, Wanted::Bytes)))?;
        let view = BitsView::of(joined);
        return Ok(view.map_or(Vec::new(), |v| v.to_bytes().into_owned()));
    }
    if walked.is_err() || odd {
        return Err(ctx.badarg());
    }
    ctx.bump(cost(out.len()));
    Ok(out)
}
