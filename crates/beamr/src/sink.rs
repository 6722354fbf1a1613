//! Where the output of a VM goes.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use beamr_vm::door::{Door, DoorError, Files, Stream};

/// A standard stream of a VM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoStream {
    /// Standard output: `io:format`, `erlang:display`.
    Out,
    /// Standard error: reports of crashes, `io:format(standard_error, ...)`.
    Err,
}

/// Takes what the programs of a VM print. Called on threads of the VM, one call at a time for each stream.
pub trait IoSink: Send + Sync {
    /// Takes bytes of standard output.
    fn write(&self, bytes: &[u8]);
    /// Takes bytes of any stream; unless implemented, all go to [`IoSink::write`].
    fn write_stream(&self, stream: IoStream, bytes: &[u8]) {
        let _ = stream;
        self.write(bytes);
    }
}

/// Discards everything: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl IoSink for NullSink {
    fn write(&self, _: &[u8]) {}
}

/// Writes to the standard streams of the OS process.
#[derive(Clone, Copy, Debug, Default)]
pub struct StdSink;

impl IoSink for StdSink {
    fn write(&self, bytes: &[u8]) {
        self.write_stream(IoStream::Out, bytes);
    }
    fn write_stream(&self, stream: IoStream, bytes: &[u8]) {
        use std::io::Write;
        // A closed stream takes nothing: what a program prints then is lost, as it is for any program.
        let _ = match stream {
            IoStream::Out => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            IoStream::Err => std::io::stderr().lock().write_all(bytes),
        };
    }
}

/// Keeps everything in memory: for tests.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// let sink = Arc::new(beamr::BufferSink::default());
/// let vm = beamr::Scheduler::builder().threads(1).output(sink.clone()).build()?;
/// vm.call::<bool>("erlang", "display", ([1, 2],))?;
/// assert_eq!(sink.take(beamr::IoStream::Out), "[1,2]\r\n");
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct BufferSink {
    streams: std::sync::Mutex<[Vec<u8>; 2]>,
}

impl BufferSink {
    /// Takes what was written to a stream, as text.
    pub fn take(&self, stream: IoStream) -> String {
        let mut s = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        let bytes = std::mem::take(&mut s[stream as usize]);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl IoSink for BufferSink {
    fn write(&self, bytes: &[u8]) {
        self.write_stream(IoStream::Out, bytes);
    }
    fn write_stream(&self, stream: IoStream, bytes: &[u8]) {
        let mut s = self.streams.lock().unwrap_or_else(|e| e.into_inner());
        s[stream as usize].extend_from_slice(bytes);
    }
}

/// A door whose standard output and error go to a sink, and which has no standard input: that of the OS process belongs to the
/// embedding program.
pub(crate) struct SinkDoor {
    inner: Arc<dyn Door>,
    sink: RwLock<Arc<dyn IoSink>>,
}

impl SinkDoor {
    pub fn new(inner: Arc<dyn Door>, sink: Arc<dyn IoSink>) -> SinkDoor {
        SinkDoor {
            inner,
            sink: RwLock::new(sink),
        }
    }
    pub fn set(&self, sink: Arc<dyn IoSink>) {
        *self.sink.write().unwrap_or_else(|e| e.into_inner()) = sink;
    }
}

impl Door for SinkDoor {
    fn monotonic_time(&self) -> i64 {
        self.inner.monotonic_time()
    }
    fn system_time(&self) -> i64 {
        self.inner.system_time()
    }
    fn cpu_time(&self) -> i64 {
        self.inner.cpu_time()
    }
    fn local_offset(&self, utc: i64) -> (i64, bool) {
        self.inner.local_offset(utc)
    }
    fn entropy(&self, into: &mut [u8]) -> Result<(), DoorError> {
        self.inner.entropy(into)
    }
    fn env(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.inner.env(name)
    }
    fn set_env(&self, name: &[u8], value: Option<&[u8]>) -> Result<(), DoorError> {
        self.inner.set_env(name, value)
    }
    fn env_list(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.inner.env_list()
    }
    fn current_dir(&self) -> Vec<u8> {
        self.inner.current_dir()
    }
    fn set_current_dir(&self, to: &[u8]) -> Result<(), DoorError> {
        self.inner.set_current_dir(to)
    }
    fn os_pid(&self) -> u32 {
        self.inner.os_pid()
    }
    fn host_name(&self) -> String {
        self.inner.host_name()
    }
    fn os_type(&self) -> (&'static str, &'static str) {
        self.inner.os_type()
    }
    fn os_release(&self) -> String {
        self.inner.os_release()
    }
    fn processors(&self) -> usize {
        self.inner.processors()
    }
    fn files(&self) -> &dyn Files {
        self.inner.files()
    }
    fn write(&self, stream: Stream, bytes: &[u8]) -> Result<(), DoorError> {
        let sink = self.sink.read().unwrap_or_else(|e| e.into_inner()).clone();
        let stream = match stream {
            Stream::Out => IoStream::Out,
            Stream::Err => IoStream::Err,
        };
        sink.write_stream(stream, bytes);
        Ok(())
    }
    fn read(&self, _: &mut [u8]) -> Result<usize, DoorError> {
        Ok(0)
    }
    fn pause(&self, at_most: Duration) -> bool {
        self.inner.pause(at_most)
    }
}
