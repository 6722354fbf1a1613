//! Making processes.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use beamr_abi::{Body, Ctx, Escape, STACK_SLACK, SavedArgs};
use beamr_sync::Priority;
use beamr_sync::prim::Arc as SyncArc;
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::{Alloc, Atom, Build, Word, atoms};

use super::{
    Carried, Dictionary, MaxHeap, Monitor, MonitorTarget, MonitoredBy, Own, ProcId, Process,
    RefKey, Slot, copy_term, namespace_has_room, own, process, slot_of, worker,
};
use crate::engine::Fixed;
use crate::gc::sizes::DEFAULT_MIN_SIZE;
use crate::gc::{HeapOptions, heap_bytes, new_heap};
use crate::native_process::NativeProcess;
use crate::sched::Worker;
use crate::signal::monitor::{MonitorOptions, monitor_options};
use crate::trace::process::{inherit, spawned};
use crate::vm::Namespace;

/// Options of `spawn_opt` and `spawn_request`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnOptions {
    /// `link`.
    pub link: bool,
    /// `{link, [priority]}` (28).
    pub link_priority: bool,
    /// `monitor` or `{monitor, Options}`.
    pub monitor: Option<MonitorOptions>,
    /// `{priority, P}`.
    pub priority: Option<Priority>,
    /// `{fullsweep_after, N}`.
    pub fullsweep_after: Option<u16>,
    /// `{min_heap_size, Words}`.
    pub min_heap_size: Option<usize>,
    /// `{min_bin_vheap_size, Words}`.
    pub min_bin_vheap_size: Option<usize>,
    /// `{max_heap_size, Size | Map}`.
    pub max_heap_size: Option<(usize, MaxHeap)>,
    /// `{message_queue_data, off_heap}`.
    pub off_heap_messages: bool,
    /// The exit is noted for the host with its result ([`crate::vm::Vm::exits`]); no Erlang option.
    pub watched: bool,
    /// An uncaught error is nobody's concern but the monitors': the logger does not hear of it; no Erlang option.
    pub quiet: bool,
    /// A number that a process gives to those it spawns: who is of the family of a starter of servers is not kept waiting for them
    /// ([`Hooks::names`](crate::vm::Hooks::names)). 0 stands for the spawner's; no Erlang option.
    pub family: u32,
    /// A name that it has from the first moment on, if it is free; no Erlang option.
    pub name: Option<Atom>,
    /// What `process_info(P, initial_call)` shows of a process written in Rust; no Erlang option.
    pub shown_call: Option<(Atom, Atom, u32)>,
}

/// What `spawn_request` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyOption {
    /// `yes`.
    #[default]
    Yes,
    /// `no`.
    No,
    /// `error_only`.
    ErrorOnly,
    /// `success_only`.
    SuccessOnly,
}

/// Options that only `spawn_request` has.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// `{reply, R}`.
    pub reply: ReplyOption,
    /// `{reply_tag, Tag}`.
    pub reply_tag: Option<Word>,
}

/// What is wrong with spawn options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    /// Not a proper list.
    #[error("not a proper list")]
    NotAList,
    /// An unknown option or a value out of range.
    #[error("bad option")]
    BadOption,
}

/// A priority by its atom.
pub fn priority(term: Word) -> Option<Priority> {
    match term.as_atom()? {
        atoms::MAX => Some(Priority::Max),
        atoms::HIGH => Some(Priority::High),
        atoms::NORMAL => Some(Priority::Normal),
        atoms::LOW => Some(Priority::Low),
        _ => None,
    }
}

/// The value of `max_heap_size`: words, or a map of `size`, `kill`, `error_logger`, `include_shared_binaries`.
pub fn max_heap_size(ctx: &Ctx, term: Word) -> Option<(usize, MaxHeap)> {
    let size = |t: Word| {
        let n = usize::try_from(t.as_small()?).ok()?;
        (n == 0 || n >= DEFAULT_MIN_SIZE).then_some(n)
    };
    if term.is_small() {
        return Some((size(term)?, MaxHeap::default()));
    }
    if !term.is_map() {
        return None;
    }
    let tables = ctx.tables();
    let key = |k: &str| {
        let atom = tables.atoms.lookup(k)?;
        beamr_term::maps::get(term, atom.word(), tables)
    };
    let n = size(beamr_term::maps::get(term, atoms::SIZE.word(), tables)?)?;
    let mut max = MaxHeap::default();
    for (name, field) in [
        (key("kill"), &mut max.kill),
        (key("error_logger"), &mut max.error_logger),
        (
            key("include_shared_binaries"),
            &mut max.include_shared_binaries,
        ),
    ] {
        if let Some(v) = name {
            *field = v.as_boolean()?;
        }
    }
    Some((n, max))
}

/// The value of the option `reply`.
pub fn reply_option(ctx: &Ctx, value: Word) -> Option<ReplyOption> {
    match ctx.tables().atoms.text(value.as_atom()?) {
        "yes" => Some(ReplyOption::Yes),
        "no" => Some(ReplyOption::No),
        "error_only" => Some(ReplyOption::ErrorOnly),
        "success_only" => Some(ReplyOption::SuccessOnly),
        _ => None,
    }
}

/// Parses the options of `spawn_opt` (and, when `request` is given, of `spawn_request`).
pub fn spawn_options(
    ctx: &Ctx,
    list: Word,
    mut request: Option<&mut RequestOptions>,
) -> Result<SpawnOptions, OptionError> {
    let mut o = SpawnOptions::default();
    let mut l = list;
    let size = |t: Word| t.as_small().and_then(|n| usize::try_from(n).ok());
    let prioritized = ctx.tables().release.0 >= 28;
    while let Some((head, tail)) = l.as_cons() {
        l = tail;
        match head.as_atom() {
            Some(atoms::LINK) => {
                o.link = true;
                continue;
            }
            Some(atoms::MONITOR) => {
                o.monitor = Some(MonitorOptions::default());
                continue;
            }
            _ => {}
        }
        let Some([key, value]) = head.as_tuple() else {
            return Err(OptionError::BadOption);
        };
        let ok = match key.as_atom() {
            Some(atoms::MONITOR) => {
                o.monitor = monitor_options(*value).filter(|m| !m.priority || prioritized);
                o.monitor.is_some()
            }
            Some(atoms::LINK) if prioritized => {
                o.link = true;
                let mut rest = *value;
                while let Some((head, tail)) = rest.as_cons() {
                    if head != atoms::PRIORITY.word() {
                        return Err(OptionError::BadOption);
                    }
                    o.link_priority = true;
                    rest = tail;
                }
                rest.is_nil()
            }
            Some(atoms::PRIORITY) => {
                o.priority = priority(*value);
                o.priority.is_some()
            }
            Some(atoms::FULLSWEEP_AFTER) => {
                o.fullsweep_after = size(*value).map(|n| n.min(65535) as u16);
                o.fullsweep_after.is_some()
            }
            Some(atoms::MIN_HEAP_SIZE) => {
                o.min_heap_size = size(*value);
                o.min_heap_size.is_some()
            }
            Some(atoms::MIN_BIN_VHEAP_SIZE) => {
                o.min_bin_vheap_size = size(*value);
                o.min_bin_vheap_size.is_some()
            }
            Some(atoms::MAX_HEAP_SIZE) => {
                o.max_heap_size = max_heap_size(ctx, *value);
                o.max_heap_size.is_some()
            }
            Some(atoms::MESSAGE_QUEUE_DATA) => match value.as_atom() {
                Some(atoms::OFF_HEAP) => {
                    o.off_heap_messages = true;
                    true
                }
                Some(atoms::ON_HEAP) => {
                    o.off_heap_messages = false;
                    true
                }
                _ => false,
            },
            Some(atoms::ASYNC_DIST) => value.is_boolean(),
            Some(a) if ctx.tables().atoms.text(a) == "scheduler" => size(*value).is_some(),
            Some(atoms::REPLY) if request.is_some() => {
                let reply = reply_option(ctx, *value);
                if let (Some(r), Some(reply)) = (request.as_deref_mut(), reply) {
                    r.reply = reply;
                }
                reply.is_some()
            }
            Some(a) if request.is_some() && ctx.tables().atoms.text(a) == "reply_tag" => {
                if let Some(r) = request.as_deref_mut() {
                    r.reply_tag = Some(*value);
                }
                true
            }
            _ => false,
        };
        if !ok {
            return Err(OptionError::BadOption);
        }
    }
    if l.is_nil() {
        Ok(o)
    } else {
        Err(OptionError::NotAList)
    }
}

/// What a new process runs.
pub enum Start {
    /// `apply(Module, Function, Args)`; `args` is a list that is copied.
    Apply(Word, Word, Word),
    /// A handler written in Rust.
    Native(Box<dyn NativeProcess>),
}

/// No process can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpawnError {
    /// The process table is full.
    #[error("the process table is full ({0} processes)")]
    TableFull(usize),
    /// There is no memory for its heap.
    #[error("no memory for a heap of {0} words")]
    Memory(usize),
    /// The tenant has all the processes that it may have.
    #[error("namespace {0} has all the processes that it may have")]
    Tenant(u32),
}

fn length(mut list: Word) -> u32 {
    let mut n = 0;
    while let Some((_, t)) = list.as_cons() {
        n += 1;
        list = t;
    }
    n
}

/// Makes a process and puts it into the run queue. `prepare` sees the runner's part before the process can run, `traced` the slot.
pub(crate) fn make(
    w: &Worker,
    namespace: &Arc<Namespace>,
    start: Start,
    options: &SpawnOptions,
    group_leader: Word,
    parent: Option<ProcId>,
    watched: bool,
    prepare: impl FnOnce(ProcId, &mut Own),
    traced: impl FnOnce(&Slot),
) -> Result<ProcId, SpawnError> {
    let vm = &w.vm;
    if !namespace.process_starts() {
        return Err(SpawnError::Tenant(namespace.id));
    }
    let Ok(reservation) = vm.processes.reserve() else {
        namespace.process_ended();
        return Err(SpawnError::TableFull(vm.processes.limit()));
    };
    let id = reservation.id();
    let me = ProcId::local(id.as_u64());
    let mut o = Own {
        parent,
        priority: options.priority.unwrap_or(Priority::Normal),
        off_heap_messages: options.off_heap_messages,
        quiet: options.quiet,
        family: options.family,
        ..Own::default()
    };
    let min = options
        .min_heap_size
        .unwrap_or_else(|| vm.defaults.min_heap_size.load(Relaxed));
    let leader_words = if group_leader.is_immediate() { 0 } else { 8 };
    let copying = match &start {
        Start::Apply(_, _, args) => Copying::new(*args, CopyMode::Share),
        Start::Native(_) => Copying::new(Word::NIL, CopyMode::Share),
    };
    let need = copying.words() + leader_words + STACK_SLACK + 1;
    let (max_size, max_heap) = options.max_heap_size.unwrap_or_else(|| {
        *vm.defaults
            .max_heap_size
            .read()
            .unwrap_or_else(|e| e.into_inner())
    });
    let heap_options = HeapOptions {
        min_size: min,
        min_virtual: options
            .min_bin_vheap_size
            .unwrap_or_else(|| vm.defaults.min_bin_vheap_size.load(Relaxed)),
        fullsweep_after: options
            .fullsweep_after
            .unwrap_or_else(|| vm.defaults.fullsweep_after.load(Relaxed) as u16),
        max_size,
        max_with_binaries: max_heap.include_shared_binaries,
    };
    let words = need.max(min);
    if !namespace_has_room(namespace, words.saturating_mul(8)) {
        namespace.process_ended();
        return Err(SpawnError::Memory(words));
    }
    let mut heap = new_heap(need, &heap_options);
    // SAFETY: the block has room for the bottom word.
    unsafe {
        heap.stop = heap.stop.sub(1);
        *heap.stop = vm.engine.fixed(Fixed::NormalExit) as usize as u64;
    }
    let mut args = SavedArgs::default();
    match start {
        Start::Apply(m, f, a) => {
            let list = copying.make(&mut heap);
            args.save(&[m, f, list]);
            o.initial_call = (
                m.as_atom().unwrap_or(atoms::UNDEFINED),
                f.as_atom().unwrap_or(atoms::UNDEFINED),
                length(a),
            );
        }
        Start::Native(handler) => {
            o.native = Some(handler);
            if let Some(call) = options.shown_call {
                o.initial_call = call;
            }
        }
    }
    let group_leader = copy_term(group_leader, &mut heap);
    let mut body = Box::new(Process {
        body: Body {
            heap,
            ip: vm.engine.fixed(Fixed::Apply),
            args,
            pid: Word::pid(id.as_u64()),
            group_leader,
            catches: 0,
            reductions: 0,
            over_limit: false,
            trace: Word::NIL,
        },
        slot: std::ptr::null(),
        dictionary: Dictionary::default(),
        error_handler: atoms::ERROR_HANDLER,
        max_heap,
        sensitive: false,
        watched: None,
        async_dist: false,
        ets_super_user: false,
        charged: 0,
        charged_off_heap: 0,
        label: Word::NONE,
        native_state: Word::NONE,
        walk: None,
        mailbox_away: None,
        ended: None,
    });
    let bytes = heap_bytes(&body.body.heap) as isize;
    body.charged = bytes;
    namespace.charge_memory(bytes);
    prepare(me, &mut o);
    o.name = options
        .name
        .filter(|n| vm.registry.insert(namespace.id, *n, Word::pid(id.as_u64())));
    let body: *mut Process = Box::into_raw(body);
    // SAFETY: fresh from a box; nobody else knows it before the slot is published.
    let slot = unsafe {
        let slot = SyncArc::new(Slot::new(id, namespace.clone(), o, Box::from_raw(body)));
        (*body).slot = SyncArc::as_ptr(&slot);
        if watched {
            slot.watch
                .store(super::exit::WATCHED, std::sync::atomic::Ordering::Relaxed);
        }
        slot
    };
    traced(&slot);
    reservation.publish(slot.clone());
    w.enqueue(slot);
    Ok(me)
}

/// What a spawn gives.
#[derive(Clone, Copy, Debug)]
pub struct Spawned {
    /// The pid.
    pub pid: Word,
    /// The monitor, when one was asked for.
    pub monitor: Option<Word>,
}

/// `spawn_opt`: makes a process of the caller's namespace that runs `module:function(args...)`; link and monitor
/// stand before it runs. Errors: `badarg` unless two atoms and a proper list; `system_limit` when there is no room.
///
/// `spawn(Fun)` is `spawn(ctx, erlang, apply, [Fun, []], ...)`.
pub fn spawn(
    ctx: &mut Ctx,
    module: Word,
    function: Word,
    args: Word,
    options: &SpawnOptions,
) -> Result<Spawned, Escape> {
    let mut l = args;
    while let Some((_, t)) = l.as_cons() {
        l = t;
    }
    if !module.is_atom() || !function.is_atom() || !l.is_nil() {
        return Err(ctx.badarg());
    }
    ctx.bump(50);
    spawn_start(ctx, Start::Apply(module, function, args), options).map_err(|_| ctx.system_limit())
}

/// As [`spawn`] for any start.
pub fn spawn_start(
    ctx: &mut Ctx,
    start: Start,
    options: &SpawnOptions,
) -> Result<Spawned, SpawnError> {
    let w = worker(ctx);
    let slot = slot_of(ctx);
    let me = slot.proc_id();
    let leader = ctx.body().group_leader;
    let key: Option<RefKey> = options.monitor.map(|_| w.next_ref());
    let started = match &start {
        Start::Apply(m, f, a) => (*m, *f, *a),
        Start::Native(_) => (Word::NIL, Word::NIL, Word::NIL),
    };
    let options = &SpawnOptions {
        family: match options.family {
            0 => own(ctx).family,
            own => own,
        },
        ..*options
    };
    let id = make(
        w,
        &slot.namespace,
        start,
        options,
        leader,
        Some(me),
        options.watched,
        |_, child| {
            if options.link {
                child.links.insert(me, 0);
            }
            if let Some(key) = key {
                child.monitored_by.insert(
                    key,
                    MonitoredBy {
                        origin: me,
                        name: None,
                    },
                );
            }
        },
        |child| {
            if slot.tracing().is_observed() || w.vm.trace.traces_new() {
                if slot.tracing().has_token() {
                    crate::trace::seq::spawns(ctx, child, started);
                }
                inherit(w, Some(slot), child, options.link);
                spawned(w, Some(slot), child, started, options.link);
            }
        },
    )?;
    let o = own(ctx);
    if options.link {
        o.links.insert(id, 0);
        if options.link_priority {
            let p = o.priorities.get_or_insert_default();
            p.links.insert(id, ());
        }
    }
    let monitor = key.zip(options.monitor).map(|(key, m)| {
        let monitor = Monitor {
            target: MonitorTarget::Process(id),
            tag: m.tag.map(|t| Box::new(Carried::own(t))),
            alias: m.alias.is_some(),
        };
        let reference = monitor.reference(key, slot.pid(), ctx);
        if let Some(mode) = m.alias {
            o.aliases.insert(key, mode);
        }
        o.monitors.insert(key, monitor);
        if m.priority {
            let p = o.priorities.get_or_insert_default();
            p.monitors.insert(key, ());
        }
        reference
    });
    Ok(Spawned {
        pid: Word::pid(id.number()),
        monitor,
    })
}

/// `spawn_request/5` on this node: the request id; `{spawn_reply, ReqId, ok, Pid}` (or `error, Reason`) is in the
/// mailbox as the options say. `badarg` as for [`spawn`].
pub fn spawn_request(
    ctx: &mut Ctx,
    module: Word,
    function: Word,
    args: Word,
    options: &SpawnOptions,
    request: &RequestOptions,
) -> Result<Word, Escape> {
    let mut l = args;
    while let Some((_, t)) = l.as_cons() {
        l = t;
    }
    if !module.is_atom() || !function.is_atom() || !l.is_nil() {
        return Err(ctx.badarg());
    }
    ctx.bump(50);
    let spawned = spawn_start(ctx, Start::Apply(module, function, args), options);
    let (id, what, value) = match spawned {
        Ok(s) => {
            let id = match s.monitor {
                Some(r) => r,
                None => make_ref(ctx),
            };
            (id, atoms::OK, s.pid)
        }
        Err(_) => (make_ref(ctx), atoms::ERROR, atoms::SYSTEM_LIMIT.word()),
    };
    answer_request(ctx, id, what, value, request);
    Ok(id)
}

/// A spawn request that cannot be met: the answer is an error, and it has an id all the same.
pub fn refuse_request(ctx: &mut Ctx, request: &RequestOptions, reason: Word) -> Word {
    let id = make_ref(ctx);
    answer_request(ctx, id, atoms::ERROR, reason, request);
    id
}

fn answer_request(ctx: &mut Ctx, id: Word, what: Atom, value: Word, request: &RequestOptions) {
    let wanted = match request.reply {
        ReplyOption::Yes => true,
        ReplyOption::No => false,
        ReplyOption::ErrorOnly => what == atoms::ERROR,
        ReplyOption::SuccessOnly => what == atoms::OK,
    };
    if wanted {
        let reply = Carried::build(16, |f| {
            let tag = match request.reply_tag {
                Some(t) => copy_term(t, f),
                None => atoms::SPAWN_REPLY.word(),
            };
            let id = copy_term(id, f);
            f.tuple(&[tag, id, what.word(), value])
        });
        let w = worker(ctx);
        let me = slot_of(ctx).proc_id();
        let _ =
            crate::signal::push_proc(w, me, crate::signal::Signal::Message(reply.into_message()));
    }
}

/// `make_ref/0`.
#[inline]
pub fn make_ref(ctx: &mut Ctx) -> Word {
    let key = worker(ctx).next_ref();
    key.build(ctx)
}

/// `unique_integer/1` with its two modifiers.
pub fn unique_integer(ctx: &mut Ctx, monotonic: bool, positive: bool) -> Word {
    let w = worker(ctx);
    let n = if monotonic {
        w.vm.next_monotonic()
    } else {
        w.next_unique()
    };
    if positive {
        ctx.unsigned(n + 1)
    } else {
        ctx.integer(i64::MIN / 16 + n as i64)
    }
}

/// `processes/0`: the pids of all live processes.
pub fn processes(ctx: &mut Ctx) -> Word {
    let w = worker(ctx);
    let guard = w.participant.pin();
    let ids: Vec<u64> =
        w.vm.processes
            .iter(&guard)
            .filter(|(_, s)| !s.state.snapshot().is_exiting())
            .map(|(id, _)| id.as_u64())
            .collect();
    drop(guard);
    ctx.bump(ids.len() as i64 / 10);
    ctx.list(ids.into_iter().map(Word::pid))
}

/// The dictionary of the running process: `get/1`, `put/2`, `erase/1`; `None` is `undefined`.
pub fn dictionary_get(ctx: &Ctx, key: Word) -> Option<Word> {
    process(ctx).dictionary.get(key, ctx.tables())
}
/// `put/2`: the value before.
pub fn dictionary_put(ctx: &mut Ctx, key: Word, value: Word) -> Option<Word> {
    process(ctx).dictionary.put(key, value, ctx.tables())
}
/// `erase/1`: the value before.
pub fn dictionary_erase(ctx: &mut Ctx, key: Word) -> Option<Word> {
    process(ctx).dictionary.erase(key, ctx.tables())
}
/// `get/0`: a list of pairs.
pub fn dictionary_all(ctx: &mut Ctx) -> Word {
    let entries = process(ctx).dictionary.entries().to_vec();
    pairs(ctx, &entries)
}
/// `erase/0`: a list of the pairs that were there.
pub fn dictionary_clear(ctx: &mut Ctx) -> Word {
    let entries = process(ctx).dictionary.clear();
    pairs(ctx, &entries)
}
/// `get_keys/0`, or with a value `get_keys/1`.
pub fn dictionary_keys(ctx: &mut Ctx, value: Option<Word>) -> Word {
    let tables = ctx.tables();
    let keys: Vec<Word> = process(ctx)
        .dictionary
        .entries()
        .iter()
        .filter(|(_, v)| value.is_none_or(|x| beamr_term::order::eq_exact(*v, x, tables)))
        .map(|(k, _)| *k)
        .collect();
    ctx.list(keys)
}

/// A list of pairs.
pub(crate) fn pairs(heap: &mut impl Alloc, entries: &[(Word, Word)]) -> Word {
    let mut list = Word::NIL;
    for (k, v) in entries.iter().rev() {
        let t = heap.tuple(&[*k, *v]);
        list = heap.cons(t, list);
    }
    list
}

/// The initial call of a `{M, F, A}` start, for those who show it.
pub fn initial_call(o: &Own) -> (Atom, Atom, u32) {
    o.initial_call
}
