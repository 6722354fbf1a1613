//! The program against a real OTP: output, error texts, exit statuses.
//!
//! The Erlang sources in `tests/erl` are compiled once with the `erlc` of the OTP root (`BEAMR_OTP_ROOT`, else the one on
//! PATH), which `cargo xtask test` installs.

mod expressions;
mod files;
mod io;
mod log;
mod ports;
mod run;
mod sched;
mod targets;
mod tracing;
mod usage;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// What a run of the program did.
#[derive(Debug)]
pub struct Ran {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// The same, as bytes.
    pub bytes: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(o: Output) -> Ran {
        Ran {
            status: o.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&o.stdout).into_owned(),
            bytes: o.stdout,
            err: String::from_utf8_lossy(&o.stderr).into_owned(),
        }
    }
}

/// The OTP root of the tests.
pub fn otp_root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| match std::env::var_os("BEAMR_OTP_ROOT") {
        Some(r) => r.into(),
        None => "/usr/lib/erlang".into(),
    })
}

/// The folder of compiled test modules.
pub fn beams() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("erl");
        std::fs::create_dir_all(&dir).expect("a folder for beams");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/erl");
        let files: Vec<PathBuf> = std::fs::read_dir(sources)
            .expect("the sources")
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "erl"))
            .collect();
        assert!(!files.is_empty());
        let erlc = otp_root().join("bin/erlc");
        let erlc = if erlc.is_file() { erlc } else { "erlc".into() };
        let o = Command::new(erlc)
            .arg("-o")
            .arg(&dir)
            .args(files)
            .output()
            .expect("erlc");
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stdout));
        dir
    })
}

/// Runs the program with these arguments.
pub fn beamr(args: &[&str]) -> Ran {
    Command::new(env!("CARGO_BIN_EXE_beamr"))
        .args(args)
        .env("BEAMR_OTP_ROOT", otp_root())
        .output()
        .expect("the program")
        .into()
}

/// An empty folder of one test.
pub fn scratch(name: &str) -> PathBuf {
    let dir = beams().join("scratch").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("a folder");
    dir.canonicalize().expect("its path")
}

/// As [`run`], with this standard input.
pub fn run_with(args: &[&str], input: &[u8]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_beamr"))
        .args(["run", "-pa"])
        .arg(beams())
        .args(args)
        .env("BEAMR_OTP_ROOT", otp_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut stdin = child.stdin.take().expect("its input");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // The program need not read everything.
        let _ = stdin.write_all(&input);
    });
    let ran = child.wait_with_output().expect("its end").into();
    writer.join().expect("the writer");
    ran
}

/// `beamr run -pa BEAMS TARGET ARGS`.
pub fn run(args: &[&str]) -> Ran {
    let dir = beams().to_string_lossy().into_owned();
    let mut all = vec!["run", "-pa", &dir];
    all.extend_from_slice(args);
    beamr(&all)
}
