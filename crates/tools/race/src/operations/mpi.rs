//! Operations that only MPI has: one-sided ones, derived datatypes, and messages of several threads at once.

use super::{Need, Operation, Pattern, Program, Room};
use crate::results::Metric;
use crate::suites::{MPI, Suite};

const SUITES: &[&Suite] = &[&MPI];

pub(super) static ALL: &[&Operation] = &[
    &Operation {
        heading: "put and flush",
        about: "a transfer to the memory of the other task (`MPI_Win_allocate`, one `MPI_Win_lock_all` for all), and its `MPI_Win_flush`",
        panel: 150,
        ..one_sided("put-flush")
    },
    &Operation {
        heading: "get and flush",
        about: "the same for a transfer from there",
        panel: 160,
        ..one_sided("get-flush")
    },
    &Operation {
        heading: "accumulate and flush",
        about: "the same for a sum of doubles there",
        unit: 8,
        panel: 170,
        ..one_sided("accumulate-flush")
    },
    &Operation {
        heading: "fetch and add",
        about: "`MPI_Fetch_and_op` of one integer, and the flush",
        bytes: &[8],
        panel: 180,
        ..one_sided("fetch-add")
    },
    &Operation {
        heading: "blocks of 8 bytes, as a datatype",
        about: "an echo test of blocks of 8 bytes, every second one of an array, as one `MPI_Type_vector`; one way",
        suites: SUITES,
        need: Need::Blocks,
        bytes: &[64, 4 << 10, 64 << 10, 1 << 20],
        unit: 8,
        room: Room::Blocks(2),
        crossing: |_, _| 0,
        panel: 140,
        ..Operation::echo("blocks", Program::Primitive("blocks.c"))
    },
    // Its program requests thread support when it starts, which would slow down other operations.
    &Operation {
        heading: "message rate of two threads",
        about: "`message-rate` by two threads of each task at the same time (`MPI_THREAD_MULTIPLE`), each with a communicator of its own; all messages count",
        suites: SUITES,
        metric: Metric::Rate,
        need: Need::Threads,
        pattern: Pattern::Threads,
        alone: true,
        bytes: &[8, 1 << 10],
        room: Room::Windows(2),
        panel: 190,
        ..Operation::pair("message-rate-threads", Program::Primitive("threads.c"))
    },
];

const fn one_sided(name: &'static str) -> Operation {
    Operation {
        suites: SUITES,
        need: Need::Windows,
        bytes: &[8, 256, 4 << 10, 64 << 10],
        ..Operation::pair(name, Program::Primitive("window.c"))
    }
}
