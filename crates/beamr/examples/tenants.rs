//! Untrusted code in a namespace with budgets and without the outside.
//!
//! `cargo run -p beamr --example tenants`

use beamr::{ExitReason, LeastAuthorityPolicy, NamespaceOptions, Scheduler, SpawnedBy};

const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vm = Scheduler::builder().threads(2).build()?;
    let tenant = vm.create_namespace_with(
        NamespaceOptions::new()
            .memory(16 << 20)
            .processes(50)
            .policy(&LeastAuthorityPolicy),
    )?;
    // Checked as it is loaded: no file can do more than the VM lets it.
    vm.load_module_in(tenant, MODULE)?;

    // An endless list: the process is killed at its budget, and nobody else notices.
    let greedy = vm.spawn_in(tenant, "face_cases", "grow", ())?;
    let (reason, _) = vm.run_until_exit(greedy);
    println!("the greedy process: {reason}");
    assert_eq!(reason, ExitReason::Killed);

    // An endless loop: it is preempted, and killed by the host.
    let endless = vm.spawn_in(tenant, "face_cases", "spin", ())?;
    let by = SpawnedBy {
        namespace: tenant,
        ..SpawnedBy::default()
    };
    let sum: i64 = vm.call_with(by, None, "face_cases", "add", (1, 2))?;
    assert_eq!(sum, 3);
    vm.terminate_process(endless, ExitReason::Kill);
    assert_eq!(vm.run_until_exit(endless).0, ExitReason::Killed);

    let used = vm.namespace_usage(tenant).ok_or("the namespace is there")?;
    println!("{used:?}");
    assert_eq!(used.processes, 0);
    Ok(())
}
