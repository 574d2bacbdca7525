//! The modes in which nodes share a file, and a node's part of a transfer. Pure.

use std::ffi::{c_int, c_long};

use crate::error::{EIMODE, Fault};

/// A mode. The numbers are the Paragon's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each node has its own position.
    Unix = 0,
    /// One shared position, in order of arrival.
    Log = 1,
    /// One shared position; all nodes take part, in order of nodes, with any lengths.
    Sync = 2,
    /// All nodes take part, in order of nodes, with the same length.
    Record = 3,
    /// All nodes make the same call, which is executed once.
    Global = 4,
    /// As `Unix`, but unsynchronized.
    Async = 5,
}

impl Mode {
    pub fn of(number: c_long) -> Result<Mode, Fault> {
        let modes = [
            Mode::Unix,
            Mode::Log,
            Mode::Sync,
            Mode::Record,
            Mode::Global,
            Mode::Async,
        ];
        let mode = usize::try_from(number).ok().and_then(|at| modes.get(at));
        mode.copied().ok_or(Fault::of(EIMODE, "mode", number))
    }

    /// Returns whether the nodes share one position, at which they have to start together.
    pub fn shares(self) -> bool {
        !matches!(self, Mode::Unix | Mode::Async)
    }
}

/// A node's part of a collective transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of the part in the file.
    pub begin: i64,
    /// The common position afterwards.
    pub next: i64,
}

/// Returns the part of node `me`, given the length of each node, from this position on. Returns `None` if the file
/// would be too long.
pub fn part_of(me: c_int, lengths: &[usize], from: i64) -> Option<Part> {
    let (mut begin, mut next) = (from, from);
    for (node, &length) in lengths.iter().enumerate() {
        if node == me as usize {
            begin = next;
        }
        next = next.checked_add(i64::try_from(length).ok()?)?;
    }
    Some(Part { begin, next })
}

/// Returns the part of node `me` if all nodes have the same length. Returns `None` if the file would be too long.
pub fn record_of(me: c_int, nodes: c_int, length: usize, from: i64) -> Option<Part> {
    let length = i64::try_from(length).ok()?;
    let begin = length.checked_mul(me.into())?.checked_add(from)?;
    let next = length.checked_mul(nodes.into())?.checked_add(from)?;
    Some(Part { begin, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_in_the_order_of_nodes() {
        let lengths = [3, 0, 5];
        let parts = [0, 1, 2].map(|me| part_of(me, &lengths, 100));
        let begins = [100, 103, 103];
        for (part, begin) in parts.into_iter().zip(begins) {
            assert_eq!(part, Some(Part { begin, next: 108 }));
        }
    }

    #[test]
    fn records_have_their_places_without_asking_anybody() {
        let expected = [10, 14, 18].map(|begin| Some(Part { begin, next: 22 }));
        assert_eq!([0, 1, 2].map(|me| record_of(me, 3, 4, 10)), expected);
    }

    #[test]
    fn no_file_is_longer_than_can_be_counted() {
        assert_eq!(part_of(0, &[usize::MAX], 1), None);
        assert_eq!(part_of(0, &[4], i64::MAX - 2), None);
        assert_eq!(record_of(1, 3, usize::MAX / 4, 0), None);
    }

    #[test]
    fn modes_have_the_paragons_numbers() {
        for number in 0..6 {
            assert_eq!(Mode::of(number).map(|mode| mode as c_long), Ok(number));
        }
        for number in [-1, 6] {
            assert_eq!(Mode::of(number), Err(Fault::of(EIMODE, "mode", number)));
        }
    }
}
