//! The command line as `clap` knows it: what help, completions and the manual page are made of.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command, ValueHint, value_parser};

const STATUS: &str = "Exit status: 0 when the program ended normally, 1 when it failed, N when it called halt(N), 2 for wrong usage. \
                      An escript that fails has 127, as with OTP's escript.";

const RUN: &str = "Run TARGET in a bare system: no OTP applications are started; modules load on first call from the -pa folders and the \
OTP root, and OTP's own servers (file server, code server, logger, ...) start when they are first asked for.

TARGET is one of
  MODULE        calls MODULE:main/1 with the arguments as strings, or main/0 when there is no main/1 and no argument
  M:F           calls M:F/1 with the strings, or M:F/0
  FILE.erl      compiles the file, and the modules beside it that it mentions, with OTP's compiler in memory; then as MODULE (FILE.erl:F for F)
  FILE.beam     adds its folder to the code path; then as MODULE (FILE.beam:F for F)
  SCRIPT        a file that begins with #! (or an archive): runs it as OTP's escript does, with its %%! line
  FOLDER        a folder with ebin: adds it (and lib/*/ebin, deps/*/ebin, _build/default/lib/*/ebin in it) to the code path; calls main of
                the module that is named as its application, or starts the application and stays until it ends

Everything after TARGET belongs to the program.";

/// The whole command line.
pub fn command() -> Command {
    Command::new("beamr")
        .about("The BEAM in Rust: runs Erlang, Elixir and Gleam code")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_version_flag(true)
        .arg(
            Arg::new("version")
                .short('V')
                .long("version")
                .action(ArgAction::SetTrue)
                .help("Print the versions of the program and its engine, and the OTP that it would use"),
        )
        .arg_required_else_help(true)
        .args_conflicts_with_subcommands(true)
        .after_help(STATUS)
        .subcommand(
            Command::new("run")
                .about("Run a module, source file, escript or application")
                .long_about(RUN)
                .after_help(STATUS)
                .arg(
                    Arg::new("pa")
                        .short('p')
                        .long("pa")
                        .value_name("DIR")
                        .action(ArgAction::Append)
                        .value_parser(value_parser!(PathBuf))
                        .value_hint(ValueHint::DirPath)
                        .help("Look for modules in DIR first (may be given several times; also written -pa)"),
                )
                .arg(
                    Arg::new("include")
                        .short('I')
                        .long("include")
                        .value_name("DIR")
                        .action(ArgAction::Append)
                        .value_parser(value_parser!(PathBuf))
                        .value_hint(ValueHint::DirPath)
                        .help("Look for -include files of a FILE.erl in DIR, besides its own folder (may be given several times)"),
                )
                .arg(otp_root())
                .arg(
                    Arg::new("schedulers")
                        .short('S')
                        .value_name("N")
                        .value_parser(value_parser!(u16).range(1..=1024))
                        .help("Worker threads [default: one per processor]"),
                )
                .arg(
                    Arg::new("target")
                        .value_name("TARGET")
                        .required(true)
                        .value_hint(ValueHint::FilePath)
                        .help("What to run: MODULE, M:F, FILE.erl, FILE.beam, SCRIPT or FOLDER"),
                )
                .arg(
                    Arg::new("args")
                        .value_name("ARG")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("Arguments of the program"),
                ),
        )
        .subcommand(
            Command::new("inspect")
                .about("Show what is in a .beam file: chunks, imports, exports, code, literals, types, lines")
                .arg(
                    Arg::new("file")
                        .value_name("FILE")
                        .required(true)
                        .value_parser(value_parser!(PathBuf))
                        .value_hint(ValueHint::FilePath)
                        .help("The .beam file"),
                )
                .arg(
                    Arg::new("validate")
                        .long("validate")
                        .action(ArgAction::SetTrue)
                        .help("Only say whether the code is valid as untrusted code"),
                ),
        )
        .subcommand(
            Command::new("completions")
                .about("Print completions for a shell")
                .long_about(
                    "Print completions for a shell, to be put where it looks for them, e.g.\n  \
                     beamr completions bash > ~/.local/share/bash-completion/completions/beamr",
                )
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .required(true)
                        .value_parser(value_parser!(clap_complete::Shell))
                        .help("bash, elvish, fish, powershell or zsh"),
                ),
        )
        .subcommand(
            Command::new("man")
                .about("Print the manual page (beamr man | man -l -)")
                .arg(
                    Arg::new("command")
                        .value_name("COMMAND")
                        .help("The page of this subcommand"),
                ),
        )
}

fn otp_root() -> Arg {
    Arg::new("otp-root")
        .long("otp-root")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("The OTP installation [default: $BEAMR_OTP_ROOT, else that of the `erl` on PATH]")
}

/// `-pa` is written with one dash, as `erl` has it.
pub fn arguments(given: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut target_seen = false;
    let mut value_follows = false;
    given
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
                Some("--pa" | "--otp-root" | "--include" | "-I" | "-S" | "-p") => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn one_dash_before_pa() {
        let of = |words: &[&str]| -> Vec<String> {
            arguments(words.iter().map(|w| w.into()))
                .into_iter()
                .map(|w| w.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            of(&["beamr", "run", "-pa", "-pa", "-pa", "x", "m", "-pa"]),
            ["beamr", "run", "--pa", "-pa", "--pa", "x", "m", "-pa"]
        );
    }
}
