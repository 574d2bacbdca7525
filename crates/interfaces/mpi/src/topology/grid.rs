//! Cartesian topologies.

use std::ffi::c_int;

use crate::abi::*;

/// A Cartesian grid. The last coordinate varies fastest with the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Length of each dimension.
    pub dims: Vec<c_int>,
    /// Whether each dimension is periodic.
    pub periodic: Vec<bool>,
}

impl Grid {
    /// Returns the number of processes. Returns `None` on overflow.
    pub fn size(&self) -> Option<c_int> {
        let mut dims = self.dims.iter();
        dims.try_fold(1 as c_int, |size, &dim| size.checked_mul(dim))
    }

    /// Returns the coordinates of a rank.
    pub fn coordinates(&self, rank: c_int) -> Vec<c_int> {
        let mut rest = rank;
        let mut coordinates = vec![0; self.dims.len()];
        for (place, &dim) in coordinates.iter_mut().zip(&self.dims).rev() {
            *place = rest % dim;
            rest /= dim;
        }
        coordinates
    }

    /// Returns the rank at these coordinates. In a periodic dimension any coordinate is allowed. Fails with the first
    /// dimension whose coordinate is out of range.
    pub fn rank(&self, coordinates: &[c_int]) -> Result<c_int, usize> {
        let mut rank = 0;
        for (at, &coordinate) in coordinates.iter().enumerate() {
            let dim = self.dims[at];
            let inside = match self.periodic[at] {
                true => coordinate.rem_euclid(dim),
                false if (0..dim).contains(&coordinate) => coordinate,
                false => return Err(at),
            };
            rank = rank * dim + inside;
        }
        Ok(rank)
    }

    /// Returns the process at a distance of `by` along a dimension, or MPI_PROC_NULL.
    pub fn shifted(&self, rank: c_int, dimension: usize, by: i64) -> c_int {
        let dim = i64::from(self.dims[dimension]);
        let stride: c_int = self.dims[dimension + 1..].iter().product();
        let coordinate = i64::from(rank / stride) % dim;
        let mut moved = coordinate + by;
        if self.periodic[dimension] {
            moved = moved.rem_euclid(dim);
        }
        match (0..dim).contains(&moved) {
            true => rank + (moved - coordinate) as c_int * stride,
            false => PROC_NULL,
        }
    }

    /// Returns the neighbours of a rank: for each dimension the preceding and the following process.
    pub fn neighbours(&self, rank: c_int) -> Vec<c_int> {
        let dimensions = 0..self.dims.len();
        dimensions
            .flat_map(|at| [self.shifted(rank, at, -1), self.shifted(rank, at, 1)])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coordinates_belong_together() {
        let grid = Grid {
            dims: vec![2, 3],
            periodic: vec![false, true],
        };
        assert_eq!(grid.size(), Some(6));
        for rank in 0..6 {
            assert_eq!(grid.rank(&grid.coordinates(rank)), Ok(rank));
        }
        assert_eq!(grid.coordinates(4), [1, 1]);
        assert_eq!(grid.rank(&[1, -1]), Ok(5));
        assert_eq!(grid.rank(&[2, 0]), Err(0));
        assert_eq!(grid.neighbours(0), [PROC_NULL, 3, 2, 1]);
        assert_eq!(grid.shifted(0, 1, i64::from(c_int::MAX)), 1);
    }
}
