//! A real race of two seconds: shared memory without a library, against itself.

#[path = "../../../../tests/src/skipped.rs"]
mod skipped;
mod support;

use std::time::{Duration, Instant};

use regatta_race::plan::{Effort, Wishes};
use regatta_race::results::Results;
use regatta_race::{compare, speed};

fn wishes() -> Wishes {
    Wishes {
        suites: vec!["primitives".into(), "memory".into()],
        operations: ["one-to-one", "barrier", "global-sum", "blocked-receive"]
            .map(String::from)
            .to_vec(),
        tasks: vec![2],
        bytes: vec![8, 4096],
        effort: Effort::Quick,
        launches: Some(1),
        budget: Some(2.0),
    }
}

#[test]
fn limit_races_itself_and_leaves_nothing() {
    if speed::allowed().len() < 2 {
        skipped::skip("with one processor there is nothing to race between");
        return;
    }
    let before = Instant::now();
    let results = support::limit_against_itself(wishes());
    assert!(
        before.elapsed() < Duration::from_secs(180),
        "{:?}",
        before.elapsed()
    );

    // For each side: one-to-one and global-sum with two sizes each, a barrier, and the blocked receive.
    assert_eq!(
        results.rows.len(),
        2 * (2 + 2 + 1 + 1),
        "{:#?}",
        results.rows
    );
    assert!(
        results.rows.iter().all(|row| row.measured()),
        "{:#?}",
        results.rows
    );
    assert_eq!(compare::within(&results, "limit", "limit-again").len(), 6);
    let ping_pong = results
        .rows
        .iter()
        .find(|r| r.operation == "one-to-one" && r.bytes == 8)
        .expect("it was raced");
    // In microseconds. Both tasks spin. On a loaded machine each waits some milliseconds until the other gets a
    // processor.
    assert!(
        ping_pong.minimum > 0.005 && ping_pong.minimum < 100_000.0,
        "{ping_pong:?}"
    );
    // A blocked task of `limit` spins. On a loaded machine it has part of a processor; a sleeping task would have none.
    let blocked = results
        .rows
        .iter()
        .find(|r| r.operation == "blocked-receive")
        .expect("it was raced");
    assert!(blocked.median > 2.0, "{blocked:?}");

    assert_eq!(
        Results::parse(&results.to_json()).expect("it reads what it wrote"),
        results
    );
    assert!(
        !std::env::temp_dir()
            .join(format!("regatta-race-{}-0", std::process::id()))
            .exists()
    );
}
