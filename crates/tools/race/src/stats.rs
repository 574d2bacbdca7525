//! Medians, their confidence intervals, and the verdict of a comparison.
//!
//! The sample is the launch: batches within one launch share its placement of pages and its order of processes, so each
//! launch counts once, with its median. No distribution is assumed.

use serde::{Deserialize, Serialize};

use crate::duet::ratio::judge;
use crate::results::{Metric, Row};

/// Number of launches below which an interval of ranks is too narrow, so that it is widened.
pub const MIN_LAUNCHES_FOR_RANKS: usize = 5;

/// Returns the median, which is the mean of the middle two for an even number of values, or NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns a quantile by linear interpolation between ranks, or NaN for no values.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let sorted = sorted(values);
    let rank = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = sorted[rank.floor() as usize];
    let above = sorted[rank.ceil() as usize];
    below + (above - below) * rank.fract()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns a 95 % confidence interval of the median, by ranks, for any distribution (Le Boudec; Hoefler and Belli's
/// rule 5): the narrowest symmetric pair of ranks that contains the median with at least 95 % probability.
///
/// For five values these are the smallest and the largest (94 %). Fewer values cannot reach 95 %: their range is
/// extended by its width on either side, which is a convention, stated by the flag `few-launches`.
pub fn interval(values: &[f64]) -> [f64; 2] {
    let n = values.len();
    if n == 0 {
        return [f64::NAN; 2];
    }
    let sorted = sorted(values);
    let (first, last) = (sorted[0], sorted[n - 1]);
    if n < MIN_LAUNCHES_FOR_RANKS {
        let spread = if n == 1 {
            first.abs() * 0.25
        } else {
            last - first
        };
        return [(first - spread).max(0.0), last + spread];
    }
    let trimmed = ranks_to_trim(n);
    [sorted[trimmed], sorted[n - 1 - trimmed]]
}

/// Returns how many values may be left out at either end. The median is below the k-th smallest value with the
/// probability of fewer than k heads in n throws of a coin.
fn ranks_to_trim(n: usize) -> usize {
    let mut term = 0.5f64.powi(n as i32);
    let mut below = term;
    let mut trimmed = 0;
    for k in 1..n / 2 {
        term *= (n - k + 1) as f64 / k as f64;
        below += term;
        if 2.0 * below > 0.05 {
            break;
        }
        trimmed = k;
    }
    trimmed
}

/// The verdict for one row against another of the same point. Result files have older words for it, which stay as they
/// are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better, and the difference is larger than the noise.
    #[serde(rename = "faster", alias = "ahead")]
    Ahead,
    /// Worse, and the difference is larger than the noise.
    #[serde(rename = "slower", alias = "behind")]
    Behind,
    /// Certainly about equal. This differs from an undecided comparison.
    Tie,
    /// The noise is larger than the difference.
    #[serde(rename = "open", alias = "undecided")]
    Undecided,
}

/// Returns the interval of the ratio of two rows whose launches were independent, from the ends of the rows' intervals.
pub fn ratio_interval(a: &Row, b: &Row) -> [f64; 2] {
    let (over, under) = match a.metric.smaller_is_better() {
        true => (a, b),
        false => (b, a),
    };
    [over.ci95[0] / under.ci95[1], over.ci95[1] / under.ci95[0]]
}

/// Processor time below this, in per cent, counts as none: the kernel's own work for a sleeping process takes about as
/// much.
const NO_SHARE: f64 = 0.1;

/// Returns the verdict for `a` against `b`, whose launches were independent.
pub fn verdict(a: &Row, b: &Row) -> Verdict {
    let is_none = |row: &Row| row.metric == Metric::Cpu && row.ci95[1] < NO_SHARE;
    if is_none(a) && is_none(b) {
        return Verdict::Tie;
    }
    let ci95 = ratio_interval(a, b);
    // An end may be infinite: a comparison with zero also has a verdict.
    match ci95.iter().any(|end| end.is_nan()) {
        false => judge(ci95),
        // Two zeros are equal.
        true if a.median == b.median => Verdict::Tie,
        true => Verdict::Undecided,
    }
}

/// Returns the time of `a` divided by that of `b`, which is below 1 if `a` is better, for rates too.
pub fn ratio(a: &Row, b: &Row) -> f64 {
    if a.metric.smaller_is_better() {
        a.median / b.median
    } else {
        b.median / a.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::row;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_interval_is_by_ranks() {
        let first_to = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&first_to(6)), [1.0, 6.0]);
        assert_eq!(interval(&first_to(9)), [2.0, 8.0]);
        assert_eq!(interval(&first_to(12)), [3.0, 10.0]);
        assert_eq!(interval(&first_to(100)), [40.0, 61.0]);
    }

    /// Results of all versions can be read by all others.
    #[test]
    fn verdicts_are_written_in_the_words_of_recorded_races() {
        let words = [
            (Verdict::Ahead, "faster", "ahead"),
            (Verdict::Behind, "slower", "behind"),
            (Verdict::Tie, "tie", "tie"),
            (Verdict::Undecided, "open", "undecided"),
        ];
        for (verdict, written, other) in words {
            assert_eq!(serde_json::json!(verdict), written);
            for word in [written, other] {
                let read = serde_json::from_value(word.into());
                assert_eq!(read.ok(), Some(verdict));
            }
        }
    }

    #[test]
    fn few_values_give_a_wide_interval() {
        assert_eq!(interval(&[10.0, 11.0, 12.0]), [8.0, 14.0]);
        assert_eq!(interval(&[10.0]), [7.5, 12.5]);
    }

    /// Returns launch medians of one environment, with the noise of a real machine.
    fn noisy(seed: u64, launches: usize, level: f64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..launches)
            .map(|_| {
                level * (1.0 + 0.05 * random.f64() + if random.u8(..) < 12 { 0.8 } else { 0.0 })
            })
            .collect()
    }

    fn row_of(environment: &str, values: &[f64]) -> Row {
        let mut row = row("one-to-one", environment, 2, 8, median(values));
        row.ci95 = interval(values);
        row
    }

    #[test]
    fn the_same_thing_twice_has_no_side() {
        let mut apart = 0;
        for seed in 0..500 {
            let a = row_of("a", &noisy(2 * seed, 6, 0.1));
            let b = row_of("b", &noisy(2 * seed + 1, 6, 0.1));
            let verdict = verdict(&a, &b);
            apart += usize::from(matches!(verdict, Verdict::Ahead | Verdict::Behind));
        }
        assert!(apart <= 2, "{apart} of 500 identical pairs were told apart");
    }

    #[test]
    fn different_things_are_told_apart() {
        for seed in 0..500 {
            let a = row_of("a", &noisy(2 * seed, 11, 0.1));
            let b = row_of("b", &noisy(2 * seed + 1, 11, 0.13));
            assert_ne!(verdict(&a, &b), Verdict::Behind);
        }
        let a = row_of("a", &[1.0, 1.01, 1.02, 1.0, 1.01]);
        let b = row_of("b", &[1.3, 1.31, 1.32, 1.3, 1.31]);
        assert_eq!(verdict(&a, &b), Verdict::Ahead);
        assert_eq!(verdict(&b, &a), Verdict::Behind);
    }

    #[test]
    fn equal_medians_of_mere_noise_are_no_tie() {
        let a = row_of("a", &[1.0, 3.0]);
        let b = row_of("b", &[1.0, 3.0]);
        assert_eq!((a.ci95, verdict(&a, &b)), ([0.0, 5.0], Verdict::Undecided));
    }

    #[test]
    fn something_against_nothing_has_a_side_and_nothing_against_nothing_has_none() {
        let a = row_of("a", &[2.0; 5]);
        let b = row_of("b", &[0.0; 5]);
        assert_eq!(verdict(&a, &b), Verdict::Behind);
        assert_eq!(verdict(&b, &a), Verdict::Ahead);
        assert_eq!(verdict(&b, &b.clone()), Verdict::Tie);
    }

    #[test]
    fn two_tasks_that_sleep_are_as_good_as_each_other() {
        let share = |per_cent: f64| {
            let mut row = row_of("a", &[per_cent; 5]);
            row.metric = Metric::Cpu;
            row
        };
        assert_eq!(verdict(&share(0.01), &share(0.0003)), Verdict::Tie);
        assert_eq!(verdict(&share(0.2), &share(0.0003)), Verdict::Behind);
    }

    #[test]
    fn for_rates_more_is_better() {
        let mut a = row_of("a", &[10.0; 6]);
        let mut b = row_of("b", &[20.0; 6]);
        a.metric = Metric::Rate;
        b.metric = Metric::Rate;
        assert_eq!(verdict(&a, &b), Verdict::Behind);
        assert_eq!(ratio(&a, &b), 2.0);
    }

    #[test]
    fn a_difference_below_five_per_cent_is_a_tie() {
        let a = row_of("a", &[1.0; 10]);
        let b = row_of("b", &[1.04; 10]);
        assert_eq!(verdict(&a, &b), Verdict::Tie);
    }
}
