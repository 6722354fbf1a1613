//! Whether a process still uses an image (`check_process_code`).

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use beamr_abi::Body;
use beamr_term::word::PRIMARY_HEADER;
use beamr_term::{FunEntry, Subtag, Word, is_literal};

use super::image::Image;
use crate::gc::Owner;

/// How a process uses an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Uses {
    /// It runs in it or will return into it.
    pub code: bool,
    /// A term that it can reach is a fun of it.
    pub funs: bool,
    /// A term that it can reach is a literal of it.
    pub literals: bool,
}

impl Uses {
    /// Whether the image cannot be purged while the process lives.
    pub fn blocks_purge(self) -> bool {
        self.code || self.funs
    }
}

/// What `body` uses of `image`. Walks everything that the process can reach.
///
/// # Safety
/// The caller owns the body, which is at a safe point; `x` are its live registers.
pub unsafe fn uses(body: &mut Body, owner: &mut dyn Owner, x: &mut [Word], image: &Image) -> Uses {
    let mut uses = Uses {
        code: image.contains(body.ip as usize),
        ..Uses::default()
    };
    let mut todo: Vec<Word> = Vec::new();
    crate::gc::visit_all(body, owner, x, &mut |words| todo.extend_from_slice(words));
    let mut p = body.heap.stop;
    while p < body.heap.end {
        if *p & 3 == PRIMARY_HEADER {
            // A return address may be the end of the image; the call before it is inside.
            uses.code |= image.contains((*p as usize).wrapping_sub(1));
        } else {
            todo.push(Word::from_bits(*p));
        }
        p = p.add(1);
    }
    let mut seen: HashSet<u64> = HashSet::new();
    while let Some(w) = todo.pop() {
        if w.is_immediate() || w.is_none() {
            continue;
        }
        if is_literal(w.ptr()) {
            uses.literals |= image.literal_areas().any(|a| a.contains(w.ptr()));
            continue;
        }
        if !seen.insert(w.bits()) {
            continue;
        }
        if w.is_cons() {
            todo.push(w.head());
            todo.push(w.tail());
            continue;
        }
        let header = w.header();
        if header.subtag() == Subtag::Fun {
            let entry = w.field(1) as usize as *const FunEntry;
            let code = (*entry).code.load(Ordering::Acquire);
            uses.funs |= image.contains(code as usize);
        }
        for i in 1 + header.raw_words()..=header.arity() {
            todo.push(w.term_field(i));
        }
    }
    uses
}
