//! Installs from Debian's packages what a command needs and finds the OTP root.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where build products go.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs a command in the project's root, with its output shown; an error names it.
pub fn run(cmd: &mut Command) -> Result<(), String> {
    let shown = format!("{cmd:?}").replace('"', "");
    println!("+ {shown}");
    let status = cmd
        .current_dir(root())
        .status()
        .map_err(|e| format!("{shown}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{shown}: {status}"))
    }
}

/// `cargo` with these arguments.
pub fn cargo(args: &[&str]) -> Command {
    let mut c = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    c.args(args);
    c
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(program).is_file()))
}

fn apt(packages: &[&str]) -> Result<(), String> {
    if !on_path("apt-get") {
        return Err(format!(
            "this machine has no apt-get; please install {}",
            packages.join(" ")
        ));
    }
    println!("installing {} from Debian's packages", packages.join(" "));
    // A failed update may only mean that one source is away: the installation tells.
    let _ = privileged(&["apt-get", "update", "-qq"]);
    let mut args = vec!["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    args.extend_from_slice(packages);
    privileged(&args)
}

/// As root, through sudo where the user is not root.
fn privileged(args: &[&str]) -> Result<(), String> {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    let mut c = if root {
        Command::new(args[0])
    } else {
        let mut c = Command::new("sudo");
        c.arg(args[0]);
        c
    };
    run(c.args(&args[1..]).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// The C linker that rustc needs.
pub fn packages() -> Result<(), String> {
    if on_path("cc") {
        Ok(())
    } else {
        apt(&["gcc", "libc6-dev"])
    }
}

/// Where the standard library of wasm32 comes from.
pub enum WasmStd {
    /// It is part of the toolchain.
    Installed,
    /// It is compiled from the sources of Debian's own compiler.
    Sources,
    /// There is none.
    Missing(String),
}

/// Looks for the standard library of wasm32; installs its sources from Debian's packages where the toolchain has none.
pub fn wasm_std() -> WasmStd {
    let out = Command::new("rustc")
        .args(["--print", "target-libdir", "--target"])
        .arg("wasm32-unknown-unknown")
        .output();
    let dir = out.map_or_else(|_| Vec::new(), |o| o.stdout);
    let dir = PathBuf::from(String::from_utf8_lossy(&dir).trim());
    if dir.is_absolute() && dir.is_dir() {
        return WasmStd::Installed;
    }
    // Debian has two compilers: that of the browser is new enough.
    let sources = || Path::new("/usr/lib/rustlib/src/rust/library/Cargo.lock").is_file();
    if Path::new("/usr/bin/rustc").is_file() && sources() {
        return WasmStd::Sources;
    }
    match apt(&["rustc-web", "rust-web-src", "lld"]) {
        Ok(()) if sources() => WasmStd::Sources,
        Ok(()) => WasmStd::Missing("the packages hold no sources".into()),
        Err(e) => WasmStd::Missing(e),
    }
}

/// The OTP root: `$BEAMR_OTP_ROOT`, that of the `erl` on PATH, or a fresh installation.
pub fn otp() -> Result<PathBuf, String> {
    if let Some(r) = std::env::var_os("BEAMR_OTP_ROOT") {
        return Ok(r.into());
    }
    if !on_path("erl") || !on_path("erlc") {
        println!("no Erlang/OTP found");
        apt(&[
            "erlang-base",
            "erlang-dev",
            "erlang-syntax-tools",
            "erlang-tools",
            "erlang-parsetools",
        ])?;
    }
    let usual = PathBuf::from("/usr/lib/erlang");
    if usual.join("lib").is_dir() {
        return Ok(usual);
    }
    let out = Command::new("erl")
        .args([
            "-noshell",
            "-eval",
            "io:put_chars(code:root_dir()), halt().",
        ])
        .output()
        .map_err(|e| format!("erl: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout).trim().to_string();
    if text.is_empty() {
        Err("`erl` does not tell its root".into())
    } else {
        Ok(text.into())
    }
}
