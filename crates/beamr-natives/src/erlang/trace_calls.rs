//! `trace_pattern` and `trace_info` of functions.

use std::sync::Arc;

use beamr_abi::{Ctx, Escape};
use beamr_term::{Build, Word, atoms};
use beamr_vm::trace::Session;

use crate::support::{because, list_items, name};

/// `trace_pattern({M, F, A} | on_load, Spec, Flags)`.
pub(super) fn set_pattern(
    ctx: &mut Ctx,
    _: &Arc<Session>,
    _: Word,
    spec: Word,
    list: Word,
) -> Result<Word, Escape> {
    list_items(ctx, list)?;
    match name(ctx, spec) {
        Some("false") => Ok(Word::fixnum(0)),
        _ => Err(ctx.notsup()),
    }
}

/// Whether a session traces calls of a function.
pub(super) fn is_traced(_: &mut Ctx, _: &Session, _: Word) -> Result<bool, Escape> {
    Ok(false)
}

/// Takes everything back that a session traces of functions.
pub(super) fn forget(_: &mut Ctx, _: &Session) {}

/// `trace_info({M, F, A} | on_load, Item)`.
pub(super) fn info(
    ctx: &mut Ctx,
    _: &Arc<Session>,
    what: Word,
    item: Word,
) -> Result<Word, Escape> {
    let value = match name(ctx, item) {
        Some(
            "traced" | "match_spec" | "meta" | "meta_match_spec" | "call_count" | "call_time"
            | "call_memory",
        ) => Word::FALSE,
        Some("all") => {
            let exists = match what.as_tuple() {
                Some([m, f, a]) => {
                    m.as_atom()
                        .zip(f.as_atom())
                        .zip(a.as_small())
                        .is_some_and(|((m, f), a)| {
                            !super::funs::modules(ctx).find(m, f, a as u32).is_null()
                        })
                }
                _ => true,
            };
            if exists {
                Word::FALSE
            } else {
                atoms::UNDEFINED.word()
            }
        }
        _ => return Err(because(ctx, "none")),
    };
    Ok(ctx.tuple(&[item, value]))
}
