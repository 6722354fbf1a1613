//! Moves, lists, tuples, funs, heap and frames.

use beamr_term::{Header, Subtag, Word};

use crate::machine::{Kind, Place, SLACK_BYTES, Slots, handlers};
use crate::ops::exceptions::badarg;

handlers! {
    // ---- moves: half 4 source, 5 destination, ...; constants from word 2.
    fn mov[S: Kind, D: Place](m) {
        let v = S::get(&m, 4, 2);
        D::set(&m, 5, v);
        m.next(2 + S::WORDS)
    }
    /// Two moves, one after the other: halves 4 to 5, 6 to 7.
    fn move2[S: Kind, D: Place, T: Kind, E: Place](m) {
        let v = S::get(&m, 4, 0);
        D::set(&m, 5, v);
        let v = T::get(&m, 6, 0);
        E::set(&m, 7, v);
        m.next(2)
    }
    /// Three moves: halves 4 to 9.
    fn move3[S: Kind, D: Place](m) {
        let v = S::get(&m, 4, 0);
        D::set(&m, 5, v);
        let v = S::get(&m, 6, 0);
        D::set(&m, 7, v);
        let v = S::get(&m, 8, 0);
        D::set(&m, 9, v);
        m.next(3)
    }
    /// Constants (words 2 and 3) to halves 4 and 5.
    fn move2_const[D: Place, E: Place](m) {
        D::set(&m, 4, m.word(2));
        E::set(&m, 5, m.word(3));
        m.next(4)
    }
    fn swap[A: Place, B: Place](m) {
        let v = A::get(&m, 4, 0);
        let w = B::get(&m, 5, 0);
        A::set(&m, 4, w);
        B::set(&m, 5, v);
        m.next(2)
    }

    // ---- lists: half 4 list, 5 head, 6 tail.
    fn get_hd[S: Kind, D: Place](m) {
        let l = S::get(&m, 4, 0);
        D::set(&m, 5, *head_of(l));
        m.next(2)
    }
    fn get_tl[S: Kind, D: Place](m) {
        let l = S::get(&m, 4, 0);
        D::set(&m, 5, *head_of(l).add(1));
        m.next(2)
    }
    fn get_list[S: Kind, H: Place, T: Place](m) {
        let l = head_of(S::get(&m, 4, 0));
        let (h, t) = (*l, *l.add(1));
        H::set(&m, 5, h);
        T::set(&m, 6, t);
        m.next(2)
    }
    /// Any of the three on a term that may be no list: half 7 bit 0 head wanted, bit 1 tail wanted.
    fn get_list_checked(m) {
        let l = m.any(m.half(4));
        if l & 3 != 1 {
            return m.slow(badarg);
        }
        let (h, t) = (*head_of(l), *head_of(l).add(1));
        let wanted = m.half(7);
        if wanted & 1 != 0 {
            m.set_any(m.half(5), h);
        }
        if wanted & 2 != 0 {
            m.set_any(m.half(6), t);
        }
        m.next(2)
    }
    /// Half 4 head, 5 tail, 6 destination; constants from word 2.
    fn put_list[H: Kind, T: Kind, D: Place](m) {
        let h = H::get(&m, 4, 2);
        let t = T::get(&m, 5, 2 + H::WORDS);
        let c = m.take(2);
        *c = h;
        *c.add(1) = t;
        D::set(&m, 6, c as u64 + 1);
        m.next(2 + H::WORDS + T::WORDS)
    }
    /// `test_heap` before it: half 7 live, pair 4 bytes; constants from word 3.
    fn test_heap_put_list[H: Kind, T: Kind, D: Place](m) {
        let bytes = m.uint(4);
        if m.free() < bytes {
            return m.collect(bytes, m.half(7));
        }
        let h = H::get(&m, 4, 3);
        let t = T::get(&m, 5, 3 + H::WORDS);
        let c = m.take(2);
        *c = h;
        *c.add(1) = t;
        D::set(&m, 6, c as u64 + 1);
        m.next(3 + H::WORDS + T::WORDS)
    }

    // ---- tuples.
    /// Half 4 tuple, 5 destination, 6 word index.
    fn get_tuple_element[S: Kind, D: Place](m) {
        let t = S::get(&m, 4, 0);
        D::set(&m, 5, *field_of(t, m.half(6)));
        m.next(2)
    }
    /// Two consecutive elements: half 4 tuple, 5 and 6 destinations, 7 word index of the first.
    fn get_two_elements[S: Kind, D: Place, E: Place](m) {
        let t = field_of(S::get(&m, 4, 0), m.half(7));
        let (v, w) = (*t, *t.add(1));
        D::set(&m, 5, v);
        E::set(&m, 6, w);
        m.next(2)
    }
    /// Half 4 tuple, 5 destination, pair 3 word index. Checks type and size.
    fn get_tuple_element_checked(m) {
        let t = Word::from_bits(m.any(m.half(4)));
        let i = m.uint(3);
        match t.as_tuple() {
            Some(s) if i <= s.len() => {
                m.set_any(m.half(5), s[i - 1].bits());
                m.next(2)
            }
            _ => m.slow(badarg),
        }
    }
    /// Half 4 destination, 5 size, 6 words of the instruction, operands from half 8.
    fn put_tuple(m) {
        let n = m.half(5);
        let t = m.take(n + 1);
        *t = Header::new(Subtag::Tuple, n).0;
        for i in 0..n {
            *t.add(i + 1) = m.any(m.half(8 + i));
        }
        m.set_any(m.half(4), t as u64 + 2);
        m.next(m.half(6))
    }
    /// The same for a fixed size.
    fn put_tuple_n[const N: usize](m) {
        let t = m.take(N + 1);
        *t = Header::new(Subtag::Tuple, N).0;
        for i in 0..N {
            *t.add(i + 1) = m.any(m.half(8 + i));
        }
        m.set_any(m.half(4), t as u64 + 2);
        m.next(m.half(6))
    }
    /// `test_heap` before it: half 7 live, pair 4 bytes; operands from half 12.
    fn test_heap_put_tuple(m) {
        let bytes = m.uint(4);
        if m.free() < bytes {
            return m.collect(bytes, m.half(7));
        }
        let n = m.half(5);
        let t = m.take(n + 1);
        *t = Header::new(Subtag::Tuple, n).0;
        for i in 0..n {
            *t.add(i + 1) = m.any(m.half(12 + i));
        }
        m.set_any(m.half(4), t as u64 + 2);
        m.next(m.half(6))
    }
    /// The same for a fixed size.
    fn test_heap_put_tuple_n[const N: usize](m) {
        let bytes = m.uint(4);
        if m.free() < bytes {
            return m.collect(bytes, m.half(7));
        }
        let t = m.take(N + 1);
        *t = Header::new(Subtag::Tuple, N).0;
        for i in 0..N {
            *t.add(i + 1) = m.any(m.half(12 + i));
        }
        m.set_any(m.half(4), t as u64 + 2);
        m.next(m.half(6))
    }
    /// Half 4 value, 5 tuple, 6 words of the instruction, 7 whether to check, pair 4 word index.
    fn set_tuple_element(m) {
        let t = m.any_word(m.half(5));
        let i = m.uint(4);
        if m.half(7) != 0 && t.as_tuple().is_none_or(|s| i > s.len()) {
            return m.slow(badarg);
        }
        *t.ptr().add(i) = m.any(m.half(4));
        m.next(m.half(6))
    }
    /// Half 4 source, 5 destination, 6 words, 7 number of updates; pair 4 size, half 10 flags (1 check,
    /// 2 reuse, 4 in place); then (index, operand) halves from 12.
    fn update_record(m) {
        let src = m.any_word(m.half(4));
        let size = m.uint(4);
        let flags = m.half(10);
        let n = m.half(7);
        if flags & 1 != 0 && src.as_tuple().is_none_or(|s| s.len() != size) {
            return m.slow(badarg);
        }
        let from = src.ptr();
        if flags & 2 != 0 {
            let mut same = true;
            for i in 0..n {
                same &= *from.add(m.half(12 + 2 * i)) == m.any(m.half(13 + 2 * i));
            }
            if same {
                m.set_any(m.half(5), src.bits());
                return m.next(m.half(6));
            }
        }
        let t = if flags & 4 != 0
            && from >= (*m.body()).heap.high_water
            && from < m.htop
        {
            from
        } else {
            let t = m.take(size + 1);
            std::ptr::copy_nonoverlapping(from, t, size + 1);
            t
        };
        for i in 0..n {
            *t.add(m.half(12 + 2 * i)) = m.any(m.half(13 + 2 * i));
        }
        m.set_any(m.half(5), t as u64 + 2);
        m.next(m.half(6))
    }

    // ---- funs: half 4 destination, 5 captured values, 6 words; pair 4 image, pair 5 lambda; operands from half 12.
    fn make_fun(m) {
        let entry = beamr_vm::rt::fun_entry(&mut (*m.p).ctx, m.uint(4) as u32, m.uint(5) as u32);
        let n = m.half(5);
        let t = m.take(n + 2);
        *t = Header::new(Subtag::Fun, n + 1).0;
        *t.add(1) = entry as usize as u64;
        for i in 0..n {
            *t.add(i + 2) = m.any(m.half(12 + i));
        }
        m.set_any(m.half(4), t as u64 + 2);
        m.next(m.half(6))
    }

    // ---- frames and heap.
    /// Half 4 slots, 5 live, pair 3 bytes that must be free before.
    fn allocate[N: Slots](m) {
        let bytes = m.uint(3);
        if m.free() < bytes {
            return m.collect(bytes, m.half(5));
        }
        m.e = m.e.sub(N::get(&m, 4));
        m.next(2)
    }
    /// Then a move (half 8 to 9).
    fn allocate_move[S: Kind, D: Place, N: Slots](m) {
        let bytes = m.uint(3);
        if m.free() < bytes {
            return m.collect(bytes, m.half(5));
        }
        m.e = m.e.sub(N::get(&m, 4));
        let v = S::get(&m, 8, 0);
        D::set(&m, 9, v);
        m.next(3)
    }
    /// Then two moves (halves 8 to 9, 10 to 11).
    fn allocate_move2[S: Kind, D: Place, N: Slots](m) {
        let bytes = m.uint(3);
        if m.free() < bytes {
            return m.collect(bytes, m.half(5));
        }
        m.e = m.e.sub(N::get(&m, 4));
        let v = S::get(&m, 8, 0);
        D::set(&m, 9, v);
        let v = S::get(&m, 10, 0);
        D::set(&m, 11, v);
        m.next(3)
    }
    /// Then clears y0 up to half 8 (exclusive).
    fn allocate_init[N: Slots](m) {
        let bytes = m.uint(3);
        if m.free() < bytes {
            return m.collect(bytes, m.half(5));
        }
        m.e = m.e.sub(N::get(&m, 4));
        for i in 0..m.half(8) {
            *m.e.add(i) = Word::NIL.bits();
        }
        m.next(3)
    }
    /// Half 4 first, 5 number of slots.
    fn init_range(m) {
        let y = m.e.add(m.half(4));
        for i in 0..m.half(5) {
            *y.add(i) = Word::NIL.bits();
        }
        m.next(2)
    }
    /// Half 4 number, 5 words; slots from half 6.
    fn init_list(m) {
        for i in 0..m.half(4) {
            *m.e.add(m.half(6 + i)) = Word::NIL.bits();
        }
        m.next(m.half(5))
    }
    /// Half 4 words.
    fn deallocate[N: Slots](m) {
        m.e = m.e.add(N::get(&m, 4));
        m.next(2)
    }
    /// Pair 2 bytes, half 6 live.
    fn test_heap(m) {
        let bytes = m.uint(2);
        if m.free() < bytes {
            return m.collect(bytes, m.half(6));
        }
        m.next(2)
    }
    /// Pair 2 distance.
    fn jump(m) {
        m.branch(2)
    }
}

/// The cell behind a list word.
#[inline(always)]
pub(crate) unsafe fn head_of(list: u64) -> *const u64 {
    (list as usize as *const u64).byte_sub(1)
}
/// Word `index` behind a boxed word.
#[inline(always)]
pub(crate) unsafe fn field_of(boxed: u64, index: usize) -> *const u64 {
    (boxed as usize as *const u64).byte_sub(2).add(index)
}
/// Bytes that must be free for `words`.
pub(crate) const fn bytes_for(words: usize) -> usize {
    words * 8 + SLACK_BYTES
}
