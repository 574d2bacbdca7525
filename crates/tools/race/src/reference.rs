//! The measurements of the papers of the 1990s and 2000s, which are drawn behind today's curves.
//!
//! They are in `reference/*.csv` beside this crate, figures only: points of messages in a file for each paper, runs of
//! applications of all papers in `applications.csv`. The README there says how they were condensed. They are compiled
//! in, so that the race needs no files.

use serde::{Deserialize, Serialize};

/// One measured point of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Short name of the paper: author and year.
    pub paper: String,
    /// Number of the table in the paper.
    pub table: String,
    /// Name of the operation, the same as in results.
    pub operation: String,
    /// Machine on which it was measured.
    pub platform: String,
    /// The network between its processors: `Ethernet`, `FDDI` or `hypercube`.
    pub network: String,
    /// Message-passing library of the time.
    pub environment: String,
    /// Number of processors that took part.
    pub processors: u32,
    /// Bytes of one message.
    pub bytes: u64,
    /// Time in microseconds.
    pub us: f64,
}

/// A figure of a paper from a run of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Short name of the paper: author and year.
    pub paper: String,
    /// Number of the table in the paper.
    pub table: String,
    /// Name of the operation, the same as in results.
    pub operation: String,
    /// Machine on which it was measured.
    pub platform: String,
    /// The network between its processors. Empty if the paper quotes another machine.
    pub network: String,
    /// Message-passing library of the time.
    pub environment: String,
    /// Number of processors that took part.
    pub processors: u32,
    /// Size of the problem, the same as in results.
    pub size: u64,
    /// The measured quantity.
    pub quantity: Quantity,
    /// The value of that quantity.
    pub value: f64,
}

/// A quantity of an application's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Elapsed time, s.
    Time,
    /// Bytes of all messages, MB.
    Volume,
    /// Time in communications, s.
    Communication,
    /// Number of messages.
    Messages,
    /// The longest time that a task was blocked in receives, s.
    Idle,
}

const FILES: [&str; 3] = [
    include_str!("../reference/ahmad-1997.csv"),
    include_str!("../reference/ahmad-wu-1991.csv"),
    include_str!("../reference/white-1994.csv"),
];

/// Returns all points of all papers.
pub fn points() -> Vec<Point> {
    FILES.iter().flat_map(|text| parse(text)).collect()
}

/// Returns the points of one paper, in the order of its tables.
pub fn points_of(paper: &str) -> Vec<Point> {
    let all = points().into_iter();
    all.filter(|point| point.paper == paper).collect()
}

/// Returns all runs of applications of all papers, in the order of their tables.
pub fn runs() -> Vec<Run> {
    parse(include_str!("../reference/applications.csv"))
}

fn parse<Record: for<'de> Deserialize<'de>>(text: &str) -> Vec<Record> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .map(|record| record.expect("the files are compiled in and a test reads them all"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_every_point_makes_sense() {
        let points = points();
        assert!(points.len() > 400, "only {} points", points.len());
        for point in &points {
            assert!(point.us > 0.0 && point.us < 1e8, "{point:?}");
            assert!(point.processors >= 1, "{point:?}");
            let networks = ["Ethernet", "FDDI", "hypercube"];
            assert!(networks.contains(&point.network.as_str()), "{point:?}");
        }
        let papers: std::collections::BTreeSet<_> =
            points.iter().map(|p| p.paper.as_str()).collect();
        assert_eq!(
            papers.into_iter().collect::<Vec<_>>(),
            ["ahmad-1997", "ahmad-wu-1991", "white-1994"]
        );
    }

    #[test]
    fn every_run_is_of_an_operation_that_is_raced() {
        let runs = runs();
        assert!(runs.len() > 600, "only {} runs", runs.len());
        for run in &runs {
            let operation = crate::operations::find(&run.operation);
            assert!(operation.is_some(), "{run:?}");
            assert!(run.value > 0.0 && run.processors >= 1, "{run:?}");
        }
    }

    #[test]
    fn a_known_point_is_there() {
        assert!(points().iter().any(|p| p.paper == "ahmad-1997"
            && p.operation == "one-to-one"
            && p.environment == "NX"
            && p.bytes == 0
            && p.us == 68.0));
    }
}
