//! Exports of a race for other programs: tables in Markdown and LaTeX, data and a script for gnuplot.
//!
//! Every figure is that of `results.json`: medians with their 95 % intervals, in the same units.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::operations;
use crate::report::facts;
use crate::results::{Metric, Results, Row, Setting};
use crate::table::{quantity, size};

/// A form in which a race is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables in Markdown.
    Markdown,
    /// Tables in LaTeX, for its package booktabs.
    Latex,
    /// A script for gnuplot with its data, which draws a curve for each environment.
    Gnuplot,
    /// The machine, the notes, and the settings of environments, in Markdown, which a recorded race keeps in addition
    /// to its CSV.
    Conditions,
}

/// Rows of one operation in one table: environments are columns, sizes are lines.
struct Block<'a> {
    operation: &'a str,
    suite: &'a str,
    network: &'a str,
    tasks: u32,
    metric: Metric,
    environments: Vec<&'a str>,
    sizes: Vec<u64>,
    rows: Vec<&'a Row>,
}

/// Returns the race in this form. Results may come from others and are not trusted: text from them is escaped, and has
/// no newlines.
pub fn render(results: &Results, form: Form) -> String {
    let blocks = blocks(results);
    match form {
        Form::Markdown => blocks.iter().map(markdown).collect(),
        Form::Latex => {
            let tables: String = blocks.iter().map(latex).collect();
            format!("% needs \\usepackage{{booktabs}}\n{tables}")
        }
        Form::Gnuplot => gnuplot(&blocks),
        Form::Conditions => conditions(results),
    }
}

fn conditions(results: &Results) -> String {
    let mut text = "## Conditions\n\n".to_owned();
    for (name, value) in facts(&results.machine) {
        let _ = writeln!(text, "- {name}: {}", cell_text(&value));
    }
    if !results.notes.is_empty() {
        text.push_str("\nNotes of the race:\n\n");
    }
    for note in &results.notes {
        let _ = writeln!(text, "- {}", cell_text(note));
    }
    text.push_str("\n| environment | version | setting | when | reason |\n|---|---|---|---|---|\n");
    for environment in &results.environments {
        let mut name = [environment.name.as_str(), environment.version.as_str()];
        let none = [Setting::default()];
        let settings = match environment.settings.as_slice() {
            [] => &none[..],
            some => some,
        };
        for one in settings {
            let cells = [name[0], name[1], &one.setting, &one.when, &one.reason];
            let _ = writeln!(text, "| {} |", cells.map(cell_text).join(" | "));
            name = ["", ""];
        }
    }
    text
}

/// Returns all tables, in the order of the rows. Points that were not measured are left out.
fn blocks(results: &Results) -> Vec<Block<'_>> {
    let key = |row: &Row| {
        (
            row.suite.clone(),
            row.operation.clone(),
            row.network.clone(),
            row.tasks,
            row.metric,
        )
    };
    let measured: Vec<&Row> = results.rows.iter().filter(|row| row.measured()).collect();
    let keys = operations::distinct(measured.iter().map(|row| key(row)));
    let of = |wanted| {
        let rows: Vec<&Row> = measured
            .iter()
            .copied()
            .filter(|row| key(row) == wanted)
            .collect();
        let first = rows.first().copied()?;
        let sizes: BTreeSet<u64> = rows.iter().map(|row| row.bytes).collect();
        Some(Block {
            operation: &first.operation,
            suite: &first.suite,
            network: &first.network,
            tasks: first.tasks,
            metric: first.metric,
            environments: operations::distinct(rows.iter().map(|row| row.environment.as_str())),
            sizes: sizes.into_iter().collect(),
            rows,
        })
    };
    keys.into_iter().filter_map(of).collect()
}

impl Block<'_> {
    fn row(&self, environment: &str, bytes: u64) -> Option<&Row> {
        let same = |row: &&&Row| (row.environment.as_str(), row.bytes) == (environment, bytes);
        self.rows.iter().find(same).copied()
    }

    fn title(&self) -> String {
        let task = if self.tasks == 1 { "task" } else { "tasks" };
        let network = match self.network {
            "local" => String::new(),
            network => format!(", network {network}"),
        };
        let (operation, tasks, suite) = (self.operation, self.tasks, self.suite);
        format!(
            "{operation}, {tasks} {task}{network} ({suite}): {}",
            self.metric.name()
        )
    }

    fn label(&self, bytes: u64) -> String {
        operations::size(self.operation, bytes).unwrap_or_else(|| size(bytes))
    }

    /// Returns the median of a point, and half of the width of its interval in per cent, if it has an interval.
    fn cell(&self, environment: &str, bytes: u64) -> Option<(String, Option<f64>)> {
        let row = self.row(environment, bytes)?;
        let [low, high] = row.ci95;
        let percent = (high - low) / 2.0 / row.median * 100.0;
        let value = quantity(row.metric, row.median);
        Some((value, percent.is_finite().then_some(percent)))
    }
}

/// Replaces newlines and other control characters.
fn one_line(text: &str) -> String {
    let letter = |one: char| if one.is_control() { ' ' } else { one };
    text.chars().map(letter).collect()
}

/// Escapes text for a cell of a Markdown table.
fn cell_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in one_line(text).chars() {
        match letter {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' => {
                out.extend(['\\', letter])
            }
            _ => out.push(letter),
        }
    }
    out
}

/// Quotes text for gnuplot, so that nothing in it is replaced.
fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text).replace('\'', "''"))
}

fn markdown(block: &Block<'_>) -> String {
    let mut text = format!("### {}\n\n", cell_text(&block.title()));
    let head = operations::quantity(block.operation);
    let names: Vec<String> = block
        .environments
        .iter()
        .map(|name| cell_text(name))
        .collect();
    let _ = writeln!(text, "| {head} | {} |", names.join(" | "));
    let _ = writeln!(text, "|---:|{}", "---:|".repeat(block.environments.len()));
    for bytes in &block.sizes {
        let cells = block.environments.iter().map(|name| {
            let cell = block.cell(name, *bytes);
            cell.map_or_else(
                || "-".to_owned(),
                |(value, percent)| {
                    let error = percent.map(|percent| format!(" ± {percent:.0} %"));
                    value + &error.unwrap_or_default()
                },
            )
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", block.label(*bytes), cells.join(" | "));
    }
    text.push('\n');
    text
}

fn latex(block: &Block<'_>) -> String {
    let columns = "r".repeat(block.environments.len() + 1);
    let names: Vec<String> = block
        .environments
        .iter()
        .map(|name| escaped(name))
        .collect();
    let mut text = format!(
        "\\begin{{table}}\n\\caption{{{}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n{} & {} \\\\\n\\midrule\n",
        escaped(&block.title()),
        operations::quantity(block.operation),
        names.join(" & ")
    );
    for bytes in &block.sizes {
        let cells = block.environments.iter().map(|name| {
            let cell = block.cell(name, *bytes);
            let shown = |(value, percent): (String, Option<f64>)| {
                let error = percent.map(|percent| format!(" $\\pm$~{percent:.0}~\\%"));
                escaped(&value).replace(' ', "~") + &error.unwrap_or_default()
            };
            cell.map_or_else(|| "--".to_owned(), shown)
        });
        let cells: Vec<String> = cells.collect();
        let _ = writeln!(
            text,
            "{} & {} \\\\",
            escaped(&block.label(*bytes)),
            cells.join(" & ")
        );
    }
    text.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n\n");
    text
}

/// Escapes LaTeX's special characters.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in one_line(text).chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', letter]),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            _ => out.push(letter),
        }
    }
    out
}

/// Returns one script: for each table a data block, then a plot of it with intervals. Tables with one size are left
/// out.
fn gnuplot(blocks: &[Block<'_>]) -> String {
    let mut text = String::from(
        "# gnuplot race.gp; a page for each operation, size against median with its 95 % interval\n\
         set terminal pdfcairo noenhanced size 16cm,10cm\nset output 'race.pdf'\nset logscale xy\nset key outside\nset datafile missing '-'\n",
    );
    for (number, block) in blocks.iter().filter(|one| one.sizes.len() > 1).enumerate() {
        let _ = writeln!(text, "\n$table{number} << END");
        for bytes in &block.sizes {
            // A logarithmic axis cannot show an empty message.
            if *bytes == 0 {
                continue;
            }
            let _ = write!(text, "{bytes}");
            for name in &block.environments {
                match block.row(name, *bytes) {
                    Some(row) => {
                        let _ = write!(text, " {} {} {}", row.median, row.ci95[0], row.ci95[1]);
                    }
                    None => text.push_str(" - - -"),
                }
            }
            text.push('\n');
        }
        let curve = |(index, name): (usize, &&str)| {
            let column = 2 + 3 * index;
            format!(
                "$table{number} using 1:{column}:{}:{} with yerrorlines title {}",
                column + 1,
                column + 2,
                quoted(name)
            )
        };
        let curves: Vec<String> = block.environments.iter().enumerate().map(curve).collect();
        let _ = writeln!(
            text,
            "END\nset title {}\nset xlabel {}\nset ylabel {}\nplot {}",
            quoted(&block.title()),
            quoted(operations::quantity(block.operation)),
            quoted(block.metric.unit()),
            curves.join(", \\\n     ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{results, row};

    fn race() -> Results {
        let mut failed = row("one-to-one", "pvm", 2, 8, 0.0);
        failed.launches = 0;
        results(vec![
            row("one-to-one", "regatta", 2, 0, 0.05),
            row("one-to-one", "regatta", 2, 8, 0.06),
            row("one-to-one", "openmpi", 2, 8, 0.1),
            failed,
        ])
    }

    #[test]
    fn a_table_has_a_column_for_each_environment_that_was_measured() {
        let text = render(&race(), Form::Markdown);
        assert!(text.contains("| bytes | regatta | openmpi |"), "{text}");
        assert!(
            text.contains("| 8 | 60.0 ns ± 1 % | 100 ns ± 1 % |"),
            "{text}"
        );
        assert!(text.contains("| 0 | 50.0 ns ± 1 % | - |"), "{text}");
    }

    #[test]
    fn conditions_name_the_machine_and_every_setting() {
        let mut raced = race();
        raced.notes = vec!["a | b".to_owned()];
        raced.machine.cpu = "Zen".to_owned();
        raced.environments[0].settings = ["--one", "--two"]
            .map(|setting| Setting {
                setting: setting.to_owned(),
                when: "always".to_owned(),
                reason: "it is faster".to_owned(),
            })
            .to_vec();
        let text = render(&raced, Form::Conditions);
        for part in [
            "- Processor: Zen\n",
            "- a \\| b\n",
            "| --one | always |",
            "|  |  | --two |",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn characters_of_latex_are_text() {
        assert_eq!(escaped("50 % of a_b & c"), "50 \\% of a\\_b \\& c");
        let text = render(&race(), Form::Latex);
        assert!(
            text.contains("8 & 60.0~ns $\\pm$~1~\\% & 100~ns $\\pm$~1~\\% \\\\"),
            "{text}"
        );
    }

    #[test]
    fn a_script_has_its_data_and_no_point_at_nothing() {
        let text = render(&race(), Form::Gnuplot);
        assert!(
            text.lines().any(|line| line.starts_with("8 0.06 0.05")),
            "{text}"
        );
        assert!(!text.lines().any(|line| line.starts_with("0 ")), "{text}");
        assert!(
            text.contains("using 1:5:6:7 with yerrorlines title 'openmpi'"),
            "{text}"
        );
    }

    #[test]
    fn names_of_other_people_are_text_in_every_form() {
        let name = "a|b`touch x`'\n# c\u{1b}\\";
        let mut rows = vec![row("ring", name, 2, 8, 0.1), row("ring", name, 2, 64, 0.0)];
        rows[1].ci95 = [0.0; 2];
        let raced = results(rows);
        let markdown = render(&raced, Form::Markdown);
        assert!(
            markdown.contains("| a\\|b\\`touch x\\`' \\# c \\\\ |"),
            "{markdown}"
        );
        let gnuplot = render(&raced, Form::Gnuplot);
        assert!(
            gnuplot.contains("title 'a|b`touch x`'' # c \\'"),
            "{gnuplot}"
        );
        let latex = render(&raced, Form::Latex);
        for text in [markdown, gnuplot, latex] {
            assert!(
                !text.contains('\u{1b}') && !text.contains("\n# c") && !text.contains("NaN"),
                "{text}"
            );
        }
    }
}
