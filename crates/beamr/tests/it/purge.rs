//! Purged code and replaced terms: what still refers to them keeps its value, and their memory goes.

use std::sync::{Arc, Weak};

use beamr_term::{Leaving, Word};
use beamr_vm::code::{Image, Trust};

use crate::world::{World, show};

const V1: &[u8] = include_bytes!("data/p1/purged.beam");
const V2: &[u8] = include_bytes!("data/p2/purged.beam");
const CASES: &[u8] = include_bytes!("data/purge_cases.beam");

fn world() -> World {
    World::new(&[("purge_cases", CASES)], Trust::Trusted)
}

/// Makes a file the current code of `purged`.
fn load(w: &World, file: &[u8]) -> Weak<Image> {
    let modules = &w.vm.default_namespace().modules;
    let image = modules
        .prepare(file, Trust::Trusted, Some("purged"))
        .unwrap();
    let weak = Arc::downgrade(&image);
    modules.finish(&[image]).unwrap();
    weak
}

fn start(w: &World, function: &str) -> Word {
    let t = &w.vm.tables;
    let (m, f) = (
        t.atoms.intern("purge_cases").unwrap(),
        t.atoms.intern(function).unwrap(),
    );
    let pid = w.vm.spawn_mfa(m, f, Word::NIL).unwrap();
    w.vm.run_until_idle(1 << 20);
    pid
}

/// Purges the old code of `purged`.
fn purge(w: &World) {
    let purged = w.vm.tables.atoms.intern("purged").unwrap();
    assert!(w.vm.default_namespace().modules.purge(purged));
    w.vm.give_up_purged();
}

/// Tells the holder to end with what it holds.
fn held(w: &World, pid: Word) -> String {
    let tell = w.vm.tables.atoms.intern("tell").unwrap();
    w.vm.send(pid, beamr_vm::process::Carried::immediate(tell));
    let end = w.vm.run_until_exit(pid, None).unwrap();
    show(&w.vm.tables, end.reason.term)
}

#[test]
fn literals_are_copied_and_the_image_goes() {
    let w = world();
    let first = load(&w, V1);
    // In the heap, in messages that were not received, in a timer, in a dictionary, in a message on its way.
    let holders: Vec<Word> = ["heap", "mailbox", "timer", "dictionary", "fun_free"]
        .iter()
        .map(|f| start(&w, f))
        .collect();
    load(&w, V2);
    purge(&w);
    assert!(first.upgrade().is_some(), "not before its processes agree");
    w.vm.run_until_idle(1 << 20);
    assert!(first.upgrade().is_none(), "the image is freed");
    assert!(!w.vm.gives_up_literals());
    for h in holders {
        assert_eq!(
            held(&w, h),
            r#"{v1,[1,2,3],"a literal",{nested,{tuple,1.500000e+00}}}"#
        );
    }
}

#[test]
fn code_in_use_stays() {
    let w = world();
    let first = load(&w, V1);
    let runs = start(&w, "runs");
    load(&w, V2);
    purge(&w);
    w.vm.run_until_idle(1 << 20);
    assert!(first.upgrade().is_some(), "a process will return into it");
    assert_eq!(held(&w, runs), "v1");
    // The next purge takes it along.
    load(&w, V1);
    purge(&w);
    w.vm.run_until_idle(1 << 20);
    assert!(first.upgrade().is_none());
}

#[test]
fn the_same_file_can_come_back_meanwhile() {
    let w = world();
    let first = load(&w, V1);
    let heap = start(&w, "heap");
    load(&w, V2);
    purge(&w);
    let again = load(&w, V1);
    assert!(
        !Weak::ptr_eq(&first, &again),
        "an image that leaves is not reused"
    );
    w.vm.run_until_idle(1 << 20);
    assert!(first.upgrade().is_none() && again.upgrade().is_some());
    assert_eq!(w.exit_of("purge_cases", "value", &[]), "v1");
    assert!(held(&w, heap).starts_with("{v1,"));
}

#[test]
fn persistent_terms_that_are_replaced() {
    let w = world();
    let holder = start(&w, "persistent");
    let before = Leaving::words();
    let replace = start(&w, "replace");
    w.vm.run_until_idle(1 << 20);
    assert!(!w.vm.gives_up_literals());
    assert!(Leaving::words() <= before);
    assert_eq!(held(&w, holder), "{old,[a,b,c]}");
    assert_eq!(held(&w, replace), "{{new,[d]},undefined}");
}

#[test]
fn calls_of_funs_wait_for_the_end_of_a_purge() {
    let purged = |w: &World| w.vm.tables.atoms.intern("purged").unwrap();
    let tell = |w: &World, pid: Word| {
        let tell = w.vm.tables.atoms.intern("tell").unwrap();
        w.vm.send(pid, beamr_vm::process::Carried::immediate(tell));
        w.vm.run_until_idle(100);
        assert!(w.vm.is_alive(pid), "the call waits");
    };
    let end = |w: &World, pid: Word| {
        let end = w.vm.run_until_exit(pid, None).unwrap();
        show(&w.vm.tables, end.reason.term)
    };
    for keep in [true, false] {
        let w = world();
        load(&w, V1);
        let calls = start(&w, "calls");
        load(&w, V2);
        let modules = &w.vm.default_namespace().modules;
        assert!(modules.begin_purge(purged(&w)));
        tell(&w, calls);
        if keep {
            modules.abort_purge(purged(&w));
            assert_eq!(end(&w, calls), "v1");
        } else {
            purge(&w);
            let text = end(&w, calls);
            assert!(text.starts_with("{'EXIT',{{badfun,"), "{text}");
        }
    }
}
