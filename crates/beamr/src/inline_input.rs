//! The twin of `input` in a cooperative build: reads a piece at a time on the thread that runs the VM, which waits meanwhile.

use std::sync::{Arc, Weak};

use beamr_term::Word;
use beamr_vm::door::Door;
use beamr_vm::vm::Vm;

use crate::io_server::input_message;

/// What became of the wish for input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// Everything will come. What only the twin says.
    #[allow(dead_code)]
    All,
    /// One piece comes; ask again.
    Once,
    /// Nothing will come.
    Nothing,
}

/// Reads for the process `to`.
pub(crate) fn read(vm: &Weak<Vm>, door: &Arc<dyn Door>, to: Word) -> Reading {
    let mut buffer = vec![0u8; 64 * 1024];
    let n = door.read(&mut buffer).unwrap_or(0);
    match vm.upgrade() {
        Some(vm) if vm.send(to, input_message(&buffer[..n])) => Reading::Once,
        _ => Reading::Nothing,
    }
}
