//! Rows in which a library is certainly faster than `limit`. Since nothing can be faster than a limit, such a row shows
//! a fault of the race.

use crate::results::Ratio;
use crate::stats::Verdict;

/// Maximum number of rows that a note names.
const MAX_NAMED: usize = 6;

/// Returns a note of the rows in which an environment for which `limit` returns true was certainly beaten, the worst
/// first.
pub fn note(ratios: &[Ratio], limit: impl Fn(&str) -> bool) -> Option<String> {
    let is_beaten = |ratio: &&Ratio| limit(&ratio.against) && ratio.verdict == Verdict::Ahead;
    let mut beaten: Vec<&Ratio> = ratios.iter().filter(is_beaten).collect();
    let last = beaten.len().checked_sub(1)?;
    beaten.sort_by(|a, b| a.median.total_cmp(&b.median));
    let name = |ratio: &&Ratio| {
        let (operation, tasks, bytes) = (&ratio.operation, ratio.tasks, ratio.bytes);
        format!(
            "{operation} of {bytes} B, {tasks} tasks: {:.2}",
            ratio.median
        )
    };
    let named: Vec<String> = beaten.iter().take(MAX_NAMED).map(name).collect();
    let rest = match last >= MAX_NAMED {
        true => format!("; and {} more", last + 1 - MAX_NAMED),
        false => String::new(),
    };
    Some(format!(
        "limit is not a bound for {} of {} rows, which is a fault of the race: {} takes less time ({}{rest})",
        beaten.len(),
        ratios.iter().filter(|ratio| limit(&ratio.against)).count(),
        beaten[0].environment,
        named.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(against: &str, bytes: u64, median: f64, verdict: Verdict) -> Ratio {
        Ratio {
            suite: "primitives".into(),
            operation: "exchange".into(),
            network: "local".into(),
            tasks: 2,
            bytes,
            environment: "regatta".into(),
            against: against.into(),
            median,
            ci95: [median - 0.02, median + 0.02],
            rounds: 10,
            launches: 3,
            verdict,
            more_seconds: 0.0,
        }
    }

    #[test]
    fn rows_below_the_limit_are_named_and_no_others() {
        let is_limit = |name: &str| name == "limit";
        let mut ratios = vec![
            ratio("openmpi", 8, 0.5, Verdict::Ahead),
            ratio("limit", 8, 1.2, Verdict::Behind),
            ratio("limit", 64, 0.9, Verdict::Undecided),
            ratio("limit", 256, 0.99, Verdict::Tie),
        ];
        assert_eq!(note(&ratios, is_limit), None);
        ratios.push(ratio("limit", 1024, 0.91, Verdict::Ahead));
        ratios.push(ratio("limit", 4096, 0.85, Verdict::Ahead));
        let said = note(&ratios, is_limit).expect("two are beaten");
        assert!(said.contains("2 of 5 rows"), "{said}");
        let worst_first = "(exchange of 4096 B, 2 tasks: 0.85; exchange of 1024 B, 2 tasks: 0.91)";
        assert!(said.contains(worst_first), "{said}");
        ratios.extend((0..6).map(|n| ratio("limit", n, 0.95, Verdict::Ahead)));
        let said = note(&ratios, is_limit).expect("eight are beaten");
        assert!(said.contains("; and 2 more)"), "{said}");
    }
}
