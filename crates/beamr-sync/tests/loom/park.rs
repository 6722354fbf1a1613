//! Tried, and failed as they must: `unpark` without the lock, or Relaxed; a sleeper that overwrites a token; a token that is
//! taken Relaxed, early or late; `announce` without its fence; `wake_one` without its fence; a member taken out
//! of the set and not unparked.

use super::*;

#[test]
fn a_token_is_never_lost() {
    check(3, || {
        let mut parker = Parker::new();
        let data = Arc::new(Plain::new(0));
        let (unparker, ours) = (parker.unparker(), data.clone());
        let other = thread::spawn(move || {
            ours.write(1);
            unparker.unpark();
        });
        parker.park();
        assert_eq!(data.read(), 1);
        other.join().unwrap();
    });
}

/// Two wake-ups, two parks: the second may fall together with the first, but then it came before the
/// first park returned, and its reason is visible.
#[test]
fn reasons_are_visible_to_the_woken() {
    check(3, || {
        let mut parker = Parker::new();
        let done = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (unparker, done) = (parker.unparker(), done.clone());
                thread::spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    unparker.unpark();
                })
            })
            .collect();
        while done.load(Ordering::Relaxed) < 2 {
            parker.park();
        }
        for other in others {
            other.join().unwrap();
        }
    });
}

/// One worker that sleeps when it finds nothing, fed through a bare list: the two fences.
#[test]
fn no_task_waits_while_the_worker_sleeps() {
    check(3, || {
        let mut parker = Parker::new();
        let idle = Arc::new(IdleSet::new([parker.unparker()]));
        // A relaxed counter instead of a queue: nothing but the fences orders it.
        let tasks = Arc::new(AtomicUsize::new(0));
        let (theirs, their_tasks) = (idle.clone(), tasks.clone());
        let other = thread::spawn(move || {
            their_tasks.store(1, Ordering::Relaxed);
            theirs.wake_one();
        });
        while tasks.load(Ordering::Relaxed) == 0 {
            idle.announce(0);
            if tasks.load(Ordering::Relaxed) == 0 {
                parker.park();
            }
            idle.retract(0);
        }
        other.join().unwrap();
    });
}

/// The whole path: push, notify, enqueue, wake, against a worker that fetches, waits, sleeps. A lost
/// wake-up is a deadlock, which the checker reports.
#[test]
fn signal_to_sleeping_worker() {
    check(2, || {
        let mut parker = Parker::new();
        let idle = Arc::new(IdleSet::new([parker.unparker()]));
        let process = Arc::new(Process::new(ProcState::new_waiting()));
        let senders: Vec<_> = [1, 2]
            .map(|signal| {
                let (process, idle) = (process.clone(), idle.clone());
                thread::spawn(move || {
                    if process.send(signal) {
                        idle.wake_one();
                    }
                })
            })
            .into();
        while process.body.read() < 3 {
            if process.turn() {
                continue;
            }
            idle.announce(0);
            if process.runs.is_empty() {
                parker.park();
            }
            idle.retract(0);
        }
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(process.finish(), 3);
    });
}
