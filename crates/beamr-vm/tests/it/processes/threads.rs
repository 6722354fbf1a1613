//! The same with worker threads: nothing is lost, whatever the schedule.

use beamr_term::{Build, Word, atoms};
use beamr_vm::process::spawn::{SpawnOptions, spawn_start};
use beamr_vm::rt::send;

use super::*;

fn threaded(workers: usize) -> World {
    world_with(VmOptions {
        workers,
        ..VmOptions::default()
    })
}

#[test]
fn ping_pong_loses_no_wake_up() {
    let w = threaded(2);
    const ROUNDS: i64 = 20_000;
    let player = |stop: i64| {
        step(move |ctx| {
            while let Ok(Some(m)) = next_message(ctx) {
                let t = m.as_tuple().unwrap();
                let (from, n) = (t[0], t[1].small_value());
                remove_message(ctx);
                let me = ctx.self_pid();
                let reply = ctx.tuple(&[me, Word::fixnum(n + 1)]);
                send(ctx, from, reply).unwrap();
                if n >= stop {
                    return Flow::Next;
                }
            }
            Flow::Wait
        })
    };
    let pairs: Vec<(Word, Word)> = (0..4)
        .map(|_| (w.spawn(vec![player(ROUNDS)]), w.spawn(vec![player(ROUNDS)])))
        .collect();
    for (a, b) in &pairs {
        let b = *b;
        w.vm.send(
            *a,
            beamr_vm::process::Carried::build(8, |f| f.tuple(&[b, Word::fixnum(0)])),
        );
    }
    for (a, b) in pairs {
        for p in [a, b] {
            let r =
                w.vm.run_until_exit(p, Some(std::time::Duration::from_secs(60)));
            assert_eq!(r.unwrap().reason.term, atoms::NORMAL.word());
        }
    }
}

#[test]
fn a_crowd_reports_to_one() {
    let w = threaded(3);
    const CROWD: i64 = 5_000;
    let collector = w.spawn(vec![step({
        let mut n = 0;
        let mut sum = 0;
        move |ctx| {
            while let Ok(Some(m)) = next_message(ctx) {
                sum += m.as_tuple().unwrap()[1].small_value();
                n += 1;
                remove_message(ctx);
            }
            if n < CROWD {
                return Flow::Wait;
            }
            Flow::Exit(Word::fixnum(sum))
        }
    })]);
    w.spawn(vec![step(move |ctx| {
        for i in 0..CROWD {
            let child = script(vec![
                pause((i % 3) as usize),
                step(move |ctx| {
                    let me = ctx.self_pid();
                    let m = ctx.tuple(&[me, Word::fixnum(i)]);
                    send(ctx, collector, m).unwrap();
                    Flow::Next
                }),
            ]);
            spawn_start(ctx, child, &SpawnOptions::default()).unwrap();
        }
        Flow::Next
    })]);
    let r =
        w.vm.run_until_exit(collector, Some(std::time::Duration::from_secs(60)))
            .unwrap();
    assert_eq!(r.reason.term, Word::fixnum(CROWD * (CROWD - 1) / 2));
}

#[test]
fn monitors_of_a_dying_crowd_all_fire() {
    let w = threaded(2);
    const CROWD: usize = 3_000;
    let p = w.spawn(vec![
        step(move |ctx| {
            for i in 0..CROWD {
                let child = script(vec![pause(i % 4)]);
                let options = SpawnOptions {
                    monitor: Some(Default::default()),
                    ..SpawnOptions::default()
                };
                spawn_start(ctx, child, &options).unwrap();
            }
            Flow::Next
        }),
        step({
            let mut n = 0;
            move |ctx| {
                while let Ok(Some(m)) = next_message(ctx) {
                    assert_eq!(m.as_tuple().unwrap()[4], atoms::NORMAL.word());
                    remove_message(ctx);
                    n += 1;
                }
                if n < CROWD { Flow::Wait } else { Flow::Next }
            }
        }),
    ]);
    let r =
        w.vm.run_until_exit(p, Some(std::time::Duration::from_secs(60)))
            .unwrap();
    assert_eq!(r.reason.term, atoms::NORMAL.word());
}
