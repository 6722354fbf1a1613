//! Processes of OTP that library code expects to be there, in a bare start: each is started by OTP's own module when somebody looks
//! for its name, and costs nothing before.
//!
//! A **starter**, one for a server, calls the start function and then sleeps for ever: it is the server's parent. While it
//! works, everybody else who looks for the name looks again (the hook says so); the starter itself is told that there is nobody, as OTP's
//! start functions expect. It reports to `init` that the function returned; a name that is not taken then, or a starter that died,
//! means that the server does not start, and the name stands for nothing. A server that dies later is started anew.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use beamr_term::{Atom, AtomError, Build, Fragment, Release, Word, atoms};
use beamr_vm::process::Carried;
use beamr_vm::process::spawn::{SpawnError, SpawnOptions, Start};
use beamr_vm::vm::{Sought, Vm};

/// One call of a starter.
struct Call {
    module: &'static str,
    function: &'static str,
    /// Its argument.
    argument: Argument,
}

/// What a start function gets.
#[derive(Clone, Copy)]
enum Argument {
    /// Nothing.
    None,
    /// The folders of the search path.
    Path,
    /// The description of the application `kernel`, which in a bare start has no parts.
    Kernel,
}

/// A call without arguments.
const fn call(module: &'static str, function: &'static str) -> Call {
    Call {
        module,
        function,
        argument: Argument::None,
    }
}

/// Names and how their servers come to be.
const SERVERS: &[(&str, &[Call])] = &[
    (
        "erl_prim_loader",
        &[
            call("erl_prim_loader", "start"),
            Call {
                module: "erl_prim_loader",
                function: "set_path",
                argument: Argument::Path,
            },
        ],
    ),
    // Before 26 the one of `bare` answers.
    ("code_server", &[call("code", "start_link")]),
    ("file_server_2", &[call("file_server", "start_link")]),
    (
        "application_controller",
        &[Call {
            module: "application_controller",
            function: "start",
            argument: Argument::Kernel,
        }],
    ),
    ("timer_server", &[call("timer", "start_link")]),
];

/// The message to `init` that tells of a start: `{server_started, Name}`.
pub const STARTED: &str = "server_started";

enum State {
    /// By this starter.
    Starting(Word),
    /// It was there when the start function returned.
    Started(Word),
    Failed,
}

/// Why a starter was not made.
#[derive(Debug, thiserror::Error)]
enum StarterError {
    #[error(transparent)]
    Atom(#[from] AtomError),
    #[error("the table of functions is full")]
    Exports,
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// See the module.
pub struct Servers {
    names: HashMap<Atom, &'static [Call]>,
    /// Folders for `erl_prim_loader`.
    path: Vec<PathBuf>,
    leader: Word,
    states: Mutex<HashMap<Atom, State>>,
}

impl Servers {
    /// Servers whose group leader is `leader`, for a VM with these folders of code.
    pub fn new(vm: &Vm, leader: Word, path: Vec<PathBuf>) -> Result<Servers, AtomError> {
        let mut names = HashMap::new();
        for (name, calls) in SERVERS {
            if *name != "code_server" || Servers::has_code_server(vm.tables.release) {
                names.insert(vm.tables.atoms.intern(name)?, *calls);
            }
        }
        Ok(Servers {
            names,
            path,
            leader,
            states: Mutex::default(),
        })
    }
    /// Whether OTP's own `code_server` is used: since 26 the `code` module reads its table past the process.
    pub fn has_code_server(release: Release) -> bool {
        release.0 >= 26
    }
    /// The hook of [`Hooks::names`](beamr_vm::vm::Hooks::names).
    pub fn look(
        &self,
        vm: &Arc<Vm>,
        namespace: u32,
        name: Atom,
        sought: Sought,
        asker: Word,
    ) -> bool {
        let Some(calls) = self.names.get(&name).filter(|_| namespace == 0) else {
            return false;
        };
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        match states.get(&name) {
            Some(State::Failed) => return false,
            Some(State::Starting(starter)) if *starter == asker => return false,
            Some(State::Starting(starter)) if vm.is_alive(*starter) => return true,
            // It came between the look and now. What it does not have by now it does not make.
            _ if vm.whereis(name).is_some() => return sought == Sought::Process,
            Some(State::Starting(_)) => {
                self.failed(vm, &mut states, name);
                return false;
            }
            // It has come and gone. Its starter may not know yet, or never, when it ended normally.
            Some(State::Started(starter)) => {
                vm.exit(*starter, Carried::immediate(atoms::KILL));
            }
            None => {}
        }
        match self.start(vm, name, calls) {
            Ok(starter) => {
                states.insert(name, State::Starting(starter));
                true
            }
            Err(e) => {
                vm.note(&format!(
                    "{} cannot be started: {e}",
                    vm.tables.atoms.text(name)
                ));
                states.insert(name, State::Failed);
                false
            }
        }
    }
    /// The start function of `name` has returned.
    pub fn returned(&self, vm: &Vm, name: Atom) {
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(State::Starting(starter)) = states.get(&name) {
            let starter = *starter;
            if vm.whereis(name).is_some() {
                states.insert(name, State::Started(starter));
            } else {
                self.failed(vm, &mut states, name);
            }
        }
    }
    fn failed(&self, vm: &Vm, states: &mut HashMap<Atom, State>, name: Atom) {
        vm.note(&format!("{} did not start", vm.tables.atoms.text(name)));
        states.insert(name, State::Failed);
    }
    /// Makes a starter: `lists:zipwith3(fun erlang:apply/3, Modules, Functions, Arguments)` over the calls, the report and the sleep,
    /// which is the sequence of these calls.
    fn start(&self, vm: &Arc<Vm>, name: Atom, calls: &[Call]) -> Result<Word, StarterError> {
        let atom = |t: &str| vm.tables.atoms.intern(t).map(Atom::word);
        let mut f = Fragment::with_capacity(256);
        let (mut modules, mut functions, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |m: Word, g: Word, a: Word| {
            modules.push(m);
            functions.push(g);
            arguments.push(a);
        };
        for c in calls {
            let args = match c.argument {
                Argument::None => Word::NIL,
                Argument::Path => {
                    let mut folders = Vec::new();
                    for p in &self.path {
                        folders.push(f.string(&p.to_string_lossy()));
                    }
                    let folders = f.list(folders);
                    f.list([folders])
                }
                Argument::Kernel => {
                    let mut items = Vec::new();
                    for (key, value) in [
                        ("description", f.string("ERTS  CXC 138 10")),
                        ("vsn", f.string("bare")),
                        ("modules", Word::NIL),
                        ("registered", Word::NIL),
                        ("applications", Word::NIL),
                        ("env", Word::NIL),
                    ] {
                        let key = atom(key)?;
                        items.push(f.tuple(&[key, value]));
                    }
                    let items = f.list(items);
                    let kernel = f.tuple(&[atom("application")?, atom("kernel")?, items]);
                    f.list([kernel])
                }
            };
            add(atom(c.module)?, atom(c.function)?, args);
        }
        let erlang = atom("erlang")?;
        let report = f.tuple(&[atom(STARTED)?, name.word()]);
        let report = f.list([atom("init")?, report]);
        add(erlang, atom("send")?, report);
        let forever = f.list([atom("infinity")?]);
        add(atom("timer")?, atom("sleep")?, forever);

        let (m, g) = (
            vm.tables.atoms.intern("erlang")?,
            vm.tables.atoms.intern("apply")?,
        );
        let id = vm
            .tables
            .exports
            .id(m, g, 3)
            .map_err(|_| StarterError::Exports)?;
        let apply = f.export_fun(id, m.word(), g.word(), 3);
        let (modules, functions, arguments) =
            (f.list(modules), f.list(functions), f.list(arguments));
        let args = f.list([apply, modules, functions, arguments]);
        let start = Start::Apply(atom("lists")?, atom("zipwith3")?, args);
        let options = SpawnOptions {
            watched: false,
            ..SpawnOptions::default()
        };
        let namespace = vm.default_namespace();
        Ok(vm.spawn(&namespace, start, &options, Some(self.leader))?)
    }
}
