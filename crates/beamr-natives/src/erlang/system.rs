//! `erlang`: the system as a whole: `system_info`, `system_flag`, `statistics`, `halt`, `display`.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, Pending, ReleaseSpan};
use beamr_term::{Build, Word, atoms, format, maps, text};
use beamr_vm::door::Stream;
use beamr_vm::process::{flags, spawn, vm_of, worker};
use beamr_vm::rt;
use beamr_vm::sched::SLICE;
use beamr_vm::vm::{Halt, Vm};

use crate::identity::Identity;
use crate::support::{list_items, name};

/// What `system_flag/2` sets and nothing in the VM reads, and the marks of `statistics/1`.
#[derive(Default)]
struct Flags {
    schedulers_online: AtomicI64,
    dirty_online: AtomicI64,
    blocked: AtomicBool,
    wall_clock: AtomicI64,
    runtime: AtomicI64,
    reductions: AtomicU64,
    wall_time: AtomicBool,
    /// What `outstanding_system_requests_limit` is more than [`DEFAULT_REQUESTS`].
    requests_limit: AtomicI64,
}

/// `outstanding_system_requests_limit` unless it is set.
const DEFAULT_REQUESTS: i64 = 4;

fn flags_of(vm: &Vm) -> std::sync::Arc<Flags> {
    vm.extensions.get_or_init(Flags::default)
}

fn pair(ctx: &mut Ctx, key: &str, value: Word) -> Result<Word, Escape> {
    let k = ctx.atom(key)?;
    Ok(ctx.tuple(&[k, value]))
}

// ---- halt

/// `halt(Status, Options)`.
fn halt_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(options) = text::list_to_vec(args[1]) else {
        return Err(bad_options(ctx));
    };
    let mut flush = true;
    for o in options {
        match o.as_tuple() {
            Some([k, v]) => match (name(ctx, *k), v.as_boolean()) {
                (Some("flush"), Some(b)) => flush = b,
                (Some("flush_timeout"), _)
                    if ctx.tables().release.0 >= 27
                        && (*v == atoms::INFINITY.word()
                            || v.as_small().is_some_and(|n| n >= 0)) => {}
                _ => return Err(bad_options(ctx)),
            },
            _ => return Err(bad_options(ctx)),
        }
    }
    let halt = if args[0].is_integer() {
        let mut buffer = 0;
        match beamr_term::arith::Int::of(args[0], &mut buffer) {
            Some(i) if !i.negative => {
                let low = i.magnitude.first().copied().unwrap_or(0);
                Halt::Status((low & 0x7FFF_FFFF) as i32)
            }
            _ => return Err(ctx.badarg()),
        }
    } else if name(ctx, args[0]) == Some("abort") {
        Halt::Abort
    } else {
        match text::string_from_list(args[0]) {
            Some(s) => Halt::Crash(s.chars().take(1023).collect()),
            None => return Err(ctx.badarg()),
        }
    };
    vm_of(ctx).halt(halt, flush);
    Err(ctx.escape(Pending::Wait))
}

fn bad_options(ctx: &mut Ctx) -> Escape {
    match ctx.atom("badopt") {
        Ok(cause) => ctx.badarg_because(cause),
        Err(e) => e,
    }
}

// ---- display

/// `display(Term)`.
fn display_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut out = format::format_term(ctx.tables(), args[0], format::FormatLimit::LARGE);
    out.extend_from_slice(b"\r\n");
    ctx.bump(out.len() as i64 / 32);
    // A stream that is closed loses the text, as in OTP.
    let _ = vm_of(ctx).door.write(Stream::Out, &out);
    Ok(Word::TRUE)
}

fn write_string(ctx: &mut Ctx, stream: Stream, data: Word) -> Result<Word, Escape> {
    let bytes = if data.is_list() {
        match text::string_from_list(data) {
            Some(s) => s.into_bytes(),
            None => return Err(ctx.badarg()),
        }
    } else {
        crate::iolist::bytes(ctx, data)?
    };
    let _ = vm_of(ctx).door.write(stream, &bytes);
    Ok(Word::TRUE)
}

/// `display_string(String)`.
fn display_string_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_list() {
        return Err(ctx.badarg());
    }
    write_string(ctx, Stream::Out, args[0])
}

/// `display_string(Device, String | Binary)`.
fn display_string_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let stream = match name(ctx, args[0]) {
        Some("stdout" | "stdin") => Stream::Out,
        Some("stderr") => Stream::Err,
        _ => return Err(ctx.badarg()),
    };
    write_string(ctx, stream, args[1])
}

/// `display_nl()`.
fn display_nl_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let _ = vm_of(ctx).door.write(Stream::Out, b"\n");
    Ok(Word::TRUE)
}

// ---- system_info

const ALLOCATORS: &[&str] = &[
    "temp_alloc",
    "sl_alloc",
    "std_alloc",
    "ll_alloc",
    "eheap_alloc",
    "ets_alloc",
    "fix_alloc",
    "literal_alloc",
    "binary_alloc",
    "driver_alloc",
];

fn schedulers(vm: &Vm) -> i64 {
    vm.worker_count().max(1) as i64
}

fn dirty_cpu(vm: &Vm) -> i64 {
    vm.options.dirty_cpu.max(1) as i64
}

fn dirty_io(vm: &Vm) -> i64 {
    vm.options.dirty_io.max(1) as i64
}

fn online(vm: &Vm) -> i64 {
    match flags_of(vm).schedulers_online.load(Relaxed) {
        0 => schedulers(vm),
        n => n,
    }
}

fn dirty_online(vm: &Vm) -> i64 {
    match flags_of(vm).dirty_online.load(Relaxed) {
        0 => dirty_cpu(vm),
        n => n,
    }
}

fn max_heap(ctx: &mut Ctx) -> Word {
    let (size, max) = *vm_of(ctx)
        .defaults
        .max_heap_size
        .read()
        .unwrap_or_else(|e| e.into_inner());
    let tables = ctx.tables();
    flags::max_heap_map(ctx, tables, size, max)
}

fn system_version(ctx: &Ctx) -> String {
    let vm = vm_of(ctx);
    format!(
        "Erlang/OTP {} [erts-{}] [source] [64-bit] [smp:{}:{}] [ds:{}:{}:{}] [async-threads:1]\n",
        vm.tables.release.0,
        Identity::get(vm).erts,
        schedulers(vm),
        online(vm),
        dirty_cpu(vm),
        dirty_online(vm),
        dirty_io(vm)
    )
}

/// The numbers of `uname -r` as OTP gives them.
fn os_version(vm: &Vm) -> [i64; 3] {
    let text = vm.door.os_release();
    let mut parts = text
        .split(|c: char| !c.is_ascii_digit())
        .map(|p| p.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

fn memory_info(ctx: &mut Ctx, reference: Word, allocators: Word) -> Result<Word, Escape> {
    let items = list_items(ctx, allocators)?;
    if !reference.is_reference() {
        return Err(ctx.badarg());
    }
    let ets = vm_of(ctx).ets.memory_words() as i64 * 8;
    let processes = (vm_of(ctx).default_namespace().memory() - ets).max(0);
    let mut list = Word::NIL;
    for a in items.into_iter().rev() {
        let Some(kind) = name(ctx, a) else {
            return Err(ctx.badarg());
        };
        let size = match kind {
            "eheap_alloc" => processes,
            "ets_alloc" => ets,
            _ => 0,
        };
        let size = ctx.integer(size);
        let size = pair(ctx, "size", size)?;
        let sizes = ctx.cons(size, Word::NIL);
        let kind = ctx.tuple(&[a, sizes]);
        let kinds = ctx.cons(kind, Word::NIL);
        let blocks = pair(ctx, "blocks", kinds)?;
        let blocks = ctx.cons(blocks, Word::NIL);
        let carriers = pair(ctx, "mbcs", blocks)?;
        let mut data = ctx.cons(carriers, Word::NIL);
        if name(ctx, a) == Some("fix_alloc") {
            let none = pair(ctx, "fix_types", Word::NIL)?;
            data = ctx.cons(none, data);
        }
        let entry = ctx.tuple(&[a, Word::fixnum(0), data]);
        list = ctx.cons(entry, list);
    }
    let message = ctx.tuple(&[reference, Word::fixnum(1), list]);
    let me = ctx.self_pid();
    rt::send(ctx, me, message).map_err(|p| ctx.escape(p))?;
    Ok(Word::TRUE)
}

fn system_info_tuple(ctx: &mut Ctx, t: &[Word]) -> Result<Word, Escape> {
    let kind = t.first().and_then(|w| name(ctx, *w));
    match (kind, t) {
        (Some("wordsize"), [_, which]) => match name(ctx, *which) {
            Some("internal" | "external") => Ok(Word::fixnum(8)),
            _ => Err(ctx.badarg()),
        },
        (Some("memory_internal" | "allocator" | "allocator_sizes"), [_, reference, allocators]) => {
            memory_info(ctx, *reference, *allocators)
        }
        (Some("allocator"), [_, which]) => match name(ctx, *which) {
            Some(n) if ALLOCATORS.contains(&n) => Ok(Word::FALSE),
            Some(_) => Ok(atoms::UNDEFINED.word()),
            None => Err(ctx.badarg()),
        },
        (Some("allocator_sizes"), [_, which]) if which.is_list() => {
            // No allocator keeps sizes of its own.
            let mut list = Word::NIL;
            for a in list_items(ctx, *which)?.into_iter().rev() {
                let none = ctx.tuple(&[a, Word::FALSE]);
                list = ctx.cons(none, list);
            }
            Ok(list)
        }
        (Some("allocator_sizes"), [_, which]) => match name(ctx, *which) {
            Some(n) if ALLOCATORS.contains(&n) => Ok(Word::FALSE),
            Some(_) => Ok(atoms::UNDEFINED.word()),
            None => Err(ctx.badarg()),
        },
        (Some("cpu_topology" | "internal_cpu_topology"), [_, which]) => match name(ctx, *which) {
            Some("defined" | "detected" | "used") => Ok(atoms::UNDEFINED.word()),
            _ => Err(ctx.badarg()),
        },
        (Some("memory_checker"), [_, which]) if name(ctx, *which) == Some("test_leak") => {
            Ok(atoms::OK.word())
        }
        _ => Err(ctx.badarg()),
    }
}

fn scheduler_states(ctx: &mut Ctx) -> Result<Word, Escape> {
    let vm = vm_of(ctx).clone();
    let rows = [
        ("normal", schedulers(&vm), online(&vm)),
        ("dirty_cpu", dirty_cpu(&vm), dirty_online(&vm)),
        ("dirty_io", dirty_io(&vm), dirty_io(&vm)),
    ];
    let mut list = Word::NIL;
    for (kind, total, on) in rows.into_iter().rev() {
        let kind = ctx.atom(kind)?;
        let row = ctx.tuple(&[
            kind,
            Word::fixnum(total),
            Word::fixnum(on),
            Word::fixnum(on),
        ]);
        list = ctx.cons(row, list);
    }
    Ok(list)
}

/// The text of `system_info(info | procs | loaded | dist)`, which nothing parses.
fn text_info(ctx: &mut Ctx, which: &str) -> Word {
    let vm = vm_of(ctx);
    let text = match which {
        "info" => format!(
            "=memory\ntotal: {0}\nprocesses: {0}\n=atoms\nlimit: {1}\nused: {2}\n",
            vm.default_namespace().memory().max(0),
            vm.tables.atoms.limit(),
            vm.tables.atoms.len()
        ),
        "procs" => format!("=processes\ncount: {}\n", vm.process_count()),
        "loaded" => {
            let modules = &vm.default_namespace().modules;
            let mut names: Vec<&str> = modules
                .loaded()
                .into_iter()
                .map(|m| vm.tables.atoms.text(m))
                .collect();
            names.sort_unstable();
            names.join("\n")
        }
        _ => "=not_connected\n".to_owned(),
    };
    ctx.binary(text.as_bytes())
}

/// The natives of the system as `{M, F, A}`, by name.
fn snifs(ctx: &mut Ctx) -> Result<Word, Escape> {
    let natives = vm_of(ctx).server.natives().clone();
    let mut all: Vec<_> = natives
        .iter()
        .map(|e| (e.module, e.function, e.arity))
        .collect();
    all.sort_unstable();
    let mut list = Word::NIL;
    for (m, f, a) in all.into_iter().rev() {
        let (m, f) = (ctx.atom(m)?, ctx.atom(f)?);
        let row = ctx.tuple(&[m, f, Word::fixnum(i64::from(a))]);
        list = ctx.cons(row, list);
    }
    Ok(list)
}

/// `system_info(Item)`.
fn system_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if let Some(t) = args[0].as_tuple() {
        return system_info_tuple(ctx, t);
    }
    let Some(item) = name(ctx, args[0]) else {
        return Err(ctx.badarg());
    };
    let vm = vm_of(ctx).clone();
    let release = vm.tables.release.0;
    let int = |n: i64| Ok(Word::fixnum(n));
    let d = &vm.defaults;
    match item {
        "scheduler_id" => int(worker(ctx).index.map_or(1, |i| i as i64 + 1)),
        "compat_rel" => int(i64::from(release)),
        "otp_release" => Ok(ctx.string(&release.to_string())),
        "version" => Ok(ctx.string(&Identity::get(&vm).erts)),
        "system_version" => {
            let s = system_version(ctx);
            Ok(ctx.string(&s))
        }
        "system_architecture" => Ok(ctx.string(&Identity::get(&vm).architecture)),
        "machine" => Ok(ctx.string("BEAM")),
        "nif_version" => Ok(ctx.string(match release {
            ..=25 => "2.16",
            26..=28 => "2.17",
            _ => "2.18",
        })),
        "driver_version" => Ok(ctx.string("3.3")),
        "os_type" => {
            let (family, os) = vm.door.os_type();
            let (family, os) = (ctx.atom(family)?, ctx.atom(os)?);
            Ok(ctx.tuple(&[family, os]))
        }
        "os_version" => {
            let v = os_version(&vm).map(Word::fixnum);
            Ok(ctx.tuple(&v))
        }
        "multi_scheduling" => ctx.atom(if flags_of(&vm).blocked.load(Relaxed) {
            "blocked"
        } else {
            "enabled"
        }),
        "multi_scheduling_blockers" | "normal_multi_scheduling_blockers" => Ok(Word::NIL),
        "build_type" | "emu_type" => ctx.atom("opt"),
        "emu_flavor" => ctx.atom("emu"),
        "time_offset" => ctx.atom("final"),
        "time_correction" => Ok(Word::TRUE),
        // The defaults of the release; time is never warped here.
        "time_warp_mode" if ctx.tables().release.0 >= 26 => ctx.atom("multi_time_warp"),
        "time_warp_mode" => ctx.atom("no_time_warp"),
        "tolerant_timeofday" if ctx.tables().release.0 >= 26 => ctx.atom("disabled"),
        "tolerant_timeofday" => ctx.atom("enabled"),
        "start_time" => int(0),
        "end_time" => Ok(ctx.integer(i64::MAX / 1_000_000_000 * 1_000_000_000)),
        "os_monotonic_time_source" | "os_system_time_source" => {
            let (clock, now) = if item == "os_monotonic_time_source" {
                ("CLOCK_MONOTONIC", vm.monotonic_ns() as i64)
            } else {
                ("CLOCK_REALTIME", vm.system_ns())
            };
            let (function, clock) = (ctx.atom("clock_gettime")?, ctx.atom(clock)?);
            let now = ctx.integer(now);
            let (no, yes) = (atoms::NO.word(), atoms::YES.word());
            let rows = [
                ("function", function),
                ("clock_id", clock),
                ("resolution", Word::fixnum(1_000_000_000)),
                ("extended", no),
                ("parallel", yes),
                ("time", now),
            ];
            let mut list = Word::NIL;
            for (k, v) in rows.into_iter().rev() {
                let p = pair(ctx, k, v)?;
                list = ctx.cons(p, list);
            }
            Ok(list)
        }
        "outstanding_system_requests_limit" => {
            int(flags_of(&vm).requests_limit.load(Relaxed) + DEFAULT_REQUESTS)
        }
        "allocated_areas" => {
            let t = &vm.tables;
            let atoms_size = i64::from(t.atoms.len()) * 64;
            let modules = &vm.default_namespace().modules;
            let code: i64 = modules
                .loaded()
                .into_iter()
                .filter_map(|m| modules.current(m))
                .map(|i| (i.image.emitted.end - i.image.emitted.start + i.image.file_size) as i64)
                .sum();
            let space = ctx.atom("atom_space")?;
            let space = ctx.tuple(&[space, Word::fixnum(atoms_size), Word::fixnum(atoms_size)]);
            let mut list = ctx.cons(space, Word::NIL);
            let rows = [
                ("atom_table", i64::from(t.atoms.len()) * 16),
                ("module_table", 0),
                ("export_table", i64::from(t.exports.len()) * 40),
                ("export_list", 0),
                ("fun_table", 0),
                ("loaded_code", code),
                ("process_table", vm.process_limit() as i64 * 16),
                ("ets_misc", 0),
                ("external_alloc", atoms_size + code),
            ];
            for (k, v) in rows {
                let p = pair(ctx, k, Word::fixnum(v))?;
                list = ctx.cons(p, list);
            }
            Ok(list)
        }
        "trace_control_word" => {
            let n = u64::from(vm.trace_control_word.load(Relaxed));
            Ok(ctx.unsigned(n))
        }
        "sequential_tracer" => pair(ctx, "sequential_tracer", Word::FALSE),
        "garbage_collection" => {
            let max = d.max_heap_size.read().unwrap_or_else(|e| e.into_inner()).0;
            let rows = [
                ("max_heap_size", max),
                ("min_bin_vheap_size", d.min_bin_vheap_size.load(Relaxed)),
                ("min_heap_size", d.min_heap_size.load(Relaxed)),
                ("fullsweep_after", d.fullsweep_after.load(Relaxed) as usize),
            ];
            let mut list = Word::NIL;
            for (k, v) in rows.into_iter().rev() {
                let p = pair(ctx, k, Word::fixnum(v as i64))?;
                list = ctx.cons(p, list);
            }
            Ok(list)
        }
        "fullsweep_after" => {
            let n = d.fullsweep_after.load(Relaxed);
            pair(ctx, item, Word::fixnum(i64::from(n)))
        }
        "min_heap_size" => pair(
            ctx,
            item,
            Word::fixnum(d.min_heap_size.load(Relaxed) as i64),
        ),
        "min_bin_vheap_size" => pair(
            ctx,
            item,
            Word::fixnum(d.min_bin_vheap_size.load(Relaxed) as i64),
        ),
        "max_heap_size" => Ok(max_heap(ctx)),
        "message_queue_data" => Ok(atoms::ON_HEAP.word()),
        "process_count" => int(vm.process_count() as i64),
        "process_limit" => int(vm.process_limit() as i64),
        "port_count" => int(0),
        "port_limit" => int(65536),
        "atom_count" => int(i64::from(vm.tables.atoms.len())),
        "atom_limit" => int(i64::from(vm.tables.atoms.limit())),
        "ets_limit" => int(8192),
        "ets_count" => int(vm.ets.count() as i64),
        "info" | "procs" | "loaded" | "dist" => Ok(text_info(ctx, item)),
        "dist_ctrl"
        | "taints"
        | "emu_args"
        | "check_io"
        | "reader_groups_map"
        | "decentralized_counter_groups_map"
        | "compile_info" => Ok(Word::NIL),
        "allocator" => {
            let glibc = ctx.atom("undefined")?;
            Ok(ctx.tuple(&[glibc, Word::NIL, Word::NIL, Word::NIL]))
        }
        "alloc_util_allocators" => {
            let mut names = Vec::new();
            for a in ALLOCATORS {
                names.push(ctx.atom(a)?);
            }
            Ok(ctx.list(names))
        }
        "wordsize" => int(8),
        "endian" => Ok(if cfg!(target_endian = "big") {
            atoms::BIG.word()
        } else {
            atoms::LITTLE.word()
        }),
        "heap_type" => ctx.atom("private"),
        "heap_sizes" => {
            let mut sizes = Vec::new();
            let mut n = 0;
            while n < 885_767_171_276_247 {
                n = beamr_vm::gc::sizes::next_larger_size(n);
                sizes.push(Word::fixnum(n as i64));
            }
            Ok(ctx.list(sizes))
        }
        "cpu_topology" | "modified_timing_level" | "hipe_architecture" => {
            Ok(atoms::UNDEFINED.word())
        }
        "update_cpu_info" => ctx.atom("unchanged"),
        "threads"
        | "smp_support"
        | "constant_pool_support"
        | "port_tasks"
        | "eager_check_io"
        | "kernel_poll"
        | "beam_jump_table" => Ok(Word::TRUE),
        "ethread_info" => {
            let mut list = Word::NIL;
            for (what, how) in [
                ("Double word native atomics", "no"),
                ("64-bit native atomics", "Rust"),
                ("32-bit native atomics", "Rust"),
            ] {
                let row = [
                    ctx.string(what),
                    ctx.string(how),
                    ctx.string("core::sync::atomic"),
                ];
                let row = ctx.tuple(&row);
                list = ctx.cons(row, list);
            }
            Ok(list)
        }
        "break_ignored"
        | "lock_checking"
        | "lock_counting"
        | "debug_compiled"
        | "port_parallelism"
        | "io_thread"
        | "dynamic_trace_probes"
        | "ets_realloc_moves"
        | "ets_always_compress" => Ok(Word::FALSE),
        "thread_progress" => Ok(Word::TRUE),
        "thread_pool_size" | "run_queues" if item == "thread_pool_size" => int(1),
        "run_queues" => int(schedulers(&vm)),
        "creation" => int(i64::from(vm.tables.local_node().1)),
        "logical_processors" | "logical_processors_online" | "logical_processors_available" => {
            int(vm.door.processors() as i64)
        }
        "cpu_quota" => ctx.atom("unknown"),
        "scheduler_bind_type" => ctx.atom("unbound"),
        "scheduler_bindings" => {
            let unbound = ctx.atom("unbound")?;
            let all = vec![unbound; schedulers(&vm) as usize];
            Ok(ctx.tuple(&all))
        }
        "schedulers" | "schedulers_total" => int(schedulers(&vm)),
        "schedulers_online" | "schedulers_active" => int(online(&vm)),
        "schedulers_state" => {
            let v = [schedulers(&vm), online(&vm), online(&vm)].map(Word::fixnum);
            Ok(ctx.tuple(&v))
        }
        "all_schedulers_state" => scheduler_states(ctx),
        "dirty_cpu_schedulers" => int(dirty_cpu(&vm)),
        "dirty_cpu_schedulers_online" => int(dirty_online(&vm)),
        "dirty_io_schedulers" => int(dirty_io(&vm)),
        "c_compiler_used" => {
            let rust = ctx.atom("rustc")?;
            Ok(ctx.tuple(&[rust, atoms::UNDEFINED.word()]))
        }
        "context_reductions" => int(SLICE),
        "dist_buf_busy_limit" => int(1 << 20),
        "delayed_node_table_gc" => int(60),
        "async_dist" if release >= 26 => Ok(Word::FALSE),
        "halt_flush_timeout" if release >= 27 => Ok(atoms::INFINITY.word()),
        "dynamic_trace" => Ok(atoms::NONE.word()),
        "literal_test" => ctx.atom("range"),
        "ethread_used_tse" => int(0),
        "scheduling_statistics" | "total_scheduling_statistics" => Ok(Word::NIL),
        "snifs" => snifs(ctx),
        "system_logger" => match vm.system_logger() {
            l if l.is_local_pid() || l == atoms::UNDEFINED.word() => Ok(l),
            // Not started yet.
            _ => Ok(atoms::LOGGER.word()),
        },
        _ => Err(ctx.badarg()),
    }
}

// ---- system_flag

fn natural(ctx: &mut Ctx, w: Word) -> Result<i64, Escape> {
    match w.as_small() {
        Some(n) if n >= 0 => Ok(n),
        _ => Err(ctx.badarg()),
    }
}

/// `system_flag(Flag, Value)`: the value before.
fn system_flag_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(flag) = name(ctx, args[0]) else {
        return Err(bad_options(ctx));
    };
    let vm = vm_of(ctx).clone();
    let f = flags_of(&vm);
    let d = &vm.defaults;
    let value = args[1];
    let old = |n: usize| Ok(Word::fixnum(n as i64));
    match flag {
        "multi_scheduling" => {
            let block = match name(ctx, value) {
                Some("block" | "block_normal") => true,
                Some("unblock" | "unblock_normal") => false,
                _ => return Err(ctx.badarg()),
            };
            f.blocked.store(block, Relaxed);
            ctx.atom(if block { "blocked" } else { "enabled" })
        }
        "schedulers_online" | "dirty_cpu_schedulers_online" => {
            let n = natural(ctx, value)?;
            let (most, before, cell) = if flag == "schedulers_online" {
                (schedulers(&vm), online(&vm), &f.schedulers_online)
            } else {
                (dirty_cpu(&vm), dirty_online(&vm), &f.dirty_online)
            };
            if !(1..=most).contains(&n) {
                return Err(ctx.badarg());
            }
            cell.store(n, Relaxed);
            Ok(Word::fixnum(before))
        }
        "outstanding_system_requests_limit" => {
            let n = natural(ctx, value)?;
            if !(1..1 << 27).contains(&n) {
                return Err(ctx.badarg());
            }
            let cell = &f.requests_limit;
            let before = cell.swap(n - DEFAULT_REQUESTS, Relaxed);
            Ok(Word::fixnum(before + DEFAULT_REQUESTS))
        }
        "fullsweep_after" => {
            let n = natural(ctx, value)?.min(65535) as u32;
            old(d.fullsweep_after.swap(n, Relaxed) as usize)
        }
        "min_heap_size" => {
            let n = natural(ctx, value)? as usize;
            old(d
                .min_heap_size
                .swap(beamr_vm::gc::sizes::next_size(n), Relaxed))
        }
        "min_bin_vheap_size" => {
            let n = natural(ctx, value)? as usize;
            old(d
                .min_bin_vheap_size
                .swap(beamr_vm::gc::sizes::next_size(n), Relaxed))
        }
        "max_heap_size" => {
            let Some(new) = spawn::max_heap_size(ctx, value) else {
                return Err(ctx.badarg());
            };
            let before = max_heap(ctx);
            *d.max_heap_size.write().unwrap_or_else(|e| e.into_inner()) = new;
            Ok(before)
        }
        "backtrace_depth" => {
            let n = natural(ctx, value)?.min(64) as usize;
            old(vm.server.backtrace_depth.swap(n, Relaxed))
        }
        "trace_control_word" => {
            let n = natural(ctx, value)?;
            if n > i64::from(u32::MAX) {
                return Err(ctx.badarg());
            }
            let before = vm.trace_control_word.swap(n as u32, Relaxed);
            Ok(ctx.unsigned(u64::from(before)))
        }
        "system_logger" => {
            let known = value.is_local_pid()
                || matches!(name(ctx, value), Some("logger" | "undefined" | "set_later"));
            if !known {
                return Err(ctx.badarg());
            }
            Ok(vm.set_system_logger(value))
        }
        "scheduler_wall_time" => match value.as_boolean() {
            Some(b) => Ok(Word::boolean(f.wall_time.swap(b, Relaxed))),
            None => Err(ctx.badarg()),
        },
        "sequential_tracer" if value == Word::FALSE || value.is_local_pid() => Ok(Word::FALSE),
        "reset_seq_trace" if value == Word::TRUE => Ok(Word::TRUE),
        "debug_flags" => Ok(Word::TRUE),
        "time_offset" if name(ctx, value) == Some("finalize") => ctx.atom("final"),
        "microstate_accounting" if value.is_boolean() || name(ctx, value) == Some("reset") => {
            Ok(Word::FALSE)
        }
        "cpu_topology" if value == atoms::UNDEFINED.word() => Ok(value),
        "scheduler_bind_type" => ctx.atom("unbound"),
        "erts_alloc" => Err(ctx.notsup()),
        _ => Err(bad_options(ctx)),
    }
}

// ---- statistics

fn two(ctx: &mut Ctx, a: i64, b: i64) -> Word {
    let (a, b) = (ctx.integer(a), ctx.integer(b));
    ctx.tuple(&[a, b])
}

fn reductions(ctx: &Ctx) -> u64 {
    let this = (SLICE - ctx.fcalls).max(0) as u64;
    vm_of(ctx).default_namespace().reductions() + this
}

/// `statistics(Item)`.
fn statistics_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(item) = name(ctx, args[0]) else {
        return Err(ctx.badarg());
    };
    let vm = vm_of(ctx).clone();
    let f = flags_of(&vm);
    let queues = |extra: usize| {
        let mut lens = vec![Word::fixnum(0); schedulers(&vm) as usize + extra];
        lens[0] = Word::fixnum(vm.run_queue_len() as i64);
        lens
    };
    match item {
        "wall_clock" => {
            let now = (vm.monotonic_ns() / 1_000_000) as i64;
            let before = f.wall_clock.swap(now, Relaxed);
            Ok(two(ctx, now, now - before))
        }
        "runtime" => {
            let now = vm.door.cpu_time() / 1_000_000;
            let before = f.runtime.swap(now, Relaxed);
            Ok(two(ctx, now, now - before))
        }
        "reductions" | "exact_reductions" => {
            let now = reductions(ctx);
            let before = f.reductions.swap(now, Relaxed);
            Ok(two(ctx, now as i64, now.saturating_sub(before) as i64))
        }
        "context_switches" => Ok(two(ctx, 0, 0)),
        "garbage_collection" => {
            let zero = Word::fixnum(0);
            Ok(ctx.tuple(&[zero, zero, zero]))
        }
        "io" => {
            let input = pair(ctx, "input", Word::fixnum(0))?;
            let output = pair(ctx, "output", Word::fixnum(0))?;
            Ok(ctx.tuple(&[input, output]))
        }
        "run_queue" | "total_run_queue_lengths" | "total_run_queue_lengths_all" => {
            Ok(Word::fixnum(vm.run_queue_len() as i64))
        }
        "total_active_tasks" | "total_active_tasks_all" => {
            Ok(Word::fixnum(vm.run_queue_len() as i64 + 1))
        }
        "run_queue_lengths" => Ok(ctx.list(queues(1))),
        "run_queue_lengths_all" => Ok(ctx.list(queues(2))),
        "active_tasks" | "active_tasks_all" => {
            let mut q = queues(if item == "active_tasks" { 1 } else { 2 });
            q[0] = Word::fixnum(vm.run_queue_len() as i64 + 1);
            Ok(ctx.list(q))
        }
        "run_queues" => {
            let q = queues(2);
            Ok(ctx.tuple(&q))
        }
        "scheduler_wall_time" | "scheduler_wall_time_all" => {
            if !f.wall_time.load(Relaxed) {
                return Ok(atoms::UNDEFINED.word());
            }
            let total = vm.monotonic_ns() as i64;
            let busy = vm.door.cpu_time().min(total);
            let dirty = dirty_cpu(&vm)
                + if item.ends_with("all") {
                    dirty_io(&vm)
                } else {
                    0
                };
            let mut list = Word::NIL;
            for id in (1..=schedulers(&vm) + dirty).rev() {
                let active = if id == 1 { busy } else { 0 };
                let (a, t) = (ctx.integer(active), ctx.integer(total));
                let row = ctx.tuple(&[Word::fixnum(id), a, t]);
                list = ctx.cons(row, list);
            }
            Ok(list)
        }
        "microstate_accounting" => Ok(atoms::UNDEFINED.word()),
        _ => Err(ctx.badarg()),
    }
}

/// `erts_internal:scheduler_wall_time(Bool)`.
fn scheduler_wall_time_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_boolean() {
        Some(b) => {
            let f = flags_of(vm_of(ctx));
            Ok(Word::boolean(f.wall_time.swap(b, Relaxed)))
        }
        None => Err(ctx.badarg()),
    }
}

/// `erts_internal:no_aux_work_threads()`: one more than threads that answer a question about memory.
fn no_aux_work_threads_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::fixnum(2))
}

/// `error_logger:warning_map()`.
fn warning_map_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    ctx.atom("warning")
}

/// `io:printable_range()`.
fn printable_range_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::LATIN1.word())
}

/// `net_kernel:dflag_unicode_io(Pid)`: every node of these releases takes Unicode.
fn dflag_unicode_io_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_pid() {
        Ok(Word::TRUE)
    } else {
        Err(ctx.badarg())
    }
}

/// `erts_internal:system_check(schedulers)`.
fn system_check_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match name(ctx, args[0]) {
        Some("schedulers") => Ok(atoms::OK.word()),
        _ => Err(ctx.badarg()),
    }
}

/// `system_monitor()`, `system_profile()`: nobody is told of anything.
fn system_monitor_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(atoms::UNDEFINED.word())
}

/// `system_monitor(undefined | {Pid, Options})`.
fn system_monitor_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_tuple() {
        Some([pid, options]) => system_monitor_2(ctx, &[*pid, *options]),
        _ if args[0] == atoms::UNDEFINED.word() => Ok(args[0]),
        _ => Err(ctx.badarg()),
    }
}

/// `system_monitor(Pid, Options)`: the options are checked; no event is ever sent.
fn system_monitor_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0] == atoms::UNDEFINED.word() {
        return Ok(args[0]);
    }
    if !args[0].is_local_pid() {
        return Err(ctx.badarg());
    }
    for o in list_items(ctx, args[1])? {
        let good = match (o.as_atom(), o.as_tuple()) {
            (Some(_), _) => matches!(name(ctx, o), Some("busy_port" | "busy_dist_port")),
            (_, Some([k, v])) => {
                let n = v.as_small().is_some_and(|n| n >= 0);
                match name(ctx, *k) {
                    Some("long_gc" | "long_schedule" | "large_heap") => n,
                    Some("long_message_queue") => true,
                    _ => false,
                }
            }
            _ => false,
        };
        if !good {
            return Err(ctx.badarg());
        }
    }
    Ok(atoms::UNDEFINED.word())
}

/// `system_profile(Pid, Options)`.
fn system_profile_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0] != atoms::UNDEFINED.word() && !args[0].is_pid() && !args[0].is_port() {
        return Err(ctx.badarg());
    }
    list_items(ctx, args[1])?;
    Ok(atoms::UNDEFINED.word())
}

/// `erts_internal:system_monitor(Session)`, `system_monitor(Session, Pid, Options)` (29).
fn session_monitor_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if name(ctx, args[0]) == Some("default") || args[0].is_reference() {
        Ok(atoms::UNDEFINED.word())
    } else {
        Err(ctx.badarg())
    }
}
fn session_monitor_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    session_monitor_1(ctx, args)?;
    system_monitor_2(ctx, &args[1..])
}

/// `erts_internal:term_to_string(Term, Limit | undefined)` (27).
fn term_to_string_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let limit = match (args[1].as_small(), name(ctx, args[1])) {
        (Some(n), _) if n > 0 => format::FormatLimit::items(n),
        (_, Some("undefined")) => format::FormatLimit::NONE,
        _ => return Err(ctx.badarg()),
    };
    let out = format::format_term(ctx.tables(), args[0], limit);
    ctx.bump(out.len() as i64 / 32);
    match std::str::from_utf8(&out) {
        Ok(s) => Ok(ctx.string(s)),
        Err(_) => Ok(text::list_of_bytes(ctx, &out, Word::NIL)),
    }
}

/// `erl_debugger:supported()`.
fn no_debugger_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::FALSE)
}

/// Pairs of a map literal that a native gives.
pub fn map_of(ctx: &mut Ctx, pairs: &[(&str, Word)]) -> Result<Word, Escape> {
    let mut all = Vec::new();
    for (k, v) in pairs {
        all.push((ctx.atom(k)?, *v));
    }
    let tables = ctx.tables();
    Ok(maps::from_pairs(ctx, &all, tables))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}

const fn outside(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ExternalIo)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    outside("halt", 2, halt_2),
    outside("display", 1, display_1),
    outside("display_string", 1, display_string_1).releases(ReleaseSpan::until(25)),
    outside("display_nl", 0, display_nl_0).releases(ReleaseSpan::until(25)),
    outside("display_string", 2, display_string_2).releases(ReleaseSpan::since(26)),
    row("system_info", 1, system_info_1),
    row("system_flag", 2, system_flag_2),
    row("statistics", 1, statistics_1),
    row("system_monitor", 0, system_monitor_0).releases(ReleaseSpan::until(28)),
    row("system_monitor", 1, system_monitor_1).releases(ReleaseSpan::until(28)),
    row("system_monitor", 2, system_monitor_2).releases(ReleaseSpan::until(28)),
    row("system_profile", 0, system_monitor_0),
    row("system_profile", 2, system_profile_2),
    internal("scheduler_wall_time", 1, scheduler_wall_time_1),
    internal("no_aux_work_threads", 0, no_aux_work_threads_0),
    internal("system_check", 1, system_check_1),
    internal("system_monitor", 1, session_monitor_1).releases(ReleaseSpan::since(29)),
    internal("system_monitor", 3, session_monitor_3).releases(ReleaseSpan::since(29)),
    internal("term_to_string", 2, term_to_string_2).releases(ReleaseSpan::since(27)),
    NativeEntry::new("erl_debugger", "supported", 0, no_debugger_0)
        .releases(ReleaseSpan::since(28)),
    NativeEntry::new("error_logger", "warning_map", 0, warning_map_0),
    NativeEntry::new("io", "printable_range", 0, printable_range_0),
    NativeEntry::new("net_kernel", "dflag_unicode_io", 1, dflag_unicode_io_1),
];
