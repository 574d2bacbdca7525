//! The report: one HTML file that works offline, and a static picture of the race.
//!
//! Contract: [`render`] turns results into one page that loads nothing from a network, contains every measured number,
//! and states nothing that the numbers do not support. [`picture()`] returns one SVG for a README. Both are
//! deterministic: the same results give the same bytes. `README.md` beside this file is the guide.

mod advice;
mod appearance;
mod applications;
mod cliffs;
mod context;
mod data;
mod glance;
mod guidelines;
pub mod headline;
mod page;
mod panels;
mod paper_points;
mod paper_tables;
mod picture;
mod plots;
mod portability;
mod ratios;
mod scoreboard;
mod table;
mod text;
mod warnings;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use context::facts;
pub use headline::Headline;
pub use picture::picture;
pub(crate) use text::count;

use crate::reference::Point;
use crate::results::Results;

/// Returns the report of `results`, with the papers' points behind today's curves.
pub fn render(results: &Results, reference: &[Point]) -> String {
    let looks = appearance::looks(results);
    let headlines = Headline::all(results);
    let figures = panels::figures(results);
    let verdict = scoreboard::verdict(results, &headlines);
    let sections = [
        page::header(results, &verdict),
        warnings::summary(results),
        advice::table(results),
        ratios::section(results, &headlines),
        applications::section(results, &looks),
        glance::section(results),
        scoreboard::section(&headlines),
        portability::section(results),
        cliffs::section(results),
        guidelines::section(results),
        paper_tables::section(results),
        plots::section(&figures),
        table::section(results),
        context::environments(results, &looks),
        context::machine(&results.machine),
        context::method(results),
        warnings::section(results),
        page::footer(),
    ];
    let data = data::element(results, &looks, &figures, reference);
    page::whole(results, &sections.concat(), &data)
}
