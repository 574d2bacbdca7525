//! Tables and figures of papers, with today's figures in the same layout below. [`white`] and [`maniezzo`] have those
//! of messages, [`applications`] those of whole programs.

pub mod applications;
pub mod layout;
pub mod maniezzo;
pub mod white;

use crate::operations;
use crate::reference;
use crate::results::Results;
use crate::suites::MANIEZZO_SANNA;
use layout::Layout;

/// Returns the tables and figures for which something was raced.
pub fn layouts(results: &Results) -> Vec<Layout> {
    [
        white::layouts(results),
        maniezzo::layouts(results),
        applications::layouts(results),
    ]
    .concat()
}

/// Returns the names of a paper's tables and figures, in the paper's order.
pub fn numbers(suite: &str) -> Vec<String> {
    let points = reference::points_of(suite).into_iter();
    let runs = reference::runs().into_iter();
    let runs = runs.filter(|run| run.paper == suite);
    let of_tables = points
        .map(|point| point.table)
        .chain(runs.map(|run| run.table));
    let figures = maniezzo::FIGURES
        .iter()
        .map(|number| format!("Figure {number}"));
    let figures = figures.filter(|_| suite == MANIEZZO_SANNA.name);
    let mut all = operations::distinct(of_tables.chain(figures));
    all.sort_by_key(|number| order(number));
    all
}

/// Returns the sort key of a table or figure within its paper: `Table 8.10` is after `Table 8.9`.
pub fn order(number: &str) -> Vec<u32> {
    let digits = number.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|part| part.parse().ok()).collect()
}

/// Returns these tables and figures as text for a terminal.
pub fn text(results: &Results) -> String {
    layouts(results).iter().map(Layout::text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_the_paper() {
        let white = numbers("white-1994");
        assert_eq!(white[..3], ["Table 1", "Table 2", "Table 3"]);
        assert_eq!(white.last().map(String::as_str), Some("Table 10"));
        assert!(order("Table 8.10") > order("Table 8.9"));
        assert_eq!(
            numbers(MANIEZZO_SANNA.name).last().map(String::as_str),
            Some("Figure 11")
        );
    }
}
