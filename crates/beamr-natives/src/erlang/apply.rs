//! `erlang`: `apply/2` (the engine does `apply/3` itself).

use beamr_abi::{Ctx, Escape, NativeEntry, TrapTarget};
use beamr_term::Word;

/// Arguments that a function can have.
const MAX_ARITY: usize = 255;

/// `apply(Fun, Args)`.
fn apply_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut list = Vec::new();
    let mut rest = args[1];
    while let Some((h, t)) = rest.as_cons() {
        if list.len() == MAX_ARITY {
            return Err(ctx.system_limit());
        }
        list.push(h);
        rest = t;
    }
    if !rest.is_nil() {
        return Err(ctx.badarg());
    }
    Err(ctx.trap(TrapTarget::Fun(args[0]), &list))
}

/// The natives of this file.
pub const TABLE: &[NativeEntry] = &[NativeEntry::new("erlang", "apply", 2, apply_2)];
