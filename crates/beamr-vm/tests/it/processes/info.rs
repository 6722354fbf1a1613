use beamr_term::{Build, Word, atoms};
use beamr_vm::process::flags::process_flag;
use beamr_vm::process::info::{InfoItem, process_info};
use beamr_vm::process::spawn::{dictionary_all, dictionary_erase, dictionary_get, dictionary_put};
use beamr_vm::signal::request::{garbage_collect, set_group_leader};

use super::*;

#[test]
fn of_another_process() {
    let w = world();
    let name = w.atom("subject").word();
    let key = w.atom("key").word();
    let a = w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            beamr_vm::registry::register(ctx, name, me).unwrap();
            let value = ctx.list([Word::fixnum(1), Word::fixnum(2)]);
            dictionary_put(ctx, key, value);
            process_flag(ctx, atoms::TRAP_EXIT.word(), Word::TRUE).unwrap();
            process_flag(ctx, atoms::PRIORITY.word(), atoms::HIGH.word()).unwrap();
            Flow::Next
        }),
        forever(),
    ]);
    w.run();
    w.vm.send(
        a,
        beamr_vm::process::Carried::build(8, |f| f.tuple(&[Word::fixnum(7)])),
    );
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            beamr_vm::signal::link::link(ctx, a).unwrap();
            Flow::Next
        }),
        step(move |ctx| {
            let r = process_info(
                ctx,
                a,
                &[
                    InfoItem::RegisteredName,
                    InfoItem::Dictionary,
                    InfoItem::Messages,
                    InfoItem::MessageQueueLen,
                    InfoItem::TrapExit,
                    InfoItem::Priority,
                    InfoItem::Links,
                    InfoItem::Status,
                    InfoItem::HeapSize,
                    InfoItem::Monitors,
                ],
            );
            let info = flow!(native(ctx, r)).unwrap();
            said.term(ctx, "info", info);
            Flow::Next
        }),
        step({
            let said = w.said.clone();
            move |ctx| {
                let r = process_info(ctx, Word::pid(4711), &[InfoItem::Status]);
                let info = flow!(native(ctx, r));
                said.say(format!("{info:?}"));
                Flow::Next
            }
        }),
    ]);
    assert_eq!(
        w.run(),
        [
            "info [{registered_name,subject},{dictionary,[{key,[1,2]}]},{messages,[{7}]},{message_queue_len,1},\
             {trap_exit,true},{priority,high},{links,[<0.1.0>]},{status,waiting},{heap_size,233},{monitors,[]}]",
            "None"
        ]
    );
}

#[test]
fn of_oneself_every_item() {
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![step(move |ctx| {
        let me = ctx.self_pid();
        // Those of later releases have no name here.
        let tables = ctx.tables();
        let known = |i: &InfoItem| {
            let name = tables.atoms.intern(i.name()).unwrap();
            InfoItem::parse(tables, name.word()).is_some()
        };
        let all: Vec<InfoItem> = InfoItem::ALL.iter().copied().filter(known).collect();
        let info = process_info(ctx, me, &all).unwrap().unwrap();
        let mut n = 0;
        let mut l = info;
        while let Some((h, t)) = l.as_cons() {
            let pair = h.as_tuple().unwrap();
            let name = ctx.tables().atoms.text(pair[0].as_atom().unwrap());
            assert_eq!(name, all[n].name());
            assert_eq!(InfoItem::parse(ctx.tables(), pair[0]), Some(all[n]));
            n += 1;
            l = t;
        }
        said.say(format!("{}", n == all.len()));
        Flow::Next
    })]);
    assert_eq!(w.run(), ["true"]);
}

#[test]
fn flags() {
    let w = world();
    let said = w.said.clone();
    w.spawn(vec![step(move |ctx| {
        let flag = |ctx: &mut Ctx, k: &str, v: Word| {
            let k = ctx.atom(k).unwrap();
            let old = process_flag(ctx, k, v);
            match old {
                Ok(old) => said.term(ctx, "old", old),
                Err(_) => {
                    ctx.take_pending();
                    said.say("badarg");
                }
            }
        };
        flag(ctx, "trap_exit", Word::TRUE);
        flag(ctx, "trap_exit", Word::fixnum(1));
        flag(ctx, "min_heap_size", Word::fixnum(300));
        flag(ctx, "min_heap_size", Word::fixnum(300));
        flag(ctx, "max_heap_size", Word::fixnum(10_000));
        flag(ctx, "max_heap_size", Word::fixnum(1));
        flag(ctx, "message_queue_data", atoms::OFF_HEAP.word());
        flag(ctx, "sensitive", Word::FALSE);
        flag(ctx, "no_such_flag", Word::FALSE);
        Flow::Next
    })]);
    assert_eq!(
        w.run(),
        [
            "old false",
            "badarg",
            "old 233",
            "old 376",
            "old #{error_logger=>true,include_shared_binaries=>false,kill=>true,size=>0}",
            "badarg",
            "old on_heap",
            "old false",
            "badarg",
        ]
    );
}

#[test]
fn group_leaders_and_collections_of_others() {
    let w = world();
    let a = w.spawn(vec![forever()]);
    w.run();
    let said = w.said.clone();
    w.spawn(vec![
        step(move |ctx| {
            let me = ctx.self_pid();
            let r = set_group_leader(ctx, me, a);
            flow!(native(ctx, r));
            Flow::Next
        }),
        step(move |ctx| {
            let r = garbage_collect(ctx, a, true);
            let done = flow!(native(ctx, r));
            said.say(format!("collected {done}"));
            Flow::Next
        }),
        step({
            let said = w.said.clone();
            move |ctx| {
                let r = process_info(ctx, a, &[InfoItem::GroupLeader]);
                let info = flow!(native(ctx, r)).unwrap();
                said.term(ctx, "info", info);
                Flow::Next
            }
        }),
        step(move |ctx| {
            let me = ctx.self_pid();
            let r = set_group_leader(ctx, me, Word::pid(999));
            flow!(native(ctx, r));
            Flow::Next
        }),
    ]);
    assert_eq!(w.run(), ["collected true", "info [{group_leader,<0.1.0>}]"]);
}

#[test]
fn dictionaries_survive_collections() {
    let w = world();
    let said = w.said.clone();
    let a = w.spawn(vec![
        step(|ctx| {
            for i in 0..100 {
                let k = ctx.tuple(&[Word::fixnum(i)]);
                let v = ctx.list([Word::fixnum(i), Word::fixnum(i)]);
                assert!(dictionary_put(ctx, k, v).is_none());
            }
            Flow::Next
        }),
        receive(&w.said, "go"),
        step(move |ctx| {
            let mut sum = 0;
            for i in 0..100 {
                let k = ctx.tuple(&[Word::fixnum(i)]);
                let v = dictionary_get(ctx, k).unwrap();
                sum += v.head().small_value();
                if i % 2 == 0 {
                    assert!(dictionary_erase(ctx, k).is_some());
                }
            }
            let all = dictionary_all(ctx);
            let mut n = 0;
            let mut l = all;
            while let Some((_, t)) = l.as_cons() {
                n += 1;
                l = t;
            }
            said.say(format!("{sum} {n}"));
            Flow::Next
        }),
    ]);
    w.run();
    w.spawn(vec![step(move |ctx| {
        let r = garbage_collect(ctx, a, true);
        flow!(native(ctx, r));
        beamr_vm::rt::send(ctx, a, Word::fixnum(0)).unwrap();
        Flow::Next
    })]);
    assert_eq!(w.run(), ["go 0", "4950 50"]);
}
