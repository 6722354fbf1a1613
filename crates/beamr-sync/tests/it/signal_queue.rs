use beamr_sync::{Node, SignalQueue};
use std::sync::Arc;

#[test]
fn keeps_order_and_reports_emptiness() {
    let queue = SignalQueue::new();
    assert_eq!(queue.push(1), Ok(true));
    assert_eq!(queue.push(2), Ok(false));
    assert!(queue.push_node(Node::new(3)).is_ok_and(|empty| !empty));
    assert_eq!(queue.fetch().collect::<Vec<_>>(), [1, 2, 3]);
    assert!(queue.is_empty());
    assert_eq!(queue.push(4), Ok(true));
    let mut batch = queue.close();
    assert_eq!(batch.next_node().map(|node| node.value), Some(4));
    assert!(batch.is_empty());
    assert_eq!(queue.push(5), Err(5));
    assert!(queue.is_closed() && queue.is_empty());
    assert_eq!(queue.fetch().count(), 0);
    assert_eq!(queue.close().count(), 0);
    assert!(queue.is_closed());
}

#[test]
fn drops_what_nobody_fetched() {
    let value = Arc::new(());
    let queue = SignalQueue::new();
    for _ in 0..3 {
        queue.push(value.clone()).unwrap();
    }
    let mut batch = queue.fetch();
    drop(batch.next());
    queue.push(value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 4);
    drop(batch);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(queue);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn senders_keep_their_order() {
    const SENDERS: usize = 3;
    const EACH: usize = 20_000;
    let queue = Arc::new(SignalQueue::new());
    let threads: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let queue = queue.clone();
            std::thread::spawn(move || {
                for n in 0..EACH {
                    queue.push((sender, n)).unwrap();
                }
            })
        })
        .collect();
    let mut next = [0; SENDERS];
    while next.iter().sum::<usize>() < SENDERS * EACH {
        for (sender, n) in queue.fetch() {
            assert_eq!(next[sender], n);
            next[sender] += 1;
        }
        std::thread::yield_now();
    }
    for thread in threads {
        thread.join().unwrap();
    }
}
