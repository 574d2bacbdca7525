//! The table of all rows of the race, which the reader can sort and filter. The page's script creates its lines when it
//! is opened.

use super::page;
use crate::results::Results;

const HEAD: [(&str, bool); 11] = [
    ("Operation", false),
    ("Environment", false),
    ("Tasks", true),
    ("Size", true),
    ("Metric", false),
    ("Median", true),
    ("95\u{a0}% interval", true),
    ("99\u{a0}%", true),
    ("Least", true),
    ("Launches", true),
    ("Path, flags", false),
];

/// Returns the collapsed section with all rows.
pub fn section(results: &Results) -> String {
    let head: String = HEAD
        .iter()
        .map(|(name, number)| {
            format!(
                "<th{}><button type=\"button\">{name}</button></th>",
                class(*number)
            )
        })
        .collect();
    let body = format!(
        "<details><summary>{} rows, one for each operation, environment, number of tasks and size</summary>\n\
         <p><input type=\"search\" id=\"filter\" placeholder=\"Filter, e.g. barrier pvm\" aria-label=\"Filter rows\"> \
         Tap a heading to sort. The same numbers with all their digits are in results.csv beside this file.</p>\n\
         <div class=\"wide\" tabindex=\"0\"><table id=\"all\"><thead><tr>{head}</tr></thead><tbody></tbody></table></div></details>\n",
        results.rows.len()
    );
    page::section("rows", "All numbers", &body)
}

fn class(number: bool) -> &'static str {
    if number { " class=\"n\"" } else { "" }
}
