//! Products of very long operands: convolution by number-theoretic transforms modulo three
//! primes just below 2^62, put together with the Chinese remainder theorem.
//!
//! A limb is one coefficient. A coefficient of the product is below 2^128 times the length, and
//! the primes together have 186 bits. Values stay in `0..2P` (`0..4P` as the input of a
//! multiplication), which is what room the primes leave in a limb; products are reduced by
//! Montgomery's method, and the roots of unity are kept in its form.

/// The longest transform is 2 to this power: 16 million limbs, beyond every release's limit.
const MAX_LOG: u32 = 24;

const P1: u64 = 0x3fff_ffff_fa00_0001;
const P2: u64 = 0x3fff_ffff_f900_0001;
const P3: u64 = 0x3fff_ffff_ea00_0001;

/// An element of order `2^MAX_LOG`.
const fn root(p: u64) -> u64 {
    match p {
        P1 => 0x1ec2_e1c8_c195_81e5,
        P2 => 0x337c_b0b2_6e83_0fe4,
        _ => 0x2bfe_4bc9_281b_5644,
    }
}

const fn mul_mod(a: u64, b: u64, p: u64) -> u64 {
    ((a as u128 * b as u128) % p as u128) as u64
}

const fn pow_mod(mut a: u64, mut e: u64, p: u64) -> u64 {
    let mut r = 1;
    while e > 0 {
        if e & 1 == 1 {
            r = mul_mod(r, a, p);
        }
        a = mul_mod(a, a, p);
        e >>= 1;
    }
    r
}

/// `a` in Montgomery's form.
const fn form(a: u64, p: u64) -> u64 {
    (((a as u128) << 64) % p as u128) as u64
}

/// The inverse of an odd number modulo 2^64.
const fn inverse_word(p: u64) -> u64 {
    let mut x = p;
    let mut i = 0;
    while i < 6 {
        x = x.wrapping_mul(2u64.wrapping_sub(p.wrapping_mul(x)));
        i += 1;
    }
    x
}

/// Arithmetic modulo `P`.
struct Field<const P: u64>;

impl<const P: u64> Field<P> {
    const INVERSE: u64 = inverse_word(P);

    /// `a * b / 2^64` in `0..2P`, for `a` below 4P (or any limb) and `b` below P.
    #[inline(always)]
    fn mul(a: u64, b: u64) -> u64 {
        let t = u128::from(a) * u128::from(b);
        let m = (t as u64).wrapping_mul(Self::INVERSE);
        let h = (u128::from(m) * u128::from(P)) >> 64;
        (t >> 64) as u64 + P - h as u64
    }
    /// From `0..4P` to `0..2P`.
    #[inline(always)]
    fn halve(a: u64) -> u64 {
        a.min(a.wrapping_sub(2 * P))
    }
    /// From `0..2P` to `0..P`.
    #[inline(always)]
    fn canonical(a: u64) -> u64 {
        a.min(a.wrapping_sub(P))
    }

    /// Powers of the roots of unity, in Montgomery's form: `table[h + j]` is the `j`th power of
    /// the root of order `2h`, for every power of two `h` below `n`.
    fn roots(n: usize) -> Vec<u64> {
        let mut table = vec![0; n];
        if n < 2 {
            return table;
        }
        let h = n / 2;
        let order = 1u64 << (MAX_LOG - n.trailing_zeros());
        let step = form(pow_mod(root(P), order, P), P);
        let mut power = form(1, P);
        for place in &mut table[h..] {
            *place = power;
            power = Self::canonical(Self::mul(power, step));
        }
        let mut h = h / 2;
        while h > 0 {
            for j in 0..h {
                table[h + j] = table[2 * h + 2 * j];
            }
            h /= 2;
        }
        table
    }

    /// Transform; the output is in bit-reversed order.
    fn forward(a: &mut [u64], roots: &[u64]) {
        let mut h = a.len() / 2;
        while h > 1 {
            let powers = &roots[h..2 * h];
            for block in a.chunks_exact_mut(2 * h) {
                let (low, high) = block.split_at_mut(h);
                for ((x, y), w) in low.iter_mut().zip(high).zip(powers) {
                    let (u, v) = (*x, *y);
                    *x = Self::halve(u + v);
                    *y = Self::mul(u + 2 * P - v, *w);
                }
            }
            h /= 2;
        }
        if h == 1 {
            for pair in a.chunks_exact_mut(2) {
                let (u, v) = (pair[0], pair[1]);
                pair[0] = Self::halve(u + v);
                pair[1] = Self::halve(u + 2 * P - v);
            }
        }
    }

    /// Inverse transform times the length; the input is in bit-reversed order.
    fn backward(a: &mut [u64], roots: &[u64]) {
        let mut h = 1;
        while 2 * h <= a.len() {
            // The inverse of a root's power j is minus its power h - j.
            let powers = &roots[h..2 * h];
            for block in a.chunks_exact_mut(2 * h) {
                let (low, high) = block.split_at_mut(h);
                let (u, v) = (low[0], high[0]);
                low[0] = Self::halve(u + v);
                high[0] = Self::halve(u + 2 * P - v);
                let rest = low[1..].iter_mut().zip(&mut high[1..]);
                for ((x, y), w) in rest.zip(powers[1..].iter().rev()) {
                    let t = Self::mul(*y, *w);
                    let u = *x;
                    *x = Self::halve(u + 2 * P - t);
                    *y = Self::halve(u + t);
                }
            }
            h *= 2;
        }
    }

    /// The cyclic convolution of length `out.len()` modulo `P`.
    fn convolve(out: &mut [u64], a: &[u64], b: Option<&[u64]>) {
        let n = out.len();
        let roots = Self::roots(n);
        let one = form(1, P);
        let load = |to: &mut [u64], from: &[u64]| {
            for (x, y) in to.iter_mut().zip(from) {
                *x = Self::mul(*y, one);
            }
            to[from.len()..].fill(0);
            Self::forward(to, &roots);
        };
        load(out, a);
        match b {
            None => {
                for x in &mut *out {
                    let c = Self::canonical(*x);
                    *x = Self::mul(c, c);
                }
            }
            Some(b) => {
                let mut other = vec![0; n];
                load(&mut other, b);
                for (x, y) in out.iter_mut().zip(&other) {
                    *x = Self::mul(*x, Self::canonical(*y));
                }
            }
        }
        Self::backward(out, &roots);
        // Undoes the factor of the length and the two divisions by 2^64.
        let length_inverse = P - (P - 1) / n as u64;
        let scale = form(form(length_inverse, P), P);
        for x in out {
            *x = Self::canonical(Self::mul(*x, scale));
        }
    }
}

/// `out = a * b`; `out` has `a.len() + b.len()` limbs. `b` is `None` for a square.
pub fn mul(out: &mut [u64], a: &[u64], b: Option<&[u64]>) {
    /// Inverses of `P1` and of `P2` modulo the others, in Montgomery's form.
    const P1_IN_2: u64 = form(pow_mod(P1 % P2, P2 - 2, P2), P2);
    const P1_IN_3: u64 = form(pow_mod(P1 % P3, P3 - 2, P3), P3);
    const P2_IN_3: u64 = form(pow_mod(P2 % P3, P3 - 2, P3), P3);
    const P12: u128 = P1 as u128 * P2 as u128;
    let (low, high) = (P12 as u64, (P12 >> 64) as u64);

    let n = (out.len() - 1).next_power_of_two();
    debug_assert!(n <= 1 << MAX_LOG);
    let mut residues = vec![0; 3 * n];
    let (r1, rest) = residues.split_at_mut(n);
    let (r2, r3) = rest.split_at_mut(n);
    Field::<P1>::convolve(r1, a, b);
    Field::<P2>::convolve(r2, a, b);
    Field::<P3>::convolve(r3, a, b);
    let mut carry = 0u128;
    let coefficients = r1.iter().zip(r2.iter()).zip(r3.iter());
    let mut limbs = out.iter_mut();
    for (((a1, a2), a3), limb) in coefficients.zip(limbs.by_ref()) {
        // Garner: the coefficient is a1 + P1 * k2 + P1 * P2 * k3.
        let k2 = Field::<P2>::mul(a2 + 2 * P2 - a1, P1_IN_2);
        let k2 = Field::<P2>::canonical(k2);
        let k3 = Field::<P3>::mul(a3 + 2 * P3 - a1, P1_IN_3);
        let k3 = Field::<P3>::mul(Field::<P3>::halve(k3 + 2 * P3 - k2), P2_IN_3);
        let k3 = Field::<P3>::canonical(k3);
        let sum = u128::from(P1) * u128::from(k2)
            + u128::from(*a1)
            + carry
            + u128::from(k3) * u128::from(low);
        *limb = sum as u64;
        carry = (sum >> 64) + u128::from(k3) * u128::from(high);
    }
    // When the convolution was as long as the product but for its last limb.
    for limb in limbs {
        *limb = carry as u64;
        carry >>= 64;
    }
    debug_assert_eq!(carry, 0);
}
