//! An engine that gives positions and runs nothing, modules made of a few ops, a worker to call helpers with.

use std::sync::{Arc, Mutex};

use beamr_abi::{
    Body, Ctx, Escape, NativeEntry, NativeTable, Pending, Regs, SavedArgs, X_REGISTERS,
};
use beamr_term::{Atom, AtomTable, Build, Release, Tables, Word};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::{CodeServer, Image, ModuleTable};
use beamr_vm::engine::{CodePos, Emitted, Engine, EngineError, Fixed, Stop};
use beamr_vm::gc::{HeapOptions, free_heap, new_heap};
use beamr_vm::lower::op::Op;
use beamr_vm::lower::{Function, Lambda, Location, Lowered};
use beamr_vm::rt::{ProcessSide, Uncaught, WorkerCode};

/// One word per op that is no label or line; every native has its own stub.
pub struct PaperEngine {
    stubs: Mutex<Vec<(&'static NativeEntry, Box<u64>)>>,
    fixed: [u64; 3],
}

impl Engine for PaperEngine {
    fn name(&self) -> &'static str {
        "paper"
    }
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError> {
        let memory = vec![0u64; module.code.len() + 1].into_boxed_slice();
        let base = memory.as_ptr();
        let words = |ops: &[Op]| {
            let marks = |o: &&Op| matches!(o, Op::Label(_) | Op::Line(_));
            ops.len() - ops.iter().filter(marks).count()
        };
        let at = |i: usize| base as usize + words(&module.code[..i]) * 8;
        let mut labels = vec![std::ptr::null(); module.label_count as usize];
        let (mut lines, mut functions) = (Vec::new(), Vec::new());
        for (i, op) in module.code.iter().enumerate() {
            match op {
                Op::Label(l) => labels[*l as usize] = at(i) as CodePos,
                Op::Line(l) => lines.push((at(i), *l)),
                Op::FuncInfo { function } => functions.push((at(i), *function)),
                _ => {}
            }
        }
        Ok(Emitted {
            native_calls: Vec::new(),
            start: base as usize,
            end: at(module.code.len()),
            labels,
            lines,
            functions,
            memory: Box::new(memory),
        })
    }
    fn native_stub(&self, native: &'static NativeEntry) -> CodePos {
        let mut stubs = self.stubs.lock().unwrap();
        if let Some(s) = stubs.iter().find(|s| s.0 == native) {
            return &raw const *s.1;
        }
        stubs.push((native, Box::new(0)));
        &raw const *stubs.last().unwrap().1
    }
    fn fixed(&self, which: Fixed) -> CodePos {
        &raw const self.fixed[which as usize]
    }
    unsafe fn run(&self, _: &mut Regs) -> Stop {
        Stop::Exited
    }
}

fn nothing(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Err(ctx.badarg())
}

pub static NATIVES: [NativeEntry; 4] = [
    NativeEntry::new("erlang", "abs", 1, nothing),
    NativeEntry::new("erlang", "error", 2, nothing),
    NativeEntry::new("lists", "reverse", 2, nothing),
    NativeEntry::new("os", "getenv", 0, nothing).needs(beamr_abi::Capability::ExternalIo),
];

/// What the process structure was told.
#[derive(Default)]
pub struct Side {
    pub ends: Mutex<Vec<Uncaught>>,
}

impl ProcessSide for Side {
    fn uncaught(&self, _: &mut Ctx, uncaught: Uncaught) {
        self.ends.lock().unwrap().push(uncaught);
    }
    fn over_limit(&self, _: &mut Ctx) -> bool {
        true
    }
}

pub fn server() -> Arc<CodeServer> {
    let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP25);
    let mut natives = NativeTable::default();
    natives.add(Release::OTP25, &NATIVES).unwrap();
    let engine = PaperEngine {
        stubs: Mutex::default(),
        fixed: [0; 3],
    };
    CodeServer::new(tables, Arc::new(engine), Arc::new(natives)).unwrap()
}

pub fn table(server: &Arc<CodeServer>, namespace: u32) -> ModuleTable {
    ModuleTable::new(server.clone(), namespace, Capabilities::ALL, None).unwrap()
}

pub fn atom(server: &CodeServer, text: &str) -> Atom {
    server.tables.atoms.intern(text).unwrap()
}

/// A module of functions `Name/Arity`, all exported; function `i` is a `func_info` (line `10 * (i + 1)`) and,
/// behind the entry label `2 * i + 2`, two ops of the next line.
pub struct Source<'a> {
    pub name: &'a str,
    pub functions: &'a [(&'a str, u32)],
    pub version: u8,
    pub on_load: bool,
    pub lambdas: bool,
}

impl<'a> Source<'a> {
    pub fn new(name: &'a str, functions: &'a [(&'a str, u32)]) -> Source<'a> {
        Source {
            name,
            functions,
            version: 0,
            on_load: false,
            lambdas: false,
        }
    }
    pub fn image(&self, server: &CodeServer) -> Arc<Image> {
        server.image_of(|id| Ok(self.lowered(server, id))).unwrap()
    }
    fn lowered(&self, server: &CodeServer, image_id: u32) -> Lowered {
        let mut code = Vec::new();
        let mut functions = Vec::new();
        let mut locations = vec![Location { file: 0, line: 0 }];
        for (i, (name, arity)) in self.functions.iter().enumerate() {
            let i = i as u32;
            for k in 0..2 {
                locations.push(Location {
                    file: 0,
                    line: 10 * (i + 1) + k,
                });
            }
            functions.push(Function {
                name: atom(server, name),
                arity: *arity,
                entry: 2 * i + 2,
            });
            code.extend([
                Op::Line(2 * i + 1),
                Op::Label(2 * i + 1),
                Op::FuncInfo { function: i },
                Op::Label(2 * i + 2),
                Op::Line(2 * i + 2),
                Op::Return,
                Op::Return,
            ]);
        }
        let last = functions.len() as u32 * 2;
        Lowered {
            module: atom(server, self.name),
            image_id,
            trusted: true,
            exports: functions
                .iter()
                .map(|f| (f.name, f.arity, f.entry))
                .collect(),
            lambdas: if self.lambdas {
                vec![Lambda {
                    function: functions[0].name,
                    arity: 2,
                    entry: 2,
                    index: 0,
                    num_free: 1,
                    old_uniq: u32::from(self.version),
                }]
            } else {
                Vec::new()
            },
            functions,
            code,
            label_count: last + 1,
            handlers: vec![last, 2],
            locations,
            files: vec![format!("{}.erl", self.name)],
            literals: Vec::new(),
            literal_area: None,
            on_load: self.on_load.then_some(2),
            md5: [self.version; 16],
            attributes: Vec::new(),
            compile_info: Vec::new(),
            nifs: Vec::new(),
            records: Vec::new(),
        }
    }
}

/// Position in function `i`: 0 is its `func_info`, 1 and 2 are the ops behind its entry.
pub fn position(image: &Image, i: usize, k: usize) -> usize {
    image.emitted.start + (i * 3 + k) * 8
}

/// A worker with a process of one return address on its stack.
pub struct Worker {
    pub regs: Box<Regs>,
    pub body: Box<Body>,
    _head: Box<WorkerCode>,
    pub side: Arc<Side>,
    _table: Arc<ModuleTable>,
}

impl Worker {
    pub fn new(server: &Arc<CodeServer>, table: &Arc<ModuleTable>) -> Worker {
        let side = Arc::new(Side::default());
        let mut head = Box::new(WorkerCode::new(server.clone(), side.clone()));
        head.modules = Arc::as_ptr(table);
        let mut body = Box::new(Body {
            heap: new_heap(0, &HeapOptions::default()),
            ip: std::ptr::null(),
            args: SavedArgs::default(),
            pid: Word::pid(1),
            group_leader: Word::pid(0),
            catches: 0,
            reductions: 0,
            over_limit: false,
            trace: Word::NIL,
        });
        let regs = Box::new(Regs {
            x: [Word::NIL; X_REGISTERS],
            f: [0.0; X_REGISTERS],
            ctx: Ctx {
                body: &raw mut *body,
                fcalls: 4000,
                exports: table.exports_ptr(),
                instances: table.instances_ptr(),
                tables: Arc::as_ptr(&server.tables),
                worker: (&raw mut *head).cast(),
                pending: Pending::None,
                native: std::ptr::null(),
            },
        });
        let mut w = Worker {
            regs,
            body,
            _head: head,
            side,
            _table: table.clone(),
        };
        w.push(server.engine.fixed(Fixed::NormalExit) as u64);
        w
    }
    pub fn push(&mut self, word: u64) {
        let heap = &mut self.body.heap;
        unsafe {
            heap.stop = heap.stop.sub(1);
            *heap.stop = word;
        }
    }
    pub fn end(&self) -> Uncaught {
        let mut ends = self.side.ends.lock().unwrap();
        assert_eq!(ends.len(), 1);
        ends.pop().unwrap()
    }
    pub fn list(&mut self, items: &[i64]) -> Word {
        self.regs
            .ctx
            .list(items.iter().map(|i| Word::fixnum(*i)).collect::<Vec<_>>())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        unsafe { free_heap(&mut self.body.heap) };
    }
}

/// A term as text, enough for traces.
pub fn show(tables: &Tables, w: Word) -> String {
    if let Some(i) = w.as_small() {
        return i.to_string();
    }
    if let Some(a) = w.as_atom() {
        return tables.atoms.text(a).to_owned();
    }
    if w.is_list() {
        let mut items = Vec::new();
        let mut l = w;
        while let Some((h, t)) = l.as_cons() {
            items.push(h);
            l = t;
        }
        let text: Option<String> = items
            .iter()
            .map(|c| c.as_small().and_then(|c| char::from_u32(c as u32)))
            .map(|c| c.filter(|c| c.is_ascii_graphic()))
            .collect();
        return match text {
            Some(t) if !t.is_empty() => format!("{t:?}"),
            _ => {
                let items: Vec<String> = items.iter().map(|i| show(tables, *i)).collect();
                format!("[{}]", items.join(","))
            }
        };
    }
    if let Some(t) = w.as_tuple() {
        let items: Vec<String> = t.iter().map(|i| show(tables, *i)).collect();
        return format!("{{{}}}", items.join(","));
    }
    if w.is_map() {
        let keys = w.term_field(1).as_tuple().unwrap();
        let pairs: Vec<String> = keys
            .iter()
            .enumerate()
            .map(|(i, k)| {
                format!(
                    "{}=>{}",
                    show(tables, *k),
                    show(tables, w.term_field(2 + i))
                )
            })
            .collect();
        return format!("#{{{}}}", pairs.join(","));
    }
    if w.is_fun() {
        return "#Fun".into();
    }
    format!("{w:?}")
}
