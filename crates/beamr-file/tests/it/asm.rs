//! A small assembler: text to the bytes of a .beam file, without any check, so
//! that tests can write code that no compiler would.
//!
//! A line is `fn NAME/ARITY` (writes the head of a function: its `func_info`
//! label is `NAME.head`, its entry `NAME`), `NAME:` (a label) or an operation
//! and its operands, as they are: `x0`, `y1`, `fr2`, `L:name` (a label, `L:-` is
//! 0), `3` (unsigned), `i3` (integer), `lit0`, `nil`, `m:f/1` (an import),
//! `fun:name/free` (a lambda), `[ ... ]`, `{words 1 floats 2 funs 3}`, `"text"` (an
//! offset into the strings); any other word is an atom. All functions are exported but
//! those whose name begins with `local`.

use std::collections::HashMap;

use beamr_file::Op;

#[derive(Default)]
struct Asm {
    atoms: Vec<String>,
    imports: Vec<(u32, u32, u32)>,
    labels: HashMap<String, u32>,
    lambdas: Vec<(String, u32)>,
    arities: HashMap<String, u32>,
    strings: Vec<u8>,
    code: Vec<u8>,
}

/// The bytes of a module named `t` with two literals.
pub fn assemble(text: &str) -> Vec<u8> {
    let mut a = Asm::default();
    a.atom("t");
    let mut functions = Vec::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        if let Some(head) = line.strip_prefix("fn ") {
            let (name, arity) = head.split_once('/').expect("name/arity");
            let arity: u32 = arity.parse().expect("arity");
            let label = a.label(&format!("{name}.head"));
            a.op("label");
            a.number(0, label as i64);
            a.op("func_info");
            a.operands(&format!("t {name} {arity}"));
            let label = a.label(name);
            a.op("label");
            a.number(0, label as i64);
            functions.push((name.to_owned(), arity));
            a.arities.insert(name.to_owned(), arity);
        } else if let Some(name) = line.strip_suffix(':') {
            let label = a.label(name);
            a.op("label");
            a.number(0, label as i64);
        } else {
            let (op, operands) = line.split_once(' ').unwrap_or((line, ""));
            a.op(op);
            a.operands(operands);
        }
    }
    a.op("int_code_end");
    let exports: Vec<(u32, u32, u32)> = functions
        .iter()
        .filter(|f| !f.0.starts_with("local"))
        .map(|(name, arity)| (a.atom(name), *arity, a.label(name)))
        .collect();
    let lambdas: Vec<[u32; 6]> = std::mem::take(&mut a.lambdas)
        .iter()
        .enumerate()
        .map(|(n, (name, free))| {
            let arity = a.arities.get(name).copied().unwrap_or(0);
            [a.atom(name), arity, a.label(name), n as u32, *free, 0]
        })
        .collect();
    let mut header = Vec::new();
    for v in [
        16,
        0,
        Op::MAX as u32,
        a.labels.len() as u32 + 1,
        functions.len() as u32,
    ] {
        header.extend(v.to_be_bytes());
    }
    header.extend(&a.code);
    let mut atoms = (a.atoms.len() as u32).to_be_bytes().to_vec();
    for atom in &a.atoms {
        atoms.push(atom.len() as u8);
        atoms.extend(atom.as_bytes());
    }
    let triples = |list: &[(u32, u32, u32)]| {
        let mut out = (list.len() as u32).to_be_bytes().to_vec();
        for &(x, y, z) in list {
            out.extend([x, y, z].into_iter().flat_map(u32::to_be_bytes));
        }
        out
    };
    let mut funs = (lambdas.len() as u32).to_be_bytes().to_vec();
    funs.extend(lambdas.iter().flatten().flat_map(|v| v.to_be_bytes()));
    let literals = b"\0\0\0\0\0\0\0\x02\0\0\0\x03\x83\x61\x01\0\0\0\x02\x83\x6a";
    let chunks: [(&[u8; 4], &[u8]); 7] = [
        (b"AtU8", &atoms),
        (b"Code", &header),
        (b"StrT", &a.strings),
        (b"ImpT", &triples(&a.imports)),
        (b"ExpT", &triples(&exports)),
        (b"FunT", &funs),
        (b"LitT", literals),
    ];
    let mut file = b"FOR1\0\0\0\0BEAM".to_vec();
    for (id, data) in chunks {
        file.extend(id);
        file.extend((data.len() as u32).to_be_bytes());
        file.extend(data);
        file.resize(file.len().next_multiple_of(4), 0);
    }
    let size = file.len() as u32 - 8;
    file[4..8].copy_from_slice(&size.to_be_bytes());
    file
}

impl Asm {
    fn atom(&mut self, name: &str) -> u32 {
        let at = self
            .atoms
            .iter()
            .position(|a| a == name)
            .unwrap_or_else(|| {
                self.atoms.push(name.to_owned());
                self.atoms.len() - 1
            });
        at as u32 + 1
    }

    fn label(&mut self, name: &str) -> u32 {
        let next = self.labels.len() as u32 + 1;
        *self.labels.entry(name.to_owned()).or_insert(next)
    }

    fn op(&mut self, name: &str) {
        let op = Op::from_name(name).unwrap_or_else(|| panic!("no operation {name}"));
        self.code.push(op.number());
    }

    fn number(&mut self, tag: u8, v: i64) {
        if (0..16).contains(&v) {
            self.code.push((v as u8) << 4 | tag);
        } else if (0..2048).contains(&v) {
            self.code.extend([((v >> 8) as u8) << 5 | 8 | tag, v as u8]);
        } else {
            self.code.push(6 << 5 | 0b1_1000 | tag);
            self.code.extend(v.to_be_bytes());
        }
    }

    fn operands(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let after = |prefix: &str| word.strip_prefix(prefix).and_then(|n| n.parse().ok());
            if word == "[" {
                let list: Vec<&str> = words.by_ref().take_while(|w| *w != "]").collect();
                self.number(7, 1);
                self.number(0, list.len() as i64);
                self.operands(&list.join(" "));
            } else if let Some(kind) = word.strip_prefix('{') {
                let rest: Vec<&str> = words.by_ref().collect();
                let text = format!("{kind} {}", rest.join(" "));
                let (list, rest) = text.split_once('}').expect("}");
                let list: Vec<&str> = list.split_whitespace().collect();
                self.number(7, 3);
                self.number(0, list.len() as i64 / 2);
                for pair in list.chunks(2) {
                    let kinds = ["words", "floats", "funs"];
                    let kind = kinds.iter().position(|k| *k == pair[0]).expect("kind");
                    self.number(0, kind as i64);
                    self.number(0, pair[1].parse().expect("count"));
                }
                self.operands(rest);
                return;
            } else if let Some(n) = after("x") {
                self.number(3, n);
            } else if let Some(n) = after("y") {
                self.number(4, n);
            } else if let Some(n) = after("fr") {
                self.number(7, 2);
                self.number(0, n);
            } else if let Some(n) = after("lit") {
                self.number(7, 4);
                self.number(0, n);
            } else if let Some(n) = after("i") {
                self.number(1, n);
            } else if let Ok(n) = word.parse() {
                self.number(0, n);
            } else if word == "nil" {
                self.number(2, 0);
            } else if let Some(label) = word.strip_prefix("L:") {
                let label = if label == "-" { 0 } else { self.label(label) };
                self.number(5, label as i64);
            } else if let Some(string) = word.strip_prefix('"') {
                let at = self.strings.len();
                self.strings.extend(string.trim_end_matches('"').as_bytes());
                self.number(0, at as i64);
            } else if let Some(fun) = word.strip_prefix("fun:") {
                let (name, free) = fun.split_once('/').expect("name/free");
                self.lambdas
                    .push((name.to_owned(), free.parse().expect("free")));
                self.number(0, self.lambdas.len() as i64 - 1);
            } else if let Some((module, function, arity)) = mfa(word) {
                let import = (self.atom(module), self.atom(function), arity);
                let at = self
                    .imports
                    .iter()
                    .position(|i| *i == import)
                    .unwrap_or_else(|| {
                        self.imports.push(import);
                        self.imports.len() - 1
                    });
                self.number(0, at as i64);
            } else {
                let atom = self.atom(word);
                self.number(2, atom as i64);
            }
        }
    }
}

fn mfa(word: &str) -> Option<(&str, &str, u32)> {
    let (module, rest) = word.split_once(':')?;
    let (function, arity) = rest.rsplit_once('/')?;
    Some((module, function, arity.parse().ok()?))
}
