//! The face: whole VMs: code, tenants, tables, output, services.

use std::sync::Arc;

use beamr::otp::OtpRoot;
use beamr::{
    AllCapabilitiesPolicy, AtomTable, BufferSink, EtsError, EtsProtection, EtsTableMetadata,
    EtsTableType, ExecError, ExitReason, HotLoadError, IoStream, LeastAuthorityPolicy,
    ModuleRegistry, NamespaceId, NamespaceOptions, NativeRegistry, OwnedTerm, PurgeError,
    Scheduler, SchedulerConfig, SchedulerServices, ServiceModeLabel, WithServicesError, atom,
};

use crate::face::{CASES, builder, unchecked, vm};

const V1: &[u8] = include_bytes!("data/v1/face_code.beam");
const V2: &[u8] = include_bytes!("data/v2/face_code.beam");

#[test]
fn code_is_replaced_under_running_processes() {
    let vm = vm();
    let version = || vm.call::<i64>("face_code", "version", ());
    let one = vm.hot_load_module(V1).unwrap();
    assert!(!one.had_old_version && !one.on_load_required);
    assert_eq!(version().unwrap(), 1);
    let stays = vm.spawn("face_code", "stay", ()).unwrap();
    let leaves = vm.spawn("face_code", "leave", ()).unwrap();
    for pid in [stays, leaves] {
        // In version 1, which a process that has not run yet is not.
        while vm.process_info::<beamr::AtomName>(pid, "status").unwrap() != Some(atom("waiting")) {
            std::thread::yield_now();
        }
    }
    let two = vm.hot_load_module(V2).unwrap();
    assert!(two.had_old_version && two.generation != one.generation);
    assert_eq!(version().unwrap(), 2);
    assert!(vm.check_old_code("face_code"));
    assert!(vm.check_process_code(stays, "face_code"));
    // Both are in old code until the one goes on.
    assert!(matches!(vm.purge_module("face_code"), Err(PurgeError::InUse(p)) if p.len() == 2));
    vm.send(leaves, 1).unwrap();
    match vm.purge_module("face_code") {
        Err(PurgeError::InUse(pids)) => assert_eq!(pids, [stays]),
        other => panic!("{other:?}"),
    }
    // Loading again is refused while there is old code.
    assert!(matches!(
        vm.hot_load_module(V1),
        Err(HotLoadError::NotPurged)
    ));
    let purged = vm.force_purge_module("face_code").unwrap();
    assert_eq!(purged.processes_killed, 1);
    assert_eq!(vm.run_until_exit(stays).0, ExitReason::Killed);
    assert!(!vm.check_old_code("face_code"));
    vm.send(leaves, atom("stop")).unwrap();
    assert_eq!(vm.run_until_exit(leaves).1.decode::<i64>().unwrap(), 2);
    // Nothing to purge is no error.
    assert_eq!(vm.purge_module("face_code").unwrap().processes_killed, 0);
    assert!(vm.delete_module("face_code"));
    assert!(!vm.delete_module("face_code") && !vm.is_loaded("face_code"));
    assert!(version().is_err());
}

#[test]
fn on_load_runs_before_the_module_is_there() {
    let vm = vm();
    let good = vm
        .hot_load_module(include_bytes!("data/with_on_load.beam"))
        .unwrap();
    assert!(good.on_load_required && good.on_load_succeeded);
    assert_eq!(vm.call::<i64>("with_on_load", "value", ()).unwrap(), 42);
    match vm.hot_load_module(include_bytes!("data/bad_on_load.beam")) {
        Err(HotLoadError::OnLoad(_)) => {}
        other => panic!("{other:?}"),
    }
    assert!(!vm.is_loaded("bad_on_load"));
}

#[test]
fn bytes_that_are_no_module() {
    let vm = vm();
    for bytes in [&b""[..], b"FOR1", &CASES[..200], &[0xFF; 5000]] {
        assert!(matches!(
            vm.hot_load_module(bytes),
            Err(HotLoadError::Load(_))
        ));
        assert!(ModuleRegistry::new().insert(bytes).is_err());
    }
    // Damaged anywhere: refused or harmless, never worse.
    for at in (0..CASES.len()).step_by(7) {
        let mut bytes = CASES.to_vec();
        bytes[at] ^= 0x55;
        if vm.hot_load_module(&bytes).is_ok() {
            let _ = vm.force_purge_module("face_cases");
            let _ = vm.call::<i64>("face_cases", "sum", (vec![1, 2],));
        }
    }
    let fresh = crate::face::vm();
    assert_eq!(
        fresh
            .call::<i64>("face_cases", "sum", (vec![1, 2],))
            .unwrap(),
        3
    );
}

#[test]
fn registries_of_modules_are_shared() {
    let modules = Arc::new(ModuleRegistry::new());
    assert_eq!(modules.insert(V1).unwrap(), "face_code");
    assert_eq!(modules.names(), ["face_code"]);
    let config = || SchedulerConfig {
        thread_count: Some(1),
        ..SchedulerConfig::default()
    };
    let one = Scheduler::new(config(), modules.clone()).unwrap();
    assert_eq!(one.call::<i64>("face_code", "version", ()).unwrap(), 1);
    modules.insert(V2).unwrap();
    let atoms = Arc::new(AtomTable::new(100_000));
    let natives = Arc::new(NativeRegistry::new());
    let two =
        Scheduler::with_code_server(config(), modules.clone(), atoms.clone(), natives.clone())
            .unwrap();
    assert_eq!(two.call::<i64>("face_code", "version", ()).unwrap(), 2);
    assert_eq!(one.call::<i64>("face_code", "version", ()).unwrap(), 1);
    assert!(Arc::ptr_eq(two.atom_table(), &atoms));
    assert_eq!(two.atom_limit(), 100_000);
    assert!(two.atom_count() > 0 && two.atom_count() < 100_000);
    assert!(modules.remove("face_code") && !modules.remove("face_code"));
    let policy = Arc::new(LeastAuthorityPolicy);
    let three =
        Scheduler::with_code_server_and_policy(config(), modules, atoms, natives, policy).unwrap();
    assert!(three.call::<i64>("face_code", "version", ()).is_err());
    assert!(matches!(
        three.spawn("erlang", "now", ()),
        Err(ExecError::Undef { .. })
    ));
}

#[test]
fn tenants_stay_within_their_budgets() {
    let vm = unchecked().build().unwrap();
    let options = NamespaceOptions::new().memory(16 << 20).processes(20);
    let tenant = vm.create_namespace_with(options).unwrap();
    let other = vm.create_namespace().unwrap();
    assert_ne!(tenant, other);
    let greedy = vm.spawn_in(tenant, "face_cases", "grow", ()).unwrap();
    assert_eq!(vm.run_until_exit(greedy).0, ExitReason::Killed);
    // Its memory is given back a moment later.
    while vm.namespace_usage(tenant).unwrap().memory > 1 << 20 {
        std::thread::yield_now();
    }
    // Its processes spawn into it, up to the limit.
    let pid = vm
        .spawn_in(tenant, "face_cases", "spawn_many", (100,))
        .unwrap();
    let (reason, _) = vm.run_until_exit(pid);
    let error = reason.exception().unwrap();
    assert_eq!(error.reason.to_string(), "system_limit");
    let used = vm.namespace_usage(tenant).unwrap();
    assert_eq!(used.processes, 19);
    assert!(used.reductions > 100 && used.memory > 0 && used.memory < 16 << 20);
    vm.spawn_in(tenant, "face_cases", "wait_for_one", ())
        .unwrap();
    assert!(matches!(
        vm.spawn_in(tenant, "face_cases", "wait_for_one", ()),
        Err(ExecError::SystemLimit(_))
    ));
    assert!(vm.set_namespace_limits(tenant, None, None));
    let n = vm.call_with::<i64>(
        beamr::SpawnedBy {
            namespace: tenant,
            ..Default::default()
        },
        None,
        "face_cases",
        "spawn_many",
        (100,),
    );
    assert_eq!(n.unwrap(), 100);
    assert!(!vm.set_namespace_limits(NamespaceId(77), None, None));
    assert!(vm.namespace_usage(NamespaceId(77)).is_none());
    // The others do not notice.
    assert_eq!(vm.namespace_usage(other).unwrap().processes, 0);
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
}

#[test]
fn tenants_have_their_own_modules_and_names() {
    let vm = vm();
    let [a, b] = [1, 2].map(|_| {
        vm.create_namespace_with(NamespaceOptions::new().empty())
            .unwrap()
    });
    vm.load_module_in(a, V1).unwrap();
    vm.load_module_in(b, V2).unwrap();
    let version = |namespace| {
        let by = beamr::SpawnedBy {
            namespace,
            ..Default::default()
        };
        vm.call_with::<i64>(by, None, "face_code", "version", ())
    };
    assert_eq!((version(a).unwrap(), version(b).unwrap()), (1, 2));
    assert!(version(NamespaceId::DEFAULT).is_err());
    assert!(vm.is_loaded_in(a, "face_code") && !vm.is_loaded("face_code"));
    // An empty one has no files of the VM.
    assert!(matches!(
        vm.spawn_in(a, "face_cases", "add", (1, 2)),
        Err(ExecError::Undef { .. })
    ));
    vm.load_module_in(a, CASES).unwrap();
    let pid = vm
        .spawn_in(a, "face_cases", "register_me", (atom("same"),))
        .unwrap();
    let child = vm
        .spawn_link(pid, "face_cases", "wait_for_one", ())
        .unwrap();
    assert_eq!(vm.process_namespace(child), Some(a));
    let other = vm
        .spawn("face_cases", "register_me", (atom("same"),))
        .unwrap();
    for pid in [pid, other] {
        vm.enqueue_atom_message(pid, "go");
        assert_eq!(vm.run_until_exit(pid).0, ExitReason::Normal);
    }
    // Code of a namespace is purged for itself.
    vm.hot_load_module_in(a, V2).unwrap();
    assert_eq!(version(a).unwrap(), 2);
    assert_eq!(
        vm.purge_module_in(a, "face_code").unwrap().processes_killed,
        0
    );
    assert!(matches!(
        vm.purge_module_in(NamespaceId(9), "face_code"),
        Err(PurgeError::NoNamespace(9))
    ));
    assert!(matches!(
        vm.hot_load_module_in(NamespaceId(9), V1),
        Err(HotLoadError::NoNamespace(9))
    ));
}

#[test]
fn tenants_get_no_more_than_is_granted() {
    let vm = vm();
    let options = NamespaceOptions::new().policy(&LeastAuthorityPolicy);
    let tenant = vm.create_namespace_with(options).unwrap();
    let undef = |f: &str| {
        matches!(
            vm.spawn_in(tenant, "erlang", f, ()),
            Err(ExecError::Undef { .. })
        )
    };
    assert!(undef("processes") || undef("now"));
    let pid = vm
        .spawn_in(tenant, "face_cases", "spawn_many", (1,))
        .unwrap();
    let e = vm.run_until_exit(pid).0.exception().unwrap();
    assert_eq!(e.reason.to_string(), "undef");
    // A namespace of a restricted VM is restricted.
    let vm = builder().policy(&LeastAuthorityPolicy).build().unwrap();
    let options = NamespaceOptions::new().policy(&AllCapabilitiesPolicy);
    let tenant = vm.create_namespace_with(options).unwrap();
    let pid = vm
        .spawn_in(tenant, "face_cases", "spawn_many", (1,))
        .unwrap();
    assert!(vm.run_until_exit(pid).0.exception().is_some());
}

#[test]
fn tables_of_the_host() {
    let vm = vm();
    let table = vm
        .create_ets_table(EtsTableMetadata::named("settings"))
        .unwrap();
    table.insert((atom("a"), 1)).unwrap();
    assert!(!table.insert_new((atom("a"), 2)).unwrap());
    assert!(table.insert_new((atom("b"), "x".repeat(100))).unwrap());
    assert_eq!(table.len(), 2);
    assert_eq!(
        table.lookup::<(beamr::AtomName, i64)>(atom("a")).unwrap(),
        [(atom("a"), 1)]
    );
    assert!(table.contains(atom("b")).unwrap() && !table.contains(atom("c")).unwrap());
    // Programs see it, and the host sees what they write.
    let call = |f: &str, args: Vec<OwnedTerm>| vm.call::<OwnedTerm>("ets", f, args).unwrap();
    let t = |v: &'static str| vm.term(atom(v)).unwrap();
    assert_eq!(
        call(
            "lookup_element",
            vec![t("settings"), t("a"), vm.term(2).unwrap()]
        )
        .to_string(),
        "1"
    );
    call(
        "insert",
        vec![t("settings"), vm.term((atom("c"), 3)).unwrap()],
    );
    let found = vm.lookup_ets_table_by_name("settings").unwrap();
    assert_eq!(
        found.lookup::<(beamr::AtomName, i64)>(atom("c")).unwrap()[0].1,
        3
    );
    assert_eq!(table.delete(atom("c")).unwrap(), 1);
    assert_eq!(table.delete(atom("c")).unwrap(), 0);
    // What is no row, and no table.
    assert!(matches!(table.insert(5), Err(EtsError::Term(_))));
    assert!(matches!(table.insert(vec![1]), Err(EtsError::Term(_))));
    assert!(matches!(
        vm.create_ets_table(EtsTableMetadata::named("settings")),
        Err(EtsError::NameTaken)
    ));
    let zero = EtsTableMetadata {
        keypos: 0,
        ..EtsTableMetadata::named("z")
    };
    assert!(matches!(
        vm.create_ets_table(zero),
        Err(EtsError::KeyPosition)
    ));
    let second = EtsTableMetadata {
        named: false,
        keypos: 2,
        kind: EtsTableType::Bag,
        protection: EtsProtection::Protected,
        ..EtsTableMetadata::named("bag")
    };
    let bag = vm.create_ets_table(second).unwrap();
    assert!(matches!(bag.insert((1,)), Err(EtsError::Term(_))));
    for n in 0..5 {
        bag.insert((n, atom("k"))).unwrap();
    }
    assert_eq!(
        bag.lookup::<(i64, beamr::AtomName)>(atom("k"))
            .unwrap()
            .len(),
        5
    );
    assert!(vm.lookup_ets_table_by_name("bag").is_none());
    assert!(vm.delete_ets_table(&table) && !vm.delete_ets_table(&table));
    assert!(table.is_deleted() && vm.lookup_ets_table_by_name("settings").is_none());
    assert!(matches!(table.insert((1, 2)), Err(EtsError::Deleted)));
}

#[test]
fn output_goes_where_it_is_told() {
    let one = Arc::new(BufferSink::default());
    let vm = builder().output(one.clone()).build().unwrap();
    vm.call::<bool>("face_cases", "print", ((1, "x"),)).unwrap();
    assert_eq!(one.take(IoStream::Out), "{1,<<\"x\">>}\r\n");
    let two = Arc::new(BufferSink::default());
    vm.set_output_sink(two.clone());
    vm.call::<bool>("face_cases", "print", (2,)).unwrap();
    assert_eq!(
        (one.take(IoStream::Out), two.take(IoStream::Out)),
        (String::new(), "2\r\n".into())
    );
    // A crash is reported on the other stream.
    let pid = vm.spawn("face_cases", "crash", (7,)).unwrap();
    vm.run_until_exit(pid);
    let report = two.take(IoStream::Err);
    assert!(report.starts_with("=ERROR REPORT===="), "{report}");
    assert!(
        report.contains(&format!("Error in process {pid} with exit value:\n")),
        "{report}"
    );
    assert!(report.contains("{badmatch,7}"), "{report}");
}

#[cfg(feature = "threads")]
#[test]
fn many_vms_live_side_by_side() {
    let vms: Vec<Scheduler> = (0..8)
        .map(|i| builder().threads(1 + i % 3).build().unwrap())
        .collect();
    std::thread::scope(|s| {
        for (i, vm) in vms.iter().enumerate() {
            s.spawn(move || {
                let own = atom(format!("only_in_{i}"));
                for n in 0..50 {
                    let t: OwnedTerm = vm
                        .call("face_cases", "identity", ((own.clone(), n),))
                        .unwrap();
                    assert_eq!(t.to_string(), format!("{{only_in_{i},{n}}}"));
                }
                vm.call::<OwnedTerm>("face_cases", "start_ping", (200,))
                    .unwrap();
            });
        }
    });
    for (i, vm) in vms.iter().enumerate() {
        assert_eq!(vm.thread_count(), 1 + i % 3);
        assert_eq!(vm.worker_names().len(), 1 + i % 3);
        for j in 0..8 {
            let known = vm.atom_table().lookup(&format!("only_in_{j}")).is_some();
            assert_eq!(known, i == j);
        }
    }
}

#[cfg(feature = "threads")]
#[test]
fn services_are_owned_or_absent() {
    let modules = || Arc::new(ModuleRegistry::new());
    let config = SchedulerConfig {
        thread_count: Some(1),
        dirty_io_threads: Some(2),
        ..SchedulerConfig::default()
    };
    let vm = Scheduler::new(config.clone(), modules()).unwrap();
    let of = |vm: &Scheduler, name: &str| {
        let all = vm.service_inventory();
        all.into_iter().find(|s| s.service == name).unwrap()
    };
    let io = of(&vm, "dirty-io");
    assert_eq!((io.mode, io.actual), (ServiceModeLabel::Owned, 2));
    assert_eq!(io.thread_names, ["beamr-dirty-io-0", "beamr-dirty-io-1"]);
    assert_eq!(of(&vm, "distribution").mode, ServiceModeLabel::Disabled);
    // A choice beats the configuration.
    let minimal =
        Scheduler::with_services(config.clone(), SchedulerServices::minimal(), modules()).unwrap();
    assert!(minimal.service_inventory().iter().all(|s| s.actual == 0));
    assert_eq!(minimal.process_count(), 0);
    // Who prints without standard I/O is told.
    let pid = minimal.spawn("erlang", "group_leader", ()).unwrap();
    let leader: beamr::Pid = minimal.run_until_exit(pid).1.decode().unwrap();
    assert!(!minimal.is_alive(leader));
    for (services, name) in [
        (
            SchedulerServices::from_config().owned_distribution(),
            "distribution",
        ),
        (
            SchedulerServices::from_config().owned_readiness(),
            "readiness",
        ),
        (
            SchedulerServices::from_config().owned_generic_io(),
            "generic-io-ring",
        ),
    ] {
        assert_eq!(
            services.validate(),
            Err(WithServicesError::Absent { service: name })
        );
        let e = Scheduler::with_services(config.clone(), services, modules()).unwrap_err();
        assert!(e.to_string().contains(name), "{e}");
    }
    let none = SchedulerServices::from_config().owned_dirty_cpu(0);
    assert_eq!(
        none.validate(),
        Err(WithServicesError::NoThreads {
            service: "dirty-cpu"
        })
    );
}

#[test]
fn nodes_have_names() {
    let config = SchedulerConfig {
        thread_count: Some(1),
        node_name: Some("a@b".into()),
        ..SchedulerConfig::default()
    };
    let vm = builder().config(config.clone()).build().unwrap();
    assert_eq!(
        vm.call::<beamr::AtomName>("erlang", "node", ()).unwrap(),
        "a@b"
    );
    for bad in ["", "a", "@b", "a@", "a@b@c"] {
        let config = SchedulerConfig {
            node_name: Some(bad.into()),
            ..config.clone()
        };
        assert!(builder().config(config).build().is_err(), "{bad:?}");
    }
}

#[test]
fn with_an_otp_its_libraries_are_there() {
    let otp = OtpRoot::find(None, None, std::env::var_os("PATH").as_deref()).unwrap();
    let release = otp.release.0;
    let sink = Arc::new(BufferSink::default());
    let vm = builder().otp(otp).output(sink.clone()).build().unwrap();
    assert_eq!(vm.release(), release);
    let sorted: Vec<i64> = vm.call("lists", "sort", (vec![3, 1, 2],)).unwrap();
    assert_eq!(sorted, [1, 2, 3]);
    let format = beamr::Charlist("~p ~s~n".into());
    let args = vm
        .build_term(|b| Ok(b.list(&[b.atom("x")?, b.charlist("text")])))
        .unwrap();
    vm.call::<()>("io", "format", (format, args)).unwrap();
    assert_eq!(sink.take(IoStream::Out), "x text\n");
    // A tenant has them too, as its own.
    let tenant = vm.create_namespace().unwrap();
    let by = beamr::SpawnedBy {
        namespace: tenant,
        ..Default::default()
    };
    let n: i64 = vm
        .call_with(by, None, "lists", "sum", (vec![1, 2, 3],))
        .unwrap();
    assert_eq!(n, 6);
}

#[test]
fn a_vm_without_threads_runs_where_it_is_waited_for() {
    let vm = builder().cooperative().build().unwrap();
    assert_eq!(vm.thread_count(), 0);
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
    // Nothing runs by itself.
    let pid = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    assert_eq!(vm.wait(pid, None), Err(beamr::WaitError::Stuck));
    let run = vm.run_until_idle(100);
    assert!(run.idle && run.next_timer.is_none());
    vm.send(pid, "go").unwrap();
    assert_eq!(vm.peek_exit_reason(pid), None);
    assert!(vm.run_until_idle(100).turns > 0);
    assert_eq!(vm.run_until_exit(pid).1.to_string(), "<<\"go\">>");
    // An endless process gives the host its turns back; questions to it are answered.
    let pid = vm.spawn("face_cases", "spin", ()).unwrap();
    let run = vm.run_until_idle(10);
    assert!(!run.idle && run.turns == 10);
    assert_eq!(vm.trap_exit(pid), Some(false));
    let watch = match vm.watch_exit(pid) {
        beamr::ExitWatchState::Live(w) => w,
        other => panic!("{other:?}"),
    };
    let soon = std::time::Duration::from_millis(3);
    assert_eq!(watch.wait_timeout(soon), Err(beamr::WaitError::Timeout));
    vm.terminate_process(pid, ExitReason::Kill);
    assert_eq!(watch.wait(), Ok(ExitReason::Killed));
    // Dirty functions run in place.
    assert!(vm.service_inventory().iter().all(|s| s.actual == 0));
}
