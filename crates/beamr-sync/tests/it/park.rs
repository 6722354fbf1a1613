use beamr_sync::park::Woken;
use beamr_sync::{IdleSet, Parker};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "threads")]
#[test]
fn a_token_that_comes_first_is_kept() {
    let mut parker = Parker::new();
    let unparker = parker.unparker();
    unparker.unpark();
    unparker.unpark();
    assert_eq!(parker.park(), Woken::Token);
    assert_eq!(parker.park_timeout(Duration::ZERO), Woken::Timeout);
    assert_eq!(parker.park_until(Instant::now()), Woken::Timeout);
    assert_eq!(
        parker.park_timeout(Duration::from_millis(1)),
        Woken::Timeout
    );
    unparker.unpark();
    assert_eq!(parker.park_timeout(Duration::ZERO), Woken::Token);
}

#[cfg(feature = "threads")]
#[test]
fn wakes_another_thread_again_and_again() {
    let mut ours = Parker::new();
    let mut theirs = Parker::new();
    let (wake_us, wake_them) = (ours.unparker(), theirs.unparker());
    let other = std::thread::spawn(move || {
        for _ in 0..2_000 {
            assert_eq!(theirs.park(), Woken::Token);
            wake_us.unpark();
        }
    });
    for _ in 0..2_000 {
        wake_them.unpark();
        assert_eq!(ours.park(), Woken::Token);
    }
    other.join().unwrap();
}

#[test]
fn the_set_wakes_each_sleeper_once() {
    let mut parkers: Vec<_> = (0..70).map(|_| Parker::new()).collect();
    let set = Arc::new(IdleSet::new(parkers.iter().map(Parker::unparker)));
    assert_eq!(set.wake_one(), None);
    for worker in [3, 69, 5] {
        set.announce(worker);
    }
    assert_eq!(set.sleepers(), 3);
    assert!(set.retract(5));
    assert!(!set.wake(5));
    assert_eq!(set.wake_one(), Some(3));
    assert!(!set.retract(3));
    assert!(set.wake(69));
    assert_eq!(set.wake_one(), None);
    for (worker, parker) in parkers.iter_mut().enumerate() {
        let woken = parker.park_timeout(Duration::ZERO) == Woken::Token;
        assert_eq!(woken, worker == 3 || worker == 69);
    }
    set.wake_all();
    assert!(
        parkers
            .iter_mut()
            .all(|parker| parker.park() == Woken::Token)
    );
}

#[cfg(not(feature = "threads"))]
#[test]
fn does_not_block_without_threads() {
    let mut parker = Parker::new();
    assert_eq!(parker.park(), Woken::CannotBlock);
    assert_eq!(parker.park_timeout(Duration::MAX), Woken::CannotBlock);
    parker.unparker().unpark();
    assert_eq!(parker.park_until(Instant::now()), Woken::Token);
}
