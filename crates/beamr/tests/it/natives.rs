//! What natives give and how they fail, against OTP 25 and 29.

use beamr_term::Release;
use beamr_vm::code::Trust;

use crate::world::World;

fn check(release: Release, module: &'static str, beam: &'static [u8], expected: &str) {
    let w = World::of_release(release, &[(module, beam)], Trust::Trusted);
    let mut wrong = String::new();
    for (i, expected) in expected.lines().enumerate() {
        let got = w.exit_of(module, "go", &[i as i64 + 1]);
        if got != expected {
            wrong += &format!("case {}\n  got      {got}\n  expected {expected}\n", i + 1);
        }
    }
    let failures = w.files.failures.lock().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn natives_give_what_otp_25_gives() {
    check(
        Release::OTP25,
        "native_cases",
        include_bytes!("data/native_cases.beam"),
        include_str!("data/native_cases.otp25.txt"),
    );
}

#[test]
fn natives_give_what_otp_29_gives() {
    check(
        Release::OTP29,
        "native_cases_29",
        include_bytes!("data/native_cases_29.beam"),
        include_str!("data/native_cases_29.otp29.txt"),
    );
}
