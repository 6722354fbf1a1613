//! What a bare system has in place of OTP's `init` process: a process written in Rust that answers the questions libraries ask it.
//!
//! It knows the arguments and ends the system. There are no boot scripts, no applications' start phases.

use std::collections::HashMap;
use std::sync::Arc;

use beamr_abi::Ctx;
use beamr_term::text;
use beamr_term::{Atom, Build, Word, atoms};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::process::RefKey;
use beamr_vm::rt;
use beamr_vm::signal::monitor::{monitor, monitored_process};
use beamr_vm::vm::{Halt, Vm};

use crate::ending::Ending;
use crate::servers::{self, Servers};

/// Answers messages one by one.
struct Server<F>(F);

impl<F: FnMut(&mut Ctx, Word) + Send> NativeProcess for Server<F> {
    fn run(&mut self, ctx: &mut Ctx) -> NativeStep {
        loop {
            match rt::next_message(ctx) {
                Err(_) => return NativeStep::Continue,
                Ok(None) => return NativeStep::Wait,
                Ok(Some(m)) => {
                    rt::remove_message(ctx);
                    (self.0)(ctx, m);
                }
            }
            if ctx.fcalls <= 0 || ctx.heap().gc_wanted {
                return NativeStep::Continue;
            }
        }
    }
}

fn name<'a>(ctx: &Ctx, w: Word) -> Option<&'a str> {
    let tables: &'a beamr_term::Tables = ctx.tables();
    w.as_atom().map(|a| tables.atoms.text(a))
}

fn atom(ctx: &Ctx, text: &str) -> Word {
    // The texts are those of this file: there is room for them.
    let a = ctx.tables().atoms.intern(text);
    a.map_or(atoms::UNDEFINED.word(), Atom::word)
}

fn strings(ctx: &mut Ctx, items: impl IntoIterator<Item = String>) -> Word {
    let all: Vec<Word> = items.into_iter().map(|s| ctx.string(&s)).collect();
    ctx.list(all)
}

fn error(ctx: &mut Ctx, reason: Word) -> Word {
    ctx.tuple(&[atoms::ERROR.word(), reason])
}

fn ok(ctx: &mut Ctx, value: Word) -> Word {
    ctx.tuple(&[atoms::OK.word(), value])
}

/// What the command line of the program would have been to an emulator.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Flags with their values.
    pub flags: Vec<(String, Vec<String>)>,
    /// Arguments that are no flags.
    pub plain: Vec<String>,
}

/// The `init` process. It takes the reports of starters.
pub(crate) fn init(
    vm: &Arc<Vm>,
    arguments: Arguments,
    servers: Arc<Servers>,
    ending: Arc<Ending>,
) -> Box<dyn NativeProcess> {
    let vm = Arc::downgrade(vm);
    let mut starters: HashMap<RefKey, (Atom, Word)> = HashMap::new();
    Box::new(Server(move |ctx: &mut Ctx, m: Word| match m.as_tuple() {
        Some([from, request]) if from.is_pid() => {
            let answer = init_answer(ctx, &arguments, *request);
            let tag = atoms::INIT.word();
            let reply = ctx.tuple(&[tag, answer]);
            let _ = rt::send(ctx, *from, reply);
        }
        Some([what, server]) if name(ctx, *what) == Some(servers::STARTED) => {
            if let (Some(server), Some(vm)) = (server.as_atom(), vm.upgrade()) {
                servers.returned(&vm, server);
            }
        }
        Some([what, server, starter]) if name(ctx, *what) == Some(servers::STARTING) => {
            if let (Some(server), Some(target)) =
                (server.as_atom(), monitored_process(ctx, *starter))
            {
                let reference = monitor(ctx, target, Default::default());
                starters.extend(RefKey::of(reference).map(|r| (r, (server, *starter))));
            }
        }
        Some([_, reference, _, _, _]) => {
            let starter = RefKey::of(*reference).and_then(|r| starters.remove(&r));
            if let (Some((server, starter)), Some(vm)) = (starter, vm.upgrade()) {
                servers.died(&vm, server, starter);
            }
        }
        Some([stop, how]) if name(ctx, *stop) == Some("stop") => ending.stop(halt(*how)),
        _ => {}
    }))
}

/// What stands for OTP's `erts_literal_area_collector`: the VM frees literal areas by itself, this process tells whether it is at it.
pub(crate) fn literal_area_collector(vm: &Arc<Vm>) -> Box<dyn NativeProcess> {
    let vm = Arc::downgrade(vm);
    Box::new(Server(move |ctx: &mut Ctx, m: Word| {
        let Some([what, reference, from]) = m.as_tuple() else {
            return;
        };
        if name(ctx, *what) == Some("get_status") && (from.is_pid() || from.is_reference()) {
            let works = vm.upgrade().is_some_and(|vm| vm.gives_up_literals());
            let status = atom(ctx, if works { "working" } else { "idle" });
            let reply = ctx.tuple(&[*reference, status]);
            let _ = rt::send(ctx, *from, reply);
        }
    }))
}

/// How `init:stop/1` ends the system; `init:restart/0` ends a bare one.
fn halt(how: Word) -> Halt {
    let Some([_, status]) = how.as_tuple() else {
        return Halt::Status(0);
    };
    match status.as_small() {
        Some(n) => Halt::Status(n as i32),
        None => match text::string_from_list(*status) {
            Some(s) => Halt::Crash(s),
            None => Halt::Status(0),
        },
    }
}

fn init_answer(ctx: &mut Ctx, a: &Arguments, request: Word) -> Word {
    if let Some([what, argument]) = request.as_tuple() {
        return match name(ctx, *what) {
            Some("get_argument") => {
                let wanted = name(ctx, *argument);
                let found: Vec<Word> = a
                    .flags
                    .iter()
                    .filter(|f| Some(f.0.as_str()) == wanted)
                    .map(|f| strings(ctx, f.1.clone()))
                    .collect();
                if found.is_empty() {
                    return atoms::ERROR.word();
                }
                let all = ctx.list(found);
                ok(ctx, all)
            }
            Some("ensure_loaded") => not_allowed(ctx),
            Some("notify_when_started") => atom(ctx, "started"),
            _ => atoms::OK.word(),
        };
    }
    match name(ctx, request) {
        Some("get_arguments") => {
            let all: Vec<Word> = a
                .flags
                .iter()
                .map(|(k, v)| {
                    let k = atom(ctx, k);
                    let v = strings(ctx, v.clone());
                    ctx.tuple(&[k, v])
                })
                .collect();
            ctx.list(all)
        }
        Some("get_plain_arguments") => {
            let all: Vec<Word> = a.plain.iter().map(|s| ctx.binary(s.as_bytes())).collect();
            ctx.list(all)
        }
        Some("get_status") => {
            let started = atom(ctx, "started");
            ctx.tuple(&[started, started])
        }
        Some("script_id") => {
            let (a, b) = (ctx.string("beamr"), ctx.string("bare"));
            ctx.tuple(&[a, b])
        }
        Some("fetch_loaded") => Word::NIL,
        _ => atoms::OK.word(),
    }
}

fn not_allowed(ctx: &mut Ctx) -> Word {
    let w = atoms::NOT_ALLOWED.word();
    error(ctx, w)
}
