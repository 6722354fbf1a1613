//! The `beamr` program.

use std::path::PathBuf;
use std::process::ExitCode;

use beamr::otp::OtpRoot;
use beamr::system::{BareOptions, System};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut options = Vec::new();
    let mut root = None;
    let mut workers = 1;
    let mut target = None;
    if args.next().as_deref() != Some("run") {
        eprintln!("usage: beamr run [-pa DIR]... [--otp-root DIR] [-S N] TARGET [ARG...]");
        return ExitCode::from(2);
    }
    while let Some(a) = args.next() {
        match a.as_str() {
            "-pa" => options.extend(args.next().map(PathBuf::from)),
            "--otp-root" => root = args.next().map(PathBuf::from),
            "-S" => workers = args.next().and_then(|s| s.parse().ok()).unwrap_or(1),
            _ => {
                target = Some(a);
                break;
            }
        }
    }
    let rest: Vec<String> = args.collect();
    let Some(target) = target else {
        eprintln!("beamr: no target");
        return ExitCode::from(2);
    };
    let env = std::env::var_os("BEAMR_OTP_ROOT").map(PathBuf::from);
    let otp = match OtpRoot::find(
        root.as_deref(),
        env.as_deref(),
        std::env::var_os("PATH").as_deref(),
    ) {
        Ok(o) => o,
        Err(e) => {
            eprintln!("beamr: {e}");
            return ExitCode::from(2);
        }
    };
    let mut bare = BareOptions::new(otp);
    bare.paths = options;
    bare.workers = workers;
    let system = match System::bare(bare) {
        Ok(s) => s,
        Err(e) => {
            eprintln!("beamr: {e}");
            return ExitCode::from(2);
        }
    };
    beamr::run::main(&system, &target, &rest)
}
