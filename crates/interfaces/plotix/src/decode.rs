//! Decodes shapes from another node, whose bytes may be invalid. Pure.

use crate::drawing::{CIRCLE, Drawing, LABEL, PATH, POINT, Place, Shape, Style};

/// The bytes that have not been read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*front)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Reads a finite number.
    fn number(&mut self) -> Option<f64> {
        self.take()
            .map(f64::from_le_bytes)
            .filter(|n| n.is_finite())
    }

    fn place(&mut self) -> Option<Place> {
        let (x, y) = (self.number()?, self.number()?);
        Some(Place { x, y })
    }

    /// Reads a number of elements of this size. Returns `None` if the rest is too short for them.
    fn count(&mut self, each: usize) -> Option<usize> {
        let count = usize::try_from(u64::from_le_bytes(self.take()?)).ok()?;
        (count.checked_mul(each)? <= self.0.len()).then_some(count)
    }

    fn style(&mut self) -> Option<Style> {
        Style::numbered(self.byte()?)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.count(1)?;
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn shape(&mut self) -> Option<Shape> {
        match self.byte()? {
            PATH => {
                let style = self.style()?;
                let count = self.count(size_of::<[f64; 2]>())?;
                let places = (0..count).map(|_| self.place());
                Some(Shape::Path(style, places.collect::<Option<_>>()?))
            }
            CIRCLE => Some(Shape::Circle(self.style()?, self.place()?, self.number()?)),
            POINT => self.place().map(Shape::Point),
            LABEL => Some(Shape::Label(self.place()?, self.text()?)),
            _ => None,
        }
    }
}

/// Decodes the shapes. Returns `None` if the bytes are invalid.
pub fn decode(bytes: &[u8]) -> Option<Drawing> {
    let (mut rest, mut drawing) = (Rest(bytes), Drawing::new());
    while !rest.0.is_empty() {
        drawing.shapes.push(rest.shape()?);
    }
    Some(drawing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> impl Strategy<Value = Place> {
        (-9.0..9.0, -9.0..9.0).prop_map(|(x, y)| Place { x, y })
    }

    fn style() -> impl Strategy<Value = Style> {
        prop::sample::select(Style::ALL.map(|(style, _)| style).to_vec())
    }

    fn shape() -> impl Strategy<Value = Shape> {
        prop_oneof![
            (style(), prop::collection::vec(place(), 0..9)).prop_map(|(s, p)| Shape::Path(s, p)),
            (style(), place(), 0.0..9.0).prop_map(|(s, p, r)| Shape::Circle(s, p, r)),
            place().prop_map(Shape::Point),
            (place(), ".{0,9}").prop_map(|(p, text)| Shape::Label(p, text)),
        ]
    }

    proptest! {
        #[test]
        fn shapes_come_back(shapes in prop::collection::vec(shape(), 0..9)) {
            let drawing = Drawing { shapes };
            prop_assert_eq!(decode(&drawing.encode()), Some(drawing));
        }

        #[test]
        fn any_bytes_are_shapes_or_are_refused(bytes in prop::collection::vec(0u8..6, 0..200)) {
            if let Some(drawing) = decode(&bytes) {
                prop_assert_eq!(drawing.encode(), bytes);
            }
        }

        #[test]
        fn a_part_that_is_cut_is_refused(shape in shape(), cut in any::<prop::sample::Index>()) {
            let bytes = Drawing { shapes: vec![shape] }.encode();
            let cut = 1 + cut.index(bytes.len() - 1);
            prop_assert_eq!(decode(&bytes[..cut]), None);
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        for number in [f64::NAN, f64::INFINITY] {
            let shapes = vec![Shape::Point(Place { x: number, y: 0.0 })];
            assert_eq!(decode(&Drawing { shapes }.encode()), None);
        }
    }
}
