//! What each signal does to its receiver. Runs on the receiver's runner.

use beamr_abi::ExceptionClass;
use beamr_sync::signal_queue::Node;
use beamr_term::{Build, Word, atoms};

use super::{
    AliasMessage, DownSignal, ExitKind, ExitSignal, MonitorSignal, Request, Signal, push_proc,
};
use crate::process::exit::Dying;
use crate::process::{
    AliasMode, Carried, MonitorTarget, MonitoredBy, Outstanding, Own, ProcId, RefKey, Slot,
    TimeoutState,
};
use crate::sched::Worker;
use crate::trace::flags::{RECEIVE, TOKEN};
use crate::trace::process as trace;
use crate::trace::seq::Token;

/// Fetches and handles all signals of the process, in order. True when one of them ends it: what came after it stays
/// for the exit procedure.
pub(crate) fn handle_all(w: &Worker, slot: &Slot, own: &mut Own) -> bool {
    if own.dying.is_some() {
        return true;
    }
    let mut h = Handler { w, slot, own };
    loop {
        if let Some(mut batch) = h.own.middle.take() {
            while let Some(node) = batch.next_node() {
                h.signal(node);
                if h.own.dying.is_some() {
                    h.own.middle = Some(batch);
                    return true;
                }
            }
        }
        slot.state.absorb();
        let batch = slot.queue.fetch();
        if batch.is_empty() {
            return false;
        }
        h.own.middle = Some(batch);
    }
}

/// Moves fetched messages into the mailbox as far as no other signal stands before them. For who must not be ended.
pub(crate) fn take_messages(w: &Worker, slot: &Slot, own: &mut Own) {
    if own.middle.is_some() || own.dying.is_some() {
        return;
    }
    let mut batch = slot.queue.fetch();
    while let Some(node) = batch.next_node() {
        if let Signal::Message(m) = &node.value {
            if slot.tracing().on(RECEIVE) {
                trace::received(w, slot, m.term, Word::NIL);
            }
            own.mailbox.push(node);
            own.woke = true;
        } else {
            batch.put_back(node);
            own.middle = Some(batch);
            return;
        }
    }
}

struct Handler<'a> {
    w: &'a Worker,
    slot: &'a Slot,
    own: &'a mut Own,
}

impl Handler<'_> {
    fn signal(&mut self, node: Box<Node<Signal>>) {
        if let Signal::Message(m) = &node.value {
            if self.slot.tracing().on(RECEIVE) {
                trace::received(self.w, self.slot, m.term, Word::NIL);
            }
            self.own.mailbox.push(node);
            self.own.woke = true;
            return;
        }
        match node.into_value() {
            Signal::Message(_) | Signal::Wake => self.own.woke = true,
            Signal::Letter(l) => {
                if self.slot.tracing().on(RECEIVE) {
                    trace::received(self.w, self.slot, l.message.term, l.from);
                }
                let node = Node::new(Signal::Message(l.message));
                if let Some(token) = l.token {
                    let at = std::ptr::from_ref(&*node) as usize;
                    self.own
                        .tokens
                        .get_or_insert_default()
                        .insert(at, Some(token));
                    self.slot.tracing().set_bit(TOKEN, true);
                }
                self.own.mailbox.push(node);
                self.own.woke = true;
            }
            Signal::AliasMessage(m) => self.alias_message(*m),
            Signal::Timeout(id) => {
                if self.own.timer_id == id && self.own.timeout == TimeoutState::Running {
                    self.own.timer = None;
                    self.own.timeout = TimeoutState::Fired;
                    self.own.woke = true;
                }
            }
            Signal::Exit(e) => self.exit(*e),
            Signal::Link(from) => {
                if !self.own.links.contains(from) {
                    self.own.links.insert(from, 0);
                    trace::procs_of(self.w, self.slot, |n| n.getting_linked, from);
                }
            }
            Signal::Unlink(u) => {
                let (from, id) = *u;
                if self.own.links.get(from) == Some(&0) {
                    self.own.links.remove(from);
                    trace::procs_of(self.w, self.slot, |n| n.getting_unlinked, from);
                }
                let ack = Signal::UnlinkAck(Box::new((self.slot.proc_id(), id)));
                let _ = push_proc(self.w, from, ack);
            }
            Signal::UnlinkAck(u) => {
                let (from, id) = *u;
                if id != 0 && self.own.links.get(from) == Some(&id) {
                    self.own.links.remove(from);
                }
            }
            Signal::Monitor(m) => {
                let MonitorSignal { key, origin, name } = *m;
                self.own
                    .monitored_by
                    .insert(key, MonitoredBy { origin, name });
            }
            Signal::Demonitor(key) => {
                self.own.monitored_by.remove(key);
            }
            Signal::Down(d) => self.down(*d),
            Signal::Request(r) => self.request(*r),
            Signal::Reply(r) => {
                let (id, answer) = *r;
                if let Some(o) = &mut self.own.outstanding
                    && matches!(**o, Outstanding::Waiting(i) if i == id)
                {
                    **o = Outstanding::Done(answer);
                    self.own.woke = true;
                }
            }
        }
    }

    fn message(&mut self, message: Carried, priority: bool) {
        self.message_with(message, priority, None);
    }

    /// A message that is put into the mailbox here, with the token that it carries.
    fn message_with(&mut self, message: Carried, priority: bool, token: Option<Token>) {
        if self.slot.tracing().on(RECEIVE) {
            trace::received(self.w, self.slot, message.term, Word::NIL);
        }
        let node = Node::new(Signal::Message(message.into_message()));
        if token.is_some() || self.slot.tracing().has_token() {
            self.slot.tracing().set_bit(TOKEN, true);
            let at = std::ptr::from_ref(&*node) as usize;
            self.own.tokens.get_or_insert_default().insert(at, token);
        }
        if priority {
            self.own.mailbox.push_priority(node);
        } else {
            self.own.mailbox.push(node);
        }
        self.own.woke = true;
    }

    /// Something came through an alias: `None` when it is not active, else whether it gives priority.
    fn through_alias(&mut self, key: RefKey) -> Option<bool> {
        let mode = self.own.aliases.get(key).copied()?;
        let priorities = self.own.priorities.as_mut();
        let priority = priorities.is_some_and(|p| match mode {
            AliasMode::Explicit | AliasMode::Demonitor => p.aliases.contains(key),
            AliasMode::Reply | AliasMode::ReplyDemonitor => p.aliases.remove(key).is_some(),
        });
        match mode {
            AliasMode::Explicit | AliasMode::Demonitor => {}
            AliasMode::Reply => {
                self.own.aliases.remove(key);
            }
            AliasMode::ReplyDemonitor => {
                self.own.aliases.remove(key);
                if let Some(monitor) = self.own.monitors.remove(key) {
                    super::monitor::tell_demonitor(self.w, monitor.target, key);
                }
            }
        }
        Some(priority)
    }

    fn alias_message(&mut self, m: AliasMessage) {
        if let Some(may) = self.through_alias(m.key) {
            self.message_with(m.message, m.priority && may, m.token);
        }
    }

    fn exit(&mut self, e: ExitSignal) {
        let mut priority = false;
        let mut unlinked = false;
        if let Some(key) = e.alias {
            match self.through_alias(key) {
                Some(may) => priority = may && e.priority,
                None => return,
            }
        }
        if matches!(e.kind, ExitKind::Link | ExitKind::NoLink)
            && let Some(p) = &mut self.own.priorities
        {
            priority = p.links.remove(e.from).is_some();
        }
        match e.kind {
            ExitKind::Link => match self.own.links.get(e.from) {
                Some(0) => {
                    self.own.links.remove(e.from);
                    unlinked = true;
                }
                // Not linked any more, or an unlink is on its way: the link is down for this process.
                _ => return,
            },
            ExitKind::NoLink => match self.own.links.get(e.from) {
                Some(0) => {
                    self.own.links.remove(e.from);
                    unlinked = true;
                }
                Some(_) => return,
                None => return,
            },
            ExitKind::Exit2 | ExitKind::Host => {}
            ExitKind::Terminate => {
                let reason = if e.reason.term == atoms::KILL.word() {
                    Carried::immediate(atoms::KILLED)
                } else {
                    e.reason
                };
                return self.die(reason);
            }
        }
        let reason = e.reason.term;
        let by_exit2 = matches!(e.kind, ExitKind::Exit2 | ExitKind::Host);
        if by_exit2 && reason == atoms::KILL.word() {
            return self.die(Carried::immediate(atoms::KILLED));
        }
        let stays =
            self.own.trap_exit || (reason == atoms::NORMAL.word() && e.from != self.slot.proc_id());
        if stays && unlinked {
            trace::procs_of(self.w, self.slot, |n| n.getting_unlinked, e.from);
        }
        if self.own.trap_exit {
            let tables = &self.w.vm.tables;
            let from = e.from;
            let message = e.reason.wrap(|f, reason| {
                let from = from.build(tables, f);
                f.tuple(&[atoms::EXIT_UPPER.word(), from, reason])
            });
            return self.message_with(message, priority, e.token);
        }
        if reason == atoms::NORMAL.word() && e.from != self.slot.proc_id() {
            return;
        }
        self.die(e.reason);
    }

    fn die(&mut self, reason: Carried) {
        self.own.dying = Some(Box::new(Dying::by_signal(ExceptionClass::Exit, reason)));
    }

    fn down(&mut self, d: DownSignal) {
        let Some(monitor) = self.own.monitors.remove(d.key) else {
            return;
        };
        if matches!(
            self.own.aliases.get(d.key),
            Some(AliasMode::Demonitor | AliasMode::ReplyDemonitor)
        ) {
            self.own.aliases.remove(d.key);
        }
        let tables = &self.w.vm.tables;
        let pid = self.slot.pid();
        let message = d.reason.wrap(|f, reason| {
            let tag = match &monitor.tag {
                Some(t) => t.copy_into(f),
                None => atoms::DOWN.word(),
            };
            let reference = monitor.reference(d.key, pid, f);
            let (kind, object) = match monitor.target {
                MonitorTarget::Process(p) => (atoms::PROCESS, p.build(tables, f)),
                MonitorTarget::Port(p) => (atoms::PORT, p.build(tables, f)),
                MonitorTarget::PortName(_, name) => {
                    let node = tables.local_node().0.word();
                    (atoms::PORT, f.tuple(&[name.word(), node]))
                }
                MonitorTarget::Name(_, name) => {
                    let node = tables.local_node().0.word();
                    (atoms::PROCESS, f.tuple(&[name.word(), node]))
                }
                MonitorTarget::RemoteName(name, node) => {
                    (atoms::PROCESS, f.tuple(&[name.word(), node.word()]))
                }
                MonitorTarget::TimeOffset => (atoms::TIME_OFFSET, Word::NIL),
            };
            f.tuple(&[tag, reference, kind.word(), object, reason])
        });
        let priorities = self.own.priorities.as_mut();
        let priority = priorities.is_some_and(|p| p.monitors.remove(d.key).is_some());
        self.message(message, priority);
    }

    fn request(&mut self, r: Request) {
        if r.kind.at_once() {
            r.answer_here(self.w, self.own);
        } else {
            self.own.deferred.push(r);
        }
    }
}

/// Sends an exit signal.
pub(crate) fn send_exit(
    w: &Worker,
    from: ProcId,
    to: ProcId,
    kind: ExitKind,
    reason: Carried,
) -> bool {
    let signal = Signal::Exit(Box::new(ExitSignal {
        from,
        kind,
        reason,
        alias: None,
        priority: false,
        token: None,
    }));
    push_proc(w, to, signal).is_ok()
}

/// Sends the exit signal of a link, with the token of the process that has died.
pub(crate) fn send_link_exit(
    w: &Worker,
    from: ProcId,
    to: ProcId,
    reason: Carried,
    token: Option<Token>,
) {
    let signal = ExitSignal {
        from,
        kind: ExitKind::Link,
        reason,
        alias: None,
        priority: false,
        token,
    };
    let _ = push_proc(w, to, Signal::Exit(Box::new(signal)));
}

/// Sends the end of a monitored thing.
pub(crate) fn send_down(w: &Worker, to: ProcId, key: RefKey, reason: Carried) {
    let _ = push_proc(w, to, Signal::Down(Box::new(DownSignal { key, reason })));
}
