//! Processes, signals, timers, names and the scheduler, with processes written in Rust on a cooperative VM: one
//! thread, a clock that the test moves, so that every run is the same.

mod cooperative;
mod dirty;
mod exits;
mod info;
mod links;
mod messages;
mod monitors;
mod spawns;
#[cfg(feature = "threads")]
mod threads;
mod timers;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use beamr_abi::{Ctx, Escape, ExceptionClass, NativeEntry, NativeTable, Pending, Regs};
use beamr_term::format::{FormatLimit, format_term};
use beamr_term::{Atom, AtomTable, Release, Tables, Word};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, ModuleTable};
use beamr_vm::door::{Door, DoorError, Stream};
use beamr_vm::engine::{CodePos, Emitted, Engine, EngineError, Fixed, Stop};
use beamr_vm::lower::Lowered;
use beamr_vm::native_process::NativeStep;
use beamr_vm::process::spawn::{SpawnOptions, Start};
use beamr_vm::process::{VmProcessSide, process};
use beamr_vm::rt::{WaitOutcome, next_message, remove_message, timeout, wait_timeout};
use beamr_vm::vm::{Vm, VmOptions, VmParts};

/// An engine that runs nothing: all processes here are native.
struct NoEngine;

static POSITIONS: [u64; 3] = [0; 3];

impl Engine for NoEngine {
    fn name(&self) -> &'static str {
        "none"
    }
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError> {
        Ok(Emitted {
            native_calls: Vec::new(),
            start: 0,
            end: 0,
            labels: vec![std::ptr::null(); module.label_count as usize + 1],
            lines: Vec::new(),
            functions: Vec::new(),
            memory: Box::new(()),
        })
    }
    fn native_stub(&self, _: &'static NativeEntry) -> CodePos {
        &raw const POSITIONS[0]
    }
    fn fixed(&self, which: Fixed) -> CodePos {
        match which {
            Fixed::Apply => &raw const POSITIONS[0],
            Fixed::NormalExit => &raw const POSITIONS[1],
            Fixed::TraceReturn => &raw const POSITIONS[2],
        }
    }
    unsafe fn run(&self, _: &mut Regs) -> Stop {
        Stop::Exited
    }
}

#[derive(Default)]
pub struct TestClock(AtomicU64);

impl TestClock {
    /// Moves the time on.
    pub fn advance_ms(&self, ms: u64) {
        self.0.fetch_add(ms * 1_000_000, Ordering::SeqCst);
    }
}

/// The time that the test says; nothing else of the outside.
impl Door for TestClock {
    fn monotonic_time(&self) -> i64 {
        self.0.load(Ordering::SeqCst) as i64
    }
    fn system_time(&self) -> i64 {
        self.monotonic_time()
    }
    fn cpu_time(&self) -> i64 {
        0
    }
    fn local_offset(&self, _: i64) -> (i64, bool) {
        (0, false)
    }
    fn entropy(&self, _: &mut [u8]) -> Result<(), DoorError> {
        Err(DoorError::Entropy("none in tests".into()))
    }
    fn env(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
    fn set_env(&self, _: &[u8], _: Option<&[u8]>) -> Result<(), DoorError> {
        Err(DoorError::Environment)
    }
    fn env_list(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        Vec::new()
    }
    fn current_dir(&self) -> Vec<u8> {
        b"/".to_vec()
    }
    fn set_current_dir(&self, _: &[u8]) -> Result<(), DoorError> {
        Err(DoorError::Environment)
    }
    fn os_pid(&self) -> u32 {
        0
    }
    fn host_name(&self) -> String {
        "nowhere".into()
    }
    fn write(&self, _: Stream, _: &[u8]) -> Result<(), DoorError> {
        Ok(())
    }
    fn read(&self, _: &mut [u8]) -> Result<usize, DoorError> {
        Ok(0)
    }
    fn pause(&self, at_most: std::time::Duration) -> bool {
        self.0
            .fetch_add(at_most.as_nanos() as u64, Ordering::SeqCst);
        true
    }
}

/// A VM under test and what its processes said.
pub struct World {
    pub vm: Arc<Vm>,
    pub clock: Arc<TestClock>,
    pub said: Said,
}

/// Lines in the order in which processes said them.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    pub fn say(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }
    /// Says a term, pids as they are.
    pub fn term(&self, ctx: &Ctx, label: &str, term: Word) {
        self.say(format!("{label} {}", show(ctx.tables(), term)));
    }
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

pub fn show(tables: &Tables, term: Word) -> String {
    String::from_utf8(format_term(tables, term, FormatLimit::NONE)).unwrap()
}

pub fn world() -> World {
    world_with(VmOptions {
        workers: 0,
        ..VmOptions::default()
    })
}

pub fn world_with(options: VmOptions) -> World {
    world_of(Arc::new(NoEngine), options)
}

pub fn world_of(engine: Arc<dyn Engine>, options: VmOptions) -> World {
    let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP27);
    let clock = Arc::new(TestClock::default());
    let (server, modules) = code(&tables, &engine);
    let vm = Vm::new(
        VmParts {
            tables,
            engine,
            server,
            modules,
            processes: Arc::new(VmProcessSide),
            door: clock.clone(),
        },
        options,
    )
    .unwrap();
    World {
        vm,
        clock,
        said: Said::default(),
    }
}

fn code(tables: &Arc<Tables>, engine: &Arc<dyn Engine>) -> (Arc<CodeServer>, Arc<ModuleTable>) {
    let natives = Arc::new(NativeTable::default());
    let server = CodeServer::new(tables.clone(), engine.clone(), natives).unwrap();
    let table = ModuleTable::new(server.clone(), 0, Capabilities::ALL, None).unwrap();
    (server, Arc::new(table))
}

impl Drop for World {
    fn drop(&mut self) {
        self.vm.shutdown();
    }
}

/// What a step of a script came to.
pub enum Flow {
    /// On to the next step, in the same turn.
    Next,
    /// This step again, in the next turn.
    Again,
    /// This step again when something has come.
    Wait,
    /// The end.
    Exit(Word),
}

pub type Step = Box<dyn FnMut(&mut Ctx) -> Flow + Send>;

/// A step.
pub fn step(f: impl FnMut(&mut Ctx) -> Flow + Send + 'static) -> Step {
    Box::new(f)
}

/// A process that does its steps and ends normally.
pub fn script(steps: Vec<Step>) -> Start {
    let mut steps = steps;
    let mut at = 0;
    Start::Native(Box::new(move |ctx: &mut Ctx| {
        loop {
            let Some(step) = steps.get_mut(at) else {
                return NativeStep::Exit(beamr_term::atoms::NORMAL.word());
            };
            match step(ctx) {
                Flow::Next => at += 1,
                Flow::Again => return NativeStep::Continue,
                Flow::Wait => return NativeStep::Wait,
                Flow::Exit(reason) => return NativeStep::Exit(reason),
            }
        }
    }))
}

/// Turns the outcome of a native into a flow: its exception ends the process with the reason.
pub fn native<T>(ctx: &mut Ctx, r: Result<T, Escape>) -> Result<T, Flow> {
    r.map_err(|_| match ctx.take_pending() {
        Pending::Raise(r) => {
            process(ctx).end(ExceptionClass::Error, r.reason, false);
            Flow::Exit(r.reason)
        }
        // An end by signal is found by the scheduler.
        _ => Flow::Wait,
    })
}

/// `?` for flows.
macro_rules! flow {
    ($e:expr) => {
        match $e {
            Ok(v) => v,
            Err(f) => return f,
        }
    };
}
pub(crate) use flow;

/// Receives one message and says it.
pub fn receive(said: &Said, label: &'static str) -> Step {
    let said = said.clone();
    step(move |ctx| match next_message(ctx) {
        Err(_) | Ok(None) => Flow::Wait,
        Ok(Some(m)) => {
            said.term(ctx, label, m);
            remove_message(ctx);
            Flow::Next
        }
    })
}

/// Waits for so many milliseconds without looking at messages.
pub fn sleep(ms: i64) -> Step {
    step(move |ctx| {
        loop {
            match wait_timeout(ctx, Word::fixnum(ms)) {
                WaitOutcome::Sleep => return Flow::Wait,
                WaitOutcome::Retry => beamr_vm::rt::loop_rec_end(ctx),
                WaitOutcome::TimedOut => {
                    timeout(ctx);
                    return Flow::Next;
                }
                WaitOutcome::BadTimeout => panic!("bad timeout"),
            }
        }
    })
}

/// Stays until something ends it.
pub fn forever() -> Step {
    step(|_| Flow::Wait)
}

/// Gives the others a turn.
pub fn pause(turns: usize) -> Step {
    let mut left = turns;
    step(move |_| {
        if left == 0 {
            return Flow::Next;
        }
        left -= 1;
        Flow::Again
    })
}

impl World {
    pub fn atom(&self, text: &str) -> Atom {
        self.vm.tables.atoms.intern(text).unwrap()
    }
    pub fn spawn(&self, steps: Vec<Step>) -> Word {
        let ns = self.vm.default_namespace();
        self.vm
            .spawn(&ns, script(steps), &SpawnOptions::default(), None)
            .unwrap()
    }
    /// Runs until nothing can run, and gives what was said.
    pub fn run(&self) -> Vec<String> {
        for _ in 0..100 {
            if self.vm.run_until_idle(100_000).idle {
                return self.said.take();
            }
        }
        panic!("never idle: {:?}", self.said.take());
    }
    /// The exit reason of a process that has ended.
    pub fn exit_of(&self, pid: Word) -> String {
        let r = self
            .vm
            .run_until_exit(pid, Some(std::time::Duration::ZERO))
            .unwrap();
        show(&self.vm.tables, r.reason.term)
    }
}
