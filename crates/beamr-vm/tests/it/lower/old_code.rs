//! Instructions of compilers before OTP 25.

use super::{check, check_body, check_module};

#[test]
fn frames_and_tuples() {
    check(
        "allocate_zero u2 u2
         init y0
         init y1
         allocate_heap_zero u1 u4 u2
         put_tuple u2 x0
         put x1
         put i5
         set_tuple_element x1 x0 u1
         is_bitstr f1 x0
         recv_mark f1
         recv_set f1
         return",
        "allocate 2 heap 0 live 2
         init y0 y1 y0 y1
         allocate 1 heap 4 live 2
         init y0
         put_tuple {x1, 5} -> x0
         set_tuple_element x1 x0 1
         is_bitstring x0 else L1
         return",
    );
}

#[test]
fn funs() {
    check_module(
        "lambda f/2 f2 2
         label u1
         func_info m f u2
         label u2
         make_fun2 u0
         return",
        true,
        "lambda 0 f/2 L2 free 2
         L1:
         line -
         func_info f/2
         L2:
         test_heap 4 live 2
         make_fun 0 {x0, x1} -> x0
         return
         end",
    );
}

#[test]
fn constructions() {
    check_body(
        "string abcd",
        "bs_utf8_size f0 x0 x2
         bs_add f0 x2 x1 u8 x2
         bs_init2 f0 x2 u3 u3 u0 x2
         line u0
         bs_put_integer f0 i8 u1 u4 x0
         bs_put_string u2 u1
         move x0 x3
         bs_put_binary f0 all u8 u0 x3
         bs_put_float f0 i64 u1 u2 x1
         bs_put_utf8 f0 u0 x0
         line u0
         move x0 x1
         bs_init_bits f1 i0 u0 u2 u0 x0
         bs_append f1 x2 u0 u3 u8 x0 u0 x1
         bs_put_utf16 f1 u2 x2
         return",
        true,
        "bs_utf_size utf8 x0 -> x2
         bs_add x2 x1 8 -> x2
         bs_create_bin unit 1 heap 3 live 3 {integer x0 8 1 big/signed, string \"bc\", binary x0 all 8 big, float x1 64 1 little, utf8 x0 undefined 0 big} -> x2
         move x0 -> x3
         move x0 -> x1
         bs_create_bin unit 1 heap 0 live 2 {} -> x0 else L1
         bs_create_bin unit 8 heap 0 live 3 {append x0 all 8 big, utf16 x2 undefined 0 little} -> x1 else L1
         return",
    );
}

/// Private appends do not say what is live: x0 and x2 are, so x1 is cleared.
#[test]
fn private_append() {
    check_module(
        "label u1
         func_info m f u1
         label u2
         allocate u1 u1
         move x0 y0
         call_ext u1 m:g/1
         move y0 x2
         is_nil f3 x2
         move x2 x4
         label u3
         bs_private_append f0 i8 u1 x0 u0 x0
         bs_put_integer f0 i8 u1 u0 x2
         deallocate u1
         return",
        true,
        "L1:
         line -
         func_info f/1
         L2:
         allocate 1 heap 0 live 1
         move x0 -> y0
         call_ext m:g/1
         move y0 -> x2
         is_nil x2 else L3
         move x2 -> x4
         L3:
         move [] -> x1
         bs_create_bin unit 1 heap 0 live 3 {private_append x0 all 1 big, integer x2 8 1 big} -> x0
         deallocate 1
         return
         end",
    );
}
