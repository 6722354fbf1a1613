//! How a bare system comes to rest: what was logged and written is out, applications have stopped.
//!
//! In order ([`Ending::stop`], which `init:stop/0` leads to): no server is started any more; applications stop, in OTP's own way,
//! when `application_controller` loses its parent; the logger has nothing left; both streams are flushed; the VM halts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use beamr_term::{AtomError, Build, Fragment, Word, atoms};
use beamr_vm::native_process::NativeStep;
use beamr_vm::process::spawn::{SpawnOptions, Start};
use beamr_vm::process::{Carried, exit::ExitRecord};
use beamr_vm::rt;
use beamr_vm::signal::monitor::{monitor, monitored_process};
use beamr_vm::vm::{Halt, Vm};

use crate::servers::Servers;

/// How long applications may take to stop. Their supervisors have limits of their own.
const APPLICATIONS: Duration = Duration::from_secs(60);
/// How long the logger may take to start and to write what it has.
const LOGGER: Duration = Duration::from_secs(5);
/// How long the stream of a terminal or pipe that nobody reads is waited for.
const STREAM: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Ending {
    vm: Weak<Vm>,
    servers: Arc<Servers>,
    user: Word,
    standard_error: Word,
    stopping: AtomicBool,
}

impl Ending {
    pub(crate) fn new(
        vm: &Arc<Vm>,
        servers: Arc<Servers>,
        user: Word,
        standard_error: Word,
    ) -> Ending {
        Ending {
            vm: Arc::downgrade(vm),
            servers,
            user,
            standard_error,
            stopping: AtomicBool::new(false),
        }
    }
    /// Returns when everything that was sent to the logger and to the standard streams before has been written.
    pub(crate) fn settle(&self) {
        let Some(vm) = self.vm.upgrade() else { return };
        // Names that cannot be made mean that nothing was logged with them.
        let _ = self.settle_logger(&vm);
        for server in [self.user, self.standard_error] {
            request(&vm, server, |f| {
                let empty = f.binary(&[]);
                f.tuple(&[atoms::PUT_CHARS.word(), atoms::LATIN1.word(), empty])
            });
        }
    }
    fn settle_logger(&self, vm: &Arc<Vm>) -> Result<(), AtomError> {
        let deadline = Instant::now() + LOGGER;
        while self.servers.state(vm, atoms::LOGGER) == Some(false) && Instant::now() < deadline {
            rest(vm);
        }
        if self.servers.state(vm, atoms::LOGGER) != Some(true) {
            return Ok(());
        }
        let atom = |t: &str| vm.tables.atoms.intern(t).map(|a| a.word());
        let (proxy, info) = (atom("logger_proxy")?, atom("info")?);
        let mut f = Fragment::with_capacity(16);
        // Who answers this has dealt with all that came before.
        let timeout = Word::fixnum(LOGGER.as_millis() as i64);
        let args = f.list([proxy, info, timeout]);
        call(vm, atom("gen_server")?, atom("call")?, args, LOGGER);
        let args = f.list([atom("default")?]);
        call(vm, atom("logger_std_h")?, atom("filesync")?, args, LOGGER);
        Ok(())
    }
    /// Stops the system in order and halts it; only the first call does something.
    pub(crate) fn stop(self: &Arc<Self>, halt: Halt) {
        if self.stopping.swap(true, Ordering::AcqRel) {
            return;
        }
        let me = self.clone();
        let direct = halt.clone();
        let stop = move || {
            let Some(vm) = me.vm.upgrade() else { return };
            me.stop_applications(&vm);
            me.settle();
            vm.halt(halt, true);
        };
        let threads = self.vm.upgrade().is_some_and(|vm| vm.worker_count() > 0);
        let started = threads
            && std::thread::Builder::new()
                .name("beamr-stop".into())
                .spawn(stop)
                .is_ok();
        // A cooperative system cannot be waited for from inside.
        if !started && let Some(vm) = self.vm.upgrade() {
            vm.halt(direct, true);
        }
    }
    fn stop_applications(&self, vm: &Arc<Vm>) {
        let Some((controller, parent)) = self.servers.close(vm) else {
            return;
        };
        if let Ok(shutdown) = vm.tables.atoms.intern("shutdown") {
            vm.exit(parent, Carried::immediate(shutdown));
        }
        let deadline = Instant::now() + APPLICATIONS;
        while vm.is_alive(controller) && Instant::now() < deadline {
            rest(vm);
        }
    }
}

/// Lets others run for a moment.
pub(crate) fn rest(vm: &Arc<Vm>) {
    if vm.worker_count() > 0 || vm.run_until_idle(64).turns == 0 {
        vm.door.pause(Duration::from_millis(1));
    }
}

/// Calls a function of Erlang in a process of its own and waits for its end; errors are nobody's concern.
pub(crate) fn call(
    vm: &Arc<Vm>,
    module: Word,
    function: Word,
    args: Word,
    at_most: Duration,
) -> Option<ExitRecord> {
    let options = SpawnOptions {
        quiet: true,
        ..SpawnOptions::default()
    };
    let start = Start::Apply(module, function, args);
    let pid = vm
        .spawn(&vm.default_namespace(), start, &options, None)
        .ok()?;
    vm.run_until_exit(pid, Some(at_most)).ok()
}

/// One I/O request from a process made for it, which ends with the answer or the end of the server.
pub(crate) fn request(
    vm: &Arc<Vm>,
    server: Word,
    request: impl Fn(&mut Fragment) -> Word + Send + 'static,
) {
    let mut sent = false;
    let asker = move |ctx: &mut beamr_abi::Ctx| {
        if !sent {
            sent = true;
            if let Some(server) = monitored_process(ctx, server) {
                monitor(ctx, server, Default::default());
            }
            let me = ctx.self_pid();
            let message = Carried::build(32, |f| {
                let r = request(f);
                f.tuple(&[atoms::IO_REQUEST.word(), me, atoms::OK.word(), r])
            });
            if rt::send_carried(ctx, server, message).is_err() {
                return NativeStep::Exit(atoms::NOPROC.word());
            }
        }
        match rt::next_message(ctx) {
            Ok(Some(_)) => NativeStep::Exit(atoms::NORMAL.word()),
            Ok(None) => NativeStep::Wait,
            Err(_) => NativeStep::Continue,
        }
    };
    let start = Start::Native(Box::new(asker));
    let spawned = vm.spawn(
        &vm.default_namespace(),
        start,
        &SpawnOptions::default(),
        None,
    );
    if let Ok(pid) = spawned {
        // The answer's content does not matter: a closed stream is no reason to stay.
        let _ = vm.run_until_exit(pid, Some(STREAM));
    }
}
