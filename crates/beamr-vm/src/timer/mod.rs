//! Timers: receive timeouts, `send_after` and its kin.
//!
//! One wheel per worker, a tick is a millisecond of monotonic time. A timer never fires early: its deadline is
//! counted from the next full tick. A message timer is found by its reference through a sharded map; inserting
//! holds the shard's lock over the insertion into the wheel, firing takes that lock after it left the wheel, so that an entry
//! never outlives its timer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Mutex;

use beamr_abi::{Ctx, Escape};
use beamr_sync::{SlotId, TimerHandle};
use beamr_term::{Atom, Build, Word, atoms};

use crate::process::{
    Carried, Own, ProcId, ReceiveTimer, RefKey, TimeoutState, own, slot_of, worker,
};
use crate::sched::Worker;
use crate::signal::{Signal, push};

/// Nanoseconds of a tick.
pub const TICK: u64 = 1_000_000;

/// Whom a message timer sends to.
#[derive(Clone, Copy, Debug)]
pub enum TimerDest {
    /// A process.
    Pid(ProcId),
    /// A name, looked up when the timer fires.
    Name(u32, Atom),
}

/// A message timer.
#[derive(Debug)]
pub struct MessageTimer {
    key: RefKey,
    dest: TimerDest,
    message: Carried,
}

/// What a wheel carries.
#[derive(Debug)]
pub enum TimerEvent {
    /// A receive timeout of a process, with its number.
    Receive(SlotId, u32),
    /// A message.
    Message(Box<MessageTimer>),
}

const SHARDS: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Place {
    worker: u32,
    handle: TimerHandle,
    dest: TimerDest,
}

/// References are numbered one after the other, and timers are mostly cancelled in the order of their making or near
/// it: neighbours get neighbouring places.
#[derive(Clone, Copy, Debug, Default)]
struct InOrder {
    number: u64,
    second: bool,
}

impl Hasher for InOrder {
    fn finish(&self) -> u64 {
        // The table takes the place from the low bits and a tag from the seven highest.
        let spread = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (self.number / SHARDS as u64) ^ (spread & (0xFE << 56))
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u64(&mut self, n: u64) {
        // The second word of a key is above the 50 bits of the first.
        self.number ^= if self.second {
            n << 50
        } else {
            (n & 0x3_FFFF) | ((n >> 32) << 18)
        };
        self.second = true;
    }
}

type Shard = HashMap<RefKey, Place, BuildHasherDefault<InOrder>>;

/// The message timers of a VM by reference.
#[derive(Debug, Default)]
pub struct MessageTimers {
    shards: [Mutex<Shard>; SHARDS],
}

impl MessageTimers {
    fn shard(&self, key: RefKey) -> std::sync::MutexGuard<'_, Shard> {
        let i = key.numbers()[0] as usize % SHARDS;
        self.shards[i].lock().unwrap_or_else(|e| e.into_inner())
    }
    /// How many run.
    pub fn len(&self) -> usize {
        let lock = |s: &Mutex<Shard>| s.lock().unwrap_or_else(|e| e.into_inner()).len();
        self.shards.iter().map(lock).sum()
    }
    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of one, without its message.
    pub const BYTES: usize = size_of::<MessageTimer>() + size_of::<(RefKey, Place)>() + 32;
}

/// Long timers that a process started to itself: they are taken down when it dies. Shorter ones go by themselves.
#[derive(Debug, Default)]
pub struct OwnTimers {
    /// Those that ran when the list was last cleaned, and all since.
    keys: Vec<RefKey>,
    clean_at: usize,
}

/// From this many milliseconds on a timer is long.
const LONG: u64 = 10_000;

impl OwnTimers {
    fn add(&mut self, timers: &MessageTimers, key: RefKey) {
        if self.keys.len() >= self.clean_at.max(64) {
            self.keys.retain(|k| timers.shard(*k).contains_key(k));
            self.clean_at = self.keys.len() * 2;
        }
        self.keys.push(key);
    }
}

/// The process has died: takes its long timers down.
pub(crate) fn process_ended(w: &Worker, timers: &OwnTimers) {
    for key in &timers.keys {
        let place = w.vm.message_timers.shard(*key).remove(key);
        if let Some(place) = place {
            w.vm.workers[place.worker as usize]
                .wheel
                .cancel(place.handle);
        }
    }
}

/// The tick from which on `now` (nanoseconds) is over.
fn next_tick(now: u64) -> u64 {
    now.div_ceil(TICK)
}

/// Fires what is due on a worker's wheel. True when more is due.
pub(crate) fn fire_due(w: &Worker, index: usize, due: &mut Vec<(u64, TimerEvent)>) -> bool {
    let wheel = &w.vm.workers[index].wheel;
    if wheel.next_deadline().is_none() {
        return false;
    }
    let now = w.vm.monotonic_ns() / TICK;
    let more = wheel.take_due(now, 256, due);
    for (_, event) in due.drain(..) {
        fire(w, event);
    }
    more
}

fn fire(w: &Worker, event: TimerEvent) {
    match event {
        TimerEvent::Receive(id, number) => {
            let _ = push(w, id, Signal::Timeout(number));
        }
        TimerEvent::Message(t) => {
            w.vm.message_timers.shard(t.key).remove(&t.key);
            let to = match t.dest {
                TimerDest::Pid(p) => p.slot(),
                TimerDest::Name(namespace, name) => {
                    w.vm.registry
                        .whereis(namespace, name)
                        .and_then(|p| ProcId::of(p)?.slot())
                }
            };
            if let Some(to) = to {
                let _ = push(w, to, Signal::Message(t.message.into_message()));
            }
        }
    }
}

/// Starts a timer on the calling worker's wheel (the first worker's for other threads).
fn insert(w: &Worker, deadline: u64, event: TimerEvent) -> (u32, TimerHandle) {
    let index = w.index.unwrap_or(0);
    let inserted = w.vm.workers[index].wheel.insert(deadline, event);
    if inserted.is_earliest && w.index.is_none() {
        w.vm.wake_for_timer(index);
    }
    (index as u32, inserted.handle)
}

/// Sets the timer of the running receive.
pub(crate) fn start_receive(w: &Worker, id: SlotId, own: &mut Own, milliseconds: u64) {
    let deadline = next_tick(w.vm.monotonic_ns()) + milliseconds;
    own.timer_id = own.timer_id.wrapping_add(1);
    let event = TimerEvent::Receive(id, own.timer_id);
    let (worker, handle) = insert(w, deadline, event);
    own.timer = Some(ReceiveTimer { worker, handle });
    own.timeout = TimeoutState::Running;
}

/// Takes the timer of the running receive down.
#[inline]
pub(crate) fn stop_receive(w: &Worker, own: &mut Own) {
    if own.timeout == TimeoutState::Unset {
        return;
    }
    own.timeout = TimeoutState::Unset;
    if let Some(t) = own.timer.take() {
        w.vm.workers[t.worker as usize].wheel.cancel(t.handle);
    }
}

/// When a message timer fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerTime {
    /// In so many milliseconds.
    In(u64),
    /// At that millisecond of the VM's monotonic time ([`Vm::monotonic_ns`](crate::vm::Vm::monotonic_ns)).
    At(u64),
}

/// `send_after` (`wrap` false) and `start_timer` (`wrap` true: the message is `{timeout, Ref, Message}`): the timer's reference. `dest`
/// is a local pid or a name; anything else is `badarg`.
pub fn start_timer(
    ctx: &mut Ctx,
    time: TimerTime,
    dest: Word,
    message: Word,
    wrap: bool,
) -> Result<Word, Escape> {
    let w = worker(ctx);
    let dest = match (ProcId::of(dest), dest.as_atom()) {
        (Some(p), _) if p.is_local_pid() => TimerDest::Pid(p),
        (_, Some(name)) => TimerDest::Name(slot_of(ctx).namespace.id, name),
        _ => return Err(ctx.badarg()),
    };
    let key = w.next_ref();
    let message = if wrap {
        Carried::own(message).wrap(|f, m| {
            let r = key.build(f);
            f.tuple(&[atoms::TIMEOUT.word(), r, m])
        })
    } else {
        Carried::own(message)
    };
    let deadline = match time {
        TimerTime::In(ms) => next_tick(w.vm.monotonic_ns()).saturating_add(ms),
        TimerTime::At(ms) => ms,
    };
    let timer = Box::new(MessageTimer { key, dest, message });
    let mut shard = w.vm.message_timers.shard(key);
    let (worker, handle) = insert(w, deadline, TimerEvent::Message(timer));
    shard.insert(
        key,
        Place {
            worker,
            handle,
            dest,
        },
    );
    drop(shard);
    if matches!(time, TimerTime::In(ms) if ms >= LONG)
        && matches!(dest, TimerDest::Pid(p) if p == slot_of(ctx).proc_id())
    {
        own(ctx)
            .timers
            .get_or_insert_default()
            .add(&w.vm.message_timers, key);
    }
    Ok(key.build(ctx))
}

/// Whether a timer with this destination still means something: timers of dead processes count as cancelled.
fn wanted(w: &Worker, dest: TimerDest) -> bool {
    match dest {
        TimerDest::Pid(p) => p.slot().is_some_and(|id| {
            let guard = w.participant.pin();
            w.vm.processes.get(id, &guard).is_some()
        }),
        TimerDest::Name(..) => true,
    }
}

/// `cancel_timer`: the milliseconds that were left, or `None` when there is no such timer. `badarg` for what is no reference.
pub fn cancel_timer(ctx: &mut Ctx, reference: Word) -> Result<Option<u64>, Escape> {
    if !reference.is_reference() {
        return Err(ctx.badarg());
    }
    let Some(key) = RefKey::of(reference) else {
        return Ok(None);
    };
    let w = worker(ctx);
    let Some(place) = w.vm.message_timers.shard(key).remove(&key) else {
        return Ok(None);
    };
    let Some((_, deadline)) = w.vm.workers[place.worker as usize]
        .wheel
        .cancel(place.handle)
    else {
        return Ok(None);
    };
    let left = deadline.saturating_sub(next_tick(w.vm.monotonic_ns()));
    Ok(wanted(w, place.dest).then_some(left))
}

/// `read_timer`: the milliseconds that are left, or `None`. `badarg` for what is no reference.
pub fn read_timer(ctx: &mut Ctx, reference: Word) -> Result<Option<u64>, Escape> {
    if !reference.is_reference() {
        return Err(ctx.badarg());
    }
    let Some(key) = RefKey::of(reference) else {
        return Ok(None);
    };
    let w = worker(ctx);
    let Some(place) = w.vm.message_timers.shard(key).get(&key).copied() else {
        return Ok(None);
    };
    let deadline = w.vm.workers[place.worker as usize].wheel.read(place.handle);
    let now = next_tick(w.vm.monotonic_ns());
    Ok(deadline
        .filter(|_| wanted(w, place.dest))
        .map(|d| d.saturating_sub(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_get_neighbouring_places() {
        let hash = |n: u64| {
            let mut h = InOrder::default();
            std::hash::Hash::hash(&RefKey::new(n), &mut h);
            h.finish() & !(0xFE << 56)
        };
        for n in [0, 1 << 18, (1 << 50) + 7, (1 << 55) + (1 << 20)] {
            let base = n / SHARDS as u64 * SHARDS as u64;
            assert_eq!(hash(base + SHARDS as u64), hash(base) + 1, "{n}");
        }
    }
}
