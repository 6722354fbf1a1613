//! Finding an installed OTP: its root folder and its release.

use std::path::{Path, PathBuf};

use beamr_term::Release;
use beamr_vm::door::Door;

/// An installed OTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtpRoot {
    /// The folder that has `lib` and `releases`.
    pub path: PathBuf,
    /// Its release.
    pub release: Release,
}

/// Why there is no OTP root.
#[derive(Debug, thiserror::Error)]
pub enum OtpRootError {
    /// Nothing was named and no `erl` is on PATH.
    #[error(
        "no OTP root: give --otp-root DIR, set BEAMR_OTP_ROOT, or install Erlang/OTP so that `erl` is on PATH"
    )]
    NotFound,
    /// The folder is not an OTP root.
    #[error("{0}: not an OTP root (it has no lib/kernel-* and lib/stdlib-*)")]
    NotARoot(PathBuf),
    /// The release cannot be told.
    #[error("{0}: cannot tell its release (no number in releases/)")]
    NoRelease(PathBuf),
}

impl OtpRoot {
    /// The root at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Result<OtpRoot, OtpRootError> {
        let path = path.into();
        let release = release_of(&path);
        let has = |name: &str| {
            let prefix = format!("{name}-");
            std::fs::read_dir(path.join("lib")).is_ok_and(|d| {
                d.flatten().any(|e| {
                    let n = e.file_name();
                    let n = n.to_string_lossy();
                    n == name || n.starts_with(&prefix)
                })
            })
        };
        if !has("kernel") || !has("stdlib") {
            return Err(OtpRootError::NotARoot(path));
        }
        match release {
            Some(release) => Ok(OtpRoot { path, release }),
            None => Err(OtpRootError::NoRelease(path)),
        }
    }
    /// The version of its `erts`, by the name of the folder that holds it.
    pub fn erts_version(&self) -> Option<String> {
        let name = |d: std::fs::DirEntry| d.file_name().to_string_lossy().into_owned();
        let mut found: Vec<String> = [self.path.clone(), self.path.join("lib")]
            .iter()
            .filter_map(|p| std::fs::read_dir(p).ok())
            .flat_map(|d| d.flatten().map(name))
            .filter_map(|n| n.strip_prefix("erts-").map(str::to_owned))
            .collect();
        found.sort();
        found.pop()
    }
    /// Puts into the environment of a VM what OTP's starter does: programs of OTP are found there (`inet_gethost`), and scripts look for
    /// these variables.
    pub(crate) fn set_environment(&self, door: &dyn Door, erts: &str) {
        let root = self.path.as_os_str().as_encoded_bytes();
        let below = |part: &str| [root, b"/", part.as_bytes()].concat();
        let binaries = below(&format!("erts-{erts}/bin"));
        let mut path = [&binaries[..], b":", &below("bin")].concat();
        if let Some(before) = door.env(b"PATH") {
            path.push(b':');
            path.extend(before);
        }
        let variables: [(&[u8], &[u8]); 5] = [
            (b"PATH", &path),
            (b"BINDIR", &binaries),
            (b"ROOTDIR", root),
            (b"EMU", b"beam"),
            (b"PROGNAME", b"beamr"),
        ];
        for (name, value) in variables {
            // A folder whose name the environment cannot hold is not found there.
            let _ = door.set_env(name, Some(value));
        }
    }
    /// The root given, else `$BEAMR_OTP_ROOT` (as `environment` has it), else that of the `erl` on `path_variable`.
    pub fn find(
        given: Option<&Path>,
        environment: Option<&Path>,
        path_variable: Option<&std::ffi::OsStr>,
    ) -> Result<OtpRoot, OtpRootError> {
        if let Some(p) = given.or(environment) {
            return OtpRoot::at(p);
        }
        for dir in path_variable
            .map(std::env::split_paths)
            .into_iter()
            .flatten()
        {
            let erl = dir.join("erl");
            if let Ok(real) = std::fs::canonicalize(&erl)
                && let Some(root) = root_of_erl(&real)
                && let Ok(found) = OtpRoot::at(root)
            {
                return Ok(found);
            }
        }
        Err(OtpRootError::NotFound)
    }
}

/// The newest number among the folders of `releases/`.
fn release_of(root: &Path) -> Option<Release> {
    std::fs::read_dir(root.join("releases"))
        .ok()?
        .flatten()
        .filter_map(|e| e.file_name().to_string_lossy().parse::<u16>().ok())
        .max()
        .map(Release)
}

/// `erl` is `ROOT/bin/erl` (often behind a link), or a script that names its ROOTDIR.
fn root_of_erl(erl: &Path) -> Option<PathBuf> {
    let root = erl.parent()?.parent()?;
    if root.join("releases").is_dir() {
        return Some(root.to_path_buf());
    }
    let script = std::fs::read_to_string(erl).ok()?;
    let line = script
        .lines()
        .find_map(|l| l.trim().strip_prefix("ROOTDIR="))?;
    Some(PathBuf::from(line.trim().trim_matches('"')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("beamr-otp-{}-{name}", std::process::id()));
        for d in ["lib/kernel-8.5", "lib/stdlib-4.2", "releases/25", "bin"] {
            std::fs::create_dir_all(dir.join(d)).unwrap();
        }
        std::fs::write(dir.join("bin/erl"), "#!/bin/sh\n").unwrap();
        dir
    }

    #[test]
    fn a_root_is_recognised() {
        let dir = fake("a");
        let r = OtpRoot::at(&dir).unwrap();
        assert_eq!(r.release, Release::OTP25);
        let path = std::env::join_paths([dir.join("bin")]).unwrap();
        let found = OtpRoot::find(None, None, Some(&path)).unwrap();
        assert_eq!(found.path, dir.canonicalize().unwrap());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let dir = fake("b");
        std::fs::remove_dir_all(dir.join("releases")).unwrap();
        assert!(matches!(OtpRoot::at(&dir), Err(OtpRootError::NoRelease(_))));
        std::fs::remove_dir_all(dir.join("lib/kernel-8.5")).unwrap();
        assert!(matches!(OtpRoot::at(&dir), Err(OtpRootError::NotARoot(_))));
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(matches!(
            OtpRoot::find(None, None, None),
            Err(OtpRootError::NotFound)
        ));
    }
}
