//! Process aliases: references that messages can be sent to until they are switched off.

use beamr_abi::Ctx;
use beamr_term::{Subtag, Word, header};

use super::{AliasMessage, Signal, push_proc};
use crate::process::{AliasMode, Carried, ProcId, RefKey, own, slot_of, worker};
use crate::sched::Worker;
use crate::trace::seq::Token;

/// `alias/0,1` (with [`AliasMode::Reply`] or [`AliasMode::Explicit`]).
pub fn alias(ctx: &mut Ctx, mode: AliasMode) -> Word {
    let key = worker(ctx).next_ref();
    own(ctx).aliases.insert(key, mode);
    key.build_alias(slot_of(ctx).pid(), ctx)
}

/// `alias([priority])` (28): as [`alias`], and messages sent to it with priority have it.
pub fn priority_alias(ctx: &mut Ctx, mode: AliasMode) -> Word {
    let alias = alias(ctx, mode);
    if let Some(key) = RefKey::of(alias) {
        let p = own(ctx).priorities.get_or_insert_default();
        p.aliases.insert(key, ());
    }
    alias
}

/// `unalias/1`: whether it was an active alias of the caller.
pub fn unalias(ctx: &mut Ctx, reference: Word) -> bool {
    RefKey::of(reference).is_some_and(|k| {
        let o = own(ctx);
        if let Some(p) = &mut o.priorities {
            p.aliases.remove(k);
        }
        o.aliases.remove(k).is_some()
    })
}

/// The process that an alias reference belongs to.
pub fn alias_owner(reference: Word) -> Option<ProcId> {
    if reference.subtag() == Some(Subtag::Ref) && reference.header().arity() == header::REF_ALIAS {
        ProcId::of(reference.term_field(3))
    } else {
        None
    }
}

/// Sends to an alias. A reference that is no alias of a live process swallows the message.
pub(crate) fn send_to_alias(
    w: &Worker,
    reference: Word,
    message: Word,
    priority: bool,
    token: Option<Token>,
) {
    let (Some(owner), Some(key)) = (alias_owner(reference), RefKey::of(reference)) else {
        return;
    };
    let message = Carried::copy(message);
    let _ = push_proc(
        w,
        owner,
        Signal::AliasMessage(Box::new(AliasMessage {
            key,
            priority,
            token,
            message,
        })),
    );
}
