//! Paired ratios: the time of one environment divided by that of another, with an interval.
//!
//! The sample is the ratio of two turns of one round, which are milliseconds apart, so the machine's speed affects
//! both. Rounds of one launch share its placement of pages and processes, so intervals come from a bootstrap in two
//! steps: launches are drawn with replacement, then rounds within each. With few launches such intervals are too narrow
//! by about the root of n / (n - 1). They are widened by that, and by the ratio of Student's distribution to the normal
//! one.
//!
//! *Repeated looks.* An open comparison continues, and is judged after each launch; the first look that decides it ends
//! it. With intervals that hold at one look, one of four comparisons of an environment with itself would end with a
//! verdict for one side. So all looks use one stricter level, as in Pocock (1977), and an interval holds at all of them
//! together with 95 % (a repeated confidence interval).

use crate::stats::{Verdict, median, quantile};

/// Number of bootstrap samples.
const DRAWS: usize = 800;
/// Ratios between these are a tie: neither side takes 5 % longer than the other.
pub const TIE: [f64; 2] = [1.0 / 1.05, 1.05];

/// Maximum number of times that a comparison is judged while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// Once at the end, after a fixed number of launches.
    Once,
    /// After each launch from some number on, at most a dozen times.
    Dozen,
    /// After each launch from some number on, at most thirty times.
    Thirty,
}

impl Looks {
    /// Returns the number of looks at a comparison that has at least `fewest` and at most `most` launches.
    pub fn between([fewest, most]: [u32; 2]) -> Looks {
        match most.saturating_sub(fewest) {
            0 => Looks::Once,
            1..12 => Looks::Dozen,
            _ => Looks::Thirty,
        }
    }

    /// Returns the distance from the median, in standard errors, that this many launches exceed by chance at the level
    /// of one look.
    fn critical(self, launches: usize) -> f64 {
        let by_freedom = match self {
            Looks::Once => &AT_5,
            Looks::Dozen => &AT_1,
            Looks::Thirty => &AT_0_4,
        };
        by_freedom[(launches - 2).min(by_freedom.len() - 1)]
    }
}

/// Two-sided critical values of Student's distribution at 5 %, by degrees of freedom from 1 on.
const AT_5: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// As [`AT_5`], at 1 %. Simulated comparisons of an environment with itself, with much noise between launches, end with
/// a side ahead in 4 to 5 % of all cases, at 3 to 9 launches and at 4 to 15.
const AT_1: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
    2.771, 2.763, 2.756, 2.750,
];
/// As [`AT_5`], at 0.4 %. Simulated comparisons as for [`AT_1`], at 6 to 30 launches.
const AT_0_4: [f64; 30] = [
    159.153, 15.764, 8.053, 5.951, 5.030, 4.524, 4.207, 3.991, 3.835, 3.716, 3.624, 3.550, 3.489,
    3.438, 3.395, 3.358, 3.326, 3.298, 3.273, 3.251, 3.231, 3.214, 3.198, 3.183, 3.170, 3.158,
    3.147, 3.136, 3.127, 3.118,
];
/// Two-sided critical value of the normal distribution at 5 %, as for the ends of a bootstrap's interval.
const NORMAL: f64 = 1.960;

/// The ratio of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over rounds.
    pub median: f64,
    /// 95 % interval of the median, at all looks together.
    pub ci95: [f64; 2],
}

/// Returns the estimate from the ratios of all rounds, by launch. Returns `None` for fewer than two launches.
pub fn estimate(launches: &[Vec<f64>], looks: Looks, seed: u64) -> Option<Estimate> {
    let logarithms = |rounds: &Vec<f64>| rounds.iter().map(|ratio| ratio.ln()).collect();
    let launches: Vec<Vec<f64>> = launches
        .iter()
        .filter(|rounds| !rounds.is_empty())
        .map(logarithms)
        .collect();
    let n = launches.len();
    if n < 2 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let middle = median(&launches.concat());
    let mut draws = Vec::with_capacity(DRAWS);
    let mut drawn = Vec::new();
    for _ in 0..DRAWS {
        drawn.clear();
        for _ in 0..n {
            let rounds = &launches[random.usize(..n)];
            drawn.extend((0..rounds.len()).map(|_| rounds[random.usize(..rounds.len())]));
        }
        draws.push(median(&drawn));
    }
    let widening = (n as f64 / (n - 1) as f64).sqrt() * looks.critical(n) / NORMAL;
    let end = |q: f64| (middle + (quantile(&draws, q) - middle) * widening).exp();
    Some(Estimate {
        median: middle.exp(),
        ci95: [end(0.025), end(0.975)],
    })
}

/// Returns the verdict of an interval of ratios. [`Verdict::Tie`] says that the ratio certainly lies between the two
/// numbers of [`TIE`].
pub fn judge(ci95: [f64; 2]) -> Verdict {
    match ci95 {
        [low, high] if low >= TIE[0] && high <= TIE[1] => Verdict::Tie,
        [_, high] if high < 1.0 => Verdict::Ahead,
        [low, _] if low > 1.0 => Verdict::Behind,
        _ => Verdict::Undecided,
    }
}

/// Returns the factor by which the measuring time would have to grow to decide an open point. The width of an interval
/// is proportional to the inverse root of the number of samples.
pub fn effort_to_decide(estimate: &Estimate) -> f64 {
    let [low, high] = estimate.ci95.map(f64::ln);
    let half = (high - low) / 2.0;
    let away = estimate.median.ln().abs();
    // The interval must be narrow enough to exclude 1, or to lie within the tie.
    let goal = away.max(TIE[1].ln() - away).max(1e-3);
    (half / goal).powi(2).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns launches with ratios of this many rounds around `ratio`, with noise between launches and between rounds.
    fn endless(
        ratio: f64,
        [between, within]: [f64; 2],
        rounds: usize,
        seed: u64,
    ) -> impl Iterator<Item = Vec<f64>> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut noise = move |level: f64| {
            let sum: f64 = (0..12).map(|_| random.f64()).sum();
            (level * (sum - 6.0)).exp()
        };
        std::iter::repeat_with(move || {
            let launch = noise(between);
            let round = |_| ratio * launch * noise(within);
            (0..rounds).map(round).collect()
        })
    }

    fn launches(ratio: f64, between: f64, within: f64, seed: u64) -> Vec<Vec<f64>> {
        endless(ratio, [between, within], 12, seed)
            .take(6)
            .collect()
    }

    /// Returns how many of `comparisons` end with one side ahead. A comparison ends with the first look that decides
    /// it, from 3 launches on, or after 9 launches, as in a quick race.
    fn sides(ratio: f64, noise: [f64; 2], comparisons: u64) -> usize {
        let has_side = |seed: &u64| {
            let mut measured: Vec<Vec<f64>> = Vec::new();
            for launch in endless(ratio, noise, 4, *seed).take(9) {
                measured.push(launch);
                if measured.len() < 3 {
                    continue;
                }
                let estimate = estimate(&measured, Looks::Dozen, *seed);
                match judge(estimate.expect("three launches").ci95) {
                    Verdict::Undecided => {}
                    verdict => return verdict != Verdict::Tie,
                }
            }
            false
        };
        (0..comparisons).filter(has_side).count()
    }

    #[test]
    fn one_thing_against_itself_seldom_has_a_side_however_often_it_is_looked_at() {
        // Noise between launches is the worst kind, since intervals then depend on few numbers.
        let apart = sides(1.0, [0.3, 0.1], 50);
        assert!(apart <= 4, "{apart} of 50");
    }

    /// Returns the time of a turn beside a neighbour that takes half of a core in pieces of 3 ms. Operations take `us`
    /// each, and a part takes 125 us. `middle` computes the median of the parts, as in
    /// [`Player::slice`](crate::duet::player::Player::slice), or the mean.
    fn disturbed(us: f64, middle: fn(&[f64]) -> f64, random: &mut fastrand::Rng) -> f64 {
        let (part, piece) = (125.0, 3000.0);
        // The neighbour runs when the task has used up a piece itself.
        let mut left = piece * random.f64();
        let mut one = || {
            left -= part;
            let lost = match left < 0.0 {
                true => {
                    left = piece;
                    piece
                }
                false => 0.0,
            };
            us * (1.0 + 0.02 * random.f64()) * (part + lost) / part
        };
        let parts: Vec<f64> = (0..16).map(|_| one()).collect();
        middle(&parts)
    }

    /// Returns the verdict of such a comparison after this many launches of six rounds.
    fn beside_a_neighbour(
        ratio: f64,
        middle: fn(&[f64]) -> f64,
        number: usize,
        seed: u64,
    ) -> Verdict {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut round = |between: f64| {
            let ours = disturbed(ratio * between, middle, &mut random);
            ours / disturbed(1.0, middle, &mut random)
        };
        let between = |launch: usize| 1.0 + 0.01 * (launch % 3) as f64 - 0.01;
        let launches: Vec<Vec<f64>> = (0..number)
            .map(|launch| (0..6).map(|_| round(between(launch))).collect())
            .collect();
        judge(estimate(&launches, Looks::Dozen, seed).unwrap().ci95)
    }

    #[test]
    fn a_neighbour_on_a_core_hides_no_side_from_the_median_of_a_turns_parts() {
        let found = |middle, expected: Verdict, ratio| {
            let verdict = |seed| beside_a_neighbour(ratio, middle, 5, seed);
            (0..40).filter(|&seed| verdict(seed) == expected).count()
        };
        let mean = |parts: &[f64]| parts.iter().sum::<f64>() / parts.len() as f64;
        assert_eq!(found(median, Verdict::Ahead, 0.9), 40);
        assert_eq!(found(median, Verdict::Behind, 1.1), 40);
        let by_mean = found(mean, Verdict::Ahead, 0.9);
        assert!(by_mean <= 30, "the mean finds {by_mean} of 40");
    }

    #[test]
    fn one_thing_against_itself_beside_a_neighbour_has_no_side() {
        for number in 3..9 {
            let verdict = |seed| beside_a_neighbour(1.0, median, number, seed);
            let is_side = |verdict: Verdict| matches!(verdict, Verdict::Ahead | Verdict::Behind);
            let sides = (0..60).filter(|&seed| is_side(verdict(seed))).count();
            assert!(sides <= 3, "{sides} of 60 with {number} launches");
        }
    }

    #[test]
    fn a_difference_well_beyond_the_noise_has_a_side_at_some_look() {
        assert_eq!(sides(1.3, [0.02, 0.05], 20), 20);
    }

    #[test]
    fn a_clear_difference_has_a_side() {
        let verdict = |ratio| {
            judge(
                estimate(&launches(ratio, 0.01, 0.04, 1), Looks::Once, 1)
                    .unwrap()
                    .ci95,
            )
        };
        assert_eq!(verdict(0.8), Verdict::Ahead);
        assert_eq!(verdict(1.2), Verdict::Behind);
        assert_eq!(verdict(1.0), Verdict::Tie);
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let holds = |seed| {
            let [low, high] = estimate(&launches(1.1, 0.03, 0.1, seed), Looks::Once, seed)
                .unwrap()
                .ci95;
            (low..=high).contains(&1.1)
        };
        let held = (0..200).filter(|&seed| holds(seed)).count();
        assert!((176..=200).contains(&held), "{held} of 200");
    }

    #[test]
    fn noise_is_no_tie_but_an_open_question() {
        let wide = estimate(&launches(1.0, 0.2, 0.3, 3), Looks::Once, 3).unwrap();
        assert_eq!(judge(wide.ci95), Verdict::Undecided);
        assert!(effort_to_decide(&wide) > 2.0);
    }

    #[test]
    fn one_launch_is_no_sample() {
        for looks in [Looks::Once, Looks::Dozen, Looks::Thirty] {
            assert_eq!(estimate(&[vec![1.0; 50]], looks, 1), None);
            assert_eq!(estimate(&[vec![1.0; 50], vec![]], looks, 1), None);
        }
    }

    #[test]
    fn a_tie_is_narrow_on_both_sides_of_one() {
        assert_eq!(judge([0.96, 1.04]), Verdict::Tie);
        assert_eq!(judge([0.96, 0.99]), Verdict::Tie);
        assert_eq!(judge([0.94, 0.99]), Verdict::Ahead);
        // A delay of 5 % is no tie, however narrow the interval.
        assert_eq!(judge([0.951, 0.953]), Verdict::Ahead);
        assert_eq!(judge([1.049, 1.051]), Verdict::Behind);
        assert_eq!(judge([0.94, 1.01]), Verdict::Undecided);
        assert_eq!(judge([1.01, 1.2]), Verdict::Behind);
    }
}
