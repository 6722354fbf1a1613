//! Dirty natives, with an engine whose only code is a call of one.

use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use beamr_abi::NativeClass;
use beamr_term::{Build, atoms};
use beamr_vm::process::Carried;

use super::*;

/// What the native waits for, and where it says that it runs. One per test: the native finds it by its first argument.
struct Meeting {
    started: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

static MEETINGS: Mutex<Vec<Arc<Meeting>>> = Mutex::new(Vec::new());

/// Meets the test, then gives `{done, N}`; with a negative number it fails at once.
fn meet(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let n = args[0].small_value();
    if n < 0 {
        return Err(ctx.badarg());
    }
    let m = MEETINGS.lock().unwrap()[n as usize].clone();
    m.started.send(()).unwrap();
    m.go_on.lock().unwrap().recv().unwrap();
    Ok(ctx.tuple(&[atoms::OK.word(), args[0]]))
}

static MEET: NativeEntry = NativeEntry::new("test", "meet", 1, meet).class(NativeClass::DirtyIo);

static AFTER: u64 = 0;

/// `apply(_, _, [N])` calls the native with N and ends with its value.
struct DirtyEngine;

impl Engine for DirtyEngine {
    fn name(&self) -> &'static str {
        "dirty"
    }
    fn emit(&self, module: &Lowered) -> Result<Emitted, EngineError> {
        NoEngine.emit(module)
    }
    fn native_stub(&self, native: &'static NativeEntry) -> CodePos {
        NoEngine.native_stub(native)
    }
    fn fixed(&self, which: Fixed) -> CodePos {
        NoEngine.fixed(which)
    }
    unsafe fn run(&self, regs: &mut Regs) -> Stop {
        let body = &mut *regs.ctx.body;
        if body.ip == &raw const AFTER {
            beamr_vm::rt::normal_exit(regs);
            return Stop::Exited;
        }
        if body.ip.is_null() {
            return Stop::Exited;
        }
        let n = regs.x[2].head();
        body.heap.stop = body.heap.stop.sub(1);
        *body.heap.stop = &raw const AFTER as usize as u64;
        body.args.save(&[n]);
        Stop::Dirty(&MEET)
    }
}

fn dirty_world(dirty_io: usize, dirty_disabled: bool) -> World {
    world_of(
        Arc::new(DirtyEngine),
        VmOptions {
            workers: dirty_io,
            dirty_io,
            dirty_cpu_disabled: dirty_disabled,
            dirty_io_disabled: dirty_disabled,
            ..VmOptions::default()
        },
    )
}

fn call(w: &World, n: i64) -> Word {
    let args = Carried::build(8, |f| f.list([Word::fixnum(n)]));
    let m = w.atom("m");
    w.vm.spawn_mfa(m, m, args.term).unwrap()
}

const LONG: Option<Duration> = Some(Duration::from_secs(60));

#[test]
fn errors_and_refusals() {
    for (threads, disabled, expected) in [
        (1, false, "badarg"),
        (0, false, "badarg"),
        (1, true, "notsup"),
        (0, true, "notsup"),
    ] {
        if threads > 0 && !cfg!(feature = "threads") {
            continue;
        }
        let w = dirty_world(threads, disabled);
        let a = call(&w, -1);
        let r = w.vm.run_until_exit(a, LONG).unwrap();
        let text = show(&w.vm.tables, r.reason.term);
        assert!(
            text.starts_with(&format!("{{{expected},[{{test,meet,[-1]")),
            "{text}"
        );
    }
}

#[cfg(feature = "threads")]
mod threaded {
    //! While the native runs on its own thread.

    use std::sync::mpsc::channel;

    use super::*;

    fn meeting() -> (i64, Receiver<()>, Sender<()>) {
        let (started, has_started) = channel();
        let (go, go_on) = channel();
        let mut all = MEETINGS.lock().unwrap();
        all.push(Arc::new(Meeting {
            started,
            go_on: Mutex::new(go_on),
        }));
        (all.len() as i64 - 1, has_started, go)
    }

    #[test]
    fn the_worker_goes_on_meanwhile() {
        let w = dirty_world(1, false);
        let (n, started, go) = meeting();
        let a = call(&w, n);
        started.recv().unwrap();
        // The only worker is free for others while the native runs.
        let b = w.spawn(vec![]);
        w.vm.run_until_exit(b, LONG).unwrap();
        assert!(w.vm.is_alive(a));
        go.send(()).unwrap();
        let r = w.vm.run_until_exit(a, LONG).unwrap();
        assert_eq!(
            show(&w.vm.tables, r.result.unwrap().term),
            format!("{{ok,{n}}}")
        );
    }

    #[test]
    fn a_process_can_die_while_its_native_runs() {
        let w = dirty_world(1, false);
        let (n, started, go) = meeting();
        let a = call(&w, n);
        started.recv().unwrap();
        assert!(w.vm.exit(a, Carried::immediate(atoms::KILL)));
        let r = w.vm.run_until_exit(a, LONG).unwrap();
        assert_eq!(r.reason.term, atoms::KILLED.word());
        assert!(!w.vm.is_alive(a));
        // The native ends later; its body is freed then, and the thread takes the next call.
        go.send(()).unwrap();
        let (n, started, go) = meeting();
        let b = call(&w, n);
        started.recv().unwrap();
        go.send(()).unwrap();
        assert!(w.vm.run_until_exit(b, LONG).unwrap().result.is_some());
        // The exit is noted before the heap is freed; workers are through with both when they have stopped.
        w.vm.shutdown();
        assert_eq!(w.vm.default_namespace().memory(), 0);
    }
}
