//! `process_flag`.

use std::sync::atomic::Ordering;

use beamr_abi::{Ctx, Escape};
use beamr_sync::Priority;
use beamr_term::{Alloc, Word, atoms, maps};

use super::{MaxHeap, has_room, own, process, slot_of};
use crate::gc::sizes::{next_size, next_virtual};
use crate::process::spawn;
use crate::signal::request::{RequestKind, ask};

/// The atom of a priority.
pub fn priority_atom(p: Priority) -> Word {
    match p {
        Priority::Max => atoms::MAX,
        Priority::High => atoms::HIGH,
        Priority::Normal => atoms::NORMAL,
        Priority::Low => atoms::LOW,
    }
    .word()
}

/// `max_heap_size` as a map.
pub fn max_heap_map(
    heap: &mut impl Alloc,
    tables: &beamr_term::Tables,
    size: usize,
    max: MaxHeap,
) -> Word {
    let atom = |t: &str| tables.atoms.intern(t).map_or(Word::NIL, |a| a.word());
    let mut pairs = vec![
        (atom("error_logger"), Word::boolean(max.error_logger)),
        (atoms::KILL.word(), Word::boolean(max.kill)),
        (atoms::SIZE.word(), Word::fixnum(size as i64)),
    ];
    if tables.release.0 >= 27 {
        pairs.push((
            atom("include_shared_binaries"),
            Word::boolean(max.include_shared_binaries),
        ));
    }
    maps::from_pairs(heap, &pairs, tables)
}

fn size(value: Word) -> Option<usize> {
    usize::try_from(value.as_small()?).ok()
}

/// `process_flag/2`: the value before. `badarg` for unknown flags and values.
///
/// Flags: `trap_exit`, `error_handler`, `fullsweep_after`, `min_heap_size`, `min_bin_vheap_size`, `max_heap_size`, `priority`,
/// `message_queue_data`, `save_calls`, `sensitive`, `async_dist`, `scheduler`, `monitor_nodes`
/// and `{monitor_nodes, Options}`. (The last two are counted; what a node's coming and going sends is for the distribution.)
pub fn process_flag(ctx: &mut Ctx, flag: Word, value: Word) -> Result<Word, Escape> {
    // The next collection makes the heap as large as that.
    if flag == atoms::MIN_HEAP_SIZE.word()
        && let Some(n) = size(value)
        && !has_room(ctx, n.saturating_mul(8))
    {
        return Err(ctx.system_limit());
    }
    if let Some(old) = set(ctx, flag, value) {
        return Ok(old);
    }
    // The module that words errors tells unknown flags from wrong values by the cause.
    Err(match flag.as_atom() {
        Some(atoms::SAVE_CALLS) => ctx.badarg_because(atoms::NONE),
        Some(f) if is_flag(ctx, f) => ctx.badarg(),
        _ => match ctx.atom("badopt") {
            Ok(cause) => ctx.badarg_because(cause),
            Err(e) => e,
        },
    })
}

fn is_flag(ctx: &Ctx, flag: beamr_term::Atom) -> bool {
    matches!(
        flag,
        atoms::TRAP_EXIT
            | atoms::ERROR_HANDLER
            | atoms::FULLSWEEP_AFTER
            | atoms::MIN_HEAP_SIZE
            | atoms::MIN_BIN_VHEAP_SIZE
            | atoms::MAX_HEAP_SIZE
            | atoms::PRIORITY
            | atoms::MESSAGE_QUEUE_DATA
            | atoms::SAVE_CALLS
            | atoms::SENSITIVE
            | atoms::ASYNC_DIST
            | atoms::MONITOR_NODES
    ) || ctx.tables().atoms.text(flag) == "scheduler"
}

fn set(ctx: &mut Ctx, flag: Word, value: Word) -> Option<Word> {
    if let Some([name, options]) = flag.as_tuple()
        && name.as_atom() == Some(atoms::MONITOR_NODES)
    {
        return are_node_options(ctx, *options)
            .then(|| monitor_nodes(ctx, value))
            .flatten();
    }
    let flag = flag.as_atom()?;
    if flag == atoms::MONITOR_NODES {
        return monitor_nodes(ctx, value);
    }
    let o = own(ctx);
    let p = process(ctx);
    let heap = &mut p.body.heap;
    Some(match flag {
        atoms::TRAP_EXIT => {
            let new = value.as_boolean()?;
            Word::boolean(std::mem::replace(&mut o.trap_exit, new))
        }
        atoms::ERROR_HANDLER => {
            let new = value.as_atom()?;
            std::mem::replace(&mut p.error_handler, new).word()
        }
        atoms::FULLSWEEP_AFTER => {
            let old = heap.fullsweep_after;
            heap.fullsweep_after = size(value)?.min(65535) as u16;
            Word::fixnum(i64::from(old))
        }
        atoms::MIN_HEAP_SIZE => {
            let old = heap.min_size;
            heap.min_size = next_size(size(value)?);
            Word::fixnum(old as i64)
        }
        atoms::MIN_BIN_VHEAP_SIZE => {
            let old = heap.min_virtual;
            let new = size(value)?;
            heap.min_virtual = next_virtual(0, new, new);
            heap.virtual_limit = heap.virtual_limit.max(heap.min_virtual);
            Word::fixnum(old as i64)
        }
        atoms::MAX_HEAP_SIZE => {
            let (new, max) = spawn::max_heap_size(ctx, value)?;
            let p = process(ctx);
            let old = (p.body.heap.max_size, p.max_heap);
            let tables = ctx.tables();
            let map = max_heap_map(ctx, tables, old.0, old.1);
            let p = process(ctx);
            p.body.heap.max_size = new;
            p.body.heap.max_with_binaries = max.include_shared_binaries;
            p.max_heap = max;
            map
        }
        atoms::PRIORITY => {
            let new = spawn::priority(value)?;
            let old = std::mem::replace(&mut o.priority, new);
            slot_of(ctx).priority.store(new as u8, Ordering::Relaxed);
            priority_atom(old)
        }
        atoms::MESSAGE_QUEUE_DATA => {
            let new = match value.as_atom()? {
                atoms::OFF_HEAP => true,
                atoms::ON_HEAP => false,
                _ => return None,
            };
            let old = std::mem::replace(&mut o.off_heap_messages, new);
            queue_data(old)
        }
        atoms::SAVE_CALLS => {
            let new = size(value).filter(|n| *n <= 10_000)?;
            let before = p.save_calls(new);
            super::saved_calls::set_exports(ctx);
            Word::fixnum(before as i64)
        }
        atoms::SENSITIVE => {
            let new = value.as_boolean()?;
            crate::trace::process::set_sensitive(ctx, new);
            Word::boolean(std::mem::replace(&mut p.sensitive, new))
        }
        atoms::ASYNC_DIST => {
            let new = value.as_boolean()?;
            Word::boolean(std::mem::replace(&mut p.async_dist, new))
        }
        // Processes are not bound to schedulers: a number of one is taken and has no effect.
        _ if ctx.tables().atoms.text(flag) == "scheduler" => {
            let n = size(value)?;
            if n > crate::process::vm_of(ctx).worker_count().max(1) {
                return None;
            }
            Word::fixnum(0)
        }
        _ => return None,
    })
}

/// Turns the supervision of nodes on once more, or off altogether: how often it was on.
fn monitor_nodes(ctx: &mut Ctx, value: Word) -> Option<Word> {
    let on = value.as_boolean()?;
    let o = own(ctx);
    let before = o.monitor_nodes;
    o.monitor_nodes = if on { before.saturating_add(1) } else { 0 };
    Some(Word::fixnum(i64::from(before)))
}

/// A list of `nodedown_reason` and `{node_type, T}`, or a map with these keys and `connection_id`.
fn are_node_options(ctx: &Ctx, options: Word) -> bool {
    let text = |w: Word| w.as_atom().map(|a| ctx.tables().atoms.text(a));
    let node_type = |w: Word| matches!(text(w), Some("visible" | "hidden" | "all"));
    if options.is_map() {
        return maps::iter(options).all(|(k, v)| match text(k) {
            Some("node_type") => node_type(v),
            Some("nodedown_reason" | "connection_id") => v.is_boolean(),
            _ => false,
        });
    }
    let Some(items) = beamr_term::text::list_to_vec(options) else {
        return false;
    };
    items.into_iter().all(|o| match o.as_tuple() {
        Some([k, v]) => text(*k) == Some("node_type") && node_type(*v),
        _ => text(o) == Some("nodedown_reason"),
    })
}

/// `on_heap` or `off_heap`.
pub(crate) fn queue_data(off_heap: bool) -> Word {
    if off_heap {
        atoms::OFF_HEAP.word()
    } else {
        atoms::ON_HEAP.word()
    }
}

/// `process_flag/3`: only `save_calls`. `badarg` when the process is dead.
pub fn process_flag_of(ctx: &mut Ctx, pid: Word, flag: Word, value: Word) -> Result<Word, Escape> {
    let to = match super::ProcId::of(pid) {
        Some(p) if p.is_local_pid() => p,
        _ => return Err(ctx.badarg()),
    };
    if to == slot_of(ctx).proc_id() {
        return process_flag(ctx, flag, value);
    }
    let n = match size(value) {
        Some(n) if flag == atoms::SAVE_CALLS.word() && n <= 10_000 => n,
        _ => return Err(ctx.badarg()),
    };
    let answer = ask(ctx, to, |_| {
        RequestKind::Call(Box::new(move |t, _| {
            Word::fixnum(t.process.save_calls(n) as i64)
        }))
    })?;
    answer.ok_or_else(|| ctx.badarg())
}
