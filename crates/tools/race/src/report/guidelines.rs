//! The section of guidelines: operations that take longer than their expression by others.

use super::appearance::label;
use super::page;
use super::text::{html, significant};
use crate::guidelines::{self, Check, MAX_GUIDELINE_RATIO};
use crate::results::Results;
use crate::table::size_of;

/// The anchor of the section.
pub const ANCHOR: &str = "guidelines";

/// Returns whether this race has such a section.
pub fn is_there(results: &Results) -> bool {
    !guidelines::checks(results).is_empty()
}

/// Returns the section, which is empty for races of other suites.
pub fn section(results: &Results) -> String {
    let checks = guidelines::checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let counts = guidelines::counts(&checks);
    let counts: String = counts.iter().map(count).collect();
    let broken: String = guidelines::broken(results).iter().map(line).collect();
    let body = format!(
        "<p>No operation should take longer than its expression by other operations, no message longer than one of more bytes, no collective longer than one of more tasks, and no call of Regatta's own interface longer than the same call through an interface above it (Träff, Gropp and Thakur, 2010). A guideline is broken if the whole interval of the ratio lies above {MAX_GUIDELINE_RATIO:.1}.</p>\n\
         <div class=\"wide\"><table class=\"glance\"><thead><tr><th></th><th class=\"n\">Broken</th><th class=\"n\">Kept</th>\
         <th class=\"n\">Not decided</th></tr></thead><tbody>\n{counts}</tbody></table></div>\n\
         <div class=\"wide\"><table class=\"glance\"><thead><tr><th>Broken</th><th>Guideline</th><th class=\"n\">Tasks</th><th class=\"n\">Size</th>\
         <th class=\"n\">Ratio</th></tr></thead><tbody>\n{broken}</tbody></table></div>\n",
    );
    page::section(ANCHOR, "Guidelines", &body)
}

fn count((name, [broken, kept, open]): &(&str, [usize; 3])) -> String {
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{broken}</td><td class=\"n\">{kept}</td><td class=\"n\">{open}</td></tr>\n",
        html(&label(name)),
    )
}

fn line(check: &Check<'_>) -> String {
    let [low, high] = check.ci95.map(|end| significant(end, 3));
    let row = check.row;
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
         <td class=\"cell worse\">{}<span class=\"sub\">{low}–{high}</span></td></tr>\n",
        html(&label(&row.environment)),
        html(&check.sentence()),
        row.tasks,
        html(&size_of(&row.operation, row.bytes)),
        significant(check.ratio, 3),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, row};
    use super::*;
    use crate::results::Row;
    use crate::suites::GUIDELINES;

    #[test]
    fn broken_ones_are_listed_and_all_are_counted() {
        let mut results = sample::results();
        let in_suite = |operation, us| Row {
            suite: GUIDELINES.name.into(),
            ..row(operation, "openmpi", 2, 1024, us)
        };
        results.rows.extend([
            in_suite("broadcast", 3.0),
            in_suite("broadcast-by-scatter", 1.0),
            in_suite("broadcast-started", 5.0),
        ]);
        let text = section(&results);
        assert!(
            text.contains("broadcast &lt;= broadcast-by-scatter"),
            "{text}"
        );
        assert!(!text.contains("broadcast-started"), "{text}");
        assert!(
            text.contains("<td class=\"n\">1</td><td class=\"n\">1</td><td class=\"n\">0</td>"),
            "{text}"
        );
    }

    #[test]
    fn a_race_of_other_suites_has_no_such_section() {
        assert_eq!(section(&sample::results()), "");
    }
}
