use beamr_sync::{SharedWheel, TimerHandle, TimerWheel};
use std::collections::BTreeMap;

fn expired(wheel: &mut TimerWheel<u32>, now: u64) -> Vec<(u64, u32)> {
    let mut seen = Vec::new();
    wheel.advance(now, |deadline, payload| seen.push((deadline, payload)));
    seen
}

#[test]
fn expires_by_deadline_then_insertion() {
    let mut wheel = TimerWheel::new(60);
    for (n, deadline) in [70, 65, 70, 4000, 65, 3].into_iter().enumerate() {
        wheel.insert(deadline, n as u32);
    }
    assert_eq!(wheel.next_deadline(), Some(60));
    assert_eq!(expired(&mut wheel, 64), [(60, 5)]);
    // On the same level as those that have moved down.
    wheel.insert(70, 6);
    assert_eq!(
        expired(&mut wheel, 4000),
        [(65, 1), (65, 4), (70, 0), (70, 2), (70, 6), (4000, 3)]
    );
    assert_eq!((wheel.now(), wheel.next_deadline()), (4000, None));
}

#[test]
fn cancels_and_reads() {
    let mut wheel = TimerWheel::new(0);
    let a = wheel.insert(1000, 'a');
    let b = wheel.insert(1001, 'b');
    assert_eq!(wheel.read(a), Some((&'a', 1000)));
    assert_eq!(wheel.next_deadline(), Some(1000));
    assert_eq!(wheel.cancel(a), Some(('a', 1000)));
    assert_eq!(wheel.cancel(a), None);
    let c = wheel.insert(5, 'c');
    assert_eq!(wheel.read(a), None, "the place is used again");
    assert_eq!(TimerHandle::from_u64(c.as_u64()), c);
    assert_eq!(wheel.advance(2000, |_, _| ()), 2);
    assert_eq!(wheel.cancel(b), None);
    assert!(wheel.is_empty());
}

#[test]
fn covers_all_of_time() {
    let mut wheel = TimerWheel::new(1);
    let deadlines = [u64::MAX, 1 << 63, 1 << 42, u64::MAX - 1, 2];
    for (n, deadline) in deadlines.into_iter().enumerate() {
        wheel.insert(deadline, n as u32);
    }
    assert_eq!(wheel.next_deadline(), Some(2));
    assert_eq!(expired(&mut wheel, 2), [(2, 4)]);
    assert_eq!(wheel.next_deadline(), Some(1 << 42));
    assert_eq!(
        expired(&mut wheel, u64::MAX),
        [(1 << 42, 2), (1 << 63, 1), (u64::MAX - 1, 3), (u64::MAX, 0)]
    );
}

/// Everything against a sorted map, with a generator of fixed seed.
#[test]
fn agrees_with_a_sorted_map() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let mut wheel = TimerWheel::new(12_345);
    let mut map = BTreeMap::new();
    let mut running: Vec<(TimerHandle, u64, u32)> = Vec::new();
    let mut now = 12_345;
    for n in 0..60_000_u32 {
        match random(10) {
            0..5 => {
                let span = 1 << random(20);
                let deadline = (now + random(span)).saturating_sub(random(3));
                let handle = wheel.insert(deadline, n);
                map.insert((deadline.max(now), n), ());
                running.push((handle, deadline.max(now), n));
            }
            5..7 if !running.is_empty() => {
                let (handle, deadline, n) =
                    running.swap_remove(random(running.len() as u64) as usize);
                let expected = map.remove(&(deadline, n)).map(|()| (n, deadline));
                assert_eq!(wheel.cancel(handle), expected);
            }
            _ => {
                if random(4) == 0 {
                    let next = map.keys().next().map(|(deadline, _)| *deadline);
                    let bound = wheel.next_deadline();
                    assert_eq!(bound.is_some(), next.is_some());
                    assert!(bound <= next);
                }
                let span = 1 << random(14);
                now += random(span);
                let mut expected = Vec::new();
                while let Some((&(deadline, n), ())) = map.first_key_value() {
                    if deadline > now {
                        break;
                    }
                    map.pop_first();
                    expected.push((deadline, n));
                }
                assert_eq!(expired(&mut wheel, now), expected);
            }
        }
        assert_eq!(wheel.len(), map.len());
    }
}

#[test]
fn a_big_wheel_gives_its_memory_back_and_old_handles_stay_stale() {
    let mut wheel = TimerWheel::new(0);
    let old: Vec<_> = (0..5000).map(|n| wheel.insert(n, n)).collect();
    assert_eq!(wheel.advance(5000, |_, _| ()), 5000);
    let new: Vec<_> = (0..10).map(|n| wheel.insert(6000 + n, n)).collect();
    assert!(old.iter().all(|handle| wheel.cancel(*handle).is_none()));
    assert!(new.iter().all(|handle| wheel.cancel(*handle).is_some()));
}

#[test]
fn shared_tells_who_is_the_earliest() {
    let wheel = SharedWheel::new(0);
    assert_eq!(wheel.next_deadline(), None);
    let a = wheel.insert(500, 'a');
    assert!(a.is_earliest);
    assert!(!wheel.insert(500, 'b').is_earliest);
    assert!(wheel.insert(100, 'c').is_earliest);
    assert_eq!(wheel.next_deadline(), Some(100));
    let mut due = Vec::new();
    assert!(!wheel.take_due(99, 10, &mut due) && due.is_empty());
    assert_eq!(wheel.cancel(a.handle), Some(('a', 500)));
    assert!(wheel.take_due(600, 1, &mut due));
    assert!(!wheel.take_due(600, 10, &mut due));
    assert_eq!(due, [(100, 'c'), (500, 'b')]);
    assert_eq!(wheel.next_deadline(), None);
    assert_eq!(wheel.cancel(a.handle), None);
}
