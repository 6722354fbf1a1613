//! Modules from folders: `-pa` folders first, then the applications of an OTP root.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use beamr_vm::code::loader::{LoaderError, is_plain_name};
use beamr_vm::code::{ModuleFile, ModuleLoader, Trust};

/// Looks for `MODULE.beam` in folders, at first call of a module.
#[derive(Debug, Default)]
pub struct FolderLoader {
    paths: Vec<(PathBuf, Trust)>,
    root: Option<PathBuf>,
    applications: OnceLock<Vec<PathBuf>>,
}

/// Applications looked at before the others: most modules are there.
const FIRST: &[&str] = &["stdlib", "kernel", "compiler", "erts"];

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
            let rank = |n: &String| {
                let app = n.split('-').next().unwrap_or(n);
                FIRST.iter().position(|f| *f == app).unwrap_or(FIRST.len())
            };
            names.sort_by_key(rank);
            names
                .into_iter()
                .map(|n| lib.join(n).join("ebin"))
                .collect()
        })
    }
    /// The folders in search order.
    pub fn folders(&self) -> impl Iterator<Item = (&Path, Trust)> + '_ {
        self.paths.iter().map(|(p, t)| (p.as_path(), *t)).chain(
            self.applications()
                .iter()
                .map(|p| (p.as_path(), Trust::Trusted)),
        )
    }
}

impl ModuleLoader for FolderLoader {
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError> {
        if !is_plain_name(module) {
            return Ok(None);
        }
        let name = format!("{module}.beam");
        for (folder, trust) in self.folders() {
            let path = folder.join(&name);
            match std::fs::read(&path) {
                Ok(bytes) => {
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
}
