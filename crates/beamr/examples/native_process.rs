//! A process written in Rust that Erlang code talks to.
//!
//! `cargo run -p beamr --example native_process`

use beamr::{
    ExitReason, ModuleRegistry, NativeContext, NativeHandler, NativeOutcome, Pid, Scheduler, atom,
};

const MODULE: &[u8] = include_bytes!("../tests/it/data/face_cases.beam");

/// Answers `{From, Message}` with `{self(), Message}` and counts what it answered.
#[derive(Default)]
struct Echo {
    answered: u64,
}

impl NativeHandler for Echo {
    fn handle(&mut self, ctx: &mut NativeContext<'_>) -> NativeOutcome {
        while let Some(message) = ctx.recv() {
            let (Some(from), Some(content)) = (message.element(0), message.element(1)) else {
                // Anything else ends it, with a reason that tells how much it did.
                let reason = ctx
                    .tuple(&[message, ctx.unsigned(self.answered)])
                    .to_owned();
                return NativeOutcome::Stop(ExitReason::Term(reason));
            };
            let Some(from) = from.as_pid() else { continue };
            let me = ctx.self_pid();
            if ctx.send(from, (me, content)).is_ok() {
                self.answered += 1;
            }
            if ctx.should_yield() {
                return NativeOutcome::Continue;
            }
        }
        NativeOutcome::Wait
    }
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let modules = ModuleRegistry::new();
    modules.insert(MODULE)?;
    let vm = Scheduler::builder().threads(2).modules(modules).build()?;

    let echo: Pid = vm.spawn_native(Echo::default)?;
    // ping(To, N): sends N messages and waits for each answer.
    let done: beamr::AtomName = vm.call("face_cases", "ping", (echo, 1000))?;
    assert_eq!(done, "done");

    vm.send(echo, atom("stop"))?;
    let (reason, _) = vm.run_until_exit(echo);
    println!("the echo ended: {reason}");
    assert_eq!(reason.to_string(), "{stop,1000}");
    Ok(())
}
