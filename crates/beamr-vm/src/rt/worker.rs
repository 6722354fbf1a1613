//! The seam between runtime helpers and the structures of processes and workers.
//!
//! Helpers reach everything through [`Ctx`]: the body, the tables, and `ctx.worker`, which points to the
//! VM's worker structure. That structure begins with a [`WorkerCode`] (`repr(C)`), so that the
//! collector, exceptions and calls need not know the rest of it. What they want from the process
//! structure they ask of a [`ProcessSide`].

use std::sync::Arc;

use beamr_abi::{Body, Ctx, ExceptionClass, NativeEntry};
use beamr_term::{Atom, AtomTable, Word, atoms};

use crate::code::{CodeServer, ModuleTable};

/// The head of a worker. `Ctx::worker` points to it.
#[repr(C)]
pub struct WorkerCode {
    /// Code of the VM.
    pub server: Arc<CodeServer>,
    /// Modules of the running process's namespace; set whenever a process is switched in. It outlives the slice.
    pub modules: *const ModuleTable,
    /// The process structure's answers.
    pub processes: Arc<dyn ProcessSide>,
    /// Long collections are left to other threads ([`crate::gc`]).
    pub outside: bool,
    /// Targets of recent applies.
    pub cache: ApplyCache,
    /// Names of natives that failed lately.
    pub names: NativeNames,
}

impl WorkerCode {
    /// A head for a worker that runs no process yet.
    pub fn new(server: Arc<CodeServer>, processes: Arc<dyn ProcessSide>) -> WorkerCode {
        WorkerCode {
            server,
            modules: std::ptr::null(),
            processes,
            outside: false,
            cache: ApplyCache::default(),
            names: NativeNames::default(),
        }
    }
    /// The head of the worker that runs `ctx`.
    ///
    /// # Safety
    /// `ctx.worker` points to a structure that begins with a `WorkerCode`, and no other
    /// reference to that head is in use.
    #[inline]
    pub unsafe fn of<'a>(ctx: &Ctx) -> &'a mut WorkerCode {
        &mut *ctx.worker.cast::<WorkerCode>()
    }
    /// The modules of the running process's namespace.
    #[inline]
    pub fn modules(&self) -> &ModuleTable {
        // SAFETY: set by the scheduler when it switched the process in; see the field.
        unsafe { &*self.modules }
    }
}

/// Export ids of recent `apply`s by module, function and arity, so that most of them take no lock.
#[derive(Debug)]
pub struct ApplyCache {
    slots: [(Word, Word, u32, u32); ApplyCache::SLOTS],
}

impl Default for ApplyCache {
    fn default() -> Self {
        ApplyCache {
            slots: [(Word::NONE, Word::NONE, 0, 0); ApplyCache::SLOTS],
        }
    }
}

impl ApplyCache {
    const SLOTS: usize = 256;

    #[inline]
    fn slot(module: Word, function: Word, arity: u32) -> usize {
        let h = (module.bits() >> 6)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(function.bits() >> 6)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(u64::from(arity) << 48);
        (h >> 48) as usize % Self::SLOTS
    }
    /// The id kept for this call.
    #[inline]
    pub fn get(&self, module: Word, function: Word, arity: u32) -> Option<u32> {
        let s = &self.slots[Self::slot(module, function, arity)];
        (s.0 == module && s.1 == function && s.2 == arity).then_some(s.3)
    }
    /// Keeps an id. Ids never change, so nothing is ever taken out.
    #[inline]
    pub fn put(&mut self, module: Word, function: Word, arity: u32, id: u32) {
        self.slots[Self::slot(module, function, arity)] = (module, function, arity, id);
    }
}

/// What a trace says of a native.
#[derive(Clone, Copy, Debug)]
pub struct NativeName {
    /// Module.
    pub module: Atom,
    /// Function.
    pub function: Atom,
    /// The module that explains its errors, or [`Word::NONE`].
    pub formatter: Word,
}

/// Names of natives as atoms, so that failing ones are not looked up by text each time.
#[derive(Debug)]
pub struct NativeNames {
    slots: [Option<(*const NativeEntry, NativeName)>; NativeNames::SLOTS],
}

// SAFETY: the pointers are to static entries.
unsafe impl Send for NativeNames {}

impl Default for NativeNames {
    fn default() -> Self {
        NativeNames {
            slots: [None; NativeNames::SLOTS],
        }
    }
}

impl NativeNames {
    const SLOTS: usize = 64;

    /// The names of `native`.
    pub fn get(&mut self, native: &'static NativeEntry, atoms: &AtomTable) -> NativeName {
        let p = std::ptr::from_ref(native);
        let slot = &mut self.slots[p as usize / size_of::<NativeEntry>() % Self::SLOTS];
        match slot {
            Some((known, name)) if *known == p => *name,
            _ => {
                // The names stand in the native table, whose names were interned when the namespace was made.
                let atom = |text| atoms.intern(text).unwrap_or(atoms::UNDEFINED);
                let name = NativeName {
                    module: atom(native.module),
                    function: atom(native.function),
                    formatter: formatter(native.module).map_or(Word::NONE, |m| atom(m).word()),
                };
                *slot = Some((p, name));
                name
            }
        }
    }
}

/// The module that explains errors of the natives of `module`.
fn formatter(module: &str) -> Option<&'static str> {
    match module {
        "atomics" | "counters" | "erlang" | "erts_internal" | "persistent_term" => {
            Some("erl_erts_errors")
        }
        "os" => Some("erl_kernel_errors"),
        "binary" | "ets" | "lists" | "maps" | "math" | "re" | "unicode" => {
            Some("erl_stdlib_errors")
        }
        _ => None,
    }
}

/// An exception that no handler took.
#[derive(Clone, Copy, Debug)]
pub struct Uncaught {
    /// Its class, after a `throw` became an error.
    pub class: ExceptionClass,
    /// The exit reason: for errors `{Reason, Stacktrace}`, in the process's heap.
    pub reason: Word,
    /// Whether the logger is told ("Error in process ..."): errors only.
    pub log: bool,
}

/// What runtime helpers ask of the process structure.
pub trait ProcessSide: Send + Sync {
    /// Shows every word that the process holds outside heap, stack, `args`, `group_leader` and `trace`: dictionary,
    /// link and monitor terms, saved exit reason, suspended trap state, messages
    /// that were adopted and are still in the queue.
    fn visit_roots(&self, body: &mut Body, visit: &mut dyn FnMut(&mut [Word])) {
        let _ = (body, visit);
    }
    /// Charges the tenant (or gives back, when negative) for heap bytes: the heap has changed by so many. False when that is over its budget:
    /// the process is then marked `over_limit`.
    fn charge(&self, body: &mut Body, bytes: isize) -> bool {
        let _ = (body, bytes);
        true
    }
    /// Notes a call of an exported function by a process that saves calls.
    fn called(&self, ctx: &Ctx, export: beamr_term::ExportId) {
        let _ = (ctx, export);
    }
    /// Notes a collection that the running process made.
    fn collected(&self, ctx: &Ctx, reclaimed: usize) {
        let _ = (ctx, reclaimed);
    }
    /// A collection of the running process for so many words begins; true when it is traced.
    fn collection_begins(&self, ctx: &Ctx, full: bool, need: usize) -> bool {
        let _ = (ctx, full, need);
        false
    }
    /// A collection that is traced has ended.
    fn collection_ends(&self, ctx: &Ctx, full: bool, reclaimed: usize) {
        let _ = (ctx, full, reclaimed);
    }
    /// Whether the tenant's budget would hold if the process's heap had so many bytes.
    fn fits(&self, body: &mut Body, bytes: usize) -> bool {
        let _ = (body, bytes);
        true
    }
    /// Ends the process: its heap cannot grow within the tenant's budget.
    fn out_of_memory(&self, ctx: &mut Ctx) {
        let uncaught = Uncaught {
            class: ExceptionClass::Exit,
            reason: atoms::KILLED.word(),
            log: false,
        };
        self.uncaught(ctx, uncaught);
    }
    /// `process_flag(error_handler, _)`.
    fn error_handler(&self, body: &Body) -> Atom {
        let _ = body;
        atoms::ERROR_HANDLER
    }
    /// Whether a process named `code_server` runs in the namespace of the running process.
    fn has_code_server(&self, ctx: &Ctx) -> bool {
        let _ = ctx;
        false
    }
    /// Suspends the running process once more: it stops at the end of its slice. False where that cannot be.
    fn suspend_running(&self, ctx: &Ctx) -> bool {
        let _ = ctx;
        false
    }
    /// Takes that back.
    fn resume_running(&self, ctx: &Ctx) {
        let _ = ctx;
    }
    /// Ends the process with this reason. It no longer runs when this returns.
    fn uncaught(&self, ctx: &mut Ctx, uncaught: Uncaught);
    /// The heap is over `max_heap_size` or the tenant's budget. True when the process was ended.
    fn over_limit(&self, ctx: &mut Ctx) -> bool;
}
