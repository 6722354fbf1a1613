//! What exceptions carry, against OTP 25.

use beamr_vm::code::Trust;

use crate::world::World;

const BEAM: &[u8] = include_bytes!("data/trace_cases.beam");
const EXPECTED: &str = include_str!("data/trace_cases.otp25.txt");

fn check(trust: Trust) {
    let w = World::new(&[("trace_cases", BEAM)], trust);
    let mut wrong = String::new();
    for (i, expected) in EXPECTED.lines().enumerate() {
        let got = w.exit_of("trace_cases", "go", &[i as i64 + 1]);
        let failures = w.files.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        if got != expected {
            wrong += &format!("case {}\n  got      {got}\n  expected {expected}\n", i + 1);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn traces_of_trusted_code() {
    check(Trust::Trusted);
}

#[test]
fn traces_of_untrusted_code() {
    check(Trust::Untrusted);
}
