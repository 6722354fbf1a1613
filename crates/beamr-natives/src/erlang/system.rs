//! `erlang`: the system as a whole: `system_info`, `system_flag`, `statistics`, `halt`, `display`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, Pending, ReleaseSpan};
use beamr_term::{Build, Word, atoms, format, maps, text};
use beamr_vm::door::Stream;
use beamr_vm::process::{flags, own, slot_of, spawn, vm_of, worker};
use beamr_vm::rt;
use beamr_vm::sched::SLICE;
use beamr_vm::vm::{Halt, Vm};

use crate::identity::Identity;
use crate::support::{list_items, name};

/// What `system_flag/2` sets and only this file reads, and the marks of `statistics/1`.
#[derive(Default)]
struct Flags {
    dirty_online: AtomicI64,
    wall_clock: AtomicI64,
    runtime: AtomicI64,
    reductions: AtomicU64,
    wall_time: AtomicBool,
    /// What `outstanding_system_requests_limit` is more than [`DEFAULT_REQUESTS`].
    requests_limit: AtomicI64,
    /// When `scheduler_wall_time` was switched on, and what each worker had slept by then.
    wall_time_from: Mutex<(u64, Vec<u64>)>,
}

impl Flags {
    /// Switches `scheduler_wall_time`: the value before.
    fn set_wall_time(&self, vm: &Vm, on: bool) -> bool {
        let before = self.wall_time.swap(on, Relaxed);
        if on && !before {
            let now = vm.monotonic_ns();
            let mut from = self
                .wall_time_from
                .lock()
                .unwrap_or_else(|e| e.into_inner());
            *from = (now, vm.slept_ns(now));
        }
        before
    }
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
    vm.online.online() as i64
}

fn dirty_online(vm: &Vm) -> i64 {
    match flags_of(vm).dirty_online.load(Relaxed) {
        0 => dirty_cpu(vm),
        n => n,
    }
}

/// `multi_scheduling` as an atom's text.
fn multi_scheduling(vm: &Vm) -> &'static str {
    if schedulers(vm) == 1 {
        "disabled"
    } else if !vm.online.blockers(false).is_empty() {
        "blocked"
    } else if !vm.online.blockers(true).is_empty() {
        "blocked_normal"
    } else {
        "enabled"
    }
}

/// Gives `answer` when the workers that are to rest do so.
fn in_force(ctx: &mut Ctx, answer: Word) -> Result<Word, Escape> {
    if vm_of(ctx).online.at_rest() {
        return Ok(answer);
    }
    Err(ctx.escape(Pending::YieldTo {
        target: beamr_abi::TrapTarget::Native(&IN_FORCE),
        args: vec![answer],
    }))
}
static IN_FORCE: NativeEntry = NativeEntry::new("erlang", "system_flag_in_force", 1, in_force_1)
    .needs(Capability::ProcessLocal);
fn in_force_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    in_force(ctx, args[0])
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

/// Bytes of what is neither heap nor binary nor ets.
struct Areas {
    atom_space: i64,
    atom_table: i64,
    export_table: i64,
    code: i64,
    process_table: i64,
    fixed: i64,
}

impl Areas {
    fn of(vm: &Vm) -> Areas {
        let t = &vm.tables;
        let modules = &vm.default_namespace().modules;
        Areas {
            atom_space: i64::from(t.atoms.len()) * 64,
            atom_table: i64::from(t.atoms.len()) * 16,
            export_table: i64::from(t.exports.len()) * 40,
            code: modules
                .loaded()
                .into_iter()
                .filter_map(|m| modules.current(m))
                .map(|i| (i.image.emitted.end - i.image.emitted.start + i.image.file_size) as i64)
                .sum(),
            process_table: vm.process_table_bytes() as i64,
            fixed: vm.fixed_bytes() as i64,
        }
    }
    fn rows(&self) -> [(&'static str, i64); 10] {
        [
            ("atom_table", self.atom_table),
            ("module_table", 0),
            ("export_table", self.export_table),
            ("export_list", 0),
            ("fun_table", 0),
            ("loaded_code", self.code),
            ("process_table", self.process_table),
            ("static", self.fixed),
            ("ets_misc", 0),
            ("external_alloc", 0),
        ]
    }
    fn total(&self) -> i64 {
        self.atom_space + self.rows().iter().map(|r| r.1).sum::<i64>()
    }
}

/// `system_info(check_io)`: the one poll set, that of ports.
fn check_io(ctx: &mut Ctx, watched: usize) -> Result<Word, Escape> {
    let (set, poll) = (ctx.atom("erts_poll")?, ctx.atom("poll")?);
    let size = Word::fixnum(watched as i64);
    let bytes = Word::fixnum(watched as i64 * 8);
    let mut all = Vec::new();
    for (item, value) in [
        ("name", set),
        ("primary", poll),
        ("kernel_poll", Word::FALSE),
        ("memory_size", bytes),
        ("total_poll_set_size", size),
        ("lazy_updates", Word::FALSE),
        ("pending_updates", Word::fixnum(0)),
        ("batch_updates", Word::TRUE),
        ("concurrent_updates", Word::TRUE),
        ("fallback", Word::FALSE),
        ("active_fds", Word::fixnum(0)),
        // It is started with the first port.
        ("poll_threads", Word::fixnum(1)),
    ] {
        all.push(pair(ctx, item, value)?);
    }
    let set = ctx.list(all);
    Ok(ctx.list([set]))
}

fn memory_info(ctx: &mut Ctx, reference: Word, allocators: Word) -> Result<Word, Escape> {
    let items = list_items(ctx, allocators)?;
    if !reference.is_reference() {
        return Err(ctx.badarg());
    }
    let ets = vm_of(ctx).ets.memory_words() as i64 * 8;
    let vm = vm_of(ctx);
    let namespace = vm.default_namespace();
    // The heaps, and what a process takes besides.
    let processes = (namespace.memory() - namespace.off_heap() - ets).max(0)
        + vm.process_count() as i64 * beamr_vm::process::PROCESS_BYTES as i64;
    let binaries = vm.totals().binary_bytes.max(0);
    let areas = Areas::of(vm).total();
    let mut list = Word::NIL;
    for a in items.into_iter().rev() {
        let Some(kind) = name(ctx, a) else {
            return Err(ctx.badarg());
        };
        let size = match kind {
            "eheap_alloc" => processes,
            "ets_alloc" => ets,
            "binary_alloc" => binaries,
            "ll_alloc" => areas,
            "fix_alloc" => {
                let (n, each) = vm_of(ctx).message_timers();
                (n * each) as i64
            }
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
            let (n, each) = vm_of(ctx).message_timers();
            let bytes = Word::fixnum((n * each) as i64);
            let timers = ctx.atom("bif_timer")?;
            let timers = ctx.tuple(&[timers, bytes, bytes]);
            let types = ctx.cons(timers, Word::NIL);
            let types = pair(ctx, "fix_types", types)?;
            data = ctx.cons(types, data);
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
        "multi_scheduling" => {
            let state = multi_scheduling(&vm);
            ctx.atom(state)
        }
        "multi_scheduling_blockers" | "normal_multi_scheduling_blockers" => {
            let normal = item.starts_with("normal");
            let ids = vm.online.blockers(normal);
            Ok(beamr_vm::signal::request::pid_list(ctx, &ids))
        }
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
            let areas = Areas::of(&vm);
            let space = ctx.atom("atom_space")?;
            let atoms_size = Word::fixnum(areas.atom_space);
            let space = ctx.tuple(&[space, atoms_size, atoms_size]);
            let mut list = ctx.cons(space, Word::NIL);
            for (k, v) in areas.rows() {
                let p = pair(ctx, k, Word::fixnum(v))?;
                list = ctx.cons(p, list);
            }
            Ok(list)
        }
        "trace_control_word" => {
            let n = u64::from(vm.trace_control_word.load(Relaxed));
            Ok(ctx.unsigned(n))
        }
        "sequential_tracer" => {
            let tracer = vm.trace.seq_tracer.get(beamr_vm::process::worker(ctx));
            pair(ctx, "sequential_tracer", tracer)
        }
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
        "port_count" => int(beamr_vm::port::Ports::of(&vm).count() as i64),
        "port_limit" => int(beamr_vm::port::PORT_LIMIT as i64),
        "atom_count" => int(i64::from(vm.tables.atoms.len())),
        "atom_limit" => int(i64::from(vm.tables.atoms.limit())),
        "ets_limit" => int(8192),
        "ets_count" => int(vm.ets.count() as i64),
        "info" | "procs" | "loaded" | "dist" => Ok(text_info(ctx, item)),
        "dist_ctrl"
        | "taints"
        | "emu_args"
        | "reader_groups_map"
        | "decentralized_counter_groups_map"
        | "compile_info" => Ok(Word::NIL),
        "check_io" => match vm.hooks.ports.get() {
            Some(ports) => check_io(ctx, ports.watched()),
            None => Ok(Word::NIL),
        },
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
            // As far as an address of this machine reaches: the last size of OTP on 64 bits is this one.
            while n < usize::try_from(885_767_171_276_247u64).unwrap_or(usize::MAX / 16) {
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
        "schedulers_online" => int(online(&vm)),
        "schedulers_active" => int(vm.online.active() as i64),
        "schedulers_state" => {
            let active = vm.online.active() as i64;
            let v = [schedulers(&vm), online(&vm), active].map(Word::fixnum);
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
            let (block, normal) = match name(ctx, value) {
                Some("block") => (true, false),
                Some("block_normal") => (true, true),
                Some("unblock") => (false, false),
                Some("unblock_normal") => (false, true),
                _ => return Err(ctx.badarg()),
            };
            let me = slot_of(ctx).proc_id();
            if block {
                vm.online.block(&vm, own(ctx), me, normal);
            } else {
                vm.online.unblock(&vm, me, normal);
            }
            let state = multi_scheduling(&vm);
            let state = ctx.atom(state)?;
            in_force(ctx, state)
        }
        "schedulers_online" => {
            let n = natural(ctx, value)?;
            if !(1..=schedulers(&vm)).contains(&n) {
                return Err(ctx.badarg());
            }
            let before = vm.online.set_online(&vm, n as usize);
            in_force(ctx, Word::fixnum(before as i64))
        }
        "dirty_cpu_schedulers_online" => {
            let n = natural(ctx, value)?;
            if !(1..=dirty_cpu(&vm)).contains(&n) {
                return Err(ctx.badarg());
            }
            let before = dirty_online(&vm);
            f.dirty_online.store(n, Relaxed);
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
            Some(b) => Ok(Word::boolean(f.set_wall_time(&vm, b))),
            None => Err(ctx.badarg()),
        },
        "sequential_tracer" if value == Word::FALSE || value.is_local_pid() => Ok(vm
            .trace
            .seq_tracer
            .set(beamr_vm::process::worker(ctx), value)),
        "reset_seq_trace" if value == Word::TRUE => {
            beamr_vm::trace::seq::reset_all(ctx);
            Ok(Word::TRUE)
        }
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
        let (mut lens, cpu, io) = vm.run_queue_lens();
        lens.extend([cpu, io].into_iter().take(extra));
        lens.into_iter()
            .map(|n| Word::fixnum(n as i64))
            .collect::<Vec<_>>()
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
        "context_switches" => {
            let n = vm.totals().switches;
            Ok(two(ctx, n as i64, 0))
        }
        "garbage_collection" => {
            let t = vm.totals();
            let n = ctx.unsigned(t.collections);
            let words = ctx.unsigned(t.reclaimed_words);
            Ok(ctx.tuple(&[n, words, Word::fixnum(0)]))
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
            // The one that asks runs, too.
            let mine = worker(ctx).index.unwrap_or(0);
            q[mine] = Word::fixnum(q[mine].small_value() + 1);
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
            let now = vm.monotonic_ns();
            let slept = vm.slept_ns(now);
            let from = f
                .wall_time_from
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .clone();
            let total = now.saturating_sub(from.0) as i64;
            let dirty = dirty_cpu(&vm)
                + if item.ends_with("all") {
                    dirty_io(&vm)
                } else {
                    0
                };
            let mut list = Word::NIL;
            for id in (1..=schedulers(&vm) + dirty).rev() {
                let at = id as usize - 1;
                // Dirty threads are not measured.
                let active = slept.get(at).map_or(0, |s| {
                    let idle = s - from.1.get(at).copied().unwrap_or(0).min(*s);
                    (total - idle as i64).max(0)
                });
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
            let vm = vm_of(ctx);
            Ok(Word::boolean(flags_of(vm).set_wall_time(vm, b)))
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
