//! `cargo xtask demo`: the main job on real input.

use std::process::Command;

use crate::setup::{cargo, otp, packages, root, run, target};

/// Builds, compiles `examples/erlang/wordfreq.erl` and runs it over the project's own documents.
pub fn run_demo() -> Result<(), String> {
    packages()?;
    let otp = otp()?;
    println!("OTP root: {}", otp.display());
    run(&mut cargo(&[
        "build",
        "--quiet",
        "--release",
        "--package",
        "beamr-cli",
    ]))?;
    let out = target().join("demo");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let erlc = otp.join("bin/erlc");
    let erlc = if erlc.is_file() { erlc } else { "erlc".into() };
    run(Command::new(erlc)
        .arg("-o")
        .arg(&out)
        .arg("examples/erlang/wordfreq.erl"))?;
    println!();
    let beamr = target().join("release/beamr");
    run(Command::new(beamr)
        .arg("run")
        .arg("--otp-root")
        .arg(&otp)
        .arg("-pa")
        .arg(&out)
        .arg("wordfreq")
        .args(["LICENSE", "README.md", "ARCHITECTURE.md"]))?;
    println!(
        "\nThe program is {}.",
        root().join("examples/erlang/wordfreq.erl").display()
    );
    Ok(())
}
