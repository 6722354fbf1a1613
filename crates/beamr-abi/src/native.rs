//! Native tables: one row per native, beside the functions.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use beamr_term::{Release, Word};

use crate::ctx::{Ctx, Escape};

/// A native function. `args` has the native's arity.
pub type NativeFn = fn(&mut Ctx, &[Word]) -> Result<Word, Escape>;

/// How a native runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeClass {
    /// Short; runs in place.
    Plain,
    /// May be long; traps or yields by itself and bumps reductions.
    Traps,
    /// Runs on the dirty CPU pool.
    DirtyCpu,
    /// Runs on the dirty I/O pool.
    DirtyIo,
}

/// What a tenant must be granted for a native to exist for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Capability {
    /// Computes.
    Pure,
    /// Touches the own process only.
    ProcessLocal,
    /// Reads clocks.
    Clock,
    /// Reads entropy.
    Entropy,
    /// Opens or talks to the outside.
    ExternalIo,
    /// Makes or signals processes.
    Spawn,
}

/// Whether a recorded run must keep the native's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Determinism {
    /// Same arguments, same result.
    Pure,
    /// Depends on the VM's state, which a replay rebuilds.
    Vm,
    /// Comes from outside, through the VM's one door.
    Outside,
}

/// In which releases a native exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReleaseSpan {
    /// First release.
    pub since: u16,
    /// Last release.
    pub until: u16,
}

impl ReleaseSpan {
    /// In every release.
    pub const ALWAYS: ReleaseSpan = ReleaseSpan {
        since: 0,
        until: u16::MAX,
    };
    /// From `since` on.
    pub const fn since(since: u16) -> ReleaseSpan {
        ReleaseSpan {
            since,
            until: u16::MAX,
        }
    }
    /// Up to `until`.
    pub const fn until(until: u16) -> ReleaseSpan {
        ReleaseSpan { since: 0, until }
    }
    /// Whether it exists in `release`.
    pub const fn contains(self, release: Release) -> bool {
        release.0 >= self.since && release.0 <= self.until
    }
}

/// One native.
#[derive(Clone, Copy, Debug)]
pub struct NativeEntry {
    /// Module.
    pub module: &'static str,
    /// Function.
    pub function: &'static str,
    /// Arity.
    pub arity: u8,
    /// The arity that stack traces show, with the first so many arguments: less than `arity` for a continuation whose state
    /// follows the arguments of the native it continues.
    pub shown_arity: u8,
    /// The function.
    pub func: NativeFn,
    /// How it runs.
    pub class: NativeClass,
    /// What it needs.
    pub capability: Capability,
    /// Whether it must be recorded.
    pub determinism: Determinism,
    /// Where it exists.
    pub releases: ReleaseSpan,
    /// A function of the embedding program: it learns from [`Ctx::native`] which of them was called.
    pub host: bool,
}

impl NativeEntry {
    /// A plain, pure native of every release.
    pub const fn new(
        module: &'static str,
        function: &'static str,
        arity: u8,
        func: NativeFn,
    ) -> NativeEntry {
        NativeEntry {
            module,
            function,
            arity,
            shown_arity: arity,
            func,
            class: NativeClass::Plain,
            capability: Capability::Pure,
            determinism: Determinism::Pure,
            releases: ReleaseSpan::ALWAYS,
            host: false,
        }
    }
    /// A continuation of a native of this arity.
    pub const fn continues(mut self, arity: u8) -> NativeEntry {
        self.shown_arity = arity;
        self
    }
    /// As a function of the embedding program.
    pub const fn host(mut self) -> NativeEntry {
        self.host = true;
        self
    }
    /// With another class.
    pub const fn class(mut self, class: NativeClass) -> NativeEntry {
        self.class = class;
        self
    }
    /// With another capability (and determinism `Vm` unless pure).
    pub const fn needs(mut self, capability: Capability) -> NativeEntry {
        self.capability = capability;
        self.determinism = match capability {
            Capability::Pure => Determinism::Pure,
            Capability::Clock | Capability::Entropy | Capability::ExternalIo => {
                Determinism::Outside
            }
            Capability::ProcessLocal | Capability::Spawn => Determinism::Vm,
        };
        self
    }
    /// With another release span.
    pub const fn releases(mut self, releases: ReleaseSpan) -> NativeEntry {
        self.releases = releases;
        self
    }
}

/// Two natives of one name in one release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{module}:{function}/{arity} is registered twice")]
pub struct NativeTableError {
    /// Module.
    pub module: String,
    /// Function.
    pub function: String,
    /// Arity.
    pub arity: u8,
}

/// All natives of a VM, for its release.
#[derive(Debug, Default)]
pub struct NativeTable {
    map: HashMap<(&'static str, &'static str, u8), &'static NativeEntry>,
}

impl NativeTable {
    /// Adds the rows that exist in `release`.
    pub fn add(
        &mut self,
        release: Release,
        rows: &'static [NativeEntry],
    ) -> Result<(), NativeTableError> {
        for e in rows {
            if e.releases.contains(release) {
                self.add_entry(e)?;
            }
        }
        Ok(())
    }
    /// Adds one native; what the table has of its name already stays.
    pub fn add_entry(&mut self, e: &'static NativeEntry) -> Result<(), NativeTableError> {
        match self.map.entry((e.module, e.function, e.arity)) {
            Entry::Occupied(_) => Err(NativeTableError {
                module: e.module.into(),
                function: e.function.into(),
                arity: e.arity,
            }),
            Entry::Vacant(v) => {
                v.insert(e);
                Ok(())
            }
        }
    }
    /// The native of this name.
    pub fn get(&self, module: &str, function: &str, arity: u8) -> Option<&'static NativeEntry> {
        // SAFETY: the strings are only compared during the call.
        let (m, f): (&'static str, &'static str) = unsafe {
            (
                std::mem::transmute::<&str, &'static str>(module),
                std::mem::transmute::<&str, &'static str>(function),
            )
        };
        self.map.get(&(m, f, arity)).copied()
    }
    /// All of them, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &'static NativeEntry> + '_ {
        self.map.values().copied()
    }
    /// A table of those that `keep` accepts.
    pub fn filtered(&self, keep: impl Fn(&NativeEntry) -> bool) -> NativeTable {
        let rows = self.map.iter().filter(|r| keep(r.1));
        NativeTable {
            map: rows.map(|(k, e)| (*k, *e)).collect(),
        }
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.map.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

/// By name: a table holds one native of a name.
impl PartialEq for NativeEntry {
    fn eq(&self, other: &Self) -> bool {
        (self.module, self.function, self.arity) == (other.module, other.function, other.arity)
    }
}
impl Eq for NativeEntry {}
