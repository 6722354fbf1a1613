//! Moving, reading and comparing bits between any two bit offsets.
//!
//! All functions take a byte pointer and a bit offset from it (which may exceed seven) and touch
//! only bytes that hold at least one of the addressed bits.

use std::cmp::Ordering;

/// Reads `n` bits (at most 64), most significant first.
///
/// # Safety
/// The bits `off..off + n` from `data` are readable.
#[inline]
pub unsafe fn read_bits(data: *const u8, off: u64, n: u64) -> u64 {
    debug_assert!(n <= 64);
    if n == 0 {
        return 0;
    }
    let p = data.add((off >> 3) as usize);
    let s = (off & 7) as u32;
    if s == 0 {
        match n {
            8 => return u64::from(*p),
            16 => return u64::from(u16::from_be_bytes(p.cast::<[u8; 2]>().read())),
            32 => return u64::from(u32::from_be_bytes(p.cast::<[u8; 4]>().read())),
            64 => return u64::from_be_bytes(p.cast::<[u8; 8]>().read()),
            _ => {}
        }
    }
    let end = u64::from(s) + n;
    let bytes = end.div_ceil(8) as usize;
    let mut acc: u64 = 0;
    for i in 0..bytes.min(8) {
        acc = acc << 8 | u64::from(*p.add(i));
    }
    if bytes <= 8 {
        // The wanted bits end `bytes * 8 - end` bits above the lowest one.
        let v = acc >> (bytes as u64 * 8 - end);
        if n == 64 { v } else { v & ((1 << n) - 1) }
    } else {
        let low = end - 64;
        let v = acc << low | u64::from(*p.add(8)) >> (8 - low);
        if n == 64 { v } else { v & ((1 << n) - 1) }
    }
}

/// Writes the low `n` bits of `value` (at most 64), most significant first. Other bits of the
/// first and last byte keep their values.
///
/// # Safety
/// The bits `off..off + n` from `data` are writable, and their bytes initialised.
#[inline]
pub unsafe fn write_bits(data: *mut u8, off: u64, n: u64, value: u64) {
    debug_assert!(n <= 64);
    if n == 0 {
        return;
    }
    let mut p = data.add((off >> 3) as usize);
    let s = (off & 7) as u32;
    if s == 0 {
        match n {
            8 => return *p = value as u8,
            16 => return p.cast::<[u8; 2]>().write((value as u16).to_be_bytes()),
            32 => return p.cast::<[u8; 4]>().write((value as u32).to_be_bytes()),
            64 => return p.cast::<[u8; 8]>().write(value.to_be_bytes()),
            _ => {}
        }
    }
    let mut left = n;
    if s != 0 {
        let room = u64::from(8 - s);
        let take = room.min(left);
        let shift = (room - take) as u32;
        let mask = (((1u32 << take) - 1) << shift) as u8;
        let bits = ((value >> (left - take)) << shift) as u8 & mask;
        *p = *p & !mask | bits;
        left -= take;
        p = p.add(1);
    }
    while left >= 8 {
        left -= 8;
        *p = (value >> left) as u8;
        p = p.add(1);
    }
    if left > 0 {
        let shift = 8 - left as u32;
        let mask = (((1u32 << left) - 1) << shift) as u8;
        *p = *p & !mask | ((value << shift) as u8 & mask);
    }
}

/// Copies `n` bits. The ranges must not overlap. Other bits of the destination keep their values.
///
/// # Safety
/// The source bits are readable, the destination bits writable and their bytes initialised.
#[inline]
pub unsafe fn copy_bits(src: *const u8, src_off: u64, dst: *mut u8, dst_off: u64, n: u64) {
    if (src_off | dst_off | n) & 7 == 0 {
        std::ptr::copy_nonoverlapping(
            src.add((src_off >> 3) as usize),
            dst.add((dst_off >> 3) as usize),
            (n >> 3) as usize,
        );
        return;
    }
    copy_unaligned(src, src_off, dst, dst_off, n);
}

unsafe fn copy_unaligned(
    src: *const u8,
    mut src_off: u64,
    dst: *mut u8,
    mut dst_off: u64,
    mut n: u64,
) {
    if n <= 64 {
        return write_bits(dst, dst_off, n, read_bits(src, src_off, n));
    }
    let head = (8 - (dst_off & 7)) & 7;
    if head != 0 {
        write_bits(dst, dst_off, head, read_bits(src, src_off, head));
        src_off += head;
        dst_off += head;
        n -= head;
    }
    let mut s = src.add((src_off >> 3) as usize);
    let mut d = dst.add((dst_off >> 3) as usize);
    let shift = (src_off & 7) as u32;
    if shift == 0 {
        let bytes = (n >> 3) as usize;
        std::ptr::copy_nonoverlapping(s, d, bytes);
        s = s.add(bytes);
        d = d.add(bytes);
        n &= 7;
    } else {
        // Nine source bytes hold the eight wanted ones; all nine are in range while `n >= 64`.
        while n >= 64 {
            let hi = u64::from_be_bytes(s.cast::<[u8; 8]>().read());
            let v = hi << shift | u64::from(*s.add(8)) >> (8 - shift);
            d.cast::<[u8; 8]>().write(v.to_be_bytes());
            s = s.add(8);
            d = d.add(8);
            n -= 64;
        }
    }
    if n > 0 {
        write_bits(d, 0, n, read_bits(s, u64::from(shift), n));
    }
}

/// Compares two runs of `n` bits, first difference decides.
///
/// # Safety
/// Both ranges are readable.
pub unsafe fn compare_bits(a: *const u8, a_off: u64, b: *const u8, b_off: u64, n: u64) -> Ordering {
    let (mut a_off, mut b_off, mut n) = (a_off, b_off, n);
    if (a_off | b_off) & 7 == 0 {
        let bytes = (n >> 3) as usize;
        let x = std::slice::from_raw_parts(a.add((a_off >> 3) as usize), bytes);
        let y = std::slice::from_raw_parts(b.add((b_off >> 3) as usize), bytes);
        let c = x.cmp(y);
        if c != Ordering::Equal {
            return c;
        }
        a_off += bytes as u64 * 8;
        b_off += bytes as u64 * 8;
        n &= 7;
    }
    while n > 0 {
        let k = n.min(64);
        let c = read_bits(a, a_off, k).cmp(&read_bits(b, b_off, k));
        if c != Ordering::Equal {
            return c;
        }
        a_off += k;
        b_off += k;
        n -= k;
    }
    Ordering::Equal
}

/// Whether two runs of `n` bits are equal.
///
/// # Safety
/// Both ranges are readable.
#[inline]
pub unsafe fn equal_bits(a: *const u8, a_off: u64, b: *const u8, b_off: u64, n: u64) -> bool {
    (a == b && a_off == b_off) || compare_bits(a, a_off, b, b_off, n) == Ordering::Equal
}
