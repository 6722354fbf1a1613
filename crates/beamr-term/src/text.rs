//! Lists and nested data as bytes and strings, and back: proper lists to vectors, iolists,
//! character lists, chardata.
//!
//! Every walk is iterative, so that depth costs no stack, and those over nested data stop at a
//! [`WalkLimit`]: a term of few words can stand for a very long iolist through sharing.

use crate::alloc::{Alloc, Build};
use crate::bits::BitsView;
use crate::word::Word;

/// Where a walk over nested data gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WalkLimit {
    /// Bytes of output.
    pub bytes: usize,
    /// List cells visited.
    pub cells: u64,
}

impl WalkLimit {
    /// No limit.
    pub const NONE: WalkLimit = WalkLimit {
        bytes: usize::MAX,
        cells: u64::MAX,
    };
}

/// Why nested data has no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChardataError {
    /// It contains something that has no place there.
    #[error("not iodata or chardata")]
    Bad(Word),
    /// The walk reached its limit.
    #[error("the data is longer than the limit of the walk")]
    Limit,
}

/// The elements of a proper list; `None` when it is improper or no list.
pub fn list_to_vec(list: Word) -> Option<Vec<Word>> {
    let mut out = Vec::new();
    let mut rest = list;
    while let Some((head, tail)) = rest.as_cons() {
        out.push(head);
        rest = tail;
    }
    rest.is_nil().then_some(out)
}

/// The length of a proper list; `None` when it is improper or no list.
pub fn list_length(list: Word) -> Option<usize> {
    let mut n = 0;
    let mut rest = list;
    while rest.is_cons() {
        n += 1;
        rest = rest.tail();
    }
    rest.is_nil().then_some(n)
}

/// The elements of a list, one after the other; afterwards [`ListIter::rest`] is its tail.
#[derive(Clone, Copy, Debug)]
pub struct ListIter {
    /// What has not been read.
    pub rest: Word,
}

/// Iterates over a list; an improper tail ends it and stays in [`ListIter::rest`].
pub fn list_iter(list: Word) -> ListIter {
    ListIter { rest: list }
}

impl Iterator for ListIter {
    type Item = Word;
    #[inline]
    fn next(&mut self) -> Option<Word> {
        let (head, tail) = self.rest.as_cons()?;
        self.rest = tail;
        Some(head)
    }
}

/// A list of `words` that ends in `tail`, in one block.
pub fn list_of_words<A: Alloc + ?Sized>(heap: &mut A, words: &[Word], tail: Word) -> Word {
    cells(heap, words.iter().map(|w| w.bits()), tail)
}

/// A list of the bytes (a Latin-1 string) that ends in `tail`, in one block.
pub fn list_of_bytes<A: Alloc + ?Sized>(heap: &mut A, bytes: &[u8], tail: Word) -> Word {
    let items = bytes.iter().map(|b| Word::fixnum(i64::from(*b)).bits());
    cells(heap, items, tail)
}

fn cells<A: Alloc + ?Sized>(
    heap: &mut A,
    items: impl ExactSizeIterator<Item = u64>,
    tail: Word,
) -> Word {
    let n = items.len();
    if n == 0 {
        return tail;
    }
    let p = heap.alloc(2 * n);
    // SAFETY: `2 * n` fresh words, cell after cell, each pointing to the next one.
    unsafe {
        let mut at = p;
        for item in items {
            *at = item;
            let next = at.add(2);
            *at.add(1) = Word::list(next).bits();
            at = next;
        }
        *p.add(2 * n - 1) = tail.bits();
        Word::list(p)
    }
}

/// The bytes of a list of integers 0 to 255; `None` for anything else.
pub fn latin1_from_list(list: Word) -> Option<Vec<u8>> {
    let mut items = list_iter(list);
    let mut out = Vec::new();
    for w in items.by_ref() {
        out.push(u8::try_from(w.as_small()?).ok()?);
    }
    items.rest.is_nil().then_some(out)
}

/// The text of a list of code points; `None` for anything else.
pub fn string_from_list(list: Word) -> Option<String> {
    let mut items = list_iter(list);
    let mut out = String::new();
    for w in items.by_ref() {
        out.push(character(w)?);
    }
    items.rest.is_nil().then_some(out)
}

/// The character of a code point.
#[inline]
pub fn character(w: Word) -> Option<char> {
    char::from_u32(u32::try_from(w.as_small()?).ok()?)
}

/// A piece of nested data.
enum Piece {
    Small(i64),
    Bits(BitsView),
}

/// Calls `f` with every integer and bitstring of nested data in order.
fn walk(
    data: Word,
    limit: WalkLimit,
    mut f: impl FnMut(Word, Piece) -> Result<(), ChardataError>,
) -> Result<(), ChardataError> {
    let mut pending: Vec<Word> = Vec::new();
    let mut left = limit.cells;
    let mut current = data;
    loop {
        if let Some((head, tail)) = current.as_cons() {
            left = left.checked_sub(1).ok_or(ChardataError::Limit)?;
            if let Some(v) = head.as_small() {
                f(head, Piece::Small(v))?;
                current = tail;
            } else if head.is_cons() {
                if !tail.is_nil() {
                    pending.push(tail);
                }
                current = head;
            } else if head.is_nil() {
                current = tail;
            } else {
                let view = BitsView::of(head).ok_or(ChardataError::Bad(head))?;
                f(head, Piece::Bits(view))?;
                current = tail;
            }
            continue;
        }
        if !current.is_nil() {
            let view = BitsView::of(current).ok_or(ChardataError::Bad(current))?;
            f(current, Piece::Bits(view))?;
        }
        match pending.pop() {
            Some(w) => current = w,
            None => return Ok(()),
        }
    }
}

/// The bytes of an iolist or binary.
pub fn iolist_to_bytes(data: Word, limit: WalkLimit) -> Result<Vec<u8>, ChardataError> {
    let mut out = Vec::new();
    walk(data, limit, |w, piece| {
        match piece {
            Piece::Small(v) => out.push(u8::try_from(v).map_err(|_| ChardataError::Bad(w))?),
            Piece::Bits(view) if view.is_binary() => {
                if view.byte_len() > limit.bytes - out.len() {
                    return Err(ChardataError::Limit);
                }
                out.extend_from_slice(&view.to_bytes());
            }
            Piece::Bits(_) => return Err(ChardataError::Bad(w)),
        }
        if out.len() > limit.bytes {
            return Err(ChardataError::Limit);
        }
        Ok(())
    })?;
    Ok(out)
}

/// How many bytes an iolist or binary has; counts in the limit's `cells` only.
pub fn iolist_size(data: Word, limit: WalkLimit) -> Result<u64, ChardataError> {
    let mut size = 0u64;
    walk(data, limit, |w, piece| {
        size += match piece {
            Piece::Small(0..=255) => 1,
            Piece::Bits(view) if view.is_binary() => view.byte_len() as u64,
            _ => return Err(ChardataError::Bad(w)),
        };
        Ok(())
    })?;
    Ok(size)
}

/// The text of chardata: code points and UTF-8 binaries, nested.
pub fn chardata_to_string(data: Word, limit: WalkLimit) -> Result<String, ChardataError> {
    let mut out = String::new();
    walk(data, limit, |w, piece| {
        match piece {
            Piece::Small(_) => out.push(character(w).ok_or(ChardataError::Bad(w))?),
            Piece::Bits(view) if view.is_binary() => {
                if view.byte_len() > limit.bytes - out.len() {
                    return Err(ChardataError::Limit);
                }
                let bytes = view.to_bytes();
                out.push_str(std::str::from_utf8(&bytes).map_err(|_| ChardataError::Bad(w))?);
            }
            Piece::Bits(_) => return Err(ChardataError::Bad(w)),
        }
        if out.len() > limit.bytes {
            return Err(ChardataError::Limit);
        }
        Ok(())
    })?;
    Ok(out)
}

/// A list of the characters of `text` that ends in `tail`.
pub fn list_of_chars<A: Alloc + ?Sized>(heap: &mut A, text: &str, tail: Word) -> Word {
    if text.is_ascii() {
        return list_of_bytes(heap, text.as_bytes(), tail);
    }
    heap.list_with_tail(
        text.chars().map(|c| Word::fixnum(i64::from(c as u32))),
        tail,
    )
}
