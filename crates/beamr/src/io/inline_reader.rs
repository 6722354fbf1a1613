//! The twin of `reader` in a build without threads: reads a chunk when it is asked for, on the thread that runs the VM, which waits
//! meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use beamr_term::{Word, atoms};
use beamr_vm::door::Door;
use beamr_vm::process::Carried;
use beamr_vm::vm::Vm;

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// The message to the server.
pub const ARRIVED: Word = atoms::FILE.word();

/// See the module.
pub struct Reader {
    vm: Weak<Vm>,
    door: Arc<dyn Door>,
    server: Word,
    chunks: Mutex<VecDeque<Vec<u8>>>,
}

impl Reader {
    /// For the server `me`.
    pub fn new(vm: &Weak<Vm>, door: &Arc<dyn Door>, me: Word) -> Option<Reader> {
        Some(Reader {
            vm: vm.clone(),
            door: door.clone(),
            server: me,
            chunks: Mutex::default(),
        })
    }
    /// Reads a chunk; false when none will come.
    pub fn ask(&self) -> bool {
        let mut chunk = vec![0; CHUNK];
        let n = self.door.read(&mut chunk).unwrap_or(0);
        chunk.truncate(n);
        let mut chunks = self.chunks.lock().unwrap_or_else(|e| e.into_inner());
        chunks.push_back(chunk);
        let message = Carried::immediate(ARRIVED);
        self.vm
            .upgrade()
            .is_some_and(|vm| vm.send(self.server, message))
    }
    /// Nothing is read before it is asked for.
    pub fn ahead(&self) {}
    /// What was read.
    pub fn take(&self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut *self.chunks.lock().unwrap_or_else(|e| e.into_inner()))
    }
}
