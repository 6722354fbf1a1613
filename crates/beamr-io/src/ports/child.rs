//! Programs behind ports: starting them and learning how they ended.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use beamr_vm::door::PortOptions;

/// Our ends of the pipes to a program.
pub struct Pipes {
    /// What it writes.
    pub input: Option<OwnedFd>,
    /// What it reads.
    pub output: Option<OwnedFd>,
}

/// A program that runs. It is waited for when `exit_fd` is readable.
pub struct Child {
    child: std::process::Child,
    exit: Exit,
}

/// How its end is learned.
enum Exit {
    /// A descriptor of the process itself.
    Process(OwnedFd),
    /// A pipe whose other end a waiting thread holds; it leaves the status there.
    Thread(OwnedFd),
}

/// `/bin/sh -c "exec COMMAND"`.
pub fn shell(command: &[u8]) -> Command {
    let mut line = b"exec ".to_vec();
    line.extend_from_slice(command);
    let mut c = Command::new("/bin/sh");
    c.arg0("sh").arg("-c").arg(OsStr::from_bytes(&line));
    c
}

/// A program file with arguments. `enoent` or `eacces` when it cannot be run.
pub fn program(
    file: &[u8],
    arg0: Option<&[u8]>,
    args: &[Vec<u8>],
    options: &PortOptions,
) -> io::Result<Command> {
    let path = Path::new(OsStr::from_bytes(file));
    let whole: PathBuf = match &options.cd {
        // Relative to where the program will run.
        Some(dir) if path.is_relative() => Path::new(OsStr::from_bytes(dir)).join(path),
        _ => path.to_owned(),
    };
    let metadata = std::fs::metadata(&whole)?;
    let name = std::ffi::CString::new(whole.as_os_str().as_bytes())?;
    // SAFETY: a string with its end.
    let runs = unsafe { libc::access(name.as_ptr(), libc::X_OK) } == 0;
    if !metadata.is_file() || !runs {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    let mut c = Command::new(whole);
    c.arg0(OsStr::from_bytes(arg0.unwrap_or(file)));
    c.args(args.iter().map(|a| OsStr::from_bytes(a)));
    Ok(c)
}

/// A pipe: the end that reads, the end that writes, both closed in programs that are started.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (r, w) = io::pipe()?;
    Ok((r.into(), w.into()))
}

/// Out of the way of the descriptors that a program gets.
fn moved_up(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: a descriptor that is open; the new one is nobody else's.
    unsafe {
        let n = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 10);
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(n))
    }
}

/// Makes reading and writing return at once.
pub fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags < 0 || libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Starts a program with pipes.
pub fn start(mut program: Command, options: &PortOptions) -> io::Result<(Child, Pipes)> {
    let (reads, writes) = (!options.output_only, !options.input_only);
    program.env_clear();
    for (key, value) in &options.env {
        program.env(OsStr::from_bytes(key), OsStr::from_bytes(value));
    }
    if let Some(dir) = &options.cd {
        program.current_dir(OsStr::from_bytes(dir));
    }
    let from = if reads { Some(pipe()?) } else { None };
    let to = if writes { Some(pipe()?) } else { None };
    // What the program gets is closed here when the command is dropped.
    if options.other_descriptors {
        let gets = to.as_ref().map(|p| moved_up(&p.0)).transpose()?;
        let puts = from.as_ref().map(|p| moved_up(&p.1)).transpose()?;
        // SAFETY: only `dup2`, which may be called between fork and exec; the descriptors live in the closure.
        unsafe {
            program.pre_exec(move || {
                for (fd, place) in [(&gets, 3), (&puts, 4)] {
                    if let Some(fd) = fd
                        && libc::dup2(fd.as_raw_fd(), place) < 0
                    {
                        return Err(io::Error::last_os_error());
                    }
                }
                Ok(())
            });
        }
    } else {
        if let Some((r, _)) = &to {
            program.stdin(Stdio::from(r.try_clone()?));
        }
        if let Some((_, w)) = &from {
            program.stdout(Stdio::from(w.try_clone()?));
            if options.stderr_to_stdout {
                program.stderr(Stdio::from(w.try_clone()?));
            }
        }
    }
    let child = program.spawn()?;
    drop(program);
    let exit = exit_of(child.id())?;
    let pipes = Pipes {
        input: from.map(|p| p.0),
        output: to.map(|p| p.1),
    };
    for fd in [&pipes.input, &pipes.output].into_iter().flatten() {
        set_nonblocking(fd.as_raw_fd())?;
    }
    Ok((Child { child, exit }, pipes))
}

#[cfg(target_os = "linux")]
fn process_fd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: a system call on numbers; the descriptor that comes is nobody else's.
    unsafe {
        let n = libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0);
        (n >= 0).then(|| OwnedFd::from_raw_fd(n as RawFd))
    }
}

#[cfg(not(target_os = "linux"))]
fn process_fd(_: u32) -> Option<OwnedFd> {
    None
}

fn exit_of(pid: u32) -> io::Result<Exit> {
    if let Some(fd) = process_fd(pid) {
        return Ok(Exit::Process(fd));
    }
    let (read, write) = pipe()?;
    std::thread::Builder::new()
        .name("beamr-port-wait".into())
        .spawn(move || {
            // SAFETY: waits for a child of ours that nobody else waits for, and leaves it to be collected.
            unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let how = libc::WEXITED | libc::WNOWAIT;
                while libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, how) < 0
                    && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
                {
                }
            }
            drop(write);
        })?;
    Ok(Exit::Thread(read))
}

impl Child {
    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
    /// Readable when it has ended.
    pub fn exit_fd(&self) -> RawFd {
        match &self.exit {
            Exit::Process(fd) | Exit::Thread(fd) => fd.as_raw_fd(),
        }
    }
    /// How it ended: the status, 128 more than the signal that ended it, or `None` while it runs.
    pub fn status(&mut self) -> Option<i32> {
        let status: ExitStatus = match self.child.try_wait() {
            Ok(s) => s?,
            // Somebody else has waited for it.
            Err(_) => return Some(255),
        };
        let signal = status.signal().map(|s| 128 + s);
        Some(status.code().or(signal).unwrap_or(255))
    }
}

/// Writing to a program that has gone is an error, no signal, on this thread.
pub fn block_sigpipe() {
    // SAFETY: changes the mask of the calling thread.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPIPE);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
    }
}
