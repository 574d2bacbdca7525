//! The report: one HTML file that works offline, and a static picture of the race.
//!
//! Contract: [`render`] turns results into one page that asks nothing of any network, holds every
//! measured number, and states nothing the numbers do not say. [`picture()`] gives one SVG for a
//! README. Both are pure: same results, same bytes. `README.md` beside this file is the guide.

mod appearance;
mod axes;
mod chart;
mod context;
mod glance;
pub mod headline;
mod page;
mod panels;
mod papers;
mod picture;
mod plots;
mod portability;
mod scoreboard;
mod table;
mod text;
mod warnings;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use headline::Headline;
pub use picture::picture;

use crate::reference::Point;
use crate::results::Results;

/// The report of `results`, with the papers' points behind today's curves.
pub fn render(results: &Results, reference: &[Point]) -> String {
    let looks = appearance::looks(results);
    let headlines = Headline::all(results);
    let plots = plots::section(results, &looks, reference);
    let sections = [
        page::header(results, &scoreboard::verdict(results, &headlines)),
        glance::section(results),
        warnings::summary(results),
        scoreboard::section(&headlines),
        portability::section(results),
        plots.html,
        table::section(results, &looks),
        context::environments(results, &looks),
        context::machine(&results.machine),
        context::method(results),
        warnings::section(results),
        page::footer(),
    ];
    page::whole(results, &sections.concat(), &plots.data)
}
