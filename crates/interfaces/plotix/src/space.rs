//! Maps the program's coordinates to the page. Pure.

use crate::drawing::{FARTHEST, Place};

/// The part of the program's plane that is drawn: centred on the page, as large as fits with equal scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Space {
    /// The centre, in the program's coordinates.
    middle: Place,
    /// Page lengths per unit of the program, negative along an axis that is reversed.
    scale: Place,
}

impl Space {
    /// From 0 to 1 on both axes.
    pub const UNIT: Space = Space {
        middle: Place { x: 0.5, y: 0.5 },
        scale: Place { x: 1.0, y: 1.0 },
    };

    /// Makes a space with these lower left and upper right corners.
    pub fn new(from: Place, to: Place) -> Result<Space, String> {
        let (width, height) = (to.x - from.x, to.y - from.y);
        let scale = 1.0 / width.abs().max(height.abs());
        if width == 0.0 || height == 0.0 || !scale.is_normal() {
            return Err(format!(
                "a space from ({}, {}) to ({}, {}) has no area to draw in",
                from.x, from.y, to.x, to.y
            ));
        }
        Ok(Space {
            middle: Place {
                x: from.x + width / 2.0,
                y: from.y + height / 2.0,
            },
            scale: Place {
                x: scale.copysign(width),
                y: scale.copysign(height),
            },
        })
    }

    /// Returns where a point of the program is on the page.
    pub fn place(&self, at: Place) -> Result<Place, String> {
        let on = Place {
            x: 0.5 + (at.x - self.middle.x) * self.scale.x,
            y: 0.5 + (at.y - self.middle.y) * self.scale.y,
        };
        match on.x.abs() <= FARTHEST && on.y.abs() <= FARTHEST {
            true => Ok(on),
            false => Err(format!(
                "({}, {}) is too far from the space that is drawn",
                at.x, at.y
            )),
        }
    }

    /// Returns the length on the page of a length of the program.
    pub fn length(&self, length: f64) -> Result<f64, String> {
        let on = length.abs() * self.scale.x.abs();
        match on <= FARTHEST {
            true => Ok(on),
            false => Err(format!("{length} is too long for the space that is drawn")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Place {
        Place { x, y }
    }

    #[test]
    fn corners_of_a_square_are_those_of_the_page() {
        let space = Space::new(at(-10.0, 20.0), at(30.0, 60.0)).unwrap();
        assert_eq!(space.place(at(-10.0, 20.0)), Ok(at(0.0, 0.0)));
        assert_eq!(space.place(at(30.0, 60.0)), Ok(at(1.0, 1.0)));
        assert_eq!(space.length(10.0), Ok(0.25));
        assert_eq!(Space::new(at(0.0, 0.0), at(1.0, 1.0)), Ok(Space::UNIT));
    }

    #[test]
    fn scales_are_equal_and_the_rest_of_the_page_is_left() {
        let space = Space::new(at(0.0, 0.0), at(100.0, 50.0)).unwrap();
        assert_eq!(space.place(at(0.0, 0.0)), Ok(at(0.0, 0.25)));
        assert_eq!(space.place(at(100.0, 50.0)), Ok(at(1.0, 0.75)));
    }

    #[test]
    fn an_axis_can_be_turned() {
        let space = Space::new(at(0.0, 8.0), at(8.0, 0.0)).unwrap();
        assert_eq!(space.place(at(0.0, 8.0)), Ok(at(0.0, 0.0)));
        assert_eq!(space.place(at(8.0, 2.0)), Ok(at(1.0, 0.75)));
    }

    #[test]
    fn nonsense_is_refused() {
        let huge = f64::MAX;
        for (from, to) in [
            (at(0.0, 0.0), at(0.0, 5.0)),
            (at(-huge, -huge), at(huge, huge)),
        ] {
            let fault = Space::new(from, to).unwrap_err();
            assert!(fault.contains("has no area"), "{fault}");
        }
        let fault = Space::UNIT.place(at(1e5, 0.0)).unwrap_err();
        assert!(fault.contains("too far"), "{fault}");
        assert!(Space::UNIT.length(1e5).is_err());
    }
}
