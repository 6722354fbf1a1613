//! Help, versions, completions, the manual, and what is said of wrong usage.

use crate::{beamr, otp_root, scratch};

#[test]
fn help_and_version() {
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["inspect", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
        &["help", "run"],
    ] {
        let r = beamr(args);
        assert_eq!((r.status, r.err.as_str()), (0, ""), "{args:?}");
        assert!(r.out.contains("Usage: beamr"), "{args:?}: {}", r.out);
    }
    let r = beamr(&["--version"]);
    let lines: Vec<&str> = r.out.lines().collect();
    assert_eq!(r.status, 0);
    assert!(lines[0].starts_with("beamr "), "{}", r.out);
    assert!(lines[1].starts_with("engine: "), "{}", r.out);
    let root = format!(" at {}", otp_root().display());
    assert!(
        lines[2].starts_with("OTP ") && lines[2].ends_with(&root),
        "{}",
        r.out
    );
    assert_eq!(beamr(&[]).status, 2);
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let r = beamr(&["completions", shell]);
        assert_eq!(r.status, 0);
        assert!(r.out.contains("otp-root"), "{shell}");
    }
    let r = beamr(&["man"]);
    assert!(r.status == 0 && r.out.contains(".TH beamr 1"), "{}", r.out);
    let r = beamr(&["man", "run"]);
    assert!(r.status == 0 && r.out.contains("FILE.erl"), "{}", r.out);
}

/// One line, status 2, and what to do.
fn wrong(args: &[&str], parts: &[&str]) {
    let r = beamr(args);
    assert_eq!((r.status, r.out.as_str()), (2, ""), "{args:?}: {}", r.err);
    assert!(
        r.err.starts_with("beamr: ") && r.err.trim_end().lines().count() == 1,
        "{args:?}: {}",
        r.err
    );
    for part in parts {
        assert!(r.err.contains(part), "{args:?}: {part} not in {}", r.err);
    }
}

#[test]
fn wrong_usage_is_one_line_with_a_remedy() {
    let dir = scratch("usage");
    std::fs::write(dir.join("text"), "no target").expect("a file");
    let text = dir.join("text").to_string_lossy().into_owned();
    wrong(&["run"], &["<TARGET>", "beamr run --help"]);
    wrong(&["rum", "x"], &["rum", "did you mean `run`?"]);
    wrong(
        &["run", "--otproot", "x", "y"],
        &["--otproot", "did you mean `--otp-root`?"],
    );
    wrong(&["run", "-S", "0", "x"], &["-S", "beamr run --help"]);
    wrong(&["run", "-S", "x", "x"], &["-S"]);
    wrong(
        &["run", "--otp-root", "/nonexistent", "x"],
        &["/nonexistent", "not an OTP root"],
    );
    wrong(&["run", "no_such_module_anywhere"], &["-pa DIR"]);
    wrong(
        &["run", "lists:no_such_function"],
        &["`lists` does not export no_such_function/1 or no_such_function/0"],
    );
    wrong(&["run", "missing.erl"], &["missing.erl", "No such file"]);
    wrong(&["run", "no/such/file"], &["no/such/file"]);
    wrong(&["run", &text], &["not something to run"]);
    wrong(&["inspect", "/nonexistent.beam"], &["/nonexistent.beam"]);
    wrong(&["man", "nothing"], &["nothing", "beamr --help"]);
    wrong(&["completions", "tcsh"], &["tcsh"]);
}

#[test]
fn without_an_otp_root() {
    let o = std::process::Command::new(env!("CARGO_BIN_EXE_beamr"))
        .args(["run", "x"])
        .env_remove("BEAMR_OTP_ROOT")
        .env("PATH", "/nonexistent")
        .output()
        .expect("the program");
    assert_eq!(o.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&o.stderr),
        "beamr: no OTP root: give --otp-root DIR, set BEAMR_OTP_ROOT, or install Erlang/OTP so that `erl` is on PATH\n"
    );
}
