//! Operations of whole jobs, and operations of tasks other than messages. Each has launches of its own.

use super::{Kind, Need, Operation, Pattern, Program};
use crate::peers::Peer;
use crate::plan::Effort;
use crate::results::Metric;
use crate::suites::{MEMORY, START};

/// Maximum number of tasks that one task is asked to start.
const MAX_STARTED_TASKS: u32 = 256;

/// All operations of this module.
pub static ALL: &[&Operation] = &[
    &Operation {
        heading: "start and finish of a job",
        about: "start and end of a job; time of its launcher",
        kind: Kind::JoinLeave,
        suites: &[&START],
        ..Operation::new("join-leave", Program::Primitive("idle.c"))
    },
    &Operation {
        heading: "start of further tasks",
        about: "one task starts others; time until each has joined and answered",
        kind: Kind::Spawn,
        suites: &[&START],
        need: Need::Spawning,
        pattern: Pattern::Spawning,
        tasks: (1, MAX_STARTED_TASKS),
        ..Operation::new("spawn", Program::Primitive("spawn.c"))
    },
    &Operation {
        heading: "news of a task's death",
        about: "a task kills another one with SIGKILL; time until the killer receives the event",
        kind: Kind::Notify,
        suites: &[&START],
        need: Need::Deaths,
        tasks: (2, MAX_STARTED_TASKS),
        ..Operation::new("notify", Program::Primitive("spawn.c"))
    },
    &Operation {
        heading: "idle task",
        about: "memory of a task that waits",
        kind: Kind::IdleMemory,
        metric: Metric::Resident,
        suites: &[&MEMORY],
        ..Operation::new("idle", Program::Primitive("idle.c"))
    },
    &Operation {
        about: "processor time of a task that is blocked in a receive",
        heading: "blocked receive",
        kind: Kind::IdleProcessor,
        metric: Metric::Cpu,
        suites: &[&MEMORY],
        ..Operation::new("blocked-receive", Program::Primitive("idle.c"))
    },
];

/// Returns the operation that a launch of this kind measures, or `None` for points, which name their operations.
pub fn of(kind: Kind) -> Option<&'static Operation> {
    ALL.iter().copied().find(|operation| operation.kind == kind)
}

/// Returns the numbers of tasks that are raced by default. Where starting 100 tasks takes 3 to 14 s, only a full race
/// has time for that.
pub fn usual(kind: Kind, peer: &dyn Peer, effort: Effort) -> &'static [u32] {
    let full = effort == Effort::Full;
    match (kind, effort) {
        (Kind::Spawn, _) if peer.facts().starts_slowly && !full => &[1, 10],
        (Kind::Spawn, _) => &[1, 10, 100],
        (Kind::Notify, Effort::Quick) | (Kind::IdleProcessor, _) => &[2],
        (Kind::IdleMemory, _) => &[32],
        _ => &[2, 32],
    }
}
