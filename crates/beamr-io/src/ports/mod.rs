//! Ports over the operating system: programs, files, descriptors.
//!
//! One thread owns every descriptor: it alone reads, writes, closes and waits for children, so that no descriptor is closed while it
//! is being polled. The VM's side ([`PortDriver`]) puts bytes into queues and wakes the thread through a pipe. The thread calls the
//! VM ([`PortSink`]) with nothing locked.

mod child;

use std::collections::{BTreeMap, VecDeque};
use std::fs::OpenOptions;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use beamr_vm::door::{PortDriver, PortOptions, PortRequest, PortService, PortSink, ServiceError};

use child::{Child, Pipes};

/// Queued bytes that make a port busy, and those at which it is not busy any more.
const BUSY: usize = 8192;
const DRAINED: usize = 2048;
/// Bytes read at a time.
const READ: usize = 64 << 10;

/// The name of the service in errors.
const SERVICE: &str = "ports";

/// The small name of an error of the operating system (`enoent`).
fn code_of(e: &io::Error) -> &'static str {
    let code = e.raw_os_error().unwrap_or(libc::EINVAL);
    beamr_vm::door::files::Posix::of_code(code).0
}

fn failure(e: &io::Error) -> ServiceError {
    ServiceError::Os {
        service: SERVICE,
        code: code_of(e).to_owned(),
    }
}

fn einval() -> ServiceError {
    ServiceError::Os {
        service: SERVICE,
        code: "einval".into(),
    }
}

/// A descriptor; one that the program lent is not closed.
enum Fd {
    Own(OwnedFd),
    Lent(RawFd),
}

impl Fd {
    fn raw(&self) -> RawFd {
        match self {
            Fd::Own(f) => f.as_raw_fd(),
            Fd::Lent(f) => *f,
        }
    }
    fn file(&self) -> ManuallyDrop<std::fs::File> {
        // SAFETY: the descriptor is open as long as `self`; the file is never dropped, so that it is not closed.
        ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(self.raw()) })
    }
}

#[derive(Default)]
struct Entry {
    /// `None` once the VM has closed the port.
    sink: Option<Arc<dyn PortSink>>,
    input: Option<Fd>,
    output: Option<Fd>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that are written.
    written: usize,
    queued: usize,
    busy: bool,
    child: Option<Child>,
}

#[derive(Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    made: u64,
    stopping: bool,
}

struct Shared {
    table: Mutex<Table>,
    wake: PipeWriter,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|e| e.into_inner())
    }
    fn wake(&self) {
        // A full pipe wakes as well.
        let _ = (&self.wake).write(&[0]);
    }
}

/// The running thread and what it shares.
struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// The service. Its thread starts with the first port and ends at [`PortService::shutdown`].
#[derive(Default)]
pub struct OsPorts {
    running: Mutex<Option<Running>>,
}

impl std::fmt::Debug for OsPorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OsPorts").finish_non_exhaustive()
    }
}

impl OsPorts {
    fn shared(&self) -> io::Result<Arc<Shared>> {
        let mut running = self.running.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(r) = &*running {
            return Ok(r.shared.clone());
        }
        let (woken, wake) = io::pipe()?;
        child::set_nonblocking(wake.as_raw_fd())?;
        child::set_nonblocking(woken.as_raw_fd())?;
        let shared = Arc::new(Shared {
            table: Mutex::default(),
            wake,
        });
        let mine = shared.clone();
        let thread = std::thread::Builder::new()
            .name("beamr-ports".into())
            .spawn(move || serve(&mine, woken))?;
        *running = Some(Running {
            shared: shared.clone(),
            thread,
        });
        Ok(shared)
    }
}

impl PortService for OsPorts {
    fn open(
        &self,
        request: &PortRequest,
        sink: Arc<dyn PortSink>,
    ) -> Result<Box<dyn PortDriver>, ServiceError> {
        let mut entry = Entry::default();
        match request {
            PortRequest::Spawn { command, options } => {
                let program = child::shell(command);
                run(&mut entry, program, options)?;
            }
            PortRequest::SpawnExecutable {
                file,
                arg0,
                args,
                options,
            } => {
                let program = child::program(file, arg0.as_deref(), args, options);
                run(&mut entry, program.map_err(|e| failure(&e))?, options)?;
            }
            PortRequest::File { path, options } => {
                let (read, write) = directions(options);
                let file = OpenOptions::new()
                    .read(read)
                    .write(write)
                    .create(write)
                    .truncate(write && !read)
                    .open(Path::new(std::ffi::OsStr::from_bytes(path)));
                // OTP tells no more of files.
                let file = file.map_err(|_| einval())?;
                if read && write {
                    let other = file.try_clone().map_err(|e| failure(&e))?;
                    entry.output = Some(Fd::Own(other.into()));
                    entry.input = Some(Fd::Own(file.into()));
                } else if write {
                    entry.output = Some(Fd::Own(file.into()));
                } else {
                    entry.input = Some(Fd::Own(file.into()));
                }
            }
            PortRequest::Fd {
                input,
                output,
                options,
            } => {
                if *input < 0 || *output < 0 {
                    return Err(einval());
                }
                let (read, write) = directions(options);
                entry.input = read.then_some(Fd::Lent(*input));
                entry.output = write.then_some(Fd::Lent(*output));
            }
            PortRequest::Driver { command, .. } => {
                return Err(ServiceError::Invalid {
                    service: SERVICE,
                    what: format!("no driver {}", String::from_utf8_lossy(command)),
                });
            }
        }
        let shared = self.shared().map_err(|e| failure(&e))?;
        entry.sink = Some(sink);
        let os_pid = entry.child.as_ref().map(Child::id);
        let id = {
            let mut t = shared.table();
            if t.stopping {
                return Err(ServiceError::ShuttingDown { service: SERVICE });
            }
            t.made += 1;
            let id = t.made;
            t.entries.insert(id, entry);
            id
        };
        shared.wake();
        Ok(Box::new(Driver { shared, id, os_pid }))
    }
    fn watched(&self) -> usize {
        let running = self.running.lock().unwrap_or_else(|e| e.into_inner());
        let Some(r) = &*running else { return 0 };
        interests(&r.shared.table(), -1).0.len()
    }
    fn shutdown(&self) {
        let running = self
            .running
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .take();
        if let Some(r) = running {
            r.shared.table().stopping = true;
            r.shared.wake();
            // A panic of the thread was told by itself.
            let _ = r.thread.join();
        }
    }
}

/// Whether a port reads and writes.
fn directions(o: &PortOptions) -> (bool, bool) {
    (!o.output_only, !o.input_only)
}

fn run(
    entry: &mut Entry,
    program: std::process::Command,
    options: &PortOptions,
) -> Result<(), ServiceError> {
    let (child, Pipes { input, output }) =
        child::start(program, options).map_err(|e| failure(&e))?;
    entry.child = Some(child);
    entry.input = input.map(Fd::Own);
    entry.output = output.map(Fd::Own);
    Ok(())
}

/// One port, as the VM sees it.
struct Driver {
    shared: Arc<Shared>,
    id: u64,
    os_pid: Option<u32>,
}

impl PortDriver for Driver {
    fn output(&mut self, bytes: Vec<u8>) -> Result<bool, ServiceError> {
        let mut t = self.shared.table();
        let Some(e) = t.entries.get_mut(&self.id) else {
            return Ok(false);
        };
        if e.output.is_none() {
            return Err(einval());
        }
        if bytes.is_empty() {
            return Ok(e.busy);
        }
        e.queued += bytes.len();
        e.queue.push_back(bytes);
        e.busy = e.queued >= BUSY;
        let busy = e.busy;
        drop(t);
        self.shared.wake();
        Ok(busy)
    }
    fn control(&mut self, _: u32, _: &[u8]) -> Result<Vec<u8>, ServiceError> {
        Err(ServiceError::Invalid {
            service: SERVICE,
            what: "this port cannot be controlled".into(),
        })
    }
    fn os_pid(&self) -> Option<u32> {
        self.os_pid
    }
    fn queued(&self) -> usize {
        let t = self.shared.table();
        t.entries.get(&self.id).map_or(0, |e| e.queued)
    }
    fn close(&mut self) {
        if let Some(e) = self.shared.table().entries.get_mut(&self.id) {
            e.sink = None;
        }
        self.shared.wake();
    }
}

/// Which descriptor of a port is ready.
#[derive(Clone, Copy)]
enum Ready {
    Input,
    Output,
    Exit,
}

/// What is to be told to the VM.
enum Event {
    Data(Vec<u8>),
    Eof,
    Exited(i32),
    Failed(&'static str),
    Drained,
}

/// The thread.
fn serve(shared: &Shared, mut woken: PipeReader) {
    child::block_sigpipe();
    let mut buffer = vec![0u8; READ];
    loop {
        let (mut fds, what) = {
            let mut t = shared.table();
            if t.stopping
                && t.entries
                    .values()
                    .all(|e| e.queue.is_empty() || e.output.is_none())
            {
                return;
            }
            t.entries.retain(|_, e| !tidy(e));
            interests(&t, woken.as_raw_fd())
        };
        // SAFETY: an array of as many entries as it has; the descriptors are closed by this thread only.
        let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, -1) };
        if n < 0 {
            continue;
        }
        if fds[0].revents != 0 {
            // Only to empty it.
            let _ = woken.read(&mut buffer);
        }
        for (fd, (id, ready)) in fds[1..].iter().zip(what) {
            if fd.revents == 0 {
                continue;
            }
            let (event, sink) = {
                let mut t = shared.table();
                let Some(e) = t.entries.get_mut(&id) else {
                    continue;
                };
                (e.step(ready, &mut buffer), e.sink.clone())
            };
            if let (Some(event), Some(sink)) = (event, sink) {
                match event {
                    Event::Data(bytes) => sink.data(bytes),
                    Event::Eof => sink.eof(),
                    Event::Exited(status) => sink.exited(status),
                    Event::Failed(code) => sink.failed(code),
                    Event::Drained => sink.drained(),
                }
            }
        }
    }
}

/// Drops what a closed port needs no more; true when nothing is left of it.
fn tidy(e: &mut Entry) -> bool {
    if e.sink.is_some() {
        return false;
    }
    e.input = None;
    if e.queue.is_empty() {
        e.output = None;
    }
    e.output.is_none() && e.child.is_none()
}

fn interests(t: &Table, woken: RawFd) -> (Vec<libc::pollfd>, Vec<(u64, Ready)>) {
    let poll = |fd, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let mut fds = vec![poll(woken, libc::POLLIN)];
    let mut what = Vec::new();
    for (id, e) in &t.entries {
        if let Some(f) = &e.input {
            fds.push(poll(f.raw(), libc::POLLIN));
            what.push((*id, Ready::Input));
        }
        if let Some(f) = e.output.as_ref().filter(|_| !e.queue.is_empty()) {
            fds.push(poll(f.raw(), libc::POLLOUT));
            what.push((*id, Ready::Output));
        }
        if let Some(c) = &e.child {
            fds.push(poll(c.exit_fd(), libc::POLLIN));
            what.push((*id, Ready::Exit));
        }
    }
    (fds, what)
}

impl Entry {
    /// Does what a descriptor is ready for.
    fn step(&mut self, ready: Ready, buffer: &mut [u8]) -> Option<Event> {
        match ready {
            Ready::Input => {
                let f = self.input.as_ref()?;
                match f.file().read(buffer) {
                    // A terminal whose other side is gone gives an error.
                    Ok(0) => {
                        self.input = None;
                        Some(Event::Eof)
                    }
                    Err(e) if e.raw_os_error() == Some(libc::EIO) => {
                        self.input = None;
                        Some(Event::Eof)
                    }
                    Ok(n) => Some(Event::Data(buffer[..n].to_vec())),
                    Err(e) if passes(&e) => None,
                    Err(e) => {
                        self.input = None;
                        Some(Event::Failed(code_of(&e)))
                    }
                }
            }
            Ready::Output => self.write(),
            Ready::Exit => {
                let status = self.child.as_mut()?.status()?;
                self.child = None;
                Some(Event::Exited(status))
            }
        }
    }
    fn write(&mut self) -> Option<Event> {
        let f = self.output.as_ref()?;
        let lent = matches!(f, Fd::Lent(_));
        let mut file = f.file();
        while let Some(first) = self.queue.front() {
            let rest = &first[self.written..];
            // A descriptor of the program may block: no more than is sure to be taken.
            let most = if lent {
                rest.len().min(512)
            } else {
                rest.len()
            };
            match file.write(&rest[..most]) {
                Ok(n) => {
                    self.written += n;
                    self.queued -= n;
                    if self.written == first.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                    if lent {
                        break;
                    }
                }
                Err(e) if passes(&e) => break,
                Err(e) => {
                    self.output = None;
                    self.queue.clear();
                    (self.queued, self.written) = (0, 0);
                    return Some(Event::Failed(code_of(&e)));
                }
            }
        }
        if self.busy && self.queued < DRAINED {
            self.busy = false;
            return Some(Event::Drained);
        }
        None
    }
}

/// Whether it is enough to try again.
fn passes(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
