//! Several VMs in one program: each has its own atoms, modules, processes and threads.
//!
//! `cargo run -p beamr --example several_vms`

use std::sync::Arc;

use beamr::{ModuleRegistry, OwnedTerm, Scheduler, atom};

const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The files are shared, the modules are each VM's own.
    let modules = Arc::new(ModuleRegistry::new());
    modules.insert(MODULE)?;
    let vms: Vec<Scheduler> = (0..4)
        .map(|_| {
            Scheduler::builder()
                .threads(1)
                .modules(modules.clone())
                .build()
        })
        .collect::<Result<_, _>>()?;

    // A term of one VM goes to another by value.
    let mut term: OwnedTerm = vms[0].term((atom("seen_by"), Vec::<i64>::new()))?;
    for (n, vm) in vms.iter().enumerate() {
        let (tag, mut seen): (beamr::AtomName, Vec<usize>) =
            vm.call("face_cases", "identity", (&term,))?;
        seen.push(n);
        term = vm.term((tag, seen))?;
    }
    println!("{term}");
    assert_eq!(term.to_string(), "{seen_by,[0,1,2,3]}");
    Ok(())
}
