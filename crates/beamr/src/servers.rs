//! Processes of OTP that library code expects to be there, in a bare start: each is started by OTP's own module when somebody looks
//! for its name, and costs nothing before.
//!
//! A **starter**, one for a server, calls the start functions and then sleeps for ever: it is the server's parent. While it
//! works, everybody else who looks for the name, or for a table of the server, looks again (the hook says so), also when it is there
//! already; the starter and the processes that it made (its family) are told what is, as OTP's start functions expect. It reports to
//! `init` that the functions returned; a name that is not taken then, or a starter that died, means that the server does not start,
//! and the name stands for nothing. A server that dies later is started anew.
//!
//! Reports of crashes that come before OTP's logger has started are kept for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beamr_term::{Atom, AtomError, Build, Fragment, Word, atoms};
use beamr_vm::process::Carried;
use beamr_vm::process::spawn::{SpawnError, SpawnOptions, Start};
use beamr_vm::vm::{Sought, Vm};

/// One call of a starter.
struct Call {
    module: &'static str,
    function: &'static str,
    arguments: Arguments,
    /// It does not return: the starter becomes the server, which is ready when it has its name.
    stays: bool,
}

/// Makes the argument list of a start function.
type Arguments = fn(&Servers, &mut Builder<'_>) -> Result<Word, AtomError>;

const fn call(module: &'static str, function: &'static str, arguments: Arguments) -> Call {
    Call {
        module,
        function,
        arguments,
        stays: false,
    }
}

fn nothing(_: &Servers, _: &mut Builder<'_>) -> Result<Word, AtomError> {
    Ok(Word::NIL)
}

/// A supervisor of this name that is started as `kernel` starts its safe one.
fn supervisor(b: &mut Builder<'_>, name: &str) -> Result<Word, AtomError> {
    let name = [b.atom("local")?, b.atom(name)?];
    let args = [b.tuple(&name), b.atom("kernel")?, b.atom("safe")?];
    Ok(b.list(&args))
}

/// Names and how their servers come to be.
const SERVERS: &[(&str, &[Call])] = &[
    (
        "erl_prim_loader",
        &[
            call("erl_prim_loader", "start", nothing),
            call("erl_prim_loader", "set_path", Servers::folders),
        ],
    ),
    ("code_server", &[call("code", "start_link", nothing)]),
    (
        "file_server_2",
        &[call("file_server", "start_link", nothing)],
    ),
    (
        "application_controller",
        // The applications `kernel` and `stdlib` run, without processes of theirs.
        &[
            call("application_controller", "start", Servers::kernel),
            call("application", "start_boot", Servers::boot_kernel),
            call("application", "start_boot", Servers::boot_stdlib),
        ],
    ),
    (
        "logger",
        // What `kernel` does when it starts. Its parameters are wanted on the way; who serves them must not be started meanwhile, since
        // it would wait for the logger.
        &[
            call("application", "loaded_applications", nothing),
            call("logger_server", "start_link", nothing),
            call("logger", "internal_init_logger", nothing),
            call("logger_sup", "start_link", nothing),
            call("logger", "add_handlers", |_, b| {
                let kernel = b.atom("kernel")?;
                Ok(b.list(&[kernel]))
            }),
        ],
    ),
    (
        "erl_signal_server",
        &[
            call("gen_event", "start_link", |_, b| {
                let name = [b.atom("local")?, b.atom("erl_signal_server")?];
                let name = b.tuple(&name);
                Ok(b.list(&[name]))
            }),
            call("gen_event", "add_handler", |_, b| {
                let args = [
                    b.atom("erl_signal_server")?,
                    b.atom("erl_signal_handler")?,
                    Word::NIL,
                ];
                Ok(b.list(&args))
            }),
        ],
    ),
    ("rex", &[call("rpc", "start_link", nothing)]),
    (
        "global_name_server",
        &[call("global", "start_link", nothing)],
    ),
    (
        "global_group",
        &[call("global_group", "start_link", nothing)],
    ),
    // Names and addresses of machines; resolved by OTP's program behind a port.
    ("inet_db", &[call("inet_db", "start_link", nothing)]),
    ("kernel_refc", &[call("kernel_refc", "start_link", nothing)]),
    // Libraries add children to these two; they have none of their own.
    (
        "kernel_sup",
        &[call("supervisor", "start_link", |_, b| {
            supervisor(b, "kernel_sup")
        })],
    ),
    (
        "kernel_safe_sup",
        &[call("supervisor", "start_link", |_, b| {
            supervisor(b, "kernel_safe_sup")
        })],
    ),
    // Its start function registers it and becomes it.
    (
        "erts_code_purger",
        &[Call {
            stays: true,
            ..call("erts_code_purger", "start", nothing)
        }],
    ),
];

/// Tables that belong to servers of other names.
const TABLES: &[(&str, &str)] = &[
    ("ac_tab", "application_controller"),
    ("global_locks", "global_name_server"),
    ("global_lost_connections", "global_name_server"),
    ("global_names", "global_name_server"),
    ("global_names_ext", "global_name_server"),
    ("global_node_resources", "global_name_server"),
    ("global_pid_ids", "global_name_server"),
    ("global_pid_names", "global_name_server"),
    ("inet_cache", "inet_db"),
    ("inet_db", "inet_db"),
    ("inet_hosts_byaddr", "inet_db"),
    ("inet_hosts_byname", "inet_db"),
    ("inet_hosts_file_byaddr", "inet_db"),
    ("inet_hosts_file_byname", "inet_db"),
    ("inet_sockets", "inet_db"),
];

/// Parameters of the application `kernel`.
const ENVIRONMENT: &[(&str, Value)] = &[
    ("logger_level", Value::Atom("notice")),
    ("logger_sasl_compatible", Value::Atom("false")),
    ("net_tickintensity", Value::Number(4)),
    ("net_ticktime", Value::Number(60)),
    ("prevent_overlapping_partitions", Value::Atom("true")),
    ("shell_docs_ansi", Value::Atom("auto")),
];

#[derive(Clone, Copy)]
enum Value {
    Atom(&'static str),
    Number(i64),
}

/// Terms of a starter.
struct Builder<'a> {
    f: Fragment,
    vm: &'a Vm,
}

impl Builder<'_> {
    fn atom(&self, text: &str) -> Result<Word, AtomError> {
        self.vm.tables.atoms.intern(text).map(Atom::word)
    }
    fn list(&mut self, items: &[Word]) -> Word {
        self.f.list(items.iter().copied())
    }
    fn tuple(&mut self, items: &[Word]) -> Word {
        self.f.tuple(items)
    }
}

/// Whether a family is that of a server which is being started.
fn starts(states: &HashMap<Atom, State>, family: u32) -> bool {
    let of = |s: &State| matches!(s, State::Starting(s) if s.family == family);
    family != 0 && states.values().any(of)
}

/// The message to `init` that tells of a start: `{server_started, Name}`.
pub const STARTED: &str = "server_started";
/// The message to `init` that tells of a starter: `{server_starting, Name, Pid}`.
pub const STARTING: &str = "server_starting";

/// How long others wait for a server: longer when servers wait for each other in a circle, which none of OTP's do.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who starts a server.
struct Starter {
    pid: Word,
    /// That of the starter and all that it spawns.
    family: u32,
    since: Instant,
    /// It becomes the server.
    stays: bool,
}

enum State {
    /// By this starter.
    Starting(Starter),
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
    tables: HashMap<Atom, Atom>,
    /// Folders for `erl_prim_loader`.
    path: Vec<PathBuf>,
    leader: Word,
    states: Mutex<HashMap<Atom, State>>,
    /// What is to be told to the logger when it has started.
    reports: Mutex<Vec<Carried>>,
    /// Nothing is started any more.
    closed: AtomicBool,
    /// The next number of a family.
    families: AtomicU32,
}

impl Servers {
    /// Servers whose group leader is `leader`, for a VM with these folders of code.
    pub fn new(vm: &Vm, leader: Word, path: Vec<PathBuf>) -> Result<Servers, AtomError> {
        let intern = |t: &str| vm.tables.atoms.intern(t);
        let mut names = HashMap::new();
        for (name, calls) in SERVERS {
            names.insert(intern(name)?, *calls);
        }
        let mut tables = HashMap::new();
        for (table, name) in TABLES {
            tables.insert(intern(table)?, intern(name)?);
        }
        Ok(Servers {
            names,
            tables,
            path,
            leader,
            states: Mutex::default(),
            reports: Mutex::default(),
            closed: AtomicBool::new(false),
            families: AtomicU32::new(1),
        })
    }
    fn folders(&self, b: &mut Builder<'_>) -> Result<Word, AtomError> {
        let mut folders = Vec::new();
        for p in &self.path {
            folders.push(b.f.string(&p.to_string_lossy()));
        }
        let folders = b.list(&folders);
        Ok(b.list(&[folders]))
    }
    /// The version of an application of the OTP root, by the name of its folder.
    fn version(&self, application: &str) -> String {
        let version = |p: &PathBuf| {
            let dir = p.parent()?.file_name()?.to_str()?;
            let version = dir.strip_prefix(application)?.strip_prefix('-')?;
            Some(version.to_owned())
        };
        self.path.iter().rev().find_map(version).unwrap_or_default()
    }
    /// `{application, Name, Keys}`.
    fn application(
        &self,
        b: &mut Builder<'_>,
        name: &str,
        description: &str,
        needs: &[&str],
        environment: &[(&str, Value)],
    ) -> Result<Word, AtomError> {
        let mut env = Vec::new();
        for (key, value) in environment {
            let value = match value {
                Value::Atom(t) => b.atom(t)?,
                Value::Number(n) => Word::fixnum(*n),
            };
            let key = b.atom(key)?;
            env.push(b.tuple(&[key, value]));
        }
        let mut applications = Vec::new();
        for n in needs {
            applications.push(b.atom(n)?);
        }
        let mut keys = Vec::new();
        for (key, value) in [
            ("description", b.f.string(description)),
            ("vsn", b.f.string(&self.version(name))),
            ("modules", Word::NIL),
            ("registered", Word::NIL),
            ("applications", b.list(&applications)),
            ("env", b.list(&env)),
        ] {
            let key = b.atom(key)?;
            keys.push(b.tuple(&[key, value]));
        }
        let keys = b.list(&keys);
        let head = [b.atom("application")?, b.atom(name)?, keys];
        Ok(b.tuple(&head))
    }
    fn kernel(&self, b: &mut Builder<'_>) -> Result<Word, AtomError> {
        let kernel = self.application(b, "kernel", "ERTS  CXC 138 10", &[], ENVIRONMENT)?;
        Ok(b.list(&[kernel]))
    }
    fn boot_kernel(&self, b: &mut Builder<'_>) -> Result<Word, AtomError> {
        let args = [b.atom("kernel")?, b.atom("permanent")?];
        Ok(b.list(&args))
    }
    fn boot_stdlib(&self, b: &mut Builder<'_>) -> Result<Word, AtomError> {
        let stdlib = self.application(b, "stdlib", "ERTS  CXC 138 10", &["kernel"], &[])?;
        let args = [stdlib, b.atom("permanent")?];
        Ok(b.list(&args))
    }
    /// The hook of [`Hooks::names`](beamr_vm::vm::Hooks::names).
    pub fn look(
        &self,
        vm: &Arc<Vm>,
        namespace: u32,
        name: Atom,
        sought: Sought,
        family: u32,
    ) -> bool {
        let name = match self.tables.get(&name) {
            Some(owner) if sought != Sought::Process => *owner,
            _ => name,
        };
        let Some(calls) = self.names.get(&name).filter(|_| namespace == 0) else {
            return false;
        };
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(State::Starting(s)) = states.get(&name)
            && s.stays
            && vm.whereis(name) == Some(s.pid)
        {
            let pid = s.pid;
            states.insert(name, State::Started(pid));
            vm.start_ends();
        }
        match states.get(&name) {
            Some(State::Failed) => return false,
            Some(State::Starting(s)) if s.family == family => return false,
            // Servers that are being started may need each other: what is there is not kept from them.
            Some(State::Starting(_)) if sought == Sought::Ready && starts(&states, family) => {
                return false;
            }
            Some(State::Starting(s)) if vm.is_alive(s.pid) && s.since.elapsed() < PATIENCE => {
                return true;
            }
            // It came between the look and now. What it does not have by now it does not make.
            _ if vm.whereis(name).is_some() => return sought == Sought::Process,
            // Too late, or dead: `init` will be told.
            Some(State::Starting(_)) => return false,
            _ if sought == Sought::Ready => return false,
            // It has come and gone. Its starter may not know yet, or never, when it ended normally.
            Some(State::Started(_)) if self.closed.load(Ordering::Acquire) => return false,
            Some(State::Started(starter)) => {
                vm.exit(*starter, Carried::immediate(atoms::KILL));
            }
            None => {}
        }
        if self.closed.load(Ordering::Acquire) {
            return false;
        }
        match self.start(vm, name, calls) {
            Ok(starter) => {
                // `init` watches it.
                let began = [vm.tables.atoms.intern(STARTING), Ok(name)];
                if let ([Ok(tag), Ok(name)], Some(init)) = (began, vm.whereis(atoms::INIT)) {
                    let pid = starter.pid;
                    let message = Carried::build(4, |f| f.tuple(&[tag.word(), name.word(), pid]));
                    vm.send(init, message);
                }
                vm.start_begins();
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
    /// The start functions of `name` have returned.
    pub fn returned(&self, vm: &Arc<Vm>, name: Atom) {
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(State::Starting(starter)) = states.get(&name) {
            let starter = starter.pid;
            if vm.whereis(name).is_some() {
                states.insert(name, State::Started(starter));
            } else {
                self.failed(vm, &mut states, name);
            }
            drop(states);
            vm.start_ends();
        } else {
            drop(states);
        }
        if name == atoms::LOGGER {
            for report in self.reports() {
                self.tell(vm, report);
            }
        }
    }
    /// The starter of `name` has died.
    pub fn died(&self, vm: &Arc<Vm>, name: Atom, starter: Word) {
        let mut states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        if matches!(states.get(&name), Some(State::Starting(s)) if s.pid == starter) {
            self.failed(vm, &mut states, name);
            drop(states);
            vm.start_ends();
        }
    }
    fn reports(&self) -> Vec<Carried> {
        std::mem::take(&mut *self.reports.lock().unwrap_or_else(|e| e.into_inner()))
    }
    fn tell(&self, vm: &Arc<Vm>, report: Carried) {
        let to = Some(vm.system_logger()).filter(|l| l.is_local_pid());
        if let Some(to) = to.or_else(|| vm.whereis(atoms::LOGGER)) {
            vm.send(to, report);
        }
    }
    /// A report (`{log, Level, Format, Args, Metadata}`) that came without a logger: it is started and told. The report comes back
    /// when that cannot be.
    pub fn report(&self, vm: &Arc<Vm>, report: Word) -> Result<(), Word> {
        let mut reports = self.reports.lock().unwrap_or_else(|e| e.into_inner());
        reports.push(Carried::own(report));
        drop(reports);
        if self.look(vm, 0, atoms::LOGGER, Sought::Process, 0) {
            return Ok(());
        }
        // It is there meanwhile, or will never be.
        for r in self.reports() {
            match vm.whereis(atoms::LOGGER) {
                Some(_) => self.tell(vm, r),
                None => return Err(report),
            }
        }
        Ok(())
    }
    /// Starts nothing from now on; the running `application_controller` and its parent.
    pub fn close(&self, vm: &Vm) -> Option<(Word, Word)> {
        self.closed.store(true, Ordering::Release);
        let name = vm.tables.atoms.lookup("application_controller")?;
        let pid = vm.whereis(name)?;
        let states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        match states.get(&name)? {
            State::Starting(Starter { pid: starter, .. }) | State::Started(starter) => {
                Some((pid, *starter))
            }
            State::Failed => None,
        }
    }
    /// Starts the server of this name if nobody has asked for it yet, and waits until it is there; false when it is not in time.
    pub fn ensure(&self, vm: &Arc<Vm>, name: Atom, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        while self.look(vm, 0, name, Sought::Process, 0) && self.state(vm, name) != Some(true) {
            if Instant::now() > deadline {
                return false;
            }
            crate::ending::rest(vm);
        }
        vm.whereis(name).is_some()
    }
    /// Whether the server of this name was ever asked for and has not failed, and whether it has started.
    pub fn state(&self, vm: &Vm, name: Atom) -> Option<bool> {
        let states = self.states.lock().unwrap_or_else(|e| e.into_inner());
        match states.get(&name)? {
            State::Starting(starter) if vm.is_alive(starter.pid) => Some(false),
            State::Started(_) => Some(true),
            _ => None,
        }
    }
    fn failed(&self, vm: &Vm, states: &mut HashMap<Atom, State>, name: Atom) {
        vm.note(&format!("{} did not start", vm.tables.atoms.text(name)));
        states.insert(name, State::Failed);
    }
    /// Makes a starter: `lists:zipwith3(fun erlang:apply/3, Modules, Functions, Arguments)` over the calls, the report and the sleep,
    /// which is the sequence of these calls.
    fn start(&self, vm: &Arc<Vm>, name: Atom, calls: &[Call]) -> Result<Starter, StarterError> {
        let mut b = Builder {
            f: Fragment::with_capacity(256),
            vm,
        };
        let (mut modules, mut functions, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |m: Word, g: Word, a: Word| {
            modules.push(m);
            functions.push(g);
            arguments.push(a);
        };
        for c in calls {
            let args = (c.arguments)(self, &mut b)?;
            add(b.atom(c.module)?, b.atom(c.function)?, args);
        }
        let report = [b.atom(STARTED)?, name.word()];
        let report = b.tuple(&report);
        let report = [b.atom("init")?, report];
        let report = b.list(&report);
        add(b.atom("erlang")?, b.atom("send")?, report);
        let forever = b.atom("infinity")?;
        let forever = b.list(&[forever]);
        add(b.atom("timer")?, b.atom("sleep")?, forever);

        let (m, g) = (
            vm.tables.atoms.intern("erlang")?,
            vm.tables.atoms.intern("apply")?,
        );
        let id = vm
            .tables
            .exports
            .id(m, g, 3)
            .map_err(|_| StarterError::Exports)?;
        let apply = b.f.export_fun(id, m.word(), g.word(), 3);
        let (modules, functions, arguments) =
            (b.list(&modules), b.list(&functions), b.list(&arguments));
        let args = b.list(&[apply, modules, functions, arguments]);
        let start = Start::Apply(b.atom("lists")?, b.atom("zipwith3")?, args);
        let options = SpawnOptions {
            watched: false,
            family: self.families.fetch_add(1, Ordering::Relaxed),
            ..SpawnOptions::default()
        };
        let namespace = vm.default_namespace();
        Ok(Starter {
            pid: vm.spawn(&namespace, start, &options, Some(self.leader))?,
            family: options.family,
            since: Instant::now(),
            stays: calls.iter().any(|c| c.stays),
        })
    }
}
