//! Where mutants run: a cooperative VM whose tenant may only compute.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use beamr_abi::Capability;
use beamr_interp::Interp;
use beamr_term::{Atom, AtomTable, Build, Fragment, Release, Tables, Word, atoms, maps};
use beamr_vm::code::loader::{LoaderError, ModuleFile, ModuleLoader};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, LoadError, ModuleTable, Trust};
use beamr_vm::door::LiveDoor;
use beamr_vm::engine::Engine;
use beamr_vm::process::spawn::{SpawnOptions, Start};
use beamr_vm::process::{Carried, MaxHeap, VmProcessSide};
use beamr_vm::vm::{Namespace, Vm, VmOptions, VmParts};

use super::mutate::Random;

/// Words that the heap of one process may have.
const HEAP_LIMIT: usize = 1 << 20;
/// Bytes that the tenant may have.
pub const MEMORY_BUDGET: i64 = 32 << 20;
/// Reductions that one file gets.
pub const REDUCTIONS: u64 = 100_000;
/// Turns that one call gets.
const TURNS: usize = 4;

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Its tables could be read.
    pub decoded: bool,
    /// It passed the validator.
    pub valid: bool,
    /// It was loaded.
    pub loaded: bool,
    /// Calls made.
    pub calls: u64,
    /// Calls that returned a value.
    pub returned: u64,
    /// Reductions spent.
    pub reductions: u64,
}

/// Modules that mutants may call: trusted, from folders.
struct Library(HashMap<String, PathBuf>);

impl ModuleLoader for Library {
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError> {
        let Some(path) = self.0.get(module) else {
            return Ok(None);
        };
        let text = path.to_string_lossy().into_owned();
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(ModuleFile {
                bytes,
                trust: Trust::Trusted,
                path: text,
            })),
            Err(e) => Err(LoaderError {
                path: text,
                cause: e.to_string(),
            }),
        }
    }
}

/// See the module.
pub struct Stage {
    vm: Arc<Vm>,
    tenant: Arc<Namespace>,
    /// What calls get as arguments.
    arguments: Vec<Word>,
    /// Why the last valid file was not loaded.
    pub refused: Option<String>,
    /// Tell of each call.
    pub loud: bool,
    _pool: Fragment,
}

impl Stage {
    /// A fresh VM. `library` are the files that mutants may call, by module name.
    pub fn new(library: HashMap<String, PathBuf>) -> Stage {
        let release = Release::OTP25;
        let tables = Tables::new(Arc::new(AtomTable::new(AtomTable::DEFAULT_LIMIT)), release);
        let engine: Arc<dyn Engine> = Arc::new(Interp);
        let natives = Arc::new(beamr_natives::table(release).expect("natives"));
        let server = CodeServer::new(tables.clone(), engine.clone(), natives).expect("server");
        let first = ModuleTable::new(server.clone(), 0, Capabilities::NONE, None);
        let parts = VmParts {
            tables: tables.clone(),
            engine,
            server: server.clone(),
            modules: Arc::new(first.expect("modules")),
            processes: Arc::new(VmProcessSide),
            door: Arc::new(LiveDoor::new()),
        };
        let options = VmOptions {
            workers: 0,
            process_limit: 1024,
            max_heap_size: (
                HEAP_LIMIT,
                MaxHeap {
                    error_logger: false,
                    ..MaxHeap::default()
                },
            ),
            verify_heaps: true,
            ..VmOptions::default()
        };
        let vm = Vm::new(parts, options).expect("vm");
        let granted = Capabilities::NONE
            .with(Capability::Pure)
            .with(Capability::ProcessLocal);
        let loader: Arc<dyn ModuleLoader> = Arc::new(Library(library));
        let tenant = vm
            .add_namespace(|id| ModuleTable::new(server, id, granted, Some(loader)).map(Arc::new))
            .expect("tenant");
        tenant.set_memory_limit(MEMORY_BUDGET);
        let mut pool = Fragment::with_capacity(4096);
        let arguments = arguments(&tables, &mut pool);
        Stage {
            vm,
            tenant,
            arguments,
            refused: None,
            loud: false,
            _pool: pool,
        }
    }

    /// Loads a file and calls what it exports, until [`REDUCTIONS`] are spent or `calls` are made.
    pub fn run(&mut self, bytes: &[u8], calls: u64, r: &mut Random) -> Outcome {
        let mut outcome = Outcome::default();
        let before = self.tenant.reductions();
        let table = self.tenant.modules.clone();
        let image = match table.prepare(bytes, Trust::Untrusted, None) {
            Ok(image) => image,
            Err(e) => {
                outcome.decoded = !matches!(e, LoadError::File(_));
                outcome.valid = outcome.decoded && !matches!(e, LoadError::Invalid(_));
                self.refused = outcome.valid.then(|| e.to_string());
                return outcome;
            }
        };
        (outcome.decoded, outcome.valid) = (true, true);
        let module = image.module();
        let exports: Vec<(Atom, u32)> = image.lowered.exports.iter().map(|e| (e.0, e.1)).collect();
        let area = image.lowered.literals.clone();
        let finished = table.finish(&[image]);
        self.refused = finished.as_ref().err().map(|e| e.to_string());
        if finished.is_ok() {
            outcome.loaded = true;
            for _ in 0..calls {
                if self.tenant.reductions() - before >= REDUCTIONS {
                    break;
                }
                let Some((function, arity)) = r.pick(&exports) else {
                    break;
                };
                outcome.calls += 1;
                outcome.returned += u64::from(self.call(module, function, arity, &area, r));
            }
        }
        outcome.reductions = self.tenant.reductions() - before;
        self.unload(module);
        outcome
    }

    /// One call in a process of its own; whether it returned.
    fn call(
        &mut self,
        module: Atom,
        function: Atom,
        arity: u32,
        literals: &[Word],
        r: &mut Random,
    ) -> bool {
        let mut fragment = Fragment::with_capacity(64);
        let args: Vec<Word> = (0..arity)
            .map(|_| {
                if r.one_in(8)
                    && let Some(l) = r.pick(literals)
                {
                    return l;
                }
                r.pick(&self.arguments).unwrap_or(Word::NIL)
            })
            .collect();
        let args = fragment.list(args);
        if self.loud {
            let t = &self.vm.tables;
            let limit = beamr_term::format::FormatLimit::items(400);
            let args = beamr_term::format::format_term(t, args, limit);
            println!(
                "{}:{} {}",
                t.atoms.text(module),
                t.atoms.text(function),
                String::from_utf8_lossy(&args)
            );
        }
        let start = Start::Apply(module.word(), function.word(), args);
        let options = SpawnOptions::default();
        let Ok(pid) = self.vm.spawn(&self.tenant, start, &options, None) else {
            return false;
        };
        let mut turns = 0;
        while turns < TURNS && self.vm.is_alive(pid) {
            let idle = self.vm.run_until_idle(1);
            turns += 1;
            if idle.idle && self.vm.is_alive(pid) {
                for _ in 0..3 {
                    let m = r.pick(&self.arguments).unwrap_or(Word::NIL);
                    self.vm.send(pid, Carried::copy(m));
                }
            }
        }
        if self.vm.is_alive(pid) {
            self.vm.exit(pid, Carried::immediate(atoms::KILL));
        }
        for _ in 0..1000 {
            if self.vm.run_until_idle(64).idle {
                break;
            }
        }
        assert_eq!(self.vm.process_count(), 0, "a killed process lives");
        let end = self.vm.exits.take(pid.local_number());
        let Some(end) = end else { return false };
        let tag = end.reason.term.as_tuple().and_then(|t| t.first().copied());
        let tag = tag.and_then(Word::as_atom);
        assert!(
            tag.is_none_or(|t| self.vm.tables.atoms.text(t) != "vm_panic"),
            "the VM panicked"
        );
        end.result.is_some()
    }

    fn unload(&mut self, module: Atom) {
        let table = &self.tenant.modules;
        // A module that waits for its `on_load` function does not come.
        let _ = table.finish_on_load(module, false);

        table.purge(module);
        let _ = table.delete(module);
        table.purge(module);
        for image in self.vm.server.purged() {
            let id = image.id;
            drop(image);
            // SAFETY: no process lives, hence no message; there are no tables.
            unsafe { self.vm.server.release(id) };
        }
    }

    /// Bytes that the tenant is charged for now.
    pub fn charged(&self) -> i64 {
        self.tenant.memory()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.vm.shutdown();
    }
}

fn arguments(t: &Tables, f: &mut Fragment) -> Vec<Word> {
    let atom = |text: &str| t.atoms.intern(text).expect("atom").word();
    let int = Word::fixnum;
    let mut out = vec![
        int(0),
        int(1),
        int(2),
        int(3),
        int(-1),
        int(10),
        int(255),
        int(1000),
        Word::small(Word::MAX_SMALL).unwrap_or(Word::NIL),
        Word::NIL,
        atom("true"),
        atom("undefined"),
        atom("a"),
        atom("ok"),
        Word::pid(0),
    ];
    let numbers: Vec<Word> = (0..12).map(|i| int(i * 7 % 12)).collect();
    out.push(f.list(numbers.iter().copied()));
    out.push(f.list([int(1), int(2), int(3)]));
    out.push(f.string("hello world"));
    out.push(f.string("a"));
    for n in [40, 300, 1000] {
        out.push(f.list((0..n).map(|i| int(i * 31 % 256))));
        let pairs: Vec<Word> = (0..n).map(|i| f.tuple(&[int(i * 7 % n), int(i)])).collect();
        out.push(f.list(pairs));
    }
    out.push(f.list_with_tail([int(1), int(2)], atom("tail")));
    let pairs: Vec<Word> = (0..5)
        .map(|i| f.tuple(&[int(i), atom(["a", "b", "c"][i as usize % 3])]))
        .collect();
    out.push(f.list(pairs.iter().copied()));
    out.push(pairs[0]);
    out.push(f.tuple(&[]));
    let empty = f.tuple(&[atom("a"), Word::NIL, Word::NIL]);
    out.push(empty);
    out.push(f.tuple(&[atom("ok"), int(1), int(2), int(3), int(4), int(5)]));
    out.push(f.tuple(&[int(3), int(4), empty]));
    out.push(f.binary(b""));
    out.push(f.binary(b"abc"));
    let long = f.binary(&[b'x'; 100]);
    out.push(long);
    out.push(f.sub_bits(long, 3, 77));
    out.push(f.float(1.5));
    out.push(f.float(-1e200));
    out.push(f.big(false, &[u64::MAX, 7]));
    out.push(f.big(true, &[1 << 62]));
    out.push(maps::empty(f));
    let pairs: Vec<(Word, Word)> = (0..3).map(|i| (int(i), atom("v"))).collect();
    out.push(maps::from_pairs(f, &pairs, t));
    let pairs: Vec<(Word, Word)> = (0..50).map(|i| (int(i), int(i))).collect();
    out.push(maps::from_pairs(f, &pairs, t));
    for (m, n, a) in [
        ("erlang", "is_atom", 1),
        ("erlang", "+", 2),
        ("lists", "reverse", 1),
        ("lists", "member", 2),
        ("erlang", "self", 0),
        ("nowhere", "f", 3),
    ] {
        let (m, n) = (atom(m), atom(n));
        if let (Some(ma), Some(na)) = (m.as_atom(), n.as_atom())
            && let Ok(id) = t.exports.id(ma, na, a)
        {
            out.push(f.export_fun(id, m, n, a));
        }
    }
    let deep = (0..200).fold(Word::NIL, |l, _| f.list([l]));
    out.push(deep);
    let nested: Vec<Word> = vec![out[15], out[17], deep, long];
    out.push(f.list(nested));
    out
}
