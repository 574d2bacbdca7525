//! The results of a race as a table for a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::cliffs;
use crate::collect::{CANNOT, INTERRUPTED};
use crate::guidelines;
use crate::loggp;
use crate::operations;
use crate::papers;
use crate::peers;
use crate::portability;
use crate::results::{Metric, OURS, Point, Results, Row};
use crate::stats::{self, Verdict};

/// Suffixes of the names of environments with default settings.
const AS_THEY_COME: [&str; 2] = ["-default", "-daemon"];

/// Formats a time, rate or size with three digits and a readable unit.
pub fn quantity(metric: Metric, value: f64) -> String {
    match metric {
        // In nanoseconds a huge time would overflow.
        Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting if value < 1.0 => {
            scaled(value * 1e3, &[(1e3, "ns"), (1e3, "us")])
        }
        Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting => {
            scaled(value, &[(1e3, "us"), (1e3, "ms"), (1e3, "s")])
        }
        Metric::Rate => scaled(
            value,
            &[(1e3, "/s"), (1e3, "k/s"), (1e3, "M/s"), (1e3, "G/s")],
        ),
        Metric::Resident | Metric::Share => {
            scaled(value, &[(1024.0, "KiB"), (1024.0, "MiB"), (1024.0, "GiB")])
        }
        Metric::Cpu => scaled(value, &[(1e3, "%")]),
        Metric::Volume => scaled(value, &[(1e3, "B"), (1e3, "kB"), (1e3, "MB"), (1e3, "GB")]),
        Metric::Messages => number(value, 0),
    }
}

/// Smallest number that is shown with an exponent.
const MIN_WITH_EXPONENT: f64 = 1e9;

/// Formats a number with this many decimals. Large numbers have an exponent, and numbers that are not finite are
/// `unknown`.
fn number(value: f64, digits: usize) -> String {
    match value {
        value if !value.is_finite() => "unknown".to_owned(),
        value if value.abs() >= MIN_WITH_EXPONENT => format!("{value:.2e}"),
        value => format!("{value:.digits$}"),
    }
}

fn scaled(mut value: f64, units: &[(f64, &str)]) -> String {
    let mut unit = units[0].1;
    for pair in units.windows(2) {
        if value < pair[0].0 {
            break;
        }
        value /= pair[0].0;
        unit = pair[1].1;
    }
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{} {unit}", number(value, digits))
}

/// Formats a size for tables: `8`, `64 Ki`, `16 Mi`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => bytes.to_string(),
        1024..1048576 if bytes.is_multiple_of(1024) => format!("{} Ki", bytes >> 10),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} Mi", bytes >> 20),
        _ => bytes.to_string(),
    }
}

/// Formats the size of an operation for tables.
pub fn size_of(operation: &str, bytes: u64) -> String {
    operations::size(operation, bytes).unwrap_or_else(|| size(bytes))
}

/// Returns whether this environment is a rival of Regatta. Environments with default settings are not, since they have
/// a tuned counterpart.
pub fn is_peer(name: &str) -> bool {
    let as_it_comes = AS_THEY_COME.iter().any(|ending| name.ends_with(ending));
    peers::is_rival(name) && !name.starts_with(OURS) && !as_it_comes
}

/// Returns the best peer's row of a point.
pub fn best_peer<'a>(rows: &[&'a Row]) -> Option<&'a Row> {
    let peers = rows
        .iter()
        .copied()
        .filter(|row| row.measured() && is_peer(&row.environment));
    peers.min_by(|a, b| stats::ratio(a, b).total_cmp(&1.0))
}

/// Returns the whole table.
pub fn render(results: &Results) -> String {
    let mut points: Vec<Point<'_>> = Vec::new();
    let mut seen = BTreeSet::new();
    for row in &results.rows {
        if seen.insert(row.point()) {
            points.push(row.point());
        }
    }
    let mut text = String::new();
    let mut head = None;
    for chunk in points.chunk_by(|a, b| heading(a) == heading(b)) {
        if head != Some(heading(&chunk[0])) {
            head = Some(heading(&chunk[0]));
            let _ = writeln!(text, "\n{}", title(&chunk[0]));
        }
        text.push_str(&block(results, chunk));
    }
    text.push_str(&portability::terminal::render(results));
    text.push_str(&cliffs::render(results));
    text.push_str(&guidelines::render(results));
    text.push_str(&papers::text(results));
    text.push_str(&loggp::render(results));
    text.push_str(&foot(results));
    text
}

fn heading<'a>(point: &Point<'a>) -> (&'a str, &'a str, &'a str, Metric, u32) {
    let Point {
        suite,
        operation,
        network,
        metric,
        tasks,
        ..
    } = *point;
    (suite, operation, network, metric, tasks)
}

fn title(point: &Point<'_>) -> String {
    let what = match point.metric {
        Metric::OneWay => "one way",
        Metric::Time => "time",
        Metric::Communication => "time of it in communications",
        Metric::Volume => "bytes given to others",
        Metric::Messages => "messages",
        Metric::Waiting => "longest time of a task in calls that wait",
        Metric::Rate => "messages per second",
        Metric::Resident => "resident memory per task",
        Metric::Share => "proportional share of memory per task",
        Metric::Cpu => "processor time of a blocked task",
    };
    let network = match point.network {
        "local" => String::new(),
        network => format!(", network {network}"),
    };
    let tasks = if point.tasks == 1 { "task" } else { "tasks" };
    format!(
        "{}, {} {tasks}{network}, {what}",
        point.operation, point.tasks
    )
}

/// Returns the lines of one operation: a column per environment, with ratios in brackets.
fn block(results: &Results, points: &[Point<'_>]) -> String {
    let mut lines: Vec<Vec<String>> = Vec::new();
    let columns: Vec<&str> = results
        .environments
        .iter()
        .map(|e| e.name.as_str())
        .collect();
    let columns: Vec<&str> = columns
        .into_iter()
        .filter(|name| {
            points.iter().any(|p| {
                results
                    .rows
                    .iter()
                    .any(|r| r.point() == *p && r.environment == *name)
            })
        })
        .collect();
    let operation = points.first().map_or("", |point| point.operation);
    let mut header = vec![operations::quantity(operation).to_owned()];
    header.extend(columns.iter().map(|name| (*name).to_owned()));
    let own = results.ours();
    let ours = columns.contains(&own);
    if ours {
        header.push(format!("{own}, against the best peer"));
    }
    lines.push(header);
    for point in points {
        let rows: Vec<&Row> = results
            .rows
            .iter()
            .filter(|row| row.point() == *point)
            .collect();
        let mine = rows
            .iter()
            .copied()
            .find(|row| row.environment == own && row.measured());
        let mut line = vec![size_of(point.operation, point.bytes)];
        for name in &columns {
            let row = rows.iter().copied().find(|row| row.environment == *name);
            line.push(row.map_or_else(|| "-".to_owned(), |row| cell(results, row, mine)));
        }
        if ours {
            line.push(summary(results, mine, best_peer(&rows)));
        }
        lines.push(line);
    }
    align(&lines)
}

fn cell(results: &Results, row: &Row, mine: Option<&Row>) -> String {
    if !row.measured() {
        let no_failure = |flag: &String| flag == INTERRUPTED || flag.starts_with(CANNOT);
        let failed = !row.flags.iter().any(no_failure);
        return if failed { "failed" } else { "-" }.to_owned();
    }
    let value = quantity(row.metric, row.median);
    let noted = row
        .flags
        .iter()
        .any(|flag| flag == "unsteady-machine" || flag.contains("launches:"));
    let mark = if noted { "*" } else { "" };
    match mine {
        Some(mine) if mine.environment != row.environment => {
            format!("{value}{mark} ({})", times(results.ratio(mine, row)))
        }
        _ => format!("{value}{mark}"),
    }
}

fn summary(results: &Results, mine: Option<&Row>, best: Option<&Row>) -> String {
    let (Some(mine), Some(best)) = (mine, best) else {
        return "-".to_owned();
    };
    let ratio = times(results.ratio(mine, best));
    match results.verdict(mine, best) {
        Verdict::Undecided => format!("not decided ({ratio} that of {})", best.environment),
        Verdict::Tie => format!("tie with {} ({ratio})", best.environment),
        Verdict::Ahead => format!("{ratio} that of {}", best.environment),
        Verdict::Behind => format!("{ratio} that of {}, behind", best.environment),
    }
}

/// Formats a ratio with as many digits as matter.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "-".to_owned(),
        r if r >= 10.0 => number(r, 0) + "x",
        r if r >= 0.1 => format!("{r:.2}x"),
        r if r >= 0.01 => format!("{r:.3}x"),
        r => format!("{r:.4}x"),
    }
}

pub(crate) fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|l| l.get(column))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:>width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}

fn foot(results: &Results) -> String {
    let mut text = String::from(
        "\nIn brackets: time of regatta divided by that environment's; below 1 regatta is faster (for rates: more).\n",
    );
    if results.rows.iter().any(|row| !row.flags.is_empty()) {
        text.push_str("*: some launches failed, or the machine changed during the race; see the flags in results.json.\n");
    }
    for environment in &results.environments {
        let _ = writeln!(
            text,
            "\n{}: {} ({})",
            environment.name, environment.version, environment.library
        );
        for setting in &environment.settings {
            let _ = writeln!(
                text,
                "    {}  [{}] {}",
                setting.setting, setting.when, setting.reason
            );
        }
    }
    for note in &results.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::{Environment, Machine, SCHEMA};

    /// Returns a row with a narrow interval around its median, for tests.
    pub(crate) fn row(
        operation: &str,
        environment: &str,
        tasks: u32,
        bytes: u64,
        median: f64,
    ) -> Row {
        Row {
            suite: "primitives".to_owned(),
            operation: operation.to_owned(),
            environment: environment.to_owned(),
            network: "local".to_owned(),
            tasks,
            bytes,
            metric: Metric::OneWay,
            unit: "us".to_owned(),
            median,
            ci95: [median * 0.99, median * 1.01],
            p99: median * 1.1,
            minimum: median * 0.98,
            samples: 100,
            launches: 5,
            path: String::new(),
            flags: Vec::new(),
        }
    }

    pub(crate) fn results(rows: Vec<Row>) -> Results {
        let mut names: Vec<String> = Vec::new();
        for row in &rows {
            if !names.contains(&row.environment) {
                names.push(row.environment.clone());
            }
        }
        let environment = |name| Environment {
            name,
            version: "1".to_owned(),
            ..Environment::default()
        };
        Results {
            schema: SCHEMA.to_owned(),
            machine: Machine::default(),
            environments: names.into_iter().map(environment).collect(),
            rows,
            ratios: Vec::new(),
            paired: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(quantity(Metric::OneWay, 0.0634), "63.4 ns");
        assert_eq!(quantity(Metric::Time, 64000.0), "64.0 ms");
        assert_eq!(quantity(Metric::Rate, 27.4e6), "27.4 M/s");
        assert_eq!(quantity(Metric::Share, 3000.0), "2.93 MiB");
        assert_eq!(quantity(Metric::OneWay, 0.9996), "1000 ns");
        assert_eq!(quantity(Metric::Cpu, 0.333), "0.33 %");
        assert_eq!(
            (size(8), size(65536), size(16 << 20)),
            ("8".into(), "64 Ki".into(), "16 Mi".into())
        );
    }

    #[test]
    fn a_huge_quantity_is_a_number_that_can_be_read() {
        let metrics = [
            (Metric::Time, "1.00e302 s"),
            (Metric::Rate, "1.00e299 G/s"),
            (Metric::Resident, "9.54e301 GiB"),
            (Metric::Cpu, "1.00e308 %"),
            (Metric::Volume, "1.00e299 GB"),
            (Metric::Messages, "1.00e308"),
        ];
        for (metric, text) in metrics {
            assert_eq!(quantity(metric, 1e308), text);
            assert!(quantity(metric, f64::INFINITY).starts_with("unknown"));
        }
        assert_eq!(times(1e308), "1.00e308x");
    }

    #[test]
    fn the_best_peer_is_neither_the_limit_nor_ourselves() {
        let rows = [
            row("one-to-one", "regatta", 2, 8, 0.06),
            row("one-to-one", "openmpi", 2, 8, 0.1),
            row("one-to-one", "mpich", 2, 8, 0.77),
            row("one-to-one", "openmpi-default", 2, 8, 0.05),
            row("one-to-one", "limit", 2, 8, 0.05),
        ];
        assert_eq!(
            best_peer(&rows.iter().collect::<Vec<_>>())
                .unwrap()
                .environment,
            "openmpi"
        );
    }

    #[test]
    fn the_table_shows_ratios_against_each_and_the_best() {
        let text = render(&results(vec![
            row("one-to-one", "regatta", 2, 8, 0.06),
            row("one-to-one", "openmpi", 2, 8, 0.1),
            row("one-to-one", "mpich", 2, 8, 0.6),
        ]));
        assert!(text.contains("one-to-one, 2 tasks, one way"), "{text}");
        assert!(
            text.contains("100 ns (0.60x)") && text.contains("600 ns (0.10x)"),
            "{text}"
        );
        assert!(text.contains("0.60x that of openmpi"), "{text}");
    }

    #[test]
    fn a_tie_is_called_a_tie_and_a_failure_a_failure() {
        let mut failed = row("one-to-one", "pvm", 2, 8, 0.0);
        failed.launches = 0;
        let text = render(&results(vec![
            row("one-to-one", "regatta", 2, 8, 0.1),
            row("one-to-one", "openmpi", 2, 8, 0.101),
            failed,
        ]));
        assert!(
            text.contains("tie with openmpi") && text.contains("failed"),
            "{text}"
        );
    }

    #[test]
    fn results_come_back_from_their_text_unchanged() {
        let mut before = results(vec![row("ring", "limit", 2, 8, 0.1234567891234)]);
        before.notes.push("a, \"note\"".to_owned());
        before.rows[0].flags = vec!["one, with a comma".to_owned()];
        assert_eq!(Results::parse(&before.to_json()).unwrap(), before);
        let csv = before.to_csv();
        assert_eq!(csv.lines().count(), 2);
        assert!(
            csv.lines()
                .nth(1)
                .unwrap()
                .ends_with("\"one, with a comma\""),
            "{csv}"
        );
        let other = before.to_json().replace(SCHEMA, "regatta-race/2");
        assert!(
            Results::parse(&other)
                .unwrap_err()
                .to_string()
                .contains("regatta-race/2")
        );
    }
}
