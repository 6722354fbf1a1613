//! The text of terms as OTP's `io_lib` writes them: `~w` and `~0p`.
//!
//! A walk with a stack of its own, so that deep terms cost no stack, which stops at a limit of bytes. (What the emulator itself prints, `erlang:display/1`
//! and crash messages, is another format: `beamr_term::format`.)

use beamr_term::arith::Int;
use beamr_term::bits::BitsView;
use beamr_term::format::{FormatLimit, format_term};
use beamr_term::header::Subtag;
use beamr_term::number_text::push_short;
use beamr_term::{Tables, Word, big, maps};

/// How a term is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextStyle {
    /// `~w`: lists of integers and binaries as numbers.
    Write,
    /// `~0p`: printable Latin-1 as text, on one line.
    Print,
}

enum Task {
    Term(Word),
    Text(&'static str),
    /// The rest of a list, from this cell on.
    Cells(Word),
    /// The elements of a tuple, from this one on.
    Elements(Word, usize),
    Pairs(Vec<(Word, Word)>),
    /// The fields of a native record, from this one on.
    Fields(Word, usize),
}

struct Writer<'a> {
    tables: &'a Tables,
    style: TextStyle,
    out: String,
    tasks: Vec<Task>,
    limit: usize,
}

/// The text of a term; one longer than `limit` bytes is cut and ends in `...`.
pub(crate) fn text_of(tables: &Tables, term: Word, style: TextStyle, limit: usize) -> String {
    let mut w = Writer {
        tables,
        style,
        out: String::new(),
        tasks: vec![Task::Term(term)],
        limit,
    };
    while let Some(task) = w.tasks.pop() {
        w.run(task);
        if w.out.len() > limit {
            let mut end = limit;
            while !w.out.is_char_boundary(end) {
                end -= 1;
            }
            w.out.truncate(end);
            w.out.push_str("...");
            break;
        }
    }
    w.out
}

impl Writer<'_> {
    fn run(&mut self, task: Task) {
        match task {
            Task::Text(t) => self.out.push_str(t),
            Task::Term(w) => self.term(w),
            Task::Cells(cell) => {
                let tail = cell.tail();
                if tail.is_cons() {
                    self.tasks.push(Task::Cells(tail));
                    self.tasks.push(Task::Text(","));
                } else if !tail.is_nil() {
                    self.tasks.push(Task::Term(tail));
                    self.tasks.push(Task::Text("|"));
                }
                self.term(cell.head());
            }
            Task::Elements(tuple, i) => {
                let elements = tuple.as_tuple().unwrap_or_default();
                if let Some(w) = elements.get(i) {
                    if i + 1 < elements.len() {
                        self.tasks.push(Task::Elements(tuple, i + 1));
                        self.tasks.push(Task::Text(","));
                    }
                    self.term(*w);
                }
            }
            Task::Pairs(mut pairs) => {
                if let Some((k, v)) = pairs.pop() {
                    if !pairs.is_empty() {
                        self.tasks.push(Task::Pairs(pairs));
                        self.tasks.push(Task::Text(","));
                    }
                    self.tasks.push(Task::Term(v));
                    self.tasks.push(Task::Text(" => "));
                    self.term(k);
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
                    self.tasks.push(Task::Text(" = "));
                    self.term(*name);
                }
            }
        }
    }

    fn term(&mut self, w: Word) {
        if let Some(atom) = w.as_atom() {
            return push_atom(&mut self.out, self.tables.atoms.text(atom));
        }
        if w.is_nil() {
            return self.out.push_str("[]");
        }
        if w.is_cons() {
            if self.style == TextStyle::Print && is_text(w) {
                return self.string(w);
            }
            self.out.push('[');
            self.tasks.push(Task::Text("]"));
            return self.tasks.push(Task::Cells(w));
        }
        let mut buffer = 0;
        if let Some(i) = Int::of(w, &mut buffer) {
            if i.negative {
                self.out.push('-');
            }
            let mut digits = Vec::new();
            big::to_digits(&mut digits, i.magnitude, 10, 1);
            return self.out.push_str(&String::from_utf8_lossy(&digits));
        }
        match w.subtag() {
            Some(Subtag::Tuple) => {
                self.out.push('{');
                self.tasks.push(Task::Text("}"));
                self.tasks.push(Task::Elements(w, 0));
            }
            Some(Subtag::Float) => {
                push_short(&mut self.out, f64::from_bits(w.field(1)));
            }
            Some(Subtag::FlatMap | Subtag::HashMap) => {
                self.out.push_str("#{");
                self.tasks.push(Task::Text("}"));
                let mut pairs: Vec<(Word, Word)> = maps::iter(w).collect();
                pairs.reverse();
                self.tasks.push(Task::Pairs(pairs));
            }
            Some(Subtag::Record) => {
                self.out.push('#');
                let names = w.term_field(1).as_tuple().unwrap_or_default();
                for (name, end) in names.iter().zip([':', '{']) {
                    if let Some(atom) = name.as_atom() {
                        push_atom(&mut self.out, self.tables.atoms.text(atom));
                    }
                    self.out.push(end);
                }
                self.tasks.push(Task::Text("}"));
                self.tasks.push(Task::Fields(w, 0));
            }
            _ if w.is_bitstring() => self.bits(w),
            // Identifiers and funs: as the emulator writes them.
            _ => {
                let text = format_term(self.tables, w, FormatLimit::NONE);
                self.out.push_str(&String::from_utf8_lossy(&text));
            }
        }
    }

    fn string(&mut self, mut list: Word) {
        self.out.push('"');
        while let Some((head, tail)) = list.as_cons() {
            let c = head.as_small().and_then(|c| u8::try_from(c).ok());
            push_char(&mut self.out, char::from(c.unwrap_or(b'?')), '"');
            list = tail;
            if self.out.len() > self.limit {
                return;
            }
        }
        self.out.push('"');
    }

    fn bits(&mut self, w: Word) {
        let Some(view) = BitsView::of(w) else { return };
        self.out.push_str("<<");
        let n = view.byte_len();
        let text = self.style == TextStyle::Print
            && view.is_binary()
            && n > 0
            && (0..n).all(|i| is_text_byte(view.byte(i)));
        if text {
            self.out.push('"');
        }
        for i in 0..n {
            if text {
                push_char(&mut self.out, char::from(view.byte(i)), '"');
            } else {
                if i > 0 {
                    self.out.push(',');
                }
                self.out.push_str(&view.byte(i).to_string());
            }
            if self.out.len() > self.limit {
                return;
            }
        }
        let rest = view.bit_size % 8;
        if rest != 0 {
            if n > 0 {
                self.out.push(',');
            }
            let value = view.get_bits(view.bit_size - rest, rest);
            self.out.push_str(&format!("{value}:{rest}"));
        }
        self.out.push_str(if text { "\">>" } else { ">>" });
    }
}

/// Printable Latin-1, and the control characters that have an escape.
fn is_text_byte(b: u8) -> bool {
    matches!(b, 8..=13 | 27 | 32..=126 | 160..=255)
}

fn is_text(mut list: Word) -> bool {
    while let Some((head, tail)) = list.as_cons() {
        match head.as_small().map(u8::try_from) {
            Some(Ok(b)) if is_text_byte(b) => list = tail,
            _ => return false,
        }
    }
    list.is_nil()
}

/// A character between quotes of a kind.
fn push_char(out: &mut String, c: char, quote: char) {
    let escape = match c {
        '\n' => 'n',
        '\t' => 't',
        '\x0b' => 'v',
        '\x08' => 'b',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '\x7f' => 'd',
        '\\' => '\\',
        c if c == quote => quote,
        '\0'..' ' | '\u{80}'..'\u{a0}' => {
            return out.push_str(&format!("\\{:03o}", u32::from(c)));
        }
        c if u32::from(c) > 255 => {
            return out.push_str(&format!("\\x{{{:X}}}", u32::from(c)));
        }
        c => return out.push(c),
    };
    out.push('\\');
    out.push(escape);
}

const RESERVED: [&str; 27] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "not", "of", "or", "orelse", "receive",
    "rem", "try", "when", "xor",
];

/// An atom, quoted where Erlang's syntax wants it.
fn push_atom(out: &mut String, text: &str) {
    let small = |c: char| matches!(c, 'a'..='z' | 'ß'..='ö' | 'ø'..='ÿ');
    let plain = |c: char| {
        small(c) || matches!(c, 'A'..='Z' | 'À'..='Ö' | 'Ø'..='Þ' | '0'..='9' | '_' | '@')
    };
    if text.starts_with(small) && text.chars().all(plain) && !RESERVED.contains(&text) {
        return out.push_str(text);
    }
    out.push('\'');
    for c in text.chars() {
        push_char(out, c, '\'');
    }
    out.push('\'');
}
