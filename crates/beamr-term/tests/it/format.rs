//! The emulator's printing of terms; the expected texts are what `erlang:display/1` of OTP 25, 27
//! and 29 prints (they agree but for the order of atom keys in maps).

use std::sync::Arc;

use beamr_term::format::{FormatLimit, Printer, format_term, write_term};
use beamr_term::text::list_of_chars;
use beamr_term::{AtomTable, Build, Fragment, Release, Tables, Word, bits, ids, maps};

struct Fixture {
    tables: Arc<Tables>,
    heap: Fragment,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture {
            tables: Tables::new(Arc::new(AtomTable::new(0)), Release::OTP29),
            heap: Fragment::with_capacity(1 << 12),
        }
    }
    fn atom(&self, text: &str) -> Word {
        self.tables.atoms.intern(text).unwrap().word()
    }
    fn chars(&mut self, text: &str) -> Word {
        list_of_chars(&mut self.heap, text, Word::NIL)
    }
    fn map(&mut self, pairs: &[(Word, Word)]) -> Word {
        maps::from_pairs(&mut self.heap, pairs, &self.tables)
    }
    fn text(&self, w: Word) -> String {
        let bytes = format_term(&self.tables, w, FormatLimit::NONE);
        // Latin-1 characters of lists are single bytes.
        String::from_utf8(bytes)
            .unwrap_or_else(|e| e.into_bytes().into_iter().map(char::from).collect())
    }
    fn limited(&self, w: Word, limit: FormatLimit) -> String {
        String::from_utf8(format_term(&self.tables, w, limit)).unwrap()
    }
    #[track_caller]
    fn check(&self, w: Word, want: &str) {
        assert_eq!(self.text(w), want);
    }
}

fn int(v: i64) -> Word {
    Word::fixnum(v)
}

#[test]
fn numbers() {
    let mut f = Fixture::new();
    f.check(int(1), "1");
    f.check(int(-5), "-5");
    f.check(int(Word::MIN_SMALL), "-576460752303423488");
    let w = f.heap.big(false, &[0, 64]);
    f.check(w, "1180591620717411303424");
    let w = f.heap.big(true, &[0, 1]);
    f.check(w, "-18446744073709551616");
    for (v, want) in [
        (1.5, "1.500000e+00"),
        (-0.0, "-0.000000e+00"),
        (1.0e300, "1.000000e+300"),
        (2.71928182845905, "2.719282e+00"),
        (123_456_789.0, "1.234568e+08"),
    ] {
        let w = f.heap.float(v);
        f.check(w, want);
    }
}

#[test]
fn atoms() {
    let f = Fixture::new();
    for (text, want) in [
        ("a", "a"),
        ("A", "'A'"),
        ("abc_D1", "abc_D1"),
        ("hello world", "'hello world'"),
        ("", "''"),
        ("a@b", "'a@b'"),
        ("it's", "'it\\'s'"),
        ("\n\t\r\x08\x0c\x0b\\x", "'\\n\\t\\r\\b\\f\\v\\\\x'"),
        (
            "\u{1}\u{7f}\u{80}\u{a0}\u{c8}",
            "'\\001\u{7f}\\200\u{a0}\u{c8}'",
        ),
        ("äö", "äö"),
        ("ϨϩÀ", "'ϨϩÀ'"),
        ("aϨ", "'aϨ'"),
        ("ß", "ß"),
        ("ÿ", "ÿ"),
        ("÷", "'÷'"),
        ("a÷", "'a÷'"),
        ("a😀", "'a😀'"),
    ] {
        f.check(f.atom(text), want);
    }
}

#[test]
fn lists_and_tuples() {
    let mut f = Fixture::new();
    let (a, b, c, d) = (f.atom("a"), f.atom("b"), f.atom("c"), f.atom("d"));
    f.check(Word::NIL, "[]");
    let w = f.heap.tuple(&[]);
    f.check(w, "{}");
    let inner = f.heap.tuple(&[c]);
    let w = f.heap.tuple(&[a, b, inner]);
    f.check(w, "{a,b,{c}}");
    let w = f.heap.list([a, b]);
    f.check(w, "[a,b]");
    let pair = f.heap.cons(a, b);
    f.check(pair, "[a|b]");
    let w = f.heap.list_with_tail([pair, c], d);
    f.check(w, "[[a|b],c|d]");
    let w = f.heap.list([Word::NIL]);
    f.check(w, "[[]]");
    for (text, want) in [
        ("abc", "\"abc\""),
        ("ab\ncd", "\"ab\\ncd\""),
        ("q\"u\\o", "\"q\\\"u\\o\""),
        ("tab\t", "\"tab\t\""),
        ("äå", "\"äå\""),
        ("\u{7}", "[7]"),
        ("\u{7f}", "[127]"),
        ("\u{a0}", "\"\u{a0}\""),
        ("aϨ", "[97,1000]"),
        ("\0", "[0]"),
    ] {
        let w = f.chars(text);
        f.check(w, want);
    }
    let w = f.heap.cons(int(97), b);
    f.check(w, "[97|b]");
    let (x, y) = (f.chars("abc"), f.chars("def"));
    let w = f.heap.list([x, y]);
    f.check(w, "[\"abc\",\"def\"]");
}

#[test]
fn bitstrings() {
    let mut f = Fixture::new();
    for (bytes, want) in [
        (&b""[..], "<<>>"),
        (&[1, 2, 3], "<<1,2,3>>"),
        (b"abc", "<<\"abc\">>"),
        (b"a\"b\\", "<<\"a\\\"b\\\">>"),
        (b"a\n", "<<97,10>>"),
        (&[228], "<<228>>"),
    ] {
        let w = f.heap.binary(bytes);
        f.check(w, want);
    }
    let w = f.heap.binary(b"abcdefgh");
    let part = bits::sub_bits(&mut f.heap, w, 3, 61);
    f.check(part, "<<11,19,27,35,43,51,59,8:5>>");
    let part = bits::sub_bits(&mut f.heap, w, 0, 25);
    f.check(part, "<<97,98,99,0:1>>");
    let part = bits::sub_bits(&mut f.heap, w, 8, 8);
    f.check(part, "<<\"b\">>");
    let part = bits::sub_bits(&mut f.heap, w, 1, 3);
    f.check(part, "<<6:3>>");
    let big = f.heap.binary(&[b'x'; 100]);
    f.check(big, &format!("<<\"{}\">>", "x".repeat(100)));
}

#[test]
fn identifiers() {
    let mut f = Fixture::new();
    f.check(Word::pid(1 << ids::PID_NUMBER_BITS), "<0.0.1>");
    f.check(Word::pid(123 | 4 << ids::PID_NUMBER_BITS), "<0.123.4>");
    f.check(Word::port(1), "#Port<0.1>");
    let w = f.heap.reference([3, 2, 1]);
    f.check(w, "#Ref<0.1.2.3>");
    let name = f.tables.atoms.intern("other@host").unwrap();
    let node = f.tables.node(name, 7);
    let w = ids::external_pid(&mut f.heap, node.clone(), 12, 3);
    f.check(w, &format!("<{}.12.3>", name.index()));
    let w = ids::external_ref(&mut f.heap, node.clone(), &[3, 2, 1]);
    f.check(w, &format!("#Ref<{}.1.2.3>", name.index()));
    let w = ids::external_port(&mut f.heap, node, 9);
    f.check(w, &format!("#Port<{}.9>", name.index()));
}

#[test]
fn funs() {
    let mut f = Fixture::new();
    for (m, function, arity, want) in [
        ("lists", "map", 2, "fun lists:map/2"),
        ("A b", "C-d", 1, "fun 'A b':'C-d'/1"),
        ("erlang", "+", 2, "fun erlang:'+'/2"),
    ] {
        let (m, function) = (f.atom(m), f.atom(function));
        let w = f.heap.export_fun(0, m, function, arity);
        f.check(w, want);
    }
    let module = f.tables.atoms.intern("My.Mod").unwrap();
    let entry = f.tables.funs.entry(0, module, 5, 123_456, [0; 16], 1, 0);
    let w = {
        use beamr_term::{Alloc, Header, Subtag};
        let p = f.heap.alloc(2);
        // SAFETY: the two words of a fun without environment.
        unsafe {
            *p = Header::new(Subtag::Fun, 1).0;
            *p.add(1) = entry as usize as u64;
            Word::boxed(p)
        }
    };
    f.check(w, "#Fun<My.Mod.5.123456>");
}

#[test]
fn maps_and_records() {
    let mut f = Fixture::new();
    let (a, b, c) = (f.atom("a"), f.atom("b"), f.atom("c"));
    let w = f.map(&[]);
    f.check(w, "#{}");
    let w = f.map(&[(a, int(1))]);
    f.check(w, "#{a=>1}");
    let text = f.chars("x");
    let key = f.heap.tuple(&[c]);
    let list = f.heap.list([int(1), int(2)]);
    let w = f.map(&[(a, int(1)), (b, text), (key, list)]);
    f.check(w, "#{a=>1,b=>\"x\",{c}=>[1,2]}");
    let inner = f.map(&[(int(2), int(3))]);
    let w = f.map(&[(int(1), inner)]);
    f.check(w, "#{1=>#{2=>3}}");
    // A big map shows its nodes; every pair is there once.
    let pairs: Vec<_> = (0..100).map(|i| (int(1000 + i), a)).collect();
    let w = f.map(&pairs);
    let text = f.text(w);
    assert!(text.starts_with("#<ffff>{"), "{text}");
    assert!(text.ends_with('}'));
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    for i in 0..100 {
        assert_eq!(text.matches(&format!("[{}|a]", 1000 + i)).count(), 1);
    }
    // A native record.
    let (m, name, x, y) = (f.atom("nr"), f.atom("q r"), f.atom("x"), f.atom("y"));
    let definition = f.heap.tuple(&[m, name, Word::TRUE, x, y]);
    let text = f.chars("abc");
    let w = {
        use beamr_term::{Alloc, Header, Subtag};
        let p = f.heap.alloc(4);
        // SAFETY: the words of a record of two fields.
        unsafe {
            *p = Header::new(Subtag::Record, 3).0;
            *p.add(1) = definition.bits();
            *p.add(2) = int(5).bits();
            *p.add(3) = text.bits();
            Word::boxed(p)
        }
    };
    f.check(w, "#nr:'q r'{x=5,y=\"abc\"}");
}

#[test]
fn limits() {
    let mut f = Fixture::new();
    let w = f.heap.list((1..=10).map(|i| int(1000 + i)));
    let items = FormatLimit::items;
    assert_eq!(f.limited(w, items(0)), "... ");
    assert_eq!(f.limited(w, items(4)), "[1001,1002,1003,... ");
    assert_eq!(
        f.limited(w, items(12)),
        "[1001,1002,1003,1004,1005,1006,1007,1008,1009,1010]"
    );
    let text = f.chars("abcdef");
    assert_eq!(f.limited(text, items(4)), "\"abc... ");
    let binary = f.heap.binary(b"abcdef");
    assert_eq!(f.limited(binary, items(3)), "<<\"abc... ");
    let atom = f.atom("abcdef");
    let pair = f.heap.tuple(&[atom, atom]);
    assert_eq!(f.limited(pair, items(5)), "{abcdef... ");
    let bytes = FormatLimit {
        bytes: 7,
        ..FormatLimit::NONE
    };
    assert_eq!(f.limited(w, bytes), "[1001,1...");
    let mut out = Vec::new();
    assert!(!write_term(&mut out, &f.tables, w, bytes).unwrap());
    assert!(write_term(&mut out, &f.tables, w, FormatLimit::NONE).unwrap());
}

#[test]
fn steps_give_the_same_text() {
    let mut f = Fixture::new();
    let text = f.chars("a long enough string");
    let binary = f.heap.binary(&[7; 30]);
    let atom = f.atom("atom");
    let map = f.map(&[(text, binary), (atom, text)]);
    let tuple = f.heap.tuple(&[map, binary, text, atom]);
    let list = f.heap.list_with_tail([tuple, map, atom], text);
    let want = format_term(&f.tables, list, FormatLimit::NONE);
    let mut printer = Printer::new(list, i64::MAX);
    let (mut out, mut steps) = (Vec::new(), 1);
    while !printer.step(&f.tables, &mut out, &mut 1) {
        printer.visit_roots(|w| assert!(w.is_value()));
        steps += 1;
    }
    assert_eq!(out, want);
    assert!(steps > 100);
}

#[test]
fn deep_and_shared_terms() {
    let mut f = Fixture::new();
    let mut deep = Word::NIL;
    for i in 0..1_000_000 {
        deep = match i % 2 {
            0 => f.heap.tuple(&[deep]),
            _ => f.heap.list([deep]),
        };
    }
    let text = f.text(deep);
    assert_eq!(text.len(), 2_000_002);
    let mut shared = Word::NIL;
    for _ in 0..60 {
        shared = f.heap.tuple(&[shared, shared]);
    }
    let limit = FormatLimit {
        bytes: 1000,
        ..FormatLimit::NONE
    };
    assert_eq!(f.limited(shared, limit).len(), 1003);
}
