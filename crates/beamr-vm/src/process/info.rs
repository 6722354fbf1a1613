//! `process_info`.

use std::sync::Arc;

use beamr_abi::{Ctx, Escape};
use beamr_term::header::Subtag;
use beamr_term::{Alloc, Atom, Build, Header, Tables, Word, atoms};

use super::flags::{max_heap_map, priority_atom, queue_data};
use super::spawn::pairs;
use super::{
    Carried, MonitorTarget, Own, ProcId, Process, Slot, copy_term, own, process, slot_of, worker,
};
use crate::gc::heap_bytes;
use crate::gc::sizes::FIRST_SIZE;
use crate::rt::{Frame, stack_frames};
use crate::sched::Worker;
use crate::signal::handle::handle_all;
use crate::signal::request::{RequestKind, ask};

macro_rules! items {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// What can be asked of a process.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum InfoItem {
            $(#[doc = $name] $variant,)*
        }
        impl InfoItem {
            /// All items.
            pub const ALL: &[InfoItem] = &[$(InfoItem::$variant),*];
            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(InfoItem::$variant => $name),* }
            }
        }
    };
}

items! {
    AsyncDist = "async_dist",
    Backtrace = "backtrace",
    Binary = "binary",
    Catchlevel = "catchlevel",
    CurrentFunction = "current_function",
    CurrentLocation = "current_location",
    CurrentStacktrace = "current_stacktrace",
    Dictionary = "dictionary",
    ErrorHandler = "error_handler",
    FullsweepAfter = "fullsweep_after",
    GarbageCollection = "garbage_collection",
    GarbageCollectionInfo = "garbage_collection_info",
    GroupLeader = "group_leader",
    HeapSize = "heap_size",
    InitialCall = "initial_call",
    Label = "label",
    LastCalls = "last_calls",
    Links = "links",
    Magic = "magic_ref",
    MaxHeapSize = "max_heap_size",
    Memory = "memory",
    MessageQueueData = "message_queue_data",
    MessageQueueLen = "message_queue_len",
    Messages = "messages",
    MinBinVheapSize = "min_bin_vheap_size",
    MinHeapSize = "min_heap_size",
    MonitoredBy = "monitored_by",
    Monitors = "monitors",
    Parent = "parent",
    Priority = "priority",
    PriorityMessages = "priority_messages",
    Reductions = "reductions",
    RegisteredName = "registered_name",
    Sensitive = "sensitive",
    SequentialTraceToken = "sequential_trace_token",
    StackSize = "stack_size",
    Status = "status",
    Suspending = "suspending",
    TotalHeapSize = "total_heap_size",
    Trace = "trace",
    TrapExit = "trap_exit",
}

impl InfoItem {
    /// The item of this name in this release.
    pub fn parse(tables: &Tables, term: Word) -> Option<InfoItem> {
        let name = tables.atoms.text(term.as_atom()?);
        let since = match name {
            "parent" | "async_dist" => 25,
            "label" => 27,
            "priority_messages" => 28,
            _ => 0,
        };
        if tables.release.0 < since {
            return None;
        }
        InfoItem::ALL.iter().copied().find(|i| i.name() == name)
    }
}

/// What `process_info/1` answers, besides `registered_name` in front when there is one.
pub const DEFAULT_ITEMS: &[InfoItem] = &[
    InfoItem::CurrentFunction,
    InfoItem::InitialCall,
    InfoItem::Status,
    InfoItem::MessageQueueLen,
    InfoItem::Links,
    InfoItem::Dictionary,
    InfoItem::TrapExit,
    InfoItem::ErrorHandler,
    InfoItem::Priority,
    InfoItem::GroupLeader,
    InfoItem::TotalHeapSize,
    InfoItem::HeapSize,
    InfoItem::StackSize,
    InfoItem::Reductions,
    InfoItem::GarbageCollection,
    InfoItem::Suspending,
];

/// `process_info(Pid, Items)`: a list of `{Item, Value}` in the order asked, `None` when the process is dead. A process without a name
/// has `{registered_name, []}`. `badarg` for what is no local pid.
pub fn process_info(ctx: &mut Ctx, pid: Word, items: &[InfoItem]) -> Result<Option<Word>, Escape> {
    if !pid.is_local_pid() {
        return Err(ctx.badarg());
    }
    let to = ProcId::local(pid.local_number());
    let slot = slot_of(ctx);
    if to == slot.proc_id() {
        if handle_all(worker(ctx), slot, own(ctx)) {
            return Err(ctx.escape(beamr_abi::Pending::Exit));
        }
        let w = worker(ctx);
        w.status.set(atoms::RUNNING);
        let reductions = (crate::sched::SLICE - ctx.fcalls).max(0) as u64;
        let list = build(ctx, w, own(ctx), process(ctx), items, reductions, false);
        return Ok(Some(list));
    }
    ask(ctx, to, |_| RequestKind::Info(items.into()))
}

/// Answers another process.
pub(crate) fn answer(
    w: &Worker,
    own: &mut Own,
    process: &mut Process,
    items: &[InfoItem],
) -> Carried {
    Carried::build(64, |f| build(f, w, own, process, items, 0, true))
}

#[allow(clippy::too_many_arguments)]
fn build(
    heap: &mut impl Alloc,
    w: &Worker,
    own: &mut Own,
    process: &mut Process,
    items: &[InfoItem],
    reductions: u64,
    copying: bool,
) -> Word {
    let mut list = Word::NIL;
    for item in items.iter().rev() {
        let mut b = Builder {
            heap: &mut *heap,
            w,
            own: &mut *own,
            process: &mut *process,
            reductions,
            copying,
        };
        let value = b.value(*item);
        let name = w.vm.tables.atoms.intern(item.name());
        let name = name.map_or(Word::NIL, Atom::word);
        let pair = heap.tuple(&[name, value]);
        list = heap.cons(pair, list);
    }
    list
}

struct Builder<'a, A: Alloc> {
    heap: &'a mut A,
    w: &'a Worker,
    own: &'a mut Own,
    process: &'a mut Process,
    reductions: u64,
    /// The answer goes to another heap.
    copying: bool,
}

impl<A: Alloc> Builder<'_, A> {
    fn term(&mut self, term: Word) -> Word {
        if self.copying {
            copy_term(term, self.heap)
        } else {
            term
        }
    }
    fn size(&mut self, n: usize) -> Word {
        self.heap.unsigned(n as u64)
    }
    fn ids(&mut self, ids: Vec<ProcId>) -> Word {
        let mut list = Word::NIL;
        for id in ids.into_iter().rev() {
            let pid = id.build(&self.w.vm.tables, self.heap);
            list = self.heap.cons(pid, list);
        }
        list
    }
    fn named(&mut self, name: &str, value: Word) -> (Word, Word) {
        let name = self.w.vm.tables.atoms.intern(name);
        (name.map_or(Word::NIL, Atom::word), value)
    }

    fn value(&mut self, item: InfoItem) -> Word {
        match item {
            InfoItem::AsyncDist => Word::boolean(self.process.async_dist),
            InfoItem::Backtrace => self.heap.binary(b""),
            InfoItem::Binary => self.binaries(),
            InfoItem::Catchlevel => Word::fixnum(i64::from(self.process.body.catches)),
            InfoItem::CurrentFunction => self.current_function(),
            InfoItem::CurrentLocation => self.current_location(),
            InfoItem::CurrentStacktrace => self.current_stacktrace(),
            InfoItem::Dictionary => {
                let mut entries = Vec::new();
                if !self.process.sensitive {
                    entries = self.process.dictionary.entries().to_vec();
                }
                for (k, v) in &mut entries {
                    (*k, *v) = (self.term(*k), self.term(*v));
                }
                pairs(self.heap, &entries)
            }
            InfoItem::ErrorHandler => self.process.error_handler.word(),
            InfoItem::FullsweepAfter => {
                Word::fixnum(i64::from(self.process.body.heap.fullsweep_after))
            }
            InfoItem::GarbageCollection => self.garbage_collection(),
            InfoItem::GarbageCollectionInfo => self.garbage_collection_info(),
            InfoItem::GroupLeader => {
                let g = self.process.body.group_leader;
                self.term(g)
            }
            InfoItem::HeapSize => {
                let n = shown_size(&self.process.body.heap);
                self.size(n)
            }
            InfoItem::InitialCall => {
                let (m, f, a) = self.own.initial_call;
                self.heap
                    .tuple(&[m.word(), f.word(), Word::fixnum(i64::from(a))])
            }
            InfoItem::Label => {
                let l = self.process.label;
                if l.is_none() {
                    atoms::UNDEFINED.word()
                } else {
                    self.term(l)
                }
            }
            InfoItem::LastCalls => match self.process.saved_calls() {
                Some(s) => s.list(self.heap),
                None => Word::FALSE,
            },
            InfoItem::Links => {
                let ids = self
                    .own
                    .links
                    .iter()
                    .filter(|(_, unlinking)| **unlinking == 0)
                    .map(|(id, _)| id)
                    .collect();
                self.ids(ids)
            }
            InfoItem::Magic => Word::NIL,
            InfoItem::MaxHeapSize => self.max_heap(),
            InfoItem::Memory => {
                let n = self.memory();
                self.size(n)
            }
            InfoItem::MessageQueueData => queue_data(self.own.off_heap_messages),
            InfoItem::MessageQueueLen => {
                let n = self.own.mailbox.len();
                self.size(n)
            }
            InfoItem::Messages => self.messages(),
            InfoItem::MinBinVheapSize => {
                let n = self.process.body.heap.min_virtual;
                self.size(n)
            }
            InfoItem::MinHeapSize => {
                let n = self.process.body.heap.min_size;
                self.size(n)
            }
            InfoItem::MonitoredBy => {
                let ids = self
                    .own
                    .monitored_by
                    .iter()
                    .map(|(_, m)| m.origin)
                    .collect();
                self.ids(ids)
            }
            InfoItem::Monitors => self.monitors(),
            InfoItem::Parent => match self.own.parent {
                Some(p) => p.build(&self.w.vm.tables, self.heap),
                None => atoms::UNDEFINED.word(),
            },
            InfoItem::Priority => priority_atom(self.own.priority),
            InfoItem::PriorityMessages => {
                let p = self.own.priorities.as_ref();
                Word::boolean(p.is_some_and(|p| !p.is_empty()))
            }
            InfoItem::Reductions => {
                let n = self.process.body.reductions + self.reductions;
                self.heap.unsigned(n)
            }
            InfoItem::RegisteredName => self.own.name.map_or(Word::NIL, Atom::word),
            InfoItem::Sensitive => Word::boolean(self.process.sensitive),
            InfoItem::SequentialTraceToken => match crate::trace::seq::token_of(self.process) {
                Some(t) => t.build(self.heap),
                None => Word::NIL,
            },
            InfoItem::StackSize => {
                let n = self.process.body.heap.stack_size();
                self.size(n)
            }
            InfoItem::Status => self.w.status.get().word(),
            InfoItem::Suspending => self.suspending(),
            InfoItem::TotalHeapSize => {
                let h = &self.process.body.heap;
                let mut n = shown_size(h) + h.old_size() + h.fragment_words;
                if !self.own.off_heap_messages {
                    // Of the heap as far as the program can know, wherever they lie until they are received.
                    n += self.own.mailbox.words();
                }
                self.size(n)
            }
            InfoItem::Trace => Word::fixnum(0),
            InfoItem::TrapExit => Word::boolean(self.own.trap_exit),
        }
    }

    fn memory(&self) -> usize {
        heap_bytes(&self.process.body.heap)
            + size_of::<Process>()
            + size_of::<Slot>()
            + self.own.mailbox.bytes()
            + self.process.dictionary.len() * 16
            + self.own.links.len() * 24
            + (self.own.monitors.len() + self.own.monitored_by.len()) * 64
    }

    fn messages(&mut self) -> Word {
        if self.process.sensitive {
            return Word::NIL;
        }
        // Unadopted messages lie in fragments that go with the message: copied for the process itself, too.
        let terms: Vec<(Word, bool)> = self
            .own
            .mailbox
            .iter()
            .map(|m| (m.term, m.fragment.is_some()))
            .collect();
        let mut list = Word::NIL;
        for (term, unadopted) in terms.into_iter().rev() {
            let term = if unadopted || self.copying {
                copy_term(term, self.heap)
            } else {
                term
            };
            list = self.heap.cons(term, list);
        }
        list
    }

    fn monitors(&mut self) -> Word {
        let targets: Vec<MonitorTarget> = self.own.monitors.iter().map(|(_, m)| m.target).collect();
        let tables: &Arc<Tables> = &self.w.vm.tables;
        let mut list = Word::NIL;
        for target in targets.into_iter().rev() {
            let pair = match target {
                MonitorTarget::Process(p) => {
                    let pid = p.build(tables, self.heap);
                    [atoms::PROCESS.word(), pid]
                }
                MonitorTarget::Port(p) => {
                    let port = p.build(tables, self.heap);
                    [atoms::PORT.word(), port]
                }
                MonitorTarget::PortName(_, name) => {
                    let node = tables.local_node().0;
                    let name = self.heap.tuple(&[name.word(), node.word()]);
                    [atoms::PORT.word(), name]
                }
                MonitorTarget::Name(_, name) => {
                    let node = tables.local_node().0.word();
                    let t = self.heap.tuple(&[name.word(), node]);
                    [atoms::PROCESS.word(), t]
                }
                MonitorTarget::RemoteName(name, node) => {
                    let t = self.heap.tuple(&[name.word(), node.word()]);
                    [atoms::PROCESS.word(), t]
                }
                // Not shown, as in OTP.
                MonitorTarget::TimeOffset => continue,
            };
            let t = self.heap.tuple(&pair);
            list = self.heap.cons(t, list);
        }
        list
    }

    fn suspending(&mut self) -> Word {
        let all: Vec<(ProcId, u32)> = self.own.suspending.iter().map(|(p, n)| (p, *n)).collect();
        let mut list = Word::NIL;
        for (p, n) in all.into_iter().rev() {
            let pid = p.build(&self.w.vm.tables, self.heap);
            let t = self
                .heap
                .tuple(&[pid, Word::fixnum(i64::from(n)), Word::fixnum(0)]);
            list = self.heap.cons(t, list);
        }
        list
    }

    fn max_heap(&mut self) -> Word {
        let (size, max) = (self.process.body.heap.max_size, self.process.max_heap);
        let tables = self.w.vm.tables.clone();
        max_heap_map(self.heap, &tables, size, max)
    }

    fn garbage_collection(&mut self) -> Word {
        let max = self.max_heap();
        let h = &self.process.body.heap;
        let (virt, min, full, minor) = (
            Word::fixnum(h.min_virtual as i64),
            Word::fixnum(h.min_size as i64),
            Word::fixnum(i64::from(h.fullsweep_after)),
            Word::fixnum(i64::from(h.minor_count)),
        );
        let list = [
            self.named("max_heap_size", max),
            self.named("min_bin_vheap_size", virt),
            self.named("min_heap_size", min),
            self.named("fullsweep_after", full),
            self.named("minor_gcs", minor),
        ];
        pairs(self.heap, &list)
    }

    fn garbage_collection_info(&mut self) -> Word {
        let h = &self.process.body.heap;
        let n = |n: usize| Word::fixnum(n as i64);
        let recent = (h.high_water as usize - h.start as usize) / 8;
        let values = [
            ("old_heap_block_size", n(h.old_size())),
            ("heap_block_size", n(shown_size(h))),
            ("mbuf_size", n(h.fragment_words)),
            ("recent_size", n(recent)),
            ("stack_size", n(h.stack_size())),
            ("old_heap_size", n(h.old_used())),
            ("heap_size", n(h.used())),
            ("bin_vheap_size", n(h.off_heap.overhead)),
            ("bin_vheap_block_size", n(h.virtual_limit)),
            ("bin_old_vheap_size", n(h.old_overhead)),
            ("bin_old_vheap_block_size", n(h.old_virtual_limit)),
        ];
        let list: Vec<(Word, Word)> = values.into_iter().map(|(k, v)| self.named(k, v)).collect();
        pairs(self.heap, &list)
    }

    /// `{Id, Size, Count}` of each counted binary.
    fn binaries(&mut self) -> Word {
        let mut found = Vec::new();
        let mut p = self.process.body.heap.off_heap.first;
        while !p.is_null() {
            // SAFETY: the off-heap list of a process at rest is well formed; each object owns a count of its block.
            unsafe {
                if Header(*p).subtag() == Subtag::RefcBits {
                    let raw = *p.add(2);
                    let block = std::mem::ManuallyDrop::new(beamr_term::BinaryRef::from_raw(
                        raw as usize as *mut beamr_term::Binary,
                    ));
                    found.push((raw, block.used_bits() / 8, block.count()));
                }
                p = *p.add(1) as usize as *mut u64;
            }
        }
        let mut list = Word::NIL;
        for (id, size, count) in found {
            let id = self.heap.unsigned(id);
            let size = self.heap.unsigned(size);
            let t = self.heap.tuple(&[id, size, Word::fixnum(count as i64)]);
            list = self.heap.cons(t, list);
        }
        list
    }

    fn frames(&self, depth: usize) -> Vec<Frame> {
        if self.own.native.is_some() {
            return Vec::new();
        }
        // SAFETY: the caller has the body.
        unsafe { stack_frames(&self.w.vm.server, &self.process.body, depth) }
    }
    fn current_function(&mut self) -> Word {
        let (m, f, a) = match self.frames(1).first() {
            Some(f) => (f.module, f.function, f.arity),
            None if self.own.native.is_some() => return atoms::UNDEFINED.word(),
            // Not started yet.
            None => (atoms::ERLANG, atoms::APPLY, 2),
        };
        self.heap
            .tuple(&[m.word(), f.word(), Word::fixnum(i64::from(a))])
    }
    fn current_location(&mut self) -> Word {
        match self.frames(1).first() {
            Some(f) => f.term(self.heap, None, Word::NIL),
            None => atoms::UNDEFINED.word(),
        }
    }
    fn current_stacktrace(&mut self) -> Word {
        let depth = self
            .w
            .vm
            .server
            .backtrace_depth
            .load(std::sync::atomic::Ordering::Relaxed);
        let mut list = Word::NIL;
        for f in self.frames(depth).iter().rev() {
            let f = f.term(self.heap, None, Word::NIL);
            list = self.heap.cons(f, list);
        }
        list
    }
}

/// The size of the block as programs know it: a new process begins with less than `min_heap_size`.
fn shown_size(h: &beamr_abi::Heap) -> usize {
    if h.size() == FIRST_SIZE {
        h.min_size
    } else {
        h.size()
    }
}
