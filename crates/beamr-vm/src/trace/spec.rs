//! Match specifications of trace events.

use std::sync::Arc;

use beamr_abi::{Body, Ctx, Pending, SavedArgs};
use beamr_term::{Build, Word};

use crate::gc::{HeapOptions, free_heap, new_heap};
use crate::match_spec::{Dialect, Machine, MatchSpec, Source, SpecError, TraceHost};
use crate::process::Carried;
use crate::sched::Worker;

/// A compiled specification with its source, for those who ask.
#[derive(Debug)]
pub struct Spec {
    /// As it was given.
    pub source: Carried,
    compiled: MatchSpec,
}

// SAFETY: the source is a term in a fragment of its own that nobody changes; it is copied by those who show it.
unsafe impl Sync for Spec {}

impl Spec {
    /// Compiles a specification for events of this dialect.
    pub fn compile(ctx: &mut Ctx, source: Word, dialect: Dialect) -> Result<Arc<Spec>, SpecError> {
        Ok(Arc::new(Spec {
            compiled: MatchSpec::compile(ctx, source, dialect)?,
            source: Carried::own(source),
        }))
    }
    /// Runs it on the arguments of an event of process `pid`: the value, or `None` when nothing matches. It runs on a heap of its
    /// own: the process's heap stays as it is, and the process need not be the one that runs.
    pub(crate) fn run(
        &self,
        w: &Worker,
        pid: Word,
        args: &[Word],
        host: &mut dyn TraceHost,
    ) -> Option<Carried> {
        on_scratch_heap(w, pid, |ctx| {
            let tuple = if args.is_empty() {
                beamr_term::empty_tuple()
            } else {
                ctx.tuple(args)
            };
            let list = ctx.list(args.iter().copied());
            let mut machine = Machine::new(&self.compiled);
            let source = Source::Arguments(tuple, list);
            let outcome = machine.run(ctx, &self.compiled, source, Some(host))?;
            Some(Carried::copy(outcome.0))
        })
    }
}

/// Runs `f` with a context whose heap is dropped afterwards. `f` calls nothing that wants a process.
fn on_scratch_heap<R>(w: &Worker, pid: Word, f: impl FnOnce(&mut Ctx) -> R) -> R {
    let mut body = Body {
        heap: new_heap(64, &HeapOptions::default()),
        ip: std::ptr::null(),
        args: SavedArgs::default(),
        pid,
        group_leader: Word::NIL,
        catches: 0,
        reductions: 0,
        over_limit: false,
        trace: Word::NIL,
    };
    let worker: *const Worker = w;
    let mut ctx = Ctx {
        body: &raw mut body,
        fcalls: crate::sched::SLICE,
        exports: std::ptr::null(),
        instances: std::ptr::null(),
        tables: Arc::as_ptr(&w.vm.tables),
        worker: worker.cast_mut().cast(),
        pending: Pending::None,
        native: std::ptr::null(),
    };
    let r = f(&mut ctx);
    // SAFETY: what `f` gave does not lie in the heap.
    unsafe { free_heap(&mut body.heap) };
    r
}
