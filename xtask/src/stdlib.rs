//! `cargo xtask stdlib-compile`: OTP's compiler on this VM against OTP's compiler on OTP, over all modules of stdlib.
//!
//! Both compile the sources of an OTP root with the same options and folders; `xtask/erlang/beam_compare.erl`, run by OTP, compares the
//! results: code chunks byte for byte, literals after inflating, the rest as terms.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::setup::{cargo, otp, packages, root, run, target};

const USAGE: &str = "\
cargo xtask stdlib-compile [--chroot DIR] [--beamr PROGRAM] [--schedulers N]

  --chroot DIR       an OTP release of its own world: /usr/lib/erlang below DIR (needs root)
  --beamr PROGRAM    a program that is built already
  --schedulers N     workers of the VM (1)";

/// Where things are: names are as the programs see them. (A folder `stdlib-X` in the code path would be an application.)
struct Place {
    chroot: Option<PathBuf>,
    otp: PathBuf,
    work: PathBuf,
}

impl Place {
    /// A path as this program sees it.
    fn outside(&self, path: &Path) -> PathBuf {
        match &self.chroot {
            Some(dir) => dir.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_path_buf(),
        }
    }
    /// A command, in the other world if there is one, with the times of its run printed behind its output.
    fn timed(&self, program: &Path) -> Command {
        let mut c = Command::new("sh");
        c.args(["-c", "\"$@\" >&2; s=$?; times; exit $s", "sh"]);
        if let Some(dir) = &self.chroot {
            c.arg("chroot").arg(dir);
        }
        c.arg(program);
        c
    }
    fn command(&self, program: &Path) -> Command {
        match &self.chroot {
            Some(dir) => {
                let mut c = Command::new("chroot");
                c.arg(dir).arg(program);
                c
            }
            None => Command::new(program),
        }
    }
    /// The application's folder below `lib`.
    fn application(&self, name: &str) -> Result<PathBuf, String> {
        let lib = self.otp.join("lib");
        let entries =
            std::fs::read_dir(self.outside(&lib)).map_err(|e| format!("{}: {e}", lib.display()))?;
        entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .find(|n| n.strip_prefix(name).is_some_and(|r| r.starts_with('-')))
            .map(|n| lib.join(n))
            .ok_or_else(|| format!("no {name} in {}", lib.display()))
    }
}

/// Runs the comparison.
pub fn compile(args: &[String]) -> Result<(), String> {
    let (mut chroot, mut beamr, mut schedulers) = (None, None, "1".to_owned());
    let mut rest = args.iter();
    while let Some(a) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| USAGE.to_owned());
        match a.as_str() {
            "--chroot" => chroot = Some(PathBuf::from(value()?)),
            "--beamr" => beamr = Some(PathBuf::from(value()?)),
            "--schedulers" => schedulers = value()?,
            _ => return Err(USAGE.into()),
        }
    }
    let beamr = match beamr {
        Some(b) => b,
        None => {
            packages()?;
            run(&mut cargo(&[
                "build",
                "--release",
                "--package",
                "beamr-cli",
            ]))?;
            target().join("release/beamr")
        }
    };
    let place = match chroot {
        Some(dir) => Place {
            otp: "/usr/lib/erlang".into(),
            work: "/tmp/compiled_stdlib".into(),
            chroot: Some(dir),
        },
        None => Place {
            otp: otp()?,
            work: target().join("compiled_stdlib"),
            chroot: None,
        },
    };
    let io = |e: std::io::Error| e.to_string();
    let work = place.outside(&place.work);
    let _ = std::fs::remove_dir_all(&work);
    for dir in ["otp", "beamr"] {
        std::fs::create_dir_all(work.join(dir)).map_err(io)?;
    }
    std::fs::copy(beamr, work.join("program")).map_err(io)?;
    let erlc = place.otp.join("bin/erlc");
    let mut tools = place.command(&erlc);
    tools.arg("-o").arg(&place.work);
    for tool in ["erlc_main.erl", "beam_compare.erl"] {
        std::fs::copy(root().join("xtask/erlang").join(tool), work.join(tool)).map_err(io)?;
        tools.arg(place.work.join(tool));
    }
    run(&mut tools)?;

    let stdlib = place.application("stdlib")?;
    let source = stdlib.join("src");
    let mut files: Vec<PathBuf> = std::fs::read_dir(place.outside(&source))
        .map_err(|e| format!("{}: {e}", source.display()))?
        .flatten()
        .map(|e| source.join(e.file_name()))
        .filter(|p| p.extension().is_some_and(|e| e == "erl"))
        .collect();
    files.sort();
    let mut options = vec!["+debug_info".into(), "-I".into(), stdlib.join("include")];
    options.extend([
        "-I".into(),
        place.application("kernel")?.join("include"),
        "-o".into(),
    ]);
    println!("{} files of {}", files.len(), source.display());

    let mut otp_run = place.timed(&erlc);
    otp_run
        .args(&options)
        .arg(place.work.join("otp"))
        .args(&files);
    measure("erlc", &mut otp_run, &work.join("otp.log"))?;
    let mut our_run = place.timed(&place.work.join("program"));
    our_run
        .args(["run", "-S", &schedulers, "--otp-root"])
        .arg(&place.otp)
        .arg("-pa")
        .arg(&place.work)
        .arg("erlc_main");
    our_run
        .args(&options)
        .arg(place.work.join("beamr"))
        .args(&files);
    measure("beamr", &mut our_run, &work.join("beamr.log"))?;

    let mut compare = place.command(&place.otp.join("bin/erl"));
    let call = format!(
        "beam_compare:main([\"{0}/otp\", \"{0}/beamr\"])",
        place.work.display()
    );
    compare
        .arg("-noshell")
        .arg("-pa")
        .arg(&place.work)
        .args(["-eval", &call]);
    run(&mut compare)
}

/// Runs a timed command with its output in a file and prints its times.
fn measure(name: &str, command: &mut Command, log: &Path) -> Result<(), String> {
    let file = std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let start = Instant::now();
    let out = command
        .stderr(file)
        .output()
        .map_err(|e| format!("{name}: {e}"))?;
    let wall = start.elapsed().as_secs_f64();
    let times = String::from_utf8_lossy(&out.stdout);
    let cpu = times.lines().last().unwrap_or_default();
    println!("{name}: {wall:.1} s; user and system: {cpu}");
    if out.status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed; see {}", log.display()))
    }
}
