//! The cost of portable interfaces over the machine's own: the question of Ahmad and Wu (1991), asked again.
//!
//! Two suites, raced when they are asked for. [`paper`] has the operations of their report, at its numbers of tasks and sizes, and holds
//! the ratios of today against those of then. [`targets`] has the points at which Regatta's interfaces keep to a bound over its own.

pub mod paper;
pub mod table;
pub mod targets;

use crate::settings::Family;

/// One operation with one number of tasks (of nodes, where there is a host program), and its sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the operation.
    pub operation: &'static str,
    /// Number of tasks.
    pub tasks: u32,
    /// Sizes; of a barrier 0.
    pub bytes: Vec<u64>,
}

/// Operations that no other suite has. Asked for by name they are raced in that of the paper.
pub const OPERATIONS: [&str; 7] = [
    "host-node-recv",
    "host-node-send",
    "host-node-exchange",
    "host-broadcast",
    "global-product",
    "vector-send-recv",
    "vector-exchange",
];

/// Is this an operation of a program on the host with its nodes? Its number of tasks does not count the host.
pub fn has_host(operation: &str) -> bool {
    operation.starts_with("host-")
}

/// The numbers of tasks at which an operation can be raced; none: any from two on.
pub fn only_tasks(operation: &str) -> Option<u32> {
    match operation {
        "host-node-recv" | "host-node-send" | "host-node-exchange" => Some(1),
        "one-to-one" | "exchange" | "vector-send-recv" | "vector-exchange" => Some(2),
        _ => None,
    }
}

/// The places of a suite; none of any other suite.
pub fn places(suite: &str) -> Vec<Place> {
    match suite {
        paper::SUITE => paper::places(),
        targets::SUITE => targets::places(),
        _ => Vec::new(),
    }
}

/// Has this family a part in that suite? Bare shared memory is no interface.
pub fn takes_part(suite: &str, family: Family) -> bool {
    match suite {
        targets::SUITE => family.is_started_by_regatta(),
        _ => family != Family::Limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program must know every one of them.
    #[test]
    fn the_program_has_the_same_operations() {
        let main = include_str!("../../../../../programs/primitives/main.c");
        let places = places(paper::SUITE).into_iter().chain(targets::places());
        for operation in OPERATIONS.into_iter().chain(places.map(|p| p.operation)) {
            let entry = format!("{{.name = \"{operation}\",");
            assert!(main.contains(&entry), "{operation}");
        }
    }

    #[test]
    fn places_have_the_tasks_that_their_operations_take() {
        for suite in [paper::SUITE, targets::SUITE] {
            for place in places(suite) {
                let only = only_tasks(place.operation);
                assert!(only.is_none_or(|n| n == place.tasks), "{place:?}");
                assert!(!place.bytes.is_empty(), "{place:?}");
            }
        }
    }
}
