//! `erlang` (and `erts_internal`): making, signalling and asking processes; names; the dictionary; aliases.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, Pending, ReleaseSpan};
use beamr_term::text::list_to_vec;
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::info::{self, InfoItem};
use beamr_vm::process::spawn::{self, OptionError, RequestOptions, SpawnOptions};
use beamr_vm::process::{AliasMode, flags};
use beamr_vm::signal::{self, monitor::Monitored};
use beamr_vm::{registry, rt};

use crate::support::{bad_option, because, list_items, name, options};

fn or_undefined(w: Option<Word>) -> Word {
    w.unwrap_or(atoms::UNDEFINED.word())
}

// ---- spawning

/// `spawn(M, F, Args)`.
fn spawn_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::spawn(ctx, args[0], args[1], args[2], &SpawnOptions::default())?.pid)
}

/// `spawn_link(M, F, Args)`.
fn spawn_link_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let options = SpawnOptions {
        link: true,
        ..SpawnOptions::default()
    };
    Ok(spawn::spawn(ctx, args[0], args[1], args[2], &options)?.pid)
}

/// `spawn_opt(M, F, Args, Options)`: the pid, or `{Pid, MonitorRef}`.
fn spawn_opt_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Ok(options) = spawn::spawn_options(ctx, args[3], None) else {
        return Err(bad_option(ctx));
    };
    let s = spawn::spawn(ctx, args[0], args[1], args[2], &options)?;
    match s.monitor {
        Some(r) => Ok(ctx.tuple(&[s.pid, r])),
        None => Ok(s.pid),
    }
}

/// `erts_internal:spawn_request(M, F, Args, Options)`: the request id, or `badopt` as a value.
fn spawn_request_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut request = RequestOptions::default();
    match spawn::spawn_options(ctx, args[3], Some(&mut request)) {
        Ok(options) => spawn::spawn_request(ctx, args[0], args[1], args[2], &options, &request),
        Err(OptionError::NotAList) => ctx.atom("badopt"),
        Err(OptionError::BadOption) => {
            let reason = ctx.atom("badopt")?;
            Ok(spawn::refuse_request(ctx, &request, reason))
        }
    }
}

/// `erts_internal:dist_spawn_request(Node, {M, F, Args}, Options, spawn_request | spawn_opt)`: a request id (for `spawn_opt`
/// `{Id, Monitored}`), or `badarg` as a value. No node is connected: the answer is an error, which comes as the options say. Options
/// that the other node would look at are not looked at here.
fn dist_spawn_request_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bad = atoms::BADARG.word();
    let other = args[0].is_atom() && args[0] != ctx.tables().local_node().0.word();
    let called = match args[1].as_tuple() {
        Some([m, f, a]) => m.is_atom() && f.is_atom() && list_to_vec(*a).is_some(),
        _ => false,
    };
    let Some(options) = list_to_vec(args[2]).filter(|_| other && called) else {
        return Ok(bad);
    };
    let asks = name(ctx, args[3]) == Some("spawn_request");
    let mut request = RequestOptions::default();
    let mut monitored = false;
    let mut reason = atoms::NOCONNECTION.word();
    for option in options {
        if option == atoms::MONITOR.word() {
            monitored = true;
        }
        let Some([key, value]) = option.as_tuple() else {
            continue;
        };
        let fits = match name(ctx, *key) {
            Some("monitor") => {
                monitored = true;
                signal::monitor::monitor_options(*value).is_some()
            }
            Some("reply" | "reply_tag") if !asks => false,
            Some("reply") => {
                let reply = spawn::reply_option(ctx, *value);
                request.reply = reply.unwrap_or_default();
                reply.is_some()
            }
            Some("reply_tag") => {
                request.reply_tag = Some(*value);
                true
            }
            _ => true,
        };
        if !fits {
            if !asks {
                return Ok(bad);
            }
            reason = ctx.atom("badopt")?;
            break;
        }
    }
    let id = spawn::refuse_request(ctx, &request, reason);
    Ok(if asks {
        id
    } else {
        ctx.tuple(&[id, Word::boolean(monitored)])
    })
}

/// `spawn_request_abandon(ReqId)`: requests on this node have been answered when they are made.
fn spawn_request_abandon_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_reference() {
        Ok(Word::FALSE)
    } else {
        Err(ctx.badarg())
    }
}

// ---- sending

/// Whether this release has messages of priority.
fn has_priorities(ctx: &Ctx) -> bool {
    ctx.tables().release.0 >= 28
}

fn do_send(ctx: &mut Ctx, to: Word, message: Word) -> Result<(), Escape> {
    rt::send(ctx, to, message).map_err(|p| ctx.escape(p))
}

/// `Dest ! Message` as a function.
fn send_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    do_send(ctx, args[0], args[1])?;
    Ok(args[1])
}

/// `send(Dest, Message, Options)`.
fn send_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut priority = false;
    for option in options(ctx, args[2])? {
        match option.as_atom() {
            Some(atoms::NOSUSPEND | atoms::NOCONNECT) => {}
            Some(atoms::PRIORITY) if has_priorities(ctx) => priority = true,
            _ => return Err(bad_option(ctx)),
        }
    }
    if priority {
        rt::send_with_priority(ctx, args[0], args[1]).map_err(|p| ctx.escape(p))?;
    } else {
        do_send(ctx, args[0], args[1])?;
    }
    Ok(atoms::OK.word())
}

// ---- links, monitors, exits

/// `link(PidOrPort)`.
fn link_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    signal::link::link(ctx, args[0])?;
    Ok(Word::TRUE)
}

/// `unlink(PidOrPort)`.
fn unlink_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    signal::link::unlink(ctx, args[0])?;
    Ok(Word::TRUE)
}

/// `exit(PidOrPort, Reason)`.
fn exit_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    send_exit(ctx, args, false)
}

fn send_exit(ctx: &mut Ctx, args: &[Word], priority: bool) -> Result<Word, Escape> {
    if args[0].is_reference() && has_priorities(ctx) {
        signal::link::exit_alias(ctx, args[0], args[1], priority)?;
    } else {
        signal::link::exit_signal(ctx, args[0], args[1])?;
    }
    Ok(Word::TRUE)
}

fn monitored(ctx: &mut Ctx, kind: Word, item: Word) -> Result<Monitored, Escape> {
    let what = match kind.as_atom() {
        Some(atoms::PROCESS) => {
            let what = signal::monitor::monitored_process(ctx, item);
            // A node without a name knows no names of others.
            let nameless = ctx.tables().local_node().0 == atoms::NONODE_NOHOST;
            what.filter(|m| !(nameless && matches!(m, Monitored::RemoteName(..))))
        }
        Some(atoms::PORT) => beamr_vm::port::monitored(item),
        Some(atoms::TIME_OFFSET)
            if item
                .as_atom()
                .is_some_and(|a| ctx.tables().atoms.text(a) == "clock_service") =>
        {
            Some(Monitored::TimeOffset)
        }
        Some(atoms::TIME_OFFSET) => None,
        _ => return Err(because(ctx, "badtype")),
    };
    if let Some(Monitored::Name(name)) = what {
        // A process that is being started is waited for.
        registry::look(ctx, name).map_err(|p| ctx.escape(p))?;
    }
    what.ok_or_else(|| ctx.badarg())
}

/// `monitor(Type, Item)`.
fn monitor_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let what = monitored(ctx, args[0], args[1])?;
    Ok(signal::monitor::monitor(ctx, what, Default::default()))
}

/// `monitor(Type, Item, Options)`.
fn monitor_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(options) = signal::monitor::monitor_options(args[2]) else {
        return Err(bad_option(ctx));
    };
    if options.priority && !has_priorities(ctx) {
        return Err(bad_option(ctx));
    }
    let what = monitored(ctx, args[0], args[1])?;
    Ok(signal::monitor::monitor(ctx, what, options))
}

/// `demonitor(Ref)`.
fn demonitor_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    signal::monitor::demonitor(ctx, args[0], false)?;
    Ok(Word::TRUE)
}

/// `demonitor(Ref, Options)`.
fn demonitor_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut flush, mut info) = (false, false);
    for option in list_items(ctx, args[1])? {
        match option.as_atom() {
            Some(atoms::FLUSH) => flush = true,
            Some(atoms::INFO) => info = true,
            _ => return Err(ctx.badarg()),
        }
    }
    let found = signal::monitor::demonitor(ctx, args[0], flush)?;
    // With both options the answer tells whether a message was flushed; else whether the monitor was there.
    Ok(Word::boolean(!info || found))
}

/// `alias(Options)`.
fn alias_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut mode = AliasMode::Explicit;
    let mut priority = false;
    for option in list_items(ctx, args[0])? {
        match option.as_atom() {
            Some(atoms::REPLY) => mode = AliasMode::Reply,
            Some(atoms::EXPLICIT_UNALIAS) => mode = AliasMode::Explicit,
            Some(atoms::PRIORITY) if has_priorities(ctx) => priority = true,
            _ => return Err(ctx.badarg()),
        }
    }
    if priority {
        return Ok(signal::alias::priority_alias(ctx, mode));
    }
    Ok(signal::alias::alias(ctx, mode))
}

/// `unalias(Alias)`.
fn unalias_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_reference() {
        return Err(ctx.badarg());
    }
    Ok(Word::boolean(signal::alias::unalias(ctx, args[0])))
}

/// The options of `exit/3`, `exit_signal/3` and `link/2` (28): whether `priority` is among them.
fn signal_options(ctx: &mut Ctx, list: Word) -> Result<bool, Escape> {
    let mut priority = false;
    for option in options(ctx, list)? {
        if option.as_atom() != Some(atoms::PRIORITY) {
            return Err(bad_option(ctx));
        }
        priority = true;
    }
    Ok(priority)
}

/// `exit(PidOrPort, Reason, Options)`, `exit_signal(PidOrPort, Reason, Options)`.
fn exit_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let priority = signal_options(ctx, args[2])?;
    send_exit(ctx, args, priority)
}

/// `link(PidOrPort, Options)`.
fn link_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let priority = signal_options(ctx, args[1])?;
    signal::link::link_with(ctx, args[0], priority)?;
    Ok(Word::TRUE)
}

// ---- names

/// `register(Name, PidOrPort)`.
fn register_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    registry::register(ctx, args[0], args[1])?;
    Ok(Word::TRUE)
}

/// `unregister(Name)`.
fn unregister_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    registry::unregister(ctx, args[0])?;
    Ok(Word::TRUE)
}

/// `whereis(Name)`.
fn whereis_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(or_undefined(registry::whereis(ctx, args[0])?))
}

/// `registered()`.
fn registered_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(registry::registered(ctx))
}

// ---- about processes

/// `self()`.
fn self_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(ctx.self_pid())
}

/// `processes()`.
fn processes_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::processes(ctx))
}

/// `erts_internal:processes_next(Position)`: all processes at once, then `none`.
fn processes_next_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_small() {
        Some(0) => {
            let all = spawn::processes(ctx);
            Ok(ctx.tuple(&[Word::fixnum(1), all]))
        }
        Some(1) => Ok(atoms::NONE.word()),
        _ => Err(ctx.badarg()),
    }
}

/// `is_process_alive(Pid)`.
fn is_process_alive_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(Word::boolean(signal::request::is_process_alive(
        ctx, args[0],
    )?))
}

/// `group_leader()`.
fn group_leader_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(ctx.body().group_leader)
}

/// `erts_internal:group_leader(Leader, Pid)`: `badarg` as a value.
fn group_leader_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match signal::request::set_group_leader(ctx, args[0], args[1]) {
        Ok(()) => Ok(Word::TRUE),
        Err(_) if matches!(ctx.pending, Pending::Raise(_)) => {
            ctx.take_pending();
            Ok(atoms::BADARG.word())
        }
        Err(e) => Err(e),
    }
}

/// `erts_internal:group_leader(Leader, Pid, Ref)`: the answer comes as `{Ref, Answer}`.
fn group_leader_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    signal::request::set_group_leader(ctx, args[0], args[1])?;
    answer(ctx, args[2], Word::TRUE)
}

/// `erts_internal:is_process_alive(Pid, Ref)`: the answer comes as `{Ref, Boolean}`.
fn is_process_alive_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let alive = signal::request::is_process_alive(ctx, args[0])?;
    answer(ctx, args[1], Word::boolean(alive))
}

fn answer(ctx: &mut Ctx, reference: Word, answer: Word) -> Result<Word, Escape> {
    let message = ctx.tuple(&[reference, answer]);
    let me = ctx.self_pid();
    do_send(ctx, me, message)?;
    Ok(atoms::OK.word())
}

/// `erts_internal:process_display(Pid, backtrace)`: the stack of the process on standard error.
fn process_display_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[1].as_atom() != Some(atoms::BACKTRACE) {
        return ctx.atom("badopt");
    }
    if !args[0].is_local_pid() {
        return Ok(atoms::BADARG.word());
    }
    let items = [InfoItem::CurrentStacktrace];
    let Some(info) = info::process_info(ctx, args[0], &items)? else {
        return Ok(atoms::BADARG.word());
    };
    let limit = beamr_term::format::FormatLimit::items(10_000);
    let mut text = beamr_term::format::format_term(ctx.tables(), info, limit);
    text.push(b'\n');
    let door = &beamr_vm::process::vm_of(ctx).door;
    // A stream that is closed loses the text.
    let _ = door.write(beamr_vm::door::Stream::Err, &text);
    Ok(Word::TRUE)
}

/// `erts_internal:is_process_executing_dirty(Pid)`, of processes that others look at.
fn is_process_executing_dirty_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_pid() {
        Ok(Word::FALSE)
    } else {
        Err(ctx.badarg())
    }
}

/// `erts_internal:dirty_process_handle_signals(Pid)`: who runs dirty natives handles signals all the same.
fn dirty_process_handle_signals_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_local_pid() {
        ctx.atom("normal")
    } else {
        Ok(Word::FALSE)
    }
}

/// `erts_internal:spawn_system_process(M, F, Args)`.
fn spawn_system_process_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let options = SpawnOptions {
        off_heap_messages: true,
        ..SpawnOptions::default()
    };
    Ok(spawn::spawn(ctx, args[0], args[1], args[2], &options)?.pid)
}

/// `process_flag(Flag, Value)`.
fn process_flag_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    flags::process_flag(ctx, args[0], args[1])
}

/// `erts_internal:process_flag(Pid, Flag, Value)`: `badtype` as a value for a pid of another kind.
fn process_flag_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_pid() {
        return ctx.atom("badtype");
    }
    match flags::process_flag_of(ctx, args[0], args[1], args[2]) {
        Err(e) => reason_as_value(ctx, e),
        ok => ok,
    }
}

/// The reason of an exception as a value, for Erlang code that raises it with its own arguments.
fn reason_as_value(ctx: &mut Ctx, escape: Escape) -> Result<Word, Escape> {
    match ctx.pending {
        Pending::Raise(r) => {
            ctx.take_pending();
            Ok(r.reason)
        }
        _ => Err(escape),
    }
}

/// `process_info(Pid)`: a list of pairs without what is empty, or `undefined`.
fn process_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut items = vec![InfoItem::RegisteredName];
    items.extend_from_slice(info::DEFAULT_ITEMS);
    let Some(list) = info::process_info(ctx, args[0], &items)? else {
        return Ok(atoms::UNDEFINED.word());
    };
    // Without a name there is no `registered_name` pair.
    match list.as_cons() {
        Some((first, rest))
            if first
                .as_tuple()
                .is_some_and(|t| t.get(1) == Some(&Word::NIL)) =>
        {
            Ok(rest)
        }
        _ => Ok(list),
    }
}

/// `process_info(Pid, Item | Items)`.
fn process_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let tables = ctx.tables();
    if args[1].is_list() {
        let mut items = Vec::new();
        for w in list_items(ctx, args[1])? {
            match InfoItem::parse(tables, w) {
                Some(i) => items.push(i),
                None => return Err(ctx.badarg()),
            }
        }
        return Ok(or_undefined(info::process_info(ctx, args[0], &items)?));
    }
    let Some(item) = InfoItem::parse(tables, args[1]) else {
        return Err(ctx.badarg());
    };
    let Some(list) = info::process_info(ctx, args[0], &[item])? else {
        return Ok(atoms::UNDEFINED.word());
    };
    let Some((pair, _)) = list.as_cons() else {
        return Err(ctx.badarg());
    };
    // Alone, the missing name is `[]`.
    if matches!(item, InfoItem::RegisteredName)
        && pair
            .as_tuple()
            .is_some_and(|t| t.get(1) == Some(&Word::NIL))
    {
        return Ok(Word::NIL);
    }
    Ok(pair)
}

/// `erts_internal:garbage_collect(major | minor)`.
fn garbage_collect_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let major = match args[0].as_atom().map(|a| ctx.tables().atoms.text(a)) {
        Some("major") => true,
        Some("minor") => false,
        _ => return Err(ctx.badarg()),
    };
    let me = ctx.self_pid();
    signal::request::garbage_collect(ctx, me, major)?;
    Ok(Word::TRUE)
}

/// `erts_internal:suspend_process(Pid, Options)`.
fn suspend_process_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut how = signal::suspend::SuspendOptions::default();
    let mut list = args[1];
    while let Some((option, rest)) = list.as_cons() {
        match option.as_atom().map(|a| ctx.tables().atoms.text(a)) {
            Some("asynchronous") => how.asynchronous = true,
            Some("unless_suspending") => how.unless_suspending = true,
            _ => return ctx.atom("badopt"),
        }
        list = rest;
    }
    if !list.is_nil() {
        return ctx.atom("badopt");
    }
    match signal::suspend::suspend_process(ctx, args[0], how) {
        Ok(b) => Ok(Word::boolean(b)),
        Err(e) => reason_as_value(ctx, e),
    }
}

/// `resume_process(Pid)`.
fn resume_process_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    signal::suspend::resume_process(ctx, args[0])?;
    Ok(Word::TRUE)
}

/// `hibernate(M, F, Args)`.
fn hibernate_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let items = list_items(ctx, args[2])?;
    let (Some(m), Some(f)) = (args[0].as_atom(), args[1].as_atom()) else {
        return Err(ctx.badarg());
    };
    if items.len() > 255 {
        return Err(ctx.system_limit());
    }
    match ctx.tables().exports.id(m, f, items.len() as u32) {
        Ok(target) => Err(ctx.escape(Pending::Hibernate {
            target,
            args: items,
        })),
        Err(_) => Err(ctx.system_limit()),
    }
}

/// `bump_reductions(N)`.
fn bump_reductions_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_small() {
        Some(n) if n >= 0 => {
            ctx.bump(n.min(1 << 20));
            Ok(Word::TRUE)
        }
        _ => Err(ctx.badarg()),
    }
}

/// `yield()`.
fn yield_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.escape(Pending::YieldTo {
        target: beamr_abi::TrapTarget::Native(&YIELDED),
        args: Vec::new(),
    }))
}
/// What `yield()` gives when the process has its turn again.
static YIELDED: NativeEntry = row("yield", 0, yielded_0);
fn yielded_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::TRUE)
}

// ---- the dictionary

/// `get()`.
fn get_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::dictionary_all(ctx))
}
/// `get(Key)`.
fn get_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(or_undefined(spawn::dictionary_get(ctx, args[0])))
}
/// `put(Key, Value)`.
fn put_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(or_undefined(spawn::dictionary_put(ctx, args[0], args[1])))
}
/// `erase()`.
fn erase_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::dictionary_clear(ctx))
}
/// `erase(Key)`.
fn erase_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(or_undefined(spawn::dictionary_erase(ctx, args[0])))
}
/// `get_keys()`.
fn get_keys_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::dictionary_keys(ctx, None))
}
/// `get_keys(Value)`.
fn get_keys_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::dictionary_keys(ctx, Some(args[0])))
}

// ---- references, unique integers, nodes

/// `make_ref()`.
fn make_ref_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::make_ref(ctx))
}

/// `unique_integer()`.
fn unique_integer_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(spawn::unique_integer(ctx, false, false))
}

/// `unique_integer(Modifiers)`.
fn unique_integer_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut monotonic, mut positive) = (false, false);
    for m in list_items(ctx, args[0])? {
        match m.as_atom() {
            Some(atoms::MONOTONIC) => monotonic = true,
            Some(atoms::POSITIVE) => positive = true,
            _ => return Err(ctx.badarg()),
        }
    }
    Ok(spawn::unique_integer(ctx, monotonic, positive))
}

/// `node()`.
fn node_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(ctx.tables().local_node().0.word())
}

/// `node(PidPortOrRef)`.
fn node_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let w = args[0];
    if w.is_local_pid() || w.is_local_port() || w.subtag() == Some(beamr_term::Subtag::Ref) {
        return node_0(ctx, args);
    }
    if w.subtag() == Some(beamr_term::Subtag::External) {
        // SAFETY: word 2 of an external identifier points to its node, of which the term holds a count.
        return Ok(unsafe {
            (*(w.field(2) as usize as *const beamr_term::NodeEntry))
                .name
                .word()
        });
    }
    Err(ctx.badarg())
}

/// `erts_internal:is_system_process(Pid)`.
fn is_system_process_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if args[0].is_pid() {
        Ok(Word::FALSE)
    } else {
        Err(ctx.badarg())
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}

const fn signals(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::Spawn)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::Spawn)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    signals("spawn", 3, spawn_3),
    signals("spawn_link", 3, spawn_link_3),
    signals("spawn_opt", 4, spawn_opt_4),
    internal("spawn_request", 4, spawn_request_4),
    internal("dist_spawn_request", 4, dist_spawn_request_4),
    signals("spawn_request_abandon", 1, spawn_request_abandon_1),
    signals("!", 2, send_2),
    signals("send", 2, send_2),
    signals("send", 3, send_3),
    signals("link", 1, link_1),
    signals("unlink", 1, unlink_1),
    signals("exit", 2, exit_2),
    signals("exit_signal", 2, exit_2),
    signals("exit", 3, exit_3).releases(ReleaseSpan::since(29)),
    signals("exit_signal", 3, exit_3).releases(ReleaseSpan::since(29)),
    signals("link", 2, link_2).releases(ReleaseSpan::since(29)),
    internal("processes_next", 1, processes_next_1).releases(ReleaseSpan::since(28)),
    signals("monitor", 2, monitor_2),
    signals("monitor", 3, monitor_3),
    signals("demonitor", 1, demonitor_1),
    signals("demonitor", 2, demonitor_2),
    row("alias", 1, alias_1),
    row("unalias", 1, unalias_1),
    signals("register", 2, register_2),
    signals("unregister", 1, unregister_1),
    row("whereis", 1, whereis_1),
    row("registered", 0, registered_0),
    row("self", 0, self_0),
    row("processes", 0, processes_0),
    row("is_process_alive", 1, is_process_alive_1),
    row("group_leader", 0, group_leader_0),
    internal("group_leader", 2, group_leader_2),
    internal("group_leader", 3, group_leader_3),
    internal("is_process_alive", 2, is_process_alive_2),
    internal("process_display", 2, process_display_2),
    internal(
        "is_process_executing_dirty",
        1,
        is_process_executing_dirty_1,
    ),
    internal(
        "dirty_process_handle_signals",
        1,
        dirty_process_handle_signals_1,
    ),
    internal("spawn_system_process", 3, spawn_system_process_3),
    row("process_flag", 2, process_flag_2),
    internal("process_flag", 3, process_flag_3),
    row("process_info", 1, process_info_1),
    row("process_info", 2, process_info_2),
    internal("garbage_collect", 1, garbage_collect_1),
    internal("suspend_process", 2, suspend_process_2),
    signals("resume_process", 1, resume_process_1),
    row("hibernate", 3, hibernate_3),
    row("bump_reductions", 1, bump_reductions_1),
    row("yield", 0, yield_0),
    row("get", 0, get_0),
    row("get", 1, get_1),
    row("put", 2, put_2),
    row("erase", 0, erase_0),
    row("erase", 1, erase_1),
    row("get_keys", 0, get_keys_0),
    row("get_keys", 1, get_keys_1),
    row("make_ref", 0, make_ref_0),
    row("unique_integer", 0, unique_integer_0),
    row("unique_integer", 1, unique_integer_1),
    row("node", 0, node_0),
    row("node", 1, node_1),
    internal("is_system_process", 1, is_system_process_1),
];
