//! `erlang`: the external term format and the hashes that OTP promises.

use std::task::Poll;

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::BitsView;
use beamr_term::etf::{self, DecodeErrorKind, DecodeOptions, EncodeOptions, LocalRef};
use beamr_term::{Build, Fragment, Word, atoms, hash};
use beamr_vm::process::{NativeWalk, RefKey, has_room, own, resumes, run_walk, slot_of};

use crate::resources;
use crate::support::{bad_option, cost, list_items, name, options};
use crate::walks::{Encoding, ExternalSize, Hashing};

/// Options of `term_to_binary/2` and its kin; `None` for an unknown one.
fn encode_options(ctx: &mut Ctx, list: Word, sizes_only: bool) -> Result<EncodeOptions, Escape> {
    let release = ctx.tables().release.0;
    let mut o = EncodeOptions {
        creator: ctx.self_pid(),
        ..EncodeOptions::default()
    };
    for item in list_items(ctx, list)? {
        let known = match (name(ctx, item), item.as_tuple()) {
            (Some("compressed"), _) if !sizes_only => {
                o.compressed = Some(6);
                true
            }
            (Some("deterministic"), _) if release >= 24 => {
                o.deterministic = true;
                true
            }
            (Some("local"), _) if release >= 26 => {
                o.local = Some(local_secret(ctx));
                true
            }
            (_, Some([k, v])) => match (name(ctx, *k), v.as_small()) {
                (Some("compressed"), Some(n @ 0..=9)) if !sizes_only => {
                    o.compressed = Some(n as u32);
                    true
                }
                (Some("minor_version"), Some(n @ 0..=2)) => {
                    o.minor_version = Some(n as u8);
                    true
                }
                (Some("iovec"), _) => v.is_boolean(),
                _ => false,
            },
            _ => false,
        };
        if !known {
            return Err(ctx.badarg());
        }
    }
    Ok(o)
}

/// The secret of terms encoded with `local`: the same as long as the VM lives.
fn local_secret(ctx: &Ctx) -> u64 {
    struct Secret(u64);
    let vm = beamr_vm::process::vm_of(ctx);
    let made = vm.extensions.get_or_init(|| {
        let mut b = [0u8; 8];
        // Without entropy the clock has to do: the value only tells instances apart.
        if vm.door.entropy(&mut b).is_err() {
            b = vm.door.system_time().to_le_bytes();
        }
        Secret(u64::from_le_bytes(b))
    });
    made.0
}

fn encode(ctx: &mut Ctx, term: Word, list: Word, iovec: bool) -> Result<Word, Escape> {
    run_walk(ctx, |ctx| {
        let options = encode_options(ctx, list, false)?;
        Ok(Encoding {
            walk: etf::Encoder::new(term, ctx.tables(), options),
            iovec,
        })
    })
}

/// `term_to_binary(Term)`.
fn term_to_binary_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    encode(ctx, args[0], Word::NIL, false)
}
/// `term_to_binary(Term, Options)`.
fn term_to_binary_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    encode(ctx, args[0], args[1], false)
}

/// `term_to_iovec(Term)`.
fn term_to_iovec_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    encode(ctx, args[0], Word::NIL, true)
}
/// `term_to_iovec(Term, Options)`: a list of one binary.
fn term_to_iovec_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    encode(ctx, args[0], args[1], true)
}

fn size(ctx: &mut Ctx, term: Word, list: Word) -> Result<Word, Escape> {
    run_walk(ctx, |ctx| {
        let options = encode_options(ctx, list, true)?;
        let tables = ctx.tables();
        Ok(ExternalSize(etf::SizeCounter::new(term, tables, &options)))
    })
}

/// `external_size(Term)`.
fn external_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    size(ctx, args[0], Word::NIL)
}
/// `external_size(Term, Options)`.
fn external_size_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    size(ctx, args[0], args[1])
}

/// Calls `f` with what decoding for the running process takes.
fn with_options<R>(
    ctx: &mut Ctx,
    safe: bool,
    f: impl FnOnce(&mut Ctx, DecodeOptions<'_>) -> R,
) -> R {
    let tables = ctx.tables();
    let me = ctx.self_pid();
    let namespace = slot_of(ctx).namespace.id;
    let local = (tables.release.0 >= 26).then(|| local_secret(ctx));
    let ctx_ptr: *const Ctx = ctx;
    let local_ref = |numbers: [u32; 3]| {
        // SAFETY: the decoder calls this between its allocations, which use the heap alone; only tables of the VM and
        // the process's aliases are read here.
        let ctx = unsafe { &*ctx_ptr };
        if let Some(r) = resources::find(ctx, numbers) {
            return LocalRef::Magic(r);
        }
        let n = u64::from(numbers[0])
            | u64::from(numbers[1]) << 18
            | (u64::from(numbers[2]) & 0x3FFF) << 50;
        if own(ctx).aliases.get(RefKey::new(n)).is_some() {
            LocalRef::Alias(me)
        } else {
            LocalRef::Plain
        }
    };
    let options = DecodeOptions {
        safe,
        namespace,
        local_ref: Some(&local_ref),
        local,
        ..DecodeOptions::default()
    };
    f(ctx, options)
}

fn undecodable(ctx: &mut Ctx, e: etf::DecodeError) -> Escape {
    match e.kind {
        DecodeErrorKind::AtomTableFull | DecodeErrorKind::ExportTableFull => ctx.system_limit(),
        _ => ctx.badarg(),
    }
}

/// Decodes; gives the term and how many bytes it took.
pub fn decode(ctx: &mut Ctx, bytes: &[u8], safe: bool) -> Result<(Word, usize), Escape> {
    let tables = ctx.tables();
    let decoded = with_options(ctx, safe, |ctx, options| {
        etf::decode(bytes, tables, options, ctx.heap())
    });
    ctx.bump(cost(bytes.len()));
    decoded.map_err(|e| undecodable(ctx, e))
}

/// Bytes that are decoded in one go.
const SHORT: usize = 1 << 14;

/// A long decoding: what is built stays in a fragment of its own until it is complete.
struct Decoding {
    decoder: etf::Decoder<Vec<u8>>,
    fragment: Option<Box<Fragment>>,
    safe: bool,
    used: bool,
}

impl NativeWalk for Decoding {
    fn step(&mut self, ctx: &mut Ctx, budget: &mut i64) -> Poll<Result<Word, Escape>> {
        let tables = ctx.tables();
        let fragment = self
            .fragment
            .get_or_insert_with(|| Box::new(Fragment::with_capacity(1 << 12)));
        let decoder = &mut self.decoder;
        let done = with_options(ctx, self.safe, |_, options| {
            decoder.step(tables, options, &mut **fragment, budget)
        });
        match done {
            Poll::Pending if has_room(ctx, fragment.total_used() * 8) => Poll::Pending,
            Poll::Pending => Poll::Ready(Err(ctx.system_limit())),
            Poll::Ready(Err(e)) => Poll::Ready(Err(undecodable(ctx, e))),
            Poll::Ready(Ok((term, n))) => {
                if let Some(f) = self.fragment.take() {
                    ctx.heap().adopt(f);
                }
                Poll::Ready(Ok(decoded(ctx, term, n, self.used)))
            }
        }
    }
    fn visit_roots(&mut self, _: &mut dyn FnMut(&mut Word)) {}
}

fn decoded(ctx: &mut Ctx, term: Word, n: usize, used: bool) -> Word {
    if used {
        ctx.tuple(&[term, Word::fixnum(n as i64)])
    } else {
        term
    }
}

fn binary_to_term(ctx: &mut Ctx, binary: Word, safe: bool, used: bool) -> Result<Word, Escape> {
    let bytes = bytes_of(ctx, binary)?;
    let compressed = bytes.get(1) == Some(&80);
    if bytes.len() < SHORT && !compressed {
        let (term, n) = decode(ctx, &bytes, safe)?;
        return Ok(decoded(ctx, term, n, used));
    }
    // What a compressed term claims to be is as good as a size.
    let claimed = match bytes.get(2..6) {
        Some(&[a, b, c, d]) if compressed => u32::from_be_bytes([a, b, c, d]) as usize,
        _ => bytes.len(),
    };
    if !resumes(ctx) && !has_room(ctx, claimed) {
        return Err(ctx.system_limit());
    }
    run_walk(ctx, |_| {
        Ok(Decoding {
            decoder: etf::Decoder::new(bytes.into_owned()),
            fragment: None,
            safe,
            used,
        })
    })
}

fn bytes_of<'a>(ctx: &mut Ctx, w: Word) -> Result<std::borrow::Cow<'a, [u8]>, Escape> {
    match BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary()) {
        Some(v) => Ok(v.to_bytes()),
        None => Err(ctx.badarg()),
    }
}

/// `binary_to_term(Binary)`.
fn binary_to_term_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    binary_to_term(ctx, args[0], false, false)
}
/// `binary_to_term(Binary, Options)`.
fn binary_to_term_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut safe, mut used) = (false, false);
    for o in options(ctx, args[1])? {
        match name(ctx, o) {
            Some("safe") => safe = true,
            Some("used") => used = true,
            _ => return Err(bad_option(ctx)),
        }
    }
    binary_to_term(ctx, args[0], safe, used)
}

/// `erts_debug:dist_ext_to_term(AtomCache, Binary)`: a term without version byte, with a tuple of cached atoms.
fn dist_ext_to_term_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(cache) = args[0].as_tuple() else {
        return Err(ctx.badarg());
    };
    let Some(cache) = cache
        .iter()
        .map(|a| a.as_atom())
        .collect::<Option<Vec<_>>>()
    else {
        return Err(ctx.badarg());
    };
    let bytes = bytes_of(ctx, args[1])?;
    let bare = bytes.first() != Some(&131);
    let options = DecodeOptions {
        atom_cache: &cache,
        bare,
        ..DecodeOptions::default()
    };
    let tables = ctx.tables();
    match etf::decode(&bytes, tables, options, ctx.heap()) {
        Ok((t, _)) => Ok(t),
        Err(_) => Err(ctx.badarg()),
    }
}

// ---- hashes

/// Steps that a hash takes at once.
const QUICK: i64 = 1 << 12;

fn phash2(
    ctx: &mut Ctx,
    term: Word,
    range: u64,
    result: fn(u64, u64) -> i64,
) -> Result<Word, Escape> {
    if !resumes(ctx) {
        // Ordinary terms need nothing that stays.
        let mut budget = QUICK;
        if let Poll::Ready(h) = hash::Phash2Walk::new(term).step(ctx.tables(), &mut budget) {
            ctx.bump(1 + (QUICK - budget) / 16);
            return Ok(Word::fixnum(result(u64::from(h), range)));
        }
    }
    run_walk(ctx, |_| {
        Ok(Hashing {
            walk: hash::Phash2Walk::new(term),
            result,
            range,
        })
    })
}

/// `phash2(Term)`: below 2^27.
fn phash2_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    phash2(ctx, args[0], 1 << 27, |h, n| (h % n) as i64)
}

/// A range of 1 to 2^32.
fn range(ctx: &mut Ctx, w: Word) -> Result<u64, Escape> {
    match w.as_small() {
        Some(n @ 1..=0x1_0000_0000) => Ok(n as u64),
        _ => Err(ctx.badarg()),
    }
}

/// `phash2(Term, Range)`.
fn phash2_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = range(ctx, args[1])?;
    phash2(ctx, args[0], n, |h, n| (h % n) as i64)
}

/// `phash(Term, Range)`: from 1.
fn phash_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let range = range(ctx, args[1])?;
    run_walk(ctx, |_| {
        Ok(Hashing {
            walk: hash::PhashWalk::new(args[0]),
            result: |h, n| (1 + h % n) as i64,
            range,
        })
    })
}

/// `dt_*`: there is no dynamic tracing; tags are empty.
fn dt_undefined(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::UNDEFINED.word())
}
/// `dt_spread_tag(Bool)`.
fn dt_spread_tag_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_boolean() {
        Some(_) => Ok(Word::TRUE),
        None => Err(ctx.badarg()),
    }
}
/// `dt_restore_tag(Tag)`.
fn dt_restore_tag_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0] == Word::TRUE {
        Ok(Word::TRUE)
    } else {
        Err(ctx.badarg())
    }
}
/// `dt_prepend_vm_tag_data(IoList)`, `dt_append_vm_tag_data(IoList)`: the data as it is.
fn dt_same(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(args[0])
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("term_to_binary", 1, term_to_binary_1),
    row("term_to_binary", 2, term_to_binary_2),
    row("term_to_iovec", 1, term_to_iovec_1),
    row("term_to_iovec", 2, term_to_iovec_2),
    row("external_size", 1, external_size_1),
    row("external_size", 2, external_size_2),
    row("binary_to_term", 1, binary_to_term_1),
    row("binary_to_term", 2, binary_to_term_2),
    row("phash2", 1, phash2_1),
    row("phash2", 2, phash2_2),
    row("phash", 2, phash_2),
    row("dt_put_tag", 1, dt_undefined),
    row("dt_get_tag", 0, dt_undefined),
    row("dt_get_tag_data", 0, dt_undefined),
    row("dt_spread_tag", 1, dt_spread_tag_1),
    row("dt_restore_tag", 1, dt_restore_tag_1),
    row("dt_prepend_vm_tag_data", 1, dt_same),
    row("dt_append_vm_tag_data", 1, dt_same),
    NativeEntry::new("erts_debug", "dist_ext_to_term", 2, dist_ext_to_term_2),
];
