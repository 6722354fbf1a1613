//! How the bytes of a port are cut into messages: `stream`, `{packet, N}`, `{line, L}`.

/// One message's worth of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes as they came, or a packet.
    Data(Vec<u8>),
    /// A whole line, without its end.
    Eol(Vec<u8>),
    /// A part of a line: as long as the limit allows, or the last without an end.
    NoEol(Vec<u8>),
}

/// How a port cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Framing {
    /// As it comes.
    #[default]
    Stream,
    /// Length in this many bytes (1, 2 or 4), big endian, in front.
    Packet(u8),
    /// Lines of this many bytes at most.
    Line(usize),
}

/// A packet is longer than its header can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes do not fit a packet of this port")]
pub struct TooLong(pub usize);

impl Framing {
    /// What goes in front of `len` bytes of output.
    pub fn header(self, len: usize) -> Result<Vec<u8>, TooLong> {
        match self {
            Framing::Stream | Framing::Line(_) => Ok(Vec::new()),
            Framing::Packet(n) => {
                let limit = 1u64 << (8 * u32::from(n));
                if len as u64 >= limit {
                    return Err(TooLong(len));
                }
                Ok((len as u32).to_be_bytes()[4 - usize::from(n)..].to_vec())
            }
        }
    }
}

/// Input that is not whole yet.
#[derive(Debug, Default)]
pub struct Input {
    pending: Vec<u8>,
}

impl Input {
    /// Bytes that wait.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
    /// Takes bytes and gives what is whole now.
    pub fn take(&mut self, how: Framing, bytes: Vec<u8>) -> Vec<Frame> {
        match how {
            Framing::Stream => vec![Frame::Data(bytes)],
            Framing::Packet(n) => self.packets(usize::from(n), &bytes),
            Framing::Line(limit) => self.lines(limit.max(1), &bytes),
        }
    }
    fn packets(&mut self, header: usize, bytes: &[u8]) -> Vec<Frame> {
        self.pending.extend_from_slice(bytes);
        let mut frames = Vec::new();
        let mut rest = &self.pending[..];
        while let Some((head, body)) = rest.split_at_checked(header) {
            let len = head.iter().fold(0, |n, b| n << 8 | usize::from(*b));
            let Some((packet, more)) = body.split_at_checked(len) else {
                break;
            };
            frames.push(Frame::Data(packet.to_vec()));
            rest = more;
        }
        let used = self.pending.len() - rest.len();
        self.pending.drain(..used);
        frames
    }
    fn lines(&mut self, limit: usize, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &b in bytes {
            if b == b'\n' {
                frames.push(Frame::Eol(std::mem::take(&mut self.pending)));
                continue;
            }
            if self.pending.len() == limit {
                frames.push(Frame::NoEol(std::mem::take(&mut self.pending)));
            }
            self.pending.push(b);
        }
        frames
    }
    /// The end of input: what is left of a line.
    pub fn end(&mut self, how: Framing) -> Option<Frame> {
        match how {
            Framing::Line(_) if !self.pending.is_empty() => {
                Some(Frame::NoEol(std::mem::take(&mut self.pending)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_whole_however_they_are_cut() {
        let sent = [0u8, 3, 1, 2, 3, 0, 0, 0, 1, 9];
        for cut in 0..sent.len() {
            let mut input = Input::default();
            let how = Framing::Packet(2);
            let mut frames = input.take(how, sent[..cut].to_vec());
            frames.extend(input.take(how, sent[cut..].to_vec()));
            let expected = [vec![1, 2, 3], vec![], vec![9]].map(Frame::Data);
            assert_eq!(frames, expected);
            assert_eq!(input.pending(), 0);
        }
        assert_eq!(Framing::Packet(1).header(255), Ok(vec![255]));
        assert_eq!(Framing::Packet(1).header(256), Err(TooLong(256)));
        assert_eq!(Framing::Packet(4).header(258), Ok(vec![0, 0, 1, 2]));
    }

    #[test]
    fn lines_longer_than_the_limit_come_in_parts() {
        let mut input = Input::default();
        let how = Framing::Line(3);
        let frames = input.take(how, b"abc\nabcd\n\nxy".to_vec());
        let eol = |t: &str| Frame::Eol(t.as_bytes().to_vec());
        let part = |t: &str| Frame::NoEol(t.as_bytes().to_vec());
        assert_eq!(frames, [eol("abc"), part("abc"), eol("d"), eol("")]);
        assert_eq!(input.end(how), Some(part("xy")));
        assert_eq!(input.end(how), None);
    }
}
