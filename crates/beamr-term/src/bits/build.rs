//! Making bitstring terms out of others: parts, match contexts, appends.
//!
//! # Appending
//!
//! A binary that grows is a `SubBits` over a `RefcBits` over a block with room to spare. The bits
//! of the block in use (`used_bits`) belong to somebody; whoever appends to a view that ends
//! exactly there claims the bits behind it with one compare-and-swap and writes them in place.
//! Everybody else copies. Bits in use never change, so views of the same block in other heaps
//! keep their contents. When the last byte is shared by old and new bits the write would race
//! with readers in other threads, so that is done only while the block has a single count. The
//! block moves (grows) only then, too, and the one `RefcBits` that holds the count is told.
//! Literals are shared without counts, so they are never appended to in place.
//!
//! The `SubBits` of a growing binary may extend past the size that its `RefcBits` states; it
//! never extends past the bits in use of the block.

use super::raw;
use super::view::BitsView;
use crate::alloc::{Alloc, Build};
use crate::header::{Header, Subtag};
use crate::literal::is_literal;
use crate::off_heap::{Binary, BinaryRef};
use crate::word::Word;

/// Parts of at most this many bytes are copied to the heap.
const MAX_COPIED_PART: u64 = 32;
/// The first room of a growing binary, in bytes.
const FIRST_ROOM: u64 = 256;

/// The `HeapBits` or `RefcBits` under a bitstring or match context, and where it starts in it.
#[inline]
pub(crate) fn underlying(word: Word) -> (Word, u64) {
    match word.header().subtag() {
        Subtag::SubBits | Subtag::Match => {
            (word.term_field(1), word.term_field(2).small_value() as u64)
        }
        _ => (word, 0),
    }
}

/// The part of `size` bits at `offset` of a bitstring, or of what is left of a match context. The
/// caller checked the range.
pub fn sub_bits(alloc: &mut impl Alloc, word: Word, offset: u64, size: u64) -> Word {
    let (under, base) = underlying(word);
    if size <= MAX_COPIED_PART * 8 {
        let v = BitsView::whole(under);
        let (w, p) = alloc.heap_bits(size);
        // SAFETY: the builder gave room; the range is within the bitstring (caller).
        unsafe { raw::copy_bits(v.data, base + offset, p, 0, size) };
        return w;
    }
    Build::sub_bits(alloc, under, base + offset, size)
}

/// A match context at the start of a bitstring (or a copy of a match context); `None` for other
/// terms.
pub fn match_context(alloc: &mut impl Alloc, word: Word) -> Option<Word> {
    let v = BitsView::of(word)?;
    let (under, start) = underlying(word);
    let p = alloc.alloc(4);
    // SAFETY: four fresh words.
    unsafe {
        *p = Header::new(Subtag::Match, 3).0;
        *p.add(1) = under.bits();
        *p.add(2) = Word::fixnum(start as i64).bits();
        *p.add(3) = Word::fixnum((start + v.bit_size) as i64).bits();
        Some(Word::boxed(p))
    }
}

/// What is left of a match context as a bitstring.
pub fn match_tail(alloc: &mut impl Alloc, context: Word) -> Word {
    let pos = context.term_field(2).small_value();
    let end = context.term_field(3).small_value();
    sub_bits(alloc, context, 0, (end - pos) as u64)
}

/// The result of [`append`].
#[derive(Debug)]
pub struct Append {
    /// The longer bitstring.
    pub term: Word,
    /// The byte that `offset` counts from.
    pub base: *mut u8,
    /// Where the new bits go, in bits. They are to be written at once, before anything else is
    /// done with `term`.
    pub offset: u64,
}

/// A bitstring of the bits of `word` and `extra` more, which the caller writes at the place
/// given. Amortised constant time (beyond the first copy) when the last result is appended to
/// again and again. `None` when `word` is no bitstring.
pub fn append(alloc: &mut impl Alloc, word: Word, extra: u64) -> Option<Append> {
    let view = BitsView::of(word)?;
    let total = view.bit_size + extra;
    let (under, start) = underlying(word);
    if word.header().subtag() == Subtag::SubBits
        && under.header().subtag() == Subtag::RefcBits
        && !is_literal(under.ptr())
        && let Some(base) = extend(alloc, under, start + view.bit_size, extra)
    {
        return Some(Append {
            term: Build::sub_bits(alloc, under, start, total),
            base,
            offset: start + view.bit_size,
        });
    }
    // Copy into a block with room.
    let bytes = total.div_ceil(8);
    let room = (bytes * 2).max(FIRST_ROOM);
    let block = BinaryRef::with_capacity(room as usize, total);
    let base = block.data();
    // SAFETY: the block is fresh and has room for `total` bits.
    unsafe { view.copy_to(base, 0) };
    let holder = alloc.refc_binary(block, room * 8);
    Some(Append {
        term: Build::sub_bits(alloc, holder, 0, total),
        base,
        offset: view.bit_size,
    })
}

/// Claims `extra` bits behind bit `end` of a `RefcBits`; gives its (perhaps new) data pointer.
fn extend(alloc: &mut impl Alloc, holder: Word, end: u64, extra: u64) -> Option<*mut u8> {
    let p = holder.ptr();
    // SAFETY: the holder owns a count of its block, which is given back to it below; only the
    // thread that runs the holder's heap gets here, so its words may be rewritten.
    unsafe {
        let raw = *p.add(2) as usize as *mut Binary;
        let block = std::mem::ManuallyDrop::new(BinaryRef::from_raw(raw));
        let data = *p.add(3) as usize as *mut u8;
        let skip = data.offset_from(block.data()) as u64 * 8;
        let from = skip + end;
        let to = from + extra;
        if block.used_bits() != from {
            return None;
        }
        let single = block.count() == 1;
        if from & 7 != 0 && !single {
            return None;
        }
        if to > block.capacity() as u64 * 8 {
            if !single {
                return None;
            }
            let old = block.capacity() as u64;
            let room = (to.div_ceil(8) * 2).max(FIRST_ROOM);
            let block = std::mem::ManuallyDrop::into_inner(block).grow(room as usize);
            let data = block.data().add((skip / 8) as usize);
            let won = block.claim(from, to);
            *p.add(2) = block.into_raw() as usize as u64;
            *p.add(3) = data as usize as u64;
            alloc.off_heap().overhead += ((room - old) / 8) as usize;
            return won.then_some(data);
        }
        block.claim(from, to).then_some(data)
    }
}
