//! Comparison of two races, point by point.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::results::{Metric, Results, Row};
use crate::stats::{self, Verdict};
use crate::table;

/// The change of one point between two races, or between two environments of one race.
#[derive(Debug, Clone)]
pub struct Difference<'a> {
    /// Row of the first race.
    pub a: &'a Row,
    /// Row of the second race.
    pub b: &'a Row,
    /// Verdict for `b` against `a`.
    pub verdict: Verdict,
    /// Time of `b` divided by the time of `a`.
    pub ratio: f64,
}

/// Returns the differences at all points that both races measured.
pub fn differences<'a>(a: &'a Results, b: &'a Results) -> Vec<Difference<'a>> {
    let key = |row: &'a Row| (row.environment.as_str(), row.point());
    let second: BTreeMap<_, _> = b
        .rows
        .iter()
        .filter(|row| row.measured())
        .map(|row| (key(row), row))
        .collect();
    let both = a
        .rows
        .iter()
        .filter(|row| row.measured())
        .filter_map(|a| Some((a, *second.get(&key(a))?)));
    both.map(|(a, b)| Difference {
        a,
        b,
        verdict: stats::verdict(b, a),
        ratio: stats::ratio(b, a),
    })
    .collect()
}

/// Returns the differences of environment `b` from environment `a` at the points of one race.
pub fn within<'a>(results: &'a Results, a: &str, b: &'a str) -> Vec<Difference<'a>> {
    let second: BTreeMap<_, _> = results
        .rows_of(b)
        .filter(|r| r.measured())
        .map(|r| (r.point(), r))
        .collect();
    let first: Vec<&Row> = results
        .rows
        .iter()
        .filter(|r| r.environment == a && r.measured())
        .collect();
    let both = first
        .into_iter()
        .filter_map(|a| Some((a, *second.get(&a.point())?)));
    both.map(|(a, b)| Difference {
        a,
        b,
        verdict: results.verdict(b, a),
        ratio: results.ratio(b, a),
    })
    .collect()
}

/// Returns the numbers of points at which the second row is faster, slower, and tied.
pub fn count(differences: &[Difference<'_>]) -> (usize, usize, usize) {
    let number = |verdict| differences.iter().filter(|d| d.verdict == verdict).count();
    (
        number(Verdict::Ahead),
        number(Verdict::Behind),
        number(Verdict::Tie),
    )
}

/// Returns a line for each point that differs, and the counts of all points.
pub fn render(differences: &[Difference<'_>], a: &str, b: &str) -> String {
    let mut text = String::new();
    for difference in differences.iter().filter(|d| d.verdict != Verdict::Tie) {
        let Difference { a, b, verdict, .. } = difference;
        let word = match verdict {
            Verdict::Ahead => "faster",
            Verdict::Behind => "slower",
            Verdict::Tie | Verdict::Undecided => "not decided",
        };
        let _ = writeln!(
            text,
            "{word:11}  {:16} {:18} {:3} tasks {:>7} bytes{}  {:>10} -> {:>10}  {}",
            b.environment,
            b.operation,
            b.tasks,
            table::size(b.bytes),
            match b.network.as_str() {
                "local" => String::new(),
                network => format!(", network {network}"),
            },
            table::quantity(a.metric, a.median),
            table::quantity(b.metric, b.median),
            table::times(difference.ratio),
        );
    }
    let (faster, slower, ties) = count(differences);
    let open = differences.len() - faster - slower - ties;
    let _ = writeln!(
        text,
        "{b} against {a}: {faster} points faster, {slower} slower, {ties} ties, {open} not decided"
    );
    text
}

/// Returns sentences about conditions that make the comparison unfair.
pub fn warnings(a: &Results, b: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    let (x, y) = (&a.machine, &b.machine);
    if (&x.cpu, x.cores) != (&y.cpu, y.cores) {
        warnings.push(format!(
            "different machines: {} x {}, and {} x {}",
            x.cores, x.cpu, y.cores, y.cpu
        ));
    }
    let drift = y.line_ns / x.line_ns;
    if x.line_ns > 0.0 && y.line_ns > 0.0 && (drift - 1.0).abs() > crate::collect::UNSTEADY {
        warnings.push(format!(
            "the machine itself changed: a cache line took {}, then {}; differences of that size come from the machine",
            nanoseconds(x.line_ns),
            nanoseconds(y.line_ns)
        ));
    }
    warnings
}

fn nanoseconds(ns: f64) -> String {
    table::quantity(Metric::Time, ns * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    #[test]
    fn a_race_against_itself_is_all_ties() {
        let race = results(
            (0..9)
                .map(|i| row("ring", "openmpi", 2, 1 << i, 0.1 * f64::from(i + 1)))
                .collect(),
        );
        let differences = differences(&race, &race);
        assert_eq!(count(&differences), (0, 0, 9));
        assert!(warnings(&race, &race).is_empty());
    }

    #[test]
    fn faster_slower_and_missing_points_are_told() {
        let a = results(vec![
            row("ring", "x", 2, 8, 1.0),
            row("ring", "x", 2, 64, 1.0),
            row("ring", "x", 2, 1, 1.0),
        ]);
        let b = results(vec![
            row("ring", "x", 2, 8, 0.5),
            row("ring", "x", 2, 64, 2.0),
        ]);
        let differences = differences(&a, &b);
        assert_eq!(count(&differences), (1, 1, 0));
        let text = render(&differences, "A", "B");
        assert!(
            text.contains("faster       x")
                && text.contains("0.50x")
                && text.contains("slower       x"),
            "{text}"
        );
    }

    #[test]
    fn huge_values_are_compared_in_numbers() {
        let mut a = results(vec![row("ring", "x", 2, 8, 1.0)]);
        let mut b = results(vec![row("ring", "x", 2, 8, 1e307)]);
        (a.machine.line_ns, b.machine.line_ns) = (1.0, 1e307);
        let text = render(&differences(&a, &b), "A", "B") + &warnings(&a, &b).join(" ");
        assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
        assert!(text.len() < 1000, "{text}");
    }

    #[test]
    fn another_machine_is_warned_of() {
        let a = results(vec![]);
        let mut b = results(vec![]);
        b.machine.cores = 64;
        assert_eq!(warnings(&a, &b).len(), 1);
    }
}
