//! Images, instances, module tables.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use beamr_abi::Capability;
use beamr_term::{Header, Subtag, Word, atoms};
use beamr_vm::code::server::Capabilities;
use beamr_vm::code::table::NotPurged;
use beamr_vm::code::{FinishError, ModuleTable, PendingOnLoad, old_code};

use crate::support::{NATIVES, Source, Worker, atom, position, server, table};

const V1: &[(&str, u32)] = &[("f", 0), ("gone", 1)];
const V2: &[(&str, u32)] = &[("f", 0), ("new", 1)];

#[test]
fn loading_again_makes_the_current_code_old() {
    let s = server();
    let t = table(&s, 0);
    let (m, f) = (atom(&s, "m"), atom(&s, "f"));
    let (gone, new) = (atom(&s, "gone"), atom(&s, "new"));
    let v1 = Source::new("m", V1).image(&s);
    let v2 = Source::new("m", V2).image(&s);
    let v3 = Source::new("m", V1).image(&s);
    assert!(t.find(m, f, 0).is_null() && !t.is_loaded(m));
    assert!(
        t.finish(std::slice::from_ref(&v1))
            .unwrap()
            .on_load
            .is_empty()
    );
    assert_eq!(t.find(m, f, 0), v1.export(f, 0));
    assert_eq!(t.find(m, gone, 1), v1.export(gone, 1));
    assert_eq!(t.loaded(), [m]);
    t.finish(std::slice::from_ref(&v2)).unwrap();
    assert_eq!(t.find(m, f, 0), v2.export(f, 0));
    assert_eq!(t.find(m, new, 1), v2.export(new, 1));
    assert!(t.find(m, gone, 1).is_null());
    assert!(Arc::ptr_eq(&t.old(m).unwrap().image, &v1));
    assert_eq!(
        t.finish(std::slice::from_ref(&v3)),
        Err(FinishError::NotPurged(vec![m]))
    );
    assert_eq!(t.delete(m), Err(NotPurged));
    assert!(t.purge(m));
    assert!(!t.purge(m));
    assert!(t.old(m).is_none());
    assert_eq!(t.delete(m), Ok(true));
    assert_eq!(t.delete(m), Ok(false));
    assert!(!t.is_loaded(m) && t.find(m, f, 0).is_null());
    // Old code does not stand in the way when there is no current code.
    assert!(t.finish(std::slice::from_ref(&v3)).is_ok());
    assert_eq!(t.find(m, f, 0), v3.export(f, 0));
}

#[test]
fn several_modules_at_once_or_none() {
    let s = server();
    let t = table(&s, 0);
    let a = Source::new("a", V1).image(&s);
    let b = Source::new("b", V1).image(&s);
    let mut c = Source::new("c", V1);
    c.on_load = true;
    let c = c.image(&s);
    let twice = t.finish(&[a.clone(), a.clone()]);
    assert_eq!(twice, Err(FinishError::Duplicate(vec![a.module()])));
    let mixed = t.finish(&[a.clone(), c.clone()]);
    assert_eq!(mixed, Err(FinishError::OnLoad(vec![c.module()])));
    assert!(t.loaded().is_empty());
    t.finish(&[a, b]).unwrap();
    assert_eq!(t.loaded().len(), 2);
}

#[test]
fn positions_lead_to_images_until_they_are_dropped() {
    let s = server();
    let m = Source::new("m", V1).image(&s);
    let at = position(&m, 1, 1);
    let found = s.ranges.with(at, |i| {
        let f = i.function_at(at).unwrap();
        (i.id, f.arity, i.location_at(at).map(|l| l.1))
    });
    assert_eq!(found, Some((m.id, 1, Some(21))));
    let end = m.emitted.end;
    assert!(s.ranges.with(end, |i| i.id) != Some(m.id));
    let id = m.id;
    drop(m);
    assert_eq!(s.ranges.with(at, |i| i.id), None);
    // Numbers are used again.
    assert_eq!(Source::new("n", V1).image(&s).id, id);
}

#[test]
fn natives_keep_their_exports() {
    let s = server();
    let t = table(&s, 0);
    let (abs, f) = (atom(&s, "abs"), atom(&s, "f"));
    let stub = s.engine.native_stub(&NATIVES[0]);
    assert_eq!(t.find(atoms::ERLANG, abs, 1), stub);
    let erlang = Source::new("erlang", &[("abs", 1), ("f", 0)]).image(&s);
    t.finish(std::slice::from_ref(&erlang)).unwrap();
    assert_eq!(t.find(atoms::ERLANG, abs, 1), stub);
    assert_eq!(t.find(atoms::ERLANG, f, 0), erlang.export(f, 0));
    t.delete(atoms::ERLANG).unwrap();
    assert_eq!(t.find(atoms::ERLANG, abs, 1), stub);
    assert!(t.find(atoms::ERLANG, f, 0).is_null());
}

#[test]
fn a_namespace_sees_what_it_is_granted() {
    let s = server();
    let granted = Capabilities::NONE.with(Capability::Pure);
    let t = ModuleTable::new(s.clone(), 3, granted, None).unwrap();
    let (os, getenv) = (atom(&s, "os"), atom(&s, "getenv"));
    assert!(t.find(os, getenv, 0).is_null());
    assert!(!table(&s, 0).find(os, getenv, 0).is_null());
    assert!(!t.find(atoms::LISTS, atom(&s, "reverse"), 2).is_null());
    assert_eq!(
        Capabilities::ALL
            .without(Capability::Pure)
            .with(Capability::Pure),
        Capabilities::ALL
    );
}

#[test]
fn namespaces_share_images_and_nothing_else() {
    let s = server();
    let (a, b) = (table(&s, 1), table(&s, 2));
    let mut source = Source::new("m", V1);
    source.lambdas = true;
    let m = source.image(&s);
    a.finish(std::slice::from_ref(&m)).unwrap();
    assert!(!b.is_loaded(m.module()));
    b.finish(std::slice::from_ref(&m)).unwrap();
    let entry = |t: &ModuleTable| t.current(m.module()).unwrap().funs[0];
    assert_ne!(entry(&a), entry(&b));
    a.delete(m.module()).unwrap();
    assert!(a.purge(m.module()));
    // The purge took the code of a's funs only.
    let code = |e: *const beamr_term::FunEntry| unsafe { (*e).code.load(Ordering::Relaxed) };
    assert!(!code(entry(&b)).is_null());
    assert!(b.is_loaded(m.module()));
    assert!(s.ranges.with(m.emitted.start, |_| ()).is_some());
}

#[test]
fn on_load_keeps_or_drops() {
    let s = server();
    let t = table(&s, 0);
    let mut source = Source::new("m", V1);
    source.on_load = true;
    let (m, f) = (atom(&s, "m"), atom(&s, "f"));
    let (me, you) = (Word::pid(1), Word::pid(2));
    assert_eq!(t.begin_on_load(m, me), PendingOnLoad::None);
    let v1 = source.image(&s);
    assert_eq!(t.finish(std::slice::from_ref(&v1)).unwrap().on_load, [m]);
    assert!(!t.is_loaded(m) && t.find(m, f, 0).is_null());
    let PendingOnLoad::Run(id) = t.begin_on_load(m, me) else {
        panic!("the function may run");
    };
    assert_eq!(t.export(id), v1.label(2));
    assert_eq!(t.begin_on_load(m, you), PendingOnLoad::Busy);
    assert!(t.finish_on_load(m, false).unwrap());
    assert!(t.export(id).is_null() && !t.is_loaded(m));
    assert!(!t.finish_on_load(m, true).unwrap());

    let v2 = source.image(&s);
    t.finish(std::slice::from_ref(&v2)).unwrap();
    assert!(t.finish_on_load(m, true).unwrap());
    assert_eq!(t.find(m, f, 0), v2.export(f, 0));
    assert!(t.current(m).unwrap().ready.load(Ordering::Relaxed));
}

#[test]
fn uses_of_old_code() {
    let s = server();
    let t = Arc::new(table(&s, 0));
    let mut source = Source::new("m", V1);
    source.lambdas = true;
    let m = source.image(&s);
    t.finish(std::slice::from_ref(&m)).unwrap();
    let other = Source::new("n", V1).image(&s);
    let mut w = Worker::new(&s, &t);
    let uses = |w: &Worker| unsafe { old_code::runs_in(&w.body, &m) };
    w.push(position(&other, 0, 2) as u64);
    assert!(!uses(&w));
    // A fun does not count.
    let entry = t.current(m.module()).unwrap().funs[0];
    let p = beamr_term::Alloc::alloc(&mut w.regs.ctx, 3);
    let fun = unsafe {
        *p = Header::new(Subtag::Fun, 2).0;
        *p.add(1) = entry as usize as u64;
        *p.add(2) = Word::NIL.bits();
        Word::boxed(p)
    };
    w.push(fun.bits());
    assert!(!uses(&w));
    // The end of the image as return address: a call is its last op.
    w.push(m.emitted.end as u64);
    assert!(uses(&w));
}

#[test]
fn a_purge_begins_and_ends() {
    let s = server();
    let t = table(&s, 0);
    let mut source = Source::new("m", V1);
    source.lambdas = true;
    let v1 = source.image(&s);
    let m = v1.module();
    assert!(!t.begin_purge(m));
    t.finish(std::slice::from_ref(&v1)).unwrap();
    let entry = t.current(m).unwrap().funs[0];
    let code = || unsafe { (*entry).code.load(Ordering::Relaxed) };
    assert!(!t.begin_purge(m), "there is no old code");
    t.delete(m).unwrap();
    let at = code();
    assert!(!at.is_null() && t.begin_purge(m) && t.is_purging(m));
    assert!(code().is_null(), "calls of its funs wait");
    t.abort_purge(m);
    assert!(!t.is_purging(m) && t.old(m).is_some());
    assert_eq!(code(), at);
    assert!(t.begin_purge(m) && t.purge(m));
    assert!(code().is_null() && !t.is_purging(m) && t.old(m).is_none());
}

#[test]
fn code_of_a_failed_on_load_is_purged_in_place_of_old_code() {
    let s = server();
    let t = table(&s, 0);
    let old = Source::new("m", V1).image(&s);
    let m = old.module();
    t.finish(std::slice::from_ref(&old)).unwrap();
    t.delete(m).unwrap();
    let mut source = Source::new("m", V2);
    source.on_load = true;
    let failed = source.image(&s);
    t.finish(std::slice::from_ref(&failed)).unwrap();
    assert!(!t.begin_purge_on_load(m));
    assert!(t.end_on_load(m, false).unwrap());
    assert!(t.begin_purge_on_load(m));
    assert_eq!(t.old(m).unwrap().image.id, failed.id);
    assert!(t.purge(m));
    assert_eq!(t.old(m).unwrap().image.id, old.id);
}
