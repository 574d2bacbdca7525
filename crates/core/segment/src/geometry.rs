//! Sizes of rings, payload buffers and pipes, by the number of tasks.

/// Sizes that depend on how many tasks share the segment. A ring is opened when two tasks first communicate. The
/// sizes keep the memory of a job in which all pairs of tasks communicate within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Lines per ring.
    pub lines: u32,
    /// Bytes per payload buffer.
    pub payload_buffer: u32,
    /// Whether rings may get a wide payload buffer, and pipes be used whole. 1 means yes.
    pub wide: u32,
    /// Data bytes of the largest pipe.
    pub pipe: u32,
    /// Maximum number of unmatched large messages that a task may have in its own pipes.
    pub pipes: u32,
}

/// Bytes of a pipe that are used with a narrow footprint: the source and the destination of a message then stay in
/// the second-level caches of both cores.
pub const NARROW_PIPE: u32 = 256 << 10;

/// The smallest pipe, in bytes of data.
const MIN_PIPE_BYTES: u32 = 64 << 10;

/// Number of sizes of pipes.
pub const PIPE_SIZES: usize = 4;

/// The geometries of small to large jobs.
pub(crate) const CLASSES: [Geometry; 4] = [
    geometry(256, 64 << 10, 1, 1 << 20, 16),
    geometry(64, 32 << 10, 0, 128 << 10, 4),
    geometry(32, 8 << 10, 0, 64 << 10, 2),
    geometry(16, 4 << 10, 0, 64 << 10, 1),
];

const fn geometry(lines: u32, payload_buffer: u32, wide: u32, pipe: u32, pipes: u32) -> Geometry {
    Geometry {
        lines,
        payload_buffer,
        wide,
        pipe,
        pipes,
    }
}

/// Returns the index in [`CLASSES`] for this many tasks.
pub(crate) fn class_for(tasks: u32) -> u32 {
    match tasks {
        0..=8 => 0,
        9..=64 => 1,
        65..=512 => 2,
        _ => 3,
    }
}

impl Geometry {
    /// The sizes of the largest jobs.
    pub const SMALLEST: Geometry = CLASSES[CLASSES.len() - 1];

    /// Returns the sizes for a job of `tasks`.
    pub fn for_tasks(tasks: u32) -> Geometry {
        CLASSES[class_for(tasks) as usize]
    }

    /// Returns the data bytes of the pipes of each size. The first use of a pipe's memory costs more than the copies
    /// of a message, so a message takes the smallest pipe that suits it.
    pub fn pipe_sizes(&self) -> [u32; PIPE_SIZES] {
        [
            self.pipe.min(MIN_PIPE_BYTES),
            self.pipe.min(2 * MIN_PIPE_BYTES),
            self.pipe.min(NARROW_PIPE),
            self.pipe,
        ]
    }

    /// Returns the index of the smallest size with at least this many bytes of data, or of the largest.
    pub fn pipe_size_for(&self, bytes: u64) -> usize {
        let sizes = self.pipe_sizes();
        let found = sizes.iter().position(|&size| u64::from(size) >= bytes);
        found.unwrap_or(PIPE_SIZES - 1)
    }

    /// Returns the maximum length of a message that is sent through a ring's payload buffer: a quarter of the buffer.
    /// For a wide buffer it is [`WIDE_EAGER`](crate::ring_memory::WIDE_EAGER).
    pub const fn eager_limit(&self) -> usize {
        self.payload_buffer as usize / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_the_smallest_pipe_that_holds_it() {
        for geometry in CLASSES {
            let sizes = geometry.pipe_sizes();
            assert!(sizes.is_sorted() && sizes[PIPE_SIZES - 1] == geometry.pipe);
            for bytes in [0, 1, 65_536, 65_537, 131_072, 131_073, 1 << 20, u64::MAX] {
                let taken = sizes[geometry.pipe_size_for(bytes)];
                assert!(u64::from(taken) >= bytes || taken == geometry.pipe);
                let smaller = sizes.iter().filter(|&&size| size < taken);
                assert!(smaller.into_iter().all(|&size| u64::from(size) < bytes));
            }
            // A pipe is returned to the pool that it was taken from.
            for size in 0..PIPE_SIZES {
                let back = geometry.pipe_size_for(sizes[size].into());
                assert_eq!(sizes[back], sizes[size]);
            }
        }
    }
}
