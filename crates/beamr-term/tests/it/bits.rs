//! Bitstrings: every offset against a bit-by-bit model, segments, appending.

use beamr_term::bits::{self, BitsView, BitsWriter, BsBuilder, Utf};
use beamr_term::{Alloc, BinaryRef, Build, Fragment, Subtag, Word};

/// A small deterministic generator.
pub struct Rng(pub u64);
impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }
}

fn bit(data: &[u8], i: u64) -> bool {
    data[(i / 8) as usize] >> (7 - i % 8) & 1 == 1
}

#[test]
fn copy_compare_and_read_agree_with_single_bits() {
    let mut r = Rng(7);
    let src: Vec<u8> = (0..64).map(|_| r.next() as u8).collect();
    for _ in 0..20_000 {
        let (so, d_o) = (r.below(30), r.below(30));
        let n = r.below(300);
        let mut dst: Vec<u8> = (0..48).map(|_| r.next() as u8).collect();
        let before = dst.clone();
        unsafe { bits::raw::copy_bits(src.as_ptr(), so, dst.as_mut_ptr(), d_o, n) };
        for i in 0..dst.len() as u64 * 8 {
            let want = if i >= d_o && i < d_o + n {
                bit(&src, so + i - d_o)
            } else {
                bit(&before, i)
            };
            assert_eq!(bit(&dst, i), want, "so {so} do {d_o} n {n} bit {i}");
        }
        let (a, b) = unsafe {
            (
                bits::raw::compare_bits(src.as_ptr(), so, dst.as_ptr(), d_o, n),
                bits::raw::equal_bits(src.as_ptr(), so, dst.as_ptr(), d_o, n),
            )
        };
        assert!(a.is_eq() && b);
        if n > 0 {
            let flip = d_o + r.below(n);
            dst[(flip / 8) as usize] ^= 0x80 >> (flip % 8);
            let c = unsafe { bits::raw::compare_bits(src.as_ptr(), so, dst.as_ptr(), d_o, n) };
            assert_eq!(c.is_gt(), bit(&src, so + flip - d_o));
            assert!(c.is_ne());
        }
        let k = n.min(64);
        let mut want = 0u64;
        for i in 0..k {
            want = want << 1 | u64::from(bit(&src, so + i));
        }
        assert_eq!(unsafe { bits::raw::read_bits(src.as_ptr(), so, k) }, want);
    }
}

#[test]
fn integers_survive_every_size_and_endianness() {
    let mut r = Rng(11);
    let mut f = Fragment::with_capacity(1 << 16);
    for _ in 0..5000 {
        let size = 1 + r.below(200);
        let off = r.below(9);
        let limbs: Vec<u64> = (0..4).map(|_| r.next() >> r.below(64)).collect();
        let negative = r.below(2) == 1;
        let value = f.big(negative, &limbs[..1 + r.below(4) as usize]);
        for little in [false, true] {
            let mut buf = [0xA5u8; 40];
            let mut w = unsafe { BitsWriter::new(buf.as_mut_ptr(), off) };
            assert!(w.put_integer(value, size, little));
            assert_eq!(w.position(), off + size);
            let v = BitsView::of_bytes(&buf);
            // Reading signed and writing again gives the same bits.
            for signed in [false, true] {
                let got = v.get_integer(&mut f, off, size, signed, little).unwrap();
                let mut buf2 = [0xA5u8; 40];
                let mut w = unsafe { BitsWriter::new(buf2.as_mut_ptr(), off) };
                assert!(w.put_integer(got, size, little));
                assert_eq!(buf, buf2, "size {size} little {little} signed {signed}");
                if let Some(s) = got.as_small()
                    && signed
                    && size < 60
                {
                    assert!(s >= -(1 << (size - 1)) && s < 1 << (size - 1));
                }
            }
        }
    }
    // Values from erl: <<-2:12/little>> and friends.
    let mut buf = [0u8; 2];
    let mut w = unsafe { BitsWriter::new(buf.as_mut_ptr(), 0) };
    w.put_integer(Word::fixnum(0x123), 12, true);
    assert_eq!(buf, [0x23, 0x10]);
    let v = BitsView::of_bytes(&buf);
    assert_eq!(v.get_small(0, 12, false, true), 0x123);
    assert_eq!(
        v.get_integer(&mut f, 0, 16, true, false),
        Some(Word::fixnum(0x2310))
    );
    assert_eq!(v.get_integer(&mut f, 1, 16, true, false), None);
    assert_eq!(v.get_integer(&mut f, u64::MAX, 16, true, false), None);
}

/// What `<<F:16/float, F:32/float>>` is in OTP 25, 27 and 29.
#[test]
fn floats_round_as_otp_does() {
    for line in include_str!("../data/floats.txt").lines() {
        let mut it = line.split(' ');
        let f: f64 = it.next().unwrap().parse().unwrap();
        let half = u16::from_str_radix(it.next().unwrap(), 16).unwrap();
        let single = u32::from_str_radix(it.next().unwrap(), 16).unwrap();
        let mut buf = [0u8; 6];
        let mut w = unsafe { BitsWriter::new(buf.as_mut_ptr(), 0) };
        assert!(w.put_float(f, 16, false) && w.put_float(f, 32, true));
        assert_eq!(u16::from_be_bytes([buf[0], buf[1]]), half, "{f}");
        assert_eq!(
            u32::from_le_bytes([buf[2], buf[3], buf[4], buf[5]]),
            single,
            "{f}"
        );
    }
    let v = |x: u16| BitsView::of_bytes(&x.to_be_bytes()).get_float(0, 16, false);
    assert_eq!(v(0x0001), Some(5.960464477539063e-8));
    assert_eq!(v(0x03ff), Some(6.097555160522461e-5));
    assert_eq!(v(0x7bff), Some(65504.0));
    assert_eq!(v(0x8400), Some(-6.103515625e-5));
    assert_eq!(v(0x3555), Some(0.333251953125));
    assert_eq!(v(0x7c00), None);
    assert_eq!(v(0x7e00), None);
    let inf = f64::INFINITY.to_be_bytes();
    assert_eq!(BitsView::of_bytes(&inf).get_float(0, 64, false), None);
    assert_eq!(BitsView::of_bytes(&inf).get_float(0, 24, false), None);
}

#[test]
fn code_points() {
    let all = [Utf::Utf8]
        .into_iter()
        .chain([false, true].map(|little| Utf::Utf16 { little }))
        .chain([false, true].map(|little| Utf::Utf32 { little }));
    for utf in all {
        for c in (0..0x11_0100)
            .step_by(13)
            .chain([0xD7FF, 0xE000, 0xFFFF, 0x10_FFFF])
        {
            for off in [0u64, 3] {
                let mut buf = [0u8; 6];
                let mut w = unsafe { BitsWriter::new(buf.as_mut_ptr(), off) };
                let ok = w.put_utf(c, utf);
                assert_eq!(ok, char::from_u32(c).is_some());
                if ok {
                    let n = utf.bits(c).unwrap();
                    assert_eq!(w.position() - off, n);
                    let v = BitsView::of_bytes(&buf);
                    assert_eq!(v.get_utf(off, utf), Some((c, n)));
                    // One bit short is no code point of that length.
                    let short = v.part(off, n - 1).unwrap().get_utf(0, utf);
                    assert!(short.is_none_or(|(_, m)| m < n));
                }
            }
        }
    }
    for bad in [
        &[0xC0, 0x80][..],
        &[0xC1, 0xBF],
        &[0xE0, 0x80, 0x80],
        &[0xED, 0xA0, 0x80],
        &[0xF4, 0x90, 0x80, 0x80],
        &[0xF5, 0x80, 0x80, 0x80],
        &[0x80],
        &[0xC2],
        &[0xC2, 0x41],
        &[],
    ] {
        assert_eq!(BitsView::of_bytes(bad).get_utf8(0), None, "{bad:?}");
    }
    assert_eq!(
        BitsView::of_bytes(&[0xDC, 0, 0, 0]).get_utf16(0, false),
        None
    );
    assert_eq!(
        BitsView::of_bytes(&[0xD8, 0, 0, 0]).get_utf16(0, false),
        None
    );
    assert_eq!(
        BitsView::of_bytes(&[0, 0, 0xD8, 0]).get_utf32(0, false),
        None
    );
    assert_eq!(
        BitsView::of_bytes(&[0, 0x11, 0, 0]).get_utf32(0, false),
        None
    );
}

#[test]
fn parts_flatten_and_compare() {
    let mut f = Fragment::with_capacity(64);
    let bytes: Vec<u8> = (0..200).collect();
    let b = f.binary(&bytes);
    assert_eq!(b.subtag(), Some(Subtag::RefcBits));
    let s = bits::sub_bits(&mut f, b, 3, 1500);
    let t = bits::sub_bits(&mut f, s, 5, 1000);
    assert_eq!(t.subtag(), Some(Subtag::SubBits));
    assert_eq!(t.term_field(1), b);
    let v = BitsView::of(t).unwrap();
    assert_eq!(v.to_bytes().as_ref(), &bytes[1..126]);
    assert_eq!(v.as_bytes().unwrap(), &bytes[1..126]);
    let small = bits::sub_bits(&mut f, t, 8, 16);
    assert_eq!(small.subtag(), Some(Subtag::HeapBits));
    assert_eq!(BitsView::of(small).unwrap().as_bytes().unwrap(), &[2, 3]);
    let m = bits::match_context(&mut f, s).unwrap();
    assert!(BitsView::of(m).unwrap().equals(&BitsView::of(s).unwrap()));
    let tail = bits::match_tail(&mut f, m);
    assert!(
        BitsView::of(tail)
            .unwrap()
            .equals(&BitsView::of(s).unwrap())
    );
    assert!(bits::match_context(&mut f, Word::NIL).is_none());
    let short = f.binary(&[1, 2]);
    let long = f.binary(&[1, 2, 0]);
    let (a, c) = (BitsView::of(short).unwrap(), BitsView::of(long).unwrap());
    assert!(a.compare(&c).is_lt() && c.compare(&a).is_gt() && !a.equals(&c));
    let mut bb = BsBuilder::new(&mut f, 1000);
    bb.writer().put_u64(1, 1);
    bb.writer()
        .put_bits(&BitsView::of(b).unwrap().part(1, 999).unwrap());
    assert_eq!(bb.room(), 0);
    let w = bb.finish();
    let v = BitsView::of(w).unwrap();
    assert_eq!((v.bit_size, v.byte(0), v.byte(124)), (1000, 0x80, 124));
}

fn put(alloc: &mut Fragment, w: Word, bytes: &[u8]) -> Word {
    let a = bits::append(alloc, w, bytes.len() as u64 * 8).unwrap();
    let mut wr = unsafe { BitsWriter::new(a.base, a.offset) };
    wr.put_bytes(bytes);
    a.term
}

fn bytes_of(w: Word) -> Vec<u8> {
    BitsView::of(w).unwrap().to_bytes().into_owned()
}

#[test]
fn appends_in_place_grow_and_fork() {
    let mut f = Fragment::with_capacity(1 << 12);
    let empty = f.binary(&[]);
    let mut w = put(&mut f, empty, b"start");
    let first = w;
    let holder = w.term_field(1);
    let mut want = b"start".to_vec();
    for i in 0..3000u32 {
        w = put(&mut f, w, &i.to_be_bytes());
        want.extend(i.to_be_bytes());
        assert_eq!(w.term_field(1), holder, "appended in place");
    }
    assert_eq!(bytes_of(w), want);
    assert_eq!(bytes_of(first), b"start");
    // The old view no longer ends where the block does: a copy.
    let fork = put(&mut f, first, b"!");
    assert_ne!(fork.term_field(1), holder);
    assert_eq!(bytes_of(fork), b"start!");
    assert_eq!(bytes_of(w), want);
    // The same view appended to twice: one wins, the other copies.
    let a = put(&mut f, fork, b"a");
    let b = put(&mut f, fork, b"b");
    assert_eq!(
        (bytes_of(a), bytes_of(b)),
        (b"start!a".to_vec(), b"start!b".to_vec())
    );
    // A plain binary is never extended in place.
    let plain = f.binary(&[9; 100]);
    let x = put(&mut f, plain, b"z");
    assert_ne!(x.term_field(1), plain);
    assert!(bits::append(&mut f, Word::NIL, 8).is_none());
}

#[test]
fn shared_blocks_append_only_on_byte_ends_and_never_move() {
    let mut f = Fragment::with_capacity(256);
    let empty = f.binary(&[]);
    let w = put(&mut f, empty, b"abc");
    let holder = w.term_field(1);
    let block = unsafe { BinaryRef::share(holder.field(2) as usize as *mut _) };
    let other = {
        let d = block.data();
        f.refc_slice(block, d, 24)
    };
    // Room, byte end: in place even though shared.
    let x = put(&mut f, w, b"d");
    assert_eq!(x.term_field(1), holder);
    // Unaligned end of a shared block: a copy.
    let a = bits::append(&mut f, x, 3).unwrap();
    unsafe { BitsWriter::new(a.base, a.offset) }.put_u64(5, 3);
    assert_eq!(a.term.term_field(1), holder);
    let y = bits::append(&mut f, a.term, 5).unwrap();
    unsafe { BitsWriter::new(y.base, y.offset) }.put_u64(1, 5);
    assert_ne!(y.term.term_field(1), holder);
    assert_eq!(bytes_of(y.term), b"abcd\xA1");
    // No room and shared: a copy, the block stays.
    let data = holder.field(3);
    let z = put(&mut f, x, &[0; 1000]);
    assert_ne!(z.term_field(1), holder);
    assert_eq!(holder.field(3), data);
    assert_eq!(bytes_of(other), b"abc");
    assert!(f.off_heap().overhead > 0);
}

#[test]
fn single_bits_append() {
    let mut f = Fragment::with_capacity(256);
    let mut w = f.binary(&[]);
    let mut r = Rng(3);
    let mut model = Vec::new();
    for _ in 0..5000 {
        let b = r.below(2);
        let a = bits::append(&mut f, w, 1).unwrap();
        unsafe { BitsWriter::new(a.base, a.offset) }.put_u64(b, 1);
        w = a.term;
        model.push(b);
    }
    let v = BitsView::of(w).unwrap();
    assert_eq!(v.bit_size, 5000);
    for (i, b) in model.iter().enumerate() {
        assert_eq!(v.get_bits(i as u64, 1), *b);
    }
}
