//! Helpers that natives of several modules share: argument reading, list building, long loops.

use beamr_abi::{Ctx, Escape};
use beamr_term::{Alloc, Atom, Tables, Word};

/// List cells a native walks in one step before it charges the slice and traps to itself.
pub const STEP: usize = 16_000;

/// Reductions for `n` list cells or words of work.
#[inline]
pub const fn cost(n: usize) -> i64 {
    (n / 16) as i64
}

/// `badarg` whose cause is an atom, for the module that words it.
#[cold]
pub fn because(ctx: &mut Ctx, cause: &str) -> Escape {
    match ctx.atom(cause) {
        Ok(w) => ctx.badarg_because(w),
        Err(e) => e,
    }
}

/// `badarg` because of an option.
#[cold]
pub fn bad_option(ctx: &mut Ctx) -> Escape {
    because(ctx, "badopt")
}

/// The items of a list of options; without them, it is the options that are wrong.
pub fn options(ctx: &mut Ctx, list: Word) -> Result<Vec<Word>, Escape> {
    list_items(ctx, list).map_err(|_| bad_option(ctx))
}

/// A small integer argument that is not negative.
#[inline]
pub fn index(ctx: &mut Ctx, w: Word) -> Result<usize, Escape> {
    match w.as_small() {
        Some(i) if i >= 0 => Ok(i as usize),
        _ => Err(ctx.badarg()),
    }
}

/// An atom argument.
#[inline]
pub fn atom(ctx: &mut Ctx, w: Word) -> Result<Atom, Escape> {
    w.as_atom().ok_or_else(|| ctx.badarg())
}

/// The text of an atom, `None` for anything else.
#[inline]
pub fn name<'a>(ctx: &Ctx, w: Word) -> Option<&'a str> {
    let tables: &'a Tables = ctx.tables();
    w.as_atom().map(|a| tables.atoms.text(a))
}

/// The items of a proper list; `badarg` for anything else.
pub fn list_items(ctx: &mut Ctx, list: Word) -> Result<Vec<Word>, Escape> {
    let mut items = Vec::new();
    let mut l = list;
    while let Some((h, t)) = l.as_cons() {
        items.push(h);
        l = t;
    }
    if !l.is_nil() {
        return Err(ctx.badarg());
    }
    ctx.bump(cost(items.len()));
    Ok(items)
}

/// Builds a list front to back: cells are linked as they come.
pub struct ListBuilder {
    first: Word,
    last: *mut u64,
}

impl ListBuilder {
    /// An empty list.
    pub fn new() -> ListBuilder {
        ListBuilder {
            first: Word::NIL,
            last: std::ptr::null_mut(),
        }
    }
    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, a: &mut impl Alloc, item: Word) {
        let p = a.alloc(2);
        // SAFETY: a fresh cell; `last` is the cell that this builder made before, and nothing moved since
        // (no collection inside a native).
        unsafe {
            *p = item.bits();
            *p.add(1) = Word::NIL.bits();
            let w = Word::list(p);
            if self.last.is_null() {
                self.first = w;
            } else {
                *self.last.add(1) = w.bits();
            }
        }
        self.last = p;
    }
    /// The list, ending in `tail`.
    #[inline]
    pub fn finish(self, tail: Word) -> Word {
        if self.last.is_null() {
            return tail;
        }
        // SAFETY: as in `push`.
        unsafe { *self.last.add(1) = tail.bits() };
        self.first
    }
}
