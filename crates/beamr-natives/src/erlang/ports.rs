//! `erlang`, `erts_internal`: ports. OTP's `erlang` wraps the functions of `erts_internal` and turns the atoms they give into errors.

use std::collections::BTreeMap;

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::bits::BitsView;
use beamr_term::{Atom, Build, Word, atoms, text};
use beamr_vm::door::{PortOptions, PortRequest, ServiceError};
use beamr_vm::port::{self, Framing, OpenError, Port, Sent, Settings};
use beamr_vm::process::{Carried, ProcId, slot_of, vm_of, worker};
use beamr_vm::signal::link::handle_now;

use crate::support::name;

/// What fits one write.
const MOST: text::WalkLimit = text::WalkLimit {
    bytes: 1 << 31,
    cells: 1 << 31,
};

/// A name, command or value as its bytes: characters, a binary or an atom, without NUL.
fn bytes_of(ctx: &Ctx, w: Word) -> Option<Vec<u8>> {
    let bytes = if let Some(s) = text::string_from_list(w) {
        s.into_bytes()
    } else if let Some(a) = name(ctx, w) {
        a.as_bytes().to_vec()
    } else {
        let v = BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary())?;
        v.to_bytes().into_owned()
    };
    (!bytes.contains(&0)).then_some(bytes)
}

fn items(mut list: Word) -> Option<Vec<Word>> {
    let mut all = Vec::new();
    while let Some((head, tail)) = list.as_cons() {
        all.push(head);
        list = tail;
    }
    list.is_nil().then_some(all)
}

/// Options of `open_port/2` as they are read.
struct Wanted {
    settings: Settings,
    options: PortOptions,
    environment: BTreeMap<Vec<u8>, Vec<u8>>,
    args: Option<Vec<Vec<u8>>>,
    arg0: Option<Vec<u8>>,
}

fn environment(ctx: &Ctx, wanted: &mut Wanted, list: Word) -> Option<()> {
    for pair in items(list)? {
        let [key, value] = pair.as_tuple()? else {
            return None;
        };
        let key = bytes_of(ctx, *key).filter(|_| !key.is_atom())?;
        if key.contains(&b'=') {
            return None;
        }
        if *value == Word::FALSE {
            wanted.environment.remove(&key);
        } else {
            let value = bytes_of(ctx, *value).filter(|_| !value.is_atom())?;
            wanted.environment.insert(key, value);
        }
    }
    Some(())
}

fn limits_of_business(ctx: &Ctx, w: Word) -> Option<()> {
    match w.as_tuple() {
        Some([low, high]) if low.as_small()? >= 0 && high.as_small()? >= 0 => Some(()),
        None if name(ctx, w) == Some("disabled") => Some(()),
        _ => None,
    }
}

fn option(ctx: &Ctx, wanted: &mut Wanted, o: Word) -> Option<()> {
    let (settings, options) = (&mut wanted.settings, &mut wanted.options);
    if let Some([key, value]) = o.as_tuple() {
        match name(ctx, *key)? {
            "packet" => match value.as_small()? {
                n @ (1 | 2 | 4) => settings.framing = Framing::Packet(n as u8),
                _ => return None,
            },
            "line" => {
                let n = usize::try_from(value.as_small()?).ok().filter(|n| *n > 0)?;
                settings.framing = Framing::Line(n);
            }
            "env" => environment(ctx, wanted, *value)?,
            "cd" => options.cd = Some(bytes_of(ctx, *value).filter(|_| !value.is_atom())?),
            "args" => {
                let args = items(*value)?.into_iter().map(|a| bytes_of(ctx, a));
                wanted.args = Some(args.collect::<Option<_>>()?);
            }
            "arg0" => wanted.arg0 = Some(bytes_of(ctx, *value)?),
            "parallelism" => settings.parallelism = value.as_boolean()?,
            "busy_limits_port" | "busy_limits_msgq" => limits_of_business(ctx, *value)?,
            _ => return None,
        }
        return Some(());
    }
    match name(ctx, o)? {
        "stream" => settings.framing = Framing::Stream,
        "use_stdio" => options.other_descriptors = false,
        "nouse_stdio" => options.other_descriptors = true,
        "in" => options.input_only = true,
        "out" => options.output_only = true,
        "binary" => settings.binary = true,
        "eof" => settings.eof = true,
        "exit_status" => settings.exit_status = true,
        "stderr_to_stdout" => options.stderr_to_stdout = true,
        "hide" => options.hide = true,
        "overlapped_io" => {}
        _ => return None,
    }
    Some(())
}

/// The settings, or `None` for options that make no sense.
fn settings(ctx: &Ctx, list: Word) -> Option<Wanted> {
    let mut wanted = Wanted {
        settings: Settings::default(),
        options: PortOptions::default(),
        environment: vm_of(ctx).door.env_list().into_iter().collect(),
        args: None,
        arg0: None,
    };
    for o in items(list)? {
        option(ctx, &mut wanted, o)?;
    }
    let o = &mut wanted.options;
    if o.input_only && o.output_only {
        (o.input_only, o.output_only) = (false, false);
    }
    (wanted.settings.input, wanted.settings.output) = (!o.output_only, !o.input_only);
    o.exit_status = wanted.settings.exit_status;
    o.eof = wanted.settings.eof;
    o.env = std::mem::take(&mut wanted.environment)
        .into_iter()
        .collect();
    if o.cd.is_none() {
        o.cd = Some(vm_of(ctx).door.current_dir());
    }
    Some(wanted)
}

fn descriptor(w: Word) -> Option<i32> {
    i32::try_from(w.as_small()?).ok()
}

/// What is to be opened, and the port's name.
fn request(ctx: &Ctx, what: Word, wanted: Wanted) -> Option<(PortRequest, Settings, Vec<u8>)> {
    let Wanted {
        settings,
        options,
        args,
        arg0,
        ..
    } = wanted;
    let only_executables = args.is_some() || arg0.is_some();
    let (request, title) = match what.as_tuple() {
        Some([kind, text]) if name(ctx, *kind) == Some("spawn_executable") => {
            let file = bytes_of(ctx, *text)?;
            let request = PortRequest::SpawnExecutable {
                file: file.clone(),
                arg0,
                args: args.unwrap_or_default(),
                options,
            };
            return Some((request, settings, file));
        }
        Some([kind, text]) => {
            let command = bytes_of(ctx, *text)?;
            let title = command.clone();
            match name(ctx, *kind)? {
                "spawn" => (PortRequest::Spawn { command, options }, title),
                "spawn_driver" => (PortRequest::Driver { command, options }, title),
                _ => return None,
            }
        }
        Some([kind, input, output]) if name(ctx, *kind) == Some("fd") => {
            let (input, output) = (descriptor(*input)?, descriptor(*output)?);
            let title = format!("{input}/{output}").into_bytes();
            let request = PortRequest::Fd {
                input,
                output,
                options,
            };
            (request, title)
        }
        Some(_) => return None,
        None => {
            let path = bytes_of(ctx, what)?;
            let title = path.clone();
            (PortRequest::File { path, options }, title)
        }
    };
    (!only_executables).then_some((request, settings, title))
}

fn code(ctx: &mut Ctx, text: &str) -> Result<Word, Escape> {
    ctx.atom(text)
}

/// `erts_internal:open_port(Name, Settings)`: the port, or the reason why not.
fn open_port_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(wanted) = settings(ctx, args[1]) else {
        return code(ctx, "badopt");
    };
    let Some((request, settings, title)) = request(ctx, args[0], wanted) else {
        return code(ctx, "badarg");
    };
    ctx.bump(500);
    match port::open(ctx, &request, settings, title) {
        Ok(port) => Ok(port),
        Err(OpenError::Limit) => Err(ctx.system_limit()),
        Err(OpenError::Service(ServiceError::Os { code: text, .. })) => code(ctx, &text),
        Err(OpenError::Service(ServiceError::Invalid { .. })) => code(ctx, "badarg"),
        // No ports in this VM.
        Err(OpenError::Service(_)) => code(ctx, "notsup"),
    }
}

/// The open port that a term or a registered name stands for.
fn port_of(ctx: &Ctx, w: Word) -> Option<std::sync::Arc<Port>> {
    let named = w
        .as_atom()
        .and_then(|a| vm_of(ctx).registry.whereis(slot_of(ctx).namespace.id, a));
    port::find(ctx, named.unwrap_or(w))
}

/// `port_command(Port, Data, Flags)`.
fn port_command_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut force, mut nosuspend) = (false, false);
    let Some(flags) = items(args[2]) else {
        return code(ctx, "badopt");
    };
    for flag in flags {
        match name(ctx, flag) {
            Some("force") => force = true,
            Some("nosuspend") => nosuspend = true,
            _ => return code(ctx, "badopt"),
        }
    }
    let Some(port) = port_of(ctx, args[0]).filter(|p| p.settings().output) else {
        return code(ctx, "badarg");
    };
    let Ok(bytes) = text::iolist_to_bytes(args[1], MOST) else {
        port.report_bad_output(ctx);
        return code(ctx, "badarg");
    };
    ctx.bump(bytes.len() as i64 / 100 + 5);
    match port.command(worker(ctx), bytes, force) {
        Sent::Taken => {
            // It may have ended the port, and with it this process.
            handle_now(ctx)?;
            Ok(Word::TRUE)
        }
        Sent::Closed => code(ctx, "badarg"),
        Sent::Busy if nosuspend => Ok(Word::FALSE),
        Sent::Busy => {
            let me = slot_of(ctx).proc_id();
            Err(ctx.escape(port.wait(me)))
        }
    }
}

/// `port_connect(Port, Pid)`.
fn port_connect_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let to = ProcId::of(args[1]).filter(|p| p.is_local_pid());
    match (port_of(ctx, args[0]), to) {
        (Some(port), Some(to)) if port.connect(worker(ctx), to) => {
            handle_now(ctx)?;
            Ok(Word::TRUE)
        }
        _ => code(ctx, "badarg"),
    }
}

/// `port_close(Port)`.
fn port_close_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let normal = Carried::immediate(atoms::NORMAL);
    match port_of(ctx, args[0]) {
        Some(port) if port.close(worker(ctx), normal, false) => {
            handle_now(ctx)?;
            Ok(Word::TRUE)
        }
        _ => code(ctx, "badarg"),
    }
}

/// `port_control(Port, Operation, Data)`: what the driver says, as a list.
fn port_control_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let operation = args[1].as_small().and_then(|n| u32::try_from(n).ok());
    let data = text::iolist_to_bytes(args[2], MOST);
    if let (Some(port), Some(operation), Ok(data)) = (port_of(ctx, args[0]), operation, data)
        && let Some(Ok(answer)) = port.control(operation, &data)
    {
        return Ok(text::list_of_bytes(ctx, &answer, Word::NIL));
    }
    code(ctx, "badarg")
}

/// `port_call(Port, Operation, Data)`: no driver here can be called.
fn port_call_3(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    code(ctx, "badarg")
}

fn pids(ctx: &mut Ctx, ids: &[ProcId]) -> Word {
    beamr_vm::signal::request::pid_list(ctx, ids)
}

/// The value of an item; `None` for what is no item.
fn info(ctx: &mut Ctx, port: &Port, item: &str) -> Option<Word> {
    let number = |ctx: &mut Ctx, n: u64| ctx.unsigned(n);
    Some(match item {
        "registered_name" => port.registered().map_or(Word::NIL, Atom::word),
        "name" => match std::str::from_utf8(port.name()) {
            Ok(s) => ctx.string(s),
            Err(_) => text::list_of_bytes(ctx, port.name(), Word::NIL),
        },
        "links" => {
            let links = port.links();
            pids(ctx, &links)
        }
        "id" => number(ctx, port.id().number()),
        "connected" => {
            let owner = port.connected()?;
            pids(ctx, &[owner]).head()
        }
        "input" => number(ctx, port.traffic().0),
        "output" => number(ctx, port.traffic().1),
        "os_pid" => match port.os_pid() {
            Some(n) => number(ctx, u64::from(n)),
            None => atoms::UNDEFINED.word(),
        },
        "queue_size" => number(ctx, port.queued() as u64),
        "memory" => number(ctx, (size_of::<Port>() + port.queued()) as u64),
        "parallelism" => Word::boolean(port.settings().parallelism),
        "locking" => ctx.atom("port_level").ok()?,
        "monitors" => Word::NIL,
        "monitored_by" => {
            let by = port.monitored_by();
            pids(ctx, &by)
        }
        _ => return None,
    })
}

/// Who is asked: an open port, or `Err` with the answer for what is none.
fn asked(ctx: &mut Ctx, w: Word) -> Result<Result<std::sync::Arc<Port>, Word>, Escape> {
    Ok(match port_of(ctx, w) {
        Some(port) => Ok(port),
        None if w.is_port() || w.is_atom() => Err(atoms::UNDEFINED.word()),
        None => Err(code(ctx, "badarg")?),
    })
}

fn pair(ctx: &mut Ctx, item: &str, value: Word) -> Result<Word, Escape> {
    let item = ctx.atom(item)?;
    Ok(ctx.tuple(&[item, value]))
}

/// `port_info(Port)`.
fn port_info_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let port = match asked(ctx, args[0])? {
        Ok(port) => port,
        Err(answer) => return Ok(answer),
    };
    let mut all = Vec::new();
    for item in [
        "registered_name",
        "name",
        "links",
        "id",
        "connected",
        "input",
        "output",
        "os_pid",
    ] {
        match info(ctx, &port, item) {
            Some(v) if item != "registered_name" || !v.is_nil() => all.push(pair(ctx, item, v)?),
            Some(_) => {}
            // It closed meanwhile.
            None => return Ok(atoms::UNDEFINED.word()),
        }
    }
    Ok(ctx.list(all))
}

/// `port_info(Port, Item)`.
fn port_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let port = match asked(ctx, args[0])? {
        Ok(port) => port,
        Err(answer) => return Ok(answer),
    };
    let Some(item) = name(ctx, args[1]) else {
        return code(ctx, "badtype");
    };
    match info(ctx, &port, item) {
        Some(v) if item == "registered_name" && v.is_nil() => Ok(v),
        Some(v) => pair(ctx, item, v),
        None if port.connected().is_none() => Ok(atoms::UNDEFINED.word()),
        None => code(ctx, "badtype"),
    }
}

/// `erlang:port_set_data(Port, Term)`.
fn port_set_data_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match port_of(ctx, args[0]) {
        Some(port) => {
            port.set_data(args[1]);
            Ok(Word::TRUE)
        }
        None => Err(ctx.badarg()),
    }
}

/// `erlang:port_get_data(Port)`.
fn port_get_data_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match port_of(ctx, args[0]) {
        Some(port) => Ok(port.data(ctx)),
        None => Err(ctx.badarg()),
    }
}

/// `ports()`.
fn ports_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let namespace = slot_of(ctx).namespace.id;
    let all = vm_of(ctx)
        .extensions
        .get::<port::Ports>()
        .map_or(Vec::new(), |p| p.all(namespace));
    Ok(ctx.list(all))
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::ExternalIo)
}
const fn erlang(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    internal("open_port", 2, open_port_2),
    internal("port_command", 3, port_command_3),
    internal("port_connect", 2, port_connect_2),
    internal("port_close", 1, port_close_1),
    internal("port_control", 3, port_control_3),
    internal("port_call", 3, port_call_3),
    internal("port_info", 1, port_info_1),
    internal("port_info", 2, port_info_2),
    erlang("port_set_data", 2, port_set_data_2),
    erlang("port_get_data", 1, port_get_data_1),
    erlang("ports", 0, ports_0),
];
