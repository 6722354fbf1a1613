//! `beamr run TARGET`.

use std::path::PathBuf;
use std::process::ExitCode;

use beamr::otp::OtpRoot;
use beamr::run::{Outcome, Target};
use beamr::system::{BareOptions, System};
use clap::ArgMatches;

use crate::USAGE;

/// Runs the target; every way to fail before it runs is one line and status 2.
pub fn run(m: &ArgMatches) -> ExitCode {
    match try_run(m) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("beamr: {e}");
            ExitCode::from(USAGE)
        }
    }
}

fn try_run(m: &ArgMatches) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let text = m.get_one::<String>("target").map_or("", String::as_str);
    let args: Vec<String> = m
        .get_many("args")
        .map(|a| a.cloned().collect())
        .unwrap_or_default();
    let environment = std::env::var_os("BEAMR_OTP_ROOT").map(PathBuf::from);
    let otp = OtpRoot::find(
        m.get_one::<PathBuf>("otp-root").map(PathBuf::as_path),
        environment.as_deref(),
        std::env::var_os("PATH").as_deref(),
    )?;
    let (target, folder) = Target::parse(text);
    let mut options = BareOptions::new(otp);
    options.paths = folder.into_iter().collect();
    options
        .paths
        .extend(m.get_many::<PathBuf>("pa").into_iter().flatten().cloned());
    options.workers = match m.get_one::<u16>("schedulers") {
        Some(n) => usize::from(*n),
        None if options.workers == 0 => 0,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    options.halt_exits = true;
    options.arguments = args.clone();
    let system = System::bare(options)?;
    Ok(match beamr::run::run(&system, &target, &args)? {
        Outcome::Done => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::FAILURE,
        Outcome::Halted(n) => std::process::exit(n),
    })
}
