//! The section of cliffs: points at which Regatta's MPI takes a multiple of the better peer's time.

use super::appearance::label;
use super::page;
use super::text::{bytes, digits, heading, html, significant};
use crate::cliffs::{self, CLIFF_RATIO, Check};
use crate::operations;
use crate::portability::targets::Kept;
use crate::results::{Results, Row};

/// The anchor of the section.
pub const ANCHOR: &str = "cliffs";

/// Returns whether this race has such a section.
pub fn is_there(results: &Results) -> bool {
    !cliffs::checks(results).is_empty()
}

/// Returns the section, which is empty for races of other suites.
pub fn section(results: &Results) -> String {
    let checks = cliffs::checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let rows: String = checks.iter().map(line).collect();
    let [found, none, open] = cliffs::count(&checks);
    let missing = cliffs::missing(results).len();
    let body = format!(
        "<p>A cliff is a point at which {} takes more than {CLIFF_RATIO:.1} times as long as the better peer, by the whole interval of the ratio. {found} points of {} are cliffs, {none} are not, {open} are not decided; {missing} more have no figure.</p>\n\
         <div class=\"wide\"><table class=\"glance\"><thead><tr><th></th><th class=\"n\">{0}</th><th>Better peer</th><th class=\"n\"></th>\
         <th class=\"n\">Ratio</th><th>Verdict</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        html(&label(results.ours())),
        checks.len(),
    );
    page::section(ANCHOR, "Cliffs", &body)
}

fn line(check: &Check<'_>) -> String {
    let class = match check.kept {
        Kept::Yes => "better",
        Kept::No => "worse",
        Kept::Open => "open",
    };
    let [low, high] = check.ci95.map(|end| significant(end, 3));
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{} us</td><td>{}</td><td class=\"n\">{} us</td>\
         <td class=\"cell {class}\">{}<span class=\"sub\">{low}–{high}</span></td><td>{}</td></tr>\n",
        html(&place(check.row)),
        digits(check.row.median),
        html(&label(&check.peer.environment)),
        digits(check.peer.median),
        significant(check.ratio, 3),
        cliffs::verdict(check.kept),
    )
}

/// Returns the operation, its tasks and its size, for readers.
pub(super) fn place(row: &Row) -> String {
    let size = match operations::described_size(&row.operation, row.bytes) {
        Some(size) => format!(", {size}"),
        None if row.bytes == 0 => String::new(),
        None => format!(", {}", bytes(row.bytes)),
    };
    format!("{}, {} tasks{size}", heading(&row.operation), row.tasks)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, row};
    use super::*;
    use crate::suites::CLIFFS;

    #[test]
    fn a_cliff_is_marked_and_counted() {
        let mut results = sample::results();
        let in_suite = |environment, us| Row {
            suite: CLIFFS.name.into(),
            ..row("info-keys", environment, 2, 4000, us)
        };
        results
            .rows
            .extend([in_suite("regatta", 50.0), in_suite("openmpi", 1.0)]);
        let text = section(&results);
        assert!(text.contains("1 points of 1 are cliffs"), "{text}");
        assert!(text.contains("2 tasks, 4000 keys"), "{text}");
        assert!(text.contains("cell worse\">50.0<"), "{text}");
    }

    #[test]
    fn a_race_of_other_suites_has_no_such_section() {
        assert_eq!(section(&sample::results()), "");
    }
}
