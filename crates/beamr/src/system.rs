//! A running system in its bare start: a VM over an OTP root, its loader and its I/O process.

use std::path::PathBuf;
use std::sync::Arc;

use beamr_interp::Interp;
use beamr_term::{AtomTable, Tables, Word, atoms};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, LoadError, ModuleTable, Trust};
use beamr_vm::door::{Door, LiveDoor, Stream};
use beamr_vm::process::VmProcessSide;
use beamr_vm::process::spawn::{SpawnError, SpawnOptions, Start};
use beamr_vm::vm::{StartError, Vm, VmOptions, VmParts};

use crate::io_server::IoServer;
use crate::loader::FolderLoader;
use crate::otp::OtpRoot;

/// What a bare system is made of.
pub struct BareOptions {
    /// Its OTP.
    pub otp: OtpRoot,
    /// Folders of beams in search order, trusted.
    pub paths: Vec<PathBuf>,
    /// Worker threads; 0 makes it cooperative.
    pub workers: usize,
    /// The way to the outside.
    pub door: Arc<dyn Door>,
}

impl BareOptions {
    /// One worker, the live door, no folders.
    pub fn new(otp: OtpRoot) -> BareOptions {
        BareOptions {
            otp,
            paths: Vec::new(),
            workers: 1,
            door: Arc::new(LiveDoor::new()),
        }
    }
}

/// Why a system did not start.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// A native is registered twice.
    #[error(transparent)]
    Natives(#[from] beamr_abi::NativeTableError),
    /// Code.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A thread.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A process.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// See the module.
pub struct System {
    /// The VM.
    pub vm: Arc<Vm>,
    /// The process that serves standard input and output: pid 0, registered as `user`.
    pub user: Word,
    /// The loader of the first namespace.
    pub loader: Arc<FolderLoader>,
}

impl System {
    /// Starts a bare system.
    pub fn bare(options: BareOptions) -> Result<System, SystemError> {
        let tables = Tables::new(
            Arc::new(AtomTable::new(AtomTable::DEFAULT_LIMIT)),
            options.otp.release,
        );
        let natives = Arc::new(beamr_natives::table(options.otp.release)?);
        let engine = Arc::new(Interp);
        let server = CodeServer::new(tables.clone(), engine.clone(), natives)?;
        let mut loader = FolderLoader::new().otp_root(&options.otp.path);
        for p in options.paths.into_iter().rev() {
            loader = loader.path(p, Trust::Trusted);
        }
        let loader = Arc::new(loader);
        let modules = Arc::new(ModuleTable::new(
            server.clone(),
            0,
            Capabilities::ALL,
            Some(loader.clone()),
        )?);
        let vm = Vm::new(
            VmParts {
                tables,
                engine,
                server,
                modules,
                processes: Arc::new(VmProcessSide),
                door: options.door,
            },
            VmOptions {
                workers: options.workers,
                ..VmOptions::default()
            },
        )?;
        let start = |stream, reads, name| -> Result<Word, SystemError> {
            let server = IoServer::new(&vm, stream, reads);
            let spawn = SpawnOptions {
                watched: false,
                ..SpawnOptions::default()
            };
            let pid = vm.spawn(
                &vm.default_namespace(),
                Start::Native(Box::new(server)),
                &spawn,
                None,
            )?;
            vm.name_process(pid, name);
            Ok(pid)
        };
        let user = start(Stream::Out, true, atoms::USER)?;
        start(Stream::Err, false, atoms::STANDARD_ERROR)?;
        Ok(System { vm, user, loader })
    }
    /// Spawns `module:function(args...)` with the system's I/O process as group leader. Its exit is noted.
    pub fn spawn(&self, module: Word, function: Word, args: Word) -> Result<Word, SpawnError> {
        self.vm.spawn(
            &self.vm.default_namespace(),
            Start::Apply(module, function, args),
            &SpawnOptions::default(),
            Some(self.user),
        )
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.vm.shutdown();
    }
}
