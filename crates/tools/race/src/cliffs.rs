//! The suite `cliffs`: finds operations of Regatta's MPI that take a multiple of the better peer's time.
//!
//! A point is a cliff if the whole interval of the ratio is above [`CLIFF_RATIO`]. While the interval contains that
//! value, the race continues with the point as long as it has time.

use std::fmt::Write as _;

use crate::portability::targets::{Kept, judge};
use crate::results::{Ratio, Results, Row};
use crate::suites::CLIFFS;
use crate::table::{align, best_peer, is_peer, quantity, size_of, times};

/// Ratio of two times above which a point is a cliff.
pub const CLIFF_RATIO: f64 = 2.0;

/// One point, compared with the better peer.
pub struct Check<'a> {
    /// Row of Regatta's environment.
    pub row: &'a Row,
    /// Row of the better peer.
    pub peer: &'a Row,
    /// Ratio of the times.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub ci95: [f64; 2],
    /// Whether the point is no cliff.
    pub kept: Kept,
}

/// Returns all points of the suite that both Regatta and a peer have, the largest ratio first.
pub fn checks<'a>(results: &'a Results) -> Vec<Check<'a>> {
    let ours = results.rows_of(results.ours());
    let ours = ours.filter(|row| row.suite == CLIFFS.name && row.measured());
    let check = |row: &'a Row| {
        let beside = results
            .rows
            .iter()
            .filter(|other| other.point() == row.point());
        let peer = best_peer(&beside.collect::<Vec<_>>())?;
        let ci95 = results.ratio_interval(row, peer);
        Some(Check {
            row,
            peer,
            ratio: results.ratio(row, peer),
            ci95,
            kept: judge(ci95, CLIFF_RATIO),
        })
    };
    let mut checks: Vec<Check<'_>> = ours.filter_map(check).collect();
    checks.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    checks
}

/// Returns the rows of Regatta that have no figure; their flags say why.
pub fn missing(results: &Results) -> Vec<&Row> {
    let ours = results.rows_of(results.ours());
    ours.filter(|row| row.suite == CLIFFS.name && !row.measured())
        .collect()
}

/// Returns the numbers of cliffs, of points that are no cliffs, and of undecided points.
pub fn count(checks: &[Check<'_>]) -> [usize; 3] {
    [Kept::No, Kept::Yes, Kept::Open]
        .map(|kept| checks.iter().filter(|check| check.kept == kept).count())
}

/// Returns the verdict in words.
pub fn verdict(kept: Kept) -> &'static str {
    match kept {
        Kept::Yes => "",
        Kept::No => "cliff",
        Kept::Open => "not decided",
    }
}

/// Returns whether it is undecided that this point is a cliff, or `None` if the ratio is of another suite.
pub fn is_open(ratio: &Ratio) -> Option<bool> {
    let held = ratio.suite == CLIFFS.name && is_peer(&ratio.against);
    held.then(|| judge(ratio.ci95, CLIFF_RATIO) == Kept::Open)
}

/// Returns the table for a terminal, which is empty for races of other suites.
pub fn render(results: &Results) -> String {
    let checks = checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let head = [
        "operation",
        "tasks",
        "size",
        "",
        "better peer",
        "",
        "ratio",
        "95 %",
        "",
    ];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    for check in &checks {
        let (row, peer) = (check.row, check.peer);
        cells.push(vec![
            row.operation.clone(),
            row.tasks.to_string(),
            size_of(&row.operation, row.bytes),
            quantity(row.metric, row.median),
            peer.environment.clone(),
            quantity(peer.metric, peer.median),
            times(check.ratio),
            check.ci95.map(times).join(" to "),
            verdict(check.kept).to_owned(),
        ]);
    }
    let [cliffs, none, open] = count(&checks);
    let mut text = format!(
        "\nCliffs: {} by the better peer; a cliff is a ratio whose whole interval is above {CLIFF_RATIO:.1}\n\n",
        results.ours()
    );
    text.push_str(&align(&cells));
    let _ = writeln!(
        text,
        "  {cliffs} cliffs, {none} points without a cliff, {open} not decided, {} without a figure of {}",
        missing(results).len(),
        results.ours()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Verdict;
    use crate::table::tests::{results, row};

    fn in_suite(operation: &str, environment: &str, us: f64) -> Row {
        Row {
            suite: CLIFFS.name.to_owned(),
            ..row(operation, environment, 2, 0, us)
        }
    }

    fn at(us: f64) -> Results {
        results(vec![
            in_suite("comm-dup", "regatta-mpi", us),
            in_suite("comm-dup", "openmpi", 5.0),
            in_suite("comm-dup", "mpich", 1.0),
        ])
    }

    /// Rows have intervals of 1 % around their medians, so the ratio's interval is 2 % wide on each side.
    #[test]
    fn a_cliff_is_above_twice_the_better_peer_with_its_whole_interval() {
        for (us, kept) in [(1.9, Kept::Yes), (2.01, Kept::Open), (2.1, Kept::No)] {
            let results = at(us);
            let checks = checks(&results);
            assert_eq!(checks.len(), 1);
            assert_eq!(checks[0].peer.environment, "mpich");
            assert!((checks[0].ratio - us).abs() < 1e-9);
            assert_eq!(checks[0].kept, kept, "{us}: {:?}", checks[0].ci95);
        }
    }

    #[test]
    fn the_table_has_the_worst_first_and_counts() {
        let mut all = at(3.0);
        all.rows.extend([
            in_suite("type-vector", "regatta-mpi", 8.0),
            in_suite("type-vector", "mpich", 1.0),
            in_suite("file-open", "regatta-mpi", 0.5),
            in_suite("file-open", "mpich", 1.0),
        ]);
        let mut failed = in_suite("iscan-free", "regatta-mpi", 0.0);
        failed.launches = 0;
        all.rows.push(failed);
        let text = render(&all);
        let place = |word: &str| text.find(word).expect(word);
        assert!(place("type-vector") < place("comm-dup") && place("comm-dup") < place("file-open"));
        assert!(
            text.contains("2 cliffs, 1 points without a cliff, 0 not decided, 1 without a figure"),
            "{text}"
        );
    }

    #[test]
    fn other_races_have_no_cliffs() {
        let other = results(vec![row("ring", "regatta", 2, 8, 0.1)]);
        assert_eq!(render(&other), "");
    }

    #[test]
    fn turns_go_on_while_the_interval_holds_the_bound() {
        let ratio = |suite: &str, against: &str, ci95| Ratio {
            suite: suite.to_owned(),
            operation: "comm-dup".to_owned(),
            network: "local".to_owned(),
            tasks: 2,
            bytes: 0,
            environment: "regatta-mpi".to_owned(),
            against: against.to_owned(),
            median: 2.0,
            ci95,
            rounds: 10,
            launches: 3,
            verdict: Verdict::Behind,
            more_seconds: 0.0,
        };
        let suite = CLIFFS.name;
        assert_eq!(is_open(&ratio(suite, "mpich", [1.9, 2.1])), Some(true));
        assert_eq!(is_open(&ratio(suite, "mpich", [1.1, 1.9])), Some(false));
        assert_eq!(is_open(&ratio("mpi", "mpich", [1.9, 2.1])), None);
        assert_eq!(
            is_open(&ratio(suite, "mpich-abi-default", [1.9, 2.1])),
            None
        );
    }
}
