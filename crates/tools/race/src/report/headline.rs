//! The headlines: the points of the race that readers ask for first, and Regatta's verdict at each.
//!
//! A headline is stated only if it was measured. [`Results::verdict`] says which environment is ahead.

use super::appearance::{LIMIT, TRUSTED, is_peer};
use crate::operations::{self, Headline as Headlines, Operation};
use crate::results::{Metric, Results, Row};
use crate::stats::Verdict;
use crate::suites;

/// Returns the operations that are headlines and their points, in the order given by `place`. Operations for which
/// `place` is 0 are left out.
fn asked_for(
    place: fn(&Headlines) -> u32,
) -> impl Iterator<Item = (&'static Operation, &'static Headlines)> {
    let all = operations::all().filter_map(|one| Some((one, one.headline.as_ref()?)));
    let mut those: Vec<_> = all.filter(|one| place(one.1) > 0).collect();
    those.sort_by_key(|one| place(one.1));
    those.into_iter()
}

/// Returns whether this point is a headline of two tasks.
pub fn is_of_a_pair(operation: &str, bytes: u64) -> bool {
    let headline = operations::find(operation).and_then(|one| one.headline.as_ref());
    headline.is_some_and(|headline| headline.bytes.contains(&bytes))
}

/// Returns whether this operation is a headline at the largest number of tasks, with its smallest size.
pub fn is_of_a_crowd(operation: &str) -> bool {
    let headline = operations::find(operation).and_then(|one| one.headline.as_ref());
    headline.is_some_and(|headline| headline.crowd > 0)
}

/// Returns whether all points of this suite are headlines.
pub fn is_of_a_whole_suite(suite: &str) -> bool {
    suites::find(suite).is_some_and(|suite| suite.headline)
}

/// Returns the verdict in a word that fits the metric: memory is not `faster`.
pub fn word(verdict: Verdict, metric: Metric) -> &'static str {
    let speed = matches!(metric, Metric::OneWay | Metric::Time | Metric::Rate);
    match verdict {
        Verdict::Ahead if speed => "faster",
        Verdict::Ahead => "less",
        Verdict::Tie => "tie",
        Verdict::Undecided => "not decided",
        Verdict::Behind if speed => "slower",
        Verdict::Behind => "more",
    }
}

/// One headline: the rows of one point.
#[derive(Debug, Clone)]
pub struct Headline<'a> {
    /// The results that contain it.
    results: &'a Results,
    /// The row of Regatta.
    pub ours: &'a Row,
    /// The row of the best peer, if one was measured.
    pub best: Option<&'a Row>,
    /// The row of the hardware's limit, if it was measured.
    pub limit: Option<&'a Row>,
}

impl<'a> Headline<'a> {
    /// Returns all headlines of a race, in the order in which readers ask for them.
    pub fn all(results: &'a Results) -> Vec<Headline<'a>> {
        let mut ours: Vec<&Row> = Vec::new();
        let mut add = |row: Option<&'a Row>| {
            if let Some(row) = row
                && !ours.iter().any(|other| other.point() == row.point())
            {
                ours.push(row);
            }
        };
        let own = results.ours();
        let of_operation = |operation: &'static Operation| {
            results
                .rows_of(own)
                .filter(move |row| row.operation == operation.name)
        };
        for (operation, headline) in asked_for(|one| one.place) {
            for size in headline.bytes {
                add(of_operation(operation).find(|row| row.tasks == 2 && row.bytes == *size));
            }
        }
        for (operation, _) in asked_for(|one| one.crowd) {
            let most = of_operation(operation).map(|row| row.tasks).max();
            add(of_operation(operation)
                .filter(|row| Some(row.tasks) == most)
                .min_by_key(|row| row.bytes));
        }
        for suite in suites::ALL.iter().filter(|suite| suite.headline) {
            results
                .rows_of(own)
                .filter(|row| row.suite == suite.name)
                .for_each(|row| add(Some(row)));
        }
        let of = |row: &'a Row| {
            let trusted = results.rows_of(TRUSTED);
            let twin = trusted.filter(move |other| other.point() == row.point());
            std::iter::once(row).chain(twin)
        };
        let each = ours.into_iter().flat_map(of);
        each.map(|ours| Headline::of(results, ours)).collect()
    }

    /// Returns the headline of Regatta's row `ours`, with the other rows of its point.
    pub fn of(results: &'a Results, ours: &'a Row) -> Headline<'a> {
        let beside = || {
            let same = move |row: &&Row| row.point() == ours.point() && row.measured();
            results.rows.iter().filter(same)
        };
        let better = |a: &&Row, b: &&Row| {
            let order = a.median.total_cmp(&b.median);
            if ours.metric.smaller_is_better() {
                order
            } else {
                order.reverse()
            }
        };
        Headline {
            results,
            ours,
            best: beside()
                .filter(|row| is_peer(results, &row.environment))
                .min_by(better),
            // The hardware does not limit how little processor time a blocked task needs.
            limit: beside().find(|row| row.environment == LIMIT && row.metric != Metric::Cpu),
        }
    }

    /// Returns the verdict against the best peer, or `None` if either row is missing.
    pub fn verdict(&self) -> Option<Verdict> {
        self.best
            .filter(|_| self.ours.measured())
            .map(|best| self.results.verdict(self.ours, best))
    }

    /// Returns the ratio of Regatta's row to another one, which is below 1 if Regatta is better, or `None` if either
    /// row is missing.
    pub fn ratio(&self, other: Option<&Row>) -> Option<f64> {
        let other = other.filter(|other| self.ours.measured() && other.median > 0.0)?;
        Some(self.results.ratio(self.ours, other)).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    }

    /// Returns the 95 % interval of that ratio, or `None` if it is not finite.
    pub fn ratio_range(&self, other: &Row) -> Option<[f64; 2]> {
        let ends = self.results.ratio_interval(self.ours, other);
        Some(ends).filter(|ends| ends.iter().all(|end| end.is_finite() && *end >= 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::OURS;

    #[test]
    fn memory_is_not_fast() {
        assert_eq!(word(Verdict::Ahead, Metric::Share), "less");
        assert_eq!(word(Verdict::Behind, Metric::Time), "slower");
    }

    #[test]
    fn the_best_peer_is_neither_ours_nor_the_limit() {
        let results = sample::results();
        let headlines = Headline::all(&results);
        assert!(headlines.len() > 15, "only {} headlines", headlines.len());
        for headline in &headlines {
            let best = headline.best.expect("the sample has peers everywhere");
            assert!(
                !best.environment.starts_with(OURS) && best.environment != LIMIT,
                "{best:?}"
            );
        }
        assert_eq!(
            headlines[0].best.map(|row| row.environment.as_str()),
            Some("openmpi")
        );
        let rate = headlines
            .iter()
            .find(|h| h.ours.metric == Metric::Rate)
            .expect("the sample has a rate");
        assert_eq!(rate.verdict(), Some(Verdict::Ahead));
    }

    #[test]
    fn a_race_of_regatta_against_itself_has_a_peer() {
        let results = sample::ours_again("regatta-again");
        let headlines = Headline::all(&results);
        assert!(
            headlines
                .iter()
                .all(|headline| headline.verdict() == Some(Verdict::Tie))
        );
    }

    #[test]
    fn the_range_of_a_ratio_holds_it() {
        let results = sample::results();
        for headline in Headline::all(&results) {
            let best = headline.best.expect("the sample has peers everywhere");
            if let Some(ratio) = headline.ratio(Some(best)) {
                let [low, high] = headline.ratio_range(best).expect("both are measured");
                assert!(low < ratio && ratio < high, "{low} {ratio} {high}");
            }
        }
    }

    #[test]
    fn a_failed_row_has_no_verdict() {
        let mut results = sample::results();
        results
            .rows
            .iter_mut()
            .filter(|row| row.environment == OURS)
            .for_each(|row| row.launches = 0);
        assert!(
            Headline::all(&results)
                .iter()
                .all(|headline| headline.verdict().is_none())
        );
    }
}
