//! The images of a VM and the way from bytes to an image.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, RwLock, Weak};

use beamr_abi::{Capability, NativeEntry, NativeTable};
use beamr_file::{BeamFile, FileError, Module};
use beamr_term::{Build, LiteralArea, LiteralError, Tables, Word, atoms};

use super::image::{Image, ImageKey, Instance, Trust};
use super::on_load;
use crate::engine::{CodePos, Engine, EngineError};
use crate::lower::{LowerEnv, LowerError, LowerFault, Lowered, lower};
use crate::trace::breaks::Breaks;

/// Images that may exist at a time: the size of every namespace's array of instances.
#[cfg(target_pointer_width = "64")]
pub const MAX_IMAGES: u32 = 1 << 17;
/// Images that may exist at a time: the size of every namespace's array of instances.
#[cfg(not(target_pointer_width = "64"))]
pub const MAX_IMAGES: u32 = 1 << 14;

/// Entries of a trace that OTP keeps unless told otherwise (`backtrace_depth`).
pub const DEFAULT_BACKTRACE_DEPTH: usize = 8;

/// Why a module file was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("bad module file: {0}")]
    File(#[from] FileError),
    /// The file of an untrusted module does not hold what it must.
    #[error("the module is not valid: {0}")]
    Invalid(String),
    /// No room for literals.
    #[error(transparent)]
    Literals(#[from] LiteralError),
    /// The VM's own code could not be made.
    #[error(transparent)]
    Trampoline(#[from] on_load::TrampolineError),
    /// An instruction or table cannot be lowered.
    #[error("cannot load: {0}")]
    Lower(#[from] LowerError),
    /// The engine cannot translate it.
    #[error("cannot translate: {0}")]
    Engine(#[from] EngineError),
    /// The file holds another module than asked for.
    #[error("the file holds module {found}, not {expected}")]
    WrongModule {
        /// What was asked for.
        expected: String,
        /// What it holds.
        found: String,
    },
    /// All image numbers are in use.
    #[error("the VM holds {0} images already")]
    TooManyImages(u32),
    /// The loader failed.
    #[error(transparent)]
    Loader(#[from] super::loader::LoaderError),
    /// The module could not be made current.
    #[error(transparent)]
    Finish(#[from] super::table::FinishError),
}

/// Code ranges by address.
#[derive(Debug, Default)]
pub struct Ranges {
    /// (start, end, image number, image), sorted by start. An image takes itself out when it is dropped, so entries
    /// are alive while the lock is held.
    list: RwLock<Vec<(usize, usize, u32, *const Image)>>,
    free_ids: Mutex<(Vec<u32>, u32)>,
}

// SAFETY: the pointers are only followed under the lock, while their images are alive (see `list`).
unsafe impl Send for Ranges {}
// SAFETY: as above.
unsafe impl Sync for Ranges {}

impl Ranges {
    fn take_id(&self) -> Option<u32> {
        let mut ids = self.free_ids.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(id) = ids.0.pop() {
            return Some(id);
        }
        (ids.1 < MAX_IMAGES).then(|| {
            ids.1 += 1;
            ids.1 - 1
        })
    }
    fn give_id(&self, id: u32) {
        let mut ids = self.free_ids.lock().unwrap_or_else(|e| e.into_inner());
        ids.0.push(id);
    }
    fn add(&self, image: &Image) {
        let (start, end) = (image.emitted.start, image.emitted.end);
        let mut list = self.list.write().unwrap_or_else(|e| e.into_inner());
        let i = list.partition_point(|r| r.0 < start);
        list.insert(i, (start, end, image.id, &raw const *image));
    }
    pub(super) fn remove(&self, id: u32, start: usize) {
        {
            let mut list = self.list.write().unwrap_or_else(|e| e.into_inner());
            let i = list.partition_point(|r| r.0 < start);
            // Empty images may share a start.
            if let Some(k) = (i..list.len())
                .take_while(|k| list[*k].0 == start)
                .find(|k| list[*k].2 == id)
            {
                list.remove(k);
            }
        }
        self.give_id(id);
    }
    /// Calls `f` with every image. `f` must not make or drop images.
    pub(crate) fn each(&self, mut f: impl FnMut(&Image)) {
        let list = self.list.read().unwrap_or_else(|e| e.into_inner());
        for r in list.iter() {
            // SAFETY: see the field.
            f(unsafe { &*r.3 });
        }
    }
    /// Calls `f` with the image that the byte at `at` lies in. `f` must not drop images.
    pub fn with<R>(&self, at: usize, f: impl FnOnce(&Image) -> R) -> Option<R> {
        self.view().find(at).map(f)
    }
    /// For several look-ups at once. No image may be dropped by who holds it.
    pub fn view(&self) -> View<'_> {
        View {
            list: self.list.read().unwrap_or_else(|e| e.into_inner()),
            last: 0,
        }
    }
}

/// The code ranges, held in place.
pub struct View<'a> {
    list: std::sync::RwLockReadGuard<'a, Vec<(usize, usize, u32, *const Image)>>,
    /// Where the last look-up ended: neighbours on a stack are often of one module.
    last: usize,
}

impl View<'_> {
    /// The image that the byte at `at` lies in.
    #[inline]
    pub fn find(&mut self, at: usize) -> Option<&Image> {
        let inside = |r: &(usize, usize, u32, *const Image)| r.0 <= at && at < r.1;
        if !self.list.get(self.last).is_some_and(inside) {
            let i = self.list.partition_point(|r| r.0 <= at).checked_sub(1)?;
            if !inside(&self.list[i]) {
                return None;
            }
            self.last = i;
        }
        // SAFETY: see `Ranges::list`; the guard is held for as long as the reference.
        Some(unsafe { &*self.list[self.last].3 })
    }
}

/// Bits of capabilities, as they stand in an [`ImageKey`].
fn capability_bit(c: Capability) -> u8 {
    match c {
        Capability::Pure => 1,
        Capability::ProcessLocal => 2,
        Capability::Clock => 4,
        Capability::Entropy => 8,
        Capability::ExternalIo => 16,
        Capability::Spawn => 32,
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Every capability.
    pub const ALL: Capabilities = Capabilities(63);
    /// None.
    pub const NONE: Capabilities = Capabilities(0);
    /// With one more.
    pub fn with(self, c: Capability) -> Capabilities {
        Capabilities(self.0 | capability_bit(c))
    }
    /// With one less.
    pub fn without(self, c: Capability) -> Capabilities {
        Capabilities(self.0 & !capability_bit(c))
    }
    /// Whether it holds one.
    pub fn contains(self, c: Capability) -> bool {
        self.0 & capability_bit(c) != 0
    }
}

type Known = HashMap<ImageKey, Vec<Weak<Image>>>;

/// The code of a VM.
pub struct CodeServer {
    /// Atoms, funs, export ids, release.
    pub tables: Arc<Tables>,
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// Entries of a trace (`backtrace_depth`).
    pub backtrace_depth: AtomicUsize,
    /// Breakpoints.
    pub breaks: Breaks,
    /// Positions of code.
    pub ranges: Arc<Ranges>,
    natives: Arc<NativeTable>,
    filtered: Mutex<HashMap<u8, Arc<NativeTable>>>,
    images: Mutex<Known>,
    /// Keys of the content hashes, so that no one can prepare two files of one hash.
    hash: [RandomState; 2],
    /// Images that were purged and whose literals some process may still hold.
    graveyard: Mutex<Vec<Arc<Image>>>,
    /// Their instances, which code may still look at for a moment.
    gone: Mutex<Vec<Arc<Instance>>>,
    trampoline: Mutex<Option<Arc<Image>>>,
}

impl std::fmt::Debug for CodeServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeServer")
            .field("engine", &self.engine.name())
            .finish_non_exhaustive()
    }
}

impl CodeServer {
    /// A server without modules.
    pub fn new(
        tables: Arc<Tables>,
        engine: Arc<dyn Engine>,
        natives: Arc<NativeTable>,
    ) -> Result<Arc<CodeServer>, LoadError> {
        let server = Arc::new(CodeServer {
            tables,
            engine,
            backtrace_depth: AtomicUsize::new(DEFAULT_BACKTRACE_DEPTH),
            breaks: Breaks::default(),
            ranges: Arc::default(),
            natives,
            filtered: Mutex::default(),
            images: Mutex::default(),
            hash: [RandomState::new(), RandomState::new()],
            graveyard: Mutex::default(),
            gone: Mutex::default(),
            trampoline: Mutex::default(),
        });
        let lowered = |id| on_load::trampoline(&server.tables, id);
        let image = server.build(0, |id| lowered(id).map_err(LoadError::from))?;
        *server.trampoline.lock().unwrap_or_else(|e| e.into_inner()) = Some(image);
        Ok(server)
    }
    /// The entry of the code that runs a pending `on_load` function: x0 module, x1 function, x2 arguments.
    pub(crate) fn trampoline(&self) -> CodePos {
        let t = self.trampoline.lock().unwrap_or_else(|e| e.into_inner());
        t.as_ref()
            .map_or(std::ptr::null(), |i| i.export(atoms::START, 3))
    }
    /// All natives of the VM's release.
    pub fn natives(&self) -> &Arc<NativeTable> {
        &self.natives
    }
    /// The natives that these capabilities grant.
    pub fn natives_for(&self, granted: Capabilities) -> Arc<NativeTable> {
        if granted == Capabilities::ALL {
            return self.natives.clone();
        }
        let mut filtered = self.filtered.lock().unwrap_or_else(|e| e.into_inner());
        filtered
            .entry(granted.0)
            .or_insert_with(|| {
                Arc::new(
                    self.natives
                        .filtered(|e: &NativeEntry| granted.contains(e.capability)),
                )
            })
            .clone()
    }
    /// The image of a module file; one that exists already when `usable` accepts it. With `expect`, a file of another module is refused.
    pub fn image(
        &self,
        bytes: &[u8],
        trust: Trust,
        granted: Capabilities,
        expect: Option<&str>,
        usable: &dyn Fn(&Arc<Image>) -> bool,
    ) -> Result<Arc<Image>, LoadError> {
        let key = ImageKey {
            content: [self.hash[0].hash_one(bytes), self.hash[1].hash_one(bytes)],
            size: bytes.len(),
            trust,
            natives: granted.0,
        };
        let right_module = |found: &str| match expect {
            Some(e) if e != found => Err(LoadError::WrongModule {
                expected: e.to_owned(),
                found: found.to_owned(),
            }),
            _ => Ok(()),
        };
        let known = {
            let images = self.images.lock().unwrap_or_else(|e| e.into_inner());
            let list = images.get(&key).map_or(&[][..], Vec::as_slice);
            let alive: Vec<Arc<Image>> = list.iter().filter_map(Weak::upgrade).collect();
            alive
        };
        if let Some(image) = known.iter().find(|i| usable(i)) {
            right_module(self.tables.atoms.text(image.module()))?;
            return Ok(image.clone());
        }
        let module = Module::decode(&BeamFile::parse(bytes)?)?;
        right_module(&module.name)?;
        let natives = self.natives_for(granted);
        let image = self.build(bytes.len(), |image_id| {
            let env = LowerEnv {
                tables: &self.tables,
                natives: &natives,
                trusted: trust == Trust::Trusted,
                image_id,
            };
            lower(&module, &env).map_err(|e| match e.what {
                LowerFault::Invalid(_) => LoadError::Invalid(e.to_string()),
                _ => e.into(),
            })
        })?;
        let mut images = self.images.lock().unwrap_or_else(|e| e.into_inner());
        images.retain(|_, l| {
            l.retain(|w| w.strong_count() > 0);
            !l.is_empty()
        });
        images.entry(key).or_default().push(Arc::downgrade(&image));
        Ok(image)
    }
    /// An image of code that was lowered by the VM itself, under no key.
    pub fn image_of(
        &self,
        lowered: impl FnOnce(u32) -> Result<Lowered, LoadError>,
    ) -> Result<Arc<Image>, LoadError> {
        self.build(0, lowered)
    }
    fn build(
        &self,
        file_size: usize,
        lowered: impl FnOnce(u32) -> Result<Lowered, LoadError>,
    ) -> Result<Arc<Image>, LoadError> {
        let Some(id) = self.ranges.take_id() else {
            return Err(LoadError::TooManyImages(MAX_IMAGES));
        };
        let made = lowered(id).and_then(|l| {
            let emitted = self.engine.emit(&l)?;
            let names = file_names(&l.files)?;
            Ok((l, emitted, names))
        });
        let (lowered, emitted, file_names) = match made {
            Ok(m) => m,
            Err(e) => {
                self.ranges.give_id(id);
                return Err(e);
            }
        };
        let image = Arc::new(Image {
            id,
            lowered,
            emitted,
            file_size,
            file_names,
            ranges: self.ranges.clone(),
        });
        self.ranges.add(&image);
        self.breaks.emitted(&*self.engine, &image.emitted);
        Ok(image)
    }
    /// Keeps a purged image: processes may hold its literals.
    pub(super) fn bury(&self, image: Arc<Image>) {
        let mut g = self.graveyard.lock().unwrap_or_else(|e| e.into_inner());
        g.push(image);
    }
    pub(super) fn keep_instance(&self, instance: Arc<Instance>) {
        let mut g = self.gone.lock().unwrap_or_else(|e| e.into_inner());
        g.push(instance);
    }
    /// Takes out the images that were purged and that no namespace uses; whoever takes them frees them when no process
    /// refers to their literals. From now on such an image is not found by its content any more.
    pub(crate) fn take_purged(&self) -> Vec<Arc<Image>> {
        // Who looks for an image by content holds this lock.
        let mut known = self.images.lock().unwrap_or_else(|e| e.into_inner());
        let mut graves = self.graveyard.lock().unwrap_or_else(|e| e.into_inner());
        let gone = self.gone.lock().unwrap_or_else(|e| e.into_inner());
        let mut all = std::mem::take(&mut *graves);
        all.sort_by_key(|i| i.id);
        let (mut out, mut keep) = (Vec::new(), Vec::new());
        while let Some(image) = all.pop() {
            let mut same = vec![image];
            while all.last().is_some_and(|i| i.id == same[0].id) {
                same.extend(all.pop());
            }
            let instances = gone.iter().filter(|i| i.image.id == same[0].id).count();
            if Arc::strong_count(&same[0]) > same.len() + instances {
                keep.extend(same);
                continue;
            }
            known.retain(|_, l| {
                l.retain(|w| !std::ptr::eq(w.as_ptr(), Arc::as_ptr(&same[0])));
                !l.is_empty()
            });
            out.extend(same.pop());
        }
        *graves = keep;
        out
    }
    /// Takes out the purged instances of an image.
    pub(crate) fn take_instances(&self, image: u32) -> Vec<Arc<Instance>> {
        let mut gone = self.gone.lock().unwrap_or_else(|e| e.into_inner());
        let (out, keep) = std::mem::take(&mut *gone)
            .into_iter()
            .partition(|i: &Arc<Instance>| i.image.id == image);
        *gone = keep;
        out
    }
}

/// File names as strings in an area of their own.
fn file_names(files: &[String]) -> Result<(LiteralArea, Vec<Word>), LiteralError> {
    let words = files.iter().map(|f| 2 * f.chars().count()).sum();
    let mut area = LiteralArea::builder(words)?;
    let names = files.iter().map(|f| area.string(f)).collect();
    Ok((area.finish(), names))
}

/// A chunk of a module file (`erts_internal:beamfile_chunk/2`); `None` when the file has none of that name or is no
/// module file.
pub fn file_chunk(bytes: &[u8], name: &[u8; 4]) -> Option<Vec<u8>> {
    let file = BeamFile::parse(bytes).ok()?;
    file.chunk(name).map(<[u8]>::to_vec)
}

/// The MD5 of a module file (`code:module_md5/1`).
pub fn file_md5(bytes: &[u8]) -> Option<[u8; 16]> {
    Some(Module::decode(&BeamFile::parse(bytes).ok()?).ok()?.md5)
}
