//! `ets` and match specifications, against OTP 25, 27 and 29.

use beamr_term::Release;
use beamr_vm::code::Trust;

use crate::world::World;

const BEAM: &[u8] = include_bytes!("data/ets_cases.beam");

fn check(release: Release, expected: &str) {
    let w = World::of_release(release, &[("ets_cases", BEAM)], Trust::Trusted);
    for (i, expected) in expected.lines().enumerate() {
        let got = w.exit_of("ets_cases", "go", &[i as i64 + 1]);
        let failures = w.files.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        // The first item that differs, not two pages of text.
        if got != expected {
            let same = got
                .bytes()
                .zip(expected.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let from = same.saturating_sub(120);
            let part = |s: &str| {
                s.get(from..)
                    .unwrap_or("")
                    .chars()
                    .take(300)
                    .collect::<String>()
            };
            panic!(
                "case {}\n  got      {}\n  expected {}",
                i + 1,
                part(&got),
                part(expected)
            );
        }
    }
}

#[test]
fn natives_as_in_otp25() {
    check(Release::OTP25, include_str!("data/ets_cases.otp25.txt"));
}

#[test]
fn natives_as_in_otp27() {
    check(Release::OTP27, include_str!("data/ets_cases.otp27.txt"));
}

#[test]
fn natives_as_in_otp29() {
    check(Release::OTP29, include_str!("data/ets_cases.otp29.txt"));
}
