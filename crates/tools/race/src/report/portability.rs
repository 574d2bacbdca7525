//! The section of the cost of portable interfaces over the machine's own, in 1991 and today, and of the bounds on
//! Regatta's interfaces.

use super::appearance::{OURS, label};
use super::page;
use super::text::{bytes, digits, heading, html, significant};
use crate::operations::has_host;
use crate::portability::targets::{self, Kept};
use crate::portability::{ahmad_wu, terminal};
use crate::results::{Results, Row};
use crate::stats::Verdict;

/// The anchor of the section.
pub const ANCHOR: &str = "portability";

/// Returns whether this race has such a section.
pub fn is_there(results: &Results) -> bool {
    !ahmad_wu::lines(results).is_empty() || !targets::checks(results).is_empty()
}

/// Returns the section, which is empty for races of other suites.
pub fn section(results: &Results) -> String {
    if !is_there(results) {
        return String::new();
    }
    let body = question(results) + &bounds(results);
    page::section(ANCHOR, "What portability costs", &body)
}

fn question(results: &Results) -> String {
    let lines = ahmad_wu::lines(results);
    if lines.is_empty() {
        return String::new();
    }
    let names = ahmad_wu::interfaces(results).into_iter().map(label);
    let heads: String = names
        .map(|name| format!("<th class=\"n\">{}</th>", html(&name)))
        .collect();
    let rows: String = lines.iter().map(line).collect();
    format!(
        "<p>Time of a portable interface in units of the machine's own. <em>Then</em>: Express against NX on an iPSC/2, as measured by Ahmad and Wu in 1991 (CRPC-TR91147). <em>Now</em>: each interface against Regatta's own. A ratio whose interval includes 1 is dashed.</p>\n<div class=\"wide\"><table class=\"glance\"><thead><tr><th></th><th class=\"n\">{}</th>\
         <th class=\"n\">Then</th>{heads}</tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        html(&label(OURS)),
    )
}

fn line(line: &ahmad_wu::Line<'_>) -> String {
    let own = line.own;
    let then = line.then.map_or("–".into(), |ratio| significant(ratio, 3));
    let cells: String = line
        .now
        .iter()
        .map(|cost| match cost {
            Some(cost) => format!(
                "<td class=\"cell {}\">{}</td>",
                class(cost.verdict),
                significant(cost.ratio, 3)
            ),
            None => "<td></td>".into(),
        })
        .collect();
    format!(
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{} us</td><td class=\"n\">{then}</td>{cells}</tr>\n",
        html(&place(own, line.operation)),
        digits(own.median),
    )
}

fn place(row: &Row, operation: &str) -> String {
    let noun = if has_host(operation) { "node" } else { "task" };
    let many = if row.tasks == 1 { "" } else { "s" };
    let size = match row.bytes {
        0 => String::new(),
        size => format!(", {}", bytes(size)),
    };
    format!("{}, {} {noun}{many}{size}", heading(operation), row.tasks)
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ahead => "better",
        Verdict::Behind => "worse",
        Verdict::Tie => "tie",
        Verdict::Undecided => "open",
    }
}

fn bounds(results: &Results) -> String {
    let checks = targets::checks(results);
    if checks.is_empty() {
        return String::new();
    }
    let rows: String = checks.iter().map(check).collect();
    let kept = checks
        .iter()
        .filter(|check| check.kept == Kept::Yes)
        .count();
    format!(
        "<p>Bounds on the time of an interface in units of Regatta's own: {kept} of {} are kept. A bound is kept, or broken, by the whole \
         interval of the ratio.</p>\n<div class=\"wide\"><table class=\"glance\"><thead><tr><th></th><th>Interface</th>\
         <th class=\"n\">Ratio</th><th class=\"n\">At most</th><th>Verdict</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        checks.len(),
    )
}

fn check(check: &targets::Check<'_>) -> String {
    let class = match check.kept {
        Kept::Yes => "better",
        Kept::No => "worse",
        Kept::Open => "open",
    };
    let [low, high] = check.ci95.map(|end| significant(end, 3));
    let against = check
        .bound
        .against
        .map_or(String::new(), |other| format!(" against {}", other.name));
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"cell {class}\">{}<span class=\"sub\">{low}–{high}</span></td>\
         <td class=\"n\">{}</td><td>{}</td></tr>\n",
        html(&(place(check.row, &check.row.operation) + &against)),
        html(&label(&check.row.environment)),
        significant(check.ratio, 3),
        significant(check.bound.most, 3),
        terminal::verdict(check.kept),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, row};
    use super::*;
    use crate::suites::{AHMAD_WU_1991, INTERFACES};

    fn of_suite(suite: &str, operation: &str, environment: &str, us: f64) -> Row {
        Row {
            suite: suite.into(),
            ..row(operation, environment, 2, 2048, us)
        }
    }

    fn with(rows: Vec<Row>) -> Results {
        let mut results = sample::results();
        for row in &rows {
            let known = results
                .environments
                .iter()
                .any(|one| one.name == row.environment);
            if !known {
                let mut one = results.environments[0].clone();
                one.name = row.environment.clone();
                results.environments.push(one);
            }
        }
        results.rows.extend(rows);
        results
    }

    #[test]
    fn the_question_of_1991_stands_beside_today_s_answer() {
        let results = with(vec![
            of_suite(AHMAD_WU_1991.name, "vector-exchange", "regatta", 1.0),
            of_suite(
                AHMAD_WU_1991.name,
                "vector-exchange",
                "regatta-express",
                1.2,
            ),
        ]);
        let text = section(&results);
        assert!(text.contains("Regatta as Express") && !text.contains("Regatta as NX"));
        assert!(
            text.contains(">221<") && text.contains("cell worse\">1.20<"),
            "{text}"
        );
        assert!(!text.contains("At most"));
    }

    #[test]
    fn bounds_are_kept_or_broken() {
        let results = with(vec![
            of_suite(INTERFACES.name, "exchange", "regatta", 1.0),
            of_suite(INTERFACES.name, "vector-exchange", "regatta-express", 1.7),
        ]);
        let text = section(&results);
        assert!(
            text.contains("0 of 1 are kept") && text.contains("broken"),
            "{text}"
        );
        assert!(text.contains("against exchange"));
    }

    #[test]
    fn a_race_of_other_suites_has_no_such_section() {
        let results = sample::results();
        assert_eq!(section(&results), "");
    }
}
