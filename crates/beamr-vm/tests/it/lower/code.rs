//! Trusted code.

use super::{check, check_body, check_module, lowered};
use beamr_term::Word;

#[test]
fn calls() {
    check_module(
        "export f/0 f2
         label u1
         func_info m f u0
         label u2
         allocate u0 u0
         call u1 f4
         call u0 f2
         call_ext u2 lists:map/2
         call_ext u2 erlang:put/2
         call_last u1 f6 u0
         label u3
         func_info m stub u1
         label u4
         call_ext_only u1 erlang:nif_error/1
         label u5
         func_info m g u1
         label u6
         call_only u1 f4",
        true,
        "export f/0 L2
         L1:
         line -
         func_info f/0
         L2:
         allocate 0 heap 0 live 0
         call_native m:stub/1
         call L2/0
         call_ext lists:map/2
         call_native erlang:put/2
         call L6/1 last 0
         L3:
         line -
         func_info stub/1
         L4:
         call_native m:stub/1 only
         L5:
         line -
         func_info g/1
         L6:
         call L4/1 only
         end",
    );
}

#[test]
fn calls_that_never_return_keep_the_frame() {
    check(
        "call_ext_last u1 erlang:error/1 u7
         label u3
         call_ext_only u3 erlang:raise/3",
        "call_native erlang:error/1
         L3:
         call_native erlang:raise/3 only",
    );
}

#[test]
fn fun_calls() {
    check(
        "allocate u2 u2
         call_fun u1
         call_fun2 safe u1 x1
         call_fun2 unsafe u1 x1
         call_fun2 u0 u1 x1
         apply u1
         call_fun2 safe u1 x1
         deallocate u2
         return",
        "allocate 2 heap 0 live 2
         call_fun /1
         call_fun2 x1/1 safe
         call_fun2 x1/1
         call_fun2 x1/1 safe
         apply /1
         call_fun2 x1/1 safe last 2",
    );
}

#[test]
fn tuple_tests_are_fused() {
    check(
        "is_tuple f1 x0
         test_arity f1 x0 u2
         is_tuple f1 x1
         select_tuple_arity x1 f1 {u3 f3 u2 f4}
         label u3
         test_arity f1 x1 u3
         label u4
         is_tuple f3 x1
         test_arity f1 x1 u3
         return",
        "test_arity! x0 2 else L1
         select_arity! x1 {2: L4, 3: L3} else L1
         L3:
         test_arity x1 3 else L1
         L4:
         is_tuple x1 else L3
         test_arity x1 3 else L1
         return",
    );
}

#[test]
fn select() {
    check(
        "select_val x0 f1 {b f3 a f4 i1 f3 b f4}
         label u3
         select_val x0 f1 {i1 f3 i9000000000000000000 f4}
         label u4
         return",
        "select_val x0 {1: L3, b: L3, a: L4} else L1
         L3:
         select_term x0 {1: L3, 9000000000000000000: L4} else L1
         L4:
         return",
    );
}

#[test]
fn hints() {
    check_body(
        "type 0..255
         type -9000000000000000000..1
         type 0..576460752303423487",
        "gc_bif2 f0 u2 erlang:+/2 x0:t0 x1:t0 x0
         gc_bif2 f0 u2 erlang:+/2 x0:t2 i1 x0
         gc_bif2 f0 u2 erlang:-/2 x0:t1 i1 x0
         gc_bif2 f1 u2 erlang:div/2 x0 i2 x0
         gc_bif1 f0 u2 erlang:-/1 x0 x0
         gc_bif1 f1 u2 erlang:bnot/1 x0 x0
         return",
        true,
        "add:abo x0 x1 live 2 -> x0
         add:ab x0 1 live 2 -> x0
         sub:b x0 1 live 2 -> x0
         int_div:b x0 2 live 2 -> x0 else L1
         negate x0 live 2 -> x0
         bnot x0 live 2 -> x0 else L1
         return",
    );
}

#[test]
fn guard_bifs() {
    check(
        "bif0 erlang:self/0 x0
         bif2 f0 erlang:element/2 i1 x0 x0
         gc_bif1 f1 u1 erlang:length/1 x0 x0
         gc_bif3 f0 u1 erlang:binary_part/3 x0 i0 i1 x0
         bif3 f1 erlang:is_integer/3 x0 i0 i9 x0
         bif1 f0 erlang:missing/1 x0 x0",
        "bif erlang:self -> x0
         bif erlang:element 1 x0 -> x0
         bif erlang:length x0 live 1 -> x0 else L1
         bif erlang:binary_part x0 0 1 live 1 -> x0
         bif erlang:is_integer x0 0 9 -> x0 else L1
         undefined_bif erlang:missing/1 x0",
    );
}

#[test]
fn lines_and_jumps() {
    check_body(
        "line 7
         line 8",
        "line u1
         line u2
         if_end
         label u3
         line u2
         if_end
         line u1
         jump f4
         label u4
         line u2
         executable_line u1 u1
         debug_line entry u1 u1 u0
         return
         line u1",
        true,
        "line 8
         if_end
         L3:
         if_end
         L4:
         line 8
         return
         line 7",
    );
}

#[test]
fn exceptions_and_receive() {
    check_module(
        "label u1
         func_info m f u2
         label u2
         allocate u2 u2
         init_yregs {y0 y1}
         try y0 f3
         try_end y0
         catch y1 f4
         label u4
         catch_end y1
         recv_marker_reserve y1
         recv_marker_bind y1 x0
         recv_marker_use x0
         recv_marker_clear x0
         label u5
         loop_rec f6 x0
         remove_message
         badmatch x0
         label u6
         wait_timeout f5 i1
         timeout
         wait f5
         label u3
         try_case y0
         raise x2 x1",
        true,
        "handler 0 L3
         handler 1 L4
         L1:
         line -
         func_info f/2
         L2:
         allocate 2 heap 0 live 2
         init y0 y1
         try y0 L3
         try_end y0
         catch y1 L4
         L4:
         catch_end y1
         marker_reserve -> y1
         marker_bind y1 x0
         marker_use x0
         marker_clear x0
         L5:
         loop_rec empty L6
         remove_message
         badmatch x0
         L6:
         wait_timeout 1 L5
         timeout
         wait L5
         L3:
         try_case y0
         raise x2 x1
         end",
    );
}

#[test]
fn bit_matching() {
    check_body(
        "string abc",
        "bs_start_match3 f1 x0 u2 x0
         bs_start_match4 no_fail u2 x0 x1
         bs_start_match4 resume u2 x0 x1
         bs_start_match4 resume u2 x0 x0
         bs_match f1 x0 {ensure_at_least u24 u8 integer u1 [] u8 u2 x1 binary u1 [] u8 u1 x1 skip u3 =:= [] u5 u17 get_tail u1 u8 x1}
         bs_match f1 x0 {ensure_exactly u24}
         bs_get_integer2 f1 x0 u1 i8 u1 u4 x1
         bs_get_float2 f1 x0 u1 i64 u1 u2 x1
         bs_get_binary2 f1 x0 u1 all u8 u0 x1
         bs_skip_bits2 f1 x0 x1 u8 u0
         bs_test_tail2 f1 x0 u0
         bs_test_unit f1 x0 u8
         bs_match_string f1 x0 u16 u1
         bs_get_utf8 f1 x0 u1 u0 x1
         bs_skip_utf16 f1 x0 u1 u2
         bs_get_position x0 x1 u1
         bs_set_position x0 x1
         bs_get_tail x0 x1 u1
         return",
        true,
        "bs_start_match x0 live 2 -> x0 else L1
         bs_start_match x0 live 2 -> x1
         move x0 -> x1
         bs_match x0 {ensure_at_least 24 unit 8, integer 16 big live 1 -> x1, binary 8 live 1 -> x1, skip 3, equal 5 0x11, get_tail live 1 -> x1} else L1
         bs_match x0 {ensure_exactly 24} else L1
         bs_get_integer x0 8 1 big/signed live 1 -> x1 else L1
         bs_get_float x0 64 1 little live 1 -> x1 else L1
         bs_get_binary x0 all 8 live 1 -> x1 else L1
         bs_skip_bits x0 x1 8 else L1
         bs_test_tail x0 0 else L1
         bs_test_unit x0 8 else L1
         bs_match_string x0 16 \"bc\" else L1
         bs_get_utf utf8 big x0 -> x1 else L1
         bs_get_utf utf16 little x0 else L1
         bs_get_position x0 -> x1
         bs_set_position x0 x1
         bs_get_tail x0 live 1 -> x1
         return",
    );
}

#[test]
fn bit_construction() {
    check_module(
        "string abc
         literal 836c0000000277067369676e656477066e61746976656a
         label u1
         func_info m f u2
         label u2
         bs_init_writable
         bs_create_bin f0 alloc:1:2:3 u2 u8 x0 {private_append u1 u8 [] x0 all string u2 u8 [] u1 i2 integer u3 u1 lit0 x1 i8 utf8 u4 u0 [] x1 undefined}
         return",
        true,
        "literal 0 [signed,native]
         L1:
         line -
         func_info f/2
         L2:
         bs_init_writable
         bs_create_bin unit 8 heap 11 live 2 {private_append x0 all 8 big, string \"bc\", integer x1 8 1 little/signed, utf8 x1 undefined 0 big} -> x0
         return
         end",
    );
}

#[test]
fn native_records() {
    check_module(
        "record r true a=i1 b
         label u1
         func_info m f u2
         label u2
         is_any_native_record f1 x0
         is_native_record f1 x0 m r
         is_record_accessible f1 x0 external
         get_record_elements f1 x0 {a x0 b x1}
         get_record_field f0 x0 r a x1
         put_record f0 r [] x0 u2 {a x0 b i2}
         put_record f0 _ x1 x0 u2 {a x0}
         return",
        true,
        "record {r,true,[{a,1},{b}]}
         L1:
         line -
         func_info f/2
         L2:
         is_any_native_record x0 else L1
         is_native_record x0 m r else L1
         is_record_accessible x0 external else L1
         get_record_elements x0 {a: x0, b: x1} else L1
         get_record_field x0 r a -> x1
         put_record r [] {a: x0, b: 2} live 2 -> x0
         put_record '_' x1 {a: x0} live 2 -> x0
         return
         end",
    );
}

#[test]
fn maps_floats_moves() {
    check(
        "move x0 x0
         move i1 x0
         swap x0 x0
         swap x0 x1
         is_map f1 x0
         has_map_fields f1 x0 {a i1}
         get_map_elements f1 x0 {a x0 x1 x2}
         put_map_assoc f0 x0 x0 u3 {a x1 i2 []}
         put_map_exact f1 x0 x0 u3 {a x1}
         fclearerror
         fconv x0 fr0
         fmove x1 fr1
         fadd f0 fr0 fr1 fr2
         fnegate f0 fr2 fr2
         fcheckerror f0
         fmove fr2 x0
         update_record reuse u3 x0 x1 {u1 a u3 x0}
         return",
        "move 1 -> x0
         swap x0 x1
         is_map x0 else L1
         has_map_fields x0 {a, 1} else L1
         get_map_elements x0 {a: x0, x1: x2} else L1
         put_map_assoc x0 {a: x1, 2: []} live 3 -> x0
         put_map_exact x0 {a: x1} live 3 -> x0 else L1
         float_convert x0 -> fr0
         float_load x1 -> fr1
         float_add fr0 fr1 -> fr2
         float_negate fr2 -> fr2
         float_store fr2 -> x0
         update_record reuse x0 3 {0: a, 2: x0} -> x1
         return",
    );
}

#[test]
fn tables() {
    let (tables, l) = lowered(
        "export f/1 f2
         lambda f/1 f2 0
         literal 836107
         record r true a=i9000000000000000000 b
         line 5
         label u1
         line u1
         func_info m f u1
         label u2
         on_load
         nif_start
         move i9000000000000000000 x0
         move i-9000000000000000000 x0
         return",
        true,
    );
    let l = l.expect("lowers");
    let text = |a| tables.atoms.text(a).to_string();
    assert_eq!(text(l.module), "m");
    assert_eq!((l.image_id, l.trusted, l.label_count), (3, true, 3));
    assert_eq!(l.on_load, Some(2));
    assert_eq!(l.files, ["m.erl"]);
    assert_eq!(l.locations.len(), 2);
    assert_eq!((l.locations[1].file, l.locations[1].line), (0, 5));
    assert_eq!(l.literals, [Word::fixnum(7)]);
    assert_eq!(l.lambdas[0].old_uniq, 77);
    let nifs: Vec<_> = l.nifs.iter().map(|(f, a)| (text(*f), *a)).collect();
    assert_eq!(nifs, [("f".to_string(), 1)]);
    let record = l.records[0].as_tuple().expect("a tuple");
    assert_eq!(record[1], Word::TRUE);
    let (first, rest) = record[2].as_cons().expect("a field");
    let field = first.as_tuple().expect("a tuple");
    assert_eq!(field[1].field(1), 9_000_000_000_000_000_000);
    let (second, end) = rest.as_cons().expect("a field");
    assert_eq!(second.as_tuple().map(<[Word]>::len), Some(1));
    assert!(end.is_nil());
    // Three large integers and one definition of two fields, nothing else.
    let area = l.literal_area.expect("an area");
    assert_eq!(area.used(), 2 + 2 + 2 + 4 + 2 * 2 + 3 + 2);
}
