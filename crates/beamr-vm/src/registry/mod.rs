//! Registered names, per namespace.

use std::collections::HashMap;
use std::sync::RwLock;

use beamr_abi::{Ctx, Escape, Pending};
use beamr_sync::SlotId;
use beamr_term::{Atom, Build, Word, atoms};

use crate::process::{ProcId, own, slot_of, worker};
use crate::signal::request::{RequestKind, ask};
use crate::timer;
use crate::trace::process::{Tag, procs};
use crate::vm::Sought;

/// Names to pids (and ports).
#[derive(Debug, Default)]
pub struct Registry {
    names: RwLock<HashMap<(u32, Atom), Word>>,
}

impl Registry {
    /// What a name stands for.
    pub fn whereis(&self, namespace: u32, name: Atom) -> Option<Word> {
        self.names
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(&(namespace, name))
            .copied()
    }
    /// Takes a free name; false when it is taken.
    pub fn insert(&self, namespace: u32, name: Atom, id: Word) -> bool {
        match self
            .names
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .entry((namespace, name))
        {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(v) => {
                v.insert(id);
                true
            }
        }
    }
    /// Frees a name if it stands for `id`.
    pub fn remove(&self, namespace: u32, name: Atom, id: Word) -> bool {
        let mut names = self.names.write().unwrap_or_else(|e| e.into_inner());
        if names.get(&(namespace, name)) == Some(&id) {
            names.remove(&(namespace, name));
            true
        } else {
            false
        }
    }
    /// All names of a namespace.
    pub fn names(&self, namespace: u32) -> Vec<Atom> {
        let mut v: Vec<Atom> = self
            .names
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .keys()
            .filter(|(n, _)| *n == namespace)
            .map(|(_, a)| *a)
            .collect();
        v.sort_by_key(|a| a.index());
        v
    }
}

/// `register/2` of a process: `badarg` when the name is taken or `undefined`, the process is dead, of another node,
/// or has a name.
///
/// Another process is asked to take the name itself (a question, see [`ask`]), so that its name and its death cannot cross.
pub fn register(ctx: &mut Ctx, name: Word, pid: Word) -> Result<(), Escape> {
    let because = |ctx: &mut Ctx, cause: Atom| ctx.badarg_because(cause);
    let Some(name) = name.as_atom().filter(|n| *n != atoms::UNDEFINED) else {
        return Err(because(ctx, atoms::NONE));
    };
    if pid.is_local_port() {
        let vm = worker(ctx).vm.clone();
        return match crate::port::find(ctx, pid) {
            Some(port) if port.register(&vm, name) => Ok(()),
            Some(port) if port.registered().is_some() => Err(because(ctx, atoms::REGISTERED_NAME)),
            Some(_) => Err(because(ctx, atoms::NONE)),
            None => Err(because(ctx, atoms::NOTALIVE)),
        };
    }
    let Some(to) = ProcId::of(pid).filter(|p| p.is_local_pid()) else {
        return Err(because(ctx, atoms::NONE));
    };
    let slot = slot_of(ctx);
    let namespace = slot.namespace.id;
    if to == slot.proc_id() {
        let o = own(ctx);
        if o.name.is_some() {
            return Err(because(ctx, atoms::REGISTERED_NAME));
        }
        if !worker(ctx).vm.registry.insert(namespace, name, pid) {
            return Err(because(ctx, atoms::NONE));
        }
        o.name = Some(name);
        procs(worker(ctx), slot, |n| n.register, &[name.word()]);
        return Ok(());
    }
    let vm = worker(ctx).vm.clone();
    let answer = ask(ctx, to, |_| {
        RequestKind::Name(Box::new(move |o| {
            // True, or the cause.
            if o.name.is_some() {
                return atoms::REGISTERED_NAME.word();
            }
            if !vm.registry.insert(namespace, name, pid) {
                return atoms::NONE.word();
            }
            o.name = Some(name);
            Word::TRUE
        }))
    })?;
    match answer {
        Some(Word::TRUE) => {
            procs_at(ctx, pid, |n| n.register, name);
            Ok(())
        }
        Some(cause) => Err(ctx.badarg_because(cause)),
        None => Err(because(ctx, atoms::NOTALIVE)),
    }
}

/// `unregister/1`: `badarg` when nothing has the name.
pub fn unregister(ctx: &mut Ctx, name: Word) -> Result<(), Escape> {
    let Some(name) = name.as_atom() else {
        return Err(ctx.badarg());
    };
    let slot = slot_of(ctx);
    let namespace = slot.namespace.id;
    let vm = worker(ctx).vm.clone();
    if !crate::signal::request::has_asked(ctx) {
        let Some(pid) = vm.registry.whereis(namespace, name) else {
            return Err(ctx.badarg());
        };
        if pid.is_local_port() {
            match crate::port::find(ctx, pid) {
                Some(port) => port.unregister(&vm, name),
                None => drop(vm.registry.remove(namespace, name, pid)),
            }
            return Ok(());
        }
        if pid == slot.pid() {
            vm.registry.remove(namespace, name, pid);
            own(ctx).name = None;
            procs(worker(ctx), slot, |n| n.unregister, &[name.word()]);
            return Ok(());
        }
        // Free at once for everybody; the process forgets it with the question below.
        if vm.registry.remove(namespace, name, pid) {
            procs_at(ctx, pid, |n| n.unregister, name);
        }
        let to = ProcId::local(pid.local_number());
        return ask(ctx, to, |_| {
            RequestKind::Name(Box::new(move |o| {
                if o.name == Some(name) {
                    o.name = None;
                }
                Word::TRUE
            }))
        })
        .map(|_| ());
    }
    let me = slot.proc_id();
    ask(ctx, me, |_| RequestKind::IsAlive).map(|_| ())
}

/// An event of another process, if that is traced.
fn procs_at(ctx: &Ctx, pid: Word, tag: Tag, name: Atom) {
    let w = worker(ctx);
    let guard = w.participant.pin();
    if let Some(slot) =
        w.vm.processes
            .get(SlotId::from_u64(pid.local_number()), &guard)
    {
        procs(w, slot, tag, &[name.word()]);
    }
}

/// Whether a process of a name that stands for nothing is being started: the caller looks again in its next slice. When not,
/// a belonging may have come since the caller looked.
#[cold]
pub fn is_starting(ctx: &Ctx, name: Atom, sought: Sought) -> bool {
    let slot = slot_of(ctx);
    let vm = &worker(ctx).vm;
    let hook = vm.hooks.names.get();
    let family = own(ctx).family;
    hook.is_some_and(|f| f(vm, slot.namespace.id, name, sought, family))
}

/// Whether a name, or what belongs to it, is held back though it is there: its process is still being started.
#[inline]
pub fn is_held_back(ctx: &Ctx, name: Atom) -> bool {
    worker(ctx).vm.starting() && is_starting(ctx, name, Sought::Ready)
}

/// For a native that found [`is_starting`] true: it sleeps until a server has started, and is run again.
#[cold]
pub fn wait_for_start(ctx: &mut Ctx, name: Atom, sought: Sought) -> Escape {
    let id = slot_of(ctx).id;
    let vm = worker(ctx).vm.clone();
    vm.waiting
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .push(id);
    // Who has started meanwhile may not have seen this process in the list.
    if is_starting(ctx, name, sought) {
        ctx.escape(Pending::Wait)
    } else {
        ctx.escape(Pending::Yield)
    }
}

/// What a name stands for in the namespace of the caller, `None` for nothing. While a process of that name is being started the
/// caller sleeps (for a millisecond at a time: a yield would keep processes of lower priority, such as the one that is
/// being started, from running) and looks again.
pub fn look(ctx: &Ctx, name: Atom) -> Result<Option<Word>, Pending> {
    let w = worker(ctx);
    let slot = slot_of(ctx);
    match w.vm.registry.whereis(slot.namespace.id, name) {
        found
            if (found.is_none() && is_starting(ctx, name, Sought::Process))
                || is_held_back(ctx, name) =>
        {
            let o = own(ctx);
            timer::stop_receive(w, o);
            timer::start_receive(w, slot.id, o, 1);
            Err(Pending::Wait)
        }
        found => {
            if w.vm.hooks.names.get().is_some() {
                timer::stop_receive(w, own(ctx));
            }
            Ok(found)
        }
    }
}

/// `whereis/1`: the pid or port, or `None`. `badarg` for what is no atom.
pub fn whereis(ctx: &mut Ctx, name: Word) -> Result<Option<Word>, Escape> {
    let Some(name) = name.as_atom() else {
        return Err(ctx.badarg());
    };
    let slot = slot_of(ctx);
    let w = worker(ctx);
    let found = look(ctx, name).map_err(|p| ctx.escape(p))?;
    Ok(found.filter(|id| {
        if !id.is_local_pid() || *id == slot.pid() {
            return true;
        }
        let guard = w.participant.pin();
        w.vm.processes
            .get(SlotId::from_u64(id.local_number()), &guard)
            .is_some_and(|s| !s.state.snapshot().is_exiting())
    }))
}

/// `registered/0`: a list of names.
pub fn registered(ctx: &mut Ctx) -> Word {
    let namespace = slot_of(ctx).namespace.id;
    let names = worker(ctx).vm.registry.names(namespace);
    ctx.list(names.into_iter().map(Atom::word))
}
