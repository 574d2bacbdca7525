//! A table in the layout of a paper: the printed figures, and today's lines below.

use std::fmt::Write as _;

use crate::table::align;

/// A table of a paper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Name of the suite that is named after the paper.
    pub paper: &'static str,
    /// Its number in the paper, such as `Table 6`.
    pub number: String,
    /// Its subject, and the paper.
    pub title: String,
    /// Headings of its columns, except that of the lines' names.
    pub columns: Vec<String>,
    /// Its parts.
    pub parts: Vec<Part>,
    /// Answers to the paper's questions, then and now, one sentence each.
    pub answers: Vec<String>,
}

/// A group of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Heading above the lines.
    pub title: String,
    /// The lines: name, and cells, which are empty where nothing was measured.
    pub lines: Vec<(String, Vec<String>)>,
}

impl Layout {
    /// Returns the table for a terminal.
    pub fn text(&self) -> String {
        let name = |line: &(String, Vec<String>)| format!("  {}", line.0);
        let names = self.parts.iter().flat_map(|part| {
            std::iter::once(part.title.clone()).chain(part.lines.iter().map(name))
        });
        let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let pad = |name: &str| format!("{name:<width$}");
        let mut lines = vec![
            std::iter::once(pad(""))
                .chain(self.columns.clone())
                .collect(),
        ];
        for part in &self.parts {
            lines.push(vec![pad(&part.title)]);
            let cells = |line: &(String, Vec<String>)| {
                let first = std::iter::once(pad(&name(line)));
                first.chain(line.1.iter().cloned()).collect()
            };
            lines.extend(part.lines.iter().map(cells));
        }
        let mut text = format!("\n{}\n\n{}", self.title, align(&lines));
        for answer in &self.answers {
            let _ = writeln!(text, "  {answer}");
        }
        text
    }
}

/// Formats a number as papers print it: two decimals, none for large numbers.
pub fn number(value: f64) -> String {
    match value {
        value if value < 1000.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}

/// Returns clauses as a list in a sentence: `A`, `A, and B`, `A, B, and C`.
pub fn enumerated(clauses: &[String]) -> String {
    match clauses {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{}, and {last}", first.join(", ")),
    }
}

/// Returns in words how much longer one time is than another: `4.3 % less`.
pub fn percent(time: f64, against: f64) -> String {
    let share = (time / against - 1.0) * 100.0;
    let word = if share < 0.0 { "less" } else { "more" };
    format!("{:.1} % {word}", share.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_on_the_left_below_the_part_that_they_are_of() {
        let layout = Layout {
            paper: "",
            number: "Table 0".to_owned(),
            title: "Table 0".to_owned(),
            columns: vec!["1 byte".to_owned(), "1 MB".to_owned()],
            parts: vec![Part {
                title: "A machine".to_owned(),
                lines: vec![("TTCP".to_owned(), vec![number(0.654), number(9624.2)])],
            }],
            answers: vec!["That was all.".to_owned()],
        };
        let expected = "\nTable 0\n\n             1 byte  1 MB\n  A machine\n    TTCP       0.65  9624\n  That was all.\n";
        assert_eq!(layout.text(), expected);
    }

    #[test]
    fn clauses_are_listed_as_in_a_sentence() {
        let clauses = ["a", "b", "c"].map(str::to_owned);
        let lists = [0, 1, 2, 3].map(|number| enumerated(&clauses[..number]));
        assert_eq!(lists, ["", "a", "a, and b", "a, b, and c"]);
    }

    #[test]
    fn a_share_is_more_or_less() {
        assert_eq!(percent(95.7, 100.0), "4.3 % less");
        assert_eq!(percent(101.0, 100.0), "1.0 % more");
    }
}
