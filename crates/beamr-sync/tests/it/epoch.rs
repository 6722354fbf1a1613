use beamr_sync::Domain;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn frees_only_when_no_guard_of_then_lives() {
    let drops = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let (reader, writer) = (domain.register(), domain.register());
    let guard = reader.pin();
    writer.pin().defer_drop(Box::new(Counts(drops.clone())));
    writer.collect();
    writer.collect();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    drop(guard);
    writer.collect();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn a_departed_participant_leaves_its_drops() {
    let drops = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let writer = domain.register();
    let counts = Counts(drops.clone());
    writer.pin().defer(move || drop(counts));
    drop(writer);
    assert_eq!(domain.orphan_count(), 1);
    domain.collect_orphans();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    domain.with_guest(|guard| guard.defer_drop_arc(Arc::new(Counts(drops.clone()))));
    drop(domain);
    assert_eq!(drops.load(Ordering::SeqCst), 2);
}

#[test]
fn a_drop_may_defer_in_turn() {
    let drops = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let writer = domain.register();
    let (inner_domain, inner_drops) = (domain.clone(), drops.clone());
    writer.pin().defer(move || {
        inner_domain.with_guest(|guard| guard.defer_drop(Box::new(Counts(inner_drops))));
    });
    writer.collect();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    writer.collect();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn slices_collect_by_themselves() {
    let drops = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let worker = domain.register();
    for _ in 0..1000 {
        let slice = worker.pin();
        worker.pin().defer_drop(Box::new(Counts(drops.clone())));
        drop(slice);
    }
    assert!(drops.load(Ordering::SeqCst) > 900);
}
