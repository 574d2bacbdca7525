//! The picture of a race: one static SVG for a README with the one-way time by size on two tasks.
//!
//! It has a card as background and follows the reader's light or dark scheme. It is drawn in the light scheme's
//! colours, which a style sheet replaces in the dark scheme.

use std::error::Error;
use std::ops::Range;

use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::appearance::{LIMIT, Look, OURS, full_name, looks};
use super::text::{date, digits, tick};
use crate::operations;
use crate::results::{Metric, Results, Row};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (960, 560);
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";
/// Left edge of the text, and width of the band of tick labels.
const EDGE: i32 = 28;

const CARD: RGBColor = RGBColor(0xff, 0xff, 0xff);
const TEXT: RGBColor = RGBColor(0x1b, 0x21, 0x27);
const SOFT: RGBColor = RGBColor(0x5a, 0x64, 0x70);
const GRID: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
/// Counterparts of the colours in the dark scheme.
const DARK: [(RGBColor, &str); 4] = [
    (CARD, "#161a20"),
    (TEXT, "#e4e8ed"),
    (SOFT, "#98a3af"),
    (GRID, "#2b323b"),
];

/// Returns the SVG of `results`. Without one-way times on two tasks it is a card that says so.
pub fn picture(results: &Results) -> String {
    let shown = |row: &&Row| {
        let operation = operations::find(&row.operation);
        operation.is_some_and(|one| one.picture)
            && (row.metric, row.tasks) == (Metric::OneWay, 2)
            && row.bytes > 0
            && row.measured()
            && row.median > 0.0
    };
    let rows: Vec<&Row> = results.rows.iter().filter(shown).collect();
    let mut svg = String::new();
    draw(results, &rows, &mut svg).expect("drawing into memory does not fail");
    follow_scheme(&svg)
}

fn title(rows: &[&Row]) -> String {
    match rows.first().map(|row| row.network.as_str()) {
        None | Some("local") => "Time one way between two tasks on one host".to_owned(),
        Some(network) => format!("Time one way between two tasks on two hosts, network {network}"),
    }
}

fn draw(results: &Results, rows: &[&Row], svg: &mut String) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&CARD)?;
    let place: Vec<String> = [results.machine.cpu.clone(), date(results.machine.started)]
        .into_iter()
        .filter(|t| !t.is_empty())
        .collect();
    area.draw_text(&title(rows), &font(26, TEXT), (EDGE, 22))?;
    area.draw_text(&place.join(", "), &font(17, SOFT), (EDGE, 54))?;
    if rows.is_empty() {
        area.draw_text(
            "No one-way times were measured.",
            &font(20, TEXT),
            (EDGE, 110),
        )?;
    } else {
        let looks: Vec<Look> = looks(results)
            .into_iter()
            .filter(|look| rows.iter().any(|row| row.environment == look.name))
            .collect();
        let top = legend(&area, results, &looks)?;
        curves(&area.margin(top, 12, EDGE - 12, 28), rows, &looks)?;
    }
    area.present()?;
    Ok(())
}

fn font(size: u32, color: RGBColor) -> TextStyle<'static> {
    (FONT, size).into_font().color(&color)
}

/// Draws names in rows above the plot. Returns the height at which the plot may begin.
fn legend(area: &Area, results: &Results, looks: &[Look]) -> Result<i32, Box<dyn Error>> {
    let (mut x, mut y) = (EDGE, 96);
    for look in looks {
        let name = full_name(results, &look.name);
        // Letters of a proportional font at this size are 8 pixels wide at most on average.
        let width = 34 + 8 * name.chars().count() as i32 + 18;
        if x + width > SIZE.0 as i32 - 28 && x > EDGE {
            (x, y) = (EDGE, y + 24);
        }
        area.draw(&PathElement::new(vec![(x, y), (x + 26, y)], stroke(look)))?;
        area.draw(&Circle::new((x + 13, y), 4, color(look).filled()))?;
        area.draw_text(
            &name,
            &font(18, TEXT).pos(Pos::new(HPos::Left, VPos::Center)),
            (x + 34, y),
        )?;
        x += width;
    }
    Ok(y + 18)
}

fn curves(area: &Area, rows: &[&Row], looks: &[Look]) -> Result<(), Box<dyn Error>> {
    let x = span(rows.iter().map(|row| row.bytes as f64), 1.35);
    let y = span(rows.iter().map(|row| row.median), 1.6);
    let powers = |base: f64, range: &Range<f64>| -> Vec<f64> {
        (-9..=18)
            .map(|power| base.powi(power))
            .filter(|value| range.contains(value))
            .collect()
    };
    let (sizes, times) = (powers(8.0, &x), powers(10.0, &y));
    let mut chart = ChartBuilder::on(area)
        .x_label_area_size(54)
        .y_label_area_size(74)
        .build_cartesian_2d(
            x.log_scale().with_key_points(sizes),
            y.log_scale().with_key_points(times),
        )?;
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(CARD.mix(0.0))
        .axis_style(GRID)
        .label_style(font(17, SOFT))
        .axis_desc_style(font(18, SOFT))
        .x_desc("message size, bytes (K = 1024)")
        .y_desc("us")
        .x_label_formatter(&|size| tick(*size as u64))
        .y_label_formatter(&|time| plain(*time))
        .draw()?;
    // Regatta's curve is drawn last, on top of the others.
    for look in looks.iter().rev() {
        let mut points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.environment == look.name)
            .map(|row| (row.bytes as f64, row.median))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if look.name == LIMIT {
            chart.draw_series(DashedLineSeries::new(
                points.iter().copied(),
                7,
                5,
                stroke(look),
            ))?;
        } else {
            chart.draw_series(LineSeries::new(points.iter().copied(), stroke(look)))?;
        }
        chart.draw_series(
            points
                .iter()
                .map(|point| Circle::new(*point, 4, color(look).filled())),
        )?;
    }
    Ok(())
}

/// Returns the range from the smallest to the largest value, with some margin.
fn span(values: impl Iterator<Item = f64>, room: f64) -> Range<f64> {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| {
        (low.min(v), high.max(v))
    });
    low / room..high * room
}

fn color(look: &Look) -> RGBColor {
    let value = u32::from_str_radix(look.color.trim_start_matches('#'), 16).unwrap_or(0x80_80_80);
    let [_, red, green, blue] = value.to_be_bytes();
    RGBColor(red, green, blue)
}

fn stroke(look: &Look) -> ShapeStyle {
    color(look).stroke_width(if look.name == OURS { 4 } else { 2 })
}

/// Formats a tick label: `0.01`, `1`, `1,000`. Powers of ten need no third digit.
fn plain(value: f64) -> String {
    if value < 1.0 {
        format!("{value}")
    } else {
        digits(value).trim_end_matches(".00").replace(".0", "")
    }
}

/// Replaces the scheme's colours for readers who prefer dark, and lets the picture scale.
fn follow_scheme(svg: &str) -> String {
    let hex = |color: RGBColor| format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2);
    let rules: String = DARK
        .iter()
        .map(|(light, dark)| {
            let light = hex(*light);
            format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
        })
        .collect();
    let style = format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>");
    let end = svg.find('>').map_or(0, |at| at + 1);
    // The first rectangle is the card.
    let body = svg[end..].replacen("<rect ", "<rect rx=\"10\" ", 1);
    format!("{}\n{style}{body}", &svg[..end])
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_picture_names_everyone_and_needs_nothing_from_outside() {
        let svg = picture(&sample::results());
        for name in [
            "Regatta 0.1.0",
            "Open MPI 5.0.11",
            "MPICH 5.0.2",
            "PVM 3.4.6",
            "limit",
            "16M",
            "prefers-color-scheme",
        ] {
            assert!(svg.contains(name), "{name}");
        }
        assert_eq!(
            svg.matches("http").count(),
            1,
            "the name space of SVG, and nothing else"
        );
        assert!(svg.len() < 100_000, "{} bytes", svg.len());
    }

    #[test]
    fn every_colour_of_the_scheme_is_drawn_with_and_replaced() {
        let svg = picture(&sample::results());
        let (style, body) = svg.split_once("</style>").expect("one style element");
        for (light, dark) in DARK {
            let light = format!("\"#{:02X}{:02X}{:02X}\"", light.0, light.1, light.2);
            assert!(body.contains(&light), "{light} is not drawn with");
            assert!(
                style.contains(&light) && style.contains(dark),
                "{light} is not replaced"
            );
        }
    }

    #[test]
    fn hostile_names_stay_text_and_an_empty_race_says_so() {
        let mut results = sample::results();
        results.machine.cpu = "</text><script>alert(1)</script>".into();
        assert!(!picture(&results).contains("<script>"));
        results.rows.clear();
        assert!(picture(&results).contains("No one-way times were measured."));
    }
}
