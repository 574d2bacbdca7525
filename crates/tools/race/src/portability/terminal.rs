//! The results of these suites as tables for a terminal.

use std::fmt::Write as _;

use super::{ahmad_wu, targets};
use crate::results::Results;
use crate::stats::Verdict;
use crate::table::{align, quantity, size, times};
use targets::Kept;

/// The mark of a ratio whose verdict is undecided.
const NOT_DECIDED: &str = "?";

/// Returns the tables of the suites that were raced.
pub fn render(results: &Results) -> String {
    question(results) + &bounds(results)
}

/// Returns the table of the paper's ratios and today's.
fn question(results: &Results) -> String {
    let lines = ahmad_wu::lines(results);
    if lines.is_empty() {
        return String::new();
    }
    let mut head: Vec<String> = ["operation", "tasks", "bytes", "regatta", "then"]
        .map(str::to_owned)
        .to_vec();
    head.extend(ahmad_wu::interfaces(results).into_iter().map(str::to_owned));
    let mut cells = vec![head];
    for line in &lines {
        let own = line.own;
        let mut row = vec![
            line.operation.to_owned(),
            own.tasks.to_string(),
            size(own.bytes),
            quantity(own.metric, own.median),
            line.then.map_or_else(|| "-".to_owned(), times),
        ];
        row.extend(line.now.iter().map(|cost| match cost {
            Some(cost) if cost.verdict == Verdict::Undecided => times(cost.ratio) + NOT_DECIDED,
            Some(cost) => times(cost.ratio),
            None => "-".to_owned(),
        }));
        cells.push(row);
    }
    let mut text = String::from(
        "\nCost of a portable interface: its time divided by that of the machine's own interface\n\
         Then: Express against NX on an iPSC/2 (Ahmad and Wu, CRPC-TR91147, 1991). Now: each interface against regatta's own C interface.\n\
         Tasks of host-... are nodes; the host is one more.\n\n",
    );
    text.push_str(&align(&cells));
    let _ = writeln!(
        text,
        "  {NOT_DECIDED}: the interval of the ratio includes 1"
    );
    text
}

/// Returns the table of bounds with their verdicts.
fn bounds(results: &Results) -> String {
    let checks = targets::checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let head = [
        "operation",
        "tasks",
        "bytes",
        "interface",
        "ratio",
        "95 %",
        "at most",
        "",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for check in &checks {
        let against = check.bound.against;
        cells.push(vec![
            check.row.operation.clone(),
            check.row.tasks.to_string(),
            size(check.row.bytes),
            check.row.environment.clone(),
            times(check.ratio),
            check.ci95.map(times).join(" to "),
            times(check.bound.most),
            verdict(check.kept).to_owned()
                + &against.map_or(String::new(), |other| format!(", against {}", other.name)),
        ]);
    }
    let count = |kept| checks.iter().filter(|check| check.kept == kept).count();
    let mut text = String::from(
        "\nBounds of the interfaces: their time divided by that of regatta's own C interface\n\n",
    );
    text.push_str(&align(&cells));
    let _ = writeln!(
        text,
        "  {} kept, {} broken, {} not decided",
        count(Kept::Yes),
        count(Kept::No),
        count(Kept::Open)
    );
    text
}

/// Returns the verdict in words.
pub fn verdict(kept: Kept) -> &'static str {
    match kept {
        Kept::Yes => "kept",
        Kept::No => "broken",
        Kept::Open => "not decided",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Row;
    use crate::suites::{AHMAD_WU_1991, INTERFACES};
    use crate::table::tests::{results, row};

    fn of_suite(suite: &str, environment: &str, bytes: u64, us: f64) -> Row {
        Row {
            suite: suite.to_owned(),
            ..row("one-to-one", environment, 2, bytes, us)
        }
    }

    #[test]
    fn the_question_has_a_line_for_each_point() {
        let text = render(&results(vec![
            of_suite(AHMAD_WU_1991.name, "regatta", 40, 0.1),
            of_suite(AHMAD_WU_1991.name, "regatta-nx", 40, 0.11),
            of_suite(AHMAD_WU_1991.name, "regatta-express", 40, 0.1),
        ]));
        let line = text
            .lines()
            .find(|line| line.contains("one-to-one"))
            .unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = [
            "one-to-one",
            "2",
            "40",
            "100",
            "ns",
            "1.64x",
            "1.10x",
            "1.00x",
        ];
        assert_eq!(words, expected, "{text}");
        assert!(!text.contains("at most"));
    }

    #[test]
    fn bounds_say_whether_they_were_kept() {
        let text = render(&results(vec![
            of_suite(INTERFACES.name, "regatta", 8, 0.1),
            of_suite(INTERFACES.name, "regatta-nx", 8, 0.11),
            of_suite(INTERFACES.name, "regatta-express", 8, 0.13),
        ]));
        assert!(text.contains("1 kept, 1 broken, 0 not decided"), "{text}");
        assert!(!text.contains("Then:"));
    }

    #[test]
    fn other_races_have_no_such_tables() {
        assert_eq!(
            render(&results(vec![row("ring", "regatta", 2, 8, 0.1)])),
            ""
        );
    }
}
