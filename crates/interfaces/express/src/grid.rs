//! Grids of nodes: coordinates, neighbours, and the parts of a domain. Pure.
//!
//! Node 0 is at the origin, and the first coordinate varies fastest. A dimension is open or a ring.

/// A grid: the number of nodes along each dimension, and whether it is a ring.
#[derive(Debug)]
pub struct Grid {
    counts: Vec<i32>,
    rings: Vec<bool>,
}

impl Grid {
    /// Makes a grid with these counts, whose dimensions are all open. Fails if it has more than `nodes` nodes.
    pub fn new(nodes: i32, counts: &[i32]) -> Result<Grid, String> {
        if counts.is_empty() {
            return Err("a grid needs at least one dimension".to_owned());
        }
        let mut product = 1_i64;
        for &count in counts {
            if count < 1 {
                return Err(format!("a dimension cannot have {count} nodes"));
            }
            product = product.saturating_mul(i64::from(count));
        }
        if product > i64::from(nodes) {
            return Err(format!(
                "the grid has {product} nodes, and there are {nodes}"
            ));
        }
        Ok(Grid {
            counts: counts.to_vec(),
            rings: vec![false; counts.len()],
        })
    }

    pub fn dimensions(&self) -> usize {
        self.counts.len()
    }

    /// Sets for each dimension whether it is a ring.
    pub fn set_rings(&mut self, rings: impl Iterator<Item = bool>) {
        for (ring, value) in self.rings.iter_mut().zip(rings) {
            *ring = value;
        }
    }

    /// Returns the coordinates of a node, from the first dimension on.
    pub fn coordinates(&self, node: i32) -> Result<impl Iterator<Item = i32>, String> {
        if !(0..self.counts.iter().product::<i32>()).contains(&node) {
            return Err(format!("node {node} is not in the grid"));
        }
        let mut rest = node;
        Ok(self.counts.iter().map(move |count| {
            let at = rest % count;
            rest /= count;
            at
        }))
    }

    /// Returns the node with these coordinates. Rings wrap around; outside an open dimension there is none.
    pub fn node(&self, coordinates: impl Iterator<Item = i64>) -> Option<i32> {
        let (mut node, mut step) = (0, 1);
        for (at, (&count, &ring)) in coordinates.zip(self.counts.iter().zip(&self.rings)) {
            let at = match ring {
                true => at.rem_euclid(i64::from(count)),
                false => at,
            };
            let at = i32::try_from(at)
                .ok()
                .filter(|at| (0..count).contains(at))?;
            node += at * step;
            step *= count;
        }
        Some(node)
    }

    /// Returns the node at this distance along a dimension.
    pub fn neighbour(
        &self,
        node: i32,
        dimension: i32,
        distance: i32,
    ) -> Result<Option<i32>, String> {
        let along = usize::try_from(dimension)
            .ok()
            .filter(|&along| along < self.dimensions())
            .ok_or_else(|| format!("the grid has no dimension {dimension}"))?;
        let coordinates = self.coordinates(node)?.enumerate();
        let moved = coordinates.map(|(dimension, at)| match dimension == along {
            true => i64::from(at) + i64::from(distance),
            false => i64::from(at),
        });
        Ok(self.node(moved))
    }

    /// Returns a node's part of a domain with this many points along each dimension: for each dimension the number of
    /// its points, and the first one. If the points cannot be divided equally, the first nodes have one more.
    pub fn parts(
        &self,
        node: i32,
        domain: impl Iterator<Item = i32>,
    ) -> Result<impl Iterator<Item = (i32, i32)>, String> {
        let coordinates = self.coordinates(node)?;
        let places = coordinates.zip(&self.counts).zip(domain);
        Ok(places.map(|((at, count), points)| {
            let (each, more) = (points / count, points % count);
            (each + i32::from(at < more), at * each + at.min(more))
        }))
    }
}

/// Splits a number of nodes into factors, as equal as possible, in descending order.
pub fn split(nodes: i32, dimensions: usize) -> Vec<i32> {
    let mut counts = vec![1; dimensions];
    for factor in factors(nodes).into_iter().rev() {
        if let Some(shortest) = counts.iter_mut().min() {
            *shortest *= factor;
        }
    }
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts
}

/// Returns the prime factors in ascending order.
fn factors(number: i32) -> Vec<i32> {
    let (mut rest, mut factor, mut found) = (number, 2, Vec::new());
    while i64::from(factor) * i64::from(factor) <= i64::from(rest) {
        if rest % factor == 0 {
            found.push(factor);
            rest /= factor;
        } else {
            factor += 1;
        }
    }
    if rest > 1 {
        found.push(rest);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(grid: &Grid, node: i32) -> Vec<i32> {
        grid.coordinates(node).unwrap().collect()
    }

    #[test]
    fn the_first_coordinate_changes_fastest() {
        let grid = Grid::new(6, &[3, 2]).unwrap();
        let all: Vec<_> = (0..6).map(|node| at(&grid, node)).collect();
        assert_eq!(all, [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]);
        for node in 0..6 {
            let coordinates = at(&grid, node).into_iter().map(i64::from);
            assert_eq!(grid.node(coordinates), Some(node));
        }
        assert!(grid.coordinates(6).is_err() && grid.coordinates(-1).is_err());
    }

    #[test]
    fn open_dimensions_end_and_rings_go_around() {
        let mut grid = Grid::new(6, &[3, 2]).unwrap();
        assert_eq!(grid.neighbour(2, 0, 1), Ok(None));
        assert_eq!(grid.neighbour(2, 0, -2), Ok(Some(0)));
        assert_eq!(grid.neighbour(2, 1, 1), Ok(Some(5)));
        grid.set_rings([true, false].into_iter());
        assert_eq!(grid.neighbour(2, 0, 1), Ok(Some(0)));
        assert_eq!(grid.neighbour(3, 0, -4), Ok(Some(5)));
        assert_eq!(grid.neighbour(3, 0, i32::MIN), Ok(Some(4)));
        assert_eq!(grid.neighbour(2, 1, -1), Ok(None));
        assert!(grid.neighbour(2, 2, 1).is_err() && grid.neighbour(2, -1, 1).is_err());
    }

    #[test]
    fn parts_cover_a_domain_without_a_gap() {
        for count in 1..7 {
            let grid = Grid::new(count, &[count]).unwrap();
            for points in 0..20 {
                let mut next = 0;
                for node in 0..count {
                    let domain = std::iter::once(points);
                    let (size, start) = grid.parts(node, domain).unwrap().next().unwrap();
                    assert_eq!(start, next);
                    assert!(size == points / count || size == points / count + 1);
                    next = start + size;
                }
                assert_eq!(next, points);
            }
        }
    }

    #[test]
    fn nodes_are_split_as_equally_as_they_can_be() {
        let shapes = [
            (12, 2, vec![4, 3]),
            (8, 3, vec![2, 2, 2]),
            (7, 2, vec![7, 1]),
        ];
        for (nodes, dimensions, shape) in shapes {
            assert_eq!(split(nodes, dimensions), shape);
        }
        for nodes in 1..200 {
            for dimensions in 1..5 {
                assert_eq!(split(nodes, dimensions).iter().product::<i32>(), nodes);
            }
        }
        assert_eq!(split(i32::MAX, 2), [i32::MAX, 1]);
    }

    #[test]
    fn nonsense_is_refused() {
        for counts in [
            &[][..],
            &[0],
            &[2, -1],
            &[4, 4],
            &[i32::MAX, i32::MAX, i32::MAX],
        ] {
            assert!(Grid::new(15, counts).is_err(), "{counts:?}");
        }
        assert!(Grid::new(15, &[4, 3]).is_ok());
    }
}
