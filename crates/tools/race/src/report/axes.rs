//! Axes and behaviour of a plot. The page draws the legend, so that it wraps like text on a phone.

use plotly::common::{Font, Label, TickMode, Title};
use plotly::configuration::{DisplayModeBar, DoubleClick};
use plotly::layout::{
    Axis, AxisType, BarMode, CategoryOrder, DragMode, HoverMode, Margin, RangeMode, TicksDirection,
};
use plotly::{Configuration, Layout};

use super::panels::{Figure, Over, Panel, Quantity};
use super::text;
use crate::reference::Point;
use crate::results::Metric;

/// Error bars over bars: readable on every bar and both backgrounds.
pub const ERROR: &str = "#7d858f";
/// Bars that differ by less than this factor stand on a linear axis.
const LINEAR: f64 = 30.0;
const CLEAR: &str = "rgba(0,0,0,0)";
const FAMILY: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const GRID: &str = "#dfe3e8";

/// Where a size stands on the logarithmic axis: 0 a step to the left of the smallest other.
pub fn place(panel: &Panel, bytes: u64) -> f64 {
    if bytes > 0 {
        return bytes as f64;
    }
    panel
        .rows
        .iter()
        .map(|row| row.bytes)
        .filter(|bytes| *bytes > 0)
        .min()
        .map_or(1.0, |least| least as f64 / 4.0)
}

/// Axes and margins.
pub fn layout(figure: &Figure, panel: &Panel, then: &[&Point]) -> Layout {
    let font = Font::new().family(FAMILY).size(13).color("#3a424c");
    let horizontal = match figure.over {
        Over::Bytes => sizes(panel, then),
        Over::Tasks => tasks(panel),
    };
    Layout::new()
        .auto_size(true)
        .font(font)
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .margin(Margin::new().left(44).right(16).top(12).bottom(48))
        .show_legend(false)
        .hover_mode(HoverMode::Closest)
        .hover_label(Label::new().font(Font::new().family(FAMILY).size(13)))
        .drag_mode(DragMode::Zoom)
        .bar_mode(BarMode::Group)
        .bar_gap(0.18)
        .x_axis(horizontal)
        .y_axis(values(figure, panel, then))
}

/// The reader's actions on a plot: point, drag to zoom, double-click to see all again. The
/// library's own buttons are left out; a saved image would lack the legend.
pub fn configuration() -> Configuration {
    Configuration::new()
        .responsive(true)
        .display_logo(false)
        .display_mode_bar(DisplayModeBar::False)
        .double_click(DoubleClick::ResetAutoSize)
}

fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(Font::new().size(13)))
        .auto_margin(true)
        .show_grid(true)
        .grid_color(GRID)
        .zero_line(false)
        .ticks(TicksDirection::Outside)
        .tick_length(4)
        .tick_angle(0.0)
        .tick_color(GRID)
        .show_line(true)
        .line_color(GRID)
}

/// Sizes, a label at every eighth power of two, and one at 0.
fn sizes(panel: &Panel, then: &[&Point]) -> Axis {
    let old = then.iter().map(|point| point.bytes);
    let sizes: Vec<u64> = panel.rows.iter().map(|row| row.bytes).chain(old).collect();
    let mut labels: Vec<(f64, String)> = (0..=10)
        .map(|power| 1_u64 << (3 * power))
        .map(|s| (s as f64, text::tick(s)))
        .collect();
    if sizes.contains(&0) {
        let zero = place(panel, 0);
        labels.retain(|(at, _)| *at > zero * 2.0);
        labels.insert(0, (zero, "0".into()));
    }
    let (values, texts): (Vec<f64>, Vec<String>) = labels.into_iter().unzip();
    axis("message size, bytes (K = 1024)")
        .type_(AxisType::Log)
        .tick_mode(TickMode::Array)
        .tick_values(values)
        .tick_text(texts)
}

fn tasks(panel: &Panel) -> Axis {
    let mut tasks: Vec<u32> = panel.rows.iter().map(|row| row.tasks).collect();
    tasks.sort_unstable();
    tasks.dedup();
    axis("tasks")
        .type_(AxisType::Category)
        .show_grid(false)
        .category_order(CategoryOrder::Array)
        .category_array(
            tasks
                .iter()
                .map(|tasks| tasks.to_string())
                .collect::<Vec<String>>(),
        )
}

/// Values on a logarithmic axis: a label at every power of ten, or fewer, or 2 and 5 too, so that
/// there are neither two labels nor twenty. Bars that do not differ by much start at 0 instead:
/// their lengths can then be compared.
fn values(figure: &Figure, panel: &Panel, then: &[&Point]) -> Axis {
    let axis = axis(&figure.axis());
    let medians = panel.rows.iter().map(|row| figure.value(row).0);
    let old = then.iter().map(|point| figure.old_value(point));
    let (least, most) = span(medians.chain(old.clone()));
    let percent = figure.quantity == Quantity::Measured(Metric::Cpu);
    if percent || (figure.over == Over::Tasks && most < least * LINEAR) {
        return axis.range_mode(RangeMode::ToZero);
    }
    let ends = panel.rows.iter().flat_map(|row| figure.value(row).1);
    let (least, most) = span(ends.chain(old).filter(|value| *value > 0.0));
    let (every, steps): (i32, &[f64]) = match (most / least).log10() {
        decades if decades < 1.7 => (1, &[1.0, 2.0, 5.0]),
        decades if decades < 6.5 => (1, &[1.0]),
        _ => (2, &[1.0]),
    };
    let powers = (-12..=14).filter(|power| power % every == 0);
    let labels: Vec<f64> = powers
        .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
        .collect();
    let texts = labels.iter().map(|value| short(*value)).collect();
    axis.type_(AxisType::Log)
        .tick_mode(TickMode::Array)
        .tick_values(labels)
        .tick_text(texts)
}

fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::MAX, 0.0), |(least, most), value| {
        (value.min(least), value.max(most))
    })
}

/// `0.05`, `200`, `10k`, `5M`: short enough for a phone.
fn short(value: f64) -> String {
    let (value, suffix) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = format!("{value:.9}");
    format!(
        "{}{suffix}",
        digits.trim_end_matches('0').trim_end_matches('.')
    )
}
