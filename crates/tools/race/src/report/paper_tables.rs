//! Tables and figures of papers, with today's figures in the same layout.

use super::text::html;
use super::{page, portability};
use crate::papers::layout::{Layout, Part};
use crate::papers::{self, layouts};
use crate::results::Results;
use crate::suites::AHMAD_WU_1991;

/// The anchor of the section.
pub const ANCHOR: &str = "papers";

/// Returns whether this race has such a section.
pub fn is_there(results: &Results) -> bool {
    !layouts(results).is_empty()
}

/// The suites named after papers, each with the paper's title and its question.
const PAPERS: [(&str, &str, &str); 4] = [
    (
        "ahmad-wu-1991",
        "Ahmad and Wu, 1991: Express versus iPSC/2 Primitives",
        "How much longer does a portable interface take than the machine's own?",
    ),
    (
        "white-1994",
        "White, Alund and Sunderam, 1994: the NAS Parallel Benchmarks on PVM Based Networks",
        "What do networks of workstations need to run what supercomputers ran?",
    ),
    (
        "ahmad-1997",
        "Ahmad, 1997: Express versus PVM",
        "Which of two portable interfaces is faster, by messages and by whole applications?",
    ),
    (
        "maniezzo-sanna",
        "Maniezzo and Sanna: PVM, MPICH and mpiGAMMA",
        "Which library is faster, by large messages and by whole applications?",
    ),
];

/// Returns the section: the papers one after the other, each with all tables and figures in its order. It is empty for
/// races of other suites.
pub fn section(results: &Results) -> String {
    let layouts = layouts(results);
    let papers: String = PAPERS
        .iter()
        .map(|paper| of_paper(results, &layouts, paper))
        .collect();
    match papers.is_empty() {
        true => papers,
        false => {
            let lead = "<p>Figures printed in the papers, and the same measured on this machine. Click a line to see its table.</p>\n";
            page::section(ANCHOR, "Then and now", &(lead.to_owned() + &papers))
        }
    }
}

fn of_paper(
    results: &Results,
    layouts: &[Layout],
    (suite, title, question): &(&str, &str, &str),
) -> String {
    let mut here: Vec<&Layout> = layouts.iter().filter(|one| one.paper == *suite).collect();
    if here.is_empty() {
        return String::new();
    }
    here.sort_by_key(|layout| papers::order(&layout.number));
    let mut missing = papers::numbers(suite);
    missing.retain(|number| here.iter().all(|layout| layout.number != *number));
    let missing = match missing.as_slice() {
        [] => String::new(),
        some => format!(
            "<p class=\"small\">Not measured in this race: {}.</p>\n",
            html(&some.join(", "))
        ),
    };
    let question_of_ratios = match *suite == AHMAD_WU_1991.name && portability::is_there(results) {
        true => format!(
            " <a href=\"#{}\">The answer, point by point.</a>",
            portability::ANCHOR
        ),
        false => String::new(),
    };
    let tables: String = here.into_iter().map(layout).collect();
    format!(
        "<h3 id=\"paper-{suite}\">{}</h3>\n<p>{}{question_of_ratios}</p>\n{tables}{missing}",
        html(title),
        html(question),
    )
}

/// Returns a table of a paper, with a body for each of its parts. Its answers come before it, so that they can be read
/// without opening it.
fn layout(layout: &Layout) -> String {
    let heads: String = layout
        .columns
        .iter()
        .map(|head| format!("<th class=\"n\">{}</th>", html(head)))
        .collect();
    let width = layout.columns.len() + 1;
    let parts: String = layout.parts.iter().map(|one| part(one, width)).collect();
    let answers: String = layout
        .answers
        .iter()
        .map(|answer| format!("<span class=\"sub\">{}</span>", html(answer)))
        .collect();
    format!(
        "<details class=\"paper\"><summary>{}{answers}</summary>\n<div class=\"wide\" tabindex=\"0\"><table class=\"glance\"><thead><tr><th></th>{heads}</tr></thead>\n\
         {parts}</table></div></details>\n",
        html(&layout.title),
    )
}

fn part(part: &Part, width: usize) -> String {
    let line = |(name, cells): &(String, Vec<String>)| {
        let cells: String = cells
            .iter()
            .map(|cell| format!("<td class=\"n\">{}</td>", html(cell)))
            .collect();
        format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", html(name))
    };
    let lines: String = part.lines.iter().map(line).collect();
    format!(
        "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"{width}\">{}</th></tr>\n{lines}</tbody>\n",
        html(&part.title)
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::Row;
    use crate::suites::{OF_PAPERS, WHITE_1994};
    use crate::table::tests::{results, row};

    #[test]
    fn a_table_of_a_paper_has_its_printed_numbers_and_today_s() {
        let text = section(&results(vec![Row {
            suite: WHITE_1994.name.to_owned(),
            ..row("one-to-one", "pvm", 2, 1_000_000, 500.0)
        }]));
        assert!(text.contains("<summary>Table 6 of White"), "{text}");
        assert!(text.contains("<h3 id=\"paper-white-1994\">White"), "{text}");
        assert!(
            text.contains("Not measured in this race: Table 1, Table 2,"),
            "{text}"
        );
        assert!(
            text.contains(">358.48<") && text.contains(">2000000<"),
            "{text}"
        );
    }

    #[test]
    fn every_suite_of_a_paper_has_its_part() {
        let known = PAPERS.map(|paper| paper.0);
        assert_eq!(known, OF_PAPERS.map(|suite| suite.name));
    }

    #[test]
    fn a_race_of_other_suites_has_no_such_section() {
        assert_eq!(section(&sample::results()), "");
    }
}
