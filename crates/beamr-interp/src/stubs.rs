//! Code that exists once per OS process: stubs of natives, fixed positions.
//!
//! A stub is a tail call of its native, so what it returns to is on the stack. Stubs are
//! constants derived from static rows: the table only remembers which were made.

use std::collections::HashMap;
use std::sync::{OnceLock, RwLock};

use beamr_abi::NativeEntry;
use beamr_vm::engine::{CodePos, Emitted, Fixed};
use beamr_vm::rt::{is_dirty, polls};

use crate::machine::Handler;
use crate::ops::calls::{self, Only};
use crate::ops::{natives, trace};

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
    static WORDS: OnceLock<[u64; 3]> = OnceLock::new();
    let words = WORDS.get_or_init(|| {
        [
            calls::apply_list as Handler as usize as u64,
            calls::normal_exit as Handler as usize as u64,
            trace::trace_return as Handler as usize as u64,
        ]
    });
    match which {
        Fixed::Apply => &raw const words[0],
        Fixed::NormalExit => &raw const words[1],
        Fixed::TraceReturn => &raw const words[2],
    }
}

/// A detour, for the life of the OS process.
pub(crate) fn detour(export: beamr_term::ExportId, arity: u32) -> CodePos {
    let word = u64::from(export) | u64::from(arity) << 32;
    let words: &'static [u64; 2] =
        Box::leak(Box::new([trace::detour as Handler as usize as u64, word]));
    words.as_ptr()
}

/// The handler of an instruction that calls a native, `kind` as in [`crate::emit::Emitter::native_call`].
fn native_handler(native: &'static NativeEntry, kind: u32, rerouted: bool) -> Handler {
    use crate::machine::Encoded;
    use crate::ops::calls::{Body, Last, Leave};
    fn of<L: Leave>(native: &'static NativeEntry, rerouted: bool) -> Handler {
        if rerouted {
            trace::native_rerouted::<L>
        } else if is_dirty(native) {
            natives::call_dirty::<L>
        } else if native.host {
            natives::call_host::<L>
        } else if polls(native) {
            natives::call_native_polled::<L>
        } else {
            natives::call_native::<L>
        }
    }
    match kind {
        0 => of::<Body>(native, rerouted),
        1 => of::<Last<Encoded>>(native, rerouted),
        _ => of::<Only>(native, rerouted),
    }
}

/// Reroutes the calls of a native in code, or takes that back.
pub(crate) fn reroute(code: &Emitted, native: &'static NativeEntry, on: bool) {
    for call in &code.native_calls {
        let at = code.start + (call >> 2) as usize * 8;
        // SAFETY: the emitter noted this instruction; its first words are a handler, numbers, and the native's address. The handler
        // word is exchanged for one of the same shape, as entry words are.
        unsafe {
            let words = at as *const u64;
            if *words.add(2) as usize != std::ptr::from_ref(native) as usize {
                continue;
            }
            let handler = &*words.cast::<std::sync::atomic::AtomicUsize>();
            let to = native_handler(native, call & 3, on);
            handler.store(to as usize, std::sync::atomic::Ordering::Release);
        }
    }
}
