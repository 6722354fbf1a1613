//! An assembler for fixtures: text in, a .beam file out.
//!
//! ```text
//! export f/1 f2          table entries, before the code
//! lambda f/2 f4 1        function, label, captured values
//! type 0..255            an integer range
//! literal 8364..         external format, in hex
//! string foo             bytes of the string table
//! record name true a=1 b
//! line 7                 an entry of the line table
//! label u1               instructions by the names of the operation table
//! ```
//!
//! Operands: `x0 y1 fr2 f3 u4 i-5 lit6 []`, `x0:t1` typed, `m:f/2` import, `{a b}` list, `alloc:1:2:3`, any
//! other word an atom.

use std::collections::HashMap;

use beamr_file::{Module, Op};

#[derive(Default)]
struct Asm {
    atoms: Vec<String>,
    atom_numbers: HashMap<String, u64>,
    imports: Vec<[u32; 3]>,
    exports: Vec<[u32; 3]>,
    lambdas: Vec<[u32; 6]>,
    types: Vec<(i64, i64)>,
    literals: Vec<Vec<u8>>,
    strings: Vec<u8>,
    records: Vec<u8>,
    record_counts: (u32, u32),
    lines: Vec<u8>,
    line_count: u32,
    code: Vec<u8>,
    functions: u32,
    labels: u32,
}

/// Assembles a module named `m`.
pub fn assemble(text: &str) -> Module {
    Module::from_bytes(&assemble_file(text)).unwrap_or_else(|e| panic!("fixture: {e}"))
}

/// The same as bytes.
pub fn assemble_file(text: &str) -> Vec<u8> {
    let mut a = Asm::default();
    a.atom("m");
    for line in text.lines() {
        let words = words(line);
        if let Some((first, rest)) = words.split_first() {
            a.line(first, rest);
        }
    }
    a.file()
}

/// Words; a list in braces is one.
fn words(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut depth = 0;
    for w in line.split_whitespace() {
        if depth == 0 {
            out.push(w.into());
        } else if let Some(last) = out.last_mut() {
            last.push(' ');
            last.push_str(w);
        }
        depth += w.matches('{').count();
        depth -= w.matches('}').count();
    }
    out
}

impl Asm {
    fn atom(&mut self, text: &str) -> u64 {
        if let Some(n) = self.atom_numbers.get(text) {
            return *n;
        }
        self.atoms.push(text.into());
        self.atom_numbers
            .insert(text.into(), self.atoms.len() as u64);
        self.atoms.len() as u64
    }

    fn name_arity(&mut self, text: &str) -> (u32, u32) {
        let (name, arity) = text.rsplit_once('/').expect("name/arity");
        (self.atom(name) as u32, arity.parse().expect("arity"))
    }

    fn line(&mut self, first: &str, rest: &[String]) {
        let label = |s: &String| s[1..].parse::<u32>().expect("label");
        match first {
            "export" => {
                let (f, a) = self.name_arity(&rest[0]);
                self.exports.push([f, a, label(&rest[1])]);
            }
            "lambda" => {
                let (f, a) = self.name_arity(&rest[0]);
                let index = self.lambdas.len() as u32;
                let free = rest[2].parse().expect("captured values");
                self.lambdas.push([f, a, label(&rest[1]), index, free, 77]);
            }
            "type" => {
                let (lo, hi) = rest[0].split_once("..").expect("range");
                self.types
                    .push((lo.parse().expect("low"), hi.parse().expect("high")));
            }
            "literal" => {
                let hex = rest[0].as_bytes();
                let bytes = hex.chunks(2).map(|h| {
                    u8::from_str_radix(std::str::from_utf8(h).expect("hex"), 16).expect("hex")
                });
                self.literals.push(bytes.collect());
            }
            "string" => self.strings.extend(rest[0].bytes()),
            "record" => {
                let name = self.operand(&rest[0]);
                let exported = self.operand(&rest[1]);
                let mut fields = Vec::new();
                for f in &rest[2..] {
                    let (name, value) = f.split_once('=').unwrap_or((f, "u0"));
                    fields.extend(self.operand(name));
                    fields.extend(self.operand(value));
                }
                let n = rest.len() as u64 - 2;
                self.record_counts.0 += 1;
                self.record_counts.1 += n as u32;
                self.records.push(Op::CallLast.number());
                self.records.extend(name);
                self.records.extend(exported);
                self.records.extend(compact(7, 1));
                self.records.extend(compact(0, 2 * n as i64));
                self.records.extend(fields);
            }
            "line" if rest[0].parse::<i64>().is_ok() => {
                self.line_count += 1;
                self.lines
                    .extend(compact(1, rest[0].parse().expect("line")));
            }
            op => {
                let op = Op::from_name(op).unwrap_or_else(|| panic!("no operation {op}"));
                match op {
                    Op::FuncInfo => self.functions += 1,
                    Op::Label => {
                        self.labels = self
                            .labels
                            .max(rest[0][1..].parse::<u32>().expect("label") + 1);
                    }
                    _ => {}
                }
                assert_eq!(rest.len(), op.arity(), "operands of {}", op.name());
                self.code.push(op.number());
                for r in rest {
                    let bytes = self.operand(r);
                    self.code.extend(bytes);
                }
            }
        }
    }

    fn operand(&mut self, text: &str) -> Vec<u8> {
        let number = |prefix: &str| {
            text.strip_prefix(prefix)
                .and_then(|n| n.parse::<i64>().ok())
        };
        if let Some((reg, ty)) = text.split_once(":t")
            && let Ok(ty) = ty.parse::<i64>()
        {
            return [compact(7, 5), self.operand(reg), compact(0, ty)].concat();
        }
        if let Some(list) = text.strip_prefix("alloc:") {
            let counts: Vec<i64> = list.split(':').map(|n| n.parse().expect("count")).collect();
            let mut out = [compact(7, 3), compact(0, counts.len() as i64)].concat();
            for (kind, n) in counts.into_iter().enumerate() {
                out.extend(compact(0, kind as i64));
                out.extend(compact(0, n));
            }
            return out;
        }
        if let Some(list) = text.strip_prefix('{') {
            let items: Vec<&str> = list.trim_end_matches('}').split_whitespace().collect();
            let mut out = [compact(7, 1), compact(0, items.len() as i64)].concat();
            for i in items {
                out.extend(self.operand(i));
            }
            return out;
        }
        if text == "[]" {
            return compact(2, 0);
        }
        if let Some(n) = number("fr") {
            return [compact(7, 2), compact(0, n)].concat();
        }
        if let Some(n) = number("lit") {
            return [compact(7, 4), compact(0, n)].concat();
        }
        for (prefix, tag) in [("u", 0), ("i", 1), ("x", 3), ("y", 4), ("f", 5)] {
            if let Some(n) = number(prefix) {
                return compact(tag, n);
            }
        }
        if let Some((module, function)) = text.split_once(':')
            && function.contains('/')
        {
            let m = self.atom(module) as u32;
            let (f, a) = self.name_arity(function);
            let import = [m, f, a];
            let n = self
                .imports
                .iter()
                .position(|i| *i == import)
                .unwrap_or_else(|| {
                    self.imports.push(import);
                    self.imports.len() - 1
                });
            return compact(0, n as i64);
        }
        let n = self.atom(text);
        compact(2, n as i64)
    }

    fn file(mut self) -> Vec<u8> {
        self.code.push(Op::IntCodeEnd.number());
        let words = |v: &[u32]| v.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
        let mut chunks: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
        let mut atoms = words(&[self.atoms.len() as u32]);
        for a in &self.atoms {
            atoms.push(a.len() as u8);
            atoms.extend(a.bytes());
        }
        chunks.push((b"AtU8", atoms));
        let mut code = words(&[16, 0, u32::from(Op::MAX), self.labels, self.functions]);
        code.extend(&self.code);
        chunks.push((b"Code", code));
        chunks.push((b"StrT", self.strings.clone()));
        let table = |rows: &[[u32; 3]]| {
            let mut out = words(&[rows.len() as u32]);
            rows.iter().for_each(|r| out.extend(words(r)));
            out
        };
        chunks.push((b"ImpT", table(&self.imports)));
        chunks.push((b"ExpT", table(&self.exports)));
        if !self.lambdas.is_empty() {
            let mut out = words(&[self.lambdas.len() as u32]);
            self.lambdas.iter().for_each(|r| out.extend(words(r)));
            chunks.push((b"FunT", out));
        }
        if !self.literals.is_empty() {
            let mut out = words(&[0, self.literals.len() as u32]);
            for l in &self.literals {
                out.extend(words(&[l.len() as u32]));
                out.extend(l);
            }
            chunks.push((b"LitT", out));
        }
        if !self.types.is_empty() {
            let mut out = words(&[4, self.types.len() as u32]);
            for (lo, hi) in &self.types {
                out.extend((1u16 << 5 | 1 << 13 | 1 << 14).to_be_bytes());
                out.extend(lo.to_be_bytes());
                out.extend(hi.to_be_bytes());
            }
            chunks.push((b"Type", out));
        }
        if self.line_count > 0 {
            let mut out = words(&[0, 0, self.line_count, self.line_count, 0]);
            out.extend(&self.lines);
            chunks.push((b"Line", out));
        }
        if self.record_counts.0 > 0 {
            let mut out = words(&[0, self.record_counts.0, self.record_counts.1]);
            out.extend(&self.records);
            chunks.push((b"Recs", out));
        }
        let mut body = b"BEAM".to_vec();
        for (name, data) in chunks {
            body.extend(name);
            body.extend((data.len() as u32).to_be_bytes());
            body.extend(&data);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut file = b"FOR1".to_vec();
        file.extend((body.len() as u32).to_be_bytes());
        file.extend(body);
        file
    }
}

/// A compact operand.
fn compact(tag: u8, v: i64) -> Vec<u8> {
    if (0..16).contains(&v) {
        return vec![(v as u8) << 4 | tag];
    }
    if (0..2048).contains(&v) {
        return vec![((v >> 3) & 0xE0) as u8 | 8 | tag, v as u8];
    }
    let bytes = v.to_be_bytes();
    let mut skip = 0;
    while skip < 6 {
        let sign = if bytes[skip + 1] & 0x80 != 0 { 0xFF } else { 0 };
        if bytes[skip] != sign {
            break;
        }
        skip += 1;
    }
    let n = 8 - skip;
    let mut out = vec![((n - 2) as u8) << 5 | 0x18 | tag];
    out.extend(&bytes[skip..]);
    out
}
