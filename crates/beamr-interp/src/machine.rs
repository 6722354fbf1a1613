//! The machine that handlers run on: its registers, how a handler reads operands, and how it hands over to
//! the next one.
//!
//! # Handlers
//!
//! An instruction is a run of 64-bit words; the first is the address of its handler. A handler is
//! a function of one signature ([`Handler`]) whose five parameters are the machine's registers, and
//! its last act is a call of the next handler with them. The compiler makes that a jump, because nothing
//! is left to do behind it: **a handler has no values with destructors, and no local whose address
//! escapes** (not even as an argument that is passed in memory: helpers take registers one by one). Whatever needs those is an ordinary function that a cold handler calls. Under `cfg(beamr_loop)` the
//! same handlers return the registers to the loop in [`execute`]; nothing else differs.
//!
//! # Safety
//!
//! Handlers are only ever reached through [`execute`] on code that the emitter made, for a process
//! whose registers and heap are consistent with that code: operands name initialised registers of a live frame, heap space was
//! ensured by an earlier instruction, constants are alive as long as the code. Every `unsafe` in the
//! handlers rests on this; they state only what goes beyond it.

use beamr_abi::{Body, Regs, STACK_SLACK};
use beamr_term::Word;
use beamr_vm::engine::CodePos;

/// An instruction pointer.
pub(crate) type Ip = *const u64;

/// See the module.
pub(crate) type Handler =
    unsafe extern "C-unwind" fn(Ip, *mut u64, *mut u64, *mut Regs, i64) -> Out;

/// What a handler returns in the end: a stop code.
#[cfg(not(beamr_loop))]
pub(crate) type Out = usize;

/// What a handler returns: the registers, or a null `ip` and a stop code in `fc`.
#[cfg(beamr_loop)]
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Out {
    ip: Ip,
    e: *mut u64,
    htop: *mut u64,
    fc: i64,
}

pub(crate) use beamr_vm::engine::stop::{
    EXITED as STOP_EXITED, PREEMPTED as STOP_PREEMPTED, WAITING as STOP_WAITING,
};
pub(crate) use beamr_vm::rt::plain_error;

/// Bytes that must be free beyond what an instruction asks for.
pub(crate) const SLACK_BYTES: usize = STACK_SLACK * 8;

/// The machine's registers, by value: after inlining they are the parameters of the handler.
#[derive(Clone, Copy)]
pub(crate) struct M {
    /// This instruction.
    pub ip: Ip,
    /// Stack pointer: y0.
    pub e: *mut u64,
    /// Heap top.
    pub htop: *mut u64,
    /// X registers, float registers, context.
    pub p: *mut Regs,
    /// Reductions left.
    pub fc: i64,
}

/// Runs from `ip` until the process stops; gives the stop code.
///
/// # Safety
/// The contract of [`beamr_vm::engine::Engine::run`].
#[cfg(not(beamr_loop))]
pub(crate) unsafe fn execute(m: M) -> usize {
    m.go(m.ip)
}

/// Runs from `ip` until the process stops; gives the stop code.
///
/// # Safety
/// The contract of [`beamr_vm::engine::Engine::run`].
#[cfg(beamr_loop)]
pub(crate) unsafe fn execute(m: M) -> usize {
    let p = m.p;
    let mut s = Out {
        ip: m.ip,
        e: m.e,
        htop: m.htop,
        fc: m.fc,
    };
    loop {
        s = handler_at(s.ip)(s.ip, s.e, s.htop, p, s.fc);
        if s.ip.is_null() {
            return s.fc as usize;
        }
    }
}

#[inline(always)]
unsafe fn handler_at(ip: Ip) -> Handler {
    // The entry word of a function may be exchanged by another thread (breakpoints); a plain load of an aligned word is what the
    // processor does for a relaxed one.
    std::mem::transmute::<usize, Handler>(
        (*ip.cast::<std::sync::atomic::AtomicUsize>()).load(std::sync::atomic::Ordering::Relaxed),
    )
}

impl M {
    // ---- going on

    /// Goes on at `ip`.
    #[inline(always)]
    pub unsafe fn jump(self, ip: Ip) -> Out {
        #[cfg(not(beamr_loop))]
        return handler_at(ip)(ip, self.e, self.htop, self.p, self.fc);
        #[cfg(beamr_loop)]
        Out {
            ip,
            e: self.e,
            htop: self.htop,
            fc: self.fc,
        }
    }
    /// Goes on at any position, of this engine or of machine code.
    #[inline(always)]
    pub unsafe fn go(self, ip: Ip) -> Out {
        #[cfg(beamr_machine)]
        if ip as usize & 4 != 0 {
            return beamr_vm::machine::x86_64::enter_position(
                ip, self.e, self.htop, self.p, self.fc,
            );
        }
        self.jump(ip)
    }
    /// Returns to the position on top of the stack.
    #[inline(always)]
    pub unsafe fn ret(mut self) -> Out {
        let to = self.pop();
        self.go(to)
    }
    /// Goes on behind this instruction of `words` words.
    #[inline(always)]
    pub unsafe fn next(self, words: usize) -> Out {
        self.jump(self.ip.add(words))
    }
    /// Goes on at the label whose distance is in half-word pair `pair`.
    #[inline(always)]
    pub unsafe fn branch(self, pair: usize) -> Out {
        self.jump(self.target(pair))
    }
    /// The label whose distance in bytes is in half-word pair `pair`.
    #[inline(always)]
    pub unsafe fn target(&self, pair: usize) -> Ip {
        self.ip.byte_offset(self.int(pair) as isize)
    }
    /// The label whose address is in word `n` (calls: the address is there one cycle sooner than a distance).
    #[inline(always)]
    pub unsafe fn address(&self, n: usize) -> Ip {
        self.word(n) as usize as Ip
    }
    /// Another handler for the same instruction (a slow path).
    #[inline(always)]
    pub unsafe fn slow(self, handler: Handler) -> Out {
        handler(self.ip, self.e, self.htop, self.p, self.fc)
    }
    /// Leaves the engine. The process has been saved.
    #[inline(always)]
    pub unsafe fn stop(self, code: usize) -> Out {
        #[cfg(not(beamr_loop))]
        return code;
        #[cfg(beamr_loop)]
        Out {
            ip: std::ptr::null(),
            e: self.e,
            htop: self.htop,
            fc: code as i64,
        }
    }
    /// Goes on where a runtime helper said: at `pos` with registers reloaded, or out if it is null.
    #[inline(always)]
    pub unsafe fn resume(mut self, pos: CodePos) -> Out {
        if pos.is_null() {
            return self.stop(STOP_EXITED);
        }
        self.load();
        self.go(pos)
    }

    // ---- the process

    /// The running process.
    #[inline(always)]
    pub unsafe fn body(&self) -> *mut Body {
        (*self.p).ctx.body
    }
    /// Stores the registers where runtime helpers and natives expect them.
    #[inline(always)]
    pub unsafe fn save(&self) {
        let heap = &raw mut (*self.body()).heap;
        (*heap).top = self.htop;
        (*heap).stop = self.e;
        (*self.p).ctx.fcalls = self.fc;
    }
    /// Loads them back.
    #[inline(always)]
    pub unsafe fn load(&mut self) {
        let heap = &raw const (*self.body()).heap;
        self.htop = (*heap).top;
        self.e = (*heap).stop;
        self.fc = (*self.p).ctx.fcalls;
    }
    /// The machine of a step outside the engine: its registers were saved.
    pub unsafe fn saved(p: *mut Regs, ip: Ip) -> M {
        let mut m = M {
            ip,
            e: std::ptr::null_mut(),
            htop: std::ptr::null_mut(),
            p,
            fc: 0,
        };
        m.load();
        m
    }
    /// The registers for a runtime helper.
    #[inline(always)]
    pub unsafe fn regs<'a>(&self) -> &'a mut Regs {
        &mut *self.p
    }
    /// Bytes between heap and stack.
    #[inline(always)]
    pub unsafe fn free(&self) -> usize {
        self.e as usize - self.htop as usize
    }
    /// Pushes a return address.
    #[inline(always)]
    pub unsafe fn push(&mut self, ip: Ip) {
        self.e = self.e.sub(1);
        *self.e = ip as usize as u64;
    }
    /// Pops a return address.
    #[inline(always)]
    pub unsafe fn pop(&mut self) -> Ip {
        let ip = *self.e as usize as Ip;
        self.e = self.e.add(1);
        ip
    }
    /// Takes `words` of the ensured heap.
    #[inline(always)]
    pub unsafe fn take(&mut self, words: usize) -> *mut u64 {
        let q = self.htop;
        self.htop = q.add(words);
        q
    }
    /// Enters a function: charges a reduction, or gives up the slice with `live` arguments.
    #[inline(always)]
    pub unsafe fn enter(mut self, ip: Ip, live: usize) -> Out {
        self.fc -= 1;
        if self.fc <= 0 {
            return self.preempt(ip, live);
        }
        self.jump(ip)
    }
    /// The same where the target may be the handler of an exception.
    #[inline(always)]
    pub unsafe fn enter_any(mut self, ip: Ip, live: usize) -> Out {
        self.fc -= 1;
        if self.fc <= 0 {
            return self.preempt(ip, live);
        }
        self.go(ip)
    }
    /// Gives up the slice; the process goes on at `ip` with `live` X registers.
    #[inline(always)]
    pub unsafe fn preempt(self, ip: Ip, live: usize) -> Out {
        (*self.p).ctx.fcalls = self.fc;
        preempted(ip, self.e, self.htop, self.p, live as i64)
    }

    // ---- operands

    /// Half word `n` of the instruction (four to a word, the handler's word included).
    #[inline(always)]
    pub unsafe fn half(&self, n: usize) -> usize {
        *self.ip.cast::<u16>().add(n) as usize
    }
    /// Half-word pair `n` of the instruction (two to a word), signed.
    #[inline(always)]
    pub unsafe fn int(&self, n: usize) -> i32 {
        *self.ip.cast::<i32>().add(n)
    }
    /// Half-word pair `n`, unsigned.
    #[inline(always)]
    pub unsafe fn uint(&self, n: usize) -> usize {
        *self.ip.cast::<u32>().add(n) as usize
    }
    /// Word `n` of the instruction.
    #[inline(always)]
    pub unsafe fn word(&self, n: usize) -> u64 {
        *self.ip.add(n)
    }
    /// X register `n`.
    #[inline(always)]
    pub unsafe fn x(&self, n: usize) -> u64 {
        *self.p.cast::<u64>().add(n)
    }
    /// Sets X register `n`.
    #[inline(always)]
    pub unsafe fn set_x(&self, n: usize, v: u64) {
        *self.p.cast::<u64>().add(n) = v;
    }
    /// A float register.
    #[inline(always)]
    pub unsafe fn f(&self, n: usize) -> f64 {
        *(&raw const (*self.p).f).cast::<f64>().add(n)
    }
    /// Sets a float register.
    #[inline(always)]
    pub unsafe fn set_f(&self, n: usize, v: f64) {
        *(&raw mut (*self.p).f).cast::<f64>().add(n) = v;
    }
    /// The value of any operand.
    #[inline(always)]
    pub unsafe fn any(&self, o: usize) -> u64 {
        let base = if o & 1 == 0 {
            self.p.cast::<u64>().cast_const()
        } else {
            self.e.cast_const()
        };
        let base = if o & 2 == 0 { base } else { self.ip };
        *base.add(o >> 2)
    }
    /// The value of any operand as a word.
    #[inline(always)]
    pub unsafe fn any_word(&self, o: usize) -> Word {
        Word::from_bits(self.any(o))
    }
    /// Sets any register.
    #[inline(always)]
    pub unsafe fn set_any(&self, o: usize, v: u64) {
        let base = if o & 1 == 0 {
            self.p.cast::<u64>()
        } else {
            self.e
        };
        *base.add(o >> 2) = v;
    }
}

/// An operand kind that a handler is specialised for. An operand is a half word: index in the
/// high 14 bits, kind in the low two (0 X, 1 Y, 2 word of the instruction), whatever
/// the handler, so slow paths decode all of them alike ([`M::any`]).
pub(crate) trait Kind {
    /// Words that the operand adds to the instruction.
    const WORDS: usize;
    /// The value of the operand in half word `half`; a constant is in word `at`.
    unsafe fn get(m: &M, half: usize, at: usize) -> u64;
}

/// A kind that can be written.
pub(crate) trait Place: Kind {
    /// Sets the register in half word `half`.
    unsafe fn set(m: &M, half: usize, v: u64);
}

/// X register.
pub(crate) struct X;
/// Y register.
pub(crate) struct Y;
/// Constant in the instruction.
pub(crate) struct C;
/// X register 0, which needs no operand.
pub(crate) struct X0;

/// A number of stack slots that a handler is specialised for. Constants matter: what a return pops must not wait
/// for a load from the instruction, or each return costs the latency of two loads instead of one.
pub(crate) trait Slots {
    /// The number; a variable one is in half word `half`.
    unsafe fn get(m: &M, half: usize) -> usize;
}
/// A constant number.
pub(crate) struct Fixed<const N: usize>;
/// A number in the instruction.
pub(crate) struct Encoded;
impl<const N: usize> Slots for Fixed<N> {
    #[inline(always)]
    unsafe fn get(_: &M, _: usize) -> usize {
        N
    }
}
impl Slots for Encoded {
    #[inline(always)]
    unsafe fn get(m: &M, half: usize) -> usize {
        m.half(half)
    }
}

impl Kind for X {
    const WORDS: usize = 0;
    #[inline(always)]
    unsafe fn get(m: &M, half: usize, _: usize) -> u64 {
        *m.p.cast::<u64>().byte_add(m.half(half) * 2)
    }
}
impl Place for X {
    #[inline(always)]
    unsafe fn set(m: &M, half: usize, v: u64) {
        *m.p.cast::<u64>().byte_add(m.half(half) * 2) = v;
    }
}
impl Kind for Y {
    const WORDS: usize = 0;
    #[inline(always)]
    unsafe fn get(m: &M, half: usize, _: usize) -> u64 {
        *m.e.byte_add(m.half(half) * 2).byte_sub(2)
    }
}
impl Place for Y {
    #[inline(always)]
    unsafe fn set(m: &M, half: usize, v: u64) {
        *m.e.byte_add(m.half(half) * 2).byte_sub(2) = v;
    }
}
impl Kind for C {
    const WORDS: usize = 1;
    #[inline(always)]
    unsafe fn get(m: &M, _: usize, at: usize) -> u64 {
        *m.ip.add(at)
    }
}
impl Kind for X0 {
    const WORDS: usize = 0;
    #[inline(always)]
    unsafe fn get(m: &M, _: usize, _: usize) -> u64 {
        m.x(0)
    }
}
impl Place for X0 {
    #[inline(always)]
    unsafe fn set(m: &M, _: usize, v: u64) {
        m.set_x(0, v);
    }
}

/// Defines handlers: functions of the signature [`Handler`] over the machine `m`. Type parameters stand in
/// square brackets.
macro_rules! handlers {
    ($( $(#[$attr:meta])* fn $name:ident $([$($g:tt)*])? ($m:ident) $body:block )*) => {
        $(
            $(#[$attr])*
            #[allow(unused_mut)]
            pub(crate) unsafe extern "C-unwind" fn $name $(<$($g)*>)? (
                ip: $crate::machine::Ip,
                e: *mut u64,
                htop: *mut u64,
                p: *mut beamr_abi::Regs,
                fc: i64,
            ) -> $crate::machine::Out {
                let mut $m = $crate::machine::M { ip, e, htop, p, fc };
                $body
            }
        )*
    };
}
pub(crate) use handlers;

handlers! {
    /// Gives up the slice at `ip`; `fc` holds the number of live X registers.
    #[cold]
    #[inline(never)]
    fn preempted(m) {
        save_process(m.p, m.e, m.htop, m.ip, m.fc as usize);
        m.stop(STOP_PREEMPTED)
    }
    /// Collects before this instruction and runs it again; `fc` holds the live X registers (low 10
    /// bits) and the bytes needed above them, reductions are in the context.
    #[cold]
    #[inline(never)]
    fn collect(m) {
        let live = (m.fc & 0xFFFF) as usize;
        let bytes = (m.fc >> 16) as usize - SLACK_BYTES;
        let heap = &raw mut (*m.body()).heap;
        (*heap).top = m.htop;
        (*heap).stop = m.e;
        match beamr_vm::rt::collect(m.regs(), bytes / 8, live) {
            Ok(()) => {
                m.load();
                if *m.ip == crate::ops::trace::entry_break as Handler as usize as u64 {
                    // The call was seen already.
                    let original = beamr_vm::rt::original(m.regs(), m.ip);
                    return m.slow(std::mem::transmute::<usize, Handler>(original));
                }
                m.jump(m.ip)
            }
            Err(pos) => m.resume(pos),
        }
    }
}

impl M {
    /// Collects so that `bytes` (slack included) are free, then runs this instruction again.
    #[inline(always)]
    pub unsafe fn collect(self, bytes: usize, live: usize) -> Out {
        (*self.p).ctx.fcalls = self.fc;
        collect(
            self.ip,
            self.e,
            self.htop,
            self.p,
            ((bytes as i64) << 16) | live as i64,
        )
    }
}

/// Saves position, live X registers, heap and stack of the process.
#[inline(never)]
pub(crate) unsafe fn save_process(p: *mut Regs, e: *mut u64, htop: *mut u64, ip: Ip, live: usize) {
    let body = (*p).ctx.body;
    (*body).heap.top = htop;
    (*body).heap.stop = e;
    (*body).ip = ip;
    let x = std::slice::from_raw_parts(p.cast::<Word>(), live);
    (*body).args.save(x);
}
