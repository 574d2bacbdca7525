//! Warnings to read before trusting a number: notes on the race, flags on rows.

use std::collections::BTreeMap;

use super::page;
use super::text::{count, digits, html, size};
use crate::collect::{CANNOT, INTERRUPTED};
use crate::results::{Results, Row};

/// Maximum ratio of the 95 % to the 5 % quantile of the cache line's time at which the machine counts as steady.
const MAX_LINE_RATIO: f64 = 1.5;
/// Maximum number of points named for each flag. The table shows all.
const MAX_NAMED_POINTS: usize = 6;

const FEW: &str = "few-launches";
const LEFT_OUT: &str = "unsteady-launches-left-out";

/// The meanings of flags, by their prefixes.
const MEANINGS: [(&str, &str); 7] = [
    (
        INTERRUPTED,
        "the race was interrupted before this was measured",
    ),
    (
        CANNOT,
        "the environment cannot run this, or not with this number of tasks",
    ),
    (
        "time-out",
        "the launch did not end in time; such a row has no value",
    ),
    (FEW, "fewer launches than planned, so the interval is wide"),
    (
        "unsteady-machine",
        "the machine's own cache-line time varied while this point was measured",
    ),
    (
        "unsteady-launches-left-out",
        "launches in unsteady periods were not counted",
    ),
    ("not-pinned", "processes could not be pinned to cores"),
];

/// Returns whether the point has a flag that puts its value in doubt. Launches that were left out do not, and few
/// launches show as a wide interval. The section lists these flags too.
pub fn doubtful(row: &Row) -> bool {
    row.flags
        .iter()
        .any(|flag| flag != FEW && !flag.starts_with(LEFT_OUT))
}

/// Returns one line for the top of the page, which is empty if there is nothing to warn of.
pub fn summary(results: &Results) -> String {
    let number =
        |wanted: &dyn Fn(&Row) -> bool| results.rows.iter().filter(|row| wanted(row)).count();
    let points = |number: usize| count(number as u64, "point");
    let reached = |row: &Row| !row.flags.iter().any(|flag| flag == INTERRUPTED);
    let failed = number(&|row| !row.measured() && reached(row));
    let missed = number(&|row| !reached(row));
    let doubted = number(&|row| row.measured() && doubtful(row));
    let mut parts = Vec::new();
    parts.extend((failed > 0).then(|| format!("{} failed", points(failed))));
    parts.extend((missed > 0).then(|| format!("{} not measured", points(missed))));
    parts.extend((doubted > 0).then(|| format!("{} in doubt", points(doubted))));
    parts.extend(unsteady(results).map(|_| "the machine was not steady".to_owned()));
    parts.extend((!results.notes.is_empty()).then(|| count(results.notes.len() as u64, "note")));
    if parts.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"notice\"><b class=\"flag\">!</b> {}. <a href=\"#warnings\">Read the warnings.</a></p>\n",
        parts.join("; ")
    )
}

/// Returns the section of notes, the machine's steadiness, and the flags with their points.
pub fn section(results: &Results) -> String {
    let mut items: Vec<String> = results.notes.iter().map(|note| html(note)).collect();
    items.extend(unsteady(results));
    let mut flags: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &results.rows {
        for flag in &row.flags {
            // The number of launches left out is in the table.
            let flag = if flag.starts_with(LEFT_OUT) {
                LEFT_OUT
            } else {
                flag
            };
            flags.entry(flag).or_default().push(row);
        }
    }
    items.extend(flags.iter().map(|(flag, rows)| flagged(flag, rows)));
    let body = if items.is_empty() {
        "<p>None: no point carries a flag, and the machine was steady.</p>\n".into()
    } else {
        format!(
            "<ul class=\"rules\">\n{}</ul>\n",
            items
                .iter()
                .map(|item| format!("<li>{item}</li>\n"))
                .collect::<String>()
        )
    };
    page::section("warnings", "Warnings", &body)
}

fn unsteady(results: &Results) -> Option<String> {
    let [low, high] = results.machine.line_ns_range;
    let text = || {
        format!(
            "The machine was not steady: one way of a cache line took {} to {} ns during the race (5 % to 95 %). \
             Interleaving spreads this over all environments; absolute times may be worse than on a quiet machine.",
            digits(low),
            digits(high)
        )
    };
    (low > 0.0 && high > low * MAX_LINE_RATIO).then(text)
}

fn flagged(flag: &str, rows: &[&Row]) -> String {
    let meaning = MEANINGS
        .iter()
        .find(|(name, _)| flag.starts_with(name))
        .map_or(String::new(), |m| format!(" ({})", m.1));
    let named: Vec<String> = rows
        .iter()
        .take(MAX_NAMED_POINTS)
        .map(|row| {
            format!(
                "{} {}, {}, {}",
                row.environment,
                row.operation,
                count(row.tasks.into(), "task"),
                size(&row.operation, row.bytes)
            )
        })
        .collect();
    let more = if rows.len() > MAX_NAMED_POINTS {
        format!("; and {} more in the table", rows.len() - MAX_NAMED_POINTS)
    } else {
        String::new()
    };
    format!(
        "<b class=\"flag\">{}</b>{meaning}: {}{more}",
        html(flag),
        html(&named.join("; "))
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn flags_notes_and_an_unsteady_machine_are_told() {
        let mut results = sample::results();
        results.machine.line_ns_range = [50.0, 210.0];
        let section = section(&results);
        for part in [
            "--oversubscribe",
            "not steady",
            "50.0 to 210 ns",
            "time-out",
            "pvm global-sum, 32 tasks, 8 B",
        ] {
            assert!(section.contains(part), "{part} in {section}");
        }
        assert!(
            summary(&results).contains("7 points failed; 1 point in doubt; the machine"),
            "{}",
            summary(&results)
        );
        let row = |flag: &str| Row {
            flags: vec![flag.into()],
            ..results.rows[0].clone()
        };
        assert!(
            doubtful(&row("not-pinned"))
                && !doubtful(&row("few-launches"))
                && !doubtful(&row("unsteady-launches-left-out: 1"))
        );
    }

    #[test]
    fn nothing_to_warn_of_is_said_too() {
        let mut results = sample::results();
        results.rows.retain(Row::measured);
        results.notes.clear();
        results.rows.iter_mut().for_each(|row| row.flags.clear());
        assert_eq!(summary(&results), "");
        assert!(section(&results).contains("None"));
    }
}
