//! `math`: floating point functions.
//!
//! Domain errors (a result that is not finite from finite arguments) are `badarith`, as in OTP; an
//! argument that is not a number is `badarg`.

use beamr_abi::{Ctx, Escape, NativeEntry, NativeFn};
use beamr_term::{Build, Word, arith};

fn number(ctx: &mut Ctx, w: Word) -> Result<f64, Escape> {
    let number = arith::to_float(ctx.tables().release, w);
    number.ok_or_else(|| {
        if w.is_integer() {
            ctx.badarith()
        } else {
            ctx.badarg()
        }
    })
}

fn result(ctx: &mut Ctx, v: f64) -> Result<Word, Escape> {
    if v.is_finite() {
        Ok(ctx.float(v))
    } else {
        Err(ctx.badarith())
    }
}

macro_rules! unary {
    ($($name:ident = $f:expr;)*) => {
        $(fn $name(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
            let x = number(ctx, args[0])?;
            let f: fn(f64) -> f64 = $f;
            result(ctx, f(x))
        })*
    };
}

macro_rules! binary {
    ($($name:ident = $f:expr;)*) => {
        $(fn $name(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
            let x = number(ctx, args[0])?;
            let y = number(ctx, args[1])?;
            let f: fn(f64, f64) -> f64 = $f;
            result(ctx, f(x, y))
        })*
    };
}

// The C library's functions, as OTP calls them: last bits of results are visible to programs.
#[cfg(unix)]
mod c {
    macro_rules! c_functions {
        ($($name:ident($($a:ident),*);)*) => {
            unsafe extern "C" { $(fn $name($($a: f64),*) -> f64;)* }
            pub mod safe {
                $(pub fn $name($($a: f64),*) -> f64 {
                    // SAFETY: a pure function of libm.
                    unsafe { super::$name($($a),*) }
                })*
            }
        };
    }
    c_functions! {
        acos(x); acosh(x); asin(x); asinh(x); atan(x); atan2(y, x); atanh(x); cos(x); cosh(x); exp(x);
        erf(x); erfc(x); fmod(x, y); log(x); log10(x); log2(x); pow(x, y); sin(x); sinh(x); tan(x); tanh(x);
    }
}
#[cfg(not(unix))]
mod c {
    /// The standard library's functions where there is no libm to call.
    pub mod safe {
        macro_rules! std_functions {
            ($($name:ident = $method:ident;)*) => { $(pub fn $name(x: f64) -> f64 { x.$method() })* };
        }
        std_functions! {
            acos = acos; acosh = acosh; asin = asin; asinh = asinh; atan = atan; atanh = atanh; cos = cos; cosh = cosh;
            exp = exp; log = ln; log10 = log10; log2 = log2; sin = sin; sinh = sinh; tan = tan; tanh = tanh;
        }
        pub fn atan2(y: f64, x: f64) -> f64 {
            y.atan2(x)
        }
        pub fn fmod(x: f64, y: f64) -> f64 {
            x % y
        }
        pub fn pow(x: f64, y: f64) -> f64 {
            x.powf(y)
        }
        pub fn erf(_: f64) -> f64 {
            f64::NAN
        }
        pub fn erfc(_: f64) -> f64 {
            f64::NAN
        }
    }
}
use c::safe as m;

unary! {
    acos_1 = m::acos;
    acosh_1 = m::acosh;
    asin_1 = m::asin;
    asinh_1 = m::asinh;
    atan_1 = m::atan;
    atanh_1 = m::atanh;
    ceil_1 = f64::ceil;
    cos_1 = m::cos;
    cosh_1 = m::cosh;
    erf_1 = m::erf;
    erfc_1 = m::erfc;
    exp_1 = m::exp;
    floor_1 = f64::floor;
    log_1 = m::log;
    log10_1 = m::log10;
    log2_1 = m::log2;
    sin_1 = m::sin;
    sinh_1 = m::sinh;
    sqrt_1 = f64::sqrt;
    tan_1 = m::tan;
    tanh_1 = m::tanh;
}

binary! {
    atan2_2 = m::atan2;
    fmod_2 = m::fmod;
    pow_2 = m::pow;
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("math", function, arity, func)
}

/// The natives of `math`.
pub const TABLE: &[NativeEntry] = &[
    row("acos", 1, acos_1),
    row("acosh", 1, acosh_1),
    row("asin", 1, asin_1),
    row("asinh", 1, asinh_1),
    row("atan", 1, atan_1),
    row("atan2", 2, atan2_2),
    row("atanh", 1, atanh_1),
    row("ceil", 1, ceil_1),
    row("cos", 1, cos_1),
    row("cosh", 1, cosh_1),
    row("erf", 1, erf_1),
    row("erfc", 1, erfc_1),
    row("exp", 1, exp_1),
    row("floor", 1, floor_1),
    row("fmod", 2, fmod_2),
    row("log", 1, log_1),
    row("log10", 1, log10_1),
    row("log2", 1, log2_1),
    row("pow", 2, pow_2),
    row("sin", 1, sin_1),
    row("sinh", 1, sinh_1),
    row("sqrt", 1, sqrt_1),
    row("tan", 1, tan_1),
    row("tanh", 1, tanh_1),
];
