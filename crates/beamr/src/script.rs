//! The head of an escript: the `#!` line, and the flags for the emulator in a line `%%! FLAG VALUE ...` (the second or, after a
//! comment, the third one). Everything else of a script is for OTP's `escript` to read.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a head at most: a body without line ends is not read through.
const LIMIT: u64 = 64 * 1024;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The words of the `%%!` line.
    pub words: Vec<String>,
}

/// Why a head cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub struct ScriptError {
    /// The file.
    path: String,
    /// Why.
    cause: std::io::Error,
}

/// What the words of a `%%!` line ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Of `-pa`.
    pub first: Vec<PathBuf>,
    /// Of `-pz`.
    pub last: Vec<PathBuf>,
    /// For `init:get_argument/1`.
    pub flags: Vec<(String, Vec<String>)>,
    /// Flags that ask for something that a bare system does not have or do.
    pub idle: Vec<String>,
}

/// Flags with an effect in an emulator that a bare system does not give them.
const IDLE: &[&str] = &[
    "sname",
    "name",
    "remsh",
    "config",
    "boot",
    "eval",
    "run",
    "s",
    "heart",
    "detached",
    "proto_dist",
    "setcookie",
    "env",
];

impl Header {
    /// The head of a script; `None` for a file that is none: it begins with neither `#!` nor the mark of an archive.
    pub fn of_file(path: &Path) -> Result<Option<Header>, ScriptError> {
        let read = || {
            let file = std::fs::File::open(path)?.take(LIMIT);
            Header::read(&mut BufReader::new(file))
        };
        read().map_err(|cause| ScriptError {
            path: path.display().to_string(),
            cause,
        })
    }
    fn read(from: &mut impl BufRead) -> std::io::Result<Option<Header>> {
        let mut line = || -> std::io::Result<Vec<u8>> {
            let mut l = Vec::new();
            from.read_until(b'\n', &mut l)?;
            Ok(l)
        };
        let first = line()?;
        if first.starts_with(b"PK\x03\x04") {
            return Ok(Some(Header::default()));
        }
        if !first.starts_with(b"#!") {
            return Ok(None);
        }
        let mut second = line()?;
        if second.starts_with(b"%") && !second.starts_with(b"%%!") {
            second = line()?;
        }
        let words = match second.strip_prefix(b"%%!") {
            Some(rest) => words(&String::from_utf8_lossy(rest)),
            None => Vec::new(),
        };
        Ok(Some(Header { words }))
    }
    /// What its words ask for, as `erl` reads them: `-flag VALUE...`, `+x` for the emulator (taken and ignored).
    pub fn flags(&self) -> Flags {
        let mut out = Flags::default();
        let mut rest = self.words.iter().peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix('-').filter(|f| !f.is_empty()) else {
                // A flag of the emulator may have a value of its own; both mean nothing here.
                continue;
            };
            let mut values = Vec::new();
            while let Some(v) = rest.next_if(|w| !w.starts_with(['-', '+'])) {
                values.push(v.clone());
            }
            if IDLE.contains(&flag) {
                out.idle.push(word.clone());
            }
            match flag {
                "pa" => out.first.extend(values.iter().map(PathBuf::from)),
                "pz" => out.last.extend(values.iter().map(PathBuf::from)),
                _ => {}
            }
            out.flags.push((flag.to_owned(), values));
        }
        out
    }
}

/// Words apart by blanks; quotes keep blanks in a word.
fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => out.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Option<Vec<String>> {
        Header::read(&mut text.as_bytes()).unwrap().map(|h| h.words)
    }

    #[test]
    fn heads() {
        let none: Vec<String> = Vec::new();
        assert_eq!(head("#!escript\nmain(_) -> ok."), Some(none.clone()));
        assert_eq!(
            head("#!escript\n%%! -pa x\n"),
            Some(vec!["-pa".into(), "x".into()])
        );
        assert_eq!(
            head("#!escript\n%% -*- erlang -*-\n%%!-smp \"a b\"\n"),
            Some(vec!["-smp".into(), "a b".into()])
        );
        assert_eq!(head("#!escript\n\n%%! -pa x\n"), Some(none.clone()));
        assert_eq!(head("PK\x03\x04"), Some(none));
        assert_eq!(head("text\n#!"), None);
    }

    #[test]
    fn flags() {
        let words = words("-pa a b +K true -mnesia dir '\"/tmp\"' -sname x -pz c");
        let flags = Header { words }.flags();
        assert_eq!(flags.first, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(flags.last, [PathBuf::from("c")]);
        assert_eq!(flags.idle, ["-sname"]);
        assert!(
            flags
                .flags
                .contains(&("mnesia".into(), vec!["dir".into(), "\"/tmp\"".into()]))
        );
    }
}
