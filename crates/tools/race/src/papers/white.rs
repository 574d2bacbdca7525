//! The suite `white-1994`: Table 6 of S. White, A. Alund and V. S. Sunderam, "Performance of the NAS Parallel
//! Benchmarks on PVM Based Networks" (RNR-94-008, 1994): the bandwidth of PVM's messages through the daemons and on the
//! direct route, and that of TCP.
//!
//! The paper's Fsend became PVM's direct route. A rate is the bytes of a message divided by its one-way time. TTCP's
//! rate is that of a stream.

use super::layout::{Layout, Part, number};
use crate::operations;
use crate::peers::{pvm, regatta_pvm, ttcp};
use crate::places::Place;
use crate::reference::{self, Point};
use crate::results::Results;
use crate::suites::WHITE_1994;

/// Name of the suite, and of the paper in the reference data.
const SUITE: &str = WHITE_1994.name;
/// The paper's sizes and its names for them. 1 kB is 1000 bytes.
const SIZES: [(u64, &str); 4] = [
    (1, "1 byte"),
    (100, "100 bytes"),
    (10_000, "10kB"),
    (1_000_000, "1MB"),
];
/// The paper's lines: their names, and their environments in the reference data.
const DAEMON: (&str, &str) = ("Daemon", "PVM-daemon");
const FSEND: (&str, &str) = ("Fsend", "PVM-fsend");
const TTCP: (&str, &str) = ("TTCP", "TTCP");
/// Operations of its lines.
const ECHO: &str = "one-to-one";
const STREAM: &str = "stream";

/// Returns both operations at the paper's sizes.
pub fn places() -> Vec<Place> {
    let bytes = SIZES.map(|(bytes, _)| bytes).to_vec();
    let named = [ECHO, STREAM].into_iter().filter_map(operations::find);
    let place = |operation| Place {
        operation,
        tasks: 2,
        bytes: bytes.clone(),
    };
    named.map(place).collect()
}

/// The rates of a line in kB/s, by size. `None` where there is no time.
type Rates = [Option<f64>; SIZES.len()];

fn rates(us: impl Fn(u64) -> Option<f64>) -> Rates {
    SIZES.map(|(bytes, _)| us(bytes).map(|us| bytes as f64 / us * 1e3))
}

/// Formats a rate as the paper does.
fn printed(rate: f64) -> String {
    format!("{rate:.2}")
}

/// The lines of one machine: the daemons' route, the direct one, and TCP.
struct Machine {
    title: String,
    lines: Vec<(&'static str, Rates)>,
}

impl Machine {
    /// Returns the rate of one line divided by that of another, at the largest size.
    fn ratio(&self, one: &str, other: &str) -> Option<f64> {
        let largest = |name: &str| {
            let line = self.lines.iter().find(|line| line.0 == name)?;
            line.1[SIZES.len() - 1]
        };
        Some(largest(one)? / largest(other)?)
    }
}

/// Returns the paper's machines.
fn then() -> Vec<Machine> {
    let points: Vec<Point> = reference::points()
        .into_iter()
        .filter(|point| point.paper == SUITE)
        .collect();
    let platforms =
        operations::distinct(points.iter().map(|point| (&point.platform, &point.network)));
    let machine = |(platform, network): (&String, &String)| {
        let us = |environment: &str, bytes: u64| {
            let here = |point: &&Point| {
                point.platform == *platform
                    && (point.environment.as_str(), point.bytes) == (environment, bytes)
            };
            points.iter().find(here).map(|point| point.us)
        };
        let line = |(name, environment)| (name, rates(|bytes| us(environment, bytes)));
        Machine {
            title: format!("{platform}, {network}"),
            lines: [DAEMON, FSEND, TTCP].map(line).to_vec(),
        }
    };
    platforms.into_iter().map(machine).collect()
}

/// Returns today's lines that were measured: PVM, Regatta as PVM, and TCP.
fn now(results: &Results) -> Vec<Machine> {
    let line = |(name, _): (&'static str, &str), environment: &str, operation: &str| {
        let rows = || results.rows_of(environment).filter(|row| row.measured());
        let us = |bytes| {
            let at = |row: &&crate::results::Row| {
                (row.suite.as_str(), row.operation.as_str()) == (SUITE, operation)
                    && (row.tasks, row.bytes) == (2, bytes)
            };
            rows().find(at).map(|row| row.median)
        };
        (name, rates(us))
    };
    let both = |title: &str, daemon, direct| Machine {
        title: title.to_owned(),
        lines: vec![line(DAEMON, daemon, ECHO), line(FSEND, direct, ECHO)],
    };
    let machines = [
        both("Today, PVM", pvm::DAEMON, pvm::NAME),
        both(
            "Today, Regatta as PVM",
            regatta_pvm::DAEMON,
            regatta_pvm::NAME,
        ),
        Machine {
            title: "Today, TCP".to_owned(),
            lines: vec![line(TTCP, ttcp::NAME, STREAM)],
        },
    ];
    let was_raced = |machine: &Machine| {
        let mut rates = machine.lines.iter().flat_map(|line| line.1);
        rates.any(|rate| rate.is_some())
    };
    machines.into_iter().filter(was_raced).collect()
}

/// Returns Table 6, or nothing if this suite was not raced.
pub fn layouts(results: &Results) -> Vec<Layout> {
    let (then, now) = (then(), now(results));
    if now.is_empty() {
        return Vec::new();
    }
    let answers = answers(&then, &now);
    let part = |machine: Machine, text: fn(f64) -> String| {
        let cells = |rates: Rates| rates.map(|rate| rate.map_or_else(|| "-".to_owned(), text));
        let lines = machine.lines.into_iter();
        Part {
            title: machine.title,
            lines: lines
                .map(|(name, rates)| (name.to_owned(), cells(rates).to_vec()))
                .collect(),
        }
    };
    let then = then.into_iter().map(|machine| part(machine, printed));
    let now = now.into_iter().map(|machine| part(machine, number));
    vec![Layout {
        paper: SUITE,
        number: "Table 6".to_owned(),
        title: "Table 6 of White, Alund and Sunderam (RNR-94-008, 1994): throughput, kB/s; Fsend is today's direct route".to_owned(),
        columns: SIZES.map(|(_, name)| name.to_owned()).to_vec(),
        parts: then.chain(now).collect(),
        answers,
    }]
}

fn answers(then: &[Machine], now: &[Machine]) -> Vec<String> {
    let ratios = |one: &str, other: &str| -> Vec<f64> {
        then.iter()
            .filter_map(|machine| machine.ratio(one, other))
            .collect()
    };
    let range = |ratios: &[f64]| {
        let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ratios.iter().copied().fold(0.0, f64::max);
        format!("{low:.1} to {high:.1}")
    };
    let [daemon, fsend] = [DAEMON.0, FSEND.0];
    let past = range(&ratios(fsend, daemon));
    now.iter()
        .filter_map(|machine| {
            let today = machine.ratio(fsend, daemon)?;
            Some(format!(
                "{}: the direct route has {today:.2} times the throughput of the daemons' at 1 MB; in 1994 {past} times.",
                machine.title
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Row;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, bytes: u64, us: f64) -> Row {
        Row {
            suite: SUITE.to_owned(),
            ..row(operation, environment, 2, bytes, us)
        }
    }

    #[test]
    fn the_printed_rates_stand_above_today_s() {
        let results = results(vec![
            in_suite(ECHO, pvm::DAEMON, 1_000_000, 2000.0),
            in_suite(ECHO, pvm::NAME, 1_000_000, 500.0),
            in_suite(ECHO, pvm::NAME, 1, 5.0),
            in_suite(STREAM, ttcp::NAME, 100, 2.0),
            in_suite(ECHO, ttcp::NAME, 100, 50.0),
        ]);
        let [layout] = &layouts(&results)[..] else {
            panic!("one table");
        };
        let line = |part: &str, name: &str| {
            let parts = layout
                .parts
                .iter()
                .filter(|one| one.title.starts_with(part));
            let mut lines = parts.flat_map(|one| &one.lines);
            lines
                .find(|line| line.0 == name)
                .expect("a line")
                .1
                .join(" ")
        };
        assert_eq!(line("Sun SS1+", "Daemon"), "0.06 12.88 263.41 358.48");
        assert_eq!(line("SGI R4000", "TTCP"), "2.15 500.40 9203.00 9624.20");
        assert_eq!(line("Today, PVM", "Fsend"), "200.00 - - 2000000");
        assert_eq!(line("Today, TCP", "TTCP"), "- 50000 - -");
        assert_eq!(
            layout.parts.len(),
            5,
            "three machines of then, two of today"
        );
        assert!(
            layout.answers[0].contains("4.00 times") && layout.answers[0].contains("2.8 to 19.8"),
            "{:?}",
            layout.answers
        );
    }

    #[test]
    fn a_race_of_other_suites_has_no_such_table() {
        assert!(layouts(&results(vec![row(ECHO, pvm::NAME, 2, 1, 1.0)])).is_empty());
    }
}
