//! What instructions do, as compiled by three releases, against OTP (whose results are the same in all three).

use beamr_vm::code::Trust;

use crate::world::World;

const BEAMS: [(&str, &[u8]); 3] = [
    ("25", include_bytes!("data/engine_cases.25.beam")),
    ("27", include_bytes!("data/engine_cases.27.beam")),
    ("29", include_bytes!("data/engine_cases.29.beam")),
];
const EXPECTED: &str = include_str!("data/engine_cases.txt");

fn check(trust: Trust) {
    let mut wrong = String::new();
    for (release, beam) in BEAMS {
        let w = World::new(&[("engine_cases", beam)], trust);
        for (i, expected) in EXPECTED.lines().enumerate() {
            let got = w.exit_of("engine_cases", "go", &[i as i64 + 1]);
            let failures = w.files.failures.lock().unwrap();
            assert!(failures.is_empty(), "{failures:?}");
            let cases =
                |text: &str| -> Vec<String> { text.split(r#"",""#).map(str::to_owned).collect() };
            let (got, expected) = (cases(&got), cases(expected));
            for (g, e) in got.iter().zip(&expected) {
                if g != e {
                    wrong += &format!("OTP {release}\n  got      {g}\n  expected {e}\n");
                }
            }
            if got.len() != expected.len() {
                let n = expected.len();
                wrong += &format!("OTP {release}, group {}: not {n} cases: {got:?}\n", i + 1);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn trusted_code() {
    check(Trust::Trusted);
}

#[test]
fn untrusted_code() {
    check(Trust::Untrusted);
}
