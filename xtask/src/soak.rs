//! `cargo xtask soak [--minutes N] [--program FILE]`: concurrency with a checker that counts, and memory that does not grow.
//!
//! `data/soak/soak.erl` says what runs. Here its memory is watched: resident bytes at the end, against those
//! after a third of the time. Each figure is the median of readings over a while, because a heap in the middle of a collection counts
//! twice.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::setup::{cargo, otp, packages, root, run, target};

/// What memory may grow by from a third of the time to the end.
const GROWTH: f64 = 1.05;

struct Options {
    minutes: f64,
    program: Option<String>,
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut o = Options {
        minutes: 15.0,
        program: None,
    };
    let mut args = args.iter();
    while let Some(a) = args.next() {
        let value = args.next().ok_or_else(|| format!("{a} wants a value"))?;
        match a.as_str() {
            "--minutes" => {
                o.minutes = value
                    .parse()
                    .ok()
                    .filter(|m| *m > 0.0)
                    .ok_or_else(|| format!("{value} is no number of minutes"))?;
            }
            "--program" => o.program = Some(value.clone()),
            _ => return Err(format!("unknown option {a}")),
        }
    }
    Ok(o)
}

/// See the module.
pub fn soak(args: &[String]) -> Result<(), String> {
    let o = options(args)?;
    packages()?;
    let otp = otp()?;
    let program = match o.program {
        Some(p) => p.into(),
        None => {
            run(&mut cargo(&[
                "build",
                "--quiet",
                "--release",
                "--package",
                "beamr-cli",
            ]))?;
            target().join("release/beamr")
        }
    };
    let out = target().join("soak");
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let erlc = otp.join("bin/erlc");
    let erlc = if erlc.is_file() { erlc } else { "erlc".into() };
    run(Command::new(erlc)
        .arg("-o")
        .arg(&out)
        .arg(root().join("xtask/data/soak/soak.erl")))?;
    let seconds = (o.minutes * 60.0) as u64;
    let mut child = Command::new(program)
        .args(["run", "-S", "2", "--otp-root"])
        .arg(&otp)
        .arg("-pa")
        .arg(&out)
        .args(["soak", &seconds.to_string()])
        .stdout(Stdio::inherit())
        .spawn()
        .map_err(|e| format!("the program: {e}"))?;
    let watched = watch(&mut child, seconds);
    if watched.is_err() {
        // It may be over already.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| e.to_string())?;
    let (third, end) = watched?;
    if !status.success() {
        return Err(format!("the checker found a fault ({status})"));
    }
    let ratio = end as f64 / third as f64;
    println!("resident: {third} kB after a third, {end} kB at the end, ratio {ratio:.3}");
    if ratio > GROWTH {
        return Err(format!("memory grows: more than {GROWTH} times"));
    }
    Ok(())
}

/// Resident kilobytes after a third of the time and before the end.
fn watch(child: &mut Child, seconds: u64) -> Result<(u64, u64), String> {
    let start = Instant::now();
    let total = Duration::from_secs(seconds);
    let window = total / 10;
    let mut at = |from: Duration| -> Result<u64, String> {
        let mut readings = Vec::new();
        while start.elapsed() < from + window {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("it ended early ({status})"));
            }
            if start.elapsed() >= from {
                readings.push(resident(child.id())?);
            }
            std::thread::sleep(window / 100);
        }
        readings.sort_unstable();
        let middle = readings.len() / 2;
        readings.get(middle).copied().ok_or("no reading".into())
    };
    let third = at(total / 3)?;
    let end = at(total * 85 / 100)?;
    Ok((third, end))
}

fn resident(pid: u32) -> Result<u64, String> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| format!("{path} has no VmRSS"))
}
