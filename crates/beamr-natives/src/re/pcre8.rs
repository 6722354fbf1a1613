//! PCRE 8, which OTP had before 28: its dialect where PCRE2 refuses or reads it differently, its texts for errors, and
//! where it saw them.

use super::pattern::{self, CompileError};

/// PCRE 8's text for an error that PCRE2 words differently.
fn text(code: i32) -> Option<&'static str> {
    Some(match code {
        107 => "invalid escape sequence in character class",
        109 => "nothing to repeat",
        111 => CHARACTER,
        114 => "missing )",
        118 => "missing ) after comment",
        122 => "unmatched parentheses",
        124 | 126 => MALFORMED,
        125 => LOOKBEHIND,
        127 => "conditional group contains more than two branches",
        128 => ASSERTION,
        129 => "digit expected after (?+",
        119 | 133 => COMPLICATED,
        134 => "character value in \\x{} or \\o{} is too large",
        136 => "\\C not allowed in lookbehind assertion",
        137 => "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u",
        138 => "number after (?C is > 255",
        139 => CALLOUT,
        142 => "syntax error in subpattern name (missing terminator)",
        143 => "two named subpatterns have the same name",
        144 => "group name must start with a non-digit",
        147 => "unknown property name after \\P or \\p",
        148 => LONG_NAME,
        154 => "DEFINE group contains more than one branch",
        155 => "missing opening brace after \\o",
        158 => "(?R or (?[+-]digits must be followed by )",
        161 => "number is too big",
        168 => "\\c must be followed by an ASCII character",
        176 => "name is too long in (*MARK), (*PRUNE), (*SKIP), or (*THEN)",
        178 => "digits missing in \\x{} or \\o{}",
        _ => return None,
    })
}

const CHARACTER: &str = "unrecognized character after (? or (?-";
const MALFORMED: &str = "malformed number or name after (?(";
const LOOKBEHIND: &str = "lookbehind assertion is not fixed length";
const ASSERTION: &str = "assertion expected after (?( or (?(?C)";
const CALLOUT: &str = "closing ) for (?C expected";
const COMPLICATED: &str = "regular expression is too complicated";
const LONG_NAME: &str = "subpattern name is too long (maximum 32 characters)";
const ZERO: &str = "a numbered reference must not be zero";
const BAD_G: &str =
    "\\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number";

/// The longest name of a group.
const NAME: usize = 32;

/// Text and offset of an error.
pub fn error(e: CompileError, p: &[u8]) -> (String, usize) {
    let at = e.offset.min(p.len());
    let before = &p[..at];
    let ends = |s: &[u8]| before.ends_with(s);
    // The error as it is, and what PCRE 8 says instead.
    let plain = text(e.code).map(str::to_owned);
    let (other, offset): (Option<&str>, usize) = match e.code {
        101 | 102 => (None, at),
        130 => (None, last(before, b"[:").map_or(at, |i| i + 2)),
        113 => {
            let open = last(before, b"[.").max(last(before, b"[="));
            (None, open.unwrap_or(at))
        }
        137 | 143 | 147 | 150 | 151 | 165 | 169 | 171 => (None, at.saturating_sub(1)),
        129 | 128 => (None, at + 1),
        115 if ends(b"\\g{0}") => (Some(ZERO), at - 1),
        115 => (None, reference_end(p, at)),
        157 if ends(b"\\g") => (Some(ZERO), at - 1),
        162 if ends(b"\\g{") => (Some(BAD_G), at),
        162 if ends(b"(?<") && p.get(at) == Some(&b'>') => {
            (Some("unrecognized character after (?<"), at)
        }
        125 | 136 => (None, close_of(p, at).unwrap_or(at)),
        _ if is_variable_lookbehind(e.code) => (Some(LOOKBEHIND), close_of(p, at).unwrap_or(at)),
        114 if ends(b"(?(") => (Some(ASSERTION), at),
        114 if ends_in_flags(before) => (Some(CHARACTER), at),
        114 if ends(b"(?C") => (Some(CALLOUT), at),
        182 => (Some(CALLOUT), at),
        142 if last(before, b"(?(R").is_some_and(|i| i + 4 == at) => (Some(MALFORMED), at),
        154 => (None, close_of(p, at.saturating_sub(3)).unwrap_or(at)),
        NAME_CODE => (None, at),
        _ => (None, at),
    };
    let message = match other {
        Some(t) => t.to_owned(),
        None => plain.unwrap_or_else(|| pattern::message(e.code)),
    };
    (message, offset)
}

/// PCRE2's number for names that are too long, which is given here too: its own limit is higher.
const NAME_CODE: i32 = 148;

fn is_variable_lookbehind(code: i32) -> bool {
    code > 190
        && pattern::message(code).starts_with("branch too long in variable-length lookbehind")
}

/// Where `what` stands last.
fn last(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(text, what)
}

/// Whether the text ends in `(?` and option letters.
fn ends_in_flags(text: &[u8]) -> bool {
    let letters = text
        .iter()
        .rev()
        .take_while(|b| b"imsxJUX-".contains(b))
        .count();
    text[..text.len() - letters].ends_with(b"(?")
}

/// Behind a reference to a group that does not exist: its name or number, or the condition that names it.
fn reference_end(p: &[u8], at: usize) -> usize {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let end = at + p[at..].iter().take_while(|b| word(b)).count();
    let head = p[..at].len().saturating_sub(5);
    match memchr::memmem::rfind(&p[head..at], b"(?(") {
        Some(_) => p[end..]
            .iter()
            .position(|b| *b == b')')
            .map_or(end, |n| end + n + 1),
        None => end,
    }
}

/// The parenthesis that closes the group which opens at `at`.
fn close_of(p: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut in_class = false;
    let mut i = at;
    while i < p.len() {
        match p[i] {
            b'\\' => i += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => depth += 1,
            b')' if !in_class => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(i);
                }
            }
            _ => {}
        }
        i += 1;
    }
    None
}

/// The error of a name that PCRE2 allows and PCRE 8 does not.
pub fn long_name(names: &[(u32, Vec<u8>)], p: &[u8]) -> Option<CompileError> {
    let name = &names.iter().find(|n| n.1.len() > NAME)?.1;
    let at = memchr::memmem::find(p, name).unwrap_or(0);
    Some(CompileError {
        code: NAME_CODE,
        offset: at + name.len(),
    })
}

/// The pattern in PCRE2's dialect, when that differs:
///
/// * a hyphen behind `\d` and the like or a POSIX class stands for itself;
/// * so do `\B`, `\R`, `\X` and the like in a class, and `\8` without such a group;
/// * so do letters behind a backslash that mean nothing, and `\x` without digits is a zero;
/// * in UTF-8, `\w` and `\W` go by the Latin-1 tables when they are not repeated; PCRE2 does so in classes only.
pub fn translate(p: &[u8], utf: bool, extended: bool) -> Option<Vec<u8>> {
    if !p.contains(&b'\\') && !p.contains(&b'[') {
        return None;
    }
    let mut t = Translation {
        p,
        groups: 0,
        at: 0,
        out: Vec::with_capacity(p.len() + 8),
        changed: false,
    };
    while t.at < p.len() {
        match p[t.at] {
            b'\\' => match p.get(t.at + 1) {
                Some(b'Q') => t.copy_through(b"\\E"),
                Some(c @ (b'w' | b'W'))
                    if utf && !matches!(p.get(t.at + 2), Some(b'*' | b'+' | b'?' | b'{')) =>
                {
                    t.out.extend_from_slice(&[b'[', b'\\', *c, b']']);
                    t.at += 2;
                    t.changed = true;
                }
                Some(b'8' | b'9') if t.number(t.at + 1) > t.groups => t.bare(),
                _ => t.escape(),
            },
            b'[' => t.class(),
            b'(' => t.open(),
            b'#' if extended => t.copy_through(b"\n"),
            _ => t.copy(1),
        }
    }
    t.changed.then_some(t.out)
}

/// Letters that stand for themselves behind a backslash.
const UNASSIGNED: &[u8] = b"FIJMOTYijmqy";

/// Escapes that mean nothing in a class.
const NOT_IN_CLASS: &[u8] = b"ABCGKRXZgkz";

struct Translation<'a> {
    p: &'a [u8],
    /// Groups that opened so far.
    groups: usize,
    at: usize,
    out: Vec<u8>,
    changed: bool,
}

impl Translation<'_> {
    fn copy(&mut self, n: usize) {
        let end = (self.at + n).min(self.p.len());
        self.out.extend_from_slice(&self.p[self.at..end]);
        self.at = end;
    }
    fn copy_through(&mut self, end: &[u8]) {
        let n = memchr::memmem::find(&self.p[self.at..], end);
        self.copy(n.map_or(self.p.len(), |n| n + end.len()));
    }
    /// An opening parenthesis, or a whole comment.
    fn open(&mut self) {
        let rest = &self.p[self.at..];
        let named = |s: &[u8]| rest.starts_with(s);
        if named(b"(?#") {
            return self.copy_through(b")");
        }
        let special = named(b"(?") || named(b"(*");
        let lookbehind = named(b"(?<=") || named(b"(?<!");
        let name = named(b"(?<") || named(b"(?P<") || named(b"(?'");
        if !special || name && !lookbehind {
            self.groups += 1;
        }
        self.copy(1);
    }
    /// The number that stands at `at`.
    fn number(&self, at: usize) -> usize {
        let digits = self.p[at..].iter().take_while(|b| b.is_ascii_digit());
        digits.fold(0usize, |n, d| {
            n.saturating_mul(10).saturating_add(usize::from(d - b'0'))
        })
    }
    /// What stands behind the backslash, without it.
    fn bare(&mut self) {
        self.at += 1;
        self.copy(1);
        self.changed = true;
    }
    /// A backslash and what it stands for, in a class or outside.
    fn escape(&mut self) {
        match self.p.get(self.at + 1) {
            Some(b'c') => match self.p.get(self.at + 2) {
                Some(c) if c.is_ascii_control() => {
                    let code = format!("\\x{:02x}", c ^ 0x40);
                    self.out.extend_from_slice(code.as_bytes());
                    self.at += 3;
                    self.changed = true;
                }
                _ => self.copy(3),
            },
            Some(c) if UNASSIGNED.contains(c) => self.bare(),
            Some(b'x')
                if self
                    .p
                    .get(self.at + 2)
                    .is_none_or(|c| !c.is_ascii_hexdigit() && *c != b'{') =>
            {
                self.copy(2);
                self.out.extend_from_slice(b"00");
                self.changed = true;
            }
            _ => self.copy(2),
        }
    }
    /// A character class.
    fn class(&mut self) {
        self.copy(1);
        if self.p.get(self.at) == Some(&b'^') {
            self.copy(1);
        }
        if self.p.get(self.at) == Some(&b']') {
            self.copy(1);
        }
        while let Some(b) = self.p.get(self.at) {
            match b {
                b']' => return self.copy(1),
                b'[' if self.p[self.at..].starts_with(b"[:") => {
                    match memchr::memmem::find(&self.p[self.at..], b":]") {
                        Some(n) => {
                            self.copy(n + 2);
                            self.hyphen();
                        }
                        None => self.copy(1),
                    }
                }
                b'\\' => match self.p.get(self.at + 1) {
                    Some(b'Q') => self.copy_through(b"\\E"),
                    Some(c) if NOT_IN_CLASS.contains(c) => self.bare(),
                    Some(b'd' | b'D' | b's' | b'S' | b'w' | b'W' | b'h' | b'H' | b'v' | b'V') => {
                        self.copy(2);
                        self.hyphen();
                    }
                    Some(b'p' | b'P') => {
                        self.copy(2);
                        if self.p.get(self.at) == Some(&b'{') {
                            self.copy_through(b"}");
                        } else {
                            self.copy(1);
                        }
                        self.hyphen();
                    }
                    _ => self.escape(),
                },
                _ => self.copy(1),
            }
        }
    }
    /// A hyphen behind a set of characters, unless it is the last in its class anyway.
    fn hyphen(&mut self) {
        if self.p.get(self.at) == Some(&b'-') && self.p.get(self.at + 1) != Some(&b']') {
            self.out.push(b'\\');
            self.copy(1);
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_itself_is_escaped() {
        let t = |p: &str, utf| {
            translate(p.as_bytes(), utf, false).map(|v| String::from_utf8(v).unwrap())
        };
        assert_eq!(t(r"[\d-z]+", false).as_deref(), Some(r"[\d\-z]+"));
        assert_eq!(
            t(r"[[:alpha:]-.]", false).as_deref(),
            Some(r"[[:alpha:]\-.]")
        );
        assert_eq!(t(r"[a\R\X]", false).as_deref(), Some("[aRX]"));
        let (from, to) = (r"\w\W[\w]\\w\w+", r"[\w][\W][\w]\\w\w+");
        assert_eq!(t(from, true).as_deref(), Some(to));
        assert_eq!(t(r"a\ib\xg", false).as_deref(), Some(r"aib\x00g"));
        for same in [
            r"[\w-]",
            r"\Q[\d-z]\E",
            r"[a-z]\R",
            "(?#[\\d-z])",
            r"[]\w-]",
        ] {
            assert_eq!(t(same, false), None, "{same}");
        }
    }
}
