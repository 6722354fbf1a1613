//! What the terms of one VM share: atoms, nodes, fun identities, export ids, the release.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use crate::atom::{Atom, AtomTable};
use crate::off_heap::NodeEntry;

/// The OTP release whose libraries run (25, 27, 29, ...): selects natives, limits, texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Release(pub u16);

impl Release {
    /// OTP 25.
    pub const OTP25: Release = Release(25);
    /// OTP 27.
    pub const OTP27: Release = Release(27);
    /// OTP 29.
    pub const OTP29: Release = Release(29);
    /// From 27 on `0.0 =:= -0.0` is false and the two are different map keys.
    pub const fn zeros_differ(self) -> bool {
        self.0 >= 27
    }
}

/// Shared by all terms of a VM.
#[derive(Debug)]
pub struct Tables {
    /// The atoms.
    pub atoms: Arc<AtomTable>,
    /// The fun identities.
    pub funs: FunTable,
    /// The numbers of `M:F/A`.
    pub exports: ExportTable,
    /// The release.
    pub release: Release,
    local_node: RwLock<(Atom, u32)>,
    nodes: RwLock<HashMap<(Atom, u32), Arc<NodeEntry>>>,
}

impl Tables {
    /// Fresh tables over `atoms`.
    pub fn new(atoms: Arc<AtomTable>, release: Release) -> Arc<Tables> {
        Arc::new(Tables {
            atoms,
            funs: FunTable::default(),
            exports: ExportTable::default(),
            release,
            local_node: RwLock::new((crate::atoms::NONODE_NOHOST, 0)),
            nodes: RwLock::default(),
        })
    }
    /// Name and creation of this node.
    pub fn local_node(&self) -> (Atom, u32) {
        *self.local_node.read().unwrap_or_else(|e| e.into_inner())
    }
    /// Names this node.
    pub fn set_local_node(&self, name: Atom, creation: u32) {
        *self.local_node.write().unwrap_or_else(|e| e.into_inner()) = (name, creation);
    }
    /// The other nodes that were ever named.
    pub fn known_nodes(&self) -> Vec<Arc<NodeEntry>> {
        let nodes = self.nodes.read().unwrap_or_else(|e| e.into_inner());
        nodes.values().cloned().collect()
    }
    /// The entry of another node, made if need be.
    pub fn node(&self, name: Atom, creation: u32) -> Arc<NodeEntry> {
        if let Some(n) = self
            .nodes
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .get(&(name, creation))
        {
            return n.clone();
        }
        self.nodes
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .entry((name, creation))
            .or_insert_with(|| Arc::new(NodeEntry { name, creation }))
            .clone()
    }
}

/// The identity of a local fun: what a fun term points to instead of code. Entries live as long
/// as their table; a reload of the same code finds the same entry.
#[derive(Debug)]
pub struct FunEntry {
    /// Module that made it.
    pub module: Atom,
    /// Namespace of the module instance.
    pub namespace: u32,
    /// Index in the module's fun table (`new_index`).
    pub index: u32,
    /// First 32 bits of the unique value (`uniq`, `old_uniq`).
    pub old_uniq: u32,
    /// The module's MD5 (`new_uniq`).
    pub uniq: [u8; 16],
    /// Arity as seen by a caller.
    pub arity: u32,
    /// Captured values.
    pub num_free: u32,
    /// The engine's code position of the fun's body; null while its module is not loaded.
    pub code: AtomicPtr<u64>,
    /// The fun's generated name and arity with captured values (`-f/1-fun-0-`), as an atom index
    /// in the low half and the arity in the high half; 0 while unknown.
    pub name: AtomicU64,
}

impl FunEntry {
    /// The fun's generated name and full arity, when its module is or was loaded.
    pub fn local_name(&self) -> Option<(Atom, u32)> {
        let v = self.name.load(Ordering::Acquire);
        if v == 0 {
            None
        } else {
            Some((Atom::from_index(v as u32), (v >> 32) as u32 - 1))
        }
    }
    /// Sets what [`FunEntry::local_name`] gives.
    pub fn set_local_name(&self, name: Atom, arity: u32) {
        self.name.store(
            u64::from(name.index()) | (u64::from(arity) + 1) << 32,
            Ordering::Release,
        );
    }
}

/// Arity and captured values are part of it: a fun that came from outside and lies about them is another fun, without code.
type FunKey = (u32, Atom, u32, u32, [u8; 16], u32, u32);

/// The fun entries of a VM.
#[derive(Debug, Default)]
pub struct FunTable {
    map: RwLock<HashMap<FunKey, Box<FunEntry>>>,
}

impl FunTable {
    /// The entry for this identity, made without code if need be. The pointer is valid as long
    /// as the table.
    pub fn entry(
        &self,
        namespace: u32,
        module: Atom,
        index: u32,
        old_uniq: u32,
        uniq: [u8; 16],
        arity: u32,
        num_free: u32,
    ) -> *const FunEntry {
        let key = (namespace, module, index, old_uniq, uniq, arity, num_free);
        if let Some(e) = self.map.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return &raw const **e;
        }
        let mut map = self.map.write().unwrap_or_else(|e| e.into_inner());
        let e = map.entry(key).or_insert_with(|| {
            Box::new(FunEntry {
                module,
                namespace,
                index,
                old_uniq,
                uniq,
                arity,
                num_free,
                code: AtomicPtr::new(std::ptr::null_mut()),
                name: AtomicU64::new(0),
            })
        });
        &raw const **e
    }
}

/// The number of an `M:F/A`, the index into every namespace's export array.
pub type ExportId = u32;

/// A fixed table has no room left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the export table is full ({0} entries)")]
pub struct TableFull(pub u32);

/// `M:F/A` to number and back.
#[derive(Debug)]
pub struct ExportTable {
    map: RwLock<(HashMap<(Atom, Atom, u32), ExportId>, Vec<(Atom, Atom, u32)>)>,
}

impl Default for ExportTable {
    fn default() -> Self {
        ExportTable {
            map: RwLock::new((HashMap::new(), Vec::new())),
        }
    }
}

impl ExportTable {
    /// How many numbers there can be: the size of every namespace's export array.
    #[cfg(target_pointer_width = "64")]
    pub const CAPACITY: u32 = 1 << 20;
    /// How many numbers there can be: the size of every namespace's export array.
    #[cfg(not(target_pointer_width = "64"))]
    pub const CAPACITY: u32 = 1 << 16;

    /// The number of `M:F/A`, made if need be.
    pub fn id(&self, module: Atom, function: Atom, arity: u32) -> Result<ExportId, TableFull> {
        if let Some(id) = self.lookup(module, function, arity) {
            return Ok(id);
        }
        let mut t = self.map.write().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = t.0.get(&(module, function, arity)) {
            return Ok(*id);
        }
        let id = t.1.len() as u32;
        if id >= Self::CAPACITY {
            return Err(TableFull(Self::CAPACITY));
        }
        t.1.push((module, function, arity));
        t.0.insert((module, function, arity), id);
        Ok(id)
    }
    /// The number of `M:F/A` if it has one.
    pub fn lookup(&self, module: Atom, function: Atom, arity: u32) -> Option<ExportId> {
        self.map
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .0
            .get(&(module, function, arity))
            .copied()
    }
    /// The `M:F/A` of a number.
    pub fn mfa(&self, id: ExportId) -> Option<(Atom, Atom, u32)> {
        self.map
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .1
            .get(id as usize)
            .copied()
    }
    /// How many numbers are given out.
    pub fn len(&self) -> u32 {
        self.map.read().unwrap_or_else(|e| e.into_inner()).1.len() as u32
    }
    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A term names an atom or entry that its tables do not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the term is of another VM")]
pub struct Unregistered;
