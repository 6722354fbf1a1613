//! Where terms are built: the [`Alloc`] trait, builders over it, and [`Fragment`]s.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::Arc;

use crate::header::{Header, MAX_HEAP_BINARY, REF_ALIAS, REF_MAGIC, REF_PLAIN, Subtag};
use crate::off_heap::{BinaryRef, OffHeap, ResourceRef};
use crate::word::Word;

/// A place that terms can be built in.
///
/// # Safety
/// `alloc(n)` returns `n` writable words that stay in place and alive until the heap is next
/// collected (or dropped), whatever is allocated in between. It never fails: a process heap that
/// is full opens a fragment. The caller writes a well-formed object before anyone scans it.
pub unsafe trait Alloc {
    /// `words` fresh words (at least 1).
    fn alloc(&mut self, words: usize) -> *mut u64;
    /// The off-heap list of this place.
    fn off_heap(&mut self) -> &mut OffHeap;
}

/// Builders, for every [`Alloc`].
pub trait Build: Alloc {
    /// `[Head|Tail]`.
    #[inline]
    fn cons(&mut self, head: Word, tail: Word) -> Word {
        let p = self.alloc(2);
        // SAFETY: two fresh words.
        unsafe {
            *p = head.bits();
            *p.add(1) = tail.bits();
            Word::list(p)
        }
    }
    /// A tuple.
    fn tuple(&mut self, elements: &[Word]) -> Word {
        let p = self.alloc(elements.len() + 1);
        // SAFETY: `len + 1` fresh words; `Word` is transparent over `u64`.
        unsafe {
            *p = Header::new(Subtag::Tuple, elements.len()).0;
            std::ptr::copy_nonoverlapping(
                elements.as_ptr().cast::<u64>(),
                p.add(1),
                elements.len(),
            );
            Word::boxed(p)
        }
    }
    /// A proper list of the items.
    fn list<I>(&mut self, items: I) -> Word
    where
        I: IntoIterator<Item = Word>,
        I::IntoIter: DoubleEndedIterator,
    {
        self.list_with_tail(items, Word::NIL)
    }
    /// A list of the items that ends in `tail`.
    fn list_with_tail<I>(&mut self, items: I, tail: Word) -> Word
    where
        I: IntoIterator<Item = Word>,
        I::IntoIter: DoubleEndedIterator,
    {
        let mut l = tail;
        for w in items.into_iter().rev() {
            l = self.cons(w, l);
        }
        l
    }
    /// A float.
    #[inline]
    fn float(&mut self, value: f64) -> Word {
        let p = self.alloc(2);
        // SAFETY: two fresh words.
        unsafe {
            *p = Header::new(Subtag::Float, 1).0;
            *p.add(1) = value.to_bits();
            Word::boxed(p)
        }
    }
    /// An integer.
    #[inline]
    fn integer(&mut self, value: i64) -> Word {
        match Word::small(value) {
            Some(w) => w,
            None => self.big(value < 0, &[value.unsigned_abs()]),
        }
    }
    /// An unsigned integer.
    #[inline]
    fn unsigned(&mut self, value: u64) -> Word {
        if value <= Word::MAX_SMALL as u64 {
            Word::fixnum(value as i64)
        } else {
            self.big(false, &[value])
        }
    }
    /// An integer from sign and magnitude (limbs least significant first, any normalisation).
    fn big(&mut self, negative: bool, limbs: &[u64]) -> Word {
        let mut n = limbs.len();
        while n > 0 && limbs[n - 1] == 0 {
            n -= 1;
        }
        if n == 0 {
            return Word::fixnum(0);
        }
        if n == 1 {
            let m = limbs[0];
            if !negative && m <= Word::MAX_SMALL as u64 {
                return Word::fixnum(m as i64);
            }
            if negative && m <= Word::MIN_SMALL.unsigned_abs() {
                return Word::fixnum((m as i64).wrapping_neg());
            }
        }
        let p = self.alloc(n + 1);
        // SAFETY: `n + 1` fresh words.
        unsafe {
            *p = Header::new(
                if negative {
                    Subtag::NegBig
                } else {
                    Subtag::PosBig
                },
                n,
            )
            .0;
            std::ptr::copy_nonoverlapping(limbs.as_ptr(), p.add(1), n);
            Word::boxed(p)
        }
    }
    /// A binary with a copy of `bytes` (on the heap up to 64 bytes, counted beyond).
    fn binary(&mut self, bytes: &[u8]) -> Word {
        if bytes.len() > MAX_HEAP_BINARY {
            return self.refc_binary(BinaryRef::from_bytes(bytes), bytes.len() as u64 * 8);
        }
        let (w, p) = self.heap_bits(bytes.len() as u64 * 8);
        // SAFETY: `heap_bits` gave room for the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), p, bytes.len()) };
        w
    }
    /// A heap bitstring of `bits` bits, zeroed, and the address of its first byte.
    fn heap_bits(&mut self, bits: u64) -> (Word, *mut u8) {
        let data = bits.div_ceil(64) as usize;
        let p = self.alloc(data + 2);
        // SAFETY: `data + 2` fresh words.
        unsafe {
            *p = Header::new(Subtag::HeapBits, data + 1).0;
            *p.add(1) = bits;
            std::ptr::write_bytes(p.add(2), 0, data);
            (Word::boxed(p), p.add(2).cast())
        }
    }
    /// A bitstring over the first `bits` bits of a counted block.
    fn refc_binary(&mut self, block: BinaryRef, bits: u64) -> Word {
        let data = block.data();
        self.refc_slice(block, data, bits)
    }
    /// A bitstring of `bits` bits starting at `data`, which lies in `block`.
    fn refc_slice(&mut self, block: BinaryRef, data: *const u8, bits: u64) -> Word {
        let p = self.alloc(5);
        // SAFETY: five fresh words; the object is complete before it is linked.
        unsafe {
            *p = Header::new(Subtag::RefcBits, 4).0;
            *p.add(2) = block.into_raw() as usize as u64;
            *p.add(3) = data as usize as u64;
            *p.add(4) = bits;
            self.off_heap().link(p);
            Word::boxed(p)
        }
    }
    /// A part of `underlying` (boxed `HeapBits` or `RefcBits`).
    fn sub_bits(&mut self, underlying: Word, offset: u64, bits: u64) -> Word {
        debug_assert!(matches!(
            underlying.subtag(),
            Some(Subtag::HeapBits | Subtag::RefcBits)
        ));
        let p = self.alloc(4);
        // SAFETY: four fresh words.
        unsafe {
            *p = Header::new(Subtag::SubBits, 3).0;
            *p.add(1) = underlying.bits();
            *p.add(2) = Word::fixnum(offset as i64).bits();
            *p.add(3) = Word::fixnum(bits as i64).bits();
            Word::boxed(p)
        }
    }
    /// A list of the characters of `text`.
    fn string(&mut self, text: &str) -> Word {
        self.list(text.chars().map(|c| Word::fixnum(i64::from(c as u32))))
    }
    /// A local reference of three numbers (18, 32 and 32 bits).
    fn reference(&mut self, numbers: [u32; 3]) -> Word {
        let p = self.alloc(REF_PLAIN + 1);
        // SAFETY: the fresh words of a plain reference.
        unsafe {
            *p = Header::new(Subtag::Ref, REF_PLAIN).0;
            write_numbers(p.add(1), numbers);
            Word::boxed(p)
        }
    }
    /// A local reference that is an alias of `pid`.
    fn alias_reference(&mut self, numbers: [u32; 3], pid: Word) -> Word {
        let p = self.alloc(REF_ALIAS + 1);
        // SAFETY: the fresh words of an alias reference.
        unsafe {
            *p = Header::new(Subtag::Ref, REF_ALIAS).0;
            write_numbers(p.add(1), numbers);
            *p.add(3) = pid.bits();
            Word::boxed(p)
        }
    }
    /// A magic reference that owns a count of `resource`.
    fn magic_reference(&mut self, numbers: [u32; 3], resource: ResourceRef) -> Word {
        let p = self.alloc(REF_MAGIC + 1);
        // SAFETY: the fresh words of a magic reference, complete before it is linked.
        unsafe {
            *p = Header::new(Subtag::Ref, REF_MAGIC).0;
            *p.add(2) = Arc::into_raw(resource) as usize as u64;
            write_numbers(p.add(3), numbers);
            *p.add(5) = 0;
            self.off_heap().link(p);
            Word::boxed(p)
        }
    }
    /// `fun M:F/A`.
    fn export_fun(&mut self, id: u32, module: Word, function: Word, arity: u32) -> Word {
        let p = self.alloc(5);
        // SAFETY: five fresh words.
        unsafe {
            *p = Header::new(Subtag::Export, 4).0;
            *p.add(1) = Word::fixnum(i64::from(id)).bits();
            *p.add(2) = module.bits();
            *p.add(3) = function.bits();
            *p.add(4) = Word::fixnum(i64::from(arity)).bits();
            Word::boxed(p)
        }
    }
}

impl<T: Alloc + ?Sized> Build for T {}

unsafe fn write_numbers(p: *mut u64, n: [u32; 3]) {
    *p = u64::from(n[0]) | u64::from(n[1]) << 32;
    *p.add(1) = u64::from(n[2]);
}

/// A block of words outside any process heap: a message on its way, what a native built when the
/// heap was full, the storage of an owned term. Grows by chaining.
#[derive(Debug)]
pub struct Fragment {
    start: *mut u64,
    top: *mut u64,
    end: *mut u64,
    /// Off-heap objects in this block and those behind `next` alike hang on their own block.
    pub off_heap: OffHeap,
    /// Older blocks of the same chain.
    pub next: Option<Box<Fragment>>,
}

// SAFETY: a fragment owns its block; terms inside refer only to the chain itself, to literals and
// to counted objects.
unsafe impl Send for Fragment {}

impl Fragment {
    /// A block with room for `words` words.
    pub fn with_capacity(words: usize) -> Fragment {
        let (start, end) = block(words.max(4));
        Fragment {
            start,
            top: start,
            end,
            off_heap: OffHeap::default(),
            next: None,
        }
    }
    /// Takes a block over: `start..top` holds complete terms, `end` is its end.
    ///
    /// # Safety
    /// The block came from the global allocator with the layout of an array of words, is nobody else's, and its terms refer
    /// only to what terms of a fragment may refer to, or belong to a heap that keeps the fragment.
    pub unsafe fn from_block(start: *mut u64, top: *mut u64, end: *mut u64) -> Fragment {
        Fragment {
            start,
            top,
            end,
            off_heap: OffHeap::default(),
            next: None,
        }
    }
    /// Words in use in this block (not the chain).
    pub fn used(&self) -> usize {
        (self.top as usize - self.start as usize) / 8
    }
    /// First word and end of the used part of this block.
    pub fn range(&self) -> (*mut u64, *mut u64) {
        (self.start, self.top)
    }
    /// Words in use in the whole chain.
    pub fn total_used(&self) -> usize {
        let mut n = self.used();
        let mut f = self.next.as_deref();
        while let Some(g) = f {
            n += g.used();
            f = g.next.as_deref();
        }
        n
    }
    /// Words of memory the whole chain holds.
    pub fn total_capacity(&self) -> usize {
        let mut n = 0;
        let mut f = Some(self);
        while let Some(g) = f {
            n += (g.end as usize - g.start as usize) / 8;
            f = g.next.as_deref();
        }
        n
    }
    /// Puts `older` at the end of this chain.
    pub fn chain(&mut self, older: Box<Fragment>) {
        let mut f = self;
        while f.next.is_some() {
            f = f
                .next
                .as_deref_mut()
                .unwrap_or_else(|| unreachable!("checked above"));
        }
        f.next = Some(older);
    }
}

fn block(words: usize) -> (*mut u64, *mut u64) {
    let Ok(l) = Layout::array::<u64>(words) else {
        std::process::abort()
    };
    // SAFETY: the layout is not of size zero; failure is handled.
    unsafe {
        let p = alloc(l).cast::<u64>();
        if p.is_null() {
            handle_alloc_error(l)
        }
        (p, p.add(words))
    }
}

// SAFETY: blocks never move; a full one is chained behind a new one.
unsafe impl Alloc for Fragment {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut u64 {
        let room = (self.end as usize - self.top as usize) / 8;
        if words > room {
            let size = ((self.end as usize - self.start as usize) / 4)
                .max(words)
                .min(words + (1 << 20));
            let (start, end) = block(size);
            let old = Fragment {
                start: self.start,
                top: self.top,
                end: self.end,
                off_heap: std::mem::take(&mut self.off_heap),
                next: self.next.take(),
            };
            self.start = start;
            self.top = start;
            self.end = end;
            self.next = Some(Box::new(old));
        }
        let p = self.top;
        // SAFETY: there is room for `words` words.
        self.top = unsafe { p.add(words) };
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        // Iterative, so that a long chain cannot exhaust the stack.
        let mut next = self.next.take();
        while let Some(mut f) = next {
            next = f.next.take();
        }
        // SAFETY: the block was made by `block` with this size; its off-heap objects are no longer read.
        unsafe {
            self.off_heap.release_all();
            let words = (self.end as usize - self.start as usize) / 8;
            dealloc(
                self.start.cast(),
                Layout::array::<u64>(words).unwrap_or_else(|_| std::process::abort()),
            );
        }
    }
}
