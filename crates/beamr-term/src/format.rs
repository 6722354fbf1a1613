//! The emulator's own printing of terms: what `erlang:display/1` and its crash messages show.
//!
//! `{ok,"abc",<<1,2>>,#{a=>1},<0.1.0>,#Ref<0.1.2.3>,fun m:f/1}`, without spaces, floats as
//! `1.500000e+00`, lists of printable Latin-1 as strings. It is not the printing of `io_lib`,
//! which is Erlang code.
//!
//! [`Printer`] is a walk with an explicit stack: it can stop between two steps, costs no stack
//! for deep terms, and ends early at a limit of items (as the emulator counts them). [`write_term`] and
//! [`format_term`] run it to its end under a limit of bytes as well.

use std::io;

use crate::arith::Int;
use crate::atom::Atom;
use crate::big;
use crate::bits::BitsView;
use crate::header::{EXTERNAL_PID, EXTERNAL_PORT, EXTERNAL_REF, Subtag};
use crate::ids;
use crate::number_text::{FloatFormat, float_text, push_u64};
use crate::tables::Tables;
use crate::word::Word;

/// How much to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormatLimit {
    /// Terms, characters of strings and bytes of binaries; when they are used up `... ` ends the
    /// text (the precision of the emulator's `%T`).
    pub items: i64,
    /// Bytes of text; what is longer is cut and ends in `...`.
    pub bytes: usize,
}

impl FormatLimit {
    /// No limit.
    pub const NONE: FormatLimit = FormatLimit {
        items: i64::MAX,
        bytes: usize::MAX,
    };
    /// More than anybody reads: what is longer is cut. A term that shares much inside may be endless in print.
    pub const LARGE: FormatLimit = FormatLimit {
        items: 1 << 24,
        bytes: 64 << 20,
    };
    /// A limit of items.
    pub const fn items(items: i64) -> FormatLimit {
        FormatLimit {
            items,
            bytes: usize::MAX,
        }
    }
}

/// What is still to be printed.
#[derive(Clone, Copy, Debug)]
enum Task {
    Term(Word),
    Text(&'static str),
    /// The rest of a list, from this cell on.
    Cells(Word),
    /// The rest of a list of characters.
    Characters(Word),
    /// A tuple's elements from this one on.
    Elements(Word, usize),
    /// A bitstring's bytes from this one on.
    Bytes {
        bits: Word,
        from: usize,
        printable: bool,
    },
    /// A flat map's pairs from this one on.
    Pairs(Word, usize),
    /// A native record's fields from this one on.
    Fields(Word, usize),
    /// A map node below the root.
    Node(Word),
    /// A map node's children from this one on.
    Children(Word, usize),
}

/// A term being printed.
#[derive(Debug)]
pub struct Printer {
    tasks: Vec<Task>,
    items: i64,
}

impl Printer {
    /// Prints `term` within `items` items (see [`FormatLimit::items`]).
    pub fn new(term: Word, items: i64) -> Printer {
        Printer {
            tasks: vec![Task::Term(term)],
            items,
        }
    }

    /// Appends text until the end (true) or until the budget is used up (false). It takes about
    /// one a term or character from the budget.
    pub fn step(&mut self, tables: &Tables, out: &mut Vec<u8>, budget: &mut i64) -> bool {
        while let Some(task) = self.tasks.pop() {
            if self.run(task, tables, out, budget).is_none() {
                self.tasks.clear();
                break;
            }
            if *budget <= 0 && !self.tasks.is_empty() {
                return false;
            }
        }
        if self.items <= 0 {
            out.extend_from_slice(b"... ");
        }
        true
    }

    /// Shows every word that the walk holds.
    pub fn visit_roots(&mut self, mut visit: impl FnMut(&mut Word)) {
        for task in &mut self.tasks {
            match task {
                Task::Text(_) => {}
                Task::Term(w)
                | Task::Cells(w)
                | Task::Characters(w)
                | Task::Elements(w, _)
                | Task::Bytes { bits: w, .. }
                | Task::Pairs(w, _)
                | Task::Fields(w, _)
                | Task::Node(w)
                | Task::Children(w, _) => visit(w),
            }
        }
    }

    /// Takes an item; `None` when there was none left.
    fn item(&mut self) -> Option<()> {
        self.items = self.items.saturating_sub(1);
        (self.items >= 0).then_some(())
    }

    /// One task; `None` when the items are used up.
    fn run(
        &mut self,
        task: Task,
        tables: &Tables,
        out: &mut Vec<u8>,
        budget: &mut i64,
    ) -> Option<()> {
        *budget -= 1;
        match task {
            Task::Text(text) => out.extend_from_slice(text.as_bytes()),
            Task::Term(w) => self.term(w, tables, out, budget)?,
            Task::Cells(cell) => {
                let (head, tail) = (cell.head(), cell.tail());
                if tail.is_cons() {
                    self.tasks.push(Task::Cells(tail));
                    self.tasks.push(Task::Text(","));
                } else if !tail.is_nil() {
                    self.tasks.push(Task::Term(tail));
                    self.tasks.push(Task::Text("|"));
                }
                self.term(head, tables, out, budget)?;
            }
            Task::Characters(mut list) => {
                while let Some((head, tail)) = list.as_cons() {
                    self.item()?;
                    match head.small_value() as u8 {
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'"' => out.extend_from_slice(b"\\\""),
                        c => out.push(c),
                    }
                    list = tail;
                    *budget -= 1;
                    if *budget <= 0 {
                        self.tasks.push(Task::Characters(list));
                        return Some(());
                    }
                }
                out.push(b'"');
            }
            Task::Elements(tuple, i) => {
                let elements = tuple.as_tuple().unwrap_or_default();
                if let Some(w) = elements.get(i) {
                    if i + 1 < elements.len() {
                        self.tasks.push(Task::Elements(tuple, i + 1));
                        self.tasks.push(Task::Text(","));
                    }
                    self.term(*w, tables, out, budget)?;
                }
            }
            Task::Bytes {
                bits,
                from,
                printable,
            } => self.bytes(bits, from, printable, out, budget)?,
            Task::Pairs(map, i) => {
                let keys = map.term_field(1).as_tuple().unwrap_or_default();
                if let Some(key) = keys.get(i) {
                    if i + 1 < keys.len() {
                        self.tasks.push(Task::Pairs(map, i + 1));
                        self.tasks.push(Task::Text(","));
                    }
                    self.tasks.push(Task::Term(map.term_field(i + 2)));
                    self.tasks.push(Task::Text("=>"));
                    self.term(*key, tables, out, budget)?;
                }
            }
            Task::Fields(record, i) => {
                let names = record.term_field(1).as_tuple().unwrap_or_default();
                let n = record.header().arity() - 1;
                if let Some(name) = names.get(i + 3)
                    && i < n
                {
                    if i + 1 < n {
                        self.tasks.push(Task::Fields(record, i + 1));
                        self.tasks.push(Task::Text(","));
                    }
                    self.tasks.push(Task::Term(record.term_field(i + 2)));
                    self.tasks.push(Task::Text("="));
                    self.term(*name, tables, out, budget)?;
                }
            }
            Task::Node(node) => {
                self.item()?;
                self.node(node, out);
            }
            Task::Children(node, i) => {
                let n = node.header().arity() - 2;
                if i < n {
                    if i + 1 < n {
                        self.tasks.push(Task::Children(node, i + 1));
                        self.tasks.push(Task::Text(","));
                    }
                    let child = node.term_field(i + 3);
                    if child.is_cons() {
                        self.term(child, tables, out, budget)?;
                    } else {
                        self.tasks.push(Task::Node(child));
                    }
                }
            }
        }
        Some(())
    }

    /// `<bitmap>{` and the children of a map node.
    fn node(&mut self, node: Word, out: &mut Vec<u8>) {
        out.push(b'<');
        let at = out.len();
        push_u64(out, node.term_field(2).small_value() as u64, 16);
        out[at..].make_ascii_lowercase();
        out.extend_from_slice(b">{");
        self.tasks.push(Task::Text("}"));
        self.tasks.push(Task::Children(node, 0));
    }

    /// Prints a term, or its beginning, and leaves the rest as tasks.
    fn term(
        &mut self,
        w: Word,
        tables: &Tables,
        out: &mut Vec<u8>,
        budget: &mut i64,
    ) -> Option<()> {
        self.item()?;
        if let Some(v) = w.as_small() {
            push_i64(out, v);
            return Some(());
        }
        if let Some(atom) = w.as_atom() {
            return self.atom(atom, tables, out);
        }
        if w.is_nil() {
            out.extend_from_slice(b"[]");
            return Some(());
        }
        if w.is_cons() {
            if is_printable(w, budget) {
                out.push(b'"');
                self.tasks.push(Task::Characters(w));
            } else {
                out.push(b'[');
                self.tasks.push(Task::Text("]"));
                self.tasks.push(Task::Cells(w));
            }
            return Some(());
        }
        if w.is_local_pid() {
            pid(out, 0, w);
            return Some(());
        }
        if w.is_local_port() {
            port(out, 0, w);
            return Some(());
        }
        if w.is_none() || !w.is_boxed() {
            out.extend_from_slice(if w.is_none() { b"<TNV>" } else { b"<unknown>" });
            return Some(());
        }
        match w.header().subtag() {
            Subtag::Tuple => {
                out.push(b'{');
                self.tasks.push(Task::Text("}"));
                self.tasks.push(Task::Elements(w, 0));
            }
            Subtag::PosBig | Subtag::NegBig => {
                let mut buffer = 0;
                if let Some(i) = Int::of(w, &mut buffer) {
                    if i.negative {
                        out.push(b'-');
                    }
                    big::to_digits(out, i.magnitude, 10, 1);
                }
            }
            Subtag::Float => {
                let f = f64::from_bits(w.field(1));
                let text = float_text(f, FloatFormat::Scientific { digits: 6 });
                out.extend_from_slice(text.unwrap_or_default().as_bytes());
            }
            Subtag::Ref => reference(out, 0, w),
            Subtag::External => {
                let channel = u64::from(ids::node_entry(w).name.index());
                match w.field(3) {
                    EXTERNAL_PID => pid(out, channel, w),
                    EXTERNAL_PORT => port(out, channel, w),
                    EXTERNAL_REF => reference(out, channel, w),
                    _ => out.extend_from_slice(b"<unknown>"),
                }
            }
            Subtag::HeapBits | Subtag::RefcBits | Subtag::SubBits => {
                out.extend_from_slice(b"<<");
                let printable = BitsView::of(w).is_some_and(|v| is_printable_binary(&v, budget));
                if printable {
                    out.push(b'"');
                }
                self.tasks.push(Task::Bytes {
                    bits: w,
                    from: 0,
                    printable,
                });
            }
            Subtag::Fun => {
                // SAFETY: word 1 of a fun points to its entry, which outlives the fun.
                let entry = unsafe { &*(w.field(1) as usize as *const crate::FunEntry) };
                out.extend_from_slice(b"#Fun<");
                out.extend_from_slice(tables.atoms.text(entry.module).as_bytes());
                for n in [entry.index, entry.old_uniq] {
                    out.push(b'.');
                    push_u64(out, u64::from(n), 10);
                }
                out.push(b'>');
            }
            Subtag::Export => {
                out.extend_from_slice(b"fun ");
                for (field, end) in [(2, b':'), (3, b'/')] {
                    if let Some(atom) = w.term_field(field).as_atom() {
                        let text = tables.atoms.text(atom);
                        self.items = self.items.saturating_sub(text.len() as i64);
                        push_atom(out, text);
                    }
                    out.push(end);
                }
                push_i64(out, w.term_field(4).small_value());
            }
            Subtag::FlatMap => {
                out.extend_from_slice(b"#{");
                self.tasks.push(Task::Text("}"));
                self.tasks.push(Task::Pairs(w, 0));
            }
            Subtag::HashMap => {
                out.push(b'#');
                self.node(w, out);
            }
            Subtag::Record => {
                out.push(b'#');
                let names = w.term_field(1).as_tuple().unwrap_or_default();
                for (name, end) in names.iter().zip([b':', b'{']) {
                    if let Some(atom) = name.as_atom() {
                        push_atom(out, tables.atoms.text(atom));
                    }
                    out.push(end);
                }
                self.tasks.push(Task::Text("}"));
                self.tasks.push(Task::Fields(w, 0));
            }
            Subtag::Match => out.extend_from_slice(b"#MatchState"),
            Subtag::Reserved => out.extend_from_slice(b"<unknown>"),
        }
        Some(())
    }

    fn atom(&mut self, atom: Atom, tables: &Tables, out: &mut Vec<u8>) -> Option<()> {
        let text = tables.atoms.text(atom);
        push_atom(out, text);
        self.items = self.items.saturating_sub(text.len() as i64);
        (self.items > 0).then_some(())
    }

    fn bytes(
        &mut self,
        bits: Word,
        from: usize,
        printable: bool,
        out: &mut Vec<u8>,
        budget: &mut i64,
    ) -> Option<()> {
        let view = BitsView::of(bits)?;
        for i in from..view.byte_len() {
            let byte = view.byte(i);
            if printable {
                if byte == b'"' {
                    out.push(b'\\');
                }
                out.push(byte);
            } else {
                if i > 0 {
                    out.push(b',');
                }
                push_u64(out, u64::from(byte), 10);
            }
            self.item()?;
            *budget -= 1;
            if *budget <= 0 {
                self.tasks.push(Task::Bytes {
                    bits,
                    from: i + 1,
                    printable,
                });
                return Some(());
            }
        }
        let rest = view.bit_size % 8;
        if rest != 0 {
            if view.byte_len() > 0 {
                out.push(b',');
            }
            push_u64(out, view.get_bits(view.bit_size - rest, rest), 10);
            out.push(b':');
            push_u64(out, rest, 10);
        }
        out.extend_from_slice(if printable { b"\">>" } else { b">>" });
        Some(())
    }
}

fn push_i64(out: &mut Vec<u8>, v: i64) {
    if v < 0 {
        out.push(b'-');
    }
    push_u64(out, v.unsigned_abs(), 10);
}

fn pid(out: &mut Vec<u8>, channel: u64, w: Word) {
    let (number, serial) = ids::pid_parts(w).unwrap_or_default();
    out.push(b'<');
    push_u64(out, channel, 10);
    out.push(b'.');
    push_u64(out, u64::from(number), 10);
    out.push(b'.');
    push_u64(out, u64::from(serial), 10);
    out.push(b'>');
}

fn port(out: &mut Vec<u8>, channel: u64, w: Word) {
    out.extend_from_slice(b"#Port<");
    push_u64(out, channel, 10);
    out.push(b'.');
    push_u64(out, ids::port_number(w).unwrap_or_default(), 10);
    out.push(b'>');
}

fn reference(out: &mut Vec<u8>, channel: u64, w: Word) {
    out.extend_from_slice(b"#Ref<");
    push_u64(out, channel, 10);
    let (numbers, n) = ids::ref_numbers(w).unwrap_or_default();
    for number in numbers[..n].iter().rev() {
        out.push(b'.');
        push_u64(out, u64::from(*number), 10);
    }
    out.push(b'>');
}

/// Whether a list is flat, proper and has only printable Latin-1 characters and spaces.
fn is_printable(list: Word, budget: &mut i64) -> bool {
    let mut rest = list;
    while let Some((head, tail)) = rest.as_cons() {
        *budget -= 1;
        let Some(c) = head.as_small() else {
            return false;
        };
        if !matches!(c, 9 | 10 | 13 | 32..=126 | 160..=255) {
            return false;
        }
        rest = tail;
    }
    rest.is_nil()
}

/// Whether a bitstring is a binary of printable ASCII that is not empty.
fn is_printable_binary(view: &BitsView, budget: &mut i64) -> bool {
    if !view.is_binary() || view.bit_size == 0 {
        return false;
    }
    for i in 0..view.byte_len() {
        if !matches!(view.byte(i), 32..=126) {
            return false;
        }
        if i % 8 == 7 {
            *budget -= 1;
        }
    }
    true
}

/// Appends an atom, quoted unless it begins with a small Latin-1 letter and has only Latin-1
/// letters, digits and underscores.
pub fn push_atom(out: &mut Vec<u8>, text: &str) {
    let small = |c: char| matches!(c, 'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ');
    let plain =
        |c: char| small(c) || matches!(c, 'A'..='Z' | 'À'..='Ö' | 'Ø'..='Þ' | '0'..='9' | '_');
    if text.starts_with(small) && text.chars().all(plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'\'');
    for c in text.chars() {
        let escape = match c {
            '\'' => b'\'',
            '\\' => b'\\',
            '\n' => b'n',
            '\x0c' => b'f',
            '\t' => b't',
            '\r' => b'r',
            '\x08' => b'b',
            '\x0b' => b'v',
            '\0'..=' ' | '\u{80}'..='\u{9f}' if c != ' ' => {
                let c = c as u32 as u8;
                let octal = [c >> 6, c >> 3 & 7, c & 7].map(|d| b'0' + d);
                out.push(b'\\');
                out.extend_from_slice(&octal);
                continue;
            }
            _ => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        out.push(b'\\');
        out.push(escape);
    }
    out.push(b'\'');
}

/// Writes a term's text, piece by piece. Returns whether all of it was written.
pub fn write_term<W: io::Write + ?Sized>(
    out: &mut W,
    tables: &Tables,
    term: Word,
    limit: FormatLimit,
) -> io::Result<bool> {
    /// Bytes of text kept before they are handed on, about.
    const PIECE: i64 = 4096;
    let mut printer = Printer::new(term, limit.items);
    let mut left = limit.bytes;
    let mut piece = Vec::new();
    loop {
        let done = printer.step(tables, &mut piece, &mut { PIECE });
        if piece.len() > left {
            out.write_all(&piece[..left])?;
            out.write_all(b"...")?;
            return Ok(false);
        }
        out.write_all(&piece)?;
        left -= piece.len();
        piece.clear();
        if done {
            return Ok(printer.items > 0);
        }
    }
}

/// A term's text. It is UTF-8 except for characters 160 to 255 of lists, which are single bytes
/// (as the emulator writes them).
pub fn format_term(tables: &Tables, term: Word, limit: FormatLimit) -> Vec<u8> {
    let mut out = Vec::new();
    // Writing into a vector cannot fail.
    let _ = write_term(&mut out, tables, term, limit);
    out
}
