//! Pids, ports and references: their parts, and making those of other nodes.

use std::sync::Arc;

use crate::alloc::Alloc;
use crate::atom::Atom;
use crate::header::{EXTERNAL_PID, EXTERNAL_PORT, EXTERNAL_REF, Header, REF_MAGIC, Subtag};
use crate::off_heap::NodeEntry;
use crate::tables::Tables;
use crate::word::Word;

/// Bits of a local pid's number that are printed as its second part.
pub const PID_NUMBER_BITS: u32 = 28;
/// The most numbers that a reference has.
pub const MAX_REF_NUMBERS: usize = 5;

/// Number and serial of a pid of any node.
#[inline]
pub fn pid_parts(pid: Word) -> Option<(u32, u32)> {
    if pid.is_local_pid() {
        let n = pid.local_number();
        return Some((
            (n & ((1 << PID_NUMBER_BITS) - 1)) as u32,
            (n >> PID_NUMBER_BITS) as u32,
        ));
    }
    if pid.is_external(EXTERNAL_PID) {
        let v = pid.field(4);
        return Some((v as u32, (v >> 32) as u32));
    }
    None
}

/// The number of a port of any node.
#[inline]
pub fn port_number(port: Word) -> Option<u64> {
    if port.is_local_port() {
        Some(port.local_number())
    } else if port.is_external(EXTERNAL_PORT) {
        Some(port.field(4))
    } else {
        None
    }
}

/// The numbers of a reference of any node, and how many there are.
#[inline]
pub fn ref_numbers(reference: Word) -> Option<([u32; MAX_REF_NUMBERS], usize)> {
    match reference.subtag()? {
        Subtag::Ref => {
            let at = if reference.header().arity() == REF_MAGIC {
                3
            } else {
                1
            };
            let (a, b) = (reference.field(at), reference.field(at + 1));
            Some(([a as u32, (a >> 32) as u32, b as u32, 0, 0], 3))
        }
        Subtag::External if reference.field(3) == EXTERNAL_REF => {
            let n = (reference.field(4) as usize).min(MAX_REF_NUMBERS);
            let mut v = [0; MAX_REF_NUMBERS];
            for (i, x) in v.iter_mut().enumerate().take(n) {
                *x = (reference.field(5 + i / 2) >> (32 * (i % 2))) as u32;
            }
            Some((v, n))
        }
        _ => None,
    }
}

/// The node entry of an `External`.
pub fn node_entry(external: Word) -> &'static NodeEntry {
    debug_assert_eq!(external.subtag(), Some(Subtag::External));
    // SAFETY: the object owns a count of the entry; callers use it while the term lives (crate
    // contract), the lifetime is theirs to bound.
    unsafe { &*(external.field(2) as usize as *const NodeEntry) }
}

/// Name and creation of the node of a pid, port or reference.
pub fn node_of(id: Word, tables: &Tables) -> Option<(Atom, u32)> {
    if id.subtag() == Some(Subtag::External) {
        let e = node_entry(id);
        return Some((e.name, e.creation));
    }
    (id.is_local_pid() || id.is_local_port() || id.subtag() == Some(Subtag::Ref))
        .then(|| tables.local_node())
}

unsafe fn external(
    alloc: &mut impl Alloc,
    node: Arc<NodeEntry>,
    kind: u64,
    data: usize,
) -> (Word, *mut u64) {
    let p = alloc.alloc(4 + data);
    *p = Header::new(Subtag::External, 3 + data).0;
    *p.add(2) = Arc::into_raw(node) as usize as u64;
    *p.add(3) = kind;
    alloc.off_heap().link(p);
    (Word::boxed(p), p.add(4))
}

/// A pid of another node.
pub fn external_pid(
    alloc: &mut impl Alloc,
    node: Arc<NodeEntry>,
    number: u32,
    serial: u32,
) -> Word {
    // SAFETY: one data word is written before anyone reads the object.
    unsafe {
        let (w, p) = external(alloc, node, EXTERNAL_PID, 1);
        *p = u64::from(number) | u64::from(serial) << 32;
        w
    }
}

/// A port of another node.
pub fn external_port(alloc: &mut impl Alloc, node: Arc<NodeEntry>, number: u64) -> Word {
    // SAFETY: as in `external_pid`.
    unsafe {
        let (w, p) = external(alloc, node, EXTERNAL_PORT, 1);
        *p = number;
        w
    }
}

/// A reference of another node, of one to [`MAX_REF_NUMBERS`] numbers.
pub fn external_ref(alloc: &mut impl Alloc, node: Arc<NodeEntry>, numbers: &[u32]) -> Word {
    let n = numbers.len().min(MAX_REF_NUMBERS);
    let words = n.div_ceil(2);
    // SAFETY: as in `external_pid`, with `words + 1` data words.
    unsafe {
        let (w, p) = external(alloc, node, EXTERNAL_REF, words + 1);
        *p = n as u64;
        for i in 0..words {
            let high = numbers[..n].get(i * 2 + 1).copied().unwrap_or(0);
            *p.add(1 + i) = u64::from(numbers[i * 2]) | u64::from(high) << 32;
        }
        w
    }
}
