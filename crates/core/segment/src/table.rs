//! The words at the front of the segment: the job's header, and the table of its tasks.
//!
//! ```text
//! 0    the segment's own words
//! 128  header, with the job's key: the page is in no core dump
//! 768  an entry of 256 bytes for each task the job may ever have: state, place, world, bell, inlet
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64};

use regatta_memory::bell::{Bell, Payers};
use regatta_memory::list::List;
use regatta_memory::losses::Losses;
use regatta_memory::making::Making;
use regatta_memory::segment::RESERVED_FRONT;
use regatta_memory::stack::Stack;

use crate::free_collective_buffers::Buffers;
use crate::geometry::PIPE_SIZES;
#[cfg(test)]
use crate::job::{ASKS, IN_RING, MAX_TASKS, OVER};
use crate::ring_marks::Marks;

/// Value of a cause: the process has ended, for an unknown cause.
pub(crate) const ENDED: u32 = 4;
/// Value of a state: joined, and its end will count as leaving.
pub(crate) const MAY_END: u32 = 4;
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"regatta\x01");

/// The job's header, at the front of the segment.
#[repr(C, align(64))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    /// Number of tasks the job began with; `capacity` is the maximum it may ever have.
    pub(crate) first: AtomicU32,
    pub(crate) capacity: AtomicU32,
    /// Number of table entries that have been given to tasks.
    pub(crate) given: AtomicU32,
    /// Number of tasks that run on this host.
    pub(crate) living: AtomicU32,
    pub(crate) cores: AtomicU32,
    /// Number of first tasks on other hosts of the job that use the same cores.
    pub(crate) neighbours: AtomicU32,
    pub(crate) payers: Payers,
    pub(crate) lines: AtomicU32,
    pub(crate) payload_buffer: AtomicU32,
    pub(crate) pipe: AtomicU32,
    pub(crate) pipes: AtomicU32,
    pub(crate) wide: AtomicU32,
    /// Number of this host in the job; `tasks_here` is how many of the first tasks run on it.
    pub(crate) here: AtomicU32,
    pub(crate) tasks_here: AtomicU32,
    /// 1 if the network between hosts is trusted. Tasks then prove to each other that they have the key, but do not
    /// encrypt; see `place`.
    pub(crate) trusted: AtomicU32,
    /// 1 once there is a task on another host.
    pub(crate) scattered: AtomicU32,
    /// The key with which tasks on different hosts prove that they belong to the job; see `place`.
    pub(crate) key: [AtomicU64; 4],
    /// Version of the members of named groups, on the launcher's host; 0 on other hosts.
    pub(crate) groups: AtomicU64,
    /// Free pipes of each size.
    pub(crate) pool: Line<[Stack; PIPE_SIZES]>,
    /// Collective buffers that have been made or left; see `free_collective_buffers`.
    pub(crate) collective_buffers: Line<Buffers>,
    /// All rings; `pipes_made` lists all pipes of each size.
    pub(crate) rings: Line<List>,
    pub(crate) pipes_made: Line<[List; PIPE_SIZES]>,
    /// Number of deaths and departures so far.
    pub(crate) losses: Line<Losses>,
    /// All blocks for loans; see `loan_blocks`.
    pub(crate) loans: Line<List>,
}

#[repr(C, align(64))]
pub(crate) struct Line<T>(pub(crate) T);

/// The host and address of a task. They are written before any other task can know the task's number.
#[repr(C)]
pub(crate) struct PlaceWords {
    pub(crate) host: AtomicU32,
    /// The port, or 0 if the task has no address.
    pub(crate) port: AtomicU32,
    /// The IPv6 address; an IPv4 address is mapped into one.
    pub(crate) address: [AtomicU64; 2],
}

/// Words of a task that others read: the task that blocks it, and the piece of memory that it is making.
#[repr(C)]
pub(crate) struct Shown {
    /// The receiver that the task is blocked sending to, with flags; 0 if it is not blocked.
    pub(crate) on: AtomicU64,
    /// Successor in the cycle of blocked senders detected last, plus 1.
    pub(crate) ring_next: AtomicU32,
    /// Number of times it has since looked in vain for something that could proceed.
    pub(crate) looks: AtomicU32,
    /// Memory that it has allocated and not listed yet; see `left`.
    pub(crate) making: Making,
}

/// The table entry of a task. Zero is a valid initial value.
#[repr(C, align(64))]
pub(crate) struct TaskEntry {
    pub(crate) state: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// 0 none, 1 exited, 2 signalled, 3 lost with its host, 4 ended.
    pub(crate) cause: AtomicU32,
    pub(crate) value: AtomicU32,
    /// Address of the probe word (`Job::word`) in the task's memory. Other tasks read the word to verify that they
    /// read that task's memory.
    pub(crate) probe: AtomicU64,
    pub(crate) place: PlaceWords,
    pub(crate) world: WorldWords,
    pub(crate) shown: Line<Shown>,
    pub(crate) bell: Bell,
    pub(crate) inlet: Line<Inlet>,
}

/// Notifications for a task, besides the frames in its rings. The task reads these words whenever it polls for
/// messages.
#[repr(C)]
pub(crate) struct Inlet {
    /// Rings opened towards this task and not yet noticed.
    pub(crate) opened: List,
    /// Changes when the task's launcher has a message for it.
    pub(crate) news: AtomicU32,
    _pad: u32,
    /// The name of the collective buffer of the task's world, or 0.
    pub(crate) collective_buffer: AtomicU64,
    /// Marks of the rings towards this task that have been written to; see `ring_marks`.
    pub(crate) marks: Marks,
}

/// The world of a task that was started by another one; zeros for the first tasks.
#[repr(C)]
pub(crate) struct WorldWords {
    /// Number of the world's first task.
    pub(crate) first: AtomicU32,
    pub(crate) count: AtomicU32,
    /// Number of the task that started it, plus 1.
    pub(crate) parent: AtomicU32,
    _pad: u32,
}

pub(crate) const HEADER_AT: u64 = RESERVED_FRONT as u64;
pub(crate) const SLOTS_AT: u64 = HEADER_AT + size_of::<Header>() as u64;

/// Offset of the first task's note on the piece that it makes.
pub(crate) const NOTES_AT: u64 = SLOTS_AT + std::mem::offset_of!(TaskEntry, shown.0.making) as u64;

/// Layouts, compared with `layout.txt` by a test.
#[cfg(test)]
pub(crate) const LAYOUTS: &[regatta_memory::layout::Layout] = &[
    regatta_memory::layout!("header", Header {
        magic, version, first, capacity, given, living, cores, neighbours, payers, lines, payload_buffer, pipe, pipes, wide,
        here, tasks_here, trusted, scattered, key, groups, pool, collective_buffers, rings, pipes_made, losses, loans,
    } HEADER_AT MAGIC MAX_TASKS),
    regatta_memory::layout!("task", TaskEntry {
        state, pid, cause, value, probe, place, world, shown, bell, inlet,
    } SLOTS_AT ENDED MAY_END),
    regatta_memory::layout!(
        "place of a task",
        PlaceWords {
            host,
            port,
            address
        }
    ),
    regatta_memory::layout!("shown", Shown { on, ring_next, looks,
        making } IN_RING ASKS OVER),
    regatta_memory::layout!(
        "inlet",
        Inlet {
            opened,
            news,
            _pad,
            collective_buffer,
            marks
        }
    ),
    regatta_memory::layout!(
        "world of a task",
        WorldWords {
            first,
            count,
            parent,
            _pad
        }
    ),
];

const _: () = assert!(HEADER_AT.is_multiple_of(align_of::<Header>() as u64));
const _: () = assert!(SLOTS_AT.is_multiple_of(align_of::<TaskEntry>() as u64));

/// Returns the offset at which a table of `tasks` ends.
pub(crate) fn table_end(tasks: u32) -> usize {
    SLOTS_AT as usize + tasks as usize * size_of::<TaskEntry>()
}

/// Returns the offset of the collective buffer of the first tasks' world, in a job of at most `most` tasks.
pub(crate) fn world_buffer_at(most: u32) -> u64 {
    (table_end(most) as u64).next_multiple_of(128)
}
