use beamr_term::{Build, Word, atoms};
use beamr_vm::process::spawn::make_ref;
use beamr_vm::process::{AliasMode, Carried};
use beamr_vm::rt::{
    loop_rec_end, marker_bind, marker_clear, marker_reserve, marker_use, next_message,
    remove_message, send,
};
use beamr_vm::signal::alias::{alias, unalias};

use super::*;

#[test]
fn messages_come_in_order_and_wake() {
    let w = world();
    let a = w.spawn(vec![
        receive(&w.said, "a"),
        receive(&w.said, "a"),
        receive(&w.said, "a"),
    ]);
    assert!(w.run().is_empty());
    let b = w.spawn(vec![step(move |ctx| {
        for i in 0..3 {
            let m = ctx.list([Word::fixnum(i), a]);
            send(ctx, a, m).unwrap();
        }
        Flow::Next
    })]);
    assert_eq!(w.run(), ["a [0,<0.0.0>]", "a [1,<0.0.0>]", "a [2,<0.0.0>]"]);
    assert_eq!(w.exit_of(a), "normal");
    assert_eq!(w.exit_of(b), "normal");
    assert_eq!(w.vm.process_count(), 0);
}

#[test]
fn destinations() {
    let w = world();
    let name = w.atom("server").word();
    let nowhere = w.atom("nowhere").word();
    w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            beamr_vm::registry::register(ctx, name, me).unwrap();
            Flow::Next
        }),
        receive(&w.said, "got"),
        receive(&w.said, "got"),
    ]);
    let said = w.said.clone();
    w.spawn(vec![
        pause(1),
        step(move |ctx| {
            send(ctx, name, Word::fixnum(1)).unwrap();
            let node = atoms::NONODE_NOHOST.word();
            let to = ctx.tuple(&[name, node]);
            send(ctx, to, Word::fixnum(2)).unwrap();
            // Nobody there: nothing happens for pids, {Name, Node} and references, badarg for names.
            send(ctx, Word::pid(99_999), Word::NIL).unwrap();
            let to = ctx.tuple(&[nowhere, node]);
            send(ctx, to, Word::NIL).unwrap();
            let r = make_ref(ctx);
            send(ctx, r, Word::NIL).unwrap();
            for bad in [nowhere, Word::fixnum(7), Word::NIL] {
                said.say(format!("{:?}", send(ctx, bad, Word::NIL).is_err()));
            }
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["true", "true", "true", "got 1", "got 2"]);
}

#[test]
fn selective_receive_leaves_the_rest_in_order() {
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![
        step(move |ctx| {
            loop {
                match next_message(ctx) {
                    Ok(Some(m)) if m == Word::fixnum(3) => {
                        said.say("found 3");
                        remove_message(ctx);
                        return Flow::Next;
                    }
                    Ok(Some(_)) => loop_rec_end(ctx),
                    _ => return Flow::Wait,
                }
            }
        }),
        receive(&w.said, "rest"),
        receive(&w.said, "rest"),
        receive(&w.said, "rest"),
    ]);
    for i in [1, 2, 3, 4] {
        w.vm.send(a, Carried::immediate(Word::fixnum(i)));
        let said = w.run();
        match i {
            3 => assert_eq!(said, ["found 3", "rest 1", "rest 2"]),
            4 => assert_eq!(said, ["rest 4"]),
            _ => assert!(said.is_empty()),
        }
    }
}

#[test]
fn a_marker_makes_a_receive_start_behind_a_full_mailbox() {
    let w = world();
    let said = w.said.clone();
    const MANY: i64 = 100_000;
    let echo = w.spawn(vec![step(|ctx| match next_message(ctx) {
        Ok(Some(m)) => {
            let t = m.as_tuple().unwrap();
            let reply = ctx.tuple(&[t[1], Word::TRUE]);
            send(ctx, t[0], reply).unwrap();
            remove_message(ctx);
            Flow::Wait
        }
        _ => Flow::Wait,
    })]);
    w.spawn(vec![
        step(|ctx| {
            let me = ctx.self_pid();
            for i in 0..MANY {
                send(ctx, me, Word::fixnum(i)).unwrap();
            }
            Flow::Next
        }),
        step(move |ctx| {
            let marker = marker_reserve(ctx);
            let r = make_ref(ctx);
            marker_bind(ctx, marker, r);
            beamr_vm::process::process(ctx).native_state = r;
            let me = ctx.self_pid();
            let request = ctx.tuple(&[me, r]);
            send(ctx, echo, request).unwrap();
            marker_use(ctx, r);
            Flow::Next
        }),
        step(move |ctx| {
            let mut looked = 0;
            loop {
                match next_message(ctx) {
                    Ok(Some(m)) => {
                        looked += 1;
                        let r = beamr_vm::process::process(ctx).native_state;
                        if m.as_tuple()
                            .is_some_and(|t| beamr_term::order::eq_exact(t[0], r, ctx.tables()))
                        {
                            remove_message(ctx);
                            marker_clear(ctx, r);
                            said.say(format!("looked at {looked}"));
                            return Flow::Next;
                        }
                        loop_rec_end(ctx);
                    }
                    _ => return Flow::Wait,
                }
            }
        }),
        receive(&w.said, "first"),
    ]);
    assert_eq!(w.run(), ["looked at 1", "first 0"]);
}

#[test]
fn aliases() {
    let w = world();
    let said = w.said.clone();
    let (to_a, from_a) = std::sync::mpsc::channel::<Carried>();
    let a = w.spawn(vec![
        step(move |ctx| {
            for mode in [AliasMode::Explicit, AliasMode::Reply, AliasMode::Explicit] {
                let r = alias(ctx, mode);
                to_a.send(Carried::copy(r)).unwrap();
                if mode == AliasMode::Explicit {
                    beamr_vm::process::process(ctx).native_state = r;
                }
            }
            // The third is switched off before anything comes.
            let r = beamr_vm::process::process(ctx).native_state;
            said.say(format!("{} {}", unalias(ctx, r), unalias(ctx, r)));
            Flow::Next
        }),
        receive(&w.said, "got"),
        receive(&w.said, "got"),
        receive(&w.said, "got"),
    ]);
    assert_eq!(w.run(), ["true false"]);
    let refs: Vec<Carried> = from_a.iter().take(3).collect();
    w.spawn(vec![step(move |ctx| {
        for (i, r) in refs.iter().enumerate() {
            for k in 0..2 {
                let m = ctx.tuple(&[Word::fixnum(i as i64), Word::fixnum(k)]);
                send(ctx, r.term, m).unwrap();
            }
        }
        Flow::Next
    })]);
    assert_eq!(w.run(), ["got {0,0}", "got {0,1}", "got {1,0}"]);
    assert_eq!(w.exit_of(a), "normal");
}

#[test]
fn fragments_are_adopted_and_survive_collections() {
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![step(move |ctx| match next_message(ctx) {
        Ok(Some(m)) => {
            let (n, rest) = m.as_cons().unwrap();
            let before = beamr_vm::process::process(ctx).native_state;
            let keep = if before.is_none() { Word::NIL } else { before };
            // The kept list refers to every message's fragment.
            let kept = ctx.cons(rest, keep);
            beamr_vm::process::process(ctx).native_state = kept;
            remove_message(ctx);
            if n == Word::fixnum(999) {
                let mut l = kept;
                let mut sum = 0;
                let mut count = 0;
                while let Some((h, t)) = l.as_cons() {
                    let mut inner = h;
                    while let Some((x, xs)) = inner.as_cons() {
                        sum += x.small_value();
                        inner = xs;
                    }
                    count += 1;
                    l = t;
                }
                said.say(format!("{count} {sum}"));
                return Flow::Next;
            }
            Flow::Again
        }
        _ => Flow::Wait,
    })]);
    w.spawn(vec![step(move |ctx| {
        for i in 0..1000i64 {
            let list = ctx.list((0..20).map(|k| Word::fixnum(k + i)));
            let m = ctx.cons(Word::fixnum(i), list);
            send(ctx, a, m).unwrap();
        }
        Flow::Next
    })]);
    let sum: i64 = (0..1000i64)
        .map(|i| (0..20).map(|k| k + i).sum::<i64>())
        .sum();
    assert_eq!(w.run(), [format!("1000 {sum}")]);
}
