//! Patterns: tests on registers.
//!
//! Register 0 holds the term. A test looks at a *place*: a register, or a word behind the address that a register
//! holds (an element of a tuple, head or tail of a cell). What a pattern does not care about costs nothing.

use beamr_term::{Subtag, Tables, Word, atoms, maps, order};

use super::{Compiler, SpecError, variable};

/// Where a term is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// In a register.
    Register(u32),
    /// The word at this offset behind the address in a register.
    Behind(u32, u32),
}

/// One test.
#[derive(Clone, Copy, Debug)]
pub(super) enum Test {
    /// Binds a variable.
    Bind(Place, u32),
    /// Equal to a bound variable.
    Same(Place, u32),
    /// This immediate.
    Is(Place, Word),
    /// Equal to this constant.
    Equal(Place, Word),
    /// A tuple of so many elements; its address goes to a register.
    Tuple(Place, u32, u32),
    /// A list cell; its address goes to a register.
    Cell(Place, u32),
    /// A map of at least so many pairs; it goes to a register.
    Map(Place, u32, u32),
    /// The map in a register has this key; the value goes to a register.
    Key(u32, Word, u32),
}

impl Compiler<'_> {
    /// Numbers the variables of all patterns in ascending order.
    pub(super) fn collect_variables(&mut self, patterns: &[Word]) -> Result<(), SpecError> {
        let mut found = Vec::new();
        let mut rest = patterns.to_vec();
        while let Some(mut t) = rest.pop() {
            self.visit()?;
            while let Some((h, tail)) = t.as_cons() {
                self.visit()?;
                rest.push(h);
                t = tail;
            }
            if let Some(n) = variable(t, self.tables) {
                found.push(n);
            } else if let Some(elements) = t.as_tuple() {
                rest.extend_from_slice(elements);
            } else if t.is_map() {
                rest.extend(maps::iter(t).map(|(_, v)| v));
            }
        }
        found.sort_unstable();
        found.dedup();
        self.variables = found;
        Ok(())
    }
    fn register(&mut self, used: &mut u32) -> u32 {
        let r = *used;
        *used += 1;
        self.registers = self.registers.max(*used as usize);
        r
    }
    /// The tests of one pattern; notes which variables it binds.
    pub(super) fn pattern(&mut self, pattern: Word) -> Result<Vec<Test>, SpecError> {
        self.bound = vec![false; self.variables.len()];
        let mut tests = Vec::new();
        let mut used = 0;
        let root = self.register(&mut used);
        let mut rest = vec![(Place::Register(root), pattern)];
        while let Some((at, t)) = rest.pop() {
            self.visit()?;
            if t == atoms::UNDERSCORE.word() {
                continue;
            }
            if let Some(n) = variable(t, self.tables) {
                // All variables of all patterns were numbered.
                let Some(i) = self.index_of(n) else {
                    return Err(SpecError::Bad);
                };
                if std::mem::replace(&mut self.bound[i as usize], true) {
                    tests.push(Test::Same(at, i));
                } else {
                    tests.push(Test::Bind(at, i));
                }
                continue;
            }
            if t.is_immediate() {
                tests.push(Test::Is(at, t));
                continue;
            }
            if let Some((head, tail)) = t.as_cons() {
                let r = self.register(&mut used);
                tests.push(Test::Cell(at, r));
                rest.push((Place::Behind(r, 1), tail));
                rest.push((Place::Behind(r, 0), head));
                continue;
            }
            if let Some(elements) = t.as_tuple() {
                let r = self.register(&mut used);
                tests.push(Test::Tuple(at, elements.len() as u32, r));
                for (i, e) in elements.iter().enumerate().rev() {
                    rest.push((Place::Behind(r, i as u32 + 1), *e));
                }
                continue;
            }
            if t.is_map() {
                let r = self.register(&mut used);
                tests.push(Test::Map(at, maps::size(t) as u32, r));
                for (key, value) in maps::iter(t) {
                    if variable(key, self.tables).is_some() {
                        self.error(|_| "Variable found in map key.".into())?;
                    } else if key == atoms::UNDERSCORE.word() {
                        self.error(|_| "Underscore found in map key.".into())?;
                    }
                    let to = self.register(&mut used);
                    let key = self.constant(key);
                    tests.push(Test::Key(r, key, to));
                    rest.push((Place::Register(to), value));
                }
                continue;
            }
            let constant = self.constant(t);
            tests.push(Test::Equal(at, constant));
        }
        // Cheap tests of constants first would change nothing that can be seen; the order of the pattern is kept.
        Ok(tests)
    }
}

#[inline(always)]
fn read(registers: &[Word], at: Place) -> Word {
    match at {
        Place::Register(r) => registers[r as usize],
        // SAFETY: a register that is read through holds a tuple of enough elements or a cell: the tests before this
        // one saw to that.
        Place::Behind(r, offset) => unsafe {
            Word::from_bits(*registers[r as usize].ptr().add(offset as usize))
        },
    }
}

/// Runs tests on the term in register 0. The slices are large enough for the specification that the tests come from.
#[inline]
pub(super) fn matches(
    tests: &[Test],
    registers: &mut [Word],
    variables: &mut [Word],
    tables: &Tables,
) -> bool {
    for test in tests {
        let ok = match *test {
            Test::Bind(at, v) => {
                variables[v as usize] = read(registers, at);
                true
            }
            Test::Same(at, v) => {
                order::eq_exact(read(registers, at), variables[v as usize], tables)
            }
            Test::Is(at, w) => read(registers, at) == w,
            Test::Equal(at, w) => order::eq_exact(read(registers, at), w, tables),
            Test::Tuple(at, arity, to) => {
                let t = read(registers, at);
                registers[to as usize] = t;
                t.is_boxed() && t.header() == beamr_term::Header::new(Subtag::Tuple, arity as usize)
            }
            Test::Cell(at, to) => {
                let t = read(registers, at);
                registers[to as usize] = t;
                t.is_cons()
            }
            Test::Map(at, pairs, to) => {
                let t = read(registers, at);
                registers[to as usize] = t;
                t.is_map() && maps::size(t) >= pairs as usize
            }
            Test::Key(map, key, to) => match maps::get(registers[map as usize], key, tables) {
                Some(v) => {
                    registers[to as usize] = v;
                    true
                }
                None => false,
            },
        };
        if !ok {
            return false;
        }
    }
    true
}
