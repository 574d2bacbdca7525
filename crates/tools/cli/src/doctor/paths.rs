//! The path of a message between two tasks of this host, by its size, with the reasons.

use regatta_memory::ring::INLINE;
use regatta_segment::job::{Geometry, NARROW_PIPE};

use super::bytes;
use super::finding::{Finding, FindingState};

const AREA: &str = "path of a pair on this host";

/// Returns the findings. `single_copy` is the result of its probe.
pub fn findings(single_copy: &Finding) -> Vec<Finding> {
    let geometry = Geometry::for_tasks(2);
    let eager = geometry.eager_limit();
    let away = match single_copy.state {
        FindingState::Ok => {
            "if the sender is not in a call, the receiver reads the rest from its memory (CMA is allowed)"
                .to_owned()
        }
        _ => {
            "if the sender is not in a call, the rest waits for it (CMA is refused, see above)".to_owned()
        }
    };
    vec![
        Finding::ok(
            AREA,
            format!("0 to {INLINE} B"),
            "header and payload in one cache line of the pair's ring",
        ),
        Finding::ok(
            AREA,
            format!("to {}", bytes(eager as u64)),
            "eager: one copy into the pair's ring, one out of it",
        ),
        Finding::ok(
            AREA,
            "larger",
            format!(
                "pipelined through a shared pipe of {} or {}, whichever the tasks find faster, copied by both sides at once; {away}",
                bytes(u64::from(NARROW_PIPE)),
                bytes(u64::from(geometry.pipe))
            ),
        ),
        Finding::info(AREA, "in larger jobs", larger()),
    ]
}

/// Returns the limits for larger jobs. They shrink with the number of tasks, since each pair that communicates has a
/// ring.
fn larger() -> String {
    let eager = |tasks: u32| bytes(Geometry::for_tasks(tasks).eager_limit() as u64);
    format!(
        "eager to {} with 32 tasks, {} with 256, {} with 1000: every pair that communicates has a ring",
        eager(32),
        eager(256),
        eager(1000)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected limits are those of the transport.
    #[test]
    fn a_message_goes_eagerly_up_to_a_quarter_of_its_payload_buffer() {
        let probe = Finding::ok(AREA, "single copy", "");
        let found = format!("{:?}", findings(&probe));
        assert!(found.contains("to 16 KiB"), "{found}");
        assert!(
            larger().contains("8 KiB with 32 tasks, 2 KiB with 256, 1 KiB with 1000"),
            "{}",
            larger()
        );
    }
}
