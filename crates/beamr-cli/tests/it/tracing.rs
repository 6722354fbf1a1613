//! Tracing: `tests/erl/tracing_test.erl` compares what is traced with what OTP traces.

use crate::run;

fn check(function: &str) {
    let r = run(&[&format!("tracing_test:{function}")]);
    assert_eq!((r.status, r.err.as_str()), (0, ""), "{function}: {}", r.out);
}

#[test]
fn events_of_processes() {
    check("events");
}

#[test]
fn sends_and_receives() {
    check("send_receive");
}

#[test]
fn flags_are_inherited() {
    check("inherited");
}

#[test]
fn one_tracer_per_process_and_session() {
    check("tracers");
}

#[test]
fn scheduling_and_collections() {
    check("scheduled");
}
