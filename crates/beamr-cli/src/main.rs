//! The `beamr` program: runs Erlang modules in a bare system, inspects .beam files.
//!
//! Exit status: 0 when the target ended normally, 1 when it failed, N for `halt(N)`, 2 for wrong usage.

mod command;
mod inspect;
mod message;
mod run;
#[cfg(unix)]
mod signals;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use beamr::otp::{OtpRoot, OtpRootError};
use clap::ArgMatches;

/// Status for wrong usage: unknown option, missing file or module, no OTP root.
pub const USAGE: u8 = 2;

/// The OTP root given, or that of the environment.
pub fn otp_root(given: Option<&PathBuf>) -> Result<OtpRoot, OtpRootError> {
    let environment = std::env::var_os("BEAMR_OTP_ROOT").map(PathBuf::from);
    OtpRoot::find(
        given.map(PathBuf::as_path),
        environment.as_deref(),
        std::env::var_os("PATH").as_deref(),
    )
}

/// Prints to standard output; a closed stream changes nothing.
fn print(text: &[u8]) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            message::complain(&e.to_string());
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn version() -> ExitCode {
    let otp = match otp_root(None) {
        Ok(otp) => {
            let erts = otp.erts_version().unwrap_or_default();
            format!(
                "OTP {} (erts {erts}) at {}",
                otp.release.0,
                otp.path.display()
            )
        }
        Err(e) => e.to_string(),
    };
    print(
        format!(
            "beamr {}\nengine: interpreter\n{otp}\n",
            env!("CARGO_PKG_VERSION")
        )
        .as_bytes(),
    )
}

fn completions(m: &ArgMatches) -> ExitCode {
    let Some(shell) = m.get_one::<clap_complete::Shell>("shell") else {
        return ExitCode::from(USAGE);
    };
    let mut text = Vec::new();
    clap_complete::generate(*shell, &mut command::command(), "beamr", &mut text);
    print(&text)
}

fn man(m: &ArgMatches) -> ExitCode {
    let whole = command::command();
    let page = match m.get_one::<String>("command") {
        None => clap_mangen::Man::new(whole),
        Some(name) => match whole.get_subcommands().find(|c| c.get_name() == name) {
            Some(sub) => {
                let title = format!("beamr-{name}");
                clap_mangen::Man::new(sub.clone().display_name(title.clone())).title(title)
            }
            None => {
                message::complain(&format!(
                    "there is no subcommand `{name}` (see `beamr --help`)"
                ));
                return ExitCode::from(USAGE);
            }
        },
    };
    let mut text = Vec::new();
    match page.render(&mut text) {
        Ok(()) => print(&text),
        Err(e) => {
            message::complain(&e.to_string());
            ExitCode::FAILURE
        }
    }
}

fn main() -> ExitCode {
    let arguments = command::arguments(std::env::args_os());
    let matches: ArgMatches = match command::command().try_get_matches_from(arguments) {
        Ok(m) => m,
        Err(e) => return message::usage(&e),
    };
    match matches.subcommand() {
        Some(("run", m)) => run::run(m),
        Some(("inspect", m)) => inspect::inspect(m),
        Some(("completions", m)) => completions(m),
        Some(("man", m)) => man(m),
        _ if matches.get_flag("version") => version(),
        _ => ExitCode::from(USAGE),
    }
}
