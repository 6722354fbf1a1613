//! Untrusted code: what is checked, what flow analysis proves.

use super::{check_body, check_module, check_untrusted};

#[test]
fn tests_prove_reads() {
    check_untrusted(
        "is_nonempty_list f3 x0
         get_list x0 x2 x3
         get_hd x2 x2
         label u3
         is_tuple f4 x0
         test_arity f4 x0 u2
         get_tuple_element x0 u1 x2
         get_tuple_element x0 u2 x3
         get_tuple_element x0 u2 x4
         return
         label u4
         is_tagged_tuple f5 x0 u3 a
         get_tuple_element x0 u2 x2
         return
         label u5
         select_tuple_arity x1 f1 {u2 f6 u3 f7}
         label u6
         label u7
         get_tuple_element x1 u1 x2
         get_tuple_element x1 u2 x2
         return",
        "is_nonempty_list x0 else L3
         get_list x0 -> x2 x3
         get_hd! x2 -> x2
         L3:
         test_arity! x0 2 else L4
         get_tuple_element x0 1 -> x2
         get_tuple_element! x0 2 -> x3
         get_tuple_element! x0 2 -> x4
         return
         L4:
         is_tagged_tuple x0 3 a else L5
         get_tuple_element x0 2 -> x2
         return
         L5:
         select_arity! x1 {2: L6, 3: L7} else L1
         L6:
         L7:
         get_tuple_element x1 1 -> x2
         get_tuple_element! x1 2 -> x2
         return",
    );
}

#[test]
fn what_joins_and_calls_forget() {
    check_untrusted(
        "is_nonempty_list f3 x0
         jump f4
         label u3
         move x1 x0
         label u4
         get_hd x0 x0
         get_tl x1 x1
         get_tl x1 x1
         allocate u1 u2
         move x1 y0
         is_map f5 x1
         call u2 f2
         get_tl y0 x0
         deallocate u1
         return
         label u5
         call u2 f2
         deallocate u1
         return",
        "is_nonempty_list x0 else L3
         jump L4
         L3:
         move x1 -> x0
         L4:
         get_hd! x0 -> x0
         get_tl! x1 -> x1
         get_tl! x1 -> x1
         allocate 1 heap 0 live 2
         move x1 -> y0
         is_map x1 else L5
         call L2/2
         get_tl! y0 -> x0
         deallocate 1
         return
         L5:
         call L2/2
         deallocate 1
         return",
    );
}

#[test]
fn contexts_floats_maps() {
    check_body(
        "",
        "bs_start_match3 f1 x0 u2 x2
         bs_get_integer2 f3 x2 u3 i8 u1 u0 x3
         bs_get_position x2 x3 u3
         bs_set_position x2 x3
         bs_get_tail x2 x2 u3
         return
         label u3
         bs_get_tail x2 x2 u3
         is_float f4 x1
         fmove x1 fr0
         fmove x0 fr1
         return
         label u4
         is_map f5 x1
         get_map_elements f5 x1 {a x2}
         get_map_elements f5 x0 {a x2}
         get_map_elements f5 x0 {a x2}
         return
         label u5
         return",
        false,
        "bs_start_match x0 live 2 -> x2 else L1
         bs_get_integer x2 8 1 big live 3 -> x3 else L3
         bs_get_position x2 -> x3
         bs_set_position! x2 x3
         bs_get_tail x2 live 3 -> x2
         return
         L3:
         bs_get_tail x2 live 3 -> x2
         is_float x1 else L4
         float_load x1 -> fr0
         float_load! x0 -> fr1
         return
         L4:
         is_map x1 else L5
         get_map_elements x1 {a: x2} else L5
         get_map_elements! x0 {a: x2} else L5
         get_map_elements x0 {a: x2} else L5
         return
         L5:
         return",
    );
}

/// What loops back to a label counts there.
#[test]
fn loops() {
    check_module(
        "label u1
         func_info m f u1
         label u2
         allocate u1 u1
         move x0 y0
         is_nonempty_list f4 y0
         label u3
         get_tl y0 y0
         loop_rec f5 x0
         loop_rec_end f3
         label u5
         wait f3
         label u4
         deallocate u1
         return",
        false,
        "L1:
         line -
         func_info f/1
         L2:
         allocate 1 heap 0 live 1
         move x0 -> y0
         is_nonempty_list y0 else L4
         L3:
         get_tl! y0 -> y0
         loop_rec empty L5
         loop_rec_end L3
         L5:
         wait L3
         L4:
         deallocate 1
         return
         end",
    );
}

#[test]
fn hints_are_not_believed() {
    check_body(
        "type 0..9",
        "gc_bif2 f0 u2 erlang:+/2 x0:t0 i1 x0
         test_heap u3 u2
         update_record inplace u2 x0 x0 {u1 a}
         return",
        false,
        "add:b x0 1 live 2 -> x0
         test_heap 3 live 2
         update_record! copy x0 2 {0: a} -> x0
         return",
    );
}

#[test]
fn never_returns() {
    check_untrusted(
        "call_ext_last u1 erlang:error/1 u7",
        "call_native erlang:error/1
         badmatch x0",
    );
}
