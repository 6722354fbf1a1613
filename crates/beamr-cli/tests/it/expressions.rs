//! A thousand one-line expressions, evaluated by `erl_eval` here and there: values, and class, reason, stack trace and text of
//! errors. `tests/expressions` has the expressions, what OTP 25, 27 and 29 give, and how that was recorded.

use std::path::Path;
use std::process::Command;

use crate::{beamr, otp_root};

/// The number of the release in the OTP root.
fn release() -> Option<u32> {
    std::fs::read_dir(otp_root().join("releases"))
        .ok()?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .max()
}

#[test]
fn expressions_give_what_otp_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expressions");
    let release = release().expect("an OTP root with a release");
    let Ok(expected) = std::fs::read_to_string(folder.join(format!("expected.{release}.txt")))
    else {
        eprintln!("nothing was recorded for OTP {release}");
        return;
    };
    let beams = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expressions");
    std::fs::create_dir_all(&beams).expect("a folder for beams");
    let erlc = otp_root().join("bin/erlc");
    let erlc = if erlc.is_file() { erlc } else { "erlc".into() };
    let compiled = Command::new(erlc)
        .arg("+deterministic")
        .arg("-o")
        .arg(&beams)
        .arg(folder.join("expressions.erl"))
        .status()
        .expect("erlc");
    assert!(compiled.success());
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let beams = beams.to_string_lossy();
    let (own, generated) = (path("natives.txt"), path("generated.txt"));
    let r = beamr(&["run", "-pa", &beams, "expressions", &own, &generated]);
    assert_eq!(r.status, 0, "{}", r.err);
    let (got, wanted): (Vec<&str>, Vec<&str>) =
        (r.out.lines().collect(), expected.lines().collect());
    let wrong: Vec<String> = got
        .iter()
        .zip(&wanted)
        .filter(|(g, w)| g != w)
        .map(|(g, w)| format!("got      {g}\nexpected {w}\n"))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(got.len(), wanted.len());
    assert!(wanted.len() > 1000);
}
