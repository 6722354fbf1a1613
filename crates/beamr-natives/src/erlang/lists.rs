//! `erlang`: natives on lists: `++`, `--`, `hd`, `tl`, `length`.

use std::collections::BTreeMap;

use beamr_abi::{Ctx, Escape, NativeClass, NativeEntry, NativeFn, TrapTarget};
use beamr_term::{Build, Word, order};

use crate::support::{ListBuilder, STEP, cost};

/// `erlang:'++'(List, Tail)`. Long lists go through two reversals, each of which can be left and
/// re-entered; short ones are copied front to back.
pub fn append_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (list, tail) = (args[0], args[1]);
    if list.is_nil() {
        return Ok(tail);
    }
    let mut out = ListBuilder::new();
    let mut l = list;
    let mut n = 0;
    while let Some((h, t)) = l.as_cons() {
        if n == STEP {
            return append_long(ctx, &[list, tail, list, Word::NIL]);
        }
        out.push(ctx, h);
        l = t;
        n += 1;
    }
    ctx.bump(cost(n));
    if !l.is_nil() {
        return Err(ctx.badarg());
    }
    Ok(out.finish(tail))
}

/// `++` of a long list: the arguments, the rest to reverse, reversed so far.
fn append_long(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (mut rest, mut reversed) = (args[2], args[3]);
    let mut n = 0;
    while let Some((h, t)) = rest.as_cons() {
        reversed = ctx.cons(h, reversed);
        rest = t;
        n += 1;
        if n == STEP {
            ctx.bump(cost(n));
            return Err(ctx.trap(
                TrapTarget::Native(&APPEND_LONG),
                &[args[0], args[1], rest, reversed],
            ));
        }
    }
    ctx.bump(cost(n));
    if !rest.is_nil() {
        return Err(ctx.badarg());
    }
    crate::lists::reverse_2(ctx, &[reversed, args[1]])
}

/// `erlang:'--'(List, Remove)`: removes, for each element of `Remove`, its first occurrence.
///
/// Short right sides are scanned; long ones are sorted into a multiset first, so that the cost is
/// `N log M` as in OTP.
fn subtract_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (list, remove) = (args[0], args[1]);
    let mut items = Vec::new();
    let mut l = list;
    while let Some((h, t)) = l.as_cons() {
        items.push(h);
        l = t;
    }
    let mut gone = Vec::new();
    let mut r = remove;
    while let Some((h, t)) = r.as_cons() {
        gone.push(h);
        r = t;
    }
    if !l.is_nil() || !r.is_nil() {
        return Err(ctx.badarg());
    }
    if items.is_empty() || gone.is_empty() {
        return Ok(list);
    }
    ctx.bump(cost(items.len() + gone.len()));
    let tables = ctx.tables();
    let mut out = ListBuilder::new();
    if gone.len() <= 8 {
        for (i, h) in items.iter().enumerate() {
            if gone.is_empty() {
                // The untouched rest is shared.
                let mut rest = list;
                for _ in 0..i {
                    rest = rest.tail();
                }
                return Ok(out.finish(rest));
            }
            match gone
                .iter()
                .position(|g| g == h || order::eq_exact(*g, *h, tables))
            {
                Some(at) => {
                    gone.swap_remove(at);
                }
                None => out.push(ctx, *h),
            }
        }
        return Ok(out.finish(Word::NIL));
    }
    struct Key<'a>(Word, &'a beamr_term::Tables);
    impl PartialEq for Key<'_> {
        fn eq(&self, o: &Self) -> bool {
            self.cmp(o).is_eq()
        }
    }
    impl Eq for Key<'_> {}
    impl PartialOrd for Key<'_> {
        fn partial_cmp(&self, o: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(o))
        }
    }
    impl Ord for Key<'_> {
        fn cmp(&self, o: &Self) -> std::cmp::Ordering {
            order::compare_exact(self.0, o.0, self.1)
        }
    }
    // The order of keys does not depend on what the tables change (atoms are only added).
    #[allow(clippy::mutable_key_type)]
    let mut counts: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    for g in gone {
        *counts.entry(Key(g, tables)).or_insert(0) += 1;
    }
    ctx.bump(cost(items.len() * 8));
    for h in items {
        match counts.get_mut(&Key(h, tables)) {
            Some(n) if *n > 0 => *n -= 1,
            _ => out.push(ctx, h),
        }
    }
    Ok(out.finish(Word::NIL))
}

/// `hd(List)`.
fn hd_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    args[0].as_cons().map(|c| c.0).ok_or_else(|| ctx.badarg())
}

/// `tl(List)`.
fn tl_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    args[0].as_cons().map(|c| c.1).ok_or_else(|| ctx.badarg())
}

/// `length(List)`.
fn length_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut n = 0;
    let mut l = args[0];
    while let Some((_, t)) = l.as_cons() {
        n += 1;
        l = t;
    }
    // As engines charge that do it in place.
    ctx.bump((n >> 9) as i64);
    if l.is_nil() {
        Ok(Word::fixnum(n as i64))
    } else {
        Err(ctx.badarg())
    }
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func)
}

static APPEND_LONG: NativeEntry = row("++", 4, append_long).continues(2);

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("++", 2, append_2).class(NativeClass::Traps),
    row("append", 2, append_2).class(NativeClass::Traps),
    row("--", 2, subtract_2),
    row("subtract", 2, subtract_2),
    row("hd", 1, hd_1),
    row("tl", 1, tl_1),
    row("length", 1, length_1),
];
