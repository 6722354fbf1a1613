use beamr_term::{Build, Word, atoms};
use beamr_vm::process::flags::process_flag;
use beamr_vm::process::own;
use beamr_vm::process::spawn::{SpawnOptions, spawn_start};
use beamr_vm::rt::send;
use beamr_vm::signal::link::{exit_signal, link, unlink};

use super::*;

fn trap() -> Step {
    step(|ctx| {
        process_flag(ctx, atoms::TRAP_EXIT.word(), Word::TRUE).unwrap();
        Flow::Next
    })
}

fn link_to(pid: Word) -> Step {
    step(move |ctx| {
        let r = link(ctx, pid);
        flow!(native(ctx, r));
        Flow::Next
    })
}

fn exit_with(reason: Word) -> Step {
    step(move |_| Flow::Exit(reason))
}

#[test]
fn an_exit_goes_through_links() {
    let w = world();
    let oops = w.atom("oops").word();
    let a = w.spawn(vec![pause(3), exit_with(oops)]);
    let b = w.spawn(vec![link_to(a), forever()]);
    let c = w.spawn(vec![link_to(b), forever()]);
    let trapping = w.spawn(vec![
        trap(),
        link_to(c),
        receive(&w.said, "trap"),
        forever(),
    ]);
    assert_eq!(w.run(), ["trap {'EXIT',<0.2.0>,oops}"]);
    for p in [a, b, c] {
        assert_eq!(w.exit_of(p), "oops");
    }
    assert!(w.vm.is_alive(trapping));
}

#[test]
fn normal_exits_do_not_kill_but_are_told() {
    let w = world();
    let a = w.spawn(vec![pause(3)]);
    let b = w.spawn(vec![link_to(a), forever()]);
    let c = w.spawn(vec![trap(), link_to(a), receive(&w.said, "c"), forever()]);
    assert_eq!(w.run(), ["c {'EXIT',<0.0.0>,normal}"]);
    assert!(w.vm.is_alive(b) && w.vm.is_alive(c));
}

#[test]
fn exit_2_and_kill() {
    let w = world();
    let kill = atoms::KILL.word();
    let reason = w.atom("because").word();
    let normal = atoms::NORMAL.word();
    let trapping = w.spawn(vec![
        trap(),
        receive(&w.said, "t"),
        receive(&w.said, "t"),
        forever(),
    ]);
    let plain = w.spawn(vec![forever()]);
    let watcher = w.spawn(vec![
        trap(),
        link_to(trapping),
        receive(&w.said, "w"),
        forever(),
    ]);
    assert!(w.run().is_empty());
    w.spawn(vec![step(move |ctx| {
        exit_signal(ctx, plain, normal).unwrap();
        exit_signal(ctx, trapping, normal).unwrap();
        exit_signal(ctx, trapping, reason).unwrap();
        exit_signal(ctx, plain, reason).unwrap();
        Flow::Next
    })]);
    assert_eq!(
        w.run(),
        ["t {'EXIT',<0.3.0>,normal}", "t {'EXIT',<0.3.0>,because}"]
    );
    assert_eq!(w.exit_of(plain), "because");
    assert!(w.vm.is_alive(trapping));
    w.spawn(vec![step(move |ctx| {
        exit_signal(ctx, trapping, kill).unwrap();
        Flow::Next
    })]);
    // Trapping does not help against kill; links see killed.
    assert_eq!(w.run(), ["w {'EXIT',<0.0.0>,killed}"]);
    assert_eq!(w.exit_of(trapping), "killed");
    assert!(w.vm.is_alive(watcher));
}

#[test]
fn an_exit_with_reason_kill_is_trappable_through_a_link() {
    let w = world();
    let a = w.spawn(vec![pause(3), exit_with(atoms::KILL.word())]);
    let b = w.spawn(vec![trap(), link_to(a), receive(&w.said, "b"), forever()]);
    let c = w.spawn(vec![link_to(a), forever()]);
    assert_eq!(w.run(), ["b {'EXIT',<0.0.0>,kill}"]);
    assert!(w.vm.is_alive(b));
    assert_eq!(w.exit_of(c), "kill");
}

#[test]
fn exit_of_oneself() {
    let w = world();
    let normal = atoms::NORMAL.word();
    let said = w.said.clone();
    let a = w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            let r = exit_signal(ctx, me, normal);
            flow!(native(ctx, r));
            Flow::Next
        }),
        step(move |_| {
            said.say("still here");
            Flow::Next
        }),
        forever(),
    ]);
    assert!(w.run().is_empty());
    assert_eq!(w.exit_of(a), "normal");
    let b = w.spawn(vec![
        trap(),
        step(move |ctx| {
            let me = ctx.self_pid();
            exit_signal(ctx, me, normal).unwrap();
            Flow::Next
        }),
        receive(&w.said, "b"),
        forever(),
    ]);
    assert_eq!(w.run(), ["b {'EXIT',<0.1.0>,normal}"]);
    assert!(w.vm.is_alive(b));
}

#[test]
fn unlink_is_synchronous() {
    let w = world();
    let oops = w.atom("oops").word();
    let go = w.atom("go").word();
    // b is linked, unlinks, and then tells a to die: a's exit must not reach b.
    let a = w.spawn(vec![receive(&w.said, "a"), exit_with(oops)]);
    let said = w.said.clone();
    let b = w.spawn(vec![
        trap(),
        link_to(a),
        step(move |ctx| {
            unlink(ctx, a).unwrap();
            send(ctx, a, go).unwrap();
            Flow::Next
        }),
        pause(5),
        step(move |ctx| {
            said.say(format!(
                "{} messages, {} links",
                own(ctx).mailbox.len(),
                own(ctx).links.len()
            ));
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["a go", "0 messages, 0 links"]);
    assert_eq!(w.exit_of(a), "oops");
    assert_eq!(w.exit_of(b), "normal");
}

#[test]
fn link_over_a_pending_unlink_stands() {
    let w = world();
    let oops = w.atom("oops").word();
    let a = w.spawn(vec![pause(6), exit_with(oops)]);
    let b = w.spawn(vec![
        link_to(a),
        step(move |ctx| {
            unlink(ctx, a).unwrap();
            link(ctx, a).unwrap();
            unlink(ctx, a).unwrap();
            link(ctx, a).unwrap();
            Flow::Next
        }),
        forever(),
    ]);
    w.run();
    assert_eq!(w.exit_of(b), "oops");
}

#[test]
fn linking_the_dead() {
    let w = world();
    let dead = Word::pid(12345);
    let a = w.spawn(vec![link_to(dead), forever()]);
    let b = w.spawn(vec![
        trap(),
        link_to(dead),
        receive(&w.said, "b"),
        forever(),
    ]);
    assert_eq!(w.run(), ["b {'EXIT',<0.12345.0>,noproc}"]);
    assert_eq!(w.exit_of(a), "noproc");
    assert!(w.vm.is_alive(b));
    let c = w.spawn(vec![link_to(Word::fixnum(1))]);
    w.run();
    assert_eq!(w.exit_of(c), "badarg");
}

#[test]
fn a_hundred_thousand_links_break_in_steps() {
    let w = world();
    const N: usize = 100_000;
    let oops = w.atom("oops").word();
    let parent = w.spawn(vec![
        step(move |ctx| {
            for _ in 0..N {
                let options = SpawnOptions {
                    link: true,
                    ..SpawnOptions::default()
                };
                let child = script(vec![forever()]);
                assert!(spawn_start(ctx, child, &options).is_ok());
            }
            Flow::Next
        }),
        pause(2),
        exit_with(oops),
    ]);
    assert_eq!(w.vm.process_count(), 1);
    w.run();
    assert_eq!(w.exit_of(parent), "oops");
    assert_eq!(w.vm.process_count(), 0);
    assert_eq!(w.vm.default_namespace().process_count(), 0);
    assert_eq!(w.vm.default_namespace().memory(), 0);
}

#[test]
fn big_reasons_are_copied_to_everybody() {
    let w = world();
    let a = w.spawn(vec![
        pause(3),
        step(|ctx| {
            let l = ctx.list((0..5).map(Word::fixnum));
            let r = ctx.tuple(&[atoms::ERROR.word(), l]);
            Flow::Exit(r)
        }),
    ]);
    for _ in 0..3 {
        w.spawn(vec![trap(), link_to(a), receive(&w.said, "got")]);
    }
    let got = w.run();
    assert_eq!(got, vec!["got {'EXIT',<0.0.0>,{error,[0,1,2,3,4]}}"; 3]);
    assert_eq!(w.exit_of(a), "{error,[0,1,2,3,4]}");
}
