//! Overview of the race: a cell for each point, with the ratio to the best peer and its certainty.
//!
//! Rows are operations, columns are sizes (or numbers of tasks). The colour is the verdict, its strength the distance
//! from 1. A dashed cell is an undecided point. On a narrow screen the intervals are not shown.

use std::collections::BTreeSet;

use super::appearance::label;
use super::headline::Headline;
use super::page;
use super::text::{bytes, heading, html, ratio as rounded};
use crate::results::{Metric, Results, Row};
use crate::stats::Verdict;
use crate::suites::{self, OVERSUBSCRIBED};

/// Returns the section, which is empty if no point has a peer.
pub fn section(results: &Results) -> String {
    let points: Vec<Headline> = results
        .rows_of(results.ours())
        .filter(|row| suites::find(&row.suite).is_some_and(|suite| suite.glance))
        .map(|ours| Headline::of(results, ours))
        .filter(|point| point.verdict().is_some())
        .collect();
    if points.is_empty() {
        return String::new();
    }
    let pairs = |point: &&Headline| point.ours.suite != OVERSUBSCRIBED.name;
    let by_size = grid(
        &points.iter().filter(pairs).collect::<Vec<_>>(),
        |row| row.bytes,
        bytes,
        |row| match row.tasks {
            2 => heading(&row.operation),
            tasks => format!("{}, {tasks} tasks", heading(&row.operation)),
        },
    );
    let by_tasks = grid(
        &points
            .iter()
            .filter(|point| !pairs(point))
            .collect::<Vec<_>>(),
        |row| row.tasks.into(),
        |tasks| format!("{tasks} tasks"),
        |row| match row.bytes {
            0 => heading(&row.operation),
            size => format!("{}, {}", heading(&row.operation), bytes(size)),
        },
    );
    let body = format!(
        "<p>Time of Regatta in units of the best peer's, by operation and size of message; below 1, Regatta is ahead. In small print the \
         95\u{a0}% interval.</p>\n<p class=\"key\">{}</p>\n{by_size}{by_tasks}",
        [
            ("better", "ahead"),
            ("tie", "tie: between 1/1.05 and 1.05"),
            ("worse", "behind"),
            ("open", "not decided")
        ]
        .map(|(class, words)| format!("<span class=\"cell {class}\">{words}</span>"))
        .join(" ")
    );
    page::section("glance", "At a glance", &body)
}

/// Returns a table of points: a row for each name, a column for each key.
fn grid(
    points: &[&Headline],
    key: impl Fn(&Row) -> u64,
    head: impl Fn(u64) -> String,
    name: impl Fn(&Row) -> String,
) -> String {
    if points.is_empty() {
        return String::new();
    }
    let columns: BTreeSet<u64> = points.iter().map(|point| key(point.ours)).collect();
    let mut names: Vec<String> = Vec::new();
    for point in points {
        let name = name(point.ours);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let heads: String = columns
        .iter()
        .map(|&column| format!("<th class=\"n\">{}</th>", html(&head(column))))
        .collect();
    let line = |wanted: &String| {
        let cells: String = columns
            .iter()
            .map(|&column| {
                let here =
                    |point: &&&Headline| key(point.ours) == column && name(point.ours) == *wanted;
                points
                    .iter()
                    .find(here)
                    .map_or("<td></td>".into(), |point| cell(point))
            })
            .collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", html(wanted))
    };
    let lines: String = names.iter().map(line).collect();
    format!(
        "<div class=\"wide\"><table class=\"glance\"><thead><tr><th></th>{heads}</tr></thead><tbody>\n{lines}</tbody></table></div>\n"
    )
}

fn cell(point: &Headline) -> String {
    let (Some(best), Some(ratio)) = (point.best, point.ratio(point.best)) else {
        return "<td></td>".into();
    };
    let class = match point.verdict() {
        Some(Verdict::Ahead) => "better",
        Some(Verdict::Behind) => "worse",
        Some(Verdict::Tie) => "tie",
        _ => "open",
    };
    let range = point.ratio_range(best);
    let range = range.map_or(String::new(), |[low, high]| {
        format!("{}–{}", rounded(low), rounded(high))
    });
    // Half or twice the time has the full strength.
    let strength = (ratio.ln().abs() / std::f64::consts::LN_2).clamp(0.25, 1.0);
    let what = match point.ours.metric {
        Metric::Rate => "time for a message",
        _ => "time",
    };
    format!(
        "<td class=\"cell {class}\" style=\"--strength:{strength:.2}\" title=\"{what} in units of {}\">{}<span class=\"sub\">{range}</span></td>",
        html(&label(&best.environment)),
        rounded(ratio),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::OURS;
    use crate::results::Ratio;

    #[test]
    fn every_point_with_a_peer_has_a_cell() {
        let results = sample::results();
        let text = section(&results);
        let points = results
            .rows_of(OURS)
            .filter(|row| matches!(row.suite.as_str(), "primitives" | "oversubscribed"));
        assert_eq!(text.matches("<td class=\"cell").count(), points.count());
    }

    #[test]
    fn turns_decide_where_there_were_any() {
        let mut results = sample::results();
        let ours = results
            .rows_of(OURS)
            .find(|row| row.operation == "one-to-one" && row.bytes == 8)
            .expect("in the sample")
            .clone();
        results.ratios = results
            .environments
            .iter()
            .filter(|one| one.name != OURS)
            .map(|other| Ratio {
                suite: ours.suite.clone(),
                operation: ours.operation.clone(),
                network: ours.network.clone(),
                tasks: ours.tasks,
                bytes: ours.bytes,
                environment: OURS.into(),
                against: other.name.clone(),
                median: 1.31,
                ci95: [0.9, 1.7],
                rounds: 30,
                launches: 3,
                verdict: Verdict::Undecided,
                more_seconds: 9.0,
            })
            .collect();
        let text = section(&results);
        assert!(
            text.contains("cell open") && text.contains(">1.31<"),
            "{text}"
        );
    }

    #[test]
    fn a_race_without_regatta_has_no_such_section() {
        let mut results = sample::results();
        results.rows.retain(|row| row.environment != OURS);
        assert_eq!(section(&results), "");
    }
}
