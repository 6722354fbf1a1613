//! The compressed form: 131, 80, the size, a zlib stream.

use std::io::Write;

use flate2::{Compression, Decompress, FlushDecompress, Status};

use super::{VERSION, tag};

/// The compressed form of an encoded term, or `None` when it would not be shorter.
pub(super) fn compress(encoded: &[u8], level: u32) -> Option<Vec<u8>> {
    let body = &encoded[1..];
    let size = u32::try_from(body.len()).ok()?;
    let mut out = vec![VERSION, tag::COMPRESSED];
    out.extend_from_slice(&size.to_be_bytes());
    let mut z = flate2::write::ZlibEncoder::new(out, Compression::new(level.min(9)));
    z.write_all(body).ok()?;
    let out = z.finish().ok()?;
    // As OTP: the stream must leave the five bytes of tag and size free.
    (out.len() - 6 + 5 <= encoded.len()).then_some(out)
}

/// Inflates in steps.
pub(super) struct Inflater {
    z: Decompress,
    /// Bytes so far.
    pub out: Vec<u8>,
    size: usize,
    used: usize,
}

/// What came of a step.
pub(super) enum Inflated {
    More,
    /// Done, with the number of bytes taken from the input.
    Done(usize),
    Invalid,
}

impl Inflater {
    pub fn new(size: usize) -> Inflater {
        Inflater {
            z: Decompress::new(true),
            out: Vec::new(),
            size,
            used: 0,
        }
    }
    /// Inflates some more of `input`, which is always the whole stream.
    pub fn step(&mut self, input: &[u8], budget: &mut i64) -> Inflated {
        const CHUNK: usize = 1 << 14;
        while *budget > 0 {
            // One byte more than stated shows that there is too much.
            let room = (self.size + 1 - self.out.len()).min(CHUNK);
            if room == 0 {
                return Inflated::Invalid;
            }
            self.out.reserve(room);
            let before = (self.z.total_in(), self.z.total_out());
            let at = self.used.min(input.len());
            let start = self.out.len();
            self.out.resize(start + room, 0);
            let status =
                self.z
                    .decompress(&input[at..], &mut self.out[start..], FlushDecompress::None);
            let (taken, given) = (
                (self.z.total_in() - before.0) as usize,
                (self.z.total_out() - before.1) as usize,
            );
            self.out.truncate(start + given);
            self.used += taken;
            *budget -= (given / 64) as i64 + 1;
            match status {
                Ok(Status::StreamEnd) => {
                    return if self.out.len() == self.size {
                        Inflated::Done(self.used)
                    } else {
                        Inflated::Invalid
                    };
                }
                Ok(_) if taken > 0 || given > 0 => {}
                _ => return Inflated::Invalid,
            }
        }
        Inflated::More
    }
}
