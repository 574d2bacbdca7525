//! Environments that take turns in a real race: shared memory without a library, against itself.

#[path = "../../../../tests/src/skipped.rs"]
mod skipped;
mod support;

use regatta_race::plan::{Effort, Wishes};
use regatta_race::results::Results;
use regatta_race::speed;

fn wishes() -> Wishes {
    Wishes {
        suites: vec!["primitives".into()],
        operations: vec!["one-to-one".into(), "barrier".into()],
        tasks: vec![2],
        bytes: vec![8, 4096],
        effort: Effort::Quick,
        launches: Some(2),
        budget: Some(12.0),
    }
}

#[test]
fn environments_that_take_turns_are_compared_by_the_ratios_of_their_turns() {
    if speed::allowed().len() < 2 {
        skipped::skip("with one processor there is nothing to race between");
        return;
    }
    let results = support::limit_against_itself(wishes());
    assert_eq!(results.ratios.len(), 3, "{:#?}", results.ratios);
    for ratio in &results.ratios {
        assert_eq!((ratio.launches, ratio.rounds), (2, 12), "{ratio:?}");
        let [low, high] = ratio.ci95;
        assert!(
            low <= ratio.median && ratio.median <= high && low > 0.0,
            "{ratio:?}"
        );
    }
    let read = Results::parse(&results.to_json()).expect("it is read again");
    assert_eq!(read.ratios, results.ratios);
}
