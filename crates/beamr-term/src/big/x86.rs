//! The linear kernels by groups of four limbs in x86-64 instructions, for what the compiler
//! does not make of portable code: carry chains that stay in the flags over a whole loop, and
//! two of them at once (`adcx`, `adox`).
//!
//! Each function takes raw pointers to `4 * groups` limbs (`groups` above zero) that it may read
//! and write as its name says; `out` may be the same as an operand but must not overlap it
//! otherwise. The callers in [`kernel`](super::kernel) pass slices of that length. The
//! multiplications need BMI2 and ADX, which [`has_adx`] asks.
//!
//! `lea` and `dec` in the loops leave the carry flag alone; `dec` of a positive count clears the
//! overflow flag.

use std::arch::asm;

/// Whether the processor has the instructions of the multiplications.
#[inline(always)]
pub fn has_adx() -> bool {
    std::arch::is_x86_feature_detected!("adx") && std::arch::is_x86_feature_detected!("bmi2")
}

/// `out = a + b`; returns the carry.
///
/// # Safety
/// See the module.
#[inline(always)]
pub unsafe fn add(out: *mut u64, a: *const u64, b: *const u64, groups: usize) -> bool {
    let carry: u8;
    asm!(
        "clc",
        "2:",
        "mov {x}, [{a}]",
        "mov {y}, [{a} + 8]",
        "adc {x}, [{b}]",
        "adc {y}, [{b} + 8]",
        "mov [{o}], {x}",
        "mov [{o} + 8], {y}",
        "mov {x}, [{a} + 16]",
        "mov {y}, [{a} + 24]",
        "adc {x}, [{b} + 16]",
        "adc {y}, [{b} + 24]",
        "mov [{o} + 16], {x}",
        "mov [{o} + 24], {y}",
        "lea {a}, [{a} + 32]",
        "lea {b}, [{b} + 32]",
        "lea {o}, [{o} + 32]",
        "dec {n}",
        "jnz 2b",
        "setc {c}",
        a = inout(reg) a => _,
        b = inout(reg) b => _,
        o = inout(reg) out => _,
        n = inout(reg) groups => _,
        x = out(reg) _,
        y = out(reg) _,
        c = lateout(reg_byte) carry,
        options(nostack)
    );
    carry != 0
}

/// `out = a - b`; returns the borrow.
///
/// # Safety
/// See the module.
#[inline(always)]
pub unsafe fn sub(out: *mut u64, a: *const u64, b: *const u64, groups: usize) -> bool {
    let borrow: u8;
    asm!(
        "clc",
        "2:",
        "mov {x}, [{a}]",
        "mov {y}, [{a} + 8]",
        "sbb {x}, [{b}]",
        "sbb {y}, [{b} + 8]",
        "mov [{o}], {x}",
        "mov [{o} + 8], {y}",
        "mov {x}, [{a} + 16]",
        "mov {y}, [{a} + 24]",
        "sbb {x}, [{b} + 16]",
        "sbb {y}, [{b} + 24]",
        "mov [{o} + 16], {x}",
        "mov [{o} + 24], {y}",
        "lea {a}, [{a} + 32]",
        "lea {b}, [{b} + 32]",
        "lea {o}, [{o} + 32]",
        "dec {n}",
        "jnz 2b",
        "setc {c}",
        a = inout(reg) a => _,
        b = inout(reg) b => _,
        o = inout(reg) out => _,
        n = inout(reg) groups => _,
        x = out(reg) _,
        y = out(reg) _,
        c = lateout(reg_byte) borrow,
        options(nostack)
    );
    borrow != 0
}

/// `out = a * b + carry`; returns the high limb.
///
/// # Safety
/// See the module; the processor has BMI2.
#[inline(always)]
pub unsafe fn mul(out: *mut u64, a: *const u64, b: u64, mut carry: u64, groups: usize) -> u64 {
    asm!(
        "clc",
        "2:",
        "mulx {h0}, {l0}, [{a}]",
        "mulx {h1}, {l1}, [{a} + 8]",
        "adc {l0}, {c}",
        "mulx {h2}, {l2}, [{a} + 16]",
        "adc {l1}, {h0}",
        "mov [{o}], {l0}",
        "mulx {c}, {l0}, [{a} + 24]",
        "adc {l2}, {h1}",
        "mov [{o} + 8], {l1}",
        "adc {l0}, {h2}",
        "mov [{o} + 16], {l2}",
        "mov [{o} + 24], {l0}",
        "lea {a}, [{a} + 32]",
        "lea {o}, [{o} + 32]",
        "dec {n}",
        "jnz 2b",
        "adc {c}, 0",
        a = inout(reg) a => _,
        o = inout(reg) out => _,
        c = inout(reg) carry,
        n = inout(reg) groups => _,
        in("rdx") b,
        h0 = out(reg) _,
        h1 = out(reg) _,
        h2 = out(reg) _,
        l0 = out(reg) _,
        l1 = out(reg) _,
        l2 = out(reg) _,
        options(nostack)
    );
    carry
}

/// `out += a * b + carry`; returns the high limb.
///
/// # Safety
/// See the module; the processor has BMI2 and ADX.
#[inline(always)]
pub unsafe fn add_mul(out: *mut u64, a: *const u64, b: u64, mut carry: u64, groups: usize) -> u64 {
    asm!(
        "xor {z:e}, {z:e}",
        "2:",
        "mulx {h0}, {l0}, [{a}]",
        "mulx {h1}, {l1}, [{a} + 8]",
        "adcx {l0}, {c}",
        "adox {l0}, [{o}]",
        "mulx {c}, {l2}, [{a} + 16]",
        "adcx {l1}, {h0}",
        "mov [{o}], {l0}",
        "adox {l1}, [{o} + 8]",
        "mulx {h0}, {l0}, [{a} + 24]",
        "adcx {l2}, {h1}",
        "mov [{o} + 8], {l1}",
        "adox {l2}, [{o} + 16]",
        "adcx {l0}, {c}",
        "mov [{o} + 16], {l2}",
        "adox {l0}, [{o} + 24]",
        "mov {c}, {h0}",
        "adcx {c}, {z}",
        "mov [{o} + 24], {l0}",
        "adox {c}, {z}",
        "lea {a}, [{a} + 32]",
        "lea {o}, [{o} + 32]",
        "dec {n}",
        "jnz 2b",
        a = inout(reg) a => _,
        o = inout(reg) out => _,
        c = inout(reg) carry,
        n = inout(reg) groups => _,
        in("rdx") b,
        h0 = out(reg) _,
        h1 = out(reg) _,
        l0 = out(reg) _,
        l1 = out(reg) _,
        l2 = out(reg) _,
        z = out(reg) _,
        options(nostack)
    );
    carry
}

/// `out = u - a * b - carry`; returns what is still to be subtracted above. (A difference is the
/// complement of the sum of the complement, so both chains add.)
///
/// # Safety
/// See the module; the processor has BMI2 and ADX.
#[inline(always)]
pub unsafe fn sub_mul(
    out: *mut u64,
    u: *const u64,
    a: *const u64,
    b: u64,
    mut carry: u64,
    groups: usize,
) -> u64 {
    asm!(
        "xor {l1:e}, {l1:e}",
        "2:",
        "mulx {h0}, {l0}, [{a}]",
        "mov {l1}, [{u}]",
        "not {l1}",
        "adcx {l0}, {c}",
        "adox {l0}, {l1}",
        "not {l0}",
        "mov [{o}], {l0}",
        "mulx {h1}, {l0}, [{a} + 8]",
        "mov {l1}, [{u} + 8]",
        "not {l1}",
        "adcx {l0}, {h0}",
        "adox {l0}, {l1}",
        "not {l0}",
        "mov [{o} + 8], {l0}",
        "mulx {h0}, {l0}, [{a} + 16]",
        "mov {l1}, [{u} + 16]",
        "not {l1}",
        "adcx {l0}, {h1}",
        "adox {l0}, {l1}",
        "not {l0}",
        "mov [{o} + 16], {l0}",
        "mulx {c}, {l0}, [{a} + 24]",
        "mov {l1}, [{u} + 24]",
        "not {l1}",
        "adcx {l0}, {h0}",
        "adox {l0}, {l1}",
        "not {l0}",
        "mov [{o} + 24], {l0}",
        "mov {l1:e}, 0",
        "adcx {c}, {l1}",
        "adox {c}, {l1}",
        "lea {a}, [{a} + 32]",
        "lea {u}, [{u} + 32]",
        "lea {o}, [{o} + 32]",
        "dec {n}",
        "jnz 2b",
        a = inout(reg) a => _,
        u = inout(reg) u => _,
        o = inout(reg) out => _,
        c = inout(reg) carry,
        n = inout(reg) groups => _,
        in("rdx") b,
        h0 = out(reg) _,
        h1 = out(reg) _,
        l0 = out(reg) _,
        l1 = out(reg) _,
        options(nostack)
    );
    carry
}
