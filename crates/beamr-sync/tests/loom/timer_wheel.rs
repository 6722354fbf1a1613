//! Tried, and failed as they must: an insertion that never is the earliest, or does not publish that it is.

use super::*;

/// Expiry against cancelling: one gets the payload.
#[test]
fn expires_or_is_cancelled() {
    check(3, || {
        let wheel = Arc::new(SharedWheel::new(0));
        let handle = wheel.insert(5, Plain::new(1)).handle;
        let theirs = wheel.clone();
        let other = thread::spawn(move || {
            let cancelled = theirs.cancel(handle);
            cancelled.map_or(0, |(payload, _)| payload.read())
        });
        let mut due = Vec::new();
        wheel.take_due(5, 8, &mut due);
        let ours = due.first().map_or(0, |(_, payload)| payload.read());
        assert_eq!(ours + other.join().unwrap(), 1);
        assert!(wheel.next_deadline().is_none());
    });
}

/// An owner that sleeps until its next deadline is woken by an earlier one.
#[test]
fn an_earlier_deadline_wakes_the_owner() {
    check(3, || {
        let mut parker = Parker::new();
        let wheel = Arc::new(SharedWheel::new(0));
        let far = wheel.insert(1000, 1).handle;
        let (unparker, theirs) = (parker.unparker(), wheel.clone());
        let other = thread::spawn(move || {
            if theirs.insert(10, 2).is_earliest {
                unparker.unpark();
            }
        });
        // Time stands at 10: only the far deadline would let the owner sleep.
        while wheel.next_deadline().is_none_or(|next| next > 10) {
            parker.park();
        }
        let mut due = Vec::new();
        wheel.take_due(10, 8, &mut due);
        assert_eq!(due, [(10, 2)]);
        other.join().unwrap();
        assert_eq!(wheel.cancel(far), Some((1, 1000)));
    });
}
