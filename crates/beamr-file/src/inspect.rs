//! A module as text, for people: chunks, tables, code.
//!
//! The listing names what operands refer to: atoms, functions of imports and
//! labels, source lines, types. Terms (literals, attributes, compile information)
//! are bytes here; the caller gives a function that prints them, or they are
//! shown by size only.

use std::io::{self, Write};

use crate::code::{AllocKind, Arg, Instr};
use crate::container::BeamFile;
use crate::module::Module;
use crate::op::{Kind, Op};
use crate::types::{TypeEntry, type_bits};

/// Prints a term of the external format, or gives `None`.
pub type TermText<'a> = &'a dyn Fn(&[u8]) -> Option<String>;

/// Writes everything that is known of a module.
pub fn inspect(
    file: &BeamFile,
    module: &Module,
    term: TermText<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "module {}", quoted(&module.name))?;
    write!(out, "md5 ")?;
    for b in module.md5 {
        write!(out, "{b:02x}")?;
    }
    writeln!(out)?;
    match compiler_version(&module.compile_info) {
        Some(version) => match otp_release(&version) {
            Some(release) => writeln!(out, "compiler {version} (OTP {release})")?,
            None => writeln!(out, "compiler {version}")?,
        },
        None => writeln!(out, "compiler unknown")?,
    }
    let code = &module.code;
    writeln!(
        out,
        "code: {} functions, {} labels, {} instructions, highest operation {}",
        code.function_count,
        code.label_count,
        code.instrs.len(),
        code.opcode_max
    )?;
    writeln!(
        out,
        "\nchunks:{}",
        if file.compressed {
            " (file gzip'ed)"
        } else {
            ""
        }
    )?;
    for chunk in &file.chunks {
        writeln!(out, "  {} {}", chunk.id, chunk.data.len())?;
    }
    if !module.attributes.is_empty() {
        writeln!(
            out,
            "\nattributes: {}",
            bytes_text(&module.attributes, term)
        )?;
    }
    if !module.compile_info.is_empty() {
        writeln!(
            out,
            "compile info: {}",
            bytes_text(&module.compile_info, term)
        )?;
    }
    tables(module, term, out)?;
    writeln!(out, "\ncode:")?;
    disassemble(module, term, out)
}

fn tables(module: &Module, term: TermText<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nexports:")?;
    for e in &module.exports {
        writeln!(
            out,
            "  {}/{} L{}",
            name(module, e.function),
            e.arity,
            e.label
        )?;
    }
    writeln!(out, "\nimports:")?;
    for (n, i) in module.imports.iter().enumerate() {
        let (m, f) = (name(module, i.module), name(module, i.function));
        writeln!(out, "  {n} {m}:{f}/{}", i.arity)?;
    }
    if !module.lambdas.is_empty() {
        writeln!(out, "\nlambdas:")?;
        for (n, l) in module.lambdas.iter().enumerate() {
            let f = name(module, l.function);
            writeln!(
                out,
                "  {n} {f}/{} L{} index {} free {} uniq {}",
                l.arity, l.label, l.index, l.num_free, l.old_uniq
            )?;
        }
    }
    if !module.literals.is_empty() {
        writeln!(out, "\nliterals:")?;
        for (n, literal) in module.literals.iter().enumerate() {
            writeln!(out, "  {n} {}", bytes_text(literal, term))?;
        }
    }
    if module.types.version != 0 {
        writeln!(out, "\ntypes (version {}):", module.types.version)?;
        for (n, ty) in module.types.entries.iter().enumerate() {
            writeln!(out, "  {n} {}", type_text(ty))?;
        }
    }
    if !module.records.records.is_empty() {
        writeln!(out, "\nnative records:")?;
        for r in &module.records.records {
            write!(
                out,
                "  #{} exported {}",
                name(module, r.name),
                name(module, r.exported)
            )?;
            for field in module.records.fields(r) {
                write!(out, " {}", name(module, field.name))?;
                match field.default {
                    Some(Arg::Literal(n)) => write!(out, "=literal {n}")?,
                    Some(Arg::A(n)) => write!(out, "={}", name(module, n))?,
                    Some(Arg::I(n)) => write!(out, "={n}")?,
                    Some(other) => write!(out, "={other:?}")?,
                    None => {}
                }
            }
            writeln!(out)?;
        }
    }
    if !module.strings.is_empty() {
        writeln!(out, "\nstrings: \"{}\"", module.strings.escape_ascii())?;
    }
    Ok(())
}

/// Writes the code alone.
pub fn disassemble(module: &Module, term: TermText<'_>, out: &mut impl Write) -> io::Result<()> {
    let code = &module.code;
    // The function of each label that heads one, for calls.
    let mut entries = std::collections::HashMap::new();
    for pair in code.instrs.windows(2) {
        if let (Op::FuncInfo, Op::Label) = (pair[0].op, pair[1].op)
            && let (&[_, Arg::A(f), Arg::U(arity)], &[Arg::U(label)]) =
                (code.args(&pair[0]), code.args(&pair[1]))
        {
            entries.insert(label, (f, arity));
        }
    }
    let printer = Printer {
        module,
        term,
        entries,
    };
    for (i, instr) in code.instrs.iter().enumerate() {
        if instr.op == Op::Label {
            let Some(Arg::U(label)) = code.args(instr).first().copied() else {
                continue;
            };
            if let Some(&(f, arity)) = printer.entries.get(&label) {
                writeln!(out, "\n{}/{arity}:", name(module, f))?;
            }
            writeln!(out, " L{label}:")?;
            continue;
        }
        let text = printer.instr(instr);
        writeln!(out, "  {:6} {:4} {text}", instr.offset, i)?;
    }
    Ok(())
}

struct Printer<'a> {
    module: &'a Module,
    term: TermText<'a>,
    entries: std::collections::HashMap<u64, (u32, u64)>,
}

impl Printer<'_> {
    fn instr(&self, instr: &Instr) -> String {
        let args = self.module.code.args(instr);
        let mut text = instr.op.name().to_owned();
        for (n, (&arg, &kind)) in args.iter().zip(instr.op.info().operands).enumerate() {
            text.push_str(if n == 0 { " " } else { ", " });
            text.push_str(&self.arg(instr.op, arg, kind));
        }
        if let (Op::BsPutString, &[Arg::U(len), Arg::U(at)]) = (instr.op, args) {
            text.push_str(&self.string(at, len));
        }
        if let (Op::BsMatchString, &[.., Arg::U(bits), Arg::U(at)]) = (instr.op, args) {
            text.push_str(&self.string(at, bits.div_ceil(8)));
        }
        text
    }

    fn string(&self, at: u64, len: u64) -> String {
        let end = at.saturating_add(len).min(usize::MAX as u64) as usize;
        match self.module.strings.get(at as usize..end) {
            Some(bytes) => format!(" \"{}\"", bytes.escape_ascii()),
            None => String::new(),
        }
    }

    fn arg(&self, op: Op, arg: Arg, kind: Kind) -> String {
        let m = self.module;
        match (kind, arg) {
            (Kind::Import, Arg::U(n)) => match m.imports.get(n as usize) {
                Some(i) => {
                    format!("{}:{}/{}", name(m, i.module), name(m, i.function), i.arity)
                }
                None => format!("import {n}"),
            },
            (Kind::Lambda, Arg::U(n)) => match m.lambdas.get(n as usize) {
                Some(l) => format!("fun {}/{}", name(m, l.function), l.arity),
                None => format!("lambda {n}"),
            },
            (Kind::Line, Arg::U(n)) => match m.lines.entries.get(n as usize) {
                Some(e) if n != 0 => match (e.file as usize).checked_sub(1) {
                    None => format!("{}.erl:{}", m.name, e.line),
                    Some(f) => {
                        let file = m.lines.files.get(f).map(|f| String::from_utf8_lossy(f));
                        format!("{}:{}", file.unwrap_or_default(), e.line)
                    }
                },
                _ => n.to_string(),
            },
            (Kind::Label, Arg::F(label))
                if matches!(op, Op::Call | Op::CallLast | Op::CallOnly) =>
            {
                match self.entries.get(&(label as u64)) {
                    Some(&(f, arity)) => format!("{}/{arity}", name(m, f)),
                    None => format!("L{label}"),
                }
            }
            (Kind::Fail, Arg::F(0)) => "-".to_owned(),
            _ => self.plain(arg),
        }
    }

    fn plain(&self, arg: Arg) -> String {
        let m = self.module;
        match arg {
            Arg::U(n) => n.to_string(),
            Arg::I(n) => n.to_string(),
            Arg::Huge(n) | Arg::Big(n) => {
                let big = m.code.big(n);
                let mut text = String::from(if big.negative { "-16#" } else { "16#" });
                for (i, limb) in big.limbs.iter().rev().enumerate() {
                    let digits = if i == 0 {
                        format!("{limb:X}")
                    } else {
                        format!("{limb:016X}")
                    };
                    text.push_str(&digits);
                }
                text
            }
            Arg::A(n) => name(m, n),
            Arg::X(n) => format!("x{n}"),
            Arg::Y(n) => format!("y{n}"),
            Arg::Fr(n) => format!("fr{n}"),
            Arg::F(0) => "-".to_owned(),
            Arg::F(n) => format!("L{n}"),
            Arg::Char(n) => format!("$\\x{{{n:x}}}"),
            Arg::Float(bits) => format!("{:?}", f64::from_bits(bits)),
            Arg::Literal(n) => match m.literals.get(n) {
                Some(bytes) => format!("literal {n} {}", shorten(bytes_text(bytes, self.term))),
                None => format!("literal {n}"),
            },
            Arg::TypedX { reg, ty } => format!("x{reg}:{}", self.ty(ty)),
            Arg::TypedY { reg, ty } => format!("y{reg}:{}", self.ty(ty)),
            Arg::List(span) => {
                let items: Vec<String> = m.code.list(span).iter().map(|&a| self.plain(a)).collect();
                format!("[{}]", items.join(", "))
            }
            Arg::Alloc(span) => {
                let items: Vec<String> = m
                    .code
                    .alloc(span)
                    .iter()
                    .map(|(kind, n)| {
                        let kind = match kind {
                            AllocKind::Words => "words",
                            AllocKind::Floats => "floats",
                            AllocKind::Funs => "funs",
                        };
                        format!("{kind} {n}")
                    })
                    .collect();
                format!("{{{}}}", items.join(", "))
            }
        }
    }

    fn ty(&self, index: u32) -> String {
        match self.module.types.get(index) {
            Some(ty) => type_text(ty),
            None => format!("type {index}"),
        }
    }
}

/// A type as text, like `integer(0..255)|nil`.
fn type_text(ty: &TypeEntry) -> String {
    const NAMES: [(u16, &str); 13] = [
        (type_bits::ATOM, "atom"),
        (type_bits::BITSTRING, "bitstring"),
        (type_bits::CONS, "cons"),
        (type_bits::FLOAT, "float"),
        (type_bits::FUN, "fun"),
        (type_bits::INTEGER, "integer"),
        (type_bits::MAP, "map"),
        (type_bits::NIL, "nil"),
        (type_bits::PID, "pid"),
        (type_bits::PORT, "port"),
        (type_bits::REFERENCE, "reference"),
        (type_bits::TUPLE, "tuple"),
        (type_bits::RECORD, "record"),
    ];
    // Older versions have no bit for native records.
    if ty.bits | type_bits::RECORD == type_bits::ANY {
        return "any".to_owned();
    }
    let mut parts = Vec::new();
    for (bit, name) in NAMES {
        if ty.bits & bit == 0 {
            continue;
        }
        let bound = |b: Option<i64>| b.map_or(String::new(), |b| b.to_string());
        parts.push(match bit {
            type_bits::INTEGER if ty.lower.is_some() || ty.upper.is_some() => {
                format!("integer({}..{})", bound(ty.lower), bound(ty.upper))
            }
            type_bits::BITSTRING if ty.unit != 1 => format!("bitstring({})", ty.unit),
            _ => name.to_owned(),
        });
    }
    parts.join("|")
}

fn bytes_text(bytes: &[u8], term: TermText<'_>) -> String {
    term(bytes).unwrap_or_else(|| format!("({} bytes)", bytes.len()))
}

fn shorten(text: String) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

fn name(module: &Module, atom: u32) -> String {
    match atom {
        0 => "[]".to_owned(),
        n => quoted(module.atom(n)),
    }
}

/// An atom as Erlang writes it.
fn quoted(atom: &str) -> String {
    let plain = atom.starts_with(|c: char| c.is_ascii_lowercase())
        && atom
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@');
    if plain {
        return atom.to_owned();
    }
    let mut out = String::from("'");
    for c in atom.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\x{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The version of the compiler that wrote a file: the value of `version` in the
/// compile information.
pub fn compiler_version(compile_info: &[u8]) -> Option<String> {
    // {version, String}: the atom, then a string of the external format.
    let key = b"version\x6b";
    let at = compile_info.windows(key.len()).position(|w| w == key)? + key.len();
    let len = u16::from_be_bytes([*compile_info.get(at)?, *compile_info.get(at + 1)?]) as usize;
    let text = compile_info.get(at + 2..at + 2 + len)?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// The OTP release whose compiler has a version.
pub fn otp_release(compiler: &str) -> Option<u32> {
    let mut parts = compiler.split('.').map_while(|p| p.parse::<u32>().ok());
    match (parts.next()?, parts.next().unwrap_or(0)) {
        (7, 4..=5) => Some(22),
        (7, 6) => Some(23),
        (8, 0..=1) => Some(24),
        (8, 2) => Some(25),
        (8, 3..=4) => Some(26),
        (8, 5..=6) => Some(27),
        (9, _) => Some(28),
        (10, _) => Some(29),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_are_quoted_where_erlang_does() {
        for (atom, text) in [
            ("ok", "ok"),
            ("a@B_1", "a@B_1"),
            ("Elixir.X", "'Elixir.X'"),
            ("", "''"),
            ("it's", "'it\\'s'"),
            ("-f/1-fun-0-", "'-f/1-fun-0-'"),
        ] {
            assert_eq!(quoted(atom), text);
        }
    }

    #[test]
    fn versions() {
        let info = b"\x83\x6c\0\0\0\x01\x68\x02\x77\x07version\x6b\0\x058.2.3\x6a";
        assert_eq!(compiler_version(info).as_deref(), Some("8.2.3"));
        assert_eq!(otp_release("8.2.3"), Some(25));
        assert_eq!(otp_release("10.0.7"), Some(29));
        assert_eq!(otp_release("x"), None);
        assert_eq!(compiler_version(b"version\x6b\0"), None);
    }
}
