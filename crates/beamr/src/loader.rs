//! Modules from folders: `-pa` folders first, then the applications of an OTP root. The working directory of a program comes between
//! those whose modules OTP lets nobody replace and the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};

use beamr_term::Atom;
use beamr_vm::code::loader::{LoaderError, is_plain_name};
use beamr_vm::code::{ModuleFile, ModuleLoader, Trust};
use beamr_vm::door::Door;

/// Looks for `MODULE.beam` in folders, at first call of a module.
#[derive(Default)]
pub struct FolderLoader {
    paths: Vec<(PathBuf, Trust)>,
    /// Who knows the working directory, if that is searched.
    here: Option<(Arc<dyn Door>, Trust)>,
    root: Option<PathBuf>,
    /// Modules given as bytes: in front of all folders.
    memory: Option<(Arc<ModuleRegistry>, Trust)>,
    applications: OnceLock<Vec<PathBuf>>,
    /// Folders that the running program added: in front of all others, and behind them.
    added: RwLock<(Vec<PathBuf>, Vec<PathBuf>)>,
    /// Where modules came from.
    files: RwLock<HashMap<Atom, String>>,
    /// Modules that are in no folder.
    kept: RwLock<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    trust: Trust,
    path: String,
}

impl std::fmt::Debug for FolderLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FolderLoader")
            .field("paths", &self.paths)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

/// Applications looked at before the others (and before the working directory): most modules are there, and OTP's code server lets
/// nobody replace them. The first two are in a boot script's order.
const FIRST: &[&str] = &["kernel", "stdlib", "compiler", "erts"];

/// The place in [`FIRST`] of an application's folder by its name (`stdlib-4.2`), or its length.
fn rank(folder: &str) -> usize {
    let application = folder.split('-').next().unwrap_or(folder);
    let place = FIRST.iter().position(|f| *f == application);
    place.unwrap_or(FIRST.len())
}

impl FolderLoader {
    /// A loader that knows no folder.
    pub fn new() -> FolderLoader {
        FolderLoader::default()
    }
    /// Adds a folder in front of those added before.
    pub fn path(mut self, folder: impl Into<PathBuf>, trust: Trust) -> FolderLoader {
        self.paths.insert(0, (folder.into(), trust));
        self
    }
    /// The working directory is searched too.
    pub fn here(mut self, door: Arc<dyn Door>, trust: Trust) -> FolderLoader {
        self.here = Some((door, trust));
        self
    }
    /// Modules given as bytes, which are looked for first.
    pub fn modules(mut self, modules: Arc<ModuleRegistry>, trust: Trust) -> FolderLoader {
        self.memory = Some((modules, trust));
        self
    }
    /// Adds the `ebin` folders of an OTP root's applications, behind all others. They are trusted.
    pub fn otp_root(mut self, root: impl Into<PathBuf>) -> FolderLoader {
        self.root = Some(root.into());
        self
    }
    /// The `ebin` folders of the root: FIRST in that order, the rest by name.
    pub fn applications(&self) -> &[PathBuf] {
        self.applications.get_or_init(|| {
            let Some(lib) = self.root.as_ref().map(|r| r.join("lib")) else {
                return Vec::new();
            };
            let mut names: Vec<String> = std::fs::read_dir(&lib)
                .map(|d| {
                    d.flatten()
                        .map(|e| e.file_name().to_string_lossy().into_owned())
                        .collect()
                })
                .unwrap_or_default();
            names.sort();
            names.sort_by_key(|n| rank(n));
            names
                .into_iter()
                .map(|n| lib.join(n).join("ebin"))
                .collect()
        })
    }
    /// The OTP root.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }
    /// Adds a folder while the system runs. Its modules are trusted as those of the command line are.
    pub fn add_path(&self, folder: impl Into<PathBuf>, first: bool) {
        let folder = folder.into();
        let mut added = self.added.write().unwrap_or_else(|e| e.into_inner());
        added.0.retain(|p| *p != folder);
        added.1.retain(|p| *p != folder);
        if first {
            added.0.insert(0, folder);
        } else {
            added.1.push(folder);
        }
    }
    /// Keeps a module that is in no folder; it goes before all those that are. `path` is told as its file.
    pub fn keep(&self, module: &str, bytes: Vec<u8>, trust: Trust, path: &str) {
        let path = path.to_owned();
        let mut kept = self.kept.write().unwrap_or_else(|e| e.into_inner());
        kept.insert(module.to_owned(), Kept { bytes, trust, path });
    }
    /// Takes out a folder that was added while the system runs; false when it was not.
    pub fn remove_path(&self, folder: &Path) -> bool {
        let mut added = self.added.write().unwrap_or_else(|e| e.into_inner());
        let before = added.0.len() + added.1.len();
        added.0.retain(|p| p != folder);
        added.1.retain(|p| p != folder);
        before != added.0.len() + added.1.len()
    }
    /// All folders in search order, those added while the system runs too.
    pub fn search_path(&self) -> Vec<PathBuf> {
        let added = self.added.read().unwrap_or_else(|e| e.into_inner());
        let own = self.folders().map(|f| f.0.to_path_buf());
        added
            .0
            .iter()
            .cloned()
            .chain(own)
            .chain(added.1.iter().cloned())
            .collect()
    }
    /// The file that a module was loaded from.
    pub fn path_of(&self, module: Atom) -> Option<String> {
        let files = self.files.read().unwrap_or_else(|e| e.into_inner());
        files.get(&module).cloned()
    }
    /// The folders given at the start, in search order.
    pub fn folders(&self) -> impl Iterator<Item = (&Path, Trust)> + '_ {
        self.paths.iter().map(|(p, t)| (p.as_path(), *t)).chain(
            self.applications()
                .iter()
                .map(|p| (p.as_path(), Trust::Trusted)),
        )
    }
}

/// Whether the modules of a folder are those that OTP's emulator holds itself.
fn is_preloaded(folder: &Path) -> bool {
    let application = folder.parent().and_then(Path::file_name);
    folder.ends_with("ebin")
        && application.is_some_and(|n| n.to_string_lossy().starts_with("erts-"))
}

/// A module file without its `Line` chunk, as OTP keeps preloaded modules: their frames have no places in traces. What
/// is no module file stays as it is.
fn without_lines(bytes: Vec<u8>) -> Vec<u8> {
    let Some(mut rest) = bytes.get(12..).filter(|_| bytes.starts_with(b"FOR1")) else {
        return bytes;
    };
    let mut out = bytes[..12].to_vec();
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let size = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let whole = (size.saturating_add(8 + 3) & !3).min(rest.len());
        let (chunk, after) = rest.split_at(whole);
        if !chunk.starts_with(b"Line") {
            out.extend_from_slice(chunk);
        }
        rest = after;
    }
    let Ok(size) = u32::try_from(out.len() - 8) else {
        return bytes;
    };
    out[4..8].copy_from_slice(&size.to_be_bytes());
    out
}

/// Module files by name, as bytes: loaded by every VM that was given them, on the first call of each.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let modules = beamr::ModuleRegistry::new();
/// # let bytes = include_bytes!("../tests/it/data/face_cases.beam");
/// assert_eq!(modules.insert(&bytes[..])?, "face_cases");
/// let vm = beamr::Scheduler::builder().threads(1).modules(modules).build()?;
/// assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2))?, 3);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct ModuleRegistry {
    files: RwLock<HashMap<String, Arc<[u8]>>>,
}

impl ModuleRegistry {
    /// Without modules.
    pub fn new() -> ModuleRegistry {
        ModuleRegistry::default()
    }
    /// Adds a module file (or replaces that of its module, for VMs that have not loaded it); its module's name. The code is looked at when it is loaded.
    pub fn insert(&self, file: impl Into<Arc<[u8]>>) -> Result<String, ModuleFileError> {
        let file = file.into();
        let parsed = beamr_file::BeamFile::parse(&file)
            .and_then(|f| beamr_file::Module::decode(&f))
            .map_err(|e| ModuleFileError(e.to_string()))?;
        let mut files = self.files.write().unwrap_or_else(|e| e.into_inner());
        files.insert(parsed.name.to_string(), file);
        Ok(parsed.name.to_string())
    }
    /// Takes a module out. VMs that have loaded it keep it.
    pub fn remove(&self, module: &str) -> bool {
        let mut files = self.files.write().unwrap_or_else(|e| e.into_inner());
        files.remove(module).is_some()
    }
    /// The names of the modules, sorted.
    pub fn names(&self) -> Vec<String> {
        let files = self.files.read().unwrap_or_else(|e| e.into_inner());
        let mut names: Vec<String> = files.keys().cloned().collect();
        names.sort();
        names
    }
    fn get(&self, module: &str) -> Option<Arc<[u8]>> {
        let files = self.files.read().unwrap_or_else(|e| e.into_inner());
        files.get(module).cloned()
    }
}

/// Bytes that are no module file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a module file: {0}")]
pub struct ModuleFileError(String);

impl ModuleLoader for FolderLoader {
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError> {
        if !is_plain_name(module) {
            return Ok(None);
        }
        if let Some((modules, trust)) = &self.memory
            && let Some(bytes) = modules.get(module)
        {
            return Ok(Some(ModuleFile {
                bytes: bytes.to_vec(),
                trust: *trust,
                path: format!("{module}.beam"),
            }));
        }
        let kept = self.kept.read().unwrap_or_else(|e| e.into_inner());
        if let Some(k) = kept.get(module) {
            return Ok(Some(ModuleFile {
                bytes: k.bytes.clone(),
                trust: k.trust,
                path: k.path.clone(),
            }));
        }
        drop(kept);
        let name = format!("{module}.beam");
        let added = self.added.read().unwrap_or_else(|e| e.into_inner());
        let trusted = |p: &'_ PathBuf| (p.clone(), Trust::Trusted);
        let applications = self.applications();
        let first = applications.partition_point(|p| {
            let name = p.parent().and_then(Path::file_name);
            name.is_some_and(|n| rank(&n.to_string_lossy()) < FIRST.len())
        });
        let (first, others) = applications.split_at(first);
        let here = self.here.iter().map(|(door, trust)| {
            let here = String::from_utf8_lossy(&door.current_dir()).into_owned();
            (PathBuf::from(here), *trust)
        });
        let folders = (added.0.iter().map(trusted))
            .chain(self.paths.iter().cloned())
            .chain(first.iter().map(trusted))
            .chain(here)
            .chain(others.iter().map(trusted))
            .chain(added.1.iter().map(trusted));
        for (folder, trust) in folders {
            let path = folder.join(&name);
            match std::fs::read(&path) {
                Ok(bytes) => {
                    let bytes = if is_preloaded(&folder) {
                        without_lines(bytes)
                    } else {
                        bytes
                    };
                    return Ok(Some(ModuleFile {
                        bytes,
                        trust,
                        path: path.to_string_lossy().into_owned(),
                    }));
                }
                Err(e)
                    if matches!(
                        e.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                    ) => {}
                Err(e) => {
                    return Err(LoaderError {
                        path: path.to_string_lossy().into_owned(),
                        cause: e.to_string(),
                    });
                }
            }
        }
        Ok(None)
    }
    fn loaded(&self, module: Atom, path: &str) {
        let mut files = self.files.write().unwrap_or_else(|e| e.into_inner());
        files.insert(module, path.to_owned());
    }
}
