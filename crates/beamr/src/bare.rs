//! What a bare system has in place of OTP's `init` and `code_server` processes: two processes written in Rust that
//! answer the questions libraries ask them.
//!
//! `init` knows the arguments and ends the system; `code_server` loads through the system's [`FolderLoader`]. There are no
//! boot scripts, no applications' start phases, no sticky directories.

use std::path::Path;
use std::sync::{Arc, Weak};

use beamr_abi::Ctx;
use beamr_term::bits::BitsView;
use beamr_term::text;
use beamr_term::{Atom, Build, Word, atoms};
use beamr_vm::code::table::Ensured;
use beamr_vm::code::{ModuleLoader, ModuleTable, Trust};
use beamr_vm::native_process::{NativeProcess, NativeStep};
use beamr_vm::process::slot_of;
use beamr_vm::rt;
use beamr_vm::vm::{Halt, Vm};

use crate::loader::FolderLoader;
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
pub fn init(vm: &Arc<Vm>, arguments: Arguments, servers: Arc<Servers>) -> Box<dyn NativeProcess> {
    let vm = Arc::downgrade(vm);
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
        Some([stop, how]) if name(ctx, *stop) == Some("stop") => stop_system(ctx, &vm, *how),
        _ => {}
    }))
}

fn stop_system(ctx: &Ctx, vm: &Weak<Vm>, how: Word) {
    let Some(vm) = vm.upgrade() else { return };
    let halt = match how.as_tuple() {
        Some([_, status]) => match status.as_small() {
            Some(n) => Halt::Status(n as i32),
            None => match text::string_from_list(*status) {
                Some(s) => Halt::Crash(s),
                None => Halt::Status(0),
            },
        },
        _ if name(ctx, how) == Some("stop") => Halt::Status(0),
        // A bare system is not started anew.
        _ => Halt::Status(0),
    };
    vm.halt(halt, true);
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

/// The `code_server` process.
pub fn code_server(loader: Arc<FolderLoader>) -> Box<dyn NativeProcess> {
    Box::new(Server(move |ctx: &mut Ctx, m: Word| {
        if let Some([call, from, request]) = m.as_tuple()
            && name(ctx, *call) == Some("code_call")
            && from.is_pid()
        {
            let answer = code_answer(ctx, &loader, *request);
            let tag = atom(ctx, "code_server");
            let reply = ctx.tuple(&[tag, answer]);
            let _ = rt::send(ctx, *from, reply);
        }
    }))
}

fn modules<'a>(ctx: &Ctx) -> &'a ModuleTable {
    &slot_of(ctx).namespace.modules
}

fn module_loaded(ctx: &mut Ctx, m: Word) -> Word {
    let tag = atoms::MODULE.word();
    ctx.tuple(&[tag, m])
}

fn path_string(p: &Path) -> String {
    p.to_string_lossy().into_owned()
}

/// The folder of an application (`kernel` or `kernel-8.5`).
fn application(loader: &FolderLoader, wanted: &str) -> Option<String> {
    let named = |p: &&Path| {
        let dir = p.parent().unwrap_or(p);
        let n = dir.file_name().unwrap_or_default().to_string_lossy();
        n == wanted || n.split('-').next() == Some(wanted)
    };
    let all = loader.search_path();
    let found = all
        .iter()
        .map(|p| p.as_path())
        .filter(|p| p.ends_with("ebin"))
        .find(named)?;
    found.parent().map(path_string)
}

fn text_or_atom(ctx: &Ctx, w: Word) -> Option<String> {
    name(ctx, w)
        .map(str::to_owned)
        .or_else(|| text::string_from_list(w))
}

fn directory(ctx: &mut Ctx, loader: &FolderLoader, what: Word) -> Word {
    let bad_name = |ctx: &mut Ctx| {
        let w = atom(ctx, "bad_name");
        error(ctx, w)
    };
    match (name(ctx, what), what.as_tuple()) {
        (Some("root_dir"), _) => {
            let root = loader.root().map(path_string).unwrap_or_default();
            ctx.string(&root)
        }
        (Some("lib_dir"), _) => {
            let lib = loader.root().map(|r| path_string(&r.join("lib")));
            ctx.string(&lib.unwrap_or_default())
        }
        (Some("compiler_dir"), _) => match application(loader, "compiler") {
            Some(d) => ctx.string(&d),
            None => bad_name(ctx),
        },
        (_, Some([kind, app, rest @ ..])) => {
            let Some(dir) = text_or_atom(ctx, *app).and_then(|a| application(loader, &a)) else {
                return bad_name(ctx);
            };
            let dir = match (name(ctx, *kind), rest) {
                (Some("priv_dir"), _) => format!("{dir}/priv"),
                (_, [sub]) => format!("{dir}/{}", text_or_atom(ctx, *sub).unwrap_or_default()),
                _ => dir,
            };
            ctx.string(&dir)
        }
        _ => bad_name(ctx),
    }
}

fn ensure(ctx: &mut Ctx, m: Word) -> Word {
    let Some(module) = m.as_atom() else {
        return not_allowed(ctx);
    };
    let reason = match modules(ctx).ensure_loaded(module) {
        Ok(Ensured::Loaded | Ensured::OnLoad) => return module_loaded(ctx, m),
        Ok(Ensured::Missing) => atoms::NOFILE.word(),
        Err(_) => atoms::BADFILE.word(),
    };
    error(ctx, reason)
}

/// Makes a file the current code of its module.
fn load(ctx: &mut Ctx, m: Word, bytes: &[u8], trust: Trust) -> Word {
    let Some(module) = m.as_atom() else {
        return not_allowed(ctx);
    };
    let table = modules(ctx);
    let expect = ctx.tables().atoms.text(module);
    let Ok(image) = table.prepare(bytes, trust, Some(expect)) else {
        let w = atoms::BADFILE.word();
        return error(ctx, w);
    };
    table.purge(module);
    match table.finish(&[image]) {
        Ok(_) => module_loaded(ctx, m),
        Err(_) => {
            let w = atoms::NOT_PURGED.word();
            error(ctx, w)
        }
    }
}

fn load_file(ctx: &mut Ctx, loader: &FolderLoader, m: Word) -> Word {
    let Some(n) = name(ctx, m) else {
        return not_allowed(ctx);
    };
    match loader.find(n) {
        Ok(Some(f)) => {
            let answer = load(ctx, m, &f.bytes, f.trust);
            if let Some(module) = m.as_atom() {
                loader.loaded(module, &f.path);
            }
            answer
        }
        Ok(None) => {
            let w = atoms::NOFILE.word();
            error(ctx, w)
        }
        Err(_) => {
            let w = atoms::BADFILE.word();
            error(ctx, w)
        }
    }
}

/// What is known of where a module came from.
fn file_of(ctx: &mut Ctx, loader: &FolderLoader, module: Atom) -> Word {
    match loader.path_of(module) {
        Some(p) => ctx.string(&p),
        None => Word::NIL,
    }
}

fn add_paths(ctx: &mut Ctx, loader: &FolderLoader, first: bool, dirs: &[Word]) -> Word {
    for d in dirs {
        let Some(d) = text::string_from_list(*d).filter(|d| Path::new(d).is_dir()) else {
            continue;
        };
        loader.add_path(d, first);
    }
    let _ = ctx;
    atoms::OK.word()
}

fn code_answer(ctx: &mut Ctx, loader: &FolderLoader, request: Word) -> Word {
    let yes = Word::TRUE;
    let Some(t) = request.as_tuple() else {
        return match name(ctx, request) {
            Some("get_path") => {
                let all: Vec<String> = loader
                    .search_path()
                    .iter()
                    .map(|p| path_string(p))
                    .collect();
                strings(ctx, all)
            }
            Some("all_loaded") => {
                let mut all = Vec::new();
                for m in modules(ctx).loaded() {
                    let file = file_of(ctx, loader, m);
                    let row = ctx.tuple(&[m.word(), file]);
                    all.push(row);
                }
                ctx.list(all)
            }
            Some("get_mode") => atom(ctx, "interactive"),
            _ => atoms::OK.word(),
        };
    };
    let Some(what) = t.first().and_then(|w| name(ctx, *w)) else {
        return not_allowed(ctx);
    };
    match (what, &t[1..]) {
        ("ensure_loaded", [m]) => ensure(ctx, *m),
        ("load_file", [m]) => load_file(ctx, loader, *m),
        ("load_binary", [m, file, bin]) => {
            let bytes = BitsView::of(*bin).map(|v| v.to_bytes().into_owned());
            let answer = match bytes {
                Some(b) => load(ctx, *m, &b, modules(ctx).binary_trust()),
                None => not_allowed(ctx),
            };
            if let (Some(m), Some(f)) = (m.as_atom(), text::string_from_list(*file)) {
                loader.loaded(m, &f);
            }
            answer
        }
        ("load_abs", [file, m]) => match text::string_from_list(*file) {
            Some(f) => {
                let path = format!("{f}.beam");
                match std::fs::read(&path) {
                    Ok(b) => {
                        let answer = load(ctx, *m, &b, modules(ctx).binary_trust());
                        if let Some(m) = m.as_atom() {
                            loader.loaded(m, &path);
                        }
                        answer
                    }
                    Err(_) => {
                        let w = atoms::NOFILE.word();
                        error(ctx, w)
                    }
                }
            }
            None => not_allowed(ctx),
        },
        ("get_object_code", [m]) => match name(ctx, *m).map(|n| loader.find(n)) {
            Some(Ok(Some(f))) => {
                let bytes = ctx.binary(&f.bytes);
                let path = ctx.string(&f.path);
                ctx.tuple(&[*m, bytes, path])
            }
            _ => atoms::ERROR.word(),
        },
        ("is_loaded", [m]) => match m.as_atom().filter(|m| modules(ctx).is_loaded(*m)) {
            Some(module) => {
                let file = file_of(ctx, loader, module);
                let tag = atoms::FILE.word();
                ctx.tuple(&[tag, file])
            }
            None => Word::FALSE,
        },
        ("delete", [m]) => {
            let done = m.as_atom().is_some_and(|m| {
                modules(ctx).purge(m);
                modules(ctx).delete(m) == Ok(true)
            });
            Word::boolean(done)
        }
        ("purge", [m]) => {
            if let Some(m) = m.as_atom() {
                modules(ctx).purge(m);
            }
            Word::FALSE
        }
        ("soft_purge", [m]) => {
            if let Some(m) = m.as_atom() {
                modules(ctx).purge(m);
            }
            yes
        }
        ("dir", [what]) => directory(ctx, loader, *what),
        ("add_path", [place, dir]) => {
            let is_dir = text::string_from_list(*dir).is_some_and(|d| Path::new(&d).is_dir());
            if !is_dir {
                let w = atom(ctx, "bad_directory");
                return error(ctx, w);
            }
            let first = name(ctx, *place) == Some("first");
            add_paths(ctx, loader, first, &[*dir]);
            yes
        }
        ("add_paths", [place, dirs]) => {
            let first = name(ctx, *place) == Some("first");
            let dirs = text::list_to_vec(*dirs).unwrap_or_default();
            add_paths(ctx, loader, first, &dirs)
        }
        ("del_path", [dir]) => {
            let d = text_or_atom(ctx, *dir).unwrap_or_default();
            Word::boolean(loader.remove_path(Path::new(&d)))
        }
        ("is_sticky", _) => Word::FALSE,
        ("stick_dir" | "unstick_dir" | "stick_mod" | "unstick_mod", _) => atoms::OK.word(),
        _ => not_allowed(ctx),
    }
}
