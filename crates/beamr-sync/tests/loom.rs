//! Models of the protocols, explored by loom: all interleavings and all values that weak memory allows, up to a
//! bound of preemptions.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p beamr-sync --release --test loom`.
//!
//! Each model says which mutations of the code were tried and made it fail.
#![cfg(loom)]

use beamr_sync::prim::{Arc, AtomicBool, AtomicPtr, AtomicUsize, Mutex, Ordering, UnsafeCell};
use beamr_sync::state::{EndDirty, EndRun, Phase, ProcState};
use beamr_sync::{
    Domain, IdleSet, Parker, Priority, RunQueue, SharedWheel, SignalQueue, SlotId, SlotTable, Task,
};
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// Plain memory whose races and use after death the checker sees.
struct Plain(UnsafeCell<u64>);

// SAFETY: that accesses do not overlap is what the models check.
unsafe impl Send for Plain {}
// SAFETY: as above.
unsafe impl Sync for Plain {}

const DEAD: u64 = 0xdead;

impl Plain {
    fn new(value: u64) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn read(&self) -> u64 {
        // SAFETY: the checker reports an overlapping write.
        let value = self.0.with(|value| unsafe { *value });
        assert_ne!(value, DEAD);
        value
    }

    fn write(&self, new: u64) {
        // SAFETY: the checker reports any overlapping access.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// As `Plain`, and its death is a write.
struct Mortal(Plain);

impl Mortal {
    fn new(value: u64) -> Self {
        Self(Plain::new(value))
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.0.write(DEAD);
    }
}

mod signal_queue {
    use super::*;

    /// Two senders against an owner that fetches and then closes: every accepted signal arrives once, in
    /// its sender's order, every refused one comes back.
    #[test]
    fn accepted_arrives_refused_comes_back() {
        check(3, || {
            let queue = Arc::new(SignalQueue::new());
            let senders: Vec<_> = (0..2_u64)
                .map(|sender| {
                    let queue = queue.clone();
                    thread::spawn(move || {
                        let mut accepted = 0;
                        for n in 0..2 {
                            match queue.push((sender, Plain::new(n))) {
                                Ok(_) => {
                                    assert_eq!(accepted, n, "accepted after a refusal");
                                    accepted += 1;
                                }
                                Err((_, n)) => drop(n.read()),
                            }
                        }
                        accepted
                    })
                })
                .collect();
            let mut next = [0; 2];
            let mut take = |(sender, n): (u64, Plain)| {
                assert_eq!(next[sender as usize], n.read());
                next[sender as usize] += 1;
            };
            queue.fetch().for_each(&mut take);
            queue.close().for_each(&mut take);
            let accepted: Vec<u64> = senders.into_iter().map(|s| s.join().unwrap()).collect();
            assert_eq!(queue.fetch().count(), 0);
            assert_eq!(accepted, next);
        });
    }

    /// Who is refused sees what the receiver wrote before it closed.
    #[test]
    fn refusal_synchronises_with_the_close() {
        check(3, || {
            let shared = Arc::new((SignalQueue::new(), Plain::new(0)));
            let ours = shared.clone();
            let sender = thread::spawn(move || {
                if ours.0.push(1).is_err() {
                    assert_eq!(ours.1.read(), 7);
                }
            });
            shared.1.write(7);
            drop(shared.0.close());
            sender.join().unwrap();
        });
    }

    /// Among the pushes that one batch holds, exactly one found the queue empty.
    #[test]
    fn one_push_per_batch_notifies() {
        check(3, || {
            let queue = Arc::new(SignalQueue::new());
            let notified = Arc::new(AtomicUsize::new(0));
            let senders: Vec<_> = (0..2)
                .map(|n| {
                    let (queue, notified) = (queue.clone(), notified.clone());
                    thread::spawn(move || {
                        if queue.push(n).unwrap() {
                            notified.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let mut batches = usize::from(!queue.fetch().is_empty());
            for sender in senders {
                sender.join().unwrap();
            }
            batches += usize::from(!queue.fetch().is_empty());
            assert_eq!(batches, notified.load(Ordering::Relaxed));
        });
    }
}

/// A process as the virtual machine has it: slot, body, what it has received.
struct Process {
    state: ProcState,
    signals: SignalQueue<u64>,
    body: Plain,
    runs: RunQueue<Token>,
}

/// The one run queue entry of the process.
struct Token;

impl Task for Token {}

impl Process {
    fn new(state: ProcState) -> Self {
        Self {
            state,
            signals: SignalQueue::new(),
            body: Plain::new(0),
            runs: RunQueue::new(),
        }
    }

    /// Sends; true when the receiver was put into the run queue.
    fn send(&self, signal: u64) -> bool {
        let enqueued = self.signals.push(signal).unwrap() && self.state.notify();
        if enqueued {
            self.runs.push(Priority::Normal, Token);
        }
        enqueued
    }

    /// One turn of a worker: false when nothing is queued.
    fn turn(&self) -> bool {
        let Some((_, token)) = self.runs.pop() else {
            return false;
        };
        // Nobody but the holder of the entry takes the process out of this phase.
        assert_eq!(self.state.snapshot().phase(), Phase::Queued);
        let _ = self.state.begin_run();
        loop {
            for signal in self.signals.fetch() {
                self.body.write(self.body.read() + signal);
            }
            match self.state.end_run_wait() {
                EndRun::Parked => return true,
                EndRun::Continue(_) => (),
                EndRun::Enqueue => {
                    self.runs.push(Priority::Normal, token);
                    return true;
                }
            }
        }
    }

    /// When all is quiet: nothing waits for a process that nobody will run.
    fn finish(&self) -> u64 {
        while self.turn() {}
        assert_eq!(self.state.snapshot().phase(), Phase::Waiting);
        assert!(self.signals.is_empty(), "a signal to a process that sleeps");
        self.body.read()
    }
}

mod state {
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
}

mod park {
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
}

mod run_queue {
    use super::*;

    struct Numbered(usize);
    impl Task for Numbered {}

    /// Owner, thief and a third who pushes: each task runs once.
    #[test]
    fn a_stolen_task_runs_once() {
        check(3, || {
            let queues = Arc::new([RunQueue::new(), RunQueue::new()]);
            let ran = Arc::new(Mutex::new([0; 3]));
            for n in 0..2 {
                queues[0].push(Priority::Normal, Numbered(n));
            }
            let (theirs, their_ran) = (queues.clone(), ran.clone());
            let thief = thread::spawn(move || {
                if let Some((_, task)) = theirs[1].steal_from(&theirs[0]) {
                    their_ran.lock()[task.0] += 1;
                }
            });
            let theirs = queues.clone();
            let pusher = thread::spawn(move || {
                theirs[0].push(Priority::High, Numbered(2));
            });
            if let Some((_, task)) = queues[0].pop() {
                ran.lock()[task.0] += 1;
            }
            thief.join().unwrap();
            pusher.join().unwrap();
            for queue in &*queues {
                assert!(queue.len() < 3);
                while let Some((_, task)) = queue.pop() {
                    ran.lock()[task.0] += 1;
                }
                assert!(queue.is_empty());
            }
            assert_eq!(*ran.lock(), [1; 3]);
        });
    }

    /// Two thieves that rob each other: no lock order to break.
    #[test]
    fn mutual_theft_does_not_deadlock() {
        check(3, || {
            let queues = Arc::new([RunQueue::new(), RunQueue::new()]);
            for queue in &*queues {
                for n in 0..3 {
                    queue.push(Priority::Normal, Numbered(n));
                }
            }
            let theirs = queues.clone();
            let thief =
                thread::spawn(move || usize::from(theirs[1].steal_from(&theirs[0]).is_some()));
            let mut taken = usize::from(queues[0].steal_from(&queues[1]).is_some());
            taken += thief.join().unwrap();
            assert_eq!(queues[0].len() + queues[1].len() + taken, 6);
        });
    }
}

mod epoch {
    use super::*;

    /// A reader against a writer that replaces the object, defers its death and collects twice.
    #[test]
    fn nothing_dies_under_a_reader() {
        check(2, || {
            let domain = Domain::new();
            let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mortal::new(1)))));
            let (their_domain, theirs) = (domain.clone(), shared.clone());
            let reader = thread::spawn(move || {
                let me = their_domain.register();
                for _ in 0..2 {
                    let guard = me.pin();
                    // SAFETY: what the model checks.
                    let object = unsafe { &*theirs.load(Ordering::Acquire) };
                    let value = object.0.read();
                    assert!(value == 1 || value == 2);
                    drop(guard);
                }
            });
            let me = domain.register();
            let new = Box::into_raw(Box::new(Mortal::new(2)));
            let guard = me.pin();
            let old = shared.swap(new, Ordering::AcqRel);
            // SAFETY: unlinked, and the only remover.
            guard.defer_drop(unsafe { Box::from_raw(old) });
            drop(guard);
            me.collect();
            me.collect();
            reader.join().unwrap();
            // SAFETY: nobody else is left.
            drop(unsafe { Box::from_raw(new) });
        });
    }

    /// Two writers, each collecting: the epoch moves under the feet of the one that defers.
    #[test]
    fn two_collectors() {
        check(2, || {
            let domain = Domain::new();
            let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mortal::new(1)))));
            let (their_domain, theirs) = (domain.clone(), shared.clone());
            let other = thread::spawn(move || {
                let me = their_domain.register();
                let guard = me.pin();
                // SAFETY: what the model checks.
                assert_ne!(unsafe { &*theirs.load(Ordering::Acquire) }.0.read(), 0);
                let new = Box::into_raw(Box::new(Mortal::new(3)));
                let old = theirs.swap(new, Ordering::AcqRel);
                // SAFETY: unlinked by the swap, which one thread gets.
                guard.defer_drop(unsafe { Box::from_raw(old) });
                drop(guard);
                me.collect();
            });
            let me = domain.register();
            let guard = me.pin();
            let new = Box::into_raw(Box::new(Mortal::new(2)));
            let old = shared.swap(new, Ordering::AcqRel);
            // SAFETY: unlinked by the swap, which one thread gets.
            guard.defer_drop(unsafe { Box::from_raw(old) });
            drop(guard);
            me.collect();
            other.join().unwrap();
            // SAFETY: nobody else is left.
            drop(unsafe { Box::from_raw(shared.load(Ordering::Acquire)) });
        });
    }
}

mod slot_table {
    use super::*;

    /// A slot is freed and used again under a reader that knows the old identifier: it finds the old
    /// entry, alive, or nothing.
    #[test]
    fn a_stale_identifier_misses() {
        check(2, || {
            let domain = Domain::new();
            let table = Arc::new(SlotTable::new(&domain, 1));
            let first = table.insert(Arc::new(Mortal::new(1))).unwrap();
            let theirs = table.clone();
            let reader = thread::spawn(move || {
                let me = theirs.domain().register();
                let guard = me.pin();
                if let Some(found) = theirs.get(first, &guard) {
                    assert_eq!(found.0.read(), 1);
                }
            });
            let me = domain.register();
            drop(table.remove(first, &me.pin()));
            // Two slots: the second insertion uses the first slot again.
            let second = table.insert(Arc::new(Mortal::new(2))).unwrap();
            drop(table.remove(second, &me.pin()));
            let third = table.insert(Arc::new(Mortal::new(3))).unwrap();
            assert_eq!(third.as_u64() & 1, first.as_u64() & 1);
            me.collect();
            reader.join().unwrap();
        });
    }

    /// A reader that guesses an identifier sees an entry complete or not at all.
    #[test]
    fn an_entry_is_published_whole() {
        check(2, || {
            let domain = Domain::new();
            let table = Arc::new(SlotTable::<Mortal>::new(&domain, 2));
            let theirs = table.clone();
            let reader = thread::spawn(move || {
                let found = theirs.lookup(SlotId::from_u64(0));
                if let Some(found) = found {
                    assert_eq!(found.0.read(), 1);
                }
            });
            let id = table.insert(Arc::new(Mortal::new(1))).unwrap();
            let me = domain.register();
            drop(table.remove(id, &me.pin()));
            me.collect();
            reader.join().unwrap();
        });
    }

    /// Of two removers one gets the entry. A walk beside them sees what stays.
    #[test]
    fn one_remover_wins() {
        check(2, || {
            let domain = Domain::new();
            let table = Arc::new(SlotTable::new(&domain, 2));
            let id = table.insert(Arc::new(Mortal::new(1))).unwrap();
            let stays = table.insert(Arc::new(Mortal::new(2))).unwrap();
            let theirs = table.clone();
            let other = thread::spawn(move || {
                let me = theirs.domain().register();
                let guard = me.pin();
                usize::from(theirs.remove(id, &guard).is_some())
            });
            let me = domain.register();
            let guard = me.pin();
            let seen = table
                .iter(&guard)
                .filter(|(id, value)| *id == stays && value.0.read() == 2)
                .count();
            assert_eq!(seen, 1);
            let mut won = usize::from(table.remove(id, &guard).is_some());
            drop(guard);
            won += other.join().unwrap();
            assert_eq!((won, table.len()), (1, 1));
        });
    }

    /// Two threads insert into a table with one place left: one is refused.
    #[test]
    fn the_limit_holds() {
        check(3, || {
            let domain = Domain::new();
            let table = Arc::new(SlotTable::new(&domain, 1));
            let theirs = table.clone();
            let other = thread::spawn(move || theirs.insert(Arc::new(1)).is_ok());
            let ours = table.insert(Arc::new(2)).is_ok();
            assert!(ours ^ other.join().unwrap());
            assert_eq!(table.len(), 1);
        });
    }
}

mod timer_wheel {
    use super::*;

    /// Expiry against cancelling: one gets the payload.
    #[test]
    fn expires_or_is_cancelled() {
        check(3, || {
            let wheel = Arc::new(SharedWheel::new(0));
            let handle = wheel.insert(5, Plain::new(1)).handle;
            let theirs = wheel.clone();
            let other = thread::spawn(move || {
                let cancelled = theirs.cancel(handle);
                cancelled.map_or(0, |(payload, _)| payload.read())
            });
            let mut due = Vec::new();
            wheel.take_due(5, 8, &mut due);
            let ours = due.first().map_or(0, |(_, payload)| payload.read());
            assert_eq!(ours + other.join().unwrap(), 1);
            assert!(wheel.next_deadline().is_none());
        });
    }

    /// An owner that sleeps until its next deadline is woken by an earlier one.
    #[test]
    fn an_earlier_deadline_wakes_the_owner() {
        check(3, || {
            let mut parker = Parker::new();
            let wheel = Arc::new(SharedWheel::new(0));
            let far = wheel.insert(1000, 1).handle;
            let (unparker, theirs) = (parker.unparker(), wheel.clone());
            let other = thread::spawn(move || {
                if theirs.insert(10, 2).is_earliest {
                    unparker.unpark();
                }
            });
            // Time stands at 10: only the far deadline would let the owner sleep.
            while wheel.next_deadline().is_none_or(|next| next > 10) {
                parker.park();
            }
            let mut due = Vec::new();
            wheel.take_due(10, 8, &mut due);
            assert_eq!(due, [(10, 2)]);
            other.join().unwrap();
            assert_eq!(wheel.cancel(far), Some((1, 1000)));
        });
    }
}

mod gate {
    use super::*;
    use beamr_sync::gate::RecvError;
    use beamr_sync::{Gate, OneShot};

    #[test]
    fn an_opened_gate_lets_all_through() {
        check(3, || {
            let gate = Arc::new(Gate::new());
            let theirs = gate.clone();
            let waiter = thread::spawn(move || theirs.wait());
            let ours = gate.clone();
            let opener = thread::spawn(move || ours.open(3));
            assert_eq!(gate.wait(), Ok(3));
            assert_eq!(waiter.join().unwrap(), Ok(3));
            assert_eq!(opener.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn a_dropped_sender_is_noticed() {
        check(3, || {
            let (sender, receiver) = OneShot::<u32>::channel();
            let sent = Arc::new(AtomicBool::new(false));
            let theirs = sent.clone();
            let other = thread::spawn(move || {
                if theirs.load(Ordering::Relaxed) {
                    sender.send(1).unwrap();
                }
            });
            sent.store(true, Ordering::Relaxed);
            match receiver.recv() {
                Ok(value) => assert_eq!(value, 1),
                Err(error) => assert_eq!(error, RecvError::Dropped),
            }
            other.join().unwrap();
        });
    }
}
