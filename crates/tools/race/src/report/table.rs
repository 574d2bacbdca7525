//! Every row of the race as a table that the reader can sort and filter.

use super::appearance::Look;
use super::page;
use super::text::{bytes, count, digits, html};
use crate::results::{Results, Row};

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

/// The collapsed section with all rows.
pub fn section(results: &Results, looks: &[Look]) -> String {
    let head: String = HEAD
        .iter()
        .map(|(name, number)| {
            format!(
                "<th{}><button type=\"button\">{name}</button></th>",
                class(*number)
            )
        })
        .collect();
    let rows: String = results.rows.iter().map(|row| line(row, looks)).collect();
    let body = format!(
        "<details><summary>{} rows, one for each operation, environment, number of tasks and size</summary>\n\
         <p><input type=\"search\" id=\"filter\" placeholder=\"Filter, e.g. barrier pvm\" aria-label=\"Filter rows\"> \
         Tap a heading to sort.</p>\n\
         <div class=\"wide\"><table id=\"all\"><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div></details>\n",
        results.rows.len()
    );
    page::section("rows", "All numbers", &body)
}

fn class(number: bool) -> &'static str {
    if number { " class=\"n\"" } else { "" }
}

fn line(row: &Row, looks: &[Look]) -> String {
    let look = looks.iter().find(|look| look.name == row.environment);
    let dot = look.map_or(String::new(), |look| {
        format!("<i style=\"background:{}\"></i>", look.color)
    });
    let number = |value: f64| format!("<td class=\"n\" data-v=\"{value}\">{}</td>", digits(value));
    let unit = html(&row.unit);
    let values = if row.measured() {
        format!(
            "<td class=\"n\" data-v=\"{}\">{} <small>{unit}</small></td><td class=\"n\" data-v=\"{}\">{} – {}</td>{}{}",
            row.median,
            digits(row.median),
            row.ci95[0],
            digits(row.ci95[0]),
            digits(row.ci95[1]),
            number(row.p99),
            number(row.minimum)
        )
    } else {
        "<td class=\"n failed\" data-v=\"-1\">failed</td><td></td><td></td><td></td>".into()
    };
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend((!row.path.is_empty()).then(|| html(&row.path)));
    remarks.extend(
        (!row.flags.is_empty())
            .then(|| format!("<b class=\"flag\">{}</b>", html(&row.flags.join(", ")))),
    );
    let network = if row.network == "local" {
        String::new()
    } else {
        format!(" <small>{}</small>", html(&row.network))
    };
    format!(
        "<tr><td>{}{network}</td><td>{dot}{}</td><td class=\"n\">{}</td><td class=\"n\" data-v=\"{}\">{}</td><td>{}</td>\
         {values}<td class=\"n\" data-v=\"{}\" title=\"{}\">{}</td><td>{}</td></tr>\n",
        html(&row.operation),
        html(&row.environment),
        row.tasks,
        row.bytes,
        bytes(row.bytes),
        row.metric.name(),
        row.launches,
        count(row.samples, "sample"),
        row.launches,
        remarks.join(" ")
    )
}
