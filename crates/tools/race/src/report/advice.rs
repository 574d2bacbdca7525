//! The first screen: which library to use for which pattern of communication on this machine, and how certain that is.
//!
//! A pattern is a set of points. The recommended library has the smallest distance to the best one, summed over these
//! points on a logarithmic scale. A library that was not measured at a point counts there as [`MISSING`] times as slow.
//! The table shows at how many points the library is ahead of the best of the others, and the range of these ratios.

use std::collections::BTreeSet;

use super::appearance::{TRUSTED, full_name, is_peer, label};
use super::page;
use super::text::{count, html, ratio as rounded};
use crate::operations::{self, Kind, Operation, Pattern as Messages};
use crate::results::{Metric, Point, Results, Row};
use crate::stats::Verdict;

/// Maximum size of a short message, in bytes.
const MAX_SHORT_BYTES: u64 = 4 << 10;
/// Ratio to the best library that counts for a library without a figure at a point.
const MISSING: f64 = 10.0;

/// A pattern of communication, as users of a library distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pattern {
    Short,
    Long,
    Collectives,
    Crowd,
    Hosts,
    Applications,
    Starts,
    Idle,
}

impl Pattern {
    /// Returns the pattern of a point, or `None` if this version does not know the operation, or if the metric is part
    /// of a time that is compared itself.
    fn of(results: &Results, row: &Row) -> Option<Pattern> {
        let operation = operations::find(&row.operation)?;
        let told = matches!(
            row.metric,
            Metric::Communication | Metric::Volume | Metric::Messages | Metric::Waiting
        );
        let crowded = row.tasks > results.machine.cores && results.machine.cores > 0;
        Some(match operation.kind {
            // These are parts of a time that is compared itself.
            _ if told => return None,
            Kind::Application => Pattern::Applications,
            Kind::JoinLeave | Kind::Spawn | Kind::Notify => Pattern::Starts,
            Kind::IdleMemory | Kind::IdleProcessor => Pattern::Idle,
            Kind::Points if row.network != "local" => Pattern::Hosts,
            Kind::Points if crowded => Pattern::Crowd,
            Kind::Points if !is_between_two(operation) => Pattern::Collectives,
            Kind::Points if row.bytes <= MAX_SHORT_BYTES => Pattern::Short,
            Kind::Points => Pattern::Long,
        })
    }

    /// Returns its name in a sentence, after `for`.
    fn name(self) -> &'static str {
        match self {
            Pattern::Short => "short messages",
            Pattern::Long => "long messages",
            Pattern::Collectives => "collectives",
            Pattern::Crowd => "more tasks than cores",
            Pattern::Hosts => "messages between hosts",
            Pattern::Applications => "whole applications",
            Pattern::Starts => "job starts",
            Pattern::Idle => "tasks that wait",
        }
    }

    /// Returns a description of its points.
    fn about(self) -> &'static str {
        match self {
            Pattern::Short => "up to 4 KiB, between tasks with a core each",
            Pattern::Long => "above 4 KiB, between tasks with a core each",
            Pattern::Collectives => {
                "barriers, broadcasts, sums, exchanges among all, with a core for each task"
            }
            Pattern::Crowd => "messages and collectives of tasks that share cores",
            Pattern::Hosts => "messages and collectives over a network",
            Pattern::Applications => "their time from beginning to end",
            Pattern::Starts => "until tasks have joined, or are known to have ended",
            Pattern::Idle => "memory, and processor time while blocked",
        }
    }
}

fn is_between_two(operation: &Operation) -> bool {
    operation.pattern == Messages::Messages
        || operation.exactly == Some(2)
        || operation.metric == Metric::OneWay
}

/// The certainty of a recommendation, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confidence {
    /// Ahead at every point, beyond the noise.
    Sure,
    /// Behind at no point, and undecided at less than half of the points.
    Fairly,
    /// Behind at some points.
    Mixed,
    /// Undecided at half of the points or more.
    Open,
}

/// The recommendation for a pattern.
struct Advice<'a> {
    pattern: Pattern,
    library: &'a str,
    /// Numbers of points at which it is ahead of the best of the others, ties with it, is behind it, and is undecided.
    ahead: usize,
    tie: usize,
    behind: usize,
    open: usize,
    /// The smallest and the largest ratio of its time to that of the best of the others.
    ratios: Option<[f64; 2]>,
    /// The library that is ahead of it most often.
    rival: Option<&'a str>,
}

/// Returns the libraries that a reader can choose from.
fn libraries(results: &Results) -> Vec<&str> {
    let own = results.ours();
    let names = results.environments.iter().map(|one| one.name.as_str());
    names
        .filter(|name| *name == own || (is_peer(results, name) && *name != TRUSTED))
        .collect()
}

fn all(results: &Results) -> Vec<Advice<'_>> {
    let libraries = libraries(results);
    let mut points: BTreeSet<(Pattern, Point<'_>)> = BTreeSet::new();
    for row in results.rows.iter().filter(|row| row.measured()) {
        if libraries.contains(&row.environment.as_str()) {
            points.extend(Pattern::of(results, row).map(|pattern| (pattern, row.point())));
        }
    }
    let patterns: BTreeSet<Pattern> = points.iter().map(|point| point.0).collect();
    let of = |pattern: Pattern| {
        let here = points.iter().filter(|point| point.0 == pattern);
        let rows: Vec<Vec<&Row>> = here
            .map(|(_, point)| {
                let same = |row: &&Row| {
                    row.point() == *point
                        && row.measured()
                        && libraries.contains(&row.environment.as_str())
                };
                results.rows.iter().filter(same).collect()
            })
            .collect();
        advise(results, pattern, &libraries, &rows)
    };
    patterns.into_iter().filter_map(of).collect()
}

/// Returns the best of these rows of one point.
fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    let better = |a: &&Row, b: &&Row| match a.metric.smaller_is_better() {
        true => a.median.total_cmp(&b.median),
        false => b.median.total_cmp(&a.median),
    };
    rows.min_by(better)
}

/// Returns the library that is nearest to the best one over all of these points.
fn recommended<'a>(
    results: &Results,
    libraries: &[&'a str],
    compared: &[&Vec<&Row>],
) -> Option<&'a str> {
    let distance = |library: &str| -> f64 {
        let at = |rows: &&Vec<&Row>| {
            let first = best(rows.iter().copied());
            let mine = rows.iter().find(|row| row.environment == library);
            let ratio = mine
                .zip(first)
                .map(|(mine, first)| results.ratio(mine, first));
            // A ratio to zero is not finite.
            ratio.map_or(MISSING, |ratio| match ratio.is_finite() {
                true => ratio.max(1.0),
                false => 1.0,
            })
        };
        compared.iter().map(|rows| at(rows).ln()).sum()
    };
    let raced = |library: &&&str| {
        let mut rows = compared.iter().flat_map(|rows| rows.iter());
        rows.any(|row| row.environment == **library)
    };
    libraries
        .iter()
        .filter(raced)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .copied()
}

fn advise<'a>(
    results: &'a Results,
    pattern: Pattern,
    libraries: &[&'a str],
    points: &[Vec<&'a Row>],
) -> Option<Advice<'a>> {
    // A point that only one library has is no comparison.
    let compared: Vec<&Vec<&Row>> = points.iter().filter(|rows| rows.len() > 1).collect();
    let library = recommended(results, libraries, &compared)?;
    let mut advice = Advice {
        pattern,
        library,
        ahead: 0,
        tie: 0,
        behind: 0,
        open: 0,
        ratios: None,
        rival: None,
    };
    let mut rivals: Vec<&str> = Vec::new();
    for rows in compared {
        let mine = rows.iter().find(|row| row.environment == library);
        let other = best(
            rows.iter()
                .copied()
                .filter(|row| row.environment != library),
        );
        let (Some(mine), Some(other)) = (mine, other) else {
            continue;
        };
        match results.verdict(mine, other) {
            Verdict::Ahead => advice.ahead += 1,
            Verdict::Tie => advice.tie += 1,
            Verdict::Undecided => advice.open += 1,
            Verdict::Behind => {
                advice.behind += 1;
                rivals.push(&other.environment);
            }
        }
        let ratio = results.ratio(mine, other);
        if ratio.is_finite() && ratio > 0.0 {
            let [low, high] = advice.ratios.unwrap_or([ratio; 2]);
            advice.ratios = Some([low.min(ratio), high.max(ratio)]);
        }
    }
    let often = |name: &&&str| rivals.iter().filter(|rival| rival == name).count();
    advice.rival = rivals.iter().max_by_key(often).copied();
    Some(advice)
}

impl Advice<'_> {
    fn points(&self) -> usize {
        self.ahead + self.tie + self.behind + self.open
    }

    fn sure(&self) -> Confidence {
        let half = self.points().div_ceil(2);
        match self {
            one if one.ahead == one.points() => Confidence::Sure,
            one if one.open >= half.max(1) => Confidence::Open,
            one if one.behind > 0 => Confidence::Mixed,
            _ => Confidence::Fairly,
        }
    }

    /// Returns a line of the table.
    fn line(&self, results: &Results) -> String {
        let (class, word) = match self.sure() {
            Confidence::Sure => ("better", "sure"),
            Confidence::Fairly => ("better", "fairly sure"),
            Confidence::Mixed => ("tie", "depends"),
            Confidence::Open => ("none", "not decided"),
        };
        let parts = [
            (self.ahead, "ahead at"),
            (self.tie, "tie at"),
            (self.behind, "behind at"),
            (self.open, "not decided at"),
        ];
        let points = self.points();
        let mut told: Vec<String> = parts
            .into_iter()
            .filter(|part| part.0 > 0)
            .map(|(number, words)| match number == points {
                true if points == 1 => format!("{words} the only point"),
                true => format!("{words} all {points} points"),
                false => format!("{words} {number}"),
            })
            .collect();
        if told.len() > 1 {
            told[0] += &format!(" of {}", count(points as u64, "point"));
        }
        let rival = self.rival.map_or_else(String::new, |rival| {
            format!("; where it is behind, mostly {} leads", label(rival))
        });
        let ratios = self.ratios.map_or_else(String::new, |[low, high]| {
            let [low, high] = [low, high].map(rounded);
            match low == high {
                true => format!("{low} of the best other's"),
                false => format!("{low} to {high} of the best other's"),
            }
        });
        format!(
            "<tr><th scope=\"row\">{}<span class=\"sub\">{}</span></th><td><b>{}</b><span class=\"sub\">{ratios}</span></td>\
             <td><span class=\"chip {class}\">{word}</span><span class=\"sub\">{}</span></td></tr>\n",
            capital(self.pattern.name()),
            html(self.pattern.about()),
            html(&full_name(results, self.library)),
            html(&(told.join(", ") + &rival)),
        )
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Returns names as a list in a sentence: `A`, `A and B`, `A, B and C`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns a sentence on the certainty: for `sure` of `all` patterns it is sure, for `fairly` fairly sure.
fn in_all(sure: usize, fairly: usize, all: usize) -> String {
    match (sure, fairly) {
        (1, 0) if all == 1 => return "This is sure.".to_owned(),
        (sure, 0) if sure == all => return format!("This is sure for all {all} patterns."),
        (0, 0) => {
            return "None of this is sure at all points, because of noise or because it depends on the size."
                .to_owned();
        }
        _ => {}
    }
    let said = [(sure, "sure"), (fairly, "fairly sure")];
    let said = said.iter().filter(|(number, _)| *number > 0);
    let said: Vec<String> = said
        .map(|(number, how)| format!("{how} for {number}"))
        .collect();
    let patterns = if all == 1 { "pattern" } else { "patterns" };
    let others = match sure + fairly < all {
        true => "; see below for the others",
        false => "",
    };
    format!(
        "This is {} of {all} {patterns}{others}.",
        said.join(" and ")
    )
}

/// Returns a sentence with the answer and one on its certainty, or `None` if no two libraries were measured at the same
/// point.
pub fn sentences(results: &Results) -> Option<[String; 2]> {
    let advice = all(results);
    let mut libraries: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &advice {
        match libraries.iter_mut().find(|known| known.0 == one.library) {
            Some(known) => known.1.push(one.pattern.name()),
            None => libraries.push((one.library, vec![one.pattern.name()])),
        }
    }
    libraries.sort_by_key(|library| std::cmp::Reverse(library.1.len()));
    let each: Vec<String> = libraries
        .iter()
        .map(|(library, patterns)| format!("{} for {}", label(library), listed(patterns)))
        .collect();
    let count = |wanted| advice.iter().filter(|one| one.sure() == wanted).count();
    let confidence = in_all(
        count(Confidence::Sure),
        count(Confidence::Fairly),
        advice.len(),
    );
    (!each.is_empty()).then(|| {
        [
            format!("On this machine, use {}.", each.join("; use ")),
            confidence,
        ]
    })
}

/// Returns the table of patterns, which is empty if there is no answer.
pub fn table(results: &Results) -> String {
    let lines: String = all(results).iter().map(|one| one.line(results)).collect();
    if lines.is_empty() {
        return lines;
    }
    page::section(
        "advice",
        "Which library for which pattern",
        &format!(
            "<table class=\"advice\"><thead><tr><th>Pattern</th><th>Use</th><th>How sure</th></tr></thead><tbody>\n{lines}</tbody></table>\n\
             <p class=\"small\">Figures are its time (or memory, or processor time) in units of the best other library's at the same point, the least and \
             the greatest over the pattern's points: below 1 it is ahead. <em>Sure</em>: the 95\u{a0}% interval lies on its side at every point. \
             <em>Fairly sure</em>: it is behind at no point. <em>Depends</em>: another one is ahead at some points.</p>\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::OURS;

    #[test]
    fn the_first_sentence_says_which_library_for_what_and_how_sure_that_is() {
        let results = sample::results();
        let [text, sure] = sentences(&results).expect("there are peers");
        assert!(
            text.starts_with("On this machine, use Regatta for short messages, long messages"),
            "{text}"
        );
        assert!(sure.starts_with("This is sure for"), "{sure}");
        let table = table(&results);
        for part in [
            "Short messages",
            "More tasks than cores",
            "Regatta 0.1.0",
            "of the best other",
            "How sure",
            "ahead at all",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
    }

    #[test]
    fn the_sentence_has_the_words_of_the_table() {
        assert_eq!(in_all(6, 0, 6), "This is sure for all 6 patterns.");
        assert_eq!(
            in_all(1, 5, 6),
            "This is sure for 1 and fairly sure for 5 of 6 patterns."
        );
        assert!(
            in_all(0, 2, 6)
                .starts_with("This is fairly sure for 2 of 6 patterns; see below for the others")
        );
        assert_eq!(in_all(0, 1, 1), "This is fairly sure for 1 of 1 pattern.");
    }

    #[test]
    fn another_library_is_named_where_it_is_better() {
        let mut results = sample::results();
        for row in &mut results.rows {
            if row.environment == OURS && row.bytes > MAX_SHORT_BYTES {
                (row.median, row.ci95) = (row.median * 50.0, row.ci95.map(|end| end * 50.0));
            }
        }
        let [text, _] = sentences(&results).expect("there are peers");
        assert!(text.contains("; use Open MPI for long messages"), "{text}");
    }

    #[test]
    fn a_pattern_within_the_noise_is_not_called_sure() {
        let mut results = sample::results();
        for row in &mut results.rows {
            row.ci95 = [row.median * 1e-6, row.median * 1e6];
        }
        let [_, text] = sentences(&results).expect("there are peers");
        assert!(
            text.contains("None of this is sure at all points"),
            "{text}"
        );
        assert!(table(&results).contains("not decided"));
    }

    #[test]
    fn a_race_of_one_library_recommends_nothing() {
        let mut results = sample::results();
        results.rows.retain(|row| row.environment == OURS);
        assert_eq!(sentences(&results), None);
        assert_eq!(table(&results), "");
    }
}
