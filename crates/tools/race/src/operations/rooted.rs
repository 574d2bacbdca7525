//! Collectives of one task and all others, and scans; and the expressions by other operations that the guidelines
//! compare operations with.

use super::collectives::{BARRIER, BROADCAST, COMPLETE_EXCHANGE, CONCATENATION, GLOBAL_SUM};
use super::copies::VECTOR_SEND_RECV;
use super::messages::ONE_TO_ONE;
use super::{Need, Operation, Program, Room};
use crate::suites::{GUIDELINES, Suite};

const SUITES: &[&Suite] = &[&GUIDELINES];
const ROOTED: &str = "rooted.c";
const EXPRESSIONS: &str = "expressions.c";

pub(super) static ALL: &[&Operation] = &[
    &REDUCE,
    &GATHER,
    &SCATTER,
    &SCAN,
    &REDUCE_SCATTER,
    &Operation {
        about: "`global-sum` as a sum at one task and a broadcast",
        expresses: &[&GLOBAL_SUM],
        ..sum("global-sum-by-reduce")
    },
    &Operation {
        about: "`broadcast` as a scatter and a concatenation",
        expresses: &[&BROADCAST],
        smallest: 1 << 10,
        ..rooted("broadcast-by-scatter")
    },
    &Operation {
        about: "`concatenation` as a gather and a broadcast",
        expresses: &[&CONCATENATION],
        ..blocks("concatenation-by-gather")
    },
    &Operation {
        about: "`scatter` as a broadcast of all blocks",
        expresses: &[&SCATTER],
        ..blocks("scatter-by-broadcast")
    },
    &Operation {
        about: "`scan` as a concatenation, followed by sums at each task",
        expresses: &[&SCAN],
        unit: 8,
        ..blocks("scan-by-concatenation")
    },
    &Operation {
        about: "`reduce-scatter` as a sum at one task and a scatter",
        expresses: &[&REDUCE_SCATTER],
        smallest: 1 << 10,
        ..sum("reduce-scatter-by-reduce")
    },
    &Operation {
        about: "`complete-exchange` as non-blocking messages that are all started, then waited for",
        expresses: &[&COMPLETE_EXCHANGE],
        suites: SUITES,
        room: Room::EachTask,
        ..Operation::new(
            "complete-exchange-by-messages",
            Program::Primitive(EXPRESSIONS),
        )
    },
    &Operation {
        about: "`one-to-one` with each message in two halves",
        expresses: &[&ONE_TO_ONE],
        ..echo("one-to-one-halves")
    },
    &Operation {
        about: "`one-to-one` with non-blocking sends and receives",
        expresses: &[&ONE_TO_ONE, &ONE_TO_ONE_PERSISTENT],
        ..echo("one-to-one-started")
    },
    &ONE_TO_ONE_PERSISTENT,
    &Operation {
        about: "`vector-send-recv` with words that the program copies and sends as bytes",
        expresses: &[&VECTOR_SEND_RECV],
        unit: 4,
        room: Room::Blocks(2),
        program: Program::Primitive("vector.c"),
        ..echo("vector-by-packing")
    },
    &Operation {
        about: "the non-blocking `barrier`, started and waited for",
        expresses: &[&BARRIER],
        unit: 0,
        ..rooted("barrier-started")
    },
    &Operation {
        about: "the non-blocking `broadcast`, started and waited for",
        expresses: &[&BROADCAST],
        ..rooted("broadcast-started")
    },
    &Operation {
        about: "the non-blocking `global-sum`, started and waited for",
        expresses: &[&GLOBAL_SUM],
        ..sum("global-sum-started")
    },
];

pub(super) static REDUCE: Operation = Operation {
    about: "the sum of a vector of doubles over all tasks, at one of them; the root changes each time",
    ..sum("reduce")
};

pub(super) static GATHER: Operation = Operation {
    about: "a block of each task, in order, at one of them; the root changes each time",
    ..blocks("gather")
};

pub(super) static SCATTER: Operation = Operation {
    about: "a block for each task, from one of them; the root changes each time",
    ..blocks("scatter")
};

static SCAN: Operation = Operation {
    about: "each task gets the sum of a vector of doubles over the tasks up to itself",
    ..sum("scan")
};

pub(super) static REDUCE_SCATTER: Operation = Operation {
    about: "the sum of a vector of doubles over all tasks; each task gets its part",
    smallest: 1 << 10,
    ..sum("reduce-scatter")
};

static ONE_TO_ONE_PERSISTENT: Operation = Operation {
    about: "`one-to-one` with persistent requests",
    need: Need::Mpi,
    ..echo("one-to-one-persistent")
};

const fn rooted(name: &'static str) -> Operation {
    Operation {
        suites: SUITES,
        need: Need::MoreCollectives,
        ..Operation::new(name, Program::Primitive(ROOTED))
    }
}

/// Returns a reduction of a vector of doubles.
const fn sum(name: &'static str) -> Operation {
    Operation {
        unit: 8,
        ..rooted(name)
    }
}

/// Returns an operation with a block for each task.
const fn blocks(name: &'static str) -> Operation {
    Operation {
        room: Room::EachTask,
        ..rooted(name)
    }
}

const fn echo(name: &'static str) -> Operation {
    Operation {
        suites: SUITES,
        ..Operation::echo(name, Program::Primitive(EXPRESSIONS))
    }
}
