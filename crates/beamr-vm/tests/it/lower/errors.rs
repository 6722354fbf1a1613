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
