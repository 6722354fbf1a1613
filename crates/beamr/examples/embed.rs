//! Loads a module from bytes, calls a function, looks at a failure.
//!
//! `cargo run -p beamr --example embed`

use beamr::{CallError, ModuleRegistry, Scheduler};

/// Its source is beside it: `add(A, B) -> A + B.`, `crash(What) -> {wanted, _} = What, ok.`
const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let modules = ModuleRegistry::new();
    modules.insert(MODULE)?;
    let vm = Scheduler::builder().threads(2).modules(modules).build()?;

    let sum: i64 = vm.call("face_cases", "add", (40, 2))?;
    println!("40 + 2 = {sum}");
    assert_eq!(sum, 42);

    match vm.call::<()>("face_cases", "crash", ("nothing",)) {
        Err(CallError::Raised(e)) => println!("it failed: {e}"),
        other => return Err(format!("it should have failed: {other:?}").into()),
    }
    Ok(())
}
