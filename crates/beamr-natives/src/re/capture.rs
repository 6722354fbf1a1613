//! What a match returns: the `capture` option, and building the result.

use beamr_abi::Ctx;
use beamr_term::bits::{self, BitsView};
use beamr_term::text::list_of_bytes;
use beamr_term::{Build, Tables, Word, atoms};

use super::options::int;
use super::pattern::{Pattern, UNSET};

/// The form of a captured part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// `{Start, Length}`.
    Index,
    /// A list of bytes.
    List,
    /// A binary.
    Binary,
}

/// One thing to return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A group by number; it need not exist.
    Group(usize),
    /// The first of these groups that took part.
    AnyOf(Vec<usize>),
    /// A name that no group has.
    Unknown,
}

/// What to return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parts {
    /// Nothing but that there was a match.
    None,
    /// All groups from this one on.
    From(usize),
    /// These.
    These(Vec<Part>),
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// What.
    pub parts: Parts,
    /// How.
    pub form: Form,
}

impl Capture {
    /// Without the option.
    pub const ALL: Capture = Capture {
        parts: Parts::From(0),
        form: Form::Index,
    };
    /// Reads the option; `None` when it is none.
    pub fn read(values: Word, kind: Word, pattern: &Pattern, tables: &Tables) -> Option<Capture> {
        let form = match kind.as_atom()? {
            atoms::INDEX => Form::Index,
            atoms::LIST => Form::List,
            atoms::BINARY => Form::Binary,
            _ => return None,
        };
        let parts = match values.as_atom().map(|a| tables.atoms.text(a)) {
            Some("all") => Parts::From(0),
            Some("all_but_first") => Parts::From(1),
            Some("first") => Parts::These(vec![Part::Group(0)]),
            Some("none") => Parts::None,
            Some("all_names") => all_names(pattern),
            Some(_) => return None,
            None if values.is_nil() => Parts::None,
            None => Parts::These(listed(values, pattern, tables)?),
        };
        Some(Capture { parts, form })
    }
}

fn all_names(pattern: &Pattern) -> Parts {
    if pattern.names.is_empty() {
        return Parts::None;
    }
    let mut parts = Vec::new();
    let mut last: Option<&[u8]> = None;
    for (group, name) in &pattern.names {
        if !pattern.dupnames {
            parts.push(Part::Group(*group as usize));
        } else if last != Some(name) {
            parts.push(named(pattern, name));
        }
        last = Some(name);
    }
    Parts::These(parts)
}

fn named(pattern: &Pattern, name: &[u8]) -> Part {
    // A C string ends at the first zero.
    let name = name.split(|b| *b == 0).next().unwrap_or(&[]);
    let mut groups = pattern.names.iter().filter(|n| n.1 == name);
    let groups: Vec<usize> = if pattern.dupnames {
        groups.map(|n| n.0 as usize).collect()
    } else {
        groups.next().map(|n| n.0 as usize).into_iter().collect()
    };
    match groups.as_slice() {
        [] => Part::Unknown,
        [one] => Part::Group(*one),
        _ => Part::AnyOf(groups),
    }
}

fn listed(list: Word, pattern: &Pattern, tables: &Tables) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut at = list;
    while let Some((item, tail)) = at.as_cons() {
        at = tail;
        parts.push(if let Some(n) = int(item) {
            Part::Group(n as usize)
        } else if let Some(a) = item.as_atom() {
            named(pattern, tables.atoms.text(a).as_bytes())
        } else if item.is_bitstring() || item.is_list() {
            named(pattern, &super::iodata(item)?)
        } else {
            return None;
        });
    }
    at.is_nil().then_some(parts)
}

/// The subject of a match.
pub struct Subject<'a> {
    /// Its term.
    pub term: Word,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The bytes are those of the term, which is a binary.
    pub in_term: bool,
}

/// The result of a match.
pub fn result(ctx: &mut Ctx, capture: &Capture, s: &Subject, groups: &[(usize, usize)]) -> Word {
    let place = |n: usize| groups.get(n).copied();
    let found = |n: usize| place(n).filter(|g| g.0 != UNSET);
    let wanted: Vec<Option<(usize, usize)>> = match &capture.parts {
        Parts::None => return super::known(ctx, "match"),
        Parts::From(first) => groups.iter().skip(*first).map(|g| Some(*g)).collect(),
        Parts::These(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Group(n) => place(*n),
                Part::AnyOf(several) => several.iter().find_map(|n| found(*n)),
                Part::Unknown => None,
            })
            .collect(),
    };
    let mut list = Word::NIL;
    for g in wanted.iter().rev() {
        let g = g.filter(|g| g.0 != UNSET);
        let item = match capture.form {
            Form::Index => {
                let (at, len) = match g {
                    // `\K` in an assertion can put the start behind the end.
                    Some((a, b)) => (a as i64, b as i64 - a as i64),
                    None => (-1, 0),
                };
                ctx.tuple(&[Word::fixnum(at), Word::fixnum(len)])
            }
            Form::List => {
                let bytes = g.and_then(|(a, b)| s.bytes.get(a..b)).unwrap_or(&[]);
                list_of_bytes(ctx, bytes, Word::NIL)
            }
            Form::Binary => match g.filter(|(a, b)| b >= a) {
                Some((a, b)) if s.in_term => {
                    bits::sub_bits(ctx, s.term, a as u64 * 8, (b - a) as u64 * 8)
                }
                Some((a, b)) => ctx.binary(&s.bytes[a..b]),
                None => ctx.binary(&[]),
            },
        };
        list = ctx.cons(item, list);
    }
    let tag = super::known(ctx, "match");
    ctx.tuple(&[tag, list])
}

/// The bytes of a binary that starts at a byte.
pub fn aligned<'a>(w: Word) -> Option<&'a [u8]> {
    BitsView::of(w).filter(|_| w.is_bitstring())?.as_bytes()
}
