//! Selection of the plots of a race. This module only selects rows and draws nothing.
//!
//! A [`Figure`] is one plot of the page. If an operation was raced with several numbers of tasks or several sizes, its
//! figure has one [`Panel`] for each, and the reader sees one panel at a time.

use std::collections::BTreeSet;

use crate::operations::{self, Kind};
use crate::reference::Point;
use crate::results::{Metric, Results, Row};

/// Minimum number of sizes for a curve.
const CURVE: usize = 3;

/// The horizontal axis of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Sizes of messages, as curves.
    Bytes,
    /// Numbers of tasks, as bars, since there is nothing between two numbers of tasks.
    Tasks,
}

/// The vertical axis of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The rows' own values.
    Measured(Metric),
    /// GB/s, computed from one-way times.
    Bandwidth,
}

/// One plot.
#[derive(Debug)]
pub struct Figure<'a> {
    /// Name of the operation.
    pub operation: &'a str,
    /// The network on which it was raced.
    pub network: &'a str,
    /// Its horizontal axis.
    pub over: Over,
    /// Its vertical axis.
    pub quantity: Quantity,
    /// The panels, at least one.
    pub panels: Vec<Panel<'a>>,
}

/// One choice within a plot.
#[derive(Debug)]
pub struct Panel<'a> {
    /// The number of tasks if the axis has sizes, or the size if it has tasks.
    pub fixed: u64,
    /// The rows shown, all measured.
    pub rows: Vec<&'a Row>,
}

/// Returns all plots of a race, in the order of the page.
pub fn figures(results: &Results) -> Vec<Figure<'_>> {
    let rows: Vec<&Row> = results.rows.iter().filter(|row| row.measured()).collect();
    let mut kinds: Vec<(&str, &str, Metric)> = rows
        .iter()
        .map(|row| (row.operation.as_str(), row.network.as_str(), row.metric))
        .collect();
    kinds.sort_by_key(|kind| (place(kind.0), *kind));
    kinds.dedup();
    let mut out = Vec::new();
    for (operation, network, metric) in kinds {
        let of_kind: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| {
                (row.operation.as_str(), row.network.as_str(), row.metric)
                    == (operation, network, metric)
            })
            .collect();
        let figure = |over, quantity, panels| Figure {
            operation,
            network,
            over,
            quantity,
            panels,
        };
        // Sizes of problems are names, not a scale.
        let application = operations::size(operation, 0).is_some();
        let curves = match application {
            true => Vec::new(),
            false => over_bytes(&of_kind),
        };
        let bars = over_tasks(&of_kind, &curves);
        if metric == Metric::OneWay && !curves.is_empty() {
            let fast = over_bytes(
                &of_kind
                    .iter()
                    .copied()
                    .filter(|row| row.bytes > 0)
                    .collect::<Vec<_>>(),
            );
            out.push(figure(Over::Bytes, Quantity::Measured(metric), curves));
            out.extend((!fast.is_empty()).then(|| figure(Over::Bytes, Quantity::Bandwidth, fast)));
        } else if !curves.is_empty() {
            out.push(figure(Over::Bytes, Quantity::Measured(metric), curves));
        }
        if !bars.is_empty() {
            out.push(figure(Over::Tasks, Quantity::Measured(metric), bars));
        }
    }
    out
}

/// Returns the sort key of an operation: first operations with a position on the page, then others, then those that are
/// not points.
fn place(operation: &str) -> u32 {
    match operations::find(operation) {
        Some(known) if known.panel > 0 => known.panel,
        Some(known) if known.kind != Kind::Points => u32::MAX,
        _ => u32::MAX - 1,
    }
}

fn over_bytes<'a>(rows: &[&'a Row]) -> Vec<Panel<'a>> {
    let tasks: BTreeSet<u32> = rows.iter().map(|row| row.tasks).collect();
    let panel = |tasks: u32| Panel {
        fixed: tasks.into(),
        rows: rows
            .iter()
            .copied()
            .filter(|row| row.tasks == tasks)
            .collect(),
    };
    tasks
        .into_iter()
        .map(panel)
        .filter(|panel| distinct(&panel.rows, |row| row.bytes) >= CURVE)
        .collect()
}

/// Returns a panel for each size that was raced with several numbers of tasks, or that no curve shows.
fn over_tasks<'a>(rows: &[&'a Row], curves: &[Panel]) -> Vec<Panel<'a>> {
    let shown = |row: &Row| {
        curves
            .iter()
            .any(|panel| panel.fixed == u64::from(row.tasks))
    };
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.bytes).collect();
    let panel = |bytes: u64| Panel {
        fixed: bytes,
        rows: rows
            .iter()
            .copied()
            .filter(|row| row.bytes == bytes)
            .collect(),
    };
    let wanted = |panel: &Panel| {
        distinct(&panel.rows, |row| row.tasks.into()) > 1
            || panel.rows.iter().any(|row| !shown(row))
    };
    sizes.into_iter().map(panel).filter(wanted).collect()
}

fn distinct(rows: &[&Row], key: impl Fn(&Row) -> u64) -> usize {
    rows.iter()
        .map(|row| key(row))
        .collect::<BTreeSet<u64>>()
        .len()
}

impl Figure<'_> {
    /// Returns the heading of the plot.
    pub fn title(&self) -> String {
        let mut name = super::text::heading(self.operation);
        if self.network != "local" {
            name = format!("{name} over {}", self.network);
        }
        match (self.quantity, self.over) {
            (Quantity::Bandwidth, _) => format!("{name}: bandwidth"),
            (Quantity::Measured(Metric::Rate), _) => name,
            (Quantity::Measured(metric), Over::Tasks)
                if self.panels.iter().any(|panel| panel.fixed > 0) =>
            {
                format!("{name}: {} over tasks", noun(metric))
            }
            (Quantity::Measured(metric), _) => format!("{name}: {}", noun(metric)),
        }
    }

    /// Returns the text by which a reader chooses a panel.
    pub fn choice(&self, panel: &Panel) -> String {
        match self.over {
            Over::Bytes => super::text::count(panel.fixed, "task"),
            Over::Tasks => super::text::size(self.operation, panel.fixed),
        }
    }

    /// Returns the title of the vertical axis, with the unit.
    pub fn axis(&self) -> String {
        match self.quantity {
            Quantity::Bandwidth => "bandwidth, GB/s".into(),
            Quantity::Measured(Metric::Rate) => "messages per second".into(),
            Quantity::Measured(metric) => format!("{}, {}", noun(metric), metric.unit()),
        }
    }

    /// Returns the value of a paper's point in this plot.
    pub fn old_value(&self, point: &Point) -> f64 {
        match self.quantity {
            Quantity::Bandwidth => super::text::gigabytes(point.bytes, point.us),
            Quantity::Measured(_) => point.us,
        }
    }
}

/// Returns the name of a metric's quantity.
pub fn noun(metric: Metric) -> &'static str {
    match metric {
        Metric::OneWay => "time one way",
        Metric::Time => "time",
        Metric::Communication => "time in communications",
        Metric::Volume => "bytes given to others",
        Metric::Messages => "messages",
        Metric::Waiting => "longest time of a task in calls that wait",
        Metric::Rate => "messages per second",
        Metric::Resident => "resident memory per task",
        Metric::Share => "proportional share of memory per task",
        Metric::Cpu => "processor time while blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn find<'a>(figures: &'a [Figure<'a>], title: &str) -> &'a Figure<'a> {
        let titles: Vec<String> = figures.iter().map(Figure::title).collect();
        figures
            .iter()
            .find(|f| f.title() == title)
            .unwrap_or_else(|| panic!("no {title:?} in {titles:?}"))
    }

    #[test]
    fn curves_over_sizes_and_bars_over_tasks() {
        let results = sample::results();
        let figures = figures(&results);
        assert_eq!(figures[0].title(), "One-to-one: time one way");
        assert_eq!(figures[1].title(), "One-to-one: bandwidth");
        assert!(figures[1].panels[0].rows.iter().all(|row| row.bytes > 0));
        let broadcast = find(&figures, "Broadcast: time");
        assert_eq!((broadcast.over, broadcast.panels.len()), (Over::Bytes, 1));
        let crowd = find(&figures, "Broadcast: time over tasks");
        assert_eq!((crowd.over, crowd.panels.len()), (Over::Tasks, 2));
        assert_eq!(
            (
                crowd.choice(&crowd.panels[0]),
                crowd.choice(&crowd.panels[1])
            ),
            ("8 B".into(), "1 KiB".into())
        );
        let barrier = find(&figures, "Barrier: time");
        assert_eq!((barrier.over, barrier.panels.len()), (Over::Tasks, 1));
        assert_eq!(find(&figures, "Message rate").over, Over::Bytes);
        find(&figures, "Idle task: resident memory per task");
        assert_eq!(
            figures.last().map(|figure| figure.operation),
            Some("join-leave"),
            "what is no primitive comes last"
        );
    }

    #[test]
    fn every_measured_row_is_in_some_plot_and_no_failed_one() {
        let results = sample::results();
        let figures = figures(&results);
        let shown = |row: &Row| {
            figures
                .iter()
                .flat_map(|f| &f.panels)
                .any(|p| p.rows.contains(&row))
        };
        for row in &results.rows {
            assert_eq!(shown(row), row.measured(), "{row:?}");
        }
    }
}
