//! Tried, and failed as they must: a theft that is not counted at the victim, or not at the thief; a thief that holds its own
//! lock while it takes the victim's.

use super::*;

struct Numbered(usize);
impl Task for Numbered {}

/// Owner, thief and a third who pushes: each task runs once.
#[test]
fn a_stolen_task_runs_once() {
    check(3, || {
        let queues = Arc::new([RunQueue::new(), RunQueue::new()]);
        let ran = Arc::new(Mutex::new([0; 3]));
        for n in 0..2 {
            queues[0].push(Priority::Normal, Numbered(n));
        }
        let (theirs, their_ran) = (queues.clone(), ran.clone());
        let thief = thread::spawn(move || {
            if let Some((_, task)) = theirs[1].steal_from(&theirs[0]) {
                their_ran.lock()[task.0] += 1;
            }
        });
        let theirs = queues.clone();
        let pusher = thread::spawn(move || {
            theirs[0].push(Priority::High, Numbered(2));
        });
        if let Some((_, task)) = queues[0].pop() {
            ran.lock()[task.0] += 1;
        }
        thief.join().unwrap();
        pusher.join().unwrap();
        for queue in &*queues {
            assert!(queue.len() < 3);
            while let Some((_, task)) = queue.pop() {
                ran.lock()[task.0] += 1;
            }
            assert!(queue.is_empty());
        }
        assert_eq!(*ran.lock(), [1; 3]);
    });
}

/// Two thieves that rob each other: no lock order to break.
#[test]
fn mutual_theft_does_not_deadlock() {
    check(3, || {
        let queues = Arc::new([RunQueue::new(), RunQueue::new()]);
        for queue in &*queues {
            for n in 0..3 {
                queue.push(Priority::Normal, Numbered(n));
            }
        }
        let theirs = queues.clone();
        let thief = thread::spawn(move || usize::from(theirs[1].steal_from(&theirs[0]).is_some()));
        let mut taken = usize::from(queues[0].steal_from(&queues[1]).is_some());
        taken += thief.join().unwrap();
        assert_eq!(queues[0].len() + queues[1].len() + taken, 6);
    });
}
