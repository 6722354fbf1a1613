use beamr_sync::slot_table::TableFull;
use beamr_sync::{Domain, SlotId, SlotTable};
use std::sync::Arc;

#[test]
fn identifiers_count_up_and_never_come_again() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 1000);
    let guard = worker.pin();
    let mut last = None;
    for n in 0..5000_u64 {
        let id = table.insert(Arc::new(n)).unwrap();
        assert_eq!(id.as_u64(), n, "one live entry: strictly in order");
        assert_eq!(table.get(id, &guard), Some(&n));
        if let Some(last) = last {
            assert_eq!(table.remove(last, &guard).as_deref(), Some(&(n - 1)));
            assert_eq!(table.get(last, &guard), None);
            assert!(table.remove(last, &guard).is_none());
        }
        last = Some(id);
    }
    assert_eq!(table.len(), 1);
}

#[test]
fn few_entries_at_a_time_use_few_slots() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 1 << 20);
    let guard = worker.pin();
    let mut seen = std::collections::HashSet::new();
    for n in 0..200_000_u64 {
        let id = table.insert(Arc::new(n)).unwrap();
        assert!(seen.insert(id.as_u64()), "used twice");
        assert!(id.as_u64() & ((1 << 20) - 1) <= 1 << 16);
        table.remove(id, &guard).unwrap();
    }
    // As many as are wanted at once are there all the same.
    for n in 0..1 << 18 {
        let id = table.insert(Arc::new(n)).unwrap();
        assert!(seen.insert(id.as_u64()), "used twice");
    }
    assert_eq!(table.len(), 1 << 18);
}

#[test]
fn is_full_at_its_limit() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 3);
    let ids: Vec<_> = (0..3).map(|n| table.insert(Arc::new(n)).unwrap()).collect();
    assert_eq!(table.insert(Arc::new(9)), Err(TableFull { limit: 3 }));
    let guard = worker.pin();
    table.remove(ids[1], &guard).unwrap();
    let (id, value) = table
        .insert_with(|id| Arc::new(id.as_u64() as i32 * 10))
        .unwrap();
    assert_eq!((*value, table.len()), (30, 3));
    assert_eq!(table.lookup(id).as_deref(), Some(&30));
    assert_eq!(table.lookup(ids[1]), None);
}

#[test]
fn a_dropped_reservation_frees_the_place() {
    let domain = Domain::new();
    let table = SlotTable::new(&domain, 1);
    let reservation = table.reserve().unwrap();
    assert_eq!(table.lookup(reservation.id()), None);
    assert!(table.reserve().is_err());
    drop(reservation);
    assert_eq!(table.insert(Arc::new(())).unwrap(), SlotId::from_u64(1));
}

#[test]
fn any_number_is_a_safe_identifier() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 100_000);
    table.insert(Arc::new(7)).unwrap();
    let guard = worker.pin();
    for number in [1, 5000, 1 << 17, 1 << 60, 1 << 63, (1 << 63) + 1, u64::MAX] {
        let id = SlotId::from_u64(number);
        assert_eq!(table.get(id, &guard), None);
        assert!(table.remove(id, &guard).is_none());
    }
}

#[test]
fn walks_over_the_living() {
    let domain = Domain::new();
    let worker = domain.register();
    let table = SlotTable::new(&domain, 4096);
    let ids: Vec<_> = (0..3000)
        .map(|n| table.insert(Arc::new(n)).unwrap())
        .collect();
    let guard = worker.pin();
    for id in ids.iter().skip(1).step_by(2) {
        table.remove(*id, &guard);
    }
    let seen: Vec<i32> = table.iter(&guard).map(|(_, n)| *n).collect();
    assert_eq!(seen, (0..3000).step_by(2).collect::<Vec<_>>());
    // A walk in pieces, under guards of its own, while others go.
    let (first, _, place) = table.next_from(0, &guard).unwrap();
    assert_eq!(first, ids[0]);
    table.remove(ids[2], &guard);
    assert_eq!(table.next_from(place, &guard).unwrap().0, ids[4]);
}

#[test]
fn a_removed_entry_lives_as_long_as_its_readers() {
    let domain = Domain::new();
    let (reader, writer) = (domain.register(), domain.register());
    let table = SlotTable::new(&domain, 8);
    let entry = Arc::new(String::from("alive"));
    let weak = Arc::downgrade(&entry);
    let id = table.insert(entry).unwrap();
    {
        let guard = reader.pin();
        let seen = table.get(id, &guard).unwrap();
        drop(table.remove(id, &writer.pin()));
        writer.collect();
        assert_eq!(seen, "alive");
    }
    writer.collect();
    assert!(weak.upgrade().is_none());
}

#[test]
#[should_panic(expected = "another domain")]
fn refuses_a_guard_of_another_domain() {
    let (ours, theirs) = (Domain::new(), Domain::new());
    let table = SlotTable::new(&ours, 8);
    let id = table.insert(Arc::new(())).unwrap();
    let other = theirs.register();
    table.get(id, &other.pin());
}

#[test]
fn drops_its_entries() {
    let domain = Domain::new();
    let entry = Arc::new(());
    let table = SlotTable::new(&domain, 8);
    table.insert(entry.clone()).unwrap();
    table.insert(entry.clone()).unwrap();
    table.reserve().unwrap();
    assert_eq!(Arc::strong_count(&entry), 3);
    drop(table);
    assert_eq!(Arc::strong_count(&entry), 1);
}

#[test]
fn threads_insert_look_up_and_remove() {
    let domain = Domain::new();
    let table = Arc::new(SlotTable::new(&domain, 64));
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let table = table.clone();
            std::thread::spawn(move || {
                let me = table.domain().register();
                for n in 0..5_000 {
                    let tag = thread << 32 | n;
                    let id = table.insert(Arc::new(tag)).unwrap();
                    let guard = me.pin();
                    assert_eq!(table.get(id, &guard), Some(&tag));
                    for other in id.as_u64().saturating_sub(4)..id.as_u64() + 4 {
                        let other = SlotId::from_u64(other);
                        if let Some(found) = table.get(other, &guard) {
                            assert!(*found >> 32 < 4 && (*found & 0xffff_ffff) < 5_000);
                        }
                    }
                    assert_eq!(*table.remove(id, &guard).unwrap(), tag);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(table.is_empty());
}
