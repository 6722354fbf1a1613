//! Traces, unwinding, calls of what does not exist.

use std::sync::Arc;

use beamr_abi::{ErrorInfo, ExceptionClass, Raise};
use beamr_term::{Build, FunEntry, Header, Subtag, Word, atoms};
use beamr_vm::code::{CodeServer, ModuleTable};
use beamr_vm::engine::CodePos;
use beamr_vm::rt;

use crate::support::{NATIVES, Source, Worker, atom, position, server, show, table};

fn error(reason: Word) -> Raise {
    Raise {
        class: ExceptionClass::Error,
        reason,
        info: ErrorInfo::Default,
        trace: Word::NONE,
        own_frame: false,
        caller_args: Word::NONE,
    }
}

fn setup() -> (Arc<CodeServer>, Arc<ModuleTable>) {
    let s = server();
    let t = Arc::new(table(&s, 0));
    (s, t)
}

const FUNS: &[(&str, u32)] = &[("first", 2), ("second", 1), ("third", 0)];

#[test]
fn function_clause_has_arguments_and_the_line_of_its_head() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let n = Source::new("n", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    // second/1 of n called third/0 of m, which called first/2 twice from one place.
    w.push(position(&n, 1, 2) as u64);
    w.push(Word::fixnum(5).bits());
    w.push(position(&m, 2, 2) as u64);
    w.push(position(&m, 2, 2) as u64);
    let args = [Word::fixnum(1), atoms::OK.word()];
    let at = unsafe {
        rt::raise(
            &mut w.regs,
            position(&m, 0, 0) as CodePos,
            error(atoms::FUNCTION_CLAUSE.word()),
            None,
            Some(&args),
        )
    };
    assert!(at.is_null());
    let end = w.end();
    assert!(end.log && end.class == ExceptionClass::Error);
    assert_eq!(
        show(&s.tables, end.reason),
        "{function_clause,[{m,first,[1,ok],[{file,\"m.erl\"},{line,10}]},\
         {m,third,0,[{file,\"m.erl\"},{line,31}]},\
         {n,second,1,[{file,\"n.erl\"},{line,21}]}]}"
    );
}

#[test]
fn a_native_has_its_own_frame_with_error_info() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    w.push(position(&m, 1, 2) as u64);
    let fail = |w: &mut Worker, native: usize, info, ip: CodePos| {
        let raise = Raise {
            own_frame: true,
            info,
            ..error(atoms::BADARG.word())
        };
        let args = [Word::fixnum(1)];
        let args = &args[..args.len().min(NATIVES[native].arity as usize)];
        unsafe { rt::raise(&mut w.regs, ip, raise, Some(&NATIVES[native]), Some(args)) };
        let reason = w.end().reason;
        show(&s.tables, reason)
    };
    let here = position(&m, 0, 1) as CodePos;
    assert_eq!(
        fail(&mut w, 0, ErrorInfo::Default, here),
        "{badarg,[{erlang,abs,[1],[{error_info,#{module=>erl_erts_errors}}]},\
         {m,first,2,[{file,\"m.erl\"},{line,11}]},{m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
    // Run by its stub, whose position no image knows.
    let stub = s.engine.native_stub(&NATIVES[2]);
    assert_eq!(
        fail(&mut w, 2, ErrorInfo::Cause(atoms::ID.word()), stub),
        "{badarg,[{lists,reverse,[1],[{error_info,#{cause=>id,module=>erl_stdlib_errors}}]},\
         {m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
    assert_eq!(
        fail(&mut w, 3, ErrorInfo::None, stub),
        "{badarg,[{os,getenv,[],[]},{m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
}

#[test]
fn error_2_and_3_speak_for_the_caller() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    w.push(position(&m, 1, 2) as u64);
    let args = w.list(&[7, 300]);
    let keys = w.regs.ctx.tuple(&[atoms::CAUSE.word()]);
    let p = beamr_term::Alloc::alloc(&mut w.regs.ctx, 3);
    let map = unsafe {
        *p = Header::new(Subtag::FlatMap, 2).0;
        *p.add(1) = keys.bits();
        *p.add(2) = Word::fixnum(4).bits();
        Word::boxed(p)
    };
    let mut run = |ip: CodePos, args: Word, info| {
        let raise = Raise {
            caller_args: args,
            info,
            ..error(atoms::ID.word())
        };
        let given = [atoms::ID.word(), args];
        unsafe { rt::raise(&mut w.regs, ip, raise, Some(&NATIVES[1]), Some(&given)) };
        let reason = w.end().reason;
        show(&s.tables, reason)
    };
    let here = position(&m, 0, 1) as CodePos;
    assert_eq!(
        run(here, args, ErrorInfo::None),
        "{id,[{m,first,[7,300],[{file,\"m.erl\"},{line,11}]},\
         {m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
    assert_eq!(
        run(here, Word::NONE, ErrorInfo::Default),
        "{id,[{m,first,2,[{file,\"m.erl\"},{line,11}]},{m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
    // Run by a stub: the caller is who the return address names.
    let stub = s.engine.native_stub(&NATIVES[1]);
    assert_eq!(
        run(stub, args, ErrorInfo::Cause(map)),
        "{id,[{m,second,[7,300],[{file,\"m.erl\"},{line,21},{error_info,#{cause=>4}}]}]}"
    );
}

#[test]
fn a_trace_has_eight_entries() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    for i in 0..20 {
        w.push(position(&m, i % 2, 2) as u64);
    }
    let ip = position(&m, 2, 1) as CodePos;
    unsafe { rt::raise(&mut w.regs, ip, error(atoms::IF_CLAUSE.word()), None, None) };
    let count = |w: &Worker| {
        let mut l = w.end().reason.as_tuple().unwrap()[1];
        let mut n = 0;
        while l.is_cons() {
            n += 1;
            l = l.tail();
        }
        n
    };
    assert_eq!(count(&w), 8);
    let raise = Raise {
        own_frame: true,
        ..error(atoms::BADARG.word())
    };
    let args = [Word::NIL];
    unsafe { rt::raise(&mut w.regs, ip, raise, Some(&NATIVES[0]), Some(&args)) };
    assert_eq!(count(&w), 8);
    w.body.ip = ip;
    let frames = unsafe { rt::stack_frames(&s, &w.body, 3) };
    let names: Vec<(&str, Option<u32>)> = frames
        .iter()
        .map(|f| {
            let line = f.location.as_ref().map(|l| l.1);
            (s.tables.atoms.text(f.function), line)
        })
        .collect();
    let expected = [
        ("third", Some(31)),
        ("second", Some(21)),
        ("first", Some(11)),
    ];
    assert_eq!(names, expected);
}

#[test]
fn uncaught_throws_and_exits() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    let ip = position(&m, 2, 1) as CodePos;
    let mut run = |class| {
        let raise = Raise {
            class,
            ..error(Word::fixnum(3))
        };
        unsafe { rt::raise(&mut w.regs, ip, raise, None, None) };
        let end = w.end();
        (show(&s.tables, end.reason), end.log)
    };
    let trace = "[{m,third,0,[{file,\"m.erl\"},{line,31}]}]";
    assert_eq!(
        run(ExceptionClass::Throw),
        (format!("{{{{nocatch,3}},{trace}}}"), true)
    );
    assert_eq!(run(ExceptionClass::Exit), ("3".into(), false));
}

#[test]
fn unwinding_finds_the_handler_of_the_frame() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let n = Source::new("n", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    // A frame of m with a catch under index 1, under a frame of n without one.
    w.push(Word::catch_tag(0).bits());
    w.push(Word::fixnum(1).bits());
    w.push(position(&n, 0, 2) as u64);
    w.push(Word::fixnum(2).bits());
    w.push(Word::catch_tag(1).bits());
    let caught = w.body.heap.stop;
    w.push(position(&m, 1, 2) as u64);
    w.push(Word::fixnum(9).bits());
    w.body.catches = 2;
    let ip = position(&n, 2, 1) as CodePos;
    let raise = Raise {
        class: ExceptionClass::Throw,
        ..error(Word::fixnum(4))
    };
    let at = unsafe { rt::raise(&mut w.regs, ip, raise, None, None) };
    assert_eq!(at, m.handler(1));
    assert_eq!(w.body.heap.stop, caught);
    assert_eq!(unsafe { *caught }, Word::NIL.bits());
    assert_eq!(w.regs.x[0], Word::NONE);
    assert_eq!(w.regs.x[1], atoms::THROW.word());
    assert_eq!(w.regs.x[2], Word::fixnum(4));
    assert_eq!(unsafe { rt::catch_value(&mut w.regs) }, Word::fixnum(4));
    w.body.catches = 1;
    // Raised again from the handler under another class, with the trace of the first time.
    let again = Raise {
        trace: w.regs.x[3],
        ..error(Word::fixnum(4))
    };
    let ip = position(&m, 1, 1) as CodePos;
    let at = unsafe { rt::raise(&mut w.regs, ip, again, None, None) };
    assert_eq!(at, n.handler(0));
    assert_eq!(rt::raw_trace_class(w.regs.x[3]), ExceptionClass::Error);
    let v = unsafe { rt::catch_value(&mut w.regs) };
    assert_eq!(
        show(&s.tables, v),
        "{EXIT,{4,[{n,third,0,[{file,\"n.erl\"},{line,31}]},\
         {m,second,1,[{file,\"m.erl\"},{line,21}]},{n,first,2,[{file,\"n.erl\"},{line,11}]}]}}"
    );
}

#[test]
fn the_topmost_frame_catches_by_the_current_position() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    w.push(Word::catch_tag(1).bits());
    w.push(Word::NIL.bits());
    let top = w.body.heap.stop;
    w.body.catches = 1;
    let given = w.list(&[1, 300]);
    let raise = Raise {
        class: ExceptionClass::Exit,
        trace: given,
        ..error(Word::fixnum(4))
    };
    let ip = position(&m, 0, 1) as CodePos;
    let at = unsafe { rt::raise(&mut w.regs, ip, raise, None, None) };
    assert_eq!((at, w.body.heap.stop), (m.handler(1), top));
    // raise/3: the trace is what was given.
    let raw = w.regs.x[3];
    assert_eq!(rt::raw_trace_class(raw), ExceptionClass::Exit);
    let trace = rt::build_stacktrace(&mut w.regs.ctx, raw);
    assert_eq!(show(&s.tables, trace), "[1,300]");
    let v = unsafe { rt::catch_value(&mut w.regs) };
    assert_eq!(show(&s.tables, v), "{EXIT,4}");
}

#[test]
fn undefined_functions() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    w.push(position(&m, 1, 2) as u64);
    w.regs.x[0] = Word::fixnum(1);
    w.regs.x[1] = Word::fixnum(200);
    let ip = position(&m, 0, 1) as CodePos;
    let (mw, fw) = (atom(&s, "nomod").word(), atom(&s, "nofun").word());
    unsafe {
        assert!(rt::resolve(&mut w.regs, mw, fw, 2).is_null());
        assert!(rt::undefined(&mut w.regs, ip, mw, fw, 2).pos.is_null());
    }
    // As the error handler's own trace: the missing function, then who is on the stack.
    let reason = w.end().reason;
    assert_eq!(
        show(&s.tables, reason),
        "{undef,[{nomod,nofun,[1,200],[]},{m,second,1,[{file,\"m.erl\"},{line,21}]}]}"
    );
    let eh = Source::new(
        "error_handler",
        &[("undefined_function", 3), ("undefined_lambda", 3)],
    )
    .image(&s);
    t.finish(std::slice::from_ref(&eh)).unwrap();
    let at = unsafe { rt::undefined(&mut w.regs, ip, mw, fw, 2) };
    assert_eq!(at.live, 3);
    assert_eq!(at.pos, eh.export(atoms::UNDEFINED_FUNCTION, 3));
    assert_eq!((w.regs.x[0], w.regs.x[1]), (mw, fw));
    assert_eq!(show(&s.tables, w.regs.x[2]), "[1,200]");
}

#[test]
fn resolve_finds_code_and_natives() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    t.finish(std::slice::from_ref(&m)).unwrap();
    let mut w = Worker::new(&s, &t);
    let first = atom(&s, "first");
    for _ in 0..2 {
        let at = unsafe { rt::resolve(&mut w.regs, m.module().word(), first.word(), 2) };
        assert_eq!(at, m.export(first, 2));
    }
    let abs = atom(&s, "abs");
    let at = unsafe { rt::resolve(&mut w.regs, atoms::ERLANG.word(), abs.word(), 1) };
    assert_eq!(at, s.engine.native_stub(&NATIVES[0]));
    let id = s.tables.exports.lookup(m.module(), first, 2).unwrap();
    assert_eq!(
        unsafe { rt::resolve_export(&mut w.regs, id) },
        m.export(first, 2)
    );
    // The cache holds ids, not positions.
    t.delete(m.module()).unwrap();
    let at = unsafe { rt::resolve(&mut w.regs, m.module().word(), first.word(), 2) };
    assert!(at.is_null());
}

#[test]
fn bad_funs() {
    let (s, t) = setup();
    let m = Source::new("m", FUNS).image(&s);
    let mut w = Worker::new(&s, &t);
    let ip = position(&m, 0, 1) as CodePos;
    let call = |w: &mut Worker, fun: Word, arity: usize| {
        w.regs.x[0] = Word::fixnum(1);
        w.regs.x[1] = Word::fixnum(200);
        unsafe { rt::bad_fun(&mut w.regs, ip, fun, arity) }.pos
    };
    let here = "[{m,first,2,[{file,\"m.erl\"},{line,11}]}]";
    let end = |w: &Worker| {
        let reason = w.end().reason;
        show(&s.tables, reason)
    };
    assert!(call(&mut w, Word::fixnum(8), 1).is_null());
    assert_eq!(end(&w), format!("{{{{badfun,8}},{here}}}"));

    let first = atom(&s, "first");
    let id = s.tables.exports.id(m.module(), first, 2).unwrap();
    let export = w
        .regs
        .ctx
        .export_fun(id, m.module().word(), first.word(), 2);
    assert!(call(&mut w, export, 1).is_null());
    assert_eq!(end(&w), format!("{{{{badarity,{{#Fun,[1]}}}},{here}}}"));
    assert!(call(&mut w, export, 2).is_null());
    assert_eq!(end(&w), "{undef,[{m,first,[1,200],[]}]}");
    t.finish(std::slice::from_ref(&m)).unwrap();
    assert_eq!(call(&mut w, export, 2), m.export(first, 2));

    // A fun whose module is loaded later.
    let mut later = Source::new("later", FUNS);
    later.lambdas = true;
    let funs = &s.tables.funs;
    let module = atom(&s, "later");
    let entry: *const FunEntry = funs.entry(0, module, 0, 0, [0; 16], 1, 1);
    let p = beamr_term::Alloc::alloc(&mut w.regs.ctx, 3);
    let fun = unsafe {
        *p = Header::new(Subtag::Fun, 2).0;
        *p.add(1) = entry as usize as u64;
        *p.add(2) = Word::fixnum(77).bits();
        Word::boxed(p)
    };
    assert!(call(&mut w, fun, 1).is_null());
    assert_eq!(end(&w), format!("{{undef,{here}}}"));
    let image = later.image(&s);
    t.finish(std::slice::from_ref(&image)).unwrap();
    assert_eq!(call(&mut w, fun, 1), image.label(2));
    assert_eq!(w.regs.x[1], Word::fixnum(77));
    let made = unsafe { rt::fun_entry(&mut w.regs.ctx, image.id, 0) };
    assert_eq!(made, entry);
    assert!(call(&mut w, fun, 2).is_null());
    assert_eq!(end(&w), format!("{{{{badarity,{{#Fun,[1,200]}}}},{here}}}"));
}
