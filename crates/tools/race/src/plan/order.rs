//! The order of launches: in rounds, each in random order.

use super::Group;

/// A planned launch: a group, and the seed for the order of its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Index of the group.
    pub group: usize,
    /// Number of the launch within its group, from 0.
    pub round: u32,
    /// Seed of the order of operations.
    pub seed: u64,
}

/// Returns the launches of all groups, in rounds, each in random order.
pub fn order(groups: &[Group], seed: u64) -> Vec<Launch> {
    let mut random = fastrand::Rng::with_seed(seed);
    let rounds = groups.iter().map(|group| group.launches).max().unwrap_or(0);
    let mut launches = Vec::new();
    for round in 0..rounds {
        let mut members: Vec<usize> = (0..groups.len())
            .filter(|&g| round < groups[g].launches)
            .collect();
        random.shuffle(&mut members);
        launches.extend(members.into_iter().map(|group| Launch {
            group,
            round,
            seed: random.u64(..),
        }));
    }
    launches
}

/// Returns the points of a launch as the program's arguments, in random order.
pub fn arguments(points: &[(String, Vec<u64>)], seed: u64) -> Vec<String> {
    let mut points = points.to_vec();
    fastrand::Rng::with_seed(seed).shuffle(&mut points);
    let text = |sizes: &[u64]| {
        sizes
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(",")
    };
    points
        .iter()
        .map(|(operation, sizes)| format!("{operation}={}", text(sizes)))
        .collect()
}
