//! A small assembler: the instruction forms that the spike uses, labels, and memory that is written, then run.

use std::io;

/// A register by its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct R(pub u8);
pub const RAX: R = R(0);
pub const RCX: R = R(1);
pub const RDX: R = R(2);
pub const RBX: R = R(3);
pub const RSP: R = R(4);
pub const RSI: R = R(6);
pub const R8: R = R(8);
pub const R11: R = R(11);
pub const R12: R = R(12);
pub const R13: R = R(13);

/// Conditions, as their opcodes have them.
#[derive(Clone, Copy)]
pub enum If {
    Overflow = 0,
    Below = 2,
    Equal = 4,
    NotEqual = 5,
    Less = 12,
    GreaterEqual = 13,
    LessEqual = 14,
}

/// Operations of two operands, by the opcode of their register form and the digit of their constant form.
#[derive(Clone, Copy)]
pub enum Bin {
    Add = 0,
    And = 4,
    Sub = 5,
    Xor = 6,
    Cmp = 7,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

#[derive(Default)]
pub struct Asm {
    pub code: Vec<u8>,
    labels: Vec<Option<usize>>,
    /// Place of a 32-bit distance that counts from its end.
    fixups: Vec<(usize, Label)>,
}

impl Asm {
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }
    pub fn bind(&mut self, l: Label) {
        assert!(self.labels[l.0].is_none(), "bound once");
        self.labels[l.0] = Some(self.code.len());
    }
    pub fn here(&mut self) -> Label {
        let l = self.label();
        self.bind(l);
        l
    }
    pub fn offset(&self, l: Label) -> Option<usize> {
        self.labels[l.0]
    }
    /// Pads until the next byte is `at` modulo 8.
    pub fn align(&mut self, at: usize) {
        while self.code.len() % 8 != at {
            self.code.push(0x90);
        }
    }
    pub fn bytes(&mut self, b: &[u8]) {
        self.code.extend_from_slice(b);
    }
    pub fn word(&mut self, w: u64) {
        self.bytes(&w.to_le_bytes());
    }
    fn rex(&mut self, reg: R, base: R) {
        self.code.push(0x48 | (reg.0 >> 3) << 2 | base.0 >> 3);
    }
    fn memory(&mut self, reg: u8, base: R, disp: i32) {
        self.code.push(0x80 | (reg & 7) << 3 | base.0 & 7);
        if base.0 & 7 == 4 {
            self.code.push(0x24);
        }
        self.bytes(&disp.to_le_bytes());
    }
    pub fn load(&mut self, to: R, base: R, disp: i32) {
        self.rex(to, base);
        self.code.push(0x8B);
        self.memory(to.0, base, disp);
    }
    pub fn store(&mut self, base: R, disp: i32, from: R) {
        self.rex(from, base);
        self.code.push(0x89);
        self.memory(from.0, base, disp);
    }
    pub fn lea(&mut self, to: R, base: R, disp: i32) {
        self.rex(to, base);
        self.code.push(0x8D);
        self.memory(to.0, base, disp);
    }
    /// The address of a label.
    pub fn lea_label(&mut self, to: R, l: Label) {
        self.rex(to, R(0));
        self.code.push(0x8D);
        self.code.push((to.0 & 7) << 3 | 5);
        self.distance(l);
    }
    pub fn constant(&mut self, to: R, v: u64) {
        self.rex(R(0), to);
        self.code.push(0xB8 | to.0 & 7);
        self.word(v);
    }
    pub fn mov(&mut self, to: R, from: R) {
        self.rex(from, to);
        self.bytes(&[0x89, 0xC0 | (from.0 & 7) << 3 | to.0 & 7]);
    }
    pub fn bin(&mut self, op: Bin, to: R, from: R) {
        self.rex(from, to);
        self.bytes(&[(op as u8) << 3 | 1, 0xC0 | (from.0 & 7) << 3 | to.0 & 7]);
    }
    pub fn bin_const(&mut self, op: Bin, to: R, v: i32) {
        self.rex(R(0), to);
        self.bytes(&[0x81, 0xC0 | (op as u8) << 3 | to.0 & 7]);
        self.bytes(&v.to_le_bytes());
    }
    pub fn test(&mut self, a: R, b: R) {
        self.rex(b, a);
        self.bytes(&[0x85, 0xC0 | (b.0 & 7) << 3 | a.0 & 7]);
    }
    /// Adds one to a 32-bit place in memory, or takes one away.
    pub fn count(&mut self, base: R, disp: i32, up: bool) {
        assert!(base.0 < 8, "no prefix needed");
        self.code.push(0xFF);
        self.memory(u8::from(!up), base, disp);
    }
    pub fn dec(&mut self, r: R) {
        self.rex(R(0), r);
        self.bytes(&[0xFF, 0xC8 | r.0 & 7]);
    }
    fn distance(&mut self, l: Label) {
        self.fixups.push((self.code.len(), l));
        self.bytes(&[0; 4]);
    }
    pub fn jump(&mut self, l: Label) {
        self.code.push(0xE9);
        self.distance(l);
    }
    pub fn jump_if(&mut self, c: If, l: Label) {
        self.bytes(&[0x0F, 0x80 | c as u8]);
        self.distance(l);
    }
    /// A call whose return address is a code position.
    pub fn call(&mut self, l: Label) {
        while (self.code.len() + 5) % 8 != 4 {
            self.code.push(0x90);
        }
        self.code.push(0xE8);
        self.distance(l);
    }
    pub fn jump_to(&mut self, address: usize) {
        self.constant(R11, address as u64);
        self.bytes(&[0x41, 0xFF, 0xE3]);
    }
    /// A call of a stub that takes the return address off at once.
    pub fn call_to(&mut self, address: usize) {
        self.constant(R11, address as u64);
        self.bytes(&[0x41, 0xFF, 0xD3]);
    }
    pub fn ret(&mut self) {
        self.code.push(0xC3);
    }
    /// Makes it executable.
    pub fn finish(mut self) -> io::Result<(Code, Vec<Option<usize>>)> {
        for (at, l) in &self.fixups {
            let target = self.labels[l.0].expect("bound") as i64;
            let distance = i32::try_from(target - (*at as i64 + 4)).expect("a small module");
            self.code[*at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok((Code::new(&self.code)?, self.labels))
    }
}

/// Executable memory. Never writable and executable at a time.
#[derive(Debug)]
pub struct Code {
    pub start: usize,
    pub len: usize,
}

impl Code {
    fn new(bytes: &[u8]) -> io::Result<Code> {
        let len = bytes.len().next_multiple_of(4096).max(4096);
        // SAFETY: a fresh anonymous mapping; written before it becomes executable, never after.
        unsafe {
            let p = libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if p == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let code = Code {
                start: p as usize,
                len,
            };
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), p.cast(), bytes.len());
            if libc::mprotect(p, len, libc::PROT_READ | libc::PROT_EXEC) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(code)
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours; the image that holds it is not run any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.len) };
    }
}
