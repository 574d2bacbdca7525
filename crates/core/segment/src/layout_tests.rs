//! Checks that the layout of the segment changes only with its version: `layout.txt` describes it.

use std::fmt::Write;

use crate::geometry::CLASSES;
use crate::job::VERSION;
use crate::table::LAYOUTS;
use crate::{buffer_users, collective_buffer, free_collective_buffers, ring_marks, ring_memory};

/// Returns the description of everything that launcher and tasks of different installations must agree on.
fn layout() -> String {
    let mut text = format!("version {VERSION}\n");
    let own = [
        ring_memory::NAMES_LAYOUT,
        ring_memory::POSITIONS_LAYOUT,
        ring_marks::LAYOUT,
        buffer_users::LAYOUT,
        free_collective_buffers::LAYOUT,
        free_collective_buffers::BUFFERS_LAYOUT,
        collective_buffer::CONTRIBUTION_LAYOUT,
        collective_buffer::LAYOUT,
    ];
    let shared = regatta_memory::layout::ALL.iter().chain(LAYOUTS);
    for one in shared.chain(&own) {
        let _ = write!(text, "{one}");
    }
    for (class, geometry) in CLASSES.iter().enumerate() {
        let _ = writeln!(
            text,
            "class {class}: {geometry:?}, pipes of {:?}",
            geometry.pipe_sizes()
        );
    }
    for kind in (0..=u8::MAX).filter_map(regatta_wire::Kind::from_byte) {
        let _ = writeln!(text, "frame {}: {kind:?}", kind as u8);
    }
    for members in [1, 2, 3, 64, 65, 1024, 1025] {
        let _ = writeln!(
            text,
            "collective buffer of {members}: {}",
            collective_buffer::footprint(members)
        );
    }
    text
}

/// Returns what to do if the layout differs from the one in `layout.txt`.
fn advice(written: &str, now: &str) -> Option<&'static str> {
    let version = |text: &str| text.lines().next().map(str::to_owned);
    match (written == now, version(written) == version(now)) {
        (true, _) => None,
        (false, true) => Some(
            "What lies in the segment has changed, and VERSION in crates/core/segment/src/job.rs has not. A launcher and a \
             library that differ in this would misread each other: raise VERSION.",
        ),
        (false, false) => Some(
            "VERSION has been raised: write what lies in the segment now into \
             crates/core/segment/src/layout.txt.",
        ),
    }
}

#[test]
fn what_lies_where_in_the_segment_is_held_to_its_version() {
    let now = layout();
    if let Some(advice) = advice(include_str!("layout.txt"), &now) {
        panic!("{advice} It is:\n{now}");
    }
}

#[test]
fn a_bit_that_moves_asks_for_another_version() {
    let now = layout();
    let moved = now.replace("ASKS=2000000000000000", "ASKS=1000000000000000");
    assert_ne!(moved, now);
    assert!(advice(&now, &moved).is_some_and(|text| text.ends_with("raise VERSION.")));
    let raised = moved.replace(
        &format!("version {VERSION}\n"),
        &format!("version {}\n", VERSION + 1),
    );
    assert!(advice(&now, &raised).is_some_and(|text| text.contains("layout.txt")));
}
