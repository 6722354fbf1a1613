//! A VM that its host drives: turns, timers, and what it refuses.

use std::time::Duration;

use beamr_term::atoms;
use beamr_vm::vm::WaitError;

use super::*;

#[test]
fn the_host_polls_timers() {
    let w = world();
    let p = w.spawn(vec![sleep(10), {
        let said = w.said.clone();
        step(move |_| {
            said.say("late");
            Flow::Next
        })
    }]);
    w.vm.watch(p);
    let run = w.vm.run_until_idle(100);
    assert!(run.idle && run.turns > 0);
    let due = run.next_timer.expect("a timer");
    assert!(due <= Duration::from_millis(11), "{due:?}");
    // Before its time nothing runs, however often it is polled.
    w.clock.0.fetch_add(5_000_000, Ordering::SeqCst);
    let run = w.vm.run_until_idle(100);
    assert_eq!((run.turns, w.said.take().len()), (0, 0));
    assert!(run.next_timer.expect("still") < due);
    w.clock.0.fetch_add(7_000_000, Ordering::SeqCst);
    let run = w.vm.run_until_idle(100);
    assert_eq!(w.said.take(), ["late"]);
    assert!(run.idle && run.next_timer.is_none());
    let end = w.vm.run_until_exit(p, None).unwrap();
    assert_eq!(end.reason.term, atoms::NORMAL.word());
}

#[test]
fn turns_are_counted() {
    let w = world();
    let p = w.spawn(vec![pause(10)]);
    w.vm.watch(p);
    let run = w.vm.run_until_idle(3);
    assert_eq!((run.turns, run.idle), (3, false));
    assert!(w.vm.run_until_idle(100).idle);
}

#[test]
fn nobody_will_wake_it() {
    let w = world();
    let p = w.spawn(vec![forever()]);
    assert_eq!(w.vm.run_until_exit(p, None).unwrap_err(), WaitError::Stuck);
}

/// A build without threads says so, whichever kind is asked for.
#[cfg(not(feature = "threads"))]
#[test]
fn threads_are_refused() {
    use beamr_vm::vm::StartError;

    assert_eq!(VmOptions::default().workers, 0);
    for (workers, dirty_cpu, dirty_io) in [(1, 0, 0), (0, 1, 0), (0, 0, 1)] {
        let options = VmOptions {
            workers,
            dirty_cpu,
            dirty_io,
            ..VmOptions::default()
        };
        let tables = Tables::new(Arc::new(AtomTable::new(0)), Release::OTP27);
        let engine: Arc<dyn Engine> = Arc::new(NoEngine);
        let (server, modules) = code(&tables, &engine);
        let parts = VmParts {
            tables,
            engine,
            server,
            modules,
            processes: Arc::new(VmProcessSide),
            door: Arc::new(TestClock::default()),
        };
        let refused = Vm::new(parts, options);
        assert!(matches!(refused, Err(StartError::NoThreads { .. })));
    }
}
