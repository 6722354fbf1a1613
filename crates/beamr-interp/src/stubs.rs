//! Code that exists once per OS process: stubs of natives, fixed positions.
//!
//! A stub is a tail call of its native, so what it returns to is on the stack. Stubs are
//! constants derived from static rows: the table only remembers which were made.

use std::collections::HashMap;
use std::sync::{OnceLock, RwLock};

use beamr_abi::NativeEntry;
use beamr_vm::engine::{CodePos, Fixed};
use beamr_vm::rt::{is_dirty, polls};

use crate::machine::Handler;
use crate::ops::calls::{self, Only};
use crate::ops::natives;

type Stub = [u64; 4];

/// The words of a call of a native behind the handler.
pub(crate) fn native_words(entry: &'static NativeEntry, slots: u16) -> [u64; 3] {
    let flags = if polls(entry) { natives::POLL } else { 0 };
    [
        u64::from(entry.arity) | u64::from(slots) << 16 | u64::from(flags) << 32,
        std::ptr::from_ref(entry) as usize as u64,
        entry.func as usize as u64,
    ]
}

/// The position of a native's stub.
pub(crate) fn position(entry: &'static NativeEntry) -> CodePos {
    static STUBS: OnceLock<RwLock<HashMap<usize, &'static Stub>>> = OnceLock::new();
    let stubs = STUBS.get_or_init(RwLock::default);
    let key = std::ptr::from_ref(entry) as usize;
    if let Some(s) = stubs.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
        return s.as_ptr();
    }
    let mut stubs = stubs.write().unwrap_or_else(|e| e.into_inner());
    stubs
        .entry(key)
        .or_insert_with(|| {
            let h: Handler = if is_dirty(entry) {
                natives::call_dirty::<Only>
            } else if entry.host {
                natives::call_host::<Only>
            } else if polls(entry) {
                natives::call_native_polled::<Only>
            } else {
                natives::call_native::<Only>
            };
            let [a, b, c] = native_words(entry, 0);
            // One per static row, for the life of the OS process.
            Box::leak(Box::new([h as usize as u64, a, b, c]))
        })
        .as_ptr()
}

/// A fixed position.
pub(crate) fn fixed(which: Fixed) -> CodePos {
    static WORDS: OnceLock<[u64; 2]> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        [
            calls::apply_list as Handler as usize as u64,
            calls::normal_exit as Handler as usize as u64,
        ]
    });
    match which {
        Fixed::Apply => &raw const words[0],
        Fixed::NormalExit => &raw const words[1],
    }
}
