//! The data that the page's script draws and lists, as one JSON text, with each row and each text once.
//!
//! A race of all suites has thousands of rows, which are in plots and in the table. The script makes both from this
//! data, so that the page stays small. `page.js` names the columns of a row in their order.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::appearance::{LIMIT, Look, OURS};
use super::panels::{Figure, Over, Panel, Quantity};
use super::paper_points;
use super::text::{script, size};
use super::warnings::doubtful;
use crate::reference::Point;
use crate::results::{Metric, Results, Row};

/// Significant digits of numbers in the page.
const DIGITS: usize = 4;

/// Texts, each with its index.
#[derive(Default)]
struct Words {
    list: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Words {
    fn number(&mut self, word: &str) -> usize {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        self.list.push(word.to_owned());
        self.numbers.insert(word.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// Returns the script element with all rows and figures.
pub fn element(
    results: &Results,
    looks: &[Look],
    figures: &[Figure<'_>],
    reference: &[Point],
) -> String {
    let mut words = Words::default();
    let rows: Vec<Value> = results
        .rows
        .iter()
        .map(|one| row(one, looks, &mut words))
        .collect();
    let numbers: HashMap<*const Row, usize> = results
        .rows
        .iter()
        .enumerate()
        .map(|(number, row)| (std::ptr::from_ref(row), number))
        .collect();
    let figures: Vec<Value> = figures
        .iter()
        .map(|one| figure(one, &numbers, reference, &mut words))
        .collect();
    let looks: Vec<Value> = looks.iter().map(look).collect();
    let data = json!({ "words": words.list, "looks": looks, "rows": rows, "figures": figures });
    format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n",
        script(&data.to_string())
    )
}

fn look(look: &Look) -> Value {
    json!({
        "name": look.name,
        "label": look.label,
        "color": look.color,
        "mark": look.mark.name(),
        "ours": look.name == OURS,
        "limit": look.name == LIMIT,
    })
}

/// Returns a row in the order of the script's columns.
fn row(row: &Row, looks: &[Look], words: &mut Words) -> Value {
    let look = looks.iter().position(|look| look.name == row.environment);
    let values = [row.median, row.ci95[0], row.ci95[1], row.p99, row.minimum].map(number);
    let [median, low, high, p99, least] = values;
    json!([
        words.number(&row.operation),
        look,
        words.number(&row.network),
        row.tasks,
        row.bytes,
        words.number(&size(&row.operation, row.bytes)),
        words.number(row.metric.name()),
        words.number(&row.unit),
        median,
        low,
        high,
        p99,
        least,
        row.launches,
        row.samples,
        words.number(&row.path),
        words.number(&row.flags.join(", ")),
        u8::from(doubtful(row)),
    ])
}

/// Returns a number rounded to the digits that are shown, or null if it is not finite.
fn number(value: f64) -> Value {
    let rounded: f64 = format!("{value:.*e}", DIGITS - 1)
        .parse()
        .unwrap_or(f64::NAN);
    match rounded {
        whole if whole.fract() == 0.0 && whole.abs() < 1e15 => json!(whole as i64),
        other if other.is_finite() => json!(other),
        _ => Value::Null,
    }
}

fn figure(
    figure: &Figure<'_>,
    numbers: &HashMap<*const Row, usize>,
    reference: &[Point],
    words: &mut Words,
) -> Value {
    let mut panel = |panel: &Panel<'_>| {
        let then = paper_points::beside(figure, panel, reference);
        let points: Vec<Value> = then
            .iter()
            .map(|point| {
                let x = match figure.over {
                    Over::Bytes => point.bytes,
                    Over::Tasks => point.processors.into(),
                };
                let text = words.number(&paper_points::describe(point));
                json!([x, number(figure.old_value(point)), text])
            })
            .collect();
        // Each environment has one mark for each position on the axis.
        let mut rows: Vec<&Row> = panel.rows.clone();
        rows.sort_by_key(|row| (&row.environment, row.bytes, row.tasks));
        rows.dedup_by_key(|row| (&row.environment, row.bytes, row.tasks));
        let rows: Vec<usize> = rows
            .into_iter()
            .filter_map(|row| numbers.get(&std::ptr::from_ref(row)).copied())
            .collect();
        json!({ "rows": rows, "then": points, "years": paper_points::years(&then) })
    };
    let panels: Vec<Value> = figure.panels.iter().map(&mut panel).collect();
    json!({
        "title": figure.title(),
        "axis": figure.axis(),
        "over": match figure.over { Over::Bytes => "bytes", Over::Tasks => "tasks" },
        "bandwidth": figure.quantity == Quantity::Bandwidth,
        // Bars of a percentage begin at 0.
        "zero": figure.quantity == Quantity::Measured(Metric::Cpu),
        "panels": panels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_are_shown() {
        let texts =
            [0.062_163_9, 12_345.67, 3.0, f64::INFINITY].map(|value| number(value).to_string());
        assert_eq!(texts, ["0.06216", "12350", "3", "null"]);
    }

    #[test]
    fn a_word_stands_there_once() {
        let mut words = Words::default();
        let numbers = ["us", "ring", "us"].map(|word| words.number(word));
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!(words.list, ["us", "ring"]);
    }
}
