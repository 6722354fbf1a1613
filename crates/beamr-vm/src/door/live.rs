//! The door of an ordinary program. The only module of the crate that asks the operating system.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::{Mutex, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::{Door, DoorError, Standard, Stream};

/// See the module. The environment and working directory are copies from when it was made.
pub struct LiveDoor {
    start: Instant,
    env: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    dir: RwLock<PathBuf>,
    // A write of one process is not cut in two by another.
    out: Mutex<()>,
}

impl std::fmt::Debug for LiveDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LiveDoor")
    }
}

impl Default for LiveDoor {
    fn default() -> Self {
        LiveDoor::new()
    }
}

fn bytes(s: std::ffi::OsString) -> Vec<u8> {
    s.into_encoded_bytes()
}

#[cfg(unix)]
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

impl LiveDoor {
    /// A door with a copy of the OS process's environment and working directory.
    pub fn new() -> LiveDoor {
        let env = std::env::vars_os().map(|(k, v)| (bytes(k), bytes(v)));
        LiveDoor {
            start: Instant::now(),
            env: RwLock::new(env.collect()),
            dir: RwLock::new(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))),
            out: Mutex::new(()),
        }
    }
}

/// A moment before every start, so that monotonic time is not negative soon after it.
const MONOTONIC_BASE: i64 = 1 << 40;

impl Door for LiveDoor {
    fn monotonic_time(&self) -> i64 {
        let ns = self.start.elapsed().as_nanos();
        MONOTONIC_BASE.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX))
    }
    fn system_time(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(d) => i64::try_from(d.as_nanos()).unwrap_or(i64::MAX),
            Err(e) => -i64::try_from(e.duration().as_nanos()).unwrap_or(i64::MAX),
        }
    }
    #[cfg(unix)]
    fn cpu_time(&self) -> i64 {
        let mut t = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a whole timespec.
        if unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut t) } != 0 {
            return 0;
        }
        t.tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(t.tv_nsec)
    }
    #[cfg(not(unix))]
    fn cpu_time(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
    #[cfg(unix)]
    fn local_offset(&self, utc: i64) -> (i64, bool) {
        // SAFETY: all-zero bytes are a valid `tm`; both pointers are to whole values.
        unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            let t = utc as libc::time_t;
            if libc::localtime_r(&raw const t, &raw mut tm).is_null() {
                return (0, false);
            }
            (tm.tm_gmtoff, tm.tm_isdst > 0)
        }
    }
    #[cfg(not(unix))]
    fn local_offset(&self, _: i64) -> (i64, bool) {
        (0, false)
    }
    #[cfg(target_os = "linux")]
    fn entropy(&self, into: &mut [u8]) -> Result<(), DoorError> {
        let mut rest = into;
        while !rest.is_empty() {
            // SAFETY: the buffer is writable for its length.
            let n = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
            if n < 0 {
                let e = std::io::Error::last_os_error();
                if e.kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(DoorError::Entropy(e.to_string()));
            }
            rest = &mut rest[n as usize..];
        }
        Ok(())
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    fn entropy(&self, into: &mut [u8]) -> Result<(), DoorError> {
        let mut f =
            std::fs::File::open("/dev/urandom").map_err(|e| DoorError::Entropy(e.to_string()))?;
        f.read_exact(into)
            .map_err(|e| DoorError::Entropy(e.to_string()))
    }
    #[cfg(not(unix))]
    fn entropy(&self, _: &mut [u8]) -> Result<(), DoorError> {
        Err(DoorError::Entropy("none on this target".into()))
    }

    fn env(&self, name: &[u8]) -> Option<Vec<u8>> {
        let env = self.env.read().unwrap_or_else(|e| e.into_inner());
        env.get(name).cloned()
    }
    fn set_env(&self, name: &[u8], value: Option<&[u8]>) -> Result<(), DoorError> {
        // A leading `=` is a name of Windows.
        let bad = name.is_empty()
            || name.contains(&0)
            || name[1..].contains(&b'=')
            || value.is_some_and(|v| v.contains(&0));
        if bad {
            return Err(DoorError::Environment);
        }
        let mut env = self.env.write().unwrap_or_else(|e| e.into_inner());
        match value {
            Some(v) => env.insert(name.to_vec(), v.to_vec()),
            None => env.remove(name),
        };
        Ok(())
    }
    fn env_list(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let env = self.env.read().unwrap_or_else(|e| e.into_inner());
        env.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }
    fn current_dir(&self) -> Vec<u8> {
        let dir = self.dir.read().unwrap_or_else(|e| e.into_inner());
        dir.as_os_str().as_encoded_bytes().to_vec()
    }
    fn set_current_dir(&self, to: &[u8]) -> Result<(), DoorError> {
        let to = path(to);
        let mut dir = self.dir.write().unwrap_or_else(|e| e.into_inner());
        let full = dir.join(&to);
        let failed = |cause| DoorError::Directory {
            path: full.display().to_string(),
            cause,
        };
        let full_path = full.canonicalize().map_err(failed)?;
        if !full_path.is_dir() {
            let cause = std::io::Error::from(std::io::ErrorKind::NotADirectory);
            return Err(DoorError::Directory {
                path: full.display().to_string(),
                cause,
            });
        }
        *dir = full_path;
        Ok(())
    }
    fn os_pid(&self) -> u32 {
        std::process::id()
    }
    #[cfg(unix)]
    fn host_name(&self) -> String {
        let mut name = [0u8; 256];
        // SAFETY: the buffer is writable for its length; the last byte stays 0.
        if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
            return "localhost".into();
        }
        let end = name
            .iter()
            .position(|b| *b == 0 || *b == b'.')
            .unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    }
    #[cfg(not(unix))]
    fn host_name(&self) -> String {
        "localhost".into()
    }
    fn os_type(&self) -> (&'static str, &'static str) {
        match std::env::consts::OS {
            "windows" => ("win32", "nt"),
            "macos" => ("unix", "darwin"),
            other => ("unix", other),
        }
    }
    #[cfg(unix)]
    fn os_release(&self) -> String {
        // SAFETY: all-zero bytes are a valid `utsname`; the call writes NUL-terminated texts into it.
        unsafe {
            let mut u: libc::utsname = std::mem::zeroed();
            if libc::uname(&raw mut u) != 0 {
                return "0.0.0".into();
            }
            std::ffi::CStr::from_ptr(u.release.as_ptr())
                .to_string_lossy()
                .into_owned()
        }
    }
    fn processors(&self) -> usize {
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
    }

    #[cfg(unix)]
    fn files(&self) -> &dyn super::Files {
        self
    }

    fn write(&self, stream: Stream, bytes: &[u8]) -> Result<(), DoorError> {
        let _whole = self.out.lock().unwrap_or_else(|e| e.into_inner());
        write_all(stream, bytes).map_err(|cause| DoorError::Stream { stream, cause })
    }
    fn read(&self, into: &mut [u8]) -> Result<usize, DoorError> {
        std::io::stdin()
            .lock()
            .read(into)
            .map_err(|e| DoorError::Input(e.to_string()))
    }

    fn is_terminal(&self, stream: Standard) -> bool {
        match stream {
            Standard::In => std::io::stdin().is_terminal(),
            Standard::Out => std::io::stdout().is_terminal(),
            Standard::Err => std::io::stderr().is_terminal(),
        }
    }
    #[cfg(unix)]
    fn window(&self, stream: Standard) -> Option<(u16, u16)> {
        let fd = match stream {
            Standard::In => libc::STDIN_FILENO,
            Standard::Out => libc::STDOUT_FILENO,
            Standard::Err => libc::STDERR_FILENO,
        };
        // SAFETY: all-zero bytes are a valid `winsize`; the call writes at most one.
        unsafe {
            let mut w: libc::winsize = std::mem::zeroed();
            (libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut w) == 0 && w.ws_col > 0)
                .then_some((w.ws_col, w.ws_row))
        }
    }
}

/// Writes past the standard library's line buffer: what is written is complete in itself. A descriptor that somebody made
/// non-blocking is waited for.
#[cfg(unix)]
fn write_all(stream: Stream, mut bytes: &[u8]) -> std::io::Result<()> {
    use std::io::{Error, ErrorKind};
    let fd = match stream {
        Stream::Out => libc::STDOUT_FILENO,
        Stream::Err => libc::STDERR_FILENO,
    };
    while !bytes.is_empty() {
        // SAFETY: the buffer is readable for its length.
        let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        if n > 0 {
            bytes = &bytes[n as usize..];
            continue;
        }
        let e = Error::last_os_error();
        match e.kind() {
            _ if n == 0 => return Err(ErrorKind::WriteZero.into()),
            ErrorKind::Interrupted => {}
            ErrorKind::WouldBlock => {
                let mut poll = libc::pollfd {
                    fd,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // SAFETY: one whole entry.
                unsafe { libc::poll(&raw mut poll, 1, -1) };
            }
            _ => return Err(e),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn write_all(stream: Stream, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    match stream {
        Stream::Out => {
            let mut s = std::io::stdout().lock();
            s.write_all(bytes).and_then(|()| s.flush())
        }
        Stream::Err => std::io::stderr().lock().write_all(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_the_vms_own() {
        let (a, b) = (LiveDoor::new(), LiveDoor::new());
        a.set_env(b"BEAMR_TEST_ENV", Some(b"1")).unwrap();
        assert_eq!(a.env(b"BEAMR_TEST_ENV").as_deref(), Some(&b"1"[..]));
        assert_eq!(b.env(b"BEAMR_TEST_ENV"), None);
        assert!(std::env::var_os("BEAMR_TEST_ENV").is_none());
        a.set_env(b"BEAMR_TEST_ENV", None).unwrap();
        assert_eq!(a.env(b"BEAMR_TEST_ENV"), None);
        for bad in [&b""[..], b"a=b", b"a\0"] {
            assert!(matches!(
                a.set_env(bad, Some(b"x")),
                Err(DoorError::Environment)
            ));
        }
        let names: Vec<_> = a.env_list().into_iter().map(|e| e.0).collect();
        assert!(names.is_sorted());
    }

    #[test]
    fn the_working_directory_is_the_vms_own() {
        let d = LiveDoor::new();
        let before = std::env::current_dir().unwrap();
        d.set_current_dir(b"..").unwrap();
        assert_eq!(std::env::current_dir().unwrap(), before);
        let parent = before.parent().unwrap().canonicalize().unwrap();
        assert_eq!(d.current_dir(), parent.as_os_str().as_encoded_bytes());
        assert!(d.set_current_dir(b"no such directory").is_err());
    }

    #[test]
    fn clocks_and_entropy() {
        let d = LiveDoor::new();
        let (t, u) = (d.monotonic_time(), d.monotonic_time());
        assert!(0 < t && t <= u);
        assert!(d.system_time() > 1_500_000_000_000_000_000);
        let (mut a, mut b) = ([0u8; 32], [0u8; 32]);
        d.entropy(&mut a).unwrap();
        d.entropy(&mut b).unwrap();
        assert_ne!(a, b);
    }
}
