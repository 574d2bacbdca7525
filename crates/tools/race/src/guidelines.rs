//! The suite `guidelines`: what a user of a library may expect without measuring, after "Self-consistent MPI
//! performance requirements" (Träff, Gropp and Thakur, IEEE TPDS 21, 2010), which PGMPITuneLib checks for MPI.
//!
//! No operation takes longer than its expression by others, no message longer than one of more bytes, no collective
//! longer than one of more tasks, and no call of Regatta's own interface longer than the same call of an interface over
//! it. A guideline is broken if the whole interval of the ratio is above [`MAX_GUIDELINE_RATIO`].
//!
//! Both sides of most guidelines are measured in one job. There the ratio is that of turns of the same launch
//! ([`Paired`]). Where environments do not take turns it is the ratio of two rows.

use std::fmt::Write as _;

use crate::operations::{self, Operation};
use crate::peers;
use crate::portability::targets::{Kept, judge};
use crate::results::{OURS, Paired, Ratio, Results, Row};
use crate::suites::GUIDELINES;
use crate::table::{align, size_of, times};

/// Largest ratio at which a guideline is kept.
pub const MAX_GUIDELINE_RATIO: f64 = 1.1;

/// The kinds of guidelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// An operation against its expression by others.
    Expression,
    /// A size against the next larger one.
    Bytes,
    /// A number of tasks against the next larger one.
    Tasks,
    /// Regatta's own interface against one over it.
    Interface,
}

/// A guideline at one point.
pub struct Check<'a> {
    /// Its kind.
    pub rule: Rule,
    /// The side that may not take longer.
    pub row: &'a Row,
    /// The side that `row` is compared with.
    pub by: &'a Row,
    /// Time of `row` divided by that of `by`.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub ci95: [f64; 2],
    /// Whether the guideline is kept.
    pub kept: Kept,
}

impl Check<'_> {
    /// Returns the guideline as text: `global-sum <= global-sum-by-reduce`.
    pub fn sentence(&self) -> String {
        let (row, by) = (self.row, self.by);
        match self.rule {
            Rule::Expression => format!("{} <= {}", row.operation, by.operation),
            Rule::Bytes => format!(
                "{} <= of {}",
                row.operation,
                size_of(&by.operation, by.bytes)
            ),
            Rule::Tasks => format!("{} <= of {} tasks", row.operation, by.tasks),
            Rule::Interface => format!("{} <= by {}", row.operation, by.environment),
        }
    }
}

/// Returns whether the operation is in this suite only as the expression of another.
fn is_expression(operation: &Operation) -> bool {
    !operation.expresses.is_empty()
        && operation
            .suites
            .iter()
            .all(|one| one.name == GUIDELINES.name)
}

/// Returns the points of `raced`, which are of the same job, that this point may not take longer than.
pub fn others<'a>(
    (name, bytes): (&str, u64),
    raced: &[(&'a str, u64)],
) -> Vec<(Rule, (&'a str, u64))> {
    let Some(operation) = operations::find(name) else {
        return Vec::new();
    };
    let expresses = |other: &str| {
        operations::find(other).is_some_and(|other| other.expresses.contains(&operation))
    };
    let same_size = |point: &(&str, u64)| match operation.unit {
        // An operation without a size is compared with the smallest message.
        0 => raced.iter().all(|one| one.0 != point.0 || one.1 >= point.1),
        _ => point.1 == bytes,
    };
    let expressed = raced
        .iter()
        .filter(|point| expresses(point.0) && same_size(point));
    let larger = raced
        .iter()
        .filter(|point| point.0 == name && point.1 > bytes);
    let larger = larger.min_by_key(|point| point.1);
    let larger = larger.filter(|_| !is_expression(operation));
    let expressed = expressed.map(|point| (Rule::Expression, *point));
    expressed
        .chain(larger.map(|point| (Rule::Bytes, *point)))
        .collect()
}

/// Returns all guidelines of which both sides were measured.
pub fn checks(results: &Results) -> Vec<Check<'_>> {
    let measured = |row: &&Row| row.suite == GUIDELINES.name && row.measured();
    let rows: Vec<&Row> = results.rows.iter().filter(measured).collect();
    let mut checks = Vec::new();
    for row in &rows {
        let alike = |other: &&&Row| other.environment == row.environment;
        let here: Vec<&Row> = rows.iter().filter(alike).copied().collect();
        let same_job: Vec<&Row> = here
            .iter()
            .filter(|one| one.tasks == row.tasks)
            .copied()
            .collect();
        let raced: Vec<(&str, u64)> = same_job
            .iter()
            .map(|one| (one.operation.as_str(), one.bytes))
            .collect();
        for (rule, point) in others((&row.operation, row.bytes), &raced) {
            let by = same_job
                .iter()
                .find(|one| (one.operation.as_str(), one.bytes) == point);
            checks.extend(by.map(|by| check(results, rule, row, by)));
        }
        let crowd = |one: &&&Row| {
            (&one.operation, one.bytes) == (&row.operation, row.bytes) && one.tasks > row.tasks
        };
        let more = here.iter().filter(crowd).min_by_key(|one| one.tasks);
        let is_expression = operations::find(&row.operation).is_none_or(is_expression);
        let more = more.filter(|_| !is_expression);
        checks.extend(more.map(|by| check(results, Rule::Tasks, row, by)));
        if row.environment == OURS {
            let over = rows
                .iter()
                .filter(|one| one.point() == row.point() && is_interface(&one.environment));
            checks.extend(over.map(|by| check(results, Rule::Interface, row, by)));
        }
    }
    checks
}

fn is_interface(environment: &str) -> bool {
    environment != OURS && peers::look(environment).is_some_and(|look| look.interface)
}

fn check<'a>(results: &Results, rule: Rule, row: &'a Row, by: &'a Row) -> Check<'a> {
    let paired = results.paired.iter().find(|one| {
        rule != Rule::Interface
            && one.environment == row.environment
            && (one.tasks, by.tasks) == (row.tasks, row.tasks)
            && (one.operation.as_str(), one.bytes) == (row.operation.as_str(), row.bytes)
            && (one.by.as_str(), one.by_bytes) == (by.operation.as_str(), by.bytes)
    });
    let (ratio, ci95) = match paired {
        Some(paired) => (paired.median, paired.ci95),
        None => (results.ratio(row, by), results.ratio_interval(row, by)),
    };
    Check {
        rule,
        row,
        by,
        ratio,
        ci95,
        kept: judge(ci95, MAX_GUIDELINE_RATIO),
    }
}

/// Returns whether it is undecided that a ratio within one environment keeps its guideline.
pub fn is_paired_open(paired: &Paired) -> bool {
    judge(paired.ci95, MAX_GUIDELINE_RATIO) == Kept::Open
}

/// Returns whether it is undecided that Regatta's own interface keeps its guideline against an interface over it, or
/// `None` if the ratio is of another suite.
pub fn is_open(ratio: &Ratio) -> Option<bool> {
    let held = ratio.environment == OURS && is_interface(&ratio.against);
    (ratio.suite == GUIDELINES.name)
        .then(|| held && judge(ratio.ci95, MAX_GUIDELINE_RATIO) == Kept::Open)
}

/// Returns for each environment the numbers of guidelines that are broken, kept, and undecided.
pub fn counts<'a>(checks: &[Check<'a>]) -> Vec<(&'a str, [usize; 3])> {
    let names = operations::distinct(checks.iter().map(|one| one.row.environment.as_str()));
    let count = |name: &str, kept| {
        let here = checks
            .iter()
            .filter(|one| one.row.environment == name && one.kept == kept);
        here.count()
    };
    let of = |name| {
        (
            name,
            [Kept::No, Kept::Yes, Kept::Open].map(|kept| count(name, kept)),
        )
    };
    names.into_iter().map(of).collect()
}

/// Returns the broken guidelines, by environment, the largest ratio first.
pub fn broken(results: &Results) -> Vec<Check<'_>> {
    let mut broken = checks(results);
    broken.retain(|one| one.kept == Kept::No);
    let place = |one: &Check<'_>| {
        let names = results.environments.iter();
        names
            .clone()
            .position(|name| name.name == one.row.environment)
    };
    broken.sort_by(|a, b| place(a).cmp(&place(b)).then(b.ratio.total_cmp(&a.ratio)));
    broken
}

/// Returns the tables for a terminal, which are empty for races of other suites.
pub fn render(results: &Results) -> String {
    let checks = checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nGuidelines: no operation takes more than {MAX_GUIDELINE_RATIO:.1} times as long as its expression by other operations; one is broken if the whole interval is above that\n\n"
    );
    let head = ["environment", "broken", "kept", "not decided"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for (name, numbers) in counts(&checks) {
        let numbers = numbers.iter().map(usize::to_string);
        cells.push(std::iter::once(name.to_owned()).chain(numbers).collect());
    }
    text.push_str(&align(&cells));
    let head = ["environment", "guideline", "tasks", "size", "ratio", "95 %"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for one in broken(results) {
        cells.push(vec![
            one.row.environment.clone(),
            one.sentence(),
            one.row.tasks.to_string(),
            size_of(&one.row.operation, one.row.bytes),
            times(one.ratio),
            one.ci95.map(times).join(" to "),
        ]);
    }
    if cells.len() > 1 {
        let _ = writeln!(text, "\n{}", align(&cells).trim_end_matches('\n'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Verdict;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, (tasks, bytes): (u32, u64), us: f64) -> Row {
        Row {
            suite: GUIDELINES.name.to_owned(),
            ..row(operation, environment, tasks, bytes, us)
        }
    }

    fn sentences(results: &Results) -> Vec<(String, Kept)> {
        let each = checks(results).into_iter();
        each.map(|one| (one.sentence(), one.kept)).collect()
    }

    /// Rows have intervals of 1 % around their medians, so a ratio's interval is 2 % wide on each side.
    #[test]
    fn a_guideline_is_broken_when_the_whole_interval_is_above_the_bound() {
        for (us, kept) in [
            (1.05, Kept::Yes),
            (1.1, Kept::Open),
            (1.13, Kept::No),
            (0.5, Kept::Yes),
        ] {
            let results = results(vec![
                in_suite("global-sum", "mpich", (2, 1024), us),
                in_suite("global-sum-by-reduce", "mpich", (2, 1024), 1.0),
                in_suite("global-sum-by-reduce", "openmpi", (2, 1024), 0.1),
                in_suite("global-sum-by-reduce", "mpich", (4, 1024), 0.1),
            ]);
            let expected = [("global-sum <= global-sum-by-reduce".to_owned(), kept)];
            assert_eq!(sentences(&results), expected, "{us}");
        }
    }

    #[test]
    fn sizes_tasks_and_interfaces_are_held_against_the_next() {
        let results = results(vec![
            in_suite("broadcast", "regatta", (2, 8), 2.0),
            in_suite("broadcast", "regatta", (2, 1024), 1.0),
            in_suite("broadcast", "regatta", (2, 16384), 4.0),
            in_suite("broadcast", "regatta", (4, 8), 1.0),
            in_suite("broadcast", "regatta-nx", (2, 8), 1.0),
            in_suite("broadcast", "openmpi", (2, 8), 1.0),
            // Nothing is compared with an expression itself.
            in_suite("broadcast-started", "openmpi", (2, 64), 9.0),
            in_suite("broadcast-started", "openmpi", (2, 128), 1.0),
        ]);
        let expected = [
            ("broadcast <= of 1 Ki", Kept::No),
            ("broadcast <= of 4 tasks", Kept::No),
            ("broadcast <= by regatta-nx", Kept::No),
            ("broadcast <= of 16 Ki", Kept::Yes),
        ];
        let found = sentences(&results);
        let found: Vec<(&str, Kept)> = found.iter().map(|one| (one.0.as_str(), one.1)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_has_no_size_is_held_against_the_smallest() {
        let raced = [
            ("barrier", 0),
            ("global-sum", 8),
            ("global-sum", 1024),
            ("barrier-started", 0),
        ];
        let found = others(("barrier", 0), &raced);
        assert_eq!(
            found,
            [
                (Rule::Expression, ("global-sum", 8)),
                (Rule::Expression, ("barrier-started", 0))
            ]
        );
    }

    #[test]
    fn turns_of_one_launch_count_before_rows() {
        let mut results = results(vec![
            in_suite("global-sum", "mpich", (2, 1024), 1.0),
            in_suite("global-sum-by-reduce", "mpich", (2, 1024), 1.0),
        ]);
        let paired = Paired {
            environment: "mpich".to_owned(),
            tasks: 2,
            operation: "global-sum".to_owned(),
            bytes: 1024,
            by: "global-sum-by-reduce".to_owned(),
            by_bytes: 1024,
            median: 1.3,
            ci95: [1.2, 1.4],
            rounds: 12,
            launches: 3,
        };
        assert!(!is_paired_open(&paired));
        results.paired = vec![paired];
        let text = render(&results);
        assert!(
            text.contains("1.30x") && text.contains("1.20x to 1.40x"),
            "{text}"
        );
        assert_eq!(counts(&checks(&results)), [("mpich", [1, 0, 0])]);
        assert_eq!(broken(&results).len(), 1);
    }

    #[test]
    fn turns_go_on_for_our_own_interface_against_those_over_it() {
        let ratio = |against: &str, ci95| Ratio {
            suite: GUIDELINES.name.to_owned(),
            operation: "broadcast".to_owned(),
            network: "local".to_owned(),
            tasks: 2,
            bytes: 8,
            environment: OURS.to_owned(),
            against: against.to_owned(),
            median: 1.1,
            ci95,
            rounds: 10,
            launches: 3,
            verdict: Verdict::Behind,
            more_seconds: 0.0,
        };
        assert_eq!(is_open(&ratio("regatta-nx", [1.0, 1.2])), Some(true));
        assert_eq!(is_open(&ratio("regatta-nx", [1.0, 1.05])), Some(false));
        assert_eq!(is_open(&ratio("mpich", [1.0, 1.2])), Some(false));
        let other = Ratio {
            suite: "primitives".to_owned(),
            ..ratio("regatta-nx", [1.0, 1.2])
        };
        assert_eq!(is_open(&other), None);
        assert_eq!(
            render(&results(vec![row("ring", "regatta", 2, 8, 0.1)])),
            ""
        );
    }

    /// Every expression is one of an operation of the suite, in the same job, at sizes that both have.
    #[test]
    fn both_sides_of_each_guideline_are_raced() {
        for expression in operations::of(&GUIDELINES) {
            for expressed in expression.expresses {
                assert!(
                    expressed.is_in(&GUIDELINES),
                    "{expression:?} of {expressed:?}"
                );
            }
        }
    }
}
