use std::time::Duration;

use beamr_term::{Word, atoms};
use beamr_vm::process::exit::ExitReason;
use beamr_vm::process::{Carried, own};
use beamr_vm::vm::WaitError;

use super::*;

#[test]
fn the_host_sees_exits_once() {
    let w = world();
    let oops = w.atom("oops").word();
    let a = w.spawn(vec![step(move |_| Flow::Exit(oops))]);
    let r = w.vm.run_until_exit(a, None).unwrap();
    assert!(matches!(r.exit_reason(), ExitReason::Term(t) if t.term == oops));
    assert_eq!(
        w.vm.run_until_exit(a, None).unwrap_err(),
        WaitError::NoRecord
    );
    let b = w.spawn(vec![forever()]);
    assert_eq!(w.vm.run_until_exit(b, None).unwrap_err(), WaitError::Stuck);
    assert!(w.vm.exit(b, Carried::immediate(atoms::KILL)));
    let r = w.vm.run_until_exit(b, None).unwrap();
    assert!(matches!(r.exit_reason(), ExitReason::Killed));
    assert!(!w.vm.exit(b, Carried::immediate(atoms::KILL)));
    assert!(!w.vm.send(b, Carried::immediate(Word::NIL)));
    let c = w.spawn(vec![sleep(1000)]);
    assert_eq!(
        w.vm.run_until_exit(c, Some(Duration::ZERO)).unwrap_err(),
        WaitError::Timeout
    );
}

#[test]
fn names_and_owned_things_go_first() {
    let w = world();
    let name = w.atom("keeper").word();
    let said = w.said.clone();
    let hook_said = w.said.clone();
    w.vm.exit_hooks.set(vec![Arc::new(move |w, slot, own| {
        let free =
            w.vm.registry
                .whereis(0, w.vm.tables.atoms.lookup("keeper").unwrap());
        hook_said.say(format!(
            "hook {} {} {:?}",
            slot.id.as_u64(),
            own.owned_resources,
            free.is_none()
        ));
    })]);
    let a = w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            beamr_vm::registry::register(ctx, name, me).unwrap();
            own(ctx).owned_resources |= 4;
            Flow::Next
        }),
        pause(2),
    ]);
    w.spawn(vec![
        step(move |ctx| {
            beamr_vm::signal::monitor::monitor(
                ctx,
                beamr_vm::signal::monitor::Monitored::Pid(
                    beamr_vm::process::ProcId::of(a).unwrap(),
                ),
                Default::default(),
            );
            Flow::Next
        }),
        step(move |ctx| match next_message(ctx) {
            Ok(Some(_)) => {
                said.say("down");
                Flow::Next
            }
            _ => Flow::Wait,
        }),
    ]);
    // The second process owns nothing: no hook runs for it.
    assert_eq!(w.run(), ["hook 0 4 true", "down"]);
}

#[test]
fn suspended_processes_do_not_run_but_handle_signals() {
    use beamr_vm::signal::request::is_process_alive;
    use beamr_vm::signal::suspend::{SuspendOptions, resume_process, suspend_process};
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![
        receive(&w.said, "a"),
        receive(&w.said, "a"),
        forever(),
    ]);
    w.spawn(vec![
        step(move |ctx| {
            let r = suspend_process(ctx, a, SuspendOptions::default());
            flow!(native(ctx, r));
            Flow::Next
        }),
        step(move |ctx| {
            beamr_vm::rt::send(ctx, a, Word::fixnum(1)).unwrap();
            Flow::Next
        }),
        step(move |ctx| {
            let r = is_process_alive(ctx, a);
            let alive = flow!(native(ctx, r));
            said.say(format!("alive {alive}"));
            Flow::Next
        }),
        pause(3),
        step({
            let said = w.said.clone();
            move |ctx| {
                said.say("resume");
                resume_process(ctx, a).unwrap();
                assert!(resume_process(ctx, a).is_err());
                Flow::Next
            }
        }),
        pause(3),
        step(move |ctx| {
            // Suspended again, and left so: the death of the suspender resumes.
            let options = SuspendOptions {
                asynchronous: true,
                ..Default::default()
            };
            assert!(suspend_process(ctx, a, options).unwrap());
            beamr_vm::rt::send(ctx, a, Word::fixnum(2)).unwrap();
            Flow::Next
        }),
        pause(3),
        step({
            let said = w.said.clone();
            move |_| {
                said.say("suspender ends");
                Flow::Next
            }
        }),
    ]);
    assert_eq!(
        w.run(),
        ["alive true", "resume", "a 1", "suspender ends", "a 2"]
    );
}

#[test]
fn a_suspended_process_can_be_killed() {
    use beamr_vm::signal::suspend::{SuspendOptions, suspend_process};
    let w = world();
    let a = w.spawn(vec![forever()]);
    w.run();
    let b = w.spawn(vec![
        step(move |ctx| {
            let r = suspend_process(ctx, a, SuspendOptions::default());
            flow!(native(ctx, r));
            Flow::Next
        }),
        forever(),
    ]);
    w.run();
    assert!(w.vm.is_alive(b));
    w.vm.exit(a, Carried::immediate(atoms::KILL));
    w.run();
    assert_eq!(w.exit_of(a), "killed");
}

#[test]
fn signals_behind_unread_messages_wake_a_suspended_process() {
    use beamr_vm::process::info::{InfoItem, process_info};
    use beamr_vm::signal::suspend::{SuspendOptions, suspend_process};
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            // Suspended before it ever ran: it is parked as ready, with a message that it has not looked at.
            let child = script(vec![forever()]);
            let s = beamr_vm::process::spawn::spawn_start(ctx, child, &SpawnOptions::default());
            let pid = s.unwrap().pid;
            beamr_vm::process::process(ctx).native_state = pid;
            let options = SuspendOptions {
                asynchronous: true,
                ..Default::default()
            };
            suspend_process(ctx, pid, options).unwrap();
            beamr_vm::rt::send(ctx, pid, Word::fixnum(1)).unwrap();
            Flow::Next
        }),
        pause(3),
        step(move |ctx| {
            let pid = beamr_vm::process::process(ctx).native_state;
            let r = process_info(ctx, pid, &[InfoItem::Status, InfoItem::MessageQueueLen]);
            let info = flow!(native(ctx, r)).unwrap();
            said.term(ctx, "info", info);
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["info [{status,suspended},{message_queue_len,1}]"]);
}

#[test]
fn a_panic_kills_the_process_alone() {
    let w = world();
    let a = w.spawn(vec![step(|_| panic!("a bug"))]);
    let b = w.spawn(vec![receive(&w.said, "b")]);
    w.run();
    assert_eq!(w.exit_of(a), "{vm_panic,<<\"a bug\">>}");
    w.vm.send(b, Carried::immediate(Word::fixnum(1)));
    assert_eq!(w.run(), ["b 1"]);
}
