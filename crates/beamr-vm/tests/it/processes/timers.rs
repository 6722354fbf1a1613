use beamr_term::{Build, Word, atoms};
use beamr_vm::process::process;
use beamr_vm::timer::{TimerTime, cancel_timer, read_timer, start_timer};

use super::*;

#[test]
fn receive_timeouts() {
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![
        sleep(0),
        step({
            let said = said.clone();
            move |_| {
                said.say("zero");
                Flow::Next
            }
        }),
        sleep(10),
        step(move |_| {
            said.say("ten");
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["zero"]);
    w.clock.advance_ms(9);
    assert!(w.run().is_empty());
    w.clock.advance_ms(1);
    assert_eq!(w.run(), ["ten"]);
    assert_eq!(w.exit_of(a), "normal");
    assert_eq!(w.vm.run_until_idle(10).next_timer, None);
}

#[test]
fn a_message_cancels_the_timeout() {
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![
        step(move |ctx| {
            match next_message(ctx) {
                Ok(Some(m)) => {
                    said.term(ctx, "got", m);
                    remove_message(ctx);
                    return Flow::Next;
                }
                Ok(None) => {}
                Err(_) => return Flow::Wait,
            }
            match wait_timeout(ctx, Word::fixnum(50)) {
                WaitOutcome::Sleep => Flow::Wait,
                _ => panic!("no timeout expected"),
            }
        }),
        receive(&w.said, "second"),
    ]);
    w.run();
    assert_eq!(
        w.vm.run_until_idle(1).next_timer,
        Some(std::time::Duration::from_millis(50))
    );
    w.vm.send(a, beamr_vm::process::Carried::immediate(Word::fixnum(1)));
    assert_eq!(w.run(), ["got 1"]);
    assert_eq!(w.vm.run_until_idle(1).next_timer, None);
    w.clock.advance_ms(100);
    assert!(w.run().is_empty());
}

#[test]
fn bad_timeouts() {
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![step(move |ctx| {
        for t in [
            Word::fixnum(-1),
            Word::fixnum(1 << 32),
            Word::NIL,
            atoms::OK.word(),
        ] {
            said.say(format!("{:?}", wait_timeout(ctx, t)));
        }
        Flow::Next
    })]);
    assert_eq!(w.run(), vec!["BadTimeout"; 4]);
}

#[test]
fn message_timers() {
    let w = world();
    let said = w.said.clone();
    let name = w.atom("named").word();
    let a = w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            beamr_vm::registry::register(ctx, name, me).unwrap();
            let hi = ctx.tuple(&[atoms::OK.word(), Word::fixnum(1)]);
            start_timer(ctx, TimerTime::In(10), me, hi, false).unwrap();
            start_timer(ctx, TimerTime::In(20), name, Word::fixnum(2), false).unwrap();
            let r = start_timer(ctx, TimerTime::In(30), me, Word::fixnum(3), true).unwrap();
            process(ctx).native_state = r;
            said.say(format!("{:?}", read_timer(ctx, r).unwrap()));
            let c = start_timer(ctx, TimerTime::At(15), me, Word::fixnum(4), false).unwrap();
            said.say(format!("{:?}", cancel_timer(ctx, c).unwrap()));
            said.say(format!("{:?}", cancel_timer(ctx, c).unwrap()));
            said.say(format!("{:?}", read_timer(ctx, c).unwrap()));
            assert!(cancel_timer(ctx, Word::NIL).is_err());
            assert!(start_timer(ctx, TimerTime::In(1), Word::NIL, Word::NIL, false).is_err());
            Flow::Next
        }),
        receive(&w.said, "got"),
        receive(&w.said, "got"),
        step({
            let said = w.said.clone();
            move |ctx| match next_message(ctx) {
                Ok(Some(m)) => {
                    let t = m.as_tuple().unwrap();
                    let r = process(ctx).native_state;
                    assert!(beamr_term::order::eq_exact(t[1], r, ctx.tables()));
                    said.term(ctx, "timeout", t[2]);
                    assert_eq!(t[0], atoms::TIMEOUT.word());
                    said.say(format!("{:?}", read_timer(ctx, r).unwrap()));
                    Flow::Next
                }
                _ => Flow::Wait,
            }
        }),
    ]);
    assert_eq!(w.run(), ["Some(30)", "Some(15)", "None", "None"]);
    w.clock.advance_ms(10);
    assert_eq!(w.run(), ["got {ok,1}"]);
    w.clock.advance_ms(10);
    assert_eq!(w.run(), ["got 2"]);
    w.clock.advance_ms(9);
    assert!(w.run().is_empty());
    w.clock.advance_ms(1);
    assert_eq!(w.run(), ["timeout 3", "None"]);
    assert_eq!(w.exit_of(a), "normal");
}

#[test]
fn many_timers_fire_in_order() {
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![
        step(|ctx| {
            let me = ctx.self_pid();
            for i in 0..1000u64 {
                let at = (i * 7919) % 1000;
                start_timer(ctx, TimerTime::In(at), me, Word::fixnum(at as i64), false).unwrap();
            }
            Flow::Next
        }),
        step({
            let mut last = -1;
            let mut n = 0;
            move |ctx| {
                while let Ok(Some(m)) = next_message(ctx) {
                    assert!(m.small_value() > last);
                    last = m.small_value();
                    n += 1;
                    remove_message(ctx);
                }
                if n == 1000 {
                    said.say("all");
                    return Flow::Next;
                }
                Flow::Wait
            }
        }),
    ]);
    for _ in 0..101 {
        w.run();
        w.clock.advance_ms(10);
    }
    w.vm.run_until_idle(100);
    assert_eq!(w.vm.process_count(), 0);
}
