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

#[test]
fn calls_of_functions() {
    check("calls");
}

#[test]
fn returns_and_exceptions() {
    check("returns");
}

#[test]
fn a_call_is_seen_once() {
    check("entries");
}

#[test]
fn calls_of_natives() {
    check("natives");
}

#[test]
fn counts_and_times() {
    check("counts");
}

#[test]
fn meta_breakpoints() {
    check("meta");
}

#[test]
fn modules_to_come() {
    check("loaded");
}

#[test]
fn tokens_of_sequential_tracing() {
    check("seq");
}

#[test]
fn trace_sessions() {
    check("sessions");
}

#[test]
fn dbg_works() {
    check("dbg");
}

#[test]
fn profilers_work() {
    check("profilers");
}
