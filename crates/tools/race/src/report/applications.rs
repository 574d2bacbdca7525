//! Applications as bars with their intervals: a group for each problem and number of tasks, a bar for each environment.
//!
//! Bars begin at 0, so that their lengths can be compared. They are boxes whose positions are percentages of the width.

use super::appearance::Look;
use super::page;
use super::text::{count, digits, heading, html, scale, size};
use crate::operations;
use crate::results::{Metric, Point, Results, Row};

/// The anchor of the section.
pub const ANCHOR: &str = "applications";

/// Maximum number of groups of an application that is shown open. Others are opened by the reader.
const MAX_OPEN: usize = 8;

fn points(results: &Results) -> Vec<Point<'_>> {
    let here = |row: &&Row| {
        row.measured()
            && row.metric == Metric::Time
            && operations::size(&row.operation, 0).is_some()
    };
    operations::distinct(results.rows.iter().filter(here).map(Row::point))
}

/// Returns whether this race has such a section.
pub fn is_there(results: &Results) -> bool {
    !points(results).is_empty()
}

/// Returns the section, which is empty for races without applications.
pub fn section(results: &Results, looks: &[Look]) -> String {
    let points = points(results);
    let names = operations::distinct(points.iter().map(|point| point.operation));
    let one = |name: &&str| {
        let mut here: Vec<&Point<'_>> = points
            .iter()
            .filter(|point| point.operation == *name)
            .collect();
        here.sort_by_key(|point| (point.bytes, point.tasks, point.suite));
        let number = here.len();
        let groups: String = here
            .into_iter()
            .map(|point| group(results, looks, point))
            .collect();
        format!(
            "<details{}><summary>{}</summary><div class=\"bars\">\n{groups}</div></details>\n",
            if number <= MAX_OPEN { " open" } else { "" },
            html(&heading(name))
        )
    };
    let all: String = names.iter().map(one).collect();
    if all.is_empty() {
        return all;
    }
    page::section(
        ANCHOR,
        "Applications",
        &format!(
            "<p>Time of whole programs, of which every one checks its answer; shorter is better. The line at the end of a bar is the 95\u{a0}% interval; \
             the figure behind it the median.</p>\n{all}"
        ),
    )
}

fn group(results: &Results, looks: &[Look], point: &Point<'_>) -> String {
    let same = |row: &&Row| row.point() == *point && row.measured();
    let rows: Vec<&Row> = results.rows.iter().filter(same).collect();
    let most = rows.iter().map(|row| row.ci95[1].max(row.median));
    let most = most.filter(|us| us.is_finite()).fold(0.0, f64::max);
    let share = |us: f64| match most > 0.0 && us.is_finite() {
        true => (us / most).clamp(0.0, 1.0) * 100.0,
        false => 0.0,
    };
    let middle = rows.iter().map(|row| row.median).fold(0.0, f64::max);
    let (factor, unit) = scale(Metric::Time, middle);
    let bars = looks.iter().filter_map(|look| {
        let row = rows.iter().find(|row| row.environment == look.name)?;
        let [low, high] = row.ci95.map(share);
        Some(format!(
            "<div class=\"run\"><span>{}</span><span class=\"track\"><i class=\"bar\" style=\"width:{:.1}%;background:{}\"></i>\
             <i class=\"whisker\" style=\"left:{low:.1}%;width:{:.1}%\"></i></span><span class=\"n\">{} {unit}</span></div>\n",
            html(&look.label),
            share(row.median),
            look.color,
            (high - low).max(0.0),
            digits(row.median * factor),
        ))
    });
    format!(
        "<div class=\"runs\"><h4>{}, {} on {}</h4>\n{}</div>\n",
        html(&size(point.operation, point.bytes)),
        count(point.tasks.into(), "task"),
        count(results.machine.cores.into(), "core"),
        bars.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::super::{appearance, sample};
    use super::*;
    use crate::suites::APPLICATIONS;
    use crate::table::tests::{results, row};

    #[test]
    fn a_run_is_a_bar_with_its_interval() {
        let of = |environment: &str, us: f64| Row {
            suite: APPLICATIONS.name.to_owned(),
            metric: Metric::Time,
            ..row("nbody", environment, 2, 1024, us)
        };
        let results = results(vec![of("regatta", 20_000.0), of("openmpi", 40_000.0)]);
        let text = section(&results, &appearance::looks(&results));
        for part in [
            "N bodies",
            "1024 bodies, 2 tasks",
            "20.0 ms",
            "40.0 ms",
            "whisker",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The upper end of the longest interval is near the whole width.
        assert!(
            text.contains("width:99.0%") && text.contains("width:49.5%"),
            "{text}"
        );
    }

    #[test]
    fn a_race_without_applications_has_no_such_section() {
        let results = sample::results();
        assert_eq!(section(&results, &appearance::looks(&results)), "");
        assert!(!is_there(&results));
    }
}
