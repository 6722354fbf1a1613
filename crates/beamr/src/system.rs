//! A running system in its bare start: a VM over an OTP root, its loader and its I/O process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use beamr_abi::NativeEntry;
use beamr_interp::Interp;
use beamr_natives::identity::Identity;
use beamr_term::copy::{CopyMode, Copying};
use beamr_term::{AtomTable, Build, Fragment, Release, Tables, Word, atoms};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, LoadError, ModuleTable, Trust};
use beamr_vm::door::{Door, LiveDoor, Stream};
use beamr_vm::native_process::NativeProcess;
use beamr_vm::process::spawn::{SpawnError, SpawnOptions, Start};
use beamr_vm::process::{Carried, VmProcessSide};
use beamr_vm::vm::{Halt, HostNativeHook, StartError, Vm, VmOptions, VmParts};

use crate::bare;
use crate::ending::{self, Ending};
use crate::io::IoServer;
use crate::loader::{FolderLoader, ModuleRegistry};
use crate::otp::OtpRoot;
use crate::servers::Servers;
use crate::term::TextStyle;
use crate::term::print::text_of;

/// What a bare system is made of.
pub struct BareOptions {
    /// Its OTP; without one there are natives and what the folders and modules hold.
    pub otp: Option<OtpRoot>,
    /// The release that it takes on when there is no OTP.
    pub release: Release,
    /// Its atoms; a fresh table of the default size unless given.
    pub atoms: Option<Arc<AtomTable>>,
    /// Sizes and limits; the workers are those of `workers`. `None`: those of a program.
    pub vm: Option<VmOptions>,
    /// Modules given as bytes, and how they are taken.
    pub modules: Option<(Arc<ModuleRegistry>, Trust)>,
    /// Whether the working directory is searched for modules, as OTP does.
    pub here: bool,
    /// How the folders of `paths` (and the working directory) are taken.
    pub path_trust: Trust,
    /// How files are taken that programs load themselves.
    pub binary_trust: Trust,
    /// What programs of the first namespace may do.
    pub granted: Capabilities,
    /// Natives besides those of OTP, and who runs them.
    pub natives: Vec<&'static NativeEntry>,
    /// See [`beamr_vm::vm::Hooks::host_native`].
    pub host_native: Option<HostNativeHook>,
    /// Name and creation of the node, which is not alive.
    pub node: Option<(String, u32)>,
    /// Whether there are processes that serve the standard streams. Without them the group leader is a dead process.
    pub standard_io: bool,
    /// Whether ports can be opened: programs, files, descriptors. Only where there are threads (one serves all ports) and on Unix.
    pub ports: bool,
    /// Folders of beams in search order, trusted.
    pub paths: Vec<PathBuf>,
    /// Worker threads; 0 makes it cooperative: it runs on the thread that waits for its processes.
    pub workers: usize,
    /// The way to the outside.
    pub door: Arc<dyn Door>,
    /// Whether `erlang:halt` ends the whole OS process at once (a program wants that; an embedded system does not).
    pub halt_exits: bool,
    /// Arguments of the program (`init:get_plain_arguments/0`).
    pub arguments: Vec<String>,
    /// Flags with their values (`init:get_argument/1`).
    pub flags: Vec<(String, Vec<String>)>,
    /// Standard input and output are Latin-1 from the start, as in `escript`; else UTF-8.
    pub latin1: bool,
}

impl BareOptions {
    /// Over no OTP.
    pub fn without_otp(release: Release) -> BareOptions {
        let nowhere = OtpRoot {
            path: PathBuf::new(),
            release,
        };
        BareOptions {
            otp: None,
            ..BareOptions::new(nowhere)
        }
    }
    /// One worker (none in a build without threads), the live door, no folders.
    pub fn new(otp: OtpRoot) -> BareOptions {
        BareOptions {
            release: otp.release,
            otp: Some(otp),
            atoms: None,
            vm: None,
            modules: None,
            here: false,
            path_trust: Trust::Trusted,
            binary_trust: Trust::Trusted,
            granted: Capabilities::ALL,
            natives: Vec::new(),
            host_native: None,
            node: None,
            standard_io: true,
            ports: true,
            paths: Vec::new(),
            workers: VmOptions::default().workers,
            door: Arc::new(LiveDoor::new()),
            halt_exits: false,
            arguments: Vec::new(),
            flags: Vec::new(),
            latin1: false,
        }
    }
}

/// Why a system did not start.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// A native is registered twice.
    #[error(transparent)]
    Natives(#[from] beamr_abi::NativeTableError),
    /// Code.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A thread.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A name.
    #[error(transparent)]
    Atom(#[from] beamr_term::AtomError),
    /// A process.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A name that is none of a node.
    #[error("{0}: a node's name has the form name@host")]
    Node(String),
}

/// See the module.
pub struct System {
    /// The VM.
    pub vm: Arc<Vm>,
    /// The process that serves standard input and output: pid 0, registered as `user`.
    pub user: Word,
    /// The process that serves standard error, registered as `standard_error`.
    pub standard_error: Word,
    /// The loader of the first namespace.
    pub loader: Arc<FolderLoader>,
    /// OTP's servers.
    pub servers: Arc<Servers>,
    ending: Arc<Ending>,
}

impl System {
    /// Starts a bare system.
    pub fn bare(options: BareOptions) -> Result<System, SystemError> {
        let release = options.otp.as_ref().map_or(options.release, |o| o.release);
        let atoms = options
            .atoms
            .unwrap_or_else(|| Arc::new(AtomTable::new(AtomTable::DEFAULT_LIMIT)));
        let tables = Tables::new(atoms, release);
        if let Some((name, creation)) = &options.node {
            let parts: Vec<&str> = name.split('@').collect();
            if parts.len() != 2 || parts.iter().any(|p| p.is_empty()) {
                return Err(SystemError::Node(name.clone()));
            }
            tables.set_local_node(tables.atoms.intern(name)?, *creation);
        }
        let mut natives = beamr_natives::table(release)?;
        for row in options.natives {
            natives.add_entry(row)?;
        }
        let engine = Arc::new(Interp);
        let server = CodeServer::new(tables.clone(), engine.clone(), Arc::new(natives))?;
        let mut loader = FolderLoader::new();
        if let Some(otp) = &options.otp {
            loader = loader.otp_root(&otp.path);
        }
        if let Some((modules, trust)) = options.modules {
            loader = loader.modules(modules, trust);
        }
        if options.here {
            loader = loader.here(options.door.clone(), options.path_trust);
        }
        let folders = options.paths.clone();
        for p in options.paths.into_iter().rev() {
            loader = loader.path(p, options.path_trust);
        }
        let loader = Arc::new(loader);
        let modules = Arc::new(ModuleTable::new(
            server.clone(),
            0,
            options.granted,
            Some(loader.clone()),
        )?);
        modules.set_binary_trust(options.binary_trust);
        let vm = Vm::new(
            VmParts {
                tables,
                engine,
                server,
                modules,
                processes: Arc::new(VmProcessSide),
                door: options.door,
            },
            VmOptions {
                workers: options.workers,
                // A program asks for the exit of its first process only.
                notes_abnormal_exits: !options.halt_exits,
                ..options.vm.unwrap_or(VmOptions {
                    // As OTP: as many for computing as there are schedulers, ten for files. They start when they are needed.
                    dirty_cpu: options.workers,
                    dirty_io: if options.workers > 0 { 10 } else { 0 },
                    ..VmOptions::default()
                })
            },
        )?;
        if let Some(run) = options.host_native {
            // A fresh VM has no hook yet.
            let _ = vm.hooks.host_native.set(run);
        }
        #[cfg(all(unix, feature = "threads"))]
        if options.ports && options.workers > 0 {
            let service = beamr_io::ports::OsPorts::default();
            beamr_vm::port::install(&vm, Arc::new(service));
        }
        let mut identity = Identity::of_release(vm.tables.release);
        let erts = options.otp.as_ref().and_then(OtpRoot::erts_version);
        if let (Some(otp), Some(erts)) = (&options.otp, erts) {
            otp.set_environment(&*vm.door, &erts);
            identity.erts = erts;
        }
        Identity::set(&vm, identity);
        if options.halt_exits {
            let _ = vm.hooks.halt.set(Box::new(|halt, _| exit_program(halt)));
        }
        let start = |server: Box<dyn NativeProcess>, name| -> Result<Word, SystemError> {
            let spawn = SpawnOptions {
                name: Some(name),
                ..SpawnOptions::default()
            };
            Ok(vm.spawn(&vm.default_namespace(), Start::Native(server), &spawn, None)?)
        };
        let (user, standard_error) = if options.standard_io {
            let mut io = IoServer::new(&vm, Stream::Out, true);
            if options.latin1 {
                io.set_latin1();
            }
            let err = IoServer::new(&vm, Stream::Err, false);
            (
                start(Box::new(io), atoms::USER)?,
                start(Box::new(err), atoms::STANDARD_ERROR)?,
            )
        } else {
            // Nobody: who asks it is told so.
            (Word::pid(u64::MAX >> 4), Word::pid(u64::MAX >> 4))
        };
        // What a boot script sets: the folders of the command line, then kernel and stdlib.
        let path = folders
            .into_iter()
            .chain(loader.applications().iter().take(2).cloned())
            .collect();
        let servers = Arc::new(Servers::new(&vm, user, path)?);
        let ending = Arc::new(Ending::new(&vm, servers.clone(), user, standard_error));
        let Some(otp) = options.otp else {
            log_without_otp(&vm);
            return Ok(System {
                vm,
                user,
                standard_error,
                loader,
                servers,
                ending,
            });
        };
        let looked_for = servers.clone();
        // A fresh VM has no hook yet.
        let _ = vm
            .hooks
            .names
            .set(Box::new(move |vm, n, name, sought, asker| {
                looked_for.look(vm, n, name, sought, asker)
            }));
        let root = otp.path.to_string_lossy().into_owned();
        let mut flags = vec![
            ("root".into(), vec![root]),
            ("progname".into(), vec!["beamr".into()]),
            ("noshell".into(), Vec::new()),
        ];
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        for (flag, variable) in [("bindir", "BINDIR"), ("home", "HOME")] {
            let value = vm.door.env(variable.as_bytes()).map(text);
            flags.extend(value.map(|v| (flag.into(), vec![v])));
        }
        flags.extend(options.flags);
        let arguments = bare::Arguments {
            flags,
            plain: options.arguments,
        };
        let init = bare::init(&vm, arguments, servers.clone(), ending.clone());
        let intern = |text| vm.tables.atoms.intern(text);
        let start = |server, name, shown_call| {
            let spawn = SpawnOptions {
                name,
                shown_call: Some(shown_call),
                ..SpawnOptions::default()
            };
            let namespace = vm.default_namespace();
            vm.spawn(&namespace, Start::Native(server), &spawn, Some(user))
        };
        let call = (intern("erl_init")?, atoms::START, 2);
        start(init, Some(atoms::INIT), call)?;
        let call = (intern("erts_literal_area_collector")?, atoms::START, 0);
        start(bare::literal_area_collector(&vm), None, call)?;
        // Crashes go to the hook until OTP's logger has made itself the system's.
        vm.set_system_logger(vm.tables.atoms.intern("set_later")?.word());
        let weak = Arc::downgrade(&vm);
        let told = servers.clone();
        // Without a logger reports are printed as the default handler would: `{log, Level, Format, Args, Metadata}`.
        let hook = move |report: Word, tables: &Tables| {
            let Some(vm) = weak.upgrade() else { return };
            let Err(report) = told.report(&vm, report) else {
                return;
            };
            if let Some([_, level, format, args, _]) = report.as_tuple() {
                let time = vm.system_time_us();
                let request = report_request(tables, time, *level, *format, *args);
                vm.send(standard_error, request);
            }
        };
        // A fresh VM has no hook yet.
        let _ = vm.hooks.log.set(Box::new(hook));
        Ok(System {
            vm,
            user,
            standard_error,
            loader,
            servers,
            ending,
        })
    }
    /// Returns when everything that was sent to the logger and to the standard streams before has been written.
    pub fn flush(&self) {
        self.ending.settle();
    }
    /// Ends the system in order, as `init:stop/1` does: applications stop, output is flushed, the VM halts. Returns at once.
    pub fn stop(&self, status: i32) {
        self.ending.stop(Halt::Status(status));
    }
    /// Tells OTP's `erl_signal_server` of a signal of the operating system (`sigterm`): it is started for that. What is not
    /// handled otherwise ends the system in order at `sigterm`. Not on a thread of the VM.
    pub fn signal(&self, name: &str) {
        let vm = &self.vm;
        let (Ok(server), Ok(signal), Ok(notify)) = (
            vm.tables.atoms.intern("erl_signal_server"),
            vm.tables.atoms.intern(name),
            vm.tables.atoms.intern("notify"),
        ) else {
            return self.stop(0);
        };
        let started = self.servers.ensure(vm, server, Duration::from_secs(10));
        match vm.whereis(server).filter(|_| started) {
            Some(pid) => {
                let message = Carried::build(4, |f| f.tuple(&[notify.word(), signal.word()]));
                vm.send(pid, message);
            }
            None if name == "sigterm" => self.stop(0),
            None => {}
        }
    }
    /// Writes a text to standard error and waits until it is out.
    pub fn complain(&self, text: &str) {
        let text = text.to_owned();
        ending::request(&self.vm, self.standard_error, move |f| {
            let bytes = f.binary(text.as_bytes());
            f.tuple(&[atoms::PUT_CHARS.word(), atoms::UNICODE.word(), bytes])
        });
    }
    /// Prints on standard error how a process ended, as OTP's default handler does.
    pub fn print_crash(&self, pid: Word, reason: Word) {
        let vm = &self.vm;
        let level = atoms::ERROR.word();
        let request = {
            let mut f = Fragment::with_capacity(64);
            let format = f.string("Error in process ~p with exit value:~n~p~n");
            let args = f.list([pid, reason]);
            report_request(&vm.tables, vm.system_time_us(), level, format, args)
        };
        vm.send(self.standard_error, request);
        self.flush();
    }
    /// Spawns `module:function(args...)` with this group leader. Its exit is noted, and told to nobody else.
    pub fn spawn(
        &self,
        module: Word,
        function: Word,
        args: Word,
        leader: Word,
    ) -> Result<Word, SpawnError> {
        self.vm.spawn(
            &self.vm.default_namespace(),
            Start::Apply(module, function, args),
            &SpawnOptions {
                quiet: true,
                ..SpawnOptions::default()
            },
            Some(leader),
        )
    }
}

/// Without OTP's formatting: reports of crashes as lines of text.
fn log_without_otp(vm: &Arc<Vm>) {
    let weak = Arc::downgrade(vm);
    let hook = move |report: Word, tables: &Tables| {
        let (Some(vm), Some([_, level, format, args, _])) = (weak.upgrade(), report.as_tuple())
        else {
            return;
        };
        let level = level
            .as_atom()
            .map_or(String::new(), |a| tables.atoms.text(a).to_uppercase());
        let mut text = format!(
            "={level} REPORT==== {} ===\n",
            utc_text(vm.system_time_us())
        );
        let mut args = *args;
        let mut rest = *format;
        let mut tilde = false;
        while let Some((c, tail)) = rest.as_cons() {
            rest = tail;
            let c = c.as_small().and_then(|c| char::from_u32(c as u32));
            match (tilde, c.unwrap_or(' ')) {
                (false, '~') => tilde = true,
                (false, c) => text.push(c),
                (true, 'n') => {
                    text.push('\n');
                    tilde = false;
                }
                (true, 'p' | 'w' | 's') => {
                    if let Some((arg, more)) = args.as_cons() {
                        text.push_str(&text_of(tables, arg, TextStyle::Print, 1 << 16));
                        args = more;
                    }
                    tilde = false;
                }
                (true, _) => {}
            }
        }
        text.push('\n');
        // Where errors are told there is nobody to tell of this one.
        let _ = vm.door.write(Stream::Err, text.as_bytes());
    };
    // A fresh VM has no hook yet.
    let _ = vm.hooks.log.set(Box::new(hook));
}

/// The text of a report as the default handler prints it, as an I/O request that formats it in Erlang.
fn report_request(tables: &Tables, time_us: i64, level: Word, format: Word, args: Word) -> Carried {
    let level = level
        .as_atom()
        .map_or(String::new(), |a| tables.atoms.text(a).to_uppercase());
    let head = format!("={level} REPORT==== {} ===\n", utc_text(time_us));
    let atom = |t: &str| tables.atoms.intern(t).map_or(Word::NIL, |a| a.word());
    Carried::build(256, |f| {
        let format = Copying::new(format, CopyMode::Share).make(f);
        let args = Copying::new(args, CopyMode::Share).make(f);
        let mut chars = format;
        let mut items = Vec::new();
        while let Some((h, t)) = chars.as_cons() {
            items.push(h);
            chars = t;
        }
        let text: Vec<Word> = head
            .chars()
            .map(|c| Word::fixnum(i64::from(c as u32)))
            .chain(items)
            .chain("~n".chars().map(|c| Word::fixnum(i64::from(c as u32))))
            .collect();
        let format = f.list(text);
        let call = f.list([format, args]);
        let request = f.tuple(&[
            atoms::PUT_CHARS.word(),
            atoms::UNICODE.word(),
            atom("io_lib"),
            atom("format"),
            call,
        ]);
        // Nobody waits for the answer.
        f.tuple(&[
            atoms::IO_REQUEST.word(),
            Word::pid(u64::MAX >> 4),
            atoms::OK.word(),
            request,
        ])
    })
}

/// `1-Dec-2026::15:26:07.123456`, in UTC.
fn utc_text(time_us: i64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let seconds = time_us.div_euclid(1_000_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01 in the proleptic Gregorian calendar, in eras of 400 years.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!(
        "{day}-{}-{year}::{:02}:{:02}:{:02}.{:06}",
        MONTHS[month as usize - 1],
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        time_us.rem_euclid(1_000_000)
    )
}

/// Ends the OS process as `halt` wants. Standard streams are written through, so nothing is left to flush.
fn exit_program(halt: &Halt) {
    match halt {
        Halt::Crash(text) => eprintln!("{text}"),
        Halt::Abort => std::process::abort(),
        Halt::Status(_) => {}
    }
    std::process::exit(halt.status());
}

/// Stops a VM. On a thread of its own when the calling one is perhaps among those that are to be joined.
pub(crate) fn stop(vm: &Arc<Vm>) {
    if !crate::inside::is_inside() || vm.worker_count() == 0 {
        return vm.shutdown();
    }
    let vm = vm.clone();
    // Without a thread the VM's processes go on until the OS process ends: there is nobody who could wait for them.
    let _ = std::thread::Builder::new()
        .name("beamr-shutdown".into())
        .spawn(move || vm.shutdown());
}

impl Drop for System {
    fn drop(&mut self) {
        stop(&self.vm);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::utc_text(0), "1-Jan-1970::00:00:00.000000");
        assert_eq!(
            super::utc_text(1_709_210_096_000_007),
            "29-Feb-2024::12:34:56.000007"
        );
        assert_eq!(
            super::utc_text(4_102_444_799_999_999),
            "31-Dec-2099::23:59:59.999999"
        );
    }
}
