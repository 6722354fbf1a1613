//! Tried, and failed as they must: an opening that notifies nobody, or one; a sender that goes without notifying.

use super::*;
use beamr_sync::gate::RecvError;
use beamr_sync::{Gate, OneShot};

#[test]
fn an_opened_gate_lets_all_through() {
    check(3, || {
        let gate = Arc::new(Gate::new());
        let theirs = gate.clone();
        let waiter = thread::spawn(move || theirs.wait());
        let ours = gate.clone();
        let opener = thread::spawn(move || ours.open(3));
        assert_eq!(gate.wait(), Ok(3));
        assert_eq!(waiter.join().unwrap(), Ok(3));
        assert_eq!(opener.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_dropped_sender_is_noticed() {
    check(3, || {
        let (sender, receiver) = OneShot::<u32>::channel();
        let sent = Arc::new(AtomicBool::new(false));
        let theirs = sent.clone();
        let other = thread::spawn(move || {
            if theirs.load(Ordering::Relaxed) {
                sender.send(1).unwrap();
            }
        });
        sent.store(true, Ordering::Relaxed);
        match receiver.recv() {
            Ok(value) => assert_eq!(value, 1),
            Err(error) => assert_eq!(error, RecvError::Dropped),
        }
        other.join().unwrap();
    });
}
