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

/// What has priority comes first, the rest in its order.
#[test]
fn messages_of_priority() {
    let files: &[(&str, &[u8])] = &[("priority", include_bytes!("data/priority.beam"))];
    let w = World::of_release(Release::OTP29, files, Trust::Trusted);
    assert_eq!(
        w.exit_of("priority", "run", &[]),
        "[{order,[p1,p2,a,n1,b,n2]},{plain_alias,[a,p1]},{reply,[p1,a]},{pid,[a,p1]},{unaliased,[a]},\
         {exit_alias,[{self_exit,because},a]},{exit_alias_plain,[a,{self_exit,because}]},{exit_plain_alias,[a,{self_exit,because}]},\
         {monitor,[{down,gone},a]},{monitor_alias,[{down,gone},a,pm]},{link,[{exit,gone},a]},{link_again,[{exit,gone},a]},\
         {link_back,[a,{exit,gone}]},{spawn_link,[{exit,gone},a]},{spawn_monitor,[{down,gone},a]},{selective,{got,b,[a]}},\
         {info,{true,true}},{bad,[badarg,badarg,badarg,badarg,badarg]}]"
    );
}
