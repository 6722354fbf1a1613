//! A process without a VM: registers, a heap, and a module of hand-written ops.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

use beamr_abi::{Body, Ctx, Escape, Heap, NativeEntry, Pending, Regs, SavedArgs};
use beamr_interp::Interp;
use beamr_term::{Atom, AtomTable, Release, Tables, Word, atoms};
use beamr_vm::code::CodeServer;
use beamr_vm::engine::{Emitted, Engine, EngineError, Stop};
use beamr_vm::gc::{self, HeapOptions};
use beamr_vm::lower::op::Op;
use beamr_vm::lower::{Function, Lowered};
use beamr_vm::rt::{ProcessSide, Uncaught, WorkerCode};

/// A process that nobody asks anything of.
struct Nobody;
impl ProcessSide for Nobody {
    fn uncaught(&self, _: &mut Ctx, _: Uncaught) {}
    fn over_limit(&self, _: &mut Ctx) -> bool {
        false
    }
}

/// Bottom of the stack: ends the run with the registers as they are.
static STOP: NativeEntry = NativeEntry::new("test", "stop", 1, stop);
fn stop(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.escape(Pending::Exit))
}

/// A function: name, arity, code (labels are local numbers from 1; the entry is label 1 and must be in the code).
pub fn module(functions: &[(u32, Vec<Op>)]) -> Lowered {
    let mut code = Vec::new();
    let mut table = Vec::new();
    let mut labels = 0;
    for (i, (arity, ops)) in functions.iter().enumerate() {
        let entry = ops
            .iter()
            .find_map(|o| match o {
                Op::Label(l) => Some(*l),
                _ => None,
            })
            .expect("an entry label");
        code.push(Op::FuncInfo { function: i as u32 });
        table.push(Function {
            name: Atom::from_index(i as u32),
            arity: *arity,
            entry,
        });
        for o in ops {
            if let Op::Label(l) = o {
                labels = labels.max(*l + 1);
            }
        }
        code.extend(ops.iter().cloned());
    }
    Lowered {
        module: atoms::OK,
        image_id: 0,
        trusted: true,
        functions: table,
        exports: Vec::new(),
        lambdas: Vec::new(),
        code,
        label_count: labels,
        handlers: Vec::new(),
        locations: Vec::new(),
        files: Vec::new(),
        literals: Vec::new(),
        literal_area: None,
        on_load: None,
        md5: [0; 16],
        attributes: Vec::new(),
        compile_info: Vec::new(),
        nifs: Vec::new(),
        records: Vec::new(),
    }
}

/// A machine with one module.
pub struct Process {
    pub regs: Box<Regs>,
    pub code: Emitted,
    /// Reductions of a slice.
    pub slice: i64,
    lowered: Lowered,
    _body: Box<Body>,
    _worker: Box<WorkerCode>,
    _tables: Arc<Tables>,
    _exports: Vec<AtomicPtr<u64>>,
}

impl Process {
    pub fn new(lowered: Lowered) -> Process {
        Process::try_new(lowered).expect("emitted")
    }
    pub fn try_new(lowered: Lowered) -> Result<Process, EngineError> {
        let code = Interp.emit(&lowered)?;
        let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP27);
        let server = CodeServer::new(tables.clone(), Arc::new(Interp), Arc::default());
        let server = server.expect("a server without modules");
        let mut worker = Box::new(WorkerCode::new(server, Arc::new(Nobody)));
        let mut heap: Heap = gc::new_heap(233, &HeapOptions::default());
        // SAFETY: a fresh block has room for the word.
        unsafe {
            heap.stop = heap.stop.sub(1);
            *heap.stop = Interp.native_stub(&STOP) as usize as u64;
        }
        let mut body = Box::new(Body {
            heap,
            ip: std::ptr::null(),
            args: SavedArgs::default(),
            pid: Word::pid(1),
            group_leader: Word::pid(1),
            catches: 0,
            reductions: 0,
            over_limit: false,
            trace: Word::NIL,
        });
        let exports: Vec<AtomicPtr<u64>> = (0..16).map(|_| AtomicPtr::default()).collect();
        // SAFETY: zero is a valid bit pattern of words and floats; the context is written before use.
        let mut regs: Box<Regs> = unsafe {
            let mut r: Box<MaybeUninit<Regs>> = Box::new(MaybeUninit::zeroed());
            (&raw mut (*r.as_mut_ptr()).ctx).write(Ctx {
                body: &raw mut *body,
                fcalls: 4000,
                exports: exports.as_ptr(),
                instances: std::ptr::null(),
                tables: Arc::as_ptr(&tables),
                worker: (&raw mut *worker).cast(),
                pending: Pending::None,
                native: std::ptr::null(),
            });
            Box::from_raw(Box::into_raw(r).cast())
        };
        regs.x.fill(Word::NIL);
        Ok(Process {
            regs,
            code,
            slice: 4000,
            lowered,
            _body: body,
            _worker: worker,
            _tables: tables,
            _exports: exports,
        })
    }
    /// Runs function `f` once, until it stops.
    pub fn run(&mut self, f: usize) -> Stop {
        let ip = self.code.labels[self.lowered.functions[f].entry as usize];
        // SAFETY: the machine is consistent: code, stack and registers were made here.
        unsafe { Interp.run_from(&mut self.regs, ip) }
    }
    /// Calls function `f` with these arguments; runs through preemptions. Gives x0 and how often the slice ended.
    pub fn call(&mut self, f: usize, args: &[Word]) -> (Word, u32) {
        self.regs.x[..args.len()].copy_from_slice(args);
        let mut ip = self.code.labels[self.lowered.functions[f].entry as usize];
        let mut slices = 0;
        loop {
            self.regs.ctx.fcalls = self.slice;
            // SAFETY: the machine is consistent: code, stack and registers were made here.
            match unsafe { Interp.run_from(&mut self.regs, ip) } {
                Stop::Preempted => {
                    slices += 1;
                    let body = self.regs.ctx.body();
                    ip = body.ip;
                    let saved = body.args.as_slice().to_vec();
                    self.regs.x.fill(Word::NIL);
                    self.regs.x[..saved.len()].copy_from_slice(&saved);
                }
                Stop::Exited => {
                    // The stop stub is below the return address that was popped; put it back.
                    let heap = self.regs.ctx.heap();
                    assert_eq!(heap.stack_size(), 0, "the stack is balanced");
                    // SAFETY: the word was there before.
                    unsafe { heap.stop = heap.stop.sub(1) };
                    return (self.regs.x[0], slices);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
