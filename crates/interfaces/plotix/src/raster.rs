//! Draws a picture as PNG. Pure.

use font8x8::UnicodeFonts;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};

use crate::arc;
use crate::clip::runs;
use crate::drawing::{Drawing, FARTHEST, Place, Shape, Style};

/// Width and height of the page in pixels.
pub const PAGE: u32 = 1000;
/// Width of a line in pixels.
pub const STROKE: f32 = 1.5;
/// Width and height of a character in pixels.
pub const CHARACTER: f32 = 16.0;

/// Width of the margin around the page in which lines are also drawn, in page lengths, so that clipped ends and corners
/// are invisible.
const MARGIN: f64 = 0.01;
/// Circles with a larger radius, in page lengths, are drawn as lines and clipped.
const WIDE: f64 = 2.0;

/// Dots along each side of a character in the font.
const DOTS: u8 = 8;

fn x(place: Place) -> f32 {
    (place.x * f64::from(PAGE)) as f32
}

fn y(place: Place) -> f32 {
    ((1.0 - place.y) * f64::from(PAGE)) as f32
}

/// Returns a stroke whose pattern began `before` page lengths earlier.
fn stroke(style: Style, before: f64) -> Stroke {
    let scale = f64::from(PAGE) / 1000.0;
    let dashes = style.dashes().iter().map(|dash| f64::from(*dash) * scale);
    let whole: f64 = dashes.clone().sum();
    let dashes = dashes.map(|dash| dash as f32).collect();
    let phase = (before * f64::from(PAGE)) % whole;
    Stroke {
        width: STROKE,
        dash: StrokeDash::new(dashes, phase as f32),
        ..Stroke::default()
    }
}

/// Returns the dots of a character by rows, with the lowest bit at the left; those of a question mark if the font lacks
/// it.
fn dots(character: char) -> [u8; DOTS as usize] {
    let basic = font8x8::BASIC_FONTS.get(character);
    let found = basic.or_else(|| font8x8::LATIN_FONTS.get(character));
    found
        .or_else(|| font8x8::BASIC_FONTS.get('?'))
        .unwrap_or_default()
}

/// Returns squares for all dots of a text.
fn text(at: Place, text: &str) -> PathBuilder {
    let (mut path, dot) = (PathBuilder::new(), CHARACTER / f32::from(DOTS));
    // Use whole pixels, so that the dots are sharp.
    let (left, top) = (
        (x(at) - CHARACTER / 2.0).round(),
        (y(at) - CHARACTER / 2.0).round(),
    );
    for (index, character) in text.chars().enumerate() {
        let left = left + index as f32 * CHARACTER;
        // The rest is outside the page.
        if left > PAGE as f32 {
            break;
        }
        for (row, bits) in (0u8..).zip(dots(character)) {
            for column in (0..DOTS).filter(|column| bits & (1 << column) != 0) {
                let (x, y) = (left + dot * f32::from(column), top + dot * f32::from(row));
                if let Some(square) = Rect::from_xywh(x, y, dot, dot) {
                    path.push_rect(square);
                }
            }
        }
    }
    path
}

/// A page and the paint for drawing on it.
struct Page {
    pixels: Pixmap,
    paint: Paint<'static>,
}

impl Page {
    /// Fills a shape. A degenerate shape is skipped.
    fn fill(&mut self, path: PathBuilder) {
        if let Some(path) = path.finish() {
            let (rule, whole) = (FillRule::Winding, Transform::identity());
            self.pixels.fill_path(&path, &self.paint, rule, whole, None);
        }
    }

    fn stroke(&mut self, path: PathBuilder, stroke: &Stroke) {
        if let Some(path) = path.finish() {
            let whole = Transform::identity();
            self.pixels
                .stroke_path(&path, &self.paint, stroke, whole, None);
        }
    }

    /// Draws the visible parts of lines.
    fn lines(&mut self, style: Style, places: &[Place]) {
        for run in runs(places, MARGIN) {
            let mut path = PathBuilder::new();
            for (index, place) in run.places.iter().enumerate() {
                match index {
                    0 => path.move_to(x(*place), y(*place)),
                    _ => path.line_to(x(*place), y(*place)),
                }
            }
            self.stroke(path, &stroke(style, run.before));
        }
    }

    fn draw(&mut self, shape: &Shape) {
        let mut path = PathBuilder::new();
        match shape {
            Shape::Path(style, places) => self.lines(*style, places),
            Shape::Circle(style, centre, radius) if radius.abs() > WIDE => {
                self.lines(*style, &arc::circle(*centre, radius.abs().min(FARTHEST)));
            }
            Shape::Circle(style, centre, radius) => {
                path.push_circle(x(*centre), y(*centre), (radius * f64::from(PAGE)) as f32);
                self.stroke(path, &stroke(*style, 0.0));
            }
            Shape::Point(place) => {
                path.push_circle(x(*place), y(*place), STROKE);
                self.fill(path);
            }
            Shape::Label(place, label) => self.fill(text(*place, label)),
        }
    }
}

/// Draws a picture, and returns the bytes of the file.
pub fn draw(drawing: &Drawing) -> Result<Vec<u8>, String> {
    let pixels = Pixmap::new(PAGE, PAGE).ok_or("there is no memory for the picture")?;
    let mut paint = Paint::default();
    paint.set_color(Color::BLACK);
    let mut page = Page { pixels, paint };
    page.pixels.fill(Color::WHITE);
    drawing.shapes.iter().for_each(|shape| page.draw(shape));
    page.pixels
        .encode_png()
        .map_err(|error| format!("the picture cannot be made: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Place {
        Place { x, y }
    }

    /// Returns whether the picture is dark at these pixels.
    fn dark(shape: Shape, places: &[(u32, u32)]) -> Vec<bool> {
        let png = draw(&Drawing {
            shapes: vec![shape],
        })
        .unwrap();
        let pixels = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (PAGE, PAGE));
        let is_dark = |&(x, y)| pixels.pixel(x, y).unwrap().red() < 128;
        places.iter().map(is_dark).collect()
    }

    #[test]
    fn lines_are_dark_where_they_go() {
        let line = Shape::Path(Style::Solid, vec![at(0.0, 0.25), at(1.0, 0.25)]);
        let seen = dark(line, &[(10, 750), (900, 749), (500, 250), (500, 770)]);
        assert_eq!(seen, [true, true, false, false]);
    }

    #[test]
    fn circles_and_points_are_around_their_centres() {
        let circle = Shape::Circle(Style::Solid, at(0.5, 0.5), 0.25);
        let seen = dark(circle, &[(750, 500), (500, 250), (500, 500)]);
        assert_eq!(seen, [true, true, false]);
        assert_eq!(
            dark(Shape::Point(at(0.5, 0.5)), &[(500, 500), (510, 500)]),
            [true, false]
        );
    }

    #[test]
    fn dashes_leave_something_out() {
        let dashed = Shape::Path(Style::LongDashed, vec![at(0.0, 0.5), at(1.0, 0.5)]);
        let along: Vec<_> = (0..1000).map(|x| (x, 500)).collect();
        let seen = dark(dashed, &along)
            .into_iter()
            .filter(|dark| *dark)
            .count();
        assert!((600..800).contains(&seen), "{seen}");
    }

    /// Returns how many pixels of a row or column through the middle of the page are dark.
    fn dark_along(shape: Shape, pixel: impl Fn(u32) -> (u32, u32)) -> usize {
        let along: Vec<_> = (0..PAGE).map(pixel).collect();
        dark(shape, &along).into_iter().filter(|dark| *dark).count()
    }

    #[test]
    fn lines_that_reach_far_beyond_the_page_are_dashed_on_it_as_others() {
        for style in [Style::Solid, Style::Dotted, Style::DotDashed] {
            let near = Shape::Path(style, vec![at(0.0, 0.5), at(1.0, 0.5)]);
            let far = Shape::Path(style, vec![at(-9e3, 0.5), at(9e3, 0.5)]);
            let [near, far] = [near, far].map(|line| dark_along(line, |x| (x, 500)));
            assert!(near.abs_diff(far) <= 30, "{style:?}: {near} and {far}");
        }
    }

    #[test]
    fn dashes_beyond_the_edge_go_on_where_they_were() {
        // A dash and its gap are 26 pixels long, so both lines have a dash that begins at the left edge.
        let line = |x: f64| Shape::Path(Style::LongDashed, vec![at(x, 0.5), at(1.0, 0.5)]);
        let along: Vec<_> = (0..PAGE).map(|x| (x, 500)).collect();
        let near = dark(line(0.0), &along);
        for periods in [1.0, 7.0, 100_000.0] {
            assert_eq!(dark(line(-0.026 * periods), &along), near, "{periods}");
        }
        assert_ne!(dark(line(-0.013), &along), near);
    }

    #[test]
    fn wide_circles_cross_the_page_where_they_should() {
        // So wide that the arc on the page is a straight line.
        for style in [Style::Solid, Style::Dotted, Style::DotDashed] {
            let line = Shape::Path(style, vec![at(0.5, 0.0), at(0.5, 1.0)]);
            let circle = Shape::Circle(style, at(-5e3, 0.5), 5000.5);
            let [line, circle] = [line, circle].map(|shape| dark_along(shape, |y| (500, y)));
            assert!(
                line.abs_diff(circle) <= 30,
                "{style:?}: {line} and {circle}"
            );
        }
    }

    #[test]
    fn the_first_character_is_centred_on_its_place() {
        // Checks the bar of the letter I, in the middle of its square.
        let seen = dark(
            Shape::Label(at(0.5, 0.5), "II".to_owned()),
            &[(499, 500), (515, 500), (499, 520)],
        );
        assert_eq!(seen, [true, true, false]);
        // A character that the font lacks is drawn, too.
        let all: Vec<_> = (492..508)
            .flat_map(|x| (492..508).map(move |y| (x, y)))
            .collect();
        assert!(dark(Shape::Label(at(0.5, 0.5), "\u{4e2d}".to_owned()), &all).contains(&true));
    }

    #[test]
    fn shapes_outside_of_the_page_do_no_harm() {
        let far = at(1e4, -1e4);
        for shape in [
            Shape::Path(Style::Dotted, vec![far, at(-1e4, 1e4)]),
            Shape::Path(Style::Solid, vec![far, at(-1e300, f64::MAX), at(0.5, 0.5)]),
            Shape::Circle(Style::Dotted, far, -f64::MAX),
            Shape::Circle(Style::Dotted, at(1e300, 0.0), f64::MAX),
            Shape::Path(Style::Solid, vec![]),
            Shape::Circle(Style::DotDashed, far, 1e4),
            Shape::Point(far),
            Shape::Label(far, "far".to_owned()),
        ] {
            dark(shape, &[]);
        }
    }
}
