//! Approximates arcs by lines. Pure.

use std::f64::consts::{PI, TAU};

use crate::drawing::Place;

/// Maximum distance of a line from its arc, in page lengths: a tenth of a pixel.
const BESIDE: f64 = 1e-4;
/// Maximum angle of a line.
const STEP: f64 = PI / 90.0;

/// Returns the number of lines for an arc with this radius on the page and this angle.
pub fn steps(radius: f64, turn: f64) -> usize {
    let step = (8.0 * BESIDE / radius.abs()).sqrt().min(STEP);
    (turn / step).ceil() as usize
}

/// Returns the points of a circle, clockwise from its rightmost point, as in SVG.
pub fn circle(centre: Place, radius: f64) -> Vec<Place> {
    let steps = steps(radius, TAU);
    let place = |step| {
        let (sine, cosine) = (TAU * step as f64 / steps as f64).sin_cos();
        Place {
            x: centre.x + radius * cosine,
            y: centre.y - radius * sine,
        }
    };
    (0..=steps).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_each_line_of_a_circle_is_on_it() {
        for radius in [0.01, 0.5, 30.0, 1e4] {
            let places = circle(Place { x: 0.5, y: 0.5 }, radius);
            assert!(places.len() < 100_000);
            for ends in places.windows(2) {
                let middle = [ends[0].x + ends[1].x - 1.0, ends[0].y + ends[1].y - 1.0];
                let off = radius - middle[0].hypot(middle[1]) / 2.0;
                assert!((-1e-9..=BESIDE * 1.01).contains(&off), "{radius}: {off}");
            }
        }
    }
}
