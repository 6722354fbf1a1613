//! `ets`, and the helpers of it in `erts_internal`.
//!
//! | file | what |
//! |---|---|
//! | `mod` | finding tables and saying what is wrong with an identifier |
//! | `create` | `new`, `rename`, `delete/1`, `give_away`, `setopts`, `whereis`, `all` |
//! | `rows` | looking up, inserting and deleting rows, walking by key |
//! | `update` | `update_counter`, `update_element` |
//! | `select` | the `match` and `select` families with their continuations |
//! | `pass` | `select_count`, `select_delete`, `select_replace` |
//! | `info` | `info/1,2` |
//! | `spec` | compiled match specifications, `match_spec_test` |
//!
//! A table is found through its magic reference, which owns a count of it, or by its name while pinned;
//! neither takes a lock. Errors carry the cause that `erl_stdlib_errors` expects.

mod create;
mod info;
mod pass;
mod rows;
mod select;
mod spec;
mod update;

use std::sync::Arc;

use beamr_abi::{Capability, Ctx, Escape, NativeClass, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{Build, Subtag, Word, atoms};
use beamr_vm::ets::{Guard, Table, TableHandle};
use beamr_vm::process::{process, slot_of, vm_of, worker};
use beamr_vm::registry;
use beamr_vm::vm::Sought;

use crate::resources;

/// A table found by a native. It stays readable while this lives.
pub(super) enum Held<'n> {
    /// Through a reference among the native's arguments.
    Reference(&'n Table),
    /// By name.
    Named {
        /// The table.
        table: &'n Table,
        /// What keeps it readable.
        _guard: Guard<'n>,
    },
    /// By the numbers of a reference that came from outside.
    Counted(Arc<Table>),
}

impl std::ops::Deref for Held<'_> {
    type Target = Table;
    #[inline(always)]
    fn deref(&self) -> &Table {
        match self {
            Held::Reference(t) | Held::Named { table: t, .. } => t,
            Held::Counted(t) => t,
        }
    }
}

/// What is wrong with a table identifier.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is none.
    Type,
    /// There is no such table.
    Id,
    /// The process may not do that.
    Access,
}

impl Problem {
    #[cold]
    pub(super) fn raise(self, ctx: &mut Ctx) -> Escape {
        ctx.badarg_because(match self {
            Problem::Type => atoms::TYPE,
            Problem::Id => atoms::ID,
            Problem::Access => atoms::ACCESS,
        })
    }
}

/// The table of an identifier, whatever the process may do with it.
#[inline]
pub(super) fn find<'n>(ctx: &Ctx, id: Word) -> Result<Held<'n>, Problem> {
    if let Some(handle) = resources::get::<TableHandle>(id) {
        if handle.0.is_deleted() {
            return Err(Problem::Id);
        }
        return Ok(Held::Reference(&handle.0));
    }
    if let Some(name) = id.as_atom() {
        let w = worker(ctx);
        let guard = w.participant.pin();
        let found = w.vm.ets.named(slot_of(ctx).namespace.id, name, &guard);
        // SAFETY: the reference is used only beside the guard that keeps it good.
        return match found.map(|t| unsafe { &*std::ptr::from_ref(t) }) {
            Some(table) if !table.is_deleted() && !registry::is_held_back(ctx, name) => {
                Ok(Held::Named {
                    table,
                    _guard: guard,
                })
            }
            _ => Err(Problem::Id),
        };
    }
    find_by_numbers(ctx, id)
}

#[cold]
fn find_by_numbers<'n>(ctx: &Ctx, id: Word) -> Result<Held<'n>, Problem> {
    if id.subtag() == Some(Subtag::Ref)
        && let Some((n, _)) = beamr_term::ids::ref_numbers(id)
    {
        if resources::get::<()>(id).is_some() {
            return Err(Problem::Id);
        }
        let is_magic = id.header().arity() == beamr_term::header::REF_MAGIC;
        if !is_magic && let Some(t) = vm_of(ctx).ets.by_id([n[0], n[1], n[2]]) {
            return Ok(Held::Counted(t));
        }
    }
    Err(Problem::Type)
}

/// A named table that is not there: it may be that of a server which is being started.
#[cold]
pub(super) fn find_later<'n>(ctx: &mut Ctx, id: Word) -> Result<Result<Held<'n>, Problem>, Escape> {
    match id.as_atom() {
        Some(name) if registry::is_starting(ctx, name, Sought::Belonging) => {
            Err(registry::wait_for_start(ctx, name, Sought::Belonging))
        }
        _ => Ok(find(ctx, id)),
    }
}

/// A table that the process may read.
#[inline]
pub(super) fn readable<'n>(ctx: &mut Ctx, id: Word) -> Result<Held<'n>, Escape> {
    let found = match find(ctx, id) {
        Err(Problem::Id) if id.is_atom() => find_later(ctx, id)?,
        found => found,
    };
    match found {
        Ok(t) if t.readable_by(ctx.self_pid()) || process(ctx).ets_super_user => Ok(t),
        Ok(_) => Err(Problem::Access.raise(ctx)),
        Err(p) => Err(p.raise(ctx)),
    }
}

/// A table that the process may write.
#[inline]
pub(super) fn writable<'n>(ctx: &mut Ctx, id: Word) -> Result<Held<'n>, Escape> {
    match find(ctx, id) {
        Ok(t) if t.writable_by(ctx.self_pid()) || process(ctx).ets_super_user => Ok(t),
        Ok(_) => Err(Problem::Access.raise(ctx)),
        Err(p) => Err(p.raise(ctx)),
    }
}

/// After an operation that found nothing: whether that was because the table has been deleted meanwhile.
#[inline]
pub(super) fn still_there(ctx: &mut Ctx, t: &Table) -> Result<(), Escape> {
    if t.is_deleted() {
        return Err(Problem::Id.raise(ctx));
    }
    Ok(())
}

/// The table's reference.
pub(super) fn reference(ctx: &mut Ctx, table: &Table) -> Word {
    let resource = vm_of(ctx).ets.resource(table);
    ctx.magic_reference(table.id, resource)
}

/// `badarg` because the table's type does not have the operation.
#[cold]
pub(super) fn wrong_type(ctx: &mut Ctx) -> Escape {
    ctx.badarg_because(atoms::TABLE_TYPE)
}

/// `erts_internal:ets_super_user(Boolean)`: whether the process passes all protections.
fn super_user_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match args[0].as_boolean() {
        Some(b) => {
            process(ctx).ets_super_user = b;
            Ok(atoms::OK.word())
        }
        None => Err(ctx.badarg()),
    }
}

pub(super) const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("ets", function, arity, func).needs(Capability::ProcessLocal)
}

pub(super) const fn long(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    row(function, arity, func).class(NativeClass::Traps)
}

const fn internal(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erts_internal", function, arity, func).needs(Capability::ProcessLocal)
}

const SINCE_26: ReleaseSpan = ReleaseSpan::since(26);
const SINCE_27: ReleaseSpan = ReleaseSpan::since(27);

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("new", 2, create::new_2),
    row("delete", 1, create::delete_1),
    row("rename", 2, create::rename_2),
    row("whereis", 1, create::whereis_1),
    row("give_away", 3, create::give_away_3),
    row("setopts", 2, create::setopts_2),
    row("safe_fixtable", 2, create::safe_fixtable_2),
    row("internal_request_all", 0, create::internal_request_all_0),
    row("internal_delete_all", 2, create::internal_delete_all_2),
    row("insert", 2, rows::insert_2),
    row("insert_new", 2, rows::insert_new_2),
    row("lookup", 2, rows::lookup_2),
    row("lookup_element", 3, rows::lookup_element_3),
    row("lookup_element", 4, rows::lookup_element_4).releases(SINCE_26),
    row("member", 2, rows::member_2),
    row("take", 2, rows::take_2),
    row("delete", 2, rows::delete_2),
    row("delete_object", 2, rows::delete_object_2),
    row("first", 1, rows::first_1),
    row("last", 1, rows::last_1),
    row("next", 2, rows::next_2),
    row("prev", 2, rows::prev_2),
    row("first_lookup", 1, rows::first_lookup_1).releases(SINCE_27),
    row("last_lookup", 1, rows::last_lookup_1).releases(SINCE_27),
    row("next_lookup", 2, rows::next_lookup_2).releases(SINCE_27),
    row("prev_lookup", 2, rows::prev_lookup_2).releases(SINCE_27),
    row("slot", 2, rows::slot_2),
    row("update_counter", 3, update::update_counter_3),
    row("update_counter", 4, update::update_counter_4),
    row("update_element", 3, update::update_element_3),
    row("update_element", 4, update::update_element_4).releases(SINCE_27),
    long("match", 1, select::continue_1),
    long("match", 2, select::match_2),
    long("match", 3, select::match_3),
    long("match_object", 1, select::continue_1),
    long("match_object", 2, select::match_object_2),
    long("match_object", 3, select::match_object_3),
    long("select", 1, select::continue_1),
    long("select", 2, select::select_2),
    long("select", 3, select::select_3),
    long("select_reverse", 1, select::continue_1),
    long("select_reverse", 2, select::select_reverse_2),
    long("select_reverse", 3, select::select_reverse_3),
    long("select_count", 2, pass::select_count_2),
    long("internal_select_delete", 2, pass::internal_select_delete_2),
    long("select_replace", 2, pass::select_replace_2),
    row("info", 1, info::info_1),
    row("info", 2, info::info_2),
    row("is_compiled_ms", 1, spec::is_compiled_ms_1),
    row("match_spec_compile", 1, spec::match_spec_compile_1),
    long("match_spec_run_r", 3, spec::match_spec_run_r_3),
    NativeEntry::new("erlang", "match_spec_test", 3, spec::match_spec_test_3)
        .needs(Capability::ProcessLocal),
    internal("ets_super_user", 1, super_user_1),
    internal("ets_lookup_binary_info", 2, info::lookup_binary_info_2),
    internal("ets_raw_first", 1, rows::first_1),
    internal("ets_raw_next", 2, rows::next_2),
];
