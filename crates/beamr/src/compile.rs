//! Sources that are compiled to be run: by OTP's compiler, on this VM, in memory.
//!
//! With a source go the modules beside it that it mentions, so that a program of several files runs as it lies there. Parse
//! transforms and behaviours are compiled before who uses them. Errors and warnings go to standard error, as `erlc` words them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamr_term::bits::BitsView;
use beamr_term::{Build, Fragment, Word, atoms};
use beamr_vm::code::Trust;

use crate::run::RunError;
use crate::system::System;

/// After this time a compilation is worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// Is told which file is being compiled when that takes long, and with `None` when it is done.
pub type Progress<'a> = &'a dyn Fn(Option<&Path>);

/// Compiles a file and those beside it that it needs; they are loaded at their first call. Gives the module.
pub fn compile(
    system: &System,
    path: &Path,
    include: &[PathBuf],
    progress: Progress<'_>,
) -> Result<String, RunError> {
    let mut main = None;
    for file in order(system, path)? {
        let module = compile_file(system, &file, include, progress)?;
        if file == path {
            main = Some(module);
        }
    }
    main.ok_or_else(|| RunError::Compile(path.display().to_string()))
}

fn compile_file(
    system: &System,
    path: &Path,
    include: &[PathBuf],
    progress: Progress<'_>,
) -> Result<String, RunError> {
    let vm = &system.vm;
    let atom = |text: &str| {
        vm.tables
            .atoms
            .intern(text)
            .map(|a| a.word())
            .map_err(|e| RunError::Name(text.into(), e))
    };
    let shown = path.to_string_lossy();
    let mut f = Fragment::with_capacity(256);
    let mut options = vec![
        atoms::BINARY.word(),
        atom("report_errors")?,
        atom("report_warnings")?,
        atom("debug_info")?,
    ];
    for i in include {
        let folder = f.string(&i.to_string_lossy());
        let i = atom("i")?;
        options.push(f.tuple(&[i, folder]));
    }
    let options = f.list(options);
    let file = f.string(&shown);
    let args = f.list([file, options]);
    let pid = system.spawn(atom("compile")?, atom("file")?, args, system.standard_error)?;
    let record = match vm.run_until_exit(pid, Some(PATIENCE)) {
        Err(beamr_vm::vm::WaitError::Timeout) => {
            progress(Some(path));
            let record = vm.run_until_exit(pid, None);
            progress(None);
            record?
        }
        other => other?,
    };
    let Some(result) = &record.result else {
        system.print_crash(pid, record.reason.term);
        return Err(RunError::Compile(shown.into_owned()));
    };
    let (module, code) = match result.term.as_tuple() {
        Some([ok, module, code, ..]) if ok.as_atom() == Some(atoms::OK) => (*module, *code),
        _ => return Err(RunError::Compile(shown.into_owned())),
    };
    let name = module
        .as_atom()
        .map(|m| vm.tables.atoms.text(m).to_owned())
        .unwrap_or_default();
    let code = bytes(code).unwrap_or_default();
    system.loader.keep(&name, code, Trust::Trusted, &shown);
    if let Some(module) = module.as_atom() {
        // Not at its first call only: the code server looks for what is not loaded in folders.
        vm.default_namespace().modules.ensure_loaded(module)?;
    }
    Ok(name)
}

fn bytes(w: Word) -> Option<Vec<u8>> {
    BitsView::of(w).map(|v| v.to_bytes().into_owned())
}

/// The files to compile, in order.
fn order(system: &System, main: &Path) -> Result<Vec<PathBuf>, RunError> {
    let folder = main.parent().unwrap_or(Path::new(""));
    let stem = |p: &Path| p.file_stem().and_then(|s| s.to_str()).map(str::to_owned);
    let entries = match folder.as_os_str().is_empty() {
        true => std::fs::read_dir("."),
        false => std::fs::read_dir(folder),
    };
    let mut files: HashMap<String, PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| folder.join(e.file_name()))
        .filter(|p| p.extension().is_some_and(|e| e == "erl"))
        .filter_map(|p| Some((stem(&p)?, p)))
        .collect();
    let name = stem(main).unwrap_or_default();
    files.insert(name.clone(), main.to_path_buf());
    if files.len() > 1 {
        // A module of OTP is not replaced because a file has its name.
        let applications = system.loader.applications();
        files.retain(|n, _| {
            *n == name
                || !applications
                    .iter()
                    .any(|a| a.join(format!("{n}.beam")).is_file())
        });
    }
    let mut walk = Walk {
        files: &files,
        folder,
        seen: HashSet::new(),
        later: vec![name],
        order: Vec::new(),
    };
    while let Some(next) = walk.later.pop() {
        walk.visit(&next)?;
    }
    Ok(walk.order)
}

struct Walk<'a> {
    files: &'a HashMap<String, PathBuf>,
    folder: &'a Path,
    seen: HashSet<String>,
    later: Vec<String>,
    order: Vec<PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, name: &str) -> Result<(), RunError> {
        let Some(path) = self.files.get(name).cloned() else {
            return Ok(());
        };
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        if self.files.len() > 1 {
            let mut found = Mentions::default();
            self.scan(&path, &mut found, &mut HashSet::new())?;
            for n in found.first {
                // As deep as parse transforms use each other.
                self.visit(&n)?;
            }
            self.later.extend(found.any);
        }
        self.order.push(path);
        Ok(())
    }
    /// What a file and the headers beside it mention.
    fn scan(
        &self,
        path: &Path,
        found: &mut Mentions,
        scanned: &mut HashSet<PathBuf>,
    ) -> Result<(), RunError> {
        let mut waiting = vec![path.to_path_buf()];
        while let Some(p) = waiting.pop() {
            let text = match std::fs::read(&p) {
                Ok(t) => t,
                Err(cause) if p == path => {
                    return Err(RunError::File {
                        path: p.display().to_string(),
                        cause,
                    });
                }
                Err(_) => continue,
            };
            scanned.insert(p);
            let text = String::from_utf8_lossy(&text);
            for header in found.collect(&text, |n| self.files.contains_key(n)) {
                let h = self.folder.join(header);
                if h.is_file() && !scanned.contains(&h) {
                    waiting.push(h);
                }
            }
        }
        Ok(())
    }
}

/// Names of modules in a source.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mentions {
    /// Behaviours and parse transforms.
    first: Vec<String>,
    /// The others.
    any: Vec<String>,
}

impl Mentions {
    /// Collects the known names of a text; gives the names of headers. A name followed by `(` is a call of a local function.
    fn collect(&mut self, text: &str, known: impl Fn(&str) -> bool) -> Vec<String> {
        let mut headers = Vec::new();
        let mut last = String::new();
        let mut before = ' ';
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match c {
                '%' => {
                    rest = rest.find('\n').map_or("", |n| &rest[n..]);
                    continue;
                }
                '"' => {
                    let (string, after) = quoted(&rest[1..], '"');
                    if string.ends_with(".hrl") {
                        headers.push(string.to_owned());
                    }
                    rest = after;
                }
                '$' => {
                    // A character, perhaps escaped, may be a quote.
                    let n = rest
                        .chars()
                        .take(if rest[1..].starts_with('\\') { 3 } else { 2 })
                        .map(char::len_utf8)
                        .sum();
                    rest = &rest[n..];
                }
                'a'..='z' | '\'' => {
                    let (word, after) = if c == '\'' {
                        quoted(&rest[1..], '\'')
                    } else {
                        rest.split_at(
                            rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '@')
                                .unwrap_or(rest.len()),
                        )
                    };
                    let called = after.trim_start().starts_with('(');
                    if known(word) && !called && !matches!(before, '#' | '?') {
                        let early =
                            matches!(last.as_str(), "behaviour" | "behavior" | "parse_transform");
                        if early {
                            self.first.push(word.to_owned());
                        } else {
                            self.any.push(word.to_owned());
                        }
                    }
                    last = word.to_owned();
                    rest = after;
                }
                _ if c.is_alphanumeric() || c == '_' => {
                    let n = rest
                        .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '@')
                        .unwrap_or(rest.len());
                    rest = &rest[n..];
                }
                _ => rest = &rest[c.len_utf8()..],
            }
            if !c.is_whitespace() {
                before = c;
            }
        }
        headers
    }
}

/// The text up to the closing quote, and what comes after that.
fn quoted(text: &str, quote: char) -> (&str, &str) {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return (&text[..i], &text[i + c.len_utf8()..]),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions() {
        let text = r#"
%% beside in a comment
-module(main).
-include("defs.hrl").
-behaviour(shape).
-compile([{parse_transform, 'pt'}]).
-record(rec, {a}).
main() -> "other in a string", $", local(), beside:go(#rec{a = $'}), spawn(worker, run, []), ?macro.
"#;
        let known = [
            "beside", "shape", "pt", "rec", "local", "worker", "other", "macro",
        ];
        let mut m = Mentions::default();
        let headers = m.collect(text, |n| known.contains(&n));
        assert_eq!(headers, ["defs.hrl"]);
        assert_eq!(m.first, ["shape", "pt"]);
        // `-record(rec, ...)` names no module, but nobody can tell.
        assert_eq!(m.any, ["rec", "beside", "worker"]);
    }
}
