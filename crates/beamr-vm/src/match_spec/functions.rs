//! Functions that guards and bodies may call.

use beamr_abi::{Ctx, Escape, NativeFn};
use beamr_term::{Release, Word};

/// Where a function may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// In guards and bodies of both dialects.
    Everywhere,
    /// In trace specifications.
    Trace,
    /// In bodies of trace specifications.
    TraceBody,
}

/// Name, arity, first release.
const FUNCTIONS: &[(&str, usize, u16)] = &[
    ("is_atom", 1, 0),
    ("is_boolean", 1, 26),
    ("is_float", 1, 0),
    ("is_integer", 1, 0),
    ("is_integer", 3, 29),
    ("is_list", 1, 0),
    ("is_number", 1, 0),
    ("is_pid", 1, 0),
    ("is_port", 1, 0),
    ("is_reference", 1, 0),
    ("is_tuple", 1, 0),
    ("is_map", 1, 0),
    ("is_binary", 1, 0),
    ("is_bitstring", 1, 26),
    ("is_function", 1, 0),
    ("is_function", 2, 26),
    ("is_record", 3, 0),
    ("abs", 1, 0),
    ("ceil", 1, 26),
    ("floor", 1, 26),
    ("max", 2, 26),
    ("min", 2, 26),
    ("element", 2, 0),
    ("hd", 1, 0),
    ("tl", 1, 0),
    ("length", 1, 0),
    ("node", 1, 0),
    ("node", 0, 0),
    ("round", 1, 0),
    ("trunc", 1, 0),
    ("float", 1, 0),
    ("size", 1, 0),
    ("tuple_size", 1, 26),
    ("map_size", 1, 0),
    ("map_get", 2, 0),
    ("is_map_key", 2, 0),
    ("bit_size", 1, 0),
    ("byte_size", 1, 0),
    ("binary_part", 2, 0),
    ("binary_part", 3, 0),
    ("+", 1, 0),
    ("-", 1, 0),
    ("+", 2, 0),
    ("-", 2, 0),
    ("*", 2, 0),
    ("/", 2, 0),
    ("div", 2, 0),
    ("rem", 2, 0),
    ("band", 2, 0),
    ("bor", 2, 0),
    ("bxor", 2, 0),
    ("bnot", 1, 0),
    ("bsl", 2, 0),
    ("bsr", 2, 0),
    (">", 2, 0),
    (">=", 2, 0),
    ("<", 2, 0),
    ("=<", 2, 0),
    ("==", 2, 0),
    ("=:=", 2, 0),
    ("/=", 2, 0),
    ("=/=", 2, 0),
    ("not", 1, 0),
    ("xor", 2, 0),
];

/// Where `name/arity` may be called, if at all.
pub(super) fn allowed(name: &str, arity: usize, release: Release) -> Option<Where> {
    match (name, arity) {
        ("get_tcw", 0) => return Some(Where::Trace),
        ("set_tcw", 1) => return Some(Where::TraceBody),
        _ => {}
    }
    FUNCTIONS
        .iter()
        .any(|f| f.0 == name && f.1 == arity && release.0 >= f.2)
        .then_some(Where::Everywhere)
}

/// The function itself: a native of `erlang`, but for those that would trap or have another name there.
pub(super) fn find(ctx: &Ctx, name: &str, arity: usize) -> Option<NativeFn> {
    if (name, arity) == ("length", 1) {
        return Some(length_1);
    }
    // SAFETY: the compiler holds no other reference to the head of the worker.
    let natives = unsafe { crate::rt::WorkerCode::of(ctx) }.server.natives();
    natives
        .get("erlang", name, arity as u8)
        .map(|entry| entry.func)
}

fn length_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut n = 0;
    let mut l = args[0];
    while let Some((_, t)) = l.as_cons() {
        n += 1;
        l = t;
    }
    if l.is_nil() {
        Ok(Word::fixnum(n))
    } else {
        Err(ctx.badarg())
    }
}
