//! `erlang`: funs by name: `make_fun`, `fun_info`, which functions are natives.

use std::sync::atomic::Ordering;

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn, TrapTarget};
use beamr_term::{Atom, Build, FunEntry, Subtag, Word, atoms, format};
use beamr_vm::code::ModuleTable;
use beamr_vm::process::{ProcId, slot_of, spawn, vm_of};
use beamr_vm::signal::request::{self, RequestKind};

use super::types::fun_arity;
use crate::support::name;

/// The modules of the running process's namespace.
pub fn modules<'a>(ctx: &Ctx) -> &'a ModuleTable {
    &slot_of(ctx).namespace.modules
}

/// What a local fun points to.
pub fn fun_entry<'a>(fun: Word) -> Option<&'a FunEntry> {
    // SAFETY: word 1 of a fun points to its entry, which lives as long as the VM.
    (fun.subtag() == Some(Subtag::Fun)).then(|| unsafe { &*(fun.field(1) as usize as *const _) })
}

/// `M`, `F` and a size that can be an arity; `badarg` otherwise.
fn mfa(ctx: &mut Ctx, args: &[Word]) -> Result<(Atom, Atom, Option<u32>), Escape> {
    match (args[0].as_atom(), args[1].as_atom(), args[2].as_small()) {
        (Some(m), Some(f), Some(a)) if a >= 0 => Ok((m, f, u32::try_from(a).ok())),
        _ => Err(ctx.badarg()),
    }
}

/// `is_builtin(M, F, Arity)`.
fn is_builtin_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (m, f, a) = mfa(ctx, args)?;
    // The engine itself is `apply/3`.
    let apply = m == atoms::ERLANG && f == atoms::APPLY && a == Some(3);
    let found = apply || a.is_some_and(|a| modules(ctx).native(m, f, a).is_some());
    Ok(Word::boolean(found))
}

/// `make_fun(M, F, Arity)`.
fn make_fun_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (m, f, Some(a @ 0..=255)) = mfa(ctx, args)? else {
        return Err(ctx.badarg());
    };
    match ctx.tables().exports.id(m, f, a) {
        Ok(id) => Ok(ctx.export_fun(id, args[0], args[1], a)),
        Err(_) => Err(ctx.system_limit()),
    }
}

/// Whether the code of a local fun is there.
fn is_loaded(e: &FunEntry) -> bool {
    !e.code.load(Ordering::Acquire).is_null()
}

/// `fun_info(Fun, Item)`.
fn fun_info_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let fun = args[0];
    let Some(item) = name(ctx, args[1]).filter(|_| fun.is_fun()) else {
        return Err(ctx.badarg());
    };
    let undefined = atoms::UNDEFINED.word();
    let entry = fun_entry(fun);
    let value = match (item, entry) {
        ("arity", _) => Word::fixnum(i64::from(fun_arity(fun).unwrap_or(0))),
        ("type", Some(_)) => atoms::LOCAL.word(),
        ("type", None) => atoms::EXTERNAL.word(),
        // Who made a fun is not kept: before 27 the asker stands for it, from then on the first process.
        ("pid", Some(_)) if ctx.tables().release.0 >= 27 => Word::pid(0),
        ("pid", Some(_)) => ctx.self_pid(),
        ("module", Some(e)) => e.module.word(),
        ("module", None) => fun.term_field(2),
        ("name", Some(e)) => match e.local_name().filter(|_| is_loaded(e)) {
            Some((f, _)) => f.word(),
            None => Word::NIL,
        },
        ("name", None) => fun.term_field(3),
        ("new_index", Some(e)) => Word::fixnum(i64::from(e.index)),
        ("new_uniq", Some(e)) => ctx.binary(&e.uniq),
        ("index", Some(e)) => Word::fixnum(i64::from(e.index)),
        ("uniq", Some(e)) => Word::fixnum(i64::from(e.old_uniq)),
        ("refc", Some(e)) => return count(ctx, args[1], fun, e),
        ("env", Some(_)) => {
            let free = fun.header().arity() - 1;
            let values: Vec<Word> = (0..free).map(|i| fun.term_field(2 + i)).collect();
            ctx.list(values)
        }
        ("env", None) => Word::NIL,
        ("pid" | "new_index" | "new_uniq" | "index" | "uniq" | "refc", None) => undefined,
        _ => return Err(ctx.badarg()),
    };
    Ok(ctx.tuple(&[args[1], value]))
}

/// `fun_info(Fun, refc)`: one for the module and one for each fun of the entry in heaps, messages and tables. Nothing counts
/// them as they come and go: they are looked for, in one process after the other.
fn count(ctx: &mut Ctx, item: Word, fun: Word, entry: &FunEntry) -> Result<Word, Escape> {
    let vm = vm_of(ctx).clone();
    let tables = vm.ets.all(slot_of(ctx).namespace.id);
    let rows: usize = tables.iter().map(|t| t.funs(entry)).sum();
    let n = usize::from(is_loaded(entry)) + rows + request::own_funs(ctx, entry);
    let all = spawn::processes(ctx);
    let so_far = Word::fixnum(n as i64);
    Err(ctx.trap(TrapTarget::Native(&COUNT), &[item, fun, all, so_far]))
}

fn count_on(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some((pid, rest)) = args[2].as_cons() else {
        return Ok(ctx.tuple(&[args[0], args[3]]));
    };
    let n = match (ProcId::of(pid), fun_entry(args[1])) {
        (Some(to), Some(entry)) if to != slot_of(ctx).proc_id() => {
            let answer = request::ask(ctx, to, |_| {
                RequestKind::Call(Box::new(move |t, _| {
                    // SAFETY: the process is at rest.
                    Word::fixnum(unsafe { request::funs_of(t, entry) } as i64)
                }))
            })?;
            answer.map_or(0, Word::small_value)
        }
        _ => 0,
    };
    let sum = Word::fixnum(args[3].small_value() + n);
    Err(ctx.trap(TrapTarget::Native(&COUNT), &[args[0], args[1], rest, sum]))
}

static COUNT: NativeEntry = row("fun_info", 4, count_on);

/// `fun_info_mfa(Fun)`.
fn fun_info_mfa_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let fun = args[0];
    let Some(arity) = fun_arity(fun) else {
        return Err(ctx.badarg());
    };
    let arity = Word::fixnum(i64::from(arity));
    let (m, f) = match fun_entry(fun) {
        Some(e) => {
            let f = e.local_name().filter(|_| is_loaded(e));
            (e.module.word(), f.map_or(Word::NIL, |f| f.0.word()))
        }
        None => (fun.term_field(2), fun.term_field(3)),
    };
    Ok(ctx.tuple(&[m, f, arity]))
}

/// `fun_to_list(Fun)`.
fn fun_to_list_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_fun() {
        return Err(ctx.badarg());
    }
    let text = format::format_term(ctx.tables(), args[0], format::FormatLimit::NONE);
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(ctx.string(&text))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("is_builtin", 3, is_builtin_3),
    row("make_fun", 3, make_fun_3),
    row("fun_info", 2, fun_info_2),
    row("fun_info_mfa", 1, fun_info_mfa_1),
    row("fun_to_list", 1, fun_to_list_1),
];
