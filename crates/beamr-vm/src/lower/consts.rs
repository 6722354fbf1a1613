//! The constants of a module: atoms, literals, large integers, record definitions.
//!
//! Everything that is not an immediate lies in one literal area that is sized before it is built.

use std::collections::HashMap;

use beamr_file::{Arg, Module};
use beamr_term::copy::{CopyMode, copy, size_in_words};
use beamr_term::etf::{self, DecodeOptions};
use beamr_term::{Atom, Build, Fragment, LiteralArea, LiteralBuilder, Tables, Word};

use super::error::LowerFault;

/// Most words of one literal.
const MAX_LITERAL: usize = 1 << 28;

/// Where an error was, for [`Constants::build`]: table and entry.
pub type At = (&'static str, usize);

/// See the module.
pub struct Constants {
    atoms: Vec<Atom>,
    /// By index in the file.
    pub literals: Vec<Word>,
    /// Integer operands beyond small integers.
    wide: HashMap<i64, Word>,
    /// Integer operands beyond 64 bits, by their index in the code.
    bigs: HashMap<u32, Word>,
    /// Float operands (old code) by their bits.
    floats: HashMap<u64, Word>,
    /// Native record definitions.
    pub records: Vec<Word>,
    /// Holds all of them.
    pub area: Option<LiteralArea>,
}

impl Constants {
    /// Interns the atoms and builds the literals of a module.
    pub fn build(module: &Module, tables: &Tables) -> Result<Constants, (At, LowerFault)> {
        let mut c = Constants {
            atoms: Vec::with_capacity(module.atoms.len()),
            literals: Vec::with_capacity(module.literals.len()),
            wide: HashMap::new(),
            bigs: HashMap::new(),
            floats: HashMap::new(),
            records: Vec::new(),
            area: None,
        };
        for (i, text) in module.atoms.iter().enumerate() {
            let atom = tables
                .atoms
                .intern(text)
                .map_err(|e| (("atom", i + 1), e.into()))?;
            c.atoms.push(atom);
        }
        let mut words = c.scan_code(module);
        // Decoded aside first, so that the area is of the right size.
        let options = DecodeOptions {
            max_words: MAX_LITERAL,
            ..DecodeOptions::default()
        };
        let mut scratch = Fragment::with_capacity(1 << 10);
        let mut decoded = Vec::with_capacity(module.literals.len());
        for (i, bytes) in module.literals.iter().enumerate() {
            let (w, _) = etf::decode(bytes, tables, options, &mut scratch)
                .map_err(|e| (("literal", i), LowerFault::BadLiteral(e)))?;
            words += size_in_words(w, CopyMode::Share, usize::MAX).unwrap_or_default();
            decoded.push(w);
        }
        // Read when a program asks for them; a file with broken ones is not loaded.
        for (table, bytes) in [
            ("attributes", &module.attributes),
            ("compile information", &module.compile_info),
        ] {
            if !bytes.is_empty() {
                etf::decode(bytes, tables, options, &mut scratch)
                    .map_err(|e| ((table, 0), LowerFault::BadLiteral(e)))?;
            }
        }
        for r in &module.records.records {
            // `{Name, Exported, Fields}`, a list cell and a pair for each field.
            words += 4;
            for field in module.records.fields(r) {
                words += 2 + 3;
                words += match field.default {
                    Some(Arg::I(v)) if Word::small(v).is_none() => 2,
                    Some(Arg::Big(i)) => 1 + module.records.operands().big(i).limbs.len(),
                    _ => 0,
                };
            }
        }
        if words == 0 && module.literals.is_empty() {
            return Ok(c);
        }
        let mut b = LiteralArea::builder(words).map_err(|e| (("literal", 0), e.into()))?;
        c.literals.extend(
            decoded
                .into_iter()
                .map(|w| copy(w, &mut b, CopyMode::Share)),
        );
        c.build_operands(module, &mut b);
        c.build_records(module, &mut b)?;
        c.area = Some(b.finish());
        Ok(c)
    }

    /// Notes every operand that needs a word of its own; gives the words that they need.
    fn scan_code(&mut self, module: &Module) -> usize {
        let mut words = 0;
        let mut note = |arg: Arg| {
            let (new, size) = match arg {
                Arg::I(v) if Word::small(v).is_none() => (self.wide.insert(v, Word::NONE), 2),
                Arg::Big(i) => (
                    self.bigs.insert(i, Word::NONE),
                    1 + module.code.big(i).limbs.len(),
                ),
                Arg::Float(bits) => (self.floats.insert(bits, Word::NONE), 2),
                _ => return,
            };
            if new.is_none() {
                words += size;
            }
        };
        for instr in &module.code.instrs {
            for &arg in module.code.args(instr) {
                match arg {
                    Arg::List(span) => module.code.list(span).iter().for_each(|a| note(*a)),
                    _ => note(arg),
                }
            }
        }
        words
    }

    fn build_operands(&mut self, module: &Module, b: &mut LiteralBuilder) {
        for (v, w) in &mut self.wide {
            *w = b.integer(*v);
        }
        for (i, w) in &mut self.bigs {
            let big = module.code.big(*i);
            *w = b.big(big.negative, &big.limbs);
        }
        for (bits, w) in &mut self.floats {
            *w = b.float(f64::from_bits(*bits));
        }
    }

    /// Definitions as `{Name, Exported, [{Field, Default} | {Field}]}`: a field without a default has no second element.
    fn build_records(
        &mut self,
        module: &Module,
        b: &mut LiteralBuilder,
    ) -> Result<(), (At, LowerFault)> {
        for (i, r) in module.records.records.iter().enumerate() {
            let at = ("record", i);
            let bad = || (at, LowerFault::Inconsistent("a record definition"));
            let mut fields = Vec::new();
            for f in module.records.fields(r) {
                let name = self.atom(f.name).ok_or_else(bad)?;
                let field = match f.default {
                    None => b.tuple(&[name]),
                    Some(arg) => {
                        let value = match arg {
                            Arg::A(n) => self.atom(n).ok_or_else(bad)?,
                            Arg::I(v) => b.integer(v),
                            Arg::Big(i) => {
                                let big = module.records.operands().big(i);
                                b.big(big.negative, &big.limbs)
                            }
                            Arg::Literal(n) => *self.literals.get(n as usize).ok_or_else(bad)?,
                            _ => return Err(bad()),
                        };
                        b.tuple(&[name, value])
                    }
                };
                fields.push(field);
            }
            let name = self.atom(r.name).ok_or_else(bad)?;
            let exported = self.atom(r.exported).ok_or_else(bad)?;
            let fields = b.list(fields);
            self.records.push(b.tuple(&[name, exported, fields]));
        }
        Ok(())
    }

    /// An atom operand's word; `[]` for 0.
    pub fn atom(&self, number: u32) -> Option<Word> {
        match number {
            0 => Some(Word::NIL),
            n => self.atoms.get(n as usize - 1).map(|a| a.word()),
        }
    }
    /// An atom by its number in the file, from 1.
    pub fn name(&self, number: u32) -> Option<Atom> {
        self.atoms.get((number as usize).checked_sub(1)?).copied()
    }
    /// The word of an operand that is a constant.
    pub fn word(&self, arg: Arg) -> Option<Word> {
        match arg {
            Arg::A(n) => self.atom(n),
            Arg::I(v) => Word::small(v).or_else(|| self.wide.get(&v).copied()),
            Arg::Big(i) => self.bigs.get(&i).copied(),
            Arg::Literal(i) => self.literals.get(i as usize).copied(),
            Arg::Float(bits) => self.floats.get(&bits).copied(),
            Arg::Char(c) => Some(Word::fixnum(i64::from(c))),
            _ => None,
        }
    }
}
