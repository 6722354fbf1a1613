//! Who reads standard input: a thread. Without the feature `threads` its twin `inline_reader` takes its place.
//!
//! It reads one chunk for each that is asked for, so that a slow program does not fill the memory with its input; it leaves chunks in
//! a queue (an empty one at the end) and wakes the server with a message. It ends when the server is gone.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, Weak};

use beamr_term::{Word, atoms};
use beamr_vm::door::Door;
use beamr_vm::process::Carried;
use beamr_vm::vm::Vm;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// The message to the server.
pub const ARRIVED: Word = atoms::FILE.word();

type Chunks = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// See the module.
pub struct Reader {
    ask: SyncSender<()>,
    chunks: Chunks,
}

impl Reader {
    /// Starts the thread, for the server `me`.
    pub fn new(vm: &Weak<Vm>, door: &Arc<dyn Door>, me: Word) -> Option<Reader> {
        let (ask, asked) = sync_channel(1);
        let chunks = Chunks::default();
        let (vm, door, filled) = (vm.clone(), door.clone(), chunks.clone());
        std::thread::Builder::new()
            .name("beamr-stdin".into())
            .spawn(move || read(&asked, &filled, &vm, &*door, me))
            .ok()?;
        Some(Reader { ask, chunks })
    }
    /// Asks for a chunk, unless one was asked for; false when none will come.
    pub fn ask(&self) -> bool {
        !matches!(self.ask.try_send(()), Err(TrySendError::Disconnected(())))
    }
    /// Lets it read ahead by a chunk.
    pub fn ahead(&self) {
        let _ = self.ask();
    }
    /// What was read.
    pub fn take(&self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut *self.chunks.lock().unwrap_or_else(|e| e.into_inner()))
    }
}

fn read(asked: &Receiver<()>, chunks: &Chunks, vm: &Weak<Vm>, door: &dyn Door, server: Word) {
    while asked.recv().is_ok() {
        let mut chunk = vec![0; CHUNK];
        // What cannot be read is over.
        let n = door.read(&mut chunk).unwrap_or(0);
        chunk.truncate(n);
        if n < CHUNK / 4 {
            chunk.shrink_to_fit();
        }
        chunks
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push_back(chunk);
        let Some(vm) = vm.upgrade() else { return };
        if !vm.send(server, Carried::immediate(ARRIVED)) || n == 0 {
            return;
        }
    }
}
