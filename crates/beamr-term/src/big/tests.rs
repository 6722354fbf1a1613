use super::*;
use std::cmp::Ordering;

/// A small generator with runs of ones and zeros, which find carry faults.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn limbs(&mut self, n: usize) -> Vec<u64> {
        let mut v: Vec<u64> = (0..n)
            .map(|_| match self.next() % 5 {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (self.next() % 64),
                _ => self.next(),
            })
            .collect();
        if let Some(top) = v.last_mut()
            && *top == 0
        {
            *top = 1 + self.next() % 7;
        }
        v
    }
}

/// Products by rows of single limbs, the plainest way.
fn plain_mul(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut out = vec![0u64; a.len() + b.len()];
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, y) in b.iter().enumerate() {
            let t = u128::from(*x) * u128::from(*y) + u128::from(out[i + j]) + carry;
            out[i + j] = t as u64;
            carry = t >> 64;
        }
        out[i + b.len()] = carry as u64;
    }
    out
}

#[test]
fn products_agree_with_the_plain_way() {
    let mut r = Random(0x1234_5678_9abc_def1);
    for (n, m) in [
        (1, 1),
        (2, 1),
        (2, 2),
        (5, 3),
        (31, 31),
        (32, 32),
        (33, 33),
        (64, 33),
        (65, 65),
        (100, 40),
        (129, 127),
        (200, 64),
        (257, 257),
        (300, 35),
    ] {
        for _ in 0..5 {
            let (a, b) = (r.limbs(n), r.limbs(m));
            let mut out = vec![7; n + m];
            mul(&mut out, &a, &b);
            assert_eq!(out, plain_mul(&a, &b), "{n} by {m}");
            let mut square = vec![7; 2 * n];
            mul(&mut square, &a, &a);
            assert_eq!(square, plain_mul(&a, &a), "square of {n}");
        }
    }
}

#[test]
fn division_is_undone_by_multiplication() {
    let mut r = Random(0xfeed_beef_0bad_cafe);
    for (n, m) in [
        (1, 1),
        (3, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (9, 9),
        (20, 7),
        (60, 50),
        (96, 48),
        (100, 50),
        (200, 100),
        (201, 99),
        (400, 60),
        (500, 250),
        (333, 170),
    ] {
        for _ in 0..20 {
            let (a, b) = (r.limbs(n), r.limbs(m));
            let mut q = vec![7; n - m + 1];
            let mut rest = vec![7; m];
            div_rem(&mut q, &mut rest, &a, &b);
            assert_eq!(compare(trim(&rest), &b), Ordering::Less, "{n} by {m}");
            let mut back = vec![0; n + 1];
            mul(&mut back, &q, &b);
            kernel::add_assign(&mut back, &rest);
            assert_eq!(trim(&back), &a, "{n} by {m}");
        }
    }
}

#[test]
fn division_of_products_plus_or_minus_one() {
    // Remainders at the borders provoke the corrections.
    let mut r = Random(99);
    for (n, m) in [(3, 3), (4, 3), (50, 49), (120, 60), (150, 100)] {
        for _ in 0..20 {
            let b = r.limbs(m);
            let c = r.limbs(n - m + 1);
            let mut a = plain_mul(&c, &b);
            kernel::decrement(&mut a);
            let a = trim(&a);
            let mut q = vec![0; a.len() - m + 1];
            let mut rest = vec![0; m];
            div_rem(&mut q, &mut rest, a, &b);
            let mut want_q = c.clone();
            kernel::decrement(&mut want_q);
            assert_eq!(trim(&q), trim(&want_q));
            let mut want_rest = b.clone();
            kernel::decrement(&mut want_rest);
            assert_eq!(trim(&rest), trim(&want_rest));
        }
    }
}

#[test]
fn short_quotients() {
    let mut r = Random(4242);
    let mut decided = 0;
    for m in [3, 4, 10, 40] {
        for i in 0..200 {
            let b = r.limbs(m);
            let factor = match i % 4 {
                0 => 1,
                1 => u64::MAX,
                2 => r.next() >> (r.next() % 64),
                _ => r.next(),
            };
            let mut a = vec![0; m + 1];
            a[m] = kernel::mul_limb(&mut a[..m], &b, factor, 0);
            match i % 3 {
                0 => {
                    kernel::decrement(&mut a);
                }
                1 => {
                    kernel::add_assign(&mut a, &r.limbs(m - 1));
                }
                _ => {}
            }
            let a = trim(&a);
            if a.len() < m {
                continue;
            }
            let mut q = vec![0; a.len() - m + 1];
            let mut rest = vec![0; m];
            div_rem(&mut q, &mut rest, a, &b);
            let mut out = vec![7; m];
            if let Some(digit) = rem_small_quotient(&mut out, a, &b) {
                decided += 1;
                assert_eq!(trim(&q), trim(&[digit]));
                assert_eq!(out, rest);
            }
            if let Some(digit) = quotient_is_small(a, &b) {
                assert_eq!(trim(&q), trim(&[digit]));
            }
        }
    }
    assert!(decided > 500, "{decided}");
}

#[test]
fn digits_and_back() {
    let mut r = Random(31337);
    for n in [0, 1, 2, 23, 24, 25, 47, 48, 60, 130, 257] {
        for base in [2, 3, 7, 8, 10, 11, 16, 31, 32, 36] {
            let a = if n == 0 { vec![] } else { r.limbs(n) };
            let mut text = Vec::new();
            to_digits(&mut text, &a, base, 1);
            assert!(text.len() <= digits_len_bound(n, base), "{n} in {base}");
            assert!(text[0] != b'0' || n == 0);
            // The plain way: take digits off one by one.
            let mut rest = a.clone();
            for c in text.iter().rev() {
                let d = kernel::div_limb_assign(&mut rest, u64::from(base));
                assert_eq!(
                    char::from_digit(d as u32, base)
                        .unwrap()
                        .to_ascii_uppercase(),
                    char::from(*c)
                );
            }
            assert!(trim(&rest).is_empty());
            let values: Vec<u8> = text
                .iter()
                .map(|c| char::from(*c).to_digit(base).unwrap() as u8)
                .collect();
            assert_eq!(from_digits(&values, base), a, "{n} in {base}");
        }
    }
}

#[test]
fn powers_of_ten() {
    // Zero parts inside the recursion.
    let mut digits = vec![0u8; 5000];
    digits[0] = 1;
    let v = from_digits(&digits, 10);
    let mut text = Vec::new();
    to_digits(&mut text, &v, 10, 1);
    assert_eq!(text.len(), 5000);
    assert!(text[1..].iter().all(|c| *c == b'0'));
    assert!(from_digits(&vec![0; 5000], 10).is_empty());
}

#[test]
fn shifts() {
    let a = [0x8000_0000_0000_0001, 3];
    let mut out = [7; 4];
    shift_left(&mut out, &a, 65);
    assert_eq!(out, [0, 2, 7, 0]);
    let mut out = [7; 2];
    shift_right(&mut out, &a, 64, false);
    assert_eq!(out, [3, 0]);
    shift_right(&mut out, &a, 64, true);
    assert_eq!(out, [4, 0]);
    let mut out = [7; 1];
    shift_right(&mut out, &a, 1 << 50, true);
    assert_eq!(out, [1]);
    assert_eq!(shift_right_len(&a, 1 << 50), 1);
}

#[test]
fn transforms_agree_with_the_plain_way() {
    let mut r = Random(271_828);
    let ones = |n| vec![u64::MAX; n];
    for (a, b) in [
        (r.limbs(1), r.limbs(1)),
        (r.limbs(1), r.limbs(2)),
        (r.limbs(5), r.limbs(4)),
        (r.limbs(600), r.limbs(500)),
        (ones(512), ones(512)),
        (ones(1025), ones(1024)),
        (r.limbs(700), r.limbs(70)),
    ] {
        let mut out = vec![7; a.len() + b.len()];
        ntt::mul(&mut out, &a, Some(&b));
        assert!(out == plain_mul(&a, &b), "{} by {}", a.len(), b.len());
        let mut out = vec![7; 2 * a.len()];
        ntt::mul(&mut out, &a, None);
        assert!(out == plain_mul(&a, &a), "square of {}", a.len());
    }
}

#[test]
fn long_products_agree_with_their_remainders() {
    // (a * b) mod d for a few limbs d, through every way that the length selects.
    let mut r = Random(314_159);
    for (n, m) in [(4096, 4096), (9000, 3500), (8192, 8192), (20_000, 3000)] {
        let (a, b) = (r.limbs(n), r.limbs(m));
        let mut out = vec![7; n + m];
        mul(&mut out, &a, &b);
        for d in [u64::MAX, (1 << 61) - 1, 0x1234_5678_9abc_def1] {
            let (x, y) = (kernel::rem_limb(&a, d), kernel::rem_limb(&b, d));
            let want = u128::from(x) * u128::from(y) % u128::from(d);
            assert_eq!(u128::from(kernel::rem_limb(&out, d)), want, "{n} by {m}");
        }
    }
}
