//! A node's pen: converts its calls to shapes, with its space and line style. Pure.

use crate::arc;
use crate::drawing::{Drawing, Place, Shape, Style};
use crate::space::Space;

/// The state of a node between its calls, and what it has drawn since its last part was sent to node 0.
pub struct Pen {
    space: Space,
    style: Style,
    /// The current point, on the page.
    at: Place,
    pub drawn: Drawing,
}

/// Fails if a coordinate is not finite.
fn finite(numbers: &[f64]) -> Result<(), String> {
    match numbers.iter().find(|number| !number.is_finite()) {
        Some(number) => Err(format!("the coordinate {number} is not finite")),
        None => Ok(()),
    }
}

impl Pen {
    pub const fn new() -> Pen {
        Pen {
            space: Space::UNIT,
            style: Style::Solid,
            at: Place { x: 0.0, y: 0.0 },
            drawn: Drawing::new(),
        }
    }

    fn place(&self, x: f64, y: f64) -> Result<Place, String> {
        finite(&[x, y])?;
        self.space.place(Place { x, y })
    }

    pub fn space(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) -> Result<(), String> {
        finite(&[x0, y0, x1, y1])?;
        self.space = Space::new(Place { x: x0, y: y0 }, Place { x: x1, y: y1 })?;
        Ok(())
    }

    pub fn style(&mut self, name: &str) -> Result<(), String> {
        let words: Vec<_> = Style::ALL.iter().map(|(_, word)| *word).collect();
        self.style = Style::named(name).ok_or_else(|| {
            format!(
                "there is no line style {name}; the styles are {}",
                words.join(", ")
            )
        })?;
        Ok(())
    }

    pub fn go(&mut self, x: f64, y: f64) -> Result<(), String> {
        self.at = self.place(x, y)?;
        Ok(())
    }

    pub fn draw_to(&mut self, x: f64, y: f64) -> Result<(), String> {
        let to = self.place(x, y)?;
        self.drawn.line(self.style, self.at, to);
        self.at = to;
        Ok(())
    }

    pub fn line(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) -> Result<(), String> {
        let (from, to) = (self.place(x0, y0)?, self.place(x1, y1)?);
        self.drawn.line(self.style, from, to);
        self.at = to;
        Ok(())
    }

    pub fn rectangle(&mut self, x0: f64, y0: f64, x1: f64, y1: f64) -> Result<(), String> {
        let corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)];
        let places = corners.map(|(x, y)| self.place(x, y));
        let places = places.into_iter().collect::<Result<Vec<_>, _>>()?;
        self.at = places[2];
        self.drawn.shapes.push(Shape::Path(self.style, places));
        Ok(())
    }

    pub fn point(&mut self, x: f64, y: f64) -> Result<(), String> {
        self.at = self.place(x, y)?;
        self.drawn.shapes.push(Shape::Point(self.at));
        Ok(())
    }

    pub fn circle(&mut self, x: f64, y: f64, radius: f64) -> Result<(), String> {
        finite(&[x, y, radius])?;
        let (centre, radius) = (self.place(x, y)?, self.space.length(radius)?);
        let circle = Shape::Circle(self.style, centre, radius);
        self.drawn.shapes.push(circle);
        Ok(())
    }

    /// Draws an arc around a centre, counter-clockwise, from a point to the direction of another one; a whole circle if
    /// the directions are the same.
    pub fn arc(&mut self, centre: [f64; 2], from: [f64; 2], to: [f64; 2]) -> Result<(), String> {
        finite(&[centre, from, to].concat())?;
        let [(x0, y0), (x1, y1)] = [from, to].map(|[x, y]| (x - centre[0], y - centre[1]));
        let (radius, begin) = (x0.hypot(y0), y0.atan2(x0));
        let mut turn = (y1.atan2(x1) - begin).rem_euclid(std::f64::consts::TAU);
        if turn == 0.0 {
            turn = std::f64::consts::TAU;
        }
        let steps = arc::steps(self.space.length(radius)?, turn);
        let places = (0..=steps).map(|step| {
            let angle = begin + turn * step as f64 / steps as f64;
            let (sine, cosine) = angle.sin_cos();
            self.place(centre[0] + radius * cosine, centre[1] + radius * sine)
        });
        let places = places.collect::<Result<Vec<_>, _>>()?;
        self.drawn.shapes.push(Shape::Path(self.style, places));
        Ok(())
    }

    /// Draws a text at the current point. Control characters are replaced by blanks.
    pub fn label(&mut self, text: &str) {
        let seen = |c: char| if c.is_control() { ' ' } else { c };
        let text = text.chars().map(seen).collect();
        self.drawn.shapes.push(Shape::Label(self.at, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f64, y: f64) -> Place {
        Place { x, y }
    }

    #[test]
    fn calls_move_the_current_point_as_plot_says() {
        let mut pen = Pen::new();
        pen.space(0.0, 0.0, 10.0, 10.0).unwrap();
        pen.go(5.0, 5.0).unwrap();
        pen.draw_to(10.0, 5.0).unwrap();
        pen.point(0.0, 5.0).unwrap();
        pen.draw_to(0.0, 10.0).unwrap();
        pen.line(5.0, 0.0, 5.0, 5.0).unwrap();
        pen.circle(0.0, 0.0, 1.0).unwrap();
        pen.label("a\tb");
        let expected = [
            Shape::Path(Style::Solid, vec![at(0.5, 0.5), at(1.0, 0.5)]),
            Shape::Point(at(0.0, 0.5)),
            Shape::Path(Style::Solid, vec![at(0.0, 0.5), at(0.0, 1.0)]),
            Shape::Path(Style::Solid, vec![at(0.5, 0.0), at(0.5, 0.5)]),
            Shape::Circle(Style::Solid, at(0.0, 0.0), 0.1),
            Shape::Label(at(0.5, 0.5), "a b".to_owned()),
        ];
        assert_eq!(pen.drawn.shapes, expected);
    }

    fn ends(to: [f64; 2]) -> (Vec<Place>, Place, Place) {
        let mut pen = Pen::new();
        pen.arc([0.5, 0.5], [1.0, 0.5], to).unwrap();
        let Some(Shape::Path(_, places)) = pen.drawn.shapes.pop() else {
            panic!("an arc is a path");
        };
        let (first, last) = (places[0], places[places.len() - 1]);
        (places, first, last)
    }

    fn near(one: Place, other: Place) -> bool {
        (one.x - other.x).hypot(one.y - other.y) < 1e-9
    }

    #[test]
    fn arcs_go_counter_clockwise_to_the_direction_of_their_end() {
        // A quarter; the end point is outside the circle.
        let (places, first, last) = ends([0.5, 9.0]);
        assert!(near(first, at(1.0, 0.5)) && near(last, at(0.5, 1.0)));
        assert!(places.iter().all(|place| place.y >= 0.5 - 1e-9));
        // Three quarters.
        let (places, _, last) = ends([0.5, 0.0]);
        assert!(near(last, at(0.5, 0.0)) && places.iter().any(|place| place.x < 0.01));
        // A whole circle.
        let (places, first, last) = ends([1.0, 0.5]);
        assert!(near(first, last) && places.len() > 180);
    }

    #[test]
    fn a_wide_arc_is_on_its_circle_where_the_page_shows_a_small_part_of_it() {
        let mut pen = Pen::new();
        pen.arc([-2000.0, 0.5], [0.5, 0.5], [-2000.0, 2001.0])
            .unwrap();
        let Some(Shape::Path(_, places)) = pen.drawn.shapes.pop() else {
            panic!("an arc is a path");
        };
        for ends in places.windows(2) {
            let middle = [(ends[0].x + ends[1].x) / 2.0, (ends[0].y + ends[1].y) / 2.0];
            let off = 2000.5 - (middle[0] + 2000.0).hypot(middle[1] - 0.5);
            assert!(off < 2e-4, "{off}");
        }
    }

    #[test]
    fn rectangles_are_closed() {
        let mut pen = Pen::new();
        pen.rectangle(0.0, 0.0, 1.0, 0.5).unwrap();
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 0.5), (0.0, 0.5), (0.0, 0.0)];
        let places = corners.map(|(x, y)| at(x, y)).to_vec();
        assert_eq!(pen.drawn.shapes, [Shape::Path(Style::Solid, places)]);
    }

    #[test]
    fn coordinates_that_are_not_finite_are_refused_and_nothing_is_drawn() {
        let mut pen = Pen::new();
        let (nan, endless) = (f64::NAN, f64::INFINITY);
        let faults = [
            pen.go(nan, 0.0),
            pen.draw_to(0.0, endless),
            pen.line(0.0, 0.0, 0.0, nan),
            pen.rectangle(nan, 0.0, 1.0, 1.0),
            pen.point(endless, 0.0),
            pen.circle(0.0, 0.0, nan),
            pen.arc([0.0, 0.0], [1.0, nan], [0.0, 0.0]),
            pen.space(0.0, 0.0, endless, 1.0),
        ];
        for fault in faults {
            assert!(fault.unwrap_err().ends_with("is not finite"));
        }
        assert!(pen.drawn.shapes.is_empty());
    }

    #[test]
    fn lines_of_unknown_style_are_refused() {
        let mut pen = Pen::new();
        pen.style("dotted").unwrap();
        let fault = pen.style("wavy").unwrap_err();
        assert!(fault.starts_with("there is no line style wavy; the styles are solid, dotted"));
        pen.line(0.0, 0.0, 1.0, 1.0).unwrap();
        assert!(matches!(
            pen.drawn.shapes[..],
            [Shape::Path(Style::Dotted, _)]
        ));
    }
}
