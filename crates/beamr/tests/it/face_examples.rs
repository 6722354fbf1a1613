//! Every example of the face runs to its end.

#[path = "../../examples/embed.rs"]
#[allow(dead_code)]
mod embed;
#[path = "../../examples/native_function.rs"]
#[allow(dead_code)]
mod native_function;
#[path = "../../examples/native_process.rs"]
#[allow(dead_code)]
mod native_process;
#[path = "../../examples/output_sink.rs"]
#[allow(dead_code)]
mod output_sink;
#[path = "../../examples/several_vms.rs"]
#[allow(dead_code)]
mod several_vms;
#[path = "../../examples/tenants.rs"]
#[allow(dead_code)]
mod tenants;

#[test]
fn example_embed() {
    embed::main().unwrap();
}

#[test]
fn example_native_function() {
    native_function::main().unwrap();
}

#[test]
fn example_native_process() {
    native_process::main().unwrap();
}

#[test]
fn example_output_sink() {
    output_sink::main().unwrap();
}

#[test]
fn example_several_vms() {
    several_vms::main().unwrap();
}

#[test]
fn example_tenants() {
    tenants::main().unwrap();
}
