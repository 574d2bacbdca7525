//! The operations that only MPI has: one-sided ones, derived datatypes, and messages of several threads at once. The suite `mpi`.
//!
//! Raced between two tasks, when they are asked for, by the suite's name or their own.

use crate::settings::Family;

/// Name of the suite.
pub const SUITE: &str = "mpi";
/// The one whose program asks for threads when it starts. It races in launches of its own: threads cost other operations something.
pub const THREADS: &str = "message-rate-threads";
/// Blocks of eight bytes, every second one of an array.
pub const BLOCKS: &str = "blocks";

/// The operations, in the order they are shown.
pub const OPERATIONS: [&str; 6] = [
    "put-flush",
    "get-flush",
    "accumulate-flush",
    "fetch-add",
    BLOCKS,
    THREADS,
];

/// Is this one of them?
pub fn is_one(operation: &str) -> bool {
    OPERATIONS.contains(&operation)
}

/// Has this family the operations?
pub fn takes_part(family: Family) -> bool {
    matches!(
        family,
        Family::OpenMpi | Family::Mpich | Family::Mpich4 | Family::RegattaMpi
    )
}

/// Does this family give right results with one of them? Transfers of Debian's MPICH 4.0 have not arrived when their flush returns.
pub fn gives_right_results(family: Family, operation: &str) -> bool {
    family != Family::Mpich4 || matches!(operation, BLOCKS | THREADS)
}

/// The usual sizes, in bytes.
pub fn sizes(operation: &str) -> &'static [u64] {
    match operation {
        "fetch-add" => &[8],
        BLOCKS => &[64, 4 << 10, 64 << 10, 1 << 20],
        THREADS => &[8, 1 << 10],
        _ => &[8, 256, 4 << 10, 64 << 10],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program must know every one of them.
    #[test]
    fn the_program_has_the_same_operations() {
        let main = include_str!("../../../../programs/primitives/main.c");
        for operation in OPERATIONS {
            assert!(
                main.contains(&format!("{{.name = \"{operation}\",")),
                "{operation}"
            );
            assert!(!sizes(operation).is_empty() && is_one(operation));
        }
    }
}
