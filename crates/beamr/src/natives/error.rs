//! What a native function raises.

use beamr_abi::ExceptionClass;

use crate::term::{IntoTerm, Term, TermBuilder, TermError, atom};

/// A value that is made into a term when there is a place for it.
pub(crate) trait LaterTerm: Send {
    fn make<'h>(self: Box<Self>, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError>;
}

impl<T: IntoTerm + Send> LaterTerm for T {
    fn make<'h>(self: Box<Self>, to: &TermBuilder<'h>) -> Result<Term<'h>, TermError> {
        (*self).into_term(to)
    }
}

pub(crate) enum ErrorKind {
    Raise(ExceptionClass, Box<dyn LaterTerm>),
    /// Not an error: the process sleeps until a host call is completed.
    Suspend,
}

/// What a native function raises in the process that called it.
///
/// Every Rust error becomes one by `?`: a [`TermError`] as `badarg`, any other as `{native_error, Text}`. (It is no
/// [`std::error::Error`] itself, for that very reason.)
pub struct NativeError(pub(crate) ErrorKind);

impl NativeError {
    /// `badarg`.
    pub fn badarg() -> NativeError {
        NativeError::error(atom("badarg"))
    }
    /// An exception of class `error` with this reason.
    pub fn error(reason: impl IntoTerm + Send + 'static) -> NativeError {
        NativeError(ErrorKind::Raise(ExceptionClass::Error, Box::new(reason)))
    }
    /// An exception of class `exit` with this reason.
    pub fn exit(reason: impl IntoTerm + Send + 'static) -> NativeError {
        NativeError(ErrorKind::Raise(ExceptionClass::Exit, Box::new(reason)))
    }
    /// An exception of class `throw` with this value.
    pub fn throw(value: impl IntoTerm + Send + 'static) -> NativeError {
        NativeError(ErrorKind::Raise(ExceptionClass::Throw, Box::new(value)))
    }
    /// What a [raw](super::NativeRegistry::raw) function returns after [`NativeCall::request_await_suspend`](super::NativeCall::request_await_suspend).
    pub fn suspend() -> NativeError {
        NativeError(ErrorKind::Suspend)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for NativeError {
    fn from(e: E) -> NativeError {
        if (&e as &dyn std::any::Any).is::<TermError>() {
            return NativeError::badarg();
        }
        NativeError::error((atom("native_error"), e.to_string()))
    }
}

impl std::fmt::Debug for NativeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            ErrorKind::Raise(ExceptionClass::Error, _) => "NativeError(error)",
            ErrorKind::Raise(ExceptionClass::Exit, _) => "NativeError(exit)",
            ErrorKind::Raise(ExceptionClass::Throw, _) => "NativeError(throw)",
            ErrorKind::Suspend => "NativeError(suspend)",
        })
    }
}
