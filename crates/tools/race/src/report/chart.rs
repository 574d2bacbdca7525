//! One panel as data for the charting library.
//!
//! Colours of text, grid and background are left to the page's style sheet, which follows the
//! reader's light or dark scheme; colours of environments are fixed in [`super::appearance`].

use plotly::common::{
    DashType, ErrorData, ErrorType, HoverInfo, Label, Line, Marker, MarkerSymbol, Mode,
    TextPosition,
};
use plotly::{Bar, Plot, Scatter, Trace};

use super::appearance::{LIMIT, Look, OURS, THEN};
use super::axes;
use super::panels::{Figure, Over, Panel, Quantity};
use super::papers;
use super::text;
use super::warnings::doubtful;
use crate::reference::Point;
use crate::results::{Metric, Row};

/// The mark by which the page's switch for the papers' points finds their traces.
pub const THEN_META: &str = "then";
const WARNING: &str = "#d09a00";

/// The panel as the charting library's JSON.
pub fn json(figure: &Figure, panel: &Panel, looks: &[Look], reference: &[Point]) -> String {
    let then = papers::beside(figure, panel, reference);
    let old = (!then.is_empty())
        .then(|| old(figure, panel, &then))
        .into_iter();
    let mut plot = Plot::new();
    plot.add_traces(match figure.over {
        // Drawn first lies behind: the papers, then the peers, ours on top.
        Over::Bytes => {
            let curves = looks
                .iter()
                .rev()
                .filter_map(|look| curve(figure, panel, look));
            old.chain(rings(figure, panel)).chain(curves).collect()
        }
        Over::Tasks => looks
            .iter()
            .filter_map(|look| bars(figure, panel, look))
            .chain(old)
            .collect(),
    });
    plot.set_layout(axes::layout(figure, panel, &then));
    plot.set_configuration(axes::configuration());
    plot.to_json()
}

/// The rows of one environment in the order of the horizontal axis, one for each place on it.
fn of_look<'a>(panel: &Panel<'a>, look: &Look) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = panel
        .rows
        .iter()
        .copied()
        .filter(|row| row.environment == look.name)
        .collect();
    rows.sort_by_key(|row| (row.bytes, row.tasks));
    rows.dedup_by_key(|row| (row.bytes, row.tasks));
    rows
}

fn curve(figure: &Figure, panel: &Panel, look: &Look) -> Option<Box<dyn Trace>> {
    let rows = of_look(panel, look);
    let mut points: Vec<Option<&Row>> = rows.iter().copied().map(Some).collect();
    // No line leads from 0 bytes on: that point has no true place on a logarithmic axis.
    if rows.first()?.bytes == 0 && rows.len() > 1 {
        points.insert(1, None);
    }
    let ours = look.name == OURS;
    let mut line = Line::new()
        .color(look.color)
        .width(if ours { 3.0 } else { 1.8 });
    if look.name == LIMIT {
        line = line.dash(DashType::Dash);
    }
    let x = points
        .iter()
        .map(|row| row.map(|row| axes::place(panel, row.bytes)))
        .collect();
    let y = points
        .iter()
        .map(|row| row.map(|row| figure.value(row).0))
        .collect();
    let hover = points
        .iter()
        .map(|row| row.map(|row| hover(figure, look, row)).unwrap_or_default())
        .collect();
    let marker = Marker::new()
        .color(look.color)
        .symbol(look.symbol.clone())
        .size(if ours { 8 } else { 7 });
    Some(
        Scatter::<Option<f64>, Option<f64>>::new(x, y)
            .name(text::plot(&look.label))
            .mode(Mode::LinesMarkers)
            .line(line)
            .marker(marker)
            .error_y(errors(figure, &points, look.color))
            .hover_text_array(hover)
            .hover_info(HoverInfo::Text)
            .hover_label(label(look.color)),
    )
}

/// Rings around the points in doubt; the page explains them.
fn rings(figure: &Figure, panel: &Panel) -> Option<Box<dyn Trace>> {
    let flagged: Vec<&Row> = panel
        .rows
        .iter()
        .copied()
        .filter(|row| doubtful(row))
        .collect();
    let x = flagged
        .iter()
        .map(|row| axes::place(panel, row.bytes))
        .collect();
    let y = flagged.iter().map(|row| figure.value(row).0).collect();
    let line = Line::new().color(WARNING).width(2.0);
    let ring = Marker::new()
        .symbol(MarkerSymbol::CircleOpen)
        .size(15)
        .color(WARNING)
        .line(line);
    let trace = Scatter::<f64, f64>::new(x, y)
        .name("flagged")
        .show_legend(false)
        .mode(Mode::Markers)
        .marker(ring);
    (!flagged.is_empty()).then(|| -> Box<dyn Trace> { trace.hover_info(HoverInfo::Skip) })
}

fn bars(figure: &Figure, panel: &Panel, look: &Look) -> Option<Box<dyn Trace>> {
    let rows = of_look(panel, look);
    let points: Vec<Option<&Row>> = rows.iter().copied().map(Some).collect();
    let x = rows.iter().map(|row| row.tasks.to_string()).collect();
    let y = rows.iter().map(|row| figure.value(row).0).collect();
    let trace = Bar::<String, f64>::new(x, y)
        .name(text::plot(&look.label))
        .marker(Marker::new().color(look.color))
        .error_y(errors(figure, &points, axes::ERROR))
        .text_array(
            rows.iter()
                .map(|row| if doubtful(row) { "!" } else { "" })
                .collect(),
        )
        .text_position(TextPosition::Outside)
        .hover_text_array(rows.iter().map(|row| hover(figure, look, row)).collect())
        .hover_info(HoverInfo::Text)
        .hover_label(label(look.color));
    (!rows.is_empty()).then_some(trace)
}

/// The papers' points: marks without a line, in a muted colour.
fn old(figure: &Figure, panel: &Panel, then: &[&Point]) -> Box<dyn Trace> {
    let y = then.iter().map(|point| figure.old_value(point)).collect();
    match figure.over {
        Over::Bytes => {
            let x = then
                .iter()
                .map(|point| axes::place(panel, point.bytes))
                .collect();
            marks(Scatter::<f64, f64>::new(x, y), then)
        }
        Over::Tasks => {
            let x = then
                .iter()
                .map(|point| point.processors.to_string())
                .collect();
            marks(Scatter::<String, f64>::new(x, y), then)
        }
    }
}

fn marks<X>(trace: Box<Scatter<X, f64>>, then: &[&Point]) -> Box<dyn Trace>
where
    X: serde::Serialize + Clone + 'static,
{
    trace
        .name(text::plot(&format!("papers, {}", papers::years(then))))
        .meta(THEN_META)
        .mode(Mode::Markers)
        .marker(
            Marker::new()
                .symbol(MarkerSymbol::CircleOpen)
                .size(6)
                .color(THEN),
        )
        .opacity(0.7)
        .hover_text_array(then.iter().map(|point| papers::describe(point)).collect())
        .hover_info(HoverInfo::Text)
        .hover_label(label(THEN))
}

fn errors(figure: &Figure, points: &[Option<&Row>], color: &'static str) -> ErrorData {
    let reach = |end: fn((f64, [f64; 2])) -> f64| {
        points
            .iter()
            .map(|row| row.map_or(0.0, |row| end(figure.value(row)).max(0.0)))
            .collect()
    };
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(reach(|(value, ci)| ci[1] - value))
        .array_minus(reach(|(value, ci)| value - ci[0]))
        .color(color)
        .thickness(1.2)
        .width(2)
}

fn label(color: &'static str) -> Label {
    Label::new().border_color(color).align("left")
}

/// Everything known about a point.
fn hover(figure: &Figure, look: &Look, row: &Row) -> String {
    let metric = row.metric;
    let mut lines = vec![
        format!("<b>{}</b>", text::plot(&look.label)),
        format!(
            "{}, {}",
            text::bytes(row.bytes),
            text::count(row.tasks.into(), "task")
        ),
    ];
    if figure.quantity == Quantity::Bandwidth {
        let (value, [low, high]) = figure.value(row);
        let [value, low, high] = [value, low, high].map(text::digits);
        lines.push(format!("{value} GB/s (95 %: {low} to {high})"));
    }
    let (factor, unit) = text::scale(metric, row.median);
    let [low, high] = row.ci95.map(|end| text::digits(end * factor));
    lines.push(format!(
        "median {} (95 %: {low} to {high})",
        text::value(metric, row.median)
    ));
    lines.push(format!(
        "99 % quantile {}",
        text::digits(row.p99 * factor) + " " + unit
    ));
    lines.push(format!(
        "{}, {}",
        text::count(row.samples, "sample"),
        launches(row)
    ));
    if metric != Metric::Cpu && !row.path.is_empty() {
        lines.extend(wrap("path: ", &row.path));
    }
    if !row.flags.is_empty() {
        lines.extend(wrap("flags: ", &row.flags.join(", ")));
    }
    lines.join("<br>")
}

fn launches(row: &Row) -> String {
    format!(
        "{} launch{}",
        row.launches,
        if row.launches == 1 { "" } else { "es" }
    )
}

/// Long text in lines that fit a phone.
fn wrap(first: &str, long: &str) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    for word in long.split_whitespace() {
        let word: String = word.chars().take(60).collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < 42 => {
                *line += &format!("{word} ")
            }
            _ => lines.push(format!("{word} ")),
        }
    }
    lines
        .iter()
        .map(|line| text::plot(line.trim_end()))
        .collect()
}
