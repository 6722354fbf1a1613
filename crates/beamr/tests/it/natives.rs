//! What natives give and how they fail, against OTP 25.

use beamr_vm::code::Trust;

use crate::world::World;

const BEAM: &[u8] = include_bytes!("data/native_cases.beam");
const EXPECTED: &str = include_str!("data/native_cases.otp25.txt");

#[test]
fn natives_give_what_otp_gives() {
    let w = World::new(&[("native_cases", BEAM)], Trust::Trusted);
    let mut wrong = String::new();
    for (i, expected) in EXPECTED.lines().enumerate() {
        let got = w.exit_of("native_cases", "go", &[i as i64 + 1]);
        if got != expected {
            wrong += &format!("case {}\n  got      {got}\n  expected {expected}\n", i + 1);
        }
    }
    let failures = w.files.failures.lock().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
    assert!(wrong.is_empty(), "{wrong}");
}
