//! `results.csv`, `ratios.csv` and `paired.csv`: the rows and ratios of a race as comma-separated values, with a header
//! line.
//!
//! Recorded races keep these files for years. They have no machine, settings or notes, which the record's README
//! states.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::results::{Environment, Metric, Paired, Ratio, Results, Row, SCHEMA};
use crate::stats::Verdict;

/// Name of the file with the rows.
pub const ROWS: &str = "results.csv";
/// Name of the file with the ratios of environments that took turns.
pub const RATIOS: &str = "ratios.csv";
/// Name of the file with the ratios of two points of one environment.
pub const PAIRED: &str = "paired.csv";
/// Separator of the flags of a row.
const FLAG_SEPARATOR: &str = "; ";

/// A line of `results.csv`: a [`Row`].
#[derive(Serialize, Deserialize)]
struct RowLine {
    suite: String,
    operation: String,
    environment: String,
    network: String,
    tasks: u32,
    bytes: u64,
    metric: Metric,
    unit: String,
    median: f64,
    ci95_low: f64,
    ci95_high: f64,
    p99: f64,
    minimum: f64,
    samples: u64,
    launches: u32,
    path: String,
    flags: String,
}

impl From<&Row> for RowLine {
    fn from(row: &Row) -> RowLine {
        RowLine {
            suite: row.suite.clone(),
            operation: row.operation.clone(),
            environment: row.environment.clone(),
            network: row.network.clone(),
            tasks: row.tasks,
            bytes: row.bytes,
            metric: row.metric,
            unit: row.unit.clone(),
            median: row.median,
            ci95_low: row.ci95[0],
            ci95_high: row.ci95[1],
            p99: row.p99,
            minimum: row.minimum,
            samples: row.samples,
            launches: row.launches,
            path: row.path.clone(),
            flags: row.flags.join(FLAG_SEPARATOR),
        }
    }
}

impl From<RowLine> for Row {
    fn from(line: RowLine) -> Row {
        let flags = line
            .flags
            .split(FLAG_SEPARATOR)
            .filter(|flag| !flag.is_empty());
        Row {
            flags: flags.map(str::to_owned).collect(),
            suite: line.suite,
            operation: line.operation,
            environment: line.environment,
            network: line.network,
            tasks: line.tasks,
            bytes: line.bytes,
            metric: line.metric,
            unit: line.unit,
            median: line.median,
            ci95: [line.ci95_low, line.ci95_high],
            p99: line.p99,
            minimum: line.minimum,
            samples: line.samples,
            launches: line.launches,
            path: line.path,
        }
    }
}

/// A line of `ratios.csv`: a [`Ratio`].
#[derive(Serialize, Deserialize)]
struct RatioLine {
    suite: String,
    operation: String,
    network: String,
    tasks: u32,
    bytes: u64,
    environment: String,
    against: String,
    median: f64,
    ci95_low: f64,
    ci95_high: f64,
    rounds: u32,
    launches: u32,
    verdict: Verdict,
    more_seconds: f64,
}

impl From<&Ratio> for RatioLine {
    fn from(ratio: &Ratio) -> RatioLine {
        RatioLine {
            suite: ratio.suite.clone(),
            operation: ratio.operation.clone(),
            network: ratio.network.clone(),
            tasks: ratio.tasks,
            bytes: ratio.bytes,
            environment: ratio.environment.clone(),
            against: ratio.against.clone(),
            median: ratio.median,
            ci95_low: ratio.ci95[0],
            ci95_high: ratio.ci95[1],
            rounds: ratio.rounds,
            launches: ratio.launches,
            verdict: ratio.verdict,
            more_seconds: ratio.more_seconds,
        }
    }
}

impl From<RatioLine> for Ratio {
    fn from(line: RatioLine) -> Ratio {
        Ratio {
            suite: line.suite,
            operation: line.operation,
            network: line.network,
            tasks: line.tasks,
            bytes: line.bytes,
            environment: line.environment,
            against: line.against,
            median: line.median,
            ci95: [line.ci95_low, line.ci95_high],
            rounds: line.rounds,
            launches: line.launches,
            verdict: line.verdict,
            more_seconds: line.more_seconds,
        }
    }
}

/// A line of `paired.csv`: a [`Paired`].
#[derive(Serialize, Deserialize)]
struct PairedLine {
    environment: String,
    tasks: u32,
    operation: String,
    bytes: u64,
    by: String,
    by_bytes: u64,
    median: f64,
    ci95_low: f64,
    ci95_high: f64,
    rounds: u32,
    launches: u32,
}

impl From<&Paired> for PairedLine {
    fn from(paired: &Paired) -> PairedLine {
        PairedLine {
            environment: paired.environment.clone(),
            tasks: paired.tasks,
            operation: paired.operation.clone(),
            bytes: paired.bytes,
            by: paired.by.clone(),
            by_bytes: paired.by_bytes,
            median: paired.median,
            ci95_low: paired.ci95[0],
            ci95_high: paired.ci95[1],
            rounds: paired.rounds,
            launches: paired.launches,
        }
    }
}

impl From<PairedLine> for Paired {
    fn from(line: PairedLine) -> Paired {
        Paired {
            environment: line.environment,
            tasks: line.tasks,
            operation: line.operation,
            bytes: line.bytes,
            by: line.by,
            by_bytes: line.by_bytes,
            median: line.median,
            ci95: [line.ci95_low, line.ci95_high],
            rounds: line.rounds,
            launches: line.launches,
        }
    }
}

impl Results {
    /// Returns the text of `results.csv`.
    pub fn to_csv(&self) -> String {
        text(self.rows.iter().map(RowLine::from))
    }

    /// Returns the text of `ratios.csv`, which is empty if no environments took turns.
    pub fn ratios_to_csv(&self) -> String {
        text(self.ratios.iter().map(RatioLine::from))
    }

    /// Returns the text of `paired.csv`, which is empty if no two points of one environment were compared.
    pub fn paired_to_csv(&self) -> String {
        text(self.paired.iter().map(PairedLine::from))
    }

    /// Reads `results.csv`, and `ratios.csv` and `paired.csv` beside it if they exist. The result has no description of
    /// the machine, and only the names of environments.
    pub fn read_csv(rows: &Path) -> Result<Results> {
        let mut results = Results {
            schema: SCHEMA.to_owned(),
            machine: Default::default(),
            environments: Vec::new(),
            rows: lines::<RowLine, _>(rows)?,
            ratios: Vec::new(),
            paired: Vec::new(),
            notes: Vec::new(),
        };
        let ratios = rows.with_file_name(RATIOS);
        if ratios.exists() {
            results.ratios = lines::<RatioLine, _>(&ratios)?;
        }
        let paired = rows.with_file_name(PAIRED);
        if paired.exists() {
            results.paired = lines::<PairedLine, _>(&paired)?;
        }
        for row in &results.rows {
            let known = |one: &Environment| one.name == row.environment;
            if !results.environments.iter().any(known) {
                results.environments.push(Environment {
                    name: row.environment.clone(),
                    ..Environment::default()
                });
            }
        }
        Ok(results)
    }
}

fn text<Line: Serialize>(lines: impl Iterator<Item = Line>) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for line in lines {
        out.serialize(line)
            .expect("these types have no nested values, and memory does not fail");
    }
    let bytes = out.into_inner().expect("memory does not fail");
    String::from_utf8(bytes).expect("made of strings")
}

fn lines<Line: DeserializeOwned, T: From<Line>>(file: &Path) -> Result<Vec<T>> {
    let mut reader =
        csv::Reader::from_path(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = reader.deserialize::<Line>();
    lines
        .map(|line| line.map(T::from))
        .collect::<Result<Vec<T>, csv::Error>>()
        .with_context(|| format!("{} is not of the race", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    #[test]
    fn rows_and_ratios_come_back_unchanged() {
        let mut before = results(vec![row("ring", "limit", 2, 8, 0.1234567891234)]);
        before.rows[0].flags = vec!["one, with a comma".to_owned(), "another".to_owned()];
        before.ratios = vec![Ratio {
            suite: "primitives".to_owned(),
            operation: "ring".to_owned(),
            network: "local".to_owned(),
            tasks: 2,
            bytes: 8,
            environment: "regatta".to_owned(),
            against: "limit".to_owned(),
            median: 1.1,
            ci95: [1.05, 1.2],
            rounds: 12,
            launches: 2,
            verdict: Verdict::Behind,
            more_seconds: 0.0,
        }];
        before.paired = vec![Paired {
            environment: "limit".to_owned(),
            tasks: 2,
            operation: "ring".to_owned(),
            bytes: 8,
            by: "barrier".to_owned(),
            by_bytes: 0,
            median: 2.5,
            ci95: [2.25, 3.0],
            rounds: 9,
            launches: 3,
        }];
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(ROWS);
        std::fs::write(&file, before.to_csv()).expect("rows");
        let without = Results::read(folder.path()).expect("rows alone");
        assert_eq!((&without.rows, without.ratios.len()), (&before.rows, 0));
        std::fs::write(folder.path().join(RATIOS), before.ratios_to_csv()).expect("ratios");
        std::fs::write(folder.path().join(PAIRED), before.paired_to_csv()).expect("pairs");
        let after = Results::read(&file).expect("all");
        assert_eq!((after.rows, after.ratios), (before.rows, before.ratios));
        assert_eq!(after.paired, before.paired);
        assert_eq!(after.environments[0].name, "limit");
    }

    #[test]
    fn a_line_that_is_cut_short_is_an_error_that_names_the_file() {
        let whole = results(vec![row("ring", "limit", 2, 8, 1.0)]).to_csv();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(ROWS);
        std::fs::write(&file, &whole[..whole.len() - 20]).expect("rows");
        let error = format!("{:#}", Results::read(&file).unwrap_err());
        assert!(error.contains(ROWS), "{error}");
    }
}
