//! `erlang`: the external term format and the hashes that OTP promises.

use std::task::Poll;

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::BitsView;
use beamr_term::etf::{self, DecodeErrorKind, DecodeOptions, EncodeOptions, LocalRef};
use beamr_term::{Build, Word, atoms, hash};
use beamr_vm::process::{RefKey, own, resumes, run_walk, slot_of};

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

/// Decodes; gives the term and how many bytes it took.
pub fn decode(ctx: &mut Ctx, bytes: &[u8], safe: bool) -> Result<(Word, usize), Escape> {
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
    match etf::decode(bytes, tables, options, ctx.heap()) {
        Ok(found) => {
            ctx.bump(cost(bytes.len()));
            Ok(found)
        }
        Err(e) => Err(match e.kind {
            DecodeErrorKind::AtomTableFull | DecodeErrorKind::ExportTableFull => ctx.system_limit(),
            _ => ctx.badarg(),
        }),
    }
}

fn bytes_of<'a>(ctx: &mut Ctx, w: Word) -> Result<std::borrow::Cow<'a, [u8]>, Escape> {
    match BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary()) {
        Some(v) => Ok(v.to_bytes()),
        None => Err(ctx.badarg()),
    }
}

/// `binary_to_term(Binary)`.
fn binary_to_term_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = bytes_of(ctx, args[0])?;
    Ok(decode(ctx, &bytes, false)?.0)
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
    let bytes = bytes_of(ctx, args[0])?;
    let (term, n) = decode(ctx, &bytes, safe)?;
    if used {
        Ok(ctx.tuple(&[term, Word::fixnum(n as i64)]))
    } else {
        Ok(term)
    }
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
