//! Paired ratios: how much time one environment takes of another's, and how sure that is.
//!
//! The sample is the ratio of two turns of one round, which are milliseconds apart: the machine's moods are in both. Rounds of one
//! launch share its luck (placement of pages and processes), so intervals come of a bootstrap in two steps: launches are
//! drawn with replacement, then rounds within each. Few launches make such intervals too narrow by about the root of n / (n - 1), so they are
//! widened by that.

use crate::stats::{Verdict, median, quantile};

/// Bootstrap samples.
const DRAWS: usize = 800;
/// Ratios between these are a tie.
pub const TIE: [f64; 2] = [0.95, 1.05];

/// The ratio of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over rounds.
    pub median: f64,
    /// 95 % interval of it.
    pub ci95: [f64; 2],
}

/// The ratios of all rounds, by launch. None without two launches.
pub fn estimate(launches: &[Vec<f64>], seed: u64) -> Option<Estimate> {
    let launches: Vec<&Vec<f64>> = launches
        .iter()
        .filter(|rounds| !rounds.is_empty())
        .collect();
    let n = launches.len();
    if n < 2 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let all: Vec<f64> = launches
        .iter()
        .flat_map(|rounds| rounds.iter().map(|r| r.ln()))
        .collect();
    let middle = median(&all);
    let mut draws = Vec::with_capacity(DRAWS);
    let mut drawn = Vec::with_capacity(all.len());
    for _ in 0..DRAWS {
        drawn.clear();
        for _ in 0..n {
            let rounds = launches[random.usize(..n)];
            drawn.extend((0..rounds.len()).map(|_| rounds[random.usize(..rounds.len())].ln()));
        }
        draws.push(median(&drawn));
    }
    let widening = (n as f64 / (n - 1) as f64).sqrt();
    let end = |q: f64| (middle + (quantile(&draws, q) - middle) * widening).exp();
    Some(Estimate {
        median: middle.exp(),
        ci95: [end(0.025), end(0.975)],
    })
}

/// The verdict of an interval of ratios. A tie is a statement as well: the ratio lies between the two numbers of [`TIE`].
pub fn judge(ci95: [f64; 2]) -> Verdict {
    match ci95 {
        [low, high] if low >= TIE[0] && high <= TIE[1] => Verdict::Tie,
        [_, high] if high < 1.0 => Verdict::Faster,
        [low, _] if low > 1.0 => Verdict::Slower,
        _ => Verdict::Open,
    }
}

/// How many times as long as so far it would take to decide a point that is open: intervals shrink with the root of the number of
/// samples.
pub fn effort_to_decide(estimate: &Estimate) -> f64 {
    let [low, high] = estimate.ci95.map(f64::ln);
    let half = (high - low) / 2.0;
    let away = estimate.median.ln().abs();
    // Either far enough from 1, or near enough to it.
    let goal = away.max(TIE[1].ln() - away).max(1e-3);
    (half / goal).powi(2).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ratios around `ratio`, with noise between launches and between rounds.
    fn launches(ratio: f64, between: f64, within: f64, seed: u64) -> Vec<Vec<f64>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut noise = move |level: f64| {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            (level * (sum - 6.0)).exp()
        };
        (0..6)
            .map(|_| {
                let launch = noise(between);
                (0..12).map(|_| ratio * launch * noise(within)).collect()
            })
            .collect()
    }

    #[test]
    fn a_clear_difference_has_a_side() {
        let verdict = |ratio| judge(estimate(&launches(ratio, 0.01, 0.04, 1), 1).unwrap().ci95);
        assert_eq!(verdict(0.8), Verdict::Faster);
        assert_eq!(verdict(1.2), Verdict::Slower);
        assert_eq!(verdict(1.0), Verdict::Tie);
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let holds = |seed| {
            let [low, high] = estimate(&launches(1.1, 0.03, 0.1, seed), seed)
                .unwrap()
                .ci95;
            (low..=high).contains(&1.1)
        };
        let held = (0..200).filter(|&seed| holds(seed)).count();
        assert!((176..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn noise_is_no_tie_but_an_open_question() {
        let wide = estimate(&launches(1.0, 0.2, 0.3, 3), 3).unwrap();
        assert_eq!(judge(wide.ci95), Verdict::Open);
        assert!(effort_to_decide(&wide) > 2.0);
    }

    #[test]
    fn one_launch_is_no_sample() {
        assert_eq!(estimate(&[vec![1.0; 50]], 1), None);
        assert_eq!(estimate(&[vec![1.0; 50], vec![]], 1), None);
    }

    #[test]
    fn a_tie_is_narrow_on_both_sides_of_one() {
        assert_eq!(judge([0.96, 1.04]), Verdict::Tie);
        assert_eq!(judge([0.96, 0.99]), Verdict::Tie);
        assert_eq!(judge([0.94, 0.99]), Verdict::Faster);
        assert_eq!(judge([0.94, 1.01]), Verdict::Open);
        assert_eq!(judge([1.01, 1.2]), Verdict::Slower);
    }
}
