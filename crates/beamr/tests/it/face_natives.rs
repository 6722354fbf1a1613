//! The face: native functions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use beamr::{
    Bytes, CallError, Capability, Completion, DirtySchedulerKind, ExitReason, NativeCall,
    NativeError, NativeOptions, NativeRegistry, OwnedTerm, Pid, RegisterError, Scheduler, Term,
    WaitError, atom,
};

use crate::face::{builder, vm_with};

/// What `face_cases:catch_host` says of a call: class, reason, and the trace of the function itself.
fn caught(vm: &Scheduler, function: &str, args: Vec<OwnedTerm>) -> String {
    let t: OwnedTerm = vm
        .call(
            "face_cases",
            "catch_host",
            (atom("host"), atom(function.to_owned()), args),
        )
        .unwrap();
    t.to_string()
}

#[test]
fn typed_functions() {
    let mut n = NativeRegistry::new();
    n.function("host", "greet", |name: String| format!("hello, {name}"))
        .unwrap();
    n.function("host", "nothing", || ()).unwrap();
    n.function(
        "host",
        "many",
        |a: i64, b: f64, c: bool, d: Vec<u8>, e: Option<i64>, f: Bytes| (f, e, d, c, b, a),
    )
    .unwrap();
    n.function("host", "checked", |a: i64, b: i64| {
        a.checked_div(b).ok_or_else(NativeError::badarg)
    })
    .unwrap();
    n.function("host", "value_result", |a: i64| {
        if a > 0 { Ok(a) } else { Err("low") }
    })
    .unwrap();
    n.function(
        "host",
        "parse",
        |text: String| -> Result<i64, NativeError> { Ok(text.parse::<i64>()?) },
    )
    .unwrap();
    n.function("host", "me", |call: &mut NativeCall<'_>, x: i64| {
        (call.self_pid(), x)
    })
    .unwrap();
    let vm = vm_with(n);
    let greeting: Result<String, String> = vm.call("face_cases", "greet", ("you",)).unwrap();
    assert_eq!(greeting, Ok("hello, you".into()));
    vm.call::<()>("host", "nothing", ()).unwrap();
    let many: OwnedTerm = vm
        .call(
            "host",
            "many",
            (1, 2.5, true, vec![1, 2], None::<i64>, Bytes(vec![9])),
        )
        .unwrap();
    assert_eq!(many.to_string(), "{<<\"\\t\">>,undefined,[1,2],true,2.5,1}");
    assert_eq!(vm.call::<i64>("host", "checked", (7, 2)).unwrap(), 3);
    let t = |n: i64| vm.term(n).unwrap();
    assert_eq!(
        caught(&vm, "checked", vec![t(7), t(0)]),
        "{error,badarg,[{host,checked,[7,0],[]}]}"
    );
    assert_eq!(
        caught(&vm, "checked", vec![t(7), vm.term("x").unwrap()]),
        "{error,badarg,[{host,checked,[7,<<\"x\">>],[]}]}"
    );
    assert_eq!(caught(&vm, "value_result", vec![t(1)]), "{value,{ok,1}}");
    assert_eq!(
        caught(&vm, "value_result", vec![t(0)]),
        "{value,{error,<<\"low\">>}}"
    );
    assert_eq!(
        caught(&vm, "parse", vec![vm.term("x").unwrap()]),
        "{error,{native_error,<<\"invalid digit found in string\">>},[{host,parse,[<<\"x\">>],[]}]}"
    );
    let pid = vm.spawn("host", "me", (5,)).unwrap();
    assert_eq!(
        vm.run_until_exit(pid).1.decode::<(Pid, i64)>().unwrap(),
        (pid, 5)
    );
    // What is not registered is not there.
    assert!(vm.call::<()>("host", "nothing", (1,)).is_err());
}

#[test]
fn every_class_of_exception() {
    let mut n = NativeRegistry::new();
    n.function(
        "host",
        "fail",
        |how: beamr::AtomName| -> Result<(), NativeError> {
            Err(match how.as_str() {
                "error" => NativeError::error((atom("because"), 1)),
                "exit" => NativeError::exit("text"),
                "throw" => NativeError::throw(vec![1, 2]),
                // A reason that is no term.
                _ => NativeError::error(atom("x".repeat(300))),
            })
        },
    )
    .unwrap();
    let vm = vm_with(n);
    let of = |how: &'static str| caught(&vm, "fail", vec![vm.term(atom(how)).unwrap()]);
    assert_eq!(of("error"), "{error,{because,1},[{host,fail,[error],[]}]}");
    assert_eq!(of("exit"), "{exit,<<\"text\">>,[]}");
    assert_eq!(of("throw"), "{throw,[1,2],[]}");
    assert!(of("odd").starts_with("{error,{badarg,<<\"an atom may have"));
}

#[test]
fn a_panic_is_an_error_of_the_caller() {
    let mut n = NativeRegistry::new();
    n.function("host", "boom", |x: i64| -> i64 { panic!("boom {x}") })
        .unwrap();
    let dirty = NativeOptions::default().dirty(DirtySchedulerKind::Cpu);
    n.function_with("host", "dirty_boom", dirty, |x: i64| -> i64 {
        panic!("boom {x}")
    })
    .unwrap();
    let vm = vm_with(n);
    for function in ["boom", "dirty_boom"] {
        assert_eq!(
            caught(&vm, function, vec![vm.term(3).unwrap()]),
            format!("{{error,{{panic,<<\"boom 3\">>}},[{{host,{function},[3],[]}}]}}")
        );
        match vm.call::<i64>("host", function, (4,)) {
            Err(CallError::Raised(e)) => assert_eq!(e.reason.to_string(), "{panic,<<\"boom 4\">>}"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
}

#[test]
fn raw_functions_build_in_place() {
    let mut n = NativeRegistry::new();
    n.raw("host", "reverse", 1, NativeOptions::default(), |call| {
        let list = call
            .arg(0)
            .and_then(Term::list)
            .ok_or_else(NativeError::badarg)?;
        let mut out = call.nil();
        for item in list {
            out = call.cons(item, out);
        }
        Ok(out)
    })
    .unwrap();
    n.raw("host", "pair", 2, NativeOptions::default(), |call| {
        call.bump_reductions(100);
        let text: String = call.arg_as(1)?;
        let (Some(a), made) = (call.arg(0), call.term(text)?) else {
            return Err(NativeError::badarg());
        };
        Ok(call.tuple(&[a, made, a]))
    })
    .unwrap();
    let vm = vm_with(n);
    let long: Vec<Vec<i64>> = (0..5000).map(|n| vec![n, -n]).collect();
    let reversed: Vec<Vec<i64>> = vm.call("host", "reverse", (long.clone(),)).unwrap();
    assert!(reversed.iter().eq(long.iter().rev()));
    let pair: OwnedTerm = vm.call("host", "pair", (vec![1.5], "x")).unwrap();
    assert_eq!(pair.to_string(), "{[1.5],<<\"x\">>,[1.5]}");
}

#[test]
fn dirty_functions_run_on_their_pools() {
    let mut n = NativeRegistry::new();
    let name = |_: i64| std::thread::current().name().unwrap_or_default().to_owned();
    let io = NativeOptions::default().dirty(DirtySchedulerKind::Io);
    let cpu = NativeOptions::default().dirty(DirtySchedulerKind::Cpu);
    n.function_with("host", "io", io, name).unwrap();
    n.function_with("host", "cpu", cpu, name).unwrap();
    n.function("host", "plain", name).unwrap();
    let sleep = |call: &mut NativeCall<'_>, to: Pid, x: i64| call.send(to, x).is_ok();
    n.function_with("host", "tell", io, sleep).unwrap();
    let vm = vm_with(n);
    let on = |f: &str| vm.call::<String>("host", f, (1,)).unwrap();
    assert!(on("io").starts_with("beamr-dirty-io-"));
    assert!(on("cpu").starts_with("beamr-dirty-cpu-"));
    assert!(on("plain").starts_with("beamr-worker-"));
    let pid = vm.spawn("face_cases", "wait_for_one", ()).unwrap();
    assert!(vm.call::<bool>("host", "tell", (pid, 9)).unwrap());
    assert_eq!(vm.run_until_exit(pid).1.decode::<i64>().unwrap(), 9);
}

#[test]
fn a_disabled_pool_refuses_before_anything_happens() {
    let mut n = NativeRegistry::new();
    let ran = Arc::new(AtomicUsize::new(0));
    for (f, kind) in [
        ("io", DirtySchedulerKind::Io),
        ("cpu", DirtySchedulerKind::Cpu),
    ] {
        let ran = ran.clone();
        n.function_with("host", f, NativeOptions::default().dirty(kind), move || {
            ran.fetch_add(1, Ordering::Relaxed) as u64
        })
        .unwrap();
    }
    let config = beamr::SchedulerConfig {
        thread_count: Some(1),
        dirty_cpu_threads: Some(0),
        ..Default::default()
    };
    let vm = builder().config(config).natives(n).build().unwrap();
    assert_eq!(
        caught(&vm, "cpu", vec![]),
        "{error,notsup,[{host,cpu,[],[]}]}"
    );
    assert_eq!(ran.load(Ordering::Relaxed), 0);
    assert_eq!(caught(&vm, "io", vec![]), "{value,0}");
}

#[test]
fn private_data_is_lent_to_every_call() {
    let mut n = NativeRegistry::new();
    n.function(
        "host",
        "data",
        |call: &mut NativeCall<'_>| -> Result<i64, NativeError> {
            let data = call
                .private_data::<Mutex<i64>>()
                .ok_or_else(NativeError::badarg)?;
            let mut data = data.lock().unwrap();
            *data += 1;
            Ok(*data)
        },
    )
    .unwrap();
    n.function("host", "other", |call: &mut NativeCall<'_>| {
        call.private_data::<String>().is_none()
    })
    .unwrap();
    let vm = builder()
        .natives(n)
        .private_data(Arc::new(Mutex::new(41_i64)))
        .build()
        .unwrap();
    assert_eq!(vm.call::<i64>("host", "data", ()).unwrap(), 42);
    assert_eq!(vm.call::<i64>("host", "data", ()).unwrap(), 43);
    assert!(vm.call::<bool>("host", "other", ()).unwrap());
}

#[test]
fn awaiting_functions_cost_no_thread() {
    let waiting: Arc<Mutex<Vec<(Completion, i64)>>> = Arc::default();
    let mut n = NativeRegistry::new();
    let begin = waiting.clone();
    let (tell, told) = mpsc::channel();
    n.awaiting(
        "host",
        "later",
        NativeOptions::default(),
        move |done: Completion, x: i64| {
            begin.lock().unwrap().push((done, x));
            tell.send(()).unwrap();
        },
    )
    .unwrap();
    let vm = builder().threads(1).natives(n).build().unwrap();
    let pids: Vec<Pid> = (0..100)
        .map(|x| vm.spawn("host", "later", (x,)).unwrap())
        .collect();
    for _ in &pids {
        told.recv().unwrap();
    }
    // All wait at once on one worker; messages do not disturb them.
    for pid in &pids {
        assert!(vm.enqueue_atom_message(*pid, "noise"));
    }
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
    let all = std::mem::take(&mut *waiting.lock().unwrap());
    for (done, x) in all.into_iter().rev() {
        assert!(done.complete((x, "done")));
    }
    for (x, pid) in pids.into_iter().enumerate() {
        let (reason, result) = vm.run_until_exit(pid);
        assert_eq!(reason, ExitReason::Normal);
        assert_eq!(
            result.decode::<(usize, String)>().unwrap(),
            (x, "done".into())
        );
    }
}

#[test]
fn awaiting_functions_fail_in_every_way() {
    let mut n = NativeRegistry::new();
    let options = NativeOptions::default();
    n.awaiting("host", "at_once", options, |done: Completion, x: i64| {
        done.complete(x);
    })
    .unwrap();
    n.awaiting("host", "fails", options, |done: Completion| {
        done.fail(NativeError::throw("ball"));
    })
    .unwrap();
    n.awaiting("host", "drops", options, |done: Completion| drop(done))
        .unwrap();
    n.awaiting("host", "no_term", options, |done: Completion| {
        done.complete(f64::NAN);
    })
    .unwrap();
    let kept: Arc<Mutex<Vec<Completion>>> = Arc::default();
    let keep = kept.clone();
    let short = options.timeout(Duration::from_millis(2));
    n.awaiting("host", "slow", short, move |done: Completion| {
        keep.lock().unwrap().push(done)
    })
    .unwrap();
    n.awaiting("host", "panics", options, |_: Completion| panic!("early"))
        .unwrap();
    assert!(matches!(
        n.awaiting(
            "host",
            "x",
            options.dirty(DirtySchedulerKind::Io),
            |_: Completion| ()
        ),
        Err(RegisterError::DirtyAwait { .. })
    ));
    let vm = vm_with(n);
    assert_eq!(
        caught(&vm, "at_once", vec![vm.term(5).unwrap()]),
        "{value,5}"
    );
    let wrong = caught(&vm, "at_once", vec![vm.term("x").unwrap()]);
    assert_eq!(wrong, "{error,badarg,[{host,at_once,[<<\"x\">>],[]}]}");
    assert_eq!(caught(&vm, "fails", vec![]), "{throw,<<\"ball\">>,[]}");
    assert!(caught(&vm, "drops", vec![]).starts_with("{error,abandoned,"));
    assert!(caught(&vm, "no_term", vec![]).starts_with("{error,badarg,"));
    assert!(caught(&vm, "slow", vec![]).starts_with("{error,timeout,"));
    assert!(caught(&vm, "panics", vec![]).starts_with("{error,{panic,<<\"early\">>},"));
    // Answers that come too late: the process is gone, or does something else.
    for done in std::mem::take(&mut *kept.lock().unwrap()) {
        done.complete(1);
    }
    assert_eq!(vm.call::<i64>("face_cases", "add", (1, 2)).unwrap(), 3);
}

#[test]
fn a_late_answer_is_not_taken_for_another() {
    let kept: Arc<Mutex<Vec<Completion>>> = Arc::default();
    let (tell, told) = mpsc::channel();
    let mut n = NativeRegistry::new();
    let keep = kept.clone();
    // The first run gives up by time; the second call of the same process must not get the first one's answer.
    n.raw("host", "await", 1, NativeOptions::default(), move |call| {
        if let Some(answer) = call.awaited() {
            return answer;
        }
        let ms: u64 = call.arg_as(0)?;
        let done = call.request_await_suspend((ms > 0).then(|| Duration::from_millis(ms)))?;
        tell.send((done.pid(), done.call_id())).unwrap();
        keep.lock().unwrap().push(done);
        Err(NativeError::suspend())
    })
    .unwrap();
    n.function("host", "twice", || ()).unwrap();
    let vm = Arc::new(vm_with(n));
    let pid = vm
        .spawn(
            "face_cases",
            "catch_host",
            (atom("face_cases"), atom("call_host"), (1, 2)),
        )
        .unwrap();
    vm.run_until_exit(pid);
    let pid = vm
        .spawn(
            "face_cases",
            "catch_host",
            (atom("host"), atom("await"), [0]),
        )
        .unwrap();
    let (who, number) = told.recv().unwrap();
    assert_eq!(who, pid);
    assert!(
        vm.wake_with_result_for(pid, number + 7, vm.term(1).unwrap()),
        "it lives"
    );
    assert!(vm.wake_with_result_for(pid, number, vm.term("answer").unwrap()));
    assert_eq!(
        vm.run_until_exit(pid).1.to_string(),
        "{value,<<\"answer\">>}"
    );
    assert!(
        !vm.wake_with_result_for(pid, number, vm.term(1).unwrap()),
        "it is dead"
    );
    for done in std::mem::take(&mut *kept.lock().unwrap()) {
        assert!(!done.complete(2));
    }
}

#[test]
fn a_process_is_killed_while_it_awaits() {
    let (tell, told) = mpsc::channel();
    let mut n = NativeRegistry::new();
    n.awaiting(
        "host",
        "await",
        NativeOptions::default(),
        move |done: Completion| {
            tell.send(done).unwrap();
        },
    )
    .unwrap();
    let vm = vm_with(n);
    let pid = vm.spawn("host", "await", ()).unwrap();
    let done = told.recv().unwrap();
    vm.terminate_process(pid, ExitReason::Kill);
    assert_eq!(vm.run_until_exit(pid).0, ExitReason::Killed);
    assert!(!done.complete(1));
}

#[test]
fn native_functions_cannot_wait_for_processes() {
    let slot: Arc<Mutex<Option<std::sync::Weak<Scheduler>>>> = Arc::default();
    let get = slot.clone();
    let mut n = NativeRegistry::new();
    let ask = move || -> bool {
        let vm = get.lock().unwrap().as_ref().unwrap().upgrade().unwrap();
        let waited = vm.wait(1, None) == Err(WaitError::InsideVm);
        let called = vm.call::<i64>("erlang", "abs", (-1,));
        waited && matches!(called, Err(CallError::Wait(WaitError::InsideVm)))
    };
    n.function("host", "ask", ask).unwrap();
    // A dirty function may.
    let get = slot.clone();
    let dirty = NativeOptions::default().dirty(DirtySchedulerKind::Io);
    n.function_with("host", "ask_dirty", dirty, move || -> i64 {
        let vm = get.lock().unwrap().as_ref().unwrap().upgrade().unwrap();
        vm.call("erlang", "abs", (-7,)).unwrap()
    })
    .unwrap();
    let vm = Arc::new(vm_with(n));
    *slot.lock().unwrap() = Some(Arc::downgrade(&vm));
    assert!(vm.call::<bool>("host", "ask", ()).unwrap());
    assert_eq!(vm.call::<i64>("host", "ask_dirty", ()).unwrap(), 7);
}

#[test]
fn native_functions_take_the_place_of_stubs() {
    let mut n = NativeRegistry::new();
    n.function("face_cases", "fast", |x: i64| (atom("fast"), x))
        .unwrap();
    let vm = vm_with(n);
    for function in ["fast", "call_fast"] {
        let t: OwnedTerm = vm.call("face_cases", function, (1,)).unwrap();
        assert_eq!(t.to_string(), "{fast,1}");
    }
    let without = crate::face::vm();
    let t: OwnedTerm = without.call("face_cases", "call_fast", (1,)).unwrap();
    assert_eq!(t.to_string(), "{slow,1}");
}

#[test]
fn registering() {
    let mut n = NativeRegistry::new();
    n.function("host", "f", |x: i64| x).unwrap();
    assert_eq!(
        n.function("host", "f", |x: i64| x + 1),
        Err(RegisterError::Duplicate {
            module: "host".into(),
            function: "f".into(),
            arity: 1
        })
    );
    n.function("host", "f", || 0).unwrap();
    n.replace_existing("host", "f", |x: i64| x * 2).unwrap();
    assert!(n.contains("host", "f", 1) && !n.contains("host", "f", 2));
    assert_eq!(
        n.registered_mfas(),
        [
            ("host".into(), "f".into(), 0),
            ("host".into(), "f".into(), 1)
        ]
    );
    assert_eq!(
        n.function("x".repeat(256).as_str(), "f", || 0),
        Err(RegisterError::Name)
    );
    let two = n.clone();
    let one = vm_with(n);
    assert_eq!(one.call::<i64>("host", "f", (21,)).unwrap(), 42);
    // The same names in another VM are that VM's.
    let mut other = NativeRegistry::new();
    other.function("host", "f", |x: i64| -x).unwrap();
    let other = vm_with(other);
    let three = vm_with(two);
    assert_eq!(other.call::<i64>("host", "f", (21,)).unwrap(), -21);
    assert_eq!(three.call::<i64>("host", "f", (21,)).unwrap(), 42);
    assert!(other.call::<i64>("host", "f", ()).is_err());
    // A function of OTP's cannot be replaced.
    let mut n = NativeRegistry::new();
    n.function("erlang", "abs", |x: i64| x).unwrap();
    let e = builder().natives(n).build().unwrap_err();
    assert_eq!(e.to_string(), "erlang:abs/1 is registered twice");
}

#[test]
fn closures_of_one_type_are_told_apart() {
    fn times(k: i64) -> impl Fn(i64) -> i64 + Send + Sync + 'static {
        move |x| x * k
    }
    let mut n = NativeRegistry::new();
    for k in 1..=20 {
        n.function("host", &format!("times_{k}"), times(k)).unwrap();
    }
    let vm = vm_with(n);
    for k in 1..=20 {
        let function = format!("times_{k}");
        assert_eq!(vm.call::<i64>("host", function, (10,)).unwrap(), 10 * k);
    }
}

#[test]
fn capabilities_decide_which_functions_exist() {
    let mut n = NativeRegistry::new();
    n.function("host", "outside", || 1).unwrap();
    let pure = NativeOptions::default().needs(Capability::Pure);
    n.function_with("host", "pure", pure, || 2).unwrap();
    let vm = builder()
        .natives(n)
        .policy(&beamr::LeastAuthorityPolicy)
        .build()
        .unwrap();
    assert_eq!(vm.call::<i64>("host", "pure", ()).unwrap(), 2);
    assert!(vm.spawn("host", "outside", ()).is_err());
    assert!(caught(&vm, "outside", vec![]).starts_with("{error,undef,"));
}
