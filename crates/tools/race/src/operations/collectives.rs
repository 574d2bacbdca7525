//! Operations of all tasks together.

use super::rooted::{GATHER, REDUCE, REDUCE_SCATTER};
use super::{Bound, Headline, Operation, Pattern, Program, Room};
use crate::suites::{AHMAD_1997, AHMAD_WU_1991, GUIDELINES, HOSTS, INTERFACES, PRIMITIVES};

pub(super) static ALL: &[&Operation] = &[
    &BARRIER,
    &BROADCAST,
    &GLOBAL_SUM,
    &GLOBAL_PRODUCT,
    &GLOBAL_MAX,
    &CONCATENATION,
    &COMPLETE_EXCHANGE,
];

/// 10, 64, 128 and 256 words of 4 bytes.
const REDUCED: &[u64] = &[40, 256, 512, 1024];
const NUMBERS: &[u32] = &[2, 4, 8, 16, 32];
const REDUCTIONS: &[Bound] = &[Bound::alike(NUMBERS, REDUCED, 1.15)];

pub(super) static BARRIER: Operation = Operation {
    about: "all wait for all",
    suites: &[&PRIMITIVES, &HOSTS, &GUIDELINES, &INTERFACES],
    pattern: Pattern::Barrier,
    unit: 0,
    crossing: |_, hosts| hosts,
    panel: 50,
    headline: Some(Headline {
        place: 3,
        bytes: &[0],
        crowd: 1,
    }),
    bounds: &[Bound::alike(&[32], &[0], 1.15)],
    ..Operation::new("barrier", Program::Primitive("barrier.c"))
};

pub(super) static BROADCAST: Operation = Operation {
    about: "from one task to all; the root changes each time",
    suites: &[&PRIMITIVES, &HOSTS, &GUIDELINES, &AHMAD_WU_1991],
    pattern: Pattern::Broadcast,
    crossing: |_, hosts| hosts - 1,
    panel: 90,
    headline: Some(Headline {
        place: 5,
        bytes: &[1 << 10, 64 << 10],
        crowd: 0,
    }),
    ..Operation::new("broadcast", Program::Primitive("broadcast.c"))
};

/// Returns a reduction of a vector of doubles over all tasks.
const fn reduction(name: &'static str) -> Operation {
    Operation {
        unit: 8,
        crossing: |_, hosts| hosts,
        bounds: REDUCTIONS,
        ..Operation::new(name, Program::Primitive("global.c"))
    }
}

pub(super) static GLOBAL_SUM: Operation = Operation {
    about: "the sum of a vector of doubles over all tasks, at all of them",
    suites: &[
        &PRIMITIVES,
        &HOSTS,
        &GUIDELINES,
        &AHMAD_WU_1991,
        &AHMAD_1997,
        &INTERFACES,
    ],
    expresses: &[&BARRIER, &REDUCE, &REDUCE_SCATTER],
    panel: 60,
    headline: Some(Headline {
        place: 4,
        bytes: &[8],
        crowd: 2,
    }),
    bounds: &[
        Bound::alike(NUMBERS, REDUCED, 1.15),
        Bound::alike(&[32], &[8], 1.15),
    ],
    ..reduction("global-sum")
};

static GLOBAL_PRODUCT: Operation = Operation {
    about: "the same with the product",
    suites: &[&AHMAD_WU_1991, &INTERFACES],
    panel: 70,
    ..reduction("global-product")
};

static GLOBAL_MAX: Operation = Operation {
    about: "the same with the maximum",
    suites: &[&PRIMITIVES, &AHMAD_WU_1991, &INTERFACES],
    panel: 80,
    ..reduction("global-max")
};

pub(super) static CONCATENATION: Operation = Operation {
    about: "every task gets a block of each task, in order",
    suites: &[&PRIMITIVES, &HOSTS, &GUIDELINES, &AHMAD_WU_1991],
    pattern: Pattern::Concatenation,
    room: Room::EachTask,
    crossing: |tasks, hosts| hosts * elsewhere(tasks, hosts),
    expresses: &[&GATHER],
    panel: 100,
    headline: Some(Headline {
        place: 6,
        bytes: &[1 << 10, 64 << 10],
        crowd: 0,
    }),
    ..Operation::new("concatenation", Program::Primitive("concatenation.c"))
};

pub(super) static COMPLETE_EXCHANGE: Operation = Operation {
    about: "each task sends a block to each other task",
    suites: &[&PRIMITIVES, &HOSTS, &GUIDELINES],
    room: Room::EachTask,
    crossing: |tasks, hosts| tasks * elsewhere(tasks, hosts),
    panel: 110,
    headline: Some(Headline {
        place: 7,
        bytes: &[1 << 10, 64 << 10],
        crowd: 0,
    }),
    ..Operation::new(
        "complete-exchange",
        Program::Primitive("complete-exchange.c"),
    )
};

/// Returns the number of tasks on hosts other than a task's own. Ranks are assigned to hosts in blocks.
fn elsewhere(tasks: u64, hosts: u64) -> u64 {
    tasks - tasks / hosts.max(1)
}
