//! Makes bad module files of good ones.
//!
//! A [`Seed`] is a real file, decoded. [`Seed::mutant`] changes a few things in one or two of its tables: operands for others
//! of their kind (mostly), instructions removed, doubled, exchanged or turned into others with the same operands, type tests
//! dropped, literals replaced by odd terms, imports, exports and funs bent, single bytes. Most mutants decode, and many are
//! valid: what matters is code that a validator must accept and that no compiler would write.

use beamr_file::{
    AllocKind, Arg, BeamFile, Chunk, ChunkId, Export, Import, Instr, Kind, Lambda, Module, OPS, Op,
};

/// The module name that most mutants get.
pub const NAME: &str = "mutant";

/// A generator that gives the same numbers everywhere.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of one mutant of a run.
    pub fn new(seed: u64, index: u64) -> Random {
        let mut r = Random(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995);
        r.next();
        r
    }
    /// The next number (splitmix64).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    /// True once in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// One of them.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len())).copied()
    }
}

/// A real file.
pub struct Seed {
    file: BeamFile,
    module: Module,
    literals: Vec<Vec<u8>>,
    /// Indexes of instructions that are type tests.
    tests: Vec<usize>,
}

/// Chunks that no mutant needs.
const DROPPED: [&[u8; 4]; 6] = [b"Dbgi", b"Docs", b"Abst", b"CInf", b"ExCk", b"LocT"];

impl Seed {
    /// Decodes a file.
    pub fn new(bytes: &[u8]) -> Option<Seed> {
        let mut file = BeamFile::parse(bytes).ok()?;
        file.chunks.retain(|c| !DROPPED.contains(&&c.id.0));
        let mut module = Module::decode(&file).ok()?;
        module.code.forget_widths();
        let instrs = &module.code.instrs;
        let tests = (0..instrs.len()).filter(|&i| is_type_test(instrs[i].op));
        Some(Seed {
            tests: tests.collect(),
            literals: module.literals.iter().map(<[u8]>::to_vec).collect(),
            file,
            module,
        })
    }

    /// A changed file.
    pub fn mutant(&self, r: &mut Random) -> Vec<u8> {
        let mut m = Mutant {
            module: self.module.clone(),
            literals: self.literals.clone(),
            file: self.file.clone(),
            dirty: Vec::new(),
            seed: self,
        };
        if !r.one_in(8) {
            m.rename();
        }
        for _ in 0..1 + r.below(3) {
            m.change(r);
        }
        m.write();
        if r.one_in(12) {
            m.bytes(r);
        }
        m.file.to_bytes()
    }
}

fn is_type_test(op: Op) -> bool {
    op.info().operands.first() == Some(&Kind::Label)
        && op.info().name.starts_with("is_")
        && op.info().operands.len() <= 4
        || op == Op::TestArity
}

struct Mutant<'a> {
    seed: &'a Seed,
    file: BeamFile,
    module: Module,
    literals: Vec<Vec<u8>>,
    dirty: Vec<[u8; 4]>,
}

impl Mutant<'_> {
    fn touch(&mut self, id: &[u8; 4]) {
        if !self.dirty.contains(id) {
            self.dirty.push(*id);
        }
    }

    /// Gives the module a name that no other module calls.
    fn rename(&mut self) {
        // The first atom's text lies behind the count and its own length; a rewrite of the table is simplest.
        let mut out = Vec::new();
        let n = self.module.atoms.len() as u32;
        let mut names: Vec<String> = (1..=n)
            .map(|i| self.module.atoms.get(i).unwrap_or("?").to_owned())
            .collect();
        names[0] = NAME.to_owned();
        out.extend(n.to_be_bytes());
        for name in &names {
            if name.len() > 255 {
                return;
            }
            out.push(name.len() as u8);
            out.extend(name.bytes());
        }
        self.set(b"AtU8", out);
        self.file.chunks.retain(|c| c.id.0 != *b"Atom");
    }

    fn set(&mut self, id: &[u8; 4], data: Vec<u8>) {
        match self.file.chunks.iter_mut().find(|c| c.id.0 == *id) {
            Some(c) => c.data = data,
            None => self.file.chunks.push(Chunk {
                id: ChunkId(*id),
                data,
            }),
        }
    }

    fn write(&mut self) {
        for id in std::mem::take(&mut self.dirty) {
            let data = if id == *b"LitT" {
                let mut out = vec![0; 4];
                out.extend((self.literals.len() as u32).to_be_bytes());
                for l in &self.literals {
                    out.extend((l.len() as u32).to_be_bytes());
                    out.extend(l);
                }
                Some(out)
            } else {
                self.module.encode_chunk(&id)
            };
            if let Some(data) = data {
                self.set(&id, data);
            }
        }
    }

    fn change(&mut self, r: &mut Random) {
        match r.below(32) {
            0..=11 => self.operand(r),
            12..=14 => self.drop_test(r),
            15..=17 => self.instruction(r),
            18..=20 => self.turn(r),
            21 => self.count(r),
            22..=24 => self.literal(r),
            25 => self.import(r),
            26 => self.export(r),
            27 => self.lambda(r),
            28..=29 => self.types(r),
            30 => self.list(r),
            _ => self.strings(r),
        }
    }

    // ---- code

    fn random_instr(&mut self, r: &mut Random) -> Option<(usize, Instr)> {
        self.touch(b"Code");
        let n = self.module.code.instrs.len();
        for _ in 0..20 {
            let i = r.below(n.saturating_sub(1));
            let instr = self.module.code.instrs[i];
            if !matches!(instr.op, Op::Label | Op::Line | Op::FuncInfo) || r.one_in(60) {
                return Some((i, instr));
            }
        }
        None
    }

    /// An operand of an instruction near by.
    fn neighbour(&self, r: &mut Random, at: usize, far: usize) -> Option<Arg> {
        let instrs = &self.module.code.instrs;
        let low = at.saturating_sub(far);
        let high = (at + far).min(instrs.len());
        for _ in 0..8 {
            let other = instrs[low + r.below(high - low)];
            let args = self.module.code.args(&other);
            if let Some(&a) = args.get(r.below(args.len())) {
                if let Arg::List(_) = a {
                    let list = self.module.code.list_of(a);
                    if let Some(a) = r.pick(list) {
                        return Some(a);
                    }
                    continue;
                }
                return Some(a);
            }
        }
        None
    }

    /// Another operand of the kind of `arg`.
    fn alike(&self, r: &mut Random, at: usize, arg: Arg) -> Arg {
        let near = |n: u64, r: &mut Random| match r.below(4) {
            0 => n.wrapping_add(1),
            1 => n.saturating_sub(1),
            2 => r.below(4) as u64,
            _ => n.wrapping_add(r.below(16) as u64).saturating_sub(8),
        };
        match arg {
            Arg::X(n) if !r.one_in(4) => Arg::X(near(u64::from(n), r).min(1100) as u16),
            Arg::Y(n) if !r.one_in(4) => Arg::Y(near(u64::from(n), r).min(1100) as u16),
            Arg::TypedX { reg, ty } => match r.below(3) {
                0 => Arg::X(reg),
                1 => Arg::TypedX {
                    reg,
                    ty: r.below(self.module.types.entries.len() + 1) as u32,
                },
                _ => Arg::TypedX {
                    reg: near(u64::from(reg), r) as u16,
                    ty,
                },
            },
            Arg::TypedY { reg, ty } => match r.below(3) {
                0 => Arg::Y(reg),
                1 => Arg::TypedY {
                    reg,
                    ty: r.below(self.module.types.entries.len() + 1) as u32,
                },
                _ => Arg::TypedY {
                    reg: near(u64::from(reg), r) as u16,
                    ty,
                },
            },
            Arg::U(n) => Arg::U(match r.below(12) {
                0 => [255, 256, 1023, 1024, 65535, 1 << 24, 1 << 32, u64::MAX][r.below(8)],
                _ => near(n, r),
            }),
            Arg::I(n) => Arg::I(match r.below(3) {
                0 => [
                    0,
                    1,
                    -1,
                    i64::MAX,
                    i64::MIN,
                    (1 << 59) - 1,
                    1 << 59,
                    -(1 << 59),
                    -(1 << 59) - 1,
                    1 << 32,
                    8,
                    64,
                ][r.below(12)],
                _ => n.wrapping_add(r.below(5) as i64 - 2),
            }),
            Arg::A(_) => Arg::A(r.below(self.module.atoms.len() + 1) as u32),
            Arg::Literal(_) => Arg::Literal(r.below(self.literals.len() + 1) as u32),
            Arg::F(n) if r.one_in(3) => Arg::F(near(u64::from(n), r) as u32),
            Arg::F(0) => Arg::F(0),
            Arg::Fr(n) => Arg::Fr(near(u64::from(n), r) as u16),
            other => {
                for _ in 0..8 {
                    if let Some(a) = self.neighbour(r, at, 24)
                        && std::mem::discriminant(&a) == std::mem::discriminant(&other)
                    {
                        return a;
                    }
                }
                other
            }
        }
    }

    fn operand(&mut self, r: &mut Random) {
        let Some((i, instr)) = self.random_instr(r) else {
            return;
        };
        let args = self.module.code.args(&instr);
        if args.is_empty() {
            return;
        }
        let k = r.below(args.len());
        let old = args[k];
        match old {
            Arg::List(_) => self.list_at(r, i, old),
            Arg::Alloc(_) => self.alloc_at(r, old),
            _ if r.one_in(6) => {
                let j = r.below(args.len());
                self.module.code.args_mut(&instr).swap(k, j);
            }
            _ => {
                let new = if r.one_in(3) {
                    self.neighbour(r, i, 24)
                } else {
                    Some(self.alike(r, i, old))
                };
                if let Some(new) = new {
                    self.module.code.args_mut(&instr)[k] = new;
                }
            }
        }
    }

    fn list_at(&mut self, r: &mut Random, at: usize, list: Arg) {
        let Arg::List(span) = list else { return };
        if span.len == 0 {
            return;
        }
        let k = r.below(span.len as usize);
        let old = self.module.code.list(span)[k];
        if r.one_in(4) {
            let j = r.below(span.len as usize);
            self.module.code.list_mut(span).swap(k, j);
            return;
        }
        let new = if r.one_in(3) {
            self.neighbour(r, at, 24)
        } else {
            Some(self.alike(r, at, old))
        };
        if let Some(new) = new
            && !matches!(new, Arg::Alloc(_) | Arg::List(_))
        {
            self.module.code.list_mut(span)[k] = new;
        }
    }

    fn list(&mut self, r: &mut Random) {
        for _ in 0..30 {
            let Some((i, instr)) = self.random_instr(r) else {
                return;
            };
            let args = self.module.code.args(&instr);
            if let Some(&list) = args.iter().find(|a| matches!(a, Arg::List(_))) {
                return self.list_at(r, i, list);
            }
        }
    }

    fn alloc_at(&mut self, r: &mut Random, list: Arg) {
        let Arg::Alloc(span) = list else { return };
        let entries = self.module.code.alloc_mut(span);
        if entries.is_empty() {
            return;
        }
        let k = r.below(entries.len());
        let kinds = [AllocKind::Words, AllocKind::Floats, AllocKind::Funs];
        match r.below(3) {
            0 => entries[k].0 = kinds[r.below(3)],
            1 => entries[k].1 = entries[k].1.saturating_sub(1),
            _ => {
                let bits = r.below(26);
                entries[k].1 = r.below(1 << bits) as u64;
            }
        }
    }

    fn drop_test(&mut self, r: &mut Random) {
        self.touch(b"Code");
        let Some(i) = r.pick(&self.seed.tests) else {
            return;
        };
        // Earlier changes may have moved it a little.
        let n = self.module.code.instrs.len();
        for i in i.saturating_sub(3)..(i + 4).min(n) {
            if is_type_test(self.module.code.instrs[i].op) {
                self.module.code.instrs.remove(i);
                return;
            }
        }
    }

    fn instruction(&mut self, r: &mut Random) {
        let Some((i, instr)) = self.random_instr(r) else {
            return;
        };
        let n = self.module.code.instrs.len() - 1;
        let near = (i + r.below(24)).saturating_sub(12).min(n);
        let instrs = &mut self.module.code.instrs;
        match r.below(5) {
            0 => drop(instrs.remove(i)),
            1 => instrs.insert(near, instr),
            2 => instrs.swap(i, near),
            3 => {
                let other = instrs[r.below(n)];
                if !matches!(other.op, Op::Label | Op::FuncInfo) {
                    instrs.insert(i, other);
                }
            }
            _ => {
                // One of this function's with operands of its own.
                let args = self.module.code.args(&instr).to_vec();
                if args.is_empty() {
                    return;
                }
                let k = r.below(args.len());
                let mut args = args;
                args[k] = self.alike(r, i, args[k]);
                let first = self.module.code.add_args(&args);
                let new = Instr { first, ..instr };
                self.module.code.instrs.insert(near, new);
            }
        }
    }

    /// Another operation with operands of the same kinds.
    fn turn(&mut self, r: &mut Random) {
        for _ in 0..10 {
            let Some((i, instr)) = self.random_instr(r) else {
                return;
            };
            let kinds = instr.op.info().operands;
            if kinds.is_empty() && !r.one_in(10) {
                continue;
            }
            let same: Vec<Op> = OPS
                .iter()
                .filter(|o| o.operands == kinds && o.op != instr.op)
                .map(|o| o.op)
                .collect();
            if let Some(op) = r.pick(&same) {
                self.module.code.instrs[i].op = op;
                return;
            }
        }
    }

    /// Live counts, frame sizes, heap needs.
    fn count(&mut self, r: &mut Random) {
        for _ in 0..40 {
            let Some((_, instr)) = self.random_instr(r) else {
                return;
            };
            let kinds = instr.op.info().operands;
            let found = kinds
                .iter()
                .position(|k| matches!(k, Kind::Live | Kind::Frame | Kind::Heap | Kind::Arity));
            let Some(k) = found else { continue };
            match self.module.code.args(&instr)[k] {
                list @ Arg::Alloc(_) => self.alloc_at(r, list),
                Arg::U(n) => {
                    let new = match r.below(3) {
                        0 => n.wrapping_add(1),
                        1 => n.saturating_sub(1),
                        _ => {
                            let bits = r.below(25);
                            r.below(1 << bits) as u64
                        }
                    };
                    self.module.code.args_mut(&instr)[k] = Arg::U(new);
                }
                _ => continue,
            }
            return;
        }
    }

    // ---- tables

    fn literal(&mut self, r: &mut Random) {
        self.touch(b"LitT");
        if self.literals.is_empty() {
            self.literals.push(odd_literal(r));
            return;
        }
        let i = r.below(self.literals.len());
        match r.below(5) {
            0 | 1 => self.literals[i] = odd_literal(r),
            2 => {
                let j = r.below(self.literals.len());
                self.literals.swap(i, j);
            }
            3 => {
                let l = &mut self.literals[i];
                if l.len() > 1 {
                    let at = 1 + r.below(l.len() - 1);
                    l[at] = l[at].wrapping_add(1 + r.below(3) as u8);
                }
            }
            _ => mutate_bytes(&mut self.literals[i], r),
        }
    }

    fn import(&mut self, r: &mut Random) {
        self.touch(b"ImpT");
        let n = self.module.imports.len();
        if n == 0 {
            return;
        }
        let (i, j) = (r.below(n), r.below(n));
        let atom = 1 + r.below(self.module.atoms.len()) as u32;
        let other = self.module.imports[j];
        let import: &mut Import = &mut self.module.imports[i];
        match r.below(5) {
            0 => import.module = other.module,
            1 => import.function = other.function,
            2 => import.arity = other.arity,
            3 => import.function = atom,
            _ => *import = other,
        }
    }

    fn export(&mut self, r: &mut Random) {
        self.touch(b"ExpT");
        let n = self.module.exports.len();
        if n == 0 {
            return;
        }
        let atom = 1 + r.below(self.module.atoms.len()) as u32;
        let other = self.module.exports[r.below(n)];
        let i = r.below(n);
        let export: &mut Export = &mut self.module.exports[i];
        match r.below(4) {
            0 => export.function = atom,
            1 => export.arity = other.arity,
            2 => export.label = other.label,
            _ => {
                // An internal function becomes callable.
                let code = &self.module.code;
                let at = r.below(code.instrs.len());
                let head = (at..code.instrs.len() - 1).find(|&k| code.instrs[k].op == Op::FuncInfo);
                if let Some(k) = head
                    && let &[_, Arg::A(function), Arg::U(arity)] = code.args(&code.instrs[k])
                    && let &[Arg::U(label)] = code.args(&code.instrs[k + 1])
                    && function != 0
                    && arity < 256
                {
                    self.module.exports.push(Export {
                        function,
                        arity: arity as u8,
                        label: label as u32,
                    });
                }
            }
        }
    }

    fn lambda(&mut self, r: &mut Random) {
        self.touch(b"FunT");
        let n = self.module.lambdas.len();
        if n == 0 {
            return self.operand(r);
        }
        let other = self.module.lambdas[r.below(n)];
        let atom = 1 + r.below(self.module.atoms.len()) as u32;
        let i = r.below(n);
        let l: &mut Lambda = &mut self.module.lambdas[i];
        match r.below(7) {
            0 => l.function = atom,
            1 => l.arity = l.arity.wrapping_add(1),
            2 => l.label = other.label,
            3 => l.num_free = r.below(usize::from(l.arity) + 1) as u8,
            4 => l.index = other.index,
            5 => l.old_uniq = r.next() as u32,
            _ => *l = other,
        }
    }

    fn types(&mut self, r: &mut Random) {
        let found = self.file.chunks.iter_mut().find(|c| c.id.0 == *b"Type");
        let Some(chunk) = found else {
            return self.operand(r);
        };
        if chunk.data.len() > 8 {
            let at = 8 + r.below(chunk.data.len() - 8);
            chunk.data[at] ^= 1 << r.below(8);
        }
    }

    fn strings(&mut self, r: &mut Random) {
        self.touch(b"StrT");
        match r.below(2) {
            0 => self.module.strings.truncate(r.below(64)),
            _ => mutate_bytes(&mut self.module.strings, r),
        }
    }

    fn bytes(&mut self, r: &mut Random) {
        let i = r.below(self.file.chunks.len());
        mutate_bytes(&mut self.file.chunks[i].data, r);
    }
}

/// Changes a few bytes.
fn mutate_bytes(bytes: &mut Vec<u8>, r: &mut Random) {
    for _ in 0..1 + r.below(3) {
        if bytes.is_empty() {
            bytes.push(r.next() as u8);
            continue;
        }
        let at = r.below(bytes.len());
        match r.below(6) {
            0 => bytes[at] ^= 1 << r.below(8),
            1 => bytes[at] = r.next() as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][r.below(5)],
            3 => bytes.insert(at, r.next() as u8),
            4 => drop(bytes.remove(at)),
            _ => bytes[at] = bytes[r.below(bytes.len())],
        }
    }
}

/// A term, in the external format, that compilers seldom put where this one goes.
fn odd_literal(r: &mut Random) -> Vec<u8> {
    let mut out = vec![131];
    odd_term(r, 3, &mut out);
    out
}

fn atom(text: &str, out: &mut Vec<u8>) {
    out.extend([119, text.len() as u8]);
    out.extend(text.bytes());
}

fn odd_term(r: &mut Random, depth: usize, out: &mut Vec<u8>) {
    if depth > 0 && r.one_in(2) {
        let n = [0, 1, 2, 3, 5, 33, 40][r.below(7)];
        match r.below(4) {
            0 => {
                out.extend([104, n as u8]);
                (0..n).for_each(|_| odd_term(r, depth - 1, out));
            }
            1 => {
                out.push(108);
                out.extend((n as u32).to_be_bytes());
                (0..n).for_each(|_| odd_term(r, depth - 1, out));
                odd_term(r, depth - 1, out);
            }
            2 => {
                // Keys in order, or out of it, or twice.
                out.push(116);
                out.extend((n as u32).to_be_bytes());
                for i in 0..n {
                    let key = if r.one_in(8) { r.below(9) } else { i };
                    out.extend([97, key as u8]);
                    odd_term(r, depth - 1, out);
                }
            }
            _ => {
                out.push(116);
                out.extend(1u32.to_be_bytes());
                odd_term(r, depth - 1, out);
                odd_term(r, depth - 1, out);
            }
        }
        return;
    }
    match r.below(14) {
        0 => out.extend([97, r.next() as u8]),
        1 => {
            out.push(98);
            out.extend((r.next() as u32).to_be_bytes());
        }
        2 => {
            let n = [1, 7, 8, 9, 16, 40][r.below(6)];
            out.extend([110, n as u8, (r.next() & 1) as u8]);
            (0..n).for_each(|_| out.push(r.next() as u8));
        }
        3 => {
            out.push(70);
            let v = [0.0, -0.0, 1.5, f64::MAX, f64::MIN_POSITIVE, 1e300][r.below(6)];
            out.extend(v.to_bits().to_be_bytes());
        }
        4 => out.push(106),
        5 => {
            let n = [0, 1, 63, 64, 65, 200][r.below(6)];
            out.push(109);
            out.extend((n as u32).to_be_bytes());
            (0..n).for_each(|_| out.push(r.next() as u8));
        }
        6 => {
            // Some bits of the last byte only.
            let n = [1, 5, 63, 64, 65, 130][r.below(6)];
            out.push(77);
            out.extend((n as u32).to_be_bytes());
            out.push(1 + r.below(8) as u8);
            (0..n).for_each(|_| out.push(r.next() as u8));
        }
        7 => {
            out.push(107);
            let n = r.below(70);
            out.extend((n as u16).to_be_bytes());
            (0..n).for_each(|_| out.push(r.next() as u8));
        }
        8 => {
            // fun M:F/A
            out.push(113);
            atom([NAME, "erlang", "lists"][r.below(3)], out);
            atom(["reverse", "start", "self", "map"][r.below(4)], out);
            out.extend([97, r.below(4) as u8]);
        }
        9 => {
            // A pid of another node, or of this one.
            out.push(88);
            atom(["nonode@nohost", "other@host"][r.below(2)], out);
            out.extend((r.below(9) as u32).to_be_bytes());
            out.extend([0; 8]);
        }
        10 => {
            out.push(90);
            let n = 1 + r.below(5);
            out.extend((n as u16).to_be_bytes());
            atom(["nonode@nohost", "other@host"][r.below(2)], out);
            out.extend([0; 4]);
            (0..n * 4).for_each(|_| out.push(r.below(3) as u8));
        }
        11 => {
            // A local fun of the module, with any hash, arity and number of captured values.
            let free = r.below(4);
            out.push(112);
            out.extend(0u32.to_be_bytes());
            out.push(r.below(5) as u8);
            out.extend([r.below(2) as u8; 16]);
            out.extend((r.below(3) as u32).to_be_bytes());
            out.extend((free as u32).to_be_bytes());
            atom(NAME, out);
            out.extend([97, r.below(3) as u8, 97, 0]);
            out.push(88);
            atom("nonode@nohost", out);
            out.extend([0; 12]);
            (0..free).for_each(|_| out.extend([97, 7]));
        }
        12 => atom(
            ["true", "undefined", "infinity", "", "\u{e9}"][r.below(5)],
            out,
        ),
        _ => {
            // A deep list.
            let n = 50 + r.below(200);
            (0..n).for_each(|_| out.extend([108, 0, 0, 0, 1]));
            out.push(106);
            (0..n).for_each(|_| out.push(106));
        }
    }
}
