//! Clips lines to the page and a margin around it. Pure.
//!
//! A line may be thousands of pages long. The dashes outside the page are invisible but numerous, so they are not
//! generated.

use crate::drawing::{FARTHEST, Place};

/// Consecutive lines of a path that are inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Length of the path before the first point.
    pub before: f64,
    /// The end points of the lines.
    pub places: Vec<Place>,
}

/// Returns the parts of a path that are on the page or within the margin.
pub fn runs(places: &[Place], margin: f64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut before, mut goes_on) = (0.0, false);
    for ends in places.windows(2) {
        let [from, to] = [near(ends[0]), near(ends[1])];
        let length = (to.x - from.x).hypot(to.y - from.y);
        let inside = part_inside(from, to, margin);
        if let Some((begin, end)) = inside {
            match runs.last_mut().filter(|_| goes_on && begin == 0.0) {
                Some(run) => run.places.push(between(from, to, end)),
                None => runs.push(Run {
                    before: before + begin * length,
                    places: vec![between(from, to, begin), between(from, to, end)],
                }),
            }
        }
        goes_on = inside.is_some_and(|(_, end)| end == 1.0);
        before += length;
    }
    runs
}

/// Limits coordinates to a computable range: those from another node may be anything. Circles may reach twice as far as
/// other shapes.
fn near(place: Place) -> Place {
    const MAX_COORDINATE: f64 = 2.0 * FARTHEST;
    Place {
        x: place.x.clamp(-MAX_COORDINATE, MAX_COORDINATE),
        y: place.y.clamp(-MAX_COORDINATE, MAX_COORDINATE),
    }
}

/// Returns the point at a fraction of a line.
fn between(from: Place, to: Place, share: f64) -> Place {
    match share {
        1.0 => to,
        _ => Place {
            x: from.x + share * (to.x - from.x),
            y: from.y + share * (to.y - from.y),
        },
    }
}

/// Returns the fractions of a line at which its part inside begins and ends (Liang and Barsky, 1984).
pub fn part_inside(from: Place, to: Place, margin: f64) -> Option<(f64, f64)> {
    let (mut begin, mut end) = (0.0_f64, 1.0_f64);
    for (from, to) in [(from.x, to.x), (from.y, to.y)] {
        let (low, high, way) = (-margin - from, 1.0 + margin - from, to - from);
        if way == 0.0 {
            if low > 0.0 || high < 0.0 {
                return None;
            }
            continue;
        }
        let (enters, leaves) = match way > 0.0 {
            true => (low / way, high / way),
            false => (high / way, low / way),
        };
        begin = begin.max(enters);
        end = end.min(leaves);
    }
    (begin <= end).then_some((begin, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(x: f64, y: f64) -> Place {
        Place { x, y }
    }

    #[test]
    fn a_line_has_the_part_that_crosses_the_page() {
        let part = part_inside(at(-1.0, 0.5), at(3.0, 0.5), 0.0);
        assert_eq!(part, Some((0.25, 0.5)));
        let part = part_inside(at(0.5, 2.0), at(0.5, -2.0), 0.0);
        assert_eq!(part, Some((0.25, 0.5)));
        assert_eq!(
            part_inside(at(0.5, 0.5), at(0.5, 0.5), 0.0),
            Some((0.0, 1.0))
        );
    }

    #[test]
    fn a_line_beside_the_page_has_none_but_within_the_margin() {
        let (from, to) = (at(-5.0, 1.25), at(5.0, 1.25));
        assert_eq!(part_inside(from, to, 0.0), None);
        assert!(part_inside(from, to, 0.5).is_some());
        assert_eq!(part_inside(at(-1.0, 0.5), at(0.5, 2.0), 0.0), None);
    }

    #[test]
    fn lines_that_stay_inside_are_one_run_with_their_joints() {
        let places = [at(0.0, 0.0), at(1.0, 0.0), at(1.0, 1.0)];
        let whole = Run {
            before: 0.0,
            places: places.to_vec(),
        };
        assert_eq!(runs(&places, 0.0), [whole]);
    }

    #[test]
    fn a_path_that_comes_back_goes_on_with_the_length_it_had() {
        let places = [at(0.5, 0.5), at(2.5, 0.5), at(2.5, 0.75), at(0.5, 0.75)];
        let found = runs(&places, 0.0);
        let expected = [
            Run {
                before: 0.0,
                places: vec![at(0.5, 0.5), at(1.0, 0.5)],
            },
            Run {
                before: 3.75,
                places: vec![at(1.0, 0.75), at(0.5, 0.75)],
            },
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        /// The parts are inside for arbitrary lines.
        #[test]
        fn parts_of_any_lines_are_inside(numbers in prop::collection::vec((any::<f64>(), any::<f64>(), 0u8..3), 0..9)) {
            let place = |&(x, y, how): &(f64, f64, u8)| match how {
                0 => at(x, y),
                1 => at(x % 3.0, y % 3.0),
                _ => at(x % 3e4, y % 3e4),
            };
            let finite = |place: &Place| place.x.is_finite() && place.y.is_finite();
            let places: Vec<Place> = numbers.iter().map(place).filter(finite).collect();
            for run in runs(&places, 0.1) {
                prop_assert!(run.before.is_finite() && run.places.len() > 1);
                for place in run.places {
                    let inside = -0.1 - 1e-9..=1.1 + 1e-9;
                    prop_assert!(inside.contains(&place.x) && inside.contains(&place.y), "{place:?}");
                }
            }
        }
    }
}
