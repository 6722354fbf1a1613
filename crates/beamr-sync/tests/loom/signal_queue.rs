//! Tried, and failed as they must: a push that is Relaxed; a fetch that is Relaxed, or a load and a store
//! instead of a swap, or not reversed; a close that leaves null, or is not a release; a refusal without its
//! acquire fence; a push that tells "was empty" by anything but the word it replaced.

use super::*;

/// Two senders against an owner that fetches and then closes: every accepted signal arrives once, in
/// its sender's order, every refused one comes back.
#[test]
fn accepted_arrives_refused_comes_back() {
    check(3, || {
        let queue = Arc::new(SignalQueue::new());
        let senders: Vec<_> = (0..2_u64)
            .map(|sender| {
                let queue = queue.clone();
                thread::spawn(move || {
                    let mut accepted = 0;
                    for n in 0..2 {
                        match queue.push((sender, Plain::new(n))) {
                            Ok(_) => {
                                assert_eq!(accepted, n, "accepted after a refusal");
                                accepted += 1;
                            }
                            Err((_, n)) => drop(n.read()),
                        }
                    }
                    accepted
                })
            })
            .collect();
        let mut next = [0; 2];
        let mut take = |(sender, n): (u64, Plain)| {
            assert_eq!(next[sender as usize], n.read());
            next[sender as usize] += 1;
        };
        queue.fetch().for_each(&mut take);
        queue.close().for_each(&mut take);
        let accepted: Vec<u64> = senders.into_iter().map(|s| s.join().unwrap()).collect();
        assert_eq!(queue.fetch().count(), 0);
        assert_eq!(accepted, next);
    });
}

/// Who is refused sees what the receiver wrote before it closed.
#[test]
fn refusal_synchronises_with_the_close() {
    check(3, || {
        let shared = Arc::new((SignalQueue::new(), Plain::new(0)));
        let ours = shared.clone();
        let sender = thread::spawn(move || {
            if ours.0.push(1).is_err() {
                assert_eq!(ours.1.read(), 7);
            }
        });
        shared.1.write(7);
        drop(shared.0.close());
        sender.join().unwrap();
    });
}

/// Among the pushes that one batch holds, exactly one found the queue empty.
#[test]
fn one_push_per_batch_notifies() {
    check(3, || {
        let queue = Arc::new(SignalQueue::new());
        let notified = Arc::new(AtomicUsize::new(0));
        let senders: Vec<_> = (0..2)
            .map(|n| {
                let (queue, notified) = (queue.clone(), notified.clone());
                thread::spawn(move || {
                    if queue.push(n).unwrap() {
                        notified.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let mut batches = usize::from(!queue.fetch().is_empty());
        for sender in senders {
            sender.join().unwrap();
        }
        batches += usize::from(!queue.fetch().is_empty());
        assert_eq!(batches, notified.load(Ordering::Relaxed));
    });
}
