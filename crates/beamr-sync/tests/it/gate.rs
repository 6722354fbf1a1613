use beamr_sync::gate::{CannotBlock, RecvError};
use beamr_sync::prim::CAN_BLOCK;
use beamr_sync::{Gate, OneShot};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_gate_opens_once_for_all() {
    let gate = Arc::new(Gate::new());
    assert_eq!(gate.get(), None);
    let empty = gate.wait_timeout(Duration::ZERO);
    assert_eq!(
        empty,
        if CAN_BLOCK {
            Ok(None)
        } else {
            Err(CannotBlock)
        }
    );
    let waiters: Vec<_> = (0..if CAN_BLOCK { 2 } else { 0 })
        .map(|_| {
            let gate = gate.clone();
            std::thread::spawn(move || gate.wait())
        })
        .collect();
    assert_eq!(gate.open(7), Ok(()));
    assert_eq!(gate.open(8), Err(8));
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Ok(7));
    }
    assert_eq!(gate.wait(), Ok(7));
    assert_eq!(gate.wait_timeout(Duration::MAX), Ok(Some(7)));
}

#[test]
fn a_oneshot_delivers_or_tells_why_not() {
    let (sender, receiver) = OneShot::channel();
    assert_eq!(sender.send(1), Ok(()));
    assert_eq!(receiver.recv(), Ok(1));

    let (sender, receiver) = OneShot::<i32>::channel();
    let early = receiver.recv_timeout(Duration::ZERO);
    let nothing = match CAN_BLOCK {
        true => RecvError::Timeout,
        false => RecvError::CannotBlock,
    };
    assert_eq!(early, Err(nothing));
    assert_eq!(receiver.try_recv(), None);
    drop(sender);
    assert_eq!(receiver.recv(), Err(RecvError::Dropped));

    let (sender, receiver) = OneShot::channel();
    drop(receiver);
    assert_eq!(sender.send(2), Err(2));

    if CAN_BLOCK {
        let (sender, receiver) = OneShot::channel();
        let other = std::thread::spawn(move || receiver.recv());
        sender.send(3).unwrap();
        assert_eq!(other.join().unwrap(), Ok(3));
    }
}
