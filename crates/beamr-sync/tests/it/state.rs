use beamr_sync::state::{EndDirty, EndRun, Phase, ProcState};

#[test]
fn sleeps_and_wakes() {
    let state = ProcState::new_waiting();
    assert!(state.notify());
    assert!(!state.notify());
    assert_eq!(state.begin_run().phase(), Phase::Running);
    // The second notification was absorbed by the begin.
    assert_eq!(state.end_run_wait(), EndRun::Parked);
    assert!(state.notify());
    let _ = state.begin_run();
    assert!(!state.notify());
    assert!(matches!(state.end_run_wait(), EndRun::Continue(_)));
    assert_eq!(state.end_run_wait(), EndRun::Parked);
    assert!(state.notify());
    let _ = state.begin_run();
    assert!(!state.notify());
    state.absorb();
    assert_eq!(state.end_run_wait_or_enqueue(), EndRun::Parked);
}

#[test]
fn a_new_process_is_queued_and_yields() {
    let state = ProcState::new_queued();
    let seen = state.begin_run();
    assert!(seen.is_ready() && !seen.is_blocked());
    assert_eq!(state.end_run_yield(), EndRun::Enqueue);
    assert!(state.begin_run().is_ready());
    assert!(!state.snapshot().is_ready());
    assert!(!state.notify());
    assert_eq!(state.end_run_wait_or_enqueue(), EndRun::Enqueue);
}

#[test]
fn suspended_handles_signals_only_and_goes_on_after_the_last_resume() {
    let state = ProcState::new_queued();
    let _ = state.begin_run();
    state.suspend().unwrap();
    state.suspend().unwrap();
    assert_eq!(state.end_run_yield(), EndRun::Parked);
    assert!(state.notify());
    assert!(state.begin_run().is_blocked());
    assert_eq!(state.end_run_wait(), EndRun::Parked);
    assert!(!state.resume());
    assert!(state.resume());
    let seen = state.begin_run();
    assert!(seen.is_ready() && !seen.is_blocked());
    // Suspended and resumed while a worker handles its signals.
    state.suspend().unwrap();
    assert_eq!(state.end_run_yield(), EndRun::Parked);
    assert!(state.notify());
    assert!(state.begin_run().is_blocked());
    assert!(!state.resume());
    match state.end_run_wait() {
        EndRun::Continue(seen) => assert!(seen.is_ready() && !seen.is_blocked()),
        other => panic!("{other:?}"),
    }
    assert_eq!(state.end_run_wait(), EndRun::Parked);
    // A process that waits for a message is not ready: resume does not run it.
    state.suspend().unwrap();
    assert!(!state.resume());
}

#[test]
fn signals_are_handled_while_the_body_is_away() {
    let state = ProcState::new_queued();
    let _ = state.begin_run();
    assert_eq!(state.begin_dirty(), EndRun::Parked);
    assert!(state.notify());
    assert!(state.begin_run().is_dirty());
    // The body comes back while the worker handles signals.
    assert_eq!(state.end_dirty(), EndDirty::Nothing);
    match state.end_run_wait() {
        EndRun::Continue(seen) => assert!(seen.is_ready() && !seen.is_dirty()),
        other => panic!("{other:?}"),
    }
    assert!(!state.notify());
    assert_eq!(state.begin_dirty(), EndRun::Enqueue);
    assert!(state.begin_run().is_blocked());
    assert_eq!(state.end_run_wait(), EndRun::Parked);
    assert_eq!(state.end_dirty(), EndDirty::Enqueue);
    assert!(state.begin_run().is_ready());
    // Suspended while dirty.
    assert_eq!(state.begin_dirty(), EndRun::Parked);
    state.suspend().unwrap();
    assert_eq!(state.end_dirty(), EndDirty::Nothing);
    assert!(state.resume());
}

#[test]
fn dies_while_the_body_is_away() {
    let state = ProcState::new_queued();
    let _ = state.begin_run();
    assert_eq!(state.begin_dirty(), EndRun::Parked);
    assert!(state.notify());
    assert!(state.begin_run().is_blocked());
    let _ = state.set_exiting();
    assert!(!state.snapshot().is_blocked());
    assert!(state.finish().is_dirty());
    assert_eq!(state.snapshot().phase(), Phase::Exited);
    assert!(!state.notify());
    assert_eq!(state.end_dirty(), EndDirty::Orphan);
}

#[test]
fn the_count_of_suspensions_is_bounded() {
    let state = ProcState::new_waiting();
    for _ in 0..(1 << 24) - 1 {
        state.suspend().unwrap();
    }
    assert_eq!(state.suspend(), None);
    assert_eq!(state.snapshot().suspend_count(), (1 << 24) - 1);
    assert_eq!(state.snapshot().phase(), Phase::Waiting);
}
