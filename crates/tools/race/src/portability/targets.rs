//! The suite `interfaces`: the points at which the interfaces of NX and Express keep a bound over Regatta's own.
//!
//! A bound limits the ratio of two times. It is kept if the whole interval of the ratio is below it, and broken if the
//! whole interval is above it. While the interval contains the bound, the race continues with that point as long as it
//! has time.

use crate::operations::{self, Bound, Operation};
use crate::places::Place;
use crate::results::{Ratio, Results, Row};
use crate::suites::INTERFACES;

const SUITE: &str = INTERFACES.name;
const OURS: &str = "regatta";

/// Returns each bound with its operation.
fn bounds() -> impl Iterator<Item = (&'static Operation, &'static Bound)> {
    let of = |one: &'static Operation| one.bounds.iter().map(move |bound| (one, bound));
    operations::all().flat_map(of)
}

/// Returns all points that the bounds need, each once.
pub fn places() -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (operation, bound) in bounds() {
        for operation in [Some(operation), bound.against].into_iter().flatten() {
            for &tasks in bound.tasks {
                add(&mut places, operation, tasks, bound.bytes);
            }
        }
    }
    places
}

fn add(places: &mut Vec<Place>, operation: &'static Operation, tasks: u32, bytes: &[u64]) {
    let same = |place: &&mut Place| (place.operation, place.tasks) == (operation, tasks);
    match places.iter_mut().find(same) {
        Some(place) => {
            let fresh = bytes.iter().filter(|size| !place.bytes.contains(size));
            let fresh: Vec<u64> = fresh.copied().collect();
            place.bytes.extend(fresh);
        }
        None => places.push(Place {
            operation,
            tasks,
            bytes: bytes.to_vec(),
        }),
    }
}

/// Whether a bound is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The whole interval is within the bound.
    Yes,
    /// The whole interval is beyond the bound.
    No,
    /// The interval contains the bound.
    Open,
}

/// Judges the interval of a ratio by the largest ratio that is allowed.
pub fn judge([low, high]: [f64; 2], most: f64) -> Kept {
    match (low, high) {
        (_, high) if high <= most => Kept::Yes,
        (low, _) if low > most => Kept::No,
        _ => Kept::Open,
    }
}

/// A bound at one point.
pub struct Check<'a> {
    /// The bound.
    pub bound: &'static Bound,
    /// The interface's row.
    pub row: &'a Row,
    /// The ratio of its time to that of Regatta's own interface.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub ci95: [f64; 2],
    /// The verdict.
    pub kept: Kept,
}

/// Returns all bounds of which both sides were measured.
pub fn checks(results: &Results) -> Vec<Check<'_>> {
    let mut checks = Vec::new();
    for (operation, bound) in bounds() {
        for environment in bound.environments {
            for &tasks in bound.tasks {
                let sizes = bound.bytes.iter();
                let one = |&bytes| check(results, (operation, bound), environment, tasks, bytes);
                checks.extend(sizes.filter_map(one));
            }
        }
    }
    checks
}

fn check<'a>(
    results: &'a Results,
    (operation, bound): (&'static Operation, &'static Bound),
    environment: &str,
    tasks: u32,
    bytes: u64,
) -> Option<Check<'a>> {
    let find = |environment: &str, operation: &Operation| {
        results.rows.iter().find(|row| {
            (row.suite.as_str(), row.environment.as_str()) == (SUITE, environment)
                && (row.operation.as_str(), row.tasks, row.bytes) == (operation.name, tasks, bytes)
                && row.measured()
        })
    };
    let row = find(environment, operation)?;
    let own = find(OURS, bound.against.unwrap_or(operation))?;
    let ci95 = results.ratio_interval(row, own);
    Some(Check {
        bound,
        row,
        ratio: results.ratio(row, own),
        ci95,
        kept: judge(ci95, bound.most),
    })
}

/// Returns whether it is undecided that the bound at this point is kept, or `None` if there is no bound on these two.
pub fn is_open(ratio: &Ratio) -> Option<bool> {
    if ratio.suite != SUITE || ratio.environment != OURS {
        return None;
    }
    let operation = operations::find(&ratio.operation)?;
    let meant = |bound: &&Bound| {
        bound.against.is_none()
            && bound.environments.contains(&ratio.against.as_str())
            && bound.tasks.contains(&ratio.tasks)
            && bound.bytes.contains(&ratio.bytes)
    };
    let bound = operation.bounds.iter().find(meant)?;
    let [low, high] = ratio.ci95;
    Some(judge([1.0 / high, 1.0 / low], bound.most) == Kept::Open)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Verdict;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, tasks: u32, bytes: u64, us: f64) -> Row {
        Row {
            suite: SUITE.to_owned(),
            ..row(operation, environment, tasks, bytes, us)
        }
    }

    #[test]
    fn a_bound_is_kept_or_broken_by_the_whole_interval() {
        assert_eq!(judge([1.0, 1.15], 1.15), Kept::Yes);
        assert_eq!(judge([1.16, 1.2], 1.15), Kept::No);
        assert_eq!(judge([1.1, 1.2], 1.15), Kept::Open);
        assert_eq!(judge([f64::NAN; 2], 1.15), Kept::Open);
    }

    #[test]
    fn every_point_is_raced_once_and_so_is_what_it_is_held_against() {
        let places = places();
        let of = |operation: &str, tasks: u32| {
            let here = |place: &&Place| (place.operation.name, place.tasks) == (operation, tasks);
            let found: Vec<&Place> = places.iter().filter(here).collect();
            assert!(found.len() <= 1, "{found:?}");
            found
                .first()
                .map(|place| place.bytes.clone())
                .unwrap_or_default()
        };
        assert_eq!(of("one-to-one", 2), [8, 64 << 10, 4 << 20, 32 << 10]);
        assert_eq!(of("exchange", 2), [2048]);
        assert_eq!(of("global-sum", 32), [40, 256, 512, 1024, 8]);
        assert_eq!(of("barrier", 32), [0]);
    }

    #[test]
    fn vectors_are_held_against_messages_of_the_same_bytes() {
        let results = results(vec![
            in_suite("one-to-one", "regatta", 2, 32768, 2.0),
            in_suite("vector-send-recv", "regatta", 2, 32768, 9.0),
            in_suite("vector-send-recv", "regatta-express", 2, 32768, 2.5),
            in_suite("vector-send-recv", "regatta-nx", 2, 32768, 2.5),
        ]);
        let checks = checks(&results);
        assert_eq!(checks.len(), 1, "there is no bound on NX's");
        assert_eq!(checks[0].row.environment, "regatta-express");
        assert!((checks[0].ratio - 1.25).abs() < 1e-9);
        assert_eq!(checks[0].kept, Kept::Yes);
    }

    #[test]
    fn turns_go_on_until_the_bound_is_decided() {
        let ratio = |ci95, against: &str, operation: &str| Ratio {
            suite: SUITE.to_owned(),
            operation: operation.to_owned(),
            network: "local".to_owned(),
            tasks: 32,
            bytes: 0,
            environment: OURS.to_owned(),
            against: against.to_owned(),
            median: 0.9,
            ci95,
            rounds: 10,
            launches: 3,
            verdict: Verdict::Undecided,
            more_seconds: 1.0,
        };
        // The interfaces take 1.02 to 1.11 times as long, and 1.02 to 1.25 times.
        assert_eq!(
            is_open(&ratio([0.9, 0.98], "regatta-nx", "barrier")),
            Some(false)
        );
        assert_eq!(
            is_open(&ratio([0.8, 0.98], "regatta-nx", "barrier")),
            Some(true)
        );
        assert_eq!(is_open(&ratio([0.8, 0.98], "openmpi", "barrier")), None);
        assert_eq!(is_open(&ratio([0.8, 0.98], "regatta-nx", "ring")), None);
    }
}
