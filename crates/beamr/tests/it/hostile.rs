//! Bad module files: a few hundred mutants of the fixtures. The long search is `cargo xtask hostile`.

use std::collections::HashMap;

#[path = "../../examples/hostile/mutate.rs"]
mod mutate;
#[path = "../../examples/hostile/stage.rs"]
mod stage;

use mutate::{Random, Seed};
use stage::{Call, Outcome, Stage};

const FIXTURES: [&[u8]; 6] = [
    include_bytes!("../../../beamr-file/tests/fixtures/25/mix.beam"),
    include_bytes!("../../../beamr-file/tests/fixtures/25/onload.beam"),
    include_bytes!("../../../beamr-file/tests/fixtures/25/small.beam"),
    include_bytes!("../../../beamr-file/tests/fixtures/27/mix.beam"),
    include_bytes!("../../../beamr-file/tests/fixtures/29/mix.beam"),
    include_bytes!("data/trace_cases.beam"),
];

/// Reductions that a mutant runs for.
const REDUCTIONS: u64 = 5000;

/// No mutant makes the VM panic, keeps a process alive or leaves memory charged, and enough of them run for this to mean
/// something.
#[test]
fn mutants_do_no_harm() {
    let seeds: Vec<Seed> = FIXTURES.iter().filter_map(|b| Seed::new(b)).collect();
    assert_eq!(seeds.len(), FIXTURES.len());
    let mut stages = [false, true].map(|spawns| Stage::new(HashMap::new(), spawns));
    let known: Vec<Vec<Call>> = FIXTURES
        .iter()
        .map(|b| stages[0].rehearse(b, &mut Random::new(0xbad, 0)))
        .collect();
    assert!(known.iter().all(|k| !k.is_empty()), "no calls to make");
    let mut sum = Outcome::default();
    let (mut valid, mut loaded, mut full) = (0, 0, 0);
    for index in 0..400 {
        let mut r = Random::new(0xbad, index);
        let i = r.below(seeds.len());
        let bytes = seeds[i].mutant(&mut r);
        let stage = &mut stages[index as usize % 2];
        let o = stage.run(&bytes, REDUCTIONS, &known[i], &mut r);
        assert_eq!(stage.charged(), 0, "mutant {index} leaves memory charged");
        valid += u64::from(o.valid);
        loaded += u64::from(o.loaded);
        full += u64::from(o.reductions >= REDUCTIONS);
        sum.calls += o.calls;
        sum.returned += o.returned;
        sum.reductions += o.reductions;
    }
    assert!(
        valid > 120 && loaded > 100,
        "{valid} valid, {loaded} loaded"
    );
    assert!(full * 10 > loaded * 9, "{full} of {loaded} ran long enough");
    assert!(sum.returned > 500, "{sum:?}");
}

/// The same seed gives the same mutants.
#[test]
fn mutants_are_reproducible() {
    let seed = Seed::new(FIXTURES[0]).expect("a fixture");
    for index in 0..50 {
        let make = |seed: &Seed| seed.mutant(&mut Random::new(7, index));
        assert!(make(&seed) == make(&seed));
    }
}
