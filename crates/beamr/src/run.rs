//! `beamr run`: a target with arguments in a bare system.

use std::path::Path;

use beamr_abi::ExceptionClass;
use beamr_term::format::{FormatLimit, format_term};
use beamr_term::{Atom, Build, Fragment, Word};
use beamr_vm::process::exit::ExitRecord;

use crate::system::System;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Module.
    pub module: String,
    /// Function; `main` unless the target names one.
    pub function: String,
}

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

impl Target {
    /// `M`, `M:F`, or the path of a .beam file (its folder is then to be searched first: the second value).
    pub fn parse(text: &str) -> (Target, Option<std::path::PathBuf>) {
        let path = Path::new(text);
        if path.extension().is_some_and(|e| e == "beam") {
            let module = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let folder = match path.parent() {
                Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
                _ => ".".into(),
            };
            return (
                Target {
                    module,
                    function: "main".into(),
                },
                Some(folder),
            );
        }
        let (module, function) = match text.split_once(':') {
            Some((m, f)) if !m.is_empty() && !f.is_empty() => (m, f),
            _ => (text, "main"),
        };
        (
            Target {
                module: module.into(),
                function: function.into(),
            },
            None,
        )
    }
}

/// Runs a target to its end: `F/1` with the arguments as strings, or `F/0` where there is no `F/1` and no argument.
/// Output is written when this returns.
pub fn run(system: &System, target: &Target, args: &[String]) -> Result<Outcome, RunError> {
    let vm = &system.vm;
    let atom = |text: &str| {
        vm.tables
            .atoms
            .intern(text)
            .map_err(|e| RunError::Name(text.into(), e))
    };
    let (module, function) = (atom(&target.module)?, atom(&target.function)?);
    let modules = vm.default_namespace().modules.clone();
    if matches!(
        modules.ensure_loaded(module)?,
        beamr_vm::code::table::Ensured::Missing
    ) {
        return Err(RunError::NoModule(target.module.clone()));
    }
    let with_args = has(system, module, function, 1);
    if !with_args && (!args.is_empty() || !has(system, module, function, 0)) {
        let f = &target.function;
        return Err(RunError::NoFunction {
            module: target.module.clone(),
            what: if args.is_empty() {
                format!("{f}/1 or {f}/0")
            } else {
                format!("{f}/1, which takes the arguments")
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
    let pid = system.spawn(module.word(), function.word(), list)?;
    let record = match vm.run_until_exit(pid, None) {
        Err(beamr_vm::vm::WaitError::Halted) => {
            let status = vm.halted().map_or(0, beamr_vm::vm::Halt::status);
            return Ok(Outcome::Halted(status));
        }
        other => other?,
    };
    system.flush();
    if record.result.is_some() {
        return Ok(Outcome::Done);
    }
    report(system, &record);
    Ok(Outcome::Failed)
}

fn has(system: &System, module: Atom, function: Atom, arity: u32) -> bool {
    let modules = &system.vm.default_namespace().modules;
    // A module with an on_load function gets its exports when that has run; its file tells what they will be.
    !modules.find(module, function, arity).is_null() || modules.pending_on_load(module).is_some()
}

/// Says why the target's process ended. Errors were reported by the emulator when they happened.
fn report(system: &System, record: &ExitRecord) {
    if record.class == ExceptionClass::Error {
        return;
    }
    let text = format_term(&system.vm.tables, record.reason.term, FormatLimit::LARGE);
    system.complain(&format!(
        "beamr: the program ended with exit reason {}\n",
        String::from_utf8_lossy(&text)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let t = |m: &str, f: &str| Target {
            module: m.into(),
            function: f.into(),
        };
        assert_eq!(Target::parse("hello"), (t("hello", "main"), None));
        assert_eq!(Target::parse("hello:go"), (t("hello", "go"), None));
        assert_eq!(
            Target::parse("Elixir.Hello"),
            (t("Elixir.Hello", "main"), None)
        );
        assert_eq!(
            Target::parse("a/b/hello.beam"),
            (t("hello", "main"), Some("a/b".into()))
        );
        assert_eq!(
            Target::parse("hello.beam"),
            (t("hello", "main"), Some(".".into()))
        );
    }
}
