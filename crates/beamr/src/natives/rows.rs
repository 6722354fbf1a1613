//! Rows of native tables for functions whose names are known at run time.
//!
//! Engines want static rows. They are constants that follow from a name and how the function runs, so one is made per such name for the life of the OS
//! process and found again by every VM that registers it; the functions themselves belong to the VMs.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use beamr_abi::{Capability, NativeClass, NativeEntry};
use beamr_vm::host::host_native;

type Key = (String, String, u8, u8, Capability);

/// The row of this name.
pub(super) fn row(
    module: &str,
    function: &str,
    arity: u8,
    class: NativeClass,
    capability: Capability,
) -> &'static NativeEntry {
    static ROWS: OnceLock<Mutex<HashMap<Key, &'static NativeEntry>>> = OnceLock::new();
    let mut rows = ROWS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(|e| e.into_inner());
    let key = (
        module.to_owned(),
        function.to_owned(),
        arity,
        class as u8,
        capability,
    );
    rows.entry(key).or_insert_with(|| {
        let text = |t: &str| -> &'static str { Box::leak(t.to_owned().into_boxed_str()) };
        let entry = NativeEntry::new(text(module), text(function), arity, host_native)
            .class(class)
            .needs(capability)
            .host();
        Box::leak(Box::new(entry))
    })
}
