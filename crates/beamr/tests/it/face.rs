//! The face for embedding programs: what all its tests share, and values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use beamr::{
    AtomName, BigInt, Bytes, CallError, Charlist, ExecError, FromTerm, IntoTerm, ModuleRegistry,
    OwnedTerm, Pid, Place, Scheduler, SchedulerBuilder, TermError, TermErrorKind, TermKind,
    TextStyle, atom,
};

pub const CASES: &[u8] = include_bytes!("data/face_cases.beam");

/// Three workers, checked heaps, the test modules.
pub fn builder() -> SchedulerBuilder {
    unchecked().verify_heaps()
}

/// The same for tests with heaps that take long to check.
pub fn unchecked() -> SchedulerBuilder {
    let modules = ModuleRegistry::new();
    modules.insert(CASES).unwrap();
    Scheduler::builder().threads(3).release(25).modules(modules)
}

pub fn vm() -> Scheduler {
    builder().build().unwrap()
}

#[cfg(feature = "threads")]
pub fn vm_with(natives: beamr::NativeRegistry) -> Scheduler {
    builder().natives(natives).build().unwrap()
}

fn round<T: IntoTerm + FromTerm + Clone + PartialEq + std::fmt::Debug>(vm: &Scheduler, value: T) {
    let term = vm.term(value.clone()).unwrap();
    assert_eq!(term.decode::<T>().unwrap(), value, "{term}");
    // Through the VM and back.
    let back: T = vm.call("face_cases", "identity", (value.clone(),)).unwrap();
    assert_eq!(back, value);
}

#[test]
fn values_come_back_as_they_went() {
    let vm = vm();
    for n in [
        0,
        -1,
        i64::MAX,
        i64::MIN,
        (1 << 59) - 1,
        1 << 59,
        -(1 << 59),
        -(1 << 59) - 1,
    ] {
        round(&vm, n);
    }
    round(&vm, u64::MAX);
    round(&vm, i128::MAX);
    round(&vm, i128::MIN);
    round(&vm, u128::MAX);
    round(&vm, 255u8);
    round(&vm, -128i8);
    round(
        &vm,
        "-1234567890123456789012345678901234567890123"
            .parse::<BigInt>()
            .unwrap(),
    );
    round(&vm, 1.5f64);
    round(&vm, -0.25f32);
    round(&vm, true);
    round(&vm, 'é');
    round(&vm, String::from("grüße"));
    round(&vm, String::from("long").repeat(100));
    round(&vm, Bytes(vec![0, 255, 128]));
    round(&vm, Charlist("λx".into()));
    round(&vm, atom("an atom"));
    round(&vm, ());
    round(&vm, vec![vec![1, 2], vec![]]);
    round(&vm, (1, String::from("a"), atom("b")));
    round(&vm, Some(5));
    round(&vm, None::<i64>);
    round(&vm, Ok::<i64, String>(5));
    round(&vm, Err::<i64, String>("bad".into()));
    round(
        &vm,
        BTreeMap::from([(1, "a".to_owned()), (2, "b".to_owned())]),
    );
    let big: HashMap<i64, Vec<i64>> = (0..100).map(|n| (n, vec![n; 3])).collect();
    round(&vm, big);
    round(&vm, Pid::from(77));
}

#[test]
fn terms_are_told_apart_and_read() {
    let vm = vm();
    let t = vm
        .build_term(|b| {
            let list = b.list(&[b.integer(1), b.atom("two")?, b.float(3.0)?]);
            let map = b.map(&[(b.atom("k")?, b.binary(b"v")), (b.atom("k")?, b.nil())]);
            Ok(b.tuple(&[list, map, b.cons(b.integer(1), b.integer(2)), b.bool(true)]))
        })
        .unwrap();
    assert_eq!(t.to_string(), "{[1,two,3.0],#{k => []},[1|2],true}");
    let root = t.root();
    assert_eq!(root.kind(), TermKind::Tuple);
    assert_eq!(root.tuple_len(), Some(4));
    let list = root.element(0).unwrap();
    let items: Vec<String> = list.list().unwrap().map(|t| t.to_string()).collect();
    assert_eq!(items, ["1", "two", "3.0"]);
    let map = root.element(1).unwrap();
    assert_eq!(map.map_size(), Some(1));
    assert!(map.get_atom("k").unwrap().is_nil());
    assert!(map.get_atom("not an atom of this VM yet").is_none());
    let mut improper = root.element(2).unwrap().list().unwrap();
    assert_eq!(improper.by_ref().count(), 1);
    assert_eq!(improper.tail().as_i64(), Some(2));
    assert!(root.element(4).is_none());
    assert_eq!(root.elements().unwrap().len(), 4);
    assert!(list > map && map > root.element(3).unwrap());
}

fn kind_of<T: FromTerm + std::fmt::Debug>(vm: &Scheduler, term: impl IntoTerm) -> TermError {
    vm.term(term).unwrap().decode::<T>().unwrap_err()
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let vm = vm();
    assert_eq!(
        kind_of::<i64>(&vm, "x").to_string(),
        "expected an integer, found <<\"x\">>"
    );
    assert_eq!(
        kind_of::<u8>(&vm, 256).to_string(),
        "256 is out of the range of u8"
    );
    assert_eq!(
        kind_of::<u64>(&vm, -1).to_string(),
        "-1 is out of the range of u64"
    );
    assert_eq!(
        kind_of::<i64>(&vm, i128::MAX).to_string(),
        format!("{} is out of the range of i64", i128::MAX)
    );
    assert_eq!(
        kind_of::<(i64, i64)>(&vm, (1, 2, 3)).to_string(),
        "expected a tuple of 2, found one of 3"
    );
    let deep = kind_of::<Vec<(AtomName, i64)>>(&vm, vec![(atom("a"), atom("b"))]);
    assert_eq!(
        deep.to_string(),
        "item 1: element 2: expected an integer, found b"
    );
    let path: Vec<&Place> = deep.path().collect();
    assert_eq!(path, [&Place::Item(1), &Place::Element(2)]);
    let map = kind_of::<HashMap<AtomName, i64>>(&vm, HashMap::from([(atom("k"), "v")]));
    assert_eq!(
        map.to_string(),
        "the value of key k: expected an integer, found <<\"v\">>"
    );
    let improper = vm
        .build_term(|b| Ok(b.cons(b.integer(1), b.integer(2))))
        .unwrap();
    assert_eq!(
        improper.decode::<Vec<i64>>().unwrap_err().kind(),
        &TermErrorKind::Improper
    );
    let not_utf8 = vm.term(Bytes(vec![0xFF])).unwrap();
    assert!(not_utf8.decode::<String>().is_err());
    for value in [f64::NAN, f64::INFINITY] {
        assert_eq!(
            vm.term(value).unwrap_err().kind(),
            &TermErrorKind::NotFinite
        );
    }
    let long = "x".repeat(256);
    let e = vm.term((1, atom(long.clone()))).unwrap_err();
    assert_eq!(
        e.to_string(),
        "element 2: an atom may have at most 255 characters"
    );
    match vm.spawn(long.as_str(), "f", ()) {
        Err(ExecError::Term(e)) => assert!(matches!(e.kind(), TermErrorKind::Atom(_))),
        other => panic!("{other:?}"),
    }
    // The value of a call is of another type than asked for.
    match vm.call::<String>("face_cases", "add", (1, 2)) {
        Err(CallError::Value(e)) => {
            assert_eq!(e.to_string(), "expected a binary in UTF-8, found 3");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn texts_are_those_of_otp() {
    let vm = vm();
    for line in include_str!("data/face_texts.otp25.txt").lines() {
        let mut fields = line.split('\t');
        let hex = fields.next().unwrap();
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        let term = vm.term_from_etf(&bytes).unwrap();
        assert_eq!(term.text(TextStyle::Write), fields.next().unwrap());
        assert_eq!(term.text(TextStyle::Print), fields.next().unwrap());
        assert_eq!(vm.term_from_etf(&term.to_etf().unwrap()).unwrap(), term);
    }
}

#[test]
fn deep_and_long_terms_are_printed_without_stack() {
    let vm = vm();
    let deep = vm
        .build_term(|b| {
            let mut t = b.nil();
            for _ in 0..200_000 {
                t = b.tuple(&[t]);
            }
            Ok(t)
        })
        .unwrap();
    let text = deep.to_string();
    assert!(text.len() <= (1 << 16) + 3 && text.ends_with("..."));
    assert_eq!(deep.text(TextStyle::Write).len(), 400_002);
    let copy = deep.clone();
    assert_eq!(copy, deep);
    let back: OwnedTerm = vm.call("face_cases", "identity", (copy,)).unwrap();
    assert_eq!(back, deep);
}

#[test]
fn shared_parts_stay_shared() {
    let vm = vm();
    // 2^60 leaves when written out.
    let shared = vm
        .build_term(|b| {
            let mut t = b.list(&[b.atom("leaf")?]);
            for _ in 0..60 {
                t = b.tuple(&[t, t]);
            }
            Ok(t)
        })
        .unwrap();
    let back: OwnedTerm = vm.call("face_cases", "identity", (&shared,)).unwrap();
    assert!(back.words() < 1000 && back.clone().words() < 1000);
    assert!(back.to_string().ends_with("..."));
    let pid = vm.spawn("face_cases", "exit_with", (shared,)).unwrap();
    assert!(vm.run_until_exit(pid).0.to_string().starts_with("{{{{"));
}

#[test]
fn terms_outlive_their_vm_and_go_to_others() {
    let one = vm();
    let two = vm();
    // Atoms that the other VM numbers otherwise.
    two.term(atom("shifts the numbers of atoms")).unwrap();
    let term = one
        .term((atom("only in one"), "text".repeat(50), vec![1.5], i128::MAX))
        .unwrap();
    let other: OwnedTerm = two.call("face_cases", "identity", (&term,)).unwrap();
    assert_ne!(term, other, "terms of different VMs are not equal");
    assert_eq!(term.to_string(), other.to_string());
    let pid = two.spawn("face_cases", "wait_for_one", ()).unwrap();
    two.send_to_mailbox(pid, term.clone()).unwrap();
    let (_, received) = two.run_until_exit(pid);
    assert_eq!(received, other);
    drop(one);
    drop(two);
    assert_eq!(term.to_string(), other.to_string());
    let shared = Arc::new(term);
    let thread = std::thread::spawn({
        let shared = shared.clone();
        move || shared.root().tuple_len()
    });
    assert_eq!(thread.join().unwrap(), Some(4));
}

#[test]
fn atoms_of_another_table_are_refused_or_found() {
    let vm = vm();
    let ok = vm.atom_table().lookup("ok").unwrap();
    assert_eq!(vm.term(ok).unwrap().to_string(), "ok");
    let foreign = beamr::Atom::from_index(u32::MAX >> 8);
    assert_eq!(
        vm.term(foreign).unwrap_err().kind(),
        &TermErrorKind::ForeignAtom
    );
    assert!(vm.spawn(foreign, "f", ()).is_err());
}

#[test]
fn numbers_of_any_size() {
    for text in [
        "0",
        "-1",
        "18446744073709551616",
        "-99999999999999999999999999",
    ] {
        assert_eq!(text.parse::<BigInt>().unwrap().to_string(), text);
    }
    for bad in ["", "-", "1x", "+1", " 1"] {
        assert!(bad.parse::<BigInt>().is_err(), "{bad:?}");
    }
    assert_eq!(BigInt::from(i128::MIN).to_i128(), Some(i128::MIN));
    assert_eq!(BigInt::new(true, &[0, 0]).to_string(), "0");
}
