//! What `beamr run` can run, and what a system needs for it.

use std::path::{Path, PathBuf};

use crate::script::{Header, ScriptError};
use crate::system::BareOptions;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A function of a module: `main` unless one is named.
    Module {
        /// Module.
        module: String,
        /// Function.
        function: String,
    },
    /// The module of a .beam file.
    Beam {
        /// The file.
        path: PathBuf,
        /// Function.
        function: String,
    },
    /// The module of a source file, which is compiled first.
    Source {
        /// The file.
        path: PathBuf,
        /// Function.
        function: String,
    },
    /// An escript, which OTP's `escript` runs.
    Script {
        /// The file.
        path: PathBuf,
        /// What its head says.
        header: Header,
    },
    /// A folder with `ebin`: the application in it.
    Folder {
        /// The folder.
        path: PathBuf,
        /// The application: the name of the .app file.
        application: String,
    },
}

/// Why a text is no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The path of a file or folder that is not there.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
    /// A file that is no target by its name or content.
    #[error(
        "{0}: not something to run: a target is a module, M:F, a .erl or .beam file, an escript (which begins with `#!`) or a folder with ebin"
    )]
    Unknown(String),
    /// A folder without `ebin`.
    #[error(
        "{0}: there is no ebin in this folder (to run one of its modules: beamr run -pa FOLDER MODULE)"
    )]
    NoEbin(String),
    /// No application, or several.
    #[error("{0}: {1} .app files in ebin; name a module instead: beamr run -pa {0}/ebin MODULE")]
    NoApplication(String, &'static str),
    /// The head of an escript.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl Target {
    /// What a text on the command line means. Paths are looked at.
    ///
    /// `X.erl`, `X.beam` (also with `:F`), the path of an escript, a folder with `ebin`, `M`, or `M:F`.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let (file, function) = match text.rsplit_once(':') {
            Some((file, f)) if extension(file).is_some() && !f.is_empty() => (file, f),
            _ => (text, "main"),
        };
        let path = PathBuf::from(file);
        match extension(file) {
            Some(kind) => {
                let function = function.to_owned();
                readable(&path)?;
                return Ok(match kind {
                    "beam" => Target::Beam { path, function },
                    _ => Target::Source { path, function },
                });
            }
            None if path.join("ebin").is_dir() => return folder(path),
            None => {}
        }
        let is_path = text.contains('/');
        if path.is_file() {
            if let Some(header) = Header::of_file(&path)? {
                return Ok(Target::Script { path, header });
            }
            if is_path {
                return Err(TargetError::Unknown(text.to_owned()));
            }
        } else if is_path {
            readable(&path)?;
            return Err(TargetError::NoEbin(text.to_owned()));
        }
        if path.extension().is_some_and(|e| e == "escript") {
            readable(&path)?;
        }
        let (module, function) = match text.split_once(':') {
            Some((m, f)) if !m.is_empty() && !f.is_empty() => (m, f),
            _ => (text, "main"),
        };
        Ok(Target::Module {
            module: module.into(),
            function: function.into(),
        })
    }
    /// Sets what a system for this target needs: folders, arguments, flags. What in it has no effect is told.
    pub fn configure(&self, args: &[String], options: &mut BareOptions) -> Vec<String> {
        options.arguments = args.to_vec();
        let mut remarks = Vec::new();
        match self {
            Target::Module { .. } => {}
            Target::Beam { path, .. } | Target::Source { path, .. } => {
                options.paths.insert(0, folder_of(path));
            }
            Target::Script { path, header } => {
                let shown = path.to_string_lossy().into_owned();
                let flags = header.flags();
                options.arguments.insert(0, shown.clone());
                options.latin1 = true;
                for (i, p) in flags.first.into_iter().enumerate() {
                    options.paths.insert(i, p);
                }
                options.paths.extend(flags.last);
                options.flags.extend(flags.flags);
                remarks.extend(
                    flags
                        .idle
                        .into_iter()
                        .map(|f| format!("{shown}: {f} in the %%! line has no effect here")),
                );
            }
            Target::Folder { path, .. } => {
                let ebins = [
                    vec![path.join("ebin")],
                    ebins_under(&path.join("lib")),
                    ebins_under(&path.join("deps")),
                    ebins_under(&path.join("_build/default/lib")),
                ];
                for (i, p) in ebins.into_iter().flatten().enumerate() {
                    options.paths.insert(i, p);
                }
            }
        }
        remarks
    }
}

/// `erl` or `beam`.
fn extension(file: &str) -> Option<&str> {
    let (_, e) = file.rsplit_once('.')?;
    matches!(e, "erl" | "beam").then_some(e)
}

fn readable(path: &Path) -> Result<(), TargetError> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(cause) => Err(TargetError::File {
            path: path.display().to_string(),
            cause,
        }),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_path_buf(),
        _ => ".".into(),
    }
}

/// `FOLDER/*/ebin`, sorted.
fn ebins_under(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .map(|e| e.path().join("ebin"))
        .filter(|p| p.is_dir())
        .collect();
    all.sort();
    all
}

fn folder(path: PathBuf) -> Result<Target, TargetError> {
    let shown = path.display().to_string();
    let entries = std::fs::read_dir(path.join("ebin")).into_iter().flatten();
    let mut names: Vec<String> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "app"))
        .filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned()))
        .collect();
    let own = path
        .canonicalize()
        .ok()
        .and_then(|p| Some(p.file_name()?.to_str()?.to_owned()))
        .unwrap_or_default();
    if let Some(i) = names.iter().position(|n| *n == own) {
        names = vec![names.swap_remove(i)];
    }
    match (names.pop(), names.pop()) {
        (Some(application), None) => Ok(Target::Folder { path, application }),
        (None, _) => Err(TargetError::NoApplication(shown, "no")),
        (Some(_), Some(_)) => Err(TargetError::NoApplication(shown, "several")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(m: &str, f: &str) -> Target {
        Target::Module {
            module: m.into(),
            function: f.into(),
        }
    }

    #[test]
    fn modules_and_functions() {
        for (text, m, f) in [
            ("hello", "hello", "main"),
            ("hello:go", "hello", "go"),
            ("Elixir.Hello", "Elixir.Hello", "main"),
        ] {
            assert_eq!(Target::parse(text).unwrap(), module(m, f));
        }
    }

    #[test]
    fn files() {
        let dir = std::env::temp_dir().join(format!("beamr-target-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("app/ebin")).unwrap();
        let file = |name: &str, text: &str| {
            let p = dir.join(name);
            std::fs::write(&p, text).unwrap();
            p
        };
        let parse = |p: &Path| Target::parse(&p.to_string_lossy());
        let source = file("a.erl", "");
        let function = "main".to_owned();
        let path = source.clone();
        assert_eq!(parse(&source).unwrap(), Target::Source { path, function });
        let named = format!("{}:go", source.display());
        assert!(matches!(
            Target::parse(&named).unwrap(),
            Target::Source { function, .. } if function == "go"
        ));
        assert!(matches!(
            parse(&file("s", "#!/usr/bin/env escript\nmain(_) -> ok.\n")).unwrap(),
            Target::Script { .. }
        ));
        assert!(matches!(
            parse(&file("text", "nothing\n")),
            Err(TargetError::Unknown(_))
        ));
        assert!(matches!(
            parse(&dir.join("missing.erl")),
            Err(TargetError::File { .. })
        ));
        assert!(matches!(
            parse(&dir.join("app")),
            Err(TargetError::NoApplication(_, "no"))
        ));
        file("app/ebin/thing.app", "");
        let application = "thing".to_owned();
        let path = dir.join("app");
        assert_eq!(parse(&path).unwrap(), Target::Folder { path, application });
        assert!(matches!(parse(&dir), Err(TargetError::NoEbin(_))));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
