//! Bit syntax.

use beamr_vm::lower::op::{BitFlags, Label, MatchCommand, Op, Reg, SegKind, SegSize, Src};

use super::code::{Constants, Emitter, by_reg, by_src};
use crate::machine::Handler;
use crate::ops::arith::NO_LIVE;
use crate::ops::bits_match::{ALL, BINARY, FLOAT, INTEGER, LITTLE, SIGNED, SKIP};
use crate::ops::{bits_build, bits_match};

fn flags(f: BitFlags) -> u16 {
    (if f.signed { SIGNED } else { 0 }) | if f.little { LITTLE } else { 0 }
}

/// See [`super::one`].
pub(super) fn emit(e: &mut Emitter<'_>, ops: &[Op], i: usize) -> Option<usize> {
    match &ops[i] {
        Op::BsStartMatch {
            src,
            dst,
            live,
            fail,
        } => {
            let mut c = Constants::from(3);
            let (s, d) = (e.src(*src, &mut c), e.reg(*dst));
            e.op(by_src!(*src, S => by_reg!(*dst, D => bits_match::start_match::<S, D>)));
            e.halves_label(s, d, *fail);
            e.halves(*live, 0, 0, 0);
            e.constants(c);
        }
        Op::BsMatch {
            ctx,
            fail,
            commands,
            checked,
        } => {
            check(e, *ctx, *checked);
            let mut i = 0;
            while i < commands.len() {
                i += command(e, *ctx, *fail, commands, i);
            }
        }
        Op::BsGetInteger {
            ctx,
            live,
            size,
            unit,
            flags: f,
            dst,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            match fixed(*size, *unit) {
                Some(bits) => {
                    let commands = [
                        MatchCommand::EnsureAtLeast { bits, unit: 1 },
                        MatchCommand::Integer {
                            live: *live,
                            flags: *f,
                            bits,
                            dst: *dst,
                        },
                    ];
                    let mut i = 0;
                    while i < 2 {
                        i += command(e, *ctx, *fail, &commands, i);
                    }
                }
                None => get(
                    e,
                    *ctx,
                    Some(*dst),
                    *live,
                    *fail,
                    flags(*f),
                    INTEGER,
                    *size,
                    *unit,
                ),
            }
        }
        Op::BsGetFloat {
            ctx,
            live,
            size,
            unit,
            flags: f,
            dst,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            get(
                e,
                *ctx,
                Some(*dst),
                *live,
                *fail,
                flags(*f),
                FLOAT,
                *size,
                *unit,
            );
        }
        Op::BsGetBinary {
            ctx,
            live,
            size,
            unit,
            dst,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            get(e, *ctx, Some(*dst), *live, *fail, 0, BINARY, *size, *unit);
        }
        Op::BsSkipBits {
            ctx,
            size,
            unit,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            match fixed(*size, *unit) {
                Some(bits) => {
                    at_least(e, *ctx, bits, 1, *fail);
                    skip(e, *ctx, bits);
                }
                None => get(e, *ctx, None, NO_LIVE as u16, *fail, 0, SKIP, *size, *unit),
            }
        }
        Op::BsTestTail {
            ctx,
            bits,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            exactly(e, *ctx, *bits, *fail);
        }
        Op::BsTestUnit {
            ctx,
            unit,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            let c = e.reg(*ctx);
            let unit = e.narrow((*unit).max(1) as usize);
            if unit.is_power_of_two() {
                e.op(bits_match::test_mask);
                e.halves_label(c, unit - 1, *fail);
            } else {
                e.op(bits_match::test_unit);
                e.halves_label(c, unit, *fail);
            }
        }
        Op::BsMatchString {
            ctx,
            bits,
            bytes,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            let c = e.reg(*ctx);
            e.op(bits_match::match_string);
            e.halves_label(c, 0, *fail);
            e.word(*bits);
            for chunk in bytes.chunks(8) {
                let mut b = [0; 8];
                b[..chunk.len()].copy_from_slice(chunk);
                e.word(u64::from_ne_bytes(b));
            }
            e.set_len(5);
        }
        Op::BsGetUtf {
            kind,
            flags: f,
            ctx,
            dst,
            fail,
            checked,
        } => {
            check(e, *ctx, *checked);
            let c = e.reg(*ctx);
            let d = match dst {
                Some(d) => e.reg(*d),
                None => bits_match::NOWHERE as u16,
            };
            let (h, k): (Handler, u16) = match kind {
                SegKind::Utf16 => (bits_match::utf, 1),
                SegKind::Utf32 => (bits_match::utf, 2),
                _ => (bits_match::utf8, 0),
            };
            e.op(h);
            e.halves_label(c, d, *fail);
            e.halves(k, flags(*f), 0, 0);
        }
        Op::BsGetPosition { ctx, dst, checked } => {
            check(e, *ctx, *checked);
            let (c, d) = (e.reg(*ctx), e.reg(*dst));
            e.op(bits_match::get_position);
            e.halves(c, d, 0, 0);
        }
        Op::BsSetPosition {
            ctx,
            position,
            checked,
        } => {
            check(e, *ctx, *checked);
            let mut k = Constants::from(2);
            let (c, p) = (e.reg(*ctx), e.src(*position, &mut k));
            e.op(bits_match::set_position);
            e.halves(c, p, 0, u16::from(*checked));
            e.constants(k);
            e.set_len(6);
        }
        Op::BsGetTail {
            ctx,
            dst,
            live,
            checked,
        } => {
            check(e, *ctx, *checked);
            tail(e, *ctx, *dst, *live);
        }
        Op::BsCreateBin {
            heap,
            live,
            dst,
            segments,
            fail,
            ..
        } => {
            let d = e.reg(*dst);
            let segs: Box<[bits_build::Seg]> = segments.iter().map(bits_build::Seg::new).collect();
            let address = e.keep(segs);
            e.op(if bits_build::is_append_of_integer(segments) {
                bits_build::append_integer
            } else {
                bits_build::create
            });
            e.halves(d, *live, 4, 0);
            e.label_pair(*fail, *heap);
            e.word(address);
        }
        Op::BsInitWritable => e.op(bits_build::init_writable),
        Op::BsUtfSize { kind, src, dst, .. } => {
            let mut k = Constants::from(2);
            let (s, d) = (e.src(*src, &mut k), e.reg(*dst));
            e.op(bits_build::utf_size);
            e.halves(s, d, 0, u16::from(*kind == SegKind::Utf16));
            e.constants(k);
            e.set_len(6);
        }
        Op::BsAdd {
            a,
            b,
            unit,
            dst,
            fail,
        } => {
            let mut k = Constants::from(3);
            let (x, y, d) = (e.src(*a, &mut k), e.src(*b, &mut k), e.reg(*dst));
            e.op(bits_build::add_sizes);
            e.halves(x, y, d, 0);
            e.pair_label(*unit, *fail);
            e.constants(k);
            e.set_len(7);
        }
        _ => return None,
    }
    Some(1)
}

fn check(e: &mut Emitter<'_>, ctx: Reg, checked: bool) {
    if checked {
        let c = e.reg(ctx);
        e.op(bits_match::check_context);
        e.halves(c, 0, 0, 0);
    }
}

/// A size that is known, in bits.
fn fixed(size: SegSize, unit: u32) -> Option<u64> {
    match size {
        SegSize::Term(Src::Const(w)) => w
            .as_small()
            .and_then(|n| u64::try_from(n).ok())
            .and_then(|n| n.checked_mul(u64::from(unit)))
            .filter(|n| *n < 1 << 50),
        _ => None,
    }
}

fn at_least(e: &mut Emitter<'_>, ctx: Reg, bits: u64, unit: u32, fail: Label) {
    let c = e.reg(ctx);
    if unit > 1 {
        let unit = e.narrow(unit as usize);
        if unit.is_power_of_two() {
            e.op(bits_match::at_least_mask);
            e.halves_label(c, unit - 1, fail);
        } else {
            e.op(bits_match::at_least_unit);
            e.halves_label(c, unit, fail);
        }
    } else {
        e.op(bits_match::at_least);
        e.halves_label(c, 0, fail);
    }
    e.word(bits);
}

fn exactly(e: &mut Emitter<'_>, ctx: Reg, bits: u64, fail: Label) {
    let c = e.reg(ctx);
    e.op(bits_match::exactly);
    e.halves_label(c, 0, fail);
    e.word(bits);
}

fn skip(e: &mut Emitter<'_>, ctx: Reg, bits: u64) {
    let c = e.reg(ctx);
    e.op(bits_match::skip);
    e.halves(c, 0, 0, 0);
    e.word(bits);
}

fn tail(e: &mut Emitter<'_>, ctx: Reg, dst: Reg, live: u16) {
    let (c, d) = (e.reg(ctx), e.reg(dst));
    e.op(bits_match::tail);
    e.halves(c, d, live, 0);
}

/// One command, or two that are fused; gives how many.
fn command(
    e: &mut Emitter<'_>,
    ctx: Reg,
    fail: Label,
    commands: &[MatchCommand],
    i: usize,
) -> usize {
    match commands[i] {
        MatchCommand::EnsureAtLeast { bits, unit } => {
            if let Some(MatchCommand::Integer {
                flags: f,
                bits: size @ (8 | 16 | 32),
                dst,
                ..
            }) = commands.get(i + 1)
                && *f == BitFlags::default()
                && bits < 1 << 16
                && unit.is_power_of_two()
                && unit < 1 << 16
            {
                let (c, d) = (e.reg(ctx), e.reg(*dst));
                let h: Handler = match size {
                    8 => by_reg!(*dst, D => bits_match::at_least_integer_n::<D, 8>),
                    16 => by_reg!(*dst, D => bits_match::at_least_integer_n::<D, 16>),
                    _ => by_reg!(*dst, D => bits_match::at_least_integer_n::<D, 32>),
                };
                e.op(h);
                e.halves_label(c, d, fail);
                e.halves(bits as u16, unit as u16, 0, 0);
                return 2;
            }
            at_least(e, ctx, bits, unit, fail);
        }
        MatchCommand::EnsureExactly { bits } => exactly(e, ctx, bits, fail),
        MatchCommand::Integer {
            live,
            flags: f,
            bits,
            dst,
        } => {
            let (c, d) = (e.reg(ctx), e.reg(dst));
            let plain = !f.signed && (!f.little || bits <= 8);
            if plain && bits <= 59 {
                let h: Handler = match bits {
                    8 => by_reg!(dst, D => bits_match::integer_n::<D, 8>),
                    16 => by_reg!(dst, D => bits_match::integer_n::<D, 16>),
                    32 => by_reg!(dst, D => bits_match::integer_n::<D, 32>),
                    _ => by_reg!(dst, D => bits_match::integer::<D>),
                };
                e.op(h);
                e.halves(c, d, bits as u16, 0);
            } else {
                e.op(bits_match::integer_any);
                e.halves(c, d, live, flags(f));
                e.word(bits);
            }
        }
        MatchCommand::Binary { live, bits, dst } => {
            let (c, d) = (e.reg(ctx), e.reg(dst));
            e.op(bits_match::binary);
            e.halves(c, d, live, 0);
            e.word(bits);
        }
        MatchCommand::Skip { bits } => skip(e, ctx, bits),
        MatchCommand::GetTail { live, dst } => tail(e, ctx, dst, live),
        MatchCommand::Equal { bits, value } => {
            let c = e.reg(ctx);
            e.op(bits_match::equal);
            e.halves_label(c, bits as u16, fail);
            e.word(value);
        }
    }
    1
}

fn get(
    e: &mut Emitter<'_>,
    ctx: Reg,
    dst: Option<Reg>,
    live: u16,
    fail: Label,
    mut f: u16,
    kind: u16,
    size: SegSize,
    unit: u32,
) {
    let mut k = Constants::from(4);
    let c = e.reg(ctx);
    let d = dst.map_or(0, |d| e.reg(d));
    let size = match size {
        SegSize::Term(s) => e.src(s, &mut k),
        SegSize::All | SegSize::Undefined => {
            f |= ALL;
            0
        }
    };
    let unit = e.narrow(unit as usize);
    e.op(bits_match::get);
    e.halves(c, d, live, 0);
    e.label_halves(fail, f, kind);
    e.halves(size, unit, 0, 0);
    e.constants(k);
    e.set_len(7);
}
