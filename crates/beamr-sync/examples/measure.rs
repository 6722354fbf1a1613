//! Measures the primitives: nanoseconds per operation, the lowest of seven runs.
//!
//! `cargo run --release -p beamr-sync --example measure`

use beamr_sync::prim::Arc;
use beamr_sync::{
    Domain, Node, Parker, Priority, ProcState, RunQueue, SharedWheel, SignalQueue, SlotTable, Task,
    TimerWheel,
};
use std::hint::black_box;
use std::time::Instant;

/// Prints the time of one of the `count` operations that `run` does.
fn measure(name: &str, count: u32, mut run: impl FnMut()) {
    let lowest = (0..7)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / f64::from(count)
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:<58} {lowest:9.1} ns");
}

const N: u32 = 200_000;

fn signals() {
    let queue = SignalQueue::new();
    measure(
        "signal: push and fetch one, same thread, allocating",
        N,
        || {
            for n in 0..N {
                let _ = queue.push(n);
                black_box(queue.fetch().count());
            }
        },
    );
    let mut kept = Some(Node::new(0));
    measure(
        "signal: push and fetch one, same thread, node reused",
        N,
        || {
            for _ in 0..N {
                if let Some(node) = kept.take() {
                    let _ = queue.push_node(node);
                }
                kept = queue.fetch().next_node();
            }
        },
    );
    measure(
        "signal: push 100, fetch 100, same thread, per signal",
        N,
        || {
            for n in 0..N {
                let _ = queue.push(n);
                if n % 100 == 99 {
                    black_box(queue.fetch().count());
                }
            }
        },
    );
    for senders in [1, 2] {
        let name = format!("signal: {senders} sender(s) and a receiver, per signal");
        measure(&name, N * senders, || {
            let queue = SignalQueue::new();
            std::thread::scope(|scope| {
                for _ in 0..senders {
                    scope.spawn(|| {
                        for n in 0..N {
                            let _ = queue.push(n);
                        }
                    });
                }
                let mut seen = 0;
                while seen < (N * senders) as usize {
                    seen += queue.fetch().count();
                }
            });
        });
    }
}

fn states() {
    let state = ProcState::new_waiting();
    measure("state: notify, begin, wait", N, || {
        for _ in 0..N {
            if state.notify() {
                black_box(state.begin_run());
                let _ = black_box(state.end_run_wait());
            }
        }
    });
}

#[derive(Clone, Copy)]
struct Tenant(u32);

impl Task for Tenant {
    fn tenant(&self) -> u32 {
        self.0
    }
}

fn run_queues() {
    for tenants in [1, 4, 1000] {
        let queue = RunQueue::new();
        for n in 0..1000 {
            queue.push(Priority::Normal, Tenant(n % tenants));
        }
        let name = format!("run queue: pop and push, 1000 tasks of {tenants} tenant(s)");
        measure(&name, N, || {
            for _ in 0..N {
                if let Some((priority, task)) = queue.pop() {
                    queue.push(priority, task);
                }
            }
        });
    }
}

fn tables() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 1 << 18);
    let ids: Vec<_> = (0..1000)
        .filter_map(|n| table.insert(Arc::new(n)).ok())
        .collect();
    measure("table: get, pinned", N, || {
        let guard = worker.pin();
        for n in 0..N as usize {
            black_box(table.get(ids[n % 1000], &guard));
        }
    });
    measure("table: get, pinned, with its own nested pin", N, || {
        let _slice = worker.pin();
        for n in 0..N as usize {
            black_box(table.get(ids[n % 1000], &worker.pin()).copied());
        }
    });
    measure("table: counted reference, pinned", N, || {
        let guard = worker.pin();
        for n in 0..N as usize {
            black_box(table.get_counted(ids[n % 1000], &guard));
        }
    });
    measure("table: counted reference as a guest", N, || {
        for n in 0..N as usize {
            black_box(table.lookup(ids[n % 1000]));
        }
    });
    measure("epoch: outermost pin and unpin", N, || {
        for _ in 0..N {
            black_box(&worker.pin());
        }
    });
    let value = Arc::new(0);
    measure("table: insert and remove", N, || {
        for _ in 0..N {
            let guard = worker.pin();
            if let Ok(id) = table.insert(value.clone()) {
                black_box(table.remove(id, &guard));
            }
        }
    });
    let big = SlotTable::new(&domain, 1 << 20);
    for _ in 0..(1 << 20) - 1 {
        let _ = big.insert(value.clone());
    }
    measure(
        "table: insert and remove at 1048575 of 1048576 entries",
        N,
        || {
            for _ in 0..N {
                let guard = worker.pin();
                if let Ok(id) = big.insert(value.clone()) {
                    black_box(big.remove(id, &guard));
                }
            }
        },
    );
    measure("table: walk, per entry", 1 << 20, || {
        let guard = worker.pin();
        black_box(big.iter(&guard).count());
    });
}

fn timers() {
    let mut wheel = TimerWheel::new(0);
    let mut now = 0;
    measure("timer: start and cancel", N, || {
        for n in 0..N {
            let handle = wheel.insert(now + 5000, n);
            black_box(wheel.cancel(handle));
        }
    });
    let mut handles = Vec::new();
    measure("timer: start, a million running", 1_000_000, || {
        wheel = TimerWheel::new(0);
        handles.clear();
        for n in 0..1_000_000_u32 {
            let deadline = u64::from(n.wrapping_mul(0x9e37_79b9)) % 3_600_000;
            handles.push(wheel.insert(deadline, n));
        }
    });
    measure("timer: start and cancel beside a million", N, || {
        for n in 0..N {
            let handle = wheel.insert(u64::from(n), n);
            black_box(wheel.cancel(handle));
        }
    });
    let start = Instant::now();
    while !wheel.is_empty() {
        now += 1;
        wheel.advance(now, |_, payload| {
            black_box(payload);
        });
    }
    println!(
        "{:<58} {:9.1} ns",
        "timer: expire a million over an hour of ticks, per timer",
        start.elapsed().as_nanos() as f64 / 1e6
    );
    let shared = SharedWheel::new(0);
    measure("timer: start and cancel, shared wheel", N, || {
        for n in 0..N {
            let handle = shared.insert(5000, n).handle;
            black_box(shared.cancel(handle));
        }
    });
}

fn parking() {
    const ROUNDS: u32 = 5_000;
    measure(
        "park: round trip between two threads, per wake-up",
        2 * ROUNDS,
        || {
            let (mut ours, mut theirs) = (Parker::new(), Parker::new());
            let (wake_us, wake_them) = (ours.unparker(), theirs.unparker());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        theirs.park();
                        wake_us.unpark();
                    }
                });
                for _ in 0..ROUNDS {
                    wake_them.unpark();
                    ours.park();
                }
            });
        },
    );
}

fn main() {
    signals();
    states();
    run_queues();
    tables();
    timers();
    parking();
}
