//! Events of processes.

use beamr_abi::Ctx;
use beamr_term::{Build, Fragment, Word, atoms};

use super::actions::Host;
use super::event::deliver;
use super::flags::{self, EXITING, GC, PROCS, RECEIVE, RUNNING, RUNNING_PROCS, SEND};
use super::tracee::{Tracee, is_alive};
use crate::process::{Process, Slot, process, slot_of, worker};
use crate::sched::Worker;

fn value(given: Word) -> Option<Word> {
    (given != Word::TRUE).then_some(given)
}

/// `send`, before the message goes: `to` as the program gave it.
#[cold]
#[inline(never)]
pub(crate) fn sent(ctx: &mut Ctx, to: Word, message: Word) {
    let (w, slot) = (worker(ctx), slot_of(ctx));
    for t in slot.tracing().with(SEND) {
        let pattern = t.session.pattern(true);
        if !pattern.on {
            continue;
        }
        let mut given = None;
        if let Some(spec) = &pattern.spec {
            let mut host = Host::new(w, slot, &t);
            // SAFETY: the process runs the send: its body is in no other use.
            host.at(unsafe { &*ctx.body });
            match spec.run(w, slot.pid(), &[to, message], &mut host) {
                Some(g) if g.term != Word::FALSE => given = Some(g),
                _ => continue,
            }
            if slot
                .tracing()
                .of(&t.session)
                .is_some_and(|t| t.flags & flags::SILENT != 0)
            {
                continue;
            }
        }
        let names = &w.vm.trace.names;
        let gone = to.is_local_pid() && !is_alive(w, to);
        let tag = if gone {
            names.send_to_nobody
        } else {
            names.send
        };
        let extra = given.as_ref().and_then(|g| value(g.term));
        deliver(w, slot, &t, tag, &[message, to], extra);
    }
}

/// `'receive'`: a message comes into the mailbox. `from` is `[]` where it is not known.
#[cold]
#[inline(never)]
pub(crate) fn received(w: &Worker, slot: &Slot, message: Word, from: Word) {
    for t in slot.tracing().with(RECEIVE) {
        let pattern = t.session.pattern(false);
        if !pattern.on {
            continue;
        }
        let names = &w.vm.trace.names;
        let mut given = None;
        if let Some(spec) = &pattern.spec {
            let node = w.vm.tables.local_node().0.word();
            let args = if from.is_atom() {
                [from, atoms::UNDEFINED.word(), message]
            } else if from.is_nil() {
                [names.system, atoms::UNDEFINED.word(), message]
            } else {
                [node, from, message]
            };
            match spec.run(w, slot.pid(), &args, &mut Host::new(w, slot, &t)) {
                Some(g) if g.term != Word::FALSE => given = Some(g),
                _ => continue,
            }
            if t.flags & flags::SILENT != 0 {
                continue;
            }
        }
        let extra = given.as_ref().and_then(|g| value(g.term));
        deliver(w, slot, &t, names.receive, &[message], extra);
    }
}

/// `'receive'` of `timeout`: a receive waited in vain.
#[cold]
#[inline(never)]
pub(crate) fn timed_out(w: &Worker, slot: &Slot) {
    received(
        w,
        slot,
        atoms::TIMEOUT.word(),
        w.vm.trace.names.clock_service,
    );
}

/// Which atom of [`super::Names`].
pub(crate) type Tag = fn(&super::Names) -> Word;

/// An event of `procs`.
#[cold]
#[inline(never)]
fn procs_event(w: &Worker, slot: &Slot, tag: Tag, args: &[Word]) {
    for t in slot.tracing().with(PROCS) {
        deliver(w, slot, &t, tag(&w.vm.trace.names), args, None);
    }
}

/// An event of `procs`, if that is traced.
#[inline]
pub(crate) fn procs(w: &Worker, slot: &Slot, tag: Tag, args: &[Word]) {
    if slot.tracing().on(PROCS) {
        procs_event(w, slot, tag, args);
    }
}

/// As [`procs`], where the argument is a process or port of any node.
#[inline]
pub(crate) fn procs_of(w: &Worker, slot: &Slot, tag: Tag, other: crate::process::ProcId) {
    if slot.tracing().on(PROCS) {
        let mut f = Fragment::with_capacity(8);
        let other = other.build(&w.vm.tables, &mut f);
        procs_event(w, slot, tag, &[other]);
    }
}

/// What a process that is being made is traced for: what its parent passes on, and what is said of new processes.
pub(crate) fn inherit(w: &Worker, parent: Option<&Slot>, child: &Slot, linked: bool) {
    if let Some(parent) = parent {
        let links = flags::SET_ON_LINK | flags::SET_ON_FIRST_LINK;
        let spawns = flags::SET_ON_SPAWN | flags::SET_ON_FIRST_SPAWN;
        let wanted = spawns | if linked { links } else { 0 };
        for t in parent.tracing().with(wanted) {
            // The first one has it, and nobody after it.
            let mut off = 0;
            if t.flags & flags::SET_ON_FIRST_SPAWN != 0 {
                off |= spawns;
            }
            if linked && t.flags & flags::SET_ON_FIRST_LINK != 0 {
                off |= links;
            }
            child.tracing().inherit(&t, t.flags & !off);
            if off != 0 {
                parent.tracing().adjust(&t.session, off, 0);
            }
        }
    }
    if w.vm.trace.traces_new() {
        for session in w.vm.trace.sessions() {
            let (mask, tracer) = session.of_new(false);
            if mask == 0 || child.tracing().of(&session).is_some() {
                continue;
            }
            if !is_alive(w, tracer) {
                w.vm.trace
                    .set_new(&session, false, false, flags::ALL, Word::NIL);
                continue;
            }
            child.tracing().set(w, &session, true, mask, tracer);
        }
    }
}

/// A process links itself to another: what it passes on to it.
#[inline]
pub(crate) fn inherit_by_link(w: &Worker, slot: &Slot, other: Word) {
    const LINKS: u32 = flags::SET_ON_LINK | flags::SET_ON_FIRST_LINK;
    // OTP 25 says so too, but passes nothing on.
    if !slot.tracing().on(LINKS) || w.vm.tables.release.0 <= 25 {
        return;
    }
    for t in slot.tracing().with(LINKS) {
        let off = if t.flags & flags::SET_ON_FIRST_LINK != 0 {
            LINKS
        } else {
            0
        };
        let passed = t.flags & !off;
        super::tracee::with_slot(w, other, |o| {
            let now = o.tracing().of(&t.session);
            // A tracer that is there stays.
            if now
                .as_ref()
                .is_none_or(|n| n.tracer == t.tracer || !is_alive(w, n.tracer))
            {
                o.tracing().inherit(&t, passed | now.map_or(0, |n| n.flags));
            }
        });
        if off != 0 {
            slot.tracing().adjust(&t.session, off, 0);
        }
    }
}

/// The events of a spawn: for the parent, then for the child.
pub(crate) fn spawned(
    w: &Worker,
    parent: Option<&Slot>,
    child: &Slot,
    start: (Word, Word, Word),
    linked: bool,
) {
    let mut f = Fragment::with_capacity(4);
    let mfa = f.tuple(&[start.0, start.1, start.2]);
    if let Some(p) = parent {
        procs(w, p, |n| n.spawn, &[child.pid(), mfa]);
        if linked {
            procs(w, p, |n| n.link, &[child.pid()]);
        }
    }
    let from = parent.map_or(atoms::UNDEFINED.word(), Slot::pid);
    procs(w, child, |n| n.spawned, &[from, mfa]);
    if linked {
        procs(w, child, |n| n.getting_linked, &[from]);
    }
}

/// The process is switched in or out.
#[cold]
#[inline(never)]
pub(crate) fn scheduled(w: &Worker, slot: &Slot, process: &Process, tag: Tag) {
    let all = slot.tracing().with(RUNNING | RUNNING_PROCS);
    if all.is_empty() {
        return;
    }
    // SAFETY: the caller is the runner and has the body, which does not run.
    let frames = unsafe { crate::rt::stack_frames(&w.vm.server, &process.body, 1) };
    // SAFETY: the caller is the runner.
    let (m, f, a) = match frames.first() {
        Some(at) => (at.module, at.function, at.arity),
        None => unsafe { (*slot.own_ptr()).initial_call },
    };
    let mut to = Fragment::with_capacity(4);
    let mfa = to.tuple(&[m.word(), f.word(), Word::fixnum(i64::from(a))]);
    for t in all {
        deliver(w, slot, &t, tag(&w.vm.trace.names), &[mfa], None);
    }
}

/// The process has left its scheduler for good.
pub(crate) fn exited(w: &Worker, slot: &Slot) {
    if slot.tracing().on(EXITING) {
        for t in slot.tracing().with(EXITING) {
            let tag = w.vm.trace.names.out_exited;
            deliver(w, slot, &t, tag, &[Word::fixnum(0)], None);
        }
    }
}

/// Whether collections of a process are traced.
#[inline]
pub(crate) fn traces_collections(slot: &Slot) -> bool {
    slot.tracing().on(GC)
}

/// A collection begins, or has ended.
#[cold]
#[inline(never)]
pub(crate) fn collection(w: &Worker, process: &Process, full: bool, ended: bool, words: usize) {
    let slot = process.slot();
    let n = &w.vm.trace.names;
    let tag = match (full, ended) {
        (false, false) => n.gc_minor_start,
        (false, true) => n.gc_minor_end,
        (true, false) => n.gc_major_start,
        (true, true) => n.gc_major_end,
    };
    let h = &process.body.heap;
    let items = [
        (n.wordsize, words),
        (n.bin_old_vheap_block_size, h.old_virtual_limit),
        (n.bin_old_vheap_size, h.old_overhead),
        (n.bin_vheap_block_size, h.virtual_limit),
        (n.bin_vheap_size, h.off_heap.overhead),
        (n.heap_block_size, h.size()),
        (n.heap_size, h.used()),
        (n.mbuf_size, h.fragment_words),
        (n.old_heap_block_size, h.old_size()),
        (n.old_heap_size, h.old_used()),
        (
            n.recent_size,
            (h.high_water as usize - h.start as usize) / 8,
        ),
        (n.stack_size, h.stack_size()),
    ];
    let mut f = Fragment::with_capacity(64);
    let items: Vec<Word> = items
        .iter()
        .map(|(k, v)| f.tuple(&[*k, Word::fixnum(*v as i64)]))
        .collect();
    let info = f.list(items);
    let all: Vec<Tracee> = slot.tracing().with(GC);
    for t in all {
        deliver(w, slot, &t, tag, &[info], None);
    }
}

/// Notes what `process_flag(sensitive, On)` says.
pub(crate) fn set_sensitive(ctx: &Ctx, on: bool) {
    process(ctx).slot().tracing().set_bit(flags::SENSITIVE, on);
}
