//! Breakpoints of functions: which there are, and what is to be done at each.
//!
//! # Two kinds
//!
//! * An **entry** is the entry word of a function in an image: whoever calls the function meets it. It is exchanged for the
//!   engine's trap ([`beamr_sync::breakpoints`] is the protocol). Local, meta, count and time breakpoints of Erlang functions are of this kind.
//! * A **detour** is a position of its own that stands in an export slot in place of the function: whoever calls the function
//!   by its export (external calls, applies, export funs, the first call of a process) meets it. Global breakpoints of
//!   Erlang functions, and all breakpoints of natives, are of this kind. Instructions that call natives directly do not look
//!   at export slots: while a native has a breakpoint they are rerouted there.
//!
//! # The contract with engines
//!
//! An engine that can be traced gives a [`Breakpoints`](crate::engine::Breakpoints):
//!
//! 1. The position of a function is a word that the engine reads *for every call* of it, whoever calls: code that calls functions of its
//!    own image by another way (machine code that jumps to what stands behind the word) must look at the word, or be told by `arm`, before
//!    it does so. It reads the word once for each call.
//! 2. When it finds the trap it saves its registers, calls [`rt::breakpoint`](crate::rt::breakpoint) with the position, with the callee's
//!    arguments in X registers and the return address on the stack, loads its registers again and goes on with what it was given (the
//!    original of the word). The call's reduction has been counted.
//! 3. An instruction that is run again (after a collection) although its word is the trap uses the original: [`rt::original`](crate::rt::original).
//! 4. A detour calls [`rt::detour`](crate::rt::detour) and goes where that says.
//! 5. [`Fixed::TraceReturn`](crate::engine::Fixed::TraceReturn) calls [`rt::trace_returned`](crate::rt::trace_returned) with the value in x0 and
//!    then returns to the position on top of the stack.
//!
//! # Life
//!
//! Breakpoints belong to current code. When a module gets other current code, or none, those of the code before go, and so do its detours;
//! what sessions say of modules to come ([`Session::on_load`]) is then done for the new code. So no breakpoint outlives its image.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use beamr_abi::NativeEntry;
use beamr_sync::breakpoints::{BreakTable, Found};
use beamr_sync::prim::Mutex;
use beamr_term::{Atom, ExportId, Word, atoms};

use super::spec::Spec;
use super::tracee::Session;
use crate::code::{Instance, ModuleTable};
use crate::engine::{Breakpoints, CodePos};

/// Name and arity of a function.
pub type Mfa = (Atom, Atom, u32);

/// A count of calls.
#[derive(Debug)]
pub struct Count {
    active: AtomicBool,
    n: AtomicI64,
}

/// Calls and nanoseconds by process.
#[derive(Debug)]
pub struct Times {
    active: AtomicBool,
    of: Mutex<HashMap<u64, (u64, u64)>>,
}

impl Count {
    fn new() -> Count {
        Count {
            active: AtomicBool::new(true),
            n: AtomicI64::new(0),
        }
    }
    /// One more call.
    pub(super) fn call(&self) {
        if self.active.load(Ordering::Relaxed) {
            self.n.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// How many calls.
    pub fn get(&self) -> i64 {
        self.n.load(Ordering::Relaxed)
    }
}

impl Times {
    fn new() -> Times {
        Times {
            active: AtomicBool::new(true),
            of: Mutex::default(),
        }
    }
    /// Whether it is not paused.
    pub(super) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }
    /// Calls and time of a process.
    pub(super) fn add(&self, pid: Word, calls: u64, ns: u64) {
        let mut of = self.of.lock();
        let e = of.entry(pid.local_number()).or_default();
        e.0 += calls;
        e.1 += ns;
    }
    /// Pid, calls, nanoseconds.
    pub fn get(&self) -> Vec<(Word, u64, u64)> {
        let of = self.of.lock();
        of.iter().map(|(p, e)| (Word::pid(*p), e.0, e.1)).collect()
    }
}

/// A meta breakpoint.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Which calls.
    pub spec: Option<Arc<Spec>>,
    /// Who is told.
    pub tracer: Word,
}

/// What a session does at a breakpoint.
#[derive(Clone, Debug, Default)]
pub struct What {
    /// Calls of processes that are traced for `call`: whether local ones, and which.
    pub call: Option<(bool, Option<Arc<Spec>>)>,
    /// Calls of all processes.
    pub meta: Option<Meta>,
    /// Counts.
    pub count: Option<Arc<Count>>,
    /// Measures.
    pub time: Option<Arc<Times>>,
}

impl What {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.call.is_none() && self.meta.is_none() && self.count.is_none() && self.time.is_none()
    }
    pub(super) fn apply(&mut self, c: &Change) {
        let on = c.turn == Turn::On;
        if c.global {
            if on {
                *self = What::default();
                self.call = Some((false, c.spec.clone()));
            } else if matches!(self.call, Some((false, _))) {
                self.call = None;
            }
            return;
        }
        if c.turn != Turn::Off && matches!(self.call, Some((false, _))) {
            self.call = None;
        }
        if c.local {
            if on {
                self.call = Some((true, c.spec.clone()));
            } else if c.turn == Turn::Off && matches!(self.call, Some((true, _))) {
                self.call = None;
            }
        }
        if let Some(tracer) = c.meta {
            if on {
                self.meta = Some(Meta {
                    spec: c.spec.clone(),
                    tracer,
                });
            } else if c.turn == Turn::Off {
                self.meta = None;
            }
        }
        if c.count {
            match (c.turn, &self.count) {
                (Turn::Off, _) => self.count = None,
                (Turn::On, None) => self.count = Some(Arc::new(Count::new())),
                (Turn::Pause, Some(n)) => n.active.store(false, Ordering::Relaxed),
                (Turn::On | Turn::Restart, Some(n)) => {
                    n.n.store(0, Ordering::Relaxed);
                    n.active.store(true, Ordering::Relaxed);
                }
                (Turn::Pause | Turn::Restart, None) => {}
            }
        }
        if c.time {
            match (c.turn, &self.time) {
                (Turn::Off, _) => self.time = None,
                (Turn::On, None) => self.time = Some(Arc::new(Times::new())),
                (Turn::Pause, Some(t)) => t.active.store(false, Ordering::Relaxed),
                (Turn::On | Turn::Restart, Some(t)) => {
                    t.of.lock().clear();
                    t.active.store(true, Ordering::Relaxed);
                }
                (Turn::Pause | Turn::Restart, None) => {}
            }
        }
    }
}

/// On, off, or what counters do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// `true`, or a specification.
    On,
    /// `false`.
    Off,
    /// `restart`.
    Restart,
    /// `pause`.
    Pause,
}

/// A call of `trace_pattern`.
#[derive(Clone, Debug)]
pub struct Change {
    /// On or off.
    pub turn: Turn,
    /// Calls by export only.
    pub global: bool,
    /// `local`.
    pub local: bool,
    /// `meta`, with its tracer.
    pub meta: Option<Word>,
    /// `call_count`.
    pub count: bool,
    /// `call_time`.
    pub time: bool,
    /// Which calls.
    pub spec: Option<Arc<Spec>>,
}

/// Which functions; `None` is any.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Module.
    pub module: Option<Atom>,
    /// Function.
    pub function: Option<Atom>,
    /// Arity.
    pub arity: Option<u32>,
}

impl Target {
    fn names(&self, f: Atom, a: u32) -> bool {
        self.function.is_none_or(|n| n == f) && self.arity.is_none_or(|n| n == a)
    }
}

/// What one session does at one breakpoint in one namespace.
#[derive(Debug)]
struct Said {
    session: Arc<Session>,
    namespace: u32,
    what: What,
}

/// A breakpoint.
#[derive(Debug)]
pub struct Point {
    /// The function.
    pub mfa: Mfa,
    /// What stood in the word, or where the detour leads to.
    pub original: usize,
    entries: Mutex<Vec<Said>>,
}

impl Point {
    fn new(mfa: Mfa, original: usize) -> Point {
        Point {
            mfa,
            original,
            entries: Mutex::default(),
        }
    }
    /// What is to be done for a process of a namespace.
    pub(super) fn found(&self, namespace: u32) -> Vec<(Arc<Session>, What)> {
        let entries = self.entries.lock();
        let here = entries
            .iter()
            .filter(|e| e.namespace == namespace && !e.session.is_over());
        here.map(|e| (e.session.clone(), e.what.clone())).collect()
    }
    /// What a session does.
    fn of(&self, session: &Session, namespace: u32) -> What {
        let entries = self.entries.lock();
        let mut all = entries.iter();
        all.find(|e| e.session.id == session.id && e.namespace == namespace)
            .map(|e| e.what.clone())
            .unwrap_or_default()
    }
    /// Changes what a session does; true when nothing is left to be done.
    fn change(&self, session: &Arc<Session>, namespace: u32, f: impl FnOnce(&mut What)) -> bool {
        let mut entries = self.entries.lock();
        let at = entries
            .iter()
            .position(|e| e.session.id == session.id && e.namespace == namespace);
        let mut what = at.map_or_else(What::default, |i| std::mem::take(&mut entries[i].what));
        f(&mut what);
        match (at, what.is_empty()) {
            (Some(i), true) => drop(entries.remove(i)),
            (Some(i), false) => entries[i].what = what,
            (None, false) => entries.push(Said {
                session: session.clone(),
                namespace,
                what,
            }),
            (None, true) => {}
        }
        entries.is_empty()
    }
    fn keep(&self, f: impl Fn(&Session, u32) -> bool) -> bool {
        let mut entries = self.entries.lock();
        entries.retain(|e| f(&e.session, e.namespace));
        entries.is_empty()
    }
    /// A meta tracer has died: there is nobody to tell any more.
    pub(super) fn forget_meta(&self, session: &Arc<Session>, namespace: u32) {
        self.change(session, namespace, |w| {
            if let Some(m) = &mut w.meta {
                m.tracer = Word::NIL;
            }
        });
    }
}

/// A detour in one namespace.
#[derive(Debug)]
struct Detour {
    at: usize,
    point: Arc<Point>,
    native: Option<&'static NativeEntry>,
}

/// All breakpoints of a VM.
#[derive(Debug, Default)]
pub struct Breaks {
    entries: BreakTable<Point>,
    detours: RwLock<HashMap<(u32, ExportId), Detour>>,
    /// Positions of detours that were made once: a process may be on its way to one.
    positions: Mutex<HashMap<ExportId, usize>>,
    /// Natives whose calls are rerouted, and for how many detours.
    rerouted: Mutex<HashMap<usize, (&'static NativeEntry, usize)>>,
    /// Sessions that say something of modules to come.
    on_load: Mutex<Vec<std::sync::Weak<Session>>>,
    /// Whether there was ever a breakpoint: only then are there frames of tracing on stacks.
    used: AtomicBool,
}

unsafe fn word<'a>(at: CodePos) -> &'a AtomicUsize {
    // The entry word of a function: aligned, and alive as long as its image.
    &*at.cast::<AtomicUsize>()
}

impl Breaks {
    /// Whether there was ever a breakpoint.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
    /// The breakpoint whose trap was met at `at`, or what the word is by now.
    ///
    /// # Safety
    /// `at` is the entry of a function whose image is alive.
    pub(crate) unsafe fn find(&self, at: CodePos) -> Found<Point> {
        self.entries.find(at as usize, word(at))
    }
    /// The breakpoint of a detour.
    pub(crate) fn detour(&self, namespace: u32, export: ExportId) -> Option<Arc<Point>> {
        let d = self.detours.read().unwrap_or_else(|e| e.into_inner());
        d.get(&(namespace, export)).map(|d| d.point.clone())
    }
    /// An image was made: its calls of natives with breakpoints are rerouted.
    pub(crate) fn emitted(
        &self,
        engine: &dyn crate::engine::Engine,
        code: &crate::engine::Emitted,
    ) {
        if !self.was_used() {
            return;
        }
        if let Some(b) = engine.breakpoints() {
            for (native, _) in self.rerouted.lock().values() {
                b.reroute(code, native, true);
            }
        }
    }
    fn reroute(
        &self,
        table: &ModuleTable,
        b: &dyn Breakpoints,
        native: &'static NativeEntry,
        on: bool,
    ) {
        let key = std::ptr::from_ref(native) as usize;
        let mut rerouted = self.rerouted.lock();
        let n = &mut rerouted.entry(key).or_insert((native, 0)).1;
        let first_or_last = if on {
            *n += 1;
            *n == 1
        } else {
            *n = n.saturating_sub(1);
            *n == 0
        };
        if *n == 0 {
            rerouted.remove(&key);
        }
        if first_or_last {
            let ranges = &table.server().ranges;
            ranges.each(|image| b.reroute(&image.emitted, native, on));
        }
    }
    fn change_entry(
        &self,
        b: &dyn Breakpoints,
        at: CodePos,
        mfa: Mfa,
        session: &Arc<Session>,
        namespace: u32,
        adds: bool,
        f: impl FnOnce(&mut What),
    ) {
        let key = at as usize;
        // SAFETY: the caller holds the instance, which keeps the image.
        let word = unsafe { word(at) };
        let point = match self.entries.get(key) {
            Some(p) => p,
            None if adds => self
                .entries
                .install(key, word, b.trap(), |original| Point::new(mfa, original)),
            None => return,
        };
        if point.change(session, namespace, f) {
            self.entries.remove(key, word, |p| p.original);
        }
    }
    fn change_detour(
        &self,
        table: &ModuleTable,
        b: &dyn Breakpoints,
        export: ExportId,
        native: Option<&'static NativeEntry>,
        mfa: Mfa,
        session: &Arc<Session>,
        adds: bool,
        f: impl FnOnce(&mut What),
    ) {
        let key = (table.namespace, export);
        let mut detours = self.detours.write().unwrap_or_else(|e| e.into_inner());
        if let Entry::Vacant(place) = detours.entry(key) {
            if !adds {
                return;
            }
            let at = *self
                .positions
                .lock()
                .entry(export)
                .or_insert_with(|| b.detour(export, mfa.2) as usize);
            let real = table.export(export) as usize;
            let point = Arc::new(Point::new(mfa, real));
            place.insert(Detour { at, point, native });
            table.put_export(export, at as CodePos);
            if let Some(n) = native {
                self.reroute(table, b, n, true);
            }
        }
        if let Some(d) = detours.get(&key)
            && d.point.change(session, table.namespace, f)
        {
            Self::take_back(table, export, d);
            if let Some(n) = d.native {
                self.reroute(table, b, n, false);
            }
            detours.remove(&key);
        }
    }
    fn take_back(table: &ModuleTable, export: ExportId, d: &Detour) {
        // Other code may have come in its place.
        if table.export(export) as usize == d.at {
            table.put_export(export, d.point.original as CodePos);
        }
    }

    /// `trace_pattern` of functions: how many there were. `None` when the engine has no breakpoints.
    pub fn set(
        &self,
        table: &ModuleTable,
        session: &Arc<Session>,
        target: Target,
        change: &Change,
    ) -> Option<usize> {
        let b = table.server().engine.breakpoints()?;
        self.used.store(true, Ordering::Relaxed);
        let mut n = 0;
        let natives = self.natives(table, target);
        for instance in table.instances(target.module) {
            n += self.set_in(table, b, session, &instance, target, change, &natives);
        }
        let adds = change.turn == Turn::On;
        for (mfa, native) in &natives {
            let Some(id) = table.server().tables.exports.lookup(mfa.0, mfa.1, mfa.2) else {
                continue;
            };
            n += 1;
            self.change_detour(table, b, id, Some(native), *mfa, session, adds, |w| {
                w.apply(change);
            });
        }
        Some(n)
    }
    /// Natives of a target, by name.
    fn natives(&self, table: &ModuleTable, target: Target) -> Vec<(Mfa, &'static NativeEntry)> {
        let atoms = &table.server().tables.atoms;
        let text = |a: Option<Atom>| a.map(|a| atoms.text(a));
        let (module, function) = (text(target.module), text(target.function));
        table
            .native_rows()
            .filter(|e| {
                module.is_none_or(|m| m == e.module)
                    && function.is_none_or(|f| f == e.function)
                    && target.arity.is_none_or(|a| a == u32::from(e.arity))
            })
            .filter_map(|e| {
                let (m, f) = (atoms.lookup(e.module)?, atoms.lookup(e.function)?);
                Some(((m, f, u32::from(e.arity)), e))
            })
            .collect()
    }
    fn set_in(
        &self,
        table: &ModuleTable,
        b: &dyn Breakpoints,
        session: &Arc<Session>,
        instance: &Instance,
        target: Target,
        change: &Change,
        natives: &[(Mfa, &'static NativeEntry)],
    ) -> usize {
        let image = &instance.image;
        let l = &image.lowered;
        let on = change.turn == Turn::On;
        let is_native = |f: Atom, a: u32| natives.iter().any(|n| n.0 == (l.module, f, a));
        let mut n = 0;
        for (f, a, _) in &l.exports {
            if !target.names(*f, *a) || is_native(*f, *a) {
                continue;
            }
            if (l.module, *f, *a) == (atoms::ERLANG, atoms::APPLY, 3) {
                // Engines go on at the function: nobody calls it.
                n += usize::from(change.global);
                continue;
            }
            let Some(id) = table.server().tables.exports.lookup(l.module, *f, *a) else {
                continue;
            };
            if change.global {
                n += 1;
            } else if change.turn == Turn::Off {
                continue;
            }
            let mfa = (l.module, *f, *a);
            let adds = change.global && on;
            self.change_detour(table, b, id, None, mfa, session, adds, |w| {
                if change.global {
                    w.apply(change);
                } else {
                    // Breakpoints inside take the place of global ones.
                    w.call = None;
                }
            });
        }
        for f in &l.functions {
            if !target.names(f.name, f.arity) || is_native(f.name, f.arity) {
                continue;
            }
            let at = image.label(f.entry);
            if at.is_null() {
                continue;
            }
            let mfa = (l.module, f.name, f.arity);
            let namespace = table.namespace;
            if !change.global {
                n += 1;
                self.change_entry(b, at, mfa, session, namespace, on, |w| w.apply(change));
            } else if on {
                self.change_entry(b, at, mfa, session, namespace, false, |w| {
                    *w = What::default();
                });
            }
        }
        n
    }
    /// `trace_pattern(on_load, ...)`.
    pub fn set_on_load(&self, session: &Arc<Session>, change: &Change) {
        session.add_on_load(change);
        let mut all = self.on_load.lock();
        all.retain(|s| s.strong_count() > 0 && s.as_ptr() != Arc::as_ptr(session));
        all.push(Arc::downgrade(session));
    }
    /// What a session does at calls of a function; `None` when there is no such function.
    pub fn info(&self, table: &ModuleTable, session: &Session, mfa: Mfa) -> Option<What> {
        let mut exists = false;
        if let Some(id) = table.server().tables.exports.lookup(mfa.0, mfa.1, mfa.2) {
            exists = !table.export(id).is_null();
            if let Some(p) = self.detour(table.namespace, id) {
                let what = p.of(session, table.namespace);
                if !what.is_empty() {
                    return Some(what);
                }
            }
        }
        for instance in table.instances(Some(mfa.0)) {
            for f in &instance.image.lowered.functions {
                if (f.name, f.arity) != (mfa.1, mfa.2) {
                    continue;
                }
                exists = true;
                let at = instance.image.label(f.entry) as usize;
                if let Some(p) = self.entries.get(at) {
                    return Some(p.of(session, table.namespace));
                }
            }
        }
        exists.then(What::default)
    }
    /// Takes back everything that a session does.
    pub fn forget(&self, table: &ModuleTable, session: &Session) {
        self.sweep(table, |s, namespace| {
            s.id != session.id || namespace != table.namespace
        });
    }
    /// Takes out what `keep` does not want, and breakpoints at which nothing is left to be done.
    fn sweep(&self, table: &ModuleTable, keep: impl Fn(&Session, u32) -> bool) {
        if !self.was_used() {
            return;
        }
        for (key, point) in self.entries.all() {
            if point.keep(&keep) {
                // SAFETY: a breakpoint is removed before its image goes.
                let word = unsafe { word(key as CodePos) };
                self.entries.remove(key, word, |p| p.original);
            }
        }
        let mut detours = self.detours.write().unwrap_or_else(|e| e.into_inner());
        let b = table.server().engine.breakpoints();
        detours.retain(|(namespace, export), d| {
            if *namespace != table.namespace || !d.point.keep(&keep) {
                return true;
            }
            Self::take_back(table, *export, d);
            if let (Some(n), Some(b)) = (d.native, b) {
                self.reroute(table, b, n, false);
            }
            false
        });
    }
    /// A module of a namespace has other current code (`now`) than before (`before`), or none. The caller has set the export slots, and
    /// keeps others from doing so.
    pub(crate) fn module_changed(
        &self,
        table: &ModuleTable,
        module: Atom,
        before: Option<&Instance>,
        now: Option<&Instance>,
    ) {
        if self.was_used() {
            if let Some(before) = before {
                for (key, point) in self.entries.all() {
                    if before.image.contains(key) && point.keep(|_, n| n != table.namespace) {
                        // SAFETY: the image is alive: the caller holds the instance.
                        let word = unsafe { word(key as CodePos) };
                        self.entries.remove(key, word, |p| p.original);
                    }
                }
            }
            let mut detours = self.detours.write().unwrap_or_else(|e| e.into_inner());
            detours.retain(|(namespace, export), d| {
                if *namespace != table.namespace || d.point.mfa.0 != module {
                    return true;
                }
                match d.native {
                    // A native stays whatever code its module has.
                    Some(_) => {
                        table.put_export(*export, d.at as CodePos);
                        true
                    }
                    None => false,
                }
            });
        }
        let Some(now) = now else {
            return;
        };
        let sessions: Vec<Arc<Session>> = {
            let all = self.on_load.lock();
            all.iter().filter_map(std::sync::Weak::upgrade).collect()
        };
        for session in &sessions {
            let changes = session.on_load();
            if changes.is_empty() || session.is_over() {
                continue;
            }
            let Some(b) = table.server().engine.breakpoints() else {
                return;
            };
            self.used.store(true, Ordering::Relaxed);
            let target = Target {
                module: Some(module),
                function: None,
                arity: None,
            };
            let natives = self.natives(table, target);
            for change in &changes {
                self.set_in(table, b, session, now, target, change, &natives);
            }
        }
    }
}
