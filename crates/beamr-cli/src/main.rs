//! The `beamr` program: runs Erlang modules in a bare system, inspects .beam files.
//!
//! Exit status: 0 when the target ended normally, 1 when it failed, N for `halt(N)`, 2 for wrong usage.

mod inspect;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// Status for wrong usage: unknown option, missing file or module, no OTP root.
pub const USAGE: u8 = 2;

fn command() -> Command {
    Command::new("beamr")
        .about("The BEAM in Rust: runs Erlang, Elixir and Gleam code")
        .version(concat!(env!("CARGO_PKG_VERSION"), " (engine interp)"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("run")
                .about("Run a module in a bare system (no OTP processes)")
                .long_about(
                    "Run TARGET in a bare system: modules load on first call from the -pa folders and the OTP root.\n\n\
                     TARGET is a module (calls main/1 with the arguments as strings, or main/0 when there is no main/1 and no \
                     argument), M:F (calls F/1 with the strings, or F/0), or the path of a .beam file.",
                )
                .arg(
                    Arg::new("pa")
                        .short('p')
                        .long("pa")
                        .value_name("DIR")
                        .action(ArgAction::Append)
                        .value_parser(value_parser!(PathBuf))
                        .help("Look for modules in DIR first (may be given several times; also written -pa)"),
                )
                .arg(otp_root())
                .arg(
                    Arg::new("schedulers")
                        .short('S')
                        .value_name("N")
                        .value_parser(value_parser!(u16).range(1..=1024))
                        .help("Worker threads [default: one per processor]"),
                )
                .arg(Arg::new("target").value_name("TARGET").required(true))
                .arg(
                    Arg::new("args")
                        .value_name("ARG")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true),
                ),
        )
        .subcommand(
            Command::new("inspect")
                .about("Show what is in a .beam file: chunks, imports, exports, code, literals, types, lines")
                .arg(Arg::new("file").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)))
                .arg(
                    Arg::new("validate")
                        .long("validate")
                        .action(ArgAction::SetTrue)
                        .help("Only say whether the code is valid as untrusted code"),
                ),
        )
}

fn otp_root() -> Arg {
    Arg::new("otp-root")
        .long("otp-root")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("The OTP installation [default: $BEAMR_OTP_ROOT, else that of the `erl` on PATH]")
}

/// `-pa` is written with one dash, as `erl` has it.
fn arguments() -> Vec<std::ffi::OsString> {
    let mut target_seen = false;
    let mut value_follows = false;
    std::env::args_os()
        .enumerate()
        .map(|(i, a)| {
            if i < 2 || target_seen {
                return a;
            }
            if value_follows {
                value_follows = false;
                return a;
            }
            match a.to_str() {
                Some("-pa") => {
                    value_follows = true;
                    "--pa".into()
                }
                Some("--pa" | "--otp-root" | "-S" | "-p") => {
                    value_follows = true;
                    a
                }
                Some(s) if s.starts_with('-') => a,
                _ => {
                    target_seen = true;
                    a
                }
            }
        })
        .collect()
}

fn main() -> ExitCode {
    let matches: ArgMatches = match command().try_get_matches_from(arguments()) {
        Ok(m) => m,
        Err(e) => {
            // Help and version go to standard output and are no errors; a closed stream changes nothing.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { USAGE } else { 0 });
        }
    };
    match matches.subcommand() {
        Some(("run", m)) => run::run(m),
        Some(("inspect", m)) => inspect::inspect(m),
        _ => ExitCode::from(USAGE),
    }
}
