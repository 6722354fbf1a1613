//! What the collector and exceptions ask of the process structure.

use beamr_abi::{Body, Ctx, ExceptionClass};
use beamr_term::{Atom, Word, atoms};

use super::{Process, process, slot_of, worker};
use crate::gc::charged_bytes;
use crate::rt::{ProcessSide, Uncaught};
use crate::trace::process::{collection, traces_collections};

/// The answers of this VM's processes. Stateless.
#[derive(Clone, Copy, Debug, Default)]
pub struct VmProcessSide;

impl ProcessSide for VmProcessSide {
    fn visit_roots(&self, body: &mut Body, visit: &mut dyn FnMut(&mut [Word])) {
        // SAFETY: every body that the collector gets is the head of a `Process`, which the caller has.
        let p = unsafe { Process::of_body(body) };
        p.dictionary.visit(visit);
        for w in [&mut p.label, &mut p.native_state] {
            if w.is_value() {
                visit(std::slice::from_mut(w));
            }
        }
        if let Some(walk) = &mut p.walk {
            walk.visit_roots(&mut |w| visit(std::slice::from_mut(w)));
        }
        if let Some(m) = &mut p.mailbox_away {
            m.visit_adopted(visit);
        }
        let slot = p.slot();
        // Adopted messages lie in the heap; with a body that is away to be collected they are away too. The runner's
        // part must not be touched from there.
        if !slot.state.snapshot().is_dirty() {
            // SAFETY: the collector runs on the runner's thread.
            unsafe { (*slot.own_ptr()).mailbox.visit_adopted(visit) };
        }
    }
    fn charge(&self, body: &mut Body, _: isize) -> bool {
        let now = charged_bytes(&body.heap) as isize;
        // SAFETY: as in `visit_roots`.
        let p = unsafe { Process::of_body(body) };
        // Fragments came and went uncharged since: what counts is what was charged last.
        let more = now - std::mem::replace(&mut p.charged, now);
        let off_heap = now - crate::gc::heap_bytes(&p.body.heap) as isize;
        let more_off_heap = off_heap - std::mem::replace(&mut p.charged_off_heap, off_heap);
        if more_off_heap != 0 {
            p.slot().namespace.note_off_heap(more_off_heap);
        }
        p.slot().namespace.charge_memory(more)
    }
    fn called(&self, ctx: &Ctx, export: beamr_term::ExportId) {
        if let Some((m, f, a)) = ctx.tables().exports.mfa(export) {
            super::saved_calls::called(ctx, m, f, a);
        }
    }
    fn collected(&self, ctx: &Ctx, reclaimed: usize) {
        worker(ctx).collected(reclaimed);
    }
    fn collection_begins(&self, ctx: &Ctx, full: bool, need: usize) -> bool {
        let traced = traces_collections(slot_of(ctx));
        if traced {
            collection(worker(ctx), process(ctx), full, false, need);
        }
        traced
    }
    fn collection_ends(&self, ctx: &Ctx, full: bool, reclaimed: usize) {
        collection(worker(ctx), process(ctx), full, true, reclaimed);
    }
    fn fits(&self, body: &mut Body, bytes: usize) -> bool {
        // SAFETY: as in `visit_roots`.
        let p = unsafe { Process::of_body(body) };
        let more = bytes as i64 - p.charged as i64;
        p.slot().namespace.has_room(more)
    }
    fn error_handler(&self, body: &Body) -> Atom {
        // SAFETY: as in `visit_roots`; only read.
        unsafe { (*(&raw const *body).cast::<Process>()).error_handler }
    }
    fn has_code_server(&self, ctx: &Ctx) -> bool {
        let Some(name) = ctx.tables().atoms.lookup("code_server") else {
            return false;
        };
        let vm = &super::worker(ctx).vm;
        vm.registry
            .whereis(super::slot_of(ctx).namespace.id, name)
            .is_some()
    }
    fn suspend_running(&self, ctx: &Ctx) -> bool {
        slot_of(ctx).state.suspend().is_some()
    }
    fn resume_running(&self, ctx: &Ctx) {
        // It runs: there is nothing to enqueue.
        let _ = slot_of(ctx).state.resume();
    }
    fn uncaught(&self, ctx: &mut Ctx, uncaught: Uncaught) {
        process(ctx).end(uncaught.class, uncaught.reason, uncaught.log);
    }
    fn over_limit(&self, ctx: &mut Ctx) -> bool {
        let p = process(ctx);
        if p.max_heap.error_logger {
            super::exit::log_max_heap(ctx);
        }
        let p = process(ctx);
        let tenant_full = !p.slot().namespace.memory_left();
        if p.max_heap.kill || tenant_full {
            p.end(ExceptionClass::Exit, atoms::KILLED.word(), false);
            true
        } else {
            false
        }
    }
}
