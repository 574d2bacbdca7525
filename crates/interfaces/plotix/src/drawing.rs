//! A drawing: shapes on a page, and their encoding for sending them to node 0. Pure.
//!
//! The page is 1 wide and 1 high, with its origin at the lower left.

/// Maximum distance of a point from the page, in page lengths; a larger one is taken for a mistake.
pub const FARTHEST: f64 = 1e4;

/// A point on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub x: f64,
    pub y: f64,
}

/// The pattern of a line. It is encoded as its index in `Style::ALL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Solid,
    Dotted,
    ShortDashed,
    LongDashed,
    DotDashed,
}

impl Style {
    pub const ALL: [(Style, &'static str); 5] = [
        (Style::Solid, "solid"),
        (Style::Dotted, "dotted"),
        (Style::ShortDashed, "shortdashed"),
        (Style::LongDashed, "longdashed"),
        (Style::DotDashed, "dotdashed"),
    ];

    /// Returns the style with this name.
    pub fn named(name: &str) -> Option<Style> {
        let found = Style::ALL.iter().find(|(_, word)| *word == name);
        found.map(|(style, _)| *style)
    }

    /// Returns the lengths of dashes and gaps in turn, in thousandths of the page; empty for a solid line.
    pub fn dashes(self) -> &'static [u16] {
        match self {
            Style::Solid => &[],
            Style::Dotted => &[2, 4],
            Style::ShortDashed => &[8, 6],
            Style::LongDashed => &[18, 8],
            Style::DotDashed => &[10, 5, 2, 5],
        }
    }

    fn number(self) -> u8 {
        let place = Style::ALL.iter().position(|(style, _)| *style == self);
        place.unwrap_or_default() as u8
    }

    pub fn numbered(number: u8) -> Option<Style> {
        Some(Style::ALL.get(usize::from(number))?.0)
    }
}

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Lines that connect these points.
    Path(Style, Vec<Place>),
    Circle(Style, Place, f64),
    Point(Place),
    /// A text whose first character is centred on the point.
    Label(Place, String),
}

/// Encoded kinds of shapes.
pub const PATH: u8 = 0;
pub const CIRCLE: u8 = 1;
pub const POINT: u8 = 2;
pub const LABEL: u8 = 3;

/// Shapes in the order of drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    pub shapes: Vec<Shape>,
}

impl Drawing {
    pub const fn new() -> Drawing {
        Drawing { shapes: Vec::new() }
    }

    /// Adds a line. If it starts at the end of the last line, extends that path.
    pub fn line(&mut self, style: Style, from: Place, to: Place) {
        if let Some(Shape::Path(last, places)) = self.shapes.last_mut()
            && *last == style
            && places.last() == Some(&from)
        {
            places.push(to);
            return;
        }
        self.shapes.push(Shape::Path(style, vec![from, to]));
    }

    /// Encodes the shapes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for shape in &self.shapes {
            match shape {
                Shape::Path(style, places) => {
                    bytes.extend([PATH, style.number()]);
                    put_count(&mut bytes, places.len());
                    places
                        .iter()
                        .for_each(|place| put_place(&mut bytes, *place));
                }
                Shape::Circle(style, centre, radius) => {
                    bytes.extend([CIRCLE, style.number()]);
                    put_place(&mut bytes, *centre);
                    bytes.extend(radius.to_le_bytes());
                }
                Shape::Point(place) => {
                    bytes.push(POINT);
                    put_place(&mut bytes, *place);
                }
                Shape::Label(place, text) => {
                    bytes.push(LABEL);
                    put_place(&mut bytes, *place);
                    put_count(&mut bytes, text.len());
                    bytes.extend(text.as_bytes());
                }
            }
        }
        bytes
    }
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend((count as u64).to_le_bytes());
}

fn put_place(bytes: &mut Vec<u8>, place: Place) {
    bytes.extend(place.x.to_le_bytes());
    bytes.extend(place.y.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Place = Place { x: 0.0, y: 0.0 };
    const B: Place = Place { x: 1.0, y: 0.5 };
    const C: Place = Place { x: 0.5, y: 1.0 };

    #[test]
    fn lines_that_go_on_are_one_path() {
        let mut drawing = Drawing::new();
        drawing.line(Style::Solid, A, B);
        drawing.line(Style::Solid, B, C);
        drawing.line(Style::Dotted, C, A);
        drawing.line(Style::Dotted, B, C);
        let expected = [
            Shape::Path(Style::Solid, vec![A, B, C]),
            Shape::Path(Style::Dotted, vec![C, A]),
            Shape::Path(Style::Dotted, vec![B, C]),
        ];
        assert_eq!(drawing.shapes, expected);
    }

    #[test]
    fn styles_have_the_words_of_plot() {
        for (style, word) in Style::ALL {
            assert_eq!(Style::named(word), Some(style));
            assert_eq!(Style::numbered(style.number()), Some(style));
        }
        assert_eq!(Style::named("wavy"), None);
        assert_eq!(Style::numbered(5), None);
    }
}
