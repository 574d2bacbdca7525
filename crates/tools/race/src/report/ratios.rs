//! The picture of ratios: one line for each headline, a dot for the ratio to the best peer and a bar for its interval.
//!
//! It is made of boxes whose positions are percentages of the width, so that it fits a phone and a sheet of paper, and
//! needs no script.

use super::appearance::label;
use super::headline::Headline;
use super::page;
use super::scoreboard::what;
use super::text::{count, html, ratio as rounded};
use crate::operations;
use crate::results::Results;
use crate::stats::Verdict;

/// Largest ratio of the axis; its inverse is the smallest. A ratio beyond is drawn at the edge, with its figure.
const MAX_RATIO: f64 = 8.0;
/// Ratios with a line and a label.
const MARKS: [(f64, &str); 7] = [
    (0.125, "⅛"),
    (0.25, "¼"),
    (0.5, "½"),
    (1.0, "1"),
    (2.0, "2"),
    (4.0, "4"),
    (8.0, "8"),
];
/// Maximum number of lines of the picture. Further headlines of a race of whole suites are only in the tables below.
const MAX_LINES: usize = 40;

/// Returns the position of a ratio, in per cent of the width.
fn place(ratio: f64) -> f64 {
    let clamped = ratio.clamp(1.0 / MAX_RATIO, MAX_RATIO);
    50.0 + 50.0 * clamped.ln() / MAX_RATIO.ln()
}

/// Returns the section, which is empty if no headline has a peer.
pub fn section(results: &Results, headlines: &[Headline<'_>]) -> String {
    let all: Vec<String> = headlines
        .iter()
        .filter(|one| {
            // Applications have a section with bars, which shows more.
            operations::size(&one.ours.operation, 0).is_none()
        })
        .filter_map(|one| line(results, one))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let marks: String = MARKS
        .iter()
        .map(|(ratio, text)| format!("<span style=\"left:{:.1}%\">{text}</span>", place(*ratio)))
        .collect();
    let left = match all.len().saturating_sub(MAX_LINES) {
        0 => String::new(),
        more => format!("<p class=\"small\">{more} more stand in the scoreboard.</p>\n"),
    };
    let lines = all[..all.len().min(MAX_LINES)].concat();
    page::section(
        "ratios",
        "Against the best other library",
        &format!(
            "<p>Regatta's time (or memory) divided by the best other library's. Left of the line in the middle Regatta is ahead; the bar is the \
             95\u{a0}% interval.</p>\n<div class=\"ratios\" role=\"table\">\n<div class=\"ratio marks\" aria-hidden=\"true\"><span></span>\
             <span class=\"track\">{marks}</span><span></span></div>\n{lines}</div>\n{left}"
        ),
    )
}

fn line(results: &Results, one: &Headline<'_>) -> Option<String> {
    let best = one.best?;
    let ratio = one.ratio(one.best)?;
    let [low, high] = one.ratio_range(best)?;
    let class = match one.verdict()? {
        Verdict::Ahead => "ahead",
        Verdict::Behind => "behind",
        Verdict::Tie => "tied",
        Verdict::Undecided => "open",
    };
    let (from, to) = (place(low), place(high));
    let place_of = format!(
        "{} on {}{}",
        count(one.ours.tasks.into(), "task"),
        count(results.machine.cores.into(), "core"),
        match one.ours.network.as_str() {
            "local" => String::new(),
            network => format!(", {network}"),
        }
    );
    Some(format!(
        "<div class=\"ratio {class}\" role=\"row\"><span class=\"name\" role=\"rowheader\">{}<span class=\"sub\">{}</span></span>\
         <span class=\"track\" role=\"cell\" aria-label=\"interval {} to {}\"><i class=\"bar\" style=\"left:{from:.1}%;width:{:.1}%\"></i>\
         <i class=\"dot\" style=\"left:{:.1}%\"></i></span><span class=\"n\" role=\"cell\">{}<span class=\"sub\">{}</span></span></div>\n",
        html(&what(one.ours)),
        html(&place_of),
        rounded(low),
        rounded(high),
        (to - from).max(0.6),
        place(ratio),
        rounded(ratio),
        html(&label(&best.environment)),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn each_ratio_has_its_tasks_cores_and_rival() {
        let results = sample::results();
        let text = section(&results, &Headline::all(&results));
        for part in [
            "One-to-one, 8 B",
            "2 tasks on 2 cores",
            "32 tasks on 2 cores",
            "Open MPI",
            "class=\"ratio ahead\"",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn places_stay_within_the_picture() {
        assert_eq!([place(0.0), place(1.0), place(1e9)], [0.0, 50.0, 100.0]);
        assert!((place(2.0) - 66.7).abs() < 0.1);
        let results = Results {
            rows: Vec::new(),
            ..sample::results()
        };
        assert_eq!(section(&results, &Headline::all(&results)), "");
    }
}
