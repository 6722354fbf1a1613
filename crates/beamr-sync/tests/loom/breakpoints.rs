//! Tried, and failed as it must: an entry that is taken out before the word has its original back, without the lock around both.

use super::*;
use beamr_sync::breakpoints::{BreakTable, Found};
use beamr_sync::prim::AtomicUsize;

const ORIGINAL: usize = 7;
const TRAP: usize = 1;

/// Runs the word once, as an engine does: what is run in the end.
fn run(table: &BreakTable<usize>, word: &AtomicUsize) -> usize {
    let w = word.load(Ordering::Relaxed);
    if w != TRAP {
        return w;
    }
    match table.find(8, word) {
        Found::Point(original) => *original,
        Found::Gone(original) => original,
    }
}

#[test]
fn who_meets_a_trap_runs_the_original() {
    check(3, || {
        let shared = Arc::new((BreakTable::default(), AtomicUsize::new(ORIGINAL)));
        let theirs = shared.clone();
        let runner = thread::spawn(move || {
            for _ in 0..2 {
                assert_eq!(run(&theirs.0, &theirs.1), ORIGINAL);
            }
        });
        let (table, word) = &*shared;
        let point = table.install(8, word, TRAP, |original| original);
        assert_eq!(*point, ORIGINAL);
        table.remove(8, word, |original| *original);
        table.install(8, word, TRAP, |original| original);
        runner.join().unwrap();
        assert_eq!(run(table, word), ORIGINAL);
    });
}
