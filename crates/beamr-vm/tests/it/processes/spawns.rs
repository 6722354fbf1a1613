use beamr_sync::Priority;
use beamr_term::{Build, Word, atoms};
use beamr_vm::process::own;
use beamr_vm::process::spawn::{
    OptionError, RequestOptions, SpawnOptions, make_ref, processes, spawn_options, spawn_request,
    spawn_start, unique_integer,
};
use beamr_vm::signal::monitor::MonitorOptions;

use super::*;

#[test]
fn options_are_parsed() {
    let w = world();
    w.atom("reply_tag");
    w.atom("error_only");
    w.spawn(vec![step(|ctx| {
        let pair = |ctx: &mut Ctx, k: &str, v: Word| {
            let k = ctx.atom(k).unwrap();
            ctx.tuple(&[k, v])
        };
        let high = atoms::HIGH.word();
        let list = [
            atoms::LINK.word(),
            atoms::MONITOR.word(),
            pair(ctx, "priority", high),
            pair(ctx, "fullsweep_after", Word::fixnum(0)),
            pair(ctx, "min_heap_size", Word::fixnum(1000)),
            pair(ctx, "max_heap_size", Word::fixnum(5000)),
            pair(ctx, "message_queue_data", atoms::OFF_HEAP.word()),
        ];
        let list = ctx.list(list);
        let o = spawn_options(ctx, list, None).unwrap();
        assert!(o.link && o.monitor.is_some() && o.off_heap_messages);
        assert_eq!(o.priority, Some(Priority::High));
        assert_eq!(o.fullsweep_after, Some(0));
        assert_eq!(o.min_heap_size, Some(1000));
        assert_eq!(o.max_heap_size.unwrap().0, 5000);
        let only = ctx.atom("error_only").unwrap();
        let reply = pair(ctx, "reply", only);
        let tag = pair(ctx, "reply_tag", Word::fixnum(7));
        let list = ctx.list([reply, tag]);
        assert_eq!(
            spawn_options(ctx, list, None).unwrap_err(),
            OptionError::BadOption
        );
        let mut r = RequestOptions::default();
        spawn_options(ctx, list, Some(&mut r)).unwrap();
        assert_eq!(r.reply_tag, Some(Word::fixnum(7)));
        let improper = ctx.cons(atoms::LINK.word(), Word::fixnum(1));
        assert_eq!(
            spawn_options(ctx, improper, None).unwrap_err(),
            OptionError::NotAList
        );
        let bad = ctx.list([Word::fixnum(1)]);
        assert!(spawn_options(ctx, bad, None).is_err());
        Flow::Next
    })]);
    w.run();
    assert_eq!(w.vm.process_count(), 0);
}

#[test]
fn link_and_monitor_stand_before_the_child_runs() {
    let w = world();
    let oops = w.atom("oops").word();
    w.spawn(vec![
        step(move |ctx| {
            beamr_vm::process::flags::process_flag(ctx, atoms::TRAP_EXIT.word(), Word::TRUE)
                .unwrap();
            let options = SpawnOptions {
                link: true,
                monitor: Some(MonitorOptions::default()),
                ..SpawnOptions::default()
            };
            let child = script(vec![step(move |_| Flow::Exit(oops))]);
            let s = spawn_start(ctx, child, &options).unwrap();
            assert!(s.monitor.is_some());
            assert_eq!(own(ctx).links.len(), 1);
            Flow::Next
        }),
        receive(&w.said, "got"),
        step({
            let said = w.said.clone();
            move |ctx| match next_message(ctx) {
                Ok(Some(m)) => {
                    let t = m.as_tuple().unwrap();
                    said.term(ctx, "then", t[0]);
                    Flow::Next
                }
                _ => Flow::Wait,
            }
        }),
    ]);
    assert_eq!(w.run(), ["got {'EXIT',<0.1.0>,oops}", "then 'DOWN'"]);
}

#[test]
fn spawn_request_replies() {
    let w = world();
    let m = w.atom("m").word();
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            let options = SpawnOptions {
                monitor: Some(MonitorOptions::default()),
                ..SpawnOptions::default()
            };
            let request = RequestOptions::default();
            let id = spawn_request(ctx, m, m, Word::NIL, &options, &request).unwrap();
            beamr_vm::process::process(ctx).native_state = id;
            assert!(
                spawn_request(ctx, m, m, Word::fixnum(1), &options, &request).is_err(),
                "not a list"
            );
            Flow::Next
        }),
        step(move |ctx| match next_message(ctx) {
            Ok(Some(r)) => {
                let t = r.as_tuple().unwrap().to_vec();
                let id = beamr_vm::process::process(ctx).native_state;
                assert!(beamr_term::order::eq_exact(t[1], id, ctx.tables()));
                let rest = ctx.tuple(&[t[0], t[2], t[3]]);
                said.term(ctx, "reply", rest);
                Flow::Next
            }
            _ => Flow::Wait,
        }),
    ]);
    assert_eq!(w.run(), ["reply {spawn_reply,ok,<0.1.0>}"]);
}

#[test]
fn limits() {
    let w = world_with(VmOptions {
        workers: 0,
        process_limit: 10,
        ..VmOptions::default()
    });
    let said = w.said.clone();
    w.spawn(vec![step(move |ctx| {
        let mut n = 0;
        while spawn_start(ctx, script(vec![forever()]), &SpawnOptions::default()).is_ok() {
            n += 1;
        }
        said.say(format!("{n}"));
        Flow::Next
    })]);
    assert_eq!(w.run(), ["9"]);
    let ns = w.vm.default_namespace();
    assert_eq!(ns.process_count(), 9);
    let w = world();
    w.vm.default_namespace().set_process_limit(3);
    for _ in 0..3 {
        w.spawn(vec![forever()]);
    }
    let ns = w.vm.default_namespace();
    let e =
        w.vm.spawn(&ns, script(vec![]), &SpawnOptions::default(), None)
            .unwrap_err();
    assert_eq!(
        e.to_string(),
        "namespace 0 has all the processes that it may have"
    );
}

#[test]
fn a_flooded_mailbox_counts() {
    let w = world();
    let ns = w.vm.default_namespace();
    ns.set_memory_limit(4 << 20);
    let slow = w.spawn(vec![forever()]);
    w.spawn(vec![step(move |ctx| {
        for i in 0..1000 {
            let m = ctx.list((0..10).map(|k| Word::fixnum(i + k)));
            beamr_vm::rt::send(ctx, slow, m).unwrap();
        }
        if beamr_vm::process::vm_of(ctx).is_alive(slow) {
            Flow::Again
        } else {
            Flow::Next
        }
    })]);
    w.run();
    assert_eq!(w.exit_of(slow), "killed");
    assert_eq!(w.vm.process_count(), 0);
    assert_eq!(ns.memory(), 0);
}

#[test]
fn identities_are_unique() {
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![step(move |ctx| {
        let tables = ctx.tables();
        let mut last = make_ref(ctx);
        for _ in 0..3000 {
            let r = make_ref(ctx);
            assert!(beamr_term::order::compare(last, r, tables).is_lt());
            last = r;
        }
        for positive in [false, true] {
            let a = unique_integer(ctx, true, positive);
            let b = unique_integer(ctx, true, positive);
            assert!(beamr_term::order::compare(a, b, tables).is_lt());
            let c = unique_integer(ctx, false, positive);
            let d = unique_integer(ctx, false, positive);
            assert!(!beamr_term::order::eq_exact(c, d, tables));
            if positive {
                assert!(a.small_value() > 0 && c.small_value() > 0);
            }
        }
        let all = processes(ctx);
        said.term(ctx, "processes", all);
        Flow::Next
    })]);
    w.spawn(vec![forever()]);
    assert_eq!(w.run(), ["processes [<0.0.0>,<0.1.0>]"]);
}
