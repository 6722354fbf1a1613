//! Chooses how handlers hand over to each other.
//!
//! Sibling calls exist only where the compiler turns a call in tail position into a jump: at
//! opt-level 1 and above, on targets with an ordinary stack. Elsewhere, or with the feature `loop`, the
//! same handlers return to a loop (`cfg(beamr_loop)`).

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(beamr_loop)");
    println!("cargo::rustc-check-cfg=cfg(beamr_machine)");
    println!("cargo::rerun-if-changed=build.rs");
    let unoptimised = env::var("OPT_LEVEL").is_ok_and(|l| l == "0");
    let wasm = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|f| f.contains("wasm"));
    let narrow = env::var("CARGO_CFG_TARGET_ARCH")
        .is_ok_and(|a| !matches!(a.as_str(), "x86_64" | "aarch64" | "riscv64"));
    if unoptimised || wasm || narrow || env::var_os("CARGO_FEATURE_LOOP").is_some() {
        println!("cargo::rustc-cfg=beamr_loop");
        return;
    }
    // Where machine code exists, handlers may hand over to it (`beamr_vm::machine`).
    let is = |key: &str, value: &str| env::var(key).is_ok_and(|v| v == value);
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-cfg=beamr_machine");
    }
}
