//! Tried, and failed as they must: a look-up without the second look, without its fence, or whose first look is Relaxed; an
//! identifier that is stored Relaxed, or before the pointer; an identifier that comes again; a remover that loads and stores
//! instead of exchanging; a count that is given back at once; a limit that is checked off the lock. A pointer that
//! is stored Relaxed is found with LOOM_MAX_PREEMPTIONS=3.
//!
//! Tried, and not found: links of the free list that are Relaxed. The fence of the deferral before covers the link
//! that a remover stores into its own slot; the one into another's slot would take four threads.

use super::*;

/// A slot is freed by one thread and used again by another, under a reader that knows the old
/// identifier: it finds the old entry, alive, or nothing.
#[test]
fn a_stale_identifier_misses() {
    check(2, || {
        let domain = Domain::new();
        let table = Arc::new(SlotTable::new(&domain, 1));
        let first = table.insert(Arc::new(Mortal::new(1))).unwrap();
        let theirs = table.clone();
        let reader = thread::spawn(move || {
            let me = theirs.domain().register();
            let guard = me.pin();
            if let Some(found) = theirs.get(first, &guard) {
                assert_eq!(found.0.read(), 1);
            }
        });
        let theirs = table.clone();
        let inserter = thread::spawn(move || {
            // Full as long as the first entry lives.
            if let Ok(second) = theirs.insert(Arc::new(Mortal::new(2))) {
                assert_ne!(second, first);
            }
        });
        let me = domain.register();
        drop(table.remove(first, &me.pin()));
        me.collect();
        inserter.join().unwrap();
        reader.join().unwrap();
    });
}

/// A reader that guesses an identifier sees an entry complete or not at all.
#[test]
fn an_entry_is_published_whole() {
    check(2, || {
        let domain = Domain::new();
        let table = Arc::new(SlotTable::<Mortal>::new(&domain, 2));
        let theirs = table.clone();
        let reader = thread::spawn(move || {
            let found = theirs.lookup(SlotId::from_u64(0));
            if let Some(found) = found {
                assert_eq!(found.0.read(), 1);
            }
        });
        let id = table.insert(Arc::new(Mortal::new(1))).unwrap();
        let me = domain.register();
        drop(table.remove(id, &me.pin()));
        me.collect();
        reader.join().unwrap();
    });
}

/// Of two removers one gets the entry. A walk beside them sees what stays.
#[test]
fn one_remover_wins() {
    check(2, || {
        let domain = Domain::new();
        let table = Arc::new(SlotTable::new(&domain, 2));
        let id = table.insert(Arc::new(Mortal::new(1))).unwrap();
        let stays = table.insert(Arc::new(Mortal::new(2))).unwrap();
        let theirs = table.clone();
        let other = thread::spawn(move || {
            let me = theirs.domain().register();
            let guard = me.pin();
            usize::from(theirs.remove(id, &guard).is_some())
        });
        let me = domain.register();
        let guard = me.pin();
        let seen = table
            .iter(&guard)
            .filter(|(id, value)| *id == stays && value.0.read() == 2)
            .count();
        assert_eq!(seen, 1);
        let mut won = usize::from(table.remove(id, &guard).is_some());
        drop(guard);
        won += other.join().unwrap();
        assert_eq!((won, table.len()), (1, 1));
    });
}

/// Two threads insert into a table with one place left: one is refused.
#[test]
fn the_limit_holds() {
    check(3, || {
        let domain = Domain::new();
        let table = Arc::new(SlotTable::new(&domain, 1));
        let theirs = table.clone();
        let other = thread::spawn(move || theirs.insert(Arc::new(1)).is_ok());
        let ours = table.insert(Arc::new(2)).is_ok();
        assert!(ours ^ other.join().unwrap());
        assert_eq!(table.len(), 1);
    });
}
