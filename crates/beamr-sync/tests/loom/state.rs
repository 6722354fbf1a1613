//! Tried, and failed as they must: `notify` that does not write when it sees Queued, or NOTIFIED, that leaves a running
//! process unmarked, that enqueues a queued or a running one; transitions that are only Acquire or only
//! Release; `end_run_wait` that ignores NOTIFIED, or READY; `begin_run` that takes READY from a blocked process; `end_dirty`
//! that leaves no READY, or clears DIRTY in a step of its own; `end_dirty_idle` that leaves no NOTIFIED with a runner, that does
//! not enqueue who waits, or makes it ready; `resume` that never enqueues; `finish` that
//! forgets DIRTY.

use super::*;

/// Two senders, a worker: whatever overlaps, every signal is in the body or the process is queued.
fn no_signal_is_lost(make: fn() -> Process) {
    check(2, move || {
        let process = Arc::new(make());
        let senders: Vec<_> = [1, 2]
            .map(|signal| {
                let process = process.clone();
                thread::spawn(move || process.send(signal))
            })
            .into();
        process.turn();
        process.turn();
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(process.finish(), 3);
    });
}

#[test]
fn no_signal_is_lost_to_a_waiting_process() {
    no_signal_is_lost(|| Process::new(ProcState::new_waiting()));
}

#[test]
fn no_signal_is_lost_to_a_running_process() {
    no_signal_is_lost(|| {
        let process = Process::new(ProcState::new_queued());
        process.runs.push(Priority::Normal, Token);
        process
    });
}

/// Two workers: the body has one owner at a time (the checker sees overlapping access).
#[test]
fn one_runner_at_a_time() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_waiting()));
        process.send(1);
        let ours = process.clone();
        let worker = thread::spawn(move || {
            ours.turn();
        });
        let ours = process.clone();
        let sender = thread::spawn(move || ours.send(2));
        process.turn();
        worker.join().unwrap();
        sender.join().unwrap();
        assert_eq!(process.finish(), 3);
    });
}

/// A process that yields is not queued twice by a sender.
#[test]
fn yield_against_notify() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_queued()));
        process.runs.push(Priority::Normal, Token);
        let ours = process.clone();
        let sender = thread::spawn(move || ours.send(5));
        let (_, token) = process.runs.pop().unwrap();
        let _ = process.state.begin_run();
        assert_eq!(process.state.end_run_yield(), EndRun::Enqueue);
        process.runs.push(Priority::Normal, token);
        process.turn();
        sender.join().unwrap();
        assert_eq!(process.finish(), 5);
    });
}

/// Suspended by itself, resumed by one, sent to by another: it goes on, once.
#[test]
fn resume_against_signals() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_queued()));
        let _ = process.state.begin_run();
        process.state.suspend().unwrap();
        assert_eq!(process.state.end_run_yield(), EndRun::Parked);
        let ours = process.clone();
        let resumer = thread::spawn(move || {
            if ours.state.resume() {
                ours.runs.push(Priority::Normal, Token);
            }
        });
        let ours = process.clone();
        let sender = thread::spawn(move || ours.send(1));
        let mut went_on = 0;
        let mut turn = || {
            let Some((_, _token)) = process.runs.pop() else {
                return false;
            };
            let mut seen = process.state.begin_run();
            loop {
                if seen.is_ready() && !seen.is_blocked() {
                    went_on += 1;
                }
                for signal in process.signals.fetch() {
                    process.body.write(process.body.read() + signal);
                }
                match process.state.end_run_wait() {
                    EndRun::Parked => return true,
                    EndRun::Continue(now) => seen = now,
                    EndRun::Enqueue => unreachable!(),
                }
            }
        };
        turn();
        resumer.join().unwrap();
        sender.join().unwrap();
        while turn() {}
        assert_eq!(went_on, 1);
        assert_eq!(process.finish(), 1);
    });
}

/// The body comes back from a dirty thread while a sender and a worker are at it: it is seen back, the
/// process goes on once, and nobody touches the body while it is away.
#[test]
fn dirty_body_against_signals() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_queued()));
        let received = Arc::new(Plain::new(0));
        let _ = process.state.begin_run();
        assert_eq!(process.state.begin_dirty(), EndRun::Parked);
        let ours = process.clone();
        let dirty = thread::spawn(move || {
            ours.body.write(10);
            match ours.state.end_dirty() {
                EndDirty::Enqueue => drop(ours.runs.push(Priority::Normal, Token)),
                EndDirty::Nothing => (),
                EndDirty::Orphan => unreachable!(),
            }
        });
        let ours = process.clone();
        let sender = thread::spawn(move || ours.send(1));
        let mut went_on = 0;
        let mut turn = || {
            let Some((_, _token)) = process.runs.pop() else {
                return false;
            };
            let mut seen = process.state.begin_run();
            loop {
                if seen.is_ready() && !seen.is_blocked() {
                    went_on += 1;
                    process.body.write(process.body.read() + 100);
                }
                for signal in process.signals.fetch() {
                    received.write(received.read() + signal);
                }
                match process.state.end_run_wait() {
                    EndRun::Parked => return true,
                    EndRun::Continue(now) => seen = now,
                    EndRun::Enqueue => unreachable!(),
                }
            }
        };
        turn();
        dirty.join().unwrap();
        sender.join().unwrap();
        while turn() {}
        assert_eq!((went_on, received.read()), (1, 1));
        assert_eq!(process.finish(), 110);
    });
}

/// A process dies while its body is away: exactly one side frees the body.
#[test]
fn death_against_the_end_of_a_dirty_call() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_queued()));
        let _ = process.state.begin_run();
        assert_eq!(process.state.begin_dirty(), EndRun::Parked);
        assert!(process.state.notify());
        let ours = process.clone();
        let dirty = thread::spawn(move || match ours.state.end_dirty() {
            EndDirty::Orphan => {
                ours.body.write(DEAD);
                1
            }
            _ => 0,
        });
        let _ = process.state.begin_run();
        let _ = process.state.set_exiting();
        drop(process.signals.close());
        let mut freed = 0;
        if !process.state.finish().is_dirty() {
            process.body.write(DEAD);
            freed += 1;
        }
        freed += dirty.join().unwrap();
        assert_eq!(freed, 1);
    });
}

/// A process that waits for a message is collected by another thread: who looks at the body meanwhile looks again
/// when it is back, and nobody touches it while it is away.
#[test]
fn collected_while_it_waits() {
    check(3, || {
        let process = Arc::new(Process::new(ProcState::new_queued()));
        let received = Arc::new(Plain::new(0));
        let home = Arc::new(AtomicBool::new(false));
        let _ = process.state.begin_run();
        assert_eq!(process.state.begin_dirty(), EndRun::Parked);
        let ours = process.clone();
        let back = home.clone();
        let dirty = thread::spawn(move || {
            ours.body.write(10);
            back.store(true, Ordering::Release);
            match ours.state.end_dirty_idle() {
                EndDirty::Enqueue => drop(ours.runs.push(Priority::Normal, Token)),
                EndDirty::Nothing => (),
                EndDirty::Orphan => unreachable!(),
            }
        });
        let ours = process.clone();
        let sender = thread::spawn(move || ours.send(1));
        // A question that only the body can answer.
        let mut asked = true;
        let mut turn = || {
            let Some((_, _token)) = process.runs.pop() else {
                return false;
            };
            let mut seen = process.state.begin_run();
            loop {
                assert!(!seen.is_ready(), "it waits for a message");
                for signal in process.signals.fetch() {
                    received.write(received.read() + signal);
                }
                if asked && home.load(Ordering::Acquire) {
                    process.body.write(process.body.read() + 100);
                    asked = false;
                }
                match process.state.end_run_wait() {
                    EndRun::Parked => return true,
                    EndRun::Continue(now) => seen = now,
                    EndRun::Enqueue => unreachable!(),
                }
            }
        };
        turn();
        dirty.join().unwrap();
        sender.join().unwrap();
        while turn() {}
        assert_eq!(received.read(), 1);
        assert_eq!(process.finish(), 110);
    });
}
