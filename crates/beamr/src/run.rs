//! Running a [`Target`] with arguments in a bare system, to its end.

use std::path::{Path, PathBuf};

use beamr_abi::ExceptionClass;
use beamr_term::format::{FormatLimit, format_term};
use beamr_term::{Atom, Build, Fragment, Word, atoms};
use beamr_vm::code::table::Ensured;
use beamr_vm::process::exit::ExitRecord;

use crate::compile::{Progress, compile};
use crate::system::System;
pub use crate::target::{Target, TargetError};

/// How a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// Normally.
    Done,
    /// By an exception or exit reason that was printed.
    Failed,
    /// `halt(N)`.
    Halted(i32),
}

/// Why a target cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such module in any folder.
    #[error("there is no module `{0}` in the -pa folders or the OTP root")]
    NoModule(String),
    /// The module is there and cannot be loaded.
    #[error(transparent)]
    Load(#[from] beamr_vm::code::LoadError),
    /// No function to call.
    #[error("module `{module}` does not export {what}")]
    NoFunction {
        /// The module.
        module: String,
        /// What was looked for.
        what: String,
    },
    /// A source was not compiled; its errors were printed.
    #[error("{0} was not compiled")]
    Compile(String),
    /// A file cannot be read.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
    /// A name that is no atom.
    #[error("`{0}` is no module or function name: {1}")]
    Name(String, beamr_term::AtomError),
    /// No process.
    #[error(transparent)]
    Spawn(#[from] beamr_vm::process::spawn::SpawnError),
    /// The process's end was lost.
    #[error(transparent)]
    Wait(#[from] beamr_vm::vm::WaitError),
}

/// What a run needs besides its target.
pub struct Run<'a> {
    /// Arguments: strings.
    pub args: &'a [String],
    /// Folders for `-include` in sources, besides their own.
    pub include: &'a [PathBuf],
    /// Told of long compilations.
    pub progress: Progress<'a>,
}

impl<'a> Run<'a> {
    /// With these arguments, and nothing else.
    pub fn new(args: &'a [String]) -> Run<'a> {
        Run {
            args,
            include: &[],
            progress: &|_| {},
        }
    }
}

/// Runs a target to its end: a function `F/1` with the arguments as strings, or `F/0` where there is no `F/1` and no argument; an
/// escript; an application. Output is written when this returns. The system must have been made with what
/// [`Target::configure`] sets.
pub fn run(system: &System, target: &Target, run: &Run<'_>) -> Result<Outcome, RunError> {
    match target {
        Target::Module { module, function } => call(system, module, function, run.args),
        Target::Beam { path, function } => call(system, &stem(path), function, run.args),
        Target::Source { path, function } => {
            let module = match compile(system, path, run.include, run.progress) {
                Ok(m) => m,
                Err(e @ RunError::Compile(_)) => {
                    system.flush();
                    return Err(e);
                }
                Err(e) => return Err(e),
            };
            call(system, &module, function, run.args)
        }
        Target::Script { .. } => {
            let (module, function) = (atom(system, "escript")?, atom(system, "start")?);
            loaded(system, module, "escript")?;
            let mut f = Fragment::with_capacity(8);
            let args = f.list([Word::NIL]);
            to_the_end(system, module, function, args)
        }
        Target::Folder { application, .. } => {
            let module = atom(system, application)?;
            let main = atom(system, "main")?;
            let modules = &system.vm.default_namespace().modules;
            let there = !matches!(modules.ensure_loaded(module)?, Ensured::Missing);
            if there && (has(system, module, main, 1) || has(system, module, main, 0)) {
                return call(system, application, "main", run.args);
            }
            start(system, module)
        }
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn atom(system: &System, text: &str) -> Result<Atom, RunError> {
    let atoms = &system.vm.tables.atoms;
    atoms
        .intern(text)
        .map_err(|e| RunError::Name(text.into(), e))
}

fn loaded(system: &System, module: Atom, name: &str) -> Result<(), RunError> {
    let modules = &system.vm.default_namespace().modules;
    match modules.ensure_loaded(module)? {
        Ensured::Missing => Err(RunError::NoModule(name.to_owned())),
        _ => Ok(()),
    }
}

fn call(
    system: &System,
    module: &str,
    function: &str,
    args: &[String],
) -> Result<Outcome, RunError> {
    let (m, f) = (atom(system, module)?, atom(system, function)?);
    loaded(system, m, module)?;
    let with_args = has(system, m, f, 1);
    if !with_args && (!args.is_empty() || !has(system, m, f, 0)) {
        return Err(RunError::NoFunction {
            module: module.to_owned(),
            what: if args.is_empty() {
                format!("{function}/1 or {function}/0")
            } else {
                format!("{function}/1, which takes the arguments")
            },
        });
    }
    let mut fragment = Fragment::with_capacity(64);
    let list = if with_args {
        let items: Vec<Word> = args.iter().map(|a| fragment.string(a)).collect();
        let strings = fragment.list(items);
        fragment.list([strings])
    } else {
        Word::NIL
    };
    to_the_end(system, m, f, list)
}

/// Starts an application and what it needs, and stays until it ends, which only a failure or `init:stop/0` does.
fn start(system: &System, application: Atom) -> Result<Outcome, RunError> {
    let (module, function) = (
        atom(system, "application")?,
        atom(system, "ensure_all_started")?,
    );
    loaded(system, module, "application")?;
    let mut f = Fragment::with_capacity(8);
    let args = f.list([application.word(), atom(system, "permanent")?.word()]);
    let pid = system.spawn(module.word(), function.word(), args, system.user)?;
    let record = match wait(system, pid)? {
        Ok(record) => record,
        Err(halted) => return Ok(halted),
    };
    let result = record
        .result
        .as_ref()
        .map_or(record.reason.term, |r| r.term);
    let started = result
        .as_tuple()
        .is_some_and(|t| t.first().and_then(|w| w.as_atom()) == Some(atoms::OK));
    let controller = atom(system, "application_controller")?;
    match system.vm.whereis(controller).filter(|_| started) {
        Some(controller) => match wait(system, controller)? {
            Ok(record) => report(system, controller, &record),
            Err(halted) => return Ok(halted),
        },
        None => {
            let name = system.vm.tables.atoms.text(application).to_owned();
            let text = text(system, result);
            system.complain(&format!(
                "beamr: the application {name} did not start: {text}\n"
            ));
        }
    }
    system.flush();
    Ok(Outcome::Failed)
}

fn wait(system: &System, pid: Word) -> Result<Result<ExitRecord, Outcome>, RunError> {
    let vm = &system.vm;
    match vm.run_until_exit(pid, None) {
        Err(beamr_vm::vm::WaitError::Halted) => {
            let status = vm.halted().map_or(0, beamr_vm::vm::Halt::status);
            Ok(Err(Outcome::Halted(status)))
        }
        other => Ok(Ok(other?)),
    }
}

fn to_the_end(
    system: &System,
    module: Atom,
    function: Atom,
    args: Word,
) -> Result<Outcome, RunError> {
    let pid = system.spawn(module.word(), function.word(), args, system.user)?;
    let record = match wait(system, pid)? {
        Ok(record) => record,
        Err(halted) => return Ok(halted),
    };
    system.flush();
    if record.result.is_some() || record.reason.term.as_atom() == Some(atoms::NORMAL) {
        return Ok(Outcome::Done);
    }
    report(system, pid, &record);
    Ok(Outcome::Failed)
}

fn has(system: &System, module: Atom, function: Atom, arity: u32) -> bool {
    let modules = &system.vm.default_namespace().modules;
    // A module with an on_load function gets its exports when that has run; its file tells what they will be.
    !modules.find(module, function, arity).is_null() || modules.pending_on_load(module).is_some()
}

fn text(system: &System, term: Word) -> String {
    let text = format_term(&system.vm.tables, term, FormatLimit::LARGE);
    String::from_utf8_lossy(&text).into_owned()
}

/// Says on standard error why a process ended.
fn report(system: &System, pid: Word, record: &ExitRecord) {
    let reason = record.reason.term;
    if record.class == ExceptionClass::Exit {
        let reason = text(system, reason);
        system.complain(&format!(
            "beamr: the program ended with exit reason {reason}\n"
        ));
    } else {
        system.print_crash(pid, reason);
    }
}
