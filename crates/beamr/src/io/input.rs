//! The bytes of standard input that nobody has taken yet.

use std::io::BufRead;
use std::sync::{Arc, Weak};

use beamr_term::Word;
use beamr_vm::door::Door;
use beamr_vm::vm::Vm;

use super::reader::Reader;

/// What is there of what was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// So many bytes.
    Bytes(usize),
    /// The input has ended.
    Eof,
    /// More has to come first.
    More,
}

/// See the module.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    /// Bytes from `start` that hold no end of a line.
    scanned: usize,
    /// Bytes from `start` and how many characters they are.
    counted: (usize, usize),
    eof: bool,
    reader: Option<Reader>,
}

impl Input {
    /// The bytes that were not taken.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
    /// Whether the end was seen and everything was taken.
    pub fn is_over(&self) -> bool {
        self.eof && self.rest().is_empty()
    }
    /// Takes bytes.
    pub fn consume(&mut self, n: usize) {
        self.start += n;
        self.scanned = 0;
        self.counted = (0, 0);
    }
    /// Puts bytes back in front.
    pub fn put_back(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.consume(0);
        if bytes.len() <= self.start {
            let at = self.start - bytes.len();
            self.bytes[at..self.start].copy_from_slice(bytes);
            self.start = at;
        } else {
            self.bytes.splice(..self.start, bytes.iter().copied());
            self.start = 0;
        }
    }
    fn append(&mut self, chunk: Vec<u8>) {
        if self.rest().is_empty() {
            self.bytes = chunk;
            self.start = 0;
            return;
        }
        if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(&chunk);
    }
    /// Takes over what the reader has left, and lets it read ahead.
    pub fn receive(&mut self) {
        let Some(reader) = &self.reader else { return };
        let arrived = reader.take();
        reader.ahead();
        for chunk in arrived {
            if chunk.is_empty() {
                self.eof = true;
            } else {
                self.append(chunk);
            }
        }
    }
    /// A line with its end, or what is there of one at the end of the input.
    pub fn line(&mut self) -> Found {
        let from = self.start + self.scanned;
        // Reading from memory does not fail.
        let n = (&self.bytes[from..]).skip_until(b'\n').unwrap_or(0);
        if n > 0 && self.bytes[from + n - 1] == b'\n' {
            return Found::Bytes(from + n - self.start);
        }
        self.scanned = self.bytes.len() - self.start;
        self.ended()
    }
    /// So many characters, or fewer at the end of the input.
    pub fn chars(&mut self, n: usize, latin1: bool) -> Found {
        if n == 0 {
            return if self.is_over() {
                Found::Eof
            } else {
                Found::Bytes(0)
            };
        }
        if latin1 {
            return if self.rest().len() >= n {
                Found::Bytes(n)
            } else {
                self.ended()
            };
        }
        let (mut at, mut count) = self.counted;
        let rest = &self.bytes[self.start..];
        while count < n {
            let Some(b) = rest.get(at) else { break };
            let len = match b {
                0xC2..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0..0xF5 => 4,
                _ => 1,
            };
            if at + len > rest.len() {
                break;
            }
            at += len;
            count += 1;
        }
        self.counted = (at, count);
        if count == n {
            Found::Bytes(at)
        } else {
            self.ended()
        }
    }
    fn ended(&self) -> Found {
        match self.rest().len() {
            _ if !self.eof => Found::More,
            0 => Found::Eof,
            n => Found::Bytes(n),
        }
    }
    /// Asks the reader for a chunk; makes it at the first call. When there can be none the input is over.
    pub fn want(&mut self, vm: &Weak<Vm>, door: &Arc<dyn Door>, me: Word) {
        if self.eof {
            return;
        }
        let reader = match self.reader.take() {
            Some(r) => Some(r),
            None => Reader::new(vm, door, me),
        };
        self.eof = !reader.as_ref().is_some_and(Reader::ask);
        self.reader = reader;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &[u8], eof: bool) -> Input {
        Input {
            bytes: text.to_vec(),
            eof,
            ..Input::default()
        }
    }

    #[test]
    fn lines() {
        let mut i = input(b"one\n\nlast", false);
        assert_eq!(i.line(), Found::Bytes(4));
        i.consume(4);
        assert_eq!(i.line(), Found::Bytes(1));
        i.consume(1);
        assert_eq!(i.line(), Found::More);
        i.append(b" part".to_vec());
        assert_eq!(i.line(), Found::More);
        i.eof = true;
        assert_eq!(i.line(), Found::Bytes(9));
        i.consume(9);
        assert_eq!(i.line(), Found::Eof);
        assert!(i.is_over());
    }

    #[test]
    fn characters() {
        let mut i = input("å≤x".as_bytes(), false);
        assert_eq!(i.chars(2, false), Found::Bytes(5));
        assert_eq!(i.chars(2, true), Found::Bytes(2));
        assert_eq!(i.chars(4, false), Found::More);
        i.append("≤".as_bytes()[..1].to_vec());
        assert_eq!(i.chars(4, false), Found::More);
        i.append("≤".as_bytes()[1..].to_vec());
        assert_eq!(i.chars(4, false), Found::Bytes(9));
        i.eof = true;
        assert_eq!(i.chars(9, false), Found::Bytes(9));
        i.consume(9);
        assert_eq!(i.chars(1, false), Found::Eof);
        assert_eq!(i.chars(0, false), Found::Eof);
    }

    #[test]
    fn bytes_go_back() {
        let mut i = input(b"abcdef", true);
        i.consume(3);
        i.put_back(b"xy");
        assert_eq!(i.rest(), b"xydef");
        i.put_back(b"a long text");
        assert_eq!(i.rest(), b"a long textxydef");
    }
}
