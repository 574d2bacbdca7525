//! The measurements of the papers of the 1990s and 2000s, to be drawn behind today's curves.
//!
//! The points stand in `reference/*.csv` beside this crate, one file per paper, facts only; its
//! README says how they were condensed. They are compiled in, so that the race needs no files.

use serde::{Deserialize, Serialize};

/// One measured point of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Short name of the paper: author and year.
    pub paper: String,
    /// Number of the table it stands in.
    pub table: String,
    /// Name of the operation, the same as in results.
    pub operation: String,
    /// Machine it was measured on.
    pub platform: String,
    /// The network of its processors: `Ethernet`, `FDDI` or `hypercube`.
    pub network: String,
    /// Message-passing library of the time.
    pub environment: String,
    /// Number of processors that took part.
    pub processors: u32,
    /// Bytes of one message.
    pub bytes: u64,
    /// Microseconds.
    pub us: f64,
}

const FILES: [&str; 3] = [
    include_str!("../reference/ahmad-1997.csv"),
    include_str!("../reference/ahmad-wu-1991.csv"),
    include_str!("../reference/white-1994.csv"),
];

/// All points of all papers.
pub fn points() -> Vec<Point> {
    FILES.iter().flat_map(|text| parse(text)).collect()
}

fn parse(text: &str) -> Vec<Point> {
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
    fn a_known_point_is_there() {
        assert!(points().iter().any(|p| p.paper == "ahmad-1997"
            && p.operation == "one-to-one"
            && p.environment == "NX"
            && p.bytes == 0
            && p.us == 68.0));
    }
}
