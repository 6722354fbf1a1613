//! The face: how processes end, and who is told.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use beamr::{
    CallError, ExecError, ExitEvent, ExitEventRecvError, ExitReason, ExitWatchState, NativeOutcome,
    OwnedTerm, Pid, SpawnedBy, WaitError, atom,
};

use crate::face::{builder, vm};

#[test]
fn results_and_reasons_of_every_kind() {
    let vm = vm();
    let end = |f: &str, args: Vec<OwnedTerm>| {
        let pid = vm.spawn("face_cases", f, args).unwrap();
        let (reason, result) = vm.run_until_exit(pid);
        (reason, result.to_string())
    };
    let term = |t: AtomOrNumber| match t {
        AtomOrNumber::Atom(a) => vm.term(atom(a)).unwrap(),
        AtomOrNumber::Number(n) => vm.term(n).unwrap(),
    };
    use AtomOrNumber::{Atom, Number};
    assert_eq!(
        end("add", vec![term(Number(1)), term(Number(2))]),
        (ExitReason::Normal, "3".into())
    );
    let exit = |a: &'static str| end("exit_with", vec![term(Atom(a))]).0;
    assert_eq!(exit("normal"), ExitReason::Normal);
    assert_eq!(exit("kill"), ExitReason::Kill);
    assert_eq!(exit("killed"), ExitReason::Killed);
    assert_eq!(exit("noproc"), ExitReason::NoProc);
    assert_eq!(exit("noconnection"), ExitReason::NoConnection);
    assert_eq!(exit("oops"), ExitReason::Term(term(Atom("oops"))));
    assert_eq!(exit("oops").to_string(), "oops");
    let (reason, result) = end("throw_it", vec![term(Number(7))]);
    let exception = reason.exception().unwrap();
    assert_eq!(exception.reason.to_string(), "{nocatch,7}");
    assert_eq!(result, "[]");
    let (reason, _) = end("crash_deep", vec![term(Number(3))]);
    let exception = reason.exception().unwrap();
    assert_eq!(exception.reason.to_string(), "deep");
    let frames = exception.frames();
    // Of equal calls on the stack OTP keeps one.
    assert_eq!(frames.len(), 1);
    assert_eq!(
        (frames[0].module.as_str(), frames[0].function.as_str()),
        ("face_cases", "crash_deep")
    );
    assert_eq!(frames[0].location.as_ref().unwrap().0, "face_cases.erl");
    assert!(
        exception
            .to_string()
            .contains("in face_cases:crash_deep/1 (face_cases.erl, line ")
    );
}

enum AtomOrNumber {
    Atom(&'static str),
    Number(i64),
}

#[test]
fn errors_are_taken_once_and_independently() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "crash", (5,)).unwrap();
    let (reason, _) = vm.run_until_exit(pid);
    assert!(matches!(reason, ExitReason::Error(_)));
    for _ in 0..2 {
        assert_eq!(vm.peek_exit_reason(pid), Some(reason.clone()));
    }
    match vm.take_exit_error(pid) {
        Some(ExecError::Badmatch(v)) => assert_eq!(v.to_string(), "5"),
        other => panic!("{other:?}"),
    }
    assert!(vm.take_exit_error(pid).is_none());
    let exception = vm.take_exit_exception(pid).unwrap();
    assert_eq!(exception.reason.to_string(), "{badmatch,5}");
    assert!(vm.take_exit_exception(pid).is_none());
    assert!(vm.take_exit_outcome(pid).is_none(), "it was waited for");
    assert_eq!(vm.peek_exit_reason(pid), Some(reason));
    // One that exits has no error.
    let pid = vm.spawn("face_cases", "exit_with", (1,)).unwrap();
    vm.run_until_exit(pid);
    assert!(vm.take_exit_error(pid).is_none() && vm.take_exit_exception(pid).is_none());
}

#[test]
fn errors_have_their_kinds() {
    let vm = vm();
    let error = |m: &str, f: &str, args: Vec<OwnedTerm>| {
        let pid = vm.spawn(m, f, args).unwrap();
        vm.run_until_exit(pid);
        vm.take_exit_error(pid).unwrap()
    };
    let t = |n: i64| vm.term(n).unwrap();
    assert!(matches!(
        error("erlang", "length", vec![t(1)]),
        ExecError::Badarg
    ));
    let a = vm.term(atom("a")).unwrap();
    assert!(matches!(
        error("face_cases", "add", vec![t(1), a]),
        ExecError::Badarith
    ));
    assert!(matches!(
        error("face_cases", "crash_deep", vec![t(-1)]),
        ExecError::FunctionClause
    ));
    match error("face_cases", "greet", vec![t(1)]) {
        ExecError::Undef {
            module,
            function,
            arity,
        } => {
            assert_eq!(
                (module.as_str(), function.as_str(), arity),
                ("host", "greet", 1)
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        error("face_cases", "apply_fun", vec![t(1), t(1)]),
        ExecError::Badfun(_)
    ));
    match error("erlang", "error", vec![t(9)]) {
        ExecError::Raised(e) => assert_eq!(e.reason.to_string(), "9"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_outcome_is_given_once() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "identity", ("result",)).unwrap();
    match vm.watch_exit(pid) {
        ExitWatchState::Live(w) => assert_eq!(w.wait(), Ok(ExitReason::Normal)),
        ExitWatchState::AlreadyExited(r) => assert_eq!(r, ExitReason::Normal),
        ExitWatchState::NoRecord => panic!("it was spawned by the host"),
    }
    let (reason, result) = vm.take_exit_outcome(pid).unwrap();
    assert_eq!(
        (reason, result.to_string().as_str()),
        (ExitReason::Normal, "<<\"result\">>")
    );
    assert!(vm.take_exit_outcome(pid).is_none());
    let (reason, result) = vm.run_until_exit(pid);
    assert_eq!(
        (reason, result.to_string().as_str()),
        (ExitReason::Normal, "[]")
    );
    assert_eq!(vm.peek_exit_reason(pid), Some(ExitReason::Normal));
}

#[test]
fn nobody_and_the_dead() {
    let vm = vm();
    for pid in [u64::MAX, 1 << 59, 123_456_789] {
        assert_eq!(vm.run_until_exit(pid).0, ExitReason::NoProc);
        assert_eq!(vm.wait(pid, None), Err(WaitError::NoRecord));
        assert!(vm.peek_exit_reason(pid).is_none());
        assert!(vm.take_exit_outcome(pid).is_none());
        assert!(matches!(vm.watch_exit(pid), ExitWatchState::NoRecord));
        assert!(!vm.is_alive(pid) && !vm.terminate_process(pid, ExitReason::Kill));
        assert!(vm.trap_exit(pid).is_none() && vm.process_namespace(pid).is_none());
    }
    // A pid is not given again: its number names the dead process for ever.
    let dead = vm.spawn("face_cases", "add", (1, 2)).unwrap();
    vm.run_until_exit(dead);
    let later: Vec<Pid> = (0..100)
        .map(|_| vm.spawn("face_cases", "add", (1, 2)).unwrap())
        .collect();
    assert!(!later.contains(&dead));
    assert_eq!(vm.peek_exit_reason(dead), Some(ExitReason::Normal));
    assert!(!vm.is_alive(dead));
}

#[test]
fn waiting_has_limits() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "spin", ()).unwrap();
    assert_eq!(
        vm.wait(pid, Some(Duration::from_millis(5))),
        Err(WaitError::Timeout)
    );
    let watch = match vm.watch_exit(pid) {
        ExitWatchState::Live(w) => w,
        other => panic!("{other:?}"),
    };
    assert_eq!(watch.wait_timeout(Duration::ZERO), Err(WaitError::Timeout));
    assert!(vm.terminate_process(pid, ExitReason::Kill));
    assert_eq!(watch.wait(), Ok(ExitReason::Killed));
    assert_eq!(
        watch.wait(),
        Ok(ExitReason::Killed),
        "a watch keeps the reason"
    );
    // A call that takes too long is killed.
    let timeout = Some(Duration::from_millis(5));
    let e = vm
        .call_with::<()>(SpawnedBy::default(), timeout, "face_cases", "spin", ())
        .unwrap_err();
    assert!(matches!(e, CallError::Wait(WaitError::Timeout)));
}

#[test]
fn a_watch_is_a_future() {
    struct Flag(std::sync::Mutex<bool>, std::sync::Condvar);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() = true;
            self.1.notify_all();
        }
    }
    let vm = vm();
    let pid = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let ExitWatchState::Live(watch) = vm.watch_exit(pid) else {
        panic!("it waits for a message");
    };
    let flag = Arc::new(Flag(Default::default(), Default::default()));
    let waker = Waker::from(flag.clone());
    let mut context = Context::from_waker(&waker);
    let mut watch = std::pin::pin!(watch);
    assert!(watch.as_mut().poll(&mut context).is_pending());
    assert!(vm.enqueue_atom_message(pid, "go"));
    let mut woken = flag.0.lock().unwrap();
    while !*woken {
        woken = flag.1.wait(woken).unwrap();
    }
    assert_eq!(
        watch.poll(&mut context),
        Poll::Ready(Ok(ExitReason::Normal))
    );
}

#[test]
fn every_exit_is_an_event() {
    let vm = vm();
    let events = vm.subscribe_exit_events().unwrap();
    assert!(vm.subscribe_exit_events().is_none(), "one at a time");
    let mut expected = Vec::new();
    for n in 0..50 {
        expected.push((
            vm.spawn("face_cases", "exit_with", (n,)).unwrap(),
            n.to_string(),
        ));
    }
    let mut got = Vec::new();
    while got.len() < expected.len() {
        match events.recv().unwrap() {
            ExitEvent::Exited { pid, reason } => got.push((pid, reason.to_string())),
            ExitEvent::Lagged => panic!("there was room"),
        }
    }
    got.sort();
    expected.sort();
    assert_eq!(got, expected);
    // Processes of programs too, also those that end normally.
    let done: beamr::AtomName = vm.call("face_cases", "start_ping", (1,)).unwrap();
    assert_eq!(done, "done");
    let normal = (0..2).filter(|_| {
        matches!(
            events.recv(),
            Ok(ExitEvent::Exited {
                reason: ExitReason::Normal,
                ..
            })
        )
    });
    assert_eq!(normal.count(), 2);
    assert_eq!(
        events.recv_timeout(Duration::from_millis(1)),
        Err(ExitEventRecvError::Timeout)
    );
    // A slow subscriber is told.
    let pids: Vec<Pid> = (0..1100)
        .map(|_| vm.spawn("face_cases", "add", (1, 1)).unwrap())
        .collect();
    for pid in pids {
        vm.run_until_exit(pid);
    }
    assert_eq!(events.recv(), Ok(ExitEvent::Lagged));
    vm.shutdown();
    while events.recv() != Err(ExitEventRecvError::Disconnected) {}
}

#[test]
fn a_subscription_ends_with_its_drop() {
    let vm = vm();
    drop(vm.subscribe_exit_events().unwrap());
    let events = vm.subscribe_exit_events().unwrap();
    let pid = vm.spawn("face_cases", "add", (1, 1)).unwrap();
    assert!(matches!(events.recv(), Ok(ExitEvent::Exited { pid: p, .. }) if p == pid));
}

#[test]
fn records_are_bounded() {
    // One worker and as few processes at a time as can be: the bound itself is what is tested.
    let modules = beamr::ModuleRegistry::new();
    let vm = beamr::Scheduler::builder()
        .threads(1)
        .modules(modules)
        .build()
        .unwrap();
    let stop = || |_: &mut beamr::NativeContext<'_>| NativeOutcome::Stop(ExitReason::Normal);
    let first = vm.spawn_native(stop).unwrap();
    vm.run_until_exit(first);
    let mut last = first;
    for _ in 0..65_536 {
        last = vm.spawn_native(stop).unwrap();
    }
    vm.run_until_exit(last);
    assert_eq!(vm.peek_exit_reason(last), Some(ExitReason::Normal));
    assert_eq!(vm.peek_exit_reason(first), None);
    assert!(vm.take_exit_outcome(first).is_none());
}

#[test]
fn a_vm_that_stops_tells_who_waits() {
    let vm = Arc::new(builder().build().unwrap());
    let pid = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let waiter = std::thread::spawn({
        let vm = vm.clone();
        move || vm.wait(pid, None)
    });
    let watch = match vm.watch_exit(pid) {
        ExitWatchState::Live(w) => w,
        other => panic!("{other:?}"),
    };
    vm.shutdown();
    assert_eq!(waiter.join().unwrap(), Err(WaitError::Stopped));
    assert_eq!(watch.wait(), Err(WaitError::Stopped));
    assert_eq!(vm.run_until_exit(pid).0, ExitReason::Killed);
    vm.shutdown();
}

#[test]
fn halt_ends_the_vm_and_not_the_program() {
    let vm = vm();
    let waiting = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let pid = vm.spawn("erlang", "halt", (3, Vec::<i64>::new())).unwrap();
    assert_eq!(vm.wait(pid, None), Err(WaitError::Stopped));
    assert_eq!(vm.wait(waiting, None), Err(WaitError::Stopped));
    assert_eq!(vm.halted(), Some(3));
}
