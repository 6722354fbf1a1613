//! Machine code and the interpreter in one process: the same functions on either engine, and calling each other
//! across engines, give the same values, stack traces, reductions and preemptions.
//!
//! This proves the layout of frames and positions (`beamr_vm::engine`, `beamr_vm::machine`) with the few operations that two test modules
//! need. It is no compiler: what it does not know it refuses.

mod asm;
mod emit;
mod helpers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use beamr_abi::{Ctx, Escape, NativeEntry, Regs};
use beamr_interp::Interp;
use beamr_term::{Atom, Release, Word};
use beamr_vm::code::Trust;
use beamr_vm::engine::{CodePos, Emitted, Engine, EngineError, Fixed, Stop};
use beamr_vm::lower::Lowered;
use beamr_vm::vm::VmOptions;

use crate::world::World;

const FILES: &[(&str, &[u8])] = &[
    ("spike_a", include_bytes!("../data/spike_a.beam")),
    ("spike_b", include_bytes!("../data/spike_b.beam")),
];

/// The interpreter, but for these modules.
struct Mixed {
    machine: Vec<Atom>,
    /// Modules that became machine code.
    translated: Arc<AtomicUsize>,
}

impl Engine for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError> {
        if self.machine.contains(&module.module) {
            let emitted = emit::emit(module)?;
            self.translated.fetch_add(1, Ordering::Relaxed);
            return Ok(emitted);
        }
        Interp.emit(module)
    }
    fn native_stub(&self, native: &'static NativeEntry) -> CodePos {
        Interp.native_stub(native)
    }
    fn fixed(&self, which: Fixed) -> CodePos {
        Interp.fixed(which)
    }
    unsafe fn run(&self, regs: &mut Regs) -> Stop {
        Interp.run(regs)
    }
}

static PANICS: &[NativeEntry] = &[NativeEntry::new("spike_natives", "panics", 0, panics)];
fn panics(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    panic!("a bug of a native")
}

fn world(machine: &[&str], translated: &Arc<AtomicUsize>) -> World {
    let release = Release::OTP25;
    let mut natives = beamr_natives::table(release).unwrap();
    natives.add(release, PANICS).unwrap();
    let options = VmOptions {
        verify_heaps: true,
        ..VmOptions::default()
    };
    World::with(release, FILES, Trust::Trusted, natives, options, |tables| {
        let machine = machine
            .iter()
            .map(|m| tables.atoms.intern(m).unwrap())
            .collect();
        Arc::new(Mixed {
            machine,
            translated: translated.clone(),
        })
    })
}

/// Runs a case under every division of the two modules between the engines.
fn check(case: &str) -> String {
    let run = |machine: &[&str]| {
        let translated = Arc::default();
        let w = world(machine, &translated);
        let case = w.vm.tables.atoms.intern(case).unwrap();
        let got = w.exit_with("spike_a", "go", |_| vec![case.word()]);
        let failures = w.files.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        assert_eq!(translated.load(Ordering::Relaxed), machine.len());
        got
    };
    let expected = run(&[]);
    for machine in [&["spike_a"][..], &["spike_b"], &["spike_a", "spike_b"]] {
        assert_eq!(
            run(machine),
            expected,
            "{case} with {machine:?} as machine code"
        );
    }
    expected
}

#[test]
fn calls_and_returns() {
    assert!(check("fib").starts_with("{987,"));
}

#[test]
fn tail_calls_do_not_grow_the_stack() {
    assert!(check("count").starts_with("{{20000,true},"));
}

#[test]
fn collections_see_frames_of_both() {
    assert!(check("list").starts_with("{4501500,"));
    assert!(check("collected").starts_with("[8002000,8002000,["));
}

#[test]
fn exceptions_and_traces() {
    let all = check("thrown");
    for part in [
        "{thrown,bottom,",
        "{badarith,",
        "{badfun,",
        "{undef,",
        "{function_clause,",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
}

#[test]
fn catches_of_both() {
    assert!(check("old_catch").starts_with("{{12,"));
}

#[test]
fn natives_that_trap_and_fail() {
    let got = check("natives");
    assert!(
        got.starts_with("{[{1,[1]},3001,true,true,[1],{2}],"),
        "{got}"
    );
}

#[test]
fn funs() {
    assert!(check("funs").starts_with("{[12,14,16],"));
}

#[test]
fn receiving_and_waiting() {
    assert!(check("waits").starts_with("{[465,{1,465},{2,464},"));
    assert!(check("slow").starts_with("{{late,0},"));
}

#[test]
fn preemption_comes_at_the_same_call() {
    let order = check("noise");
    assert!(order.contains("a,b") || order.contains("b,a"), "{order}");
}

#[test]
fn uncaught() {
    assert!(check("crash").starts_with("{bottom,["));
}

#[test]
fn a_panic_ends_the_process() {
    assert!(check("boom").contains("internal_error"));
}
