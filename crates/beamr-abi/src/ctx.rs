//! The registers an engine runs with and the context a native gets.

use beamr_term::{Alloc, Atom, Build, ExportId, OffHeap, Tables, Word, atoms};

use crate::body::Body;
use crate::heap::Heap;
use crate::native::NativeEntry;

/// X registers there are.
pub const X_REGISTERS: usize = 1024;

/// The register file of one worker. An engine works on a pointer to it; a native gets `ctx` and
/// a slice of `x`, which are disjoint.
#[repr(C)]
pub struct Regs {
    /// X registers. Those beyond the live ones hold stale words: never read, never scanned.
    pub x: [Word; X_REGISTERS],
    /// Float registers.
    pub f: [f64; X_REGISTERS],
    /// What natives see.
    pub ctx: Ctx,
}

/// The context of a native call.
#[repr(C)]
pub struct Ctx {
    /// The running process. Valid while the worker runs it.
    pub body: *mut Body,
    /// Reductions left in this slice; natives subtract what they cost ([`Ctx::bump`]).
    pub fcalls: i64,
    /// The export array of the process's namespace: code positions by [`ExportId`].
    pub exports: *const std::sync::atomic::AtomicPtr<u64>,
    /// Module instances of the process's namespace by image number (the VM's `Instance`; null when the image
    /// is not loaded in this namespace).
    pub instances: *const std::sync::atomic::AtomicPtr<()>,
    /// The VM's tables.
    pub tables: *const Tables,
    /// The VM's own worker structure (opaque here).
    pub worker: *mut (),
    /// Why the last native returned [`Escape`].
    pub pending: Pending,
    /// The native that is called: set before natives of the embedding program ([`NativeEntry::host`]) and dirty ones, stale for others.
    pub native: *const NativeEntry,
}

/// Returned by a native that has no value; the reason is in [`Ctx::pending`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Escape(u64);

/// Class of an exception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ExceptionClass {
    /// `error`: carries a stack trace.
    Error,
    /// `exit`.
    Exit,
    /// `throw`.
    Throw,
}

impl ExceptionClass {
    /// The atom that `try ... catch Class:_` sees.
    pub const fn atom(self) -> Atom {
        match self {
            ExceptionClass::Error => atoms::ERROR,
            ExceptionClass::Exit => atoms::EXIT,
            ExceptionClass::Throw => atoms::THROW,
        }
    }
}

/// What goes into the `error_info` of a failed native's stack frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorInfo {
    /// `#{module => M}` where M is `erl_erts_errors`, `erl_stdlib_errors` or `erl_kernel_errors`,
    /// as the VM's table says for the native's module.
    Default,
    /// The same with `cause => Term`. Without a frame of the native ([`Raise::own_frame`]) the term is
    /// the whole map for the caller's frame (`error/3`).
    Cause(Word),
    /// No `error_info` at all (as for arithmetic operators inside functions).
    None,
}

/// An exception on its way from a native to the engine.
#[derive(Clone, Copy, Debug)]
pub struct Raise {
    /// Class.
    pub class: ExceptionClass,
    /// Reason (thrown value).
    pub reason: Word,
    /// For the stack frame of the native itself.
    pub info: ErrorInfo,
    /// A stack trace that replaces the one taken here (`erlang:raise/3`), or `NONE`.
    pub trace: Word,
    /// Whether the native's own frame, with its arguments, heads the trace (true for failing BIFs;
    /// false for `error/1`, `exit/1`, `throw/1`, `raise/3`, whose trace starts at the caller).
    pub own_frame: bool,
    /// Arguments for the *caller's* frame (`error/2`), a list, or `NONE`.
    pub caller_args: Word,
}

/// Where a trap goes on.
#[derive(Clone, Copy, Debug)]
pub enum TrapTarget {
    /// An exported function, Erlang or native.
    Export(ExportId),
    /// A native that stands in no export table: the continuation of a long native.
    Native(&'static NativeEntry),
    /// A fun with these arguments.
    Fun(Word),
}

/// Why a native returned [`Escape`].
#[derive(Debug, Default)]
pub enum Pending {
    /// Nothing pending.
    #[default]
    None,
    /// An exception.
    Raise(Raise),
    /// Go on in `target` with `args`, in place of the native: its value is the native's value. The
    /// engine may yield before (and always collects first if that is wanted): state must be terms.
    Trap {
        /// Where.
        target: TrapTarget,
        /// With what.
        args: Vec<Word>,
    },
    /// Put the process to sleep at this call; run the native again with the same arguments when a
    /// signal or message has arrived.
    Wait,
    /// Give up the rest of the slice, then run the native again with the same arguments.
    Yield,
    /// As `Trap`, after the rest of the slice was given up.
    YieldTo {
        /// Where.
        target: TrapTarget,
        /// With what.
        args: Vec<Word>,
    },
    /// End of the process without an exception (`exit` signal to itself, `halt`); the VM has the reason.
    Exit,
    /// Replace the whole stack: `erlang:hibernate/3`. The process's stack is dropped, it sleeps until
    /// a message arrives and then calls `target(args)`.
    Hibernate {
        /// Where.
        target: ExportId,
        /// With what.
        args: Vec<Word>,
    },
}

impl Ctx {
    /// The running process's common part.
    #[inline(always)]
    pub fn body(&mut self) -> &mut Body {
        // SAFETY: the worker owns the body while a native runs, and `Ctx` is the only path to it.
        unsafe { &mut *self.body }
    }
    /// The running process's heap.
    #[inline(always)]
    pub fn heap(&mut self) -> &mut Heap {
        &mut self.body().heap
    }
    /// The VM's tables (alive as long as the VM, hence during any native).
    #[inline(always)]
    pub fn tables<'a>(&self) -> &'a Tables {
        // SAFETY: see above; the reference must not be kept beyond the native's return.
        unsafe { &*self.tables }
    }
    /// The process itself.
    #[inline]
    pub fn self_pid(&mut self) -> Word {
        self.body().pid
    }
    /// Charges `n` reductions.
    #[inline(always)]
    pub fn bump(&mut self, n: i64) {
        self.fcalls -= n;
    }
    /// Interns a text; `system_limit` when the table is full, `badarg` otherwise.
    pub fn atom(&mut self, text: &str) -> Result<Word, Escape> {
        match self.tables().atoms.intern(text) {
            Ok(a) => Ok(a.word()),
            Err(beamr_term::AtomError::Full(_) | beamr_term::AtomError::TooLong) => {
                Err(self.system_limit())
            }
            Err(_) => Err(self.badarg()),
        }
    }

    /// An exception of class `error` with the native's own frame.
    #[cold]
    pub fn error(&mut self, reason: impl Into<Word>) -> Escape {
        self.raise(Raise {
            class: ExceptionClass::Error,
            reason: reason.into(),
            info: ErrorInfo::Default,
            trace: Word::NONE,
            own_frame: true,
            caller_args: Word::NONE,
        })
    }
    /// `badarg`.
    #[cold]
    pub fn badarg(&mut self) -> Escape {
        self.error(atoms::BADARG)
    }
    /// `badarg` with a `cause` in the error_info.
    #[cold]
    pub fn badarg_because(&mut self, cause: impl Into<Word>) -> Escape {
        let info = ErrorInfo::Cause(cause.into());
        self.raise(Raise {
            class: ExceptionClass::Error,
            reason: atoms::BADARG.word(),
            info,
            trace: Word::NONE,
            own_frame: true,
            caller_args: Word::NONE,
        })
    }
    /// `badarith`.
    #[cold]
    pub fn badarith(&mut self) -> Escape {
        self.error(atoms::BADARITH)
    }
    /// `system_limit`.
    #[cold]
    pub fn system_limit(&mut self) -> Escape {
        self.error(atoms::SYSTEM_LIMIT)
    }
    /// `notsup`: what is not built; named in the limits list.
    #[cold]
    pub fn notsup(&mut self) -> Escape {
        self.error(atoms::NOTSUP)
    }
    /// `{Tag, Value}` as an error.
    #[cold]
    pub fn error_with(&mut self, tag: Atom, value: Word) -> Escape {
        let reason = self.tuple(&[tag.word(), value]);
        self.error(reason)
    }
    /// Any exception.
    #[cold]
    pub fn raise(&mut self, raise: Raise) -> Escape {
        self.pending = Pending::Raise(raise);
        Escape(1)
    }
    /// Go on in `target` with `args`; see [`Pending::Trap`].
    pub fn trap(&mut self, target: TrapTarget, args: &[Word]) -> Escape {
        self.pending = Pending::Trap {
            target,
            args: args.to_vec(),
        };
        Escape(2)
    }
    /// Any other pending state.
    pub fn escape(&mut self, pending: Pending) -> Escape {
        self.pending = pending;
        Escape(3)
    }
    /// Takes what is pending.
    #[inline]
    pub fn take_pending(&mut self) -> Pending {
        std::mem::take(&mut self.pending)
    }
}

// SAFETY: forwards to the process heap.
unsafe impl Alloc for Ctx {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut u64 {
        self.heap().alloc(words)
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        Alloc::off_heap(self.heap())
    }
}
