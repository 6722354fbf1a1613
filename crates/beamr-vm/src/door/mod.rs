//! The one door to the outside: clocks, entropy, environment, standard streams, and the services that open things.
//!
//! Natives and the VM read the outside through the [`Door`] of their VM and never otherwise, so
//! that a run can be recorded, replayed, simulated, or live in a browser. What belongs to an operating system process and is
//! not a VM's to change (working directory, environment, locale, signals) is kept per VM: a
//! door starts from a copy.
//!
//! [`live`] is the door of an ordinary program; [`files`] is what it says of files; `services` holds the traits of ports, distribution and rings with
//! the implementations that refuse.

pub mod files;
pub mod live;
#[cfg(unix)]
mod live_files;
#[cfg(unix)]
mod posix;
pub mod services;

use std::time::Duration;

pub use files::{Files, NoFiles};
pub use live::LiveDoor;
pub use services::{
    Disabled, Distribution, IoOp, IoResult, PortDriver, PortOptions, PortRequest, PortService,
    PortSink, Ring, ServiceError,
};

/// A standard stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A standard stream of either direction, as something that may be a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// Standard input.
    In,
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// What the outside did not give.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoorError {
    /// No source of entropy.
    #[error("no entropy: {0}")]
    Entropy(String),
    /// A stream failed.
    #[error("{stream:?}: {cause}")]
    Stream {
        /// Which.
        stream: Stream,
        /// Why.
        cause: std::io::Error,
    },
    /// There is no standard input.
    #[error("no standard input: {0}")]
    Input(String),
    /// A name or value that an environment cannot hold (NUL, `=` in a name, empty name).
    #[error("not a valid environment entry")]
    Environment,
    /// The directory does not exist or is not one.
    #[error("{path}: {cause}")]
    Directory {
        /// Which.
        path: String,
        /// Why.
        cause: std::io::Error,
    },
}

/// Everything that a VM learns of the world or does to it, but for the services.
///
/// Bytes of names, values and paths are as the platform has them.
pub trait Door: Send + Sync {
    /// Nanoseconds on a clock that never goes back; its zero means nothing.
    fn monotonic_time(&self) -> i64;
    /// Nanoseconds since 1970-01-01 UTC.
    fn system_time(&self) -> i64;
    /// Nanoseconds of processor time that this OS process has used.
    fn cpu_time(&self) -> i64;
    /// Seconds that local time is ahead of UTC at the time `utc` (seconds since 1970), and whether that is daylight
    /// saving time.
    fn local_offset(&self, utc: i64) -> (i64, bool);
    /// Fills the buffer with unpredictable bytes.
    fn entropy(&self, into: &mut [u8]) -> Result<(), DoorError>;

    /// The value of an environment variable.
    fn env(&self, name: &[u8]) -> Option<Vec<u8>>;
    /// Sets or (with `None`) removes an environment variable of the VM.
    fn set_env(&self, name: &[u8], value: Option<&[u8]>) -> Result<(), DoorError>;
    /// All environment variables, sorted by name.
    fn env_list(&self) -> Vec<(Vec<u8>, Vec<u8>)>;
    /// The VM's working directory.
    fn current_dir(&self) -> Vec<u8>;
    /// Changes the VM's working directory.
    fn set_current_dir(&self, to: &[u8]) -> Result<(), DoorError>;
    /// The number of the OS process.
    fn os_pid(&self) -> u32;
    /// The name of the machine, without domain.
    fn host_name(&self) -> String;
    /// Family and name of the operating system, as `os:type/0` has them.
    fn os_type(&self) -> (&'static str, &'static str) {
        ("unix", "linux")
    }
    /// The release of the operating system (`6.1.0-13-amd64`).
    fn os_release(&self) -> String {
        "0.0.0".to_owned()
    }
    /// Processors that may be used.
    fn processors(&self) -> usize {
        1
    }

    /// Its files; none unless it has some.
    fn files(&self) -> &dyn Files {
        &NoFiles
    }

    /// Writes all bytes to a stream.
    fn write(&self, stream: Stream, bytes: &[u8]) -> Result<(), DoorError>;
    /// Reads some bytes of standard input; 0 at its end. May block: not on a scheduler thread.
    fn read(&self, into: &mut [u8]) -> Result<usize, DoorError>;

    /// Whether a standard stream is a terminal.
    fn is_terminal(&self, _: Standard) -> bool {
        false
    }
    /// Columns and rows of the terminal that a standard stream is.
    fn window(&self, _: Standard) -> Option<(u16, u16)> {
        None
    }

    /// Puts the calling thread to sleep until `done` says so or the time is over. The simulated door moves its clock instead. The
    /// default sleeps. False where that is impossible (a browser's page must not wait).
    fn pause(&self, at_most: Duration) -> bool {
        if cfg!(target_family = "wasm") {
            return false;
        }
        std::thread::sleep(at_most);
        true
    }
}
