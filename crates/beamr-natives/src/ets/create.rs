//! `ets` tables as wholes: making, naming, giving away, fixing, deleting.

use beamr_abi::{Ctx, Escape};
use beamr_term::{Build, Word, atoms};
use beamr_vm::ets::{
    Heir, Protection, TableKind, TableOptions, WriteConcurrency, free_later, heir_data,
};
use beamr_vm::process::{slot_of, vm_of, worker};

use super::{Problem, find, find_later, readable, reference, writable};

/// Parses the options of `new`; `None` when one is bad.
fn options(ctx: &mut Ctx, name: beamr_term::Atom, list: Word) -> Option<TableOptions> {
    let mut o = TableOptions {
        name,
        named: false,
        kind: TableKind::Set,
        protection: Protection::Protected,
        keypos: 1,
        read_concurrency: false,
        write_concurrency: WriteConcurrency::Off,
        decentralized_counters: false,
        compressed: false,
        heir: None,
    };
    let mut decentralized = None;
    let mut l = list;
    while let Some((option, tail)) = l.as_cons() {
        l = tail;
        match option.as_tuple() {
            None => match option.as_atom()? {
                atoms::SET => {}
                atoms::ORDERED_SET => {
                    o.kind = TableKind::OrderedSet;
                    o.decentralized_counters = true;
                }
                atoms::BAG => o.kind = TableKind::Bag,
                atoms::DUPLICATE_BAG => o.kind = TableKind::DuplicateBag,
                atoms::PUBLIC => o.protection = Protection::Public,
                atoms::PRIVATE => o.protection = Protection::Private,
                atoms::PROTECTED => {}
                atoms::NAMED_TABLE => o.named = true,
                atoms::COMPRESSED => o.compressed = true,
                _ => return None,
            },
            Some([key, value]) => match key.as_atom()? {
                atoms::KEYPOS => {
                    o.keypos = value.as_small().filter(|n| *n > 0)? as usize;
                }
                atoms::WRITE_CONCURRENCY => {
                    o.write_concurrency = match value.as_boolean() {
                        Some(true) => {
                            if o.kind != TableKind::OrderedSet {
                                o.decentralized_counters = false;
                            }
                            WriteConcurrency::On
                        }
                        Some(false) => WriteConcurrency::Off,
                        None if value.as_atom() == Some(atoms::AUTO) => {
                            o.decentralized_counters = true;
                            WriteConcurrency::Auto
                        }
                        None => {
                            let [name, n] = value.as_tuple()? else {
                                return None;
                            };
                            let name = ctx.tables().atoms.text(name.as_atom()?);
                            let n = n.as_small().filter(|n| (1..=32768).contains(n))?;
                            if name != "debug_hash_fixed_number_of_locks" {
                                return None;
                            }
                            o.decentralized_counters = true;
                            WriteConcurrency::Locks(n as u32)
                        }
                    };
                }
                atoms::READ_CONCURRENCY => o.read_concurrency = value.as_boolean()?,
                atoms::DECENTRALIZED_COUNTERS => decentralized = Some(value.as_boolean()?),
                atoms::HEIR if value.as_atom() == Some(atoms::NONE) => o.heir = None,
                _ => return None,
            },
            Some([key, pid, data]) if key.as_atom() == Some(atoms::HEIR) => {
                o.heir = Some(heir(ctx, *pid, *data)?);
            }
            _ => return None,
        }
    }
    if !l.is_nil() {
        return None;
    }
    if let Some(d) = decentralized {
        o.decentralized_counters = d;
    }
    let concurrent = o.write_concurrency != WriteConcurrency::Off;
    if o.kind == TableKind::OrderedSet && matches!(o.write_concurrency, WriteConcurrency::Locks(_))
    {
        return None;
    }
    if o.protection == Protection::Private {
        o.write_concurrency = WriteConcurrency::Off;
        o.read_concurrency = false;
    }
    o.decentralized_counters &= concurrent && o.write_concurrency != WriteConcurrency::Off;
    Some(o)
}

/// An heir; one that is not alive is nobody when the table's owner ends.
fn heir(ctx: &Ctx, pid: Word, data: Word) -> Option<Heir> {
    pid.is_local_pid().then(|| Heir {
        pid,
        data: heir_data(data, worker(ctx)),
    })
}

/// `ets:new(Name, Options)`.
pub(super) fn new_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(name) = args[0].as_atom() else {
        return Err(ctx.badarg());
    };
    let Some(mut o) = options(ctx, name, args[1]) else {
        return Err(ctx.badarg());
    };
    if o.heir.as_ref().is_some_and(|h| !vm_of(ctx).is_alive(h.pid)) {
        o.heir = None;
    }
    let named = o.named;
    let w = worker(ctx);
    let id = w.next_ref().numbers();
    match w.vm.ets.create(w, slot_of(ctx), o, id) {
        None => Err(ctx.badarg_because(atoms::ALREADY_EXISTS)),
        Some(_) if named => Ok(args[0]),
        Some(t) => Ok(reference(ctx, &t)),
    }
}

/// `ets:delete(Table)`.
pub(super) fn delete_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let w = worker(ctx);
    let rows = t.size();
    match w.vm.ets.delete(w, &t) {
        None => Err(Problem::Id.raise(ctx)),
        Some(remains) => {
            free_later(w, remains);
            ctx.bump((rows as i64 / 16).min(4000));
            Ok(Word::TRUE)
        }
    }
}

/// `ets:internal_delete_all(Table, undefined)`: `delete_all_objects`, with the number of rows as its value.
pub(super) fn internal_delete_all_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    if args[1].as_atom() != Some(atoms::UNDEFINED) {
        return Err(ctx.badarg());
    }
    let (n, remains) = t.clear();
    free_later(worker(ctx), remains);
    ctx.bump((n as i64 / 16).min(4000));
    Ok(Word::fixnum(n as i64))
}

/// `ets:rename(Table, Name)`.
pub(super) fn rename_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let Some(name) = args[1].as_atom() else {
        return Err(ctx.badarg());
    };
    let w = worker(ctx);
    if !w.vm.ets.rename(w, &t, name) {
        return Err(ctx.badarg());
    }
    Ok(if t.options.named { args[1] } else { args[0] })
}

/// `ets:whereis(Name)`.
pub(super) fn whereis_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[0].is_atom() {
        return Err(ctx.badarg());
    }
    let found = match find(ctx, args[0]) {
        Err(_) => find_later(ctx, args[0])?,
        found => found,
    };
    match found {
        Ok(t) => Ok(reference(ctx, &t)),
        Err(_) => Ok(atoms::UNDEFINED.word()),
    }
}

/// `ets:give_away(Table, Pid, GiftData)`.
pub(super) fn give_away_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let (me, to) = (ctx.self_pid(), args[1]);
    if !to.is_local_pid() || !vm_of(ctx).is_alive(to) {
        return Err(ctx.badarg());
    }
    if t.owner() != me {
        return Err(ctx.badarg_because(atoms::NOT_OWNER));
    }
    if to == me {
        return Err(ctx.badarg_because(atoms::OWNER));
    }
    let w = worker(ctx);
    match w.vm.ets.give(w, &t, me, to, args[2]) {
        Ok(()) => Ok(Word::TRUE),
        Err(_) => Err(ctx.badarg()),
    }
}

/// `ets:setopts(Table, Options)`: `{heir, Pid, Data}`, `{heir, none}`, `{protection, P}`, each once.
pub(super) fn setopts_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = writable(ctx, args[0])?;
    let list = if args[1].is_tuple() {
        ctx.cons(args[1], Word::NIL)
    } else {
        args[1]
    };
    let mut new_heir: Option<Option<Heir>> = None;
    let mut protection = None;
    let mut l = list;
    while let Some((option, tail)) = l.as_cons() {
        l = tail;
        match option.as_tuple() {
            Some([key, none])
                if key.as_atom() == Some(atoms::HEIR)
                    && none.as_atom() == Some(atoms::NONE)
                    && new_heir.is_none() =>
            {
                new_heir = Some(None);
            }
            Some([key, pid, data]) if key.as_atom() == Some(atoms::HEIR) && new_heir.is_none() => {
                match heir(ctx, *pid, *data) {
                    Some(h) => new_heir = Some(vm_of(ctx).is_alive(h.pid).then_some(h)),
                    None => return Err(ctx.badarg()),
                }
            }
            Some([key, p]) if key.as_atom() == Some(atoms::PROTECTION) && protection.is_none() => {
                protection = match p.as_atom() {
                    Some(atoms::PRIVATE) => Some(Protection::Private),
                    Some(atoms::PROTECTED) => Some(Protection::Protected),
                    Some(atoms::PUBLIC) => Some(Protection::Public),
                    _ => return Err(ctx.badarg()),
                };
            }
            _ => return Err(ctx.badarg()),
        }
    }
    if !l.is_nil() || t.owner() != ctx.self_pid() {
        return Err(ctx.badarg());
    }
    if let Some(h) = new_heir {
        t.set_heir(h);
    }
    if let Some(p) = protection {
        t.set_protection(p);
    }
    Ok(Word::TRUE)
}

/// `ets:safe_fixtable(Table, Boolean)`.
pub(super) fn safe_fixtable_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let t = readable(ctx, args[0])?;
    let Some(fix) = args[1].as_boolean() else {
        return Err(ctx.badarg());
    };
    let me = ctx.self_pid();
    let vm = vm_of(ctx);
    let slot = slot_of(ctx);
    if fix {
        let now = (vm.door.monotonic_time(), vm.system_ns());
        if t.fix(me, now) {
            vm.ets.note_fixed(slot, &t);
        }
    } else if t.unfix(me, false) {
        vm.ets.note_unfixed(slot, &t);
    }
    Ok(Word::TRUE)
}

/// `ets:internal_request_all()`: a reference; `{Reference, Tables}` comes as many times as there are schedulers, the
/// tables together with the first.
pub(super) fn internal_request_all_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let key = worker(ctx).next_ref();
    let vm = vm_of(ctx);
    let all = vm.ets.all(slot_of(ctx).namespace.id);
    ctx.bump(all.len() as i64 / 4);
    for i in 0..vm.worker_count().max(1) {
        let message = beamr_vm::process::Carried::build(16 + all.len() * 8, |f| {
            let mut list = Word::NIL;
            if i == 0 {
                for t in all.iter().rev() {
                    let id = if t.options.named {
                        t.name().word()
                    } else {
                        f.magic_reference(t.id, vm.ets.resource(t))
                    };
                    list = f.cons(id, list);
                }
            }
            let reference = key.build(f);
            f.tuple(&[reference, list])
        });
        vm.send(ctx.self_pid(), message);
    }
    Ok(key.build(ctx))
}
