//! Files: what natives of `prim_file` ask of the outside.
//!
//! Paths are bytes as the platform has them, relative ones are relative to the working directory of the VM (see
//! [`Door::current_dir`](super::Door::current_dir)). Errors are the names of POSIX error codes. The live implementation is
//! [`LiveDoor`](super::LiveDoor); [`NoFiles`] refuses everything.

/// A POSIX error code by its name in small letters (`enoent`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Posix(pub &'static str);

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenModes {
    /// To read.
    pub read: bool,
    /// To write. Alone, it truncates.
    pub write: bool,
    /// Every write goes to the end.
    pub append: bool,
    /// The file must not exist.
    pub exclusive: bool,
    /// Writes return when the data is on the disk.
    pub sync: bool,
    /// It must be a directory.
    pub directory: bool,
    /// A directory is not refused.
    pub any_type: bool,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A character or block device.
    Device,
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A symbolic link.
    Symlink,
    /// Anything else (pipes, sockets).
    Other,
}

/// What is known of a file: the fields of `#file_info{}`. Times are seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Bytes.
    pub size: u64,
    /// What it is.
    pub kind: FileKind,
    /// Whether the VM may read it.
    pub readable: bool,
    /// Whether the VM may write it.
    pub writable: bool,
    /// Last access.
    pub accessed: i64,
    /// Last change of its content.
    pub modified: i64,
    /// Last change of its description.
    pub changed: i64,
    /// Type and permission bits.
    pub mode: u32,
    /// Hard links.
    pub links: u32,
    /// The device it is on.
    pub device: u32,
    /// The device that it is.
    pub special_device: u32,
    /// Its number on the device.
    pub inode: u32,
    /// Its owner.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

/// Where a position counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    /// The first byte.
    Start,
    /// The current position.
    Current,
    /// The end.
    End,
}

/// How a part of a file is going to be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Nothing special.
    Normal,
    /// In no order.
    Random,
    /// From front to back.
    Sequential,
    /// Soon.
    WillNeed,
    /// Not soon.
    DontNeed,
    /// Once.
    NoReuse,
}

/// An open file. It is closed when it is dropped; [`OpenFile::close`] tells whether that went well.
pub trait OpenFile: Send {
    /// Reads until the buffer is full or the file ends; how many bytes.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Posix>;
    /// [`OpenFile::read`] from a position, leaving the current one.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, Posix>;
    /// Writes all parts in order.
    fn write(&mut self, parts: &[&[u8]]) -> Result<(), Posix>;
    /// [`OpenFile::write`] at a position, leaving the current one.
    fn write_at(&mut self, offset: u64, parts: &[&[u8]]) -> Result<(), Posix>;
    /// Moves the position; the new one.
    fn seek(&mut self, whence: Whence, offset: i64) -> Result<u64, Posix>;
    /// Waits until everything (only the data and what is needed to read it, if so) is on the disk.
    fn sync(&mut self, data_only: bool) -> Result<(), Posix>;
    /// Cuts the file at the current position.
    fn truncate(&mut self) -> Result<(), Posix>;
    /// Reserves space.
    fn allocate(&mut self, offset: u64, length: u64) -> Result<(), Posix>;
    /// Tells how a part is going to be used.
    fn advise(&mut self, offset: u64, length: u64, advice: Advice) -> Result<(), Posix>;
    /// What it is.
    fn info(&mut self) -> Result<FileInfo, Posix>;
    /// The bytes of the platform's handle.
    fn handle(&self) -> Vec<u8>;
    /// Closes it.
    fn close(self: Box<Self>) -> Result<(), Posix>;
}

/// A file system. The methods refuse unless they are implemented.
pub trait Files: Send + Sync {
    /// Opens a file.
    fn open(&self, _path: &[u8], _modes: OpenModes) -> Result<Box<dyn OpenFile>, Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Takes over a descriptor that is open already.
    fn adopt(&self, _descriptor: i32) -> Result<Box<dyn OpenFile>, Posix> {
        Err(NOT_SUPPORTED)
    }
    /// What a file is; of a symbolic link itself unless it is to be followed.
    fn info(&self, _path: &[u8], _follow: bool) -> Result<FileInfo, Posix> {
        Err(NOT_SUPPORTED)
    }
    /// The names in a directory, as the platform gives them.
    fn list(&self, _path: &[u8]) -> Result<Vec<Vec<u8>>, Posix> {
        Err(NOT_SUPPORTED)
    }
    /// What a symbolic link says.
    fn read_link(&self, _path: &[u8]) -> Result<Vec<u8>, Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Renames or moves.
    fn rename(&self, _from: &[u8], _to: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Makes the hard link `new`.
    fn hard_link(&self, _existing: &[u8], _new: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Makes the symbolic link `new`; what it says is not looked at.
    fn soft_link(&self, _existing: &[u8], _new: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Makes a directory.
    fn make_dir(&self, _path: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Deletes a file.
    fn del_file(&self, _path: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Deletes an empty directory.
    fn del_dir(&self, _path: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Sets permission bits.
    fn set_permissions(&self, _path: &[u8], _mode: u32) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Sets owner and group; `None` leaves one as it is.
    fn set_owner(
        &self,
        _path: &[u8],
        _user: Option<u32>,
        _group: Option<u32>,
    ) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Sets the times of last access and change.
    fn set_times(&self, _path: &[u8], _accessed: i64, _modified: i64) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
    /// Changes the working directory of the VM.
    fn set_current_dir(&self, _path: &[u8]) -> Result<(), Posix> {
        Err(NOT_SUPPORTED)
    }
}

/// What cannot be done here.
pub const NOT_SUPPORTED: Posix = Posix("enotsup");

/// No file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {}
