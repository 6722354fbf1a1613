//! `erlang` (and `os`, `erts_internal`): clocks and timers.
//!
//! The native time unit is the nanosecond. Monotonic time starts near OTP's customary origin, far below zero is not needed: it counts
//! from the VM's start; `time_offset` makes system time of it.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::arith::Int;
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::vm_of;
use beamr_vm::timer::{self, TimerTime};

use crate::support::{bad_option, because, list_items, options as option_items};

/// Parts per second of a time unit.
fn unit(ctx: &mut Ctx, w: Word) -> Result<i128, Escape> {
    if let Some(n) = w.as_small() {
        if n > 0 {
            return Ok(i128::from(n));
        }
        return Err(ctx.badarg());
    }
    match w.as_atom() {
        Some(atoms::SECOND | atoms::SECONDS) => Ok(1),
        Some(atoms::MILLISECOND | atoms::MILLI_SECONDS) => Ok(1_000),
        Some(atoms::MICROSECOND | atoms::MICRO_SECONDS) => Ok(1_000_000),
        Some(atoms::NANOSECOND | atoms::NANO_SECONDS | atoms::NATIVE | atoms::PERF_COUNTER) => {
            Ok(1_000_000_000)
        }
        _ => Err(ctx.badarg()),
    }
}

fn in_unit(ctx: &mut Ctx, ns: i128, per_second: i128) -> Word {
    let v = (ns * per_second).div_euclid(1_000_000_000);
    let m = v.unsigned_abs();
    ctx.big(v < 0, &[m as u64, (m >> 64) as u64])
}

fn monotonic(ctx: &Ctx) -> i128 {
    i128::from(vm_of(ctx).monotonic_ns())
}

fn system(ctx: &Ctx) -> i128 {
    i128::from(vm_of(ctx).system_ns())
}

/// `monotonic_time()`.
fn monotonic_time_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = monotonic(ctx);
    Ok(in_unit(ctx, t, 1_000_000_000))
}
/// `monotonic_time(Unit)`.
fn monotonic_time_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let u = unit(ctx, args[0])?;
    let t = monotonic(ctx);
    Ok(in_unit(ctx, t, u))
}
/// `system_time()`.
fn system_time_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = system(ctx);
    Ok(in_unit(ctx, t, 1_000_000_000))
}
/// `system_time(Unit)`.
fn system_time_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let u = unit(ctx, args[0])?;
    let t = system(ctx);
    Ok(in_unit(ctx, t, u))
}
/// `os:system_time()`: the clock of the operating system, which may be set.
fn os_system_time_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = vm_of(ctx).door.system_time();
    Ok(in_unit(ctx, i128::from(t), 1_000_000_000))
}
/// `os:system_time(Unit)`.
fn os_system_time_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let u = unit(ctx, args[0])?;
    let t = vm_of(ctx).door.system_time();
    Ok(in_unit(ctx, i128::from(t), u))
}
/// `time_offset()`.
fn time_offset_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let t = i128::from(vm_of(ctx).time_offset_ns());
    Ok(in_unit(ctx, t, 1_000_000_000))
}
/// `time_offset(Unit)`.
fn time_offset_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let u = unit(ctx, args[0])?;
    let t = i128::from(vm_of(ctx).time_offset_ns());
    Ok(in_unit(ctx, t, u))
}

fn mega_seconds(ctx: &mut Ctx, us: i64) -> Word {
    let parts = [
        us / 1_000_000_000_000,
        us / 1_000_000 % 1_000_000,
        us % 1_000_000,
    ];
    ctx.tuple(&parts.map(Word::fixnum))
}
/// `timestamp()`.
fn timestamp_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let us = vm_of(ctx).system_time_us();
    Ok(mega_seconds(ctx, us))
}

/// `os:timestamp()`.
fn os_timestamp_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let us = vm_of(ctx).door.system_time() / 1000;
    Ok(mega_seconds(ctx, us))
}

/// The last value that `now/0` gave.
#[derive(Default)]
struct LastNow(std::sync::atomic::AtomicI64);

/// `now()`: as `timestamp()`, and strictly increasing.
fn now_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    use std::sync::atomic::Ordering::SeqCst;
    let vm = vm_of(ctx);
    let last = vm.extensions.get_or_init(LastNow::default);
    let us = vm.system_time_us();
    let mut seen = last.0.load(SeqCst);
    loop {
        let next = us.max(seen + 1);
        match last.0.compare_exchange(seen, next, SeqCst, SeqCst) {
            Ok(_) => return Ok(mega_seconds(ctx, next)),
            Err(now) => seen = now,
        }
    }
}

/// `erts_internal:time_unit()`, `perf_counter_unit()`: parts per second.
fn time_unit_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(1_000_000_000))
}

// ---- timers

/// The largest time in milliseconds that a timer accepts from now.
const MAX_TIMEOUT: u64 = u64::MAX >> 20;

fn timer_time(ctx: &mut Ctx, w: Word, absolute: bool) -> Result<TimerTime, Escape> {
    let mut buffer = 0;
    match Int::of(w, &mut buffer).map(|i| (i.to_i64(), i.negative)) {
        Some((Some(n), _)) if absolute => Ok(TimerTime::At(n.max(0) as u64)),
        Some((Some(n), false)) if n as u64 <= MAX_TIMEOUT => Ok(TimerTime::In(n as u64)),
        _ => Err(because(ctx, "time")),
    }
}

fn abs_option(ctx: &mut Ctx, options: Word) -> Result<bool, Escape> {
    let mut absolute = false;
    for o in option_items(ctx, options)? {
        match o.as_tuple() {
            Some([k, v])
                if k.as_atom()
                    .is_some_and(|a| ctx.tables().atoms.text(a) == "abs") =>
            {
                match v.as_boolean() {
                    Some(b) => absolute = b,
                    None => return Err(bad_option(ctx)),
                }
            }
            _ => return Err(bad_option(ctx)),
        }
    }
    Ok(absolute)
}

fn start(ctx: &mut Ctx, args: &[Word], absolute: bool, wrap: bool) -> Result<Word, Escape> {
    let time = timer_time(ctx, args[0], absolute)?;
    timer::start_timer(ctx, time, args[1], args[2], wrap)
}

/// `send_after(Time, Dest, Message)`.
fn send_after_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    start(ctx, args, false, false)
}
/// `send_after(Time, Dest, Message, Options)`.
fn send_after_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let absolute = abs_option(ctx, args[3])?;
    start(ctx, args, absolute, false)
}
/// `start_timer(Time, Dest, Message)`.
fn start_timer_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    start(ctx, args, false, true)
}
/// `start_timer(Time, Dest, Message, Options)`.
fn start_timer_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let absolute = abs_option(ctx, args[3])?;
    start(ctx, args, absolute, true)
}

fn left(ctx: &mut Ctx, ms: Option<u64>) -> Word {
    match ms {
        Some(n) => ctx.unsigned(n),
        None => Word::FALSE,
    }
}

/// `async` and `info` of `cancel_timer/2` and `read_timer/2`.
fn timer_options(ctx: &mut Ctx, options: Word, info_allowed: bool) -> Result<(bool, bool), Escape> {
    let (mut asynchronous, mut info) = (false, true);
    for o in list_items(ctx, options)? {
        let Some([k, v]) = o.as_tuple() else {
            return Err(ctx.badarg());
        };
        match (k.as_atom(), v.as_boolean()) {
            (Some(atoms::ASYNC), Some(b)) => asynchronous = b,
            (Some(atoms::INFO), Some(b)) if info_allowed => info = b,
            _ => return Err(ctx.badarg()),
        }
    }
    Ok((asynchronous, info))
}

fn answer(ctx: &mut Ctx, tag: &str, reference: Word, result: Word) -> Result<(), Escape> {
    let tag = ctx.atom(tag)?;
    let message = ctx.tuple(&[tag, reference, result]);
    let me = ctx.self_pid();
    beamr_vm::rt::send(ctx, me, message).map_err(|p| ctx.escape(p))
}

/// `cancel_timer(Ref)`.
fn cancel_timer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let ms = timer::cancel_timer(ctx, args[0])?;
    Ok(left(ctx, ms))
}
/// `cancel_timer(Ref, Options)`.
fn cancel_timer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (asynchronous, info) = timer_options(ctx, args[1], true)?;
    let ms = timer::cancel_timer(ctx, args[0])?;
    let result = left(ctx, ms);
    if asynchronous && info {
        answer(ctx, "cancel_timer", args[0], result)?;
    }
    Ok(if asynchronous || !info {
        atoms::OK.word()
    } else {
        result
    })
}
/// `read_timer(Ref)`.
fn read_timer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let ms = timer::read_timer(ctx, args[0])?;
    Ok(left(ctx, ms))
}
/// `read_timer(Ref, Options)`.
fn read_timer_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (asynchronous, _) = timer_options(ctx, args[1], false)?;
    let ms = timer::read_timer(ctx, args[0])?;
    let result = left(ctx, ms);
    if asynchronous {
        answer(ctx, "read_timer", args[0], result)?;
        return Ok(atoms::OK.word());
    }
    Ok(result)
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::Clock)
}

const fn os(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("os", function, arity, func).needs(Capability::Clock)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("monotonic_time", 0, monotonic_time_0),
    row("monotonic_time", 1, monotonic_time_1),
    row("system_time", 0, system_time_0),
    row("system_time", 1, system_time_1),
    row("time_offset", 0, time_offset_0),
    row("time_offset", 1, time_offset_1),
    row("timestamp", 0, timestamp_0),
    row("now", 0, now_0),
    NativeEntry::new("erts_internal", "time_unit", 0, time_unit_0),
    NativeEntry::new("erts_internal", "perf_counter_unit", 0, time_unit_0),
    os("timestamp", 0, os_timestamp_0),
    os("system_time", 0, os_system_time_0),
    os("system_time", 1, os_system_time_1),
    os("perf_counter", 0, monotonic_time_0),
    row("send_after", 3, send_after_3),
    row("send_after", 4, send_after_4),
    row("start_timer", 3, start_timer_3),
    row("start_timer", 4, start_timer_4),
    row("cancel_timer", 1, cancel_timer_1),
    row("cancel_timer", 2, cancel_timer_2),
    row("read_timer", 1, read_timer_1),
    row("read_timer", 2, read_timer_2),
];
