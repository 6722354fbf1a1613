//! The part of a process body that engines and natives touch.
//!
//! A body is owned by one thread at a time: a worker, a dirty thread or a collector. The VM's own
//! process structure begins with it.

use beamr_term::Word;

use crate::heap::Heap;

/// X registers saved while a process does not run: inline up to six, as OTP does.
#[derive(Debug)]
pub struct SavedArgs {
    len: u32,
    inline: [Word; 6],
    more: Vec<Word>,
}

impl Default for SavedArgs {
    fn default() -> Self {
        SavedArgs {
            len: 0,
            inline: [Word::NIL; 6],
            more: Vec::new(),
        }
    }
}

impl SavedArgs {
    /// Saves these registers.
    pub fn save(&mut self, x: &[Word]) {
        self.len = x.len() as u32;
        if x.len() <= self.inline.len() {
            self.inline[..x.len()].copy_from_slice(x);
            self.more = Vec::new();
        } else {
            self.more.clear();
            self.more.extend_from_slice(x);
        }
    }
    /// The saved registers.
    pub fn as_slice(&self) -> &[Word] {
        if self.len as usize <= self.inline.len() {
            &self.inline[..self.len as usize]
        } else {
            &self.more
        }
    }
    /// The saved registers, for a collector.
    pub fn as_mut_slice(&mut self) -> &mut [Word] {
        if self.len as usize <= self.inline.len() {
            &mut self.inline[..self.len as usize]
        } else {
            &mut self.more
        }
    }
}

/// See the module.
#[repr(C)]
#[derive(Debug)]
pub struct Body {
    /// Heap and stack.
    pub heap: Heap,
    /// Where the process goes on: a code position of the engine.
    pub ip: *const u64,
    /// Live X registers while it does not run.
    pub args: SavedArgs,
    /// The process's own pid.
    pub pid: Word,
    /// The group leader (a root of the collector).
    pub group_leader: Word,
    /// Catches and tries entered and not left: 0 means that an exception ends the process.
    pub catches: u32,
    /// Reductions executed before the current slice.
    pub reductions: u64,
    /// A native asked for memory beyond the tenant's or the process's limit: the process dies at the
    /// next safe point.
    pub over_limit: bool,
    /// The stack trace that goes with the exception being handled (a root; `NIL` when none).
    pub trace: Word,
}
