//! Identities of processes and references as plain values, for maps and signals.
//!
//! A [`Word`] of another node's pid is a pointer into a heap; signals and link tables must name processes
//! without one. [`ProcId`] and [`RefKey`] do: they compare, order and travel, and build the term again on demand.

use beamr_sync::SlotId;
use beamr_term::header::{EXTERNAL_PID, REF_MAGIC, Subtag};
use beamr_term::{Alloc, Atom, Build, Header, NodeEntry, Tables, Word};
use std::num::NonZeroU64;
use std::sync::Arc;

/// A process or port, of this node or another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcId {
    /// `LOCAL_PID`, `LOCAL_PORT`, or `creation << 32 | atom` of another node. (Never 0, so that an optional one takes no more room.)
    node: NonZeroU64,
    number: u64,
}

const LOCAL_PID: NonZeroU64 = NonZeroU64::MIN;
const LOCAL_PORT: NonZeroU64 = NonZeroU64::MIN.saturating_add(1);

impl ProcId {
    /// A local process by its number.
    pub const fn local(number: u64) -> ProcId {
        ProcId {
            node: LOCAL_PID,
            number,
        }
    }
    /// A local port by its number.
    pub const fn local_port(number: u64) -> ProcId {
        ProcId {
            node: LOCAL_PORT,
            number,
        }
    }
    /// The identity of a pid or local port term.
    pub fn of(word: Word) -> Option<ProcId> {
        if word.is_local_pid() {
            return Some(ProcId::local(word.local_number()));
        }
        if word.is_local_port() {
            return Some(ProcId {
                node: LOCAL_PORT,
                number: word.local_number(),
            });
        }
        if word.is_external(EXTERNAL_PID) {
            // SAFETY: word 2 of an external object is its counted node entry, alive with the object.
            let node = unsafe { &*(word.field(2) as usize as *const NodeEntry) };
            return Some(ProcId {
                // Names of nodes come after the first atoms of every table.
                node: NonZeroU64::new(
                    u64::from(node.creation) << 32 | u64::from(node.name.index()),
                )
                .unwrap_or(LOCAL_PORT),
                number: word.field(4),
            });
        }
        None
    }
    /// Whether this is a process of this node.
    pub const fn is_local_pid(self) -> bool {
        self.node.get() == LOCAL_PID.get()
    }
    /// Whether this is a port of this node.
    pub const fn is_local_port(self) -> bool {
        self.node.get() == LOCAL_PORT.get()
    }
    /// Whether it belongs to another node.
    pub const fn is_remote(self) -> bool {
        self.node.get() > LOCAL_PORT.get()
    }
    /// Name and creation of the node it belongs to, when that is another one.
    pub const fn remote_node(self) -> Option<(Atom, u32)> {
        if self.is_remote() {
            let node = self.node.get();
            Some((Atom::from_index(node as u32), (node >> 32) as u32))
        } else {
            None
        }
    }
    /// The place in the process table, for a local process.
    pub fn slot(self) -> Option<SlotId> {
        if self.is_local_pid() {
            Some(SlotId::from_u64(self.number))
        } else {
            None
        }
    }
    /// The number (`number | serial << 32` for another node's pid).
    pub const fn number(self) -> u64 {
        self.number
    }
    /// The term.
    pub fn build(self, tables: &Tables, heap: &mut impl Alloc) -> Word {
        match self.node {
            LOCAL_PID => Word::pid(self.number),
            LOCAL_PORT => Word::port(self.number),
            node => {
                let node = node.get();
                let entry = tables.node(Atom::from_index(node as u32), (node >> 32) as u32);
                let p = heap.alloc(5);
                // SAFETY: five fresh words, complete before they are linked.
                unsafe {
                    *p = Header::new(Subtag::External, 4).0;
                    *p.add(2) = Arc::into_raw(entry) as usize as u64;
                    *p.add(3) = EXTERNAL_PID;
                    *p.add(4) = self.number;
                    heap.off_heap().link(p);
                    Word::boxed(p)
                }
            }
        }
    }
}

/// A reference of this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RefKey(u64, u64);

impl RefKey {
    /// The key of the `value`th reference of a VM.
    pub const fn new(value: u64) -> RefKey {
        let n0 = value & 0x3_FFFF;
        let n1 = (value >> 18) & 0xFFFF_FFFF;
        RefKey(n0 | n1 << 32, value >> 50)
    }
    /// The key of a local reference term.
    pub fn of(word: Word) -> Option<RefKey> {
        if word.subtag() != Some(Subtag::Ref) {
            return None;
        }
        let at = if word.header().arity() == REF_MAGIC {
            3
        } else {
            1
        };
        Some(RefKey(word.field(at), word.field(at + 1)))
    }
    /// The three numbers of the term.
    pub const fn numbers(self) -> [u32; 3] {
        [self.0 as u32, (self.0 >> 32) as u32, self.1 as u32]
    }
    /// The plain reference.
    pub fn build(self, heap: &mut impl Alloc) -> Word {
        heap.reference(self.numbers())
    }
    /// The reference as an alias of `pid`.
    pub fn build_alias(self, pid: Word, heap: &mut impl Alloc) -> Word {
        heap.alias_reference(self.numbers(), pid)
    }
}
