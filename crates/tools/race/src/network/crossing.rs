//! The bytes that must have passed between hosts, if no message took a short cut.
//!
//! Each operation has a least number of payload bytes that any way of doing it has to bring to another host. The kernel's
//! counters must have seen at least that much, or tasks found a way round the network: shared memory, most likely.

use crate::output::Point;
use crate::ping_pong;

/// Bytes that all samples of these points brought to other hosts, at the least; ranks are dealt to hosts in blocks.
pub fn least(points: &[Point], tasks: u32, hosts: u32) -> u64 {
    let runs = |point: &Point| point.batch * point.us.len() as u64;
    let each = |point: &Point| runs(point) * of_one(&point.operation, point.bytes, tasks, hosts);
    points.iter().map(each).sum()
}

fn of_one(operation: &str, bytes: u64, tasks: u32, hosts: u32) -> u64 {
    let (tasks, hosts) = (u64::from(tasks), u64::from(hosts));
    let elsewhere = tasks - tasks / hosts.max(1);
    // An empty message is at least a byte of some head.
    let bytes = bytes.max(1);
    match operation {
        "one-to-one" => 2 * bytes,
        name if ping_pong::is_one(name) => 2 * bytes,
        "exchange" if tasks == hosts => tasks * bytes,
        "message-rate" => 64 * bytes,
        "broadcast" => (hosts - 1) * bytes,
        "concatenation" => hosts * elsewhere * bytes,
        "complete-exchange" => tasks * elsewhere * bytes,
        "ring" | "barrier" | "global-sum" | "global-max" => hosts * bytes,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn no_operation_of_two_hosts_is_free() {
        for operation in crate::plan::OPERATIONS
            .iter()
            .filter(|name| **name != "copy")
        {
            assert!(of_one(operation, 8, 2, 2) > 0, "{operation}");
        }
    }
}
