//! Lowering: small modules as text in, listings out.

mod asm;
mod code;
mod errors;
mod old_code;
mod untrusted;

use std::sync::Arc;

use beamr_abi::{Ctx, Escape, NativeEntry, NativeTable};
use beamr_term::{AtomTable, Release, Tables, Word};
use beamr_vm::lower::{Listing, LowerEnv, LowerError, Lowered, lower};

fn stand_in(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.notsup())
}

static NATIVES: [NativeEntry; 10] = [
    NativeEntry::new("erlang", "error", 1, stand_in),
    NativeEntry::new("erlang", "raise", 3, stand_in),
    NativeEntry::new("erlang", "setelement", 3, stand_in),
    NativeEntry::new("erlang", "self", 0, stand_in),
    NativeEntry::new("erlang", "element", 2, stand_in),
    NativeEntry::new("erlang", "length", 1, stand_in),
    NativeEntry::new("erlang", "binary_part", 3, stand_in),
    NativeEntry::new("erlang", "is_integer", 3, stand_in),
    NativeEntry::new("erlang", "put", 2, stand_in),
    NativeEntry::new("m", "stub", 1, stand_in),
];

fn lowered(text: &str, trusted: bool) -> (Arc<Tables>, Result<Lowered, LowerError>) {
    lowered_module(&asm::assemble(text), trusted)
}

fn lowered_module(
    module: &beamr_file::Module,
    trusted: bool,
) -> (Arc<Tables>, Result<Lowered, LowerError>) {
    let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP25);
    let mut natives = NativeTable::default();
    natives.add(Release::OTP25, &NATIVES).expect("natives");
    let env = LowerEnv {
        tables: &tables,
        natives: &natives,
        trusted,
        image_id: 3,
    };
    let result = lower(module, &env);
    (tables, result)
}

/// The body of function `f/A`, which the fixture's text starts with: everything behind its entry label.
const HEAD: &str = "label u1\nfunc_info m f u2\nlabel u2\n";
const HEAD_TEXT: &str = "L1:\n  line -\nfunc_info f/2\nL2:\n";

#[track_caller]
fn compare(got: &str, expected: &str) {
    let clean = |s: &str| {
        s.lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let (got, expected) = (clean(got), clean(expected));
    assert!(got == expected, "got:\n{got}\n\nexpected:\n{expected}");
}

/// The whole module's code.
#[track_caller]
fn check_module(text: &str, trusted: bool, expected: &str) {
    let (tables, l) = lowered(text, trusted);
    let l = l.unwrap_or_else(|e| panic!("{e}"));
    let listing = Listing::new(&l, &tables).to_string();
    let (_, code) = listing.split_once('\n').expect("a first line");
    compare(code, expected);
}

/// The code of `f/2`, whose body is `text`.
#[track_caller]
fn check_body(tables_text: &str, text: &str, trusted: bool, expected: &str) {
    check_module(
        &format!("{tables_text}\n{HEAD}{text}"),
        trusted,
        &format!("{HEAD_TEXT}{expected}\nend"),
    );
}

/// The same when the compiler is trusted.
#[track_caller]
fn check(text: &str, expected: &str) {
    check_body("", text, true, expected);
}

/// The same when it is not.
#[track_caller]
fn check_untrusted(text: &str, expected: &str) {
    check_body("", text, false, expected);
}

/// The error of a module whose `f/2` has this body.
fn error(text: &str, trusted: bool) -> String {
    let (_, l) = lowered(&format!("{HEAD}{text}"), trusted);
    match l {
        Ok(_) => panic!("lowered"),
        Err(e) => e.to_string(),
    }
}
