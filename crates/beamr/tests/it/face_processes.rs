//! The face: spawning, messages, links, monitors, processes written in Rust.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use beamr::{
    ExecError, ExitReason, LinkError, Linked, MailboxSendError, NativeContext, NativeHandler,
    NativeOutcome, OwnedTerm, Pid, Reference, SpawnedBy, SupervisionError, WaitError, atom,
};

use crate::face::{builder, vm};

#[test]
fn what_cannot_be_spawned() {
    let vm = vm();
    let undef = |e: ExecError| match e {
        ExecError::Undef {
            module,
            function,
            arity,
        } => format!("{module}:{function}/{arity}"),
        other => panic!("{other:?}"),
    };
    let none = vm.spawn("no_such_module", "f", (1,)).unwrap_err();
    assert_eq!(undef(none), "no_such_module:f/1");
    assert_eq!(
        undef(vm.spawn("face_cases", "f", ()).unwrap_err()),
        "face_cases:f/0"
    );
    assert_eq!(
        undef(vm.spawn("face_cases", "add", (1,)).unwrap_err()),
        "face_cases:add/1"
    );
    assert_eq!(
        undef(vm.spawn("../face_cases", "add", (1, 2)).unwrap_err()),
        "../face_cases:add/2"
    );
    assert!(matches!(
        vm.spawn("erlang", "f", vec![0; 256]),
        Err(ExecError::Badarg)
    ));
    let most = vm.spawn("erlang", "f", vec![0; 255]).unwrap_err();
    assert_eq!(undef(most), "erlang:f/255");
    assert!(matches!(
        vm.spawn_in(beamr::NamespaceId(9), "face_cases", "add", (1, 2)),
        Err(ExecError::NoNamespace(9))
    ));
    let dead = vm.spawn("face_cases", "add", (1, 2)).unwrap();
    vm.run_until_exit(dead);
    assert!(matches!(
        vm.spawn_link(dead, "face_cases", "add", (1, 2)),
        Err(ExecError::Badarg)
    ));
    let no_fun = vm.term(1).unwrap();
    assert!(matches!(
        vm.spawn_link_closure(dead, no_fun),
        Err(ExecError::Badfun(_))
    ));
}

#[test]
fn the_process_table_has_a_limit() {
    let vm = builder().process_limit(16).build().unwrap();
    let mut pids = Vec::new();
    let error = loop {
        match vm.spawn("face_cases", "wait_for_one", ()) {
            Ok(pid) => pids.push(pid),
            Err(e) => break e,
        }
    };
    assert!(matches!(error, ExecError::SystemLimit(_)), "{error:?}");
    assert!(pids.len() < 16);
    assert_eq!(vm.process_limit(), vm.process_count());
    vm.enqueue_atom_message(pids[0], "go");
    vm.run_until_exit(pids[0]);
    vm.spawn("face_cases", "wait_for_one", ()).unwrap();
}

#[test]
fn messages_arrive_in_order_from_several_threads() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "collect", (300,)).unwrap();
    std::thread::scope(|s| {
        for thread in 0..3 {
            let vm = &vm;
            s.spawn(move || {
                for n in 0..100 {
                    let message = vm.term((thread, n)).unwrap();
                    vm.send_to_mailbox(pid, message).unwrap();
                }
            });
        }
    });
    let (_, got) = vm.run_until_exit(pid);
    let got: Vec<(i64, i64)> = got.decode().unwrap();
    for thread in 0..3 {
        let of_thread: Vec<i64> = got.iter().filter(|m| m.0 == thread).map(|m| m.1).collect();
        assert_eq!(of_thread, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn messages_to_the_dead() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "add", (1, 1)).unwrap();
    vm.run_until_exit(pid);
    let message = || vm.term(1).unwrap();
    assert_eq!(
        vm.send_to_mailbox(pid, message()),
        Err(MailboxSendError::ProcessTerminated)
    );
    assert_eq!(
        vm.send_to_mailbox(u64::MAX, message()),
        Err(MailboxSendError::NoSuchProcess)
    );
    assert!(!vm.enqueue_atom_message(pid, "x"));
    assert_eq!(vm.send(pid, "x"), Ok(false));
    assert!(!vm.wake_process(pid));
}

#[test]
fn a_message_of_any_size_reaches_a_small_heap() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let big: Vec<i64> = (0..200_000).collect();
    vm.send_to_mailbox(pid, vm.term(big.clone()).unwrap())
        .unwrap();
    assert_eq!(vm.run_until_exit(pid).1.decode::<Vec<i64>>().unwrap(), big);
}

#[test]
fn links_and_exit_signals() {
    let vm = vm();
    let parent = vm
        .spawn_trap_exit("face_cases", "wait_for_exit", ())
        .unwrap();
    assert_eq!(vm.trap_exit(parent), Some(true));
    let child = vm
        .spawn_link(parent, "face_cases", "wait_for_one", ())
        .unwrap();
    assert!(vm.is_linked(parent, child) && vm.is_linked(child, parent));
    assert!(vm.terminate_process(child, ExitReason::Term(vm.term((atom("why"), 1)).unwrap())));
    let (_, told) = vm.run_until_exit(parent);
    let (from, reason): (Pid, OwnedTerm) = told.decode().unwrap();
    assert_eq!((from, reason.to_string().as_str()), (child, "{why,1}"));
    assert!(!vm.is_linked(parent, child));

    // Without trapping the link takes the other along.
    let a = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let b = vm.spawn_link(a, "face_cases", "wait_for_one", ()).unwrap();
    vm.exit_signal(b, a, ExitReason::Term(vm.term(atom("down")).unwrap()))
        .unwrap();
    assert_eq!(vm.run_until_exit(a).0.to_string(), "down");
    assert_eq!(vm.run_until_exit(b).0.to_string(), "down");
    assert_eq!(
        vm.exit_signal(b, a, ExitReason::Kill),
        Err(SupervisionError::NoSuchProcess(a))
    );
}

#[test]
fn signals_that_a_process_traps() {
    let vm = vm();
    let pid = vm.spawn("face_cases", "wait_for_exit", ()).unwrap();
    assert_eq!(vm.set_trap_exit(pid, true), Ok(false));
    assert_eq!(vm.set_trap_exit(pid, true), Ok(true));
    let other = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    // `normal` is a message too.
    vm.exit_signal(other, pid, ExitReason::Normal).unwrap();
    let (_, told) = vm.run_until_exit(pid);
    assert_eq!(
        told.decode::<(Pid, beamr::AtomName)>().unwrap(),
        (other, atom("normal"))
    );
    assert_eq!(
        vm.set_trap_exit(pid, false),
        Err(LinkError::NoSuchProcess(pid))
    );
    // The host's own end cannot be trapped.
    let pid = vm
        .spawn_trap_exit("face_cases", "wait_for_exit", ())
        .unwrap();
    vm.terminate_process(pid, ExitReason::Normal);
    let (reason, result) = vm.run_until_exit(pid);
    assert_eq!(
        (reason, result.to_string().as_str()),
        (ExitReason::Normal, "[]")
    );
    // Nor `kill`.
    let pid = vm
        .spawn_trap_exit("face_cases", "wait_for_exit", ())
        .unwrap();
    vm.exit_signal(other, pid, ExitReason::Kill).unwrap();
    assert_eq!(vm.run_until_exit(pid).0, ExitReason::Killed);
}

#[test]
fn monitors_tell_any_reason() {
    let vm = vm();
    let target = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let watcher = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let monitor = vm.monitor(watcher, target).unwrap();
    vm.terminate_process(target, ExitReason::Term(vm.term(atom("oops")).unwrap()));
    let (_, down) = vm.run_until_exit(watcher);
    let (tag, reference, kind, pid, reason): (String, Reference, String, Pid, OwnedTerm) = {
        let (tag, reference, kind, pid, reason): (
            beamr::AtomName,
            Reference,
            beamr::AtomName,
            Pid,
            OwnedTerm,
        ) = down.decode().unwrap();
        (tag.to_string(), reference, kind.to_string(), pid, reason)
    };
    assert_eq!((tag.as_str(), kind.as_str()), ("DOWN", "process"));
    assert_eq!((reference, pid), (monitor, target));
    assert_eq!(reason.to_string(), "oops");
    assert_eq!(
        vm.monitor(watcher, target),
        Err(SupervisionError::NoSuchProcess(watcher))
    );
    // Of one that is dead.
    let watcher = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    let set = vm.monitor_with_result(watcher, target).unwrap();
    assert!(set.immediate_down);
    let (_, down) = vm.run_until_exit(watcher);
    assert_eq!(down.root().element(4).unwrap().to_string(), "noproc");
}

#[test]
fn what_processes_say_of_themselves() {
    let vm = vm();
    let pid = vm
        .spawn("face_cases", "register_me", (atom("face_name"),))
        .unwrap();
    // The question is in order with the process's own doing only when it waits.
    while vm.whereis("face_name").is_none() {
        std::thread::yield_now();
    }
    assert_eq!(vm.whereis("face_name"), Some(pid));
    assert!(vm.processes().contains(&pid));
    let len: i64 = vm.process_info(pid, "message_queue_len").unwrap().unwrap();
    assert_eq!(len, 0);
    let name: beamr::AtomName = vm.process_info(pid, "registered_name").unwrap().unwrap();
    assert_eq!(name, "face_name");
    assert_eq!(vm.is_native(pid), Some(false));
    assert_eq!(vm.process_namespace(pid), Some(beamr::NamespaceId::DEFAULT));
    vm.terminate_process(pid, ExitReason::Kill);
    vm.run_until_exit(pid);
    assert_eq!(
        vm.process_info::<i64>(pid, "message_queue_len").unwrap(),
        None
    );
    assert_eq!(vm.whereis("face_name"), None);
}

/// Sums what it is sent; answers, stops, and counts its turns.
struct Adder(i64, Arc<AtomicU32>);

impl NativeHandler for Adder {
    fn handle(&mut self, ctx: &mut NativeContext<'_>) -> NativeOutcome {
        self.1.fetch_add(1, Ordering::Relaxed);
        while let Some(m) = ctx.recv() {
            if let Ok(n) = m.decode::<i64>() {
                self.0 += n;
            } else if let Ok((from, question)) = m.decode::<(Pid, beamr::AtomName)>() {
                let me = ctx.self_pid();
                assert_eq!(ctx.send(from, (me, question, self.0)), Ok(true));
            } else {
                let reason = ctx.alloc_tuple(&[m, ctx.integer(self.0)]).to_owned();
                return NativeOutcome::Stop(ExitReason::Term(reason));
            }
        }
        NativeOutcome::Wait
    }
}

#[test]
fn handlers_are_processes() {
    let vm = vm();
    let turns = Arc::new(AtomicU32::new(0));
    let pid = vm.spawn_native(|| Adder(0, turns.clone())).unwrap();
    assert_eq!(vm.is_native(pid), Some(true));
    for n in 0..1000 {
        assert_eq!(vm.send(pid, n), Ok(true));
    }
    let asker = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    vm.send(pid, (asker, atom("sum"))).unwrap();
    let (_, answer) = vm.run_until_exit(asker);
    assert_eq!(
        answer.decode::<(Pid, beamr::AtomName, i64)>().unwrap(),
        (pid, atom("sum"), 499_500)
    );
    vm.send(pid, "stop").unwrap();
    assert_eq!(
        vm.run_until_exit(pid).0.to_string(),
        "{<<\"stop\">>,499500}"
    );
    let turns_then = turns.load(Ordering::Relaxed);
    assert!(turns_then >= 1);
}

#[test]
fn handlers_answer_erlang() {
    let vm = vm();
    let echo = || {
        |ctx: &mut NativeContext<'_>| {
            while let Some(m) = ctx.recv() {
                let (Some(from), Some(content)) = (m.element(0), m.element(1)) else {
                    return NativeOutcome::Stop(ExitReason::Normal);
                };
                let me = ctx.self_pid();
                let from: Pid = from.decode().unwrap();
                ctx.send(from, (me, content)).unwrap();
                if ctx.should_yield() {
                    return NativeOutcome::Continue;
                }
            }
            NativeOutcome::Wait
        }
    };
    let pid = vm.spawn_native(echo).unwrap();
    let done: beamr::AtomName = vm.call("face_cases", "ping", (pid, 2000)).unwrap();
    assert_eq!(done, "done");
}

#[test]
fn handlers_skip_and_select() {
    let vm = vm();
    let (tell, told) = mpsc::channel();
    let select = move || {
        move |ctx: &mut NativeContext<'_>| {
            // Waits for `go`, leaves everything else where it is.
            while let Some(m) = ctx.peek() {
                if m.is_atom("go") {
                    ctx.recv();
                    let mut rest = Vec::new();
                    while let Some(m) = ctx.recv() {
                        rest.push(m.to_string());
                    }
                    tell.send(rest).unwrap();
                    return NativeOutcome::Stop(ExitReason::Normal);
                }
                assert!(ctx.skip_message());
            }
            NativeOutcome::Wait
        }
    };
    let pid = vm.spawn_native(select).unwrap();
    for n in 0..3 {
        vm.send(pid, n).unwrap();
    }
    vm.send(pid, atom("go")).unwrap();
    vm.run_until_exit(pid);
    assert_eq!(told.recv().unwrap(), ["0", "1", "2"]);
}

#[test]
fn handlers_use_timers_links_and_monitors() {
    let vm = vm();
    let (tell, told) = mpsc::channel::<String>();
    let mut state = 0;
    let mut child = None;
    let pid = vm
        .spawn_native(move || {
            move |ctx: &mut NativeContext<'_>| {
                if state == 0 {
                    state = 1;
                    assert!(!ctx.set_trap_exit(true));
                    let c = ctx
                        .spawn_native(
                            |ctx: &mut NativeContext<'_>| match ctx.recv() {
                                Some(_) => panic!("on purpose"),
                                None => NativeOutcome::Wait,
                            },
                            Linked::Yes,
                        )
                        .unwrap();
                    ctx.monitor(c);
                    child = Some(c);
                    let late = ctx.schedule(Duration::from_secs(3600), "late").unwrap();
                    assert!(ctx.cancel_timer(late).is_some_and(|left| !left.is_zero()));
                    assert!(ctx.cancel_timer(late).is_none());
                    ctx.send_after(Duration::from_millis(1), c, "die").unwrap();
                    assert!(!ctx.link(beamr::PID_MAX) || ctx.has_messages());
                }
                while let Some(m) = ctx.recv() {
                    let what = m.element(0).and_then(|t| t.as_atom()).unwrap_or_default();
                    let reason = m.elements().and_then(|e| e.last());
                    if m.elements()
                        .is_some_and(|mut e| e.any(|e| e.as_pid() == child))
                    {
                        let reason = reason.and_then(|r| r.element(1)).map(|r| r.to_string());
                        tell.send(format!("{what} {reason:?}")).unwrap();
                        state += 1;
                    }
                }
                if state == 3 {
                    NativeOutcome::Stop(ExitReason::Normal)
                } else {
                    NativeOutcome::Wait
                }
            }
        })
        .unwrap();
    assert_eq!(vm.run_until_exit(pid).0, ExitReason::Normal);
    let mut both: Vec<String> = told.iter().collect();
    both.sort();
    assert_eq!(both.len(), 2);
    assert!(
        both[0].starts_with("DOWN Some(") && both[0].contains("on purpose"),
        "{both:?}"
    );
    assert!(
        both[1].starts_with("EXIT Some(") && both[1].contains("on purpose"),
        "{both:?}"
    );
}

#[test]
fn a_handler_that_panics_dies_alone() {
    let vm = vm();
    let pid = vm
        .spawn_native(|| |_: &mut NativeContext<'_>| -> NativeOutcome { panic!("in a handler") })
        .unwrap();
    let (reason, _) = vm.run_until_exit(pid);
    assert!(reason.to_string().contains("in a handler"), "{reason}");
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
}

#[test]
fn waiting_inside_the_vm_fails_at_once() {
    let vm = Arc::new(vm());
    let (tell, told) = mpsc::channel();
    let inner = vm.clone();
    let pid = vm
        .spawn_native(move || {
            move |ctx: &mut NativeContext<'_>| {
                let me = ctx.self_pid();
                tell.send((
                    inner.wait(me, None),
                    inner.trap_exit(me),
                    inner.call::<i64>("erlang", "abs", (1,)).is_err(),
                ))
                .unwrap();
                NativeOutcome::Stop(ExitReason::Normal)
            }
        })
        .unwrap();
    assert_eq!(vm.run_until_exit(pid).0, ExitReason::Normal);
    assert_eq!(told.recv().unwrap(), (Err(WaitError::InsideVm), None, true));
}

#[test]
fn a_vm_may_be_dropped_by_its_own_process() {
    let vm = Arc::new(vm());
    let (tell, told) = mpsc::channel();
    let mut inner = Some(vm.clone());
    let (ready, go) = mpsc::channel::<()>();
    vm.spawn_native(move || {
        move |_: &mut NativeContext<'_>| {
            // A handler must not block; this one waits for a thread that needs nothing of it.
            go.recv().unwrap();
            drop(inner.take());
            tell.send(()).unwrap();
            NativeOutcome::Wait
        }
    })
    .unwrap();
    drop(vm);
    ready.send(()).unwrap();
    told.recv().unwrap();
}

#[test]
fn spawning_with_everything() {
    let vm = vm();
    let parent = vm
        .spawn_trap_exit("face_cases", "wait_for_exit", ())
        .unwrap();
    let by = SpawnedBy {
        parent: Some(parent),
        trap_exit: true,
        ..SpawnedBy::default()
    };
    let child = vm.spawn_with(by, "face_cases", "wait_for_one", ()).unwrap();
    assert_eq!(vm.trap_exit(child), Some(true));
    // A message of exit for the child: it returns it and ends normally.
    vm.exit_signal(parent, child, ExitReason::Term(vm.term(1).unwrap()))
        .unwrap();
    assert_eq!(
        vm.run_until_exit(child).1.to_string(),
        format!("{{'EXIT',{parent},1}}")
    );
    assert_eq!(
        vm.run_until_exit(parent).1.to_string(),
        format!("{{{child},normal}}")
    );
    // A fun of the VM as the body of a process.
    let adder: OwnedTerm = vm.call("face_cases", "adder", (1,)).unwrap();
    assert_eq!(
        vm.call::<i64>("face_cases", "apply_fun", (adder, 41))
            .unwrap(),
        42
    );
}
