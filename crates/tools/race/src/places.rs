//! Points of suites that list them one by one: those of papers, and those of bounds.

use std::collections::BTreeSet;

use crate::operations::{self, Operation, Room};
use crate::reference;
use crate::suites::{Points, Suite};

/// One operation with one number of tasks (of nodes, where there is a host program), and its sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The operation.
    pub operation: &'static Operation,
    /// Number of tasks.
    pub tasks: u32,
    /// Sizes in bytes. For an application the sizes of its problems, for a barrier 0.
    pub bytes: Vec<u64>,
}

/// Returns the places of a suite, or nothing if its points are derived from its operations.
pub fn places(suite: &Suite) -> Vec<Place> {
    match suite.points {
        Points::Listed(list) => list(),
        Points::OfOperations | Points::Pairs => Vec::new(),
    }
}

/// Returns every operation of a suite with the numbers of tasks and the sizes of its entry.
pub fn of_entries(suite: &Suite) -> Vec<Place> {
    let of = |operation: &'static Operation| {
        operation.numbers.iter().map(move |&tasks| Place {
            operation,
            tasks,
            bytes: operation.bytes.to_vec(),
        })
    };
    operations::of(suite).flat_map(of).collect()
}

/// Numbers of tasks: each number of hosts, and twice that.
const TASKS_OF_HOSTS: [u32; 4] = [2, 4, 8, 16];
/// Sizes between hosts, bytes.
const SIZES_OF_HOSTS: [u64; 7] = [8, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Maximum size of one task's blocks for all tasks together, in bytes: each block crosses links that share a few
/// processors.
const MAX_BLOCKS_BETWEEN_HOSTS: u64 = 16 << 20;

/// Returns every operation of a suite that is raced between hosts. The plan selects those with as many tasks as there
/// are hosts, and with twice as many.
pub fn of_hosts(suite: &Suite) -> Vec<Place> {
    let of = |operation: &'static Operation| {
        let numbers = TASKS_OF_HOSTS.into_iter();
        numbers
            .filter(move |tasks| operation.exactly.is_none_or(|only| only == *tasks))
            .map(move |tasks| Place {
                operation,
                tasks,
                bytes: sizes_between_hosts(operation, tasks),
            })
    };
    operations::of(suite).flat_map(of).collect()
}

fn sizes_between_hosts(operation: &Operation, tasks: u32) -> Vec<u64> {
    let blocks = match operation.room {
        Room::EachTask => u64::from(tasks),
        Room::Blocks(_) | Room::Windows(_) => 1,
    };
    let fits = |bytes: &u64| bytes * blocks <= MAX_BLOCKS_BETWEEN_HOSTS;
    SIZES_OF_HOSTS.into_iter().filter(fits).collect()
}

/// Numbers of tasks of guidelines.
const TASKS_OF_GUIDELINES: [u32; 3] = [2, 4, 8];
/// Sizes of guidelines, in bytes.
const SIZES_OF_GUIDELINES: [u64; 4] = [8, 1 << 10, 16 << 10, 256 << 10];

/// Returns every operation of a suite at the same numbers of tasks and sizes.
pub fn of_guidelines(suite: &Suite) -> Vec<Place> {
    let of = |operation: &'static Operation| {
        let numbers = TASKS_OF_GUIDELINES.into_iter();
        numbers
            .filter(move |tasks| operation.exactly.is_none_or(|only| only == *tasks))
            .map(move |tasks| Place {
                operation,
                tasks,
                bytes: SIZES_OF_GUIDELINES.to_vec(),
            })
    };
    operations::of(suite).flat_map(of).collect()
}

/// Returns every operation of a suite with the numbers of processors and the sizes for which the paper of the same name
/// prints the time of a message.
pub fn of_messages(suite: &Suite) -> Vec<Place> {
    let points = reference::points_of(suite.name);
    let mut places = Vec::new();
    // The points are in the order of the paper's tables.
    let named = operations::distinct(points.iter().map(|point| &point.operation));
    let named = named.into_iter().filter_map(|name| operations::find(name));
    let beside = operations::of(suite).filter(|operation| operation.beside.is_some());
    for operation in named.chain(beside) {
        let name = operation.in_papers();
        let of_it = || points.iter().filter(|point| point.operation == name);
        let numbers: BTreeSet<u32> = of_it().map(|point| point.processors).collect();
        for tasks in numbers {
            let here = of_it().filter(|point| point.processors == tasks);
            let bytes: BTreeSet<u64> = here.map(|point| point.bytes).collect();
            places.push(Place {
                operation,
                tasks,
                bytes: bytes.into_iter().collect(),
            });
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites;

    #[test]
    fn places_have_the_tasks_that_their_operations_take() {
        for suite in suites::ALL {
            for place in places(suite) {
                let only = place.operation.exactly;
                assert!(only.is_none_or(|n| n == place.tasks), "{place:?}");
                assert!(place.operation.is_in(suite), "{place:?}");
                assert!(!place.bytes.is_empty(), "{place:?}");
            }
        }
    }
}
