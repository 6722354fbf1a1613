//! MD5 in steps, with a state that can be written down: what `erlang:md5_init/0` to `md5_final/1` pass around.

use std::sync::LazyLock;

/// Rotations of the four rounds.
const ROTATE: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// `floor(2^32 * |sin(i + 1)|)` for each step.
static CONSTANTS: LazyLock<[u32; 64]> = LazyLock::new(|| {
    std::array::from_fn(|i| ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32)
});

/// The state: sums, bytes so far, the unfinished block.
#[derive(Clone, Debug)]
pub struct Md5State {
    sums: [u32; 4],
    length: u64,
    block: [u8; 64],
}

impl Md5State {
    /// Bytes of a state that is written down.
    pub const SIZE: usize = 88;

    /// The state before any data.
    pub fn new() -> Md5State {
        Md5State {
            sums: [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476],
            length: 0,
            block: [0; 64],
        }
    }
    /// The state written down.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::SIZE);
        for s in self.sums {
            out.extend_from_slice(&s.to_le_bytes());
        }
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.block);
        out
    }
    /// A state that was written down.
    pub fn of_bytes(bytes: &[u8]) -> Option<Md5State> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| bytes[i * 4 + k]));
        Some(Md5State {
            sums: std::array::from_fn(word),
            length: u64::from(word(4)) | u64::from(word(5)) << 32,
            block: std::array::from_fn(|k| bytes[24 + k]),
        })
    }
    /// Takes in data.
    pub fn update(&mut self, data: &[u8]) {
        let mut data = data;
        let mut at = (self.length % 64) as usize;
        self.length = self.length.wrapping_add(data.len() as u64);
        while !data.is_empty() {
            let n = (64 - at).min(data.len());
            self.block[at..at + n].copy_from_slice(&data[..n]);
            data = &data[n..];
            at += n;
            if at == 64 {
                self.compress();
                at = 0;
            }
        }
    }
    /// The digest.
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        let pad = 1 + (119 - self.length % 64) % 64;
        let mut tail = vec![0x80];
        tail.resize(pad as usize, 0);
        tail.extend_from_slice(&bits.to_le_bytes());
        self.update(&tail);
        let mut out = [0; 16];
        for (o, s) in out.chunks_mut(4).zip(self.sums) {
            o.copy_from_slice(&s.to_le_bytes());
        }
        out
    }
    fn compress(&mut self) {
        let constants = &*CONSTANTS;
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| self.block[i * 4 + k]));
        let [mut a, mut b, mut c, mut d] = self.sums;
        for i in 0..64 {
            let (f, g) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            let sum = a
                .wrapping_add(f)
                .wrapping_add(constants[i])
                .wrapping_add(word(g % 16));
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(ROTATE[i / 16][i % 4]));
        }
        for (s, v) in self.sums.iter_mut().zip([a, b, c, d]) {
            *s = s.wrapping_add(v);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest, Md5};

    #[test]
    fn agrees_with_the_digest_in_one_piece() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7 % 251) as u8).collect();
        for n in [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 999] {
            let mut s = Md5State::new();
            for part in data[..n].chunks(13) {
                s.update(part);
                s = Md5State::of_bytes(&s.to_bytes()).unwrap();
            }
            assert_eq!(s.finish()[..], Md5::digest(&data[..n])[..], "{n} bytes");
        }
        assert!(Md5State::of_bytes(b"hejhej").is_none());
    }
}
