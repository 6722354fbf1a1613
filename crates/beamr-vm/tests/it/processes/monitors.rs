use beamr_term::{Build, Word, atoms};
use beamr_vm::process::{Carried, own, process};
use beamr_vm::rt::send;
use beamr_vm::signal::monitor::{
    MonitorOptions, Monitored, demonitor, monitor, monitor_options, monitored_process,
};

use super::*;

/// Monitors an item and keeps the reference.
fn watch(item: impl Fn(&mut Ctx) -> Word + Send + 'static) -> Step {
    step(move |ctx| {
        let item = item(ctx);
        let what = monitored_process(ctx, item).unwrap();
        let r = monitor(ctx, what, MonitorOptions::default());
        process(ctx).native_state = r;
        Flow::Next
    })
}

/// Receives a `'DOWN'` and says it without its reference.
fn down(said: &Said) -> Step {
    let said = said.clone();
    step(move |ctx| match beamr_vm::rt::next_message(ctx) {
        Ok(Some(m)) => {
            let t = m.as_tuple().unwrap().to_vec();
            let mine = beamr_term::order::eq_exact(t[1], process(ctx).native_state, ctx.tables());
            let rest = ctx.tuple(&[t[0], t[2], t[3], t[4]]);
            said.term(ctx, if mine { "mine" } else { "other" }, rest);
            beamr_vm::rt::remove_message(ctx);
            Flow::Next
        }
        _ => Flow::Wait,
    })
}

#[test]
fn by_pid_by_name_and_of_the_dead() {
    let w = world();
    let name = w.atom("server").word();
    let oops = w.atom("oops").word();
    let a = w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            beamr_vm::registry::register(ctx, name, me).unwrap();
            Flow::Next
        }),
        pause(4),
        step(move |_| Flow::Exit(oops)),
    ]);
    w.spawn(vec![pause(1), watch(move |_| a), down(&w.said)]);
    w.spawn(vec![pause(1), watch(move |_| name), down(&w.said)]);
    w.spawn(vec![watch(|_| Word::pid(777)), down(&w.said)]);
    let nobody = w.atom("nobody").word();
    w.spawn(vec![watch(move |_| nobody), down(&w.said)]);
    let mut got = w.run();
    got.sort();
    assert_eq!(
        got,
        [
            "mine {'DOWN',process,<0.0.0>,oops}",
            "mine {'DOWN',process,<0.777.0>,noproc}",
            "mine {'DOWN',process,{nobody,'nonode@nohost'},noproc}",
            "mine {'DOWN',process,{server,'nonode@nohost'},oops}",
        ]
    );
    // The name is free when the 'DOWN' comes.
    assert_eq!(w.vm.whereis(w.atom("server")), None);
}

#[test]
fn demonitor_takes_effect_and_flushes() {
    let w = world();
    let a = w.spawn(vec![super::receive(&w.said, "a")]);
    let said = w.said.clone();
    w.spawn(vec![
        watch(move |_| a),
        step(move |ctx| {
            let r = process(ctx).native_state;
            assert!(demonitor(ctx, r, false).unwrap());
            assert!(!demonitor(ctx, r, false).unwrap());
            let m = monitor(
                ctx,
                Monitored::Pid(beamr_vm::process::ProcId::of(a).unwrap()),
                MonitorOptions::default(),
            );
            process(ctx).native_state = m;
            send(ctx, a, Word::fixnum(1)).unwrap();
            Flow::Next
        }),
        pause(3),
        step(move |ctx| {
            // The second monitor has fired by now: flush takes the message out.
            let r = process(ctx).native_state;
            said.say(format!("{}", demonitor(ctx, r, true).unwrap()));
            said.say(format!("{}", own(ctx).mailbox.len()));
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["a 1", "false", "0"]);
}

#[test]
fn options() {
    let w = world();
    let a = w.spawn(vec![super::receive(&w.said, "a")]);
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            let tag = ctx.tuple(&[atoms::ERROR.word(), Word::fixnum(5)]);
            let pair = ctx.tuple(&[atoms::TAG.word(), tag]);
            let alias = ctx.tuple(&[atoms::ALIAS.word(), atoms::REPLY_DEMONITOR.word()]);
            let list = ctx.list([pair, alias]);
            let options = monitor_options(list).unwrap();
            let what = Monitored::Pid(beamr_vm::process::ProcId::of(a).unwrap());
            let r = monitor(ctx, what, options);
            process(ctx).native_state = r;
            send(ctx, a, Word::fixnum(1)).unwrap();
            Flow::Next
        }),
        down(&w.said),
        step(move |ctx| {
            // The alias went with the monitor.
            let r = process(ctx).native_state;
            send(ctx, r, Word::fixnum(9)).unwrap();
            Flow::Next
        }),
        pause(2),
        step(move |ctx| {
            said.say(format!(
                "{} {}",
                own(ctx).mailbox.len(),
                own(ctx).aliases.len()
            ));
            Flow::Next
        }),
    ]);
    assert_eq!(
        w.run(),
        ["a 1", "mine {{error,5},process,<0.0.0>,normal}", "0 0"]
    );
    let bad = w.spawn(vec![step(|ctx| {
        let l = ctx.list([Word::fixnum(1)]);
        assert!(monitor_options(l).is_none());
        assert!(monitor_options(Word::fixnum(1)).is_none());
        Flow::Next
    })]);
    w.run();
    assert_eq!(w.exit_of(bad), "normal");
}

#[test]
fn a_reply_by_alias_removes_the_monitor() {
    let w = world();
    let (tx, rx) = std::sync::mpsc::channel::<Carried>();
    let mut rx = Some(rx);
    let server = w.spawn(vec![
        pause(2),
        step(move |ctx| {
            let r = rx.take().unwrap().try_recv().unwrap();
            send(ctx, r.term, Word::fixnum(1)).unwrap();
            send(ctx, r.term, Word::fixnum(2)).unwrap();
            Flow::Next
        }),
    ]);
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            let options = MonitorOptions {
                alias: Some(beamr_vm::process::AliasMode::ReplyDemonitor),
                tag: None,
                priority: false,
            };
            let what = Monitored::Pid(beamr_vm::process::ProcId::of(server).unwrap());
            let r = monitor(ctx, what, options);
            tx.send(Carried::copy(r)).unwrap();
            Flow::Next
        }),
        super::receive(&w.said, "reply"),
        pause(3),
        step(move |ctx| {
            said.say(format!(
                "{} messages {} monitors",
                own(ctx).mailbox.len(),
                own(ctx).monitors.len()
            ));
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["reply 1", "0 messages 0 monitors"]);
}
