//! `cargo xtask test`: everything that CI runs, in parts.

use crate::setup::{cargo, otp, packages, run};

const PARTS: &[(&str, fn() -> Result<(), String>)] = &[
    ("fmt", fmt),
    ("clippy", clippy),
    ("unit", unit),
    ("features", features),
    ("models", models),
    ("e2e", e2e),
];

/// All parts, or the one named.
pub fn run_parts(part: Option<&str>) -> Result<(), String> {
    packages()?;
    match part {
        None => PARTS.iter().try_for_each(|(name, f)| {
            println!("== {name}");
            f().map_err(|e| format!("part {name}: {e}"))
        }),
        Some(p) => match PARTS.iter().find(|(name, _)| *name == p) {
            Some((_, f)) => f(),
            None => {
                let names: Vec<&str> = PARTS.iter().map(|p| p.0).collect();
                Err(format!("no part `{p}`; there are {}", names.join(", ")))
            }
        },
    }
}

fn fmt() -> Result<(), String> {
    run(&mut cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<(), String> {
    run(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

fn unit() -> Result<(), String> {
    run(&mut cargo(&[
        "test",
        "--workspace",
        "--exclude",
        "beamr-cli",
    ]))
}

/// The cooperative build: the term and interpreter tests without threads.
fn features() -> Result<(), String> {
    run(&mut cargo(&[
        "test",
        "--quiet",
        "-p",
        "beamr-term",
        "-p",
        "beamr-interp",
        "--no-default-features",
    ]))
}

/// Concurrency models of `beamr-sync` under loom.
fn models() -> Result<(), String> {
    run(cargo(&[
        "test",
        "--quiet",
        "--release",
        "-p",
        "beamr-sync",
        "--test",
        "loom",
    ])
    .env("RUSTFLAGS", "--cfg loom")
    .env("CARGO_TARGET_DIR", crate::setup::target().join("loom")))
}

/// The program against a real OTP: examples, error texts, exit statuses.
fn e2e() -> Result<(), String> {
    let otp = otp()?;
    run(cargo(&["test", "--package", "beamr-cli"]).env("BEAMR_OTP_ROOT", otp))
}
