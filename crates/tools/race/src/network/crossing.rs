//! The number of bytes that must have passed between hosts if all messages crossed the network.
//!
//! Any implementation of an operation must bring a minimum number of payload bytes to another host. If the kernel's
//! counters show less, tasks did not use the network, most likely because they shared memory.

use crate::operations;
use crate::output::Point;

/// Returns the minimum number of bytes that all samples of these points brought to other hosts. Ranks are assigned to
/// hosts in blocks.
pub fn least(points: &[Point], tasks: u32, hosts: u32) -> u64 {
    // The numbers come from the programs, so the sum saturates: an overflow must not become a small sum.
    let runs = |point: &Point| point.batch.saturating_mul(point.us.len() as u64);
    let one = |point: &Point| of_one(&point.operation, point.bytes, tasks, hosts);
    let each = points
        .iter()
        .map(|point| runs(point).saturating_mul(one(point)));
    each.fold(0, u64::saturating_add)
}

fn of_one(operation: &str, bytes: u64, tasks: u32, hosts: u32) -> u64 {
    // An empty message has at least a byte of header.
    let bytes = bytes.max(1);
    let messages = operations::find(operation)
        .map_or(0, |one| (one.crossing)(u64::from(tasks), u64::from(hosts)));
    messages.saturating_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::Kind;

    fn point(operation: &str, bytes: u64) -> Point {
        Point {
            operation: operation.to_owned(),
            bytes,
            batch: 10,
            us: vec![1.0; 3],
        }
    }

    #[test]
    fn every_sample_counts_with_what_must_leave_a_host() {
        assert_eq!(
            least(&[point("one-to-one", 8), point("barrier", 0)], 2, 2),
            30 * (16 + 2)
        );
        assert_eq!(
            least(&[point("complete-exchange", 100)], 8, 2),
            30 * 8 * 4 * 100
        );
        assert_eq!(
            least(&[point("exchange", 8)], 8, 2),
            0,
            "neighbours are on one host"
        );
    }

    #[test]
    fn numbers_that_no_program_can_mean_make_no_small_sum() {
        let mut absurd = point("ring", u64::MAX);
        assert_eq!(least(std::slice::from_ref(&absurd), 2, 2), u64::MAX);
        absurd.bytes = 1;
        absurd.batch = u64::MAX / 2;
        assert_eq!(least(&[absurd.clone(), absurd], 2, 2), u64::MAX);
    }

    #[test]
    fn no_operation_of_two_hosts_is_free() {
        for operation in operations::all() {
            let crosses = operation.suites[0].between_hosts && operation.kind == Kind::Points;
            if crosses && !operation.of_the_limit {
                assert!(of_one(operation.name, 8, 2, 2) > 0, "{operation:?}");
            }
        }
    }
}
