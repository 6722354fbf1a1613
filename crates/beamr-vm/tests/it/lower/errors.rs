//! What cannot be lowered, and how it says so.

use super::error;

#[test]
fn errors_name_their_place() {
    for (text, expected) in [
        (
            "jump f9\nreturn",
            "m:f/2, instruction 3 (jump): label 9 is not defined",
        ),
        (
            "move x0 u1\nreturn",
            "m:f/2, instruction 3 (move): operand 1: register expected",
        ),
        (
            "move f1 x0\nreturn",
            "m:f/2, instruction 3 (move): operand 0: value expected",
        ),
        (
            "bs_save2 x0 u0\nreturn",
            "m:f/2, instruction 3 (bs_save2): the operation is obsolete",
        ),
        (
            "put x0\nreturn",
            "m:f/2, instruction 3 (put): the instruction lacks the one that it continues",
        ),
        (
            "bs_put_utf8 f0 u0 x0\nreturn",
            "m:f/2, instruction 3 (bs_put_utf8): the instruction lacks the one that it continues",
        ),
        (
            "call u1 f1\nreturn",
            "m:f/2, instruction 3 (call): a call that goes to no function",
        ),
        (
            "call_ext u1 m:g/2\nreturn",
            "m:f/2, instruction 3 (call_ext): the import has another arity",
        ),
        (
            "move x1024 x0\nreturn",
            "m:f/2, instruction 3 (move): x register 1024 is beyond the limit of 1023",
        ),
        (
            "test_heap u99999999 u2\nreturn",
            "m:f/2, instruction 3 (test_heap): heap words 99999999 is beyond the limit of 16777216",
        ),
        (
            "make_fun3 u0 x0 {}\nreturn",
            "m:f/2, instruction 3 (make_fun3): operand 0: lambda that exists expected",
        ),
        (
            "jump f4\nlabel u3\nfunc_info m g u0\nlabel u4\nreturn",
            "m:f/2, instruction 3 (jump): a jump into another function",
        ),
        (
            "label u2\nreturn",
            "m:f/2, instruction 3 (label): label 2 is defined twice",
        ),
        (
            "bs_init2 f0 i1 u0 u2 u0 x0\nbs_put_integer f1 i8 u1 u0 x1\nreturn",
            "m:f/2, instruction 3 (bs_init2): one binary under construction with two failure labels",
        ),
    ] {
        assert_eq!(error(text, true), expected, "{text}");
    }
}

#[test]
fn untrusted_code_is_validated() {
    for (text, expected) in [
        (
            "move x2 x0\nreturn",
            "m:f/2, instruction 3 (move): x2 is not initialised",
        ),
        (
            "bif2 f0 erlang:put/2 x0 x1 x0\nreturn",
            "m:f/2, instruction 3 (bif2): not a guard BIF",
        ),
    ] {
        assert_eq!(error(text, false), expected, "{text}");
    }
}

/// Whatever the bytes of the code are: an error or ops, never a panic, whoever wrote them.
#[test]
fn any_bytes_are_lowered_or_refused() {
    let text = "type 0..255
        string abc
        literal 836c0000000277067369676e656477066e61746976656a
        lambda f/2 f2 1
        record r true a=i1 b
        line 7
        label u1
        line u1
        func_info m f u2
        label u2
        is_tuple f3 x0
        test_arity f3 x0 u2
        get_tuple_element x0 u1 x1
        allocate u2 u2
        init_yregs {y0 y1}
        try y0 f4
        call_ext u2 m:g/2
        call u2 f2
        call_fun2 safe u1 x1
        deallocate u2
        return
        label u4
        try_case y0
        gc_bif2 f0 u2 erlang:+/2 x0:t0 x1 x0
        bs_init2 f0 i8 u0 u2 u0 x1
        bs_put_integer f0 i8 u1 u0 x0
        bs_private_append f0 i8 u1 x1 u0 x0
        bs_put_string u2 u1
        bs_create_bin f0 u0 u2 u8 x0 {append u1 u8 [] x0 all string u2 u8 [] u1 i2}
        bs_match f3 x0 {ensure_at_least u24 u8 integer u1 lit0 u8 u2 x1 =:= [] u5 u17}
        select_val x0 f3 {b f3 a f4}
        make_fun3 u0 x0 {x1}
        put_map_assoc f0 x0 x0 u3 {a x1}
        put_record f0 r [] x0 u2 {a x0 b i2}
        update_record copy u3 x0 x1 {u1 a}
        label u3
        move i9000000000000000000 x0
        deallocate u2
        return";
    let file = super::asm::assemble_file(text);
    assert!(super::lowered(text, true).1.is_ok());
    let start = file
        .windows(4)
        .position(|w| w == b"Code")
        .expect("a code chunk")
        + 28;
    let end = start + 330;
    let mut seed = 0x2545_F491_4F6C_DD1Du64;
    let mut random = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    };
    let (mut decoded, mut ok) = (0, 0);
    for _ in 0..3000 {
        let mut bytes = file.clone();
        for _ in 0..=random(3) {
            let at = start + random(end - start);
            bytes[at] = match random(3) {
                0 => bytes[at].wrapping_add(16),
                1 => bytes[start + random(end - start)],
                _ => random(256) as u8,
            };
        }
        let Ok(module) = beamr_file::Module::from_bytes(&bytes) else {
            continue;
        };
        decoded += 1;
        for trusted in [true, false] {
            ok += usize::from(super::lowered_module(&module, trusted).1.is_ok());
        }
    }
    assert!(decoded > 500 && ok > 100, "{decoded} decoded, {ok} lowered");
}
