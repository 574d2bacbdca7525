//! A hypercube: its channels, grids in it, and the routes of a broadcast. Pure.
//!
//! Channel `i` connects two nodes whose numbers differ in bit `i`; programs name channels by masks of these bits.

/// Upper bound (exclusive) of a cube's dimension: the bits of a mask without the sign and the host's channel.
const DIMENSION_LIMIT: u32 = 30;

/// Returns the dimension of a cube of this many nodes, or `None` if that is not a power of two.
pub fn dimension(nodes: i32) -> Option<u32> {
    let nodes = u32::try_from(nodes).ok()?;
    (nodes.is_power_of_two() && nodes.trailing_zeros() < DIMENSION_LIMIT)
        .then(|| nodes.trailing_zeros())
}

/// Returns the channels of a mask in ascending order.
pub fn channels(mask: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |channel| mask >> channel & 1 == 1)
}

/// Returns the steps of a broadcast at a node: the channel from which the node receives (`None` at the source), and
/// those to which it forwards. Returns `None` if the node is not in the subcube that these channels span.
pub fn steps(
    node: u32,
    source: u32,
    mask: u32,
) -> Option<(Option<u32>, impl Iterator<Item = u32>)> {
    let way = node ^ source;
    if way & !mask != 0 {
        return None;
    }
    // The broadcast uses the channels in ascending order, so the node receives from the highest channel in which it
    // differs from the source.
    let from = way.checked_ilog2();
    let after = from.map_or(0, |from| from + 1);
    Some((
        from,
        channels(mask).filter(move |&channel| channel >= after),
    ))
}

fn gray(number: u32) -> u32 {
    number ^ (number >> 1)
}

fn number_of(gray: u32) -> u32 {
    (0..u32::BITS).fold(0, |number, shift| number ^ (gray >> shift))
}

/// A grid in a cube. Each dimension has some bits of a node's number, a Gray code, so that neighbours on its ring
/// differ in one bit.
#[derive(Debug)]
pub struct Grid {
    /// Number of bits of each dimension, from the lowest bits on.
    bits: Vec<u32>,
}

impl Grid {
    /// Makes a grid of all nodes of a cube. Fails if the counts are not powers of two whose product is the number of
    /// nodes.
    pub fn new(dimension: u32, counts: &[i32]) -> Result<Grid, String> {
        let bits = counts.iter().map(|&count| {
            self::dimension(count)
                .ok_or_else(|| format!("{count} nodes along a dimension are not a power of two"))
        });
        let bits = bits.collect::<Result<Vec<u32>, String>>()?;
        let all: u64 = bits.iter().map(|&bits| u64::from(bits)).sum();
        if all != u64::from(dimension) {
            return Err(format!(
                "a grid of 2^{all} nodes does not fill a cube of 2^{dimension} nodes"
            ));
        }
        Ok(Grid { bits })
    }

    pub fn dimensions(&self) -> usize {
        self.bits.len()
    }

    /// Returns the offset and the number of bits of each dimension.
    fn fields(&self) -> impl Iterator<Item = (u32, u32)> {
        let mut before = 0;
        self.bits.iter().map(move |&bits| {
            before += bits;
            (before - bits, bits)
        })
    }

    /// Returns the coordinates of a node.
    pub fn coordinates(&self, node: u32) -> impl Iterator<Item = i32> {
        let fields = self.fields();
        fields.map(move |(before, bits)| number_of(node >> before & ((1 << bits) - 1)) as i32)
    }

    /// Returns the node with these coordinates; all dimensions wrap around.
    pub fn node(&self, coordinates: impl Iterator<Item = i32>) -> u32 {
        let places = self.fields().zip(coordinates);
        places.fold(0, |node, ((before, bits), at)| {
            node | gray(at as u32 & ((1 << bits) - 1)) << before
        })
    }

    /// Returns the channel from a node to its neighbour along a dimension as a mask, or 0 if the node is its own
    /// neighbour.
    pub fn channel(&self, node: u32, dimension: i32, direction: i32) -> Result<u32, String> {
        let along = usize::try_from(dimension)
            .ok()
            .filter(|&along| along < self.dimensions())
            .ok_or_else(|| format!("the grid has no dimension {dimension}"))?;
        let step = direction.signum();
        let moved = self.coordinates(node).enumerate();
        let moved = moved.map(|(at, coordinate)| match at == along {
            true => coordinate.wrapping_add(step),
            false => coordinate,
        });
        Ok(node ^ self.node(moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_are_cubes() {
        assert_eq!(dimension(1), Some(0));
        assert_eq!(dimension(64), Some(6));
        for nodes in [0, -4, 3, 6, i32::MIN, 1 << 30] {
            assert_eq!(dimension(nodes), None, "{nodes}");
        }
    }

    #[test]
    fn gray_codes_are_undone() {
        for number in (0..5000).chain([u32::MAX, 1 << 31]) {
            assert_eq!(number_of(gray(number)), number);
            assert_eq!(
                (gray(number) ^ gray(number.wrapping_add(1))).count_ones(),
                1
            );
        }
    }

    /// Every node of the subcube gets the message once, from a node that has it.
    #[test]
    fn a_broadcast_reaches_each_node_of_its_part_once() {
        for mask in [0, 0b1, 0b101, 0b1111, 0b1010] {
            for source in 0..16 {
                let mut has = vec![false; 16];
                has[source as usize] = true;
                for channel in 0..4 {
                    let had = has.clone();
                    for node in (0..16_u32).filter(|&node| had[node as usize]) {
                        let Some((from, mut on)) = steps(node, source, mask) else {
                            panic!("{node} has it and is not in the part");
                        };
                        if from.is_none_or(|from| from < channel) && on.any(|to| to == channel) {
                            let to = node ^ 1 << channel;
                            let (from, _) = steps(to, source, mask).expect("in the part");
                            assert_eq!(from, Some(channel));
                            assert!(!std::mem::replace(&mut has[to as usize], true));
                        }
                    }
                }
                for node in 0..16 {
                    let is_in = (node ^ source) & !mask == 0;
                    assert_eq!(has[node as usize], is_in);
                    assert_eq!(steps(node, source, mask).is_some(), is_in);
                }
            }
        }
    }

    #[test]
    fn neighbours_in_a_grid_are_neighbours_in_the_cube() {
        let shapes: [&[i32]; 5] = [&[8], &[4, 2], &[2, 4], &[2, 2, 2], &[1, 8]];
        for counts in shapes {
            let grid = Grid::new(3, counts).unwrap();
            for node in 0..8 {
                let at: Vec<i32> = grid.coordinates(node).collect();
                assert_eq!(grid.node(at.iter().copied()), node);
                for (dimension, &count) in counts.iter().enumerate() {
                    for direction in [-1, 1] {
                        let channel = grid.channel(node, dimension as i32, direction).unwrap();
                        assert_eq!(channel.count_ones(), u32::from(count > 1));
                        let mut next = at.clone();
                        next[dimension] = (next[dimension] + direction).rem_euclid(count);
                        let there: Vec<i32> = grid.coordinates(node ^ channel).collect();
                        assert_eq!(there, next);
                    }
                }
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for counts in [&[][..], &[3], &[4], &[8, 2], &[-8], &[0, 8]] {
            assert!(Grid::new(3, counts).is_err(), "{counts:?}");
        }
        let grid = Grid::new(3, &[8]).unwrap();
        assert!(grid.channel(0, 1, 1).is_err() && grid.channel(0, -1, 1).is_err());
    }
}
