//! Loading on first call, `on_load`, reloading, module information.

use beamr_term::Build;
use beamr_vm::code::Trust;

use crate::world::World;

const V1: &[u8] = include_bytes!("data/v1/reloaded.beam");
const V2: &[u8] = include_bytes!("data/v2/reloaded.beam");

fn world() -> World {
    let files: [(&str, &[u8]); 4] = [
        ("code_cases", include_bytes!("data/code_cases.beam")),
        ("with_on_load", include_bytes!("data/with_on_load.beam")),
        ("bad_on_load", include_bytes!("data/bad_on_load.beam")),
        ("handler", include_bytes!("data/handler.beam")),
    ];
    World::new(&files, Trust::Trusted)
}

fn check(function: &str, expected: &str) {
    let w = world();
    assert_eq!(w.exit_of("code_cases", function, &[]), expected);
    let failures = w.files.failures.lock().unwrap();
    assert!(failures.is_empty(), "{failures:?}");
}

#[test]
fn on_load_runs_before_the_first_call() {
    check("on_load", "{42,yes}");
}

#[test]
fn who_comes_second_waits_for_on_load() {
    // [42, 42] as the emulator prints it.
    check("on_load_twice", "\"**\"");
}

#[test]
fn a_module_whose_on_load_fails_is_not_there() {
    check(
        "on_load_fails",
        "{'EXIT',{undef,[{bad_on_load,value,[],[]},\
         {code_cases,on_load_fails,0,[{file,\"code_cases.erl\"},{line,15}]}]}}",
    );
}

#[test]
fn a_module_may_handle_its_undefined_functions() {
    check("handled", "{{some,[1,x]},known}");
}

#[test]
fn code_is_replaced_purged_and_deleted() {
    let w = world();
    let found = w.exit_with("code_cases", "reload", |f| vec![f.binary(V1), f.binary(V2)]);
    // A fun does not keep old code; when that is purged, it is bad.
    assert_eq!(
        found,
        "{ok,1,ok,true,{one,2},{not_purged,[reloaded]},false,'EXIT',ok,1,'EXIT',true,false,false}"
    );
}

#[test]
fn files_that_are_not_the_module() {
    let w = world();
    let found = w.exit_with("code_cases", "load_nothing", |f| vec![f.binary(V1)]);
    assert_eq!(found, "{{error,badfile},{error,badfile}}");
}

#[test]
fn module_information() {
    check(
        "info",
        "{handler,[{known,0},{'$handle_undefined_function',2},{module_info,0},{module_info,1}],[{vsn,[7]}],\
         <<92,201,59,163,14,167,105,75,122,35,121,47,242,120,136,62>>,\
         [{known,0},{helper,1},{'$handle_undefined_function',2},{module_info,0},{module_info,1}],true}",
    );
    check("exported", "[true,true,false,false]");
}
