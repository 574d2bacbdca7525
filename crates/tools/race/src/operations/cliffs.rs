//! Operations that only MPI has and that headlines do not cover: creating and freeing objects, windows, files,
//! datatypes, many requests, test and probe loops, irregular collectives. The suite `cliffs` finds those that take a
//! multiple of a peer's time.

use super::{Need, Operation, Program, Room};
use crate::suites::{CLIFFS, Suite};

const SUITES: &[&Suite] = &[&CLIFFS];

pub(super) static ALL: &[&Operation] = &[
    // Communicators.
    &made(
        "comm-dup",
        COMMUNICATORS,
        "a communicator duplicated and freed",
    ),
    &made(
        "comm-idup",
        COMMUNICATORS,
        "the same by `MPI_Comm_idup` and `MPI_Wait`",
    ),
    &Operation {
        about: "N duplicates of a communicator are made, then all freed; N takes the place of bytes",
        ..many("comm-dup-many", COMMUNICATORS, "communicators", &[200])
    },
    &made(
        "comm-split",
        COMMUNICATORS,
        "tasks split into two communicators, which are freed",
    ),
    &made(
        "comm-create-group",
        COMMUNICATORS,
        "a communicator of a group made and freed",
    ),
    &made(
        "cart-create",
        COMMUNICATORS,
        "a ring as a Cartesian communicator made and freed",
    ),
    &made(
        "dist-graph-create",
        COMMUNICATORS,
        "a ring as a distributed graph made and freed",
    ),
    &made(
        "intercomm-create",
        COMMUNICATORS,
        "an intercommunicator between two halves of the tasks made and freed",
    ),
    &made(
        "intercomm-merge",
        COMMUNICATORS,
        "an intercommunicator merged, and the result freed",
    ),
    &Operation {
        about: "a sum of doubles over the other side of an intercommunicator",
        bytes: &[8],
        unit: 8,
        ..made("inter-allreduce", COMMUNICATORS, "")
    },
    // Windows.
    &made(
        "win-create",
        WINDOWS,
        "a window of 4 KiB on the program's memory made and freed",
    ),
    &made(
        "win-allocate",
        WINDOWS,
        "a window of 4 KiB with its memory made and freed",
    ),
    &Operation {
        exactly: Some(2),
        ..made(
            "win-allocate-shared",
            WINDOWS,
            "the same with memory that both tasks share",
        )
    },
    &transfer(
        "put-created",
        "words put into a window on the program's memory, and the flush",
    ),
    &transfer(
        "put-allocated",
        "the same, on memory that the library allocates",
    ),
    &transfer("get-created", "words taken from a window, and the flush"),
    &transfer(
        "get-allocated",
        "the same, on memory that the library allocates",
    ),
    &transfer(
        "accumulate-created",
        "words added to those of a window, and the flush",
    ),
    &transfer(
        "accumulate-allocated",
        "the same, on memory that the library allocates",
    ),
    &vector(
        "put-vector-created",
        "every second word of an array put into a window, and the flush",
    ),
    &vector(
        "put-vector-allocated",
        "the same, on memory that the library allocates",
    ),
    &vector(
        "get-vector-created",
        "every second word taken from a window, and the flush",
    ),
    &vector(
        "get-vector-allocated",
        "the same, on memory that the library allocates",
    ),
    &vector(
        "accumulate-vector-created",
        "every second word added to those of a window, and the flush",
    ),
    &vector(
        "accumulate-vector-allocated",
        "the same, on memory that the library allocates",
    ),
    &pair(
        "fetch-op-created",
        WINDOWS,
        "`MPI_Fetch_and_op` of one integer, and the flush",
    ),
    &pair(
        "fetch-op-allocated",
        WINDOWS,
        "the same, on memory that the library allocates",
    ),
    &pair(
        "lock-fetch-op-created",
        WINDOWS,
        "the same in an exclusive `MPI_Win_lock` and `MPI_Win_unlock`",
    ),
    &pair(
        "lock-fetch-op-allocated",
        WINDOWS,
        "the same, on memory that the library allocates",
    ),
    &pair(
        "lock-put-created",
        WINDOWS,
        "a shared `MPI_Win_lock`, a put of 8 bytes, `MPI_Win_unlock`",
    ),
    &pair(
        "lock-put-allocated",
        WINDOWS,
        "the same, on memory that the library allocates",
    ),
    &made(
        "fence-created",
        WINDOWS,
        "`MPI_Win_fence` without transfers",
    ),
    &made(
        "fence-allocated",
        WINDOWS,
        "the same, on memory that the library allocates",
    ),
    &pair(
        "put-fence-created",
        WINDOWS,
        "both tasks put 8 bytes, and `MPI_Win_fence`",
    ),
    &pair(
        "put-fence-allocated",
        WINDOWS,
        "the same, on memory that the library allocates",
    ),
    // Files.
    &made("file-open", FILES, "a file opened and closed by all tasks"),
    &made(
        "file-set-view",
        FILES,
        "a view of runs of 8 bytes, assigned to the tasks in turn",
    ),
    &runs(
        "file-read-runs",
        "1000 runs of 8 bytes read through such a view, each task by itself",
    ),
    &runs("file-read-runs-all", "the same by all tasks together"),
    &runs("file-write-runs", "1000 runs written, each task by itself"),
    &runs("file-write-runs-all", "the same by all tasks together"),
    &record("file-write-shared", "records at the shared file pointer"),
    &record("file-write-ordered", "the same in the order of ranks"),
    // Datatypes, without communication.
    &made(
        "type-vector",
        DATATYPES,
        "a vector type made, committed and freed",
    ),
    &made(
        "type-indexed",
        DATATYPES,
        "the same for an indexed type of 2000 blocks",
    ),
    &made(
        "type-struct",
        DATATYPES,
        "the same for a struct of 1000 blocks",
    ),
    &made(
        "type-subarray",
        DATATYPES,
        "the same for a face of a cube of 64",
    ),
    &packing(
        "pack-nested",
        4096,
        &[4096],
        "a vector of vectors of ints packed",
    ),
    &packing("unpack-nested", 4096, &[4096], "unpacked"),
    &packing(
        "pack-external",
        8,
        &[8000],
        "doubles packed as \"external32\"",
    ),
    &packing("unpack-external", 8, &[8000], "unpacked"),
    // Objects with many entries.
    &Operation {
        about: "N keys of an `MPI_Info` are set and read, and the info is freed; N takes the place of bytes",
        ..many("info-keys", OBJECTS, "keys", &[100, 4000])
    },
    &Operation {
        about: "N attributes of a communicator are set, read and deleted",
        ..many("attributes", OBJECTS, "attributes", &[1000])
    },
    // Requests.
    &requests(
        "waitany",
        "N receives are posted, messages are sent to them in another order, and `MPI_Waitany` completes them all",
    ),
    &requests("testsome", "the same with `MPI_Testsome`"),
    &requests(
        "tags-reverse",
        "N messages are received in the opposite order of their sends",
    ),
    &requests(
        "persistent-make",
        "N requests of `MPI_Send_init` and `MPI_Recv_init` are made and freed",
    ),
    &requests(
        "partitioned-make",
        "N partitioned requests are made, used once and freed",
    ),
    &Operation {
        need: Need::FreedCollectives,
        ..requests(
            "iscan-free",
            "N calls of `MPI_Iscan` whose requests are freed at once, and a barrier",
        )
    },
    // Loops that poll.
    &looking(
        "test-loop",
        "an echo test in pairs; one task polls by `MPI_Test` until the message has arrived; half of the round trip",
    ),
    &looking("iprobe-loop", "the same by `MPI_Iprobe`"),
    &Operation {
        exactly: Some(2),
        unit: 1,
        bytes: &[8, 1 << 10],
        ..made(
            "stream-any",
            POLLING,
            "both tasks send by `MPI_Isend` and `MPI_Test`, and receive messages from any source, without pause; time per message",
        )
    },
    // Collectives.
    &irregular(
        "gatherv-irregular",
        "3000 ints of tasks of even rank and one of the others, gathered",
    ),
    &irregular("scatterv-irregular", "the same scattered"),
    &irregular("allgatherv-irregular", "the same gathered by all"),
    &Operation {
        unit: 4,
        bytes: &[64],
        room: Room::EachTask,
        ..irregular(
            "alltoallw",
            "each task sends a block to each other task, with types of their own",
        )
    },
    &Operation {
        unit: 1,
        bytes: &[64, 16 << 10],
        room: Room::Blocks(2),
        ..irregular("neighbor-alltoall", "a block to both neighbours of a ring")
    },
    &Operation {
        unit: 8,
        bytes: &[8, 64 << 10],
        ..irregular(
            "iallreduce-wait",
            "`MPI_Iallreduce` of doubles, and `MPI_Wait`",
        )
    },
    &Operation {
        unit: 8,
        bytes: &[8, 64 << 10],
        ..irregular(
            "persistent-allreduce",
            "the same as a persistent request that is started",
        )
    },
];

const COMMUNICATORS: &str = "mpi/communicators.c";
const WINDOWS: &str = "mpi/windows.c";
const FILES: &str = "mpi/files.c";
const DATATYPES: &str = "mpi/datatypes.c";
const OBJECTS: &str = "mpi/objects.c";
const REQUESTS: &str = "mpi/requests.c";
const POLLING: &str = "mpi/polling.c";
const COLLECTIVES: &str = "mpi/collectives.c";

/// Returns an operation without a size.
const fn made(name: &'static str, file: &'static str, about: &'static str) -> Operation {
    Operation {
        about,
        suites: SUITES,
        need: Need::Mpi,
        unit: 0,
        bytes: &[0],
        ..Operation::new(name, Program::Primitive(file))
    }
}

/// Returns an operation as [`made`], between two tasks.
const fn pair(name: &'static str, file: &'static str, about: &'static str) -> Operation {
    Operation {
        exactly: Some(2),
        ..made(name, file, about)
    }
}

/// Returns an operation whose sizes are numbers of objects.
const fn many(
    name: &'static str,
    file: &'static str,
    quantity: &'static str,
    numbers: &'static [u64],
) -> Operation {
    Operation {
        quantity,
        unit: 1,
        bytes: numbers,
        ..made(name, file, "")
    }
}

/// Returns a transfer of contiguous words.
const fn transfer(name: &'static str, about: &'static str) -> Operation {
    Operation {
        unit: 4,
        bytes: &[8, 64 << 10],
        ..pair(name, WINDOWS, about)
    }
}

/// Returns a transfer of strided words.
const fn vector(name: &'static str, about: &'static str) -> Operation {
    Operation {
        unit: 4,
        bytes: &[4000],
        room: Room::Blocks(2),
        ..pair(name, WINDOWS, about)
    }
}

const fn runs(name: &'static str, about: &'static str) -> Operation {
    Operation {
        unit: 8000,
        bytes: &[8000],
        ..made(name, FILES, about)
    }
}

const fn record(name: &'static str, about: &'static str) -> Operation {
    Operation {
        unit: 64,
        bytes: &[64],
        room: Room::EachTask,
        ..made(name, FILES, about)
    }
}

const fn packing(
    name: &'static str,
    unit: u64,
    bytes: &'static [u64],
    about: &'static str,
) -> Operation {
    Operation {
        unit,
        bytes,
        room: Room::Blocks(8),
        ..made(name, DATATYPES, about)
    }
}

const fn requests(name: &'static str, about: &'static str) -> Operation {
    Operation {
        about,
        exactly: Some(2),
        ..many(name, REQUESTS, "requests", &[1000])
    }
}

/// Returns an operation that polls. If there are more tasks than processors, tasks must yield while they poll.
const fn looking(name: &'static str, about: &'static str) -> Operation {
    Operation {
        about,
        suites: SUITES,
        need: Need::Mpi,
        numbers: &[2, 4, 8, 16],
        bytes: &[64],
        ..Operation::echo_of_pairs(name, Program::Primitive(POLLING))
    }
}

const fn irregular(name: &'static str, about: &'static str) -> Operation {
    Operation {
        numbers: &[2, 4],
        ..made(name, COLLECTIVES, about)
    }
}
