//! Services that open things: ports, distribution, completion rings.
//!
//! They are implemented outside this crate. A VM that is given none uses [`Disabled`], which refuses before any side
//! effect. Errors name the service, so that a program can be told what it lacks.

use std::sync::Arc;

/// Why a service did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The VM was made without it.
    #[error("{service} is disabled")]
    Disabled {
        /// Which.
        service: &'static str,
    },
    /// The operating system refused; `errno`'s name in small letters (`enoent`).
    #[error("{service}: {code}")]
    Os {
        /// Which.
        service: &'static str,
        /// The code.
        code: String,
    },
    /// The request makes no sense.
    #[error("{service}: {what}")]
    Invalid {
        /// Which.
        service: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The service is shutting down.
    #[error("{service} is shutting down")]
    ShuttingDown {
        /// Which.
        service: &'static str,
    },
}

/// What a port is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortRequest {
    /// A command line for the shell.
    Spawn {
        /// The command.
        command: Vec<u8>,
        /// Options.
        options: PortOptions,
    },
    /// A program with arguments.
    SpawnExecutable {
        /// The file.
        file: Vec<u8>,
        /// `arg0`, when it is not the file.
        arg0: Option<Vec<u8>>,
        /// The arguments.
        args: Vec<Vec<u8>>,
        /// Options.
        options: PortOptions,
    },
    /// A linked-in driver.
    Driver {
        /// Its name and arguments.
        command: Vec<u8>,
        /// Options.
        options: PortOptions,
    },
    /// A file.
    File {
        /// Its path.
        path: Vec<u8>,
        /// Options.
        options: PortOptions,
    },
    /// Open descriptors.
    Fd {
        /// To read from.
        input: i32,
        /// To write to.
        output: i32,
        /// Options.
        options: PortOptions,
    },
}

/// Options of a port that its service has to know. Packaging of data (`packet`, `line`, `stream`) is done by the VM.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PortOptions {
    /// Working directory.
    pub cd: Option<Vec<u8>>,
    /// Environment of the program, whole.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Descriptors 3 and 4 instead of 0 and 1.
    pub other_descriptors: bool,
    /// Only read from it.
    pub input_only: bool,
    /// Only write to it.
    pub output_only: bool,
    /// Standard error goes where standard output goes.
    pub stderr_to_stdout: bool,
    /// Report the exit status.
    pub exit_status: bool,
    /// Report the end of its output.
    pub eof: bool,
    /// No window (Windows).
    pub hide: bool,
}

/// Where a port's events go: the VM's port structure.
pub trait PortSink: Send + Sync {
    /// Bytes from the other side.
    fn data(&self, bytes: Vec<u8>);
    /// The other side closed its output.
    fn eof(&self);
    /// The program ended.
    fn exited(&self, status: i32);
    /// The port failed with a code (`epipe`).
    fn failed(&self, code: &str);
    /// Output that was queued has been taken: writers may go on.
    fn drained(&self);
}

/// The other end of an open port.
pub trait PortDriver: Send {
    /// Queues bytes. True when the queue is above its limit: writers should wait for [`PortSink::drained`].
    fn output(&mut self, bytes: Vec<u8>) -> Result<bool, ServiceError>;
    /// `port_control/3`.
    fn control(&mut self, operation: u32, data: &[u8]) -> Result<Vec<u8>, ServiceError>;
    /// The number of the OS process, if there is one.
    fn os_pid(&self) -> Option<u32>;
    /// Bytes that are queued.
    fn queued(&self) -> usize;
    /// Closes it: what is queued is still written, no event is told any more.
    fn close(&mut self);
}

/// Opens ports.
pub trait PortService: Send + Sync {
    /// Opens one.
    fn open(
        &self,
        request: &PortRequest,
        sink: Arc<dyn PortSink>,
    ) -> Result<Box<dyn PortDriver>, ServiceError>;
    /// How many descriptors it watches.
    fn watched(&self) -> usize;
    /// Ends the service.
    fn shutdown(&self) {}
}

/// Speaks to other nodes. Signals are in the external format of the distribution protocol.
pub trait Distribution: Send + Sync {
    /// Whether this node has a name and accepts connections.
    fn is_alive(&self) -> bool;
    /// Connects unless connected; blocks (not on a scheduler thread).
    fn connect(&self, node: &str) -> Result<(), ServiceError>;
    /// Closes the connection. False when there was none.
    fn disconnect(&self, node: &str) -> Result<bool, ServiceError>;
    /// Sends a control message and its payload. True when the connection is busy.
    fn send(&self, node: &str, control: &[u8], payload: &[u8]) -> Result<bool, ServiceError>;
    /// Connected nodes.
    fn nodes(&self) -> Vec<String>;
    /// Ends the service.
    fn shutdown(&self) {}
}

/// An operation of a completion ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoOp {
    /// Reads at an offset.
    Read {
        /// Descriptor.
        fd: i32,
        /// Bytes at most.
        len: usize,
        /// Where; `None` at the current position.
        at: Option<u64>,
    },
    /// Writes at an offset.
    Write {
        /// Descriptor.
        fd: i32,
        /// What.
        bytes: Vec<u8>,
        /// Where; `None` at the current position.
        at: Option<u64>,
    },
    /// Opens a file.
    Open {
        /// Path.
        path: Vec<u8>,
        /// `open(2)` flags.
        flags: i32,
        /// Mode of a new file.
        mode: u32,
    },
    /// Closes a descriptor.
    Close {
        /// Descriptor.
        fd: i32,
    },
    /// Makes data durable.
    Sync {
        /// Descriptor.
        fd: i32,
        /// Data only.
        data_only: bool,
    },
    /// Does nothing.
    Nop,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IoResult {
    /// A number (bytes written, a descriptor).
    Count(u64),
    /// Bytes read; empty at the end of the file.
    Bytes(Vec<u8>),
    /// An error code (`enoent`).
    Failed(String),
}

/// A completion ring.
pub trait Ring: Send + Sync {
    /// Starts an operation; `done` is called once, on a thread of the ring.
    fn submit(&self, op: IoOp, done: Box<dyn FnOnce(IoResult) + Send>) -> Result<(), ServiceError>;
    /// Ends the ring: refuses further operations and waits for those that run.
    fn shutdown(&self) {}
}

/// A service that a VM was made without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disabled(
    /// The service's name, as in the inventory (`ports`, `distribution`, `file-io-ring`).
    pub &'static str,
);

impl Disabled {
    fn refuse<T>(self) -> Result<T, ServiceError> {
        Err(ServiceError::Disabled { service: self.0 })
    }
}

impl PortService for Disabled {
    fn watched(&self) -> usize {
        0
    }
    fn open(
        &self,
        _: &PortRequest,
        _: Arc<dyn PortSink>,
    ) -> Result<Box<dyn PortDriver>, ServiceError> {
        self.refuse()
    }
}

impl Distribution for Disabled {
    fn is_alive(&self) -> bool {
        false
    }
    fn connect(&self, _: &str) -> Result<(), ServiceError> {
        self.refuse()
    }
    fn disconnect(&self, _: &str) -> Result<bool, ServiceError> {
        self.refuse()
    }
    fn send(&self, _: &str, _: &[u8], _: &[u8]) -> Result<bool, ServiceError> {
        self.refuse()
    }
    fn nodes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Ring for Disabled {
    fn submit(&self, _: IoOp, _: Box<dyn FnOnce(IoResult) + Send>) -> Result<(), ServiceError> {
        self.refuse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabled_services_name_themselves() {
        let d = Disabled("distribution");
        assert!(!d.is_alive() && d.nodes().is_empty());
        let e = d.connect("a@b").unwrap_err();
        assert_eq!(e.to_string(), "distribution is disabled");
        let done = Box::new(|_| panic!("nothing was started"));
        assert!(Disabled("file-io-ring").submit(IoOp::Nop, done).is_err());
    }
}
