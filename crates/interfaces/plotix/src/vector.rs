//! Draws a picture as SVG. Pure.

use svg::Document;
use svg::node::element::{Circle, Element, Path, Rectangle, Text};

use crate::drawing::{Drawing, FARTHEST, Place, Shape, Style};
use crate::raster::{CHARACTER, PAGE, STROKE};

/// Converts a page length to pixels, rounded to hundredths. It is limited, because the numbers of another node may be
/// anything, and would have hundreds of digits.
fn pixels(length: f64) -> f64 {
    let length = length.clamp(-FARTHEST, FARTHEST);
    (length * f64::from(PAGE) * 100.0).round() / 100.0
}

fn x(place: Place) -> f64 {
    pixels(place.x)
}

fn y(place: Place) -> f64 {
    pixels(1.0 - place.y)
}

fn dashes(style: Style) -> String {
    let dashes = style.dashes().iter();
    let pixels = dashes.map(|dash| (f64::from(*dash) * f64::from(PAGE) / 1000.0).to_string());
    match style.dashes() {
        [] => "none".to_owned(),
        _ => pixels.collect::<Vec<_>>().join(" "),
    }
}

fn path(style: Style, places: &[Place]) -> Path {
    let mut data = String::new();
    for (index, place) in places.iter().enumerate() {
        let word = if index == 0 { 'M' } else { 'L' };
        data.push_str(&format!("{word}{} {}", x(*place), y(*place)));
    }
    Path::new()
        .set("d", data)
        .set("stroke-dasharray", dashes(style))
}

fn text(at: Place, text: &str) -> Text {
    let half = f64::from(CHARACTER) / 2.0;
    Text::new(text)
        .set("x", x(at) - half)
        .set("y", y(at) + half)
        .set(
            "textLength",
            text.chars().count() as f64 * f64::from(CHARACTER),
        )
        .set("font-family", "monospace")
        .set("font-size", CHARACTER * 1.5)
        .set("xml:space", "preserve")
        .set("fill", "black")
        .set("stroke", "none")
}

fn element(shape: &Shape) -> Element {
    match shape {
        Shape::Path(style, places) => path(*style, places).into(),
        Shape::Circle(style, centre, radius) => Circle::new()
            .set("cx", x(*centre))
            .set("cy", y(*centre))
            .set("r", pixels(radius.abs()))
            .set("stroke-dasharray", dashes(*style))
            .into(),
        Shape::Point(place) => Circle::new()
            .set("cx", x(*place))
            .set("cy", y(*place))
            .set("r", STROKE)
            .set("fill", "black")
            .set("stroke", "none")
            .into(),
        Shape::Label(place, label) => text(*place, label).into(),
    }
}

/// Draws a picture, and returns the text of the file.
pub fn draw(drawing: &Drawing) -> String {
    let page = Rectangle::new()
        .set("width", PAGE)
        .set("height", PAGE)
        .set("fill", "white")
        .set("stroke", "none");
    let mut document = Document::new()
        .set("viewBox", format!("0 0 {PAGE} {PAGE}"))
        .set("width", PAGE)
        .set("height", PAGE)
        .set("fill", "none")
        .set("stroke", "black")
        .set("stroke-width", STROKE)
        .add(page);
    for shape in &drawing.shapes {
        document = document.add(element(shape));
    }
    format!("{document}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_elements() {
        let (a, b) = (Place { x: 0.0, y: 0.0 }, Place { x: 1.0, y: 0.25 });
        let shapes = vec![
            Shape::Path(Style::Dotted, vec![a, b]),
            Shape::Circle(Style::Solid, b, 0.125),
            Shape::Point(a),
            Shape::Label(b, "x < \"y\" & z".to_owned()),
        ];
        let text = draw(&Drawing { shapes });
        for part in [
            "<svg ",
            "xmlns=\"http://www.w3.org/2000/svg\"",
            "d=\"M0 1000L1000 750\"",
            "stroke-dasharray=\"2 4\"",
            "r=\"125\"",
            "x &lt; \"y\" &amp; z",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.ends_with("</svg>\n"));
    }

    #[test]
    fn numbers_beyond_sense_are_short() {
        let (far, beyond) = (
            Place {
                x: 1e300,
                y: -1e300,
            },
            Place {
                x: 0.5,
                y: f64::MAX,
            },
        );
        let shapes = vec![
            Shape::Path(Style::Dotted, vec![far, beyond]),
            Shape::Circle(Style::Solid, far, -f64::MAX),
            Shape::Point(beyond),
            Shape::Label(far, "far".to_owned()),
        ];
        let text = draw(&Drawing { shapes });
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        assert!(numbers.all(|digits| digits.len() < 12), "{text}");
        assert!(!text.contains("r=\"-"), "{text}");
    }
}
