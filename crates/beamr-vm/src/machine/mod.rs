//! Where machine code and the interpreter meet: the registers of machine code and the code that changes between the
//! two worlds. Only for processors that have it ([`x86_64`]); elsewhere there is nothing here but [`is_stub`].
//!
//! The rules of frames and positions are in [`crate::engine`]; this module is their assembly half. It emits no code: engines do.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub mod x86_64;

/// Whether a word of a stack is the position of a stub between engines: it belongs to no function, and a
/// walk over frames passes it over.
#[inline]
pub fn is_stub(position: usize) -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    return position == x86_64::return_stub();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        let _ = position;
        false
    }
}
