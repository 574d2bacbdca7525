//! Steps that the launcher takes for a spawn.

use regatta_wire::fields;
use regatta_wire::world::World;

use crate::registry::Refused;

/// Tasks of one spawn that start on one host. Their numbers are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpawnedTasks {
    /// The number of the spawn.
    pub spawn: u32,
    /// The number of the first task.
    pub first: u32,
    /// The number of tasks.
    pub count: u32,
}
fields!(SpawnedTasks {
    spawn,
    first,
    count
});

impl SpawnedTasks {
    /// Returns the numbers of the tasks.
    pub fn tasks(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.count
    }
}

/// A step for the launcher. Effects are carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpawnEffect {
    /// Have a host prepare tasks, as given by [`super::Spawns::order`]. Answered by [`super::Spawns::prepared`].
    Prepare {
        /// The number of the spawn.
        spawn: u32,
        /// The host's number.
        host: u32,
        /// The number of tasks.
        count: u32,
    },
    /// Enter tasks into the launcher's own table. Answered by [`super::Spawns::entered_here`] before any other call.
    EnterHere {
        /// The number of the spawn.
        spawn: u32,
        /// The tasks.
        world: World,
    },
    /// Have all other hosts enter tasks. Answered by [`super::Spawns::entering`] at once, and by
    /// [`super::Spawns::entered`] for each host.
    EnterElsewhere {
        /// The number of the spawn.
        spawn: u32,
        /// The tasks.
        world: World,
    },
    /// Have a host start the tasks that it has prepared. Answered by [`super::Spawns::started`] for each task.
    Start {
        /// The host's number.
        host: u32,
        /// The tasks.
        share: SpawnedTasks,
    },
    /// Have a host make one of its processes a task. Answered by [`super::Spawns::started`].
    Admit {
        /// The host's number.
        host: u32,
        /// The number of the process on that host.
        process: u32,
        /// The task's number.
        task: u32,
    },
    /// Have a host forget tasks that have numbers but will not start. They count as ended.
    Abandon {
        /// The host's number.
        host: u32,
        /// The tasks.
        share: SpawnedTasks,
    },
    /// Have a host forget the tasks that it has prepared. None of them has a number.
    Forget {
        /// The number of the spawn.
        spawn: u32,
        /// The host's number.
        host: u32,
    },
    /// Tell a process of a host why it does not become a task.
    TurnAway {
        /// The host's number.
        host: u32,
        /// The number of the process on that host.
        process: u32,
        /// The reason.
        refused: Refused,
    },
}
