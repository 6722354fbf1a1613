//! `prim_buffer`: the queue of bytes behind buffered files.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::BitsView;
use beamr_term::{Build, Word, atoms};

use crate::resources;
use crate::support::{cost, index};

/// See the module. `peek_head` shows at most this many bytes, so that taking a little of a long buffer stays cheap.
const HEAD: usize = 64 << 10;

struct Buffer {
    bytes: Mutex<VecDeque<u8>>,
    locked: AtomicBool,
}

fn buffer<'a>(ctx: &mut Ctx, w: Word) -> Result<&'a Buffer, Escape> {
    resources::get::<Buffer>(w).ok_or_else(|| ctx.badarg())
}

fn bytes<'a>(ctx: &mut Ctx, w: Word) -> Result<MutexGuard<'a, VecDeque<u8>>, Escape> {
    let b = buffer(ctx, w)?;
    Ok(b.bytes.lock().unwrap_or_else(|e| e.into_inner()))
}

/// `new()`.
fn new_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let b = Buffer {
        bytes: Mutex::default(),
        locked: AtomicBool::new(false),
    };
    Ok(resources::new(ctx, b))
}

/// `size(Buffer)`.
fn size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = bytes(ctx, args[0])?.len();
    Ok(Word::fixnum(n as i64))
}

/// `write(Buffer, IoVec)`.
fn write_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut all = bytes(ctx, args[0])?;
    let mut l = args[1];
    let mut views = Vec::new();
    while let Some((h, t)) = l.as_cons() {
        match BitsView::of(h).filter(|v| h.is_bitstring() && v.is_binary()) {
            Some(v) => views.push(v),
            None => return Err(ctx.badarg()),
        }
        l = t;
    }
    if !l.is_nil() {
        return Err(ctx.badarg());
    }
    for v in views {
        let b = v.to_bytes();
        ctx.bump(cost(b.len() / 8));
        all.extend(&*b);
    }
    Ok(atoms::OK.word())
}

/// The first `n` bytes.
fn front(ctx: &mut Ctx, all: &VecDeque<u8>, n: usize) -> Word {
    ctx.bump(cost(n / 8));
    let (a, b) = all.as_slices();
    if n <= a.len() {
        return ctx.binary(&a[..n]);
    }
    ctx.binary(&[a, &b[..n - a.len()]].concat())
}

/// `copying_read(Buffer, Size)`: takes so many bytes from the front; `badarg` when there are fewer.
fn copying_read_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = index(ctx, args[1])?;
    let mut all = bytes(ctx, args[0])?;
    if n > all.len() {
        return Err(ctx.badarg());
    }
    let w = front(ctx, &all, n);
    all.drain(..n);
    Ok(w)
}

/// `peek_head(Buffer)`: the first bytes; `badarg` when there are none.
fn peek_head_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let all = bytes(ctx, args[0])?;
    if all.is_empty() {
        return Err(ctx.badarg());
    }
    let n = all.len().min(HEAD);
    Ok(front(ctx, &all, n))
}

/// `skip(Buffer, Size)`: `badarg` when there are fewer.
fn skip_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = index(ctx, args[1])?;
    let mut all = bytes(ctx, args[0])?;
    if n > all.len() {
        return Err(ctx.badarg());
    }
    all.drain(..n);
    Ok(atoms::OK.word())
}

/// `find_byte_index(Buffer, Byte)`.
fn find_byte_index_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let all = bytes(ctx, args[0])?;
    let Some(byte) = args[1].as_small().and_then(|n| u8::try_from(n).ok()) else {
        return Err(ctx.badarg());
    };
    let (a, b) = all.as_slices();
    let at = memchr::memchr(byte, a).or_else(|| Some(a.len() + memchr::memchr(byte, b)?));
    match at {
        Some(n) => Ok(ctx.tuple(&[atoms::OK.word(), Word::fixnum(n as i64)])),
        None => ctx.atom("not_found"),
    }
}

/// `try_lock(Buffer)`.
fn try_lock_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let was = buffer(ctx, args[0])?.locked.swap(true, Ordering::AcqRel);
    ctx.atom(if was { "busy" } else { "acquired" })
}

/// `unlock(Buffer)`: an error when it is not locked.
fn unlock_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let was = buffer(ctx, args[0])?.locked.swap(false, Ordering::AcqRel);
    if was {
        return Ok(atoms::OK.word());
    }
    let reason = ctx.atom("lock_order_violation")?;
    Err(ctx.error(reason))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("prim_buffer", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("new", 0, new_0),
    row("size", 1, size_1),
    row("write", 2, write_2),
    row("copying_read", 2, copying_read_2),
    row("peek_head", 1, peek_head_1),
    row("skip", 2, skip_2),
    row("find_byte_index", 2, find_byte_index_2),
    row("try_lock", 1, try_lock_1),
    row("unlock", 1, unlock_1),
];
