//! `beamr run` and `beamr inspect`.

use crate::{beamr, beams, run};

#[test]
fn hello() {
    let r = run(&["e2e_hello"]);
    assert_eq!(
        (r.status, r.out.as_str(), r.err.as_str()),
        (0, "hello\n#{a => [1,2.5,\"text\"]}\nårö ≤\n", "")
    );
}

#[test]
fn arguments_are_strings() {
    let r = run(&["e2e_args", "one", "--two", "drei ü"]);
    assert_eq!(
        (r.status, r.out.as_str()),
        (0, "[\"one\",\"--two\",\"drei ü\"]\n"),
        "{}",
        r.err
    );
    let r = run(&["e2e_args:count", "a", "b"]);
    assert_eq!((r.status, r.out.as_str()), (0, "2\n"), "{}", r.err);
}

#[test]
fn a_path_is_a_target() {
    let file = beams()
        .join("e2e_hello.beam")
        .to_string_lossy()
        .into_owned();
    let r = beamr(&["run", &file]);
    assert_eq!(r.status, 0, "{}", r.err);
    assert!(r.out.starts_with("hello\n"));
}

#[test]
fn failures_have_status_1_and_say_why() {
    let r = run(&["e2e_fail:badarith"]);
    assert_eq!((r.status, r.out.as_str()), (1, ""));
    assert!(
        r.err
            .contains("with exit value:\n{badarith,[{erlang,'+',[1,a],"),
        "{}",
        r.err
    );
    assert!(r.err.contains("{e2e_fail,badarith,0,"), "{}", r.err);
    let r = run(&["e2e_fail:exits"]);
    assert_eq!(
        (r.status, r.err.as_str()),
        (1, "beamr: the program ended with exit reason {my,reason}\n")
    );
    let r = run(&["e2e_fail:throws"]);
    assert_eq!(r.status, 1);
    assert!(r.err.contains("{{nocatch,ball},"), "{}", r.err);
}

#[test]
fn halt_gives_the_status_and_keeps_the_output() {
    let r = run(&["e2e_fail:halts"]);
    assert_eq!(
        (r.status, r.out.as_str(), r.err.as_str()),
        (7, "before\n", "")
    );
}

#[test]
fn unlinked_crashes_are_reported_and_do_not_end_the_program() {
    let r = run(&["e2e_fail:child"]);
    assert_eq!((r.status, r.err.as_str()), (0, ""));
    let rest = r.out.strip_prefix("still here\n").expect("its output");
    assert!(
        rest.starts_with("=ERROR REPORT====") && rest.contains("{oops,["),
        "{rest}"
    );
}

#[test]
fn several_schedulers_give_the_same_result() {
    for s in ["1", "2", "4"] {
        let dir = beams().to_string_lossy().into_owned();
        let r = beamr(&["run", "-S", s, "-pa", &dir, "e2e_procs"]);
        assert_eq!(
            (r.status, r.out.as_str()),
            (0, "500500\nping 1000\ndown normal\nexit kaputt\n"),
            "-S {s}: {}",
            r.err
        );
    }
}

#[test]
fn inspect_lists_code() {
    let file = beams()
        .join("e2e_hello.beam")
        .to_string_lossy()
        .into_owned();
    let r = beamr(&["inspect", &file]);
    assert_eq!(r.status, 0, "{}", r.err);
    for part in ["module e2e_hello", "io:format/2", "main/0"] {
        assert!(r.out.contains(part), "{part} is missing");
    }
    let r = beamr(&["inspect", "--validate", &file]);
    assert_eq!(r.status, 0, "{}", r.err);
}
