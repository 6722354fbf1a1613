//! Files of an ordinary program on a POSIX system, with paths relative to the working directory of the VM.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::files::{Advice, FileInfo, FileKind, Files, OpenFile, OpenModes, Posix, Whence};
use super::{Door, LiveDoor};

const INVALID: Posix = Posix("einval");

/// Calls again as long as a signal interrupts; the code of a call that gave -1.
fn retried(mut call: impl FnMut() -> i32) -> Result<i32, Posix> {
    loop {
        let r = call();
        if r != -1 {
            return Ok(r);
        }
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::Interrupted {
            return Err(e.into());
        }
    }
}

/// A result that is 0 or -1.
fn done(result: i32) -> Result<(), Posix> {
    if result == -1 {
        Err(Posix::last())
    } else {
        Ok(())
    }
}

fn c_text(bytes: &[u8]) -> Result<CString, Posix> {
    CString::new(bytes).map_err(|_| INVALID)
}

impl LiveDoor {
    /// The path that the operating system is asked for: the empty one stays empty, so that it is never found.
    fn full(&self, path: &[u8]) -> PathBuf {
        let path = Path::new(OsStr::from_bytes(path));
        if path.as_os_str().is_empty() || path.is_absolute() {
            return path.to_path_buf();
        }
        PathBuf::from(std::ffi::OsString::from_vec(self.current_dir())).join(path)
    }
    fn full_c(&self, path: &[u8]) -> Result<CString, Posix> {
        c_text(self.full(path).as_os_str().as_bytes())
    }
}

fn info_of(m: &std::fs::Metadata) -> FileInfo {
    let mode = m.mode();
    let t = m.file_type();
    let kind = if t.is_char_device() || t.is_block_device() {
        FileKind::Device
    } else if t.is_dir() {
        FileKind::Directory
    } else if t.is_file() {
        FileKind::Regular
    } else if t.is_symlink() {
        FileKind::Symlink
    } else {
        FileKind::Other
    };
    // The fields of OTP have 32 bits.
    FileInfo {
        size: m.size(),
        kind,
        readable: false,
        writable: false,
        accessed: m.atime(),
        modified: m.mtime(),
        changed: m.ctime(),
        mode,
        links: m.nlink() as u32,
        device: m.dev() as u32,
        special_device: m.rdev() as u32,
        inode: m.ino() as u32,
        user: m.uid(),
        group: m.gid(),
    }
}

/// An open descriptor.
struct LiveFile(File);

impl LiveFile {
    fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// Reads with `read` until the buffer is full or there is nothing more.
fn fill(
    mut into: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> std::io::Result<usize>,
) -> Result<usize, Posix> {
    let mut done = 0;
    while !into.is_empty() {
        match read(into, done as u64) {
            Ok(0) => break,
            Ok(n) => {
                done += n;
                into = &mut into[n..];
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(done)
}

impl OpenFile for LiveFile {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Posix> {
        fill(into, |b, _| self.0.read(b))
    }
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Posix> {
        fill(into, |b, done| self.0.read_at(b, offset + done))
    }
    fn write(&mut self, parts: &[&[u8]]) -> Result<(), Posix> {
        for p in parts {
            self.0.write_all(p)?;
        }
        Ok(())
    }
    fn write_at(&mut self, offset: u64, parts: &[&[u8]]) -> Result<(), Posix> {
        let mut at = offset;
        for p in parts {
            self.0.write_all_at(p, at)?;
            at += p.len() as u64;
        }
        Ok(())
    }
    fn seek(&mut self, whence: Whence, offset: i64) -> Result<u64, Posix> {
        let to = match whence {
            Whence::Start => SeekFrom::Start(u64::try_from(offset).map_err(|_| INVALID)?),
            Whence::Current => SeekFrom::Current(offset),
            Whence::End => SeekFrom::End(offset),
        };
        Ok(self.0.seek(to)?)
    }
    fn sync(&mut self, data_only: bool) -> Result<(), Posix> {
        if data_only {
            self.0.sync_data()?;
        } else {
            self.0.sync_all()?;
        }
        Ok(())
    }
    fn truncate(&mut self) -> Result<(), Posix> {
        let at = self.0.stream_position()?;
        Ok(self.0.set_len(at)?)
    }
    #[cfg(target_os = "linux")]
    fn allocate(&mut self, offset: u64, length: u64) -> Result<(), Posix> {
        let (offset, length) = (offset as libc::off_t, length as libc::off_t);
        // SAFETY: the descriptor is open.
        let first = retried(|| unsafe { libc::fallocate(self.fd(), 0, offset, length) });
        if first.is_ok() {
            return Ok(());
        }
        // SAFETY: as above. The result is the code itself.
        match unsafe { libc::posix_fallocate(self.fd(), offset, length) } {
            0 => Ok(()),
            code => Err(Posix::of_code(code)),
        }
    }
    #[cfg(not(target_os = "linux"))]
    fn allocate(&mut self, _: u64, _: u64) -> Result<(), Posix> {
        Err(super::files::NOT_SUPPORTED)
    }
    #[cfg(target_os = "linux")]
    fn advise(&mut self, offset: u64, length: u64, advice: Advice) -> Result<(), Posix> {
        let advice = match advice {
            Advice::Normal => libc::POSIX_FADV_NORMAL,
            Advice::Random => libc::POSIX_FADV_RANDOM,
            Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            Advice::WillNeed => libc::POSIX_FADV_WILLNEED,
            Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
            Advice::NoReuse => libc::POSIX_FADV_NOREUSE,
        };
        let (offset, length) = (offset as libc::off_t, length as libc::off_t);
        // SAFETY: the descriptor is open. OTP takes no notice of the result either (it is never negative).
        let _ = unsafe { libc::posix_fadvise(self.fd(), offset, length, advice) };
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    fn advise(&mut self, _: u64, _: u64, _: Advice) -> Result<(), Posix> {
        // A hint that may be ignored.
        Ok(())
    }
    fn info(&mut self) -> Result<FileInfo, Posix> {
        let m = self.0.metadata()?;
        let mut info = info_of(&m);
        // SAFETY: these calls only read the process's identity.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        let bits = if m.uid() == user {
            m.mode() >> 6
        } else if m.gid() == group {
            m.mode() >> 3
        } else {
            m.mode()
        };
        info.readable = bits & 4 != 0;
        info.writable = bits & 2 != 0;
        Ok(info)
    }
    fn handle(&self) -> Vec<u8> {
        self.fd().to_ne_bytes().to_vec()
    }
    fn close(self: Box<Self>) -> Result<(), Posix> {
        let fd = self.0.into_raw_fd();
        // SAFETY: the descriptor was owned by the file, which gave it up.
        done(unsafe { libc::close(fd) })
    }
}

impl Files for LiveDoor {
    fn open(&self, path: &[u8], modes: OpenModes) -> Result<Box<dyn OpenFile>, Posix> {
        let mut flags = match (modes.read, modes.write) {
            (true, false) => libc::O_RDONLY,
            (false, true) => libc::O_TRUNC | libc::O_WRONLY | libc::O_CREAT,
            (true, true) => libc::O_RDWR | libc::O_CREAT,
            (false, false) => return Err(INVALID),
        };
        if modes.append {
            flags = flags & !libc::O_TRUNC | libc::O_APPEND;
        }
        if modes.exclusive {
            flags |= libc::O_EXCL;
        }
        if modes.sync {
            flags |= libc::O_SYNC;
        }
        if modes.directory {
            flags |= libc::O_DIRECTORY;
        }
        let mode: libc::c_uint = if modes.directory { 0o777 } else { 0o666 };
        let path = self.full_c(path)?;
        // SAFETY: the path is a NUL-terminated text.
        let fd = retried(|| unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) })?;
        // SAFETY: a descriptor of nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        let any = modes.any_type || modes.directory;
        if !any && file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Posix("eisdir"));
        }
        Ok(Box::new(LiveFile(file)))
    }
    fn adopt(&self, descriptor: i32) -> Result<Box<dyn OpenFile>, Posix> {
        // SAFETY: the call only asks about the descriptor.
        done(unsafe { libc::fcntl(descriptor, libc::F_GETFL) })?;
        // SAFETY: it is open, and the caller hands it over.
        Ok(Box::new(LiveFile(unsafe { File::from_raw_fd(descriptor) })))
    }
    fn info(&self, path: &[u8], follow: bool) -> Result<FileInfo, Posix> {
        let full = self.full(path);
        let m = if follow {
            std::fs::metadata(&full)?
        } else {
            std::fs::symlink_metadata(&full)?
        };
        let mut info = info_of(&m);
        let full = c_text(full.as_os_str().as_bytes())?;
        // SAFETY: the path is a NUL-terminated text.
        unsafe {
            info.readable = libc::access(full.as_ptr(), libc::R_OK) == 0;
            info.writable = libc::access(full.as_ptr(), libc::W_OK) == 0;
        }
        Ok(info)
    }
    fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>, Posix> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.full(path))? {
            names.push(entry?.file_name().into_vec());
        }
        Ok(names)
    }
    fn read_link(&self, path: &[u8]) -> Result<Vec<u8>, Posix> {
        let to = std::fs::read_link(self.full(path))?;
        Ok(to.into_os_string().into_vec())
    }
    fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), Posix> {
        match std::fs::rename(self.full(from), self.full(to)).map_err(Posix::from) {
            Err(Posix("enotempty")) => Err(Posix("eexist")),
            Err(_) if from == b"/" => Err(INVALID),
            r => r,
        }
    }
    fn hard_link(&self, existing: &[u8], new: &[u8]) -> Result<(), Posix> {
        let (existing, new) = (self.full_c(existing)?, self.full_c(new)?);
        // SAFETY: the paths are NUL-terminated texts.
        done(unsafe { libc::link(existing.as_ptr(), new.as_ptr()) })
    }
    fn soft_link(&self, existing: &[u8], new: &[u8]) -> Result<(), Posix> {
        let (existing, new) = (c_text(existing)?, self.full_c(new)?);
        // SAFETY: the paths are NUL-terminated texts.
        done(unsafe { libc::symlink(existing.as_ptr(), new.as_ptr()) })
    }
    fn make_dir(&self, path: &[u8]) -> Result<(), Posix> {
        let path = self.full_c(path)?;
        // SAFETY: the path is a NUL-terminated text.
        done(unsafe { libc::mkdir(path.as_ptr(), 0o777) })
    }
    fn del_file(&self, path: &[u8]) -> Result<(), Posix> {
        let path = self.full_c(path)?;
        // SAFETY: the path is a NUL-terminated text.
        match done(unsafe { libc::unlink(path.as_ptr()) }) {
            Err(Posix("eisdir")) => Err(Posix("eperm")),
            r => r,
        }
    }
    fn del_dir(&self, path: &[u8]) -> Result<(), Posix> {
        let full = self.full(path);
        let c = c_text(full.as_os_str().as_bytes())?;
        // SAFETY: the path is a NUL-terminated text.
        match done(unsafe { libc::rmdir(c.as_ptr()) }) {
            Err(Posix("enotempty" | "eexist")) => {
                let id = |p: &Path| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino()));
                let here = PathBuf::from(std::ffi::OsString::from_vec(self.current_dir()));
                if id(&full).is_some() && id(&full) == id(&here) {
                    return Err(INVALID);
                }
                Err(Posix("eexist"))
            }
            r => r,
        }
    }
    fn set_permissions(&self, path: &[u8], mode: u32) -> Result<(), Posix> {
        let path = self.full_c(path)?;
        let mode = mode & 0o6777;
        // SAFETY: the path is a NUL-terminated text.
        let set = |mode: u32| done(unsafe { libc::chmod(path.as_ptr(), mode as libc::mode_t) });
        // Some systems refuse the set-id bits alone.
        set(mode).or_else(|_| set(mode & 0o777))
    }
    fn set_owner(&self, path: &[u8], user: Option<u32>, group: Option<u32>) -> Result<(), Posix> {
        Ok(std::os::unix::fs::chown(self.full(path), user, group)?)
    }
    fn set_times(&self, path: &[u8], accessed: i64, modified: i64) -> Result<(), Posix> {
        let path = self.full_c(path)?;
        let at = |s: i64| libc::timespec {
            tv_sec: s as libc::time_t,
            tv_nsec: 0,
        };
        let times = [at(accessed), at(modified)];
        // SAFETY: the path is a NUL-terminated text, the times are two whole values.
        done(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) })
    }
    fn set_current_dir(&self, path: &[u8]) -> Result<(), Posix> {
        if path.is_empty() {
            return Err(Posix("enoent"));
        }
        match Door::set_current_dir(self, path) {
            Ok(()) => Ok(()),
            Err(super::DoorError::Directory { cause, .. }) => Err(cause.into()),
            Err(_) => Err(INVALID),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("beamr-files-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn paths_are_relative_to_the_directory_of_the_vm() {
        let dir = scratch("relative");
        let door = LiveDoor::new();
        Files::set_current_dir(&door, dir.as_os_str().as_bytes()).unwrap();
        door.make_dir(b"sub").unwrap();
        assert_eq!(door.make_dir(b"sub"), Err(Posix("eexist")));
        let write = OpenModes {
            write: true,
            ..OpenModes::default()
        };
        let mut f = door.open(b"sub/a", write).unwrap();
        f.write(&[b"one ", b"two"]).unwrap();
        f.close().unwrap();
        assert_eq!(std::fs::read(dir.join("sub/a")).unwrap(), b"one two");
        assert_eq!(door.del_dir(b"sub"), Err(Posix("eexist")));
        assert_eq!(door.del_dir(b"."), Err(Posix("einval")));
        assert_eq!(door.list(b"sub").unwrap(), [b"a".to_vec()]);
        assert_eq!(door.info(b"", true), Err(Posix("enoent")));
        assert_eq!(
            Files::info(&door, b"sub/a", true).map(|i| (i.size, i.kind)),
            Ok((7, FileKind::Regular))
        );
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn positions() {
        let dir = scratch("positions");
        let door = LiveDoor::new();
        let path = dir.join("f");
        let path = path.as_os_str().as_bytes();
        let both = OpenModes {
            read: true,
            write: true,
            ..OpenModes::default()
        };
        let mut f = door.open(path, both).unwrap();
        f.write(&[b"0123456789"]).unwrap();
        let mut b = [0; 4];
        assert_eq!(f.read_at(8, &mut b), Ok(2));
        assert_eq!(f.seek(Whence::End, -3), Ok(7));
        assert_eq!(f.seek(Whence::Start, -1), Err(INVALID));
        f.truncate().unwrap();
        assert_eq!(f.read(&mut b), Ok(0));
        f.write_at(1, &[b"ab"]).unwrap();
        assert_eq!(f.seek(Whence::Start, 0), Ok(0));
        assert_eq!((f.read(&mut b), &b), (Ok(4), b"0ab3"));
        assert_eq!(door.open(b"/", both).err(), Some(Posix("eisdir")));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
