//! Where mutants run: a cooperative VM whose tenant may compute, send and (in some VMs) spawn.
//!
//! A mutant is called by drivers (`hostile_driver.erl`), trusted processes that call its functions over and over and catch
//! what they raise, several at a time, with arguments that differ from driver to driver: half of them are calls that the
//! file it was made of answered ([`Stage::rehearse`]). Drivers go on until the mutant has spent its reductions.

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

const DRIVER: &[u8] = include_bytes!("hostile_driver.beam");

/// Words that the heap of one process may have.
const HEAP_LIMIT: usize = 1 << 20;
/// Bytes that the tenant may have.
pub const MEMORY_BUDGET: i64 = 32 << 20;
/// Drivers that run at the same time.
const DRIVERS: usize = 3;
/// Different calls that a driver makes.
const CALLS: usize = 40;
/// How often it makes each.
const ROUNDS: usize = 24;
/// Groups of drivers that a mutant gets at most: enough for functions that spend one reduction.
const GROUPS: usize = 64;
/// Reductions of a driver for one call, the call itself included.
const OVERHEAD: u64 = 2;
/// Calls that a file gets in a rehearsal, for each function.
const TRIES: usize = 40;

/// What became of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// Its tables could be read.
    pub decoded: bool,
    /// It passed the validator.
    pub valid: bool,
    /// It was loaded.
    pub loaded: bool,
    /// Calls made (by drivers that came to their end).
    pub calls: u64,
    /// Calls that returned a value.
    pub returned: u64,
    /// Reductions spent, those of the drivers not counted.
    pub reductions: u64,
}

/// A call that is worth making: a function, and which of the stage's arguments it takes.
#[derive(Clone, Debug)]
pub struct Call {
    function: String,
    arguments: Vec<usize>,
}

/// Modules that mutants may call: trusted, from folders.
struct Library(HashMap<String, PathBuf>);

impl ModuleLoader for Library {
    fn find(&self, module: &str) -> Result<Option<ModuleFile>, LoaderError> {
        if module == "hostile_driver" {
            return Ok(Some(ModuleFile {
                bytes: DRIVER.to_vec(),
                trust: Trust::Trusted,
                path: String::new(),
            }));
        }
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

/// A file that was loaded.
struct Loaded {
    module: Atom,
    exports: Vec<(Atom, u32)>,
    literals: Vec<Word>,
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
    /// A fresh VM. `library` are the files that mutants may call, by module name; `spawns`: they may make processes.
    pub fn new(library: HashMap<String, PathBuf>, spawns: bool) -> Stage {
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
        let mut granted = Capabilities::NONE
            .with(Capability::Pure)
            .with(Capability::ProcessLocal);
        if spawns {
            granted = granted.with(Capability::Spawn);
        }
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

    /// Loads a file and has its functions called until `reductions` are spent. `known` are calls that may work.
    pub fn run(
        &mut self,
        bytes: &[u8],
        reductions: u64,
        known: &[Call],
        r: &mut Random,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(loaded) = self.load(bytes, &mut outcome) else {
            return outcome;
        };
        let before = self.tenant.reductions();
        let mut overhead = 0;
        if outcome.loaded {
            for _ in 0..GROUPS {
                overhead += OVERHEAD * (DRIVERS * CALLS * ROUNDS) as u64;
                let enough = before + overhead + reductions;
                self.group(&loaded, known, enough, &mut outcome, r);
                let spent = self.tenant.reductions() - before;
                outcome.reductions = spent.saturating_sub(overhead);
                if outcome.reductions >= reductions || loaded.exports.is_empty() {
                    break;
                }
            }
        }
        self.unload(loaded.module);
        outcome
    }

    /// The calls of a file, not a mutant, that return or take long.
    pub fn rehearse(&mut self, bytes: &[u8], r: &mut Random) -> Vec<Call> {
        let mut known = Vec::new();
        let mut outcome = Outcome::default();
        let Some(loaded) = self.load(bytes, &mut outcome) else {
            return known;
        };
        for (function, arity) in &loaded.exports {
            let function = self.vm.tables.atoms.text(*function).to_owned();
            for _ in 0..if *arity == 0 { 1 } else { TRIES } {
                let call = Call {
                    function: function.clone(),
                    arguments: (0..*arity).map(|_| r.below(self.arguments.len())).collect(),
                };
                let before = self.tenant.reductions();
                let pids = [self.drive(loaded.module, &[self.call(&call)], 1)];
                self.watch(&pids, before + 20_000, r);
                let (_, returned) = self.collect(&pids);
                let spent = self.tenant.reductions() - before;
                if returned > 0 || spent > 40 {
                    // What runs for long is worth most.
                    let weight = (spent / 40).clamp(1, 8);
                    known.extend((0..weight).map(|_| call.clone()));
                }
            }
        }
        self.unload(loaded.module);
        known
    }

    fn load(&mut self, bytes: &[u8], outcome: &mut Outcome) -> Option<Loaded> {
        let table = self.tenant.modules.clone();
        let image = match table.prepare(bytes, Trust::Untrusted, None) {
            Ok(image) => image,
            Err(e) => {
                outcome.decoded = !matches!(e, LoadError::File(_));
                outcome.valid = outcome.decoded && !matches!(e, LoadError::Invalid(_));
                self.refused = outcome.valid.then(|| e.to_string());
                return None;
            }
        };
        (outcome.decoded, outcome.valid) = (true, true);
        let exports = image.lowered.exports.iter().map(|e| (e.0, e.1));
        let mut loaded = Loaded {
            module: image.module(),
            exports: exports.collect(),
            literals: image.lowered.literals.clone(),
        };
        // What every module has says little.
        let text = |a: Atom| self.vm.tables.atoms.text(a) == "module_info";
        if loaded.exports.iter().any(|e| !text(e.0)) && loaded.exports.len() > 2 {
            loaded.exports.retain(|e| !text(e.0));
        }
        let finished = table.finish(&[image]);
        self.refused = finished.as_ref().err().map(|e| e.to_string());
        outcome.loaded = finished.is_ok();
        Some(loaded)
    }

    /// Function and argument list.
    fn call(&self, call: &Call) -> (Word, Vec<Word>) {
        let function = self.vm.tables.atoms.intern(&call.function);
        let arguments = call.arguments.iter().map(|i| self.arguments[*i]);
        (
            function.map_or(Word::NIL, |f| f.word()),
            arguments.collect(),
        )
    }

    fn any_call(&self, loaded: &Loaded, known: &[Call], r: &mut Random) -> (Word, Vec<Word>) {
        if !known.is_empty() && !r.one_in(3) {
            return self.call(&known[r.below(known.len())]);
        }
        let Some((function, arity)) = r.pick(&loaded.exports) else {
            return (Word::NIL, Vec::new());
        };
        let argument = |_| {
            if r.one_in(8)
                && let Some(l) = r.pick(&loaded.literals)
            {
                return l;
            }
            r.pick(&self.arguments).unwrap_or(Word::NIL)
        };
        (function.word(), (0..arity).map(argument).collect())
    }

    /// Starts a driver.
    fn drive(&self, module: Atom, calls: &[(Word, Vec<Word>)], rounds: usize) -> Word {
        let mut f = Fragment::with_capacity(1024);
        let mut list = Word::NIL;
        for (function, args) in calls {
            let args = f.list(args.iter().copied());
            let call = f.tuple(&[*function, args]);
            list = f.cons(call, list);
        }
        if self.loud {
            let t = &self.vm.tables;
            let limit = beamr_term::format::FormatLimit::items(4000);
            let text = beamr_term::format::format_term(t, list, limit);
            println!(
                "{}: {}",
                t.atoms.text(module),
                String::from_utf8_lossy(&text)
            );
        }
        let args = f.list([module.word(), list, Word::fixnum(rounds as i64)]);
        let atom = |text: &str| {
            self.vm
                .tables
                .atoms
                .intern(text)
                .map_or(Word::NIL, |a| a.word())
        };
        let start = Start::Apply(atom("hostile_driver"), atom("run"), args);
        let options = SpawnOptions::default();
        let pid = self.vm.spawn(&self.tenant, start, &options, None);
        pid.unwrap_or(Word::NIL)
    }

    /// Lets processes run until they ended or the tenant spent so many reductions; those that wait get messages, then end.
    fn watch(&self, pids: &[Word], reductions: u64, r: &mut Random) {
        let mut nudges = 0;
        while self.tenant.reductions() < reductions && pids.iter().any(|p| self.vm.is_alive(*p)) {
            if !self.vm.run_until_idle(1).idle {
                continue;
            }
            nudges += 1;
            if nudges > 4 {
                break;
            }
            for p in pids {
                let m = r.pick(&self.arguments).unwrap_or(Word::NIL);
                self.vm.send(*p, Carried::copy(m));
            }
        }
        for _ in 0..64 {
            if self.vm.process_count() == 0 {
                return;
            }
            for p in self.vm.pids() {
                self.vm.exit(p, Carried::immediate(atoms::KILL));
            }
            self.vm.run_until_idle(1000);
        }
        panic!("a killed process lives");
    }

    /// How many drivers came to their end, and how many calls of theirs returned.
    fn collect(&self, pids: &[Word]) -> (u64, u64) {
        let (mut ended, mut returned) = (0, 0);
        for p in pids {
            let Some(end) = self.vm.exits.take(p.local_number()) else {
                continue;
            };
            let tag = end.reason.term.as_tuple().and_then(|t| t.first().copied());
            let tag = tag.and_then(Word::as_atom);
            assert!(
                tag.is_none_or(|t| self.vm.tables.atoms.text(t) != "vm_panic"),
                "the VM panicked"
            );
            if let Some(n) = end.result.as_ref().and_then(|r| r.term.as_small()) {
                ended += 1;
                returned += n as u64;
            }
        }
        (ended, returned)
    }

    /// Runs a group of drivers until they are done or the tenant spent so many reductions.
    fn group(
        &self,
        loaded: &Loaded,
        known: &[Call],
        reductions: u64,
        outcome: &mut Outcome,
        r: &mut Random,
    ) {
        let pids = [(); DRIVERS].map(|()| {
            let calls: Vec<_> = (0..CALLS)
                .map(|_| self.any_call(loaded, known, r))
                .collect();
            self.drive(loaded.module, &calls, ROUNDS)
        });
        self.watch(&pids, reductions, r);
        let (ended, returned) = self.collect(&pids);
        outcome.calls += ended * (CALLS * ROUNDS) as u64;
        outcome.returned += returned;
    }

    fn unload(&mut self, module: Atom) {
        let table = &self.tenant.modules;
        // A module that waits for its `on_load` function does not come.
        let _ = table.finish_on_load(module, false);

        table.purge(module);
        let _ = table.delete(module);
        table.purge(module);
        self.vm.give_up_purged();
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
