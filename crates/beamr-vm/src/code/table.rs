//! The modules of one namespace.
//!
//! Code reads two arrays without locks: `exports` by export id and `instances` by image number. They are written
//! under the lock of the module map, before (instances) and after (exports) an instance becomes current. A
//! native keeps its export slot whatever modules are loaded or deleted.
//!
//! Making several modules current is one critical section: no other load or purge comes between,
//! but a process that runs meanwhile may see the export of one module before that of another.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use beamr_abi::{NativeEntry, NativeTable};
use beamr_term::{Atom, ExportId, ExportTable, TableFull, Word, atoms};

use super::array::PointerArray;
use super::image::{Image, Instance, Trust};
use super::loader::ModuleLoader;
use super::on_load;
use super::server::{Capabilities, CodeServer, LoadError, MAX_IMAGES};
use crate::engine::{CodePos, Fixed};

/// Why images did not become current.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FinishError {
    /// Modules that still have old code.
    #[error("old code of {} modules is not purged", .0.len())]
    NotPurged(Vec<Atom>),
    /// Modules with an `on_load` function among several.
    #[error("{} modules have on_load functions and are not alone", .0.len())]
    OnLoad(Vec<Atom>),
    /// Modules that stand in the list again, once for each time.
    #[error("{} modules stand in the list again", .0.len())]
    Duplicate(Vec<Atom>),
    /// No room for another `M:F/A`.
    #[error(transparent)]
    Exports(#[from] TableFull),
}

/// Modules that became current, and those whose `on_load` function must run first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Finished {
    /// These wait for [`ModuleTable::finish_on_load`].
    pub on_load: Vec<Atom>,
}

/// Deleting or loading met old code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the module has old code")]
pub struct NotPurged;

/// Whether the module of a call is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ensured {
    /// Its code is current.
    Loaded,
    /// Its `on_load` function has to run.
    OnLoad,
    /// There is no such module.
    Missing,
}

/// What the one who wants to run an `on_load` function may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingOnLoad {
    /// Run it: this export leads to it.
    Run(ExportId),
    /// Another process runs it.
    Busy,
    /// Nothing is pending (any more).
    None,
}

#[derive(Debug, Default)]
struct Modules {
    current: Option<Arc<Instance>>,
    old: Option<Arc<Instance>>,
    pending: Option<Arc<Instance>>,
    runner: Option<Word>,
    /// Code whose `on_load` function failed, until its purge begins.
    unloaded: Option<Arc<Instance>>,
    /// Old code that stands back while that is purged in its place.
    set_back: Option<Arc<Instance>>,
    /// The purge of the old code has begun.
    purging: bool,
    /// Processes that wait for its end.
    waiting: Vec<Word>,
    /// Whose call ran an `on_load` function that failed: that call finds no function, and does not load again.
    failed: Option<Word>,
}

type Map = HashMap<Atom, Modules>;

/// See the module.
pub struct ModuleTable {
    /// The namespace's number.
    pub namespace: u32,
    server: Arc<CodeServer>,
    granted: Capabilities,
    natives: Arc<NativeTable>,
    exports: PointerArray<u64>,
    nothing: std::sync::OnceLock<PointerArray<u64>>,
    instances: PointerArray<()>,
    modules: RwLock<Map>,
    /// Held while a module is loaded on first call, so that it is loaded once.
    loading: Mutex<()>,
    loader: Option<Arc<dyn ModuleLoader>>,
    trusts_binaries: AtomicBool,
}

impl std::fmt::Debug for ModuleTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModuleTable")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl ModuleTable {
    /// A namespace without modules, with the natives that it may use. With a loader, modules are loaded on first call.
    pub fn new(
        server: Arc<CodeServer>,
        namespace: u32,
        granted: Capabilities,
        loader: Option<Arc<dyn ModuleLoader>>,
    ) -> Result<ModuleTable, LoadError> {
        let natives = server.natives_for(granted);
        let table = ModuleTable {
            namespace,
            granted,
            natives,
            exports: PointerArray::new(ExportTable::CAPACITY as usize),
            nothing: std::sync::OnceLock::new(),
            instances: PointerArray::new(MAX_IMAGES as usize),
            modules: RwLock::default(),
            loading: Mutex::default(),
            loader,
            trusts_binaries: AtomicBool::new(false),
            server,
        };
        let s = &table.server;
        for e in table.natives.iter() {
            let stub = s.engine.native_stub(e);
            let id = table.native_id(e)?;
            table.set_export(id, stub);
        }
        let ids = &s.tables.exports;
        for apply in [
            on_load::apply_export(&s.tables),
            ids.id(atoms::ERLANG, atoms::APPLY, 3),
        ] {
            let id = apply.map_err(FinishError::from)?;
            table.set_export(id, table.default_export(id));
        }
        Ok(table)
    }
    fn native_id(&self, e: &NativeEntry) -> Result<ExportId, LoadError> {
        let t = &self.server.tables;
        let atom = |text: &str| {
            t.atoms
                .intern(text)
                .map_err(|e| LoadError::Invalid(format!("native {text}: {e}")))
        };
        let (m, f) = (atom(e.module)?, atom(e.function)?);
        Ok(t.exports
            .id(m, f, u32::from(e.arity))
            .map_err(FinishError::from)?)
    }
    /// The VM's code.
    pub fn server(&self) -> &Arc<CodeServer> {
        &self.server
    }
    /// What natives of this namespace may do.
    pub fn granted(&self) -> Capabilities {
        self.granted
    }
    /// Whether modules are loaded on first call.
    pub fn loads_on_call(&self) -> bool {
        self.loader.is_some()
    }
    /// How files are taken that programs of the namespace load themselves (`code:load_binary/3`): untrusted unless said otherwise.
    pub fn binary_trust(&self) -> Trust {
        if self.trusts_binaries.load(Ordering::Relaxed) {
            Trust::Trusted
        } else {
            Trust::Untrusted
        }
    }
    /// Sets what [`ModuleTable::binary_trust`] gives.
    pub fn set_binary_trust(&self, trust: Trust) {
        let yes = trust == Trust::Trusted;
        self.trusts_binaries.store(yes, Ordering::Relaxed);
    }
    /// For `Ctx::exports`.
    pub fn exports_ptr(&self) -> *const AtomicPtr<u64> {
        self.exports.as_ptr()
    }
    /// For `Ctx::exports` of a process whose external calls are all to take the way of undefined ones: an array that
    /// defines nothing (and takes address space only).
    pub fn no_exports(&self) -> *const AtomicPtr<u64> {
        self.nothing
            .get_or_init(|| PointerArray::new(ExportTable::CAPACITY as usize))
            .as_ptr()
    }
    /// For `Ctx::instances`.
    pub fn instances_ptr(&self) -> *const AtomicPtr<()> {
        self.instances.as_ptr()
    }
    /// The position that an export leads to; null when it is not defined here.
    pub fn export(&self, id: ExportId) -> CodePos {
        self.exports
            .as_slice()
            .get(id as usize)
            .map_or(std::ptr::null(), |s| s.load(Ordering::Acquire).cast_const())
    }
    fn set_export(&self, id: ExportId, to: CodePos) {
        if let Some(slot) = self.exports.as_slice().get(id as usize) {
            slot.store(to.cast_mut(), Ordering::Release);
        }
    }
    /// Puts a position into an export slot: a detour of a breakpoint, or what it took the place of.
    pub(crate) fn put_export(&self, id: ExportId, to: CodePos) {
        self.set_export(id, to);
    }
    /// The current instances of one module, or of all.
    pub(crate) fn instances(&self, module: Option<Atom>) -> Vec<Arc<Instance>> {
        let map = self.map();
        match module {
            Some(m) => map
                .get(&m)
                .and_then(|m| m.current.clone())
                .into_iter()
                .collect(),
            None => map.values().filter_map(|m| m.current.clone()).collect(),
        }
    }
    /// The natives that the namespace may use.
    pub(crate) fn native_rows(&self) -> impl Iterator<Item = &'static NativeEntry> + '_ {
        self.natives.iter()
    }
    fn set_instance(&self, image: u32, to: *const Instance) {
        if let Some(slot) = self.instances.as_slice().get(image as usize) {
            slot.store(to.cast_mut().cast(), Ordering::Release);
        }
    }
    /// The position of `M:F/A`; null when it is not defined here.
    pub fn find(&self, module: Atom, function: Atom, arity: u32) -> CodePos {
        match self.server.tables.exports.lookup(module, function, arity) {
            Some(id) => self.export(id),
            None => std::ptr::null(),
        }
    }
    /// The native of `M:F/A` that this namespace may use.
    pub fn native(&self, module: Atom, function: Atom, arity: u32) -> Option<&'static NativeEntry> {
        let atoms = &self.server.tables.atoms;
        let arity = u8::try_from(arity).ok()?;
        self.natives
            .get(atoms.text(module), atoms.text(function), arity)
    }
    fn map(&self) -> std::sync::RwLockReadGuard<'_, Map> {
        self.modules.read().unwrap_or_else(|e| e.into_inner())
    }
    fn map_mut(&self) -> std::sync::RwLockWriteGuard<'_, Map> {
        self.modules.write().unwrap_or_else(|e| e.into_inner())
    }
    /// The current instance of a module.
    pub fn current(&self, module: Atom) -> Option<Arc<Instance>> {
        self.map().get(&module)?.current.clone()
    }
    /// The old instance of a module.
    pub fn old(&self, module: Atom) -> Option<Arc<Instance>> {
        self.map().get(&module)?.old.clone()
    }
    /// Modules with current code, in no particular order.
    pub fn loaded(&self) -> Vec<Atom> {
        let map = self.map();
        map.iter()
            .filter(|m| m.1.current.is_some())
            .map(|m| *m.0)
            .collect()
    }
    /// `erlang:module_loaded/1`.
    pub fn is_loaded(&self, module: Atom) -> bool {
        self.map().get(&module).is_some_and(|m| m.current.is_some())
    }

    /// The image of a module file for this namespace. It is not current before [`ModuleTable::finish`].
    pub fn prepare(
        &self,
        bytes: &[u8],
        trust: Trust,
        expect: Option<&str>,
    ) -> Result<Arc<Image>, LoadError> {
        // One namespace never holds an image twice: current and old code must be told apart.
        let free = |image: &Arc<Image>| {
            let map = self.map();
            map.get(&image.module()).is_none_or(|m| {
                let held = [&m.current, &m.old, &m.pending];
                !held
                    .iter()
                    .any(|h| h.as_ref().is_some_and(|i| i.image.id == image.id))
            })
        };
        self.server.image(bytes, trust, self.granted, expect, &free)
    }
    /// Makes images current, all or none. The code that was current becomes old. A single module with an `on_load` function
    /// waits for [`ModuleTable::finish_on_load`].
    pub fn finish(&self, images: &[Arc<Image>]) -> Result<Finished, FinishError> {
        let mut map = self.map_mut();
        let with = |f: &dyn Fn(&Arc<Image>) -> bool| -> Vec<Atom> {
            let hits = images.iter().filter(|i| f(i));
            hits.map(|i| i.module()).collect()
        };
        let on_load = with(&|i| i.lowered.on_load.is_some());
        if images.len() > 1 && !on_load.is_empty() {
            return Err(FinishError::OnLoad(on_load));
        }
        let mut seen = HashSet::new();
        let again: Vec<Atom> = images
            .iter()
            .map(|i| i.module())
            .filter(|m| !seen.insert(*m))
            .collect();
        if !again.is_empty() {
            return Err(FinishError::Duplicate(again));
        }
        let not_purged = with(&|i| {
            map.get(&i.module())
                .is_some_and(|m| m.old.is_some() && m.current.is_some())
        });
        if !not_purged.is_empty() {
            return Err(FinishError::NotPurged(not_purged));
        }
        for image in images {
            self.export_ids(image)?;
        }
        let funs = &self.server.tables.funs;
        for image in images {
            let instance = Arc::new(Instance::new(image.clone(), self.namespace, funs));
            self.set_instance(image.id, Arc::as_ptr(&instance));
            let m = map.entry(image.module()).or_default();
            if on_load.is_empty() {
                self.make_current(m, instance)?;
            } else {
                let id = self.on_load_id(image.module())?;
                // The funs of the module are usable in its `on_load` function.
                instance.bind_funs();
                self.set_export(id, instance.on_load());
                if let Some(before) = m.pending.replace(instance) {
                    self.drop_instance(&before);
                }
                m.runner = None;
            }
        }
        Ok(Finished { on_load })
    }
    fn export_ids(&self, image: &Image) -> Result<Vec<(ExportId, CodePos)>, TableFull> {
        let l = &image.lowered;
        let mut out = Vec::with_capacity(l.exports.len());
        for (function, arity, label) in &l.exports {
            let id = self.server.tables.exports.id(l.module, *function, *arity)?;
            out.push((id, image.label(*label)));
        }
        Ok(out)
    }
    /// The slot of an export that no module may define: the native's stub, if there is one.
    fn default_export(&self, id: ExportId) -> CodePos {
        let Some((m, f, a)) = self.server.tables.exports.mfa(id) else {
            return std::ptr::null();
        };
        let engine = &self.server.engine;
        match self.native(m, f, a) {
            Some(e) => engine.native_stub(e),
            // `apply/3` is no native: the engine itself goes on at the function.
            None if f == atoms::APPLY && on_load::is_apply(m, a) => engine.fixed(Fixed::Apply),
            None => std::ptr::null(),
        }
    }
    fn make_current(&self, m: &mut Modules, instance: Arc<Instance>) -> Result<(), FinishError> {
        let new = self.export_ids(&instance.image)?;
        instance.bind_funs();
        for (id, at) in &new {
            let native = self.default_export(*id);
            self.set_export(*id, if native.is_null() { *at } else { native });
        }
        let before = m.current.replace(instance.clone());
        let breaks = &self.server.breaks;
        if let Some(before) = before {
            for (id, _) in self.export_ids(&before.image)? {
                if !new.iter().any(|n| n.0 == id) {
                    self.set_export(id, self.default_export(id));
                }
            }
            breaks.module_changed(
                self,
                instance.image.module(),
                Some(&before),
                Some(&instance),
            );
            m.old = Some(before);
        } else {
            breaks.module_changed(self, instance.image.module(), None, Some(&instance));
        }
        Ok(())
    }
    fn on_load_id(&self, module: Atom) -> Result<ExportId, TableFull> {
        let exports = &self.server.tables.exports;
        exports.id(module, atoms::ON_LOAD, on_load::HIDDEN_ARITY)
    }
    /// Whether any native of this name belongs to the namespace (its `load_nif` then succeeds).
    pub fn has_natives_of(&self, module: &str) -> bool {
        self.natives.iter().any(|e| e.module == module)
    }
    /// Who asks may run the pending `on_load` function of a module (`erlang:call_on_load_function/1` traps to the export).
    pub fn begin_on_load(&self, module: Atom, pid: Word) -> PendingOnLoad {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return PendingOnLoad::None;
        };
        if m.pending.is_none() {
            return PendingOnLoad::None;
        }
        match m.runner {
            Some(p) if p != pid => PendingOnLoad::Busy,
            _ => {
                m.runner = Some(pid);
                match self.on_load_id(module) {
                    Ok(id) => PendingOnLoad::Run(id),
                    Err(_) => PendingOnLoad::None,
                }
            }
        }
    }
    /// Whether an `on_load` function is pending, and who runs it.
    pub fn pending_on_load(&self, module: Atom) -> Option<Option<Word>> {
        let map = self.map();
        let m = map.get(&module)?;
        m.pending.as_ref().map(|_| m.runner)
    }
    /// Ends a pending `on_load`: makes the module current, or drops it. False when none was pending.
    pub fn finish_on_load(&self, module: Atom, keep: bool) -> Result<bool, FinishError> {
        let ended = self.end_on_load(module, keep)?;
        if ended && !keep {
            // Nobody purges it: a process that still runs it keeps it in memory.
            let mut map = self.map_mut();
            let dropped = map.get_mut(&module).and_then(|m| m.unloaded.take());
            if let Some(instance) = dropped {
                self.drop_instance(&instance);
            }
        }
        Ok(ended)
    }
    /// The same; code that is not kept waits for [`ModuleTable::begin_purge_on_load`].
    pub fn end_on_load(&self, module: Atom, keep: bool) -> Result<bool, FinishError> {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return Ok(false);
        };
        if keep && m.pending.is_some() && m.current.is_some() && m.old.is_some() {
            return Err(FinishError::NotPurged(vec![module]));
        }
        let Some(instance) = m.pending.take() else {
            return Ok(false);
        };
        let runner = m.runner.take();
        if let Ok(id) = self.on_load_id(module) {
            self.set_export(id, std::ptr::null());
        }
        if keep {
            instance.ready.store(true, Ordering::Release);
            self.make_current(m, instance)?;
        } else {
            m.failed = runner;
            instance.unbind_funs();
            if let Some(before) = m.unloaded.replace(instance) {
                self.drop_instance(&before);
            }
        }
        Ok(true)
    }
    /// Whether the `on_load` function that `pid` ran for its call has just failed; says so once.
    pub fn take_failed(&self, module: Atom, pid: Word) -> bool {
        let failed = |m: &Modules| m.failed == Some(pid);
        if !self.map().get(&module).is_some_and(failed) {
            return false;
        }
        let mut map = self.map_mut();
        map.get_mut(&module)
            .is_some_and(|m| m.failed.take().is_some())
    }
    fn drop_instance(&self, instance: &Arc<Instance>) {
        instance.unbind_funs();
        // The instance stays in its array until the image goes: should the code still run, it finds what it needs.
        self.server.bury(instance.image.clone());
        self.server.keep_instance(instance.clone());
    }
    /// `erlang:delete_module/1`: current code becomes old. False when the module has no current code.
    pub fn delete(&self, module: Atom) -> Result<bool, NotPurged> {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return Ok(false);
        };
        if m.current.is_none() {
            return Ok(false);
        }
        if m.old.is_some() {
            return Err(NotPurged);
        }
        if let Some(instance) = m.current.take() {
            for (function, arity, _) in &instance.image.lowered.exports {
                let exports = &self.server.tables.exports;
                if let Some(id) = exports.lookup(module, *function, *arity) {
                    self.set_export(id, self.default_export(id));
                }
            }
            let breaks = &self.server.breaks;
            breaks.module_changed(self, module, Some(&instance), None);
            m.old = Some(instance);
        }
        Ok(true)
    }
    /// Begins the purge of old code: calls of its funs wait from now on, so that no process gets into it any more. False when
    /// there is none.
    pub fn begin_purge(&self, module: Atom) -> bool {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return false;
        };
        let Some(old) = &m.old else {
            return false;
        };
        m.purging = true;
        old.unbind_funs();
        true
    }
    /// The same for code whose `on_load` function failed; other old code of the module stands back meanwhile.
    pub fn begin_purge_on_load(&self, module: Atom) -> bool {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return false;
        };
        let Some(instance) = m.unloaded.take() else {
            return false;
        };
        m.purging = true;
        instance.unbind_funs();
        m.set_back = m.old.replace(instance);
        true
    }
    /// The old code stays: its funs work again.
    pub fn abort_purge(&self, module: Atom) {
        let mut map = self.map_mut();
        if let Some(m) = map.get_mut(&module)
            && std::mem::take(&mut m.purging)
            && let Some(old) = &m.old
        {
            old.rebind_funs();
        }
    }
    /// Notes a process that waits for the end of a purge; false when it is over.
    pub fn await_purge(&self, module: Atom, pid: Word) -> bool {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module).filter(|m| m.purging) else {
            return false;
        };
        m.waiting.push(pid);
        true
    }
    /// The processes that waited for the end of a purge, which is over: whoever ended it resumes them.
    pub fn take_waiting(&self, module: Atom) -> Vec<Word> {
        let mut map = self.map_mut();
        let over = map.get_mut(&module).filter(|m| !m.purging);
        over.map_or_else(Vec::new, |m| std::mem::take(&mut m.waiting))
    }
    /// Whether calls of funs of the module's old code wait for the end of a purge.
    pub fn is_purging(&self, module: Atom) -> bool {
        self.map().get(&module).is_some_and(|m| m.purging)
    }
    /// Takes an instance that is freed out of the array that code reads.
    pub(crate) fn forget(&self, instance: &Arc<Instance>) {
        if let Some(slot) = self.instances.as_slice().get(instance.image.id as usize) {
            let this = Arc::as_ptr(instance).cast_mut().cast();
            let null = std::ptr::null_mut();
            let _ = slot.compare_exchange(this, null, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
    /// Drops old code; false when there was none. Whoever purges has made sure that no process uses it
    /// ([`super::old_code::runs_in`]); should one do so all the same, it goes on in code that is no longer known, and that is
    /// kept as long as it does.
    pub fn purge(&self, module: Atom) -> bool {
        let mut map = self.map_mut();
        let Some(m) = map.get_mut(&module) else {
            return false;
        };
        m.purging = false;
        let Some(old) = m.old.take() else {
            return false;
        };
        m.old = m.set_back.take();
        self.drop_instance(&old);
        true
    }
    /// Loads a module through the namespace's loader unless it is there.
    pub fn ensure_loaded(&self, module: Atom) -> Result<Ensured, LoadError> {
        if let Some(e) = self.state(module) {
            return Ok(e);
        }
        let Some(loader) = &self.loader else {
            return Ok(Ensured::Missing);
        };
        let _one = self.loading.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(e) = self.state(module) {
            return Ok(e);
        }
        let name = self.server.tables.atoms.text(module);
        let Some(file) = loader.find(name)? else {
            return Ok(Ensured::Missing);
        };
        let made = self
            .prepare(&file.bytes, file.trust, Some(name))
            .and_then(|image| Ok(self.finish(&[image])?));
        match made {
            Ok(finished) => {
                loader.loaded(module, &file.path);
                Ok(if finished.on_load.is_empty() {
                    Ensured::Loaded
                } else {
                    Ensured::OnLoad
                })
            }
            Err(e) => {
                loader.failed(name, &file.path, &e);
                Err(e)
            }
        }
    }
    fn state(&self, module: Atom) -> Option<Ensured> {
        let map = self.map();
        let m = map.get(&module)?;
        if m.current.is_some() {
            Some(Ensured::Loaded)
        } else if m.pending.is_some() {
            Some(Ensured::OnLoad)
        } else {
            None
        }
    }
}
