//! The suite `ahmad-wu-1991`: the operations, numbers of processors and sizes of I. Ahmad and M.-Y. Wu, "Express versus
//! iPSC/2 Primitives" (CRPC-TR91147, 1991), and the question of that paper: how much longer does a portable interface
//! take than the machine's own?
//!
//! The paper's answer is the ratio of its times for Express and for the iPSC/2's own interface NX, both from
//! `reference/ahmad-wu-1991.csv`.

use crate::operations::{self, Operation};
use crate::peers;
use crate::reference::{self, Point};
use crate::results::{self, Results, Row};
use crate::stats::Verdict;
use crate::suites::AHMAD_WU_1991;

/// Name of the suite, and of the paper in the reference data.
const SUITE: &str = AHMAD_WU_1991.name;
/// The paper's name for its portable interface.
const PORTABLE: &str = "Express";
/// The paper's name for the machine's own interface.
pub const OWN: &str = "iPSC2";
/// Name of Regatta's own interface, and prefix of the names of the interfaces over it.
const OURS: &str = "regatta";
const OVER: &str = "regatta-";

fn points() -> Vec<Point> {
    reference::points_of(SUITE)
}

/// The time of an interface compared with that of Regatta's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Ratio of the times.
    pub ratio: f64,
    /// Verdict on whether the interface is slower than Regatta's own.
    pub verdict: Verdict,
}

/// One point: the paper's ratio and today's ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The operation of the interfaces over Regatta's own.
    pub operation: &'a str,
    /// The row of Regatta's own interface. If that has no such operation, it is the row of the operation in
    /// `Operation::beside`.
    pub own: &'a Row,
    /// The time of Express divided by that of NX on the iPSC/2, where the paper's copy is legible.
    pub then: Option<f64>,
    /// The cost of each interface, in the order of [`interfaces`].
    pub now: Vec<Option<Cost>>,
}

/// Returns the interfaces over Regatta's own that took part in this suite.
pub fn interfaces(results: &Results) -> Vec<&str> {
    let took_part = |name: &&str| results.rows_of(name).any(|row| row.suite == SUITE);
    let names = results.environments.iter().map(|one| one.name.as_str());
    names
        .filter(|name| {
            name.starts_with(OVER)
                && !name.ends_with(peers::AA_SUFFIX)
                && !peers::is_between_hosts(name)
        })
        .filter(took_part)
        .collect()
}

/// Returns all points at which Regatta's own interface was measured, in the order of the rows.
pub fn lines(results: &Results) -> Vec<Line<'_>> {
    let (points, interfaces) = (points(), interfaces(results));
    let line = |own, operation| Line {
        operation,
        own,
        then: then(&points, own),
        now: interfaces
            .iter()
            .map(|name| cost(results, own, operation, name))
            .collect(),
    };
    let own = results.rows_of(OURS);
    let own = own.filter(|own| own.suite == SUITE && own.measured());
    let mut lines = Vec::new();
    for own in own {
        lines.push(line(own, own.operation.as_str()));
        let others = beside(&own.operation).map(|operation| line(own, operation.name));
        lines.extend(others.filter(|line| line.now.iter().any(Option::is_some)));
    }
    lines
}

/// Returns the operations of the suite that have this operation as `beside`.
fn beside(name: &str) -> impl Iterator<Item = &'static Operation> {
    operations::of(&AHMAD_WU_1991)
        .filter(move |one| one.beside.is_some_and(|other| other.name == name))
}

fn then(points: &[Point], own: &Row) -> Option<f64> {
    let of = |environment: &str| {
        let here = |point: &&Point| {
            point.operation == own.operation
                && (point.processors, point.bytes) == (own.tasks, own.bytes)
                && point.environment == environment
        };
        points.iter().find(here).map(|point| point.us)
    };
    Some(of(PORTABLE)? / of(OWN)?)
}

fn cost(results: &Results, own: &Row, operation: &str, name: &str) -> Option<Cost> {
    let point = results::Point {
        operation,
        ..own.point()
    };
    let same = |row: &&Row| row.point() == point && row.measured();
    let row = results.rows_of(name).find(same)?;
    Some(Cost {
        ratio: results.ratio(row, own),
        verdict: results.verdict(row, own),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::places;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, bytes: u64, us: f64) -> Row {
        Row {
            suite: SUITE.to_owned(),
            ..row(operation, environment, 2, bytes, us)
        }
    }

    #[test]
    fn the_paper_s_tables_are_all_there() {
        let places = places::of_messages(&AHMAD_WU_1991);
        let of = |operation: &str| -> Vec<(u32, usize)> {
            let here = places
                .iter()
                .filter(|place| place.operation.name == operation);
            here.map(|place| (place.tasks, place.bytes.len())).collect()
        };
        assert_eq!(of("host-node-send"), [(1, 8)]);
        assert_eq!(of("one-to-one"), [(2, 8)]);
        assert_eq!(of("host-broadcast"), [(4, 6), (8, 6), (16, 6), (32, 6)]);
        assert_eq!(of("global-product"), [(4, 4), (8, 4), (16, 4), (32, 4)]);
        assert_eq!(of("vector-exchange"), [(2, 5)]);
        let named: BTreeSet<String> = points().into_iter().map(|point| point.operation).collect();
        assert_eq!(of("one-to-one-send"), [(2, 8)]);
        assert_eq!(of("exchange-plain"), of("exchange"));
        let listed = operations::of(&AHMAD_WU_1991).map(|one| one.in_papers().to_owned());
        let listed: BTreeSet<String> = listed.collect();
        assert_eq!(named, listed);
    }

    /// For 10 words of 4 bytes Express took 0.720 ms and NX 0.44 ms. For 512 words in vectors they took 1958 ms and
    /// 8.85 ms.
    #[test]
    fn ratios_stand_beside_those_of_then() {
        let results = results(vec![
            in_suite("one-to-one", "regatta", 40, 0.1),
            in_suite("one-to-one", "regatta-nx", 40, 0.11),
            in_suite("one-to-one", "regatta-trusted", 40, 0.1),
            in_suite("one-to-one", "openmpi", 40, 0.2),
            in_suite("vector-exchange", "regatta", 2048, 1.0),
            in_suite("one-to-one", "regatta", 41, 0.1),
        ]);
        assert_eq!(interfaces(&results), ["regatta-nx"]);
        let lines = lines(&results);
        let then: Vec<f64> = lines.iter().filter_map(|line| line.then).collect();
        assert!((then[0] - 0.720 / 0.44).abs() < 1e-6, "{then:?}");
        assert!(then[1] > 221.0 && then[1] < 222.0, "{then:?}");
        assert_eq!(
            (lines.len(), then.len()),
            (3, 2),
            "41 bytes are not the paper's"
        );
        let cost = lines[0].now[0].expect("it was measured");
        assert!((cost.ratio - 1.1).abs() < 1e-9);
        assert_eq!(cost.verdict, Verdict::Behind);
        assert_eq!(lines[1].now, [None]);
    }

    /// Regatta's own interface has no exchange of that kind, so its usual exchange is compared.
    #[test]
    fn an_exchange_by_a_send_and_a_receive_is_held_against_our_own_exchange() {
        let results = results(vec![
            in_suite("exchange", "regatta", 40, 0.2),
            in_suite("exchange", "regatta-nx", 40, 0.2),
            in_suite("exchange-plain", "regatta-nx", 40, 0.3),
        ]);
        let lines = lines(&results);
        let plain = &lines[1];
        assert_eq!((lines.len(), plain.operation), (2, "exchange-plain"));
        assert!(plain.now[0].is_some_and(|cost| (cost.ratio - 1.5).abs() < 1e-9));
    }

    #[test]
    fn rows_of_other_suites_are_not_of_the_paper() {
        let results = results(vec![row("one-to-one", "regatta", 2, 40, 0.1)]);
        assert!(lines(&results).is_empty() && interfaces(&results).is_empty());
    }
}
