//! `cargo xtask test`: everything that CI runs, in parts.

use crate::setup::{WasmStd, cargo, otp, packages, run, wasm_std};

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

/// The cooperative build: what needs no threads runs the same tests without them, and compiles for wasm32.
fn features() -> Result<(), String> {
    run(&mut cargo(&[
        "test",
        "--quiet",
        "-p",
        "beamr-term",
        "-p",
        "beamr-interp",
        "-p",
        "beamr-vm",
        "-p",
        "beamr",
        "--no-default-features",
    ]))?;
    let check = &[
        "check",
        "--quiet",
        "--target",
        "wasm32-unknown-unknown",
        "-p",
        "beamr-natives",
        "-p",
        "beamr-interp",
        "-p",
        "beamr",
        "--no-default-features",
    ];
    match wasm_std() {
        WasmStd::Installed => run(&mut cargo(check)),
        WasmStd::Sources => run(cargo(check)
            .arg("-Zbuild-std=std,panic_abort")
            .env("RUSTC", "/usr/bin/rustc")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_DIR", crate::setup::target().join("wasm"))),
        WasmStd::Missing(why) => {
            println!("wasm32 is NOT checked: {why}");
            Ok(())
        }
    }
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
