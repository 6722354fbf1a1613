//! Closures with typed arguments as native functions.

use super::{Completion, NativeCall, NativeError};
use crate::term::{FromTerm, IntoTerm, Term};

/// What a native function returns: any value that stands for a term, or a `Result` with [`NativeError`], whose error is raised.
///
/// The parameter tells the two apart and is always inferred. A `Result` with another error is the value `{ok, _}` or `{error, _}`.
pub trait NativeReturn<Kind> {
    #[doc(hidden)]
    fn give<'h>(self, call: &NativeCall<'h>) -> Result<Term<'h>, NativeError>;
}

/// A value, see [`NativeReturn`].
#[derive(Debug)]
pub struct Value;
/// A result, see [`NativeReturn`].
#[derive(Debug)]
pub struct Fallible;

impl<T: IntoTerm> NativeReturn<Value> for T {
    fn give<'h>(self, call: &NativeCall<'h>) -> Result<Term<'h>, NativeError> {
        Ok(self.into_term(call)?)
    }
}

impl<T: IntoTerm> NativeReturn<Fallible> for Result<T, NativeError> {
    fn give<'h>(self, call: &NativeCall<'h>) -> Result<Term<'h>, NativeError> {
        Ok(self?.into_term(call)?)
    }
}

/// A closure `Fn(A, B, ...) -> R` or `Fn(&mut NativeCall, A, B, ...) -> R` of up to eight arguments that implement [`FromTerm`], whose result
/// implements [`NativeReturn`]. The parameter is always inferred.
pub trait NativeFunction<Kind>: Send + Sync + 'static {
    #[doc(hidden)]
    const ARITY: u8;
    #[doc(hidden)]
    fn run<'h>(&self, call: &mut NativeCall<'h>) -> Result<Term<'h>, NativeError>;
}

/// A closure `Fn(Completion, A, B, ...)` of up to eight arguments that implement [`FromTerm`]. The parameter is always inferred.
pub trait AwaitingFunction<Kind>: Send + Sync + 'static {
    #[doc(hidden)]
    const ARITY: u8;
    /// Reads the arguments, so that a bad one is known before anything begins.
    #[doc(hidden)]
    fn check(&self, call: &NativeCall<'_>) -> Result<(), NativeError>;
    #[doc(hidden)]
    fn begin(&self, done: Completion, call: &NativeCall<'_>) -> Result<(), NativeError>;
}

/// Of a closure without a call.
#[derive(Debug)]
pub struct Plain;
/// Of a closure with a call.
#[derive(Debug)]
pub struct WithCall;

macro_rules! functions {
    ($(($arity:literal $($t:ident $n:literal),*))*) => {$(
        impl<Func, R, K, $($t),*> NativeFunction<(Plain, K, fn($($t),*) -> R)> for Func
        where
            Func: Fn($($t),*) -> R + Send + Sync + 'static,
            R: NativeReturn<K>,
            $($t: FromTerm,)*
        {
            const ARITY: u8 = $arity;
            fn run<'h>(&self, call: &mut NativeCall<'h>) -> Result<Term<'h>, NativeError> {
                let value = self($(call.arg_as::<$t>($n)?),*);
                value.give(call)
            }
        }
        impl<Func, R, K, $($t),*> NativeFunction<(WithCall, K, fn($($t),*) -> R)> for Func
        where
            Func: Fn(&mut NativeCall<'_>, $($t),*) -> R + Send + Sync + 'static,
            R: NativeReturn<K>,
            $($t: FromTerm,)*
        {
            const ARITY: u8 = $arity;
            #[allow(non_snake_case)]
            fn run<'h>(&self, call: &mut NativeCall<'h>) -> Result<Term<'h>, NativeError> {
                $(let $t = call.arg_as::<$t>($n)?;)*
                let value = self(call, $($t),*);
                value.give(call)
            }
        }
        impl<Func, $($t),*> AwaitingFunction<fn($($t),*)> for Func
        where
            Func: Fn(Completion, $($t),*) + Send + Sync + 'static,
            $($t: FromTerm,)*
        {
            const ARITY: u8 = $arity;
            fn check(&self, _call: &NativeCall<'_>) -> Result<(), NativeError> {
                $(_call.arg_as::<$t>($n)?;)*
                Ok(())
            }
            fn begin(&self, done: Completion, _call: &NativeCall<'_>) -> Result<(), NativeError> {
                self(done, $(_call.arg_as::<$t>($n)?),*);
                Ok(())
            }
        }
    )*};
}
functions! {
    (0)
    (1 A 0)
    (2 A 0, B 1)
    (3 A 0, B 1, C 2)
    (4 A 0, B 1, C 2, D 3)
    (5 A 0, B 1, C 2, D 3, E 4)
    (6 A 0, B 1, C 2, D 3, E 4, F 5)
    (7 A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (8 A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
