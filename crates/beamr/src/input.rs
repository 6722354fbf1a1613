//! Who reads standard input for the I/O process: a thread that sends what it reads as `{file, user, Bytes}` (empty at the end).
//! Without the feature `threads` its twin `inline_input` takes its place.

use std::sync::{Arc, Weak};

use beamr_term::Word;
use beamr_vm::door::Door;
use beamr_vm::vm::Vm;

use crate::io_server::input_message;

/// What became of the wish for input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// Everything will come.
    All,
    /// One piece comes; ask again. What only the twin says.
    #[allow(dead_code)]
    Once,
    /// Nothing will come.
    Nothing,
}

/// Reads for the process `to`.
pub(crate) fn read(vm: &Weak<Vm>, door: &Arc<dyn Door>, to: Word) -> Reading {
    let (vm, door) = (vm.clone(), door.clone());
    let spawned = std::thread::Builder::new()
        .name("beamr-stdin".into())
        .spawn(move || {
            let mut buffer = vec![0u8; 64 * 1024];
            loop {
                let n = door.read(&mut buffer).unwrap_or(0);
                let Some(vm) = vm.upgrade() else { return };
                if !vm.send(to, input_message(&buffer[..n])) || n == 0 {
                    return;
                }
            }
        });
    match spawned {
        Ok(_) => Reading::All,
        Err(_) => Reading::Nothing,
    }
}
