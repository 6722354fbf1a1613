//! Chores of the project: `cargo xtask demo`, `cargo xtask test`, ...
//!
//! No dependency besides the standard library, so that a first `cargo xtask` starts at once.

mod demo;
mod layers;
mod setup;
mod soak;
mod stdlib;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo           set up what is missing, build, compile an Erlang program and run it on real input
  test [PART]    set up what is missing and run everything CI runs; PART: fmt, clippy, unit, features, models, e2e
  setup          only install what demo and test need
  hostile ARGS   search for module files that harm the VM (`cargo xtask hostile --help`)
  natives        print how many of OTP's natives exist, weighted by their use, and which are missing
  stdlib-compile compile stdlib with OTP's compiler on this VM and on OTP, and compare (`--chroot DIR`, `--beamr PROGRAM`)
  soak [--minutes N] [--program FILE]
                 run a concurrency soak whose checker counts, and watch its memory (15 minutes)
  layers         check the arrows between crates
  help           this text";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.first().map(String::as_str) {
        Some("demo") => demo::run_demo(),
        Some("test") => test::run_parts(args.get(1).map(String::as_str)),
        Some("setup") => setup::packages().and_then(|()| setup::otp().map(|_| ())),
        Some("hostile") => hostile(&args[1..]),
        Some("natives") => example("beamr-natives", "natives", &[]),
        Some("stdlib-compile") => stdlib::compile(&args[1..]),
        Some("soak") => soak::soak(&args[1..]),
        Some("layers") => {
            layers::check().map(|n| println!("{n} arrows between crates, all allowed"))
        }
        None | Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!(
            "unknown command `{other}`; `cargo xtask help` lists them"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Builds and runs the example `hostile` of crate `beamr`, in the dev profile: its assertions and the heap verifier are
/// what finds faults.
fn hostile(args: &[String]) -> Result<(), String> {
    example("beamr", "hostile", args)
        .map_err(|e| format!("faults were found, or the search did not run: {e}"))
}

/// Builds and runs an example of a crate.
fn example(package: &str, name: &str, args: &[String]) -> Result<(), String> {
    let status = std::process::Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            package,
            "--example",
            name,
            "--",
        ])
        .args(args)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name}: {status}"))
    }
}
