//! Terms 10^6 deep and terms with 2^60 leaves in a few words: each walk over them ends, or gives up its slice and can be
//! killed, or is refused. `BEAMR_DEEP=10000000` for deeper ones.

use std::time::Duration;

use beamr_term::{Atom, Build, Fragment, Word, atoms};
use beamr_vm::code::Trust;
use beamr_vm::process::Carried;

use crate::world::{World, show};

const DEEP: &[u8] = include_bytes!("data/deep.beam");

/// Ops that end on terms of every kind.
const ENDING: &[&str] = &[
    "same",
    "equal",
    "order",
    "send",
    "spawn",
    "exit",
    "error",
    "key",
    "dictionary",
    "ets",
    "collect",
];

fn world() -> World {
    World::new(&[("deep", DEEP)], Trust::Untrusted)
}

fn depth() -> i64 {
    std::env::var("BEAMR_DEEP")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000)
}

fn atom(w: &World, text: &str) -> Atom {
    w.vm.tables.atoms.intern(text).unwrap()
}

fn spawn(w: &World, function: &str, args: &[Word]) -> Word {
    let mut f = Fragment::with_capacity(64);
    let args = f.list(args.iter().copied());
    let (m, function) = (atom(w, "deep"), atom(w, function));
    w.vm.spawn_mfa(m, function, args).unwrap()
}

/// The result of `deep:function(args...)`, or its exit reason.
fn result(w: &World, function: &str, args: &[Word]) -> String {
    let pid = spawn(w, function, args);
    let end = w.vm.run_until_exit(pid, Some(Duration::from_secs(300)));
    match end {
        Ok(end) => match &end.result {
            Some(r) => show(&w.vm.tables, r.term),
            None => {
                let limit = beamr_term::format::FormatLimit::items(200);
                let text = beamr_term::format::format_term(&w.vm.tables, end.reason.term, limit);
                format!("exit {}", String::from_utf8_lossy(&text))
            }
        },
        Err(e) => e.to_string(),
    }
}

fn every_op(kind: &str, n: i64, more: &[&str]) {
    let w = world();
    let kind = atom(&w, kind).word();
    for op in ENDING.iter().chain(more) {
        let op_atom = atom(&w, op).word();
        let got = result(&w, "run", &[op_atom, kind, Word::fixnum(n)]);
        assert_eq!(got, "true", "{op}");
        assert_eq!(w.vm.process_count(), 0, "{op}");
    }
}

#[test]
fn deep_lists() {
    every_op("left", depth(), &["hash", "binary"]);
}

#[test]
fn deep_tuples() {
    every_op("tuple", depth(), &["hash", "binary"]);
}

#[test]
fn deep_maps() {
    every_op("map", depth() / 10, &["hash", "binary"]);
}

#[test]
fn long_lists() {
    every_op("right", depth(), &["hash", "binary"]);
}

#[test]
fn endless_terms() {
    every_op("shared", 60, &[]);
}

/// What cannot end lets others run, and can be killed.
#[test]
fn endless_walks_are_killed() {
    let w = world();
    for op in [
        "phash2",
        "phash",
        "external_size",
        "iolist_size",
        "list_to_binary",
        "characters",
        "md5",
        "crc32",
        "flatten",
    ] {
        let long = spawn(&w, "forever", &[atom(&w, op).word(), Word::fixnum(60)]);
        w.vm.run_until_idle(4);
        assert!(w.vm.is_alive(long), "{op}");
        let other = spawn(&w, "count", &[Word::fixnum(20_000)]);
        // Ten slices of its own, and as many of the other.
        w.vm.run_until_idle(30);
        let end = w.vm.exits.take(other.local_number());
        let counted = end.and_then(|e| e.result).map(|r| r.term);
        assert_eq!(counted, Some(atom(&w, "counted").word()), "{op}");
        assert!(w.vm.is_alive(long), "{op}");
        assert!(w.vm.exit(long, Carried::immediate(atoms::KILL)));
        assert!(w.vm.run_until_idle(8).idle, "{op}");
        assert_eq!(w.vm.process_count(), 0, "{op}");
    }
    assert_eq!(w.vm.default_namespace().memory(), 0);
}

/// Natives over long data give up their slice before they are done, and can be killed then.
#[test]
fn long_natives_are_killed() {
    let w = world();
    for op in [
        "append",
        "reverse",
        "member",
        "keyfind",
        "keymember",
        "map_keys",
        "map_values",
        "map_pairs",
        "binary_to_term",
        "term_to_binary",
        "external_size",
        "phash2",
        "iolist_size",
        "iolist_to_binary",
        "md5",
        "characters",
    ] {
        let n = depth().max(300_000);
        let long = spawn(&w, "long", &[atom(&w, op).word(), Word::fixnum(n)]);
        // Making the data takes its time.
        assert!(w.vm.run_until_idle(100_000).idle, "{op}");
        assert!(
            w.vm.is_alive(long),
            "{op} ended before it was told to start"
        );
        w.vm.send(long, Carried::immediate(atom(&w, "go")));
        w.vm.run_until_idle(2);
        assert!(w.vm.is_alive(long), "{op} does not yield");
        assert!(w.vm.exit(long, Carried::immediate(atoms::KILL)));
        assert!(w.vm.run_until_idle(16).idle, "{op}");
        assert_eq!(w.vm.process_count(), 0, "{op}");
    }
    assert_eq!(w.vm.default_namespace().memory(), 0);
}

/// Numbers that ask for more memory than there is get an error, whether a budget or the machine says no.
#[test]
fn bombs_are_refused() {
    let ops = [
        "zeros",
        "behind",
        "sized",
        "copy",
        "tuple",
        "atomics",
        "counters",
        "spawn_heap",
        "flag_heap",
        "inflate",
        "shift",
        "shift_shifted",
    ];
    let explode = |w: &World, op: &str, bits: i64| {
        let got = result(w, "bomb", &[atom(w, op).word(), Word::fixnum(bits)]);
        assert_eq!(got, "system_limit", "{op} of 2^{} bits", bits.ilog2());
        assert_eq!(w.vm.process_count(), 0, "{op}");
    };
    let w = world();
    for op in ops {
        // The largest tuple is no bomb, and a compressed term says at most 4 GB, which a machine may have.
        if !matches!(op, "tuple" | "inflate") {
            explode(&w, op, 1 << 49);
        }
    }
    w.vm.default_namespace().set_memory_limit(16 << 20);
    for op in ops {
        explode(&w, op, 1 << 31);
    }
    assert_eq!(result(&w, "count", &[Word::fixnum(1000)]), "counted");
    assert_eq!(w.vm.default_namespace().memory(), 0);
}

/// What would fill the memory is refused at the budget.
#[test]
fn endless_results_are_refused() {
    let w = world();
    w.vm.default_namespace().set_memory_limit(32 << 20);
    for op in ["binary", "list_to_binary_long"] {
        let got = result(&w, "forever", &[atom(&w, op).word(), Word::fixnum(60)]);
        assert!(
            got.starts_with("exit {system_limit,") || got == "exit killed",
            "{op}: {got}"
        );
    }
    assert_eq!(w.vm.default_namespace().memory(), 0);
}

/// A long queue neither stops the VM nor outlives its process.
#[test]
fn queued_messages() {
    let w = world();
    let n = depth() / 10;
    let to = spawn(&w, "waits", &[]);
    assert!(w.vm.run_until_idle(8).idle);
    let got = result(&w, "flood", &[to, Word::fixnum(n * 10)]);
    assert_eq!(got, "done");
    let other = spawn(&w, "count", &[Word::fixnum(20_000)]);
    w.vm.run_until_idle(30 + n as usize);
    assert!(w.vm.exits.take(other.local_number()).is_some());
    assert!(w.vm.exit(to, Carried::immediate(atoms::KILL)));
    assert!(w.vm.run_until_idle(1000 + n as usize).idle);
    assert_eq!(w.vm.process_count(), 0);
    assert_eq!(result(&w, "flooded", &[Word::fixnum(n)]), "looked_through");
    assert_eq!(w.vm.default_namespace().memory(), 0);
}
