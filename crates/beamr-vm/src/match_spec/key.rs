//! What patterns say about a table's key, so that a look-up or a range replaces a walk over the table.

use std::cmp::Ordering;

use beamr_term::{Tables, Word, atoms, order};

use super::variable;

/// What a pattern (or several) says about the key.
#[derive(Clone, Debug)]
pub enum KeyPlan {
    /// Nothing: all rows.
    All,
    /// One of these keys, all different.
    Keys(Vec<Word>),
    /// Rows between the two patterns of keys ([`compare_partly`]), both included.
    Range(Word, Word),
}

fn is_wild(t: Word, tables: &Tables) -> bool {
    t == atoms::UNDERSCORE.word() || variable(t, tables).is_some()
}

/// Whether a term has a variable or `'_'` anywhere, or a map (whose patterns match more than themselves).
pub fn is_ground(t: Word, tables: &Tables) -> bool {
    let mut rest = vec![t];
    while let Some(mut t) = rest.pop() {
        while let Some((h, tail)) = t.as_cons() {
            rest.push(h);
            t = tail;
        }
        if let Some(elements) = t.as_tuple() {
            rest.extend_from_slice(elements);
        } else if t.is_map() || is_wild(t, tables) {
            return false;
        }
    }
    true
}

/// The key of a pattern: `None` when the pattern is a variable (any key), `Some(None)` when no row can match.
fn key_of(pattern: Word, keypos: usize, tables: &Tables) -> Option<Option<Word>> {
    if is_wild(pattern, tables) {
        return None;
    }
    Some(
        pattern
            .as_tuple()
            .and_then(|elements| elements.get(keypos).copied()),
    )
}

/// The plan for the patterns of a specification. `keypos` counts from 0; `ordered` is whether keys are ordered (and
/// equal by `==`).
pub fn plan(patterns: &[Word], keypos: usize, ordered: bool, tables: &Tables) -> KeyPlan {
    let mut keys: Vec<Word> = Vec::new();
    let mut all_ground = true;
    for p in patterns {
        match key_of(*p, keypos, tables) {
            None => return KeyPlan::All,
            Some(None) => {}
            Some(Some(key)) => {
                if is_wild(key, tables) {
                    return KeyPlan::All;
                }
                let ground = is_ground(key, tables);
                if !ground && (!ordered || !starts_bound(key, tables)) {
                    return KeyPlan::All;
                }
                all_ground &= ground;
                let same = |k: &Word| {
                    if ordered {
                        ground && order::eq(*k, key, tables)
                    } else {
                        order::eq_exact(*k, key, tables)
                    }
                };
                if !keys.iter().any(same) {
                    keys.push(key);
                }
            }
        }
    }
    if all_ground && (!ordered || keys.len() <= 1) {
        return KeyPlan::Keys(keys);
    }
    let mut least = keys[0];
    let mut most = keys[0];
    for k in &keys[1..] {
        if compare_low(*k, least, tables) == Ordering::Less {
            least = *k;
        }
        if compare_high(*k, most, tables) == Ordering::Greater {
            most = *k;
        }
    }
    KeyPlan::Range(least, most)
}

/// Whether a pattern of a key narrows a range: it has structure before its first variable. A map anywhere before counts as variable.
fn starts_bound(key: Word, _tables: &Tables) -> bool {
    // A tuple fixes its size at least, a list its type.
    key.is_tuple() || key.is_cons()
}

/// A step of a comparison of a pattern with a key.
enum Step {
    Go(Word, Word),
    Done(Ordering),
    Equal,
    Unknown,
}

fn step(p: Word, k: Word, rest: &mut Vec<(Word, Word)>, tables: &Tables) -> Step {
    if is_wild(p, tables) || p.is_map() {
        return Step::Unknown;
    }
    if let (Some((ph, pt)), Some((kh, kt))) = (p.as_cons(), k.as_cons()) {
        rest.push((pt, kt));
        return Step::Go(ph, kh);
    }
    if let (Some(pe), Some(ke)) = (p.as_tuple(), k.as_tuple()) {
        if pe.len() != ke.len() {
            return Step::Done(pe.len().cmp(&ke.len()));
        }
        for (a, b) in pe.iter().zip(ke).rev() {
            rest.push((*a, *b));
        }
        return Step::Equal;
    }
    // Terms of one type that are not taken apart here are ground; of two types the order decides.
    match order::compare(p, k, tables) {
        Ordering::Equal => Step::Equal,
        o => Step::Done(o),
    }
}

/// Compares a pattern with a key up to the first place that the pattern leaves open, where they count as equal.
pub fn compare_partly(pattern: Word, key: Word, tables: &Tables) -> Ordering {
    let mut rest = Vec::new();
    let (mut p, mut k) = (pattern, key);
    loop {
        match step(p, k, &mut rest, tables) {
            Step::Go(a, b) => {
                (p, k) = (a, b);
                continue;
            }
            Step::Done(o) => return o,
            Step::Unknown => return Ordering::Equal,
            Step::Equal => {}
        }
        match rest.pop() {
            Some((a, b)) => (p, k) = (a, b),
            None => return Ordering::Equal,
        }
    }
}

/// Two patterns by the least key that each can match: open places are below everything.
fn compare_low(a: Word, b: Word, tables: &Tables) -> Ordering {
    compare_open(a, b, Ordering::Less, tables)
}

/// Two patterns by the greatest key that each can match: open places are above everything.
fn compare_high(a: Word, b: Word, tables: &Tables) -> Ordering {
    compare_open(a, b, Ordering::Greater, tables)
}

fn compare_open(a: Word, b: Word, open: Ordering, tables: &Tables) -> Ordering {
    let is_open = |t: Word| is_wild(t, tables) || t.is_map();
    let mut rest = vec![(a, b)];
    while let Some((a, b)) = rest.pop() {
        match (is_open(a), is_open(b)) {
            (true, true) => return Ordering::Equal,
            (true, false) => return open,
            (false, true) => return open.reverse(),
            _ => {}
        }
        if let (Some((ah, at)), Some((bh, bt))) = (a.as_cons(), b.as_cons()) {
            rest.push((at, bt));
            rest.push((ah, bh));
            continue;
        }
        if let (Some(ae), Some(be)) = (a.as_tuple(), b.as_tuple()) {
            if ae.len() != be.len() {
                return ae.len().cmp(&be.len());
            }
            rest.extend(ae.iter().zip(be).rev().map(|(x, y)| (*x, *y)));
            continue;
        }
        match order::compare(a, b, tables) {
            Ordering::Equal => {}
            o => return o,
        }
    }
    Ordering::Equal
}

/// Whether the body of a clause gives a tuple with the key of the row that its pattern matched: what `select_replace` demands.
/// `keypos` counts from 0.
pub fn keeps_key(keypos: usize, pattern: Word, body: Word, tables: &Tables) -> bool {
    let Some((single, tail)) = body.as_cons() else {
        return false;
    };
    if !tail.is_nil() {
        return false;
    }
    if single == atoms::DOLLAR_UNDERSCORE.word() {
        return true;
    }
    let Some(parts) = single.as_tuple() else {
        return false;
    };
    let Some(key) = pattern.as_tuple().and_then(|e| e.get(keypos).copied()) else {
        return false;
    };
    let (built, constant) = match parts {
        [c, t] if *c == atoms::CONST.word() => (*t, true),
        [t] => (*t, false),
        _ => return false,
    };
    let Some(new_key) = built.as_tuple().and_then(|e| e.get(keypos).copied()) else {
        return false;
    };
    if same_key(key, new_key, constant, tables) {
        return true;
    }
    // `{element, KeyPos, '$_'}`.
    !constant
        && matches!(new_key.as_tuple(), Some([f, n, whole])
            if f.as_atom().is_some_and(|a| tables.atoms.text(a) == "element")
                && n.as_small() == Some(keypos as i64 + 1)
                && *whole == atoms::DOLLAR_UNDERSCORE.word())
}

/// Whether the expression `b` builds what the pattern `a` matched.
fn same_key(a: Word, b: Word, constant: bool, tables: &Tables) -> bool {
    let mut rest = vec![(a, b, constant)];
    while let Some((a, b, constant)) = rest.pop() {
        if let Some((bh, bt)) = b.as_cons() {
            let Some((ah, at)) = a.as_cons() else {
                return false;
            };
            rest.push((at, bt, constant));
            rest.push((ah, bh, constant));
            continue;
        }
        if let Some(parts) = b.as_tuple() {
            let (built, constant) = if constant {
                (b, true)
            } else {
                match parts {
                    [inner] if inner.is_tuple() => (*inner, false),
                    [c, t] if *c == atoms::CONST.word() => {
                        rest.push((a, *t, true));
                        continue;
                    }
                    _ => return false,
                }
            };
            let (Some(ae), Some(be)) = (a.as_tuple(), built.as_tuple()) else {
                return false;
            };
            if ae.len() != be.len() {
                return false;
            }
            rest.extend(ae.iter().zip(be).map(|(x, y)| (*x, *y, constant)));
            continue;
        }
        if b.is_map() {
            return false;
        }
        if b.is_immediate() {
            let special = a == atoms::UNDERSCORE.word()
                || a == atoms::DOLLAR_DOLLAR.word()
                || a == atoms::DOLLAR_UNDERSCORE.word()
                || (constant && variable(a, tables).is_some());
            if a != b || special {
                return false;
            }
            continue;
        }
        if !order::eq_exact(a, b, tables) {
            return false;
        }
    }
    true
}

/// The patterns of a specification that compiled, and whether each clause keeps the key.
pub fn clauses(spec: Word) -> Vec<(Word, Word)> {
    let mut all = Vec::new();
    let mut l = spec;
    while let Some((h, t)) = l.as_cons() {
        if let Some([pattern, _, body]) = h.as_tuple() {
            all.push((*pattern, *body));
        }
        l = t;
    }
    all
}
