//! The ways in which PVM's messages are sent, each an echo test of its own: the suite `pvm`.
//!
//! Raced when they are asked for, by the suite's name or their own.

use crate::settings::Family;

/// Name of the suite.
pub const SUITE: &str = "pvm";
/// How all these operations begin.
const FIRST: &str = "ping-pong-";
const PACKED: &str = "ping-pong-blocking-pack-";

/// The operations, in the order they are shown.
pub const OPERATIONS: [&str; 14] = [
    "ping-pong-blocking",
    "ping-pong-asynchronous",
    "ping-pong-blocking-pack-raw",
    "ping-pong-blocking-pack-in-place",
    "ping-pong-blocking-pack-default",
    "ping-pong-blocking-pack-raw-int",
    "ping-pong-blocking-pack-raw-float",
    "ping-pong-blocking-pack-raw-double",
    "ping-pong-blocking-pack-in-place-int",
    "ping-pong-blocking-pack-in-place-float",
    "ping-pong-blocking-pack-in-place-double",
    "ping-pong-blocking-pack-default-int",
    "ping-pong-blocking-pack-default-float",
    "ping-pong-blocking-pack-default-double",
];

/// Is this one of them?
pub fn is_one(operation: &str) -> bool {
    operation.starts_with(FIRST)
}

/// Has this family such messages? Regatta's own interface packs nothing: bytes only, for comparison.
pub fn takes_part(family: Family, operation: &str) -> bool {
    match family {
        Family::Limit => false,
        Family::Regatta => {
            let packed = operation.strip_prefix(PACKED);
            packed.is_none_or(|how| matches!(how, "raw" | "in-place"))
        }
        _ => true,
    }
}

/// Bytes of an element.
pub fn unit(operation: &str) -> u64 {
    match operation.rsplit_once('-').map(|(_, last)| last) {
        Some("int" | "float") => 4,
        Some("double") => 8,
        _ => 1,
    }
}

/// The smallest message; of no bytes nothing can be packed.
pub fn smallest(operation: &str) -> u64 {
    match operation.starts_with(PACKED) {
        true => 8,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_packs_nothing_is_raced_with_bytes_only() {
        let takes = |operation| takes_part(Family::Regatta, operation);
        assert!(takes("ping-pong-blocking") && takes("ping-pong-blocking-pack-raw"));
        assert!(!takes("ping-pong-blocking-pack-raw-int"));
        assert!(!takes("ping-pong-blocking-pack-default"));
        for family in [Family::Pvm, Family::RegattaPvm, Family::OpenMpi] {
            assert!(
                OPERATIONS
                    .iter()
                    .all(|operation| takes_part(family, operation))
            );
        }
        assert!(
            !OPERATIONS
                .iter()
                .any(|operation| takes_part(Family::Limit, operation))
        );
    }

    #[test]
    fn sizes_are_whole_elements() {
        assert!(OPERATIONS.iter().all(|operation| is_one(operation)));
        assert_eq!(unit("ping-pong-blocking-pack-in-place"), 1);
        assert_eq!(unit("ping-pong-blocking-pack-in-place-float"), 4);
        assert_eq!(unit("ping-pong-blocking-pack-raw-double"), 8);
    }

    /// The program must know every one of them, and no others.
    #[test]
    fn the_program_has_the_same_operations() {
        let main = include_str!("../../../../programs/primitives/main.c");
        let known = main.matches("{.name = \"ping-pong-").count();
        assert_eq!(known, OPERATIONS.len());
        for operation in OPERATIONS {
            assert!(
                main.contains(&format!("{{.name = \"{operation}\",")),
                "{operation}"
            );
        }
    }
}
