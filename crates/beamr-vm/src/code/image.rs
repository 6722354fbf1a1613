//! Images and instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beamr_term::{Atom, FunEntry, FunTable, LiteralArea, Word};

use super::server::Ranges;
use crate::engine::{CodePos, Emitted};
use crate::lower::op::{Label, NO_LABEL};
use crate::lower::{Function, Lowered};

/// Whether a file's own claims are believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Trust {
    /// From the OTP root or a code path of the command line: hints are used, reads are unchecked.
    Trusted,
    /// From anywhere else: validated, every type-dependent read is checked.
    Untrusted,
}

/// What an image is known by: a keyed hash of the file, its trust, and the natives it may name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct ImageKey {
    pub(super) content: [u64; 2],
    pub(super) size: usize,
    pub(super) trust: Trust,
    pub(super) natives: u8,
}

/// The code of one module file as the VM's engine made it. Immutable; positions in it stay valid as long as it lives.
#[derive(Debug)]
pub struct Image {
    /// Its number: the index into every namespace's array of instances.
    pub id: u32,
    /// What the lowering made: functions, exports, lambdas, literals, lines, attributes.
    pub lowered: Lowered,
    /// What the engine made.
    pub emitted: Emitted,
    /// Bytes of the file.
    pub file_size: usize,
    /// File names of locations as terms, by index, and where they live.
    pub(super) file_names: (LiteralArea, Vec<Word>),
    pub(super) ranges: Arc<Ranges>,
}

impl Image {
    /// The module's name.
    pub fn module(&self) -> Atom {
        self.lowered.module
    }
    /// The position of a label; null when there is none.
    pub fn label(&self, label: Label) -> CodePos {
        if label == NO_LABEL {
            return std::ptr::null();
        }
        self.emitted
            .labels
            .get(label as usize)
            .copied()
            .unwrap_or(std::ptr::null())
    }
    /// Whether a position lies in this image.
    pub fn contains(&self, at: usize) -> bool {
        (self.emitted.start..self.emitted.end).contains(&at)
    }
    /// The function that the byte at `at` belongs to (for a return address: the byte before it).
    pub fn function_at(&self, at: usize) -> Option<&Function> {
        if !self.contains(at) {
            return None;
        }
        let f = &self.emitted.functions;
        let i = f.partition_point(|e| e.0 <= at).checked_sub(1)?;
        self.lowered.functions.get(f[i].1 as usize)
    }
    /// File name (a string term that lives as long as the image) and line of the byte at `at`.
    pub fn location_at(&self, at: usize) -> Option<(Word, u32)> {
        let l = &self.emitted.lines;
        let i = l.partition_point(|e| e.0 <= at).checked_sub(1)?;
        // A location never reaches into another function.
        let f = &self.emitted.functions;
        let start = f.partition_point(|e| e.0 <= at).checked_sub(1)?;
        if l[i].0 < f[start].0 || l[i].1 == 0 {
            return None;
        }
        let location = self.lowered.locations.get(l[i].1 as usize)?;
        let file = self.file_names.1.get(location.file as usize)?;
        // OTP keeps 24 bits of a line; what is beyond has no location.
        (location.line < 1 << 24).then_some((*file, location.line))
    }
    /// The literal areas whose terms may be in heaps: the module's own and that of its file names.
    pub fn literal_areas(&self) -> impl Iterator<Item = &LiteralArea> {
        let own = self.lowered.literal_area.iter();
        own.chain(std::iter::once(&self.file_names.0))
    }
    /// The handler that a catch tag of this image names.
    pub fn handler(&self, index: u32) -> CodePos {
        match self.lowered.handlers.get(index as usize) {
            Some(label) => self.label(*label),
            None => std::ptr::null(),
        }
    }
    /// The entry of an exported function, null when it is not exported.
    pub fn export(&self, function: Atom, arity: u32) -> CodePos {
        self.lowered
            .exports
            .iter()
            .find(|e| e.0 == function && e.1 == arity)
            .map_or(std::ptr::null(), |e| self.label(e.2))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.ranges.remove(self.id, self.emitted.start);
    }
}

/// An image in a namespace.
#[derive(Debug)]
pub struct Instance {
    /// The code.
    pub image: Arc<Image>,
    /// The namespace.
    pub namespace: u32,
    /// Fun entries by index in the file.
    pub funs: Box<[*const FunEntry]>,
    /// Whether the `on_load` function is over (true without one).
    pub ready: AtomicBool,
}

// SAFETY: fun entries live as long as the VM's fun table and are atomic where they change.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Instance {
    pub(super) fn new(image: Arc<Image>, namespace: u32, table: &FunTable) -> Instance {
        let l = &image.lowered;
        let funs = l
            .lambdas
            .iter()
            .map(|f| {
                table.entry(
                    namespace,
                    l.module,
                    f.index,
                    f.old_uniq,
                    l.md5,
                    f.arity.saturating_sub(f.num_free),
                    f.num_free,
                )
            })
            .collect();
        Instance {
            namespace,
            funs,
            ready: AtomicBool::new(l.on_load.is_none()),
            image,
        }
    }
    /// Makes the fun entries lead to this instance's code.
    pub(super) fn bind_funs(&self) {
        for (lambda, entry) in self.image.lowered.lambdas.iter().zip(&self.funs) {
            // SAFETY: entries live as long as the VM's fun table.
            let entry = unsafe { &**entry };
            entry.set_local_name(lambda.function, lambda.arity);
            let code = self.image.label(lambda.entry).cast_mut();
            entry.code.store(code, Ordering::Release);
        }
    }
    /// Makes fun entries that lead nowhere lead to this instance's code again.
    pub(super) fn rebind_funs(&self) {
        for (lambda, entry) in self.image.lowered.lambdas.iter().zip(&self.funs) {
            // SAFETY: entries live as long as the VM's fun table.
            let code = unsafe { &(**entry).code };
            let at = self.image.label(lambda.entry).cast_mut();
            let null = std::ptr::null_mut();
            let _ = code.compare_exchange(null, at, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    /// Takes away the code of fun entries that lead into this instance.
    pub(super) fn unbind_funs(&self) {
        for entry in &self.funs {
            // SAFETY: entries live as long as the VM's fun table.
            let code = unsafe { &(**entry).code };
            let at = code.load(Ordering::Acquire);
            if self.image.contains(at as usize) {
                let null = std::ptr::null_mut();
                let _ = code.compare_exchange(at, null, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
    /// The position of the `on_load` function, null when the module has none.
    pub fn on_load(&self) -> CodePos {
        match self.image.lowered.on_load {
            Some(label) => self.image.label(label),
            None => std::ptr::null(),
        }
    }
}
