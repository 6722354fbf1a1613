//! Monitors.

use beamr_abi::{Ctx, Escape};
use beamr_term::{Atom, Word, atoms};

use super::handle::{send_down, take_messages};
use super::{MonitorSignal, Signal, push_proc};
use crate::process::{
    AliasMode, Carried, Monitor, MonitorTarget, ProcId, RefKey, own, slot_of, vm_of, worker,
};
use crate::sched::Worker;

/// Options of `monitor/3` (and of `spawn_opt`'s `{monitor, Options}`).
#[derive(Clone, Copy, Debug, Default)]
pub struct MonitorOptions {
    /// `{alias, Mode}`.
    pub alias: Option<AliasMode>,
    /// `{tag, Term}`.
    pub tag: Option<Word>,
    /// `priority` (28): its message has priority.
    pub priority: bool,
}

/// What to monitor.
#[derive(Clone, Copy, Debug)]
pub enum Monitored {
    /// `process` by pid.
    Pid(ProcId),
    /// `process` by a name of this node.
    Name(Atom),
    /// `process` by a name of another node.
    RemoteName(Atom, Atom),
    /// `port`.
    Port(ProcId),
    /// `port` by name.
    PortName(Atom),
    /// `time_offset`.
    TimeOffset,
}

/// The options of a list `[{alias, explicit_unalias | demonitor | reply_demonitor} | {tag, Term}]`; `None` when it is not one.
pub fn monitor_options(list: Word) -> Option<MonitorOptions> {
    let mut options = MonitorOptions::default();
    let mut l = list;
    while let Some((head, tail)) = l.as_cons() {
        if head == atoms::PRIORITY.word() {
            options.priority = true;
            l = tail;
            continue;
        }
        let [key, value] = head.as_tuple()? else {
            return None;
        };
        if *key == atoms::ALIAS.word() {
            options.alias = Some(match value.as_atom()? {
                atoms::EXPLICIT_UNALIAS => AliasMode::Explicit,
                atoms::DEMONITOR => AliasMode::Demonitor,
                atoms::REPLY_DEMONITOR => AliasMode::ReplyDemonitor,
                _ => return None,
            });
        } else if *key == atoms::TAG.word() {
            options.tag = Some(*value);
        } else {
            return None;
        }
        l = tail;
    }
    l.is_nil().then_some(options)
}

/// What `monitor(process, Item)` names: a pid, a name, `{Name, Node}`; `None` is `badarg`.
pub fn monitored_process(ctx: &Ctx, item: Word) -> Option<Monitored> {
    if let Some(name) = item.as_atom() {
        return Some(Monitored::Name(name));
    }
    if let Some([name, node]) = item.as_tuple() {
        let (name, node) = (name.as_atom()?, node.as_atom()?);
        return Some(if node == ctx.tables().local_node().0 {
            Monitored::Name(name)
        } else {
            Monitored::RemoteName(name, node)
        });
    }
    ProcId::of(item)
        .filter(|p| !p.is_local_port())
        .map(Monitored::Pid)
}

/// Sets a monitor; its reference. What does not exist gives a `'DOWN'` message with `noproc` (`noconnection` for
/// other nodes).
pub fn monitor(ctx: &mut Ctx, what: Monitored, options: MonitorOptions) -> Word {
    let w = worker(ctx);
    let key = w.next_ref();
    let slot = slot_of(ctx);
    let me = slot.proc_id();
    let (target, to, name) = match what {
        Monitored::Pid(p) => (MonitorTarget::Process(p), Some(p), None),
        Monitored::Port(p) => (MonitorTarget::Port(p), Some(p), None),
        Monitored::Name(n) => match w.vm.registry.whereis(slot.namespace.id, n) {
            Some(pid) => {
                let p = ProcId::local(pid.local_number());
                (MonitorTarget::Name(p, n), Some(p), Some(n))
            }
            None => (
                MonitorTarget::RemoteName(n, w.vm.tables.local_node().0),
                None,
                None,
            ),
        },
        Monitored::PortName(n) => {
            let found = w.vm.registry.whereis(slot.namespace.id, n);
            let port = found.and_then(ProcId::of).filter(|p| p.is_local_port());
            (MonitorTarget::PortName(port, n), port, Some(n))
        }
        Monitored::RemoteName(n, node) => (MonitorTarget::RemoteName(n, node), None, None),
        Monitored::TimeOffset => (MonitorTarget::TimeOffset, None, None),
    };
    let m = Monitor {
        target,
        tag: options.tag.map(|t| Box::new(Carried::own(t))),
        alias: options.alias.is_some(),
    };
    let reference = m.reference(key, slot.pid(), ctx);
    let o = own(ctx);
    if let Some(mode) = options.alias {
        o.aliases.insert(key, mode);
    }
    if to == Some(me) {
        // A process never sees its own end: there is nothing to set.
        return reference;
    }
    if options.priority {
        let p = o.priorities.get_or_insert_default();
        p.monitors.insert(key, ());
    }
    let elsewhere = matches!(what, Monitored::RemoteName(..))
        || matches!(what, Monitored::Pid(p) if p.is_remote());
    o.monitors.insert(key, m);
    if matches!(what, Monitored::TimeOffset) {
        return reference;
    }
    let set = to.is_some_and(|to| {
        let signal = Signal::Monitor(Box::new(MonitorSignal {
            key,
            origin: me,
            name,
        }));
        push_proc(w, to, signal).is_ok()
    });
    if !set {
        let reason = if elsewhere {
            atoms::NOCONNECTION
        } else {
            atoms::NOPROC
        };
        send_down(w, me, key, Carried::immediate(reason));
    }
    reference
}

/// Tells the watched side that a monitor is gone.
pub(crate) fn tell_demonitor(w: &Worker, target: MonitorTarget, key: RefKey) {
    let to = match target {
        MonitorTarget::Process(p) | MonitorTarget::Name(p, _) | MonitorTarget::Port(p) => p,
        MonitorTarget::PortName(Some(p), _) => p,
        MonitorTarget::PortName(None, _)
        | MonitorTarget::RemoteName(..)
        | MonitorTarget::TimeOffset => return,
    };
    let _ = push_proc(w, to, Signal::Demonitor(key));
}

/// `demonitor/1,2`: whether the monitor was there. With `flush`, also takes a `'DOWN'` of it out of the mailbox.
/// `badarg` for what is no reference; another process's monitors are none of ours and give false.
pub fn demonitor(ctx: &mut Ctx, reference: Word, flush: bool) -> Result<bool, Escape> {
    if !reference.is_reference() {
        return Err(ctx.badarg());
    }
    let Some(key) = RefKey::of(reference) else {
        return Ok(false);
    };
    let w = worker(ctx);
    let o = own(ctx);
    let found = match o.monitors.remove(key) {
        Some(m) => {
            tell_demonitor(w, m.target, key);
            true
        }
        None => false,
    };
    if matches!(
        o.aliases.get(key),
        Some(AliasMode::Demonitor | AliasMode::ReplyDemonitor)
    ) {
        o.aliases.remove(key);
    }
    if let Some(p) = &mut o.priorities {
        p.monitors.remove(key);
    }
    if flush && !found {
        take_messages(worker(ctx), slot_of(ctx), o);
        let mut done = false;
        o.mailbox.remove_where(|m| {
            let is_it = !done
                && m.as_tuple()
                    .is_some_and(|t| t.len() == 5 && RefKey::of(t[1]) == Some(key));
            done |= is_it;
            is_it
        });
    }
    Ok(found)
}

/// Whether monitor `reference` of the calling process exists.
pub fn is_monitor(ctx: &Ctx, reference: Word) -> bool {
    RefKey::of(reference).is_some_and(|k| own(ctx).monitors.contains(k))
}

/// The node name that `monitor_node` and friends compare with.
pub fn local_node(ctx: &Ctx) -> Atom {
    vm_of(ctx).tables.local_node().0
}
