//! Pids and references of one VM as plain values.

use std::fmt;

use beamr_term::{Alloc, Word, ids};
use beamr_vm::process::RefKey;

/// The largest number of a pid.
pub const PID_MAX: u64 = (1 << 60) - 1;

/// A process of the VM that it came from. It is only a number: it may be kept after the process has ended, and is never given to another process.
///
/// Every function that takes a pid takes `impl Into<Pid>`, so that plain numbers do as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(u64);

impl Pid {
    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
    pub(crate) fn of_word(word: Word) -> Option<Pid> {
        word.is_local_pid().then(|| Pid(word.local_number()))
    }
    pub(crate) fn word(self) -> Word {
        Word::pid(self.0)
    }
}

impl From<u64> for Pid {
    /// The pid of this number; one beyond [`PID_MAX`] is nobody's.
    fn from(number: u64) -> Pid {
        Pid(number.min(PID_MAX))
    }
}

impl From<Pid> for u64 {
    fn from(pid: Pid) -> u64 {
        pid.0
    }
}

impl fmt::Display for Pid {
    /// `<0.Number.Serial>`, as programs print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, serial) = ids::pid_parts(self.word()).unwrap_or_default();
        write!(f, "<0.{number}.{serial}>")
    }
}

impl fmt::Debug for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A reference that the VM made: of a monitor, a timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(RefKey);

impl Reference {
    pub(crate) fn of_key(key: RefKey) -> Reference {
        Reference(key)
    }
    pub(crate) fn of_word(word: Word) -> Option<Reference> {
        RefKey::of(word).map(Reference)
    }
    pub(crate) fn build(self, heap: &mut impl Alloc) -> Word {
        self.0.build(heap)
    }
}

impl fmt::Display for Reference {
    /// `#Ref<0.C.B.A>`, as programs print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.0.numbers();
        write!(f, "#Ref<0.{c}.{b}.{a}>")
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
