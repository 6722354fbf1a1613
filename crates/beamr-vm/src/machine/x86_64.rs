//! Machine code of x86-64: its registers, and the ways in and out.
//!
//! # Registers of machine code
//!
//! | register | holds |
//! |---|---|
//! | rsp | BEAM stack pointer: y0, or the return address at a function's entry |
//! | rbx | [`Regs`] (X registers are at its start) |
//! | r12 | heap top |
//! | r13 | reductions left |
//! | r14 | the thread's own stack pointer, aligned for calls |
//! | r15 | scratch of the stubs here |
//!
//! All others are free between instructions. Rust runs on the thread's own stack only ([`call`]), so that a frame of Rust never
//! lies on a BEAM stack; what Rust calls from here must not unwind.
//!
//! # Functions
//!
//! A function's position is 0 modulo 8. There stands the address of [`enter_function`] (which is what the interpreter
//! jumps to), and behind it the machine code: [`ENTRY`] bytes on the entry for machine code that has not yet counted the call
//! (`dec r13; jle preempt`, with a 32-bit distance), [`BODY`] bytes on what comes after the count.
//!
//! # Safety
//!
//! Nothing here is called from Rust: only machine code and the interpreter's hand-over jump to it, in the state that each
//! item names.

use std::arch::naked_asm;
use std::mem::offset_of;

use beamr_abi::{Body, Ctx, Heap, Regs};

/// Where the entry of a function is, from its position: counts a reduction.
pub const ENTRY: usize = 8;
/// Where the code behind the count is.
pub const BODY: usize = 17;

/// Offset of the process body's pointer in [`Regs`].
pub const BODY_POINTER: usize = offset_of!(Regs, ctx) + offset_of!(Ctx, body);
/// Offset of the reductions.
pub const FCALLS: usize = offset_of!(Regs, ctx) + offset_of!(Ctx, fcalls);
/// Offset of the pointer to the export array.
pub const EXPORTS: usize = offset_of!(Regs, ctx) + offset_of!(Ctx, exports);
/// Offset of the heap top in a body.
pub const TOP: usize = offset_of!(Body, heap) + offset_of!(Heap, top);
/// Offset of the stack pointer in a body.
pub const STOP: usize = offset_of!(Body, heap) + offset_of!(Heap, stop);
/// Offset of the number of catches in a body.
pub const CATCHES: usize = offset_of!(Body, catches);

/// The signature of the interpreter's handlers, whose registers these are at a change of worlds: position, stack,
/// heap top, registers, reductions.
pub type Enter =
    unsafe extern "C-unwind" fn(*const u64, *mut u64, *mut u64, *mut Regs, i64) -> usize;

/// From the interpreter to the function at this position, whose call is counted. What the interpreter will return to gets a
/// stub above it, unless machine code is below anyway: so tail calls to and fro do not grow the stack.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn enter_function(
    _: *const u64,
    _: *mut u64,
    _: *mut u64,
    _: *mut Regs,
    _: i64,
) -> usize {
    naked_asm!(
        "add rdi, {body}",
        "test byte ptr [rsi], 4",
        "jnz {enter}",
        "lea rax, [rip + {stub}]",
        "add rax, 7",
        "and rax, -8",
        "add rax, 4",
        "sub rsi, 8",
        "mov [rsi], rax",
        "jmp {enter}",
        body = const BODY,
        stub = sym return_stub_code,
        enter = sym enter_position,
    )
}

/// From the interpreter to a position inside a function: a return address, a handler, a receive loop.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn enter_position(
    _: *const u64,
    _: *mut u64,
    _: *mut u64,
    _: *mut Regs,
    _: i64,
) -> usize {
    naked_asm!(
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rbx, rcx",
        "mov r12, rdx",
        "mov r13, r8",
        "mov r14, rsp",
        "mov rsp, rsi",
        "jmp rdi",
    )
}

/// From machine code to any position in rax.
#[unsafe(naked)]
pub unsafe extern "C" fn go() {
    naked_asm!(
        "test al, 4",
        "jz 2f",
        "jmp rax",
        "2:",
        "mov rdi, rax",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// From machine code to the interpreter's position in rdi.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!(
        "mov rsi, rsp",
        "mov rdx, r12",
        "mov rcx, rbx",
        "mov r8, r13",
        "mov rsp, r14",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "jmp [rdi]",
    )
}

/// Leaves the engine with the stop code in rax. The process has been saved.
#[unsafe(naked)]
pub unsafe extern "C" fn stop() {
    naked_asm!(
        "mov rsp, r14",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "ret",
    )
}

/// A call of the Rust function in rax (`extern "C"`; rdi becomes the registers, the caller sets rsi, rdx, rcx, r8) with the
/// process saved; afterwards it is loaded again, and the result is in rax and rdx.
#[unsafe(naked)]
pub unsafe extern "C" fn call() {
    naked_asm!(
        "pop r15",
        "mov rdi, [rbx + {body}]",
        "mov [rdi + {top}], r12",
        "mov [rdi + {stop}], rsp",
        "mov [rbx + {fcalls}], r13",
        "mov rdi, rbx",
        "mov rsp, r14",
        "call rax",
        "mov rdi, [rbx + {body}]",
        "mov r12, [rdi + {top}]",
        "mov rsp, [rdi + {stop}]",
        "mov r13, [rbx + {fcalls}]",
        "jmp r15",
        body = const BODY_POINTER,
        top = const TOP,
        stop = const STOP,
        fcalls = const FCALLS,
    )
}

/// Padding, then the stub at 4 modulo 8: machine code returns to it; the interpreter's position is below.
#[unsafe(naked)]
unsafe extern "C" fn return_stub_code() {
    naked_asm!(
        ".p2align 3",
        "nop",
        "nop",
        "nop",
        "nop",
        "pop rdi",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// The position of the stub that machine code returns to when the interpreter called it.
#[inline]
pub fn return_stub() -> usize {
    (return_stub_code as *const () as usize).next_multiple_of(8) + 4
}
