//! Trace messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use beamr_term::{Alloc, Build, Tables, Word};

use super::flags;
use super::tracee::Tracee;
use crate::process::{Carried, Slot, copy_term};
use crate::sched::Worker;
use crate::signal::{Signal, push};
use crate::vm::Vm;

macro_rules! names {
    ($($field:ident = $text:literal,)*) => {
        /// Atoms of trace messages.
        #[allow(missing_docs)]
        #[derive(Debug)]
        pub struct Names {
            $(pub $field: Word,)*
        }
        impl Names {
            pub(super) fn new(tables: &Tables) -> Names {
                // A table that has no room for these has room for nothing.
                let atom = |text| tables.atoms.intern(text).map_or(Word::NIL, |a| a.word());
                Names { $($field: atom($text),)* }
            }
        }
    };
}

names! {
    trace = "trace",
    trace_ts = "trace_ts",
    seq_trace = "seq_trace",
    send = "send",
    send_to_nobody = "send_to_non_existing_process",
    receive = "receive",
    print = "print",
    spawn_request = "spawn_request",
    spawn_reply = "spawn_reply",
    spawn = "spawn",
    spawned = "spawned",
    exit = "exit",
    link = "link",
    unlink = "unlink",
    getting_linked = "getting_linked",
    getting_unlinked = "getting_unlinked",
    register = "register",
    unregister = "unregister",
    r#in = "in",
    out = "out",
    in_exiting = "in_exiting",
    out_exiting = "out_exiting",
    out_exited = "out_exited",
    gc_minor_start = "gc_minor_start",
    gc_minor_end = "gc_minor_end",
    gc_major_start = "gc_major_start",
    gc_major_end = "gc_major_end",
    call = "call",
    return_from = "return_from",
    return_to = "return_to",
    exception_from = "exception_from",
    system = "system",
    clock_service = "clock_service",
    default = "default",
    wordsize = "wordsize",
    old_heap_block_size = "old_heap_block_size",
    heap_block_size = "heap_block_size",
    mbuf_size = "mbuf_size",
    recent_size = "recent_size",
    stack_size = "stack_size",
    old_heap_size = "old_heap_size",
    heap_size = "heap_size",
    bin_vheap_size = "bin_vheap_size",
    bin_vheap_block_size = "bin_vheap_block_size",
    bin_old_vheap_size = "bin_old_vheap_size",
    bin_old_vheap_block_size = "bin_old_vheap_block_size",
}

/// The last time stamp that was given: they increase strictly, as `erlang:now/0` does.
#[derive(Default)]
struct Last(AtomicI64);

/// The time stamp that these flags ask for.
pub fn timestamp(vm: &Arc<Vm>, mask: u32, to: &mut impl Alloc) -> Option<Word> {
    if mask & flags::TIMESTAMP != 0 {
        let last = vm.extensions.get_or_init(Last::default);
        let us = vm.system_time_us();
        let us = match last
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |seen| {
                Some(us.max(seen + 1))
            }) {
            Ok(seen) | Err(seen) => us.max(seen + 1),
        };
        let parts = [
            us / 1_000_000_000_000,
            us / 1_000_000 % 1_000_000,
            us % 1_000_000,
        ];
        return Some(to.tuple(&parts.map(Word::fixnum)));
    }
    if mask & (flags::STRICT_MONOTONIC | flags::MONOTONIC) == 0 {
        return None;
    }
    let time = to.integer(vm.monotonic_ns() as i64);
    if mask & flags::STRICT_MONOTONIC == 0 {
        return Some(time);
    }
    let unique = to.integer(i64::MIN / 16 + vm.next_monotonic() as i64);
    Some(to.tuple(&[time, unique]))
}

/// Sends `{trace, Pid, Tag, Args...}`, with what the flags add, to the tracer. `extra` is the value of a match specification.
pub(super) fn deliver(
    w: &Worker,
    slot: &Slot,
    t: &Tracee,
    tag: Word,
    args: &[Word],
    extra: Option<Word>,
) {
    if t.tracer == slot.pid() {
        return;
    }
    if !tell(w, slot.pid(), t.flags, t.tracer, tag, args, extra) {
        slot.tracing().forget(&t.session);
    }
}

/// The same for any tracer and flags; false when the tracer is dead.
pub(super) fn tell(
    w: &Worker,
    pid: Word,
    mask: u32,
    tracer: Word,
    tag: Word,
    args: &[Word],
    extra: Option<Word>,
) -> bool {
    let names = &w.vm.trace.names;
    let message = Carried::build(32, |f| {
        let stamp = timestamp(&w.vm, mask, f);
        let head = if stamp.is_some() {
            names.trace_ts
        } else {
            names.trace
        };
        let mut words = vec![head, pid, tag];
        for a in args {
            words.push(copy_term(*a, f));
        }
        if let Some(extra) = extra {
            words.push(copy_term(extra, f));
        }
        if mask & flags::SCHEDULER_ID != 0 {
            let n = w.index.map_or(0, |i| i as i64 + 1);
            words.push(Word::fixnum(n));
        }
        words.extend(stamp);
        f.tuple(&words)
    });
    send(w, tracer, message)
}

/// Sends a message to a tracer; false when it is dead.
pub(super) fn send(w: &Worker, tracer: Word, message: Carried) -> bool {
    if tracer.is_local_port() {
        return false;
    }
    let id = beamr_sync::SlotId::from_u64(tracer.local_number());
    push(w, id, Signal::Message(message.into_message())).is_ok()
}
