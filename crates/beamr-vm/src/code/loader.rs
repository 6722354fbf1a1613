//! Where modules come from when they are called for the first time.
//!
//! The embedder or the program implements [`ModuleLoader`]; this crate opens no file. A namespace
//! without a loader leaves missing modules to the `error_handler` (the boot of an OTP system).

use beamr_term::Atom;

use super::image::Trust;

/// The file of a module.
#[derive(Debug)]
pub struct ModuleFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether its claims are believed.
    pub trust: Trust,
    /// Where it came from, for `code:which/1` and error texts.
    pub path: String,
}

/// Why a loader could not give a file that it knows of.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub struct LoaderError {
    /// The file.
    pub path: String,
    /// What went wrong.
    pub cause: String,
}

/// Finds modules by name. Called on the thread that runs the first call.
pub trait ModuleLoader: Send + Sync {
    /// The file of `module`, or `None` when there is no such module. Names come from programs: a loader
    /// that builds paths of them refuses separators and NUL ([`is_plain_name`]).
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError>;
    /// Told of each module that was loaded through this loader.
    fn loaded(&self, module: Atom, path: &str) {
        let _ = (module, path);
    }
    /// Told of a file that was found and could not be loaded; the call then finds no function.
    fn failed(&self, module: &str, path: &str, why: &super::LoadError) {
        let _ = (module, path, why);
    }
}

/// A loader that knows no module.
#[derive(Debug)]
pub struct NoLoader;

impl ModuleLoader for NoLoader {
    fn find(&self, _: &str) -> Result<Option<ModuleFile>, LoaderError> {
        Ok(None)
    }
}

/// Whether a module name can be a file name by itself: no separators, no NUL, not empty, no leading dot.
pub fn is_plain_name(module: &str) -> bool {
    !module.is_empty() && !module.starts_with('.') && !module.contains(['/', '\\', '\0', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_a_directory_are_refused() {
        assert!(is_plain_name("lists") && is_plain_name("Elixir.Enum") && is_plain_name("a@b"));
        for bad in ["", "../x", "a/b", "a\\b", "x\0", "c:x", ".hidden"] {
            assert!(!is_plain_name(bad), "{bad:?}");
        }
    }
}
