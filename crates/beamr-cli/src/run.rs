//! `beamr run TARGET`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use beamr::run::{Outcome, Run, RunError, Target};
use beamr::system::{BareOptions, System};
use clap::ArgMatches;

use crate::{USAGE, message, otp_root};

/// Runs the target; every way to fail before it runs is one line and status 2.
pub fn run(m: &ArgMatches) -> ExitCode {
    let error = match try_run(m) {
        Ok(status) => std::process::exit(status),
        Err(e) => e,
    };
    match error.downcast_ref::<RunError>() {
        // Its errors are printed: the program failed.
        Some(RunError::Compile(_)) => return ExitCode::FAILURE,
        Some(RunError::NoModule(name)) => message::complain(&format!("{error}{}", hint(name))),
        _ => message::complain(&error.to_string()),
    }
    ExitCode::from(USAGE)
}

/// What the user may have meant by a module that is not there.
fn hint(name: &str) -> String {
    for kind in ["erl", "beam"] {
        let file = format!("{name}.{kind}");
        if Path::new(&file).is_file() {
            return format!("; there is a file {file} here: beamr run {file}");
        }
    }
    if Path::new(name).is_file() {
        return format!("; the file {name} here is no escript (it does not begin with `#!`)");
    }
    "; give its folder with -pa DIR".into()
}

/// Says on a terminal what takes long, and takes it back.
fn progress(file: Option<&Path>) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        // A closed stream changes nothing.
        let _ = match file {
            Some(f) => write!(out, "\rcompiling {} ...", f.display()),
            None => write!(out, "\r\x1b[K"),
        };
    }
}

fn paths(m: &ArgMatches, name: &str) -> Vec<PathBuf> {
    let all = m.get_many::<PathBuf>(name);
    all.into_iter().flatten().cloned().collect()
}

fn try_run(m: &ArgMatches) -> Result<i32, Box<dyn std::error::Error>> {
    let text = m.get_one::<String>("target").map_or("", String::as_str);
    let args: Vec<String> = m
        .get_many("args")
        .map(|a| a.cloned().collect())
        .unwrap_or_default();
    let otp = otp_root(m.get_one("otp-root"))?;
    let target = Target::parse(text)?;
    let mut options = BareOptions::new(otp);
    options.paths = paths(m, "pa");
    options.workers = match m.get_one::<u16>("schedulers") {
        Some(n) => usize::from(*n),
        None if options.workers == 0 => 0,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    options.here = true;
    options.halt_exits = true;
    for remark in target.configure(&args, &mut options) {
        message::complain(&remark);
    }
    let system = Arc::new(System::bare(options)?);
    #[cfg(unix)]
    crate::signals::install(&system);
    let include = paths(m, "include");
    let run = Run {
        args: &args,
        include: &include,
        progress: &progress,
    };
    Ok(match beamr::run::run(&system, &target, &run)? {
        Outcome::Done => 0,
        Outcome::Failed => 1,
        Outcome::Halted(n) => n,
    })
}
