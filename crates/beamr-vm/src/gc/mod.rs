//! The collector: generational, copying, one process at a time.
//!
//! # What moves
//!
//! A **minor** collection copies the live part of the block: what survived before (below the high-water mark) to the
//! old generation, the rest and all fragments to a new block. A **full** sweep copies both generations and
//! the fragments to a new block and leaves no old generation. Terms outside block, old generation and fragments
//! (literals, terms of owners that outlive the process) never move. Old terms never point to young
//! ones, because terms are immutable: that is what makes minor collections sound.
//!
//! # Roots
//!
//! Live X registers, the stack (scanned by tag), `args`, `group_leader` and `trace` of the body, and what the
//! process structure shows through [`Owner::visit_roots`].
//!
//! # Off-heap objects
//!
//! The heap's list is walked after copying. It is kept newest first, hence all objects of the old generation stand
//! behind all others, and a minor collection stops at the first of them. `off_heap.overhead` weighs the young ones,
//! `old_overhead` the old ones.
//!
//! A collection never fails: limits are reported ([`Report::over_limit`], `body.over_limit`), and the caller
//! ends the process. This module knows no scheduler; [`collect_body`] may run on any
//! thread that owns the body.

mod copy;
pub mod sizes;
mod verify;

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};

use beamr_abi::{Body, Heap, Regs, STACK_SLACK};
use beamr_term::off_heap::{release, weight};
use beamr_term::word::{PRIMARY_BOXED, PRIMARY_HEADER, PRIMARY_LIST};
use beamr_term::{Fragment, FunEntry, Header, Leaving, OffHeap, Subtag, Word, is_literal};

use crate::engine::CodePos;
use crate::rt::{ProcessSide, WorkerCode};
use copy::Copier;
use sizes::{next_larger_size, next_size, next_virtual};
pub use verify::{VerifyError, verify};

/// What the collector asks of the process that owns a body.
pub trait Owner {
    /// Shows the roots that the collector does not know by itself.
    fn visit_roots(&mut self, body: &mut Body, visit: &mut dyn FnMut(&mut [Word]));
    /// Charges for heap memory; see [`ProcessSide::charge`].
    fn charge(&mut self, body: &mut Body, bytes: isize) -> bool;
    /// Whether a heap of so many bytes is within the budget; see [`ProcessSide::fits`].
    fn fits(&mut self, body: &mut Body, bytes: usize) -> bool {
        let _ = (body, bytes);
        true
    }
}

impl Owner for &dyn ProcessSide {
    fn visit_roots(&mut self, body: &mut Body, visit: &mut dyn FnMut(&mut [Word])) {
        ProcessSide::visit_roots(*self, body, visit);
    }
    fn charge(&mut self, body: &mut Body, bytes: isize) -> bool {
        ProcessSide::charge(*self, body, bytes)
    }
    fn fits(&mut self, body: &mut Body, bytes: usize) -> bool {
        ProcessSide::fits(*self, body, bytes)
    }
}

/// An owner without further roots or budget (a body that no process runs yet).
#[derive(Debug)]
pub struct NoOwner;

impl Owner for NoOwner {
    fn visit_roots(&mut self, _: &mut Body, _: &mut dyn FnMut(&mut [Word])) {}
    fn charge(&mut self, _: &mut Body, _: isize) -> bool {
        true
    }
}

/// What to collect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A minor collection, unless a full sweep is due.
    Auto,
    /// A full sweep (`erlang:garbage_collect/0`).
    Full,
}

/// What a collection did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Whether it was a full sweep.
    pub full: bool,
    /// Reductions it cost.
    pub cost: i64,
    /// Words that were garbage.
    pub reclaimed: usize,
    /// The heap is above `max_heap_size` or the budget; `body.over_limit` is set.
    pub over_limit: bool,
}

/// How a fresh heap is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapOptions {
    /// `min_heap_size` in words; rounded up to the sequence.
    pub min_size: usize,
    /// `min_bin_vheap_size` in words.
    pub min_virtual: usize,
    /// `fullsweep_after`.
    pub fullsweep_after: u16,
    /// `max_heap_size` in words, 0 when unlimited.
    pub max_size: usize,
    /// Whether counted binaries count for `max_size`.
    pub max_with_binaries: bool,
}

impl Default for HeapOptions {
    fn default() -> Self {
        HeapOptions {
            min_size: sizes::DEFAULT_MIN_SIZE,
            min_virtual: sizes::DEFAULT_MIN_VIRTUAL,
            fullsweep_after: u16::MAX,
            max_size: 0,
            max_with_binaries: false,
        }
    }
}

/// No block was left when a collection was put off.
const NOT_LEFT: (*mut u64, *mut u64, *mut u64) = (
    std::ptr::null_mut(),
    std::ptr::null_mut(),
    std::ptr::null_mut(),
);

fn layout(words: usize) -> Layout {
    // Sizes come from the sequence; one that no address space holds cannot be served.
    Layout::array::<u64>(words).unwrap_or_else(|_| std::process::abort())
}

fn new_block(words: usize) -> *mut u64 {
    let l = layout(words.max(1));
    // SAFETY: the layout is not of size zero; failure is handled.
    let p = unsafe { alloc(l) }.cast::<u64>();
    if p.is_null() {
        handle_alloc_error(l)
    }
    p
}

unsafe fn free_block(start: *mut u64, end: *mut u64) {
    if !start.is_null() {
        dealloc(start.cast(), layout((end as usize - start as usize) / 8));
    }
}

/// An empty heap with room for at least `words` words besides the slack.
pub fn new_heap(words: usize, options: &HeapOptions) -> Heap {
    let min_size = next_size(options.min_size);
    let wanted = words.saturating_add(STACK_SLACK);
    let size =
        if min_size == sizes::DEFAULT_MIN_SIZE && wanted + STACK_SLACK / 2 <= sizes::FIRST_SIZE {
            sizes::FIRST_SIZE
        } else {
            next_size(wanted).max(min_size)
        };
    let start = new_block(size);
    // SAFETY: the block has `size` words.
    let end = unsafe { start.add(size) };
    Heap {
        top: start,
        stop: end,
        start,
        end,
        high_water: start,
        old_start: std::ptr::null_mut(),
        old_top: std::ptr::null_mut(),
        old_end: std::ptr::null_mut(),
        fragments: None,
        fragment_words: 0,
        off_heap: OffHeap::default(),
        virtual_limit: options.min_virtual,
        gc_wanted: false,
        outside: false,
        left: NOT_LEFT,
        minor_count: 0,
        fullsweep_after: options.fullsweep_after,
        min_size,
        min_virtual: options.min_virtual,
        max_size: options.max_size,
        max_with_binaries: options.max_with_binaries,
        old_overhead: 0,
        old_virtual_limit: options.min_virtual,
    }
}

/// Frees everything a heap holds; it is empty and without a block afterwards.
///
/// # Safety
/// Nothing reads its terms any more.
pub unsafe fn free_heap(heap: &mut Heap) {
    heap.off_heap.release_all();
    heap.fragments = None;
    heap.fragment_words = 0;
    free_block(heap.start, heap.end);
    free_block(heap.old_start, heap.old_end);
    let null = std::ptr::null_mut();
    (heap.start, heap.top, heap.high_water) = (null, null, null);
    (heap.stop, heap.end) = (null, null);
    (heap.old_start, heap.old_top, heap.old_end) = (null, null, null);
    heap.old_overhead = 0;
}

/// Bytes of memory a heap holds: block, old generation, fragments (not off-heap data).
pub fn heap_bytes(heap: &Heap) -> usize {
    let fragments = heap.fragments.as_deref().map_or(0, |f| f.total_capacity());
    (heap.size() + heap.old_size() + fragments) * 8
}

/// Bytes that count against the budget of the process's tenant: [`heap_bytes`] and the off-heap objects that the heap
/// refers to (shared ones in full).
pub fn charged_bytes(heap: &Heap) -> usize {
    heap_bytes(heap) + (heap.off_heap.overhead + heap.old_overhead) * 8
}

/// Collects so that `need` words are free between heap and stack. A process whose need cannot be met within its limits ends
/// before anything is allocated for it.
///
/// # Safety
/// The contract of [`crate::rt`]; `live` X registers are initialised.
pub unsafe fn collect(regs: &mut Regs, need: usize, live: usize) -> Result<(), CodePos> {
    let head = WorkerCode::of(&regs.ctx);
    let body = &mut *regs.ctx.body;
    let mut owner: &dyn ProcessSide = &*head.processes;
    let least = next_size(body.heap.stack_size() + need + STACK_SLACK) * 8;
    let fits = owner.fits(body, least);
    let over = over_max(&body.heap, need);
    if over || !fits {
        let processes = head.processes.clone();
        if !fits {
            processes.out_of_memory(&mut regs.ctx);
            return Err(std::ptr::null());
        }
        if processes.over_limit(&mut regs.ctx) {
            return Err(std::ptr::null());
        }
    }
    let body = &mut *regs.ctx.body;
    if head.outside && takes_long(&body.heap) {
        put_off(body, need);
        regs.ctx.fcalls = regs.ctx.fcalls.min(0);
        return Ok(());
    }
    let traced = head
        .processes
        .collection_begins(&regs.ctx, full_is_due(&body.heap), need);
    let report = collect_body(body, &mut owner, &mut regs.x[..live], need, Kind::Auto);
    if traced {
        head.processes
            .collection_ends(&regs.ctx, report.full, report.reclaimed);
    }
    regs.ctx.fcalls -= report.cost;
    head.processes.collected(&regs.ctx, report.reclaimed);
    if std::mem::take(&mut body.over_limit) {
        let now = charged_bytes(&body.heap);
        let fits = owner.fits(body, now);
        let processes = head.processes.clone();
        if !fits {
            processes.out_of_memory(&mut regs.ctx);
            return Err(std::ptr::null());
        }
        // What was over before has been told.
        if !over && processes.over_limit(&mut regs.ctx) {
            return Err(std::ptr::null());
        }
    }
    Ok(())
}

/// Words above which a collection is not done by the worker that runs the process: a millisecond or two of copying.
const LONG: usize = 256 * 1024;

/// Whether the next collection is a matter for another thread.
pub(crate) fn takes_long(heap: &Heap) -> bool {
    let young = heap.used() + heap.fragment_words;
    // The common heap is small: no division by cases for it.
    young + heap.old_used() >= LONG && (young >= LONG || full_is_due(heap))
}

/// Whether the collection of a process at rest is a matter for another thread; then the heap is marked.
pub(crate) fn takes_long_at_rest(heap: &mut Heap, major: bool) -> bool {
    if major && heap.used() + heap.fragment_words + heap.old_used() >= LONG {
        heap.minor_count = heap.fullsweep_after;
    } else if !takes_long(heap) {
        return false;
    }
    heap.outside = true;
    heap.gc_wanted = false;
    true
}

/// Makes room for `need` words without a collection and marks the heap: the old block becomes a fragment. Terms stay
/// where they are, only the stack moves.
unsafe fn put_off(body: &mut Body, need: usize) {
    let heap = &mut body.heap;
    heap.outside = true;
    heap.gc_wanted = false;
    if need + STACK_SLACK <= heap.free() {
        return;
    }
    let size = block_size(heap, heap.stack_size() + need + STACK_SLACK);
    let start = new_block(size);
    let end = start.add(size);
    let stop = copy_stack(heap, end);
    let mut old = Fragment::from_block(heap.start, heap.top, heap.end);
    heap.fragment_words += old.used();
    old.next = heap.fragments.take();
    heap.fragments = Some(Box::new(old));
    if heap.left.0.is_null() {
        heap.left = (heap.start, heap.high_water, heap.top);
    }
    (heap.start, heap.top, heap.stop, heap.end) = (start, start, stop, end);
    heap.high_water = start;
}

/// Collects the heap of `body`; afterwards `need` words are free besides the slack.
///
/// # Safety
/// The caller owns the body; every root is initialised; `x` are the live X registers.
pub unsafe fn collect_body(
    body: &mut Body,
    owner: &mut dyn Owner,
    x: &mut [Word],
    need: usize,
    kind: Kind,
) -> Report {
    let before = heap_bytes(&body.heap);
    let over = over_max(&body.heap, need);
    let report = if kind == Kind::Auto && outgrows_first_block(&body.heap, need) {
        let words = body.heap.min_size;
        resize(body, owner, x, words);
        report(false, 0, 0, 0)
    } else if kind == Kind::Full || full_is_due(&body.heap) {
        full(body, owner, x, need, None)
    } else {
        minor(body, owner, x, need)
    };
    finish(body, owner, before, over, report)
}

/// Whether a block below `min_heap_size` (that of a new process, or of one that hibernated) becomes one of that size
/// instead of being collected: there is nothing to gain in it yet.
fn outgrows_first_block(heap: &Heap, need: usize) -> bool {
    heap.size() < heap.min_size
        && heap.fragments.is_none()
        && heap.used() + heap.stack_size() + need + STACK_SLACK <= heap.min_size
        && !full_is_due(heap)
        && heap.off_heap.overhead <= heap.virtual_limit
}

/// A full sweep after which the block is no larger than what lives needs (and the slack): for a process that
/// hibernates. Its `min_size` counts again from the next collection.
///
/// # Safety
/// As [`collect_body`].
pub unsafe fn shrink_body(body: &mut Body, owner: &mut dyn Owner, x: &mut [Word]) -> Report {
    let before = heap_bytes(&body.heap);
    let report = full(body, owner, x, 0, None);
    let heap = &body.heap;
    let wanted = heap.used() + heap.stack_size() + STACK_SLACK;
    if wanted < heap.size() {
        resize(body, owner, x, wanted);
    }
    finish(body, owner, before, false, report)
}

/// A full sweep that also copies every literal of the areas that are being given up ([`LiteralArea::leave`]) and that the body
/// refers to into its heap: afterwards the body does not know these areas any more.
///
/// [`LiteralArea::leave`]: beamr_term::LiteralArea::leave
///
/// # Safety
/// As [`collect_body`]; the areas are alive.
pub unsafe fn collect_literals(
    body: &mut Body,
    owner: &mut dyn Owner,
    x: &mut [Word],
    areas: Leaving,
) -> Report {
    let before = heap_bytes(&body.heap);
    let report = full(body, owner, x, 0, Some(areas));
    let over = body.heap.max_size != 0 && body.heap.size() > body.heap.max_size;
    finish(body, owner, before, over, report)
}

/// How many funs of `entry` lie in the heap of a body, dead ones included.
///
/// # Safety
/// The caller owns the body, which is at a safe point.
pub unsafe fn funs_in_body(body: &Body, entry: *const FunEntry) -> usize {
    let h = &body.heap;
    funs_in_range(h.start, h.top, entry)
        + funs_in_range(h.old_start, h.old_top, entry)
        + h.fragments
            .as_deref()
            .map_or(0, |f| funs_in_fragments(f, entry))
}

/// The same for a chain of fragments.
///
/// # Safety
/// The fragments hold complete terms.
pub unsafe fn funs_in_fragments(fragment: &Fragment, entry: *const FunEntry) -> usize {
    let (mut n, mut next) = (0, Some(fragment));
    while let Some(f) = next {
        let (start, end) = f.range();
        n += funs_in_range(start, end, entry);
        next = f.next.as_deref();
    }
    n
}

/// The same for complete objects that lie one behind the other.
///
/// # Safety
/// So they do.
pub unsafe fn funs_in_range(start: *const u64, end: *const u64, entry: *const FunEntry) -> usize {
    let (mut n, mut p) = (0, start);
    while p < end {
        let w = *p;
        if w & 3 != PRIMARY_HEADER {
            p = p.add(1);
            continue;
        }
        let h = Header(w);
        n += usize::from(h.subtag() == Subtag::Fun && *p.add(1) == entry as usize as u64);
        p = p.add(1 + h.raw_words());
    }
    n
}

/// Whether anything in the body (dead terms included) is a literal of these areas. Looks at every word once.
///
/// # Safety
/// As [`collect_body`].
pub unsafe fn refers_to_literals(
    body: &mut Body,
    owner: &mut dyn Owner,
    x: &mut [Word],
    areas: Leaving,
) -> bool {
    let h = &body.heap;
    let stack = std::slice::from_raw_parts(h.stop, h.stack_size());
    let stack = stack.iter().any(|w| refers(*w, areas));
    let mut found = stack
        || range_refers(h.start, h.top, areas)
        || range_refers(h.old_start, h.old_top, areas)
        || h.fragments
            .as_deref()
            .is_some_and(|f| fragment_refers(f, areas));
    if !found {
        visit_all(body, owner, x, &mut |words| {
            found |= words.iter().any(|w| refers(w.bits(), areas));
        });
    }
    found
}

/// The same for the terms in a chain of fragments.
///
/// # Safety
/// The fragments hold complete terms.
pub unsafe fn fragment_refers(fragment: &Fragment, areas: Leaving) -> bool {
    let mut next = Some(fragment);
    while let Some(f) = next {
        let (start, end) = f.range();
        if range_refers(start, end, areas) {
            return true;
        }
        next = f.next.as_deref();
    }
    false
}

/// Whether a word is a literal of these areas.
#[inline]
pub fn refers(w: u64, areas: Leaving) -> bool {
    let p = (w & !3) as usize as *const u64;
    matches!(w & 3, PRIMARY_LIST | PRIMARY_BOXED) && is_literal(p) && areas.contains(p)
}

unsafe fn range_refers(start: *const u64, end: *const u64, areas: Leaving) -> bool {
    let mut p = start;
    while p < end {
        let w = *p;
        if w & 3 == PRIMARY_HEADER {
            p = p.add(1 + Header(w).raw_words());
        } else if refers(w, areas) {
            return true;
        } else {
            p = p.add(1);
        }
    }
    false
}

unsafe fn finish(
    body: &mut Body,
    owner: &mut dyn Owner,
    before: usize,
    over: bool,
    mut report: Report,
) -> Report {
    body.heap.gc_wanted = false;
    body.heap.outside = false;
    let after = heap_bytes(&body.heap);
    let granted = owner.charge(body, after as isize - before as isize);
    report.over_limit = over || !granted;
    body.over_limit |= report.over_limit;
    report
}

/// Whether the collection would exceed `max_heap_size`: young and old generation with what is free in them, and the block to come.
fn over_max(heap: &Heap, need: usize) -> bool {
    if heap.max_size == 0 {
        return false;
    }
    let young = heap.used() + heap.fragment_words;
    let mut total = young + heap.stack_size() + heap.free() + heap.old_size();
    total += block_size(heap, young + heap.stack_size() + need + STACK_SLACK);
    if heap.old_start.is_null() && mature(heap) > 0 {
        total += next_larger_size(young);
    }
    if heap.max_with_binaries {
        total += heap.off_heap.overhead + heap.old_overhead;
    }
    total > heap.max_size
}

/// Words that survived a collection and are not in the old generation.
fn mature(heap: &Heap) -> usize {
    let (left, left_mature, _) = heap.left;
    (heap.high_water as usize - heap.start as usize + left_mature as usize - left as usize) / 8
}

pub(crate) fn full_is_due(heap: &Heap) -> bool {
    if heap.minor_count >= heap.fullsweep_after {
        return true;
    }
    if heap.old_start.is_null() {
        return false;
    }
    let room = (heap.old_end as usize - heap.old_top as usize) / 8;
    mature(heap) > room || heap.old_overhead >= heap.old_virtual_limit
}

fn block_size(heap: &Heap, words: usize) -> usize {
    next_size(words).max(heap.min_size)
}

/// Every root but the stack.
pub(crate) unsafe fn visit_all(
    body: &mut Body,
    owner: &mut dyn Owner,
    x: &mut [Word],
    visit: &mut dyn FnMut(&mut [Word]),
) {
    visit(x);
    visit(body.args.as_mut_slice());
    visit(std::slice::from_mut(&mut body.group_leader));
    visit(std::slice::from_mut(&mut body.trace));
    owner.visit_roots(body, visit);
}

/// Copies the stack to the end of the block `start..end` and gives its new top.
unsafe fn copy_stack(heap: &Heap, end: *mut u64) -> *mut u64 {
    let n = heap.stack_size();
    let stop = end.sub(n);
    std::ptr::copy_nonoverlapping(heap.stop, stop, n);
    stop
}

unsafe fn minor(body: &mut Body, owner: &mut dyn Owner, x: &mut [Word], need: usize) -> Report {
    let heap = &mut body.heap;
    let young = heap.used() + heap.fragment_words;
    let stack = heap.stack_size();
    let before = heap.size();
    if heap.old_start.is_null() && mature(heap) > 0 {
        // Larger than needed: fewer full sweeps.
        let size = next_larger_size(young);
        heap.old_start = new_block(size);
        heap.old_top = heap.old_start;
        heap.old_end = heap.old_start.add(size);
    }
    let size = block_size(heap, young + stack + STACK_SLACK);
    let start = new_block(size);
    let end = start.add(size);
    let old_mark = heap.old_top;
    let stop = copy_stack(heap, end);
    let mut c = Copier::<false>::new(heap, heap.old_end, start, heap.old_top);
    visit_all(body, owner, x, &mut |w| c.roots(w));
    c.stack(stop, end);
    c.scan(start, old_mark);
    let heap = &mut body.heap;
    sweep_minor(heap, &c);
    let promoted = (c.old_top as usize - old_mark as usize) / 8;
    install(heap, start, c.new_top, stop, end);
    heap.old_top = c.old_top;
    // What a process with its first block would not have needed with one of `min_heap_size` does not count.
    if before >= heap.min_size || heap.size() > heap.min_size {
        heap.minor_count = heap.minor_count.saturating_add(1);
    }
    let after = heap.used() + promoted;
    verify::debug_check(heap, old_mark);

    let need_after = heap.used() + need + stack + STACK_SLACK;
    let size = heap.size();
    let mut resized = 0;
    if size > 3000 && 4 * need_after < size && (size > 8000 || size > heap.old_size()) {
        let wanted = (3 * need_after).max(if 27 * need_after < heap.old_size() {
            heap.old_size() / 8
        } else {
            0
        });
        let wanted = block_size(heap, wanted);
        if wanted < size {
            resize(body, owner, x, wanted);
            resized = body.heap.used();
        }
    } else if need_after > size {
        let wanted = block_size(heap, need_after);
        resize(body, owner, x, wanted);
        resized = body.heap.used();
    }
    report(false, after, resized, young.saturating_sub(after))
}

unsafe fn full(
    body: &mut Body,
    owner: &mut dyn Owner,
    x: &mut [Word],
    need: usize,
    literals: Option<Leaving>,
) -> Report {
    let heap = &mut body.heap;
    let live = heap.used() + heap.fragment_words + heap.old_used();
    let stack = heap.stack_size();
    let bound = live + stack + STACK_SLACK + literals.map_or(0, |_| Leaving::words());
    let size = block_size(heap, bound);
    let start = new_block(size);
    let end = start.add(size);
    let stop = copy_stack(heap, end);
    let mut c = Copier::<true>::new(heap, heap.old_top, start, std::ptr::null_mut());
    if let Some(areas) = literals {
        c.leave_literals(areas);
    }
    visit_all(body, owner, x, &mut |w| c.roots(w));
    c.stack(stop, end);
    c.scan(start, std::ptr::null_mut());
    let heap = &mut body.heap;
    sweep_full(heap, &mut c);
    install(heap, start, c.new_top, stop, end);
    free_block(heap.old_start, heap.old_end);
    let null = std::ptr::null_mut();
    (heap.old_start, heap.old_top, heap.old_end) = (null, null, null);
    heap.minor_count = 0;
    let after = heap.used();
    verify::debug_check(heap, null);

    let need_after = after + need + stack + STACK_SLACK;
    let size = heap.size();
    let mut resized = 0;
    let wanted = if size < need_after {
        block_size(heap, need_after)
    } else if 3 * size < 4 * need_after {
        // More than three quarters in use. OTP postpones this growth to the next collection.
        next_larger_size(size)
    } else if 4 * need_after < size && size > sizes::DEFAULT_MIN_SIZE {
        block_size(heap, 2 * need_after).min(size)
    } else {
        size
    };
    if wanted != size {
        resize(body, owner, x, wanted);
        resized = body.heap.used();
    }
    report(true, after, resized, live.saturating_sub(after))
}

fn report(full: bool, live: usize, resized: usize, reclaimed: usize) -> Report {
    Report {
        full,
        cost: ((live / 10 + resized / 100) as i64).max(1),
        reclaimed,
        over_limit: false,
    }
}

/// Replaces the block; fragments are empty now.
unsafe fn install(heap: &mut Heap, start: *mut u64, top: *mut u64, stop: *mut u64, end: *mut u64) {
    free_block(heap.start, heap.end);
    heap.start = start;
    heap.top = top;
    heap.high_water = top;
    heap.stop = stop;
    heap.end = end;
    heap.fragments = None;
    heap.fragment_words = 0;
    heap.left = NOT_LEFT;
}

/// Off-heap objects after a minor collection: up to the first one that was old before.
unsafe fn sweep_minor(heap: &mut Heap, c: &Copier<false>) {
    let old = (heap.old_start as usize, heap.old_end as usize);
    let mut link: *mut u64 = (&raw mut heap.off_heap.first).cast();
    let mut p = heap.off_heap.first;
    let (mut young, mut promoted) = (0, 0);
    while !p.is_null() {
        let header = *p;
        if header & 3 == PRIMARY_BOXED {
            let q = (header & !3) as usize as *mut u64;
            *link = q as usize as u64;
            link = q.add(1);
            p = *link as usize as *mut u64;
            if (old.0..old.1).contains(&(q as usize)) {
                promoted += weight(q);
            } else {
                young += weight(q);
            }
        } else if c.is_from(p) {
            let next = *p.add(1) as usize as *mut u64;
            release(p);
            p = next;
        } else {
            break;
        }
    }
    *link = p as usize as u64;
    heap.off_heap.overhead = young;
    heap.old_overhead += promoted;
    heap.virtual_limit = next_virtual(young, heap.virtual_limit, heap.min_virtual);
}

/// Off-heap objects after a full sweep.
unsafe fn sweep_full(heap: &mut Heap, c: &mut Copier<true>) {
    let mut link: *mut u64 = (&raw mut heap.off_heap.first).cast();
    let mut p = heap.off_heap.first;
    let mut young = 0;
    while !p.is_null() {
        let header = *p;
        if header & 3 == PRIMARY_BOXED {
            let q = (header & !3) as usize as *mut u64;
            *link = q as usize as u64;
            link = q.add(1);
            p = *link as usize as *mut u64;
            young += weight(q);
        } else {
            let next = *p.add(1) as usize as *mut u64;
            release(p);
            p = next;
        }
    }
    *link = 0;
    heap.off_heap.overhead = young;
    for q in c.take_linked() {
        heap.off_heap.link(q);
    }
    let all = heap.off_heap.overhead;
    heap.old_overhead = 0;
    heap.old_virtual_limit = next_virtual(all, heap.old_virtual_limit, heap.min_virtual);
    heap.virtual_limit = next_virtual(all, heap.virtual_limit, heap.min_virtual);
}

/// Gives the block another size (which fits heap and stack). The old generation never points into the block,
/// and there are no fragments: what must be told of a new address is the block itself, the stack and the roots.
unsafe fn resize(body: &mut Body, owner: &mut dyn Owner, x: &mut [Word], words: usize) {
    let heap = &mut body.heap;
    let (used, stack, size) = (heap.used(), heap.stack_size(), heap.size());
    debug_assert!(used + stack <= words && heap.fragments.is_none());
    let old_start = heap.start;
    let high = (heap.high_water as usize - heap.start as usize) / 8;
    if words < size {
        std::ptr::copy(heap.stop, heap.start.add(words - stack), stack);
    }
    let start = realloc(heap.start.cast(), layout(size), words * 8).cast::<u64>();
    if start.is_null() {
        handle_alloc_error(layout(words))
    }
    let end = start.add(words);
    let stop = end.sub(stack);
    if words > size {
        std::ptr::copy(start.add(size - stack), stop, stack);
    }
    heap.start = start;
    heap.top = start.add(used);
    heap.high_water = start.add(high);
    heap.stop = stop;
    heap.end = end;
    if start == old_start {
        return;
    }
    let shift = Shift {
        from: old_start as usize,
        bytes: used * 8,
        by: (start as usize).wrapping_sub(old_start as usize),
    };
    // The list's links lie in raw words and may enter the block anywhere before its old part.
    let mut link: *mut u64 = (&raw mut heap.off_heap.first).cast();
    while *link != 0 {
        let moved = shift.address(*link);
        if moved == *link {
            break;
        }
        *link = moved;
        link = (moved as usize as *mut u64).add(1);
    }
    let mut p = start;
    while p < heap.top {
        let w = *p;
        if w & 3 == PRIMARY_HEADER {
            p = p.add(1 + Header(w).raw_words());
        } else {
            *p = shift.word(w);
            p = p.add(1);
        }
    }
    let mut p = stop;
    while p < end {
        *p = shift.word(*p);
        p = p.add(1);
    }
    visit_all(body, owner, x, &mut |words| {
        for w in words {
            *w = Word::from_bits(shift.word(w.bits()));
        }
    });
}

/// Addresses of one range become others.
struct Shift {
    from: usize,
    bytes: usize,
    by: usize,
}

impl Shift {
    #[inline]
    fn address(&self, a: u64) -> u64 {
        if (a as usize).wrapping_sub(self.from) < self.bytes {
            (a as usize).wrapping_add(self.by) as u64
        } else {
            a
        }
    }
    #[inline]
    fn word(&self, w: u64) -> u64 {
        match w & 3 {
            PRIMARY_LIST | PRIMARY_BOXED => self.address(w),
            _ => w,
        }
    }
}
