//! What `io:setopts` and `io:getopts` know of the standard devices: it differs between releases.

use beamr_abi::Ctx;
use beamr_term::{Build, Release, Word, atoms, text};
use beamr_vm::door::{Door, Standard};

use super::codec::Encoding;

/// Options of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Input is given as binaries.
    pub binary: bool,
    /// Its encoding.
    pub encoding: Encoding,
}

/// Options that are accepted since 26 and change nothing: a bare system has no shell, and sends no line ends of terminals.
const IDLE: &[&str] = &[
    "echo",
    "expand_fun",
    "line_history",
    "log",
    "onlcr",
    "terminal",
];

fn name<'a>(ctx: &Ctx, w: Word) -> Option<&'a str> {
    let tables: &'a beamr_term::Tables = ctx.tables();
    w.as_atom().map(|a| tables.atoms.text(a))
}

fn encoding(w: Word) -> Option<Encoding> {
    match w.as_atom()? {
        atoms::LATIN1 => Some(Encoding::Latin1),
        atoms::UNICODE | atoms::UTF8 => Some(Encoding::Unicode),
        _ => None,
    }
}

impl Options {
    /// The options after `setopts`; `None` when one is not known. `reads` for the device that has input.
    pub fn set(mut self, ctx: &Ctx, options: Word, reads: bool) -> Option<Options> {
        let old = ctx.tables().release < Release(26);
        let mut binary = None;
        for o in text::list_to_vec(options)? {
            let (key, value) = match o.as_tuple() {
                Some([k, v]) => (*k, *v),
                Some(_) => return None,
                None => match o.as_atom() {
                    Some(atoms::UNICODE | atoms::UTF8 | atoms::LATIN1) => {
                        (atoms::ENCODING.word(), o)
                    }
                    _ => (o, Word::TRUE),
                },
            };
            match key.as_atom() {
                Some(atoms::ENCODING) => self.encoding = encoding(value)?,
                Some(atoms::BINARY | atoms::LIST) if reads => {
                    // The first one counts.
                    match value.as_boolean() {
                        Some(b) => {
                            binary.get_or_insert(b == (key.as_atom() == Some(atoms::BINARY)));
                        }
                        None if old => {}
                        None => return None,
                    }
                }
                _ if !old && IDLE.contains(&name(ctx, key)?) => {}
                _ => return None,
            }
        }
        self.binary = binary.unwrap_or(self.binary);
        Some(self)
    }

    /// The answer to `getopts`.
    pub fn get(self, ctx: &mut Ctx, door: &dyn Door, reads: bool) -> Word {
        let release = ctx.tables().release;
        let encoding = match self.encoding {
            Encoding::Latin1 => atoms::LATIN1,
            _ => atoms::UNICODE,
        };
        let binary = (atoms::BINARY.word(), Word::boolean(self.binary));
        let encoding = (atoms::ENCODING.word(), encoding.word());
        let atom = |ctx: &mut Ctx, t: &str| {
            let a = ctx.tables().atoms.intern(t);
            a.map_or(Word::FALSE, |a| a.word())
        };
        let log = (atom(ctx, "log"), atoms::NONE.word());
        let pairs = if !reads {
            let mut all = vec![encoding];
            if release >= Release(26) {
                all.extend([(atom(ctx, "onlcr"), Word::FALSE), log]);
            }
            all
        } else if release < Release(26) {
            vec![binary, encoding]
        } else {
            let mut all = vec![
                (atoms::EXPAND_FUN.word(), expand_fun(ctx, release)),
                (atoms::ECHO.word(), Word::FALSE),
            ];
            if release >= Release(28) {
                all.extend([
                    (atom(ctx, "line_history"), Word::FALSE),
                    log,
                    binary,
                    encoding,
                ]);
            } else {
                all.extend([binary, encoding, log]);
            }
            let is = |s| door.is_terminal(s);
            let (input, output) = (is(Standard::In), is(Standard::Out));
            for (key, value) in [
                ("terminal", input && output),
                ("stdout", output),
                ("stderr", is(Standard::Err)),
                ("stdin", input),
            ] {
                all.push((atom(ctx, key), Word::boolean(value)));
            }
            all
        };
        let items: Vec<Word> = pairs.into_iter().map(|(k, v)| ctx.tuple(&[k, v])).collect();
        ctx.list(items)
    }
}

/// `fun edlin_expand:expand/2` before 28.
fn expand_fun(ctx: &mut Ctx, release: Release) -> Word {
    if release >= Release(28) {
        return Word::FALSE;
    }
    let tables = ctx.tables();
    let (Ok(m), Ok(f)) = (
        tables.atoms.intern("edlin_expand"),
        tables.atoms.intern("expand"),
    ) else {
        return Word::FALSE;
    };
    match tables.exports.id(m, f, 2) {
        Ok(id) => ctx.export_fun(id, m.word(), f.word(), 2),
        Err(_) => Word::FALSE,
    }
}
