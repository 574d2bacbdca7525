//! A picture as PNG. Pure.

use font8x8::UnicodeFonts;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform};

use crate::drawing::{Drawing, Place, Shape, Style};

/// Pixels along each side of the page.
pub const PAGE: u32 = 1000;
/// Pixels across a line.
pub const STROKE: f32 = 1.5;
/// Pixels along each side of a character.
pub const CHARACTER: f32 = 16.0;

/// Dots along each side of a character in the font.
const DOTS: u8 = 8;

fn x(place: Place) -> f32 {
    (place.x * f64::from(PAGE)) as f32
}

fn y(place: Place) -> f32 {
    ((1.0 - place.y) * f64::from(PAGE)) as f32
}

fn stroke(style: Style) -> Stroke {
    let scale = PAGE as f32 / 1000.0;
    let dashes = style.dashes().iter().map(|dash| f32::from(*dash) * scale);
    Stroke {
        width: STROKE,
        dash: StrokeDash::new(dashes.collect(), 0.0),
        ..Stroke::default()
    }
}

/// The dots of a character, row by row, the lowest bit at the left; of one that the font has not, a question mark's.
fn dots(character: char) -> [u8; DOTS as usize] {
    let basic = font8x8::BASIC_FONTS.get(character);
    let found = basic.or_else(|| font8x8::LATIN_FONTS.get(character));
    found
        .or_else(|| font8x8::BASIC_FONTS.get('?'))
        .unwrap_or_default()
}

/// Squares for all dots of a text.
fn text(at: Place, text: &str) -> PathBuilder {
    let (mut path, dot) = (PathBuilder::new(), CHARACTER / f32::from(DOTS));
    // Whole pixels, so that dots are sharp.
    let (left, top) = (
        (x(at) - CHARACTER / 2.0).round(),
        (y(at) - CHARACTER / 2.0).round(),
    );
    for (index, character) in text.chars().enumerate() {
        let left = left + index as f32 * CHARACTER;
        // The rest is beside the page.
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

/// A page on which is drawn.
struct Page {
    pixels: Pixmap,
    paint: Paint<'static>,
}

impl Page {
    /// A shape that nothing of can be drawn is left out.
    fn fill(&mut self, path: PathBuilder) {
        if let Some(path) = path.finish() {
            let (rule, whole) = (FillRule::Winding, Transform::identity());
            self.pixels.fill_path(&path, &self.paint, rule, whole, None);
        }
    }

    fn stroke(&mut self, path: PathBuilder, style: Style) {
        if let Some(path) = path.finish() {
            let (stroke, whole) = (stroke(style), Transform::identity());
            self.pixels
                .stroke_path(&path, &self.paint, &stroke, whole, None);
        }
    }

    fn draw(&mut self, shape: &Shape) {
        let mut path = PathBuilder::new();
        match shape {
            Shape::Path(style, places) => {
                for (index, place) in places.iter().enumerate() {
                    match index {
                        0 => path.move_to(x(*place), y(*place)),
                        _ => path.line_to(x(*place), y(*place)),
                    }
                }
                self.stroke(path, *style);
            }
            Shape::Circle(style, centre, radius) => {
                path.push_circle(x(*centre), y(*centre), (radius * f64::from(PAGE)) as f32);
                self.stroke(path, *style);
            }
            Shape::Point(place) => {
                path.push_circle(x(*place), y(*place), STROKE);
                self.fill(path);
            }
            Shape::Label(place, label) => self.fill(text(*place, label)),
        }
    }
}

/// The bytes of the file.
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

    /// Is the picture dark there?
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

    #[test]
    fn the_first_character_is_centred_on_its_place() {
        // The bar of the letter I, in the middle of its square.
        let seen = dark(
            Shape::Label(at(0.5, 0.5), "II".to_owned()),
            &[(499, 500), (515, 500), (499, 520)],
        );
        assert_eq!(seen, [true, true, false]);
        // A character that the font has not is drawn, too.
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
            Shape::Path(Style::Solid, vec![]),
            Shape::Circle(Style::DotDashed, far, 1e4),
            Shape::Point(far),
            Shape::Label(far, "far".to_owned()),
        ] {
            dark(shape, &[]);
        }
    }
}
