//! The rules of the validator, one small function each: the text of
//! `tests/fixtures/valid.txt` holds cases of a name, code, and `=>` with what the
//! validator says.

use beamr_file::{Module, validate};

use crate::asm::assemble;

#[test]
fn cases() {
    let text = include_str!("../fixtures/valid.txt");
    let mut failed = Vec::new();
    let mut count = 0;
    for case in text.split("\n## ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("name");
        let (code, expected) = rest.split_once("=>").expect("=>");
        let expected = expected.lines().next().unwrap_or_default().trim();
        let module = Module::from_bytes(&assemble(code)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = match validate(&module) {
            Ok(_) => "ok".to_owned(),
            Err(e) => format!("{}: {}", e.op, e.what),
        };
        if found != expected {
            failed.push(format!("{name}: expected `{expected}`, found `{found}`"));
        }
        count += 1;
    }
    assert!(count > 60, "only {count} cases were found");
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

/// What the lowering is told beside yes and no.
#[test]
fn findings() {
    let text = "
        fn f/1
        bs_start_match3 L:f.head x0 1 x1
        bs_get_tail x1 x2 2
        allocate 0 2
        move x1 x0
        call 1 L:local_g
        deallocate 0
        return
        fn local_g/1
        bs_start_match4 resume 1 x0 x0
        bs_get_tail x0 x0 1
        return
        fn h/1
        allocate 3 1
        bif1 L:- erlang:hd/1 x0 y0
        init_yregs [ y1 y2 ]
        call_ext 0 erlang:halt/0
        return
        fn k/0
        make_fun3 fun:f/0 x0 [ ]
        return";
    let module = Module::from_bytes(&assemble(text)).unwrap();
    let v = validate(&module).unwrap();
    let by_name = |name: &str| {
        v.functions
            .iter()
            .find(|f| module.atom(f.name) == name)
            .unwrap()
    };
    assert!(by_name("local_g").may_be_context(0));
    assert!(!by_name("f").may_be_context(0));
    assert!(by_name("h").clear_frames && !by_name("f").clear_frames);
    assert_eq!(v.unreserved_funs.len(), 1);
    assert_eq!((v.x_count, v.frame_max, v.float_count), (3, 3, 0));
    // What stands after a call that never returns is not reached.
    let h = by_name("h");
    assert!(v.is_reachable(h.end - 2) && !v.is_reachable(h.end - 1));
    // Nothing jumps to the head of h.
    assert!(!v.is_reachable(h.func_info));
    assert!(v.is_reachable(by_name("f").func_info));
}
