//! A cooperative VM with the interpreter and all natives, that loads test modules on first call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beamr_abi::NativeTable;
use beamr_interp::Interp;
use beamr_term::{AtomTable, Build, Fragment, Release, Tables, Word};
use beamr_vm::code::loader::{LoaderError, ModuleFile, ModuleLoader};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, LoadError, ModuleTable, Trust};
use beamr_vm::door::LiveDoor;
use beamr_vm::engine::Engine;
use beamr_vm::process::VmProcessSide;
use beamr_vm::vm::{Vm, VmOptions, VmParts};

/// Modules by name.
pub struct Files {
    files: HashMap<&'static str, &'static [u8]>,
    trust: Trust,
    /// What could not be loaded.
    pub failures: Mutex<Vec<String>>,
}

impl ModuleLoader for Files {
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError> {
        Ok(self.files.get(module).map(|bytes| ModuleFile {
            bytes: bytes.to_vec(),
            trust: self.trust,
            path: module.to_owned(),
        }))
    }
    fn failed(&self, module: &str, _: &str, why: &LoadError) {
        let mut failures = self.failures.lock().unwrap();
        failures.push(format!("{module}: {why}"));
    }
}

pub struct World {
    pub vm: Arc<Vm>,
    pub files: Arc<Files>,
}

impl World {
    pub fn new(files: &[(&'static str, &'static [u8])], trust: Trust) -> World {
        Self::of_release(Release::OTP25, files, trust)
    }
    pub fn of_release(
        release: Release,
        files: &[(&'static str, &'static [u8])],
        trust: Trust,
    ) -> World {
        let natives = beamr_natives::table(release).unwrap();
        Self::with(release, files, trust, natives, VmOptions::default(), |_| {
            Arc::new(Interp)
        })
    }
    /// With other natives or another engine.
    pub fn with(
        release: Release,
        files: &[(&'static str, &'static [u8])],
        trust: Trust,
        natives: NativeTable,
        options: VmOptions,
        engine: impl FnOnce(&Tables) -> Arc<dyn Engine>,
    ) -> World {
        let tables = Tables::new(Arc::new(AtomTable::new(0)), release);
        let engine = engine(&tables);
        let natives = Arc::new(natives);
        let server = CodeServer::new(tables.clone(), engine.clone(), natives).unwrap();
        let files = Arc::new(Files {
            files: files.iter().copied().collect(),
            trust,
            failures: Mutex::default(),
        });
        let loader: Arc<dyn ModuleLoader> = files.clone();
        let modules = ModuleTable::new(server.clone(), 0, Capabilities::ALL, Some(loader));
        let parts = VmParts {
            tables,
            engine,
            server,
            modules: Arc::new(modules.unwrap()),
            processes: Arc::new(VmProcessSide),
            door: Arc::new(LiveDoor::new()),
        };
        let options = VmOptions {
            workers: 0,

            ..options
        };
        let vm = Vm::new(parts, options).unwrap();
        World { vm, files }
    }
    /// Runs `module:function(args...)` as a process and gives its exit reason as text.
    pub fn exit_of(&self, module: &str, function: &str, args: &[i64]) -> String {
        self.exit_with(module, function, |_| {
            args.iter().map(|a| Word::fixnum(*a)).collect()
        })
    }
    /// The same with arguments of any kind.
    pub fn exit_with(
        &self,
        module: &str,
        function: &str,
        args: impl FnOnce(&mut Fragment) -> Vec<Word>,
    ) -> String {
        let t = &self.vm.tables;
        let (m, f) = (
            t.atoms.intern(module).unwrap(),
            t.atoms.intern(function).unwrap(),
        );
        let mut fragment = Fragment::with_capacity(64);
        let args = args(&mut fragment);
        let args = fragment.list(args);
        let pid = self.vm.spawn_mfa(m, f, args).unwrap();
        let end = self
            .vm
            .run_until_exit(pid, Some(Duration::from_secs(30)))
            .unwrap();
        show(t, end.reason.term)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.vm.shutdown();
    }
}

pub fn show(tables: &Tables, term: Word) -> String {
    let limit = beamr_term::format::FormatLimit::items(1_000_000);
    String::from_utf8(beamr_term::format::format_term(tables, term, limit)).unwrap()
}
