//! `erts_debug`: sizes and identity of terms, and the knobs that tests turn.
//!
//! Sizes are those that the release's own emulator gives, whatever a term takes here.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use beamr_abi::{
    Capability, Ctx, Escape, NativeClass, NativeEntry, NativeFn, Pending, ReleaseSpan,
};
use beamr_term::bits::BitsView;
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::header::{EXTERNAL_REF, REF_ALIAS, REF_MAGIC};
use beamr_term::{Build, Subtag, Word, atoms, hash};
use beamr_vm::door::Stream;
use beamr_vm::process::info::InfoItem;
use beamr_vm::process::{spawn, vm_of};
use beamr_vm::rt;

use super::erlang::system::map_of;
use crate::support::{cost, list_items, name};

/// Words of one object in the release's emulator, and which of its words are terms.
fn object(w: Word, release: u16) -> (usize, std::ops::Range<usize>) {
    let h = w.header();
    let n = h.arity();
    match h.subtag() {
        Subtag::Tuple if n == 0 && release >= 26 => (0, 1..1),
        Subtag::Tuple if n == 0 => (0, 1..1),
        Subtag::Tuple => (n + 1, 1..n + 1),
        Subtag::PosBig | Subtag::NegBig => (n + 1, 1..1),
        Subtag::Float => (2, 1..1),
        Subtag::Ref => (
            match n {
                REF_ALIAS => 4,
                REF_MAGIC => 3,
                _ => 3,
            },
            1..1,
        ),
        // The environment, and what the emulator keeps besides.
        Subtag::Fun if release < 27 => (5 + n - 1, 2..n + 1),
        Subtag::Fun => (2 + n - 1, 2..n + 1),
        Subtag::Export if release < 27 => (5, 1..1),
        Subtag::Export => (2, 1..1),
        Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits | Subtag::Match => {
            (bits(w, release), 1..1)
        }
        // Keys are a term of their own.
        Subtag::FlatMap => (n + 2, 1..n + 1),
        // As `erts_debug:size/1` counts what `map_hashmap_children/1` and `term_type/1` tell of every node.
        Subtag::HashMap => (n, 3..n + 1),
        Subtag::Record => (3 * n + 6, 2..n + 1),
        // Numbers of a reference go two to a word, after how many there are.
        Subtag::External if w.field(3) == EXTERNAL_REF => {
            let numbers = w.field(4) as usize;
            (3 + (numbers + 1).div_ceil(2), 1..1)
        }
        Subtag::External => (4, 1..1),
        Subtag::Reserved => (n + 1, 1..1),
    }
}

fn bits(w: Word, release: u16) -> usize {
    let Some(v) = BitsView::of(w) else { return 2 };
    let bytes = v.bit_size.div_ceil(8) as usize;
    let odd = v.bit_size % 8 != 0;
    if release >= 27 {
        return if bytes > 64 { 8 } else { 2 + bytes.div_ceil(8) };
    }
    let refc = match w.subtag() {
        Some(Subtag::HeapBits) => false,
        Some(Subtag::RefcBits) => true,
        _ => w.term_field(1).subtag() == Some(Subtag::RefcBits),
    };
    let part = if odd { 5 } else { 0 };
    let whole = (v.bit_size / 8) as usize + usize::from(odd);
    part + if refc { 6 } else { 2 + whole.div_ceil(8) }
}

/// The size of a term; shared parts count once when `seen` is given.
fn size(ctx: &mut Ctx, term: Word, mut seen: Option<HashSet<u64>>) -> usize {
    let release = ctx.tables().release.0;
    let mut todo = vec![term];
    let mut words = 0;
    let mut steps = 0usize;
    while let Some(w) = todo.pop() {
        steps += 1;
        if w.is_immediate() || w.is_none() {
            continue;
        }
        // Literals are shared with everybody.
        if let Some(s) = &mut seen
            && (beamr_term::is_literal(w.ptr()) || !s.insert(w.bits()))
        {
            continue;
        }
        if let Some((h, t)) = w.as_cons() {
            words += 2;
            todo.push(t);
            todo.push(h);
            continue;
        }
        let (n, terms) = object(w, release);
        words += n;
        todo.extend(terms.map(|i| w.term_field(i)));
    }
    ctx.bump(cost(steps));
    words
}

/// `flat_size(Term)`.
fn flat_size_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = size(ctx, args[0], None);
    Ok(Word::fixnum(n as i64))
}
/// `size_shared(Term)`.
fn size_shared_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = size(ctx, args[0], Some(HashSet::new()));
    Ok(Word::fixnum(n as i64))
}
/// `copy_shared(Term)`, `copy_shared(Term, Literals)`.
fn copy_shared(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Copying::sharing(args[0], CopyMode::All).make(ctx))
}
/// `same(A, B)`: one and the same object.
fn same_2(_: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(args[0] == args[1]))
}

/// `display(Term)`.
fn display_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let limit = beamr_term::format::FormatLimit::LARGE;
    let mut out = beamr_term::format::format_term(ctx.tables(), args[0], limit);
    let term = text_of(ctx, &out);
    out.push(b'\n');
    let _ = vm_of(ctx).door.write(Stream::Err, &out);
    Ok(term)
}

fn text_of(ctx: &mut Ctx, bytes: &[u8]) -> Word {
    let s = String::from_utf8_lossy(bytes).into_owned();
    ctx.string(&s)
}

/// `interpreter_size()`.
fn interpreter_size_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(0))
}
/// `instructions()`.
fn instructions_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::NIL)
}
/// `breakpoint(MFA, Flag)`: nothing is ever stopped.
fn breakpoint_2(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(0))
}
/// `disassemble(What)`.
fn disassemble_1(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}
/// `lcnt_*`: locks are not counted.
fn lcnt(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let reason = ctx.atom("notsup")?;
    Ok(ctx.tuple(&[atoms::ERROR.word(), reason]))
}

/// Where the work that a test asks for runs: `scheduler, type`.
fn kind_of_thread(ctx: &Ctx, wanted: NativeClass) -> &'static str {
    let vm = vm_of(ctx);
    match wanted {
        NativeClass::DirtyCpu if vm.options.dirty_cpu > 0 => "dirty_cpu",
        NativeClass::DirtyIo if vm.options.dirty_io > 0 => "dirty_io",
        _ => "normal",
    }
}

/// What `dirty/3` and its kin do on the thread that they came to.
fn work(ctx: &mut Ctx, class: NativeClass, what: Word, arg: Word) -> Result<Word, Escape> {
    match (name(ctx, what), arg.as_small()) {
        (Some("scheduler"), _) if name(ctx, arg) == Some("type") => {
            let kind = kind_of_thread(ctx, class);
            ctx.atom(kind)
        }
        // Only atoms are reasons.
        (Some("error"), _) if arg.is_atom() => Err(ctx.error(arg)),
        (Some("copy" | "echo"), _) => Ok(arg),
        (Some("wait"), Some(ms)) if ms >= 0 => {
            let t = std::time::Duration::from_millis(ms.min(60_000) as u64);
            vm_of(ctx).door.pause(t);
            Ok(atoms::OK.word())
        }
        (Some("reschedule"), Some(n)) if (0..=1000).contains(&n) => Ok(atoms::OK.word()),
        (Some("alive_waitexiting"), _) if arg.is_local_pid() => {
            let me = ctx.self_pid();
            let alive = ctx.atom("alive")?;
            let message = ctx.tuple(&[alive, me]);
            rt::send(ctx, arg, message).map_err(|p| ctx.escape(p))?;
            let vm = vm_of(ctx).clone();
            while vm.is_alive(me) {
                vm.door.pause(std::time::Duration::from_millis(10));
            }
            vm.door.pause(std::time::Duration::from_millis(1000));
            Ok(atoms::OK.word())
        }
        _ => Err(ctx.badarg()),
    }
}

/// `dirty_cpu(What, Arg)`.
fn dirty_cpu_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    work(ctx, NativeClass::DirtyCpu, args[0], args[1])
}
/// `dirty_io(What, Arg)`.
fn dirty_io_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    work(ctx, NativeClass::DirtyIo, args[0], args[1])
}
fn dirty_cpu_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    work(ctx, NativeClass::DirtyCpu, args[1], args[2])
}
fn dirty_io_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    work(ctx, NativeClass::DirtyIo, args[1], args[2])
}
/// `dirty(Where, What, Arg)` on another thread: the continuation shows as the function itself.
static DIRTY_CPU: NativeEntry =
    NativeEntry::new("erts_debug", "dirty", 3, dirty_cpu_3).class(NativeClass::DirtyCpu);
static DIRTY_IO: NativeEntry =
    NativeEntry::new("erts_debug", "dirty", 3, dirty_io_3).class(NativeClass::DirtyIo);

/// `dirty(normal | dirty_cpu | dirty_io, What, Arg)`.
fn dirty_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let entry = match name(ctx, args[0]) {
        Some("normal") => return work(ctx, NativeClass::Plain, args[1], args[2]),
        Some("dirty_cpu") => &DIRTY_CPU,
        Some("dirty_io") => &DIRTY_IO,
        _ => return Err(ctx.badarg()),
    };
    Err(ctx.trap(beamr_abi::TrapTarget::Native(entry), args))
}

// ---- internal state

/// Whether tests may turn the knobs.
#[derive(Default)]
struct Available(AtomicBool);

fn available(ctx: &Ctx) -> std::sync::Arc<Available> {
    vm_of(ctx).extensions.get_or_init(Available::default)
}

/// `get_internal_state(What)`.
fn get_internal_state_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let on = available(ctx).0.load(Relaxed);
    if name(ctx, args[0]) == Some("available_internal_state") && !on {
        return Ok(Word::FALSE);
    }
    if !on {
        return Err(ctx.error(atoms::UNDEF));
    }
    if let Some([k, v]) = args[0].as_tuple() {
        return match name(ctx, *k) {
            Some("internal_hash") => {
                let h = hash::internal_hash(*v, 0, ctx.tables());
                Ok(ctx.unsigned(h))
            }
            Some("atom") => match v.as_small() {
                Some(i) if i >= 0 && i < i64::from(ctx.tables().atoms.len()) => {
                    Ok(beamr_term::Atom::from_index(i as u32).word())
                }
                _ => Ok(atoms::UNDEFINED.word()),
            },
            Some("magic_ref") => Ok(Word::boolean(
                v.subtag() == Some(Subtag::Ref) && v.header().arity() == REF_MAGIC,
            )),
            Some("binary_info") => binary_info(ctx, *v),
            Some("process_status") if v.is_local_pid() => process_status(ctx, *v),
            _ => Err(ctx.badarg()),
        };
    }
    match name(ctx, args[0]) {
        Some("available_internal_state") => Ok(Word::TRUE),
        // Places of a table that is never more than half full.
        Some("persistent_term") => {
            let n = crate::persistent_term::count(ctx);
            let places = Word::fixnum((2 * n + 1).next_power_of_two().max(8) as i64);
            map_of(ctx, &[("table", places)])
        }
        Some("reds_left") => Ok(Word::fixnum(ctx.fcalls.max(0))),
        // Words of an empty table, and of a row's estimate.
        Some("DbTable_words") => {
            let shell = Word::fixnum(beamr_vm::ets::SHELL_WORDS as i64);
            Ok(ctx.tuple(&[shell, Word::fixnum(0)]))
        }
        Some("flxctr_memory_usage") => ctx.atom("notsup"),
        Some("processes") => Ok(spawn::processes(ctx)),
        Some("processes_bif_info") => processes_bif_info(ctx),
        Some("process_info_args") => {
            let tables = ctx.tables();
            let mut names = Vec::new();
            for i in InfoItem::ALL {
                let atom = ctx.atom(i.name())?;
                if InfoItem::parse(tables, atom).is_some() {
                    names.push(atom);
                }
            }
            Ok(ctx.list(names))
        }
        Some("memory") => {
            let Ok(memory) = ctx.tables().exports.id(atoms::ERLANG, atoms::MEMORY, 0) else {
                return Err(ctx.system_limit());
            };
            Err(ctx.trap(beamr_abi::TrapTarget::Export(memory), &[]))
        }
        Some("stack_check") => Ok(Word::fixnum(vm_of(ctx).options.thread_stack as i64)),
        Some("force_heap_frags") => Ok(Word::FALSE),
        // Descriptors with errors, those in use, those that drivers chose, events of drivers.
        Some("check_io_debug") => {
            let n = vm_of(ctx).hooks.ports.get().map_or(0, |p| p.watched());
            let [none, n] = [Word::fixnum(0), Word::fixnum(n as i64)];
            Ok(ctx.tuple(&[none, n, n, none]))
        }
        Some("nbalance" | "max_atom_out_cache_index") => Ok(Word::fixnum(0)),
        Some("monitoring_nodes") => Ok(Word::NIL),
        Some("node_and_dist_references") => node_and_dist_references(ctx),
        // Locks are not checked for their order.
        Some("lc_graph") => Ok(atoms::NOTSUP.word()),
        Some("check_no_empty_boxed_non_literal_on_heap") => Ok(atoms::OK.word()),
        Some("min_unique_monotonic_integer" | "min_unique_integer") => Ok(ctx.integer(i64::MIN)),
        _ => Err(ctx.badarg()),
    }
}

/// `{{node_references, Nodes}, {dist_references, Channels}}`, each `{Identity, References, [{Who, [{How, Number}]}]}`. An entry of a
/// node stays in the table once it was named, and that is the one reference counted; channels there are none.
fn node_and_dist_references(ctx: &mut Ctx) -> Result<Word, Escape> {
    let mut nodes = vec![ctx.tables().local_node()];
    let others = ctx.tables().known_nodes();
    nodes.extend(others.iter().map(|n| (n.name, n.creation)));
    let (system, table) = (ctx.atom("system")?, ctx.atom("table")?);
    let mut list = Word::NIL;
    for (name, creation) in nodes {
        let how = ctx.tuple(&[table, Word::fixnum(1)]);
        let how = ctx.list([how]);
        let who = ctx.tuple(&[system, how]);
        let who = ctx.list([who]);
        let node = ctx.tuple(&[name.word(), Word::fixnum(i64::from(creation))]);
        let entry = ctx.tuple(&[node, Word::fixnum(1), who]);
        list = ctx.cons(entry, list);
    }
    let tag = ctx.atom("node_references")?;
    let nodes = ctx.tuple(&[tag, list]);
    let tag = ctx.atom("dist_references")?;
    let channels = ctx.tuple(&[tag, Word::NIL]);
    Ok(ctx.tuple(&[nodes, channels]))
}

/// What `processes/0` costs: min_start_reds, tab_chunks, tab_chunks_size, tab_indices_per_red, free_term_proc_reds,
/// term_procs_per_red, term_procs_max_reds, conses_per_red, debug_level.
fn processes_bif_info(ctx: &mut Ctx) -> Result<Word, Escape> {
    let tag = ctx.atom("ptab_list_bif_info")?;
    // The list is made in one go: one chunk, of everything.
    let size = vm_of(ctx).process_limit() as i64;
    let mut t = vec![tag];
    t.extend([100, 1, size, 25, 10, 10, 1000, 10, 0].map(Word::fixnum));
    Ok(ctx.tuple(&t))
}

/// `{process_status, Pid}`: `undefined` when nothing is left of it, `exiting` while its exit procedure runs.
fn process_status(ctx: &mut Ctx, pid: Word) -> Result<Word, Escape> {
    let vm = vm_of(ctx);
    if vm.is_alive(pid) {
        ctx.atom("alive")
    } else {
        Ok(atoms::UNDEFINED.word())
    }
}

/// `{refc_binary, Bytes, {binary, BytesOfTheBlock}, Flags}` or `heap_binary`.
fn binary_info(ctx: &mut Ctx, w: Word) -> Result<Word, Escape> {
    let Some(v) = BitsView::of(w).filter(|_| w.is_bitstring()) else {
        return Err(ctx.badarg());
    };
    if w.subtag() == Some(Subtag::HeapBits) {
        return ctx.atom("heap_binary");
    }
    let tag = ctx.atom("refc_binary")?;
    // The block as far as it is in use.
    let size = Word::fixnum(v.bit_size.div_ceil(8) as i64);
    let binary = ctx.tuple(&[atoms::BINARY.word(), size]);
    Ok(ctx.tuple(&[tag, size, binary, Word::fixnum(0)]))
}

static WAITED: NativeEntry = NativeEntry::new("erts_debug", "waited", 0, waited_0);
fn waited_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::OK.word())
}

/// `set_internal_state(What, Value)`: the value before.
fn set_internal_state_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let a = available(ctx);
    let what = name(ctx, args[0]);
    let value = args[1];
    if what == Some("available_internal_state") {
        return match value.as_boolean() {
            Some(b) => Ok(Word::boolean(a.0.swap(b, Relaxed))),
            None => Err(ctx.badarg()),
        };
    }
    if !a.0.load(Relaxed) {
        return Err(ctx.error(atoms::UNDEF));
    }
    match (what, value.as_small()) {
        (Some("reds_left"), Some(n)) if n >= 0 => {
            ctx.fcalls = n;
            Ok(Word::TRUE)
        }
        (Some("block" | "sleep"), Some(ms)) if ms >= 0 => {
            let t = std::time::Duration::from_millis(ms.min(60_000) as u64);
            vm_of(ctx).door.pause(t);
            Ok(Word::TRUE)
        }
        (Some("multizero_timeout_in_timeout"), Some(ms)) if ms >= 0 => {
            let me = ctx.self_pid();
            let done = ctx.atom("multizero_timeout_in_timeout_done")?;
            let time = beamr_vm::timer::TimerTime::In(ms as u64);
            beamr_vm::timer::start_timer(ctx, time, me, done, false)?;
            Ok(Word::TRUE)
        }
        (Some("force_gc"), _) => {
            let alive = beamr_vm::signal::request::garbage_collect(ctx, value, true)?;
            Ok(Word::boolean(alive))
        }
        (Some("wait"), _) => match name(ctx, value) {
            // What is waited for is done at once here; others get their turn, as in OTP.
            Some("deallocations" | "timer_cancellations" | "aux_work" | "thread_progress") => {
                Err(ctx.escape(Pending::YieldTo {
                    target: beamr_abi::TrapTarget::Native(&WAITED),
                    args: Vec::new(),
                }))
            }
            _ => Err(ctx.badarg()),
        },
        #[cfg(feature = "re")]
        (Some("re_loop_limit"), n) => {
            let steps = match n.and_then(|n| u32::try_from(n).ok()) {
                Some(n) if n > 0 => n,
                _ if name(ctx, value) == Some("default") => 0,
                _ => return Err(ctx.badarg()),
            };
            let before = crate::re::set_loop_limit(ctx, steps);
            Ok(match before {
                0 => Word::fixnum(-1),
                n => Word::fixnum(i64::from(n)),
            })
        }
        (Some("binary_loop_limit" | "unicode_loop_limit"), n) => match (n, name(ctx, value)) {
            (Some(n), _) if n > 0 => Ok(Word::fixnum(-1)),
            (_, Some("default")) => Ok(Word::fixnum(-1)),
            _ => Err(ctx.badarg()),
        },
        (Some("process_uniq_counter"), _) if value.is_integer() => Ok(atoms::OK.word()),
        (Some("gc_state"), _) => Ok(Word::boolean(value != Word::TRUE)),
        // Every queue takes signals of many senders at once.
        (Some("proc_sig_buffers"), _) => Ok(Word::TRUE),
        (Some("ets_force_trap"), _) => Ok(atoms::NOTSUP.word()),
        // Ordered tables are one tree: there is nothing to split or join.
        (Some("ets_force_split" | "ets_debug_random_split_join"), _) => Ok(atoms::OK.word()),
        (Some("colliding_names"), _) => match value.as_tuple() {
            Some([name, n]) if name.is_atom() => {
                // Names do not collide here; any others will do.
                let mut list = Word::NIL;
                for i in 0..n.as_small().unwrap_or(0).clamp(0, 1000) {
                    let a = ctx.atom(&format!("colliding_{i}"))?;
                    list = ctx.cons(a, list);
                }
                Ok(list)
            }
            _ => Err(ctx.badarg()),
        },
        (Some("mbuf"), _) => Ok(value),
        (Some("fill_heap" | "node_tab_delayed_delete" | "test_long_gc_sleep"), _) => Ok(Word::TRUE),
        (Some("make"), _) if name(ctx, value) == Some("magic_ref") => {
            Ok(crate::resources::new(ctx, ()))
        }
        (Some("binary"), Some(n)) if (0..1 << 40).contains(&n) => {
            let bytes = vec![0; n as usize];
            Ok(ctx.binary(&bytes))
        }
        (Some("hibernate"), _) => Err(ctx.escape(Pending::Wait)),
        _ => Err(ctx.badarg()),
    }
}

// ---- erts_internal's helpers of erts_debug

/// `erts_internal:term_type(Term)`.
fn term_type_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let w = args[0];
    let kind = if w.is_cons() {
        "list"
    } else if w.is_nil() {
        "nil"
    } else if w.is_small() {
        "fixnum"
    } else if w.is_atom() {
        "atom"
    } else if w.is_local_pid() {
        "pid"
    } else if w.is_local_port() {
        "port"
    } else {
        match w.subtag() {
            Some(Subtag::Tuple) => "tuple",
            Some(Subtag::Fun) => "fun",
            Some(Subtag::Export) => "export",
            Some(Subtag::FlatMap) => "flatmap",
            Some(Subtag::HashMap) => "hashmap",
            // Before 27 bits that do not fill bytes were a part of something.
            Some(Subtag::HeapBits | Subtag::RefcBits)
                if ctx.tables().release.0 < 27
                    && BitsView::of(w).is_some_and(|v| v.bit_size % 8 != 0) =>
            {
                "sub_binary"
            }
            Some(Subtag::HeapBits) => "heap_binary",
            Some(Subtag::RefcBits) => "refc_binary",
            Some(Subtag::SubBits | Subtag::Match) => "sub_binary",
            Some(Subtag::PosBig | Subtag::NegBig) => "bignum",
            Some(Subtag::Ref) => "reference",
            Some(Subtag::External) if w.is_pid() => "external_pid",
            Some(Subtag::External) if w.is_port() => "external_port",
            Some(Subtag::External) => "external_reference",
            Some(Subtag::Float) => "hfloat",
            Some(Subtag::Record) => "record",
            _ => return Err(ctx.badarg()),
        }
    };
    ctx.atom(kind)
}

/// `erts_internal:map_hashmap_children(Map)`.
fn map_hashmap_children_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].subtag() {
        Some(Subtag::HashMap) => {
            let n = args[0].header().arity();
            let mut list = Word::NIL;
            for i in 3..=n {
                list = ctx.cons(args[0].term_field(i), list);
            }
            Ok(list)
        }
        Some(Subtag::FlatMap) => Err(ctx.badarg()),
        _ => Err(ctx.error_with(atoms::BADMAP, args[0])),
    }
}

/// `erts_internal:cmp_term(A, B)`: below, at or above 0 in the order of keys.
fn cmp_term_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let o = beamr_term::order::compare_exact(args[0], args[1], ctx.tables());
    Ok(Word::fixnum(o as i64))
}

/// `erts_debug:unaligned_bitstring(Bits, Offset)`: a part of another bitstring that begins within a byte.
fn unaligned_bitstring_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (Some(v), Some(offset @ 0..=7)) = (
        BitsView::of(args[0]).filter(|_| args[0].is_bitstring()),
        args[1].as_small(),
    ) else {
        return Err(ctx.badarg());
    };
    let offset = offset as u64;
    let mut b = beamr_term::bits::BsBuilder::new(ctx, offset + v.bit_size);
    b.writer().put_u64(0, offset);
    b.writer().put_bits(&v);
    let whole = b.finish();
    Ok(beamr_term::bits::sub_bits(ctx, whole, offset, v.bit_size))
}

/// `erts_internal:gather_alloc_histograms(...)`, `gather_carrier_info(...)`.
fn no_allocators(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_tuple() {
        Some(_) => Ok(Word::fixnum(0)),
        None => {
            list_items(ctx, args[0])?;
            Err(ctx.badarg())
        }
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_debug", function, arity, func).needs(Capability::ProcessLocal)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("flat_size", 1, flat_size_1),
    row("size_shared", 1, size_shared_1),
    row("copy_shared", 2, copy_shared),
    row("same", 2, same_2),
    row("display", 1, display_1)
        .needs(Capability::ExternalIo)
        .releases(ReleaseSpan::until(25)),
    row("interpreter_size", 0, interpreter_size_0),
    row("instructions", 0, instructions_0),
    row("breakpoint", 2, breakpoint_2),
    row("disassemble", 1, disassemble_1),
    row("lcnt_control", 1, lcnt),
    row("lcnt_control", 2, lcnt),
    row("lcnt_collect", 0, lcnt),
    row("lcnt_clear", 0, lcnt),
    row("dirty_cpu", 2, dirty_cpu_2).class(NativeClass::DirtyCpu),
    row("dirty_io", 2, dirty_io_2).class(NativeClass::DirtyIo),
    row("dirty", 3, dirty_3),
    row("get_internal_state", 1, get_internal_state_1),
    row("set_internal_state", 2, set_internal_state_2),
    row("unaligned_bitstring", 2, unaligned_bitstring_2).releases(ReleaseSpan::since(29)),
    internal("term_type", 1, term_type_1),
    internal("map_hashmap_children", 1, map_hashmap_children_1),
    internal("cmp_term", 2, cmp_term_2),
    internal("gather_alloc_histograms", 1, no_allocators),
    internal("gather_carrier_info", 1, no_allocators),
];
